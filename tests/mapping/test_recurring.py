"""What the runs of an engine usually launch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.scores import KernelFacts, score
from nsysmap.mapping.streams.recurring import (
    Usual,
    _beside,
    _missed_together,
    common_places,
    common_sequence,
    distance,
    habit,
    how_often,
    in_slots,
    is_but_for_a_block,
    is_part,
    least_share,
    missing_rate,
    neighbours,
    other_tracks,
    steady,
    usual_kernels,
    usual_track,
    usual_value,
    within,
)
from nsysmap.mapping.streams.stream_alignment import Runs

LAYERS = (
    Layer(0, "conv", "convolution"),
    Layer(1, "{ForeignNode[a...b]}", "foreign_node"),
    Layer(2, "pool", "pooling"),
)
KERNELS = (
    "conv_kernel",
    "__myl_bb0_0_AddMul",
    "__myl_bb0_1_ResTra",
    "__myl_bb0_2_AddTan",
    "pool_kernel",
    "guest_1",
    "guest_2",
    "guest_3",
    "guest_4",
)


def longest_common(one: Sequence[int], other: Sequence[int]) -> int:
    """The naive recursion."""
    if not one or not other:
        return 0
    if one[-1] == other[-1]:
        return 1 + longest_common(one[:-1], other[:-1])
    return max(longest_common(one[:-1], other), longest_common(one, other[:-1]))


@given(st.lists(st.integers(0, 3), max_size=7), st.lists(st.integers(0, 3), max_size=7))
def test_common_places_are_a_longest_common_subsequence(one: list[int], other: list[int]) -> None:
    places = common_places(one, other)
    assert len(places) == longest_common(one, other)
    assert all(one[mine] == other[theirs] for mine, theirs in places)
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(places))


def test_the_common_sequence_has_what_each_lacks_somewhere_and_nothing_that_few_hold() -> None:
    whole = tuple(range(30))
    lacking = [tuple(item for item in whole if item % 10 != number) for number in range(10)]
    assert common_sequence(lacking) == whole
    assert (
        common_sequence(
            [
                (*sequence[:7], 99, *sequence[7:]) if at < 3 else sequence
                for at, sequence in enumerate(lacking)
            ]
        )
        == whole
    )
    assert common_sequence([(1, 2), (), (), ()]) == ()


def test_a_kernel_whose_grid_changes_from_run_to_run_is_one_kernel() -> None:
    name = np.array([0, 0, 0, 0, 1])
    run, row, slot = np.arange(8), np.array([0, 1, 2, 3, 0, 1, 2, 3]), np.zeros(8, np.int64)
    assert how_often(run, row, slot, name, 1, 8)[:4, 0].tolist() == [1.0, 1.0, 1.0, 1.0]
    run, row = np.arange(8), np.array([0, 0, 0, 0, 0, 0, 0, 1])
    assert np.allclose(how_often(run, row, np.zeros(8, np.int64), name, 1, 8)[:2, 0], [1.0, 0.125])


def test_fewer_than_chance_allows_come_and_go() -> None:
    assert least_share(0.1, 30) < 0.8
    assert least_share(0.01, 30) > 0.8
    assert least_share(0.1, 3) <= 0.5


def learnt(sequences: Sequence[Sequence[tuple[int, int]]]) -> Usual:
    """What runs (each its kernels with their slots) usually launch."""
    facts = [KernelFacts(name) for name in KERNELS]
    items = [item for sequence in sequences for item in sequence]
    last = np.cumsum([len(sequence) for sequence in sequences])
    first = np.concatenate([[0], last[:-1]])
    runs = Runs(
        np.zeros(len(sequences), np.int64),
        first,
        last - 1,
        np.array([slot for _, slot in items]),
        0.0,
    )
    scores = score(facts, Engine("made-up.json", LAYERS, detailed=True), LAYERS)
    return usual_kernels(
        np.array([row for row, _ in items]), None, runs, range(len(sequences)), scores, LAYERS
    )


def names(usual: Usual) -> list[str]:
    return [KERNELS[row] for row in usual.row.tolist()]


OWN = [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2)]
GUESTS = [(5, 1), (6, 1), (7, 1), (8, 1)]


def test_kernels_that_come_and_go_together_are_not_an_opaque_layer_s() -> None:
    runs = [[*OWN[:4], *(GUESTS if number % 3 else []), OWN[4]] for number in range(12)]
    assert names(steady(learnt(runs), LAYERS)) == list(KERNELS[:5])


def test_a_kernel_that_is_always_launched_beside_an_opaque_layer_s_is_its_own() -> None:
    runs = [[OWN[0], OWN[1], (2, -1), OWN[3], OWN[4]] for _ in range(6)]
    assert names(steady(learnt(runs), LAYERS)) == list(KERNELS[:5])


def test_a_kind_of_runs_may_be_another_one_with_a_guest_s_kernels() -> None:
    alone, together = learnt([OWN] * 3), learnt([[*OWN[:4], *GUESTS, OWN[4]]] * 9)
    assert is_part(alone, 3, together, 9, LAYERS)
    assert not is_part(together, 9, alone, 3, LAYERS)
    assert not is_part(alone, 1, together, 90, LAYERS)  # so few may be damaged ones


def test_a_block_is_found_wherever_it_is_in_a_sequence() -> None:
    whole = np.arange(10)
    for at in (0, 4, 10):
        assert is_but_for_a_block(whole, np.insert(whole, at, [97, 98, 99]))
    assert not is_but_for_a_block(whole, np.insert(whole, [2, 7], [98, 99]))
    assert not is_but_for_a_block(whole, whole)


def test_a_known_sequence_is_found_among_others_where_it_is_nearly_whole_and_in_one_place() -> None:
    known = [(kernel, slot) for slot, kernel in enumerate(range(20))]
    missing_one = [*range(7), *range(8, 20)]
    found = within([50, 51, 3, *missing_one, 52], known)
    assert found is not None
    assert found.tolist() == [-1, -1, -1, *missing_one, -1]
    assert within(list(range(15)), known) is None  # a quarter lacks
    # others stand within
    assert within([*range(10), *range(50, 60), *range(10, 20)], known) is None


def test_the_kernels_in_slots_are_those_of_the_even_cells() -> None:
    assert in_slots(((4,), (9,), (), (), (5, 6), ())) == [(4, 0), (5, 2), (6, 2)]


def test_what_stands_beside_the_runs_of_a_kind_is_counted_past_what_is_overlooked() -> None:
    row = np.array([7, 0, 1, 8, 0, 1, 9, 7, 0, 1])
    runs = Runs(
        np.zeros(3, np.int64), np.array([1, 4, 8]), np.array([2, 5, 9]), np.zeros(10, np.int64), 0.0
    )
    overlooked = np.arange(10) == 9
    explained = np.isin(row, [0, 1])
    found = neighbours(
        row, runs, np.array([0, 0, 1]), 2, overlooked=overlooked, explained=explained
    )
    assert [dict(one) for one in found] == [
        {(-1, 7): 1, (1, 8): 1, (-1, 8): 1, (1, 7): 1},
        {(-1, 7): 1},
    ]


# --- the figures, against what a slow reading gives
# ---------------------------------------------------------------------------------


def test_a_quarter_of_the_runs_says_nothing_of_a_habit_and_more_or_less_says_so_within_bounds() -> (
    None
):
    share = np.array([0.0, 0.1, 0.22, 0.5, 1.0])
    assert habit(share) == pytest.approx(
        [min(max(1.5 * math.log((one + 0.03) / 0.25), -2.5), 2.0) for one in share.tolist()]
    )
    assert habit(np.array([0.22]))[0] == pytest.approx(0)
    assert habit(np.array([0.0]))[0] == -2.5
    assert habit(np.array([10.0]))[0] == 2.0


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=30
    )
)
def test_how_often_is_the_share_of_the_runs_with_a_kernel_or_with_any_of_its_name(
    items: list[tuple[int, int, int]],
) -> None:
    name = [0, 0, 0, 1, 1]
    run, row, slot = (np.array(column) for column in zip(*items, strict=True))
    found = how_often(run, row, slot, np.array(name), 3, 4)
    for kernel, place in itertools.product(range(5), range(3)):
        exact = {k: len({r for r, w, s in items if w == k and s == place}) / 4 for k in range(5)}
        together = len({r for r, w, s in items if name[w] == name[kernel] and s == place}) / 4
        usual = max(exact[k] for k in range(5) if name[k] == name[kernel])
        varies = usual < 0.5 * together or exact[kernel] >= 0.3 * together
        assert found[kernel, place] == pytest.approx(together if varies else exact[kernel])


@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_a_kernel_in_no_slot_is_put_in_the_one_before_it_or_behind_it_that_takes_any(
    slots: list[int], takes: list[bool]
) -> None:
    want = []
    for at, slot in enumerate(slots):
        before = next((one for one in reversed(slots[:at]) if one >= 0), slots[0])
        behind = next((one for one in slots[at:] if one >= 0), slots[-1])
        beside = next((one for one in (before, behind) if takes[one]), -1)
        want.append(slot if slot >= 0 else beside)
    assert _beside(np.array(slots), np.array(takes)).tolist() == want


def test_the_usual_value_is_the_median_of_enough_that_hardly_differ() -> None:
    assert usual_value(np.array([5.0, 1.0, 1.2, 1.1, 0.9]), [1, 2, 3, 4]) == pytest.approx(
        (1.05, 0.15)
    )
    assert usual_value(np.array([1.0, 1.0, 1.0, 1.0]), np.arange(4)) == (1.0, 0.1)
    few = usual_value(np.array([1.0, 1.0, 1.0]), [0, 1, 2])
    none = usual_value(None, [0, 1, 2, 3])
    wild = usual_value(np.array([1.0, 1.0, 2.0, 2.0]), [0, 1, 2, 3])
    for value, spread in (few, none, wild):
        assert math.isnan(value)
        assert spread == 1.0
    # 1.5 times the median deviation: half a nat is still believed
    assert usual_value(np.array([0.0, 0.0, 2 / 3, 2 / 3]), [0, 1, 2, 3])[0] == pytest.approx(1 / 3)


def test_the_rate_of_missing_kernels_is_that_of_those_that_most_runs_launch() -> None:
    assert missing_rate(np.array([0.9, 0.8, 0.5, 0.1])) == pytest.approx(0.15)
    assert missing_rate(np.array([1.0, 1.0])) == 0.01
    assert missing_rate(np.array([0.5, 0.2])) == 0.01  # none that most runs launch
    assert missing_rate(np.array([0.51])) == pytest.approx(0.49)


@given(st.floats(0.01, 0.5), st.integers(1, 40), st.sampled_from([1e-3, 1e-2, 0.2]))
def test_the_least_share_is_where_the_chance_to_be_missing_as_often_ends(
    rate: float, runs: int, chance: float
) -> None:
    def at_least(missed: int) -> float:
        return sum(
            math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(missed, runs + 1)
        )

    first = next((missed for missed in range(runs + 1) if at_least(missed) < chance), None)
    want = 0.0 if first is None else 1 - (first - 0.5) / runs
    assert least_share(rate, runs, chance) == pytest.approx(want)


@given(st.lists(st.integers(0, 2), max_size=5), st.lists(st.integers(0, 2), max_size=9))
def test_a_sequence_is_another_but_for_a_block_where_a_cut_anywhere_shows_it(
    shorter: list[int], longer: list[int]
) -> None:
    added = len(longer) - len(shorter)
    want = added >= 3 and any(
        shorter == longer[:at] + longer[at + added :] for at in range(len(shorter) + 1)
    )
    if shorter:
        assert is_but_for_a_block(np.array(shorter), np.array(longer)) == want


@pytest.mark.parametrize(
    ("items", "found"),
    [
        (range(18), True),  # nine tenths of 20
        (range(17), False),
        ([*range(10), *[90] * 2, *range(10, 20)], True),  # in a place of 22 for 20
        ([*range(10), *[90] * 3, *range(10, 20)], False),
        ([90, 91, *range(20), 92], True),
    ],
)
def test_a_known_sequence_stands_where_nine_tenths_of_it_fill_nine_tenths_of_their_place(
    items: Sequence[int], found: bool
) -> None:
    known = [(kernel, kernel + 100) for kernel in range(20)]
    slots = within(list(items), known)
    assert (slots is not None) == found
    if slots is not None:
        assert slots.tolist() == [item + 100 if item < 20 else -1 for item in items]


def test_runs_differ_by_the_share_of_the_usual_kernels_with_one_left_out() -> None:
    name = [0, 0, 1, 2]
    usual = ((0,), (), (2, 2), (), (3,), ())
    assert distance(usual, usual, name, cut=False) == 0
    one = ((0,), (), (2,), (), (3,), ())
    assert distance(one, usual, name, cut=False) == 0  # one may lack
    two = ((0,), (), (), (), (3,), ())
    assert distance(two, usual, name, cut=False) == pytest.approx(1 / 4)
    more = ((0,), (3, 3, 3), (2, 2), (), (3,), ())
    assert distance(more, usual, name, cut=False) == pytest.approx(2 / 4)
    # another grid counts a quarter: here of two kernels that differ by name and one by its grid
    grid = ((1,), (), (3, 3), (), (3,), ())
    assert distance(grid, usual, name, cut=False) == pytest.approx((2 + 0.25 - 1) / 4)
    # of a run that is cut only the slots that it reached count
    cut = ((), (), (2, 2), (), (), ())
    assert distance(cut, usual, name, cut=True) == 0
    assert distance(cut, usual, name, cut=False) == pytest.approx(1 / 4)
    assert distance(((), ()), ((), ()), name, cut=True) == 0


def test_kernels_that_lack_together_in_a_row_do_not_lack_by_chance() -> None:
    had = np.ones((12, 20), np.bool_)
    had[3:9, :5] = False  # six in a row, in a quarter of the runs
    had[10, 7] = False  # one by itself
    share = had.mean(axis=1)
    assert _missed_together(had, share) == pytest.approx(
        [0.25 if 3 <= at < 9 else 0 for at in range(12)]
    )
    assert _missed_together(np.ones((0, 3), np.bool_), np.zeros(0)).tolist() == []
    short = np.ones((12, 20), np.bool_)
    short[3:5, :5] = False  # two are no block
    assert not _missed_together(short, short.mean(axis=1)).any()


# --- sequences of others
# -----------------------------------------------------------------------------


def pieces(*sequences: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The items of sequences that pauses part, and where the pauses are."""
    row = np.array([item for sequence in sequences for item in sequence])
    pauses = np.zeros(len(row), np.bool_)
    pauses[np.cumsum([len(sequence) for sequence in sequences])[:-1]] = True
    return row, pauses


