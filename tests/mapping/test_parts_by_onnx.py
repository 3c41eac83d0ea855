"""The parts of an opaque region on the nodes of the ONNX model behind the engine."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.inputs.engine.onnx_model import OnnxModel, OnnxNode, read_model
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.mapping.parts.onnx_blocks import ModelGraph, blocks
from nsysmap.mapping.parts.parts_by_name import PatternPart
from nsysmap.mapping.parts.parts_by_onnx import place_on_model
from nsysmap.network.tables import layers_table
from nsysmap.trace.open_report import open_trace
from tests.commands import run
from tests.onnx_models import bert
from tests.places import FIXTURES

REGION = "{ForeignNode[bert.embeddings.position_embeddings.weight.../pooler/activation/Tanh]}"
ENGINE = Engine(
    "made-up.json",
    (
        Layer(0, REGION, "foreign_node"),
        Layer(1, "PWN(PWN(/classifier/Sigmoid), /classifier/Mul)", "pointwise"),
    ),
    detailed=True,
)
TRT85 = FIXTURES / "bert_trt85"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxModel:
    return read_model(bert(tmp_path_factory.mktemp("model") / "bert.onnx"))


def named(model: OnnxModel, words: list[str], engine: Engine = ENGINE) -> list[str | None]:
    """The nodes of a region's parts with these words."""
    numbers: Counter[str] = Counter()
    parts = []
    for place, word in enumerate(words):
        numbers[word] += 1
        parts.append(PatternPart(word, numbers[word], (place,)))
    return list(place_on_model(model, [engine], layers_table([engine])).namer(0, parts))


def expected(
    merged: list[bool], fused: list[bool], gelus: list[bool]
) -> list[tuple[str, str | None]]:
    """Parts and their nodes of a BERT whose k-th layer has query, key and value merged, attention
    fused, a GELU of its own.
    """
    rows: list[tuple[str, str | None]] = [("layernorm", "/embeddings/LayerNorm")]
    for number, (one, whole, gelu) in enumerate(zip(merged, fused, gelus, strict=True)):
        layer = f"/encoder/layer.{number}"
        attention = f"{layer}/attention"
        three = [f"{attention}/{name}/MatMul" for name in ("query", "key", "value")]
        rows += [("gemm", "+".join(three))] if one else [("gemm", name) for name in three]
        rows.append(("Add Reshape Transpose", None))
        if whole:
            rows.append(("attention", f"{attention}/MatMul...{attention}/MatMul_1"))
        else:
            rows += [
                ("gemm", f"{attention}/MatMul"),
                ("softmax", f"{attention}/Softmax"),
                ("gemm", f"{attention}/MatMul_1"),
            ]
        rows += [
            ("gemm", f"{attention}/output/dense/MatMul"),
            ("layernorm", f"{attention}/output/LayerNorm"),
            ("gemm", f"{layer}/intermediate/MatMul"),
        ]
        rows += [("gelu-erf", f"{layer}/intermediate/act")] if gelu else []
        rows += [
            ("gemm", f"{layer}/output/dense/MatMul"),
            ("layernorm", f"{layer}/output/LayerNorm"),
        ]
    return [*rows, ("gemm", "/pooler/dense/MatMul"), ("Add Tanh", "/pooler/activation/Tanh")]


@settings(max_examples=30)
@given(*(st.lists(st.booleans(), min_size=4, max_size=4) for _ in range(3)))
def test_merged_products_fused_attention_and_fused_gelus_are_placed_all_the_same(
    merged: list[bool], fused: list[bool], gelus: list[bool]
) -> None:
    rows = expected(merged, fused, gelus)
    assert named(bert_model(), [word for word, _ in rows]) == [node for _, node in rows]


_HELD: list[OnnxModel] = []


def bert_model() -> OnnxModel:
    """The model, read once: hypothesis wants no fixture of a test's own."""
    if not _HELD:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            _HELD.append(read_model(bert(Path(folder) / "bert.onnx")))
    return _HELD[0]


def test_a_product_too_many_is_not_forced_on_a_node_and_those_elsewhere_stay_right(
    model: OnnxModel,
) -> None:
    rows = expected([False] * 4, [False] * 4, [True] * 4)
    at = next(
        place for place, row in enumerate(rows) if row[1] == "/encoder/layer.2/intermediate/MatMul"
    )
    words = [word for word, _ in rows]
    found = named(model, [*words[:at], "gemm", *words[at:]])
    right = [node for _, node in rows]
    assert found[at] is found[at + 1] is None
    assert found[: at - 4] == right[: at - 4]
    assert found[at + 6 :] == right[at + 5 :]


def test_a_model_of_other_blocks_gives_no_names(tmp_path: Path) -> None:
    rows = expected([False] * 4, [False] * 4, [True] * 4)
    other = read_model(bert(tmp_path / "other.onnx", layers=12))
    assert set(named(other, [word for word, _ in rows])) == {None}


def test_a_region_that_the_model_does_not_know_is_a_warning(model: OnnxModel) -> None:
    engine = Engine(
        "x.json", (Layer(0, "{ForeignNode[/vit/a.../vit/z]}", "foreign_node"),), detailed=True
    )
    placing = place_on_model(model, [engine], layers_table([engine]))
    (note,) = placing.notes
    assert note.level == "warning"
    assert "bert.onnx has none" in note.text
    assert placing.namer(0, [PatternPart("gemm", 1, (0,))]) == [None]


