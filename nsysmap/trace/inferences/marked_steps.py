"""Finds the steps that a program's own NVTX ranges mark, where its kernels alone do not
show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsysmap.core.groups import numbered_in_turn, rows_of_values
from nsysmap.core.memory import in_pieces
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, repeated, uniform
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
    kernels, number = trace.kernels, repeated(np.int64(MISSING), len(trace.kernels))
    named = trace.nvtx_ranges.ints("process")
    done = 0
    for process, mine in rows_of_values(kernels.ints_at("process", rows), rows):
        lost = kernels.ints_at("launch_start_ns", mine) == MISSING
        own = launch_order(kernels, mine[~lost] if lost.any() else mine)
        ranges = np.flatnonzero(named == process)
        if len(own) < _LEAST or len(ranges) < _LEAST:
            continue
        found = max(
            _kinds(trace.nvtx_ranges, ranges, kernels, own),
            key=lambda one: (one.time_ns, -len(one.first)),
            default=None,
        )
        del ranges
        if found is not None and _alike(kernels, own, found):
            number = np.array(number) if uniform(number) else number
            for places, first, end in in_pieces(found.first, found.end):
                size = end - first
                before = np.cumsum(size) - size
                held = np.repeat(first - before, size) + np.arange(int(size.sum()))
                number[own[held]] = done + np.repeat(places, size)
            done += len(found.first)
    return number


def _kinds(ranges: Table, rows: IntArray, kernels: Table, own: IntArray) -> Iterator[_Marked]:
    """The kinds of ranges that hold nearly all kernels between the first and the last."""
    names = ranges.held_text("name")
    called = [_NUMBER.sub("#", name or "").strip() for name in names.values]
    of_name = {name: place for place, name in enumerate(dict.fromkeys(called))}
    kind = np.array([of_name[name] for name in called], np.int64)[names.codes[rows]]
    launched = kernels.ints_at("launch_start_ns", own)
    until = np.zeros(len(own) + 1, np.int64)  # of their time together, before each
    np.subtract(
        kernels.ints_at("end_ns", own), kernels.ints_at("start_ns", own), out=until[1:]
    ).cumsum(out=until[1:])
    for mine in _of_one_kind(ranges, rows, kind):
        if len(mine) < _LEAST:
            continue
        first, behind = _held(ranges, mine, launched)
        if len(first) < _LEAST:
            continue
        held, scope = int((behind - first).sum()), int(behind[-1] - first[0])
        held_ns = int((until[behind] - until[first]).sum())
        scope_ns = int(until[behind[-1]] - until[first[0]])
        nearly_all = held >= _NEARLY_ALL * scope and held_ns >= _NEARLY_ALL * scope_ns
        if nearly_all and (held > _MOST * len(own) or held_ns > _MOST * int(until[-1])):
            yield _Marked(first.astype(np.int64), behind.astype(np.int64), held_ns)


def _of_one_kind(ranges: Table, rows: IntArray, kind: IntArray) -> Iterator[IntArray]:
    """These ranges thread by thread, those of each kind together."""
    _, thread = numbered_in_turn([ranges.ints_at("thread", rows)])
    thread *= int(kind.max(initial=0)) + 1
    kind += thread
    del thread
    for _, mine in rows_of_values(kind, rows):
        yield mine


def _held(ranges: Table, rows: IntArray, launched: IntArray) -> tuple[IntArray, IntArray]:
    """The first of the kernels, of which these are the launches, that each of these ranges holds,
    and the one behind the last; of ranges that hold any and lie in no other of them.
    """
    start, end = (ranges.ints_at(name, rows) for name in ("start_ns", "end_ns"))
    outer = _outermost(start, end)
    if not outer.all():
        start, end = start[outer], end[outer]
    first = np.searchsorted(launched, start)
    del start
    behind = np.searchsorted(launched, end)
    del end
    some = behind > first
    return (first, behind) if some.all() else (first[some], behind[some])


def _outermost(start: IntArray, end: IntArray) -> BoolArray:
    """Marks the ranges of one thread, by start, that no earlier one encloses."""
    reached = np.maximum.accumulate(end)
    outer: BoolArray = np.ones(len(start), np.bool_)
    np.greater_equal(start[1:], reached[:-1], out=outer[1:])
    return outer


def _alike(kernels: Table, own: IntArray, marked: _Marked) -> bool:
    """Whether most of the ranges launch much the same kernels as the one of median length."""
    codes = kernels.held_text("name").codes[own]
    size = marked.end - marked.first
    usual_size = np.partition(size, len(size) // 2)[len(size) // 2]
    before = int(np.count_nonzero(size < usual_size))
    median = np.flatnonzero(size == usual_size)[len(size) // 2 - before]
    usual = codes[marked.first[median] : marked.end[median]]
    alike = are_like(codes, marked.first, marked.end, usual)
    return int(np.count_nonzero(alike)) >= _MOST * len(alike)
