"""The time per inference of one capture without the profiler: where it went, its range and its
noise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nsysmap.comparison.noise import Mean, mean_of, run_to_run
from nsysmap.comparison.shares import (
    Kinds,
    idle_of,
    idle_of_replay,
    kernel_rows,
    kernel_sums,
    known_device,
    recorded_works,
    replayed_works,
    spent,
)
from nsysmap.core.groups import by_first_row
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.intervals import union_ns
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, IntArray, Table
from nsysmap.timing.device_times import hides_work
from nsysmap.timing.idle.causes import CAUSES
from nsysmap.timing.idle.replayed import Idle
from nsysmap.whatif.model import regression_slope

HOST_CAUSES = tuple(cause.name for cause in IDLE_CAUSES.values() if cause.depends_on_host)
"""Causes of idle time that depend on the speed of the host."""

HELD_UP = 1.5
"""An inference that took this many times the median of its kind was held up and is not counted, as
in what-if.
"""
# … or one this many median absolute deviations above the median, if the times are close together
_FAR = 10.0
_CLOSE = 0.01
"""Share of the median: times this near to each other never make another one an outlier."""
_FEW_REPLAYED = 3  # of fewer inferences no spread is known
HIDDEN_COST = 0.06
"""What tracing whole graphs is assumed to add to a time at most, as a share of it: 10 of 290 µs per
replay in the one capture that was also timed without the profiler.  Nothing in such a trace shows
it, so no time without the profiler is told for it: its time is as recorded, with this range below.
"""
HIDDEN_COST_WORDS = f"0 to {100 * HIDDEN_COST:.0f} %"


@dataclass(frozen=True)
class Pace:
    """Time per inference, in nanoseconds, of the loop with the most inferences in a capture; NaN or
    empty if there is none.
    """

    kinds: Kinds
    process: int
    device: int
    threads: int
    # number of captures it averages; of several, `weight`, `kernels` and the noise are per run
    runs: int
    inferences: IntArray  # the counted ones, in chronological order
    held_up: int  # number of others that were held up
    held_up_ns: float  # what these would add to the mean as recorded
    weight: FloatArray  # weight of each; the sum is 1
    recorded: float  # mean
    # without the profiler; as recorded if `profiled` gives a reason, or if `hidden`
    likely: float
    quick: float  # the same on a faster host and driver, and on a slower one
    slow: float
    profiled: str  # why the profiler's overhead could not be subtracted; empty if it was
    # CUDA graphs were traced as a whole: little overhead, and their contents are unknown
    hidden: bool
    noise: Mean  # of `likely`
    recorded_noise: Mean  # of `recorded`
    parts: FloatArray  # parts of `likely`, by column of `kinds`; they add up to it
    recorded_parts: FloatArray
    kernels: FloatArray  # kernel time per inference (row) and layer (column), as recorded
    kernel_excess: FloatArray  # the profiler's overhead in a layer's kernels, per inference
    steady_span_ns: tuple[int, int]

    @property
    def known(self) -> bool:
        """Whether there is a time."""
        return not math.isnan(self.likely)

    @property
    def run_to_run(self) -> float:
        """How much another capture of the same program may differ; 0 if several runs measure
        that.
        """
        host = float(self.parts[[self.kinds.idle(cause) for cause in HOST_CAUSES]].sum())
        return run_to_run(self.likely, host) if self.runs == 1 and self.known else 0.0


def pace_of(tables: dict[str, Table], *, device: int | None = None) -> Pace:
    """The pace of a capture, or of one GPU of it (``device``), from the tables of its analysis."""
    kinds = Kinds(len(tables["layers"]))
    home = _home(tables, device)
    if home is None:
        return _nothing(kinds)
    process, gpu = home[0], known_device(tables, *home)
    replayed = tables["replayed_inferences"]
    loops = _loops(tables, home)
    idle = idle_of(tables["gaps"], gpu, kinds)
    works = recorded_works(tables, gpu, process, kinds)
    replayed_at = {
        int(number): row for row, number in enumerate(replayed.ints("inference").tolist())
    }
    found = [
        _loop(loop, spent(works, idle, loop.begin_ns, loop.end_ns, kinds), replayed_at)
        for loop in loops
    ]
    if not found:
        return _nothing(kinds)
    without = (
        _replayed_parts(tables, idle, replayed, kinds)
        if all(len(one.replayed) for one in found)
        else None
    )
    estimates = [_estimate(one, replayed, without, kinds) for one in found]
    present = _present(loops)
    likely = _together([one.likely for one in estimates], present)
    hidden = without is None and tables["capture"].only().text("cuda_graph_trace") == "graph"
    if hides_work(tables["capture"]) and hidden:
        for one in estimates:  # nothing separates work from idle time
            one.parts[kinds.hidden] += one.parts[kinds.idle("unknown")]
            one.parts[kinds.idle("unknown")] = 0.0
    weights = _weights([one.likely for one in estimates], present)
    recorded_weights = _weights([one.recorded for one in estimates], present)
    counted = np.concatenate([one.loop.inferences[one.loop.counts] for one in found])
    weight = np.concatenate([one.loop.weights_of_all() for one in found]) / len(found)
    counted, weight = counted[np.argsort(counted)], weight[np.argsort(counted)]
    kernels = kernel_sums(tables["kernels"], counted, kinds)
    recorded = _together([one.recorded for one in estimates], present)
    lasts = [one.loop for one in found]
    pace = Pace(
        kinds=kinds,
        process=process,
        device=gpu,
        threads=len(found),
        runs=1,
        inferences=counted,
        held_up=sum(int(np.count_nonzero(one.loop.held)) for one in found),
        held_up_ns=sum(
            weight * one.held_up_ns for weight, one in zip(weights, estimates, strict=True)
        ),
        weight=weight,
        recorded=recorded,
        likely=likely,
        quick=(
            likely * (1 - HIDDEN_COST)
            if hidden
            else _together([one.quick for one in estimates], present)
        ),
        slow=_together([one.slow for one in estimates], present),
        hidden=hidden,
        profiled="" if without is not None or hidden else _why_profiled(tables),
        noise=_pooled([one.noise for one in estimates], likely, present),
        recorded_noise=_pooled([one.recorded_noise for one in estimates], recorded, present),
        parts=np.sum(
            [weight * one.parts for weight, one in zip(weights, estimates, strict=True)], axis=0
        ),
        recorded_parts=np.sum(
            [
                weight * one.recorded_parts
                for weight, one in zip(recorded_weights, estimates, strict=True)
            ],
            axis=0,
        ),
        kernels=kernels,
        kernel_excess=(
            _excess(tables, replayed, kinds) * (weight @ (kernels > 0))
            if without is not None
            else np.zeros(kinds.layers)
        ),
        steady_span_ns=(
            min(int(one.begin_ns[0]) for one in lasts),
            max(int(one.end_ns[-1]) for one in lasts),
        ),
    )
    return pace if without is None else _as_predicted(pace, tables["whatif"])


def _as_predicted(pace: Pace, whatif: Table) -> Pace:
    """The pace with the time without the profiler, and its range, that what-if starts from: every
    page shows that one figure.

    What-if has the same estimator, over inferences that it finds held up by a rule of its own.
    """
    row = next((row for row in whatif if row.maybe_integer("before_ns")), None)
    if row is None:
        return pace
    likely, quick, slow = (
        row.integer(f"{end}before_ns") / row.integer("inferences") for end in ("", "low_", "high_")
    )
    factor = likely / pace.likely
    noise = replace(
        pace.noise, value=likely, error=pace.noise.error * factor, drift=pace.noise.drift * factor
    )
    return replace(
        pace, likely=likely, quick=quick, slow=slow, parts=pace.parts * factor, noise=noise
    )


def _nothing(kinds: Kinds) -> Pace:
    nan, empty = math.nan, np.zeros(0)
    mean = Mean(nan, nan, 0.0, 0, 0.0, 0.0)
    none = np.zeros(kinds.count)
    return Pace(
        kinds=kinds, process=0, device=0, threads=0, runs=1, inferences=np.zeros(0, np.int64),
        held_up=0, held_up_ns=0.0, weight=empty,
        recorded=nan, likely=nan, quick=nan, slow=nan,
        profiled="no two consecutive inferences were recognised", hidden=False, noise=mean,
        recorded_noise=mean, parts=none, recorded_parts=none, kernels=np.zeros((0, kinds.layers)),
        kernel_excess=np.zeros(kinds.layers),
        steady_span_ns=(0, 0),
    )  # fmt: skip


# --- which inferences
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Loop:
    """The inferences of one thread on the device, each from the end of the previous one to its own
    end, in order.
    """

    inferences: IntArray
    begin_ns: IntArray
    end_ns: IntArray
    counts: IntArray  # positions of the counted ones
    held: IntArray  # positions of those that were held up
    group: IntArray  # the kind of each inference
    a_pass: int  # inferences per pass: kinds that take turns in a fixed order

    def weights(self, places: IntArray) -> FloatArray | None:
        """The weights of these inferences, so that each kind has its share of a pass; None if a
        kind has no inferences among them.
        """
        kinds, count = np.unique(self.group[self.counts], return_counts=True)
        share = np.rint(count / count.sum() * self.a_pass) / self.a_pass
        result = np.zeros(len(places))
        for kind, part in zip(kinds.tolist(), share.tolist(), strict=True):
            mine = self.group[places] == kind
            if not mine.any():
                return None
            result[mine] = part / np.count_nonzero(mine)
        return result / result.sum() if result.sum() > 0 else None

    def weights_of_all(self) -> FloatArray:
        """The weights of the counted inferences."""
        even = np.full(len(self.counts), 1 / len(self.counts))
        if self.a_pass == 1:
            return even
        found = self.weights(self.counts)
        return even if found is None else found


def gpu_work_ns(pace: Pace) -> float:
    """The time per inference in which the GPU works, as recorded, not for other processes."""
    kinds = pace.kinds
    return float(pace.recorded_parts[: kinds.idle(CAUSES[0]) - 1].sum())


def _home(tables: dict[str, Table], device: int | None) -> tuple[int, int] | None:
    """Process and device of the replay, otherwise of most of the steady-state inferences, or of
    those on ``device``.
    """
    inferences = tables["inferences"]
    numbers = tables["replayed_inferences"].ints("inference")
    if not len(numbers):
        numbers = tables["inference_times"].ints("inference")
    mine = np.isin(inferences.ints("inference"), numbers)
    rows = np.flatnonzero(mine if device is None else mine & (inferences.ints("device") == device))
    if not len(rows):
        return None
    pairs, count = np.unique(
        np.stack([inferences.ints("process")[rows], inferences.ints("device")[rows]]),
        axis=1,
        return_counts=True,
    )
    process, gpu = pairs[:, int(np.argmax(count))].tolist()
    return int(process), int(gpu)


def _loops(tables: dict[str, Table], home: tuple[int, int]) -> list[_Loop]:
    inferences, times = tables["inferences"], tables["inference_times"]
    number, group, time = (times.ints(name) for name in ("inference", "group_id", "time_ns"))
    usable = time != MISSING
    row_of = {int(one): row for row, one in enumerate(inferences.ints("inference").tolist())}
    at = np.array([row_of[int(one)] for one in number.tolist()], np.int64)
    usable &= (inferences.ints("process")[at] == home[0]) & (
        inferences.ints("device")[at] == home[1]
    )
    gpu_end = inferences.ints("gpu_end_ns")[at]
    end = np.where(gpu_end != MISSING, gpu_end, inferences.ints("end_ns")[at])
    thread = inferences.ints("thread")[at]
    kind = _kinds_of(tables["inference_groups"], group)
    found = []
    for one in np.unique(thread[usable]).tolist():
        rows = np.flatnonzero(usable & (thread == one))
        rows = rows[np.argsort(end[rows], kind="stable")]
        held = np.zeros(len(rows), np.bool_)
        for like in np.unique(group[rows]).tolist():
            mine = group[rows] == like
            held |= mine & (time[rows] > _usual(time[rows][mine]))
        if np.count_nonzero(~held) >= 2:
            begin, stop = end[rows] - time[rows], end[rows]
            loop = _loop_of(tables, int(group[rows[0]]))
            found.append(
                _Loop(
                    number[rows],
                    begin,
                    stop,
                    np.flatnonzero(~held),
                    np.flatnonzero(held),
                    kind[rows],
                    loop,
                )
            )
    return found


def _kinds_of(groups: Table, group: IntArray) -> IntArray:
    """For each of these group_ids the number of its loop, engine and kernel sequence, whatever its
    phase.
    """
    kind = by_first_row(*(groups.ints(name) for name in ("loop_id", "engine", "kernel_sequence")))
    of_group = dict(zip(groups.ints("group_id").tolist(), kind.tolist(), strict=True))
    return np.array([of_group[one] for one in group.tolist()], np.int64)


def _usual(times: IntArray) -> float:
    """The longest time of an inference that was not held up."""
    middle = float(np.median(times))
    apart = max(float(np.median(np.abs(times - middle))), _CLOSE * middle)
    return min(HELD_UP * middle, middle + _FAR * apart)


def _loop_of(tables: dict[str, Table], group: int) -> int:
    """Inferences per pass in the loop to which a group of inferences belongs."""
    groups, loops = tables["inference_groups"], tables["inference_loops"]
    loop = groups.ints("loop_id")[groups.ints("group_id") == group]
    found = loops.ints("inferences_a_pass")[np.isin(loops.ints("loop_id"), loop)]
    return int(found[0]) if len(found) else 1


# --- the estimate
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    """A loop and where its inferences' time went."""

    loop: _Loop
    times: FloatArray  # of the counted ones
    parts: IntArray  # of all, one row per inference
    held_up_ns: float
    replayed: IntArray  # rows of REPLAYED_INFERENCES: counted inferences of this loop
    at: IntArray  # their positions in the loop


