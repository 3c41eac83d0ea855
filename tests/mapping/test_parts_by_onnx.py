"""The parts of an opaque region on the nodes of the ONNX model behind the engine."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core.table import Text
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.inputs.engine.onnx_model import OnnxModel, OnnxNode, read_model
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.mapping.parts.onnx_blocks import ModelGraph, OnnxBlock, blocks
from nsysmap.mapping.parts.parts_by_name import PatternPart
from nsysmap.mapping.parts.parts_by_onnx import (
    _costs,
    _ends,
    _kinds_of,
    _named,
    _nodes_of,
    _Region,
    _Slot,
    _slots,
    _Tree,
    note_of,
    place_on_model,
)
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


# --- on small models
# ------------------------------------------------------------------------------


def chain(*names: str, constants: Sequence[str] = ()) -> ModelGraph:
    """Nodes of which each reads what the one before it makes."""
    nodes = [OnnxNode(name, "Relu", (f"t{at}",), (f"t{at + 1}",)) for at, name in enumerate(names)]
    fixed = OnnxNode("fixed", "Relu", ("w",), ("v",))
    return ModelGraph(OnnxModel("m.onnx", (*nodes, fixed), frozenset({"w", "v", *constants})))


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("{ForeignNode[a...c]}", (0, 2)),
        ("{ForeignNode[b]}", (1, 1)),
        ("{ForeignNode[a + b...b + c]}", (0, 2)),  # the first of those, the last of these
        ("{ForeignNode[w...c]}", (None, 2)),  # a weight
        ("{ForeignNode[a...fixed]}", (0, None)),  # made of weights alone
        ("{ForeignNode[x...y]}", (None, None)),
        ("{ForeignNode[a...x...y...c]}", (0, None)),  # a name may have dots itself
        ("{ForeignNode[d...e...c]}", (3, 2)),
        ("{ForeignNode[a_clone_1...c]}", (0, 2)),
        ("{ForeignNode[(Unnamed Layer* 7)...c]}", (None, 2)),
    ],
)
def test_the_ends_of_a_region_are_the_nodes_of_its_name(
    name: str, ends: tuple[int | None, int | None]
) -> None:
    graph = chain("a", "b", "c", "d...e")
    assert _ends(graph, name) == ends


def test_a_region_holds_what_lies_between_its_ends_and_no_other_layer_names() -> None:
    graph = chain("a", "b", "c", "d", "e", "f")

    def held(name: str, *others: str, kind: str = "gemm") -> set[int] | None:
        layers = [Layer(at, other, kind) for at, other in enumerate(others)]
        return _nodes_of(graph, f"{{ForeignNode[{name}]}}", layers)

    assert held("b...d") == {1, 2, 3}
    assert held("w...d") == {0, 1, 2, 3}  # from the first node on
    assert held("b...fixed") == {1, 2, 3, 4, 5, 6}  # to the last one
    assert held("x...y") is None
    # what another layer names, and what runs before or after that, is not its
    assert held("w...d", "b") == {2, 3}
    assert held("b...fixed", "e") == {1, 2, 3, 6}
    assert held("b...d", "c") == {3}
    assert held("b...d", "b") == {1, 2, 3}  # its own ends are its own
    assert held("b...d", "d") == {1, 2, 3}
    for kind in ("reformat", "constant", "noop"):
        assert held("w...d", "b", kind=kind) == {0, 1, 2, 3}
    assert held("w...d", "{ForeignNode[a...b]}", kind="foreign_node") == {2, 3}
    assert held("w...d", "a + b") == {2, 3}


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ((0,), "/l/a/x"),
        ((0, 1), "/l/a"),
        ((0, 2), "/l"),  # two of three that lie there
        ((2, 3), "/l/b/z.../other"),
        ((0, 1, 2), "/l"),
        ((3, 4), "/other...plain"),
    ],
)
def test_several_nodes_have_their_path_if_little_else_lies_under_it(
    numbers: tuple[int, ...], name: str
) -> None:
    names = ("/l/a/x", "/l/a/y", "/l/b/z", "/other", "plain", "/l/a/w")
    nodes = [OnnxNode(one, "Relu", (one,), (f"of {one}",)) for one in names]
    # the last one is made of weights alone, and is not counted
    model = OnnxModel("m.onnx", tuple(nodes), frozenset({"/l/a/w", "of /l/a/w"}))
    assert _Tree.of(model).name(numbers) == name


def test_half_of_what_lies_under_a_path_is_too_little_for_it() -> None:
    names = ("/l/a", "/l/b", "/l/c", "/l/d")
    nodes = tuple(OnnxNode(one, "Relu", (one,), (f"of {one}",)) for one in names)
    tree = _Tree.of(OnnxModel("m.onnx", nodes, frozenset()))
    assert tree.name((0, 1)) == "/l/a.../l/b"
    assert tree.name((0, 1, 2)) == "/l"


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("gemm", ("product",)),
        ("Add Tanh Sigmoid Sigmoid", ("tanh", "sigmoid")),
        ("Add TopK", ("topk",)),
        ("Erf", ("gelu",)),
        ("AddTanh", ()),
        ("deconvolution", ("deconvolution", "convolution")),
    ],
)
def test_what_a_part_can_be_in_a_model(word: str, kinds: tuple[str, ...]) -> None:
    assert _kinds_of(word) == kinds


def test_attention_stands_for_its_inside_and_products_run_as_one_or_each_alone() -> None:
    held = (
        OnnxBlock("product", (0, 1), ((0,), (1,))),
        OnnxBlock("attention", (2, 3, 4)),
        OnnxBlock("product", (2,)),
        OnnxBlock("softmax", (3,)),
        OnnxBlock("layernorm", (5,)),
    )
    region = _Region(held, ("qk", "attention", "first", "softmax", "norm"), (("q", "k"), *[()] * 4))

    def names(**parts: int) -> list[str]:
        order = ["qk", "attention", "first", "softmax", "norm"]
        count = Counter({at: parts.get(name, 0) for at, name in enumerate(order)})
        return [slot.name for slot in _slots(region, count)]

    assert names() == ["q", "k", "first", "softmax", "norm"]
    assert names(qk=1) == ["q+k", "first", "softmax", "norm"]
    assert names(qk=2) == ["q", "k", "first", "softmax", "norm"]
    assert names(qk=1, attention=1) == ["q+k", "attention", "norm"]
    kinds = [slot.kind for slot in _slots(region, Counter({1: 1}))]
    assert kinds == ["product", "product", "attention", "layernorm"]


def test_what_parts_are_worth_in_blocks() -> None:
    slots = [
        _Slot("product", "p", several=True),
        _Slot("attention", "a"),
        _Slot("convolution", "c"),
        _Slot("layernorm", "n"),
        _Slot("gelu", "g"),
    ]
    costs = _costs([("product",), ("attention",), ("gelu", "tanh"), ("product",)], slots)
    assert costs.row.tolist() == [0, 1, 2, 0]
    assert costs.match.tolist() == [
        [4.0, -12.0, -12.0, -12.0, -12.0],
        [-12.0, 11.5, -12.0, -12.0, -12.0],  # it stands for three blocks
        [-12.0, -12.0, -12.0, -12.0, 4.0],
    ]
    assert costs.skip.tolist() == [-2.5, 0.0, -3.0, -3.0, -0.3]
    assert costs.more.tolist() == [[-1.5, -6.0, -6.0, -6.0, -6.0]] * 3
    assert costs.drop.tolist() == [-5.0, -5.0, -1.5]
    kinds = ["deconvolution", "softmax", "rmsnorm", "groupnorm"]
    others = _costs([(kind,) for kind in kinds], [_Slot(kind, "x") for kind in kinds])
    assert others.skip.tolist() == [-3.0, -2.5, -3.0, -3.0]
    assert others.drop.tolist() == [-5.0] * 4


@pytest.mark.parametrize(("unknown", "placed"), [(0, True), (1, True), (2, True), (3, False)])
def test_half_of_the_parts_must_be_placed_for_any_to_have_a_name(
    unknown: int, placed: bool
) -> None:
    region = _Region(
        (OnnxBlock("layernorm", (0,)), OnnxBlock("softmax", (1,))), ("norm", "soft"), ((), ())
    )
    words = ["layernorm", "softmax", *["topk"] * unknown, "Add"]
    parts = [PatternPart(word, 1, (at,)) for at, word in enumerate(words)]
    found = _named(region, parts)
    assert found == [*(["norm", "soft"] if placed else [None] * 2), *[None] * (unknown + 1)]
    assert _named(None, parts) == [None] * len(parts)
    assert _named(replace(region, blocks=()), parts) == [None] * len(parts)
    assert _named(region, parts[-1:]) == [None]


def test_the_note_counts_kernels_with_a_node_among_those_that_the_trace_does_not_name() -> None:
    made = chain("a").model
    some = note_of(made, Text.of(["onnx", "onnx", "pattern", "tag", None]))
    assert re.findall(r"\d+", some.text) == ["2", "3"]
    assert some.level == "info"
    none = note_of(made, Text.of(["tag", None]))
    assert re.findall(r"\d+", none.text) == []
    assert note_of(made, Text.of(["pattern"])).text != none.text
    assert note_of(made, Text.of(["onnx"])).text != none.text
