"""Learns from a trace what a launch, a dispatch and a synchronisation cost on that machine under
the profiler.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray
from nsysmap.trace.capture_facts import has_pytorch
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.model import Trace
from nsysmap.whatif.early import ATTRIBUTES, GENERATED, begins_early
from nsysmap.whatif.timeline import Costs
from nsysmap.whatif.window import Window

_DEFAULTS = Costs(
    latency_ns=2_000,
    graph_latency_ns=6_000,
    graph_start_ns=MISSING,
    dispatch_ns=1_150,
    early_ns=MISSING,
    to_copy_ns=4_500,
    from_copy_ns=1_700,
    node_ns=MISSING,
    made_node_ns=350,
    wider_node_ns=0,
    early_node_ns=MISSING,
    to_memset_ns=930,
    from_memset_ns=3_300,
    crossing_ns=300,
    return_ns=2_500,
    restart_ns=0,
    idle_sync_ns=1_000,
    submit_ns=4_300,
    graph_launch_ns=10_000,
)
"""Medians over the captures; of memsets in graphs over four with TensorRT and one with PyTorch,
which do not differ.
"""
# work whose launch returned this long before the GPU was free waited only for dispatch
_SLACK_NS = 4_000
# nodes of kernels that spin: 0.29 us apart in a graph with branches, 0.1 in one without
_BESIDE_NS = 190
_FEW = 5  # fewest examples for a median
_PLAIN_NS, WITH_ATTRIBUTES_NS = 200, 600
_WIDER_NS = 740  # for each node of a kernel that cuDNN generates
_NARROW_NS = (60, 165)
_MOSTLY_NARROW = 0.38  # share of the gaps
_PAIRED = 0.3  # kernels that do not begin before the end of the one before them
_LATE_NS = 20_000  # a longer wait had another cause


@dataclass(frozen=True)
class _Queued:
    """Consecutive work in one stream."""

    gap_ns: IntArray
    slack_ns: IntArray  # from the return of the second one's launch call to the end of the first
    latency_ns: IntArray  # from the return of the second one's launch call to its start
    start_ns: IntArray  # from the begin of the second one's launch call to its start
    first_copy: IntArray
    second_copy: IntArray
    early: IntArray  # the second may begin before the end of the first
    first_memset: IntArray
    second_memset: IntArray
    launch: IntArray  # of the second
    same_launch: IntArray
    branches: IntArray  # the second's launch call launched work of several streams
    graph: IntArray  # the second was launched by a graph launch


def calibrate(trace: Trace, window: Window) -> Costs:
    """The costs as recorded in the window, under the profiler; a default for each cost that the
    trace does not show.
    """
    neighbours = _neighbours(trace, window)
    late = (
        (neighbours.slack_ns < 0)
        & (neighbours.same_launch == 0)
        & (neighbours.second_copy == 0)
        & (neighbours.latency_ns < _LATE_NS)
    )
    waiting = (
        (neighbours.slack_ns > _SLACK_NS)
        & (neighbours.same_launch == 0)
        & (neighbours.gap_ns < _LATE_NS)
    )
    memsets = (neighbours.first_memset == 1) | (neighbours.second_memset == 1)
    kernels = (
        waiting
        & (neighbours.first_copy == 0)
        & (neighbours.second_copy == 0)
        & (neighbours.early == 0)
        & ~memsets
    )
    nodes = neighbours.same_launch == 1
    first_nodes = _first_nodes(neighbours, late & (neighbours.graph == 1))
    returned, idle = _sync_costs(trace, window)
    calls = _window_calls(trace, window)
    kind = trace.api_calls.held_text("kind").take(calls)
    length = trace.api_calls.held_ints("end_ns").take(calls) - trace.api_calls.held_ints(
        "start_ns"
    ).take(calls)
    return Costs(
        latency_ns=_median(
            neighbours.latency_ns[late & (neighbours.graph == 0)], _DEFAULTS.latency_ns
        ),
        graph_latency_ns=_median(neighbours.latency_ns[first_nodes], _DEFAULTS.graph_latency_ns),
        graph_start_ns=_from_the_begin(
            neighbours.latency_ns[first_nodes], neighbours.start_ns[first_nodes]
        ),
        dispatch_ns=_median(neighbours.gap_ns[kernels], _DEFAULTS.dispatch_ns),
        early_ns=_early(neighbours.gap_ns[waiting & (neighbours.early == 1)]),
        to_copy_ns=_median(
            neighbours.gap_ns[waiting & (neighbours.second_copy == 1)], _DEFAULTS.to_copy_ns
        ),
        from_copy_ns=_median(
            neighbours.gap_ns[waiting & (neighbours.first_copy == 1)], _DEFAULTS.from_copy_ns
        ),
        node_ns=_node_ns(neighbours, nodes & ~memsets),
        made_node_ns=_made_node_ns(trace, window),
        wider_node_ns=_wider_node_ns(trace, window, neighbours, nodes & ~memsets),
        early_node_ns=_DEFAULTS.early_node_ns,
        to_memset_ns=_median(
            neighbours.gap_ns[nodes & (neighbours.second_memset == 1)], _DEFAULTS.to_memset_ns
        ),
        from_memset_ns=_median(
            neighbours.gap_ns[nodes & (neighbours.first_memset == 1)], _DEFAULTS.from_memset_ns
        ),
        crossing_ns=_DEFAULTS.crossing_ns,
        return_ns=_median(returned, _DEFAULTS.return_ns),
        restart_ns=0,
        idle_sync_ns=_median(idle, _DEFAULTS.idle_sync_ns),
        submit_ns=_median(length[kind.equals("launch")], _DEFAULTS.submit_ns),
        graph_launch_ns=_median(length[kind.equals("graph-launch")], _DEFAULTS.graph_launch_ns),
    )


def _median(values: IntArray, default: int) -> int:
    return round(float(np.median(values))) if len(values) >= _FEW else default


def _node_ns(neighbours: _Queued, nodes: BoolArray) -> int:
    """The gap between two nodes in one branch of a graph: measured in graphs without branches if
    possible, because it is longer in others.
    """
    alone = neighbours.gap_ns[nodes & (neighbours.branches == 0)]
    if len(alone) >= _FEW:
        return _median(alone, _DEFAULTS.node_ns)
    beside = _median(neighbours.gap_ns[nodes], MISSING)
    return max(beside - _BESIDE_NS, 60) if beside != MISSING else _DEFAULTS.node_ns


def _made_node_ns(trace: Trace, window: Window) -> int:
    """The distance at which two of these kernels would be recorded in a graph, plus the extra time
    by which a stream's kernels are recorded longer than graph nodes.

    It is what the launches ask for that shows in a trace: where some are launched with attributes,
    as TensorRT for RTX does (programmatic dependent launch), 26 graphs take 0.38 us a node beyond
    the kernels' own time without the profiler; where none is, 0.02 (eight programs of kernels that
    spin).  PyTorch's graphs, some of whose products are launched with attributes, are recorded as
    close as the latter.
    """
    launch = trace.kernels.held_ints("launch").take(window.launched(trace.kernels))
    asked = trace.api_calls.held_text("api").take(launch).where(ATTRIBUTES.__contains__)
    return WITH_ATTRIBUTES_NS if asked.any() and not has_pytorch(trace) else _PLAIN_NS


def _wider_node_ns(trace: Trace, window: Window, neighbours: _Queued, nodes: BoolArray) -> int:
    """How much further apart than recorded the nodes of the trace's graphs are without the
    profiler.

    Of one graph of TensorRT for RTX, nodes were recorded 0.42 us apart in four captures and 0.1 in
    two; without the profiler it took the same time everywhere, that of the wider gaps.  What makes
    them narrow is in no trace: of 45 graphs of such engines 34 have gaps from 0.25 us on, and ten
    of 0.06 to 0.16, recorded by two programs in which several contexts had run.  What is missing
    is in proportion to the kernels that cuDNN generates (18 to 71 % of those of 15 such graphs):
    0.74 us for each of them, and nothing for the others.  Graphs of PyTorch's kernels and of
    kernels that only spin have narrow gaps with the profiler and without.
    """
    gap = neighbours.gap_ns[nodes]
    rows = window.launched(trace.kernels)
    if len(gap) < max(_FEW, _PAIRED * len(rows)) or neighbours.branches[nodes].any():
        return 0
    low, high = _NARROW_NS
    if float(np.mean((gap >= low) & (gap <= high))) < _MOSTLY_NARROW:
        return 0
    name = trace.kernels.text("name")
    generated = np.array([GENERATED in value for value in name.values] + [False], np.bool_)
    return round(_WIDER_NS * float(np.mean(generated[name.codes[rows].astype(np.int64)])))


def _early(gap: IntArray) -> int:
    """The usual gap before kernels that may begin early, if they usually do; otherwise the trace
    does not show how early they would begin.
    """
    usual = _median(gap, MISSING)
    return usual if usual < 0 else MISSING


def _first_nodes(neighbours: _Queued, late: BoolArray) -> IntArray:
    """The first node of each graph launch that no earlier work of its stream delayed; the first
    nodes of other branches may wait.
    """
    rows = np.flatnonzero(late)
    rows = rows[np.argsort(neighbours.latency_ns[rows], kind="stable")]
    found: IntArray = rows[np.unique(neighbours.launch[rows], return_index=True)[1]]
    return found


def _from_the_begin(latency: IntArray, start: IntArray) -> int:
    """The time from the begin of a graph launch call to its first node, if the node begins before
    the call returns; otherwise MISSING.

    The profiler makes such a call take long: seen 35 to 95 us for 42 to 74 nodes, which begin 12 to
    25 us after its begin in some graphs, 5 us after its return in others.
    """
    return (
        _median(start, MISSING)
        if len(latency) >= _FEW and float(np.median(latency)) < 0
        else MISSING
    )


def _window_calls(trace: Trace, window: Window) -> IntArray:
    rows = window.rows(trace.api_calls)
    return rows[np.isin(trace.api_calls.held_ints("thread").take(rows), window.threads)]


def _neighbours(trace: Trace, window: Window) -> _Queued:
    """Kernels, copies and memsets of the window that follow each other in a stream, both with a
    launch call.
    """
    parts = []
    for kind, table in enumerate((trace.kernels, trace.memcpys, trace.memsets)):
        rows = window.launched(table)
        columns = [
            table.held_ints(name).take(rows)
            for name in (
                "start_ns",
                "end_ns",
                "launch",
                "launch_start_ns",
                "launch_end_ns",
                "stream",
            )
        ]
        early = (
            begins_early(trace, rows).astype(np.int64)
            if kind == 0
            else np.zeros(len(rows), np.int64)
        )
        parts.append([*columns, np.full(len(rows), kind, np.int64), early])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[0], columns[5]))
    start, end, launch, call_start, call_end, stream, kinds, early = (
        values[order] for values in columns
    )
    lanes = np.unique(np.stack([launch, stream]), axis=1)
    branching = lanes[0][1:][lanes[0][1:] == lanes[0][:-1]]
    pair = np.flatnonzero(
        (stream[1:] == stream[:-1]) & ((start[1:] >= end[:-1]) | (early[1:] == 1))
    )
    following = pair + 1
    return _Queued(
        gap_ns=start[following] - end[pair],
        slack_ns=end[pair] - call_end[following],
        latency_ns=start[following] - call_end[following],
        start_ns=start[following] - call_start[following],
        first_copy=(kinds[pair] == 1).astype(np.int64),
        second_copy=(kinds[following] == 1).astype(np.int64),
        early=early[following],
        first_memset=(kinds[pair] == 2).astype(np.int64),
        second_memset=(kinds[following] == 2).astype(np.int64),
        launch=launch[following],
        same_launch=(launch[following] == launch[pair]).astype(np.int64),
        branches=np.isin(launch[following], branching).astype(np.int64),
        graph=trace.api_calls.held_text("kind")
        .take(launch[following])
        .equals("graph-launch")
        .astype(np.int64),
    )


def _sync_costs(trace: Trace, window: Window) -> tuple[IntArray, IntArray]:
    """For the window's syncs that waited, the time from the last end of GPU work to their return;
    for the others, their duration.
    """
    calls = trace.api_calls
    rows = _window_calls(trace, window)
    rows = rows[calls.held_text("kind").take(rows).equals("sync")]
    ended = [table.take(window.rows(table, "end_ns")) for table in gpu_work(trace)]
    ends = np.sort(
        np.concatenate(
            [table.ints("end_ns")[table.ints("process") == window.process] for table in ended]
        )
    )
    start, end = calls.held_ints("start_ns").take(rows), calls.held_ints("end_ns").take(rows)
    if len(ends) == 0 or len(rows) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    last = np.searchsorted(ends, end, side="right") - 1
    last_end = np.where(last >= 0, ends[np.maximum(last, 0)], np.int64(MISSING))
    waited = last_end > start
    return (end - last_end)[waited], (end - start)[~waited]
