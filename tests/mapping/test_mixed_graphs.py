"""CUDA graphs that hold more than one engine: engines and a framework's own kernels in one
launch.
"""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np

from nsysmap.core.table import Text
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace, read_engines
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace
from tests.places import FIXTURES

FOLDER = FIXTURES / "torch_mixed"
A_PASS = 70  # kernels: PyTorch's, the backbone's and the head's


def _as_graphs(trace: Trace) -> Trace:
    """The same kernels as if each pass were one graph launch, whose graph was captured before the
    trace began.
    """
    kernels, calls = trace.kernels, trace.api_calls
    place = np.arange(len(kernels))
    first = place - place % A_PASS
    launch = kernels.ints("launch")[first]
    kinds, names = calls.text("kind").list(), calls.text("api").list()
    for row in kernels.ints("launch").tolist():
        kinds[row], names[row] = "other", "cuCtxGetCurrent"
    for row in launch.tolist():
        kinds[row], names[row] = "graph-launch", "cudaGraphLaunch_v10000"
    graphs = calls.with_columns(calls.spec, {"kind": Text.of(kinds), "api": Text.of(names)})
    columns = {
        "launch": launch,
        "correlation": kernels.ints("correlation")[first],
        "launch_start_ns": kernels.ints("launch_start_ns")[first],
        "launch_end_ns": kernels.ints("launch_end_ns")[first],
        "graph_id": np.ones(len(kernels), np.int64),
        "graph_node_id": place % A_PASS,
    }
    return replace(trace, kernels=kernels.with_columns(kernels.spec, columns), api_calls=graphs)


def _mapped(*engines: str) -> MappedTrace:
    report = next(
        path for path in (FOLDER / "nonvtx.sqlite", FOLDER / "nonvtx.nsys-rep") if path.exists()
    )
    return map_trace(
        _as_graphs(open_trace(report)),
        read_engines([FOLDER / f"{engine}.engine.json" for engine in engines]),
    )


def _truth(engine: int) -> list[int]:
    """The layer of each kernel of that engine, -1 for all others."""
    with (FOLDER / "nonvtx.kernels.tsv").open(newline="") as file:
        rows = sorted(csv.DictReader(file, delimiter="\t"), key=lambda row: int(row["start_ns"]))
    return [int(row["layer_index"]) if int(row["engine"]) == engine else -1 for row in rows]


def test_two_engines_and_pytorch_in_one_graph_launch_are_told_apart() -> None:
    result = _mapped("backbone", "head")
    assert result.mapped.engine_fits.text("verdict").list() == ["ran", "ran"]
    layer, engine = result.kernels.ints("layer_index"), result.kernels.ints("engine")
    for number in (0, 1):
        assert np.where(engine == number, layer, -1).tolist() == _truth(number)
    assert np.bincount(result.inferences.ints("engine")).tolist() == [40, 40]


def test_one_of_them_alone_gets_its_own_kernels_only() -> None:
    result = _mapped("head")
    assert result.mapped.engine_fits.text("verdict").list() == ["ran"]
    assert np.maximum(result.kernels.ints("layer_index"), -1).tolist() == _truth(1)