def _loop(loop: _Loop, parts: IntArray, replayed_at: dict[int, int]) -> _Measured:
    times = (loop.end_ns - loop.begin_ns).astype(np.float64)
    mean = float(times[loop.counts].mean())
    known = ((place, int(loop.inferences[place])) for place in loop.counts.tolist())
    pairs = [(replayed_at[number], place) for place, number in known if number in replayed_at]
    enough = len(pairs) >= _FEW_REPLAYED
    rows, places = (
        (np.array(side, np.int64) for side in zip(*pairs, strict=True))
        if enough
        else (np.zeros(0, np.int64),) * 2
    )
    return _Measured(loop, times[loop.counts], parts, float(times.mean()) - mean, rows, places)


@dataclass(frozen=True)
class _Estimate:
    recorded: float
    likely: float
    quick: float
    slow: float
    noise: Mean
    recorded_noise: Mean
    parts: FloatArray
    recorded_parts: FloatArray
    held_up_ns: float


@dataclass(frozen=True)
class _Without:
    """The replay without the profiler."""

    # where each replayed inference's time went, by its row in REPLAYED_INFERENCES
    parts: dict[int, FloatArray]
    # how much longer the replay with the profiler is than the trace, as a share
    replay_error: float


def _estimate(one: _Measured, replayed: Table, without: _Without | None, kinds: Kinds) -> _Estimate:
    """A loop's time without the profiler: the mean over the replayed inferences, corrected for how
    these differ from all as recorded.

    This is the classical regression estimator: if two recorded times differ by one nanosecond, the
    replayed ones differ by ``slope``.  The error of the replay with the profiler, against the
    trace, is assumed to be the same without the profiler.
    """
    counts, of_all = one.loop.counts, one.loop.weights_of_all()
    recorded_parts = of_all @ one.parts[counts]
    recorded = float(of_all @ one.times)
    noise = replace(mean_of(_without_turns(one.loop, one.times)), value=recorded)
    if without is None:
        return _Estimate(
            recorded,
            recorded,
            recorded,
            recorded,
            noise,
            noise,
            recorded_parts.copy(),
            recorded_parts,
            one.held_up_ns,
        )
    rows, replay_error = one.replayed, without.replay_error
    weight = one.loop.weights(one.at) if one.loop.a_pass > 1 else None
    if weight is None:
        weight = replayed.floats("weight")[rows] / replayed.floats("weight")[rows].sum()
    likely = (replayed.ints("end_ns") - replayed.ints("begin_ns"))[rows].astype(np.float64)
    quick, slow = (replayed.ints(name)[rows].astype(np.float64) for name in ("quick_ns", "slow_ns"))
    was = (one.loop.end_ns - one.loop.begin_ns)[one.at].astype(np.float64)
    slope = _slope(was, likely, weight)
    shift = slope * (recorded_parts - weight @ one.parts[one.at])
    parts = weight @ np.array([without.parts[int(row)] for row in rows.tolist()]) + shift
    # of the shift: without the profiler there is none
    parts[kinds.idle("launch")] += parts[kinds.idle("profiler")]
    parts[kinds.idle("profiler")] = 0.0
    missed = -replay_error * recorded
    parts[kinds.idle("unknown")] += missed
    mean = float(weight @ likely) + float(shift.sum()) + missed
    rest = likely - slope * was
    rest = rest - rest.mean() if one.loop.a_pass == 1 else _within(rest, one.loop.group[one.at])
    rest_error = float(rest.std(ddof=1)) / math.sqrt(len(rows)) if len(rows) > 1 else 0.0
    error = math.hypot(slope * noise.error, rest_error)
    freedom = (
        error**4
        / ((slope * noise.error) ** 4 / noise.freedom + rest_error**4 / max(len(rows) - 1, 1))
        if error > 0
        else noise.freedom
    )
    return _Estimate(
        recorded=recorded,
        likely=mean,
        quick=mean + float(weight @ (quick - likely)),
        slow=mean + float(weight @ (slow - likely)),
        noise=replace(noise, value=mean, error=error, freedom=freedom, drift=slope * noise.drift),
        recorded_noise=noise,
        parts=_none_negative(parts, kinds),
        recorded_parts=recorded_parts,
        held_up_ns=one.held_up_ns,
    )


