"""Finds the inferences of a trace without ranges or graph launches that show them, by what repeats on its streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.groups import distinct, distinct_rows, numbered, rows_by_value
from nsysmap.base.table import MISSING, BoolArray, IntArray
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.launch_order import launch_order, launch_time
from nsysmap.trace.model import Trace
from nsysmap.trace.repeats import Launches, Pieces, cut_inferences

_OVERLAP = 0.5  # two streams of one thread run one engine if that part of the inferences on one overlap one on the other


@dataclass(frozen=True)
class Periods:
    """Inferences found by what repeats: two columns with one row per kernel, three with one row per inference."""

    inference: IntArray  # MISSING: belongs to none
    slot: IntArray  # place in the full sequence of its inference's shape, from 0; a cut first inference begins later; MISSING for none
    shape: IntArray  # inferences with the same number launch the same kernels in the same order
    complete: BoolArray
    expected: IntArray  # kernels of a complete inference of that shape


@dataclass(frozen=True)
class _Group:
    """The kernels of one engine's streams in launch order."""

    rows: IntArray  # in the kernels table
    pieces: Pieces


def find_periods(trace: Trace, rows: IntArray | None = None, *, expected: int | None = None) -> Periods:
    """The inferences among these kernels (rows of the kernels table; all of them if not given), numbered by their first launch.

    Streams of one process, context and thread whose inferences overlap are one engine's; others are kept apart.
    ``expected``, the kernels that one inference of the engine launches, decides only what the trace leaves open.
    """
    kernels = trace.kernels
    asked = np.arange(len(kernels)) if rows is None else rows
    groups = [group for group in _groups(trace, asked, expected) if len(group.rows)]
    count = sum(len(group.pieces.start) for group in groups)
    inference = np.full(len(kernels), MISSING, np.int64)
    slot = np.full(len(kernels), MISSING, np.int64)
    begins: list[IntArray] = []
    shapes: list[IntArray] = []
    complete: list[BoolArray] = []
    size: list[IntArray] = []
    done = shapes_done = 0
    for group in groups:
        pieces = group.pieces
        of = pieces.inference
        inside = of >= 0
        inference[group.rows[inside]] = of[inside] + done
        slot[group.rows[inside]] = (np.arange(len(of)) - pieces.start[of] + pieces.offset[of])[inside]
        begins.append(launch_time(kernels)[group.rows[pieces.start]])
        shapes.append(pieces.shape + shapes_done)
        complete.append(pieces.complete)
        full = np.zeros(int(pieces.shape.max(initial=-1)) + 1, np.int64)
        np.maximum.at(full, pieces.shape, pieces.size + pieces.offset)
        size.append(full[pieces.shape])
        done += len(pieces.start)
        shapes_done += len(full)
    if not groups:
        nothing = np.zeros(0, np.int64)
        return Periods(inference, slot, nothing, np.zeros(0, np.bool_), nothing)
    by_time = np.argsort(np.concatenate(begins), kind="stable")
    number = np.empty(count + 1, np.int64)
    number[by_time] = np.arange(count)
    number[count] = MISSING
    return Periods(
        number[np.where(inference == MISSING, count, inference)],
        slot,
        np.concatenate(shapes)[by_time],
        np.concatenate(complete)[by_time],
        np.concatenate(size)[by_time],
    )


def _groups(trace: Trace, rows: IntArray, expected: int | None) -> list[_Group]:
    """One group a set of streams that run one engine together."""
    kernels = trace.kernels
    _, stream = numbered(*(kernels.ints(name)[rows] for name in ("process", "context", "stream")))
    alone = [_group(trace, rows[members], expected) for _, members in rows_by_value(stream)]
    groups: list[_Group] = []
    for members in _together(trace, alone):
        if len(members) == 1:
            groups.append(alone[members[0]])
        else:
            groups.append(_group(trace, np.concatenate([alone[member].rows for member in members]), expected))
    return groups


