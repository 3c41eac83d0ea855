"""Captures of engines that TensorRT itself built and ran: every kernel's layer, in every mode, and
which file it was.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.table import Text
from nsysmap.inputs.engine.model import Layer
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace, read_engines
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "real_trt"
REPORTS = sorted(path.stem.removesuffix(".kernels") for path in FOLDER.glob("*.kernels.tsv"))
OF_RUN = {"gm_bert": "bert_eager"}


@cache
def _trace(report: str) -> Trace:
    return open_trace(FOLDER / f"{report}.nsys-rep")


def _mapped(report: str, *engines: str) -> MappedTrace:
    return map_trace(
        _trace(report), read_engines([FOLDER / f"{engine}.engine.json" for engine in engines])
    )


def _own(report: str) -> str:
    model = report.rpartition("-")[0]
    return OF_RUN.get(model, model)


def _verdicts(result: MappedTrace) -> list[str | None]:
    return result.mapped.engine_fits.text("verdict").list()


@pytest.mark.parametrize("report", REPORTS)
def test_every_kernel_has_its_layer(report: str) -> None:
    result = _mapped(report, _own(report))
    kernels = result.kernels
    keys = zip(kernels.ints("start_ns").tolist(), kernels.ints("stream").tolist(), strict=True)
    layer = dict(zip(keys, kernels.ints("layer_index").tolist(), strict=True))
    with (FOLDER / f"{report}.kernels.tsv").open(newline="") as file:
        truth = {
            (int(row["start_ns"]), int(row["stream"])): int(row["layer_index"])
            for row in csv.DictReader(file, delimiter="\t")
        }
    assert {key: layer[key] for key, index in truth.items() if index >= 0} == {
        key: index for key, index in truth.items() if index >= 0
    }
    assert _verdicts(result) == ["ran"]


@pytest.mark.parametrize(
    "report",
    ["bert_eager-graph", "llama-sync_nonvtx", "resnet50_b1-graph", "googlenet-sync_nonvtx"],
)
@pytest.mark.parametrize(
    "engine", ["bert_op13", "bert_dyn", "llama", "googlenet", "resnet50_b1", "resnet50_b8"]
)
def test_another_engine_is_refused(report: str, engine: str) -> None:
    if engine != _own(report):
        result = _mapped(report, engine)
        assert _verdicts(result) == ["did-not-run"]
        assert (result.kernels.ints("layer_index") < 0).all()


def test_an_export_that_ends_in_the_same_kernels_is_no_surer_than_that_allows() -> None:
    result = _mapped("bert_eager-graph", "bert_qkv")
    assert result.kernels.floats("confidence").max() < 0.99


def test_two_exports_that_end_in_the_same_kernels_cannot_be_told_apart() -> None:
    result = _mapped("bert_eager-graph", "bert_eager", "bert_qkv")
    assert _verdicts(result) == ["cannot-tell", "cannot-tell"]
    one, other = (
        read_engine(FOLDER / f"{name}.engine.json") for name in ("bert_eager", "bert_qkv")
    )
    same = np.array(
        [mine.name == its.name for mine, its in zip(one.layers, other.layers, strict=True)]
    )[result.kernels.ints("layer_index")]
    assert (~same).sum() == 4 * 40
    sure = result.kernels.floats("confidence")
    assert sure[~same].max() <= 0.5  # of either file's layer
    assert sure[same].min() > 0.95  # both have it


def test_a_file_that_lacks_layers_which_the_ranges_name_and_has_others_that_never_ran_is_not_said_to_have_run() -> (  # noqa: E501
    None
):
    result = _mapped("bert_eager-sync", "bert_qkv")
    assert _verdicts(result) == ["cannot-tell"]
    assert _verdicts(_mapped("bert_eager-sync", "bert_eager")) == ["ran"]
    assert _verdicts(_mapped("resnet50_b1-sync", "resnet50_b8")) == ["cannot-tell"]


@pytest.mark.parametrize(("report", "listed"), [
    ("bert_eager-sync_nonvtx", 6),
    ("googlenet-sync_nonvtx", 10),
    ("dlrm-sync_nonvtx", 3),
    ("cpp_edsr-sync", 3),
])  # fmt: skip
def test_a_region_may_run_the_code_of_the_layers_before_it(report: str, listed: int) -> None:
    """The later layers as one region, as TensorRT 8 wrote them: equal code has one symbol, and
    Myelin calls cuDNN for convolutions and poolings too.
    """
    engine = read_engine(FOLDER / f"{_own(report)}.engine.json")
    region = Layer(listed, "{ForeignNode[a...b]}", "foreign_node")
    file = replace(engine, layers=(*engine.layers[:listed], region))
    trace = _trace(report)
    trace = replace(trace, nvtx_ranges=trace.nvtx_ranges.take(np.zeros(0, np.int64)))
    own = map_trace(trace, [engine]).kernels.ints("layer_index")
    result = map_trace(trace, [file])
    assert _verdicts(result) != ["did-not-run"]
    placed = result.kernels.ints("layer_index")
    assert (placed[placed >= 0] == np.minimum(own, listed)[placed >= 0]).all()
    assert (placed >= 0).mean() > 0.9


def test_a_range_around_a_whole_region_refuses_no_file_that_has_its_layers() -> None:
    """As where the name of the domain of its layers was not captured: the order of the kernels
    decides.
    """
    trace = _trace("bert_eager-sync")
    ranges = trace.nvtx_ranges
    calls = np.flatnonzero(ranges.text("name").where(lambda name: name.startswith("Execution")))
    text = [
        "{ForeignNode[/ln0/LayerNormalization.../ln2_3/LayerNormalization]}" if again else name
        for name in ranges.text("name").take(calls).list()
        for again in (False, True)
    ]
    both = ranges.take(np.repeat(calls, 2))
    shift = np.tile(np.array([0, 1]), len(calls))
    both = both.with_columns(
        both.spec,
        {
            "name": Text.of(text),
            "start_ns": both.ints("start_ns") + shift,
            "end_ns": both.ints("end_ns") - shift,
        },
    )
    engines = [read_engine(FOLDER / f"{name}.engine.json") for name in ("bert_eager", "bert_fp8")]
    for engine, verdict in zip(engines, ("ran", "did-not-run"), strict=True):
        result = map_trace(replace(trace, nvtx_ranges=both), [engine])
        assert _verdicts(result) == [verdict]
        layers = result.kernels.ints("layer_index")
        assert ((layers >= 0) == (verdict == "ran")).all()
