"""Streams that are not one engine in a loop: other kernels between, kernels missing, several
engines.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace
from nsysmap.mapping.order.twins import EITHER
from tests.made_engines import made, row
from tests.nsys_file import NsysFile
from tests.places import FIXTURES
from tests.reports import read_trace

Item = tuple[str, str | None]  # a kernel and its layer
PRE = (
    "void resize_nhwc<float>(float const*, float*, int)",
    "mean_subtract_kernel",
    "void at::native::fill<float>(float*)",
)
POST = (
    "void cub::DeviceReduceKernel<int>(int)",
    "decode_boxes",
    "void at::native::softmax<float>(float*)",
)


def inference(folder: str) -> list[Item]:
    with (FIXTURES / folder / "truth.tsv").open(newline="") as rows:
        return [
            (row["kernel"], row["layer"])
            for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def engine_of(folder: str) -> Engine:
    return read_engine(FIXTURES / folder / "engine.json")


def mapped(items: Sequence[Sequence[Item]], engines: Sequence[Engine], folder: Path) -> MappedTrace:
    """The items launched one after the other on one stream, with a pause before each group."""
    file, at, number = NsysFile(), 1000, 0
    for group in items:
        at += 20_000
        for name, _ in group:
            number += 1
            file.launch(name, at, number)
            at += 20
    return map_trace(read_trace(file.write(folder / f"{len(engines)}.sqlite")), engines)


def layers(result: MappedTrace) -> list[str | None]:
    return result.mapped.table.text("layer").list()


def truth(items: Sequence[Sequence[Item]]) -> list[str | None]:
    return [layer for group in items for _, layer in group]


@pytest.mark.parametrize("folder", ["bert_trt10", "bert_trt103", "bert_trt85", "bert_split_trt10"])
def test_kernels_before_and_after_each_inference_get_no_layer_and_cost_none(
    folder: str, tmp_path: Path
) -> None:
    chosen = random.Random(5)
    items = []
    for _ in range(8):
        before = [(name, None) for name in chosen.choices(PRE, k=chosen.randint(0, 3))]
        after = [(name, None) for name in chosen.choices(POST, k=chosen.randint(0, 4))]
        items.append([*before, *inference(folder), *after])
    result = mapped(items, [engine_of(folder)], tmp_path)
    assert layers(result) == truth(items)
    assert len(result.inferences) == 8
    assert set(result.inferences.ints("kernel_sequence").tolist()) == {0}


@pytest.mark.parametrize("folder", ["bert_trt10", "bert_trt103", "bert_split_trt10"])
def test_missing_kernels_cost_no_others(folder: str, tmp_path: Path) -> None:
    chosen = random.Random(6)
    items = [[item for item in inference(folder) if chosen.random() > 0.04] for _ in range(10)]
    result = mapped(items, [engine_of(folder)], tmp_path)
    wrong = [
        (got, want) for got, want in zip(layers(result), truth(items), strict=True) if got != want
    ]
    assert not wrong
    assert len(result.inferences) == 10


def test_two_engines_and_sometimes_one_are_told_apart(tmp_path: Path) -> None:
    first, second = inference("bert_trt10"), inference("bert_trt103")
    items = [first, second, first, first, second, first, second, second, first]
    result = mapped(items, [engine_of("bert_trt103"), engine_of("bert_trt10")], tmp_path)
    assert layers(result) == truth(items)
    assert result.inferences.ints("engine").tolist() == [1, 0, 1, 1, 0, 1, 0, 0, 1]


def test_an_engine_whose_file_is_not_given_gets_no_layers(tmp_path: Path) -> None:
    ours = inference("bert_split_trt10")
    theirs: list[Item] = [(name, None) for name, _ in inference("bert_trt10")]
    items = [ours, theirs] * 6
    result = mapped(items, [engine_of("bert_split_trt10")], tmp_path)
    assert layers(result) == truth(items)
    assert not [note for note in result.mapped.notes if note.level == "error"]


def test_an_engine_that_no_inference_follows_is_said_not_to_have_run_where_anothers_were_found(
    tmp_path: Path,
) -> None:
    items = [
        [*inference("bert_trt10"), *((name, None) for name in POST)],
        inference("bert_trt10"),
    ] * 4
    other = made(
        row(
            "conv",
            "CaskConvolution",
            [("x", [1, 8], "Int8")],
            [("y", [1, 8], "Int8")],
            TacticName="sm80_xmma_fprop_x",
        )
    )
    fits = mapped(items, [engine_of("bert_trt10"), other], tmp_path).mapped.engine_fits.records()
    assert [fit["verdict"] for fit in fits] == ["ran", "did-not-run"]
    assert "other given files" in str(fits[1]["how"])


def test_each_kernel_without_a_layer_says_why(tmp_path: Path) -> None:
    items = [[("mean_subtract_kernel", None), *inference("bert_trt10")] for _ in range(6)]
    items.append([*inference("bert_trt10"), ("nobody_knows_it", None)])
    result = mapped(items, [engine_of("bert_trt10")], tmp_path)
    unmapped = [row["reason"] for row in result.mapped.table.records() if row["layer"] is None]
    assert len(unmapped) == 7
    assert all(isinstance(reason, str) and "between inferences" in reason for reason in unmapped)


def test_an_engine_between_passes_of_another_that_shares_its_kernels_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    ours = inference("bert_trt10")
    theirs: list[Item] = [(name, None) for name, _ in inference("bert_trt103")]
    items = [ours, theirs] * 8
    assert layers(mapped(items, [engine_of("bert_trt10")], tmp_path)) == truth(items)


COPY = "void genericReformat::copyVectorizedKernel<double, float, __half, true, false, 1>(int)"
FPROP = "sm80_xmma_fprop_implicit_gemm_{}_nhwckrsc_nhwc_tilesize{}x64x64_stage3_kernel_trt"
CONVOLUTIONS: list[Item] = [  # of another engine, whose file is not given
    (COPY, None),
    *((FPROP.format("f16f16_f16f16_f16", size), None) for size in range(32, 384, 32)),
    ("void nvinfer1::tiled_pooling::poolCHW_RS3_UV1_max<3>(int)", None),
]


def test_a_plugin_takes_no_kernels_that_only_tensorrt_runs(tmp_path: Path) -> None:
    ours = [
        *(
            (
                f"/{at}/norm",
                "PluginV2DynamicExt",
                "void tensorrt_llm::kernels::generalRmsNorm<__half, false>(int)",
            )
            for at in range(4)
        ),
        ("/add", "PointWise", "generatedNativePointwise"),
        (
            "/lm_head/PLUGIN_V2_Gemm_0",
            "PluginV2DynamicExt",
            "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_execute_kernel__5x_cublas",
        ),
    ]
    engine = made(
        *(
            row(name, kind, [(f"t{at}", [8], "Half")], [(f"t{at + 1}", [8], "Half")])
            for at, (name, kind, _) in enumerate(ours)
        )
    )
    items = [[*((kernel, name) for name, _, kernel in ours), *CONVOLUTIONS] for _ in range(8)]
    assert layers(mapped(items, [engine], tmp_path)) == truth(items)


def test_a_convolution_takes_none_of_another_engine_that_runs_in_every_turn(tmp_path: Path) -> None:
    kernels = [
        COPY,
        *(FPROP.format("i8i8_i8i32_f32", size) for size in (16, 48, 80, 112, 144, 176)),
    ]
    names = [
        "QuantizeLinear_2",
        *(f"conv{at}.weight + QuantizeLinear_{at} + Conv_{at}" for at in range(6)),
    ]
    kinds = ["Reformat", *["CaskConvolution"] * 6]
    rows = [
        row(name, kind, [(f"t{at}", [1, 8, 4, 4], "Int8")], [(f"t{at + 1}", [1, 8, 4, 4], "Int8")])
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    for at in (1, 3, 4, 5, 6):  # of the second convolution no tactic is told
        rows[at]["TacticName"] = kernels[at].removesuffix("_kernel_trt")
    ours: list[Item] = list(zip(kernels, names, strict=True))
    items = [CONVOLUTIONS, ours] * 8
    assert layers(mapped(items, [made(*rows)], tmp_path)) == truth(items)


@pytest.mark.parametrize("reverse", [False, True])
def test_engine_files_with_the_same_layers_that_nothing_tells_apart_give_the_first_one_s(
    reverse: bool, tmp_path: Path
) -> None:
    one = engine_of("bert_trt10")
    pair = [one, replace(one, source="copy.json")]
    items = [[("mean_subtract_kernel", None), *inference("bert_trt10")] for _ in range(6)]
    result = mapped(items, pair[::-1] if reverse else pair, tmp_path)
    assert layers(result) == truth(items)
    assert EITHER in result.mapped.table.text("reason").list()
    assert set(result.inferences.ints("engine").tolist()) == {0}
    assert len(result.inferences) == 6
    assert result.mapped.engine_fits.text("verdict").list() == ["cannot-tell", "cannot-tell"]


def test_kernels_of_which_nothing_repeats_are_no_inference_and_speak_against_no_engine(
    tmp_path: Path,
) -> None:
    items = [
        [(f"void solver::step_{number}<float, {number * 7}>(float*)", None) for number in range(60)]
    ]
    for engines in ([], [engine_of("bert_trt10")]):
        result = mapped(items, engines, tmp_path)
        assert len(result.inferences) == 0
        assert set(layers(result)) == {None}
        assert not [note for note in result.mapped.notes if note.level == "error"]


def test_one_whole_inference_of_a_given_engine_is_one_without_being_repeated(
    tmp_path: Path,
) -> None:
    items = [inference("bert_trt10")]
    result = mapped(items, [engine_of("bert_trt10")], tmp_path)
    assert layers(result) == truth(items)
    assert len(result.inferences) == 1


def test_many_kernel_names_that_never_come_again_are_not_aligned(tmp_path: Path) -> None:
    items = [[(f"kernel_{number}", None) for number in range(3000)]]
    result = mapped(items, [engine_of("bert_trt10")], tmp_path)
    assert len(result.inferences) == 0
    assert not result.mapped.placed.streams.asked.any()


def test_an_opaque_region_takes_no_kernels_that_come_often_but_anywhere(tmp_path: Path) -> None:
    chosen = random.Random(3)
    items = [inference("bert_trt85") for _ in range(12)]
    for number, group in enumerate(items):
        for _ in range(number % 4 > 0):  # nine of the twelve
            group.insert(chosen.randrange(8, len(group) - 8), ("normalize_kernel", None))
    assert layers(mapped(items, [engine_of("bert_trt85")], tmp_path)) == truth(items)


def test_an_opaque_region_takes_no_kernels_of_an_engine_that_sometimes_follows_without_a_pause(
    tmp_path: Path,
) -> None:
    ours = inference("bert_trt85")
    theirs: list[Item] = [(name, None) for name, _ in inference("bert_trt103")]
    chosen = random.Random(11)
    items = [[*ours, *(theirs if chosen.random() < 0.7 else [])] for _ in range(16)]
    found, wanted = layers(mapped(items, [engine_of("bert_trt85")], tmp_path)), truth(items)
    wrong = sum(got is not None and got != want for got, want in zip(found, wanted, strict=True))
    assert wrong <= 0.005 * len(wanted)
    assert sum(got == want for got, want in zip(found, wanted, strict=True)) >= 0.97 * len(wanted)


def opaque_from(folder: str, share: float, to: Path) -> tuple[Engine, str]:
    """The engine whose file lists that share of its layers, one region for the others, and the last
    layer; and the region's name.
    """
    *told, last = json.loads((FIXTURES / folder / "engine.json").read_text())["Layers"]
    listed = round(share * len(told))
    name = f"{{ForeignNode[{told[listed]['Name']}...{told[-1]['Name']}]}}"
    region = {"LayerType": "Myelin", "Inputs": [], "Outputs": [], "TacticName": "", "Name": name}
    path = to / "opaque.json"
    path.write_text(json.dumps({"Layers": [*told[:listed], region, last], "Bindings": []}))
    return read_engine(path), name


@pytest.mark.parametrize("share", [0.3, 0.5])
@pytest.mark.parametrize("folder", ["bert_trt10", "bert_trt103"])
def test_blocks_within_an_opaque_region_that_repeat_listed_ones_begin_no_inference(
    folder: str, share: float, tmp_path: Path
) -> None:
    engine, region = opaque_from(folder, share, tmp_path)
    listed = {layer.name for layer in engine.layers}
    mine: list[Item] = [
        (name, layer if layer in listed else region) for name, layer in inference(folder)
    ]
    other: list[Item] = [(name, None) for name, _ in inference("aux_streams")]
    items = [part for turn in range(12) for part in ([mine, other] if turn % 3 else [mine])]
    assert layers(mapped(items, [engine], tmp_path)) == truth(items)
