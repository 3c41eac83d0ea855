"""The order in which kernels were launched, and each one's place within its inference: defined here, once."""

from __future__ import annotations

import numpy as np

from nsysmap.base.groups import is_sorted, runs, sorted_order
from nsysmap.base.table import MISSING, IntArray, Table, taken_values, uniform


def launch_order(kernels: Table, rows: IntArray, group: IntArray) -> IntArray:
    """These rows, sorted by their ``group`` (one number a row), then by launch.

    A graph launch launches its kernels in the order of their graph nodes, in which stream capture created them.  A kernel whose
    launch is not in the trace counts as launched when it began.
    """
    launched, node, start = launch_time(kernels), kernels.ints("graph_node_id"), kernels.ints("start_ns")
    if len(rows) < len(kernels) or (rows[1:] <= rows[:-1]).any():
        launched, node, start = launched[rows], taken_values(node, rows), start[rows]
    node = start if uniform(node) and node[0] == MISSING else np.where(node == MISSING, start, node)
    if is_sorted(group, launched, node, start):
        return rows
    # mostly they are in order of launch already, group by group: two quick sorts of nearly sorted rows
    by_launch = sorted_order(launched, node, start)
    by_group: IntArray = np.argsort(group[by_launch], kind="stable")
    return rows[by_launch[by_group]]


def launch_time(kernels: Table) -> IntArray:
    """When each kernel was launched, ns; when it began where its launch is not in the trace."""
    launched = kernels.ints("launch_start_ns")
    return np.where(launched == MISSING, kernels.ints("start_ns"), launched)


def positions(inference: IntArray, order: IntArray) -> IntArray:
    """Each kernel's place within its inference, from 0; MISSING for kernels that are not in ``order`` (of `launch_order`)."""
    position = np.full(len(inference), MISSING, np.int64)
    _, first, size = runs(inference[order])
    position[order] = np.arange(len(order)) - np.repeat(first, size)
    return position
