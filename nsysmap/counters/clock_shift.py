"""Finds the difference between the sampler's clock and the kernels' clock from the trace itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.odds import ExplainedSamples, explained, less_likely, likely, spread
from nsysmap.counters.part_rates import Fit, State, Sums, fit_rates, quick_factor, quick_misfit
from nsysmap.counters.problem import (
    FAR_SAMPLES,
    PARTS_PER_SAMPLE,
    TOGETHER,
    at_once,
    coarse_enough,
    in_sequence_order,
)
from nsysmap.counters.ring import Gram
from nsysmap.counters.series import ROUNDED2
from nsysmap.counters.shares import (
    BusyTime,
    ColumnLayout,
    KernelParts,
    Shares,
    blurred,
    busy_time,
    by_company,
    change_in,
    gram,
    overlapping,
    parts_of,
    shares_in,
    touched,
)

_FEWEST_SAMPLES = 50  # of fewer the offset would follow their noise
_STRETCHES = 8  # that the search looks at, spread over the run
# share of the best agreement: sequences repeat, and the smallest offset with as good an agreement
# is taken
_ALIKE = 0.97
_LAGS = np.arange(-2 * FAR_SAMPLES, 2 * FAR_SAMPLES + 1)  # half samples
# offsets that are looked at more closely: in simulations the right one was always among the best
# three
_MOST_PEAKS = 3
# correlation of activity and busy time below which busy time does not determine the offset
_AGREES = 0.15
# residual standard deviation relative to the samples', in the metric explained best: above this the
# rates explain nothing
_EXPLAINED = 0.8
_COARSE = 0.1  # of a sample's length: the steps of the search, one length in either direction …
# … or this, if it is shorter: with many samples, offsets half a µs apart can be distinguished
_NEAR_NS = 500.0
_MANY = 50  # steps: the first look then takes some at once, of kernels about as long
_AT_ONCE = 4  # of those steps
# samples per stretch used by the search for a drift, and by the last look of the search for an
# offset
_QUICK = 800
# … and by looks before that, with longer parts: they leave so many offsets, not less probable by
# this power of e
_FIRST = 200
_MOST_HOPEFUL = 12  # offsets that are looked at closely
_HOPELESS = 10.0  # natural logarithm of odds: 22,000 to 1 against it
_BESIDE_SAMPLES = 3  # the first search moves samples by less than that many of their lengths
# parts are coarser than those of the estimate: whole kernels determine the offset …
_SHORTEST_PART_NS = 1000.0
# … but their blocks start and end within µs: with parts of a quarter of a sample, another kernel's
# begin, 2 µs
_LONGEST_PART_NS = 1500.0
# away, explained samples at 10 kHz better (against the same programs at 200 kHz, 2 of 5 networks on
# an H100)
_FEWEST_PARTS = 3
_FINE_NS = 20.0  # a smaller move of the offset ends the search …
# half of all offsets are smaller (a Cauchy prior); on an H100 they were -14 to -452 ns at 200 to 10
# kHz
_USUAL_NS = 500.0
_MOST_MOVES = 12  # of the search before it stops where it is
_SEARCHES = 3  # each from where the one before it ended
# standard deviation of one kernel's timestamps, which are on ticks of 32 ns
_TICK_NS = 32.0 / 12.0**0.5
_CERTAIN = 4.0  # ratio to its error: a smaller drift counts as none
_LEAST_BENT = 0.2  # share of the curvature without misfits: no less is taken
_CLOSE = 0.25  # … as does this share of its error
_FAR = 8.0  # ratio to the usual deviation of samples of the same kernels: excluded …
_LOOKS = 3  # … in at most this many rounds


@dataclass(frozen=True)
class _Stretch:
    """Samples of one part of the run."""

    start_ns: IntArray
    end_ns: IntArray
    values: FloatArray

    @property
    def standard(self) -> FloatArray:
        """The metrics' samples around their means, of length 1; 0 if one does not change."""
        apart = self.values - self.values.mean(axis=1, keepdims=True)
        length = np.sqrt((apart**2).sum(axis=1, keepdims=True))
        standard: FloatArray = np.divide(apart, length, out=np.zeros_like(apart), where=length > 0)
        return standard

    def begin(self, samples: int) -> _Stretch:
        """The begins of that many of its samples."""
        return _Stretch(self.start_ns[:samples], self.end_ns[:samples], self.values[:, :samples])


