"""The slowest inference: what it waited for, how much of that was at once, and whether it had
passed before it began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nsysmap.answer.kernel_sequences import what_differs
from nsysmap.answer.model import WORK, Slowest, Wait
from nsysmap.core.intervals import covered, union_ns
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.trace.inferences.steady import OUTLIER, in_loops

_LEAST_PART = 0.1  # of what it took longer; less is not told
_LEAST_KIND = 0.01  # of the time of all repetitions, each taken as long as its kind usually takes


def slowest(tables: Mapping[str, Table]) -> Slowest | None:
    """The steady-state inference that took longest beside the median of its kind; None if no three
    are of one kind.
    """
    times = tables["inference_times"]
    longer_by = times.floats("times_median")
    # neither unknown nor 0: in a damaged capture all may have taken no time
    times = times.take(~np.isnan(longer_by) & (longer_by != 0))
    alike, number = np.unique(times.ints("group_id"), return_counts=True)
    # the median of two lies between them: none of both is usual
    times = times.take(np.isin(times.ints("group_id"), alike[number > 2]))
    if len(alike) > 1:
        times = _without_begins(tables, _of_much_time(tables, times))
        times = _without_pauses(tables, times)
    if not len(times):
        return None
    worst = _row(times, int(np.argmax(times.floats("times_median"))))
    kind = times.take(times.ints("group_id") == worst.integer("group_id"))
    inferences = kind.ints("inference")
    usual = _row(kind, int(np.flatnonzero(inferences == worst.integer("usual"))[0]))
    before = kind.floats("times_median")[inferences < worst.integer("inference")]
    mine, other = (_span(tables, row) for row in (worst, usual))
    more = _more(tables["gaps"], mine, other)
    longer = worst.integer("time_ns") - usual.integer("time_ns")
    later = (mine.began_ns - mine.start_ns) - (other.began_ns - other.start_ns)
    return Slowest(
        worst.integer("inference"),
        mine.engine,
        worst.integer("time_ns"),
        worst.real("times_median"),
        usual.integer("inference"),
        usual.integer("time_ns"),
        tuple((what, ns) for what, ns in more if ns > _LEAST_PART * longer),
        early=worst.real("times_median") >= OUTLIER and bool((before >= OUTLIER).all()),
        later=2 * later > longer > 0,
        artefact=any(what == "profiler" and 2 * ns > longer for what, ns in more),
        device=mine.device if len(np.unique(tables["inferences"].ints("device"))) > 1 else None,
        kind=_kind_of(tables, worst.integer("group_id")) if len(alike) > 1 else "",
        longest=_longest_wait(
            tables, mine, next((what for what, ns in more if what != WORK and ns > 0), None), longer
        ),
        whose=_whose(tables, worst.integer("group_id")) if len(alike) > 1 else "",
    )


def _row(table: Table, at: int) -> Row:
    return table.part(at, at + 1).only()


def _of_much_time(tables: Mapping[str, Table], times: Table) -> Table:
    """These rows of INFERENCE_TIMES without the kinds of repetitions that take next to nothing of
    the time: pieces between the turns of others, whatever one of them waited for.
    """
    inferences = tables["inferences"]
    at = np.searchsorted(inferences.ints("inference"), times.ints("inference"))
    marked = ~inferences.text("found_by").equals("period")[at]
    _, kind = np.unique(times.ints("group_id"), return_inverse=True)
    usual = times.ints("time_ns") / np.maximum(times.floats("times_median"), 1e-9)
    took = np.bincount(kind, weights=usual)
    return times.take(marked | (took >= _LEAST_KIND * took.sum())[kind])


def _without_begins(tables: Mapping[str, Table], times: Table) -> Table:
    """These rows of INFERENCE_TIMES without the outliers with which a later phase of a run begins:
    a pause before it, and its warm-up.
    """
    groups = {
        row.integer("group_id"): (row.integer("loop_id"), row.maybe_integer("phase"))
        for row in tables["inference_groups"]
    }
    kept, previous, begins = list[int](), dict[int, int](), dict[int, bool]()
    order = np.argsort(times.ints("inference"), kind="stable").tolist()
    group, longer_by = times.ints("group_id").tolist(), times.floats("times_median").tolist()
    for row in order:
        loop, phase = groups.get(group[row], (0, None))
        if phase is None:
            kept.append(row)
            continue
        if previous.get(loop, phase) != phase:
            begins[loop] = True
        previous[loop] = phase
        begins[loop] = begins.get(loop, False) and longer_by[row] >= OUTLIER
        if not begins[loop]:
            kept.append(row)
    return times.take(np.array(kept, np.int64))


def _without_pauses(tables: Mapping[str, Table], times: Table) -> Table:
    """These rows of INFERENCE_TIMES without the repetitions that follow one of another kind and
    are long only by the pause before them: it lies between two loops, or two turns of an outer one.
    """
    inferences = tables["inferences"]
    loops = in_loops(inferences)
    before = np.full(len(inferences), MISSING, np.int64)
    follows = loops.loop[loops.order[1:]] == loops.loop[loops.order[:-1]]
    before[loops.order[1:][follows]] = loops.order[:-1][follows]
    at = np.searchsorted(inferences.ints("inference"), times.ints("inference"))
    sequence, start = inferences.ints("kernel_sequence"), inferences.ints("gpu_start_ns")
    other = (before[at] != MISSING) & (sequence[np.maximum(before[at], 0)] != sequence[at])
    other &= inferences.text("found_by").equals("period")[at]
    paused = np.maximum(start[at] - loops.end_ns[np.maximum(before[at], 0)], 0)
    usual = times.ints("time_ns") / np.maximum(times.floats("times_median"), 1e-9)
    alone = times.ints("time_ns") - paused < OUTLIER * usual
    return times.take(~(other & alone & (times.floats("times_median") >= OUTLIER)))


def _kind_of(tables: Mapping[str, Table], group: int) -> str:
    """What distinguishes a group of inferences from the others of its loop and engine, whatever
    their phases.
    """
    groups = list(tables["inference_groups"])
    own = next(row for row in groups if row.integer("group_id") == group)
    alike = [row for row in groups if all(row[name] == own[name] for name in ("engine", "loop_id"))]
    alike = [row for row in alike if row.integer("steady") and not row.maybe_integer("phase")]
    told = what_differs(tables, alike)
    return next(
        (
            told[row.integer("group_id")].words
            for row in alike
            if row["kernel_sequence"] == own["kernel_sequence"] and row.integer("group_id") in told
        ),
        "",
    )


def _whose(tables: Mapping[str, Table], group: int) -> str:
    """Which inferences the median of a group is taken over: a phase, or one of several threads on
    its GPU.
    """
    own = next(row for row in tables["inference_groups"] if row.integer("group_id") == group)
    if own.maybe_integer("phase") is not None:
        return "its phase"
    homes = {
        row.integer("loop_id"): (row.integer("pid"), row.maybe_integer("device"))
        for row in tables["inference_loops"]
    }
    return "its thread" if list(homes.values()).count(homes[own.integer("loop_id")]) > 1 else ""


@dataclass(frozen=True)
class _Span:
    """From the end of the previous inference to the inference's own end."""

    engine: int | None
    device: int | None
    start_ns: int
    began_ns: int  # when it was enqueued
    end_ns: int


