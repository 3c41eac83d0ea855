"""Reads the GPU metrics that nsys sampled: GPU_METRICS and TARGET_INFO_GPU_METRICS of an export.

A row's timestamp is when its sample begins.  ``typeId & 0xFF`` is the GPU; a second type of the
same GPU, whose one field is ``EndTimestamp``, holds the stretches in which nsys lost samples or
mistrusts them (nsys 2021 to 2023).  Clocks above 2.147 GHz are written as 32 bits with a sign:
negative.  The first sample of a run is of nothing whole (seen with nsys 2023 on GA102 and GA106).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.errors import NsysmapError
from nsysmap.core.groups import distinct
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, FloatArray, IntArray, uniform
from nsysmap.inputs.nsys.tables import ROW, NoPiecesError, NsysTables, TablePieces
from nsysmap.names.metric_names import Metric, metric

_GPU = 0xFF  # the bits of a type that number the GPU
_END = "EndTimestamp"
_MOST_APART = 1.5  # times the usual distance of samples: more is a hole
_WRAP = 1 << 32  # what a counter of 32 bits begins anew after
# peaks are nominal and can be passed a little; more, or less than nothing, is no sample
_MOST_PERCENT = 200.0
_CLOSE = 1 << 20  # values of a table without gaps that is held whatever its share of empty ones
_MOST_TYPES = 1 << 10  # a GPU has two, and there are at most 256
_LONG = 2  # times as many samples as are wanted: of fewer, all are read
_STRETCHES = 64  # of a long run that are read, where they need not be longer
_FEW_PIECES = 16  # that are read where a hole is in them
_MOST_LOOKS = 0.1  # of the pieces: with more, all are read
_MOST_EMPTY = 64  # places for values for each value: nsys writes all metrics of a moment
_ROWS_AT_ONCE = 1 << 16  # that stay in the processor's cache
_FEW_ROWS = 1 << 10  # that are sorted where one is out of order


@dataclass(frozen=True)
class GpuSamples:
    """The samples of one GPU: sample i covers [start_ns[i], end_ns[i]); NaN if a metric has no
    value.
    """

    device: int  # CUDA device ordinal
    metrics: tuple[Metric, ...]
    start_ns: IntArray
    end_ns: IntArray
    values: FloatArray  # one row per metric
    holes: int  # stretches without samples within the run
    mistrusted: int  # samples left out because nsys says so
    # of the time from the first sample to the last, how much those holes take
    lost_share: float = 0.0
    number: int = 0  # nsys's own of this GPU, for its options
    part_of: PartOf | None = None  # None: these are all
    unknown: tuple[Metric, ...] = ()  # of which the name is all there is: their values are not kept

    @property
    def frequency_hz(self) -> float:
        """How often was sampled."""
        return 1e9 / float((self.end_ns - self.start_ns).mean()) if len(self.start_ns) else 0.0

    @property
    def count(self) -> int:
        """The number of samples in the trace."""
        return len(self.start_ns) if self.part_of is None else self.part_of.samples

    @property
    def stretches_ns(self) -> tuple[IntArray, IntArray]:
        """Begin and end of the stretches of time that were sampled without a hole."""
        if self.part_of is not None:
            return self.part_of.begin_ns, self.part_of.end_ns
        apart = np.flatnonzero(self.start_ns[1:] != self.end_ns[:-1])
        return (
            self.start_ns[np.append(0, apart + 1)[: len(self.start_ns)]],
            self.end_ns[np.append(apart, -1)[: len(self.end_ns)]],
        )


@dataclass(frozen=True)
class PartOf:
    """All samples of a run that was read in part."""

    samples: int
    begin_ns: IntArray  # of the stretches without a hole
    end_ns: IntArray


@dataclass(frozen=True)
class Enough:
    """How many samples suffice of a time: ``most``, in stretches of ``together`` that follow one
    another.
    """

    begin_ns: float
    end_ns: float
    most: int
    together: int


@dataclass(frozen=True)
class GpuMetrics:
    """The GPU metrics of a trace, read when they are asked for: there may be ten samples for each
    kernel.
    """

    tables: NsysTables | None = None  # None: none were sampled

    @cached_property
    def samples(self) -> tuple[GpuSamples, ...]:
        """The samples of every GPU that was sampled."""
        return () if self.tables is None else read_gpu_metrics(self.tables)

    def enough(self, wanted: Callable[[int, float], Enough]) -> tuple[GpuSamples, ...]:
        """The samples of every GPU; for a long run in a file that can be read in parts, no more
        than are wanted.

        ``wanted`` is asked with the GPU's CUDA device ordinal and the time between samples in ns.
        """
        part = None if self.tables is None else _part(self.tables, wanted)
        return self.samples if part is None else (part,)

    def number_of(self, device: int) -> int:
        """nsys's own number of a GPU, which its options take."""
        numbers = (
            {}
            if self.tables is None
            else {ordinal: number for number, ordinal in _ordinals(self.tables).items()}
        )
        return numbers.get(device, device)


