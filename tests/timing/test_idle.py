"""Idle time: every tick of it has one cause, the same one that a slow reading of the rules
gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core import intervals
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.core.trace_schema import (
    API_CALLS,
    CUDA_GRAPH_NODES,
    CUDA_GRAPH_TRACES,
    DEVICES,
    EVENT_RECORDS,
    GPU_KERNELS,
    INFERENCES,
    MEMBERSHIP,
    MEMCPYS,
    MEMSETS,
    NVTX_RANGES,
    OSRT_CALLS,
    OVERHEADS,
    SYNCS,
)
from nsysmap.timing.idle import intervals as idle
from nsysmap.timing.idle.causes import IdleEvidence, IdlePieces, joined
from nsysmap.timing.idle.intervals import find_gaps
from nsysmap.trace.model import Trace

TICK = 1000  # ns
THREADS = (7, 8)


@dataclass(frozen=True)
class Call:
    thread: int
    start: int
    end: int
    api: str
    kind: str


@dataclass(frozen=True)
class Work:
    start: int
    end: int
    launch: int | None  # position in calls
    node: int | None = None  # of a graph
    correlation: int | None = None  # of a launch call that is not in the trace


@dataclass(frozen=True)
class Program:
    """A small trace in ticks."""

    calls: tuple[Call, ...]
    work: tuple[Work, ...]
    ranges: tuple[tuple[int, int, int, str], ...]  # thread, start, end, name
    overheads: tuple[tuple[int, int, int], ...]
    enqueues: tuple[tuple[int, int, int], ...]
    waits: tuple[tuple[int, int, int], ...] = ()


def _when(start: int, end: int) -> dict[str, object]:
    return {"start_ns": start * TICK, "end_ns": end * TICK}


def trace_of(program: Program) -> Trace:
    calls = sorted(range(len(program.calls)), key=lambda row: program.calls[row].start)
    place = {row: number for number, row in enumerate(calls)}
    api_calls = Table.of_rows(
        API_CALLS,
        [
            {
                **_when(call.start, call.end),
                "process": 1,
                "pid": 1,
                "thread": call.thread,
                "api": call.api,
                "kind": call.kind,
                "correlation": n,
            }
            for n, call in enumerate(program.calls[row] for row in calls)
        ],
    )
    kernels: list[dict[str, object]] = []
    copies: list[dict[str, object]] = []
    for work in sorted(program.work, key=lambda piece: piece.start):
        call = None if work.launch is None else program.calls[work.launch]
        row: dict[str, object] = {
            **_when(work.start, work.end),
            "device": 0,
            "stream": 1,
            "process": 1,
            "pid": 1,
        }
        if call is not None and work.launch is not None:
            row |= {
                "launch": place[work.launch],
                "correlation": place[work.launch],
                "thread": call.thread,
            }
            row |= {"launch_start_ns": call.start * TICK, "launch_end_ns": call.end * TICK}
        elif work.correlation is not None:
            row |= {"correlation": work.correlation}
        if work.node is not None:
            row |= {"graph_node_id": work.node}
        if call is not None and call.kind == "copy":
            copies.append({**row, "kind": "HtoD", "source": "pageable", "target": "device"})
        else:
            kernels.append({**row, "kernel_id": len(kernels), "name": "k"})
    empty = Table.empty
    return Trace(
        source="made up",
        nsys_version=None,
        schema_version=None,
        kernels=Table.of_rows(GPU_KERNELS, kernels),
        api_calls=api_calls,
        nvtx_ranges=Table.of_rows(
            NVTX_RANGES,
            [
                {**_when(a, b), "process": 1, "thread": thread, "name": name}
                for thread, a, b, name in program.ranges
            ],
        ),
        memcpys=Table.of_rows(MEMCPYS, copies),
        memsets=empty(MEMSETS),
        syncs=empty(SYNCS),
        event_records=empty(EVENT_RECORDS),
        cuda_graph_nodes=empty(CUDA_GRAPH_NODES),
        cuda_graph_traces=empty(CUDA_GRAPH_TRACES),
        overheads=Table.of_rows(
            OVERHEADS,
            [
                {**_when(a, b), "thread": thread, "name": "flush"}
                for thread, a, b in program.overheads
            ],
        ),
        osrt_calls=Table.of_rows(
            OSRT_CALLS,
            [{**_when(a, b), "thread": thread, "name": "poll"} for thread, a, b in program.waits],
        ),
        devices=empty(DEVICES),
        dropped=(),
        absent=(),
    )


def inferences_of(program: Program) -> Table:
    return Table.of_rows(
        INFERENCES,
        [
            {
                "inference": n,
                "thread": thread,
                "enqueue_start_ns": a * TICK,
                "enqueue_end_ns": b * TICK,
            }
            for n, (thread, a, b) in enumerate(program.enqueues)
        ],
    )


@pytest.fixture(autouse=True)
def a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holes are worked out two at a time, and rows looked at two at a time, so that a few of them
    are several pieces.
    """
    monkeypatch.setattr(idle, "_AT_ONCE", 2)
    monkeypatch.setattr(intervals, "_BLOCK", 2)


