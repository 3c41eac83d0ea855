"""How far the layers are from the hardware, as the answer has it: sums, reasons, and what to try in
which program.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nsysmap.advice.program import Program
from nsysmap.answer import first
from nsysmap.answer.headroom import _transposed_norms, is_gpu_bound
from nsysmap.answer.headroom_words import distance, farthest, why
from nsysmap.answer.model import Answer, Figure, GpuTime, Headroom, HeadroomGroup, IdleCause
from nsysmap.api import analyze
from nsysmap.core.columns import integer, text
from nsysmap.core.table import Spec, Table
from tests.places import FIXTURES

REAL = FIXTURES / "real_trt"


@cache
def _answer(report: Path, engine: Path) -> Answer:
    return analyze(report, engine, rules=[], reader="own").summary


def _of(report: Path, engine: Path) -> Headroom:
    found = _answer(report, engine).headroom
    assert found is not None
    return found


@pytest.fixture
def bert() -> Headroom:
    """A BERT of TensorRT for RTX on an H200, as a CUDA graph."""
    return _of(REAL / "bert_fp8-graph.nsys-rep", REAL / "bert_fp8.engine.json")


def test_the_parts_add_up_to_the_whole(bert: Headroom) -> None:
    assert bert.known_ns == bert.time_ns
    assert sum(one.time_ns for one in bert.groups) == bert.time_ns
    assert sum(one.headroom_ns for one in bert.groups) == bert.headroom_ns
    assert sum(ns for _, ns in bert.reasons) == pytest.approx(
        bert.headroom_ns, abs=len(bert.groups)
    )
    assert sum(one.layers for one in bert.groups) == bert.layers
    headroom = [one.headroom_ns for one in bert.groups]
    assert headroom == sorted(headroom, reverse=True)


def test_no_layer_needs_longer_than_it_takes(bert: Headroom) -> None:
    for one in bert.groups:
        assert one.least_ns is not None
        assert 0 <= one.least_ns <= one.time_ns
        assert one.reachable_ns is None or one.reachable_ns <= one.time_ns
    assert bert.reachable_ns < bert.compared_ns


@pytest.mark.parametrize(
    ("busy", "cause", "limits"),
    [(0.9, "launch", True), (0.5, "dispatch", True), (0.5, "launch", False), (0.5, "host", False)],
)
def test_the_gpu_is_the_limit_where_it_works_or_has_work_queued(
    bert: Headroom, busy: float, cause: str, *, limits: bool
) -> None:
    assert bert.gpu_bound
    idle = (IdleCause(cause, 1_000, 1 - busy),)
    gpu = GpuTime(0, "GPU", "trace", 10_000, busy, 5_000, 0.0, idle)
    assert is_gpu_bound(None, [gpu]) is limits
    assert not is_gpu_bound(None, [])


def test_what_to_try_fits_the_program(bert: Headroom) -> None:
    """TensorRT for RTX times no tactics, and FP8 was measured to cost time with it."""
    assert {one.name for one in bert.trials} == {"batch"}
    full = _of(FIXTURES / "bert_trt10" / "graph.sqlite", FIXTURES / "bert_trt10" / "engine.json")
    names = [one.name for one in full.trials]
    assert {"kernels", "fp8", "batch"} <= set(names)
    assert "routes" not in names, "TensorRT 11.1 has them first"
    kernels = next(one for one in full.trials if one.name == "kernels")
    assert kernels.at_most_ns <= full.headroom_ns
    assert "ptimizationLevel" in (kernels.paste or "") or "optimization_level" in (
        kernels.paste or ""
    )
    assert [one.throughput_only for one in full.trials] == sorted(
        one.throughput_only for one in full.trials
    )


def test_half_precision_has_a_range_from_measured_pairs() -> None:
    found = _of(REAL / "bert_fp32-graph.nsys-rep", REAL / "bert_fp32.engine.json")
    half = next(one for one in found.trials if one.name == "half")
    assert half.likely is not None
    assert half.likely.low_ns is not None
    assert half.likely.low_ns <= half.likely.ns <= half.at_most_ns


def test_products_that_8_bits_do_not_shorten_are_the_first_thing_to_try() -> None:
    """Without quantizers this engine took 187 us instead of 234: bert_eager."""
    answer = analyze(
        REAL / "bert_fp8-graph.nsys-rep", REAL / "bert_fp8.engine.json", reader="own"
    ).summary
    assert answer.headroom is not None
    trial = next(one for one in answer.headroom.trials if one.name == "quantized-latency-bound")
    assert 46_900 < trial.at_most_ns < 147_100  # what the products take
    (tried,) = [one for one in first.todo(answer) if not one.throughput]
    assert trial.title in tried.title
    assert trial.change == tried.change


def _group(**given: object) -> HeadroomGroup:
    held: dict[str, object] = {
        **{"title": "a", "engine": 0, "layers": 1, "layer_ids": (0,), "time_ns": 10_000},
        **{"least_ns": 1_000, "reason": "few-blocks", "limit": "device-memory", "reached": 0.1},
        **{"waves": 0.2, "blocks": 24, "sms": 132, "occupancy": 0.1, "tile": "64x64x32"},
        **{"kernel_arch": "sm80", "kernels": 1, "counted": False},
    }
    return HeadroomGroup(**{**held, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "figure"),
    [
        ({}, "20%"),
        ({"reason": "last-wave", "waves": 1.25}, "1.2 waves"),
        ({"reason": "memory-bound"}, "10% of device memory"),
        ({"reason": "compute-bound", "limit": "arithmetic", "reached": 0.5}, "50% of the peak"),
        ({"reason": "older-kernels"}, "sm80"),
        ({"reason": "small-tiles"}, "64x64x32"),
        ({"reason": "low-occupancy"}, "10% of the warps"),
    ],
)
def test_each_reason_is_told_with_its_figure(given: dict[str, object], figure: str) -> None:
    assert figure in why(_group(**given))


def test_what_is_unknown_is_said_and_not_taken_as_nothing() -> None:
    known, unknown = _group(), _group(title="b", least_ns=None, reason="unknown")
    assert unknown.headroom_ns == 0
    found = Headroom(
        time_ns=20_000,
        known_ns=10_000,
        least_ns=1_000,
        layers=2,
        counted_layers=0,
        weights_only_layers=0,
        groups=(known, unknown),
        reasons=(("few-blocks", 9_000),),
        gpu_bound=True,
        trials=(),
    )
    assert (found.headroom_ns, found.share) == (9_000, 0.1)
    assert "unknown" in distance(found)
    assert farthest(found) == (known,)


MOVED = "__myl_ReshSlicTranSlicCastMeanSubMulMeanAddSqrtDivMulCastMulAdd_0x" + "7" * 32
PLAIN = "__myl_CastMeanSubMulMeanAddSqrtDivMulCastMulAdd_0x" + "8" * 32


@pytest.mark.parametrize(
    ("name", "reached", "told"),
    [
        (MOVED, 0.02, True),
        (MOVED, 0.5, False),  # it reads as fast as others
        (PLAIN, 0.02, False),  # nothing is transposed in it
        ("__myl_TranAddMul_0x" + "9" * 32, 0.02, False),  # it is no norm
    ],
)
def test_a_norm_far_from_every_limit_is_to_go_without_its_transpose(
    name: str, reached: float, *, told: bool
) -> None:
    answer = _answer(REAL / "bert_eager-sync.nsys-rep", REAL / "bert_eager.engine.json")
    found = answer.headroom
    assert found is not None
    group = replace(
        found.groups[0], layer_ids=(0,), reached=reached, time_ns=60_000, least_ns=10_000
    )
    layers = Table.of_rows(
        Spec("layers", "", (integer("layer_id", ""), text("tactic", ""), text("name", ""))),
        [{"layer_id": 0, "tactic": name, "name": "norm"}],
    )
    trials = _transposed_norms(replace(found, groups=(group,)), Program(), layers)
    assert [one.at_most_ns for one in trials] == ([50_000] if told else [])
    if not told:
        return
    # before what a rule prices lower, and after what a replay predicts
    priced = next(one for one in answer.actions if not one.throughput_only)
    priced = replace(priced, basis="rule", saving=Figure(40_000, 0, 40_000), name="channels")
    bound = replace(answer, actions=(priced,), headroom=replace(found, gpu_bound=True))
    bound = replace(bound, headroom=replace(found, gpu_bound=True, trials=tuple(trials)))
    assert trials[0].title in first.todo(bound)[0].title
    replayed = replace(bound, actions=(replace(priced, basis="replay"),))
    assert trials[0].title not in first.todo(replayed)[0].title
