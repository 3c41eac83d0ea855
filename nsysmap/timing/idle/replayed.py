"""Divides the time of the replay without the profiler: GPU work, and idle time by the cause that it
has in the trace.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.intervals import covered, holes
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import REPLAYED_TIMES
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.timing.idle.causes import CAUSES, DISPATCH, PROFILER

_DISPATCH_NS = 1_600
"""The hardware takes up to this long between two pieces of queued GPU work (see timing.idle): a
shorter gap has no other cause.
"""
_WORK = "work"


@dataclass(frozen=True)
class Idle:
    """Disjoint idle intervals, in order, each with the number of its cause."""

    start_ns: IntArray
    end_ns: IntArray
    column: IntArray


def recorded_idle(gaps: Table, device: int, numbers: tuple[int, ...]) -> Idle:
    """The idle intervals of a device as recorded (GAPS); ``numbers`` are those of CAUSES."""
    rows = np.flatnonzero(gaps.ints("device") == device)
    rows = rows[np.argsort(gaps.ints("start_ns")[rows], kind="stable")]
    cause = gaps.text("cause")
    number = dict(zip(CAUSES, numbers, strict=True))
    of_code = np.array([*(number[one] for one in cause.values), number["unknown"]], np.int64)
    return Idle(gaps.ints("start_ns")[rows], gaps.ints("end_ns")[rows], of_code[cause.codes[rows]])


def replayed_idle(work: Table, recorded: Idle, *, dispatch: int, profiler: int) -> Idle:
    """The idle intervals of the replay (REPLAYED_WORK): short ones are dispatch, the others have
    the causes of the recorded interval before the same work, but for the profiler.  ``dispatch``
    and ``profiler`` are the numbers of these causes.
    """
    order = np.argsort(work.ints("start_ns"), kind="stable")
    start, end, was = (
        work.ints(name)[order] for name in ("start_ns", "end_ns", "recorded_start_ns")
    )
    between = holes(start, end)
    starts, stops, columns = [], [], []
    hole = (
        np.cumsum(np.concatenate([[True], recorded.start_ns[1:] != recorded.end_ns[:-1]]))
        if len(recorded.start_ns)
        else np.zeros(0)
    )
    last = np.searchsorted(recorded.end_ns, was[between.after])
    for left, right, moment, place in zip(
        between.start_ns.tolist(),
        between.end_ns.tolist(),
        was[between.after].tolist(),
        last.tolist(),
        strict=True,
    ):
        parts: list[tuple[int, int]] = []
        if (
            right - left > _DISPATCH_NS
            and place < len(recorded.end_ns)
            and recorded.end_ns[place] == moment
        ):
            first = place
            while first > 0 and hole[first - 1] == hole[place]:
                first -= 1
            parts = [
                (int(recorded.column[row]), int(recorded.end_ns[row] - recorded.start_ns[row]))
                for row in range(first, place + 1)
                if recorded.column[row] != profiler
            ]
        whole = sum(length for _, length in parts)
        at, sofar = left, 0
        for column, length in parts if whole else [(dispatch, 1)]:
            sofar += length
            until = left + (right - left) * sofar // (whole or 1)
            starts.append(at)
            stops.append(until)
            columns.append(column)
            at = until
    return Idle(np.array(starts, np.int64), np.array(stops, np.int64), np.array(columns, np.int64))


def replayed_times(
    work: Table, replayed: Table, inferences: Table, gaps: Table, before_ns: int | None
) -> Table:
    """The table `replayed_times`, from REPLAYED_WORK, REPLAYED_INFERENCES, INFERENCES, GAPS and the
    time that what-if starts from.

    The mean over the replayed inferences, each with the weight of those that it represents; what no
    interval explains is unknown.
    """
    if not len(replayed) or before_ns is None:
        return Table.empty(REPLAYED_TIMES)
    own = np.searchsorted(inferences.ints("inference"), replayed.ints("inference"))
    device = int(inferences.ints("device")[own].max())
    idle = recorded_idle(gaps, device, tuple(range(len(CAUSES))))
    found = replayed_idle(work, idle, dispatch=DISPATCH, profiler=PROFILER)
    begin, end, weight = (
        replayed.ints("begin_ns"),
        replayed.ints("end_ns"),
        replayed.floats("weight"),
    )
    whole = float(weight @ (end - begin))

    def share(start_ns: IntArray, end_ns: IntArray) -> float:
        return float(weight @ covered(start_ns, end_ns, (begin, end))) / whole

    shares = {_WORK: share(work.ints("start_ns"), work.ints("end_ns"))}
    for number in np.unique(found.column).tolist():
        mine = found.column == number
        shares[CAUSES[number]] = share(found.start_ns[mine], found.end_ns[mine])
    shares["unknown"] = shares.get("unknown", 0.0) + 1 - sum(shares.values())
    times = {part: round(value * before_ns) for part, value in shares.items()}
    times[_WORK] += before_ns - sum(times.values())  # as rounded
    kept = [part for part, time_ns in times.items() if time_ns > 0 or part == _WORK]
    return Table.of_rows(
        REPLAYED_TIMES,
        [
            {
                "device": None if device == MISSING else device,
                "part": part,
                "time_ns": times[part],
                "share": times[part] / before_ns,
            }
            for part in sorted(kept, key=lambda one: (one != _WORK, -times[one]))
        ],
    )