@pytest.mark.parametrize(
    ("size", "times", "inside", "found"),
    [
        (5, 3, 0.0, True),
        (4, 3, 0.0, False),  # too short
        (5, 2, 0.0, False),  # too seldom
        (10, 4, 0.1, True),
        (10, 3, 0.2, False),  # too much of it is in inferences
        (1000, 3, 0.0, True),
        (1001, 3, 0.0, False),  # too long
    ],
)
def test_a_sequence_is_another_s_if_it_recurs_between_pauses_and_outside_of_inferences(
    size: int, times: int, inside: float, found: bool
) -> None:
    mine = [at % 50 for at in range(size)]
    sequences: list[list[int]] = []
    for number in range(times):
        sequences += [mine, [60 + number]]
    row, pauses = pieces(*sequences)
    of_inference = np.zeros(len(row), np.bool_)
    begins = np.cumsum([0, *(len(sequence) for sequence in sequences)])[:-1:2]
    for begin in begins.tolist():
        of_inference[begin : begin + round(size * inside)] = True
    tracks = other_tracks(row, pauses, of_inference)
    assert len(tracks) == found
    for track in tracks:
        assert track.match.shape == (int(row.max()) + 1, size)
        assert [track.match[item, at] for at, item in enumerate(mine)] == [5.0] * size
        assert sorted(set(track.match.ravel().tolist())) == [-30.0, 5.0]
        assert set(track.more.ravel().tolist()) == {-30.0}
        assert track.skip.tolist() == [-6.0] * size


