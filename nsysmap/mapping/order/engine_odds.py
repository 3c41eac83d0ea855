"""How probable it is that the engine of a file ran, and not another of the same structure: by
kernels' names and launch shapes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.launch_shapes import threads_fit, tiles_agree
from nsysmap.mapping.order.scores import KernelFacts
from nsysmap.names.match import is_generated, matches_tactic, same_operations

_GIVEN = 3.0
"""Log odds before any name is looked at: of the users who give a file whose layers fit all kernels
in their order, 1 in 20 gives that of another export or build of the network.
"""

_RAN, _OTHER, _OTHER_OF_LIBRARY = 0.37, -3.2, -4.0
"""What one distinct tactic adds: log of how often its layers run such a kernel if the engine ran,
over how often if a near twin did.

Of 1,786 distinct tactics that are symbols in 145 reports of TensorRT for RTX, each with its own
file, 1,725 named their kernel, and 61 ran another symbol of the same file: the compiler gives equal
code one symbol, whichever layer it was made for.  Of the 1,744 distinct symbols that ran none was
unknown to the file.  With files of near twins (another export of the network, another batch size,
other widths or types; seventeen pairs) at least one symbol was, and of 130 distinct tactics 20
named their kernel.  A twin may be nearer than these, and a process may share code between its
engines: taken as 0.94 and 0.65 for a kernel that its tactic names, 0.01 and 0.25 for a symbol that
the file does not have.  A tactic of a library is a kernel's own name: if the engine ran, it is
another one in at most 0.005.
"""
_MOST_AGAINST_BY_CODE = -2.0
"""Symbols tell which code was compiled. For another GPU all of them differ at once, so that they
are not independent evidence where none is in the file.
"""

_TILES, _MOST_FOR_TILES, _NO_TILES = 0.2, 1.0, -3.0
"""The same for each distinct launch of which launch_shapes tells how many blocks it needs: if the
engine ran, all have as many (461 of 461 in 15 models, taken as 0.99); of a near twin's (another
batch size, other widths) most do, or none: all that do are one evidence.  Where all symbols of
generated code ran themselves, the shapes are the file's, and those that do not are one evidence too
(of kernels whose blocks are counted in a way that launch_shapes does not know).
"""

_ELEMENTS, _MOST_FOR_ELEMENTS, _NO_ELEMENTS = 0.2, 1.0, -2.1
"""The same for each distinct launch of generated code by a symbol that the file does not have: do
its threads cover the layer's tensors?  335 of 351 of own layers did, 18 % of other layers; taken as
0.05 and 0.4 for those that do not, since a twin's tensors are like the file's.
"""

_SAME_CODE, _OTHER_STREAMS = 4.55, -4.9
"""Log odds against a file of another export or build that ends in the same kernels, which only
layers that name their kernels exclude: of 29 files of near twins six ran all the same code
(with one added to those, of 1 in 20, as above).  Where the file's layers that ran kernels are on
several streams and the kernels on one, or the reverse, it is a build with other auxiliary streams:
so it was in none of 145 reports (44 of them on several streams), and would be in half of such
builds. Graphs replay on streams of their own, but what was captured on one stream on one.
"""
_NAMED = 0.9
"""Share of the layers that ran kernels whose tactics name these, from which on they tell exports
apart.
"""

RAN, EQUAL_CODE, OTHER = "ran", "equal-code", "other"
"""What a layer with a tactic ran: the kernel that it names, one whose code may be the same, or
another or none.
"""


@dataclass(frozen=True)
class Odds:
    """How well a file's tactics fit the kernels that its layers ran."""

    probability: float  # that this engine ran, given that its layers fit the kernels
    # share of the layers with a tactic that ran it, or code that may be the same; None if there are
    # none
    tactics: float | None
    named: int  # layers with a tactic
    ran: float  # share of the distinct tactics that name the kernels which ran; 0 without tactics
    # of the layers whose tactics are symbols of generated code, the share that ran code of the same
    # operations, as they do at any shape; None without
    code: float | None = None