def _none_negative(parts: FloatArray, kinds: Kinds) -> FloatArray:
    """The parts with the same sum and none below zero: a deficit is subtracted from idle time in
    proportion, then from everything else.

    The replay differs from the trace in idle time only: its kernels are those of the trace.
    """
    result = np.maximum(parts, 0.0)
    missing = float(result.sum() - parts.sum())
    idle = np.zeros(len(parts), np.bool_)
    idle[[kinds.idle(cause) for cause in CAUSES]] = True
    for these in (idle, ~idle):
        held = float(result[these].sum())
        taken = min(missing, held)
        if taken > 0:
            result[these] *= 1 - taken / held
            missing -= taken
    return result


def _without_turns(loop: _Loop, times: FloatArray) -> FloatArray:
    """The times without the differences between the kinds of a pass: these recur in a fixed order
    and are not noise.
    """
    return times if loop.a_pass == 1 else _within(times, loop.group[loop.counts])


def _within(values: FloatArray, kind: IntArray) -> FloatArray:
    """The values minus the mean of their kind."""
    result = values.copy()
    for one in np.unique(kind).tolist():
        result[kind == one] -= values[kind == one].mean()
    return result


def _slope(was: FloatArray, likely: FloatArray, weight: FloatArray) -> float:
    return regression_slope(was - weight @ was, likely - weight @ likely, weight)


