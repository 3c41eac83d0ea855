"""The replay of programs so simple that the answer can be worked out by hand, and what holds for
all programs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING
from nsysmap.whatif.changes import (
    BESIDE_NS,
    Changed,
    DoesNotApply,
    as_cuda_graph,
    as_one_graph,
    on_one_stream,
    on_own_sms,
    outside_ns,
    two_in_flight,
    with_joined_kernels,
    with_pinned_copies,
    without_host_gap,
    without_kernels,
    without_waits,
)
from nsysmap.whatif.profiler import LIKELY, ProfilerCosts, unprofiled
from nsysmap.whatif.replay import lengths_ns, period_ns, replay
from nsysmap.whatif.throughput import least_ns, phases_in_flight, phases_of
from nsysmap.whatif.timeline import (
    ALL_QUEUES,
    Costs,
    Step,
    StepKind,
    Timeline,
    Work,
    WorkKind,
    all_steps,
    each_step,
)

LATENCY, DISPATCH, RETURN, GRAPH = 2_000, 1_000, 2_500, 1_700
COSTS = Costs(
    latency_ns=LATENCY,
    graph_latency_ns=LATENCY,
    graph_start_ns=MISSING,
    dispatch_ns=DISPATCH,
    early_ns=MISSING,
    to_copy_ns=4_500,
    from_copy_ns=1_700,
    node_ns=500,
    made_node_ns=500,
    wider_node_ns=0,
    early_node_ns=-400,
    to_memset_ns=900,
    from_memset_ns=3_000,
    crossing_ns=300,
    return_ns=RETURN,
    restart_ns=0,
    idle_sync_ns=400,
    submit_ns=3_400,
    graph_launch_ns=GRAPH,
)
COPY_NS, STAGING_NS = 20_000, 70_000


def work(
    number: int,
    dur_ns: int,
    kind: WorkKind = "kernel",
    *,
    queue: int = 0,
    need: float = 0.1,
    after: tuple[int, ...] = (),
) -> Work:
    start = 1_000_000 * number
    row = number if kind == "kernel" else MISSING
    return Work(
        number,
        row,
        kind,
        queue,
        start,
        start + dur_ns,
        dur_ns,
        lead_ns=0,
        after=after,
        need=need,
        most_need=need,
    )


def step(kind: StepKind, inference: int, **fields: object) -> Step:
    plain = Step(
        kind=kind, api="", inference=inference, enqueue=kind == "submit", own_ns=0,
        own_profiler_ns=0, outside_ns=0, call_ns=0,
        call_profiler_ns=0, lag_ns=0, queue=0, target=MISSING, graph=False, works=(),
    )  # fmt: skip
    return plain._replace(**fields)  # type: ignore[arg-type]


def program(
    *,
    kernels: list[int],
    call_ns: int = 3_000,
    inferences: int = 8,
    host_ns: int = 0,
    copies: bool = False,
    need: float = 0.1,
) -> Timeline:
    """One thread that launches these kernels, waits, and does its own work before the next
    inference.
    """
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
            steps.append(
                step(
                    "submit",
                    inference,
                    call_ns=call_ns,
                    own_ns=own,
                    outside_ns=own,
                    works=(work(number, dur_ns, need=need),),
                )
            )
            own = 0
        steps.append(step("sync", inference, call_ns=400))
        if copies:
            number += 1
            steps.append(
                step(
                    "block",
                    inference,
                    call_ns=STAGING_NS,
                    lag_ns=1_000,
                    works=(work(number, COPY_NS, "DtoH"),),
                )
            )
            steps.append(step("sync", inference, call_ns=400, queue=ALL_QUEUES))
    return Timeline((tuple(steps),), COSTS, (dict.fromkeys(range(1, inferences), 1.0),))


def branching(
    *, one_ns: int = 20_000, other_ns: int = 15_000, need: float = 0.1, inferences: int = 8
) -> Timeline:
    """One thread; each inference forks into two streams after its first kernel and joins them
    before its last.
    """
    steps: list[Step] = []
    for inference in range(inferences):
        first = 4 * inference
        works = (
            work(first, 5_000),
            work(first + 1, one_ns, need=need),
            work(first + 2, other_ns, queue=1, need=need, after=(first,)),
            work(first + 3, 5_000, after=(first + 2,)),
        )
        for place, each in enumerate(works):
            if place in (1, 3):
                steps += [
                    step("event", inference, enqueue=True, call_ns=500),
                    step("event", inference, enqueue=True, call_ns=500),
                ]
            steps.append(step("submit", inference, call_ns=1_000, works=(each,)))
        steps.append(step("sync", inference, call_ns=400))
    return Timeline((tuple(steps),), COSTS, (dict.fromkeys(range(1, inferences), 1.0),))


def period(timeline: Changed) -> int:
    assert isinstance(timeline, Timeline)
    return round(period_ns(timeline, replay(timeline)))


def graph(timeline: Timeline) -> Timeline:
    changed = as_cuda_graph(timeline, branches_ns=0)
    assert isinstance(changed, Timeline)
    return changed


# --- worked out by hand
# ---------------------------------------------------------------------------------------------


def test_short_kernels_take_as_long_as_their_launches_and_the_way_to_the_gpu_and_back() -> None:
    assert period(program(kernels=[1_000] * 10)) == 10 * 3_000 + LATENCY + 1_000 + RETURN


def test_long_kernels_follow_each_other_at_the_dispatch_gap() -> None:
    assert (
        period(program(kernels=[20_000] * 10))
        == 3_000 + LATENCY + 10 * 20_000 + 9 * DISPATCH + RETURN
    )


def test_without_a_wait_the_gpu_never_idles_between_inferences() -> None:
    assert period(without_waits(program(kernels=[20_000] * 10))) == 10 * (20_000 + DISPATCH)


def test_a_graph_costs_one_launch_and_the_node_gap() -> None:
    assert (
        period(graph(program(kernels=[1_000] * 10)))
        == GRAPH + LATENCY + 10 * 1_000 + 9 * 500 + RETURN
    )


@pytest.mark.parametrize(
    ("kinds", "early", "gaps"),
    [
        (("kernel", "kernel"), False, [500]),
        (("kernel", "memset", "kernel"), False, [900, 3_000]),
        (("kernel", "kernel"), True, [-400]),  # a kernel behind one that lets it begin early
    ],
)
def test_what_lies_between_two_nodes_of_a_graph_depends_on_what_they_are(
    kinds: tuple[WorkKind, ...], early: bool, gaps: list[int]
) -> None:
    works = [
        work(number, 5_000, kind)._replace(early=early, at_once=early)
        for number, kind in enumerate(kinds)
    ]
    steps = tuple(
        step("submit", inference, works=(each,)) for inference in range(2) for each in works
    )
    placed: list[tuple[Work, int, int]] = []
    replay(graph(Timeline((steps,), COSTS, ({1: 1.0},))), placed=placed)
    assert [after[1] - before[2] for before, after in pairwise(placed[: len(kinds)])] == gaps


def test_a_graph_s_first_node_begins_where_its_launch_call_began_if_the_trace_shows_that() -> None:
    launch = step("submit", 0, graph=True, call_ns=50_000, works=(work(0, 5_000),))
    for start_ns, begin in ((MISSING, 50_000 + LATENCY), (12_000, 12_000)):
        placed: list[tuple[Work, int, int]] = []
        replay(
            Timeline(((launch,),), replace(COSTS, graph_start_ns=start_ns), ({},)), placed=placed
        )
        assert placed[0][1] == begin


def test_a_graph_spares_the_host_s_work_inside_the_enqueue_but_not_outside() -> None:
    timeline = program(kernels=[1_000] * 10, host_ns=50_000)
    assert period(graph(timeline)) == 50_000 + GRAPH + LATENCY + 10 * 1_000 + 9 * 500 + RETURN


def test_a_graph_spares_what_the_host_does_within_an_enqueue_and_keeps_what_lies_outside() -> None:
    steps = []
    for inference in range(3):
        steps += [
            step(
                "submit",
                inference,
                own_ns=7_000,
                outside_ns=1_000 if number == 0 else 0,
                works=(work(2 * inference + number, 5_000),),
            )
            for number in range(2)
        ]
        steps.append(step("sync", inference, own_ns=900, outside_ns=300))
    changed = graph(Timeline((tuple(steps),), COSTS, (dict.fromkeys(range(1, 3), 1.0),)))
    assert [(one.kind, one.own_ns) for one in changed.threads[0]] == [
        ("submit", 1_000),
        ("sync", 300),
    ] * 3


def passes(*, host_ns: int, waits: bool = True, number: int = 8) -> Timeline:
    """Passes of two inferences of five kernels of 1 µs each, the host's own work and a kernel of 2
    µs after each.
    """
    steps: list[Step] = []
    launched = 0
    for inference in range(2 * number):
        for kernel in range(6):
            launched += 1
            between = kernel == 5
            works = (work(launched, 2_000 if between else 1_000),)
            own = host_ns if between else 0
            steps.append(
                step(
                    "submit",
                    inference,
                    enqueue=not between,
                    call_ns=3_000,
                    own_ns=own,
                    outside_ns=own,
                    works=works,
                )
            )
        if waits and inference % 2:
            steps.append(step("sync", inference, call_ns=400))
    return Timeline((tuple(steps),), COSTS, (dict.fromkeys(range(2, 2 * number), 1.0),))


@pytest.mark.parametrize("host_ns", [0, 50_000])
def test_one_graph_spares_the_host_s_work_between_the_inferences_that_it_holds_too(
    host_ns: int,
) -> None:
    timeline = passes(host_ns=host_ns)
    one = as_one_graph(timeline, a_pass=2, branches_ns=0)
    assert isinstance(one, Timeline)
    assert 2 * period(one) == GRAPH + LATENCY + 10 * 1_000 + 2 * 2_000 + 11 * 500 + RETURN
    assert sum(each.call_ns > 0 for each in one.threads[0] if each.graph) == 8
    assert {work.number for each in one.threads[0] for work in each.works} == set(range(1, 97))
    if host_ns:
        assert 2 * period(graph(timeline)) > 2 * host_ns


def test_one_graph_of_a_host_that_never_waits_is_of_one_pass() -> None:
    one = as_one_graph(passes(host_ns=50_000, waits=False), a_pass=2, branches_ns=0)
    assert isinstance(one, Timeline)
    assert sum(each.call_ns > 0 for each in one.threads[0]) == 8


def test_one_graph_is_nothing_else_than_a_graph_of_each_where_nothing_is_launched_between() -> None:
    timeline = program(kernels=[1_000] * 3, host_ns=50_000)
    answer = as_one_graph(timeline, a_pass=1, branches_ns=0)
    assert isinstance(answer, DoesNotApply)
    assert "cuda-graph" in answer.reason


def test_host_work_between_inferences_is_paid_in_full_and_its_removal_saves_it() -> None:
    timeline = program(kernels=[20_000] * 10, host_ns=800_000)
    assert outside_ns(timeline) == 800_000
    assert period(timeline) - period(without_host_gap(timeline)) == 800_000
    (first, *others), weights = timeline.threads[0], {**timeline.weights[0], 1: 3.0}
    assert first.inference not in weights
    paused = replace(
        timeline, threads=((first._replace(outside_ns=10**9), *others),), weights=(weights,)
    )
    assert outside_ns(paused) == 800_000  # a pause before one that does not count is in no mean
    *earlier, last = timeline.threads[0]
    assert not last.enqueue
    trailing = replace(timeline, threads=((*earlier, last._replace(outside_ns=10**9)),))
    # nor one after the last of a stretch, which is of the next one's time
    assert outside_ns(trailing) == 800_000
    between = tuple(
        step._replace(outside_ns=70_000) if step.inference == 2 and not step.enqueue else step
        for step in timeline.threads[0]
    )
    assert outside_ns(replace(timeline, threads=(between,), weights=({3: 1.0},))) == 870_000
    longer = tuple(
        step._replace(outside_ns=2 * step.outside_ns) if step.inference == 1 else step
        for step in others
    )
    assert outside_ns(replace(paused, threads=((first, *longer),))) == pytest.approx(
        800_000 * (1 + 3 / sum(weights.values()))
    )


def test_pinned_copies_leave_their_time_on_the_bus_and_one_wait() -> None:
    timeline = program(kernels=[20_000] * 10, copies=True)
    on_gpu = 2 * COPY_NS + COSTS.from_copy_ns + COSTS.to_copy_ns + 10 * 20_000 + 9 * DISPATCH
    assert period(with_pinned_copies(timeline)) == COSTS.submit_ns + LATENCY + on_gpu + RETURN
    assert period(timeline) > period(with_pinned_copies(timeline)) + 2 * (STAGING_NS - COPY_NS)


def test_two_in_flight_run_at_once_where_their_kernels_leave_room_for_each_other() -> None:
    timeline = program(kernels=[20_000] * 10)
    changed = two_in_flight(timeline, locked=0)
    assert isinstance(changed, Timeline)
    beside = replace(timeline, costs=changed.costs)
    assert changed.costs.dispatch_ns == DISPATCH + BESIDE_NS
    assert period(changed) == pytest.approx(period(beside) / 2, rel=0.01)


@pytest.mark.parametrize("need", [0.6, 0.8, 1.0])
def test_two_in_flight_do_no_more_work_than_the_gpu_has_room_for(need: float) -> None:
    timeline = program(kernels=[20_000] * 10, need=need, inferences=30)
    assert period(two_in_flight(timeline, locked=0)) >= round(0.98 * 10 * 20_000 * need)
    assert period(two_in_flight(timeline, locked=0)) < period(timeline)


def least_now(changed: Changed, timeline: Timeline) -> float:
    assert isinstance(changed, Timeline)
    phases = phases_of(timeline, replay(timeline))
    return least_ns(changed, len(timeline.threads), phases)


def test_what_the_gpu_needs_is_its_kernels_by_the_share_that_they_take_or_its_copies_in_one_direction() -> (  # noqa: E501
    None
):
    few, copied = program(kernels=[20_000, 5_000], need=0.4), program(kernels=[1_000], copies=True)
    for timeline, needed in ((few, 0.4 * 25_000), (copied, COPY_NS)):
        assert least_now(timeline, timeline) == pytest.approx(needed)
        # of one inference, however many run
        assert least_now(two_in_flight(timeline, locked=0), timeline) == pytest.approx(needed)


def test_copies_of_one_phase_do_not_hide_behind_kernels_of_another() -> None:
    """A run of kernels only, then one of copies: as one run, both would fit into the time of the
    longer.
    """
    kernels, copies = (
        program(kernels=[COPY_NS], need=1.0, inferences=12),
        program(kernels=[100], copies=True, inferences=12),
    )
    later = tuple(
        step._replace(
            inference=step.inference + 12,
            works=tuple(work._replace(number=work.number + 1_000) for work in step.works),
        )
        for step in copies.threads[0]
    )
    weights = {
        **kernels.weights[0],
        **{one + 12: weight for one, weight in copies.weights[0].items()},
    }
    both = replace(kernels, threads=((*kernels.threads[0], *later),), weights=(weights,))
    assert least_now(both, both) == pytest.approx(COPY_NS / 2, rel=0.01)
    apart = replace(both, phases=({one: int(one >= 12) for one in range(24)},))
    assert least_now(apart, apart) == pytest.approx(COPY_NS, rel=0.01)


def test_a_phase_with_two_in_flight_takes_as_long_as_it_does() -> None:
    timeline = program(kernels=[20_000] * 4, need=0.1, inferences=12)
    assert phases_in_flight(phases_of(timeline, replay(timeline))) == 0.0
    begun = tuple(
        step._replace(
            works=tuple(
                work._replace(
                    start_ns=step.inference * 50_000, end_ns=step.inference * 50_000 + 90_000
                )
                for work in step.works
            )
        )
        for step in timeline.threads[0]
    )
    ahead = replace(timeline, threads=(begun,))
    assert phases_in_flight(phases_of(ahead, replay(ahead))) == 1.0
    assert least_now(two_in_flight(ahead, locked=0), ahead) == pytest.approx(
        period(ahead), rel=0.01
    )


def test_a_kernel_keeps_its_sms_from_the_other_thread_only() -> None:
    timeline = each_step(
        program(kernels=[20_000] * 10, need=0.1, inferences=30),
        lambda step: step._replace(works=tuple(w._replace(sms=0.8) for w in step.works)),
    )
    shared, kept = (
        period(two_in_flight(one, locked=0)) for one in (timeline, on_own_sms(timeline))
    )
    assert shared < 0.7 * period(timeline)
    assert kept == pytest.approx(0.8 * 200_000, rel=0.05)
    beside = each_step(
        timeline,
        lambda step: step._replace(works=tuple(w._replace(queue=w.number % 2) for w in step.works)),
    )
    two = two_in_flight(on_own_sms(beside), locked=0)
    assert isinstance(two, Timeline)
    alone = replace(two, threads=(two.threads[0], ()), weights=(two.weights[0], {}), costs=COSTS)
    assert period(alone) == period(beside)


def test_kernels_of_several_queues_get_what_the_earlier_ones_leave_of_the_gpu() -> None:
    def ends(*queues: tuple[int, float], queues_a_thread: int = 0) -> list[int]:
        """Kernels of 10 µs, each of a thread and a queue of its own, all ready at once."""
        threads = tuple(
            (step("submit", 0, works=(work(number, 10_000, queue=queue, need=need),)),)
            for number, (queue, need) in enumerate(queues)
        )
        timeline = Timeline(threads, COSTS, ({},) * len(threads), queues_a_thread=queues_a_thread)
        placed: list[tuple[Work, int, int]] = []
        replay(timeline, placed=placed)
        assert {start for _, start, _ in placed} == {LATENCY}
        return [end - LATENCY for _, _, end in sorted(placed, key=lambda one: one[0].number)]

    assert ends((0, 0.6), (1, 0.4)) == [10_000, 10_000]
    assert ends((0, 0.6), (1, 0.8)) == [10_000, 15_000]  # at half its rate for 10 µs
    # the third has a tenth of the GPU, a quarter of what it needs, until the others end
    assert ends((0, 0.5), (1, 0.4), (2, 0.4)) == [10_000, 10_000, 17_500]
    # two queues of one thread take as long side by side as recorded, and the third beside both
    assert ends((0, 0.6), (1, 0.8), queues_a_thread=2) == [10_000, 10_000]


def test_inferences_count_only_while_every_thread_runs_some() -> None:
    timeline = program(kernels=[1_000], inferences=8)
    both = Timeline(timeline.threads * 2, COSTS, timeline.weights * 2)
    finished = ({0: 10, 1: 20, 2: 30}, {0: 15, 1: 25, 2: 40, 3: 45})
    assert lengths_ns(both, finished) == [
        {1: (10, 20), 2: (20, 30)},
        {1: (15, 25)},  # the other thread was done at 30
    ]


def test_two_threads_of_python_launch_no_faster_than_one() -> None:
    """Host work is one thread's at a time, but for waits; what the GPU does meanwhile is free."""
    bound_by_host = program(kernels=[500] * 10, inferences=40)
    assert period(two_in_flight(bound_by_host, locked=0)) < 0.7 * period(bound_by_host)
    serial = period(two_in_flight(bound_by_host, locked=0, serial=True))
    host = (
        sum(one.own_ns + one.call_ns * (one.kind == "submit") for one in bound_by_host.threads[0])
        / 40
    )
    assert serial == pytest.approx(host, rel=0.03)
    bound_by_gpu = program(kernels=[50_000] * 10, need=0.1, inferences=40)
    assert period(two_in_flight(bound_by_gpu, locked=0, serial=True)) == pytest.approx(
        period(bound_by_gpu) / 2, rel=0.05
    )


