"""When host threads compiled kernels, or loaded their code: at the first run of a shape, and the
first launch of a kernel.
"""

from __future__ import annotations

import re

import numpy as np

from nsysmap.core.groups import (
    distinct,
    first_rows,
    is_sorted,
    numbered_in_turn,
    rows_by_value,
    rows_of_values,
)
from nsysmap.core.intervals import Spans, Timed
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass, kept
from nsysmap.core.table import MISSING, BoolArray, CodeArray, IntArray, Table
from nsysmap.names.decode import decode
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.model import Trace

_SLOW = 10.0
"""Times the median of its like, from which on a call is slow.  In five of six programs whose start
is in the trace, half of all first launches of a kernel were (100 to 5,000 times it), and up to 10 %
of the others, which a full queue or the scheduler held up.
"""
_LEAST_NS = 20_000
"""A call that takes less loads no code: the quickest load of a module's first function took 60 µs
(an H200's driver).
"""
_LOADS_NS = 60_000
"""A first launch that takes as long loads code, where no later launch tells what is usual: the call
itself takes 2 to 20 µs, and a queue that is still empty holds nothing up.
"""
_MORE_OFTEN = 5.0
"""Times as often first launches must be slow as others, to be slow because they are the first: a
trace that begins in the middle of a run has first launches too.
"""
_SETS_UP_NS = 7_000_000
"""A first launch that takes longer loads code, also where no load shows in the trace before it:
nsys sets up its own tables in 44 to 700 µs (sixty captures between cudaProfilerStart and
cudaProfilerStop), on a host ten times as slow in 7 ms.  TensorFlow's took 678 ms.  Any call that
takes longer and neither waits nor copies creates a context: 47 to 360 ms on six GPUs.
"""
_EDGES = ("start", "end")
_BEGINS = "cuModuleGetLoadingMode"  # the CUDA runtime asks that once, when it starts
# calls about a function, the first of which loads it
_FUNCTION = re.compile(r"cu(da)?((Func|Kernel)(Get|Set)|Occupancy)")
_COMPILING = re.compile(r"Xla(Compile|Autotun)|_?compile_(inner|fx)|_compile\.")
"""Begin the names of ranges in which XLA, Dynamo and Inductor compile.  A range of the program's
own, such as "torch.compile", may be its run.
"""
_SAYS_COMPILING = re.compile(
    r"(?<![A-Za-z])compil(e|ing|ation)(?![a-z])|Compil(e|ing|ation)(?![a-z])|Nvrtc|NVRTC"
)
"""Parts of names of ranges in which a compiler may work: nvFuser's
FusionKernelRuntime::compileKernel, a program's own "compile model". Their content shows whether it
does: a range "torch.compile" around a run launches kernels, a compiler does not.
"""
_TUNING = (
    "RedzoneAllocatorKernel", "redzone_checker", "RepeatBufferKernel", "xla_fp_comparison",
)  # fmt: skip
"""Parts of names of kernels that run only where kernels are tried out: checks of memory and results
of XLA and TensorFlow, and XLA's delay before each trial.
"""
_DELAY = re.compile(r"\bDelayKernel")


@dataclass(frozen=True)
class FirstUseEvidence:
    """The evidence that kernels were compiled, or their code was loaded."""

    # compiler (the host's own work until it loaded code), library (the same where all kernels that
    # follow are those of libraries), load (a call), first-call (of a kernel), range, tried-out,
    # among-them
    kind: str
    name: str

    @property
    def text(self) -> str:
        """Both, as the tables have them."""
        return f"{_LEADS.get(self.kind, '')}{self.name}"


_LEADS = {
    "compiler": "before ",
    "library": "library before ",
    "first-call": "first ",
    "range": "range ",
}
TRIED_OUT = FirstUseEvidence("tried-out", "kernels that are tried out")
AMONG_THEM = FirstUseEvidence("among-them", "others that load kernels")
"""The evidence where nothing was compiled or loaded, between repetitions in which it was: with such
kernels on that thread, and without.
"""
_BRING_KERNELS = frozenset(
    {
        "pytorch",
        "cublas",
        "nvjet",
        "cudnn",
        "cutlass",
        "cub",
        "xmma",
        "flash-attention",
        "nccl",
        "reformat",
    }
)
"""Families of kernels that were compiled with their libraries: what a library does before it loads
them is no compiler's work.  cuBLAS takes up to 6 ms for each of the four parts that a first product
loads, as long as a small compilation.
"""
_GENERATED = "cudnn_generated"
"""Begins the names of kernels that cuDNN compiles while the program runs."""
_LOAD = re.compile(r"cu(da)?(Module|Library)Load")


