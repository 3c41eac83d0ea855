"""Pools kernels that do the same work at hardly different rates, so that samples of one also count
for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.core.groups import numbered
from nsysmap.core.table import BoolArray, FloatArray, IntArray, Table

_SAME_TIME = 1.15
"""Times as long: kernels of one name and shape of launch that differ by more do not do the same
work, as products with another inner dimension (in Nsight Compute's counters of a PyTorch encoder
1.4 times; those that do the same differ by 1 to 5 %).
"""
LEAST_APART = 0.02
"""Standard deviation of the rates of kernels that do the same, as a share of their mean, at least:
0.2 to 2.7 % in Nsight Compute's counters of an encoder's 60 kernels.
"""
_UNLIKE = 3.3
"""Standard deviations of chi squared (after Wilson and Hilferty) from which on kernels differ more
than others of their sort: one in two thousand by chance.
"""
_BISECTIONS = 40  # halve the range of what is searched for
_TINY = 1e-9  # an error of nothing would weigh without end
_MOST_APART = 10.0  # times the mean: as good as unlike


# what a launch of the same work has in common
_LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "dynamic_shared_bytes")


def alike_kernels(kernels: Table, row: IntArray) -> IntArray:
    """For each of these rows of the kernels table a number, equal for kernels of one name and
    launch shape; -1 for a row that is none.
    """
    result = np.full(len(row), -1, np.int64)
    some = np.flatnonzero(row >= 0)
    if len(some):
        shape = (kernels.ints(name)[row[some]] for name in _LAUNCH)
        result[some] = numbered(kernels.text("name").codes[row[some]].astype(np.int64), *shape)[1]
    return result


def of_same_time(alike: IntArray, duration_ns: FloatArray) -> IntArray:
    """The numbers split further, so that equal ones also have nearly equal durations."""
    order = np.lexsort((duration_ns, alike))
    begins = np.ones(len(order), np.bool_)
    shortest = 0
    for at in range(1, len(order)):
        before, mine = order[shortest], order[at]
        longest = _SAME_TIME * duration_ns[before]
        begins[at] = alike[before] != alike[mine] or not duration_ns[mine] <= longest
        if begins[at]:
            shortest = at
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(begins) - 1
    return np.where(alike >= 0, number, -1)


def of_same_members(alike: IntArray, member_of: IntArray, sets: int) -> IntArray:
    """A number for each set of groups, equal for sets whose groups have the same numbers; -1 if any
    group has none.
    """
    members: list[list[int]] = [[] for _ in range(sets)]
    for number, at in zip(alike.tolist(), member_of.tolist(), strict=True):
        if at >= 0:
            members[at].append(number)
    known: dict[tuple[int, ...], int] = {}
    return np.array(
        [
            known.setdefault(tuple(sorted(each)), len(known)) if each and min(each) >= 0 else -1
            for each in members
        ],
        np.int64,
    )


@dataclass(frozen=True)
class Pooled:
    """How values are pooled: the new value of i is ``own[i]`` times its own, and the rest the mean
    of its class by ``weight``.
    """

    number: IntArray  # class of each entry, the entries of none each in one of its own
    own: FloatArray
    weight: FloatArray  # of each entry in the mean of its class
    apart2: FloatArray  # variance between entries of its class
    # share of the entries' variance that is the same error in all of a class: what they differ less
    # than their errors say
    common: float

    def value(self, values: FloatArray) -> FloatArray:
        """A linear sum of values, such as the estimates, or errors that have a sign."""
        mean = np.bincount(self.number, self.weight * values)[self.number]
        return np.asarray(self.own * values + (1 - self.own) * mean)

    def variance(self, variance: FloatArray) -> FloatArray:
        """The variance of the mean of values with errors of these variances."""
        ours = self.own + (1 - self.own) * self.weight
        of_class = np.bincount(self.number, self.weight**2 * variance)[self.number]
        others = np.maximum(of_class - self.weight**2 * variance, 0.0)
        apart = ours**2 * variance + (1 - self.own) ** 2 * others
        together = self.value(np.sqrt(variance)) ** 2
        return np.asarray((1 - self.common) * apart + self.common * together)

    def freedom(self, variance: FloatArray, freedom: FloatArray) -> FloatArray:
        """The degrees of freedom of such a variance (Satterthwaite 1946), no fewer than before."""
        ours = (self.own + (1 - self.own) * self.weight) ** 2 * variance
        of_class = np.bincount(self.number, (self.weight**2 * variance) ** 2 / freedom)
        own = (self.weight**2 * variance) ** 2 / freedom
        others = (1 - self.own) ** 4 * np.maximum(of_class[self.number] - own, 0.0)
        fourth = ours**2 / freedom + others
        told = np.divide(self.variance(variance) ** 2, fourth, out=freedom.copy(), where=fourth > 0)
        return np.asarray(np.maximum(told, freedom))

    def left(self) -> FloatArray:
        """The variance from what an entry differs from its class, and the value does not."""
        ours = (1 - self.own) * (1 - self.weight)
        squares = np.bincount(self.number, self.weight**2)[self.number] - self.weight**2
        return np.asarray((ours**2 + (1 - self.own) ** 2 * np.maximum(squares, 0.0)) * self.apart2)


def pooled_means(groups: IntArray, sets: IntArray, value: FloatArray, error: FloatArray) -> Pooled:
    """How far groups of one class, and sets of one, are drawn to the mean of their class, by how
    much groups differ within classes (empirical Bayes).

    The values are those of all groups and then of all sets; numbers are -1 for what is like no
    other.
    """
    count = len(groups)
    classes = _of(groups, value[:count], error[:count])
    apart = classes.apart()
    own = _pooled(groups, value[:count], error[:count], apart)
    of_sets = _pooled(sets, value[count:], error[count:], apart)
    return Pooled(
        np.concatenate([own.number, of_sets.number + count]),
        np.concatenate([own.own, of_sets.own]),
        np.concatenate([own.weight, of_sets.weight]),
        np.concatenate([own.apart2, of_sets.apart2]),
        classes.common(),
    )


def _of(alike: IntArray, value: FloatArray, error: FloatArray) -> _Classes:
    """The classes of two and more with a value."""
    fine = (alike >= 0) & np.isfinite(value) & np.isfinite(error)
    several = fine & (np.bincount(alike[fine], minlength=len(alike) + 1)[alike] > 1)
    rows = np.flatnonzero(several)
    number = np.unique(alike[rows], return_inverse=True)[1].reshape(-1).astype(np.int64)
    return _Classes(rows, number, value[rows], np.maximum(error[rows], _TINY) ** 2)


def _pooled(alike: IntArray, value: FloatArray, error: FloatArray, apart: float) -> Pooled:
    classes = _of(alike, value, error)
    rows, of = classes.row, classes.number
    number = np.arange(len(alike))
    own, weight, between2 = np.ones(len(alike)), np.ones(len(alike)), np.zeros(len(alike))
    if len(rows):
        first = np.full(int(of.max()) + 1, len(alike))
        np.minimum.at(first, of, rows)
        number[rows] = first[of]
        between2[rows] = classes.between2(apart)
        total = classes.variance + between2[rows]
        own[rows] = between2[rows] / total
        weight[rows] = 1 / total / np.bincount(of, 1 / total)[of]
    return Pooled(number, own, weight, between2, 0.0)


@dataclass(frozen=True)
class _Classes:
    """The groups that are alike, by class."""

    row: IntArray
    number: IntArray
    value: FloatArray
    variance: FloatArray

    def level(self) -> FloatArray:
        """The mean of each entry's class by the entries' errors, above 0."""
        weight = 1 / self.variance
        mean = np.bincount(self.number, weight * self.value) / np.bincount(self.number, weight)
        return np.asarray(np.maximum(mean, 0.0)[self.number])

    def squares(self, between2: FloatArray) -> FloatArray:
        """For each class the sum of squared differences from its mean, divided by their
        variances.
        """
        weight = 1 / (self.variance + between2)
        mean = np.bincount(self.number, weight * self.value) / np.bincount(self.number, weight)
        away = self.value - mean[self.number]
        return np.bincount(self.number, weight * away**2).astype(np.float64)

    def apart(self) -> float:
        """The standard deviation within classes as a share of their mean, such that the squares are
        as many as the degrees of freedom (Paule and Mandel 1982).
        """
        if not len(self.row):
            return LEAST_APART
        freedom = len(self.number) - int(self.number.max()) - 1
        level = self.level()
        low, high = LEAST_APART, _MOST_APART
        if self.squares((low * level) ** 2).sum() <= freedom:
            return low
        for _ in range(_BISECTIONS):
            middle = float(np.sqrt(low * high))
            more = float(self.squares((middle * level) ** 2).sum()) > freedom
            low, high = (middle, high) if more else (low, middle)
        return high

    def common(self) -> float:
        """The share of the variances that is the same in all of a class: by how much less than
        these they differ.
        """
        if not len(self.row):
            return 0.0
        freedom = len(self.number) - int(self.number.max()) - 1
        return max(1 - float(self.squares(np.zeros(len(self.row))).sum()) / freedom, 0.0)

    def between2(self, apart: float) -> FloatArray:
        """The variance between the entries of each class: as ``apart`` says, unless these differ by
        far more; then all that they do.
        """
        between2 = (apart * self.level()) ** 2
        squares, freedom = self.squares(between2), (np.bincount(self.number) - 1).astype(np.float64)
        unlike = _unlike(squares, freedom)[self.number]
        scatter = np.bincount(self.number, (self.value - self._plain()[self.number]) ** 2)
        return np.where(unlike, np.maximum(between2, (scatter / freedom)[self.number]), between2)

    def _plain(self) -> FloatArray:
        return np.bincount(self.number, self.value) / np.bincount(self.number)


def _unlike(squares: FloatArray, freedom: FloatArray) -> BoolArray:
    spread = 2.0 / (9.0 * freedom)
    beyond: BoolArray = (np.cbrt(squares / freedom) - (1 - spread)) / np.sqrt(spread) > _UNLIKE
    return beyond
