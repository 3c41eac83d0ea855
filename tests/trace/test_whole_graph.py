"""What a whole-graph trace tells of the replays whose kernels it hides."""

from __future__ import annotations

from nsysmap.core.table import Table
from nsysmap.core.trace_schema import API_CALLS, CUDA_GRAPH_TRACES
from nsysmap.trace.inferences.whole_graph import hidden_replays


def calls(*rows: tuple[str, int, int, int]) -> Table:
    made = [
        {"kind": kind, "start_ns": start, "end_ns": end, "thread": thread}
        for kind, start, end, thread in rows
    ]
    return Table.of_rows(API_CALLS, made)


def test_replays_that_have_rows_of_their_own_are_measured_on_the_gpu() -> None:
    launches = calls(*(("graph-launch", 100 * i, 100 * i + 10, 1) for i in range(3)))
    runs = [
        {"start_ns": 100 * i + 20, "end_ns": 100 * i + 80 + i, "device": 0, "thread": 1}
        for i in range(3)
    ]
    row = hidden_replays(launches, Table.of_rows(CUDA_GRAPH_TRACES, runs), 50).only()
    assert (row.integer("launches"), row.integer("runs")) == (2, 2)
    assert (
        row.integer("gpu_time_median_ns"),
        row.integer("between_median_ns"),
        row.integer("period_median_ns"),
    ) == (62, 39, 100)
    assert row.maybe_integer("round_trip_median_ns") is None


def test_others_are_measured_from_the_host_up_to_its_next_wait_each_thread_by_itself() -> None:
    found = hidden_replays(
        calls(
            ("graph-launch", 0, 10, 1),
            ("sync", 12, 80, 1),
            ("graph-launch", 5, 9, 2),
            ("graph-launch", 100, 110, 1),
            ("sync", 115, 190, 1),
        ),
        Table.empty(CUDA_GRAPH_TRACES),
        0,
    )
    told = [
        (
            row.integer("thread"),
            row.maybe_integer("round_trip_median_ns"),
            row.maybe_integer("between_median_ns"),
        )
        for row in found
    ]
    assert told == [(1, 85, 20), (2, None, None)]
