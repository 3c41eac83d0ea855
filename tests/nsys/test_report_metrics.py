"""GPU metrics of a report: which counters there are, and their values in every sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.nsys import report_metrics
from nsysmap.inputs.nsys.report_events import Generic
from nsysmap.inputs.nsys.report_metrics import (
    ReportSamples,
    SampledMetric,
    SampleType,
    metric_blocks,
    metric_names,
    metric_values,
    sampled,
    samples,
)
from nsysmap.inputs.nsys.report_wire import Message, WireError
from tests.made_report import message

SOURCE = 0x0001_0001_0000_0000
NAMES = ("[Unknown]", "GpuMetrics", "GPU 0", "SMs", "Warps", "Other")
Field = list[tuple[int, object]]


def counter(name: int, offset: int | None, size: int, *form: tuple[int, object]) -> Field:
    at: Field = [] if offset is None else [(2, offset)]
    return [(1, name), *at, (3, size), *(form or ((8, 1),))]


def registry(
    *counters: Field, source: int = SOURCE, name: int = 1, clock: int = 3, type_id: int = SOURCE + 5
) -> Message:
    described: list[tuple[int, object]] = [
        (13, [(1, source), (2, clock), (3, name)]),
        (14, [(1, type_id), (2, 2), *((3, one) for one in counters)]),
    ]
    return Message.of(message(*described))


def test_counters_have_a_name_and_their_bytes_within_a_sample() -> None:
    [found] = sampled(registry(counter(3, None, 1), counter(4, 1, 8)), NAMES)
    assert (found.type_id, found.source_id, found.name) == (SOURCE + 5, SOURCE, "GPU 0")
    assert found.metrics == (SampledMetric("SMs", 0, 1), SampledMetric("Warps", 1, 8))
    assert found.size == 9


def test_only_sources_of_gpu_metrics_on_the_session_s_clock_are_read() -> None:
    plain = counter(3, 0, 1)
    assert sampled(registry(plain, clock=2), NAMES) == ()
    assert sampled(registry(plain, name=5), NAMES) == ()
    assert sampled(registry(plain, type_id=SOURCE + (1 << 32)), NAMES) == ()
    assert sampled(registry(plain, type_id=SOURCE + (1 << 32) - 1), NAMES) != ()
    assert sampled(registry(), NAMES) == ()


@pytest.mark.parametrize(
    ("form", "known"),
    [
        ([(8, 1)], True),
        ([(8, 0)], False),
        ([(8, 2)], False),
        ([(4, 0)], True),  # as until 2023
        ([(4, 1)], False),
        ([(4, 0), (8, 2)], False),
    ],
)
def test_only_integers_are_known(form: Field, known: bool) -> None:
    if known:
        assert len(sampled(registry(counter(3, 0, 4, *form)), NAMES)) == 1
    else:
        with pytest.raises(WireError):
            sampled(registry(counter(3, 0, 4, *form)), NAMES)


@pytest.mark.parametrize(
    ("counters", "right"),
    [
        ([counter(3, 0, 8)], True),
        ([counter(3, 0, 9)], False),
        ([counter(3, 0, 0)], False),
        ([counter(3, 1 << 16, 1)], True),
        ([counter(3, (1 << 16) + 1, 1)], False),
        ([counter(3, 0, 4), counter(4, 4, 4)], True),
        ([counter(3, 0, 4), counter(4, 3, 4)], False),  # they overlap
        ([counter(6, 0, 4)], False),  # a name that is not there
    ],
)
def test_counters_are_of_one_to_eight_bytes_side_by_side(
    counters: list[Field], right: bool
) -> None:
    if right:
        assert len(sampled(registry(*counters), NAMES)[0].metrics) == len(counters)
    else:
        with pytest.raises(WireError):
            sampled(registry(*counters), NAMES)


def held(times: list[int], *values: tuple[int, list[int]]) -> ReportSamples:
    """Samples of counters, each given by its size and its values."""
    metrics, offset, parts = [], 0, []
    for number, (size, its) in enumerate(values):
        metrics.append(SampledMetric(f"m{number}" if number else "", offset, size))
        offset += size
        parts.append([one.to_bytes(size, "little", signed=True) for one in its])
    rows = [b"".join(each) for each in zip(*parts, strict=True)]
    payloads = np.frombuffer(b"".join(rows), np.uint8).reshape(len(times), offset)
    of = SampleType(2**64 - 3, SOURCE, "GPU 0", tuple(metrics))
    return ReportSamples(of, np.array(times, np.int64), payloads)


@st.composite
def numbers(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A size in bytes, and some numbers of that size."""
    size = draw(st.integers(1, 8))
    most = (1 << (8 * size - 1)) - 1
    return size, draw(st.lists(st.integers(-most - 1, most), min_size=1, max_size=5))


@given(numbers())
def test_values_are_signed_numbers_of_their_size(one: tuple[int, list[int]]) -> None:
    size, values = one
    made = held(list(range(len(values))), (2, [7] * len(values)), (size, values))
    assert made.values(made.of.metrics[1]).tolist() == values
    assert made.values(made.of.metrics[0]).tolist() == [7] * len(values)


def test_each_sample_has_a_row_for_each_counter_some_samples_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = held([10, 20, 30], (1, [1, 2, 3]), (2, [-4, 5, 6]))
    monkeypatch.setattr(report_metrics, "_SAMPLES_AT_ONCE", 2)
    assert [block["value"].tolist() for block in metric_blocks((made,))] == [[1, -4, 2, 5], [3, 6]]
    whole = metric_values((made,))
    assert {name: column.tolist() for name, column in whole.items()} == {  # type: ignore[union-attr]
        "rawTimestamp": [10, 10, 20, 20, 30, 30],
        "timestamp": [10, 10, 20, 20, 30, 30],
        "typeId": [-3] * 6,
        "metricId": [0, 1] * 3,
        "value": [1, -4, 2, 5, 3, 6],
    }
    assert metric_values(()) == {}
    names = metric_names((made,))
    assert names["metricId"].tolist() == [0, 1]  # type: ignore[union-attr]
    assert names["typeId"].tolist() == [-3, -3]  # type: ignore[union-attr]
    assert names["sourceId"].tolist() == [SOURCE] * 2  # type: ignore[union-attr]
    assert names["metricName"].list() == [None, "m1"]  # type: ignore[union-attr]
    assert names["typeName"].list() == ["GPU 0"] * 2  # type: ignore[union-attr]


def test_types_without_samples_are_left_out() -> None:
    made = held([10], (1, [1]))
    other = SampleType(4, SOURCE, "", made.of.metrics)
    none = Generic(4, made.times_ns[:0], made.payloads[:0])
    some = Generic(made.of.type_id, made.times_ns, made.payloads)
    [found] = samples((other, made.of), (none, some))
    assert found.of is made.of
    assert found.times_ns.tolist() == [10]
