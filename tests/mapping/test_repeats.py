"""Runs that are repetitions within an engine's opaque region, on runs that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.scores import KernelFacts, score
from nsysmap.mapping.streams import repeats
from nsysmap.mapping.streams.repeats import _listed, _part, _repetitions, without_repeats
from nsysmap.mapping.streams.segments import Lane, StreamKernels, _stream
from nsysmap.mapping.streams.stream_alignment import Runs, Stream

LAYERS = (
    *(Layer(at, f"layer_{at}", "gemm") for at in range(4)),
    Layer(4, "{ForeignNode[a...b]}", "foreign_node"),
    Layer(5, "last", "pooling"),
)
FACTS = tuple(KernelFacts(f"kernel_{at}") for at in range(10))
GUEST, OTHER = 8, 9
TACTIC = np.zeros((10, 6), np.bool_)
TACTIC[1, 1] = True  # the second layer's tactic is the second kernel
SCORES = replace(
    score(FACTS, Engine("made-up.json", LAYERS, detailed=True), LAYERS),
    tactic=TACTIC,
    runs=np.array([True, True, True, False, True, True]),
    foreign=np.arange(10) == GUEST,
)
LANE = Lane(0, LAYERS, SCORES)

Each = Sequence[tuple[int, int]]  # the kernels of a run, each with its slot
WHOLE: Each = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]
LACKS_TWO: Each = [(1, 1), (3, 3), (4, 4)]  # of four listed layers


def stream_of(*each: Each, track: int = 0, asked: Sequence[int] = ()) -> tuple[StreamKernels, Runs]:
    """Runs one behind the other; before those asked the host waits."""
    items = [item for one in each for item in one]
    last = np.cumsum([len(one) for one in each])
    first = last - [len(one) for one in each]
    waits = np.zeros(len(items), np.bool_)
    waits[first[list(asked)]] = True
    count = len(items)
    kernels = StreamKernels(
        FACTS,
        np.array([row for row, _ in items]),
        np.full(count, 100),
        np.zeros(count, np.int64),
        waits,
        np.zeros(count, np.bool_),
        np.full(count, 7.0),
    )
    slot = np.array([place for _, place in items])
    return kernels, Runs(np.full(len(each), track), first, last - 1, slot, 0.0)


@pytest.mark.parametrize(
    ("run", "last", "placed", "flaws"),
    [
        (WHOLE, 3, WHOLE[:4], []),
        ([*WHOLE[:3], WHOLE[4]], 2, WHOLE[:3], []),  # that layer need not run
        ([WHOLE[0], WHOLE[1], WHOLE[3]], 2, [WHOLE[0], WHOLE[1], WHOLE[3]], [(2, -1)]),
        ([(0, 0), (OTHER, 1), (2, 2)], 2, [(0, 0), (OTHER, 1), (2, 2)], [(1, OTHER)]),
        # of the first layer no tactic is known
        ([(OTHER, 0), (1, 1), (2, 2)], 2, [(OTHER, 0), (1, 1), (2, 2)], []),
        ([(0, 0), (OTHER, -1), (1, 1), (2, 2)], 3, WHOLE[:3], [(0, OTHER)]),
        ([(0, 0), (GUEST, -1), (1, 1), (2, 2)], 3, WHOLE[:3], []),
        # what stands before the first listed kernel or behind the last is not looked at
        ([(OTHER, -1), *WHOLE[:3], (OTHER, -1), (4, 4)], 3, WHOLE[:3], []),
        ([(4, 4), *WHOLE[:3], (4, 4)], 3, WHOLE[:3], []),
    ],
)
def test_flaws_of_a_run_in_the_layers_before_the_region(
    run: Each, last: int, placed: Each, flaws: Each
) -> None:
    kernels, runs = stream_of([(4, 4), (5, 5)], run)
    part = _part(kernels, LANE, runs, 1)
    assert part is not None
    assert (part.run, part.last) == (1, 2 + last)
    held = [(slot, row) for row, slot in placed]
    assert list(part.placed) == held
    assert list(part.flaws) == list(flaws)
    assert not part.asked
    assert _part(kernels, LANE, runs, 0) is None  # it has none of these layers


def test_the_host_asks_where_it_waits_or_copies_before_the_first_kernel() -> None:
    kernels, runs = stream_of(WHOLE, WHOLE, asked=[1])
    parts = [_part(kernels, LANE, runs, at) for at in (0, 1)]
    assert [part is not None and part.asked for part in parts] == [False, True]
    copied = replace(kernels, waits=kernels.copies, copies=kernels.waits)
    parts = [_part(copied, LANE, runs, at) for at in (0, 1)]
    assert [part is not None and part.asked for part in parts] == [False, True]


def test_the_layers_before_the_first_region_are_listed() -> None:
    assert _listed(LANE) == 4
    assert _listed(replace(LANE, layers=LAYERS[:4])) == 4
    assert _listed(replace(LANE, layers=LAYERS[4:])) == 0


def spans(
    *each: Each, lanes: Sequence[Lane] = (LANE,), asked: Sequence[int] = (), track: int = 0
) -> list[tuple[int, int]]:
    kernels, runs = stream_of(*each, asked=asked, track=track)
    return _repetitions(kernels, lanes, runs)


def test_runs_that_lack_the_same_beside_whole_ones_are_repetitions() -> None:
    """No inference begins from behind the first kernel of the one before on."""
    both = [WHOLE, LACKS_TWO]
    assert spans(*both * 3) == [(1, 6), (9, 14), (17, 22)]
    assert spans(*both * 2) == []  # too few
    assert spans(*both * 2, WHOLE, WHOLE) == []
    assert spans(*both * 2, LACKS_TWO, LACKS_TWO) == []
    # with none before it, it is none
    assert spans(LACKS_TWO, *both * 3) == [(4, 9), (12, 17), (20, 25)]
    # of another track's lane, or in an engine without a region or with nothing before it
    plain = replace(LANE, layers=LAYERS[:4])
    assert spans(*both * 3, lanes=[plain, LANE], track=1) == [(1, 6), (9, 14), (17, 22)]
    assert spans(*both * 3, lanes=[plain, LANE]) == []
    assert spans(*both * 3, lanes=[LANE], track=1) == []
    assert spans(*both * 3, lanes=[replace(LANE, layers=LAYERS[4:])]) == []


@pytest.mark.parametrize(
    ("lacks", "found"),
    [
        (LACKS_TWO, True),
        ([(1, 1), (2, 2), (3, 3)], False),  # a single one may be lost
        ([(1, 1)], False),  # it does too little of what the whole ones do
        ([(1, 1), (2, 2), (OTHER, 3)], True),  # one is missing and one another
        ([(1, 1), (OTHER, 2), (OTHER, 3)], False),
        ([(0, 0), (1, 1), (OTHER, 2), (OTHER, 3)], False),  # none is missing
        ([(0, 0), (1, 1), (2, 2), (OTHER, 3)], False),
        ([(0, 0), (OTHER, -1), (1, 1), (OTHER, -1), (2, 2)], True),
    ],
)
def test_how_much_a_repetition_lacks_and_has(lacks: Each, found: bool) -> None:
    assert (len(spans(*[WHOLE, lacks] * 3)) == 3) == found
    assert (spans(*[WHOLE, lacks] * 3) == []) != found


def test_runs_that_lack_different_kernels_are_no_repetitions() -> None:
    other: Each = [(0, 0), (3, 3)]
    assert spans(*[WHOLE, LACKS_TWO] * 2, *[WHOLE, other] * 2) == []
    assert len(spans(*[WHOLE, LACKS_TWO] * 3, *[WHOLE, other] * 2)) == 3


@pytest.mark.parametrize(
    ("pairs", "asked", "found"), [(3, [1], 3), (3, [1, 3], 0), (4, [1, 3], 0), (4, [0, 2, 4], 4)]
)
def test_before_half_of_the_inferences_and_more_the_host_asks(
    pairs: int, asked: list[int], found: int
) -> None:
    assert len(spans(*[WHOLE, LACKS_TWO] * pairs, asked=asked)) == found


def test_no_run_begins_in_a_repetition_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, runs = stream_of(*[WHOLE, LACKS_TWO] * 3)
    stream = _stream(kernels, [LANE])
    seen: list[Stream] = []

    def fixed(one: Stream) -> Runs:
        seen.append(one)
        return runs

    monkeypatch.setattr(repeats, "likeliest_runs", fixed)
    found = without_repeats(kernels, [LANE], stream)
    within = np.zeros(len(stream.begin), np.bool_)
    for first, last in ((1, 6), (9, 14), (17, 22)):
        within[first : last + 1] = True
    assert found.begin[within].tolist() == [-1e4] * 18
    assert found.begin[~within].tolist() == stream.begin[~within].tolist()
    assert len(seen) == 2  # the second one finds nothing new
    assert seen[0] is stream
    assert seen[1] is found
    # a stream in which there is no region is not aligned at all
    plain = replace(LANE, layers=LAYERS[:4])
    assert without_repeats(kernels, [plain], stream) is stream
    assert len(seen) == 2
    assert without_repeats(kernels, [LANE, plain], stream) is not stream


def test_after_three_alignments_it_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, runs = stream_of(*[WHOLE, LACKS_TWO] * 3)
    answers = iter([[(1, 1)], [(2, 2)], [(3, 3)], [(4, 4)]])
    monkeypatch.setattr(repeats, "likeliest_runs", lambda _: runs)
    monkeypatch.setattr(repeats, "_repetitions", lambda *_: next(answers))
    found = without_repeats(kernels, [LANE], _stream(kernels, [LANE]))
    assert np.flatnonzero(found.begin == -1e4).tolist() == [1, 2, 3]
