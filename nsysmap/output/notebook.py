"""The answer as an HTML fragment, which a notebook shows for an analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nsysmap.answer import words
from nsysmap.answer.costs import cost_rows, costs_heading
from nsysmap.answer.model import Answer
from nsysmap.answer.whose import engine_names
from nsysmap.output.answers import AnswerRow, above_actions, below_actions, do_first
from nsysmap.text.page import Section
from nsysmap.text.page_html import HtmlLook, block_html, folded_html, inert
from nsysmap.text.units import percent, rounded

_MOST = 5  # layers or kernels
_FIGURE = ' style="text-align:right;vertical-align:top;white-space:nowrap"'
_HEAD = ' style="text-align:left;vertical-align:top;white-space:nowrap"'
# a column is at least as wide as its longest word
_WORDS = ' style="text-align:left;vertical-align:top;overflow-wrap:break-word"'
_CELL = ' style="text-align:left;vertical-align:top;overflow-wrap:anywhere"'

_MOST_ROWS = 20  # of a table in a section
_LOOK = HtmlLook(
    left=' style="text-align:left"', right=' style="text-align:right"', most=_MOST_ROWS
)


def notebook_html(summary: Answer, sections: Iterable[Section] = ()) -> str:
    """The sentences of the first screen as one table, and the sections below it, closed until they
    are opened; without style sheets and scripts.
    """
    rows = "".join(
        f"<tr><th{_HEAD}>{inert(head)}</th><td{_CELL}>{body}</td></tr>"
        for head, body in _rows(summary)
        if body
    )
    below = "".join(folded_html(section, _LOOK) for section in sections)
    head = f"<p><b>{inert(words.title(summary))}</b></p>"
    return f"{head}<table>{rows}</table>{_costliest(summary)}{below}"


def _rows(summary: Answer) -> Iterator[tuple[str, str]]:
    if summary.selected:
        yield "part", inert(summary.selected)
    for text in summary.blocked:
        yield "error", f"<b>{inert(text)}</b>"
    yield from _answers(above_actions(summary))
    yield "do first", "".join(block_html(block, _LOOK) for block in do_first(summary))
    yield from _answers(below_actions(summary, " (skipped lists them)"))


def _answers(answers: Iterable[AnswerRow]) -> Iterator[tuple[str, str]]:
    """Those with the same word, or with none, beside each other in one row."""
    rows: list[tuple[str, list[str]]] = []
    for one in answers:
        if not rows or one.word not in ("", rows[-1][0]):
            rows.append((one.word, []))
        rows[-1][1].extend(one.texts)
    for word, texts in rows:
        yield word, "<br>".join(map(inert, texts))


def _costliest(summary: Answer) -> str:
    """The table of the layers that cost most; of the kernels where no layer is known."""
    found = cost_rows(summary)[:_MOST]
    if found:
        names = engine_names(summary)
        engine = "engine" if len(names) > 1 else None
        heads = ("share", "time", "layers", "kind", engine, costs_heading(summary))
        of = ["–" if one.engine is None else names[one.engine] for one in found]
        many = ["–" if one.layers is None else str(one.layers) for one in found]
        rows: list[tuple[str | None, ...]] = [
            (
                *(percent(one.share, 1), rounded(one.time_ns), count, one.what),
                *(name if engine else None, one.name, one.group.name if one.group else None),
            )
            for one, name, count in zip(found, of, many, strict=True)
        ]
        return _table(heads, rows)
    kernels = summary.kernels[:_MOST]
    rows = [
        (
            percent(one.share_of_kernel_time, 1),
            rounded(one.time_ns),
            f"{one.kernels:,}",
            one.what,
            None,
            one.name,
        )
        for one in kernels
    ]
    return (
        _table(
            ("share", "total", "count", "costliest kernels over the whole trace", None, "name"),
            rows,
        )
        if rows
        else ""
    )


def _table(heads: Sequence[str | None], rows: Sequence[Sequence[str | None]]) -> str:
    """A table without the columns whose head is None; the first three are figures.  What a row has
    beyond them is the tooltip of its last cell.
    """
    styles = [_FIGURE] * 3 + [_WORDS] * (len(heads) - 4) + [_CELL]
    lines = []
    for row in rows:
        tips = [""] * (len(heads) - 1) + [
            f' title="{inert(tip)}"' if (tip := "".join(filter(None, row[len(heads) :]))) else ""
        ]
        cells = zip(styles, tips, row[: len(heads)], strict=True)
        lines.append(
            "".join(
                f"<td{style}{tip}>{inert(cell)}</td>"
                for style, tip, cell in cells
                if cell is not None
            )
        )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    head = "".join(f"<th{_HEAD}>{inert(head)}</th>" for head in heads if head is not None)
    return f"<table><tr>{head}</tr>{body}</table>"
