"""Finds the inferences of a trace without ranges or graph launches that show them, by what repeats
on its streams; and which of what repeats is a program's unit of work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.core.groups import (
    distinct,
    distinct_rows,
    numbered,
    numbered_in_turn,
    rows_by_value,
    rows_of_values,
)
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, taken_values, uniform
from nsysmap.trace.copies import blocking_copies
from nsysmap.trace.inferences.compilation import trials
from nsysmap.trace.inferences.find import Inferences, sequence_hashes
from nsysmap.trace.inferences.launch_order import launch_order, launch_time
from nsysmap.trace.inferences.marked_steps import marked_steps
from nsysmap.trace.inferences.recurrence import MANY, like_launches, turns_alike
from nsysmap.trace.inferences.repeats import (
    ONE_KERNEL,
    LaunchedKernels,
    SequenceInferences,
    candidates,
    cut_inferences,
    is_like,
    is_part,
)
from nsysmap.trace.inferences.steady import SHORTEST_PHASE
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace

# two streams of one thread run one engine if that part of the inferences on one overlap one on the
# other
_OVERLAP = 0.5
_HOME = ("process", "context")
# of so few words every length is tried, which takes less than a millisecond
_FEW_WORDS = 256
_TURNS_OF = (("process",), ("process", "context", "thread"), ("process", "context", "stream"))
_MOST_LOOKED_AT, _MOST_COMPARED = 1024, 64  # streams of one thread, before one
# times: of fewer there are no two intervals, and whether they come at a rate cannot be seen
_LEAST = 3
# … unless they are so long that kernels in random order would hold them twice less often than that
_CHANCE = 1e-3
_MOST = 0.5  # of the kernels, and of their time
_HARDLY = 0.02  # of the time of what repeats: of a stream that serves others
_NEARLY_ALL = 0.9  # of the GPU's time: what else repeats is no step of the program
_LONG_PART = 0.1  # of the time of what is marked: less than that is no part of its own
_KNOWN = 64  # sequences that others are compared with
# times the time of all repetitions: if so much follows them, they prepare it (random weights)
_FOLLOWS = 10
# times the kernels of a long one of the ranges that mark something: a step of several of them
_LONGER, _LONG = 1.5, 90


@dataclass(frozen=True)
class Periods:
    """Inferences found by what repeats: two columns with one row per kernel, two with one row per
    inference.
    """

    inference: IntArray  # MISSING: belongs to none
    # place in the full sequence of its inference's shape, from 0; a cut first inference begins
    # later; MISSING for none
    slot: IntArray
    shape: IntArray  # inferences with the same number launch the same kernels in the same order
    complete: BoolArray


@dataclass(frozen=True)
class _StreamKernels:
    """The kernels of one engine's streams in launch order."""

    rows: IntArray  # in the kernels table
    pieces: SequenceInferences


def find_periods(
    trace: Trace, rows: IntArray | None = None, *, expected: int | None = None
) -> Periods:
    """The inferences among these kernels (rows of the kernels table; all of them if not given),
    numbered by their first launch.

    Streams of one process, context and thread whose inferences overlap are one engine's; others are
    kept apart. ``expected``, the kernels that one inference of the engine launches, decides only
    what the trace leaves open.
    """
    kernels = trace.kernels
    asked = np.arange(len(kernels)) if rows is None else rows
    groups = [group for group in _groups(trace, asked, expected) if len(group.rows)]
    inference = np.full(len(kernels), MISSING, np.int64)
    slot = np.full(len(kernels), MISSING, np.int64)
    # of each group: its inferences and its shapes, and how many come before them
    found = np.array([len(group.pieces.start) for group in groups], np.int64)
    shapes = np.array([int(group.pieces.shape.max(initial=-1)) + 1 for group in groups], np.int64)
    found_before, shapes_before = np.cumsum(found) - found, np.cumsum(shapes) - shapes
    count = int(found.sum())
    if not groups:
        return Periods(inference, slot, np.zeros(0, np.int64), np.zeros(0, np.bool_))
    time = launch_time(kernels)
    begins, shape = np.empty(count, np.int64), np.empty(count, np.int64)
    complete = np.ones(count, np.bool_)
    alone = [at for at, group in enumerate(groups) if group.pieces is ONE_KERNEL]
    if alone:
        mine = np.concatenate([groups[at].rows for at in alone])
        inference[mine], slot[mine] = found_before[alone], 0
        begins[found_before[alone]], shape[found_before[alone]] = time[mine], shapes_before[alone]
    for group, done, shapes_done in zip(
        groups, found_before.tolist(), shapes_before.tolist(), strict=True
    ):
        pieces = group.pieces
        if pieces is ONE_KERNEL:
            continue
        of = pieces.inference
        inside = of >= 0
        inference[group.rows[inside]] = of[inside] + done
        slot[group.rows[inside]] = (np.arange(len(of)) - pieces.start[of] + pieces.offset[of])[
            inside
        ]
        its = slice(done, done + len(pieces.start))
        begins[its] = time[group.rows[pieces.start]]
        shape[its], complete[its] = pieces.shape + shapes_done, pieces.complete
    by_time = np.argsort(begins, kind="stable")
    number = np.empty(count + 1, np.int64)
    number[by_time] = np.arange(count)
    number[count] = MISSING
    return Periods(
        number[np.where(inference == MISSING, count, inference)],
        slot,
        shape[by_time],
        complete[by_time],
    )


