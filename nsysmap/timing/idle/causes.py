"""Determines what a host thread was doing while the GPU waited for it, and so why the GPU was
idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from nsysmap.core.groups import rows_by_value
from nsysmap.core.idle_causes import IDLE_CAUSES, HostSpans
from nsysmap.core.intervals import Spans, Timed, cut, innermost, union
from nsysmap.core.memory import whole
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, CodeArray, IntArray, Table, Text, packed, slim
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.inferences.compilation import compilation
from nsysmap.trace.inferences.find import enqueue_spans
from nsysmap.trace.model import Trace

CAUSES = tuple(IDLE_CAUSES)
LAUNCH = CAUSES.index("launch")
HOST = CAUSES.index("host")
SYNC = CAUSES.index("sync")
COPY = CAUSES.index("copy")
DISPATCH = CAUSES.index("dispatch")
SWITCH = CAUSES.index("switch")
GRAPH = CAUSES.index("graph")
COMPILE = CAUSES.index("compile")
PROFILER = CAUSES.index("profiler")
NO_WORK = CAUSES.index("no-work")
UNKNOWN = CAUSES.index("unknown")

# not part of launching, even inside an enqueue
_ELSEWHERE = (
    "alloc",
    "free",
    "host-register",
    "module-load",
    "graph-build",
    "capture",
)
_LAUNCHING = ("launch", "graph-launch", "copy", "memset", "event", "stream-wait")
# a shorter call that neither launches nor blocks counts as part of the surrounding host work
_WORTH_NAMING_NS = 5_000
# The OS calls in which a server's thread waits for the next request or for another thread.
_WAITS = (
    "poll", "ppoll", "select", "pselect", "pselect6", "epoll_wait", "epoll_pwait", "accept",
    "accept4", "read", "recv", "recvfrom",
    "recvmsg", "futex", "pthread_cond_wait", "pthread_cond_timedwait", "sem_wait", "sem_timedwait",
    "nanosleep", "clock_nanosleep",
    "usleep", "sleep", "sigwait", "mq_receive",
)  # fmt: skip
# causes that spans of a narrower one, such as compiling, take the place of
_YIELDING = tuple(number for number, one in enumerate(IDLE_CAUSES.values()) if one.yields)


@dataclass(frozen=True)
class IdleEvidence:
    """What shows a cause: a row of the host's, or what is known of the calls."""

    kind: str  # see the column evidence_kind of GAPS
    name: str

    @property
    def text(self) -> str:
        """Both, as the table has them."""
        return f"{_LEADS.get(self.kind, '')}{self.name}"


_LEADS = {"profiler": "profiler: ", "inferred": "profiler, inferred: ", "range": "range "}
NO_CALL = IdleEvidence("none", "no CUDA call")


@dataclass(frozen=True)
class IdlePieces:
    """Pieces of idle time, each with one cause; one row per piece."""

    owner: IntArray  # row of the idle interval to which it belongs
    start_ns: IntArray
    end_ns: IntArray
    cause: IntArray  # position in CAUSES
    evidence: IntArray  # position in Host.labels
    proof_start_ns: IntArray  # time of the row that the evidence names, MISSING if it names none
    proof_end_ns: IntArray

    def take(self, rows: IntArray) -> IdlePieces:
        """The pieces at these positions."""
        return IdlePieces(*(getattr(self, name)[rows] for name in IdlePieces.__dataclass_fields__))


def joined(parts: list[IdlePieces]) -> IdlePieces:
    """All pieces by owner and time; neighbours with the same cause and evidence become one
    piece.
    """
    columns = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in IdlePieces.__dataclass_fields__
    ]
    rows = np.flatnonzero(columns[2] > columns[1])
    rows = rows[np.lexsort((columns[1][rows], columns[0][rows]))]
    owner, start, end, cause, evidence, proof_start, proof_end = (
        column[rows] for column in columns
    )
    if len(owner) == 0:
        return IdlePieces(owner, start, end, cause, evidence, proof_start, proof_end)
    fresh = np.ones(len(owner), np.bool_)
    fresh[1:] = owner[1:] != owner[:-1]
    same = np.flatnonzero(~fresh)
    before = same - 1
    fresh[same] = (
        (start[same] != end[before])
        | (cause[same] != cause[before])
        | (evidence[same] != evidence[before])
    )
    fresh[same] |= proof_start[same] != proof_start[before]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(owner)) - 1
    return IdlePieces(
        owner[first],
        start[first],
        end[last],
        cause[first],
        evidence[first],
        proof_start[first],
        proof_end[first],
    )


