"""Turns the blocks of a report into columns, some blocks at a time: the events by their kinds, the
texts as codes into distinct values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import like_texts
from nsysmap.core.memory import Ints, Narrow, compact, whole
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Text, repeated
from nsysmap.inputs.nsys.report_container import Container, damage, decompressed
from nsysmap.inputs.nsys.report_layout import CLASS_FIELD, KINDS, NVTX, UNIT, EventKind
from nsysmap.inputs.nsys.report_wire import (
    BufferParts,
    Bytes,
    Form,
    WireError,
    lengths,
    padded,
    split,
    varint,
    walk,
)
from nsysmap.inputs.nsys.tables import decoded

_EVENT, _GENERIC = 0x0A, 0x12  # the tags of the two kinds of messages in a block
_TYPE_TAG = 0x08  # the first byte of an event: its type follows
_BATCH_BYTES = 4 << 20  # of events that are decoded together
_MOST_TYPE = 255  # of an event: types are counted by it


@dataclass(frozen=True)
class ReportEvents:
    """All events of a report."""

    # nsys's names; a table is there where it has rows
    tables: Mapping[str, Mapping[str, IntArray | Text]]
    generic: tuple[Generic, ...]
    # body and class of events that no table has → how many there are
    unread: Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class EventColumns(Mapping[str, IntArray | Text]):
    """The columns of one table in few bytes, each put together anew when it is asked for: nobody
    needs all of them, and together they take several times as much.
    """

    pieces: Mapping[str, Sequence[Ints]]
    texts: Mapping[str, tuple[bytes, ...]]  # of the columns that are codes
    rows: int

    def __getitem__(self, name: str) -> IntArray | Text:
        """A whole column, in a new array; one value throughout is stored once."""
        pieces, texts = self.pieces[name], self.texts.get(name)
        kind = np.int64 if texts is None else np.int32
        column = _repeated(pieces, kind, self.rows)
        if column is None:
            column = np.empty(self.rows, kind)
            at = 0
            for piece in pieces:
                column[at : at + len(piece)] = whole(piece)
                at += len(piece)
        return column if texts is None else decoded(column, texts)

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self.pieces)

    def __len__(self) -> int:
        """The number of columns."""
        return len(self.pieces)


def _repeated(pieces: Sequence[Ints], kind: type[np.integer[Any]], rows: int) -> Any:
    """The column of these pieces if all of them have the same one value, else None."""
    values = {piece.repeated if isinstance(piece, Narrow) else None for piece in pieces}
    if len(values) != 1 or (value := values.pop()) is None:
        return None
    return repeated(kind(value), rows)


@dataclass(frozen=True)
class Generic:
    """Generic events of one type: when each was, and its bytes, all of one length."""

    type_id: int
    times: IntArray
    payloads: NDArray[np.uint8]  # a row an event


@dataclass
class _Parts:
    """What has been read so far."""

    payloads: Mapping[int, int]  # type of the generic events that are wanted → bytes of each
    most: int  # events of both kinds, as the file says
    columns: dict[str, dict[str, list[Ints]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    texts: dict[str, dict[bytes, int]] = field(default_factory=lambda: defaultdict(dict))
    generic: dict[int, list[tuple[IntArray, Bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    unread: Counter[tuple[int, int]] = field(default_factory=Counter)
    events: int = 0
    generic_events: int = 0


def read_events(container: Container, payloads: Mapping[int, int]) -> ReportEvents:
    """The report's events as columns in the order of the file.

    ``payloads`` says which types of generic events to keep, and how many bytes an event of each
    has.

    Raises NsysmapError if the bytes are damaged, or there are more or fewer events than the file
    says.
    """
    parts = _Parts(payloads, container.counts.events + container.counts.generic_events)
    with container.path.open("rb") as file:
        batch: list[bytes] = []
        for number, block in enumerate(container.blocks):
            batch.append(decompressed(container, file, block))
            if sum(map(len, batch)) >= _BATCH_BYTES or number + 1 == len(container.blocks):
                with damage(container.path, "events"):
                    _read(batch, parts)
                batch = []
    with damage(container.path, "events"):
        counts = container.counts
        if (parts.events, parts.generic_events) != (counts.events, counts.generic_events):
            raise WireError(
                f"{parts.events} and {parts.generic_events} events, but the file says"
                f" {counts.events} and {counts.generic_events}"
            )
        return ReportEvents(_joined(parts), _generic(parts), dict(parts.unread))


def bodies_of(container: Container, body: int) -> Iterator[tuple[Bytes, BufferParts]]:
    """The bodies of one kind in the order of the file, some blocks at a time: the bytes, and where
    in them each is.

    Raises NsysmapError if the bytes are damaged.
    """
    most = container.counts.events + container.counts.generic_events
    with container.path.open("rb") as file:
        for block in container.blocks:
            data = decompressed(container, file, block)
            with damage(container.path, "events"):
                buffer = padded(data)
                _, first = varint(data, 0)
                tag, spans = split(buffer, first, len(data), (_EVENT, _GENERIC), most)
                _, bodies, inner = _opened(buffer, spans.take(np.flatnonzero(tag == _EVENT)))
                found = inner.take(np.flatnonzero(bodies == body))
            if len(found.begin):
                yield buffer, found


# --- some blocks
# --------------------------------------------------------------------------------------------------


def _read(blocks: list[bytes], parts: _Parts) -> None:
    buffer = padded(*blocks)
    tags, begins, ends = [], [], []
    at, most = 0, parts.most - parts.events - parts.generic_events
    for data in blocks:
        _, first = varint(data, 0)
        tag, spans = split(buffer, at + first, at + len(data), (_EVENT, _GENERIC), most)
        tags.append(tag)
        begins.append(spans.begin)
        ends.append(spans.end)
        at += len(data)
        most -= len(tag)
    blocks.clear()
    tag = np.concatenate(tags)
    every = BufferParts(np.concatenate(begins), np.concatenate(ends))
    events = np.flatnonzero(tag == _EVENT)
    generic = np.flatnonzero(tag == _GENERIC)
    parts.events += len(events)
    parts.generic_events += len(generic)
    if len(events):
        _read_events(buffer, every.take(events), parts)
    if len(generic):
        _read_generic(buffer, every.take(generic), parts)


def _read_events(buffer: Bytes, events: BufferParts, parts: _Parts) -> None:
    """Group the events by type and body, whose fields are nearly the same, and read each group in
    one go.
    """
    types, bodies, inner = _opened(buffer, events)
    keys = types << 11 | bodies  # both have at most 14 and 11 bits
    if types.max() > _MOST_TYPE:  # far beyond all that are known
        keys = bodies
    found: dict[str, list[tuple[IntArray, dict[str, IntArray]]]] = defaultdict(list)
    for key in np.flatnonzero(np.bincount(keys)).tolist():
        rows = np.flatnonzero(keys == key)
        for table, here, columns in _read_group(buffer, key & 0x7FF, inner.take(rows), parts):
            found[table].append((rows[here], columns))
    for table, pieces in found.items():
        order = (
            np.argsort(np.concatenate([rows for rows, _ in pieces]), kind="stable")
            if len(pieces) > 1
            else None
        )
        for name in _names(table):
            column = np.concatenate([_column(columns, name, len(rows)) for rows, columns in pieces])
            column = column if order is None else column[order]
            parts.columns[table][name].append(compact(column))


def _names(table: str) -> list[str]:
    """All columns of a table, of which some kinds of its events have only a few."""
    names = (
        name
        for kind in KINDS
        if kind.table == table
        for name in (*kind.columns, *kind.texts, *kind.part_columns)
    )
    return [name for name in dict.fromkeys(names) if name != UNIT]


def _column(columns: Mapping[str, IntArray], name: str, rows: int) -> IntArray:
    return columns[name] if name in columns else np.full(rows, MISSING, np.int64)


def _opened(buffer: Bytes, events: BufferParts) -> tuple[IntArray, IntArray, BufferParts]:
    """The type of every event, the number of its body, and where that is: an event has these two
    fields and no more.
    """
    words = np.ndarray((len(buffer) - 7,), "<u8", buffer, 0, (1,))
    head = words[events.begin].view(np.int64)
    if (head & 0xFF != _TYPE_TAG).any():
        raise WireError("an event that does not begin with its type")
    types, at = head >> 8 & 0x7F, events.begin + 4
    long = head & 0x8000 != 0  # types from 128 on take two bytes
    if long.any():
        if (long & (head & 0x800000 != 0)).any():
            raise WireError("an event of a type beyond all that are known")
        types |= np.where(long, (head >> 16 & 0x7F) << 7, 0)
        at += long
        head = np.where(long, head >> 8, head)
    tag = head >> 16 & 0xFFFF  # two bytes, as bodies have numbers from 16 to 2047; wire type 2
    if (tag & 0x8087 != 0x0082).any() or (at >= events.end).any():
        raise WireError("an event that has no body of a known form")
    bodies = (tag & 0x7F) >> 3 | tag >> 8 << 4
    begin, size = lengths(buffer, at)
    if (begin + size != events.end).any():
        raise WireError("an event that has more than a type and a body")
    return types, bodies, BufferParts(begin, events.end)


def _read_group(
    buffer: Bytes, body: int, spans: BufferParts, parts: _Parts
) -> Iterator[tuple[str, slice | IntArray, dict[str, IntArray]]]:
    """For each kind of event among these bodies its table, which of them are of that kind, and
    their columns.
    """
    kinds = [kind for kind in KINDS if kind.body == body]
    if not kinds:
        parts.unread[body, -1] += len(spans.begin)
        return
    forms: dict[int, Form] = {}
    for kind in kinds:
        forms.update(dict.fromkeys(kind.columns.values(), "number"))
        forms.update(
            dict.fromkeys((*kind.texts.values(), *((kind.part,) if kind.part else ())), "bytes")
        )
    class_field = CLASS_FIELD.get(body)
    if class_field is not None:
        forms[class_field] = "number"
    read = walk(buffer, spans, forms)
    if class_field is None:
        classes = np.zeros(len(spans.begin), np.int64)
    else:
        classes = read.numbers[class_field]
        known = np.isin(classes, [value for kind in kinds for value in kind.classes])
        if not known.all():
            for value, count in zip(*np.unique(classes[~known], return_counts=True), strict=True):
                parts.unread[body, int(value)] += int(count)
    for kind in kinds:
        of_kind = (
            np.isin(classes, kind.classes) if kind.classes else np.ones(len(classes), np.bool_)
        )
        if not of_kind.any():
            continue
        here: slice | IntArray = slice(None) if of_kind.all() else np.flatnonzero(of_kind)
        columns = {name: read.numbers[number][here] for name, number in kind.columns.items()}
        for name, number in kind.texts.items():
            columns[name] = _codes(
                buffer, read.spans[number].take(here), parts.texts[f"{kind.table}.{name}"]
            )
        if kind.part_columns:
            columns.update(_part(buffer, read.spans[kind.part].take(here), kind))
        _check(kind, columns)
        yield kind.table, here, columns


def _part(buffer: Bytes, spans: BufferParts, kind: EventKind) -> dict[str, IntArray]:
    """The columns that stand in the message within the body; MISSING if a body has none."""
    forms: dict[int, Form] = dict.fromkeys(kind.part_columns.values(), "number")
    there = spans.begin >= 0
    if there.all():
        read = walk(buffer, spans, forms).numbers
        return {name: read[number] for name, number in kind.part_columns.items()}
    held = np.flatnonzero(there)
    read = walk(buffer, spans.take(held), forms).numbers
    columns = {name: np.full(len(there), MISSING, np.int64) for name in kind.part_columns}
    for name, number in kind.part_columns.items():
        columns[name][held] = read[number]
    return columns


def _check(kind: EventKind, columns: dict[str, IntArray]) -> None:
    for name in kind.needed:
        if (columns[name] == MISSING).any():
            raise WireError(f"an event for {kind.table} that has no {name}")
    if kind.body == NVTX and (columns.pop(UNIT) != 1).any():
        raise WireError("an NVTX event whose time is not in nanoseconds")


# --- texts
# --------------------------------------------------------------------------------------------------


def _codes(buffer: Bytes, spans: BufferParts, seen: dict[bytes, int]) -> IntArray:
    """The texts as codes of distinct values, -1 for none and for an empty one."""
    filled = np.flatnonzero(spans.end > spans.begin)
    codes = np.full(len(spans.begin), -1, np.int64)
    if not len(filled):
        return codes
    first, size = spans.begin[filled], (spans.end - spans.begin)[filled]
    words = np.ndarray((len(buffer) - 7,), ">u8", buffer, 0, (1,))
    same = like_texts(words, first, size)
    distinct, inverse = np.unique(same, return_inverse=True)
    data = buffer.data
    numbers = np.fromiter(
        (
            seen.setdefault(bytes(data[begin : begin + length]), len(seen))
            for begin, length in zip(first[distinct].tolist(), size[distinct].tolist(), strict=True)
        ),
        np.int64,
        len(distinct),
    )
    codes[filled] = numbers[inverse]
    return codes


# --- generic events, and the end
# ------------------------------------------------------------------------------------


def _read_generic(buffer: Bytes, events: BufferParts, parts: _Parts) -> None:
    read = walk(buffer, events, {1: "number", 2: "number", 3: "bytes"})
    types, times, payload = read.numbers[1], read.numbers[2], read.spans[3]
    if (types == MISSING).any() or (times == MISSING).any():
        raise WireError("a generic event without a type or a time")
    for type_id, size in parts.payloads.items():
        rows = np.flatnonzero(types == type_id)
        begin = payload.begin[rows]
        if (begin < 0).any() or (payload.end[rows] - begin != size).any():
            raise WireError(f"a generic event of type {type_id} that has no {size} bytes")
        parts.generic[type_id].append(
            (times[rows], np.lib.stride_tricks.sliding_window_view(buffer, size)[begin])
        )


def _generic(parts: _Parts) -> tuple[Generic, ...]:
    return tuple(
        Generic(
            type_id,
            np.concatenate([times for times, _ in pieces]),
            np.concatenate([held for _, held in pieces]),
        )
        for type_id, pieces in parts.generic.items()
    )


def _joined(parts: _Parts) -> dict[str, Mapping[str, IntArray | Text]]:
    tables: dict[str, Mapping[str, IntArray | Text]] = {}
    for table, columns in parts.columns.items():
        rows = {sum(map(len, pieces)) for pieces in columns.values()}
        if len(rows) != 1:
            raise AssertionError("columns of different lengths")
        texts = {
            name: tuple(parts.texts[f"{table}.{name}"])
            for name in columns
            if f"{table}.{name}" in parts.texts
        }
        tables[table] = EventColumns(dict(columns), texts, rows.pop())
    return tables
