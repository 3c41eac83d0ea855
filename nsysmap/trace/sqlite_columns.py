"""Reads chosen columns of a stranger's SQLite file, read-only, into numpy arrays."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from nsysmap.base.errors import NsysmapError
from nsysmap.base.table import MISSING, CodeArray, IntArray, Text
from nsysmap.trace.sqlite_pages import Stored, UnsupportedError, decoded, numbering, read_table

_MAGIC = b"SQLite format 3\0"
_BATCH_ROWS = 1024
_LEAST_BYTES = 6  # that a row takes in a page: a pointer to it, and itself
_DAMAGED = "export the report again: nsys export -t sqlite REPORT.nsys-rep"


def is_sqlite(path: Path) -> bool:
    """Whether it is a file that begins as an SQLite database does; what cannot be read does not."""
    try:
        if not path.is_file():
            return False  # a pipe would be read and could not be read again
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


@dataclass(frozen=True)
class Database:
    """An SQLite file that is only ever read: opened immutable, so no lock, no journal and no write."""

    path: Path
    columns: Mapping[str, tuple[str, ...]]  # of every plain table; views and virtual tables are not trusted
    stored: Mapping[str, Stored]  # the tables whose pages can be decoded here

    @staticmethod
    def open(path: Path) -> Database:
        """The file with its plain tables; NsysmapError where it is no SQLite file, truncated, damaged or still being written."""
        _check_length(path)
        _check_finished(path)
        try:
            with closing(sqlite3.connect(_uri(path), uri=True)) as connection:
                tables = connection.execute(
                    "SELECT CAST(name AS TEXT), rootpage FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
                ).fetchall()
                columns = {}
                stored = {}
                for table, root in tables:
                    columns[table], plain = _stored(connection, table, root)
                    if plain is not None:
                        stored[table] = plain
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _damaged(path, error) from error
        return Database(path, columns, stored)

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the file has that table, and that column in it."""
        return table in self.columns and (column is None or column in self.columns[table])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a small query, as Python values."""
        try:
            with closing(_connected(self.path)) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from error

    def read(self, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> dict[str, Any]:
        """The columns of one table, in the order of its rows: int64 arrays (MISSING for NULL), :class:`Text` for ``texts`` (empty is NULL).

        A column that the file does not have is all MISSING (or NULL); a table that it does not have is empty.
        """
        held = [name for name in integers if self.has(table, name)], [name for name in texts if self.has(table, name)]
        columns: dict[str, Any] = dict(self._read(table, *held)) if any(held) else {}
        rows = len(next(iter(columns.values()), ()))
        for name in integers:
            columns.setdefault(name, np.full(rows, MISSING, np.int64))
        for name in texts:
            columns.setdefault(name, Text.same(None, rows))
        return columns

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> dict[str, IntArray | Text]:
        stored = self.stored.get(table)
        if stored is not None:
            try:
                return read_table(self.path, stored, integers, texts)
            except UnsupportedError:
                pass  # SQLite reads all that is not damaged, and says what is
        return read_rows(self.path, table, integers, texts)


def read_rows(path: Path, table: str, integers: Sequence[str], texts: Sequence[str]) -> dict[str, IntArray | Text]:
    """The same columns as :meth:`Database.read`, as SQLite hands out the rows: slower, and of any file that SQLite can read."""
    names = (*integers, *texts)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    seen = {name: numbering() for name in texts}
    left = 2 * path.stat().st_size  # twice, for texts that grow when they become UTF-8
    try:
        with closing(sqlite3.connect(_uri(path), uri=True)) as connection:
            connection.text_factory = bytes
            # rows in their order, not in that of an index which has these columns too
            cursor = connection.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)} NOT INDEXED")
            while rows := cursor.fetchmany(_BATCH_ROWS):
                left -= len(rows) * _LEAST_BYTES
                for name, values in zip(names, zip(*rows, strict=True), strict=True):
                    if name in seen:
                        left -= sum(len(value) for value in values if isinstance(value, bytes))
                        parts[name].append(_codes(seen[name], values))
                    else:
                        parts[name].append(_int64(path, f"{table}.{name}", values))
                if left < 0:  # pages that are in the table many times over, or cells many times in a page
                    raise _damaged(path, ValueError(f"more in {table} than there is in the file"))
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error
    result: dict[str, IntArray | Text] = {name: np.concatenate([np.empty(0, np.int64), *parts[name]]) for name in integers}
    for name in texts:
        result[name] = decoded(np.concatenate([np.empty(0, np.int32), *parts[name]]), list(seen[name]))
    return result


def _int64(path: Path, column: str, values: Sequence[object]) -> IntArray:
    others = set(map(type, values)) - {int, type(None)}
    if others:
        raise NsysmapError(str(path), f"column {column} holds {'real numbers' if float in others else 'text'}, not only integers", _DAMAGED)
    return np.array([MISSING if value is None else value for value in values], np.int64)


def _codes(seen: dict[bytes, int], values: Sequence[object]) -> CodeArray:
    texts = [value if isinstance(value, bytes) else b"" if value is None else str(value).encode() for value in values]
    return np.array([seen[text] if text else -1 for text in texts], np.int32)


def _stored(connection: sqlite3.Connection, table: str, root: object) -> tuple[tuple[str, ...], Stored | None]:
    """The columns of a table that are stored and not computed, and how they are stored, if that is in the plainest way."""
    rows = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()  # number, name, type, not null, default, key, hidden
    columns = tuple(row[1] for row in rows if row[6] == 0)  # hidden != 0: generated, computed on reading
    keys = [row for row in rows if row[5]]
    if len(columns) < len(rows) or not isinstance(root, int):
        return columns, None
    rowid = None
    if len(keys) == 1 and str(keys[0][2]).upper() == "INTEGER":
        indexes = connection.execute(f"PRAGMA index_list({_quoted(table)})").fetchall()
        if not any(index[3] == "pk" for index in indexes):  # INTEGER PRIMARY KEY DESC has one, and is a column like any other
            rowid = keys[0][1]
    reals = frozenset(row[1] for row in rows if _is_real(str(row[2]).upper()))
    return columns, Stored(root, columns, rowid, reals, frozenset(row[1] for row in rows if row[4] is not None))


def _is_real(declared: str) -> bool:
    """Whether a column declared so has REAL affinity, by the rules of https://www.sqlite.org/datatype3.html."""
    before = any(word in declared for word in ("INT", "CHAR", "CLOB", "TEXT", "BLOB"))
    return not before and any(word in declared for word in ("REAL", "FLOA", "DOUB"))


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


def _check_finished(path: Path) -> None:
    """NsysmapError where changes to the file wait beside it: opened immutable, it would be read as if they were not there."""
    for suffix, magics in ((b"-wal", (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")), (b"-journal", (b"\xd9\xd5\x05\xf9",))):
        beside = Path(os.fsdecode(os.fsencode(path) + suffix))
        try:
            with beside.open("rb") as file:
                unfinished = file.read(4) in magics
        except OSError:
            continue
        if unfinished:
            raise NsysmapError(
                str(path),
                f"has unfinished changes beside it ({beside.name})",
                "wait until what writes it has ended, or export the report again: nsys export -t sqlite REPORT.nsys-rep",
            )


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path), uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _uri(path: Path) -> str:
    return f"file:{quote(os.fsencode(path.resolve()))}?mode=ro&immutable=1"  # as bytes: a name need not be UTF-8


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(path: Path, error: Exception) -> NsysmapError:
    return NsysmapError(
        str(path), f"cannot be read as an nsys export ({str(error).splitlines()[0] if str(error) else type(error).__name__})", _DAMAGED
    )
