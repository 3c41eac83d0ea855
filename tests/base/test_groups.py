"""Groups of integer columns, against numpy's own sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.base.groups import distinct, distinct_rows, numbered, rows_by_value, runs, sorted_in_groups, sorted_order

COLUMN = st.lists(st.integers(-3, 60), max_size=120).map(lambda values: np.array(values, np.int64))
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), max_size=40).map(lambda rows: np.array(rows, np.int64).reshape(-1, 2))


@given(COLUMN)
def test_distinct_values_are_those_that_sorting_finds(values: np.ndarray) -> None:
    assert distinct(values).tolist() == np.unique(values).tolist()


@given(COLUMN)
def test_distinct_rows_leave_out_what_is_missing(values: np.ndarray) -> None:
    assert distinct_rows(values, 61).tolist() == [value for value in np.unique(values).tolist() if value >= 0]


@given(COLUMN)
def test_rows_by_value_hold_every_row_once(values: np.ndarray) -> None:
    groups = rows_by_value(values)
    assert [(value, rows.tolist()) for value, rows in groups] == [
        (value, np.flatnonzero(values == value).tolist()) for value in np.unique(values).tolist()
    ]


@given(PAIRS)
def test_sorted_order_is_stable_and_sorts_by_the_first_key_first(pairs: np.ndarray) -> None:
    order = sorted_order(pairs[:, 0], pairs[:, 1]).tolist()
    assert order == sorted(range(len(pairs)), key=lambda row: (pairs[row, 0], pairs[row, 1]))


@given(PAIRS, st.sampled_from([1, 2**61]))
def test_values_are_sorted_within_their_groups(pairs: np.ndarray, far: int) -> None:
    values = pairs[:, 1] * far
    assert sorted_in_groups(pairs[:, 0], values).tolist() == [
        value for _, value in sorted(zip(pairs[:, 0].tolist(), values.tolist(), strict=True))
    ]


@given(COLUMN)
def test_runs_rejoin_to_the_column(values: np.ndarray) -> None:
    value, first, size = runs(values)
    assert np.repeat(value, size).tolist() == values.tolist()
    assert first.tolist() == np.concatenate([[0], np.cumsum(size)])[: len(first)].astype(int).tolist()
    assert (value[1:] != value[:-1]).all()


@given(PAIRS)
def test_numbered_combinations_give_back_the_rows(pairs: np.ndarray) -> None:
    combinations, number = numbered(pairs[:, 0], pairs[:, 1])
    assert np.stack(combinations, axis=1)[number].tolist() == pairs.tolist()
    assert np.stack(combinations, axis=1).tolist() == [list(row) for row in sorted({tuple(row) for row in pairs.tolist()})]