def _groups(trace: Trace, rows: IntArray, expected: int | None) -> list[_StreamKernels]:
    """One group for each set of streams that run one engine together."""
    kernels = trace.kernels
    _, stream = numbered_in_turn(
        kernels.ints_at(name, rows) for name in ("process", "context", "stream")
    )
    known = _OfAllStreams(
        trace,
        launch_time(kernels),
        _by_thread(trace, waits_of(trace)),
        _by_thread(trace, copies_of(trace)),
        expected,
    )
    alone = [
        _group(known, members) if len(members) > 1 else _StreamKernels(members, ONE_KERNEL)
        for _, members in rows_of_values(stream, rows)
    ]
    groups: list[_StreamKernels] = []
    for members in _together(known, alone):
        if len(members) == 1:
            groups.append(alone[members[0]])
        else:
            groups.append(_group(known, np.concatenate([alone[member].rows for member in members])))
    return groups


@dataclass(frozen=True)
class _OfAllStreams:
    """Facts that are equal for all streams, computed only once."""

    trace: Trace
    time: IntArray  # of each kernel's launch
    # when each thread's calls began, in order
    waits: Mapping[int, IntArray]
    copies: Mapping[int, IntArray]
    expected: int | None


def _together(known: _OfAllStreams, alone: list[_StreamKernels]) -> list[list[int]]:
    """The streams that belong to one engine: fed by the same single thread, with inferences that
    overlap in launch time.

    A stream is held against those before it that are in use at the same time, the last
    _MOST_COMPARED of them: programs have some tens of streams, and a trace with very many takes as
    long for each.
    """
    kernels, time = known.trace.kernels, known.time
    if not alone:
        return []
    rows = np.concatenate([group.rows for group in alone])
    size = np.array([len(group.rows) for group in alone])
    first = np.cumsum(size) - size
    begins, ends = np.minimum.reduceat(time[rows], first), np.maximum.reduceat(time[rows], first)
    threads = kernels.held_ints("thread").take(rows)
    thread = np.minimum.reduceat(threads, first)
    of_one_thread = (thread == np.maximum.reduceat(threads, first)) & (thread != MISSING)
    fed_by = [kernels.held_ints(name).take(rows[first]).tolist() for name in _HOME]
    fed_by.append(thread.tolist())
    feeders: dict[tuple[int, ...], list[int]] = {}
    sets: list[list[int]] = []
    set_of: dict[int, int] = {}
    for at, (feeder, alike) in enumerate(
        zip(zip(*fed_by, strict=True), of_one_thread.tolist(), strict=True)
    ):
        found: list[int] = []
        if alike:
            before = feeders.setdefault(feeder, [])
            if before:
                recent = np.array(before[-_MOST_LOOKED_AT:], np.int64)
                meet = (begins[recent] <= ends[at]) & (ends[recent] >= begins[at])
                found = [
                    set_of[other]
                    for other in recent[meet][-_MOST_COMPARED:].tolist()
                    if _overlap(time, alone[at], alone[other])
                ]
            before.append(at)
        if found:
            sets[min(found)].append(at)
            set_of[at] = min(found)
        else:
            set_of[at] = len(sets)
            sets.append([at])
    return sets


