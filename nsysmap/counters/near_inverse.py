"""The uncertainty of weighted sums of neighbouring unknowns: w'M⁻¹w without the whole inverse.

Only the entries of the inverse within a block and between it and the next are computed (Takahashi, Fagan and Chen 1973); sums over
unknowns farther apart are solved for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray, IntArray
from nsysmap.counters.ring import Factor, Gram, turned


@dataclass(frozen=True)
class Weighted:
    """Weighted sums of unknowns, by their position."""

    count: int
    near: tuple[tuple[IntArray, FloatArray], ...]  # by block, the border last: the sums within it and the next, and their weights there
    far: IntArray  # the sums over unknowns far apart
    weights: FloatArray  # of those, over all unknowns: [unknown, sum]


def weighted(matrix: Gram, column: IntArray, number: IntArray, weight: FloatArray, count: int) -> Weighted:
    """``count`` sums with these weights: entry i is ``weight[i]`` of ``column[i]`` in sum ``number[i]``."""
    blocks, unknowns = matrix.blocks, matrix.ring + 1
    size, blocked = blocks.size, blocks.count
    block = np.minimum(column // size, blocked)
    first, last = np.full(count, blocked), np.zeros(count, np.int64)
    np.minimum.at(first, number, block)
    np.maximum.at(last, number, block)
    near = last <= first + 1
    windows = []
    for at in range(blocked + 1):
        which = np.flatnonzero(near & (first == at))
        begin = at * size
        end = (at + 2) * size if at + 1 < blocked else unknowns
        place = np.full(count, -1)
        place[which] = np.arange(len(which))
        mine = place[number] >= 0
        weights = np.zeros((end - begin, len(which)))
        np.add.at(weights, (column[mine] - begin, place[number[mine]]), weight[mine])
        windows.append((which, weights))
    far = np.flatnonzero(~near)
    place = np.full(count, -1)
    place[far] = np.arange(len(far))
    mine = place[number] >= 0
    weights = np.zeros((unknowns, len(far)))
    np.add.at(weights, (column[mine], place[number[mine]]), weight[mine])
    return Weighted(count, tuple(windows), far, weights)


def spreads(factor: Factor, *asked: Weighted) -> tuple[FloatArray, ...]:
    """For each metric and sum of each of these, w'M⁻¹w: [metric, sum]."""
    metrics = len(factor.last)
    found = tuple(np.zeros((metrics, sums.count)) for sums in asked)
    count, border = len(factor.inverses), factor.last
    for each, sums in zip(found, asked, strict=True):
        which, weights = sums.near[count]
        each[:, which] = _quadratic(border, weights)
    following = following_border = border
    for at in range(count - 1, -1, -1):
        inner = at + 1 < count
        by_border = factor.inverses[at] @ factor.borders[at]
        if inner:
            by_next = factor.inverses[at] @ factor.nexts[at]
            beside = -(by_next @ following + by_border @ turned(following_border))
            edge = -(by_next @ following_border + by_border @ border)
            own = factor.inverses[at] - beside @ turned(by_next) - edge @ turned(by_border)
        else:
            beside = edge = -(by_border @ border)
            own = factor.inverses[at] - edge @ turned(by_border)
        for each, sums in zip(found, asked, strict=True):
            which, weights = sums.near[at]
            if len(which):
                window = np.concatenate(
                    [np.concatenate([own, beside], axis=2), np.concatenate([turned(beside), following], axis=2)], axis=1
                )
                each[:, which] = _quadratic(window, weights)
        following, following_border = own, edge
    for each, sums in zip(found, asked, strict=True):
        if len(sums.far):
            whole = np.repeat(sums.weights[None], metrics, axis=0)
            each[:, sums.far] = (whole * factor.solve(whole)).sum(axis=1)
    return found


def _quadratic(matrices: FloatArray, weights: FloatArray) -> FloatArray:
    quadratic: FloatArray = (weights * (matrices @ weights)).sum(axis=1)
    return quadratic
