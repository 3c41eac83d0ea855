"""The innermost range around a moment, against a search through every range."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap import intervals
from nsysmap.intervals import Spans, earlier_ending_later, innermost
from nsysmap.tables import MISSING

OPEN_END = 1_000
Rows = list[tuple[int, int, int]]
RANGE = st.tuples(st.integers(0, 3), st.integers(0, 60), st.one_of(st.integers(0, 40), st.just(OPEN_END)))


def spans(rows: list[tuple[int, int, int]]) -> Spans:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Spans(table[:, 0], table[:, 1], table[:, 1] + table[:, 2])


def naive(ranges: Spans, queries: Spans) -> list[int]:
    found = []
    for thread, start, end in zip(queries.thread, queries.start_ns, queries.end_ns, strict=True):
        around = [
            row
            for row in range(len(ranges.thread))
            if ranges.thread[row] == thread and ranges.start_ns[row] <= start and ranges.end_ns[row] >= end
        ]
        found.append(max(around, key=lambda row: (ranges.start_ns[row], -ranges.end_ns[row], row), default=MISSING))
    return found


@given(st.lists(RANGE, max_size=40), st.lists(RANGE, max_size=20))
def test_innermost_is_what_a_search_through_all_ranges_finds(
    ranges: list[tuple[int, int, int]], queries: list[tuple[int, int, int]]
) -> None:
    assert innermost(spans(ranges), spans(queries)).tolist() == naive(spans(ranges), spans(queries))


@settings(max_examples=50)
@given(st.lists(RANGE, max_size=60), st.lists(RANGE, max_size=20), st.integers(0, 3))
def test_the_doubling_search_finds_the_same_as_the_walk(
    ranges: list[tuple[int, int, int]], queries: list[tuple[int, int, int]], steps: int
) -> None:
    walked = intervals._STEPS
    intervals._STEPS = steps
    try:
        assert innermost(spans(ranges), spans(queries)).tolist() == naive(spans(ranges), spans(queries))
    finally:
        intervals._STEPS = walked


@given(st.lists(st.integers(0, 20), max_size=60))
def test_the_nearest_earlier_range_that_ends_later(ends: list[int]) -> None:
    expected = [next((j for j in range(i - 1, -1, -1) if ends[j] > ends[i]), -1) for i in range(len(ends))]
    assert earlier_ending_later(np.array(ends, np.int64)).tolist() == expected


def test_a_launch_between_two_layer_ranges_belongs_to_the_range_around_both() -> None:
    call, first, second, between = (7, 0, 100), (7, 10, 20), (7, 50, 20), (7, 40, 5)
    assert innermost(spans([call, first, second]), spans([between])).tolist() == [0]


def test_a_range_of_another_thread_is_never_around_a_launch() -> None:
    assert innermost(spans([(1, 0, 100)]), spans([(2, 10, 5)])).tolist() == [MISSING]


def test_crossing_ranges_of_two_domains_each_hold_what_lies_inside_them() -> None:
    first, second = (1, 0, 50), (1, 40, 50)
    assert innermost(spans([first, second]), spans([(1, 42, 3), (1, 60, 3), (1, 48, 10)])).tolist() == [1, 1, 1]
    assert innermost(spans([first, second]), spans([(1, 10, 3)])).tolist() == [0]


def test_ranges_nested_a_hundred_thousand_deep_take_no_quadratic_time() -> None:
    depth = 100_000
    rows = Spans(np.zeros(depth, np.int64), np.arange(depth), np.arange(depth, 0, -1) + depth)
    asked = Spans(np.zeros(1000, np.int64), np.full(1000, depth), np.arange(1000) * 100 + depth)
    found = innermost(rows, asked)
    further_in = np.minimum(found + 1, depth - 1)
    assert (rows.end_ns[found] >= asked.end_ns).all()
    assert ((found == depth - 1) | (rows.end_ns[further_in] < asked.end_ns)).all()
