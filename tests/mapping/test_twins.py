"""Engine files with the same layers: told apart by what ran, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nsysmap.core.table import MISSING
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.mapping.order import kernel_alignment
from nsysmap.mapping.order.by_order import _same_in_all, _Tried
from nsysmap.mapping.order.scores import KernelFacts
from nsysmap.mapping.order.twins import (
    SEVERAL,
    Ran,
    _explain_alike,
    _is_attention,
    do_the_same,
    same_layers,
    twins_of,
    which_ran,
)
from nsysmap.trace.open_report import open_trace
from tests.places import FIXTURES

ATTENTION = "layers/0/attention/PLUGIN_V2_GPTAttention_0"


def engine(tokens: int, *, tactic: str | None = None, dims: bool = True) -> Engine:
    def layer(index: int, name: str, kind: str) -> Layer:
        outputs = (Tensor(f"t{index}", (tokens, 64)),) if dims else ()
        return Layer(index, name, kind, outputs=outputs, tactic=tactic if kind == "gemm" else None)

    layers = (
        layer(0, "embed", "gather"),
        layer(1, "qkv", "gemm"),
        layer(2, ATTENTION, "plugin"),
        layer(3, "out", "gemm"),
    )
    return Engine("made-up.json", layers, detailed=True)


def ran(
    *, attention: str = "attention_kernel", gemm: str = "gemm_kernel", scale: float = 1.0
) -> list[Ran]:
    names = ("gather_kernel", gemm, attention, gemm)
    return [Ran(at, name, scale * 1000.0 * (at + 1)) for at, name in enumerate(names)]


def test_engines_are_twins_if_their_layers_have_the_same_names_in_the_same_order() -> None:
    other = Engine("other.json", (Layer(0, "conv", "convolution"),), detailed=True)
    assert twins_of([engine(64), other, engine(1)]) == [[0, 2]]
    assert twins_of([engine(64), other]) == []


def test_tactics_tell() -> None:
    pair = [engine(64, tactic="large_gemm_tile"), engine(1, tactic="small_gemm_tile")]
    assert which_ran([ran(gemm="small_gemm_tile"), ran(gemm="large_gemm_tile")], pair) == [1, 0]


def test_attention_for_one_token_is_the_smaller_engine_s_in_either_order() -> None:
    sequences = [
        ran(attention="mmha::masked_multihead_attention_kernel"),
        ran(attention="fmha_v2_flash_attention_causal"),
    ]
    assert which_ran(sequences, [engine(64), engine(1)]) == [1, 0]
    assert which_ran(sequences, [engine(1), engine(64)]) == [0, 1]


def test_one_sequence_alone_is_told_by_its_attention() -> None:
    assert which_ran(
        [ran(attention="fmha_v2_flash_attention_causal")], [engine(64), engine(1)]
    ) == [0]
    assert which_ran([ran(attention="mmha_kernel")], [engine(64), engine(1)]) == [1]


def test_the_longer_sequence_is_the_larger_engine_s() -> None:
    assert which_ran([ran(scale=3.0), ran()], [engine(1), engine(64)]) == [1, 0]


def test_what_nothing_tells_is_not_told() -> None:
    assert which_ran([ran(), ran()], [engine(1), engine(64)]) == [None, None]  # as long
    assert which_ran([ran()], [engine(1), engine(64)]) == [None]  # nothing to compare with
    # equal tensors
    assert which_ran([ran(scale=3.0), ran()], [engine(8), engine(8)]) == [
        None,
        None,
    ]
    assert which_ran([ran(scale=3.0), ran()], [engine(1, dims=False), engine(64, dims=False)]) == [
        None,
        None,
    ]


def renamed(path: str, words: Sequence[tuple[str, str]]) -> Engine:
    """The engine of a file with other names of its model's nodes: another model of the same
    structure.
    """
    engine = read_engine(FIXTURES / path)

    def told(text: str) -> str:
        for old, new in words:
            text = text.replace(old, new)
        return text

    layers = [
        replace(layer, name=told(layer.name), onnx=tuple(told(node) for node in layer.onnx))
        for layer in engine.layers
    ]
    return replace(engine, source="twin.json", layers=tuple(layers))


HEAD = (
    ("/head/layer.", "/text_model/encoder/h."),
    ("attention/self", "self_attn"),
    ("intermediate/dense", "mlp/fc1"),
)
BERT = (
    ("/bert/encoder/layer.", "/vision/blocks."),
    ("attention/self", "attn"),
    ("output/dense", "proj"),
)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("report", "file", "words"), [
    ("torch_mixed/nonvtx.nsys-rep", "torch_mixed/head.engine.json", HEAD),
    ("two_shapes/nonvtx.nsys-rep", "two_shapes/engine.json", BERT),
])  # fmt: skip
def test_engines_of_the_same_structure_are_not_told_apart_by_the_names_of_their_layers(
    report: str, file: str, words: Sequence[tuple[str, str]], first: bool
) -> None:
    right, twin = read_engine(FIXTURES / file), renamed(file, words)
    assert (
        sum(one.name != other.name for one, other in zip(right.layers, twin.layers, strict=True))
        > len(right.layers) / 4
    )
    given = [twin, right] if first else [right, twin]
    result = map_trace(open_trace(FIXTURES / report), given)
    assert set(result.mapped.engine_fits.text("verdict").list()) == {"cannot-tell"}
    assert result.mapped.engine_fits.ints("one_of").tolist() == [2, 2]
    assert not [note for note in result.mapped.notes if note.level == "error"]
    assert sum("another given file" in note.text for note in result.mapped.notes) == 2
    # its index is the same in both; which of two names it has is as good as even
    alone = map_trace(open_trace(FIXTURES / report), [right]).kernels
    index, sure = (result.kernels.ints("layer_index"), result.kernels.floats("confidence"))
    assert (index == alone.ints("layer_index")).all()
    assert set(result.kernels.ints("engine")[index != MISSING].tolist()) == {0}
    same = np.array([
        one.name == other.name for one, other in zip(right.layers, twin.layers, strict=True)
    ])  # fmt: skip
    placed = np.flatnonzero(index != MISSING)
    known = alone.floats("confidence")[placed]
    assert sure[placed] == pytest.approx(np.where(same[index[placed]], known, known / 2), abs=0.01)


@pytest.mark.parametrize("names_only", [False, True])
@pytest.mark.parametrize("report", ["bert_trt10/sync", "bert_trt10/graph", "two_shapes/nonvtx"])
def test_a_file_given_twice_is_one_of_these_and_its_layers_are_shown(
    report: str, names_only: bool
) -> None:
    engine = read_engine(FIXTURES / report.partition("/")[0] / "engine.json")
    if names_only:
        layers = tuple(Layer(one.index, one.name, one.kind) for one in engine.layers)
        engine = replace(engine, layers=layers, detailed=False)
    trace = open_trace(FIXTURES / f"{report}.nsys-rep")
    alone = map_trace(trace, [engine])
    both = map_trace(trace, [engine, replace(engine, source="copy.json")])
    assert (alone.kernels.ints("layer_index") != MISSING).mean() > 0.9
    for column in ("layer_index", "engine"):
        assert (both.kernels.ints(column) == alone.kernels.ints(column)).all()
    sure = alone.kernels.floats("confidence")
    assert both.kernels.floats("confidence") == pytest.approx(sure, abs=0.01)
    fits = both.mapped.engine_fits
    assert fits.text("verdict").list() == ["cannot-tell", "cannot-tell"]
    assert fits.ints("one_of").tolist() == [2, 2]


def test_engines_of_other_sizes_that_nothing_tells_apart_are_one_of_these_without_layers() -> None:
    """As a context and a generation engine, by the kernels of one of them."""
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    other = replace(
        engine,
        source="generation.json",
        layers=tuple(
            replace(
                layer,
                outputs=tuple(
                    replace(tensor, dimensions=(1, 1, *tensor.dimensions[2:]))
                    if tensor.dimensions and len(tensor.dimensions) > 1
                    else tensor
                    for tensor in layer.outputs
                ),
                tactic=None,
            )
            for layer in engine.layers
        ),
    )
    given = [replace(engine, layers=tuple(replace(one, tactic=None) for one in engine.layers))]
    for report in ("sync", "graph"):
        found = map_trace(
            open_trace(FIXTURES / "bert_trt10" / f"{report}.nsys-rep"), [*given, other]
        )
        fits = found.mapped.engine_fits
        assert fits.text("verdict").list() == ["cannot-tell"] * 2
        assert fits.ints("one_of").tolist() == [2, 2]
        assert all("nothing tells which" in str(row["how"]) for row in fits.records())
        assert set(found.kernels.text("reason").list()) == {SEVERAL}


def test_a_context_and_a_generation_engine_that_nothing_tells_apart_do_not_the_same() -> None:
    assert do_the_same([engine(64), engine(64)])
    assert not do_the_same([engine(64), engine(1)])
    assert do_the_same([engine(64, dims=False), engine(64, dims=False)])
    other = replace(
        engine(64, dims=False),
        layers=tuple(replace(one, name=f"b/{one.name}") for one in engine(64, dims=False).layers),
    )
    assert not do_the_same([engine(64, dims=False), other])  # nothing but names tells of its work
    assert same_layers([engine(64), engine(64)], 0).tolist() == [1.0] * 4


@pytest.mark.parametrize("first", [False, True])
def test_another_engine_beside_twins_keeps_its_inferences(first: bool) -> None:
    twins = [
        renamed("torch_mixed/head.engine.json", HEAD),
        read_engine(FIXTURES / "torch_mixed/head.engine.json"),
    ]
    backbone = read_engine(FIXTURES / "torch_mixed/backbone.engine.json")
    given = [backbone, *twins] if first else [*twins, backbone]
    result = map_trace(open_trace(FIXTURES / "torch_mixed/nonvtx.nsys-rep"), given)
    own = given.index(backbone)
    assert [row["verdict"] for row in result.mapped.engine_fits.records()] == [
        "ran" if at == own else "cannot-tell" for at in range(3)
    ]
    assert (result.inferences.ints("engine") == own).sum() == 40
    assert (result.kernels.ints("engine") == own).sum() == 40 * 19


def test_where_ranges_name_the_layers_a_twin_did_not_run() -> None:
    right, twin = (
        read_engine(FIXTURES / "torch_mixed/head.engine.json"),
        renamed("torch_mixed/head.engine.json", HEAD),
    )
    result = map_trace(open_trace(FIXTURES / "torch_mixed/sync.nsys-rep"), [twin, right])
    assert [row["verdict"] for row in result.mapped.engine_fits.records()] == ["did-not-run", "ran"]


def test_engines_of_other_structure_are_no_twins() -> None:
    """Each capture's own engine keeps its verdict beside every other file of the captures."""
    others = [
        read_engine(FIXTURES / path)
        for path in (
            "bert_trt10/engine.json",
            "bert_split_trt10/engine.json",
            "aux_streams/engine.json",
        )
    ]
    for report, file in (
        ("torch_mixed/nonvtx.nsys-rep", "torch_mixed/head.engine.json"),
        ("two_shapes/nonvtx.nsys-rep", "two_shapes/engine.json"),
    ):
        right = read_engine(FIXTURES / file)
        result = map_trace(open_trace(FIXTURES / report), [*others, right])
        assert [row["verdict"] for row in result.mapped.engine_fits.records()] == [
            "did-not-run"
        ] * 3 + ["ran"]


