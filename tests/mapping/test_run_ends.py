"""Whether the host says that inferences begin and end where an engine's layers fit the kernels."""

from __future__ import annotations

import numpy as np

from nsysmap.core.table import IntArray
from nsysmap.mapping.order.by_order import _begins_in
from nsysmap.mapping.order.open_ends import SHARPLY, border_chances, unlike_others
from nsysmap.mapping.streams.run_ends import ends_tell

CYCLE, CYCLES = 30, 12
BOTH = np.array([True, True])


def _gaps(*paused: int) -> IntArray:
    """The host's time before each kernel, which varies before these kernels of a cycle."""
    random = np.random.default_rng(4)
    gaps = random.integers(4000, 6000, (CYCLES, CYCLE))
    for place in paused:
        gaps[:, place] = random.choice([3000, 12_000, 40_000], CYCLES)
    return gaps.reshape(-1)


def _tells(gaps: IntArray, begin: int, size: int, told: np.ndarray = BOTH) -> float:
    first = np.arange(CYCLES) * CYCLE + begin
    return ends_tell(gaps, np.zeros(len(gaps), np.bool_), first, first + size - 1, told)


def test_a_part_of_a_longer_inference_is_none() -> None:
    assert _tells(_gaps(0), 12, 10) < 0.1


def test_an_inference_between_pauses_is_one() -> None:
    assert _tells(_gaps(12, 22), 12, 10) == 1.0


def test_one_end_without_a_pause_says_less_than_two() -> None:
    one, two = _tells(_gaps(12), 12, 10), _tells(_gaps(0), 12, 10)
    assert two < one < 1


def test_where_the_host_is_even_nothing_tells() -> None:
    assert _tells(_gaps(), 12, 10) == 1.0


def test_ends_beside_what_is_explained_do_not_count() -> None:
    assert _tells(_gaps(0), 12, 10, np.array([False, False])) == 1.0


def test_a_border_shows_where_launches_themselves_take_unequally_long() -> None:
    random = np.random.default_rng(1)
    gaps = np.exp(random.normal(9.5, 0.35, (12, 40))).astype(np.int64)
    gaps[:, 0] = [40_000, 3000, 12_000] * 4
    gaps[:, 25] = [3000, 3000, 40_000] * 4
    known = (0, 10)
    often = border_chances([unlike_others(gaps), unlike_others(gaps, SHARPLY)], known)
    assert often[24] < 0.4
    assert often[25] > 0.6


def test_an_inference_is_found_within_more() -> None:
    part, whole = np.array([3, 4, 5]), np.array([3, 4, 3, 4, 5, 9])
    assert _begins_in(part, whole) == 2
    assert _begins_in(whole, part) == -1
    assert _begins_in(np.array([4, 4]), whole) == -1