@dataclass(frozen=True)
class _Scene:
    """Samples of some stretches, one after another, and the work around them."""

    start_ns: IntArray
    end_ns: IntArray
    values: FloatArray
    stretch: IntArray
    work: GpuRan
    parts: KernelParts

    def at(self, shift: Shift, left_out: BoolArray | None = None) -> _ShiftedSamples:
        """The samples with their clock shifted, without those left out."""
        start, end = shift.moved(self.start_ns), shift.moved(self.end_ns)
        used = ~touched(self.work, self.work.group < 0, start, end)
        if left_out is not None:
            used &= ~left_out
        shares = shares_in(self.parts, start, end).kept(used)
        return _ShiftedSamples(self.values, used, shares, gram(shares))

    def places(self, shift: Shift) -> IntArray:
        """The column of the part that runs, or ran last, where each sample begins, plus 1; 0 for
        none.
        """
        work, layout = self.work, self.parts.layout
        begin = shift.moved(self.start_ns)
        row = np.searchsorted(work.start_ns, begin, "right") - 1
        group = work.group[row]
        done = (begin - work.start_ns[row]) / np.maximum(work.end_ns[row] - work.start_ns[row], 1)
        part = np.clip(done * layout.parts[group], 0, layout.parts[group] - 1).astype(np.int64)
        return np.where((row >= 0) & (group >= 0), layout.first[group] + part, -1) + 1

    @property
    def kernel(self) -> IntArray:
        """The group of each place, plus 1; 0 for none."""
        layout = self.parts.layout
        return np.append(0, np.repeat(np.arange(layout.groups) + 1, layout.parts))

    def explained(self, looked: _ShiftedSamples, like: Fit, place: IntArray) -> ExplainedSamples:
        """How well rates explain these samples."""
        return explained(looked.values, looked.shares, looked.sums(), like, place)

    def plainest(self, like: Fit) -> tuple[_Scene, Fit]:
        """The metric that rates explain best, alone, and its fit."""
        row = int(np.argmin(like.noise / np.maximum(self.values.std(axis=1), 1e-12)))
        some = slice(row, row + 1)
        return replace(self, values=self.values[some]), replace(
            like, noise=like.noise[some], stiffness=like.stiffness[some]
        )

    def pulled(self, shift: Shift, left_out: BoolArray, like: Fit) -> _Pulled:
        """The offset that the samples suggest from a given one (Gauss-Newton: rates and the offset
        together are fitted to what is left).
        """
        looked = self.at(shift, left_out)
        factor = quick_factor(sums := looked.sums(), like)
        rates = factor.solve(sums.target)
        change = change_in(self.parts, shift.moved(self.start_ns), shift.moved(self.end_ns)).kept(
            looked.used
        )
        moved = np.stack([change.applied(row) for row in rates])
        # change of the rates
        follows = factor.solve(np.stack([looked.shares.gathered(row) for row in moved]))
        alone = np.where(
            looked.used, moved - np.stack([looked.shares.applied(row) for row in follows]), 0.0
        )
        left = np.where(
            looked.used,
            looked.values - np.stack([looked.shares.applied(row) for row in rates]),
            0.0,
        )
        weight = 1.0 / like.noise[:, None] ** 2
        return _Pulled(
            moved * left * weight, moved**2 * weight, (moved * alone * weight).sum(axis=1)
        )


@dataclass(frozen=True)
class _Pulled:
    """What the samples indicate about the offset."""

    # derivative of the logarithm of the likelihood by the offset in ns: [metric, sample]
    score: FloatArray
    alone: FloatArray  # minus its second derivative, if the rates do not follow: [metric, sample]
    certainty: FloatArray  # minus its second derivative, if they do: [metric]


