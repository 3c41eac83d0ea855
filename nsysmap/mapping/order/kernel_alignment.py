"""Aligns the kernels of one inference with the layers of an engine, in order, and says how certain
each kernel's layer is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.engine_odds import engine_odds
from nsysmap.mapping.order.scores import (
    ANY_NUMBER,
    SPEAKS,
    KernelFacts,
    Scores,
    habits,
    profile_of,
    score,
    surely_run,
    times,
)
from nsysmap.mapping.order.sequence_alignment import (
    AlignmentCosts,
    Path,
    best_path,
    evidence,
    likely_slots,
)
from nsysmap.network.execution_order import execution_orders
from nsysmap.network.loops import loops_in, unrolled

__all__ = [
    "Alignment",
    "EngineMatch",
    "KernelFacts",
    "align_inference",
    "engine_match",
    "has_fixed_shapes",
    "may_run_this",
    "place_in_order",
]

SURE = 0.5
"""Below this confidence a kernel's layer is left empty."""
ACCEPTED = 0.95
"""Least share of kernels placed and of layers used for an engine to be taken as the one that ran.
Measured on the captures: 1.00 for the right engine, 0.93 at most for a wrong one."""
_ROUNDS = 2  # alignments that learn from the one before
_DOUBTFUL = 0.9  # below this confidence the reason says what else it could be
_PINNED = 50.0  # nats: what is known by other evidence
_SHUFFLES = 3  # of the kernels: how well the layers explain any order of them
_REPEATS = 0.9  # share of the kernels of a loop's layers that are the layer's usual one
_SAME_SHAPE = 0.1
"""If at least this share of the distinct tactics ran, the shape is the file's: at another shape 1
of 44 did (and of files for another batch size none of 74).
"""
LIKELIER = 0.5
"""Least probability that the file's engine ran rather than another of the same structure."""
# nats over the whole inference, and for each of its kernels
_BETTER_THAN_CHANCE, _BETTER_PER_KERNEL = (
    5.0,
    0.3,
)
_SPEAKS = 0.25  # nats a kernel: on the whole the names must speak for their layers


@dataclass(frozen=True)
class Alignment:
    """One entry per kernel of the inference, in launch order."""

    layer: IntArray  # layer index in the engine, -1 for none
    confidence: FloatArray  # probability, 0 to 1
    rival: IntArray  # the likeliest other layer's index, -1 for none
    rival_confidence: FloatArray
    explained: BoolArray  # the kernel's name speaks for that layer; otherwise its place alone does
    by_tactic: BoolArray  # the kernel's name is that layer's tactic
    # left out, and nothing in its name speaks of TensorRT: the application's own
    foreign: BoolArray
    # indexes of the layers that it was aligned with, in the order in which they run
    order: tuple[int, ...]
    # log of the sum over all alignments, nats: comparable between engines for the same kernels
    evidence: float

    def part(self, begin: int, end: int) -> Alignment:
        """The alignment restricted to the kernels from ``begin`` up to ``end``, which a cut
        inference ran.
        """
        return Alignment(
            self.layer[begin:end],
            self.confidence[begin:end],
            self.rival[begin:end],
            self.rival_confidence[begin:end],
            self.explained[begin:end],
            self.by_tactic[begin:end],
            self.foreign[begin:end],
            self.order,
            self.evidence,
        )

    def reason(self, position: int, engine: Engine) -> str | None:
        """Why that kernel's layer is empty or unsure: the two best candidates. None if it
        is sure.
        """
        layer, rival = int(self.layer[position]), int(self.rival[position])
        chance, rival_chance = (
            float(self.confidence[position]),
            float(self.rival_confidence[position]),
        )
        other = (
            f"{engine.layers[rival].name} ({rival_chance:.0%})"
            if rival >= 0
            else f"no layer at all ({rival_chance:.0%})"
        )
        if layer < 0:
            return f"no layer of the engine fits at this position; the likeliest is {other}"
        return (
            f"by order it is {engine.layers[layer].name} ({chance:.0%}), or {other}"
            if chance < _DOUBTFUL
            else None
        )


