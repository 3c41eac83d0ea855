"""Sorts slices into tracks in which none crosses another; a slice that would cross goes to another
track.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nsysmap.core.table import IntArray

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


def changes(at: IntArray, amount: IntArray, *, before: int = 0) -> tuple[IntArray, IntArray]:
    """The values of a counter from its changes, sorted by time: when it changed, and what to: the
    last value of that moment. ``before`` is its value until then.
    """
    value = before + np.cumsum(amount)
    last = np.flatnonzero(np.append(at[1:] != at[:-1], True)) if len(at) else np.empty(0, np.int64)
    changed = last[np.diff(value[last], prepend=before) != 0]
    return at[changed], value[changed]
