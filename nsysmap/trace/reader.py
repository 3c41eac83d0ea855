"""Reads an nsys SQLite export of any schema into the declared tables; the one module that knows nsys's own tables and columns."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nsysmap.base.errors import NsysmapError
from nsysmap.base.table import MISSING, BoolArray, IntArray, Table, Text
from nsysmap.base.trace_schema import (
    API_CALLS,
    CUDA_GRAPH_NODES,
    CUDA_GRAPH_TRACES,
    DEVICES,
    GPU_KERNELS,
    MEMCPYS,
    MEMSETS,
    OSRT_CALLS,
    OVERHEADS,
    SYNCS,
)
from nsysmap.trace import cuda_api
from nsysmap.trace.launches import Launches
from nsysmap.trace.model import Dropped, Trace
from nsysmap.trace.nvtx_ranges import ranges_table
from nsysmap.trace.raw_rows import PROCESS_MASK, Strings, compact, kept, pid_of, recoded, zero_for_missing
from nsysmap.trace.sqlite_columns import Database

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_KERNEL = f"{_CUPTI}KERNEL"
_GRAPH_TRACE = f"{_CUPTI}GRAPH_TRACE"
_SCHEMA_MAJOR = "3"
_LONGEST_SUM_NS = 2**62  # 146 years: sums of times stay within 64 bits
_MOST_BLOCKS = 2**48  # of a launch
_MOST_BYTES = 2**50  # of a copy, or of shared memory
_TIMED = (_KERNEL, _GRAPH_TRACE, "NVTX_EVENTS", *(f"{_CUPTI}{name}" for name in ("RUNTIME", "MEMCPY", "MEMSET", "SYNCHRONIZATION")))
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_MEMORY_KINDS = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device", 6: "managed"}
_SYNC_KINDS = {1: "event", 2: "stream-wait", 3: "stream", 4: "context"}
# CUPTI's overhead kinds that are no work of the profiler: the program has these waits without it too.
_CUDAS_OWN = re.compile(r"command buffer full|module loading|lazy function|compiler", re.IGNORECASE)
_COMPUTE_COLUMNS = (("computeMajor", "computeMinor"), ("computeCapabilityMajor", "computeCapabilityMinor"))


def read_trace(path: Path, *, source: str | None = None) -> Trace:
    """The trace in an nsys SQLite export; ``source`` is the report's name where it differs from the file's.

    NsysmapError where the file is no SQLite, damaged, or no nsys export.  Times stay as nsys wrote them: ns since the session began.
    """
    database = Database.open(path)
    if not database.has("StringIds"):
        raise NsysmapError(
            str(path), "is an SQLite file but not an nsys export", "give a .nsys-rep or what `nsys export -t sqlite` made of one"
        )
    versions = _versions(database)
    schema = versions.get("EXPORT_SCHEMA_VERSION")
    if schema and schema.split(".")[0] != _SCHEMA_MAJOR:
        raise NsysmapError(
            str(path),
            f"was exported with schema {schema}; this nsysmap reads schema {_SCHEMA_MAJOR}.x",
            "export it with an nsys of 2021 to 2026, or take a newer nsysmap",
        )
    for table in _TIMED:
        for column in ("start", "end"):
            if database.has(table) and not database.has(table, column):
                raise NsysmapError(str(path), f"its table {table} has no column {column}", "export the report again: nsys export -t sqlite")
    strings = Strings.read(database)
    dropped: list[Dropped] = []
    calls = _api_calls(database, strings, dropped)
    ranges = ranges_table(database, strings, dropped)
    launches = Launches.of(calls)
    kernels = _kernels(database, strings, launches, dropped)
    trace = Trace(
        source=source or path.name,
        nsys_version=versions.get("EXPORT_PRODUCT_VERSION"),
        schema_version=schema,
        kernels=kernels,
        api_calls=calls,
        nvtx_ranges=ranges,
        memcpys=_copies(database, launches, dropped),
        memsets=_memsets(database, launches, dropped),
        syncs=_syncs(database, launches, dropped),
        cuda_graph_nodes=_graph_nodes(database),
        cuda_graph_traces=_graph_runs(database, launches, dropped),
        overheads=_overheads(database, strings, dropped),
        osrt_calls=_os_calls(database, strings, dropped),
        devices=_devices(database),
        dropped=tuple(dropped),
        absent=_absent(database),
    )
    _check_sums(path, trace)
    return trace


def _check_sums(path: Path, trace: Trace) -> None:
    """NsysmapError where the rows of a table last so long together that sums of them would not be true."""
    timed = (trace.kernels, trace.api_calls, trace.nvtx_ranges, trace.memcpys, trace.memsets, trace.syncs, trace.cuda_graph_traces)
    for table in (*timed, trace.overheads, trace.osrt_calls):
        total_ns = float((table.ints("end_ns") - table.ints("start_ns")).sum(dtype=np.float64))
        if total_ns > _LONGEST_SUM_NS:
            raise NsysmapError(
                str(path), f"its {table.spec.name} last {total_ns / 1e9:.1e} s together, which is no time", "export the report again"
            )


def _versions(database: Database) -> dict[str, str]:
    """Only the version rows: the others hold host, user and paths."""
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if database.has(table, "name") and database.has(table, "value"):
            rows = database.rows(
                f"SELECT name, value FROM {table} WHERE name IN ('EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION') LIMIT 10"
            )
            return {str(name): str(value)[:40] for name, value in rows if value is not None}
    return {}


def _absent(database: Database) -> tuple[str, ...]:
    sources = {
        "kernels": (_KERNEL,),
        "api_calls": (f"{_CUPTI}RUNTIME",),
        "nvtx_ranges": ("NVTX_EVENTS",),
        "memcpys": (f"{_CUPTI}MEMCPY",),
        "memsets": (f"{_CUPTI}MEMSET",),
        "syncs": (f"{_CUPTI}SYNCHRONIZATION",),
        "cuda_graph_nodes": ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"),
        "cuda_graph_traces": (_GRAPH_TRACE,),
        "overheads": ("PROFILER_OVERHEAD",),
        "osrt_calls": ("OSRT_API",),
        "devices": ("TARGET_INFO_GPU",),
    }
    return tuple(name for name, tables in sources.items() if not any(database.has(table) for table in tables))


# --- strings and launches -------------------------------------------------------------------------------------------


# --- the tables -----------------------------------------------------------------------------------------------------


def _where(raw: Mapping[str, Any]) -> dict[str, Any]:
    process = zero_for_missing(raw["globalPid"]) & PROCESS_MASK
    return {
        "start_ns": raw["start"],
        "end_ns": raw["end"],
        "device": zero_for_missing(raw["deviceId"]),
        "context": raw["contextId"],
        "stream": zero_for_missing(raw["streamId"]),
        "process": process,
        "pid": pid_of(process),
    }


_WHERE_COLUMNS = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")


def _extents(raw: Mapping[str, Any], what: str) -> dict[str, IntArray]:
    """The grid or block in x, y and z; all 0, as where the file does not tell, where there can be no such launch."""
    extents = [zero_for_missing(raw[f"{what}{axis}"]) for axis in "XYZ"]
    least = min(int(extent.min(initial=0)) for extent in extents)
    if least < 0 or math.prod(int(extent.max(initial=0)) for extent in extents) > _MOST_BLOCKS:
        product = np.prod([extent.astype(np.float64) for extent in extents], axis=0)
        possible = np.logical_and.reduce([extent >= 0 for extent in extents]) & (product <= _MOST_BLOCKS)
        extents = [np.where(possible, extent, 0) for extent in extents]
    return {f"{what}_{axis}": extent for axis, extent in zip("xyz", extents, strict=True)}


def _amount(values: IntArray) -> IntArray:
    """The values; 0, as where the file does not tell, where they cannot be."""
    if values.min(initial=0) >= 0 and values.max(initial=0) <= _MOST_BYTES:
        return values
    return np.where((values < 0) | (values > _MOST_BYTES), np.int64(0), values)


def _none_for_zero(values: IntArray) -> IntArray:
    """Files of 2021 and before write 0 where newer ones have NULL."""
    return np.where(values <= 0, np.int64(MISSING), values)


def _kernels(database: Database, strings: Strings, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = database.read(
        _KERNEL,
        (
            *_WHERE_COLUMNS, "demangledName", "graphNodeId", "graphId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
            "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
        ),
    )  # fmt: skip
    raw, _ = kept("kernels", raw, dropped, gpu=True)
    where = _where(raw)
    node = _none_for_zero(raw["graphNodeId"])
    graph = np.where(node == MISSING, np.int64(MISSING), np.where(raw["graphId"] == MISSING, node >> 32, raw["graphId"]))
    name = strings.text(raw["demangledName"])
    if (name.codes < 0).any():
        name = Text(np.where(name.codes < 0, len(name.values), name.codes).astype(np.int32), (*name.values, "(no name in the trace)"))
    return Table(
        GPU_KERNELS,
        {
            "kernel_id": np.arange(len(node)),
            **where,
            **launches.columns(where["process"], raw["correlationId"]),
            "name": name,
            "graph_id": graph,
            "graph_node_id": node,
            **_extents(raw, "grid"),
            **_extents(raw, "block"),
            "registers": _amount(raw["registersPerThread"]),
            "static_shared_bytes": _amount(raw["staticSharedMemory"]),
            "dynamic_shared_bytes": _amount(raw["dynamicSharedMemory"]),
        },
    )


def _api_calls(database: Database, strings: Strings, dropped: list[Dropped]) -> Table:
    raw = database.read(f"{_CUPTI}RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId", "returnValue"))
    raw, _ = kept("api_calls", raw, dropped, gpu=False)
    names = strings.text(raw["nameId"])
    stems = [cuda_api.stem(value) for value in names.values]
    thread = zero_for_missing(raw["globalTid"])
    process = thread & PROCESS_MASK
    return Table(
        API_CALLS,
        {
            "start_ns": raw["start"],
            "end_ns": raw["end"],
            "process": process,
            "pid": pid_of(process),
            "thread": thread,
            "correlation": raw["correlationId"],
            "api": recoded(names, stems),
            "kind": recoded(names, [cuda_api.kind(value) for value in stems]),
            "result": zero_for_missing(raw["returnValue"]),
        },
    )


def _launched(raw: dict[str, Any], launches: Launches, dropped: list[Dropped], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    raw, _ = kept(name, raw, dropped, gpu=True)
    where = _where(raw)
    return raw, {**where, **launches.columns(where["process"], raw["correlationId"])}


def _labels(values: IntArray, labels: Mapping[int, str], other: str) -> Text:
    return Text.of(labels.get(value, other) for value in values.tolist())


def _api_of(launches: Launches, rows: IntArray) -> Text:
    return compact(launches.calls.text("api").take(rows))


def _asynchronous(api: Text) -> BoolArray:
    is_async = np.array([*(cuda_api.is_asynchronous(value) or value.endswith("GraphLaunch") for value in api.values), True])
    result: BoolArray = is_async[api.codes]
    return result


def _copies(database: Database, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = database.read(f"{_CUPTI}MEMCPY", (*_WHERE_COLUMNS, *("copyKind", "srcKind", "dstKind", "bytes", "graphNodeId")))
    raw, columns = _launched(raw, launches, dropped, "memcpys")
    api = _api_of(launches, columns["launch"])
    return Table(
        MEMCPYS,
        {
            **columns,
            "api": api,
            "kind": _labels(raw["copyKind"], _COPY_KINDS, "other"),
            "source": _labels(raw["srcKind"], _MEMORY_KINDS, "unknown"),
            "target": _labels(raw["dstKind"], _MEMORY_KINDS, "unknown"),
            "bytes": _amount(raw["bytes"]),
            "asynchronous": _asynchronous(api),
            "graph_node_id": _none_for_zero(raw["graphNodeId"]),
        },
    )


def _memsets(database: Database, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = database.read(f"{_CUPTI}MEMSET", (*_WHERE_COLUMNS, *("memKind", "bytes", "graphNodeId")))
    raw, columns = _launched(raw, launches, dropped, "memsets")
    return Table(
        MEMSETS,
        {
            **columns,
            "api": _api_of(launches, columns["launch"]),
            "target": _labels(raw["memKind"], _MEMORY_KINDS, "unknown"),
            "bytes": _amount(raw["bytes"]),
            "graph_node_id": _none_for_zero(raw["graphNodeId"]),
        },
    )


def _syncs(database: Database, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = database.read(f"{_CUPTI}SYNCHRONIZATION", (*_WHERE_COLUMNS, *("syncType",)))
    raw, columns = _launched(raw, launches, dropped, "syncs")
    for absent in ("launch_start_ns", "launch_end_ns"):
        del columns[absent]
    return Table(SYNCS, {**columns, "kind": _labels(raw["syncType"], _SYNC_KINDS, "other")})


def _graph_nodes(database: Database) -> Table:
    """CUDA_GRAPH_NODE_EVENTS, which files of 2023 call CUDA_GRAPH_EVENTS; newer files use that name for something else."""
    table = next((name for name in ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS") if database.has(name, "graphNodeId")), "")
    raw = database.read(table, ("start", "end", "globalTid", "graphNodeId", "originalGraphNodeId"))
    order = np.argsort(raw["start"], kind="stable")
    raw = {key: value[order] for key, value in raw.items()}
    thread = zero_for_missing(raw["globalTid"])
    return Table(
        CUDA_GRAPH_NODES,
        {
            "start_ns": raw["start"],
            "end_ns": raw["end"],
            "process": thread & PROCESS_MASK,
            "thread": thread,
            "graph_node_id": zero_for_missing(raw["graphNodeId"]),
            "original_graph_node_id": _none_for_zero(raw["originalGraphNodeId"]),
        },
    )


def _graph_runs(database: Database, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = database.read(_GRAPH_TRACE, (*_WHERE_COLUMNS, *("graphId", "graphExecId")))
    raw, columns = _launched(raw, launches, dropped, "cuda_graph_traces")
    return Table(CUDA_GRAPH_TRACES, {**columns, "graph_id": raw["graphId"], "graph_exec_id": raw["graphExecId"]})


def _overheads(database: Database, strings: Strings, dropped: list[Dropped]) -> Table:
    """Both spellings of the table, without the waits that it lists but that CUDA itself causes."""
    parts = [database.read(table, ("start", "end", "globalTid", "nameId")) for table in ("PROFILER_OVERHEAD", f"{_CUPTI}OVERHEAD")]
    raw, _ = kept("overheads", {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}, dropped, gpu=False)
    names = strings.text(raw["nameId"])
    by_cuda = np.array([*(_CUDAS_OWN.search(value) is not None for value in names.values), False])[names.codes]
    rows = np.flatnonzero(~by_cuda)
    names = names.take(rows)
    return Table(
        OVERHEADS,
        {
            "start_ns": raw["start"][rows],
            "end_ns": raw["end"][rows],
            "thread": raw["globalTid"][rows],
            "name": recoded(names, list(names.values), ""),
        },
    )


def _os_calls(database: Database, strings: Strings, dropped: list[Dropped]) -> Table:
    raw = database.read("OSRT_API", ("start", "end", "globalTid", "nameId", "eventClass"))
    plain = (raw["eventClass"] == 27) | (raw["eventClass"] == MISSING)  # 31 and 32 are begin and finish pseudo rows
    raw, _ = kept("osrt_calls", {key: value[plain] for key, value in raw.items()}, dropped, gpu=False)
    names = strings.text(raw["nameId"])
    thread = zero_for_missing(raw["globalTid"])
    return Table(
        OSRT_CALLS,
        {
            "start_ns": raw["start"],
            "end_ns": raw["end"],
            "pid": pid_of(thread & PROCESS_MASK),
            "thread": thread,
            "name": recoded(names, list(names.values), ""),
        },
    )


def _devices(database: Database) -> Table:
    table = "TARGET_INFO_GPU"
    major, minor = next(((a, b) for a, b in _COMPUTE_COLUMNS if database.has(table, a)), _COMPUTE_COLUMNS[0])
    columns = ("cuDevice", "id", major, minor, "smCount", "clockRate", "totalMemory", "memoryBandwidth", "l2CacheSize")
    raw = database.read(table, columns, ("name", "chipName"))
    device = raw["cuDevice"] if (raw["cuDevice"] != MISSING).all() else raw["id"]
    order = np.argsort(device, kind="stable")
    _, first = np.unique(device[order], return_index=True)
    rows = order[first]
    return Table(
        DEVICES,
        {
            "device": zero_for_missing(device[rows]),
            "name": Text.of(name or "unknown GPU" for name in raw["name"].take(rows).list()),
            "chip": compact(raw["chipName"].take(rows)),
            "compute_major": raw[major][rows],
            "compute_minor": raw[minor][rows],
            "sm_count": _none_for_zero(raw["smCount"][rows]),
            "clock_hz": _none_for_zero(raw["clockRate"][rows]),
            "memory_bytes": _none_for_zero(raw["totalMemory"][rows]),
            "bandwidth_bytes_per_s": _none_for_zero(raw["memoryBandwidth"][rows]),
            "l2_bytes": _none_for_zero(raw["l2CacheSize"][rows]),
        },
    )
