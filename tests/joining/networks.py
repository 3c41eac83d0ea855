"""Networks for tests of the comparison: from engine files, written by hand, shuffled and
renamed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.names.decode import layer_kind
from nsysmap.network.layer_network import Network, network_of
from nsysmap.network.matched_groups import MatchedGroup, groups_of


def layer(
    name: str,
    reads: str,
    writes: str,
    *,
    kind: str | None = None,
    shape: tuple[int, ...] = (1, 64, 28, 28),
) -> Layer:
    """A layer that reads and writes the tensors named, blanks between."""
    return Layer(
        0,
        name,
        kind or layer_kind(name, None),
        inputs=tuple(Tensor(tensor, shape) for tensor in reads.split()),
        outputs=tuple(Tensor(tensor, shape) for tensor in writes.split()),
    )


def network(layers: Sequence[Layer]) -> Network:
    numbered = [replace(one, index=at) for at, one in enumerate(layers)]
    return network_of(numbered, range(len(numbered)))


def network_in(path: Path) -> Network:
    engine = read_engine(path)
    return network_of(engine.layers, range(len(engine.layers)), engine.bindings)


def shuffled_and_renamed(engine: Engine, seed: int) -> tuple[list[Layer], list[int]]:
    """The layers in another order, under other names, with other tensors and no metadata; and which
    layer each was.
    """
    return mixed_up(engine, seed, names=False, order=False)


def mixed_up(
    engine: Engine, seed: int, *, names: bool, order: bool
) -> tuple[list[Layer], list[int]]:
    """The layers without what is not kept: their names (with tensors', metadata, tactics), their
    order; and which layer each was.
    """
    dice = random.Random(seed)
    places = (
        list(range(len(engine.layers)))
        if order
        else dice.sample(range(len(engine.layers)), len(engine.layers))
    )
    if names:
        return [replace(engine.layers[at], index=place) for place, at in enumerate(places)], places
    tensors: dict[str, str] = {}

    def renamed(tensor: Tensor) -> Tensor:
        return replace(
            tensor, name=tensors.setdefault(tensor.name, f"tensor {dice.randrange(10**12)}")
        )

    made = []
    for place, at in enumerate(places):
        old = engine.layers[at]
        inputs, outputs = tuple(map(renamed, old.inputs)), tuple(map(renamed, old.outputs))
        name = f"layer {dice.randrange(10**12)}"
        made.append(
            replace(
                old, index=place, name=name, inputs=inputs, outputs=outputs, onnx=(), tactic=None
            )
        )
    return made, places


def told(before: Network, after: Network) -> list[tuple[list[str], list[str], str, str]]:
    """The groups of two networks by the names of their layers."""
    return [named(group, before, after) for group in groups_of(before, after)]


def named(
    group: MatchedGroup, before: Network, after: Network
) -> tuple[list[str], list[str], str, str]:
    names = (
        [before.pieces[place].name for place in group.before],
        [after.pieces[place].name for place in group.after],
    )
    return (*names, group.relation, group.joined_by)
