"""What Myelin regions spend, by part: from tags and ranges, from the engine's layers, else from the
kernels' names in order.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from nsysmap.analysis import measured
from nsysmap.api import analyze
from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.mapping.mapped_trace import map_report, read_engines
from nsysmap.mapping.parts.parts_by_name import pattern_parts
from nsysmap.names.decode import decode
from nsysmap.names.fusion import part_words
from nsysmap.output.layers import OfTrace, layers_json, layers_text, precision_text
from nsysmap.timing.region_times import parts_of_kernels, region_parts
from nsysmap.trace.inferences.steady import steady_inferences
from tests.places import CAPTURES, FIXTURES

REGION = "{ForeignNode[a...b]}"


def kernels(*rows: tuple[int, int, str, str | None, int]) -> Table:
    """Kernels of (inference, position, name, part, duration), all of layer 0."""
    return Table.of_rows(
        KERNELS,
        [
            {
                "start_ns": 0,
                "end_ns": spent,
                "inference": at,
                "position": place,
                "name": name,
                "part": part,
                "layer_id": 0,
                "engine": 0,
            }
            for at, place, name, part, spent in rows
        ],
    )


LAYER = Table.of_rows(
    LAYERS, [{"layer_id": 0, "engine": 0, "layer_index": 0, "name": REGION, "kind": "foreign_node"}]
)
TWO = Table.of_rows(INFERENCES, [{"inference": number, "engine": 0} for number in range(2)])


def told(table: Table) -> list[tuple[object, ...]]:
    return [
        (row["part"], row["told_by"], row["kernels"], row["time_ns"], row["mean_ns"])
        for row in table.records()
    ]


def test_parts_are_numbered_in_launch_order_whatever_order_the_rows_have() -> None:
    gemm, norm = (
        "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x32",
        "__myl_bb0_1_AddMeaSubMulMeaAddSqrDivMulMulAdd",
    )
    table = kernels(
        (1, 2, gemm, None, 7),
        (0, 0, gemm, None, 1),
        (0, 1, norm, None, 2),
        (0, 2, gemm, None, 5),
        (1, 0, gemm, None, 3),
        (1, 1, norm, None, 2),
    )
    found = told(region_parts(table, LAYER, TWO, TWO.ints("inference")))
    assert found == [
        ("gemm #1", "kernel", 2, 4, 2),
        ("residual-add + layernorm #1", "kernel", 2, 4, 2),
        ("gemm #2", "kernel", 2, 12, 6),
    ]


def test_a_tag_of_the_trace_goes_before_the_kernel_s_name() -> None:
    table = kernels(
        (0, 0, "__myl_bb0_1_Add", "$$myelin$$/a/Add", 1),
        (0, 1, "__myl_bb0_2_Add", "$$myelin$$/a/Add", 2),
        (0, 2, "x_kernel", None, 3),
    )
    assert told(region_parts(table, LAYER, TWO, TWO.ints("inference")[:1])) == [
        ("$$myelin$$/a/Add", "trace", 2, 3, 3),
        ("x_kernel #1", "kernel", 1, 3, 3),
    ]


def test_without_inferences_the_whole_trace_counts_and_there_is_no_mean() -> None:
    table = kernels((0, 0, "__myl_bb0_1_Add", None, 4), (1, 0, "__myl_bb0_1_Add", None, 4))
    (row,) = region_parts(
        table, LAYER, Table.empty(INFERENCES), TWO.ints("inference")[:0]
    ).records()
    assert (row["kernels"], row["time_ns"], row["mean_ns"]) == (2, 8, None)


def test_a_region_whose_layers_the_file_shows_has_them_as_parts() -> None:
    layers = Table.of_rows(
        LAYERS,
        [
            {
                "layer_id": 0,
                "engine": 0,
                "layer_index": 0,
                "name": "__myl_Add_myl2_1",
                "kind": "myelin_kernel",
                "region": 2,
                "region_index": 1,
            }
        ],
    )
    table = kernels((0, 0, "__myl_Add_0x1a", None, 4))
    (row,) = region_parts(table, layers, TWO, TWO.ints("inference")).records()
    assert (row["region"], row["part"], row["told_by"]) == ("myl2", "__myl_Add_myl2_1", "engine")


def test_kernels_outside_of_regions_are_no_parts() -> None:
    layers = Table.of_rows(
        LAYERS,
        [{"layer_id": 0, "engine": 0, "layer_index": 0, "name": "Conv_1", "kind": "convolution"}],
    )
    assert len(region_parts(kernels((0, 0, "k", None, 4)), layers, TWO, TWO.ints("inference"))) == 0
    assert len(region_parts(Table.empty(KERNELS), LAYER, TWO, TWO.ints("inference"))) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_0x1a", "residual-add + layernorm"),
        ("__myl_FcMulCastErfCastAddMulMul_0x1a", "MatMul + gelu-erf"),
        ("_gemm_mha_v2_0x7dc336e00c2ca56d5e53908cfcb191b1", "attention"),
        ("__myl_AddDivSub_0x1a", "Add Div Sub"),
        ("sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x32", "gemm"),
        ("somebody_s_kernel", "somebody_s_kernel"),
    ],
)
def test_what_a_kernel_is_in_a_few_words(name: str, words: str) -> None:
    assert part_words(decode(name)) == words


def of_trace(folder: str, report: Path, profile: Path | None = None) -> tuple[OfTrace, str]:
    (engine,) = read_engines([folder_of(folder) / "engine.json"], profile=profile)
    mapped = map_report(report, [engine])
    held = OfTrace(mapped.trace.source, measured(mapped), ())
    return held, layers_text(engine, held, width=100)


def folder_of(name: str) -> Path:
    return next(path for path in (FIXTURES / name, CAPTURES / name) if path.is_dir())


def test_the_parts_of_bert_s_foreign_node_are_its_68_kernels_in_order_with_the_halves_of_a_softmax_together() -> (  # noqa: E501
    None
):
    held, text = of_trace("bert_trt85", FIXTURES / "bert_trt85" / "sync.sqlite")
    rows = held.times.region_parts.records()
    truth = [
        line.split("\t")
        for line in (FIXTURES / "bert_trt85" / "truth.tsv").read_text().splitlines()[1:]
    ]
    names = [line[4] for line in truth if line[2].startswith("{ForeignNode")]
    parts = pattern_parts(names, [0] * len(names))
    assert [(row["part"], row["told_by"], row["kernels"]) for row in rows] == [
        (one.name, "kernel", 40 * len(one.places)) for one in parts
    ]
    assert [part.name for part in parts if len(part.places) > 1] == [
        "softmax #1",
        "softmax #2",
        "softmax #3",
        "softmax #4",
    ]
    assert "inside {ForeignNode[bert.embeddings" in text
    assert "not name them" in text
    assert max(map(len, text.splitlines())) <= 100


def test_tags_inside_a_region_name_its_parts_and_their_times() -> None:
    capture = FIXTURES / "bert_trt86"
    if not capture.is_dir():
        pytest.skip("the capture with tags is not here")
    held, text = of_trace("bert_trt86", capture / "sync.nsys-rep")
    rows = held.times.region_parts.records()
    assert {row["told_by"] for row in rows} == {"trace"}
    truth = [line.split("\t") for line in (capture / "truth.tsv").read_text().splitlines()[1:]]
    parts: dict[str, int] = defaultdict(int)
    for line in truth:
        if line[3]:
            parts[line[3]] += 1
    assert {row["part"]: int(str(row["kernels"])) // held.times.inferences for row in rows} == parts
    assert "/encoder/layer.*/intermediate/MatMul" in text


def test_the_layers_of_a_trace_have_the_measured_mean_and_the_json_has_every_region() -> None:
    folder = FIXTURES / "bert_trt10"
    held, text = of_trace("bert_trt10", folder / "sync.sqlite", folder / "profile.json")
    assert "mean of 50 inferences" in text
    assert "profile µs" in text
    (engine,) = read_engines([folder / "engine.json"])
    value = json.loads(json.dumps(layers_json(engine, held, precision=True)))
    times = {row["index"]: row["time_ns"] for row in value["layers"]}
    assert times[0] is None  # shape_call ran no kernel
    assert times[7] == held.times.layers.records()[7]["time_ns"]
    (region,) = value["regions"]
    assert region["region"] == "myl0"
    assert sum(part["time_ns"] for part in region["parts"]) == region["time_ns"]
    layers = {row["index"] for row in value["precision"]["layers"]}
    assert layers == set(range(1, 57))
    totals = {
        (row["work"], row["tensor_cores"]): row["layers"] for row in value["precision"]["totals"]
    }
    assert totals["product", "unknown"] == 4


def test_the_precision_page_has_the_engine_its_regions_and_every_layer() -> None:
    folder = FIXTURES / "bert_trt10"
    (engine,) = read_engines([folder / "engine.json"])
    mapped = map_report(folder / "sync.sqlite", [engine])
    text = precision_text(engine, OfTrace(mapped.trace.source, measured(mapped), ()), width=100)
    lines = text.splitlines()
    assert "by Myelin region" in lines
    assert len(lines) - lines.index("by layer") == 2 + 56
    assert max(map(len, lines)) <= 100
    without = precision_text(engine)
    assert "no times" in without
    assert "µs" not in without


def test_a_trace_that_hides_its_kernels_gives_no_times_and_no_zeros() -> None:
    folder = FIXTURES / "bert_trt10"
    (engine,) = read_engines([folder / "engine.json"])
    mapped = map_report(folder / "graph_whole.sqlite", [engine])
    held = OfTrace(mapped.trace.source, measured(mapped), ())
    assert {row["time_ns"] for row in layers_json(engine, held)["layers"]} == {None}  # type: ignore[attr-defined]
    text = layers_text(engine, held)
    assert "shows no kernel" in text
    assert "µs" not in text
    assert "no times" in precision_text(engine, held)


@pytest.mark.parametrize("folder", ["bert_trt85", "bert_trt86", "bert_trt10", "two_shapes"])
def test_the_parts_of_kernels_are_those_that_the_table_adds_up(folder: str) -> None:
    tables = analyze(
        FIXTURES / folder / "sync.nsys-rep", [FIXTURES / folder / "engine.json"], rules=()
    ).tables
    number, parts, first = parts_of_kernels(tables.kernels, tables.layers)
    steady = set(steady_inferences(tables.inferences).tolist())
    spent: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in tables.kernels:  # one by one
        at = number[row.integer("kernel_id")]
        if at >= 0 and row.maybe_integer("inference") in steady:
            spent[parts[at]][0] += row.integer("end_ns") - row.integer("start_ns")
            spent[parts[at]][1] += 1
    table = {
        (row.maybe_integer("engine"), row.text("region"), row.text("told_by"), row.text("part")): [
            row.integer("time_ns"),
            row.integer("kernels"),
        ]
        for row in tables.region_parts
    }
    assert dict(spent) == table
    assert len(table) > 10
    assert [parts[number[kernel]] for kernel in first.tolist()] == parts


def test_kernels_outside_regions_and_inferences_are_of_no_part() -> None:
    outside = kernels((0, 0, "a_kernel", None, 1), (-1, 1, "a_kernel", None, 1))
    assert parts_of_kernels(outside, LAYER)[0].tolist() == [0, MISSING]
    other = Table.of_rows(
        LAYERS,
        [{"layer_id": 0, "engine": 0, "layer_index": 0, "name": "conv", "kind": "convolution"}],
    )
    number, parts, first = parts_of_kernels(outside, other)
    assert (number.tolist(), parts, first.tolist()) == ([MISSING, MISSING], [], [])
