"""Reads small reports that try to take much: python -m benchmarks.bombs [MIB [NAME…]].

Each is at most some MIB large on the disk (default 1). `nsysmap map` and `nsysmap analyze` read it
with nsysmap's own reader; each must end with an answer or one line, within 64 times the file and
256 MiB of memory. Prints a line each; exit status 1 where one took more.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.report_bombs import BOMBS, FREE_BYTES, TIMES, tried


def main(given: list[str]) -> int:
    """Try the named reports, or all."""
    size = int(float(given[0]) * (1 << 20)) if given else 1 << 20
    failed = 0
    print("report | MB | command | status | s | MB of memory | may have | says")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bomb.nsys-rep"
        for name in given[1:] or BOMBS:
            for command in ("map", "analyze"):
                began = time.monotonic()
                status, memory, line = tried(name, size, path, command)
                took = time.monotonic() - began
                held = path.stat().st_size
                most = TIMES * held + FREE_BYTES
                wrong = memory > most or status not in (0, 2)
                failed += wrong
                print(
                    f"{name} | {held / 1e6:.2f} | {command} | {status} | {took:.1f}"
                    f" | {memory / 1e6:.0f} | {most / 1e6:.0f}{' WRONG' if wrong else ''}"
                    f" | {line.removeprefix('nsysmap: ').removeprefix(str(path))[:90]}"
                )
                sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
