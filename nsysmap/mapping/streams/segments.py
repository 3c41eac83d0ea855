"""Finds the inferences of several engines in a stream with foreign and missing kernels, by aligning
the whole stream at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmap.core.groups import runs as runs_of
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.kernel_alignment import (
    ACCEPTED,
    LIKELIER,
    EngineMatch,
    engine_match,
    may_run_this,
    optimization_profiles,
    place_in_order,
)
from nsysmap.mapping.order.open_ends import LEAST_ALIKE
from nsysmap.mapping.order.scores import ANY_NUMBER, KernelFacts, Scores, between_costs, score
from nsysmap.mapping.order.twins import Ran, do_the_same, twins_in, which_ran
from nsysmap.mapping.streams.recurring import (
    Signature,
    Usual,
    common_places,
    common_sequence,
    distance,
    habit,
    how_often,
    in_slots,
    is_part,
    least_share,
    missing_rate,
    neighbours,
    other_tracks,
    steady,
    usual_kernels,
    usual_track,
    usual_value,
    within,
)
from nsysmap.mapping.streams.repeats import without_repeats
from nsysmap.mapping.streams.run_ends import ends_tell
from nsysmap.mapping.streams.stream_alignment import (
    Runs,
    Stream,
    Sureness,
    Track,
    kept,
    likeliest_runs,
    run_of,
    sureness,
)
from nsysmap.network.execution_order import execution_orders
from nsysmap.network.loops import has_open_loops, unrolled

_TOGETHER = 64  # runs that what most of them launch is taken from
_ROUNDS = 4  # alignments, each of which learns from the one before
# runs that tell what is usual; runs of a track that habits can be learnt from
_SEVERAL, _ENOUGH = (
    2,
    4,
)
# a kernel that need not be TensorRT's is in its slot in so many runs, …
_SELDOM, _SELDOM_IN_PLUGIN = (
    0.85,
    0.5,
)
_FOREIGN_SELDOM = -8.0  # … or costs that
# share of the runs in which a slot has a kernel, for it to be taken as one that always, that never
# has
_FILLED, _EMPTY = (
    0.7,
    0.15,
)
_SKIP_FILLED, _SKIP_EMPTY = -5.0, -0.3
_SAME_SHARE = 0.5  # share of the kernels, of two kinds of runs of a network that do the same
_SAME_CODE = 0.5  # share of the layers of generated code, for a kind of runs to be its engine's
_LIKE = 0.2  # runs that differ in less than that share of their kernels ran the same
# share of kernels placed and layers used of a single run whose tactics are not the file's: a
# warm-up, another profile
_NEAR = 0.9
# … of a run of which there is one, and that differs from the others in at most that share
_DAMAGED, _DAMAGED_LIKE = (
    0.6,
    0.5,
)
_POOLED = 0.25  # … of which one learns what they usually launch
_CLEAR = (
    0.8  # probability of an engine by its kernels' names, above which its runs' ends tell nothing
)
_MOSTLY = 0.5  # share of TensorRT's kernels that an engine which nothing proves must explain
# nats for a kernel between two runs that recurs so often outside all of them, and never within
_OUTSIDE, _RECURS = (
    -1.0,
    3,
)
_REFINED = 2  # alignments with what runs usually launch
_ROUNDED = 200  # runs, at most, that chance is reckoned with
_NEW_RUN, _AT_ONCE = -5.0, -0.5  # nats: a run begins anywhere, and at most where the host paused
# times the median time between two kernels, and at least so long
_PAUSE, _SHORTEST_PAUSE_NS = (
    4.0,
    1000,
)
# nats that a pause of the host says, a wait for the GPU: the less the more there are
_PAUSE_TELLS, _WAIT_TELLS = (
    (0.0, 6.0),
    (3.0, 8.0),
)


@dataclass(frozen=True)
class StreamKernels:
    """The kernels that one thread launched, in order."""

    facts: tuple[KernelFacts, ...]  # the distinct ones
    row: IntArray  # n: which of them
    gap_ns: IntArray  # n: host time since the launch before
    idle_ns: IntArray  # n: time since the kernels before it ended, 0 if they had not
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
class Form:
    """What one track represents: a lane, or what its runs usually launch."""

    lane: int
    usual: Usual | None = None
    # per layer of the lane: how sure it is that these kernels are its
    chance: FloatArray | None = None


@dataclass(frozen=True)
class Found:
    """The accepted runs of engines in a stream."""

    row: IntArray  # per kernel of the stream: which of the distinct ones
    lanes: tuple[Lane, ...]
    runs: Runs
    sure: Sureness
    kind: IntArray  # per run: the group of runs that launch the same
    kinds: tuple[RunKind, ...]
    # per lane, and of those behind None: of each layer, that its kernels are its
    chance: tuple[FloatArray | None, ...] = ()


@dataclass(frozen=True)
class RunKind:
    """Runs of one engine that launch the same kernels, apart from missing and foreign ones."""

    engine: int
    runs: int
    match: EngineMatch  # of what most of them launch
    believed: bool
    unproved: bool  # nothing speaks against the engine, or for it
    # the engines that have the same layers, where nothing tells which of them ran
    several: tuple[int, ...] = ()
    shown: bool = False  # … and all do the same: the layers are those of the first


def find_runs(kernels: StreamKernels, engines: Sequence[Engine]) -> Found | None:
    """Finds the engines' runs in a stream; None if none is accepted."""
    lanes = _lanes(kernels.facts, engines)
    if not lanes:
        return None
    first = stream = without_repeats(kernels, lanes, _stream(kernels, lanes))
    best: tuple[int, Stream, _Judged] | None = None
    for _ in range(_ROUNDS):
        judged = _judged(kernels, lanes, likeliest_runs(stream), engines)
        believed = judged.believed
        kernels_believed = int((judged.runs.last - judged.runs.first + 1)[believed].sum())
        settled = best is not None and kernels_believed == best[0] > 0
        if best is None or kernels_believed >= best[0]:
            best = kernels_believed, stream, judged
        if settled:
            break
        stream = _learnt(
            first, judged.runs, lanes, believed if believed.any() else np.ones_like(believed)
        )
    if best is None:
        return None
    best = (*best[:2], _cut_to_known(kernels, lanes, best[2], engines))
    plain = tuple(Form(number) for number in range(len(lanes)))
    forms, (_, stream, judged) = plain, best
    for _ in range(_REFINED):
        learnt = _forms(kernels, lanes, forms, judged, engines)
        stream = _formed(first, lanes, learnt, judged)
        again = _judged(
            kernels, [lanes[form.lane] for form in learnt], likeliest_runs(stream), engines, learnt
        )
        if not again.believed.any():
            break
        forms, judged = learnt, again
    if not judged.believed.any():
        return None
    if forms is plain:
        stream = _learnt(first, judged.runs, lanes, judged.believed)
    mine = tuple(lanes[form.lane] for form in forms)
    stream, judged = _without_others(kernels, mine, forms, engines, stream, judged)
    judged = _without_scraps(kernels.row, lanes[0].scores.foreign, judged)
    if not judged.believed.any():
        return None
    sure = sureness(stream, judged.runs, judged.believed)
    judged = _told_apart(kernels, (*mine, *lanes), judged, engines)
    ours = kept(judged.runs, judged.believed)
    chance = tuple(form.chance for form in forms)
    return Found(
        kernels.row, (*mine, *lanes), ours, sure, judged.kind[judged.believed], judged.kinds, chance
    )


