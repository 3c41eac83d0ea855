"""The Perfetto trace, read back with Perfetto's own protobuf classes."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.table import Table
from nsysmap.names.metric_names import metric
from nsysmap.output.perfetto.write import write_trace
from nsysmap.trace.gpu_metrics import GpuMetrics, GpuSamples
from tests.places import FIXTURES

pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@dataclass(frozen=True)
class Slice:
    """One slice as Perfetto shows it."""

    track: str
    name: str
    start: int
    end: int
    said: dict[str, object]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def whole(path: Path) -> Any:
    """The trace with its compressed packets in the place of what holds them, as Perfetto reads
    it.
    """
    found: Any = pb.Trace()
    outer: Any = pb.Trace()
    outer.ParseFromString(path.read_bytes())
    for packet in outer.packet:
        found.MergeFromString(zlib.decompress(packet.compressed_packets))
    return found


def read(path: Path) -> tuple[list[Slice], dict[str, list[tuple[int, int]]]]:
    """The slices, and the values of the counters by track."""
    trace = whole(path)
    tracks, names = {}, {}
    texts: dict[str, dict[int, str]] = {
        "event_names": {},
        "debug_annotation_names": {},
        "debug_annotation_string_values": {},
    }
    open_slices: dict[int, list[tuple[int, Any]]] = {}
    slices: list[Slice] = []
    values: dict[str, list[tuple[int, int]]] = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        for kind, found in texts.items():
            for one in getattr(packet.interned_data, kind):
                found[one.iid] = (
                    one.name if kind != "debug_annotation_string_values" else one.str.decode()
                )
    by_time = sorted(
        (packet for packet in trace.packet if packet.HasField("track_event")),
        key=lambda packet: packet.timestamp,
    )
    for packet in by_time:
        event = packet.track_event
        assert event.track_uuid in tracks
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            values.setdefault(names[event.track_uuid], []).append(
                (packet.timestamp, event.counter_value)
            )
        elif event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices.setdefault(event.track_uuid, []).append((packet.timestamp, event))
        else:
            start, begun = open_slices[event.track_uuid].pop()
            said = {
                texts["debug_annotation_names"][one.name_iid]: (
                    one.int_value
                    if one.HasField("int_value")
                    else texts["debug_annotation_string_values"][one.string_value_iid]
                )
                for one in begun.debug_annotations
            }
            name = texts["event_names"][begun.name_iid]
            track = names[event.track_uuid]
            slices.append(
                Slice(
                    track,
                    name,
                    start,
                    packet.timestamp,
                    said,
                    tuple(begun.flow_ids),
                    tuple(begun.terminating_flow_ids),
                )
            )
    assert not any(open_slices.values())
    return slices, values


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(
        FIXTURES / "bert_trt103" / "sync.nsys-rep",
        FIXTURES / "bert_trt103" / "engine.json",
        rules=(),
    )


@pytest.fixture(scope="module")
def written(
    analysis: Analysis, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Slice], dict[str, list[tuple[int, int]]]]:
    path = tmp_path_factory.mktemp("perfetto") / "x.perfetto-trace"
    write_trace(analysis, path)
    return read(path)


def test_every_kernel_is_a_slice_of_its_stream_in_a_slice_of_its_layer(
    analysis: Analysis, written: tuple[list[Slice], Any]
) -> None:
    slices, _ = written
    on_stream = [one for one in slices if one.track.startswith("stream")]
    kernels = [one for one in on_stream if "grid" in one.said]
    layers = {one.start: one for one in on_stream if "grid" not in one.said}
    rows = analysis.tables.kernels.records()
    origin = int(str(rows[0]["start_ns"])) - kernels[0].start
    assert sorted((one.name, one.start, one.end) for one in kernels) == sorted(
        (str(row["name"]), int(str(row["start_ns"])) - origin, int(str(row["end_ns"])) - origin)
        for row in rows
    )
    assert {one.said["layer"] for one in kernels} == {row["layer_title"] for row in rows}
    for one in kernels:
        assert layers[one.start].name == one.said["layer"]
        assert layers[one.start].end >= one.end


def test_a_flow_leads_from_the_launch_call_to_each_kernel(written: tuple[list[Slice], Any]) -> None:
    slices, _ = written
    calls = {flow: one for one in slices for flow in one.starts}
    ended = [one for one in slices if one.ends]
    assert len(ended) == 1900 == len(calls)
    for one in ended:
        call = calls[one.ends[0]]
        assert call.name.startswith(("cudaLaunch", "cuLaunch"))
        assert call.track.startswith("thread")
        assert call.start <= one.start


def test_the_first_track_with_slices_has_the_layers(analysis: Analysis, tmp_path: Path) -> None:
    write_trace(analysis, tmp_path / "x.pftrace")
    told = [
        packet.track_descriptor
        for packet in whole(tmp_path / "x.pftrace").packet
        if packet.HasField("track_descriptor")
    ]
    assert told[0].name.startswith("GPU 0")
    assert told[1].parent_uuid == told[0].uuid
    assert told[1].name.startswith("stream ")


def test_idle_time_stands_by_cause(analysis: Analysis, written: tuple[list[Slice], Any]) -> None:
    slices, _ = written
    idle = [one for one in slices if one.track == "idle, by cause"]
    spent = Counter[str]()
    for one in idle:
        spent[one.name] += one.end - one.start
    wanted = Counter[str]()
    for row in analysis.tables.gaps:
        wanted[IDLE_CAUSES[row.text("cause")].words] += row.integer("dur_ns")
    assert spent == wanted
    assert all(one.said["evidence"] for one in idle if one.name == "waiting for launches")


def test_counters_say_how_full_the_gpu_is_and_what_waits(
    written: tuple[list[Slice], dict[str, list[tuple[int, int]]]],
) -> None:
    _, values = written
    (share,) = (found for name, found in values.items() if name.startswith("SMs with a block"))
    assert all(0 <= value <= 100 for _, value in share)
    assert share[-1][1] == 0
    queue = values["kernels launched but not begun"]
    assert min(value for _, value in queue) == 0
    assert max(value for _, value in queue) > 0


def test_sampled_hardware_counters_are_counter_tracks(analysis: Analysis, tmp_path: Path) -> None:
    begin = int(analysis.tables.kernels.ints("start_ns").min())
    start = begin + 10_000 * np.arange(4, dtype=np.int64)
    values = np.array([[10.0, 60.0, 60.0, 20.0], [1.5e9, 1.5e9, 1.6e9, np.nan]])
    held = GpuMetrics()
    metrics = (metric("SMs Active [Throughput %]"), metric("GPC Clock Frequency [MHz]"))
    vars(held)["samples"] = (GpuSamples(0, metrics, start, start + 10_000, values, 0, 0),)
    write_trace(replace(analysis, gpu_metrics=held), tmp_path / "x.pftrace")
    slices, found = read(tmp_path / "x.pftrace")
    first = min(one.start for one in slices if one.track.startswith("stream"))
    assert [(at - first, value) for at, value in found["SMs active, %, sampled"]] == [
        (0, 10),
        (10_000, 60),
        (30_000, 20),
    ]
    assert [value for _, value in found["SM clock, MHz, sampled"]] == [1500, 1600]


@pytest.mark.parametrize(
    ("report", "engine"),
    [
        ("bert_trt10/graph_whole.nsys-rep", "bert_trt10"),
        ("aux_streams/graph.nsys-rep", "aux_streams"),
        ("two_gpus/tp_sync.nsys-rep", None),
    ],
)
def test_captures_of_every_kind_are_whole(report: str, engine: str | None, tmp_path: Path) -> None:
    found = analyze(
        FIXTURES / report, FIXTURES / engine / "engine.json" if engine else None, rules=()
    )
    write_trace(found, tmp_path / "x.pftrace")
    slices, _ = read(tmp_path / "x.pftrace")
    kernels = [one for one in slices if "grid" in one.said]
    assert len(kernels) == len(found.tables.kernels)
    if engine == "aux_streams":
        assert len({one.track for one in kernels}) > 1
    if engine == "bert_trt10":
        assert sum(one.name == "CUDA graph (kernels not traced)" for one in slices) == 50


def test_a_range_that_began_before_all_else_keeps_its_time(
    analysis: Analysis, tmp_path: Path
) -> None:
    ranges = analysis.tables.nvtx_ranges
    starts = ranges.ints("start_ns").copy()
    starts[0] = int(analysis.tables.api_calls.ints("start_ns").min()) - 5_000_000
    early = replace(
        analysis,
        tables=analysis.tables.with_tables(
            nvtx_ranges=ranges.with_columns(ranges.spec, {"start_ns": starts})
        ),
    )
    write_trace(early, tmp_path / "x.perfetto-trace")
    slices, _ = read(tmp_path / "x.perfetto-trace")
    assert min(one.start for one in slices) == 0
    assert any(
        one.start == 0 and one.end - one.start == ranges.ints("end_ns")[0] - starts[0]
        for one in slices
    )


def test_a_trace_of_nothing_is_a_trace(analysis: Analysis, tmp_path: Path) -> None:
    nothing = {
        name: Table.empty(table.spec)
        for name, table in analysis.tables.by_name().items()
        if name not in ("capture", "devices")
    }
    write_trace(
        replace(analysis, tables=analysis.tables.with_tables(**nothing)),
        tmp_path / "x.perfetto-trace",
    )
    assert read(tmp_path / "x.perfetto-trace")[0] == []


def test_inferences_stand_by_gpu_and_are_called_what_they_are(tmp_path: Path) -> None:
    write_trace(
        analyze(FIXTURES / "two_gpus" / "tp_sync.nsys-rep", rules=()),
        tmp_path / "two.perfetto-trace",
    )
    slices, _ = read(tmp_path / "two.perfetto-trace")
    tracks = [one.track for one in slices if one.name.startswith("inference ")]
    assert Counter(tracks) == {
        "inferences on GPU 0 of thread 37": 40,
        "inferences on GPU 1 of thread 38": 40,
    }
    described = {
        packet.track_descriptor.name: packet.track_descriptor
        for packet in whole(tmp_path / "two.perfetto-trace").packet
    }
    threads = sorted(
        (one.sibling_order_rank, name)
        for name, one in described.items()
        if name.startswith("thread ")
    )
    # those that run inferences first
    assert [name for _, name in threads] == [
        "thread 37",
        "thread 38",
        "thread 25",
        "thread 32",
    ]
    write_trace(
        analyze(FIXTURES / "torch_encoder" / "eager.nsys-rep", rules=()),
        tmp_path / "torch.perfetto-trace",
    )
    named = {
        one.track
        for one in read(tmp_path / "torch.perfetto-trace")[0]
        if one.name.startswith("repetition ")
    }
    assert len(named) == 1
    assert named.pop().startswith("repetitions of thread ")


@pytest.mark.parametrize("at_once", [70, 1_000])
def test_a_trace_that_is_sorted_piece_by_piece_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    analysis = analyze(
        FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"
    )
    write_trace(analysis, tmp_path / "whole.pftrace")
    monkeypatch.setattr("nsysmap.output.perfetto.write._SORTED_AT_ONCE", at_once)
    write_trace(analysis, tmp_path / "pieces.pftrace")
    whole_bytes = (tmp_path / "whole.pftrace").read_bytes()
    assert (tmp_path / "pieces.pftrace").read_bytes() == whole_bytes
