"""Facts about the whole run from counters: how the clock changed, and whether another program used
the GPU.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.model import GpuRan, Shift
from nsysmap.counters.shares import busy_time

# share of a sample from which on it counts as work; clocks are lower under load, within
# microseconds
_BUSY = 0.95
_BUSIEST = 0.75  # quantile of the shares from which on samples count where few are that busy
# samples around work that do not count as idle: work has preparation and aftereffects that no
# kernel shows
_CLEAR = 3
_NOISE = 2.0  # percent: rounding, and the counters' own
_ENDS = 0.1  # share of the repetitions: the first and the last such part are compared
_FEWEST = 10  # repetitions on which a range rests
_TWENTIETH = 0.05  # on either side: what nine of ten repetitions lie between


@dataclass(frozen=True)
class ClockRun:
    """A clock while kernels ran."""

    first_hz: float  # over the first tenth of the repeats
    last_hz: float
    lowest_hz: float  # of a tenth
    repeats: int


@dataclass(frozen=True)
class OthersWork:
    """Activity while no work of the trace ran."""

    idle_share: float  # share of the run's samples in idle time
    active_share: float  # share of those in which SMs were active nevertheless
    mean_percent: float  # of them
    samples: int  # of idle time


@dataclass(frozen=True)
class DuringInferences:
    """A metric of the whole GPU, from its mean during each sampled inference."""

    inferences: int
    mean: float
    low: float  # of these means one in twenty is lower …
    high: float  # … or higher
    idle: float | None  # mean while no work ran; None if there was hardly such time


@dataclass(frozen=True)
class Joined:
    """The samples on the kernels' clock, and the share of each that work covers."""

    start: FloatArray
    end: FloatArray
    share: FloatArray
    work: GpuRan

    @cached_property
    def inside(self) -> tuple[IntArray, IntArray]:
        """For each repetition in order of time the first sample whose middle lies in it, and the
        first sample after it.
        """
        begin, end = self.work.spans_ns
        order = np.argsort(begin, kind="stable")
        middle = (self.start + self.end) / 2
        first = np.searchsorted(middle, begin[order])
        last = np.minimum(np.searchsorted(middle, end[order]), np.append(first[1:], len(middle)))
        return first, np.maximum(first, last)

    def by_repetition(self, values: BoolArray | FloatArray) -> IntArray | FloatArray:
        """The sum over the samples inside each repetition."""
        until = np.append(np.cumsum(values), 0)  # the last is that of before the first
        first, last = self.inside
        total: IntArray | FloatArray = until[last - 1] - until[first - 1]
        return total

    @cached_property
    def idle(self) -> BoolArray:
        """Samples without work of the trace in them or near them."""
        some = np.concatenate([[0], np.cumsum(self.share > 0)])
        at = np.arange(len(self.share))
        idle: BoolArray = (
            some[np.minimum(at + _CLEAR + 1, len(at))] == some[np.maximum(at - _CLEAR, 0)]
        )
        return idle


def joined(start_ns: IntArray, end_ns: IntArray, work: GpuRan, shift: Shift) -> Joined:
    """The samples over these intervals of their own clock."""
    start, end = shift.moved(start_ns), shift.moved(end_ns)
    return Joined(
        start,
        end,
        busy_time(work).share(start, end) if len(work.start_ns) else np.zeros(len(start)),
        work,
    )


def clock_run(clock_hz: FloatArray, samples: Joined, work: GpuRan) -> ClockRun | None:
    """The clock over the repetitions, from samples that contain only work, otherwise from the
    busiest quarter; None if too few have any.
    """
    start, end, share = samples.start, samples.end, samples.share
    begins = np.sort(work.spans_ns[0])
    if not len(begins):
        return None
    last = float(work.end_ns[work.repeat >= 0].max(initial=0))
    within = (share > 0) & (start >= begins[0]) & (end <= last) & (clock_hz > 0)
    first = np.append(np.searchsorted(start, begins), len(start))  # sample of each repetition
    repeat = np.repeat(np.arange(-1, len(begins)), np.diff(first, prepend=0))
    busy = within & (share >= _BUSY)
    if np.count_nonzero(np.bincount(repeat[busy])) < _FEWEST and within.any():
        busy = within & (share >= np.quantile(share[within], _BUSIEST))
    repeat = repeat[busy]
    seen = np.bincount(repeat, minlength=len(begins))
    if (seen > 0).sum() < _FEWEST:
        return None
    mean = np.bincount(repeat, clock_hz[busy], len(begins))[seen > 0] / seen[seen > 0]
    count = max(int(len(mean) * _ENDS), 1)
    tenths = [float(np.median(each)) for each in np.array_split(mean, max(len(mean) // count, 1))]
    return ClockRun(tenths[0], tenths[-1], min(tenths), len(mean))


def during_inferences(values: FloatArray, samples: Joined) -> DuringInferences | None:
    """The metric's mean during each repetition that has samples; a sample belongs to where its
    middle is. None if there are none.
    """
    told = np.isfinite(values)
    seen = samples.inside[1] - samples.inside[0] if told.all() else samples.by_repetition(told)
    if not seen.any():
        return None
    begin, end = (
        np.sort(samples.work.spans_ns[0]),
        samples.work.spans_ns[1][np.argsort(samples.work.spans_ns[0], kind="stable")],
    )
    whole = seen + 1 >= (end - begin) / float((samples.end - samples.start).mean())
    if whole[seen > 0].any():
        seen = np.where(whole, seen, 0)
    means = (
        samples.by_repetition(values if told.all() else np.where(told, values, 0.0))[seen > 0]
        / seen[seen > 0]
    )
    low, high = np.quantile(means, (_TWENTIETH, 1 - _TWENTIETH))
    idle = samples.idle & told
    return DuringInferences(
        len(means),
        float(means.mean()),
        float(low),
        float(high),
        float(values[idle].mean()) if idle.sum() >= _FEWEST else None,
    )


def filled(samples: Joined, activity: FloatArray) -> BoolArray:
    """Samples that work fills, with their neighbours, so that the clocks need not be aligned; none
    if there are too few, or if samples show no activity in them: then they are not samples of that
    work (seen on an RTX 3060, where a kernel of 1 s has 43 ms of activity).
    """
    whole = samples.share > 1 - 1e-9
    inner = np.zeros(len(whole), np.bool_)
    inner[1:-1] = whole[:-2] & whole[1:-1] & whole[2:]
    if inner.sum() < _FEWEST or (activity[inner] > 0).mean() < _BUSY:
        inner[:] = False
    return inner


def others_work(sm_active: FloatArray, samples: Joined, work: GpuRan) -> OthersWork | None:
    """SM activity between the trace's work; None if there was hardly any time without work."""
    if not len(work.start_ns):
        return None
    # outside the run, the program's own work may not have been traced
    within = (samples.start >= work.start_ns.min()) & (samples.end <= work.end_ns.max())
    idle = samples.idle & within
    if idle.sum() < _FEWEST:
        return None
    values = sm_active[idle]
    active = values > _NOISE
    mean = float(values[active].mean()) if active.any() else 0.0
    return OthersWork(float(idle.sum() / within.sum()), float(active.mean()), mean, int(idle.sum()))
