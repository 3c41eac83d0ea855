"""Renders decoded names for people and as JSON, and prints the reference entry of a code, a family
or a pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmap.names.decode import KernelName, Op, summary, tells_no_more
from nsysmap.names.in_lines import names_in
from nsysmap.text.lines import WHOLE, folded

if TYPE_CHECKING:
    from nsysmap.names.reference import Entry

_MARKS = {"confirmed": "", "aligned": "~", "likely": "~", "guess": "?", "none": "??"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_LABEL = 17  # columns of the words on the left
_NARROWEST = 40  # columns


def printable(text: str) -> str:
    """The text with every character escaped that a terminal might interpret."""
    return "".join(
        (
            c
            if c.isprintable()
            else (
                c.encode("unicode_escape").decode()
                if ord(c) < 0xD800 or ord(c) > 0xDFFF
                else f"\\u{ord(c):04x}"
            )
        )
        for c in text
    )


def names_json(decoded: KernelName) -> dict[str, object]:
    """Everything known about a name, as JSON values."""
    return {
        "name": decoded.name,
        "family": decoded.family,
        "kind": decoded.kind,
        "summary": summary(decoded),
        "generation": decoded.generation,
        "ops": [
            {"code": op.code, "op": op.op, "class": op.cls, "evidence": op.evidence}
            for op in decoded.ops
        ],
        "patterns": [
            {
                "name": pattern.name,
                "first": pattern.first,
                "last": pattern.last,
                "text": pattern.text,
                "evidence": pattern.evidence,
            }
            for pattern in decoded.patterns
        ],
        "fields": decoded.fields,
        "tensor_cores": decoded.tensor_cores,
        "pieces": list(decoded.pieces),
        "rest": decoded.rest,
    }


def names_text(decoded: KernelName, *, colour: bool, width: int = WHOLE) -> str:
    """A decoded name in lines of at most ``width`` columns: the name, what it is, its operations
    and patterns, what its fields mean.

    By default each of these is one line, whatever its length.
    """
    from nsysmap.names.families import FAMILY_ROWS
    from nsysmap.names.reference import field_words

    told = summary(decoded)
    entries = [("is", printable(told))]
    if tells_no_more(decoded):
        entries += [("family", row.text) for row in FAMILY_ROWS if row.name == decoded.family]
    if decoded.ops:
        entries.append(("ops", "  ".join(_op_word(op) for op in decoded.ops)))
    for pattern in decoded.patterns:
        span = (
            f"{pattern.first + 1}-{pattern.last + 1}"
            if pattern.last > pattern.first
            else f"{pattern.first + 1}"
        )
        entries.append(
            ("pattern", f"{pattern.name}{_MARKS[pattern.evidence]} (ops {span}): {pattern.text}")
        )
    entries += [
        (label, printable(value) + (f"  ({means})" if means else ""))
        for label, value, means in field_words(decoded)
    ]
    if decoded.generation:
        since = "10.9 or later" if decoded.generation == 4 else "10.8 or earlier"
        entries.append(("codes", f"{decoded.generation} letters: TensorRT {since}"))
    if decoded.kind == "kernel":
        entries.append(
            (
                "tensor cores",
                {"yes": "yes", "no": "no", "unknown": "unknown from the name"}[
                    decoded.tensor_cores
                ],
            )
        )
    if marks := _evidence(decoded):
        entries.append(("evidence", marks))
    if decoded.rest:
        entries.append(("rest", printable(decoded.rest) + "  (not understood)"))
    lines = [line for label, text in entries for line in _entry(label, text, width)]
    title = _wrap(printable(decoded.name), 0, width)
    if colour:
        title = [_BOLD + line + _RESET for line in title]
        lines = [_DIM + line[: _LABEL + 2] + _RESET + line[_LABEL + 2 :] for line in lines]
    return "\n".join([*title, *lines])


def explained_line(line: str) -> str:
    """The line with each name followed by its meaning in square brackets; a line without names is
    unchanged.
    """
    parts, at = [], 0
    for found in names_in(line):
        parts += [line[at : found.end], f" [{printable(summary(found.decoded))}]"]
        at = found.end
    return "".join([*parts, line[at:]])


def _op_word(op: Op) -> str:
    return (printable(op.code) if op.op == "unknown" else op.op) + _MARKS.get(op.evidence, "")


def _evidence(decoded: KernelName) -> str:
    """The meaning of the marks that this name has."""
    found = {
        _MARKS[evidence]
        for evidence in [op.evidence for op in decoded.ops]
        + [pattern.evidence for pattern in decoded.patterns]
    }
    words = {"~": "~ likely, not confirmed", "?": "? a guess", "??": "?? unknown"}
    return "; ".join(words[mark] for mark in ("~", "?", "??") if mark in found)


def _entry(label: str, text: str, width: int) -> list[str]:
    lines = _wrap(text, _LABEL + 2, width)
    return [f"  {label:<{_LABEL}}{lines[0].lstrip()}", *lines[1:]]


def _wrap(text: str, indent: int, width: int) -> list[str]:
    pad = " " * indent
    return (
        [pad + text]
        if width >= WHOLE
        else folded(text, max(width, _NARROWEST), first=pad, later=pad)
    )


def entry_text(entry: Entry, *, width: int = WHOLE) -> str:
    """One entry of the reference as text."""
    lines = [printable(entry.title)]
    for label, text in (
        ("is", entry.text),
        ("evidence", entry.evidence),
        ("source", entry.source),
        ("example", entry.example),
    ):
        if text:
            lines += _entry(label, printable(text), width)
    return "\n".join(lines)
