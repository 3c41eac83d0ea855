"""Collects the GPU work of a window, with each piece's launch call and dependencies."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, FloatArray, IntArray, Table
from nsysmap.trace.copies import if_pinned_ns
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace
from nsysmap.whatif.timeline import WorkKind
from nsysmap.whatif.window import Window

KINDS: tuple[WorkKind, ...] = ("kernel", "copy", "memset", "graph", "HtoD", "DtoH")
_NEAR = 12  # number of nodes that ended last before another began: its dependencies are among them
# by which a node begins at most before the one ends that launched it early (programmatic dependent
# launch)
_EARLY_NS = 2_000
# ends this close before a node's begin, in every replay, may all be dependencies
_TOGETHER_NS = 1_500
SUBMITTED_NS = 5_000
"""The longest time from the return of a graph's launch call to the begin of the node that it
submitted last: nodes with which graphs begin do so 0.7 to 3.4 us after it.
"""


@dataclass(frozen=True)
class Pieces:
    """All GPU work of one process and device that has a launch call in the window, by launch call,
    then start.
    """

    launch: IntArray
    start_ns: IntArray
    end_ns: IntArray
    row: IntArray  # kernel_id, MISSING for other work
    kind: IntArray  # position in KINDS
    stream: IntArray
    # a copy's duration if its host memory were pinned; of other work its duration
    pinned_ns: IntArray
    node: IntArray  # node of a graph, MISSING otherwise
    # positions of the dependencies of each, beside the previous work in its stream; see Work.after
    after: tuple[
        tuple[int, ...],
        ...,
    ]


def find_pieces(trace: Trace, window: Window) -> Pieces:
    """The pieces of the window's process and device."""
    columns: dict[str, list[IntArray]] = defaultdict(list)
    for kind, table in enumerate(gpu_work(trace)):
        keep = window.launched(table)
        there = table.take(keep)
        for name in ("launch", "start_ns", "end_ns", "stream"):
            columns[name].append(there.ints(name))
        copied = KINDS[kind] == "copy"
        columns["pinned_ns"].append(
            if_pinned_ns(trace.memcpys)[keep]
            if copied
            else there.ints("end_ns") - there.ints("start_ns")
        )
        columns["row"].append(keep if kind == 0 else np.full(len(keep), MISSING, np.int64))
        columns["node"].append(
            there.ints("graph_node_id")
            if KINDS[kind] != "graph"
            else np.full(len(keep), MISSING, np.int64)
        )
        kinds = np.full(len(keep), kind, np.int64)
        if copied:
            for way in ("HtoD", "DtoH"):
                kinds[there.text("kind").equals(way)] = KINDS.index(way)
        columns["kind"].append(kinds)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    order = np.lexsort((joined["start_ns"], joined["launch"]))
    pieces = Pieces(**{name: values[order] for name, values in joined.items()}, after=())
    after: list[tuple[int, ...]] = [()] * len(order)
    _stream_waits(trace, window, pieces, after)
    _node_waits(pieces, gather(trace.api_calls.ints("end_ns"), pieces.launch), after)
    return Pieces(**{name: values[order] for name, values in joined.items()}, after=tuple(after))


def _stream_waits(
    trace: Trace, window: Window, pieces: Pieces, after: list[tuple[int, ...]]
) -> None:
    """Adds the dependencies on work of other streams that events create."""
    if len(np.unique(pieces.stream)) < 2:
        return
    calls, syncs, records = trace.api_calls, trace.syncs, trace.event_records
    apis = calls.held_text("api")
    waiting, recording = (
        apis.where(lambda name: "StreamWait" in name),
        apis.where(lambda name: "EventRecord" in name),
    )
    start = calls.ints("start_ns")
    rows = window.rows(calls)
    rows = rows[
        (waiting[rows] | recording[rows])
        & (calls.held_ints("process").take(rows) == window.process)
    ]
    if not waiting[rows].any():
        return
    asked, told = _events(syncs, rows), _events(records, rows)
    first, at_call = np.unique(pieces.launch, return_index=True)
    bounds = [*at_call.tolist(), len(pieces.launch)]
    moments = sorted(
        [(int(start[row]), True, row) for row in rows.tolist()]
        + [(int(start[launch]), False, place) for place, launch in enumerate(first.tolist())]
    )
    last: dict[int, int] = {}  # per stream the last piece so far
    pending: dict[int, set[int]] = defaultdict(set)
    # per event: its stream, and the last piece there when it was recorded
    at_event: dict[int, tuple[int, int]] = {}
    # the same for records whose event is not in the trace, oldest first
    unmet: list[tuple[int, int]] = []
    latest_stream = MISSING
    for _, is_event, row in moments:
        if not is_event:
            for at in range(bounds[row], bounds[row + 1]):
                stream = int(pieces.stream[at])
                if pending[stream] and at == bounds[row]:
                    after[at] = tuple(sorted(pending.pop(stream)))
                last[stream] = at
                latest_stream = stream
        elif recording[row]:
            stream, event = told.get(row, (latest_stream, MISSING))
            if stream in last:
                if event != MISSING:
                    at_event[event] = (stream, last[stream])
                else:
                    unmet = [*unmet[-7:], (stream, last[stream])]
        elif row in asked:
            stream, event = asked[row]
            source = at_event.get(event) or next((one for one in unmet if one[0] != stream), None)
            if source is not None and source in unmet and len(unmet) > 1:
                unmet.remove(source)
            if source is not None and source[0] != stream:
                pending[stream].add(source[1])


