"""What hardware counters say limits a layer."""

from __future__ import annotations

import pytest

from nsysmap.base.counter_schema import LAYER_COUNTERS
from nsysmap.base.table import Table
from nsysmap.timing.counted_limits import Counted, counted_layers, disagreement


def rows(**metrics: float) -> list[dict[str, object]]:
    told = {"layer_id": 3, "device": 0, "duration_ns": 1000.0, "executions": 9, "unit": "percent", "error": 1.0, "known": True}
    return [{**told, "metric": name, "value": value, "low": value, "high": value} for name, value in metrics.items()]


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
def test_what_is_nearest_its_peak_limits(dram: float, tensor: float, issue: float, verdict: str) -> None:
    counted = Counted(1000.0, dram, tensor, issue, 90.0).verdict()
    assert counted is not None
    assert counted[0] == verdict


def test_without_memory_traffic_there_is_no_verdict() -> None:
    assert Counted(1000.0, None, 80.0, 10.0, None).verdict() is None


def test_reads_and_writes_add_up_and_a_value_that_is_not_known_is_none() -> None:
    table = [*rows(dram_read=30.0, dram_write=20.0, tensor_active=60.0), {**rows(sm_issue=5.0)[0], "known": False}]
    (layer,) = counted_layers(Table.of_rows(LAYER_COUNTERS, table)).values()
    assert (layer.dram, layer.tensor, layer.issue) == (50.0, 60.0, None)
    assert layer.dram_bytes(10**12) == 500_000


@pytest.mark.parametrize(("model_bytes", "word"), [(1_000_000, "L2 cache"), (300_000, "spilled"), (500_000, None), (None, None)])
def test_traffic_that_is_not_the_tensors_is_said(model_bytes: int | None, word: str | None) -> None:
    told = disagreement(Counted(1000.0, 50.0, None, None, None), model_bytes, 10**12)
    assert (told is None) if word is None else (told is not None and word in told)