def _overlap(time: IntArray, one: _StreamKernels, other: _StreamKernels) -> bool:
    few, many = sorted((one, other), key=lambda group: len(group.pieces.start))
    if len(few.pieces.start) == 0:
        return False
    first, last = _window(time, few)
    begin, end = _window(time, many)
    # the latest inference that begins before this one ends
    at = np.searchsorted(begin, last, side="right") - 1
    meets = (at >= 0) & (end[np.maximum(at, 0)] >= first)
    return bool(meets.mean() >= _OVERLAP)


def _window(time: IntArray, group: _StreamKernels) -> tuple[IntArray, IntArray]:
    start = group.pieces.start
    return time[group.rows[start]], time[group.rows[start + group.pieces.size - 1]]


def _group(known: _OfAllStreams, rows: IntArray) -> _StreamKernels:
    kernels = known.trace.kernels
    rows = launch_order(kernels, rows)
    gap = np.diff(known.time[rows], prepend=known.time[rows[:1]])
    replayed, fresh = _replayed(kernels, rows)
    syncs = _counted_between(kernels, rows, known.waits)
    syncs += fresh
    del fresh
    copies = _counted_between(kernels, rows, known.copies)
    codes = _kernels_on_streams(kernels, rows)
    found = LaunchedKernels(codes, syncs, copies, gap, replayed=replayed)
    return _StreamKernels(rows, cut_inferences(found, expected=known.expected))


def _kernels_on_streams(kernels: Table, rows: IntArray) -> IntArray:
    """A small number for each combination of a kernel's name and its stream."""
    (streams,), stream = numbered(kernels.ints_at("stream", rows))
    codes = kernels.held_text("name").codes[rows].astype(np.int64)
    codes *= len(streams)
    codes += stream
    return _renumbered(codes)


def _replayed(kernels: Table, rows: IntArray) -> tuple[bool, BoolArray]:
    """Whether CUDA graphs replayed all of these kernels, and at which of them a graph launch
    begins, which runs an inference.
    """
    node = kernels.ints_at("graph_node_id", rows)
    if uniform(node) and node[0] == MISSING:
        return False, np.zeros(len(rows), np.bool_)
    launch = kernels.ints_at("launch", rows)
    replayed = (node != MISSING) & (launch != MISSING)
    fresh: BoolArray = np.concatenate([[True], launch[1:] != launch[:-1]]) & replayed
    return bool(replayed.all()), fresh


def _renumbered(codes: IntArray) -> IntArray:
    """Renumbers the codes without gaps."""
    size = int(codes.max(initial=-1)) + 1
    number = np.zeros(size + 1, np.int64)
    used = distinct_rows(codes, size)
    number[used] = np.arange(len(used))
    return number[codes]


def waits_of(trace: Trace) -> BoolArray:
    """Calls in which the host waits for the GPU: synchronisations and blocking copies."""
    waits: BoolArray = trace.api_calls.text("kind").equals("sync") | blocking_copies(trace)
    return waits


def copies_of(trace: Trace) -> BoolArray:
    """Calls that ask for a copy."""
    return trace.api_calls.text("kind").equals("copy")


def calls_between(trace: Trace, rows: IntArray, calls: BoolArray) -> IntArray:
    """How many of these calls the launching thread made between the launch of the kernel before and
    this one's.
    """
    return _counted_between(trace.kernels, rows, _by_thread(trace, calls))


def _by_thread(trace: Trace, calls: BoolArray) -> dict[int, IntArray]:
    """When each thread's calls began, in order."""
    begins = trace.api_calls.ints("start_ns")[calls]
    threads = trace.api_calls.ints("thread")[calls]
    return {int(thread): np.sort(begins[mine]) for thread, mine in rows_by_value(threads)}


def _counted_between(kernels: Table, rows: IntArray, calls: Mapping[int, IntArray]) -> IntArray:
    count = np.zeros(len(rows), np.int64)
    if not any(len(begins) for begins in calls.values()):
        return count
    launched = kernels.ints_at("launch_start_ns", rows)
    known = np.flatnonzero(launched != MISSING)
    thread = kernels.ints_at("thread", rows)
    for key, mine in rows_of_values(taken_values(thread, known), known):
        if key not in calls:
            continue
        last = None  # how many calls there were before the last kernel so far
        for _, piece in in_pieces(mine):
            before = np.searchsorted(calls[key], launched[piece], side="right")
            count[piece] = np.diff(before, prepend=before[0] if last is None else last)
            last = before[-1]
    return count


