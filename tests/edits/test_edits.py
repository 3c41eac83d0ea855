"""Each kind of edit: what it makes of a small graph, that results stay, and when it is not made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.edits.graphs import Graph, edited, ops


def layer_norm(g: Graph, x: str, size: int, *, casts: bool = False, rms: bool = False) -> str:
    kind = "float32" if casts else g.dtype
    wide = g.node("Cast", x, to=1) if casts else x
    away = wide if rms else g.node("Sub", wide, g.node("ReduceMean", wide, axes=[-1]))
    mean = g.node("ReduceMean", g.node("Pow", away, g.value(2.0, kind)), axes=[-1])
    root = g.node("Sqrt", g.node("Add", mean, g.value(1e-5, kind)))
    made = g.node("Div", away, root)
    made = g.node("Cast", made, to=10) if casts else made
    made = g.node("Mul", made, g.weight(f"{x}.scale", size, mean=1.0))
    return made if rms else str(g.node("Add", made, g.weight(f"{x}.bias", size)))


@pytest.mark.parametrize(("dtype", "casts"), [("float32", False), ("float16", True)])
def test_a_layer_norm_in_pieces_becomes_one_operator(
    tmp_path: Path, dtype: str, casts: bool
) -> None:
    g = Graph(opset=13, dtype=dtype)
    y = layer_norm(g, g.given("x", 2, 5, 32), 32, casts=casts)
    made = edited(tmp_path, g.ends(y, 2, 5, 32), "norms")
    assert made.ops == ["LayerNormalization"]
    assert made.worst < 1


def test_an_rms_norm_becomes_one_operator_and_other_reductions_get_their_axes_as_input(
    tmp_path: Path,
) -> None:
    g = Graph(opset=13)
    x = g.given("x", 2, 5, 32)
    y = layer_norm(g, x, 32, rms=True)
    y = g.node("Sub", y, g.node("ReduceMax", y, axes=[1], keepdims=1))
    made = edited(tmp_path, g.ends(y, 2, 5, 32), "norms")
    assert made.ops == ["RMSNormalization", "ReduceMax", "Sub"]
    assert made.worst < 1


def test_a_norm_needs_a_newer_opset_in_which_nothing_else_changes_its_meaning(
    tmp_path: Path,
) -> None:
    g = Graph(opset=13)
    x = g.given("x", 2, 4, 8, 32)
    y = layer_norm(g, g.node("AveragePool", x, kernel_shape=[1, 1]), 32, rms=True)
    made = edited(tmp_path, g.ends(y, 2, 4, 8, 32), "norms")
    assert not made.kinds
    assert "AveragePool" in made.reasons[0]
    assert "with opset 23" in made.reasons[0]


def test_a_spread_that_something_else_reads_is_no_norm(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 2, 5, 32)
    mean = g.node("ReduceMean", x, axes=[-1])
    away = g.node("Sub", x, mean)
    square = g.node("ReduceMean", g.node("Mul", away, away), axes=[-1])
    root = g.node("Sqrt", g.node("Add", square, g.value(1e-5)))
    g.ends(g.node("Div", away, root), 2, 5, 32).ends(root, 2, 5, 1)
    assert not edited(tmp_path, g, "norms").kinds


def gelu(g: Graph, x: str, form: str) -> str:
    if form == "erf":
        inner = g.node("Erf", g.node("Div", x, g.value(2**0.5)))
        return str(
            g.node("Mul", g.node("Mul", x, g.node("Add", inner, g.value(1.0))), g.value(0.5))
        )
    if form == "erf_scaled":
        inner = g.node("Erf", g.node("Mul", x, g.value(2**-0.5)))
        half = g.node("Mul", g.node("Add", g.value(1.0), inner), g.value(0.5))
        return str(g.node("Mul", half, x))
    cube = g.node("Mul", g.node("Pow", x, g.value(3.0)), g.value(0.044715))
    inner = g.node("Mul", g.node("Add", x, cube), g.value((2 / np.pi) ** 0.5))
    one = g.node("Add", g.node("Tanh", inner), g.value(1.0))
    return str(g.node("Mul", g.node("Mul", x, g.value(0.5)), one))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("form", ["erf", "erf_scaled", "tanh"])
def test_a_gelu_in_any_form_becomes_one_operator(tmp_path: Path, form: str, dtype: str) -> None:
    g = Graph(dtype=dtype)
    y = gelu(g, g.node("Relu", g.given("x", 4, 8)), form)
    made = edited(tmp_path, g.ends(y, 4, 8), "gelu")
    assert made.ops == ["Relu", "Gelu"]
    assert made.worst < 1


def test_another_function_of_erf_is_no_gelu(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 4, 8)
    inner = g.node("Erf", g.node("Div", x, g.value(1.5)))
    y = g.node("Mul", g.node("Mul", x, g.node("Add", inner, g.value(1.0))), g.value(0.5))
    assert not edited(tmp_path, g.ends(y, 4, 8), "gelu").kinds


def test_a_softmax_in_pieces_becomes_one_operator(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 2, 3, 4, 4)
    e = g.node("Exp", g.node("Sub", x, g.node("ReduceMax", x, axes=[-1])))
    y = g.node("Div", e, g.node("ReduceSum", e, g.ints(-1)))
    made = edited(tmp_path, g.ends(y, 2, 3, 4, 4), "softmax")
    assert made.ops == ["Softmax"]
    assert made.worst < 1


def attention(g: Graph, size: int, *, mask: bool = False) -> Graph:
    q, k, v = (g.given(name, 1, 2, 16, size) for name in "qkv")
    turned = g.node("Transpose", k, perm=[0, 1, 3, 2])
    scores = g.node("Mul", g.node("MatMul", q, turned), g.value(size**-0.5))
    if mask:
        scores = g.node("Add", scores, g.given("mask", 1, 1, 1, 16))
    y = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    return g.ends(y, 1, 2, 16, size)


@pytest.mark.parametrize("mask", [False, True])
def test_attention_becomes_one_operator(tmp_path: Path, mask: bool) -> None:
    made = edited(tmp_path, attention(Graph(dtype="float16"), 32, mask=mask), "attention")
    assert made.ops == (["Expand", "Attention"] if mask else ["Attention"])
    assert made.worst < 1


@pytest.mark.parametrize(
    ("dtype", "size", "why"),
    [("float16", 20, "heads have 20 channels"), ("float32", 32, "computes in FP32")],
)
def test_attention_that_no_fused_kernel_takes_stays(
    tmp_path: Path, dtype: str, size: int, why: str
) -> None:
    made = edited(tmp_path, attention(Graph(dtype=dtype), size), "attention")
    assert not made.kinds
    assert why in made.reasons[0]


def test_products_of_one_tensor_become_one(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 2, 5, 8)
    made = []
    for name, width in (("q", 8), ("k", 4), ("v", 4)):
        product = g.node("MatMul", x, g.weight(f"{name}.weight", 8, width))
        made.append(g.node("Add", g.weight(f"{name}.bias", width), product))
    y = g.node("Concat", g.node("Relu", made[0]), made[1], made[2], axis=-1)
    result = edited(tmp_path, g.ends(y, 2, 5, 16), "products")
    assert ops(result, "MatMul", "Add", "Split") == [1, 1, 1]
    assert result.worst < 1


@given(widths=st.lists(st.integers(1, 5), min_size=2, max_size=4), bias=st.booleans())
@settings(max_examples=15, deadline=None)
def test_convolutions_of_one_tensor_become_one(
    tmp_path_factory: pytest.TempPathFactory, widths: list[int], bias: bool
) -> None:
    g = Graph()
    x = g.given("x", 1, 3, 6, 6)
    for at, width in enumerate(widths):
        reads = [x, g.weight(f"{at}.w", width, 3, 3, 3)]
        reads += [g.weight(f"{at}.b", width)] if bias else []
        g.ends(g.node("Conv", *reads, pads=[1, 1, 1, 1]), 1, width, 6, 6)
    made = edited(tmp_path_factory.mktemp("g"), g, "products")
    assert ops(made, "Conv", "Split") == [1, 1]
    assert made.worst < 1


def test_convolutions_of_other_strides_stay(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 1, 3, 6, 6)
    g.ends(g.node("Conv", x, g.weight("a", 4, 3, 1, 1)), 1, 4, 6, 6)
    g.ends(g.node("Conv", x, g.weight("b", 4, 3, 1, 1), strides=[2, 2]), 1, 4, 3, 3)
    assert not edited(tmp_path, g, "products").kinds


def test_what_stands_between_transposes_moves_to_the_other_layout(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 1, 4, 3, 5)
    y = g.node("Transpose", x, perm=[0, 2, 3, 1])
    y = g.node("Softmax", g.node("Add", y, g.weight("bias", 4)), axis=-1)
    y = g.node("Mul", y, g.node("Sigmoid", y))
    y = g.node("Sub", y, g.node("ReduceMean", y, axes=[1, 2]))
    y = g.node("Transpose", y, perm=[0, 3, 1, 2])
    made = edited(tmp_path, g.ends(y, 1, 4, 3, 5), "layout")
    assert ops(made, "Transpose") == [0]
    assert made.worst < 1


def test_transposes_stay_where_something_between_needs_their_layout(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 1, 4, 3, 5)
    y = g.node("Transpose", x, perm=[0, 2, 3, 1])
    scale, bias = g.weight("scale", 4), g.weight("bias", 4)
    y = g.node("LayerNormalization", y, scale, bias, axis=-1, name="/norm")
    y = g.node("Transpose", g.node("Relu", y), perm=[0, 3, 1, 2])
    made = edited(tmp_path, g.ends(y, 1, 4, 3, 5), "layout")
    assert not made.kinds
    y = g.node("Transpose", g.inputs[0].name, perm=[0, 2, 3, 1])
    g.ends(g.node("Transpose", g.node("Relu", y), perm=[0, 3, 1, 2]), 1, 4, 3, 5)
    assert edited(tmp_path, g, "layout").kinds == ["layout"]


@given(first=st.permutations(range(4)), second=st.permutations(range(4)))
@settings(max_examples=20, deadline=None)
def test_two_transposes_become_one_or_none(
    tmp_path_factory: pytest.TempPathFactory, first: list[int], second: list[int]
) -> None:
    g = Graph()
    shape = (1, 2, 3, 4)
    y = g.node("Transpose", g.given("x", *shape), perm=first)
    y = g.node("Relu", g.node("Transpose", y, perm=second))
    both = [shape[first[at]] for at in second]
    made = edited(tmp_path_factory.mktemp("g"), g.ends(y, *both), "layout")
    assert ops(made, "Transpose")[0] == int([first[at] for at in second] != [0, 1, 2, 3])
    assert made.worst < 1


def test_reshapes_that_undo_each_other_are_gone(tmp_path: Path) -> None:
    g = Graph()
    y = g.node("Reshape", g.given("x", 2, 6), g.ints(3, 4))
    y = g.node("Relu", g.node("Reshape", y, g.ints(2, 6)))
    made = edited(tmp_path, g.ends(y, 2, 6), "layout")
    assert made.ops == ["Relu"]


def test_a_cast_and_one_back_are_gone_where_nothing_is_rounded(tmp_path: Path) -> None:
    g = Graph(dtype="float16")
    y = g.node("Cast", g.node("Cast", g.node("Relu", g.given("x", 4)), to=1), to=10)
    made = edited(tmp_path, g.ends(y, 4), "casts")
    assert made.ops == ["Relu"]
    g = Graph(dtype="float32")
    y = g.node("Cast", g.node("Cast", g.given("x", 4), to=10), to=1)
    rounded = edited(tmp_path, g.ends(y, 4), "casts")
    assert not rounded.kinds
    assert "rounds" in rounded.reasons[0]


def island(g: Graph, *, bounded: bool) -> Graph:
    x = g.given("x", 4, 16)
    if bounded:
        scale, bias = g.weight("scale", 16, mean=1.0), g.weight("bias", 16)
        x = g.node("LayerNormalization", x, scale, bias, axis=-1)
    wide = g.node("Cast", x, to=1)
    y = g.node("MatMul", wide, g.weight("w", 16, 32, dtype="float32"))
    y = g.node("Relu", g.node("Add", y, g.weight("b", 32, dtype="float32")))
    return g.ends(g.node("Cast", y, to=10), 4, 32)


def test_an_island_of_fp32_becomes_fp16_where_its_values_are_bounded(tmp_path: Path) -> None:
    made = edited(tmp_path, island(Graph(dtype="float16"), bounded=True), "casts")
    assert ops(made, "Cast", "MatMul") == [0, 1]
    assert made.worst < 1


def test_an_island_of_fp32_stays_where_nothing_bounds_its_values(tmp_path: Path) -> None:
    made = edited(tmp_path, island(Graph(dtype="float16"), bounded=False), "casts")
    assert not made.kinds
    assert "whatever the input" in made.reasons[0]


@pytest.mark.parametrize(("rows", "width"), [(4, 32), (4, 33), (100, 32), (100, 33)])
def test_an_island_s_products_that_tensor_cores_take_badly_are_told(
    tmp_path: Path, rows: int, width: int
) -> None:
    g = Graph(dtype="float16")
    x = g.node("Cast", g.node("Tanh", g.given("x", rows, 16)), to=1)
    y = g.node("MatMul", x, g.weight("w", 16, width, dtype="float32"), name="/fc")
    y = g.node("Relu", y, name="/Relu")
    made = edited(tmp_path, g.ends(g.node("Cast", y, to=10), rows, width), "casts")
    (one,) = made.plan.made
    assert set(one.kept) == {"/fc", "/Relu"}
    assert one.scant == (("/fc",) if rows == 4 else ())
    assert one.uneven == (("/fc",) if width == 33 else ())


def test_an_island_that_needs_fp32_stays(tmp_path: Path) -> None:
    g = Graph(dtype="float16")
    y = g.node("Exp", g.node("Cast", g.given("x", 4), to=1), name="/Exp")
    made = edited(tmp_path, g.ends(g.node("Cast", y, to=10), 4), "casts")
    assert not made.kinds
    assert "/Exp" in made.reasons[0]


def test_nodes_that_do_nothing_are_gone(tmp_path: Path) -> None:
    g = Graph()
    y = g.node("Relu", g.given("x", 2, 4))
    y = g.node("Mul", g.node("Identity", y), g.value(1.0))
    y = g.node("Add", g.node("Cast", y, to=1), g.value(0.0))
    y = g.node("Dropout", g.node("Reshape", y, g.ints(2, 4)))
    y = g.node("Concat", g.node("Transpose", y, perm=[0, 1]), axis=0)
    y = g.node("Slice", y, g.ints(0), g.ints(9), g.ints(1))
    made = edited(tmp_path, g.ends(g.node("Neg", y), 2, 4), "noops")
    assert made.ops == ["Relu", "Neg"]
    assert made.worst == 0


def test_a_factor_that_is_not_one_or_makes_the_tensor_larger_stays(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 1, 4)
    y = g.node("Mul", g.node("Mul", x, g.value(1.5)), g.value(np.ones((3, 4))))
    assert edited(tmp_path, g.ends(y, 3, 4), "noops").ops == ["Mul", "Mul"]


def test_an_output_keeps_its_name_when_what_makes_it_is_gone(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 4)
    y = g.node("Identity", g.node("Relu", x), name="/last")
    z = g.node("Identity", x, name="/copy")
    made = edited(tmp_path, g.ends(y, 4).ends(z, 4), "noops")
    assert ops(made, "Relu", "Identity") == [1, 1]  # an input is no output: z stays


def test_scales_and_biases_behind_a_convolution_become_part_of_it(tmp_path: Path) -> None:
    g = Graph()
    y = g.node("Conv", g.given("x", 1, 3, 5, 5), g.weight("w", 4, 3, 3, 3), g.weight("b", 4))
    y = g.node("Mul", y, g.weight("scale", 4, 1, 1, mean=1.0))
    statistics = [
        g.weight(name, 4, mean=mean) for name, mean in zip("abcd", (1, 0, 0, 3), strict=True)
    ]
    y = g.node("Add", g.node("BatchNormalization", y, *statistics), g.value(0.5))
    made = edited(tmp_path, g.ends(g.node("Relu", y), 1, 4, 3, 3), "epilogues")
    assert made.ops == ["Conv", "Relu"]
    assert made.worst < 1


@pytest.mark.parametrize("op", ["Mul", "Div", "Add", "Sub"])
def test_a_scale_behind_a_product_becomes_part_of_its_weights(tmp_path: Path, op: str) -> None:
    g = Graph()
    y = g.node("MatMul", g.given("x", 2, 5, 8), g.weight("w", 8, 4))
    y = g.node("Add", y, g.weight("b", 4))
    y = g.node(op, y, g.weight("s", 4, mean=2.0))
    made = edited(tmp_path, g.ends(y, 2, 5, 4), "epilogues")
    assert made.ops == ["MatMul", "Add"]
    assert made.worst < 1


def test_a_scale_that_the_type_of_the_weights_does_not_hold_stays(tmp_path: Path) -> None:
    g = Graph(dtype="float16")
    y = g.node("MatMul", g.given("x", 2, 8), g.weight("w", 8, 4))
    y = g.node("Mul", y, g.value(1e-6))
    made = edited(tmp_path, g.ends(y, 2, 4), "epilogues")
    assert not made.kinds
    assert "the scaled weights" in made.reasons[0]


def test_stretches_that_are_joined_again_in_order_are_the_tensor(tmp_path: Path) -> None:
    g = Graph()
    x = g.node("Relu", g.given("x", 2, 8))
    one = g.node("Slice", x, g.ints(0), g.ints(3), g.ints(1))
    two, three = g.node(
        "Split",
        g.node("Slice", x, g.ints(3), g.ints(99), g.ints(-1)),
        g.ints(2, 3),
        parts=2,
        axis=1,
    )
    y = g.node("Concat", one, two, three, axis=-1)
    made = edited(tmp_path, g.ends(g.node("Neg", y), 2, 8), "movement")
    assert made.ops == ["Relu", "Neg"]
    assert made.worst == 0


def test_a_slice_of_a_concatenation_says_which_branches_that_joined(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 2, 4)
    parts = [g.node(op, x) for op in ("Relu", "Neg")]
    joined = g.node("Concat", *parts, axis=1)
    y = g.node("Sigmoid", g.node("Slice", joined, g.ints(4), g.ints(8), g.ints(1)))
    g.ends(g.node("Abs", joined), 2, 8)
    made = edited(tmp_path, g.ends(y, 2, 4), "movement")
    assert [one.parted for one in made.plan.made] == [("/Relu_0", "/Neg_1")]


@given(first=st.integers(1, 7), second=st.integers(1, 7))
@settings(max_examples=15, deadline=None)
def test_a_tensor_rolled_and_rolled_back_is_the_tensor(
    tmp_path_factory: pytest.TempPathFactory, first: int, second: int
) -> None:
    g = Graph()
    y = g.node("Relu", g.given("x", 8, 2))
    for by in (first, second):
        parts = [
            g.node("Slice", y, g.ints(begin), g.ints(end), g.ints(0))
            for begin, end in ((by, 8), (0, by))
        ]
        y = g.node("Concat", *parts, axis=0)
    made = edited(tmp_path_factory.mktemp("g"), g.ends(g.node("Neg", y), 8, 2), "movement")
    assert made.worst == 0
    if first + second == 8:
        assert made.ops == ["Relu", "Neg"]


def test_a_copy_that_a_broadcast_makes_unnecessary_is_gone(tmp_path: Path) -> None:
    g = Graph()
    y = g.node("Expand", g.given("x", 1, 4), g.ints(3, 4))
    y = g.node("Add", g.given("full", 3, 4), y)
    made = edited(tmp_path, g.ends(y, 3, 4), "movement")
    assert made.ops == ["Add"]
    assert made.worst == 0


def quantized(g: Graph, x: str, scale: float) -> str:
    held = (g.value(scale), g.value(0, "int8"))
    return str(g.node("DequantizeLinear", g.node("QuantizeLinear", x, *held), *held))


def test_doubled_quantizers_become_one(tmp_path: Path) -> None:
    g = Graph()
    y = quantized(g, g.given("x", 2, 6), 0.05)
    y = quantized(g, y, 0.05)
    y = quantized(g, g.node("Reshape", y, g.ints(3, 4)), 0.05)
    made = edited(tmp_path, g.ends(g.node("Relu", y), 3, 4), "quantizers")
    assert ops(made, "QuantizeLinear", "DequantizeLinear") == [1, 1]
    assert made.worst == 0


def test_the_quantizer_behind_what_moves_data_takes_the_other_s_place(tmp_path: Path) -> None:
    g = Graph(opset=19)
    y = quantized(g, g.node("Relu", g.given("x", 2, 6)), 0.05)
    y = quantized(g, g.node("Reshape", y, g.ints(3, 4), name="/move"), 0.05)
    (one,) = edited(tmp_path, g.ends(g.node("Relu", y), 3, 4), "quantizers").plan.made
    (other,) = one.instead
    assert other in one.beside
    assert other not in one.nodes


def test_quantizers_of_another_scale_stay(tmp_path: Path) -> None:
    g = Graph()
    y = quantized(g, quantized(g, g.given("x", 2, 6), 0.05), 0.04)
    made = edited(tmp_path, g.ends(g.node("Relu", y), 2, 6), "quantizers")
    assert ops(made, "QuantizeLinear") == [2]


def eight_bits(g: Graph, x: str) -> str:
    held = (g.value(0.05), g.value(0, "float8_e4m3fn"))
    return str(g.node("DequantizeLinear", g.node("QuantizeLinear", x, *held), *held))


def test_parts_in_fp8_are_not_joined_for_onnx_has_no_such_concat(tmp_path: Path) -> None:
    g = Graph(opset=19)
    parts = [eight_bits(g, g.given(name, 2, 3)) for name in "xy"]
    y = eight_bits(g, g.node("Concat", *parts, axis=1))
    made = edited(tmp_path, g.ends(g.node("Relu", y), 2, 6), "quantizers")
    assert ops(made, "QuantizeLinear") == [3]
    assert [one.kind for one in made.plan.refused] == ["quantizers"]


def test_fp8_is_moved_by_what_onnx_defines_for_it(tmp_path: Path) -> None:
    for opset, left in ((19, 2), (21, 1)):  # Transpose takes FP8 from 21 on
        g = Graph(opset=opset)
        x = g.node("Sigmoid", g.given("x", 2, 6))
        moved = g.node("Transpose", eight_bits(g, x), perm=[1, 0])
        other = g.node("Neg", g.nodes[-2].output[0])  # keeps the first pair
        y = eight_bits(g, moved)
        g.ends(g.node("Relu", y), 6, 2)
        made = edited(tmp_path, g.ends(g.node("Abs", other), 2, 6), "quantizers")
        assert ops(made, "QuantizeLinear") == [left]


def test_quantized_parts_are_joined_before_they_are_dequantized(tmp_path: Path) -> None:
    g = Graph()
    parts = [quantized(g, g.given(name, 2, 3), 0.05) for name in "xy"]
    y = quantized(g, g.node("Concat", *parts, axis=1), 0.05)
    made = edited(tmp_path, g.ends(g.node("Relu", y), 2, 6), "quantizers")
    assert ops(made, "QuantizeLinear", "DequantizeLinear", "Concat") == [2, 1, 1]
    assert made.worst == 0


@pytest.mark.parametrize(
    ("case", "why"),
    [("weights", "weights have no quantizer"), ("add", "is quantized before the sum")],
)
def test_a_quantizer_that_only_calibration_can_place_is_told(
    tmp_path: Path, case: str, why: str
) -> None:
    g = Graph()
    x = g.given("x", 2, 6)
    if case == "weights":
        y = g.node("MatMul", quantized(g, x, 0.05), g.weight("w", 6, 6))
    else:
        y = g.node("Add", quantized(g, g.node("MatMul", x, g.weight("w", 6, 6)), 0.05), x)
    made = edited(tmp_path, g.ends(y, 2, 6), "quantizers")
    assert not made.kinds
    assert any(why in reason for reason in made.reasons)


def test_channels_are_padded_through_sums_and_pools(tmp_path: Path) -> None:
    g = Graph(dtype="float16")
    x = g.given("x", 1, 8, 8, 8)
    a = g.node(
        "Relu", g.node("Conv", x, g.weight("a", 14, 8, 3, 3), g.weight("ab", 14), pads=[1] * 4)
    )
    b = g.node("Sigmoid", g.node("Conv", a, g.weight("b", 14, 14, 3, 3), pads=[1] * 4))
    y = g.node("MaxPool", g.node("Add", a, b), kernel_shape=[2, 2], strides=[2, 2])
    y = g.node("Conv", y, g.weight("c", 8, 14, 1, 1))
    made = edited(tmp_path, g.ends(y, 1, 8, 4, 4), "channels")
    assert made.kinds == ["channels"]
    assert made.worst < 1
    assert "16 channels instead of 14" in made.plan.made[0].does
    assert made.plan.made[0].growth == 16 / 14


def test_channels_that_something_else_reads_stay(tmp_path: Path) -> None:
    g = Graph(dtype="float16")
    a = g.node("Conv", g.given("x", 1, 8, 4, 4), g.weight("a", 14, 8, 1, 1))
    y = g.node("Conv", g.node("Softmax", a, axis=1, name="/Softmax"), g.weight("b", 8, 14, 1, 1))
    made = edited(tmp_path, g.ends(y, 1, 8, 4, 4), "channels")
    assert not made.kinds
    assert "/Softmax" in made.reasons[0]


def test_shapes_that_are_known_are_constants(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", 2, 3, 4)
    shape = g.node("Shape", x)
    batch = g.node("Gather", shape, g.value(0, "int64"), axis=0)
    sizes = g.node("Concat", g.node("Unsqueeze", batch, g.ints(0)), g.ints(-1), axis=0)
    made = edited(tmp_path, g.ends(g.node("Reshape", x, sizes), 2, 12), "shapes")
    assert made.ops == ["Reshape"]
    assert made.worst == 0


def test_shapes_of_open_dimensions_stay(tmp_path: Path) -> None:
    g = Graph()
    x = g.given("x", "batch", 3, 4)
    batch = g.node("Gather", g.node("Shape", x), g.ints(0), axis=0)
    sizes = g.node("Concat", batch, g.ints(-1), axis=0)
    made = edited(tmp_path, g.ends(g.node("Reshape", x, sizes), "batch", 12), "shapes")
    assert not made.kinds


def test_transposes_stay_where_an_output_has_their_layout(tmp_path: Path) -> None:
    g = Graph()
    y = g.node("Relu", g.node("Transpose", g.given("x", 2, 3, 4), perm=[2, 1, 0]))
    g.ends(g.node("Neg", y), 4, 3, 2)
    g.ends(g.node("Transpose", y, perm=[2, 1, 0]), 2, 3, 4)
    assert not edited(tmp_path, g, "layout").kinds


def test_a_weight_beside_a_new_tensor_has_the_type_of_the_model(tmp_path: Path) -> None:
    g = Graph(opset=13, dtype="float16")
    x = g.given("x", 2, 8)
    e = g.node("Exp", x)
    y = g.node("Div", e, g.node("ReduceSum", e, g.ints(-1)))
    made = edited(tmp_path, g.ends(layer_norm(g, y, 8), 2, 8))
    assert sorted(made.kinds) == ["norms", "softmax"]
    assert made.worst < 1
