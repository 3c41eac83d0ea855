"""A program as the replay sees it: host threads that step through calls, and queues of GPU work; read off a trace."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from nsysmap.base.intervals import covered
from nsysmap.base.table import MISSING, BoolArray, IntArray, Table
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace

WINDOW = 24
"""Inferences of a thread that are replayed, the last steady ones: enough for a median, and a replay stays below a tenth of a second."""
_MOST_STEPS = 20_000

PROFILERS_OWN_CALLS = ("cuKernelGetName", "cuFuncGetName")
"""Calls that nsys's injection makes before each launch to learn the kernel's name; seen with 2023.4.4, one a launch in every capture."""

WorkKind = Literal["kernel", "HtoD", "DtoH", "copy", "memset", "graph"]
COPIES: tuple[WorkKind, ...] = ("HtoD", "DtoH", "copy")
StepKind = Literal["submit", "block", "sync"]
ALL_QUEUES = -1


class Work(NamedTuple):  # like Step no dataclass: what-if makes hundreds of thousands, and copies a tuple ten times as fast
    """One piece of GPU work."""

    number: int  # unique within the timeline, in order of launch
    row: int  # kernel_id, MISSING for what is no kernel
    kind: WorkKind
    queue: int  # number of its stream
    start_ns: int  # as recorded
    end_ns: int
    dur_ns: int
    lead_ns: int  # after the last end of its graph launch's earlier nodes
    after: int  # number of a work of another queue that it waits for, MISSING for none
    fill: float  # share of the device that its blocks take


class Step(NamedTuple):
    """One call of a host thread, with what the thread did since its last one."""

    kind: StepKind
    api: str
    inference: int  # number of the thread's inference that it belongs to: the one enqueued last
    enqueue: bool  # inside that inference's enqueue
    own_ns: int  # the thread's own time before the call
    own_profiler_ns: int  # of that the profiler's, by estimate
    outside_ns: int  # of own_ns what lay outside every enqueue
    call_ns: int  # a sync's: what it takes when there is nothing to wait for
    call_profiler_ns: int
    lag_ns: int  # a blocking copy's: from where it could begin to its first GPU work
    queue: int  # a sync's or blocking copy's: which queue it waits for
    target: int  # an event sync's: the number of the work it waits for, MISSING otherwise
    graph: bool  # a graph launch
    works: tuple[Work, ...]


@dataclass(frozen=True)
class Costs:
    """What the hardware and driver take, in ns; from the trace where it shows them."""

    latency_ns: int  # from the return of a launch call to the start on an idle GPU
    graph_latency_ns: int  # the same of a graph launch
    dispatch_ns: int  # between two kernels of a queue, the second queued in time
    to_copy_ns: int  # from a kernel to a queued copy
    from_copy_ns: int  # from a copy to a queued kernel
    node_ns: int  # between two nodes of a graph
    return_ns: int  # from the end of GPU work to the return of the sync that waits for it
    idle_sync_ns: int  # a sync that has nothing to wait for
    submit_ns: int  # an asynchronous call, the median one
    graph_launch_ns: int


@dataclass(frozen=True)
class ProfilerCosts:
    """What the profiler adds, in ns, by estimate."""

    call_ns: int  # to a traced call, inside its recorded time
    edge_ns: int  # around a traced call, outside its recorded time
    range_ns: int  # to each begin or end of a range
    kernel_ns: int  # to a kernel's recorded time


@dataclass(frozen=True)
class Timeline:
    """A stretch of a program's steady run."""

    threads: tuple[tuple[Step, ...], ...]
    costs: Costs
    exclusive: bool  # kernels of different queues never ran at once although they could have
    contention: float = 1.0  # how many times as long as in its step a submitting call takes


@dataclass(frozen=True)
class _Pieces:
    """All GPU work of one process and device that has a launch call in the window, by launch call, then start."""

    launch: IntArray
    start_ns: IntArray
    end_ns: IntArray
    row: IntArray
    kind: IntArray  # position in _KINDS
    stream: IntArray
    fill: tuple[float, ...]


