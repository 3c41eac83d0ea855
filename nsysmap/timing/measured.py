"""The times that a trace measured for the engines that ran: the step between mapping and everything
that needs times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import IntArray, Table
from nsysmap.inputs.engine.model import Engine
from nsysmap.timing.kernel_time import kernel_time
from nsysmap.timing.layer_times import layer_times
from nsysmap.timing.peak_rates import Capability
from nsysmap.timing.precision import precision_table
from nsysmap.timing.region_times import region_parts
from nsysmap.timing.totals import layers_with_time
from nsysmap.trace.inferences.steady import steady_windows

_MOST_KINDS = 4  # of inferences for which a layer has a mean of its own each


@dataclass(frozen=True)
class Measured:
    """Times by layer, kernel, data type and region, over the steady-state inferences (over the
    whole trace if there are none).
    """

    layers: Table
    layer_times: Table
    kernel_time: Table
    precision: Table
    region_parts: Table
    steady_state: Table

    @property
    def inferences(self) -> int:
        """The number of steady-state inferences; 0 if none was found and times are totals."""
        return int(self.steady_state.ints("inferences").sum())


@dataclass(frozen=True)
class KindTimes:
    """Times by layer over the steady-state inferences of one engine that launch the same
    kernels.
    """

    kernels: int  # of one inference
    inferences: int
    layers: Table


def by_kind(
    kernels: Table, inferences: Table, layers: Table, steady: IntArray, engine: int
) -> tuple[KindTimes, ...]:
    """The times of each kind of an engine's steady-state inferences, such as each input shape, most
    frequent first; none if all are of one kind, or of so many that each is rare.
    """
    mine = np.isin(inferences.ints("inference"), steady) & (inferences.ints("engine") == engine)
    number, sequence = inferences.ints("inference")[mine], inferences.ints("kernel_sequence")[mine]
    kinds, counts = np.unique(sequence, return_counts=True)
    if not 1 < len(kinds) <= _MOST_KINDS:
        return ()
    found = []
    for kind, count in zip(
        kinds[np.argsort(-counts, kind="stable")].tolist(),
        sorted(counts.tolist(), reverse=True),
        strict=True,
    ):
        own = number[sequence == kind]
        launched = int(np.count_nonzero(kernels.ints("inference") == own[0]))
        found.append(KindTimes(launched, count, layers_with_time(layers, kernels, own)))
    return tuple(found)


def measure(
    kernels: Table,
    inferences: Table,
    layers: Table,
    steady: IntArray,
    engines: Sequence[Engine],
    gpu: Capability | None,
) -> Measured:
    """Measures the times of the kernels (KERNELS) of these inferences (INFERENCES). `steady` are
    the numbers of the steady-state ones; ``gpu`` is the compute capability, None if unknown.
    """
    timed = layers_with_time(layers, kernels, steady)
    spent = kernel_time(kernels, inferences, steady)
    return Measured(
        layers=timed,
        layer_times=layer_times(kernels, inferences, steady),
        kernel_time=spent,
        precision=precision_table(spent, timed, engines, gpu),
        region_parts=region_parts(kernels, timed, inferences, steady),
        steady_state=steady_windows(inferences),
    )
