"""A trace means the same in every schema that nsys has exported since 2020."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.inputs.nsys import tables
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.trace.model import Trace
from tests.nsys_file import PROCESS, THREAD, NsysFile, engine_call
from tests.nsys_schemas import schemas, write_in_schema
from tests.reports import read_trace

ENGINE = Engine(
    "engine.json",
    tuple(Layer(i, name, "other") for i, name in enumerate(("conv1", "conv2", "fc"))),
    detailed=True,
)
GRAPH = 7 << 32  # graphNodeId = graphId << 32 | number, as nsys makes it
TABLES = (
    "kernels",
    "api_calls",
    "nvtx_ranges",
    "memcpys",
    "syncs",
    "cuda_graph_nodes",
    "overheads",
    "osrt_calls",
    "devices",
)


def traced() -> NsysFile:
    """Two calls of an engine, the capture of its third layer into a CUDA graph and a replay of
    that, a copy, a wait, and more.
    """
    file = NsysFile()
    file.domain("TensorRT", 1)
    for call in range(2):
        engine_call(file, 1000 * (call + 1), [("conv1", "k1"), ("conv2", "k2")], 10 * (call + 1))
    file.range("fc", 3000, 3100, domain=1)
    file.add(
        "CUDA_GRAPH_NODE_EVENTS",
        start=3050,
        end=3050,
        eventClass=77,
        globalTid=THREAD,
        nameId=0,
        graphNodeId=GRAPH | 1,
    )
    file.add(
        "CUDA_GRAPH_NODE_EVENTS", start=3200, end=3200, eventClass=77, globalTid=THREAD, nameId=0,
        graphNodeId=GRAPH | 2,
        originalGraphNodeId=GRAPH | 1,
    )  # fmt: skip
    file.call("cudaGraphLaunch_v10000", 4000, 4010, 50)
    file.kernel("k3", 4100, 50, node=GRAPH | 2)
    file.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["graphId"] = 7
    file.call("cudaMemcpyAsync_v3020", 5000, 5005, 60)
    gpu: dict[str, object] = {"deviceId": 0, "contextId": 1, "streamId": 13, "globalPid": PROCESS}
    file.add(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        start=5010,
        end=5020,
        correlationId=60,
        bytes=64,
        copyKind=1,
        srcKind=0,
        dstKind=2,
        **gpu,
    )
    file.call("cudaStreamSynchronize_v3020", 5100, 5300, 61)
    file.add(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        start=5110,
        end=5290,
        correlationId=61,
        syncType=3,
        eventId=0,
        **gpu,
    )
    file.add(
        "PROFILER_OVERHEAD",
        start=5400,
        end=5450,
        globalTid=THREAD,
        nameId=file.string("CUPTI: Buffer flush"),
    )
    file.add(
        "OSRT_API",
        start=5500,
        end=5600,
        eventClass=27,
        globalTid=THREAD,
        nameId=file.string("poll"),
    )
    file.add(
        "TARGET_INFO_GPU", id=0, cuDevice=0, name="NVIDIA H100", chipName="GH100", computeMajor=9,
        computeMinor=0, smCount=132,
        clockRate=1_980_000_000, totalMemory=85_000_000_000, memoryBandwidth=3_352_000_000_000,
        l2CacheSize=52_428_800,
    )  # fmt: skip
    return file


@cache
def newest() -> Trace:
    return read("3.25.0")


def read(schema: str) -> Trace:
    with TemporaryDirectory() as folder:
        return read_trace(write_in_schema(traced(), schema, Path(folder, "x.sqlite")))


def test_the_22_schemas_of_public_exports_are_known() -> None:
    assert list(schemas())[:2] == ["none", "2.9.1"]
    assert list(schemas()).index("3.25.0") == 21


@pytest.mark.parametrize("schema", schemas())
def test_every_table_is_the_same_whatever_the_schema(schema: str) -> None:
    trace = read(schema)
    assert trace.schema_version == (None if schema == "none" else schema)
    assert trace.notes == ()
    assert trace.dropped == ()
    for table in TABLES:
        assert getattr(trace, table).records() == getattr(newest(), table).records(), table


@pytest.mark.parametrize("schema", schemas())
def test_every_kernel_gets_its_layer_whatever_the_schema(schema: str) -> None:
    rows = map_trace(read(schema), [ENGINE]).mapped.table.records()
    assert [(row["layer_index"], row["method"]) for row in rows] == [
        *[(0, "nvtx"), (1, "nvtx")] * 2,
        (2, "graph-node"),
    ]


def test_the_trace_of_these_tests_is_what_it_is_meant_to_be() -> None:
    kernels = newest().kernels.records()
    assert [row["name"] for row in kernels] == ["k1", "k2", "k1", "k2", "k3"]
    assert (kernels[-1]["graph_id"], kernels[-1]["graph_node_id"]) == (7, GRAPH | 2)
    assert [row["original_graph_node_id"] for row in newest().cuda_graph_nodes.records()] == [
        None,
        GRAPH | 1,
    ]
    assert [row["name"] for row in newest().devices.records()] == ["NVIDIA H100"]


def test_a_table_and_a_column_that_a_version_renames_are_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_in_schema(traced(), "3.25.0", tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN demangledName TO fullName"
        )
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO MADE_UP_KERNELS")
    assert len(read_trace(path).kernels) == 0
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    monkeypatch.setattr(
        tables,
        "RENAMED",
        (("MADE_UP_KERNELS", kernel), ("fullName", f"{kernel}.demangledName"), *tables.RENAMED),
    )
    trace = read_trace(path)
    assert trace.notes == ()
    assert trace.kernels.records() == newest().kernels.records()


def test_until_2021_gpus_are_described_by_process_and_in_other_units(tmp_path: Path) -> None:
    file = traced()
    del file.rows["TARGET_INFO_GPU"]
    for pid in (1, 2):
        file.add(
            "TARGET_INFO_CUDA_GPU", vmId=0, name="Tesla V100-PCIE-32GB", deviceId=0, pid=pid,
            computeCapabilityMajor=7,
            computeCapabilityMinor=0, numMultiprocessors=80, coreClockRate=1_380_000,
            globalMemorySize=32_510,
            globalMemoryBandwidth=898_048_000, l2CacheSize=6_291_456,
        )  # fmt: skip
    (gpu,) = read_trace(write_in_schema(file, "none", tmp_path / "x.sqlite")).devices.records()
    assert (gpu["name"], gpu["sm_count"], gpu["clock_hz"]) == (
        "Tesla V100-PCIE-32GB",
        80,
        1_380_000_000,
    )
    assert (gpu["memory_bytes"], gpu["bandwidth_bytes_per_s"]) == (32_510 << 20, 898_048_000_000)


def test_from_3_24_on_graph_events_without_nodes_stand_beside_the_nodes(tmp_path: Path) -> None:
    file = traced()
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE CUDA_GRAPH_EVENTS (start, end, eventClass, globalTid, nameId, graphId,"
            " originalGraphId, graphExecId)"
        )
        connection.execute("INSERT INTO CUDA_GRAPH_EVENTS VALUES (1, 2, 95, 1, 0, 7, NULL, NULL)")
        connection.commit()
    trace = read_trace(write_in_schema(file, "3.24.0", path))
    assert trace.notes == ()
    assert trace.cuda_graph_nodes.records() == newest().cuda_graph_nodes.records()
