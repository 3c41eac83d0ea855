"""Adds up kernels: by layer, by kernel name, by mapping method."""

from __future__ import annotations

import numpy as np

from nsysmap.base.engine_schema import LAYERS
from nsysmap.base.groups import runs as runs_of
from nsysmap.base.groups import sorted_in_groups
from nsysmap.base.report_schema import KERNEL_FAMILIES, OTHER_KERNELS
from nsysmap.base.result_schema import COVERAGE, KERNEL_TOTALS, UNMAPPED
from nsysmap.base.table import MISSING, BoolArray, CodeArray, FloatArray, IntArray, Row, Table, Text


def layers_with_time(layers: Table, kernels: Table, steady: IntArray) -> Table:
    """The layers with time_ns, share and kernels filled in from the kernels of the steady-state inferences.

    time_ns and kernels are medians over those inferences (an inference in which a layer ran nothing counts as 0); share is of all
    kernel time in them, mapped or not.  Without inferences the three are totals over the trace.  Layers of an engine whose kernels
    the trace does not have keep no value.
    """
    inference, layer = kernels.ints("inference"), kernels.ints("layer_id")
    duration = kernels.ints("end_ns") - kernels.ints("start_ns")
    rows = np.isin(inference, steady) if len(steady) else np.ones(len(kernels), np.bool_)
    if not rows.any():
        return layers
    number = inference if len(steady) else np.zeros(len(kernels), np.int64)
    engine_of_layer = layers.ints("engine")
    mapped = np.flatnonzero(rows & (layer >= 0))
    pair = layer[mapped] * (int(number[rows].max()) + 1) + number[mapped]
    distinct, inverse, size = np.unique(pair, return_inverse=True, return_counts=True)
    time = np.zeros(len(distinct), np.int64)
    np.add.at(time, inverse, duration[mapped])
    of_layer = distinct // (int(number[rows].max()) + 1)
    runs = _runs_of_layer(kernels, rows, len(layers))
    median_time = _between(*_padded_middles(of_layer, time, runs))
    median_kernels, _ = _padded_middles(of_layer, size, runs)  # of two middles the lower: there is no half a kernel
    totals = np.zeros(len(layers), np.int64)
    np.add.at(totals, layer[mapped], duration[mapped])
    engine_total = _total_of_engine(kernels, rows, duration, engine_of_layer)
    measured = runs > 0
    return layers.with_columns(
        LAYERS,
        {
            "time_ns": np.where(measured, median_time, np.int64(MISSING)),
            "share_of_kernel_time": np.where(measured & (engine_total > 0), totals / np.maximum(engine_total, 1), np.nan),
            "kernels": np.where(measured, median_kernels, np.int64(MISSING)),
        },
    )


def in_steady_part(kernels: Table, steady: IntArray) -> BoolArray:
    """Whether each kernel lies in the steady-state part: on its device from the first to the last kernel of a steady-state inference.

    All do where no inference is steady-state.
    """
    start, device = kernels.ints("start_ns"), kernels.ints("device")
    mine = np.isin(kernels.ints("inference"), steady)
    if not mine.any():
        return np.ones(len(kernels), np.bool_)
    inside = np.zeros(len(kernels), np.bool_)
    for one in np.unique(device[mine]):
        begun = start[mine & (device == one)]
        inside |= (device == one) & (start >= begun.min()) & (start <= begun.max())
    return inside


def layer_shares(kernels: Table, layers: int, steady: IntArray) -> FloatArray:
    """For each layer its kernels' share of the time of all kernels, of any engine or none, in the steady-state part."""
    inside = in_steady_part(kernels, steady)
    duration, layer = kernels.ints("end_ns") - kernels.ints("start_ns"), kernels.ints("layer_id")
    mapped = inside & (layer >= 0)
    time = np.zeros(layers, np.int64)
    np.add.at(time, layer[mapped], duration[mapped])
    result: FloatArray = time / max(int(duration[inside].sum()), 1)
    return result


