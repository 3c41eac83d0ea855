"""How much of the PCIe link copies use: samples of copies whose share is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.core.table import Table
from nsysmap.core.trace_schema import MEMCPYS
from nsysmap.counters.copies import copy_rows
from nsysmap.counters.model import Samples, Shift
from nsysmap.counters.well_known import Capture
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace
from tests.places import FIXTURES

PERIOD_NS = 10_000
KINDS = (("HtoD", "pinned", "device", 4_000_000, 70_000, 90.0), ("DtoH", "device", "pinned", 1_000_000, 20_000, 75.0),  # noqa: E501
         ("HtoD", "pageable", "device", 4_000_000, 240_000, 27.0))  # fmt: skip
"""Direction, memory, bytes, duration, and the share of the link that they use."""


@pytest.fixture(scope="module")
def trace() -> Trace:
    return open_trace(FIXTURES / "bert_trt10" / "sync.nsys-rep")


def copies(turns: int) -> Table:
    random = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    now = 1_000_000
    for _ in range(turns):
        for kind, source, target, size, took, _share in KINDS:
            now += int(random.integers(5_000, 60_000))
            rows.append(
                {
                    "start_ns": now,
                    "end_ns": now + took,
                    "device": 0,
                    "kind": kind,
                    "source": source,
                    "target": target,
                    "bytes": size,
                }
            )
            now += took
    return Table.of_rows(MEMCPYS, rows)


def sampled(table: Table, *, offset: int = 0) -> Samples:
    """Both directions, sample by sample and copy by copy."""
    start = np.arange(900_000, int(table.ints("end_ns").max()) + 100_000, PERIOD_NS)
    values = np.zeros((2, len(start)))
    shares = {(kind, source, size): share for kind, source, _, size, _, share in KINDS}
    for row in table:
        share = shares[row.text("kind"), row.text("source"), row.integer("bytes")]
        overlap = np.minimum(row.integer("end_ns"), start + PERIOD_NS) - np.maximum(
            row.integer("start_ns"), start
        )
        values[int(row.text("kind") == "DtoH")] += share * np.maximum(overlap, 0) / PERIOD_NS
    return Samples(
        start - offset,
        start + PERIOD_NS - offset,
        values.round(),
        ("pcie_receive", "pcie_send"),
        (True, True),
        (None, None),
    )


@pytest.mark.parametrize("joined", [True, False])
def test_each_kind_of_copy_gets_the_share_of_the_link_that_it_used(
    trace: Trace, *, joined: bool
) -> None:
    table = copies(60)
    samples = sampled(table, offset=0 if joined else 2_500)
    shift = Shift(0.0, 0.0, 0.0, 20.0) if joined else None  # no kernel told it: the copies do
    found = list(copy_rows(samples, replace(trace, memcpys=table), 0, shift, Capture()))
    assert len(found) == len(KINDS)
    for row in found:
        (kind,) = (each for each in KINDS if each[0] == row["kind"] and each[1] == row["source"])
        value, error = row["pcie_percent"], row["error"]
        assert isinstance(value, float) and isinstance(error, float)
        assert row["known"] and row["copies"] == row["executions"] == 60
        assert abs(value - kind[5]) < max(2.5 * error, 1.0)
        assert row["bytes_per_s"] == pytest.approx(kind[3] / kind[4] * 1e9)


def test_copies_beside_kernels_are_not_alone(trace: Trace) -> None:
    table = copies(10)
    one = trace.kernels.take(np.array([0]))
    row = next(iter(table))
    begin = row.integer("start_ns")
    kernels = moved(one, begin, begin + 35_000)
    found = list(
        copy_rows(
            sampled(table), replace(trace, memcpys=table, kernels=kernels), 0, Shift(), Capture()
        )
    )
    half = next(each for each in found if each["kind"] == "HtoD" and each["source"] == "pinned")
    assert half["alone_ns"] == pytest.approx(70_000 - 3_500)
    assert all(each["alone_ns"] == each["duration_ns"] for each in found if each is not half)


def moved(kernels: Table, start: int, end: int) -> Table:
    records = [
        dict(record) | {"start_ns": start, "end_ns": end, "device": 0}
        for record in kernels.records()
    ]
    return Table.of_rows(kernels.spec, records)


def test_without_traffic_of_the_link_there_are_no_rows(trace: Trace) -> None:
    table = copies(5)
    samples = sampled(table)
    other = Samples(
        samples.start_ns,
        samples.end_ns,
        samples.values,
        ("dram_read", "dram_write"),
        (True, True),
        (None, None),
    )
    assert not list(copy_rows(other, replace(trace, memcpys=table), 0, Shift(), Capture()))
