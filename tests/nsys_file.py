"""Writes small nsys SQLite exports by hand, for tests that need a trace with known contents."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PID = 42
PROCESS = (1 << 48) | (PID << 24)
THREAD = PROCESS | 7

_COLUMNS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
        "demangledName", "shortName", "gridX", "gridY",
        "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
        "dynamicSharedMemory", "graphNodeId",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"),  # noqa: E501
    "NVTX_EVENTS": (
        "start", "end", "eventType", "rangeId", "text", "globalTid", "endGlobalTid", "textId",
        "domainId", "jsonTextId", "jsonText",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes",
        "copyKind",
        "srcKind", "dstKind", "graphNodeId",
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
        "graphId", "graphExecId",
    ),
    "META_DATA_CAPTURE": ("name", "value"),
    "TARGET_INFO_SYSTEM_ENV": ("name", "value"),
    "DIAGNOSTIC_EVENT": ("timestamp", "text"),
    "ProcessStreams": ("globalPid", "filenameId", "contentId"),
    "PROFILER_OVERHEAD": ("start", "end", "globalTid", "nameId", "returnValue"),
    "MPI_P2P_EVENTS": ("start", "end", "globalTid", "textId", "tag", "remoteRank", "size"),
    "CUDA_GRAPH_EVENTS": ("start", "end", "eventClass", "globalTid", "nameId", "graphNodeId", "originalGraphNodeId"),  # noqa: E501
}  # fmt: skip

Row = Mapping[str, object]


@dataclass
class NsysFile:
    """An export under construction: rows by table, and the strings they use."""

    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=lambda: {"[Unknown]": 0})
    version: str | None = "3.7.2"
    product: str = "2023.4.4.54"

    def string(self, text: str) -> int:
        """The StringIds id of a text."""
        return self.strings.setdefault(text, len(self.strings))

    def add(self, table: str, **values: object) -> None:
        """One row; columns left out are NULL."""
        self.rows.setdefault(table, []).append(values)

    def launch(
        self,
        name: str,
        at: int,
        correlation: int,
        *,
        thread: int = THREAD,
        api: str = "cudaLaunchKernel_v7000",
        took: int = 5,
    ) -> None:
        """A launch call of 2 ns at ``at``, and its kernel of so many ns that starts 10 ns later, on
        stream 13 of device 0.
        """
        self.call(api, at, at + 2, correlation, thread=thread)
        self.kernel(name, at + 10, correlation, process=thread & ~0xFFFFFF, took=took)

    def call(
        self, api: str, start: int, end: int, correlation: int, *, thread: int = THREAD
    ) -> None:
        """A call of the CUDA API."""
        name = self.string(api)
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            eventClass=0,
            globalTid=thread,
            correlationId=correlation,
            nameId=name,
            returnValue=0,
        )

    def kernel(
        self,
        name: str,
        start: int,
        correlation: int | None,
        *,
        process: int = PROCESS,
        node: int | None = None,
        stream: int = 13,
        grid: int = 1,
        took: int = 5,
    ) -> None:
        """A kernel of so many ns."""
        text = self.string(name)
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            start=start, end=start + took, deviceId=0, contextId=1, streamId=stream,
            correlationId=correlation, globalPid=process,
            demangledName=text, shortName=text, gridX=grid, gridY=1, gridZ=1, blockX=32, blockY=1,
            blockZ=1,
            registersPerThread=16, staticSharedMemory=0,
            dynamicSharedMemory=0, graphNodeId=node,
        )  # fmt: skip

    def domain(self, name: str, number: int, *, thread: int = THREAD) -> None:
        """The row that names an NVTX domain."""
        self.add(
            "NVTX_EVENTS", start=-5, eventType=75, text=name, globalTid=thread, domainId=number
        )

    def range(
        self,
        name: str,
        start: int,
        end: int | None,
        *,
        domain: int = 0,
        thread: int = THREAD,
        payload: str | None = None,
    ) -> None:
        """A push/pop range with inline text."""
        self.add(
            "NVTX_EVENTS",
            start=start,
            end=end,
            eventType=59,
            text=name,
            globalTid=thread,
            domainId=domain,
            jsonText=payload,
        )

    def write(self, path: Path) -> Path:
        """The finished file."""
        connection = sqlite3.connect(path)
        connection.execute(
            "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
        )
        connection.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(number, text) for text, number in self.strings.items()],
        )
        if self.version is not None:
            connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)")
            connection.executemany(
                "INSERT INTO META_DATA_EXPORT VALUES (?, ?)",
                [
                    ("EXPORT_SCHEMA_VERSION", self.version),
                    ("EXPORT_PRODUCT_VERSION", self.product),
                    ("EXPORT_HOST", "secret-host"),
                ],
            )
        for table, rows in self.rows.items():
            _fill(connection, table, _COLUMNS[table], rows)
        connection.commit()
        connection.close()
        return path


def _fill(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    declared = ", ".join(
        f"{column!r} {'TEXT' if column in ('text', 'jsonText', 'name', 'value') else 'INTEGER'}"
        for column in columns
    )
    connection.execute(f"CREATE TABLE {table} ({declared})")
    marks = ", ".join("?" for _ in columns)
    connection.executemany(
        f"INSERT INTO {table} VALUES ({marks})",
        [[row.get(column) for column in columns] for row in rows],
    )


def engine_call(
    file: NsysFile,
    at: int,
    layers: Sequence[tuple[str, str]],
    first_correlation: int,
    *,
    thread: int = THREAD,
    took: int = 5,
) -> int:
    """One enqueue at ``at``: per layer a TensorRT range of 20 ns with one launch in it; returns
    when it ended (domain 1 is TensorRT).
    """
    end = at + 10 + 20 * len(layers)
    file.range("ExecutionContext::enqueueV3", at, end, domain=1, thread=thread)
    for number, (layer, kernel) in enumerate(layers):
        begin = at + 5 + 20 * number
        file.range(layer, begin, begin + 15, domain=1, thread=thread)
        file.launch(kernel, begin + 5, first_correlation + number, thread=thread, took=took)
    return end
