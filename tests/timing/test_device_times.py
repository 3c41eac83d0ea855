"""How busy each GPU was within its window, and how its idle time there divides by cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.report_schema import DEVICE_TIMES
from nsysmap.core.result_schema import GAPS
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import (
    CAPTURE,
    GPU_KERNELS,
    INFERENCES,
    MEMBERSHIP,
    MEMCPYS,
    STEADY_STATE,
)
from nsysmap.timing.device_times import (
    _parts,
    device_times,
    hides_work,
    idle_totals,
    served_by,
)
from nsysmap.trace.inferences.find import Inferences
from tests.reports import analysis
from tests.whatif.test_window import trace as empty


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


# --- a GPU that works now and then
# ---


def found_in(number: list[int], rows: list[dict[str, object]]) -> Inferences:
    """Inferences, with the number of that of each kernel."""
    of_kernel = np.array(number, np.int64)
    return Inferences(
        Table.of_rows(INFERENCES, rows),
        Table(MEMBERSHIP, {"inference": of_kernel, "position": of_kernel}),
        np.zeros(0, np.int64),
        0,
    )


def times(
    windows: list[dict[str, object]],
    excluded: dict[int, list[tuple[int, int]]] | None = None,
    *,
    hidden: bool = False,
) -> list[tuple[object, ...]]:
    """Of a device with kernels at 10 to 30 and 60 to 70 ns and copies at 25 to 40."""

    def row(start: int, end: int, device: int = 0) -> dict[str, object]:
        return {"device": device, "start_ns": start, "end_ns": end}

    kernels = [row(10, 30), row(60, 70), row(5, 95, 1)]
    trace = replace(
        empty(),
        kernels=Table.of_rows(
            GPU_KERNELS, [{"kernel_id": at, "name": "k", **one} for at, one in enumerate(kernels)]
        ),
        memcpys=Table.of_rows(MEMCPYS, [{"kind": "HtoD", **row(25, 40)}]),
    )
    found = device_times(
        trace,
        found_in([MISSING] * 3, []),
        Table.of_rows(STEADY_STATE, windows),
        excluded or {},
        hidden=hidden,
    )
    names = ("device", "window", "window_ns", "busy_ns", "copies_ns", "idle_ns", "busy_share")
    return [tuple(one[name] for name in names) for one in found.records()]


def test_without_inferences_the_window_of_a_gpu_is_that_of_its_work() -> None:
    assert times([]) == [
        (0, "trace", 60, 40, 10, 20, 40 / 60),
        (1, "trace", 90, 90, 0, 0, 1.0),
    ]
    assert times([], {0: [(10, 50)]})[0] == (0, "trace", 60, 40, 10, 20, 40 / 60)
    assert times([], hidden=True)[0] == (0, "trace", 60, None, None, None, None)


def test_with_inferences_it_is_theirs_without_what_does_not_count() -> None:
    window: dict[str, object] = {"device": 0, "inferences": 3, "start_ns": 0, "end_ns": 100}
    assert times([window]) == [(0, "inferences", 100, 40, 10, 60, 0.4)]
    assert times([window], {0: [(20, 28)]}) == [(0, "inferences", 92, 32, 10, 60, 32 / 92)]
    unknown: dict[str, object] = {"inferences": 3, "start_ns": 0, "end_ns": 100}
    assert [one[1] for one in times([unknown])] == ["trace", "trace"]
    elsewhere = {**window, "device": 5}
    assert times([elsewhere]) == [(5, "inferences", 100, None, None, None, None)]
    nothing = {**window, "end_ns": 0}
    assert times([nothing]) == [(0, "inferences", 0, 0, 0, 0, None)]


def test_a_gpu_without_inferences_of_its_own_is_served_by_the_one_that_has_most() -> None:
    def served(number: list[int], *inferences: tuple[int, bool, bool]) -> dict[int, int]:
        kernels = [
            {"kernel_id": at, "name": "k", "device": device, "start_ns": at, "end_ns": at + 1}
            for at, device in enumerate((0, 1, 2, 2, 2))
        ]
        trace = replace(empty(), kernels=Table.of_rows(GPU_KERNELS, kernels))
        rows: list[dict[str, object]] = [
            {"inference": at, "device": device, "complete": complete, "warmup": warmup}
            for at, (device, complete, warmup) in enumerate(inferences)
        ]
        return served_by(trace, found_in(number, rows))

    on_0, on_1 = (0, True, False), (1, True, False)
    assert served([0, 1, 0, 0, 1], on_0, on_1) == {2: 0}
    assert served([0, 1, 0, 1, 1], on_0, on_1) == {2: 1}
    assert served([0, 0, 0, MISSING, MISSING], on_0) == {1: 0, 2: 0}
    assert served([0, MISSING, 0, 0, 0], (0, True, True)) == {}
    assert served([0, MISSING, 0, 0, 0], (0, False, False)) == {}
    assert served([0, 1, 2, 2, 2], on_0, on_1, (2, True, False)) == {}


@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 8)), max_size=4),
)
def test_what_is_left_of_a_window_is_what_no_other_span_has(
    begin: int, length: int, gaps: list[tuple[int, int]]
) -> None:
    at, spans = begin - 5, []
    for gap, lasts in gaps:
        start = at + abs(gap)
        spans.append((start, start + lasts))
        at = start + lasts
    parts = _parts((begin, begin + length), spans[::-1])
    held = [tick for left, right in parts for tick in range(left, right)]
    assert held == [
        tick
        for tick in range(begin, begin + length)
        if not any(left <= tick < right for left, right in spans)
    ]
    assert all(left < right for left, right in parts)


@pytest.mark.parametrize(
    ("traced", "rows", "hides"),
    [("graph", 0, True), ("graph", 1, False), ("node", 0, False), (None, 0, False)],
)
def test_graphs_traced_as_a_whole_without_rows_hide_work(
    traced: str | None, rows: int, hides: bool
) -> None:
    row: dict[str, object] = {"cuda_graph_traces": rows}
    row |= {} if traced is None else {"cuda_graph_trace": traced}
    assert hides_work(Table.of_rows(CAPTURE, [row])) == hides
