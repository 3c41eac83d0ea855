"""Reads a report without nsys, if none is installed or the report is newer: the same tables that
nsys would export.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.note import Note
from nsysmap.core.table import IntArray, Text
from nsysmap.inputs.nsys.report_container import open_container
from nsysmap.inputs.nsys.report_facts import nsys_version
from nsysmap.inputs.nsys.report_metrics import GPU_METRICS, metric_blocks
from nsysmap.inputs.nsys.report_tables import METRIC_COLUMNS, ReportTables, read_report
from nsysmap.inputs.nsys.tables import (
    ENVIRONMENT_VARIABLE,
    SAMPLES_TAKEN,
    STACKS,
    Columns,
    NsysTables,
    spelling,
)

FORM = "nsys-rep read by nsysmap"
_TAKEN, _STACKS = "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS"  # read only when asked for


def own_tables(path: Path) -> NsysTables:
    """The tables of a report, by nsys's names. Raises NsysmapError if the file is not a report, is
    damaged, or has an unknown layout.
    """
    report = read_report(path)
    tables: dict[str, Columns] = {
        **report.tables,
        "StringIds": {
            "id": np.arange(len(report.strings)),
            "value": Text.of(text or None for text in report.strings),
        },
        "META_DATA_CAPTURE": _said_of_the_capture(report),
    }
    columns = {name: list(held) for name, held in tables.items()}
    if report.samples:
        columns[GPU_METRICS] = list(METRIC_COLUMNS)
    if report.cpu_samples:
        columns |= {_TAKEN: list(SAMPLES_TAKEN), _STACKS: list(STACKS)}

    every = np.arange(1, report.cpu_samples + 1)

    def stacks(ids: IntArray) -> dict[str, IntArray]:
        from nsysmap.inputs.nsys.report_samples import stacks_of

        return stacks_of(path, ids)

    def fetch(table: str, integers: Sequence[str], texts: Sequence[str]) -> Columns:
        if table in (_TAKEN, _STACKS):
            blocks = list(fetch_blocks(table, integers))
            return {name: np.concatenate([one[name] for one in blocks]) for name in integers}
        held = report.table(table) if table == GPU_METRICS else tables[table]
        return {name: held[name] for name in (*integers, *texts)}

    def fetch_blocks(table: str, integers: Sequence[str]) -> Iterator[dict[str, IntArray]]:
        if table in (_TAKEN, _STACKS):
            from nsysmap.inputs.nsys.report_samples import sample_blocks

            yield from sample_blocks(path) if table == _TAKEN else [stacks(every)]
            return
        for held in metric_blocks(report.samples) if table == GPU_METRICS else [tables[table]]:
            yield {name: column for name in integers if not isinstance(column := held[name], Text)}

    return NsysTables(
        path,
        FORM,
        spelling(columns),
        fetch,
        report.nsys_version,
        tuple(_doubts(report)),
        fetch_blocks,
        fetch_stacks=stacks if report.cpu_samples else None,
    )


def version_in_report(path: Path) -> str | None:
    """The version of the nsys that wrote a report, from its container: until nsys 2023.2 the first
    line does not give it.
    """
    try:
        return nsys_version(open_container(path))
    except NsysmapError:
        return None


def _said_of_the_capture(report: ReportTables) -> Columns:
    """The options of the capture, in the form of an export's rows; of environment and command line
    only TensorRT's version is read.
    """
    rows = [("CAPTURE_EVENT_TYPE", what) for what in report.collected]
    rows += [("CUDA_GRAPH_TRACE_OPTIONS:MODE", report.graph_trace)] if report.graph_trace else []
    rows += (
        [(ENVIRONMENT_VARIABLE, f"TENSORRT_VERSION={report.tensorrt}")] if report.tensorrt else []
    )
    return {"name": Text.of(name for name, _ in rows), "value": Text.of(value for _, value in rows)}


def _doubts(report: ReportTables) -> list[Note]:
    notes = [
        Note("warning", f"The report may have been read incompletely: {told}.")
        for told in report.disagreements
    ]
    if report.unread:
        what = ", ".join(f"{count:,} of {kind}" for kind, count in sorted(report.unread.items()))
        notes.append(
            Note(
                "warning",
                "This version of nsysmap does not know some events of the report and leaves them"
                f" out: {what}.",
            )
        )
    return notes