def _without_scraps(row: IntArray, foreign: BoolArray, judged: _Judged) -> _Judged:
    """Drops engines without proof if the accepted runs leave most of TensorRT's kernels
    unexplained: another engine ran.
    """
    if explained_share(row, foreign, kept(judged.runs, judged.believed)) >= _MOSTLY:
        return judged
    kinds = tuple(
        replace(kind, believed=kind.believed and not kind.unproved) for kind in judged.kinds
    )
    return replace(judged, kinds=kinds)


def explained_share(row: IntArray, foreign: BoolArray, runs: Runs) -> float:
    """The share of the stream's TensorRT kernels that are in a layer of these runs."""
    own = ~foreign[row]
    return float((runs.slot[own] >= 0).mean()) if own.any() else 1.0


def _without_others(
    kernels: StreamKernels,
    lanes: Sequence[Lane],
    forms: Sequence[Form],
    engines: Sequence[Engine],
    learnt: Stream,
    judged: _Judged,
) -> tuple[Stream, _Judged]:
    """Aligns again with recurring sequences outside the accepted runs as tracks of their own, if
    that loses no run.
    """
    inside = run_of(kept(judged.runs, judged.believed), len(kernels.row)) >= 0
    paused = _pauses(kernels.gap_ns) | _pauses(kernels.idle_ns) | kernels.copies | kernels.waits
    others = other_tracks(kernels.row, paused, inside)
    if not others:
        return learnt, judged
    stream = replace(learnt, tracks=(*learnt.tracks, *others))
    again = _judged(kernels, lanes, likeliest_runs(stream), engines, forms)
    better = again.believed.sum() >= judged.believed.sum()
    return (stream, again) if better else (learnt, judged)


