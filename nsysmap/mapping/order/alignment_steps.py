"""Extends an order-preserving alignment by one item: the step that every alignment algorithm here
is built from.

An alignment passes items in their order and slots in theirs.  After each item it is known, for each
slot, what the best alignment is worth in which that slot was the last one used (``best``), or the
log of the sum over all such alignments (``last``).  A step adds one item: it enters a slot as the
first item of all (``fresh``), comes from a slot further left, stays in the slot of the item before
it (``more``), or is in no slot (``without``).  ``low`` and ``high`` are the costs of skipping all
slots before each slot, and those with that slot itself.  The slots are the last axis; tracks or
runs that are aligned side by side are axes before it.  All values are in nats.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True)
class BestStep:
    """The best alignments after one more item. Every array has the shape of the slots."""

    placed: FloatArray  # worth, the item being in that slot
    best: FloatArray  # worth, the slot being the last one used, with the item in it or in none
    came: IntArray  # the slot of the item before, if this one is in that slot; -1: it is the first
    dropped: BoolArray  # the item is better in no slot


def best_step(
    best: FloatArray,
    fresh: FloatArray,
    *,
    low: FloatArray,
    high: FloatArray,
    match: FloatArray,
    more: FloatArray,
    without: FloatArray,
) -> BestStep:
    """Extends the best alignments by one item. On ties, a fresh start wins over a slot further
    left, and that over staying in the same slot; an item is dropped only if that is strictly
    better.
    """
    number = np.broadcast_to(np.arange(best.shape[-1]), best.shape)
    reach = best - high
    top = np.maximum.accumulate(reach, axis=-1)
    leader = np.maximum.accumulate(np.where(reach >= top, number, 0), axis=-1)
    left = _moved_right(top, -np.inf) + low
    began = fresh >= left
    value = np.where(began, fresh, left)
    origin = np.where(began, -1, _moved_right(leader, -1))
    stay = best + more
    stays = stay > value
    placed = np.where(stays, stay, value) + match
    return BestStep(
        placed, np.maximum(placed, without), np.where(stays, number, origin), without > placed
    )


def forward_step(
    last: FloatArray,
    fresh: FloatArray,
    *,
    low: FloatArray,
    high: FloatArray,
    match: FloatArray,
    more: FloatArray,
    without: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The log of the sum over all alignments up to and including one more item: with the item in
    each slot, and with each slot as the last one used.
    """
    left = _moved_right(np.logaddexp.accumulate(last - high, axis=-1), -np.inf) + low
    placed = match + np.logaddexp(np.logaddexp(left, fresh), last + more)
    return placed, np.logaddexp(placed, last + without)


def backward_step(
    rest: FloatArray,
    onward: FloatArray,
    *,
    low: FloatArray,
    high: FloatArray,
    match: FloatArray,
    more: FloatArray,
    without: FloatArray,
) -> FloatArray:
    """The log of the sum over everything that may follow, one item earlier, for each slot as the
    last one used. ``rest`` is the same sum after the item; ``onward`` is what may follow the item
    in each slot.
    """
    here = match + onward
    sums = np.logaddexp.accumulate((low + here)[..., ::-1], axis=-1)[..., ::-1]
    right = _moved_left(sums, -np.inf) - high
    return np.logaddexp(np.logaddexp(right, here + more), rest + without)


@dataclass(frozen=True)
class SlotChances:
    """How sure the slot of each item is; one entry per item."""

    mine: FloatArray  # probability of the item's slot, or of none where it has none
    rival: IntArray  # the likeliest other slot; -1: none at all
    rival_chance: FloatArray
    nowhere: FloatArray  # probability of no slot


def slot_chances(slot: IntArray, chance: FloatArray) -> SlotChances:
    """How sure the slots of n items are (-1: no slot), given each item's probability in each slot
    (n x m).
    """
    items = np.arange(len(slot))
    inside = slot >= 0
    nowhere = np.clip(1.0 - chance.sum(axis=1), 0.0, 1.0)
    mine = np.where(inside, chance[items, np.maximum(slot, 0)], nowhere)
    others = chance.copy()
    others[items[inside], slot[inside]] = -1.0
    rival = others.argmax(axis=1).astype(np.int64)
    rival_chance = np.maximum(others[items, rival], 0.0)
    rather_none = inside & (nowhere > rival_chance)
    rival[rather_none] = -1
    return SlotChances(
        np.clip(mine, 0.0, 1.0), rival, np.where(rather_none, nowhere, rival_chance), nowhere
    )


def _moved_right(values: NDArray[_Number], first: float) -> NDArray[_Number]:
    result = np.empty_like(values)
    result[..., :1] = first
    result[..., 1:] = values[..., :-1]
    return result


def _moved_left(values: NDArray[_Number], last: float) -> NDArray[_Number]:
    result = np.empty_like(values)
    result[..., -1:] = last
    result[..., :-1] = values[..., 1:]
    return result
