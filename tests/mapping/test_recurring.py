"""What the runs of an engine usually launch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.scores import KernelFacts, score
from nsysmap.mapping.streams.recurring import (
    Usual,
    common_places,
    common_sequence,
    how_often,
    in_slots,
    is_but_for_a_block,
    is_part,
    least_share,
    neighbours,
    steady,
    usual_kernels,
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
