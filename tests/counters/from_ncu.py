"""Nsight Compute's values by kernel, converted to the clock and duration of a trace, to compare
them with estimates from samples.

Unless told otherwise (--clock-control none, --cache-control none), ncu locks clocks to base and
empties the caches before every kernel: so computing takes the same cycles but more time, and reads
come from memory even if they hit the cache in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsysmap.core.table import FloatArray
from nsysmap.counters.beside_ncu import TENSOR, dram_bytes
from nsysmap.counters.ncu_match import Matched
from nsysmap.inputs.ncu.printed import NcuKernel

_ENOUGH = 5.0  # percent of tensor activity from which on a kernel shows the clock


@dataclass(frozen=True)
class FromTrace:
    """The values from the trace, by group of the sequence."""

    duration_ns: FloatArray
    clock_hz: FloatArray
    tensor: FloatArray  # percent
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class FromNcu:
    """Values by group; NaN if ncu did not profile it or lacks the metric."""

    ncu_duration_ns: FloatArray
    tensor: FloatArray  # ncu's percent, at the trace's clock and duration
    tensor_as_printed: FloatArray
    dram_as_printed: FloatArray


def from_ncu(profiled: Sequence[NcuKernel], matched: Matched, trace: FromTrace) -> FromNcu:
    """ncu's values by group, and these converted to the trace's clock and duration."""
    groups = len(trace.duration_ns)
    duration = _by_group(profiled, matched, groups, ("gpu__time_duration.sum",))
    tensor = _by_group(profiled, matched, groups, TENSOR)
    moved = _mean(matched, [dram_bytes(kernel) for kernel in profiled], groups)
    clock = _clock(trace, duration, tensor)
    slower = duration * clock / np.maximum(trace.duration_ns * trace.clock_hz, 1e-9)
    return FromNcu(
        duration,
        tensor * slower,
        tensor,
        moved / duration * 100.0 / (trace.bandwidth_bytes_per_s / 1e9),
    )


def _clock(trace: FromTrace, duration: FloatArray, tensor: FloatArray) -> float:
    """The clock under ncu at which there are as many tensor cycles as in the trace."""
    busy = (tensor > _ENOUGH) & (trace.tensor > _ENOUGH) & (duration > 0)
    same = (
        trace.tensor * trace.duration_ns * trace.clock_hz / np.where(busy, tensor * duration, 1.0)
    )
    return float(np.median(same[busy]))


def _by_group(
    profiled: Sequence[NcuKernel], matched: Matched, groups: int, names: tuple[str, ...]
) -> FloatArray:
    """The mean over the profiled executions of each group."""
    found = [kernel.get(*names) for kernel in profiled]
    return _mean(matched, [None if one is None else one.value for one in found], groups)


def _mean(matched: Matched, values: Sequence[float | None], groups: int) -> FloatArray:
    total, count = np.zeros(groups), np.zeros(groups)
    for value, group in zip(values, matched.group.tolist(), strict=True):
        if group >= 0 and value is not None:
            total[group] += value
            count[group] += 1
    mean: FloatArray = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean
