"""How long SMs idle while a kernel begins and while it ends: from the rates over its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray
from nsysmap.counters.estimate import Estimate, Estimates

_FULL = 0.9  # of the kernel's usual activity: from there on, and up to there, it is at work
_LEAST_PARTS = 4


@dataclass(frozen=True)
class KernelEnds:
    """By group: SM time lost at a kernel's begin and end, as if all SMs had idled for so long; NaN where samples do not tell."""

    begin_ns: FloatArray
    end_ns: FloatArray


def kernel_ends(estimates: Estimates, sm_active: Estimate) -> KernelEnds:
    """Idle SM time before activity is first up to its usual level, and after it last was."""
    layout = estimates.layout
    begin, end = np.full(layout.groups, np.nan), np.full(layout.groups, np.nan)
    for group in np.flatnonzero(layout.executions > 0).tolist():
        first, last = int(layout.first[group]), int(layout.first[group + 1])
        parts = sm_active.parts[first:last]
        part_ns = float(layout.duration_ns[group]) / len(parts)
        if len(parts) < _LEAST_PARTS or part_ns > estimates.period_ns:
            continue
        usual = float(np.quantile(parts, 0.75))
        if usual <= 0:
            continue
        full = np.flatnonzero(parts >= _FULL * usual)
        idle = np.maximum(1.0 - parts / 100.0, 0.0)
        begin[group] = idle[: full[0]].sum() * part_ns
        end[group] = idle[full[-1] + 1 :].sum() * part_ns
    return KernelEnds(begin, end)