def engine_odds(
    ran: Mapping[int, Sequence[KernelFacts]], layers: Sequence[Layer], engine: Engine
) -> Odds:
    """The evidence about the engine in the names of the kernels that each of these layers (by
    index) ran.
    """
    known = frozenset(layer.tactic for layer in engine.layers if layer.tactic)
    found: dict[str, list[str]] = defaultdict(list)
    strange: set[str] = set()  # symbols of no tactic, in layers whose tactic is a symbol
    recompiled: list[tuple[KernelFacts, Layer]] = []
    for layer in layers:
        if layer.tactic:
            kernels = ran.get(layer.index, ())
            what = outcome([kernel.name for kernel in kernels], layer.tactic, known)
            found[layer.tactic].append(what)
            if what != RAN and is_generated(layer.tactic):
                unknown = [
                    kernel
                    for kernel in kernels
                    if is_generated(kernel.name) and not _is_known(kernel.name, known)
                ]
                strange.update(kernel.name for kernel in unknown)
                if what == EQUAL_CODE:
                    recompiled.extend((kernel, layer) for kernel in unknown)
    odds, others, same = _GIVEN, 0.0, 0.0
    for tactic, outcomes in found.items():
        share = {what: outcomes.count(what) / len(outcomes) for what in (RAN, EQUAL_CODE, OTHER)}
        odds += share[RAN] * _RAN
        if is_generated(tactic):
            others += share[OTHER]
            same += share[RAN]
        else:
            odds += share[OTHER] * _OTHER_OF_LIBRARY
    equal = {kernel.name for kernel, _ in recompiled}
    code = len(equal) * _OTHER
    odds += max(others, len(strange - equal) if others else 0.0) * _OTHER
    odds += code if same else max(code, _MOST_AGAINST_BY_CODE)
    tiles = _by_tiles(ran, layers)
    if same and not others and not equal:
        tiles = max(tiles, _NO_TILES)
    odds += tiles + _by_elements(recompiled)
    every = [what for outcomes in found.values() for what in outcomes]
    tactics = 1 - every.count(OTHER) / len(every) if every else None
    active = [layer for layer in layers if layer.index in ran]
    named = sum(layer.tactic is not None for layer in active) >= _NAMED * len(active)
    streams = _by_streams(ran, layers)
    against = math.exp(-max(odds, -50.0))
    if not named or streams:
        against += math.exp(-_SAME_CODE - streams)
    themselves = sum(outcomes.count(RAN) / len(outcomes) for outcomes in found.values())
    compiled = [
        what for tactic, outcomes in found.items() if is_generated(tactic) for what in outcomes
    ]
    return Odds(
        1 / (1 + against),
        tactics,
        len(every),
        themselves / max(len(found), 1),
        1 - compiled.count(OTHER) / len(compiled) if compiled else None,
    )


def _is_known(kernel: str, known: frozenset[str]) -> bool:
    return kernel in known or any(matches_tactic(kernel, tactic) for tactic in known)


def _by_elements(launches: Sequence[tuple[KernelFacts, Layer]]) -> float:
    """The evidence in the numbers of threads of layers whose code has their operations but a symbol
    that the file does not list.
    """
    told = {
        (kernel.name, kernel.grid, kernel.block, tuple(t.dimensions for t in layer.outputs)): fits
        for kernel, layer in launches
        if (fits := threads_fit(kernel.grid, kernel.block, layer)) is not None
    }
    agree = sum(told.values())
    return min(agree * _ELEMENTS, _MOST_FOR_ELEMENTS) + (len(told) - agree) * _NO_ELEMENTS


def _by_tiles(ran: Mapping[int, Sequence[KernelFacts]], layers: Sequence[Layer]) -> float:
    """The evidence in the numbers of blocks launched. Each layer's first kernel counts; equal
    kernels of equal layers count once.
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
    """The evidence in the streams that kernels ran on, for a file that gives the stream of every
    layer.
    """
    told = {layer.stream for layer in layers if layer.index in ran}
    used = {kernel.stream for layer in layers for kernel in ran.get(layer.index, ())}
    if None in told or None in used:
        return 0.0
    return 0.0 if (len(told) > 1) == (len(used) > 1) else _OTHER_STREAMS


def outcome(kernels: Sequence[str], tactic: str, known: frozenset[str]) -> str:
    """Classifies what a layer with that tactic ran; ``known`` are all tactics of its engine."""
    if any(matches_tactic(kernel, tactic) for kernel in kernels):
        return RAN
    if is_generated(tactic) and any(
        same_operations(kernel, tactic) or (is_generated(kernel) and kernel in known)
        for kernel in kernels
    ):
        return EQUAL_CODE
    return OTHER
