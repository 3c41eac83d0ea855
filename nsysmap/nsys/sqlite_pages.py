"""Decodes the pages of an SQLite table with numpy, many pages at a time: several times faster than SQLite hands out rows.

It reads what SQLite writes for plain tables and checks all that it relies on; for everything else it raises :class:`UnsupportedError`, and
SQLite itself must be asked.  The format: https://www.sqlite.org/fileformat2.html; where damage makes a difference, as SQLite 3.40 reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.base.groups import distinct, like_rows
from nsysmap.base.table import MISSING, CodeArray, IntArray, Text, repeated, uniform

_MAGIC = b"SQLite format 3\0"
_INTERIOR, _LEAF = 0x05, 0x0D
_MAX_DEPTH = 20  # SQLite's own limit
_MAX_HEADER = 98307  # SQLite's own limit
_MAX_RECORD = 1 << 26
_MAX_TYPE = 1 << 28  # serial type of a value longer than any record
_BATCH_BYTES = 1 << 20
_SPARE = 16  # zero bytes behind the pages, which a read of 8 bytes at the last value may run into

# bytes of a value by its serial type: 0 is NULL, 1 to 6 are integers, 8 and 9 the integers 0 and 1
_LENGTH = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((kind - 12) // 2 for kind in range(12, 128))], np.int64)
_MAX_WORDS = 8  # longer texts are few, or each is another
_REAL, _EMPTY_TEXT = 7, 13  # odd types from 13 on are text, the even ones between are blobs

Bytes = NDArray[np.uint8]


class UnsupportedError(Exception):
    """What is in the pages is left to SQLite: unusual, damaged or hostile."""


@dataclass(frozen=True)
class Stored:
    """How a table is stored: its root page, and what its records hold."""

    root: int
    columns: tuple[str, ...]  # in the order of the record
    rowid: str | None  # the INTEGER PRIMARY KEY: it is the row's number, and not in the record
    reals: frozenset[str]  # columns of REAL affinity, in which 3.0 is stored as the integer 3
    defaults: frozenset[str]  # columns that are not NULL where a record ends before them, by ALTER TABLE ADD COLUMN


@dataclass(frozen=True)
class _Pages:
    """The file as pages, which are numbered from 1."""

    file: FileIO
    size: int
    number: int


@dataclass(frozen=True)
class _Records:
    """The rows of some pages: where each record begins in the buffer, how long it is, and its row number."""

    buffer: Bytes
    start: IntArray
    length: IntArray
    rowid: IntArray
    overflow: int  # bytes of records that did not fit in their pages


@dataclass(frozen=True)
class _Field:
    """One column of some records: the serial types and sizes (one number where they are all the same), and where the values begin."""

    types: IntArray | Bytes | int
    sizes: IntArray | int  # in bytes
    at: IntArray
    shift: int  # to be added to every position


Passed = Callable[[int], None]
"""Told how many bytes of the file have been read since it was told last."""


def read_table(
    path: Path, stored: Stored, integers: Sequence[str], texts: Sequence[str], passed: Passed | None = None
) -> dict[str, IntArray | Text]:
    """The columns of a table in the order of its rows: int64 (MISSING for NULL), and text (code -1 for NULL and for empty).

    The file is only read, a piece at a time.  UnsupportedError where SQLite must be asked.
    """
    try:
        with FileIO(path) as file:
            return _read(_pages(path, file), stored, (integers, texts), passed)
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
    # after the magic: versions at 18, reserved bytes at 20, three fixed fractions at 21, encoding at 56 (1 is UTF-8)
    plain = len(head) == 100 and head[:16] == _MAGIC and max(head[18:20]) <= 2 and head[20:24] == b"\0\x40\x20\x20"
    if not plain or not 512 <= size <= 65536 or size & (size - 1) or int.from_bytes(head[56:60], "big") != 1:
        raise UnsupportedError("not a plain UTF-8 database")
    in_file = path.stat().st_size // size
    told = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0  # out of date unless both counters agree
    return _Pages(file, size, min(told or in_file, in_file))


def _read(pages: _Pages, stored: Stored, wanted: tuple[Sequence[str], Sequence[str]], passed: Passed | None) -> dict[str, IntArray | Text]:
    integers, texts = wanted
    if stored.rowid in texts or not stored.reals.isdisjoint((*integers, *texts)):
        raise UnsupportedError("a column that is not read as it is stored")
    leaves = _leaves(pages, stored.root)
    columns: dict[str, NDArray[Any]] = {name: np.empty(0, np.int64) for name in integers}
    columns.update({name: np.empty(0, np.int32) for name in texts})  # of one value as long as no other has come (see base.table)
    seen = {name: numbering() for name in texts}
    places = {stored.columns.index(name): name for name in columns if name != stored.rowid}
    buffer = _new_buffer(pages)
    step = _BATCH_BYTES // pages.size
    rows = room = overflow = 0
    for begin in range(0, len(leaves), step):
        batch = leaves[begin : begin + step]
        _load(pages, batch, buffer)
        records = _records(pages, buffer, len(batch))
        overflow += records.overflow
        if overflow > pages.size * pages.number:
            raise UnsupportedError("more in overflow pages than there is in the file")
        end = rows + len(records.start)
        if end > room:
            room = end * len(leaves) // (begin + len(batch)) * 33 // 32 + 64  # pages are about equally full
            columns = {name: _grown(column, rows, room) for name, column in columns.items()}
        fields = _fields(records, places, stored.defaults)
        for name in integers:
            values = records.rowid if name == stored.rowid else _integers(records.buffer, fields[name])
            columns[name] = _filled(columns[name], values, slice(rows, end))
        for name in texts:
            columns[name] = _filled(columns[name], _codes(records.buffer, fields[name], end - rows, seen[name]), slice(rows, end))
        rows = end
        if passed is not None:
            passed(len(batch) * pages.size)
    result: dict[str, IntArray | Text] = {name: columns[name][:rows] for name in integers}
    result.update({name: decoded(columns[name][:rows], list(seen[name])) for name in texts})
    return result


def _filled(column: NDArray[Any], values: NDArray[Any] | int, rows: slice) -> NDArray[Any]:
    """The column with these values in these rows, all before which have been filled."""
    if rows.start == 0:
        column = repeated(column.dtype.type(values if isinstance(values, int) else values[0]), len(column))
    if uniform(column):
        held = column[0]
        if (values == held) if isinstance(values, int) else (values[-1] == held and (values == held).all()):
            return column
        fresh = np.empty(len(column), column.dtype)
        fresh[: rows.start] = held
        column = fresh
    column[rows] = values
    return column


def _grown(column: NDArray[Any], used: int, room: int) -> NDArray[Any]:
    if not used or uniform(column):
        return repeated(column[0] if used else column.dtype.type(0), room)
    larger = np.empty(room, column.dtype)
    larger[:used] = column[:used]
    return larger


# --- pages ----------------------------------------------------------------------------------------------------------


def _new_buffer(pages: _Pages) -> Bytes:
    return np.zeros(max(_BATCH_BYTES, pages.size) + _SPARE, np.uint8)


def _load(pages: _Pages, numbers: IntArray, buffer: Bytes) -> None:
    """Read these pages into the buffer, one behind the other; neighbours in the file come in one piece."""
    into = buffer.data
    breaks = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
    for first, last in zip([0, *breaks], [*breaks, len(numbers)], strict=True):
        pages.file.seek((int(numbers[first]) - 1) * pages.size)
        if pages.file.readinto(into[first * pages.size : last * pages.size]) != (last - first) * pages.size:
            raise UnsupportedError("a page beyond the end of the file")


def _leaves(pages: _Pages, root: int) -> IntArray:
    """The numbers of a table's leaf pages, in the order of its rows."""
    buffer = _new_buffer(pages)
    step = _BATCH_BYTES // pages.size
    visited = np.zeros(pages.number + 1, np.bool_)
    level = np.array([root], np.int64)
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
    cells, _, counts = _cells(pages, buffer, loaded, _INTERIOR)
    words = _words(buffer)
    rightmost = words[np.arange(loaded) * pages.size + 4]  # which is in bytes 8 to 11
    children: IntArray = np.insert(words[cells - 4].astype(np.int64), np.cumsum(counts), rightmost) & 0xFFFFFFFF
    return children


