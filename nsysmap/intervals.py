"""Finds the innermost range around each of many moments, exactly, for any set of ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.groups import rows_by_value, sorted_order
from nsysmap.tables import MISSING, IntArray

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
        order = rows[sorted_order(ranges.start_ns[rows], -ranges.end_ns[rows])]
        at = _enclosing(ranges.start_ns[order], ranges.end_ns[order], queries.start_ns[asked], queries.end_ns[asked])
        result[asked[at >= 0]] = order[at[at >= 0]]
    return result


def _enclosing(starts: IntArray, ends: IntArray, query_starts: IntArray, query_ends: IntArray) -> IntArray:
    """Positions in ranges of one thread, sorted by start up and end down; -1 where none encloses the query.

    Between i and the nearest earlier range that ends later than i, all end no later than i: none of them can hold what i
    does not hold.  So the search may go from i straight to that one.
    """
    at = np.searchsorted(starts, query_starts, side="right") - 1
    open_queries = np.flatnonzero((at >= 0) & (ends[at] < query_ends))
    if len(open_queries) == 0:
        return at
    outer = earlier_ending_later(ends)
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
