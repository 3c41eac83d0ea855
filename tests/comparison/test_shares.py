"""What inferences' time went to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.comparison.shares import Kinds, Works, spent
from nsysmap.comparison.waterfall import whole_parts
from nsysmap.timing.idle.replayed import Idle

KINDS = Kinds(3)
pieces = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 2)), max_size=12)


def works_of(given_pieces: list[tuple[int, int, int]]) -> Works:
    made = sorted((start, start + length, column) for start, length, column in given_pieces)
    start, end, column = (np.array([one[at] for one in made], np.int64) for at in range(3))
    return Works(start, end, column)


def by_hand(works: Works, begin: int, end: int) -> list[int]:
    """Nanosecond by nanosecond: the piece that began first, the earlier row of two."""
    result = [0] * KINDS.count
    rows = list(
        zip(works.start_ns.tolist(), works.end_ns.tolist(), works.column.tolist(), strict=True)
    )
    for moment in range(begin, end):
        reached = [row for row in rows if row[0] <= moment < row[1]]
        held = KINDS.idle("unknown")
        if reached:
            held = reached[0][2]
        result[held] += 1
    return result


@given(pieces, st.lists(st.integers(0, 80), min_size=2, max_size=6, unique=True))
def test_every_nanosecond_goes_to_the_piece_that_began_first(
    given_pieces: list[tuple[int, int, int]], cuts: list[int]
) -> None:
    works = works_of(given_pieces)
    cuts = sorted(cuts)
    nothing = Idle(*(np.zeros(0, np.int64) for _ in range(3)))
    found = spent(works, nothing, np.array(cuts[:-1]), np.array(cuts[1:]), KINDS)
    assert found.sum(axis=1).tolist() == [end - begin for begin, end in pairwise(cuts)]
    assert found.tolist() == [by_hand(works, begin, end) for begin, end in pairwise(cuts)]


@given(st.lists(st.floats(-50, 1000), min_size=1, max_size=30))
def test_rounded_parts_add_up_to_the_rounded_whole(parts: list[float]) -> None:
    values = np.array(parts)
    whole = round(float(values.sum()))
    rounded = whole_parts(values, whole)
    assert rounded.sum() == whole
    assert np.abs(rounded - values).max() < 2
