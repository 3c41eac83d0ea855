"""Arithmetic on sets of time intervals: union, holes, cutting, overlap; whole arrays at a time, exact to the nanosecond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.tables import BoolArray, IntArray


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


def distinct(values: IntArray) -> IntArray:
    """The distinct values, sorted; quick where there are few runs of equal ones."""
    if len(values) == 0:
        return values
    change = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.unique(np.append(values[change], values[0]))