def _together(trace: Trace, alone: list[_Group]) -> list[list[int]]:
    """Which streams belong to one engine: fed by the same one thread, with inferences that overlap in launch time."""
    kernels = trace.kernels
    time = launch_time(kernels)
    feeder: list[tuple[int, int, int] | None] = []
    for group in alone:
        threads = distinct(kernels.ints("thread")[group.rows])
        key = (int(kernels.ints("process")[group.rows[0]]), int(kernels.ints("context")[group.rows[0]]), int(threads[0]))
        feeder.append(key if len(threads) == 1 and threads[0] != MISSING else None)
    sets: list[list[int]] = []
    for at, fed_by in enumerate(feeder):
        for members in sets:
            if fed_by is not None and feeder[members[0]] == fed_by and any(_overlap(time, alone[at], alone[other]) for other in members):
                members.append(at)
                break
        else:
            sets.append([at])
    return sets


def _overlap(time: IntArray, one: _Group, other: _Group) -> bool:
    few, many = sorted((one, other), key=lambda group: len(group.pieces.start))
    if len(few.pieces.start) == 0:
        return False
    first, last = _window(time, few)
    begin, end = _window(time, many)
    at = np.searchsorted(begin, last, side="right") - 1  # the latest inference that begins before this one ends
    meets = (at >= 0) & (end[np.maximum(at, 0)] >= first)
    return bool(meets.mean() >= _OVERLAP)


def _window(time: IntArray, group: _Group) -> tuple[IntArray, IntArray]:
    start = group.pieces.start
    return time[group.rows[start]], time[group.rows[start + group.pieces.size - 1]]


def _group(trace: Trace, rows: IntArray, expected: int | None) -> _Group:
    kernels = trace.kernels
    time = launch_time(kernels)
    rows = launch_order(kernels, rows, np.zeros(len(rows), np.int64))
    (streams,), stream = numbered(kernels.ints("stream")[rows])
    codes = _renumbered(kernels.text("name").codes[rows].astype(np.int64) * len(streams) + stream)
    gap = np.diff(time[rows], prepend=time[rows[:1]])
    launch = kernels.ints("launch")[rows]
    replayed = (kernels.ints("graph_node_id")[rows] != MISSING) & (launch != MISSING)
    fresh = np.concatenate([[True], launch[1:] != launch[:-1]]) & replayed  # a graph launch runs an inference
    syncs = calls_between(trace, rows, waits_of(trace)) + fresh
    copies = calls_between(trace, rows, copies_of(trace))
    found = Launches(codes, syncs, copies, gap, replayed=bool(replayed.all()))
    return _Group(rows, cut_inferences(found, expected=expected))


def _renumbered(codes: IntArray) -> IntArray:
    """The same codes without holes in their numbers."""
    size = int(codes.max(initial=-1)) + 1
    number = np.zeros(size + 1, np.int64)
    used = distinct_rows(codes, size)
    number[used] = np.arange(len(used))
    return number[codes]


def waits_of(trace: Trace) -> BoolArray:
    """Calls in which the host waits for the GPU: synchronisations and blocking copies."""
    waits: BoolArray = trace.api_calls.text("kind").equals("sync") | blocking_copies(trace)
    return waits


def copies_of(trace: Trace) -> BoolArray:
    """Calls that ask for a copy."""
    return trace.api_calls.text("kind").equals("copy")


def calls_between(trace: Trace, rows: IntArray, calls: BoolArray) -> IntArray:
    """How many of these calls the launching thread made between the launch of the kernel before and this one's."""
    kernels = trace.kernels
    thread, launched = kernels.ints("thread")[rows], kernels.ints("launch_start_ns")[rows]
    made = trace.api_calls.ints("start_ns")[calls]
    by = trace.api_calls.ints("thread")[calls]
    count = np.zeros(len(rows), np.int64)
    for key in distinct(thread[launched != MISSING]).tolist():
        mine = np.flatnonzero((thread == key) & (launched != MISSING))
        before = np.searchsorted(np.sort(made[by == key]), launched[mine], side="right")
        count[mine] = np.diff(before, prepend=before[:1])
    return count
