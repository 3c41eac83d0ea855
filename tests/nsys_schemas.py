"""Writes a trace in any schema that nsys has exported: the columns are those of public exports
(nsys_schemas.tsv).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from nsysmap.inputs.nsys.tables import RENAMED
from tests.nsys_file import NsysFile, Row

_FACTS = Path(__file__).with_suffix(".tsv")
_TYPES = {"": ("INTEGER", 0), "text": ("TEXT", ""), "real": ("REAL", 0.0)}
# which is another table from then on
_BEFORE_3_24 = {"CUDA_GRAPH_NODE_EVENTS": "CUDA_GRAPH_EVENTS"}


@cache
def schemas() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """The tables of every schema, the oldest first, each with its columns as nsys_schemas.tsv
    writes them.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in _FACTS.read_text().splitlines():
        if not line.startswith("#"):
            schema, table, columns = line.split("\t")
            found.setdefault(schema, {})[table] = tuple(columns.split())
    return found


def write_in_schema(file: NsysFile, schema: str, path: Path) -> Path:
    """The file with every table in that schema's columns; tables that no export of it had take
    those of the nearest schema that has them.

    What the schema has no column for is left out; columns without a value are NULL, or 0 and empty
    where they are NOT NULL.
    """
    rows = dict(file.rows)
    rows["StringIds"] = [{"id": number, "value": text} for text, number in file.strings.items()]
    if schema != "none":
        rows["META_DATA_EXPORT"] = [
            {"name": "EXPORT_SCHEMA_VERSION", "value": schema},
            {"name": "EXPORT_PRODUCT_VERSION", "value": "2023.4.4.54"},
        ]
    with closing(sqlite3.connect(path)) as connection:
        for table, held in rows.items():
            name, columns = _columns(schema, table)
            _fill(connection, name, columns, [_renamed(table, row) for row in held])
        connection.commit()
    return path


def _columns(schema: str, table: str) -> tuple[str, tuple[str, ...]]:
    """What a schema calls a table, and its columns."""
    order = list(schemas())
    place = order.index(schema)
    nearest = [schema, *reversed(order[:place]), *order[place + 1 :]]
    own = _BEFORE_3_24.get(table, table) if place < order.index("3.24.0") else table
    names = [
        own,
        *(theirs for theirs, ours in RENAMED if ours == table),
        _BEFORE_3_24.get(table, table),
    ]
    for known in nearest:
        for name in (name for name in names if name in schemas()[known]):
            columns = schemas()[known][name]
            if table != "CUDA_GRAPH_NODE_EVENTS" or "graphNodeId!" in columns:
                return own if name in _BEFORE_3_24.values() else name, columns
    raise KeyError(f"{schema}: {table}")


def _renamed(table: str, row: Row) -> Row:
    """The row with its values under the names that other versions have for their columns, too."""
    return {
        **row,
        **{
            theirs: row[own]
            for theirs, ours in RENAMED
            for of, _, own in [ours.partition(".")]
            if of == table and own in row
        },
    }


def _fill(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    declared, names, defaults = [], [], []
    for column in columns:
        name, _, kind = column.rstrip("!").partition(":")
        sql_type, zero = _TYPES[kind]
        declared.append(f'"{name}" {sql_type}' + (" NOT NULL" if column.endswith("!") else ""))
        names.append(name)
        defaults.append(zero if column.endswith("!") else None)
    connection.execute(f"CREATE TABLE {table} ({', '.join(declared)})")
    marks = ", ".join("?" for _ in names)
    values = [
        [
            default if row.get(name) is None else row[name]
            for name, default in zip(names, defaults, strict=True)
        ]
        for row in rows
    ]
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
