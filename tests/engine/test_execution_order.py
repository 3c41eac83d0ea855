"""In which order an engine runs its layers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.network.execution_order import execution_orders


def chain(names: list[str]) -> list[Layer]:
    return [
        Layer(at, name, "gemm", inputs=(Tensor(f"t{at}"),), outputs=(Tensor(f"t{at + 1}"),))
        for at, name in enumerate(names)
    ]


def test_a_file_in_the_order_of_its_data_has_that_order_only() -> None:
    assert execution_orders(chain(["a", "b", "c"])) == [(0, 1, 2)]


@given(st.permutations(range(9)))
def test_a_shuffled_chain_is_put_back_by_its_tensors(places: list[int]) -> None:
    layers = chain([f"node{at}" for at in range(9)])
    mixed = [layers[place] for place in places]
    order = execution_orders(mixed)[-1]
    assert [mixed[at].name for at in order] == [layer.name for layer in layers]


@given(st.integers(0, 2**32))
def test_every_producer_comes_before_its_consumers_in_any_network(seed: int) -> None:
    dice = random.Random(seed)
    layers = []
    for at in range(12):
        inputs = tuple(
            Tensor(f"t{one}") for one in dice.sample(range(at), min(at, dice.randint(0, 3)))
        )
        layers.append(Layer(at, f"node_{at}", "gemm", inputs=inputs, outputs=(Tensor(f"t{at}"),)))
    mixed = dice.sample(layers, len(layers))
    order = execution_orders(mixed)[-1]
    assert sorted(order) == list(range(12))
    place = {mixed[at].outputs[0].name: number for number, at in enumerate(order)}
    assert all(
        place[tensor.name] < place[mixed[at].outputs[0].name]
        for at in order
        for tensor in mixed[at].inputs
    )


def test_names_alone_order_myelins_instructions_by_their_numbers() -> None:
    layers = [
        Layer(at, f"__myl_Add_myl0_{number}", "myelin_kernel")
        for at, number in enumerate((10, 2, 1))
    ]
    assert execution_orders(layers)[-1] == (2, 1, 0)


def test_a_reformat_comes_before_the_layer_it_is_for_and_after_the_one_whose_output_it_is() -> None:
    layers = [
        Layer(0, "Reformatting CopyNode for Output Tensor 0 to conv", "reformat"),
        Layer(1, "conv", "convolution"),
        Layer(2, "Reformatting CopyNode for Input Tensor 0 to conv", "reformat"),
    ]
    assert execution_orders(layers)[-1] == (2, 1, 0)


@pytest.mark.parametrize("tensor", ["x", "__myln_k_arg__bb1_1_myl0"])
def test_a_tensor_name_with_several_producers_orders_nothing(tensor: str) -> None:
    layers = [
        Layer(0, "reads", "gemm", inputs=(Tensor(tensor),)),
        Layer(1, "writes", "gemm", outputs=(Tensor(tensor),)),
        Layer(2, "writes too", "gemm", outputs=(Tensor(tensor),)),
    ]
    assert execution_orders(layers) == [(0, 1, 2)]


def test_a_circle_of_repeating_names_still_gives_every_layer_a_place() -> None:
    layers = [
        Layer(0, "a", "gemm", inputs=(Tensor("y"),), outputs=(Tensor("x"),)),
        Layer(1, "b", "gemm", inputs=(Tensor("x"),), outputs=(Tensor("y"),)),
    ]
    assert sorted(execution_orders(layers)[-1]) == [0, 1]
