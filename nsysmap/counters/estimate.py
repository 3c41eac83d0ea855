"""Counters by kernel of a repeated sequence, and by sets of its kernels, from samples that span
several kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from nsysmap.core.groups import scattered
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.alike import of_same_members, of_same_time, pooled_means
from nsysmap.counters.both import both
from nsysmap.counters.bounded import bounded_solution
from nsysmap.counters.edges import cached, refilled, smear_ns, smeared
from nsysmap.counters.limits import freedom_of, limits, log_variance, student
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.near_inverse import Weighted, spreads, weighted
from nsysmap.counters.part_rates import FEW, Fit, State, Sums, fit_rates
from nsysmap.counters.problem import Problem, problem_of, without
from nsysmap.counters.ring import Factor
from nsysmap.counters.series import LEFT_OPEN, ROUNDED2, Series, series_of
from nsysmap.counters.shares import ColumnLayout, concurrent_share, summed

_FAR = 10.0  # ratio to the usual deviation of the other samples of the same kernels: excluded
# the same for a first look at few samples, which outliers pull to themselves: a fit without these
# decides
_SUSPECT = 4.0
_LOOKS = 3  # rounds of the search for outliers, at most
_TINY = 1e-6  # keeps a division by a difference of nothing finite
_LEAST_NOISE2 = 1e-300  # keeps a division by no noise finite
_ALONE = 1e-9  # of a sample: with less in others, none tells
_NEAR_ALL = 0.2  # a larger share of all samples are not outliers
_LITTLE = 1e-3  # relative change of the priors' weight, to measure its effect
_FEWEST_CLUSTERS = 8  # what runs in fewer does not tell how much clusters differ
_QUARTILES = 1.349  # standard deviations from one to the other
_MOST_LEVERAGE = 0.9
"""Limit for a sample that only its own kernel explains: beyond it, its residual is no evidence."""
_PHASES = 32  # random sums of places in the sequence
_ROUNDINGS = 16  # places of the rounding's steps that are tried
_BESIDE = 0.02  # of a group's time: from that on other work changes its values
_HALVES = 2  # of the metrics, estimated at the same time
_SETTLING = 4  # rounds of predicting the samples printed as 1
_HARMONICS = np.arange(1, 9)
Found = TypeVar("Found")


@dataclass(frozen=True)
class Values:
    """One metric by group, or by set of groups; one entry each, NaN for those that did not run."""

    value: FloatArray
    error: FloatArray  # standard error of value: from the last six together
    low: FloatArray  # ends of the 90 % interval
    high: FloatArray
    sampling: FloatArray  # from the scatter of the repeats and of the samples
    freedom: FloatArray  # degrees of freedom of that
    # from what the samples leave undetermined: changes of the rate within kernels, kernels that
    # always run together
    shape: FloatArray
    timing: FloatArray  # from the error of the clocks' offset
    rounding: FloatArray  # from the rounding of samples to whole numbers
    # from the begins and ends of kernels; not in the interval, which is from the samples alone
    edges: FloatArray
    # from what runs before and after (SMs that drain and fill, contents of the cache); not in the
    # interval either
    context: FloatArray

    @property
    def measured(self) -> FloatArray:
        """Standard error of what was counted while it ran, in this trace."""
        measured: FloatArray = np.sqrt(np.maximum(self.error**2 - self.context**2, 0.0))
        return measured

    def take(self, rows: IntArray) -> Values:
        """These entries."""
        return Values(
            self.value[rows], self.error[rows], self.low[rows], self.high[rows],
            self.sampling[rows], self.freedom[rows],
            self.shape[rows], self.timing[rows], self.rounding[rows], self.edges[rows],
            self.context[rows],
        )  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """One metric."""

    groups: Values
    sets: Values
    parts: FloatArray  # rate of every part of every group's kernel
    idle: float  # rate while nothing ran
    noise: float  # standard deviation of a sample
    determined: float  # effective number of changes within kernels that the samples determine
    percent: bool  # from 0 to 100


@dataclass(frozen=True)
class Estimates:
    """All metrics of one GPU, and the facts behind them."""

    metrics: tuple[str, ...]
    by_metric: tuple[Estimate, ...]
    layout: ColumnLayout
    concurrent: FloatArray  # share of each group's time in which something else also ran
    samples: int  # used
    outliers: int  # excluded
    left_out: int  # overlapped work outside the sequence
    thinned: bool
    period_ns: float

    def of(self, metric: str) -> Estimate | None:
        """The estimate of this metric; None if it was not sampled."""
        return self.by_metric[self.metrics.index(metric)] if metric in self.metrics else None


def estimate(
    samples: Samples,
    work: GpuRan,
    shift: Shift,
    *,
    member_of: IntArray | None = None,
    alike: IntArray | None = None,
    cache_ns: float = np.inf,
) -> Estimates:
    """Every metric, with errors, by group of the work and by set; ``member_of`` is the set of each
    group (-1 for none), ``alike`` a number that groups of the same work have in common (likewise).

    ``cache_ns`` is the time in which the sampled traffic to memory amounts to the size of the
    level-2 cache.
    """
    members = np.full(work.groups, -1) if member_of is None else member_of
    problem = problem_of(samples, work, shift, members, int(members.max(initial=-1)) + 1)
    classes = _classes(problem, np.full(work.groups, -1) if alike is None else alike)
    series = series_of(samples, problem.values)
    halves = [slice(at, None, _HALVES) for at in range(min(_HALVES, len(series)))]
    whole, outliers = problem, np.zeros(problem.shares.samples, np.bool_)
    looked = [_Looked(series[rows], series[rows], None, outliers) for rows in halves]
    far = _SUSPECT if whole.used.sum() <= FEW * whole.shares.columns else _FAR
    for _ in range(_LOOKS):
        looked = _of_halves(partial(_look, whole, problem, far), looked)
        found = np.any([each.outliers for each in looked], axis=0)
        many = found.sum() > _NEAR_ALL * whole.used.sum()
        if (found == outliers).all() or (many and far == _FAR):
            break
        far = _FAR
        if not many:
            outliers, problem = found, without(whole, found)
    fits = _of_halves(partial(_linear_of, problem, _common(problem)), looked)
    linear = [fits[row % len(halves)][row // len(halves)] for row in range(len(series))]
    by_metric = tuple(
        _estimate(
            problem,
            linear[row],
            None if clock is None else linear[clock],
            series[row],
            cache_ns,
            classes,
        )
        for row, clock in enumerate(samples.per_cycle)
    )
    place, layout = problem.place, problem.layout
    return Estimates(
        samples.metrics, by_metric,
        ColumnLayout(
            np.concatenate([[0], np.cumsum(layout.parts[place])]),
            layout.duration_ns[place], layout.executions[place],
        ),
        concurrent_share(problem.work)[place], int(problem.used.sum()), int(outliers.sum()),
        problem.left_out, problem.thinned,
        problem.period_ns,
    )  # fmt: skip


def _classes(problem: Problem, alike: IntArray) -> _Alike:
    """Groups that do the same, those beside which other work runs apart: their values hold some of
    that.
    """
    number = np.empty(len(alike), np.int64)
    number[problem.place] = alike
    beside = np.nan_to_num(concurrent_share(problem.work)) > _BESIDE
    number = np.where(number >= 0, 2 * number + beside, -1)
    groups = of_same_time(number, problem.layout.duration_ns)
    sets = of_same_members(groups, problem.means.member, problem.means.count - len(groups))
    return _Alike(groups, sets)


def _of_halves(work: Callable[[_Looked], Found], halves: list[_Looked]) -> list[Found]:
    """The estimates from each half of the metrics, at the same time."""
    if len(halves) == 1:
        return [work(halves[0])]
    return list(both(partial(work, halves[0]), partial(work, halves[1])))


@dataclass(frozen=True)
class _Alike:
    """The classes of groups, in the problem's order, and of sets that do the same; -1 for none."""

    groups: IntArray
    sets: IntArray


