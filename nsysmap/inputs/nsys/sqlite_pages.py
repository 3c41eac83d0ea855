"""Decodes the pages of an SQLite table with numpy, many pages at a time: several times faster than
SQLite hands out rows.

It reads what SQLite writes for plain tables and checks all that it relies on; for everything else
it raises :class:`UnsupportedError`, and SQLite itself must be asked.  The format:
https://www.sqlite.org/fileformat2.html; where damage makes a difference, as SQLite 3.40 reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import distinct, like_texts
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, CodeArray, IntArray, Text, repeated
from nsysmap.inputs.nsys.tables import decoded, filled, grown, numbering

_MAGIC = b"SQLite format 3\0"
_INTERIOR, _LEAF = 0x05, 0x0D
_MAX_DEPTH, _MAX_HEADER = 20, 98307  # SQLite's own limits
# that is the serial type of a value longer than any record
_MAX_RECORD, _MAX_TYPE = (
    1 << 26,
    1 << 28,
)
_BATCH_BYTES = 1 << 20  # of pages that are read together
_SPARE = 152  # zero bytes behind the pages, which a read at the last cell or value may run into

# bytes of a value by its serial type: 0 is NULL, 1 to 6 are integers, 8 and 9 the integers 0 and 1
_LENGTH = np.array(
    [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((kind - 12) // 2 for kind in range(12, 128))], np.int64
)
# by serial type, the value of those of no length
_UNSTORED = np.array([MISSING, 0, 0, 0, 0, 0, 0, 0, 0, 1], np.int64)
_REAL, _EMPTY_TEXT = 7, 13  # odd types from 13 on are text, the even ones between are blobs

Bytes = NDArray[np.uint8]
Amount = IntArray | int
"""A number per row, or one number if it is the same for all."""


class UnsupportedError(Exception):
    """The pages hold something unusual, damaged or hostile, which is left to SQLite."""


@dataclass(frozen=True)
class Stored:
    """How a table is stored: its root page, and what its records hold."""

    root: int
    columns: tuple[str, ...]  # in the order of the record
    rowid: str | None  # the INTEGER PRIMARY KEY: it is the row's number, and not in the record
    reals: frozenset[str]  # columns of REAL affinity, in which 3.0 is stored as the integer 3
    # columns that are not NULL where a record ends before them, by ALTER TABLE ADD COLUMN
    defaults: frozenset[str]
    leaves: IntArray | None = None  # the pages that are read: those of all rows, if none are given


@dataclass(frozen=True)
class _Pages:
    """The file as pages, which are numbered from 1."""

    file: FileIO
    size: int
    number: int


@dataclass(frozen=True)
class _Positions:
    """Positions in a buffer, which are ``apart`` bytes from one another unless that is 0."""

    buffer: Bytes
    at: IntArray
    apart: int = 0

    def words(self, shift: int) -> NDArray[Any]:
        """For every position and that many bytes on, the next 8 bytes as a big-endian number."""
        if self.apart:
            return np.ndarray(
                (len(self.at),), ">i8", self.buffer, int(self.at[0]) + shift, (self.apart,)
            )
        return np.asarray(_words(self.buffer)[shift:][self.at])

    def ahead(self, shift: int) -> tuple[Bytes, bytes]:
        """The same as bytes, and by byte which of its bits are not the same in all."""
        raw = np.ascontiguousarray(self.words(shift)).view(np.uint64)
        varies = np.bitwise_or.reduce(raw) ^ np.bitwise_and.reduce(raw)
        return raw.view(np.uint8).reshape(-1, 8), varies.tobytes()


@dataclass(frozen=True)
class _Records:
    """The rows of some pages: where each record begins, how long it is, and its row number (none
    unless it is asked for).
    """

    start: _Positions
    length: IntArray
    rowid: IntArray
    overflow: int  # bytes of records that did not fit in their pages


@dataclass(frozen=True)
class _Field:
    """One column of some records: the serial types and sizes (one number if they are all the same),
    and where the values begin.
    """

    types: Amount | Bytes
    sizes: Amount  # in bytes
    away: Amount  # from the start of the record …
    shift: int  # … and so much more


@dataclass(frozen=True)
class _Batch:
    """Some rows: integers, or the numbers of texts, by column; a single one where they are all the
    same.
    """

    rows: int
    done: float  # share of the table's pages that have been read
    columns: dict[str, Amount | CodeArray]


Passed = Callable[[int], None]
"""Receives how many bytes of the file were read since the last call."""


def read_table(
    path: Path,
    stored: Stored,
    integers: Sequence[str],
    texts: Sequence[str],
    passed: Passed | None = None,
) -> dict[str, IntArray | Text]:
    """The columns of a table in the order of its rows: int64 (MISSING for NULL), and text (code -1
    for NULL and for empty).

    The file is only read, a piece at a time.  UnsupportedError where SQLite must be asked.
    """
    columns: dict[str, NDArray[Any]] = {name: np.empty(0, np.int64) for name in integers}
    # of one value as long as no other has come (see base.table)
    columns.update({name: np.empty(0, np.int32) for name in texts})
    seen = {name: numbering() for name in texts}
    rows = room = 0
    for batch in _batches(path, stored, integers, seen, passed):
        end = rows + batch.rows
        if end > room:
            room = int(end / batch.done * 33 / 32) + 64  # pages are about equally full
            columns = {name: grown(column, rows, room) for name, column in columns.items()}
        for name, values in batch.columns.items():
            columns[name] = filled(columns[name], values, slice(rows, end))
        rows = end
    result: dict[str, IntArray | Text] = {name: columns[name][:rows] for name in integers}
    result.update({name: decoded(columns[name][:rows], list(seen[name])) for name in texts})
    return result


def read_blocks(
    path: Path, stored: Stored, integers: Sequence[str], passed: Passed | None = None
) -> Iterator[dict[str, IntArray]]:
    """Columns of integers as of :func:`read_table`, some ten thousand rows after the other;
    UnsupportedError may come after some.
    """
    for batch in _batches(path, stored, integers, {}, passed):
        held = batch.columns.items()
        yield {
            name: (
                repeated(np.int64(of), batch.rows)
                if isinstance(of, int)
                else np.asarray(of, np.int64)
            )
            for name, of in held
        }


def leaves_of(path: Path, stored: Stored) -> IntArray:
    """The pages with the rows of a table, in their order.  UnsupportedError where SQLite must be
    asked.
    """
    with FileIO(path) as file:
        return _leaves(_pages(path, file), stored.root)


def _batches(
    path: Path,
    stored: Stored,
    integers: Sequence[str],
    texts: Mapping[str, dict[bytes, int]],
    passed: Passed | None,
) -> Iterator[_Batch]:
    """The columns in batches of rows; ``texts`` holds the numbers of those seen so far by
    column.
    """
    if stored.rowid in texts or not stored.reals.isdisjoint((*integers, *texts)):
        raise UnsupportedError("a column that is not read as it is stored")
    places = {
        stored.columns.index(name): name for name in (*integers, *texts) if name != stored.rowid
    }
    overflow = done = 0
    try:
        with FileIO(path) as file:
            pages = _pages(path, file)
            leaves = _leaves(pages, stored.root) if stored.leaves is None else stored.leaves
            buffer = _new_buffer(pages, len(leaves))
            step = _BATCH_BYTES // pages.size
            for batch in (leaves[begin : begin + step] for begin in range(0, len(leaves), step)):
                _load(pages, batch, buffer)
                records = _records(pages, buffer, len(batch), numbered=stored.rowid in integers)
                overflow += records.overflow
                if overflow > pages.size * pages.number:
                    raise UnsupportedError("more in overflow pages than there is in the file")
                fields = _fields(records, places, stored.defaults)
                columns: dict[str, Amount | CodeArray] = {
                    name: (
                        records.rowid if name == stored.rowid else _integers(records, fields[name])
                    )
                    for name in integers
                }
                columns.update(
                    {name: _codes(records, fields[name], seen) for name, seen in texts.items()}
                )
                done += len(batch)
                yield _Batch(len(records.length), done / len(leaves), columns)
                if passed is not None:
                    passed(len(batch) * pages.size)
    except OSError as error:
        raise UnsupportedError(str(error)) from error


def _pages(path: Path, file: FileIO) -> _Pages:
    for suffix in ("-wal", "-journal"):
        beside = path.with_name(path.name + suffix)
        if beside.exists() and beside.stat().st_size:
            raise UnsupportedError(f"unfinished changes in {beside.name}")
    head = file.read(100) or b""
    field = int.from_bytes(head[16:18], "big")
    size = 65536 if field == 1 else field
    # after the magic: versions at 18, reserved bytes at 20, three fixed fractions at 21, encoding
    # at 56 (1 is UTF-8)
    plain = (
        len(head) == 100
        and head[:16] == _MAGIC
        and max(head[18:20]) <= 2
        and head[20:24] == b"\0\x40\x20\x20"
    )
    if (
        not plain
        or not 512 <= size <= 65536
        or size & (size - 1)
        or int.from_bytes(head[56:60], "big") != 1
    ):
        raise UnsupportedError("not a plain UTF-8 database")
    in_file = path.stat().st_size // size
    # out of date unless both counters agree
    told = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
    return _Pages(file, size, min(told or in_file, in_file))


def _new_buffer(pages: _Pages, most: int) -> Bytes:
    return np.zeros(max(min(_BATCH_BYTES, most * pages.size), pages.size) + _SPARE, np.uint8)


def _load(pages: _Pages, numbers: IntArray, buffer: Bytes) -> None:
    """Read these pages into the buffer, one behind the other; neighbours in the file come in one
    piece.
    """
    into = buffer.data
    breaks = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
    for first, last in zip([0, *breaks], [*breaks, len(numbers)], strict=True):
        pages.file.seek((int(numbers[first]) - 1) * pages.size)
        if (
            pages.file.readinto(into[first * pages.size : last * pages.size])
            != (last - first) * pages.size
        ):
            raise UnsupportedError("a page beyond the end of the file")


def _leaves(pages: _Pages, root: int) -> IntArray:
    """The numbers of a table's leaf pages, in the order of its rows."""
    buffer, step = _new_buffer(pages, pages.number), _BATCH_BYTES // pages.size
    visited, level = np.zeros(pages.number + 1, np.bool_), np.array([root], np.int64)
    for depth in range(_MAX_DEPTH):
        if len(level) > pages.number or level.min() < 1 or level.max() > pages.number:
            raise UnsupportedError("a page number out of range")
        if visited[level].any() or len(distinct(level)) < len(level):
            raise UnsupportedError("a page that is in the tree twice")
        visited[level] = True
        _load(pages, level[:1], buffer)
        if buffer[0] == _LEAF:  # whether the others are leaves too is seen when they are read
            return level[:0] if depth == 0 and not buffer[3:5].any() else level
        below = []
        for begin in range(0, len(level), step):
            batch = level[begin : begin + step]
            _load(pages, batch, buffer)
            below.append(_children(pages, buffer, len(batch)))
        level = np.concatenate(below)
    raise UnsupportedError("a tree that is too deep")


