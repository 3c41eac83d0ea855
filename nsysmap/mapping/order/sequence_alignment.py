"""Aligns a sequence of items with a sequence of slots in order, by dynamic programming: the best
path and how certain it is.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.mapping.order.alignment_steps import (
    backward_step,
    best_step,
    forward_step,
    slot_chances,
)

_AT_ONCE = 4_000_000  # items x slots
_STRETCH = 512  # items whose path is found at a time, so that memory does not grow with the run
_MARGIN = 512  # items on both sides that a stretch sees: an alignment does not shift by more


@dataclass(frozen=True)
class AlignmentCosts:
    """The rewards and costs of an alignment, in nats; higher is better. n items, m slots.

    ``match[row[i], j]`` for item i in slot j.  A slot that got an item may take more, each for
    ``more[row[i], j]`` besides its match; a slot without any costs ``skip[j]``; an item in no slot
    costs ``drop[row[i]]``.
    """

    match: FloatArray  # distinct items x m
    row: IntArray  # n, the row of each item
    skip: FloatArray  # m
    more: FloatArray  # distinct items x m
    drop: FloatArray  # distinct items
    # the first items may be missing: slots before the first one used cost nothing
    open_start: bool = False
    open_end: bool = False


@dataclass(frozen=True)
class Path:
    """The best alignment of all items."""

    slot: IntArray  # n; -1: in no slot
    worth: float
    chance: FloatArray  # n: probability of that slot (or of none) over all alignments
    rival: IntArray  # n: the likeliest other slot, -1 for none
    rival_chance: FloatArray  # n
    evidence: float  # log of the summed worth of all alignments


def best_path(costs: AlignmentCosts) -> Path:
    """The alignment of greatest worth, with each item's probability by forward-backward over all
    alignments. O(n m).

    Of long sequences the probabilities are taken stretch by stretch, with a wide margin on either
    side: the memory stays bounded.
    """
    n, m = len(costs.row), costs.match.shape[1]
    if n == 0 or m == 0:
        none = np.full(n, -1, np.int64)
        worth = float(costs.drop[costs.row].sum()) + (
            0.0 if costs.open_start or costs.open_end else float(costs.skip.sum())
        )
        return Path(none, worth, np.ones(n), none.copy(), np.zeros(n), worth)
    slot, worth = likeliest(costs)
    if n * m <= _AT_ONCE:
        chance, whole = _posterior(costs)
        sure = slot_chances(slot, chance)
        return Path(slot, worth, sure.mine, sure.rival, sure.rival_chance, whole)
    pieces = [_stretch(costs, slot, at) for at in range(0, n, _STRETCH)]
    mine, rival, rival_chance = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    return Path(slot, worth, mine, rival, rival_chance, worth)


def likely_slots(costs: AlignmentCosts) -> tuple[IntArray, FloatArray]:
    """Each item's slot in the alignment of greatest worth, and the probability of each item in each
    slot (1 in that slot for long sequences).
    """
    slot, _ = likeliest(costs)
    n, m = len(costs.row), costs.match.shape[1]
    if 0 < n * m <= _AT_ONCE:
        return slot, _posterior(costs)[0]
    chance = np.zeros((n, m))
    placed = np.flatnonzero(slot >= 0)
    chance[placed, slot[placed]] = 1.0
    return slot, chance


def _stretch(
    costs: AlignmentCosts, slot: IntArray, begin: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """The certainty of a stretch of the items, given where the best path puts those far before and
    after it.
    """
    n, m = len(costs.row), costs.match.shape[1]
    end = min(begin + _STRETCH, n)
    first, last = max(begin - _MARGIN, 0), min(end + _MARGIN, n)
    placed = np.maximum.accumulate(slot)
    low = max(int(placed[first]), 0) if first else 0
    high = int(placed[last - 1]) + 1 if last < n else m
    high = max(high, low + 1)
    part = AlignmentCosts(
        costs.match[:, low:high],
        costs.row[first:last],
        costs.skip[low:high],
        costs.more[:, low:high],
        costs.drop,
        costs.open_start and first == 0,
        costs.open_end and last == n,
    )
    chance, _ = _posterior(part)
    here = slot[first:last]
    sure = slot_chances(np.where((here >= low) & (here < high), here - low, -1), chance)
    inner = slice(begin - first, end - first)
    rival = np.where(sure.rival >= 0, sure.rival + low, -1)
    return sure.mine[inner], rival[inner], sure.rival_chance[inner]


def _skipped(costs: AlignmentCosts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The cost of skipping the slots before each slot, those up to each slot at the start, and
    those after each slot at the end.
    """
    total = np.concatenate([[0.0], np.cumsum(costs.skip)])
    start = np.zeros(len(costs.skip)) if costs.open_start else total[:-1]
    end = np.zeros(len(costs.skip)) if costs.open_end else total[-1] - total[1:]
    return total, start, end