def test_two_threads_launch_no_faster_than_the_driver_s_lock_allows() -> None:
    timeline = program(kernels=[100] * 10, call_ns=3_000)
    assert period(two_in_flight(timeline, locked=1)) >= 10 * 3_000
    assert period(two_in_flight(timeline, locked=0.75)) >= round(10 * 3_000 * 0.75)
    assert period(two_in_flight(timeline, locked=0)) == pytest.approx(
        period(timeline) / 2, rel=0.02
    )


def test_branches_run_at_once_and_join_where_a_kernel_waits_for_both() -> None:
    fork = 1_000 + LATENCY + 5_000
    # in its own stream: dispatch gaps only, both of them after launches in time
    longer = 2_000 + 20_000 + DISPATCH + 5_000
    assert period(branching()) == pytest.approx(fork + longer + RETURN, abs=2_000)
    assert period(branching(one_ns=15_000, other_ns=20_000)) > period(branching())


def test_a_graph_keeps_branches_and_one_stream_ends_them() -> None:
    timeline = branching()
    path = 5_000 + 500 + 20_000 + 500 + COSTS.crossing_ns + 5_000
    assert period(graph(timeline)) == GRAPH + LATENCY + path + RETURN
    assert (
        period(on_one_stream(graph(timeline)))
        == GRAPH + LATENCY + 5_000 + 20_000 + 15_000 + 5_000 + 3 * 500 + RETURN
    )
    assert (
        period(on_one_stream(timeline))
        == 1_000 + LATENCY + 5_000 + 20_000 + 15_000 + 5_000 + 3 * DISPATCH + RETURN
    )


