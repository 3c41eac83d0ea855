"""In which phases a run falls: parts of it with other copies, or with times that are apart."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.base.table import IntArray
from nsysmap.trace.steady import SHORTEST_PHASE, phases_of

COPIES = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 14)), max_size=8)
TIMES = st.lists(st.tuples(st.sampled_from([1_000, 1_100, 1_300, 1_700, 2_000, 3_000, 9_000]), st.integers(1, 14)), max_size=8)


def array(values: list[int]) -> IntArray:
    return np.array(values, np.int64)


def spread(stretches: list[tuple[int, int]]) -> list[int]:
    return [value for value, count in stretches for _ in range(count)]


def naive(times: list[int], copies: list[int]) -> list[int]:
    """The same, by one inference after another."""

    def stretches(labels: list[int]) -> list[int]:
        runs, at = [], 0
        for label, same in groupby(labels):
            size = len(list(same))
            runs += [(label, at, at + size)] if size >= SHORTEST_PHASE else []
            at += size
        if 10 * sum(end - begin for _, begin, end in runs) < 9 * len(labels) or not runs:
            return [0] * len(labels)
        found = []
        for place in range(len(labels)):
            far = [(max(begin - place, place - end + 1, 0), number) for number, (_, begin, end) in enumerate(runs)]
            found.append(runs[min(far)[1]][0])
        return found

    def levels(values: list[int]) -> list[int]:
        ordered, few = sorted(values), len(values) // 50 + 1
        wide = [at for at in range(len(ordered) - few) if ordered[at + few] >= 1.25 * ordered[at]]
        cuts, below = [], 0
        for _, together in groupby(enumerate(wide), lambda one: one[1] - one[0]):
            best = max((ordered[at + few] / ordered[at], -at) for _, at in together)[1]
            cut = (ordered[-best] * ordered[-best + few]) ** 0.5
            count = sum(value < cut for value in values)
            enough = max(SHORTEST_PHASE, len(values) / 10)
            if count - below >= enough and len(values) - count >= enough:
                cuts.append(cut)
                below = count
        return [sum(value >= cut for cut in cuts) for value in values]

    outer, inner = stretches(copies), [0] * len(times)
    for one in set(outer):
        mine = [place for place, label in enumerate(outer) if label == one]
        for place, level in zip(mine, stretches(levels([times[place] for place in mine])), strict=True):
            inner[place] = level
    first: dict[tuple[int, int], int] = {}
    return [first.setdefault(both, len(first)) for both in zip(outer, inner, strict=True)]


@given(TIMES, COPIES)
def test_phases_are_those_of_the_naive_search(times: list[tuple[int, int]], copies: list[tuple[int, int]]) -> None:
    took, memory = spread(times), spread(copies)
    count = min(len(took), len(memory))
    assert phases_of(array(took[:count]), array(memory[:count])).tolist() == naive(took[:count], memory[:count])


@given(st.lists(st.integers(1_000, 1_200), max_size=120), st.data())
def test_a_steady_run_with_a_few_outliers_has_one_phase(times: list[int], data: st.DataObject) -> None:
    for place in data.draw(st.lists(st.integers(0, max(len(times) - 1, 0)), max_size=len(times) // 50)) if times else []:
        times[place] *= 20
    assert not phases_of(array(times), array([0] * len(times))).any()


@given(st.floats(1.01, 8.0), st.integers(20, 200), st.booleans())
def test_a_ramp_has_one_phase(ratio: float, count: int, down: bool) -> None:
    times = (1e6 * np.linspace(1.0, ratio, count)).astype(np.int64)
    assert not phases_of(times[::-1] if down else times, array([0] * count)).any()


@pytest.mark.parametrize("slow", [1, 2, SHORTEST_PHASE - 1])
def test_times_and_copies_that_take_turns_are_no_phases(slow: int) -> None:
    times, copies = [1_000, *[5_000] * slow] * 20, [0, *[1] * slow] * 20
    assert not phases_of(array(times), array(copies)).any()


@given(st.integers(SHORTEST_PHASE, 60), st.integers(SHORTEST_PHASE, 60), st.floats(1.5, 9.0))
def test_a_step_in_time_makes_two_phases(first: int, then: int, ratio: float) -> None:
    noise = np.random.default_rng(first * 100 + then).uniform(1.0, 1.1, first + then)
    times = (1e6 * noise * np.repeat([1.0, ratio], [first, then])).astype(np.int64)
    enough = min(first, then) >= 0.1 * (first + then)
    assert phases_of(times, array([0] * len(times))).tolist() == ([0] * first + [1] * then if enough else [0] * len(times))


def test_other_copies_make_a_phase_whatever_the_time_and_the_one_between_two_stretches_is_of_the_nearer() -> None:
    copies = [0] * 20 + [1] + [2] * 10 + [0] * 9
    assert phases_of(array([1_000] * 40), array(copies)).tolist() == [0] * 21 + [1] * 10 + [0] * 9


def test_a_phase_may_come_back_and_one_level_of_time_is_within_phases_of_copies() -> None:
    times = [1_000] * 10 + [3_000] * 10 + [1_010] * 10 + [3_000] * 10
    copies = [0] * 30 + [1] * 10
    assert phases_of(array(times), array(copies)).tolist() == [0] * 10 + [1] * 10 + [0] * 10 + [2] * 10
