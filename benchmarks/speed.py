"""Prints, side by side in one run: time and peak memory of `nsysmap map`, of `nsys stats` and of a
bare SQLite scan, and start-up times.

This process stays small (nothing but the standard library): a child's peak memory counts what its
  parent held when it was started.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = Path(sysconfig.get_path("scripts")) / "nsysmap"
NSYSMAP = (
    [str(SCRIPT)]
    if SCRIPT.exists()
    else [sys.executable, "-c", "from nsysmap.cli.main import main; main()"]
)
SCAN = """
import sqlite3, sys
file = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1", uri=True)
for table, columns in (
    ("CUPTI_ACTIVITY_KIND_KERNEL", "start end deviceId streamId correlationId globalPid demangledName graphNodeId"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "start end globalTid correlationId nameId"),
    ("NVTX_EVENTS", "start end eventType globalTid endGlobalTid textId domainId"),
):
    names = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
    file.execute(f"SELECT {', '.join(f'total({name})' for name in columns.split() if name in names)} FROM {table}").fetchone()
"""  # noqa: E501

Totals = dict[tuple[str, str, str], tuple[int, int]]
"""(process id, layer, kernel name) -> (kernels, nanoseconds)."""


@dataclass(frozen=True)
class Run:
    """What one command took; its children are counted in."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def measure(command: Sequence[str | Path], output: Path | None = None) -> Run:
    """Run a command to its end; it must succeed.  Its bytecode is kept, as that of an installed
    package is.
    """
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with Path(output or os.devnull).open("wb") as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            err.seek(0)
            sys.exit(
                f"{' '.join(map(str, command))} ended with {process.returncode}:"
                f" {err.read().decode(errors='replace')[-2000:]}"
            )
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def best(command: Sequence[str | Path], times: int, output: Path | None = None) -> Run:
    """The quickest of some runs."""
    return min((measure(command, output) for _ in range(times)), key=lambda run: run.cpu_s)


def mapped(path: Path) -> Totals:
    """Kernels and time per layer and kernel name, off what `nsysmap map` wrote."""
    found: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            total = found[row["pid"], row["layer"], row["kernel"]]
            total[0] += 1
            total[1] += int(row["end_ns"]) - int(row["start_ns"])
    return {key: (count, ns) for key, (count, ns) in found.items()}


