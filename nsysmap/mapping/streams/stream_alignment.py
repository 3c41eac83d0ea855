"""Aligns a whole stream of items with repeating tracks of slots, with unrelated items anywhere
between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import runs as groups
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.mapping.order.alignment_steps import (
    backward_step,
    best_step,
    forward_step,
    slot_chances,
)

_CUT = -2.0  # nats: that the first run began before the stream, or the last one ends behind it
_VALUE = (0.5, 3.0)  # nats: at most that for, and that against
_AT_ONCE = 4_000_000  # runs x items x slots


@dataclass(frozen=True)
class Track:
    """The rewards for one run through these slots in order, in nats; D distinct items, m slots."""

    match: FloatArray  # D x m: the item in that slot
    more: FloatArray  # D x m: besides, where the slot has an item already
    skip: FloatArray  # m: the slot has no item
    prior: float = 0.0  # of the track itself
    # m: what the item's value mostly is in that slot, nan where not known
    usual: FloatArray | None = None
    spread: FloatArray | None = None  # m: of the value there
    # m: the slot that is reported for this one, ascending; of several kernels each may have its own
    whole: IntArray | None = None


@dataclass(frozen=True)
class Stream:
    """n items in order; each belongs to a slot of the current run, or to none."""

    row: IntArray  # n: which of the D distinct items
    tracks: tuple[Track, ...]
    inside: FloatArray  # D: the item belongs to none, during a run
    between: FloatArray  # D: … between two runs
    begin: FloatArray  # n: a run begins with this item
    go_on: FloatArray  # n: a run goes on past the moment before this item
    value: FloatArray | None = None  # n: a measured value, nan if there is none


@dataclass(frozen=True)
class Runs:
    """The likeliest runs, one entry a run; ``slot`` has one entry per item."""

    track: IntArray
    first: IntArray  # its first item in a slot
    last: IntArray  # its last
    slot: IntArray  # -1: in none
    worth: float


def run_of(runs: Runs, count: int) -> IntArray:
    """For each item the run that it lies in, -1 for none."""
    of = np.full(count, -1, np.int64)
    for number, (first, last) in enumerate(
        zip(runs.first.tolist(), runs.last.tolist(), strict=True)
    ):
        of[first : last + 1] = number
    return of


def kept(runs: Runs, these: BoolArray) -> Runs:
    """Keeps only some of the runs and their items."""
    slot = runs.slot.copy()
    for at in np.flatnonzero(~these).tolist():
        slot[runs.first[at] : runs.last[at] + 1] = -1
    return replace(
        runs, track=runs.track[these], first=runs.first[these], last=runs.last[these], slot=slot
    )


@dataclass(frozen=True)
class Sureness:
    """For each item, given the runs: the probability of its slot (or of none), and the likeliest
    alternative.
    """

    chance: FloatArray
    rival: IntArray  # -1: none
    rival_chance: FloatArray
    rival_run: IntArray  # the run that the rival's slot belongs to, -1 for none


@dataclass(frozen=True)
class _TrackGrid:
    """All tracks side by side, padded to the longest; T tracks, M slots."""

    match: FloatArray  # D x T x M
    more: FloatArray  # D x T x M
    until: FloatArray  # T x M + 1: cost of the slots before each
    start: FloatArray  # T x M: of beginning in a slot
    end: FloatArray  # T x M: of ending in it
    usual: FloatArray  # T x M
    spread: FloatArray  # T x M


def _grid(tracks: Sequence[Track]) -> _TrackGrid:
    size = max(len(track.skip) for track in tracks)
    distinct = tracks[0].match.shape[0]
    match = np.full((distinct, len(tracks), size), -np.inf)
    more = np.zeros((distinct, len(tracks), size))
    until = np.zeros((len(tracks), size + 1))
    start = np.zeros((len(tracks), size))
    end = np.zeros((len(tracks), size))
    usual = np.full((len(tracks), size), np.nan)
    spread = np.ones((len(tracks), size))
    for number, track in enumerate(tracks):
        slots = len(track.skip)
        match[:, number, :slots] = track.match
        more[:, number, :slots] = track.more
        until[number, 1 : slots + 1] = np.cumsum(track.skip)
        until[number, slots + 1 :] = until[number, slots]
        start[number] = until[number, :-1] + track.prior
        end[number] = until[number, slots] - until[number, 1:]
        if track.usual is not None and track.spread is not None:
            usual[number, :slots], spread[number, :slots] = track.usual, track.spread
    return _TrackGrid(match, more, until, start, end, usual, spread)


def by_value(value: FloatArray, usual: FloatArray, spread: FloatArray) -> FloatArray:
    """Nats for a measured value in a slot; 0 if the value or the slot's usual value is unknown."""
    worth = np.maximum(_VALUE[0] - 0.5 * ((value - usual) / spread) ** 2, -_VALUE[1])
    result: FloatArray = np.where(np.isnan(worth), 0.0, worth)
    return result


