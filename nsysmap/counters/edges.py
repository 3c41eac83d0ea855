"""The uncertainty about which kernel activity belongs to: SMs and memory do not start and stop
exactly at the timestamps.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.counters.model import GpuRan
from nsysmap.counters.shares import ColumnLayout

SMEAR_NS = 150.0
"""Standard deviation between the begin and end of a kernel's activity and its timestamps, the same
in every repetition.

Measured on an H100 against Nsight Compute with clocks and caches left alone, over the 255 kernels
of a MobileNet: this difference does not shrink with more repetitions.
"""
MEMORY_SMEAR_NS = 300.0
"""The smear for traffic to memory: writes leave the level-2 cache later than the kernel issues
them.
"""
# per square root of a µs: metrics that change this much within kernels also begin and end gradually
_UNEVEN = 0.3


@dataclass(frozen=True)
class GroupNeighbours:
    """The groups that run directly before and after each group, and how often; the last group
    stands for none.
    """

    group: IntArray
    other: IntArray
    often: FloatArray  # share of the executions of the group


def beside(work: GpuRan) -> GroupNeighbours:
    """The neighbours of each group's executions, on either side, if they are closer than activity
    smears.
    """
    groups = work.groups
    reached = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], work.end_ns[:-1]]))
    near = work.start_ns - reached < 2 * SMEAR_NS
    previous = np.concatenate([[-1], work.group[:-1]])
    before = np.where(near & (previous >= 0), previous, groups)
    following = np.concatenate([work.group[1:], [-1]])
    after = np.where(np.concatenate([near[1:], [False]]) & (following >= 0), following, groups)
    inside = work.group >= 0
    pairs = np.concatenate(
        [work.group[inside] * (groups + 1) + each[inside] for each in (before, after)]
    )
    found, count = np.unique(pairs, return_counts=True)
    group, other = found // (groups + 1), found % (groups + 1)
    executions = np.bincount(work.group[inside], minlength=groups)
    return GroupNeighbours(group, other, count / np.maximum(executions, 1)[group])


def smear_ns(unevenness: float, *, memory: bool) -> float:
    """How exactly the metric follows the timestamps: one that is constant within kernels begins and
    ends with them.
    """
    return (MEMORY_SMEAR_NS if memory else SMEAR_NS) * min(1.0, unevenness / _UNEVEN) ** 4


def smeared(
    pairs: GroupNeighbours, layout: ColumnLayout, values: FloatArray, idle: float, apart_ns: float
) -> FloatArray:
    """Standard error of each group's value if its begin and its end are known to within
    ``apart_ns``.
    """
    known = np.append(values, idle)
    return _at_ends(pairs, layout, (known[pairs.group] - known[pairs.other]) * apart_ns)


def refilled(
    pairs: GroupNeighbours, layout: ColumnLayout, values: FloatArray, idle: float
) -> FloatArray:
    """Standard error of a metric of blocks resident on SMs: SMs drain and fill also between kernels
    that follow one another directly.

    Metrics of work (instructions, cycles of tensor cores) do not depend on how a kernel is
    launched.
    """
    return _at_ends(pairs, layout, (values[pairs.group] - idle) * SMEAR_NS)


def cached(work: GpuRan, values: FloatArray, reach_ns: float, *, written: bool) -> FloatArray:
    """Standard error of a kernel's traffic to memory, which depends on the contents of the level-2
    cache and on when it writes them back.

    ``reach_ns`` is the time in which the cache turns over.  Two uniform distributions: between none
    and all of the mean traffic in that time on either side belongs to this kernel; and its own
    writes are between what was counted, which earlier kernels may have left in the cache, and that
    mean.  Added up over the kernels of two networks, bytes written in traces and in Nsight Compute
    never differed by more than the size of the cache (H100 and H200).
    """
    rate = np.where(work.group >= 0, np.nan_to_num(values)[work.group], 0.0)
    moments = np.concatenate([work.start_ns, work.end_ns]).astype(np.float64)
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    running = np.cumsum(np.concatenate([rate, -rate])[order])[:-1]
    moved = np.concatenate([[0.0], np.cumsum(running * np.diff(moments))])
    middle = (work.start_ns + work.end_ns) / 2
    first, last = (
        np.maximum(middle - reach_ns, moments[0]),
        np.minimum(middle + reach_ns, moments[-1]),
    )
    around = (np.interp(last, moments, moved) - np.interp(first, moments, moved)) / np.maximum(
        last - first, 1.0
    )
    inside = work.group >= 0
    count = np.bincount(work.group[inside], minlength=work.groups)
    mean = np.bincount(work.group[inside], around[inside], work.groups) / np.maximum(count, 1)
    error: FloatArray = np.sqrt(mean**2 / 12 + ((values - mean) ** 2 / 3 if written else 0.0))
    return error


def _at_ends(pairs: GroupNeighbours, layout: ColumnLayout, moved: FloatArray) -> FloatArray:
    """Standard error of each group from what its ends can gain or lose, in percent times ns."""
    error: FloatArray = np.sqrt(
        np.bincount(pairs.group, moved**2 * pairs.often, layout.groups)
    ) / np.maximum(layout.duration_ns, 1.0)
    return error