def other_kernels(kernels: Table, names: Table, steady: IntArray) -> Table:
    """The table `other_kernels`; ``names`` is names.names_table of the kernels' names."""
    inside = in_steady_part(kernels, steady)
    duration, text = kernels.ints("end_ns") - kernels.ints("start_ns"), kernels.text("name")
    rows = np.flatnonzero(inside & (kernels.ints("layer_id") == MISSING))
    codes = text.codes[rows]
    count, time = np.bincount(codes, minlength=len(text.values)), _sums(codes, duration[rows], len(text.values))
    family_of = {row.text("name"): row.text("family") for row in names}
    families: dict[str, list[int]] = {}
    for code in np.flatnonzero(count).tolist():
        families.setdefault(family_of[text.values[code]], []).append(code)
    total = max(int(duration[inside].sum()), 1)
    found = [(int(time[mine].sum()), family, mine) for family, mine in families.items()]
    return Table.of_rows(
        OTHER_KERNELS,
        [
            {
                "family": family,
                "names": len(mine),
                "kernels": int(count[mine].sum()),
                "time_ns": spent,
                "share_of_all_kernel_time": spent / total,
            }
            for spent, family, mine in sorted(found, key=lambda one: (-one[0], one[1]))
        ],
    )


def _inference_engine(kernels: Table) -> tuple[IntArray, IntArray]:
    """Per kernel the engine of its inference's kernels (-1: none, or known from ranges only), and its inference (-1: none)."""
    inference = np.where(kernels.ints("inference") == MISSING, np.int64(-1), kernels.ints("inference"))
    engine = np.where(kernels.ints("engine") == MISSING, np.int64(-1), kernels.ints("engine"))
    top = np.full(int(inference.max(initial=-1)) + 2, -1, np.int64)
    np.maximum.at(top, inference, engine)  # -1 writes into the last place, which no inference has
    return np.where(inference >= 0, top[inference], engine), inference


