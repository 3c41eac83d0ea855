"""Finds the idle time of each GPU and gives every nanosecond of it one cause, with the host row that proves it.

A hole is the time between two pieces of GPU work of one device (kernels, copies, memsets, hidden graph runs; all processes
and streams together).  What ends it is the next piece's launch call, so the thread of that call is asked:

- The call had returned when the GPU went idle: the work was queued in time and the hole is ``dispatch``, the hardware's own
  1 to 2 us.  Between nodes of one graph launch likewise; before the first node of the next graph launch it is ``graph``.
- Else the part from the call's begin (or from where the GPU went idle, if later) to the start on the GPU is ``launch``, ``graph``
  for a graph launch, ``copy`` for a copy that holds the host.  Where the nodes of the graph are traced and none began before the
  call returned, the call is ``profiler`` but for what a graph launch takes without.
- The part before the call's begin is cut where the thread turned to something else: see :meth:`nsysmap.timing.idle_causes.Host.causes`.

So where a program synchronises once per inference, the hole between two inferences is split in up to three: ``sync`` from the
GPU's last work to the return of the blocking call, ``host`` until the next enqueue begins, ``launch`` from there on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsysmap.base.groups import distinct, sorted_order
from nsysmap.base.intervals import Spans, holes
from nsysmap.base.result_schema import GAPS
from nsysmap.base.table import MISSING, BoolArray, IntArray, Table, Text, Values, repeated, stacked, taken_values, uniform
from nsysmap.timing.idle_causes import CAUSES, COPY, DISPATCH, GRAPH, LAUNCH, PROFILER, UNKNOWN, Host, Pieces, joined
from nsysmap.trace.copies import hold_the_host
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace

SLOW_DISPATCH_NS = 20_000
"""Queued work starts within this; measured over all captures the longest was 7.6 us (a memset node of a graph), but for a switch
between two processes (135 us, the time slice).  A longer wait is for something the trace does not show, and is ``unknown``."""

GRAPH_CALL_NS = 2_000
"""A graph launch without the profiler takes 1.3 to 2.4 us; with its nodes traced, 0.8 to 1.6 us a node (eight captures)."""

_AT_ONCE = 1 << 18  # holes: what is worked out of one takes some hundred bytes
_NO_LAUNCH = "its launch call is not in the trace"
_HELD_BACK = "queued in time, then held back: another stream, a dependency or a lock"
_TIME_SLICE = "queued in time; the GPU switched from one process to another"
_NODES_TRACED = "profiler: traces each node of the CUDA graph"


@dataclass(frozen=True)
class _Work:
    """All GPU work, by device and start."""

    device: IntArray
    start_ns: IntArray
    end_ns: IntArray
    process: IntArray
    launch: IntArray
    correlation: IntArray
    kernel: IntArray  # kernel_id, MISSING for copies and memsets
    graph: BoolArray  # launched by a graph launch
    node: BoolArray  # a node of a graph whose nodes are traced
    holding: BoolArray  # a copy that holds the host


@dataclass(frozen=True)
class _Idle:
    """Holes; one row a hole."""

    start_ns: IntArray
    end_ns: IntArray
    before: IntArray  # row in _Work
    after: IntArray

    def part(self, first: int) -> _Idle:
        return _Idle(*(getattr(self, name)[first : first + _AT_ONCE] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class _Known:
    """All that the gaps are made of."""

    trace: Trace
    inferences: Table
    work: _Work
    kernels: IntArray  # rows in _Work that are kernels
    inference_of: IntArray  # of each kernel
    layer_of: Text
    host: Host


def find_gaps(trace: Trace, inferences: Table, membership: Table, mapping: Table | None) -> Table:
    """Every hole of every device from its first to its last GPU work, cut where the cause changes (GAPS, by device and time).

    The durations add up to all idle time, to the nanosecond.
    """
    work = _gpu_work(trace)
    idle = _all_holes(work)
    layer = mapping.text("layer") if mapping is not None else Text.same(None, len(trace.kernels))
    kernels = np.flatnonzero(work.kernel >= 0)
    known = _Known(trace, inferences, work, kernels, membership.ints("inference"), layer, Host.of(trace, inferences))
    gaps = stacked(_gaps(known, idle.part(first)) for first in range(0, max(len(idle.after), 1), _AT_ONCE))
    return gaps.with_columns(GAPS, {"gap_id": np.arange(len(gaps))})


def _gaps(known: _Known, idle: _Idle) -> Table:
    """The gaps that these holes are; numbered by themselves."""
    work, inferences = known.work, known.inferences
    pieces = _pieces(work, idle, known.host)
    after = idle.after[pieces.owner]
    launch = work.launch[after]
    previous = np.searchsorted(known.kernels, after, side="left") - 1
    last_kernel, next_kernel = _kernel_at(known, previous, work.device[after]), _kernel_at(known, previous + 1, work.device[after])
    return Table(
        GAPS,
        {
            "gap_id": np.arange(len(after)),
            "start_ns": pieces.start_ns,
            "end_ns": pieces.end_ns,
            "dur_ns": pieces.end_ns - pieces.start_ns,
            "device": work.device[after],
            "before_kernel": last_kernel,
            "after_kernel": next_kernel,
            "inference": _inference(inferences, gather(known.inference_of, next_kernel), pieces),
            "cause": Text(pieces.cause.astype(np.int32), CAUSES),
            "evidence": Text(pieces.evidence.astype(np.int32), (*known.host.labels, _NO_LAUNCH, _HELD_BACK, _TIME_SLICE, _NODES_TRACED)),
            "evidence_start_ns": pieces.proof_start_ns,
            "evidence_end_ns": pieces.proof_end_ns,
            "pid": (work.process[after] >> 24) & 0xFFFFFF,
            "thread": gather(known.trace.api_calls.ints("thread"), launch),
            "before_layer": known.layer_of.take(last_kernel),
            "after_layer": known.layer_of.take(next_kernel),
        },
    )


def _gpu_work(trace: Trace) -> _Work:
    tables = [table for table in gpu_work(trace) if len(table)] or [trace.kernels]
    device, start = (_together([table.ints(name) for table in tables]) for name in ("device", "start_ns"))
    rows = sorted_order(device, start)
    kind = trace.api_calls.text("kind")
    graph_launch = np.flatnonzero(kind.equals("graph-launch"))

    def number(table: Table) -> IntArray:
        return np.arange(len(table)) if table is trace.kernels else repeated(np.int64(MISSING), len(table))

    def by_graph(table: Table) -> BoolArray:
        replayed = table is trace.cuda_graph_traces or _node(table) != MISSING
        return replayed | (np.isin(table.ints("launch"), graph_launch) if len(graph_launch) else np.zeros(len(table), np.bool_))

    def traced(table: Table) -> BoolArray:
        return repeated(np.bool_(False), len(table)) if table is trace.cuda_graph_traces else _node(table) != MISSING

    def holding(table: Table) -> BoolArray:
        return hold_the_host(table) & (_node(table) == MISSING) if table is trace.memcpys else repeated(np.bool_(False), len(table))

    def column(name: str) -> IntArray:
        return taken_values(_together([table.ints(name) for table in tables]), rows)

    return _Work(
        device=taken_values(device, rows),
        start_ns=taken_values(start, rows),
        end_ns=column("end_ns"),
        process=column("process"),
        launch=column("launch"),
        correlation=column("correlation"),
        kernel=taken_values(_together([number(table) for table in tables]), rows),
        graph=taken_values(_together([by_graph(table) for table in tables]), rows),
        node=taken_values(_together([traced(table) for table in tables]), rows),
        holding=taken_values(_together([holding(table) for table in tables]), rows),
    )


def _node(table: Table) -> IntArray:
    return table.ints("graph_node_id")


def _together(parts: list[NDArray[Values]]) -> NDArray[Values]:
    """The columns one behind the other, stored once where all hold the same value."""
    if all(uniform(part) and part[0] == parts[0][0] for part in parts):  # type: ignore[arg-type]  # of one of the types that a column has
        return repeated(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


def _all_holes(work: _Work) -> _Idle:
    parts = []
    for device in distinct(work.device).tolist():
        first, last = np.searchsorted(work.device, [device, device + 1])
        found = holes(work.start_ns[first:last], work.end_ns[first:last])
        parts.append(_Idle(found.start_ns, found.end_ns, found.before + first, found.after + first))
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(0, np.int64)
    return _Idle(*(np.concatenate([nothing, *(getattr(part, name) for part in parts)]) for name in _Idle.__dataclass_fields__))


def _kernel_at(known: _Known, position: IntArray, device: IntArray) -> IntArray:
    """The kernel at these positions among those of all devices, MISSING where that is none of this device."""
    if len(known.kernels) == 0:
        return np.full(len(position), MISSING, np.int64)
    row = known.kernels[np.clip(position, 0, len(known.kernels) - 1)]
    there = (position >= 0) & (position < len(known.kernels)) & (known.work.device[row] == device)
    return np.where(there, known.work.kernel[row], np.int64(MISSING))


def _pieces(work: _Work, idle: _Idle, host: Host) -> Pieces:
    before, after = idle.before, idle.after
    launch = work.launch[after]
    call_start, call_end = gather(host.calls.start_ns, launch), gather(host.calls.end_ns, launch)
    same = (launch >= 0) & (launch == work.launch[before]) & ~work.holding[after]
    same |= (launch < 0) & work.graph[after] & (work.correlation[after] == work.correlation[before]) & (work.correlation[after] != MISSING)
    traced = (launch >= 0) & ~same
    queued = traced & (call_end <= idle.start_ns)
    late = traced & ~queued
    parts = [
        _whole(idle, np.flatnonzero(same), (np.full(len(same), DISPATCH, np.int64), _call_proof(host, launch, (call_start, call_end)))),
        _whole(idle, np.flatnonzero(~same & (launch < 0)), _no_proof(len(launch), len(host.labels))),
        _queued(work, idle, np.flatnonzero(queued), host),
        *_late(work, idle, np.flatnonzero(late), host),
    ]
    return joined(parts)


_Proof = tuple[IntArray, IntArray, IntArray]  # evidence, its start, its end


def _call_proof(host: Host, launch: IntArray, times: tuple[IntArray, IntArray]) -> _Proof:
    return np.where(launch >= 0, host.call_label.at(np.maximum(launch, 0)), np.int64(MISSING)), times[0], times[1]


def _no_proof(rows: int, label: int) -> tuple[IntArray, _Proof]:
    nothing = np.full(rows, MISSING, np.int64)
    return np.full(rows, UNKNOWN, np.int64), (np.full(rows, label, np.int64), nothing, nothing)


def _whole(idle: _Idle, rows: IntArray, why: tuple[IntArray, _Proof]) -> Pieces:
    """Holes of one cause; ``why`` is per hole of all."""
    cause, (evidence, start, end) = why
    return Pieces(rows, idle.start_ns[rows], idle.end_ns[rows], cause[rows], evidence[rows], start[rows], end[rows])


def _queued(work: _Work, idle: _Idle, rows: IntArray, host: Host) -> Pieces:
    """Holes before work whose launch call had returned."""
    launch = work.launch[idle.after[rows]]
    return Pieces(
        rows,
        idle.start_ns[rows],
        idle.end_ns[rows],
        *_why_queued(work, idle, rows, (host, idle.end_ns[rows] - idle.start_ns[rows], launch)),
    )


def _why_queued(
    work: _Work, idle: _Idle, rows: IntArray, of: tuple[Host, IntArray, IntArray]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cause and proof of work that was queued and took this long to start: (host, wait in ns, launch call)."""
    host, wait, launch = of
    before, after = idle.before[rows], idle.after[rows]
    switched = work.process[before] != work.process[after]
    slow = wait > SLOW_DISPATCH_NS
    cause = np.select([work.graph[after], slow & ~switched], [GRAPH, UNKNOWN], default=DISPATCH).astype(np.int64)
    special = len(host.labels)
    plain = ~slow | work.graph[after]
    evidence = np.select([plain, switched], [host.call_label.at(launch), special + 2], default=special + 1)
    return cause, evidence.astype(np.int64), host.calls.start_ns[launch], host.calls.end_ns[launch]