def _lanes(facts: Sequence[KernelFacts], engines: Sequence[Engine]) -> tuple[Lane, ...]:
    lanes = []
    for number, engine in enumerate(engines):
        if has_open_loops(engine.layers):
            continue  # how many kernels a run has is not known: any part would do
        for layers in optimization_profiles(engine):
            for order in execution_orders(layers):
                ordered = tuple(layers[at] for at in unrolled(layers, order))
                lanes.append(Lane(number, ordered, score(facts, engine, ordered)))
    return tuple(lanes)


def _stream(kernels: StreamKernels, lanes: Sequence[Lane]) -> Stream:
    tactic = np.any([lane.scores.tactic.any(axis=1) for lane in lanes], axis=0)
    inside, between = between_costs(kernels.facts, tactic)
    host, idle = _pauses(kernels.gap_ns), _pauses(kernels.idle_ns)
    begin, go_on = np.full(len(kernels.row), _NEW_RUN), np.zeros(len(kernels.row))
    for signs in (host, idle, kernels.copies, kernels.waits):
        least, most = _WAIT_TELLS if signs is kernels.waits else _PAUSE_TELLS
        told = min(max(-1.5 * np.log(max(float(signs.mean()), 1e-9)) - 1.0, least), most)
        begin = np.where(signs, np.maximum(begin, min(_NEW_RUN + told, _AT_ONCE)), begin)
        go_on = np.where(signs, np.minimum(go_on, -told), go_on)
    begin[:1], go_on[:1] = _AT_ONCE, 0.0
    tracks = tuple(Track(lane.scores.match, lane.scores.more, lane.scores.skip) for lane in lanes)
    return Stream(kernels.row, tracks, inside, between, begin, go_on, kernels.took)


def _pauses(gap_ns: IntArray) -> BoolArray:
    """Marks the kernels before which the host paused, or the GPU was idle, longer than usual."""
    usual = float(np.median(gap_ns)) if len(gap_ns) else 0.0
    long: BoolArray = gap_ns > max(_PAUSE * usual, _SHORTEST_PAUSE_NS)
    return long


def _learnt(stream: Stream, runs: Runs, lanes: Sequence[Lane], among: BoolArray) -> Stream:
    """Aligns again with what most runs of each track do in each slot."""
    of = run_of(runs, len(stream.row))
    tracks = []
    for number, (lane, track) in enumerate(zip(lanes, stream.tracks, strict=False)):
        mine = (runs.track == number) & among
        count = int(mine.sum())
        if count < _ENOUGH:
            tracks.append(track)
            continue
        items = np.flatnonzero((of >= 0) & (runs.slot >= 0))
        items = items[mine[of[items]]]
        often = how_often(
            of[items],
            stream.row[items],
            runs.slot[items],
            lane.scores.name,
            len(track.skip),
            count,
        )
        rate = missing_rate(often.max(axis=1)[np.unique(stream.row[items])])
        least = min(_SELDOM, least_share(rate, min(count, _ROUNDED)))
        needed = np.where(
            [layer.kind == "plugin" for layer in lane.layers], _SELDOM_IN_PLUGIN, least
        )
        added = np.where(
            lane.scores.foreign[:, None] & (often < needed), _FOREIGN_SELDOM, habit(often)
        )
        filled = (
            np.bincount(
                np.unique(np.stack([of[items], runs.slot[items]]), axis=1)[1],
                minlength=len(track.skip),
            )
            / count
        )
        skip = np.where(filled >= _FILLED, np.minimum(track.skip, _SKIP_FILLED), track.skip)
        skip = np.where(filled <= _EMPTY, np.maximum(skip, _SKIP_EMPTY), skip)
        usual, spread = _times(stream, runs, items, len(track.skip))
        tracks.append(
            replace(track, match=track.match + added, skip=skip, usual=usual, spread=spread)
        )
    return replace(stream, tracks=(*tracks, *stream.tracks[len(lanes) :]))