def gaps_of(program: Program) -> Table:
    trace = trace_of(program)
    nothing = np.full(len(trace.kernels), MISSING, np.int64)
    membership = Table(MEMBERSHIP, {"inference": nothing, "position": nothing})
    return find_gaps(trace, inferences_of(program), membership, None, excluded={})


def by_tick(gaps: Table) -> dict[int, str]:
    """The cause of every idle tick."""
    result: dict[int, str] = {}
    for start, end, cause in zip(
        gaps.ints("start_ns").tolist(),
        gaps.ints("end_ns").tolist(),
        gaps.text("cause").list(),
        strict=True,
    ):
        for tick in range(start // TICK, end // TICK):
            assert tick not in result, "two causes for one tick"
            result[tick] = str(cause)
    return result


# --- the slow reading of the rules
# ----------------------------------------------------------------------------------


def slowly(program: Program) -> dict[int, str]:
    work = sorted(program.work, key=lambda piece: piece.start)
    result: dict[int, str] = {}
    if not work:
        return result
    for tick in range(work[0].start, max(piece.end for piece in work)):
        if any(piece.start <= tick < piece.end for piece in work):
            continue
        following = next(piece for piece in work if piece.start > tick)
        idle_since = max(piece.end for piece in work if piece.start <= tick)
        result[tick] = _cause(program, following, idle_since, tick)
    return result


def _cause(program: Program, following: Work, idle_since: int, tick: int) -> str:
    if following.launch is None:
        return "unknown"
    call = program.calls[following.launch]
    previous = [piece for piece in program.work if piece.start < following.start]
    same = any(piece.launch == following.launch for piece in previous if piece.end == idle_since)
    if same and call.kind != "copy":
        return "dispatch"
    held_back = following.start - max(call.end, idle_since) > 20
    if call.end <= idle_since:
        return "unknown" if held_back else "dispatch"
    if tick >= call.start:
        if call.kind != "copy" and following.start - call.end > 20 and tick >= call.end:
            return "unknown"
        if any(thread == call.thread and a <= tick < b for thread, a, b in program.overheads):
            return "profiler"
        return "copy" if call.kind == "copy" else "launch"
    return _before_the_call(program, call.thread, tick)


def _before_the_call(program: Program, thread: int, tick: int) -> str:
    if any(owner == thread and a <= tick < b for owner, a, b in program.overheads):
        return "profiler"
    enqueuing = any(owner == thread and a <= tick < b for owner, a, b in program.enqueues)
    for call in program.calls:
        if call.thread == thread and call.start <= tick < call.end:
            if call.kind in ("sync", "copy"):
                return call.kind
            if call.kind == "alloc":
                return "host"
            if call.kind == "module-load":
                return "compile"
            if call.kind == "launch":
                return "launch"
    if enqueuing:
        return "launch"
    in_range = any(owner == thread and a <= tick < b for owner, a, b, _ in program.ranges)
    waiting = any(owner == thread and a <= tick < b for owner, a, b in program.waits)
    return "no-work" if waiting and not in_range else "host"


# --- random programs
# ------------------------------------------------------------------------------------------------

_APIS = (
    ("cudaLaunchKernel", "launch"),
    ("cudaStreamSynchronize", "sync"),
    ("cudaMemcpy", "copy"),
    ("cudaMalloc", "alloc"),
    ("cuModuleGetFunction", "module-load"),
)


@st.composite
def _blocks(draw: st.DrawFn, longest: int = 6) -> list[tuple[int, int]]:
    """Disjoint intervals in order."""
    result, at = [], 0
    for _ in range(draw(st.integers(0, 6))):
        start = at + draw(st.integers(0, 5))
        end = start + draw(st.integers(1, longest))
        result.append((start, end))
        at = end
    return result


@st.composite
def programs(draw: st.DrawFn) -> Program:
    calls = [
        Call(thread, start, end, *draw(st.sampled_from(_APIS)))
        for thread in THREADS
        for start, end in draw(_blocks())
    ]
    work = []
    for row, call in enumerate(calls):
        if call.kind in ("launch", "copy"):
            for _ in range(
                draw(st.integers(0, 2)) if call.kind == "copy" else draw(st.integers(0, 1))
            ):
                start = call.start + draw(st.integers(0, 30))
                work.append(Work(start, start + draw(st.integers(1, 4)), row))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, 50))
        work.append(Work(start, start + 2, None))
    starts = [piece.start for piece in work]
    if len(set(starts)) < len(starts) or len({piece.end for piece in work}) < len(work):
        work = work[:1]  # which of two equals comes first is not part of the rules
    on_thread = st.sampled_from(THREADS)
    return Program(
        tuple(calls),
        tuple(work),
        tuple((draw(on_thread), a, b, "r") for a, b in draw(_blocks())),
        tuple((draw(on_thread), a, b) for a, b in draw(_blocks(2))),
        tuple((draw(on_thread), a, b) for a, b in draw(_blocks(12))),
        tuple((draw(on_thread), a, b) for a, b in draw(_blocks())),
    )


