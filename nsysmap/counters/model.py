"""The inputs and results of estimating counters per kernel."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.base.table import FloatArray, IntArray


@dataclass(frozen=True)
class Samples:
    """Counter samples of one GPU: sample i is the mean over [start_ns[i], end_ns[i]) of the sampler's clock."""

    start_ns: IntArray
    end_ns: IntArray
    values: FloatArray  # one row a metric, one column a sample
    metrics: tuple[str, ...]
    percent: tuple[bool, ...]  # of the metrics: 0 to 100
    per_cycle: tuple[int | None, ...]  # of the metrics: the row of the clock whose cycles they are a part of; None: of time

    @property
    def period_ns(self) -> float:
        """The usual length of a sample."""
        return float((self.end_ns - self.start_ns).mean()) if len(self.start_ns) else 0.0


@dataclass(frozen=True)
class Work:
    """What one GPU ran (kernels, copies, memsets), by start time."""

    start_ns: IntArray
    end_ns: IntArray
    group: IntArray  # which kernel of the repeated sequence; -1: none, and the samples that it touches are left out
    repeat: IntArray  # which repeat of the sequence; -1: none
    groups: int


@dataclass(frozen=True)
class Shift:
    """What is added to the sampler's clock to get the kernels': ``offset_ns`` at ``origin_ns``, and more by ``drift`` a nanosecond."""

    offset_ns: float = 0.0
    drift: float = 0.0
    origin_ns: float = 0.0
    error_ns: float = 0.0

    def moved(self, sampled_ns: IntArray) -> FloatArray:
        """These moments of the sampler's clock on the kernels' clock."""
        return sampled_ns + (self.offset_ns + self.drift * (sampled_ns - self.origin_ns))