def test_on_one_stream_only_the_event_calls_go_and_not_what_the_host_does_between_them() -> None:
    timeline = each_step(
        branching(), lambda one: one._replace(own_ns=7_000) if one.kind == "event" else one
    )
    one_stream = on_one_stream(timeline)
    assert isinstance(one_stream, Timeline)
    before, after = (
        [one for one in all_steps(each) if one.enqueue] for each in (timeline, one_stream)
    )
    events = sum(one.kind == "event" for one in before)
    assert events > 0
    assert not any(one.kind == "event" for one in after)
    assert len(after) == len(before) - events
    for thread, then in zip(timeline.threads, one_stream.threads, strict=True):
        assert sum(one.own_ns for one in then) == sum(one.own_ns for one in thread)


def test_branches_that_each_need_the_whole_gpu_gain_nothing_from_streams() -> None:
    timeline = branching(need=1.0)
    assert period(timeline) >= 5_000 + 20_000 + 15_000 + 5_000
    assert period(timeline) > period(branching()) + 10_000


def test_a_branch_that_waited_for_the_launch_call_begins_with_the_graph_without_nsys() -> None:
    waits = [work(0, 9_000), work(1, 4_000, queue=1)._replace(lead_ns=63_000, submitted=True)]
    launch = step("submit", 0, graph=True, works=tuple(waits), call_ns=90_000)
    ((found,),) = unprofiled(
        Timeline(((launch,),), COSTS, ({},)), ProfilerCosts(True, 0, 0, 0), LIKELY
    ).threads
    assert [one.lead_ns for one in found.works] == [0, 0]


