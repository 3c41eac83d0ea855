"""What hardware counters say limits a layer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysmap.core.counter_schema import GPU_SAMPLING, LAYER_COUNTERS
from nsysmap.core.engine_schema import WORK as WORK_SPEC
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import DEVICES
from nsysmap.timing.counted_limits import Counted, counted_layers, disagreement
from nsysmap.timing.roofline import device_of, expected_tensor, needed_of


def rows(**metrics: float) -> list[dict[str, object]]:
    told = {
        "layer_id": 3,
        "device": 0,
        "duration_ns": 1000.0,
        "executions": 9,
        "unit": "percent",
        "error": 1.0,
        "known": True,
    }
    return [
        {**told, "metric": name, "value": value, "low": value, "high": value}
        for name, value in metrics.items()
    ]


@pytest.mark.parametrize(
    ("dram", "tensor", "issue", "verdict"),
    [
        (75, 20, 10, "memory-bound"),
        (20, 75, 10, "compute-bound"),
        (20, 5, 70, "compute-bound"),
        (70, 80, 10, "compute-bound"),
        (59, 59, 59, "latency-bound"),
    ],
)
def test_what_is_nearest_its_peak_limits(
    dram: float, tensor: float, issue: float, verdict: str
) -> None:
    counted = Counted(1000.0, dram, tensor, issue, 90.0).verdict()
    assert counted is not None
    assert counted[0] == verdict


def test_without_memory_traffic_there_is_no_verdict() -> None:
    assert Counted(1000.0, None, 80.0, 10.0, None).verdict() is None


def test_reads_and_writes_add_up_and_a_value_that_is_not_known_is_none() -> None:
    table = [
        *rows(dram_read=30.0, dram_write=20.0, tensor_active=60.0),
        {**rows(sm_issue=5.0)[0], "known": False},
    ]
    (layer,) = counted_layers(
        Table.of_rows(LAYER_COUNTERS, table), Table.empty(GPU_SAMPLING)
    ).values()
    assert (layer.dram, layer.tensor, layer.issue) == (50.0, 60.0, None)
    assert layer.dram_bytes(10**12) == 500_000


@pytest.mark.parametrize(
    ("model_bytes", "word"),
    [(1_000_000, "L2 cache"), (300_000, "spilled"), (500_000, None), (None, None)],
)
def test_traffic_that_is_not_the_tensors_is_said(model_bytes: int | None, word: str | None) -> None:
    told = disagreement(Counted(1000.0, 50.0, None, None, None), model_bytes, 10**12, None)
    assert (told is None) if word is None else (told is not None and word in told)


@pytest.mark.parametrize(
    ("active", "expected", "word"),
    [
        (60.0, 58.0, None),
        (60.0, 30.0, "padded"),
        (20.0, 45.0, "fewer"),
        (3.0, 1.0, None),
        (0.0, 40.0, "CUDA cores"),
        (60.0, None, None),
    ],
)
def test_activity_that_the_operations_do_not_explain_is_said(
    active: float, expected: float | None, word: str | None
) -> None:
    told = disagreement(Counted(1000.0, None, active, None, None), None, None, expected)
    assert (told is None) if word is None else (told is not None and word in told)


DEVICE = {
    "device": 0, "name": "NVIDIA H100", "compute_major": 9, "compute_minor": 0, "sm_count": 100,
    "clock_hz": 2 * 10**9,
    "bandwidth_bytes_per_s": 10**12,
}  # fmt: skip
WORK = {
    "layer_id": 3,
    "macs": 2_048_000_000,
    "flops": 4_096_000_000,
    "precision": "FP16",
    "tensor_cores": "yes",
}
"""What 100 SMs with 4096 operations a cycle do in 10,000 cycles, which are 5 µs at 2 GHz."""


@pytest.mark.parametrize(
    ("hertz", "device", "work", "expected"),
    [
        (None, {}, {}, 50.0),
        (1e9, {}, {}, 100.0),  # at the clock that was sampled
        (None, {}, {"precision": "INT8"}, 25.0),
        (None, {}, {"tensor_cores": "no"}, None),
        (
            None,
            {"name": "NVIDIA GeForce RTX 4090"},
            {},
            None,
        ),  # which rate FP32 accumulation has is not known
        (None, {"compute_major": 99}, {}, None),
    ],
)
def test_operations_need_the_tensor_cores_for_a_share_of_the_cycles(
    hertz: float | None, device: dict[str, object], work: dict[str, object], expected: float | None
) -> None:
    sampling = Table.of_rows(GPU_SAMPLING, [{"device": 0, "first_clock_hz": hertz}])
    (found,) = counted_layers(
        Table.of_rows(LAYER_COUNTERS, rows(tensor_active=50.0)), sampling
    ).values()
    counted = replace(found, duration_ns=10_000.0)
    (machine,) = Table.of_rows(DEVICES, [{**DEVICE, **device}])
    (needed,) = Table.of_rows(WORK_SPEC, [{**WORK, **work}])
    assert expected_tensor(counted, needed_of(needed), device_of(machine)) == (
        None if expected is None else pytest.approx(expected)
    )
