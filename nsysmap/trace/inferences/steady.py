"""The steady-state inferences, the part of the trace that they cover, how long each takes, and the
phases and the drift of a run.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nsysmap.core.groups import by_first_row, distinct, rows_by_value
from nsysmap.core.intervals import union_ns
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, FloatArray, IntArray, Table, Text
from nsysmap.core.trace_schema import STEADY_STATE

OUTLIER = 1.5
"""Times the median time of inferences that are alike, from which one is an outlier."""

FEW = 0.1
"""Share of the inferences of a kind: those that take longer are outliers if they are no more, and a
phase of its own if they are.
"""

SHORTEST_PHASE = 8
"""Consecutive inferences that a phase has at least: in any order, 16 inferences of two times are 8
of one, then 8 of the other, in one case of 6,435.
"""

APART = 1.25
"""Ratio between the times of two phases, between the slow ones of one and the fast ones of the
other.  Clocks that ramp up leave no such gap: the steps of a GTX 1070 were up to 1.21.
"""

# share of the inferences whose time may lie in that gap: the first of a phase, and outliers
_BETWEEN = 0.02


_LATER = 2  # repetitions after a first one: one alone does not show what is usual


def steady_windows(inferences: Table) -> Table:
    """One row per device that ran complete inferences after the warm-up: when, how many, how long
    (see schema.STEADY_STATE).
    """
    rows = inferences.take(
        inferences.bools("complete") & ~inferences.bools("warmup") & ~slow_first(inferences)
    )
    starts, ends = rows.ints("start_ns"), rows.ints("end_ns")
    excluded = excluded_spans(inferences)
    parts = []
    for device in distinct(rows.ints("device")).tolist():
        mine = rows.ints("device") == device
        spans = rows.take(
            mine & (rows.ints("gpu_start_ns") != MISSING) & (rows.ints("gpu_end_ns") != MISSING)
        )
        start, end = int(starts[mine].min()), int(ends[mine].max())
        parts.append(
            {
                "device": None if device == MISSING else int(device),
                "start_ns": start,
                "end_ns": end,
                "window_ns": (
                    end - start - sum(stop - begin for begin, stop in excluded.get(device, ()))
                ),
                "inferences": int(mine.sum()),
                "span_ns": union_ns(spans.ints("gpu_start_ns"), spans.ints("gpu_end_ns")),
            }
        )
    return Table.of_rows(STEADY_STATE, parts)


def slow_first(inferences: Table) -> BoolArray:
    """The first of the repetitions of a loop that count, where nothing marks them and it takes far
    longer on the GPU, idle time included, than the others of its kernels.

    No interval is its time; how busy the GPU was while it ran says nothing of the others.
    """
    found = np.zeros(len(inferences), np.bool_)
    span, sequence = inferences.ints("gpu_span_ns"), inferences.ints("kernel_sequence")
    counts = inferences.bools("complete") & ~inferences.bools("warmup") & (span != MISSING)
    counts &= inferences.text("found_by").equals("period") & (inferences.ints("engine") == MISSING)
    loops = in_loops(inferences)
    for _, places in rows_by_value(loops.loop[loops.order]):
        rows = loops.order[places]
        first, mine = rows[0], rows[1:][counts[rows[1:]]]
        mine = mine[sequence[mine] == sequence[first]]
        if counts[first] and len(mine) >= _LATER:
            found[first] = span[first] > OUTLIER * float(np.median(span[mine]))
    return found


def excluded_spans(inferences: Table) -> dict[int, list[tuple[int, int]]]:
    """For each device the times of inferences that do not count, between two of their loop that do:
    from the end of the previous one to their own.

    Not those beside which an inference of another loop that counts ran for long: the GPU worked for
    that.  Nor does the time count in which one loop has ended and the next has not begun, which has
    pauses and the warm-up of that.
    """
    loops = in_loops(inferences)
    steady = inferences.bools("complete") & ~inferences.bools("warmup")
    start, end, device = (inferences.ints(name) for name in ("start_ns", "end_ns", "device"))
    found: dict[int, list[tuple[int, int]]] = {}
    for _, places in rows_by_value(loops.loop[loops.order]):
        rows = loops.order[places]
        counting = np.flatnonzero(steady[rows])
        inner = np.arange(counting[0], counting[-1]) if len(counting) else counting
        for at in inner[~steady[rows[inner]]].tolist():
            begin, stop = int(loops.end_ns[rows[at - 1]]), int(loops.end_ns[rows[at]])
            others = (
                steady
                & (loops.loop != loops.loop[rows[at]])
                & (device == device[rows[at]])
                & (start < stop)
                & (end > begin)
            )
            beside = union_ns(np.maximum(start[others], begin), np.minimum(end[others], stop))
            if stop > begin and beside <= FEW * (stop - begin):
                found.setdefault(int(device[rows[at]]), []).append((begin, stop))
    for one, spans in _between_loops(loops, steady, start, end, device).items():
        found.setdefault(one, []).extend(spans)
    return {one: _merged(spans) for one, spans in found.items()}


def _between_loops(
    loops: InLoops, steady: BoolArray, start: IntArray, end: IntArray, device: IntArray
) -> dict[int, list[tuple[int, int]]]:
    """For each device the times between the steady-state parts of two successive loops of several
    inferences.
    """
    parts: dict[int, list[tuple[int, int]]] = {}
    for _, rows in rows_by_value(np.where(steady, loops.loop, np.int64(MISSING))):
        if steady[rows[0]] and len(rows) > 1:
            parts.setdefault(int(device[rows[0]]), []).append(
                (int(start[rows].min()), int(end[rows].max()))
            )
    return {
        one: [(stop, begin) for (_, stop), (begin, _) in pairwise(_merged(spans))]
        for one, spans in parts.items()
        if len(spans) > 1
    }


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The times without overlaps."""
    found: list[tuple[int, int]] = []
    for begin, stop in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((begin, stop))
    return found


