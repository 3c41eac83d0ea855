"""Reads reports both ways, with nsysmap's own reader and through nsys's export: python
benchmarks/own_reader.py REPORT [EXPORT.sqlite] …

Every declared table of the trace is compared, column by column and row by row; prints rows, columns
that differ, and the time of each way. A .sqlite behind a report is taken for its export (for
reports newer than the nsys installed); exit status 1 where any value differs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import Table, Text
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace


def differing(ours: Table, theirs: Table) -> list[str]:
    """The columns of which any value differs; "rows" where there are not as many."""
    if len(ours) != len(theirs):
        return [f"rows ({len(ours):,} for {len(theirs):,})"]
    found = []
    for name in ours.columns:
        column, other = ours.column(name), theirs.column(name)
        if isinstance(column, Text) or isinstance(other, Text):
            same = (
                isinstance(column, Text)
                and isinstance(other, Text)
                and column.list() == other.list()
            )
        else:
            same = np.array_equal(column, other)
        if not same:
            found.append(name)
    return found


def tables_of(trace: Trace) -> Iterator[tuple[str, Table]]:
    for field in fields(trace):
        value = getattr(trace, field.name)
        if isinstance(value, Table):
            yield field.name, value


def pairs(arguments: list[str]) -> Iterator[tuple[Path, Path | None]]:
    paths = [Path(argument) for argument in arguments]
    for place, path in enumerate(paths):
        if path.suffix != ".sqlite":
            following = (
                paths[place + 1]
                if place + 1 < len(paths) and paths[place + 1].suffix == ".sqlite"
                else None
            )
            yield path, following


def main(arguments: list[str]) -> int:
    wrong = 0
    for report, export in pairs(arguments):
        begin = time.perf_counter()
        try:
            ours = open_trace(report, reader="own")
            middle = time.perf_counter()
            theirs = open_trace(export) if export else open_trace(report, reader="nsys")
        except NsysmapError as error:
            print(f"{report}: {error}")
            continue
        end = time.perf_counter()
        held = dict(tables_of(theirs))
        told = {
            name: found
            for name, table in tables_of(ours)
            if (found := differing(table, held[name]))
        }
        rows = sum(len(table) for table in held.values())
        wrong += bool(told)
        print(
            f"{report}: nsys {ours.nsys_version}, {rows:,} rows, own {middle - begin:.2f} s, nsys"
            f" {end - middle:.2f} s, differing: {told or 'none'}"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