def test_what_waited_for_a_dropped_kernel_waits_for_what_that_waited_for() -> None:
    timeline = graph(branching(other_ns=30_000))
    dropped = without_kernels(timeline, frozenset(range(2, 400, 4)))
    assert (
        period(dropped)
        == GRAPH + LATENCY + 5_000 + 500 + 20_000 + 500 + COSTS.crossing_ns + 5_000 + RETURN
    )


def test_an_inference_counts_for_as_many_as_it_stands_for() -> None:
    timeline = program(kernels=[20_000] * 10)
    sequences = tuple(
        (
            each._replace(own_ns=each.own_ns + 100_000)
            if each.inference % 2 and each.kind == "sync"
            else each
        )
        for each in timeline.threads[0]
    )
    uneven = replace(timeline, threads=(sequences,))
    first, second = (period(replace(uneven, weights=({number: 1.0},))) for number in (1, 2))
    assert period(replace(uneven, weights=({1: 3.0, 2: 1.0},))) == pytest.approx(
        (3 * first + second) / 4, abs=1
    )


def test_a_dropped_kernel_saves_its_time_and_its_gap_on_a_busy_gpu_and_its_launch_on_an_idle_one() -> (  # noqa: E501
    None
):
    for dur_ns, saved in ((20_000, 20_000 + DISPATCH), (1_000, 3_000)):
        timeline = program(kernels=[dur_ns] * 10)
        second = frozenset(range(2, 200, 10))
        assert period(timeline) - period(without_kernels(timeline, second)) == saved


