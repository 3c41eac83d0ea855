"""An export held in memory, so that a test can change one thing of a real capture: times, ids,
rows, processes, columns.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from nsysmap.analysis import Analysis, analyze_mapped
from nsysmap.core.table import MISSING, IntArray, Text
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.nsys.sqlite_columns import Database
from nsysmap.inputs.nsys.tables import in_memory
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.rules.packs import chosen_rules
from nsysmap.trace.reader import trace_of

Held = Mapping[str, Mapping[str, IntArray | Text]]
Column = IntArray | Text

TIMES = frozenset({"start", "end", "timestamp", "rawTimestamp", "eventTime"})
PROCESSES = frozenset({"globalTid", "globalPid", "endGlobalTid"})
STRINGS = frozenset(
    {"demangledName", "shortName", "mangledName", "nameId", "textId", "domainNameId"}
)
_PID_SHIFT = 24


def held(path: Path) -> Held:
    """All tables of an SQLite export but nsys's lists of constants; columns of real numbers are
    left out.
    """
    database = Database.open(path)
    found = {}
    for table, stored in database.stored.items():
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            declared = {
                row[1]: str(row[2]).upper()
                for row in connection.execute(f'PRAGMA table_info("{table}")')
            }
        texts = [name for name in stored.columns if "TEXT" in declared[name]]
        integers = [
            name
            for name in stored.columns
            if name not in texts and name not in stored.reals and "BLOB" not in declared[name]
        ]
        found[table] = database.read(table, integers, texts)
    return found


def analysed(tables: Held, engines: Sequence[Engine] = (), *, rules: bool = True) -> Analysis:
    """What nsysmap says of such a report."""
    trace = trace_of(in_memory(Path("report.sqlite"), "SQLite", tables), source="report.sqlite")
    return analyze_mapped(map_trace(trace, list(engines)), rules=chosen_rules() if rules else ())


def changed(
    tables: Held,
    names: frozenset[str],
    change: Callable[[IntArray], IntArray],
    *,
    of: Sequence[str] = (),
) -> Held:
    """The tables (``of``: only these) with every known value of the columns of these names
    changed.
    """

    def made(table: str, name: str, column: Column) -> Column:
        if name not in names or isinstance(column, Text) or (of and table not in of):
            return column
        return np.where(column == MISSING, column, change(np.where(column == MISSING, 0, column)))

    return {
        table: {name: made(table, name, column) for name, column in columns.items()}
        for table, columns in tables.items()
    }


def rows_of(columns: Mapping[str, Column], rows: IntArray) -> dict[str, Column]:
    """These rows of a table."""
    return {
        name: column.take(rows) if isinstance(column, Text) else column[rows]
        for name, column in columns.items()
    }


def length(columns: Mapping[str, Column]) -> int:
    """How many rows a table has."""
    return len(next(iter(columns.values()), ()))


def joined(one: Mapping[str, Column], other: Mapping[str, Column]) -> dict[str, Column]:
    """The rows of two tables of the same columns."""

    def both(a: Column, b: Column) -> Column:
        if isinstance(a, Text) or isinstance(b, Text):
            assert isinstance(a, Text)
            assert isinstance(b, Text)
            return Text.of([*a.list(), *b.list()])
        return np.concatenate([a, b])

    return {name: both(column, other[name]) for name, column in one.items()}


def with_other_process(tables: Held, pid_offset: int, *, of: Sequence[str] = ()) -> Held:
    """The tables (``of``: only these) with every row of a process there a second time, of a process
    with another number.
    """
    moved = changed(tables, PROCESSES, lambda ids: ids + (pid_offset << _PID_SHIFT))
    moved = changed(moved, frozenset({"pid", "processId"}), lambda ids: ids + pid_offset)
    return {
        table: joined(columns, moved[table])
        if (PROCESSES | {"processId"}) & columns.keys() and (not of or table in of)
        else columns
        for table, columns in tables.items()
    }  # fmt: skip


def told(analysis: Analysis) -> dict[str, object]:
    """What a user is told, in a form that does not depend on the order of rows or on the numbers
    that things have.
    """
    tables = analysis.tables
    kernels = (
        "start_ns",
        "end_ns",
        "name",
        "engine",
        "layer_index",
        "layer",
        "part",
        "method",
        "confidence",
        "inference",
        "position",
    )
    inferences = ("start_ns", "end_ns", "engine", "found_by", "launch_api", "warmup", "complete", "kernels", "launches", "enqueue_ns",  # noqa: E501
                  "gpu_busy_ns", "gpu_span_ns", "idle_ns")  # fmt: skip
    return {
        "kernels": sorted(str([row[name] for name in kernels]) for row in tables.kernels.records()),
        "inferences": [[row[name] for name in inferences] for row in tables.inferences.records()],
        "layers": [
            [row[name] for name in ("engine", "layer_index", "time_ns", "kernels")]
            for row in tables.layers.records()
        ],
        "idle": sorted(
            str([row["cause"], row["start_ns"], row["end_ns"]]) for row in tables.gaps.records()
        ),
        "findings": sorted(
            str((finding.rule, finding.cost_ns, finding.message)) for finding in analysis.findings
        ),
        "skipped": sorted(str((outcome.rule, outcome.skipped)) for outcome in analysis.skipped),
        "notes": sorted(f"{note.level}: {note.text}" for note in analysis.notes),
    }
