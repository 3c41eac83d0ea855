"""Systems on a ring give what a dense solver gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nsysmap.counters.bounded import bounded_solution
from nsysmap.counters.ring import factor, ring_of


def ring_matrix(size: int, reach: int, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    matrix = np.zeros((size, size))
    for row in range(size - 1):
        for away in range(1, reach + 1):
            column = (row + away) % (size - 1)
            matrix[row, column] = matrix[column, row] = random.normal()
    matrix[-1, :-1] = matrix[:-1, -1] = random.normal(size=size - 1) * 0.1
    matrix[np.arange(size), np.arange(size)] = np.abs(matrix).sum(axis=1) + random.uniform(0.1, 2, size)
    return matrix


@given(size=st.integers(2, 420), reach=st.integers(1, 60), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_a_ring_is_solved_as_a_dense_system(size: int, reach: int, seed: int) -> None:
    matrix = ring_matrix(size, min(reach, max((size - 1) // 3, 1)), seed)
    target = np.random.default_rng(seed).normal(size=(size, 3))
    ring = ring_of(matrix)
    assert np.allclose(factor(matrix, ring).solve(target), np.linalg.solve(matrix, target))
    assert np.allclose(factor(matrix, ring).solve(target[:, 0]), np.linalg.solve(matrix, target[:, 0]))


def test_a_long_ring_is_cut_and_a_short_one_is_not() -> None:
    assert ring_of(ring_matrix(600, 5, 1)).block == 48
    assert ring_of(ring_matrix(100, 5, 1)).block == 0
    assert ring_of(ring_matrix(600, 200, 1)).block == 0


@given(size=st.integers(2, 7), seed=st.integers(0, 2000))
@settings(max_examples=60, deadline=None)
def test_bounds_give_the_best_of_all_choices_of_fixed_unknowns(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(size + 3, size))
    matrix, target, upper = rows.T @ rows + 0.1 * np.eye(size), random.normal(size=size) * 5, 1.0
    best, least = np.zeros(size), float("inf")
    for choice in np.ndindex(*[3] * size):
        fixed = np.array(choice) > 0
        answer = np.where(np.array(choice) == 2, upper, 0.0)
        if not fixed.all():
            free = ~fixed
            answer[free] = np.linalg.solve(matrix[np.ix_(free, free)], target[free] - matrix[np.ix_(free, fixed)] @ answer[fixed])
        cost = 0.5 * answer @ matrix @ answer - target @ answer
        if (answer >= -1e-9).all() and (answer <= upper + 1e-9).all() and cost < least:
            best, least = answer, float(cost)
    assert np.allclose(bounded_solution(matrix, target, upper, ring_of(matrix)), best, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_on_a_long_ring_leave_no_pull_inwards(seed: int) -> None:
    matrix = ring_matrix(500, 6, seed)
    target = np.random.default_rng(seed).normal(size=500) * 20
    answer = bounded_solution(matrix, target, 1.0, ring_of(matrix))
    pull = target - matrix @ answer
    assert answer.min() >= 0 and answer.max() <= 1
    assert (pull[answer == 0] <= 1e-6).all() and (pull[answer == 1] >= -1e-6).all()
    assert np.abs(pull[(answer > 0) & (answer < 1)]).max(initial=0) < 1e-6
