"""Streams of runs: the dynamic programming against trying every alignment of small ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.mapping.streams import stream_alignment
from nsysmap.mapping.streams.stream_alignment import (
    Stream,
    Track,
    by_value,
    kept,
    likeliest_runs,
    run_of,
    sureness,
)

CUT = -2.0
Steps = tuple[tuple[int, int] | None, ...]  # for each item its track and slot, None for none


def worth_of(stream: Stream, track: int, slot: int, item: int) -> float:
    found = float(stream.tracks[track].match[stream.row[item], slot])
    usual, spread = stream.tracks[track].usual, stream.tracks[track].spread
    if stream.value is not None and usual is not None and spread is not None:
        found += float(
            by_value(np.array(stream.value[item]), usual[slot : slot + 1], spread[slot : slot + 1])[
                0
            ]
        )
    return found


def alignments(stream: Stream) -> Iterator[tuple[float, int, Steps]]:
    """Every alignment: its worth, its number of runs, and each item's place."""

    def go(item: int, inside: tuple[int, int] | None) -> Iterator[tuple[float, int, Steps]]:
        if item == len(stream.row):
            yield (0.0 if inside is None else CUT), 0, ()
            return
        row = int(stream.row[item])
        options: list[tuple[float, int, tuple[int, int] | None, tuple[int, int] | None]] = []
        if inside is None:
            options.append((float(stream.between[row]), 0, None, None))
            for number, track in enumerate(stream.tracks):
                for slot in range(len(track.skip)):
                    enter = float(stream.begin[item]) + float(track.skip[:slot].sum()) + track.prior
                    options.append(
                        (
                            enter + worth_of(stream, number, slot, item),
                            1,
                            (number, slot),
                            (number, slot),
                        )
                    )
                    if item == 0:
                        options.append(
                            (
                                CUT + worth_of(stream, number, slot, item),
                                1,
                                (number, slot),
                                (number, slot),
                            )
                        )
        else:
            number, last = inside
            track = stream.tracks[number]
            on = float(stream.go_on[item])
            options.append((on + float(stream.inside[row]), 0, None, inside))
            again = on + float(track.more[row, last]) + worth_of(stream, number, last, item)
            options.append((again, 0, (number, last), inside))
            for slot in range(last + 1, len(track.skip)):
                skipped = float(track.skip[last + 1 : slot].sum())
                options.append(
                    (
                        on + skipped + worth_of(stream, number, slot, item),
                        0,
                        (number, slot),
                        (number, slot),
                    )
                )
        for worth, begun, place, then in options:
            for rest, runs, steps in go(item + 1, then):
                yield worth + rest, begun + runs, (place, *steps)
            if place is not None and then is not None:  # the run ends with this item
                end = float(stream.tracks[then[0]].skip[then[1] + 1 :].sum())
                for rest, runs, steps in go(item + 1, None):
                    yield worth + end + rest, begun + runs, (place, *steps)

    yield from go(0, None)


@st.composite
def streams(draw: st.DrawFn, tracks: int = 2) -> Stream:
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    kinds, items = 3, draw(st.integers(1, 4))
    made = []
    for _ in range(draw(st.integers(1, tracks))):
        slots = int(random.integers(1, 4))
        usual = np.where(random.random(slots) < 0.5, np.nan, random.normal(0, 1, slots))
        made.append(
            Track(
                random.normal(0, 3, (kinds, slots)),
                random.normal(-1, 1, (kinds, slots)),
                -random.random(slots) * 4,
                float(-random.random()),
                usual,
                0.2 + random.random(slots),
            )
        )
    return Stream(
        random.integers(0, kinds, items),
        tuple(made),
        -random.random(kinds) * 4,
        -random.random(kinds) * 4,
        -random.random(items) * 4,
        -random.random(items) * 2,
        random.normal(0, 1, items),
    )


@given(streams())
def test_the_likeliest_runs_are_those_of_the_best_of_all_alignments(stream: Stream) -> None:
    found = likeliest_runs(stream)
    best, runs, steps = max(alignments(stream), key=lambda one: one[0])
    assert found.worth == pytest.approx(best)
    assert len(found.track) == runs
    assert found.slot.tolist() == [-1 if step is None else step[1] for step in steps]
    for track, first, last in zip(found.track, found.first, found.last, strict=True):
        assert {step[0] for step in steps[first : last + 1] if step is not None} == {track}


