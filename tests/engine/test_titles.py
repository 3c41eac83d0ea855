"""Titles of layers: short, and different where the layers are."""

from __future__ import annotations

from collections import Counter

import pytest

from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.titles import layer_titles
from tests.graph_engines import decoder
from tests.made_engines import made, row
from tests.places import FIXTURES


def titles(*names: str) -> tuple[str, ...]:
    return layer_titles(made(*(row(name, "Convolution", [], []) for name in names)).layers)


def test_layers_that_are_alike_are_told_apart_by_where_they_lie() -> None:
    found = layer_titles(read_engine(FIXTURES / "bert_trt10" / "engine.json").layers)
    assert found[3] == "layer.0 … query|key|value/MatMul + bias"
    assert found[4] == "layer.0/attention/self: attention"
    assert found[5] == "layer.0/attention/output/dense/MatMul + bias"
    assert found[7] == "layer.0/intermediate/dense/MatMul + bias + GELU"
    assert found[12] == "layer.1/attention/output/dense/MatMul + bias"
    # the only ones of their kind, but not the only block
    assert found[19] == "layer.2 … self/MatMul"
    assert found[56] == "reformat output 0 of pooled"


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("bert_trt10", "engine.json"),
        ("aux_streams", "engine.json"),
        ("decode_loop", "generation.engine.json"),
    ],
)
def test_no_two_layers_with_a_path_have_one_title(folder: str, file: str) -> None:
    engine = read_engine(FIXTURES / folder / file)
    found = Counter(
        title
        for layer, title in zip(engine.layers, layer_titles(engine.layers), strict=True)
        if "/" in layer.name
    )
    assert [title for title, count in found.items() if count > 1] == []


def test_a_component_in_which_all_agree_is_left_out() -> None:
    assert titles("/a/b/x/Conv", "/a/c/x/Conv") == ("b/x/Conv", "c/x/Conv")
    assert titles("/a/b/s/x/Conv", "/a/c/s/x/Conv") == ("b … x/Conv", "c … x/Conv")
    assert titles("/a/b/c/Conv") == ("c/Conv",)


def test_a_number_alone_comes_with_what_it_counts() -> None:
    assert titles("/m/layers/0/mlp/Add", "/m/layers/1/mlp/Add") == (
        "layers/0/mlp/Add",
        "layers/1/mlp/Add",
    )
    assert titles("/m/layers/0/mlp/fc/Conv", "/m/layers/1/mlp/fc/Conv") == (
        "layers/0 … fc/Conv",
        "layers/1 … fc/Conv",
    )


def test_the_product_names_the_layer_not_its_weights() -> None:
    assert titles("w.0.weight + /w.0/quantizer/QuantizeLinear + /w.0/Conv") == ("w.0/Conv",)
    assert titles("m.0.weight + QuantizeLinear_8 + Conv_12 + PWN(Clip_16)") == (
        "m.0/Conv_12 + Clip",
    )


def test_what_is_fused_is_named_or_counted() -> None:
    assert titles("/a/Conv + /a/Add_1 + /a/relu/Relu") == ("a/Conv + Add + Relu",)
    assert titles("/a/q/MatMul + /a/k/MatMul + /a/v/MatMul") == ("q|k|v/MatMul",)
    assert titles("/a/q/MatMul + /a/k/MatMul + /a/v/MatMul + /a/g/MatMul") == ("q|k|v|+1/MatMul",)
    assert titles("/a/Conv + /a/Add + /a/Mul + /a/Relu") == ("a/Conv + Add + Mul + Relu",)
    assert titles("/a/Conv + /a/Add + /a/Mul + /a/Relu + /a/Sub") == (
        "a/Conv + Add + Mul + Sub +1",
    )
    assert titles(
        "[CONVOLUTION]-[x]-[c_1] + [SCALE]-[x]-[_native_batch_norm_legit_no_training]"
    ) == ("c_1 +1",)


