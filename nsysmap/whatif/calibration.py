"""Learns from a trace what a launch, a dispatch, a synchronisation and the profiler itself cost on that machine.

What the trace does not show comes from measurements on an H200 (driver 580, CUDA 13.0; ``benchmarks/launch_costs.cu``, kernels that
spin for a known time, with and without CUPTI), which agree with the un-profiled timings that belong to the captures:

- CUPTI reports a kernel 0.55 to 0.64 us longer than it spins; a node of a graph costs 0.54 to 0.59 us more than it spins without
  a profiler.  So a graph takes, without a profiler, about the sum of its kernels' profiled times.
- In a stream a queued kernel costs 1.3 to 1.4 us more than it spins without, 1.9 with CUPTI and 1.5 to 1.7 with nsys: without, the
  kernel is 0.5 us shorter and the gap before it 0.1 to 0.3 us longer (the un-profiled asynchronous timings of five engines).
- A launch call takes 3.4 to 4.9 us without and 5.3 to 5.6 with CUPTI; of a graph launch 1.3 to 2.1 us, whatever the graph's size, where
  tracing its nodes makes it 48 us.
- One synchronised graph launch takes 5.4 to 6.1 us beside its nodes: call, way to the GPU, return from the synchronisation.
- Two threads that launch into two streams of one context take 1.10 to 1.12 times as long as one alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nsysmap.base.table import MISSING, IntArray
from nsysmap.trace.model import Trace
from nsysmap.whatif.timeline import PROFILERS_OWN_CALLS, Costs, ProfilerCosts, Window

KERNEL_EXCESS_NS = 500  # a fact known of nsys, and the measurement above
NODE_EXCESS_NS = 620  # the same kernels are 0.12 us longer still where they are traced as nodes of a graph (bert_trt10, bert_trt103)
NODE_GAP_NS = 500
GRAPH_CALL_NS = 1_700
CALL_EXCESS_NS = 1_150  # to a launch ("about 1 us" is known of nsys), where the profiler's own call takes …
OWN_CALL_NS = 90  # … this long; on a slower host (140 to 170) both grow together: ratio fitted over 9 captures and the un-profiled timings
_DEFAULTS = Costs(
    latency_ns=2_000,
    graph_latency_ns=6_000,
    dispatch_ns=1_050,
    to_copy_ns=4_500,
    from_copy_ns=1_700,
    node_ns=NODE_GAP_NS,
    return_ns=2_500,
    idle_sync_ns=1_000,
    submit_ns=4_300,
    graph_launch_ns=10_000,
)  # medians over the captures
_IDLE_SYNC_NS = 400
_SLACK_NS = 4_000  # work whose launch returned this long before the GPU was free waited for dispatch alone
_FEW = 5  # fewer examples than that do not make a median


@dataclass(frozen=True)
class Machine:
    """What the trace cannot tell of the machine without the profiler."""

    launch: float  # how long a launch takes beside the estimate
    dispatch_extra_ns: int  # by how much longer the gap before a queued kernel is than under the profiler
    staging: float  # how long a blocking copy holds the host beside what was recorded
    own: float  # how long the host's own work takes beside what was recorded


LIKELY = Machine(1.0, 200, 1.0, 1.0)
MACHINES = (LIKELY, Machine(0.75, 100, 0.9, 0.95), Machine(1.35, 350, 1.25, 1.05))
"""The likeliest and the bounds.  On one H200 machine a launch took 3.4 to 4.9 us from one minute to the next, in the un-profiled runs of
the captured programs 3.3 to 5.1; the gap was 0.1 to 0.35 us longer; two pageable copies of the same size cost these programs 167 to 240 us,
recorded were 170; 861 us of recorded host work were 882 without the profiler."""


@dataclass(frozen=True)
class _Queued:
    """Neighbours in one stream."""

    gap_ns: IntArray
    slack_ns: IntArray  # from the return of the second's launch call to the end of the first
    latency_ns: IntArray  # from the return of the second's launch call to its start
    call_ns: IntArray  # length of that call
    first_copy: IntArray
    second_copy: IntArray
    same_launch: IntArray
    graph: IntArray  # the second was launched by a graph launch


def calibrate(trace: Trace, window: Window) -> Costs:
    """The costs as recorded in the window, under the profiler; a default where the trace does not show one."""
    neighbours = _neighbours(trace, window)
    late = (neighbours.slack_ns < 0) & (neighbours.same_launch == 0) & (neighbours.second_copy == 0) & (neighbours.latency_ns < 20_000)
    waiting = (neighbours.slack_ns > _SLACK_NS) & (neighbours.same_launch == 0) & (neighbours.gap_ns < 20_000)
    kernels = waiting & (neighbours.first_copy == 0) & (neighbours.second_copy == 0)
    returned, idle = _sync_costs(trace, window)
    calls = _window_calls(trace, window)
    kind = trace.api_calls.text("kind").take(calls)
    length = (trace.api_calls.ints("end_ns") - trace.api_calls.ints("start_ns"))[calls]
    return Costs(
        latency_ns=_median(neighbours.latency_ns[late & (neighbours.graph == 0)], _DEFAULTS.latency_ns),
        graph_latency_ns=_median(neighbours.latency_ns[late & (neighbours.graph == 1)], _DEFAULTS.graph_latency_ns),
        dispatch_ns=_median(neighbours.gap_ns[kernels], _DEFAULTS.dispatch_ns),
        to_copy_ns=_median(neighbours.gap_ns[waiting & (neighbours.second_copy == 1)], _DEFAULTS.to_copy_ns),
        from_copy_ns=_median(neighbours.gap_ns[waiting & (neighbours.first_copy == 1)], _DEFAULTS.from_copy_ns),
        node_ns=_median(neighbours.gap_ns[neighbours.same_launch == 1], _DEFAULTS.node_ns),
        return_ns=_median(returned, _DEFAULTS.return_ns),
        idle_sync_ns=_median(idle, _DEFAULTS.idle_sync_ns),
        submit_ns=_median(length[kind.equals("launch")], _DEFAULTS.submit_ns),
        graph_launch_ns=_median(length[kind.equals("graph-launch")], _DEFAULTS.graph_launch_ns),
    )


def profiler_costs(trace: Trace, window: Window) -> ProfilerCosts:
    """What the profiler adds, from its own traces in this one: its own calls, and ranges that hold nothing."""
    calls = trace.api_calls
    rows = _window_calls(trace, window)
    names = calls.text("api").take(rows)
    own = np.isin(names.codes, [code for code, name in enumerate(names.values) if name in PROFILERS_OWN_CALLS])
    start, end, thread = calls.ints("start_ns")[rows], calls.ints("end_ns")[rows], calls.ints("thread")[rows]
    own_length = _median((end - start)[own], OWN_CALL_NS)
    order = np.lexsort((start, thread))
    after_own = np.flatnonzero(own[order][:-1] & (thread[order][1:] == thread[order][:-1])) if len(order) else order
    edges = start[order][after_own + 1] - end[order][after_own] if len(after_own) else np.zeros(0, np.int64)
    slowness = float(np.clip(own_length / OWN_CALL_NS, 0.7, 2.2))
    return ProfilerCosts(
        call_ns=round(CALL_EXCESS_NS * slowness),
        edge_ns=_median(edges[edges < 5_000], round(160 * slowness)),
        range_ns=_empty_range(trace, window, round(130 * slowness)),
        kernel_ns=KERNEL_EXCESS_NS,
    )


def without_profiler(costs: Costs, profiler: ProfilerCosts, machine: Machine) -> Costs:
    """The costs as they would be in a run that is not profiled."""
    return replace(
        costs,
        graph_latency_ns=costs.latency_ns,
        dispatch_ns=costs.dispatch_ns + machine.dispatch_extra_ns,
        node_ns=NODE_GAP_NS,
        idle_sync_ns=min(_IDLE_SYNC_NS, costs.idle_sync_ns),
        submit_ns=round(max(costs.submit_ns - profiler.call_ns, costs.submit_ns // 2) * machine.launch),
        graph_launch_ns=round(GRAPH_CALL_NS * machine.launch),
    )


def _median(values: IntArray, default: int) -> int:
    return round(float(np.median(values))) if len(values) >= _FEW else default


def _window_calls(trace: Trace, window: Window) -> IntArray:
    calls = trace.api_calls
    start = calls.ints("start_ns")
    return np.flatnonzero((start >= window.begin_ns) & (start < window.end_ns) & np.isin(calls.ints("thread"), window.threads))


def _neighbours(trace: Trace, window: Window) -> _Queued:
    """Kernels, copies and memsets of the window that follow each other in a stream, both with a launch call."""
    parts = []
    for copy, table in ((0, trace.kernels), (1, trace.memcpys), (0, trace.memsets)):
        mine = (table.ints("process") == window.process) & (table.ints("device") == window.device) & (table.ints("launch") >= 0)
        mine &= (table.ints("launch_start_ns") >= window.begin_ns) & (table.ints("launch_start_ns") < window.end_ns)
        rows = np.flatnonzero(mine)
        columns = [table.ints(name)[rows] for name in ("start_ns", "end_ns", "launch", "launch_start_ns", "launch_end_ns", "stream")]
        parts.append([*columns, np.full(len(rows), copy, np.int64)])
    start, end, launch, call_start, call_end, stream, copy_flag = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((start, stream))
    start, end, launch, call_start, call_end, stream, copy_flag = (
        values[order] for values in (start, end, launch, call_start, call_end, stream, copy_flag)
    )
    pair = np.flatnonzero((stream[1:] == stream[:-1]) & (start[1:] >= end[:-1]))
    following = pair + 1
    return _Queued(
        gap_ns=start[following] - end[pair],
        slack_ns=end[pair] - call_end[following],
        latency_ns=start[following] - call_end[following],
        call_ns=(call_end - call_start)[following],
        first_copy=copy_flag[pair],
        second_copy=copy_flag[following],
        same_launch=(launch[following] == launch[pair]).astype(np.int64),
        graph=trace.api_calls.text("kind").take(launch[following]).equals("graph-launch").astype(np.int64),
    )


def _sync_costs(trace: Trace, window: Window) -> tuple[IntArray, IntArray]:
    """Of the window's syncs that waited: from the last end of GPU work to their return; of the others: how long they took."""
    calls = trace.api_calls
    rows = _window_calls(trace, window)
    rows = rows[calls.text("kind").take(rows).equals("sync")]
    ends = [table.ints("end_ns")[table.ints("process") == window.process] for table in (trace.kernels, trace.memcpys, trace.memsets)]
    ends.append(trace.cuda_graph_traces.ints("end_ns"))
    finished = np.sort(np.concatenate(ends))
    start, end = calls.ints("start_ns")[rows], calls.ints("end_ns")[rows]
    if len(finished) == 0 or len(rows) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    last = np.searchsorted(finished, end, side="right") - 1
    last_end = np.where(last >= 0, finished[np.maximum(last, 0)], np.int64(MISSING))
    waited = last_end > start
    return (end - last_end)[waited], (end - start)[~waited]


def _empty_range(trace: Trace, window: Window, default: int) -> int:
    """The time between two range events with nothing else between them: what one costs."""
    ranges = trace.nvtx_ranges
    mine = (
        np.isin(ranges.ints("thread"), window.threads)
        & (ranges.ints("start_ns") >= window.begin_ns)
        & (ranges.ints("end_ns") < window.end_ns)
    )
    length = (ranges.ints("end_ns") - ranges.ints("start_ns"))[mine]
    shortest = np.sort(length)[: max(len(length) // 4, 1)]
    short = shortest[shortest < 1_000]
    return _median(short, default)
