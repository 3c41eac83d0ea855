"""The uncertainty of weighted sums of neighbouring unknowns: w'M⁻¹w without the whole inverse.

Only the entries of the inverse within a block and between it and the next are computed (Takahashi,
Fagan and Chen 1973); sums over unknowns farther apart are solved for.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import distinct
from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.counters.ring import Factor, Gram, turned


@dataclass(frozen=True)
class Near:
    """Sums that begin in one block: their numbers, their weights there, and those of them that also
    reach the next block or the border.
    """

    sums: IntArray
    inner: FloatArray  # [unknown, sum]
    across: IntArray  # positions in ``sums``
    # weights in the next block (as if there were one after the last), then in the border: [unknown,
    # across]
    outer: FloatArray
    # the first and the last unknown of each sum, if none has more than these two
    ends: tuple[IntArray, IntArray] | None

    def own(self, inverse: FloatArray) -> FloatArray:
        """w'M⁻¹w within the block, for each matrix and sum."""
        if self.ends is None:
            return _quadratic(inverse, self.inner)
        first, last = self.ends
        number = np.arange(len(first))
        one, other = (
            self.inner[first, number],
            np.where(last > first, self.inner[last, number], 0.0),
        )
        own: FloatArray = one**2 * inverse[:, first, first] + other**2 * inverse[:, last, last]
        own += 2 * one * other * inverse[:, first, last]
        return own


@dataclass(frozen=True)
class Weighted:
    """Weighted sums of unknowns, by their position."""

    count: int
    near: tuple[Near, ...]  # by block, the border last
    far: IntArray  # the sums over unknowns far apart
    weights: FloatArray  # of those, over all unknowns: [unknown, sum]


def weighted(
    matrix: Gram, column: IntArray, number: IntArray, weight: FloatArray, count: int
) -> Weighted:
    """``count`` sums with these weights: entry i is ``weight[i]`` of ``column[i]`` in sum
    ``number[i]``.
    """
    blocks, unknowns = matrix.blocks, matrix.ring + 1
    size, blocked = blocks.size, blocks.count
    block = np.minimum(column // size, blocked)
    inside = block < blocked
    first, last = np.full(count, blocked), np.zeros(count, np.int64)
    np.minimum.at(first, number, block)
    np.maximum.at(last, number[inside], block[inside])
    far = np.flatnonzero(last > first + 1)
    order = np.argsort(first[number], kind="stable")
    begins = np.searchsorted(first[number][order], np.arange(blocked + 2))
    border = unknowns - blocked * size
    place = np.empty(count, np.int64)
    near = []
    for at in range(blocked + 1):
        mine = order[begins[at] : begins[at + 1]]
        mine = mine[last[number[mine]] <= at + 1]
        sums = distinct(number[mine])
        place[sums] = np.arange(len(sums))
        middle = size if at < blocked else border
        row = column[mine] - at * size
        row = np.where(
            (block[mine] == blocked) & (at < blocked), row - (blocked - at) * size + 2 * size, row
        )
        both = np.zeros((middle + size + border, len(sums)))
        np.add.at(both, (row, place[number[mine]]), weight[mine])
        across = np.flatnonzero(both[middle:].any(axis=0))
        near.append(Near(sums, both[:middle], across, both[middle:, across], _ends(both[:middle])))
    place[far] = np.arange(len(far))
    mine = np.flatnonzero(last[number] > first[number] + 1)
    weights = np.zeros((unknowns, len(far)))
    np.add.at(weights, (column[mine], place[number[mine]]), weight[mine])
    return Weighted(count, tuple(near), far, weights)


def spreads(factor: Factor, *asked: Weighted) -> tuple[FloatArray, ...]:
    """For each metric and sum of each of these, w'M⁻¹w: [metric, sum]."""
    metrics, border = len(factor.last), factor.last.shape[-1]
    found = tuple(np.zeros((metrics, sums.count)) for sums in asked)
    count, size = len(factor.inverses), factor.size
    for each, sums in zip(found, asked, strict=True):
        each[:, sums.near[count].sums] = sums.near[count].own(factor.last)
    # the inverse of the next block and the border
    following = np.zeros((metrics, size + border, size + border))
    following[:, size:, size:] = factor.last
    for at in range(count - 1, -1, -1):
        pushed = factor.pushed[at]
        beside = -(pushed @ following)
        own = factor.inverses[at] - beside @ turned(pushed)
        for each, sums in zip(found, asked, strict=True):
            near = sums.near[at]
            if not len(near.sums):
                continue
            spread = near.own(own)
            if len(near.across):
                spread[:, near.across] += 2 * (
                    near.inner[:, near.across] * (beside @ near.outer)
                ).sum(axis=1)
                spread[:, near.across] += _quadratic(following, near.outer)
            each[:, near.sums] = spread
        following[:, :size, :size] = own
        following[:, :size, size:] = beside[..., size:]
        following[:, size:, :size] = turned(beside[..., size:])
    for each, sums in zip(found, asked, strict=True):
        if len(sums.far):
            whole = np.repeat(sums.weights[None], metrics, axis=0)
            each[:, sums.far] = (whole * factor.solve(whole)).sum(axis=1)
    return found


def _ends(weights: FloatArray) -> tuple[IntArray, IntArray] | None:
    """The first and the last unknown of each sum, if none has more than these two."""
    some = weights != 0
    if not some.size or int(some.sum(axis=0).max()) > 2:
        return None
    return some.argmax(axis=0), len(some) - 1 - some[::-1].argmax(axis=0)


def _quadratic(matrices: FloatArray, weights: FloatArray) -> FloatArray:
    quadratic: FloatArray = (weights * (matrices @ weights)).sum(axis=1)
    return quadratic
