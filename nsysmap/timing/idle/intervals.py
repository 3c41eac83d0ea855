"""Finds the idle time of each GPU and assigns every nanosecond of it one cause, with the host row
that proves it.

An idle interval ("hole" in this code) is the time between two pieces of GPU work of one device
(kernels, copies, memsets, hidden graph runs; all processes and streams together).  The launch call
of the next piece ends it, so its cause is what the thread of that call did:

- The call had returned when the GPU went idle: the work was queued in time and the hole is
  ``dispatch``, the hardware's own 1 to 2 us.  Between nodes of one graph launch likewise; before
  the first node of the next graph launch it is ``graph``.
- Else the part from the call's begin (or from where the GPU went idle, if later) to the start on
  the GPU is ``launch``, ``graph`` for a graph launch, ``copy`` for a copy that holds the host.
  Where the nodes of the graph are traced and none began before the call returned, the call is
  ``profiler`` but for what a graph launch takes without.
- Of both parts, the time in which the thread compiled kernels or loaded their code is ``compile``
  (see `trace.compilation`).
- The part before the call's begin is cut where the thread turned to something else: see
  :meth:`nsysmap.timing.idle.causes.Host.causes`.

So where a program synchronises once per inference, the hole between two inferences is split in up
to three: ``sync`` from the GPU's last work to the return of the blocking call, ``host`` until the
next enqueue begins, ``launch`` from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import distinct, is_sorted, sorted_order
from nsysmap.core.intervals import Spans, holes
from nsysmap.core.memory import Ints, whole
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import GAPS
from nsysmap.core.table import (
    MISSING,
    BoolArray,
    IntArray,
    Table,
    Text,
    Values,
    mapped,
    packed,
    repeated,
    slim,
    stacked,
    taken,
    taken_values,
    uniform,
)
from nsysmap.text.progress import percent_done
from nsysmap.timing.idle.causes import (
    CAUSES,
    COPY,
    DISPATCH,
    GRAPH,
    LAUNCH,
    PROFILER,
    SWITCH,
    UNKNOWN,
    Host,
    IdleEvidence,
    IdlePieces,
    joined,
)
from nsysmap.trace.copies import hold_the_host
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace

SLOW_DISPATCH_NS = 20_000
"""Queued work starts within this time; the longest over all captures was 7.6 µs (a memset node of a
graph), except for a switch between two processes (135 µs, the time slice). A longer wait has a
cause that the trace does not show, and is ``unknown``.
"""

GRAPH_CALL_NS = 2_000
"""A graph launch takes 1.3 to 2.4 µs without the profiler; if its nodes are traced, 0.8 to 1.6 µs
per node (eight captures).
"""

# pieces of GPU work at a time: the data about the interval before each takes some hundred bytes
_AT_ONCE = 1 << 16
_NO_LAUNCH = IdleEvidence("gpu", "its launch call is not in the trace")
_HELD_BACK = IdleEvidence(
    "gpu", "queued in time, then delayed: another stream, a dependency or a lock"
)
_TIME_SLICE = IdleEvidence("gpu", "queued in time; the GPU switched from one process to another")
_NODES_TRACED = IdleEvidence("inferred", "traces each node of the CUDA graph")


@dataclass(frozen=True)
class _GpuWorkRows:
    """Pieces of GPU work, one row per piece: all of it in stored form, or those next to some idle
    intervals.
    """

    device: Ints
    start_ns: Ints
    end_ns: Ints
    process: Ints
    launch: Ints
    correlation: Ints
    kernel: Ints  # kernel_id, MISSING for copies and memsets
    graph: BoolArray  # launched by a graph launch
    node: BoolArray  # a node of a graph whose nodes are traced
    holding: BoolArray  # a copy that blocks the host

    def take(self, rows: IntArray) -> _GpuWorkRows:
        """The pieces of work at these positions."""
        return _GpuWorkRows(
            **{name: taken(getattr(self, name), rows) for name in self.__dataclass_fields__}  # type: ignore[arg-type]
        )

    def ints(self, name: str) -> IntArray:
        """A column of integers."""
        return whole(getattr(self, name))


@dataclass(frozen=True)
class _Idle:
    """Idle intervals, one row per interval."""

    start_ns: IntArray
    end_ns: IntArray
    row: IntArray  # row in all work of the piece after it
    before: _GpuWorkRows  # row of the work that ends where it begins
    after: _GpuWorkRows  # row of the work that begins where it ends


@dataclass(frozen=True)
class _Known:
    """The data from which gaps are made."""

    trace: Trace
    inferences: Table
    work: _GpuWorkRows  # by device and start
    kernels: NDArray[Any]  # rows of it that are kernels
    inference_of: Ints  # of each kernel
    layer_of: Text
    host: Host


def find_gaps(
    trace: Trace,
    inferences: Table,
    membership: Table,
    mapping: Table | None,
    progress: Callable[[str], None] | None = None,
    *,
    excluded: Mapping[int, Sequence[tuple[int, int]]],
) -> Table:
    """Every idle interval of every device from its first to its last GPU work, split where the
    cause changes (GAPS, by device and time); ``excluded`` are the times that the windows of
    device_times leave out.

    The durations add up to all idle time, to the nanosecond.
    """
    work = _gpu_work(trace)
    layer = (
        mapping.held_text("layer") if mapping is not None else Text.same(None, len(trace.kernels))
    )
    kernels = np.flatnonzero(work.ints("kernel") >= 0).astype(
        np.int32 if len(work.kernel) < 2**31 else np.int64
    )
    known = _Known(
        trace,
        inferences,
        work,
        kernels,
        membership.held_ints("inference"),
        layer,
        Host.of(trace, inferences),
    )
    gaps = stacked(_told(known, idle, progress) for idle in _all_holes(work))
    left_out = _in_excluded(gaps, excluded)
    return gaps.with_columns(GAPS, {"gap_id": np.arange(len(gaps)), "left_out": left_out})


def _in_excluded(gaps: Table, excluded: Mapping[int, Sequence[tuple[int, int]]]) -> BoolArray:
    """Marks the gaps of which most lies in the times that the device's window leaves out."""
    device, start = gaps.ints("device"), gaps.ints("start_ns")
    middle = start + gaps.ints("dur_ns") // 2
    found = np.zeros(len(gaps), np.bool_)
    for one, spans in excluded.items():
        if not spans:
            continue
        begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
        mine = np.flatnonzero(device == one)
        at = np.searchsorted(begins, middle[mine], side="right") - 1
        found[mine] = (at >= 0) & (middle[mine] < ends[np.maximum(at, 0)])
    return found