def test_of_other_sequences_the_eight_that_most_kernels_are_in_are_taken() -> None:
    sequences = [[10 * kind + at for at in range(5 + kind)] for kind in range(9)] * 3
    row, pauses = pieces(*sequences)
    tracks = other_tracks(row, pauses, np.zeros(len(row), np.bool_))
    assert [len(track.skip) for track in tracks] == [13, 12, 11, 10, 9, 8, 7, 6]
    assert other_tracks(row, np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)) == ()


# --- the track of what is usual
# --------------------------------------------------------------------------


def test_the_track_of_usual_kernels_wants_each_in_its_place() -> None:
    facts = [KernelFacts(name) for name in KERNELS]
    scores = score(facts, Engine("made-up.json", LAYERS, detailed=True), LAYERS)
    lacking = [OWN[:2] + OWN[3:] if number < 2 else OWN for number in range(20)]
    usual = learnt(lacking)
    assert usual.share.tolist() == [1, 1, 0.9, 1, 1]
    assert usual.runs == 20
    track = usual_track(scores, LAYERS, usual)
    assert track.whole is not None
    assert track.whole.tolist() == [0, 1, 1, 1, 2]
    # each in its own place: what its name says and two nats, three at least
    for place, (row, slot) in enumerate(OWN):
        assert track.match[row, place] == max(scores.match[row, slot] + 2.0, 3.0)
    # in the place of another of its layer it is worth less than in its own, and a guest least
    assert all(
        track.match[row, place] < track.match[row, row] - 2
        for row in range(5)
        for place in range(5)
        if place != row
    )
    assert (track.match[5:, :] <= scores.match[5:, :][:, track.whole] - 1.5).all()
    # nothing comes twice in a place where it never did
    assert (track.more <= scores.more[:, track.whole] - 3 + 1e-9)[
        scores.more[:, track.whole] <= 0
    ].all()
    # how likely it is that each lacks: the rate of all where that explains it
    rate = missing_rate(usual.share)
    assert rate == pytest.approx(0.02)
    lacks = [rate, rate, 0.1, rate, rate] if least_share(rate, 20) > 0.9 else [rate] * 5
    assert track.skip == pytest.approx(np.log(lacks))