@given(streams(tracks=1))
def test_how_sure_a_slot_is_is_its_share_of_the_weight_of_all_alignments(stream: Stream) -> None:
    found = likeliest_runs(stream)
    if len(found.track) != 1:
        return
    sure = sureness(stream, found)
    one_run = [(np.exp(worth), steps) for worth, runs, steps in alignments(stream) if runs == 1]
    whole = sum(weight for weight, _ in one_run)
    for item, slot in enumerate(found.slot.tolist()):
        want = None if slot < 0 else (0, slot)
        assert sure.chance[item] == pytest.approx(
            sum(weight for weight, steps in one_run if steps[item] == want) / whole, abs=1e-9
        )


def made(names: str, engine: str, *, begin: float = -3.0) -> Stream:
    """Items by letter; a track whose slots want the letters of ``engine``; ``x`` is nobody's."""
    letters = sorted({*names, *engine})
    match = np.array([[4.0 if letter == slot else -8.0 for slot in engine] for letter in letters])
    row = np.array([letters.index(letter) for letter in names])
    track = Track(match, np.full(match.shape, -4.0), np.full(len(engine), -4.0))
    between = np.array([-0.5 if letter == "x" else -4.0 for letter in letters])
    return Stream(
        row, (track,), between - 2.0, between, np.full(len(names), begin), np.zeros(len(names))
    )


def test_foreign_and_missing_items_cost_their_own_places_and_no_others() -> None:
    found = likeliest_runs(made("xabcdexxabxdeabcdexx", "abcde"))
    assert found.slot.tolist() == [-1, 0, 1, 2, 3, 4, -1, -1, 0, 1, -1, 3, 4, 0, 1, 2, 3, 4, -1, -1]
    assert found.first.tolist() == [1, 8, 13]
    assert found.last.tolist() == [5, 12, 17]


def test_a_run_that_the_stream_cuts_is_one_too() -> None:
    assert likeliest_runs(made("deabcdeab", "abcde")).slot.tolist() == [3, 4, 0, 1, 2, 3, 4, 0, 1]


def test_nothing_but_foreign_items_is_no_run() -> None:
    found = likeliest_runs(made("xxxx", "abc"))
    assert len(found.track) == 0
    assert found.slot.tolist() == [-1] * 4


def test_items_between_runs_are_in_none_and_runs_that_go_take_their_items_with_them() -> None:
    found = likeliest_runs(made("xabcxabcx", "abc"))
    assert run_of(found, 9).tolist() == [-1, 0, 0, 0, -1, 1, 1, 1, -1]
    left = kept(found, np.array([False, True]))
    assert left.slot.tolist() == [-1, -1, -1, -1, -1, 0, 1, 2, -1]
    assert (left.first.tolist(), left.last.tolist()) == ([5], [7])
    assert run_of(left, 9).tolist() == [-1, -1, -1, -1, -1, 0, 0, 0, -1]


def test_a_track_is_worth_nothing_by_itself_unless_it_is_said() -> None:
    stream = made("abc", "abc", begin=-3.0)
    # it begins with the stream, for less than a begin costs
    assert likeliest_runs(stream).worth == pytest.approx(3 * 4.0 - 2.0)
    late = made("xabc", "abc", begin=-3.0)
    assert likeliest_runs(late).worth == pytest.approx(-0.5 - 3.0 + 3 * 4.0)
    (track,) = late.tracks
    less = replace(late, tracks=(replace(track, prior=-1.5),))
    assert likeliest_runs(less).worth == pytest.approx(-0.5 - 3.0 - 1.5 + 3 * 4.0)


@pytest.mark.parametrize(
    ("value", "worth"), [(2.0, 0.5), (3.0, 0.0), (0.0, -1.5), (9.0, -3.0), (np.nan, 0.0)]
)
def test_a_measured_value_speaks_for_a_slot_by_half_a_nat_and_against_it_by_three(
    value: float, worth: float
) -> None:
    found = by_value(np.array(value), np.array([2.0, np.nan]), np.array([1.0, 1.0]))
    assert found.tolist() == pytest.approx([worth, 0.0])


def test_runs_are_weighed_in_parts_of_like_length_that_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_alignment, "_AT_ONCE", 60)
    mine, size = np.array([7, 3, 5, 9]), np.array([2, 5, 5, 6])
    assert [part.tolist() for part in stream_alignment._parts(mine, size, 4)] == [[7, 3, 5], [9]]
    assert [part.tolist() for part in stream_alignment._parts(mine, size, 6)] == [
        [7, 3],
        [5],
        [9],
    ]
    assert [part.tolist() for part in stream_alignment._parts(mine, size, 2)] == [[7, 3, 5, 9]]
    assert stream_alignment._parts(mine[:0], size[:0], 2) == []
    # and give the same as together
    stream = made("xabcxabcdxabxacx", "abcd")
    found = likeliest_runs(stream)
    apart = sureness(stream, found)
    monkeypatch.undo()
    together = sureness(stream, found)
    assert apart.chance.tolist() == pytest.approx(together.chance.tolist())
    assert apart.rival.tolist() == together.rival.tolist()
    assert apart.rival_run.tolist() == together.rival_run.tolist()
    # of some runs only, which are numbered among themselves
    asked = sureness(stream, found, np.arange(len(found.track)) == 1)
    inside = run_of(found, 16) == 1
    assert asked.chance[inside].tolist() == pytest.approx(together.chance[inside].tolist())
    assert set(asked.rival_run.tolist()) <= {-1, 0}
    assert set(together.rival_run.tolist()) <= {-1, 0, 1, 2, 3}


