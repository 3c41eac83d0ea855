"""The time per inference before and after each change of what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmap.analysis import Analysis
from nsysmap.core.changes import CHANGES
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import Row
from nsysmap.output.plots.shares import BUSY
from nsysmap.output.words import change_words
from nsysmap.text.units import ranged, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BEFORE = "#aeb6bf"
_CLEAR = {"facecolor": "white", "linewidth": 0, "pad": 1}


def draw_changes(axes: Axes, analysis: Analysis) -> str:
    """Draws the time before and after each change that was replayed, with the ranges; returns the
    title.

    Raises NsysmapError if no change could be replayed.
    """
    rows = [row for row in analysis.tables.whatif if row.text("answer") == "answered"]
    if not rows:
        reason = next(
            (
                row.maybe_text("reason")
                for row in analysis.tables.whatif
                if row.text("answer") == "cannot-tell"
            ),
            None,
        )
        raise NsysmapError(
            analysis.source,
            f"cannot be replayed: {reason or 'no change applies'}",
            "nsysmap what-if gives the reason for each change",
        )
    rows.sort(key=lambda row: -row.integer("saving_ns"))
    first = rows[0]
    bars = [
        (
            "unchanged",
            first.integer("before_ns"),
            first.integer("low_before_ns"),
            first.integer("high_before_ns"),
            _BEFORE,
        )
    ]
    bars += [
        (
            change_words(row.text("change"), analysis.summary)
            + ("\nthroughput, not latency" if CHANGES[row.text("change")].throughput_only else ""),
            row.integer("after_ns"),
            row.integer("low_after_ns"),
            row.integer("high_after_ns"),
            BUSY,
        )
        for row in rows
    ]
    for place, (_, middle, low, high, fill) in enumerate(bars):
        axes.barh(place, middle / 1e3, color=fill, height=0.6)
        axes.plot(
            [low / 1e3, high / 1e3],
            [place, place],
            color="#1a1d21",
            linewidth=1.2,
            marker="|",
            markersize=8,
        )
        axes.annotate(
            f"{rounded(middle)}{_saved(rows[place - 1]) if place else ''}",
            (max(high, middle) / 1e3, place),
            xytext=(6, -3),
            textcoords="offset points",
            fontsize=8,
            bbox=_CLEAR,
        )
    axes.axvline(first.integer("before_ns") / 1e3, color=_BEFORE, linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(bars)), [words for words, *_ in bars], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, max(high for _, _, _, high, _ in bars) / 1e3 * 1.35)
    per = analysis.summary.unit
    axes.set_xlabel(
        f"predicted µs per {per}, without the profiler\nlines: where a measurement is expected"
    )
    return "What each change would bring"


def _saved(row: Row) -> str:
    saving, low, high = (row.integer(f"{end}saving_ns") for end in ("", "low_", "high_"))
    return f", saves {ranged(saving, low, high)}" if saving > 0 else ""
