"""The sampled hardware counters as tracks beside the kernels, and their values by kernel and
layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nsysmap.analysis import Analysis
from nsysmap.core.groups import numbered
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.names.metric_names import Metric
from nsysmap.output.page.events import Events
from nsysmap.output.page.windows import Windows
from nsysmap.trace.gpu_metrics import GpuSamples

TRACKS = {
    "sm_active": "SMs active",
    "sm_issue": "SM issue",
    "tensor_active": "tensor cores active",
    "tensor_or_fp16_active": "tensor or FP16 active",
    "compute_warps": "warps in flight",
    "dram_read": "DRAM read",
    "dram_write": "DRAM write",
    "dram": "DRAM",
    "l2_throughput": "L2",
    "pcie_receive": "PCIe received",
    "pcie_send": "PCIe sent",
    "pcie": "PCIe",
    "gpc_clock": "SM clock",
}
"""The metrics with a track, from top to bottom."""

MEASURED = {
    "sm_active": "SMs active",
    "tensor_active": "tensor cores active",
    "dram_read": "DRAM read",
    "dram_write": "DRAM write",
}
"""The metrics shown for layers and kernels."""

MOST_MOMENTS = 50_000  # of a track, far more than a screen has pixels
_ALWAYS = ("sm_active", "tensor_active", "dram_read", "dram_write")  # shown even if it is always 0


@dataclass(frozen=True)
class Sampled:
    """The counters of one GPU over time: value [i, j] is that of metric i in [start_ns[j],
    end_ns[j]), on the kernels' clock.
    """

    device: int
    metrics: tuple[Metric, ...]
    start_ns: IntArray
    end_ns: IntArray
    values: IntArray  # percent of the peak, or MHz; MISSING for none
    each: int  # number of samples averaged into one value
    frequency_hz: float
    aligned: bool  # whether the samples' clock could be aligned with the kernels'

    @property
    def titles(self) -> tuple[str, ...]:
        """The title of each metric."""
        return tuple(TRACKS[metric.meaning] for metric in self.metrics)


def sampled_of(
    analysis: Analysis, windows: Windows, events: Events, most: int = MOST_MOMENTS
) -> tuple[Sampled, ...]:
    """The counters in these parts of the trace, by GPU; if there are more than ``most`` samples,
    means of several.
    """
    sampling = {row.integer("device"): row for row in analysis.tables.gpu_sampling}
    found = []
    for gpu in analysis.gpu_metrics.samples:
        row = sampling.get(gpu.device)
        offset = None if row is None else row.maybe_real("clock_offset_ns")
        drift = 0.0 if row is None else row.maybe_real("clock_drift") or 0.0
        made = _sampled(
            _among(_moved(gpu, offset or 0.0, drift), windows, events),
            most,
            aligned=offset is not None,
        )
        if made.metrics and len(made.start_ns):
            found.append(made)
    return tuple(found)


def _moved(gpu: GpuSamples, offset_ns: float, drift: float) -> GpuSamples:
    """The samples on the kernels' clock; the drift is relative to their middle."""
    if not len(gpu.start_ns):
        return gpu
    middle = float(gpu.start_ns.mean())
    start, end = (
        np.round(at + offset_ns + drift * (at - middle)).astype(np.int64)
        for at in (gpu.start_ns, gpu.end_ns)
    )
    return replace(gpu, start_ns=start, end_ns=end)


def _among(gpu: GpuSamples, windows: Windows, events: Events) -> GpuSamples:
    """The samples in these parts of the trace, between its first and its last event."""
    first, last = events.origin_ns, events.origin_ns + events.duration_ns
    kept = np.flatnonzero((gpu.start_ns >= first) & (gpu.start_ns < last))
    kept = kept[windows.holds(gpu.start_ns[kept], gpu.end_ns[kept])] if len(kept) else kept
    return replace(
        gpu, start_ns=gpu.start_ns[kept], end_ns=gpu.end_ns[kept], values=gpu.values[:, kept]
    )


