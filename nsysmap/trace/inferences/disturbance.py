"""How much the host was held up while it enqueued inferences: by other programs, a slow clock, or
the system; not by the GPU or nsys.
"""

from __future__ import annotations

import re

import numpy as np

from nsysmap.core.groups import by_first_row, rows_by_value
from nsysmap.core.intervals import covered
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, IntArray, Table
from nsysmap.trace.inferences.steady import SHORTEST_PHASE, in_loops

HELD_UP = 1.25
"""Times the median, from which on an inference was held up; clocks that ramp up make steps up to
1.21 times as long (see steady).
"""

DISTURBED = 0.05
"""Share of the steady time that inferences were held up for, from which on the host was disturbed:
39 of 45 captures have up to 0.043, the others 0.057 to 0.10, their slow inferences in a row; of 114
captures made after that was chosen, ten have more.
"""

_FEWEST = 3  # inferences held up, of a host that was disturbed: one or two are outliers


SLOWED = 1.2
"""Times the fastest of a thread's quickest calls, from which on their median shows a host that is
slowed down throughout, as by other work on its processor.  Without the profiler 13 programs that
mostly wait for the host took 1 / 1.0 to 1 / 1.9 of their recorded time where it was less, 9 took 1
/ 1.8 to 1 / 4.8 where it was more (engines of TensorRT for RTX on an H200).
"""

_UNEQUAL_KINDS = (
    "launch", "graph-launch", "sync", "copy", "memset", "alloc", "free", "host-register",
    "module-load", "graph-build",
)  # fmt: skip
"""Kinds of calls that launch or wait, or whose work depends on what they are given."""
_LOOKS_UP = re.compile(r"Get(Function|ProcAddress|Func|Attribute|Symbol|Properties)")
"""Calls that find something by name or number, the sooner the sooner it stands in a list."""
_OFTEN = 200  # calls of a function, whose fastest twentieth is then ten


@dataclass(frozen=True)
class HostDisturbance:
    """What one loop (the inferences that one thread enqueues for one device) lost because the host
    was held up.
    """

    loop: int  # number of the loop (see steady.in_loops)
    inferences: int  # that were compared
    slow: IntArray  # numbers of those that the host was held up in, in order of time
    excess_ns: int  # by which these took longer than the median of their kind
    share: float  # that is of the time of all that were compared
    longest: float  # times the median that the slowest of them took


@dataclass(frozen=True)
class SlowCalls:
    """How long a thread's quickest calls mostly took beside the quickest of them: they do the same
    every time.
    """

    api: str
    calls: int
    slowdown: float  # their median, divided by their fastest twentieth


def slow_calls(calls: Table, thread: int, within: tuple[int, int]) -> SlowCalls | None:
    """How slow the calls of one function are: of the functions that the thread called often within
    these times, with the same work each time, the one with the shortest calls; None if there is
    none.
    """
    begun = calls.ints("start_ns")
    mine = np.flatnonzero(
        (calls.ints("thread") == thread) & (begun >= within[0]) & (begun <= within[1])
    )
    kinds, api = calls.text("kind"), calls.text("api")
    launching = np.isin(
        kinds.codes,
        [code for code, kind in enumerate(kinds.values) if kind in _UNEQUAL_KINDS],
    )
    looking_up = api.where(lambda name: _LOOKS_UP.search(name) is not None)
    mine = mine[~(launching | looking_up)[mine]]
    took = calls.ints_at("end_ns", mine) - calls.ints_at("start_ns", mine)
    found = []
    for code, rows in rows_by_value(api.codes[mine].astype(np.int64)):
        if len(rows) >= _OFTEN:
            median, fastest = np.percentile(took[rows], [50, 5])
            found.append(
                (
                    float(median),
                    SlowCalls(
                        api.values[code], len(rows), float(median) / max(float(fastest), 1.0)
                    ),
                )
            )
    return min(found, key=lambda one: one[0])[1] if found else None


@dataclass(frozen=True)
class HeldUpTimes:
    """What held each inference up, one entry per row of INFERENCES; empty for inferences that are
    not steady or have no similar ones.
    """

    # by which the host took longer than usual to enqueue it, of those that took long for that
    by_host_ns: IntArray
    by_nsys_ns: IntArray  # that nsys held a thread up in its time
    # its time without nsys's, divided by the median of those with the same kernels; 0 if it was not
    # compared
    ratio: FloatArray


def is_disturbed(share: float, slow: int) -> bool:
    """Whether so many inferences were held up for such a share of the time that it changes the time
    of a run.
    """
    return share >= DISTURBED and slow >= _FEWEST


def host_disturbances(inferences: Table, overheads: Table) -> list[HostDisturbance]:
    """One entry for each loop with enough steady inferences (see `held_up`)."""
    loops = in_loops(inferences)
    times = hold_ups(inferences, overheads)
    found = []
    for loop, of_loop in rows_by_value(loops.loop):
        rows = of_loop[times.ratio[of_loop] > 0]
        if len(rows):
            slow = rows[times.by_host_ns[rows] > 0]
            slow = slow[np.argsort(loops.end_ns[slow], kind="stable")]
            whole, lost = int(loops.time_ns[rows].sum()), int(times.by_host_ns[slow].sum())
            numbers, longest = (
                inferences.ints("inference")[slow],
                float(times.ratio[slow].max(initial=0.0)),
            )
            found.append(
                HostDisturbance(loop, len(rows), numbers, lost, lost / max(whole, 1), longest)
            )
    return found


def hold_ups(inferences: Table, overheads: Table) -> HeldUpTimes:
    """What held the steady inferences up.

    The host did where one took longer than its like while the host took longer to enqueue it; what
    the GPU worked longer, and what nsys did, is no part of that.  Inferences of a loop are alike
    that launch the same kernels.
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
        longer = [
            values[rows] - np.median(values[rows])
            for values in (time, enqueue, inferences.ints("gpu_busy_ns"))
        ]
        by_host = np.minimum(longer[0] - np.maximum(longer[2], 0), longer[1])
        ratio[rows] = np.maximum(time[rows], 1) / max(float(np.median(time[rows])), 1.0)
        excess[rows] = np.where(ratio[rows] >= HELD_UP, np.maximum(by_host, 0), 0).astype(np.int64)
    return HeldUpTimes(excess, np.where(steady, by_nsys, 0), ratio)
