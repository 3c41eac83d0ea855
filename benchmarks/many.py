"""Traces with very many streams, contexts, processes, threads, CUDA graphs: python -m
benchmarks.many [KIND… [NUMBER…]].

One kernel for each of them, at a time of its own. Prints processor time and peak memory of `nsysmap
map` and `nsysmap analyze` (JSON), and by what power of the number the time grows.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.nsys_file import PROCESS, THREAD, NsysFile

ROOT = Path(__file__).parents[1]
KINDS = ("streams", "contexts", "processes", "threads", "graphs")
LIMIT_S = 600.0
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
_MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def written(kind: str, number: int, path: Path) -> None:
    """An export with so many of that kind."""
    made = NsysFile()
    for one in range(number):
        process = PROCESS + (one << 24 if kind == "processes" else 0)
        thread = THREAD - PROCESS + process + (one if kind == "threads" else 0)
        if kind == "graphs":
            made.call("cudaGraphLaunch_v10000", one * 20, one * 20 + 2, one + 1)
            made.kernel(f"k{one % 5}", one * 20 + 10, one + 1, node=one + 1)
        else:
            made.launch(f"k{one % 5}", one * 20, one + 1, thread=thread)
        row = made.rows[KERNEL][-1]
        if kind == "streams":
            row["streamId"] = one
        elif kind == "contexts":
            row["contextId"] = one
    path.unlink(missing_ok=True)
    made.write(path)


def measured(command: str, path: Path) -> tuple[int, float, int]:
    """Exit status, seconds of processor time, and peak memory in MiB."""
    options = ("--json", "--no-cache") if command == "analyze" else ()
    whole = ["timeout", str(LIMIT_S), sys.executable, "-m", "nsysmap", command, str(path), *options]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *whole],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    status, seconds, memory = done.stdout.split()
    return int(status), float(seconds), int(memory) >> 10


def main(given: list[str]) -> int:
    """Measure the kinds and numbers that are named, or all."""
    kinds = [one for one in given if one in KINDS] or KINDS
    numbers = [int(one) for one in given if one not in KINDS] or [10**3, 10**4, 10**5]
    print("kind | number | command | status | s | MiB | power")
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            before: dict[str, tuple[int, float]] = {}
            for number in numbers:
                path = Path(folder) / f"{kind}.sqlite"
                written(kind, number, path)
                for command in ("map", "analyze"):
                    status, seconds, memory = measured(command, path)
                    power = ""
                    if command in before:
                        fewer, took = before[command]
                        power = f"{math.log(seconds / took) / math.log(number / fewer):.2f}"
                    before[command] = (number, seconds)
                    told = f"{status} | {seconds:.1f} | {memory} | {power}"
                    print(f"{kind} | {number:,} | {command} | {told}")
                    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
