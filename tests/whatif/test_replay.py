"""The replay of programs so simple that the answer can be worked out by hand, and what holds for all programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.base.table import MISSING
from nsysmap.whatif.changes import (
    DoesNotApply,
    as_cuda_graph,
    outside_ns,
    two_in_flight,
    with_joined_kernels,
    with_pinned_copies,
    without_host_gap,
    without_kernels,
)
from nsysmap.whatif.replay import period_ns, replay
from nsysmap.whatif.timeline import ALL_QUEUES, Costs, Step, StepKind, Timeline, Work, WorkKind

LATENCY, DISPATCH, RETURN, GRAPH = 2_000, 1_000, 2_500, 1_700
COSTS = Costs(
    latency_ns=LATENCY,
    graph_latency_ns=LATENCY,
    dispatch_ns=DISPATCH,
    to_copy_ns=4_500,
    from_copy_ns=1_700,
    node_ns=500,
    return_ns=RETURN,
    idle_sync_ns=400,
    submit_ns=3_400,
    graph_launch_ns=GRAPH,
)
COPY_NS, STAGING_NS = 20_000, 70_000


def work(number: int, dur_ns: int, kind: WorkKind = "kernel", queue: int = 0) -> Work:
    start = 1_000_000 * number
    row = number if kind == "kernel" else MISSING
    return Work(number, row, kind, queue, start, start + dur_ns, dur_ns, lead_ns=0, after=MISSING, fill=0.1)


def step(kind: StepKind, inference: int, **fields: object) -> Step:
    plain = Step(
        kind=kind, api="", inference=inference, enqueue=kind == "submit", own_ns=0, own_profiler_ns=0, outside_ns=0, call_ns=0,
        call_profiler_ns=0, lag_ns=0, queue=0, target=MISSING, graph=False, works=(),
    )  # fmt: skip
    return plain._replace(**fields)  # type: ignore[arg-type]


def program(
    *, kernels: list[int], call_ns: int = 3_000, inferences: int = 8, host_ns: int = 0, copies: bool = False, wait: bool = True
) -> Timeline:
    """One thread that launches these kernels, waits, and does its own work before the next inference."""
    steps: list[Step] = []
    number = 0
    for inference in range(inferences):
        own = host_ns
        if copies:
            number += 1
            before = max(inference - 1, 0)
            steps.append(
                step(
                    "block",
                    before,
                    call_ns=STAGING_NS,
                    lag_ns=STAGING_NS,
                    own_ns=own,
                    outside_ns=own,
                    works=(work(number, COPY_NS, "HtoD"),),
                )
            )
            own = 0
        for dur_ns in kernels:
            number += 1
            steps.append(step("submit", inference, call_ns=call_ns, own_ns=own, outside_ns=own, works=(work(number, dur_ns),)))
            own = 0
        if wait:
            steps.append(step("sync", inference, call_ns=400))
        if copies:
            number += 1
            steps.append(step("block", inference, call_ns=STAGING_NS, lag_ns=1_000, works=(work(number, COPY_NS, "DtoH"),)))
            steps.append(step("sync", inference, call_ns=400, queue=ALL_QUEUES))
    return Timeline((tuple(steps),), COSTS, exclusive=False)


def period(timeline: Timeline | DoesNotApply) -> int:
    assert isinstance(timeline, Timeline)
    return round(period_ns(replay(timeline)))


# --- worked out by hand ---------------------------------------------------------------------------------------------


def test_short_kernels_take_as_long_as_their_launches_and_the_way_to_the_gpu_and_back() -> None:
    assert period(program(kernels=[1_000] * 10)) == 10 * 3_000 + LATENCY + 1_000 + RETURN


def test_long_kernels_follow_each_other_at_the_dispatch_gap() -> None:
    assert period(program(kernels=[20_000] * 10)) == 3_000 + LATENCY + 10 * 20_000 + 9 * DISPATCH + RETURN


def test_without_a_wait_the_gpu_never_idles_between_inferences() -> None:
    assert period(program(kernels=[20_000] * 10, wait=False)) == 10 * (20_000 + DISPATCH)


def test_a_graph_costs_one_launch_and_the_node_gap() -> None:
    assert period(as_cuda_graph(program(kernels=[1_000] * 10))) == GRAPH + LATENCY + 10 * 1_000 + 9 * 500 + RETURN


def test_a_graph_spares_the_host_s_work_inside_the_enqueue_but_not_outside() -> None:
    timeline = program(kernels=[1_000] * 10, host_ns=50_000)
    assert period(as_cuda_graph(timeline)) == 50_000 + GRAPH + LATENCY + 10 * 1_000 + 9 * 500 + RETURN


def test_host_work_between_inferences_is_paid_in_full_and_its_removal_saves_it() -> None:
    timeline = program(kernels=[20_000] * 10, host_ns=800_000)
    assert outside_ns(timeline) == 800_000
    assert period(timeline) - period(without_host_gap(timeline)) == 800_000


def test_pinned_copies_leave_their_time_on_the_bus_and_one_wait() -> None:
    timeline = program(kernels=[20_000] * 10, copies=True)
    on_gpu = 2 * COPY_NS + COSTS.from_copy_ns + COSTS.to_copy_ns + 10 * 20_000 + 9 * DISPATCH
    assert period(with_pinned_copies(timeline)) == COSTS.submit_ns + LATENCY + on_gpu + RETURN
    assert period(timeline) > period(with_pinned_copies(timeline)) + 2 * (STAGING_NS - COPY_NS)


def test_two_in_flight_share_the_gpu_where_their_kernels_exclude_each_other() -> None:
    timeline = program(kernels=[20_000] * 10)
    assert period(two_in_flight(timeline, contention=1.0, overlap=True)) == pytest.approx(period(timeline) / 2, rel=0.01)
    assert period(two_in_flight(timeline, contention=1.0, overlap=False)) >= 10 * 20_000


def test_a_dropped_kernel_saves_its_time_and_its_gap_on_a_busy_gpu_and_its_launch_on_an_idle_one() -> None:
    for dur_ns, saved in ((20_000, 20_000 + DISPATCH), (1_000, 3_000)):
        timeline = program(kernels=[dur_ns] * 10)
        second = frozenset(range(2, 200, 10))
        assert period(timeline) - period(without_kernels(timeline, second)) == saved


def test_joined_kernels_become_one_launch_with_the_time_they_are_given() -> None:
    timeline = program(kernels=[20_000] * 10)
    runs = [(first, first + 1, first + 2) for first in range(2, 80, 10)]
    joined = with_joined_kernels(timeline, runs, lambda durations: sum(durations) - 5_000)
    assert period(timeline) - period(joined) == 5_000 + 2 * DISPATCH


# --- what a change refuses ------------------------------------------------------------------------------------------


def test_a_graph_cannot_be_captured_across_a_synchronisation_inside_the_enqueue() -> None:
    timeline = program(kernels=[1_000] * 3)
    first, *others = timeline.threads[0]
    wait = step("sync", 0, enqueue=True, api="cudaStreamSynchronize")
    answer = as_cuda_graph(replace(timeline, threads=((first, wait, *others),)))
    assert isinstance(answer, DoesNotApply)
    assert "cudaStreamSynchronize" in answer.reason


def test_the_wait_at_the_end_of_a_blocking_execute_follows_the_graph_launch() -> None:
    timeline = program(kernels=[1_000] * 10)
    steps = tuple(each._replace(enqueue=True) for each in timeline.threads[0])
    assert period(as_cuda_graph(replace(timeline, threads=(steps,)))) == period(as_cuda_graph(timeline))


def test_what_is_a_graph_already_is_not_made_one() -> None:
    graph = as_cuda_graph(program(kernels=[1_000] * 3))
    assert isinstance(graph, Timeline)
    assert isinstance(as_cuda_graph(graph), DoesNotApply)


def test_a_program_without_copies_has_none_to_pin() -> None:
    assert isinstance(with_pinned_copies(program(kernels=[1_000])), DoesNotApply)


def test_threads_with_streams_of_their_own_are_in_flight_together_already() -> None:
    changed = two_in_flight(program(kernels=[1_000] * 3), contention=1.0, overlap=True)
    assert isinstance(changed, Timeline)
    assert isinstance(two_in_flight(changed, contention=1.0, overlap=True), DoesNotApply)


# --- what holds for every program -----------------------------------------------------------------------------------

_programs = st.builds(
    program,
    kernels=st.lists(st.integers(500, 30_000), min_size=1, max_size=6),
    call_ns=st.integers(1_000, 9_000),
    inferences=st.integers(2, 5),
    host_ns=st.integers(0, 40_000),
    copies=st.booleans(),
)


@given(_programs)
def test_an_inference_takes_at_least_its_gpu_work_and_at_least_its_host_time(timeline: Timeline) -> None:
    inferences = 1 + max(each.inference for each in timeline.threads[0])
    gpu = sum(work.dur_ns for each in timeline.threads[0] for work in each.works)
    host = sum(each.own_ns + (each.call_ns if each.kind == "submit" else 0) for each in timeline.threads[0])
    assert period(timeline) >= gpu // inferences - 1
    assert period(timeline) >= host // inferences - 1


@given(_programs, st.integers(0, 20))
def test_less_work_never_takes_longer(timeline: Timeline, number: int) -> None:
    assert period(without_kernels(timeline, frozenset([]))) == period(timeline)
    assert period(without_host_gap(timeline)) <= period(timeline)
    kernels = [work.row for each in timeline.threads[0] for work in each.works if each.inference == 0 and work.row != MISSING]
    run = tuple(kernels[number % len(kernels) :][:2])
    shorter = with_joined_kernels(timeline, [run], max)
    assert isinstance(shorter, Timeline)
    assert max(replay(shorter)[0].values()) <= max(replay(timeline)[0].values())


@given(_programs)
def test_every_piece_of_gpu_work_survives_a_change_that_drops_none(timeline: Timeline) -> None:
    def rows(changed: Timeline | DoesNotApply) -> list[int]:
        if isinstance(changed, DoesNotApply):
            return numbers
        return sorted(each.number for steps in changed.threads for step in steps for each in step.works)

    numbers = sorted(each.number for step in timeline.threads[0] for each in step.works)
    assert rows(as_cuda_graph(timeline)) == numbers
    assert rows(with_pinned_copies(timeline)) == numbers
    assert rows(without_host_gap(timeline)) == numbers
    assert len(rows(two_in_flight(timeline, contention=1.0, overlap=True))) == 2 * len(numbers)


@given(_programs)
def test_the_same_timeline_always_gives_the_same_replay(timeline: Timeline) -> None:
    assert replay(timeline) == replay(timeline)
