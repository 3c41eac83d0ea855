"""Counters by kernel of a repeated sequence, and by sets of its kernels, from samples that span several kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.bounded import bounded_solution
from nsysmap.counters.edges import smear_ns, smeared
from nsysmap.counters.model import Samples, Shift, Work
from nsysmap.counters.near_inverse import spreads
from nsysmap.counters.part_rates import Fit, Sums, fit_rates
from nsysmap.counters.problem import Problem, problem_of, without
from nsysmap.counters.series import LEFT_OPEN, Series, series_of
from nsysmap.counters.shares import Layout, concurrent_share, summed

_FAR = 8.0  # ratio to the usual deviation of samples of the same kernels: excluded
_LOOKS = 3  # rounds of the search for outliers, at most
_NEAR_ALL = 0.2  # a larger share of all samples are not outliers
_LITTLE = 1e-3  # relative change of the steps' stiffness, to measure its effect
_ROUNDED2 = 1.0 / 12.0  # variance of rounding to whole numbers
_HARMONICS = np.arange(1, 9)


@dataclass(frozen=True)
class Values:
    """One metric by group, or by set of groups; one entry each, NaN for those that did not run."""

    value: FloatArray
    error: FloatArray  # standard error of value: from the last five together
    low: FloatArray  # half width of the 90 % interval
    high: FloatArray
    sampling: FloatArray  # from the scatter of the repeats and of the samples
    shape: FloatArray  # from the unknown change of the rate within kernels
    timing: FloatArray  # from the error of the clocks' offset
    rounding: FloatArray  # from the rounding of samples to whole numbers
    edges: FloatArray  # from the begins and ends of kernels; not in the interval, which is from the samples alone

    def take(self, rows: IntArray) -> Values:
        """These entries."""
        return Values(
            self.value[rows], self.error[rows], self.low[rows], self.high[rows], self.sampling[rows], self.shape[rows],
            self.timing[rows], self.rounding[rows], self.edges[rows],
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
    layout: Layout
    concurrent: FloatArray  # share of each group's time in which something else also ran
    samples: int  # used
    outliers: int  # excluded
    left_out: int  # overlapped work outside the sequence
    thinned: bool
    period_ns: float

    def of(self, metric: str) -> Estimate | None:
        """That metric's estimate, if it was sampled."""
        return self.by_metric[self.metrics.index(metric)] if metric in self.metrics else None


def estimate(samples: Samples, work: Work, shift: Shift, *, member_of: IntArray | None = None) -> Estimates:
    """Every metric, with errors, by group of the work and by set; ``member_of`` is the set of each group (-1 for none)."""
    members = np.full(work.groups, -1) if member_of is None else member_of
    problem = problem_of(samples, work, shift, members, int(members.max(initial=-1)) + 1)
    series = series_of(samples, problem.values)
    fit = _fit(problem, series)
    printed = series
    outliers = np.zeros(problem.shares.samples, np.bool_)
    for _ in range(_LOOKS):  # large outliers hide others
        predicted = [problem.shares.applied(rates) for rates in fit.rates]
        more = _outliers(problem, series, predicted, fit.noise)
        series = [each.corrected(row) for each, row in zip(printed, predicted, strict=True)]
        outliers |= more
        problem = without(problem, more) if more.any() else problem
        fit = _fit(problem, series, like=fit)
        if not more.any():
            break
    linear = _linear(problem, series, fit)
    by_metric = tuple(
        _estimate(problem, linear[row], None if clock is None else linear[clock], series[row])
        for row, clock in enumerate(samples.per_cycle)
    )
    place, layout = problem.place, problem.layout
    return Estimates(
        samples.metrics, by_metric,
        Layout(np.concatenate([[0], np.cumsum(layout.parts[place])]), layout.duration_ns[place], layout.executions[place]),
        concurrent_share(problem.work)[place], int(problem.used.sum()), int(outliers.sum()), problem.left_out, problem.thinned,
        problem.period_ns,
    )  # fmt: skip


@dataclass(frozen=True)
class _Linear:
    """The estimates from one series by group and set, and the errors that add up."""

    rates: FloatArray  # bounded
    noise: float
    unevenness: float
    determined: float
    value: FloatArray
    influence: FloatArray  # the contribution of each cluster of repetitions
    modelled: FloatArray  # variance from the noise of the samples alone
    shape: FloatArray  # variance
    moved: FloatArray  # change per ns of offset
    least: FloatArray  # change if samples printed as 1 are higher than assumed
    inside: FloatArray  # by group the variance of samples inside one kernel; NaN if there are none


