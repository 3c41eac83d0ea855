"""Reads a timeline from a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nsysmap.core.intervals import covered
from nsysmap.core.memory import Ints
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, FloatArray, IntArray, Table, slim
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.inferences.find import enqueue_spans
from nsysmap.trace.inferences.steady import FEW, OUTLIER
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace
from nsysmap.whatif.early import begins_early, runs_at_once
from nsysmap.whatif.gpu_share import kernel_needs
from nsysmap.whatif.pieces import KINDS, Pieces, find_pieces
from nsysmap.whatif.profiler import OWN_CALLS, ProfilerCosts, profiler_parts
from nsysmap.whatif.timeline import ALL_QUEUES, Costs, Step, StepKind, Timeline, Work
from nsysmap.whatif.window import Window

# kinds of calls that are steps even without known GPU work
_ACTS = (
    "sync",
    "launch",
    "graph-launch",
    "copy",
    "memset",
)
_EVENTS = ("event", "stream-wait")
Reached = Callable[[IntArray], FloatArray]


def read_timeline(
    trace: Trace,
    inferences: Table,
    window: Window,
    costs: Costs,
    profiler: ProfilerCosts,
    roofline: Reached,
) -> Timeline:
    """The steps of the window's threads, with the profiler's part of each; ``roofline`` is that of
    the kernels (see gpu_share).
    """
    source = _Source.of(trace, inferences, window, costs, profiler, roofline)
    helpers = _helpers(trace, window, source.pieces)
    threads = [
        source.thread((thread, *helpers.get(thread, ())), own)
        for thread, own in zip(window.threads, window.inferences, strict=True)
    ]
    return Timeline(tuple(threads), costs, window.weights, window.phases, window.present)


def _helpers(trace: Trace, window: Window, pieces: Pieces) -> dict[int, tuple[int, ...]]:
    """Threads that launch GPU work in the window but no inferences, such as PyTorch's backward
    thread, each with the thread that it helps: the one with the most work in its streams, or the
    first.

    What the two wait for each other is in no trace, but for the order of their calls: they are
    replayed as one sequence of calls.
    """
    launched_by = trace.api_calls.held_ints("thread").take(pieces.launch)
    found: dict[int, tuple[int, ...]] = {}
    for helper in sorted(set(launched_by.tolist()) - set(window.threads)):
        streams = np.unique(pieces.stream[launched_by == helper])
        beside = np.isin(pieces.stream, streams)
        helped = max(
            window.threads, key=lambda thread: np.count_nonzero(beside & (launched_by == thread))
        )
        found[helped] = (*found.get(helped, ()), helper)
    return found


def _beside_others(by: IntArray, start: IntArray, end: IntArray) -> BoolArray:
    """Marks the calls during which a call of another thread begins or continues; ``by`` are the
    threads.
    """
    beside = np.zeros(len(by), np.bool_)
    for thread in np.unique(by):
        mine, others = np.flatnonzero(by == thread), np.flatnonzero(by != thread)
        begun = np.searchsorted(np.sort(start[others]), end[mine])
        beside[mine] = begun > np.searchsorted(np.sort(end[others]), start[mine], "right")
    return beside


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
    first: int  # its GPU work: positions in Pieces, up to …
    last: int


@dataclass(frozen=True)
class _Source:
    """The data from which all threads' steps are made."""

    trace: Trace
    inferences: Table
    window: Window
    pieces: Pieces
    listed: list[tuple[int, int, int, int, int, float, float, float, float, bool, bool]]
    """The pieces' start_ns, end_ns, row, kind, queue, needs, pinned, sms, early and
    at_once.
    """
    queues: dict[int, int]  # stream id to number
    costs: Costs
    profiler: ProfilerCosts
    blocking: BoolArray  # per API call
    sync_row: Ints  # per API call its row in syncs
    launch_start: IntArray  # of each piece's launch call

    @staticmethod
    def of(
        trace: Trace,
        inferences: Table,
        window: Window,
        costs: Costs,
        profiler: ProfilerCosts,
        roofline: Reached,
    ) -> _Source:
        calls, launch = trace.api_calls, trace.syncs.ints("launch")
        sync_row = np.full(len(calls), MISSING, np.int64)
        sync_row[launch[launch >= 0]] = np.flatnonzero(launch >= 0)
        pieces = find_pieces(trace, window)
        streams, queue = np.unique(pieces.stream, return_inverse=True)
        queues = {stream: number for number, stream in enumerate(streams.tolist())}
        likely, most, sms = (np.zeros(len(queue)) for _ in range(3))
        rows = pieces.row[pieces.row != MISSING]
        needs = kernel_needs(trace.kernels, rows, trace.devices, window.device, roofline(rows))
        for column, need in ((likely, needs.least), (most, needs.most), (sms, needs.sms)):
            column[pieces.row != MISSING] = need
        early, at_once = (np.zeros(len(queue), np.bool_) for _ in range(2))
        early[pieces.row != MISSING] = begins_early(trace, rows)
        at_once[pieces.row != MISSING] = runs_at_once(trace, rows)
        pinned = pieces.pinned_ns / np.maximum(pieces.end_ns - pieces.start_ns, 1)
        columns = (
            pieces.start_ns,
            pieces.end_ns,
            pieces.row,
            pieces.kind,
            queue,
            likely,
            most,
            pinned,
            sms,
            early,
            at_once,
        )
        listed = list(zip(*(column.tolist() for column in columns), strict=True))
        launch_start = gather(calls.ints("start_ns"), pieces.launch)
        return _Source(
            trace,
            inferences,
            window,
            pieces,
            listed,
            queues,
            costs,
            profiler,
            blocking_copies(trace),
            slim(sync_row),
            launch_start,
        )

    def thread(self, threads: tuple[int, ...], own: IntArray) -> tuple[Step, ...]:
        """The steps of a thread, whose inferences are ``own``, and of its helpers (all of
        ``threads`` but the first).
        """
        calls, window = self.trace.api_calls, self.window
        begins, ends = (
            self.inferences.ints("enqueue_start_ns")[own],
            self.inferences.ints("enqueue_end_ns")[own],
        )
        rows = window.rows(calls)
        by = calls.held_ints("thread").take(rows)
        rows, by = rows[np.isin(by, threads)], by[np.isin(by, threads)]
        start, end = calls.held_ints("start_ns").take(rows), calls.held_ints("end_ns").take(rows)
        # per stretch: the thread's first inference
        entered = begins[np.minimum(np.searchsorted(begins, window.begin_ns), len(begins) - 1)]
        stretch = np.searchsorted(window.begin_ns, start, side="right") - 1
        inside = start >= entered[stretch]
        rows, by, start, end, stretch = (
            values[inside] for values in (rows, by, start, end, stretch)
        )
        kinds, names = calls.held_text("kind").take(rows), calls.held_text("api").take(rows)
        nested = np.zeros(len(rows), np.bool_)
        for thread in threads:
            made = np.flatnonzero(by == thread)
            nested[made] = (
                end[made] <= np.maximum.accumulate(np.concatenate([begins[:1], end[made]]))[:-1]
            )
        acts = kinds.where((*_ACTS, *_EVENTS).__contains__) | np.isin(rows, self.pieces.launch)
        if len(threads) > 1:
            # while a helper waits, the other thread goes on, or waits for it outside CUDA: only the
            # second holds up both
            waits = kinds.equals("sync") & ~_beside_others(by, start, end)
            acts &= (by == threads[0]) | np.isin(rows, self.pieces.launch) | waits
        mine = np.flatnonzero(~nested & acts & ~names.where(OWN_CALLS.__contains__))
        if (
            len(threads) > 1
        ):  # what another thread launches while this one waits is launched before the wait ends
            waits = kinds.take(mine).equals("sync")
            mine = mine[np.lexsort((np.where(waits, end[mine], start[mine]), stretch[mine]))]
        taken, begun, ended = rows[mine], start[mine], end[mine]
        reached = np.maximum.accumulate(np.concatenate([begins[:1], ended]))[:-1]
        fresh = np.ones(len(mine), np.bool_)
        fresh[1:] = stretch[mine][1:] != stretch[mine][:-1]
        previous = np.where(fresh, entered[stretch[mine]], reached[: len(taken)])
        # of calls of two threads at once the later one takes only what is left
        begun = np.maximum(begun, np.minimum(previous, ended))
        between = (np.minimum(previous, begun), begun)
        profiler = self._profiler_time(threads, rows, *between)
        spans = enqueue_spans(self.trace, self.inferences.take(own))
        outside = between[1] - between[0] - covered(spans.start_ns, spans.end_ns, within=between)
        inference = np.maximum(np.searchsorted(begins, start[mine], side="right") - 1, 0)
        columns = (
            taken, begun, ended, self.blocking[taken], inference, ended <= ends[inference],
            between[1] - between[0], profiler, outside,
            *np.searchsorted(self.pieces.launch, [taken, taken + 1]),
        )  # fmt: skip
        calls_made = zip(
            kinds.take(mine).list(),
            names.take(mine).list(),
            *(column.tolist() for column in columns),
            strict=True,
        )
        return _with_late_waits(
            [self._step(_Call(*call)) for call in calls_made],
            self.inferences.ints("gpu_end_ns")[own],
        )

    def _profiler_time(
        self, threads: tuple[int, ...], rows: IntArray, left: IntArray, right: IntArray
    ) -> IntArray:
        """The profiler's part of each stretch between calls: range events, its own calls, the edges
        of traced calls, overhead rows.
        """
        ranges, calls, overheads = (
            self.trace.nvtx_ranges,
            self.trace.api_calls,
            self.trace.overheads,
        )
        there = ranges.take(self.window.touching(ranges))
        here = np.isin(there.ints("thread"), threads)
        events = np.sort(
            np.concatenate([there.ints(name)[here] for name in ("start_ns", "end_ns")])
        )
        made = calls.take(rows)
        between = left, right
        its_own = made.text("api").where(OWN_CALLS.__contains__)
        inside = covered(
            made.ints("start_ns")[its_own], made.ints("end_ns")[its_own], within=between
        )
        held = np.isin(overheads.ints("thread"), threads)
        by_rows = covered(
            overheads.ints("start_ns")[held], overheads.ints("end_ns")[held], within=between
        )
        estimate = (
            profiler_parts(events, left, right, made.ints("start_ns"), self.profiler)
            + inside
            + by_rows
        )
        result: IntArray = np.minimum(estimate, right - left)
        return result

    def _step(self, call: _Call) -> Step:
        works = self._works(call)
        blocking = call.blocking and bool(works)
        if call.kind == "sync":
            return self._sync(call)
        length = call.end_ns - call.start_ns
        lag = 0
        if blocking:
            could_begin = max(call.start_ns, self._last_end_before(works[0].start_ns))
            lag, length = works[0].start_ns - could_begin, call.end_ns - could_begin
        kind: StepKind = "block" if blocking else "event" if call.kind in _EVENTS else "submit"
        return Step(
            kind=kind,
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
        sync = int(self.sync_row.take(np.array([call.row]))[0])
        of_event = "Event" in call.api
        queue = ALL_QUEUES
        if sync >= 0 and "Stream" in call.api:
            queue = self.queues.get(int(self.trace.syncs.ints("stream")[sync]), ALL_QUEUES)
        pieces = self.pieces
        done = np.flatnonzero((self.launch_start < call.start_ns) & (pieces.end_ns <= call.end_ns))
        target = int(done[np.argmax(pieces.end_ns[done])]) if len(done) else MISSING
        waited = target != MISSING and int(pieces.end_ns[target]) > call.start_ns
        late = call.end_ns - int(pieces.end_ns[target]) - self.costs.return_ns if waited else 0
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
            lag_ns=max(late, 0),
            queue=queue,
            target=target if of_event else MISSING,
            graph=False,
            works=(),
        )

    def _works(self, call: _Call) -> tuple[Work, ...]:
        """The pieces that one call launched."""
        works: list[Work] = []
        ends, first, graph = self.pieces.end_ns, call.first, call.kind == "graph-launch"
        for at in range(first, call.last):
            start, end, row, kind, queue, likely, most, pinned, sms, early, at_once = self.listed[
                at
            ]
            after = self.pieces.after[at]
            if graph:
                before = max((int(ends[other]) for other in after), default=self.listed[first][0])
            else:
                before = works[-1].end_ns if works else start
            lead = start - before
            submitted = graph and not after and before < call.end_ns <= start
            works.append(
                Work(
                    at,
                    row,
                    KINDS[kind],
                    queue,
                    start,
                    end,
                    end - start,
                    lead,
                    after,
                    likely,
                    most,
                    pinned,
                    sms,
                    early,
                    at_once,
                    submitted,
                )
            )
        return tuple(works)

    def _last_end_before(self, moment: int) -> int:
        ends = self.pieces.end_ns
        before = ends[ends <= moment]
        return int(before.max()) if len(before) else MISSING


def _with_late_waits(steps: list[Step], ends_ns: IntArray) -> tuple[Step, ...]:
    """Makes waits return late only in the few inferences that were held up so long that this alone
    makes them take 1.5 times as long (``ends_ns`` is when they end). Everywhere else the return
    takes its usual time, or the host waited for something that is not in the trace.
    """
    usual = float(np.median(np.diff(np.sort(ends_ns)))) if len(ends_ns) > 1 else 0.0
    waits = [place for place, step in enumerate(steps) if step.kind == "sync"]
    late = [place for place in waits if steps[place].lag_ns > (OUTLIER - 1) * usual > 0]
    if len(late) > FEW * len(waits):
        late = []
    for place in set(waits).difference(late):
        steps[place] = steps[place]._replace(lag_ns=0)
    return tuple(steps)
