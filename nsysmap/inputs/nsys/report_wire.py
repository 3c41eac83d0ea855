"""Decodes Google's protobuf wire format: one message at a time, or the same fields of very many
messages at once with numpy.

The wire format is public: https://protobuf.dev/programming-guides/encoding/.  Everything is checked
against the end of the message that it stands in; what does not fit raises :class:`WireError`, which
says what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Form = Literal["number", "bytes", "double", "float"]

SPARE = 16
"""How many bytes a buffer must have behind its last message: numbers are read 8 bytes at a time."""

# fields of one message, repeated ones included: the deepest backtraces have a few hundred frames
_MOST_STEPS = 5000
# of a message that is read by itself: the description of a session has some ten thousand
_MOST_FIELDS = 2_000_000
# of messages that are walked along together; real ones have some twenty fields
_STEPS_TOGETHER = 64
_FEW_ROWS = 32  # for which a step of numpy takes longer than one of Python
_WINDOW_BYTES = 1 << 20  # in which messages are looked for at a time: a byte takes up to 60
_WIRE: dict[Form, int] = {"number": 0, "double": 1, "bytes": 2, "float": 5}
_FIXED = {1: 8, 5: 4}
_DONE = np.uint64(1 << 62)  # no tag is so large
_TOP = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_U1, _U63 = np.uint64(1), np.uint64(63)


class WireError(Exception):
    """Bytes that are no protobuf message, or not the one that is expected."""


# --- one message
# --------------------------------------------------------------------------------------------------


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at that position, unsigned, and the position behind it."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position + 1
        shift += 7
    raise WireError(f"a number that does not end at byte {at}")


def signed(value: int) -> int:
    """The 64-bit number that an unsigned one stands for."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one message in their order: number, and value (bytes for strings, messages and
    the fixed sizes).
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise WireError(f"a field with number {number} at byte {at}")
        if wire == 0:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = varint(data, at)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise WireError(f"field {number} of wire type {wire}")
        if size > len(data) - at:
            raise WireError(f"field {number} of {size} bytes where {len(data) - at} are left")
        yield number, data[at : at + size]
        at += size


@dataclass(frozen=True)
class Message:
    """One message, its fields by number; a repeated field has all of its values."""

    values: Mapping[int, tuple[int | bytes, ...]]

    @staticmethod
    def of(data: bytes) -> Message:
        """The message in these bytes."""
        values: dict[int, list[int | bytes]] = {}
        for count, (number, value) in enumerate(fields(data)):
            if count > _MOST_FIELDS:
                raise WireError(f"a message of more than {_MOST_FIELDS} fields")
            values.setdefault(number, []).append(value)
        return Message({number: tuple(held) for number, held in values.items()})

    def number(self, field: int) -> int | None:
        """The last value of a number field, unsigned; None if there is none."""
        held = self.values.get(field)
        if held is None:
            return None
        if not isinstance(held[-1], int):
            raise WireError(f"field {field} holds bytes where a number is expected")
        return held[-1]

    def bytes(self, field: int) -> bytes | None:
        """The last value of a bytes field; None if there is none."""
        held = self.values.get(field)
        if held is None:
            return None
        if not isinstance(held[-1], bytes):
            raise WireError(f"field {field} holds a number where bytes are expected")
        return held[-1]

    def text(self, field: int) -> str | None:
        """The last value of a text field; what is no UTF-8 is replaced."""
        held = self.bytes(field)
        return None if held is None else held.decode("utf-8", "replace")

    def messages(self, field: int) -> list[Message]:
        """Every value of a field of messages."""
        held = self.values.get(field, ())
        if any(not isinstance(value, bytes) for value in held):
            raise WireError(f"field {field} holds a number where a message is expected")
        return [Message.of(value) for value in held if isinstance(value, bytes)]

    def numbers(self, field: int) -> list[int]:
        """Every value of a repeated number field, packed or not."""
        numbers: list[int] = []
        for value in self.values.get(field, ()):
            if isinstance(value, int):
                numbers.append(value)
                continue
            at = 0
            while at < len(value):
                number, at = varint(value, at)
                numbers.append(number)
        return numbers


# --- very many
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BufferParts:
    """Parts of a buffer by begin and end; begin -1 if there is none."""

    begin: IntArray
    end: IntArray

    def take(self, rows: slice | IntArray) -> BufferParts:
        """The parts at these positions."""
        return BufferParts(self.begin[rows], self.end[rows])


