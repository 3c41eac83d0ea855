"""How probable it is that the engine of a file ran, and not another of the same structure: by
kernels' names and launch shapes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.launch_shapes import tiles_agree
from nsysmap.mapping.order.scores import KernelFacts
from nsysmap.names.match import is_generated, matches_tactic, same_operations

_GIVEN = 3.0
"""Log odds before any name is looked at: of the users who give a file whose layers fit all kernels
in their order, 1 in 20 gives that of another export or build of the network.
"""

_RAN, _EQUAL_CODE, _OTHER, _OTHER_OF_LIBRARY = 0.37, -0.69, -3.2, -4.0
"""What one distinct tactic adds: log of how often its layers run such a kernel if the engine ran,
over how often if a near twin did.

Of 43 distinct tactics in seven range-less reports of TensorRT for RTX, each with its own file, 42
named their kernel and one ran code of another symbol (the compiler gives equal code one symbol,
whichever layer it was made for); elsewhere two kernels with other operations in their symbol were
seen: taken as 0.94, 0.05, 0.01.  With files of near twins (another export of the network, another
batch size, dynamic shapes; seven pairs) 18 of 41 did, 17 ran the same operations under another
symbol, 6 others: taken as 0.65, 0.10, 0.25, for a twin may be nearer than these.  A tactic of a
library is a kernel's own name: if the engine ran, it is another one in at most 0.005.
"""
_MOST_AGAINST_BY_CODE = -2.0
"""Symbols say which code was compiled: for another GPU all differ at once, so that they are no
evidence each.
"""

_TILES, _MOST_FOR_TILES, _NO_TILES = 0.2, 1.0, -3.0
"""The same for each distinct launch of which launch_shapes tells how many blocks it needs: if the
engine ran, all have as many (461 of 461 in 15 models, taken as 0.99); of a near twin's (another
batch size, other widths) most do, or none: all that do are one evidence.
"""

_OTHER_STREAMS = -4.0
"""The same where the file's layers that ran kernels are on several streams and the kernels on one,
or the reverse: a build with other auxiliary streams.  Graphs replay on streams of their own, but
what was captured on one stream on one.
"""
_MOST_UNNAMED, _NAMED = 0.95, 0.9
"""The most that is believed where tactics name the kernels of less than 0.9 of the layers that ran
any: exports of one network that differ in the others only look the same, and whoever gives a file
gives that of another export once in 20 times.
"""

RAN, EQUAL_CODE, OTHER = "ran", "equal-code", "other"
"""What a layer with a tactic ran: the kernel that it names, one whose code may be the same, or
another or none.
"""


@dataclass(frozen=True)
class Odds:
    """How a file's tactics fit the kernels that its layers ran."""

    probability: float  # that this engine ran, given that its layers fit the kernels
    # share of the layers with a tactic that ran it, or code that may be the same; None if there are
    # none
    tactics: float | None
    named: int  # layers with a tactic


def engine_odds(
    ran: Mapping[int, Sequence[KernelFacts]], layers: Sequence[Layer], engine: Engine
) -> Odds:
    """What the names of the kernels that each of these layers ran (by its index) say of the
    engine.
    """
    known = frozenset(layer.tactic for layer in engine.layers if layer.tactic)
    found: dict[str, list[str]] = defaultdict(list)
    # symbols that the file does not have, in layers whose tactic is a symbol
    strange: set[str] = set()
    for layer in layers:
        if layer.tactic:
            names = [kernel.name for kernel in ran.get(layer.index, ())]
            what = outcome(names, layer.tactic, known)
            found[layer.tactic].append(what)
            if what == OTHER and is_generated(layer.tactic):
                strange.update(name for name in names if is_generated(name))
    odds, code, others = _GIVEN, 0.0, 0.0
    for tactic, outcomes in found.items():
        share = {what: outcomes.count(what) / len(outcomes) for what in (RAN, EQUAL_CODE, OTHER)}
        odds += share[RAN] * _RAN + (
            0.0 if is_generated(tactic) else share[OTHER] * _OTHER_OF_LIBRARY
        )
        others += share[OTHER] if is_generated(tactic) else 0.0
        code += share[EQUAL_CODE] * _EQUAL_CODE
    odds += max(others, len(strange) if others else 0.0) * _OTHER
    odds += max(code, _MOST_AGAINST_BY_CODE)
    odds += _by_tiles(ran, layers) + _by_streams(ran, layers)
    every = [what for outcomes in found.values() for what in outcomes]
    tactics = 1 - every.count(OTHER) / len(every) if every else None
    active = [layer for layer in layers if layer.index in ran]
    most = (
        1.0
        if sum(layer.tactic is not None for layer in active) >= _NAMED * len(active)
        else _MOST_UNNAMED
    )
    return Odds(min(1 / (1 + math.exp(-max(odds, -50.0))), most), tactics, len(every))


def _by_tiles(ran: Mapping[int, Sequence[KernelFacts]], layers: Sequence[Layer]) -> float:
    """What the numbers of blocks that were launched say; each layer's first kernel counts, equal
    ones of equal layers once.
    """
    known: dict[tuple[str, tuple[int, int, int], tuple[tuple[int, ...] | None, ...]], Layer] = {}
    for layer in layers:
        for kernel in ran.get(layer.index, ())[:1]:
            known.setdefault(
                (kernel.name, kernel.grid, tuple(tensor.dimensions for tensor in layer.outputs)),
                layer,
            )
    agree, told = tiles_agree([(name, grid) for name, grid, _ in known], list(known.values()))
    same = agree[told & np.eye(len(known), dtype=np.bool_)]
    return min(_TILES * int(same.sum()), _MOST_FOR_TILES) + _NO_TILES * int((~same).sum())


def _by_streams(ran: Mapping[int, Sequence[KernelFacts]], layers: Sequence[Layer]) -> float:
    """What the streams that the kernels ran on say of a file that tells those of all its layers."""
    told = {layer.stream for layer in layers if layer.index in ran}
    used = {kernel.stream for layer in layers for kernel in ran.get(layer.index, ())}
    if None in told or None in used:
        return 0.0
    return 0.0 if (len(told) > 1) == (len(used) > 1) else _OTHER_STREAMS


def outcome(kernels: Sequence[str], tactic: str, known: frozenset[str]) -> str:
    """What a layer of that tactic ran; ``known`` are all tactics of its engine."""
    if any(matches_tactic(kernel, tactic) for kernel in kernels):
        return RAN
    if is_generated(tactic) and any(
        same_operations(kernel, tactic) or (is_generated(kernel) and kernel in known)
        for kernel in kernels
    ):
        return EQUAL_CODE
    return OTHER
