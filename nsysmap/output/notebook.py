"""The answer as an HTML fragment, which a notebook shows for an analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from nsysmap.answer import gains, hardware, next_steps, words
from nsysmap.answer.costs import cost_rows, costs_heading
from nsysmap.answer.model import Action, Summary
from nsysmap.answer.whose import engine_names
from nsysmap.text.terminal import escaped
from nsysmap.text.units import percent, rounded

_MOST = 5  # layers or kernels
_FIGURE = ' style="text-align:right;vertical-align:top;white-space:nowrap"'
_HEAD = ' style="text-align:left;vertical-align:top;white-space:nowrap"'
# a column is at least as wide as its longest word
_WORDS = ' style="text-align:left;vertical-align:top;overflow-wrap:break-word"'
_CELL = ' style="text-align:left;vertical-align:top;overflow-wrap:anywhere"'


def notebook_html(summary: Summary) -> str:
    """The sentences of the first screen as one table, without style sheets and scripts."""
    rows = "".join(
        f"<tr><th{_HEAD}>{_text(head)}</th><td{_CELL}>{body}</td></tr>"
        for head, body in _rows(summary)
        if body
    )
    return f"<p><b>{_text(words.title(summary))}</b></p><table>{rows}</table>{_costliest(summary)}"


def _rows(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.selected:
        yield "part", _text(summary.selected)
    for text in summary.blocked:
        yield "error", f"<b>{_text(text)}</b>"
    first = gains.first_actions(summary)
    shorter = [
        _action(summary, one, f"{number}. ")
        for number, one in enumerate([one for one in first if not one.throughput_only], 1)
    ]
    steps = [f"{_text(step.why)}:{_code(step.command)}" for step in summary.next_steps]
    for head, told in (
        ("doubt", [words.first_doubt(summary)]),
        ("time", [*words.times(summary), words.kinds(summary)]),
        ("GPU", words.where(summary)),
        ("counters", hardware.told(summary)),
    ):
        yield head, _lines(told)
    yield "do first", "<br>".join([*shorter, *steps]) or _text(gains.no_action(summary))
    yield "throughput", "<br>".join(_action(summary, one) for one in first if one.throughput_only)
    for head, text in (
        ("not fused", words.not_fused(summary) if summary.rules else ""),
        ("slowest", words.slowest(summary)),
        ("how sure", words.certainty(summary)),
        ("unknown", next_steps.doubts(summary, " (skipped lists them)")),
    ):
        yield head, _lines([text])


def _action(summary: Summary, action: Action, number: str = "") -> str:
    told = f"{number}{_text(gains.action_title(action))}: {_text(gains.gain(summary, action))}"
    return told + ("".join(map(_code, gains.ways(action))) or f"; {_text(action.change or '')}")


def _costliest(summary: Summary) -> str:
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
            f' title="{_text(tip)}"' if (tip := "".join(filter(None, row[len(heads) :]))) else ""
        ]
        cells = zip(styles, tips, row[: len(heads)], strict=True)
        lines.append(
            "".join(
                f"<td{style}{tip}>{_text(cell)}</td>"
                for style, tip, cell in cells
                if cell is not None
            )
        )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{''.join(f'<th{_HEAD}>{_text(head)}</th>' for head in heads if head is not None)}</tr>{body}</table>"  # noqa: E501


def _lines(texts: Sequence[str]) -> str:
    return "<br>".join(_text(text) for text in texts if text)


def _code(text: str | None) -> str:
    return f"<br><code>{_text(text)}</code>" if text else ""


def _text(text: str) -> str:
    return escape(escaped(text))
