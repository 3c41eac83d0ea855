"""What is read off a trace for the replay, held against plain loops over its rows: costs, and the
steps of the host's threads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import median

import numpy as np
import pytest

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import (
    API_CALLS,
    GPU_KERNELS,
    INFERENCES,
    NVTX_RANGES,
    OVERHEADS,
    SYNCS,
)
from nsysmap.mapping.mapped_trace import MappedTrace, map_report
from nsysmap.trace.model import Trace
from nsysmap.whatif.calibration import calibrate
from nsysmap.whatif.early import MOVED_NS, begins_early, runs_at_once
from nsysmap.whatif.pieces import waited_for
from nsysmap.whatif.profiler import ProfilerCosts, profiler_costs
from nsysmap.whatif.read_timeline import _with_late_waits, read_timeline
from nsysmap.whatif.replay import period_ns, recorded, replay
from nsysmap.whatif.timeline import ALL_QUEUES, Timeline, all_steps, all_works
from nsysmap.whatif.window import Window, steady_window
from tests.places import FIXTURES
from tests.whatif.test_replay import COSTS
from tests.whatif.test_replay import step as call
from tests.whatif.test_window import stretches
from tests.whatif.test_window import trace as empty

KERNELS_ONLY = (
    "bert_trt10/sync.sqlite",
    "bert_trt10/graph.sqlite",
    "bert_split_trt10/sync.nsys-rep",
)
REPORTS = (*KERNELS_ONLY, "torch_encoder/eager.nsys-rep")


@cache
def mapped(name: str) -> MappedTrace:
    return map_report(FIXTURES / name, [], reader="own")


@cache
def window_of(name: str) -> Window:
    window = steady_window(mapped(name).trace, mapped(name).inferences)
    assert isinstance(window, Window)
    return window


@cache
def timeline_of(name: str) -> Timeline:
    trace, window = mapped(name).trace, window_of(name)
    return read_timeline(
        trace,
        mapped(name).inferences,
        window,
        calibrate(trace, window),
        profiler_costs(trace, window),
        lambda kernels: np.full(len(kernels), np.nan),
    )


def inside(window: Window, moment: int) -> bool:
    return any(
        begin <= moment < end
        for begin, end in zip(window.begin_ns.tolist(), window.end_ns.tolist(), strict=True)
    )


def launched(trace: Trace, window: Window) -> list[dict[str, int]]:
    """The kernels of the window, with the call that launched each."""
    calls = trace.api_calls.ints("thread").tolist()
    names = (
        "kernel_id",
        "start_ns",
        "end_ns",
        "launch",
        "launch_start_ns",
        "launch_end_ns",
        "stream",
        "process",
        "device",
    )
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*(trace.kernels.ints(name).tolist() for name in names), strict=True)
    ]
    mine = [
        row
        for row in rows
        if row["launch"] >= 0 and (row["process"], row["device"]) == (window.process, window.device)
    ]
    return [
        row
        for row in mine
        if inside(window, row["launch_start_ns"]) and calls[row["launch"]] in window.threads
    ]


def neighbours(trace: Trace, window: Window) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Kernels that follow each other in a stream without a copy or memset between them."""
    assert not len(trace.memcpys)
    assert not len(trace.memsets)
    rows = sorted(launched(trace, window), key=lambda row: (row["stream"], row["start_ns"]))
    return [
        (a, b)
        for a, b in pairwise(rows)
        if a["stream"] == b["stream"] and b["start_ns"] >= a["end_ns"]
    ]


@pytest.mark.parametrize("name", KERNELS_ONLY)
def test_the_time_between_queued_kernels_is_the_median_over_those_that_were_queued_in_time(
    name: str,
) -> None:
    trace, window = mapped(name).trace, window_of(name)
    gaps = [
        b["start_ns"] - a["end_ns"]
        for a, b in neighbours(trace, window)
        if a["launch"] != b["launch"]
        and a["end_ns"] - b["launch_end_ns"] > 4_000
        and b["start_ns"] - a["end_ns"] < 20_000
    ]
    costs = calibrate(trace, window)
    assert costs.dispatch_ns == (round(median(gaps)) if len(gaps) >= 5 else 1_150)


