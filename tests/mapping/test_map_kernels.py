"""Which layer each kernel belongs to, and how that is known."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.table import MISSING
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.map_kernels import (
    CREATED_OUTSIDE,
    NO_CREATION,
    NO_LAUNCH,
    NO_RANGES,
    OUTSIDE_LAYERS,
    OUTSIDE_TENSORRT,
    _at,
)
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, map_trace
from tests.exports import exported
from tests.nsys_file import THREAD, NsysFile, engine_call
from tests.places import CAPTURES, FIXTURES
from tests.reports import read_trace

WITH_TRUTH = sorted(  # where truth is told kernel by kernel, tests/captures/test_truth.py holds it
    {
        f"{path.parent.name}/{path.stem}"
        for base in (FIXTURES, CAPTURES)
        for path in base.glob("*/*.nsys-rep")
        if (path.parent / "truth.tsv").exists() and not path.with_suffix(".kernels.tsv").exists()
    }
)


def engine(*layers: Layer | str) -> Engine:
    rows = tuple(
        Layer(i, layer, "other") if isinstance(layer, str) else layer
        for i, layer in enumerate(layers)
    )
    return Engine("made-up.json", rows, detailed=True)


def mapped(file: NsysFile, folder: Path, *engines: Engine) -> MappedTrace:
    return map_trace(read_trace(file.write(folder / "x.sqlite")), engines)


def tensorrt_file() -> NsysFile:
    file = NsysFile()
    file.domain("TensorRT", 1)
    file.domain("myelin-exec", 2)
    return file


def rows(result: MappedTrace, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row[column] for column in columns) for row in result.mapped.table.records()]


@pytest.mark.parametrize("name", WITH_TRUTH)
def test_every_kernel_of_a_capture_gets_its_true_layer(name: str) -> None:
    folder = (
        next(base for base in (FIXTURES, CAPTURES) if (base / f"{name}.nsys-rep").exists())
        / name.split("/", maxsplit=1)[0]
    )
    result = map_report(exported(name), [read_engine(folder / "engine.json")])
    with (folder / "truth.tsv").open(newline="") as file:
        truth = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    by_stream: dict[object, list[dict[str, object]]] = {}
    for row in result.kernels.records():
        by_stream.setdefault(row["stream"], []).append(row)
    for kernels in by_stream.values():
        for position, row in enumerate(kernels):
            wanted = truth[position % len(truth)]
            assert (str(row["layer_index"]), row["layer"]) == (
                wanted["layer_index"],
                wanted["layer"],
            )
            if wanted["part"]:
                assert row["part"] == wanted["part"]


def test_a_kernel_belongs_to_the_layer_in_whose_range_it_was_launched(tmp_path: Path) -> None:
    file = tensorrt_file()
    engine_call(file, 1000, [("conv", "k1"), ("relu", "k2")], 10)
    assert rows(
        mapped(file, tmp_path, engine("relu", "conv")),
        "layer",
        "layer_index",
        "method",
        "confidence",
    ) == [
        ("conv", 1, "nvtx", 1.0),
        ("relu", 0, "nvtx", 1.0),
    ]


def test_without_an_engine_the_layers_are_those_that_the_ranges_name(tmp_path: Path) -> None:
    file = tensorrt_file()
    engine_call(file, 1000, [("conv", "k1"), ("relu", "k2")], 10)
    engine_call(file, 2000, [("conv", "k1"), ("relu", "k2")], 20)
    result = mapped(file, tmp_path)
    assert rows(result, "layer", "layer_index") == [("conv", None), ("relu", None)] * 2
    assert result.mapped.layers.text("name").list() == ["conv", "relu"]


def test_without_tensorrt_ranges_no_layer_is_invented(tmp_path: Path) -> None:
    file = NsysFile()
    file.range("step", 90, 200)
    file.launch("gemm", 100, 1)
    assert rows(mapped(file, tmp_path), "layer", "method", "reason") == [(None, "none", NO_RANGES)]


def test_a_kernel_launched_inside_the_engine_but_outside_a_layer_says_so(tmp_path: Path) -> None:
    file = tensorrt_file()
    end = engine_call(file, 1000, [("conv", "k1")], 10)
    file.launch("stray", 1001, 90)
    file.launch("postprocess", end + 10, 91)
    reasons = {
        row["name"]: row["reason"]
        for row in mapped(file, tmp_path, engine("conv")).kernels.records()
    }
    assert reasons == {
        "k1": None,
        "stray": OUTSIDE_LAYERS,
        "postprocess": OUTSIDE_TENSORRT,
    }


def test_a_kernel_whose_launch_was_not_traced_says_so(tmp_path: Path) -> None:
    file = tensorrt_file()
    engine_call(file, 1000, [("conv", "k1")], 10)
    file.kernel("orphan", 5000, 999)
    assert rows(mapped(file, tmp_path, engine("conv")), "reason")[1] == (NO_LAUNCH,)


def test_ranges_of_another_domain_are_no_layers(tmp_path: Path) -> None:
    file = tensorrt_file()
    engine_call(file, 1000, [("conv", "k1")], 10)
    file.range("conv", 1009, 1012, domain=0)
    assert rows(mapped(file, tmp_path, engine("conv")), "layer", "method") == [("conv", "nvtx")]


def myelin_call(file: NsysFile, at: int, texts: list[str], correlation: int) -> None:
    """A call with one region, whose Myelin nodes each launch one kernel; Myelin's own calls are
    start/end ranges around them.
    """
    end = at + 20 + 20 * len(texts)
    file.range("ExecutionContext::enqueueV3", at, end, domain=1)
    file.range("{ForeignNode[a...z]}", at + 1, end - 1, domain=1)
    file.add(
        "NVTX_EVENTS",
        start=at + 2,
        end=end - 2,
        eventType=60,
        rangeId=1,
        text="myelinGraphExecute ",
        globalTid=THREAD,
        domainId=2,
    )
    for number, text in enumerate(texts):
        begin = at + 5 + 20 * number
        file.range(text, begin, begin + 15, domain=2)
        file.launch(f"k{number}", begin + 5, correlation + number)


SPLIT_ENGINE = (
    "__myl_AddMul_myl0_1",
    "/layer.0/MatMul_myl0_2",
    "__myl_AddMul_myl0_3",
    "/layer.1/MatMul_myl0_4",
)


def test_a_numbered_myelin_range_is_the_layer_of_that_name(tmp_path: Path) -> None:
    file = tensorrt_file()
    myelin_call(file, 1000, list(SPLIT_ENGINE), 10)
    assert rows(mapped(file, tmp_path, engine(*SPLIT_ENGINE)), "layer_index") == [
        (0,),
        (1,),
        (2,),
        (3,),
    ]


def test_unnumbered_myelin_ranges_with_underscores_for_dots_are_told_apart_by_their_order(
    tmp_path: Path,
) -> None:
    file = tensorrt_file()
    for call in range(3):
        myelin_call(
            file,
            1000 * (call + 1),
            ["__myl_AddMul", "/layer_0/MatMul", "__myl_AddMul", "/layer_1/MatMul"],
            10 * (call + 1),
        )
    assert (
        rows(mapped(file, tmp_path, engine(*SPLIT_ENGINE)), "layer_index")
        == [(0,), (1,), (2,), (3,)] * 3
    )


def test_a_call_cut_by_the_end_of_the_trace_is_mapped_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tensorrt_file()
    myelin_call(
        file, 1000, ["__myl_AddMul", "/layer_0/MatMul", "__myl_AddMul", "/layer_1/MatMul"], 10
    )
    myelin_call(file, 2000, ["__myl_AddMul", "/layer_0/MatMul"], 20)
    assert rows(mapped(file, tmp_path, engine(*SPLIT_ENGINE)), "layer_index") == [
        (0,),
        (1,),
        (2,),
        (3,),
        (0,),
        (1,),
    ]


def test_a_text_that_stands_for_several_layers_but_ran_another_number_of_times_is_not_guessed(
    tmp_path: Path,
) -> None:
    file = tensorrt_file()
    myelin_call(file, 1000, ["__myl_AddMul", "/layer_0/MatMul", "/layer_1/MatMul"], 10)
    myelin_call(
        file, 2000, ["__myl_AddMul", "/layer_0/MatMul", "__myl_AddMul", "/layer_1/MatMul"], 20
    )
    result = rows(mapped(file, tmp_path, engine(*SPLIT_ENGINE)), "layer_index", "method")
    assert result[0] == (None, "none")
    assert result[1:] == [
        (1, "nvtx"),
        (3, "nvtx"),
        (0, "nvtx"),
        (1, "nvtx"),
        (2, "nvtx"),
        (3, "nvtx"),
    ]


def test_the_onnx_nodes_of_a_payload_decide_between_layers_of_one_text(tmp_path: Path) -> None:
    file = tensorrt_file()
    file.range("ExecutionContext::enqueueV3", 1000, 1100, domain=1)
    for number, node in enumerate(("/second/Add", "/first/Add")):
        begin = 1010 + 30 * number
        payload = f'{{"Name": "__myl_Add", "Layers": "[ONNX Layer: {node}]"}}'
        file.range("__myl_Add", begin, begin + 20, domain=2, payload=payload)
        file.launch("k", begin + 5, 10 + number)
    layers = [
        Layer(i, f"__myl_Add_myl0_{i}", "myelin_kernel", onnx=(f"/{name}/Add",))
        for i, name in enumerate(("first", "second"))
    ]
    assert rows(mapped(file, tmp_path, engine(*layers)), "layer_index") == [(1,), (0,)]


def test_inside_an_opaque_region_the_layer_is_the_region_and_the_part_is_the_tag(
    tmp_path: Path,
) -> None:
    file = tensorrt_file()
    file.range("ExecutionContext::enqueue", 1000, 1100, domain=1)
    for number, tag in enumerate(("$$myelin$$/a/LayerNorm", "$$myelin$$/b/MatMul")):
        begin = 1010 + 30 * number
        file.range("{ForeignNode[a...b]}", begin, begin + 25, domain=1)
        file.range(tag, begin + 2, begin + 20, domain=1)
        file.launch("k", begin + 5, 10 + number)
    region = Layer(0, "{ForeignNode[a...b]}", "foreign_node", type="Myelin")
    assert rows(mapped(file, tmp_path, engine(region)), "layer_index", "part", "method") == [
        (0, "$$myelin$$/a/LayerNorm", "region"),
        (0, "$$myelin$$/b/MatMul", "region"),
    ]
    (tmp_path / "again").mkdir()
    without = mapped(file, tmp_path / "again")
    assert without.mapped.layers.text("name").list() == ["{ForeignNode[a...b]}"]


def graph_file(*, created_in_trace: bool, clone: bool = False) -> NsysFile:
    file = tensorrt_file()
    if created_in_trace:
        file.range("ExecutionContext::enqueueV3", 10, 100, domain=1)
        for number, layer in enumerate(("conv", "relu")):
            file.range(layer, 20 + 30 * number, 40 + 30 * number, domain=1)
            file.add(
                "CUDA_GRAPH_EVENTS",
                start=30 + 30 * number,
                end=30 + 30 * number,
                globalTid=THREAD,
                graphNodeId=1 + number,
            )
            if clone:
                at = 200 + number
                file.add(
                    "CUDA_GRAPH_EVENTS",
                    start=at,
                    end=at,
                    globalTid=THREAD,
                    graphNodeId=101 + number,
                    originalGraphNodeId=1 + number,
                )
    for replay in range(2):
        file.call("cudaGraphLaunch_v10000", 1000 + 100 * replay, 1010 + 100 * replay, 40 + replay)
        for number in range(2):
            file.kernel(
                f"k{number}",
                1020 + 100 * replay + 10 * number,
                40 + replay,
                node=(101 if clone else 1) + number,
            )
    return file


@pytest.mark.parametrize("clone", [False, True])
def test_a_replayed_kernel_belongs_to_the_layer_in_whose_range_its_node_was_captured(
    tmp_path: Path, clone: bool
) -> None:
    result = mapped(
        graph_file(created_in_trace=True, clone=clone), tmp_path, engine("conv", "relu")
    )
    assert rows(result, "layer", "method") == [("conv", "graph-node"), ("relu", "graph-node")] * 2
    assert len(result.inferences) == 2


def test_a_graph_captured_before_the_trace_says_so(tmp_path: Path) -> None:
    file = graph_file(created_in_trace=False)
    engine_call(file, 5000, [("conv", "other")], 90)
    assert rows(mapped(file, tmp_path), "reason")[:4] == [(NO_CREATION,)] * 4


def test_why_a_kernel_of_a_graph_has_no_layer_depends_on_its_node_and_not_on_its_launch(
    tmp_path: Path,
) -> None:
    file = tensorrt_file()
    file.range("ExecutionContext::enqueueV3", 10, 100, domain=1)
    file.range("conv", 15, 20, domain=1)
    for node, at in ((1, 50), (2, 200)):  # captured inside the call, and outside
        file.add("CUDA_GRAPH_EVENTS", start=at, end=at, globalTid=THREAD, graphNodeId=node)
    file.range("ExecutionContext::enqueueV3", 1000, 1100, domain=1)
    file.call("cudaGraphLaunch_v10000", 1005, 1010, 40)
    for node in (1, 2, 3):
        file.kernel(f"k{node}", 1020 + 10 * node, 40, node=node)
    file.launch("own", 1080, 41)
    result = mapped(file, tmp_path)
    assert rows(result, "reason") == [
        (CREATED_OUTSIDE,),
        (CREATED_OUTSIDE,),
        (NO_CREATION,),
        (OUTSIDE_LAYERS,),
    ]
    assert result.mapped.evidence.in_call.tolist() == [False, False, False, True]


def test_a_kernel_name_that_only_one_layers_tactic_has_tells_the_layer(tmp_path: Path) -> None:
    tactic = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16"  # noqa: E501
    file = tensorrt_file()
    file.range("ExecutionContext::enqueueV3", 1000, 1100, domain=1)
    file.launch(f"{tactic}_execute_kernel_trt", 1010, 10)
    layers = [
        Layer(0, "conv", "convolution", tactic=tactic),
        Layer(1, "pool", "pooling", tactic="sm50_xmma_pooling_max"),
    ]
    assert rows(mapped(file, tmp_path, engine(*layers)), "layer", "method") == [("conv", "tactic")]


def test_a_tactic_that_two_layers_share_tells_no_layer(tmp_path: Path) -> None:
    file = tensorrt_file()
    file.range("ExecutionContext::enqueueV3", 1000, 1100, domain=1)
    file.launch("sm80_xmma_gemm_f16f16_f16f16_f16_tn_n", 1010, 10)
    layers = [
        Layer(i, name, "gemm", tactic="sm80_xmma_gemm_f16f16_f16f16_f16_tn_n")
        for i, name in enumerate(("a", "b"))
    ]
    assert rows(mapped(file, tmp_path, engine(*layers)), "layer", "method") == [(None, "none")]


def test_a_tactic_that_runs_twice_an_inference_tells_no_layer_where_not_all_tactics_are_known(
    tmp_path: Path,
) -> None:
    """The second kernel may be of the layer whose tactic the file does not tell."""
    tactic = "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n"
    file = tensorrt_file()
    for turn in range(3):
        at = 1000 * (turn + 1)
        file.range("ExecutionContext::enqueueV3", at, at + 100, domain=1)
        for number in range(2):
            file.launch(tactic, at + 10 + 20 * number, 10 * turn + number + 1)
    known = Layer(0, "a", "gemm", tactic=tactic)
    both = mapped(file, tmp_path, engine(known, Layer(1, "b", "gemm")))
    assert set(rows(both, "method")) == {("none",)}
    (folder := tmp_path / "all").mkdir()
    assert set(rows(mapped(file, folder, engine(known)), "layer", "method")) == {("a", "tactic")}


def test_each_call_is_matched_to_the_engine_whose_layers_it_ran(tmp_path: Path) -> None:
    file = tensorrt_file()
    engine_call(file, 1000, [("conv", "k1"), ("relu", "k2")], 10)
    engine_call(file, 2000, [("embed", "k3"), ("head", "k4")], 20)
    result = mapped(file, tmp_path, engine("conv", "relu"), engine("head", "embed"))
    assert rows(result, "engine", "layer_index") == [(0, 0), (0, 1), (1, 1), (1, 0)]
    assert result.inferences.ints("engine").tolist() == [0, 1]


def test_an_engine_that_did_not_run_is_an_error_and_its_layers_are_not_presented(
    tmp_path: Path,
) -> None:
    file = tensorrt_file()
    engine_call(file, 1000, [("conv", "k1"), ("relu", "k2")], 10)
    result = mapped(file, tmp_path, engine("embed", "head"))
    assert rows(result, "layer", "layer_index") == [("conv", None), ("relu", None)]
    (note,) = result.mapped.notes
    assert note.level == "error" and "0 of the 2 names" in note.text


def test_two_threads_in_the_same_engine_do_not_take_each_others_kernels(tmp_path: Path) -> None:
    file = tensorrt_file()
    other = THREAD + 1
    engine_call(file, 1000, [("conv", "k1"), ("relu", "k2")], 10)
    engine_call(file, 1004, [("conv", "k1"), ("relu", "k2")], 20, thread=other)
    result = mapped(file, tmp_path, engine("conv", "relu"))
    assert [(row["layer"], row["inference"]) for row in result.kernels.records()] == [
        ("conv", 0),
        ("conv", 1),
        ("relu", 0),
        ("relu", 1),
    ]


def test_a_flag_of_a_row_that_is_missing_is_not_set() -> None:
    flags, rows = np.array([True, False, True]), np.array([0, 1, 2, MISSING])
    assert _at(flags, rows).tolist() == [True, False, True, False]
    assert _at(np.zeros(3, np.bool_), rows).tolist() == [False] * 4
