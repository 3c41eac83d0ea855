"""Estimates the profiler's overhead in a traced program, and builds the program's timeline without
it.

A trace shows the profiler at work: it asks for each kernel's name (cuKernelGetName) before the
launch, and empty ranges show the cost of a range.  On one host that call took 83 to 95 ns, on
others 140 to 195, and everything else that the profiler adds to a call grew with it: the constants
below are multiples of it.  They, and what no trace shows, were measured on an H200 and two H100s
(see docs/what-if.md): kernels that spin for a known time, with and without CUPTI
(``benchmarks/launch_costs.cu``), and the un-profiled timings of the captured programs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray
from nsysmap.trace.model import Trace
from nsysmap.whatif.host_pace import HostPace
from nsysmap.whatif.timeline import COPIES, Costs, Step, Timeline, Work, each_step
from nsysmap.whatif.window import Window

OWN_CALLS = ("cuKernelGetName", "cuFuncGetName")
"""Calls that nsys's injection makes before each launch to look up the kernel's name: 2023.4.4 and
2025.3, one per launch in every capture.
"""

_OWN_CALL_NS = 130  # if the trace does not show one
_LAUNCH_SLOPE, _LAUNCH_LEAST_NS = 0.036, 1_850
"""Where the trace shows no such calls (a program that launches by cuLaunchKernel), they would take
this part of what a launch call takes longer than that: in 17 traces with them they took 83 to 95 ns
where launches took 4.3 to 4.5 us, 145 to 160 at 5.4 to 5.8, and 166 to 197 at 6 to 7.1.
"""
_CALL = 15.5  # a traced call takes this many times that call's duration longer …
_EDGE = 1.8  # … and as much again before and after it, outside its recorded time
_RANGE = 1.5  # cost of a range event if the trace has no empty range
# at most, of a blocking copy: longer ones move at the speed of the link, with or without a profiler
_STAGED_NS = 100_000
_LATENCY_NS = (1_700, 2_800)
"""From the return of a launch call to the begin of its work on an idle GPU: 1.7 to 2.7 us in 55
traces whose enqueues are marked; where nothing marks them what is read from the trace (-1.0 to 5.6)
is something else.
"""
_BEHIND_MEMSET_NS = 400  # at least, from a memset to the node that waits for it
_FEW = 5  # launch calls of which a median is taken


@dataclass(frozen=True)
class ProfilerCosts:
    """The profiler's estimated overhead, in nanoseconds."""

    own_calls: bool  # the trace shows its own calls, from which the rest follows
    call_ns: int  # to a traced call, inside its recorded time
    edge_ns: int  # around a traced call, outside its recorded time
    range_ns: int  # to each begin or end of a range


@dataclass(frozen=True)
class Machine:
    """Properties of the machine without the profiler that the trace does not show."""

    launch: float  # duration of a launch relative to the estimate
    # how much less than recorded a node of a graph takes, with the gap before it
    node_saved_ns: int
    queued_saved_ns: int  # the same of a kernel launched by itself
    # how much more than Costs.made_node_ns two of them are apart in a graph that is made of them
    node_ns: int
    # the gap between two nodes, the second of which may begin early, if the trace shows none
    early_ns: int
    crossing_ns: int  # extra, if the second waits for a node of another branch
    graph_call_ns: int  # a graph launch
    branches_ns: int  # extra, if the graph has branches
    # how much less than recorded a memset in a graph takes, with the gaps before and after it
    memset_saved_ns: int
    copied_ns: int  # how much shorter a copy is, and the gaps before and after it
    returned_ns: int  # how much later a wait returns
    restart_ns: int  # how much longer the first launch after a wait takes
    staging: float  # time for which a blocking copy blocks the host, relative to the recorded one
    own: float  # duration of the host's own work, relative to the recorded one
    locked: float  # share of a launch call in which no other thread of the process can launch