# --- what a program does over and over
# --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recurring:
    """A sequence of kernels on one stream, and where it comes."""

    codes: IntArray  # its kernels
    numbers: IntArray  # of its inferences, in order of time
    # that it comes on any stream of its thread and GPU, alike in its sizes (`turns_alike`)
    times: int


def unit_of_work(trace: Trace, found: Inferences, *, turns: bool) -> IntArray:
    """For each kernel the number of its repetition of its process's unit of work; MISSING if none.
    ``found`` is what was found to repeat; ``turns`` is whether one repetition is everything that
    recurs in the same turn (`whole_turns`).

    A repetition comes at least three times, or is too long to come twice by chance
    (`which_repeat`).  Those of a process are its unit of work if they are most of what it runs on
    GPUs between the first of them and the last; where there are two, or the host neither waits nor
    copies between them, which is how a loop inside a piece of work looks, if they are most of all
    that it runs.  That is not asked of a process of which ranges or graph launches show inferences
    too.
    """
    number = found.membership.ints("inference")
    result, begins = _repeated(trace, found)
    _without_trials(trace.kernels, number, result)
    begins &= result
    shown = distinct(found.table.ints("process")[~found.table.text("found_by").equals("period")])
    process = trace.kernels.ints("process")
    repeating = {*distinct(process[result]).tolist()}.difference(shown.tolist())
    asked = _by_thread(trace, waits_of(trace) | copies_of(trace)) if repeating else {}
    some = np.flatnonzero(np.isin(process, [*repeating]))
    for _, rows in rows_of_values(process[some], some):
        marked = _marked(trace.kernels, rows, begins, asked)
        result[rows] &= _most(trace, rows, result[rows], marked=marked)
    del some
    kept = np.zeros(len(found.table), np.bool_)
    kept[number[result]] = True
    del result, begins, process
    unit = np.where(
        kept & found.table.text("found_by").equals("period"),
        np.arange(len(kept)),
        np.int64(MISSING),
    )
    if turns:
        _join_turns(found.table, unit, shown)
        _main_kind(trace, found, unit, shown)
        _main_home(found.table, unit, shown)
    _, numbered_anew = np.unique(unit[unit != MISSING], return_inverse=True)
    unit[unit != MISSING] = numbered_anew
    repeated = gather(unit, number)
    del number
    return _or_marked(trace, repeated, shown) if turns else repeated


def _repeated(trace: Trace, found: Inferences) -> tuple[BoolArray, BoolArray]:
    """True for the kernels of the inferences that are repetitions by their number
    (`which_repeat`), and for the first kernel of each.
    """
    kernels, number = trace.kernels, found.membership.ints("inference")
    result = np.zeros(len(kernels), np.bool_)
    inside = np.flatnonzero(number >= 0)
    order = launch_order(kernels, inside, number[inside])
    del inside
    begin = np.flatnonzero(np.diff(number[order], prepend=-1))
    size = np.diff(np.append(begin, len(order)))
    which = number[order[begin]]
    home, sequence = (
        numbered_in_turn(found.table.ints_at(name, which) for name in names)[1]
        for names in (
            ("process", "context", "stream"),
            ("process", "thread", "device", "kernel_sequence"),
        )
    )
    times = _times(trace, order, begin, size, sequence)
    begins = np.zeros(len(kernels), np.bool_)
    for _, members in rows_by_value(home):
        if len(members) < 2:  # what comes once repeats nothing
            continue
        shapes, places = [], [members[rows] for _, rows in rows_by_value(sequence[members])]
        for mine in places:
            codes = (
                kernels.text("name")
                .codes[order[begin[mine[0]] + np.arange(size[mine[0]])]]
                .astype(np.int64)
            )
            shapes.append(Recurring(codes, which[mine], int(times[sequence[mine[0]]])))
        for mine, yes in zip(places, which_repeat(shapes), strict=True):
            if yes:
                result[order[np.repeat(begin[mine], size[mine]) + _within(size[mine])]] = True
                begins[order[begin[mine]]] = True
    return result, begins


