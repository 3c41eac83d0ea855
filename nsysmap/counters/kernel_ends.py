"""Idle SM time while a kernel begins and while it ends, from the rates over its parts."""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray
from nsysmap.counters.estimate import Estimate, Estimates

_FULL = 0.9  # share of the kernel's usual activity from which on it counts as working
_USUAL = 0.75  # quantile of the activity over a kernel's parts
_LEAST_PARTS = 4  # of a kernel: with fewer its end is not told from its middle


@dataclass(frozen=True)
class KernelEnds:
    """For each group the SM time lost at a kernel's begin and end, converted into time with all SMs
    idle; NaN if unknown.
    """

    begin_ns: FloatArray
    end_ns: FloatArray


def kernel_ends(estimates: Estimates, sm_active: Estimate) -> KernelEnds:
    """Idle SM time before activity first reaches its usual level, and after it was last there."""
    layout = estimates.layout
    begin, end = np.full(layout.groups, np.nan), np.full(layout.groups, np.nan)
    for group in np.flatnonzero(layout.executions > 0).tolist():
        first, last = int(layout.first[group]), int(layout.first[group + 1])
        parts = sm_active.parts[first:last]
        part_ns = float(layout.duration_ns[group]) / len(parts)
        if len(parts) < _LEAST_PARTS or part_ns > estimates.period_ns:
            continue
        usual = _quantile(parts)
        if usual <= 0:
            continue
        full = np.flatnonzero(parts >= _FULL * usual)
        idle = np.maximum(1.0 - parts / 100.0, 0.0)
        begin[group] = idle[: full[0]].sum() * part_ns
        end[group] = idle[full[-1] + 1 :].sum() * part_ns
    return KernelEnds(begin, end)


def _quantile(parts: FloatArray) -> float:
    """The result of numpy's quantile, faster for so few parts."""
    at = _USUAL * (len(parts) - 1)
    ordered = np.sort(parts)
    low = float(ordered[int(at)])
    return low + (at - int(at)) * (float(ordered[-int(-at // 1)]) - low)
