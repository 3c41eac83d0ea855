"""Unlike things that repeat: the kind with the most time is told first; what begins a phase is no
outlier of it; where Python launches.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap import analyze
from nsysmap.advice.program import CUDA, TENSORRT, Program
from nsysmap.answer import first, words
from nsysmap.answer.first_use import _remedy
from nsysmap.answer.model import Answer, Distinction, Figure, InferenceKind, WhereItRan
from nsysmap.answer.slowest import _without_begins
from nsysmap.core.report_schema import INFERENCE_GROUPS, INFERENCE_TIMES
from nsysmap.core.table import Table

FIXTURES = Path(__file__).parents[2] / "fixtures"


def held() -> Answer:
    return analyze(FIXTURES / "torch_encoder/eager.nsys-rep", rules=[]).summary


def kind(kernels: int, inferences: int, mean_ns: int, warmup: int = 0) -> InferenceKind:
    return InferenceKind(
        inferences,
        warmup,
        0,
        9,
        mean_ns,
        mean_ns,
        p95_ns=None,
        gpu_time_ns=None,
        enqueue_ns=None,
        distinction=Distinction(kernels=kernels),
    )


def test_of_unlike_repetitions_the_kind_with_the_most_time_comes_first() -> None:
    kinds = (
        kind(2, 60, 100_000),
        kind(522, 8, 9_000_000),
    )
    summary = replace(held(), kinds=kinds, traced=Figure(1_150_000))
    assert words.times(summary)[0].startswith(
        "9,000 µs mean per repetition of 522 kernels (92% of the time), 1,150 µs mean"
    )
    assert "over 2 kinds" in words.times(summary)[0]
    on_gpus = (
        replace(kind(9, 9, 10_000_000), place=WhereItRan(gpu=1)),
        replace(kind(2, 60, 100_000), place=WhereItRan(gpu=2)),
        replace(kind(522, 8, 9_000_000), place=WhereItRan(gpu=2)),
    )
    of_gpu = replace(summary, kinds=on_gpus, traced_gpu=2)
    assert words.times(of_gpu)[0].startswith(
        "9,000 µs mean per repetition of 522 kernels (92% of the time), 1,150 µs mean"
    )
    alike = replace(summary, kinds=(kinds[1], kind(521, 8, 8_900_000)))
    assert "kinds" not in words.times(alike)[0]
    alone = replace(summary, kinds=(kinds[1], kind(2, 60, 100_000, warmup=60)))
    assert "kinds" not in words.times(alone)[0]  # all of the other are start-up


def test_the_first_screen_says_the_main_kind_where_the_mean_over_unlike_ones_is_another_time() -> (
    None
):
    unlike = replace(
        held(), kinds=(kind(2, 60, 100_000), kind(522, 8, 9_000_000)), traced=Figure(1_150_000)
    )
    told = first.times(unlike)[0]
    assert "9,000 µs per repetition of 522 kernels (92% of the time)" in told[0]
    assert "mean of 2 kinds" in told[0]
    near = replace(unlike, traced=Figure(8_000_000))
    assert "kinds" not in first.times(near)[0][0]


def test_the_median_is_told_of_several_gpus_that_do_the_same() -> None:
    alike = tuple(
        replace(kind(1, 9, 740_000), distinction=None, median_ns=180_000, place=WhereItRan(gpu=gpu))
        for gpu in range(4)
    )
    summary = replace(held(), kinds=alike, traced=Figure(740_000))
    assert words.median(summary, 740_000) == " (median 180)"
    slower = (*alike[:3], replace(alike[3], median_ns=300_000))
    assert words.median(replace(summary, kinds=slower), 740_000) == ""
    other = (*alike[:3], replace(alike[3], distinction=Distinction(kernels=7)))
    assert words.median(replace(summary, kinds=other), 740_000) == ""


@pytest.mark.parametrize(
    ("counted", "told"), [(0.54, "not in it: 46% of all kernel time in the trace"), (0.95, "")]
)
def test_kernel_time_that_is_in_no_repetition_is_told(counted: float, told: str) -> None:
    answer = held()
    assert answer.unit_of_time.repetitions
    whole = int(answer.tables["kernel_totals"].ints("time_ns").sum())
    some = replace(answer, kernel_ns=round(counted * whole / answer.kernel_units))
    lines = [forms[-1] for forms in first.times(some)]
    assert (told in lines) if told else not any("not in it" in line for line in lines)


def test_the_first_inferences_of_a_later_phase_are_no_outliers_of_it() -> None:
    groups = [
        {
            "group_id": at,
            "loop_id": 0,
            "phase": at,
            "warmup": 0,
            "cut": 0,
            "inferences": 4,
            "steady": 4,
        }
        for at in (0, 1)
    ]
    ratio = [1.0, 2.0, 1.0, 6.9, 1.6, 1.0, 3.0]
    times = [
        {"inference": at, "group_id": int(at > 2), "time_ns": 1, "times_median": one}
        for at, one in enumerate(ratio)
    ]
    rows = Table.of_rows(INFERENCE_TIMES, times)
    kept = _without_begins({"inference_groups": Table.of_rows(INFERENCE_GROUPS, groups)}, rows)
    assert kept.ints("inference").tolist() == [0, 1, 2, 5, 6]


@pytest.mark.parametrize(
    ("report", "told"), [("torch_encoder/eager", True), ("bert_trt10/sync", False)]
)
def test_waiting_for_launches_of_a_program_that_nothing_encloses_says_what_of_it_is_in_no_cuda_call(
    report: str, told: bool
) -> None:
    analysis = analyze(FIXTURES / f"{report}.nsys-rep", rules=[])
    (cause,) = [one for one in analysis.summary.gpus[0].idle if one.cause == "launch"]
    assert (cause.outside_calls > 0) == told
    assert cause.outside_calls < cause.share_of_window
    assert ("no CUDA call" in " ".join(words.where(analysis.summary))) == told


def test_tensorrt_for_rtx_is_advised_its_runtime_cache_even_where_it_only_loads_what_it_compiled_in_the_background() -> (  # noqa: E501
    None
):
    tables = analyze(FIXTURES / "torch_encoder/eager.nsys-rep", rules=[]).tables.by_name()
    told = (
        (
            "setRuntimeCache",
            _remedy(tables, Program(TENSORRT, rtx=True), compiled=False, ptx=False),
        ),
        (
            "CUDA_MODULE_LOADING=EAGER",
            _remedy(tables, Program(TENSORRT), compiled=False, ptx=False),
        ),
        ("CUDA_CACHE_PATH", _remedy(tables, Program(CUDA), compiled=True, ptx=True)),
    )
    for way, remedy in told:
        assert way in remedy.text
        assert way in remedy.brief
        assert len(remedy.brief) <= 66  # columns that a line of the screen has for it
