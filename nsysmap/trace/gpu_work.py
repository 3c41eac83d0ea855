"""All GPU work of any kind: kernels, copies, memsets, and whole CUDA graphs with hidden kernels."""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import distinct
from nsysmap.core.table import IntArray, Table, uniform
from nsysmap.trace.model import Trace


def gpu_work(trace: Trace) -> tuple[Table, Table, Table, Table]:
    """Kernels, copies, memsets and whole-graph runs, in this order; a row of any of them is one
    piece of GPU work.
    """
    return trace.kernels, trace.memcpys, trace.memsets, trace.cuda_graph_traces


def gpu_column(trace: Trace, name: str) -> IntArray:
    """One column of all GPU work, one value per piece, in the order of `gpu_work`; read-only."""
    parts = [table.ints(name) for table in gpu_work(trace) if len(table)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def gpu_work_by_device(trace: Trace) -> dict[int, tuple[IntArray, IntArray]]:
    """Starts and ends (ns) of all GPU work of each device, by device."""
    device, start, end = (gpu_column(trace, name) for name in ("device", "start_ns", "end_ns"))
    if uniform(device):
        return {int(device[0]): (start, end)}
    return {one: (start[device == one], end[device == one]) for one in distinct(device).tolist()}
