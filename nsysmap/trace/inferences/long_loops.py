"""Long loops one after the other, each of its own kernels: what a benchmark of several operations
or sizes does, in which nothing repeats from the beginning to the end.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import numbered, rows_by_value
from nsysmap.core.table import MISSING, BoolArray, IntArray
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.inferences.periods import calls_between, waits_of
from nsysmap.trace.model import Trace

_LONGEST = 64  # kernels of one turn
_TURNS = 100  # the layers of a model, which repeat inside one forward, are fewer
_MOST = 0.5  # of the kernels of a process, and of their time
_LARGEST = 2_000_000  # kernels: the search takes some 64 comparisons of each


def long_loops(trace: Trace, rows: IntArray) -> IntArray:
    """For each kernel the number of its turn of a long loop; MISSING if none, and for all kernels
    of a process in which such loops are not most of the work.

    A loop is the same two kernels or more, in the same order on one stream, a hundred times with
    nothing else between; or one kernel, where the host waits between any two.
    """
    kernels = trace.kernels
    number, done = np.full(len(kernels), MISSING, np.int64), 0
    if len(rows) > _LARGEST:
        return number
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    process = kernels.ints("process")
    _, stream = numbered(*(kernels.ints(name)[rows] for name in ("process", "context", "stream")))
    names = kernels.text("name").codes.astype(np.int64)
    waited = _waited(trace, rows)
    for _, places in rows_by_value(stream):
        mine = rows[places]
        mine = launch_order(kernels, mine, np.zeros(len(mine), np.int64))
        turns = _turns(names[mine], waited[mine])
        inside = turns >= 0
        number[mine[inside]] = turns[inside] + done
        done += int(turns.max(initial=-1)) + 1
    for _, own in rows_by_value(process):
        found = number[own] != MISSING
        if found.mean() <= _MOST or took[own][found].sum() <= _MOST * took[own].sum():
            number[own] = MISSING
    return number


def _waited(trace: Trace, rows: IntArray) -> BoolArray:
    """For each kernel of the trace: whether it is one of these, and the host waited between its
    launch and the previous one on its thread.
    """
    waited = np.zeros(len(trace.kernels), np.bool_)
    order = launch_order(trace.kernels, rows, np.zeros(len(rows), np.int64))
    waited[order] = calls_between(trace, order, waits_of(trace)) > 0
    return waited


def _turns(codes: IntArray, waited: BoolArray) -> IntArray:
    """For each kernel of a stream the number of its turn; -1 if none. If a stretch can be divided
    in two ways, the shorter turn is used.
    """
    turn, done = np.full(len(codes), -1, np.int64), 0
    free = np.ones(len(codes), np.bool_)
    for size in range(1, min(_LONGEST, len(codes) // _TURNS) + 1):
        same = np.concatenate([[False], codes[size:] == codes[:-size], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for left, right in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            begin, stop = _longest_free(free, left, right + size)
            count = (stop - begin) // size
            if count < _TURNS:
                continue
            first, behind = begin, begin + count * size
            free[first:behind] = False
            # one kernel many times without a wait may be the inside of anything
            if size > 1 or waited[first + 1 : behind].all():
                turn[first:behind] = done + np.arange(count * size) // size
                done += count
    return turn


def _longest_free(free: BoolArray, first: int, end: int) -> tuple[int, int]:
    """The longest part of this stretch in which no other loop was seen."""
    taken = np.concatenate([[first - 1], first + np.flatnonzero(~free[first:end]), [end]])
    longest = int(np.diff(taken).argmax())
    return int(taken[longest]) + 1, int(taken[longest + 1])
