"""Says which values are known well enough, and what to measure for those that are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import BoolArray
from nsysmap.counters.estimate import Estimate, Estimates
from nsysmap.counters.model import Work

WELL_KNOWN = 5.0
"""Percentage points: a value with a larger standard error is not told …"""
WELL_KNOWN_PART = 0.02
"""… and of what is not in percent, this part of the value."""
FASTEST_HZ = 200_000
"""What nsys samples at most."""
FREQUENCIES_HZ = (10_000, 20_000, 50_000, 100_000, 200_000)
_FEWEST = 5  # executions: fewer say nothing of how much they differ …
_LONG = 20.0  # … unless one is as long as so many samples
_SLOPE = 1.25  # errors grow with the sample's length over the kernel's to this power (benchmarks/counter_rates.py)
_ONE = 3.5  # points of error of one execution of a kernel as long as a sample, in nine of ten kernels (benchmarks/counter_rates.py)
_TOLD_SHARE = 0.9  # of kernel time: a frequency is enough that tells so much
_TOGETHER = 0.9  # of a kernel's time: more samples of the same do not part it from what runs beside it
_BESIDE = 0.05  # of a kernel's time: with less of other work at the same time it counts as alone


@dataclass(frozen=True)
class Remedy:
    """What would tell a value."""

    frequency_hz: int
    executions: int


def told(estimates: Estimates, estimate: Estimate) -> BoolArray:
    """Which groups' values are known well enough."""
    layout = estimates.layout
    long = layout.duration_ns >= _LONG * estimates.period_ns
    limit = WELL_KNOWN if estimate.percent else WELL_KNOWN_PART * estimate.groups.value
    enough: BoolArray = (estimate.groups.error <= limit) & ((layout.executions >= _FEWEST) | long) & (layout.executions > 0)
    return enough


def why_not(estimates: Estimates, estimate: Estimate, group: int, *, what: str = "kernel", repeats: str = "inferences") -> str:
    """Why this group's value is not told, with what would tell it; empty where it is told.  ``what`` the group is, and what repeats it."""
    if told(estimates, estimate)[group]:
        return ""
    layout, values = estimates.layout, estimate.groups
    executions = int(layout.executions[group])
    if not executions:
        return "it did not run while counters were sampled"
    if executions < _FEWEST:
        times = "once" if executions == 1 else f"{executions} times"
        return f"it ran {times} while counters were sampled: sample {2 * _FEWEST} {repeats} or more"
    error = f"{values.error[group]:.0f} points" if estimate.percent else f"{values.error[group] / max(values.value[group], 1e-12):.0%}"
    length, period = float(layout.duration_ns[group]) / 1e3, estimates.period_ns / 1e3
    said = f"the error is {error}: a {what} of {length:.1f} µs, samples of {period:.0f} µs, {executions} executions"
    if estimates.concurrent[group] > _BESIDE:
        said += f", and other work runs concurrently for {estimates.concurrent[group]:.0%} of its time"
    remedies = remedies_for(estimates, estimate, group)
    if remedies:
        ways = " or ".join(f"{each.executions} {repeats} at {each.frequency_hz // 1000} kHz" for each in remedies)
        return f"{said}; {ways} would be enough"
    other = ": use Nsight Compute" if what == "kernel" else ""
    if estimates.concurrent[group] > _TOGETHER:
        return f"{said}; samples cannot separate what always runs together{other}"
    return f"{said}; no sampling would be enough{other}"


def remedies_for(estimates: Estimates, estimate: Estimate, group: int, *, most: int = 100_000) -> tuple[Remedy, ...]:
    """The fewest executions at this frequency, and at the fastest, with which the value would be told."""
    layout, values, period = estimates.layout, estimate.groups, estimates.period_ns
    executions = int(layout.executions[group])
    error = float(values.sampling[group] ** 2 + values.shape[group] ** 2) ** 0.5
    limit = WELL_KNOWN if estimate.percent else WELL_KNOWN_PART * float(values.value[group])
    floor2 = limit**2 - float(values.timing[group] ** 2 + values.rounding[group] ** 2 + values.edges[group] ** 2)
    if not executions or floor2 <= 0 or not np.isfinite(error) or estimates.concurrent[group] > _TOGETHER:
        return ()
    found = []
    for frequency in sorted({_as_asked(1e9 / period), FASTEST_HZ}):
        ratio = 1e9 / frequency / period
        expected = error * min(ratio, 1.0) ** _SLOPE
        needed = max(int(np.ceil(executions * expected**2 / floor2)), 2 * _FEWEST)
        if needed <= most:
            found.append(Remedy(frequency, _rounded_up(needed)))
    return tuple(found)


def frequency_for(work: Work) -> int:
    """The lowest frequency at which as many repeats would tell the kernels that take most of the time: nsys loses fewest samples there."""
    inside = work.group >= 0
    executions = np.bincount(work.group[inside], minlength=work.groups)
    spent = np.bincount(work.group[inside], (work.end_ns - work.start_ns)[inside].astype(np.float64), work.groups)
    length = spent / np.maximum(executions, 1)
    for frequency in FREQUENCIES_HZ:
        needed = (_ONE * (1e9 / frequency / np.maximum(length, 1.0)) ** _SLOPE / WELL_KNOWN) ** 2
        if spent[executions >= np.maximum(needed, 2 * _FEWEST)].sum() >= _TOLD_SHARE * spent.sum() > 0:
            return frequency
    return FASTEST_HZ


def command(frequency_hz: int, nsys_version: tuple[int, int] | None = None) -> str:
    """The nsys line that samples counters at that frequency, for that version or today's."""
    devices = "--gpu-metrics-device" if nsys_version is not None and nsys_version < (2024, 2) else "--gpu-metrics-devices"
    return f"nsys profile -t cuda,nvtx --cuda-graph-trace=node {devices}=0 --gpu-metrics-frequency={frequency_hz} PROGRAM"


def _as_asked(frequency: float) -> int:
    """The round frequency that was asked for."""
    return min(FREQUENCIES_HZ, key=lambda each: abs(np.log(each / frequency))) if frequency > 0 else FREQUENCIES_HZ[0]


def _rounded_up(count: int) -> int:
    """With two digits."""
    step = int(10 ** max(len(str(count)) - 2, 0))
    return -(-count // step) * step