def test_a_layer_that_mostly_has_no_kernel_keeps_a_place_that_may_stay_empty() -> None:
    facts = [KernelFacts(name) for name in KERNELS]
    scores = score(facts, Engine("made-up.json", LAYERS, detailed=True), LAYERS)
    track = usual_track(scores, LAYERS, learnt([OWN[:4]] * 6))
    assert track.whole is not None
    assert track.whole.tolist() == [0, 1, 1, 1, 2]
    assert track.skip[4] == max(scores.skip[2], -0.3)
    assert track.usual is not None
    assert np.isnan(track.usual).all()
    # in an opaque layer that is the last, one more kernel is hardly believed
    assert (track.more[:, 1:4] <= -8.0).all()
    assert (track.more[:, 0] > -8.0).any()


# --- what varies is left out, at its limits
# ------------------------------------------------------------------------------


def usual_of(
    share: Sequence[float], *, slot: Sequence[int], missed: Sequence[float], runs: int = 20
) -> Usual:
    """Kernels of the names 0, 1, … with their shares; each is in its own place only."""
    count = len(share)
    near = np.zeros((len(KERNELS), count))
    near[np.arange(count), np.arange(count)] = share
    often = np.zeros((len(KERNELS), len(LAYERS)))
    often[np.arange(count), list(slot)] = share
    return Usual(
        np.arange(count),
        np.arange(count),
        np.array(slot),
        np.array(share),
        np.full(count, np.nan),
        np.ones(count),
        near,
        np.array(missed),
        often,
        runs,
    )