def likeliest(costs: AlignmentCosts) -> tuple[IntArray, float]:
    """Each item's slot in the alignment of greatest worth (-1: in none), and that worth."""
    n, m = len(costs.row), costs.match.shape[1]
    total, start, end = _skipped(costs)
    best = np.full(m, -np.inf)  # of the items so far, the last slot used being j
    unused = 0.0  # no slot used yet
    # where item i in slot j came from: the slot before it, or -1 for none yet
    came = np.full((n, m), -3, np.int32)
    dropped = np.zeros((n, m), np.bool_)  # with j the last slot used, item i is better dropped
    for i in range(n):
        row = costs.row[i]
        step = best_step(
            best,
            unused + start,
            low=total[:-1],
            high=total[1:],
            match=costs.match[row],
            more=costs.more[row],
            without=best + costs.drop[row],
        )
        best, came[i], dropped[i] = step.best, step.came, step.dropped
        unused += float(costs.drop[row])
    final = best + end
    none_at_all = unused + (0.0 if costs.open_start or costs.open_end else float(total[-1]))
    slot = np.full(n, -1, np.int64)
    at = int(final.argmax())
    if none_at_all > final[at]:
        return slot, none_at_all
    worth = float(final[at])
    for i in range(n - 1, -1, -1):
        if dropped[i, at]:
            continue
        slot[i] = at
        at = int(came[i, at])
        if at < 0:
            break
    return slot, worth


def evidence(costs: AlignmentCosts) -> float:
    """The log of the summed worth of all alignments, in nats."""
    return _forward(costs)[1]


def _forward(costs: AlignmentCosts) -> tuple[FloatArray, float]:
    """For each item and slot the log of the sum over all ways to reach it (n x m), and the log of
    the sum over all alignments.
    """
    n, m = len(costs.row), costs.match.shape[1]
    total, start, end = _skipped(costs)
    placed = np.empty((n, m))
    last = np.full(m, -np.inf)
    unused = 0.0
    for i in range(n):
        row = costs.row[i]
        placed[i], last = forward_step(
            last,
            unused + start,
            low=total[:-1],
            high=total[1:],
            match=costs.match[row],
            more=costs.more[row],
            without=costs.drop[row],
        )
        unused += float(costs.drop[row])
    none_at_all = unused + (0.0 if costs.open_start or costs.open_end else float(total[-1]))
    everything = np.logaddexp.reduce(last + end) if m else -np.inf
    return placed, float(np.logaddexp(everything, none_at_all))


def _posterior(costs: AlignmentCosts) -> tuple[FloatArray, float]:
    """Probability of each item in each slot (n x m), and the log of the sum over all alignments."""
    placed, whole = _forward(costs)
    total, _, end = _skipped(costs)
    rest = end.copy()  # of the items after i, the last slot used being j
    for i in range(len(costs.row) - 1, -1, -1):
        row = costs.row[i]
        placed[i] += rest - whole
        rest = backward_step(
            rest,
            rest,
            low=total[:-1],
            high=total[1:],
            match=costs.match[row],
            more=costs.more[row],
            without=costs.drop[row],
        )
    return np.exp(np.minimum(placed, 0.0)), whole
