"""Writes the few messages of Perfetto's trace format that are needed, in protobuf's wire format.

The numbers are those of protos/perfetto/trace/trace_packet.proto, track_event.proto,
track_descriptor.proto and debug_annotation.proto.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_PACKET = b"\x0a"  # Trace.packet
_SEQUENCE = 1  # all packets have one writer
_BEGIN, _END, _COUNTER = 1, 2, 4
_CLEARED, _NEEDED = 1, 2  # the interned texts start anew; the packet needs them


def varint(value: int) -> bytes:
    """A non-negative number as a varint: seven bits per byte."""
    if value < 0x80:
        return bytes((value,))
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """A field that contains a number; negative ones take ten bytes, as in protobuf's int64."""
    return varint(field << 3 | _VARINT) + varint(value & 0xFFFFFFFFFFFFFFFF)


def text(field: int, value: str) -> bytes:
    """A field that contains text."""
    return message(field, value.encode("utf-8", "replace"))


def message(field: int, content: bytes) -> bytes:
    """A field that contains a message, or bytes."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def packet(content: bytes) -> bytes:
    """One packet of the trace; all packets are in one sequence."""
    content += _OF_SEQUENCE
    return _PACKET + varint(len(content)) + content


def compressed(packets: Iterable[bytes]) -> Iterator[bytes]:
    """The packets, compressed in batches: each result is a packet whose compressed_packets field
    contains a batch, as in Perfetto's own writer.
    """
    held: list[bytes] = []
    size = 0
    for one in packets:
        held.append(one)
        size += len(one)
        if size >= _TOGETHER:
            yield _deflated(held)
            held, size = [], 0
    if held:
        yield _deflated(held)


def _deflated(packets: Iterable[bytes]) -> bytes:
    content = message(50, zlib.compress(b"".join(packets), _LEVEL))
    return _PACKET + varint(len(content)) + content


_TOGETHER = 1 << 20  # bytes; larger batches do not compress better
_LEVEL = 6  # of zlib: its default
_OF_SEQUENCE = number(10, _SEQUENCE)
_NEEDS = number(13, _NEEDED)


class Interned:
    """Interned texts: events refer to them by number, and one packet says which text each number
    is.
    """

    def __init__(self) -> None:
        """Starts without texts."""
        self._numbers: dict[int, dict[str, int]] = {}

    def number(self, kind: int, value: str) -> int:
        """The number of a text; ``kind`` is its field of InternedData: 1 category, 2 name of an
        event, 3 of an annotation, 29 text.
        """
        texts = self._numbers.setdefault(kind, {})
        return texts.setdefault(value, len(texts) + 1)

    def packet(self) -> bytes:
        """The packet with all texts; it must precede the events."""
        found = b"".join(
            message(kind, number(1, at) + text(2, value))
            for kind, texts in self._numbers.items()
            for value, at in texts.items()
        )
        return packet(number(13, _CLEARED) + message(12, found))

    def slice(self, name: str, category: str, annotations: Mapping[str, object]) -> bytes:
        """The fields of TrackEvent for the begin of a slice, except type, track and flows."""
        parts = [number(3, self.number(1, category)), number(10, self.number(2, name))]
        parts += [
            message(4, self._annotation(key, value))
            for key, value in annotations.items()
            if value is not None
        ]
        return b"".join(parts)

    def _annotation(self, key: str, value: object) -> bytes:
        named = number(1, self.number(3, key))
        if isinstance(value, int):
            return named + number(4, value)
        return named + number(17, self.number(29, str(value)))


def track(uuid: int, name: str, parent: int | None = None, *, more: bytes = b"") -> bytes:
    """The packet that declares a track; its children are shown in the order of their
    declaration.
    """
    found = (
        number(1, uuid)
        + text(2, name)
        + (b"" if parent is None else number(5, parent))
        + number(11, 3)
        + more
    )
    return packet(message(60, found))


def ranked(rank: int) -> bytes:
    """Value for a track's ``more``: its rank among its siblings."""
    return number(12, rank)


def process(pid: int) -> bytes:
    """Value for a track's ``more``: it is this process."""
    return message(3, number(1, pid))


def thread(pid: int, tid: int, name: str) -> bytes:
    """Value for a track's ``more``: it is this thread."""
    return message(4, number(1, pid) + number(2, tid) + text(5, name))


def counter(unit: str) -> bytes:
    """Value for a track's ``more``: it is a counter."""
    return message(8, text(6, unit))


class TrackPackets:
    """Makes the packets of one track's events."""

    def __init__(self, uuid: int) -> None:
        """A track that is declared by :func:`track`."""
        on = number(11, uuid)
        self._begin, self._end, self._count = (
            number(9, kind) + on for kind in (_BEGIN, _END, _COUNTER)
        )
        self._ended = message(11, self._end)

    def begin(
        self, at_ns: int, said: bytes, starts: Iterable[int] = (), ends: Sequence[int] = ()
    ) -> bytes:
        """A slice begins; flows start and end there."""
        flows = b"".join(_FLOW + one.to_bytes(8, "little") for one in starts)
        flows += b"".join(_FLOW_ENDS + one.to_bytes(8, "little") for one in ends)
        return packet(number(8, at_ns) + _NEEDS + message(11, self._begin + said + flows))

    def end(self, at_ns: int) -> bytes:
        """The innermost open slice ends."""
        return packet(number(8, at_ns) + self._ended)

    def value(self, at_ns: int, value: int) -> bytes:
        """The counter has this value from that time on."""
        return packet(number(8, at_ns) + message(11, self._count + number(30, value)))


_FLOW = varint(47 << 3 | _FIXED64)
_FLOW_ENDS = varint(48 << 3 | _FIXED64)
