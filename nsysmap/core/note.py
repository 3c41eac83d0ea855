"""The few values that modules exchange as named objects rather than as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nsysmap.core.report_schema import NOTES
from nsysmap.core.table import Table

Level = Literal["info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
"""The gravest first."""
SELECTED = "Selected: "
"""The beginning of the note that says which part of a report all figures cover."""


@dataclass(frozen=True)
class Note:
    """Something that the reader of a report must know."""

    level: Level
    text: str


def notes_table(notes: Sequence[Note]) -> Table:
    """The table `notes`: errors first, otherwise in the given order."""
    return Table.of_rows(
        NOTES, [{"level": note.level, "text": note.text} for note in gravest_first(notes)]
    )


def gravest_first(notes: Sequence[Note]) -> list[Note]:
    """The notes, errors first, otherwise in the given order."""
    return sorted(notes, key=lambda note: LEVELS.index(note.level))
