"""The inputs and results of estimating counters per kernel."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Samples:
    """Counter samples of one GPU: sample i is the mean over [start_ns[i], end_ns[i]) of the
    sampler's clock.
    """

    start_ns: IntArray
    end_ns: IntArray
    values: FloatArray | tuple[FloatArray, ...]  # one row per metric, one column per sample
    metrics: tuple[str, ...]
    percent: tuple[bool, ...]  # metrics in percent, from 0 to 100
    # by metric: the row of the clock of whose cycles it is a share; None if it is a share of time
    per_cycle: tuple[
        int | None,
        ...,
    ]

    @property
    def period_ns(self) -> float:
        """The usual length of a sample."""
        return float((self.end_ns - self.start_ns).mean()) if len(self.start_ns) else 0.0


@dataclass(frozen=True)
class GpuRan:
    """The work of one GPU (kernels, copies, memsets), by start time."""

    start_ns: IntArray
    end_ns: IntArray
    # index of the kernel in the repeated sequence; -1 for none: samples that overlap it are
    # excluded
    group: IntArray
    repeat: IntArray  # index of the repetition of the sequence; -1 for none
    groups: int

    @cached_property
    def spans_ns(self) -> tuple[IntArray, IntArray]:
        """When each repetition that ran began, and when it ended, by index."""
        inside = np.flatnonzero(self.repeat >= 0)
        repeat = self.repeat[inside]
        begin = np.full(int(repeat.max(initial=-1)) + 1, _NEVER)
        end = np.zeros(len(begin), np.int64)
        np.minimum.at(begin, repeat, self.start_ns[inside])
        np.maximum.at(end, repeat, self.end_ns[inside])
        ran = begin != _NEVER
        return begin[ran], end[ran]

    def some(self, rows: BoolArray) -> GpuRan:
        """Only these rows; groups and repetitions keep their numbers."""
        return GpuRan(
            self.start_ns[rows], self.end_ns[rows], self.group[rows], self.repeat[rows], self.groups
        )


@dataclass(frozen=True)
class Shift:
    """The difference added to the sampler's clock to get the kernels' clock: ``offset_ns`` at
    ``origin_ns``, changing by ``drift`` per nanosecond.
    """

    offset_ns: float = 0.0
    drift: float = 0.0
    origin_ns: float = 0.0
    error_ns: float = 0.0
    # without far offsets that are together less than 5 % probable: what 90 % intervals need
    likely_ns: float = 0.0

    def moved(self, sampled_ns: IntArray) -> FloatArray:
        """These times of the sampler's clock on the kernels' clock."""
        added = (
            self.offset_ns + self.drift * (sampled_ns - self.origin_ns)
            if self.drift
            else self.offset_ns
        )
        moved: FloatArray = sampled_ns + added
        return moved
