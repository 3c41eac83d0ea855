"""What is written of the runs that were found in a stream, and how probable their engines are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import GPU_KERNELS
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.order.open_ends import OpenEnds
from nsysmap.mapping.order.scores import SPEAKS
from nsysmap.mapping.streams import streams
from nsysmap.mapping.streams.segments import Found, RunKind
from nsysmap.mapping.streams.stream_alignment import Sureness
from nsysmap.mapping.streams.streams import (
    Streams,
    _as_far,
    _borders,
    _items,
    _never_again,
    _probabilities,
    _stream_kernels,
    _write,
    no_streams,
    of_other_code,
)
from tests.mapping.test_segments import (
    ENGINE,
    GUEST,
    LANE,
    SCORES,
    kernels,
    kind,
    match,
    runs,
)
from tests.whatif.test_window import trace

FIXED = Engine(
    "fixed.json",
    (Layer(0, "a", "convolution", inputs=(Tensor("x", (1, 8), "Half"),)),),
    detailed=True,
)


@pytest.mark.parametrize(
    ("probability", "engine", "known", "told"),
    [
        (0.5, FIXED, 0.95, 0.95),
        (0.49, FIXED, 0.95, 0.6),
        (0.49, FIXED, 0.4, 0.4),
        (0.49, ENGINE, 0.95, 0.85),
        (0.49, ENGINE, 0.7, 0.7),
    ],
)
def test_other_code_is_the_known_engine_s_only_as_far_as_its_shapes_allow(
    probability: float, engine: Engine, known: float, told: float
) -> None:
    assert of_other_code(match(probability=probability), engine, known) == told


@pytest.mark.parametrize(
    ("once", "often", "never"), [(1001, 1000, True), (1000, 1001, False), (1000, 1000, False)]
)
def test_kernels_of_which_more_than_half_never_come_again_hold_no_inferences(
    once: int, often: int, never: bool
) -> None:
    codes = np.concatenate([np.arange(once) + 7, np.full(often, 3)]).astype(np.int32)
    assert _never_again(codes) == never
    assert not _never_again(np.arange(2000, dtype=np.int32))
    assert _never_again(np.arange(2001, dtype=np.int32))


def test_what_is_known_of_the_kernels_of_a_stream() -> None:
    rows = [
        # name, grid, start, end, launch
        ("a", 1, 1_000, 1_100, 100),
        ("b", 2, 1_050, 1_300, 250),
        ("a", 1, 1_400, 1_700, 450),
        ("a", 3, 1_650, 1_650, 500),
    ]
    made = [
        {
            "kernel_id": at,
            "name": name,
            "grid_x": grid,
            "grid_y": 1,
            "grid_z": 1,
            "block_x": 32,
            "block_y": 2,
            "block_z": 1,
            "start_ns": start,
            "end_ns": end,
            "launch": at,
            "launch_start_ns": launch,
        }
        for at, (name, grid, start, end, launch) in enumerate(rows)
    ]
    found = _stream_kernels(
        replace(trace(), kernels=Table.of_rows(GPU_KERNELS, made)), np.arange(4)
    )
    assert [(one.name, one.grid, one.duration_ns, one.block) for one in found.facts] == [
        ("a", (1, 1, 1), 200.0, 64),
        ("a", (3, 1, 1), 0.0, 64),
        ("b", (2, 1, 1), 250.0, 64),
    ]
    assert found.row.tolist() == [0, 2, 0, 1]
    assert found.gap_ns.tolist() == [0, 150, 200, 50]
    assert found.idle_ns.tolist() == [0, 0, 100, 0]
    assert found.took[:3].tolist() == pytest.approx(np.log([100, 250, 300]).tolist())
    assert np.isnan(found.took[3])
    assert not found.waits.any()
    assert not found.copies.any()


# --- the columns
# --------------------------------------------------------------------------------------


def found_runs(**changes: object) -> Found:
    """A guest, a run with a guest inside, a guest, and a run of another lane."""
    row = [GUEST, 0, GUEST, 1, 2, 3, 4, GUEST, 0, 1, 4]
    slot = [-1, 0, -1, 1, 1, 1, 2, -1, 0, 1, 2]
    chance = np.linspace(0.5, 0.7, 11)
    rival = np.array([-1, 1, -1, 0, 2, -1, 1, -1, 1, 2, 1])
    rival_run = np.array([-1, 0, -1, 0, 1, -1, 0, -1, 1, 1, 1])
    plain = Found(
        np.array(row),
        (LANE, replace(LANE, engine=1)),
        runs((0, 1, 6), (1, 8, 10), slot=slot),
        Sureness(chance, rival, np.linspace(0.1, 0.2, 11), rival_run),
        np.array([0, 1]),
        (kind(probability=0.9), replace(kind(1), unproved=True)),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def written(found: Found, engines: tuple[Engine, ...] = (ENGINE, ENGINE)) -> Streams:
    columns = {
        name: value.copy()
        for name, value in vars(no_streams(12)).items()
        if isinstance(value, np.ndarray)
    }
    result = Streams(**columns, orders=(), verdicts=())
    held = kernels(found.row.tolist())
    _write(result, np.arange(1, 12), found, engines, (10, 20), held)
    return result


def test_each_kernel_has_its_run_its_engine_and_its_layer() -> None:
    result = written(found_runs())
    assert result.run.tolist() == [MISSING] * 2 + [10, MISSING, 10, 10, 10, 10, MISSING, 11, 11, 11]
    assert result.engine.tolist() == [-1, -1, 0, -1, 0, 0, 0, 0, -1, 1, 1, 1]
    assert result.lane.tolist() == [-1, -1, 20, -1, 20, 20, 20, 20, -1, 21, 21, 21]
    assert result.layer.tolist() == [-1, -1, 0, -1, 1, 1, 1, 2, -1, 0, 1, 2]
    assert result.foreign.tolist() == [False, True, False, True, *[False] * 4, True, *[False] * 3]
    assert result.unproved.tolist() == [False] * 9 + [True] * 3
    assert not result.several.any()
    # a rival of another run is none
    assert result.rival.tolist() == [-1, -1, 1, -1, 0, -1, -1, 1, -1, 1, 2, 1]
    assert result.rival_confidence[2] == pytest.approx(0.11)


def test_a_layer_is_no_surer_than_its_engine() -> None:
    result = written(found_runs())
    share = 8 / 8  # of TensorRT's kernels that are explained
    assert result.probability.tolist() == pytest.approx([1, 1, 0.9, 1, *[0.9] * 4, 1, *[share] * 3])
    speaks = SCORES.match[[0, 1, 2, 3, 4], [0, 1, 1, 1, 2]] >= SPEAKS
    assert result.explained[[2, 4, 5, 6, 7]].tolist() == speaks.tolist()
    assert result.confidence[[0, 1, 3, 8]].tolist() == [0] * 4
    chance = np.linspace(0.5, 0.7, 11)
    assert result.confidence[2] == pytest.approx(chance[1] * 0.9)
    assert result.confidence[9] == pytest.approx(chance[8] * share)
    assert result.by_tactic.tolist() == [False] * 12
    # what its runs usually launch limits it too
    limited = written(found_runs(chance=(np.array([0.5, 1.0, 0.25]), None)))
    assert limited.confidence[[2, 7]].tolist() == pytest.approx(
        (result.confidence[[2, 7]] * [0.5, 0.25]).tolist()
    )
    assert limited.confidence[9] == result.confidence[9]


def test_engines_that_nothing_tells_apart_share_a_run() -> None:
    for shown in (True, False):
        several = replace(kind(probability=0.9), several=(0, 1), shown=shown)
        result = written(found_runs(kinds=(several, kind(1))))
        assert result.several.tolist() == [False, False, True, False, *[True] * 4, *[False] * 4]
        assert result.layer[[2, 4, 9]].tolist() == ([0, 1, 0] if shown else [-1, -1, 0])
        assert result.same.tolist() == [1.0] * 12
    other = replace(ENGINE, layers=(replace(ENGINE.layers[0], name="other"), *ENGINE.layers[1:]))
    result = written(found_runs(kinds=(several, kind(1))), (ENGINE, other))
    assert result.same[2] == 0.5


def test_a_part_and_an_alignment_have_their_own_rows() -> None:
    result = replace(written(found_runs()), orders=((),) * 20 + ((0, 1, 2), (2, 1, 0)))
    part = result.of_part(np.array([2, 9]))
    assert part.run.tolist() == [10, 11]
    assert part.orders == result.orders
    rows = np.array([2, 3, 4])
    assert result.alignment(rows).order == (0, 1, 2)
    assert result.alignment(np.array([9])).order == (2, 1, 0)
    assert result.alignment(rows).layer.tolist() == [0, -1, 1]


def test_nothing_is_found_where_nothing_was_asked() -> None:
    none = no_streams(2)
    assert none.run.tolist() == [MISSING] * 2
    assert none.probability.tolist() == none.same.tolist() == [1.0, 1.0]
    assert none.confidence.tolist() == none.rival_confidence.tolist() == [0.0, 0.0]
    assert none.engine.tolist() == none.layer.tolist() == none.rival.tolist() == [-1, -1]
    assert none.lane.tolist() == [-1, -1]
    for flags in (none.asked, none.explained, none.by_tactic, none.foreign, none.unproved):
        assert not flags.any()


def test_kernels_of_a_run_are_all_but_foreign_ones_in_no_layer() -> None:
    assert _items(found_runs(), 0).tolist() == [1, 3, 4, 5, 6]
    inside = found_runs()
    slot = inside.runs.slot.copy()
    slot[[2, 4]] = [1, -1]  # a guest in a layer, and a kernel of TensorRT in none
    assert _items(replace(inside, runs=replace(inside.runs, slot=slot)), 0).tolist() == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]


# --- probabilities
# ------------------------------------------------------------------------------------


def probabilities(*kinds: RunKind, explained: int = 4) -> list[float]:
    """Of kinds, where so many of four of TensorRT's kernels are explained."""
    found = found_runs(
        row=np.array([0, 1, 4, 2]),
        runs=runs((0, 0, 3), slot=[0] * explained + [-1] * (4 - explained)),
        kinds=kinds,
    )
    return [round(float(one), 6) for one in _probabilities(found, (ENGINE, FIXED))]


