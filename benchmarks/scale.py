"""Prints, in one run: how time and memory of map and analyze grow with a report, and their ratios
to nsys stats and to SQLite.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from speed import HERE, NSYSMAP, SCAN, Run, best, measure, show


def made(kernels: int, folder: Path) -> tuple[Path, Path]:
    """An export of that size and its engine file, made unless they are there."""
    export, engine = folder / f"{kernels}.sqlite", folder / f"{kernels}.json"
    if not (export.exists() and engine.exists()):
        subprocess.run(
            [sys.executable, HERE / "make_trace.py", str(kernels), export, engine], check=True
        )
    with export.open("rb") as file:  # into the page cache, for all alike
        while file.read(1 << 24):
            pass
    return export, engine


def exponent(smaller: tuple[int, Run], larger: tuple[int, Run]) -> float:
    """The power of the size that processor time grows with, from the one size to the other."""
    return math.log(larger[1].cpu_s / smaller[1].cpu_s) / math.log(larger[0] / smaller[0])


def one_size(kernels: int, folder: Path, repeat: int, nsys_up_to: int) -> dict[str, Run]:
    """Measure every command on one export."""
    export, engine = made(kernels, folder)
    print(f"{kernels:,} kernels asked for, {export.stat().st_size / 2**20:.0f} MiB", flush=True)
    base = None
    if kernels <= nsys_up_to:
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
            ]
        )
        show("nsys stats -r nvtx_kern_sum", base, None)
    scan = best([sys.executable, "-c", SCAN, export], repeat)
    show("scan of the same columns in SQLite", scan, base)
    runs = {
        "map": best([*NSYSMAP, "map", export, engine, "-o", folder / "map.parquet"], repeat),
        "map of 20 inferences": best(
            [
                *NSYSMAP,
                "map",
                export,
                engine,
                "--inference",
                "10..29",
                "-o",
                folder / "map.parquet",
            ],
            repeat,
        ),
        "analyze with rules and JSON": best(
            [*NSYSMAP, "analyze", export, engine, "--no-cache", "-o", folder / "report.json"],
            repeat,
        ),
        "analyze of 20 inferences": best(
            [*NSYSMAP, "analyze", export, engine, "--no-cache", "--inference", "10..29"], repeat
        ),
    }
    again: list[str | Path] = [*NSYSMAP, "analyze", export, engine, "-o", folder / "report.json"]
    measure(again)
    runs["the same analyze again"] = best(again, repeat)
    for name, run in runs.items():
        show(name, run, base)
        print(f"  {'':<34} {run.cpu_s / scan.cpu_s:8.1f} times the scan's processor time")
    return runs


def grown(sizes: Sequence[int], measured: Sequence[dict[str, Run]]) -> None:
    """Print the exponents from each size to the next."""
    for name in measured[0]:
        held = list(zip(sizes, (runs[name] for runs in measured), strict=True))
        powers = [f"{exponent(one, other):.2f}" for one, other in pairwise(held)]
        if powers:
            print(f"exponent of {name}, from each size to the next: {', '.join(powers)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kernels",
        type=int,
        nargs="*",
        default=[100_000, 1_000_000],
        help="sizes (5000000 takes a gigabyte of disk)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the exports are made and kept (a temporary one when not given)",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        help="the quickest of that many runs counts; nsys runs once",
    )
    parser.add_argument(
        "--nsys-up-to",
        type=int,
        default=1_000_000,
        help="larger ones are measured without nsys stats; 0: never",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["NSYSMAP_CACHE"] = str(Path(temporary) / "cache")
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        grown(
            given.kernels,
            [
                one_size(kernels, folder, given.repeat, given.nsys_up_to)
                for kernels in given.kernels
            ],
        )


if __name__ == "__main__":
    main()