def test_a_plugin_of_tensorrt_llm_has_its_own_name() -> None:
    path = "LLaMAForCausalLM/transformer/layers"
    assert titles(
        f"{path}/0/attention/PLUGIN_V2_Gemm_0", f"{path}/1/attention/PLUGIN_V3_Gemm_0"
    ) == (
        "layers/0/attention/Gemm_0",
        "layers/1/attention/Gemm_0",
    )
    assert titles("lm_head/PLUGIN_V2_Gemm_0") == ("lm_head/Gemm_0",)
    assert titles("Reformatting CopyNode for Output Tensor 0 to lm_head/PLUGIN_V2_Gemm_0") == (
        "reformat output 0 of lm_head/Gemm_0",
    )
    assert titles("m/PLUGIN_V2_") == ("m/PLUGIN_V2_",)


def test_names_that_stand_for_several_layers_keep_their_stars() -> None:
    assert titles("/inception*/branch*/conv*/Conv + /inception*/branch*/relu*/Relu") == (
        "conv*/Conv + Relu",
    )
    assert titles("__myl_AddMul_myl0_*") == ("__myl_AddMul_myl0_*",)
    assert titles("Reformatting CopyNode for Input Tensor 0 to /conv*/Conv") == (
        "reformat input 0 of conv*/Conv",
    )


def test_regions_and_reformats_keep_what_they_are() -> None:
    name = (
        "{ForeignNode[model/layers/3/ELEMENTWISE_SUM_0...model/layers/3/post/ELEMENTWISE_PROD_1]}"
    )
    other = name.replace("/3/", "/4/")
    assert titles(name, other) == (
        "layers/3 … {ForeignNode[ELEMENTWISE_SUM_0...ELEMENTWISE_PROD_1]}",
        "layers/4 … {ForeignNode[ELEMENTWISE_SUM_0...ELEMENTWISE_PROD_1]}",
    )
    assert titles("Reformatting CopyNode for Input Tensor 1 to /stem/conv/Conv + /stem/Relu") == (
        "reformat input 1 of stem/conv/Conv + Relu",
    )


def test_a_thousand_equal_blocks_are_a_thousand_titles() -> None:
    engine = decoder(125)
    assert len(set(layer_titles(engine.layers))) == len(engine.layers)


def test_layers_without_any_name_to_tell_them_by_keep_one_title() -> None:
    assert titles("x", "x") == ("x", "x")
    assert titles("/", "[]-[") == ("/", "[]-[")


def title(name: str, *nodes: str, kind: str = "kgen", more: tuple[str, ...] = ()) -> str:
    """What the first of some layers is called, whose Metadata names these nodes; `more` are nodes
    of another layer.
    """
    rows = [
        row(name, kind, [("x", [1], "Half"), ("y", [1], "Half")], [], Metadata=metadata(*nodes))
    ]
    return layer_titles(
        made(*rows, row("other{}", "kgen", [], [], Metadata=metadata(*more))).layers
    )[0]


def metadata(*nodes: str) -> str:
    return "\x1f".join(f"[ONNX Layer: {node}]" for node in nodes)


def test_the_main_operator_names_a_layer_and_not_what_follows_it() -> None:
    gelu = ("/Mul_2", "/Mul_1", "/Add_3", "/Div_1", "/Erf", "/up/Add", "/up/MatMul")
    assert (
        title("__myl_FcAddDivCastErfCastAddMulMul{}", *gelu, kind="runtime_fusion")
        == "up/MatMul + bias + GELU"
    )
    tanh = (
        "/f/MatMul",
        "/a/Pow",
        "/a/Mul",
        "/a/Add",
        "/a/Mul_1",
        "/a/Tanh",
        "/a/Add_1",
        "/a/Mul_2",
        "/a/Mul_3",
    )
    assert title("/f/MatMul{}", *tanh, kind="gemm") == "f/MatMul + GELU"
    assert title("__myl_SiluMul{}", "/Sigmoid_1", "/Mul_40", "/Mul_41") == "SwiGLU (Sigmoid_1)"
    assert (
        title("/m/conv/Conv{}", "/m/conv/Conv", "/m/act/Sigmoid", "/m/act/Mul", kind="correlation")
        == "m/conv/Conv + SiLU"
    )
    gate = ("/se/fc/Conv", "/se/Sigmoid", "/se/Mul", "/se/ReduceMean")
    # x * sigmoid(y)
    assert (
        title("/se/fc/Conv{}", *gate[:3], kind="correlation", more=gate)
        == "fc/Conv + Mul + Sigmoid"
    )


