"""Tells repetitions of the same kernels with other launch sizes apart, as of a benchmark that runs
one function on data of several sizes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import by_first_row, rows_by_value, runs, scattered
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.trace.inferences.steady import APART, FEW, SHORTEST_PHASE

_LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_SALT = 1 << 40  # of numbers that no other hash takes


def size_hashes(
    kernels: Table, rows: IntArray, first: IntArray, size: IntArray
) -> NDArray[np.uint64]:
    """A hash of the grids and blocks of each run of these kernels (from ``first``, ``size`` long):
    equal for equal ones, for different ones almost surely not.
    """
    odd = scattered(len(_LAUNCH), _SALT) | np.uint64(1)
    each = np.zeros(len(rows), np.uint64)
    for name, factor in zip(_LAUNCH, odd, strict=True):
        each += kernels.ints_at(name, rows).astype(np.uint64) * factor
        each ^= each >> np.uint64(29)  # so that no sum of two sizes is that of two others
    of_place = scattered(int(size.max()), _SALT + len(odd)) | np.uint64(1)
    place = np.arange(len(rows)) - np.repeat(first, size)
    result: NDArray[np.uint64] = np.add.reduceat(each * of_place[place], first)
    return result


def sequences_by_sizes(
    sequence: IntArray,
    sizes: NDArray[np.uint64],
    thread: IntArray,
    busy_ns: IntArray,
    repeated: BoolArray,
) -> IntArray:
    """The numbers of kernel sequences of inferences, in order of time, with those whose launches
    have other sizes apart, if they keep GPUs busy for another time and nearly all come many in a
    row: sizes that change all the time, or a little each time, are of one loop.
    """
    label = np.zeros(len(sequence), np.int64)
    several = by_first_row(thread, sequence)
    for _, mine in rows_by_value(several):
        if not repeated[mine].all() or (sizes[mine] == sizes[mine[0]]).all():
            continue
        found = _levels_of_sizes(by_first_row(sizes[mine].view(np.int64)), busy_ns[mine])
        _, _, stretch = runs(found)
        if stretch[stretch >= SHORTEST_PHASE].sum() >= (1 - FEW) * len(mine):
            label[mine] = found
    if not label.any():
        return sequence
    return _renumbered(sequence, label)


def _renumbered(sequence: IntArray, label: IntArray) -> IntArray:
    """The numbers of sequences with labels by first appearance, those without kernels left out."""
    present = np.flatnonzero(sequence != MISSING)
    result = sequence.copy()
    result[present] = by_first_row(sequence[present], label[present])
    return result


def _levels_of_sizes(size: IntArray, busy_ns: IntArray) -> IntArray:
    """For each inference of a kind the number of its level: those of other sizes than the ones
    before are of a new one if they take another time, and of the old one otherwise.
    """
    level_of: dict[int, int] = {}
    found = np.zeros(len(size), np.int64)
    level, before = 0, -1.0
    for one, first, count in zip(*(part.tolist() for part in runs(size)), strict=True):
        took = max(float(np.median(busy_ns[first : first + count])), 1.0)
        if one in level_of:
            level = level_of[one]
        elif before > 0 and max(took, before) >= APART * min(took, before):
            level = max(level_of.values()) + 1
        level_of[one] = level
        found[first : first + count] = level
        before = took
    return found