@pytest.mark.parametrize("name", KERNELS_ONLY)
def test_nodes_of_one_graph_launch_have_a_time_of_their_own(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    gaps = [
        b["start_ns"] - a["end_ns"]
        for a, b in neighbours(trace, window)
        if a["launch"] == b["launch"]
    ]
    assert calibrate(trace, window).node_ns == (round(median(gaps)) if len(gaps) >= 5 else MISSING)


@pytest.mark.parametrize("name", REPORTS)
def test_a_launch_takes_what_the_window_s_launch_calls_took(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    calls = trace.api_calls
    for kind, cost, default in (
        ("launch", "submit_ns", 4_300),
        ("graph-launch", "graph_launch_ns", 10_000),
    ):
        took = [
            end - start
            for start, end, thread, what in zip(
                calls.ints("start_ns").tolist(), calls.ints("end_ns").tolist(),
                calls.ints("thread").tolist(), calls.text("kind").list(),
                strict=True,
            )
            if what == kind and thread in window.threads and inside(window, start)
        ]  # fmt: skip
        assert getattr(calibrate(trace, window), cost) == (
            round(median(took)) if len(took) >= 5 else default
        )


@pytest.mark.parametrize("name", REPORTS)
def test_every_kernel_of_the_window_is_one_piece_of_work_with_its_own_times(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    works = {work.row: work for work in all_works(timeline_of(name)) if work.kind == "kernel"}
    expected = {row["kernel_id"]: row for row in launched(trace, window)}
    begins = [
        int(mapped(name).inferences.ints("enqueue_start_ns")[own].min())
        for own in window.inferences
    ]
    late = {key for key, row in expected.items() if row["launch_start_ns"] >= min(begins)}
    assert late <= set(works) <= set(expected)
    assert len(late) > 50
    for key, work in works.items():
        assert (work.start_ns, work.end_ns, work.dur_ns) == (
            expected[key]["start_ns"], expected[key]["end_ns"],
            expected[key]["end_ns"] - expected[key]["start_ns"],
        )  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_no_part_of_a_thread_s_own_time_is_longer_than_it_and_all_fit_into_the_window(
    name: str,
) -> None:
    for step in all_steps(timeline_of(name)):
        assert 0 <= step.own_profiler_ns <= step.own_ns
        assert 0 <= step.outside_ns <= step.own_ns
        assert 0 <= step.call_profiler_ns <= max(step.call_ns, 0)
    window = window_of(name)
    if len(window.begin_ns) == 1:
        held = int(window.end_ns[0] - window.begin_ns[0])
        for steps in timeline_of(name).threads:
            assert sum(step.own_ns for step in steps) <= held


def test_a_graph_launch_holds_its_nodes_and_each_waits_for_what_ended_before_it() -> None:
    launches = [step for step in all_steps(timeline_of("bert_trt10/graph.sqlite")) if step.graph]
    assert len(launches) >= 8
    assert {len(step.works) for step in launches} == {56}
    for step in launches:
        ends = {work.number: work.end_ns for work in step.works}
        for work in step.works[1:]:
            assert work.after
            assert work.lead_ns == work.start_ns - max(
                ends[number] for number in work.after if number in ends
            )
            assert work.lead_ns >= 0


def test_a_wait_for_a_stream_is_a_wait_for_its_queue() -> None:
    waits = [
        step for step in all_steps(timeline_of("bert_trt10/sync.sqlite")) if step.kind == "sync"
    ]
    assert len(waits) >= 8
    queues = {work.queue for work in all_works(timeline_of("bert_trt10/sync.sqlite"))}
    assert {step.queue for step in waits} <= queues
    assert not any(step.works for step in waits)


def test_a_node_that_begins_before_the_end_of_the_one_before_it_waits_for_that_one() -> None:
    start = np.array([[0, 3_000, 6_700, 6_800]] * 3) + np.array([[0], [20_000], [40_000]])
    end = np.array([[3_100, 7_000, 9_000, 9_000]] * 3) + np.array([[0], [20_000], [40_000]])
    stream = np.array([[7, 7, 7, 8]] * 3)
    assert waited_for(start, end, stream, start[:, 0])[:3] == [(), (0,), (1,)]
    assert (
        1 not in waited_for(start, end, stream, start[:, 0])[3]
    )  # of another stream: it was still running
    # too much of an overlap for a launch before the end
    later = end + np.array([0, 0, 0, 0]) + 2_500 * (np.arange(4) == 0)
    assert waited_for(start, later, stream, start[:, 0])[1] == ()


def test_a_node_that_begins_as_the_launch_call_returns_waits_for_the_call_alone() -> None:
    # the second branch begins 2 us after the return, whenever that is: the GPU was idle
    returned = np.array([60_000, 71_000, 95_000])
    start = np.array([[10_000, 14_000, 0, 70_000]] * 3)
    start[:, 2] = returned + 2_000
    start[:, 3] = returned + 9_000
    end = start + 3_000
    stream = np.array([[7, 7, 8, 7]] * 3)
    assert waited_for(start, end, stream, returned)[:3] == [(), (0,), ()]
    assert waited_for(start, end, stream, returned)[3][-1] == 2
    # it begins long after the return, or soon after the end of another node
    assert waited_for(start, end, stream, start[:, 0])[2] == (1,)
    start[:, 2] = end[:, 1] + 1_000
    assert waited_for(start, start + 3_000, stream, start[:, 2] - 2_000)[2] == (1,)


def test_the_nodes_of_a_real_graph_with_early_launches_form_a_chain() -> None:
    timeline = timeline_of("real_trt/resnet50_b1-graph.nsys-rep")
    first = next(step for step in all_steps(timeline) if step.graph)
    early = [work for work in first.works if work.lead_ns < 0 and work.after]
    assert len(early) > 25
    assert all(len(work.after) == 1 and work.lead_ns > -2_000 for work in early)
    finished, wanted = (
        period_ns(timeline, ends) for ends in (replay(timeline), recorded(timeline))
    )
    assert finished == pytest.approx(wanted, rel=0.005)


@pytest.mark.parametrize(
    ("name", "early"),
    [
        ("real_trt/bert_eager-graph.nsys-rep", True),
        ("real_trt/llama-graph.nsys-rep", False),
        ("bert_trt10/graph.sqlite", False),
    ],
)
def test_a_graph_s_first_node_begins_within_its_launch_call_or_after_it_as_recorded(
    name: str, early: bool
) -> None:
    costs = timeline_of(name).costs
    assert (costs.graph_start_ns != MISSING) == early
    if early:
        assert 5_000 < costs.graph_start_ns < costs.graph_launch_ns


def test_a_kernel_may_begin_early_behind_a_convolution_if_it_is_launched_with_attributes() -> None:
    trace = mapped("real_trt/resnet50_b1-sync.nsys-rep").trace
    kernels = trace.kernels
    early = begins_early(trace, np.arange(len(kernels)))
    name, api = kernels.text("name").list(), trace.api_calls.text("api").list()
    before: dict[int, int] = {}
    overlaps = 0
    for row in np.lexsort((kernels.ints("launch"), kernels.ints("stream"))).tolist():
        stream = int(kernels.ints("stream")[row])
        if early[row]:
            assert api[int(kernels.ints("launch")[row])] == "cuLaunchKernelEx"
            overlaps += "convFwd" not in str(name[before[stream]])
        elif stream in before and "convFwd" in str(name[before[stream]]):
            assert api[int(kernels.ints("launch")[row])] == "cuLaunchKernel"
        before[stream] = row
    assert early.mean() > 0.5
    assert overlaps < early.sum() / 2
    assert not begins_early(mapped("bert_trt10/sync.sqlite").trace, np.arange(100)).any()


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("resnet50_b1-sync", True),  # cuDNN's convolutions, most of which overlap
        ("bert_eager-sync", False),  # products and Myelin's kernels: none does
    ],
)
def test_kernels_run_at_once_in_a_graph_only_where_they_overlap_by_more_than_is_recorded(
    name: str, some: bool
) -> None:
    trace = mapped(f"real_trt/{name}.nsys-rep").trace
    rows = np.arange(len(trace.kernels))
    early, at_once = begins_early(trace, rows), runs_at_once(trace, rows)
    assert not (at_once & ~early).any()
    assert at_once.any() == some


def test_kernels_that_were_queued_and_did_not_overlap_do_not_in_a_graph() -> None:
    """Behind convolutions of cuDNN's too: the trace shows it."""
    trace = mapped("real_trt/resnet50_b1-sync.nsys-rep").trace
    kernels = trace.kernels
    rows = np.arange(len(kernels))
    assert runs_at_once(trace, rows).any()  # the host was slow: none was queued
    for gap_ns, some in ((64, False), (-2 * MOVED_NS, True)):
        order = np.lexsort((kernels.ints("launch"), kernels.ints("stream")))
        end = kernels.ints("end_ns").copy()
        end[order[:-1]] = kernels.ints("start_ns")[order[1:]] - gap_ns
        queued = kernels.with_columns(kernels.spec, {"end_ns": end})
        assert runs_at_once(replace(trace, kernels=queued), rows).any() == some


@pytest.mark.parametrize(
    ("lags", "left"),
    [
        ([501, *[0] * 9], [501, *[0] * 9]),  # half of an inference longer than usual
        ([500, *[0] * 9], [0] * 10),
        ([501, 501, *[0] * 8], [0] * 10),  # of so many it is usual
        ([501, 100, *[0] * 8], [501, *[0] * 9]),
    ],
)
def test_waits_return_late_in_a_few_inferences_or_in_none(lags: list[int], left: list[int]) -> None:
    steps = [call("sync", at, lag_ns=lag) for at, lag in enumerate(lags)]
    other = call("submit", 10, lag_ns=70)
    ends = np.arange(11) * 1_000
    found = _with_late_waits([*steps, other], ends[::-1])
    assert [one.lag_ns for one in found] == [*left, 70]
    # without inferences nothing is usual
    alone = _with_late_waits([*steps], ends[:1])
    assert [one.lag_ns for one in alone] == [0] * 10


# --- a trace of a few rows
# ---


def of_rows(*, api: str = "cudaStreamSynchronize", return_ns: int = 60) -> Timeline:
    """Two inferences of one thread: each launches a kernel, and waits for it."""
    calls = [
        ("cudaLaunchKernel", "launch", 1_000, 1_100),
        (api, "sync", 1_200, 1_900),
        ("cudaLaunchKernel", "launch", 2_500, 2_600),
        (api, "sync", 2_700, 3_400),
    ]
    made = [
        {"api": name, "kind": kind, "process": 1, "thread": 7, "start_ns": start, "end_ns": end}
        for name, kind, start, end in calls
    ]
    kernels = [
        {"kernel_id": at, "name": "k", "process": 1, "device": 0, "stream": 13, "launch": 2 * at,
         "launch_start_ns": calls[2 * at][2], "start_ns": start, "end_ns": end}
        for at, (start, end) in enumerate(((1_150, 1_800), (2_650, 3_300)))
    ]  # fmt: skip
    trace = replace(
        empty(),
        api_calls=Table.of_rows(API_CALLS, made),
        kernels=Table.of_rows(GPU_KERNELS, kernels),
        syncs=Table.of_rows(SYNCS, [{"launch": at, "stream": 13} for at in (1, 3)]),
        nvtx_ranges=Table.of_rows(
            NVTX_RANGES, [{"process": 1, "thread": 7, "start_ns": 2_000, "end_ns": 2_010}]
        ),
        overheads=Table.of_rows(
            OVERHEADS, [{"thread": 7, "name": "flush", "start_ns": 2_100, "end_ns": 2_300}]
        ),
    )
    inferences = [
        {"inference": at, "process": 1, "thread": 7, "device": 0, "enqueue_start_ns": start,
         "enqueue_end_ns": end, "gpu_end_ns": gpu_end}
        for at, (start, end, gpu_end) in enumerate(((1_000, 1_150, 1_800), (2_400, 2_650, 3_300)))
    ]  # fmt: skip
    window = replace(stretches(), begin_ns=np.array([0]), end_ns=np.array([10_000]))
    return read_timeline(
        trace,
        Table.of_rows(INFERENCES, inferences),
        window,
        replace(COSTS, return_ns=return_ns),
        ProfilerCosts(own_calls=True, call_ns=50, edge_ns=30, range_ns=7),
        lambda rows: np.full(len(rows), np.nan),
    )


def test_each_call_is_a_step_with_what_the_thread_did_before_it() -> None:
    (steps,) = of_rows().threads
    assert [
        (one.kind, one.inference, one.enqueue, one.own_ns, one.own_profiler_ns, one.outside_ns)
        for one in steps
    ] == [
        ("submit", 0, True, 0, 0, 0),
        ("sync", 0, False, 100, 30, 50),
        ("submit", 1, True, 600, 2 * 7 + 30 + 200, 500),  # a range, an edge, and the flush
        ("sync", 1, False, 100, 30, 50),
    ]
    assert [(one.call_ns, one.call_profiler_ns) for one in steps] == [(100, 50), (400, 0)] * 2
    assert [one.queue for one in steps] == [0] * 4
    assert [(one.lag_ns, one.target, one.graph) for one in steps] == [(0, MISSING, False)] * 4
    assert [
        (one.number, one.row, one.kind, one.queue, one.start_ns, one.end_ns, one.dur_ns)
        for one in all_works(of_rows())
    ] == [(0, 0, "kernel", 0, 1_150, 1_800, 650), (1, 1, "kernel", 0, 2_650, 3_300, 650)]
    assert {(one.lead_ns, one.after, one.need, one.pinned) for one in all_works(of_rows())} == {
        (0, (), 1.0, 1.0)
    }
    assert not any(one.early or one.at_once or one.submitted for one in all_works(of_rows()))


def test_a_wait_is_for_an_event_for_a_stream_or_for_all() -> None:
    events = [one for one in all_steps(of_rows(api="cudaEventSynchronize")) if one.kind == "sync"]
    assert [(one.queue, one.target) for one in events] == [(ALL_QUEUES, 0), (ALL_QUEUES, 1)]
    device = [one for one in all_steps(of_rows(api="cudaDeviceSynchronize")) if one.kind == "sync"]
    assert [(one.queue, one.target) for one in device] == [(ALL_QUEUES, MISSING)] * 2