def _late(work: _Work, idle: _Idle, rows: IntArray, host: Host) -> list[Pieces]:
    """Holes whose launch call had not returned when the GPU went idle: before the call, the call until its work began, what held it up."""
    after = idle.after[rows]
    launch = work.launch[after]
    start, end = idle.start_ns[rows], idle.end_ns[rows]
    call_start, call_end, thread = host.calls.start_ns[launch], host.calls.end_ns[launch], host.calls.thread[launch]
    body = np.clip(call_start, start, end)
    holding, graph = work.holding[after], work.graph[after]
    held_back = ~holding & ~graph & (end - call_end > SLOW_DISPATCH_NS)
    body_end = np.where(held_back, np.maximum(call_end, body), end)
    cause = np.select([holding, graph], [COPY, GRAPH], default=LAUNCH).astype(np.int64)
    label = host.call_label.at(launch)
    traced = work.node[after] & graph & (call_end <= end)  # the nodes wait for the call's end
    left, right = np.clip(call_start + GRAPH_CALL_NS, body, body_end), np.clip(call_end, body, body_end)
    left, right = np.where(traced, left, body_end), np.where(traced, np.maximum(left, right), body_end)
    calling = Pieces(rows, body, left, cause, label, call_start, call_end)
    at_work = np.full(len(rows), PROFILER, np.int64), np.full(len(rows), len(host.labels) + 3, np.int64)
    tracing = Pieces(rows, left, right, *at_work, call_start, call_end)
    started = Pieces(rows, right, body_end, cause, label, call_start, call_end)
    tail = np.flatnonzero(held_back)
    held = Pieces(rows[tail], body_end[tail], end[tail], *_why_queued(work, idle, rows[tail], (host, (end - body_end)[tail], launch[tail])))
    waits = [held, tracing, started]
    devices = work.device[after]
    for device in distinct(devices).tolist():  # the holes of one device are disjoint, those of two need not be
        at = np.flatnonzero(devices == device)
        waits.append(host.profiler_pieces(calling.take(at), thread[at]))
        mine = at[body[at] > start[at]]
        found = host.causes(Spans(thread[mine], start[mine], body[mine]), launch[mine])
        waits.append(
            Pieces(
                rows[mine][found.owner], found.start_ns, found.end_ns, found.cause, found.evidence, found.proof_start_ns, found.proof_end_ns
            )
        )
    return waits


def _inference(inferences: Table, following: IntArray, pieces: Pieces) -> IntArray:
    """The inference on whose GPU span the piece lies: that of the kernel after it; MISSING between two inferences."""
    start, end = gather(inferences.ints("gpu_start_ns"), following), gather(inferences.ints("gpu_end_ns"), following)
    within = (following >= 0) & (pieces.start_ns >= start) & (pieces.end_ns <= end)
    return np.where(within, following, np.int64(MISSING))