def align_inference(
    kernels: Sequence[KernelFacts],
    engine: Engine,
    *,
    cut: tuple[bool, bool] = (False, False),
    pins: IntArray | None = None,
) -> Alignment:
    """Aligns the kernels of one inference, given in launch order, with the engine's layers.

    ``cut``: the inference lacks its first, its last kernels.  ``pins``: for each kernel the index
    of the layer that it is known to
    belong to, -1 where none is.
    Aligned with each optimization profile's layers in each order that they can run in; what
    explains the kernels best is taken.
    """
    best: Alignment | None = None
    for layers in optimization_profiles(engine):
        for number, order in enumerate(execution_orders(layers)):
            written_out = unrolled(layers, order, _trips(len(kernels), engine, layers, order))
            found = _align(kernels, engine, [layers[at] for at in written_out], cut=cut, pins=pins)
            if best is None or found.evidence > best.evidence + (0.5 if number else 0.0):
                best = found
    assert best is not None  # an engine has layers, and a list of layers an order
    return best


def _trips(kernels: int, engine: Engine, layers: Sequence[Layer], order: Sequence[int]) -> int:
    """How often loops of unknown trip count must run for an inference of that many kernels."""
    unknown = [loop for loop in loops_in(layers, order) if loop.trips is None]
    if not unknown:
        return 1
    once, twice = (
        int(surely_run(engine, [layers[at] for at in unrolled(layers, order, trips)]).sum())
        for trips in (1, 2)
    )
    return max(1, 1 + round((kernels - once) / max(twice - once, 1)))


def optimization_profiles(engine: Engine) -> list[tuple[Layer, ...]]:
    """The layers of each optimization profile; an inference runs those of one profile."""
    profiles = sorted(
        {
            layer.optimization_profile
            for layer in engine.layers
            if layer.optimization_profile is not None
        }
    )
    if len(profiles) < 2:
        return [engine.layers]
    return [
        tuple(layer for layer in engine.layers if layer.optimization_profile in (None, profile))
        for profile in profiles
    ]


def _align(
    kernels: Sequence[KernelFacts],
    engine: Engine,
    layers: Sequence[Layer],
    *,
    cut: tuple[bool, bool],
    pins: IntArray | None,
) -> Alignment:
    return _alignment(*_likeliest(kernels, engine, layers, cut=cut, pins=pins), layers)


def place_in_order(kernels: Sequence[KernelFacts], engine: Engine, layers: Sequence[Layer]) -> Path:
    """Aligns the kernels of one inference with the given layers in exactly that order."""
    return _likeliest(kernels, engine, layers, cut=(False, False), pins=None)[0]


def _likeliest(
    kernels: Sequence[KernelFacts],
    engine: Engine,
    layers: Sequence[Layer],
    *,
    cut: tuple[bool, bool],
    pins: IntArray | None,
) -> tuple[Path, Scores]:
    scores = score(kernels, engine, layers)
    fixed = _pinned(pins, len(kernels), layers)
    profile = profile_of(engine, layers)
    timed = any(profile) and any(kernel.duration_ns > 0 for kernel in kernels)
    by_kernel = timed or fixed is not None
    row = np.arange(len(kernels)) if by_kernel else scores.row
    match = (
        scores.match[scores.row] + (0.0 if fixed is None else fixed) if by_kernel else scores.match
    )
    more, drop = (
        (scores.more[scores.row], scores.drop[scores.row])
        if by_kernel
        else (scores.more, scores.drop)
    )
    costs = AlignmentCosts(match, row, scores.skip, more, drop, *cut)
    for _ in range(_ROUNDS):
        slot, chance = likely_slots(costs)
        habit = habits(scores, chance)
        if by_kernel:
            habit = habit[scores.row] + (times(kernels, profile, slot) if timed else 0.0)
        costs = replace(costs, match=match + habit)
    return best_path(costs), scores


