"""Says which values are known well enough, and what to measure for those that are not."""

from __future__ import annotations

import numpy as np

from nsysmap.core.note import WhyUnknown
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray
from nsysmap.counters.estimate import Estimate, Estimates
from nsysmap.counters.model import GpuRan
from nsysmap.inputs.nsys.program import older

WELL_KNOWN = 5.0
"""Percentage points: a value with a larger standard error is not shown."""
BOUNDED = 10.0
"""Percentage points: a value with a larger standard error has no interval.  0 and 100 % are then so
near that intervals hold the truth more often than they say: nine in ten do up to here, 95 to 100 of
100 beyond (benchmarks/counter_rates.py).
"""
FASTEST_HZ = 200_000
"""The highest sampling frequency of nsys."""
FREQUENCIES_HZ = (10_000, 20_000, 50_000, 100_000, 200_000)
_DEVICES_SINCE = "2024.2"  # until then, the option was --gpu-metrics-device
_FEWEST = 5  # executions: fewer do not show how much they differ …
_LONG = 20.0  # … unless one is as long as this many samples
# errors grow with this power of the sample's length divided by the kernel's
# (benchmarks/counter_rates.py)
_SLOPE = 1.25
# error in points for one execution of a kernel as long as a sample, in nine of ten kernels
# (benchmarks/counter_rates.py)
_ONE = 3.5
# times the executions at which the expected error is just small enough: errors are themselves
# uncertain, and what is told from
_SURE = 2.0
# the kernels whose errors happen to be small must hold too (simulated at 10 and 20 kHz, 30 to 300
# inferences, six timelines)
_MOST_EXECUTIONS = 100_000  # that are asked for
_TOLD_SHARE = 0.9  # share of kernel time: a frequency that determines this much is enough
# share of a kernel's time: with more concurrent work, more samples cannot separate it
_TOGETHER = 0.9
_BESIDE = 0.05  # share of a kernel's time: with less concurrent work it counts as alone


@dataclass(frozen=True)
class Capture:
    """The capture that values are from, for the command that makes a better one."""

    nsys_version: str | None = None  # None: not known, taken for a current one
    gpu: int = 0  # as nsys numbers GPUs

    def command(self, frequency_hz: int) -> str:
        """The nsys command that samples the counters of that GPU at that frequency."""
        old = self.nsys_version is not None and older(self.nsys_version, _DEVICES_SINCE)
        devices = "--gpu-metrics-device" if old else "--gpu-metrics-devices"
        return (
            f"nsys profile -t cuda,nvtx --cuda-graph-trace=node {devices}={self.gpu}"
            f" --gpu-metrics-frequency={frequency_hz} PROGRAM"
        )


@dataclass(frozen=True)
class Remedy:
    """A capture that would determine a value."""

    frequency_hz: int
    executions: int


def well_known(estimates: Estimates, estimate: Estimate) -> BoolArray:
    """Marks the groups whose values are known well enough."""
    enough: BoolArray = (estimate.groups.measured <= WELL_KNOWN) & _often(estimates)
    return enough


def bounded(estimates: Estimates, estimate: Estimate) -> BoolArray:
    """Marks the groups whose values have an interval, of which nine in ten hold the truth. Where
    other work runs at the same time, samples do not show how much the two slow each other down.
    """
    return _often(estimates) & may_be_bounded(estimate.groups.measured, estimates.concurrent)


def may_be_bounded(error: FloatArray, concurrent_share: FloatArray) -> BoolArray:
    """Whether values with these standard errors have intervals, if they ran often enough."""
    some: BoolArray = (error <= BOUNDED) & (concurrent_share <= _BESIDE)
    return some


def _often(estimates: Estimates) -> BoolArray:
    """Marks the groups that ran often enough, or long enough, to estimate their errors."""
    layout = estimates.layout
    long = layout.duration_ns >= _LONG * estimates.period_ns
    often: BoolArray = ((layout.executions >= _FEWEST) | long) & (layout.executions > 0)
    return often


