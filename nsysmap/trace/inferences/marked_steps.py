"""Finds the steps that a program's own NVTX ranges mark, where its kernels alone do not
show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsysmap.core.groups import rows_by_value
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.inferences.repeats import are_like
from nsysmap.trace.model import Trace

_LEAST = 3  # ranges: of two, which is more than chance?
_NEARLY_ALL = (
    0.9  # of the kernels between the first of these ranges and the last, and of their time
)
_MOST = 0.5  # of all kernels of the process, or of their time; and of the ranges, that are alike
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class _Marked:
    """Consecutive ranges of one thread whose names differ only in numbers."""

    first: IntArray  # the first kernel that each holds, among those of its process in launch order
    end: IntArray  # behind the last
    time_ns: int  # of all these kernels


def marked_steps(trace: Trace, rows: IntArray) -> IntArray:
    """For each kernel the number of the range that it was launched in, by any thread; MISSING if
    none, and for all kernels of a process whose ranges do not mark steps.

    Ranges do that which are called the same but for numbers ("iteration 7"), come three times or
    more on one thread, hold nearly all that is launched between the first and the last, and mostly
    launch much the same kernels; of several kinds, such as steps and their layers, those that hold
    most, and then the longest.  ``rows`` are the kernels asked about.
    """
    kernels, number = trace.kernels, np.full(len(trace.kernels), MISSING, np.int64)
    named = trace.nvtx_ranges.ints("process")
    done = 0
    for process, mine in rows_by_value(kernels.ints("process")[rows]):
        own = rows[mine]
        own = own[kernels.ints("launch_start_ns")[own] != MISSING]
        ranges = np.flatnonzero(named == process)
        if len(own) < _LEAST or len(ranges) < _LEAST:
            continue
        own = launch_order(kernels, own, np.zeros(len(own), np.int64))
        found = max(
            _kinds(trace.nvtx_ranges, ranges, kernels, own),
            key=lambda one: (one.time_ns, -len(one.first)),
            default=None,
        )
        if found is not None and _alike(kernels, own, found):
            for first, end in zip(found.first.tolist(), found.end.tolist(), strict=True):
                number[own[first:end]] = done
                done += 1
    return number


def _kinds(ranges: Table, rows: IntArray, kernels: Table, own: IntArray) -> Iterator[_Marked]:
    """The kinds of ranges that hold nearly all kernels between the first and the last."""
    names = ranges.text("name").take(rows)
    called = [_NUMBER.sub("#", name or "").strip() for name in names.values]
    of_name = {name: place for place, name in enumerate(dict.fromkeys(called))}
    kind = np.array([of_name[name] for name in called], np.int64)[names.codes]
    _, place = np.unique(ranges.ints_at("thread", rows), return_inverse=True)
    launched = kernels.ints("launch_start_ns")[own]
    took = kernels.ints("end_ns")[own] - kernels.ints("start_ns")[own]
    until = np.concatenate([[0], np.cumsum(took)])
    for _, mine in rows_by_value(place.reshape(-1) * len(of_name) + kind):
        if len(mine) < _LEAST:
            continue
        start, end = (ranges.ints_at(name, rows[mine]) for name in ("start_ns", "end_ns"))
        outer = _outermost(start, end)
        first, behind = (np.searchsorted(launched, moment[outer]) for moment in (start, end))
        first, behind = first[behind > first], behind[behind > first]
        if len(first) < _LEAST:
            continue
        held, scope = int((behind - first).sum()), int(behind[-1] - first[0])
        held_ns = int((until[behind] - until[first]).sum())
        scope_ns = int(until[behind[-1]] - until[first[0]])
        nearly_all = held >= _NEARLY_ALL * scope and held_ns >= _NEARLY_ALL * scope_ns
        if nearly_all and (held > _MOST * len(own) or held_ns > _MOST * int(until[-1])):
            yield _Marked(first.astype(np.int64), behind.astype(np.int64), held_ns)


def _outermost(start: IntArray, end: IntArray) -> BoolArray:
    """Marks the ranges of one thread, by start, that no earlier one encloses."""
    reached = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]])
    return start >= reached


def _alike(kernels: Table, own: IntArray, marked: _Marked) -> bool:
    """Whether most of the ranges launch much the same kernels as the one of median length."""
    codes = kernels.text("name").codes[own].astype(np.int64)
    by_size = np.argsort(marked.end - marked.first, kind="stable")
    median = by_size[len(by_size) // 2]
    usual = codes[marked.first[median] : marked.end[median]]
    alike = are_like(codes, marked.first, marked.end, usual)
    return int(np.count_nonzero(alike)) >= _MOST * len(alike)