def _cells(pages: _Pages, buffer: Bytes, loaded: int, kind: int) -> tuple[IntArray, IntArray, IntArray]:
    """Where the cells of the loaded pages begin in the buffer, where the page of each ends, and how many every page has."""
    heads = buffer[: loaded * pages.size].reshape(loaded, pages.size)
    counts = heads[:, 3].astype(np.int64) << 8 | heads[:, 4]
    if (heads[:, 0] != kind).any() or counts.min() < 1 or counts.max() > (pages.size - 8) // 6:
        raise UnsupportedError("a page that does not belong where it is in the tree")
    head = 12 if kind == _INTERIOR else 8
    page = np.repeat(np.arange(loaded) * pages.size, counts)
    number = np.arange(len(page)) - np.repeat(np.cumsum(counts) - counts, counts)
    pointers = buffer[: loaded * pages.size].view(">u2").take((page + head) // 2 + number).astype(np.int64)
    if (pointers < np.repeat(head + 2 * counts, counts)).any() or pointers.max() > pages.size - 4:
        raise UnsupportedError("a cell outside its page")
    return page + pointers, page + pages.size, counts


def _words(buffer: Bytes) -> NDArray[Any]:
    """At every position, the 8 bytes from there on as a big-endian number."""
    return np.ndarray((len(buffer) - 7,), ">i8", buffer, 0, (1,))


def _varints(buffer: Bytes, at: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of variable length at these positions, and the positions behind them.  Outside of the buffer, its last byte is read."""
    byte = buffer.take(at, mode="clip")
    value = (byte & 0x7F).astype(np.int64)
    at = at + 1
    for place in range(1, 9):
        more = byte > 0x7F
        if not more.any():
            break
        rows = slice(None) if more.all() else np.flatnonzero(more)
        next_byte = buffer.take(at[rows], mode="clip")
        value[rows] = value[rows] << 8 | next_byte if place == 8 else value[rows] << 7 | (next_byte & 0x7F)
        at[rows] += 1
        byte = np.zeros_like(byte)
        byte[rows] = next_byte
    return value, at


# --- records --------------------------------------------------------------------------------------------------------


def _records(pages: _Pages, buffer: Bytes, loaded: int) -> _Records:
    cells, ends, _ = _cells(pages, buffer, loaded, _LEAF)
    length, at = _varints(buffer, cells)
    rowid, start = _varints(buffer, at)
    if length.min() < 1 or length.max() > _MAX_RECORD:
        raise UnsupportedError("a record of no length or of more than all bounds")
    spilt = length > pages.size - 35
    rows = np.flatnonzero(spilt)
    overflow = int(length[rows].sum())
    if ((start + length > ends) & ~spilt).any() or int(length.sum()) - overflow > loaded * pages.size:
        raise UnsupportedError("records that leave their page, or overlap")
    if not len(rows):
        return _Records(buffer, start, length, rowid, 0)
    if overflow > _MAX_RECORD:
        raise UnsupportedError("too much in overflow pages at once")
    pieces = [_spilt(pages, buffer, int(start[row]), int(length[row]), int(ends[row])) for row in rows.tolist()]
    held = buffer[: loaded * pages.size].tobytes()
    start[rows] = len(held) + np.cumsum(length[rows]) - length[rows]
    return _Records(np.frombuffer(b"".join((held, *pieces, bytes(_SPARE))), np.uint8), start, length, rowid, overflow)


def _spilt(pages: _Pages, buffer: Bytes, start: int, length: int, end: int) -> bytes:
    """A record that begins in a leaf page, which ends at ``end``, and goes on in a chain of overflow pages."""
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


def _fields(records: _Records, places: Mapping[int, str], defaults: frozenset[str]) -> dict[str, _Field]:
    """The wanted columns of the records: ``places`` has their names by position in the record."""
    if not places:
        return {}
    size, types = _varints(records.buffer, records.start)
    body = records.start + size
    if (types >= body).any() or (size > records.length).any() or size.max() > _MAX_HEADER:
        raise UnsupportedError("a record whose header is longer than itself, or holds no type, which SQLite takes for damage")
    fields = _walked(records, types, body, places, short=False)
    if fields is None:
        if not defaults.isdisjoint(places.values()):
            raise UnsupportedError("a record that ends before a column with a default value")
        fields = _walked(records, types, body, places, short=True)
    if fields is None:
        raise UnsupportedError("a record whose header ends within a type")
    return fields


def _walked(records: _Records, header: IntArray, body: IntArray, places: Mapping[int, str], *, short: bool) -> dict[str, _Field] | None:
    """The columns, found by walking along the types in the record headers, which begin at ``header`` and end at ``body``.

    Unless ``short``, the answer is None if a header ends before the last wanted column; if so, its further columns are NULL.
    """
    buffer, words = records.buffer, _words(records.buffer)
    fields = {}
    passed, value, shift = 0, body, 0  # `passed` and `shift` are to be added to every position in `header` and `value`
    ahead, ahead_from = np.empty((0, 0), np.uint8), -8  # 8 bytes of every header, from `header + ahead_from` on
    varies = b""  # by byte ahead: whether it is another in some rows
    zero = len(buffer) - 1  # a byte that reads as NULL, for headers that have ended
    for place in range(max(places) + 1):
        if short:
            header, passed = header + passed, 0
            if ((header > body) & (header <= zero)).any():
                return None
            header = np.where(header < body, header, zero)
            byte = buffer.take(header)
            low, high = int(byte.min()), int(byte.max())
        else:
            if passed - ahead_from == 8:
                if (header > body - passed).any():
                    return None
                raw = words[passed:][header].view(np.uint64)
                varies = np.bitwise_or.reduce(raw ^ raw[0]).tobytes()
                ahead, ahead_from = raw.view(np.uint8).reshape(-1, 8), passed
            byte = ahead[:, passed - ahead_from]
            low = high = int(byte[0])
            if varies[passed - ahead_from]:
                byte = byte.copy()
                low, high = int(byte.min()), int(byte.max())
        passed += 1
        types: IntArray | Bytes | int
        size: IntArray | int
        if high > 0x7F:
            types, header = _varints(buffer, header + (passed - 1))
            passed, ahead_from = 0, -8
            types[(types < 0) | (types > _MAX_TYPE)] = _MAX_TYPE
            size = np.where(types < 12, _LENGTH[np.minimum(types, 12)], (types - 12) >> 1)
        elif low == high:
            types, size = low, int(_LENGTH[low])
        else:
            types, size = byte, _LENGTH.take(byte)
        if place in places:
            fields[places[place]] = _Field(types, size, value, shift)
        if isinstance(size, int):
            shift += size
        else:
            value = value + size
    header = header + passed
    ended = header >= body
    if ((header > body) & ~(short & (header > zero))).any():
        return None
    used = value + shift - records.start
    if (used > records.length).any() or (used != records.length)[ended].any():
        raise UnsupportedError("a record whose values are longer or shorter than itself")
    return fields


def _integers(buffer: Bytes, field: _Field) -> IntArray | int:
    """The values of an integer column, or the one value of all rows."""
    types, sizes = field.types, field.sizes
    if isinstance(types, int) or isinstance(sizes, int):
        if types > 9 or types == _REAL:
            raise UnsupportedError("a value that is no integer")
        if not sizes:
            return {0: MISSING, 9: 1}.get(int(types), 0)
        if sizes == 1:
            return buffer.view(np.int8)[field.shift :].take(field.at).astype(np.int64)
        values: IntArray = _words(buffer)[field.shift :][field.at].astype(np.int64)
        values >>= 64 - 8 * sizes
        return values
    if types.max() > 9 or (types == _REAL).any():
        raise UnsupportedError("a value that is no integer")
    last = field.at + sizes  # the 8 bytes that end where the value does
    last += field.shift - 8
    values = _words(buffer)[last].astype(np.int64)
    unwanted = 64 - 8 * sizes  # 64 of them leave 0
    values <<= unwanted
    values >>= unwanted
    values += types == 9
    values[types == 0] = MISSING
    return values


def _codes(buffer: Bytes, field: _Field, rows: int, seen: dict[bytes, int]) -> CodeArray | int:
    """The numbers of the texts of a column, or the one number of all rows."""
    types = field.types
    if isinstance(types, int):
        if types in (0, _EMPTY_TEXT):
            return -1
        types = np.full(rows, types)
    sizes = np.broadcast_to(np.asarray(field.sizes), rows)
    if ((types != 0) & ((types < _EMPTY_TEXT) | (types % 2 == 0))).any():
        raise UnsupportedError("a value that is no text")
    filled = np.flatnonzero(types > _EMPTY_TEXT)
    first = field.at[filled] + field.shift
    size = sizes[filled]
    alike = _alike(buffer, first, size)
    asked = np.flatnonzero(alike == np.arange(len(alike)))
    raw = buffer.tobytes()
    texts = map(raw.__getitem__, map(slice, first[asked].tolist(), (first + size)[asked].tolist()))
    numbers = np.empty(len(filled), np.int32)
    numbers[asked] = np.fromiter(map(seen.__getitem__, texts), np.int32, len(asked))
    codes = np.full(rows, -1, np.int32)
    codes[filled] = numbers[alike]
    return codes


def _alike(buffer: Bytes, first: IntArray, size: IntArray) -> IntArray:
    """For each of these texts one that is the same, which is alike to itself: few are left to be looked at one by one."""
    words = _words(buffer)
    longest = min(int(size.max(initial=0)), _MAX_WORDS * 8)
    before = np.maximum(64 - 8 * size, 0)  # bits of a word that are not in the text, if that is shorter
    held = []
    for offset in range(0, longest, 8):
        word = words[first + np.minimum(offset, size - 8)].astype(np.int64)  # the text's last 8 bytes, when it is at its end
        word <<= before
        held.append(word.view(np.uint64))
    return like_rows(size, held, size <= longest)


def numbering() -> dict[bytes, int]:
    """A mapping that gives every new key the next number, from 0."""
    return defaultdict(count().__next__)


def decoded(codes: CodeArray, values: Sequence[bytes]) -> Text:
    """The text column with these codes of UTF-8 texts; what is no UTF-8 is replaced."""
    texts = [value.decode("utf-8", "replace") for value in values]
    number = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    if len(number) < len(texts):  # two that were no UTF-8 have become the same
        codes = np.array([*(number[text] for text in texts), -1], np.int32)[codes]
    return Text(codes, tuple(number))
