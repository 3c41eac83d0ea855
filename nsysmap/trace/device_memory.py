"""How much device memory a traced program held, from nsys's rows about each allocation (nsys
profile --cuda-memory-usage=true).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.table import MISSING
from nsysmap.inputs.nsys.forms import exported_tables
from nsysmap.inputs.nsys.tables import NsysTables

_TABLE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_COLUMNS = ("start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType")
_ON_DEVICE = (2, 4, 5)  # ENUM_CUDA_MEM_KIND: device, managed, device static
_ALLOCATION = 0  # ENUM_CUDA_DEV_MEM_EVENT_OPER


def peak_device_memory(report: str | Path) -> int | None:
    """The most bytes of device memory that the program held at a time, over all GPUs, of what it
    allocated while it was traced; None if the report does not say, or must be exported for it.
    """
    try:
        tables = exported_tables(named_path(report))
    except NsysmapError:
        return None
    return None if tables is None else peak_in(tables)


def peak_in(tables: NsysTables) -> int | None:
    """The same figure computed from nsys's own tables."""
    if not tables.has(_TABLE, "memoryOperationType"):
        return None
    raw = tables.read(_TABLE, _COLUMNS, ())
    device = np.isin(raw["memKind"], _ON_DEVICE) & (raw["bytes"] != MISSING)
    if not device.any():
        return None
    order = np.argsort(raw["start"][device], kind="stable")
    signs = np.where(raw["memoryOperationType"][device] == _ALLOCATION, 1, -1)
    held = np.cumsum((raw["bytes"][device] * signs)[order])
    return max(int(held.max()), 0)