def _times(
    stream: Stream, runs: Runs, items: IntArray, slots: int
) -> tuple[FloatArray, FloatArray]:
    """The usual value of each slot's kernels and its spread; NaN if a slot has several kernels or
    too few values.
    """
    usual, spread = np.full(slots, np.nan), np.ones(slots)
    order = items[np.argsort(runs.slot[items], kind="stable")]
    at, first, size = runs_of(runs.slot[order])
    for slot, begin, count in zip(at.tolist(), first.tolist(), size.tolist(), strict=True):
        usual[slot], spread[slot] = usual_value(stream.value, order[begin : begin + count])
    return usual, spread


# --- what runs usually launch
# ---------------------------------------------------------------------------------------


def _forms(
    kernels: StreamKernels,
    lanes: Sequence[Lane],
    forms: Sequence[Form],
    judged: _Judged,
    engines: Sequence[Engine],
) -> tuple[Form, ...]:
    """What the runs of each lane usually launch, kind by kind, if its engine can have run that; the
    lane itself if too few runs are alike.

    Of runs that lack kernels none may prove the engine by itself, where what they usually launch
    does.
    """
    found: list[Form] = []
    ran = {kind.engine for kind in judged.kinds if kind.believed}
    name = lanes[0].scores.name.tolist()
    for number, lane in enumerate(lanes):
        kinds = [at for at, (form, _) in enumerate(judged.usual) if forms[form].lane == number]
        kinds.sort(key=lambda at: (-judged.kinds[at].believed, -judged.kinds[at].runs))
        learnt: list[tuple[int, Usual]] = []  # how many runs, and what they usually launch
        chances: list[FloatArray | None] = []
        while kinds:
            most = judged.usual[kinds[0]][1]
            pool = [
                at
                for at in kinds
                if at == kinds[0] or distance(judged.usual[at][1], most, name, cut=True) < _POOLED
            ]
            kinds = [at for at in kinds if at not in pool]
            runs = np.flatnonzero(np.isin(judged.kind, pool)).tolist()
            runs = [at for at in runs if not _maybe_cut(judged.runs, at, len(kernels.row))]
            if len(runs) >= _SEVERAL:
                slotted, chance = _placed_together(kernels, lane, judged.runs, runs, engines)
                usual = usual_kernels(
                    kernels.row, kernels.took, slotted, runs, lane.scores, lane.layers
                )
                usual = steady(usual, lane.layers)
                if len(usual.row) and (
                    lane.engine in ran
                    or engine_match(
                        [kernels.facts[row] for row in usual.row.tolist()], engines[lane.engine]
                    ).accepted
                ):
                    learnt.append((len(runs), usual))
                    chances.append(chance)
        whole = [
            Form(number, usual, chances[at])
            for at, (runs_of_it, usual) in enumerate(learnt)
            if not any(
                is_part(other, runs_of_other, usual, runs_of_it, lane.layers)
                for place, (runs_of_other, other) in enumerate(learnt)
                if place != at
            )
        ]
        found.extend(whole)
        if not whole:
            found.append(Form(number))
    return tuple(found)