@dataclass(frozen=True)
class Compilation:
    """When each thread compiled kernels or loaded their code: spans that do not overlap on their
    thread, by thread and start.
    """

    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray
    call: IntArray  # row in api_calls that shows it, MISSING where a range does
    range: IntArray  # row in nvtx_ranges, MISSING where a call does
    before: BoolArray  # the host's own work up to that call, which loads what it made
    ready: BoolArray  # of those, whether a library that brings its kernels with it does that work

    def __len__(self) -> int:
        return len(self.thread)

    @property
    def spans(self) -> Spans:
        """When, on which thread."""
        return Spans(self.thread, self.start_ns, self.end_ns)

    def shown_by(self, trace: Trace, rows: IntArray) -> list[FirstUseEvidence]:
        """The evidence for each of these: a call, the host's work before one, or a range."""
        call = self.call[rows]
        api, kind = (trace.api_calls.text(name).take(call).list() for name in ("api", "kind"))
        ranges = trace.nvtx_ranges.text("name").take(self.range[rows]).list()
        before, ready = self.before[rows].tolist(), self.ready[rows].tolist()
        found = []
        for at in range(len(rows)):
            name = api[at]
            if name is None:
                found.append(FirstUseEvidence("range", (ranges[at] or "").strip()))
            elif before[at]:
                found.append(FirstUseEvidence("library" if ready[at] else "compiler", name))
            else:
                loads = kind[at] == "module-load"
                found.append(FirstUseEvidence("load" if loads else "first-call", name))
        return found

    def within(self, times: Spans) -> IntArray:
        """How much of each of these times of a thread was spent on it, in nanoseconds."""
        result = np.zeros(len(times.thread), np.int64)
        asked_of = dict(rows_by_value(times.thread))
        for key, own in rows_by_value(self.thread):
            if (asked := asked_of.get(key)) is None:
                continue
            start, end = self.start_ns[own], self.end_ns[own]
            spent = np.concatenate([[0], np.cumsum(end - start)])
            for sign, moment in ((1, times.end_ns[asked]), (-1, times.start_ns[asked])):
                at = np.searchsorted(start, moment, side="right")
                left = np.where(at > 0, np.clip(end[np.maximum(at - 1, 0)] - moment, 0, None), 0)
                result[asked] += sign * (spent[at] - left)
        return result

    def most(
        self, trace: Trace, times: Spans, wanted: BoolArray, tuning: BoolArray
    ) -> list[FirstUseEvidence | None]:
        """The strongest evidence in each of these times if it is wanted or lies among such times,
        where the threads of ``tuning`` times try out kernels; None for other times.
        """
        tried_out = np.isin(times.thread, times.thread[tuning]).tolist()
        found: list[FirstUseEvidence | None] = [None] * len(wanted)
        for at in np.flatnonzero(wanted).tolist():
            left, right = (
                np.maximum(self.start_ns, times.start_ns[at]),
                np.minimum(self.end_ns, times.end_ns[at]),
            )
            took = np.where(self.thread == times.thread[at], right - left, 0)
            found[at] = (
                self.shown_by(trace, np.array([took.argmax()]))[0]
                if took.max(initial=0) > 0
                else TRIED_OUT
                if tried_out[at]
                else AMONG_THEM
            )
        return found