_KINDS: tuple[WorkKind, ...] = ("kernel", "copy", "memset", "graph", "HtoD", "DtoH")


@dataclass(frozen=True)
class Window:
    """Which part of a trace is replayed."""

    process: int
    device: int
    threads: tuple[int, ...]
    inferences: tuple[IntArray, ...]  # per thread the rows in INFERENCES, in order of time; the last one only bounds the window
    begin_ns: int
    end_ns: int


def steady_window(inferences: Table) -> Window | None:
    """The last steady inferences of the process and device that has most of them; None where no thread has three in a row."""
    usable = inferences.bools("complete") & ~inferences.bools("warmup")
    for name in ("thread", "device", "enqueue_start_ns", "enqueue_end_ns", "gpu_end_ns"):
        usable &= inferences.ints(name) != MISSING
    rows = np.flatnonzero(usable)
    if len(rows) == 0:
        return None
    process, device = inferences.ints("process"), inferences.ints("device")
    pairs, count = np.unique(np.stack([process[rows], device[rows]]), axis=1, return_counts=True)
    best = int(np.argmax(count))
    mine = rows[(process[rows] == pairs[0, best]) & (device[rows] == pairs[1, best])]
    usual = np.bincount(inferences.ints("kernels")[mine]).argmax()
    shapes = inferences.ints("kernel_sequence")[mine]
    common = mine[shapes == np.bincount(np.maximum(shapes, 0)).argmax()] if (shapes >= 0).any() else mine
    most = max(4, min(WINDOW, _MOST_STEPS // max(int(usual), 1)))
    kept, threads = [], []
    for thread in np.unique(inferences.ints("thread")[common]).tolist():
        own = common[inferences.ints("thread")[common] == thread]
        own = own[np.argsort(inferences.ints("enqueue_start_ns")[own], kind="stable")][-(most + 1) :]
        if len(own) >= 3:
            kept.append(own)
            threads.append(int(thread))
    if not kept:
        return None
    begins = [int(inferences.ints("enqueue_start_ns")[own[0]]) for own in kept]
    ends = [int(inferences.ints("enqueue_start_ns")[own[-1]]) for own in kept]
    return Window(int(pairs[0, best]), int(pairs[1, best]), tuple(threads), tuple(kept), max(begins), min(ends))


def read_timeline(trace: Trace, inferences: Table, window: Window, costs: tuple[Costs, ProfilerCosts]) -> Timeline:
    """The steps of the window's threads, with the profiler's part of each set apart."""
    source = _Source.of(trace, inferences, window, costs)
    threads = [source.thread(thread, own) for thread, own in zip(window.threads, window.inferences, strict=True)]
    return Timeline(tuple(threads), costs[0], _exclusive(source.pieces))


def _pieces(trace: Trace, window: Window) -> _Pieces:
    sms = 0
    devices = trace.devices
    for number, count in zip(devices.ints("device").tolist(), devices.ints("sm_count").tolist(), strict=True):
        if number == window.device and count != MISSING:
            sms = count
    columns: dict[str, list[IntArray]] = defaultdict(list)
    fills: list[float] = []
    for kind, table in enumerate((trace.kernels, trace.memcpys, trace.memsets, trace.cuda_graph_traces)):
        keep = np.flatnonzero(
            (table.ints("process") == window.process) & (table.ints("device") == window.device) & (table.ints("launch") >= 0)
            & (table.ints("launch_start_ns") >= window.begin_ns) & (table.ints("launch_start_ns") < window.end_ns)
        )  # fmt: skip
        for name in ("launch", "start_ns", "end_ns", "stream"):
            columns[name].append(table.ints(name)[keep])
        columns["row"].append(keep if kind == 0 else np.full(len(keep), MISSING, np.int64))
        kinds = np.full(len(keep), kind, np.int64)
        if kind == _KINDS.index("copy"):
            for way in ("HtoD", "DtoH"):
                kinds[table.text("kind").take(keep).equals(way)] = _KINDS.index(way)
        columns["kind"].append(kinds)
        fills += _fill(table, keep, sms) if kind == 0 else [0.0] * len(keep)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    order = np.lexsort((joined["start_ns"], joined["launch"]))
    return _Pieces(**{name: values[order] for name, values in joined.items()}, fill=tuple(fills[row] for row in order.tolist()))


_THREADS_OF_SM = 2048  # resident threads, compute capability 7.0, 8.0, 9.0, 10.0; 1024 to 1536 on smaller chips
_REGISTERS_OF_SM = 65536
_SHARED_BYTES_OF_SM = 233_472  # 228 KiB, compute capability 9.0 and 10.0; 164 KiB on 8.0, 96 on 7.0


def _fill(kernels: Table, rows: IntArray, sms: int) -> list[float]:
    """The share of the device's threads, registers or shared memory (the greatest) that all blocks of a kernel take at once, at most 1."""
    if sms <= 0:
        return [1.0] * len(rows)
    blocks, block = np.ones(len(rows)), np.ones(len(rows))
    for axis in ("x", "y", "z"):
        blocks = blocks * np.maximum(kernels.ints(f"grid_{axis}")[rows], 1)
        block = block * np.maximum(kernels.ints(f"block_{axis}")[rows], 1)
    registers = block * np.maximum(kernels.ints("registers")[rows], 1)
    shared = kernels.ints("static_shared_bytes")[rows] + kernels.ints("dynamic_shared_bytes")[rows]
    of_block = np.max([block / _THREADS_OF_SM, registers / _REGISTERS_OF_SM, shared / _SHARED_BYTES_OF_SM], axis=0)
    result: list[float] = np.minimum(blocks * of_block / sms, 1.0).tolist()
    return result


def _exclusive(pieces: _Pieces) -> bool:
    """Whether kernels of different queues never overlapped; said only where there were several queues."""
    kernels = np.flatnonzero(pieces.kind == 0)
    if len(np.unique(pieces.stream[kernels])) < 2:
        return False
    order = kernels[np.argsort(pieces.start_ns[kernels], kind="stable")]
    reached = np.maximum.accumulate(pieces.end_ns[order])
    overlap = np.maximum(reached[:-1] - pieces.start_ns[order][1:], 0).sum()
    return bool(overlap < 0.01 * (pieces.end_ns[order] - pieces.start_ns[order]).sum())


_ACTS = ("sync", "launch", "graph-launch", "copy", "memset")  # kinds of calls that are steps also where no GPU work of theirs is known


class _Call(NamedTuple):
    """One call that becomes a step."""

    kind: str
    api: str
    row: int  # in api_calls
    start_ns: int
    end_ns: int
    blocking: bool
    inference: int
    enqueue: bool
    own_ns: int
    own_profiler_ns: int
    outside_ns: int
    first: int  # its GPU work: positions in _Pieces, up to …
    last: int


@dataclass(frozen=True)
class _Source:
    """What all threads' steps are made from."""

    trace: Trace
    inferences: Table
    pieces: _Pieces
    listed: list[tuple[int, int, int, int, int]]  # the pieces' start_ns, end_ns, row, kind and queue
    queues: dict[int, int]  # stream id to number
    costs: Costs
    profiler: ProfilerCosts
    blocking: BoolArray  # per API call
    sync_row: IntArray  # per API call its row in syncs
    waits: IntArray  # begin of each stream-wait call in the window

    @staticmethod
    def of(trace: Trace, inferences: Table, window: Window, costs: tuple[Costs, ProfilerCosts]) -> _Source:
        calls, launch = trace.api_calls, trace.syncs.ints("launch")
        sync_row = np.full(len(calls), MISSING, np.int64)
        sync_row[launch[launch >= 0]] = np.flatnonzero(launch >= 0)
        start = calls.ints("start_ns")
        waits = start[calls.text("kind").equals("stream-wait") & (start >= window.begin_ns) & (start < window.end_ns)]
        pieces = _pieces(trace, window)
        streams, queue = np.unique(pieces.stream, return_inverse=True)
        queues = {stream: number for number, stream in enumerate(streams.tolist())}
        columns = (pieces.start_ns, pieces.end_ns, pieces.row, pieces.kind, queue)
        listed = list(zip(*(column.tolist() for column in columns), strict=True))
        return _Source(trace, inferences, pieces, listed, queues, *costs, blocking_copies(trace), sync_row, waits)

    def thread(self, thread: int, own: IntArray) -> tuple[Step, ...]:
        calls = self.trace.api_calls
        begins, ends = self.inferences.ints("enqueue_start_ns")[own], self.inferences.ints("enqueue_end_ns")[own]
        start, end = calls.ints("start_ns"), calls.ints("end_ns")
        rows = np.flatnonzero((calls.ints("thread") == thread) & (start >= begins[0]) & (start < begins[-1]))
        kinds, names = calls.text("kind").take(rows), calls.text("api").take(rows)
        reached = np.maximum.accumulate(np.concatenate([begins[:1], end[rows]]))
        nested = end[rows] <= reached[:-1]
        profilers = np.isin(names.codes, [code for code, name in enumerate(names.values) if name in PROFILERS_OWN_CALLS])
        acts = np.isin(kinds.codes, [code for code, kind in enumerate(kinds.values) if kind in _ACTS]) | np.isin(rows, self.pieces.launch)
        mine = np.flatnonzero(~nested & ~profilers & acts)
        taken = rows[mine]
        previous = np.concatenate([begins[:1], end[taken][:-1]])
        profiler = self._profiler_time(thread, rows, (previous, start[taken]))
        outside = start[taken] - previous - covered(begins, ends, within=(previous, start[taken]))
        inside = np.searchsorted(begins, start[taken], side="right") - 1
        columns = (
            taken, start[taken], end[taken], self.blocking[taken], inside, end[taken] <= ends[inside],
            start[taken] - previous, profiler, outside,
            *np.searchsorted(self.pieces.launch, [taken, taken + 1]),
        )  # fmt: skip
        calls_made = zip(kinds.take(mine).list(), names.take(mine).list(), *(column.tolist() for column in columns), strict=True)
        return tuple(self._step(_Call(*call)) for call in calls_made)

    def _profiler_time(self, thread: int, rows: IntArray, own: tuple[IntArray, IntArray]) -> IntArray:
        """What of each stretch between calls was the profiler's: range events, its own calls, the edges of traced calls, overhead rows."""
        ranges, calls, overheads = self.trace.nvtx_ranges, self.trace.api_calls, self.trace.overheads
        left, right = own
        mine = ranges.ints("thread") == thread
        low, high = int(left.min(initial=0)), int(right.max(initial=0))
        events = np.concatenate([ranges.ints(name)[mine] for name in ("start_ns", "end_ns")])
        events = np.sort(events[(events >= low) & (events <= high)])
        range_events = np.searchsorted(events, right) - np.searchsorted(events, left)
        names = calls.text("api").take(rows)
        its_own = rows[np.isin(names.codes, [code for code, name in enumerate(names.values) if name in PROFILERS_OWN_CALLS])]
        inside = covered(calls.ints("start_ns")[its_own], calls.ints("end_ns")[its_own], within=own)
        between = np.searchsorted(calls.ints("start_ns")[rows], right) - np.searchsorted(calls.ints("start_ns")[rows], left)
        held = overheads.ints("thread") == thread
        by_rows = covered(overheads.ints("start_ns")[held], overheads.ints("end_ns")[held], within=own)
        estimate = range_events * self.profiler.range_ns + inside + (between + 1) * self.profiler.edge_ns + by_rows
        result: IntArray = np.minimum(estimate, right - left)
        return result

    def _step(self, call: _Call) -> Step:
        works = self._works(call.first, call.last)
        blocking = call.blocking and bool(works)
        if call.kind == "sync":
            return self._sync(call)
        length = call.end_ns - call.start_ns
        lag = 0
        if blocking:
            could_begin = max(call.start_ns, self._last_end_before(works[0].start_ns))
            lag, length = works[0].start_ns - could_begin, call.end_ns - could_begin
        return Step(
            kind="block" if blocking else "submit",
            api=call.api,
            inference=call.inference,
            enqueue=call.enqueue,
            own_ns=call.own_ns,
            own_profiler_ns=call.own_profiler_ns,
            outside_ns=call.outside_ns,
            call_ns=max(length, 0),
            call_profiler_ns=min(self.profiler.call_ns, max(length, 0)),
            lag_ns=max(lag, 0),
            queue=works[0].queue if works else ALL_QUEUES,
            target=MISSING,
            graph=call.kind == "graph-launch",
            works=works,
        )

    def _sync(self, call: _Call) -> Step:
        syncs, sync = self.trace.syncs, int(self.sync_row[call.row])
        scope = syncs.text("kind")[sync] if sync >= 0 else None
        queue = self.queues.get(int(syncs.ints("stream")[sync]), ALL_QUEUES) if sync >= 0 and scope == "stream" else ALL_QUEUES
        pieces = self.pieces
        launched = np.flatnonzero(gather(self.trace.api_calls.ints("start_ns"), pieces.launch) < call.start_ns)
        done = launched[pieces.end_ns[launched] <= call.end_ns]
        target = int(done[np.argmax(pieces.end_ns[done])]) if len(done) else MISSING
        waited = target != MISSING and int(pieces.end_ns[target]) > call.start_ns
        return Step(
            kind="sync",
            api=call.api,
            inference=call.inference,
            enqueue=call.enqueue,
            own_ns=call.own_ns,
            own_profiler_ns=call.own_profiler_ns,
            outside_ns=call.outside_ns,
            call_ns=self.costs.idle_sync_ns if waited else call.end_ns - call.start_ns,
            call_profiler_ns=0,
            lag_ns=0,
            queue=queue,
            target=target if scope == "event" else MISSING,
            graph=False,
            works=(),
        )

    def _works(self, first: int, last: int) -> tuple[Work, ...]:
        """The pieces at these positions, which one call launched."""
        works: list[Work] = []
        reached = MISSING
        for at in range(first, last):
            start, end, row, kind, queue = self.listed[at]
            works.append(
                Work(
                    number=at,
                    row=row,
                    kind=_KINDS[kind],
                    queue=queue,
                    start_ns=start,
                    end_ns=end,
                    dur_ns=end - start,
                    lead_ns=0 if reached == MISSING else start - reached,
                    after=self._waits_for(at) if reached == MISSING else MISSING,
                    fill=self.pieces.fill[at],
                )
            )
            reached = max(reached, end)
        return tuple(works)

    def _waits_for(self, at: int) -> int:
        """The work of another queue that this one was made to wait for by a stream-wait call of its thread since the queue's last work.

        The trace does not say which event was meant: it is taken to be the last work launched before the wait that ended before this began.
        """
        calls, pieces = self.trace.api_calls, self.pieces
        if len(self.waits) == 0:
            return MISSING
        launch_start = calls.ints("start_ns")[pieces.launch]
        same = np.flatnonzero((pieces.stream == pieces.stream[at]) & (launch_start < launch_start[at]))
        since = launch_start[same].max(initial=0)
        between = self.waits[(self.waits > since) & (self.waits < launch_start[at])]
        if len(between) == 0:
            return MISSING
        other = np.flatnonzero((pieces.stream != pieces.stream[at]) & (launch_start < between[-1]) & (pieces.end_ns <= pieces.start_ns[at]))
        return int(other[np.argmax(pieces.end_ns[other])]) if len(other) else MISSING

    def _last_end_before(self, moment: int) -> int:
        ends = self.pieces.end_ns
        before = ends[ends <= moment]
        return int(before.max()) if len(before) else MISSING
