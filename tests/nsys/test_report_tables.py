"""Every kind of event makes the rows that nsys exports for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.memory import Narrow
from nsysmap.core.table import MISSING, Text, uniform
from nsysmap.inputs.nsys import report_events
from nsysmap.inputs.nsys.own_reader import own_tables, version_in_report
from nsysmap.inputs.nsys.report_tables import ReportTables, read_report
from nsysmap.inputs.nsys.tables import NsysTables
from tests.made_report import Made, message
from tests.report_events import PID, TID, call, kernel, nvtx, on_gpu, process

Writing = Callable[..., Path]
Reading = Callable[..., ReportTables]
Opening = Callable[..., NsysTables]
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
STRINGS = ["[Unknown]", "void k<float>(float*)", "cudaLaunchKernel_v7000", "poll"]


@pytest.fixture
def written(tmp_path: Path) -> Writing:
    """Writes a report of these events."""

    def write(*events: bytes, **changes: object) -> Path:
        held = Made(events=list(events), strings=STRINGS)
        for name, value in changes.items():
            setattr(held, name, value)
        return held.write(tmp_path / "a.nsys-rep")

    return write


@pytest.fixture
def report(written: Writing) -> Reading:
    """Reads a report of these events."""
    return lambda *events, **changes: read_report(written(*events, **changes))


@pytest.fixture
def opened(written: Writing) -> Opening:
    """Opens a report of these events as every form of nsys's tables is opened."""
    return lambda *events, **changes: own_tables(written(*events, **changes))


def test_a_kernel_has_its_columns(opened: Opening) -> None:
    read = opened(kernel(-5, 10), kernel(20, 30, node=8589934593)).read(
        KERNEL, ("start", "end", "gridX", "blockZ", "globalPid", "graphNodeId")
    )
    assert {name: column.tolist() for name, column in read.items()} == {
        "start": [-5, 20], "end": [10, 30], "gridX": [10, 10], "blockZ": [15, 15],
        "globalPid": [PID, PID],
        "graphNodeId": [MISSING, 8589934593],
    }  # fmt: skip


def test_work_without_a_green_context_reads_as_with_one(opened: Opening) -> None:
    copy = [(1, 4096), (2, 1), (4, 0), (5, 2)]
    held = opened(on_gpu(1, 102, copy), on_gpu(1, 102, [*copy, (11, 77)], node=False)).read(
        "CUPTI_ACTIVITY_KIND_MEMCPY", ("bytes", "copyKind", "graphNodeId", "greenContextId")
    )
    assert held["bytes"].tolist() == [4096, 4096]
    assert held["graphNodeId"].tolist() == [MISSING, 77]
    assert held["greenContextId"].tolist() == [0, MISSING]


def test_a_synchronisation_has_its_kind_wherever_it_is_written(opened: Opening) -> None:
    old, new = [(1, 4294967295), (2, 3)], [(1, 4294967295), (3, 4294967295), (4, 2)]
    assert opened(on_gpu(5, 105, old), on_gpu(5, 105, new)).read(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", ("syncType",)
    )["syncType"].tolist() == [3, 2]


def test_calls_are_told_apart_by_class_and_keep_their_order(opened: Opening) -> None:
    calls = opened(
        call(1, 2, start=1),
        call(27, 3, start=2),
        call(0, 2, start=3, result=-7),
        call(3, 2, start=4),
        call(1, 2, start=5),
    )
    runtime = calls.read(
        "CUPTI_ACTIVITY_KIND_RUNTIME", ("start", "eventClass", "globalTid", "returnValue", "nameId")
    )
    assert runtime["start"].tolist() == [1, 3, 5]
    assert runtime["eventClass"].tolist() == [1, 0, 1]
    assert runtime["returnValue"].tolist() == [0, -7, 0]
    assert calls.read("OSRT_API", ("start",))["start"].tolist() == [2]
    assert calls.read("PROFILER_OVERHEAD", ("start",))["start"].tolist() == [4]


def test_graph_nodes_and_whole_graphs(opened: Opening) -> None:
    held = opened(
        call(77, 2, more=((33, [(1, 4294967296)]),)),
        call(77, 2, more=((33, [(1, 8589934592), (2, 4294967296)]),)),
        on_gpu(7, 107, [(1, 1), (2, 2)]),
    )
    nodes = held.read("CUDA_GRAPH_NODE_EVENTS", ("graphNodeId", "originalGraphNodeId", "globalTid"))
    assert nodes["graphNodeId"].tolist() == [4294967296, 8589934592]
    assert nodes["originalGraphNodeId"].tolist() == [MISSING, 4294967296]
    assert held.read("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ("graphId", "graphExecId"))[
        "graphExecId"
    ].tolist() == [2]


