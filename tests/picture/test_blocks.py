"""What is drawn as one box: blocks told by numbers in names, else by what repeats; Myelin
regions.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.output.picture.blocks import block_groups, region_groups
from tests.graph_engines import decoder, names_only
from tests.made_engines import Row, made
from tests.places import FIXTURES


def bare(name: str, kind: str | None = None) -> Row:
    """A layer of which only name and type are known; without a type only the name."""
    return (
        {"Name": name}
        if kind is None
        else {"Name": name, "LayerType": kind, "Inputs": [], "Outputs": []}
    )


def sizes(engine: Engine) -> list[tuple[str, int]]:
    return [(group.name, len(group.layers)) for group in block_groups(engine)]


def test_blocks_are_told_by_the_numbers_in_onnx_paths() -> None:
    assert sizes(decoder(5)) == [(f"model/layers.{block}", 8) for block in range(5)]


def test_layers_that_name_no_node_go_with_their_neighbours() -> None:
    groups = block_groups(names_only(decoder(4)))
    assert [group.name for group in groups] == [f"model/layers.{block}" for block in range(4)]
    # the first norm names no node, and nothing before it is in a block
    assert groups[0].layers == tuple(range(3, 11))
    assert groups[1].layers == tuple(range(11, 19))


def test_the_norm_between_two_blocks_belongs_to_the_one_before_and_so_does_the_last() -> None:
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    groups = block_groups(engine)
    assert [group.name for group in groups] == [f"bert/encoder/layer.{block}" for block in range(6)]
    assert [len(group.layers) for group in groups] == [7, 7, 11, 7, 7, 11]
    assert [group.layers[0] for group in groups] == [3, 10, 17, 28, 35, 42]
    outside = set(range(57)) - {layer for group in groups for layer in group.layers}
    assert outside == {0, 1, 2, 53, 54, 55, 56}


def test_dotted_names_of_weights_tell_blocks_too() -> None:
    names = [
        f"layer{stage}.{block}.conv{number}.weight + Conv_{stage}{block}{number}"
        for stage in (1, 2)
        for block in (0, 1)
        for number in (1, 2)
    ]
    engine = made(*(bare(name, "CaskConvolution") for name in names))
    assert sizes(engine) == [("layer1.0", 2), ("layer1.1", 2), ("layer2.0", 2), ("layer2.1", 2)]


def test_without_names_blocks_are_what_repeats_in_order() -> None:
    kinds = ["CaskConvolution", "PointWiseV2", "Reformat"]
    engine = made(
        bare("first", "Shuffle"),
        *(bare(f"op_{at}", kinds[at % 3]) for at in range(12)),
    )
    groups = block_groups(engine)
    assert [group.layers for group in groups] == [(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)]
    assert {group.family for group in groups} == {"block * of 3 layers"}


def test_one_kind_of_layer_over_and_over_is_no_block() -> None:
    assert block_groups(made(*(bare(f"op_{at}", "CaskConvolution") for at in range(30)))) == ()


def test_an_engine_that_repeats_nothing_has_no_blocks() -> None:
    assert (
        block_groups(made(bare("a", "Shuffle"), bare("b", "Reformat"), bare("c", "PointWise")))
        == ()
    )


def test_regions_of_one_layer_are_none_and_profiles_are_kept_apart() -> None:
    names = [
        "__myl_Add_myl0_0",
        "__myl_Mul_myl0_1",
        "__myl_Add_myl1_0",
        "__myl_Add [profile 1]_myl2_0",
        "__myl_Mul [profile 1]_myl2_1",
    ]
    engine = made(*(bare(name, "kgen") for name in names))
    assert [(group.name, group.layers) for group in region_groups(engine)] == [
        ("Myelin region 0 [profile 0]", (0, 1)),
        ("Myelin region 2 [profile 1]", (3, 4)),
    ]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=20))
def test_any_names_are_grouped_without_overlap(names: list[str]) -> None:
    groups = block_groups(made(*(bare(name.replace("{}", "")) for name in names)))
    layers = [layer for group in groups for layer in group.layers]
    assert len(layers) == len(set(layers))
    assert all(0 <= layer < len(names) for layer in layers)


def test_numbers_of_any_length_are_read_in_linear_time() -> None:
    long = "/" + "1" * 50_000 + "x/" * 20_000 + "MatMul"
    assert block_groups(made({"Name": long}, {"Name": long}, {"Name": "/a.1/b"})) == ()