@kept
def compilation(trace: Trace) -> Compilation:
    """When the threads of a trace compiled kernels or loaded their code.

    That is in calls that load modules and libraries; in the first launch of a kernel and the first
    call about it, where these take much longer than others (lazy loading); in ranges that say so
    and launch nothing; and in the host's own work directly before it loads a module itself, back to
    the call before it or the begin of the innermost range around it: a compiler runs there.
    """
    calls = trace.api_calls
    shown = np.flatnonzero(calls.text("kind").equals("module-load"))
    rows = distinct(
        np.concatenate([shown, _first_launches(trace, shown), _first_calls(trace, shown)])
    )
    thread, start, end = (calls.ints_at(name, rows) for name in ("thread", "start_ns", "end_ns"))
    nothing = np.full(len(rows), MISSING, np.int64)
    parts = [(thread, start, end, rows, nothing, np.zeros(len(rows), np.bool_))]
    parts += [_own_work(trace, shown), _ranges(trace)]
    thread, start, end, call, of_range = (
        np.concatenate([part[i] for part in parts]) for i in range(5)
    )
    before = np.concatenate([part[5] for part in parts])
    ready, own = before.copy(), np.flatnonzero(before)
    ready[own] = _loads_ready_kernels(trace, calls.ints_at("process", call[own]), end[own])
    order = np.lexsort((-end, start, thread))
    kept = order[_outermost(thread[order], end[order])]
    thread, start, end, call, of_range = (
        column[kept] for column in (thread, start, end, call, of_range)
    )
    # one that begins within the one before it goes on where that ends
    reached = np.concatenate([[0], end[:-1]])
    begins = (
        np.where(
            np.concatenate([[False], thread[1:] == thread[:-1]]) & (reached > start), reached, start
        )
        if len(start)
        else start
    )
    return Compilation(thread, begins, end, call, of_range, before[kept], ready[kept])


def tunes(kernels: Table) -> BoolArray:
    """Marks the kernels that run only where a program tries out kernels to find the fastest."""
    return kernels.text("name").where(
        lambda name: (
            any(word in name for word in _TUNING)
            or ("DelayKernel" in name and _DELAY.search(name) is not None)
        )
    )


def trials(kernels: Table) -> BoolArray:
    """Marks the kernels that a program tried out: those that a thread launched from the first to
    the last of the kernels that run only there, unless that stretch is most of the thread's work.
    """
    tuning, found = tunes(kernels), np.zeros(len(kernels), np.bool_)
    thread = kernels.ints("thread")
    tuned = np.flatnonzero(np.isin(thread, thread[tuning]))
    for _, at in rows_by_value(thread[tuned]):
        rows = tuned[at]
        rows = launch_order(kernels, rows)
        open_ones = [np.flatnonzero(tuning[rows])]
        while open_ones:
            places = open_ones.pop()
            whole, between = int(places[-1] - places[0]), np.diff(places)
            if len(places) > 1 and 2 * int(between.max()) > whole + 1:
                cut = int(between.argmax()) + 1
                open_ones += [places[:cut], places[cut:]]
            else:
                found[rows[places[0] : places[-1] + 1]] = True
    return found


def first_use_ns(inferences: Table) -> IntArray:
    """For each row of INFERENCES how long compiling or loading kernels kept it, in ns: the host's
    time in that, without what the GPU worked meanwhile.

    A call that loads code returns only after the GPU has finished earlier work, so its duration
    alone would count that work as well.  Repetitions that nothing marks have what comes before
    their first launch, such as a compiler's run.
    """
    took, busy = inferences.ints("compile_ns"), inferences.ints("gpu_busy_ns")
    idle = inferences.ints("end_ns") - _begins_after_the_last(inferences) - np.maximum(busy, 0)
    kept: IntArray = np.minimum(took, np.maximum(idle, 0))
    return kept


def _begins_after_the_last(inferences: Table) -> IntArray:
    """When each of INFERENCES begins; of repetitions that nothing marks, when the one before them
    on their thread has ended.
    """
    begin, end = inferences.ints("start_ns").copy(), inferences.ints("end_ns")
    rows = np.flatnonzero(inferences.text("found_by").equals("period"))
    for _, places in rows_by_value(inferences.ints("thread")[rows]):
        mine = rows[places]
        mine = mine[np.argsort(begin[mine], kind="stable")]
        ended = np.maximum.accumulate(end[mine])[:-1]
        begin[mine[1:]] = np.minimum(begin[mine[1:]], ended)
    return begin


