"""The Perfetto trace obeys what Perfetto's importer asks of one, and a trace that does not is
told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.core.table import Text
from nsysmap.names.metric_names import metric
from nsysmap.output.perfetto.write import write_trace
from nsysmap.trace.gpu_metrics import GpuMetrics, GpuSamples
from tests.perfetto.importer_rules import broken_rules
from tests.perfetto.test_write import whole
from tests.places import FIXTURES

CAPTURES = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.rglob("*.nsys-rep"))
HOSTILE = "\x00\x1b[31m\x85\u2028\u202e</script>\ud800'\"`{0}\n\t\U0001f600" + "x" * 70_000


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(
        FIXTURES / "bert_trt103" / "sync.nsys-rep",
        FIXTURES / "bert_trt103" / "engine.json",
        rules=(),
    )


def broken(analysis: Analysis, path: Path) -> list[str]:
    write_trace(analysis, path)
    return broken_rules(whole(path))


@pytest.mark.parametrize("report", CAPTURES)
def test_every_capture_obeys_the_rules(report: str, tmp_path: Path) -> None:
    folder = (FIXTURES / report).parent
    engines = [] if folder.name == "newer" else sorted(folder.glob("*engine.json"))
    assert broken(analyze(FIXTURES / report, engines, rules=()), tmp_path / "x.pftrace") == []


def test_hostile_names_obey_the_rules(analysis: Analysis, tmp_path: Path) -> None:
    tables = analysis.tables
    changed = {}
    for name in ("kernels", "layers", "nvtx_ranges", "api_calls", "gaps", "devices"):
        table = getattr(tables, name)
        texts = {
            column: Text(data.codes, tuple(f"{HOSTILE}{text}" for text in data.values))
            for column in ("name", "layer", "part", "api", "domain", "evidence")
            if isinstance(data := table.columns.get(column), Text)
        }
        changed[name] = table.with_columns(table.spec, texts)
    assert (
        broken(replace(analysis, tables=tables.with_tables(**changed)), tmp_path / "x.pftrace")
        == []
    )


def test_odd_ids_times_and_flows_obey_the_rules(analysis: Analysis, tmp_path: Path) -> None:
    tables = analysis.tables
    kernels, calls, ranges = tables.kernels, tables.api_calls, tables.nvtx_ranges
    start, context = kernels.ints("start_ns").copy(), kernels.ints("context").copy()
    start[0] = kernels.ints("launch_start_ns")[0] - 7_000  # before its call
    start[1] = kernels.ints("launch_start_ns")[1]
    context[len(context) // 2 :] += 1  # the same stream of another context
    thread = calls.ints("thread")
    changed = {
        "kernels": kernels.with_columns(kernels.spec, {"start_ns": start, "context": context}),
        "api_calls": calls.with_columns(
            calls.spec, {"thread": np.where(np.arange(len(thread)) % 2, thread, thread >> 24 << 24)}
        ),
        "nvtx_ranges": ranges.with_columns(
            ranges.spec,
            {"thread": ranges.ints("thread") & 0xFFFFFF, "pid": np.zeros(len(ranges), np.int64)},
        ),
    }
    begin = int(calls.ints("start_ns").min()) - 100_000  # samples before all else
    at = begin + 10_000 * np.arange(4, dtype=np.int64)
    held = GpuMetrics()
    vars(held)["samples"] = (
        GpuSamples(
            0,
            (metric("SMs Active [Throughput %]"),),
            at,
            at + 10_000,
            np.array([[10.0, 60.0, 60.0, 20.0]]),
            0,
            0,
        ),
    )
    odd = replace(analysis, gpu_metrics=held, tables=tables.with_tables(**changed))
    write_trace(odd, tmp_path / "x.pftrace")
    trace = whole(tmp_path / "x.pftrace")
    assert broken_rules(trace) == []
    names = [packet.track_descriptor.name for packet in trace.packet]
    assert sum(name.startswith("stream") and "context" in name for name in names) == 2
    assert "process 0" in names and "thread 0" in names


def _first(trace: Any, test: Callable[[Any], bool]) -> Any:
    return next(packet for packet in trace.packet if test(packet))


def _begins(packet: Any) -> bool:
    return bool(packet.track_event.type == 1)


SPOILERS: dict[str, tuple[Callable[[Any], None], str]] = {
    "no sequence": (
        lambda trace: trace.packet[3].ClearField("trusted_packet_sequence_id"),
        "a packet of no sequence",
    ),
    "undeclared": (
        lambda trace: setattr(_first(trace, _begins).track_event, "track_uuid", 999),
        "before the track",
    ),
    "twice": (lambda trace: trace.packet.append(trace.packet[0]), "declared twice"),
    "orphan": (
        lambda trace: setattr(trace.packet[0].track_descriptor, "parent_uuid", 999),
        "before its parent",
    ),
    "thread 0": (
        lambda trace: setattr(
            _first(
                trace, lambda one: one.track_descriptor.HasField("thread")
            ).track_descriptor.thread,
            "tid",
            0,
        ),
        "no thread",
    ),
    "process 0": (
        lambda trace: setattr(
            _first(
                trace, lambda one: one.track_descriptor.HasField("process")
            ).track_descriptor.process,
            "pid",
            0,
        ),
        "process 0",
    ),
    "unit": (
        lambda trace: _first(
            trace, lambda one: one.track_descriptor.HasField("counter")
        ).track_descriptor.counter.ClearField("unit_name"),
        "no unit",
    ),
    "rank": (
        lambda trace: _first(
            trace, lambda one: one.track_descriptor.parent_uuid
        ).track_descriptor.ClearField("sibling_order_rank"),
        "no rank among its siblings",
    ),
    "same rank": (
        lambda trace: setattr(
            _first(trace, lambda one: one.track_descriptor.parent_uuid == 1).track_descriptor,
            "sibling_order_rank",
            3,
        ),
        "have rank",
    ),
    "same name": (
        lambda trace: setattr(
            _first(trace, lambda one: one.track_descriptor.parent_uuid == 1).track_descriptor,
            "name",
            "idle, by cause",
        ),
        "are called",
    ),
    "never cleared": (
        lambda trace: setattr(
            _first(trace, lambda one: one.sequence_flags == 1), "sequence_flags", 0
        ),
        "never begun",
    ),
    "unsaid": (
        lambda trace: setattr(_first(trace, _begins), "sequence_flags", 0),
        "does not say so",
    ),
    "two texts": (
        lambda trace: setattr(
            _first(trace, lambda one: one.sequence_flags == 1).interned_data.event_names[1],
            "iid",
            1,
        ),
        "has two texts",
    ),
    "not interned": (
        lambda trace: setattr(_first(trace, _begins).track_event, "name_iid", 9999),
        "is used and not there",
    ),
    "control": (
        lambda trace: setattr(
            _first(trace, lambda one: one.sequence_flags == 1).interned_data.event_names[1],
            "name",
            "\x1b[31m",
        ),
        "control character",
    ),
    "too late": (
        lambda trace: setattr(_first(trace, _begins), "timestamp", 2**64 - 5),
        "of clock 0",
    ),
    "other clock": (
        lambda trace: setattr(_first(trace, _begins), "timestamp_clock_id", 3),
        "of clock 3",
    ),
    "backwards": (
        lambda trace: setattr([one for one in trace.packet if _begins(one)][5], "timestamp", 0),
        "on a track that had one",
    ),
    "never ends": (
        lambda trace: trace.packet.remove(_first(trace, lambda one: one.track_event.type == 2)),
        "never end",
    ),
    "never began": (lambda trace: trace.packet.remove(_first(trace, _begins)), "that never began"),
    "slice on counter": (
        lambda trace: setattr(_first(trace, _begins).track_event, "type", 4),
        "on no counter",
    ),
    "no value": (
        lambda trace: _first(trace, lambda one: one.track_event.type == 4).track_event.ClearField(
            "counter_value"
        ),
        "without its value",
    ),
    "flow twice": (
        lambda trace: _first(
            trace, lambda one: one.track_event.terminating_flow_ids
        ).track_event.terminating_flow_ids.append(1),
        "ends twice",
    ),
    "flow lost": (
        lambda trace: _first(trace, lambda one: one.track_event.flow_ids).track_event.ClearField(
            "flow_ids"
        ),
        "before it begins",
    ),
    "flow open": (
        lambda trace: _first(
            trace, lambda one: one.track_event.terminating_flow_ids
        ).track_event.ClearField("terminating_flow_ids"),
        "never ends",
    ),
}


@pytest.fixture(scope="module")
def good(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("perfetto") / "x.pftrace"
    write_trace(analysis, path)
    return whole(path)


@pytest.mark.parametrize("spoiled", SPOILERS)
def test_a_trace_that_breaks_a_rule_is_told(spoiled: str, good: Any) -> None:
    trace = type(good)()
    trace.CopyFrom(good)
    spoil, said = SPOILERS[spoiled]
    spoil(trace)
    assert any(said in one for one in broken_rules(trace)), broken_rules(trace)[:5]
