"""Finds the GPU work that the samples of one GPU cover: kernels of repeated sequences, and
everything else that ran.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import distinct, numbered, runs
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.counters.model import GpuRan
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.inferences.steady import steady_inferences
from nsysmap.trace.model import Trace

MOST_SEQUENCES = 8
"""Number of kernel sequences with estimates, the most frequent ones; samples of others are
excluded.
"""


@dataclass(frozen=True)
class Repeated:
    """The repeated work of one GPU: group g is a kernel (or a copy or memset) of a sequence."""

    work: GpuRan
    # per group a representative row of the kernels table, MISSING for copies and memsets
    kernel: IntArray
    sequence: IntArray  # per group, and its position in the sequence
    position: IntArray
    inferences: int


def repeated_work(
    trace: Trace, kernels: Table, inferences: Table, of_call: IntArray, device: int
) -> Repeated:
    """All GPU work of the device by start time, that of steady-state inferences by kernel;
    ``of_call`` is the inference of each API call.
    """
    counted = _counted(inferences, device)
    repeat = np.full(len(inferences) + 1, -1, np.int64)  # the last is that of no inference
    repeat[counted] = np.arange(len(counted))
    sequence = inferences.ints("kernel_sequence")
    starts, ends, groups, repeats = [], [], [], []
    stand: list[IntArray] = []
    told: list[tuple[IntArray, IntArray]] = []
    done = 0
    for kind, table in enumerate(gpu_work(trace)):
        mine = table.ints("device") == device
        here = slice(None) if mine.all() else np.flatnonzero(mine)
        inference = (
            kernels.ints("inference")[here]
            if kind == 0
            else _of(of_call, table.ints("launch")[here])
        )
        place = (
            kernels.ints("position")[here]
            if kind == 0
            else _place(inference, table.ints("start_ns")[here])
        )
        again = np.where(place >= 0, repeat[np.maximum(inference, -1)], -1)
        if kind:
            again[~_regular(inference, again >= 0, sequence)] = -1
        rows = slice(None) if (again >= 0).all() else np.flatnonzero(again >= 0)
        (of_sequence, at), number = numbered(sequence[inference[rows]], place[rows])
        group = np.full(len(again), -1, np.int64)
        group[rows] = number + done
        first = np.full(len(at), MISSING, np.int64)
        if kind == 0:
            first[number[::-1]] = np.arange(len(mine))[here][rows][::-1]
        done += len(at)
        starts.append(table.ints("start_ns")[here])
        ends.append(table.ints("end_ns")[here])
        groups.append(group)
        repeats.append(again)
        stand.append(first)
        told.append((of_sequence, at))
    start, end, group, of_repeat = (_joined(parts) for parts in (starts, ends, groups, repeats))
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end, group, of_repeat = start[order], end[order], group[order], of_repeat[order]
    work = GpuRan(start, end, group, of_repeat, done)
    return Repeated(
        work,
        np.concatenate(stand),
        np.concatenate([one[0] for one in told]),
        np.concatenate([one[1] for one in told]),
        len(counted),
    )


def _joined(parts: list[IntArray]) -> IntArray:
    """Concatenates the tables; nothing is copied if only one has rows."""
    some = [each for each in parts if len(each)]
    return some[0] if len(some) == 1 else np.concatenate(parts)


def _counted(inferences: Table, device: int) -> IntArray:
    """Steady-state inferences of the device with one of its most frequent kernel sequences, in
    chronological order.
    """
    steady = np.zeros(len(inferences), np.bool_)
    steady[steady_inferences(inferences)] = True
    sequence = inferences.ints("kernel_sequence")
    rows = np.flatnonzero(steady & (inferences.ints("device") == device) & (sequence != MISSING))
    found, count = np.unique(sequence[rows], return_counts=True)
    frequent = found[np.argsort(-count, kind="stable")[:MOST_SEQUENCES]]
    return rows[np.isin(sequence[rows], frequent)]


def _of(of_call: IntArray, launch: IntArray) -> IntArray:
    found = np.full(len(launch), MISSING, np.int64)
    known = launch >= 0
    found[known] = of_call[launch[known]]
    return found


def _place(inference: IntArray, start_ns: IntArray) -> IntArray:
    """The number of each copy or memset within its inference, by start."""
    place = np.full(len(inference), MISSING, np.int64)
    inside = np.flatnonzero(inference >= 0)
    order = inside[np.lexsort((start_ns[inside], inference[inside]))]
    if len(order):
        _, first, size = runs(inference[order])
        place[order] = np.arange(len(order)) - np.repeat(first, size)
    return place


def _regular(inference: IntArray, mine: BoolArray, sequence: IntArray) -> BoolArray:
    """Marks the rows of inferences with the usual number of copies (or memsets) for their kernel
    sequence.
    """
    count = np.bincount(inference[mine], minlength=len(sequence))
    usual = np.full(len(sequence), MISSING, np.int64)
    present = np.flatnonzero(count)
    for one in distinct(sequence[present]).tolist():
        of_one = present[sequence[present] == one]
        usual[of_one] = np.bincount(count[of_one]).argmax()
    regular = np.zeros(len(inference), np.bool_)
    regular[mine] = count[inference[mine]] == usual[inference[mine]]
    return regular
