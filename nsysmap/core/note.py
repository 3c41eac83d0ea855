"""The few values that modules exchange as named objects rather than as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from nsysmap.core.records import dataclass
from nsysmap.core.report_schema import NOTES
from nsysmap.core.table import Table

Level = Literal["info", "warning", "error"]
About = Literal["selection", "nothing-recorded", "no-inference", "no-layer", "another-build"]
"""The part of a report that all figures cover; that CUDA was traced, and nothing came of it; that
no inference was found; that some kernels have no layer; that an engine file may be another build.
"""
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
"""The gravest first."""


@dataclass(frozen=True)
class Note:
    """Something that the reader of a report must know."""

    level: Level
    text: str
    brief: str | None = None  # what it says first, without reasons and remedies
    without_command: str | None = None  # the same without the command that captures again
    remedy: str | None = None  # what to do about it, in a few words, where no command does
    about: About | None = None  # what it is about, where other rooms ask for that


@dataclass(frozen=True)
class WhyUnknown:
    """Why a value is unknown, and the capture that would show it, if any."""

    why: str
    enough: str = ""  # how much of such a capture is enough
    command: str = ""

    @property
    def text(self) -> str:
        """The sentence and what to do about it, as one text."""
        if not self.command:
            return self.why
        enough = f"; {self.enough} would be enough" if self.enough else ""
        return f"{self.why}{enough}: {self.command}"


def notes_table(notes: Sequence[Note]) -> Table:
    """The table `notes`: errors first, otherwise in the given order."""
    return Table.of_rows(NOTES, [asdict(note) for note in gravest_first(notes)])


def gravest_first(notes: Sequence[Note]) -> list[Note]:
    """The notes, errors first, otherwise in the given order."""
    return sorted(notes, key=lambda note: LEVELS.index(note.level))