@dataclass(frozen=True)
class Labels:
    """The position in Host.labels of each row of a table."""

    codes: CodeArray
    of_code: IntArray

    def at(self, rows: IntArray) -> IntArray:
        """The values in these rows; 0 if the table has no rows."""
        if not len(self.codes):
            return np.zeros(len(rows), np.int64)
        result: IntArray = self.of_code[self.codes[rows]]
        return result


@dataclass(frozen=True)
class Narrower:
    """When threads did something that has a cause of its own, and what shows it."""

    cause: int  # position in CAUSES
    spans: Timed
    label: Labels


def _narrower(trace: Trace) -> Iterator[tuple[int, HostSpans]]:
    """The causes that spans of the host's time show."""
    found = compilation(trace)
    evidence = Text.of(one.text for one in found.shown_by(trace, np.arange(len(found))))
    yield COMPILE, HostSpans(found.thread, found.start_ns, found.end_ns, evidence)
    for number, cause in enumerate(IDLE_CAUSES.values()):
        if cause.shown_by is not None:
            yield number, cause.shown_by(trace)


@dataclass(frozen=True)
class Host:
    """What the host threads of a trace did, prepared for queries."""

    calls: Timed
    call_kind: Text
    blocking_copy: BoolArray  # per API call: whether it is a copy that blocks the host
    overheads: Timed
    enqueues: Timed  # of the inferences
    ranges: Timed
    osrt_calls: Timed
    narrower: tuple[Narrower, ...]  # what takes the place of more general causes
    waiting: BoolArray  # per OS call
    labels: tuple[IdleEvidence, ...]
    call_label: Labels
    overhead_label: Labels
    range_label: Labels
    os_label: Labels

    @staticmethod
    def of(trace: Trace, inferences: Table) -> Host:
        """Made from the trace and its inferences."""
        labels: dict[IdleEvidence, int] = {NO_CALL: 0}
        calls, os_names = trace.api_calls, trace.osrt_calls.text("name")
        narrower = [
            Narrower(
                cause,
                Timed.held(slim(spans.thread), slim(spans.start_ns), slim(spans.end_ns)),
                _label(spans.evidence, labels, "first-use" if cause == COMPILE else "host"),
            )
            for cause, spans in _narrower(trace)
        ]
        return Host(
            calls=Timed.of(calls),
            call_kind=calls.held_text("kind"),
            blocking_copy=packed(blocking_copies(trace)),
            overheads=Timed.of(trace.overheads),
            enqueues=Timed.held(*vars(enqueue_spans(trace, inferences)).values()),
            ranges=Timed.of(trace.nvtx_ranges),
            osrt_calls=Timed.of(trace.osrt_calls),
            narrower=tuple(narrower),
            waiting=np.isin(
                os_names.codes,
                [code for code, name in enumerate(os_names.values) if name in _WAITS],
            ),
            call_label=_label(calls.held_text("api"), labels, "call"),
            overhead_label=_label(trace.overheads.held_text("name"), labels, "profiler"),
            range_label=_label(trace.nvtx_ranges.held_text("name"), labels, "range"),
            os_label=_label(os_names, labels, "os-call"),
            labels=tuple(labels),
        )

    @cached_property
    def profiler_stops(self) -> tuple[IntArray, IntArray]:
        """The times during which the profiler stopped any thread, concatenated."""
        return union(whole(self.overheads.start_ns), whole(self.overheads.end_ns))

    def profiler_pieces(self, pieces: IdlePieces, thread: IntArray) -> IdlePieces:
        """The same pieces, with the time during which the profiler stopped their thread attributed
        to it; ``thread`` has one entry per piece.
        """
        if len(self.overheads) == 0 or len(pieces.owner) == 0:
            return pieces
        left, right = self.profiler_stops
        at = np.searchsorted(right, pieces.start_ns, side="right")
        touched = (at < len(left)) & (left[np.minimum(at, len(left) - 1)] < pieces.end_ns)
        return _replaced(
            pieces, thread, touched, self.overheads, self.overhead_label, PROFILER, pieces.end_ns
        )

    def narrowed(self, pieces: IdlePieces, thread: IntArray, launched_ns: IntArray) -> IdlePieces:
        """The same pieces, in order, with the time in which their thread did something that has a
        cause of its own, such as compiling kernels, attributed to that, if it began before the
        launch call returned (``launched_ns``); ``thread`` and ``launched_ns`` have one entry per
        idle interval.
        """
        for one in self.narrower:
            if len(one.spans) == 0 or len(pieces.owner) == 0:
                continue
            touched = np.isin(pieces.cause, _YIELDING)
            launched = launched_ns[pieces.owner]
            pieces = joined(
                [
                    _replaced(
                        pieces,
                        thread[pieces.owner],
                        touched,
                        one.spans,
                        one.label,
                        one.cause,
                        launched,
                    )
                ]
            )
        return pieces

    def causes(self, idle: Spans, launch: IntArray) -> IdlePieces:
        """Why each of these idle times passed before its thread began the launch call that ended it
        (``launch``: that call's row).

        In order: the profiler held the thread; the thread was in a blocking call, a blocking copy,
        an allocation; it was inside an enqueue or in another launching call; it was in no CUDA
        call, and then the innermost NVTX range names what it did. Idle times of one thread must not
        overlap.
        """
        calls = self.calls.near(idle)
        special = (
            np.isin(self.call_kind.codes[calls], _codes(self.call_kind, ("sync", *_ELSEWHERE)))
            | self.blocking_copy[calls]
        )
        long = self.calls.at("end_ns", calls) - self.calls.at("start_ns", calls) >= _WORTH_NAMING_NS
        telling = (
            special
            | long
            | np.isin(self.call_kind.codes[calls], _codes(self.call_kind, _LAUNCHING))
        )
        calls, special = calls[telling], special[telling]
        overheads, enqueues = self.overheads.near(idle), self.enqueues.near(idle)
        around = self.enqueues.take(enqueues)
        outside = innermost(around, self.calls.take(calls)) == MISSING
        cutting = [
            self.calls.take(calls[special | outside]),
            self.overheads.take(overheads),
            around,
        ]
        start, end, row = _cut_by_thread(idle, cutting)
        pieces = Spans(idle.thread[row], start, end)
        enqueuing = innermost(around, pieces) >= 0
        held = _rows(overheads, innermost(self.overheads.take(overheads), pieces))
        call = _rows(calls, innermost(self.calls.take(calls), pieces))
        free = ~enqueuing & (held < 0) & (call < 0)
        named = [self._own_work(_take(pieces, np.flatnonzero(free)), row[free])]
        at = np.flatnonzero(~free)
        named.append(
            self._calls(
                _take(pieces, at), row[at], held[at], call[at], enqueuing[at], launch[row[at]]
            )
        )
        return joined(named)

    def _calls(
        self,
        pieces: Spans,
        owner: IntArray,
        held: IntArray,
        call: IntArray,
        enqueuing: BoolArray,
        launch: IntArray,
    ) -> IdlePieces:
        """The cause of pieces in an API call, inside an enqueue or held by the profiler."""
        safe_call, safe_held = np.where(call >= 0, call, 0), np.where(held >= 0, held, 0)
        kind = self.call_kind.codes[safe_call] if len(self.calls) else np.full(len(call), -1)
        sync = (call >= 0) & np.isin(kind, _codes(self.call_kind, ("sync",)))
        copy = (call >= 0) & (self.blocking_copy[safe_call] if len(self.calls) else False)
        elsewhere = (call >= 0) & np.isin(kind, _codes(self.call_kind, _ELSEWHERE))
        launching = (call >= 0) & np.isin(kind, _codes(self.call_kind, _LAUNCHING))
        cause = np.select(
            [held >= 0, copy, sync, elsewhere, enqueuing | launching],
            [PROFILER, COPY, SYNC, HOST, LAUNCH],
            default=HOST,
        ).astype(np.int64)
        # Inside an enqueue the evidence is the launch call that came too late; elsewhere it is the
        # call in which the thread was.
        proof = np.where((cause == LAUNCH) & (enqueuing | (call < 0)), launch, safe_call)
        by_profiler = cause == PROFILER
        return IdlePieces(
            owner,
            pieces.start_ns,
            pieces.end_ns,
            cause,
            np.where(by_profiler, self.overhead_label.at(safe_held), self.call_label.at(proof)),
            np.where(
                by_profiler,
                self.overheads.at("start_ns", safe_held),
                self.calls.at("start_ns", proof),
            ),
            np.where(
                by_profiler, self.overheads.at("end_ns", safe_held), self.calls.at("end_ns", proof)
            ),
        )

    def _own_work(self, idle: Spans, owner: IntArray) -> IdlePieces:
        """The pieces of a thread's time outside CUDA, named after its innermost range; waiting
        outside all ranges is ``no-work``.
        """
        ranges, waits = self.ranges.near(idle), self.osrt_calls.near(idle)
        waits = waits[self.waiting[waits]]
        around, waiting = self.ranges.take(ranges), self.osrt_calls.take(waits)
        start, end, row = _cut_by_thread(idle, [around, waiting])
        pieces = Spans(idle.thread[row], start, end)
        named = _rows(ranges, innermost(around, pieces))
        wait = _rows(waits, innermost(waiting, pieces))
        no_work = (named < 0) & (wait >= 0)
        safe_named, safe_wait = np.where(named >= 0, named, 0), np.where(wait >= 0, wait, 0)
        nothing = np.full(len(row), MISSING, np.int64)
        choices = [no_work, named >= 0]
        return IdlePieces(
            owner[row],
            start,
            end,
            np.where(no_work, NO_WORK, HOST).astype(np.int64),
            np.select(
                choices, [self.os_label.at(safe_wait), self.range_label.at(safe_named)], default=0
            ),
            np.select(
                choices,
                [self.osrt_calls.at("start_ns", safe_wait), self.ranges.at("start_ns", safe_named)],
                default=nothing,
            ),
            np.select(
                choices,
                [self.osrt_calls.at("end_ns", safe_wait), self.ranges.at("end_ns", safe_named)],
                default=nothing,
            ),
        )