def test_nvtx_events_of_every_kind(opened: Opening) -> None:
    held = opened(
        nvtx(75, (7, "TensorRT"), (13, 1)),
        nvtx(59, (7, "a"), (10, 200)),
        nvtx(59, (10, 300), (12, 3), (13, 1)),
        nvtx(60, (4, 9), (7, "a"), (10, 250), (11, TID + 1)),
        nvtx(34, (7, "a longer text than eight bytes")),
        nvtx(59, (10, 260)),
        nvtx(59, (8, [(7, 2)]), (10, 270), (12, 1)),
        nvtx(59, (8, [(2, -7)]), (7, "a longer text than eight byteZ")),
    )
    read = held.read(
        "NVTX_EVENTS",
        (
            "end",
            "eventType",
            "textId",
            "domainId",
            "rangeId",
            "endGlobalTid",
            "jsonTextId",
            "int64Value",
        ),
        ("text",),
    )
    assert read["text"].list() == [
        "TensorRT",
        "a",
        None,
        "a",
        "a longer text than eight bytes",
        None,
        None,
        "a longer text than eight byteZ",
    ]
    assert read["end"].tolist() == [MISSING, 200, 300, 250, MISSING, 260, 270, MISSING]
    assert read["textId"].tolist() == [MISSING, MISSING, 3, MISSING, MISSING, MISSING, 1, MISSING]
    assert read["domainId"].tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    assert read["endGlobalTid"].tolist()[3] == TID + 1
    assert read["jsonTextId"].tolist()[6] == 2
    assert read["int64Value"].tolist()[7] == -7


def test_nvtx_times_in_another_unit_are_an_error(report: Reading) -> None:
    with pytest.raises(NsysmapError, match="not in nanoseconds"):
        report(nvtx(59, (7, "a"), unit=0))


def test_processes_are_called_by_their_short_name(opened: Opening) -> None:
    held = opened(
        process(PID, (5, "./bert")),
        process(PID + (1 << 24), (5, "/usr/bin/nsys"), (6, "nsys")),
        process(PID + (2 << 24)),
    )
    read = held.read("PROCESSES", ("globalPid", "pid"), ("name",))
    assert read["name"].list() == ["./bert", "nsys"]
    assert read["pid"].tolist() == [484, 485]


def test_what_is_not_known_is_said(report: Reading) -> None:
    held = report(
        kernel(1, 2),
        call(250, 2),
        call(250, 2),
        call(97, 2),
        *(call(known, 2) for known in (0, 10, 96, 102, 110)),
        message((1, 7), (200, [(1, 1)])),
        message((1, 31), (104, [(1, 1)])),
    )
    assert held.unread == {"event 108 of class 250": 2, "event 108 of class 97": 1, "event 200": 1}
    assert len(held.tables[KERNEL]["start"]) == 1


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (
            message((1, 79), (107, [(1, 5), (2, 6), (7, 3), (101, [(1, 1)])])),
            "an event for CUPTI_ACTIVITY_KIND_KERNEL that has no",
        ),
        (message((107, [(1, 5)])), "an event that does not begin with its type"),
        (message((1, 79)), "an event that has no body of a known form"),
        (
            message((1, 79), (107, [(1, 5), (2, 6), (7, 3)]), (200, 1)),
            "an event that has more than a type and a body",
        ),
        (message((1, 79), (107, b"\xff\xff\xff\xff\xff")), "a field number that is cut off"),
        (message((1, 79), (107, [(1, b"x")])), "field 1 of wire type 2 where 0 is expected"),
    ],
)
def test_an_event_of_another_form_is_an_error(report: Reading, event: bytes, what: str) -> None:
    with pytest.raises(NsysmapError, match=what):
        report(kernel(1, 2), event)


def test_many_blocks_give_what_one_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    events = [
        kernel(int(t), int(t) + 9) if t % 3 else nvtx(59, (7, f"range {t % 11}"), start=int(t))
        for t in rng.integers(0, 10**12, 500)
    ]
    for number in range(0, 400, 37):
        more = ((37, [(1, 1), (2, 2)]),), ((38, [(1, 1)]),), ((39, [(1, 2), (2, 1)]),)
        events[number:number] = [call(94 + number % 3, 2, start=number, more=more[number % 3])]
    one = read_report(Made(events=events, strings=STRINGS).write(tmp_path / "a.nsys-rep"))
    monkeypatch.setattr(report_events, "_BATCH_BYTES", 1000)
    many = read_report(
        Made(events=events, strings=STRINGS, per_block=7).write(tmp_path / "b.nsys-rep")
    )
    for table, columns in one.tables.items():
        for name, column in columns.items():
            other = many.tables[table][name]
            if isinstance(column, Text) and isinstance(other, Text):
                assert column.list() == other.list()
            else:
                assert column.tolist() == other.tolist()  # type: ignore[union-attr]


