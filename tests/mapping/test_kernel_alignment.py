"""The kernels of one inference against the layers of an engine, in order."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.order.kernel_alignment import (
    align_inference,
    engine_match,
    optimization_profiles,
)
from nsysmap.mapping.order.scores import KernelFacts, score
from tests.places import FIXTURES
from tests.reports import read_trace

REPORTS = {"bert_trt10": "sync", "bert_trt103": "graph", "bert_trt85": "sync"}
GEMM = "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x32_stage5_warpsize2x2x1_tensor16x8x16"
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x64x32_stage4_g1_tensor16x8x16"  # noqa: E501
REFORMAT = (
    "void genericReformat::copyVectorizedKernel<double, __half, __half, (bool)1, (bool)0,"
    " (int)1>(long long)"
)
POOL = "sm50_xmma_pooling_tiled_FP16NHWC_kMAX_tP2_tQ16_tR2_tS2_tU2_tV2"
OWN = "void preprocess::normalize_kernel<float, 3>(float const*, float*, int)"

Rows = list[Any]


def engine(*layers: Layer, trtexec_ns: tuple[int | None, ...] = ()) -> Engine:
    return Engine(
        "made-up.json",
        tuple(replace(layer, index=at) for at, layer in enumerate(layers)),
        detailed=True,
        trtexec_ns=trtexec_ns,
    )


def layer(name: str, kind: str, *, tactic: str | None = None, profile: int | None = None) -> Layer:
    return Layer(0, name, kind, tactic=tactic, optimization_profile=profile)


def run(*names: str) -> list[KernelFacts]:
    return [KernelFacts(name) for name in names]


def kernels_and_truth(folder: str) -> tuple[list[KernelFacts], list[str]]:
    with (FIXTURES / folder / "truth.tsv").open(newline="") as file:
        truth = [
            row["layer"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    kernels = read_trace(FIXTURES / folder / f"{REPORTS[folder]}.sqlite").kernels
    names = kernels.text("name")
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    return [KernelFacts(names[row] or "", float(took[row])) for row in range(len(truth))], truth


def changed(folder: str, target: Path, change: Callable[[Rows], Rows]) -> Engine:
    document = json.loads((FIXTURES / folder / "engine.json").read_text())
    target.write_text(json.dumps({**document, "Layers": change(document["Layers"])}))
    return read_engine(target)


def same(rows: Rows) -> Rows:
    return rows


def without_tactics(rows: Rows) -> Rows:
    return [
        {key: value for key, value in row.items() if key not in ("TacticName", "Metadata")}
        for row in rows
    ]


def names_only(rows: Rows) -> Rows:
    return [row["Name"] for row in rows]


def shuffled(rows: Rows) -> Rows:
    return random.Random(3).sample(rows, len(rows))


@pytest.mark.parametrize("folder", REPORTS)
@pytest.mark.parametrize("change", [same, without_tactics, names_only, shuffled])
def test_every_kernel_of_a_capture_is_placed_right_and_surely(
    folder: str, change: Callable[[Rows], Rows], tmp_path: Path
) -> None:
    kernels, truth = kernels_and_truth(folder)
    asked = changed(folder, tmp_path / "engine.json", change)
    found = align_inference(kernels, asked)
    assert [asked.layers[at].name for at in found.layer.tolist()] == truth
    assert found.confidence.min() > 0.9
    assert all(found.reason(at, asked) is None for at in range(len(kernels)))


@pytest.mark.parametrize("folder", REPORTS)
@pytest.mark.parametrize("other", REPORTS)
@pytest.mark.parametrize("change", [same, without_tactics, names_only])
def test_an_engine_is_accepted_exactly_if_it_ran(
    folder: str, other: str, change: Callable[[Rows], Rows], tmp_path: Path
) -> None:
    kernels, _ = kernels_and_truth(folder)
    assert engine_match(kernels, changed(other, tmp_path / "engine.json", change)).accepted == (
        folder == other
    )


def test_no_engine_is_accepted_for_kernels_in_random_order() -> None:
    kernels, _ = kernels_and_truth("bert_trt10")
    mixed = random.Random(1).sample(kernels, len(kernels))
    assert not engine_match(mixed, read_engine(FIXTURES / "bert_trt10" / "engine.json")).accepted


def test_layers_that_run_nothing_get_no_kernel() -> None:
    asked = engine(
        layer("__mye4000_0_myl0_0", "shape"),
        layer("conv", "convolution"),
        layer("entry^bb^signal^1_myl0_2", "signal"),
        layer("copied_squeeze_after_conv", "noop"),
        layer("pool", "pooling"),
    )
    assert align_inference(run(CONV, POOL), asked).layer.tolist() == [1, 4]


def test_equal_layers_are_told_apart_by_their_order() -> None:
    asked = engine(*(layer(f"/layer.{at}/MatMul", "gemm", tactic=GEMM) for at in range(12)))
    assert align_inference(run(*[f"{GEMM}_execute_kernel_trt"] * 12), asked).layer.tolist() == list(
        range(12)
    )


def test_one_missing_kernel_among_equal_layers_is_no_certainty_but_beside_others_it_is() -> None:
    asked = engine(
        layer("a", "gemm", tactic=GEMM),
        layer("b", "gemm", tactic=GEMM),
        layer("pool", "pooling", tactic=POOL),
        layer("c", "gemm", tactic=GEMM),
    )
    found = align_inference(run(GEMM, POOL, GEMM), asked)
    assert found.layer.tolist()[1:] == [2, 3]
    assert found.confidence[0] < 0.6
    assert found.confidence[1:].min() > 0.9
    assert "a (" in (found.reason(0, asked) or "") and "b (" in (found.reason(0, asked) or "")


def test_a_helper_kernel_stays_with_the_layer_before_it() -> None:
    asked = engine(*(layer(f"conv{at}", "convolution", tactic=f"{CONV}_{at}") for at in range(4)))
    names = [f"{CONV}_0", f"{CONV}_1", REFORMAT, f"{CONV}_2", f"{CONV}_3"]
    assert align_inference(run(*names), asked).layer.tolist() == [0, 1, 1, 2, 3]


def test_a_kernel_of_the_applications_own_gets_no_layer_and_a_reason() -> None:
    asked = engine(layer("conv", "convolution"), layer("pool", "pooling"))
    found = align_inference(run(OWN, CONV, POOL), asked)
    assert found.layer.tolist() == [-1, 0, 1]
    assert "the engine fits" in (found.reason(0, asked) or "")


def test_a_plugin_runs_kernels_of_any_name() -> None:
    asked = engine(
        layer("conv", "convolution"),
        layer("my_plugin_PLUGIN_V2", "plugin"),
        layer("pool", "pooling"),
    )
    assert align_inference(run(CONV, OWN, OWN, POOL), asked).layer.tolist() == [0, 1, 1, 2]


def test_an_opaque_region_takes_all_that_myelin_ran_between_its_neighbours() -> None:
    asked = engine(
        layer("Reformatting CopyNode for Input Tensor 0 to {ForeignNode[a...b]}", "reformat"),
        layer("{ForeignNode[a...b]}", "foreign_node"),
        layer("PWN(c)", "pointwise"),
    )
    names = [
        REFORMAT,
        "__myl_bb0_0_AddMul",
        GEMM,
        "__myl_bb0_2_ResTra",
        GEMM,
        "__myl_bb0_4_AddTan",
        "generatedNativePointwise",
    ]
    assert align_inference(run(*names), asked).layer.tolist() == [0, 1, 1, 1, 1, 1, 2]


def test_an_inference_is_aligned_with_the_profile_that_it_ran() -> None:
    both = [
        *(layer(f"conv{at}", "convolution", tactic=f"{CONV}_{at}", profile=0) for at in range(4)),
        *(
            layer(f"conv{at} [profile 1]", "convolution", tactic=f"{CONV}_{at}_large", profile=1)
            for at in range(4)
        ),
    ]
    assert align_inference(
        run(*(f"{CONV}_{at}_large" for at in range(4))), engine(*both)
    ).layer.tolist() == [4, 5, 6, 7]
    assert align_inference(
        run(*(f"{CONV}_{at}" for at in range(4))), engine(*both)
    ).layer.tolist() == [0, 1, 2, 3]


def test_profiled_times_decide_between_layers_that_names_cannot_tell_apart() -> None:
    names = [layer(f"unknown_thing_{at}", "other") for at in range(8)]
    took = (1000, 9000, 2000, 30_000, 4000, 60_000, 1500, 20_000)
    asked = engine(*names, trtexec_ns=took)
    ran = [KernelFacts("some_kernel", 1.3 * ns) for at, ns in enumerate(took) if at != 3]
    assert align_inference(ran, asked).layer.tolist() == [0, 1, 2, 4, 5, 6, 7]


def test_what_is_known_otherwise_holds() -> None:
    asked = engine(*(layer(f"/layer.{at}/MatMul", "gemm", tactic=GEMM) for at in range(4)))
    pins = np.array([-1, 3])
    assert align_inference(run(GEMM, GEMM), asked, pins=pins).layer.tolist()[1] == 3


@given(st.integers(0, 40), st.integers(0, 15))
def test_a_cut_inference_is_placed_where_it_was_cut(front: int, back: int) -> None:
    kernels, truth = CAPTURED
    part = slice(front, len(truth) - back)
    found = align_inference(kernels[part], ENGINE, cut=(True, True))
    names = [ENGINE.layers[at].name if at >= 0 else None for at in found.layer.tolist()]
    sure = found.confidence >= 0.9
    wrong = [
        at
        for at, (name, want) in enumerate(zip(names, truth[part], strict=True))
        if name != want and sure[at]
    ]
    assert not wrong


CAPTURED = kernels_and_truth("bert_trt10")
ENGINE = read_engine(FIXTURES / "bert_trt10" / "engine.json")


def test_an_inference_runs_the_layers_of_one_optimization_profile() -> None:
    first, second = (
        layer("conv [profile 0]", "convolution", profile=0),
        layer("conv [profile 1]", "convolution", profile=1),
    )
    both = engine(first, second)
    assert optimization_profiles(both) == [both.layers[:1], both.layers[1:]]
    one = engine(first, layer("relu [profile 0]", "activation", profile=0))
    assert optimization_profiles(one) == [one.layers]
    plain = engine(layer("conv", "convolution"))
    assert optimization_profiles(plain) == [plain.layers]


def transformer_of_names(blocks: int, *, every: int) -> tuple[Engine, list[KernelFacts], list[int]]:
    """A transformer in a file of names: reformats run in every so many of its layers, reshapes
    never, transposes always.
    """
    rows: list[Layer] = []
    kernels: list[str] = []
    truth: list[int] = []
    for block in range(blocks):
        made = (
            (
                f"Reformatting CopyNode for Input Tensor 0 to /layer.{block}/query/MatMul",
                "reformat",
                REFORMAT if not block % every else None,
            ),
            (f"/layer.{block}/query/MatMul", "gemm", f"{GEMM}_execute_kernel_trt"),
            (f"reshape_after_/layer.{block}/query/MatMul", "shuffle", None),
            (
                f"/layer.{block}/Reshape_1 + /layer.{block}/Transpose",
                "shuffle",
                "void permutationKernelPLC3<4, 1>(int)",
            ),
            (f"PWN(/layer.{block}/Add)", "pointwise", "generatedNativePointwise"),
            (f"/layer.{block}/Softmax", "softmax", "softMaxV2kernel"),
            (f"/layer.{block}/Reshape_2", "shuffle", None),
        )
        for name, kind, kernel in made:
            if kernel:
                kernels.append(kernel)
                truth.append(len(rows))
            rows.append(layer(name, kind))
    return replace(engine(*rows), detailed=False), run(*kernels), truth


@pytest.mark.parametrize("every", [1, 2, 5])
def test_a_large_engine_of_names_only_whose_reformats_and_reshapes_run_nothing_is_accepted(
    every: int,
) -> None:
    asked, kernels, truth = transformer_of_names(60, every=every)
    found = align_inference(kernels, asked)
    assert engine_match(kernels, asked).accepted
    sure = found.confidence >= 0.9
    assert [at for at, told in zip(found.layer.tolist(), sure.tolist(), strict=True) if told] == [
        at for at, told in zip(truth, sure.tolist(), strict=True) if told
    ]
    assert sure.mean() > 0.8


def test_a_smaller_convolution_network_does_not_explain_the_kernels_of_a_larger_one() -> None:
    asked = engine(
        *(layer(f"/layer{at}/Conv + /layer{at}/Relu", "convolution") for at in range(20)),
        layer("/pool/MaxPool", "pooling"),
    )
    assert not engine_match(run(*[CONV] * 40, POOL), asked).accepted


def test_what_nothing_decides_forms_no_habit() -> None:
    """One reformat kernel a block, which may be behind one layer or before the next: neither
    becomes likelier for being taken first.
    """
    rows = [
        layer(name, kind)
        for block in range(8)
        for name, kind in (
            (f"/layer.{block}/MatMul", "gemm"),
            (f"Reformatting CopyNode for Output Tensor 0 to /layer.{block}/MatMul", "reformat"),
            (f"Reformatting CopyNode for Input Tensor 0 to PWN(/layer.{block}/Add)", "reformat"),
            (f"PWN(/layer.{block}/Add)", "pointwise"),
        )
    ]
    found = align_inference(
        run(*[f"{GEMM}_execute_kernel_trt", REFORMAT, "generatedNativePointwise"] * 8),
        engine(*rows),
    )
    assert found.confidence[1::3].max() < 0.7
    assert found.confidence[::3].min() > 0.9


def test_the_order_of_the_file_is_taken_unless_the_kernels_say_otherwise() -> None:
    """The data flow contradicts the file's order of two layers; it is taken only where it explains
    the kernels better.
    """

    def two(first: Layer, second: Layer) -> Engine:
        read, written = (
            replace(first, inputs=(Tensor("x"),)),
            replace(second, outputs=(Tensor("x"),)),
        )
        return engine(read, written)

    alike = two(layer("a", "gemm", tactic=GEMM), layer("b", "gemm", tactic=GEMM))
    found = align_inference(run(GEMM, GEMM), alike)
    assert (found.order, found.layer.tolist()) == ((0, 1), [0, 1])
    told = two(layer("a", "gemm", tactic=GEMM), layer("pool", "pooling", tactic=POOL))
    found = align_inference(run(POOL, GEMM), told)
    assert (found.order, found.layer.tolist()) == ((1, 0), [1, 0])


def test_a_tactic_of_another_layer_speaks_against_a_layer_whose_tactic_is_not_known() -> None:
    asked = engine(layer("a", "gemm", tactic=GEMM), layer("b", "gemm"))
    found = score(run(GEMM, GEMM.replace("64x64x32", "128x64x32")), asked, asked.layers)
    its, unknown = found.match[found.row]
    assert its[0] > 0 > its[1]
    assert its[1] < unknown[1]  # a kernel that is no layer's tactic may be that layer's


def test_a_kernel_of_the_layers_kind_may_be_its_main_one_though_it_is_not_its_tactic() -> None:
    """A helper may be of any kind, but is at best a helper."""
    asked = engine(
        layer("conv", "convolution", tactic="a_tactic"), layer("pool", "pooling", tactic="another")
    )
    found = score(run(CONV, POOL), asked, asked.layers)
    match = found.match[found.row]
    assert match.diagonal().min() > 0 > match[0, 1]
    assert match[1, 0] < 0


def test_what_speaks_against_an_engine_leaves_nothing_undecided() -> None:
    layers = tuple(Layer(at, f"conv{at}", "convolution") for at in range(6))
    engine = Engine("made-up.json", layers, detailed=True)
    name = "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x64_stage3_execute_kernel_trt"
    found = engine_match([KernelFacts(name)] * 2, engine)
    assert not found.accepted
    assert not found.undecided
