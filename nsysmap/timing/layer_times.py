"""The total time of each layer: from the kernels of the steady-state inferences, or from trtexec's
profile if there is no trace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.result_schema import LAYER_TIMES
from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.inputs.engine.model import Engine, numbered_engines


def layer_times(kernels: Table, inferences: Table, steady: IntArray) -> Table:
    """The table `layer_times`, one row per layer that ran a kernel in the steady-state inferences.

    `kernels` is KERNELS and `inferences` INFERENCES; `steady` has the numbers of the steady-state
    inferences.
    """
    inference, layer = kernels.ints("inference"), kernels.ints("layer_id")
    rows = np.flatnonzero(np.isin(inference, steady) & (layer >= 0))
    if not len(rows):
        return Table.empty(LAYER_TIMES)
    size = int(layer[rows].max()) + 1
    starts, ends, where = kernels.ints("start_ns")[rows], kernels.ints("end_ns")[rows], layer[rows]
    total, longest = np.zeros(size, np.int64), np.full(size, -1, np.int64)
    np.add.at(total, where, ends - starts)
    np.maximum.at(longest, where, ends - starts)
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, MISSING)
    np.minimum.at(first, where, starts)
    np.maximum.at(last, where, ends)
    names = kernels.text("name")
    name = np.full(size, -1, np.int32)
    is_longest = rows[ends - starts == longest[where]][::-1]
    name[layer[is_longest]] = names.codes[is_longest]
    present = np.flatnonzero(np.bincount(where, minlength=size))
    engine = np.full(size, MISSING)
    engine[where] = kernels.ints("engine")[rows]
    return Table(
        LAYER_TIMES,
        {
            "layer_id": present,
            "engine": engine[present],
            "told_by": Text.same("trace", len(present)),
            "device": _only(kernels.ints("device")[rows], where, size)[present],
            "start_ns": first[present],
            "end_ns": last[present],
            "total_ns": total[present],
            "inferences": _inferences(
                engine[present], inferences, steady, np.unique(inference[rows])
            ),
            "kernels": np.bincount(where, minlength=size)[present].astype(np.int64),
            "kernel": Text(name[present], names.values),
            "share_of_kernel_time": _shares(engine[present], total[present]),
        },
    )


def profiled_layer_times(engines: Sequence[Engine]) -> Table:
    """The table `layer_times` from the times of --exportProfile, as one inference; no rows for
    engines without them.
    """
    rows: list[dict[str, object]] = []
    for number, first_id, engine in numbered_engines(engines):
        known = [time for time in engine.trtexec_ns if time is not None]
        whole = max(sum(known), 1)
        rows += [
            {
                "layer_id": first_id + index,
                "engine": number,
                "told_by": "profile",
                "total_ns": time,
                "inferences": 1,
                "share_of_kernel_time": time / whole,
            }
            for index, time in enumerate(engine.trtexec_ns)
            if time is not None
        ]
    return Table.of_rows(LAYER_TIMES, rows)


def _only(values: IntArray, where: IntArray, size: int) -> IntArray:
    """For each group the value that all its rows share; none if they differ."""
    low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, MISSING)
    np.minimum.at(low, where, values)
    np.maximum.at(high, where, values)
    return np.where(low == high, low, np.int64(MISSING))


def _inferences(engine: IntArray, inferences: Table, steady: IntArray, ran: IntArray) -> IntArray:
    """How many of the steady-state inferences ran each engine; for layers known only from ranges,
    the number of inferences with a kernel of any layer.
    """
    of_inference = inferences.ints("engine")[np.isin(inferences.ints("inference"), steady)]
    numbers, counts = np.unique(of_inference, return_counts=True)
    known = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return np.array([known.get(number) or len(ran) for number in engine.tolist()], np.int64)


def _shares(engine: IntArray, total: IntArray) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    groups, number = np.unique(engine, return_inverse=True)
    whole = np.zeros(len(groups), np.int64)
    np.add.at(whole, number, total)
    result: np.ndarray[tuple[int], np.dtype[np.float64]] = total / np.maximum(whole[number], 1)
    return result
