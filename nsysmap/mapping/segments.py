"""Finds the inferences of several engines in a stream that holds other kernels too, and lacks some: by aligning all of it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsysmap.base.groups import runs as runs_of
from nsysmap.base.table import BoolArray, FloatArray, IntArray
from nsysmap.engine.execution_order import execution_orders
from nsysmap.engine.model import Engine, Layer
from nsysmap.mapping.kernel_alignment import EngineMatch, engine_match, optimization_profiles
from nsysmap.mapping.scores import KernelFacts, Scores, between_costs, score
from nsysmap.mapping.stream_alignment import Runs, Stream, Sureness, Track, likeliest_runs, sureness
from nsysmap.mapping.twins import Ran, twins_of, which_ran

_ROUNDS = 2  # alignments that learn from the one before
_ENOUGH = 4  # runs of a track that habits can be learnt from
_PRESENCE = (1.5, 0.25, -2.5, 2.0)  # nats for how often a kernel is in a slot: slope, the share that says nothing, least, most
_SELDOM, _FOREIGN_SELDOM = 0.5, -8.0  # a kernel that need not be TensorRT's belongs in a slot that it is in as often as not, or costs that
_FILLED, _EMPTY = 0.7, 0.15  # share of the runs in which a slot has a kernel, for it to be taken as one that always, that never has
_SKIP_FILLED, _SKIP_EMPTY = -5.0, -0.3
_LIKE = 0.2  # runs that differ in less than that share of their slots ran the same
_NEAR = 0.9  # share of kernels placed and layers used of a run whose tactics are not the file's: a warm-up, another profile
_STEADY, _LEAST_SPREAD = 0.5, 0.1  # of the log of a kernel's time: more says nothing, less is not believed
_DAMAGED, _DAMAGED_LIKE = 0.6, 0.5  # … of a run of which there is one, and that differs from the others in at most that share
_OPAQUE = ("foreign_node", "plugin", "loop")
_NEW_RUN, _AT_ONCE = -5.0, -0.5  # nats: a run begins anywhere, and at most where the host paused
_PAUSE = 4.0  # times the median time between two launches
_PAUSE_TELLS, _WAIT_TELLS = (0.0, 6.0), (3.0, 8.0)  # nats that a pause of the host says, a wait for the GPU: the less the more there are


@dataclass(frozen=True)
class StreamKernels:
    """The kernels that one thread launched, in order."""

    facts: tuple[KernelFacts, ...]  # the distinct ones
    row: IntArray  # n: which of them
    gap_ns: IntArray  # n: host time since the launch before
    waits: BoolArray  # n: the host waited for the GPU since then
    copies: BoolArray  # n: it asked for a copy since then
    took: FloatArray  # n: log of its time in ns, nan where not measured


@dataclass(frozen=True)
class Lane:
    """One engine's layers in one order in which they can run."""

    engine: int
    layers: tuple[Layer, ...]
    scores: Scores


@dataclass(frozen=True)
class Found:
    """The runs of engines in a stream that are believed."""

    row: IntArray  # per kernel of the stream: which of the distinct ones
    lanes: tuple[Lane, ...]
    runs: Runs
    sure: Sureness
    kind: IntArray  # per run: the group of runs that launch the same
    kinds: tuple[RunKind, ...]


@dataclass(frozen=True)
class RunKind:
    """Runs of one engine that launch the same kernels, but for missing and foreign ones."""

    engine: int
    runs: int
    match: EngineMatch  # of what most of them launch
    believed: bool
    unproved: bool  # nothing speaks against the engine, or for it
    several: bool = False  # another file given has the same layers, and nothing tells which of them ran


def find_runs(kernels: StreamKernels, engines: Sequence[Engine]) -> Found | None:
    """The engines' runs in a stream; None where none is believed."""
    lanes = _lanes(kernels.facts, engines)
    stream = _stream(kernels, lanes)
    first = stream
    runs = likeliest_runs(stream)
    for _ in range(_ROUNDS):
        stream = _learnt(first, runs, lanes)
        runs = likeliest_runs(stream)
    if not len(runs.track):
        return None
    kind, kinds, groups = _judged(kernels, lanes, runs, engines)
    runs, kinds = _told_apart(kernels, lanes, (runs, kind, kinds, groups), engines)
    believed = np.array([one.believed for one in kinds])[kind]
    if not believed.any():
        return None
    kept = _kept(runs, believed)
    return Found(kernels.row, lanes, kept, sureness(stream, kept), kind[believed], kinds)


