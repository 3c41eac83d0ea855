"""What is read off a trace for the replay, held against plain loops over its rows: costs, and the steps of the host's threads."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from statistics import median

import numpy as np
import pytest

from nsysmap.mapping.mapped_trace import MappedTrace, map_report
from nsysmap.trace.model import Trace
from nsysmap.whatif.calibration import calibrate
from nsysmap.whatif.profiler import profiler_costs
from nsysmap.whatif.read_timeline import read_timeline
from nsysmap.whatif.timeline import Timeline, all_steps, all_works
from nsysmap.whatif.window import Window, steady_window
from tests.places import FIXTURES

KERNELS_ONLY = ("bert_trt10/sync.sqlite", "bert_trt10/graph.sqlite", "bert_split_trt10/sync.nsys-rep")
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
    costs = calibrate(trace, window), profiler_costs(trace, window)
    return read_timeline(trace, mapped(name).inferences, window, costs, lambda kernels: np.full(len(kernels), np.nan))


def inside(window: Window, moment: int) -> bool:
    return any(begin <= moment < end for begin, end in zip(window.begin_ns.tolist(), window.end_ns.tolist(), strict=True))


def launched(trace: Trace, window: Window) -> list[dict[str, int]]:
    """The kernels of the window, with the call that launched each."""
    calls = trace.api_calls.ints("thread").tolist()
    names = ("kernel_id", "start_ns", "end_ns", "launch", "launch_start_ns", "launch_end_ns", "stream", "process", "device")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(trace.kernels.ints(name).tolist() for name in names), strict=True)]
    mine = [row for row in rows if row["launch"] >= 0 and (row["process"], row["device"]) == (window.process, window.device)]
    return [row for row in mine if inside(window, row["launch_start_ns"]) and calls[row["launch"]] in window.threads]


def neighbours(trace: Trace, window: Window) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Kernels that follow each other in a stream without a copy or memset between them."""
    assert not len(trace.memcpys)
    assert not len(trace.memsets)
    rows = sorted(launched(trace, window), key=lambda row: (row["stream"], row["start_ns"]))
    return [(a, b) for a, b in pairwise(rows) if a["stream"] == b["stream"] and b["start_ns"] >= a["end_ns"]]


@pytest.mark.parametrize("name", KERNELS_ONLY)
def test_the_time_between_queued_kernels_is_the_median_over_those_that_were_queued_in_time(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    gaps = [
        b["start_ns"] - a["end_ns"]
        for a, b in neighbours(trace, window)
        if a["launch"] != b["launch"] and a["end_ns"] - b["launch_end_ns"] > 4_000 and b["start_ns"] - a["end_ns"] < 20_000
    ]
    costs = calibrate(trace, window)
    assert costs.dispatch_ns == (round(median(gaps)) if len(gaps) >= 5 else 1_050)


@pytest.mark.parametrize("name", KERNELS_ONLY)
def test_nodes_of_one_graph_launch_have_a_time_of_their_own(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    gaps = [b["start_ns"] - a["end_ns"] for a, b in neighbours(trace, window) if a["launch"] == b["launch"]]
    assert calibrate(trace, window).node_ns == (round(median(gaps)) if len(gaps) >= 5 else 280)


@pytest.mark.parametrize("name", REPORTS)
def test_a_launch_takes_what_the_window_s_launch_calls_took(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    calls = trace.api_calls
    for kind, cost, default in (("launch", "submit_ns", 4_300), ("graph-launch", "graph_launch_ns", 10_000)):
        took = [
            end - start
            for start, end, thread, what in zip(
                calls.ints("start_ns").tolist(), calls.ints("end_ns").tolist(), calls.ints("thread").tolist(), calls.text("kind").list(),
                strict=True,
            )
            if what == kind and thread in window.threads and inside(window, start)
        ]  # fmt: skip
        assert getattr(calibrate(trace, window), cost) == (round(median(took)) if len(took) >= 5 else default)


@pytest.mark.parametrize("name", REPORTS)
def test_every_kernel_of_the_window_is_one_piece_of_work_with_its_own_times(name: str) -> None:
    trace, window = mapped(name).trace, window_of(name)
    works = {work.row: work for work in all_works(timeline_of(name)) if work.kind == "kernel"}
    expected = {row["kernel_id"]: row for row in launched(trace, window)}
    begins = [int(mapped(name).inferences.ints("enqueue_start_ns")[own].min()) for own in window.inferences]
    late = {key for key, row in expected.items() if row["launch_start_ns"] >= min(begins)}
    assert late <= set(works) <= set(expected)
    assert len(late) > 50
    for key, work in works.items():
        assert (work.start_ns, work.end_ns, work.dur_ns) == (
            expected[key]["start_ns"], expected[key]["end_ns"], expected[key]["end_ns"] - expected[key]["start_ns"],
        )  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_no_part_of_a_thread_s_own_time_is_longer_than_it_and_all_fit_into_the_window(name: str) -> None:
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
            assert work.lead_ns == work.start_ns - max(ends[number] for number in work.after if number in ends)
            assert work.lead_ns >= 0


def test_a_wait_for_a_stream_is_a_wait_for_its_queue() -> None:
    waits = [step for step in all_steps(timeline_of("bert_trt10/sync.sqlite")) if step.kind == "sync"]
    assert len(waits) >= 8
    queues = {work.queue for work in all_works(timeline_of("bert_trt10/sync.sqlite"))}
    assert {step.queue for step in waits} <= queues
    assert not any(step.works for step in waits)
