"""Mapping of traces without ranges: which engine ran, where each kernel goes, and what is
refused.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.table import MISSING
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace
from nsysmap.mapping.order.by_order import NO_FIT
from nsysmap.mapping.order.scores import expected_kernels
from nsysmap.trace.model import Trace
from tests.nsys_file import NsysFile
from tests.places import FIXTURES
from tests.reports import read_trace

REPORTS = ["bert_trt10/sync", "bert_trt10/graph", "bert_trt103/graph", "bert_trt85/sync"]
FOLDERS = ["bert_trt10", "bert_trt103", "bert_trt85", "bert_split_trt10"]


def bare(report: str) -> Trace:
    """The capture without ranges and without the creation of graph nodes."""
    trace = read_trace(FIXTURES / f"{report}.sqlite")
    nothing = np.zeros(0, np.int64)
    return replace(
        trace,
        nvtx_ranges=trace.nvtx_ranges.take(nothing),
        cuda_graph_nodes=trace.cuda_graph_nodes.take(nothing),
    )


def engine_of(folder: str) -> Engine:
    return read_engine(FIXTURES / folder / "engine.json")


def truth_of(folder: str) -> list[str]:
    with (FIXTURES / folder / "truth.tsv").open(newline="") as file:
        return [
            row["layer"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def layers(result: MappedTrace) -> list[str | None]:
    return result.mapped.table.text("layer").list()


@pytest.mark.parametrize("report", REPORTS)
def test_every_kernel_gets_its_true_layer_without_any_range(report: str) -> None:
    folder = report.split("/", maxsplit=1)[0]
    result = map_trace(bare(report), [engine_of(folder)])
    truth = truth_of(folder)
    assert layers(result) == truth * (len(result.trace.kernels) // len(truth))
    assert set(result.mapped.table.text("method").list()) <= {"order", "tactic", "region"}
    assert result.mapped.table.floats("confidence").min() > 0.9
    assert not result.mapped.notes


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("kept", ["TensorRT's domain", "ExecutionContext:: ranges"])
def test_coarse_ranges_leave_the_layers_to_the_order(report: str, kept: str) -> None:
    trace = read_trace(FIXTURES / f"{report}.sqlite")
    call = np.array(
        [name.startswith("ExecutionContext::") for name in trace.nvtx_ranges.text("name").values]
    )
    calls = call[trace.nvtx_ranges.text("name").codes]
    coarse = (
        trace.nvtx_ranges.text("domain").equals("TensorRT")
        if kept == "TensorRT's domain"
        else calls
    )
    folder = report.split("/", maxsplit=1)[0]
    result = map_trace(
        replace(trace, nvtx_ranges=trace.nvtx_ranges.take(coarse)), [engine_of(folder)]
    )
    assert layers(result) == truth_of(folder) * (len(trace.kernels) // len(truth_of(folder)))
    assert len(result.mapped.layers) == len(engine_of(folder).layers)


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_wrong_engine_is_an_error_and_gives_no_layer(report: str, folder: str) -> None:
    if folder == report.split("/", maxsplit=1)[0]:
        pytest.skip("the right engine")
    result = map_trace(bare(report), [engine_of(folder)])
    assert [note.level for note in result.mapped.notes] == ["error"]
    assert result.mapped.engine_fits.text("verdict").list() == ["did-not-run"]
    assert set(layers(result)) == {None}
    assert set(result.mapped.table.text("reason").list()) == {NO_FIT}
    assert not result.mapped.table.floats("confidence").any()


def test_of_several_engine_files_the_one_that_ran_is_taken() -> None:
    result = map_trace(bare("bert_trt103/graph"), [engine_of(folder) for folder in FOLDERS])
    assert set(result.mapped.table.ints("engine").tolist()) == {FOLDERS.index("bert_trt103")}
    assert layers(result) == truth_of("bert_trt103") * 50


def test_of_two_copies_of_a_file_one_ran_and_the_first_one_s_layers_are_shown() -> None:
    one = engine_of("bert_trt10")
    result = map_trace(
        bare("bert_trt10/sync"), [one, replace(one, source="copy.json"), engine_of("bert_trt85")]
    )
    assert layers(result) == truth_of("bert_trt10") * 50
    assert set(result.kernels.ints("engine").tolist()) == {0}
    assert result.mapped.engine_fits.text("verdict").list() == [
        "cannot-tell",
        "cannot-tell",
        "did-not-run",
    ]
    assert result.mapped.engine_fits.ints("one_of").tolist() == [2, 2, MISSING]


@pytest.mark.parametrize(("begin", "end"), [(10, 500), (57, 130), (3, 1200), (30, 100)])
def test_a_capture_that_begins_and_ends_within_inferences_is_mapped_right(
    begin: int, end: int
) -> None:
    trace = bare("bert_trt10/sync")
    cut = replace(trace, kernels=trace.kernels.take(np.arange(begin, end)))
    assert (
        layers(map_trace(cut, [engine_of("bert_trt10")]))
        == (truth_of("bert_trt10") * 50)[begin:end]
    )


def test_a_graph_replay_that_was_launched_before_the_capture_is_placed_too() -> None:
    trace = bare("bert_trt10/graph")
    kept = trace.kernels.take(np.arange(20, 600))
    unlaunched = np.where(
        np.arange(580) < 36, np.int64(np.iinfo(np.int64).min), kept.ints("launch")
    )
    begun = np.where(
        np.arange(580) < 36, np.int64(np.iinfo(np.int64).min), kept.ints("launch_start_ns")
    )
    kernels = kept.with_columns(kept.spec, {"launch": unlaunched, "launch_start_ns": begun})
    assert (
        layers(map_trace(replace(trace, kernels=kernels), [engine_of("bert_trt10")]))
        == (truth_of("bert_trt10") * 50)[20:600]
    )


def test_two_engines_in_turn_on_one_stream_are_told_apart(tmp_path: Path) -> None:
    file, at, correlation = NsysFile(), 1000, 0
    truth = []
    for turn in range(8):
        with (FIXTURES / ("bert_trt103", "bert_trt10")[turn % 2] / "truth.tsv").open(
            newline=""
        ) as rows:
            for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
                correlation += 1
                file.launch(row["kernel"], at, correlation)
                truth.append(row["layer"])
                at += 20
        correlation += 1
        file.call("cudaStreamSynchronize_v3020", at, at + 50, correlation)
        at += 100
    result = map_trace(
        read_trace(file.write(tmp_path / "x.sqlite")),
        [engine_of("bert_trt10"), engine_of("bert_trt103")],
    )
    assert layers(result) == truth
    assert not result.mapped.notes


def test_without_an_engine_nothing_is_placed() -> None:
    result = map_trace(bare("bert_trt85/sync"), [])
    assert set(layers(result)) == {None}
    assert len(result.found.table) == 40


def test_an_engine_of_one_opaque_region_is_neither_proved_nor_refused(tmp_path: Path) -> None:
    file = NsysFile()
    for turn in range(5):
        for number, ops in enumerate(("AddMul", "ResTra", "AddTan", "MulAdd", "DivMul", "CasMul")):
            file.launch(
                f"__myl_bb0_{number}_{ops}", 1000 + 20 * (6 * turn + number), 6 * turn + number + 1
            )
    region = Layer(0, "{ForeignNode[first...last]}", "foreign_node", type="Myelin")
    result = map_trace(
        read_trace(file.write(tmp_path / "x.sqlite")),
        [Engine("opaque.json", (region,), detailed=True)],
    )
    assert set(layers(result)) == {region.name}
    assert set(result.mapped.table.text("method").list()) == {"region"}
    assert result.mapped.table.floats("confidence").max() < 0.9
    assert [note.level for note in result.mapped.notes] == ["warning"]


def test_too_few_kernels_are_no_evidence_against_an_engine(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(3):
        file.launch("mystery", 1000 + 20 * number, number + 1)
    engine = Engine(
        "made-up.json",
        (Layer(0, "conv", "convolution"), Layer(1, "pool", "pooling")),
        detailed=True,
    )
    result = map_trace(read_trace(file.write(tmp_path / "x.sqlite")), [engine])
    assert set(layers(result)) == {None}
    assert not result.mapped.notes


@pytest.mark.parametrize(
    ("folder", "kernels"),
    [("bert_trt10", 56), ("bert_split_trt10", 76), ("bert_trt103", 38), ("bert_trt85", None)],
)
def test_the_engine_file_tells_how_many_kernels_an_inference_launches(
    folder: str, kernels: int | None
) -> None:
    assert expected_kernels(engine_of(folder)) == kernels


@pytest.mark.parametrize(("missing", "explained"), [(2, True), (4, False)])
def test_an_inference_that_the_engine_of_its_stream_nearly_explains_is_of_that_engine(
    tmp_path: Path, missing: int, explained: bool
) -> None:
    """Of an inference that never comes again, eight kernels of ten are enough, and six are not."""
    tactics = [
        f"sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize{32 << at}x64x32_stage5" for at in range(10)
    ]
    engine = Engine(
        "made-up.json",
        tuple(Layer(at, f"gemm_{at}", "gemm", tactic=tactic) for at, tactic in enumerate(tactics)),
        detailed=True,
    )
    file = NsysFile()
    file.domain("TensorRT", 1)
    correlation, odd = 0, 4
    for turn in range(9):
        at = 1000 * (turn + 1)
        file.range("ExecutionContext::enqueueV3", at, at + 400, domain=1)
        for number, tactic in enumerate(tactics[missing if turn == odd else 0 :]):
            correlation += 1
            file.launch(f"{tactic}_execute_kernel_trt", at + 5 + 20 * number, correlation)
    result = map_trace(read_trace(file.write(tmp_path / "x.sqlite")), [engine])
    of_inference = result.found.membership.ints("inference")
    chances = result.mapped.placed.probability[of_inference == odd]
    refused = result.mapped.placed.refused[of_inference == odd]
    assert len(chances) == 10 - missing
    assert refused.tolist() == [not explained] * len(refused)
    assert not result.mapped.placed.refused[of_inference != odd].any()