def _runs_of_layer(kernels: Table, rows: BoolArray, layers: int) -> IntArray:
    """For each layer the number of inferences of its engine (for a layer known from ranges: those it ran in)."""
    engine, inference = _inference_engine(kernels)
    wide = int(inference.max(initial=0)) + 2
    runs = np.zeros(layers, np.int64)
    mapped = rows & (kernels.ints("layer_id") >= 0)
    pairs, _, _ = runs_of(np.sort(kernels.ints("layer_id")[mapped] * wide + inference[mapped] + 1))
    own = np.bincount(pairs // wide, minlength=layers)
    layer_engine = np.full(layers, -1, np.int64)
    layer_engine[kernels.ints("layer_id")[mapped]] = engine[mapped]
    pairs, _, _ = runs_of(np.sort((engine[rows] + 1) * wide + inference[rows] + 1))
    of_engine = np.bincount(pairs // wide, minlength=int(engine.max(initial=-1)) + 2)
    runs = np.where(own > 0, np.where(layer_engine >= 0, of_engine[layer_engine + 1], own), 0)
    return runs.astype(np.int64)


def _total_of_engine(kernels: Table, rows: BoolArray, duration: IntArray, engine_of_layer: IntArray) -> IntArray:
    """For each layer the kernel time of all inferences of its engine."""
    engine, _ = _inference_engine(kernels)
    total = np.zeros(int(engine.max(initial=-1)) + 2, np.int64)
    np.add.at(total, engine[rows] + 1, duration[rows])
    wanted = np.where(engine_of_layer == MISSING, np.int64(-1), engine_of_layer)
    known = wanted + 1 < len(total)
    result: IntArray = np.where(known, total[np.where(known, wanted + 1, 0)], np.int64(0))
    return result


def _padded_middles(group: IntArray, values: IntArray, runs: IntArray) -> tuple[IntArray, IntArray]:
    """Per group the two middle ones of its values and of as many zeros as it has fewer values than runs (groups sorted)."""
    lower, upper = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
    if len(group) == 0:
        return lower, upper
    present, first, size = runs_of(group)
    ordered = sorted_in_groups(group, values)
    for result, middle in ((lower, (runs[present] - 1) // 2), (upper, runs[present] // 2)):
        place = middle - (runs[present] - size)
        inside = place >= 0
        result[present[inside]] = ordered[first[inside] + np.minimum(place[inside], size[inside] - 1)]
    return lower, upper


def _between(lower: IntArray, upper: IntArray) -> IntArray:
    """The median, from the two middle values."""
    return np.rint((lower + upper) / 2).astype(np.int64)


def coverage(kernels: Table) -> Table:
    """Kernels and time by mapping method, methods without kernels left out."""
    method = kernels.text("method")
    duration = kernels.ints("end_ns") - kernels.ints("start_ns")
    count = np.bincount(method.codes, minlength=len(method.values))
    time = _sums(method.codes, duration, len(method.values))
    total = max(int(duration.sum()), 1)
    rows = [
        {"method": value, "kernels": int(count[code]), "time_ns": int(time[code]), "share_of_kernel_time": int(time[code]) / total}
        for code, value in enumerate(method.values)
        if count[code]
    ]
    return Table.of_rows(COVERAGE, rows)


def unmapped(kernels: Table) -> Table:
    """Why kernels have no layer, by time."""
    reason = kernels.text("reason")
    rows = np.flatnonzero(kernels.text("method").equals("none"))
    duration = (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows]
    codes = reason.codes[rows]
    count = np.bincount(codes[codes >= 0], minlength=len(reason.values))
    time = _sums(codes[codes >= 0], duration[codes >= 0], len(reason.values))
    order = _most_first(np.flatnonzero(count), time, reason)
    return Table.of_rows(
        UNMAPPED, [{"reason": reason.values[code], "kernels": int(count[code]), "time_ns": int(time[code])} for code in order]
    )


def by_kernel_name(kernels: Table, names: Table) -> Table:
    """Every distinct kernel name with its total time over the trace, most first; ``names`` is names.names_table of them."""
    text = kernels.text("name")
    duration = kernels.ints("end_ns") - kernels.ints("start_ns")
    count = np.bincount(text.codes, minlength=len(text.values))
    time = _sums(text.codes, duration, len(text.values))
    present = np.flatnonzero(count)
    last = np.cumsum(count[present])
    median = np.zeros(len(text.values), np.int64)
    ordered = sorted_in_groups(text.codes.astype(np.int64), duration)
    median[present] = _between(ordered[last - 1 - count[present] // 2], ordered[last - 1 - (count[present] - 1) // 2])
    total = max(int(duration.sum()), 1)
    decoded = {row.text("name"): row.values() for row in names}
    rows = [
        decoded[text.values[code]]
        | {
            "count": int(count[code]),
            "time_ns": int(time[code]),
            "median_ns": int(median[code]),
            "share_of_kernel_time": int(time[code]) / total,
        }
        for code in _most_first(present, time, text)
    ]
    return Table.of_rows(KERNEL_TOTALS, rows)


def by_family(kernel_totals: Table) -> Table:
    """Families of kernel names with their total time over the trace, most first; from KERNEL_TOTALS."""
    found: dict[str, list[Row]] = {}
    for row in kernel_totals:
        found.setdefault(row.text("family"), []).append(row)
    total = max(int(kernel_totals.ints("time_ns").sum()), 1)
    times = {family: sum(row.integer("time_ns") for row in rows) for family, rows in found.items()}
    rows = [
        {
            "family": family,
            "names": len(found[family]),
            "kernels": sum(row.integer("count") for row in found[family]),
            "time_ns": times[family],
            "share_of_kernel_time": times[family] / total,
        }
        for family in sorted(found, key=lambda family: (-times[family], family))
    ]
    return Table.of_rows(KERNEL_FAMILIES, rows)


def _most_first(codes: IntArray, time: IntArray, text: Text) -> list[int]:
    """The codes by time, the most first, those of one time by their texts."""
    return sorted(codes.tolist(), key=lambda code: (-int(time[code]), text.values[code]))


def _sums(codes: CodeArray, values: IntArray, size: int) -> IntArray:
    """Exact int64 sums by code (bincount's weights are floats)."""
    result = np.zeros(size, np.int64)
    np.add.at(result, codes, values)
    return result