def _without_trials(kernels: Table, number: IntArray, repeated: BoolArray) -> None:
    """Leaves out what a thread tried out if hardly any repetition follows, unless its process does
    nothing else.
    """
    trial = trials(kernels)
    inside = trial & repeated
    if not inside.any():
        return
    tried_out = trial | np.isin(number, number[inside])
    thread, process = kernels.ints("thread"), kernels.ints("process")
    more = np.isin(process, process[~tried_out])
    for key in distinct(thread[inside]).tolist():
        mine = repeated & (thread == key)
        follow = distinct(number[mine & (number > number[mine & tried_out].max())])
        if more[mine].any() and len(follow) < _LEAST:
            repeated[mine & tried_out] = False


def _main_home(inferences: Table, unit: IntArray, shown: IntArray) -> None:
    """Keeps, of what repeats on several streams of a process, what is on the one where it takes
    nearly all of the GPU's time: the rest, such as the exchange of gradients, serves it.  Where
    several share it, what is on one that takes hardly any serves these.

    So do hidden CUDA graphs that take nearly all of the time of their process.
    """
    period = inferences.text("found_by").equals("period")
    busy = np.maximum(inferences.ints("gpu_busy_ns"), 0)
    rows = np.flatnonzero((unit != MISSING) | ~period)
    process = inferences.ints("process")[rows]
    stream = numbered(*(inferences.ints(name)[rows] for name in ("context", "stream")))[1]
    home = np.where(period[rows], stream, np.int64(MISSING))
    for one, members in rows_by_value(process):
        homes, of = np.unique(home[members], return_inverse=True)
        took = np.bincount(of, weights=busy[rows[members]])
        main = int(took.argmax())
        if one in shown and homes[main] != MISSING:
            continue
        if took[main] >= _NEARLY_ALL * took.sum():
            unit[rows[members][of != main]] = MISSING
        elif one not in shown:
            unit[rows[members][took[of] < _HARDLY * took.sum()]] = MISSING


def _or_marked(trace: Trace, repeated: IntArray, shown: IntArray) -> IntArray:
    """The repetitions (a number per kernel), in each process whose own ranges show what it does
    over and over those ranges instead, if what repeats is a piece of them.
    """
    kernels = trace.kernels
    process = kernels.ints("process")
    marked = marked_steps(trace, np.flatnonzero(~np.isin(process, shown)))
    if not (marked != MISSING).any():
        return _without_holes(repeated)
    result, count = repeated.copy(), int(repeated.max(initial=-1)) + 1
    rows_of = dict(rows_of_values(process, np.arange(len(process))))
    for one in distinct(process[marked != MISSING]).tolist():
        mine = rows_of[one]
        if _is_step(kernels, mine[repeated[mine] != MISSING], repeated, marked):
            continue
        apart = _parts_apart(kernels, mine, repeated, marked)
        result[mine] = np.where(marked[mine] == MISSING, marked[mine], marked[mine] + count)
        result[apart] = repeated[apart]
    return _without_holes(result)


def _parts_apart(kernels: Table, rows: IntArray, repeated: IntArray, marked: IntArray) -> IntArray:
    """The kernels, of those in these rows, of what repeats before or after all ranges that mark
    something, if one kind comes many times there and takes long beside them: a part of the program
    of its own, such as what it measures after a warm-up.
    """
    start, took = kernels.ints("start_ns"), kernels.ints("end_ns") - kernels.ints("start_ns")
    held = rows[marked[rows] != MISSING]
    first, last = int(start[held].min()), int(start[held].max())
    some = rows[repeated[rows] != MISSING]
    inner = distinct(repeated[some[(start[some] >= first) & (start[some] <= last)]])
    some = some[~np.isin(repeated[some], inner)]
    if not len(some):
        return np.zeros(0, np.int64)
    some = some[np.lexsort((start[some], repeated[some]))]
    begin = np.flatnonzero(np.diff(repeated[some], prepend=MISSING))
    size = np.diff(np.append(begin, len(some)))
    hashes = sequence_hashes(kernels.text("name").codes[some], begin, size)
    kind = np.unique(hashes, return_inverse=True)[1].reshape(-1)
    time = np.bincount(kind, weights=np.add.reduceat(took[some], begin))
    kept = (np.bincount(kind) >= SHORTEST_PHASE) & (time >= _LONG_PART * took[held].sum())
    found: IntArray = some[np.repeat(kept[kind], size)]
    return found


