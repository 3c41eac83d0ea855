"""Makes the declared tables from nsys's own, whatever the schema version: columns are found by
name, and additions ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.groups import distinct
from nsysmap.core.memory import Narrow
from nsysmap.core.note import Note
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text, mapped, slim, uniform
from nsysmap.core.trace_schema import (
    API_CALLS,
    CUDA_GRAPH_NODES,
    CUDA_GRAPH_TRACES,
    EVENT_RECORDS,
    GPU_KERNELS,
    MEMCPYS,
    MEMSETS,
    OSRT_CALLS,
    OVERHEADS,
    SYNCS,
)
from nsysmap.inputs.nsys.columns_needed import missing_columns
from nsysmap.inputs.nsys.tables import KNOWN_MAJORS, NEWEST_KNOWN, NsysTables
from nsysmap.text.units import counted, percent
from nsysmap.trace import cuda_api
from nsysmap.trace.cpu_samples import CpuSamples, has_samples
from nsysmap.trace.devices import devices_table
from nsysmap.trace.gpu_metrics import GpuMetrics, has_gpu_metrics
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.host_program import hosts_of
from nsysmap.trace.launches import Launches
from nsysmap.trace.model import Dropped, Trace
from nsysmap.trace.nvtx_ranges import ranges_table
from nsysmap.trace.program_output import ProgramOutput, program_output
from nsysmap.trace.raw_rows import (
    NO_PROCESS,
    Strings,
    compact,
    kept,
    none_for_zero,
    pid_of,
    process_of,
    recoded,
    zero_for_missing,
)
from nsysmap.trace.recording import Recording, recording_of

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_KERNEL = f"{_CUPTI}KERNEL"
_GRAPH_TRACE = f"{_CUPTI}GRAPH_TRACE"
# the declared tables and nsys's tables that they are made of: any of these, and both columns, must
# be there
_SOURCES = {
    "kernels": (_KERNEL,),
    "api_calls": (f"{_CUPTI}RUNTIME",),
    "nvtx_ranges": ("NVTX_EVENTS",),
    "memcpys": (f"{_CUPTI}MEMCPY",),
    "memsets": (f"{_CUPTI}MEMSET",),
    "syncs": (f"{_CUPTI}SYNCHRONIZATION",),
    "cuda_graph_nodes": ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"),
    "cuda_graph_traces": (_GRAPH_TRACE,),
    "overheads": ("PROFILER_OVERHEAD", f"{_CUPTI}OVERHEAD"),
    "osrt_calls": ("OSRT_API",),
}
_DEVICE_TABLES = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")
_LONGEST_SUM_NS = 2**62  # 146 years: sums of times stay within 64 bits
_MOST_BLOCKS = 2**48  # of a launch
_MOST_BYTES = 2**50  # of a copy, or of shared memory
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_MEMORY_KINDS = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device",
    6: "managed",
}
_NO_EVENT = 2**32 - 1  # how nsys writes that a wait is for no event
_SYNC_KINDS = {1: "event", 2: "stream-wait", 3: "stream", 4: "context"}
_SYNC_FUNCTIONS = (
    ("StreamWait", "stream-wait"), ("EventSynchronize", "event"), ("StreamSynchronize", "stream"),
    ("Synchronize", "context"),
)  # fmt: skip
# CUPTI's overhead kinds that are no work of the profiler: the program has these waits without it
# too.
_CUDAS_OWN = re.compile(r"command buffer full|module loading|lazy function|compiler", re.IGNORECASE)
_REPORT_EXPECTED = (
    "give a .nsys-rep, or what `nsys export` made of one (-t sqlite, parquetdir, arrowdir or"
    " jsonlines)"
)


def trace_of(tables: NsysTables, *, source: str) -> Trace:
    """The trace in nsys's tables.  Raises NsysmapError if they are another program's, or their
    times make no sense.
    """
    _check_owner(tables)
    recording = recording_of(tables)
    unread = tuple(
        name
        for name, theirs in _SOURCES.items()
        if any(_timeless(tables, table) for table in theirs)
    )
    if "kernels" in unread:
        raise NsysmapError(
            str(tables.path),
            f"its table {_KERNEL} has no columns start and end (schema"
            f" {recording.schema_version or 'unknown'})",
            "use a newer nsysmap, or export the report with an nsys version from 2020 to 2026",
        )
    strings = Strings.read(tables)
    recording = replace(recording, output=_program_output(tables, strings))
    dropped: list[Dropped] = []
    calls = _api_calls(tables, strings, dropped)
    ranges = ranges_table(tables, strings, dropped)
    launches = Launches.of(calls)
    kernels = _kernels(tables, strings, launches, dropped)
    trace = Trace(
        source=source,
        nsys_version=recording.nsys_version,
        schema_version=recording.schema_version,
        kernels=kernels,
        api_calls=calls,
        nvtx_ranges=ranges,
        memcpys=_memcpys(tables, launches, dropped),
        memsets=_memsets(tables, launches, dropped),
        syncs=_syncs(tables, launches, dropped),
        event_records=_event_records(tables, launches),
        cuda_graph_nodes=_graph_nodes(tables),
        cuda_graph_traces=_graph_traces(tables, launches, dropped),
        overheads=_overheads(tables, strings, dropped),
        osrt_calls=_osrt_calls(tables, strings, dropped),
        devices=devices_table(tables),
        gpu_metrics=GpuMetrics(tables if has_gpu_metrics(tables) else None),
        cpu_samples=CpuSamples(tables if has_samples(tables) else None),
        dropped=tuple(dropped),
        absent=(*_absent(tables), *unread),
        recording=recording,
        hosts=hosts_of(tables, strings),
        notes=(
            *tables.notes,
            *_names_notes(tables),
            *_schema_notes(recording),
            *_unread_notes(unread),
            *_untold_notes(kernels),
            *missing_columns(tables),
        ),
    )
    _check_sums(tables.path, trace)
    return trace


def _check_owner(tables: NsysTables) -> None:
    """NsysmapError where these are tables of another program."""
    if tables.has("StringIds") or any(
        tables.has(table) for theirs in _SOURCES.values() for table in theirs
    ):
        if not tables.has("StringTable"):
            return
        raise NsysmapError(
            str(tables.path),
            "is a profile of nvprof, not of nsys",
            "capture again with nsys profile -t cuda,nvtx: nvprof does not record TensorRT ranges",
        )
    names = sorted(name for name, _ in tables.spelled.values() if not name.startswith("sqlite_"))
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    raise NsysmapError(
        str(tables.path),
        f"has no nsys tables (found: {shown or 'none'}; expected: StringIds)",
        _REPORT_EXPECTED,
    )


def _timeless(tables: NsysTables, table: str) -> bool:
    """Whether a table is there whose rows have no times; CUDA_GRAPH_EVENTS without nodes is another
    thing, and nothing is read of it.
    """
    if not tables.has(table) or (
        table == "CUDA_GRAPH_EVENTS" and not tables.has(table, "graphNodeId")
    ):
        return False
    return not (tables.has(table, "start") and tables.has(table, "end"))


def _schema_notes(recording: Recording) -> tuple[Note, ...]:
    """What an unknown schema means for the figures."""
    numbers = [int(part) for part in (recording.schema_version or "").split(".") if part]
    if not numbers:
        return ()
    known = f"{KNOWN_MAJORS[0]}.x to {NEWEST_KNOWN[0]}.{NEWEST_KNOWN[1]}"
    told = (
        f"The export has schema {recording.schema_version}; this version of nsysmap knows {known}."
    )
    if numbers[0] not in KNOWN_MAJORS:
        return (
            Note(
                "warning",
                f"{told} Tables and columns that were renamed count as absent, so results may be"
                " wrong.",
                brief=f"schema {recording.schema_version} is not known: results may be wrong",
            ),
        )
    if tuple(numbers[:2]) > NEWEST_KNOWN:
        return (Note("info", f"{told} Additions are ignored."),)
    return ()


def _names_notes(tables: NsysTables) -> tuple[Note, ...]:
    if tables.has("StringIds"):
        return ()
    brief = "The export has no table StringIds"
    told = (
        f"{brief}: no kernel, function or registered range has a name, so almost nothing can be"
        " said."
    )
    return (Note("error", f"{told} Export the report again, without --tables.", brief=brief),)


def _unread_notes(unread: Sequence[str]) -> tuple[Note, ...]:
    return tuple(
        Note(
            "warning",
            f"Nothing is known about {name}: their table has no columns start and end.",
            brief=f"nothing is known about {name}",
        )
        for name in unread
    )


def _untold_notes(kernels: Table) -> tuple[Note, ...]:
    """How many kernels lack the process that ran them, where others have it."""
    untold = int(np.count_nonzero(kernels.ints("process") == NO_PROCESS))
    if not 0 < untold < len(kernels):
        return ()
    told = (
        f"{untold:,} of {counted(len(kernels), 'kernel')} have no process in this report (NULL in"
        " globalPid), and so no launch and no inference: inferences lack kernels, and their times"
        " may be too short. Export the report again."
    )
    brief = f"{percent(untold, len(kernels), 0)} of kernels have no process, and no inference"
    return (Note("warning", told, brief=brief),)


def _check_sums(path: Path, trace: Trace) -> None:
    """NsysmapError where the rows of a table last so long together that sums of them would not be
    true.
    """
    timed = (*gpu_work(trace), trace.api_calls, trace.syncs, trace.overheads)
    for table in timed:
        total_ns = float((table.ints("end_ns") - table.ints("start_ns")).sum(dtype=np.float64))
        if total_ns > _LONGEST_SUM_NS:
            raise NsysmapError(
                str(path),
                f"its {len(table):,} {table.spec.name} last {total_ns / 1e9 / 86400 / 365:,.0f}"
                " years in total",
                "the file is damaged: copy it again, or export the report again",
            )


def _absent(tables: NsysTables) -> tuple[str, ...]:
    absent = [
        name for name, theirs in _SOURCES.items() if not any(tables.has(table) for table in theirs)
    ]
    return (*absent, *(() if any(tables.has(table) for table in _DEVICE_TABLES) else ("devices",)))


# --- the tables
# --------------------------------------------------------------------------------------------------


def _where(raw: dict[str, Any]) -> dict[str, Any]:
    process = process_of(zero_for_missing(raw["globalPid"]))
    return {
        "start_ns": raw["start"],
        "end_ns": slim(raw.pop("end"), raw["start"]),
        "device": zero_for_missing(raw["deviceId"]),
        "context": raw["contextId"],
        "stream": zero_for_missing(raw["streamId"]),
        "process": process,
        "pid": pid_of(process),
    }


_WHERE_COLUMNS = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")


def _extents(raw: Mapping[str, Any], what: str) -> dict[str, IntArray]:
    """The grid or block in x, y and z; all 0 if the file does not give them or no launch can have
    such values.
    """
    extents = [zero_for_missing(raw[f"{what}{axis}"]) for axis in "XYZ"]
    bounds = [distinct(extent) if uniform(extent) else extent for extent in extents]
    least = min(int(extent.min(initial=0)) for extent in bounds)
    if least < 0 or math.prod(int(extent.max(initial=0)) for extent in bounds) > _MOST_BLOCKS:
        product = np.prod([extent.astype(np.float64) for extent in extents], axis=0)
        possible = np.logical_and.reduce([extent >= 0 for extent in extents]) & (
            product <= _MOST_BLOCKS
        )
        extents = [np.where(possible, extent, 0) for extent in extents]
    return {f"{what}_{axis}": extent for axis, extent in zip("xyz", extents, strict=True)}


def _amount(values: IntArray) -> IntArray:
    """The values; 0 if the file does not give them or they are impossible."""
    return mapped(
        values,
        lambda held: (
            np.where((held < 0) | (held > _MOST_BYTES), np.int64(0), held)
            if _impossible(held)
            else held
        ),
    )


def _impossible(amounts: IntArray) -> bool:
    return bool(amounts.min(initial=0) < 0 or amounts.max(initial=0) > _MOST_BYTES)


def _program_output(tables: NsysTables, strings: Strings) -> ProgramOutput:
    if not tables.has("ProcessStreams", "contentId"):
        return ProgramOutput()
    raw = tables.read("ProcessStreams", ("filenameId", "contentId"))
    names, contents = (strings.text(raw[name]).list() for name in ("filenameId", "contentId"))
    return program_output(zip(names, contents, strict=True))


def _kernels(
    tables: NsysTables, strings: Strings, launches: Launches, dropped: list[Dropped]
) -> Table:
    raw = tables.read(
        _KERNEL,
        (
            *_WHERE_COLUMNS, "demangledName", "graphNodeId", "graphId", "gridX", "gridY", "gridZ",
            "blockX", "blockY", "blockZ",
            "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
        ),
    )  # fmt: skip
    raw = kept("kernels", raw, dropped, gpu=True)
    where = _where(raw)
    node = none_for_zero(raw["graphNodeId"])
    graph = node
    if not (uniform(node) and node[0] == MISSING):
        graph = np.where(
            node == MISSING,
            np.int64(MISSING),
            np.where(raw["graphId"] == MISSING, node >> 32, raw["graphId"]),
        )
    name = strings.text(raw["demangledName"])
    if (name.codes < 0).any():
        name = Text(
            np.where(name.codes < 0, len(name.values), name.codes).astype(np.int32),
            (*name.values, "(no name in the trace)"),
        )
    return Table(
        GPU_KERNELS,
        {
            "kernel_id": slim(np.arange(len(node))),
            **where,
            **launches.columns(where["process"], raw.pop("correlationId"), raw["start"]),
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


def _api_calls(tables: NsysTables, strings: Strings, dropped: list[Dropped]) -> Table:
    raw = tables.read(
        f"{_CUPTI}RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId", "returnValue")
    )
    raw = kept("api_calls", raw, dropped, gpu=False)
    names = strings.text(raw["nameId"])
    stems = [cuda_api.stem(value) for value in names.values]
    thread = zero_for_missing(raw["globalTid"])
    process = process_of(thread)
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


def _launched(
    raw: dict[str, Any], launches: Launches, dropped: list[Dropped], name: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    raw = kept(name, raw, dropped, gpu=True)
    where = _where(raw)
    return raw, {**where, **launches.columns(where["process"], raw["correlationId"], raw["start"])}


def _labels(values: IntArray, labels: Mapping[int, str], other: str) -> Text:
    return Text.of(labels.get(value, other) for value in values.tolist())


def _api_of(launches: Launches, rows: IntArray | Narrow) -> Text:
    return compact(
        launches.calls.text("api").take(rows.wide() if isinstance(rows, Narrow) else rows)
    )


def _asynchronous(api: Text) -> BoolArray:
    return api.where(
        lambda name: cuda_api.is_asynchronous(name) or name.endswith("GraphLaunch"), missing=True
    )


def _memcpys(tables: NsysTables, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = tables.read(
        f"{_CUPTI}MEMCPY",
        (*_WHERE_COLUMNS, *("copyKind", "srcKind", "dstKind", "bytes", "graphNodeId")),
    )
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
            "graph_node_id": none_for_zero(raw["graphNodeId"]),
        },
    )


def _memsets(tables: NsysTables, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = tables.read(f"{_CUPTI}MEMSET", (*_WHERE_COLUMNS, *("memKind", "bytes", "graphNodeId")))
    raw, columns = _launched(raw, launches, dropped, "memsets")
    return Table(
        MEMSETS,
        {
            **columns,
            "api": _api_of(launches, columns["launch"]),
            "target": _labels(raw["memKind"], _MEMORY_KINDS, "unknown"),
            "bytes": _amount(raw["bytes"]),
            "graph_node_id": none_for_zero(raw["graphNodeId"]),
        },
    )


def _syncs(tables: NsysTables, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = tables.read(f"{_CUPTI}SYNCHRONIZATION", (*_WHERE_COLUMNS, *("syncType", "eventId")))
    raw, columns = _launched(raw, launches, dropped, "syncs")
    for absent in ("launch_start_ns", "launch_end_ns"):
        del columns[absent]
    event = np.where(raw["eventId"] == _NO_EVENT, np.int64(MISSING), raw["eventId"])
    return Table(
        SYNCS,
        {
            **columns,
            "kind": _sync_kinds(raw["syncType"], _api_of(launches, columns["launch"])),
            "event": event,
        },
    )


def _sync_kinds(kinds: IntArray, api: Text) -> Text:
    """The kind of each synchronisation, by its function where that is known: nsys 2023.4 and 2025.3
    write other numbers than their own enumeration says.
    """
    labels = tuple(_SYNC_KINDS.values())
    found = [
        next((kind for part, kind in _SYNC_FUNCTIONS if part in name), None) for name in api.values
    ]
    by_api = np.array([*(labels.index(kind) if kind else -1 for kind in found), -1], np.int32)[
        api.codes
    ]
    by_number = np.select(
        [kinds == number for number in _SYNC_KINDS], range(len(labels)), len(labels)
    ).astype(np.int32)
    return Text(np.where(by_api >= 0, by_api, by_number), (*labels, "other"))


def _event_records(tables: NsysTables, launches: Launches) -> Table:
    raw = tables.read(f"{_CUPTI}CUDA_EVENT", ("streamId", "correlationId", "globalPid", "eventId"))
    process = process_of(zero_for_missing(raw["globalPid"]))
    launch = launches.rows(process, raw["correlationId"])
    return Table(
        EVENT_RECORDS,
        {
            "process": process,
            "stream": zero_for_missing(raw["streamId"]),
            "event": raw["eventId"],
            "launch": launch,
        },
    )


def _graph_nodes(tables: NsysTables) -> Table:
    """CUDA_GRAPH_NODE_EVENTS, called CUDA_GRAPH_EVENTS in files of 2023; newer files use that name
    for something else.
    """
    table = next(
        (
            name
            for name in ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
            if tables.has(name, "graphNodeId")
        ),
        "",
    )
    raw = tables.read(table, ("start", "end", "globalTid", "graphNodeId", "originalGraphNodeId"))
    order = np.argsort(raw["start"], kind="stable")
    raw = {key: value[order] for key, value in raw.items()}
    thread = zero_for_missing(raw["globalTid"])
    return Table(
        CUDA_GRAPH_NODES,
        {
            "start_ns": raw["start"],
            "end_ns": raw["end"],
            "process": process_of(thread),
            "thread": thread,
            "graph_node_id": zero_for_missing(raw["graphNodeId"]),
            "original_graph_node_id": none_for_zero(raw["originalGraphNodeId"]),
        },
    )


def _graph_traces(tables: NsysTables, launches: Launches, dropped: list[Dropped]) -> Table:
    raw = tables.read(_GRAPH_TRACE, (*_WHERE_COLUMNS, *("graphId", "graphExecId")))
    raw, columns = _launched(raw, launches, dropped, "cuda_graph_traces")
    return Table(
        CUDA_GRAPH_TRACES,
        {**columns, "graph_id": raw["graphId"], "graph_exec_id": raw["graphExecId"]},
    )


def _overheads(tables: NsysTables, strings: Strings, dropped: list[Dropped]) -> Table:
    """Both spellings of the table, without the waits that it lists but that CUDA itself causes."""
    parts = [
        tables.read(table, ("start", "end", "globalTid", "nameId"))
        for table in ("PROFILER_OVERHEAD", f"{_CUPTI}OVERHEAD")
    ]
    raw = kept(
        "overheads",
        {key: np.concatenate([part[key] for part in parts]) for key in parts[0]},
        dropped,
        gpu=False,
    )
    names = strings.text(raw["nameId"])
    rows = np.flatnonzero(~names.where(lambda name: _CUDAS_OWN.search(name) is not None))
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


def _osrt_calls(tables: NsysTables, strings: Strings, dropped: list[Dropped]) -> Table:
    raw = tables.read("OSRT_API", ("start", "end", "globalTid", "nameId", "eventClass"))
    # 31 and 32 are begin and finish pseudo rows
    plain = (raw["eventClass"] == 27) | (raw["eventClass"] == MISSING)
    raw = kept("osrt_calls", {key: value[plain] for key, value in raw.items()}, dropped, gpu=False)
    names = strings.text(raw["nameId"])
    thread = zero_for_missing(raw["globalTid"])
    return Table(
        OSRT_CALLS,
        {
            "start_ns": raw["start"],
            "end_ns": raw["end"],
            "pid": pid_of(process_of(thread)),
            "thread": thread,
            "name": recoded(names, list(names.values), ""),
        },
    )