@dataclass(frozen=True)
class _Linear:
    """The estimates from one series by group and set, and the errors that add up."""

    rates: FloatArray  # bounded
    noise: float
    unevenness: float
    determined: float
    value: FloatArray
    influence: FloatArray  # the contribution of each cluster of repetitions
    # variance if only samples that begin in different places of the sequence are independent
    alike: FloatArray
    modelled: FloatArray  # variance from the noise of the samples alone
    shape: FloatArray  # variance
    rounded: FloatArray  # variance from the rounding of samples alone
    rounded_share: float  # of it in the samples' noise
    moved: FloatArray  # change per ns of offset
    least: FloatArray  # change if samples printed as 1 are higher than assumed
    inside: FloatArray  # by group the variance of samples inside one kernel; NaN if there are none


def _sums(problem: Problem, series: list[Series]) -> Sums:
    target = np.stack(
        [problem.shares.gathered(np.where(problem.used, each.values, 0.0)) for each in series]
    )
    squares = np.array(
        [float(used @ used) for each in series for used in (each.values[problem.used],)]
    )
    return Sums(
        problem.matrix,
        target,
        squares,
        int(problem.used.sum()),
        np.array([each.rounding2 for each in series]),
    )


@dataclass(frozen=True)
class _Looked:
    """Some metrics' series, as printed and with what is assumed for samples printed as 1, after a
    fit with parts twice as long.
    """

    printed: list[Series]
    series: list[Series]
    like: State | None
    outliers: BoolArray