def test_an_engine_without_proof_is_as_probable_as_the_share_that_it_explains() -> None:
    unproved = replace(kind(probability=0.8, believed=False), unproved=True)
    foreign_ones = 2  # of the four, by their names
    assert SCORES.foreign[[0, 1, 4, 2]].sum() in (0, foreign_ones)
    proven = kind(probability=0.8)
    assert probabilities(unproved) == [0.8]
    assert probabilities(proven, explained=2) == [0.8]
    left = probabilities(unproved, explained=3)[0]
    assert left == pytest.approx(0.8 * (0.75 if not SCORES.foreign[0] else 0.5))


def test_the_surest_kind_of_an_engine_speaks_for_its_others() -> None:
    sure, less = kind(probability=0.9), kind(probability=0.7)
    near = kind(believed=False, probability=0.6)
    other = kind(believed=False, probability=0.1)
    elsewhere = kind(1, believed=False, probability=0.6)
    assert probabilities(sure, less, near, other, elsewhere) == [0.9, 0.7, 0.9, 0.85, 1.0]
    assert probabilities(kind(1, probability=0.9), kind(1, believed=False, probability=0.1)) == [
        0.9,
        0.6,
    ]


# --- borders
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "its", "told"),
    [
        (6, (2, 3), [0.1, 0.2, 0, 0, 0.5, 0.6]),
        (7, (3, 4), [0.1, 0.1, 0.2, 0, 0, 0.5, 0.6]),  # further out than any: as the outermost
        (4, (1, 1), [0.2, 0, 0.5, 0.6]),
        (8, (2, 4), [0.1, 0.2, 0, 0, 0, 0.5, 0.6, 0.6]),
        (3, None, [0.6] * 3),
    ],
)
def test_the_border_of_a_run_of_another_size_is_that_as_far_from_its_own_kernels(
    size: int, its: tuple[int, int] | None, told: list[float]
) -> None:
    chances = np.array([0.1, 0.2, 0.0, 0.0, 0.5, 0.6])
    assert _as_far(chances, (2, 3), size, its).tolist() == pytest.approx(told)
    assert _as_far(chances, None, size, its).tolist() == [0.6] * size


