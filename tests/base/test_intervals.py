"""Intervals: the innermost range around a moment against a search through all, and unions, holes
and cuts one nanosecond at a time.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core import intervals
from nsysmap.core.intervals import (
    Spans,
    covered,
    cut,
    earlier_ending_later,
    holes,
    innermost,
    inside,
    union,
    union_ns,
    union_ns_by_group,
)
from nsysmap.core.table import MISSING, IntArray

OPEN_END = 1_000
Rows = list[tuple[int, int, int]]
RANGE = st.tuples(
    st.integers(0, 3), st.integers(0, 60), st.one_of(st.integers(0, 40), st.just(OPEN_END))
)


def spans(rows: list[tuple[int, int, int]]) -> Spans:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Spans(table[:, 0], table[:, 1], table[:, 1] + table[:, 2])


def naive(ranges: Spans, queries: Spans) -> list[int]:
    found = []
    for thread, start, end in zip(queries.thread, queries.start_ns, queries.end_ns, strict=True):
        around = [
            row
            for row in range(len(ranges.thread))
            if ranges.thread[row] == thread
            and ranges.start_ns[row] <= start
            and ranges.end_ns[row] >= end
        ]
        found.append(
            max(
                around,
                key=lambda row: (ranges.start_ns[row], -ranges.end_ns[row], row),
                default=MISSING,
            )
        )
    return found


@given(st.lists(RANGE, max_size=40), st.lists(RANGE, max_size=20))
def test_innermost_is_what_a_search_through_all_ranges_finds(
    ranges: list[tuple[int, int, int]], queries: list[tuple[int, int, int]]
) -> None:
    assert innermost(spans(ranges), spans(queries)).tolist() == naive(spans(ranges), spans(queries))


@given(st.lists(RANGE, max_size=8), st.lists(RANGE, max_size=60))
def test_few_ranges_around_many_moments_in_order_are_found(
    ranges: list[tuple[int, int, int]], queries: list[tuple[int, int, int]]
) -> None:
    in_order = sorted(queries, key=lambda row: row[1])
    assert innermost(spans(ranges), spans(in_order)).tolist() == naive(
        spans(ranges), spans(in_order)
    )


@settings(max_examples=50)
@given(st.lists(RANGE, max_size=60), st.lists(RANGE, max_size=20), st.integers(0, 3))
def test_the_doubling_search_finds_the_same_as_the_walk(
    ranges: list[tuple[int, int, int]], queries: list[tuple[int, int, int]], steps: int
) -> None:
    walked = intervals._STEPS
    intervals._STEPS = steps
    try:
        assert innermost(spans(ranges), spans(queries)).tolist() == naive(
            spans(ranges), spans(queries)
        )
    finally:
        intervals._STEPS = walked


@given(st.lists(st.integers(0, 20), max_size=60))
def test_the_nearest_earlier_range_that_ends_later(ends: list[int]) -> None:
    expected = [
        next((j for j in range(i - 1, -1, -1) if ends[j] > ends[i]), -1) for i in range(len(ends))
    ]
    assert earlier_ending_later(np.array(ends, np.int64)).tolist() == expected


def test_a_launch_between_two_layer_ranges_belongs_to_the_range_around_both() -> None:
    call, first, second, between = (7, 0, 100), (7, 10, 20), (7, 50, 20), (7, 40, 5)
    assert innermost(spans([call, first, second]), spans([between])).tolist() == [0]


def test_a_range_of_another_thread_is_never_around_a_launch() -> None:
    assert innermost(spans([(1, 0, 100)]), spans([(2, 10, 5)])).tolist() == [MISSING]


def test_crossing_ranges_of_two_domains_each_hold_what_lies_inside_them() -> None:
    first, second = (1, 0, 50), (1, 40, 50)
    assert innermost(
        spans([first, second]), spans([(1, 42, 3), (1, 60, 3), (1, 48, 10)])
    ).tolist() == [1, 1, 1]
    assert innermost(spans([first, second]), spans([(1, 10, 3)])).tolist() == [0]


def test_ranges_nested_a_hundred_thousand_deep_take_no_quadratic_time() -> None:
    depth = 100_000
    rows = Spans(np.zeros(depth, np.int64), np.arange(depth), np.arange(depth, 0, -1) + depth)
    asked = Spans(np.zeros(1000, np.int64), np.full(1000, depth), np.arange(1000) * 100 + depth)
    found = innermost(rows, asked)
    further_in = np.minimum(found + 1, depth - 1)
    assert (rows.end_ns[found] >= asked.end_ns).all()
    assert ((found == depth - 1) | (rows.end_ns[further_in] < asked.end_ns)).all()


_intervals = st.lists(st.tuples(st.integers(-20, 40), st.integers(0, 12)), max_size=12).map(
    lambda pairs: sorted((start, start + length) for start, length in pairs)
)
_moments = st.lists(st.integers(-25, 60), max_size=12)


def _arrays(pairs: list[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def _instants(pairs: list[tuple[int, int]]) -> set[int]:
    """Every nanosecond that an interval covers, by its left edge."""
    return {instant for start, end in pairs for instant in range(start, end)}


@given(_intervals)
def test_a_hole_is_what_nothing_covers_between_first_start_and_last_end(
    pairs: list[tuple[int, int]],
) -> None:
    start, end = _arrays(pairs)
    found = holes(start, end)
    in_holes = _instants(list(zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True)))
    wanted = (
        set(range(min(a for a, _ in pairs), max(b for _, b in pairs))) - _instants(pairs)
        if pairs
        else set()
    )
    assert in_holes == wanted
    assert (end[found.before] == found.start_ns).all()
    assert (start[found.after] == found.end_ns).all()


@given(_intervals)
def test_union_covers_the_same_time_with_disjoint_intervals(pairs: list[tuple[int, int]]) -> None:
    left, right = union(*_arrays(pairs))
    assert _instants(list(zip(left.tolist(), right.tolist(), strict=True))) == _instants(pairs)
    assert (left[1:] > right[:-1]).all()


@given(_intervals, _intervals)
def test_covered_counts_each_nanosecond_once(
    pairs: list[tuple[int, int]], queries: list[tuple[int, int]]
) -> None:
    found = covered(*_arrays(pairs), within=_arrays(queries))
    assert found.tolist() == [len(_instants(pairs) & set(range(a, b))) for a, b in queries]


@given(_intervals, _moments)
def test_cut_pieces_rebuild_their_interval_and_hold_no_moment_inside(
    pairs: list[tuple[int, int]], moments: list[int]
) -> None:
    left, right = union(*_arrays(pairs))
    at = np.array(moments, np.int64)
    start, end, owner = cut(left, right, at)
    for row in range(len(left)):
        mine = owner == row
        assert start[mine][0] == left[row]
        assert end[mine][-1] == right[row]
        assert (start[mine][1:] == end[mine][:-1]).all()
    assert not any(
        (start < moment).any() and ((start < moment) & (moment < end)).any() for moment in moments
    )


@given(_intervals, _moments)
def test_inside_is_strict(pairs: list[tuple[int, int]], moments: list[int]) -> None:
    left, right = union(*_arrays(pairs))
    found = inside(left, right, np.array(moments, np.int64))
    assert found.tolist() == [
        any(a < moment < b for a, b in zip(left.tolist(), right.tolist(), strict=True))
        for moment in moments
    ]


WORK = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=30
)


@given(WORK)
def test_the_union_of_a_group_is_as_long_as_the_instants_that_it_covers(
    work: list[tuple[int, int, int]],
) -> None:
    rows = np.array(sorted(work), np.int64)
    busy = union_ns_by_group(rows[:, 0], rows[:, 1], rows[:, 1] + rows[:, 2], 4).tolist()
    for number in {inference for inference, _, _ in work}:
        covered = {
            t
            for inference, start, length in work
            if inference == number
            for t in range(start, start + length)
        }
        assert busy[number] == len(covered)
        mine = rows[rows[:, 0] == number]
        assert busy[number] == union_ns(mine[:, 1], mine[:, 1] + mine[:, 2])