def _placed_together(
    kernels: StreamKernels,
    lane: Lane,
    runs: Runs,
    members: Sequence[int],
    engines: Sequence[Engine],
) -> tuple[Runs, FloatArray | None]:
    """The runs with their kernels placed where most runs launch them, aligned once, and the
    certainty of each kernel's layer.

    A run that lacks kernels says less of where the others belong than all runs together do.  Where
    layers may run any number of kernels each run is left as it is, with no chance.
    """
    if any(layer.kind in ANY_NUMBER for layer in lane.layers):
        return runs, None
    some = [
        members[at]
        for at in (
            np.linspace(0, len(members) - 1, min(len(members), _TOGETHER)).astype(np.int64).tolist()
        )
    ]
    items = {run: _items(runs, run) for run in {*some, *members}}
    names = {run: tuple(lane.scores.name[kernels.row[items[run]]].tolist()) for run in items}
    together = common_sequence([names[run] for run in some])
    rows: list[Counter[int]] = [Counter() for _ in together]
    places = {run: common_places(together, names[run]) for run in items}
    for run in some:
        for mine, its in places[run]:
            rows[mine][int(kernels.row[items[run][its]])] += 1
    facts = [kernels.facts[row.most_common(1)[0][0]] for row in rows if row]
    if not facts or len(facts) < len(rows):
        return runs, None
    path = place_in_order(facts, engines[lane.engine], lane.layers)
    if (path.slot < 0).any():
        return runs, None
    slot = runs.slot.copy()
    for run, held in items.items():
        found = np.full(len(held), -1, np.int64)
        for place, its in places[run]:
            found[its] = path.slot[place]
        slot[held] = found
    chance = np.ones(len(lane.layers))
    np.minimum.at(chance, path.slot, path.chance)
    return replace(runs, slot=slot), chance


def _items(runs: Runs, run: int) -> IntArray:
    """The kernels of a run that are in a layer."""
    items = np.arange(int(runs.first[run]), int(runs.last[run]) + 1)
    return items[runs.slot[items] >= 0]


def _formed(
    stream: Stream, lanes: Sequence[Lane], forms: Sequence[Form], judged: _Judged
) -> Stream:
    """Aligns the stream again with one track per form and with what is known of foreign kernels."""
    plain = [form for form in forms if form.usual is None]
    own = replace(stream, tracks=tuple(stream.tracks[form.lane] for form in plain))
    tracks = iter(own.tracks)
    ran = np.zeros(len(stream.between), np.bool_)
    made = []
    for form in forms:
        made.append(
            next(tracks)
            if form.usual is None
            else usual_track(lanes[form.lane].scores, lanes[form.lane].layers, form.usual)
        )
        if form.usual is not None:
            ran[form.usual.row] = True
    outside = run_of(kept(judged.runs, judged.believed), len(stream.row)) < 0
    often = np.bincount(stream.row[outside], minlength=len(ran)) >= _RECURS
    between = np.where(often & ~ran, np.maximum(stream.between, _OUTSIDE), stream.between)
    return replace(stream, tracks=tuple(made), between=between)


# --- which runs are believed
# ----------------------------------------------------------------------------------------


def _signature(stream_row: IntArray, runs: Runs, at: int, slots: int) -> Signature:
    cells: list[list[int]] = [[] for _ in range(2 * slots)]
    place = 0
    for item in range(int(runs.first[at]), int(runs.last[at]) + 1):
        slot = int(runs.slot[item])
        if slot >= 0:
            place = slot
        cells[2 * place + (slot < 0)].append(int(stream_row[item]))
    return tuple(tuple(cell) for cell in cells)


def _usual_signature(usual: Usual, slots: int) -> Signature:
    cells: list[list[int]] = [[] for _ in range(2 * slots)]
    for row, slot in zip(usual.row.tolist(), usual.slot.tolist(), strict=True):
        cells[2 * slot].append(row)
    return tuple(tuple(cell) for cell in cells)


@dataclass
class _Group:
    lane: int
    runs: list[int]
    cells: list[Counter[tuple[int, ...]]]
    usual: Signature | None = None

    def consensus(self) -> Signature:
        """What the runs of this kind mostly launch."""
        return (
            self.usual
            if self.usual is not None
            else tuple(cell.most_common(1)[0][0] for cell in self.cells)
        )


@dataclass(frozen=True)
class _Judged:
    runs: Runs
    kind: IntArray  # per run, -1: no engine's
    kinds: tuple[RunKind, ...]
    usual: tuple[tuple[int, Signature], ...]  # per kind its lane, and what its runs mostly do

    @property
    def believed(self) -> BoolArray:
        """Marks the runs whose engines are accepted as having run them."""
        return np.array([*(one.believed for one in self.kinds), False], np.bool_)[self.kind]


