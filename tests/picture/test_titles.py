"""Titles of layers: short, and different where the layers are."""

from __future__ import annotations

from collections import Counter

import pytest

from nsysmap.engine.reader import read_engine
from nsysmap.picture.titles import layer_titles, name_title
from tests.graph_engines import decoder
from tests.made_engines import made, row
from tests.places import FIXTURES


def titles(*names: str) -> tuple[str, ...]:
    return layer_titles(made(*(row(name, "Convolution", [], []) for name in names)).layers)


def test_layers_that_are_alike_are_told_apart_by_where_they_lie() -> None:
    found = layer_titles(read_engine(FIXTURES / "bert_trt10" / "engine.json").layers)
    assert found[3] == "layer.0 … query/MatMul +2"
    assert found[4] == "layer.0 … attention"
    assert found[5] == "layer.0/attention … dense/MatMul"
    assert found[7] == "layer.0/intermediate/dense/MatMul"
    assert found[12] == "layer.1/attention … dense/MatMul"
    assert found[56] == "reformat output 0 of pooled"


@pytest.mark.parametrize(
    ("folder", "file"), [("bert_trt10", "engine.json"), ("aux_streams", "engine.json"), ("decode_loop", "generation.engine.json")]
)
def test_no_two_layers_with_a_path_have_one_title(folder: str, file: str) -> None:
    engine = read_engine(FIXTURES / folder / file)
    found = Counter(title for layer, title in zip(engine.layers, layer_titles(engine.layers), strict=True) if "/" in layer.name)
    assert [title for title, count in found.items() if count > 1] == []


def test_a_component_in_which_all_agree_is_left_out() -> None:
    assert titles("/a/b/x/Conv", "/a/c/x/Conv") == ("b/x/Conv", "c/x/Conv")
    assert titles("/a/b/s/x/Conv", "/a/c/s/x/Conv") == ("b … x/Conv", "c … x/Conv")
    assert titles("/a/b/c/Conv") == ("c/Conv",)


def test_a_number_alone_comes_with_what_it_counts() -> None:
    assert titles("/m/layers/0/mlp/Add", "/m/layers/1/mlp/Add") == ("layers/0/mlp/Add", "layers/1/mlp/Add")
    assert titles("/m/layers/0/mlp/fc/Conv", "/m/layers/1/mlp/fc/Conv") == ("layers/0 … fc/Conv", "layers/1 … fc/Conv")


def test_the_product_names_the_layer_not_its_weights() -> None:
    assert titles("w.0.weight + /w.0/quantizer/QuantizeLinear + /w.0/Conv") == ("w.0/Conv",)
    assert titles("m.0.weight + QuantizeLinear_8 + Conv_12 + PWN(Clip_16)") == ("m.0/Conv_12 + Clip",)


def test_what_is_fused_is_named_or_counted() -> None:
    assert titles("/a/Conv + /a/Add_1 + /a/relu/Relu") == ("a/Conv + Add + Relu",)
    assert titles("/a/q/MatMul + /a/k/MatMul + /a/v/MatMul") == ("q/MatMul +2",)
    assert titles("/a/Conv + /a/Add + /a/Mul + /a/Relu") == ("a/Conv +3",)
    assert titles("[CONVOLUTION]-[x]-[c_1] + [SCALE]-[x]-[_native_batch_norm_legit_no_training]") == ("c_1 +1",)


def test_a_plugin_of_tensorrt_llm_has_its_own_name() -> None:
    path = "LLaMAForCausalLM/transformer/layers"
    assert titles(f"{path}/0/attention/PLUGIN_V2_Gemm_0", f"{path}/1/attention/PLUGIN_V3_Gemm_0") == (
        "layers/0/attention/Gemm_0",
        "layers/1/attention/Gemm_0",
    )
    assert name_title("lm_head/PLUGIN_V2_Gemm_0") == "lm_head/Gemm_0"
    assert name_title("Reformatting CopyNode for Output Tensor 0 to lm_head/PLUGIN_V2_Gemm_0") == "reformat output 0 of lm_head/Gemm_0"
    assert name_title("m/PLUGIN_V2_") == "m/PLUGIN_V2_"


def test_a_name_by_itself_keeps_its_whole_path() -> None:
    assert name_title("/inception*/branch*/conv*/Conv + /inception*/branch*/relu*/Relu") == "inception*/branch*/conv*/Conv + Relu"
    assert name_title("__myl_AddMul_myl0_*") == "__myl_AddMul_myl0_*"
    assert name_title("Reformatting CopyNode for Input Tensor 0 to /conv*/Conv") == "reformat input 0 of conv*/Conv"


def test_regions_and_reformats_keep_what_they_are() -> None:
    name = "{ForeignNode[model/layers/3/ELEMENTWISE_SUM_0...model/layers/3/post/ELEMENTWISE_PROD_1]}"
    other = name.replace("/3/", "/4/")
    assert titles(name, other) == (
        "layers/3 … {ForeignNode[ELEMENTWISE_SUM_0...ELEMENTWISE_PROD_1]}",
        "layers/4 … {ForeignNode[ELEMENTWISE_SUM_0...ELEMENTWISE_PROD_1]}",
    )
    assert titles("Reformatting CopyNode for Input Tensor 1 to /stem/conv/Conv + /stem/Relu") == ("reformat input 1 of conv/Conv + Relu",)


def test_a_thousand_equal_blocks_are_a_thousand_titles() -> None:
    engine = decoder(125)
    assert len(set(layer_titles(engine.layers))) == len(engine.layers)


def test_layers_without_any_name_to_tell_them_by_keep_one_title() -> None:
    assert titles("x", "x") == ("x", "x")
    assert titles("/", "[]-[") == ("/", "[]-[")
