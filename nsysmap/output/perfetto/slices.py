"""Sorts slices into tracks in which none crosses another; a slice that would cross goes to another
track.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Slice = tuple[int, int]
"""Begin and end, in nanoseconds."""

Step = tuple[int, int, int]
"""The track, from 0; the time; and the number of the slice that begins, or -1 if the innermost open
slice ends.
"""


def steps(slices: Iterable[Slice]) -> Iterator[Step]:
    """The slices as steps on as many tracks as needed; those of one track are in chronological
    order.

    Slices must be sorted by begin, outer before inner ones that begin at the same time; they are
    numbered from 0.
    """
    tracks: list[list[int]] = []  # ends of the open slices, the outermost first
    for number, (start, end) in enumerate(slices):
        for track, open_until in enumerate(tracks):
            while open_until and open_until[-1] <= start:
                yield track, open_until.pop(), -1
            if not open_until or end <= open_until[-1]:
                break
        else:
            track, open_until = len(tracks), []
            tracks.append(open_until)
        open_until.append(end)
        yield track, start, number
    for track, open_until in enumerate(tracks):
        while open_until:
            yield track, open_until.pop(), -1


def changes(moments: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The values of a counter from its changes (time and amount, sorted): the last value at each
    time, if it changed.
    """
    value, told, at = 0, 0, None
    for moment, step in moments:
        if at is not None and moment != at and value != told:
            yield at, value
            told = value
        at = moment
        value += step
    if at is not None and value != told:
        yield at, value