def _sampled(gpu: GpuSamples, most: int, *, aligned: bool) -> Sampled:
    named = {
        each.meaning: row
        for row, each in enumerate(gpu.metrics)
        if each.unit in ("percent", "hertz")
    }
    rows = [named[meaning] for meaning in TRACKS if meaning in named]
    rows = [
        row
        for row in rows
        if gpu.metrics[row].meaning in _ALWAYS or bool(np.nan_to_num(gpu.values[row]).any())
    ]
    metrics = tuple(gpu.metrics[row] for row in rows)
    start, end = gpu.start_ns, gpu.end_ns
    each = max(1, -(-len(start) // most))
    first = np.arange(0, len(start), each)
    last = np.minimum(first + each, len(start)) - 1
    scale = np.array([1e-6 if metric.unit == "hertz" else 1.0 for metric in metrics])
    means = _means(gpu.values[rows] * scale[:, None], end - start, first)
    return Sampled(
        gpu.device, metrics, start[first], end[last], means, each, gpu.frequency_hz, aligned
    )


def _means(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], long_ns: IntArray, first: IntArray
) -> IntArray:
    """The time-weighted mean of each run of samples, rounded; MISSING if no sample has a value."""
    known = ~np.isnan(values)
    weight = np.where(known, long_ns, 0)
    if not len(first):
        return np.zeros((len(values), 0), np.int64)
    total = np.add.reduceat(np.where(known, values, 0.0) * weight, first, axis=1)
    spent = np.add.reduceat(weight, first, axis=1)
    means: IntArray = np.where(spent > 0, np.round(total / np.maximum(spent, 1)), MISSING).astype(
        np.int64
    )
    return means


def of_layers(layer_counters: Table) -> dict[int, dict[str, list[float | None]]]:
    """For each layer and metric the value and its standard error in percent; none if it is not
    known well enough.
    """
    found: dict[int, dict[str, list[float | None]]] = {}
    for row in layer_counters:
        if row.text("metric") in MEASURED:
            value, error = row.maybe_real("value"), row.maybe_real("error")
            known = row.flag("known") and value is not None and error is not None
            found.setdefault(row.integer("layer_id"), {})[row.text("metric")] = (
                [_tenths(value), _tenths(error)] if known else [None, None]
            )
    return found


def of_positions(kernel_counters: Table) -> list[list[object]]:
    """For each kernel of a repeated sequence: device, sequence, position, and by metric [value,
    error], or the reason for none.
    """
    found: dict[tuple[int, int, int], dict[str, object]] = {}
    for row in kernel_counters:
        if row.text("metric") in MEASURED:
            key = row.integer("device"), row.integer("kernel_sequence"), row.integer("position")
            value, error = row.maybe_real("value"), row.maybe_real("error")
            known = row.flag("known") and value is not None and error is not None
            found.setdefault(key, {})[row.text("metric")] = (
                [_tenths(value), _tenths(error)] if known else row.maybe_text("reason")
            )
    return [[*key, told] for key, told in found.items()]


def of_names(kernel_counters: Table) -> Mapping[str, Mapping[str, float | None]]:
    """For each kernel name and metric the time-weighted mean over its kernels; None if one of them
    is unknown.
    """
    shown = kernel_counters.take(
        np.flatnonzero([metric in MEASURED for metric in kernel_counters.text("metric").list()])
    )
    if not len(shown):
        return {}
    (_, _), number = numbered(
        shown.text("kernel").codes.astype(np.int64), shown.text("metric").codes.astype(np.int64)
    )
    spent = shown.floats("duration_ns") * shown.ints("executions")
    value = np.where(shown.bools("known"), shown.floats("value"), np.nan)
    total, time = np.bincount(number, value * spent), np.bincount(number, spent)
    found: dict[str, dict[str, float | None]] = {}
    for at, row in zip(number.tolist(), range(len(shown)), strict=True):
        mean = float(total[at] / time[at]) if time[at] > 0 else float("nan")
        name = str(shown.text("kernel")[row])
        found.setdefault(name, {})[str(shown.text("metric")[row])] = (
            None if np.isnan(mean) else round(mean, 1)
        )
    return found


def _tenths(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