@dataclass(frozen=True)
class Fields:
    """Chosen fields of many messages, row by row: numbers (MISSING if there is none; of fixed size
    as bits) and parts of the buffer.
    """

    numbers: Mapping[int, IntArray]
    spans: Mapping[int, BufferParts]


def split(
    buffer: Bytes, begin: int, end: int, tags: tuple[int, ...], most: int
) -> tuple[IntArray, BufferParts]:
    """The messages within a message that holds only fields of these one-byte ``tags``, at most that
    many: the tag and position of each.
    """
    found: list[IntArray] = []
    firsts: list[IntArray] = []
    ends: list[IntArray] = []
    at, count = begin, 0
    while at < end:
        tag, first, behind = _split_window(buffer, begin, at, end, tags)
        count += len(tag)
        if count > most:
            raise WireError(f"more than {most} messages where the file says that there are no more")
        found.append(tag)
        firsts.append(first)
        ends.append(behind)
        at = int(behind[-1])
    if len(found) == 1:
        return found[0], BufferParts(firsts[0], ends[0])
    none = np.empty(0, np.int64)
    return (
        np.concatenate([none, *found]),
        BufferParts(np.concatenate([none, *firsts]), np.concatenate([none, *ends])),
    )


def _split_window(
    buffer: Bytes, whole: int, begin: int, end: int, tags: tuple[int, ...]
) -> tuple[IntArray, IntArray, IntArray]:
    """The messages that begin within a window of bytes, at least one: tags, begins and ends.

    Found without a loop over them: every byte that could be a tag gets the number of the one it
    would lead to, and from the first byte on these jumps are followed, twice as many in every step.
    """
    stop = min(begin + _WINDOW_BYTES, end)
    part = buffer[begin:stop]
    candidates = np.flatnonzero(np.logical_or.reduce([part == tag for tag in tags])) + begin
    length, size = _numbers(buffer, candidates + 1)
    first = candidates + 1 + size
    fits = (length <= np.uint64(end - begin)) & (first <= end)
    following = np.where(fits, first + np.where(fits, length, 0).astype(np.int64), end + 1)
    count = len(candidates)
    # of every position: which candidate; `count` is behind the window, `count + 1` is nowhere
    place = np.full(stop - begin + 1, count + 1, np.int32)
    place[candidates - begin] = np.arange(count, dtype=np.int32)
    place[stop - begin] = count
    jump = place[np.minimum(following, stop) - begin]
    jump[following > end] = count + 1
    jump = np.append(jump, (np.int32(count), np.int32(count + 1)))
    path = place[:1]
    while path[-1] < count:
        path = np.concatenate((path, jump[path]))
        jump = jump[jump]
    # once behind it, or nowhere, it stays there
    path = path[: int(np.searchsorted(path >= count, True)) + 1]
    if path[-1] != count:
        last = int(candidates[path[-2]]) if len(path) > 1 else begin
        raise WireError(
            f"something else than the fields {', '.join(str(tag >> 3) for tag in tags)} at or"
            f" behind byte {last - whole}"
        )
    path = path[:-1]
    return part[candidates[path] - begin].astype(np.int64), first[path], following[path]


