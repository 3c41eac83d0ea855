"""Lays out the output of `nsysmap what-if`: before, after and saving of each change, and the
assumptions behind the figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.answer.model import INFERENCE
from nsysmap.core.table import Row, Table
from nsysmap.text.lines import folded, rendered, table
from nsysmap.text.terminal import escaped
from nsysmap.text.units import told_change, unit_words

WIDTH = 80  # columns
_COLUMNS = ("before", "after", "saving", "from", "to")
_UNANSWERED = (("does-not-apply", "Does not apply"), ("cannot-tell", "Cannot tell"))


def whatif_text(answers: Table, source: str, one: str = INFERENCE) -> str:
    """The answers as text: one line per change, what does not apply or cannot be determined and
    why, then the assumptions.

    ``one`` is the word for what is repeated.
    """
    rows = list(answers)
    told = [row for row in rows if row.text("answer") == "answered"]
    unit = unit_words(
        next((count for row in rows if (count := row.maybe_integer("inferences"))), 1), one
    )
    lines = []
    if told:
        lines += [f"{source}: wall time per {unit} without the profiler, µs", ""]
        cells = [(row.text("change"), *change_figures(row)) for row in told]
        lines += rendered(
            table(("change", *_COLUMNS), cells, WIDTH, "lrrrrr"), colour=False
        ).splitlines()
    for heading, reasons in unanswered(rows):
        if (
            not told and len(reasons) == 1 and len(next(iter(reasons.values()))) == len(rows) > 1
        ):  # said once, not for each change
            return "\n".join(
                map(
                    escaped,
                    _wrapped(
                        f"{source}: {heading.lower()} what any change would save:"
                        f" {next(iter(reasons))}",
                        "  ",
                    ),
                )
            )
        lines += ["", f"{heading}:"]
        for reason, changes in reasons.items():
            lines.extend(_wrapped(f"  {', '.join(changes)}: {reason}", "    "))
    common, own = assumptions([(row.text("change"), row.text("assumptions")) for row in told])
    if common:
        lines.extend(["", *_wrapped(common, "")])
    for change, text in own:
        lines.extend(["", *_wrapped(f"{change}: {text}", "  ")])
    return "\n".join(escaped(line) for line in lines)


def change_figures(row: Row) -> tuple[str, str, str, str, str]:
    """Before, after, saving and its range of an answered change, in microseconds."""
    return told_change(
        *(
            row.integer(name)
            for name in ("before_ns", "saving_ns", "low_saving_ns", "high_saving_ns")
        )
    )


def whatif_json(answers: Table) -> dict[str, object]:
    """The same as one JSON object: ``whatif``, one item per change, times in nanoseconds."""
    return {"whatif": answers.records()}


def unanswered(rows: Sequence[Row]) -> list[tuple[str, dict[str, list[str]]]]:
    """The changes without a saving, by answer and reason."""
    found = []
    for answer, heading in _UNANSWERED:
        reasons: dict[str, list[str]] = {}
        for row in rows:
            if row.text("answer") == answer:
                reasons.setdefault(row.maybe_text("reason") or "", []).append(row.text("change"))
        if reasons:
            found.append((heading, reasons))
    return found


def assumptions(told: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """The assumptions common to all changes, and those of each change."""
    common = _common([text for _, text in told])
    return common, [
        (change, rest) for change, text in told if (rest := text[len(common) :].strip())
    ]


def _common(texts: list[str]) -> str:
    """The sentences with which all texts (two or more) begin."""
    if len(texts) < 2:
        return ""
    # what these two have in common, all texts between them have too
    first, last = (
        min(texts),
        max(texts),
    )
    same = next(
        (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b),
        min(len(first), len(last)),
    )
    return first[: first.rfind(". ", 0, same) + 1]


def _wrapped(text: str, indent: str) -> list[str]:
    return folded(text, WIDTH, later=indent)
