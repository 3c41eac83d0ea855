"""Writes reports in nsys's container, for tests: protobuf messages from plain values, LZ4 blocks,
sections, and the end mark.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import lz4.block


def varint(value: int) -> bytes:
    """The number in protobuf's variable length."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, object]) -> bytes:
    """The message with these fields: integers, texts, bytes and messages (as lists of fields)."""
    out = bytearray()  # of bytes, each part would be a copy of all before it
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        if isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
            continue
        data = (
            value.encode()
            if isinstance(value, str)
            else message(*value)
            if isinstance(value, list)
            else value
        )
        assert isinstance(data, bytes)
        out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def sized(data: bytes) -> bytes:
    """The bytes behind the number that says how many they are."""
    return varint(len(data)) + data


def block(data: bytes) -> bytes:
    """A compressed block of these messages."""
    whole = sized(data)
    packed: bytes = lz4.block.compress(whole, store_size=False)
    return varint(len(packed)) + varint(len(whole)) + packed


@dataclass
class Made:
    """What a made report holds; every part can be replaced by something wrong."""

    events: list[bytes] = field(default_factory=list)
    generic: list[bytes] = field(default_factory=list)
    strings: list[str] = field(default_factory=lambda: ["[Unknown]"])
    threads: list[bytes] = field(default_factory=list)
    session: list[tuple[int, object]] = field(default_factory=lambda: [(17, 1000), (18, 2000)])
    registry: list[tuple[int, object]] = field(default_factory=list)
    machine: list[tuple[int, object]] = field(default_factory=list)
    version: str = "2025.3.1.90-253135822126v0"
    per_block: int = 7000
    # field of the registry → what it says instead of the truth
    counts: dict[int, int] = field(default_factory=dict)
    line: bytes = b"NVIDIA Tegra Profiler Report 1.\n"
    sections: dict[str, bytes] = field(default_factory=dict)  # further ones
    # what stands in a block of events, and in that of the strings, in place of those above
    blocks: list[bytes] | None = None
    strings_block: bytes | None = None

    def data(self) -> bytes:
        """The file's bytes."""
        every = [(1, event) for event in self.events] + [(2, event) for event in self.generic]
        held = (
            [message(*every[i : i + self.per_block]) for i in range(0, len(every), self.per_block)]
            if self.blocks is None
            else self.blocks
        )
        blocks = [block(one) for one in held]
        counts = {
            1: len(self.events),
            3: len(self.strings),
            5: len(self.threads),
            15: len(self.generic),
            **self.counts,
        }
        registry = [
            (1, counts[1]),
            (3, counts[3]),
            (5, counts[5]),
            (9, "lz4"),
            (10, 1),
            (12, 1),
            *self.registry,
            (15, counts[15]),
        ]
        before = sized(message(*self.session)) + sized(message(*registry)) + b"".join(blocks)
        strings = block(
            message(*((1, text) for text in self.strings))
            if self.strings_block is None
            else self.strings_block
        )
        threads = sized(message(*((1, thread) for thread in self.threads))) if counts[5] else b""
        sections = {
            "Raw Sampling Data": (
                b"QDTEXT00" + before + strings + threads + sized(message(*self.machine))
            ),
            "Sampling Data Offsets": message((1, "lz4"), (2, len(before))),
            "UI Data": message((6, self.version)),
            **self.sections,
        }
        return container(sections, self.line)

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_bytes(self.data())
        return path


def container(sections: dict[str, bytes], line: bytes) -> bytes:
    """A file of these sections."""
    out, rows = line, []
    for name, data in sections.items():
        rows.append((1, [(1, name), (2, len(out)), (3, len(data))]))
        out += data
    return out + message(*rows) + len(out).to_bytes(8, "little") + b"U3w[END]"