LIKELY = Machine(1.0, 220, 250, 0, -480, 300, 1_700, 1_000, 1_800, 1_500, 0, 0, 1.2, 1.0, 0.75)
MACHINES = (
    LIKELY,
    Machine(0.78, 320, 380, -100, -900, 100, 1_300, 0, 2_500, 2_500, -500, 0, 0.95, 0.95, 0.65),
    Machine(1.35, 100, 150, 180, -100, 700, 2_400, 7_000, 1_000, 0, 1_500, 10_000, 1.5, 1.05, 0.85),
)
"""The likeliest machine and the bounds. Without the profiler, nine programs that waited after each
inference took 3 to 32 µs longer than with a single wait, median 10; the replay gives 8, and up to
20 with a slow restart.
"""


_PYTHON = (0.5, 1.35)
"""Python's own work relative to the recorded one: three captures of one program had 450, 540 and
710 µs of it per pass, and five runs without the profiler took 745 to 909 µs per pass in total.
"""


_PYTHON_RESTART_NS = 40_000
"""The most by which the first launch after a wait takes longer where Python launches: without the
profiler, eight such programs took 6 to 84 us longer with a wait after each inference than with a
single one, median 32, of which 10 to 20 are the GPU's.
"""


def with_python(machines: tuple[Machine, ...]) -> tuple[Machine, ...]:
    """The machines for programs launched by Python: the slow one takes longer to launch again after
    it waited.
    """
    return tuple(
        replace(one, restart_ns=max(one.restart_ns, _PYTHON_RESTART_NS)) if one.restart_ns else one
        for one in machines
    )


_AROUND_CALLS_NS = 15_000
"""The part of the host's own work before a call that the profiler is assumed to have slowed,
because its work in the previous call leaves caches cold. The rest is the program's, and stays.
"""

_AROUND_REPEATS_NS = 30_000
"""The same where nothing marks enqueues: what TensorRT does before its first launch and after its
last lies there too.  In 37 captures of loops of Python that do nothing else, with ranges and
without, from the return of the wait to the first launch and from the last launch to the wait take
up to 29 us each, divided by the host's slowness^1.5 and without the profiler's part.
"""

_BETWEEN_GRAPHS, _BETWEEN_ENQUEUES, _BETWEEN_REPEATS = 0.75, 0.6, 0.35
"""How much of that is left without the profiler on a host that nothing slows down: a loop of
Python that launches a graph and waits for it takes 10 to 11.5 us beside the GPU's work, whatever
its own work took in the trace (5 to 29 us); one of C++, which has none, takes 5 to 6.  Where
nothing marks enqueues, a part of theirs lies between them.
"""

_SLOWER = 1.5  # power of the host's slowness by which that work took longer

_LAUNCH_OWN_NS, _WAIT_OWN_NS = 4_200, 1_500
"""What Python's own work takes around the launch of a graph that the program would make, and
around the wait for it: 28 graphs in a loop of Python take 12 us in the median beside the GPU's
work, those of C++ 7; what the trace of single launches has between its calls (5 to 72 us) does not
tell where in that range, and says more about nsys.
"""


@dataclass(frozen=True)
class Around:
    """The interpreter's own work around CUDA calls, and how much of it remains without the
    profiler.
    """

    within_ns: int  # so much of the work before a call is around it, the rest is the program's own
    left: float  # a share of that

    def left_ns(self, outside_ns: int) -> int:
        """How much of that host work before a call remains."""
        return round(min(outside_ns, self.within_ns) * self.left)

    def rest_ns(self, outside_ns: int) -> int:
        """The part of it that is the program's own work."""
        return max(outside_ns - self.within_ns, 0)


NOTHING_AROUND = Around(0, 1.0)
"""For programs without an interpreter."""


def around_calls(pace: HostPace, *, graphs: bool, repeats: bool) -> Around:
    """How long Python's own work between CUDA calls takes without the profiler."""
    left = _BETWEEN_GRAPHS if graphs else _BETWEEN_REPEATS if repeats else _BETWEEN_ENQUEUES
    slower = pace.slowness**_SLOWER
    within_ns = _AROUND_REPEATS_NS if repeats and not graphs else _AROUND_CALLS_NS
    return Around(round(within_ns * slower), float(left / slower))