def _judged(
    kernels: StreamKernels,
    lanes: Sequence[Lane],
    runs: Runs,
    engines: Sequence[Engine],
    forms: Sequence[Form] | None = None,
) -> _Judged:
    """The kind of each run, and whether its engine ran that kind; ``forms`` if the tracks are not
    lanes.
    """
    kind = np.full(len(runs.track), -1, np.int64)
    groups: list[_Group] = []
    name = lanes[0].scores.name.tolist()
    for number, lane in enumerate(lanes):
        mine = np.flatnonzero(runs.track == number).tolist()
        signature = {at: _signature(kernels.row, runs, at, len(lane.layers)) for at in mine}
        often = Counter(signature.values())
        whole = [at for at in mine if not _maybe_cut(runs, at, len(kernels.row))]
        rest = [at for at in mine if at not in set(whole)]
        own: list[_Group] = []
        known = forms[number].usual if forms is not None else None
        if known is not None:
            own.append(
                _Group(
                    number,
                    [],
                    [Counter() for _ in range(2 * len(lane.layers))],
                    _usual_signature(known, len(lane.layers)),
                )
            )
        for at in [*sorted(whole, key=lambda one: (-often[signature[one]], one)), *rest]:
            group = _nearest(own, signature[at], name, cut=at in rest)
            if group is None:
                group = _Group(number, [], [Counter() for _ in range(2 * len(lane.layers))])
                own.append(group)
            group.runs.append(at)
            for cell, value in zip(group.cells, signature[at], strict=True):
                cell[value] += 1
        groups.extend(group for group in own if group.runs)
    for number, group in enumerate(groups):
        kind[group.runs] = number
    usual = tuple((group.lane, group.consensus()) for group in groups)
    kinds = _kinds(kernels, lanes, groups, engines)
    found = _without_windows(kernels, lanes[0].scores.foreign, _Judged(runs, kind, kinds, usual))
    return _without_parts(kernels.row, lanes[0].scores.foreign, found)


def _without_windows(kernels: StreamKernels, foreign: BoolArray, judged: _Judged) -> _Judged:
    """Lowers the probability of kinds supported by little but layer names to what the ends of their
    runs allow: a part of a longer inference, of another or the same engine, may fit them by chance.
    """
    kinds = list(judged.kinds)
    speaks = ~foreign[kernels.row]
    strange = speaks & (run_of(kept(judged.runs, judged.believed), len(speaks)) < 0)
    speaks, strange = (np.concatenate([[False], one, [False]]) for one in (speaks, strange))
    for at, one in enumerate(judged.kinds):
        by_names = one.match.tactics is None
        weak = one.match.accepted and one.match.probability < _CLEAR
        if not one.believed or not (by_names or weak):
            continue
        mine = judged.kind == at
        first, last = judged.runs.first[mine], judged.runs.last[mine]
        beside = strange if by_names else speaks
        told = np.array([beside[first].mean() > _MOSTLY, beside[last + 2].mean() > _MOSTLY])
        tells = ends_tell(kernels.gap_ns, kernels.waits | kernels.copies, first, last, told)
        odds = one.match.probability / max(1 - one.match.probability, 1e-9) * tells
        probability = odds / (1 + odds)
        match = replace(
            one.match,
            probability=probability,
            accepted=one.match.accepted and probability >= LIKELIER,
        )
        kinds[at] = replace(one, match=match, believed=probability >= LIKELIER)
    return replace(judged, kinds=tuple(kinds))


def _cut_to_known(
    kernels: StreamKernels, lanes: Sequence[Lane], judged: _Judged, engines: Sequence[Engine]
) -> _Judged:
    """Cuts runs that no engine can have run to what a proven kind of the lane launches, if they
    contain it.
    """
    name, runs, slot = lanes[0].scores.name[kernels.row], judged.runs, judged.runs.slot.copy()
    first, last = runs.first.copy(), runs.last.copy()
    unknown = ~judged.believed
    for kind, (lane, signature) in zip(judged.kinds, judged.usual, strict=True):
        known = [(int(lanes[0].scores.name[row]), place) for row, place in in_slots(signature)]
        for at in (
            np.flatnonzero(unknown & (runs.track == lane)).tolist()
            if kind.believed and kind.match.accepted
            else []
        ):
            items = np.arange(runs.first[at], runs.last[at] + 1)
            found = within(name[items].tolist(), known)
            if found is not None:
                slot[items] = found
                first[at], last[at] = items[found >= 0][0], items[found >= 0][-1]
    if (slot == runs.slot).all():
        return judged
    return _judged(kernels, lanes, replace(runs, first=first, last=last, slot=slot), engines)


