"""Aligns the kernels of one inference with the layers of an engine, in order, and says how sure each kernel's layer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsysmap.lattice import Costs, Path, best_path, likeliest
from nsysmap.model import Engine, Layer
from nsysmap.order import execution_orders
from nsysmap.scores import KernelFacts, Scores, habits, score, times
from nsysmap.tables import BoolArray, FloatArray, IntArray

__all__ = ["Alignment", "EngineMatch", "KernelFacts", "align_inference", "engine_match"]

SURE = 0.5
"""Below this confidence a kernel's layer is left empty."""
ACCEPTED = 0.9
"""Least share of kernels placed, layers used and tactics met for an engine to be taken as the one that ran."""
ROUNDS = 2  # alignments that learn from the one before
_SHUFFLES = 3
_ENOUGH_TACTICS = 0.3  # of the layers that run kernels: fewer say little about the engine
_BETTER_THAN_CHANCE = 10.0  # nats over the whole inference
_SPEAKS = 0.25  # nats a kernel: on the whole the names must speak for their layers
_EXPLAINS = 1.0  # nats from which on a kernel's name speaks for its layer


@dataclass(frozen=True)
class Alignment:
    """One entry a kernel of the inference, in launch order."""

    layer: IntArray  # layer index in the engine, -1 for none
    confidence: FloatArray  # probability, 0 to 1
    rival: IntArray  # the likeliest other layer's index, -1 for none
    rival_confidence: FloatArray
    explained: BoolArray  # the kernel's name speaks for that layer; otherwise its place alone does
    by_tactic: BoolArray  # the kernel's name is that layer's tactic
    evidence: float  # log of the sum over all alignments, nats: comparable between engines for the same kernels

    def reason(self, position: int, engine: Engine) -> str | None:
        """Why that kernel's layer is left empty or unsure: the two best candidates; None where it is sure."""
        if self.confidence[position] >= 0.9:
            return None
        names = [
            f"{engine.layers[at].name} ({chance:.0%})" if at >= 0 else f"no layer ({chance:.0%})"
            for at, chance in (
                (int(self.layer[position]), float(self.confidence[position])),
                (int(self.rival[position]), float(self.rival_confidence[position])),
            )
        ]
        return f"by order it is {names[0]} or {names[1]}"


def align_inference(
    kernels: Sequence[KernelFacts], engine: Engine, *, cut_start: bool = False, cut_end: bool = False, rounds: int = ROUNDS
) -> Alignment:
    """The layers of the kernels of one inference, given in launch order.

    ``rounds``: how often what was learnt of the kernels' habits and times is used to align again.
    Aligned with each optimisation profile's layers in each order that they can run in; what explains the kernels best is taken.
    """
    best: Alignment | None = None
    for layers in _profiles(engine):
        for number, order in enumerate(execution_orders(layers)):
            found = _align(kernels, engine, [layers[at] for at in order], _How(cut_start, cut_end, rounds))
            if best is None or found.evidence > best.evidence + (0.5 if number else 0.0):
                best = found
    assert best is not None  # an engine has layers, and a list of layers an order
    return best


@dataclass(frozen=True)
class _How:
    cut_start: bool
    cut_end: bool
    rounds: int


def _profiles(engine: Engine) -> list[tuple[Layer, ...]]:
    """The layers of each optimisation profile: an inference runs those of one."""
    profiles = sorted({layer.profile for layer in engine.layers if layer.profile is not None})
    if len(profiles) < 2:
        return [engine.layers]
    return [tuple(layer for layer in engine.layers if layer.profile in (None, profile)) for profile in profiles]


def _align(kernels: Sequence[KernelFacts], engine: Engine, layers: Sequence[Layer], how: _How) -> Alignment:
    scores = score(kernels, engine, layers)
    costs = Costs(scores.match, scores.row, scores.skip, scores.more, scores.drop, how.cut_start, how.cut_end)
    profile = [engine.profile_ns[layer.index] if layer.index < len(engine.profile_ns) else None for layer in layers]
    timed = any(profile) and any(kernel.duration_ns > 0 for kernel in kernels)
    for _ in range(how.rounds):
        slot, _ = likeliest(costs)
        match = scores.match + habits(scores, slot)
        if timed:
            costs = replace(costs, match=match[scores.row] + times(kernels, profile, slot), row=np.arange(len(kernels)))
        else:
            costs = replace(costs, match=match)
    return _alignment(best_path(costs), scores, layers)


def _alignment(path: Path, scores: Scores, layers: Sequence[Layer]) -> Alignment:
    index = np.array([*(layer.index for layer in layers), -1], np.int64)
    placed = path.slot >= 0
    at = np.maximum(path.slot, 0)
    return Alignment(
        layer=index[path.slot],
        confidence=path.chance,
        rival=index[path.rival],
        rival_confidence=path.rival_chance,
        explained=placed & (scores.match[scores.row, at] >= _EXPLAINS),
        by_tactic=placed & scores.tactic[scores.row, at],
        evidence=path.evidence,
    )


@dataclass(frozen=True)
class EngineMatch:
    """How well an engine explains the kernels of one inference; the shares are 0 to 1."""

    placed: float  # of the kernels: in a layer that is theirs alone, or that they suit by name
    used: float  # of the layers that must run kernels: got one
    tactics: float | None  # of the layers with a tactic: got a kernel of that name; None for an engine file without (enough) tactics
    evidence: float  # nats a kernel, for the kernels as they ran
    by_chance: float  # the same for the kernels in random order, mean of several
    accepted: bool

    @property
    def share(self) -> float:
        """The least of the shares: what this engine leaves unexplained is the rest."""
        return min(self.placed, self.used, 1.0 if self.tactics is None else self.tactics)


def engine_match(kernels: Sequence[KernelFacts], engine: Engine) -> EngineMatch:
    """Whether this engine can have run these kernels (all of one complete inference, in launch order).

    A wrong engine leaves kernels over or layers without any, names other tactics, or does no better than for the kernels in random order.
    """
    found = align_inference(kernels, engine)
    layers = next(
        (group for group in _profiles(engine) if {int(at) for at in found.layer} <= {-1, *(one.index for one in group)}), engine.layers
    )
    scores = score(kernels, engine, layers)
    in_order = align_inference(kernels, engine, rounds=0).evidence
    mixed = np.random.default_rng(20260104)
    shuffled = [[kernels[at] for at in mixed.permutation(len(kernels)).tolist()] for _ in range(_SHUFFLES)]
    by_chance = float(np.mean([align_inference(order, engine, rounds=0).evidence for order in shuffled]))
    got = set(found.layer.tolist())
    first = np.array([at >= 0 and at not in found.layer[:place].tolist() for place, at in enumerate(found.layer.tolist())], np.bool_)
    must = [layer.index for layer, runs in zip(layers, scores.runs.tolist(), strict=True) if runs]
    named = [layer.index for layer in layers if layer.tactic]
    tactics = None
    if named and len(named) >= _ENOUGH_TACTICS * max(len(must), 1):
        tactics = len({int(at) for at in found.layer[found.by_tactic]} & set(named)) / len(named)
    count = max(len(kernels), 1)
    match = EngineMatch(
        placed=float((first | found.explained).mean()) if len(kernels) else 0.0,
        used=sum(at in got for at in must) / len(must) if must else 1.0,
        tactics=tactics,
        evidence=in_order / count,
        by_chance=by_chance / count,
        accepted=False,
    )
    better = in_order - by_chance >= _BETTER_THAN_CHANCE and match.evidence >= _SPEAKS
    return replace(match, accepted=match.share >= ACCEPTED and better)
