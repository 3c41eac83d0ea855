"""Slices of one track, none of which crosses another: what crosses goes to a further track."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Slice = tuple[int, int, int]
"""When it begins and ends, in ns, and its number."""

Step = tuple[int, int]
"""When, and the number of the slice that begins; -1: the last that began ends."""


@dataclass(frozen=True)
class Row:
    """One track: its steps in the order of time."""

    steps: list[Step]
    open_until: list[int]


def rows(slices: Iterable[Slice]) -> list[list[Step]]:
    """The slices as steps of as many tracks as needed; they must be sorted by begin, of those that begin together the outer first."""
    found: list[Row] = []
    for start, end, number in slices:
        row = next((one for one in found if _fits(one, start, end)), None)
        if row is None:
            row = Row([], [])
            found.append(row)
        row.steps.append((start, number))
        row.open_until.append(end)
    for row in found:
        _close(row, None)
    return [row.steps for row in found]


def _fits(row: Row, start: int, end: int) -> bool:
    """Whether the slice lies beside or within the row's last one; what ends before it is ended."""
    _close(row, start)
    return not row.open_until or end <= row.open_until[-1]


def _close(row: Row, until: int | None) -> None:
    while row.open_until and (until is None or row.open_until[-1] <= until):
        row.steps.append((row.open_until.pop(), -1))


def changes(moments: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The values of a counter from its changes (when, by how much, sorted): the last value of each moment, where it differs."""
    value, told, at = 0, 0, None
    for moment, step in moments:
        if at is not None and moment != at and value != told:
            yield at, value
            told = value
        at = moment
        value += step
    if at is not None and value != told:
        yield at, value