def _told(known: _Known, idle: _Idle, progress: Callable[[str], None] | None) -> Table:
    if progress is not None and len(idle.row):
        percent = 100 * int(idle.row[-1]) // len(known.work.launch)
        progress(percent_done("finding idle time", percent))
    return _gaps(known, idle)


def _gaps(known: _Known, idle: _Idle) -> Table:
    """The gaps of these idle intervals, with their own numbering."""
    inferences, calls = known.inferences, known.host.calls
    pieces = _pieces(idle, known.host)
    after = idle.after.take(pieces.owner)
    device = after.ints("device")
    previous = (
        np.searchsorted(known.kernels, idle.row.astype(known.kernels.dtype), side="left")[
            pieces.owner
        ]
        - 1
    )
    last_kernel, next_kernel = (
        _kernel_at(known, previous, device),
        _kernel_at(known, previous + 1, device),
    )
    inference = gather(known.inference_of, next_kernel)
    return Table(
        GAPS,
        {
            "gap_id": np.arange(len(device)),
            "start_ns": pieces.start_ns,
            "end_ns": pieces.end_ns,
            "dur_ns": pieces.end_ns - pieces.start_ns,
            "device": device,
            "before_kernel": last_kernel,
            "after_kernel": next_kernel,
            "inference": _inference(inferences, inference, pieces),
            "cause": Text(pieces.cause.astype(np.int32), CAUSES),
            **_evidence(
                pieces, (*known.host.labels, _NO_LAUNCH, _HELD_BACK, _TIME_SLICE, _NODES_TRACED)
            ),
            "evidence_start_ns": pieces.proof_start_ns,
            "evidence_end_ns": pieces.proof_end_ns,
            "pid": (after.ints("process") >> 24) & 0xFFFFFF,
            "thread": calls.at("thread", after.ints("launch")),
            "before_layer": known.layer_of.take(last_kernel),
            "after_layer": known.layer_of.take(next_kernel),
            "left_out": np.zeros(len(device), np.bool_),
        },
    )