def steady_inferences(inferences: Table) -> IntArray:
    """The numbers of the complete inferences after the warm-up."""
    rows: IntArray = inferences.ints("inference")[
        inferences.bools("complete") & ~inferences.bools("warmup")
    ]
    return rows


def only_repeats(inferences: Table, *, tensorrt: bool) -> bool:
    """Whether nothing shows that these are inferences: they are repetitions of the same kernels,
    which no range or engine file marks, or launches of CUDA graphs, which are inferences only where
    ``tensorrt`` says that something shows it.
    """
    found_by = inferences.text("found_by")
    repeated, launched = found_by.equals("period"), found_by.equals("graph-launch")
    unmarked = (repeated | launched) & (inferences.ints("engine") == MISSING)
    return bool(len(inferences)) and bool(unmarked.all()) and not (tensorrt and launched.any())


def called_repetitions(inferences: Table, *, tensorrt: bool) -> bool:
    """Whether sentences say repetition instead of inference: nothing shows that these are
    inferences, or there are none, and nothing shows that TensorRT ran.
    """
    return only_repeats(inferences, tensorrt=tensorrt) or not (len(inferences) or tensorrt)


_LONGEST_TURN = 8  # inferences of a pass


def inferences_a_pass(sequence: IntArray) -> int:
    """How many inferences make a pass, if kinds of inferences (numbers, in order of time) come in
    the same turn throughout; otherwise 1.

    One that does not count (MISSING: it compiled kernels) holds its place in the turn.
    """
    known = np.flatnonzero(sequence != MISSING)
    sequence = sequence[known[0] : known[-1] + 1] if len(known) else sequence
    kinds = len(distinct(sequence[sequence != MISSING]))
    for period in range(2, _LONGEST_TURN + 1):
        if kinds < 2 or len(sequence) < 3 * period:
            return 1
        turns = [sequence[place::period] for place in range(period)]
        if all(len(distinct(one[one != MISSING])) <= 1 for one in turns):
            return period
    return 1