@dataclass(frozen=True)
class _ShiftedSamples:
    """Samples at one shift, prepared for the fit."""

    values: FloatArray
    used: BoolArray
    shares: Shares
    matrix: Gram

    def without(self, some: BoolArray) -> _ShiftedSamples:
        """The evidence without these samples."""
        shares = self.shares.kept(~some)
        return _ShiftedSamples(self.values, self.used & ~some, shares, gram(shares))

    def sums(self) -> Sums:
        """The normal equations of the metrics' samples."""
        used = self.values[:, self.used]
        target = np.stack([self.shares.gathered(row) for row in self.values])
        rounding2 = np.where((used == np.round(used)).all(axis=1), ROUNDED2, 0.0)
        return Sums(self.matrix, target, (used**2).sum(axis=1), used.shape[1], rounding2)


def clock_shift(samples: Samples, work: GpuRan, activity: tuple[int, ...]) -> Shift | None:
    """The shift with which the samples fit the kernels best; None if nothing in the samples follows
    the kernels.

    ``activity`` are the rows of the metrics that are 0 while no kernel runs: SMs active, warps in
    flight, instructions issued.
    """
    stretches = _stretches(samples, work, activity) if activity else []
    if not stretches:
        return None
    origin = float(np.mean([float(each.start_ns.mean()) for each in stretches]))
    margin = (FAR_SAMPLES + 1) * samples.period_ns
    begins, ends = (
        np.array([each.start_ns[0] for each in stretches]),
        np.array([each.end_ns[-1] for each in stretches]),
    )
    work = work.some(overlapping(work, begins - margin, ends + margin))
    work = in_sequence_order(by_company(work) if at_once(work) else work)[0]
    none = Shift(0.0, 0.0, origin)  # nsys itself aligns the clocks
    layout = coarse_enough(
        work, min(max(samples.period_ns / 4, _SHORTEST_PART_NS), _LONGEST_PART_NS), _FEWEST_PARTS
    )
    looks = _looks(work, layout, stretches, samples.period_ns)
    drift = _drift_of_busy_time(work, [each.begin(_QUICK) for each in stretches], samples.period_ns)
    peaks = _by_kernel(
        work,
        [each.begin(_FIRST) for each in stretches],
        samples.period_ns,
        Shift(0.0, drift, origin),
    )
    rough = (
        _best_explained(_scene(looks[0]), peaks, samples.period_ns)
        if peaks[0].offset_ns
        else peaks[0]
    )
    shift, begun = _searched(looks, samples.period_ns, none)
    whole = _scene(_Look(work, layout, stretches, 1))
    if (abs(rough.offset_ns) > samples.period_ns or rough.drift) and _hopeful(
        looks, samples.period_ns, rough, shift
    ):
        shift, begun = (
            _likelier(whole, (shift, _searched(looks, samples.period_ns, rough)[0])),
            None,
        )
    for _ in range(_SEARCHES):
        left_out, looked, like = _without_wild(whole, shift, begun)
        if not (like.noise < _EXPLAINED * looked.values[:, looked.used].std(axis=1)).any():
            return None
        found, pulled = _closed_in(whole, shift, left_out, like, samples.period_ns)
        slope, error = _slope(whole, pulled)
        if abs(slope) <= _CERTAIN * error:
            return found
        drifting = Shift(found.offset_ns, found.drift + slope, origin, found.error_ns)
        # without the drift the search may have been misled
        shift, begun = _searched(looks, samples.period_ns, drifting)
    return found


def _closed_in(
    scene: _Scene, shift: Shift, left_out: BoolArray, like: Fit, period: float
) -> tuple[Shift, _Pulled]:
    """The shift at which rates of kernels explain the samples best, and the samples' evidence
    there.
    """
    step, best = _step(period), float(round(shift.offset_ns))
    before: tuple[float, float] | None = None
    for _ in range(_MOST_MOVES):
        pulled = scene.pulled(Shift(best, shift.drift, shift.origin_ns), left_out, like)
        slope, certainty = (
            float(pulled.score.sum()) - 2.0 * best / (best**2 + _USUAL_NS**2),
            pulled.certainty.sum(),
        )
        # secant: misfits bend it
        bend = (
            certainty
            if before is None or best == before[0]
            else (before[1] - slope) / (best - before[0])
        )
        bend = float(np.clip(bend, _LEAST_BENT * certainty, certainty)) + 1e-12
        before, move = (best, slope), slope / bend
        best = float(round(best + np.clip(move, -step, step)))
        if abs(move) <= max(_FINE_NS, _CLOSE / np.sqrt(bend)):
            break
    own = _offset_error(scene, pulled, bend, scene.places(shift), period)
    both = float(np.hypot(own, shift.error_ns)), float(np.hypot(own, shift.likely_ns))
    return Shift(best, shift.drift, shift.origin_ns, *both), pulled


