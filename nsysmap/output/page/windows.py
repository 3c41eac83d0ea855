"""Chooses the parts of a trace that the page shows event by event: all of it, or the most telling
inferences of a long one.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import numbered
from nsysmap.core.intervals import union
from nsysmap.core.records import dataclass
from nsysmap.core.schema import Tables
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table

MOST_KERNELS = 150_000
"""Number of kernels up to which a page shows all of them."""

_SLOWEST = 8  # inferences that a page of a part of the trace shows event by event
_BINS = 2000  # of the strip of the whole trace: about the pixels of a screen


@dataclass(frozen=True)
class Windows:
    """Parts of the trace, in chronological order, without overlaps."""

    start_ns: IntArray
    end_ns: IntArray
    all: bool  # they are the whole trace
    inferences: BoolArray  # which inferences are in them

    def holds(self, start_ns: IntArray, end_ns: IntArray) -> BoolArray:
        """Whether each interval overlaps one of them."""
        if self.all:
            return np.ones(len(start_ns), np.bool_)
        at = np.searchsorted(self.end_ns, start_ns, side="right")
        begins = np.append(self.start_ns, np.iinfo(np.int64).max)
        result: BoolArray = begins[at] < np.maximum(end_ns, start_ns + 1)
        return result


def windows_of(tables: Tables, most: int = MOST_KERNELS) -> Windows:
    """The parts of the trace with at most about so many kernels. Of a

    longer trace: the first inferences, the slowest of each group and those nearest its median,
    where findings begin, the last; then others, spread evenly.  Without inferences: where the trace
    begins.
    """
    kernels, inferences = tables.kernels, tables.inferences
    starts, ends = inferences.ints("start_ns"), inferences.ints("end_ns")
    if len(kernels) <= most:
        return Windows(
            np.array([MISSING]), np.array([-MISSING - 1]), True, np.ones(len(inferences), np.bool_)
        )
    if len(inferences) == 0:
        begin, cut = int(kernels.ints("start_ns")[0]), int(kernels.ints("start_ns")[most])
        return Windows(np.array([begin]), np.array([cut]), False, np.zeros(0, np.bool_))
    chosen: list[int] = []
    taken = np.zeros(len(inferences), np.bool_)
    left = most
    for one in _in_turn(tables):
        count = int(
            np.searchsorted(kernels.ints("start_ns"), ends[one])
            - np.searchsorted(kernels.ints("start_ns"), starts[one])
        )
        if not taken[one] and count <= left:
            taken[one] = True
            left -= count
            chosen.append(one)
    rows = np.array(sorted(chosen), np.int64)
    begins, stops = union(starts[rows], ends[rows])
    inside = np.searchsorted(stops, starts, side="left")
    whole = (
        (inside < len(stops))
        & (np.append(begins, 0)[inside] <= starts)
        & (np.append(stops, 0)[inside] >= ends)
    )
    return Windows(begins, stops, False, whole)


def _in_turn(tables: Tables) -> list[int]:
    """All inferences, the most telling first."""
    inferences, times = tables.inferences, tables.inference_times
    count = len(inferences)
    first = [0, 1, 2, count - 1]
    spread: list[int] = []
    group, ratio = times.ints("group_id"), times.floats("times_median")
    for one in np.unique(group):
        mine = np.flatnonzero((group == one) & ~np.isnan(ratio))
        slow = mine[np.argsort(-ratio[mine], kind="stable")][:_SLOWEST]
        typical = mine[np.argsort(np.abs(ratio[mine] - 1), kind="stable")][:2]
        first += times.ints("inference")[np.concatenate([slow, typical])].tolist()
    starts = inferences.ints("start_ns")
    first += (np.searchsorted(starts, tables.findings.ints("start_ns"), side="right") - 1).tolist()
    step = count
    while step > 1:  # every half, every quarter, …
        step //= 2
        spread += range(step, count, 2 * step)
    spread += range(count)
    return [one for one in first if 0 <= one < count] + spread


def left_out(work: Table, lane: IntArray, windows: Windows) -> dict[str, IntArray]:
    """GPU work that a page does not show individually: number of pieces and total time, by lane and
    time bin.
    """
    rows = np.flatnonzero(~windows.holds(work.ints("start_ns"), work.ints("end_ns")))
    start, end = work.ints("start_ns")[rows], work.ints("end_ns")[rows]
    if len(rows) == 0:
        return {name: np.zeros(0, np.int64) for name in ("start", "dur", "lane", "count", "busy")}
    width = max(1, -(-int(end.max() - start.min()) // _BINS))
    between = np.searchsorted(windows.start_ns, start)  # a bin ends where a window begins
    (lanes, _, _), number = numbered(lane[rows], (start - start.min()) // width, between)
    size = len(lanes)
    least, most = np.full(size, np.iinfo(np.int64).max), np.full(size, MISSING)
    np.minimum.at(least, number, start)
    np.maximum.at(most, number, end)
    busy = np.zeros(size, np.int64)
    np.add.at(busy, number, end - start)
    return {
        "start": least,
        "dur": most - least,
        "lane": lanes,
        "count": np.bincount(number, minlength=size).astype(np.int64),
        "busy": busy,
    }