def likeliest_runs(stream: Stream) -> Runs:
    """The runs of greatest total worth, with every item's slot; O(n T M) in time and memory."""
    n = len(stream.row)
    grid = _grid(stream.tracks)
    tracks, slots = grid.start.shape
    best = np.full((tracks, slots), -np.inf)  # within a run, the last slot used being that one
    between = 0.0
    came = np.empty((n, tracks, slots), np.int16)
    dropped = np.empty((n, tracks, slots), np.bool_)
    ended = np.full(n, -1, np.int64)
    low, high = grid.until[:, :-1], grid.until[:, 1:]
    valued = stream.value is not None and not np.isnan(grid.usual).all()
    for i in range(n):
        row = stream.row[i]
        best = best + stream.go_on[i]
        fresh = between + stream.begin[i] + grid.start
        if i == 0:
            fresh = np.maximum(fresh, _CUT)
        match = grid.match[row]
        if valued and stream.value is not None:
            match = match + by_value(stream.value[i], grid.usual, grid.spread)
        step = best_step(
            best,
            fresh,
            low=low,
            high=high,
            match=match,
            more=grid.more[row],
            without=best + stream.inside[row],
        )
        best, came[i], dropped[i] = step.best, step.came, step.dropped
        between += float(stream.between[row])
        final = step.placed + grid.end
        at = int(final.argmax())
        if final.flat[at] > between:
            between, ended[i] = float(final.flat[at]), at
    worth, inside = between, -1
    if n and best.max() + _CUT > between:
        worth, inside = float(best.max()) + _CUT, int(best.argmax())
    return _reported(_traced(_Back(came, dropped, ended), inside, slots, worth), stream.tracks)


def _reported(runs: Runs, tracks: Sequence[Track]) -> Runs:
    slot = runs.slot.copy()
    for track, first, last in zip(
        runs.track.tolist(), runs.first.tolist(), runs.last.tolist(), strict=True
    ):
        whole = tracks[track].whole
        if whole is not None:
            mine = slot[first : last + 1]
            slot[first : last + 1] = np.where(mine >= 0, whole[np.maximum(mine, 0)], -1)
    return replace(runs, slot=slot)


@dataclass(frozen=True)
class _Back:
    """Back pointers of the best alignment; one entry per item."""

    came: NDArray[np.int16]  # x T x M: from which slot it came to this one; -1: a run began with it
    dropped: NDArray[np.bool_]  # x T x M: with that the last slot used, it is better in none
    ended: IntArray  # the track and slot (as one number) that a run ended in with it, -1 for none


def _traced(back: _Back, inside: int, slots: int, worth: float) -> Runs:
    came, dropped, ended = back.came, back.dropped, back.ended
    n = len(ended)
    slot = np.full(n, -1, np.int64)
    runs: list[tuple[int, int, int]] = []
    i, at = n - 1, inside
    while i >= 0:
        # a run ends with an item in a slot, even where that one would better be in none
        closed = at < 0
        if closed:
            at = int(ended[i])
            if at < 0:
                i -= 1
                continue
        track, place, last = at // slots, at % slots, -1
        first = i
        while i >= 0:
            if closed or not dropped[i, track, place]:
                closed = False
                slot[i], first = place, i
                last = max(last, i)
                place = int(came[i, track, place])
                if place < 0:
                    i -= 1
                    break
            i -= 1
        runs.append((track, first, last))
        at = -1
    runs.reverse()
    columns = np.array(runs, np.int64).reshape(-1, 3)
    return Runs(columns[:, 0], columns[:, 1], columns[:, 2], slot, worth)


def sureness(stream: Stream, runs: Runs, asked: BoolArray | None = None) -> Sureness:
    """How sure each item's slot is, by forward-backward over each run and the items between it and
    its neighbours.

    ``asked``: the runs that are meant, all unless given; they are numbered among themselves.  An
    item between two runs may be either's: the likelier of the two counts.
    """
    n, count = len(stream.row), len(runs.track)
    wanted = np.ones(count, np.bool_) if asked is None else asked
    number_of = np.cumsum(wanted) - 1
    taken = np.zeros(n)  # of items in no slot: how likely they are in one all the same
    result = Sureness(np.ones(n), np.full(n, -1, np.int64), np.zeros(n), np.full(n, -1, np.int64))
    begin = np.concatenate([[0], runs.last[:-1] + 1]) if count else np.zeros(0, np.int64)
    end = np.concatenate([runs.first[1:], [n]]) if count else np.zeros(0, np.int64)
    begin = np.maximum(begin, runs.first - _MARGIN)
    end = np.minimum(end, runs.last + 1 + _MARGIN)
    for number, track in enumerate(stream.tracks):
        mine = np.flatnonzero((runs.track == number) & wanted)
        mine = mine[np.argsort(end[mine] - begin[mine], kind="stable")]
        slots = len(track.skip)
        for part in _parts(mine, (end - begin)[mine], slots):
            chance = _posterior(stream, track, begin[part], end[part])
            for place, run in enumerate(part.tolist()):
                rows = np.arange(begin[run], end[run])
                _tell(
                    result,
                    taken,
                    chance[place, : len(rows)],
                    rows,
                    runs.slot[rows],
                    int(number_of[run]),
                )
    return result