# --- time per inference, and phases
# -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class InLoops:
    """The rows of INFERENCES in their loops: a loop is the inferences that one thread of a process
    enqueues for one device.
    """

    loop: IntArray  # number of the loop, by its first row
    order: IntArray  # the rows by loop, then by end
    end_ns: IntArray  # end of the inference's GPU work, or of its host call if it has none
    # from the end of the one before it in its loop to its own; MISSING for the first
    time_ns: IntArray


def in_loops(inferences: Table) -> InLoops:
    """The loops of INFERENCES, and the time that each inference takes."""
    loop = by_first_row(*(inferences.ints(name) for name in ("process", "thread", "device")))
    gpu_end = inferences.ints("gpu_end_ns")
    end = np.where(gpu_end != MISSING, gpu_end, inferences.ints("end_ns"))
    order = np.lexsort((end, loop))
    time = np.full(len(inferences), MISSING, np.int64)
    follows = np.flatnonzero(loop[order[1:]] == loop[order[:-1]]) + 1
    time[order[follows]] = end[order[follows]] - end[order[follows - 1]]
    return InLoops(loop, order, end, time)


def phases(inferences: Table, loops: InLoops, copies: Text) -> IntArray:
    """For each row of INFERENCES the number of its phase within its loop, engine and kernel
    sequence; 0 if there is one phase.

    ``copies`` is the host memory of the copies of each (`copies.copied_memory`).  Repetitions that
    nothing marks as inferences have phases only where nothing else repeats in their loop: what
    takes turns with them in an unknown order is part of their time.
    """
    result = np.zeros(len(inferences), np.int64)
    if not len(inferences):
        return result
    steady = inferences.bools("complete") & ~inferences.bools("warmup") & (loops.time_ns != MISSING)
    unmarked = inferences.text("found_by").equals("period") & (inferences.ints("engine") == MISSING)
    kind = by_first_row(loops.loop, inferences.ints("engine"), inferences.ints("kernel_sequence"))
    in_loop = np.bincount(loops.loop)[loops.loop]
    for _, places in rows_by_value(kind[loops.order]):
        rows = loops.order[places]
        timed = np.flatnonzero(steady[rows])
        if unmarked[rows[0]] and len(rows) < (1 - FEW) * in_loop[rows[0]]:
            continue
        found = phases_of(loops.time_ns[rows[timed]], copies.codes[rows[timed]].astype(np.int64))
        if found.any():  # the others are of the phase of the next one
            result[rows] = found[
                np.minimum(np.searchsorted(timed, np.arange(len(rows))), len(timed) - 1)
            ]
    return result


def phases_of(time_ns: IntArray, copies: IntArray) -> IntArray:
    """For each inference of one kind, in order of time, the number of its phase by first
    appearance; all 0 if there is one phase.

    A phase copies from and to other memory (a number for each inference), or takes a time that is
    apart from those of the others (`_levels`).
    """
    by_copies, level = _stretches(copies), np.zeros(len(time_ns), np.int64)
    for one in np.unique(by_copies):
        mine = by_copies == one
        level[mine] = _stretches(_levels(time_ns[mine]))
    return by_first_row(by_copies, level)


def _stretches(label: IntArray) -> IntArray:
    """These labels of inferences in order of time, where nearly all are in stretches of equal ones;
    otherwise all 0.

    Those between two stretches get the label of the later one: a time counts from the end of the
    inference before, so the first of a phase has the pause before it in its own, and its warm-up
    follows.
    """
    bounds = [0, *(np.flatnonzero(np.diff(label)) + 1).tolist(), len(label)]
    stretches = [
        (first, last) for first, last in pairwise(bounds) if last - first >= SHORTEST_PHASE
    ]
    if sum(last - first for first, last in stretches) < (1 - FEW) * len(label) or not stretches:
        return np.zeros(len(label), np.int64)
    between = [end for _, end in stretches[:-1]]
    found = np.empty(len(label), np.int64)
    for (first, _), (begin, end) in zip(
        stretches, pairwise([0, *between, len(label)]), strict=True
    ):
        found[begin:end] = label[first]
    return found


