"""The events of a report that make the rows of each table of an nsys export, and the field of an
event that each column holds.

An event is a message of two fields: its type, and its body, which is numbered by what kind of thing
happened.  The numbers were learned by lining up reports with what nsys itself exports of them;
docs/ says how each was, and in which versions it was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from nsysmap.core.records import dataclass

NVTX, SCHEDULING, CUDA, API_CALL, DIAGNOSTIC, PROCESS = 102, 106, 107, 108, 110, 113
UNIT = "inNanoseconds"
"""Fields of an NVTX event that are read as a check, not as a column."""

CLASS_FIELD = {CUDA: 7, API_CALL: 6}
"""The field in which the body of an event gives its nsys event class (ENUM_NSYS_EVENT_CLASS in an
export).
"""

CPU_SAMPLE = 104
"""Read only where somebody asks what a host thread did (report_samples)."""

KNOWN_BODIES = {
    CPU_SAMPLE: "CPU samples",
    SCHEDULING: "thread scheduling",
    109: "mapped files",
    123: "CPU and process counters",
    129: "files",
}
"""Bodies of events that are known, and that make no rows of a table when a report is read."""

KNOWN_CLASSES = frozenset({*range(97), 102, 107, 108, 109, 110})
"""Classes of events that are known (ENUM_NSYS_EVENT_CLASS; 102 is CUDA's compiler); what no table
has is not asked for.
"""


@dataclass(frozen=True)
class EventKind:
    """The events that make the rows of one table; a column's number is that of its field in the
    body, or in one message within it.
    """

    table: str
    body: int
    columns: Mapping[str, int]
    classes: tuple[int, ...] = ()  # none: all
    part: int = 0  # the body's field that holds one more message
    part_columns: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, int] = field(default_factory=dict)
    needed: tuple[str, ...] = ("start", "end")  # columns that every row has


_ON_GPU = {
    "start": 1, "end": 2, "correlationId": 3, "deviceId": 4, "contextId": 5, "streamId": 6,
    "globalPid": 8, "greenContextId": 9,
}  # fmt: skip
_CALL = {
    "start": 1,
    "end": 2,
    "correlationId": 3,
    "eventClass": 6,
    "nameId": 7,
    "returnValue": 8,
    "globalTid": 13,
}
_CUPTI = "CUPTI_ACTIVITY_KIND_"
_GPU_NEEDED = ("start", "end", "deviceId", "streamId")

KINDS = (
    EventKind(
        f"{_CUPTI}KERNEL",
        CUDA,
        _ON_GPU,
        (3,),
        101,
        {
            "demangledName": 1, "shortName": 2, "mangledName": 3, "gridX": 10, "gridY": 11,
            "gridZ": 12, "blockX": 13, "blockY": 14,
            "blockZ": 15, "staticSharedMemory": 16, "dynamicSharedMemory": 17,
            "localMemoryPerThread": 18, "localMemoryTotal": 19,
            "gridId": 20, "registersPerThread": 21, "sharedMemoryExecuted": 22, "cacheConfig": 23,
            "launchType": 24,
            "sharedMemoryRequestedPercentage": 25, "graphNodeId": 27,
            "sharedMemoryLimitConfig": 28, "graphId": 29,
        },
        needed=(
            *_GPU_NEEDED, "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
        ),
    ),
    EventKind(
        f"{_CUPTI}MEMCPY",
        CUDA,
        _ON_GPU,
        (1,),
        102,
        {
            "bytes": 1, "copyKind": 2, "srcKind": 4, "dstKind": 5, "migrationCause": 10,
            "graphNodeId": 11, "virtualAddress": 12,
            "graphId": 13, "copyCount": 16,
        },
        needed=(*_GPU_NEEDED, "bytes", "copyKind"),
    ),
    EventKind(
        f"{_CUPTI}MEMSET",
        CUDA,
        _ON_GPU,
        (2,),
        103,
        {"bytes": 1, "value": 2, "graphNodeId": 3, "memKind": 4, "graphId": 5},
        needed=(*_GPU_NEEDED, "bytes"),
    ),
    EventKind(
        f"{_CUPTI}SYNCHRONIZATION",
        CUDA,
        _ON_GPU,
        (5,),
        105,
        {"eventId": 1, "deprecatedSyncType": 2, "eventSyncId": 3, "syncType": 4},
    ),
    EventKind(f"{_CUPTI}CUDA_EVENT", CUDA, _ON_GPU, (6,), 106, {"eventId": 1, "eventSyncId": 2}),
    EventKind(
        f"{_CUPTI}GRAPH_TRACE",
        CUDA,
        _ON_GPU,
        (7,),
        107,
        {"graphId": 1, "graphExecId": 2},
        needed=(*_GPU_NEEDED, "graphId"),
    ),
    EventKind(
        f"{_CUPTI}RUNTIME",
        API_CALL,
        _CALL,
        (0, 1, 13, 26),
        needed=("start", "end", "nameId", "globalTid"),
    ),
    EventKind("PROFILER_OVERHEAD", API_CALL, _CALL, (3,)),
    EventKind(f"{_CUPTI}OVERHEAD", API_CALL, _CALL, (103,)),
    EventKind(
        "OSRT_API",
        API_CALL,
        {**_CALL, "nestingLevel": 20},
        (27, 31, 32),
        needed=("start", "end", "nameId", "globalTid"),
    ),
    EventKind(
        "CUDA_GRAPH_NODE_EVENTS",
        API_CALL,
        _CALL,
        (77,),
        33,
        {"graphNodeId": 1, "originalGraphNodeId": 2},
        needed=("start", "end", "globalTid", "graphNodeId"),
    ),
    EventKind("CUDA_GRAPH_EVENTS", API_CALL, _CALL, (94,), 37, {"graphId": 1, "graphExecId": 2}),
    EventKind("CUDA_GRAPH_EVENTS", API_CALL, _CALL, (95,), 38, {"graphId": 1}),
    EventKind(
        "CUDA_GRAPH_EVENTS",
        API_CALL,
        _CALL,
        (96,),
        39,
        {"graphId": 1, "originalGraphId": 2},
    ),
    EventKind(
        "NVTX_EVENTS",
        NVTX,
        {
            "eventType": 1, "start": 2, "rangeId": 4, "category": 5, "color": 6, "globalTid": 9,
            "end": 10, "endGlobalTid": 11,
            "textId": 12, "domainId": 13, UNIT: 14,
        },
        part=8,
        part_columns={
            "uint64Value": 1, "int64Value": 2, "uint32Value": 4, "int32Value": 5, "jsonTextId": 7,
        },
        texts={"text": 7},
        needed=("start", "eventType"),
    ),
    EventKind(
        "PROCESSES",
        PROCESS,
        {"timestamp": 1, "globalPid": 2},
        texts={"command": 5, "name": 6},
        needed=("globalPid",),
    ),
    EventKind(
        "DIAGNOSTIC_EVENT",
        DIAGNOSTIC,
        {"source": 2, "severity": 3, "globalPid": 5},
        part=1,
        part_columns={"timestamp": 1, "timestampType": 2},
        texts={"text": 4},
        needed=(),
    ),
)  # fmt: skip
