"""Adds up kernels: by layer, by kernel name, by mapping method."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.groups import distinct, sorted_in_groups
from nsysmap.core.groups import runs as runs_of
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass
from nsysmap.core.report_schema import KERNEL_FAMILIES, OTHER_KERNELS
from nsysmap.core.result_schema import COVERAGE, KERNEL_TOTALS, UNMAPPED
from nsysmap.core.table import MISSING, BoolArray, CodeArray, IntArray, Row, Table, Text

_AT_ONCE = 1 << 19  # kernels whose layers are totalled at a time


def layers_with_time(layers: Table, kernels: Table, steady: IntArray) -> Table:
    """The layers with times, share and kernels from the kernels of the steady-state inferences.

    time_ns is the mean over the inferences of the layer's engine, so that times of layers add up;
    median_ns and kernels are medians (an inference in which a layer ran nothing counts as 0);
    shares are of all kernel time in them, mapped or not, and of that of the whole steady-state part
    (see `layer_totals`).  Without steady-state inferences all are totals over the trace.  Layers of
    an engine whose kernels the trace does not have keep no value.
    """
    engines = _Engines.of(kernels, steady)
    if not engines.runs.any():
        return layers
    engine_of_layer = layers.ints("engine")
    median_time, median_kernels, totals, runs = (np.zeros(len(layers), np.int64) for _ in range(4))
    for here, rows in _by_layer(kernels, steady, len(layers)):
        layer, inference, engine, start, end = (
            kernels.held_ints(name).take(rows) for name in (*_PLACES, "start_ns", "end_ns")
        )
        layer, inference = layer - here.start, np.maximum(inference, -1)
        count = here.stop - here.start
        pair = layer * engines.wide + (inference + 1 if len(steady) else 0)
        of_layer, time, size = _summed(pair, end - start, engines.wide)
        own = np.bincount(
            distinct(layer * engines.wide + inference + 1) // engines.wide, minlength=count
        )
        of_engine = np.full(count, -1, np.int64)
        of_engine[layer] = engines.at(inference, engine)
        ran = (
            np.where(of_engine >= 0, engines.runs[of_engine + 1], own)
            if len(steady)
            else np.ones(count, np.int64)
        )
        runs[here] = np.where(own > 0, ran, 0)
        median_time[here] = _between(*_padded_middles(of_layer, time, runs[here]))
        # the lower of two middle values: there is no half kernel
        median_kernels[here], _ = _padded_middles(of_layer, size, runs[here])
        np.add.at(totals[here], layer, end - start)
    engine_total = engines.total_of(engine_of_layer)
    measured = runs > 0
    in_part, whole = layer_totals(kernels, len(layers), steady)
    return layers.with_columns(
        LAYERS,
        {
            "time_ns": np.where(
                measured, np.rint(totals / np.maximum(runs, 1)).astype(np.int64), np.int64(MISSING)
            ),
            "median_ns": np.where(measured, median_time, np.int64(MISSING)),
            "share_of_kernel_time": np.where(
                measured & (engine_total > 0), totals / np.maximum(engine_total, 1), np.nan
            ),
            "share_of_all_kernel_time": np.where(measured, in_part / max(whole, 1), np.nan),
            "kernels": np.where(measured, median_kernels, np.int64(MISSING)),
        },
    )


def in_steady_part(kernels: Table, steady: IntArray) -> BoolArray:
    """Whether each kernel lies in the steady-state part: on its device from the first to the last
    kernel of a steady-state inference.

    All do if no inference is steady-state.
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


def layer_totals(kernels: Table, layers: int, steady: IntArray) -> tuple[IntArray, int]:
    """For each layer the time of its kernels in the steady-state part, and the time of all kernels
    in it, of any engine or none.
    """
    inside = in_steady_part(kernels, steady)
    duration, layer = kernels.ints("end_ns") - kernels.ints("start_ns"), kernels.ints("layer_id")
    mapped = inside & (layer >= 0)
    time = np.zeros(layers, np.int64)
    np.add.at(time, layer[mapped], duration[mapped])
    return time, int(duration[inside].sum())


