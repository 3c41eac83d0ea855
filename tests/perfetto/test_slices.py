"""Slices of a track never cross, none is lost, and a counter tells what it sums."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nsysmap.perfetto.slices import changes, rows

SLICES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40)


@given(SLICES)
def test_each_row_is_a_stack_and_holds_every_slice_once(given_slices: list[tuple[int, int]]) -> None:
    slices = [
        (start, start + length, number) for number, (start, length) in enumerate(sorted(given_slices, key=lambda one: (one[0], -one[1])))
    ]
    found: dict[int, tuple[int, int]] = {}
    for steps in rows(slices):
        assert [at for at, _ in steps] == sorted(at for at, _ in steps)
        stack: list[tuple[int, int]] = []
        for at, number in steps:
            if number < 0:
                begun, ended = stack.pop()
                found[ended] = (begun, at)
            else:
                stack.append((at, number))
        assert stack == []
    assert found == {number: (start, end) for start, end, number in slices}


def test_slices_that_nest_take_one_row() -> None:
    assert len(rows([(0, 10, 0), (0, 5, 1), (5, 10, 2), (10, 12, 3)])) == 1


def test_a_slice_that_crosses_another_takes_a_second_row() -> None:
    assert len(rows([(0, 10, 0), (5, 15, 1)])) == 2


def test_a_counter_tells_the_last_value_of_a_moment_and_only_what_changes() -> None:
    assert list(changes(iter([(1, 2), (1, -2), (2, 3), (5, -1), (5, 1), (7, -3)]))) == [(2, 3), (7, 0)]
