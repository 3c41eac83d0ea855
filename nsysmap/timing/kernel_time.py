"""Sums kernel time by layer, part and kernel name, over the steady-state inferences."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nsysmap.core.groups import numbered, runs
from nsysmap.core.result_schema import KERNEL_TIME
from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.timing.totals import counted_kernels

_LARGEST = 2**62  # threads: products of sizes that are damaged would pass 64 bits


def kernel_time(kernels: Table, inferences: Table, steady: IntArray) -> Table:
    """The table `kernel_time`, by engine, layer and then the most time first; its times add up to
    all kernel time measured.

    `kernels` is schema.KERNELS, `steady` the numbers of the steady-state inferences.  A kernel
    without a layer counts towards the engine of its inference.  Without steady-state inferences the
    whole trace counts.
    """
    part, name = kernels.text("part"), kernels.text("name")
    parts = []
    for rows, inference, own, layer, start, end in counted_kernels(
        kernels, steady, "engine", "layer_id", "start_ns", "end_ns"
    ):
        places = [layer, *(text.codes[rows].astype(np.int64) for text in (part, name))]
        parts.append(
            _summed(
                (_engine_of_kernel(own, inference, inferences), *places),
                end - start,
                np.ones(len(layer), np.int64),
            )
        )
    keys, time, count = (
        _summed(*_together(parts)) if parts else ((), np.zeros(0, np.int64), np.zeros(0, np.int64))
    )
    if not len(time):
        return Table.empty(KERNEL_TIME)
    measured = inferences.ints("engine")[np.isin(inferences.ints("inference"), steady)]
    ran, total = np.zeros(len(time), np.int64), np.zeros(len(time), np.int64)
    for one in np.unique(keys[0]):
        ran[keys[0] == one] = np.count_nonzero(measured == one)
        total[keys[0] == one] = time[keys[0] == one].sum()
    order = np.lexsort((keys[3], -time, keys[1], keys[0]))
    return Table(
        KERNEL_TIME,
        {
            "layer_id": keys[1],
            "engine": keys[0],
            "part": Text(keys[2].astype(np.int32), part.values),
            "name": Text(keys[3].astype(np.int32), name.values),
            "kernels": count,
            "time_ns": time,
            "inferences": np.where(ran > 0, ran, np.int64(MISSING)),
            "share_of_kernel_time": time / np.maximum(total, 1),
        },
    ).take(order)


def combinations(*columns: IntArray) -> tuple[tuple[IntArray, ...], IntArray]:
    """The same as groups.numbered, but faster for columns of ids: small integers, of which negative
    ones stand for no value.
    """
    sizes = [max(int(column.max(initial=-1)), -1) + 2 for column in columns]
    if prod(sizes) >= _LARGEST or any(
        (column < 0).any() and len(np.unique(column[column < 0])) > 1 for column in columns
    ):
        return numbered(*columns)
    key = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + np.where(column < 0, 0, column + 1)
    used, _, _ = runs(np.sort(key))
    first = np.full(len(used), len(key), np.int64)
    number = np.searchsorted(used, key)
    first[number[::-1]] = np.arange(len(key) - 1, -1, -1)
    return tuple(column[first] for column in columns), number


_Sums = tuple[tuple[IntArray, ...], IntArray, IntArray]  # keys, time in ns, kernels


def _summed(keys: tuple[IntArray, ...], time_ns: IntArray, kernels: IntArray) -> _Sums:
    """The time and kernels of each distinct combination of keys."""
    if not len(time_ns):
        return keys, time_ns, kernels
    distinct, number = combinations(*keys)
    time, count = np.zeros(len(distinct[0]), np.int64), np.zeros(len(distinct[0]), np.int64)
    np.add.at(time, number, time_ns)
    np.add.at(count, number, kernels)
    return distinct, time, count


def _together(parts: Sequence[_Sums]) -> _Sums:
    keys = tuple(
        np.concatenate(columns) for columns in zip(*(part[0] for part in parts), strict=True)
    )
    return (
        keys,
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


def _engine_of_kernel(own: IntArray, inference: IntArray, inferences: Table) -> IntArray:
    """The engine of a kernel's layer, else of its inference."""
    if not len(inferences):
        return own
    of_inference = inferences.ints("engine")[np.clip(inference, 0, len(inferences) - 1)]
    return np.where(own != MISSING, own, np.where(inference >= 0, of_inference, np.int64(MISSING)))
