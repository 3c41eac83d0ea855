"""What the profiler costs, and what is left without it: each figure worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import starmap

import numpy as np
import pytest

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import API_CALLS, NVTX_RANGES
from nsysmap.trace.model import Trace
from nsysmap.whatif.host_pace import HostPace, host_pace
from nsysmap.whatif.profiler import (
    LIKELY,
    MACHINES,
    NOTHING_AROUND,
    Around,
    Machine,
    ProfilerCosts,
    around_calls,
    as_python,
    at_pace,
    profiler_costs,
    profiler_parts,
    unprofiled,
    with_python,
)
from nsysmap.whatif.timeline import Costs, Step, Timeline, Work
from nsysmap.whatif.window import Window
from tests.whatif.test_replay import COSTS, step, work
from tests.whatif.test_window import stretches
from tests.whatif.test_window import trace as empty

MACHINE = Machine(0.5, 100, 130, 7, -480, 301, 1_700, 1_000, 1_800, 1_500, 11, 5, 1.2, 0.9, 0.75)
PROFILER = ProfilerCosts(own_calls=True, call_ns=1_000, edge_ns=30, range_ns=7)


def without(one: Step, costs: Costs = COSTS, **others: object) -> Step:
    timeline = Timeline(((one,),), costs, ({},))
    return unprofiled(timeline, PROFILER, MACHINE, **others).threads[0][0]  # type: ignore[arg-type]


def costs_of(profiler: ProfilerCosts = PROFILER, **recorded: int) -> Costs:
    timeline = Timeline(((),), replace(COSTS, **recorded), ({},))
    return unprofiled(timeline, profiler, MACHINE).costs


# --- what the trace shows of its costs
# ---


def window() -> Window:
    return replace(stretches(), begin_ns=np.array([1_000]), end_ns=np.array([1_000_000]))


def call(api: str, took: int, *, kind: str = "other", thread: int = 7, at: int = 2_000) -> object:
    return {"api": api, "kind": kind, "thread": thread, "start_ns": at, "end_ns": at + took}


def ranged(took: int, *, thread: int = 7, at: int = 2_000) -> object:
    return {"thread": thread, "start_ns": at, "end_ns": at + took}


def traced(calls: list[object], ranges: list[object] | None = None) -> Trace:
    return replace(
        empty(),
        api_calls=Table.of_rows(API_CALLS, calls),  # type: ignore[arg-type]
        nvtx_ranges=Table.of_rows(NVTX_RANGES, ranges or []),  # type: ignore[arg-type]
    )


OWN = [call("cuKernelGetName", took) for took in (80, 90, 100, 110)]


def test_the_profiler_s_own_calls_are_the_unit_of_its_costs() -> None:
    found = profiler_costs(traced([*OWN, call("cuFuncGetName", 120)]), window())
    assert found == ProfilerCosts(True, 1_550, 180, 150)


@pytest.mark.parametrize(
    "fifth",
    [
        call("cuKernelGetName", 120, thread=8),
        call("cuKernelGetName", 120, at=999),
        call("cuKernelGetName", 120, at=1_000_000),
        call("cuLaunchKernel", 120),
    ],
)
def test_four_calls_of_its_own_in_the_window_s_threads_are_too_few(fifth: object) -> None:
    found = profiler_costs(traced([*OWN, fifth]), window())
    assert found == ProfilerCosts(False, 2_015, 234, 195)  # of 130 ns


@pytest.mark.parametrize(
    ("took", "count", "unit"),
    [
        (5_850, 5, 144),
        (5_850, 4, 130),  # too few
        (2_000, 5, 65),  # no less than half of what is usual
        (20_000, 5, 260),  # no more than twice that
    ],
)
def test_launches_tell_the_unit_where_there_are_no_such_calls(
    took: int, count: int, unit: int
) -> None:
    launches = [call("cuLaunchKernel", took, kind="launch") for _ in range(count)]
    beside = [
        *(call("cuLaunchKernel", 3_000, kind="launch", thread=8) for _ in range(9)),
        *(call("cuLaunchKernel", 3_000, kind="launch", at=10) for _ in range(9)),
        *(call("cuEventRecord", 900) for _ in range(9)),
    ]
    found = profiler_costs(traced([*launches, *beside]), window())
    assert found == ProfilerCosts(False, round(15.5 * unit), round(1.8 * unit), round(1.5 * unit))


@pytest.mark.parametrize(
    ("lengths", "cost"),
    [
        ([50, 60, 70, 80, 90] + [5_000] * 15, 70),  # the shortest quarter
        ([50, 60, 70, 80, 90] + [5_000] * 14, 150),  # four of nineteen are too few
        ([50, 60, 70, 80, 999] + [5_000] * 15, 70),
        ([50, 60, 70, 80, 1_000] + [5_000] * 15, 150),  # what takes a microsecond is not empty
        ([], 150),
    ],
)
def test_empty_ranges_show_the_cost_of_a_range(lengths: list[int], cost: int) -> None:
    ranges = [ranged(took) for took in lengths]
    ranges += [ranged(1, thread=8), ranged(1, at=999)] * 9
    calls = [*OWN, call("cuFuncGetName", 120)]
    assert profiler_costs(traced(calls, ranges), window()).range_ns == cost


def test_between_two_calls_each_event_of_a_range_and_each_edge_of_a_call_counts() -> None:
    events, calls = np.array([10, 20, 30]), np.array([15, 25])
    left, right = np.array([10, 11, 10, 0, 16]), np.array([31, 20, 30, 10, 26])
    parts = profiler_parts(events, left, right, calls, PROFILER)
    assert parts.tolist() == [3 * 7 + 3 * 30, 2 * 30, 2 * 7 + 3 * 30, 30, 7 + 2 * 30]


# --- the machines
# ---


def test_python_restarts_slowly_on_the_slow_machine_alone() -> None:
    slow, much = replace(LIKELY, restart_ns=1), replace(LIKELY, restart_ns=50_000)
    found = with_python((LIKELY, slow, much))
    assert [one.restart_ns for one in found] == [0, 40_000, 50_000]
    assert [one.own for one in as_python(MACHINES)] == [1.0, 0.5, 1.35]
    assert [one.launch for one in as_python(MACHINES)] == [one.launch for one in MACHINES]


def test_each_bound_is_on_its_own_side_of_the_likely_machine() -> None:
    likely, quick, slow = MACHINES
    for name in (
        *("launch", "node_ns", "early_ns", "crossing_ns", "graph_call_ns", "returned_ns"),
        *("staging", "own", "locked"),
    ):
        assert getattr(quick, name) < getattr(likely, name) < getattr(slow, name), name
    for name in ("node_saved_ns", "queued_saved_ns", "memset_saved_ns", "copied_ns"):
        assert getattr(quick, name) > getattr(likely, name) > getattr(slow, name), name
    # as estimated, without more or less
    assert (likely.launch, likely.own, likely.node_ns, likely.returned_ns) == (1.0, 1.0, 0, 0)
    assert slow.locked < 1  # it is a share
    assert slow.copied_ns == 0
    assert [one.branches_ns for one in MACHINES] == [1_000, 0, 7_000]
    assert [one.restart_ns for one in MACHINES] == [0, 0, 10_000]


@pytest.mark.parametrize(
    ("graphs", "repeats", "around"),
    [
        (True, False, Around(15_000, 0.75)),
        (True, True, Around(15_000, 0.75)),
        (False, False, Around(15_000, 0.6)),
        (False, True, Around(30_000, 0.35)),
    ],
)
def test_python_s_own_work_around_calls_depends_on_what_marks_them(
    graphs: bool, repeats: bool, around: Around
) -> None:
    calm, slow = (HostPace(launches, 1.0, own_calls=False) for launches in (1.0, 4.0))
    assert around_calls(calm, graphs=graphs, repeats=repeats) == around
    found = around_calls(slow, graphs=graphs, repeats=repeats)
    assert found == Around(8 * around.within_ns, around.left / 8)  # 4^1.5


def test_around_a_call_lies_so_much_and_no_more() -> None:
    one = Around(1_000, 0.6)
    assert [one.left_ns(taken) for taken in (0, 500, 1_000, 5_000)] == [0, 300, 600, 600]
    assert [one.rest_ns(taken) for taken in (0, 500, 1_000, 1_001, 5_000)] == [0, 0, 0, 1, 4_000]
    assert (NOTHING_AROUND.left_ns(700), NOTHING_AROUND.rest_ns(700)) == (0, 700)


# --- costs without the profiler
# ---


@pytest.mark.parametrize(
    ("recorded", "left"),
    [
        ({"latency_ns": 2_000}, {"graph_latency_ns": 2_000, "latency_ns": 2_000}),
        ({"latency_ns": 1_000}, {"graph_latency_ns": 1_700}),
        ({"latency_ns": 5_000}, {"graph_latency_ns": 2_800}),
        ({"graph_start_ns": 5}, {"graph_start_ns": MISSING}),
        ({"node_ns": 555}, {"node_ns": 555, "early_node_ns": -450, "early_kept_ns": 30}),
        ({"node_ns": MISSING, "made_node_ns": 600}, {"node_ns": 637}),
        ({}, {"crossing_ns": 301, "restart_ns": 5, "graph_launch_ns": 1_700}),
        ({"from_memset_ns": 3_000}, {"from_memset_ns": 1_200}),
        ({"from_memset_ns": 2_000}, {"from_memset_ns": 400}),
        (
            {"to_copy_ns": 4_500, "from_copy_ns": 4_000},
            {"to_copy_ns": 3_000, "from_copy_ns": 2_500},
        ),
        (
            {"to_copy_ns": 2_000, "from_copy_ns": 1_700},
            {"to_copy_ns": 1_000, "from_copy_ns": 1_000},
        ),
        ({"return_ns": 2_500}, {"return_ns": 2_511}),
        ({"return_ns": 488}, {"return_ns": 500}),
        ({"idle_sync_ns": 300}, {"idle_sync_ns": 300}),
        ({"idle_sync_ns": 900}, {"idle_sync_ns": 400}),
        ({"submit_ns": 3_400}, {"submit_ns": 1_200}),
        ({"submit_ns": 1_800}, {"submit_ns": 450}),  # at least half of what it took
        ({}, {"graph_own_ns": 0, "wait_own_ns": 0}),
    ],
)
def test_costs_are_less_by_what_the_profiler_adds(
    recorded: dict[str, int], left: dict[str, int]
) -> None:
    found = costs_of(PROFILER, **recorded)
    assert {name: getattr(found, name) for name in left} == left


def test_python_takes_its_own_time_around_graphs_that_would_be_made() -> None:
    timeline = Timeline(((),), COSTS, ({},))
    found = unprofiled(timeline, PROFILER, MACHINE, around=Around(1, 1.0)).costs
    assert (found.graph_own_ns, found.wait_own_ns) == (4_200, 1_500)


# --- steps without the profiler
# ---


def timed(one: Step) -> tuple[int, int, int, int]:
    assert (one.own_profiler_ns, one.call_profiler_ns) == (0, 0)
    return one.own_ns, one.outside_ns, one.around_ns, one.call_ns


def test_a_launch_takes_its_own_time_and_that_before_it() -> None:
    launch = step("submit", 0, own_ns=1_000, own_profiler_ns=200, outside_ns=400, call_ns=5_000,
                  call_profiler_ns=1_500)  # fmt: skip
    assert timed(without(launch)) == (240 + 288, 288, 0, 1_750)
    assert timed(without(launch, unmarked=True)) == (432 + 288, 288, 0, 1_750)
    assert timed(without(launch, around=Around(100, 0.5))) == (240 + 45 + 198, 243, 45, 1_750)
    mostly = launch._replace(call_profiler_ns=4_000)
    assert timed(without(mostly))[3] == 1_250  # no less than half
    assert timed(without(launch._replace(own_ns=0, own_profiler_ns=0, outside_ns=0)))[:3] == (
        0,
        0,
        0,
    )


def test_a_wait_takes_no_longer_than_one_for_nothing() -> None:
    assert [timed(without(step("sync", 0, call_ns=took)))[3] for took in (350, 5_000)] == [350, 400]


def test_a_blocking_copy_holds_the_host_longer_for_what_is_staged() -> None:
    found = [
        timed(without(step("block", 0, call_ns=took, call_profiler_ns=1_000)))[3]
        for took in (10_000, 300_000, 1_600)
    ]
    assert found == [10_800, 299_000 + 20_000, 960]


def node(number: int, dur_ns: int, lead_ns: int = 900, **fields: object) -> Work:
    return work(number, dur_ns)._replace(lead_ns=lead_ns, **fields)  # type: ignore[arg-type]


def test_a_graph_s_launch_takes_what_the_machine_says() -> None:
    one = step("submit", 0, graph=True, call_ns=9_000, works=(node(1, 1_000), node(2, 1_000)))
    assert timed(without(one))[3] == 1_700
    branches = one._replace(works=(node(1, 1_000), node(2, 1_000, queue=1)))
    assert timed(without(branches))[3] == 2_700


def test_work_takes_less_by_the_cost_of_recording_it() -> None:
    works = (
        *(work(at, dur_ns) for at, dur_ns in enumerate((1_000, 200))),
        *(work(at + 2, dur_ns, "DtoH") for at, dur_ns in enumerate((5_000, 2_000))),
        work(4, 700, "memset"),
    )
    queued = without(step("submit", 0, works=works)).works
    assert [one.dur_ns for one in queued] == [870, 100, 3_500, 1_000, 700]
    graph = without(step("submit", 0, graph=True, works=works)).works
    assert [one.dur_ns for one in graph] == [900, 100, 3_500, 1_000, 700]
    assert [one.number for one in graph] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wider", "leads"),
    [(0, [0, 900, 3_300 - 1_800, 300, 400]), (50, [0, 950, 3_350 - 1_800, 350, 400])],
)
def test_nodes_are_apart_as_without_the_profiler(wider: int, leads: list[int]) -> None:
    nodes = (
        node(1, 1_000, 900, submitted=True),
        work(2, 800, "memset", after=(1,))._replace(lead_ns=900),
        node(3, 1_000, 3_300, after=(2,)),
        node(4, 1_000, 300, after=(2,)),  # nearer than a memset lets it: as it was
        node(5, 1_000, 2_000, after=(1, 2)),
    )
    graph = step("submit", 0, graph=True, works=nodes)
    found = without(graph, replace(COSTS, wider_node_ns=wider)).works
    assert [one.lead_ns for one in found] == leads
    assert [one.after for one in found] == [one.after for one in nodes]
    plain = without(step("submit", 0, works=nodes)).works
    assert [one.lead_ns for one in plain] == [one.lead_ns for one in nodes]


# --- the pace of the host
# ---


def launches(*took: int, graph: int = 0, kind: str = "kernel") -> Timeline:
    works = starmap(work, [(at, 100, kind) for at in range(max(graph, 1))])
    one = step("submit", 0, works=tuple(works), graph=graph > 0)
    return Timeline((tuple(one._replace(call_ns=ns) for ns in took),), COSTS, ({},))


def test_the_pace_is_the_median_of_five_launches_or_more() -> None:
    def ratio(timeline: Timeline) -> float:
        return host_pace(timeline, None, own_calls=False).launches

    assert ratio(launches(4_000, 8_000, 8_000, 12_000, 12_000)) == 2.0
    assert ratio(launches(8_000, 8_000, 8_000, 8_000)) == 1.0
    assert ratio(launches(*[8_000] * 9, kind="memset")) == 1.0
    assert ratio(launches(*[3_000 + 4 * 800] * 5, graph=4)) == 1.0
    assert ratio(launches(*[2 * (3_000 + 10 * 800)] * 5, graph=10)) == 2.0
    single, graphs = launches(*[8_000] * 5).threads[0], launches(*[19_000] * 5, graph=2).threads[0]
    assert ratio(Timeline((single + graphs,), COSTS, ({},))) == 2.0  # as many: the single ones
    assert ratio(Timeline((single[1:] + graphs,), COSTS, ({},))) == pytest.approx(19 / 4.6)


def test_what_is_left_is_by_powers_of_both_signs() -> None:
    assert HostPace(2.0, 1.0, own_calls=False).without == pytest.approx(2**-0.95)
    assert HostPace(1.0, 2.0, own_calls=False).without == pytest.approx(2**-0.8)
    both = HostPace(2.0, 3.0, own_calls=False, contended=True)
    assert both.without == pytest.approx(2**-0.7)
    assert HostPace(0.5, 1.0, own_calls=False).slowness == 1.0
    (machine,) = at_pace((MACHINE,), both)
    assert machine.launch == pytest.approx(0.5 * 2**-0.7)