def test_borders_are_told_by_three_runs_of_a_kind_of_the_usual_size() -> None:
    """Four runs of a kind with an open end, one of them shorter, and others without."""
    sizes = [4, 4, 4, 3, 4]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    held = kernels([0] * int(begin[-1]), gap=[100] * int(begin[-1]))
    items = [np.arange(begin[at], begin[at + 1]) for at in range(5)]
    open_end = [
        OpenEnds(np.arange(size) >= 2, (0, 1)) if at < 4 else OpenEnds(np.zeros(size, bool), (0, 3))
        for at, size in enumerate(sizes)
    ]
    found = found_runs(kind=np.zeros(5, np.int64))
    told = _borders(found, items, open_end, held)
    assert [one is None for one in told] == [False, False, False, False, True]
    assert told[0] is not None
    assert told[3] is not None
    assert told[0][:2].tolist() == [0, 0]
    assert told[0][2] > 0
    assert told[3].tolist() == told[0][:3].tolist()
    # two of a size are too few
    few = _borders(found_runs(kind=np.array([0, 0, 1, 1, 1])), items, open_end, held)
    assert few == [None] * 5
    # a kind of its own, whose known kernels are others, takes what most of them tell
    other = [*open_end[:2], OpenEnds(np.arange(4) >= 1, (0, 0)), *open_end[3:]]
    mixed = _borders(found, items, other, held)
    assert mixed[2] is not None
    assert mixed[2][0] == 0
    assert mixed[2][1] > 0
    # where the host pauses before the first kernel of each and nowhere else, none is likely
    gap = np.full(int(begin[-1]), 100)
    gap[begin[:-1]] = 50_000
    sharp = _borders(found, items, open_end, replace(held, gap_ns=gap))
    assert sharp[0] is not None
    assert sharp[0][2] < told[0][2] / 2
    waits = np.zeros(int(begin[-1]), np.bool_)
    waits[begin[:-1]] = True
    for name in ("waits", "copies"):
        asked = _borders(found, items, open_end, replace(held, **{name: waits}))  # type: ignore[arg-type]
        assert asked[0] is not None
        assert asked[0].tolist() == pytest.approx(sharp[0].tolist())


