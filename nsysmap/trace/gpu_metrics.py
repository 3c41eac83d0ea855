"""Reads the GPU metrics that nsys sampled: GPU_METRICS and TARGET_INFO_GPU_METRICS of an export.

A row's timestamp is when its sample begins.  ``typeId & 0xFF`` is the GPU; a second type of the same GPU, whose one field is
``EndTimestamp``, holds the stretches in which nsys lost samples or mistrusts them (nsys 2021 to 2023).  Clocks above 2.147 GHz are written
as 32 bits with a sign: negative.  The first sample of a run is of nothing whole (seen with nsys 2023 on GA102 and GA106).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nsysmap.base.table import MISSING, BoolArray, FloatArray, IntArray
from nsysmap.names.metric_names import Metric, metric
from nsysmap.nsys.tables import NsysTables

_GPU = 0xFF
_END = "EndTimestamp"
_MOST_APART = 1.5  # times the usual distance of samples: more is a hole
_WRAP = 1 << 32
_MOST_PERCENT = 200.0  # peaks are nominal and can be passed a little; more, or less than nothing, is no sample
_CLOSE = 1 << 20
_BLOCK = 4096


@dataclass(frozen=True)
class GpuSamples:
    """What was sampled of one GPU: sample i is of [start_ns[i], end_ns[i]); NaN if a metric has no value."""

    device: int  # CUDA device ordinal
    metrics: tuple[Metric, ...]
    start_ns: IntArray
    end_ns: IntArray
    values: FloatArray  # one row per metric
    holes: int  # stretches without samples within the run
    mistrusted: int  # samples left out because nsys says so
    lost_share: float = 0.0  # of the time from the first sample to the last, how much those holes take
    number: int = 0  # nsys's own of this GPU, for its options

    @property
    def frequency_hz(self) -> float:
        """How often was sampled."""
        return 1e9 / float((self.end_ns - self.start_ns).mean()) if len(self.start_ns) else 0.0


@dataclass(frozen=True)
class GpuMetrics:
    """The GPU metrics of a trace, read when they are asked for: there may be ten samples for each kernel."""

    tables: NsysTables | None = None  # None: none were sampled

    @cached_property
    def samples(self) -> tuple[GpuSamples, ...]:
        """The samples of every GPU that was sampled."""
        return () if self.tables is None else read_gpu_metrics(self.tables)

    def number_of(self, device: int) -> int:
        """nsys's own number of a GPU, which its options take."""
        numbers = {} if self.tables is None else {ordinal: number for number, ordinal in _ordinals(self.tables).items()}
        return numbers.get(device, device)


def has_gpu_metrics(tables: NsysTables) -> bool:
    """Whether GPU metrics were sampled."""
    return tables.has("GPU_METRICS", "metricId") and tables.has("TARGET_INFO_GPU_METRICS", "metricName")


def read_gpu_metrics(tables: NsysTables) -> tuple[GpuSamples, ...]:
    """The samples of every GPU that was sampled."""
    if not has_gpu_metrics(tables):
        return ()
    told = tables.read("TARGET_INFO_GPU_METRICS", ("typeId", "metricId"), ("metricName",))
    ids = zip(told["typeId"].tolist(), told["metricId"].tolist(), strict=True)
    names = dict(zip(ids, (name or "" for name in told["metricName"].list()), strict=True))
    time = "timestamp" if tables.has("GPU_METRICS", "timestamp") else "rawTimestamp"
    raw = tables.read("GPU_METRICS", (time, "typeId", "metricId", "value"))
    columns: list[IntArray] = [raw[name] for name in (time, "typeId", "metricId", "value")]
    known = (columns[0] != MISSING) & (columns[3] != MISSING)
    if not known.all():
        columns = [column[known] for column in columns]
    ends = [kind for (kind, _), name in names.items() if name == _END]
    ordinals = _ordinals(tables)
    found = []
    kinds = _distinct(columns[1])
    for kind in kinds:
        if kind in ends:
            continue
        rows = columns if len(kinds) == 1 else [column[columns[1] == kind] for column in columns]
        named = [(at, names.get((kind, at), str(at))) for at in _metrics(rows[0], rows[2])]
        doubtful = np.isin(columns[1], [end for end in ends if end & _GPU == kind & _GPU])
        device = ordinals.get(kind & _GPU, kind & _GPU)
        sampled = _samples(device, named, rows, (columns[0][doubtful], columns[3][doubtful]))
        found.append(replace(sampled, number=kind & _GPU))
    return tuple(found)


