"""The answer as an HTML fragment, which a notebook shows for an analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from nsysmap.base.terminal import escaped
from nsysmap.base.units import percent, rounded
from nsysmap.summary import gains, hardware, words
from nsysmap.summary.costs import cost_rows, costs_heading
from nsysmap.summary.model import Summary

_LAYERS = 5
_WHOLE = ' style="white-space:nowrap"'
_HEAD = ' style="text-align:left;vertical-align:top;white-space:nowrap"'
_CELL = ' style="text-align:left;vertical-align:top;overflow-wrap:anywhere"'


def notebook_html(summary: Summary) -> str:
    """The sentences of the first screen as one table, without style sheets and scripts."""
    rows = "".join(f"<tr><th{_HEAD}>{_text(head)}</th><td{_CELL}>{body}</td></tr>" for head, body in _rows(summary))
    return f"<p><b>{_text(words.title(summary))}</b></p><table>{rows}</table>{_layers(summary)}"


def _rows(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.selected:
        yield "part", _text(summary.selected)
    for text in summary.blocked:
        yield "error", f"<b>{_text(text)}</b>"
    for head, told in (
        ("time", [*words.times(summary), words.kinds(summary)]),
        ("GPU", words.where(summary)),
        ("counters", hardware.told(summary)),
        ("do first", []),
        ("slowest", [words.slowest(summary)]),
        ("how sure", [words.certainty(summary)]),
        ("unknown", [words.doubts(summary, " (skipped lists them)")]),
    ):
        body = _actions(summary) if head == "do first" else _lines([one for one in told if one])
        if body:
            yield head, body


def _actions(summary: Summary) -> str:
    shown = [
        f"{number}. {_text(gains.action_title(action))}: {_text(gains.gain(summary, action))}"
        + ("".join(map(_code, gains.ways(action))) or f"; {_text(action.change or '')}")
        for number, action in enumerate(gains.first_actions(summary), 1)
    ]
    steps = [f"{_text(step.why)}:{_code(step.command)}" for step in summary.next_steps]
    return "<br>".join([*shown, *steps]) or _text(gains.no_action(summary))


def _layers(summary: Summary) -> str:
    found = cost_rows(summary)
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{percent(cost.share, 1)}</td><td{_WHOLE}>{_text(rounded(cost.time_ns))}</td>"
        f"<td>{'–' if cost.layers is None else cost.layers}</td>"
        f"<td{_CELL}>{_text(cost.what)}</td><td{_CELL}>{_text(cost.name)}</td></tr>"
        for cost in found[:_LAYERS]
    )
    heads = "".join(f"<th{_HEAD}>{head}</th>" for head in ("share", "time", "layers", "kind", costs_heading(summary)))
    return f"<table><tr>{heads}</tr>{rows}</table>"


def _lines(texts: Sequence[str]) -> str:
    return "<br>".join(map(_text, texts))


def _code(text: str | None) -> str:
    return f"<br><code>{_text(text)}</code>" if text else ""


def _text(text: str) -> str:
    return escape(escaped(text))