def at_pace(machines: tuple[Machine, ...], pace: HostPace) -> tuple[Machine, ...]:
    """The machines for a trace whose host had this pace, without its slowdown."""
    return tuple(replace(one, launch=one.launch * pace.without) for one in machines)


def as_python(machines: tuple[Machine, ...]) -> tuple[Machine, ...]:
    """The machines for programs bound by Python, with wider bounds."""
    likely, *bounds = machines
    return (
        likely,
        *(replace(machine, own=own) for machine, own in zip(bounds, _PYTHON, strict=False)),
    )


def profiler_costs(trace: Trace, window: Window) -> ProfilerCosts:
    """The profiler's overhead, from its own activity in this trace."""
    calls = trace.api_calls
    rows = window.rows(calls)
    rows = rows[np.isin(calls.held_ints("thread").take(rows), window.threads)]
    own = rows[calls.held_text("api").take(rows).where(OWN_CALLS.__contains__)]
    length = calls.held_ints("end_ns").take(own) - calls.held_ints("start_ns").take(own)
    unit = float(np.median(length)) if len(length) >= _FEW else _unit_of_launches(trace, window)
    return ProfilerCosts(
        len(length) >= _FEW,
        round(_CALL * unit),
        round(_EDGE * unit),
        _empty_range(trace, window, round(_RANGE * unit)),
    )


def _unit_of_launches(trace: Trace, window: Window) -> float:
    """The time of one of the profiler's own calls on this host, estimated from launch calls."""
    calls = trace.api_calls
    rows = window.rows(calls)
    rows = rows[np.isin(calls.held_ints("thread").take(rows), window.threads)]
    rows = rows[calls.held_text("kind").take(rows).equals("launch")]
    if len(rows) < _FEW:
        return _OWN_CALL_NS
    took = float(
        np.median(calls.held_ints("end_ns").take(rows) - calls.held_ints("start_ns").take(rows))
    )
    return min(max(_LAUNCH_SLOPE * (took - _LAUNCH_LEAST_NS), _OWN_CALL_NS / 2), 2 * _OWN_CALL_NS)