def _lanes(facts: Sequence[KernelFacts], engines: Sequence[Engine]) -> tuple[Lane, ...]:
    lanes = []
    for number, engine in enumerate(engines):
        for layers in optimization_profiles(engine):
            for order in execution_orders(layers):
                ordered = tuple(layers[at] for at in order)
                lanes.append(Lane(number, ordered, score(facts, engine, ordered)))
    return tuple(lanes)


def _stream(kernels: StreamKernels, lanes: Sequence[Lane]) -> Stream:
    tactic = np.any([lane.scores.tactic.any(axis=1) for lane in lanes], axis=0)
    inside, between = between_costs(kernels.facts, tactic)
    usual = float(np.median(kernels.gap_ns)) if len(kernels.gap_ns) else 0.0
    pause = (kernels.gap_ns > _PAUSE * usual) & (kernels.gap_ns > 0)
    begin, go_on = np.full(len(kernels.row), _NEW_RUN), np.zeros(len(kernels.row))
    for signs, (least, most) in ((pause, _PAUSE_TELLS), (kernels.copies, _PAUSE_TELLS), (kernels.waits, _WAIT_TELLS)):
        told = min(max(-1.5 * np.log(max(float(signs.mean()), 1e-9)) - 1.0, least), most)
        begin = np.where(signs, np.maximum(begin, min(_NEW_RUN + told, _AT_ONCE)), begin)
        go_on = np.where(signs, np.minimum(go_on, -told), go_on)
    begin[:1], go_on[:1] = _AT_ONCE, 0.0
    tracks = tuple(Track(lane.scores.match, lane.scores.more, lane.scores.skip) for lane in lanes)
    return Stream(kernels.row, tracks, inside, between, begin, go_on, kernels.took)


def _learnt(stream: Stream, runs: Runs, lanes: Sequence[Lane]) -> Stream:
    """The same stream with what most runs of each track do in each slot taken into account."""
    of = _run_of(runs, len(stream.row))
    tracks = []
    for number, track in enumerate(stream.tracks):
        mine = runs.track == number
        count = int(mine.sum())
        if count < _ENOUGH:
            tracks.append(track)
            continue
        items = np.flatnonzero((of >= 0) & (runs.slot >= 0))
        items = items[mine[of[items]]]
        once = np.unique(np.stack([of[items], stream.row[items], runs.slot[items]]), axis=1)
        often = np.zeros(track.match.shape)
        np.add.at(often, (once[1], once[2]), 1.0)
        slope, neutral, least, most = _PRESENCE
        habit = np.clip(slope * np.log((often / count + 0.03) / neutral), least, most)
        foreign = lanes[number].scores.foreign[:, None] & (often / count < _SELDOM)
        habit = np.where(foreign, _FOREIGN_SELDOM, habit)
        filled = np.bincount(np.unique(np.stack([of[items], runs.slot[items]]), axis=1)[1], minlength=len(track.skip)) / count
        skip = np.where(filled >= _FILLED, np.minimum(track.skip, _SKIP_FILLED), track.skip)
        skip = np.where(filled <= _EMPTY, np.maximum(skip, _SKIP_EMPTY), skip)
        usual, spread = _times(stream, runs, items, len(track.skip))
        tracks.append(replace(track, match=track.match + habit, skip=skip, usual=usual, spread=spread))
    return replace(stream, tracks=tuple(tracks))