def _offset_error(
    scene: _Scene, pulled: _Pulled, bend: float, place: IntArray, period: float
) -> float:
    """The error of the offset: from the curvature of the likelihood and how places of the sequence
    pull at it (sandwich estimator: Huber 1967), and from the scatter between metrics.
    """
    step = _step(period)
    weight = pulled.certainty / max(float(pulled.certainty.sum()), 1e-12)
    own = np.clip(pulled.score.sum(axis=1) / np.maximum(bend * weight, 1e-12), -step, step)
    apart = float(weight @ (own - weight @ own) ** 2) / max(len(own) - 1, 1)
    ticks = _TICK_NS**2 / max(len(scene.work.spans_ns[0]), 1)
    pull = np.bincount(scene.kernel[place], pulled.score.sum(axis=0))
    error = float(np.sqrt(ticks + apart + max(1.0 / bend, float(pull @ pull) / bend**2)))
    return min(error, FAR_SAMPLES * period)  # in which the offset was searched


def _slope(scene: _Scene, pulled: _Pulled) -> tuple[float, float]:
    """The change of the offset over the run, and its error: from each stretch, with the rates
    common to all.
    """
    count = int(scene.stretch[-1]) + 1
    if count < 3:
        return 0.0, 1.0
    bend = np.maximum(np.bincount(scene.stretch, pulled.alone.sum(axis=0), count), 1e-12)
    offset = np.bincount(scene.stretch, pulled.score.sum(axis=0), count) / bend
    time = np.bincount(scene.stretch, scene.start_ns) / np.bincount(scene.stretch)
    time -= float(bend @ time / bend.sum())
    slope = float(bend @ (time * offset) / (bend @ time**2))
    left = offset - float(bend @ offset / bend.sum()) - slope * time
    scatter = max(float(bend @ left**2) / (count - 2), 1.0)
    return slope, float(np.sqrt(scatter / (bend @ time**2)))


