"""Confidence intervals of values that cannot be below 0 or above a bound.

A symmetric interval that is cut off at a bound contains a true value on the bound too often, and is
empty if the estimate is far beyond it. Intervals ordered by likelihood ratio (Feldman and Cousins,
Physical Review D 57, 1998) contain every true value equally often.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from nsysmap.core.table import FloatArray

HELD = 0.9
"""How often the interval contains the true value."""
_TWO_SIDED = 1.6448536269514722  # half of that interval far from bounds, in standard errors
_ONE_SIDED = 1.2815515655446004
"""Standard errors that a normal value stays below in 90 of 100 cases."""
_FAR = 4.0  # standard errors from a bound: from there on the bound changes nothing
_STEP = 0.01  # standard errors between two values of the table, which is interpolated
_BISECTIONS = 40  # halvings: 2**-40 of the interval is below a double's use here
_TERMS = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def limits(
    value: FloatArray, error: FloatArray, quantile: FloatArray, upper: float
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends, from unbounded estimates with these standard errors; ``quantile`` is half
    of the interval far from bounds.
    """
    unit = np.maximum(error * quantile / _TWO_SIDED, 1e-300)
    below = value <= upper - value
    nearest = np.where(below, value, upper - value) / unit if np.isfinite(upper) else value / unit
    truths, most, least = _accepted()
    away = np.clip(nearest, least[0], _FAR)
    near, far = (
        np.where(away > most[0], np.interp(away, most, truths), 0.0),
        np.interp(away, least, truths),
    )
    beyond = np.maximum(nearest - _FAR, 0.0)
    near, far = (near + beyond) * unit, (far + beyond) * unit
    if not np.isfinite(upper):
        return near, far
    low, high = np.where(below, near, upper - far), np.where(below, far, upper - near)
    return np.clip(low, 0.0, upper), np.clip(high, 0.0, upper)


@cache
def _accepted() -> tuple[FloatArray, FloatArray, FloatArray]:
    """True values from 0 on, in standard errors; the largest and the smallest estimate whose
    interval contains each.

    An estimate at t + k has the same likelihood ratio for the true value t as one at t - k; or at
    (t² - k²) / 2t if that is negative, because 0 is the most likely true value there.
    """
    truths = np.arange(0.0, 2 * _FAR, _STEP)
    truths[0] = _STEP / 100
    low, high = np.full(len(truths), _ONE_SIDED), np.full(len(truths), _TWO_SIDED)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = _normal(middle) - _normal(_least(truths, middle) - truths) >= HELD
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return truths, np.maximum.accumulate(truths + high), np.maximum.accumulate(_least(truths, high))


def _least(truths: FloatArray, above: FloatArray) -> FloatArray:
    least: FloatArray = np.where(
        truths >= above, truths - above, (truths**2 - above**2) / (2 * truths)
    )
    return least


def _normal(at: FloatArray) -> FloatArray:
    """The normal distribution function (Abramowitz and Stegun 7.1.26: within 2e-7)."""
    x = np.abs(at) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * x)
    tail = sum(term * t ** (power + 1) for power, term in enumerate(_TERMS)) * np.exp(-x * x)
    normal: FloatArray = np.where(at < 0, tail / 2, 1.0 - tail / 2)
    return normal


def freedom_of(influence: FloatArray, spread: FloatArray) -> FloatArray:
    """Degrees of freedom of each sum of squares over clusters, which contribute unequally if few
    samples determine a kernel.

    After Satterthwaite (1946): (sum of variances)² over the sum of their squares, both from the
      clusters' own second and fourth powers.
    """
    own = influence**2
    squares, fourths = own.sum(axis=0) ** 2, (own * own).sum(axis=0)
    told = (
        3.0 * np.divide(squares, fourths, out=np.full(len(squares), np.inf), where=fourths > 0)
        - 2.0
    )
    freedom: FloatArray = np.minimum(spread - 1.0, np.maximum(told, 1.0))
    return freedom


def log_variance(freedom: FloatArray) -> FloatArray:
    """The variance of the logarithm of chi squared (within 2 % from 5 degrees of freedom on)."""
    variance: FloatArray = 2.0 / np.maximum(freedom - 1.0, 1.0)
    return variance


def student(freedom: FloatArray) -> FloatArray:
    """Half the width of Student's 90 % interval (Cornish and Fisher's expansion: within 1 % from 3
    degrees of freedom on).
    """
    z, n = 1.6448536269514722, np.maximum(freedom, 1.0)
    terms = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    result: FloatArray = terms + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    return result