def test_a_layer_is_as_likely_as_the_share_of_the_engines_that_have_it() -> None:
    one, other = (
        Engine("x.json", (Layer(0, "a", "gemm"), Layer(1, name, "gemm")), detailed=True)
        for name in ("b", "c")
    )
    tried = _Tried((one, other, one))
    layer = np.array([0, 1, -1])
    assert _same_in_all(tried, (0, 1), layer).tolist() == [1.0, 0.5, 1.0]
    assert _same_in_all(tried, (1, 0, 2), layer).tolist() == pytest.approx([1.0, 1 / 3, 1.0])
    assert _same_in_all(tried, (), layer).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("accepted", "undecided", "evidence", "alike"),
    [
        ((True, True), (False, False), (1.0, 1.0), True),
        ((False, True), (True, False), (1.0, 1.0), True),
        ((True, False), (False, False), (1.0, 1.0), False),
        ((False, False), (False, False), (1.0, 1.0), False),
        ((True, True), (False, False), (1.0, 1.25), False),  # three nats over twelve kernels
        ((True, True), (False, False), (1.25, 1.0), False),
        ((True, True), (False, False), (1.0, 1.24), True),
    ],
)
def test_engines_explain_kernels_alike_if_none_does_so_noticeably_better(
    accepted: tuple[bool, bool],
    undecided: tuple[bool, bool],
    evidence: tuple[float, float],
    alike: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = (engine(64), engine(1))
    aligned = [
        SimpleNamespace(layer=np.array([0, 1]), by_tactic=np.array([True, False])) for _ in pair
    ]
    matches = [
        SimpleNamespace(accepted=one, undecided=two, evidence=three)
        for one, two, three in zip(accepted, undecided, evidence, strict=True)
    ]

    def of(values: Sequence[object], one: Engine) -> object:
        return values[next(at for at, other in enumerate(pair) if other is one)]

    monkeypatch.setattr(kernel_alignment, "engine_match", lambda _, one: of(matches, one))
    monkeypatch.setattr(kernel_alignment, "align_inference", lambda _, one: of(aligned, one))
    kernels = [KernelFacts("k")] * 12
    assert _explain_alike(kernels, *pair) == alike
    assert not _explain_alike(kernels, pair[0], replace(pair[1], layers=pair[1].layers[:3]))
    for name, other in (("layer", np.array([0, 2])), ("by_tactic", np.array([True, True]))):
        aligned[1] = SimpleNamespace(**{**vars(aligned[0]), name: other})
        assert not _explain_alike(kernels, *pair)


def test_only_a_plugin_of_attention_is_an_attention_layer() -> None:
    one = Layer(0, "layers/0/GPTAttention_0", "plugin")
    assert _is_attention(one)
    assert _is_attention(replace(one, name="x/ATTENTION"))
    assert not _is_attention(replace(one, kind="gemm"))
    assert not _is_attention(replace(one, name="layers/0/norm"))


def test_the_share_of_engines_that_have_the_same_layer() -> None:
    one, other = engine(64), engine(1)
    assert same_layers([one, other, one], 0).tolist() == [2 / 3] * 4
    assert same_layers([one, other, one], 1).tolist() == [1 / 3] * 4
    untold = engine(64, dims=False)
    assert same_layers([untold, engine(1, dims=False)], 0).tolist() == [1.0] * 4
