"""Reads what `nsys export -t json` and, from 2025 on, `-t jsonlines` write: one event per line, as
the rows of nsys's own tables.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.note import Note
from nsysmap.core.table import MISSING, IntArray, Text
from nsysmap.inputs.nsys.tables import Columns, NsysTables, in_memory

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_GPU = {"start": "startNs", "end": "endNs"} | {
    name: name for name in ("deviceId", "contextId", "streamId", "correlationId", "globalPid")
}
_HOST = {"start": "startNs", "end": "endNs", "nameId": "name"} | {
    name: name for name in ("eventClass", "globalTid", "returnValue")
}
_LAUNCH = (
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "registersPerThread",
)
# the key inside an event that says which table it is a row of → the table, and its columns by
# nsys's names
_GPU_EVENTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "kernel": (
        f"{_CUPTI}KERNEL",
        {name: name for name in ("demangledName", "shortName", "graphNodeId", "graphId", *_LAUNCH)},
    ),
    "memcpy": (
        f"{_CUPTI}MEMCPY",
        {"bytes": "sizebytes"}
        | {name: name for name in ("copyKind", "srcKind", "dstKind", "graphNodeId")},
    ),
    "memset": (
        f"{_CUPTI}MEMSET",
        {"bytes": "sizebytes"} | {name: name for name in ("value", "memKind", "graphNodeId")},
    ),
    "sync": (f"{_CUPTI}SYNCHRONIZATION", {"syncType": "syncType", "eventId": "eventId"}),
    "graph": (f"{_CUPTI}GRAPH_TRACE", {"graphId": "graphId", "graphExecId": "graphExecId"}),
}
_HOST_EVENTS = {
    **dict.fromkeys((0, 1, 13, 26), (f"{_CUPTI}RUNTIME", {"correlationId": "correlationId"})),
    3: ("PROFILER_OVERHEAD", {}),
    **dict.fromkeys((27, 31, 32), ("OSRT_API", {"nestingLevel": "nestingLevel"})),
    # by event class, see ENUM_NSYS_EVENT_CLASS of an SQLite export; other classes are of no table
    # that is read
}
_NODES = (
    "CUDA_GRAPH_NODE_EVENTS",
    {"graphNodeId": "graphNodeId", "originalGraphNodeId": "originalGraphNodeId"},
)
_NVTX = {
    "start": "Timestamp", "end": "EndTimestamp", "eventType": "Type", "rangeId": "RangeId",
    "globalTid": "GlobalTid",
    "endGlobalTid": "EndGlobalTid", "textId": "TextId", "domainId": "DomainId",
}  # fmt: skip
_LAYOUTS: Mapping[str, Mapping[str, str]] = (
    {table: {**_GPU, **columns} for table, columns in _GPU_EVENTS.values()}
    | {table: {**_HOST, **columns} for table, columns in _HOST_EVENTS.values()}
    | {_NODES[0]: {**_HOST, **_NODES[1]}, "NVTX_EVENTS": _NVTX}
)
_LONGEST_LINE = 1 << 30  # bytes: no row of an export comes near
_OTHER_FORM = "export it in another form: nsys export -t sqlite REPORT.nsys-rep"


def is_json_lines(head: bytes) -> bool:
    """Whether a file that begins so is such an export: its first line has the strings, or the first
    of them.
    """
    return head.startswith((b'{"data":[', b'{"type":"String",', b'{"Type":'))


def json_tables(path: Path) -> NsysTables:
    """The tables of such an export.  Raises NsysmapError if a line is no event, or no line is one
    that is known.
    """
    rows: dict[str, dict[str, array[int]]] = {}
    strings: dict[int, str] = {}
    texts: dict[str, int] = {}
    text_of_row = array("i")
    kinds: Counter[str] = Counter()
    for number, event in _events(path):
        if "Type" not in event:
            try:
                _add_strings(strings, event)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                raise NsysmapError(
                    str(path),
                    f"line {number:,} is not text from nsys ({type(error).__name__})",
                    _OTHER_FORM,
                ) from error
            continue
        kind = next((key for key in event if key != "Type"), "")
        kinds[kind] += 1
        body = event.get(kind)
        try:
            table, held = _row(kind, body) if isinstance(body, dict) else ("", {})
            if table:
                columns = rows.get(table) or rows.setdefault(
                    table, {name: array("q") for name in _LAYOUTS[table]}
                )
                for name, key in _LAYOUTS[table].items():
                    columns[name].append(_int64(held.get(key)))
                if table == "NVTX_EVENTS":
                    text = held.get("Text")
                    text_of_row.append(
                        texts.setdefault(text, len(texts)) if isinstance(text, str) and text else -1
                    )
        except (ValueError, TypeError, OverflowError) as error:
            raise NsysmapError(
                str(path), f"line {number:,} is not an nsys event ({error})", _OTHER_FORM
            ) from error
    if not rows and not strings:
        told = ", ".join(sorted(kinds)[:4]) or "no events"
        raise NsysmapError(
            str(path), f"contains JSON lines in an unknown layout ({told})", _OTHER_FORM
        )
    tables: dict[str, Columns] = {
        table: {name: np.frombuffer(values, np.int64) for name, values in columns.items()}
        for table, columns in rows.items()
    }
    if "NVTX_EVENTS" in tables:
        tables["NVTX_EVENTS"] = {
            **tables["NVTX_EVENTS"],
            "text": Text(np.array(text_of_row, np.int32), tuple(texts)),
        }
    tables["StringIds"] = _strings(strings)
    note = Note(
        "info",
        "JSON lines have no description of the GPU, no NVTX payloads and no nsys version; the other"
        " export formats do.",
    )
    return in_memory(path, "JSON lines", tables, notes=(note,))


def _events(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if not line.strip():
                continue
            try:
                event = json.loads(line)
            except (ValueError, RecursionError) as error:
                cut = "the file is cut short" if not line.endswith(b"\n") else type(error).__name__
                raise NsysmapError(
                    str(path), f"line {number:,} is not JSON ({cut})", _OTHER_FORM
                ) from error
            if not isinstance(event, dict):
                raise NsysmapError(str(path), f"line {number:,} is not an nsys event", _OTHER_FORM)
            yield number, event


def _row(kind: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The table that an event is a row of, empty if it is of none, and its values."""
    if kind == "NvtxEvent":
        return "NVTX_EVENTS", body
    if kind == "CudaEvent":
        for key, (table, _) in _GPU_EVENTS.items():
            if isinstance(body.get(key), dict):
                return table, {**body, **body[key]}
    if kind == "TraceProcessEvent":
        if isinstance(body.get("cudaGraphNodeCreation"), dict):
            return _NODES[0], {**body, **body["cudaGraphNodeCreation"]}
        if body.get("name") is not None and not any(
            isinstance(value, dict) for value in body.values()
        ):
            return _HOST_EVENTS.get(_int64(body.get("eventClass")), ("", {}))[0], body
    return "", {}


def _int64(value: object) -> int:
    """Protobuf's JSON writes integers of 64 bits as text; unsigned ones keep their bits."""
    if value is None:
        return MISSING
    number = int(value) if isinstance(value, (int, str)) else int("no integer")
    return number - 2**64 if 2**63 <= number < 2**64 else number


def _add_strings(strings: dict[int, str], event: Mapping[str, Any]) -> None:
    if event.get("type") == "String":
        strings[int(np.int64(_int64(event["id"])))] = str(event["value"])
    elif isinstance(event.get("data"), list):
        strings.update(
            (number, text) for number, text in enumerate(event["data"]) if isinstance(text, str)
        )


def _strings(strings: Mapping[int, str]) -> dict[str, IntArray | Text]:
    return {
        "id": np.array(list(strings), np.int64),
        "value": Text.of(text or None for text in strings.values()),
    }
