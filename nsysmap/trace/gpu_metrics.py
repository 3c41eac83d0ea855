"""Reads the GPU metrics that nsys sampled: GPU_METRICS and TARGET_INFO_GPU_METRICS of an export.

A row's timestamp is when its sample begins.  ``typeId & 0xFF`` is the GPU; a second type of the same GPU, whose one field is
``EndTimestamp``, holds the stretches in which nsys lost samples or mistrusts them (nsys 2021 to 2023).  Clocks above 2.147 GHz are written
as 32 bits with a sign: negative.  The first sample of a run is of nothing whole (seen with nsys 2023 on GA102 and GA106).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from nsysmap.base.errors import NsysmapError
from nsysmap.base.groups import distinct
from nsysmap.base.table import MISSING, BoolArray, FloatArray, IntArray, uniform
from nsysmap.names.metric_names import Metric, metric
from nsysmap.nsys.tables import NsysTables

_GPU = 0xFF
_END = "EndTimestamp"
_MOST_APART = 1.5  # times the usual distance of samples: more is a hole
_WRAP = 1 << 32
_MOST_PERCENT = 200.0  # peaks are nominal and can be passed a little; more, or less than nothing, is no sample
_CLOSE = 1 << 20
_MOST_TYPES = 1 << 10  # a GPU has two, and there are at most 256
_MOST_EMPTY = 64  # places for values for each value: nsys writes all metrics of a moment
_ROWS_AT_ONCE = 1 << 16  # that stay in the processor's cache
_FEW_ROWS = 1 << 10  # that are sorted where one is out of order


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


_Rows = tuple[IntArray, IntArray, IntArray]
"""Rows of one type: time, metric, value."""


@dataclass
class _Moments:
    """The rows of one type as they are read: by moment, where each has one row for every metric and all are in order."""

    which: IntArray | None = None  # the metrics of a moment, in the order of its rows
    regular: list[tuple[IntArray, IntArray]] = field(default_factory=list)  # moments, and for each the values in that order
    others: list[_Rows] = field(default_factory=list)  # rows that are in no such order
    rest: _Rows | None = None  # the begin of a moment
    latest: int = MISSING  # moment of any row but those of ``rest``

    def add(self, rows: _Rows) -> None:
        """Add the rows that follow."""
        if self.rest is not None:
            rows, self.rest = _joined([self.rest, rows]), None
        if self.which is None:
            self.which = _metrics_of_a_moment(rows)
        if self._in_order(rows):
            return
        if len(rows[0]) > max(_FEW_ROWS, 4 * (0 if self.which is None else len(self.which))):
            self.add(_part(rows, 0, len(rows[0]) // 2))
            self.add(_part(rows, len(rows[0]) // 2, None))
            return
        whole = int(np.argmax(rows[0] != rows[0][0]))  # where the next moment begins, of which nothing may be missing
        if whole:
            self._leave(_part(rows, 0, whole))
            rows = _part(rows, whole, None)
        if not whole or not self._in_order(rows):
            self._leave(rows)

    def _in_order(self, rows: _Rows) -> bool:
        """Whether the rows are in order and later than all before; then they have been added."""
        if self.which is None:
            return False
        time, which, value = rows
        count = len(self.which)
        whole = len(time) // count * count
        if whole:
            first, last = time[:whole:count], time[count - 1 : whole : count]
            in_order = first[0] > self.latest and (first == last).all() and (first[1:] > last[:-1]).all()
            if not in_order or (time[1:whole] < time[: whole - 1]).any():
                return False
            if (which[:count] != self.which).any() or (which[count:whole] != which[: whole - count]).any():
                return False
            self.regular.append((first.copy(), value[:whole].reshape(-1, count).T.copy()))
            self.latest = int(first[-1])
        if whole < len(time):
            self.rest = time[whole:].copy(), which[whole:].copy(), value[whole:].copy()
        return True

    def _leave(self, rows: _Rows) -> None:
        self.others.append(rows)
        self.latest = max(self.latest, int(rows[0].max()))

    def rows(self) -> list[_Rows]:
        """All rows."""
        found = []
        for time, values in self.regular:
            assert self.which is not None
            found.append((np.repeat(time, len(self.which)), np.tile(self.which, len(time)), values.T.ravel()))
        return found + self.others + ([] if self.rest is None else [self.rest])

    def pivoted(self, path: Path) -> tuple[list[int], IntArray, FloatArray]:
        """The metrics, the moments in order, and for each metric the value at every moment; NaN for none.

        Raises NsysmapError, about ``path``, if so few have a value that a small file would take all memory.
        """
        nothing = np.empty(0, np.int64)
        time, metric, value = _joined([(nothing, nothing, nothing), *self.others, *([] if self.rest is None else [self.rest])])
        which = nothing if self.which is None or not self.regular else self.which
        held = sorted({*which.tolist(), *_distinct(metric)})
        at = np.searchsorted(held, which).tolist()
        told = np.concatenate([nothing, *(of for of, _ in self.regular)])
        moments = distinct(np.concatenate([told, time])) if len(time) else told
        if len(held) * len(moments) > _MOST_EMPTY * (len(time) + len(which) * len(told)) + _CLOSE:
            raise _damaged(path, f"has {len(held):,} metrics at {len(moments):,} moments, but few values")
        values = np.full((len(held), len(moments)), np.nan) if len(time) else np.empty((len(held), len(moments)))
        for of, block in self.regular:
            begin, end = np.searchsorted(moments, of[[0, -1]]).tolist()
            columns = slice(begin, end + 1) if end - begin + 1 == len(of) else np.searchsorted(moments, of)
            for row, each in zip(at, block, strict=True):
                values[row, columns] = each
        values[np.searchsorted(held, metric), np.searchsorted(moments, time)] = value
        return held, moments, values


def _damaged(path: Path, told: str) -> NsysmapError:
    return NsysmapError(str(path), f"its table GPU_METRICS {told}", "the file is damaged: copy it again, or export the report again")


def _part(rows: _Rows, begin: int, end: int | None) -> _Rows:
    return rows[0][begin:end], rows[1][begin:end], rows[2][begin:end]


def _joined(parts: Sequence[_Rows]) -> _Rows:
    time, which, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return time, which, value


def _metrics_of_a_moment(rows: _Rows) -> IntArray | None:
    """The metrics of the moment with the most rows, but for the first and last, which may go on elsewhere; None if one is there twice."""
    changes = np.flatnonzero(rows[0][1:] != rows[0][:-1]) + 1
    if len(changes) < 2:
        return None
    longest = int(np.argmax(np.diff(changes)))
    which = rows[1][changes[longest] : changes[longest + 1]]
    return which.copy() if len(distinct(which)) == len(which) else None


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
    ends = [kind for (kind, _), name in names.items() if name == _END]
    moments: dict[int, _Moments] = {}
    for block in tables.blocks("GPU_METRICS", (time, "typeId", "metricId", "value")):
        columns: list[IntArray] = [block[name] for name in (time, "typeId", "metricId", "value")]
        if MISSING in (columns[0].min(initial=0), columns[3].min(initial=0)):
            known = (columns[0] != MISSING) & (columns[3] != MISSING)
            columns = [column[known] for column in columns]
        kinds = _distinct(columns[1])
        if len(kinds) > _MOST_TYPES:
            raise _damaged(tables.path, f"has samples of {len(kinds):,} types")
        for kind in kinds:
            rows = columns if len(kinds) == 1 else [column[columns[1] == kind] for column in columns]
            for begin in range(0, len(rows[0]), _ROWS_AT_ONCE):
                time_of, which, value = (rows[at][begin : begin + _ROWS_AT_ONCE] for at in (0, 2, 3))
                moments.setdefault(kind, _Moments()).add((time_of, which, value))
    ordinals = _ordinals(tables)
    found = []
    for kind, held in sorted(moments.items()):
        if kind not in ends:
            doubtful = [moments[end] for end in ends if end in moments and end & _GPU == kind & _GPU]
            device = ordinals.get(kind & _GPU, kind & _GPU)
            sampled = _samples(tables.path, device, {at: name for (of, at), name in names.items() if of == kind}, held, doubtful)
            found.append(replace(sampled, number=kind & _GPU))
    return tuple(found)


def _ordinals(tables: NsysTables) -> dict[int, int]:
    """nsys's number of each GPU and the CUDA device ordinal that it has, which differ under CUDA_VISIBLE_DEVICES."""
    if not tables.has("TARGET_INFO_GPU", "cuDevice"):
        return {}
    raw = tables.read("TARGET_INFO_GPU", ("id", "cuDevice"))
    pairs = zip(raw["id"].tolist(), raw["cuDevice"].tolist(), strict=True)
    return {number: device for number, device in pairs if MISSING not in (number, device) and device >= 0}


