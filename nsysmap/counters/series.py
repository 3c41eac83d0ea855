"""One metric's samples summed over time, and the uncertainty from rounding to whole percents.

nsys prints the nearest whole percent, but 1 for everything above 0 and below 1 (seen on GH100 with
nsys 2025.3, where one metric also exists as a count: printed minus exact is -0.5 to 0.5, and up to
1 for a printed 1). The low activity of short kernels would be overestimated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray
from nsysmap.counters.model import Samples

LEAST = 1.0
"""The value printed for everything between 0 and 1.5 times it."""
_RESIDENT = ("sm_active", "compute_warps", "unallocated_warps")
ROUNDED2 = 1.0 / 12.0
"""Variance of rounding to whole numbers."""
_MIDDLE = 0.6  # first assumption for a printed 1
_ENDS = (0.05, 1.45)
LEFT_OPEN = 0.4
"""Percentage points by which all samples printed as 1 can differ together from the assumed
value.
"""


@dataclass(frozen=True)
class Series:
    """One metric's samples as quantities that add up over time: shares of cycles are multiplied by
    the cycles.
    """

    values: FloatArray
    upper: float
    step: float  # what the samples were rounded to, in their own unit
    percent: bool
    memory: bool  # of traffic to memory
    written: bool  # of writes to it
    resident: bool  # of blocks that are on SMs, working or not
    least: BoolArray  # printed as 1
    cycles: FloatArray | None  # factor of a percent

    @property
    def rounding2(self) -> float:
        """The variance that rounding adds to a sample."""
        step = self.step if self.cycles is None else self.step * float(np.nanmean(self.cycles))
        return step**2 * ROUNDED2 if self.percent else 0.0

    def times_cycles(self, percent: FloatArray) -> FloatArray:
        """Percents in the unit of the values."""
        return percent if self.cycles is None else percent * self.cycles

    def corrected(self, predicted: FloatArray) -> Series:
        """The series with predicted values for the samples printed as 1, within the range that is
        printed as 1.
        """
        if not self.least.any():
            return self
        low, high = (self.times_cycles(np.full(len(predicted), end)) for end in _ENDS)
        return replace(
            self, values=np.where(self.least, np.clip(predicted, low, high), self.values)
        )


def series_of(samples: Samples, values: FloatArray) -> list[Series]:
    """Each metric's values, one row per metric, as quantities that add up."""
    series = []
    for row, clock in enumerate(samples.per_cycle):
        own, percent = values[row], samples.percent[row]
        some = own[:: max(len(own) // 1000, 1)]
        whole = bool((some == np.round(some)).all())
        least = own == LEAST if percent and whole else np.zeros(len(own), np.bool_)
        own = np.where(least, _MIDDLE, own)
        cycles = None if clock is None else values[clock]
        upper = 100.0 if percent else np.inf
        if cycles is not None:
            upper *= float(np.nanmax(cycles, initial=0.0))
        name = samples.metrics[row]
        memory, written = name.startswith("dram"), name == "dram_write"
        one = Series(
            own,
            upper,
            float(whole),
            percent or cycles is not None,
            memory,
            written,
            name in _RESIDENT,
            least,
            cycles,
        )
        series.append(replace(one, values=one.times_cycles(own)))
    return series
