"""The alignment that pairs what is left in order."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nsysmap.network.matching import aligned


def best_by_trying(worth: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
    """The most that pairs in ascending order can be worth, by trying all sets of rows and
    columns.
    """
    rows, columns = worth.shape
    best = 0.0
    for size in range(1, min(rows, columns) + 1):
        for some in combinations(range(rows), size):
            for others in combinations(range(columns), size):
                best = max(best, float(sum(worth[pair] for pair in zip(some, others, strict=True))))
    return best


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 4), st.integers(1, 4)),
        elements=st.integers(-5, 5).map(float),
    )
)
def test_no_pairs_in_order_are_worth_more(
    worth: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    pairs = aligned(worth)
    assert pairs == sorted(pairs)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert sum(float(worth[pair]) for pair in pairs) == best_by_trying(worth)
