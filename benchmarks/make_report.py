"""Makes a report of any size, for nsysmap's own reader: python benchmarks/make_report.py KERNELS
REPORT.nsys-rep.

For each kernel there are its launch call and an NVTX range around that, one after the other on one
thread; kernels have five names, ranges a hundred.  All events are of one length, so that they are
made by numpy, block by block; times and ids differ, so that they compress as real ones do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nsysmap.inputs.nsys.report_wire import fields
from tests.made_report import Made, block, message, sized, varint
from tests.report_events import call, kernel, nvtx

KERNELS_A_BLOCK = 2_300  # some 7,000 events, as nsys writes
BEGIN_NS = 1 << 36  # from here to eight times as much a time takes six bytes
STEP_NS = 5_000
FIRST_ID = 1 << 28  # from here on an id takes five bytes
NAMES, RANGES = 5, 100
SENTINEL = (BEGIN_NS + 12_345, BEGIN_NS + 12_346, FIRST_ID + 12_347)

Ints = NDArray[np.int64]


def _events() -> bytes:
    """A range, a call and a kernel with numbers that are replaced in each copy."""
    start, end, number = SENTINEL
    made = [
        nvtx(59, (7, "layer00"), (10, end), start=start),
        call(0, NAMES + 1, start=start, end=end),
        kernel(start, end),
    ]
    correlated = (3 << 3).to_bytes(1, "little") + varint(17)
    made[1:] = [_relabelled(one, correlated, number) for one in made[1:]]
    return b"".join(message((1, one)) for one in made)


def _relabelled(event: bytes, old: bytes, number: int) -> bytes:
    """The event with another correlation id, its lengths mended."""
    kind, body = _split(event)
    return kind[0] + message((kind[1], body.replace(old, message((3, number)), 1)))


def _split(event: bytes) -> tuple[tuple[bytes, int], bytes]:
    (first, kind), (number, body) = fields(event)
    assert isinstance(kind, int)
    assert isinstance(body, bytes)
    return (message((first, kind)), number), body


def _varints(values: Ints, size: int) -> NDArray[np.uint8]:
    """The numbers in protobuf's variable length, each of so many bytes; a row a number."""
    bits = values[:, None] >> (7 * np.arange(size)) & 0x7F
    return (bits | np.where(np.arange(size) < size - 1, 0x80, 0)).astype(np.uint8)


def blocks_of(kernels: int) -> Iterator[bytes]:
    """The blocks of events, compressed."""
    pattern = _events()
    at = {value: _places(pattern, varint(value)) for value in SENTINEL}
    start, end, number = (at[value] for value in SENTINEL)
    text = pattern.index(b"layer00") + len("layer")
    names = pattern.rindex(message((1, 1), (2, 1), (3, 1)))
    random = np.random.default_rng(1)
    for first in range(0, kernels, KERNELS_A_BLOCK):
        rows = np.arange(first, min(first + KERNELS_A_BLOCK, kernels))
        made = np.tile(np.frombuffer(pattern, np.uint8), (len(rows), 1))
        begin = BEGIN_NS + rows * STEP_NS + random.integers(0, 300, len(rows))
        ready = begin + 3_000 + random.integers(0, 500, len(rows))
        moments = (
            (begin, begin + 3_500),
            (begin + 200, begin + 2_700 + random.integers(0, 500, len(rows))),
            (ready, ready + random.integers(500, 1_500, len(rows))),
        )
        for places, which in ((start, 0), (end, 1)):
            for place, times in zip(places, moments, strict=True):
                made[:, place : place + 6] = _varints(times[which], 6)
        for place in number:
            made[:, place : place + 5] = _varints(FIRST_ID + rows, 5)
        made[:, text], made[:, text + 1] = 48 + rows % RANGES // 10, 48 + rows % 10
        for place in range(3):
            made[:, names + 1 + 2 * place] = 1 + rows % NAMES
        yield block(made.tobytes())


def _places(pattern: bytes, value: bytes) -> list[int]:
    found = [place for place in range(len(pattern)) if pattern.startswith(value, place)]
    assert found
    return found


def write(kernels: int, path: Path) -> None:
    """Write the report."""
    assert BEGIN_NS + (kernels + 1) * STEP_NS < BEGIN_NS * 8
    strings = ["[Unknown]", *(f"kernel_{name}" for name in range(NAMES)), "cudaLaunchKernel_v7000"]
    # the parts before and after the events are those of a report without any
    empty = Made(blocks=[], strings=strings, counts={1: 3 * kernels})
    registry = [(1, 3 * kernels), (3, len(strings)), (9, "lz4"), (10, 1), (12, 1)]
    head = b"QDTEXT00" + sized(message(*empty.session)) + sized(message(*registry))
    tail = block(message(*((1, text) for text in strings))) + sized(message(*empty.machine))
    with path.open("wb") as file:
        file.write(empty.line)
        first = file.tell()
        file.write(head)
        for one in blocks_of(kernels):
            file.write(one)
        offset = file.tell() - first - len(b"QDTEXT00")
        file.write(tail)
        size = file.tell() - first
        # the other sections, and the table of all, of a file that ends here
        others = {
            "Sampling Data Offsets": message((1, "lz4"), (2, offset)),
            "UI Data": message((6, empty.version)),
        }
        rows: list[tuple[int, object]] = [(1, [(1, "Raw Sampling Data"), (2, first), (3, size)])]
        for name, data in others.items():
            rows.append((1, [(1, name), (2, file.tell()), (3, len(data))]))
            file.write(data)
        table = file.tell()
        file.write(message(*rows) + table.to_bytes(8, "little") + b"U3w[END]")


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]))