def _without_parts(row: IntArray, foreign: BoolArray, judged: _Judged) -> _Judged:
    """Drops kinds that are a part of what another engine runs.

    Nothing but its likeness to the engine's own kinds speaks for such a kind, and most of its runs
    stand beside a kernel of TensorRT that no run explains, and beside which the engine's own never
    stand.
    """
    explained = foreign[row] | (run_of(kept(judged.runs, judged.believed), len(row)) >= 0)
    beside = neighbours(
        row,
        judged.runs,
        judged.kind,
        len(judged.kinds),
        overlooked=foreign,
        explained=explained,
    )
    kinds = list(judged.kinds)
    for at, one in enumerate(judged.kinds):
        own = [
            other
            for other, known in enumerate(judged.kinds)
            if known.engine == one.engine and known.match.accepted
        ]
        strange = (
            where
            for where, times in beside[at].items()
            if 2 * times > one.runs and not any(beside[other][where] for other in own)
        )
        if own and one.believed and not one.match.accepted and next(strange, None) is not None:
            kinds[at] = replace(one, believed=False)
    return replace(judged, kinds=tuple(kinds))


def _told_apart(
    kernels: StreamKernels, lanes: Sequence[Lane], judged: _Judged, engines: Sequence[Engine]
) -> _Judged:
    """Moves each run to its own engine's lane where several engines have the same layers."""
    track, told_kinds = judged.runs.track.copy(), list(judged.kinds)
    launched = [[kernels.facts[row] for cell in usual for row in cell] for _, usual in judged.usual]
    ran = (
        (kind.engine, facts)
        for kind, facts in zip(judged.kinds, launched, strict=True)
        if kind.believed
    )
    for twins in twins_in(ran, engines):
        mine = [at for at, one in enumerate(judged.kinds) if one.believed and one.engine in twins]
        sequences = [_ran(kernels, lanes[judged.usual[at][0]], judged.usual[at][1]) for at in mine]
        for at, engine in zip(
            mine, which_ran(sequences, [engines[number] for number in twins]), strict=True
        ):
            order = [layer.index for layer in lanes[judged.usual[at][0]].layers]
            either = engine is None and do_the_same([engines[number] for number in twins])
            wanted = twins[engine or 0] if either or engine is not None else None
            own = [
                number
                for number, lane in enumerate(lanes)
                if lane.engine == wanted and [layer.index for layer in lane.layers] == order
            ]
            told = judged.kinds[at]
            if own:
                track[judged.kind == at] = own[0]
                told = replace(told, engine=lanes[own[0]].engine)
            if not own or either:
                told = replace(told, several=tuple(twins), shown=bool(own))
            told_kinds[at] = told
    return replace(judged, runs=replace(judged.runs, track=track), kinds=tuple(told_kinds))