def test_two_regions_share_a_model_by_the_nodes_in_their_names(model: OnnxModel) -> None:
    middle = "/encoder/layer.1/output/LayerNorm/Add_1"
    engine = Engine(
        "x.json",
        (Layer(0, "{ForeignNode[bert.embeddings.position_embeddings.weight..." + middle + "]}", "foreign_node"),  # noqa: E501
         Layer(1, "{ForeignNode[/encoder/layer.2/attention/query/MatMul.../pooler/activation/Tanh]}", "foreign_node")),  # noqa: E501
        detailed=True,
    )  # fmt: skip
    rows = expected([False] * 4, [False] * 4, [True] * 4)
    cut = 1 + next(
        place for place, row in enumerate(rows) if row[1] == "/encoder/layer.1/output/LayerNorm"
    )
    namer = place_on_model(model, [engine], layers_table([engine])).namer
    for number, some in enumerate((rows[:cut], rows[cut:])):
        assert namer(
            number, [PatternPart(word, 1, (place,)) for place, (word, _) in enumerate(some)]
        ) == [node for _, node in some]


def test_norms_are_found_whole_in_pieces_and_without_a_mean(tmp_path: Path) -> None:
    for whole in (False, True):
        read = read_model(bert(tmp_path / "bert.onnx", layers=2, whole_norms=whole))
        found = Counter(block.kind for block in blocks(ModelGraph(read), range(len(read.nodes))))
        assert found == {
            "layernorm": 5,
            "product": 2 * 6 + 1,
            "attention": 2,
            "softmax": 2,
            "gelu": 2,
            "tanh": 1,
            "sigmoid": 1,
        }
    steps = [
        ("Pow", "x two"), ("ReduceMean", "Pow"), ("Add", "ReduceMean e"), ("Sqrt", "Add"),
        ("Div", "one Sqrt"), ("Mul", "x Div"),
        ("Mul", "w Mul"),
    ]  # fmt: skip
    nodes = tuple(
        OnnxNode(f"/norm/{place}", op, tuple(reads.split()), (op if place < 6 else "y",))
        for place, (op, reads) in enumerate(steps)
    )
    made = OnnxModel("m.onnx", nodes, frozenset({"two", "e", "one", "w"}))
    assert [block.kind for block in blocks(ModelGraph(made), range(len(nodes)))] == ["rmsnorm"]


def test_products_of_weights_alone_are_no_kernels() -> None:
    nodes = (
        OnnxNode("/fold", "MatMul", ("w", "v"), ("u",)),
        OnnxNode("/run", "MatMul", ("x", "u"), ("y",)),
    )
    graph = ModelGraph(OnnxModel("m.onnx", nodes, frozenset({"w", "v", "u"})))
    assert [block.nodes for block in blocks(graph, range(2))] == [(1,)]


def test_parts_of_tensorrt_8_6_on_the_model_are_its_own_tags(model: OnnxModel) -> None:
    truth = FIXTURES / "bert_trt86" / "truth.tsv"
    # the same network, without tags
    trace, engines = (
        open_trace(TRT85 / "sync.sqlite"),
        read_engines([TRT85 / "engine.json"]),
    )
    with truth.open(newline="") as file:
        tags = [
            row["part"].removeprefix("$$myelin$$")
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    for held in (trace, replace(trace, nvtx_ranges=trace.nvtx_ranges.take(np.arange(0)))):
        result = map_trace(held, engines, model=model)
        part, by = (
            result.mapped.table.text("part").list(),
            result.mapped.table.text("part_by").list(),
        )
        placed = [
            (node, tag) for node, tag, how in zip(part, tags * 40, by, strict=True) if how == "onnx"
        ]
        assert len(placed) == 55 * 40
        for node, tag in placed:
            same = tag in (node, f"{node}/Erf") or (tag, node) == (
                "/pooler/Tanh",
                "/pooler/activation/Tanh",
            )
            assert same, (node, tag)


def test_the_commands_name_nodes_with_a_model(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = bert(tmp_path / "bert.onnx")
    files = (TRT85 / "sync.sqlite", TRT85 / "engine.json")
    done = run(capfd, "map", *files, "--onnx", path, "-o", tmp_path / "map.csv")
    assert done.status == 0
    assert "2,200 of 2,720 kernels" in done.err
    with (tmp_path / "map.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[2]["part"], rows[2]["part_by"]) == (
        "/encoder/layer.0/attention/query/MatMul",
        "onnx",
    )
    assert (rows[5]["part"], rows[5]["part_by"]) == ("Add Reshape Transpose #1", "pattern")
    done = run(capfd, "layers", files[1], "--trace", files[0], "--onnx", path)
    assert "/encoder/layer.*/intermediate/MatMul" in done.out
    assert "from the ONNX model" in " ".join(done.out.split())
    assert run(capfd, "analyze", *files, "--onnx", path).status == 0
    # not over its own input
    assert run(capfd, "map", *files, "--onnx", path, "-o", path).status == 2