def test_joined_kernels_become_one_launch_with_the_time_they_are_given() -> None:
    timeline = program(kernels=[20_000] * 10)
    runs = [(first, first + 1, first + 2) for first in range(2, 80, 10)]
    joined = with_joined_kernels(timeline, runs, lambda durations: sum(durations) - 5_000)
    assert period(timeline) - period(joined) == 5_000 + 2 * DISPATCH


# --- what a change refuses
# ------------------------------------------------------------------------------------------


def test_a_graph_cannot_be_captured_across_a_synchronisation_inside_the_enqueue() -> None:
    timeline = program(kernels=[1_000] * 3)
    first, *others = timeline.threads[0]
    wait = step("sync", 0, enqueue=True, api="cudaStreamSynchronize")
    answer = as_cuda_graph(replace(timeline, threads=((first, wait, *others),)), branches_ns=0)
    assert isinstance(answer, DoesNotApply)
    assert "cudaStreamSynchronize" in answer.reason


def test_the_wait_at_the_end_of_a_blocking_execute_follows_the_graph_launch() -> None:
    timeline = program(kernels=[1_000] * 10)
    steps = tuple(each._replace(enqueue=True) for each in timeline.threads[0])
    assert period(graph(replace(timeline, threads=(steps,)))) == period(graph(timeline))


