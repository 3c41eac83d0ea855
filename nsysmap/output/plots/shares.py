"""Draws where the time goes: bars of layers, and of idle time by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsysmap.analysis import Analysis
from nsysmap.answer.costs import cost_rows, kernel_titles, other_costs, whole_part
from nsysmap.answer.words import each
from nsysmap.core.errors import NsysmapError
from nsysmap.core.idle_causes import idle_words
from nsysmap.output.picture.swatches import CAUSES, PLAIN, Swatch, kind_swatch
from nsysmap.output.words import CAUSES as CAUSE_WORDS
from nsysmap.text.terminal import escaped, told_apart
from nsysmap.text.units import counted, duration, percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

BUSY = "#566bcb"
_MOST_BARS = 25  # that can be read on one page
_NAME = 60  # columns
_ENGINE = 24  # columns


def draw_layers(axes: Axes, analysis: Analysis) -> str:
    """Draws the rows of the answer's table of kernel time, more of them, or the costliest kernels
    if no layer is known; returns the title.

    Raises NsysmapError if the trace has no kernels either.
    """
    summary = analysis.summary
    rows = cost_rows(summary)
    if not rows:
        return _draw_kernels(axes, analysis)
    shown = rows[:_MOST_BARS]
    names, times, fills = [], [], []
    used: dict[Swatch, None] = {}
    for row, told in zip(
        shown, told_apart([escaped(row.name) for row in shown], _NAME), strict=True
    ):
        names.append(
            (f"{row.layers} × " if row.layers and row.layers > 1 else "")
            + told
            + (of_engine(analysis, row.engine) if row.group else "")
        )
        times.append(row.time_ns)
        fills.append(kind_swatch(row.group.kind, row.group.name).fill if row.group else PLAIN)
        used |= {kind_swatch(row.group.kind, row.group.name): None} if row.group else {}
    if rest := other_costs(summary, shown):
        names.append(f"all others ({counted(rest[2], 'layer')})")
        times.append(rest[1])
        fills.append(PLAIN)
    labels = [f"{duration(time)}, {percent(time, summary.kernel_ns)}" for time in times]
    _bars(axes, names, times, labels, fills)
    what = "visible kernel time" if summary.hidden else "kernel time"
    of = f"per {summary.unit} (mean)" if summary.kernel_units else whole_part(summary)
    axes.set_xlabel(f"µs {of}, of {duration(summary.kernel_ns)} {what}")
    _legend(axes, [(one.fill, one.words) for one in used], across=3)
    return "Time by layer" + (
        ", * stands for numbers that differ" if any("*" in name for name in names) else ""
    )


def _bars(
    axes: Axes,
    names: Sequence[str],
    times_ns: Sequence[int],
    labels: Sequence[str],
    fill: str | Sequence[str],
) -> None:
    """A labelled bar a row, the first at the top, in microseconds."""
    bars = axes.barh(
        range(len(names)),
        [time / 1e3 for time in times_ns],
        color=fill,
        edgecolor="#495057",
        linewidth=0.5,
    )
    axes.bar_label(bars, labels, fontsize=8, padding=3)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.16)


def _draw_kernels(axes: Axes, analysis: Analysis) -> str:
    kernels = analysis.summary.kernels
    if not kernels:
        raise NsysmapError(
            analysis.source,
            "has no kernel with a time",
            "give a report with traced kernels: nsys profile -t cuda,nvtx",
        )
    names = kernel_titles([(one.what, one.name) for one in kernels], _NAME)
    labels = [f"{duration(one.time_ns)}, {percent(one.share_of_kernel_time, 1)}" for one in kernels]
    _bars(axes, names, [one.time_ns for one in kernels], labels, PLAIN)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlabel("µs over the trace")
    return "Time of the costliest kernels: no layer is known for them"


def _idle_words(cause: str) -> str:
    return f"idle, {idle_words(cause)}: {CAUSE_WORDS[cause]}"


def draw_idle(axes: Axes, analysis: Analysis) -> str:
    """Draws for each GPU how its time divides into work and idle time by cause; returns the title.

    Raises NsysmapError if the trace does not show how busy a GPU was.
    """
    gpus = [row for row in analysis.tables.device_times if row.maybe_real("busy_share") is not None]
    if not gpus:
        raise NsysmapError(
            analysis.source,
            "does not show how busy its GPUs were",
            "capture it again with --cuda-graph-trace=node",
        )
    names: dict[str, str] = {}
    for place, gpu in enumerate(gpus):
        idle = [
            row
            for row in analysis.tables.idle_totals
            if row.integer("device") == gpu.integer("device")
        ]
        parts = [("GPU work: kernels, copies, memsets", gpu.real("busy_share"), BUSY)]
        parts += [
            (_idle_words(row.text("cause")), row.real("share_of_window"), CAUSES[row.text("cause")])
            for row in idle
        ]
        left = 0.0
        for words, share, fill in parts:
            names[fill] = words + (f" ({percent(share, 1)})" if len(gpus) == 1 else "")
            bar = axes.barh(
                place, share * 100, left=left * 100, color=fill, edgecolor="white", linewidth=0.5
            )
            if share > 0.06:
                axes.bar_label(
                    bar,
                    [percent(share, 1)],
                    label_type="center",
                    fontsize=8,
                    bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1},
                )
            left += share
    axes.set_yticks(range(len(gpus)), [f"GPU {gpu.integer('device')}" for gpu in gpus])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    one = each(analysis.summary)
    axes.set_xlabel(
        f"% of the time from the first to the last steady-state {one}"
        if analysis.summary.steady
        else "% of the time of the trace"
    )
    _legend(axes, list(names.items()))
    return "Where the GPU's time goes"


def of_engine(analysis: Analysis, engine: int | None) -> str:
    """Words that name a layer's engine if several ran: their layers often have the same names."""
    if engine is None or len(analysis.engines) < 2:
        return ""
    return f" ({told_apart([escaped(one.source) for one in analysis.engines], _ENGINE)[engine]})"


def _legend(axes: Axes, entries: list[tuple[str, str]], *, across: int = 1) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=fill, edgecolor="#495057", linewidth=0.5, label=words)
        for fill, words in entries
    ]
    below(axes, handles, across=across)


def below(axes: Axes, handles: Sequence[Artist] | None = None, *, across: int = 1) -> None:
    """Puts the legend below the figure, where nothing in it can be taken for data."""
    shown = axes.get_legend_handles_labels()[0] if handles is None else handles
    axes.figure.legend(
        handles=shown, loc="outside lower left", ncols=across, fontsize=8, frameon=False
    )
