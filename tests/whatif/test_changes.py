"""What each change makes of single calls and pieces of work, at the edges of what it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysmap.core.table import MISSING
from nsysmap.whatif.changes import (
    BESIDE_NS,
    DoesNotApply,
    as_cuda_graph,
    as_one_graph,
    beside_others,
    needing_most,
    node_lead_ns,
    on_one_stream,
    on_own_sms,
    outside_ns,
    share_needed,
    shortest_kernel_ns,
    two_in_flight,
    uses_several_streams,
    with_joined_kernels,
    with_pinned_copies,
    without_host_gap,
    without_kernels,
    without_waits,
)
from nsysmap.whatif.early import MOVED_NS
from nsysmap.whatif.timeline import ALL_QUEUES, Step, Timeline, Work, all_works
from tests.whatif.test_replay import COSTS, step, work

MIXED = replace(COSTS, graph_own_ns=70, early_kept_ns=40, wait_own_ns=250)


def timeline(*threads: tuple[Step, ...]) -> Timeline:
    weights = tuple({one.inference: 1.0 for one in steps} for steps in threads)
    return Timeline(threads, MIXED, weights)


def changed(found: object) -> Timeline:
    assert isinstance(found, Timeline)
    return found


def test_a_graph_takes_the_calls_up_to_the_last_work_of_its_own_inference() -> None:
    steps = (
        step("submit", 0, works=(work(1, 10),), own_ns=90, outside_ns=60, around_ns=20),
        step("submit", 0, works=(work(2, 10, queue=1),), own_ns=70, outside_ns=50, around_ns=10),
        step("event", 0, enqueue=True, own_ns=5),
        step("sync", 0, enqueue=False, own_ns=900, outside_ns=800, around_ns=300),
        step("submit", 1, works=(work(3, 10),)),
        step("submit", 2, works=(work(4, 10),)),
    )
    (now,) = changed(as_cuda_graph(timeline(steps), branches_ns=33)).threads
    assert [(one.kind, one.inference, one.graph, len(one.works)) for one in now] == [
        ("submit", 0, True, 2),
        ("event", 0, False, 0),
        ("sync", 0, False, 0),
        ("submit", 1, True, 1),
        ("submit", 2, True, 1),
    ]
    # what the host does outside enqueues, without the interpreter's part, and that of a graph
    assert now[0].own_ns == now[0].outside_ns == (60 - 20) + (50 - 10) + 70
    assert now[2].own_ns == now[2].outside_ns == (800 - 300) + 250
    # a graph with branches takes longer to launch
    assert [one.call_ns for one in now if one.graph] == [1700 + 33, 1700, 1700]
    assert [one.queue for one in now if one.graph] == [0, 0, 0]


def test_the_interpreter_s_work_around_a_wait_is_no_more_than_it_was() -> None:
    steps = (
        step("submit", 0, works=(work(1, 10),)),
        step("sync", 0, enqueue=False, own_ns=900, outside_ns=800, around_ns=100),
    )
    (now,) = changed(as_cuda_graph(timeline(steps), branches_ns=0)).threads
    assert now[1].own_ns == (800 - 100) + 100


def test_a_wait_before_the_last_work_of_an_enqueue_forbids_a_graph_and_one_behind_does_not() -> (
    None
):
    launch = step("submit", 0, works=(work(1, 10),))
    more = step("submit", 0, works=(work(2, 10),))
    wait = step("sync", 0, enqueue=True, api="cudaStreamSynchronize")
    block = step("block", 0, enqueue=True, works=(work(3, 10, "HtoD"),))
    assert isinstance(as_cuda_graph(timeline((launch, more, wait)), branches_ns=0), Timeline)
    for between in (wait, block):
        found = as_cuda_graph(timeline((launch, between, more)), branches_ns=0)
        assert isinstance(found, DoesNotApply)
    outside = step("submit", 0, enqueue=False, works=(work(4, 10),))
    assert isinstance(as_cuda_graph(timeline((launch, wait, outside)), branches_ns=0), Timeline)
    # and where an enqueue has no work at all, there is nothing in the way
    alone = step("sync", 5, enqueue=True)
    assert isinstance(as_cuda_graph(timeline((launch, alone)), branches_ns=0), Timeline)


def test_only_where_every_enqueue_is_a_graph_it_is_one_already() -> None:
    graph = step("submit", 0, works=(work(1, 10),), graph=True)
    plain = step("submit", 1, works=(work(2, 10),))
    empty = step("submit", 2)
    assert isinstance(as_cuda_graph(timeline((graph, empty)), branches_ns=0), DoesNotApply)
    assert isinstance(as_cuda_graph(timeline((graph, plain)), branches_ns=0), Timeline)
    beside = plain._replace(enqueue=False)  # what is launched outside an enqueue says nothing
    assert isinstance(as_cuda_graph(timeline((graph, beside)), branches_ns=0), DoesNotApply)
    assert isinstance(as_cuda_graph(timeline((empty,)), branches_ns=0), Timeline)


def test_one_graph_is_launched_once_and_the_ends_of_its_inferences_take_no_time() -> None:
    steps = (
        step("submit", 0, works=(work(1, 10), work(2, 10)), own_ns=9, outside_ns=8),
        step("submit", 0, enqueue=False, works=(work(3, 10, "memset"),)),
        step("submit", 1, works=(work(4, 10, queue=3),)),
        step("sync", 1, enqueue=False),
        step("event", 1, enqueue=False),
    )
    (now,) = changed(as_one_graph(timeline(steps), a_pass=2, branches_ns=5)).threads
    assert [(one.kind, one.inference, one.enqueue, one.graph) for one in now] == [
        ("submit", 0, True, True),
        ("submit", 0, False, True),
        ("submit", 1, True, True),
        ("sync", 1, False, False),
        ("event", 1, False, False),  # without work it stays what it was
    ]
    assert [[one.number for one in each.works] for each in now] == [[1, 2], [3], [4], [], []]
    # the queues used are 0 and 3: each part has one of its own behind them
    assert [one.queue for one in now[:3]] == [0, 4 + 1, 4 + 2]
    assert (now[0].own_ns, now[0].outside_ns, now[0].call_ns) == (8, 8, 1700 + 5)
    assert {(one.own_ns, one.outside_ns, one.call_ns) for one in now[1:3]} == {(0, 0, 0)}


def test_one_graph_ends_where_a_pass_does() -> None:
    steps = tuple(step("submit", at, works=(work(at + 1, 10),)) for at in range(4))
    (now,) = changed(as_one_graph(timeline(steps), a_pass=2, branches_ns=0)).threads
    assert [one.call_ns for one in now] == [1700, 0, 1700, 0]
    assert isinstance(as_one_graph(timeline(steps), a_pass=1, branches_ns=0), DoesNotApply)
    # what follows an enqueue without being in one is of the same pass
    steps = (steps[0], step("submit", 2, enqueue=False, works=(work(9, 10),)))
    (now,) = changed(as_one_graph(timeline(steps), a_pass=1, branches_ns=0)).threads
    assert [one.call_ns for one in now] == [1700, 0]


def test_a_node_of_a_graph_that_it_makes_waits_for_its_queue_and_for_what_it_waited_for() -> None:
    works = (
        work(1, 10),
        work(2, 10, queue=1, after=(1, 99)),  # 99 is in no step of this graph
        work(3, 10, queue=1),
        work(4, 10, after=(3, 1)),
    )
    (now,) = changed(
        as_cuda_graph(timeline((step("submit", 0, works=works),)), branches_ns=0)
    ).threads
    assert [one.after for one in now[0].works] == [(), (1,), (2,), (3, 1)]
    assert [one.lead_ns for one in now[0].works] == [0, 500 + 300, 500, 500 + 300]


@pytest.mark.parametrize("overlap", [MOVED_NS, MOVED_NS + 1])
def test_a_node_that_began_early_keeps_its_overlap_if_that_is_more_than_chance(
    overlap: int,
) -> None:
    before = work(1, 5000)
    early = work(2, 100)._replace(start_ns=before.end_ns - overlap, early=True)
    found = node_lead_ns(early, early.queue, [before], MIXED)
    assert found == (40 - overlap if overlap > MOVED_NS else 500)
    # of two that it waits for, or of one that does not begin early, the usual gap
    assert node_lead_ns(early, early.queue, [before, before], MIXED) == 500
    assert node_lead_ns(early._replace(early=False), early.queue, [before], MIXED) == 500


def test_leads_of_nodes_by_kind() -> None:
    node, memset = work(5, 10), work(6, 10, "memset")
    other = work(7, 10, queue=1)
    at_once = node._replace(at_once=True)
    assert node_lead_ns(node, node.queue, [], MIXED) == 0
    assert node_lead_ns(memset, memset.queue, [node], MIXED) == 900
    assert node_lead_ns(memset, memset.queue, [other], MIXED) == 900 + 300
    assert node_lead_ns(node, node.queue, [memset, node], MIXED) == 3000
    assert node_lead_ns(at_once, at_once.queue, [node], MIXED) == -400
    assert node_lead_ns(at_once, at_once.queue, [node, node], MIXED) == 500
    assert node_lead_ns(node, node.queue, [node, other], MIXED) == 500 + 300


# --- copies
# ----------------------------------------------------------------------------------------------


def copy(number: int, way: str, inference: int, *, pinned: float = 0.5, **fields: object) -> Step:
    kind = "HtoD" if way == "HtoD" else "DtoH"
    done = work(number, 100, kind, queue=7)._replace(pinned=pinned, lead_ns=11)  # type: ignore[arg-type]
    return step("block", inference, works=(done,), call_ns=50_000, lag_ns=40, **fields)


def test_pinned_copies_are_in_the_stream_of_the_inference_that_needs_them() -> None:
    steps = (
        copy(1, "HtoD", 0),  # before the enqueue of 1: of the next inference
        step("submit", 1, works=(work(2, 10, queue=2), work(3, 10, queue=2), work(4, 9, queue=1))),
        step("sync", 1, enqueue=False),
        copy(5, "DtoH", 1),
        copy(6, "HtoD", 1),
        step("submit", 2, works=(work(7, 10, queue=3),)),
        step("submit", 2, works=(work(8, 10, "memset", queue=9),), enqueue=False),
        step("submit", 2, works=(work(9, 9, "memset", queue=9), work(10, 9)), enqueue=False),
        copy(11, "DtoH", 2),
    )
    (now,) = changed(with_pinned_copies(timeline(steps))).threads
    assert [(one.kind, one.inference, one.queue) for one in now] == [
        ("submit", 0, 2),
        ("submit", 1, 0),
        ("submit", 1, 2),  # the wait before the copy is gone
        ("sync", 1, 2),  # the results are waited for before the next input is copied
        ("submit", 1, 3),
        ("submit", 2, 0),
        ("submit", 2, 0),
        ("submit", 2, 0),
        ("submit", 2, 3),
    ]
    first = now[0]
    assert (first.call_ns, first.lag_ns) == (MIXED.submit_ns, 0)
    assert [(one.dur_ns, one.lead_ns, one.queue) for one in first.works] == [(50, 0, 2)]
    wait = now[3]
    assert (wait.call_ns, wait.own_ns, wait.outside_ns, wait.lag_ns) == (400, 0, 0, 0)
    assert (wait.api, wait.enqueue, wait.works, wait.target) == (
        "cudaStreamSynchronize",
        False,
        (),
        MISSING,
    )
    # a step of memsets alone goes with them
    assert [one.queue for one in now[6].works] == [3]
    assert [one.queue for one in now[7].works] == [9, 0]


def test_results_are_waited_for_before_the_next_enqueue_or_wait() -> None:
    launch = step("submit", 1, works=(work(1, 10, queue=4),), graph=True)
    steps = (
        launch._replace(inference=0, works=(work(1, 10, queue=5),)),
        copy(2, "DtoH", 0),
        launch._replace(works=(work(3, 10, queue=4), work(9, 10, queue=4))),
        copy(4, "DtoH", 1),
        step("event", 1, enqueue=False),
        step("sync", 1, enqueue=False, api="mine"),
        step("event", 1, enqueue=False),
    )
    (now,) = changed(with_pinned_copies(timeline(steps))).threads
    assert [(one.kind, one.inference) for one in now] == [
        ("submit", 0),
        ("submit", 0),
        ("sync", 0),  # of the inference before the enqueue
        ("submit", 1),
        ("submit", 1),
        ("event", 1),
        ("sync", 1),  # the program's own: no second one
        ("event", 1),
    ]
    assert now[6].api == "mine"
    assert (now[2].queue, now[2].graph) == (5, False)
    # a first enqueue has none before it
    again = (copy(2, "DtoH", 0), launch._replace(inference=0, works=(work(3, 10, queue=5),)))
    behind = launch._replace(works=(work(4, 10, queue=6), work(5, 10, queue=6)))
    (now,) = changed(with_pinned_copies(timeline((*again, behind)))).threads
    assert [one.queue for one in now if one.kind == "sync"] == [5]


def test_a_wait_stays_unless_a_blocking_copy_of_results_follows_at_once() -> None:
    wait, result = step("sync", 0, enqueue=False), copy(2, "DtoH", 0)
    launch = step("submit", 0, works=(work(1, 10),))
    free = step("submit", 0, enqueue=False, works=(work(3, 10, "DtoH"),))
    inward = copy(4, "HtoD", 0)
    for following, kinds in (
        ((result,), ["submit", "submit"]),
        ((free, result), ["submit", "sync", "submit", "submit"]),
        ((inward,), ["submit", "sync", "submit"]),
    ):
        (now,) = changed(with_pinned_copies(timeline((launch, wait, *following)))).threads
        assert [one.kind for one in now] == kinds
    (now,) = changed(with_pinned_copies(timeline((launch, inward, wait)))).threads
    assert [one.kind for one in now] == ["submit", "submit", "sync"]


def test_why_there_is_no_copy_to_pin() -> None:
    launch = step("submit", 0, works=(work(1, 10),))
    free = step("submit", 0, works=(work(2, 10, "HtoD"),))
    inside = step("submit", 0, works=(work(2, 10, "copy"),))
    with_copies = with_pinned_copies(timeline((launch, free)))
    without = with_pinned_copies(timeline((launch,)))
    assert isinstance(with_copies, DoesNotApply)
    assert isinstance(without, DoesNotApply)
    assert with_copies != without
    assert with_pinned_copies(timeline((launch, inside))) == without


# --- the host
# --------------------------------------------------------------------------------------------


def test_without_the_host_s_gap_its_work_within_enqueues_stays() -> None:
    steps = (
        step("submit", 0, own_ns=100, outside_ns=70, works=(work(1, 10),)),
        step("submit", 1, own_ns=30, works=(work(2, 10),)),
    )
    (now,) = without_host_gap(timeline(steps)).threads  # type: ignore[union-attr]
    assert [(one.own_ns, one.outside_ns) for one in now] == [(30, 0), (30, 0)]
    assert outside_ns(timeline(steps)) == pytest.approx(35)


def test_waits_go_and_everything_else_stays() -> None:
    launch, event = step("submit", 0, works=(work(1, 10),)), step("event", 0)
    wait = step("sync", 0, enqueue=False)
    assert changed(without_waits(timeline((launch, wait, event)))).threads == ((launch, event),)
    assert isinstance(without_waits(timeline((launch, event))), DoesNotApply)


# --- two in flight
# ---------------------------------------------------------------------------------------


def test_a_second_thread_does_the_same_in_its_own_streams() -> None:
    steps = (
        step("submit", 0, works=(work(1, 10, queue=1), work(4, 10, queue=2, after=(1,))), queue=1),
        step("sync", 0, enqueue=False, queue=ALL_QUEUES),
        step("sync", 0, enqueue=False, queue=2, target=4),
        step("event", 0, queue=ALL_QUEUES),
    )
    before = replace(timeline(steps), weights=({0: 2.0},), phases=({0: 1},), present=(0.5,))
    now = changed(two_in_flight(before, locked=0.4, serial=0.2))
    mine, other = now.threads
    assert [one.queue for one in mine] == [1, 1, 2, ALL_QUEUES]
    assert [one.queue for one in other] == [1 + 3, 1 + 3, 2 + 3, ALL_QUEUES]
    assert [one.target for one in other] == [MISSING, MISSING, 4 + 5, MISSING]
    assert [(one.number, one.queue, one.after) for one in other[0].works] == [
        (6, 4, ()),
        (9, 5, (6,)),
    ]
    assert now.queues_a_thread == 3
    assert (now.weights, now.phases, now.present) == (({0: 2.0},) * 2, ({0: 1},) * 2, (0.5, 0.5))
    assert (now.locked, now.serial) == (0.4, 0.2)
    assert now.costs.dispatch_ns == MIXED.dispatch_ns + BESIDE_NS


def test_a_timeline_without_work_has_one_queue_for_each_thread() -> None:
    now = changed(two_in_flight(timeline((step("event", 0),)), locked=0.0))
    assert now.queues_a_thread == 1


def test_threads_of_one_stream_are_not_in_flight_together_yet() -> None:
    def thread(queue: int, number: int) -> tuple[Step, ...]:
        return (step("submit", 0, works=(work(number, 10, queue=queue),)),)

    same = timeline(thread(1, 1), thread(1, 2))
    apart = timeline(thread(1, 1), thread(2, 2))
    assert isinstance(two_in_flight(same, locked=0.0), Timeline)
    assert isinstance(two_in_flight(apart, locked=0.0), DoesNotApply)


def test_only_nodes_of_graphs_that_wait_begin_later_beside_others() -> None:
    works = (work(1, 10), work(2, 10, after=(1,))._replace(lead_ns=30))
    steps = (
        step("submit", 0, graph=True, works=works),
        step("submit", 1, works=(work(3, 10, after=(2,)),)),
    )
    (now,) = beside_others(timeline(steps), 25).threads
    assert [[one.lead_ns for one in each.works] for each in now] == [[0, 55], [0]]
    assert beside_others(timeline(steps), 0) == timeline(steps)
    mine = changed(two_in_flight(timeline(steps), locked=0.0)).threads[0]
    assert [[one.lead_ns for one in each.works] for each in mine] == [[0, 30], [0]]


def needy(number: int, need: float, sms: float, most: float, dur_ns: int = 100) -> Work:
    return work(number, dur_ns)._replace(need=need, sms=sms, most_need=most)


def test_what_kernels_need_of_the_gpu_at_least_with_their_own_sms_and_at_most() -> None:
    works = (
        needy(1, 0.2, 0.5, 0.6, 300),
        needy(2, 0.4, 0.1, 0.8, 100),
        work(3, 10_000, "HtoD"),
    )
    one = timeline((step("submit", 0, works=works),))
    assert share_needed(one) == pytest.approx(
        (
            (0.2 * 300 + 0.4 * 100) / 400,
            (0.5 * 300 + 0.4 * 100) / 400,
            (0.6 * 300 + 0.8 * 100) / 400,
        )
    )
    assert [each.need for each in all_works(on_own_sms(one))][:2] == [0.5, 0.4]
    assert [each.need for each in all_works(needing_most(one))][:2] == [0.6, 0.8]
    assert share_needed(timeline((step("event", 0),))) == (1.0, 1.0, 1.0)
    assert shortest_kernel_ns(one) == 100
    assert shortest_kernel_ns(timeline((step("event", 0),))) == 140  # of an empty kernel


# --- one stream
# ------------------------------------------------------------------------------------------


def test_several_streams_are_those_of_the_kernels_of_one_enqueue() -> None:
    def one(*works: Work, enqueue: bool = True, inference: int = 0) -> Step:
        return step("submit", inference, enqueue=enqueue, works=works)

    first, second = work(1, 10), work(2, 10, queue=1)
    assert uses_several_streams(timeline((one(first, second),)))
    assert uses_several_streams(timeline((one(first), one(second))))
    for not_several in (
        timeline((one(first), one(second, inference=1))),
        timeline((one(first), one(second, enqueue=False))),
        timeline((one(first, work(2, 10, "memset", queue=1)),)),
        timeline((one(first),), (one(second),)),
    ):
        assert not uses_several_streams(not_several)


def test_on_one_stream_the_next_call_has_the_host_s_time_before_an_event_call() -> None:
    def event(by: int, **fields: object) -> Step:
        return step(
            "event",
            0,
            own_ns=8 * by,
            own_profiler_ns=4 * by,
            outside_ns=2 * by,
            around_ns=by,
            **fields,
        )

    steps = (
        step("submit", 0, works=(work(1, 10), work(2, 10, queue=1))),
        event(1, enqueue=True),
        event(3, enqueue=True),
        step(
            "submit",
            0,
            own_ns=100,
            own_profiler_ns=50,
            outside_ns=20,
            around_ns=10,
            works=(work(3, 10),),
        ),
        event(5, enqueue=False),
    )
    (now,) = changed(on_one_stream(timeline(steps))).threads
    assert [one.kind for one in now] == ["submit", "submit", "event"]
    later = now[1]
    assert (later.own_ns, later.own_profiler_ns, later.outside_ns, later.around_ns) == (
        132,
        66,
        28,
        14,
    )
    assert now[2].own_ns == 40
    assert {one.queue for one in all_works(timeline(now))} == {0}


def test_a_graph_on_one_stream_has_no_branches_and_is_launched_as_fast_as_others() -> None:
    works = (work(1, 10), work(2, 10, queue=1, after=(1,)), work(3, 10))
    graph = step("submit", 0, graph=True, works=works, call_ns=5000, queue=1)
    quick = graph._replace(inference=1, call_ns=900)
    plain = step(
        "submit",
        2,
        works=(work(4, 10)._replace(lead_ns=77), work(6, 10)),
        call_ns=5000,
        queue=ALL_QUEUES,
    )
    outside = step("submit", 2, enqueue=False, works=(work(5, 10, queue=1),))
    (now,) = changed(on_one_stream(timeline((graph, quick, plain, outside)))).threads
    assert [one.after for one in now[0].works] == [(), (1,), (2,)]
    assert [one.lead_ns for one in now[0].works] == [0, 500, 500]
    assert [one.call_ns for one in now] == [1700, 900, 5000, 0]
    assert [one.queue for one in now] == [0, 0, 0, 0]
    assert [(one.lead_ns, one.after) for one in now[2].works] == [(77, ()), (0, ())]
    assert now[3].works[0].queue == 1


# --- without kernels, and joined ones
# --------------------------------------------------------------------


def test_the_call_of_a_kernel_that_goes_goes_with_it_and_an_empty_call_stays() -> None:
    steps = (
        step("submit", 0, works=(work(1, 10),)),
        step("submit", 0, works=(work(2, 10), work(3, 10, after=(2, 7)))),
        step("sync", 0, enqueue=False),
        step("submit", 0, works=(work(4, 10, after=(3, 2)),)),
    )
    now = changed(without_kernels(timeline(steps), frozenset({1, 2})))
    assert [[one.number for one in each.works] for each in now.threads[0]] == [[3], [], [4]]
    assert [one.after for one in all_works(now)] == [(7,), (3,)]


def test_what_waited_for_several_that_go_waits_once_for_each_that_stays() -> None:
    works = (
        work(1, 10),
        work(2, 10, after=(1,)),
        work(3, 10, after=(2, 1)),
        work(4, 10, after=(2, 3)),
    )
    now = changed(without_kernels(timeline((step("submit", 0, works=works),)), frozenset({2, 3})))
    assert [one.after for one in all_works(now)] == [(), (1,)]


def test_of_a_run_that_is_joined_the_first_that_is_there_takes_its_time() -> None:
    steps = tuple(step("submit", 0, works=(work(at, 10 * at),)) for at in range(1, 7))
    runs = [(99, 2, 3, 4), (6,), (5, 98)]
    two = (step("submit", 0, works=(work(7, 70), work(2, 20))), *steps[2:])
    for some, first in ((steps, (1, 10)), (two, (7, 70))):
        now = changed(with_joined_kernels(timeline(some), runs, lambda each: sum(each) + 1))
        assert [(one.row, one.dur_ns) for one in all_works(now)] == [
            first,
            (2, 91),
            (5, 50),
            (6, 60),
        ]