def _look(whole: Problem, problem: Problem, far: float, before: _Looked) -> _Looked:
    """The series after a fit to the previous assumptions, and its outliers among the samples of the
    ``whole`` problem, of which ``problem`` lacks those that seemed to be outliers.
    """
    coarse, into = problem.layout.halved()
    fit = fit_rates(_sums(problem, before.series).merged(into), coarse, like=before.like)
    predicted = [whole.shares.applied(rates) for rates in fit.rates[:, np.append(into, -1)]]
    series = [each.corrected(row) for each, row in zip(before.printed, predicted, strict=True)]
    return _Looked(
        before.printed,
        series,
        fit.state(),
        _outliers(whole, problem, before.series, predicted, fit.noise, far),
    )


def _outliers(
    whole: Problem,
    problem: Problem,
    series: list[Series],
    predicted: list[FloatArray],
    noise: FloatArray,
    far: float,
) -> BoolArray:
    """Samples far from what the other samples of their kernels usually are, in any metric."""
    found = np.zeros(whole.shares.samples, np.bool_)
    weight = problem.shares.gathered(np.ones(whole.shares.samples))
    for each, expected, usually in zip(series, predicted, noise, strict=True):
        away = np.where(whole.used, np.abs(each.values - expected), 0.0)
        step = each.step * each.upper / 100 if np.isfinite(each.upper) else 0.0
        some = away > far * usually / 4 + 2 * step
        if not some.any():
            continue
        entries = whole.shares.kept(some)
        sample, column = entries.sample, entries.column
        # in a fit without a sample, others alone say what is usual
        own = entries.share * problem.used[sample]
        total = (
            problem.shares.gathered(np.where(problem.used, away, 0.0))[column] - own * away[sample]
        )
        others = weight[column] - own
        mean = np.divide(total, others, out=np.zeros(len(total)), where=others > _ALONE)
        usual = summed(sample, entries.share * mean, entries.samples)
        found |= some & (away > far * usual + 2 * step)
    return found


@dataclass(frozen=True)
class _Common:
    """What follows for every metric from the samples' shares alone."""

    within: BoolArray  # samples with exactly one kernel
    inside: tuple[IntArray, IntArray]
    asked: Weighted  # the means
    cluster: IntArray  # cluster and column of each share, as one number
    phase: IntArray  # random row of its place in the sequence and column
    sign: FloatArray  # of each sample's place


