"""Prints how many lines and words the first screen of each report has, at 80 columns.

usage: python benchmarks/screens.py FOLDER... [--show]

Each report of the folders is analysed with the engine files beside it: engine.json, that of its own
name (MODEL.engine.json of MODEL-MODE.nsys-rep), or else all *.engine.json of a folder with three at
most.  --show prints the screens themselves.  The exit status is 1 if one has more than 20 lines or
180 words.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from nsysmap.api import analyze
from nsysmap.core.errors import NsysmapError
from nsysmap.output.text.screen import MOST_LINES, MOST_WORDS, screen
from nsysmap.text.lines import rendered

_WIDTH = 80
_FEW = 3  # engine files of a folder that may all have run


def main() -> int:
    """Prints the table; 1 if a screen is too long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    found = []
    print(f"{'lines':>5} {'words':>5}  report")
    for report in reports(options.folders):
        try:
            answer = analyze(report, engines_of(report)).summary
        except NsysmapError as error:
            print(f"    –     –  {report}: {error.what}")
            continue
        text = rendered(screen(answer, _WIDTH), colour=False)
        lines, words = len(text.splitlines()), len(text.split())
        found.append((lines, words))
        print(f"{lines:5} {words:5}  {report}", flush=True)
        if options.show:
            print(f"\n{text}")
    all_lines, all_words = [one[0] for one in found], [one[1] for one in found]
    print(f"{max(all_lines):5} {max(all_words):5}  most of {len(found)} reports")
    print(f"{median(all_lines):5.0f} {median(all_words):5.0f}  median")
    return int(any(lines > MOST_LINES or words > MOST_WORDS for lines, words in found))


def reports(folders: Sequence[Path]) -> Iterator[Path]:
    """The reports of these folders; of an export beside its report only the report."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix == ".nsys-rep" or (
                path.suffix == ".sqlite" and not path.with_suffix(".nsys-rep").exists()
            ):
                yield path


def engines_of(report: Path) -> list[Path]:
    """The engine files that belong to a report."""
    if (own := report.with_name("engine.json")).exists():
        return [own]
    beside = sorted(report.parent.glob("*.engine.json"))
    names = {one.name.removesuffix(".engine.json"): one for one in beside}
    mine = [name for name in names if report.stem == name or report.stem.startswith(f"{name}-")]
    if mine:
        return [names[max(mine, key=len)]]
    return beside if len(beside) <= _FEW else []


if __name__ == "__main__":
    sys.exit(main())
