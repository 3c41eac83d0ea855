"""Chooses which inferences of a trace are replayed, or says why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nsysmap.advice.program import is_collective
from nsysmap.core.groups import by_first_row, distinct, rows_by_value
from nsysmap.core.intervals import covered, union_ns
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.text.units import capitalised, counted, duration, unit_words
from nsysmap.trace.copies import copied_memory
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.inferences.disturbance import HeldUpTimes, hold_ups
from nsysmap.trace.inferences.steady import FEW, OUTLIER, in_loops, inferences_a_pass, phases
from nsysmap.trace.model import Trace

REPLAYED = 24
"""Replayed inferences per thread: a third each from the beginning, the middle and the end of the
steady run, in each of its phases.
"""
_MOST_KERNELS = 20_000  # per thread: keeps a replay below a tenth of a second
# inferences of each kernel sequence, and of each third of a phase, that are replayed at least, if
# there are as many
_RARE = 3
_MOST_SEQUENCES = 8  # of kernels that are replayed, the most frequent ones
_PAUSES_APART = 4.0  # ratio from which on pauses between inferences are of two kinds
_AS_MANY = 0.9  # of the most inferences of a GPU: as many, but for a warm-up
_SAME_PACE = 0.03  # by which the times per inference of two GPUs may differ and be taken for one
_FOREIGN_BUSY = 0.02  # share of the replayed time


@dataclass(frozen=True)
class Window:
    """The part of a trace that is replayed."""

    process: int
    device: int
    threads: tuple[int, ...]
    # per thread the rows in INFERENCES, by time, including those that only precede a counted one
    inferences: tuple[IntArray, ...]
    # per thread: for each counted position in `inferences`, how many of the trace it represents
    weights: tuple[dict[int, float], ...]
    begin_ns: IntArray  # of each stretch; they do not overlap
    end_ns: IntArray
    # per thread the phase of each position in `inferences`, see steady.phases
    phases: tuple[dict[int, int], ...]
    # per thread, the share of the time in which any of them runs inferences that it does
    present: tuple[float, ...]
    # inferences per pass, if engines always take turns in the same order; 1 otherwise
    inferences_a_pass: int
    notes: tuple[str, ...]  # what was left out, in sentences
    # mean time of all inferences of the run that count, divided by that of the replayed ones
    of_all: float
    # mean GPU work of the inferences that count, and of those like them that take much longer,
    # divided by that of the replayed ones
    work_of_all: float = 1.0
    work_of_counted: float = 1.0  # the same of the inferences that count alone

    @property
    def unit(self) -> str:
        """What a time refers to: an inference or a pass; a template of
        nsysmap.text.units.worded.
        """
        return unit_words(self.inferences_a_pass, "{:inference}")

    def holds(self, moments: IntArray) -> BoolArray:
        """Marks the times within one of the stretches."""
        at = np.searchsorted(self.begin_ns, moments, side="right") - 1
        held: BoolArray = (at >= 0) & (moments < self.end_ns[np.maximum(at, 0)])
        return held

    def rows(self, table: Table, name: str = "start_ns") -> IntArray:
        """The rows of the table whose time in that column is in one of the stretches."""
        found = [np.zeros(0, np.int64)]
        found += [rows[self.holds(moment)] for rows, moment in in_pieces(table.held_ints(name))]
        return np.concatenate(found)

    def launched(self, table: Table) -> IntArray:
        """The rows of a table of GPU work that the process launched on the device within one of the
        stretches.
        """
        rows = self.rows(table, "launch_start_ns")
        mine = (table.held_ints("process").take(rows) == self.process) & (
            table.held_ints("device").take(rows) == self.device
        )
        mine &= table.held_ints("launch").take(rows) >= 0
        found: IntArray = rows[mine]
        return found

    def touching(self, table: Table) -> IntArray:
        """The rows of the table that overlap one of the stretches."""
        found = [np.zeros(0, np.int64)]
        for rows, start, end in in_pieces(table.held_ints("start_ns"), table.held_ints("end_ns")):
            last = np.searchsorted(self.begin_ns, end, side="right") - 1
            found.append(rows[(last >= 0) & (self.end_ns[np.maximum(last, 0)] >= start)])
        return np.concatenate(found)


@dataclass(frozen=True)
class NoWindow:
    """Why no inferences can be replayed."""

    reason: str


# the first of them has no end before it to be timed from, the last no begin after it
_TOO_FEW = (
    "the trace has no four consecutive, complete {:inference}s of one thread after the warm-up"
)


def steady_window(trace: Trace, inferences: Table, only: int | None = None) -> Window | NoWindow:
    """Stretches of steady-state inferences on the process and device with the most of them (see
    _home), or on the device ``only``.
    """
    usable = inferences.bools("complete") & ~inferences.bools("warmup")
    for name in ("thread", "device", "enqueue_start_ns", "enqueue_end_ns", "gpu_end_ns"):
        usable &= inferences.ints(name) != MISSING
    if only is not None:
        usable &= inferences.ints("device") == only
    rows = np.flatnonzero(usable)
    if len(rows) == 0:
        return NoWindow(_TOO_FEW)
    process, device, thread = (
        inferences.ints("process"),
        inferences.ints("device"),
        inferences.ints("thread"),
    )
    home = _home(trace, inferences, rows)
    here = (process == home[0]) & (device == home[1])
    order = np.flatnonzero(here)
    order = order[np.lexsort((inferences.ints("enqueue_start_ns")[order], thread[order]))]
    phase = phases(inferences, in_loops(inferences), copied_memory(inferences, trace.memcpys))
    delays = hold_ups(inferences, trace.overheads)
    threads = distinct(thread[rows[here[rows]]]).tolist()
    rows_of = {one: order[at] for one, at in rows_by_value(thread[order])}
    chosen = [_Thread.of(inferences, rows_of[one], usable, phase, delays) for one in threads]
    chosen = [one for one in chosen if len(one.counting) >= 2]
    if not chosen:
        return NoWindow(_TOO_FEW)
    uneven = [one.uneven for one in chosen if one.uneven]
    if uneven:
        return NoWindow(uneven[0])
    return _window(trace, inferences, home, chosen)


def _home(trace: Trace, inferences: Table, rows: IntArray) -> tuple[int, int]:
    """The process and device with the most of these inferences.

    Of several with about as many that exchange data by NCCL, whose rate is the slowest one's, the
    slowest; of those as slow the one with the least time in collectives: the others wait for it in
    theirs.
    """
    where = np.stack([inferences.ints(name)[rows] for name in ("process", "device")])
    pairs, pair, count = np.unique(where, axis=1, return_inverse=True, return_counts=True)
    kernels = trace.kernels
    name = kernels.text("name")
    known = np.array([is_collective(value) for value in name.values], np.bool_)
    collective = np.flatnonzero(name.codes >= 0)
    collective = collective[known[name.codes[collective]]]
    best = int(np.argmax(count))
    if len(count) > 1 and len(collective):
        end, took = (
            inferences.ints("gpu_end_ns")[rows],
            kernels.ints("end_ns")[collective] - kernels.ints("start_ns")[collective],
        )
        of = [kernels.ints(name)[collective] for name in ("process", "device")]
        spent = (
            np.array(
                [
                    took[(of[0] == process) & (of[1] == device)].sum()
                    for process, device in pairs.T.tolist()
                ]
            )
            / count
        )
        pace = np.array(
            [np.ptp(end[pair.reshape(-1) == one]) for one in range(len(count))]
        ) / np.maximum(count - 1, 1)
        many = count >= _AS_MANY * count.max()
        slow = np.flatnonzero(many & (pace >= (1 - _SAME_PACE) * pace[many].max()))
        best = int(slow[np.argmin(spent[slow])])
    return int(pairs[0, best]), int(pairs[1, best])


@dataclass(frozen=True)
class _Thread:
    """The inferences of one thread on one device, by time."""

    rows: IntArray
    counting: IntArray  # positions in rows: steady, directly after another steady one, not held up
    like: IntArray  # per position the number of its kernel sequence
    # the same of its sequence in its phase, with one of its own for those that take much longer,
    # where they are many
    kind: IntArray
    phase: IntArray  # per position, see steady.phases
    # how many inferences precede the counted ones of a stretch: until each stream on which they
    # take turns has work
    lead: int
    uneven: str  # why its inferences cannot be averaged; empty if they can
    notes: tuple[str, ...]
    alike: IntArray  # as `counting`, with those that were held up

    @staticmethod
    def of(
        inferences: Table,
        rows: IntArray,
        usable: BoolArray,
        phase: IntArray,
        delays: HeldUpTimes,
    ) -> _Thread:
        steady = usable[rows]
        like = np.where(steady, inferences.ints("kernel_sequence")[rows], np.int64(MISSING))
        end, begin = inferences.ints("gpu_end_ns")[rows], inferences.ints("enqueue_start_ns")[rows]
        following = np.flatnonzero(steady[1:] & steady[:-1]) + 1
        following = following[following < len(rows) - 1]  # the next one's begin ends the stretch
        lead = min(len(np.unique(inferences.ints("stream")[rows[steady]])), _RARE)
        for back in range(
            1, lead + 1
        ):  # the first of a phase still wait for the last of the one before
            before = np.maximum(following - back, 0)
            following = following[
                (like[following] != like[before]) | (phase[rows[following]] == phase[rows[before]])
            ]
        took = end[following] - end[following - 1]
        own = took - (delays.by_nsys_ns + delays.by_host_ns)[rows[following]]
        by_its_work = _longer_work(inferences.ints("gpu_busy_ns")[rows[following]], like[following])
        reached = np.maximum(end, inferences.ints("enqueue_end_ns")[rows])
        pause = np.maximum(begin[following] - reached[following - 1], 0)
        keep, uneven = np.ones(len(following), np.bool_), ""
        notes: tuple[str, ...] = ()
        for one in distinct(phase[rows[following]]).tolist():
            mine = np.flatnonzero(phase[rows[following]] == one)
            long, reason, about = _pauses(pause[mine], took[mine])
            keep[mine[long]] = False
            uneven, notes = uneven or reason, (*notes, *about)
        if phase[rows[following]].any():
            notes = (
                *notes,
                (
                    f"The run has {len(np.unique(phase[rows[following]]))} phases, of other copies"
                    " or times: all of them count."
                ),
            )
        kind = by_first_row(like, phase[rows])
        kinds, size = np.unique(kind[following], return_counts=True)
        common = kinds[np.argsort(-size, kind="stable")][:_MOST_SEQUENCES]
        if len(kinds) > len(common):
            rarer = int(size.sum() - np.sort(size)[-len(common) :].sum())
            told = f"{counted(rarer, '{:inference}')} with rarer kernel sequences left out."
            notes = (*notes, told)
        keep &= np.isin(kind[following], common)
        alike = following[keep]
        for number in common.tolist():
            mine = np.flatnonzero((kind[following] == number) & keep)
            if not len(mine):  # each of them follows a pause
                continue
            odd, slower = _held_up(took[mine], own[mine], by_its_work[mine])
            keep[mine[odd]] = False
            if slower.any():
                kind[following[mine[slower > 0]]] = kind.max() + slower[slower > 0]
                few = f"{np.count_nonzero(slower)} of {counted(len(mine), '{:inference}')}"
                told = (
                    f"{few} of the same kernels take more than {OUTLIER} times their median time:"
                    " too many to be outliers, they count."
                )
                notes = (*notes, told)
        return _Thread(rows, following[keep], like, kind, phase[rows], lead, uneven, notes, alike)


def _longer_work(busy: IntArray, like: IntArray) -> IntArray:
    """How much longer the GPU worked for each inference than for the usual one of its kernels."""
    longer = np.zeros(len(busy), np.int64)
    for _, mine in rows_by_value(like):
        longer[mine] = np.maximum(busy[mine] - int(np.median(busy[mine])), 0)
    return np.where(busy == MISSING, 0, longer)


def _held_up(took: IntArray, own: IntArray, by_its_work: IntArray) -> tuple[BoolArray, IntArray]:
    """The inferences of one kernel sequence that something else held up, and the number of the kind
    of each: 0 for the most usual.

    Those that take much longer than the median are held up where they are few, unless the GPU's
    longer work explains it (``by_its_work``, ns): they have more to do.  So are those whose ``own``
    time is usual, without what nsys did and the host's delays in their enqueue.  Others
    that are many did something else (copied, or waited): they are another kind, in which a few may
    in turn be held up.
    """
    kind = np.zeros(len(took), np.int64)
    odd = (
        (took > OUTLIER * max(float(np.median(took)), 0.0))
        & (own <= OUTLIER * max(float(np.median(own)), 0.0))
        & (own < took)
    )
    left = np.flatnonzero(~odd)
    while len(left):
        # below 0 where the GPU works off what waited for long
        slow = took[left] > OUTLIER * max(float(np.median(took[left])), 0.0)
        if np.count_nonzero(slow) <= FEW * len(took):
            rest = took[left] - by_its_work[left]
            odd[left[slow & (rest > OUTLIER * max(float(np.median(took[left])), 0.0))]] = True
            break
        left = left[slow]
        kind[left] += 1
    return odd, kind


def _pauses(pause: IntArray, took: IntArray) -> tuple[BoolArray, str, tuple[str, ...]]:
    """The inferences that follow a pause of an unusual kind, why they cannot be separated (if so),
    and the note about it.
    """
    nothing = np.zeros(len(pause), np.bool_)
    if len(pause) < 4:
        return nothing, "", ()
    order = np.argsort(pause, kind="stable")
    smooth = pause[order] + 0.2 * float(np.median(took - np.minimum(pause, took)))
    ratio = smooth[1:] / np.maximum(smooth[:-1], 1.0)
    cut = int(np.argmax(ratio)) + 1
    if ratio[cut - 1] < _PAUSES_APART:
        return nothing, "", ()
    short, long = order[:cut], order[cut:]
    within, between = duration(float(pause[short].max())), duration(float(np.median(pause[long])))
    near = (
        f"within {within} of the previous one"
        if pause[short].any()
        else "before the previous one ends"
    )
    told = (
        f"{counted(len(short), '{:inference}')} start {near}, {len(long)} after pauses of {between}"
    )
    odd = (
        long if len(long) <= FEW * len(pause) else short if len(short) <= FEW * len(pause) else None
    )
    if odd is None:
        return (
            nothing,
            f"the {{:inference}}s are not evenly spaced: {told}; capture a steady run",
            (),
        )
    mark = nothing.copy()
    mark[odd] = True
    return (
        mark,
        "",
        ((f"{capitalised(told)}; the {'latter' if odd is long else 'former'} are left out."),),
    )


def _window(
    trace: Trace, inferences: Table, home: tuple[int, int], threads: list[_Thread]
) -> Window | NoWindow:
    main = max(threads, key=lambda one: len(one.counting))
    begin = inferences.ints("enqueue_start_ns")
    places = _stretches(inferences, main)
    begins = begin[main.rows[places[:, 0]]]
    ends = begin[main.rows[places[:, 1] + 1]]
    kept, weights, numbers, phase = [], [], [], []
    present = _present(inferences, threads)
    gpu_end, rate, rate_of_all = inferences.ints("gpu_end_ns"), 0.0, 0.0
    shares = []
    for one, share in zip(threads, present, strict=True):
        start = begin[one.rows]
        at = np.searchsorted(begins, start, side="right") - 1
        inside = np.flatnonzero((at >= 0) & (start < ends[np.maximum(at, 0)]))
        if len(inside) < 2:
            continue
        first = np.arange(len(inside)) - np.searchsorted(at[inside], at[inside]) < one.lead
        whole = inferences.ints("enqueue_end_ns")[one.rows[inside]] <= ends[at[inside]]
        counts = np.isin(inside, one.counting) & ~first & whole
        kept.append(one.rows[inside])
        phase.append(dict(enumerate(one.phase[inside].tolist())))
        numbers.append(int(inferences.ints("thread")[one.rows[0]]))
        weights.append(_weights(one, inside, counts))
        took = np.diff(gpu_end[one.rows], prepend=0)
        weight = np.array([*weights[-1].values()])
        shares.append(share)
        rate += (
            share
            * float(weight.sum())
            / max(float((took[inside[[*weights[-1]]]] * weight).sum()), 1.0)
            if len(weight)
            else 0.0
        )
        rate_of_all += (
            share * len(one.counting) / max(float(took[one.counting].sum()), 1.0)
            if len(weight)
            else 0.0
        )
    if not any(weights):
        return NoWindow(
            "no {:inference} after the warm-up is enqueued wholly within a stretch that can be"
            " replayed"
        )
    notes = tuple(dict.fromkeys(note for one in threads for note in one.notes))
    a_pass = inferences_a_pass(main.like)
    window = Window(
        *home,
        tuple(numbers),
        tuple(kept),
        tuple(weights),
        begins,
        ends,
        tuple(phase),
        tuple(shares),
        a_pass,
        notes,
        rate / rate_of_all,
        *(
            _work_of(
                inferences,
                [one.rows[part] for one, part in zip(threads, parts, strict=True)],
                zip(kept, weights, strict=True),
            )
            for parts in ([one.alike for one in threads], [one.counting for one in threads])
        ),
    )
    foreign = _foreign_share(trace, window)
    if foreign > _FOREIGN_BUSY:
        return NoWindow(
            f"another process kept GPU {home[1]} busy for {foreign:.0%} of the time: the delays it"
            " caused cannot be separated"
        )
    return window


def _work_of(
    inferences: Table,
    all_of: Sequence[IntArray],
    replayed: Iterable[tuple[IntArray, Mapping[int, float]]],
) -> float:
    """How much longer the GPU works per inference on average in all of these (rows of each thread)
    than in the replayed ones: its clocks differ in other parts of the run, and so does its work
    where inferences take much longer, or ever less.
    """
    busy = inferences.ints("gpu_busy_ns")
    alike = np.concatenate([busy[rows] for rows in all_of])
    work, number = 0.0, 0.0
    for rows, weights in replayed:
        work += sum(float(busy[rows[place]]) * weight for place, weight in weights.items())
        number += sum(weights.values())
    if (alike == MISSING).any() or work <= 0:
        return 1.0
    return float(alike.mean()) * number / work


def _present(inferences: Table, threads: Sequence[_Thread]) -> list[float]:
    """For each thread: the share of the time with counted inferences on any thread in which this
    thread runs one.
    """
    end = inferences.ints("gpu_end_ns")
    spans = [(end[one.rows[one.counting - 1]], end[one.rows[one.counting]]) for one in threads]
    whole = union_ns(*(np.concatenate(ends) for ends in zip(*spans, strict=True)))
    return [union_ns(*span) / max(whole, 1) for span in spans]


def _stretches(inferences: Table, thread: _Thread) -> IntArray:
    """First and last position of each stretch; the first positions only precede the counted ones
    (`_Thread.lead`).
    """
    usual = int(
        np.bincount(
            np.maximum(inferences.ints("kernels")[thread.rows[thread.counting]], 0)
        ).argmax()
    )
    most = max(4, min(REPLAYED, _MOST_KERNELS // max(usual, 1)))
    counting = thread.counting
    wanted = np.zeros(len(thread.rows), np.bool_)
    if len(counting) <= most:
        wanted[counting] = True
    else:
        in_phases = [
            counting[thread.phase[counting] == one]
            for one in distinct(thread.phase[counting]).tolist()
        ]
        third = max(most // 3 // len(in_phases), _RARE)
        for mine in in_phases:
            middle = max(len(mine) - third, 0) // 2
            for first in (0, middle, max(len(mine) - third, 0)):
                wanted[mine[first : first + third]] = True
        for one in np.unique(thread.kind[counting]).tolist():
            mine = counting[thread.kind[counting] == one]
            lacking = _RARE - int(np.count_nonzero(wanted[mine]))
            if lacking > 0:
                wanted[mine[-_RARE:]] = True
    for _ in range(thread.lead):
        wanted[:-1] |= wanted[1:]  # each with those before it
    at = np.flatnonzero(wanted)
    breaks = np.flatnonzero(np.diff(at) > 1)
    return np.stack(
        [at[np.concatenate([[0], breaks + 1])], at[np.concatenate([breaks, [len(at) - 1]])]], axis=1
    )


def _weights(thread: _Thread, inside: IntArray, counts: BoolArray) -> dict[int, float]:
    """How many inferences of the thread each counted position represents: those of its kind,
    divided evenly.
    """
    result: dict[int, float] = {}
    kind = thread.kind[inside]
    for one in np.unique(kind[counts]).tolist():
        mine = np.flatnonzero(counts & (kind == one))
        every = np.count_nonzero(thread.kind[thread.counting] == one)
        result.update(dict.fromkeys(mine.tolist(), every / len(mine)))
    return result


def _foreign_share(trace: Trace, window: Window) -> float:
    """The share of the window in which the device ran work of another process."""
    parts = [[np.zeros(0, np.int64)] * 2]
    for table in gpu_work(trace):
        there = table.take(window.touching(table))
        foreign = (there.ints("device") == window.device) & (
            there.ints("process") != window.process
        )
        parts.append([there.ints(name)[foreign] for name in ("start_ns", "end_ns")])
    start, end = (np.concatenate(times) for times in zip(*parts, strict=True))
    busy = covered(start, end, within=(window.begin_ns, window.end_ns))
    return float(busy.sum()) / max(float((window.end_ns - window.begin_ns).sum()), 1.0)
