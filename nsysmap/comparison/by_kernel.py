"""Compares a side whose kernels have no layers: each kernel name stands in for a layer, so that the
sides can still be joined.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.comparison.side import Side
from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.table import MISSING, Table, Text
from nsysmap.names.layers import layer_kind

_MOST = 2_000  # kernel names that become layers: the ones with the most time


def without_layers(side: Side) -> bool:
    """Whether none of the kernels in the counted inferences has a layer."""
    return side.pace.known and not side.pace.hidden and not (side.pace.kernels > 0).any()


def by_kernel_name(side: Side) -> Side:
    """The side with a layer for each kernel name, in the order in which they first ran."""
    kernels = side.tables["kernels"]
    names = kernels.text("name")
    time = np.zeros(len(names.values), np.int64)
    counted = np.isin(kernels.ints("inference"), side.pace.inferences)
    np.add.at(
        time, names.codes[counted], (kernels.ints("end_ns") - kernels.ints("start_ns"))[counted]
    )
    chosen = np.argsort(-time, kind="stable")[:_MOST]
    chosen = chosen[time[chosen] > 0]
    first = np.full(len(names.values), len(kernels), np.int64)
    np.minimum.at(first, names.codes, np.arange(len(kernels)))
    chosen = chosen[np.argsort(first[chosen], kind="stable")]
    number = np.full(len(names.values), MISSING, np.int64)
    number[chosen] = np.arange(len(chosen))
    values = [names.values[code] for code in chosen.tolist()]
    layers = Table.of_rows(
        LAYERS,
        [
            {"layer_id": at, "name": name, "kind": layer_kind(name, None)}
            for at, name in enumerate(values)
        ],
    )
    columns = {
        **kernels.columns,
        "layer_id": number[names.codes],
        "engine": np.full(len(kernels), MISSING, np.int64),
    }
    tables = {
        **side.tables,
        "layers": layers,
        "kernels": Table(kernels.spec, {**columns, "layer": Text(names.codes, names.values)}),
        "layer_times": Table.empty(side.tables["layer_times"].spec),
    }
    return replace(side, tables=tables, engines=(), merged=None, by_kernel=True)
