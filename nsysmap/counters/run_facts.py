"""What counters say about the whole run: how the clock changed, and whether another program used the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.model import Shift, Work
from nsysmap.counters.shares import busy_time

_BUSY = 0.95  # of a sample: with so much of it covered, the sample is of work
_CLEAR = 3  # samples around work that are not counted as idle: work has before and after what no kernel shows
_NOISE = 2.0  # percent: rounding, and the counters' own
_ENDS = 0.1  # of the repeats: what is compared is the first and the last such part
_FEWEST = 10


@dataclass(frozen=True)
class ClockRun:
    """How a clock went while kernels ran."""

    first_hz: float  # over the first tenth of the repeats
    last_hz: float
    lowest_hz: float  # of a tenth
    repeats: int


@dataclass(frozen=True)
class OthersWork:
    """Activity while nothing of the trace ran."""

    idle_share: float  # of the samples in the run, how many are of idle time
    active_share: float  # of those, in how many SMs were active all the same
    mean_percent: float  # of them
    samples: int  # of idle time


@dataclass(frozen=True)
class Joined:
    """The samples on the kernels' clock, and how much of each the work covers."""

    start: FloatArray
    end: FloatArray
    share: FloatArray


def joined(start_ns: IntArray, end_ns: IntArray, work: Work, shift: Shift) -> Joined:
    """The samples over these intervals of their own clock."""
    start, end = shift.moved(start_ns), shift.moved(end_ns)
    return Joined(start, end, busy_time(work).share(start, end) if len(work.start_ns) else np.zeros(len(start)))


def clock_run(clock_hz: FloatArray, samples: Joined, work: Work) -> ClockRun | None:
    """How the clock went over the repeats; None where there are too few, or no sample is of work alone."""
    start, end, share = samples.start, samples.end, samples.share
    inside = work.repeat >= 0
    if not inside.any():
        return None
    repeats = np.unique(work.repeat[inside])
    begin = np.full(len(repeats), np.iinfo(np.int64).max)
    np.minimum.at(begin, np.searchsorted(repeats, work.repeat[inside]), work.start_ns[inside])
    last = float(work.end_ns[inside].max(initial=0))
    busy = (share >= _BUSY) & (start >= begin.min()) & (end <= last) & (clock_hz > 0)
    repeat = np.searchsorted(np.sort(begin), start[busy], "right") - 1
    seen = np.bincount(repeat, minlength=len(repeats))
    if (seen > 0).sum() < _FEWEST:
        return None
    mean = np.bincount(repeat, clock_hz[busy], len(repeats))[seen > 0] / seen[seen > 0]
    count = max(int(len(mean) * _ENDS), 1)
    tenths = [float(np.median(each)) for each in np.array_split(mean, max(len(mean) // count, 1))]
    return ClockRun(tenths[0], tenths[-1], min(tenths), len(mean))


def others_work(sm_active: FloatArray, samples: Joined, work: Work) -> OthersWork | None:
    """How active SMs were between the trace's work; None where there was hardly a moment without."""
    if not len(work.start_ns):
        return None
    within = (samples.start >= work.start_ns.min()) & (
        samples.end <= work.end_ns.max()
    )  # outside, the program's own work may not have been traced
    idle = _idle(samples.share) & within
    if idle.sum() < _FEWEST:
        return None
    values = sm_active[idle]
    active = values > _NOISE
    mean = float(values[active].mean()) if active.any() else 0.0
    return OthersWork(float(idle.sum() / within.sum()), float(active.mean()), mean, int(idle.sum()))


def _idle(share: FloatArray) -> BoolArray:
    """Samples with nothing of the trace in them or near them."""
    some = np.concatenate([[0], np.cumsum(share > 0)])
    at = np.arange(len(share))
    near = some[np.minimum(at + _CLEAR + 1, len(share))] - some[np.maximum(at - _CLEAR, 0)]
    idle: BoolArray = near == 0
    return idle
