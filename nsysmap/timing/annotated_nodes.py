"""The time of kernels by the annotation of their CUDA graph nodes: the table
`graph_annotations`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.note import Note
from nsysmap.core.result_schema import GRAPH_ANNOTATIONS
from nsysmap.core.table import MISSING, Table
from nsysmap.inputs.torch.graph_annotations import NodeAnnotation
from nsysmap.text.units import counted


def annotations_table(annotations: Sequence[NodeAnnotation], kernels: Table) -> Table:
    """One row per annotated node, with the kernels that it ran and their time in ns."""
    nodes = np.array([one.graph_node_id for one in annotations], np.int64)
    order = np.argsort(nodes, kind="stable")
    ran, took = kernels.ints("graph_node_id"), kernels.ints("duration_ns")
    at = np.searchsorted(nodes[order], ran)
    place = order[np.minimum(at, len(order) - 1)] if len(order) else at
    known = (ran != MISSING) & (len(order) > 0)
    known[known] = nodes[place[known]] == ran[known]
    timed = known & (took != MISSING)
    count, time_ns = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    np.add.at(count, place[known], 1)
    np.add.at(time_ns, place[timed], took[timed])
    return Table.of_rows(
        GRAPH_ANNOTATIONS,
        [
            {
                "graph_node_id": one.graph_node_id,
                "name": one.name,
                "rest": one.rest or None,
                "kernels": int(count[row]),
                "time_ns": int(time_ns[row]),
            }
            for row, one in enumerate(annotations)
        ],
    )


def annotation_notes(table: Table, kernels: Table) -> tuple[Note, ...]:
    """How much of the report the annotations cover."""
    replayed = int((kernels.ints("graph_node_id") != MISSING).sum())
    covered = int(table.ints("kernels").sum())
    if not replayed:
        return (
            Note(
                "warning",
                "the graph annotations tell nothing here: no kernel of the report has the id of a"
                " graph node (record with --cuda-graph-trace=node)",
                brief="the graph annotations tell nothing: no kernel is of a graph's node",
            ),
        )
    if not covered:
        return (
            Note(
                "warning",
                f"the graph annotations are of other graphs: none of their"
                f" {counted(len(table), 'node')} is among those of the"
                f" {counted(replayed, 'kernel')} that CUDA graphs ran",
                brief="the graph annotations are of other graphs",
            ),
        )
    return (
        Note(
            "info",
            f"graph annotations: {covered:,} of the {counted(replayed, 'kernel')} that CUDA graphs"
            " ran are annotated",
        ),
    )
