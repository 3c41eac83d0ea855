"""Finds the inferences of threads whose kernels nothing bounds, by aligning their kernels with the
engines; one entry per kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.core.groups import numbered, rows_by_value
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, CodeArray, FloatArray, IntArray, repeated
from nsysmap.inputs.engine.model import Engine
from nsysmap.trace.inferences.launch_order import launch_order, launch_time
from nsysmap.trace.model import Trace

if TYPE_CHECKING:
    from nsysmap.mapping.order.kernel_alignment import Alignment, EngineMatch
    from nsysmap.mapping.order.open_ends import OpenEnds
    from nsysmap.mapping.streams.segments import Found, RunKind, StreamKernels

_MOST = 100_000  # kernels of a thread
_MANY = 2000  # kernels: more than one inference
UNPROVED = 0.85
"""The highest confidence allowed for an engine that nothing in the trace proves."""
IN_DOUBT, IN_DOUBT_BY_NAMES = 0.75, 0.5
"""The same of inferences that may all be another engine's: it is one with two optimization
profiles, or two of which either may be the file's, as good as even.  By a file that tells only
names there are more often two: of two sorts that are as frequent either may be the file's (in
eleven mixtures 48 % were).
"""
OTHER_CODE = 0.6
"""The same limit for inferences that run other code throughout than a file with fixed shapes: the
shapes may be those of one optimization profile, as trtexec writes them, or another engine's; as
good as even.
"""
_MOST_NAMES = 4000  # distinct kernels of a thread


@dataclass(frozen=True)
class StreamVerdict:
    """The result for one kind of inferences of a thread."""

    home: tuple[int, int, int]  # process, context and stream of its first kernel
    kind: RunKind


@dataclass(frozen=True)
class Streams:
    """Layers are numbered within their engine; -1 for none."""

    asked: BoolArray  # the kernel's thread was aligned
    run: IntArray  # MISSING for a kernel of no inference
    engine: IntArray
    layer: IntArray
    confidence: FloatArray
    rival: IntArray
    rival_confidence: FloatArray
    explained: BoolArray
    by_tactic: BoolArray
    probability: FloatArray  # that its engine ran, which no confidence exceeds
    foreign: BoolArray
    unproved: BoolArray  # nothing proves that this engine ran, or speaks against it
    # nothing tells which of several engines with the same layers ran: the kernel has the layer of
    # the first if all do the same, else none
    several: BoolArray
    same: FloatArray  # … share of these engines that have that layer, 1 elsewhere
    lane: IntArray  # which of ``orders``
    orders: tuple[tuple[int, ...], ...]  # layer indexes in the order in which they run
    verdicts: tuple[StreamVerdict, ...]

    def of_part(self, rows: IntArray) -> Streams:
        """The result restricted to these kernels."""
        columns = {
            name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        return Streams(**{**vars(self), **columns})

    def alignment(self, rows: IntArray) -> Alignment:
        """The alignment of these kernels of one inference, in launch order."""
        from nsysmap.mapping.order.kernel_alignment import Alignment

        return Alignment(
            self.layer[rows],
            self.confidence[rows],
            self.rival[rows],
            self.rival_confidence[rows],
            self.explained[rows],
            self.by_tactic[rows],
            self.foreign[rows],
            self.orders[int(self.lane[rows].max())],
            0.0,
        )


def no_streams(count: int) -> Streams:
    """An empty result for that many kernels; each column is one value and cannot be written to."""
    none, no, nought = (
        repeated(np.int64(-1), count),
        repeated(np.bool_(False), count),
        repeated(np.float64(0), count),
    )
    return Streams(
        asked=no,
        run=repeated(np.int64(MISSING), count),
        engine=none,
        layer=none,
        confidence=nought,
        rival=none,
        rival_confidence=nought,
        explained=no,
        by_tactic=no,
        probability=repeated(np.float64(1), count),
        foreign=no,
        unproved=no,
        several=no,
        same=repeated(np.float64(1), count),
        lane=none,
        orders=(),
        verdicts=(),
    )


def align_streams(trace: Trace, rows: IntArray, engines: Sequence[Engine]) -> Streams:
    """Finds the inferences of ``engines`` among these kernels, thread by thread (by stream if the
    launch is not in the trace).
    """
    from nsysmap.mapping.streams.segments import find_runs

    kernels = trace.kernels
    thread = kernels.ints("thread")[rows]
    stream = np.where(thread == MISSING, kernels.ints("stream")[rows], -1)
    _, home = numbered(kernels.ints("process")[rows], kernels.ints("context")[rows], thread, stream)
    columns = {
        name: value.copy()
        for name, value in vars(no_streams(len(kernels))).items()
        if isinstance(value, np.ndarray)
    }
    orders: list[tuple[int, ...]] = []
    verdicts: list[StreamVerdict] = []
    result = Streams(**columns, orders=(), verdicts=())
    done = 0
    for _, members in rows_by_value(home):
        mine = launch_order(kernels, rows[members])
        if len(mine) > _MOST or _never_again(kernels.text("name").codes[mine]):
            continue
        launched = _stream_kernels(trace, mine)
        found = find_runs(launched, engines)
        if found is None:
            continue
        result.asked[mine] = True
        _write(result, mine, found, engines, (done, len(orders)), launched)
        done += len(found.runs.track)
        orders.extend(tuple(layer.index for layer in lane.layers) for lane in found.lanes)
        place = tuple(int(kernels.ints(name)[mine[0]]) for name in ("process", "context", "stream"))
        verdicts.extend(StreamVerdict((place[0], place[1], place[2]), kind) for kind in found.kinds)
    return Streams(**{**vars(result), "orders": tuple(orders), "verdicts": tuple(verdicts)})


def _never_again(codes: CodeArray) -> bool:
    """Whether many kernels have mostly names that occur once: such kernels contain no
    inferences.
    """
    often = np.bincount(codes - int(codes.min(initial=0)))
    return len(codes) > _MANY and int((often == 1).sum()) > len(codes) // 2


def _stream_kernels(trace: Trace, rows: IntArray) -> StreamKernels:
    from nsysmap.mapping.order.scores import KernelFacts, threads_of
    from nsysmap.mapping.streams.segments import StreamKernels
    from nsysmap.trace.inferences.periods import calls_between, copies_of, waits_of

    kernels = trace.kernels
    codes = kernels.text("name").codes[rows].astype(np.int64)
    columns = (codes, *(kernels.ints(name)[rows] for name in ("grid_x", "grid_y", "grid_z")))
    distinct, row = numbered(*columns)
    if len(distinct[0]) > _MOST_NAMES:
        distinct, row = numbered(codes, *(np.ones(len(rows), np.int64) for _ in range(3)))
    took = (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows]
    names = kernels.text("name").values
    facts = tuple(
        KernelFacts(
            names[code] if code >= 0 else "",
            float(np.median(took[members])),
            (x, y, z),
            block=int(threads_of(kernels, rows[members[:1]])[0]),
        )
        for code, x, y, z, (_, members) in zip(
            *(column.tolist() for column in distinct), rows_by_value(row), strict=True
        )
    )
    time = launch_time(kernels)[rows]
    waits = calls_between(trace, rows, waits_of(trace))
    copies = calls_between(trace, rows, copies_of(trace))
    logged = np.where(took > 0, np.log(np.maximum(took, 1)), np.nan)
    start = kernels.ints("start_ns")[rows]
    ended = np.maximum.accumulate(kernels.ints("end_ns")[rows])
    idle = np.maximum(start - np.concatenate([start[:1], ended[:-1]]), 0)
    return StreamKernels(
        facts, row, np.diff(time, prepend=time[:1]), idle, waits > 0, copies > 0, logged
    )


def _write(
    result: Streams,
    rows: IntArray,
    found: Found,
    engines: Sequence[Engine],
    offset: tuple[int, int],
    kernels: StreamKernels,
) -> None:
    from nsysmap.mapping.order.open_ends import most_of_anything
    from nsysmap.mapping.order.twins import same_layers

    runs, sure = found.runs, found.sure
    probability = _probabilities(found, engines)
    engine_of = np.array([lane.engine for lane in found.lanes], np.int64)
    unproved = np.array([kind.unproved for kind in found.kinds], np.bool_)
    foreign = found.lanes[0].scores.foreign
    result.foreign[rows] = foreign[found.row]
    result.confidence[rows] = np.where(runs.slot >= 0, sure.chance, 0.0)
    index = [np.array([layer.index for layer in lane.layers], np.int64) for lane in found.lanes]
    items_of = [_items(found, number) for number in range(len(runs.track))]
    ends = [_ends(found, number, items) for number, items in enumerate(items_of)]
    borders = _borders(found, items_of, ends, kernels)
    for number, (track, items) in enumerate(zip(runs.track.tolist(), items_of, strict=True)):
        slot = runs.slot[items]
        mine, at = rows[items], np.maximum(slot, 0)
        scores = found.lanes[track].scores
        result.run[mine] = offset[0] + number
        result.engine[mine] = engine_of[track]
        result.lane[mine] = offset[1] + track
        result.layer[mine] = np.where(slot >= 0, index[track][at], -1)
        result.explained[mine] = _explained(found, number, items)
        result.by_tactic[mine] = (slot >= 0) & scores.tactic[found.row[items], at]
        most = most_of_anything(ends[number], borders[number])
        most = np.where(result.by_tactic[mine], 1.0, most)
        result.confidence[mine] = np.minimum(result.confidence[mine], most)
        if track < len(found.chance) and (chance := found.chance[track]) is not None:
            result.confidence[mine] *= np.where(slot >= 0, chance[at], 1.0)
        result.probability[mine] = probability[found.kind[number]]
        result.confidence[mine] *= result.probability[mine]
        result.unproved[mine] = unproved[found.kind[number]]
        kind = found.kinds[int(found.kind[number])]
        if kind.several:
            result.several[mine] = True
            same = same_layers([engines[at] for at in kind.several], 0)
            layer = result.layer[mine]
            result.same[mine] = np.where(layer >= 0, same[layer], 1.0)
            if not kind.shown:
                result.layer[mine] = -1
        same = (sure.rival[items] >= 0) & (sure.rival_run[items] == number)
        result.rival[mine] = np.where(same, index[track][np.maximum(sure.rival[items], 0)], -1)
        result.rival_confidence[mine] = sure.rival_chance[items]


def _items(found: Found, number: int) -> IntArray:
    """The kernels of a run without foreign ones in no layer."""
    items = np.arange(int(found.runs.first[number]), int(found.runs.last[number]) + 1)
    return items[(found.runs.slot[items] >= 0) | ~found.lanes[0].scores.foreign[found.row[items]]]


def _explained(found: Found, number: int, items: IntArray) -> BoolArray:
    """Marks the kernels whose names support their layers."""
    from nsysmap.mapping.order.scores import SPEAKS

    slot, scores = found.runs.slot[items], found.lanes[int(found.runs.track[number])].scores
    speaks: BoolArray = scores.match[found.row[items], np.maximum(slot, 0)] >= SPEAKS
    return (slot >= 0) & speaks


def _ends(found: Found, number: int, items: IntArray) -> OpenEnds:
    from nsysmap.mapping.order.open_ends import open_ends

    layers = found.lanes[int(found.runs.track[number])].layers
    slots = found.runs.slot[items].tolist()
    return open_ends(
        [layers[slot] if slot >= 0 else None for slot in slots], _explained(found, number, items)
    )


def _borders(
    found: Found,
    items_of: Sequence[IntArray],
    ends: Sequence[OpenEnds],
    kernels: StreamKernels,
) -> list[FloatArray | None]:
    """For each run with open ends: the probability that a border lies between its kernels and those
    of its own layers, from the pauses in the runs of its kind with the usual number of kernels;
    None if these are too few.
    """
    from nsysmap.mapping.order.open_ends import (
        LEAST_ALIKE,
        SHARPLY,
        border_chances,
        unlike_others,
    )

    asked = kernels.waits | kernels.copies
    result: list[FloatArray | None] = [None] * len(items_of)
    for kind in np.unique(found.kind).tolist():
        members = [at for at in np.flatnonzero(found.kind == kind).tolist() if ends[at].open]
        sizes = Counter(len(items_of[at]) for at in members)
        if not sizes or max(sizes.values()) < LEAST_ALIKE:
            continue
        size = max(sizes, key=lambda one: sizes[one])
        whole = [at for at in members if len(items_of[at]) == size]
        rows = np.array([items_of[at] for at in whole])
        gap_ns = kernels.gap_ns[rows]
        paused = [
            unlike | asked[rows]
            for unlike in (unlike_others(gap_ns), unlike_others(gap_ns, SHARPLY))
        ]
        # which of its own kernels are told by name may differ: another shape has other code there
        usual, _ = Counter(ends[at].known for at in whole).most_common(1)[0]
        told = {ends[at].known: border_chances(paused, ends[at].known) for at in whole}
        for at in members:
            known = ends[at].known
            result[at] = (
                told[known]
                if known in told and len(items_of[at]) == size
                else _as_far(told[usual], usual, len(items_of[at]), known)
            )
    return result


def _as_far(
    chances: FloatArray,
    known: tuple[int, int] | None,
    size: int,
    its_known: tuple[int, int] | None,
) -> FloatArray:
    """The same probabilities for a run of another size: each kernel takes that of one equally far
    from its own engine's kernels.
    """
    if known is None or its_known is None:
        return np.full(size, float(chances.max()))
    at, (first, last) = np.arange(size), its_known
    like = np.where(at > last, at - last + known[1], at - first + known[0])
    found: FloatArray = chances[np.clip(like, 0, len(chances) - 1)]
    return np.where((at < first) | (at > last), found, 0.0)


def _probabilities(found: Found, engines: Sequence[Engine]) -> FloatArray:
    """The probability that its engine ran each kind of runs. An accepted kind supports the engine's
    other kinds; an engine without proof gets at most the share that it explains.
    """
    from nsysmap.mapping.streams.segments import explained_share

    share = explained_share(found.row, found.lanes[0].scores.foreign, found.runs)
    accepted = {
        kind.engine: max(
            one.match.probability
            for one in found.kinds
            if one.engine == kind.engine and one.match.accepted
        )
        for kind in found.kinds
        if kind.match.accepted
    }
    return np.array([
        kind.match.probability * (share if kind.unproved else 1.0)
        if kind.match.accepted or kind.unproved
        else of_other_code(kind.match, engines[kind.engine], accepted.get(kind.engine, 1.0))
        for kind in found.kinds
    ])  # fmt: skip


def of_other_code(match: EngineMatch, engine: Engine, known: float) -> float:
    """The probability that an engine ``known`` from other inferences also ran these, whose kernels
    may be other code: of another shape, or of another engine.
    """
    from nsysmap.mapping.order.kernel_alignment import LIKELIER, has_fixed_shapes

    if match.probability >= LIKELIER:
        return known
    return min(known, OTHER_CODE if has_fixed_shapes(engine) else UNPROVED)
