"""Interval arithmetic against the same thing done one nanosecond at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.spans import covered, cut, holes, inside, union
from nsysmap.tables import IntArray

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
def test_a_hole_is_what_nothing_covers_between_first_start_and_last_end(pairs: list[tuple[int, int]]) -> None:
    start, end = _arrays(pairs)
    found = holes(start, end)
    in_holes = _instants(list(zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True)))
    wanted = set(range(min(a for a, _ in pairs), max(b for _, b in pairs))) - _instants(pairs) if pairs else set()
    assert in_holes == wanted
    assert (end[found.before] == found.start_ns).all()
    assert (start[found.after] == found.end_ns).all()


@given(_intervals)
def test_union_covers_the_same_time_with_disjoint_intervals(pairs: list[tuple[int, int]]) -> None:
    left, right = union(*_arrays(pairs))
    assert _instants(list(zip(left.tolist(), right.tolist(), strict=True))) == _instants(pairs)
    assert (left[1:] > right[:-1]).all()


@given(_intervals, _intervals)
def test_covered_counts_each_nanosecond_once(pairs: list[tuple[int, int]], queries: list[tuple[int, int]]) -> None:
    found = covered(*_arrays(pairs), within=_arrays(queries))
    assert found.tolist() == [len(_instants(pairs) & set(range(a, b))) for a, b in queries]


@given(_intervals, _moments)
def test_cut_pieces_rebuild_their_interval_and_hold_no_moment_inside(pairs: list[tuple[int, int]], moments: list[int]) -> None:
    left, right = union(*_arrays(pairs))
    at = np.array(moments, np.int64)
    start, end, owner = cut(left, right, at)
    for row in range(len(left)):
        mine = owner == row
        assert start[mine][0] == left[row]
        assert end[mine][-1] == right[row]
        assert (start[mine][1:] == end[mine][:-1]).all()
    assert not any((start < moment).any() and ((start < moment) & (moment < end)).any() for moment in moments)


@given(_intervals, _moments)
def test_inside_is_strict(pairs: list[tuple[int, int]], moments: list[int]) -> None:
    left, right = union(*_arrays(pairs))
    found = inside(left, right, np.array(moments, np.int64))
    assert found.tolist() == [any(a < moment < b for a, b in zip(left.tolist(), right.tolist(), strict=True)) for moment in moments]