def _empty_range(trace: Trace, window: Window, default: int) -> int:
    """The time between two range events with nothing in between, which is the cost of one."""
    ranges = trace.nvtx_ranges
    rows = window.rows(ranges)
    rows = rows[np.isin(ranges.held_ints("thread").take(rows), window.threads)]
    length = np.sort(
        ranges.held_ints("end_ns").take(rows) - ranges.held_ints("start_ns").take(rows)
    )
    shortest = length[: max(len(length) // 4, 1)]
    short = shortest[shortest < 1_000]
    return round(float(np.median(short))) if len(short) >= _FEW else default


def profiler_parts(
    events: IntArray, left: IntArray, right: IntArray, calls: IntArray, costs: ProfilerCosts
) -> IntArray:
    """The profiler's part of each stretch between two calls, from ``left`` to ``right``, without
    its own calls and rows.

    ``events`` are the sorted begins and ends of the thread's ranges, ``calls`` the sorted begins of
    its traced calls.
    """
    range_events = np.searchsorted(events, right) - np.searchsorted(events, left)
    traced = np.searchsorted(calls, right) - np.searchsorted(calls, left)
    parts: IntArray = range_events * costs.range_ns + (traced + 1) * costs.edge_ns
    return parts


def unprofiled(
    timeline: Timeline,
    profiler: ProfilerCosts,
    machine: Machine,
    *,
    unmarked: bool = False,
    around: Around = NOTHING_AROUND,
) -> Timeline:
    """The timeline as it would run without the profiler. ``unmarked``: nothing shows that the
    host's own work between launches is an engine's, so that it varies as work outside enqueues
    does. ``around``: see around_calls.
    """
    costs = _costs(timeline.costs, profiler, machine)
    if around.within_ns:
        costs = replace(costs, graph_own_ns=_LAUNCH_OWN_NS, wait_own_ns=_WAIT_OWN_NS)

    def step(old: Step) -> Step:
        own = old.own_ns - old.own_profiler_ns
        outside = round(own * old.outside_ns / old.own_ns) if old.own_ns else 0
        call = old.call_ns
        if old.graph:
            call = costs.graph_launch_ns + (round(machine.branches_ns) if _branches(old) else 0)
        elif old.kind == "sync":
            call = min(call, costs.idle_sync_ns)
        else:
            bare = max(call - old.call_profiler_ns, call // 2)
            call = (
                bare + round(min(bare, _STAGED_NS) * (machine.staging - 1))
                if old.kind == "block"
                else round(bare * machine.launch)
            )
        inside = round((own - outside) * (machine.own if unmarked else machine.launch))
        loop = round(around.left_ns(outside) * machine.own)
        outside = loop + round(around.rest_ns(outside) * machine.own)
        works = tuple(
            _work(work, machine, machine.node_saved_ns if old.graph else machine.queued_saved_ns)
            for work in old.works
        )
        if old.graph:  # its call returns before it begins
            works = tuple(work._replace(lead_ns=0) if work.submitted else work for work in works)
            works = _spaced(works, timeline.costs.wider_node_ns, machine.memset_saved_ns)
        return old._replace(
            own_ns=inside + outside,
            own_profiler_ns=0,
            outside_ns=outside,
            around_ns=loop,
            call_ns=call,
            call_profiler_ns=0,
            works=works,
        )

    return replace(each_step(timeline, step), costs=costs)


def _costs(costs: Costs, profiler: ProfilerCosts, machine: Machine) -> Costs:
    saved_more_ns = machine.queued_saved_ns - machine.node_saved_ns
    return replace(
        costs,
        graph_latency_ns=min(max(costs.latency_ns, _LATENCY_NS[0]), _LATENCY_NS[1]),
        graph_start_ns=MISSING,
        early_node_ns=machine.early_ns + saved_more_ns,
        early_kept_ns=saved_more_ns,
        node_ns=(
            costs.node_ns
            if costs.node_ns != MISSING
            else costs.made_node_ns + machine.node_ns + saved_more_ns
        ),
        crossing_ns=machine.crossing_ns,
        from_memset_ns=max(costs.from_memset_ns - machine.memset_saved_ns, _BEHIND_MEMSET_NS),
        to_copy_ns=max(costs.to_copy_ns - machine.copied_ns, costs.dispatch_ns),
        from_copy_ns=max(costs.from_copy_ns - machine.copied_ns, costs.dispatch_ns),
        return_ns=max(costs.return_ns + machine.returned_ns, 500),
        restart_ns=machine.restart_ns,
        idle_sync_ns=min(400, costs.idle_sync_ns),
        submit_ns=round(
            max(costs.submit_ns - profiler.call_ns, costs.submit_ns // 2) * machine.launch
        ),
        graph_launch_ns=machine.graph_call_ns,
    )


def _spaced(works: tuple[Work, ...], wider_ns: int, memset_ns: int) -> tuple[Work, ...]:
    """The nodes of a recorded graph at the distances they have without the profiler: each further
    from the node it waits for, and those that wait for a memset closer.
    """
    memsets = {work.number for work in works if work.kind == "memset"}
    if not memsets and not wider_ns:
        return works
    spaced = []
    for work in works:
        lead_ns = work.lead_ns + (wider_ns if work.after else 0)
        if memsets.intersection(work.after):
            lead_ns = max(lead_ns - memset_ns, min(lead_ns, _BEHIND_MEMSET_NS))
        spaced.append(work.moved(work.queue, work.after, lead_ns))
    return tuple(spaced)


def _branches(step: Step) -> bool:
    return len({work.queue for work in step.works}) > 1


def _work(work: Work, machine: Machine, saved_ns: int) -> Work:
    """Removes the cost of recording from GPU work. For kernels it is taken from the duration, so
    that the gaps stay as recorded.
    """
    if work.kind in COPIES:
        return work.lasting(max(work.dur_ns - machine.copied_ns, work.dur_ns // 2))
    if work.kind != "kernel":
        return work
    return work.lasting(max(work.dur_ns - saved_ns, work.dur_ns // 2))