_MARGIN = 24  # items before and behind a run that are looked at


def _parts(mine: IntArray, size: IntArray, slots: int) -> list[IntArray]:
    """The runs in groups of similar length that fit into memory."""
    if not len(mine):
        return []
    cuts, begin = [0], 0
    for at in range(len(mine)):
        if at > begin and (at + 1 - begin) * int(size[at]) * slots > _AT_ONCE:
            cuts.append(at)
            begin = at
    return [mine[low:high] for low, high in pairwise([*cuts, len(mine)])]


def _tell(
    result: Sureness,
    taken: FloatArray,
    chance: FloatArray,
    rows: IntArray,
    slot: IntArray,
    run: int,
) -> None:
    """Writes the result for one run's items: their rows, their slots, and the run's number."""
    sure = slot_chances(slot, chance)
    inside = slot >= 0
    for at in np.flatnonzero(inside | (1.0 - sure.nowhere > taken[rows])).tolist():
        row = rows[at]
        if not inside[at]:
            taken[row] = 1.0 - sure.nowhere[at]
        result.chance[row] = sure.mine[at]
        result.rival[row] = sure.rival[at]
        result.rival_chance[row] = sure.rival_chance[at]
        result.rival_run[row] = -1 if sure.rival[at] < 0 else run


def _posterior(stream: Stream, track: Track, begin: IntArray, end: IntArray) -> FloatArray:
    """Probability of each item in each slot (runs x items x slots), given that each window holds
    exactly one run of the track.
    """
    count, slots = len(begin), len(track.skip)
    longest = int((end - begin).max(initial=0))
    until = np.concatenate([[0.0], np.cumsum(track.skip)])
    low, high = until[:-1], until[1:]
    n = len(stream.row)
    at = np.minimum(begin[:, None] + np.arange(longest), n - 1)
    real = begin[:, None] + np.arange(longest) < end[:, None]
    row = stream.row[at]
    enter = stream.begin[at][:, :, None] + track.prior
    stays = stream.go_on[at][:, :, None]
    inside = stream.inside[row][:, :, None]
    between = np.where(real, stream.between[row], 0.0)[:, :, None]
    placed = np.empty((count, longest, slots))
    worth = np.zeros((count, longest, 1))
    if stream.value is not None and track.usual is not None and track.spread is not None:
        worth = by_value(stream.value[at][:, :, None], track.usual, track.spread)
    last = np.full((count, slots), -np.inf)
    before = np.zeros((count, 1))
    for i in range(longest):
        match = track.match[row[:, i]] + worth[:, i]
        going = last + stays[:, i]
        fresh = before + enter[:, i] + low
        if i == 0:
            fresh = np.where((begin == 0)[:, None], np.logaddexp(fresh, _CUT), fresh)
        placed[:, i], onward = forward_step(
            going,
            fresh,
            low=low,
            high=high,
            match=match,
            more=track.more[row[:, i]],
            without=inside[:, i],
        )
        last = np.where(real[:, i : i + 1], onward, last)
        before = before + between[:, i]
    # backwards: what is left to come after each item, and the sum over everything
    # within the run, behind the last item
    rest = np.where((end == n)[:, None], _CUT, -np.inf) + np.zeros((count, slots))
    after = np.zeros((count, 1))  # behind the run
    whole = np.full((count, 1), -np.inf)
    close = until[-1] - high
    for i in range(longest - 1, -1, -1):
        here = real[:, i : i + 1]
        match = track.match[row[:, i]] + worth[:, i]
        onward = np.logaddexp(after + close, rest)  # the item is in that slot
        placed[:, i] = np.where(here, placed[:, i] + onward, -np.inf)
        fresh = (
            np.logaddexp.reduce(match + onward + low, axis=1, keepdims=True)
            + before
            - between[:, i]
            + enter[:, i]
        )
        if i == 0:
            opened = np.logaddexp.reduce(match + onward, axis=1, keepdims=True) + _CUT
            fresh = np.where((begin == 0)[:, None], np.logaddexp(fresh, opened), fresh)
        whole = np.where(here, np.logaddexp(whole, fresh), whole)
        step = stays[:, i] + backward_step(
            rest,
            onward,
            low=low,
            high=high,
            match=match,
            more=track.more[row[:, i]],
            without=inside[:, i],
        )
        rest = np.where(here, step, rest)
        after = after + between[:, i]
        before = before - between[:, i]
    chance: FloatArray = np.exp(np.minimum(placed - whole[:, :, None], 0.0))
    if track.whole is None:
        return chance
    slot, first, _ = groups(track.whole)
    reported: FloatArray = np.zeros((count, longest, int(slot[-1]) + 1))
    reported[:, :, slot] = np.add.reduceat(chance, first, axis=2)
    return reported
