"""The work of a window, and what each piece waits for, on traces of a few rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import (
    API_CALLS,
    CUDA_GRAPH_TRACES,
    EVENT_RECORDS,
    GPU_KERNELS,
    MEMCPYS,
    MEMSETS,
    SYNCS,
)
from nsysmap.trace.model import Trace
from nsysmap.whatif.pieces import KINDS, SUBMITTED_NS, Pieces, find_pieces, waited_for
from nsysmap.whatif.window import Window
from tests.whatif.test_window import stretches
from tests.whatif.test_window import trace as empty

Row = dict[str, object]


def window() -> Window:
    return replace(stretches(), begin_ns=np.array([0]), end_ns=np.array([1_000_000]))


def call(at: int, api: str = "cuLaunchKernel", **fields: object) -> Row:
    return {"api": api, "process": 1, "thread": 7, "start_ns": at, "end_ns": at + 5, **fields}


def on_gpu(launch: int, start: int, end: int, stream: int = 7, **fields: object) -> Row:
    placed = {"launch": launch, "launch_start_ns": 10 * launch, "start_ns": start, "end_ns": end}
    return {"process": 1, "device": 0, "stream": stream, **placed, **fields}


def kernel(launch: int, start: int, end: int, stream: int = 7, **fields: object) -> Row:
    return {"name": "k", **on_gpu(launch, start, end, stream, **fields)}


def traced(calls: list[Row], kernels: list[Row], **others: Table) -> Trace:
    numbered = [{"kernel_id": at, **row} for at, row in enumerate(kernels)]
    return replace(
        empty(),
        api_calls=Table.of_rows(API_CALLS, calls),
        kernels=Table.of_rows(GPU_KERNELS, numbered),
        **others,  # type: ignore[arg-type]
    )


def pieces_of(calls: list[Row], kernels: list[Row], **others: Table) -> Pieces:
    return find_pieces(traced(calls, kernels, **others), window())


def test_pieces_are_by_launch_then_by_start_each_with_its_kind_and_row() -> None:
    calls = [call(10 * at) for at in range(5)]
    copies = [
        on_gpu(0, 300, 340, kind="HtoD", bytes=10),
        on_gpu(1, 350, 390, kind="DtoH", bytes=10),
        on_gpu(2, 360, 370, kind="DtoD", bytes=10),
    ]
    found = pieces_of(
        calls,
        [
            kernel(4, 900, 910, graph_node_id=6),
            kernel(4, 700, 710, graph_node_id=5),
            kernel(1, 100, 150),
            kernel(1, 100, 150, process=2),
            kernel(MISSING, 100, 150) | {"launch_start_ns": 5},
        ],
        memcpys=Table.of_rows(MEMCPYS, copies),
        memsets=Table.of_rows(MEMSETS, [on_gpu(3, 500, 501)]),
        cuda_graph_traces=Table.of_rows(CUDA_GRAPH_TRACES, [on_gpu(3, 400, 450)]),
    )
    assert found.launch.tolist() == [0, 1, 1, 2, 3, 3, 4, 4]
    assert found.start_ns.tolist() == [300, 100, 350, 360, 400, 500, 700, 900]
    assert found.end_ns.tolist() == [340, 150, 390, 370, 450, 501, 710, 910]
    assert [KINDS[kind] for kind in found.kind.tolist()] == [
        *("HtoD", "kernel", "DtoH", "copy", "graph", "memset", "kernel", "kernel")
    ]
    assert np.where(found.row == MISSING, -1, found.row).tolist() == [-1, 2, -1, -1, -1, -1, 1, 0]
    assert np.where(found.node == MISSING, -1, found.node).tolist() == [*[-1] * 6, 5, 6]
    assert found.stream.tolist() == [7] * 8
    assert found.pinned_ns.tolist() == [40, 50, 40, 10, 50, 1, 10, 10]


# --- streams that wait for each other
# ---

RECORD, WAIT = "cudaEventRecord", "cudaStreamWaitEvent"


def waits(
    calls: list[Row], kernels: list[Row], told: list[Row], asked: list[Row]
) -> list[tuple[int, ...]]:
    found = pieces_of(
        calls,
        kernels,
        event_records=Table.of_rows(EVENT_RECORDS, told),
        syncs=Table.of_rows(SYNCS, asked),
    )
    return list(found.after)


def forked() -> tuple[list[Row], list[Row]]:
    """Two kernels in one stream, an event, and two in another that waits for it."""
    calls = [call(0), call(10), call(20, RECORD), call(30, WAIT), call(40), call(50)]
    kernels = [
        *(kernel(0, 100, 110), kernel(1, 120, 130)),
        *(kernel(4, 140, 150, 8), kernel(5, 160, 170, 8)),
    ]
    return calls, kernels


def event(launch: int, stream: int, event: int | None) -> Row:
    return {"launch": launch, "stream": stream, **({} if event is None else {"event": event})}


def test_the_next_work_of_a_stream_that_waits_for_an_event_is_after_what_came_before_it() -> None:
    calls, kernels = forked()
    assert waits(calls, kernels, [event(2, 7, 3)], [event(3, 8, 3)]) == [(), (), (1,), ()]
    assert waits(calls, kernels, [event(2, 7, 3)], [event(3, 8, 4)]) == [(), (), (), ()]
    assert waits(calls, kernels, [event(2, 7, 3)], [event(3, 7, 3)]) == [(), (), (), ()]
    assert waits(calls, kernels, [event(2, 8, 3)], [event(3, 8, 3)]) == [(), (), (), ()]
    assert waits(calls, kernels, [event(2, 7, 3)], []) == [(), (), (), ()]


def test_calls_of_another_process_and_others_make_no_stream_wait() -> None:
    calls, kernels = forked()
    for at, change in ((3, {"process": 2}), (2, {"process": 2}), (3, {"api": "cudaEventQuery"})):
        changed = [{**row, **change} if place == at else row for place, row in enumerate(calls)]
        assert waits(changed, kernels, [event(2, 7, 3)], [event(3, 8, 3)]) == [()] * 4


def test_a_wait_for_an_event_without_a_number_is_for_the_oldest_record_of_another_stream() -> None:
    calls, kernels = forked()
    # a record that the trace has no row of is in the stream that was launched into last
    assert waits(calls, kernels, [], [event(3, 8, None)]) == [(), (), (1,), ()]
    # where there are two, each is waited for once
    calls = [call(0), call(10, RECORD), call(20), call(30, RECORD), call(40, WAIT), call(50),
             call(60, WAIT), call(70), call(80, WAIT), call(90)]  # fmt: skip
    kernels = [
        *(kernel(0, 100, 110, 7), kernel(2, 120, 130, 9)),
        *(kernel(5, 140, 150, 8), kernel(7, 160, 170, 8), kernel(9, 180, 190, 8)),
    ]
    asked = [event(at, 8, None) for at in (4, 6, 8)]
    assert waits(calls, kernels, [], asked) == [(), (), (0,), (1,), (1,)]


def test_an_event_recorded_again_stands_for_what_came_before_the_last_record() -> None:
    calls = [call(0), call(10, RECORD), call(20), call(30, RECORD), call(40, WAIT), call(50)]
    kernels = [kernel(0, 1, 2), kernel(2, 3, 4), kernel(5, 6, 7, 8)]
    told = [event(1, 7, 3), event(3, 7, 3)]
    assert waits(calls, kernels, told, [event(4, 8, 3)]) == [(), (), (1,)]


def test_a_stream_may_wait_for_several() -> None:
    calls = [call(0), call(10, RECORD), call(20), call(30, RECORD), call(40, WAIT), call(45, WAIT),
             call(50)]  # fmt: skip
    kernels = [kernel(0, 1, 2), kernel(2, 3, 4, 9), kernel(6, 6, 7, 8)]
    told = [event(1, 7, 3), event(3, 9, 4)]
    assert waits(calls, kernels, told, [event(5, 8, 3), event(4, 8, 4)]) == [(), (), (0, 1)]


def test_a_stream_does_not_wait_for_itself() -> None:
    calls = [call(0), call(10), call(20, RECORD), call(30, WAIT), call(40)]
    kernels = [kernel(0, 1, 2, 9), kernel(1, 3, 4, 8), kernel(4, 5, 6, 8)]
    assert waits(calls, kernels, [event(2, 8, 3)], [event(3, 8, 3)]) == [(), (), ()]
    # nor for its own record where another stream's is not known by its number either
    calls = [call(0), call(10, RECORD), call(20), call(30, RECORD), call(40, WAIT), call(50)]
    kernels = [kernel(0, 1, 2, 8), kernel(2, 3, 4, 9), kernel(5, 5, 6, 8)]
    assert waits(calls, kernels, [], [event(4, 8, None)]) == [(), (), (1,)]


def test_a_wait_of_the_host_for_a_stream_makes_no_stream_wait() -> None:
    calls = [call(0), call(10, RECORD), call(20, WAIT), call(30, "cudaStreamSynchronize"), call(40)]
    kernels = [kernel(0, 1, 2), kernel(4, 5, 6, 8)]
    assert waits(calls, kernels, [], [event(3, 8, None)]) == [(), ()]
    assert waits(calls, kernels, [], [event(2, 8, None)]) == [(), (0,)]


def test_of_a_graph_the_node_that_begins_first_waits_for_an_event() -> None:
    calls = [call(0), call(10, RECORD), call(20, WAIT), call(30)]

    def launched(first: int, second: int) -> list[Row]:
        return [
            kernel(0, 1, 2),
            kernel(3, 10, 20, first, graph_node_id=1),
            kernel(3, 30_000, 40_000, second, graph_node_id=2),
        ]

    told, asked = [event(1, 7, 3)], [event(2, 8, 3)]
    assert waits(calls, launched(8, 9), told, asked)[1] == ()  # nodes wait for nodes alone
    mixed = [{**row, "graph_node_id": MISSING} for row in launched(9, 8)]
    assert waits(calls, mixed, told, asked) == [(), (), ()]
    mixed = [{**row, "graph_node_id": MISSING} for row in launched(8, 8)]
    assert waits(calls, mixed, told, asked) == [(), (0,), ()]
    partly = launched(8, 9)
    del partly[1]["graph_node_id"]
    assert waits(calls, partly, told, asked) == [(), (0,), ()]


# --- the nodes of a graph
# ---


def nodes(*spans: tuple[int, int, int], returned: int = -1_000_000) -> list[tuple[int, ...]]:
    """What each node waits for: (start, end, stream) of each, in two replays."""
    start, end, stream = (np.array([column] * 2) for column in zip(*spans, strict=True))
    shift = np.array([[0], [50_000]])
    return waited_for(start + shift, end + shift, stream, returned + shift[:, 0])


FAR = 10_000


def test_a_node_waits_for_what_ended_last_before_it_and_for_what_ended_with_that() -> None:
    left, right = (0, 10_000, 1), (0, 9_000, 2)
    assert nodes(left, right, (10_000, 20_000, 1)) == [(), (), (1, 0)]
    assert nodes(left, right, (10_500, 20_000, 1)) == [(), (), (1, 0)]  # 1.5 us
    assert nodes(left, right, (10_501, 20_000, 1)) == [(), (), (0,)]
    assert nodes(left, right, (10_501, 20_000, 2)) == [(), (), (1, 0)]  # of its own stream
    assert nodes(left, (9_000, 10_000, 2), (9_999, 20_000, 3)) == [(), (), ()]


def test_only_the_last_of_the_same_stream_is_waited_for() -> None:
    chain = [(at * FAR, at * FAR + 5_000, 1) for at in range(4)]
    assert nodes(*chain) == [(), (0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("start", "waits_for"),
    [
        (8_001, (0,)),  # it begins less than 2 us before the end of that
        (8_000, ()),
        (0, ()),  # it begins with it
    ],
)
def test_a_node_may_begin_before_the_end_of_the_one_before_it(
    start: int, waits_for: tuple[int, ...]
) -> None:
    assert nodes((0, 10_000, 1), (start, 30_000, 1))[1] == waits_for
    assert nodes((0, 1_500, 1), (0, 30_000, 1)) == [(), ()]


@pytest.mark.parametrize(
    ("returned", "start", "waits_for"),
    [
        (20_000, 20_000, ()),
        (20_000, 20_000 + SUBMITTED_NS, ()),
        (20_000, 20_001 + SUBMITTED_NS, (0,)),
        (20_001, 20_000, (0,)),
        (15_000, 15_000, (0,)),  # the GPU was idle for no longer than that takes
        (15_001, 15_001, ()),
    ],
)
def test_a_node_that_begins_as_the_call_returns_waits_for_that_alone(
    returned: int, start: int, waits_for: tuple[int, ...]
) -> None:
    assert nodes((0, 10_000, 1), (start, 90_000, 1), returned=returned)[1] == waits_for


def test_what_a_node_waits_for_holds_in_every_replay() -> None:
    start = np.array([[0, 0, 12_000], [0, 0, 12_000]])
    end = np.array([[10_000, 11_000, 20_000], [10_000, 13_000, 20_000]])
    stream = np.array([[1, 2, 3]] * 2)
    assert waited_for(start, end, stream, np.array([-99_999] * 2)) == [(), (), (0,)]


@pytest.mark.parametrize(
    ("starts", "returned", "waits_for"),
    [
        ((9_000, 12_000), 99_000, (0,)),  # in one replay it begins early
        ((9_000, 5_000), 99_000, ()),  # in one too early
        ((20_000, 20_000), 20_000, ()),
        ((20_000, 19_999), 20_000, (0,)),  # in one before the call returns
        ((25_000, 25_001), 20_000, (0,)),  # in one too long after it
    ],
)
def test_what_one_replay_shows_not_is_not_so(
    starts: tuple[int, int], returned: int, waits_for: tuple[int, ...]
) -> None:
    start = np.array([[0, begin] for begin in starts])
    end = np.array([[10_000, 90_000]] * 2)
    found = waited_for(start, end, np.array([[1, 1]] * 2), np.array([returned] * 2))
    assert found == [(), waits_for]


def test_a_gpu_that_worked_until_just_before_it_was_not_idle() -> None:
    both = ((0, 10_000, 1), (0, 18_000, 2), (20_000, 90_000, 3))
    assert nodes(*both, returned=20_000)[2] == (1,)


def test_a_graph_of_one_node_waits_for_an_event_as_a_kernel_does() -> None:
    calls, kernels = forked()
    kernels[2]["graph_node_id"] = 5
    assert waits(calls, kernels, [event(2, 7, 3)], [event(3, 8, 3)]) == [(), (), (1,), ()]


def test_of_twelve_that_ended_last_one_more_is_not_looked_at() -> None:
    many = [(0, 10_000 - at, at) for at in range(14)]
    found = nodes(*many, (10_000, 20_000, 99))[-1]
    assert sorted(found) == list(range(12))


def test_nodes_of_launches_of_one_graph_are_told_by_all_of_them() -> None:
    """In the second launch node 2 begins before node 1 ends: it waits for neither."""
    calls = [call(0), call(10), call(20)]

    def launched(launch: int, begin: int, early: int) -> list[Row]:
        return [
            kernel(launch, begin, begin + 10_000, 7, graph_node_id=1),
            kernel(launch, begin + 10_100 - early, begin + 15_000, 8, graph_node_id=2),
        ]

    same = [*launched(0, 100, 0), *launched(1, 50_100, 0)]
    assert pieces_of(calls, same).after == ((), (0,), (), (2,))
    other = [*launched(0, 100, 0), *launched(1, 50_100, 101)]
    assert pieces_of(calls, other).after == ((), (), (), ())
    alone = [*launched(0, 100, 0), *launched(1, 50_100, 101)[:1]]
    assert pieces_of(calls, alone).after == ((), (0,), ())
    single = [row | {"graph_node_id": MISSING} for row in same]
    assert pieces_of(calls, single).after == ((), (), (), ())
