"""The report as an SQLite database: the declared tables of the analysis, tied by foreign keys, with
the meaning of every column.

The schema is generated from the declarations.  Tables with a row for each event of the trace are
left out; `nsysmap map` and `nsysmap sql` write those.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nsysmap.answer.model import Answer
from nsysmap.core.schema import ALL_TABLES
from nsysmap.core.table import Column, Spec, Table
from nsysmap.output.json import SCHEMA

EVENTS = frozenset({
    "api_calls", "nvtx_ranges", "memcpys", "memsets", "syncs", "cuda_graph_nodes",
    "cuda_graph_traces", "overheads", "osrt_calls",
    "kernels", "gaps", "replayed_work",
})  # fmt: skip
"""Declared tables with a row for each event, which are not in the database."""
DB_TABLES = tuple(spec for spec in ALL_TABLES if spec.name not in EVENTS)
"""The declared tables that are."""

_TYPES = {"int": int, "float": float, "bool": int, "text": str}
_BATCH_ROWS = 500  # of one INSERT
_COLUMNS = "declared_columns"


def write_db(report: Answer, path: Path) -> None:
    """Write the report's tables as a new database to ``path``; the same report gives the same
    bytes.
    """
    import sqlite3

    import sqlite_utils

    database = sqlite_utils.Database(path)
    try:
        written: dict[str, Spec] = {}
        tables = report.tables.by_name()
        for spec in _referred_first([spec for spec in DB_TABLES if spec.name in tables]):
            _write_table(database, spec, tables[spec.name], written)
            written[spec.name] = spec
        _write_columns(database, written)
        database["report"].insert({"name": "schema", "value": SCHEMA}, pk="name")  # type: ignore[union-attr]  # a new name is a table
        database.create_view(
            "kernel_layers",
            "SELECT layers.name AS layer, layers.kind, kernel_time.name AS kernel,"
            " kernel_totals.summary, kernel_time.kernels, kernel_time.time_ns FROM kernel_time LEFT"
            " JOIN layers USING (layer_id) LEFT JOIN kernel_totals ON kernel_totals.name ="
            " kernel_time.name ORDER BY kernel_time.time_ns DESC",
        )
        database.conn.commit()
        database.vacuum()
    except sqlite3.OperationalError as error:
        raise OSError(
            errno.ENOSPC if "full" in str(error) else errno.EIO, f"{error}"
        ) from error  # as any file says that it cannot be written
    finally:
        database.conn.close()


def _referred_first(specs: Sequence[Spec]) -> list[Spec]:
    """The tables in order, each after those whose rows its columns refer to (except for tables that
    refer to each other).
    """
    ordered: dict[str, Spec] = {}
    names = {spec.name for spec in specs}
    while len(ordered) < len(specs):
        waiting = [spec for spec in specs if spec.name not in ordered]
        ready = [
            spec
            for spec in waiting
            if not {column.row_of for column in spec.columns} & names - ordered.keys() - {spec.name}
        ]
        for spec in ready or waiting[:1]:
            ordered[spec.name] = spec
    return list(ordered.values())


def _write_table(database: Any, spec: Spec, table: Table, held: Mapping[str, Spec]) -> None:
    created = database[spec.name].create(
        {column.name: _TYPES[column.kind] for column in spec.columns},
        pk=(spec.key[0] if len(spec.key) == 1 else spec.key) if spec.key else None,
        foreign_keys=[
            (column.name, column.row_of, held[column.row_of].key[0])
            for column in spec.columns
            if _ties(column, spec, held)
        ],
        not_null={column.name for column in spec.columns if not column.nullable},
    )
    created.insert_all(_rows(table), batch_size=_BATCH_ROWS)


def _ties(column: Column, spec: Spec, held: Mapping[str, Spec]) -> bool:
    """Whether the column names a row of another table in the database."""
    return (
        column.row_of != spec.name and column.row_of in held and len(held[column.row_of].key) == 1
    )


def _rows(table: Table) -> Iterator[dict[str, object]]:
    for row in table.records():
        yield {name: _storable(value) for name, value in row.items()}


def _storable(value: object) -> object:
    """The value as SQLite can store it: lone surrogates as escapes, and NULL for NaN and
    infinities.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_columns(database: Any, held: Mapping[str, Spec]) -> None:
    """Writes the meaning of every column."""
    database[_COLUMNS].insert_all(
        (
            {
                "table_name": spec.name,
                "column_name": column.name,
                "unit": column.unit or None,
                "meaning": column.comment,
            }
            for spec in held.values()
            for column in spec.columns
        ),
        pk=("table_name", "column_name"),
        columns={"table_name": str, "column_name": str, "unit": str, "meaning": str},
    )
