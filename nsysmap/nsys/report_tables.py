"""Reads a ``.nsys-rep`` into the tables of an nsys export, with nsys's own names, but without nsys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nsysmap.base.table import MISSING, IntArray, Text
from nsysmap.nsys.report_container import damage, open_container
from nsysmap.nsys.report_counts import disagreements
from nsysmap.nsys.report_events import Wanted, read_events
from nsysmap.nsys.report_facts import (
    capture_tables,
    collected,
    graph_trace,
    machine_tables,
    nsys_version,
    read_strings,
    thread_names,
)
from nsysmap.nsys.report_layout import KINDS, KNOWN_BODIES, KNOWN_CLASSES
from nsysmap.nsys.report_metrics import GPU_METRICS, METRIC_NAMES, Samples, metric_names, metric_values, sampled, samples

METRIC_COLUMNS = ("rawTimestamp", "timestamp", "typeId", "metricId", "value")
_SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"


@dataclass(frozen=True)
class Report:
    """A report, read: its tables by the names that nsys gives them in an export."""

    path: Path
    nsys_version: str | None  # of the nsys that wrote it
    strings: tuple[str, ...]  # StringIds: a string's number is its id
    tables: Mapping[str, Mapping[str, IntArray | Text]]
    samples: tuple[Samples, ...]  # of GPU metrics
    graph_trace: str | None  # node, graph, or None if the report does not say
    collected: tuple[str, ...]  # what the capture was asked for: Cuda, NvtxEvents, OSRuntime …
    unread: Mapping[str, int]  # what kinds of events there are that are not known → how many of each
    disagreements: tuple[str, ...]  # where nsys's own count of what it collected is not that of the rows

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the report has rows for that table, and that column in it."""
        if table == GPU_METRICS:
            return len(self.samples) > 0 and column in (None, *METRIC_COLUMNS)
        return table in self.tables and (column is None or column in self.tables[table])

    def table(self, name: str) -> Mapping[str, IntArray | Text]:
        """All columns of one table; none if the report does not have it.  GPU_METRICS is made anew each time, and large."""
        return metric_values(self.samples) if name == GPU_METRICS else self.tables.get(name, {})

    def read(self, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> dict[str, Any]:
        """The columns of one table, in the order of its rows: int64 arrays (MISSING for NULL), :class:`Text` for ``texts`` (empty is NULL).

        A column that the report does not have is all MISSING (or NULL); a table that it does not have is empty.
        """
        held = self.table(table)
        rows = len(next(iter(held.values()), ()))
        columns: dict[str, Any] = {}
        for name in integers:
            column = held.get(name)
            if isinstance(column, Text):
                raise TypeError(f"{table}.{name} is a text column")
            columns[name] = np.full(rows, MISSING, np.int64) if column is None else column
        for name in texts:
            text = held.get(name)
            if not isinstance(text, Text | None):
                raise TypeError(f"{table}.{name} is a column of integers")
            columns[name] = Text.same(None, rows) if text is None else text
        return columns


def read_report(path: Path, wanted: Wanted | None = None) -> Report:
    """The report's tables; of those that come from its events only the ones, and the columns, that are ``wanted``, if that is given.

    Raises NsysmapError if the file is no report, is damaged or cut off, or its counts disagree with what is in it.
    """
    container = open_container(path)
    strings = read_strings(container)
    with damage(path, "description of GPU metrics"):
        described = sampled(container.registry, strings)
    events = read_events(container, {one.type_id: one.size for one in described}, wanted)
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
    if "PROCESSES" in tables:
        tables["PROCESSES"] = _processes(tables["PROCESSES"])
    if _SYNC in tables:
        tables[_SYNC] = _sync_types(tables[_SYNC])
    unread = {
        f"event {body}" + (f" of class {number}" if number >= 0 else ""): count
        for (body, number), count in events.unread.items()
        if body not in KNOWN_BODIES and number not in KNOWN_CLASSES
    }
    left_out = frozenset() if wanted is None else frozenset(kind.table for kind in KINDS) - frozenset(wanted)
    counts = disagreements(tables, left_out)
    return Report(
        path, nsys_version(container), strings, tables, sampled_here, graph_trace(container), collected(container), unread, counts
    )


def _processes(raw: Mapping[str, IntArray | Text]) -> dict[str, IntArray | Text]:
    """One row per process whose command is known, called by its short name where that is told too."""
    command, name, pid = raw["command"], raw["name"], raw["globalPid"]
    if not isinstance(command, Text) or not isinstance(name, Text) or not isinstance(pid, np.ndarray):
        raise TypeError("PROCESSES has columns of other types")
    named = [short or long for short, long in zip(name.list(), command.list(), strict=True)]
    rows = np.array([text is not None for text in named], np.bool_)
    pid = pid[rows]
    return {"globalPid": pid, "pid": pid >> 24 & 0xFFFFFF, "name": Text.of(text for text in named if text is not None)}


def _sync_types(raw: Mapping[str, IntArray | Text]) -> dict[str, IntArray | Text]:
    """The table with one kind of synchronisation a row: nsys of 2025 on writes it into another field than before."""
    columns = dict(raw)
    new, old = columns.get("syncType"), columns.pop("deprecatedSyncType", None)
    if isinstance(new, np.ndarray) and isinstance(old, np.ndarray):
        columns["syncType"] = np.where(new == MISSING, old, new)
    return columns