def walk(buffer: Bytes, messages: BufferParts, wanted: Mapping[int, Form]) -> Fields:
    """The wanted fields of these messages, by number; all others are passed over, and of a repeated
    one the last counts.

    All messages are walked along at once: in each step those that have the lowest next field number
    go on by one field, so that messages of one kind, whose fields stand in the order of their
    numbers, stay in step although some lack a field.
    """
    count = len(messages.begin)
    found: dict[int, IntArray | BufferParts] = {}
    words = _words(buffer)
    rows = np.flatnonzero(messages.begin < messages.end)
    ends = messages.end[rows]
    at = messages.begin[rows].copy()
    tags = np.full(len(rows), _DONE)
    _tag(buffer, at, ends, tags, slice(None))
    for step in range(_MOST_STEPS):
        if not len(rows):
            return _filled(found, wanted, count)
        if step >= _STEPS_TOGETHER and len(rows) <= _FEW_ROWS:
            for row, place, limit, tag in zip(rows, at, ends, tags, strict=True):
                data = buffer[place:limit].tobytes()
                one = _Alone(int(row), int(place), data, int(tag), _MOST_STEPS - step)
                _walk_alone(one, wanted, found, count)
            return _filled(found, wanted, count)
        tag = tags.min()
        chosen: slice | IntArray = slice(None) if tag == tags.max() else np.flatnonzero(tags == tag)
        field, wire = int(tag) >> 3, int(tag) & 7
        form = wanted.get(field)
        if field == 0 or (form is not None and _WIRE[form] != wire):
            raise WireError(
                f"field {field} of wire type {wire}"
                + (f" where {_WIRE[form]} is expected" if form else "")
            )
        here, position, limit = rows[chosen], at[chosen], ends[chosen]
        held: IntArray | BufferParts | None = None
        if wire == 0:
            value, size = _numbers(buffer, position)
            behind = position + size
            held = value.view(np.int64)
        elif wire == 2:
            value, size = _numbers(buffer, position)
            begin = position + size
            left = limit - begin
            if left.min() < 0 or (value > left.view(np.uint64)).any():
                raise WireError(f"field {field} that is longer than the message it stands in")
            behind = begin + value.view(np.int64)
            held = BufferParts(begin, behind)
        elif wire in _FIXED:
            behind = position + _FIXED[wire]
            bits = words[position]
            held = (bits if wire == 1 else bits & np.uint64(0xFFFFFFFF)).view(np.int64)
        else:
            raise WireError(f"field {field} of wire type {wire}")
        if (behind > limit).any():
            raise WireError(f"field {field} that ends behind the message it stands in")
        if form is not None:
            _keep(found, field, held, here, count)
        at[chosen] = behind
        _tag(buffer, at, ends, tags, chosen)
        left_over = tags != _DONE
        if not left_over.all():
            rows, at, ends, tags = rows[left_over], at[left_over], ends[left_over], tags[left_over]
    raise WireError(f"a message of more than {_MOST_STEPS} fields")


@dataclass(frozen=True)
class _Alone:
    """The remainder of a message with many more fields than the others."""

    row: int
    place: int  # of the data in the buffer
    data: bytes
    tag: int  # which stands before the data
    most_fields: int


def _walk_alone(
    rest: _Alone,
    wanted: Mapping[int, Form],
    found: dict[int, IntArray | BufferParts],
    count: int,
) -> None:
    """The rest of one message, field by field: a step of all messages takes as long as that of some
    tens of fields.
    """
    data, tag, at = rest.data, rest.tag, 0
    here = np.array([rest.row])
    for _ in range(rest.most_fields):
        field, wire = tag >> 3, tag & 7
        form = wanted.get(field)
        if field == 0 or (form is not None and _WIRE[form] != wire):
            raise WireError(
                f"field {field} of wire type {wire}"
                + (f" where {_WIRE[form]} is expected" if form else "")
            )
        held: IntArray | BufferParts
        if wire == 0:
            value, at = varint(data, at)
            held = np.array([signed(value)])
        elif wire == 2:
            size, begin = varint(data, at)
            if size > len(data) - begin:
                raise WireError(f"field {field} that is longer than the message it stands in")
            at = begin + size
            held = BufferParts(np.array([rest.place + begin]), np.array([rest.place + at]))
        elif wire in _FIXED:
            bits = int.from_bytes(data[at : at + _FIXED[wire]], "little")
            at += _FIXED[wire]
            held = np.array([signed(bits)])
        else:
            raise WireError(f"field {field} of wire type {wire}")
        if at > len(data):
            raise WireError(f"field {field} that ends behind the message it stands in")
        if form is not None:
            _keep(found, field, held, here, count)
        if at == len(data):
            return
        tag, at = varint(data, at)
        if tag >> 32:
            raise WireError("a field number that is cut off, or too large")
    raise WireError(f"a message of more than {_MOST_STEPS} fields")


def lengths(buffer: Bytes, at: IntArray) -> tuple[IntArray, IntArray]:
    """For the length-prefixed data at these positions: where it begins, and how many bytes the
    prefix gives.
    """
    value, size = _numbers(buffer, at)
    if (value >> np.uint64(40)).any():
        raise WireError("a message longer than any file")
    return at + size, value.view(np.int64)


def padded(*data: bytes) -> Bytes:
    """The bytes, one after the other, as an array, with what :func:`walk` and :func:`split` need
    behind them.
    """
    return np.frombuffer(b"".join((*data, bytes(SPARE))), np.uint8)