@pytest.mark.parametrize(
    ("missed", "runs", "left"),
    [
        (0.15, 20, [0, 1, 3, 4]),  # a block that three of twenty runs lack comes and goes
        (0.149, 20, [0, 1, 2, 3, 4]),
        (0.2, 10, [0, 1, 2, 3, 4]),  # two runs are too few
        (0.3, 10, [0, 1, 3, 4]),
        (0.24, 10, [0, 1, 2, 3, 4]),
        (0.25, 12, [0, 1, 3, 4]),
        (0.99, 2, [0, 1, 2, 3, 4]),
    ],
)
def test_a_block_comes_and_goes_if_three_runs_and_a_share_of_them_lack_it(
    missed: float, runs: int, left: list[int]
) -> None:
    for slots, kept in (([0, 1, 1, 1, 2], left), ([0, 0, 0, 0, 2], [0, 1, 2, 3, 4])):
        # in a layer that runs one number of kernels it is left
        usual = usual_of([1.0] * 5, slot=slots, missed=[0, 0, missed, 0, 0], runs=runs)
        assert steady(usual, LAYERS).name.tolist() == kept


@pytest.mark.parametrize(
    ("share", "left"),
    [
        ([0.6, 1, 1, 1, 1], [1, 2, 3, 4]),
        ([1, 1, 1, 1, 0.6], [0, 1, 2, 3]),
        ([1, 1, 0.6, 1, 1], [0, 1, 2, 3, 4]),  # between those that all runs have it stays
        ([0.6, 0.6, 1, 1, 0.6], [2, 3]),
        ([1] * 5, [0, 1, 2, 3, 4]),
        ([0.6] * 5, [0, 1, 2, 3, 4]),  # all runs lack kernels alike
    ],
)
def test_ends_that_not_all_runs_have_are_left_out(share: list[float], left: list[int]) -> None:
    usual = usual_of(share, slot=[0, 1, 1, 1, 2], missed=[0] * 5, runs=100)
    found = steady(usual, LAYERS)
    assert found.name.tolist() == left
    assert found.row.tolist() == left
    assert found.slot.tolist() == [[0, 1, 1, 1, 2][at] for at in left]
    assert found.share.tolist() == [share[at] for at in left]
    assert found.near.shape == (len(KERNELS), len(left))
    assert found.missed.tolist() == [0.0] * len(left)
    assert found.runs == 100
    # what is left out is nowhere the layer's
    for at in range(5):
        assert (found.often[at].max() > 0) == (at in left)
    assert usual.often.max(axis=1)[:5].tolist() == share  # a copy


