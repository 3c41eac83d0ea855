"""One metric's rates in the parts of each kernel, from normal equations, smoothed only as far as the samples ask.

Model: y = A z + noise(sigma²), z the rates of the parts.  Neighbouring parts of one kernel differ by a Gaussian step of variance
k² s² d: s the level of the kernel, d the parts' distance in µs, k the metric's unevenness, which the samples tell (evidence
procedure, MacKay 1992).  The mean of a kernel is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray, IntArray
from nsysmap.counters.ring import Factor, Ring, factor
from nsysmap.counters.shares import Layout

_ROUNDS = (2, 3)  # with one level for all kernels, then with each its own
_START = 0.5  # unevenness per square root of a µs before the samples tell it: that of an H100's kernels
_TRUST = 4.0  # steps that this first value counts for
_FLOOR = 0.02  # of the highest level: no kernel is known to be more even than that
_VAGUE = 10.0  # times the size of the samples: what a rate can be before any sample is seen
_SOLVABLE = 1e-12  # of the largest entry: less on the diagonal is lost in rounding
_PROBES = 16  # random vectors that tell a trace
_TINY = 1e-12


@dataclass(frozen=True)
class Sums:
    """What the samples say of one metric, as sums: A'A, A'y, y'y and how many there are."""

    matrix: FloatArray
    target: FloatArray
    squares: float
    samples: int

    @property
    def size(self) -> float:
        """Root mean square of the samples."""
        return float(np.sqrt(self.squares / max(self.samples, 1))) or 1.0


@dataclass(frozen=True)
class Fit:
    """Rates of the columns, and what their errors are made from."""

    rates: FloatArray
    system: FloatArray  # the normal equations with what is not the samples' in them
    target: FloatArray
    factor: Factor
    stiffness: FloatArray  # of each step between parts, that part
    left: IntArray  # column left of each step; the right one is the next
    noise: float  # standard deviation of a sample
    unevenness: float
    determined: float  # of the steps between parts, how many the samples tell


@dataclass(frozen=True)
class _Steps:
    left: IntArray
    group: IntArray
    distance_us: FloatArray


@dataclass
class _State:
    """What changes from round to round."""

    rates: FloatArray
    noise2: float
    unevenness: float
    determined: float
    level: FloatArray
    system: FloatArray  # the normal equations, whose diagonals every round writes anew: they are too large to copy each time


def fit_rates(sums: Sums, layout: Layout, ring: Ring) -> Fit:
    """The most probable rates; bounds are not asked."""
    steps = _steps_of(layout)
    state = _begun(sums, layout)
    for _ in range(_ROUNDS[0]):
        _round(sums, layout, ring, steps, state)
    state.level = _levels(sums, layout, ring, steps, state)
    for _ in range(_ROUNDS[1]):
        _round(sums, layout, ring, steps, state)
    system, weight = _system(sums, steps, state)
    solver = factor(system, ring)
    noise = float(np.sqrt(state.noise2))
    return Fit(solver.solve(sums.target), system, sums.target, solver, weight, steps.left, noise, state.unevenness, state.determined)


def quick_noise(sums: Sums, layout: Layout, ring: Ring) -> float:
    """The noise that a first fit leaves: enough to compare offsets of the clocks."""
    steps = _steps_of(layout)
    state = _begun(sums, layout)
    for _ in range(_ROUNDS[0]):
        _round(sums, layout, ring, steps, state)
    return float(np.sqrt(state.noise2))


def spread_means(layout: Layout) -> FloatArray:
    """The matrix whose columns make each group's mean."""
    weights = np.zeros((layout.columns, layout.groups))
    group = np.repeat(np.arange(layout.groups), layout.parts)
    weights[np.arange(layout.columns - 1), group] = 1.0 / layout.parts[group]
    return weights


def _begun(sums: Sums, layout: Layout) -> _State:
    level = np.full(layout.groups, sums.size)
    return _State(np.zeros(layout.columns), 0.01 * sums.size**2 + _TINY, _START, 0.0, level, sums.matrix.copy())


def _round(sums: Sums, layout: Layout, ring: Ring, steps: _Steps, state: _State) -> None:
    """Solve, then learn noise and unevenness from the answer."""
    system, weight = _system(sums, steps, state)
    solver = factor(system, ring)
    rates = solver.solve(sums.target)
    left = steps.left
    probes = np.random.default_rng(0).choice(np.array([-1.0, 1.0]), (len(left), _PROBES))
    answer = solver.solve(_differences_back(left, np.sqrt(weight)[:, None] * probes, len(rates)))
    apart = np.sqrt(weight)[:, None] * (answer[left + 1] - answer[left])
    told = float(np.clip(len(left) - (probes * apart).sum() / _PROBES, 0.0, len(left)))
    jumps = float(((rates[left + 1] - rates[left]) ** 2 / _variance(steps, state)).sum())
    residual = sums.squares - 2 * float(rates @ sums.target) + float(rates @ (sums.matrix @ rates))
    free = max(sums.samples - (layout.columns - len(left)) - told, 1.0)
    state.rates = rates
    state.noise2 = max(residual, 1e-10 * sums.squares + _TINY) / free
    state.unevenness = float(np.sqrt((jumps + _TRUST * _START**2) / (told + _TRUST)))
    state.determined = told / max(len(left), 1)


def _levels(sums: Sums, layout: Layout, ring: Ring, steps: _Steps, state: _State) -> FloatArray:
    """How high each kernel's rate is, or may be for all that is known."""
    system, _ = _system(sums, steps, state)
    means = spread_means(layout)
    error2 = state.noise2 * np.einsum("ig,ig->g", means, factor(system, ring).solve(means))
    level = np.sqrt(np.maximum(means.T @ state.rates, 0.0) ** 2 + np.maximum(error2, 0.0))
    result: FloatArray = np.maximum(level, _FLOOR * float(level[layout.executions > 0].max(initial=sums.size)))
    return result


def _system(sums: Sums, steps: _Steps, state: _State) -> tuple[FloatArray, FloatArray]:
    """The normal equations with the steps' stiffness in them, and that of each step; valid until the next round."""
    weight = state.noise2 / (state.unevenness**2 * _variance(steps, state))
    system, left, right = state.system, steps.left, steps.left + 1
    own = sums.matrix.diagonal().copy()
    own[left] += weight
    own[right] += weight
    system[left, right] = sums.matrix[left, right] - weight
    system[right, left] = sums.matrix[right, left] - weight
    vague = state.noise2 / (_VAGUE * sums.size) ** 2
    np.fill_diagonal(system, own + max(vague, _SOLVABLE * float(own.max()), _TINY))
    return system, weight


def _variance(steps: _Steps, state: _State) -> FloatArray:
    """Of each step, for an unevenness of 1."""
    variance: FloatArray = np.maximum(state.level[steps.group] ** 2 * steps.distance_us, _TINY)
    return variance


def _differences_back(left: IntArray, values: FloatArray, columns: int) -> FloatArray:
    """The transposed differences of neighbouring parts, times the values."""
    back = np.zeros((columns, values.shape[1]))
    back[left + 1] += values
    back[left] -= values
    return back


def _steps_of(layout: Layout) -> _Steps:
    """Every pair of neighbouring parts of one kernel."""
    group = np.repeat(np.arange(layout.groups), layout.parts - 1)
    last = np.zeros(layout.columns, np.bool_)
    last[layout.first[1:] - 1] = True
    last[-1] = True
    return _Steps(np.flatnonzero(~last), group, (layout.duration_ns / layout.parts)[group] / 1e3)
