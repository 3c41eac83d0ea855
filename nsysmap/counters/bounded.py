"""Least squares with bounds, from the normal equations."""

from __future__ import annotations

import numpy as np

from nsysmap.base.table import BoolArray, FloatArray
from nsysmap.counters.ring import Ring, factor

_ROUNDS = 40
_SLACK = 1e-9
_PATIENCE = 3


def bounded_solution(matrix: FloatArray, target: FloatArray, upper: float, ring: Ring) -> FloatArray:
    """The x from 0 to ``upper`` that makes x'Mx/2 - t'x least, for a positive definite M.

    Block principal pivoting (Júdice and Pires 1994): every unknown that breaks a bound is fixed there, every fixed one that pulls
    inwards is let go; where that does not make them fewer, only the last of them moves, which ends in any case.
    """
    answer = factor(matrix, ring).solve(target)
    low, high = np.zeros(len(target), np.bool_), np.zeros(len(target), np.bool_)
    slack = _SLACK * max(float(np.abs(target).max(initial=0.0)), 1e-300)
    fewest, patience = len(target) + 1, _PATIENCE
    for _ in range(_ROUNDS + len(target)):
        pull = target - matrix @ answer
        free = ~(low | high)
        below, above = free & (answer < -_SLACK), free & (answer > upper + _SLACK)
        loose_low, loose_high = low & (pull > slack), high & (pull < -slack)
        wrong = below | above | loose_low | loose_high
        count = int(wrong.sum())
        if not count:
            break
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        low = (low & ~(loose_low & wrong)) | (below & wrong)
        high = (high & ~(loose_high & wrong)) | (above & wrong)
        answer = _with_fixed(matrix, target, low | high, np.where(high, upper, 0.0), ring)
    return np.clip(answer, 0.0, upper)


def _with_fixed(matrix: FloatArray, target: FloatArray, fixed: BoolArray, at: FloatArray, ring: Ring) -> FloatArray:
    """The answer where these unknowns have these values."""
    reduced = matrix.copy()
    reduced[fixed] = 0.0
    reduced[:, fixed] = 0.0
    places = np.flatnonzero(fixed)
    reduced[places, places] = 1.0
    right = target - matrix[:, fixed] @ at[fixed]
    right[fixed] = at[fixed]
    return factor(reduced, ring).solve(right)