def _fit(problem: Problem, series: list[Series], like: Fit | None = None) -> Fit:
    target = np.stack([problem.shares.gathered(np.where(problem.used, each.values, 0.0)) for each in series])
    squares = np.array([float(used @ used) for each in series for used in (each.values[problem.used],)])
    return fit_rates(Sums(problem.matrix, target, squares, int(problem.used.sum())), problem.layout, like=like)


def _outliers(problem: Problem, series: list[Series], predicted: list[FloatArray], noise: FloatArray) -> BoolArray:
    """Samples far from the usual ones of their kernels, in any metric."""
    far = np.zeros(problem.shares.samples, np.bool_)
    weight = np.maximum(problem.shares.gathered(np.ones(problem.shares.samples)), 1e-12)
    for each, expected, usually in zip(series, predicted, noise, strict=True):
        away = np.where(problem.used, np.abs(each.values - expected), 0.0)
        usual = problem.shares.applied(problem.shares.gathered(away) / weight)
        step = each.step * each.upper / 100 if np.isfinite(each.upper) else 0.0
        far |= away > _FAR * np.maximum(usual, usually / 4) + 2 * step
    return far if far.sum() <= _NEAR_ALL * problem.used.sum() else np.zeros_like(far)


def _linear(problem: Problem, series: list[Series], fit: Fit) -> list[_Linear]:
    factor, means = fit.systems.factor(), problem.means
    residual = [
        np.where(problem.used, each.values - problem.shares.applied(rates), 0.0) for each, rates in zip(series, fit.rates, strict=True)
    ]
    scores = np.stack([_scores(problem, each) for each in residual])
    inside = _inside(problem)
    later = np.stack(
        [problem.shares.gathered(np.where(problem.used, problem.edges.change(problem.layout, rates), 0.0)) for rates in fit.rates]
    )
    least = np.stack([problem.shares.gathered(each.times_cycles(np.where(problem.used & each.least, LEFT_OPEN, 0.0))) for each in series])
    answers = factor.solve(np.concatenate([scores, later[:, None], least[:, None]], axis=1).swapaxes(1, 2)).swapaxes(1, 2)
    influence = means.of(answers)
    asked = means.weighted(problem.matrix)
    noise2 = fit.noise[:, None] ** 2
    (every,), (softer,), (stiffer,) = (spreads(factor if not way else fit.stiffer(1 + way * _LITTLE).factor(), asked) for way in (0, -1, 1))
    shape = np.maximum(noise2 * (softer - stiffer) / (2 * _LITTLE), 0.0)
    modelled = np.maximum(noise2 * every - shape, 0.0)
    upper = np.array([each.upper for each in series])
    bounded = bounded_solution(fit.systems, fit.target, upper)
    return [
        _Linear(
            bounded[row], float(fit.noise[row]), float(fit.unevenness[row]), float(fit.determined[row]), means.of(fit.rates[row]),
            influence[row, :-2],
            modelled[row], shape[row], influence[row, -2], influence[row, -1],
            _variance_inside(problem.layout.groups, inside, residual[row]),
        )
        for row in range(len(series))
    ]  # fmt: skip


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


def _variance_inside(groups: int, inside: tuple[IntArray, IntArray], residual: FloatArray) -> FloatArray:
    """By group the scatter of the samples inside it."""
    sample, group = inside
    count = np.bincount(group, minlength=groups)
    total = np.bincount(group, residual[sample] ** 2, groups)
    return np.where(count > 1, total / np.maximum(count, 1), np.nan)


def _scores(problem: Problem, residual: FloatArray) -> FloatArray:
    """The deviation of each cluster of repetitions from the mean of all, by column."""
    shares = problem.shares
    place = problem.cluster[shares.sample] * shares.columns + shares.column
    scores = summed(place, shares.share * residual[shares.sample], problem.clusters * shares.columns)
    scores = scores.reshape(problem.clusters, shares.columns)
    few = np.sqrt(problem.clusters / max(problem.clusters - 1, 1))
    centred: FloatArray = few * (scores - scores.mean(axis=0))
    return centred


