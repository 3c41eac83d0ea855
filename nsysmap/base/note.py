"""The few things that cross module borders by name rather than as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Note:
    """Something that the reader of a report must know."""

    level: Level
    text: str