def _events(table: Table, calls: IntArray) -> dict[int, tuple[int, int]]:
    """The stream and the event of these API calls, by call."""
    rows = np.flatnonzero(np.isin(table.ints("launch"), calls))
    columns = (table.ints(name)[rows].tolist() for name in ("launch", "stream", "event"))
    return {launch: (stream, event) for launch, stream, event in zip(*columns, strict=True)}


def _node_waits(pieces: Pieces, returned: IntArray, after: list[tuple[int, ...]]) -> None:
    """Adds the dependencies between nodes of a graph, as far as the times of all replays in the
    window show them; ``returned`` is when each piece's launch call returned.

    The trace does not list a graph's edges.  A node is assumed to wait for those that ended just
    before it began, in every replay.
    """
    launches, first, size = np.unique(pieces.launch, return_index=True, return_counts=True)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number in range(len(launches)):
        nodes = pieces.node[first[number] : first[number] + size[number]]
        if size[number] > 1 and (nodes != MISSING).all():
            alike[tuple(np.sort(nodes).tolist())].append(number)
    for replays in alike.values():
        places = np.array(
            [
                first[one]
                + np.argsort(pieces.node[first[one] : first[one] + size[one]], kind="stable")
                for one in replays
            ]
        )
        waits = waited_for(
            pieces.start_ns[places],
            pieces.end_ns[places],
            pieces.stream[places],
            returned[places[:, 0]],
        )
        for replay in places.tolist():
            for node, others in enumerate(waits):
                after[replay[node]] = tuple(replay[other] for other in others)


def waited_for(
    start: IntArray, end: IntArray, stream: IntArray, returned: IntArray
) -> list[tuple[int, ...]]:
    """For each node the nodes it waits for. Arguments have one row per replay and one column per
    node; ``returned`` (the end of the launch call) has one value per replay.

    A stream runs one node after another, unless the earlier one lets the later one begin before it
    ends (programmatic dependent launch): a node that begins shortly before the end of the one
    before it in its stream waits for that one, and no other that ended later.

    A graph of several branches may begin while its launch call still submits the others.  A node
    that begins as the call returns, in every replay, and for whose begin the GPU had been idle for
    longer than that takes, waits for the call alone.
    """
    origin = start.min(axis=1, keepdims=True)
    usual_end = np.median(end - origin, axis=0)
    usual_start = np.median(start - origin, axis=0)
    by_end = np.argsort(usual_end, kind="stable")
    result: list[tuple[int, ...]] = []
    before = _before_in_stream(usual_start, stream)
    for node in range(start.shape[1]):
        earlier = int(before[node])
        if earlier != MISSING and (start[:, node] < end[:, earlier]).any():
            overlap = end[:, earlier] - start[:, node]
            if (overlap < _EARLY_NS).all() and (start[:, node] > start[:, earlier]).all():
                result.append((earlier,))
                continue
        last = int(np.searchsorted(usual_end[by_end], usual_start[node], side="right"))
        near = by_end[max(last - _NEAR, 0) : last]
        near = near[near != node]
        gaps = start[:, [node]] - end[:, near]
        fits = (gaps >= 0).all(axis=0)
        near, gaps = near[fits], gaps[:, fits]
        behind = start[:, node] - returned
        submitted = (behind >= 0).all() and (behind <= SUBMITTED_NS).all()
        if len(near) == 0 or (submitted and (gaps > SUBMITTED_NS).all()):
            result.append(())
            continue
        together: BoolArray = np.array((gaps <= _TOGETHER_NS).all(axis=0), np.bool_)
        together[int(np.argmin(np.median(gaps, axis=0)))] = True
        lane = np.flatnonzero((stream[:, near] == stream[:, [node]]).all(axis=0))
        if len(lane):
            together[lane[-1]] = True
        result.append(tuple(near[together].tolist()))
    return result


def _before_in_stream(usual_start: FloatArray, stream: IntArray) -> IntArray:
    """For each node the one that begins before it in the same stream in every replay; MISSING if
    there is none.
    """
    found = np.full(len(usual_start), MISSING, np.int64)
    last: dict[tuple[int, ...], int] = {}
    for node in np.argsort(usual_start, kind="stable").tolist():
        own = stream[:, node]
        key = tuple(own.tolist())  # a graph may run in other streams in each replay
        found[node] = last.get(key, MISSING)
        last[key] = node
    return found
