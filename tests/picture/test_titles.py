"""Titles of layers: short, and different where the layers are."""

from __future__ import annotations

from collections import Counter

import pytest

from nsysmap.engine.reader import read_engine
from nsysmap.picture.titles import layer_titles
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
    assert titles("w.0.weight + /w.0/quantizer/QuantizeLinear + /w.0/Conv") == ("w.0/Conv +2",)


def test_regions_and_reformats_keep_what_they_are() -> None:
    name = "{ForeignNode[model/layers/3/ELEMENTWISE_SUM_0...model/layers/3/post/ELEMENTWISE_PROD_1]}"
    other = name.replace("/3/", "/4/")
    assert titles(name, other) == (
        "layers/3 … {ForeignNode[ELEMENTWISE_SUM_0...ELEMENTWISE_PROD_1]}",
        "layers/4 … {ForeignNode[ELEMENTWISE_SUM_0...ELEMENTWISE_PROD_1]}",
    )
    assert titles("Reformatting CopyNode for Input Tensor 1 to /stem/conv/Conv + /stem/Relu") == ("reformat input 1 of conv/Conv +1",)


def test_a_thousand_equal_blocks_are_a_thousand_titles() -> None:
    engine = decoder(125)
    assert len(set(layer_titles(engine.layers))) == len(engine.layers)


def test_layers_without_any_name_to_tell_them_by_keep_one_title() -> None:
    assert titles("x", "x") == ("x", "x")
    assert titles("/", "[]-[") == ("/", "[]-[")
