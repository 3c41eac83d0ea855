"""The order in which kernels were launched, and each one's position in its inference: defined here,
once.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import is_sorted, runs, sorted_order
from nsysmap.core.table import MISSING, IntArray, Table, uniform


def launch_order(kernels: Table, rows: IntArray, group: IntArray | None = None) -> IntArray:
    """These rows, sorted by their ``group`` (one number per row; one group if not given), then by
    launch.

    A graph launch launches its kernels in the order of their graph nodes, in which stream capture
    created them.  A kernel whose launch is not in the trace counts as launched when it began.
    """
    launched, start = (
        kernels.held_ints(name).take(rows) for name in ("launch_start_ns", "start_ns")
    )
    np.copyto(launched, start, where=launched == MISSING)
    node = kernels.ints_at("graph_node_id", rows)
    # a large column without any graph is not made
    node = start if uniform(node) and node[0] == MISSING else np.where(node == MISSING, start, node)
    keys = (launched, start) if node is start else (launched, node, start)
    if is_sorted(*keys if group is None else (group, *keys)):
        return rows
    # mostly they are in order of launch already, group by group: two quick sorts of nearly sorted
    # rows
    by_launch = sorted_order(*keys)
    if group is None:
        return rows[by_launch]
    by_group: IntArray = np.argsort(group[by_launch], kind="stable")
    return rows[by_launch[by_group]]


def launch_time(work: Table) -> IntArray:
    """When each piece of GPU work was launched, in nanoseconds; when it began if its launch is not
    in the trace.
    """
    launched = work.ints("launch_start_ns")
    return np.where(launched == MISSING, work.ints("start_ns"), launched)


def positions(group: IntArray) -> IntArray:
    """Each one's place within its group, from 0, of rows that lie group by group."""
    _, first, size = runs(group)
    return np.arange(len(group)) - np.repeat(first, size)
