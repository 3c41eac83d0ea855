"""Analyses one export in one piece and in pieces of several sizes, and says whether the JSON is the
same byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_PIECE = 1 << 40
PROGRAM = """
import sys
from importlib import import_module
rows = int(sys.argv.pop(1))
for module, constant in (
    ("core.memory", "_ROWS_AT_ONCE"), ("core.intervals", "_AT_ONCE"),
    ("trace.inferences.find", "_AT_ONCE"), ("timing.idle.intervals", "_AT_ONCE"),
    ("timing.totals", "_AT_ONCE"), ("timing.region_times", "_AT_ONCE"),
):
    held = import_module(f"nsysmap.{module}")
    assert hasattr(held, constant)
    if rows:
        setattr(held, constant, rows)
import_module("nsysmap.cli.main").main()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export", type=Path)
    parser.add_argument("engine", type=Path)
    parser.add_argument(
        "--rows",
        type=int,
        nargs="*",
        default=[ONE_PIECE, 100_003, 10_007],
        help="of a piece; 0, as nsysmap does, is there",
    )
    given = parser.parse_args()
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        for rows in (0, *given.rows):
            output = Path(folder) / "report.json"
            command = [
                sys.executable,
                "-c",
                PROGRAM,
                str(rows),
                "analyze",
                given.export,
                given.engine,
                "--no-cache",
                "-q",
                "-o",
                output,
            ]
            subprocess.run(command, check=True)
            found.add(hashlib.sha256(output.read_bytes()).hexdigest())
            told = (
                "as nsysmap does"
                if not rows
                else "one piece"
                if rows == ONE_PIECE
                else f"{rows:,} rows"
            )
            print(
                f"{told:<16} {output.stat().st_size:,} bytes, SHA-256"
                f" {hashlib.sha256(output.read_bytes()).hexdigest()[:16]}",
                flush=True,
            )
    print("the same" if len(found) == 1 else "NOT the same")
    return len(found) > 1


if __name__ == "__main__":
    sys.exit(main())
