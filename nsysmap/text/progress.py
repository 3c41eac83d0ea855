"""The progress of a command: a text for the current step, and the part that is done.

Whoever asked for progress is called with text, as the Python API promises; this text carries the
share beside its words, so that nobody reads a number out of them again.
"""

from __future__ import annotations


class PartDone(str):
    """A partly finished step: its text, its name, and the finished share."""

    __slots__ = ("share", "step")

    step: str
    share: float | None  # None where nothing is known of the whole

    def __new__(cls, step: str, text: str, done: int, whole: int) -> PartDone:
        """``text`` says of a step that so much of a whole is done."""
        made = super().__new__(cls, text)
        made.step = step
        made.share = min(done / whole, 1.0) if whole > 0 else None
        return made


def percent_done(step: str, percent: int) -> PartDone:
    """A step of which so many percent are done."""
    return PartDone(step, f"{step}: {percent} %", percent, 100)


def step_of(text: str) -> str:
    """The step that a text is about."""
    return text.step if isinstance(text, PartDone) else text


def share_of(text: str) -> float | None:
    """How much of the step is done; None where the text does not say it."""
    return text.share if isinstance(text, PartDone) else None
