"""Blocks of nodes that a kernel shows as one operation, on small graphs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nsysmap.inputs.engine.onnx_model import OnnxModel, OnnxNode
from nsysmap.mapping.parts.onnx_blocks import ModelGraph, _attention, _gelu, _weighted, blocks

WEIGHTS = ("w", "v", "two", "one", "half", "e")


def graph(*rows: tuple[str, Sequence[str]]) -> ModelGraph:
    """Nodes by their operation and what they read: weights, ``x``, or other nodes by number."""
    nodes = [
        OnnxNode(
            f"n{at}", op, tuple(f"t{one}" if one.isdigit() else one for one in read), (f"t{at}",)
        )
        for at, (op, read) in enumerate(rows)
    ]
    return ModelGraph(OnnxModel("m.onnx", tuple(nodes), frozenset(WEIGHTS)))


def found(
    made: ModelGraph, region: Sequence[int] | None = None
) -> list[tuple[str, tuple[int, ...]]]:
    every = range(len(made.model.nodes)) if region is None else region
    return [(block.kind, block.nodes) for block in blocks(made, every)]


def test_the_next_node_of_an_operation_is_near_and_behind_nothing_but_what_may_lie_between() -> (
    None
):
    made = graph(
        ("Relu", ["x"]),
        ("Cast", ["0"]),
        ("Cast", ["1"]),
        ("Sqrt", ["2"]),
        ("Relu", ["0"]),
        ("Mul", ["4"]),
    )
    assert made.after(0, ("Sqrt",)) == [1, 2, 3]
    assert made.after(0, ("Sqrt",), steps=2) is None
    assert made.after(0, ("Relu",)) == [4]
    assert made.after(0, ("Mul",)) is None  # behind another operation
    assert made.after(0, ("Mul",), ("Relu",)) == [4, 5]
    assert made.after(3, ("Sqrt",)) is None
    assert made.before(3, ("Relu",), ("Cast",), 3) == 0
    assert made.before(3, ("Relu",), ("Cast",), 2) is None
    assert made.before(3, ("Relu",), (), 3) is None
    assert made.before(5, ("Relu",), ("Relu",), 3) == 4  # the nearest


def test_attention_is_a_softmax_between_two_products_of_what_is_computed() -> None:
    rows = [
        ("MatMul", ["x", "w"]),
        ("MatMul", ["x", "v"]),
        ("MatMul", ["0", "1"]),
        ("Div", ["2", "two"]),
        ("Softmax", ["3"]),
        ("MatMul", ["4", "1"]),
    ]
    made = graph(*rows)
    whole = _attention(made, 4)
    assert whole is not None
    assert whole.nodes == (2, 4, 5)
    assert ("attention", (2, 4, 5)) in found(made)
    kinds = [kind for kind, _ in found(made)]
    assert kinds == ["product", "attention", "product", "softmax", "product"]
    # not where a part of it is outside the region
    assert [kind for kind, _ in found(made, range(5))] == ["product", "product", "softmax"]
    # nor where one of the products is with weights
    for at, read in ((2, ["0", "w"]), (5, ["4", "w"])):
        other = [*rows]
        other[at] = ("MatMul", read)
        assert _attention(graph(*other), 4) is None
    assert _attention(graph(*rows[:5]), 4) is None
    assert _attention(graph(("Softmax", ["x"]), ("MatMul", ["0", "x"])), 0) is None


def test_a_gelu_has_what_scales_its_input_and_what_follows_as_far_as_that_is_there() -> None:
    rows = [
        ("Relu", ["x"]),
        ("Div", ["0", "two"]),
        ("Erf", ["1"]),
        ("Add", ["2", "one"]),
        ("Mul", ["0", "3"]),
        ("Mul", ["4", "half"]),
    ]
    assert _gelu(graph(*rows), 2).nodes == (1, 2, 3, 4, 5)
    assert found(graph(*rows)) == [("gelu", (1, 2, 3, 4, 5))]
    assert _gelu(graph(*rows[:5]), 2).nodes == (1, 2, 3, 4)
    assert _gelu(graph(*rows[:3]), 2).nodes == (1, 2)
    # a product of two that are computed scales nothing
    other = [rows[0], ("Mul", ["0", "x"]), *rows[2:]]
    assert _gelu(graph(*other), 2).nodes == (2, 3, 4, 5)
    assert _gelu(graph(("Erf", ["x"])), 0).nodes == (0,)


NORM = [
    ("ReduceMean", ["x"]),
    ("Sub", ["x", "0"]),
    ("Pow", ["1", "two"]),
    ("ReduceMean", ["2"]),
    ("Add", ["3", "e"]),
    ("Sqrt", ["4"]),
    ("Div", ["1", "5"]),
    ("Mul", ["6", "w"]),
    ("Add", ["7", "v"]),
]


def test_a_norm_is_found_with_what_scales_and_shifts_it_as_far_as_that_is_there() -> None:
    for size in (9, 8, 7):
        assert found(graph(*NORM[:size])) == [("layernorm", tuple(range(size)))]
    assert "layernorm" not in [kind for kind, _ in found(graph(*NORM[:6]))]
    squared = [*NORM]
    squared[2] = ("Mul", ["1", "1"])
    assert found(graph(*squared)) == [("layernorm", tuple(range(9)))]
    reciprocal = [*NORM[:6], ("Reciprocal", ["5"]), ("Mul", ["1", "6"]), ("Mul", ["7", "w"])]
    assert found(graph(*reciprocal)) == [("layernorm", tuple(range(9)))]
    assert found(graph(*reciprocal, ("Add", ["8", "v"]))) == [("layernorm", tuple(range(10)))]
    # not where a part of it is outside the region
    assert "layernorm" not in [kind for kind, _ in found(graph(*NORM), range(8))]


def test_the_norm_of_squares_begins_with_a_square_and_shifts_nothing() -> None:
    rows = [
        ("Pow", ["x", "two"]),
        ("ReduceMean", ["0"]),
        ("Add", ["1", "e"]),
        ("Sqrt", ["2"]),
        ("Div", ["x", "3"]),
        ("Mul", ["4", "w"]),
        ("Add", ["5", "v"]),
    ]
    assert found(graph(*rows)) == [("rmsnorm", (0, 1, 2, 3, 4, 5))]
    square = [("Mul", ["x", "x"]), *rows[1:]]
    assert found(graph(*square)) == [("rmsnorm", (0, 1, 2, 3, 4, 5))]
    product = [("Mul", ["x", "y"]), *rows[1:]]
    assert found(graph(*product)) == []


def test_products_of_one_input_with_weights_are_siblings_if_no_block_lies_between() -> None:
    made = graph(
        ("Cast", ["x"]), ("MatMul", ["0", "w"]), ("MatMul", ["x", "v"]), ("Gemm", ["0", "w", "v"])
    )
    (block,) = blocks(made, range(4))
    assert block.nodes == (1, 2, 3)
    assert block.siblings == ((1,), (2,), (3,))
    apart = graph(("MatMul", ["x", "w"]), ("Softmax", ["0"]), ("MatMul", ["x", "v"]))
    assert [one.siblings for one in blocks(apart, range(3))] == [(), (), ()]
    other = graph(("MatMul", ["x", "w"]), ("MatMul", ["y", "w"]))
    assert [one.siblings for one in blocks(other, range(2))] == [(), ()]
    computed = graph(("MatMul", ["x", "y"]), ("MatMul", ["x", "y"]))
    assert [one.nodes for one in blocks(computed, range(2))] == [(0,), (1,)]


@pytest.mark.parametrize(("casts", "read"), [(0, "x"), (1, "x"), (3, "x"), (4, "x"), (5, "t0")])
def test_what_a_product_reads_before_any_conversion(casts: int, read: str) -> None:
    rows: list[tuple[str, Sequence[str]]] = [
        ("Cast", ["x" if at == 0 else str(at - 1)]) for at in range(casts)
    ]
    made = graph(*rows, ("MatMul", ["x" if casts == 0 else str(casts - 1), "w"]))
    (block,) = blocks(made, [casts])
    assert _weighted(made, block) == read
