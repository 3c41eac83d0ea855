"""Which launches of kernels are alike, how many turns of a loop are, and whether anything in a
trace comes twice.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import numbered, rows_by_value
from nsysmap.core.table import MISSING, IntArray
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.inferences.compilation import programs_begun
from nsysmap.trace.inferences.launch_order import launch_time
from nsysmap.trace.lost_calls import lost_calls
from nsysmap.trace.model import Trace

MANY = 20
"""Launches of one kernel, or turns, from which on they recur whatever their sizes: a loop whose
work shrinks with each turn, as an elimination's does, is a loop.
"""
_LARGEST = 2_000_000  # kernels: of more, what is copied between them is not asked
_LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def like_launches(trace: Trace, rows: IntArray, *, copied: bool) -> IntArray:
    """For each of these kernels a number that is the same for those of one name, grid and block
    size; with ``copied`` before which as many bytes were copied each way, too, since the launch
    before it on its thread.
    """
    kernels = trace.kernels
    what = [kernels.text("name").codes[rows].astype(np.int64)]
    what += [kernels.ints_at(name, rows) for name in _LAUNCH]
    if copied and len(rows) and len(kernels) <= _LARGEST:
        what += [size[rows] for size in _copied_before(trace)]
    return numbered(*what)[1]


def turns_alike(launches: IntArray) -> int:
    """How many of these turns are alike: as many as have the commonest launch in the same place, in
    the place in the middle of them all, for half of a turn may have other sizes each time.

    ``launches`` has a row per turn: what each of its launches is like.
    """
    commonest = [int(np.unique(of_place, return_counts=True)[1].max()) for of_place in launches.T]
    return sorted(commonest)[(len(commonest) - 1) // 2]


def _copied_before(trace: Trace) -> tuple[IntArray, IntArray]:
    """For each kernel the bytes of the copies to the GPU, and from it, that its thread asked for
    since the launch before it.
    """
    kernels, copies = trace.kernels, trace.memcpys
    launched, asked = launch_time(kernels), launch_time(copies)
    owner, thread, size = kernels.ints("thread"), copies.ints("thread"), copies.ints("bytes")
    to_gpu = copies.text("kind").equals("HtoD")
    copied = tuple(np.zeros(len(kernels), np.int64) for _ in range(2))
    by_thread = dict(rows_by_value(thread))
    for key, own in rows_by_value(owner):
        mine = by_thread.get(key)
        if mine is None or key == MISSING:
            continue
        rows = own[np.argsort(launched[own], kind="stable")]
        follows = np.searchsorted(launched[rows], asked[mine])
        for way, total in zip((to_gpu[mine], ~to_gpu[mine]), copied, strict=True):
            inside = way & (follows < len(rows))
            np.add.at(total, rows[follows[inside]], size[mine[inside]])
    return copied[0], copied[1]


def nothing_recurs(trace: Trace) -> bool:
    """Whether each kernel was launched once with its sizes, by programs that began in the trace, or
    loaded its code in it, and waited in it for their last kernel: they have no loop that another
    capture could show.

    False as well where that cannot be known: events are missing, or calls were not traced.
    """
    kernels, calls = trace.kernels, trace.api_calls
    if not len(kernels) or len(trace.cuda_graph_traces) or trace.recording.warnings:
        return False
    if (np.bincount(kernels.text("name").codes + 1) >= MANY).any() or lost_calls(trace):
        return False
    if (kernels.ints("launch") < 0).any() or (kernels.ints("graph_node_id") != MISSING).any():
        return False
    if (np.bincount(like_launches(trace, np.arange(len(kernels)), copied=True)) > 1).any():
        return False
    kind, begun_at = calls.text("kind"), programs_begun(trace)
    waits = kind.equals("sync") | blocking_copies(trace) | kind.equals("free")
    owner, start = calls.ints("process"), calls.ints("start_ns")
    for process, rows in rows_by_value(kernels.ints("process")):
        launched = launch_time(kernels)[rows]
        own = owner == process
        loaded = own & kind.equals("module-load") & (start < launched.min())
        if begun_at.get(process, int(launched.min())) >= launched.min() and not loaded.any():
            return False
        if not (waits & own & (start > launched.max())).any():
            return False
    return True
