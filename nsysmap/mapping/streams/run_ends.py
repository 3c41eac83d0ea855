"""Tells from the host's pauses whether found runs are whole inferences: a part of another engine's
inference may have the same layers.
"""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np

from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.mapping.order.open_ends import LEAST_ALIKE, SHOWN, unlike_others

_MOST_CYCLES = 64  # that are looked at: more would not change what they say
_BY_CHANCE = 0.01
"""The evidence counts only if so many pauses before a kernel would be at most this likely when the
host pauses equally often everywhere.
"""


def ends_tell(
    gap_ns: IntArray, asked: BoolArray, first: IntArray, last: IntArray, told: BoolArray
) -> float:
    """The likelihood of the host's pauses if these runs are whole inferences, divided by that if
    they are parts of longer ones; at most 1, and 1 if there is no evidence.

    ``gap_ns`` is the host's time before each kernel of the stream, ``asked`` whether it waited or
    copied there; runs are from the kernel ``first`` to the kernel ``last``.  ``told``: which of
    their two ends count, those at which kernels of TensorRT stand that nothing explains.

    Between two inferences the host pauses otherwise from time to time.  Where it does so before
    some kernel that comes again in every cycle, but neither before the runs nor behind them, they
    are no inferences.
    """
    cycle = np.diff(first)
    if not len(cycle) or not told.any():
        return 1.0
    length, many = Counter(cycle.tolist()).most_common(1)[0]
    begins = first[:-1][cycle == length][:_MOST_CYCLES]
    behind = (last - first)[:-1][cycle == length][:_MOST_CYCLES] + 1
    behind_all = Counter(behind.tolist()).most_common(1)[0][0]
    if many < LEAST_ALIKE or behind_all >= length:
        return 1.0
    places = begins[:, None] + np.arange(length)
    paused = unlike_others(gap_ns[places]) | asked[places]
    often, count = paused.sum(axis=0), len(paused)
    rate = (np.sort(often)[:-1].sum() + 0.5) / (count * (length - 1) + 1)
    if _at_least(int(often.max()), count, float(rate)) * length > _BY_CHANCE:
        return 1.0
    begin = (often.max() + 0.5) / (count + 1)
    ends = often[[0, behind_all]][told]
    tells: FloatArray = ends * np.log(begin / rate) + (count - ends) * np.log(
        (1 - begin) / (1 - rate)
    )
    return float(np.minimum(1 - SHOWN + SHOWN * np.exp(np.minimum(tells, 50.0)), 1.0).prod())


def _at_least(times: int, of: int, rate: float) -> float:
    """The probability that an event of that rate happens at least so many times."""
    return sum(comb(of, k) * rate**k * (1 - rate) ** (of - k) for k in range(times, of + 1))
