"""The fit over bands is the fit that whole matrices give."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nsysmap.counters.means import means_of
from nsysmap.counters.model import Shift
from nsysmap.counters.near_inverse import spreads
from nsysmap.counters.part_rates import Fit, Sums, fit_rates
from nsysmap.counters.problem import Problem, problem_of
from tests.counters.made import sampled, sequence

Array = NDArray[np.float64]
DURATIONS = [4000, 9000, 2500, 14_000, 6000] * 4
RATES = [80.0, 0.0, 35.0, 100.0, 12.5] * 4


def problem_and_fit(period: int) -> tuple[Problem, Fit]:
    work = sequence(DURATIONS, [0, 500, 0, 2000, 0] * 4, 40)
    member = np.array([0, 0, 1, 1, -1] * 4)  # sets whose kernels lie far apart
    problem = problem_of(sampled(work, RATES, period, noise=0.5), work, Shift(), member, 2)
    used = problem.values[:, problem.used]
    target = np.stack([problem.shares.gathered(row) for row in problem.values])
    return problem, fit_rates(
        Sums(problem.matrix, target, (used**2).sum(axis=1), used.shape[1], np.zeros(len(target))),
        problem.layout,
    )


def most_probable(jumps: float, told: float) -> float:
    """Where the likelihood of the determined steps times a log-normal prior, as informative as four
    steps, has no slope: by halving.
    """
    low, high = -30.0, 10.0
    for _ in range(80):
        middle = (low + high) / 2
        rises = jumps / 0.5**2 * np.exp(-2 * middle) - told - 2 * 4 * middle > 0
        low, high = (middle, high) if rises else (low, middle)
    return 0.5 * float(np.exp(low))


def dense_fit(problem: Problem) -> tuple[Array, Array, Array, float]:
    """Rates, normal equations, their part of the steps, and noise: with whole matrices and the
    formulas of the model.
    """
    layout, shares = problem.layout, problem.shares
    matrix = np.zeros((shares.samples, shares.columns))
    np.add.at(matrix, (shares.sample, shares.column), shares.share)
    matrix, values = matrix[problem.used], problem.values[0][problem.used]
    gram, right, samples, columns = (
        matrix.T @ matrix,
        matrix.T @ values,
        len(values),
        shares.columns,
    )
    left = [
        int(first) + at
        for first, parts in zip(layout.first, layout.parts, strict=False)
        for at in range(int(parts) - 1)
    ]
    step = np.zeros((len(left), columns))
    step[np.arange(len(left)), left], step[np.arange(len(left)), np.array(left) + 1] = -1, 1
    group = np.repeat(np.arange(layout.groups), layout.parts - 1)
    distance = (layout.duration_ns / layout.parts)[group] / 1e3
    size = float(np.sqrt(np.mean(values**2)))
    level, noise2, unevenness = np.full(layout.groups, size), 0.01 * size**2, 0.5
    rates = np.zeros(columns)
    means = np.zeros((columns, layout.groups))
    means[np.arange(columns - 1), np.repeat(np.arange(layout.groups), layout.parts)] = np.repeat(
        1 / layout.parts, layout.parts
    )

    def equations() -> tuple[Array, Array]:
        stiff = step.T @ (
            (noise2 / (unevenness**2 * np.maximum(level[group] ** 2 * distance, 1e-12)))[:, None]
            * step
        )
        return gram + stiff + np.eye(columns) * noise2 / (10 * size) ** 2, stiff

    for turn in range(5):
        if turn == 2:
            inverse = np.linalg.inv(equations()[0])
            level = np.sqrt(
                np.maximum(means.T @ rates, 0) ** 2 + noise2 * np.diag(means.T @ inverse @ means)
            )
            level = np.maximum(level, 0.02 * level.max())
        whole, stiff = equations()
        inverse = np.linalg.inv(whole)
        rates = inverse @ right
        told = len(left) - np.trace(inverse @ stiff)
        determined = columns - len(left) + told - np.trace(inverse) * noise2 / (10 * size) ** 2
        jumps = float(((step @ rates) ** 2 / (level[group] ** 2 * distance)).sum())
        noise2 = float(np.sum((values - matrix @ rates) ** 2) / (samples - determined))
        unevenness = most_probable(jumps, told)
    whole, stiff = equations()
    return np.linalg.solve(whole, right), whole, stiff, float(np.sqrt(noise2))


@pytest.mark.parametrize("period", [3000, 8000])
def test_rates_noise_and_errors_are_those_of_whole_matrices(period: int) -> None:
    problem, fit = problem_and_fit(period)
    rates, whole, stiff, noise = dense_fit(problem)
    assert problem.matrix.blocks.count > 0
    assert fit.noise[0] == pytest.approx(noise, rel=1e-6)
    # of percent: couplings of hardly any weight are left out
    assert np.allclose(fit.rates[0], rates, atol=1e-3)
    means = means_of(problem.layout, np.array([0, 0, 1, 1, -1] * 4)[np.argsort(problem.place)], 2)
    plain = np.stack([means.of(row) for row in np.eye(problem.layout.columns)])
    inverse = np.linalg.inv(whole)
    asked = means.weighted(problem.matrix)
    (found,) = spreads(fit.systems.factor(), asked)
    assert np.allclose(found[0], np.diag(plain.T @ inverse @ plain), rtol=1e-4)
    (softer,), (stiffer,) = (
        spreads(fit.stiffer(times).factor(), asked) for times in (0.999, 1.001)
    )
    shape = np.diag(plain.T @ inverse @ stiff @ inverse @ plain)
    assert np.allclose((softer - stiffer)[0] / 0.002, shape, rtol=1e-3, atol=1e-6 * found.max())