def marked_graphs(trace: Trace, found: Inferences) -> IntArray:
    """For each kernel the number of the program's own range in which graph launches of several
    threads take turns, one turn in each: together they are a step, such as a model's forward and
    its backward, which another thread launches.  MISSING for all kernels of other processes.
    """
    table, number = found.table, found.membership.ints("inference")
    result = np.full(len(number), MISSING, np.int64)
    graphs = np.flatnonzero(table.text("found_by").equals("graph-launch"))
    # what a trace hides in graphs is in no range
    graphs = graphs[table.ints("kernel_sequence")[graphs] != MISSING]
    for _, members in rows_by_value(table.ints("process")[graphs]):
        mine = graphs[members]
        turns = whole_turns(table.ints("kernel_sequence")[mine])
        if turns is None or len(distinct(table.ints("thread")[mine])) == 1:
            continue
        first, size, count = turns
        inside = mine[first : first + size * count].reshape(count, size)
        threads = table.ints("thread")[inside]
        several = (threads != threads[:, :1]).any(axis=1).mean() >= _NEARLY_ALL
        if not (several and _one_after_the_other(table, inside)):
            continue
        own = np.flatnonzero(trace.kernels.ints("process") == table.ints("process")[mine[0]])
        marked = marked_steps(trace, own)
        held = np.isin(number, inside)
        step = np.full(len(table), MISSING, np.int64)
        step[number[held]] = marked[held]
        together = step[inside]
        whole = (together != MISSING).all(axis=1) & (together == together[:, :1]).all(axis=1)
        if whole.mean() >= _NEARLY_ALL and len(distinct(together[whole, 0])) == whole.sum():
            result[own] = np.where(
                marked[own] == MISSING, marked[own], marked[own] + result.max(initial=-1) + 1
            )
    return _without_holes(result)


def _without_holes(number: IntArray) -> IntArray:
    """The same numbers from 0 on without holes, in the same array; MISSING stays."""
    used = distinct_rows(number, int(number.max(initial=-1)) + 1)
    anew = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int64)
    anew[used] = np.arange(len(used))
    for rows, held in in_pieces(number):
        known = held >= 0
        number[rows[known]] = anew[held[known]]
    return number


def _is_step(kernels: Table, rows: IntArray, repeated: IntArray, marked: IntArray) -> bool:
    """Whether what repeats in these kernels is the program's step beside the ranges that mark
    something: one kind of it is longer than they are, or is nearly all of what they hold.
    """
    if not len(rows):
        return False
    rows = rows[np.argsort(repeated[rows], kind="stable")]
    first = np.flatnonzero(np.diff(repeated[rows], prepend=MISSING))
    size = np.diff(np.append(first, len(rows)))
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    busy = np.add.reduceat(took[rows], first)
    hashes = sequence_hashes(kernels.text("name").codes[rows], first, size)
    _, one, kind = np.unique(hashes, return_index=True, return_inverse=True)
    of_kind = np.bincount(kind.reshape(-1), weights=busy)
    main = int(of_kind.argmax())
    held = marked != MISSING
    held_in_each = np.bincount(marked[held])
    longest = float(np.percentile(held_in_each[held_in_each > 0], _LONG))
    beyond = size[one[main]] > _LONGER * longest
    return bool(beyond or of_kind[main] >= _NEARLY_ALL * int(took[held].sum()))


def _join_turns(inferences: Table, unit: IntArray, shown: IntArray) -> None:
    """Gives inferences of one turn the same number, and those outside all turns none, where most of
    the work is in turns: of a process whose threads wait for each other, of a thread, or else of a
    stream.

    In a process of which ranges or graph launches show inferences, none of these lies among them.
    """
    period = inferences.text("found_by").equals("period")
    process, begin = inferences.ints("process"), inferences.ints("enqueue_start_ns")
    open_rows = np.flatnonzero(unit != MISSING)
    for names in _TURNS_OF:
        home = numbered(*(inferences.ints(name)[open_rows] for name in names))[1]
        left = np.ones(len(open_rows), np.bool_)
        for _, members in rows_by_value(home):
            mine = open_rows[members]
            one_thread = len(distinct(inferences.ints("thread")[mine])) == 1
            turns = whole_turns(inferences.ints("kernel_sequence")[mine])
            if turns is None:
                continue
            first, size, count = turns
            inside = mine[first : first + size * count]
            if not (one_thread or _one_after_the_other(inferences, inside.reshape(count, size))):
                continue
            among = (process == process[mine[0]]) & ~period
            among &= (begin > begin[inside[0]]) & (begin < begin[inside[-1]])
            if among.any() and process[mine[0]] in shown:
                continue
            if all(
                inferences.ints(name)[inside].sum() > _MOST * inferences.ints(name)[mine].sum()
                for name in ("kernels", "gpu_busy_ns")
            ):
                unit[mine] = MISSING
                unit[inside] = np.repeat(inside[::size], size)
                left[members] = False
        open_rows = open_rows[left]


