"""What a report takes from its first byte to the map, by kernel, where all pieces are small."""

from __future__ import annotations

import runpy
import tracemalloc
from pathlib import Path

import pytest

from nsysmap.core import intervals, memory, table
from nsysmap.inputs.nsys import report_events, report_wire
from nsysmap.mapping.mapped_trace import map_report
from nsysmap.trace.inferences import find
from tests.places import ROOT

KERNELS = 60_000
MOST_BYTES = 206  # a kernel: 2·10^7 of them fit into 4 GiB with 90 MiB for the program itself
PIECES = (
    (report_events, "_BATCH_BYTES"),
    (report_wire, "_WINDOW_BYTES"),
    (memory, "_ROWS_AT_ONCE"),
    (intervals, "_AT_ONCE"),
    (find, "_AT_ONCE"),
)


def test_twenty_million_kernels_are_mapped_within_4_gib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, constant in PIECES:
        monkeypatch.setattr(module, constant, 1 << 13)
    for constant in ("_LARGE", "_MANY_ROWS"):
        monkeypatch.setattr(table, constant, 1)
    write = runpy.run_path(str(ROOT / "benchmarks" / "make_report.py"))["write"]
    small, large = tmp_path / "small.nsys-rep", tmp_path / "large.nsys-rep"
    write(500, small)
    write(KERNELS, large)
    map_report(small, [], reader="own")  # loads every module
    tracemalloc.start()
    try:
        mapped = map_report(large, [], reader="own")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(mapped.kernels) == KERNELS
    assert peak <= MOST_BYTES * KERNELS