def _stretches(samples: Samples, work: GpuRan, activity: tuple[int, ...]) -> list[_Stretch]:
    """Some stretches of samples, spread over the time in which the sequence runs; none if nsys lost
    nearly all samples.
    """
    inside = work.group >= 0
    if not inside.any():
        return []
    within = _near(work, inside, samples, FAR_SAMPLES * samples.period_ns)
    for row in activity:
        within &= np.isfinite(samples.values[row])
    near = np.flatnonzero(within)
    if len(near) < _FEWEST_SAMPLES:
        return []
    count = min(_STRETCHES, max(len(near) // 200, 1))
    length = min(_STRETCHES * TOGETHER // count, len(near) // count)
    lost = np.flatnonzero(samples.start_ns[near[1:]] != samples.end_ns[near[:-1]]) + 1
    bounds = np.concatenate([[0], lost, [len(near)]])
    found, reached = [], 0
    for first in np.linspace(0, len(near) - length, count).astype(np.int64).tolist():
        number = int(np.searchsorted(lost, first, "right"))
        without_hole = min(first, int(bounds[number + 1]) - length)
        begin = without_hole if without_hole >= max(bounds[number], reached) else first
        part, reached = near[begin : begin + length], begin + length
        found.append(
            _Stretch(
                samples.start_ns[part],
                samples.end_ns[part],
                np.stack([samples.values[row][part] for row in activity]),
            )
        )
    return found


def _near(work: GpuRan, inside: BoolArray, samples: Samples, margin: float) -> BoolArray:
    """The samples within that time of some of the work."""
    start, end = (
        (work.start_ns, work.end_ns)
        if inside.all()
        else (work.start_ns[inside], work.end_ns[inside])
    )
    end = np.maximum.accumulate(end)
    # with more than that time around it between the work on either side
    apart = np.flatnonzero(start[1:] - end[:-1] >= 2 * margin)
    begins, ends = start[np.append(0, apart + 1)] - margin, end[np.append(apart, -1)] + margin
    from_sample, to_sample = (
        np.searchsorted(samples.end_ns, begins, "right"),
        np.searchsorted(samples.start_ns, ends, "left"),
    )
    near = np.zeros(len(samples.start_ns), np.bool_)
    for one, other in zip(from_sample.tolist(), to_sample.tolist(), strict=True):
        near[one:other] = True
    return near


def _best_explained(scene: _Scene, peaks: list[Shift], period: float) -> Shift:
    """The shift at which rates of kernels explain the samples best, among shifts that are known to
    half a sample.
    """
    tried = [
        Shift(each.offset_ns + beside * period, each.drift, each.origin_ns)
        for each in peaks
        for beside in (0.0, -0.25, 0.25)
    ]
    none = np.zeros(len(scene.start_ns), np.bool_)
    like = fit_rates(scene.at(peaks[0], none).sums(), scene.parts.layout)
    return tried[
        int(
            np.argmin(
                [float(quick_misfit(scene.at(each, none).sums(), like).sum()) for each in tried]
            )
        )
    ]


def _drift_of_busy_time(work: GpuRan, stretches: list[_Stretch], period: float) -> float:
    """The drift at which activity correlates best with busy time; 0 if it does not correlate, as on
    a GPU that is never idle.
    """
    if len(stretches) < 3:
        return 0.0
    times = [busy_time(_around(work, each, (FAR_SAMPLES + 1) * period)) for each in stretches]
    lags = _LAGS * period / 2
    agreement = np.stack(
        [
            _agreement(*one, lags)
            for one in zip(times, stretches, [each.standard for each in stretches], strict=True)
        ],
        axis=1,
    )
    at = np.array([float(each.start_ns.mean()) for each in stretches])
    at -= at.mean()
    span = max(float(np.ptp(at)), period)
    slopes = np.arange(-FAR_SAMPLES, FAR_SAMPLES + 1)  # half samples over the run
    best = np.array(
        [
            _along(agreement, np.round(slope * at / span).astype(np.int64)).max()
            for slope in slopes.tolist()
        ]
    )
    slope = (
        slopes[np.argmin(np.where(best >= _ALIKE * best.max(), np.abs(slopes), np.inf))]
        if best.max() >= _AGREES
        else 0
    )
    return float(slope) * period / 2 / span


def _by_kernel(
    work: GpuRan, stretches: list[_Stretch], period: float, drifting: Shift
) -> list[Shift]:
    """The shifts, by half samples, at which the kernel in the middle of samples explains most of
    their variance: the likeliest first.
    """
    start, end = (
        np.concatenate(each)
        for each in zip(*((one.start_ns, one.end_ns) for one in stretches), strict=True)
    )
    middle = drifting.moved((start + end) // 2) + _LAGS[:, None] * period / 2
    row = np.searchsorted(work.start_ns, middle, "right") - 1
    group = np.where((row >= 0) & (middle < work.end_ns[row]), work.group[row], -1) + 1
    count, size = work.groups + 1, len(_LAGS) * (work.groups + 1)
    index = (group + count * np.arange(len(_LAGS))[:, None]).ravel()
    often = np.bincount(index, minlength=size).reshape(-1, count)
    free = np.maximum(len(start) - np.count_nonzero(often, axis=1), 1)
    left = np.full(len(_LAGS), np.inf)
    for values in np.concatenate([each.values for each in stretches], axis=1):
        apart = values - values.mean()
        total = np.bincount(index, np.tile(apart, len(_LAGS)), size).reshape(-1, count)
        within = float(apart @ apart) - (total**2 / np.maximum(often, 1)).sum(axis=1)
        left = np.minimum(left, within / free / max(float(apart @ apart), 1e-12) * len(start))
    told = np.maximum(1.0 - left, 0.0)
    peaks = np.flatnonzero(told >= np.maximum(np.append(0.0, told[:-1]), np.append(told[1:], 0.0)))
    good = peaks[told[peaks] >= _ALIKE * told.max()]
    first = good[np.argmin(np.abs(_LAGS[good]))]
    others = peaks[peaks != first]
    order = [first, *others[np.argsort(-told[others], kind="stable")][: _MOST_PEAKS - 1]]
    return [
        Shift(float(_LAGS[each]) * period / 2, drifting.drift, drifting.origin_ns, period)
        for each in order
    ]


def _along(agreement: FloatArray, moved: IntArray) -> FloatArray:
    """Mean agreement by lag, with each stretch's lag shifted."""
    lag = np.clip(np.arange(len(agreement))[:, None] + moved[None, :], 0, len(agreement) - 1)
    along: FloatArray = agreement[lag, np.arange(len(moved))[None, :]].mean(axis=1)
    return along


def _around(work: GpuRan, stretch: _Stretch, margin: float) -> GpuRan:
    """The work near a stretch."""
    return work.some(
        (work.end_ns > stretch.start_ns[0] - margin) & (work.start_ns < stretch.end_ns[-1] + margin)
    )


def _agreement(
    time: BusyTime, stretch: _Stretch, standard: FloatArray, lags: FloatArray
) -> FloatArray:
    """Correlation of the stretch's activity with busy time at each of these lags; 0 if either is
    constant.
    """
    if not len(time.moments):
        return np.zeros(len(lags))
    busy = time.share(stretch.start_ns + lags[:, None], stretch.end_ns + lags[:, None])
    busy -= busy.mean(axis=1, keepdims=True)
    length = np.sqrt((busy**2).sum(axis=1))
    highest = (busy @ standard.T).max(axis=1, initial=0.0)
    agreement: FloatArray = np.divide(highest, length, out=np.zeros(len(lags)), where=length > 0)
    return agreement


@dataclass(frozen=True)
class _Look:
    """Kernels, their parts, and samples to try offsets with, at that step size."""

    work: GpuRan
    layout: ColumnLayout
    stretches: list[_Stretch]
    steps: int


def _looks(
    work: GpuRan, layout: ColumnLayout, stretches: list[_Stretch], period: float
) -> list[_Look]:
    """Quick looks that rule out most offsets, if there are enough offsets and samples, and a closer
    one.
    """
    looks = [_Look(work, layout, [each.begin(_QUICK) for each in stretches], 1)]
    few = [each.begin(_FIRST) for each in stretches]
    if len(stretches[0].start_ns) > _FIRST:
        looks.insert(0, _Look(work, layout.halved()[0], few, 1))
    if period / _step(period) > _MANY:
        together = blurred(work, period / PARTS_PER_SAMPLE)
        looks.insert(
            0, _Look(together, coarse_enough(together, period / PARTS_PER_SAMPLE, 1), few, _AT_ONCE)
        )
    return looks


def _hopeful(looks: list[_Look], period: float, rough: Shift, found: Shift) -> bool:
    """Whether a quick look does not rule out that an offset near the rough one is more probable
    than the one found.
    """
    if len(looks) == 1:
        return True
    there, here = _odds(_scene(looks[0]), (_searched(looks[:1], period, rough)[0], found))
    return bool(there <= here + _HOPELESS)


def _searched(looks: list[_Look], period: float, rough: Shift) -> tuple[Shift, State | None]:
    """The shift near the rough one at which rates of kernels explain the samples best, and what a
    fit there can begin with.

    Its error is from others that fit nearly as well.
    """
    near = _step(period)
    most = round(period / near)
    steps = np.arange(-most, most + 1)
    away: FloatArray = (steps * near).astype(np.float64)
    moved = [Shift(rough.offset_ns + each, rough.drift, rough.origin_ns) for each in away.tolist()]
    unusual = _unusual(np.array([each.offset_ns for each in moved]))
    odds = np.full(len(moved), np.inf)
    tried = steps % looks[0].steps == 0
    for look in looks:
        scene = _scene(look, rough)
        left_out, _, like = _without_wild(scene, rough)
        if look is not looks[-1]:
            scene, like = scene.plainest(like)
        place = scene.places(rough)
        at = np.flatnonzero(tried)
        found = [
            scene.explained(scene.at(moved[each], left_out), like, place) for each in at.tolist()
        ]
        odds[at] = less_likely(found, away[at], scene.kernel) + unusual[at]
        odds[at] -= odds[at].min()
        likeliest = at[np.argsort(odds[at], kind="stable")[:_MOST_HOPEFUL]]
        hopeful = steps[likeliest if look.steps > 1 else likeliest[odds[likeliest] <= _HOPELESS]]
        tried = np.abs(steps[:, None] - hopeful).min(axis=1) <= look.steps // 2
    best = int(at[np.argmin(odds[at])])
    apart = away - away[best]
    others = np.where(
        (odds <= odds[best] + _HOPELESS) & (np.abs(apart) > 1.5 * near),
        np.exp(odds[best] - odds),
        0.0,
    )
    shift = Shift(
        moved[best].offset_ns,
        rough.drift,
        rough.origin_ns,
        spread(apart, others),
        spread(apart, likely(others)),
    )
    return shift, like.state() if abs(int(steps[best])) <= 1 else None


def _unusual(offset_ns: float | FloatArray) -> FloatArray:
    """Minus the logarithm of the prior probability of the offset: nsys aligns the clocks itself."""
    unusual: FloatArray = np.log1p((np.asarray(offset_ns) / _USUAL_NS) ** 2)
    return unusual


def _step(period: float) -> float:
    """The first step of the offset."""
    return min(_COARSE * period, _NEAR_NS)


def _likelier(scene: _Scene, shifts: tuple[Shift, ...]) -> Shift:
    """The shift with the most probable samples."""
    return shifts[int(np.argmin(_odds(scene, shifts)))]


def _odds(scene: _Scene, shifts: tuple[Shift, ...]) -> FloatArray:
    """The logarithm of how much less probable each shift is than the others, without samples that
    are outliers at any of them.
    """
    found, place = [_without_wild(scene, each) for each in shifts], scene.places(shifts[0])
    wild = np.any([each for each, _, _ in found], axis=0)
    looked, likes = [each for _, each, _ in found], [each for _, _, each in found]
    if wild.any():
        looked = [scene.at(each, wild) for each in shifts]
        likes = [fit_rates(each.sums(), scene.parts.layout) for each in looked]
    offset_ns = np.array([each.offset_ns for each in shifts])
    each_way = [[scene.explained(each, like, place) for each in looked] for like in likes]
    odds: FloatArray = np.mean(
        [less_likely(each, offset_ns, scene.kernel) for each in each_way], axis=0
    ) + _unusual(offset_ns)
    return odds


def _scene(look: _Look, near: Shift | None = None) -> _Scene:
    """The stretches with all of the work, or with what is close to them at shifts ``near`` that
    one.
    """
    work, layout, stretches = look.work, look.layout, look.stretches
    if near is not None:
        begins, ends = (
            near.moved(np.array(each))
            for each in zip(*((one.start_ns[0], one.end_ns[-1]) for one in stretches), strict=True)
        )
        margin = (
            _BESIDE_SAMPLES
            * float((ends - begins).sum())
            / sum(len(each.start_ns) for each in stretches)
        )
        work = work.some(overlapping(work, begins - margin, ends + margin))
    start, end, values = (
        np.concatenate(each, axis=-1)
        for each in zip(*((one.start_ns, one.end_ns, one.values) for one in stretches), strict=True)
    )
    stretch = np.repeat(np.arange(len(stretches)), [len(each.start_ns) for each in stretches])
    return _Scene(start, end, values, stretch, work, parts_of(work, layout))


def _without_wild(
    scene: _Scene, shift: Shift, begun: State | None = None
) -> tuple[BoolArray, _ShiftedSamples, Fit]:
    """Samples far from the usual ones of their kernels, in any metric; the others, and the fit to
    these.

    Large outliers hide others, which a further round finds.
    """
    looked, wild = scene.at(shift), np.zeros(len(scene.start_ns), np.bool_)
    fit = fit_rates(looked.sums(), scene.parts.layout, like=begun)
    for _ in range(_LOOKS):
        weight = np.maximum(looked.shares.gathered(np.ones(len(wild))), 1e-12)
        more = np.zeros(len(wild), np.bool_)
        for row, rates, noise in zip(looked.values, fit.rates, fit.noise, strict=True):
            away = np.where(looked.used, np.abs(row - looked.shares.applied(rates)), 0.0)
            if not (away > _FAR * noise / 4 + 2.0).any():
                continue
            usual = looked.shares.applied(looked.shares.gathered(away) / weight)
            more |= away > _FAR * np.maximum(usual, noise / 4) + 2.0
        if not more.any():
            break
        wild |= more
        looked = looked.without(more)
        fit = fit_rates(looked.sums(), scene.parts.layout, like=fit.state())
    return wild, looked, fit
