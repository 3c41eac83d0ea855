"""Finds the innermost range around each of many times, exactly, for any set of ranges."""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import distinct, is_sorted, rows_by_value, runs, sorted_order
from nsysmap.core.memory import Ints, in_pieces, whole
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table

_AT_ONCE = 1 << 18  # queries at a time: the working set stays in the processor's cache
_BLOCK = 1 << 10  # rows that share bounds
_STEPS = 64  # steps of one range that the search takes outwards before it doubles its steps


@dataclass(frozen=True)
class Spans:
    """Time spans on threads: one row per span, arrays of the same length, times in nanoseconds."""

    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray


@dataclass(frozen=True)
class BlockBounds:
    """The bounds of each block of rows, with which rows between two numbers are found without
    reading most of the others.
    """

    least: IntArray
    greatest: IntArray
    count: int  # of rows

    @staticmethod
    def of(low: Ints, high: Ints) -> BlockBounds:
        """The bounds of rows with the ends ``low`` and ``high``."""
        at = np.arange(0, len(low), _BLOCK)
        if not len(at):
            return BlockBounds(at, at, 0)
        return BlockBounds(
            np.minimum.reduceat(whole(low), at), np.maximum.reduceat(whole(high), at), len(low)
        )

    def near(self, low: int, high: int) -> IntArray:
        """The rows of the blocks of which a row may begin no later than ``high`` and end no earlier
        than ``low``.
        """
        blocks = np.flatnonzero((self.least <= high) & (self.greatest >= low))
        rows: IntArray = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        return rows[: np.searchsorted(rows, self.count)]


@dataclass(frozen=True)
class Timed:
    """Time spans on threads as a table holds them, any number; spans near given ones are found
    without reading all.
    """

    thread: Ints
    start_ns: Ints
    end_ns: Ints
    blocks: BlockBounds

    @staticmethod
    def of(table: Table) -> Timed:
        """The spans of a table's rows."""
        return Timed.held(*(table.held_ints(name) for name in ("thread", "start_ns", "end_ns")))

    @staticmethod
    def held(thread: Ints, start_ns: Ints, end_ns: Ints) -> Timed:
        """Builds it from columns, whatever their storage."""
        return Timed(thread, start_ns, end_ns, BlockBounds.of(start_ns, end_ns))

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: IntArray) -> Spans:
        """The spans at these positions."""
        return Spans(self.thread.take(rows), self.start_ns.take(rows), self.end_ns.take(rows))

    def at(self, name: str, rows: IntArray) -> IntArray:
        """One column at these positions; MISSING for MISSING positions."""
        column: Ints = getattr(self, name)
        if not len(self):
            return np.full(len(rows), MISSING)
        known = rows >= 0
        return (
            column.take(rows)
            if known.all()
            else np.where(known, column.take(np.where(known, rows, 0)), np.int64(MISSING))
        )

    def near(self, idle: Spans) -> IntArray:
        """Rows that may overlap one of the idle times, on any thread: a first filter."""
        if len(idle.start_ns) == 0 or len(self) == 0:
            return np.zeros(0, np.int64)
        order = np.argsort(idle.start_ns, kind="stable")
        start, reached = idle.start_ns[order], np.maximum.accumulate(idle.end_ns[order])
        rows = self.blocks.near(int(start[0]), int(reached[-1]))
        # the last idle time that begins before the span ends
        last = np.searchsorted(start, self.end_ns.take(rows), side="left") - 1
        found: IntArray = rows[
            (last >= 0) & (reached[np.maximum(last, 0)] > self.start_ns.take(rows))
        ]
        return found

    def around(self, queries: Spans, wanted: BoolArray | None = None) -> IntArray:
        """Does what :func:`innermost` does among these spans (those ``wanted``), for a part of very
        many queries: only spans that may contain one are read.
        """
        if not len(queries.thread):
            return np.zeros(0, np.int64)
        rows = self.blocks.near(int(queries.end_ns.min()), int(queries.start_ns.max()))
        if wanted is not None:
            rows = rows[wanted[rows]]
        found = innermost(self.take(rows), queries)
        return (
            np.where(found >= 0, rows[np.maximum(found, 0)], np.int64(MISSING))
            if len(rows)
            else found
        )


