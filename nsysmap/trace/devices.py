"""The GPUs that nsys describes, by CUDA device ordinal."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.core.trace_schema import DEVICES
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.trace.raw_rows import compact, none_for_zero, zero_for_missing

_MEBIBYTE = 1 << 20  # bytes
_LEAST_BYTES = 1 << 30  # of a GPU's memory: what is less counts mebibytes
_COLUMNS = (
    "id",
    "cuDevice",
    "computeMajor",
    "computeMinor",
    "smCount",
    "clockRate",
    "totalMemory",
    "memoryBandwidth",
    "l2CacheSize",
)
# TARGET_INFO_CUDA_GPU of nsys 2021 and before, one row per process: rates in thousands; some
# versions count memory in MiB
_OLD_COLUMNS = (
    "deviceId", "computeCapabilityMajor", "computeCapabilityMinor", "numMultiprocessors",
    "coreClockRate", "globalMemorySize",
    "globalMemoryBandwidth", "l2CacheSize",
)  # fmt: skip


def devices_table(tables: NsysTables) -> Table:
    """The table `devices`; empty if the file describes none."""
    if not tables.has("TARGET_INFO_GPU", "cuDevice") and tables.has(
        "TARGET_INFO_CUDA_GPU", "deviceId"
    ):
        raw = tables.read("TARGET_INFO_CUDA_GPU", _OLD_COLUMNS, ("name",))
        raw = dict(zip(_COLUMNS[1:], (raw[name] for name in _OLD_COLUMNS), strict=True)) | {
            "name": raw["name"]
        }
        memory = raw["totalMemory"]
        raw["totalMemory"] = np.where(
            (memory > 0) & (memory < _LEAST_BYTES), memory * _MEBIBYTE, memory
        )
        for rate in ("clockRate", "memoryBandwidth"):
            raw[rate] = np.where(raw[rate] > 0, raw[rate] * 1000, raw[rate])
        return _table(raw, raw["cuDevice"], Text.same(None, len(memory)))
    raw = tables.read("TARGET_INFO_GPU", (*_COLUMNS, *_OLD_COLUMNS[1:3]), ("name", "chipName"))
    for name, old in zip(_COLUMNS[2:4], _OLD_COLUMNS[1:3], strict=True):
        raw[name] = np.where(raw[name] == MISSING, raw[old], raw[name])
    return _table(
        raw, raw["cuDevice"] if (raw["cuDevice"] != MISSING).all() else raw["id"], raw["chipName"]
    )


def _table(raw: dict[str, Any], device: IntArray, chip: Text) -> Table:
    order = np.argsort(device, kind="stable")
    _, first = np.unique(device[order], return_index=True)
    rows = order[first]
    return Table(
        DEVICES,
        {
            "device": zero_for_missing(device[rows]),
            "name": Text.of(name or "unknown GPU" for name in raw["name"].take(rows).list()),
            "chip": compact(chip.take(rows)),
            "compute_major": raw["computeMajor"][rows],
            "compute_minor": raw["computeMinor"][rows],
            "sm_count": none_for_zero(raw["smCount"][rows]),
            "clock_hz": none_for_zero(raw["clockRate"][rows]),
            "memory_bytes": none_for_zero(raw["totalMemory"][rows]),
            "bandwidth_bytes_per_s": none_for_zero(raw["memoryBandwidth"][rows]),
            "l2_bytes": none_for_zero(raw["l2CacheSize"][rows]),
        },
    )
