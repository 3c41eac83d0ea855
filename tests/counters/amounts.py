"""Rates converted into totals of a kernel, cycles and operations of the tensor cores: what the
tests hold against known work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.core.table import FloatArray
from nsysmap.counters.estimate import Estimates, Values


@dataclass(frozen=True)
class Amount:
    """An amount for one execution of each group's kernel, with its standard error."""

    value: FloatArray
    error: FloatArray


def tensor_cycles(
    estimates: Estimates, tensor: Values, clock: Values, hertz: float = 1.0
) -> Amount:
    """Cycles for which an SM's tensor cores were busy, mean over the SMs; ``hertz`` is the unit of
    the clock's values.
    """
    cycles = clock.value * hertz * estimates.layout.duration_ns / 1e9
    value = tensor.value / 100.0 * cycles
    error = np.hypot(
        tensor.error / 100.0 * cycles, value * clock.error / np.maximum(clock.value, 1e-12)
    )
    return Amount(value, error)


def tensor_operations(cycles: Amount, sm_count: int, operations_per_clock: int) -> Amount:
    """Operations that tensor cores did in that time, at their dense peak rate: what was computed,
    padding included.

    ``operations_per_clock`` is of one SM and the data type in question.
    """
    scale = float(sm_count * operations_per_clock)
    return Amount(cycles.value * scale, cycles.error * scale)