def _one_after_the_other(inferences: Table, turns: IntArray) -> bool:
    """Whether nearly all of these turns (a row of inferences for each) begin after the one before
    was enqueued, and each inference in them after the others or within one: threads wait for each
    other, or one serves another.  Threads that work on their own begin while others are busy.
    """
    begin, end = (inferences.ints(f"enqueue_{edge}_ns")[turns] for edge in ("start", "end"))
    reached = np.maximum.accumulate(end, axis=1)
    apart = begin[1:, 0] >= reached[:-1, -1]
    follows, within = begin[:, 1:] >= reached[:, :-1], end[:, 1:] <= reached[:, :-1]
    in_order = (follows | within).all(axis=1)
    return float(min(apart.mean(), in_order.mean())) >= _NEARLY_ALL


def _main_kind(trace: Trace, found: Inferences, unit: IntArray, shown: IntArray) -> None:
    """Keeps, of what repeats on a stream, the kind that takes nearly all of the GPU's time, and its
    like: a program's step.

    Kinds that come in turns are one (`_join_turns`).  Where no kind takes nearly all, each is kept.
    """
    table, kernels = found.table, trace.kernels
    number = found.membership.ints("inference")
    rows = np.flatnonzero(
        (unit != MISSING) & (unit == np.arange(len(unit))) & ~np.isin(table.ints("process"), shown)
    )
    home = numbered(*(table.ints(name)[rows] for name in ("process", "context", "stream")))[1]
    joined = np.bincount(unit[unit != MISSING], minlength=len(unit))
    order: IntArray | None = None
    for _, members in rows_by_value(home):
        mine = rows[members]
        if joined[mine].sum() > len(mine):  # turns
            continue
        kinds, of = np.unique(table.ints("kernel_sequence")[mine], return_inverse=True)
        busy = np.bincount(of, weights=np.maximum(table.ints("gpu_busy_ns")[mine], 0))
        if len(kinds) < 2:
            continue
        order = np.argsort(number, kind="stable") if order is None else order
        one_of_each = [int(mine[of == kind][0]) for kind in range(len(kinds))]
        codes = [_codes_of(kernels, number, order, one) for one in one_of_each]
        main = int(busy.argmax())
        like = np.array(
            [kind == main or is_like(codes[kind], codes[main]) for kind in range(len(kinds))]
        )
        if busy[like].sum() >= _NEARLY_ALL * busy.sum() and np.count_nonzero(like[of]) >= _LEAST:
            unit[mine[~like[of]]] = MISSING


def _codes_of(kernels: Table, number: IntArray, order: IntArray, inference: int) -> IntArray:
    """The kernels of an inference, by name; ``order`` sorts all by their inferences' numbers."""
    first, end = np.searchsorted(number, (inference, inference + 1), sorter=order).tolist()
    return kernels.text("name").codes[order[first:end]].astype(np.int64)


def whole_turns(words: IntArray) -> tuple[int, int, int] | None:
    """The part of a sequence that is mostly turns of the same different words: its first word, how
    many words a turn has, and how many turns there are.
    """
    every = len(words) <= _FEW_WORDS
    for size in range(2, len(words) // _LEAST + 1) if every else candidates(words):
        if size == 1 or _LEAST * size > len(words):
            continue
        again = np.concatenate([[False], words[size:] == words[:-size], [False]])
        edges = np.flatnonzero(again[1:] != again[:-1])
        if not len(edges):
            continue
        begins, ends = edges[::2], edges[1::2]
        longest = int(np.argmax(ends - begins))
        first, count = int(begins[longest]), int(ends[longest] - begins[longest]) // size + 1
        if count >= _LEAST and size * count > _MOST * len(words):
            different = len(np.unique(words[first : first + size])) > 1
            return (first, size, count) if different else None
    return None


def _within(size: IntArray) -> IntArray:
    return np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)


