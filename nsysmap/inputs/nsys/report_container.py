"""The container of a ``.nsys-rep`` (or ``.qdrep``) file: its sections, its compressed blocks, and
the counts that must agree.

A report is a first line of text, sections one behind the other, a table of the sections (a
message), its position, and an end mark.  The section with the events is a magic, two messages,
blocks compressed with LZ4 (events, and last the strings), and two more messages. docs/ has the
format in full and how it was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import lz4.block

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.nsys.report_wire import Message, WireError, varint

END_MARK = b"U3w[END]"
_MOST_SPACE = 64  # bytes of the foot in which white space behind the end is looked for
EVENTS_MAGIC = b"QDTEXT00"
FIRST_LINE = b"NVIDIA "
_LFS = b"version https://git-lfs"
_EVENTS, _OFFSETS, _ABOUT, _CLOCKS = (
    "Raw Sampling Data",
    "Sampling Data Offsets",
    "UI Data",
    "Time Conversion Data",
)
_MOST_TABLE = 1 << 20  # bytes of the table of sections, which has some seven rows
_MOST_MESSAGE = 1 << 28  # bytes of a message that is read in one piece
# bytes of a block of events once it is decompressed: 7,000 events; none of 426 has 4 MiB
_MOST_BLOCK = 1 << 25
_MOST_STRINGS_BLOCK = 1 << 28  # of the block of all strings: none of 426 has 3 MiB
# of the event blocks together: real ones take 2 to 6 times as much when decompressed
_MOST_RATIO = 32
# of the strings, once they have that many bytes: none of 426 takes more than 12.5 times as much
_MOST_STRINGS_RATIO, _FREE_STRINGS = 16, 1 << 23
# bytes of an event, compressed and not: two times differ between any two events, so that LZ4 takes
# some ten bytes for each, and of 426 reports none takes less than 10.9, and 38 when decompressed
_LEAST_COMPRESSED, _LEAST_EVENT, _FREE_EVENTS = 4, 12, 10_000
_LEAST_STRING = 2  # compressed bytes: of 426 reports none takes less than 8.6
_SAVE_AGAIN = "copy the report again from where it was captured, or capture it again"
_OTHER_READER = "export it with the nsys that wrote it (nsys export -t sqlite) and give the .sqlite"


@dataclass(frozen=True)
class CompressedBlock:
    """One compressed block: the position of its bytes in the file, and its size before and after
    decompression.
    """

    offset: int
    compressed: int
    size: int


@dataclass(frozen=True)
class Counts:
    """The counts that the file states for itself."""

    events: int
    generic_events: int
    strings: int
    thread_names: int


@dataclass(frozen=True)
class Container:
    """An opened report: its messages, and where its blocks are."""

    path: Path
    about: Message  # which nsys, when
    session: Message  # the machine, the options, the clocks
    registry: Message  # counts, sources and types of generic events
    counts: Counts
    blocks: tuple[CompressedBlock, ...]  # of events
    strings: CompressedBlock
    thread_names: bytes
    machine: Message  # GPUs, contexts and streams
    # how one clock is converted into another, since nsys 2026; before, the session says it
    clocks: Message


def open_container(path: Path) -> Container:
    """The report's container, checked throughout; its blocks are only looked at, not decompressed.

    Raises NsysmapError if the file is no report, is cut off, or holds something else than is known
    of reports.
    """
    with path.open("rb") as file:
        size = _end(file)
        sections = _sections(path, file, size)
        offset, length = _section(path, sections, _EVENTS)
        with damage(path, _EVENTS):
            about = Message.of(_read(file, *sections.get(_ABOUT, (0, 0))))
            clocks = Message.of(_read(file, *sections.get(_CLOCKS, (0, 0))))
            codec, strings_at = _offsets(path, _read(file, *_section(path, sections, _OFFSETS)))
            if codec != "lz4":
                raise _unknown(path, f"its events are compressed with {codec[:20]!r}", "lz4")
            file.seek(offset)
            magic = file.read(len(EVENTS_MAGIC))
            if magic != EVENTS_MAGIC:
                raise _unknown(path, f"its events begin with {magic!r}", repr(EVENTS_MAGIC))
            base, end = offset + len(EVENTS_MAGIC), offset + length
            at = base
            session, at = _message(file, at, end)
            registry, at = _message(file, at, end)
            counts = _counts(registry)
            blocks = []
            while at < base + strings_at:
                block = _block(file, at, end)
                blocks.append(block)
                at = block.offset + block.compressed
            if at != base + strings_at:
                raise WireError(
                    "a block that reaches into the strings, which should begin at byte"
                    f" {strings_at}"
                )
            strings = _block(file, at, end, most=_MOST_STRINGS_BLOCK)
            at = strings.offset + strings.compressed
            thread_names, at = _bytes(file, at, end) if counts.thread_names else (b"", at)
            machine, at = _message(file, at, end) if registry.number(10) else (Message({}), at)
            while at < end:  # definitions of NVTX payloads, where a program has its own
                more = _block(file, at, end)
                at = more.offset + more.compressed
            _check_sizes(blocks, strings, counts)
    return Container(
        path,
        about,
        session,
        registry,
        counts,
        tuple(blocks),
        strings,
        thread_names,
        machine,
        clocks,
    )


def decompressed(container: Container, file: BinaryIO, block: CompressedBlock) -> bytes:
    """The bytes of one block.  Raises NsysmapError if they are not what LZ4 can have made."""
    data = _read(file, block.offset, block.compressed)
    with damage(container.path, _EVENTS):
        try:
            found: bytes = lz4.block.decompress(data, uncompressed_size=block.size)
        except (lz4.block.LZ4BlockError, ValueError) as error:
            raise WireError(f"a block at byte {block.offset} that does not decompress") from error
        if len(found) != block.size:
            raise WireError(
                f"a block of {len(found)} bytes at byte {block.offset} which says that it has"
                f" {block.size}"
            )
        size, begin = varint(found, 0)
        if begin + size != len(found):
            raise WireError(f"a message of {size} bytes in a block of {len(found)}")
    return found


@contextmanager
def damage(path: Path, where: str) -> Iterator[None]:
    """Turns what is wrong with the bytes into an error about the file."""
    try:
        yield
    except WireError as error:
        raise NsysmapError(
            str(path), f"is damaged: in its {where} there is {error}", _SAVE_AGAIN
        ) from error


def _unknown(path: Path, found: str, expected: str) -> NsysmapError:
    return NsysmapError(str(path), f"{found}, where {expected} is expected", _OTHER_READER)


def _end(file: BinaryIO) -> int:
    """The position where the report ends: before white space that an editor or a transfer put
    behind it.
    """
    size = file.seek(0, 2)
    foot = _read(file, max(0, size - _MOST_SPACE), min(_MOST_SPACE, size))
    bare = foot.rstrip()
    return size - len(foot) + len(bare) if bare.endswith(END_MARK) else size


def _sections(path: Path, file: BinaryIO, size: int) -> dict[str, tuple[int, int]]:
    """Name → offset and length."""
    foot = _read(file, max(0, size - 16), min(16, size))
    if foot[-8:] != END_MARK:
        file.seek(0)
        head = file.read(len(_LFS))
        if head == _LFS:
            raise NsysmapError(
                str(path),
                "is a Git LFS pointer, not the report itself",
                "fetch the report: git lfs pull",
            )
        if not head.startswith(FIRST_LINE):
            raise NsysmapError(
                str(path),
                "is not an nsys report: it neither begins nor ends like one",
                "give a .nsys-rep, a .qdrep or an export",
            )
        raise NsysmapError(
            str(path),
            f"is cut off: a report ends with {END_MARK!r}, this file with {foot[-8:]!r}",
            _SAVE_AGAIN,
        )
    table = int.from_bytes(foot[:8], "little")
    if len(foot) < 16 or not 0 < table <= size - 16 or size - 16 - table > _MOST_TABLE:
        raise NsysmapError(
            str(path),
            "is damaged: its table of sections is not where the end of the file says",
            _SAVE_AGAIN,
        )
    sections: dict[str, tuple[int, int]] = {}
    with damage(path, "table of sections"):
        for row in Message.of(_read(file, table, size - 16 - table)).messages(1):
            name, offset, length = row.text(1) or "", row.number(2) or 0, row.number(3) or 0
            if offset + length > table:
                raise WireError(
                    f"a section {name[:40]!r} of {length} bytes at byte {offset}, which ends behind"
                    f" byte {table}"
                )
            if name in sections:
                raise WireError(f"a section {name[:40]!r} that is there twice")
            sections[name] = (offset, length)
    return sections


def _section(path: Path, sections: dict[str, tuple[int, int]], name: str) -> tuple[int, int]:
    if name not in sections:
        held = ", ".join(repr(other[:40]) for other in list(sections)[:12]) or "none"
        raise _unknown(path, f"it has the sections {held}", repr(name))
    return sections[name]


def _offsets(path: Path, data: bytes) -> tuple[str, int]:
    held = Message.of(data)
    at = held.number(2)
    if at is None:
        raise _unknown(path, "it does not say where its strings are", "their position")
    return held.text(1) or "", at


def _counts(registry: Message) -> Counts:
    return Counts(
        registry.number(1) or 0,
        registry.number(15) or 0,
        registry.number(3) or 0,
        registry.number(5) or 0,
    )


def _check_sizes(blocks: list[CompressedBlock], strings: CompressedBlock, counts: Counts) -> None:
    """Whether the memory that reading takes is within what the file's own size explains."""
    total, compressed = (
        sum(block.size for block in blocks),
        sum(block.compressed for block in blocks),
    )
    if total > _MOST_RATIO * compressed + _MOST_TABLE:
        raise WireError(f"{total} bytes compressed to {compressed}, which no real events are")
    events = counts.events + counts.generic_events
    if events * _LEAST_EVENT > total or ((events - _FREE_EVENTS) * _LEAST_COMPRESSED > compressed):
        raise WireError(
            f"a count of {counts.events} and {counts.generic_events} events where all blocks have"
            f" {total} bytes, compressed to {compressed}"
        )
    if strings.size > _FREE_STRINGS + _MOST_STRINGS_RATIO * strings.compressed:
        raise WireError(
            f"{strings.size} bytes of strings compressed to {strings.compressed}, which no real"
            " strings are"
        )
    # no string is there twice, so that each takes some of these bytes
    if counts.strings * _LEAST_STRING > strings.compressed + 1000:
        raise WireError(f"a count of {counts.strings} strings in {strings.compressed} bytes")


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    data = file.read(length)
    if len(data) != length:
        raise WireError(f"an end after {len(data)} of {length} bytes")
    return data


def _bytes(file: BinaryIO, at: int, end: int) -> tuple[bytes, int]:
    """The bytes behind the number that says how many they are, and the position behind them."""
    head = _read(file, at, max(0, min(10, end - at)))
    size, begin = varint(head, 0)
    begin += at
    if size > end - begin or size > _MOST_MESSAGE:
        raise WireError(f"a message of {size} bytes where {end - begin} are left")
    return _read(file, begin, size), begin + size


def _message(file: BinaryIO, at: int, end: int) -> tuple[Message, int]:
    data, at = _bytes(file, at, end)
    return Message.of(data), at


def _block(file: BinaryIO, at: int, end: int, *, most: int = _MOST_BLOCK) -> CompressedBlock:
    head = _read(file, at, max(0, min(20, end - at)))
    compressed, begin = varint(head, 0)
    size, begin = varint(head, begin)
    begin += at
    if compressed > end - begin or not 0 < size <= min(255 * compressed, most):
        raise WireError(
            f"a block of {compressed} bytes, {size} when decompressed, where {end - begin} are left"
        )
    return CompressedBlock(begin, compressed, size)