def _replaced(
    pieces: IdlePieces,
    thread: IntArray,
    touched: BoolArray,
    covering: Timed,
    label: Labels,
    cause: int,
    before_ns: IntArray,
) -> IdlePieces:
    """The pieces, of which those touched get another cause where one of these spans of their
    thread, that began before a time of each, covers them: (spans, labels, cause).
    """
    if not touched.any():
        return pieces
    rest, pieces = pieces.take(np.flatnonzero(~touched)), pieces.take(np.flatnonzero(touched))
    thread, before_ns = thread[touched], before_ns[touched]
    spans = Spans(thread, pieces.start_ns, pieces.end_ns)
    near = covering.near(spans)
    found = covering.take(near)
    start, end, row = _cut_by_thread(spans, [found])
    held = _rows(near, innermost(found, Spans(thread[row], start, end)))
    is_held = (held >= 0) & (covering.at("start_ns", held) < before_ns[row])
    safe = np.where(is_held, held, 0)
    cut_up = IdlePieces(
        pieces.owner[row],
        start,
        end,
        np.where(is_held, cause, pieces.cause[row]),
        np.where(is_held, label.at(safe), pieces.evidence[row]),
        np.where(is_held, covering.at("start_ns", safe), pieces.proof_start_ns[row]),
        np.where(is_held, covering.at("end_ns", safe), pieces.proof_end_ns[row]),
    )
    return IdlePieces(
        *(
            np.concatenate([getattr(rest, name), getattr(cut_up, name)])
            for name in IdlePieces.__dataclass_fields__
        )
    )


