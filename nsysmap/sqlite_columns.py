"""Reads chosen columns of a stranger's SQLite file, read-only, into numpy and Arrow."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from nsysmap.errors import NsysmapError
from nsysmap.tables import MISSING, IntArray

_MAGIC = b"SQLite format 3\0"
_BATCH_ROWS = 65536
_DAMAGED = "export the report again: nsys export -t sqlite REPORT.nsys-rep"


def is_sqlite(path: Path) -> bool:
    """Whether the file begins as an SQLite database does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@dataclass(frozen=True)
class Database:
    """An SQLite file that is only ever read: opened immutable, so no lock, no journal and no write."""

    path: Path
    columns: Mapping[str, tuple[str, ...]]  # of every plain table; views and virtual tables are not trusted

    @staticmethod
    def open(path: Path) -> Database:
        """The file with its plain tables; NsysmapError where it is no SQLite file, truncated or damaged."""
        _check_length(path)
        try:
            with sqlite3.connect(_uri(path), uri=True) as connection:
                tables = connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
                ).fetchall()
                columns = {}
                for (table,) in tables:
                    rows = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
                    columns[table] = tuple(row[1] for row in rows if row[6] == 0)  # hidden != 0: generated, computed on reading
            connection.close()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _damaged(path, error) from error
        return Database(path, columns)

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the file has that table, and that column in it."""
        return table in self.columns and (column is None or column in self.columns[table])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a small query, as Python values."""
        try:
            connection = sqlite3.connect(_uri(self.path), uri=True)
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                return connection.execute(query).fetchall()
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from error

    def read(self, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> dict[str, Any]:
        """The columns of one table: int64 arrays (MISSING for NULL), Arrow string arrays (NULL kept) for ``texts``.

        A column that the file does not have is all MISSING (or NULL); a table that it does not have is empty.
        """
        import pyarrow as pa

        held = [name for name in (*integers, *texts) if self.has(table, name)]
        if not held:
            return {**{name: np.empty(0, np.int64) for name in integers}, **{name: pa.array([], pa.string()) for name in texts}}
        result = self._arrow(table, held, set(texts))
        columns: dict[str, Any] = {}
        for name in integers:
            columns[name] = (
                _int64(self.path, table, name, result.column(name)) if name in held else np.full(result.num_rows, MISSING, np.int64)
            )
        for name in texts:
            columns[name] = _strings(result.column(name)) if name in held else pa.nulls(result.num_rows, pa.string())
        return columns

    def _arrow(self, table: str, names: Sequence[str], texts: set[str]) -> Any:
        import adbc_driver_manager
        import adbc_driver_sqlite.dbapi

        # The driver infers a type from the first batch: a text column that begins with NULLs would be read as integers.
        wanted = ", ".join(f"coalesce({_quoted(name)}, '') AS {_quoted(name)}" if name in texts else _quoted(name) for name in names)
        try:
            with (
                adbc_driver_sqlite.dbapi.connect(_uri(self.path)) as connection,
                connection.cursor(adbc_stmt_kwargs={"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)}) as cursor,
            ):
                cursor.execute(f"SELECT {wanted} FROM {_quoted(table)}")
                return cursor.fetch_arrow_table()
        except (adbc_driver_manager.Error, UnicodeDecodeError, ValueError) as error:
            raise _damaged(self.path, error) from error


def _int64(path: Path, table: str, name: str, column: Any) -> IntArray:
    import pyarrow as pa

    if column.type not in (pa.int64(), pa.null()):
        raise NsysmapError(str(path), f"column {table}.{name} holds {column.type}, not integers", _DAMAGED)
    filled = column.cast(pa.int64()).fill_null(MISSING)
    values: IntArray = filled.to_numpy()
    return values


def _strings(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.string()).combine_chunks()
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _check_length(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(100)
    if header[: len(_MAGIC)] != _MAGIC:
        raise NsysmapError(str(path), "is not an SQLite file", "give a .nsys-rep or what `nsys export -t sqlite` made of one")
    if len(header) == 100:
        page = int.from_bytes(header[16:18], "big")
        expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
        if expected <= path.stat().st_size:
            return
    raise NsysmapError(str(path), "is cut short: the file is smaller than its own header says", _DAMAGED)


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(path: Path, error: Exception) -> NsysmapError:
    return NsysmapError(
        str(path), f"cannot be read as an nsys export ({str(error).splitlines()[0] if str(error) else type(error).__name__})", _DAMAGED
    )