def test_what_is_a_graph_already_is_not_made_one() -> None:
    assert isinstance(
        as_cuda_graph(graph(program(kernels=[1_000] * 3)), branches_ns=0), DoesNotApply
    )


def test_a_program_without_copies_has_none_to_pin() -> None:
    assert isinstance(with_pinned_copies(program(kernels=[1_000])), DoesNotApply)


def test_threads_with_streams_of_their_own_are_in_flight_together_already() -> None:
    changed = two_in_flight(program(kernels=[1_000] * 3), locked=0.7)
    assert isinstance(changed, Timeline)
    assert isinstance(two_in_flight(changed, locked=0.7), DoesNotApply)


def test_what_never_waits_has_no_wait_to_leave_out_and_one_stream_is_one_already() -> None:
    timeline = program(kernels=[1_000] * 3)
    assert isinstance(on_one_stream(timeline), DoesNotApply)
    changed = without_waits(timeline)
    assert isinstance(changed, Timeline)
    assert isinstance(without_waits(changed), DoesNotApply)


# --- what holds for every program
# -----------------------------------------------------------------------------------

_programs = st.builds(
    program,
    kernels=st.lists(st.integers(500, 30_000), min_size=1, max_size=6),
    call_ns=st.integers(1_000, 9_000),
    inferences=st.integers(2, 5),
    host_ns=st.integers(0, 40_000),
    copies=st.booleans(),
)