_Rows = tuple[IntArray, IntArray, IntArray]
"""Rows of one type: time, metric, value."""


@dataclass
class _Moments:
    """The rows of one type as they are read: by moment, where each has one row for every metric and
    all are in order.
    """

    which: IntArray | None = None  # the metrics of a moment, in the order of its rows
    # moments, and for each the values in that order
    regular: list[tuple[IntArray, NDArray[Any]]] = field(default_factory=list)
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
            self.add(_some(rows, 0, len(rows[0]) // 2))
            self.add(_some(rows, len(rows[0]) // 2, None))
            return
        # where the next moment begins, of which nothing may be missing
        whole = int(np.argmax(rows[0] != rows[0][0]))
        if whole:
            self._leave(_some(rows, 0, whole))
            rows = _some(rows, whole, None)
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
            in_order = (
                first[0] > self.latest and (first == last).all() and (first[1:] > last[:-1]).all()
            )
            if not in_order or (time[1:whole] < time[: whole - 1]).any():
                return False
            if (which[:count] != self.which).any() or (
                which[count:whole] != which[: whole - count]
            ).any():
                return False
            by_metric = value[:whole].reshape(-1, count).T
            self.regular.append((first.copy(), by_metric.astype(_smallest(by_metric))))
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
            found.append(
                (
                    np.repeat(time, len(self.which)),
                    np.tile(self.which, len(time)),
                    values.T.ravel().astype(np.int64),
                )
            )
        return found + self.others + ([] if self.rest is None else [self.rest])

    def pivoted(
        self, path: Path, kept: Callable[[int], bool]
    ) -> tuple[list[int], IntArray, FloatArray]:
        """The metrics, the moments in order, and for each metric that is ``kept`` the value at
        every moment; NaN for none.

        Raises NsysmapError, about ``path``, if so few have a value that a small file would take all
        memory.
        """
        nothing = np.empty(0, np.int64)
        time, metric, value = _joined(
            [(nothing, nothing, nothing), *self.others, *([] if self.rest is None else [self.rest])]
        )
        which = nothing if self.which is None or not self.regular else self.which
        held = sorted({*which.tolist(), *_distinct(metric)})
        told = np.concatenate([nothing, *(of for of, _ in self.regular)])
        moments = distinct(np.concatenate([told, time])) if len(time) else told
        if len(held) * len(moments) > _MOST_EMPTY * (len(time) + len(which) * len(told)) + _CLOSE:
            raise _damaged(
                path, f"has {len(held):,} metrics at {len(moments):,} moments, but few values"
            )
        rows = [one for one in held if kept(one)]
        row_of = {one: row for row, one in enumerate(rows)}
        values = (
            np.full((len(rows), len(moments)), np.nan)
            if len(time)
            else np.empty((len(rows), len(moments)))
        )
        for of, block in self.regular:
            begin, end = np.searchsorted(moments, of[[0, -1]]).tolist()
            columns = (
                slice(begin, end + 1)
                if end - begin + 1 == len(of)
                else np.searchsorted(moments, of)
            )
            for one, each in zip(which.tolist(), block, strict=True):
                if one in row_of:
                    values[row_of[one], columns] = each
        if rows and len(time):
            some = np.isin(metric, rows)
            places = np.searchsorted(rows, metric[some]), np.searchsorted(moments, time[some])
            values[places] = value[some]
        return held, moments, values


def _smallest(values: IntArray) -> np.dtype[Any]:
    """The type in which these values take the fewest bytes: most are percentages."""
    least, greatest = int(values.min()), int(values.max())
    kinds = (np.int8, np.int16, np.int32)
    fits = (
        kind for kind in kinds if np.iinfo(kind).min <= least and greatest <= np.iinfo(kind).max
    )
    return np.dtype(next(fits, np.int64))


def _damaged(path: Path, told: str) -> NsysmapError:
    return NsysmapError(
        str(path),
        f"its table GPU_METRICS {told}",
        "the file is damaged: copy it again, or export the report again",
    )


def _some(rows: _Rows, begin: int, end: int | None) -> _Rows:
    return rows[0][begin:end], rows[1][begin:end], rows[2][begin:end]


def _joined(parts: Sequence[_Rows]) -> _Rows:
    time, which, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return time, which, value


def _metrics_of_a_moment(rows: _Rows) -> IntArray | None:
    """The metrics of the moment with the most rows, apart from the first and last moment, which may
    be incomplete; None if a metric occurs twice.
    """
    changes = np.flatnonzero(rows[0][1:] != rows[0][:-1]) + 1
    if len(changes) < 2:
        return None
    longest = int(np.argmax(np.diff(changes)))
    which = rows[1][changes[longest] : changes[longest + 1]]
    return which.copy() if len(distinct(which)) == len(which) else None


def has_gpu_metrics(tables: NsysTables) -> bool:
    """Whether GPU metrics were sampled."""
    return tables.has("GPU_METRICS", "metricId") and tables.has(
        "TARGET_INFO_GPU_METRICS", "metricName"
    )


def read_gpu_metrics(tables: NsysTables) -> tuple[GpuSamples, ...]:
    """The samples of every GPU that was sampled."""
    if not has_gpu_metrics(tables):
        return ()
    names, time = _names(tables), _time(tables)
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
            rows = (
                columns if len(kinds) == 1 else [column[columns[1] == kind] for column in columns]
            )
            for begin in range(0, len(rows[0]), _ROWS_AT_ONCE):
                time_of, which, value = (
                    rows[at][begin : begin + _ROWS_AT_ONCE] for at in (0, 2, 3)
                )
                moments.setdefault(kind, _Moments()).add((time_of, which, value))
    ordinals = _ordinals(tables)
    found = []
    for kind, held in sorted(moments.items()):
        if kind not in ends:
            doubtful = [
                moments[end] for end in ends if end in moments and end & _GPU == kind & _GPU
            ]
            device = ordinals.get(kind & _GPU, kind & _GPU)
            sampled = _samples(
                tables.path,
                device,
                {at: name for (of, at), name in names.items() if of == kind},
                held,
                doubtful,
            )
            found.append(replace(sampled, number=kind & _GPU))
    return tuple(found)


def _names(tables: NsysTables) -> dict[tuple[int, int], str]:
    """The name of each metric, by type and number."""
    told = tables.read("TARGET_INFO_GPU_METRICS", ("typeId", "metricId"), ("metricName",))
    ids = zip(told["typeId"].tolist(), told["metricId"].tolist(), strict=True)
    return dict(zip(ids, (name or "" for name in told["metricName"].list()), strict=True))


def _time(tables: NsysTables) -> str:
    """The column of the time."""
    return "timestamp" if tables.has("GPU_METRICS", "timestamp") else "rawTimestamp"


def _ordinals(tables: NsysTables) -> dict[int, int]:
    """nsys's number of each GPU and the CUDA device ordinal that it has, which differ under
    CUDA_VISIBLE_DEVICES.
    """
    if not tables.has("TARGET_INFO_GPU", "cuDevice"):
        return {}
    raw = tables.read("TARGET_INFO_GPU", ("id", "cuDevice"))
    pairs = zip(raw["id"].tolist(), raw["cuDevice"].tolist(), strict=True)
    return {
        number: device
        for number, device in pairs
        if MISSING not in (number, device) and device >= 0
    }


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


def _samples(
    path: Path, device: int, named: Mapping[int, str], held: _Moments, doubtful: list[_Moments]
) -> GpuSamples:
    told: dict[int, Metric] = {}

    def known(at: int) -> bool:
        told[at] = metric(named.get(at, str(at)))
        return bool(told[at].meaning)

    which, time, values = held.pivoted(path, known)
    metrics = tuple(told[at] for at in which if told[at].meaning)
    unknown = tuple(told[at] for at in which if not told[at].meaning)
    for row, each in zip(values, metrics, strict=True):
        most = {"hertz": _WRAP, "percent": _MOST_PERCENT}.get(each.unit)
        if most is None or not len(time) or 0 <= row.min() <= row.max() <= most:
            continue
        if each.unit == "hertz":
            row[row < 0] += _WRAP
        row[(row < 0) | (row > most)] = np.nan
    if len(time) < 3:
        nothing = np.zeros(0, np.int64)
        return GpuSamples(device, metrics, nothing, nothing, values[:, :0], 0, 0, unknown=unknown)
    apart = np.diff(time)
    whole = apart <= _MOST_APART * np.median(apart)
    whole[0] = False
    begin, end = time[:-1], time[1:]
    trusted = ~_within(begin, [stretch for each in doubtful for stretch in each.rows()])
    kept = whole & trusted
    lost = float(apart[1:][~whole[1:]].sum()) / float(time[-1] - time[0])
    some = slice(1, None) if kept[1:].all() else kept
    return GpuSamples(
        device,
        metrics,
        begin[some],
        end[some],
        values[:, :-1][:, some],
        int((~whole[1:]).sum()),
        int((whole & ~trusted).sum()),
        lost,
        unknown=unknown,
    )


def _within(moments: IntArray, stretches: list[_Rows]) -> BoolArray:
    """Marks the moments that lie in any of these stretches; a row's time and value are a stretch's
    begin and end.
    """
    inside = np.zeros(len(moments), np.bool_)
    for begin, _, end in stretches:
        for first, last in zip(begin.tolist(), end.tolist(), strict=True):
            inside[np.searchsorted(moments, first) : np.searchsorted(moments, last)] = True
    return inside


# --- a part of a long run
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Moment:
    """A moment of a file in which each has a row for every metric."""

    piece: int  # in which it begins
    number: int  # of the moment, from 0
    time: int
    row: int  # within the piece


@dataclass
class _Long:
    """A file that has moments of one GPU alone, all of the same metrics."""

    pieces: TablePieces
    time: str
    kind: int
    which: IntArray
    looked: dict[int, _Moment] = field(default_factory=dict)

    def first(self, piece: int) -> _Moment:
        """The first moment that begins in the piece."""
        if piece not in self.looked:
            if len(self.looked) > _MOST_LOOKS * self.pieces.count + 2 * _FEW_PIECES:
                raise NoPiecesError("too many holes")
            rows = self.pieces.read(piece, piece + 1, (ROW, self.time))
            number = -(-(int(rows[ROW][0]) - 1) // len(self.which))
            row = number * len(self.which) - int(rows[ROW][0]) + 1
            time = rows[self.time]
            if row >= len(time) or (row and time[row] == time[row - 1]):
                raise NoPiecesError("moments that have other rows than the first")
            self.looked[piece] = _Moment(piece, number, int(time[row]), row)
        return self.looked[piece]

    def latest(self) -> _Moment:
        """The last moment."""
        last = self.pieces.count - 1
        number, time = (
            self.pieces.read(last, last + 1, (ROW, self.time))[name] for name in (ROW, self.time)
        )
        if int(number[-1]) % len(self.which) or time[-1] != time[-min(len(self.which), len(time))]:
            raise NoPiecesError("an incomplete last moment")
        return _Moment(last, int(number[-1]) // len(self.which) - 1, int(time[-1]), 0)

    def from_time(self, time_ns: float) -> int:
        """The last piece whose first moment is not after that time, or the first."""
        return max(
            bisect_right(
                range(self.pieces.count), time_ns, key=lambda piece: self.first(piece).time
            )
            - 1,
            0,
        )

    def rows(self, begin: int, end: int) -> _Rows:
        """The rows of whole moments that begin in these pieces."""
        columns = self.pieces.read(begin, end, (self.time, "typeId", "metricId", "value"))
        time, which, value = (
            columns[name][self.first(begin).row :] for name in (self.time, "metricId", "value")
        )
        whole = len(time) // len(self.which) * len(self.which)
        if (
            (columns["typeId"] != self.kind).any()
            or not whole
            or MISSING in (time.min(), value.min())
        ):
            raise NoPiecesError("rows of several types or without a value")
        return time[:whole], which[:whole], value[:whole]

    def holes(self, one: _Moment, other: _Moment, period_ns: float) -> list[tuple[int, int]]:
        """The holes between two moments: none, if as many moments are between them as there is time
        for.
        """
        missing = (other.time - one.time) / period_ns - (other.number - one.number)
        if abs(missing) < _MOST_APART - 1:
            return []
        if other.piece - one.piece > _FEW_PIECES:
            middle = self.first((one.piece + other.piece) // 2)
            return self.holes(one, middle, period_ns) + self.holes(middle, other, period_ns)
        time = self.rows(one.piece, min(other.piece + 2, self.pieces.count))[0][:: len(self.which)]
        return _holes(time[(time >= one.time) & (time <= other.time)], period_ns)


def _holes(time: IntArray, period_ns: float) -> list[tuple[int, int]]:
    """Begin and end of the intervals between these moments that are too long."""
    at = np.flatnonzero(np.diff(time) > _MOST_APART * period_ns)
    return list(zip(time[at].tolist(), time[at + 1].tolist(), strict=True))


def _part(tables: NsysTables, wanted: Callable[[int, float], Enough]) -> GpuSamples | None:
    """A part of the samples; None if it is simpler to read all."""
    names = _names(tables)
    pieces = tables.pieces("GPU_METRICS") if len({kind for kind, _ in names}) == 1 else None
    if pieces is None or pieces.count < 4 * _FEW_PIECES or _END in names.values():
        return None
    try:
        return _read_part(tables, pieces, names, wanted)
    except NoPiecesError:
        return None


def _read_part(
    tables: NsysTables,
    pieces: TablePieces,
    names: Mapping[tuple[int, int], str],
    wanted: Callable[[int, float], Enough],
) -> GpuSamples | None:
    """A part of the samples, and how many there are in all, from pages of an export in which
    nothing is unusual.

    Row numbers tell how many moments are between two pages, and if as much time is between them,
    nothing was lost there.
    """
    (kind, _), *_ = names
    time = _time(tables)
    begun = pieces.read(0, _FEW_PIECES, (time, "metricId", "value"))
    which = _metrics_of_a_moment((begun[time], begun["metricId"], begun["value"]))
    if which is None:
        return None
    long = _Long(pieces, time, kind, which)
    earliest = long.rows(0, _FEW_PIECES)[0][:: len(which)]
    usual = float(np.median(np.diff(earliest)))
    device = _ordinals(tables).get(kind & _GPU, kind & _GPU)
    enough = wanted(device, usual)
    starts = _stretches(long, enough)
    if starts is None:
        return None
    held = _Moments(which)
    ends: list[tuple[_Moment, _Moment]] = []
    for begin, end in starts:
        rows = long.rows(begin, end)
        held.add(rows)
        first = long.first(begin)
        last = _Moment(
            max(end - 2, begin), first.number + len(rows[0]) // len(which) - 1, int(rows[0][-1]), 0
        )
        ends.append((first, last))
    if held.others or held.rest is not None:
        raise NoPiecesError("moments that have other rows than the first")
    told = [of for of, _ in held.regular]
    apart = np.concatenate([np.diff(of) for of in told])
    period = float(apart[apart <= _MOST_APART * np.median(apart)].mean())
    start, finish = long.first(0), long.latest()
    holes = [hole for of in told for hole in _holes(of, period)]
    joints = [start, *(moment for both in ends for moment in both), finish]
    for one, other in zip(joints[::2], joints[1::2], strict=True):
        holes += long.holes(one, other, period) if other.number > one.number else []
    holes = sorted({hole for hole in holes if hole[0] > start.time})
    begin_ns = np.array([int(earliest[1]), *(end for _, end in holes)])
    end_ns = np.array([*(begin for begin, _ in holes), finish.time])
    some = end_ns > begin_ns
    whole = PartOf(finish.number - start.number - 1 - len(holes), begin_ns[some], end_ns[some])
    lost = sum(end - begin for begin, end in holes) / (finish.time - start.time)
    found = _samples(tables.path, device, {at: name for (_, at), name in names.items()}, held, [])
    return replace(found, holes=len(holes), lost_share=lost, number=kind & _GPU, part_of=whole)


def _stretches(long: _Long, enough: Enough) -> list[tuple[int, int]] | None:
    """The pieces that are read, from one up to another; None for all."""
    low, high = long.from_time(enough.begin_ns), long.from_time(enough.end_ns) + 1
    last = long.first(long.pieces.count - 1).number
    inside = (long.first(high).number if high < long.pieces.count else last) - long.first(
        low
    ).number
    if inside <= _LONG * enough.most or not inside:
        return None
    together = max(enough.most // _STRETCHES, enough.together)
    length = -(-together * long.pieces.count // max(last, 1)) + 1  # pieces are about equally full
    count = max(enough.most // together, 2)
    if count * length >= high - low:
        return None
    step = (high - length - low) / (count - 1)
    before, after = int(low // step), int((long.pieces.count - high) // step)
    begins = [round(low + at * step) for at in range(-before, count + after)]
    return [(max(begin, 0), min(begin + length, long.pieces.count)) for begin in begins]
