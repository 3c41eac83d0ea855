"""How much less probable one offset of the clocks is than another, although rates of kernels never explain samples entirely.

What they leave unexplained is the same in every repetition of the sequence, so that likelihoods of many repetitions prefer some offset
far too clearly.  Two imperfect models are told apart by whether their difference is clear beside its scatter (Vuong, Econometrica 57,
1989): here the scatter between the places of the sequence, each of which is wrong in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray, IntArray
from nsysmap.counters.part_rates import Fit, Sums, quick_fit
from nsysmap.counters.shares import Layout, Shares


@dataclass(frozen=True)
class Explained:
    """How well rates of kernels explain the samples at one offset."""

    misfit: FloatArray  # by metric minus the logarithm of the likelihood
    squares: FloatArray  # what it is the sum of, but for a factor and a constant: [metric, place]
    noise2: FloatArray  # twice that factor's inverse: variance of a sample, by metric


def explained(values: FloatArray, shares: Shares, sums: Sums, like: Fit, layout: Layout, place: IntArray) -> Explained:  # noqa: PLR0913, PLR0917
    """How well the samples are explained by rates that are as even as in ``like``; ``place`` is where each sample begins, as the number of
    the group that runs plus 1."""
    misfit, rates = quick_fit(sums, like)
    used = np.bincount(shares.sample, minlength=shares.samples) > 0
    count = layout.groups + 1
    group = np.searchsorted(layout.first, like.left, "right")  # plus 1
    squares = np.empty((len(rates), count))
    for row, own in enumerate(rates):
        away = np.where(used, values[row] - shares.applied(own), 0.0)
        uneven = like.stiffness[row] * (own[like.left + 1] - own[like.left]) ** 2
        squares[row] = np.bincount(place, away**2, count) + np.bincount(group, uneven, count)
    noise2 = np.maximum(squares.sum(axis=1) / max(sums.samples, 1), sums.rounding2)
    return Explained(misfit, squares, noise2)


def by_place(one: Explained, other: Explained) -> FloatArray:
    """The difference of the misfits, by place."""
    apart: FloatArray = ((one.squares - other.squares) / (one.noise2 + other.noise2)[:, None]).sum(axis=0)
    return apart


def less_likely(each: Sequence[Explained]) -> FloatArray:
    """The logarithm of how much less probable each is than the best.

    If a misfit is larger by D with standard deviation S between places, it is z = D/S from zero; independent errors of the right model
    have S² = 2D, and D is then 2z².  That is what counts, where it is less than D.
    """
    best = min(each, key=lambda one: float(one.misfit.sum()))
    apart = np.array([float((one.misfit - best.misfit).sum()) for one in each])
    scatter2 = np.array([float((by_place(one, best) ** 2).sum()) for one in each])
    told: FloatArray = np.minimum(apart, 2 * apart**2 / np.maximum(scatter2, 1e-12))
    return told