def _evidence(pieces: IdlePieces, labels: Sequence[IdleEvidence]) -> dict[str, Text]:
    """The columns of what shows the cause of each piece: its text, its kind, its name."""
    texts = {
        "evidence": Text.of([one.text for one in labels]),
        "evidence_kind": Text.of([one.kind for one in labels]),
        "evidence_name": Text.of([one.name for one in labels]),
    }
    return {name: each.take(pieces.evidence) for name, each in texts.items()}


def _gpu_work(trace: Trace) -> _GpuWorkRows:
    tables = [table for table in gpu_work(trace) if len(table)] or [trace.kernels]
    device, start = (
        _together([table.ints(name) for table in tables]) for name in ("device", "start_ns")
    )
    rows = None if is_sorted(device, start) else sorted_order(device, start)
    start = start if rows is None else taken_values(start, rows)
    graph_launch = np.flatnonzero(trace.api_calls.held_text("kind").equals("graph-launch"))

    def in_order(parts: list[NDArray[Values]]) -> NDArray[Values]:
        whole = _together(parts)
        return whole if rows is None else taken_values(whole, rows)

    def number(table: Table) -> IntArray:
        return (
            np.arange(len(table))
            if table is trace.kernels
            else repeated(np.int64(MISSING), len(table))
        )

    def by_graph(table: Table) -> BoolArray:
        replayed = table is trace.cuda_graph_traces or _node(table)
        return replayed | (
            np.isin(table.ints("launch"), graph_launch)
            if len(graph_launch)
            else np.zeros(len(table), np.bool_)
        )

    def traced(table: Table) -> BoolArray:
        return (
            repeated(np.bool_(False), len(table))
            if table is trace.cuda_graph_traces
            else _node(table)
        )

    def holding(table: Table) -> BoolArray:
        return (
            hold_the_host(table) & ~_node(table)
            if table is trace.memcpys
            else repeated(np.bool_(False), len(table))
        )

    def column(name: str) -> Ints:
        if len(tables) == 1 and rows is None:
            return tables[0].held_ints(name)
        return slim(in_order([table.ints(name) for table in tables]), start)

    return _GpuWorkRows(
        device=column("device"),
        start_ns=start,
        end_ns=column("end_ns"),
        process=column("process"),
        launch=column("launch"),
        correlation=column("correlation"),
        kernel=slim(in_order([number(table) for table in tables])),
        graph=packed(in_order([by_graph(table) for table in tables])),
        node=packed(in_order([traced(table) for table in tables])),
        holding=packed(in_order([holding(table) for table in tables])),
    )


def _node(table: Table) -> BoolArray:
    return mapped(table.ints("graph_node_id"), lambda node: node != MISSING)


