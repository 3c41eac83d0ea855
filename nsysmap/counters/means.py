"""The means to estimate: of each group over its parts, and of each set of groups over the time of
its kernels.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.counters.near_inverse import Weighted, weighted
from nsysmap.counters.ring import Gram
from nsysmap.counters.shares import ColumnLayout


@dataclass(frozen=True)
class Means:
    """Each group's mean from the rates of its parts, and then each set's."""

    first: IntArray  # column of each group
    weight: FloatArray  # weight of each column but the last in its group's mean
    sets: FloatArray  # of each group in each set: [group, set]
    member: IntArray  # set of each group, -1 for none
    ran: FloatArray  # of each group and each set: whether it ran

    @property
    def count(self) -> int:
        """Groups and sets."""
        return len(self.ran)

    def of(self, rates: FloatArray) -> FloatArray:
        """The means for these rates of the columns, along the last axis."""
        groups = np.add.reduceat(rates[..., :-1] * self.weight, self.first, axis=-1)
        return np.concatenate([groups, groups @ self.sets], axis=-1)

    def weighted(self, matrix: Gram) -> Weighted:
        """The means as sums over the columns."""
        groups = len(self.first)
        columns = len(self.weight)
        group = np.repeat(np.arange(groups), np.diff(np.append(self.first, columns)))
        inside = np.flatnonzero(self.member[group] >= 0)
        share = self.sets[group[inside], self.member[group[inside]]] * self.weight[inside]
        return weighted(
            matrix,
            np.concatenate([np.arange(columns), inside]),
            np.concatenate([group, groups + self.member[group[inside]]]),
            np.concatenate([self.weight, share]),
            self.count,
        )


def means_of(layout: ColumnLayout, member: IntArray, sets: int) -> Means:
    """The means of the groups, and of the sets; ``member`` is the set of each group (-1 for
    none).
    """
    inside = np.flatnonzero((member >= 0) & (layout.executions > 0))
    time = (layout.duration_ns * layout.executions)[inside]
    total = np.bincount(member[inside], time, sets)
    weights = np.zeros((layout.groups, sets))
    weights[inside, member[inside]] = time / np.maximum(total[member[inside]], 1e-12)
    kept = np.full(layout.groups, -1)
    kept[inside] = member[inside]
    ran = np.concatenate([layout.executions > 0, weights.sum(axis=0) > 0]).astype(np.float64)
    return Means(layout.first[:-1], np.repeat(1.0 / layout.parts, layout.parts), weights, kept, ran)