def _children(pages: _Pages, buffer: Bytes, loaded: int) -> IntArray:
    cells, counts = _cells(pages, buffer, loaded, _INTERIOR)
    words = _words(buffer)
    rightmost = words[np.arange(loaded) * pages.size + 4]  # which is in bytes 8 to 11
    children: IntArray = (
        np.insert(words[cells - 4].astype(np.int64), np.cumsum(counts), rightmost) & 0xFFFFFFFF
    )
    return children


def _cells(pages: _Pages, buffer: Bytes, loaded: int, kind: int) -> tuple[IntArray, IntArray]:
    """The positions in the buffer where the cells of the loaded pages begin, and how many every
    page has.
    """
    heads = buffer[: loaded * pages.size].reshape(loaded, pages.size)
    counts = heads[:, 3].astype(np.int64) << 8 | heads[:, 4]
    most = int(counts.max())
    if (heads[:, 0] != kind).any() or counts.min() < 1 or most > (pages.size - 8) // 6:
        raise UnsupportedError("a page that does not belong where it is in the tree")
    head = 12 if kind == _INTERIOR else 8
    begins = np.arange(loaded) * pages.size
    table = heads.view(">u2")[:, head // 2 : head // 2 + most] + begins[:, None]
    cells = table.ravel() if counts.min() == most else table[np.arange(most) < counts[:, None]]
    firsts = np.cumsum(counts) - counts
    lowest, highest = np.minimum.reduceat(cells, firsts), np.maximum.reduceat(cells, firsts)
    if (lowest < begins + head + 2 * counts).any() or (highest > begins + pages.size - 4).any():
        raise UnsupportedError("a cell outside its page")
    return cells, counts


def _words(buffer: Bytes) -> NDArray[Any]:
    """For every position the next 8 bytes as a big-endian number."""
    return np.ndarray((len(buffer) - 7,), ">i8", buffer, 0, (1,))


def _varints(buffer: Bytes, at: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of variable length at these positions, and the positions behind them.  Outside of
    the buffer, its last byte is read.
    """
    byte = buffer.take(at, mode="clip")
    value = (byte & 0x7F).astype(np.int64)
    at = at + 1
    for place in range(1, 9):
        more = byte > 0x7F
        if not more.any():
            break
        rows = slice(None) if more.all() else np.flatnonzero(more)
        next_byte = buffer.take(at[rows], mode="clip")
        value[rows] = (
            value[rows] << 8 | next_byte if place == 8 else value[rows] << 7 | (next_byte & 0x7F)
        )
        at[rows] += 1
        byte = np.zeros_like(byte)
        byte[rows] = next_byte
    return value, at


def _records(pages: _Pages, buffer: Bytes, loaded: int, *, numbered: bool) -> _Records:
    cells, counts = _cells(pages, buffer, loaded, _LEAF)
    start, length, rowid = _beginnings(buffer, cells, 2 * loaded * pages.size, numbered=numbered)
    longest = int(length.max())
    if length.min() < 1 or longest > _MAX_RECORD:
        raise UnsupportedError("a record of no length or of more than all bounds")
    rows = np.flatnonzero(length > pages.size - 35) if longest > pages.size - 35 else cells[:0]
    overflow = int(length[rows].sum())
    behind = length + (cells + int(start.at[0]) if start.apart else start.at)
    behind[rows] = 0
    ends = np.arange(1, loaded + 1) * pages.size
    if (np.maximum.reduceat(behind, np.cumsum(counts) - counts) > ends).any() or int(
        length.sum()
    ) - overflow > loaded * pages.size:
        raise UnsupportedError("records that leave their page, or overlap")
    if not len(rows):
        return _Records(start, length, rowid, 0)
    if overflow > _MAX_RECORD:
        raise UnsupportedError("too much in overflow pages at once")
    at = start.at
    pieces = [
        _spilt(pages, buffer, int(at[row]), int(length[row]), int(ends[cells[row] // pages.size]))
        for row in rows.tolist()
    ]
    held = buffer[: loaded * pages.size].tobytes()
    at[rows] = len(held) + np.cumsum(length[rows]) - length[rows]
    return _Records(
        _Positions(np.frombuffer(b"".join((held, *pieces, bytes(_SPARE))), np.uint8), at),
        length,
        rowid,
        overflow,
    )


def _beginnings(
    buffer: Bytes, cells: IntArray, room: int, *, numbered: bool
) -> tuple[_Positions, IntArray, IntArray]:
    """Position, length and row number (none unless ``numbered``) of the record in each of these
    cells.

    Cells that are all short are copied to places that far apart, which numpy reads several times as
    fast as any others.
    """
    if not numbered:
        first = buffer.take(cells)
        before, longest = _before(_Positions(buffer, cells[:1])), int(first.max())
        # with 8 spare bytes, which a read at the last value may run into
        apart = (before + longest + 15) // 8 * 8
        if before and longest < 0x80 and apart * len(cells) <= room:
            own = np.ndarray((len(buffer) - apart + 1,), f"V{apart}", buffer, 0, (1,))[cells].view(
                np.uint8
            )
            at = np.arange(0, len(own), apart)
            if _before(_Positions(own, at, apart)) == before:
                own[-1] = 0  # as at the end of the pages
                at += before
                return _Positions(own, at, apart), first.astype(np.int64), cells[:0]
        before = _before(_Positions(buffer, cells))
        if before:
            return _Positions(buffer, cells + before), first.astype(np.int64), cells[:0]
    length, at = _varints(buffer, cells)
    rowid, at = _varints(buffer, at)
    return _Positions(buffer, at), length, rowid


def _before(cells: _Positions) -> int:
    """How many bytes a one-byte length and the row number take, if that is the same in all cells;
    otherwise 0.
    """
    ahead, varies = cells.ahead(0)
    ends = np.flatnonzero(ahead[0] < 0x80)  # the last bytes of numbers
    alike = len(ends) > 1 and ends[0] == 0 and max(varies[: ends[1] + 1]) < 0x80
    return int(ends[1]) + 1 if alike else 0


def _spilt(pages: _Pages, buffer: Bytes, start: int, length: int, end: int) -> bytes:
    """A record that begins in a leaf page, which ends at ``end``, and goes on in a chain of
    overflow pages.
    """
    least = (pages.size - 12) * 32 // 255 - 23
    here = least + (length - least) % (pages.size - 4)
    if here > pages.size - 35:
        here = least
    if start + here + 4 > end:
        raise UnsupportedError("a record that leaves its page")
    record = bytearray(buffer[start : start + here])
    link = buffer[start + here : start + here + 4].tobytes()
    while len(record) < length:
        number = int.from_bytes(link, "big")
        if not 1 <= number <= pages.number:
            raise UnsupportedError("a page number out of range")
        pages.file.seek((number - 1) * pages.size)
        page = pages.file.read(pages.size) or b""
        if len(page) != pages.size:
            raise UnsupportedError("a page beyond the end of the file")
        link = page[:4]
        record += page[4 : 4 + length - len(record)]
    return bytes(record)


def _fields(
    records: _Records, places: Mapping[int, str], defaults: frozenset[str]
) -> dict[str, _Field]:
    """The wanted columns of the records: ``places`` has their names by position in the record."""
    if not places:
        return {}
    fields = _walked(records, places, short=False)
    if fields is None:
        if not defaults.isdisjoint(places.values()):
            raise UnsupportedError("a record that ends before a column with a default value")
        fields = _walked(records, places, short=True)
    if fields is None:
        raise UnsupportedError("a record whose header ends within a type")
    return fields


def _walked(
    records: _Records, places: Mapping[int, str], *, short: bool
) -> dict[str, _Field] | None:
    """The columns, found by walking along the types in the record headers.

    Unless ``short``, the answer is None if a header ends before the last wanted column; if so, its
    further columns are NULL.
    """
    buffer, start = records.start.buffer, records.start.at
    fields = {}
    ahead, varies = records.start.ahead(0)  # 8 bytes of every header, from `header + ahead_from` on
    end: Amount  # of the header, which begins with its size
    if ahead[0, 0] < 0x80 and varies[0] < 0x80:
        end = ahead[:, 0].astype(np.int64) if varies[0] else int(ahead[0, 0])
        header, passed, ahead_from = records.start, 1, 0
    else:
        end, at = _varints(buffer, start)
        header, passed, ahead_from = _Positions(buffer, at), 0, -8
    if (
        np.any(_from(start, header.at) + passed >= end)
        or np.any(end > records.length)
        or np.max(end) > _MAX_HEADER
    ):
        raise UnsupportedError(
            "a record whose header is longer than itself, or holds no type, which SQLite takes for"
            " damage"
        )
    away, shift = (0, end) if isinstance(end, int) else (end, 0)
    # a byte that reads as NULL, for headers that have ended
    ended, zero = (
        np.zeros(len(start), np.bool_),
        len(buffer) - 1,
    )
    reached: Amount
    for place in range(max(places) + 1):
        if short:
            reached = np.where(ended, end, header.at - start + passed)
            if (reached > end).any():
                return None
            ended = reached == end
            header, passed = _Positions(buffer, np.where(ended, zero, start + reached)), 0
            byte = buffer.take(header.at)
            low, high = int(byte.min()), int(byte.max())
        else:
            if passed - ahead_from == 8:
                if np.any(np.greater(_from(start, header.at) + passed, end)):
                    return None
                (ahead, varies), ahead_from = header.ahead(passed), passed
            byte = ahead[:, passed - ahead_from]
            low = high = int(byte[0])
            if varies[passed - ahead_from]:
                byte = byte.copy()
                low, high = int(byte.min()), int(byte.max())
        passed += 1
        types: Amount | Bytes
        size: Amount
        if high > 0x7F:
            types, at = _varints(buffer, header.at + (passed - 1))
            header, passed, ahead_from = _Positions(buffer, at), 0, -8
            types[(types < 0) | (types > _MAX_TYPE)] = _MAX_TYPE
            size = np.where(types < 12, _LENGTH[np.minimum(types, 12)], (types - 12) >> 1)
        elif low == high:
            types, size = low, int(_LENGTH[low])
        else:
            types, size = byte, _LENGTH.take(byte)
        if place in places:
            fields[places[place]] = _Field(types, size, away, shift)
        if isinstance(size, int):
            shift += size
        else:
            away = away + size
    reached = _from(start, header.at) + passed
    if short:
        reached = np.where(ended, end, reached)
    if np.any(np.greater(reached, end)):
        return None
    used = away + shift
    unequal = np.not_equal(used, records.length)
    if unequal.any() and (
        np.any(used > records.length) or np.any(unequal & np.equal(reached, end))
    ):
        raise UnsupportedError("a record whose values are longer or shorter than itself")
    return fields


def _from(start: IntArray, at: IntArray) -> Amount:
    """How far these positions are from the start of their records."""
    return 0 if at is start else at - start


def _integers(records: _Records, field: _Field) -> Amount:
    """The values of an integer column, or the one value of all rows."""
    types, sizes, away, start = field.types, field.sizes, field.away, records.start
    if isinstance(types, int) and types <= 9 and not sizes:
        return int(_UNSTORED[types])
    if (
        (types > 9 or types == _REAL)
        if isinstance(types, int)
        else (types.max() > 9 or (types == _REAL).any())
    ):
        raise UnsupportedError("a value that is no integer")
    if isinstance(away, int):
        if not start.apart and isinstance(sizes, int) and sizes == 1:
            return start.buffer.view(np.int8)[field.shift :].take(start.at).astype(np.int64)
        values = start.words(field.shift).astype(np.int64)
    elif start.apart and int(away.max()) - (least := int(away.min())) + int(np.max(sizes)) <= 8:
        values = start.words(field.shift + least).astype(np.int64)
        values <<= 8 * (away - least)
    else:
        values = _Positions(start.buffer, start.at + away).words(field.shift).astype(np.int64)
    values >>= 64 - 8 * sizes
    if not isinstance(types, int) and not np.min(sizes):
        values = np.where(np.equal(sizes, 0), _UNSTORED.take(types), values)
    return values


def _codes(records: _Records, field: _Field, seen: dict[bytes, int]) -> CodeArray | int:
    """The numbers of the texts of a column, or the one number of all rows."""
    types, rows, buffer = field.types, len(records.length), records.start.buffer
    if isinstance(types, int):
        if types in (0, _EMPTY_TEXT):
            return -1
        types = np.full(rows, types)
    sizes = np.broadcast_to(np.asarray(field.sizes), rows)
    if ((types != 0) & ((types < _EMPTY_TEXT) | (types % 2 == 0))).any():
        raise UnsupportedError("a value that is no text")
    filled = np.flatnonzero(types > _EMPTY_TEXT)
    first = (records.start.at + field.away)[filled] + field.shift
    size = sizes[filled]
    alike = like_texts(_words(buffer), first, size)
    asked = np.flatnonzero(alike == np.arange(len(alike)))
    raw = buffer.tobytes()
    texts = map(raw.__getitem__, map(slice, first[asked].tolist(), (first + size)[asked].tolist()))
    numbers = np.empty(len(filled), np.int32)
    numbers[asked] = np.fromiter(map(seen.__getitem__, texts), np.int32, len(asked))
    codes = np.full(rows, -1, np.int32)
    codes[filled] = numbers[alike]
    return codes