def _outermost(thread: IntArray, end: IntArray) -> BoolArray:
    """Marks the spans, by thread and start, the longer first, that end later than all earlier ones
    on their thread.
    """
    if not len(thread):
        return np.zeros(0, np.bool_)
    first = np.concatenate([[True], thread[1:] != thread[:-1]])
    number = np.cumsum(first) - 1
    # the ends of a later thread are above all of an earlier one
    lift = number * (int(end.max()) - min(int(end.min()), 0) + 1)
    reached = np.maximum.accumulate(end + lift)
    kept: BoolArray = first | (end + lift > np.concatenate([[0], reached[:-1]]))
    return kept


def programs_begun(trace: Trace) -> dict[int, int]:
    """By process, the start of the first call that only a program's beginning has: the CUDA runtime
    starts, or a context is created.  Processes that began before the trace are not there.
    """
    calls = trace.api_calls
    kind = calls.text("kind")
    works = kind.equals("launch") | kind.equals("graph-launch") | kind.equals("copy")
    others = ~(works | kind.equals("sync"))
    begins = calls.text("api").equals(_BEGINS)
    for places, start, end in in_pieces(*(calls.held_ints(f"{edge}_ns") for edge in _EDGES)):
        begins[places] |= others[places] & (end - start > _SETS_UP_NS)
    rows = np.flatnonzero(begins)
    process, start = (calls.ints_at(name, rows) for name in ("process", "start_ns"))
    return {one: int(start[mine].min()) for one, mine in rows_by_value(process)}


def _first_launches(trace: Trace, loads: IntArray) -> IntArray:
    """The calls that launch a kernel for the first time in their process, and take much longer than
    launches do.

    Not the first launch of a thread where its process has neither begun nor loaded code in the
    trace by then, unless it takes too long for that: where the trace begins later than the program,
    that is when nsys sets up its own tables.
    """
    kernels, calls = trace.kernels, trace.api_calls
    loader, loaded = (calls.ints_at(name, loads) for name in ("process", "start_ns"))
    found = [np.zeros(0, np.int64)]
    # without loads in the trace, none is waited for
    since_of = {one: int(loaded[mine].min()) for one, mine in rows_by_value(loader)}
    begun_at = programs_begun(trace)
    launches = np.flatnonzero(
        (kernels.ints("graph_node_id") == MISSING) & (kernels.ints("launch") >= 0)
    )
    names = kernels.held_text("name").codes
    for one, rows in rows_of_values(kernels.ints_at("process", launches), launches):
        call = kernels.ints_at("launch", rows)
        if len(rows) == 1 and _took_ns(calls, call)[0] <= _LOADS_NS:  # as of very many processes
            continue
        first = _first_of_each(names[rows], call)
        first_calls, of_threads = (
            call[first],
            call[_first_of_each(kernels.ints_at("thread", rows), call)],
        )
        del call
        took = np.empty(len(rows), np.int64)
        for places, some in in_pieces(rows):
            launch = kernels.ints_at("launch", some)
            took[places] = _took_ns(calls, launch)
        known = len(first) < len(rows)
        usual = float(np.median(np.delete(took, first), overwrite_input=True)) if known else 0.0
        slow = took > max(_SLOW * usual, _LEAST_NS if known else _LOADS_NS)
        more = int(slow.sum() - slow[first].sum())
        others = more / (len(rows) - len(first)) if known else 0.0
        if float(slow[first].mean()) > _MORE_OFTEN * others:
            counts = first_calls[slow[first]]
            since = min(table.get(one, np.iinfo(np.int64).max) for table in (since_of, begun_at))
            begun, ended = (calls.ints_at(name, counts) for name in ("start_ns", "end_ns"))
            loads_code = (ended >= since) | (ended - begun > _SETS_UP_NS)
            found.append(counts[~np.isin(counts, of_threads) | loads_code])
    return np.concatenate(found)


def _first_of_each(values: IntArray | CodeArray, call: IntArray) -> IntArray:
    """The places of the first call of each value; calls are numbered in order of their start."""
    if is_sorted(call):
        return first_rows(values)
    order = np.argsort(call, kind="stable")
    return order[first_rows(values[order])]


def _took_ns(calls: Table, rows: IntArray) -> IntArray:
    return calls.ints_at("end_ns", rows) - calls.ints_at("start_ns", rows)


