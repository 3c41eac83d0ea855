"""Threads whose CUDA calls nsys lost from some moment on, as the program's own ranges show.

nsys writes what it collects thread by thread: where a program is killed, the last calls of one
thread may be missing, with their kernels, while those of another are there for half a minute more
(seen with PyTorch's autograd thread and nsys 2024.2).  What is there then looks like a program that
does less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from nsysmap.core.groups import distinct, rows_by_value, rows_of_values
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.trace.model import Trace

_LEAST = 3  # ranges before the loss, and after it: of two, which is more than chance?
# of the launches in the ranges before the loss are this thread's and missing later, and of those
# ranges hold some
_NEARLY_ALL = 0.9
_MOST_THREADS = 64  # of a process, those with the most launches
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LostCalls:
    """The launches of one thread that the trace holds up to some moment, after which they are
    missing.
    """

    process: int
    thread: int
    since_ns: int  # when the last launch that is there ended
    range_name: str  # what shows it: ranges called that, but for numbers, …
    before: int  # so many of them held launches, nearly all of this thread, …
    after: int  # and so many later ones hold none, or few of others


def lost_calls(trace: Trace) -> tuple[LostCalls, ...]:
    """The threads whose launches nsys lost from some moment on, the earliest first."""
    return tuple(sorted(_lost(trace), key=lambda one: one.since_ns))


def cut_by_loss(
    lost: tuple[LostCalls, ...],
    kernels: Table,
    of_kernel: IntArray,
    thread: IntArray,
    end: IntArray,
) -> BoolArray:
    """Marks the inferences (of these threads, with these ends) that lack the work of a thread whose
    calls were lost: the later ones of the loops in which it launched. ``of_kernel`` is the
    inference of each kernel.
    """
    cut = np.zeros(len(end), np.bool_)
    for one in lost:
        held = of_kernel[(kernels.ints("thread") == one.thread) & (of_kernel >= 0)]
        loops = distinct(thread[distinct(held)])
        cut |= np.isin(thread, loops) & (end > one.since_ns)
    return cut


def _lost(trace: Trace) -> Iterator[LostCalls]:
    calls, ranges = trace.api_calls, trace.nvtx_ranges
    if len(ranges) < 2 * _LEAST:
        return
    kind = calls.text("kind")
    launches = np.flatnonzero(kind.equals("launch") | kind.equals("graph-launch"))
    named = ranges.ints("process")
    for process, rows in rows_of_values(calls.ints_at("process", launches), launches):
        own = np.flatnonzero(named == process)
        if len(own) < 2 * _LEAST:
            continue
        # of nearly all threads this is all that is asked
        last = int(np.sort(ranges.ints_at("start_ns", own[-_LEAST:]))[0])
        threads = rows_of_values(calls.ints_at("thread", rows), rows)
        threads.sort(key=lambda one: -len(one[1]))
        for thread, mine in threads[:_MOST_THREADS]:
            last_ns = _last_end(calls, mine)
            if last_ns >= last:
                continue
            began = np.sort(calls.ints_at("start_ns", mine))
            launching = _Launching(process, thread, began, last_ns)
            found = _shown(ranges, own, launching, np.sort(calls.ints_at("start_ns", rows)))
            if found and not _unjoined(trace.kernels, process, last_ns, found.after):
                yield found


@dataclass(frozen=True)
class _Launching:
    """When one thread launches."""

    process: int
    thread: int
    began_ns: IntArray  # in order
    last_ns: int  # the end of the last


def _last_end(calls: Table, rows: IntArray) -> int:
    """When the last of these calls ended, looked up some at a time."""
    return max(int(calls.ints_at("end_ns", piece).max()) for _, piece in in_pieces(rows))


def _shown(
    ranges: Table, rows: IntArray, launching: _Launching, all_began_ns: IntArray
) -> LostCalls | None:
    """The ranges that show best that the launches of a thread were lost, None if none do."""
    names = ranges.text("name").take(rows)
    called = [_NUMBER.sub("#", name or "").strip() for name in names.values]
    of_name = {name: place for place, name in enumerate(dict.fromkeys(called))}
    kind = np.array([*(of_name[name] for name in called), -1], np.int64)[names.codes]
    start, end = (ranges.ints_at(name, rows) for name in ("start_ns", "end_ns"))
    _, thread = np.unique(ranges.ints_at("thread", rows), return_inverse=True)
    texts, best = list(of_name), None
    for _, mine in rows_by_value(thread.reshape(-1) * (len(of_name) + 1) + kind):
        before = mine[end[mine] <= launching.last_ns]
        after = mine[start[mine] > launching.last_ns]
        if min(len(before), len(after)) < _LEAST or kind[mine[0]] < 0:
            continue
        held = _within(launching.began_ns, start[before], end[before])
        of_all = _within(all_began_ns, start[before], end[before])
        nearly_all = held.sum() >= _NEARLY_ALL * of_all.sum()
        if np.count_nonzero(held) < _NEARLY_ALL * len(before) or not nearly_all:
            continue
        later = _within(all_began_ns, start[after], end[after])
        if later.mean() > (1 - _NEARLY_ALL) * of_all.mean():
            continue
        if best is None or len(after) > best.after:
            best = LostCalls(
                launching.process,
                launching.thread,
                launching.last_ns,
                texts[int(kind[mine[0]])],
                len(before),
                len(after),
            )
    return best


def _within(moments: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """How many of these ordered moments lie in each of these spans."""
    within: IntArray = np.searchsorted(moments, end, "right") - np.searchsorted(moments, start)
    return within


def _unjoined(kernels: Table, process: int, since_ns: int, least: int) -> bool:
    """Whether enough kernels after that moment have no launch in the trace: then only the calls
    were lost, and the GPU's work is present.
    """
    loose = (kernels.ints("launch") == MISSING) & (kernels.ints("process") == process)
    return int(np.count_nonzero(loose & (kernels.ints("start_ns") > since_ns))) >= least