def _common(problem: Problem) -> _Common:
    shares = problem.shares
    random = scattered(int(problem.phase.max(initial=0)) + 2, salt=0).astype(np.int64)
    row, sign = random % _PHASES, np.where(random // _PHASES % 2, -1.0, 1.0)
    return _Common(
        _of_one(problem), _inside(problem), problem.means.weighted(problem.matrix),
        problem.cluster[shares.sample] * shares.columns + shares.column,
        row[problem.phase][shares.sample] * shares.columns + shares.column, sign[problem.phase],
    )  # fmt: skip


def _linear_of(problem: Problem, common: _Common, looked: _Looked) -> list[_Linear]:
    fit = fit_rates(_sums(problem, looked.series), problem.layout, like=looked.like)
    return _linear(problem, common, *_settled(problem, common, looked.series, looked.printed, fit))


def _settled(
    problem: Problem, common: _Common, series: list[Series], printed: list[Series], fit: Fit
) -> tuple[list[Series], Fit, FloatArray]:
    """Series with samples printed as 1 as the others predict them, the fit to them, and the
    remaining error of each column's rate.

    ``series`` is what the fit was made with.  Each round reduces the initial error, common to all
    these samples, by what the others determine (expectation maximisation: Dempster, Laird and Rubin
    1977).  Samples with a single kernel keep all of it: nothing else determines how far below 1
    they were.
    """
    within = common.within
    open_ones = [problem.used & each.least for each in printed]
    held = [problem.shares.kept(some) for some in open_ones]
    start = [
        each.times_cycles(np.where(some, LEFT_OPEN, 0.0))
        for each, some in zip(printed, open_ones, strict=True)
    ]
    rates, target, pull, off = fit.rates, fit.target.copy(), np.zeros_like(fit.target), start
    for _ in range(_SETTLING):
        looked = [
            each.corrected(some.applied(row))
            for each, some, row in zip(printed, held, rates, strict=True)
        ]
        looked = [
            replace(new, values=np.where(within, old.values, new.values))
            for old, new in zip(series, looked, strict=True)
        ]
        for row, some in enumerate(held):
            target[row] += some.gathered(looked[row].values - series[row].values)
            pull[row] = some.gathered(off[row])
        series = looked
        rates, left = np.moveaxis(fit.factor.solve(np.stack([target, pull], axis=2)), 2, 0)
        off = [
            np.where(within, first, some.applied(row))
            for first, some, row in zip(start, held, left, strict=True)
        ]
    return series, replace(fit, rates=rates, target=target), left


def _linear(
    problem: Problem, common: _Common, series: list[Series], fit: Fit, left: FloatArray
) -> list[_Linear]:
    means, asked = problem.means, common.asked
    noise2 = fit.noise[:, None] ** 2
    (spread,), (stiffer,) = (
        spreads(fit.factor, asked),
        spreads(fit.stiffer(1 + _LITTLE).factor(), asked),
    )
    shape = np.maximum(noise2 * (spread - stiffer) / _LITTLE, 0.0)
    modelled = np.maximum(noise2 * spread - shape, 0.0)
    upper = np.array([each.upper for each in series])
    bounded = bounded_solution(fit.systems, fit.target, upper, fit.rates)
    least = means.of(left)
    free = np.sqrt(1.0 - _leverage(problem, fit.factor))
    found = []
    for row, (each, rates) in enumerate(zip(series, fit.rates, strict=True)):
        residual = np.where(problem.used, each.values - problem.shares.applied(rates), 0.0)
        later = problem.shares.gathered(problem.change.applied(rates))
        scores = np.concatenate([
            _scores(problem, common, residual / free[row]),
            _scores_by_phase(problem, common, residual / free[row]),
            _scores_of_rounding(problem, each, rates, float(fit.noise[row])), later[None]
        ])  # fmt: skip
        influence = means.of(fit.factor.of(row).solve(scores.T[None])[0].T)
        of_phases = problem.clusters + _PHASES
        share = min(each.rounding2 / max(float(noise2[row, 0]), _LEAST_NOISE2), 1.0)
        found.append(
            _Linear(
                bounded[row], float(fit.noise[row]), float(fit.unevenness[row]),
                float(fit.determined[row]), means.of(rates),
                influence[: problem.clusters],
                (influence[problem.clusters : of_phases] ** 2).sum(axis=0),
                modelled[row], shape[row], (influence[of_phases:-1] ** 2).mean(axis=0), share,
                influence[-1], least[row],
                _variance_inside(problem.layout.groups, *common.inside, residual),
            )
        )  # fmt: skip
    return found


def _leverage(problem: Problem, factor: Factor) -> FloatArray:
    """The effect of each sample on its own prediction: [metric, sample]; 0 if there are so many
    samples that it is negligible.

    The variance of a residual is smaller than that of the noise by this share (HC2: MacKinnon and
    White 1985).
    """
    shares, metrics = problem.shares, len(factor.last)
    leverage = np.zeros((metrics, shares.samples))
    if not len(shares.sample) or problem.used.sum() > FEW * shares.columns:
        return leverage
    sample = np.flatnonzero(np.bincount(shares.sample, minlength=shares.samples))
    number = np.searchsorted(sample, shares.sample)
    (leverage[:, sample],) = spreads(
        factor, weighted(problem.matrix, shares.column, number, shares.share, len(sample))
    )
    return np.clip(leverage, 0.0, _MOST_LEVERAGE)


def _inside(problem: Problem) -> tuple[IntArray, IntArray]:
    """The samples inside one execution of one kernel, and its group."""
    shares, layout = problem.shares, problem.layout
    if not len(shares.sample):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    group = np.append(np.repeat(np.arange(layout.groups), layout.parts), -1)[shares.column]
    first = np.flatnonzero(np.diff(shares.sample, prepend=-1))
    lowest, highest = np.minimum.reduceat(group, first), np.maximum.reduceat(group, first)
    one = (lowest == highest) & (lowest >= 0)
    return shares.sample[first[one]], lowest[one]


def _of_one(problem: Problem) -> BoolArray:
    """The samples with exactly one kernel in them."""
    shares, layout = problem.shares, problem.layout
    group = np.append(np.repeat(np.arange(layout.groups), layout.parts), -1)[shares.column]
    busy = np.flatnonzero(group >= 0)
    sample, group = shares.sample[busy], group[busy]
    one = np.zeros(shares.samples, np.bool_)
    one[sample] = True
    other = np.flatnonzero((sample[1:] == sample[:-1]) & (group[1:] != group[:-1]))
    one[sample[other]] = False
    return one


def _variance_inside(
    groups: int, sample: IntArray, group: IntArray, residual: FloatArray
) -> FloatArray:
    """For each group the scatter of the samples inside it."""
    count = np.bincount(group, minlength=groups)
    total = np.bincount(group, residual[sample] ** 2, groups)
    return np.where(count > 1, total / np.maximum(count, 1), np.nan)


def _scores(problem: Problem, common: _Common, residual: FloatArray) -> FloatArray:
    """The deviation of each cluster of repetitions from the mean of all, by column."""
    shares = problem.shares
    scores = summed(
        common.cluster, shares.share * residual[shares.sample], problem.clusters * shares.columns
    )
    scores = scores.reshape(problem.clusters, shares.columns)
    few = np.sqrt(problem.clusters / max(problem.clusters - 1, 1))
    centred: FloatArray = few * (scores - scores.mean(axis=0))
    return centred


def _scores_by_phase(problem: Problem, common: _Common, residual: FloatArray) -> FloatArray:
    """Sums over the samples that begin in the same place of the sequence, by column: where the
    model is wrong, all of them differ alike.

    Places share a row with random signs, so that the squares of the rows add up to those of the
    places.
    """
    shares = problem.shares
    scores = summed(
        common.phase,
        shares.share * (common.sign * residual)[shares.sample],
        _PHASES * shares.columns,
    )
    return scores.reshape(_PHASES, shares.columns)


def _scores_of_rounding(
    problem: Problem, series: Series, rates: FloatArray, noise: float
) -> FloatArray:
    """The errors of rounding samples that these rates and this noise make, by column, with the
    steps of the rounding in several places.

    Where samples scatter less than they are rounded, the errors of samples that are nearly equal
    are so too: repetitions do not average them out.  The mean square over the places of the steps
    is their variance, whatever the exact rates are.
    """
    scores = np.zeros((_ROUNDINGS, problem.shares.columns))
    if not series.rounding2:
        return scores
    cycles = (
        np.ones(problem.shares.samples)
        if series.cycles is None
        else np.maximum(np.nan_to_num(series.cycles), 1e-12)
    )
    own = np.sqrt(max(noise**2 - series.rounding2, 0.0)) / cycles / series.step
    exact = problem.shares.applied(rates) / cycles / series.step
    random = np.random.default_rng(0)
    used = problem.used & ~series.least
    for row in range(_ROUNDINGS):
        place = exact + row / _ROUNDINGS + own * random.standard_normal(len(exact))
        scores[row] = problem.shares.gathered(
            np.where(used, (np.round(place) - place) * series.step * cycles, 0.0)
        )
    return scores


def _estimate(
    problem: Problem,
    found: _Linear,
    clock: _Linear | None,
    series: Series,
    cache_ns: float,
    alike: _Alike,
) -> Estimate:
    """The metric itself: the estimate, divided by the cycles if it is a share of cycles; of groups
    that do the same drawn to their mean.
    """
    layout = problem.layout
    value, bounded = found.value, problem.means.of(found.rates)
    influence, modelled, shape, moved, least = (
        found.influence,
        found.modelled,
        found.shape,
        found.moved,
        found.least,
    )
    rounded = found.rounded
    inside = found.inside
    parts, idle = found.rates[:-1], float(found.rates[-1])
    if clock is not None:
        cycles = np.maximum(clock.value, 1e-12)
        value, bounded = value / cycles, bounded / cycles
        influence = (influence - value * clock.influence) / cycles
        modelled = (modelled + value**2 * clock.modelled) / cycles**2
        shape = (shape + value**2 * clock.shape) / cycles**2
        rounded = rounded / cycles**2
        moved = (moved - value * clock.moved) / cycles
        least = least / cycles
        inside = inside / cycles[: layout.groups] ** 2
        parts = parts / np.maximum(clock.rates[:-1], 1e-12)
        idle = idle / max(float(clock.rates[-1]), 1e-12)
    scattered, freedom = _scattered(influence, modelled, _coherence(found, problem), problem)
    sampling = np.sqrt(np.maximum(scattered, scattered * (1 - found.rounded_share) + rounded))
    timing = moved * problem.shift_error_ns
    rounding = (
        np.hypot(_rounding(problem, inside) * series.step, least)
        if series.percent
        else np.zeros_like(value)
    )
    apart_ns = smear_ns(found.unevenness, memory=series.memory)
    groups = value[: layout.groups]
    edges = _by_mean(problem, smeared(problem.beside, layout, groups, idle, apart_ns))
    context = np.zeros_like(value)
    if series.resident:
        context = _by_mean(problem, refilled(problem.beside, layout, groups, idle))
    elif series.memory:
        context = _by_mean(problem, cached(problem.work, groups, cache_ns, written=series.written))
    error = np.sqrt(sampling**2 + shape + timing**2 + rounding**2)
    if series.percent:
        one = pooled_means(alike.groups, alike.sets, value, error)
        sampling2 = one.variance(sampling**2) + one.left()
        freedom = one.freedom(sampling**2, freedom)
        value, bounded, timing = one.value(value), one.value(bounded), one.value(timing)
        rounding, edges, context = (one.value(each) for each in (rounding, edges, context))
        sampling, shape = np.sqrt(sampling2), one.value(np.sqrt(shape)) ** 2
        error = np.sqrt(sampling2 + shape + timing**2 + rounding**2)
    upper = 100.0 if series.percent else np.inf
    low, high = limits(value, error, student(freedom), upper)
    unknown = np.where(problem.means.ran > 0, 0.0, np.nan)
    known = Values(
        np.clip(bounded, low, high) + unknown,
        np.sqrt(error**2 + edges**2 + context**2) + unknown,
        low + unknown,
        high + unknown,
        sampling,
        freedom,
        np.sqrt(shape),
        np.abs(timing),
        rounding,
        edges,
        context + unknown,
    )
    sets = np.arange(layout.groups, len(value))
    ordered = layout.parts[problem.place]
    column = np.repeat(layout.first[:-1][problem.place], ordered)
    column += np.arange(int(ordered.sum())) - np.repeat(np.cumsum(ordered) - ordered, ordered)
    return Estimate(
        known.take(problem.place), known.take(sets), np.minimum(parts, upper)[column],
        min(idle, upper), found.noise,
        found.determined, series.percent,
    )  # fmt: skip


def _by_mean(problem: Problem, groups: FloatArray) -> FloatArray:
    """Independent errors of groups, and those of sets that follow."""
    return np.concatenate([groups, np.sqrt(groups**2 @ problem.means.sets**2)])


def _rounding(problem: Problem, inside: FloatArray) -> FloatArray:
    """The error that comes from rounding samples to whole numbers: for kernels longer than samples,
    whose inner samples are rounded in the same way unless they scatter.

    ``inside`` is their variance, rounding included.  The mean of rounded values is off by the
    Fourier series of the sawtooth, of which Gaussian scatter of standard deviation s damps the k-th
    term by exp(-2 pi² k² s²) (Widrow and Kollár 2008).
    """
    layout = problem.layout
    scatter2 = np.maximum(np.nan_to_num(inside) - ROUNDED2, 0.0)
    damped = np.exp(-4 * np.pi**2 * _HARMONICS**2 * scatter2[:, None]) / (
        2 * np.pi**2 * _HARMONICS**2
    )
    inner = np.sqrt(damped.sum(axis=1)) * np.maximum(
        0.0, 1.0 - problem.period_ns / np.maximum(layout.duration_ns, 1.0)
    )
    rounding: FloatArray = np.sqrt(np.concatenate([inner**2, inner**2 @ problem.means.sets**2]))
    return rounding


def _coherence(found: _Linear, problem: Problem) -> float:
    """Ratio of the variance from residuals that are the same in every repetition to that from
    independent ones; 1 if there are none.
    """
    told = _often(found.modelled, problem)
    usual = (1.0 - 2.0 / (9.0 * _PHASES)) ** 3
    return (
        max(float(np.median(found.alike[told] / found.modelled[told])) / usual, 1.0)
        if told.any()
        else 1.0
    )


def _scattered(
    influence: FloatArray, modelled: FloatArray, coherent: float, problem: Problem
) -> tuple[FloatArray, FloatArray]:
    """Variance from the scatter between clusters of repeats, and from the part of the residuals
    that is the same in all clusters; and its degrees of freedom.

    ``modelled`` is the variance if the residuals were independent noise.  The scatter of few
    samples is itself uncertain: it is drawn towards what the noise makes of the mean, the more, the
    less the kernels' scatter differs from that (empirical Bayes: Smyth, Statistical Applications in
    Genetics and Molecular Biology 3, 2004).  If clusters usually differ less than independent noise
    would make them (the median of chi squared over its degrees of freedom: Wilson and Hilferty
    1931), the remainder is misfit of the model, such as rates that change faster than the parts.
    """
    freedom = np.maximum(freedom_of(influence, problem.spread), 1.0)
    between = (influence**2).sum(axis=0)
    told = np.flatnonzero(_often(modelled, problem) & (between > 0))
    differ, prior = 1.0, 1.0 / _TINY
    if len(told):
        ratio = between[told] / modelled[told]
        differ = float(np.median(ratio / (1.0 - 2.0 / (9.0 * freedom[told])) ** 3))
        quarter, three = np.quantile(np.log(ratio), (0.25, 0.75))
        unlike = float(
            ((three - quarter) / _QUARTILES) ** 2 - np.median(log_variance(freedom[told]))
        )
        prior = 1.0 + 2.0 / max(unlike, _TINY)
    drawn = (freedom * between + prior * differ * modelled) / (freedom + prior)
    return drawn + max(coherent - differ, 0.0) * modelled, freedom + prior


def _often(modelled: FloatArray, problem: Problem) -> BoolArray:
    """The means over enough clusters to distinguish their scatter from the samples' noise; all if
    there are none.
    """
    told = (problem.means.ran > 0) & (modelled > 0)
    often = told & (problem.spread >= _FEWEST_CLUSTERS)
    return often if often.any() else told
