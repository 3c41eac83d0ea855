"""How much less probable one offset of the clocks is than another, although rates of kernels never
explain samples entirely.

What they leave unexplained is the same in every repetition of the sequence, so that likelihoods of
many repetitions prefer some offset far too clearly.  Two imperfect models are told apart by whether
their difference is clear beside its scatter (Vuong, Econometrica 57, 1989): here the scatter
between the places of the sequence, each of which is wrong in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.counters.part_rates import Fit, Sums, quick_fit
from nsysmap.counters.shares import Shares, summed

_UNLIKELY = 0.05  # probability of all offsets together that do not count in a value's 90 % interval
_NEAR_NS = 2000.0  # the blocks of a kernel begin and end within a µs


@dataclass(frozen=True)
class ExplainedSamples:
    """How well rates of kernels explain the samples at one offset."""

    misfit: FloatArray  # by metric minus the logarithm of the likelihood
    squares: FloatArray  # what it is the sum of, but for a factor and a constant: [metric, place]
    noise2: FloatArray  # twice that factor's inverse: variance of a sample, by metric


def explained(
    values: FloatArray, shares: Shares, sums: Sums, like: Fit, place: IntArray
) -> ExplainedSamples:
    """How well the samples are explained by rates that are as even as in ``like``; ``place`` is
    where each sample begins, as the column of the part that runs, plus 1.
    """
    misfit, rates = quick_fit(sums, like)
    used = np.bincount(shares.sample, minlength=shares.samples) > 0
    squares = np.empty((len(rates), shares.columns))
    for row, own in enumerate(rates):
        away = np.where(used, values[row] - shares.applied(own), 0.0)
        uneven = like.stiffness[row] * (own[like.left + 1] - own[like.left]) ** 2
        squares[row] = summed(place, away**2, shares.columns) + summed(
            like.left + 1, uneven, shares.columns
        )
    noise2 = np.maximum(squares.sum(axis=1) / max(sums.samples, 1), sums.rounding2)
    return ExplainedSamples(misfit, squares, noise2)


def by_place(one: ExplainedSamples, other: ExplainedSamples) -> FloatArray:
    """The difference of the misfits, by place."""
    apart: FloatArray = ((one.squares - other.squares) / (one.noise2 + other.noise2)[:, None]).sum(
        axis=0
    )
    return apart


def less_likely(
    each: Sequence[ExplainedSamples], offset_ns: FloatArray, kernel: IntArray
) -> FloatArray:
    """The logarithm of how much less probable each offset is than the best; ``kernel`` is that of
    each place.

    If a misfit is larger by D with standard deviation S between places, it is z = D/S from zero;
    independent errors of the right model have S² = 2D, and D is then 2z².  That is what counts,
    where it is less than D.  At offsets less than a µs or two apart, whatever is wrong about a
    kernel makes all of its parts prefer the same one: there they count as one place.
    """
    at = int(np.argmin([float(one.misfit.sum()) for one in each]))
    best = each[at]
    apart = np.array([float((one.misfit - best.misfit).sum()) for one in each])
    places = np.stack([by_place(one, best) for one in each])
    whole = np.stack([np.bincount(kernel, row) for row in places])
    near = np.abs(offset_ns - offset_ns[at]) <= _NEAR_NS
    scatter2 = np.where(near, (whole**2).sum(axis=1), (places**2).sum(axis=1))
    told: FloatArray = np.minimum(apart, 2 * apart**2 / np.maximum(scatter2, 1e-12))
    return told


def spread(apart: FloatArray, odds: FloatArray) -> float:
    """Root mean square distance of offsets from the best one, each with its probability relative to
    the best one's.
    """
    return float(np.sqrt(odds @ apart**2 / (1.0 + odds.sum())))


def likely(odds: FloatArray) -> FloatArray:
    """The candidates without the least probable ones, which together have hardly any
    probability.
    """
    by_odds = np.argsort(odds)
    kept = np.zeros(len(odds))
    kept[by_odds] = np.where(
        np.cumsum(odds[by_odds]) > _UNLIKELY * (1.0 + odds.sum()), odds[by_odds], 0.0
    )
    return kept