def innermost(ranges: Spans, queries: Spans) -> IntArray:
    """The row of the innermost range around each query; MISSING if there is none.

    A range is around a query if it is on the same thread, starts no later and ends no earlier.  The
    innermost one starts last; of those that start together it ends first; of equal ones it is the
    last row.  Ranges need not nest (NVTX stacks are per domain, so ranges of one thread may cross).
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
            at = _enclosing(starts, ends, outer, queries.start_ns[some], queries.end_ns[some])
            held = at >= 0
            if held.all():
                result[some] = order[at]
            else:
                result[some[held]] = order[at[held]]
    return result


def _nested(starts: IntArray, ends: IntArray) -> bool:
    """Whether the ranges are sorted by start, the longer first if they start together."""
    return bool(
        ((starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (ends[1:] <= ends[:-1]))).all()
    )


def _enclosing(
    starts: IntArray,
    ends: IntArray,
    outers: list[IntArray],
    query_starts: IntArray,
    query_ends: IntArray,
) -> IntArray:
    """Positions in ranges of one thread, sorted by start up and end down; -1 where none encloses
    the query.

    Between i and the nearest earlier range that ends later than i, all end no later than i: none of
    them can hold what i does not hold.  So the search may go from i straight to that one, which is
    worked out once it is needed and then kept.
    """
    at = _last_started(starts, query_starts)
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


def _last_started(starts: IntArray, moments: IntArray) -> IntArray:
    """The position of the last start at or before each time; -1 if there is none. The starts are
    sorted.
    """
    if 2 * len(starts) > len(moments) or not is_sorted(moments):
        return np.searchsorted(starts, moments, side="right") - 1
    # few starts among many sorted times: finding the starts is faster
    since = np.searchsorted(moments, starts, side="left")
    return np.repeat(np.arange(-1, len(starts)), np.diff(since, prepend=0, append=len(moments)))


def earlier_ending_later(ends: IntArray) -> IntArray:
    """For each position the nearest earlier one with a greater end, by pointer jumping; -1 if there
    is none.
    """
    outer = np.arange(-1, len(ends) - 1, dtype=np.int64)
    moving = np.flatnonzero((outer >= 0) & (ends[outer] <= ends))
    while len(moving):
        outer[moving] = outer[outer[moving]]
        position = outer[moving]
        moving = moving[(position >= 0) & (ends[position] <= ends[moving])]
    return outer


@dataclass(frozen=True)
class Holes:
    """The gaps between intervals, in chronological order."""

    start_ns: IntArray
    end_ns: IntArray
    # row of the interval that ends where the gap begins (the first if there are several)
    before: IntArray
    # row of the interval that begins where the gap ends (the first in the given order)
    after: IntArray


def holes(start_ns: IntArray, end_ns: IntArray) -> Holes:
    """The times from the first start to the last end that no interval covers; the intervals must be
    sorted by start.
    """
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
    """Starts and ends of the disjoint intervals that cover the same time; touching ones are merged;
    the order does not matter.
    """
    if len(start_ns) == 0:
        return start_ns, end_ns
    if not is_sorted(start_ns):
        order = np.argsort(start_ns, kind="stable")
        start_ns, end_ns = start_ns[order], end_ns[order]
    reached = np.maximum.accumulate(end_ns)
    apart = np.flatnonzero(start_ns[1:] > reached[:-1])
    return start_ns[np.concatenate([[0], apart + 1])], reached[np.append(apart, len(reached) - 1)]


def union_ns(start_ns: IntArray, end_ns: IntArray) -> int:
    """The length of the union of the intervals in nanoseconds; the order does not matter."""
    left, right = union(start_ns, end_ns)
    return int((right - left).sum())


def union_ns_by_group(
    group: IntArray, start_ns: IntArray, end_ns: IntArray, count: int
) -> IntArray:
    """For each group (0 to count - 1) the length of the union of its intervals in nanoseconds;
    MISSING for a group without intervals.

    The rows must be sorted by group, then start.  All are MISSING if the times are too far apart
    for int64: absurd input.
    """
    lengths = np.full(count, MISSING, np.int64)
    if len(group) == 0:
        return lengths
    origin = int(start_ns.min())
    room = int(end_ns.max()) - origin + 1  # a later group's times all lie above an earlier one's
    if room > (2**62) // (count + 1):
        return lengths
    shift = group * room - origin
    start, end = start_ns + shift, shift  # arrays are reused below: there may be millions of rows
    end += end_ns
    reached = np.maximum.accumulate(end)
    np.maximum(start[1:], reached[:-1], out=start[1:])
    end -= start
    np.maximum(end, 0, out=end)
    present, first, _ = runs(group)
    lengths[present] = np.add.reduceat(end, first)
    return lengths


def covered(start_ns: IntArray, end_ns: IntArray, within: tuple[IntArray, IntArray]) -> IntArray:
    """How much of each interval of ``within`` (starts, ends) the union of the intervals covers, in
    nanoseconds.
    """
    left, right = union(start_ns, end_ns)
    length = np.zeros(len(within[0]), np.int64)
    if len(left) == 0:
        return length
    total = np.zeros(len(left) + 1, np.int64)
    np.cumsum(right - left, out=total[1:])
    for rows, begin, end in in_pieces(*within):
        length[rows] = _covered_before(left, right, total, end)
        length[rows] -= _covered_before(left, right, total, begin)
    return length


def _covered_before(left: IntArray, right: IntArray, total: IntArray, moment: IntArray) -> IntArray:
    at = np.searchsorted(left, moment, side="right")
    last = np.maximum(at - 1, 0)
    beyond = np.where(at > 0, np.maximum(right[last] - moment, 0), 0)
    return total[at] - beyond


def inside(start_ns: IntArray, end_ns: IntArray, moments: IntArray) -> BoolArray:
    """Marks the times strictly inside one of the intervals, which must be disjoint and sorted."""
    if len(start_ns) == 0:
        return np.zeros(len(moments), np.bool_)
    at = np.searchsorted(start_ns, moments, side="left") - 1
    return (at >= 0) & (moments < end_ns[np.maximum(at, 0)])


def cut(
    start_ns: IntArray, end_ns: IntArray, moments: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The pieces of disjoint, sorted intervals cut at these times: their starts, ends, and the row
    from which each comes.
    """
    at = distinct(moments[inside(start_ns, end_ns, moments)])
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
