"""How far kernels in opaque regions are believed, by what stands around them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import BoolArray, IntArray
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.order import open_ends as module
from nsysmap.mapping.order.kernel_alignment import EngineMatch, may_run_this
from nsysmap.mapping.order.open_ends import (
    ALONE,
    AT_AN_END,
    BETWEEN,
    SHARPLY,
    border_chances,
    most_of_anything,
    open_ends,
    pauses,
    unlike_others,
)

REGION, PRODUCT = Layer(1, "{ForeignNode[a...b]}", "foreign_node"), Layer(0, "product", "gemm")


def _most(layers: str, explained: str) -> list[float]:
    of = {"R": REGION, "p": PRODUCT, "-": None}
    told = np.array([one == "y" for one in explained], np.bool_)
    return list(map(float, most_of_anything(open_ends([of[one] for one in layers], told))))


def test_a_region_between_layers_that_explain_their_kernels_is_believed_most() -> None:
    assert _most("pRRp", "ynny") == [1.0, BETWEEN, BETWEEN, 1.0]


def test_at_an_end_another_engine_may_have_run() -> None:
    assert _most("RpRR", "nynn") == [AT_AN_END, 1.0, AT_AN_END, AT_AN_END]


def test_a_layer_whose_kernel_does_not_speak_for_it_bounds_nothing() -> None:
    assert _most("pRpR", "ynnn") == [1.0, AT_AN_END, 1.0, AT_AN_END]


def test_a_region_that_nothing_stands_beside_is_believed_least() -> None:
    assert _most("RR-", "nnn") == [ALONE, ALONE, 1.0]
    assert ALONE < AT_AN_END < BETWEEN < 1.0


def test_kernels_that_no_opaque_layer_has_are_left_alone() -> None:
    assert _most("pp", "yn") == [1.0, 1.0]


def _match(probability: float, ran: float) -> EngineMatch:
    return EngineMatch(1, 1, 1, 1, 0, False, probability=probability, ran=ran)


def _shaped(*shapes: tuple[int, ...]) -> Engine:
    layers = [
        Layer(at, f"layer_{at}", "gemm", outputs=(Tensor("t", shape),))
        for at, shape in enumerate(shapes)
    ]
    return Engine("e", tuple(layers), detailed=True)


def test_other_code_beside_code_of_the_files_shape_is_another_engines() -> None:
    fixed, dynamic, untold = _shaped((1, 64)), _shaped((1, 64), (-1, 64)), _shaped()
    beside, throughout, its = _match(0.1, 0.6), _match(0.1, 0.02), _match(0.9, 0.6)
    assert not may_run_this(beside, fixed, before=False)
    assert may_run_this(beside, fixed, before=True)  # a warm-up
    assert may_run_this(throughout, fixed, before=False)  # another shape
    assert may_run_this(its, fixed, before=False)
    assert may_run_this(beside, dynamic, before=False)
    assert may_run_this(beside, untold, before=False)


def test_where_the_host_pauses_otherwise_from_time_to_time_another_engine_begins() -> None:
    """Before the first kernel and before the sixth, in every third of twelve inferences."""
    paused = np.zeros((12, 30), np.bool_)
    paused[::3, [0, 5]] = True
    chances = border_chances([paused], (0, 2))
    assert (chances[:3] == 0).all()
    assert chances[3:5].max() < 0.05
    assert chances[5:].min() > 0.95
    ends = open_ends([PRODUCT] * 3 + [REGION] * 27, np.ones(30, np.bool_))
    most = most_of_anything(ends, chances)
    assert most[3:5].min() > 0.95
    assert most[5:].max() < 0.05
    alone = open_ends([REGION] * 30, np.zeros(30, np.bool_))
    assert most_of_anything(alone, border_chances([paused], None)).max() < 0.05


def test_without_such_a_pause_a_border_is_the_likelier_the_further_away() -> None:
    paused = np.zeros((12, 10), np.bool_)
    paused[::3, 0] = True
    chances = border_chances([paused], (3, 4))
    assert (np.diff(chances[4:]) > 0).all()
    assert (np.diff(chances[:4]) < 0).all()
    assert chances.max() < 0.15  # another engine may be enqueued right behind


def test_a_pause_is_one_that_is_much_longer_or_shorter_than_usual_at_that_place() -> None:
    gaps = np.array([[40_000, 9_000, 5_000], [12_000, 9_500, 5_000], [3_000, 9_000, 5_200]])
    assert unlike_others(gaps).tolist() == [
        [True, False, False],
        [False, False, False],
        [True, False, False],
    ]


def border_odds(paused: list[list[bool]], place: int) -> float:
    """By the definition: how much likelier the pauses at a place are if inferences begin there."""
    count, kernels = len(paused), len(paused[0])
    begins = (sum(row[0] for row in paused) + 0.5) / (count + 1)
    within = (sum(sum(row[1:]) for row in paused) + 0.5) / (count * (kernels - 1) + 1)
    likely = 1.0
    for row in paused:
        likely *= begins / within if row[place] else (1 - begins) / (1 - within)
    return 0.2 + 0.8 * likely


@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=6),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_a_border_is_as_likely_as_pauses_say_wherever_it_is(
    paused: list[list[bool]], one: int, other: int
) -> None:
    first, last = sorted((one, other))
    odds = [border_odds(paused, place) for place in range(6)]

    def at_or_before(places: list[int]) -> list[float]:
        """A third of all engines is followed by another, which begins anywhere alike."""
        worth = [odds[place] / 3 / len(places) for place in places]
        return [sum(worth[: at + 1]) / (2 / 3 + sum(worth)) for at in range(len(places))]

    behind = list(range(last + 1, 6))
    ahead = list(range(first, 0, -1))
    chances = border_chances([np.array(paused)], (first, last))
    assert chances[behind].tolist() == pytest.approx(at_or_before(behind) if behind else [])
    before = at_or_before(ahead) if ahead else []
    assert chances[:first].tolist() == pytest.approx(before[::-1])
    assert not chances[first : last + 1].any()
    anywhere = border_chances([np.array(paused)], None)
    assert anywhere.tolist() == pytest.approx([at_or_before(list(range(1, 6)))[-1]] * 6)


def test_of_two_measures_of_pauses_the_odds_are_the_mean() -> None:
    paused = np.zeros((3, 4), np.bool_)
    paused[:, [0, 2]] = True
    never = np.zeros((3, 4), np.bool_)
    both = border_chances([paused, never], (0, 0))
    odds = [
        (border_odds(paused.tolist(), at) + border_odds(never.tolist(), at)) / 2 for at in (1, 2, 3)
    ]
    worth = np.array(odds) / 9
    assert both[1:].tolist() == pytest.approx((np.cumsum(worth) / (2 / 3 + worth.sum())).tolist())
    assert border_chances([paused[:, :1]], None).tolist() == [0.0]


@pytest.mark.parametrize(
    ("border", "alone", "at_end"), [(0.0, 0.6, 0.99), (0.005, 0.6, 0.99), (0.5, 0.5, 0.5)]
)
def test_a_border_limits_what_is_believed_beside_it(
    border: float, alone: float, at_end: float
) -> None:
    chances = np.full(3, border)
    nothing = open_ends([REGION, REGION, PRODUCT], np.array([True, True, False]))
    assert most_of_anything(nothing, chances).tolist() == [alone, alone, 1.0]
    end = open_ends([PRODUCT, REGION, REGION], np.array([True, True, True]))
    assert most_of_anything(end, chances).tolist() == [1.0, at_end, at_end]
    between = open_ends([PRODUCT, REGION, PRODUCT], np.array([True, True, True]))
    assert most_of_anything(between, chances).tolist() == [1.0, 0.99, 1.0]


@pytest.mark.parametrize(
    ("layers", "told", "is_open"),
    [
        ("pRp", "yyy", False),
        ("Rpp", "nyy", True),
        ("ppR", "yyn", True),
        ("ppp", "yyy", False),
        ("RRR", "yyy", True),
        ("---", "nnn", False),
        ("pRp", "yyn", True),
    ],
)
def test_an_end_is_open_where_anything_stands_beyond_what_is_known(
    layers: str, told: str, is_open: bool
) -> None:
    kinds = {"p": PRODUCT, "R": REGION, "-": None}
    ends = open_ends([kinds[one] for one in layers], np.array([one == "y" for one in told]))
    assert ends.open == is_open


@pytest.mark.parametrize(
    ("usual", "gap", "unlike"),
    [
        (2_000, 4_000, False),
        (2_000, 4_001, True),  # twice the usual time
        (300, 1_000, False),
        (300, 1_001, True),  # and a microsecond at least
        (9_000, 3_500, False),
        (9_000, 3_499, True),  # half of it, and a microsecond less
    ],
)
def test_how_unlike_a_pause_must_be(usual: int, gap: int, unlike: bool) -> None:
    gaps = np.full((5, 3), usual)
    gaps[2, 1] = gap
    found = unlike_others(gaps)
    assert found[2, 1] == unlike
    assert found.sum() == unlike


def test_a_place_where_every_inference_pauses_is_unlike_most_places() -> None:
    for gap, unlike in ((8_000, False), (8_001, True)):
        gaps = np.full((3, 5), 2_000)
        gaps[:, 1] = gap  # four times the median of all
        assert unlike_others(gaps)[:, 1].tolist() == [unlike] * 3
    for gap, unlike in ((20_000, False), (20_001, True)):
        gaps = np.full((3, 5), 2_000)
        gaps[:, 1] = gap
        assert unlike_others(gaps, SHARPLY)[:, 1].tolist() == [unlike] * 3
    assert unlike_others(np.zeros((0, 3), np.int64)).shape == (0, 3)


@given(
    st.lists(
        st.tuples(st.integers(0, 90_000), st.sampled_from([1, 2]), st.sampled_from([-1, 0, 7])),
        min_size=6,
        max_size=12,
        unique_by=lambda one: one[0],
    )
)
def test_the_host_pauses_between_launches_of_one_thread_or_asks_something(
    launches: list[tuple[int, int, int]],
) -> None:
    """Launches in any order, some of which the trace does not have; the host asks before every
    third.
    """
    columns = {
        "thread": np.array([thread for _, thread, _ in launches]),
        "launch": np.array([launch for _, _, launch in launches]),
    }
    held = SimpleNamespace(kernels=SimpleNamespace(ints=lambda name: columns[name]))

    def between(_: object, order: IntArray, calls: BoolArray) -> IntArray:
        assert calls.tolist() == [True, True, False]
        counts: IntArray = (order % 3 == 0).astype(np.int64)
        return counts

    times = np.array([time for time, _, _ in launches])
    threads = [thread if launch >= 0 else -1 for _, thread, launch in launches]
    gap = np.zeros(len(launches), np.int64)
    for at, time in enumerate(times.tolist()):
        before = [times[one] for one in range(len(times)) if threads[one] == threads[at]]
        gap[at] = time - max([one for one in before if one < time], default=time)
    rows = np.arange(len(launches) // 3 * 3).reshape(3, -1)
    asked = rows % 3 == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "launch_time", lambda _: times)
        patch.setattr(module, "calls_between", between)
        patch.setattr(module, "waits_of", lambda _: np.array([True, False, False]))
        patch.setattr(module, "copies_of", lambda _: np.array([False, True, False]))
        usual, sharp = pauses(held, rows)  # type: ignore[arg-type]
    assert usual.tolist() == (unlike_others(gap[rows]) | asked).tolist()
    assert sharp.tolist() == (unlike_others(gap[rows], SHARPLY) | asked).tolist()


@given(
    st.lists(st.lists(st.integers(0, 30_000), min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([2.0, 5.0]),
)
def test_what_is_unlike_others_by_its_definition(gaps: list[list[int]], times: float) -> None:
    table = np.array(gaps)
    found = unlike_others(table, times)
    middle = float(np.median(table))
    for place in range(3):
        column = sorted(table[:, place].tolist())
        usual = column[(len(column) - 1) // 2]
        for at, gap in enumerate(table[:, place].tolist()):
            long = gap > max(min(times * usual, 2 * times * middle), 1000)
            assert found[at, place] == (long or gap + 1000 < usual / times)
