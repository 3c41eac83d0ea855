"""What each kernel inside an opaque Myelin region ran for, and what tells it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace, read_engines
from nsysmap.trace.model import Trace
from tests.exports import exported
from tests.nsys_file import THREAD, NsysFile
from tests.places import FIXTURES
from tests.reports import read_trace

REGION = "{ForeignNode[a...z]}"
GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"  # noqa: E501
NORM = "__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_0x1a"
MAXIMUM, DIVIDE = "__myl_MaxrSubExpSum_0x1a", "__myl_DivMul_0x1a"
OPAQUE = Engine("made-up.json", (Layer(0, REGION, "foreign_node", type="Myelin"),), detailed=True)


def region_call(
    file: NsysFile, at: int, kernels: list[tuple[str, str | None, int, str | None]], first: int
) -> None:
    """One call of a region: for each kernel its name, the text of the range around its launch, that
    range's domain and its payload.
    """
    end = at + 20 + 20 * len(kernels)
    file.range("ExecutionContext::enqueueV3", at, end, domain=1)
    file.range(REGION, at + 1, end - 1, domain=1)
    for number, (name, text, domain, payload) in enumerate(kernels):
        begin = at + 5 + 20 * number
        if text is not None:
            file.range(text, begin, begin + 15, domain=domain, payload=payload)
        file.launch(name, begin + 5, first + number)


def parts_of(file: NsysFile, folder: Path, *engines: Engine) -> list[tuple[object, object]]:
    file.domain("TensorRT", 1)
    file.domain("myelin-exec", 2)
    result = map_trace(read_trace(file.write(folder / "x.sqlite")), engines or (OPAQUE,))
    return told(result)


def told(result: MappedTrace) -> list[tuple[object, object]]:
    table = result.mapped.table
    return list(zip(table.text("part").list(), table.text("part_by").list(), strict=True))


def test_the_trace_s_own_words_come_first_and_the_kernel_s_name_last(tmp_path: Path) -> None:
    file = NsysFile()
    nodes = json.dumps(
        {"Name": "__myl_Fc", "Layers": "[ONNX Layer: /fc/MatMul]\x1f[ONNX Layer: /fc/Add]"}
    )
    empty = json.dumps({"Name": "__myl_Res", "Layers": ""})
    kernels = [
        (GEMM, "$$myelin$$/a/MatMul", 1, None),
        (GEMM, "__myl_Fc", 2, nodes),
        (GEMM, "/b/MatMul", 2, None),
        (GEMM, "__myl_Res", 2, empty),
        (GEMM, None, 0, None),
    ]
    for call in range(2):
        region_call(file, 1000 * (call + 1), kernels, 10 * (call + 1))
    wanted = [
        ("$$myelin$$/a/MatMul", "tag"),
        ("/fc/MatMul, /fc/Add", "payload"),
        ("/b/MatMul", "node"),
        ("__myl_Res", "node"),
        ("gemm #5", "pattern"),  # the region's fifth product, whatever tells the others
    ]
    assert parts_of(file, tmp_path) == wanted * 2


def test_a_tag_around_a_myelin_node_is_preferred_to_the_node(tmp_path: Path) -> None:
    file = NsysFile()
    region_call(file, 1000, [(GEMM, "__mye12_3", 2, None)], 10)
    file.range("$$myelin$$/a/MatMul", 1004, 1022, domain=1)
    assert parts_of(file, tmp_path) == [("$$myelin$$/a/MatMul", "tag")]


def test_outside_of_opaque_regions_there_is_no_part(tmp_path: Path) -> None:
    file = NsysFile()
    region_call(file, 1000, [(GEMM, None, 0, None), (NORM, "/b/MatMul", 2, None)], 10)
    assert (
        parts_of(
            file, tmp_path, Engine("x.json", (Layer(0, REGION, "convolution"),), detailed=True)
        )
        == [(None, None)] * 2
    )


def test_each_region_of_an_inference_is_numbered_by_itself(tmp_path: Path) -> None:
    file = NsysFile()
    file.domain("TensorRT", 1)
    other = "{ForeignNode[b...y]}"
    file.range("ExecutionContext::enqueueV3", 1000, 1200, domain=1)
    for number, region in enumerate((REGION, REGION, other, REGION)):
        file.range(region, 1010 + 40 * number, 1040 + 40 * number, domain=1)
        file.launch(GEMM, 1020 + 40 * number, 10 + number)
    engine = Engine(
        "x.json", (Layer(0, REGION, "foreign_node"), Layer(1, other, "foreign_node")), detailed=True
    )
    assert [part for part, _ in parts_of(file, tmp_path, engine)] == [
        "gemm #1",
        "gemm #2",
        "gemm #1",
        "gemm #3",
    ]


def test_replays_of_a_graph_captured_in_the_trace_have_parts_in_node_order(tmp_path: Path) -> None:
    file = NsysFile()
    file.domain("TensorRT", 1)
    file.range("ExecutionContext::enqueueV3", 10, 200, domain=1)
    file.range(REGION, 20, 190, domain=1)
    names = (NORM, MAXIMUM, DIVIDE, GEMM)
    for number in range(len(names)):
        file.add(
            "CUDA_GRAPH_EVENTS",
            start=30 + 30 * number,
            end=30 + 30 * number,
            globalTid=THREAD,
            graphNodeId=1 + number,
        )
    for replay in range(2):
        file.call("cudaGraphLaunch_v10000", 1000 + 100 * replay, 1010 + 100 * replay, 40 + replay)
        for number, name in enumerate(names):
            file.kernel(name, 1020 + 100 * replay + 10 * number, 40 + replay, node=1 + number)
    wanted = [
        ("layernorm #1", "pattern"),
        ("softmax #1", "pattern"),
        ("softmax #1", "pattern"),
        ("gemm #1", "pattern"),
    ]
    assert parts_of(file, tmp_path) == wanted * 2


def bare(trace: Trace) -> Trace:
    return replace(trace, nvtx_ranges=trace.nvtx_ranges.take(np.arange(0)))


def capture(folder: str) -> tuple[Trace, list[Engine]]:
    return read_trace(exported(f"{folder}/sync")), read_engines([FIXTURES / folder / "engine.json"])


def test_parts_are_the_same_where_only_the_order_tells_the_region() -> None:
    trace, engines = capture("bert_trt85")
    assert told(map_trace(bare(trace), engines)) == told(map_trace(trace, engines))


def test_a_cut_inference_has_the_numbers_of_a_whole_one() -> None:
    trace, engines = capture("bert_trt85")
    whole = told(map_trace(bare(trace), engines))
    cut = replace(bare(trace), kernels=trace.kernels.take(np.arange(30, len(trace.kernels) - 20)))
    assert told(map_trace(cut, engines)) == whole[30:-20]


def test_parts_by_name_group_the_kernels_of_tensorrt_8_6_as_its_tags_do() -> None:
    trace, engines = capture("bert_trt86")
    with_tags = told(map_trace(trace, engines))
    without = told(map_trace(bare(trace), engines))
    assert {by for _, by in with_tags} == {"tag", None}
    assert {by for _, by in without} == {"pattern", None}
    pairs = {
        pair
        for pair in zip((part for part, _ in with_tags), (part for part, _ in without), strict=True)
        if pair[0]
    }
    # one to one: the same groups
    assert len(pairs) == len({tag for tag, _ in pairs}) == len({part for _, part in pairs})
    with (FIXTURES / "bert_trt86" / "truth.tsv").open(newline="") as file:
        tags = list(
            dict.fromkeys(
                row["part"]
                for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if row["part"]
            )
        )
    by_tag = dict(pairs)
    for ending, word in (("LayerNorm", "layernorm"), ("Softmax", "softmax"), ("Erf", "gelu-erf")):
        of_kind = [by_tag[tag] for tag in tags if tag.endswith(ending)]
        assert of_kind == [f"{word} #{number}" for number in range(1, len(of_kind) + 1)]
        assert len(of_kind) >= 4
    products = [by_tag[tag] for tag in tags if "MatMul" in tag]
    assert products == [f"gemm #{number}" for number in range(1, 34)]