def _span(tables: Mapping[str, Table], row: Row) -> _Span:
    own = (
        tables["inferences"]
        .take(tables["inferences"].ints("inference") == row.integer("inference"))
        .only()
    )
    end_ns = own.maybe_integer("gpu_end_ns") or own.integer("end_ns")
    start_ns = end_ns - row.integer("time_ns")
    return _Span(
        own.maybe_integer("engine"),
        own.maybe_integer("device"),
        start_ns,
        max(own.integer("start_ns"), start_ns),
        end_ns,
    )


def _more(gaps: Table, mine: _Span, other: _Span) -> list[tuple[str, int]]:
    """How much more of its time each cause of idle time has than in the other, and the GPU's work;
    they add up to the difference.
    """
    cause = gaps.text("cause")
    here = (
        np.ones(len(gaps), np.bool_) if mine.device is None else gaps.ints("device") == mine.device
    )
    ends = np.array([mine.start_ns, other.start_ns]), np.array([mine.end_ns, other.end_ns])
    found = []
    for name in cause.values:
        rows = np.flatnonzero(here & cause.equals(name))
        own, usual = covered(gaps.ints("start_ns")[rows], gaps.ints("end_ns")[rows], ends).tolist()
        found.append((name, own - usual))
    longer = (mine.end_ns - mine.start_ns) - (other.end_ns - other.start_ns)
    found.append((WORK, longer - sum(ns for _, ns in found)))
    return sorted(found, key=lambda one: -one[1])


def _longest_wait(
    tables: Mapping[str, Table], own: _Span, cause: str | None, longer: int
) -> Wait | None:
    """The longest idle interval of the cause that grew most, if that cause accounts for more than
    half of the extra time.
    """
    gaps, calls = tables["gaps"], tables["api_calls"]
    if cause is None:
        return None
    mine = (
        gaps.text("cause").equals(cause)
        & (gaps.ints("start_ns") < own.end_ns)
        & (gaps.ints("end_ns") > own.start_ns)
    )
    if own.device is not None:
        mine &= gaps.ints("device") == own.device
    rows = np.flatnonzero(mine)
    if not len(rows):
        return None
    longest = gaps.take(rows[[np.argmax(gaps.ints("dur_ns")[rows])]]).only()
    if 2 * longest.integer("dur_ns") <= longer:
        return None
    thread, begin, finish = (
        longest.maybe_integer("thread"),
        longest.integer("start_ns"),
        longest.integer("end_ns"),
    )
    if thread is None or not len(calls):
        return Wait(longest.integer("dur_ns"), None)
    called = np.flatnonzero(
        (calls.ints("thread") == thread)
        & (calls.ints("start_ns") < finish)
        & (calls.ints("end_ns") > begin)
    )
    start, stop = (calls.ints(name)[called] for name in ("start_ns", "end_ns"))
    left, right, ns = np.maximum(start, begin), np.minimum(stop, finish), longest.integer("dur_ns")
    waited = Wait(ns, union_ns(left, right))
    if not len(called) or 2 * int((right - left).max()) <= ns:
        return waited
    most = int(np.argmax(right - left))
    call = calls.text("api").take(called[most : most + 1]).list()[0] or "CUDA call"
    return replace(
        waited,
        call=call,
        in_call_ns=int(right[most] - left[most]),
        call_ns=int(stop[most] - start[most]),
    )