def why_not(  # two words that differ for copies
    estimates: Estimates,
    estimate: Estimate,
    group: int,
    capture: Capture,
    *,
    what: str = "kernel",
    repeats: str = "inferences",
) -> WhyUnknown | None:
    """Why this group's value is not shown, with the capture that would determine it; None if it is
    shown. ``what`` names the group and what repeats it.
    """
    if well_known(estimates, estimate)[group]:
        return None
    layout, values = estimates.layout, estimate.groups
    executions = int(layout.executions[group])
    if not executions:
        return WhyUnknown("it did not run while counters were sampled")
    if executions < _FEWEST:
        times = "once" if executions == 1 else f"{executions} times"
        again = capture.command(_as_asked(1e9 / estimates.period_ns))
        why = f"it ran {times} while counters were sampled"
        return WhyUnknown(why, f"{2 * _FEWEST} {repeats}", again)
    error = f"{values.measured[group]:.0f} points"
    length, period = float(layout.duration_ns[group]) / 1e3, estimates.period_ns / 1e3
    said = (
        f"the error is {error}: a {what} of {length:.1f} µs, samples of {period:.0f} µs,"
        f" {executions} executions"
    )
    if estimates.concurrent[group] > _BESIDE:
        said += (
            f", and other work runs concurrently for {estimates.concurrent[group]:.0%} of its time"
        )
    remedies = remedies_for(estimates, estimate, group)
    if remedies:
        ways = " or ".join(
            f"{each.executions} {repeats} at {each.frequency_hz // 1000} kHz" for each in remedies
        )
        return WhyUnknown(said, ways, capture.command(remedies[0].frequency_hz))
    other = ": use Nsight Compute" if what == "kernel" else ""
    if estimates.concurrent[group] > _TOGETHER:
        return WhyUnknown(f"{said}; samples cannot separate work that always runs together{other}")
    return WhyUnknown(f"{said}; no sampling would be enough{other}")


def remedies_for(estimates: Estimates, estimate: Estimate, group: int) -> tuple[Remedy, ...]:
    """The fewest executions at this frequency, and at the highest, with which the value would be
    known.
    """
    layout, values, period = estimates.layout, estimate.groups, estimates.period_ns
    executions = int(layout.executions[group])
    # more samples tell the clocks' offset too
    falls2 = values.sampling[group] ** 2 + values.shape[group] ** 2 + values.timing[group] ** 2
    error = float(falls2) ** 0.5
    floor2 = WELL_KNOWN**2 - float(values.rounding[group] ** 2 + values.edges[group] ** 2)
    if (
        not executions
        or floor2 <= 0
        or not np.isfinite(error)
        or estimates.concurrent[group] > _TOGETHER
    ):
        return ()
    found = []
    for frequency in sorted({_as_asked(1e9 / period), FASTEST_HZ}):
        ratio = 1e9 / frequency / period
        expected = error * min(ratio, 1.0) ** _SLOPE
        needed = max(int(np.ceil(_SURE * executions * expected**2 / floor2)), 2 * _FEWEST)
        if needed <= _MOST_EXECUTIONS:
            found.append(Remedy(frequency, _rounded_up(needed)))
    return tuple(found)


def frequency_for(work: GpuRan) -> int:
    """The lowest frequency at which the same number of repetitions would determine the kernels with
    most of the time: nsys loses the fewest samples there.
    """
    inside = work.group >= 0
    executions = np.bincount(work.group[inside], minlength=work.groups)
    spent = np.bincount(
        work.group[inside], (work.end_ns - work.start_ns)[inside].astype(np.float64), work.groups
    )
    length = spent / np.maximum(executions, 1)
    for frequency in FREQUENCIES_HZ:
        needed = (_ONE * (1e9 / frequency / np.maximum(length, 1.0)) ** _SLOPE / WELL_KNOWN) ** 2
        if (
            spent[executions >= np.maximum(needed, 2 * _FEWEST)].sum()
            >= _TOLD_SHARE * spent.sum()
            > 0
        ):
            return frequency
    return FASTEST_HZ


def _as_asked(frequency: float) -> int:
    """The requested frequency, as a round number."""
    return (
        min(FREQUENCIES_HZ, key=lambda each: abs(np.log(each / frequency)))
        if frequency > 0
        else FREQUENCIES_HZ[0]
    )


def _rounded_up(count: int) -> int:
    """Rounds up to two digits."""
    step = int(10 ** max(len(str(count)) - 2, 0))
    return -(-count // step) * step
