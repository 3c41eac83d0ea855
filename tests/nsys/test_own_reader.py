"""Our own reader beside nsys: every value that both have of a report is the same."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from nsysmap.core.table import MISSING, IntArray, Text
from nsysmap.inputs.nsys.export import export
from nsysmap.inputs.nsys.report_tables import read_report
from tests.places import FIXTURES

ALWAYS = {
    "ANALYSIS_DETAILS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "PROCESSES", "PROFILER_OVERHEAD",
    "TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_STREAM", "TARGET_INFO_GPU",
    "TARGET_INFO_SESSION_START_TIME", "ThreadNames",
}  # fmt: skip
# what nsys 2023.4 leaves out of its exports, or writes of other events
NOT_EXPORTED = {
    "CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "DIAGNOSTIC_EVENT", "TARGET_INFO_CUDA_DEVICE",
}  # fmt: skip


def values(column: IntArray | Text) -> list[object]:
    if isinstance(column, Text):
        return list(column.list())
    return [None if value == MISSING else value for value in column.tolist()]


NEWER = {"CUDA_GRAPH_NODE_EVENTS", "DIAGNOSTIC_EVENT", "TARGET_INFO_CUDA_DEVICE"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("bert_trt10/sync", set()),
        ("bert_trt10/graph", set()),
        ("bert_split_trt10/pageable", {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}),
        ("decode_loop/graph_whole", {"CUPTI_ACTIVITY_KIND_MEMCPY"}),
        ("torch_encoder/eager", {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_MEMSET"}),
        ("two_processes/processes", set()),
        ("newer/aux_graph", NEWER),
        ("newer/bert_graph", NEWER),
        (
            "newer/llama_graph_whole",
            NEWER - {"CUDA_GRAPH_NODE_EVENTS"}
            | {
                "CUDA_GRAPH_EVENTS",
                "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                "CUPTI_ACTIVITY_KIND_MEMCPY",
            },
        ),
        ("newer/torch_sync", NEWER - {"CUDA_GRAPH_NODE_EVENTS"} | {"CUPTI_ACTIVITY_KIND_MEMCPY"}),
    ],
)
def test_every_table_and_column_has_the_values_that_nsys_exports(name: str, more: set[str]) -> None:
    path = FIXTURES / f"{name}.nsys-rep"
    shipped = path.with_suffix(".sqlite")
    if not shipped.exists() and shutil.which("nsys") is None:
        pytest.skip(f"no nsys is installed to export {name}")
    report = read_report(path)
    compared = set()
    with closing(sqlite3.connect(shipped if shipped.exists() else export(path))) as connection:
        strings = connection.execute("SELECT id, value FROM StringIds ORDER BY id").fetchall()
        assert dict(enumerate(report.strings)) == dict(strings)
        for table, columns in report.tables.items():
            theirs = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            both = [column for column in columns if column in theirs]
            if not both:
                assert table in NOT_EXPORTED
                continue
            rows = connection.execute(f"SELECT {', '.join(both)} FROM {table}").fetchall()
            for place, column in enumerate(both):
                assert values(columns[column]) == [row[place] for row in rows], (table, column)
            compared.add(table)
    assert compared >= ALWAYS | more