@settings(max_examples=400, deadline=None)
@given(programs())
def test_every_idle_tick_has_the_cause_that_a_slow_reading_gives(program: Program) -> None:
    assert by_tick(gaps_of(program)) == slowly(program)


# --- what the words mean
# --------------------------------------------------------------------------------------------


def _two_kernels(
    *, second_call: tuple[int, int], idle: tuple[int, int], **more: object
) -> dict[str, int]:
    calls = (
        Call(7, 0, 2, "cudaLaunchKernel", "launch"),
        Call(7, *second_call, "cudaLaunchKernel", "launch"),
    )
    program = Program(
        (*calls, *more.pop("calls", ())),  # type: ignore[misc]
        (Work(4, idle[0], 0), Work(idle[1], idle[1] + 5, 1)),
        more.pop("ranges", ()),  # type: ignore[arg-type]
        (),
        more.pop("enqueues", ()),  # type: ignore[arg-type]
        more.pop("waits", ()),  # type: ignore[arg-type]
    )
    causes = list(by_tick(gaps_of(program)).values())
    return {cause: causes.count(cause) for cause in causes}


def test_work_that_was_queued_in_time_waits_for_dispatch_not_for_the_host() -> None:
    assert _two_kernels(second_call=(3, 6), idle=(20, 22)) == {"dispatch": 2}


def test_work_launched_too_late_inside_an_enqueue_is_a_launch_gap_from_where_the_gpu_went_idle() -> (  # noqa: E501
    None
):
    assert _two_kernels(second_call=(14, 17), idle=(10, 19), enqueues=((7, 0, 18),)) == {
        "launch": 9
    }


def test_a_hole_after_a_synchronisation_is_split_into_return_host_and_launch() -> None:
    sync = Call(7, 3, 12, "cudaStreamSynchronize", "sync")
    found = _two_kernels(
        second_call=(16, 19),
        idle=(10, 22),
        calls=(sync,),
        ranges=((7, 12, 15, "preprocess"),),
        enqueues=((7, 15, 20),),
    )
    assert found == {"sync": 2, "host": 3, "launch": 7}


def test_waiting_outside_every_range_is_no_work_but_inside_a_range_it_is_the_host() -> None:
    assert _two_kernels(second_call=(30, 32), idle=(10, 33), waits=((7, 12, 28),))["no-work"] == 16
    assert "no-work" not in _two_kernels(
        second_call=(30, 32), idle=(10, 33), waits=((7, 12, 28),), ranges=((7, 0, 40, "request"),)
    )