def _ran(kernels: StreamKernels, lane: Lane, usual: Signature) -> list[Ran]:
    return [
        Ran(lane.layers[at // 2].index, kernels.facts[row].name, kernels.facts[row].duration_ns)
        for at in range(0, len(usual), 2)
        for row in usual[at]
    ]


def _maybe_cut(runs: Runs, at: int, count: int) -> bool:
    return at == 0 or (at == len(runs.track) - 1 and int(runs.last[at]) == count - 1)


def _nearest(
    groups: Sequence[_Group], signature: Signature, name: Sequence[int], *, cut: bool
) -> _Group | None:
    """The group of runs that this one resembles most; None if it resembles none."""
    distances = [distance(signature, group.consensus(), name, cut=cut) for group in groups]
    best = min(range(len(groups)), key=distances.__getitem__, default=-1)
    return groups[best] if best >= 0 and distances[best] < _LIKE else None


def _kinds(
    kernels: StreamKernels,
    lanes: Sequence[Lane],
    groups: Sequence[_Group],
    engines: Sequence[Engine],
) -> tuple[RunKind, ...]:
    found = []
    name = lanes[0].scores.name.tolist()
    for group in groups:
        sequence = [row for cell in group.consensus() for row in cell]
        number = lanes[group.lane].engine
        match = engine_match([kernels.facts[row] for row in sequence], engines[number])
        found.append(
            RunKind(
                number,
                len(group.runs),
                match,
                match.accepted,
                match.undecided
                and len(group.runs) > (1 if engines[number].detailed else LEAST_ALIKE - 1),
            )
        )
    other_code = _run_other_code(found)
    found = [
        replace(kind, believed=kind.believed and not other, unproved=kind.unproved and not other)
        for kind, other in zip(found, other_code, strict=True)
    ]
    proved: dict[int, int] = {}  # and its first run
    for group, kind in zip(groups, found, strict=True):
        if kind.believed:
            first = min(group.runs)
            proved[kind.engine] = min(first, proved.get(kind.engine, first))
    result = []
    for group, kind, other in zip(groups, found, other_code, strict=True):
        near = (
            kind.engine in proved
            and not other
            and kind.match.evidence > 0
            and _is_near(group, kind, groups, found, name)
            and may_run_this(
                kind.match, engines[kind.engine], before=max(group.runs) < proved[kind.engine]
            )
        )
        alone = kind.unproved and not kind.believed and not any(other.believed for other in found)
        other_work = not _does_the_same(group, kind, groups, found, lanes)
        result.append(
            replace(
                kind, believed=(kind.believed or near or alone) and not other_work, unproved=alone
            )
        )
    return tuple(result)


def _run_other_code(kinds: Sequence[RunKind]) -> list[bool]:
    """Marks the kinds that ran kernels of other operations where their engine's code was generated,
    unlike another kind of the engine: a layer runs the same operations at any shape.
    """
    shown = {
        kind.engine
        for kind in kinds
        if kind.match.probability >= LIKELIER and (kind.match.code or 0.0) >= _SAME_CODE
    }
    return [
        kind.engine in shown and kind.match.code is not None and kind.match.code < _SAME_CODE
        for kind in kinds
    ]


def _does_the_same(
    group: _Group,
    kind: RunKind,
    groups: Sequence[_Group],
    kinds: Sequence[RunKind],
    lanes: Sequence[Lane],
) -> bool:
    """Whether a kind that is mostly in opaque layers does the same as the engine's most frequent
    kind (if possible a proven one): the network is the same in each.
    """
    proved = any(other.engine == kind.engine and other.match.accepted for other in kinds)
    sizes = [
        other.runs * sum(map(len, mine.consensus()))
        if other.engine == kind.engine and (other.match.accepted or not proved)
        else -1
        for mine, other in zip(groups, kinds, strict=True)
    ]
    at = int(np.argmax(sizes))
    usual, known = groups[at], kinds[at].believed or kinds[at].unproved
    lane, cells = lanes[group.lane], group.consensus()
    inside = sum(
        len(cell) for place, cell in enumerate(cells) if lane.layers[place // 2].kind in ANY_NUMBER
    )
    if usual is group or not known or inside <= sum(map(len, cells)) / 2:
        return True
    work = lane.scores.like
    mine, theirs = (
        work[[row for cell in one.consensus() for row in cell]] for one in (group, usual)
    )
    return len(common_places(mine.tolist(), theirs.tolist())) >= _SAME_SHARE * max(
        len(mine), len(theirs)
    )


def _is_near(
    group: _Group,
    kind: RunKind,
    groups: Sequence[_Group],
    found: Sequence[RunKind],
    name: Sequence[int],
) -> bool:
    """Whether an engine that certainly ran also ran this: a warm-up, another kernel sequence, or a
    single damaged run.
    """
    explained = min(kind.match.placed, kind.match.used)
    if kind.runs > 1 or explained >= _NEAR:
        # what several runs have in common lacks nothing by chance
        return explained >= (ACCEPTED if kind.runs > 1 else _NEAR)
    mine = group.consensus()
    like = {
        believed: min(
            (
                distance(mine, other.consensus(), name, cut=True)
                for other, judged in zip(groups, found, strict=True)
                if other.lane == group.lane and judged.believed == believed and other is not group
            ),
            default=1.0,
        )
        for believed in (True, False)
    }
    return explained >= _DAMAGED and like[True] < min(_DAMAGED_LIKE, like[False])
