"""Columns that nsys always writes and that results depend on: if an export lacks one, a warning
says what is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nsysmap.core.note import Note
from nsysmap.inputs.nsys.tables import NsysTables

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_LAUNCH = {"correlationId": "which call launched it", "globalPid": "which process it ran for"}
_PLACE = {"deviceId": "which GPU it ran on", "streamId": "which stream it ran on"}
_BLOCKS = "how many blocks a kernel has"
_THREADS = "how many threads a block has"
_CALL = {"globalTid": "which thread made a call", "nameId": "which function was called"}

NEEDED: Mapping[str, Mapping[str, str]] = {
    "StringIds": {"id": "the name of everything", "value": "the name of everything"},
    f"{_CUPTI}KERNEL": {
        **_LAUNCH,
        **_PLACE,
        "demangledName": "which kernel it was",
        "gridX": _BLOCKS,
        "gridY": _BLOCKS,
        "gridZ": _BLOCKS,
        "blockX": _THREADS,
        "blockY": _THREADS,
        "blockZ": _THREADS,
    },
    f"{_CUPTI}RUNTIME": {**_CALL, "correlationId": "what a call launched"},
    f"{_CUPTI}MEMCPY": {
        **_LAUNCH,
        **_PLACE,
        "bytes": "how much was copied",
        "copyKind": "from where to where it was copied",
    },
    f"{_CUPTI}MEMSET": {**_LAUNCH, **_PLACE, "bytes": "how much was set"},
    f"{_CUPTI}SYNCHRONIZATION": {**_LAUNCH, "syncType": "what was waited for"},
    "NVTX_EVENTS": {
        "eventType": "which events are ranges",
        "globalTid": "which thread a range belongs to",
        "text": "the text of some ranges",
        "textId": "the text of some ranges",
        "domainId": "the domain of a range, such as TensorRT",
    },
    "OSRT_API": _CALL,
}
"""For each table and column: what cannot be known without it."""

_TABULAR = ("SQLite", "Parquet", "Arrow")  # forms that have a column also where all of it is NULL


def missing_columns(tables: NsysTables) -> Iterator[Note]:
    """A warning for each existing table without a column that it always has; forms that omit empty
    columns allow no such warning.
    """
    if tables.form not in _TABULAR:
        return
    for table, needed in NEEDED.items():
        lacking = [
            column for column in needed if tables.has(table) and not tables.has(table, column)
        ]
        # one without times is not, which is said elsewhere
        read = table == "StringIds" or tables.has(table, "start")
        if lacking and read:
            unknown = " and ".join(dict.fromkeys(needed[column] for column in lacking))
            columns = f"column{'' if len(lacking) == 1 else 's'} {', '.join(lacking)}"
            told = (
                f"{table} has no {columns}, which nsys always writes: {unknown} is unknown, and"
                " what depends on it may be wrong."
            )
            brief = f"{table} has no {columns}: {unknown} is unknown"
            yield Note("warning", f"{told} Export the report again.", brief=brief)
