"""Learns from a trace the cost of a launch, a dispatch and a synchronisation on that machine, under the profiler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import MISSING, IntArray
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.model import Trace
from nsysmap.whatif.timeline import Costs
from nsysmap.whatif.window import Window

_DEFAULTS = Costs(
    latency_ns=2_000,
    graph_latency_ns=6_000,
    dispatch_ns=1_050,
    to_copy_ns=4_500,
    from_copy_ns=1_700,
    node_ns=280,
    crossing_ns=300,
    return_ns=2_500,
    restart_ns=0,
    idle_sync_ns=1_000,
    submit_ns=4_300,
    graph_launch_ns=10_000,
)
"""Medians over the captures."""
_SLACK_NS = 4_000  # work whose launch returned this long before the GPU was free waited only for dispatch
_FEW = 5  # fewest examples for a median
_LATE_NS = 20_000  # a longer wait had another cause


@dataclass(frozen=True)
class _Queued:
    """Consecutive work in one stream."""

    gap_ns: IntArray
    slack_ns: IntArray  # from the return of the second one's launch call to the end of the first
    latency_ns: IntArray  # from the return of the second one's launch call to its start
    first_copy: IntArray
    second_copy: IntArray
    same_launch: IntArray
    graph: IntArray  # the second was launched by a graph launch


def calibrate(trace: Trace, window: Window) -> Costs:
    """The costs as recorded in the window, with the profiler; a default for those that the trace does not show."""
    neighbours = _neighbours(trace, window)
    late = (neighbours.slack_ns < 0) & (neighbours.same_launch == 0) & (neighbours.second_copy == 0) & (neighbours.latency_ns < _LATE_NS)
    waiting = (neighbours.slack_ns > _SLACK_NS) & (neighbours.same_launch == 0) & (neighbours.gap_ns < _LATE_NS)
    kernels = waiting & (neighbours.first_copy == 0) & (neighbours.second_copy == 0)
    returned, idle = _sync_costs(trace, window)
    calls = _window_calls(trace, window)
    kind = trace.api_calls.held_text("kind").take(calls)
    length = trace.api_calls.held_ints("end_ns").take(calls) - trace.api_calls.held_ints("start_ns").take(calls)
    return Costs(
        latency_ns=_median(neighbours.latency_ns[late & (neighbours.graph == 0)], _DEFAULTS.latency_ns),
        graph_latency_ns=_median(neighbours.latency_ns[late & (neighbours.graph == 1)], _DEFAULTS.graph_latency_ns),
        dispatch_ns=_median(neighbours.gap_ns[kernels], _DEFAULTS.dispatch_ns),
        to_copy_ns=_median(neighbours.gap_ns[waiting & (neighbours.second_copy == 1)], _DEFAULTS.to_copy_ns),
        from_copy_ns=_median(neighbours.gap_ns[waiting & (neighbours.first_copy == 1)], _DEFAULTS.from_copy_ns),
        node_ns=_median(neighbours.gap_ns[neighbours.same_launch == 1], _DEFAULTS.node_ns),
        crossing_ns=_DEFAULTS.crossing_ns,
        return_ns=_median(returned, _DEFAULTS.return_ns),
        restart_ns=0,
        idle_sync_ns=_median(idle, _DEFAULTS.idle_sync_ns),
        submit_ns=_median(length[kind.equals("launch")], _DEFAULTS.submit_ns),
        graph_launch_ns=_median(length[kind.equals("graph-launch")], _DEFAULTS.graph_launch_ns),
    )


def _median(values: IntArray, default: int) -> int:
    return round(float(np.median(values))) if len(values) >= _FEW else default


def _window_calls(trace: Trace, window: Window) -> IntArray:
    rows = window.rows(trace.api_calls)
    return rows[np.isin(trace.api_calls.held_ints("thread").take(rows), window.threads)]


def _neighbours(trace: Trace, window: Window) -> _Queued:
    """Kernels, copies and memsets of the window that follow each other in a stream, both with a launch call."""
    parts = []
    for copy, table in ((0, trace.kernels), (1, trace.memcpys), (0, trace.memsets)):
        rows = window.launched(table)
        columns = [table.held_ints(name).take(rows) for name in ("start_ns", "end_ns", "launch", "launch_end_ns", "stream")]
        parts.append([*columns, np.full(len(rows), copy, np.int64)])
    start, end, launch, call_end, stream, copy_flag = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((start, stream))
    start, end, launch, call_end, stream, copy_flag = (values[order] for values in (start, end, launch, call_end, stream, copy_flag))
    pair = np.flatnonzero((stream[1:] == stream[:-1]) & (start[1:] >= end[:-1]))
    following = pair + 1
    return _Queued(
        gap_ns=start[following] - end[pair],
        slack_ns=end[pair] - call_end[following],
        latency_ns=start[following] - call_end[following],
        first_copy=copy_flag[pair],
        second_copy=copy_flag[following],
        same_launch=(launch[following] == launch[pair]).astype(np.int64),
        graph=trace.api_calls.held_text("kind").take(launch[following]).equals("graph-launch").astype(np.int64),
    )


def _sync_costs(trace: Trace, window: Window) -> tuple[IntArray, IntArray]:
    """For the window's syncs that waited, the time from the last end of GPU work to their return; for the others, their duration."""
    calls = trace.api_calls
    rows = _window_calls(trace, window)
    rows = rows[calls.held_text("kind").take(rows).equals("sync")]
    ended = [table.take(window.rows(table, "end_ns")) for table in gpu_work(trace)]
    ends = np.sort(np.concatenate([table.ints("end_ns")[table.ints("process") == window.process] for table in ended]))
    start, end = calls.held_ints("start_ns").take(rows), calls.held_ints("end_ns").take(rows)
    if len(ends) == 0 or len(rows) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    last = np.searchsorted(ends, end, side="right") - 1
    last_end = np.where(last >= 0, ends[np.maximum(last, 0)], np.int64(MISSING))
    waited = last_end > start
    return (end - last_end)[waited], (end - start)[~waited]