def _together(parts: list[NDArray[Values]]) -> NDArray[Values]:
    """The concatenated columns, stored as one value if all rows are equal."""
    if all(uniform(part) and part[0] == parts[0][0] for part in parts):  # type: ignore[arg-type]  # of one of the types that a column has
        return repeated(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


def _all_holes(work: _GpuWorkRows) -> Iterator[_Idle]:
    """The idle intervals of each device, in batches of pieces of work."""
    device = work.ints("device")
    if not len(device):
        yield _idle(work, *(np.zeros(0, np.int64) for _ in range(4)))
    for one in distinct(device).tolist():
        first, last = (
            np.searchsorted(device, [one, one + 1]).tolist()
            if not uniform(device)
            else (0, len(device))
        )
        held = first  # the piece of work that ends last so far
        for begin in range(first, last, _AT_ONCE):
            rows = np.concatenate([[held], np.arange(begin, min(begin + _AT_ONCE, last))])
            start, end = work.start_ns.take(rows), work.end_ns.take(rows)
            found = holes(start, end)
            yield _idle(work, found.start_ns, found.end_ns, rows[found.before], rows[found.after])
            held = int(rows[np.argmax(end)])


def _idle(
    work: _GpuWorkRows, start: IntArray, end: IntArray, before: IntArray, after: IntArray
) -> _Idle:
    return _Idle(start, end, after, work.take(before), work.take(after))


def _kernel_at(known: _Known, position: IntArray, device: IntArray) -> IntArray:
    """The kernels at these positions among those of all devices; MISSING for a kernel of another
    device.
    """
    if len(known.kernels) == 0:
        return np.full(len(position), MISSING, np.int64)
    row = known.kernels[np.clip(position, 0, len(known.kernels) - 1)]
    there = (
        (position >= 0) & (position < len(known.kernels)) & (known.work.device.take(row) == device)
    )
    return np.where(there, known.work.kernel.take(row), np.int64(MISSING))


def _pieces(idle: _Idle, host: Host) -> IdlePieces:
    before, after = idle.before, idle.after
    launch, correlation = after.ints("launch"), after.ints("correlation")
    call_start, call_end = host.calls.at("start_ns", launch), host.calls.at("end_ns", launch)
    same = (launch >= 0) & (launch == before.ints("launch")) & ~after.holding
    same |= (
        (launch < 0)
        & after.graph
        & (correlation == before.ints("correlation"))
        & (correlation != MISSING)
    )
    traced = (launch >= 0) & ~same
    queued = traced & (call_end <= idle.start_ns)
    late = traced & ~queued
    parts = [
        _whole(
            idle,
            np.flatnonzero(same),
            np.full(len(same), DISPATCH, np.int64),
            _call_proof(host, launch, call_start, call_end),
        ),
        _whole(
            idle, np.flatnonzero(~same & (launch < 0)), *_no_proof(len(launch), len(host.labels))
        ),
        _queued(idle, np.flatnonzero(queued), host),
        *_late(idle, np.flatnonzero(late), host),
    ]
    return host.narrowed(joined(parts), host.calls.at("thread", launch), call_end)


_Proof = tuple[IntArray, IntArray, IntArray]  # evidence, its start, its end


def _call_proof(host: Host, launch: IntArray, start: IntArray, end: IntArray) -> _Proof:
    return (
        np.where(launch >= 0, host.call_label.at(np.maximum(launch, 0)), np.int64(MISSING)),
        start,
        end,
    )


def _no_proof(rows: int, label: int) -> tuple[IntArray, _Proof]:
    nothing = np.full(rows, MISSING, np.int64)
    return np.full(rows, UNKNOWN, np.int64), (np.full(rows, label, np.int64), nothing, nothing)


def _whole(idle: _Idle, rows: IntArray, cause: IntArray, proof: _Proof) -> IdlePieces:
    """The idle intervals of one cause; ``cause`` and ``proof`` have one entry per interval."""
    evidence, start, end = proof
    return IdlePieces(
        rows,
        idle.start_ns[rows],
        idle.end_ns[rows],
        cause[rows],
        evidence[rows],
        start[rows],
        end[rows],
    )


def _queued(idle: _Idle, rows: IntArray, host: Host) -> IdlePieces:
    """Idle intervals before work whose launch call had returned."""
    launch = idle.after.ints("launch")[rows]
    return IdlePieces(
        rows,
        idle.start_ns[rows],
        idle.end_ns[rows],
        *_why_queued(idle, rows, host, idle.end_ns[rows] - idle.start_ns[rows], launch),
    )


def _why_queued(
    idle: _Idle, rows: IntArray, host: Host, wait_ns: IntArray, launch: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cause and evidence for queued work that took so long to start after these launch calls."""
    graph = idle.after.graph[rows]
    switched = (idle.before.ints("process") != idle.after.ints("process"))[rows]
    slow = wait_ns > SLOW_DISPATCH_NS
    cause = np.select(
        [slow & switched, graph, slow], [SWITCH, GRAPH, UNKNOWN], default=DISPATCH
    ).astype(np.int64)
    special = len(host.labels)
    evidence = np.select(
        [~slow | (graph & ~switched), switched],
        [host.call_label.at(launch), special + 2],
        default=special + 1,
    )
    return (
        cause,
        evidence.astype(np.int64),
        host.calls.at("start_ns", launch),
        host.calls.at("end_ns", launch),
    )


def _late(idle: _Idle, rows: IntArray, host: Host) -> list[IdlePieces]:
    """Idle intervals whose launch call had not returned when the GPU went idle: the time before the
    call, and the call until its work began.
    """
    after = idle.after.take(rows)
    launch = after.ints("launch")
    start, end = idle.start_ns[rows], idle.end_ns[rows]
    call_start, call_end, thread = (
        host.calls.at(name, launch) for name in ("start_ns", "end_ns", "thread")
    )
    body = np.clip(call_start, start, end)
    holding, graph = after.holding, after.graph
    held_back = ~holding & ~graph & (end - call_end > SLOW_DISPATCH_NS)
    body_end = np.where(held_back, np.maximum(call_end, body), end)
    cause = np.select([holding, graph], [COPY, GRAPH], default=LAUNCH).astype(np.int64)
    label = host.call_label.at(launch)
    traced = after.node & graph & (call_end <= end)  # the nodes wait for the end of the call
    left, right = (
        np.clip(call_start + GRAPH_CALL_NS, body, body_end),
        np.clip(call_end, body, body_end),
    )
    left, right = (
        np.where(traced, left, body_end),
        np.where(traced, np.maximum(left, right), body_end),
    )
    calling = IdlePieces(rows, body, left, cause, label, call_start, call_end)
    at_work = (
        np.full(len(rows), PROFILER, np.int64),
        np.full(len(rows), len(host.labels) + 3, np.int64),
    )
    tracing = IdlePieces(rows, left, right, *at_work, call_start, call_end)
    started = IdlePieces(rows, right, body_end, cause, label, call_start, call_end)
    tail = np.flatnonzero(held_back)
    held = IdlePieces(
        rows[tail],
        body_end[tail],
        end[tail],
        *_why_queued(idle, rows[tail], host, (end - body_end)[tail], launch[tail]),
    )
    mine = np.flatnonzero(body > start)
    found = host.causes(Spans(thread[mine], start[mine], body[mine]), launch[mine])
    before = IdlePieces(
        rows[mine][found.owner],
        found.start_ns,
        found.end_ns,
        found.cause,
        found.evidence,
        found.proof_start_ns,
        found.proof_end_ns,
    )
    return [held, tracing, started, host.profiler_pieces(calling, thread), before]


def _inference(inferences: Table, following: IntArray, pieces: IdlePieces) -> IntArray:
    """The inference whose GPU span contains the piece: that of the next kernel; MISSING between two
    inferences.
    """
    start, end = (
        gather(inferences.ints("gpu_start_ns"), following),
        gather(inferences.ints("gpu_end_ns"), following),
    )
    within = (following >= 0) & (pieces.start_ns >= start) & (pieces.end_ns <= end)
    return np.where(within, following, np.int64(MISSING))
