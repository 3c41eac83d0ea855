"""A container opens when it is whole and says so truly; everything else is an error that names what
is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.nsys.report_container import (
    CompressedBlock,
    Counts,
    _check_sizes,
    open_container,
)
from nsysmap.inputs.nsys.report_tables import read_report
from nsysmap.inputs.nsys.report_wire import WireError
from tests.made_report import Made, container, message
from tests.report_events import kernel, nvtx


def made(**changes: object) -> Made:
    held = Made(
        events=[kernel(i, i + 5) for i in range(10)] + [nvtx(59, (7, "x"), (10, 200))],
        strings=["[Unknown]", "k"],
    )
    for name, value in changes.items():
        setattr(held, name, value)
    return held


def test_a_whole_report_opens(tmp_path: Path) -> None:
    path = made(per_block=4).write(tmp_path / "a.nsys-rep")
    opened = open_container(path)
    assert (opened.counts.events, opened.counts.strings, len(opened.blocks)) == (11, 2, 3)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({1: 12}, "11 and 0 events, but the file says 12 and 0"),
        ({15: 3}, "11 and 0 events, but the file says 11 and 3"),
        ({3: 1}, "2 strings where the file says 1"),
        ({1: 10**15}, "a count of 1000000000000000"),
    ],
)
def test_a_count_that_is_wrong_is_an_error(
    tmp_path: Path, counts: dict[int, int], message: str
) -> None:
    path = made(counts=counts).write(tmp_path / "a.nsys-rep")
    with pytest.raises(NsysmapError, match=message):
        read_report(path)


def test_every_cut_is_an_error(tmp_path: Path) -> None:
    data = made().data()
    path = tmp_path / "a.nsys-rep"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(NsysmapError):
            read_report(path)


CASES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda _: b"hello, world", "is not an nsys report"),
    (
        lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        "is a Git LFS pointer",
    ),
    (lambda data: data[:-100], "is cut off"),
    (
        lambda data: data[:-16] + bytes(8) + data[-8:],
        "its table of sections is not where the end of the file says",
    ),
    (
        lambda data: data.replace(b"Raw Sampling Data", b"Raw Sampling Date"),
        "it has the sections 'Raw Sampling Date'",
    ),
    (
        lambda data: data.replace(b"QDTEXT00", b"QDTEXT01"),
        "its events begin with b'QDTEXT01', where b'QDTEXT00' is expected",
    ),
    (
        lambda data: data.replace(b"\x0a\x03lz4\x10", b"\x0a\x03zst\x10"),
        "its events are compressed with 'zst', where lz4 is expected",
    ),
]


@pytest.mark.parametrize(("change", "message"), CASES)
def test_what_is_no_report_is_named(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "a.nsys-rep"
    path.write_bytes(change(made().data()))
    with pytest.raises(NsysmapError, match=message):
        read_report(path)


def test_white_space_behind_the_end_is_no_part_of_the_report(tmp_path: Path) -> None:
    path = tmp_path / "a.nsys-rep"
    path.write_bytes(made().data() + b"\r\n")
    assert len(read_report(path).tables["CUPTI_ACTIVITY_KIND_KERNEL"]["start"]) == 10


def test_the_first_line_decides_nothing(tmp_path: Path) -> None:
    path = made(line=b"Some Other Profiler 7\n").write(tmp_path / "a.nsys-rep")
    assert len(read_report(path).tables["CUPTI_ACTIVITY_KIND_KERNEL"]["start"]) == 10


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([bytes(60_000_000)], "a block of 235314 bytes, 60000009 when decompressed"),
        ([bytes(6_000_000)] * 10, "which no real events are"),  # blocks that may be, but not all
    ],
)
def test_blocks_that_would_fill_the_memory_are_an_error(
    tmp_path: Path, events: list[bytes], why: str
) -> None:
    path = tmp_path / "a.nsys-rep"
    path.write_bytes(made(events=events, per_block=1).data())
    with pytest.raises(NsysmapError, match=why):
        read_report(path)


def test_a_section_beyond_the_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.nsys-rep"
    data = container({"Raw Sampling Data": b"x"}, b"NVIDIA\n")
    table = message((1, [(1, "Raw Sampling Data"), (2, 7), (3, 10**9)]))
    path.write_bytes(data[:8] + table + (8).to_bytes(8, "little") + data[-8:])
    with pytest.raises(NsysmapError, match="a section 'Raw Sampling Data' of 1000000000 bytes"):
        read_report(path)


@pytest.mark.parametrize(
    ("events", "strings", "block", "text", "right"),
    [
        (10, 5, (1000, 32_000 + (1 << 20)), (500, 600), True),
        (10, 5, (1000, 32_001 + (1 << 20)), (500, 600), False),  # too much of so few bytes
        (100, 5, (1000, 1200), (500, 600), True),
        (100, 5, (1000, 1199), (500, 600), False),  # an event has twelve bytes
        (10_250, 5, (1000, 200_000), (500, 600), True),
        (10_251, 5, (1000, 200_000), (500, 600), False),  # … and four, compressed, if they are many
        (10, 5, (1000, 1200), (500, (1 << 23) + 8000), True),
        (10, 5, (1000, 1200), (500, (1 << 23) + 8001), False),  # too much of so few bytes
        (10, 750, (1000, 1200), (500, 600), True),
        (10, 751, (1000, 1200), (500, 600), False),  # a string has two bytes
    ],
)
def test_what_a_report_says_that_it_holds_must_be_within_what_its_bytes_can(
    events: int, strings: int, block: tuple[int, int], text: tuple[int, int], right: bool
) -> None:
    held = [CompressedBlock(0, *block)]
    for counts in (Counts(events, 0, strings, 0), Counts(0, events, strings, 0)):
        if right:
            _check_sizes(held, CompressedBlock(0, *text), counts)
        else:
            with pytest.raises(WireError):
                _check_sizes(held, CompressedBlock(0, *text), counts)
