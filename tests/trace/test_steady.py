"""In which phases a run falls: parts of it with other copies, or with times that are apart; and
whether its times drift.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING, FloatArray, IntArray
from nsysmap.trace.inferences.steady import (
    SHORTEST_PHASE,
    Drift,
    drift,
    falls_throughout,
    inferences_a_pass,
    phases_of,
)

COPIES = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 14)), max_size=8)
TIMES = st.lists(
    st.tuples(
        st.sampled_from([1_000, 1_100, 1_300, 1_700, 2_000, 3_000, 9_000]), st.integers(1, 14)
    ),
    max_size=8,
)


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
        # one between two is of the next
        return [
            next((label for label, _, end in runs if place < end), runs[-1][0])
            for place in range(len(labels))
        ]

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
        for place, level in zip(
            mine, stretches(levels([times[place] for place in mine])), strict=True
        ):
            inner[place] = level
    first: dict[tuple[int, int], int] = {}
    return [first.setdefault(both, len(first)) for both in zip(outer, inner, strict=True)]


@given(TIMES, COPIES)
def test_phases_are_those_of_the_naive_search(
    times: list[tuple[int, int]], copies: list[tuple[int, int]]
) -> None:
    took, memory = spread(times), spread(copies)
    count = min(len(took), len(memory))
    assert phases_of(array(took[:count]), array(memory[:count])).tolist() == naive(
        took[:count], memory[:count]
    )


@given(st.lists(st.integers(1_000, 1_200), max_size=120), st.data())
def test_a_steady_run_with_a_few_outliers_has_one_phase(
    times: list[int], data: st.DataObject
) -> None:
    for place in (
        data.draw(st.lists(st.integers(0, max(len(times) - 1, 0)), max_size=len(times) // 50))
        if times
        else []
    ):
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
    assert phases_of(times, array([0] * len(times))).tolist() == (
        [0] * first + [1] * then if enough else [0] * len(times)
    )


def test_other_copies_make_a_phase_whatever_the_time_and_the_one_between_two_stretches_is_of_the_later() -> (  # noqa: E501
    None
):
    copies = [0] * 20 + [1] + [2] * 10 + [0] * 9
    assert phases_of(array([1_000] * 40), array(copies)).tolist() == [0] * 20 + [1] * 11 + [0] * 9


def test_a_pause_and_the_warm_up_after_it_are_of_the_phase_that_they_begin() -> None:
    # a time counts from the end of the inference before
    times = [1_000] * 20 + [9_000, 6_500] + [2_000] * 20
    assert phases_of(array(times), array([0] * 42)).tolist() == [0] * 20 + [1] * 22


def test_a_phase_may_come_back_and_one_level_of_time_is_within_phases_of_copies() -> None:
    times = [1_000] * 10 + [3_000] * 10 + [1_010] * 10 + [3_000] * 10
    copies = [0] * 30 + [1] * 10
    assert (
        phases_of(array(times), array(copies)).tolist() == [0] * 10 + [1] * 10 + [0] * 10 + [2] * 10
    )


# --- drift
# --------------------------------------------------------------------------------------------------


def noisy(times: np.ndarray, seed: int, noise: float = 0.03) -> IntArray:
    mix = np.random.default_rng(seed)
    return array(np.rint(times * np.exp(noise * mix.standard_normal(len(times)))).tolist())


def a_line(values: IntArray, last: int) -> bool:
    """Least squares by numpy's own fit, and by one step after another."""
    logs, place = np.log(values), np.arange(len(values))
    line = float(np.square(logs - np.polyval(np.polyfit(place, logs, 1), place)).sum())
    steps = [
        sum(float(np.square(part - part.mean()).sum()) for part in (logs[:at], logs[at:]))
        for at in range(1, last + 1)
    ]
    return line < min(steps)


@given(st.integers(24, 400), st.floats(0.2, 1.5), st.integers(0, 999))
def test_times_that_fall_with_a_power_of_the_inferences_or_evenly_never_settle(
    count: int, power: float, seed: int
) -> None:
    at = np.arange(count)
    assert falls_throughout(noisy(1e6 * (20 + at) ** -power, seed, 0.001))
    even = noisy(1e6 * (2 - at / count), seed, 0.01)
    assert falls_throughout(even)
    told = drift(even)
    assert told is not None
    assert told.first_ns > 1.7 * told.last_ns


@given(st.integers(24, 400), st.floats(0.01, 0.15), st.floats(1.3, 50), st.integers(0, 999))
def test_times_that_settle_by_the_middle_are_a_warm_up(
    count: int, part: float, slower: float, seed: int
) -> None:
    """Exponentially, down to 3 % by the middle of the run, or in a step."""
    assume((slower - 1) * np.exp(-0.5 / part) < 0.03)
    at = np.arange(count)
    assert not falls_throughout(
        noisy(1e6 * (1 + (slower - 1) * np.exp(-at / (part * count))), seed)
    )
    assert not falls_throughout(
        noisy(1e6 * np.where(at < max(3 * part * count, 1), slower, 1), seed)
    )


@given(st.lists(st.integers(1, 10**6), min_size=24, max_size=60), st.booleans())
def test_falling_throughout_is_a_trend_in_the_later_half_and_a_line_rather_than_a_step(
    values: list[int], order: bool
) -> None:
    times = array(sorted(values, reverse=True) if order else values)
    half = len(times) // 2
    falls = float(
        np.corrcoef(
            np.argsort(np.argsort(times[half:], kind="stable")), np.arange(len(times) - half)
        )[0, 1]
    )
    assert falls_throughout(times) == (
        falls * np.sqrt(len(times) - half - 1) < -3.1 and a_line(times, half)
    )


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (np.linspace(1000, 3000, 200), Drift(1096, 2904)),
        (np.linspace(3000, 1000, 200), Drift(2904, 1096)),
        (np.linspace(1000, 1100, 200), None),  # by as little as clocks differ
        (np.where(np.arange(200) < 100, 1000, 3000), None),  # two phases
        (
            np.tile(np.linspace(1000, 3000, 50), 4),
            None,
        ),  # four times the same, as the steps of four requests
        (np.linspace(1000, 3000, 9), None),  # too few to tell
        (np.full(200, 1000), None),
    ],
)
def test_only_what_rises_or_falls_over_the_whole_run_drifts(
    times: FloatArray, told: Drift | None
) -> None:
    assert drift(np.rint(times).astype(np.int64)) == told


def test_random_times_hardly_ever_drift() -> None:
    mix = np.random.default_rng(3)
    assert (
        sum(
            drift(
                np.rint(1e6 * np.exp(mix.standard_normal(int(mix.integers(12, 200))))).astype(
                    np.int64
                )
            )
            is not None
            for _ in range(2000)
        )
        <= 6
    )


def test_turns_do_not_go_on_in_another_part_of_the_run() -> None:
    """Two kinds in turns, then, after some that do not count, one of a third kind alone."""
    sequence = np.array([*[0, 1] * 10, *[MISSING] * 3, *[2] * 20])
    assert inferences_a_pass(sequence) == 1
    assert inferences_a_pass(np.array([*[0, 1] * 4, MISSING, 1, *[0, 1] * 4])) == 2