def _pinned(pins: IntArray | None, kernels: int, layers: Sequence[Layer]) -> FloatArray | None:
    """The bonus that keeps kernels in their layer if it is known; None if none is known."""
    if pins is None or not (pins >= 0).any():
        return None
    index = np.array([layer.index for layer in layers])
    return np.where(
        pins[:, None] < 0, 0.0, np.where(pins[:, None] == index[None, :], _PINNED, -_PINNED)
    ).reshape(kernels, len(layers))


def _alignment(path: Path, scores: Scores, layers: Sequence[Layer]) -> Alignment:
    index = np.array([*(layer.index for layer in layers), -1], np.int64)
    placed = path.slot >= 0
    at = np.maximum(path.slot, 0)
    again = placed & np.concatenate([[False], path.slot[1:] == path.slot[:-1]])
    return Alignment(
        layer=index[path.slot],
        confidence=path.chance,
        rival=index[path.rival],
        rival_confidence=path.rival_chance,
        explained=placed
        & ((scores.match[scores.row, at] >= SPEAKS) | (again & scores.helps[scores.row, at])),
        by_tactic=placed & scores.tactic[scores.row, at],
        foreign=~placed & scores.foreign[scores.row],
        order=tuple(layer.index for layer in layers),
        evidence=path.evidence,
    )


@dataclass(frozen=True)
class EngineMatch:
    """How well an engine explains the kernels of one inference; the shares are 0 to 1."""

    # of the engine's kernels (not the application's own): in a layer that is theirs alone, or that
    # they suit by name
    placed: float
    used: float  # of the layers that must run kernels: got one
    # of the layers with a tactic: got a kernel of that name, or of code that may be the same; None
    # without tactics
    tactics: float | None
    evidence: float  # nats a kernel, for the kernels as they ran
    by_chance: float  # the same for the kernels in random order, mean of several
    accepted: bool
    # nothing speaks against it, but as much could be said of the same kernels in any order
    undecided: bool = False
    # that this engine ran, and not another of the same structure: by the names of its kernels
    probability: float = 1.0
    ran: float = 0.0  # share of the distinct tactics that name the kernels which ran
    # share of the layers of generated code that ran code of the same operations; None without any
    code: float | None = None

    @property
    def share(self) -> float:
        """The smallest of the shares: the rest is what this engine leaves unexplained."""
        return min(self.placed, self.used, 1.0 if self.tactics is None else self.tactics)


def engine_match(
    kernels: Sequence[KernelFacts], engine: Engine, *, cut: tuple[bool, bool] = (False, False)
) -> EngineMatch:
    """How well this engine explains these kernels of one inference, given in launch order; ``cut``
    is as for align_inference.

    A wrong engine leaves kernels over or layers without any, names other tactics, or does no better
    than for the kernels in random order.
    """
    found = align_inference(kernels, engine, cut=cut)
    layers = [engine.layers[at] for at in _passed(found, cut)]
    scores = score(kernels, engine, [engine.layers[at] for at in found.order])
    in_order, by_chance = _against_chance(scores, cut)
    got = set(found.layer.tolist())
    first = _first(found)
    must = [
        layer.index
        for layer, runs in zip(layers, surely_run(engine, layers).tolist(), strict=True)
        if runs
    ]
    ran: dict[int, list[KernelFacts]] = {}
    for kernel, at in zip(kernels, found.layer.tolist(), strict=True):
        ran.setdefault(at, []).append(kernel)
    odds = engine_odds(ran, layers, engine)
    count = max(len(kernels), 1)
    match = EngineMatch(
        placed=(
            float((first | _own(found, engine, scores))[~found.foreign].mean())
            if not found.foreign.all()
            else 0.0
        ),
        used=sum(at in got for at in must) / len(must) if must else 1.0,
        tactics=odds.tactics,
        evidence=in_order / count,
        by_chance=by_chance / count,
        accepted=False,
        probability=odds.probability,
        ran=odds.ran,
        code=odds.code,
    )
    same = (
        min(match.placed, match.used) >= ACCEPTED
        and odds.probability >= LIKELIER
        and _loops_repeat(found.order, ran)
    )
    better = in_order - by_chance >= max(_BETTER_THAN_CHANCE, _BETTER_PER_KERNEL * count)
    speaks = same and match.evidence >= _SPEAKS
    return replace(match, accepted=speaks and better, undecided=speaks and not better)