def _take(spans: Spans, rows: IntArray) -> Spans:
    return Spans(spans.thread[rows], spans.start_ns[rows], spans.end_ns[rows])


def _rows(rows: IntArray, found: IntArray) -> IntArray:
    """The rows behind positions in a selection; MISSING stays."""
    return (
        np.where(found >= 0, rows[np.where(found >= 0, found, 0)], np.int64(MISSING))
        if len(rows)
        else found
    )


def _codes(text: Text, values: tuple[str, ...]) -> list[int]:
    return [code for code, value in enumerate(text.values) if value in values]


def _label(names: Text, labels: dict[IdleEvidence, int], kind: str) -> Labels:
    found = [IdleEvidence(kind, name.strip()) for name in names.values]
    of_code = np.array([*(labels.setdefault(one, len(labels)) for one in found), 0], np.int64)
    return Labels(names.codes, of_code)


def _cut_by_thread(idle: Spans, cutting: list[Spans]) -> tuple[IntArray, IntArray, IntArray]:
    """The idle intervals split where a span of their own thread begins or ends; spans of one thread
    must be disjoint.
    """
    starts, ends, rows = [], [], []
    thread = np.concatenate([spans.thread for spans in cutting] * 2)
    moments = np.concatenate(
        [spans.start_ns for spans in cutting] + [spans.end_ns for spans in cutting]
    )
    cut_at = {key: moments[at] for key, at in rows_by_value(thread)}
    for key, at in rows_by_value(idle.thread):
        mine = at[np.argsort(idle.start_ns[at], kind="stable")]
        start, end, owner = cut(
            idle.start_ns[mine], idle.end_ns[mine], cut_at.get(key, moments[:0])
        )
        starts.append(start)
        ends.append(end)
        rows.append(mine[owner])
    if not rows:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    return np.concatenate(starts), np.concatenate(ends), np.concatenate(rows)