def _keep(
    found: dict[int, IntArray | BufferParts],
    field: int,
    held: IntArray | BufferParts,
    here: IntArray,
    count: int,
) -> None:
    """Note what a field is in these rows."""
    if len(here) == count:
        found[field] = held
        return
    if field not in found:
        found[field] = _none("bytes" if isinstance(held, BufferParts) else "number", count)
    into = found[field]
    if isinstance(into, BufferParts) and isinstance(held, BufferParts):
        into.begin[here] = held.begin
        into.end[here] = held.end
    elif isinstance(into, np.ndarray) and isinstance(held, np.ndarray):
        into[here] = held


def _filled(
    found: Mapping[int, IntArray | BufferParts], wanted: Mapping[int, Form], count: int
) -> Fields:
    """The values that were found, and nothing for the others."""
    numbers: dict[int, IntArray] = {}
    spans: dict[int, BufferParts] = {}
    for field, form in wanted.items():
        held = found[field] if field in found else _none(form, count)
        if isinstance(held, BufferParts):
            spans[field] = held
        else:
            numbers[field] = held
    return Fields(numbers, spans)


def _none(form: Form, count: int) -> IntArray | BufferParts:
    if form == "bytes":
        return BufferParts(np.full(count, -1, np.int64), np.full(count, -1, np.int64))
    return np.full(count, MISSING, np.int64)


def _tag(
    buffer: Bytes, at: IntArray, ends: IntArray, tags: Words, chosen: slice | IntArray
) -> None:
    """Read the next tags of the chosen rows and step over them; DONE for a row that is at its
    end.
    """
    position, limit = at[chosen], ends[chosen]
    done = position >= limit
    if done.all():
        tags[chosen] = _DONE
        return
    tag, size = _numbers(buffer, position)
    if done.any():
        tag = np.where(done, _DONE, tag)
        size = np.where(done, 0, size)
    behind = position + size
    if (behind > limit).any() or (
        tag >> np.uint64(32) << np.uint64(32) != np.where(done, _DONE, 0)
    ).any():
        raise WireError("a field number that is cut off, or too large")
    tags[chosen] = tag
    at[chosen] = behind


def _words(buffer: Bytes) -> Words:
    """For every position the next 8 bytes as a little-endian number."""
    return np.ndarray((len(buffer) - 7,), "<u8", buffer, 0, (1,))


def _numbers(buffer: Bytes, at: IntArray) -> tuple[Words, IntArray | int]:
    """The numbers of variable length at these positions, and how many bytes each takes; one that
    does not end takes more than there are.
    """
    low = buffer[at]
    if low.max(initial=0) < 0x80:
        return low.astype(np.uint64), 1
    words = _words(buffer)
    word = words[at]
    stop = ~word
    stop &= _TOP
    # the top bit of the last byte; 0 if none of the 8 bytes is the last
    lowest = stop & ~stop + _U1
    same = int(lowest[0])
    if same and (lowest == lowest[0]).all():
        word &= np.uint64((same - 1) & 0x7F7F7F7F7F7F7F7F)
        _squeeze(word, same.bit_length() // 8)
        return word, same.bit_length() // 8
    mask = lowest - _U1
    word &= mask
    word &= _SEVEN
    _squeeze(word, 8)
    size = (np.bitwise_count(mask).astype(np.int64) + 1) >> 3
    longer = np.flatnonzero(lowest == 0)
    if len(longer):
        rest = words[np.minimum(at[longer] + 8, len(words) - 1)]
        word[longer] |= (rest & np.uint64(0x7F)) << np.uint64(56)
        nine = (rest & np.uint64(0x80)) == 0
        word[longer] |= np.where(nine, np.uint64(0), ((rest >> np.uint64(8)) & _U1) << _U63)
        ends = nine | ((rest & np.uint64(0x8000)) == 0)
        size[longer] = np.where(ends, np.where(nine, 9, 10), 1 << 40)
    return word, size


def _squeeze(word: Words, size: int) -> None:
    """Close the gaps between the 7 bits of each of the first ``size`` bytes, by pairs, by fours, by
    eights; in place.
    """
    for bits, gaps in ((1, 0x7F007F007F007F00), (2, 0x3FFF00003FFF0000), (4, 0x0FFFFFFF00000000)):
        if size <= bits:
            return
        upper = word & np.uint64(gaps)
        upper >>= np.uint64(bits)
        if bits > 1:
            upper *= np.uint64((1 << bits) - 1)
        word -= upper
