"""Groups of integer columns, against numpy's own sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core import memory
from nsysmap.core.groups import (
    distinct,
    distinct_rows,
    first_rows,
    numbered,
    rows_by_value,
    rows_of_values,
    runs,
    scattered,
    sorted_in_groups,
    sorted_order,
)

COLUMN = st.lists(st.integers(-3, 60), max_size=120).map(lambda values: np.array(values, np.int64))
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), max_size=40).map(
    lambda rows: np.array(rows, np.int64).reshape(-1, 2)
)


@given(COLUMN)
def test_distinct_values_are_those_that_sorting_finds(values: np.ndarray) -> None:
    assert distinct(values).tolist() == np.unique(values).tolist()


@given(COLUMN, st.lists(st.integers(-3, 10**9), max_size=40))
def test_distinct_values_that_come_late_are_found(early: np.ndarray, late: list[int]) -> None:
    values = np.concatenate(
        [np.resize(early if len(early) else np.array([7]), 5000), np.array(late, np.int64)]
    )
    assert distinct(values).tolist() == np.unique(values).tolist()


@given(COLUMN)
def test_distinct_rows_leave_out_what_is_missing(values: np.ndarray) -> None:
    assert distinct_rows(values, 61).tolist() == [
        value for value in np.unique(values).tolist() if value >= 0
    ]


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


@given(PAIRS)
def test_rows_in_order_of_the_second_key_are_sorted_by_the_first(pairs: np.ndarray) -> None:
    second = np.sort(pairs[:, 1])
    assert sorted_order(pairs[:, 0], second).tolist() == np.lexsort((second, pairs[:, 0])).tolist()


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
    assert (
        first.tolist() == np.concatenate([[0], np.cumsum(size)])[: len(first)].astype(int).tolist()
    )
    assert (value[1:] != value[:-1]).all()


@given(PAIRS)
def test_numbered_combinations_give_back_the_rows(pairs: np.ndarray) -> None:
    combinations, number = numbered(pairs[:, 0], pairs[:, 1])
    assert np.stack(combinations, axis=1)[number].tolist() == pairs.tolist()
    assert np.stack(combinations, axis=1).tolist() == [
        list(row) for row in sorted({tuple(row) for row in pairs.tolist()})
    ]


@given(COLUMN, COLUMN)
def test_many_combinations_are_numbered_as_few_are(first: np.ndarray, second: np.ndarray) -> None:
    rows = min(len(first), len(second))
    combinations, number = numbered(first[:rows], second[:rows])
    expected = np.unique(
        np.stack([first[:rows], second[:rows]], axis=1), axis=0, return_inverse=True
    )
    assert np.stack(combinations, axis=1).tolist() == expected[0].tolist()
    assert number.tolist() == expected[1].reshape(-1).tolist()


def test_scattered_numbers_differ_in_all_their_bits() -> None:
    numbers = np.concatenate([scattered(50_000, 1), scattered(50_000, 1 << 32)])
    assert len(np.unique(numbers)) == len(numbers)
    ones = ((numbers[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(axis=0)
    assert ((ones > 0.49) & (ones < 0.51)).all()


def test_rows_of_values_are_the_given_rows_of_each_value() -> None:
    rows = np.array([9, 4, 7])
    found = rows_of_values(np.array([5, 2, 5]), rows)
    assert [(value, held.tolist()) for value, held in found] == [(2, [4]), (5, [9, 7])]
    assert rows_of_values(np.array([5, 5, 5]), rows)[0][1] is rows
    assert rows_of_values(rows[:0], rows[:0]) == []


@pytest.mark.parametrize("at_once", [2, 1000])
def test_first_rows_are_the_first_of_each_value(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_ROWS_AT_ONCE", at_once)
    assert first_rows(np.array([7, -1, 7, 3, -1], np.int32)).tolist() == [1, 3, 0]
    assert first_rows(np.broadcast_to(np.int64(4), 9)).tolist() == [0]
    assert first_rows(np.zeros(0, np.int64)).tolist() == []