def _first_calls(trace: Trace, loads: IntArray) -> IntArray:
    """The calls about a function that take much longer than their like, after the process loaded
    code: it is loaded in the first.
    """
    calls = trace.api_calls
    if not len(loads):
        return loads
    api = calls.text("api")
    asked = np.flatnonzero(api.where(lambda name: _FUNCTION.match(name) is not None))
    found = [np.zeros(0, np.int64)]
    for code in distinct(api.codes[asked].astype(np.int64)).tolist():
        mine = asked[api.codes[asked] == code]
        took = calls.ints_at("end_ns", mine) - calls.ints_at("start_ns", mine)
        slow = mine[took > max(_SLOW * float(np.median(took)), _LEAST_NS)]
        first = {
            process: int(calls.ints_at("start_ns", loads).min())
            for process in distinct(calls.ints_at("process", loads)).tolist()
        }
        later = [
            calls.ints_at("start_ns", slow)[at] >= first.get(one, 1 << 62)
            for at, one in enumerate(calls.ints_at("process", slow))
        ]
        found.append(slow[np.array(later, np.bool_)])
    return np.concatenate(found)


_Part = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, BoolArray]


def _own_work(trace: Trace, loads: IntArray) -> _Part:
    """What threads did outside CUDA before a call that loads code; no other call of that thread
    lies within.

    The call is the thread's own, or that of one that launches nothing itself: a compiler's, for
    which the launching thread waits if it launches a kernel for the first time soon after.
    """
    calls = trace.api_calls
    loads = loads[calls.text("api").where(lambda name: _LOAD.match(name) is not None)[loads]]
    if not len(loads):
        return loads, loads, loads, loads, loads, np.zeros(0, np.bool_)
    loader, process, start = (
        calls.ints_at(name, loads) for name in ("thread", "process", "start_ns")
    )
    found = []
    for key, mine in rows_by_value(loader):
        own = _ThreadCalls.of(calls, key)
        found += [
            (key, own.idle_since(at), at, load)
            for at, load in zip(start[mine].tolist(), loads[mine].tolist(), strict=True)
        ]
    first = _first_of_names(trace)
    # threads that launch nothing
    others = ~np.isin(loader, np.array([thread for _, thread in first], np.int64))
    elsewhere = np.flatnonzero(others)
    compiled_for = {one: elsewhere[mine] for one, mine in rows_by_value(process[elsewhere])}
    for (owner, key), fresh in first.items():
        if owner in compiled_for:
            waiting = _ThreadCalls.of(calls, key)
            found += [
                (key, waiting.waits_since(int(start[row]), fresh), int(start[row]), int(loads[row]))
                for row in compiled_for[owner].tolist()
            ]
    thread, begin, end, call = (np.array([row[i] for row in found], np.int64) for i in range(4))
    around = Timed.of(trace.nvtx_ranges).around(Spans(thread, end, end))
    opened = np.append(trace.nvtx_ranges.ints("start_ns"), 0)  # the last is of no range
    begin = np.where(around >= 0, np.maximum(begin, opened[np.maximum(around, -1)]), begin)
    kept = begin < end
    return (
        thread[kept],
        begin[kept],
        end[kept],
        call[kept],
        np.full(int(kept.sum()), MISSING, np.int64),
        np.ones(int(kept.sum()), np.bool_),
    )


def _loads_ready_kernels(trace: Trace, process: IntArray, until: IntArray) -> BoolArray:
    """Whether the processes launch, after these moments, no kernel for the first time but those
    that libraries bring with them.
    """
    kernels, result = trace.kernels, np.zeros(len(until), np.bool_)
    if not len(until):
        return result
    names, launches = kernels.text("name"), kernels.ints("launch_start_ns")
    known = np.flatnonzero(launches != MISSING)
    rows_of = {one: known[at] for one, at in rows_by_value(kernels.ints("process")[known])}
    for one, mine in rows_by_value(process):
        rows = rows_of.get(one, known[:0])
        launched = launches[rows]
        codes, number = np.unique(names.codes[rows], return_inverse=True)
        first = np.full(len(codes), np.iinfo(np.int64).max)
        np.minimum.at(first, number, launched)
        made = [not _is_brought(str(names.values[code])) for code in codes.tolist()]
        result[mine] = (
            until[mine] > first[np.array(made, np.bool_)].max(initial=-1) if len(codes) else False
        )
    return result