def test_threads_of_too_many_kernels_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        {"kernel_id": at, "name": "k", "start_ns": at, "end_ns": at, "thread": 7, "stream": 7}
        for at in range(5)
    ]
    held = replace(trace(), kernels=Table.of_rows(GPU_KERNELS, made))
    for most, asked in ((4, False), (5, True)):
        called: list[int] = []
        monkeypatch.setattr(streams, "_MOST", most)
        monkeypatch.setattr(
            "nsysmap.mapping.streams.segments.find_runs",
            lambda launched, _, called=called: called.append(len(launched.row)),
        )
        result = streams.align_streams(held, np.arange(5), [ENGINE])
        assert called == ([5] if asked else [])
        assert not result.asked.any()


def test_threads_are_aligned_one_by_one_and_by_stream_where_no_launch_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = [
        {"thread": 7, "stream": 1},
        {"thread": 7, "stream": 2},
        {"thread": 8, "stream": 1},
        {"stream": 1},
        {"stream": 2},
        {"thread": 7, "stream": 1, "context": 9},
        {"thread": 7, "stream": 1, "process": 9},
    ]
    made = [
        {
            "kernel_id": at,
            "name": "k",
            "start_ns": at,
            "end_ns": at + 1,
            "process": 1,
            "context": 1,
            "launch_start_ns": at,
            **one,
        }
        for at, one in enumerate(where)
    ]
    seen: list[int] = []

    def one_run(launched: object, _: object) -> Found:
        count = len(launched.row)  # type: ignore[attr-defined]
        seen.append(count)
        none = np.full(count, -1, np.int64)
        return Found(
            np.zeros(count, np.int64),
            (LANE,),
            runs((0, 0, count - 1), slot=[0] * count),
            Sureness(np.ones(count), none, np.zeros(count), none),
            np.array([0]),
            (kind(),),
        )

    monkeypatch.setattr("nsysmap.mapping.streams.segments.find_runs", one_run)
    held = replace(trace(), kernels=Table.of_rows(GPU_KERNELS, made))
    result = streams.align_streams(held, np.arange(7), [ENGINE])
    assert sorted(seen) == [1, 1, 1, 1, 1, 2]
    assert result.asked.all()
    assert len(set(result.run.tolist())) == 6
    assert result.run[0] == result.run[1]
    assert sorted(set(result.run.tolist())) == list(range(6))
    assert result.lane.tolist() == result.run.tolist()
    assert result.orders == ((0, 1, 2),) * 6
    assert [one.home for one in result.verdicts].count((1, 1, 1)) == 3
    assert {one.home for one in result.verdicts} == {(1, 1, 1), (1, 1, 2), (1, 9, 1), (9, 1, 1)}


