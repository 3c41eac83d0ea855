"""Matches the pieces of two networks one to one: the best pairs first, then their neighbours, then
by order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.records import dataclass
from nsysmap.core.table import IntArray
from nsysmap.network.layer_network import Network
from nsysmap.network.likeness import (
    IMPOSSIBLE,
    Likeness,
    Neighbours,
    Scores,
    computing_neighbours,
    likeness,
)

# the margin over the second best with which the best is taken outright
_MARGINS = (
    2.0,
    1.0,
    0.5,
    0.2,
)
_BESIDE = 0.8  # what a pair gains from each pair of neighbours in the same direction
_IN_LINE = 0.4  # … from the piece before or after it in execution order
_LEAST = 1.5  # pairs with a lower score are not matched
_POSITION = 0.3  # penalty for positions at opposite ends of the network


@dataclass(frozen=True)
class Match:
    """Corresponding computing pieces of two networks, by index, and the similarity of all."""

    pairs: dict[int, int]  # of the first network to the second
    by_order: frozenset[int]  # of the first network: matched by order alone
    alike: Likeness


def match(first: Network, second: Network) -> Match:
    """One-to-one matching of the computing pieces of two networks; pieces without a similar one are
    left out.
    """
    alike = likeness(first, second)
    work = _PairsSoFar(first, second, alike)
    for margin in _MARGINS:
        while work.take_best(margin):
            pass
    sure = set(work.pairs)
    work.take_in_order()
    for margin in (0.5, 0.0):
        while work.take_best(margin):
            pass
    pairs = {alike.first[row]: alike.second[column] for row, column in work.pairs.items()}
    return Match(pairs, frozenset(alike.first[row] for row in work.pairs if row not in sure), alike)


class _PairsSoFar:
    """The pairs found so far; a pair's score grows when its neighbours are matched."""

    def __init__(self, first: Network, second: Network, alike: Likeness) -> None:
        self.scores: Scores = alike.scores.copy()
        ours, theirs = len(alike.first), len(alike.second)
        if ours and theirs:
            self.scores -= _POSITION * np.abs(
                np.arange(ours)[:, None] / ours - np.arange(theirs)[None, :] / theirs
            ).astype(np.float32)
        self.neighbours = (_by_row(first, alike.first), _by_row(second, alike.second))
        self.pairs: dict[int, int] = {}
        self.rows = np.arange(ours)
        self.columns = np.arange(theirs)

    def take_best(self, margin: float) -> bool:
        """Accept the pairs in which each is the other's best by that margin; returns whether there
        were any.
        """
        if not len(self.rows) or not len(self.columns):
            return False
        scores = self.scores[np.ix_(self.rows, self.columns)]
        best, second = _two_best(scores)
        best_of_column, second_of_column = _two_best(scores.T)
        rows = np.arange(len(self.rows))
        mutual = (best_of_column[best] == rows) & (scores[rows, best] >= _LEAST)
        mutual &= scores[rows, best] - second >= margin
        mutual &= scores[rows, best] - second_of_column[best] >= margin
        found = [
            (int(self.rows[row]), int(self.columns[best[row]])) for row in np.flatnonzero(mutual)
        ]
        self._take(found)
        return bool(found)

    def take_in_order(self) -> None:
        """Accept, among the rest, the pairs of the best alignment without crossings."""
        if not len(self.rows) or not len(self.columns):
            return
        worth = self.scores[np.ix_(self.rows, self.columns)] - _LEAST
        worth[self._crosses()] = IMPOSSIBLE
        self._take(
            [(int(self.rows[row]), int(self.columns[column])) for row, column in aligned(worth)]
        )

    def _crosses(self) -> NDArray[np.bool_]:
        """Among the rest, the pairs that would cross most of the pairs near them."""
        known = sorted(self.pairs.items())
        result = np.zeros((len(self.rows), len(self.columns)), np.bool_)
        if not known:
            return result
        rows = np.array([row for row, _ in known])
        columns = np.array([column for _, column in known])
        at = np.searchsorted(rows, self.rows)
        for number, place in enumerate(at.tolist()):
            near = columns[max(place - 3, 0) : place + 3]
            before, behind = columns[max(place - 3, 0) : place], columns[place : place + 3]
            low = np.median(before) if len(before) else -1
            high = np.median(behind) if len(behind) else len(self.scores[0])
            if low < high and len(near):
                slack = 2 + int(near.max() - near.min())
                result[number] = (self.columns < low - slack) | (self.columns > high + slack)
        return result

    def _take(self, pairs: Sequence[tuple[int, int]]) -> None:
        for row, column in pairs:
            self.pairs[row] = column
        for row, column in pairs:
            for ours, theirs in zip(
                self.neighbours[0][row], self.neighbours[1][column], strict=True
            ):
                for one in ours:
                    for other in theirs:
                        if self.scores[one, other] > IMPOSSIBLE / 2:
                            self.scores[one, other] += _BESIDE
            for step in (-1, 1):
                one, other = row + step, column + step
                if (
                    0 <= one < len(self.scores)
                    and 0 <= other < len(self.scores[0])
                    and self.scores[one, other] > IMPOSSIBLE / 2
                ):
                    self.scores[one, other] += _IN_LINE
        if pairs:
            self.rows = np.setdiff1d(self.rows, [row for row, _ in pairs])
            self.columns = np.setdiff1d(self.columns, [column for _, column in pairs])


def _by_row(network: Network, places: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """For each computing piece the rows of the pieces that it reads from, and of those that read
    from it.
    """
    row_of = {place: row for row, place in enumerate(places)}
    sides: tuple[Neighbours, Neighbours] = computing_neighbours(network)
    return [
        (
            [row_of[other] for other, _ in sides[0][place] if other in row_of],
            [row_of[other] for other, _ in sides[1][place] if other in row_of],
        )
        for place in places
    ]


def _two_best(scores: Scores) -> tuple[IntArray, Scores]:
    """For each row the column of the best score, and the second best score."""
    best = scores.argmax(axis=1)
    if scores.shape[1] < 2:
        return best, np.full(len(scores), IMPOSSIBLE, np.float32)
    rest = scores.copy()
    rest[np.arange(len(scores)), best] = -np.inf
    return best, rest.max(axis=1)


def aligned(worth: Scores) -> list[tuple[int, int]]:
    """The pairs of rows and columns, both ascending, with the largest total score; pairs with a
    score of 0 are left out.
    """
    rows, columns = worth.shape
    reached = np.zeros((rows + 1, columns + 1), np.float32)
    for row in range(rows):
        with_pair = reached[row, :-1] + worth[row]
        reached[row + 1, 1:] = np.maximum.accumulate(np.maximum(reached[row, 1:], with_pair))
    found = []
    row, column = rows, columns
    while row and column:
        if reached[row, column] == reached[row - 1, column]:
            row -= 1
        elif reached[row, column] == reached[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            found.append((row, column))
    return found[::-1]
