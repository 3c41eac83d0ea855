"""Systems on a ring give what a dense solver gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nsysmap.counters.bounded import bounded_solution
from nsysmap.counters.near_inverse import spreads, weighted
from nsysmap.counters.ring import LEAST_BLOCK, Gram, Systems, gram_of_dense

Array = NDArray[np.float64]


def ring_gram(size: int, reach: int, seed: int) -> Gram:
    random = np.random.default_rng(seed)
    ring = size - 1
    reach = min(reach, (ring - 1) // 2)
    band = random.normal(size=(reach + 1, ring))
    edge = random.normal(size=ring) * 0.1
    band[0] = 0
    bare = Gram(band, edge, 0.0).full
    weight = np.abs(bare).sum(axis=1) + random.uniform(0.1, 2, size)
    band[0] = weight[:-1]
    return Gram(band, edge, float(weight[-1]))


def systems(size: int, reach: int, seed: int, metrics: int = 3) -> tuple[Systems, Array]:
    """Some systems, and the same with all their entries."""
    gram = ring_gram(size, reach, seed)
    random = np.random.default_rng(seed + 1)
    own, beside = (
        random.uniform(1.0, 2.0, (metrics, size)),
        random.uniform(-0.5, 0.5, (metrics, size - 2)),
    )
    full = np.repeat(gram.full[None], metrics, axis=0)
    at, step = np.arange(size), np.arange(size - 2)
    full[:, at, at] += own
    full[:, step, step + 1] += beside
    full[:, step + 1, step] += beside
    return Systems(gram, own, beside), full


def dense_of(gram: Gram) -> Array:
    """By the obvious loop."""
    ring = gram.ring
    full = np.zeros((ring + 1, ring + 1))
    for away in range(gram.reach + 1):
        for row in range(ring):
            column = (row + away) % ring
            full[row, column] += gram.band[away, row]
            if away:
                full[column, row] += gram.band[away, row]
    full[:ring, ring] = full[ring, :ring] = gram.edge
    full[ring, ring] = gram.last
    return full


sizes = {"size": st.integers(3, 300), "reach": st.integers(0, 40), "seed": st.integers(0, 1000)}


@given(**sizes)
@settings(max_examples=40, deadline=None)
def test_determinant_and_residual_are_the_dense_systems(size: int, reach: int, seed: int) -> None:
    made, full = systems(size, reach, seed)
    assert np.allclose(made.factor().log_determinant, np.linalg.slogdet(full)[1])
    target = np.random.default_rng(seed).normal(size=(3, size))
    squares = np.full(3, 1e3)
    left, logarithm = made.left(target, squares)
    assert np.allclose(logarithm, np.linalg.slogdet(full)[1])
    assert np.allclose(
        left, squares - (target * np.linalg.solve(full, target[:, :, None])[:, :, 0]).sum(axis=1)
    )


@given(**sizes)
@settings(max_examples=40, deadline=None)
def test_a_ring_is_solved_as_a_dense_system(size: int, reach: int, seed: int) -> None:
    some, full = systems(size, reach, seed)
    assert np.allclose(some.gram.full, dense_of(some.gram))
    target = np.random.default_rng(seed).normal(size=(3, size, 2))
    found = some.factor().solve(target)
    assert np.allclose(found, np.linalg.solve(full, target))
    assert np.allclose(some.factor().solve(target[:, :, 0]), found[:, :, 0])
    assert np.allclose(some.times(target[:, :, 0]), (full @ target[:, :, :1])[:, :, 0])


@given(**sizes)
@settings(max_examples=40, deadline=None)
def test_spreads_of_sums_are_those_of_the_whole_inverse(size: int, reach: int, seed: int) -> None:
    some, full = systems(size, reach, seed)
    random = np.random.default_rng(seed)
    begin = random.integers(0, size - 1, 12)
    length = np.minimum(random.integers(1, 30, 12), size - begin)
    number = np.repeat(np.arange(12), length)
    column = (
        np.repeat(begin, length)
        + np.arange(len(number))
        - np.repeat(np.cumsum(length) - length, length)
    )
    # a sum over what lies far apart
    number, column = (
        np.append(number, [12, 12]),
        np.append(column, [0, size // 2]),
    )
    number, column = (
        np.append(number, [3, 4, 5]),
        np.append(column, [size - 1, size - 1, size - 2]),
    )  # the common unknown, and one beside it
    weight = random.normal(size=len(number))
    (found,) = spreads(some.factor(), weighted(some.gram, column, number, weight, 13))
    plain = np.zeros((size, 13))
    np.add.at(plain, (column, number), weight)
    assert np.allclose(found, np.einsum("ik,mij,jk->mk", plain, np.linalg.inv(full), plain))


def test_solutions_are_exact_where_long_samples_hardly_determine_the_rates_of_short_kernels() -> (
    None
):
    # each sample covers 90 columns, as one of 100 µs does where kernels take 3 µs
    size, long = (
        500,
        90,
    )
    random = np.random.default_rng(1)
    share = np.zeros((400, size))
    for row in range(len(share)):
        share[row, (int(random.integers(size - 1)) + np.arange(long)) % (size - 1)] = 1 / long
    made = Systems(
        gram_of_dense(share.T @ share), np.full((1, size), 1e-6), np.zeros((1, size - 2))
    )
    assert made.gram.blocks.size >= long
    rates = random.uniform(0, 100, (1, size))
    target = made.times(rates)
    off = made.times(made.factor().solve(target)) - target
    assert np.abs(off).max() < 1e-9 * np.abs(target).max()


@given(**sizes)
@settings(max_examples=30, deadline=None)
def test_fixed_unknowns_couple_with_none(size: int, reach: int, seed: int) -> None:
    some, full = systems(size, reach, seed)
    fixed = np.random.default_rng(seed).random((3, size)) < 0.3
    expected = full * ~fixed[:, :, None] * ~fixed[:, None, :] + np.eye(size) * fixed[:, :, None]
    target = np.random.default_rng(seed).normal(size=(3, size))
    assert np.allclose(
        some.factor(fixed=fixed).solve(target),
        np.linalg.solve(expected, target[:, :, None])[:, :, 0],
    )


def test_a_long_ring_is_cut_and_a_short_one_is_not() -> None:
    blocks = ring_gram(600, 5, 1).blocks
    assert LEAST_BLOCK <= blocks.size < 2 * LEAST_BLOCK
    assert 5 <= 599 - blocks.count * blocks.size < 10
    assert ring_gram(60, 5, 1).blocks.count == 0
    assert ring_gram(600, 200, 1).blocks.count == 0


@given(size=st.integers(3, 7), seed=st.integers(0, 2000))
@settings(max_examples=60, deadline=None)
def test_bounds_give_the_best_of_all_choices_of_fixed_unknowns(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    some, (matrix, _) = systems(size, 3, seed, metrics=2)
    target, upper = random.normal(size=(2, size)) * 5, 1.0
    best, least = np.zeros(size), float("inf")
    for choice in np.ndindex(*[3] * size):
        fixed = np.array(choice) > 0
        answer = np.where(np.array(choice) == 2, upper, 0.0)
        if not fixed.all():
            free = ~fixed
            answer[free] = np.linalg.solve(
                matrix[np.ix_(free, free)],
                target[0][free] - matrix[np.ix_(free, fixed)] @ answer[fixed],
            )
        cost = 0.5 * answer @ matrix @ answer - target[0] @ answer
        if (answer >= -1e-9).all() and (answer <= upper + 1e-9).all() and cost < least:
            best, least = answer, float(cost)
    assert np.allclose(bounded_solution(some, target, np.full(2, upper))[0], best, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_on_a_long_ring_leave_no_pull_inwards(seed: int) -> None:
    some, full = systems(500, 6, seed)
    target = np.random.default_rng(seed).normal(size=(3, 500)) * 20
    answers = bounded_solution(some, target, np.array([1.0, 2.0, np.inf]))
    for matrix, right, answer, upper in zip(full, target, answers, (1.0, 2.0, np.inf), strict=True):
        pull = right - matrix @ answer
        assert answer.min() >= 0 and answer.max() <= upper
        assert (pull[answer == 0] <= 1e-6).all() and (pull[answer == upper] >= -1e-6).all()
        assert np.abs(pull[(answer > 0) & (answer < upper)]).max(initial=0) < 1e-6


@given(**sizes, run=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_merged_unknowns_are_those_of_the_dense_matrix(
    size: int, reach: int, seed: int, run: int
) -> None:
    gram = ring_gram(size, reach, seed)
    into = np.arange(gram.ring) // run
    sums = np.zeros((size, int(into[-1]) + 2))
    sums[np.arange(size), np.append(into, into[-1] + 1)] = 1.0
    assert np.allclose(gram.merged(into).full, sums.T @ gram.full @ sums)