def _loops_repeat(order: Sequence[int], ran: Mapping[int, Sequence[KernelFacts]]) -> bool:
    """Whether the layers inside a loop mostly ran the same kernel on each trip; otherwise a loop of
    unknown length could absorb another engine's kernels.
    """
    again = [layer for layer, times in Counter(order).items() if times > 1 and ran.get(layer)]
    names = [Counter(kernel.name for kernel in ran[layer]) for layer in again]
    usual = sum(max(found.values()) for found in names)
    return usual >= _REPEATS * sum(found.total() for found in names)


def may_run_this(match: EngineMatch, engine: Engine, *, before: bool) -> bool:
    """Whether an engine known to have run may also have run these other kernels: a warm-up, which
    comes ``before`` the inferences it is known by, or another shape.

    Code is compiled for a shape: where symbols that ran are the file's, its shape ran, and what
    ran beside them and is not the file's code is not this engine's.
    """
    return (
        before
        or match.probability >= LIKELIER
        or match.ran < _SAME_SHAPE
        or not has_fixed_shapes(engine)
    )


def has_fixed_shapes(engine: Engine) -> bool:
    """Whether the file gives shapes and all of them are fixed."""
    shapes = [
        tensor.dimensions
        for layer in engine.layers
        for tensor in (*layer.inputs, *layer.outputs)
        if tensor.dimensions
    ]
    return bool(shapes) and all(min(shape) >= 0 for shape in shapes)


def _first(found: Alignment) -> BoolArray:
    """Marks the kernels that are the first of a layer, in each of the layer's runs in
    this order.
    """
    at = np.arange(len(found.order))
    first = np.zeros(len(found.layer), np.bool_)
    where = np.array(found.order, np.int64)
    slot = -1
    for place, layer in enumerate(found.layer.tolist()):
        if layer < 0 or (slot >= 0 and where[slot] == layer):
            continue
        slot = int(at[(at > slot) & (where == layer)][0])
        first[place] = True
    return first


def _own(found: Alignment, engine: Engine, scores: Scores) -> BoolArray:
    """Marks the kernels whose names identify them as their layer's: the first such kernel of a
    layer, and all of them in layers that may run any number.
    """
    place = {at: number for number, at in enumerate(found.order)}
    own = np.zeros(len(found.layer), np.bool_)
    spoken: set[int] = set()
    for at in np.flatnonzero(found.explained).tolist():
        layer = int(found.layer[at])
        row, column = scores.row[at], place[layer]
        any_number = engine.layers[layer].kind in ANY_NUMBER or bool(scores.helps[row, column])
        own[at] = any_number or layer not in spoken
        if scores.match[row, column] >= SPEAKS:
            spoken.add(layer)
    return own


def _against_chance(scores: Scores, cut: tuple[bool, bool]) -> tuple[float, float]:
    """The evidence of the kernels in their actual order, and its mean over random orders of the
    same kernels.
    """
    costs = AlignmentCosts(scores.match, scores.row, scores.skip, scores.more, scores.drop, *cut)
    mixed = np.random.default_rng(20260104)
    shuffled = [
        evidence(replace(costs, row=mixed.permutation(scores.row))) for _ in range(_SHUFFLES)
    ]
    return evidence(costs), float(np.mean(shuffled))


def _passed(found: Alignment, cut: tuple[bool, bool]) -> tuple[int, ...]:
    """The layers that the inference went through: all, except those before its first or after its
    last kernel where it is cut.
    """
    place = {at: number for number, at in enumerate(found.order)}
    reached = [place[at] for at in found.layer.tolist() if at >= 0]
    if not reached:
        return found.order
    return found.order[
        min(reached) if cut[0] else 0 : max(reached) + 1 if cut[1] else len(found.order)
    ]