def _ordinals(tables: NsysTables) -> dict[int, int]:
    """nsys's number of each GPU and the CUDA device ordinal that it has, which differ under CUDA_VISIBLE_DEVICES."""
    if not tables.has("TARGET_INFO_GPU", "cuDevice"):
        return {}
    raw = tables.read("TARGET_INFO_GPU", ("id", "cuDevice"))
    pairs = zip(raw["id"].tolist(), raw["cuDevice"].tolist(), strict=True)
    return {number: device for number, device in pairs if MISSING not in (number, device) and device >= 0}


def _metrics(time: IntArray, which: IntArray) -> list[int]:
    """The metrics that were sampled: those of the first moment where all moments have the same."""
    count = int(np.argmax(time != time[0])) or len(time)
    first = which[:count]
    if len(which) % count == 0 and (which.reshape(-1, count) == first).all() and len(np.unique(first)) == count:
        same: list[int] = np.sort(first).tolist()
        return same
    return _distinct(which)


def _distinct(values: IntArray) -> list[int]:
    """The values, each once; ids lie close together, so they are counted and not sorted."""
    if not len(values) or (values == values[0]).all():
        one: list[int] = values[:1].tolist()
        return one
    least = int(values.min())
    if int(values.max()) - least > _CLOSE:
        far: list[int] = np.unique(values).tolist()
        return far
    near: list[int] = (np.flatnonzero(np.bincount(values - least)) + least).tolist()
    return near


def _samples(device: int, named: list[tuple[int, str]], rows: list[IntArray], doubtful: tuple[IntArray, IntArray]) -> GpuSamples:
    metrics = tuple(metric(name) for _, name in named)
    time, values = _pivoted(rows[0], rows[2], rows[3], np.array([at for at, _ in named]))
    for row, each in zip(values, metrics, strict=True):
        most = {"hertz": _WRAP, "percent": _MOST_PERCENT}.get(each.unit)
        if most is None or not len(time) or 0 <= row.min() <= row.max() <= most:
            continue
        if each.unit == "hertz":
            row[row < 0] += _WRAP
        row[(row < 0) | (row > most)] = np.nan
    if len(time) < 3:
        nothing = np.zeros(0, np.int64)
        return GpuSamples(device, metrics, nothing, nothing, values[:, :0], 0, 0)
    apart = np.diff(time)
    whole = apart <= _MOST_APART * np.median(apart)
    whole[0] = False
    begin, end = time[:-1], time[1:]
    trusted = ~_within(begin, *doubtful)
    kept = whole & trusted
    lost = float(apart[1:][~whole[1:]].sum()) / float(time[-1] - time[0])
    some = slice(1, None) if kept[1:].all() else kept
    return GpuSamples(
        device, metrics, begin[some], end[some], values[:, :-1][:, some], int((~whole[1:]).sum()), int((whole & ~trusted).sum()), lost
    )


def _pivoted(time: IntArray, which: IntArray, value: IntArray, held: IntArray) -> tuple[IntArray, FloatArray]:
    """Moments in order, and for each the value of every metric."""
    count = len(held)
    if len(time) % count == 0:
        times, columns = time.reshape(-1, count), which.reshape(-1, count)
        regular = bool((times == times[:, :1]).all() and (columns == columns[:1]).all() and (np.diff(times[:, 0]) > 0).all())
        if regular:
            order = np.argsort(columns[0]).tolist()
            values = np.empty((count, len(times)))
            for begin in range(0, len(times), _BLOCK):  # in blocks that stay in the processor's cache
                block = value.reshape(-1, count)[begin : begin + _BLOCK]
                for row, at in enumerate(order):
                    values[row, begin : begin + _BLOCK] = block[:, at]
            return times[:, 0].copy(), values
    moments, at = np.unique(time, return_inverse=True)
    values = np.full((count, len(moments)), np.nan)
    values[np.searchsorted(held, which), at] = value
    return moments, values


def _within(moments: IntArray, begin: IntArray, end: IntArray) -> BoolArray:
    """Which moments lie in any of these stretches."""
    inside = np.zeros(len(moments), np.bool_)
    for first, last in zip(begin.tolist(), end.tolist(), strict=True):
        inside[np.searchsorted(moments, first) : np.searchsorted(moments, last)] = True
    return inside