def _replayed_parts(
    tables: dict[str, Table], idle: Idle, replayed: Table, kinds: Kinds
) -> _Without:
    """The parts of each replayed inference's time, and how far the replay is from the trace."""
    works = replayed_works(tables, kinds)
    holes = idle_of_replay(tables, idle, kinds)
    found: dict[int, FloatArray] = {}
    begin, end, thread = (replayed.ints(name) for name in ("begin_ns", "end_ns", "thread"))
    for one in np.unique(thread).tolist():
        rows = np.flatnonzero(thread == one)
        rows = rows[np.argsort(end[rows], kind="stable")]
        parts = spent(works, holes, begin[rows], end[rows], kinds).astype(np.float64)
        found.update(zip(rows.tolist(), parts, strict=True))
    errors = tables["whatif"].floats("replay_error")
    errors = errors[~np.isnan(errors)]
    return _Without(found, float(errors[0]) if len(errors) else 0.0)


def _excess(tables: dict[str, Table], replayed: Table, kinds: Kinds) -> FloatArray:
    """How much longer each layer's kernels took as recorded than in the replay, per replayed
    inference in which it ran.
    """
    work, kernels = tables["replayed_work"], tables["kernels"]
    rows = np.flatnonzero(work.text("kind").equals("kernel") & (work.ints("kernel_id") != MISSING))
    kernel = kernel_rows(kernels, work.ints("kernel_id")[rows])
    wanted = np.isin(kernels.ints("inference")[kernel], replayed.ints("inference")) & (
        kernels.ints("layer_id")[kernel] >= 0
    )
    rows, kernel = rows[wanted], kernel[wanted]
    longer = (
        work.ints("recorded_end_ns")
        - work.ints("recorded_start_ns")
        - work.ints("end_ns")
        + work.ints("start_ns")
    )[rows]
    layer = kernels.ints("layer_id")[kernel]
    result = np.zeros(kinds.layers)
    np.add.at(result, layer, longer.astype(np.float64))
    pairs = np.unique(np.stack([layer, kernels.ints("inference")[kernel]]), axis=1)
    return result / np.maximum(np.bincount(pairs[0], minlength=kinds.layers), 1)


