"""Rates in the parts of each kernel, from normal equations, smoothed only as much as the samples
require; all metrics at once.

Model: y = A z + noise(sigma²), z the rates of the parts.  Neighbouring parts of one kernel differ
by a Gaussian step of variance k² s² d: s the level of the kernel, d the parts' distance in µs, k
the metric's unevenness, estimated from the samples (evidence procedure, MacKay 1992).  The mean of
a kernel is free.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.counters.means import means_of
from nsysmap.counters.near_inverse import Weighted, spreads, weighted
from nsysmap.counters.ring import Factor, Gram, Systems
from nsysmap.counters.shares import ColumnLayout

_ROUNDS = (2, 3)  # with one level for all kernels, then with each its own
_AGAIN = 2  # rounds if a fit to nearly the same samples is known
_START = 0.5  # prior unevenness per square root of a µs: that of kernels on an H100
_TRUST = 4.0  # weight of this prior, as a number of steps
_NEWTON = 10  # iterations
_FLOOR = 0.02  # share of the highest level: no kernel is assumed to be more even
FEW = 20.0
"""Samples per part of a kernel: with more, they determine all, and the leverage of a sample is
below 5 % and is neglected.
"""
_VAGUE = 10.0  # ratio to the size of the samples: prior width of a rate
_LIKELY = 1.0  # the same where clocks are compared
_SOLVABLE = 1e-12  # share of the largest entry: less on the diagonal is lost in rounding
_TINY = 1e-12  # keeps a division by nothing finite


@dataclass(frozen=True)
class Sums:
    """The samples of some metrics as sums: A'A, one row per metric of A'y and of y'y, and the
    number of samples.

    ``rounding2`` is the variance of rounding, by metric: rates explain samples no better than that.
    Repetitions do not average it out if samples scatter less than they are rounded, and the best
    fit then follows the steps between rounded values as if they were kernels.
    """

    matrix: Gram
    target: FloatArray
    squares: FloatArray
    samples: int
    rounding2: FloatArray

    def merged(self, into: IntArray) -> Sums:
        """The sums for parts that are merged: part i becomes part into[i]."""
        target = np.stack([np.append(np.bincount(into, row[:-1]), row[-1]) for row in self.target])
        return Sums(self.matrix.merged(into), target, self.squares, self.samples, self.rounding2)

    @property
    def size(self) -> FloatArray:
        """Root mean square of each metric's samples."""
        size = np.sqrt(self.squares / max(self.samples, 1))
        return np.where(size > 0, size, 1.0)


@dataclass(frozen=True)
class Fit:
    """Rates of the columns, one row per metric, and the data for their errors."""

    rates: FloatArray
    target: FloatArray  # A'y
    factor: Factor  # of the systems
    systems: Systems  # the normal equations including the prior
    stiffness: FloatArray  # the prior's part: of each step between parts
    vague: FloatArray  # the prior's part: on every diagonal entry
    left: IntArray  # column to the left of each step; the right one is the next
    noise: FloatArray  # standard deviation of a sample
    unevenness: FloatArray
    determined: FloatArray  # effective number of steps that the samples determine
    level: FloatArray

    def state(self, rows: slice = slice(None)) -> State:
        """What fits to nearly the same samples can start from, for these metrics."""
        return State(
            self.rates[rows],
            self.noise[rows] ** 2,
            self.unevenness[rows],
            self.determined[rows],
            self.level[rows],
        )

    def stiffer(self, times: float) -> Systems:
        """The normal equations with the priors' weight multiplied by that factor."""
        return _systems(self.systems.gram, self.left, times * self.stiffness, times * self.vague)


@dataclass(frozen=True)
class _Steps:
    left: IntArray
    group: IntArray
    distance_us: FloatArray
    weighted: Weighted
    each: Weighted | None  # every unknown, where samples may be too few to determine all kernels


@dataclass
class State:
    """The values that change from round to round."""

    rates: FloatArray
    noise2: FloatArray
    unevenness: FloatArray
    determined: FloatArray
    level: FloatArray


