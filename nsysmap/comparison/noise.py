"""The mean of a series of times with its standard error, and whether two such means differ by more
than their noise.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray

FEWEST = 8
"""Fewest inferences of a side that is tested."""
ALPHA = 0.05  # the usual level of significance: one in twenty tests of nothing finds something
_TREND_P = 0.01  # p-value below which a drift within a side counts as real
_LEAST_FREEDOM = 1.0  # Student's distribution is defined from one degree of freedom on


@dataclass(frozen=True)
class Mean:
    """A mean with its error."""

    value: float
    error: float  # standard error, with serial correlation; NaN if there are too few values
    freedom: float  # degrees of freedom of that error
    count: int
    effective: float  # effective number of independent values
    # half of the change from the first to the last value along a linear trend; 0 without a
    # significant trend
    drift: float


@dataclass(frozen=True)
class Difference:
    """The difference of two means, in the unit of their values."""

    value: float
    low: float  # 95 % interval
    high: float
    p: float  # two-sided; NaN if there are too few values

    @property
    def significant(self) -> bool:
        """Whether zero is outside the interval."""
        return self.low > 0 or self.high < 0


def mean_of(values: FloatArray) -> Mean:
    """The mean of a series in chronological order."""
    count = len(values)
    value = float(values.mean()) if count else math.nan
    if count < FEWEST:
        return Mean(value, math.nan, 0.0, count, float(count), 0.0)
    effective = effective_size(values)
    spread = float(values.std(ddof=1)) * math.sqrt(
        (count - 1) / count * effective / max(effective - 1, 0.5)
    )
    error = spread / math.sqrt(effective)
    return Mean(value, error, max(effective - 1, _LEAST_FREEDOM), count, effective, _drift(values))


def mean_of_runs(values: FloatArray) -> Mean:
    """The mean of independent runs; two are enough to be tested."""
    count = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return Mean(
        float(values.mean()), error, max(count - 1.0, _LEAST_FREEDOM), count, float(count), 0.0
    )


def effective_size(values: FloatArray) -> float:
    """The effective number of independent values, by Geyer's initial positive sequence of
    autocorrelations.

    C. J. Geyer, Practical Markov Chain Monte Carlo, Statistical Science 7 (1992), section 3.3: sums
    of adjacent pairs of autocorrelations are added up until the first that is not positive.
    """
    count = len(values)
    centred = values - values.mean()
    variance = float(centred @ centred)
    if variance <= 0 or count < 4:
        return float(count)
    most = min(count // 2, 200)
    correlation = np.array(
        [
            float(centred[: count - lag] @ centred[lag:]) / variance
            for lag in range(2 * ((most + 1) // 2))
        ]
    )
    time = -1.0
    for pair in range(0, len(correlation) - 1, 2):
        both = correlation[pair] + correlation[pair + 1]
        if both <= 0:
            break
        time += 2 * both
    return float(min(max(count / max(time, 1.0), 2.0), count))


def _drift(values: FloatArray) -> float:
    """Half of the change along the least-squares line over the series, if the trend is
    significant.
    """
    blocks = np.array([block.mean() for block in np.array_split(values, min(10, len(values) // 2))])
    place = np.arange(len(blocks)) - (len(blocks) - 1) / 2
    slope = float(place @ blocks / (place @ place))
    rest = blocks - blocks.mean() - slope * place
    freedom = len(blocks) - 2
    error = (
        math.sqrt(float(rest @ rest) / freedom / float(place @ place)) if freedom > 0 else math.inf
    )
    if error == 0:
        return abs(slope) * len(blocks) / 2
    return abs(slope) * len(blocks) / 2 if two_sided(slope / error, freedom) < _TREND_P else 0.0


def difference(
    before: Mean, after: Mean, *, slack: float = 0.0, alpha: float = ALPHA
) -> Difference:
    """After minus before: Welch's t interval with the effective numbers, widened by the drift
    within each side and by ``slack``.
    """
    value = after.value - before.value
    if math.isnan(before.error) or math.isnan(after.error):
        return Difference(value, math.nan, math.nan, math.nan)
    error = math.hypot(before.error, after.error)
    drift = before.drift + after.drift + slack
    if error == 0:
        return Difference(value, value - drift, value + drift, 1.0 if abs(value) <= drift else 0.0)
    freedom = error**4 / sum(one.error**4 / one.freedom for one in (before, after))
    half = student_quantile(1 - alpha / 2, freedom) * error + drift
    return Difference(
        value, value - half, value + half, two_sided(max(abs(value) - drift, 0.0) / error, freedom)
    )


def factor_between(x: FloatArray, y: FloatArray) -> Difference:
    """The factor by which y grows with x, whatever constant is added, with its 95 % interval;
    outliers hardly move it.

    Both have errors, so the slope of y over x and the reciprocal of that of x over y are bounds:
    their geometric mean, with an interval that contains both.  With x and y exchanged it is the
    reciprocal.
    """
    slope, other = _slope_of(x, y), _slope_of(y, x)
    value = (
        math.sqrt(slope.value / other.value) if slope.value > 0 and other.value > 0 else math.nan
    )
    return Difference(
        value,
        min(slope.low, _reciprocal(other.high)),
        max(slope.high, _reciprocal(other.low)),
        math.nan,
    )


def _reciprocal(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _slope_of(x: FloatArray, y: FloatArray) -> Difference:
    """The slope of the line through these points: the median of those of all pairs, with the
    interval of Kendall's test.

    P. K. Sen, Estimates of the Regression Coefficient Based on Kendall's Tau, JASA 63 (1968).  Of
    more than a thousand points, evenly spaced ones in the order of x are taken.  Unbounded, with
    the value NaN, if all x are equal.
    """
    order = np.argsort(x, kind="stable")[:: -(-len(x) // _MOST_POINTS)]
    x, y = x[order], y[order]
    count = len(x)
    one, other = np.triu_indices(count, 1)
    apart = x[other] - x[one]
    slopes = np.sort((y[other] - y[one])[apart > 0] / apart[apart > 0])
    if not len(slopes):
        return Difference(math.nan, -math.inf, math.inf, math.nan)
    half = (
        _NORMAL
        * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        * len(slopes)
        / (count * (count - 1) / 2)
    )
    low, high = math.floor((len(slopes) - half) / 2), math.ceil((len(slopes) + half) / 2)
    ends = (
        float(slopes[low]) if low >= 0 else -math.inf,
        float(slopes[high]) if high < len(slopes) else math.inf,
    )
    return Difference(float(np.median(slopes)), *ends, math.nan)


CLOCK = 0.01
"""Kernels have another clock if all of the 95 % interval of the factor between them is this far
from 1.
"""

_MOST_POINTS = 1_000  # the slopes of all pairs are taken: a million of them take a moment
_NORMAL = 1.96  # of a normal distribution, 95 % is within so many standard deviations


_RUN_TO_RUN = (0.007, 0.1)


def run_to_run(time_ns: float, host_ns: float) -> float:
    """How much two runs of one program may differ, in ns, from its time per inference and the part
    in which the GPU waits for the host.

    0.7 % if the program is GPU-bound, a tenth of the waiting time if it is host-bound: measured on
    programs that were timed several times (docs/what-if.md).
    """
    gpu, host = _RUN_TO_RUN
    return gpu * abs(time_ns) + (host - gpu) * min(max(host_ns, 0.0), abs(time_ns))


def beyond_chance(chances: list[float]) -> list[bool]:
    """Marks the tests that are significant when taken together, by Holm's method; an unknown
    p-value (NaN) is not significant.
    """
    order = sorted((p, place) for place, p in enumerate(chances) if not math.isnan(p))
    held = [False] * len(chances)
    for rank, (p, place) in enumerate(order):
        if p > ALPHA / (len(order) - rank):
            break
        held[place] = True
    return held


# --- Student's t
# --------------------------------------------------------------------------------------------------


def two_sided(t: float, freedom: float) -> float:
    """The probability of a value at least as far from zero as t."""
    return (
        _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) if math.isfinite(t) else 0.0
    )


def student_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t distribution for a probability of at least one half."""
    return _quantile(share, round(freedom, 2))


@lru_cache(maxsize=4096)
def _quantile(share: float, freedom: float) -> float:
    low, high = 0.0, 1.0
    tail = 2 * (1 - share)
    while two_sided(high, freedom) > tail:
        low, high = high, high * 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, freedom) > tail else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = (
        math.exp(
            math.lgamma(a + b)
            - math.lgamma(a)
            - math.lgamma(b)
            + a * math.log(x)
            + b * math.log1p(-x)
        )
        / a
    )
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    result = d
    for m in range(1, 300):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * result