def test_queued_work_that_the_gpu_does_not_start_for_long_is_not_called_dispatch() -> None:
    assert _two_kernels(second_call=(3, 6), idle=(20, 60)) == {"unknown": 40}


def test_the_evidence_names_the_range_the_host_was_in_and_its_time() -> None:
    calls = (
        Call(7, 0, 2, "cudaLaunchKernel", "launch"),
        Call(7, 30, 32, "cudaLaunchKernel", "launch"),
    )
    program = Program(
        calls, (Work(4, 10, 0), Work(34, 36, 1)), ((7, 9, 29, "preprocess"),), (), ((7, 29, 33),)
    )
    rows = gaps_of(program).records()
    assert [
        (row["cause"], row["evidence"], row["evidence_start_ns"], row["evidence_end_ns"])
        for row in rows
    ] == [
        ("host", "range preprocess", 9 * TICK, 29 * TICK),
        ("launch", "cudaLaunchKernel", 30 * TICK, 32 * TICK),
    ]


@pytest.mark.parametrize(("lasts", "named"), [(4, "no CUDA call"), (5, "cudaGetDevice")])
def test_a_call_that_neither_launches_nor_waits_is_named_from_5_us_on(
    lasts: int, named: str
) -> None:
    calls = (
        Call(7, 0, 2, "cudaLaunchKernel", "launch"),
        Call(7, 12, 12 + lasts, "cudaGetDevice", "other"),
        Call(7, 30, 32, "cudaLaunchKernel", "launch"),
    )
    gaps = gaps_of(Program(calls, (Work(4, 10, 0), Work(34, 36, 2)), (), (), ()))
    at = [row for row in gaps if row.integer("start_ns") <= 12 * TICK < row.integer("end_ns")]
    assert [(row.text("cause"), row.text("evidence")) for row in at] == [("host", named)]


@pytest.mark.parametrize(
    ("begins", "causes"),
    [
        # call of 10 µs: 2 µs are a graph launch, the rest records its nodes, which wait for its end
        (22, {"graph": 4, "profiler": 8}),
        (18, {"graph": 8}),  # a node began before the call returned: none waits for the recording
    ],
)
def test_a_graph_launch_is_the_profiler_s_only_where_the_nodes_wait_for_its_end(
    begins: int, causes: dict[str, int]
) -> None:
    calls = (
        Call(7, 0, 2, "cudaLaunchKernel", "launch"),
        Call(7, 10, 20, "cudaGraphLaunch", "graph-launch"),
    )
    work = (Work(4, 10, 0), Work(begins, begins + 5, 1, node=1))
    found = list(by_tick(gaps_of(Program(calls, work, (), (), ()))).values())
    assert {cause: found.count(cause) for cause in found} == causes


@pytest.mark.parametrize(
    ("first", "second", "cause"), [(5, 5, "dispatch"), (5, 6, "unknown"), (None, None, "unknown")]
)
def test_nodes_of_one_graph_launch_before_the_trace_wait_for_dispatch(
    first: int | None, second: int | None, cause: str
) -> None:
    work = (
        Work(4, 10, None, node=1, correlation=first),
        Work(12, 15, None, node=2, correlation=second),
    )
    assert set(by_tick(gaps_of(Program((), work, (), (), ()))).values()) == {cause}
    alone = tuple(replace(piece, node=None) for piece in work)  # no graph: nothing is known
    assert set(by_tick(gaps_of(Program((), alone, (), (), ()))).values()) == {"unknown"}


@given(programs())
def test_a_gap_lasts_from_its_begin_to_its_end(program: Program) -> None:
    for row in gaps_of(program):
        assert row.integer("dur_ns") == row.integer("end_ns") - row.integer("start_ns") > 0


def test_work_without_gaps_has_no_gap_rows() -> None:
    assert len(gaps_of(Program((), (Work(0, 5, None), Work(5, 9, None)), (), (), ()))) == 0
    assert len(gaps_of(Program((), (), (), (), ()))) == 0


# --- pieces of idle time
# ---