def _levels(time_ns: IntArray) -> IntArray:
    """For each time the number of its level. Levels are separated by ranges with few times, and
    none has few times itself.
    """
    least = max(SHORTEST_PHASE, FEW * len(time_ns))
    ordered, few = np.sort(np.maximum(time_ns, 1)), int(_BETWEEN * len(time_ns)) + 1
    ratio = ordered[few:] / ordered[:-few] if len(ordered) > few else np.zeros(0)
    wide = np.flatnonzero(ratio >= APART)
    cuts: list[float] = []
    below = 0
    for near in np.split(wide, np.flatnonzero(np.diff(wide) > 1) + 1) if len(wide) else []:
        at = near[np.argmax(ratio[near])]
        cut = float(np.sqrt(float(ordered[at]) * float(ordered[at + few])))
        count = int(np.searchsorted(ordered, cut))
        if count - below >= least and len(ordered) - count >= least:
            cuts.append(cut)
            below = count
    level: IntArray = np.digitize(time_ns, cuts).astype(np.int64)
    return level


# --- drift
# --------------------------------------------------------------------------------------------------

_CHANCE_DEVIATIONS = 3.1
"""Standard deviations of the rank correlation of values in random order, beyond which one in a
thousand is on one side.
"""

_ENDS = 10  # a run's first and last that part of its inferences are what it drifts from and to


@dataclass(frozen=True)
class Drift:
    """The median time at the two ends of a run whose times rise or fall throughout."""

    first_ns: int  # of the first tenth of the inferences
    last_ns: int  # of the last tenth


def drift(time_ns: IntArray) -> Drift | None:
    """How far the times of the inferences of one kind, in order of time, drift over the run; None
    if they do not.

    They do if they rise or fall more than by chance, a straight line explains their logarithms
    better than any one step does, and the two ends differ as much as phases do.
    """
    if not abs(trend(time_ns)) > _CHANCE_DEVIATIONS or not _a_line(time_ns, len(time_ns)):
        return None
    tenth = -(-len(time_ns) // _ENDS)
    first, last = (float(np.median(part)) for part in (time_ns[:tenth], time_ns[-tenth:]))
    apart = max(first, last) >= APART * max(min(first, last), 1.0)
    return Drift(round(first), round(last)) if apart else None


def falls_throughout(times: FloatArray | IntArray) -> bool:
    """Whether times that are longer at first do not settle: they still fall in their later half,
    and a straight line explains them better than a step in the first half does, which is how a
    warm-up looks that ends there.
    """
    return trend(times[len(times) // 2 :]) < -_CHANCE_DEVIATIONS and _a_line(times, len(times) // 2)


def trend(values: FloatArray | IntArray) -> float:
    """The rank correlation of values with their place (Spearman's), in its standard deviations for
    a random order.
    """
    if len(values) < 3:
        return 0.0
    rank = np.empty(len(values))
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return float(np.corrcoef(rank, np.arange(len(values)))[0, 1]) * float(np.sqrt(len(values) - 1))


def _a_line(values: FloatArray | IntArray, last: int) -> bool:
    """Whether a straight line leaves less of the variance of the logarithms than one step does,
    after any but the last of the first ``last`` values.
    """
    off = np.log(np.maximum(values, 1e-9))
    off = off - off.mean()
    count, place = len(off), np.arange(len(off)) - (len(off) - 1) / 2
    line = float(off @ place) ** 2 / float(place @ place)
    before = np.arange(1, min(last, count - 1) + 1)
    step = np.cumsum(off)[: len(before)] ** 2 * count / (before * (count - before))
    return line > float(step.max(initial=0.0))