def _times(
    trace: Trace, rows: IntArray, begin: IntArray, size: IntArray, sequence: IntArray
) -> IntArray:
    """How often each sequence comes, by its number for each time: with other sizes it is other
    work, of a few times; a single kernel with another grid is always.

    ``rows`` are the kernels, ``begin`` the place there of the first one of each time.
    """
    count = np.bincount(sequence)
    times = count.copy()
    for few in (True, False):
        asked = (count < MANY) if few else (count >= MANY)
        which = np.flatnonzero(asked[sequence] & (few | (size == 1)))
        places = np.repeat(begin[which], size[which]) + _within(size[which])
        like = np.full(len(rows), MISSING, np.int64)
        like[places] = like_launches(trace, rows[places], copied=few)
        for one, mine in rows_by_value(sequence[which]):
            begins = begin[which[mine]]
            turns = like[begins[:, None] + np.arange(size[which[mine[0]]])]
            times[one] = turns_alike(turns)
    return times


def _marked(
    kernels: Table, rows: IntArray, begins: BoolArray, asked: Mapping[int, IntArray]
) -> bool:
    """Whether a process has that many repetitions, beginning with these kernels, and the host waits
    or copies (``asked``: when, by thread) between most of them.
    """
    own = launch_order(kernels, rows)
    between = np.cumsum(_counted_between(kernels, own, asked))[begins[own]]
    return len(between) >= _LEAST and float((np.diff(between) > 0).mean()) >= _MOST


def _most(trace: Trace, rows: IntArray, repeated: BoolArray, *, marked: bool) -> bool:
    """Whether most of these kernels, and of their time, are repetitions: between the first and the
    last one if those are marked. A preparation for much more that follows does not count.
    """
    if not repeated.any():
        return False
    start = trace.kernels.ints_at("start_ns", rows)
    took = trace.kernels.ints_at("end_ns", rows) - start
    first, last = int(start[repeated].min()), int(start[repeated].max())
    if took.sum(where=start > last) > _FOLLOWS * took.sum(where=repeated):
        return False
    scope = (start >= first) & (start <= last) if marked else np.ones(len(rows), np.bool_)
    return bool(repeated[scope].mean() >= _MOST) and int(
        took.sum(where=repeated & scope)
    ) > _MOST * int(took.sum(where=scope))


def which_repeat(shapes: Sequence[Recurring]) -> list[bool]:
    """Marks the sequences of one stream that are repetitions.

    What comes too seldom is one if it is like what recurs, or cut off from it.  Where most kernels
    between the first repetition and the last are of none, nothing repeats.
    """
    codes = np.concatenate([shape.codes for shape in shapes])
    often = np.bincount(
        codes,
        weights=np.repeat(
            [len(shape.numbers) for shape in shapes], [len(shape.codes) for shape in shapes]
        ),
    )
    alike = float(np.square(often / often.sum()).sum())
    enough = [_enough(shape, int(often.sum()), alike) for shape in shapes]
    recurring = [shape.codes for shape, yes in zip(shapes, enough, strict=True) if yes][:_KNOWN]
    if not recurring:
        return [False] * len(shapes)
    ends = [
        min(int(shape.numbers[0]) for shape in shapes),
        max(int(shape.numbers[-1]) for shape in shapes),
    ]
    repeated = [
        yes
        or any(is_like(shape.codes, usual) for usual in recurring)
        or any(
            int(shape.numbers[0]) == end and is_part(shape.codes, usual, front=front)
            for usual in recurring
            for end, front in zip(ends, (False, True), strict=True)
        )
        for shape, yes in zip(shapes, enough, strict=True)
    ]
    begin, end = (
        reach(int(reach(shape.numbers)) for shape, yes in zip(shapes, repeated, strict=True) if yes)
        for reach in (min, max)
    )
    count = [0, 0]
    for shape, yes in zip(shapes, repeated, strict=True):
        count[yes] += len(shape.codes) * int(
            ((shape.numbers >= begin) & (shape.numbers <= end)).sum()
        )
    return repeated if count[True] >= count[False] else [False] * len(shapes)


def _enough(shape: Recurring, kernels: int, alike: float) -> bool:
    """Whether a sequence comes often enough.

    Of two, and of those of unlike sizes: whether as many kernels in random order, of which any two
    are alike with that probability, would hold any sequence of its length twice with a probability
    below `_CHANCE`.  There are so many pairs of places.
    """
    if len(shape.numbers) < _LEAST - 1 or shape.times >= _LEAST:
        return len(shape.numbers) > 1
    return kernels**2 / 2 * alike ** len(shape.codes) < _CHANCE
