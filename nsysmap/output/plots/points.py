"""One point per inference over the run, and one per layer under the roofline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.analysis import Analysis
from nsysmap.answer.words import each
from nsysmap.core.errors import NsysmapError
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.table import MISSING, FloatArray, IntArray, Row, Table
from nsysmap.output.plots.shares import below, of_engine
from nsysmap.text.terminal import escaped, told_apart
from nsysmap.text.units import counted, duration, percent
from nsysmap.timing.layer_sums import alike, titles_of
from nsysmap.timing.roofline import needed_of, peak_of
from nsysmap.timing.totals import layer_totals
from nsysmap.trace.inferences.steady import steady_inferences

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

_COLOURS = ("#566bcb", "#ff9600", "#3da682", "#9744ff", "#a06a00", "#812e12", "#ff98f6", "#7e80a1")
_MARKS = "os^vDP*X"
_DETAILED = (
    "give one that trtexec --exportLayerInfo wrote of an engine built with"
    " --profilingVerbosity=detailed"
)
_SLOW = 1.5  # times the median: from here on an inference is marked
_NAMED = 5  # points with a name beside them
_NAME = 70  # columns
_CLEAR = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.5}
_APART = 2  # pixels between two names
_AWAY = (1, 2, 4, 6)  # times as far from its point as a name is that stands beside it
_ABOVE_LINES = 2.5  # matplotlib draws lines at 2, and text at 3 as well as legends at 5
_WHY = {
    "foreign_node": "the engine file does not show what is inside these regions",
    "plugin": "what these plugins compute does not follow from their tensors",
}
_VERDICTS = {
    "memory-bound": "#566bcb",
    "compute-bound": "#812e12",
    "latency-bound": "#ff9600",
    "unknown": "#d0d3d6",
}
_IN_WORDS = {"unknown": "whose limit is unknown"}


def draw_inferences(axes: Axes, analysis: Analysis) -> str:
    """Draws the time of each steady-state inference over the run; returns the title.

    Raises NsysmapError if none was measured.
    """
    tables = analysis.tables
    times = tables.inference_times.take(tables.inference_times.ints("time_ns") != MISSING)
    if not len(times):
        raise NsysmapError(
            analysis.source,
            "has no steady-state inference",
            "capture more than a few inferences after the warm-up",
        )
    starts = tables.inferences.ints("start_ns")
    begin = int(starts.min())
    at = (starts[times.ints("inference")] - begin) / 1e6
    spent = times.ints("time_ns") / 1e3
    groups, one = list(tables.inference_groups), each(analysis.summary)
    for place, group in enumerate(groups):
        mine = times.ints("group_id") == group.integer("group_id")
        if not mine.any():
            continue
        colour = _COLOURS[place % len(_COLOURS)]
        median = group.maybe_integer("median_ns")
        engine = group.maybe_integer("engine")
        what = (
            escaped(analysis.engines[engine].source) + ", "
            if engine is not None and len(analysis.engines) > 1
            else ""
        )
        label = f"{what}{counted(group.integer('steady'), one)}"
        label += (
            f"{_of_kernels(analysis, group)}{_where(analysis, group)}, median {duration(median)}"
        )
        axes.scatter(
            at[mine],
            spent[mine],
            s=14,
            color=colour,
            marker=_MARKS[place % len(_MARKS)],
            label=label,
            linewidths=0,
        )
        if median is not None:
            axes.axhline(median / 1e3, color=colour, linewidth=0.8, linestyle="--")
    ratio = times.floats("times_median")
    slow = [
        row
        for row in np.argsort(-np.nan_to_num(ratio), kind="stable")[:_NAMED].tolist()
        if ratio[row] > _SLOW
    ]
    axes.set_ylim(0, float(spent.max()) * 1.08)
    axes.set_xlabel(f"ms since the start of the first {one}")
    axes.set_ylabel("µs from the previous one's end to its own")
    below(axes)
    points = []
    for row in slow:
        cause = times.text("extra_cause")[row]
        words = f"{int(times.ints('inference')[row])}: {ratio[row]:.1f} ×" + (
            f", {idle_words(cause)}" if cause else ""
        )
        points.append((words, float(at[row]), float(spent[row])))
    _named(axes, points)
    return f"Time of each {one}, profiler included"


def _of_kernels(analysis: Analysis, group: Row) -> str:
    kernels = group.maybe_integer("kernels")
    if not kernels and analysis.summary.hidden:
        return " with hidden kernels"
    return "" if kernels is None else f" of {counted(kernels, 'kernel')}"


def _where(analysis: Analysis, group: Row) -> str:
    """The GPU of a group, or its thread's number if nothing else distinguishes it from another, and
    its phase.
    """
    phase = next(
        (
            f", {kind.phase}"
            for kind in analysis.summary.kinds
            if kind.group == group.integer("group_id") and kind.phase
        ),
        "",
    )
    same = ("engine", "kernels")
    like = {
        row.integer("loop_id")
        for row in analysis.tables.inference_groups
        if all(row[name] == group[name] for name in same)
    }
    if len(like) == 1:
        return phase
    loops = {row.integer("loop_id"): row for row in analysis.tables.inference_loops}
    mine, devices = group.integer("loop_id"), {loops[loop]["device"] for loop in like}
    return (
        f", GPU {loops[mine]['device']}" if len(devices) == len(like) else f", thread {mine + 1}"
    ) + phase


def _unknown(roofline: Table) -> str:
    """Why most layers are unknown; empty if there are none."""
    reasons = Counter(row.maybe_text("reason") for row in roofline) if len(roofline) else Counter()
    most = next((reason for reason, _ in reasons.most_common() if reason), None)
    return f": {most}" if most else ""


def draw_roofline(axes: Axes, analysis: Analysis) -> str:
    """Draws each layer's rate over its operations per byte, under the device's limits; returns the
    title.

    Raises NsysmapError if no layer has a time, operations and bytes.
    """
    tables = analysis.tables
    rows = [
        row
        for row in tables.roofline
        if row.maybe_integer("time_ns")
        and row.maybe_integer("flops")
        and row.maybe_integer("bytes")
    ]
    bandwidth = next((row.maybe_integer("bandwidth_bytes_per_s") for row in tables.devices), None)
    if not rows or not bandwidth:
        raise NsysmapError(
            analysis.source,
            f"has no layer with a known time, operations and bytes{_unknown(tables.roofline)}",
            _DETAILED,
        )
    per_byte = np.array([row.integer("flops") / row.integer("bytes") for row in rows])
    # operations per ns are 10⁹ per second
    rate = np.array([row.integer("flops") / row.integer("time_ns") for row in rows])
    for verdict, colour in _VERDICTS.items():
        mine = np.array([row.text("verdict") == verdict for row in rows])
        if mine.any():
            axes.scatter(
                per_byte[mine],
                rate[mine],
                s=18,
                color=colour,
                marker=_MARKS[list(_VERDICTS).index(verdict)],
                label=f"{counted(int(mine.sum()), 'layer')} {_IN_WORDS.get(verdict, verdict)}",
                edgecolors="#495057",
                linewidths=0.4,
            )
    counted_per_byte = _draw_counted(axes, rows, per_byte, rate)
    peaks = _peaks(analysis, rows)
    placed = np.concatenate([per_byte, counted_per_byte])
    left, right = (
        float(placed.min()) / 3,
        max(float(placed.max()) * 3, (max(peaks) / bandwidth * 3) if peaks else 0),
    )
    for peak in peaks:
        axes.plot(
            [max(left, peak / bandwidth), right],
            [peak / 1e9, peak / 1e9],
            color="#495057",
            linewidth=1,
        )
    top = (max(peaks) / bandwidth) if peaks else right
    axes.plot(
        [left, top], [left * bandwidth / 1e9, top * bandwidth / 1e9], color="#495057", linewidth=1
    )
    middle = (left * top) ** 0.5
    axes.annotate(
        f"memory: {bandwidth / 1e12:,.2f} TB/s",
        (middle, middle * bandwidth / 1e9),
        xytext=(-4, 5),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        # matplotlib's own labels would typeset parts of a name as formulas
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlim(left, right)
    axes.set_xlabel("operations per byte read and written")
    axes.set_ylabel("10⁹ operations per second")
    totals, whole_ns = layer_totals(
        tables.kernels, len(tables.layers), steady_inferences(tables.inferences)
    )
    place = {row.integer("layer_id"): at for at, row in enumerate(rows)}
    every = alike(tables.layers)
    groups = [[row for row in mine if row.integer("layer_id") in place] for mine in every]
    spent = [int(totals[[row.integer("layer_id") for row in mine]].sum()) for mine in groups]
    costly = [
        number
        for number in np.argsort(-np.array(spent), kind="stable")[:_NAMED].tolist()
        if spent[number]
    ]
    names = titles_of(every)
    told = told_apart([escaped(names[number]) for number in costly], _NAME)
    points, lines = [], []
    for number, (group, name) in enumerate(zip(costly, told, strict=True), start=1):
        like = groups[group]
        at = place[like[len(like) // 2].integer("layer_id")]
        points.append((str(number), float(per_byte[at]), float(rate[at])))
        what = (
            (f"{len(like)} × " if len(like) > 1 else "")
            + name
            + of_engine(analysis, like[0].maybe_integer("engine"))
        )
        lines.append(f"{number}: {percent(spent[group], whole_ns)}, {what}")
    for line in (*lines, *_left_out(analysis, totals, whole_ns, set(place))):
        axes.plot([], [], linestyle="none", label=line)
    below(axes)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # fixes the position of the axes
    for peak, words in peaks.items():
        # the line of the memory runs above the lower ones
        _along(axes, words, right, peak / 1e9, (3,) if peak == max(peaks) else (-10, 3))
    _named(axes, points)
    what = "visible kernel time" if analysis.summary.hidden else "kernel time"
    return (
        f"Roofline of the layers with {percent(int(totals[list(place)].sum()), whole_ns)} of the"
        f" {what}"
    )


def _peaks(analysis: Analysis, rows: Sequence[Row]) -> dict[float, str]:
    """The peak rates that limit these rows of `roofline`, lowest first, with the data types that
    they are of.
    """
    needed = {row.integer("layer_id"): needed_of(row) for row in analysis.tables.work}
    found: dict[tuple[float, bool], set[str]] = {}
    for row in rows:
        peak, need = row.maybe_real("peak_flops_per_s"), needed.get(row.integer("layer_id"))
        if peak and need is not None:
            precision, cores = peak_of(need)
            found.setdefault((peak, cores), set()).add(precision or "")
    words: dict[float, str] = {}
    for (peak, cores), types in sorted(found.items()):
        more = f"{', '.join(sorted(types))} on {'tensor' if cores else 'CUDA'} cores"
        words[peak] = (
            f"{words[peak]}; {more}" if peak in words else f"{peak / 1e12:,.0f} × 10¹²/s: {more}"
        )
    return words


def _left_out(analysis: Analysis, totals: IntArray, whole_ns: int, shown: Set[int]) -> list[str]:
    """For the layers that are not shown, by reason: their share of all kernel time and their
    number, and the kernels of no layer.
    """
    found: dict[str, list[int]] = {}
    for row, one in zip(analysis.tables.roofline, analysis.tables.layers, strict=True):
        layer = row.integer("layer_id")
        if layer not in shown and totals[layer]:
            moves = row.maybe_integer("flops") == 0
            why = (
                "they only move data"
                if moves
                else _WHY.get(
                    one.text("kind"), "the engine file does not show their operations or bytes"
                )
            )
            found.setdefault(why, []).append(int(totals[layer]))
    listed = sorted(found.items(), key=lambda item: -sum(item[1]))
    words = [
        f"not shown: {percent(sum(times), whole_ns)}, {counted(len(times), 'layer')}: {why}"
        for why, times in listed
    ]
    none = whole_ns - int(totals.sum())
    return words + (
        [f"not shown: {percent(none, whole_ns)}, kernels of no known layer"] if none > 0 else []
    )


def _draw_counted(
    axes: Axes, rows: Sequence[Row], per_byte: FloatArray, rate: FloatArray
) -> FloatArray:
    """Draws layers also where the traffic that hardware counters measured puts them, joined to
    where the engine file does; returns their operations per byte.
    """
    moved = [
        (at, row.integer("dram_bytes"))
        for at, row in enumerate(rows)
        if row.maybe_integer("dram_bytes")
    ]
    if not moved:
        return np.zeros(0)
    at = np.array([place for place, _ in moved])
    measured = np.array([rows[place].integer("flops") / size for place, size in moved])
    axes.plot(
        [per_byte[at], measured], [rate[at], rate[at]], color="#adb5bd", linewidth=0.7, zorder=0.5
    )
    label = (
        f"{counted(len(moved), 'layer')} by the memory traffic that was measured (hardware"
        " counters)"
    )
    axes.scatter(
        measured,
        rate[at],
        s=18,
        facecolors="none",
        edgecolors="#495057",
        linewidths=0.9,
        label=label,
    )
    return measured


def _named(axes: Axes, points: list[tuple[str, float, float]]) -> None:
    """Writes each name near its point, where it covers no other and the fewest points, with a line
    to it where there is no room beside it; a name that fits nowhere is left out.
    """
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # fixes the position of the axes
    whole = axes.get_window_extent()
    taken: list[Bbox] = [text.get_window_extent() for text in axes.texts]
    drawn = _drawn(axes)
    for name, x, y in points:
        best: tuple[int, Annotation, Bbox] | None = None
        for away in _AWAY:
            for side, right, up in [
                (side, right, up)
                for up in (-3, 7, -13)
                for side, right in (("right", -6), ("left", 6))
            ]:
                text = axes.annotate(
                    name, (x, y), xytext=(away * right, away * up), ha=side,
                    textcoords="offset points", fontsize=7, bbox=_CLEAR,
                    zorder=_ABOVE_LINES,
                )  # fmt: skip
                box = text.get_window_extent().padded(_APART)
                covered = _inside(drawn, box)
                if (
                    any(box.overlaps(other) for other in taken)
                    or box.x0 < whole.x0
                    or whole.x1 < box.x1
                    or (best and best[0] <= covered)
                ):
                    text.remove()
                    continue
                if best is not None:
                    best[1].remove()
                best = covered, text, box
            if best is not None:
                taken.append(best[2])
                if away > 1:
                    line = {
                        "arrowstyle": "-",
                        "linewidth": 0.6,
                        "color": "#495057",
                        "shrinkA": 0,
                        "shrinkB": 3,
                    }
                    axes.annotate(
                        "",
                        (x, y),
                        xytext=best[1].xyann,
                        textcoords="offset points",
                        arrowprops=line,
                    )
                break


def _along(axes: Axes, words: str, right: float, y: float, ups: Sequence[int]) -> None:
    """Writes words at the right end of a horizontal line, above or below it (``ups``, in points):
    where they cover fewest points.
    """
    texts = [
        axes.annotate(
            words, (right, y), xytext=(0, up), textcoords="offset points", ha="right", fontsize=8
        )
        for up in ups
    ]
    drawn = _drawn(axes)
    covered = [_inside(drawn, text.get_window_extent()) for text in texts]
    for place, text in enumerate(texts):
        if place != covered.index(min(covered)):
            text.remove()


def _drawn(axes: Axes) -> FloatArray:
    """The positions of the points in pixels; the axes must have their limits."""
    return np.concatenate(
        [axes.transData.transform(np.asarray(dots.get_offsets())) for dots in axes.collections]
    )


def _inside(drawn: FloatArray, box: Bbox) -> int:
    """How many points a text covers."""
    return int(np.count_nonzero(((drawn >= box.min) & (drawn <= box.max)).all(axis=1)))
