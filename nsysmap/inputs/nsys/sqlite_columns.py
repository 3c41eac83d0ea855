"""Reads chosen columns of an untrusted SQLite file into numpy arrays, read-only and in bounded time
and memory.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.errors import NsysmapError
from nsysmap.core.memory import give_back_large_arrays
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, CodeArray, IntArray, Text
from nsysmap.inputs.nsys.sqlite_pages import (
    Passed,
    Stored,
    UnsupportedError,
    leaves_of,
    read_blocks,
    read_table,
)
from nsysmap.inputs.nsys.tables import (
    ROW,
    NoPiecesError,
    NsysTables,
    TablePieces,
    decoded,
    numbering,
    spelling,
)

if TYPE_CHECKING:
    from nsysmap.inputs.nsys.program import Progress

SQLITE_MAGIC = b"SQLite format 3\0"
_BATCH_ROWS, _BATCH_BYTES = 1024, 1 << 20
_LEAST_BYTES = 6  # that a row takes in a page: a pointer to it, and itself
# of SQLite's machine: reading 14 columns of a row of 6 bytes takes 3 steps a byte
_STEPS, _STEPS_A_BYTE = (
    10_000_000,
    8,
)
_STEPS_BETWEEN = 100_000  # looks at the clock
_WHOLE_REAL = 2**53  # beyond it, a real number stands for several integers
_INTEGER_TEXT = re.compile(rb"-?\d{1,18}")
_PLAIN_TABLE = "CREATE TABLE "  # as SQLite itself writes it, whatever was typed
# some 9 million kernels: from there on memory may run out, below it time counts for more
_MEMORY_COUNTS_BYTES = 2 << 30
_NSYS_TABLE = re.compile(
    r"CUPTI_ACTIVITY_KIND_|NVTX_EVENTS|StringIds|CUDA_GRAPH_|OSRT_API|TARGET_INFO_|META_DATA_",
    re.IGNORECASE,
)
_DAMAGED = "export the report again: nsys export -t sqlite REPORT.nsys-rep"


@dataclass(frozen=True)
class Database:
    """An SQLite file that is only ever read: opened immutable, so no lock, no journal and no
    write.
    """

    path: Path
    # of every plain table; views and virtual tables are not trusted
    columns: Mapping[str, tuple[str, ...]]
    stored: Mapping[str, Stored]  # the tables whose pages can be decoded here
    views: tuple[str, ...] = ()  # views and virtual tables, which are not read
    passed: Passed | None = None

    @staticmethod
    def open(path: Path) -> Database:
        """The file with its plain tables.  Raises NsysmapError if it is no SQLite file, truncated,
        damaged or still being written.
        """
        _check_length(path)
        _check_finished(path)
        columns, stored = {}, {}
        with _opened(path) as connection:
            named = connection.execute(
                "SELECT CAST(name AS TEXT), rootpage, type = 'table' AND rootpage > 0 AND"
                " substr(sql, 1, ?) = ? FROM sqlite_master WHERE type IN ('table', 'view')",
                (len(_PLAIN_TABLE), _PLAIN_TABLE),
            ).fetchall()
            for table, root, is_plain in named:
                if is_plain:
                    columns[table], plain = _stored(connection, table, root)
                    if plain is not None:
                        stored[table] = plain
        return Database(
            path, columns, stored, tuple(table for table, _, is_plain in named if not is_plain)
        )

    def read(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = ()
    ) -> dict[str, IntArray | Text]:
        """The columns of one table, in the order of its rows: int64 (MISSING for NULL),
        :class:`Text` for ``texts`` (empty is NULL).
        """
        stored = self.stored.get(table)
        if stored is not None:
            try:
                return read_table(self.path, stored, integers, texts, self.passed)
            except UnsupportedError:
                pass  # SQLite reads all that is not damaged, and says what is
        return read_rows(self.path, table, integers, texts)

    def blocks(self, table: str, integers: Sequence[str]) -> Iterator[dict[str, IntArray]]:
        """Integer columns in blocks of rows."""
        stored, done = self.stored.get(table), 0
        if stored is not None:
            try:
                for block in read_blocks(self.path, stored, integers, self.passed):
                    yield block
                    done += len(block[integers[0]])
            except UnsupportedError:
                pass
            else:
                return
        whole = read_rows(self.path, table, integers, ())
        yield {name: data[done:] for name, data in whole.items() if not isinstance(data, Text)}

    def pieces(self, table: str) -> TablePieces | None:
        """The pages of a table; None if SQLite must be asked for its rows."""
        stored = self.stored.get(table)
        if stored is None or stored.rowid is not None or ROW in stored.columns:
            return None
        try:
            leaves = leaves_of(self.path, stored)
        except (UnsupportedError, OSError):
            return None

        def read(begin: int, end: int, integers: Sequence[str]) -> dict[str, IntArray]:
            some = replace(stored, rowid=ROW, leaves=leaves[begin:end])
            try:
                blocks = list(read_blocks(self.path, some, integers))
            except UnsupportedError as error:
                raise NoPiecesError(str(error)) from error
            return {name: np.concatenate([block[name] for block in blocks]) for name in integers}

        return TablePieces(len(leaves), read)


def sqlite_tables(path: Path, *, progress: Progress | None = None) -> NsysTables:
    """The tables of an SQLite export; raises NsysmapError as :meth:`Database.open`. ``progress``
    receives the percentage read.
    """
    database = Database.open(path)
    if path.stat().st_size > _MEMORY_COUNTS_BYTES:
        give_back_large_arrays()
    if progress is not None:
        database = replace(database, passed=_percent(path.stat().st_size, progress))
    views = [name for name in database.views if _NSYS_TABLE.match(name)]
    notes = (
        (
            Note(
                "warning",
                f"Not read: {', '.join(views[:3])}, which are views in this file but tables in what"
                " nsys writes.",
            ),
        )
        if views
        else ()
    )
    return NsysTables(
        path,
        "SQLite",
        spelling(database.columns),
        database.read,
        notes=notes,
        fetch_blocks=database.blocks,
        fetch_pieces=database.pieces,
    )


def _percent(size: int, progress: Progress) -> Passed:
    read = told = 0

    def passed(more: int) -> None:
        nonlocal read, told
        read += more
        percent = min(100 * read // max(size, 1), 100)
        if percent > told:
            told = percent
            progress(percent)

    return passed


def read_rows(
    path: Path, table: str, integers: Sequence[str], texts: Sequence[str]
) -> dict[str, IntArray | Text]:
    """The columns of :meth:`Database.read`, read through SQLite row by row: slower, but for any
    file that SQLite can read.

    Raises NsysmapError if it holds more rows or bytes than there are in the file, or takes more
    steps than its size explains.
    """
    names = (*integers, *texts)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    seen = {name: numbering() for name in texts}
    left = 2 * path.stat().st_size  # twice, for texts that grow when they become UTF-8
    with _opened(path) as connection:
        connection.text_factory = bytes
        # rows in their order, not in that of an index which has these columns too
        cursor = connection.execute(
            f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)} NOT INDEXED"
        )
        for rows, size in _batches(cursor):
            left -= len(rows) * _LEAST_BYTES + size
            if (
                left < 0
            ):  # pages that are in the table many times over, or cells many times in a page
                raise _damaged(path, ValueError(f"more in {table} than there is in the file"))
            for name, values in zip(names, zip(*rows, strict=True), strict=True):
                parts[name].append(
                    _codes(seen[name], values)
                    if name in seen
                    else _int64(path, f"{table}.{name}", values)
                )
    result: dict[str, IntArray | Text] = {
        name: np.concatenate([np.empty(0, np.int64), *parts[name]]) for name in integers
    }
    for name in texts:
        result[name] = decoded(
            np.concatenate([np.empty(0, np.int32), *parts[name]]), list(seen[name])
        )
    return result


def _batches(cursor: sqlite3.Cursor) -> Iterator[tuple[list[tuple[object, ...]], int]]:
    """The rows in pieces that are neither many nor large, each with the bytes of its texts."""
    rows: list[tuple[object, ...]] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(rows) == _BATCH_ROWS or size > _BATCH_BYTES:
            yield rows, size
            rows, size = [], 0
    if rows:
        yield rows, size


def _int64(path: Path, column: str, values: Sequence[object]) -> IntArray:
    """The integers; those that another program wrote as real numbers (pandas does, beside NULL) or
    as text are taken for what they are.
    """
    if set(map(type, values)) - {int, type(None)}:
        values = [_integer(path, column, value) for value in values]
    return np.array([MISSING if value is None else value for value in values], np.int64)


def _integer(path: Path, column: str, value: object) -> object:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer() and abs(value) <= _WHOLE_REAL:
            return int(value)
        raise NsysmapError(
            str(path),
            f"column {column} holds the real number {value:g}, not only integers",
            _DAMAGED,
        )
    text = value if isinstance(value, bytes) else str(value).encode()
    if not text:
        return None
    if _INTEGER_TEXT.fullmatch(text):
        return int(text)
    raise NsysmapError(str(path), f"column {column} holds text, not only integers", _DAMAGED)


def _codes(seen: dict[bytes, int], values: Sequence[object]) -> CodeArray:
    texts = [
        value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
        for value in values
    ]
    return np.array([seen[text] if text else -1 for text in texts], np.int32)


def _stored(
    connection: sqlite3.Connection, table: str, root: object
) -> tuple[tuple[str, ...], Stored | None]:
    """The columns of a table that are stored and not computed, and how they are stored, if that is
    in the plainest way.
    """
    # number, name, type, not null, default, key, hidden
    rows = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    # hidden != 0: generated, computed on reading
    columns = tuple(row[1] for row in rows if row[6] == 0)
    keys = [row for row in rows if row[5]]
    if len(columns) < len(rows) or not isinstance(root, int):
        return columns, None
    rowid = None
    if len(keys) == 1 and str(keys[0][2]).upper() == "INTEGER":
        indexes = connection.execute(f"PRAGMA index_list({_quoted(table)})").fetchall()
        if not any(
            index[3] == "pk" for index in indexes
        ):  # INTEGER PRIMARY KEY DESC has one, and is a column like any other
            rowid = keys[0][1]
    reals = frozenset(row[1] for row in rows if _is_real(str(row[2]).upper()))
    return columns, Stored(
        root, columns, rowid, reals, frozenset(row[1] for row in rows if row[4] is not None)
    )


def _is_real(declared: str) -> bool:
    """Whether a column declared so has REAL affinity, by the rules of
    https://www.sqlite.org/datatype3.html.
    """
    before = any(word in declared for word in ("INT", "CHAR", "CLOB", "TEXT", "BLOB"))
    return not before and any(word in declared for word in ("REAL", "FLOA", "DOUB"))


def _check_length(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(100)
    if header[: len(SQLITE_MAGIC)] != SQLITE_MAGIC:
        raise NsysmapError(
            str(path),
            "is not an SQLite file",
            "give a .nsys-rep or what `nsys export -t sqlite` made of one",
        )
    page = int.from_bytes(header[16:18], "big")
    told = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    # written by SQLite before 3.7: the file's own size counts
    out_of_date = header[24:28] != header[92:96]
    if len(header) < 100 or (told > size and not out_of_date):
        raise NsysmapError(
            str(path),
            (
                f"is an SQLite file cut short: it has {size:,} bytes, but its header says {told:,}"
                if len(header) == 100
                else "is an SQLite file cut short in its header"
            ),
            f"copy it again, or {_DAMAGED}",
        )


def _check_finished(path: Path) -> None:
    """NsysmapError where changes to the file wait beside it: opened immutable, it would be read as
    if they were not there.
    """
    for suffix, magics in (
        (b"-wal", (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")),
        (b"-journal", (b"\xd9\xd5\x05\xf9",)),
    ):
        # where SQLite looks: beside the file, not beside a link to it
        beside = Path(os.fsdecode(os.fsencode(path.resolve()) + suffix))
        try:
            with beside.open("rb") as file:
                unfinished = file.read(4) in magics
        except OSError:
            continue
        if unfinished:
            raise NsysmapError(
                str(path),
                f"has unfinished changes beside it ({beside.name})",
                "close the program that writes it; if there is none, `sqlite3"
                f" {path.resolve().name} .tables` merges them",
            )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose work is bounded by the file's size; what SQLite cannot do is an
    NsysmapError.
    """
    steps = _STEPS + _STEPS_A_BYTE * path.stat().st_size
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += _STEPS_BETWEEN
        return taken > steps  # which interrupts SQLite

    try:
        with closing(sqlite3.connect(_uri(path), uri=True)) as connection:
            connection.set_progress_handler(count, _STEPS_BETWEEN)
            yield connection
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        endless = ValueError(
            "its tables are not plain tables, or claim more data than the file contains"
        )
        raise _damaged(path, endless if taken > steps else error) from error


def _uri(path: Path) -> str:
    # as bytes: a name need not be UTF-8
    return f"file:{quote(os.fsencode(path.resolve()))}?mode=ro&immutable=1"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(path: Path, error: Exception) -> NsysmapError:
    return NsysmapError(
        str(path),
        "cannot be read as an nsys export"
        f" ({str(error).splitlines()[0] if str(error) else type(error).__name__})",
        _DAMAGED,
    )
