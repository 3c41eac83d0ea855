"""Small reports that try to take much, each at most so many bytes large on the disk: as much of one
thing as a report may hold, or rather more; for tests and for benchmarks/bombs.py.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.made_report import Made, message, varint
from tests.report_events import TID, call, kernel, nvtx

ROOT = Path(__file__).parents[1]
TIMES, FREE_BYTES = 64, 256 << 20
LIMIT_S = 120.0
SAMPLES = 0x1000100000000


def field(data: bytes, number: int = 1) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def noise(size: int) -> bytes:
    """Bytes that do not compress, so that others may."""
    return random.Random(1).randbytes(size)


def unknown(size: int) -> bytes:
    """An event of a kind that nothing is known of, with so many bytes."""
    return field(message((1, 80)) + field(noise(size), 1000))


def rows(one: Callable[[int], bytes], count: int, per_block: int = 7000) -> list[bytes]:
    """Blocks of so many events."""
    return [
        b"".join(field(one(number)) for number in range(first, min(first + per_block, count)))
        for first in range(0, count, per_block)
    ]


def empty_strings(size: int) -> Made:
    """250 times as many bytes of nothing as they are compressed."""
    count = size * 240 // 2
    return Made(events=[kernel(1, 2)], strings_block=field(b"") * count, counts={3: count})


def many_strings(size: int) -> Made:
    count = int(size / 4)
    texts = [number.to_bytes(3, "little").replace(b"\0", b"~") for number in range(count)]
    return Made(events=[kernel(1, 2)], strings_block=b"".join(map(field, texts)), counts={3: count})


def large_strings(size: int) -> Made:
    text = field("ü€𝄞".encode() * 30_000)
    count = size * 200 // len(text)
    return Made(events=[kernel(1, 2)], strings_block=text * count, counts={3: count})


def names_of_kernels(size: int) -> Made:
    """As much of texts as is taken, each the name of a kernel."""
    text = "void cutlass::Kernel2<" + "cutlass_80_tensorop_s1688gemm_" * 300 + "{}>"
    count = size * 16 // len(text)
    return Made(
        events=[kernel(number * 10, number * 10 + 5, name=number) for number in range(count)],
        strings=[text.format(number) for number in range(count)],
    )


def empty_events(size: int) -> Made:
    count = size * 100 // 2
    per = 1 << 22
    blocks = [field(b"") * per] * (count // per)
    return Made(blocks=[unknown(size // 4), *blocks], counts={1: 1 + per * (count // per)})


def dense_kernels(size: int) -> Made:
    """The same kernel over and over, in noise that pays for it."""
    count = size // 8
    held = rows(lambda _: kernel(1000, 2000), count)
    return Made(blocks=[unknown(size // 2), *held], counts={1: 1 + count}, strings=["", "k"])


def kernels_and_calls(size: int) -> Made:
    """Kernels with their calls and ranges, each at a time of its own and after the other."""
    count = size // 40

    def one(number: int) -> bytes:
        kernel_of, which = divmod(number, 3)
        at = kernel_of * 1000
        if which == 0:
            return kernel(at + 500, at + 900)
        if which == 1:
            return call(0, 2, start=at, end=at + 100)
        text = f"l{kernel_of % 50}"
        return nvtx(59, (7, text), (10, TID), start=at)

    held = rows(one, 3 * count)
    return Made(blocks=held, counts={1: 3 * count}, strings=["", "k", "cudaLaunchKernel_v7000"])


def long_events(size: int) -> Made:
    """One event of 4,900 fields in each batch of blocks."""
    junk = field(message((1, 80)) + field(message(*[(1, 1)] * 4900, (7, 99)), 107))
    short = field(message((1, 79)) + field(message((7, 99)), 107))
    per = (4 << 20) // len(short)
    count = max(1, size * 25 // (4 << 20))
    blocks = [unknown(size * 3 // 4), *[junk + short * per] * count]
    return Made(blocks=blocks, counts={1: 1 + count * (per + 1)})


def only_long_events(size: int) -> Made:
    long = field(message((1, 79)) + field(message(*[(1, 1)] * 4900, (7, 3)), 107))
    per = (4 << 20) // len(long)
    count = max(1, size * 25 // (4 << 20))
    blocks = [unknown(size * 3 // 4), *[long * per] * count]
    return Made(blocks=blocks, counts={1: 1 + count * per})


def many_types(size: int) -> Made:
    count = size // 8

    def one(number: int) -> bytes:
        return message((1, 128 + number % 16000)) + field(message((7, 99)), 16 + number % 2000)

    return Made(blocks=[unknown(size // 2), *rows(one, count)], counts={1: 1 + count})


def large_blocks(size: int) -> Made:
    one = field(kernel(1000, 2000))
    per = (100 << 20) // len(one)
    return Made(blocks=[unknown(size // 2), one * per], counts={1: 1 + per})


def texts_of_ranges(size: int) -> Made:
    count = size // 24

    def one(number: int) -> bytes:
        return nvtx(59, (7, f"r{number:x}"), (10, TID), start=number * 10)

    return Made(blocks=rows(one, count), counts={1: count})


def idle_samples(size: int) -> Made:
    """Hardware counters of which nothing but the time changes."""
    names = ["[Unknown]", "GpuMetrics", "", *(f"Counter {number} [%]" for number in range(200))]
    parts = [(3, [(1, 3 + number), (2, number), (3, 1), (8, 1)]) for number in range(200)]
    count = size // 12
    blocks = [
        b"".join(
            field(message((1, SAMPLES), (2, 100 + 1000 * n), (3, bytes(200))), 2)
            for n in range(first, min(first + 7000, count))
        )
        for first in range(0, count, 7000)
    ]
    return Made(
        blocks=[
            field(kernel(1, 2)) + field(message((1, 80)) + field(noise(size // 4), 1000)),
            *blocks,
        ],
        strings=names,
        counts={1: 2, 15: count},
        registry=[(13, [(1, SAMPLES), (2, 3), (3, 1)]), (14, [(1, SAMPLES), (2, 2), *parts])],
    )


def empty_streams(size: int) -> Made:
    return Made(events=[kernel(1, 2)], machine=[(15, b"")] * (size // 2))


def empty_threads(size: int) -> Made:
    return Made(events=[kernel(1, 2)], threads=[b""] * (size // 2))


def streams(size: int) -> Made:
    """A kernel a stream."""
    count = size // 40
    own = [(1, 1), (2, 1), (3, 1), (8, 1), *((number, 1) for number in range(10, 16)), (28, 0)]

    def one(number: int) -> bytes:
        at = number * 20
        head = [(1, at), (2, at + 10), (3, 17), (4, 0), (5, 1), (6, number), (7, 3)]
        return message((1, 79), (107, [*head, (8, TID >> 24 << 24), (101, own)]))

    return Made(blocks=rows(one, count), counts={1: count}, strings=["", "k"])


BOMBS: Mapping[str, Callable[[int], Made]] = {
    made.__name__: made
    for made in (
        empty_strings,
        many_strings,
        large_strings,
        names_of_kernels,
        empty_events,
        dense_kernels,
        kernels_and_calls,
        long_events,
        only_long_events,
        many_types,
        large_blocks,
        texts_of_ranges,
        idle_samples,
        empty_streams,
        empty_threads,
        streams,
    )
}


def tried(name: str, size: int, path: Path, command: str) -> tuple[int, int, str]:
    """Exit status, peak memory in bytes, and the last line of standard error of the command on that
    report, which is written.
    """
    # in a process of its own: what is measured of a child begins with its parent's peak
    making = [sys.executable, "-m", "tests.report_bombs", name, str(size), str(path)]
    env = {**os.environ, "NSYSMAP_CACHE": str(path.parent / "cache"), "PYTHONPATH": str(ROOT)}
    subprocess.run(making, check=True, env=env, cwd=ROOT)
    measuring = [sys.executable, "-c", _MEASURED, sys.executable, "-m", "nsysmap", command]
    done = subprocess.run(
        [*measuring, str(path), "--reader", "own"],
        env=env,
        capture_output=True,
        check=False,
        timeout=LIMIT_S,
    )
    status, memory = map(int, done.stdout.splitlines()[-1].split())
    return status, memory << 10, (done.stderr.decode(errors="replace").splitlines() or [""])[-1]


_MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss)
"""


if __name__ == "__main__":
    BOMBS[sys.argv[1]](int(sys.argv[2])).write(Path(sys.argv[3]))
