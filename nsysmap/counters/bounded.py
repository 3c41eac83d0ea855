"""Least squares with bounds, from the normal equations."""

from __future__ import annotations

import numpy as np

from nsysmap.core.table import BoolArray, FloatArray
from nsysmap.counters.ring import Systems

_ROUNDS = 40  # beside one for each unknown: after that the best answer so far stands
_SLACK = 1e-9  # share of the largest entry: rounding errors of doubles
_PATIENCE = 3  # rounds in which no unknown may get right


def bounded_solution(
    systems: Systems, target: FloatArray, upper: FloatArray, solved: FloatArray | None = None
) -> FloatArray:
    """For each metric the x from 0 to ``upper`` that minimises x'Mx/2 - t'x, for a positive
    definite M; ``solved`` is M⁻¹t if it is known.

    Block principal pivoting (Júdice and Pires 1994): every unknown that violates a bound is fixed
    there, every fixed one with a gradient inwards is released; if that does not reduce their
    number, only the last of them moves, which always terminates.
    """
    answer = systems.factor().solve(target) if solved is None else solved.copy()
    bound = np.broadcast_to(upper[:, None], answer.shape)
    low, high = np.zeros(answer.shape, np.bool_), np.zeros(answer.shape, np.bool_)
    slack = _SLACK * np.maximum(np.abs(target).max(axis=1, initial=0.0), 1e-300)[:, None]
    metrics, unknowns = answer.shape
    fewest, patience = np.full(metrics, unknowns + 1), np.full(metrics, _PATIENCE)
    for _ in range(_ROUNDS + unknowns):
        pull = target - systems.times(answer)
        free = ~(low | high)
        below, above = free & (answer < -_SLACK), free & (answer > bound + _SLACK)
        loose_low, loose_high = low & (pull > slack), high & (pull < -slack)
        wrong = below | above | loose_low | loose_high
        count = wrong.sum(axis=1)
        open_ones = np.flatnonzero(count)
        if not len(open_ones):
            break
        for metric in open_ones.tolist():
            if count[metric] < fewest[metric]:
                fewest[metric], patience[metric] = count[metric], _PATIENCE
            elif patience[metric]:
                patience[metric] -= 1
            else:
                wrong[metric, : np.flatnonzero(wrong[metric])[-1]] = False
        low = (low & ~(loose_low & wrong)) | (below & wrong)
        high = (high & ~(loose_high & wrong)) | (above & wrong)
        fixed = (low | high)[open_ones]
        at = np.where(high[open_ones], bound[open_ones], 0.0)
        answer[open_ones] = _with_fixed(systems.some(open_ones), target[open_ones], fixed, at)
    return np.clip(answer, 0.0, bound)


def _with_fixed(
    systems: Systems, target: FloatArray, fixed: BoolArray, at: FloatArray
) -> FloatArray:
    """The solutions with these unknowns fixed to these values."""
    right = np.where(fixed, at, target - systems.times(at))
    return systems.factor(fixed=fixed).solve(right)