def known(names: Sequence[int], slots: Sequence[int]) -> Usual:
    count = len(names)
    return Usual(
        np.array(names),
        np.array(names),
        np.array(slots),
        np.ones(count),
        np.full(count, np.nan),
        np.ones(count),
        np.zeros((200, count)),
        np.zeros(count),
        np.zeros((200, 3)),
        9,
    )


@pytest.mark.parametrize(
    ("added", "runs", "lacks", "part"),
    [
        (3, 10, 0, True),
        (2, 10, 0, False),  # too few for a block
        (6, 10, 0, True),
        (3, 1, 0, True),  # a tenth of the other's runs
        (3, 0, 0, False),
        (6, 10, 2, True),  # it has eight of ten of its kernels
        (6, 10, 3, False),
    ],
)
def test_a_kind_is_part_of_another_that_has_a_block_more(
    added: int, runs: int, lacks: int, part: bool
) -> None:
    less = known(range(10), [0, *[1] * 8, 2])
    names = [*range(lacks, 5), *range(100, 100 + added), *range(5, 10)]
    more = known(names, [1] * len(names))
    assert is_part(less, runs, more, 10, LAYERS) == part


def test_what_is_added_is_in_one_place_and_in_an_opaque_layer() -> None:
    less = known(range(10), [0, *[1] * 8, 2])
    spread = [one for at in range(10) for one in (at, 100 + at)]
    assert not is_part(less, 9, known(spread, [0, *[1] * 18, 2]), 9, LAYERS)
    block = [*range(5), *range(100, 110), *range(5, 10)]
    assert is_part(less, 9, known(block, [0, *[1] * 18, 2]), 9, LAYERS)
    # in a layer that runs one kernel it is no guest's
    assert not is_part(less, 9, known(block, [0] * 19 + [2]), 9, LAYERS)
    # eight of ten in one place are enough, and most of these in an opaque layer
    nearly = [0, 100, *range(1, 5), *range(101, 109), *range(5, 9), 109, 9]
    assert is_part(less, 9, known(nearly, [0, *[1] * 18, 2]), 9, LAYERS)
    for listed, part in ((3, True), (4, False)):
        slots = [0] * 5 + [0] * listed + [1] * (10 - listed) + [1] * 4 + [2]
        assert is_part(less, 9, known(block, slots), 9, LAYERS) == part


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=5),
)
def test_the_common_sequence_of_some_is_shared_by_more_than_half(
    sequences: list[list[int]],
) -> None:
    made = [tuple(one) for one in sequences]
    found = common_sequence(made)
    # if more than half of them are equal, it is that one
    for one in made:
        if 2 * made.count(one) > len(made):
            assert found == one
    # and of each of its items there are more than half that have it as often
    for item in set(found):
        having = sum(one.count(item) >= 1 for one in made)
        assert 2 * having > len(made)


