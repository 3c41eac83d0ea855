"""Which layers of one build became which of another."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.names.decode import layer_kind
from nsysmap.network.layer_network import network_of
from nsysmap.network.matched_groups import groups_of
from tests.joining.networks import layer, network, network_in, shuffled_and_renamed, told
from tests.places import FIXTURES, SHARED

WITH_TENSORS = [
    "bert_trt10/engine.json", "bert_trt103/engine.json", "bert_split_trt10/engine.json",
    "two_shapes/engine.json",
    "decode_loop/context.engine.json", "decode_loop/generation.engine.json",
    "torch_mixed/backbone.engine.json",
    "torch_mixed/head.engine.json", "aux_streams/engine.json",
]  # fmt: skip
PUBLIC = ["trt8_mobilenet_v2_residuals.graph.json", "trt8_resnet_qat.graph.json"]


def joined_right(path: Path, seed: int) -> float:
    """The share of the layers with tensors that are joined with themselves, shuffled and
    renamed.
    """
    engine = read_engine(path)
    mixed, was = shuffled_and_renamed(engine, seed)
    before, after = (
        network_of(engine.layers, range(len(engine.layers))),
        network_of(mixed, range(len(mixed))),
    )
    one_to_one = [
        group for group in groups_of(before, after) if len(group.before) == len(group.after) == 1
    ]
    right = {
        before.pieces[group.before[0]].layer_id
        for group in one_to_one
        if before.pieces[group.before[0]].layer_id == was[after.pieces[group.after[0]].layer_id]
    }
    shown = [one.index for one in engine.layers if one.inputs or one.outputs]
    return len(right & set(shown)) / len(shown)


@pytest.mark.parametrize("file", WITH_TENSORS)
def test_layers_in_another_order_under_other_names_are_joined_by_what_they_compute(
    file: str,
) -> None:
    assert min(joined_right(FIXTURES / file, seed) for seed in range(3)) >= 0.98


@pytest.mark.parametrize("file", PUBLIC)
def test_so_are_those_of_public_engines(file: str) -> None:
    if not (SHARED / "engines" / file).exists():
        pytest.skip("no ../shared")
    assert min(joined_right(SHARED / "engines" / file, seed) for seed in range(3)) >= 0.98


def test_a_norm_in_four_kernels_is_merged_with_the_one_that_does_it_all() -> None:
    groups = told(
        network_in(FIXTURES / "bert_split_trt10/engine.json"),
        network_in(FIXTURES / "bert_trt10/engine.json"),
    )
    merged = [
        (before, after)
        for before, after, relation, by in groups
        if relation == "merged" and by == "onnx"
    ]
    pieces = ["AddCast", "MeanSubMulMean", "AddSqrtDivMulMulAdd", "Cast"]
    assert [[name.split("_")[3] for name in before] for before, _ in merged] == [pieces, pieces]
    assert all(
        "AddMeanSubMulMeanAddSqrtDivMulMulAdd" in name for _, after in merged for name in after
    )


def test_op_codes_of_three_and_of_four_letters_are_the_same_operations() -> None:
    """The networks of TensorRT 10.3 and 10.9, without the metadata that names their nodes."""
    sides = []
    for folder in ("bert_trt103", "bert_trt10"):
        engine = read_engine(FIXTURES / folder / "engine.json")
        sides.append(
            network_of(
                [replace(one, onnx=(), tactic=None) for one in engine.layers],
                range(len(engine.layers)),
            )
        )
    found = {
        before[0]: after[0]
        for before, after, relation, _ in told(*sides)
        if relation == "one-to-one"
    }
    norms = [name for name in found if "MeaSubMulMea" in name]
    assert len(norms) == 9
    assert all("MeanSubMulMean" in found[name] for name in norms)
    assert found["__myl_CasSubMul_myl0_2"] == "__myl_CastSubMul_myl0_2"


def test_layers_that_were_inside_an_opaque_region_moved_out_of_it() -> None:
    before, after = (
        network_in(FIXTURES / "bert_trt85/engine.json"),
        network_in(FIXTURES / "bert_trt10/engine.json"),
    )
    moved = [
        (first, second)
        for first, second, relation, _ in told(before, after)
        if relation == "moved-out-of-region"
    ]
    assert [(len(first), len(second)) for first, second in moved] == [
        (1, sum(piece.computes for piece in after.pieces))
    ]
    back = [relation for _, _, relation, _ in told(after, before)]
    assert Counter(back)["moved-into-region"] == 1


def test_one_layer_that_became_two_is_split() -> None:
    before = network(
        [
            layer("/a/Conv", "in", "a"),
            layer("/b/Conv + /b/Relu", "a", "b"),
            layer("/c/Conv", "b", "c"),
        ]
    )
    after = network(
        [
            layer("/a/Conv", "in", "a"),
            layer("/b/Conv", "a", "b0"),
            layer("/b/Relu", "b0", "b"),
            layer("/c/Conv", "b", "c"),
        ]
    )
    assert (["/b/Conv + /b/Relu"], ["/b/Conv", "/b/Relu"], "split", "name") in told(before, after)
    assert (["/b/Conv", "/b/Relu"], ["/b/Conv + /b/Relu"], "merged", "name") in told(after, before)


def test_so_it_is_where_names_say_nothing() -> None:
    before = network(
        [
            layer("x1", "in", "a", kind="convolution"),
            layer("__myl_CorrRelu_myl0_1", "a", "b"),
            layer("x3", "b", "c", kind="gemm"),
        ]
    )
    after = network(
        [
            layer("y1", "p", "q", kind="convolution"),
            layer("__myl_Corr_myl3_1", "q", "r"),
            layer("__myl_Relu_myl3_2", "r", "s"),
            layer("y4", "s", "t", kind="gemm"),
        ]
    )
    assert (
        ["__myl_CorrRelu_myl0_1"],
        ["__myl_Corr_myl3_1", "__myl_Relu_myl3_2"],
        "split",
        "structure",
    ) in told(before, after)


def test_a_plugin_takes_the_place_of_the_layers_between_the_same_neighbours() -> None:
    norm = [
        layer("/norm/ReduceMean", "a", "mean"),
        layer("/norm/Sub", "a mean", "centred"),
        layer("/norm/ReduceMean_1", "centred", "variance"),
        layer("/norm/Div", "centred variance", "n"),
    ]
    ends = (layer("/fc/MatMul", "in", "a"), layer("/out/MatMul", "n", "out"))
    before = network([ends[0], *norm, ends[1]])
    after = network([ends[0], layer("LayerNormN-0", "a", "n", kind="plugin"), ends[1]])
    assert told(before, after) == [
        (["/fc/MatMul"], ["/fc/MatMul"], "one-to-one", "name"),
        ([one.name for one in norm], ["LayerNormN-0"], "merged", "tensors"),
        (["/out/MatMul"], ["/out/MatMul"], "one-to-one", "name"),
    ]


def test_layers_are_of_the_region_that_they_stand_before_and_not_of_the_one_that_they_read_past() -> (  # noqa: E501
    None
):
    """Two regions with a convolution between them; the second reads the first too.  What stood at
    its beginning moved out of it.
    """
    first = [layer("/a/Conv", "in", "a"), layer("{ForeignNode[/r/One.../r/Two]}", "a", "r")]
    middle, last = layer("/b/Conv", "r", "b"), layer("/c/Conv", "s", "out")
    before = network([*first, middle, layer("{ForeignNode[/s/Gelu.../s/Four]}", "b r", "s"), last])
    moved = [layer("/s/Gelu", "b", "g"), layer("/s/MatMul", "g", "m"), layer("/s/Add", "m r", "d")]
    after = network(
        [*first, middle, *moved, layer("{ForeignNode[/s/Three.../s/Four]}", "d", "s"), last]
    )
    out = [
        (one, sorted(two))
        for one, two, relation, _ in told(before, after)
        if relation == "moved-out-of-region"
    ]
    assert out == [
        (
            ["{ForeignNode[/s/Gelu.../s/Four]}"],
            sorted([*(one.name for one in moved), "{ForeignNode[/s/Three.../s/Four]}"]),
        )
    ]


def test_layers_of_the_same_weights_are_joined_though_the_fusions_around_them_say_otherwise() -> (
    None
):
    """Of two branches that are added up the one or the other may be fused with the addition: the
    weights in the names tell them apart.
    """
    ends = (layer("stem.weight + Conv_1", "in", "a"), layer("out.weight + Conv_90", "sum", "out"))
    before = network(
        [
            ends[0],
            layer("left.weight + Conv_7", "a", "l"),
            layer("right.weight + Conv_11 + Add_12 + Relu_13", "a l", "sum"),
            ends[1],
        ]
    )
    after = network(
        [
            ends[0],
            layer("right.weight + Conv_15", "a", "r"),
            layer("left.weight + Conv_9 + Add_16 + Relu_17", "a r", "sum"),
            ends[1],
        ]
    )
    pairs = {
        before[0].split(".")[0]: after[0].split(".")[0]
        for before, after, _, _ in told(before, after)
    }
    assert pairs == {"stem": "stem", "left": "left", "right": "right", "out": "out"}


def test_a_wrapper_of_quantization_aware_training_does_not_hide_a_layer_s_name() -> None:
    ends = (layer("net/stem/Conv2D", "in", "a"), layer("net/out/Conv2D", "sum", "out"))
    one, two = "net/block_0_conv/Conv2D", "net/block_3_conv/Conv2D"
    before = network(
        [ends[0], layer(two, "a", "t"), layer(f"{one} + net/block_add/add", "a t", "sum"), ends[1]]
    )
    quant = [name.replace("/block", "/quant_block") for name in (one, two)]
    after = network(
        [
            ends[0],
            layer(quant[0], "a", "o"),
            layer(f"{quant[1]} + net/quant_block_add/add", "a o", "sum"),
            ends[1],
        ]
    )
    pairs = {before[0]: after[0] for before, after, _, _ in told(before, after)}
    assert pairs[two].startswith(quant[1])
    assert pairs[f"{one} + net/block_add/add"] == quant[0]


def test_a_module_around_the_whole_network_does_not_hide_its_layers_names() -> None:
    """Engine files of names alone, of two exports: one has all modules in a wrapper, and quantizes
    around it.
    """
    names = [
        "conv1/Conv",
        "layer1/layer1.0/conv1/Conv",
        "layer1/layer1.0/conv2/Conv",
        "layer1/layer1.1/conv1/Conv",
        "layer1/layer1.1/conv2/Conv",
        "layer2/layer2.0/conv1/Conv",
        "layer2/layer2.0/conv2/Conv",
        "fc/Gemm",
    ]
    before = network([layer(f"/{name}", "", "") for name in names])
    wrapped = [
        f"/model_fp32/{name.replace('layer1.', '').replace('layer2.', '')}" for name in names
    ]
    after = network(
        [
            layer(name, "", "")
            for name in (
                "/quant/QuantizeLinear",
                *wrapped[::2],
                *wrapped[1::2],
                "/dequant/DequantizeLinear",
            )
        ]
    )
    found = {
        one[0]: (two[0], by)
        for one, two, relation, by in told(before, after)
        if relation == "one-to-one"
    }
    assert found == {
        f"/{name}": (other, "name") for name, other in zip(names, wrapped, strict=True)
    }


def test_the_numbers_of_constants_join_nothing() -> None:
    """TensorRT 8.6 names the constants that it folds by number, and numbers their clones in each
    build.
    """
    pwn = "PWN(PWN(PWN(395{} + (Unnamed Layer* {}) [Shuffle], Div_{}), PWN(Erf_{})), Mul_{})"
    early, late = pwn.format("_clone_6", 10, 83, 84, 87), pwn.format("_clone_7", 20, 192, 193, 196)
    ends = (
        layer("Conv_72", "in", "a"),
        layer("Conv_181", "r", "b"),
        layer("MatMul_199", "c", "out"),
    )
    region = layer("{ForeignNode[bias...Transpose_174]}", "a", "r")
    before = network(
        [ends[0], region, ends[1], layer(late.replace("_clone_7", "_clone_6"), "b", "c"), ends[2]]
    )
    after = network(
        [
            ends[0],
            layer(early, "a", "e"),
            layer("MatMul_90", "e", "r"),
            ends[1],
            layer(late, "b", "c"),
            ends[2],
        ]
    )
    found = {tuple(one): (two, relation) for one, two, relation, _ in told(before, after)}
    assert found[late.replace("_clone_7", "_clone_6"),] == ([late], "one-to-one")
    assert found[region.name,] == ([early, "MatMul_90"], "moved-out-of-region")


def test_a_counter_that_numbers_plugins_otherwise_is_not_believed() -> None:
    """Four norms were plugins, of which the second and the fourth are a convolution's part now: the
    numbers of the others count on.
    """
    shapes = [(1, 64, 64), (1, 16, 128), (1, 32, 256), (1, 8, 512), (1, 128, 96), (1, 4, 32)]
    convolutions = [
        layer(f"/c{at}/Conv", f"n{at - 1}", f"c{at}", shape=shape)
        for at, shape in enumerate(shapes)
    ]
    norms = [
        layer(f"LayerNorm-{at}", f"c{at}", f"n{at}", kind="plugin", shape=shape)
        for at, shape in enumerate(shapes)
    ]
    before = network([one for pair in zip(convolutions, norms, strict=True) for one in pair])
    left = [
        layer(f"LayerNorm-{at}", f"c{was}", f"n{was}", kind="plugin", shape=shapes[was])
        for at, was in enumerate((0, 2, 4, 5))
    ]
    fused = {at: layer(f"/c{at}/Conv", f"n{at - 1}", f"n{at}", shape=shapes[at]) for at in (1, 3)}
    after = network([convolutions[0], left[0], fused[1], convolutions[2], left[1], fused[3],
                     convolutions[4], left[2], convolutions[5], left[3]])  # fmt: skip
    pairs = {first[0]: second[0] for first, second, _, _ in told(before, after) if first and second}
    assert [pairs[f"LayerNorm-{was}"] for was in (0, 2, 4, 5)] == [
        f"LayerNorm-{at}" for at in range(4)
    ]


def test_a_counter_is_believed_where_nothing_speaks_against_it() -> None:
    names = ("/a/Conv", "norm-0", "/b/Conv", "norm-1", "/c/Conv", "norm-2", "/d/Conv", "norm-3")
    side = network(
        [layer(name, "", "", kind="plugin" if "norm" in name else None) for name in names]
    )
    assert {by for _, _, _, by in told(side, side)} == {"name"}


def test_a_layer_that_only_one_file_knows_to_run_nothing_is_joined_by_its_name() -> None:
    named = [layer(name, "", "") for name in ("/a/Conv", "/b/Conv", "/c/Conv")]
    before = network([named[0], layer("__mye4000_0_myl0_0", "", "", kind="unknown"), *named[1:]])
    after = network([named[0], layer("__mye4000_0_myl0_0", "", "", kind="shape"), *named[1:]])
    assert [(relation, by) for _, _, relation, by in told(before, after)] == [
        ("one-to-one", "name")
    ] * 4


def test_a_layer_that_left_some_of_its_nodes_to_a_plugin_computes_others() -> None:
    ends = (layer("Conv_27", "in", "a"), layer("Conv_93", "n", "out"))
    before = network(
        [
            ends[0],
            layer("ReduceMean_43", "a", "m"),
            layer("PWN(PWN(Sqrt_50, Div_51), Mul_52)", "a m", "n"),
            ends[1],
        ]
    )
    after = network(
        [
            ends[0],
            layer("LayerNorm-0", "a", "p", kind="plugin"),
            layer("PWN(Mul_52)", "p", "n"),
            ends[1],
        ]
    )
    groups = groups_of(before, after)
    assert [group.other_nodes for group in groups] == [False, False, True, False]
    assert not any(group.other_nodes for group in groups_of(before, before))
    pointwise = layer("PWN(PWN(Sqrt_50, Div_51), Mul_52)", "a", "n")
    names = network([ends[0], pointwise, ends[1]])
    metadata = network([ends[0], replace(pointwise, onnx=("Sqrt_50",)), ends[1]])
    assert not any(group.other_nodes for group in groups_of(metadata, names))


def test_numbers_that_another_export_gave_to_other_nodes_are_not_believed() -> None:
    shapes = [(1, 64, 56, 56), (1, 128, 28, 28), (1, 256, 14, 14), (1, 512, 7, 7)]
    before = network(
        [
            layer(f"Conv_{3 * at}", f"t{at}", f"t{at + 1}", shape=shape)
            for at, shape in enumerate(shapes)
        ]
    )
    after = network(
        [
            layer(f"Conv_{3 * at + 3}", f"u{at}", f"u{at + 1}", shape=shape)
            for at, shape in enumerate(shapes)
        ]
    )
    assert [(first, second) for first, second, _, _ in told(before, after)] == [
        ([f"Conv_{3 * at}"], [f"Conv_{3 * at + 3}"]) for at in range(4)
    ]


def test_a_reformat_put_in_is_new_and_no_part_of_its_neighbour() -> None:
    before = network([layer("/a/Conv", "in", "a"), layer("/b/Conv", "a", "b")])
    after = network(
        [
            layer("/a/Conv", "in", "a"),
            layer("Reformatting CopyNode for Input Tensor 0 to /b/Conv", "a", "r"),
            layer("/b/Conv", "r", "b"),
        ]
    )
    assert ([], ["Reformatting CopyNode for Input Tensor 0 to /b/Conv"], "new", "") in told(
        before, after
    )
    assert [relation for _, _, relation, _ in told(after, before)].count("gone") == 1


def test_layers_of_repeated_blocks_are_joined_in_order_where_nothing_else_tells() -> None:
    names = ["Conv", "Relu", "Gemm"] * 4
    before = [
        Layer(at, f"{name}_{at}", kind)
        for at, (name, kind) in enumerate(
            zip(names, ["convolution", "activation", "gemm"] * 4, strict=True)
        )
    ]
    after = [replace(one, name=f"{one.name.split('_')[0]}_{one.index + 100}") for one in before]
    found = told(network(before), network(after))
    assert [(first[0].split("_")[1], second[0].split("_")[1]) for first, second, _, _ in found] == [
        (str(at), str(at + 100)) for at in range(12)
    ]


@pytest.mark.parametrize(
    "files",
    [
        ("bert_trt85", "bert_trt10"),
        ("bert_trt103", "bert_trt10"),
        ("bert_split_trt10", "bert_trt10"),
    ],
)
def test_the_other_way_round_groups_are_the_same(files: tuple[str, str]) -> None:
    before, after = (network_in(FIXTURES / name / "engine.json") for name in files)
    there = {(group.before, group.after) for group in groups_of(before, after)}
    assert there == {(group.after, group.before) for group in groups_of(after, before)}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_every_layer_of_both_sides_is_in_one_group(seed: int) -> None:
    dice = random.Random(seed)
    sides = []
    for _ in range(2):
        made = []
        for at in range(dice.randint(1, 20)):
            reads = " ".join(
                f"t{one}" for one in dice.sample(range(at), min(at, dice.randint(0, 3)))
            )
            kind = dice.choice(
                [
                    "gemm",
                    "convolution",
                    "reformat",
                    "pointwise",
                    "foreign_node",
                    "plugin",
                    "constant",
                    "softmax",
                ]
            )
            made.append(
                layer(
                    dice.choice([f"/n{at}/MatMul", f"Add_{at}", "same"]), reads, f"t{at}", kind=kind
                )
            )
        sides.append(network(made))
    groups = groups_of(*sides)
    for side, one in enumerate(sides):
        places = [place for group in groups for place in (group.before, group.after)[side]]
        assert sorted(places) == list(range(len(one.pieces)))
    assert all(
        (group.relation in ("new", "gone")) == (not group.before or not group.after)
        for group in groups
    )
    assert all(bool(group.joined_by) == bool(group.before and group.after) for group in groups)


def test_parts_of_a_tensor_are_written_before_it_is_read_wherever_the_file_has_them() -> None:
    part, whole = (1, 32, 28, 28), (1, 64, 28, 28)
    reader = replace(layer("/c/Conv", "x", "y"), inputs=(Tensor("x", whole),))
    writers = [layer(f"/{name}/Conv", "in", "x", shape=part) for name in "ab"]
    mixed = network([reader, *writers])
    assert [piece.name for piece in mixed.pieces] == ["/a/Conv", "/b/Conv", "/c/Conv"]
    assert {place for place, _ in mixed.writers[2]} == {0, 1}


def test_a_reformat_before_a_padding_is_not_the_quantizer_behind_it() -> None:
    """ResNet-50 of TensorFlow in FP16 and quantized: the padding that the convolution did is a
    layer of its own, before the quantizer.
    """
    before = network(
        [
            layer(
                "net/conv1/Transpose__6", "image", "nchw", kind="shuffle", shape=(8, 3, 224, 224)
            ),
            layer(
                "Reformatting CopyNode for Input Tensor 0 to conv",
                "nchw",
                "half",
                kind="reformat",
                shape=(8, 3, 224, 224),
            ),
            layer("Conv__435 + net/relu", "half", "a", kind="convolution", shape=(8, 64, 112, 112)),
            layer("net/pool", "a", "b", kind="pooling", shape=(8, 64, 56, 56)),
        ]
    )
    after = network(
        [
            layer("net/conv1_pad/Pad", "image", "padded", kind="slice", shape=(8, 230, 230, 3)),
            layer(
                "QuantLinearNode__838", "padded", "int8", kind="reformat", shape=(8, 230, 230, 3)
            ),
            layer("net/conv1/BiasAdd__11", "int8", "nchw8", kind="shuffle", shape=(8, 3, 230, 230)),
            layer(
                "net/weight + QuantLinearNode__62 + net/conv1/BiasAdd",
                "nchw8",
                "c",
                kind="convolution",
                shape=(8, 64, 112, 112),
            ),
            layer("net/pool", "c", "d", kind="pooling", shape=(8, 64, 56, 56)),
        ]
    )
    found = told(before, after)
    relation = {
        name: relation for names, others, relation, _ in found for name in (*names, *others)
    }
    assert relation["Reformatting CopyNode for Input Tensor 0 to conv"] == "gone"
    assert relation["QuantLinearNode__838"] == "new"
    assert relation["net/pool"] == "one-to-one"


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_that_carry_data_between_the_same_layers_the_one_that_reshapes_is_joined_with_the_one_that_does(  # noqa: E501
    turned: bool,
) -> None:
    def gemm(name: str) -> Layer:
        return layer(name, "x", "y", kind="gemm", shape=(8, 1000, 1, 1))

    def reshape(name: str, reads: str, writes: str) -> Layer:
        return Layer(
            0,
            name,
            "noop",
            inputs=(Tensor(reads, (8, 1000, 1, 1)),),
            outputs=(Tensor(writes, (8, 1000)),),
        )

    reformat = layer(
        "Reformatting CopyNode for Input Tensor 0 to reshape",
        "y",
        "z",
        kind="noop",
        shape=(8, 1000, 1, 1),
    )
    softmax = layer("softmax", "w", "out", kind="softmax", shape=(8, 1000))
    sides = [
        network([gemm("Gemm_48"), reformat, reshape("reshape_after_Gemm_48", "z", "w"), softmax]),
        network([gemm("Gemm_70"), reshape("copied_squeeze_after", "y", "w"), softmax]),
    ]
    found = told(*(reversed(sides) if turned else sides))
    pairs = [{*before, *after} for before, after, relation, _ in found if relation == "one-to-one"]
    assert {"reshape_after_Gemm_48", "copied_squeeze_after"} in pairs


@pytest.mark.parametrize("turned", [False, True])
def test_tensors_that_tensorrt_numbers_are_not_taken_for_those_of_another_build(
    turned: bool,
) -> None:
    """MobileNet on two GPUs: the same number is the fifth activation's tensor in one build and the
    sixth's in the other.
    """

    def build(clip: str, kind: str, number: int) -> list[Layer]:
        found: list[Layer] = []
        last = "image"
        for block in range(8):
            made, clipped = (
                f"[CONVOLUTION]-[/features/{block}]_output",
                f"(Unnamed Layer* {number + 10 * block}) [Identity]_output",
            )
            for name, what, reads, writes in (
                (f"/features/{block}/Conv", "convolution", last, made),
                (clip.format(block), kind, made, clipped),
            ):
                shape = (1, 8, 14, 14)
                found.append(
                    Layer(
                        0,
                        name,
                        what,
                        inputs=(Tensor(reads, shape),),
                        outputs=(Tensor(writes, shape),),
                    )
                )
            last = clipped
        return found

    sides = [
        network(build("__myl_MaxMinCas_myl{}_0", "myelin_kernel", 3)),
        network(build("clamp of features/{}", "pointwise", 13)),
    ]
    found = told(*(reversed(sides) if turned else sides))
    assert [relation for _, _, relation, _ in found] == ["one-to-one"] * 16
    blocks = [
        {re.findall(r"features/(\d)|myl(\d)", name)[0] for name in (*before, *after)}
        for before, after, _, _ in found
    ]
    assert [{"".join(one) for one in block} for block in blocks] == [
        {str(at // 2)} for at in range(16)
    ]


def test_an_addition_that_torch_tensorrt_fused_into_a_convolution_is_merged_with_it() -> None:
    def product(block: int, more: str, writes: str) -> Layer:
        name = f"[CONVOLUTION]-[aten_ops.convolution.default]-[/features/{block}/convolution_{block}]{more}"  # noqa: E501
        return layer(name, f"t{block - 1}", writes, kind="convolution")

    apart = [
        product(1, "", "t1"),
        product(2, "", "c2"),
        layer("__myl_Add_myl16_0", "t1 c2", "t2"),
        product(3, "", "t3"),
    ]
    fused = [
        product(1, "", "t1"),
        product(2, " + [ELEMENTWISE]-[aten_ops.add.Tensor]-[/features/2/add]", "t2"),
        product(3, "", "t3"),
    ]
    found = told(network(apart), network(fused))
    assert [(len(before), relation) for before, _, relation, _ in found] == [
        (1, "one-to-one"),
        (2, "merged"),
        (1, "one-to-one"),
    ]


def named_only(name: str) -> Layer:
    """A layer of an engine file that has nothing but names."""
    return Layer(0, name, layer_kind(name, None))


@pytest.mark.parametrize("turned", [False, True])
def test_what_runs_in_one_build_alone_is_joined_by_its_name(turned: bool) -> None:
    """AlexNet by Torch-TensorRT: its reshape runs a kernel in one build; in the other, none behind
    a reformat that does.
    """
    pool, product = (
        layer("/pool/MaxPool", "image", "a", kind="pooling"),
        layer("/fc/MatMul", "c", "out", kind="gemm"),
    )
    runs = [pool, layer("/flatten/Reshape", "a", "c", kind="shuffle"), product]
    reformatted = [
        pool, layer("Reformatting CopyNode for Input Tensor 0 to /flatten/Reshape", "a", "b"),
        layer("/flatten/Reshape", "b", "c", kind="noop"), product,
    ]  # fmt: skip
    sides = [network(runs), network(reformatted)]
    found = told(*(reversed(sides) if turned else sides))
    assert (["/flatten/Reshape"], ["/flatten/Reshape"], "one-to-one", "name") in found


def test_a_file_of_names_and_the_log_of_the_same_engine_have_the_same_layers() -> None:
    """Names alone do not tell which reformats and reshapes run nothing."""
    names = [
        "/conv/Conv",
        "Reformatting CopyNode for Input Tensor 0 to /pool/MaxPool",
        "/pool/MaxPool",
        "/Flatten",
        "/fc/MatMul",
    ]
    kinds = ["convolution", "noop", "pooling", "noop", "gemm"]
    in_log = [
        replace(layer(name, f"t{at}", f"t{at + 1}", kind=kinds[at]), type=kinds[at])
        for at, name in enumerate(names)
    ]
    found = told(network([named_only(name) for name in names]), network(in_log))
    assert [(before, after) for before, after, _, _ in found] == [
        ([name], [name]) for name in names
    ]