@given(_programs)
def test_an_inference_takes_at_least_its_gpu_work_and_at_least_its_host_time(
    timeline: Timeline,
) -> None:
    inferences = 1 + max(each.inference for each in timeline.threads[0])
    gpu = sum(work.dur_ns for each in timeline.threads[0] for work in each.works)
    host = sum(
        each.own_ns + (each.call_ns if each.kind == "submit" else 0) for each in timeline.threads[0]
    )
    assert period(timeline) >= gpu // inferences - 1
    assert period(timeline) >= host // inferences - 1


@given(_programs, st.integers(0, 20))
def test_less_work_never_takes_longer(timeline: Timeline, number: int) -> None:
    assert period(without_kernels(timeline, frozenset([]))) == period(timeline)
    assert period(without_host_gap(timeline)) <= period(timeline)
    kernels = [
        work.row
        for each in timeline.threads[0]
        for work in each.works
        if each.inference == 0 and work.row != MISSING
    ]
    run = tuple(kernels[number % len(kernels) :][:2])
    shorter = with_joined_kernels(timeline, [run], max)
    assert isinstance(shorter, Timeline)
    assert max(replay(shorter)[0].values()) <= max(replay(timeline)[0].values())


@given(_programs)
def test_every_piece_of_gpu_work_survives_a_change_that_drops_none(timeline: Timeline) -> None:
    def rows(changed: Changed) -> list[int]:
        if not isinstance(changed, Timeline):
            return numbers
        return sorted(
            each.number for steps in changed.threads for step in steps for each in step.works
        )

    numbers = sorted(each.number for step in timeline.threads[0] for each in step.works)
    assert rows(graph(timeline)) == numbers
    assert rows(with_pinned_copies(timeline)) == numbers
    assert rows(without_host_gap(timeline)) == numbers
    assert rows(without_waits(timeline)) == numbers
    assert len(rows(two_in_flight(timeline, locked=0.7))) == 2 * len(numbers)


@given(_programs)
def test_the_same_timeline_always_gives_the_same_replay(timeline: Timeline) -> None:
    assert replay(timeline) == replay(timeline)


def test_a_graph_s_nodes_begin_after_their_lead_on_the_launch_or_on_what_they_wait_for() -> None:
    first = work(0, 10_000)._replace(lead_ns=1_500)
    second = work(1, 5_000, after=(0,))._replace(lead_ns=700)
    launch = step("submit", 0, call_ns=1_000, graph=True, works=(first, second))
    placed: list[tuple[Work, int, int]] = []
    replay(Timeline(((launch,),), COSTS, ({},)), placed=placed)
    (_, began, ended), (_, next_began, _) = placed
    assert next_began == ended + 700
    later: list[tuple[Work, int, int]] = []
    replay(
        Timeline(
            ((launch._replace(works=(first._replace(lead_ns=4_500), second)),),), COSTS, ({},)
        ),
        placed=later,
    )
    assert later[0][1] == began + 3_000