def _distinct(values: IntArray) -> list[int]:
    """The values, each once; ids lie close together, so they are counted and not sorted."""
    if not len(values) or uniform(values) or (values == values[0]).all():
        one: list[int] = values[:1].tolist()
        return one
    least = int(values.min())
    if int(values.max()) - least > _CLOSE:
        far: list[int] = distinct(values).tolist()
        return far
    near: list[int] = (np.flatnonzero(np.bincount(values - least)) + least).tolist()
    return near


def _samples(path: Path, device: int, named: Mapping[int, str], held: _Moments, doubtful: list[_Moments]) -> GpuSamples:
    which, time, values = held.pivoted(path)
    metrics = tuple(metric(named.get(at, str(at))) for at in which)
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
    trusted = ~_within(begin, [stretch for each in doubtful for stretch in each.rows()])
    kept = whole & trusted
    lost = float(apart[1:][~whole[1:]].sum()) / float(time[-1] - time[0])
    some = slice(1, None) if kept[1:].all() else kept
    return GpuSamples(
        device, metrics, begin[some], end[some], values[:, :-1][:, some], int((~whole[1:]).sum()), int((whole & ~trusted).sum()), lost
    )


def _within(moments: IntArray, stretches: list[_Rows]) -> BoolArray:
    """Which moments lie in any of these stretches: each row's time and value are its begin and end."""
    inside = np.zeros(len(moments), np.bool_)
    for begin, _, end in stretches:
        for first, last in zip(begin.tolist(), end.tolist(), strict=True):
            inside[np.searchsorted(moments, first) : np.searchsorted(moments, last)] = True
    return inside
