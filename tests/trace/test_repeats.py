"""Inferences found in sequences of kernels whose boundaries are known, and against a naive search
for the period.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nsysmap.trace.inferences.repeats import (
    LaunchedKernels,
    SequenceInferences,
    are_like,
    cut_inferences,
    is_like,
    steady_period,
)

Words = list[list[int]]


def launches(words: Words, *, synced: bool, gap_ns: int = 20) -> LaunchedKernels:
    """Inferences one after the other; the host waits between them, or only takes a little
    longer.
    """
    codes = [code for word in words for code in word]
    first = np.zeros(len(codes), np.int64)
    first[np.cumsum([0, *(len(word) for word in words[:-1])])] = 1
    gaps = np.where(first, gap_ns, 5)
    return LaunchedKernels(
        np.array(codes, np.int64), first * synced, np.zeros(len(codes), np.int64), gaps
    )


def found(pieces: SequenceInferences, words: Words) -> bool:
    """Whether the pieces are exactly the words."""
    return pieces.size.tolist() == [len(word) for word in words] and bool(
        (pieces.inference >= 0).all()
    )


@st.composite
def networks(draw: st.DrawFn, *, first_code: int = 0) -> list[int]:
    """One inference: an embedding, blocks of the same kernels over and over, a head."""
    block = draw(st.lists(st.integers(first_code + 10, first_code + 14), min_size=1, max_size=7))
    blocks = draw(st.integers(1, 6))
    return [first_code, first_code + 1, *block * blocks, first_code + 2, first_code + 3]


@given(networks(), st.integers(2, 12), st.data())
def test_inferences_between_host_waits_are_exact_with_both_ends_cut(
    word: list[int], count: int, data: st.DataObject
) -> None:
    front = data.draw(st.integers(0, len(word) - 1))
    back = data.draw(st.integers(1, len(word)))
    words = [word[front:], *[word] * count, word[:back]]
    pieces = cut_inferences(launches(words, synced=True))
    assert found(pieces, words)
    assert pieces.offset[0] == front
    assert len(set(pieces.shape.tolist())) == 1
    assert pieces.complete.tolist() == [front == 0, *[True] * count, back == len(word)]


@given(networks(), st.integers(3, 12), st.data())
def test_without_waits_the_period_and_the_longest_pause_tell_them(
    word: list[int], count: int, data: st.DataObject
) -> None:
    front = data.draw(st.integers(0, len(word) - 1))
    back = data.draw(st.integers(1, len(word)))
    words = [word[front:], *[word] * count, word[:back]]
    assert found(cut_inferences(launches(words, synced=False)), words)


@given(networks(), st.integers(2, 30))
def test_without_waits_and_pauses_an_uncut_sequence_is_divided_from_its_start(
    word: list[int], count: int
) -> None:
    words = [word] * count
    assert found(cut_inferences(launches(words, synced=False, gap_ns=5)), words)


@given(networks())
def test_the_blocks_of_a_single_inference_are_no_inferences(word: list[int]) -> None:
    assert found(cut_inferences(launches([word], synced=False, gap_ns=5)), [word])


@given(networks(), networks(first_code=100), st.integers(2, 9))
def test_a_different_first_inference_stays_one_inference(
    warm: list[int], word: list[int], count: int
) -> None:
    words = [warm, *[word] * count]
    pieces = cut_inferences(launches(words, synced=True))
    assume(len(warm) >= len(word) / 2)
    assert found(pieces, words)
    assert pieces.shape[0] not in pieces.shape[1:]


@given(networks(), st.integers(3, 9), st.data())
def test_a_first_inference_with_another_tactic_is_found_without_waits(
    word: list[int], count: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    warm = [*word[:at], 99, *word[at + 1 :]]
    words = [warm, *[word] * count]
    assert found(cut_inferences(launches(words, synced=False)), words)


@given(
    lead=st.lists(st.integers(10, 13), min_size=1, max_size=20),
    word=st.lists(st.integers(0, 9), min_size=2, max_size=9, unique=True),
    count=st.integers(20, 60),
)
def test_what_leads_a_loop_of_many_turns_in_does_not_hide_it(
    lead: list[int], word: list[int], count: int
) -> None:
    assume(len(lead) < len(word) * count)
    codes = np.array([*lead, *word * count], np.int64)
    nothing = np.zeros(len(codes), np.int64)
    pieces = cut_inferences(LaunchedKernels(codes, nothing, nothing, nothing))
    inside = pieces.start >= len(lead)
    assert pieces.start[inside].tolist() == list(range(len(lead), len(codes), len(word)))
    assert set(pieces.size[inside].tolist()) == {len(word)}


@given(networks(), networks(first_code=100), st.lists(st.booleans(), min_size=4, max_size=20))
def test_two_shapes_in_any_order_are_told_apart_by_waits(
    one: list[int], other: list[int], turns: list[bool]
) -> None:
    words = [one if turn else other for turn in turns]
    assume(min(turns.count(True), turns.count(False)) >= 2)
    pieces = cut_inferences(launches(words, synced=True))
    assert found(pieces, words)
    assert (np.array(pieces.shape)[:, None] == np.array(pieces.shape)[None, :]).tolist() == [
        [a == b for b in turns] for a in turns
    ]


def test_two_shapes_that_share_their_first_kernel_are_told_apart_without_waits() -> None:
    one, other = [1, 2, 3, 3, 4], [1, 5, 6, 7]
    words = [one, one, other, one, other, other, one, other, one, one]
    assert found(cut_inferences(launches(words, synced=False, gap_ns=5)), words)


@given(networks(), st.integers(1, 4), st.integers(2, 6))
def test_several_inferences_between_two_waits_are_divided(
    word: list[int], together: int, batches: int
) -> None:
    sizes = [together + number % 2 for number in range(batches)]
    codes = np.array(word * sum(sizes), np.int64)
    syncs = np.zeros(len(codes), np.int64)
    syncs[np.cumsum([0, *sizes[:-1]]) * len(word)] = 1
    pieces = cut_inferences(
        LaunchedKernels(codes, syncs, np.zeros(len(codes), np.int64), np.full(len(codes), 5))
    )
    assert found(pieces, [word] * sum(sizes))


def test_a_network_of_equal_blocks_only_is_one_inference_where_waits_bound_it() -> None:
    words = [[1, 2, 3] * 6] * 5
    assert found(cut_inferences(launches(words, synced=True)), words)


@given(st.integers(2, 6), st.integers(0, 9), st.integers(4, 9), st.booleans())
def test_warm_up_without_waits_before_a_network_of_equal_blocks_only_is_cut_into_inferences_too(
    blocks: int, warm: int, count: int, other: bool
) -> None:
    """As PyTorch loops are timed: some inferences, a wait, then a wait after each; perhaps with
    set-up of something else before.
    """
    word = [1, 2, 3] * blocks
    stretches = [*([[7, 8, 7, 9]] * other), *([word * warm] if warm else []), *[word] * count]
    codes = np.array([code for stretch in stretches for code in stretch], np.int64)
    syncs = np.zeros(len(codes), np.int64)
    syncs[np.cumsum([0, *map(len, stretches[:-1])])] = 1
    pieces = cut_inferences(
        LaunchedKernels(codes, syncs, np.zeros(len(codes), np.int64), np.full(len(codes), 5))
    )
    begins = np.arange(4 * other, len(codes), len(word))
    mine = pieces.start >= 4 * other
    assert pieces.start[mine].tolist() == begins.tolist()
    assert set(pieces.size[mine].tolist()) == {len(word)}


def test_other_numbers_of_inferences_between_waits_before_are_no_warm_up() -> None:
    """Three, five, then always four of the same kernels: inferences of their own, of which some
    wait together.
    """
    sizes = [3, 5, 4, 4, 4, 4, 4]
    codes = np.array([1, 2, 3] * sum(sizes), np.int64)
    syncs = np.zeros(len(codes), np.int64)
    syncs[np.cumsum([0, *sizes[:-1]]) * 3] = 1
    pieces = cut_inferences(
        LaunchedKernels(codes, syncs, np.zeros(len(codes), np.int64), np.full(len(codes), 5))
    )
    assert found(pieces, [[1, 2, 3]] * sum(sizes))


def test_copies_tell_that_equal_stretches_between_waits_are_inferences() -> None:
    codes = np.array([1, 2, 3] * 20, np.int64)
    copies = np.array([1, 0, 0] * 20, np.int64)
    syncs = np.array(([1] + [0] * 14) * 4, np.int64)
    pieces = cut_inferences(LaunchedKernels(codes, syncs, copies, np.full(60, 5)))
    assert found(pieces, [[1, 2, 3]] * 20)


def test_the_engine_decides_between_blocks_and_inferences() -> None:
    codes = np.array([1, 2, 3] * 12, np.int64)
    nothing = np.zeros(len(codes), np.int64)
    even = LaunchedKernels(codes, nothing, nothing, np.full(len(codes), 5))
    assert found(cut_inferences(even, expected=3), [[1, 2, 3]] * 12)
    assert found(cut_inferences(even, expected=36), [[1, 2, 3] * 12])


def test_what_ran_before_the_engine_belongs_to_no_inference() -> None:
    word = [1, 2, 3, 4, 5, 6, 7, 8]
    pieces = cut_inferences(launches([[50, 51], *[word] * 5], synced=True))
    assert pieces.inference.tolist() == [-1, -1, *np.repeat(range(5), 8).tolist()]


@pytest.mark.parametrize("codes", [[], [1], [1, 1], [1, 2, 3]])
def test_short_sequences_are_at_most_one_inference_a_kernel(codes: list[int]) -> None:
    nothing = np.zeros(len(codes), np.int64)
    pieces = cut_inferences(LaunchedKernels(np.array(codes, np.int64), nothing, nothing, nothing))
    assert int(pieces.size.sum()) == len(codes)


def naive_period(codes: list[int]) -> int:
    return next(
        p
        for p in range(1, len(codes) + 1)
        if all(a == b for a, b in zip(codes, codes[p:], strict=False))
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(2, 8), st.integers(0, 11))
def test_the_period_of_a_periodic_sequence_is_the_smallest_one(
    word: list[int], count: int, more: int
) -> None:
    codes = word * count + word[: more % len(word)]
    steady = steady_period(np.array(codes, np.int64))
    assert steady == (naive_period(codes), 0)


@given(st.lists(st.integers(0, 50), min_size=4, max_size=12, unique=True), st.integers(3, 6))
def test_waits_after_each_kernel_bound_no_inference_and_the_period_tells(
    word: list[int], count: int
) -> None:
    codes = np.array(word * count, np.int64)
    every = np.ones(len(codes), np.int64)
    pieces = cut_inferences(LaunchedKernels(codes, every, np.zeros_like(codes), 20 * every))
    assert pieces.size.tolist() == [len(word)] * count


def shapes(words: Words) -> list[tuple[np.ndarray, np.ndarray]]:
    """The distinct words with the numbers of where they come, as which_repeat takes them."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number, word in enumerate(words):
        numbers.setdefault(tuple(word), []).append(number)
    return [
        (np.array(word, np.int64), np.array(places, np.int64)) for word, places in numbers.items()
    ]


@given(
    codes=st.lists(st.integers(-1, 4), min_size=12, max_size=40),
    cuts=st.sets(st.integers(1, 11), min_size=1),
)
def test_stretches_are_like_the_usual_one_as_each_of_them_alone_is(
    codes: list[int], cuts: set[int]
) -> None:
    held, borders = np.array(codes, np.int64), np.array([0, *sorted(cuts), len(codes)], np.int64)
    first, end = borders[:-1], borders[1:]
    usual = held[: end[0]]
    alone = [is_like(held[at:to], usual) for at, to in zip(first, end, strict=True)]
    assert are_like(held, first, end, usual).tolist() == alone
