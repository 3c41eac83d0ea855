"""How busy each GPU was within its window, and how its idle time there divides by cause."""

from __future__ import annotations

import pytest

from nsysmap.core.report_schema import DEVICE_TIMES
from nsysmap.core.result_schema import GAPS
from nsysmap.core.table import Table
from nsysmap.timing.device_times import idle_totals
from tests.reports import analysis


def test_gaps_are_cut_at_the_ends_of_the_window_and_added_up_by_device_and_cause() -> None:
    devices = [{"device": 0, "start_ns": 100, "end_ns": 200, "window_ns": 100, "inferences": 2}]
    gaps = [
        {"device": 0, "start_ns": 90, "end_ns": 110, "cause": "launch"},
        {"device": 0, "start_ns": 120, "end_ns": 125, "cause": "launch"},
        {"device": 0, "start_ns": 150, "end_ns": 180, "cause": "host"},
        {"device": 0, "start_ns": 190, "end_ns": 300, "cause": "sync"},
        {"device": 0, "start_ns": 300, "end_ns": 400, "cause": "sync"},
        {"device": 1, "start_ns": 100, "end_ns": 200, "cause": "launch"},
    ]
    found = idle_totals(Table.of_rows(GAPS, gaps), Table.of_rows(DEVICE_TIMES, devices), {})
    told = [
        (
            row.text("cause"),
            row.integer("gaps"),
            row.integer("time_ns"),
            row.integer("ns_per_inference"),
        )
        for row in found
    ]
    assert told == [("host", 1, 30, 15), ("launch", 2, 15, 8), ("sync", 1, 10, 5)]
    assert found.floats("share_of_window").tolist() == [0.3, 0.15, 0.1]
    without = idle_totals(
        Table.of_rows(GAPS, gaps),
        Table.of_rows(DEVICE_TIMES, devices),
        {0: [(105, 130), (170, 175)], 1: [(0, 999)]},
    )
    assert [(row.text("cause"), row.integer("time_ns")) for row in without] == [
        ("host", 25),
        ("sync", 10),
        ("launch", 5),
    ]


@pytest.mark.parametrize(
    ("folder", "file"),
    [("bert_trt10", "sync.sqlite"), ("bert_trt85", "sync.sqlite"), ("bert_trt103", "graph.sqlite")],
)
def test_busy_and_idle_make_up_the_window_and_the_causes_make_up_the_idle_time_but_for_the_edges(
    folder: str, file: str
) -> None:
    tables = analysis(folder, file).tables
    device = tables.device_times.only()
    assert device.integer("busy_ns") + device.integer("idle_ns") == device.integer("window_ns")
    edges = device.integer("idle_ns") - int(tables.idle_totals.ints("time_ns").sum())
    assert 0 <= edges < 0.01 * device.integer("window_ns")


def test_work_that_the_trace_hides_is_neither_busy_nor_idle() -> None:
    tables = analysis("bert_trt10", "graph_whole.sqlite").tables
    assert [row.maybe_integer("busy_ns") for row in tables.device_times] == [None] * len(
        tables.device_times
    )
    assert len(tables.idle_totals) == 0


def test_copies_count_while_nothing_else_runs() -> None:
    found = analysis("torch_mixed", "sync.nsys-rep", engine=False)
    tables, device = found.tables, found.tables.device_times.only()
    begin, end = device.integer("start_ns"), device.integer("end_ns")
    others = [(row.integer("start_ns"), row.integer("end_ns")) for row in tables.kernels]
    alone = [
        (row.integer("start_ns"), row.integer("end_ns"))
        for row in tables.memcpys
        if not any(
            start < row.integer("end_ns") and row.integer("start_ns") < stop
            for start, stop in others
        )
    ]
    assert len(alone) == len(tables.memcpys) > 0
    expected = sum(max(min(stop, end) - max(start, begin), 0) for start, stop in alone)
    assert device.integer("copies_ns") == expected > 0