def test_a_blocking_copy_of_a_gigabyte_is_as_fast_without_the_profiler() -> None:
    profiler = ProfilerCosts(own_calls=True, call_ns=1_000, edge_ns=0, range_ns=0)
    for call_ns, least, most in ((50_000, 56_000, 60_000), (300_000_000, 299_999_000, 300_019_000)):
        copy = step("block", 0, call_ns=call_ns, call_profiler_ns=1_000)
        ((found,),) = unprofiled(Timeline(((copy,),), COSTS, ({},)), profiler, LIKELY).threads
        assert least <= found.call_ns <= most


@given(
    st.lists(
        st.tuples(st.sampled_from(["HtoD", "DtoH"]), st.integers(1, 5), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    )
)
def test_copies_in_one_direction_never_overlap_and_each_begins_as_soon_as_it_may(
    made: list[tuple[WorkKind, int, int]],
) -> None:
    steps = [
        step(
            "submit",
            0,
            call_ns=1_000,
            queue=queue,
            works=(work(number, dur * 7_000, kind, queue=queue),),
        )
        for number, (kind, dur, queue) in enumerate(made)
    ]
    placed: list[tuple[Work, int, int]] = []
    replay(Timeline((tuple(steps),), COSTS, ({0: 1.0},)), placed=placed)
    for place, (one, start, end) in enumerate(placed):
        assert end - start == one.dur_ns
        before = [(begin, stop) for other, begin, stop in placed[:place] if other.kind == one.kind]
        assert all(stop <= start or end <= begin for begin, stop in before)
        ready = (one.number + 1) * 1_000 + LATENCY
        tails = [stop + DISPATCH for other, _, stop in placed[:place] if other.queue == one.queue]
        assert start in (ready, *tails, *(stop for _, stop in before))


def test_a_blocking_copy_that_waits_for_the_link_holds_the_host_as_much_longer() -> None:
    first = step("submit", 0, call_ns=1_000, queue=1, works=(work(0, 50_000, "HtoD", queue=1),))
    blocking = step("block", 0, call_ns=30_000, lag_ns=5_000, works=(work(1, 20_000, "HtoD"),))
    last = step("submit", 0, call_ns=1_000, works=(work(2, 10_000),))
    placed: list[tuple[Work, int, int]] = []
    replay(Timeline(((first, blocking, last),), COSTS, ({0: 1.0},)), placed=placed)
    spans = {one.number: (start, end) for one, start, end in placed}
    assert spans[0] == (1_000 + LATENCY, 51_000 + LATENCY)
    assert spans[1] == (51_000 + LATENCY, 71_000 + LATENCY)
    assert spans[2][0] == 71_000 + LATENCY + 30_000 - 25_000 + 1_000 + LATENCY


def test_pinned_copies_are_as_fast_as_the_trace_shows_and_in_the_stream_of_their_own_inference() -> (  # noqa: E501
    None
):
    plain = program(kernels=[20_000] * 10, copies=True)
    faster = replace(
        plain,
        threads=(
            tuple(
                one._replace(works=tuple(part._replace(pinned=0.5) for part in one.works))
                for one in plain.threads[0]
            ),
        ),
    )
    assert period(with_pinned_copies(faster)) == period(with_pinned_copies(plain)) - COPY_NS
    moved = [
        tuple(
            part._replace(queue=7) if (part.kind, one.inference) == ("kernel", 3) else part
            for part in one.works
        )
        for one in plain.threads[0]
    ]
    elsewhere = tuple(
        one._replace(works=works) for one, works in zip(plain.threads[0], moved, strict=True)
    )
    changed = with_pinned_copies(replace(plain, threads=(elsewhere,)))
    assert isinstance(changed, Timeline)
    queues = {
        one.inference: {part.queue for part in one.works}
        for one in changed.threads[0]
        if one.enqueue
    }
    copied = {
        (part.kind, one.inference): part.queue
        for one in changed.threads[0]
        for part in one.works
        if part.kind in ("HtoD", "DtoH")
    }
    assert queues[3] == {7}
    assert copied["HtoD", 2] == 7
    assert copied["DtoH", 3] == 7
    assert copied["HtoD", 3] != 7
