"""How much the host was held up while it enqueued inferences: by other programs, a slow clock, or the system; not by the GPU or nsys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.groups import by_first_row, rows_by_value
from nsysmap.base.intervals import covered
from nsysmap.base.table import MISSING, FloatArray, IntArray, Table
from nsysmap.trace.steady import SHORTEST_PHASE, in_loops

HELD_UP = 1.25
"""Times the median, from which on an inference was held up; clocks that ramp up make steps up to 1.21 times as long (see steady)."""

DISTURBED = 0.05
"""Share of the steady time that inferences were held up for, from which on the host was disturbed.  Forty-five captures of programs that
ran alone have up to 0.043; six have 0.057 to 0.10, and their slow inferences come in a row."""


@dataclass(frozen=True)
class HostDisturbance:
    """What one loop (the inferences that one thread enqueues for one device) lost to a host that was held up."""

    loop: int  # number of the loop (see steady.in_loops)
    inferences: int  # that were compared
    slow: IntArray  # numbers of those that the host was held up in, in order of time
    excess_ns: int  # by which these took longer than the median of their kind
    share: float  # that is of the time of all that were compared
    longest: float  # times the median that the slowest of them took

    @property
    def disturbed(self) -> bool:
        """Whether that is so much that it changes what a run takes."""
        return self.share >= DISTURBED


@dataclass(frozen=True)
class HeldUpTimes:
    """What held each inference up, one entry per row of INFERENCES; nothing where no others are alike, or it is not steady."""

    by_host_ns: IntArray  # by which the host took longer than usual to enqueue it, of those that took long for that
    by_nsys_ns: IntArray  # that nsys held a thread up in its time
    ratio: FloatArray  # its time without nsys's, divided by the median of those with the same kernels; 0 if it was not compared


def host_disturbances(inferences: Table, overheads: Table) -> list[HostDisturbance]:
    """One for each loop with enough steady inferences (see `held_up`)."""
    loops = in_loops(inferences)
    times = held_up(inferences, overheads)
    found = []
    for loop, of_loop in rows_by_value(loops.loop):
        rows = of_loop[times.ratio[of_loop] > 0]
        if len(rows):
            slow = rows[times.by_host_ns[rows] > 0]
            slow = slow[np.argsort(loops.end_ns[slow], kind="stable")]
            whole, lost = int(loops.time_ns[rows].sum()), int(times.by_host_ns[slow].sum())
            numbers, longest = inferences.ints("inference")[slow], float(times.ratio[slow].max(initial=0.0))
            found.append(HostDisturbance(loop, len(rows), numbers, lost, lost / max(whole, 1), longest))
    return found


def held_up(inferences: Table, overheads: Table) -> HeldUpTimes:
    """What held the steady inferences up.

    The host did where one took longer than its like while the host took longer to enqueue it; what the GPU worked longer, and what nsys
    did, is no part of that.  Inferences of a loop are alike that launch the same kernels.
    """
    loops = in_loops(inferences)
    steady = inferences.bools("complete") & ~inferences.bools("warmup") & (loops.time_ns != MISSING)
    for name in ("enqueue_ns", "gpu_busy_ns"):
        steady &= inferences.ints(name) != MISSING
    start, end = inferences.ints("enqueue_start_ns"), inferences.ints("enqueue_end_ns")
    by_nsys, enqueued_by_nsys = (
        covered(overheads.ints("start_ns"), overheads.ints("end_ns"), within)
        for within in ((loops.end_ns - np.maximum(loops.time_ns, 0), loops.end_ns), (start, end))
    )
    time, enqueue = loops.time_ns - by_nsys, inferences.ints("enqueue_ns") - enqueued_by_nsys
    kind = by_first_row(loops.loop, inferences.ints("engine"), inferences.ints("kernel_sequence"))
    excess, ratio = np.zeros(len(inferences), np.int64), np.zeros(len(inferences))
    for _, alike in rows_by_value(kind):
        rows = alike[steady[alike]]
        if len(rows) < SHORTEST_PHASE:
            continue
        longer = [values[rows] - np.median(values[rows]) for values in (time, enqueue, inferences.ints("gpu_busy_ns"))]
        by_host = np.minimum(longer[0] - np.maximum(longer[2], 0), longer[1])
        ratio[rows] = np.maximum(time[rows], 1) / max(float(np.median(time[rows])), 1.0)
        excess[rows] = np.where(ratio[rows] >= HELD_UP, np.maximum(by_host, 0), 0).astype(np.int64)
    return HeldUpTimes(excess, np.where(steady, by_nsys, 0), ratio)
