"""Intervals beside a bound hold every value equally often."""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.counters.limits import limits

NORMAL = 1.6448536269514722


def ends(values: list[float], upper: float = np.inf) -> tuple[list[float], list[float]]:
    value = np.array(values)
    low, high = limits(value, np.ones(len(value)), np.full(len(value), NORMAL), upper)
    return low.round(2).tolist(), high.round(2).tolist()


def test_they_are_those_that_feldman_and_cousins_print() -> None:
    """Their table X, 90 %: a Gaussian whose mean is not below 0."""
    low, high = ends([-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    assert np.allclose(
        high, [0.26, 0.40, 0.81, 1.18, 1.64, 2.14, 2.64, 3.14, 3.64, 4.14, 4.64], atol=0.011
    )
    assert np.allclose(low, [0, 0, 0, 0, 0, 0, 0, 0.22, 0.58, 1.02, 1.37], atol=0.08)


@pytest.mark.parametrize("truth", [0.0, 0.01, 0.3, 1.0, 2.0, 4.0, 9.0, 9.9, 10.0])
def test_nine_of_ten_hold_the_truth_wherever_it_is(truth: float) -> None:
    value = truth + np.random.default_rng(1).normal(size=200_000)
    low, high = limits(value, np.ones(len(value)), np.full(len(value), NORMAL), 10.0)
    assert ((low <= truth) & (truth <= high)).mean() == pytest.approx(0.9, abs=0.004)


def test_far_from_bounds_they_are_the_usual_ones() -> None:
    low, high = limits(np.array([50.0]), np.array([2.0]), np.array([2.0]), 100.0)
    assert (low[0], high[0]) == pytest.approx((46.0, 54.0))


def test_near_the_upper_bound_they_are_the_mirror_image() -> None:
    low, high = ends([0.5, 9.5], 10.0)
    assert np.allclose([low[1], high[1]], [10 - high[0], 10 - low[0]])


def test_a_value_that_is_known_exactly_has_no_width() -> None:
    low, high = limits(np.array([0.0, 3.0, 10.0]), np.zeros(3), np.full(3, NORMAL), 10.0)
    assert np.allclose(low, [0, 3, 10]) and np.allclose(high, [0, 3, 10])
