"""Which runs of a stream are believed, learnt from and told apart, on runs that are made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.kernel_alignment import EngineMatch
from nsysmap.mapping.order.open_ends import LEAST_ALIKE
from nsysmap.mapping.order.scores import KernelFacts, Scores, score
from nsysmap.mapping.order.sequence_alignment import Path
from nsysmap.mapping.order.twins import Ran
from nsysmap.mapping.streams import segments
from nsysmap.mapping.streams.recurring import Signature, in_slots
from nsysmap.mapping.streams.segments import (
    Form,
    Found,
    Lane,
    RunKind,
    StreamKernels,
    _cut_to_known,
    _does_the_same,
    _formed,
    _forms,
    _Group,
    _is_near,
    _Judged,
    _judged,
    _kinds,
    _learnt,
    _maybe_cut,
    _nearest,
    _pauses,
    _placed_together,
    _run_other_code,
    _signature,
    _stream,
    _times,
    _told_apart,
    _usual_signature,
    _without_others,
    _without_parts,
    _without_scraps,
    _without_windows,
    explained_share,
    find_runs,
)
from nsysmap.mapping.streams.stream_alignment import Runs, Stream
from tests.mapping.test_recurring import LAYERS, OWN, learnt

ENGINE = Engine("made-up.json", LAYERS, detailed=True)
FACTS = tuple(
    KernelFacts(name)
    for name in (
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize64x64x64_kernel_trt",
        "__myl_bb0_0_AddMul",
        "__myl_bb0_1_ResTra",
        "__myl_bb0_2_AddTan",
        "void nvinfer1::tiled_pooling::poolCHW_RS3_UV1_max<3>(int)",
        "mean_subtract_kernel",
        "decode_boxes_kernel",
        "resize_kernel",
        "fill_kernel",
    )
)
SCORES: Scores = score(FACTS, ENGINE, LAYERS)
LANE = Lane(0, LAYERS, SCORES)
GUEST = 5  # a kernel of the application


def match(*, accepted: bool = True, **changes: object) -> EngineMatch:
    return replace(
        EngineMatch(1.0, 1.0, 1.0, 2.0, 0.0, accepted),
        **changes,  # type: ignore[arg-type]
    )


def kind(engine: int = 0, runs: int = 5, *, believed: bool = True, **changes: object) -> RunKind:
    return RunKind(engine, runs, match(accepted=believed, **changes), believed, unproved=False)


def runs(*each: tuple[int, int, int], slot: Sequence[int]) -> Runs:
    """Each run as its track, its first and its last item."""
    track, first, last = (np.array(column, np.int64) for column in zip(*each, strict=True))
    return Runs(track, first, last, np.array(slot, np.int64), 0.0)


def kernels(
    row: Sequence[int], *, gap: Sequence[int] | None = None, took: float = 7.0
) -> StreamKernels:
    count = len(row)
    return StreamKernels(
        FACTS,
        np.array(row, np.int64),
        np.full(count, 100) if gap is None else np.array(gap),
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.full(count, took),
    )


# --- the stream
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gaps", "long"),
    [
        ([300] * 5 + [1200, 1201], [6]),  # four times the median is not more than that
        ([10] * 5 + [1000, 1001], [6]),  # and below a microsecond nothing is a pause
        ([], []),
    ],
)
def test_a_pause_is_longer_than_four_usual_gaps_and_a_microsecond(
    gaps: list[int], long: list[int]
) -> None:
    assert np.flatnonzero(_pauses(np.array(gaps, np.int64))).tolist() == long


def test_what_a_pause_and_a_wait_say_of_where_runs_begin() -> None:
    count = 20
    held = kernels([row for row, _ in OWN] * 4)
    nothing = _stream(held, [LANE])
    assert nothing.begin.tolist() == [-0.5] + [-5.0] * (count - 1)
    assert nothing.go_on.tolist() == [0.0] * count
    marked = np.zeros(count, np.bool_)
    marked[[0, 5, 10]] = True
    said = -1.5 * np.log(3 / count) - 1.0
    for name in ("waits", "copies"):
        stream = _stream(replace(held, **{name: marked}), [LANE])  # type: ignore[arg-type]
        least = 3.0 if name == "waits" else 0.0
        told = max(said, least)
        assert stream.begin[[0, 5, 10]] == pytest.approx([-0.5, -5 + told, -5 + told])
        assert stream.go_on[[0, 5, 10]] == pytest.approx([0, -told, -told])
        assert stream.begin[1] == -5.0
        assert stream.go_on[1] == 0.0
    # what all kernels have says nothing, but for a wait
    every = np.ones(count, np.bool_)
    assert _stream(replace(held, copies=every), [LANE]).begin.tolist()[1:] == [-5.0] * (count - 1)
    assert _stream(replace(held, waits=every), [LANE]).begin.tolist()[1:] == [-2.0] * (count - 1)
    # a rare one says as much as any may
    long = kernels([0] * 2000)
    one = np.zeros(2000, np.bool_)
    one[1000] = True
    assert _stream(replace(long, copies=one), [LANE]).begin[1000] == -0.5
    assert _stream(replace(long, copies=one), [LANE]).go_on[1000] == -6.0
    assert _stream(replace(long, waits=one), [LANE]).go_on[1000] == -8.0
    pause = np.where(one, 5000, 100)
    for name in ("gap_ns", "idle_ns"):
        stream = _stream(replace(long, **{name: pause}), [LANE])  # type: ignore[arg-type]
        assert stream.go_on[1000] == -6.0


def test_a_tactic_of_any_lane_makes_a_kernel_an_engine_s() -> None:
    tactic = np.zeros_like(SCORES.tactic)
    tactic[GUEST, 0] = True
    other = replace(LANE, scores=replace(SCORES, tactic=tactic))
    held = kernels([0, GUEST])
    plain, told = _stream(held, [LANE, LANE]), _stream(held, [LANE, other])
    assert told.between[GUEST] < plain.between[GUEST]
    assert told.inside[GUEST] < plain.inside[GUEST]
    assert told.inside[0] == plain.inside[0]


# --- what is learnt
# --------------------------------------------------------------------------------------


def repeated(count: int, own: Sequence[tuple[int, int]] = OWN) -> tuple[StreamKernels, Runs]:
    """So many runs that launch the same."""
    size = len(own)
    slot = [at for _, at in own] * count
    return (
        kernels([row for row, _ in own] * count),
        runs(*((0, size * at, size * at + size - 1) for at in range(count)), slot=slot),
    )


def test_fewer_than_four_runs_teach_nothing() -> None:
    for count, learns in ((3, False), (4, True)):
        held, found = repeated(count)
        stream = _stream(held, [LANE])
        among = np.ones(count, np.bool_)
        (track,) = _learnt(stream, found, [LANE], among).tracks
        assert (track is not stream.tracks[0]) == learns
    held, found = repeated(5)
    stream = _stream(held, [LANE])
    (track,) = _learnt(stream, found, [LANE], np.arange(5) < 3).tracks
    assert track is stream.tracks[0]
    other = replace(found, track=np.array([0, 0, 0, 1, 1]))
    (track,) = _learnt(stream, other, [LANE], np.ones(5, np.bool_)).tracks
    assert track is stream.tracks[0]


def test_slots_that_are_always_filled_or_hardly_ever_cost_accordingly() -> None:
    own = [(0, 0), (1, 1), (2, 1), (3, 1)]  # never a kernel of the last layer
    held, found = repeated(10, own)
    stream = _stream(held, [LANE])
    (before,), (track,) = stream.tracks, _learnt(stream, found, [LANE], np.ones(10, bool)).tracks
    assert track.skip[0] == min(before.skip[0], -5.0)
    assert track.skip[1] == min(before.skip[1], -5.0)
    assert track.skip[2] == max(before.skip[2], -0.3)
    # the usual time of the only kernel of a slot is known
    assert track.usual is not None
    assert track.usual.tolist()[0] == 7.0
    # a kernel is likelier where it usually is, and a guest that never was there is not
    added = track.match - before.match
    assert added[0, 0] == pytest.approx(2.0)
    assert added[0, 1] == pytest.approx(-2.5)
    assert added[GUEST].tolist() == [-8.0] * 3


def test_a_guest_in_half_of_the_runs_may_be_a_plugin_s_and_no_other_layer_s() -> None:
    layers = (LAYERS[0], Layer(1, "mine", "plugin"), LAYERS[2])
    scores = score(FACTS, Engine("x.json", layers, detailed=True), layers)
    lane = Lane(0, layers, scores)
    row: list[int] = []
    slot, bounds = [], []
    for at in range(10):
        own = [(0, 0), *([(GUEST, 1)] if at < 5 else []), (4, 2), *([(6, 2)] if at < 5 else [])]
        bounds.append((0, len(row), len(row) + len(own) - 1))
        row += [one for one, _ in own]
        slot += [one for _, one in own]
    held, found = kernels(row), runs(*bounds, slot=slot)
    stream = _stream(held, [lane])
    (track,) = _learnt(stream, found, [lane], np.ones(10, np.bool_)).tracks
    added = track.match - stream.tracks[0].match
    assert added[GUEST, 1] == pytest.approx(1.5 * np.log(0.53 / 0.25))
    assert added[6, 2] == -8.0


def test_the_usual_time_of_a_slot_is_that_of_its_kernels() -> None:
    held, found = repeated(4, [(0, 0), (4, 2)])
    stream = replace(
        _stream(held, [LANE]), value=np.array([5.0, 8.0, 5.2, 8.0, 5.0, 8.0, 5.0, 9.9])
    )
    usual, spread = _times(stream, found, np.arange(8), 3)
    assert usual[[0, 2]].tolist() == [5.0, 8.0]
    assert np.isnan(usual[1])
    assert spread.tolist() == [0.1, 1.0, 0.1]


def test_a_guest_that_recurs_outside_all_runs_costs_little_between_them() -> None:
    usual = learnt([OWN] * 4)
    held = kernels([GUEST, 6, *[row for row, _ in OWN], GUEST, 6, GUEST, 1, 1, 1])
    found = runs((0, 2, 6), slot=[-1, -1, *[slot for _, slot in OWN], *[-1] * 6])
    stream = _stream(held, [LANE])
    judged = _Judged(found, np.array([0]), (kind(),), ((0, ()),))
    plain = _formed(stream, [LANE], (Form(0),), judged)
    formed = _formed(stream, [LANE], (Form(0, usual), Form(0)), judged)
    assert len(formed.tracks) == 2
    assert formed.tracks[1] is stream.tracks[0]
    assert plain.between[GUEST] == max(stream.between[GUEST], -1.0)
    assert formed.between[6] == stream.between[6]  # twice is too seldom
    # what an engine usually launches is not taken for a guest
    assert plain.between[1] == max(stream.between[1], -1.0) > stream.between[1]
    assert formed.between[1] == stream.between[1]


# --- signatures and groups
# -------------------------------------------------------------------------------


def test_a_signature_has_what_is_in_each_slot_and_what_is_behind_it_in_none() -> None:
    found = runs((0, 1, 5), slot=[-1, -1, 0, -1, 2, 2, -1])
    row = np.array([9, 8, 7, 6, 5, 4, 3])
    assert _signature(row, found, 0, 3) == ((7,), (8, 6), (), (), (5, 4), ())
    usual = learnt([OWN] * 4)
    assert _usual_signature(usual, 3) == ((0,), (), (1, 2, 3), (), (4,), ())


def test_only_the_first_run_and_one_that_ends_with_the_stream_may_be_cut() -> None:
    found = runs((0, 0, 2), (0, 3, 5), (0, 6, 8), slot=[0] * 9)
    assert [_maybe_cut(found, at, 9) for at in range(3)] == [True, False, True]
    assert [_maybe_cut(found, at, 10) for at in range(3)] == [True, False, False]


SIGNATURE: Signature = ((0,), (), (1, 2, 3, 1, 2, 3, 1, 2), (), (4,), ())


def group(signature: Signature, *, lane: int = 0, runs: Sequence[int] = (3,)) -> _Group:
    return _Group(lane, list(runs), [Counter({cell: 1}) for cell in signature])


def test_a_run_is_of_the_kind_that_it_differs_from_in_less_than_a_fifth() -> None:
    name = list(range(9))
    usual = group(SIGNATURE)
    other = group(((0,), (), (5, 6, 7, 8, 5, 6, 7, 8), (), (4,), ()))
    two = ((0,), (), (1, 2, 3, 1, 2, 3), (), (4,), ())  # one counts, of ten
    three = ((0,), (), (1, 2, 3, 1, 2), (), (4,), ())  # two count: a fifth
    assert _nearest([other, usual], two, name, cut=False) is usual
    assert _nearest([other, usual], three, name, cut=False) is None
    assert _nearest([], two, name, cut=False) is None


def test_the_consensus_is_what_most_runs_have_in_each_cell_unless_it_is_known() -> None:
    one = _Group(0, [1, 2, 3], [Counter({(1,): 2, (): 1}), Counter({(): 3})])
    assert one.consensus() == ((1,), ())
    assert replace(one, usual=((7,), (8,))).consensus() == ((7,), (8,))


def test_runs_that_differ_are_kinds_and_a_cut_one_is_of_the_kind_it_is_a_part_of() -> None:
    held, found = repeated(6)
    cut = replace(found, first=np.array([2, *found.first[1:]]))
    judged = _judged(held, [LANE], cut, [ENGINE])
    assert judged.kind.tolist() == [0] * 6
    assert [one.runs for one in judged.kinds] == [6]
    assert judged.usual == ((0, ((0,), (), (1, 2, 3), (), (4,), ())),)
    other = held.row.copy()
    other[11:14] = [6, 7, 8]  # of the third run
    judged = _judged(replace(held, row=other), [LANE], found, [ENGINE])
    assert judged.kind.tolist() == [0, 0, 1, 0, 0, 0]


# --- what is believed
# ------------------------------------------------------------------------------------


def judged_of(found: Runs, kinds: Sequence[RunKind], kind_of_run: Sequence[int]) -> _Judged:
    return _Judged(found, np.array(kind_of_run), tuple(kinds), tuple((0, SIGNATURE) for _ in kinds))


def test_the_share_that_is_explained_is_that_of_tensorrt_s_kernels() -> None:
    found = runs((0, 0, 1), slot=[0, -1, -1, -1])
    foreign = np.array([False, True])
    assert explained_share(np.array([0, 1, 0, 0]), foreign, found) == pytest.approx(1 / 3)
    assert explained_share(np.array([1, 1, 1, 1]), foreign, found) == 1.0


@pytest.mark.parametrize(("inside", "believed"), [(2, True), (1, False)])
def test_an_engine_that_nothing_proves_explains_half_of_the_kernels(
    inside: int, believed: bool
) -> None:
    found = runs((0, 0, 3), slot=[0] * inside + [-1] * (4 - inside))
    unproved = replace(kind(), unproved=True)
    judged = judged_of(found, [unproved, kind()], [0])
    left = _without_scraps(np.zeros(4, np.int64), np.array([False]), judged)
    assert [one.believed for one in left.kinds] == [believed, True]


def test_kinds_of_other_generated_code_than_one_that_is_the_engine_s_are_not_its() -> None:
    kinds = [
        kind(code=0.5, probability=0.5),
        kind(code=0.49),
        kind(code=None),
        kind(engine=1, code=0.49, probability=1.0),
        kind(code=0.1, probability=0.1),
    ]
    assert _run_other_code(kinds) == [False, True, False, False, True]
    assert _run_other_code([kind(code=0.5, probability=0.49), kind(code=0.4)]) == [False, False]
    assert _run_other_code([kind(code=0.49), kind(code=0.4)]) == [False, False]


@pytest.mark.parametrize(
    ("runs_of_it", "placed", "used", "near"),
    [
        (2, 0.95, 1.0, True),
        (2, 0.94, 1.0, False),
        (2, 1.0, 0.94, False),
        (1, 0.9, 1.0, True),
        (1, 1.0, 0.9, True),
        (1, 0.89, 1.0, False),  # nothing else is like it
    ],
)
def test_how_much_of_another_kind_of_a_proven_engine_must_be_explained(
    runs_of_it: int, placed: float, used: float, near: bool
) -> None:
    other = kind(runs=runs_of_it, placed=placed, used=used)
    mine = group(SIGNATURE)
    assert _is_near(mine, other, [mine], [other], list(range(9))) == near


@pytest.mark.parametrize(
    ("explained", "lost", "near"), [(0.6, 3, True), (0.59, 3, False), (0.6, 7, False)]
)
def test_a_damaged_run_is_like_one_that_is_believed_and_less_like_any_that_is_not(
    explained: float, lost: int, near: bool
) -> None:
    name = list(range(9))
    cells = ((0,), (), SIGNATURE[2][lost:], (), (4,), ())
    mine, usual = group(cells), group(SIGNATURE)
    damaged, proven = kind(runs=1, placed=explained, believed=False), kind(runs=9)
    both, judged = [mine, usual], [damaged, proven]
    assert _is_near(mine, damaged, both, judged, name) == near
    # as like one that is not believed, or of another lane
    again = kind(runs=9, believed=False)
    assert not _is_near(mine, damaged, [*both, usual], [*judged, again], name)
    elsewhere = replace(usual, lane=1)
    assert not _is_near(mine, damaged, [mine, elsewhere], judged, name)


def test_a_kind_in_opaque_layers_does_what_the_engine_s_most_frequent_kind_does() -> None:
    opaque = group(((), (), (1, 2, 3, 1), (), (4,), ()))
    same = group(((), (), (1, 2, 3, 1), (), (4, 4), ()), runs=(1, 2))
    other = group(((), (), (5, 6, 7, 8), (), (4,), ()))
    listed = group(((5, 6, 7), (), (8,), (), (4,), ()))
    usual = kind(runs=9)
    rare = kind(runs=1, believed=False)

    def does(one: _Group, beside: _Group, known: RunKind = usual) -> bool:
        return _does_the_same(one, rare, [one, beside], [rare, known], [LANE])

    assert does(opaque, same)
    assert not does(other, same)
    assert does(listed, same)  # not mostly in an opaque layer
    assert does(other, same, replace(usual, believed=False))  # the other is not known either
    assert not does(other, same, replace(usual, believed=False, unproved=True))
    assert _does_the_same(other, rare, [other], [rare], [LANE])
    # the most frequent one counts its kernels, and a proven one goes before any other
    more = replace(kind(runs=50), engine=1)
    assert not _does_the_same(other, rare, [other, opaque, same], [rare, more, usual], [LANE])


def test_an_unknown_run_is_cut_to_a_proven_kind_that_it_contains() -> None:
    sequence = [row for row, _ in OWN]
    held = kernels([*sequence, 5, 6, *sequence, 7, 8, 5])
    slot = [*[at for _, at in OWN], 0, 0, *[1] * 5, 2, 2, 2]
    found = runs((0, 0, 4), (0, 5, 14), slot=slot)
    signature: Signature = ((0,), (), (1, 2, 3), (), (4,), ())
    assert [row for row, _ in in_slots(signature)] == sequence

    def judged(*, accepted: bool, believed: bool) -> _Judged:
        known = replace(kind(believed=believed), match=match(accepted=accepted))
        return _Judged(
            found, np.array([0, 1]), (known, kind(believed=False)), ((0, signature), (0, ()))
        )

    cut = _cut_to_known(held, [LANE], judged(accepted=True, believed=True), [ENGINE]).runs
    assert (cut.first.tolist(), cut.last.tolist()) == ([0, 7], [4, 11])
    assert cut.slot.tolist()[5:] == [-1, -1, 0, 1, 1, 1, 2, -1, -1, -1]
    for accepted, believed in ((True, False), (False, True)):
        same = _cut_to_known(
            held, [LANE], judged(accepted=accepted, believed=believed), [ENGINE]
        ).runs
        assert same.slot.tolist() == slot


def beside(times: int, of: int, *, own: bool = False) -> tuple[StreamKernels, _Judged]:
    """So many runs, ``times`` of them before a kernel that nothing explains, which stands beside
    the engine's own too if ``own``.
    """
    row: list[int] = []
    bounds, slot, which = [], [], []
    for at in range(of + 2):
        mine = at >= of
        bounds.append((0, len(row), len(row) + 1))
        row += [0, 4]
        slot += [0, 2]
        if (own and mine) or at < times:
            row.append(1)
            slot.append(-1)
        which.append(1 if mine else 0)
    weak = RunKind(0, of, match(accepted=False), believed=True, unproved=False)
    found = runs(*bounds, slot=slot)
    return kernels(row), judged_of(found, [weak, kind(runs=2)], which)


@pytest.mark.parametrize(
    ("times", "own", "believed"), [(3, False, False), (2, False, True), (3, True, True)]
)
def test_a_kind_beside_what_the_engine_never_stands_beside_is_a_part_of_another(
    times: int, own: bool, believed: bool
) -> None:
    held, judged = beside(times, 4, own=own)
    left = _without_parts(held.row, SCORES.foreign, judged)
    assert [one.believed for one in left.kinds] == [believed, True]
    # what proves itself needs no likeness, and without a kind of its own none is compared
    proven = replace(judged, kinds=(replace(judged.kinds[0], match=match()), judged.kinds[1]))
    assert all(one.believed for one in _without_parts(held.row, SCORES.foreign, proven).kinds)
    other = replace(judged, kinds=(judged.kinds[0], replace(judged.kinds[1], engine=1)))
    assert all(one.believed for one in _without_parts(held.row, SCORES.foreign, other).kinds)


@pytest.mark.parametrize("by_names", [True, False])
def test_where_the_host_never_pauses_at_the_ends_of_runs_their_engine_is_less_likely(
    by_names: bool,
) -> None:
    """Each turn is a run and two kernels of TensorRT that nothing explains, and the host pauses
    before the second of them.
    """
    turns = 30
    row: list[int] = []
    bounds, slot, gap = [], [], []
    for _ in range(turns):
        bounds.append((0, len(row), len(row) + 4))
        row += [*(one for one, _ in OWN), 1, 2]
        slot += [*(at for _, at in OWN), -1, -1]
        gap += [100] * 6 + [50_000]
    changes = {"tactics": None, "probability": 0.85} if by_names else {"probability": 0.79}
    one = kind(runs=turns, **changes)
    judged = judged_of(runs(*bounds, slot=slot), [one], [0] * turns)
    (told,) = _without_windows(kernels(row, gap=gap), SCORES.foreign, judged).kinds
    assert told.match.probability < one.match.probability / 2
    assert not told.believed
    assert not told.match.accepted
    # what tactics prove clearly, or what is not believed, is left alone
    for other in (kind(runs=turns, probability=0.8), replace(one, believed=False)):
        same = replace(judged, kinds=(other,))
        assert _without_windows(kernels(row, gap=gap), SCORES.foreign, same).kinds == (other,)
    # where it pauses before the runs but never behind them, they are less unlikely
    at_begin = [50_000 if at % 7 == 0 else 100 for at in range(len(row))]
    (left,) = _without_windows(kernels(row, gap=at_begin), SCORES.foreign, judged).kinds
    odds = one.match.probability / (1 - one.match.probability)
    assert left.match.probability == pytest.approx(odds * 0.2 / (1 + odds * 0.2), rel=1e-6)
    assert told.match.probability == pytest.approx(odds * 0.04 / (1 + odds * 0.04), rel=1e-6)
    assert (left.believed, left.match.accepted) == (by_names, by_names)


def test_sequences_that_recur_outside_the_runs_are_tracks_if_no_run_is_lost() -> None:
    guests = [5, 6, 7, 8, 5]
    own = [row for row, _ in OWN]
    row: list[int] = []
    bounds, slot, gap = [], [], []
    for _ in range(4):
        bounds.append((0, len(row), len(row) + 4))
        row += [*own, *guests]
        slot += [*(at for _, at in OWN), *[-1] * 5]
        gap += [50_000, 100, 100, 100, 100] * 2
    held = kernels(row, gap=gap)
    found = runs(*bounds, slot=slot)
    stream: Stream = _stream(held, [LANE])
    judged = _judged(held, [LANE], found, [ENGINE])
    judged = replace(judged, kinds=tuple(replace(one, believed=True) for one in judged.kinds))
    again, _ = _without_others(held, [LANE], (Form(0),), [ENGINE], stream, judged)
    assert len(again.tracks) == 1 + (again is not stream)
    without = kernels(row)
    same, kept = _without_others(without, [LANE], (Form(0),), [ENGINE], stream, judged)
    assert same is stream
    assert kept is judged


# --- kinds, by how well their engines explain them
# --------------------------------------------------------


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> dict[int, EngineMatch]:
    """How well the engine explains a kind, by the first kernel that it launches."""
    held: dict[int, EngineMatch] = {}

    def known(launched: Sequence[KernelFacts], _: Engine) -> EngineMatch:
        return held[FACTS.index(launched[0])]

    monkeypatch.setattr(segments, "engine_match", known)
    return held


def judged_kinds(
    *each: tuple[int, Sequence[int]],
    lanes: Sequence[Lane] = (LANE,),
    engines: Sequence[Engine] = (ENGINE,),
) -> list[tuple[bool, bool]]:
    """Of kinds, by their first kernel and their runs: whether each is believed, and unproved."""
    groups = [
        group(((first,), (), (), (), (4,), ()), lane=min(at, len(lanes) - 1), runs=its)
        for at, (first, its) in enumerate(each)
    ]
    found = _kinds(kernels([0]), lanes, groups, engines)
    assert [one.runs for one in found] == [len(its) for _, its in each]
    return [(one.believed, one.unproved) for one in found]


def test_what_nothing_speaks_against_is_taken_alone_and_only_if_it_comes_again(
    matches: dict[int, EngineMatch],
) -> None:
    matches[0] = match(accepted=False, undecided=True)
    assert judged_kinds((0, (1, 2))) == [(True, True)]
    assert judged_kinds((0, (1,))) == [(False, False)]
    names_only = replace(ENGINE, detailed=False)
    few, enough = range(LEAST_ALIKE - 1), range(LEAST_ALIKE)
    assert judged_kinds((0, few), engines=[names_only]) == [(False, False)]
    assert judged_kinds((0, enough), engines=[names_only]) == [(True, True)]
    # beside another that is accepted it is not
    matches[1] = match()
    matches[0] = match(accepted=False, undecided=True, placed=0.5)
    assert judged_kinds((0, (1, 2)), (1, (3,))) == [(False, False), (True, False)]
    matches[0] = match(accepted=False)
    assert judged_kinds((0, (1, 2))) == [(False, False)]


def test_other_code_than_a_kind_of_the_engine_has_is_not_its(
    matches: dict[int, EngineMatch],
) -> None:
    matches[0] = match(code=0.9)
    matches[1] = match(code=0.1)
    assert judged_kinds((0, (1, 2)), (1, (3, 4))) == [(True, False), (False, False)]
    matches[0] = match(accepted=False, undecided=True, code=0.9)
    matches[1] = match(accepted=False, undecided=True, code=0.1)
    assert judged_kinds((0, (1, 2)), (1, (3, 4))) == [(True, True), (False, False)]


def test_a_kind_near_a_proven_one_is_believed_if_its_evidence_speaks_for_it(
    matches: dict[int, EngineMatch],
) -> None:
    matches[0] = match()
    for evidence, believed in ((0.1, True), (0.0, False)):
        matches[1] = match(accepted=False, evidence=evidence)
        assert judged_kinds((0, (1, 2)), (1, (3, 4))) == [(True, False), (believed, False)]
    # of an engine that nothing proves, none is near
    matches[0] = match(accepted=False)
    assert judged_kinds((0, (1, 2)), (1, (3, 4))) == [(False, False), (False, False)]
    # nor of another engine
    matches[0] = match()
    matches[1] = match(accepted=False)
    other = replace(LANE, engine=1)
    both = judged_kinds((0, (1, 2)), (1, (3, 4)), lanes=(LANE, other), engines=(ENGINE, ENGINE))
    assert both == [(True, False), (False, False)]


@pytest.mark.parametrize(
    ("proven", "others", "believed"),
    [((5, 6), (3, 4), True), ((3, 6), (4, 5), False), ((3, 9), (1, 2), True), ((3,), (3,), False)],
)
def test_other_kernels_than_the_file_s_are_a_warm_up_before_the_first_run_that_proves_it(
    proven: tuple[int, ...],
    others: tuple[int, ...],
    believed: bool,
    matches: dict[int, EngineMatch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "may_run_this", lambda *_, before: before)
    matches[0], matches[1] = match(), match(accepted=False)
    assert judged_kinds((0, proven), (1, others))[1] == (believed, False)
    # the earliest of all its proven kinds counts
    matches[2] = match()
    late_ones = tuple(one + 10 for one in proven)
    assert judged_kinds((2, late_ones), (0, proven), (1, others))[2] == (believed, False)


def test_a_kind_that_does_something_else_is_believed_in_no_case(
    matches: dict[int, EngineMatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_does_the_same", lambda *_: False)
    matches[0] = match()
    assert judged_kinds((0, (1, 2))) == [(False, False)]


# --- which of several like engines
# ------------------------------------------------------------------------


def test_each_run_gets_the_lane_of_the_engine_that_its_kernels_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lanes = [replace(LANE, engine=at) for at in range(3)]
    found = runs((0, 0, 4), (0, 5, 9), (1, 10, 14), slot=[slot for _, slot in OWN] * 3)
    held = kernels([row for row, _ in OWN] * 3)
    signature: Signature = ((0,), (), (1, 2, 3), (), (4,), ())
    kinds = (kind(0), kind(0, believed=False), kind(1))
    judged = _Judged(
        found, np.array([0, 1, 2]), kinds, ((0, signature), (0, signature), (1, signature))
    )
    asked: list[object] = []

    def told(ran: object, _: Sequence[Engine]) -> list[list[int]]:
        asked.append([(engine, [one.name for one in facts]) for engine, facts in ran])  # type: ignore[attr-defined]
        return [[0, 2]]

    def which(sequences: Sequence[Sequence[Ran]], _: Sequence[Engine]) -> list[int | None]:
        asked.append([[(one.layer, one.kernel) for one in each] for each in sequences])
        return [answers[-1]] * len(sequences)

    monkeypatch.setattr(segments, "twins_in", told)
    monkeypatch.setattr(segments, "which_ran", which)
    answers: list[int | None] = []
    for answer, same, track, several, shown in (
        (1, False, 2, (), False),
        (1, True, 2, (), False),
        (None, True, 0, (0, 2), True),
        (None, False, 0, (0, 2), False),
    ):
        monkeypatch.setattr(segments, "do_the_same", lambda _, same=same: same)
        answers.append(answer)
        now = _told_apart(held, lanes, judged, [ENGINE] * 3)
        assert now.runs.track.tolist() == [track, 0, 1]
        assert [one.engine for one in now.kinds] == [track, 0, 1]
        assert [(one.several, one.shown) for one in now.kinds] == [
            (several, shown),
            ((), False),
            ((), False),
        ]
    names = [FACTS[row].name for row, _ in OWN]
    assert asked[0] == [(0, names), (1, names)]
    assert asked[1] == [[(slot, FACTS[row].name) for row, slot in OWN]]


# --- what runs usually launch
# -----------------------------------------------------------------------------


LISTED = (Layer(0, "a", "convolution"), Layer(1, "b", "convolution"), Layer(2, "c", "pooling"))


def test_runs_that_are_whole_are_placed_together_unless_a_layer_may_run_any_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = replace(LANE, layers=LISTED, scores=score(FACTS, replace(ENGINE, layers=LISTED), LISTED))
    own = [(0, 0), (1, 1), (4, 2)]
    held, found = repeated(5, own)
    path = Path(
        np.array([0, 1, 2]), 1.0, np.array([0.9, 0.8, 1.0]), np.array([-1] * 3), np.zeros(3), 1.0
    )
    seen: list[list[str]] = []

    def placed(facts: Sequence[KernelFacts], _: Engine, layers: Sequence[Layer]) -> Path:
        seen.append([one.name for one in facts])
        assert tuple(layers) == LISTED
        return path

    monkeypatch.setattr(segments, "place_in_order", placed)
    wrong = replace(found, slot=np.where(found.slot == 1, 0, found.slot))
    now, chance = _placed_together(held, lane, wrong, [1, 2, 3], [ENGINE])
    assert now.slot.tolist() == [0, 0, 2, *[0, 1, 2] * 3, 0, 0, 2]
    assert chance is not None
    assert chance.tolist() == [0.9, 0.8, 1.0]
    assert seen == [[FACTS[row].name for row, _ in own]]
    # an item in no slot stays in none, and a path that leaves something over says nothing
    lacking = replace(found, slot=np.where(np.arange(15) == 4, -1, found.slot))
    now, _ = _placed_together(held, lane, lacking, [1, 2, 3], [ENGINE])
    assert now.slot.tolist()[3:6] == [0, -1, 2]
    path = replace(path, slot=np.array([0, -1, 2]))
    assert _placed_together(held, lane, wrong, [1, 2, 3], [ENGINE]) == (wrong, None)
    assert _placed_together(held, LANE, wrong, [1, 2, 3], [ENGINE]) == (wrong, None)


def test_forms_are_what_two_whole_runs_of_a_kind_launch_that_its_engine_can_have_run(
    matches: dict[int, EngineMatch],
) -> None:
    held, found = repeated(6)
    signature: Signature = ((0,), (), (1, 2, 3), (), (4,), ())

    def forms(judged: _Judged) -> tuple[Form, ...]:
        return _forms(held, [LANE], (Form(0),), judged, [ENGINE])

    proven = _Judged(found, np.array([0] * 6), (kind(),), ((0, signature),))
    (form,) = forms(proven)
    assert form.lane == 0
    assert form.chance is None
    assert form.usual is not None
    assert form.usual.runs == 4  # the first and the last may be cut
    assert form.usual.row.tolist() == [row for row, _ in OWN]
    # what nothing proves is learnt only if what its runs usually launch proves it
    strange = replace(proven, kinds=(kind(believed=False),))
    for accepted in (True, False):
        matches[0] = match(accepted=accepted)
        (form,) = forms(strange)
        assert (form.usual is not None) == accepted
    # one whole run is too few
    few = replace(proven, kind=np.array([0, 0, -1, -1, -1, 0]))
    assert forms(few) == (Form(0),)
    assert forms(replace(few, kind=np.array([0, 0, 0, -1, -1, 0])))[0].usual is not None
    # of another lane nothing is learnt
    other = replace(proven, usual=((1, signature),))
    assert _forms(held, [LANE, LANE], (Form(0), Form(1)), other, [ENGINE])[0] == Form(0)
    # kinds that differ in a quarter of their kernels and more are learnt apart
    apart: Signature = ((0,), (), (5, 6, 7), (), (4,), ())
    near: Signature = ((0,), (), (1, 2, 5), (), (4,), ())
    for its, count in ((apart, 2), (near, 1)):
        two = _Judged(
            found,
            np.array([0, 0, 0, 1, 1, 1]),
            (kind(runs=3), kind(runs=3)),
            ((0, signature), (0, its)),
        )
        assert len(forms(two)) == count


# --- the order of the alignments
# ------------------------------------------------------------------------------


@dataclass
class Turns:
    """What is aligned in turn, where each alignment believes as many kernels as the test says.
    Streams are known by their names.
    """

    left: list[int]
    aligned: list[str] = field(default_factory=list)
    learnt: list[tuple[int, bool]] = field(default_factory=list)  # from so many kernels; from all
    cut: list[int] = field(default_factory=list)  # kernels believed of what is cut
    sure: list[str] = field(default_factory=list)
    found: Found | None = None


def in_turn(monkeypatch: pytest.MonkeyPatch, *believed: int) -> Turns:
    """Each of ``believed`` is one alignment."""
    turns = Turns(list(believed))
    formed = iter(("formed 1", "formed 2", "formed 3"))

    def judged(*_: object) -> _Judged:
        size = turns.left.pop(0)
        other, mine = (0, 0, 0), (0, 1, max(size, 1))
        kinds = [kind(believed=False), kind(believed=size > 0)]
        return judged_of(runs(other, mine, slot=[0] * 20), kinds, [0, 1])

    def align(stream: str) -> str:
        turns.aligned.append(stream)
        return stream

    def learn(first: str, found: Runs, _: object, among: np.ndarray) -> str:
        assert first == "first"
        turns.learnt.append((int(found.last[1]), bool(among.all())))
        return f"learnt {len(turns.learnt)}"

    def cut(_: object, __: object, one: _Judged, ___: object) -> _Judged:
        turns.cut.append(int(one.runs.last[1]))
        return one

    def sure(stream: str, *_: object) -> None:
        turns.sure.append(stream)

    for name, made in {
        "_lanes": lambda *_: (LANE,),
        "_stream": lambda *_: "first",
        "without_repeats": lambda _, __, stream: stream,
        "likeliest_runs": align,
        "_judged": judged,
        "_learnt": learn,
        "_cut_to_known": cut,
        "_forms": lambda *_: (Form(0, None, np.full(3, 0.5)),),
        "_formed": lambda *_: next(formed),
        "_without_others": lambda *given: given[-2:],
        "_without_scraps": lambda *given: given[-1],
        "_told_apart": lambda *given: given[2],
        "sureness": sure,
    }.items():
        monkeypatch.setattr(segments, name, made)
    turns.found = find_runs(kernels([0] * 20), [ENGINE])
    assert turns.left == []
    return turns


def test_a_stream_is_aligned_until_no_more_kernels_are_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = in_turn(monkeypatch, 3, 3, 7, 8)
    assert turns.aligned == ["first", "learnt 1", "formed 1", "formed 2"]
    assert turns.learnt == [(3, False)]
    assert turns.cut == [3]
    assert turns.sure == ["formed 2"]
    found = turns.found
    assert found is not None
    assert found.lanes == (LANE, LANE)
    assert (found.runs.first.tolist(), found.runs.last.tolist()) == ([1], [8])  # the believed one
    assert found.kind.tolist() == [1]
    assert len(found.kinds) == 2
    assert [one.tolist() for one in found.chance if one is not None] == [[0.5] * 3]


def test_of_all_alignments_the_last_with_the_most_kernels_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = in_turn(monkeypatch, 3, 4, 5, 6, 7, 7)  # four at most
    assert turns.cut == [6]
    assert turns.learnt[:3] == [(3, False), (4, False), (5, False)]
    turns = in_turn(monkeypatch, 5, 3, 4, 2, 7, 7)
    assert turns.cut == [5]
    turns = in_turn(monkeypatch, 5, 3, 5, 7, 7)  # as many as before
    assert turns.cut == [5]
    assert turns.aligned[:3] == ["first", "learnt 1", "learnt 2"]


def test_where_what_runs_usually_launch_proves_nothing_what_was_learnt_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = in_turn(monkeypatch, 3, 3, 0)
    assert turns.aligned == ["first", "learnt 1", "formed 1"]
    assert turns.learnt == [(3, False), (3, False)]
    assert turns.sure == ["learnt 2"]
    assert turns.found is not None
    assert turns.found.runs.last.tolist() == [3]
    assert turns.found.chance == (None,)


def test_where_nothing_is_believed_all_runs_are_learnt_from_and_none_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = in_turn(monkeypatch, 0, 0, 0, 0, 0)
    assert turns.aligned == ["first", "learnt 1", "learnt 2", "learnt 3", "formed 1"]
    assert turns.learnt == [(1, True)] * 4
    assert turns.found is None
    assert turns.sure == []
    # none at first, but then
    turns = in_turn(monkeypatch, 0, 4, 4, 5, 5)
    assert turns.learnt == [(1, True), (4, False)]
    assert turns.found is not None
    monkeypatch.setattr(segments, "_lanes", lambda *_: ())
    assert find_runs(kernels([0]), [ENGINE]) is None


@pytest.mark.parametrize(("again", "taken"), [(1, False), (2, True), (3, True)])
def test_tracks_of_others_are_taken_if_as_many_runs_are_believed(
    again: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = repeated(3)
    stream = _stream(held, [LANE])

    def believed(count: int) -> _Judged:
        kinds = [kind(believed=True), kind(believed=False)]
        return judged_of(found, kinds, [0] * count + [1] * (3 - count))

    monkeypatch.setattr(segments, "other_tracks", lambda *_: stream.tracks)
    monkeypatch.setattr(segments, "_judged", lambda *_: believed(again))
    before = believed(2)
    now, judged = _without_others(held, [LANE], (Form(0),), [ENGINE], stream, before)
    assert (now is not stream) == taken
    assert (judged is not before) == taken
    assert len(now.tracks) == 1 + taken


@pytest.mark.parametrize(("others", "told"), [(5, False), (6, True)])
def test_ends_beside_kernels_of_tensorrt_tell_if_most_of_a_kind_s_have_them(
    others: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten runs; guests are not TensorRT's."""
    row: list[int] = []
    bounds, slot = [], []
    for at in range(10):
        bounds.append((0, len(row), len(row) + 4))
        row += [*(one for one, _ in OWN), 1 if at < others else GUEST]
        slot += [*(place for _, place in OWN), -1]
    seen: list[list[bool]] = []

    def tells(*given: object) -> float:
        told = given[-1]
        assert isinstance(told, np.ndarray)
        seen.append(told.tolist())
        return 1.0

    monkeypatch.setattr(segments, "ends_tell", tells)
    one = kind(runs=10, tactics=None, probability=0.8)
    judged = judged_of(runs(*bounds, slot=slot), [one], [0] * 10)
    (same,) = _without_windows(kernels(row), SCORES.foreign, judged).kinds
    # before the first there is none, behind the sixth the first guest
    assert seen == [[others - 0 > 5, told]]
    assert same.match.probability == pytest.approx(0.8)
    assert same.believed
    # a kernel of TensorRT that another run explains is not strange by names, but by tactics it is
    whole = [place if place >= 0 else 1 for place in slot]
    all_in = runs(*((0, first, last + 1) for _, first, last in bounds), slot=whole)
    _without_windows(kernels(row), SCORES.foreign, judged_of(all_in, [one], [0] * 10))
    assert seen[1] == [False, False]
    weak = kind(runs=10, probability=0.7)
    _without_windows(kernels(row), SCORES.foreign, judged_of(all_in, [weak], [0] * 10))
    assert seen[2] == [others > 5, True]