def _is_brought(name: str) -> bool:
    return decode(name).family in _BRING_KERNELS and not name.startswith(_GENERATED)


def _first_of_names(trace: Trace) -> dict[tuple[int, int], IntArray]:
    """When each thread (process, thread) launched a kernel of a name that its process had not
    launched before, in order.
    """
    kernels = trace.kernels
    found: dict[tuple[int, int], list[int]] = {}
    rows = np.flatnonzero(kernels.ints("launch_start_ns") != MISSING)
    launched = kernels.ints_at("launch_start_ns", rows)
    if not is_sorted(launched):
        rows = rows[np.argsort(launched, kind="stable")]
    del launched
    names = kernels.held_text("name").codes
    columns = (kernels.ints_at("process", rows), names[rows].astype(np.int64))
    fresh = rows[numbered_in_turn(columns)[0]]
    for one, key, at in zip(
        kernels.ints_at("process", fresh).tolist(),
        kernels.ints_at("thread", fresh).tolist(),
        kernels.ints_at("launch_start_ns", fresh).tolist(),
        strict=True,
    ):
        found.setdefault((one, key), []).append(at)
    return {one: np.array(sorted(times), np.int64) for one, times in found.items()}


@dataclass(frozen=True)
class _ThreadCalls:
    """The calls of one thread, by start."""

    start_ns: IntArray
    reached_ns: IntArray  # the latest end of the calls up to that one

    @staticmethod
    def of(calls: Table, thread: int) -> _ThreadCalls:
        rows = np.flatnonzero(calls.ints("thread") == thread)
        ends = calls.ints_at("end_ns", rows)
        return _ThreadCalls(
            calls.ints_at("start_ns", rows), np.maximum.accumulate(ends) if len(ends) else ends
        )

    def idle_since(self, moment: int) -> int:
        """When the last call before that moment returned; the moment itself if it is in a call or
        there was none before.
        """
        before = int(np.searchsorted(self.start_ns, moment)) - 1
        return moment if before < 0 else min(int(self.reached_ns[before]), moment)

    def waits_since(self, moment: int, fresh: IntArray) -> int:
        """Like idle_since if the thread launches one of these kernels, the first of their names,
        soon after its next call begins; otherwise the moment itself.
        """
        begin, after = self.idle_since(moment), int(np.searchsorted(self.start_ns, moment))
        if after == len(self.start_ns):
            return moment
        end = int(self.start_ns[after])
        soon = fresh[np.searchsorted(fresh, end) :][:1]
        return begin if len(soon) and soon[0] <= end + (end - begin) else moment


def _ranges(trace: Trace) -> _Part:
    """The ranges that say that something is compiled in them: those of known compilers, and those
    of others in which their process launches nothing.
    """
    ranges, names = trace.nvtx_ranges, trace.nvtx_ranges.text("name")
    known = names.where(lambda name: _COMPILING.match(name) is not None)
    perhaps = np.flatnonzero(
        ~known & names.where(lambda name: _SAYS_COMPILING.search(name) is not None)
    )
    launched, process = (trace.kernels.ints(name) for name in ("launch_start_ns", "process"))
    begin, end, of = (ranges.ints_at(name, perhaps) for name in ("start_ns", "end_ns", "process"))
    idle = np.zeros(len(perhaps), np.bool_)
    for one, mine in rows_by_value(of):
        own = np.sort(launched[(process == one) & (launched != MISSING)])
        idle[mine] = np.searchsorted(own, begin[mine]) == np.searchsorted(own, end[mine])
    rows = np.sort(np.concatenate([np.flatnonzero(known), perhaps[idle]]))
    thread, start, end = (ranges.ints_at(name, rows) for name in ("thread", "start_ns", "end_ns"))
    return (
        thread,
        start,
        end,
        np.full(len(rows), MISSING, np.int64),
        rows,
        np.zeros(len(rows), np.bool_),
    )
