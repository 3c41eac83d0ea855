"""Colours of two networks: what cannot be told apart by itself is told apart by what surrounds it,
chains as a whole.
"""

from __future__ import annotations

import random

import pytest

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.network.colours import colours
from nsysmap.network.layer_network import Network
from nsysmap.network.matched_groups import groups_of
from tests.joining.networks import layer, network, shuffled_and_renamed


def edges(one: Network, colour: tuple[int, ...]) -> set[tuple[int, int, int]]:
    return {
        (colour[at], colour[reader], slot)
        for at, found in enumerate(one.readers)
        for reader, slot in found
    }


def mixed(layers: list[Layer], seed: int) -> tuple[Network, Network]:
    made, _ = shuffled_and_renamed(Engine("made", tuple(layers), detailed=True), seed)
    return network(layers), network(made)


@pytest.mark.parametrize("seed", range(30))
def test_the_colours_of_a_network_in_another_order_are_an_isomorphism(seed: int) -> None:
    dice = random.Random(seed)
    layers: list[Layer] = []
    for at in range(dice.randint(2, 30)):
        reads = " ".join(
            dice.sample(
                [f"t{one}" for one in range(at)] or ["in"], min(max(at, 1), dice.randint(1, 3))
            )
        )
        layers.append(layer(f"n{at}", reads, f"t{at}", kind=dice.choice(["gemm", "pointwise"])))
    first, second = mixed(layers, seed)
    ours, theirs = colours(first, second)
    assert sorted(ours) == sorted(theirs)
    assert len(set(ours)) == len(ours)
    assert edges(first, ours) == edges(second, theirs)


def test_of_branches_that_are_alike_one_becomes_one_of_the_other_side_as_a_whole() -> None:
    branches = [
        layer(
            f"/{branch}/{step}/Conv",
            f"{branch}{step}" if step else "in",
            f"{branch}{step + 1}",
            kind="convolution",
        )
        for step in range(4)
        for branch in "abc"
    ]
    for seed in range(10):
        first, second = mixed(
            [*branches, layer("/last/Conv", "other", "out", kind="convolution")], seed
        )
        pairs = {group.before[0]: group.after[0] for group in groups_of(first, second)}
        assert len(pairs) == 13
        for at, readers in enumerate(first.readers):
            assert {pairs[reader] for reader, _ in readers} == {
                reader for reader, _ in second.readers[pairs[at]]
            }


def test_layers_that_read_the_same_tensor_are_neighbours_though_no_layer_writes_it() -> None:
    """A concatenation without a copy: what its readers read has no layer that writes it."""
    blocks = [
        [
            layer(f"/{block}/a/Conv", f"x{block}", f"a{block}"),
            layer(f"/{block}/b/Conv", f"x{block}", f"b{block}", shape=(1, size, 28, 28)),
        ]
        for block, size in enumerate((16, 32, 48, 80))
    ]
    for seed in range(10):
        first, second = mixed([one for block in blocks for one in block], seed)
        ours, theirs = colours(first, second)
        assert sorted(ours) == sorted(theirs)
        assert len(set(ours)) == 8
        wide = [at for at, piece in enumerate(second.pieces) if piece.shapes == ((28, 28, 80),)]
        beside = [
            at
            for at, piece in enumerate(second.pieces)
            if piece.reads == second.pieces[wide[0]].reads
        ]
        assert {theirs[at] for at in beside} == {
            ours[at] for at, piece in enumerate(first.pieces) if piece.name.startswith("/3/")
        }