# --- what is reported
# ------------------------------------------------------------------------------


@given(streams(tracks=1), st.sampled_from([0, 2]))
def test_of_slots_that_are_one_layer_s_the_layer_is_reported(stream: Stream, first: int) -> None:
    (track,) = stream.tracks
    whole = first + np.arange(len(track.skip)) // 2
    apart = likeliest_runs(stream)
    joined = replace(stream, tracks=(replace(track, whole=whole),))
    together = likeliest_runs(joined)
    assert together.worth == apart.worth
    assert together.slot.tolist() == [-1 if slot < 0 else whole[slot] for slot in apart.slot]
    if len(apart.track) != 1:
        return
    sure = sureness(joined, together)
    one_run = [(np.exp(worth), steps) for worth, runs, steps in alignments(stream) if runs == 1]
    every = sum(weight for weight, _ in one_run)
    for item in range(len(stream.row)):
        share = dict.fromkeys([-1, *set(whole.tolist())], 0.0)
        for weight, steps in one_run:
            step = steps[item]
            share[-1 if step is None else int(whole[step[1]])] += weight / every
        mine = share.pop(int(together.slot[item]))
        assert sure.chance[item] == pytest.approx(mine, abs=1e-9)
        rival = int(sure.rival[item])
        likeliest = max(share.values()) if share else 0.0
        assert sure.rival_chance[item] == pytest.approx(likeliest, abs=1e-9)
        assert likeliest < 1e-9 or share[rival] == pytest.approx(likeliest, abs=1e-9)
        assert sure.rival_run[item] == (-1 if rival < 0 else 0)


def test_only_the_items_of_a_run_that_goes_are_in_none() -> None:
    found = likeliest_runs(made("abcabcabc", "abc"))
    assert found.first.tolist() == [0, 3, 6]
    left = kept(found, np.array([True, False, True]))
    assert left.slot.tolist() == [0, 1, 2, -1, -1, -1, 0, 1, 2]
    # the layers of each run are those of its own track
    stream = made("abcxabc", "abc")
    (track,) = stream.tracks
    shifted = replace(stream, tracks=(replace(track, whole=np.array([4, 4, 7])),))
    assert likeliest_runs(shifted).slot.tolist() == [4, 4, 7, -1, 4, 4, 7]


def test_a_longer_track_beside_a_shorter_one_changes_nothing_of_it() -> None:
    short = made("xabxabcdx", "ab")
    long = made("xabxabcdx", "abcd")
    both = replace(short, tracks=(*short.tracks, *long.tracks))
    found = likeliest_runs(both)
    assert found.track.tolist() == [0, 1]
    assert found.slot.tolist() == [-1, 0, 1, -1, 0, 1, 2, 3, -1]
    assert found.worth == pytest.approx(3 * -0.5 + 2 * -3.0 + 6 * 4.0)


def test_an_item_between_two_runs_is_told_by_the_one_that_it_may_sooner_be_in() -> None:
    """The letter between them is like the last of the first run, and hardly like the first of the
    second.
    """
    stream = made("abcyabc", "abc")
    letters = sorted({*"abcy"})
    (track,) = stream.tracks

    def told(last: float, first: float) -> tuple[int, int, float]:
        match = track.match.copy()
        match[letters.index("y"), 2], match[letters.index("y"), 0] = last, first
        one = replace(stream, tracks=(replace(track, match=match),))
        found = likeliest_runs(one)
        assert found.slot.tolist() == [0, 1, 2, -1, 0, 1, 2]
        sure = sureness(one, found)
        return int(sure.rival[3]), int(sure.rival_run[3]), float(sure.chance[3])

    behind = told(-3.0, -9.0)
    assert behind[:2] == (2, 0)
    ahead = told(-9.0, -3.0)
    assert ahead[:2] == (0, 1)
    for _, _, chance in (behind, ahead):
        assert 0.5 < chance < 1.0
