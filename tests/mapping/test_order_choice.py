"""Which engine ran the inferences of a stream, and what is written of it, on inferences that are
made up and engines that fit as a test says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text
from nsysmap.core.trace_schema import GPU_KERNELS
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order import by_order, kernel_alignment
from nsysmap.mapping.order.by_order import (
    FOREIGN,
    NO_FIT,
    NO_INFERENCE,
    PERHAPS,
    TOO_FEW,
    TOO_MANY,
    AskedKernels,
    EngineVerdict,
    Placed,
    _begins_in,
    _best,
    _choose,
    _cut_at_known,
    _engine_of,
    _match,
    _maybe_cut,
    _mostly,
    _part_of,
    _pins,
    _place_streams,
    _probability,
    _renumbered,
    _settled,
    _Shape,
    _Tried,
    _wholly,
    _with_pauses,
    place_by_order,
)
from nsysmap.mapping.order.kernel_alignment import Alignment, EngineMatch
from nsysmap.mapping.order.scores import KernelFacts
from nsysmap.mapping.order.twins import EITHER, SEVERAL
from nsysmap.mapping.streams.streams import Streams, no_streams
from tests.mapping.test_segments import ENGINE, match
from tests.mapping.test_stream_columns import FIXED
from tests.whatif.test_window import trace

LONG = (0, 1, 2, 3, 4, 5, 6, 7)


def shape(
    codes: Sequence[int] = LONG,
    *,
    runs: int = 4,
    complete: bool = True,
    first: bool = False,
    last: bool = False,
    by_period: bool = False,
    begin: int = 0,
) -> _Shape:
    """So many inferences that launch these kernels."""
    rows = begin + np.arange(runs * len(codes)).reshape(runs, len(codes))
    facts = tuple(KernelFacts(str(code)) for code in codes)
    return _Shape(
        (1, 2, 3), rows, np.array(codes, np.int64), facts, complete, first, last, by_period
    )


@dataclass
class Fits:
    """How well engines explain kernels: by the engine, the kernels, and where they are cut."""

    held: dict[tuple[int, tuple[int, ...], tuple[bool, bool]], EngineMatch] = field(
        default_factory=dict
    )
    asked: list[tuple[int, tuple[int, ...], tuple[bool, bool]]] = field(default_factory=list)
    engines: tuple[Engine, ...] = ()

    def add(
        self,
        found: EngineMatch,
        codes: Sequence[int] = LONG,
        engine: int = 0,
        cut: tuple[bool, bool] = (False, False),
    ) -> Fits:
        self.held[engine, tuple(codes), cut] = found
        return self

    def __call__(
        self,
        kernels: Sequence[KernelFacts],
        engine: Engine,
        *,
        cut: tuple[bool, bool] = (False, False),
    ) -> EngineMatch:
        number = next(at for at, one in enumerate(self.engines) if one is engine)
        key = (number, tuple(int(one.name) for one in kernels), cut)
        self.asked.append(key)
        return self.held.get(key, match(accepted=False, placed=0.1, used=0.1, evidence=-1.0))

    def tried(self, count: int = 1, engine: Engine = ENGINE) -> _Tried:
        self.engines = tuple(replace(engine, source=str(at)) for at in range(count))
        return _Tried(self.engines)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fits]:
    held = Fits()
    monkeypatch.setattr(kernel_alignment, "engine_match", held)
    yield held


UNDECIDED = match(accepted=False, undecided=True)
NO = match(accepted=False, placed=0.2)


# --- sequences
# ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.lists(st.integers(0, 2), max_size=9))
def test_where_a_sequence_begins_in_a_longer_one(part: list[int], whole: list[int]) -> None:
    naive = next(
        (at for at in range(len(whole) - len(part) + 1) if whole[at : at + len(part)] == part), -1
    )
    found = _begins_in(np.array(part), np.array(whole, np.int64))
    assert found == (naive if len(whole) > len(part) else -1)


def test_numbers_are_made_without_gaps_and_what_has_none_keeps_none() -> None:
    assert _renumbered(np.array([7, MISSING, 3, 7, 9])).tolist() == [1, MISSING, 0, 1, 2]


@pytest.mark.parametrize(("took", "mostly"), [(50, True), (49, False), (0, False)])
def test_repetitions_take_most_of_the_time_from_half_of_it_on(took: int, mostly: bool) -> None:
    rows = [
        {"kernel_id": 0, "name": "k", "start_ns": 0, "end_ns": took},
        {"kernel_id": 1, "name": "k", "start_ns": 100, "end_ns": 100 + (50 if took else 0)},
        {"kernel_id": 2, "name": "k", "start_ns": 300, "end_ns": 900},
    ]
    held = replace(trace(), kernels=Table.of_rows(GPU_KERNELS, rows))
    assert _mostly(held, np.arange(2), np.array([0, MISSING, MISSING])) == mostly


@pytest.mark.parametrize(
    ("runs", "first", "last", "cut"),
    [
        (1, True, False, True),
        (1, False, True, True),
        (1, False, False, False),
        (2, True, True, False),
    ],
)
def test_only_the_first_and_the_last_inference_of_a_stream_may_be_cut(
    runs: int, first: bool, last: bool, cut: bool
) -> None:
    assert _maybe_cut(shape(runs=runs, first=first, last=last)) == cut


def test_a_cut_inference_is_the_end_or_the_beginning_of_a_whole_one() -> None:
    whole = shape()

    def part(codes: Sequence[int], **ends: bool) -> object:
        one = shape(codes, runs=1, complete=False, **ends)
        found = _part_of(one, [one, whole])
        return None if found is None else (found[0] is whole, found[1])

    assert part(LONG[3:], first=True) == (True, 3)
    assert part(LONG[:3], last=True) == (True, 0)
    assert part(LONG[3:], last=True) is None
    assert part(LONG[:3], first=True) is None
    assert part(LONG, first=True, last=True) is None
    assert part((8, 9), first=True, last=True) is None
    incomplete = replace(whole, complete=False)
    one = shape(LONG[3:], runs=1, first=True)
    assert _part_of(one, [incomplete]) is None
    assert _part_of(shape(LONG[3:], runs=2, first=True), [whole]) is None


# --- how an engine explains them
# -------------------------------------------------------------------------


def test_a_shape_is_cut_as_little_as_explains_it_and_only_where_it_may_be(fits: Fits) -> None:
    one = shape(runs=1, first=True, last=True)
    fits.add(NO).add(match(), cut=(False, True))
    tried = fits.tried()
    assert _match(one, tried, 0) == (match(), (False, True))
    assert [cut for _, _, cut in fits.asked] == [(False, False), (True, False), (False, True)]
    assert _match(one, tried, 0)[1] == (False, True)
    assert len(fits.asked) == 3  # it is remembered
    for ends, cuts in (
        ({"first": True}, [(False, False), (True, False)]),
        ({"last": True}, [(False, False), (False, True)]),
        ({}, [(False, False)]),
    ):
        fits.asked.clear()
        _match(shape(runs=1, **ends), fits.tried(), 0)  # type: ignore[arg-type]
        assert [cut for _, _, cut in fits.asked] == cuts
    # a cut that explains no more is none
    fits.held.clear()
    fits.add(NO).add(NO, cut=(True, False)).add(NO, cut=(True, True))
    assert _match(one, fits.tried(), 0) == (NO, (False, False))
    better = match(accepted=False, placed=0.3)
    fits.add(better, cut=(True, True))
    assert _match(one, fits.tried(), 0) == (better, (True, True))


def test_the_best_engine_is_accepted_or_the_only_one_that_nothing_speaks_against(
    fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits.add(UNDECIDED).add(match(), engine=1)
    assert _best(shape(), fits.tried(2)) == 1
    fits.add(match(evidence=3.0))
    assert _best(shape(), fits.tried(2)) == 0  # of equals what has more evidence
    fits.add(match(evidence=3.0, used=0.96))
    assert _best(shape(), fits.tried(2)) == 1
    fits.add(NO).add(UNDECIDED, engine=1)
    assert _best(shape(), fits.tried(2)) == 1
    assert _best(shape(runs=2), fits.tried(2)) == 1
    assert _best(shape(runs=1), fits.tried(2)) is None
    fits.add(UNDECIDED)
    for same in (True, False):
        monkeypatch.setattr(by_order, "do_the_same", lambda _, same=same: same)
        assert _best(shape(), fits.tried(2)) == (0 if same else None)
    fits.held.clear()
    assert _best(shape(), fits.tried(2)) is None
    # what must be cut for that is not whole
    fits.add(UNDECIDED, cut=(True, False))
    assert _best(shape(runs=1, first=True), fits.tried()) is None


def test_the_home_s_engine_is_that_of_its_most_frequent_whole_inference(fits: Fits) -> None:
    cut = shape(LONG[:6], runs=9, complete=False)
    usual, other = shape(runs=5), shape((9, *LONG), runs=3)
    fits.add(match()).add(match(), (9, *LONG), engine=1)
    engine, verdicts = _choose([cut, usual, other], fits.tried(2))
    assert engine == 0
    assert [(place, one.engine, one.chosen, one.inferences) for place, one in verdicts] == [
        (1, 0, True, 5),
        (1, 1, False, 5),
        (2, 0, False, 3),
        (2, 1, True, 3),
    ]
    assert {(one.process, one.context, one.stream) for _, one in verdicts} == {(1, 2, 3)}
    # one that does not recur says nothing once an engine is found, a short one never
    rare, short = shape((9, *LONG), runs=1), shape((1, 2, 3, 4), runs=9)
    engine, verdicts = _choose([usual, rare, short], fits.tried(2))
    assert {place for place, _ in verdicts} == {0}
    five = shape((1, 2, 3, 4, 5), runs=9)
    engine, verdicts = _choose([usual, five], fits.tried(2))
    assert {place for place, _ in verdicts} == {0, 1}
    # where the first gave none, the next is asked though it comes once
    fits.held.clear()
    fits.add(match(), (9, *LONG), engine=1)
    engine, verdicts = _choose([usual, rare], fits.tried(2))
    assert engine == 1
    assert {place for place, _ in verdicts} == {0, 1}
    assert _choose([short], fits.tried(2)) == (None, [])


@pytest.mark.parametrize(
    ("changes", "home"),
    [
        ({}, 0),
        ({"placed": 0.69}, None),
        ({"used": 0.69}, None),
        ({"tactics": 0.69}, None),
        ({"tactics": None}, 0),
        ({"evidence": 0.0}, None),
    ],
)
def test_what_the_home_s_engine_explains_seven_tenths_of_is_its_own(
    changes: dict[str, object], home: int | None, fits: Fits
) -> None:
    plain: dict[str, object] = {"placed": 0.7, "used": 0.7, "tactics": 0.7, "evidence": 0.1}
    near = match(accepted=False, **{**plain, **changes})
    usual, one = shape(), shape((*LONG, 9), begin=100)
    fits.add(match()).add(near, (*LONG, 9))
    assert _engine_of(one, [usual, one], fits.tried(), 0) == home
    assert _engine_of(one, [usual, one], fits.tried(), None) is None


def test_other_code_of_a_fixed_shape_is_the_home_s_before_its_own_inferences_only(
    fits: Fits,
) -> None:
    near = match(accepted=False, placed=0.8, probability=0.1, ran=0.5)
    fits.add(match()).add(near, (*LONG, 9))
    usual = shape(begin=100)
    for begin, home in ((0, 0), (200, None)):
        one = shape((*LONG, 9), begin=begin, runs=2)
        tried = fits.tried(engine=FIXED)
        assert _engine_of(one, [usual, one], tried, 0) == home
    # a cut one has the engine of that which it is a part of
    part = shape(LONG[2:], runs=1, first=True, complete=False)
    assert _engine_of(part, [usual, part], fits.tried(), None) == 0
    # and a short one only where the home says so
    short = shape((1, 2, 3, 4))
    fits.add(match(), (1, 2, 3, 4))
    assert _engine_of(short, [usual, short], fits.tried(), None) is None


def test_a_shape_that_is_explained_whole_needs_no_alignment_of_its_thread(fits: Fits) -> None:
    def wholly(one: _Shape, *others: _Shape) -> bool:
        return _wholly(one, [one, *others], fits.tried())

    fits.add(match())
    assert wholly(shape())
    assert not wholly(shape(runs=1))
    assert wholly(shape(runs=1, last=True))
    for less in (match(placed=0.99), match(used=0.99)):
        fits.add(less)
        assert not wholly(shape())
    fits.add(UNDECIDED)
    assert not wholly(shape())
    # a cut one is, if that which it is a part of is
    fits.add(match())
    assert wholly(shape(LONG[2:], runs=1, first=True), shape())
    long = tuple(range(2001))
    fits.add(match(), long).add(match(), long[:2000])
    assert not wholly(shape(long))
    assert wholly(shape(long[:2000]))


def test_how_probable_the_engine_of_a_shape_is(fits: Fits) -> None:
    def probability(found: EngineMatch, *others: _Shape, engine: Engine = ENGINE) -> float:
        one = shape((*LONG, 9))
        fits.add(found, (*LONG, 9))
        return _probability(one, [one, *others], fits.tried(engine=engine), 0)

    assert probability(match(probability=0.7)) == 0.7
    assert probability(replace(UNDECIDED, probability=0.7)) == 0.7
    assert probability(replace(UNDECIDED, probability=0.9)) == 0.85
    near = match(accepted=False, probability=0.6)
    assert probability(near) == 0.85  # nothing is known of the engine
    fits.add(match(probability=0.93))
    assert probability(near, shape()) == 0.93
    assert probability(near, replace(shape(), complete=False)) == 0.85
    other = match(accepted=False, probability=0.4)
    assert probability(other, shape()) == 0.85
    assert probability(other, shape(), engine=FIXED) == 0.6
    # of a cut one that of the whole one
    cut = shape(LONG[3:], runs=1, first=True)
    assert _probability(cut, [cut, shape()], fits.tried(), 0) == 0.93


# --- verdicts
# -------------------------------------------------------------------------------------------


def test_a_verdict_is_settled_by_which_of_like_engines_ran() -> None:
    def settled(engine: int | None, several: tuple[int, ...], *, accepted: bool = True) -> object:
        one = EngineVerdict(1, 2, 3, 4, 1, match(accepted=accepted), chosen=True)
        found = _settled(one, engine, several)
        return found.chosen, found.several, found.shown

    assert settled(None, ()) == (True, (), False)
    assert settled(1, ()) == (True, (), False)
    assert settled(0, ()) == (False, (), False)
    assert settled(0, (0, 1)) == (False, (0, 1), True)
    assert settled(1, (0, 1)) == (False, (0, 1), True)
    assert settled(-1, (0, 1)) == (False, (0, 1), False)
    assert settled(0, (0, 2), accepted=False) == (True, (), False)
    assert settled(0, (0, 1), accepted=False) == (False, (0, 1), True)


def test_what_is_known_is_in_the_engine_s_own_numbers() -> None:
    engines = [ENGINE, ENGINE]  # three layers each
    known = np.array([MISSING, 0, 2, 3, 5, 6])
    rows = np.arange(6)
    assert _pins(known, rows, engines, 0).tolist() == [-1, 0, 2, -1, -1, -1]
    assert _pins(known, rows, engines, 1).tolist() == [-1, -1, -1, 0, 2, -1]


def test_pauses_are_shared_by_shapes_that_launch_half_of_the_same_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    def pauses(_: object, rows: IntArray) -> tuple[int, int]:
        seen.append(len(rows))
        return len(rows), 0

    monkeypatch.setattr("nsysmap.mapping.order.open_ends.pauses", pauses)
    shapes = [
        shape((0, 1, 2, 3), by_period=True),
        shape((0, 1, 8, 9), runs=3, by_period=True),
        shape((0, 7, 8, 9), runs=2, by_period=True),
        shape((0, 1, 2, 3, 4), runs=5, by_period=True),
        shape((0, 1, 2, 3), runs=9),
    ]
    told = _with_pauses(trace(), shapes)
    assert seen == [7, 2, 5]
    paused: list[object] = [one.paused for one in told]
    assert paused == [(7, 0), (7, 0), (2, 0), (5, 0), None]


def test_an_engine_with_loops_that_also_ran_alone_is_cut_out_of_what_holds_it(
    fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = shape((1, 2), runs=3, by_period=True, begin=0)
    longer = shape((5, 1, 2, 6), runs=2, by_period=True, begin=6)
    begins = shape((1, 2, 7), runs=1, by_period=True, begin=14)
    monkeypatch.setattr(by_order, "_homes", lambda *_: [[alone, longer, begins]])
    periods = np.repeat([4, 5, 6, 7, 8, 9], [2, 2, 2, 4, 4, 3])
    fits.add(match(), (1, 2))

    def cut(*, loops: bool = True, seen: int = 3) -> list[int]:
        monkeypatch.setattr(by_order, "has_open_loops", lambda _: loops)
        few = replace(alone, rows=alone.rows[:seen])
        monkeypatch.setattr(by_order, "_homes", lambda *_: [[few, longer, begins]])
        found = _cut_at_known(trace(), None, fits.tried(), periods.copy())  # type: ignore[arg-type]
        return [int(one) for one in found]

    assert cut(loops=False) == periods.tolist()
    # the part that is known, and what follows it, are inferences of their own
    assert cut() == [0, 0, 1, 1, 2, 2, 3, 5, 5, 7, 4, 6, 6, 8, 9, 9, 10]
    assert cut(seen=2) == cut()
    assert cut(seen=1) == _renumbered(periods.copy()).tolist()
    fits.add(NO, (1, 2))
    assert cut() == _renumbered(periods.copy()).tolist()


# --- what is written of whole threads
# --------------------------------------------------------------------


def placed(**columns: object) -> tuple[list[int], list[float], list[bool], list[str | None]]:
    """What is written of six kernels, all of a thread that was aligned."""
    count = 6
    plain = {
        name: value.copy()
        for name, value in vars(no_streams(count)).items()
        if isinstance(value, np.ndarray)
    }
    plain |= {
        "asked": np.ones(count, np.bool_),
        "run": np.zeros(count, np.int64),
        "engine": np.ones(count, np.int64),
        "layer": np.array([0, 1, 2, 0, 1, 2]),
        "confidence": np.ones(count),
        "lane": np.zeros(count, np.int64),
    }
    for name, value in columns.items():
        plain[name] = np.array(value)
    held = Streams(**plain, orders=((0, 1, 2),), verdicts=())
    engines = [ENGINE, replace(ENGINE, layers=(*ENGINE.layers, Layer(3, "d", "gemm")))]
    layer, confidence = np.full(count, MISSING), np.zeros(count)
    by_tactic, reason = np.zeros(count, np.bool_), np.full(count, -1, np.int32)
    reasons: dict[str, int] = {}
    wanted = np.array([True] * 5 + [False])
    _place_streams(held, engines, wanted, layer, confidence, by_tactic, reason, reasons)
    texts = list(reasons)
    return (
        layer.tolist(),
        confidence.tolist(),
        by_tactic.tolist(),
        [texts[one] if one >= 0 else None for one in reason.tolist()],
    )


def test_layers_of_whole_threads_are_numbered_over_all_engines_where_they_are_sure() -> None:
    confidence = [1.0, 0.5, 0.49, 1.0, 1.0, 1.0]
    tactic = [True, True, True, False, False, True]
    layer, told, by_tactic, reason = placed(confidence=confidence, by_tactic=tactic)
    assert layer == [3, 4, MISSING, 3, 4, MISSING]
    assert told == [1.0, 0.5, 0.49, 1.0, 1.0, 0.0]
    assert by_tactic == [True, True, False, False, False, False]
    assert [one is None for one in reason] == [True, False, False, True, True, True]


def test_what_nothing_proves_is_perhaps_so_and_less_sure() -> None:
    _, told, _, reason = placed(unproved=[True, False] * 3, confidence=[1.0, 1.0, 0.6] * 2)
    assert told == [0.85, 1.0, 0.6, 1.0, 0.85, 0.0]
    assert reason[0] == reason[4] == PERHAPS
    assert reason[1] is reason[3] is None
    assert reason[2] not in (None, PERHAPS)


def test_of_several_like_engines_either_may_be_meant() -> None:
    layer = [0, 1, -1, 0, 1, 2]
    several = [True, True, True, False, False, False]
    found, told, _, reason = placed(
        layer=layer, several=several, same=[0.5, 1, 1, 1, 1, 1], confidence=[1.0, 0.6, 1, 1, 1, 1]
    )
    assert found[:3] == [3, 4, MISSING]
    assert told[:2] == [0.5, 0.6]
    assert reason[0] == EITHER
    assert reason[1] not in (None, EITHER)
    assert reason[2] == SEVERAL


def test_what_is_in_no_inference_is_the_application_s_or_nobody_s() -> None:
    _, _, _, reason = placed(
        run=[0, MISSING, MISSING, 0, 0, MISSING],
        layer=[0, -1, -1, 0, 0, -1],
        confidence=[1.0, 0.0, 0.0, 1.0, 1.0, 0.0],
        foreign=[False, True, False, False, False, True],
    )
    assert [reason[at] for at in (1, 2, 5)] == [FOREIGN, NO_INFERENCE, FOREIGN]


# --- kernels that are placed, refused or left to the alignment of their thread
# ------------------------------------------------------------------------------


@dataclass
class Columns:
    """A table of which only these columns are read."""

    columns: dict[str, list[int]]
    count: int = 0

    def ints(self, name: str) -> IntArray:
        return np.array(self.columns[name], np.int64)

    def __len__(self) -> int:
        return self.count


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> list[list[_Shape]]:
    """The shapes of each home, whichever kernels are wanted."""
    held: list[list[_Shape]] = []
    monkeypatch.setattr(by_order, "_homes", lambda *_: held)
    return held


def graph_launches(
    fits: Fits, monkeypatch: pytest.MonkeyPatch, *shapes: _Shape, engines: int = 1
) -> tuple[list[int], list[list[bool]]]:
    """The kernels of mixed graphs, and which kernels were asked for."""
    asked: list[list[bool]] = []

    def of_wanted(_: object, __: object, wanted: BoolArray) -> list[list[_Shape]]:
        asked.append(wanted.tolist())
        return [list(shapes)]

    monkeypatch.setattr(by_order, "_homes", of_wanted)
    found_by = Text.of(["graph-launch", "period", "graph-launch"])
    held = SimpleNamespace(
        kernels=Columns({"graph_node_id": [1, 2, 3, 4, 5, 6, 7, 8]}),
        cuda_graph_nodes=Columns({"graph_node_id": [2, 9]}),
    )
    inferences = SimpleNamespace(
        membership=Columns({"inference": [0, 0, 1, 1, MISSING, 2, 2, 2]}),
        table=SimpleNamespace(text=lambda _: found_by),
    )
    found = by_order._mixed_graphs(held, inferences, fits.tried(engines))  # type: ignore[arg-type]
    return found.tolist(), asked


def test_graph_launches_that_no_engine_explains_as_a_whole_may_hold_a_part_of_one(
    fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, seldom = shape((1, 2), runs=2), shape((3,), runs=1, begin=4)
    mixed, asked = graph_launches(fits, monkeypatch, short, seldom)
    assert mixed == [0, 1, 2, 3, 4]
    # of graph launches those whose nodes were not created within the trace
    assert asked == [[True, False, False, False, False, True, True, True]]
    assert graph_launches(fits, monkeypatch, seldom)[0] == []  # it never comes again
    assert graph_launches(fits, monkeypatch, short, engines=0) == ([], [])
    # what an engine explains, or may explain, is not mixed
    for found in (match(), UNDECIDED):
        fits.add(found, (1, 2), engine=1)
        assert graph_launches(fits, monkeypatch, short, engines=2)[0] == []
        assert graph_launches(fits, monkeypatch, short, engines=1)[0] == [0, 1, 2, 3]
    for size, some in ((2000, True), (2001, False)):
        long = shape(tuple(range(size)), runs=2)
        assert (graph_launches(fits, monkeypatch, long)[0] != []) == some


def test_what_never_comes_again_and_no_engine_can_have_run_is_no_inference(
    fits: Fits, homes: list[list[_Shape]]
) -> None:
    one, other = shape((1, 2), runs=1), shape((3, 4, 5), runs=1, begin=2)
    periods = np.array([4, 4, 6, 6, 6, 7, 7])
    homes[:] = [[one, other]]

    def left(engines: int = 1) -> list[int]:
        given = fits.tried(engines), periods.copy()
        found = by_order._without_alone(trace(), None, *given)  # type: ignore[arg-type]
        return [int(one) for one in found]

    assert left() == [MISSING] * 5 + [0, 0]
    fits.add(match(), (3, 4, 5), engine=1)
    assert left() == [MISSING] * 5 + [0, 0]
    assert left(2) == [MISSING, MISSING, 0, 0, 0, 1, 1]
    fits.add(UNDECIDED, (3, 4, 5), engine=1)
    assert left(2) == [MISSING] * 5 + [0, 0]
    # beside one that comes again all are left
    homes[:] = [[one, other, shape((7,), runs=2, begin=5)]]
    assert left() == [0, 0, 1, 1, 1, 2, 2]
    # a very long one is not believed to be an inference
    for size, alone in ((2000, False), (2001, True)):
        long = tuple(range(size))
        fits.add(match(), long)
        homes[:] = [[shape(long, runs=1)]]
        periods = np.zeros(size, np.int64)
        assert (left()[0] == MISSING) == alone


def test_a_thread_is_aligned_if_it_has_a_kernel_that_no_engine_explains(
    fits: Fits, homes: list[list[_Shape]]
) -> None:
    held = SimpleNamespace(kernels=Columns({"thread": [1] * 40 + [2] * 4}, count=44))
    whole, other = shape(runs=3), shape((1, 2), runs=2, begin=40)

    def left(*shapes: _Shape, rows: Sequence[int] = range(44)) -> list[int]:
        homes[:] = [list(shapes)]
        asked = np.array(rows, np.int64)
        found = by_order._unexplained(held, None, fits.tried(), asked)  # type: ignore[arg-type]
        return [int(one) for one in found]

    assert left(whole, other) == list(range(44))
    fits.add(match())
    first = list(range(24))
    assert left(whole, other, rows=[*first, 40, 41]) == [40, 41]
    assert left(whole, other) == list(range(44))  # the last kernels of the first thread are in none
    fits.add(match(), (1, 2))
    assert left(whole, other, rows=[*first, 40, 41, 42, 43]) == []
    # one that is another one with a block of others in it is not explained
    longer = shape((*LONG, 20, 21, 22), runs=1, last=True, begin=24)
    fits.add(match(), (*LONG, 20, 21, 22))
    rows = list(range(35))
    assert left(whole, longer, rows=rows) == rows
    assert left(replace(whole, rows=whole.rows[:1], first=True), longer, rows=rows[:8]) == []
    only = shape((*LONG, 20, 21), runs=1, last=True, begin=24)
    fits.add(match(), (*LONG, 20, 21))
    assert left(whole, only, rows=rows[:34]) == []


def aligned(layer: Sequence[int], confidence: Sequence[float]) -> Alignment:
    count = len(layer)
    return Alignment(
        np.array(layer),
        np.array(confidence),
        np.full(count, -1),
        1 - np.array(confidence),
        np.ones(count, np.bool_),
        np.ones(count, np.bool_),
        np.zeros(count, np.bool_),
        (0, 1, 2),
        0.0,
    )


def placed_by_order(
    shapes: list[_Shape],
    homes: list[list[_Shape]],
    fits: Fits,
    *,
    engines: int = 1,
    unwanted: Sequence[int] = (),
) -> Placed:
    homes[:] = [shapes]
    count = 1 + max(int(one.rows.max()) for one in shapes)
    wanted = np.ones(count, np.bool_)
    wanted[list(unwanted)] = False
    tried = fits.tried(engines)
    return place_by_order(
        SimpleNamespace(kernels=Columns({}, count=count)),  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        tried.engines,
        AskedKernels(wanted, np.full(count, MISSING)),
        no_streams(count),
    )


def texts(placed: Placed) -> list[str | None]:
    return placed.reason.list()


def test_layers_are_written_where_they_are_sure_in_numbers_over_all_engines(
    fits: Fits, homes: list[list[_Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    chances = [1.0, 0.5, 0.49, 1.0, 1.0, 1.0, 1.0, 1.0]
    found = aligned([0, 1, 2, -1, 0, 1, 2, 2], chances)
    monkeypatch.setattr(by_order, "_believed", lambda *_: found)
    monkeypatch.setattr(by_order, "twins_in", lambda *_: [])
    fits.add(match(probability=0.9), engine=1)
    one = placed_by_order([shape(runs=2)], homes, fits, engines=2, unwanted=[15])
    layer = [3, 4, MISSING, MISSING, 3, 4, 5, 5]
    assert one.layer.tolist() == [*layer, *layer[:7], MISSING]
    assert one.confidence.tolist() == [*chances, *chances[:7], 0.0]
    assert one.by_tactic.tolist()[:8] == [True, True, False, False, True, True, True, True]
    assert not one.by_tactic[15]
    assert one.probability.tolist() == [0.9] * 16
    assert not one.refused.any()
    assert [text is None for text in texts(one)[:8]] == [True, False, False, False] + [True] * 4
    assert texts(one)[15] is None
    (first, second) = one.verdicts
    assert (first.engine, first.chosen, second.engine, second.chosen) == (0, False, 1, True)
    assert (second.process, second.context, second.stream, second.inferences) == (1, 2, 3, 2)
    # what nothing proves is perhaps so
    fits.add(UNDECIDED, engine=1)
    perhaps = placed_by_order([shape(runs=2)], homes, fits, engines=2)
    assert [text == PERHAPS for text in texts(perhaps)[:8]] == [
        *([True, False, False, False] + [True] * 4)
    ]
    assert perhaps.layer.tolist() == layer * 2


def test_why_a_shape_has_no_layers(fits: Fits, homes: list[list[_Shape]]) -> None:
    short = shape((1, 2, 3, 4), runs=2, begin=16)
    one = placed_by_order([short], homes, fits)
    assert set(texts(one)[16:]) == {TOO_FEW}
    assert not one.refused.any()
    assert one.verdicts == ()
    # beside another that was judged it is refused as that is
    two = placed_by_order([shape(runs=2), short], homes, fits, unwanted=[0])
    assert texts(two) == [None] + [NO_FIT] * 23
    assert two.refused.tolist() == [False] + [True] * 23
    assert set(two.layer.tolist()) == {MISSING}
    assert two.probability.tolist() == [1.0] * 24
    # unless an engine of it is undecided
    fits.add(UNDECIDED)
    seldom = placed_by_order([shape(runs=1)], homes, fits)
    assert set(texts(seldom)) == {TOO_FEW}
    assert not seldom.refused.any()


def test_of_a_stream_64_shapes_are_placed(
    fits: Fits, homes: list[list[_Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = [shape((*LONG, 100 + at), runs=1, begin=9 * at) for at in range(66)]
    found = aligned([0] * 9, [1.0] * 9)
    monkeypatch.setattr(by_order, "_believed", lambda *_: found)
    one = placed_by_order(shapes, homes, fits)
    assert texts(one)[::9] == [NO_FIT] * 64 + [TOO_MANY] * 2
    assert one.refused.all()
    for at in range(66):
        fits.add(match(), (*LONG, 100 + at))
    all_fit = placed_by_order(shapes, homes, fits)
    assert (all_fit.layer[::9] == 0).tolist() == [True] * 64 + [False] * 2
    assert texts(all_fit)[::9] == [None] * 64 + [TOO_MANY] * 2


def test_without_kernels_that_are_asked_for_nothing_is_placed(
    fits: Fits, homes: list[list[_Shape]]
) -> None:
    one = placed_by_order([shape(runs=1)], homes, fits, unwanted=range(8))
    assert one.layer.tolist() == [MISSING] * 8
    assert one.confidence.tolist() == [0.0] * 8
    assert one.probability.tolist() == [1.0] * 8
    assert not one.by_tactic.any()
    assert not one.refused.any()
    assert texts(one) == [None] * 8
    assert one.verdicts == ()
    assert not one.wanted.any()


def test_a_cut_inference_may_lack_a_single_kernel() -> None:
    whole = shape()
    front = shape(LONG[1:], runs=1, first=True)
    back = shape(LONG[:-1], runs=1, last=True)
    for cut, begin in ((front, 1), (back, 0)):
        found = _part_of(cut, [cut, whole])
        assert found is not None
        assert (found[0] is whole, found[1]) == (True, begin)
    assert _part_of(shape(runs=1, first=True), [whole]) is None  # it lacks none