@pytest.mark.parametrize(("most", "facts"), [(3, 3), (2, 2), (1, 2)])
def test_of_too_many_distinct_kernels_those_of_one_name_are_one(
    most: int, facts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        {"kernel_id": at, "name": name, "grid_x": grid, "grid_y": 1, "grid_z": 1, "start_ns": at}
        for at, (name, grid) in enumerate([("a", 1), ("b", 1), ("a", 2), ("a", 1)])
    ]
    made = [{**one, "end_ns": at + 7} for at, one in enumerate(made)]
    monkeypatch.setattr(streams, "_MOST_NAMES", most)
    held = replace(trace(), kernels=Table.of_rows(GPU_KERNELS, made))
    found = _stream_kernels(held, np.arange(4))
    assert len(found.facts) == facts
    assert len(set(found.row[[0, 2, 3]].tolist())) == (2 if facts == 3 else 1)
    assert found.row[0] == found.row[3] != found.row[1]
    grids = {(1, 1, 1), (2, 1, 1)} if facts == 3 else {(1, 1, 1)}
    assert {one.grid for one in found.facts} == grids


def test_what_the_host_asked_before_each_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        {"kernel_id": at, "name": "a", "start_ns": 10 * at, "end_ns": 10 * at + 1, "launch": at}
        for at in range(3)
    ]
    held = replace(trace(), kernels=Table.of_rows(GPU_KERNELS, made))
    periods = "nsysmap.trace.inferences.periods"
    monkeypatch.setattr(f"{periods}.waits_of", lambda _: "waits")
    monkeypatch.setattr(f"{periods}.copies_of", lambda _: "copies")
    counts = {"waits": [0, 1, 2], "copies": [1, 0, 0]}
    monkeypatch.setattr(f"{periods}.calls_between", lambda _, __, calls: np.array(counts[calls]))
    found = _stream_kernels(held, np.arange(3))
    assert found.waits.tolist() == [False, True, True]
    assert found.copies.tolist() == [True, False, False]
    assert found.idle_ns.tolist() == [0, 9, 9]
