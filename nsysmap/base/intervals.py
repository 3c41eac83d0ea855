"""Finds the innermost range around each of many moments, exactly, for any set of ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.groups import rows_by_value, runs, sorted_order
from nsysmap.base.table import MISSING, BoolArray, IntArray

_AT_ONCE = 1 << 18  # queries: what is in work stays in the processor's cache
_STEPS = 64  # how far the search walks outwards one range at a time before it doubles its steps


@dataclass(frozen=True)
class Spans:
    """What lies on threads: one row a span, all arrays of one length, times in ns."""

    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray


def innermost(ranges: Spans, queries: Spans) -> IntArray:
    """The row of the innermost range around each query, MISSING where none is.

    A range is around a query if it is on the same thread, starts no later and ends no earlier.  The innermost one starts
    last; of those that start together it ends first; of equal ones it is the last row.  Ranges need not nest (NVTX
    stacks are per domain, so ranges of one thread may cross).
    """
    result = np.full(len(queries.thread), MISSING, np.int64)
    if len(ranges.thread) == 0:
        return result
    asked_of = dict(rows_by_value(queries.thread))
    for thread, rows in rows_by_value(ranges.thread):
        asked = asked_of.get(thread)
        if asked is None:
            continue
        starts, ends = ranges.start_ns, ranges.end_ns
        if len(rows) < len(starts):
            starts, ends = starts[rows], ends[rows]
        order = rows
        if not _nested(starts, ends):
            at = sorted_order(starts, -ends)
            starts, ends, order = starts[at], ends[at], rows[at]
        outer: list[IntArray] = []
        for first in range(0, len(asked), _AT_ONCE):
            some = asked[first : first + _AT_ONCE]
            at = _enclosing((starts, ends, outer), queries.start_ns[some], queries.end_ns[some])
            held = at >= 0
            if held.all():
                result[some] = order[at]
            else:
                result[some[held]] = order[at[held]]
    return result


def _nested(starts: IntArray, ends: IntArray) -> bool:
    """Whether the ranges are in order of start, and of those that start together the longer comes first."""
    return bool(((starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (ends[1:] <= ends[:-1]))).all())


def _enclosing(ranges: tuple[IntArray, IntArray, list[IntArray]], query_starts: IntArray, query_ends: IntArray) -> IntArray:
    """Positions in ranges of one thread, sorted by start up and end down; -1 where none encloses the query.

    Between i and the nearest earlier range that ends later than i, all end no later than i: none of them can hold what i
    does not hold.  So the search may go from i straight to that one, which is worked out once it is needed and then kept.
    """
    starts, ends, outers = ranges
    at = np.searchsorted(starts, query_starts, side="right") - 1
    open_queries = np.flatnonzero((at >= 0) & (ends[at] < query_ends))
    if len(open_queries) == 0:
        return at
    if not outers:
        outers.append(earlier_ending_later(ends))
    outer = outers[0]
    for _ in range(_STEPS):
        at[open_queries] = outer[at[open_queries]]
        position = at[open_queries]
        open_queries = open_queries[(position >= 0) & (ends[position] < query_ends[open_queries])]
        if len(open_queries) == 0:
            return at
    jumps = [outer]
    while (jumps[-1] >= 0).any():
        previous = jumps[-1]
        jumps.append(np.where(previous >= 0, previous[previous], -1))
    position, wanted = at[open_queries], query_ends[open_queries]
    for jump in reversed(jumps):
        further = jump[position]
        position = np.where((further >= 0) & (ends[further] < wanted), further, position)
    at[open_queries] = outer[position]
    return at


def earlier_ending_later(ends: IntArray) -> IntArray:
    """For each position the nearest earlier one with a greater end, -1 where there is none; by pointer jumping."""
    outer = np.arange(-1, len(ends) - 1, dtype=np.int64)
    moving = np.flatnonzero((outer >= 0) & (ends[outer] <= ends))
    while len(moving):
        outer[moving] = outer[outer[moving]]
        position = outer[moving]
        moving = moving[(position >= 0) & (ends[position] <= ends[moving])]
    return outer


@dataclass(frozen=True)
class Holes:
    """The holes between intervals, in order of time."""

    start_ns: IntArray
    end_ns: IntArray
    before: IntArray  # row of the interval that ends where the hole begins (of several the first)
    after: IntArray  # row of the interval that begins where the hole ends (of several the first in the order given)


def holes(start_ns: IntArray, end_ns: IntArray) -> Holes:
    """The times from the first start to the last end that no interval covers; the intervals must be sorted by start."""
    if len(start_ns) == 0:
        nothing = np.zeros(0, np.int64)
        return Holes(nothing, nothing, nothing, nothing)
    reached = np.maximum.accumulate(end_ns)
    after = np.flatnonzero(start_ns[1:] > reached[:-1]) + 1
    record = np.zeros(len(end_ns), np.bool_)
    record[0] = True
    record[1:] = end_ns[1:] > reached[:-1]
    holder = np.maximum.accumulate(np.where(record, np.arange(len(end_ns)), 0))
    return Holes(reached[after - 1], start_ns[after], holder[after - 1], after)


def union(start_ns: IntArray, end_ns: IntArray) -> tuple[IntArray, IntArray]:
    """Starts and ends of the disjoint intervals that cover the same time; touching ones are joined, order does not matter."""
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], end_ns[order]
    gaps = holes(start, end)
    if len(start) == 0:
        return start, end
    return np.concatenate([start[:1], gaps.end_ns]), np.append(gaps.start_ns, end.max())


def union_ns(start_ns: IntArray, end_ns: IntArray) -> int:
    """How long the union of the intervals is, in ns; order does not matter."""
    left, right = union(start_ns, end_ns)
    return int((right - left).sum())


def union_ns_by_group(group: IntArray, intervals: tuple[IntArray, IntArray], count: int) -> IntArray:
    """For each group (0 to count - 1) how long the union of its intervals (starts, ends) is, in ns; MISSING for one that has none.

    The rows must be sorted by group, then start.  All are MISSING where the times lie too far apart to be told: absurd input.
    """
    lengths = np.full(count, MISSING, np.int64)
    start_ns, end_ns = intervals
    if len(group) == 0:
        return lengths
    origin = int(start_ns.min())
    room = int(end_ns.max()) - origin + 1  # a later group's times all lie above an earlier one's
    if room > (2**62) // (count + 1):
        return lengths
    shift = group * room - origin
    start, end = start_ns + shift, shift  # each array is used again for what follows: there may be millions of rows
    end += end_ns
    reached = np.maximum.accumulate(end)
    np.maximum(start[1:], reached[:-1], out=start[1:])
    end -= start
    np.maximum(end, 0, out=end)
    present, first, _ = runs(group)
    lengths[present] = np.add.reduceat(end, first)
    return lengths


def covered(start_ns: IntArray, end_ns: IntArray, within: tuple[IntArray, IntArray]) -> IntArray:
    """How much of each interval of ``within`` (starts, ends) the union of the intervals covers, in ns."""
    left, right = union(start_ns, end_ns)
    if len(left) == 0:
        return np.zeros(len(within[0]), np.int64)
    total = np.concatenate([[np.int64(0)], np.cumsum(right - left)])
    return _covered_before(left, right, total, within[1]) - _covered_before(left, right, total, within[0])


def _covered_before(left: IntArray, right: IntArray, total: IntArray, moment: IntArray) -> IntArray:
    at = np.searchsorted(left, moment, side="right")
    last = np.maximum(at - 1, 0)
    beyond = np.where(at > 0, np.maximum(right[last] - moment, 0), 0)
    return total[at] - beyond


def inside(start_ns: IntArray, end_ns: IntArray, moments: IntArray) -> BoolArray:
    """Which moments lie strictly within one of the intervals, which must be disjoint and sorted."""
    if len(start_ns) == 0:
        return np.zeros(len(moments), np.bool_)
    at = np.searchsorted(start_ns, moments, side="left") - 1
    return (at >= 0) & (moments < end_ns[np.maximum(at, 0)])


def cut(start_ns: IntArray, end_ns: IntArray, moments: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The pieces of disjoint, sorted intervals cut at those moments: their starts, ends, and the row each comes from."""
    at = np.unique(moments[inside(start_ns, end_ns, moments)])
    owner = np.searchsorted(start_ns, at, side="left") - 1
    rows = np.arange(len(start_ns))
    piece_owner = np.concatenate([rows, owner])
    piece_start = np.concatenate([start_ns, at])
    order = np.lexsort((piece_start, piece_owner))
    piece_owner, piece_start = piece_owner[order], piece_start[order]
    piece_end = np.empty(len(piece_start), np.int64)
    piece_end[:-1] = piece_start[1:]
    last = np.ones(len(piece_owner), np.bool_)
    last[:-1] = piece_owner[1:] != piece_owner[:-1]
    piece_end[last] = end_ns
    return piece_start, piece_end, piece_owner