def _times(stream: Stream, runs: Runs, items: IntArray, slots: int) -> tuple[FloatArray, FloatArray]:
    """The usual value of each slot's kernels, nan where they are several or too few; and its spread."""
    usual, spread = np.full(slots, np.nan), np.ones(slots)
    if stream.value is None:
        return usual, spread
    order = items[np.argsort(runs.slot[items], kind="stable")]
    at, first, size = runs_of(runs.slot[order])
    for slot, begin, count in zip(at.tolist(), first.tolist(), size.tolist(), strict=True):
        values = stream.value[order[begin : begin + count]]
        middle = float(np.median(values))
        off = 1.5 * float(np.median(np.abs(values - middle)))
        if count >= _ENOUGH and off <= _STEADY:
            usual[slot], spread[slot] = middle, max(off, _LEAST_SPREAD)
    return usual, spread


def _run_of(runs: Runs, count: int) -> IntArray:
    """For each item the run that it lies in, -1 for none."""
    of = np.full(count, -1, np.int64)
    for number, (first, last) in enumerate(zip(runs.first.tolist(), runs.last.tolist(), strict=True)):
        of[first : last + 1] = number
    return of


def _kept(runs: Runs, kept: BoolArray) -> Runs:
    slot = runs.slot.copy()
    for at in np.flatnonzero(~kept).tolist():
        slot[runs.first[at] : runs.last[at] + 1] = -1
    return replace(runs, track=runs.track[kept], first=runs.first[kept], last=runs.last[kept], slot=slot)


# --- which runs are believed ----------------------------------------------------------------------------------------


Signature = tuple[tuple[int, ...], ...]  # for each slot its kernels, and those in none behind it


def _signature(stream_row: IntArray, runs: Runs, at: int, slots: int) -> Signature:
    cells: list[list[int]] = [[] for _ in range(2 * slots)]
    place = 0
    for item in range(int(runs.first[at]), int(runs.last[at]) + 1):
        slot = int(runs.slot[item])
        if slot >= 0:
            place = slot
        cells[2 * place + (slot < 0)].append(int(stream_row[item]))
    return tuple(tuple(cell) for cell in cells)


@dataclass
class _Group:
    lane: int
    runs: list[int]
    cells: list[Counter[tuple[int, ...]]]

    def consensus(self) -> Signature:
        return tuple(cell.most_common(1)[0][0] for cell in self.cells)


def _judged(
    kernels: StreamKernels, lanes: Sequence[Lane], runs: Runs, engines: Sequence[Engine]
) -> tuple[IntArray, tuple[RunKind, ...], list[_Group]]:
    """The kind of each run, and of each kind whether its engine ran it."""
    kind = np.full(len(runs.track), -1, np.int64)
    groups: list[_Group] = []
    for number, lane in enumerate(lanes):
        mine = np.flatnonzero(runs.track == number).tolist()
        signature = {at: _signature(kernels.row, runs, at, len(lane.layers)) for at in mine}
        often = Counter(signature.values())
        whole = [at for at in mine if not _maybe_cut(runs, at, len(kernels.row))]
        rest = [at for at in mine if at not in set(whole)]
        own: list[_Group] = []
        for at in [*sorted(whole, key=lambda one: (-often[signature[one]], one)), *rest]:
            group = _nearest(own, signature[at], lane, cut=at in rest)
            if group is None:
                group = _Group(number, [], [Counter() for _ in range(2 * len(lane.layers))])
                own.append(group)
            group.runs.append(at)
            for cell, value in zip(group.cells, signature[at], strict=True):
                cell[value] += 1
        groups.extend(own)
    for number, group in enumerate(groups):
        kind[group.runs] = number
    return kind, _kinds(kernels, lanes, groups, engines), groups


def _told_apart(
    kernels: StreamKernels,
    lanes: Sequence[Lane],
    judged: tuple[Runs, IntArray, tuple[RunKind, ...], list[_Group]],
    engines: Sequence[Engine],
) -> tuple[Runs, tuple[RunKind, ...]]:
    """The same with each run in its own engine's lane, where several engines have the same layers."""
    runs, kind, kinds, groups = judged
    track, told_kinds = runs.track.copy(), list(kinds)
    for twins in twins_of(engines):
        mine = [at for at, one in enumerate(kinds) if one.believed and one.engine in twins]
        sequences = [_ran(kernels, lanes[groups[at].lane], groups[at].consensus()) for at in mine]
        for at, engine in zip(mine, which_ran(sequences, [engines[number] for number in twins]), strict=True):
            order = [layer.index for layer in lanes[groups[at].lane].layers]
            own = [
                number
                for number, lane in enumerate(lanes)
                if engine is not None and lane.engine == twins[engine] and [layer.index for layer in lane.layers] == order
            ]
            if own:
                track[kind == at] = own[0]
                told_kinds[at] = replace(kinds[at], engine=lanes[own[0]].engine)
            else:
                told_kinds[at] = replace(kinds[at], several=True)
    return replace(runs, track=track), tuple(told_kinds)


