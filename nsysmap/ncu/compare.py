"""Puts Nsight Compute's counters beside those estimated from a trace, at the same clock.

Unless told otherwise (--clock-control none, --cache-control none), ncu locks clocks to base and empties the caches before every kernel:
so computing takes the same cycles but more time, and reads come from memory even if they hit the cache in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray
from nsysmap.ncu.match import Matched
from nsysmap.ncu.printed import NcuKernel

TENSOR = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_elapsed",
)
_CLOCK = ("sm__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.max.per_second")
_SECTOR_BYTES = 32
_ENOUGH = 5.0  # percent of tensor activity from which on a kernel shows the clock


@dataclass(frozen=True)
class FromTrace:
    """The values from the trace, by group of the sequence."""

    duration_ns: FloatArray
    clock_hz: FloatArray
    tensor: FloatArray  # percent
    tensor_error: FloatArray
    dram: FloatArray  # percent, reads and writes
    dram_error: FloatArray
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class Comparison:
    """Values by group; NaN if ncu did not profile it or lacks the metric."""

    ncu_duration_ns: FloatArray
    ncu_clock_hz: float
    clock_told_by: str  # ncu, or tensor cycles: the clock at which their number equals the trace's
    tensor: FloatArray  # ncu's percent, at the trace's clock and duration
    tensor_as_printed: FloatArray
    dram: FloatArray
    dram_as_printed: FloatArray


def compare(profiled: Sequence[NcuKernel], matched: Matched, trace: FromTrace) -> Comparison:
    """ncu's values by group, and these converted to the trace's clock and duration."""
    groups = len(trace.duration_ns)
    duration = _by_group(profiled, matched, groups, ("gpu__time_duration.sum",))
    tensor = _by_group(profiled, matched, groups, TENSOR)
    moved = _mean(matched, [dram_bytes(kernel) for kernel in profiled], groups)
    clock, told_by = _clock(profiled, matched, trace, (duration, tensor))
    slower = duration * clock / np.maximum(trace.duration_ns * trace.clock_hz, 1e-9)
    over = 100.0 / (trace.bandwidth_bytes_per_s / 1e9)
    return Comparison(duration, clock, told_by, tensor * slower, tensor, moved / trace.duration_ns * over, moved / duration * over)


def _clock(profiled: Sequence[NcuKernel], matched: Matched, trace: FromTrace, measured: tuple[FloatArray, FloatArray]) -> tuple[float, str]:
    groups = len(trace.duration_ns)
    told = _by_group(profiled, matched, groups, _CLOCK)
    if np.isfinite(told).any():
        return float(np.nanmedian(told)), "ncu"
    duration, tensor = measured
    cycles = _by_group(profiled, matched, groups, ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg", "gpc__cycles_elapsed.max"))
    if np.isfinite(cycles).any():
        return float(np.nanmedian(cycles / duration * 1e9)), "ncu"
    busy = (tensor > _ENOUGH) & (trace.tensor > _ENOUGH) & (duration > 0)
    if not busy.any():
        return float("nan"), "nothing"
    same = trace.tensor * trace.duration_ns * trace.clock_hz / np.where(busy, tensor * duration, 1.0)
    return float(np.median(same[busy])), "tensor cycles"


def dram_bytes(kernel: NcuKernel) -> float | None:
    """Bytes that one profiled kernel read from and wrote to device memory; None if they were not counted."""
    total = kernel.get("dram__bytes.sum")
    if total is not None:
        return total.value
    parts = [kernel.get(f"dram__bytes_{way}.sum") for way in ("read", "write")]
    if all(part is not None for part in parts):
        return sum(part.value for part in parts if part is not None)
    rate, duration = kernel.get("dram__bytes.sum.per_second"), kernel.get("gpu__time_duration.sum")  # all that the page "details" has
    return None if rate is None or duration is None else rate.value * duration.value / 1e9


def reads_in_program(profiled: Sequence[NcuKernel]) -> list[float | None]:
    """Bytes that each kernel reads from device memory in the program; None if ncu's counters do not show them.

    If ncu emptied the caches, what the previous kernel wrote also comes from memory, while in the program it is still in the level-2 cache:
    this amount is subtracted.  Measured on an H100 against caches left alone: 3.2 and 0.6 points of the bandwidth apart (median of the
    kernels of a decoder and a ResNet), and 18.7 and 17.2 without.
    """
    read = [kernel.get("dram__bytes_read.sum") for kernel in profiled]
    wrote = [kernel.get("lts__t_sectors_op_write.sum") for kernel in profiled]
    told: list[float | None] = []
    for at, (kernel, one) in enumerate(zip(profiled, read, strict=True)):
        before = wrote[at - 1] if at else None
        if one is None or kernel.conditions.caches is None:
            told.append(None)
        elif kernel.conditions.caches == "left alone":
            told.append(one.value)
        else:
            told.append(None if before is None else max(one.value - _SECTOR_BYTES * before.value, 0.0))
    return told


def _by_group(profiled: Sequence[NcuKernel], matched: Matched, groups: int, names: tuple[str, ...]) -> FloatArray:
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