def fit_rates(sums: Sums, layout: ColumnLayout, *, like: State | None = None) -> Fit:
    """The most probable rates, without bounds. ``like`` is what a fit to nearly the same samples
    ended with.
    """
    steps = _steps_of(sums.matrix, layout, few=sums.samples <= FEW * layout.columns)
    if like is None:
        state = _begun(sums, layout)
        for _ in range(_ROUNDS[0]):
            _round(sums, layout, steps, state)
        state.level = _levels(sums, layout, steps, state)
        rounds = _ROUNDS[1]
    else:
        state, rounds = replace(like), _AGAIN
    for _ in range(rounds):
        _round(sums, layout, steps, state)
    weight, vague = _weights(sums, steps, state)
    systems = _systems(sums.matrix, steps.left, weight, vague)
    factor = systems.factor()
    return Fit(
        factor.solve(sums.target), sums.target, factor, systems, weight, vague, steps.left,
        np.sqrt(state.noise2), state.unevenness,
        state.determined, state.level,
    )  # fmt: skip


def quick_misfit(sums: Sums, like: Fit) -> FloatArray:
    """The misfit of the model to the samples, by metric, with steps as stiff as in ``like``: minus
    the logarithm of the evidence.

    Over all rates of about the size of the samples and all strengths of the noise, up to a
    constant: enough to compare offsets of the clocks.  The fit of the best rates alone is no
    criterion if samples are few, because impossible rates fit them at wrong offsets.
    """
    return _misfit(sums, *_quick_systems(sums, like).left(sums.target, sums.squares))


def quick_fit(sums: Sums, like: Fit) -> tuple[FloatArray, FloatArray]:
    """The misfit of the rates that explain the samples best with steps as stiff as those of
    ``like``, and these rates.
    """
    factor = quick_factor(sums, like)
    rates = factor.solve(sums.target)
    return (
        _misfit(sums, sums.squares - (rates * sums.target).sum(axis=1), factor.log_determinant),
        rates,
    )


def quick_factor(sums: Sums, like: Fit) -> Factor:
    """A factorisation that solves for the rates with equally stiff steps."""
    return _quick_systems(sums, like).factor()


def _quick_systems(sums: Sums, like: Fit) -> Systems:
    vague = np.maximum(like.noise / (_LIKELY * sums.size), _SOLVABLE) ** 2
    return _systems(sums.matrix, like.left, like.stiffness, vague)


def _misfit(sums: Sums, squares: FloatArray, determinant: FloatArray) -> FloatArray:
    """Minus the logarithm of the evidence, from the residual sum of squares, what the prior adds
    included.
    """
    residual = np.maximum(squares, 1e-10 * sums.squares + _TINY) / max(sums.samples, 1)
    least = np.maximum(residual, sums.rounding2)
    misfit: FloatArray = (
        0.5 * sums.samples * (np.log(least) + residual / least - 1.0) + 0.5 * determinant
    )
    return misfit


def _begun(sums: Sums, layout: ColumnLayout) -> State:
    metrics = len(sums.target)
    level = np.repeat(sums.size[:, None], layout.groups, axis=1)
    start = np.full(metrics, _START)
    return State(
        np.zeros(sums.target.shape), 0.01 * sums.size**2 + _TINY, start, np.zeros(metrics), level
    )


def _round(sums: Sums, layout: ColumnLayout, steps: _Steps, state: State) -> None:
    """Solve, then estimate noise and unevenness from the solution."""
    weight, vague = _weights(sums, steps, state)
    factor = _systems(sums.matrix, steps.left, weight, vague).factor()
    rates = factor.solve(sums.target)
    count = len(steps.left)
    apart, *each = spreads(factor, steps.weighted, *([] if steps.each is None else [steps.each]))
    told = np.clip(count - (weight * apart).sum(axis=1), 0.0, count)
    jumps = ((rates[:, steps.left + 1] - rates[:, steps.left]) ** 2 / _variance(steps, state)).sum(
        axis=1
    )
    # number of kernels that take no degrees of freedom, by metric
    undetermined = vague * each[0].sum(axis=1) if each else 0.0
    free = np.maximum(sums.samples - (layout.columns - count) - told + undetermined, 1.0)
    state.rates = rates
    state.noise2 = np.maximum(_residual(sums, rates) / free, sums.rounding2)
    state.unevenness = _most_probable(jumps, told)
    state.determined = told / max(count, 1)


def _most_probable(jumps: FloatArray, told: FloatArray) -> FloatArray:
    """The most probable unevenness for these sums of squared steps (at an unevenness of 1), of
    which that many are determined.

    Its logarithm is known beforehand as well as some steps would tell it (Gaussian): what many
    determined steps tell is then not drawn to a larger one, as by a prior of so many more squared
    steps.
    """
    relative = np.maximum(jumps / _START**2, _TINY)
    logarithm = np.maximum(0.5 * np.log(relative / np.maximum(told, _TINY)), -told / (2 * _TRUST))
    for _ in range(_NEWTON):
        scaled = relative * np.exp(-2 * logarithm)
        logarithm += (scaled - told - 2 * _TRUST * logarithm) / (2 * scaled + 2 * _TRUST)
    return _START * np.exp(logarithm)


def _residual(sums: Sums, rates: FloatArray) -> FloatArray:
    """The residual sum of squares of these rates, by metric."""
    left = (
        sums.squares
        - 2 * (rates * sums.target).sum(axis=1)
        + (rates * sums.matrix.times(rates)).sum(axis=1)
    )
    residual: FloatArray = np.maximum(left, 1e-10 * sums.squares + _TINY)
    return residual


def _levels(sums: Sums, layout: ColumnLayout, steps: _Steps, state: State) -> FloatArray:
    """The level of each kernel's rate, with its uncertainty."""
    means = means_of(layout, np.full(layout.groups, -1), 0)
    factor = _systems(sums.matrix, steps.left, *_weights(sums, steps, state)).factor()
    (error,) = spreads(factor, means.weighted(sums.matrix))
    mean = means.of(state.rates)
    level = np.sqrt(np.maximum(mean, 0.0) ** 2 + state.noise2[:, None] * np.maximum(error, 0.0))
    highest = (
        level[:, layout.executions > 0].max(axis=1, keepdims=True)
        if (layout.executions > 0).any()
        else sums.size[:, None]
    )
    result: FloatArray = np.maximum(level, _FLOOR * highest)
    return result


def _weights(sums: Sums, steps: _Steps, state: State) -> tuple[FloatArray, FloatArray]:
    """The stiffness of each step, and the prior on every diagonal entry."""
    weight = state.noise2[:, None] / (state.unevenness[:, None] ** 2 * _variance(steps, state))
    highest = np.repeat(sums.matrix.diagonal[None], len(weight), axis=0)
    highest[:, steps.left] += weight
    highest[:, steps.left + 1] += weight
    vague = state.noise2 / (_VAGUE * sums.size) ** 2
    return weight, np.maximum(np.maximum(vague, _SOLVABLE * highest.max(axis=1)), _TINY)


def _systems(matrix: Gram, left: IntArray, weight: FloatArray, vague: FloatArray) -> Systems:
    """The normal equations with the steps' stiffness in them."""
    own = np.repeat(vague[:, None], matrix.ring + 1, axis=1)
    own[:, left] += weight
    own[:, left + 1] += weight
    beside = np.zeros((len(weight), matrix.ring - 1))
    beside[:, left] = -weight
    return Systems(matrix, own, beside)


def _variance(steps: _Steps, state: State) -> FloatArray:
    """The variance of each step if the unevenness is 1."""
    variance: FloatArray = np.maximum(state.level[:, steps.group] ** 2 * steps.distance_us, _TINY)
    return variance


def _steps_of(matrix: Gram, layout: ColumnLayout, *, few: bool) -> _Steps:
    """Every pair of neighbouring parts of one kernel."""
    group = np.repeat(np.arange(layout.groups), layout.parts - 1)
    last = np.zeros(layout.columns, np.bool_)
    last[layout.first[1:] - 1] = True
    last[-1] = True
    left = np.flatnonzero(~last)
    count = len(left)
    apart = weighted(
        matrix,
        np.concatenate([left, left + 1]),
        np.tile(np.arange(count), 2),
        np.repeat([-1.0, 1.0], count),
        count,
    )
    # any, for kernels that did not run
    distance = np.where(layout.duration_ns > 0, layout.duration_ns / layout.parts, 1000.0)
    every = np.arange(layout.columns)
    each = weighted(matrix, every, every, np.ones(layout.columns), layout.columns) if few else None
    return _Steps(left, group, distance[group] / 1e3, apart, each)
