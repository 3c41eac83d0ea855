"""What counters say, on the first screen: means over what is known, why nothing is, and who shares
the samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nsysmap.answer.hardware import better_capture, counted_limits, counter_sentences, hardware_use
from nsysmap.answer.model import Answer
from nsysmap.core.counter_schema import GPU_SAMPLING, KERNEL_COUNTERS
from nsysmap.core.result_schema import LAYER_TIMES, ROOFLINE
from nsysmap.core.table import Table
from tests.figures import figures
from tests.reports import analysis

SAMPLING = {
    "device": 0, "frequency_hz": 1e5, "metrics": 3, "samples": 9, "used": 9, "outliers": 0,
    "left_out": 0, "holes": 0, "lost_share": 0.0,
    "mistrusted": 0, "thinned": False, "inferences": 9,
}  # fmt: skip
VALUES = {
    "sm_active": (90.0, 50.0),
    "tensor_active": (60.0, 0.0),
    "dram_read": (20.0, 40.0),
    "dram_write": (10.0, 10.0),
}
"""Of a kernel of 3 µs and one of 1 µs."""


def counted(
    *, known: tuple[bool, bool] = (True, True), together: float = 0.0
) -> list[dict[str, object]]:
    return [
        {
            "device": 0, "kernel_sequence": 0, "position": at, "kernel": "ab"[at],
            "duration_ns": (3000.0, 1000.0)[at], "executions": 9,
            "concurrent_share": together, "metric": metric, "unit": "percent", "value": values[at],
            "known": known[at],
            "reason": None if known[at] else f"of {'ab'[at]}",
        }
        for metric, values in VALUES.items()
        for at in range(2)
    ]  # fmt: skip


def tables(
    counters: list[dict[str, object]],
    verdicts: Mapping[int, tuple[str, str]] | None = None,
    **sampling: object,
) -> Mapping[str, Table]:
    verdicts = verdicts or {}
    return {
        "gpu_sampling": Table.of_rows(GPU_SAMPLING, [{**SAMPLING, **sampling}]),
        "kernel_counters": Table.of_rows(KERNEL_COUNTERS, counters),
        "roofline": Table.of_rows(
            ROOFLINE,
            [
                {"layer_id": at, "verdict": one, "verdict_from": basis, "reason": ""}
                for at, (one, basis) in verdicts.items()
            ],
        ),
        "layer_times": Table.of_rows(
            LAYER_TIMES,
            [
                {
                    "layer_id": at,
                    "told_by": "trace",
                    "total_ns": 100,
                    "inferences": 1,
                    "share_of_kernel_time": 0.5,
                }
                for at in verdicts
            ],
        ),
    }


def sentences(held: Mapping[str, Table]) -> list[str]:
    return counter_sentences(
        replace(summary(), counters=hardware_use(held), counted_limits=counted_limits(held))
    )


def summary() -> Answer:
    return analysis("bert_trt10", "sync.sqlite").summary


def test_units_are_means_over_the_time_of_the_kernels() -> None:
    [line] = sentences(tables(counted()))
    assert figures(line) == ["80", "45", "35", "100"]


def test_what_is_not_known_is_left_out_and_said() -> None:
    (line,) = sentences(tables(counted(known=(False, True))))
    assert line.startswith("SMs active 50%, tensor cores active 0%, device memory 50% of the peak")
    assert "known for 25%" in line


def test_nothing_known_gives_the_reason_of_the_longest_kernel() -> None:
    assert sentences(tables(counted(known=(False, False)))) == ["cannot tell: of a"]
    assert sentences(tables([], reason="too few samples")) == ["cannot tell: too few samples"]


def test_without_sampling_nothing_is_said() -> None:
    assert sentences({**tables([]), "gpu_sampling": Table.empty(GPU_SAMPLING)}) == []
    assert counter_sentences(summary()) == []


def test_work_beside_the_kernels_is_said_to_share_the_samples() -> None:
    line = sentences(tables(counted(together=0.4)))[0]
    assert "40%" in line.partition("beside other work")[0]
    assert "beside other work" not in sentences(tables(counted(together=0.01)))[0]


@pytest.mark.parametrize(
    ("verdicts", "end"),
    [
        (
            {0: ("memory-bound", "counters"), 1: ("latency-bound", "counters")},
            "; of the layers' time, 50% memory-bound, 50% latency-bound",
        ),
        (
            {0: ("memory-bound", "counters"), 1: ("compute-bound", "model")},
            "; of the layers' time, 50% memory-bound",
        ),
        ({0: ("memory-bound", "model")}, "(hardware counters at 100 kHz)"),
    ],
)
def test_only_verdicts_that_rest_on_counters_are_shown(
    verdicts: Mapping[int, tuple[str, str]], end: str
) -> None:
    assert sentences(tables(counted(), verdicts))[0].endswith(end)


def test_the_capture_that_would_tell_more_is_a_next_step() -> None:
    line = "nsys profile --gpu-metrics-devices=0 PROGRAM"
    lacks = {
        "reason": f"the error is 9 points: a kernel; 30 inferences would be enough: {line}",
        "why": "the error is 9 points: a kernel",
        "enough": "30 inferences at 10 kHz",
        "capture": line,
    }
    unknown = [row if row["known"] else {**row, **lacks} for row in counted(known=(False, True))]
    step = better_capture(hardware_use(tables(unknown)))
    assert step is not None
    assert (figures(step.why), step.command) == (["30", "10"], line)
    wrong = tables([], reason=f"wrong GPU: {line}", why="wrong GPU", capture=line)
    assert sentences(wrong) == ["cannot tell: wrong GPU"]
    for enough in (
        counted(),
        [
            {**row, "reason": None if row["known"] else "use Nsight Compute"}
            for row in counted(known=(False, True))
        ],
    ):
        assert better_capture(hardware_use(tables(enough))) is None


def test_without_values_by_kernel_the_gpu_as_a_whole_is_told() -> None:
    (line,) = sentences(
        tables([], reason="none repeats", sm_percent=92.0, tensor_percent=0.0, memory_percent=60.0)
    )
    assert figures(line)[:3] == ["92", "0", "60"]
    assert line.endswith("none repeats")