def test_a_table_takes_a_fifth_of_its_columns_until_they_are_asked_for(report: Reading) -> None:
    many = [kernel(1000 * number, 1000 * number + 500) for number in range(2000)]
    held = report(*many, counts={1: 2000}).tables[KERNEL]
    assert isinstance(held, report_events.EventColumns)
    codes = [
        piece.codes if isinstance(piece, Narrow) else piece
        for pieces in held.pieces.values()
        for piece in pieces
    ]
    taken = sum(one.nbytes for one in codes if one.strides != (0,))
    columns = [column for column in held.values() if isinstance(column, np.ndarray)]
    assert len(columns) == len(held)
    assert taken * 5 < sum(column.nbytes for column in columns)
    start = held["start"]
    assert isinstance(start, np.ndarray)
    assert start.tolist() == [1000 * number for number in range(2000)]


def test_a_column_of_one_value_is_one_value_and_reads_like_any(report: Reading) -> None:
    many = [kernel(1000 * number, 1000 * number + 500) for number in range(20)]
    held = report(*many, counts={1: 20}).tables[KERNEL]
    device, start = held["deviceId"], held["start"]
    assert isinstance(device, np.ndarray)
    assert isinstance(start, np.ndarray)
    assert uniform(device)
    assert device.tolist() == device.tolist()[:1] * 20
    assert not uniform(start)


def test_batches_of_different_values_make_one_column(
    report: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_events, "_BATCH_BYTES", 1)
    events = (kernel(0, 5), kernel(10, 15), kernel(20, 25, name=2))
    held = report(*events, per_block=2).tables[KERNEL]["demangledName"]
    assert isinstance(held, np.ndarray)
    assert held.tolist() == [1, 1, 2]


def test_gpu_metrics_are_signed_numbers_of_their_sizes(opened: Opening) -> None:
    source = 0x1000100000000
    names = ["[Unknown]", "GpuMetrics", "", "SMs Active [Throughput %]", "Warps [Avg]"]
    fields = [(3, [(1, 3), (2, 0), (3, 1), (8, 1)]), (3, [(1, 4), (2, 1), (3, 3), (8, 1)])]
    registry = [(13, [(1, source), (2, 3), (3, 1)]), (14, [(1, source), (2, 2), *fields])]
    samples = [
        message((1, source), (2, 100), (3, b"\x64\xfd\xff\xff")),
        message((1, source), (2, 300), (3, b"\x00\x01\x02\x00")),
    ]
    held = opened(generic=samples, registry=registry, strings=names)
    read = held.read("GPU_METRICS", ("timestamp", "metricId", "value"))
    assert read["value"].tolist() == [100, -3, 0, 513]
    assert read["timestamp"].tolist() == [100, 100, 300, 300]
    assert (
        held.read("TARGET_INFO_GPU_METRICS", ("metricId",), ("metricName",))["metricName"].list()
        == names[3:]
    )


def test_a_sample_of_another_length_is_an_error(report: Reading) -> None:
    source = 0x1000100000000
    registry = [
        (13, [(1, source), (2, 3), (3, 1)]),
        (14, [(1, source), (2, 0), (3, [(1, 0), (2, 0), (3, 4), (8, 1)])]),
    ]
    with pytest.raises(NsysmapError, match="that has no 4 bytes"):
        report(
            generic=[message((1, source), (2, 100), (3, b"\x64"))],
            registry=registry,
            strings=["", "GpuMetrics"],
        )


def test_the_machine_and_the_session(written: Writing) -> None:
    gpu = [
        (1, 0),
        (2, "NVIDIA H100"),
        (7, "GH100"),
        (11, 85017493504),
        (13, 1980000000),
        (14, 132),
        (15, 0),
        (41, 9),
        (42, 0),
    ]
    clocks = [
        (1, [(1, 1), (2, 3), (5, "18446744003739283955"), (6, "Offset")]),
        (1, [(1, 3), (2, 9), (5, "16651476287318337649"), (6, "Offset")]),
    ]
    path = written(
        kernel(1, 2),
        machine=[
            (1, [(1, 281474976710656), (2, [(7, gpu), (9, [(1, 0), (2, 0), (3, 484)])])]),
            (14, [(1, 7), (4, 484)]),
            (15, [(1, 13), (6, 4294967291)]),
        ],
        session=[
            (2, [(2, [(1, 12), (1, 123)]), (26, [(49, [(1, 1)])])]),
            (16, clocks),
            (17, 998992392),
            (18, 1024432968),
        ],
        threads=[message((2, 1), (3, 20), (4, TID))],
    )
    held, report = own_tables(path), read_report(path)
    read = held.read(
        "TARGET_INFO_GPU",
        ("smCount", "clockRate", "computeMajor", "l2CacheSize"),
        ("name", "chipName"),
    )
    assert (read["smCount"].tolist(), read["name"].list(), read["l2CacheSize"].tolist()) == (
        [132],
        ["NVIDIA H100"],
        [MISSING],
    )
    assert held.read("ANALYSIS_DETAILS", ("duration",))["duration"].tolist() == [25440576]
    assert held.read("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))["utcEpochNs"].tolist() == [
        1795267857360474020
    ]
    assert held.read("ThreadNames", ("globalTid",))["globalTid"].tolist() == [TID]
    assert (report.collected, report.graph_trace, report.nsys_version) == (
        ("NvtxEvents", "Cuda"),
        "node",
        "2025.3.1.90",
    )


