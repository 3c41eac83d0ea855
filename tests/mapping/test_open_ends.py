"""How far kernels in opaque regions are believed, by what stands around them."""

from __future__ import annotations

import numpy as np

from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.order.kernel_alignment import EngineMatch, may_run_this
from nsysmap.mapping.order.open_ends import (
    ALONE,
    AT_AN_END,
    BETWEEN,
    border_chances,
    most_of_anything,
    open_ends,
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
