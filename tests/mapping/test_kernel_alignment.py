"""The kernels of one inference against the layers of an engine, in order."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.order import kernel_alignment
from nsysmap.mapping.order.kernel_alignment import (
    Alignment,
    EngineMatch,
    _against_chance,
    _first,
    _loops_repeat,
    _passed,
    _pinned,
    _trips,
    align_inference,
    engine_match,
    may_run_this,
    optimization_profiles,
)
from nsysmap.mapping.order.scores import KernelFacts, score
from nsysmap.mapping.order.sequence_alignment import AlignmentCosts
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


@pytest.mark.parametrize(
    ("at", "chance", "rival", "told"),
    [
        (0, 0.9, 1, None),
        (0, 0.89, 0, ["first", "89%", "first", "11%"]),
        (1, 0.5, -1, ["second", "50%", "no layer", "50%"]),
        (-1, 0.7, 0, ["no layer", "first", "30%"]),
        (-1, 1.0, -1, ["no layer", "no layer", "0%"]),
    ],
)
def test_the_reason_names_the_two_best_candidates(
    at: int, chance: float, rival: int, told: list[str] | None
) -> None:
    one = Alignment(
        np.array([at]),
        np.array([chance]),
        np.array([rival]),
        np.array([1 - chance]),
        np.ones(1, np.bool_),
        np.ones(1, np.bool_),
        np.zeros(1, np.bool_),
        (0, 1),
        0.0,
    )
    reason = one.reason(0, engine(layer("first", "gemm"), layer("second", "gemm")))
    if told is None:
        assert reason is None
        return
    assert reason is not None
    place = 0
    for word in told:
        place = reason.index(word, place) + 1


@pytest.mark.parametrize(
    ("evidence", "taken"),
    [
        ([[1.0], [1.0]], (0, 0)),  # of two profiles that explain them alike the first one
        ([[1.0], [1.1]], (1, 0)),
        ([[1.0, 1.5]], (0, 0)),  # another order must explain them better by half a nat
        ([[1.0, 1.51]], (0, 1)),
        ([[1.0, 1.5], [1.2]], (1, 0)),
    ],
)
def test_of_profiles_and_orders_the_one_that_explains_kernels_best_is_taken(
    evidence: list[list[float]], taken: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each profile has a layer, and as many orders as a test says."""
    made = engine(*(layer(str(at), "gemm", profile=at) for at in range(len(evidence))))
    worth = {(at, order): one for at, all in enumerate(evidence) for order, one in enumerate(all)}
    turns = iter(worth)
    monkeypatch.setattr(
        kernel_alignment,
        "execution_orders",
        lambda layers: [(0,)] * len(evidence[int(layers[0].name)]),
    )

    def align(*_: object, **__: object) -> object:
        place = next(turns)
        return SimpleNamespace(evidence=worth[place], place=place)

    monkeypatch.setattr(kernel_alignment, "_align", align)
    found = align_inference(run(GEMM), made)
    assert found.place == taken  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "accepted"),
        ({"placed": 19}, "accepted"),  # nineteen of twenty kernels
        ({"placed": 18}, None),
        ({"used": 19}, "accepted"),  # nineteen of twenty layers
        ({"used": 18}, None),
        ({"probability": 0.5}, "accepted"),
        ({"probability": 0.49}, None),
        ({"repeat": False}, None),
        ({"in_order": 5.0, "by_chance": -1.0}, "accepted"),  # a quarter of a nat for each of twenty
        ({"in_order": 4.9, "by_chance": -20.0}, None),
        ({"by_chance": 14.0}, "accepted"),  # six nats better: 0.3 a kernel
        ({"by_chance": 14.1}, "undecided"),
        ({"by_chance": 14.1, "placed": 18}, None),
    ],
)
def test_an_engine_explains_kernels_if_nothing_speaks_against_it_and_their_order_for_it(
    changes: dict[str, Any], verdict: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty kernels of as many layers that must run; what is measured is made up."""
    told = {"placed": 20, "used": 20, "probability": 0.9, "repeat": True}
    told |= {"in_order": 20.0, "by_chance": 0.0} | changes
    names = [layer(str(at), "gemm") for at in range(20)]
    found = Alignment(
        np.array([at if at < told["used"] else 0 for at in range(20)]),
        *(np.ones(20), np.full(20, -1), np.zeros(20)),
        *(np.ones(20, np.bool_), np.ones(20, np.bool_), np.zeros(20, np.bool_)),
        tuple(range(20)),
        0.0,
    )
    odds = SimpleNamespace(tactics=0.7, probability=told["probability"], ran=0.3, code=0.4)
    for name, made in {
        "align_inference": lambda *_, **__: found,
        "_against_chance": lambda *_: (told["in_order"], told["by_chance"]),
        "engine_odds": lambda *_: odds,
        "_first": lambda _: np.arange(20) < told["placed"],
        "_own": lambda *_: np.zeros(20, np.bool_),
        "_loops_repeat": lambda *_: told["repeat"],
    }.items():
        monkeypatch.setattr(kernel_alignment, name, made)
    match = engine_match(run(*[GEMM] * 20), engine(*names))
    assert (match.accepted, match.undecided) == (verdict == "accepted", verdict == "undecided")
    assert match.placed == told["placed"] / 20
    assert match.used == told["used"] / 20
    assert match.evidence == told["in_order"] / 20
    assert match.by_chance == told["by_chance"] / 20
    assert (match.tactics, match.ran, match.code) == (0.7, 0.3, 0.4)
    assert match.share == min(match.placed, match.used, 0.7)


def test_few_kernels_must_be_in_order_by_five_nats(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = engine(layer("a", "gemm", tactic=GEMM))
    for by_chance, accepted in ((5.0, True), (5.1, False)):
        monkeypatch.setattr(
            kernel_alignment, "_against_chance", lambda *_, mean=by_chance: (10.0, mean)
        )
        match = engine_match(run(GEMM), asked)
        assert (match.accepted, match.undecided) == (accepted, not accepted)


def test_the_application_s_own_kernels_count_for_nothing() -> None:
    asked = engine(*(layer(f"a{at}", "gemm", tactic=GEMM) for at in range(3)))
    assert engine_match(run(GEMM, OWN, GEMM, OWN, GEMM), asked).placed == 1.0
    assert engine_match(run(OWN, OWN), asked).placed == 0.0
    assert engine_match(run(OWN), engine(layer("s", "shape"))).used == 1.0  # none must run
    assert engine_match(run(GEMM), asked).used == pytest.approx(1 / 3)


@pytest.mark.parametrize(("usual", "others", "repeat"), [(9, 1, True), (8, 1, False), (0, 0, True)])
def test_a_loop_s_layers_run_the_same_kernel_in_nine_of_ten_trips(
    usual: int, others: int, repeat: bool
) -> None:
    once = {0: run(*(str(at) for at in range(9)))}  # of a layer outside it nothing is asked
    ran = {**once, 1: run(*["k"] * usual, *(f"x{at}" for at in range(others)))}
    assert _loops_repeat((0, 1, 2, 1, 2), ran) == repeat
    assert _loops_repeat((0, 1, 2), ran)


@pytest.mark.parametrize(
    ("probability", "ran", "before", "may"),
    [
        (0.4, 0.1, False, False),
        (0.4, 0.1, True, True),
        (0.5, 0.1, False, True),
        (0.4, 0.09, False, True),
    ],
)
def test_what_an_engine_of_fixed_shapes_may_have_run_besides(
    probability: float, ran: float, before: bool, may: bool
) -> None:
    one = EngineMatch(1, 1, 1, 1, 0, False, probability=probability, ran=ran)
    shaped = replace(layer("a", "gemm"), outputs=(Tensor("t", (0, 64)),))
    assert may_run_this(one, engine(shaped), before=before) == may
    other = replace(layer("b", "gemm"), inputs=(Tensor("t", (-1, 64)),))
    assert may_run_this(one, engine(shaped, other), before=before)
    assert may_run_this(one, engine(layer("a", "gemm")), before=before)  # no shape is told


def test_pins_hold_kernels_in_their_layers_by_fifty_nats() -> None:
    layers = engine(*(layer(str(at), "gemm") for at in range(3))).layers[1:]
    assert _pinned(None, 2, layers) is None
    assert _pinned(np.array([-1, -1]), 2, layers) is None
    found = _pinned(np.array([-1, 2, 1, 0]), 4, layers)
    assert found is not None
    assert found.tolist() == [[0.0, 0.0], [-50.0, 50.0], [50.0, -50.0], [-50.0, -50.0]]
    first = _pinned(np.array([0]), 1, engine(layer("a", "gemm")).layers)
    assert first is not None
    assert first.tolist() == [[50.0]]


def test_a_cut_inference_went_through_the_layers_between_its_first_and_last_kernel() -> None:
    found = Alignment(
        np.array([-1, 7, 5, -1]),
        *(np.ones(4), np.full(4, -1), np.zeros(4)),
        *(np.ones(4, np.bool_), np.ones(4, np.bool_), np.zeros(4, np.bool_)),
        (9, 7, 8, 5, 6),
        0.0,
    )
    assert _passed(found, (False, False)) == (9, 7, 8, 5, 6)
    assert _passed(found, (True, False)) == (7, 8, 5, 6)
    assert _passed(found, (False, True)) == (9, 7, 8, 5)
    assert _passed(found, (True, True)) == (7, 8, 5)
    nothing = replace(found, layer=np.full(4, -1))
    assert _passed(nothing, (True, True)) == (9, 7, 8, 5, 6)


def test_the_first_kernels_of_a_layer_are_those_of_each_of_its_runs() -> None:
    found = Alignment(
        np.array([0, 0, -1, 1, 0, 1, 1, -1, 2]),
        *(np.ones(9), np.full(9, -1), np.zeros(9)),
        *(np.ones(9, np.bool_), np.ones(9, np.bool_), np.zeros(9, np.bool_)),
        (0, 1, 0, 1, 2),
        0.0,
    )
    first = [True, False, False, True, True, True, False, False, True]
    assert _first(found).tolist() == first


@pytest.mark.parametrize(
    ("kernels", "once", "twice", "trips"),
    [(20, 4, 6, 9), (4, 4, 6, 1), (1, 4, 6, 1), (9, 4, 4, 6), (7, 4, 6, 3), (6, 4, 6, 2)],
)
def test_loops_run_as_often_as_the_number_of_kernels_says(
    kernels: int, once: int, twice: int, trips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many layers must run with one trip, and so many with two."""
    unknown = [SimpleNamespace(trips=None)]
    size = {1: once, 2: twice}
    made = engine(layer("a", "gemm"))
    for name, value in {
        "loops_in": lambda *_: unknown,
        "unrolled": lambda _, __, number: [0] * size[number],
        "surely_run": lambda _, layers: np.ones(len(layers), np.bool_),
    }.items():
        monkeypatch.setattr(kernel_alignment, name, value)
    assert _trips(kernels, made, made.layers, (0,)) == trips
    monkeypatch.setattr(kernel_alignment, "loops_in", lambda *_: [SimpleNamespace(trips=5)])
    assert _trips(kernels, made, made.layers, (0,)) == 1


def test_the_order_of_kernels_is_held_against_three_random_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[list[int], bool, bool]] = []

    def worth(costs: AlignmentCosts) -> float:
        seen.append((costs.row.tolist(), costs.open_start, costs.open_end))
        return 10.0 if len(seen) == 4 else float(len(seen))

    monkeypatch.setattr(kernel_alignment, "evidence", worth)
    asked = engine(layer("a", "gemm"))
    scores = score(run(GEMM, CONV, POOL, OWN), asked, asked.layers)
    assert _against_chance(scores, (True, False)) == (10.0, 2.0)
    assert seen[3] == ([0, 1, 2, 3], True, False)
    assert [sorted(row) for row, _, _ in seen] == [[0, 1, 2, 3]] * 4
    assert {(start, end) for _, start, end in seen} == {(True, False)}