@pytest.mark.parametrize(
    ("step_ns", "zero", "rounded"),
    [
        (1, 7_123_456_789, 7_123_456_789),  # nsys on Linux since 2021.3
        (100_000, 7_123_400_000, 7_123_400_000),
        (1_000_000, 7_123_000_000, 7_123_000_000),
        (1, 7_000_000_000, 7_123_456_789),  # events count from another moment: nothing is rounded
    ],
)
def test_a_session_begins_and_ends_in_the_steps_of_the_clock_that_its_events_count_from(
    opened: Opening, step_ns: int, zero: int, rounded: int
) -> None:
    clocks = [(1, [(1, 7), (2, 1), (5, str(-zero)), (6, "Offset")])]
    held = opened(kernel(1, 2), session=[(16, clocks), (17, 7_123_456_789), (18, 9_987_654_321)])
    said = held.read("ANALYSIS_DETAILS", ("startTime", "stopTime", "duration"))
    stop = 9_987_654_321 // step_ns * step_ns
    assert {name: column.tolist() for name, column in said.items()} == {
        "startTime": [rounded],
        "stopTime": [stop],
        "duration": [stop - rounded],
    }


def test_of_the_environment_in_the_session_only_the_version_of_tensorrt_is_read(
    opened: Opening,
) -> None:
    variables = [
        (30, [(1, "TOKEN"), (2, "8.1.s3cr3t")]),
        (30, [(1, "TENSORRT_VERSION"), (2, "8.2.1")]),
    ]
    held = opened(kernel(1, 2), session=[(2, [(26, variables)]), (17, 1000), (18, 2000)])
    assert held.read("META_DATA_CAPTURE", (), ("name", "value"))["value"].list() == [
        "TENSORRT_VERSION=8.2.1"
    ]
    # something else there
    held = opened(kernel(1, 2), session=[(2, [(26, [(30, 7)])]), (17, 1000), (18, 2000)])
    assert held.read("META_DATA_CAPTURE", (), ("value",))["value"].list() == []


def test_nsys_own_count_is_held_against_the_rows(report: Reading) -> None:
    def said(count: int) -> bytes:
        return message(
            (1, 49),
            (
                110,
                [
                    (1, [(1, 5), (2, 1), (3, 1)]),
                    (2, 2),
                    (3, 1),
                    (4, f"Number of CUDA events collected: \t{count}."),
                    (5, PID),
                ],
            ),
        )

    assert report(kernel(1, 2), call(0, 2), call(27, 3), said(2)).disagreements == ()
    assert report(kernel(1, 2), call(0, 2), said(1), said(2)).disagreements == (
        "nsys says that it collected 3 CUDA events, but the report has 2",
    )


def test_the_session_has_its_time_of_day_where_clocks_have_a_section(tmp_path: Path) -> None:
    ids = [(1, [(1, [(1, b"day"), (2, 11)]), (1, [(1, b"mono"), (2, 7)])])]
    at = [(1, 1769308001907592870), (2, 6324136368420)]
    clocks = message(*ids, (2, [(1, [(1, b"day"), (2, b"mono"), (3, [(1, at), (2, 1.0)])])]))
    made = Made(
        events=[kernel(1, 2)],
        strings=STRINGS,
        session=[(17, 6324391262083), (18, 6326362987432)],
        sections={"Time Conversion Data": clocks},
    )
    held = own_tables(made.write(tmp_path / "a.nsys-rep"))
    assert held.read("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))["utcEpochNs"].tolist() == [
        1769308002162486533
    ]


def test_the_container_tells_which_nsys_wrote_a_report_whose_first_line_does_not(
    tmp_path: Path,
) -> None:
    path = Made(events=[], version="2022.4.2.1-df9881f").write(tmp_path / "old.nsys-rep")
    assert version_in_report(path) == "2022.4.2.1"
    path.write_bytes(b"NVIDIA Tegra Profiler Report 1.\n")
    assert version_in_report(path) is None
