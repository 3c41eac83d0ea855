"""Reads a ``.nsys-rep`` into the tables of an nsys export, with nsys's own names, but without
nsys.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Text
from nsysmap.inputs.nsys.report_container import damage, open_container
from nsysmap.inputs.nsys.report_counts import disagreements
from nsysmap.inputs.nsys.report_events import read_events
from nsysmap.inputs.nsys.report_facts import (
    capture_tables,
    collected,
    environment_variable,
    graph_trace,
    machine_tables,
    nsys_version,
    read_texts,
    thread_names,
)
from nsysmap.inputs.nsys.report_layout import CPU_SAMPLE, KNOWN_BODIES, KNOWN_CLASSES
from nsysmap.inputs.nsys.report_metrics import (
    GPU_METRICS,
    METRIC_NAMES,
    ReportSamples,
    metric_names,
    metric_values,
    sampled,
    samples,
)

METRIC_COLUMNS = ("rawTimestamp", "timestamp", "typeId", "metricId", "value")
_SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"


@dataclass(frozen=True)
class ReportTables:
    """A report, read: its tables by the names that nsys gives them in an export."""

    nsys_version: str | None  # of the nsys that wrote it
    strings: tuple[str, ...]  # StringIds: a string's number is its id
    tables: Mapping[str, Mapping[str, IntArray | Text]]
    samples: tuple[ReportSamples, ...]  # of GPU metrics
    graph_trace: str | None  # node, graph, or None if the report does not say
    tensorrt: str | None  # TENSORRT_VERSION in the environment of the program
    collected: tuple[str, ...]  # what the capture was asked for: Cuda, NvtxEvents, OSRuntime …
    cpu_samples: int  # how many there are (report_samples)
    # what kinds of events there are that are not known → how many of each
    unread: Mapping[str, int]
    # where nsys's own count of what it collected is not that of the rows
    disagreements: tuple[str, ...]

    def table(self, name: str) -> Mapping[str, IntArray | Text]:
        """All columns of one table; none if the report does not have it.  GPU_METRICS is made anew
        each time, and large.
        """
        return metric_values(self.samples) if name == GPU_METRICS else self.tables.get(name, {})


def read_report(path: Path) -> ReportTables:
    """The report's tables.

    Raises NsysmapError if the file is no report, is damaged or cut off, or its counts disagree with
    what is in it.
    """
    container = open_container(path)
    texts = read_texts(container)
    strings = texts.strings
    with damage(path, "description of GPU metrics"):
        described = sampled(container.registry, strings)
    events = read_events(container, {one.type_id: one.size for one in described})
    tables: dict[str, Mapping[str, IntArray | Text]] = {
        **events.tables,
        **machine_tables(container),
        **capture_tables(container),
    }
    sampled_here = samples(described, events.generic)
    if sampled_here:
        tables[METRIC_NAMES] = metric_names(sampled_here)
    names = thread_names(container)
    if len(names["nameId"]):
        tables["ThreadNames"] = names
    if len(texts.written["contentId"]):
        tables["ProcessStreams"] = texts.written
    if "PROCESSES" in tables:
        tables["PROCESSES"] = _processes(tables["PROCESSES"])
    if _SYNC in tables:
        tables[_SYNC] = _sync_types(tables[_SYNC])
    unread = {
        f"event {body}" + (f" of class {number}" if number >= 0 else ""): count
        for (body, number), count in events.unread.items()
        if body not in KNOWN_BODIES and number not in KNOWN_CLASSES
    }
    counts = disagreements(tables)
    return ReportTables(
        nsys_version(container),
        strings,
        tables,
        sampled_here,
        graph_trace(container),
        environment_variable(container, "TENSORRT_VERSION"),
        collected(container),
        events.unread.get((CPU_SAMPLE, -1), 0),
        unread,
        counts,
    )


def _processes(raw: Mapping[str, IntArray | Text]) -> dict[str, IntArray | Text]:
    """One row per process whose command is known, with its short name if the report has it."""
    command, name, pid = raw["command"], raw["name"], raw["globalPid"]
    if (
        not isinstance(command, Text)
        or not isinstance(name, Text)
        or not isinstance(pid, np.ndarray)
    ):
        raise TypeError("PROCESSES has columns of other types")
    named = [short or long for short, long in zip(name.list(), command.list(), strict=True)]
    rows = np.array([text is not None for text in named], np.bool_)
    pid = pid[rows]
    return {
        "globalPid": pid,
        "pid": pid >> 24 & 0xFFFFFF,
        "name": Text.of(text for text in named if text is not None),
    }


def _sync_types(raw: Mapping[str, IntArray | Text]) -> dict[str, IntArray | Text]:
    """The table with one kind of synchronisation a row: nsys of 2025 on writes it into another
    field than before.
    """
    columns = dict(raw)
    new, old = columns.get("syncType"), columns.pop("deprecatedSyncType", None)
    if isinstance(new, np.ndarray) and isinstance(old, np.ndarray):
        columns["syncType"] = np.where(new == MISSING, old, new)
    return columns