def told_by_nsys(path: Path) -> Totals:
    """The same off nvtx_kern_sum, which counts a kernel under every range around it: the rows of
    the innermost ranges, the layers.
    """
    outer = (
        "infer",
        "TensorRT:ExecutionContext::",
        "TensorRT:{ForeignNode[",
        "myelin-exec:myelinGraphExecute",
    )
    found: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    with path.open(newline="", encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    for row in csv.DictReader(
        lines[next(i for i, line in enumerate(lines) if line.startswith("NVTX Range,")) :]
    ):
        if row["NVTX Range"].startswith(outer):
            continue
        total = found[row["PID"], row["NVTX Range"].split(":", 1)[1], row["Kernel Name"]]
        total[0] += int(row["Kern Inst"])
        total[1] += int(row["Total Time (ns)"])
    return {key: (count, ns) for key, (count, ns) in found.items()}


def compare(ours: Totals, theirs: Totals, kernels: int) -> None:
    """End with status 1 unless both give every layer the same kernels and the same time, and none
    is left out.
    """
    wrong = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
    for key in wrong[:5]:
        print(f"  DIFFERS {key}: nsysmap {ours.get(key)}, nsys {theirs.get(key)}")
    counted = sum(count for count, _ in ours.values())
    if wrong or counted != kernels:
        sys.exit(
            f"the answers differ in {len(wrong)} of {len(theirs)} rows; {counted:,} kernels of"
            f" {kernels:,}"
        )
    ns = sum(ns for _, ns in ours.values())
    print(
        f"  the answers are equal: {len(theirs):,} pairs of layer and kernel name, {counted:,}"
        f" kernels, {ns:,} ns"
    )


def show(what: str, run: Run, base: Run | None) -> None:
    ratio = (
        f"{base.wall_s / run.wall_s:7.1f}x {base.cpu_s / run.cpu_s:7.1f}x cpu"
        f" {base.peak_mib / run.peak_mib:7.2f}x"
        if base
        else ""
    )
    print(
        f"  {what:<34} {run.wall_s:8.2f} s {run.cpu_s:8.2f} s cpu {run.peak_mib:8.0f} MiB {ratio}"
    )


def one_size(kernels: int, folder: Path, repeat: int, *, processes: int, with_nsys: bool) -> None:
    """Measure and compare on one export, made in the folder unless it is there."""
    name = f"{kernels}x{processes}"
    export, engine = folder / f"{name}.sqlite", folder / f"{name}.json"
    if not (export.exists() and engine.exists()):
        subprocess.run(
            [
                sys.executable,
                HERE / "make_trace.py",
                str(kernels),
                export,
                engine,
                f"--processes={processes}",
            ],
            check=True,
        )
    with export.open("rb") as file:  # into the page cache, for all alike
        while file.read(1 << 24):
            pass
    print(
        f"{kernels:,} kernels asked for, {export.stat().st_size / 2**20:.0f} MiB; ratios to nsys"
        " stats: time, processor time, memory",
        flush=True,
    )
    base = None
    if with_nsys:
        base = measure(
            [
                "nsys",
                "stats",
                "-r",
                "nvtx_kern_sum",
                "--format",
                "csv",
                "--output",
                "-",
                "--force-export=false",
                export,
            ],
            folder / "nsys.csv",
        )
        show("nsys stats -r nvtx_kern_sum", base, None)
    show(
        "scan of the same columns in SQLite",
        best([sys.executable, "-c", SCAN, export], repeat),
        base,
    )
    for suffix in (".parquet", ".csv"):
        run = best([*NSYSMAP, "map", export, engine, "-o", folder / f"map{suffix}"], repeat)
        show(f"nsysmap map -o map{suffix}", run, base)
    if with_nsys:
        ours, theirs = mapped(folder / "map.csv"), told_by_nsys(folder / "nsys.csv")
        compare(ours, theirs, sum(count for count, _ in theirs.values()))


def start_up(times: int) -> None:
    """Time the commands that must start quickly, in turns."""
    commands = {
        "python -c 'import click'": [sys.executable, "-c", "import click"],
        "nsysmap --version": [*NSYSMAP, "--version"],
        "nsysmap decode x": [*NSYSMAP, "decode", "x"],
    }
    taken: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            taken[name].append(measure(command))
    print(f"start-up, median of {times}")
    base = None
    for name, runs in taken.items():
        wall, cpu = (
            statistics.median(run.wall_s for run in runs),
            statistics.median(run.cpu_s for run in runs),
        )
        base = base or (wall, cpu)
        print(
            f"  {name:<34} {wall * 1000:8.0f} ms {cpu * 1000:7.0f} ms cpu  {wall / base[0]:.2f}"
            f" times, {cpu / base[1]:.2f} in cpu"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kernels",
        type=int,
        nargs="*",
        default=[100_000, 1_000_000],
        help="sizes (10^5 and 10^6; 5000000 takes nsys minutes)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the exports are made and kept (a temporary one when not given)",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=3,
        help="the quickest of that many runs counts; nsys runs once",
    )
    parser.add_argument(
        "--processes", type=int, choices=(1, 2), default=1, help="2: colliding correlation ids"
    )
    parser.add_argument("--without-nsys", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for kernels in given.kernels:
            one_size(
                kernels,
                folder,
                given.repeat,
                processes=given.processes,
                with_nsys=not given.without_nsys,
            )
            print()
        start_up(15)


if __name__ == "__main__":
    main()
