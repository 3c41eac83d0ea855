"""Captures whose truth is told kernel by kernel: which engine's layer each ran for, or no
engine's.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from nsysmap.mapping.mapped_trace import map_report, read_engines
from tests.exports import exported
from tests.places import FIXTURES

ENGINES = {
    "aux_streams/sync": ("aux_streams/engine.json",),
    "aux_streams/graph": ("aux_streams/engine.json",),
    "two_shapes/sync": ("two_shapes/engine.json",),
    "torch_mixed/sync": ("torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"),
    "two_gpus/tp_sync": ("two_gpus/tp.engine.json",),
    "two_gpus/tp_graph": ("two_gpus/tp.engine.json",),
    "newer/bert_sync": ("bert_trt10/engine.json",),
    "newer/bert_graph": ("bert_trt10/engine.json",),
    "newer/aux_graph": ("aux_streams/engine.json",),
    "newer/torch_sync": ("torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"),
}


def truth(path: Path) -> dict[tuple[str, ...], tuple[int, int]]:
    """By start, device, stream and pid of a kernel: its engine and layer; -1 is none."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {
            (row["start_ns"], row["device"], row["stream"], row["pid"]): (
                int(row["engine"]),
                int(row["layer_index"] or -1),
            )
            for row in rows
        }


@pytest.mark.parametrize("name", ENGINES)
def test_every_kernel_launched_or_captured_inside_ranges_gets_its_true_layer(name: str) -> None:
    kernels = map_report(
        exported(name), read_engines([FIXTURES / path for path in ENGINES[name]])
    ).kernels
    wanted = truth(FIXTURES / f"{name}.kernels.tsv")
    found: Counter[str] = Counter()
    for row in kernels.records():
        engine, layer = wanted[
            tuple(str(row[key]) for key in ("start_ns", "device", "stream", "pid"))
        ]
        mapped = None if row["layer"] is None else (row["engine"], row["layer_index"])
        found[
            (
                "right"
                if mapped == (None if engine < 0 else (engine, layer))
                else f"{mapped} for {engine, layer}"
            )
        ] += 1
    assert found == {"right": len(wanted)}