def pieces(*rows: tuple[int, int, int, int, int, int]) -> IdlePieces:
    """Pieces as (owner, start, end, cause, evidence, proof's start)."""
    owner, start, end, cause, evidence, proof = np.array(rows, np.int64).reshape(-1, 6).T
    return IdlePieces(owner, start, end, cause, evidence, proof, proof + 1)


FIRST = (0, 10, 20, 1, 2, 3)


@pytest.mark.parametrize(
    ("second", "apart"),
    [
        ((0, 20, 30, 1, 2, 3), False),
        ((0, 21, 30, 1, 2, 3), True),  # not next to it
        ((1, 20, 30, 1, 2, 3), True),  # of another interval
        ((0, 20, 30, 2, 2, 3), True),  # another cause
        ((0, 20, 30, 1, 3, 3), True),  # other evidence
        ((0, 20, 30, 1, 2, 4), True),  # another row of the same name
        ((0, 20, 20, 1, 2, 3), None),  # of no length
    ],
)
def test_neighbours_of_one_cause_and_evidence_become_one_piece(
    second: tuple[int, int, int, int, int, int], apart: bool | None
) -> None:
    last = (5, 50, 60, 1, 2, 3)
    for parts in ([pieces(FIRST, second, last)], [pieces(last, second), pieces(FIRST)]):
        found = joined(parts)
        rows = list(
            zip(
                *(column.tolist() for column in vars_of(found)[:6]),
                strict=True,
            )
        )
        one = (0, 10, 30, 1, 2, 3)
        assert rows == [
            *((FIRST, second) if apart else (FIRST,) if apart is None else (one,)),
            last,
        ]
        assert found.proof_end_ns.tolist() == [row[5] + 1 for row in rows]


def vars_of(found: IdlePieces) -> list[IntArray]:
    return [getattr(found, name) for name in IdlePieces.__dataclass_fields__]


def test_no_pieces_are_none() -> None:
    assert [len(column) for column in vars_of(joined([pieces()]))] == [0] * 7
    assert [len(column) for column in vars_of(joined([pieces((0, 9, 9, 1, 2, 3))]))] == [0] * 7


def test_evidence_is_written_with_what_it_is() -> None:
    assert [IdleEvidence(kind, "x").text for kind in ("call", "range", "profiler", "inferred")] == [
        *("x", "range x", "profiler: x", "profiler, inferred: x")
    ]


def shown(program: Program) -> list[tuple[int, int, str, str]]:
    """The idle time of each cause with what shows it, in ticks."""
    gaps = gaps_of(program)
    return list(
        zip(
            (gaps.ints("start_ns") // TICK).tolist(),
            (gaps.ints("end_ns") // TICK).tolist(),
            map(str, gaps.text("cause").list()),
            map(str, gaps.text("evidence").list()),
            strict=True,
        )
    )


def test_each_part_of_an_idle_time_has_the_row_that_shows_it() -> None:
    """On one thread: a wait, the program's range, a poll outside all ranges, a flush of nsys's, and
    the launch at last.
    """
    calls = (
        Call(7, 0, 2, "cudaLaunchKernel", "launch"),
        Call(7, 12, 20, "cudaStreamSynchronize", "sync"),
        Call(7, 60, 62, "cudaLaunchKernel", "launch"),
    )
    program = Program(
        calls,
        (Work(4, 10, 0), Work(63, 70, 2)),
        ranges=((7, 22, 30, "mine"), (8, 31, 40, "other's")),
        overheads=((7, 45, 48), (8, 50, 52)),
        enqueues=((7, 55, 62),),
        waits=((7, 25, 28), (7, 32, 38), (8, 40, 44)),
    )
    assert shown(program) == [
        (10, 12, "host", "no CUDA call"),
        (12, 20, "sync", "cudaStreamSynchronize"),
        (20, 22, "host", "no CUDA call"),
        (22, 30, "host", "range mine"),
        (30, 32, "host", "no CUDA call"),
        (32, 38, "no-work", "poll"),
        (38, 45, "host", "no CUDA call"),
        (45, 48, "profiler", "profiler: flush"),
        (48, 55, "host", "no CUDA call"),
        (55, 63, "launch", "cudaLaunchKernel"),
    ]