def _estimate(problem: Problem, found: _Linear, clock: _Linear | None, series: Series) -> Estimate:
    """The metric itself: the estimate, divided by the cycles if it is a share of cycles."""
    layout = problem.layout
    value, bounded = found.value, problem.means.of(found.rates)
    influence, modelled, shape, moved, least = found.influence, found.modelled, found.shape, found.moved, found.least
    inside = found.inside
    parts, idle = found.rates[:-1], float(found.rates[-1])
    if clock is not None:
        cycles = np.maximum(clock.value, 1e-12)
        value, bounded = value / cycles, bounded / cycles
        influence = (influence - value * clock.influence) / cycles
        modelled = (modelled + value**2 * clock.modelled) / cycles**2
        shape = (shape + value**2 * clock.shape) / cycles**2
        moved = (moved - value * clock.moved) / cycles
        least = least / cycles
        inside = inside / cycles[: layout.groups] ** 2
        parts = parts / np.maximum(clock.rates[:-1], 1e-12)
        idle = idle / max(float(clock.rates[-1]), 1e-12)
    sampling = np.sqrt(np.maximum((influence**2).sum(axis=0), modelled))
    timing = np.abs(moved) * problem.shift_error_ns
    rounding = np.hypot(_rounding(problem, inside) * series.step, least) if series.percent else np.zeros_like(value)
    error = np.sqrt(sampling**2 + shape + timing**2 + rounding**2)
    half = _quantile(problem.spread - 1) * error
    edges = _smear(problem, value, idle, smear_ns(found.unevenness, memory=series.memory))
    upper = 100.0 if series.percent else np.inf
    low, high = np.clip(value - half, 0, upper), np.clip(value + half, 0, upper)
    unknown = np.where(problem.means.ran > 0, 0.0, np.nan)
    known = Values(
        np.clip(bounded, low, high) + unknown,
        np.hypot(error, edges) + unknown,
        low + unknown,
        high + unknown,
        sampling,
        np.sqrt(shape),
        timing,
        rounding,
        edges,
    )
    sets = np.arange(layout.groups, len(value))
    ordered = layout.parts[problem.place]
    column = np.repeat(layout.first[:-1][problem.place], ordered)
    column += np.arange(int(ordered.sum())) - np.repeat(np.cumsum(ordered) - ordered, ordered)
    return Estimate(
        known.take(problem.place), known.take(sets), np.minimum(parts, upper)[column], min(idle, upper), found.noise,
        found.determined, series.percent,
    )  # fmt: skip


def _smear(problem: Problem, value: FloatArray, idle: float, apart_ns: float) -> FloatArray:
    """Error from the begins and ends of kernels, of groups and of sets."""
    groups = smeared(problem.beside, problem.layout, value[: problem.layout.groups], idle, apart_ns)
    return np.concatenate([groups, np.sqrt(groups**2 @ problem.means.sets**2)])


def _rounding(problem: Problem, inside: FloatArray) -> FloatArray:
    """Error from the rounding of samples to whole numbers: for kernels longer than samples, whose inner samples are rounded in the same way
    unless they scatter.

    ``inside`` is their variance, rounding included.  The mean of rounded values is off by the Fourier series of the sawtooth, of which
    Gaussian scatter of standard deviation s damps the k-th term by exp(-2 pi² k² s²) (Widrow and Kollár 2008).
    """
    layout = problem.layout
    scatter2 = np.maximum(np.nan_to_num(inside) - _ROUNDED2, 0.0)
    damped = np.exp(-4 * np.pi**2 * _HARMONICS**2 * scatter2[:, None]) / (2 * np.pi**2 * _HARMONICS**2)
    inner = np.sqrt(damped.sum(axis=1)) * np.maximum(0.0, 1.0 - problem.period_ns / np.maximum(layout.duration_ns, 1.0))
    rounding: FloatArray = np.sqrt(np.concatenate([inner**2, inner**2 @ problem.means.sets**2]))
    return rounding


def _quantile(freedom: FloatArray) -> FloatArray:
    """Half the width of Student's 90 % interval (Cornish and Fisher's expansion: within 1 % from 3 degrees of freedom on)."""
    z, n = 1.6448536269514722, np.maximum(freedom, 1.0)
    terms = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    result: FloatArray = terms + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    return result
