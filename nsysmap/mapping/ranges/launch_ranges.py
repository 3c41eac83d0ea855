"""For each kernel, the layer range in which it was launched, or in which its graph node was
captured.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.intervals import Timed, innermost
from nsysmap.core.memory import Ints, in_pieces, whole
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, packed, slim
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges, spans
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace


@dataclass(frozen=True)
class Evidence:
    """One row per kernel."""

    held_place: Ints
    in_call: BoolArray  # launched outside all layer ranges, but inside an ExecutionContext:: range
    replayed: BoolArray  # replayed from a CUDA graph
    created: BoolArray  # … and the creation of its graph node is in the trace

    @property
    def place(self) -> IntArray:
        """Position in TensorRtRanges.layers of the innermost layer range, MISSING if none is."""
        return whole(self.held_place)


def gather_evidence(trace: Trace, tensorrt: TensorRtRanges) -> Evidence:
    """Locates each kernel's launch call among the ranges; for a replayed kernel, the place where
    its graph node was first created.

    The launch is joined by process and correlation id.  A node cloned into an instantiated graph
    names the node that it was cloned from; the chain ends at the node that stream capture created,
    at a moment when the layer's range was open.
    """
    kernels = trace.kernels
    replayed = kernels.ints("graph_node_id") != MISSING
    place, in_call = _spots(trace, tensorrt, replayed)
    created = np.zeros(len(kernels), np.bool_)
    if replayed.any() and len(trace.cuda_graph_nodes):
        root = root_nodes(
            trace.cuda_graph_nodes,
            kernels.ints("process"),
            np.where(replayed, kernels.ints("graph_node_id"), np.int64(MISSING)),
        )
        created = root >= 0
        moments = spans(trace.cuda_graph_nodes)
        place = np.where(
            replayed,
            gather(innermost(spans(trace.nvtx_ranges, tensorrt.layers), moments), root),
            place,
        )
    return Evidence(slim(place), packed(in_call), packed(replayed), packed(created))


def _spots(
    trace: Trace, tensorrt: TensorRtRanges, replayed: BoolArray
) -> tuple[IntArray, BoolArray]:
    """For each kernel that is not replayed from a CUDA graph: the position of the innermost layer
    range around its launch call or, without one, whether an ExecutionContext:: range surrounds it.
    """
    ranges, calls = Timed.of(trace.nvtx_ranges), Timed.of(trace.api_calls)
    layers = tensorrt.layers
    of_layer, of_call = (np.zeros(len(ranges), np.bool_) for _ in range(2))
    of_layer[layers], of_call[tensorrt.calls] = True, True
    # of each layer's range among them
    position = np.cumsum(np.append(of_layer, False), dtype=np.int32) - 1
    place, in_call = np.full(len(replayed), MISSING, np.int64), np.zeros(len(replayed), np.bool_)
    for rows, launch in in_pieces(trace.kernels.held_ints("launch")):
        asked = (launch >= 0) & ~replayed[rows]
        row = ranges.around(calls.take(launch[asked]), of_layer)
        found = np.full(len(rows), MISSING, np.int64)
        found[asked] = np.where(row >= 0, position.take(row, mode="clip"), np.int64(MISSING))
        stray = asked & (found == MISSING)
        place[rows] = found
        in_call[rows[stray]] = ranges.around(calls.take(launch[stray]), of_call) >= 0
    return place, in_call


def root_nodes(nodes: Table, process: IntArray, graph_node: IntArray) -> IntArray:
    """The row in graph_nodes of the first creation behind each (process, graphNodeId); MISSING if
    the trace does not have it.

    Follows ``original`` from clone to clone; a chain that leads out of the trace, or round in a
    circle, gives MISSING.
    """
    result = np.full(len(graph_node), MISSING, np.int64)
    if len(nodes) == 0 or len(graph_node) == 0:
        return result
    parent = _node_rows(nodes, nodes.ints("process"), nodes.ints("original_graph_node_id"))
    is_root = nodes.ints("original_graph_node_id") == MISSING
    root = np.where(is_root, np.arange(len(nodes)), parent)
    for _ in range(
        int(np.ceil(np.log2(len(nodes) + 1))) + 1
    ):  # pointer jumping: the distance doubles each time
        root = np.where(
            (root >= 0) & ~is_root[np.where(root >= 0, root, 0)],
            root[np.where(root >= 0, root, 0)],
            root,
        )
    root = np.where((root >= 0) & is_root[np.where(root >= 0, root, 0)], root, np.int64(MISSING))
    return gather(root, _node_rows(nodes, process, graph_node))


def node_chain(nodes: Table, process: int, graph_node: int) -> list[int]:
    """Rows in graph_nodes from a node's own creation back to the first node it was cloned from, as
    far as the trace goes.
    """
    chain: list[int] = []
    while graph_node != MISSING:
        (row,) = _node_rows(nodes, np.array([process]), np.array([graph_node])).tolist()
        if row < 0 or row in chain:
            break
        chain.append(row)
        graph_node = int(nodes.ints("original_graph_node_id")[row])
    return chain


def _node_rows(nodes: Table, process: IntArray, graph_node: IntArray) -> IntArray:
    """The row of each (process, graphNodeId): the last one if an id was reused, MISSING if there is
    none.
    """
    result = np.full(len(graph_node), MISSING, np.int64)
    processes = np.unique(nodes.ints("process"))
    for key in processes.tolist():
        rows = np.flatnonzero(nodes.ints("process") == key)
        rows = rows[np.argsort(nodes.ints("graph_node_id")[rows], kind="stable")]
        ids = nodes.ints("graph_node_id")[rows]
        asked = np.flatnonzero((process == key) & (graph_node != MISSING))
        at = np.searchsorted(ids, graph_node[asked], side="right") - 1
        found = (at >= 0) & (ids[np.maximum(at, 0)] == graph_node[asked])
        result[asked[found]] = rows[at[found]]
    return result