@pytest.mark.parametrize(
    ("sequences", "common"),
    [
        ([(1, 2), (1, 2), (1, 2)], (1, 2)),
        ([(1, 2), (1, 2), (3,), (4,)], ()),  # half is not more than half
        ([(1, 2), (1, 2), (1, 2), (3,), (4,)], (1, 2)),
        ([(1, 2, 3), (1, 3), (1, 2)], (1, 2, 3)),
        ([(1, 3), (1, 2, 3), (1, 2, 3, 9)], (1, 2, 3)),
        ([(1, 9), (1, 8), (1, 7)], (1,)),
        ([(9, 1), (8, 1), (7, 1)], (1,)),
        ([(1,), (1,), (), ()], ()),
        ([(1,), (1,), ()], (1,)),
        ([(5, 1, 6), (5, 1), (1, 6), (5, 6)], (5, 1, 6)),
        ([(5, 1, 6), (5, 1), (1, 6), (6,), ()], (1, 6)),
        ([(), (), ()], ()),
        ([(2, 1), (1,), (2, 1, 3), (2, 3)], (2, 1)),
        ([], ()),
    ],
)
def test_what_more_than_half_of_the_sequences_have_in_common(
    sequences: list[tuple[int, ...]], common: tuple[int, ...]
) -> None:
    assert common_sequence(sequences) == common


def test_what_each_kernel_is_worth_in_the_place_of_another() -> None:
    """By its name, by its work, or by neither; a guest is like nothing."""
    layers = (LAYERS[0], LAYERS[1], LAYERS[2])
    facts = [KernelFacts(name) for name in KERNELS]
    scores = score(facts, Engine("made-up.json", layers, detailed=True), layers)
    foreign = np.arange(len(KERNELS)) >= 5
    like = np.array([0, 1, 1, 2, 3, 1, 4, 5, 6])  # the first guest does what the second kernel does
    name = np.array([0, 1, 2, 3, 4, 5, 1, 7, 8])  # the second guest is called as it is
    scores = replace(
        scores,
        foreign=foreign,
        like=like,
        name=name,
        match=np.zeros((9, 3)),
        more=np.full((9, 3), 0.5),
        skip=np.array([-5.0, -0.1, -5.0]),
    )
    usual = usual_of([1.0, 1.0, 1.0], slot=[0, 1, 2], missed=[0] * 3, runs=40)
    track = usual_track(scores, layers, usual)
    second = track.match[:, 1].tolist()
    assert second[1] == 3.0  # itself: two nats, but three at least
    assert second[2] == -1.5  # another of that work
    assert second[3] == -6.0
    assert second[5] == -6.0  # a guest of that work
    assert second[6] == 0.5  # of that name, though seldom that very one
    assert (track.more[:, 1] == 0.0 - 3.0).all()
    assert track.skip == pytest.approx(np.log([0.01] * 3))
    # its very kernel in three tenths of the runs is it too, and any of that name if none is often
    near = usual.near.copy()
    for mine, its, own in ((0.8, 0.3, 3.0), (0.8, 0.29, 0.5), (0.5, 0.29, 0.5), (0.49, 0.1, 3.0)):
        near[1, 1], near[6, 1] = mine, its
        varied = usual_track(scores, layers, replace(usual, near=near))
        assert varied.match[6, 1] == own
    # in an opaque layer that is the first or the last one more kernel is hardly believed
    ends = usual_track(scores, layers, usual_of([1.0, 1.0], slot=[0, 1], missed=[0] * 2, runs=40))
    assert (ends.more[:, 1] == -8.0).all()
    assert ends.whole is not None
    assert ends.whole.tolist() == [0, 1, 2]
    assert ends.skip[2] == -0.3
    assert ends.spread is not None
    assert ends.spread.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("share", "rate"), [(0.95, None), (0.8, 0.2), (0.3, 0.5)])
def test_how_likely_a_kernel_lacks_is_the_rate_of_all_or_its_own(
    share: float, rate: float | None
) -> None:
    facts = [KernelFacts(name) for name in KERNELS]
    scores = score(facts, Engine("made-up.json", LAYERS, detailed=True), LAYERS)
    usual = usual_of([1.0] * 4 + [share], slot=[0, 1, 1, 1, 2], missed=[0] * 5, runs=40)
    common = max(1 - (4 + share) / 5, 0.01) if share > 0.5 else 0.01
    track = usual_track(scores, LAYERS, usual)
    assert track.skip == pytest.approx(np.log([common] * 4 + [rate or common]))
