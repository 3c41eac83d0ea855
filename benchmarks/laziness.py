"""Prints the processor time that one question takes of a small report: a SELECT over one table, the
map, the first screen of the answer.

Each is a fresh process, with its bytecode compiled, as pip compiles what it installs; the median
of several is printed beside what Python and numpy take to start, for machines differ, and so does
one machine from hour to hour.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from speed import NSYSMAP, measure

FIXTURES = Path(__file__).parents[1] / "fixtures"
REPORTS = (
    ("bert_trt103/graph.sqlite", "bert_trt103/engine.json"),
    ("bert_trt10/sync.sqlite", "bert_trt10/engine.json"),
    ("real_trt/bert_eager-sync.nsys-rep", "real_trt/bert_eager.engine.json"),
    ("real_trt/resnet50_b1-sync.nsys-rep", "real_trt/resnet50_b1.engine.json"),
    ("real_trt/llama-graph.nsys-rep", "real_trt/llama.engine.json"),
)
"""Reports of some 2,000 kernels with their engines: nsys's exports, and reports that nsysmap reads
itself.
"""


def commands(report: Path, engine: Path, made: Path) -> dict[str, list[str | Path]]:
    """The questions, by what is printed of them."""
    of, page = [report, engine], made / "page.html"
    return {
        "sql, kernels": [*NSYSMAP, "sql", "SELECT count(*) FROM kernels", *of],
        "sql, layers": [*NSYSMAP, "sql", "SELECT count(*) FROM layers", *of],
        "sql, gaps": [*NSYSMAP, "sql", "SELECT count(*) FROM gaps", *of],
        "sql, what-if": [*NSYSMAP, "sql", "SELECT count(*) FROM whatif", *of],
        "map": [*NSYSMAP, "map", *of, "-o", made / "map.csv"],
        "layers --trace": [*NSYSMAP, "layers", engine, "--trace", report],
        "what-if": [*NSYSMAP, "what-if", *of],
        "analyze --no-cache": [*NSYSMAP, "analyze", "--no-cache", *of],
        "analyze, again": [*NSYSMAP, "analyze", *of],
        "analyze --full, again": [*NSYSMAP, "analyze", "--full", *of],
        "analyze --no-cache, a page": [*NSYSMAP, "analyze", "--no-cache", "-q", *of, "-o", page],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="the median of that many processes")
    parser.add_argument("--only", default="", help="questions that begin so")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["NSYSMAP_CACHE"] = str(folder / "cache")
        # some set it, and run a checkout: all of nsysmap would be compiled in each process
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        start = [sys.executable, "-c", "import numpy"]
        columns = {"python -c 'import numpy'": [median_s(start, given.repeat)] * len(REPORTS)}
        for report, engine in REPORTS:
            for name, command in commands(FIXTURES / report, FIXTURES / engine, folder).items():
                if name.startswith(given.only):
                    columns.setdefault(name, []).append(median_s(command, given.repeat))
        for number, (report, _) in enumerate(REPORTS, 1):
            print(f"{number}: {report}")
        print(f"seconds of processor time, median of {given.repeat}")
        for name, taken in columns.items():
            print(f"  {name:<28} {'  '.join(f'{seconds:6.2f}' for seconds in taken)}")


def median_s(command: list[str] | list[str | Path], repeat: int) -> float:
    """The median processor time of fresh processes, after one that is not counted: it writes
    bytecode, and brings the files into memory.
    """
    measure(command)
    return statistics.median(measure(command).cpu_s for _ in range(repeat))


if __name__ == "__main__":
    main()