def _why_profiled(tables: dict[str, Table]) -> str:
    reasons = [
        reason
        for row in tables["whatif"]
        if row.text("answer") == "cannot-tell" and (reason := row.maybe_text("reason"))
    ]
    return (
        max(set(reasons), key=reasons.count)
        if reasons
        else "too few of its inferences were replayed"
    )


def _present(loops: list[_Loop]) -> list[float]:
    """For each thread: the share of the time with inferences on any thread in which this thread
    runs one.
    """
    whole = (
        union_ns(
            *(
                np.concatenate([getattr(one, end) for one in loops])
                for end in ("begin_ns", "end_ns")
            )
        )
        if loops
        else 0
    )
    return [int((one.end_ns - one.begin_ns).sum()) / max(whole, 1) for one in loops]


def _together(each: list[float], present: list[float]) -> float:
    """Wall time per inference of several threads."""
    return 1.0 / sum(share / one for one, share in zip(each, present, strict=True))


def _weights(each: list[float], present: list[float]) -> list[float]:
    """Factors by which the threads' times add up to the time of all together."""
    together = _together(each, present)
    return [together * share / one / sum(present) for one, share in zip(each, present, strict=True)]


def _pooled(noises: list[Mean], likely: float, present: list[float]) -> Mean:
    """The noise of the time of all threads: each thread's weighted by the square of its share of
    the rate.
    """
    if len(noises) == 1:
        return noises[0]
    weights = [
        share * (likely / one.value) ** 2 for one, share in zip(noises, present, strict=True)
    ]
    return Mean(
        likely,
        math.sqrt(
            sum((weight * one.error) ** 2 for weight, one in zip(weights, noises, strict=True))
        ),
        min(one.freedom for one in noises),
        sum(one.count for one in noises),
        sum(one.effective for one in noises),
        sum(weight * one.drift for weight, one in zip(weights, noises, strict=True)),
    )
