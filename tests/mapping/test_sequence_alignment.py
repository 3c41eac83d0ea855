"""The dynamic programming against an enumeration of every alignment."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.mapping.order.sequence_alignment import AlignmentCosts, best_path

weights = st.floats(-6, 6, allow_nan=False).map(lambda value: round(value, 2))


@st.composite
def small_costs(draw: st.DrawFn) -> AlignmentCosts:
    n, m = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    rows = draw(st.integers(1, 3))

    def numbers(count: int) -> list[float]:
        return draw(st.lists(weights, min_size=count, max_size=count))

    return AlignmentCosts(
        match=np.array(numbers(rows * m)).reshape(rows, m),
        row=np.array(draw(st.lists(st.integers(0, rows - 1), min_size=n, max_size=n)), np.int64),
        skip=-np.abs(np.array(numbers(m))),
        more=-np.abs(np.array(numbers(rows * m)).reshape(rows, m)),
        drop=-np.abs(np.array(numbers(rows))),
        open_start=draw(st.booleans()),
        open_end=draw(st.booleans()),
    )


def every_alignment(costs: AlignmentCosts) -> dict[tuple[int, ...], float]:
    """The worth of each way to put the items in order into slots (-1: none), by the definition of
    the costs.
    """
    n, m = len(costs.row), costs.match.shape[1]
    result = {}
    for slots in itertools.product(range(-1, m), repeat=n):
        used = [slot for slot in slots if slot >= 0]
        if used != sorted(used):
            continue
        worth = 0.0
        seen: set[int] = set()
        for row, slot in zip(costs.row.tolist(), slots, strict=True):
            if slot < 0:
                worth += costs.drop[row]
            else:
                worth += costs.match[row, slot] + (costs.more[row, slot] if slot in seen else 0.0)
                seen.add(slot)
        for slot in range(m):
            before = costs.open_start and (not used or slot < used[0])
            after = costs.open_end and (not used or slot > used[-1])
            if slot not in seen and not before and not after:
                worth += costs.skip[slot]
        result[slots] = worth
    return result


@given(small_costs())
def test_the_best_path_is_worth_as_much_as_the_best_of_all_alignments(
    costs: AlignmentCosts,
) -> None:
    worths = every_alignment(costs)
    path = best_path(costs)
    assert math.isclose(path.worth, max(worths.values()), abs_tol=1e-9)
    assert math.isclose(worths[tuple(path.slot.tolist())], path.worth, abs_tol=1e-9)


@given(small_costs())
def test_a_chance_is_the_share_of_all_alignments_that_agree(costs: AlignmentCosts) -> None:
    worths = every_alignment(costs)
    total = sum(math.exp(worth) for worth in worths.values())
    path = best_path(costs)
    assert math.isclose(path.evidence, math.log(total), abs_tol=1e-6)
    for item in range(len(costs.row)):
        share = {
            slot: (
                sum(math.exp(worth) for slots, worth in worths.items() if slots[item] == slot)
                / total
            )
            for slot in range(-1, costs.match.shape[1])
        }
        mine = int(path.slot[item])
        assert math.isclose(path.chance[item], share[mine], abs_tol=1e-6)
        others = [chance for slot, chance in share.items() if slot != mine]
        if others:
            assert math.isclose(path.rival_chance[item], max(others), abs_tol=1e-6)
            assert math.isclose(share[int(path.rival[item])], max(others), abs_tol=1e-6)


def test_a_long_alignment_taken_in_stretches_finds_what_the_whole_finds() -> None:
    size = 2100  # more items times slots than are weighed at once
    random = np.random.default_rng(1)
    kinds = random.integers(0, 40, size)
    match = np.where(np.arange(40)[:, None] == kinds[None, :], 4.0, -3.0)
    lost = np.array([5, 900, 1500])
    costs = AlignmentCosts(
        match,
        np.delete(kinds, lost),
        np.full(size, -5.0),
        np.full((40, size), -3.0),
        np.full(40, -5.0),
    )
    path = best_path(costs)
    want = np.delete(np.arange(size), lost)
    same = path.slot == want
    assert same.mean() > 0.995  # beside a lost one its equal neighbour can stand for it
    assert path.chance[same].mean() > 0.99