def test_norms_are_named_by_their_node_or_by_what_their_nodes_are_together() -> None:
    add = "__myl_AddAddCastMeanSubMulMeanAddSqrtDivMulCastMulAdd{}"
    assert (
        title(add, "/out/Add", "/Add_2", "/ln1/LayerNormalization", more=("/out/MatMul",))
        == "ln1/LayerNormalization + bias + residual"
    )
    nodes = ("Sub", "ReduceMean", "ReduceMean_1", "Pow", "Add", "Sqrt", "Div", "Mul", "Add_1")
    assert (
        title("__myl_MeanSubMulMeanAddSqrtDivMulMulAdd{}", *(f"/b.3/ln/{node}" for node in nodes))
        == "b.3/ln: LayerNorm"
    )
    rms = (
        "/Add_5",
        "/Mul_16",
        "/ReduceMean_1",
        "/Div_3",
        "/Mul_18",
        "/Mul_17",
        "/Sqrt_1",
        "/Add_6",
    )
    assert title("__myl_AddMulMeanAddSqrtDivMulMul{}", *rms) == "RMSNorm (ReduceMean_1) + residual"
    assert (
        title("__myl_MeanSubMulMean{}", "/b.0/ln/LayerNormalization")
        == "ln/LayerNormalization: statistics"
    )


def test_attention_is_named_by_its_module_or_its_softmax() -> None:
    assert (
        title("_gemm_mha_v2{}", "/MatMul_1", "/Softmax", "/Add_1", "/Div", "/MatMul")
        == "attention (Softmax)"
    )
    assert (
        title(
            "_gemm_mha_v2{}", *(f"/b.0/attn/{node}" for node in ("MatMul", "Softmax", "MatMul_1"))
        )
        == "b.0/attn: attention"
    )


def test_a_kernel_that_only_moves_the_data_of_a_node_is_not_called_that_node() -> None:
    assert title("__myl_MoveConc{}", "/conv1/Conv", "/relu/Relu") == "conv1/Conv: Concat"
    assert (
        title("__myl_AddReshTranReshMove{}", "/value/Add", "/Reshape_2", "/Transpose_1")
        == "value/Add + Reshape + Transpose"
    )


def test_layers_whose_nodes_nothing_tells_have_their_operations_and_their_number() -> None:
    assert title("__myl_ReshTran{}") == "Reshape + Transpose (myl0_0)"
    assert title("__myl_FcAddDivCastErfCastAddMulMul{}") == "MatMul + bias + GELU (myl0_0)"
    assert title("__mye5395{}", kind="signal") == "signal (myl0_0)"
    assert title("__mye64388{}") == "kgen (myl0_0)"


def test_a_name_of_a_stranger_stays_short_and_harmless_names_stay_as_they_are() -> None:
    long = "x" * 100_000
    assert len(title(f"/{long}/{long}/Conv{{}}", f"/{long}/{long}/Conv", kind="correlation")) < 200
    assert len(title("__myl_" + "Mul" * 30_000 + "{}")) < 200
    assert title("/MatMul_3{}", "/MatMul_3", kind="gemm") == "MatMul_3"
    assert title("/{}", "/", kind="gemm") == "/"
    # escaped where it is shown, as every name
    assert titles("<b>\x1b[2J/Conv") == ("<b>\x1b[2J/Conv",)


def test_what_metadata_adds_behind_a_node_is_no_part_of_its_name() -> None:
    engine = made(
        row(
            "__myl_FcAddRelu{}",
            "runtime_fusion",
            [],
            [],
            Metadata=metadata("/c/Conv", "/relu/Relu") + "__gemm_from_conv1x1",
        )
    )
    assert engine.layers[0].onnx == ("/c/Conv", "/relu/Relu")
    assert layer_titles(engine.layers) == ("c/Conv + Relu",)
