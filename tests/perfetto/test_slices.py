"""Slices of a track never cross, none is lost, and a counter tells what it sums."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.output.perfetto.slices import changes, steps

SLICES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40)


@given(SLICES)
def test_each_track_is_a_stack_and_every_slice_is_in_one(
    given_slices: list[tuple[int, int]],
) -> None:
    slices = [
        (start, start + length)
        for start, length in sorted(given_slices, key=lambda one: (one[0], -one[1]))
    ]
    found: dict[int, tuple[int, int]] = {}
    stacks: dict[int, list[tuple[int, int]]] = {}
    last: dict[int, int] = {}
    for track, at, number in steps(slices):
        assert at >= last.get(track, 0)
        last[track] = at
        stack = stacks.setdefault(track, [])
        if number < 0:
            begun, ended = stack.pop()
            found[ended] = (begun, at)
        else:
            stack.append((at, number))
    assert not any(stacks.values())
    assert found == dict(enumerate(slices))


def tracks(slices: list[tuple[int, int]]) -> int:
    return len({track for track, _, _ in steps(slices)})


def test_slices_that_nest_take_one_track() -> None:
    assert tracks([(0, 10), (0, 5), (5, 10), (10, 12)]) == 1


def test_a_slice_that_crosses_another_takes_a_second_track() -> None:
    assert tracks([(0, 10), (5, 15)]) == 2


def test_a_counter_tells_the_last_value_of_a_moment_and_only_what_changes() -> None:
    at, value = changes(np.array([1, 1, 2, 5, 5, 7]), np.array([2, -2, 3, -1, 1, -3]))
    assert (at.tolist(), value.tolist()) == ([2, 7], [3, 0])
    none = np.empty(0, np.int64)
    assert not any(len(column) for column in changes(none, none))
