"""The uncertainty of kernels' begins and ends: SMs and memory do not start and stop exactly at the timestamps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray, IntArray
from nsysmap.counters.model import Work
from nsysmap.counters.shares import Layout

SMEAR_NS = 150.0
"""Standard deviation between the begin and end of a kernel's activity and its timestamps, the same in every repetition.

Measured on an H100 against Nsight Compute with clocks and caches left alone, over the 255 kernels of a MobileNet: this difference does not
shrink with more repetitions.
"""
MEMORY_SMEAR_NS = 300.0
"""The same for traffic to memory: writes leave the level-2 cache later than the kernel issues them."""
_UNEVEN = 0.3  # per square root of a µs: metrics that change this much within kernels also begin and end gradually


@dataclass(frozen=True)
class Beside:
    """Which group runs directly before and after each group, and how often; the last group stands for none."""

    group: IntArray
    other: IntArray
    often: FloatArray  # share of the executions of the group


def beside(work: Work) -> Beside:
    """The neighbours of each group's executions, on either side, if they are closer than activity smears."""
    groups = work.groups
    reached = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], work.end_ns[:-1]]))
    near = work.start_ns - reached < 2 * SMEAR_NS
    previous = np.concatenate([[-1], work.group[:-1]])
    before = np.where(near & (previous >= 0), previous, groups)
    following = np.concatenate([work.group[1:], [-1]])
    after = np.where(np.concatenate([near[1:], [False]]) & (following >= 0), following, groups)
    inside = work.group >= 0
    pairs = np.concatenate([work.group[inside] * (groups + 1) + each[inside] for each in (before, after)])
    found, count = np.unique(pairs, return_counts=True)
    group, other = found // (groups + 1), found % (groups + 1)
    executions = np.bincount(work.group[inside], minlength=groups)
    return Beside(group, other, count / np.maximum(executions, 1)[group])


def smear_ns(unevenness: float, *, memory: bool) -> float:
    """How exactly the metric follows the timestamps: one that is constant within kernels begins and ends with them."""
    return (MEMORY_SMEAR_NS if memory else SMEAR_NS) * min(1.0, unevenness / _UNEVEN) ** 4


def smeared(pairs: Beside, layout: Layout, values: FloatArray, idle: float, apart_ns: float) -> FloatArray:
    """Standard error of each group's value if its begin and its end are known to within ``apart_ns``."""
    known = np.append(values, idle)
    apart = (known[pairs.group] - known[pairs.other]) ** 2 * pairs.often
    error: FloatArray = np.sqrt(np.bincount(pairs.group, apart, layout.groups)) * apart_ns / np.maximum(layout.duration_ns, 1.0)
    return error
