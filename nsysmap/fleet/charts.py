"""The charts of a fleet's page, each the picture of one question: how groups differ, how nights
differ, which reports have outliers, why GPUs were idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsysmap.core.idle_causes import idle_words
from nsysmap.core.records import dataclass
from nsysmap.output.picture.swatches import CAUSES
from nsysmap.text.page_html import inert

_MARK = "#566bcb"
_WIDE, _TALL = 100.0, 100.0  # of a row's picture, which is stretched over its cell
_ROOM = 0.04  # of the axis, at its ends


@dataclass(frozen=True)
class Mark:
    """One mark: a report or an inference, or a part of a bar."""

    at: float  # along the axis
    words: str
    until: float | None = None  # where a bar ends
    high: float | None = None  # across the axis, of marks that are not all on one line
    cause: str = ""  # of idle time, which gives its colour


@dataclass(frozen=True)
class ChartRow:
    """The marks of one row: its name on the left, and a figure on the right."""

    name: str
    figure: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Chart:
    """A question, and its picture: rows to one scale."""

    question: str
    axis: str  # what it is
    begin: str
    end: str
    low: float
    high: float
    rows: tuple[ChartRow, ...]
    line: float | None = None  # a limit that is drawn
    across: tuple[float, float] | None = None  # the scale across, of marks not on one line
    beyond: int = 0  # rows that are not drawn


def scale_of(values: Sequence[float], *, least: float | None = None) -> tuple[float, float]:
    """The ends of an axis on which these values lie, with some room."""
    low, high = min(values), max(values)
    low = low if least is None else min(low, least)
    room = (high - low) * _ROOM or abs(high) * _ROOM or 1.0
    return low - room, high + room


def chart_html(chart: Chart) -> str:
    """The chart as a table whose middle column is pictures."""
    return "".join(_lines(chart))


def _lines(chart: Chart) -> Iterator[str]:
    tall = " series" if chart.across else ""
    yield f'<figure class="chart{tall}"><figcaption>{inert(chart.question)}</figcaption><table>'
    for row in chart.rows:
        drawn = "".join(_marks(chart, row))
        yield (
            f'<tr><th scope="row" title="{inert(row.name)}">{inert(row.name)}</th>'
            f'<td class="drawn"><svg viewBox="0 0 {_WIDE:.0f} {_TALL:.0f}"'
            f' preserveAspectRatio="none" role="img" aria-label="{inert(row.name)}:'
            f' {inert(row.figure)}">{drawn}</svg></td><td class="r">{inert(row.figure)}</td></tr>'
        )
    ends = f"<span>{inert(chart.begin)}</span><span>{inert(chart.end)}</span>"
    yield f'<tr class="ends"><td></td><td class="drawn"><div>{ends}</div></td><td></td></tr>'
    more = f"; {chart.beyond:,} more rows are in the table" if chart.beyond else ""
    yield "</table>"
    causes = dict.fromkeys(mark.cause for row in chart.rows for mark in row.marks if mark.cause)
    if causes:
        keys = "".join(
            '<span><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12"'
            f' fill="{CAUSES[cause]}"/></svg> {inert(idle_words(cause))}</span>'
            for cause in causes
        )
        yield f'<p class="legend">{keys}</p>'
    yield f'<p class="note">{inert(chart.axis)}{more}</p></figure>'


def _marks(chart: Chart, row: ChartRow) -> Iterator[str]:
    def along(value: float) -> float:
        return _WIDE * (value - chart.low) / (chart.high - chart.low)

    if chart.line is not None:
        yield (
            f'<rect class="limit" x="{along(chart.line):.2f}" y="0" width="0.3"'
            f' height="{_TALL:.0f}"/>'
        )
    for mark in row.marks:
        left, top, tall, wide = along(mark.at), 20.0, 60.0, 0.7
        if mark.until is not None:
            wide = max(along(mark.until) - left, 0.3)
        else:
            left -= wide / 2
        if chart.across is not None and mark.high is not None:
            low, high = chart.across
            top, tall = (_TALL - 7) * (1 - (mark.high - low) / (high - low)), 7.0
        fill = CAUSES.get(mark.cause, _MARK)
        yield (
            f'<rect x="{left:.2f}" y="{top:.1f}" width="{wide:.2f}" height="{tall:.1f}"'
            f' fill="{fill}"><title>{inert(mark.words)}</title></rect>'
        )
