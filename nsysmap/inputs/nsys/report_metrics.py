"""GPU metrics of a report: the name of each counter, its position in a sample, and the samples
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.records import dataclass
from nsysmap.core.table import IntArray, Text
from nsysmap.inputs.nsys.report_events import Generic
from nsysmap.inputs.nsys.report_wire import Message, WireError, signed

GPU_METRICS, METRIC_NAMES = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_SOURCE = "GpuMetrics"
# of a source of generic events whose times count from the beginning of the session
_SESSION_CLOCK = 3
_SAMPLES_AT_ONCE = 2048  # that are decoded together
_FORM, _OLD_FORM = 8, 4  # fields of a counter that say which type it is, since 2023 and before
# both are numbers with the least byte first, which nsys takes for signed: it exports fd ff ff as -3
_INTEGER, _OLD_INTEGER = (
    1,
    0,
)


@dataclass(frozen=True)
class SampledMetric:
    """One counter: its name, and its bytes within a sample."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class SampleType:
    """One type of sample: a GPU and its counters."""

    type_id: int
    source_id: int
    name: str
    metrics: tuple[SampledMetric, ...]

    @property
    def size(self) -> int:
        """Bytes of a sample."""
        return max(metric.offset + metric.size for metric in self.metrics)


def sampled(registry: Message, strings: tuple[str, ...]) -> tuple[SampleType, ...]:
    """The GPU metrics that the report describes: the sources of generic events with that name, and
    their types.
    """
    sources = {
        source.number(1) or 0
        for source in registry.messages(13)
        if _string(strings, source.number(3)) == _SOURCE and source.number(2) == _SESSION_CLOCK
    }
    found = []
    for described in registry.messages(14):
        type_id = described.number(1) or 0
        source_id = type_id >> 32 << 32
        fields = described.messages(3)
        if source_id not in sources or not fields:
            continue
        metrics = []
        for field in fields:
            offset, size = field.number(2) or 0, field.number(3) or 0
            known = field.number(_FORM) == _INTEGER or (
                field.number(_FORM) is None and field.number(_OLD_FORM) == _OLD_INTEGER
            )
            if not known or not 0 < size <= 8 or offset > 1 << 16:
                raise WireError(
                    f"a GPU metric of form {field.number(_FORM)} with {size} bytes at {offset}"
                )
            metrics.append(SampledMetric(_string(strings, field.number(1)), offset, size))
        if sum(metric.size for metric in metrics) > max(
            metric.offset + metric.size for metric in metrics
        ):
            raise WireError("GPU metrics that overlap")
        found.append(
            SampleType(type_id, source_id, _string(strings, described.number(2)), tuple(metrics))
        )
    return tuple(found)


@dataclass(frozen=True)
class ReportSamples:
    """The samples of one GPU, by time as they stand in the report."""

    of: SampleType
    times_ns: IntArray  # since the session began
    payloads: NDArray[np.uint8]  # a row per sample

    def values(self, metric: SampledMetric) -> IntArray:
        """One counter in every sample."""
        values = np.zeros(len(self.times_ns), np.int64)
        for place in range(metric.size):
            values |= self.payloads[:, metric.offset + place].astype(np.int64) << (8 * place)
        unused = 64 - 8 * metric.size
        return values << unused >> unused


def samples(
    described: tuple[SampleType, ...], generic: tuple[Generic, ...]
) -> tuple[ReportSamples, ...]:
    """The samples by type; a type without samples is left out."""
    held = {events.type_id: events for events in generic if len(events.times)}
    return tuple(
        ReportSamples(one, held[one.type_id].times, held[one.type_id].payloads)
        for one in described
        if one.type_id in held
    )


def metric_names(held: tuple[ReportSamples, ...]) -> dict[str, IntArray | Text]:
    """TARGET_INFO_GPU_METRICS: what each counter is called."""
    names = [
        (one.of, number, metric) for one in held for number, metric in enumerate(one.of.metrics)
    ]
    return {
        "typeId": np.array([signed(one.type_id) for one, _, _ in names], np.int64),
        "sourceId": np.array([signed(one.source_id) for one, _, _ in names], np.int64),
        "typeName": Text.of(one.name or None for one, _, _ in names),
        "metricId": np.array([number for _, number, _ in names], np.int64),
        "metricName": Text.of(metric.name or None for _, _, metric in names),
    }


def metric_values(held: tuple[ReportSamples, ...]) -> dict[str, IntArray | Text]:
    """GPU_METRICS: a row for each counter of each sample, some forty times as many bytes as the
    samples themselves.
    """
    parts = list(metric_blocks(held))
    return (
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    )


def metric_blocks(held: tuple[ReportSamples, ...]) -> Iterator[dict[str, IntArray]]:
    """The rows, in blocks of samples."""
    for one in held:
        for begin in range(0, len(one.times_ns), _SAMPLES_AT_ONCE):
            some = slice(begin, begin + _SAMPLES_AT_ONCE)
            yield _rows(replace(one, times_ns=one.times_ns[some], payloads=one.payloads[some]))


def _rows(one: ReportSamples) -> dict[str, IntArray]:
    rows, count = len(one.times_ns), len(one.of.metrics)
    times = np.repeat(one.times_ns, count)
    return {
        "rawTimestamp": times,
        "timestamp": times,
        "typeId": np.full(rows * count, signed(one.of.type_id), np.int64),
        "metricId": np.tile(np.arange(count), rows),
        "value": np.stack([one.values(metric) for metric in one.of.metrics], axis=1).reshape(-1),
    }


def _string(strings: tuple[str, ...], number: int | None) -> str:
    if number is None or number >= len(strings):
        raise WireError(f"a name with number {number} where there are {len(strings)}")
    return strings[number]