def other_kernels(kernels: Table, names: Table, steady: IntArray) -> Table:
    """The table `other_kernels`; ``names`` is decode.names_table of the kernels' names."""
    inside = in_steady_part(kernels, steady)
    duration, text = kernels.ints("end_ns") - kernels.ints("start_ns"), kernels.text("name")
    rows = np.flatnonzero(inside & (kernels.ints("layer_id") == MISSING))
    codes = text.codes[rows]
    count, time = (
        np.bincount(codes, minlength=len(text.values)),
        _sums(codes, duration[rows], len(text.values)),
    )
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


_PLACES = ("layer_id", "inference", "engine")


def counted_kernels(
    kernels: Table, steady: IntArray, *names: str
) -> Iterator[tuple[IntArray, ...]]:
    """Rows of the kernels of the steady-state inferences (of all kernels where there are none) and
    columns of them, a part at a time.
    """
    for rows, inference, *columns in in_pieces(
        *(kernels.held_ints(name) for name in ("inference", *names))
    ):
        counts = np.isin(inference, steady) if len(steady) else np.ones(len(rows), np.bool_)
        yield rows[counts], *(column[counts] for column in (inference, *columns))


def _by_layer(kernels: Table, steady: IntArray, layers: int) -> Iterator[tuple[slice, IntArray]]:
    """Batches of layers with about so many kernels together, and the rows of the counted kernels,
    by layer.
    """
    found: NDArray[Any] = np.full(len(kernels), layers, np.uint16 if layers < 2**16 else np.uint32)
    for rows, _, layer in counted_kernels(kernels, steady, "layer_id"):
        found[rows] = np.where(layer >= 0, layer, layers)
    order = np.argsort(found, kind="stable")
    ends = np.cumsum(np.bincount(found, minlength=layers + 1)[:layers])
    cuts = np.flatnonzero(np.diff(ends // _AT_ONCE)) + 1
    for first, last in pairwise([0, *cuts.tolist(), layers]):
        begin, end = (int(ends[at - 1]) if at else 0 for at in (first, last))
        if end > begin:
            yield slice(first, last), order[begin:end]


def _summed(pair: IntArray, values: IntArray, wide: int) -> tuple[IntArray, IntArray, IntArray]:
    """For each distinct pair, ascending: its first member (of first * wide + second), the sum of
    the values, and how many there are.
    """
    different, inverse, size = np.unique(pair, return_inverse=True, return_counts=True)
    total = np.zeros(len(different), np.int64)
    np.add.at(total, inverse, values)
    return different // wide, total, size


@dataclass(frozen=True)
class _Engines:
    """The engines that ran. Number -1, which comes first, stands for no engine, or for layers known
    only from ranges.
    """

    # the engine of each inference's kernels; one more entry for kernels outside inferences
    of_inference: IntArray
    runs: IntArray  # number of counted inferences of each engine
    time_ns: IntArray  # time of the counted kernels of each engine
    wide: int  # more than there are inferences

    @staticmethod
    def of(kernels: Table, steady: IntArray) -> _Engines:
        """Builds the engines from the kernels."""
        columns = [kernels.held_ints(name) for name in ("inference", "engine")]
        top = [
            (int(inference.max()), int(engine.max()))
            for _, inference, engine in in_pieces(*columns)
        ]
        inferences, engines = (
            (max([-1, *numbers]) for numbers in zip(*top, strict=True)) if top else (-1, -1)
        )
        of_inference = np.full(inferences + 2, -1, np.int64)
        for _, inference, engine in in_pieces(*columns):
            # -1 is the last entry, which no engine has
            np.maximum.at(of_inference, np.maximum(inference, -1), np.maximum(engine, -1))
        known = _Engines(
            of_inference,
            np.zeros(engines + 2, np.int64),
            np.zeros(engines + 2, np.int64),
            inferences + 2,
        )
        pairs = [np.zeros(0, np.int64)]
        for _, inference, engine, start, end in counted_kernels(
            kernels, steady, "engine", "start_ns", "end_ns"
        ):
            at = np.maximum(inference, -1)
            number = known.at(at, engine) + 1
            np.add.at(known.time_ns, number, end - start)
            pairs.append(distinct(number * known.wide + at + 1))
        known.runs[:] = np.bincount(
            distinct(np.concatenate(pairs)) // known.wide, minlength=engines + 2
        )
        return known

    def at(self, inference: IntArray, engine: IntArray) -> IntArray:
        """The engine of each kernel: that of its inference's kernels if it has an inference (-1:
        none), otherwise that of its layer.
        """
        return np.where(inference >= 0, self.of_inference[inference], np.maximum(engine, -1))

    def total_of(self, engine_of_layer: IntArray) -> IntArray:
        """For each layer the kernel time of all inferences of its engine."""
        wanted = np.maximum(engine_of_layer, -1) + 1
        known = wanted < len(self.time_ns)
        return np.where(known, self.time_ns[np.where(known, wanted, 0)], np.int64(0))


def _padded_middles(group: IntArray, values: IntArray, runs: IntArray) -> tuple[IntArray, IntArray]:
    """The two middle values of each group, after padding its values with zeros up to its number of
    runs (groups sorted).
    """
    lower, upper = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
    if len(group) == 0:
        return lower, upper
    present, first, size = runs_of(group)
    ordered = sorted_in_groups(group, values)
    for result, middle in ((lower, (runs[present] - 1) // 2), (upper, runs[present] // 2)):
        place = middle - (runs[present] - size)
        inside = place >= 0
        result[present[inside]] = ordered[
            first[inside] + np.minimum(place[inside], size[inside] - 1)
        ]
    return lower, upper


def _between(lower: IntArray, upper: IntArray) -> IntArray:
    """The median, from the two middle values."""
    return np.rint((lower + upper) / 2).astype(np.int64)


def coverage(kernels: Table) -> Table:
    """Kernels and time by mapping method, without methods that mapped none."""
    method = kernels.text("method")
    duration = kernels.ints("end_ns") - kernels.ints("start_ns")
    count = np.bincount(method.codes, minlength=len(method.values))
    time = _sums(method.codes, duration, len(method.values))
    total = max(int(duration.sum()), 1)
    rows = [
        {
            "method": value,
            "kernels": int(count[code]),
            "time_ns": int(time[code]),
            "share_of_kernel_time": int(time[code]) / total,
        }
        for code, value in enumerate(method.values)
        if count[code]
    ]
    return Table.of_rows(COVERAGE, rows)


def unmapped(kernels: Table) -> Table:
    """The reasons why kernels have no layer, by time."""
    reason = kernels.text("reason")
    rows = np.flatnonzero(kernels.text("method").equals("none"))
    duration = (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows]
    codes = reason.codes[rows]
    count = np.bincount(codes[codes >= 0], minlength=len(reason.values))
    time = _sums(codes[codes >= 0], duration[codes >= 0], len(reason.values))
    order = _most_first(np.flatnonzero(count), time, reason)
    return Table.of_rows(
        UNMAPPED,
        [
            {"reason": reason.values[code], "kernels": int(count[code]), "time_ns": int(time[code])}
            for code in order
        ],
    )


def by_kernel_name(kernels: Table, names: Table) -> Table:
    """Every distinct kernel name with its total time over the trace, largest first; ``names`` is
    their decode.names_table.
    """
    text = kernels.text("name")
    duration = kernels.ints("end_ns") - kernels.ints("start_ns")
    count = np.bincount(text.codes, minlength=len(text.values))
    time = _sums(text.codes, duration, len(text.values))
    present = np.flatnonzero(count)
    last = np.cumsum(count[present])
    median = np.zeros(len(text.values), np.int64)
    ordered = sorted_in_groups(text.codes.astype(np.int64), duration)
    median[present] = _between(
        ordered[last - 1 - count[present] // 2], ordered[last - 1 - (count[present] - 1) // 2]
    )
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
    """Families of kernel names with their total time over the trace, largest first; from
    KERNEL_TOTALS.
    """
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
    """The codes by descending time, ties by text."""
    return sorted(codes.tolist(), key=lambda code: (-int(time[code]), text.values[code]))


def _sums(codes: CodeArray, values: IntArray, size: int) -> IntArray:
    """Exact int64 sums by code (bincount's weights are floats)."""
    result = np.zeros(size, np.int64)
    np.add.at(result, codes, values)
    return result
