"""Whether two means differ by more than their noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsysmap.comparison.noise import (
    FEWEST,
    beyond_chance,
    difference,
    effective_size,
    factor_between,
    mean_of,
    student_quantile,
    two_sided,
)


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (4, 2.7764), (10, 2.2281), (100, 1.9840)]
)
def test_students_quantiles_are_those_of_the_tables(freedom: float, value: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(value, abs=1e-4)
    assert two_sided(value, freedom) == pytest.approx(0.05, abs=1e-5)


def false_calls(correlation: float, count: int, pairs: int = 300) -> float:
    dice = np.random.default_rng(7)

    def series() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        noise = dice.normal(size=count + 50)
        values = np.zeros(count + 50)
        for at in range(1, count + 50):
            values[at] = correlation * values[at - 1] + noise[at]
        return values[50:]

    return (
        sum(difference(mean_of(series()), mean_of(series())).significant for _ in range(pairs))
        / pairs
    )


def test_independent_inferences_are_called_different_one_time_in_twenty() -> None:
    assert 0.02 <= false_calls(0.0, 50) <= 0.08


def test_serial_correlation_is_allowed_for() -> None:
    assert false_calls(0.5, 100) <= 0.10  # without it: 0.26


def test_a_difference_of_three_standard_errors_is_called() -> None:
    dice = np.random.default_rng(3)
    before, after = dice.normal(100, 5, 100), dice.normal(104, 5, 100)
    found = difference(mean_of(before), mean_of(after))
    assert found.significant
    assert found.low < 4 < found.high


def test_alternating_values_tell_no_more_than_they_are() -> None:
    assert effective_size(np.array([1.0, -1.0] * 20)) <= 40


def test_a_drift_within_a_side_widens_the_interval() -> None:
    dice = np.random.default_rng(5)
    level = dice.normal(100, 1, 60)
    rising = level + np.linspace(0, 10, 60)
    assert mean_of(level).drift == 0
    assert 4 < mean_of(rising).drift < 6
    assert not difference(mean_of(rising[:30]), mean_of(rising[30:])).significant


def test_too_few_inferences_are_no_test() -> None:
    few = mean_of(np.arange(FEWEST - 1, dtype=np.float64))
    assert math.isnan(few.error)
    assert not difference(few, few).significant


def test_of_several_tests_the_smallest_chances_hold_first() -> None:
    assert beyond_chance([0.2, 0.001, math.nan, 0.03]) == [False, True, False, False]
    assert beyond_chance([0.01, 0.02]) == [True, True]


def test_a_factor_is_found_whatever_constant_is_added_and_whichever_side_is_first() -> None:
    dice = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        truth = dice.uniform(1_500, 12_000, 40)
        x, y = truth + dice.normal(size=40) * 30, 1.04 * truth - 200 + dice.normal(size=40) * 30
        y[:6] *= dice.uniform(0.5, 2.0, 6)
        found, back = factor_between(x, y), factor_between(y, x)
        assert back.value == pytest.approx(1 / found.value)
        assert (back.low, back.high) == pytest.approx((1 / found.high, 1 / found.low))
        assert found.value == pytest.approx(1.04, abs=0.02)
        held += found.low <= 1.04 <= found.high
    assert held >= 95


def test_the_slope_between_is_the_median_of_those_of_all_pairs() -> None:
    dice = np.random.default_rng(6)
    x = dice.integers(0, 9, 25).astype(float)
    y = x + dice.normal(size=25)
    slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i in range(25) for j in range(25) if x[i] < x[j]]
    others = [(x[j] - x[i]) / (y[j] - y[i]) for i in range(25) for j in range(25) if y[i] < y[j]]
    assert factor_between(x, y).value == pytest.approx(
        math.sqrt(np.median(slopes) / np.median(others))
    )
    assert math.isnan(factor_between(np.ones(9), np.arange(9.0)).value)