def _ran(kernels: StreamKernels, lane: Lane, usual: Signature) -> list[Ran]:
    return [
        Ran(lane.layers[at // 2].index, kernels.facts[row].name, kernels.facts[row].duration_ns)
        for at in range(0, len(usual), 2)
        for row in usual[at]
    ]


def _maybe_cut(runs: Runs, at: int, count: int) -> bool:
    return at == 0 or (at == len(runs.track) - 1 and int(runs.last[at]) == count - 1)


def _nearest(groups: Sequence[_Group], signature: Signature, lane: Lane, *, cut: bool) -> _Group | None:
    """The group of runs that this one is like, None where it is like none."""
    distances = [_distance(signature, group.consensus(), lane, cut=cut) for group in groups]
    best = min(range(len(groups)), key=distances.__getitem__, default=-1)
    return groups[best] if best >= 0 and distances[best] < _LIKE else None


def _distance(signature: Signature, usual: Signature, lane: Lane, *, cut: bool) -> float:
    """The share of the slots in which a run differs from the usual; of one that is cut within what it reached."""
    differs = counted = 0.0
    used = [at for at in range(0, len(signature), 2) if signature[at]]
    low, high = (used[0], used[-1] + 1) if cut and used else (0, len(signature))
    for at in range(low, high):
        mine, theirs = signature[at], usual[at]
        if at % 2:
            differs += sum((Counter(mine) - Counter(theirs)).values()) + sum((Counter(theirs) - Counter(mine)).values())
        elif mine or theirs:
            counted += 1
            opaque = lane.layers[at // 2].kind in _OPAQUE
            differs += float(bool(mine) != bool(theirs)) if opaque else float(mine != theirs)
    return differs / max(counted, 1.0)


def _kinds(kernels: StreamKernels, lanes: Sequence[Lane], groups: Sequence[_Group], engines: Sequence[Engine]) -> tuple[RunKind, ...]:
    found = []
    for group in groups:
        sequence = [row for cell in group.consensus() for row in cell]
        number = lanes[group.lane].engine
        match = engine_match([kernels.facts[row] for row in sequence], engines[number])
        found.append(RunKind(number, len(group.runs), match, match.accepted, match.undecided and len(group.runs) > 1))
    proved = {kind.engine for kind in found if kind.believed}
    result = []
    for group, kind in zip(groups, found, strict=True):
        near = kind.engine in proved and kind.match.evidence > 0 and _is_near(group, kind, groups, found, lanes)
        alone = kind.unproved and not kind.believed and not any(other.believed for other in found)
        result.append(replace(kind, believed=kind.believed or near or alone, unproved=alone))
    return tuple(result)


def _is_near(group: _Group, kind: RunKind, groups: Sequence[_Group], found: Sequence[RunKind], lanes: Sequence[Lane]) -> bool:
    """Whether an engine that ran for sure ran this too: a warm-up or another kernel sequence, or a single damaged run."""
    explained = min(kind.match.placed, kind.match.used)
    if kind.runs > 1 or explained >= _NEAR:
        return explained >= _NEAR
    mine = group.consensus()
    like = {
        believed: min(
            (
                _distance(mine, other.consensus(), lanes[group.lane], cut=True)
                for other, judged in zip(groups, found, strict=True)
                if other.lane == group.lane and judged.believed == believed and other is not group
            ),
            default=1.0,
        )
        for believed in (True, False)
    }
    return explained >= _DAMAGED and like[True] < min(_DAMAGED_LIKE, like[False])
