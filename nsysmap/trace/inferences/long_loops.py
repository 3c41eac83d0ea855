"""Loops that are not all of a run: something else comes before them, after them or between them,
as random numbers before a loop that is timed, or the next of several operations of a benchmark.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import distinct, numbered, rows_by_value
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray
from nsysmap.names.decode import decode
from nsysmap.trace.inferences.launch_order import launch_order, launch_time
from nsysmap.trace.inferences.periods import calls_between, copies_of, waits_of
from nsysmap.trace.inferences.recurrence import MANY, like_launches, turns_alike
from nsysmap.trace.inferences.repeats import LaunchedKernels, candidates, turn_begins
from nsysmap.trace.model import Trace

_LONGEST = 64  # kernels of one turn that every length is tried of; longer ones by rare kernels
_TURNS = 100  # the layers of a model, which repeat inside one forward, are fewer
_FEWEST = 3  # of fewer there are no two intervals
_MOST = 0.5  # of the kernels of a process, and of their time
_LARGEST = 2_000_000  # kernels: the search takes some 64 comparisons of each
_MOST_STRETCHES = 4096  # the longest of a stream: what a benchmark measures is hundreds
_PRODUCTS = frozenset(("gemm", "gemv", "convolution", "deconvolution", "attention"))


@dataclass(frozen=True)
class LoopOnStream:
    """Turns one after the other on one stream."""

    first: int  # place of its first kernel among those of the stream
    size: int  # kernels of a turn
    count: int  # turns

    @property
    def places(self) -> slice:
        """Where its kernels are."""
        return slice(self.first, self.first + self.size * self.count)


@dataclass(frozen=True)
class _StreamLaunches:
    """The kernels of a stream in launch order."""

    rows: IntArray
    launches: LaunchedKernels
    like: IntArray  # what each launch is like (`like_launches`)


def long_loops(trace: Trace, rows: IntArray) -> IntArray:
    """For each kernel the number of its turn of a loop; MISSING if none, and for all kernels of a
    process in which such loops are not most of the work.

    A loop is the same two kernels or more, in the same order on one stream, with nothing else
    between; or one kernel, where the host waits between any two.  Turns are three at least, and of
    fewer than `MANY`, three are alike in their sizes.  Below a hundred, they may be the layers of a
    model inside one forward: these hold products of matrices, and so does what comes before or
    after them, such as a head.  What only prepares a loop does not.
    """
    kernels = trace.kernels
    number, done = np.full(len(kernels), MISSING, np.int64), 0
    if len(rows) > _LARGEST:
        return number
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    process = kernels.ints("process")
    product = _products(trace)
    found: list[tuple[_StreamLaunches, list[LoopOnStream]]] = []
    in_loop = np.zeros(len(kernels), np.bool_)
    for stream in _streams(trace, rows):
        loops = loops_on_stream(stream.launches, stream.like)
        found.append((stream, loops))
        for loop in loops:
            in_loop[stream.rows[loop.places]] = True
    with_model = distinct(process[product & ~in_loop])
    for stream, loops in found:
        for loop in loops:
            mine = stream.rows[loop.places]
            may_be_layers = loop.count < _TURNS and process[mine[0]] in with_model
            if may_be_layers and product[mine].any():
                continue
            number[mine] = done + np.arange(len(mine)) // loop.size
            done += loop.count
    for _, own in rows_by_value(process):
        repeats = number[own] != MISSING
        if repeats.mean() <= _MOST or took[own][repeats].sum() <= _MOST * took[own].sum():
            number[own] = MISSING
    return number


def _products(trace: Trace) -> BoolArray:
    """True for the kernels that multiply matrices, as their names say."""

    def multiplies(name: str) -> bool:
        decoded = decode(name)
        operation = decoded.fields.get("operation")
        return operation in _PRODUCTS or any(op.cls in _PRODUCTS for op in decoded.ops)

    return trace.kernels.text("name").where(multiplies)


def _streams(trace: Trace, rows: IntArray) -> list[_StreamLaunches]:
    kernels, found = trace.kernels, []
    _, stream = numbered(*(kernels.ints(name)[rows] for name in ("process", "context", "stream")))
    codes = kernels.text("name").codes.astype(np.int64)
    asked = [_between(trace, rows, calls) for calls in (waits_of(trace), copies_of(trace))]
    like, time = np.zeros(len(kernels), np.int64), launch_time(kernels)
    like[rows] = like_launches(trace, rows, copied=True)
    for _, places in rows_by_value(stream):
        if len(places) < _FEWEST:  # no loop has fewer kernels
            continue
        mine = launch_order(kernels, rows[places])
        waits, copies = (counted[mine] for counted in asked)
        gap = np.diff(time[mine], prepend=time[mine[:1]])
        found.append(
            _StreamLaunches(mine, LaunchedKernels(codes[mine], waits, copies, gap), like[mine])
        )
    return found


def _between(trace: Trace, rows: IntArray, calls: BoolArray) -> IntArray:
    """For each kernel of the trace, if it is one of these, how many of these calls were made
    between the launch of the one before it on its thread and its own.
    """
    counted = np.zeros(len(trace.kernels), np.int64)
    order = launch_order(trace.kernels, rows)
    counted[order] = calls_between(trace, order, calls)
    return counted


def loops_on_stream(launches: LaunchedKernels, like: IntArray) -> list[LoopOnStream]:
    """The loops of a stream, whose launches are like each other where ``like`` has the same number:
    those of a hundred turns, of two ways to see the same stretch the one with the shorter turn,
    then of what is left the longest ones.
    """
    codes, waits = launches.codes, launches.syncs
    free, found = np.ones(len(codes), np.bool_), []
    few: list[tuple[int, int, int]] = []  # minus the kernels, the size of a turn, the first kernel
    longer = {size for size in candidates(codes) if size > _LONGEST}
    for size in [*range(1, _LONGEST + 1), *sorted(longer)]:
        if size * _FEWEST > len(codes):
            break
        same = np.concatenate([[False], codes[size:] == codes[:-size], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        begins, ends = edges[::2], edges[1::2] + size
        length = ends - begins
        for at in np.flatnonzero((length >= size * _TURNS) & (size <= _LONGEST)).tolist():
            begin, stop = _longest_free(free, int(begins[at]), int(ends[at]))
            count = (stop - begin) // size
            if count < _TURNS:
                continue
            free[begin : begin + count * size] = False
            # one kernel many times without a wait may be the inside of anything
            if size > 1 or waits[begin + 1 : begin + count].all():
                found.append(LoopOnStream(begin, size, count))
        if size > 1:
            some = np.flatnonzero(length >= size * _FEWEST)
            some = some[np.argsort(-length[some], kind="stable")][:_MOST_STRETCHES]
            few += [(-int(length[at]), size, int(begins[at])) for at in some.tolist()]
    units: dict[int, list[IntArray]] = {}  # by length: the same loop goes on after something else
    for minus, size, first in sorted(few)[:_MOST_STRETCHES]:
        begin, stop = _longest_free(free, first, first - minus)
        loop = _from_its_begin(launches, begin, stop, size, units.get(size, []))
        if loop.count < _FEWEST:
            continue
        turns = like[loop.places].reshape(loop.count, size)
        if (codes[loop.places] == codes[loop.first]).all():
            continue  # one kernel many times
        if loop.count >= MANY or turns_alike(turns) >= _FEWEST:
            free[loop.places] = False
            found.append(loop)
            units.setdefault(size, []).append(codes[loop.first : loop.first + size])
    return found


def _from_its_begin(
    of: LaunchedKernels, begin: int, stop: int, size: int, known: list[IntArray]
) -> LoopOnStream:
    """The whole turns in this stretch, from where a turn begins that is known already, or where the
    host's waits, copies and pauses say so; from its first kernel where they do not.
    """
    if stop - begin < _FEWEST * size:
        return LoopOnStream(begin, size, 0)
    part = slice(begin, stop)
    stretch = LaunchedKernels(of.codes[part], of.syncs[part], of.copies[part], of.gap_ns[part])
    first = next(
        (
            at
            for at in range(size)
            if any(np.array_equal(stretch.codes[at : at + size], unit) for unit in known)
        ),
        min(turn_begins(stretch, size, 0)),
    )
    return LoopOnStream(begin + first, size, (stop - begin - first) // size)


def _longest_free(free: BoolArray, first: int, end: int) -> tuple[int, int]:
    """The longest part of this stretch in which no other loop was seen."""
    taken = np.concatenate([[first - 1], first + np.flatnonzero(~free[first:end]), [end]])
    longest = int(np.diff(taken).argmax())
    return int(taken[longest]) + 1, int(taken[longest + 1])
