"""Finds the executions of an engine: by ExecutionContext:: ranges, by graph launches, or by what
the caller found to repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import (
    counts,
    distinct,
    distinct_rows,
    in_first_order,
    is_sorted,
    numbered,
    rows_by_value,
    runs,
    scattered,
    sorted_order,
)
from nsysmap.core.intervals import BlockBounds, Spans, Timed, innermost, union_ns_by_group
from nsysmap.core.memory import Ints, in_pieces, whole
from nsysmap.core.records import dataclass
from nsysmap.core.table import (
    MISSING,
    BoolArray,
    CodeArray,
    Data,
    FloatArray,
    IntArray,
    Table,
    Text,
    slim,
    taken,
)
from nsysmap.core.trace_schema import INFERENCES, MEMBERSHIP
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.inferences.compilation import compilation, trials
from nsysmap.trace.inferences.launch_order import launch_order, positions
from nsysmap.trace.inferences.launch_sizes import sequences_by_sizes, size_hashes
from nsysmap.trace.inferences.steady import SHORTEST_PHASE, falls_throughout
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges, spans
from nsysmap.trace.inferences.warm_up_ranges import named_warm_up
from nsysmap.trace.launches import gather
from nsysmap.trace.lost_calls import cut_by_loss, lost_calls
from nsysmap.trace.model import Trace

# a warm-up inference takes that much longer to enqueue than the median of the later ones …
_SLOW_ENQUEUE = 1.5
_SLOW_GPU = 1.25  # … or that much longer on the GPU
_FELT = 0.1  # … by at least that part of the GPU's work: less takes no time
_MOST_WARM = 0.5  # of the inferences of a kind are warm-up: what most of them take is usual
_FEWEST, _SLOW_OF_FEW = 3, 5.0  # … of so few inferences: two later ones tell little
# … or compiles kernels, or loads their code, for that part of the median; more than that is no
# noise
_COMPILES = 0.1
# times the usual time per inference, from which on the pause before one begins another run
_PAUSE = 5.0
_MOST_RUNS = 8  # after the first: of more, pauses are what the program does
_MOST = 0.5  # of a thread's inferences: if more do, they always do
# inferences after those in which a program compiles and tries out kernels: of fewer nothing shows
# that they are its work
_LEAST_LATER = 3
_LAST_ALIKE = 4  # repetitions before a last one that differs: of fewer, any may differ
_FAR_FEWER = 0.75  # of the kernels of a step
_AT_ONCE = 1 << 19  # kernels whose inferences are totalled together
_COMPILED = ("warmup", "warmup_range", "compile_ns", "compile_evidence", "compile_evidence_kind")
"""Columns that a part of a trace keeps from the whole."""


@dataclass(frozen=True)
class Inferences:
    """The executions found, and which kernel belongs to which."""

    table: Table  # INFERENCES
    membership: Table  # MEMBERSHIP, one row per kernel
    held_of_call: Ints
    empty_calls: int  # ExecutionContext:: ranges without GPU work (graph captures among them)
    # whether repetitions of the same kernels with other launch sizes may be other work
    by_sizes: bool = False

    @property
    def of_call(self) -> IntArray:
        """For each row of api_calls its inference; MISSING if none."""
        return whole(self.held_of_call)


@dataclass(frozen=True)
class _Executions:
    """One row per execution, with what enqueued it."""

    start_ns: IntArray
    end_ns: IntArray
    process: IntArray
    thread: IntArray
    found_by: Text
    launch_api: Text
    graph: BoolArray


def find_inferences(
    trace: Trace,
    tensorrt: TensorRtRanges,
    periods: IntArray | None = None,
    *,
    by_sizes: bool = False,
) -> Inferences:
    """The inferences of a trace.

    A kernel, copy or memset belongs to the outermost ``ExecutionContext::`` range that its launch
    call lies in.  A graph launch outside all of them is an inference of its own if its graph was
    captured inside one, or if no such range ran anything.  ``periods`` (one number per kernel,
    MISSING for none; from ``periods.find_periods``) is for kernels in none of these.  With
    ``by_sizes`` those that launch the same kernels with other grids and blocks, for some time each,
    have kernel sequences of their own, if their times are apart.
    """
    calls = trace.api_calls
    around = _calls_around(trace, tensorrt)
    used = distinct_rows(gather(around, trace.kernels.ints("launch")), len(tensorrt.calls))
    number = np.full(len(tensorrt.calls) + 1, MISSING, np.int64)
    graph_launches = np.flatnonzero(calls.text("kind").equals("graph-launch"))
    with_graph = around[graph_launches]
    graph_launches = graph_launches[with_graph == MISSING]
    used = distinct(np.concatenate([used, with_graph[with_graph != MISSING]]))
    number[used] = np.arange(len(used))
    of_call = gather(number, around)
    del around
    graph_launches = graph_launches[
        _engine_graph(trace, tensorrt, graph_launches, any_range=len(used) > 0)
    ]
    if (
        periods is not None
        # kernels that cannot be joined to any launch are found by what repeats, and not counted
        # twice
    ):
        process = trace.kernels.ints("process")
        joined = distinct(process[trace.kernels.ints("launch") != MISSING])
        unjoined = np.setdiff1d(distinct(process), joined)
        graph_launches = graph_launches[~np.isin(calls.ints("process")[graph_launches], unjoined)]
        # the caller found several inferences in what one of them launched
        told = trace.kernels.ints("launch")[periods != MISSING]
        graph_launches = graph_launches[~np.isin(graph_launches, told)]
    of_call[graph_launches] = len(used) + np.arange(len(graph_launches))
    executions = _executions(trace, tensorrt.calls[used], graph_launches)
    of_kernel = gather(of_call, trace.kernels.ints("launch"))
    if periods is not None:
        of_kernel = np.where(periods >= 0, periods + len(executions.start_ns), of_kernel)
        executions = _joined(executions, _periodic(trace, periods))
    empty = len(tensorrt.calls) - len(used)
    return _summary(trace, executions, of_call, of_kernel, empty, by_sizes=by_sizes)


def _calls_around(trace: Trace, tensorrt: TensorRtRanges) -> IntArray:
    """For each API call the position in TensorRtRanges.calls of the range around it; MISSING if
    none.
    """
    ranges, calls = (
        Timed.held(*vars(spans(trace.nvtx_ranges, tensorrt.calls)).values()),
        trace.api_calls,
    )
    around = np.empty(len(calls), np.int64)
    for rows, thread, start, end in in_pieces(
        *(calls.held_ints(name) for name in ("thread", "start_ns", "end_ns"))
    ):
        around[rows] = ranges.around(Spans(thread, start, end))
    return around


def part_of(trace: Trace, whole: Inferences, of_kernel: IntArray, cut: BoolArray) -> Inferences:
    """Some inferences of a longer trace: ``trace`` is the part of it, ``whole`` has these
    inferences only, by the calls of the part.

    Their work is totalled anew; which were warm-up stays, as does which were complete, but for
    those that are ``cut``.
    """
    table = whole.table
    executions = _Executions(
        start_ns=table.ints("enqueue_start_ns"),
        end_ns=table.ints("enqueue_end_ns"),
        process=table.ints("process"),
        thread=table.ints("thread"),
        found_by=table.text("found_by"),
        launch_api=table.text("launch_api"),
        graph=table.bools("cuda_graph"),
    )
    part = _summary(
        trace, executions, whole.of_call, of_kernel, whole.empty_calls, by_sizes=whole.by_sizes
    )
    kept: dict[str, Data] = {name: table.column(name) for name in _COMPILED}
    judged = {**kept, "complete": table.bools("complete") & ~cut}
    return replace(part, table=part.table.with_columns(INFERENCES, judged))


def _engine_graph(
    trace: Trace, tensorrt: TensorRtRanges, launches: IntArray, *, any_range: bool
) -> BoolArray:
    """Marks the graph launches that run an engine: those of a process in which such a range was
    captured into a graph, or where nothing else ran an engine.

    A range was captured if nodes of a graph were created inside it or, of a process whose graphs'
    nodes are not in the trace, if it lies between the calls that begin and end a stream's capture.
    """
    if not any_range or len(launches) == 0:
        return np.ones(len(launches), np.bool_)
    nodes, calls, ranges = (
        trace.cuda_graph_nodes,
        trace.api_calls,
        spans(trace.nvtx_ranges, tensorrt.calls),
    )
    created = innermost(ranges, spans(nodes))
    process = trace.nvtx_ranges.ints_at("process", tensorrt.calls)
    captured = ~np.isin(process, nodes.ints("process")) & (innermost(_captures(trace), ranges) >= 0)
    engine_processes = np.unique(
        np.concatenate([nodes.ints("process")[created >= 0], process[captured]])
    )
    return np.isin(calls.ints("process")[launches], engine_processes)


def _captures(trace: Trace) -> Spans:
    """What each thread did between the begin and the end of a stream capture."""
    calls = trace.api_calls
    api = calls.text("api")
    # of the runtime and the driver, of any version
    begins = np.flatnonzero(api.where(lambda name: "StreamBeginCapture" in name))
    ends = np.flatnonzero(api.where(lambda name: "StreamEndCapture" in name))
    thread, start = calls.ints("thread"), calls.ints("start_ns")
    found = []
    for begin in begins.tolist():
        later = ends[(thread[ends] == thread[begin]) & (start[ends] > start[begin])]
        if len(later):
            found.append((thread[begin], start[begin], start[later].min()))
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Spans(columns[:, 0], columns[:, 1], columns[:, 2])


def _executions(trace: Trace, call_rows: IntArray, graph_launches: IntArray) -> _Executions:
    ranges, calls = trace.nvtx_ranges, trace.api_calls
    names = ranges.text("name").take(call_rows)
    apis = calls.text("api").take(graph_launches)
    from_ranges, from_graphs = len(call_rows), len(graph_launches)
    return _Executions(
        start_ns=np.concatenate(
            [ranges.ints_at("start_ns", call_rows), calls.ints_at("start_ns", graph_launches)]
        ),
        end_ns=np.concatenate(
            [ranges.ints_at("end_ns", call_rows), calls.ints_at("end_ns", graph_launches)]
        ),
        process=np.concatenate(
            [ranges.ints_at("process", call_rows), calls.ints_at("process", graph_launches)]
        ),
        thread=np.concatenate(
            [ranges.ints_at("thread", call_rows), calls.ints_at("thread", graph_launches)]
        ),
        found_by=Text(
            np.repeat(np.array([0, 1], np.int32), [from_ranges, from_graphs]),
            ("range", "graph-launch"),
        ),
        launch_api=Text.of([*names.list(), *apis.list()]),
        graph=np.repeat(np.array([False, True]), [from_ranges, from_graphs]),
    )


def _periodic(trace: Trace, periods: IntArray) -> _Executions:
    kernels = trace.kernels
    count = int(periods.max(initial=-1)) + 1
    rows = np.flatnonzero(periods >= 0)
    keys = periods[rows], kernels.ints_at("start_ns", rows)
    if not is_sorted(*keys):
        rows = rows[sorted_order(*keys)]
    del keys
    first = runs(periods[rows])[1]
    start, end = (
        _launched_at(kernels, rows, name, own)
        for name, own in (("launch_start_ns", "start_ns"), ("launch_end_ns", "end_ns"))
    )
    begin = rows[first]
    return _Executions(
        start_ns=np.minimum.reduceat(start, first) if count else start,
        end_ns=np.maximum.reduceat(end, first) if count else end,
        process=kernels.ints_at("process", begin),
        thread=kernels.ints_at("thread", begin),
        found_by=Text.same("period", count),
        launch_api=Text.same(None, count),
        graph=kernels.ints_at("graph_node_id", begin) != MISSING,
    )


def _launched_at(kernels: Table, rows: IntArray, name: str, own: str) -> IntArray:
    """A time of the launches of these kernels, or the kernel's own where its launch is not in the
    trace.
    """
    times = kernels.ints_at(name, rows)
    lost = np.flatnonzero(times == MISSING)
    if len(lost):
        times = np.array(times)
        times[lost] = kernels.ints_at(own, rows[lost])
    return times


def _joined(first: _Executions, second: _Executions) -> _Executions:
    return _Executions(
        start_ns=np.concatenate([first.start_ns, second.start_ns]),
        end_ns=np.concatenate([first.end_ns, second.end_ns]),
        process=np.concatenate([first.process, second.process]),
        thread=np.concatenate([first.thread, second.thread]),
        found_by=Text.of([*first.found_by.list(), *second.found_by.list()]),
        launch_api=Text.of([*first.launch_api.list(), *second.launch_api.list()]),
        graph=np.concatenate([first.graph, second.graph]),
    )


def _summary(
    trace: Trace,
    executions: _Executions,
    of_call: IntArray,
    of_kernel: IntArray,
    empty_calls: int,
    *,
    by_sizes: bool,
) -> Inferences:
    """Numbers the executions by start time and totals what each ran."""
    count = len(executions.start_ns)
    order = np.argsort(executions.start_ns, kind="stable")
    if not is_sorted(order):
        renumber = np.empty(count, np.int64)
        renumber[order] = np.arange(count)
        of_call, of_kernel = gather(renumber, of_call), gather(renumber, of_kernel)
    ran = _ran(trace, of_call, of_kernel, count, by_sizes=by_sizes)
    first_start, last_end, busy, kernels, shape = (
        ran.first_ns,
        ran.last_ns,
        ran.busy_ns,
        ran.kernels,
        ran.sequence,
    )
    span = np.where(first_start == MISSING, np.int64(MISSING), last_end - first_start)
    (device, context, stream), position = ran.home, ran.position
    launch_of = of_call[ran.launched]
    launches = np.bincount(launch_of[launch_of >= 0], minlength=count)
    del launch_of
    start, end = executions.start_ns[order], executions.end_ns[order]
    thread = executions.thread[order]
    enqueue = end - start
    graph = executions.graph[order]
    unmarked = executions.found_by.take(order).equals("period")
    if by_sizes:
        shape = sequences_by_sizes(shape, ran.sizes, thread, busy, unmarked)
    complete = _complete(kernels, shape, thread, graph, unmarked)
    if lost := lost_calls(trace):
        ends = np.maximum(end, last_end)
        complete &= ~cut_by_loss(lost, trace.kernels, of_kernel, thread, ends)
    enqueues = Spans(
        thread,
        _enqueue_begin(thread, start, end, unmarked),
        end,
    )
    first_use = compilation(trace)
    compiled = (
        first_use.within(enqueues) if len(trace.api_calls) else np.full(count, MISSING, np.int64)
    )
    compiles = _compiles(compiled, enqueue, thread, complete)
    tuning = np.zeros(count, np.bool_)
    tuning[distinct(of_kernel[trials(trace.kernels) & (of_kernel >= 0)])] = True
    compiles |= _tried_out(tuning, thread)
    compiles |= _start_up(compiles | tuning | (compiled > _COMPILES * enqueue), thread)
    shown_by = first_use.most(trace, enqueues, compiles, tuning)
    _, loop = numbered(thread, device)
    ended = np.maximum(end, last_end)
    repeated = unmarked & complete
    before = _before_the_loop(_Repeated(start, ended, shape, kernels, loop), repeated)
    later = _later_runs(start, ended, loop, complete & ~before)
    named = named_warm_up(trace.nvtx_ranges, executions.process[order], start, end, complete)
    table = Table(
        INFERENCES,
        {
            "inference": np.arange(count),
            "start_ns": np.where(first_start == MISSING, start, np.minimum(start, first_start)),
            "end_ns": np.where(last_end == MISSING, end, np.maximum(end, last_end)),
            "process": executions.process[order],
            "pid": (executions.process[order] >> 24) & 0xFFFFFF,
            "thread": thread,
            "device": device,
            "context": context,
            "stream": stream,
            "engine": np.full(count, MISSING, np.int64),
            "engine_doubt": Text.same(None, count),
            "found_by": executions.found_by.take(order),
            "launch_api": executions.launch_api.take(order),
            "cuda_graph": graph,
            "warmup": _warmup(enqueue, busy, shape, thread, complete & ~before)
            | _warmup(enqueue, busy, shape, later, complete & ~before)
            | _first_of(later)
            | before
            | compiles
            | (named.codes >= 0),
            "warmup_range": named,
            "complete": complete,
            "kernels": kernels,
            "launches": launches,
            "enqueue_start_ns": start,
            "enqueue_end_ns": end,
            "enqueue_ns": enqueue,
            "compile_ns": compiled,
            "compile_evidence": Text.of(one.text if one else None for one in shown_by),
            "compile_evidence_kind": Text.of(one.kind if one else None for one in shown_by),
            "gpu_start_ns": first_start,
            "gpu_end_ns": last_end,
            "gpu_busy_ns": busy,
            "gpu_span_ns": span,
            "idle_ns": np.where(span == MISSING, np.int64(MISSING), span - busy),
            "kernel_sequence": shape,
        },
    )
    return Inferences(
        table,
        Table(MEMBERSHIP, {"inference": of_kernel, "position": position}),
        slim(of_call),
        empty_calls,
        by_sizes,
    )


@dataclass
class _Ran:
    """What ran in each inference; filled in for groups of inferences, one after the other."""

    first_ns: IntArray  # on the GPU, and …
    last_ns: IntArray
    busy_ns: IntArray
    kernels: IntArray
    hashes: NDArray[np.uint64]  # of the sequence of its kernels' names
    sizes: NDArray[np.uint64]  # of the grids and blocks of that sequence; 0 where not asked
    # device, context and stream of most of its kernels, or of its whole-graph runs
    home: tuple[IntArray, IntArray, IntArray]
    position: IntArray  # of each kernel in its inference
    launched: BoolArray  # per API call: it launched a kernel of an inference

    @property
    def sequence(self) -> IntArray:
        """A number per sequence of kernel names, by first appearance; MISSING for an inference
        without kernels.
        """
        shape = np.full(len(self.kernels), MISSING, np.int64)
        present = np.flatnonzero(self.kernels)
        if not len(present):
            return shape
        hashes, number = np.unique(self.hashes[present], return_inverse=True)
        shape[present], _ = in_first_order(number.reshape(-1), len(hashes))
        return shape


def _ran(
    trace: Trace, of_call: IntArray, of_kernel: IntArray, count: int, *, by_sizes: bool
) -> _Ran:
    """What ran in each of that many inferences, computed for groups with some hundred thousand
    kernels at a time.
    """
    table = trace.kernels
    numbers = [of_kernel, *(gather(of_call, one.ints("launch")) for one in gpu_work(trace)[1:])]
    kernels = np.bincount(of_kernel[of_kernel >= 0], minlength=count)
    home = tuple(np.full(count, MISSING, np.int64) for _ in range(3))
    none = np.full(count, MISSING, np.int64)
    hashes, position = np.zeros(count, np.uint64), np.full(len(table), MISSING, np.int64)
    ran = _Ran(
        none,
        none.copy(),
        none.copy(),
        kernels,
        hashes,
        hashes.copy(),
        (home[0], home[1], home[2]),
        position,
        np.zeros(len(of_call), np.bool_),
    )
    codes = table.held_text("name").codes
    blocks = [BlockBounds.of(number, number) for number in numbers]
    cuts = np.flatnonzero(np.diff(np.cumsum(kernels) // _AT_ONCE)) + 1
    for first, last in pairwise([0, *cuts.tolist(), count]):
        parts = [
            _of_inferences(number, block, first, last)
            for number, block in zip(numbers, blocks, strict=True)
        ]
        here = slice(first, last)
        work = _gpu_work(
            trace,
            parts,
            [number[rows] - first for number, rows in zip(numbers, parts, strict=True)],
        )
        ran.first_ns[here], ran.last_ns[here], ran.busy_ns[here] = _gpu_times(work, last - first)
        for table_rows, number, work_table in zip(
            (parts[-1], parts[0]),
            (numbers[-1], of_kernel),
            (trace.cuda_graph_traces, table),
            strict=True,
        ):
            if not len(table_rows):
                continue
            for target, column in zip(
                ran.home,
                _home(work_table, table_rows, number[table_rows] - first, last - first),
                strict=True,
            ):
                target[here] = np.where(column == MISSING, target[here], column)
        rows = parts[0]
        if not len(rows):
            continue
        order = launch_order(table, rows, of_kernel[rows])
        present, begin, size = runs(of_kernel[order])
        position[order] = positions(of_kernel[order])
        hashes[present] = sequence_hashes(codes[order], begin, size)
        if by_sizes:
            ran.sizes[present] = size_hashes(table, order, begin, size)
        launch = table.held_ints("launch").take(rows)
        ran.launched[launch[launch >= 0]] = True
    return ran


def _of_inferences(number: IntArray, blocks: BlockBounds, first: int, last: int) -> IntArray:
    """The rows of the inferences from the one up to before the other."""
    rows = blocks.near(first, last - 1)
    found: IntArray = rows[(number[rows] >= first) & (number[rows] < last)]
    return found


@dataclass(frozen=True)
class _Work:
    inference: IntArray  # every row has one
    start_ns: IntArray
    end_ns: IntArray


def _gpu_work(trace: Trace, rows: Sequence[IntArray], numbers: Sequence[IntArray]) -> _Work:
    """These kernels, and the copies, memsets and whole-graph runs launched inside their inferences;
    sorted by inference, then start.
    """
    number = np.concatenate(numbers)
    start, end = (
        np.concatenate(
            [
                table.held_ints(name).take(at)
                for table, at in zip(gpu_work(trace), rows, strict=True)
            ]
        )
        for name in ("start_ns", "end_ns")
    )
    if is_sorted(number, start):
        return _Work(number, start, end)
    order = sorted_order(number, start)
    return _Work(number[order], start[order], end[order])


def _gpu_times(work: _Work, count: int) -> tuple[IntArray, IntArray, IntArray]:
    """The first start and the last end of each inference on the GPU, and how long it was busy in
    between.
    """
    first_start = _extreme(np.minimum, work.start_ns, work.inference, count)
    last_end = _extreme(np.maximum, work.end_ns, work.inference, count)
    return (
        first_start,
        last_end,
        union_ns_by_group(work.inference, work.start_ns, work.end_ns, count),
    )


def _extreme(reduce: np.ufunc, values: IntArray, group: IntArray, count: int) -> IntArray:
    """The least or greatest value of each group (groups sorted), MISSING for a group without
    any.
    """
    result = np.full(count, MISSING, np.int64)
    if len(values):
        present, first, _ = runs(group)
        result[present] = reduce.reduceat(values, first)
    return result


def sequence_hashes(codes: CodeArray, first: IntArray, size: IntArray) -> NDArray[np.uint64]:
    """A hash of each run of codes (from ``first``, ``size`` long): equal for equal runs, for
    different ones almost surely not.
    """
    of_code = scattered(int(codes.max()) + 1, 1)
    of_place = scattered(int(size.max()), 1 << 32) | np.uint64(1)  # beyond all codes
    place = np.arange(len(codes)) - np.repeat(first, size)
    result: NDArray[np.uint64] = np.add.reduceat(of_code[codes] * of_place[place], first)
    return result


def _home(
    work: Table, rows: IntArray, of_row: IntArray, count: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Device, context and stream of most of each inference's work, which are these rows."""
    result = tuple(np.full(count, MISSING, np.int64) for _ in range(3))
    columns = (taken(work.columns[name], rows) for name in ("device", "context", "stream"))
    places, place = numbered(*columns)  # type: ignore[arg-type]  # of integers
    pair, size = counts(of_row * len(places[0]) + place)
    order = np.lexsort((size, pair // len(places[0])))  # an inference's commonest place comes last
    for target, column in zip(result, places, strict=True):
        target[pair[order] // len(places[0])] = column[pair[order] % len(places[0])]
    return result[0], result[1], result[2]


def _complete(
    kernels: IntArray,
    shape: IntArray,
    thread: IntArray,
    graph: BoolArray,
    unmarked: BoolArray,
) -> BoolArray:
    """False for the first or last inference of a thread that has fewer kernels than the thread's
    usual, and a shape of its own; and for the last of those that nothing marks if it alone runs
    other kernels: the last batch of a data set is smaller than the others.
    """
    complete = np.ones(len(kernels), np.bool_)
    for _, mine in rows_by_value(thread):
        if len(mine) < 3:
            continue
        for replayed in (False, True):
            rows = mine[graph[mine] == replayed]
            if len(rows) < 3:
                continue
            usual = np.bincount(kernels[rows]).argmax()
            for row in (rows[0], rows[-1]):
                alone = np.count_nonzero(shape[rows] == shape[row]) == 1
                complete[row] = not (alone and kernels[row] < usual)
            last = rows[-1]
            if unmarked[last] and (shape[rows[-_LAST_ALIKE - 1 : -1]] == shape[rows[-2]]).all():
                complete[last] &= shape[last] == shape[rows[-2]] or len(rows) <= _LAST_ALIKE
    return complete


def _warmup(
    enqueue: IntArray, busy: IntArray, sequence: IntArray, thread: IntArray, complete: BoolArray
) -> BoolArray:
    """The leading inferences of a thread that are slower than what follows, at most half of
    them.
    """
    warmup = np.zeros(len(enqueue), np.bool_)
    for rows in _by_value(thread, complete & (thread != MISSING)):
        if len(rows) < _FEWEST:
            continue
        few = len(rows) == _FEWEST
        slow = _slow(enqueue[rows], sequence[rows], _SLOW_OF_FEW if few else _SLOW_ENQUEUE)
        if (busy[rows[len(rows) // 2 :]] != MISSING).all():
            early, late = rows[: len(slow)], rows[len(slow) :]
            # what the GPU's own work hides takes no time
            slow &= enqueue[early] - np.median(enqueue[late]) > _FELT * np.median(busy[late])
            slow |= _slow(busy[rows], sequence[rows], _SLOW_OF_FEW if few else _SLOW_GPU)
        warmup[rows[: int(np.append(~slow, True).argmax())]] = True
    return warmup


def _later_runs(start: IntArray, end: IntArray, loop: IntArray, complete: BoolArray) -> IntArray:
    """For each inference the number of its run of the loop (thread and GPU); MISSING in a first
    run, in one of few inferences, and where there are many.

    A program that measures several times pauses before each (it prepares the next), and warms up
    again.  A server that waits for requests pauses as well, but more often.
    """
    run = np.full(len(start), MISSING, np.int64)
    for mine in _by_value(loop, complete):
        if len(mine) < 2 * SHORTEST_PHASE:
            continue
        rows = mine[np.argsort(start[mine], kind="stable")]
        ended = np.maximum.accumulate(end[rows])
        usual = max(float(np.median(np.diff(ended))), 1.0)
        later = np.flatnonzero(start[rows[1:]] - ended[:-1] > _PAUSE * usual) + 1
        if not 0 < len(later) <= _MOST_RUNS:
            continue
        for first, last in pairwise([*later.tolist(), len(rows)]):
            if last - first >= SHORTEST_PHASE:
                run[rows[first:last]] = rows[first]
    return run


@dataclass(frozen=True)
class _Repeated:
    """The repeated pieces, by start."""

    start_ns: IntArray
    end_ns: IntArray
    sequence: IntArray  # of its kernels
    kernels: IntArray
    loop: IntArray


def _before_the_loop(all_of: _Repeated, repeated: BoolArray) -> BoolArray:
    """The repetitions that a loop has before those that take most of its time, and never again,
    and that launch far fewer kernels: what a program does, or a library tries out, before its steps
    begin.  The first step is one of these where a pause lies before it, which would be its time.

    Many of one kind one after the other are a part of the program of their own, if they take long.
    """
    found = np.zeros(len(repeated), np.bool_)
    took = all_of.end_ns - all_of.start_ns
    for mine in _by_value(all_of.loop, repeated):
        if len(mine) < SHORTEST_PHASE:
            continue
        rows = mine[np.argsort(all_of.start_ns[mine], kind="stable")]
        _, kind = np.unique(all_of.sequence[rows], return_inverse=True)
        total: FloatArray = np.bincount(kind, took[rows]).astype(np.float64)
        main = np.flatnonzero(kind == total.argmax())
        if len(main) < SHORTEST_PHASE or total.max() < _MOST * total.sum():
            continue
        first = int(main[0])
        early = np.flatnonzero(~np.isin(kind[:first], kind[first:]))
        early = early[all_of.kernels[rows[early]] < _FAR_FEWER * all_of.kernels[rows[first]]]
        early = early[~np.isin(kind[early], _parts_of_their_own(kind[:first], took[rows], total))]
        found[rows[early]] = True
        usual = float(np.median(took[rows[main]]))
        pause = first and all_of.start_ns[rows[first]] - all_of.end_ns[rows[:first]].max()
        if len(early) == first and pause > _PAUSE * usual:
            found[rows[first]] = True
    return found


def _parts_of_their_own(kind: IntArray, took: IntArray, total: FloatArray) -> list[int]:
    """The kinds that come many times in a row and take long."""
    return [
        one
        for one, first, count in zip(*(part.tolist() for part in runs(kind)), strict=True)
        if count >= SHORTEST_PHASE and took[first : first + count].sum() >= _FELT * total.max()
    ]


def _first_of(run: IntArray) -> BoolArray:
    """The first inference of each later run: its time holds the pause before it."""
    first = np.zeros(len(run), np.bool_)
    known = np.flatnonzero(run != MISSING)
    first[known[np.unique(run[known], return_index=True)[1]]] = True
    return first


def _enqueue_begin(
    thread: IntArray, start: IntArray, end: IntArray, repeated: BoolArray
) -> IntArray:
    """When the host's work for each inference began.

    Repetitions that nothing marks begin with their first launch: what is done before it, since the
    one before them, is theirs.
    """
    begin = start.copy()
    for rows in _by_value(thread, repeated):
        if len(rows) < 2:
            continue
        mine = rows[np.argsort(start[rows], kind="stable")]
        begin[mine[1:]] = np.minimum(begin[mine[1:]], np.maximum.accumulate(end[mine])[:-1])
    return begin


def _compiles(
    compile_ns: IntArray, enqueue: IntArray, thread: IntArray, complete: BoolArray
) -> BoolArray:
    """The inferences of a thread that compile kernels, or load their code, for long, if they are
    not most of them.
    """
    found = np.zeros(len(thread), np.bool_)
    # of other threads none is above any part of what they take
    some = np.isin(thread, thread[(compile_ns > 0) | (enqueue < 0)])
    for rows in _by_value(thread, complete & some):
        if (compile_ns[rows] != MISSING).all():
            long = compile_ns[rows] > _COMPILES * float(np.median((enqueue - compile_ns)[rows]))
            found[rows] = long & (long.mean() <= _MOST)
    return found


def _tried_out(tuning: BoolArray, thread: IntArray) -> BoolArray:
    """The inferences in which kernels are tried out, of threads that do more than that."""
    found = tuning.copy()
    for mine in _by_value(thread, np.isin(thread, thread[tuning])):
        if np.count_nonzero(~tuning[mine]) < _LEAST_LATER:
            found[mine] = False
    return found


def _start_up(made: BoolArray, thread: IntArray) -> BoolArray:
    """All inferences of a thread up to the last in which kernels are made, if they are made in most
    of these and later ones follow.

    What is compiled and tried out before the first step repeats as well, often more times than the
    steps.
    """
    found = np.zeros(len(made), np.bool_)
    for rows in _by_value(thread, np.isin(thread, thread[made])):
        last = int(np.flatnonzero(made[rows])[-1])
        if float(made[rows[: last + 1]].mean()) > _MOST and len(rows) - last - 1 >= _LEAST_LATER:
            found[rows[: last + 1]] = True
    return found


def _by_value(values: IntArray, wanted: BoolArray) -> list[IntArray]:
    """The wanted rows of each value, ascending."""
    rows = np.flatnonzero(wanted)
    return [rows[at] for _, at in rows_by_value(values[rows])]


def _slow(took: IntArray, sequence: IntArray, times: float) -> BoolArray:
    """Which of the first half of these inferences took that many times as long as the later ones of
    the same kernels, or as all of these where most come early, or as all later ones if none
    launches the same and they are too few for a phase of their own; none if they become faster
    throughout.
    """
    half = len(took) // 2
    later = took[half:]
    usual = np.full(len(took), float(np.median(later)))
    for one in distinct(sequence).tolist():
        alike = sequence == one
        few_later = np.count_nonzero(alike[half:]) < _MOST_WARM * np.count_nonzero(alike)
        if np.count_nonzero(alike) >= SHORTEST_PHASE and few_later:
            usual[alike] = float(np.median(took[alike]))
        elif alike[half:].any():
            usual[alike] = float(np.median(later[alike[half:]]))
    ratio: FloatArray = took / np.maximum(usual, 1.0)
    slow: BoolArray = ratio[:half] > times
    return slow & (not (slow.any() and falls_throughout(ratio)))


# --- when hosts enqueue
# -----------------------------------------------------------------------------------------------


def enqueue_spans(trace: Trace, inferences: Table) -> Spans:
    """When threads were enqueuing these inferences (see schema.INFERENCES).

    Of repetitions that neither ranges nor engine files mark, that is from a first launch to a last
    one between which the host never waited: what it did between a wait and the next launch may be
    anything.
    """
    known = (inferences.ints("enqueue_start_ns") != MISSING) & (
        inferences.ints("thread") != MISSING
    )
    thread, start, end = (
        inferences.ints(name)[known] for name in ("thread", "enqueue_start_ns", "enqueue_end_ns")
    )
    unmarked = (
        inferences.text("found_by").equals("period") & (inferences.ints("engine") == MISSING)
    )[known]
    parts = [(thread[~unmarked], start[~unmarked], end[~unmarked])]
    calls, kind = trace.api_calls, trace.api_calls.text("kind")
    waits = (
        kind.equals("sync") | blocking_copies(trace)
        if unmarked.any()
        else np.zeros(len(calls), np.bool_)
    )
    launches = kind.equals("launch") | kind.equals("graph-launch")
    owner = calls.ints("thread")
    launches_of, waits_of = (
        {int(owner[rows[0]]): rows for rows in _by_value(owner, asked)}
        for asked in (launches, waits)
    )
    none = np.zeros(0, np.int64)
    helpers = _helpers(calls, launches_of, set(thread.tolist()))
    for rows in _by_value(thread, unmarked):
        key = int(thread[rows[0]])
        mine = rows[np.argsort(start[rows], kind="stable")]
        of_all = none
        for one in (key, *helpers.get(key, ())):
            own = launches_of.get(one, none)
            own = own[np.argsort(calls.ints("start_ns")[own], kind="stable")]
            begun, ended = calls.ints("start_ns")[own], calls.ints("end_ns")[own]
            of = np.searchsorted(start[mine], begun, side="right") - 1
            inside = (of >= 0) & (begun <= end[mine[np.maximum(of, 0)]])
            began = np.sort(calls.ints("start_ns")[waits_of.get(one, none)])
            waited = np.searchsorted(began, begun)
            begun, ended, of, waited = (values[inside] for values in (begun, ended, of, waited))
            fresh = (np.diff(of, prepend=-1) != 0) | (np.diff(waited, prepend=-1) != 0)
            first = np.flatnonzero(fresh)
            last = np.append(first[1:], len(of))[: len(first)] - 1
            parts.append((np.full(len(first), one), begun[first], ended[last]))
            of_all = of if one == key else of_all
        without = np.setdiff1d(np.arange(len(mine)), of_all)  # launched before the trace began
        begins, ends = start[mine[without]], end[mine[without]]
        parts.append((np.full(len(begins), key), begins, ends))
    return Spans(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _helpers(
    calls: Table, launches_of: Mapping[int, IntArray], having: set[int]
) -> dict[int, tuple[int, ...]]:
    """For each thread with inferences: the threads of its process that launch but have none of
    their own, such as PyTorch's backward thread, and so enqueue its inferences; none if several
    threads have inferences.
    """
    process = calls.ints("process")
    of_process: dict[int, list[int]] = {}
    for one, rows in launches_of.items():
        of_process.setdefault(int(process[rows[0]]), []).append(one)
    found = {}
    for threads in of_process.values():
        own = [one for one in threads if one in having]
        if len(own) == 1:
            found[own[0]] = tuple(one for one in threads if one not in having)
    return found
