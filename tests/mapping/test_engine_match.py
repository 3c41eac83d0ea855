"""Whose inferences are these: of one engine file, or of another engine with the same layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from nsysmap.core.table import MISSING
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.engine_match import Judged, Kind, judge
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, map_trace, read_engines
from nsysmap.mapping.order.twins import Ran, tokens_in_file
from tests.captures.test_truth import truth
from tests.exports import exported
from tests.figures import figures
from tests.nsys_file import NsysFile, engine_call
from tests.places import FIXTURES
from tests.reports import read_trace

FUSED, SPLIT = ("AddMul",), ("Add", "Mul")  # what Myelin compiled into the region
ALL = {
    "aux_streams": ("aux_streams/engine.json",),
    "two_shapes": ("two_shapes/engine.json",),
    "two_gpus": ("two_gpus/tp.engine.json",),
    "decode_loop": ("decode_loop/context.engine.json", "decode_loop/generation.engine.json"),
    "torch_mixed": ("torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"),
}
REPORTS = (
    "aux_streams/sync", "aux_streams/graph", "two_shapes/sync", "two_shapes/nonvtx",
    "two_gpus/tp_sync", "two_gpus/tp_graph",
    "decode_loop/sync", "decode_loop/nonvtx", "decode_loop/graph_whole", "torch_mixed/sync",
    "torch_mixed/nonvtx",
)  # fmt: skip


def engine(*, tactic: str | None = None, tokens: tuple[int, ...] | None = None) -> Engine:
    """A convolution, a region, and an attention plugin whose output has that many tokens."""
    out = () if tokens is None else (Tensor("a", (*tokens, 64)),)
    rows = (
        Layer(0, "conv", "convolution", tactic=tactic),
        Layer(1, "{ForeignNode[a...b]}", "foreign_node"),
        Layer(2, "attention", "plugin", outputs=out),
        Layer(3, "logits", "gemm", outputs=() if tokens is None else (Tensor("o", (1, 32_000)),)),
    )
    return Engine("made-up.json", rows, detailed=True)


def kind(  # one parameter a part of an inference
    build: str,
    operations: Iterable[str] = FUSED,
    *,
    inferences: int = 20,
    conv: str | None = None,
    attention: str = "plugin_kernel",
    without: int | None = None,
    complete: bool = True,
    strange: int = 0,
) -> Kind:
    """Inferences of an engine, or of a profile, whose kernels are all its own; without the kernel
    at one place.
    """
    region = [Ran(1, f"__myl_{word}_0x{build * 32}", 3000.0) for word in operations]
    ran = [
        Ran(0, conv or f"sm80_xmma_fprop_{build}", 9000.0),
        *region,
        Ran(2, attention, 5000.0),
        Ran(3, f"gemm_{build}", 8000.0),
    ]
    return Kind(
        inferences,
        tuple(one for at, one in enumerate(ran) if at != without),
        complete,
        strange,
        strange,
    )


FINE, OTHER_KERNELS = Judged(), Judged(other_kernels=True)


def doubtful(found: list[Judged]) -> list[bool]:
    return [one.doubt is not None for one in found]


def test_one_kind_is_the_engine_s() -> None:
    assert judge([kind("a")], engine()) == [FINE]
    assert judge([], engine()) == []


def test_other_kernels_in_the_same_layers_may_be_another_shape_s_and_are_no_doubt() -> None:
    assert judge([kind("a"), kind("b", inferences=3)], engine()) == [FINE, OTHER_KERNELS]


def test_the_tactics_of_the_file_tell_whose_kernels_it_describes() -> None:
    named = engine(tactic="sm80_xmma_fprop_b")
    assert judge([kind("a"), kind("b", inferences=3)], named) == [OTHER_KERNELS, FINE]


def test_inferences_that_run_the_tactics_of_a_second_profile_are_those_that_the_file_describes() -> (  # noqa: E501
    None
):
    second = [
        replace(layer, index=layer.index + 4) for layer in engine(tactic="sm80_xmma_fprop_b").layers
    ]
    two = replace(engine(), layers=(*engine(tactic="sm80_xmma_fprop_a").layers, *second))
    ran = replace(
        kind("b", inferences=3),
        ran=tuple(replace(one, layer=one.layer + 4) for one in kind("b").ran),
    )
    assert [one.other_kernels for one in judge([kind("a"), ran], two)] == [False, False]


def test_a_region_compiled_otherwise_is_another_engine_s_or_profile_s() -> None:
    found = judge([kind("a"), kind("b", SPLIT, inferences=3)], engine())
    assert doubtful(found) == [True, True]  # nothing tells which of them the file is of
    assert not any(one.refused for one in found)
    found = judge([kind("a"), kind("b", SPLIT, inferences=3)], engine(tactic="sm80_xmma_fprop_b"))
    assert doubtful(found) == [True, False]
    assert not any(one.refused for one in found)


def test_kernels_missing_from_inferences_are_no_other_engine() -> None:
    many = [
        kind("a", SPLIT),
        *(kind("a", SPLIT, inferences=2, without=at) for at in range(5)),
        kind("a", (), inferences=1),
    ]
    assert judge(many, engine()) == [FINE] * 7
    two = [
        kind("a", SPLIT, inferences=4),
        kind("b", SPLIT, inferences=3),
        kind("a", SPLIT, inferences=1, without=1),
    ]
    two += [kind("b", SPLIT, inferences=1, without=at) for at in (1, 2)]
    assert [one.doubt for one in judge(two, engine())] == [None] * 5


def test_what_ran_once_or_was_cut_off_says_nothing_of_what_was_compiled() -> None:
    assert doubtful(judge([kind("a"), kind("b", SPLIT, inferences=1)], engine())) == [False, False]
    assert doubtful(
        judge([kind("a"), kind("b", SPLIT, inferences=2, complete=False)], engine())
    ) == [False, False]


def test_inferences_of_another_number_of_tokens_are_another_engine_s_where_regions_differ_too() -> (
    None
):
    one, many = "mmha::masked_multihead_attention_kernel", "fmha_v2_flash_attention"
    both = [kind("a", attention=one, inferences=96), kind("b", SPLIT, attention=many, inferences=3)]
    assert [found.refused for found in judge(both, engine(tokens=(64,)))] == [True, False]
    assert [found.refused for found in judge(both, engine(tokens=(1,)))] == [False, True]
    assert [found.refused for found in judge(both, engine())] == [False, False]
    assert doubtful(judge(both, engine())) == [True, True]
    # one engine may do both
    same = [
        kind("a", attention=one, inferences=96),
        kind("b", attention=many, inferences=3),
    ]
    found = judge(same, engine(tokens=(64,)))
    assert ([verdict.refused for verdict in found], doubtful(found)) == (
        [False, False],
        [True, False],
    )


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ((64,), "many"),
        ((1,), "one"),
        ((-1,), None),
        (None, None),
        ((8, 1), "one"),
        ((8, 12), "many"),
        ((8, -1), None),
        ((-1, 1), None),
    ],
)
def test_an_engine_file_tells_how_many_tokens_its_attention_works_on(
    tokens: tuple[int, ...] | None, told: str | None
) -> None:
    assert tokens_in_file(engine(tokens=tokens)) == told


def test_as_many_tokens_as_rows_of_output_may_be_one_each_of_several_sequences() -> None:
    rows = engine(tokens=(8,)).layers
    logits = Layer(3, "logits", "gemm", outputs=(Tensor("o", (8, 32_000)),))
    assert tokens_in_file(Engine("made-up.json", (*rows[:3], logits), detailed=True)) is None


def test_layers_that_the_file_lacks_in_some_inferences_only_are_a_doubt() -> None:
    assert doubtful(judge([kind("a"), kind("b", strange=2, inferences=3)], engine())) == [
        False,
        True,
    ]
    assert doubtful(
        judge([kind("a", strange=2), kind("b", strange=2, inferences=3)], engine())
    ) == [False, False]


def test_a_file_of_whose_layers_too_few_ran_is_in_doubt() -> None:
    more = tuple(Layer(at, f"conv{at}", "convolution") for at in range(4, 12))
    longer = Engine("longer.json", (*engine().layers, *more), detailed=True)
    assert doubtful(judge([kind("a")], longer)) == [True]
    # they may be those, by other names
    assert doubtful(judge([kind("a", strange=8)], longer)) == [False]
    assert doubtful(judge([kind("a", complete=False)], longer)) == [False]


def test_inferences_of_some_of_the_layers_are_another_engine_s_where_others_ran_all(
    tmp_path: Path,
) -> None:
    """As subgraphs of one PyTorch module whose layers are numbered from 0 in each."""
    names = [f"[CONVOLUTION]-[convolution_{at}]" for at in range(10)]
    engine = Engine(
        "long.json",
        tuple(Layer(at, name, "convolution") for at, name in enumerate(names)),
        detailed=True,
    )
    conditional = Layer(10, "[CONDITIONAL_INPUT]-[if]", "loop", type="ConditionalInput")

    def found(
        *lengths: int, more: tuple[Layer, ...] = ()
    ) -> tuple[list[str | None], dict[str, object]]:
        file, at = NsysFile(), 1000
        file.domain("TensorRT", 1)
        for turn in range(8):
            for length in lengths:
                at = 100 + engine_call(
                    file,
                    at,
                    [(name, f"conv_{length}_{name}") for name in names[:length]],
                    at + turn,
                )
        written = file.write(tmp_path / f"{len(lengths)}{len(more)}.sqlite")
        result = map_trace(read_trace(written), [replace(engine, layers=(*engine.layers, *more))])
        return result.inferences.text("engine_doubt").list(), result.mapped.engine_fits.records()[0]

    doubt, fit = found(10, 4)
    assert (fit["verdict"], fit["inferences"], fit["refused"], fit["lacking"]) == ("ran", 8, 8, 0)
    assert [why and figures(why) for why in doubt] == [None, ["4", "10"]] * 8
    doubt, fit = found(4)
    assert (fit["verdict"], fit["in_doubt"], fit["refused"]) == ("cannot-tell", 8, 0)
    doubt, fit = found(10, 4, more=(conditional,))
    assert (set(doubt), fit["inferences"]) == ({None}, 16)


def subsets(files: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [some for size in range(1, len(files) + 1) for some in combinations(files, size)]


def mapped(report: str, files: tuple[str, ...]) -> MappedTrace:
    return map_report(exported(report), read_engines([FIXTURES / file for file in files]))


@pytest.mark.parametrize("report", REPORTS)
def test_with_any_of_the_files_no_inference_is_another_engine_s_unless_that_is_said(
    report: str,
) -> None:
    every = ALL[report.split("/", maxsplit=1)[0]]
    wanted = truth(FIXTURES / f"{report}.kernels.tsv")
    for files in subsets(every):
        result = mapped(report, files)
        fits = {row["engine"]: row for row in result.mapped.engine_fits.records()}
        doubt = result.inferences.text("engine_doubt").list()
        for row in result.kernels.records():
            engine = row["engine"]
            if engine is None:
                continue
            true, _ = wanted[
                tuple(str(row[key]) for key in ("start_ns", "device", "stream", "pid"))
            ]
            right = true >= 0 and every[true] == files[int(str(engine))]
            inference = int(str(row["inference"]))
            assert right or (
                doubt[inference] is not None and fits[engine]["verdict"] == "cannot-tell"
            ), (files, row)
            assert not right or doubt[inference] is None, (files, row)
        for number, row in fits.items():
            if len(files) < len(every) or report != "decode_loop/graph_whole":
                continue
            assert row["verdict"] == (
                "ran" if "context" in files[int(str(number))] else "cannot-tell"
            )


@pytest.mark.parametrize("report", ["decode_loop/sync", "decode_loop/nonvtx"])
@pytest.mark.parametrize(("file", "inferences"), [("context", 3), ("generation", 96)])
def test_of_two_engines_with_the_same_layer_names_one_file_gets_its_own_inferences(
    report: str, file: str, inferences: int
) -> None:
    result = mapped(report, (f"decode_loop/{file}.engine.json",))
    fit = result.mapped.engine_fits.only()
    assert (fit.text("verdict"), fit.integer("inferences"), fit.integer("refused")) == (
        "ran",
        inferences,
        99 - inferences,
    )
    assert int((result.inferences.ints("engine") == MISSING).sum()) == 99 - inferences
    assert [note.level for note in result.mapped.notes] == ["warning"]
    told = result.mapped.notes[0].text
    assert figures(told)[:2] == [str(99 - inferences), "99"]
    assert f"{file}.engine.json" in told


@pytest.mark.parametrize("report", ["torch_mixed/sync", "torch_mixed/nonvtx"])
def test_inferences_of_no_given_file_are_counted(report: str) -> None:
    both = ALL["torch_mixed"]
    told = [
        [note.text for note in mapped(report, files).mapped.notes if note.level == "info"]
        for files in ((both[0],), both)
    ]
    # without ranges only inferences of given files are found
    runs = 80 if report == "torch_mixed/sync" else 40
    assert told == [
        (
            [
                "40 of 80 inferences run no layer of a given engine file: give the file of their"
                " engine too."
            ]
            if runs == 80
            else []
        ),
        [],
    ]


@pytest.mark.parametrize("report", ["two_shapes/sync", "two_shapes/nonvtx"])
def test_two_shapes_of_one_engine_are_its_and_its_file_is_said_to_describe_one(report: str) -> None:
    result = mapped(report, ALL["two_shapes"])
    fit = result.mapped.engine_fits.only()
    assert [
        fit.integer(name) for name in ("inferences", "in_doubt", "refused", "other_kernels")
    ] == [48, 0, 0, 26]
    assert (fit.text("verdict"), fit.maybe_text("against")) == ("ran", None)
    if (
        report == "two_shapes/sync"
    ):  # the kernels of each inference joined with the tactics of their layers
        assert figures(fit.text("how"))[-6:] == ["44", "44", "22", "26", "1", "44"]
    assert [note.level for note in result.mapped.notes] == ["info"]


def test_a_file_with_the_names_but_not_the_tactics_is_not_said_to_have_run() -> None:
    (right,) = read_engines([FIXTURES / "bert_trt10/engine.json"])
    layers = tuple(
        (
            layer
            if layer.tactic is None
            else Layer(
                **{**vars(layer), "tactic": layer.tactic.replace("64", "32").replace("0x", "0x0")}
            )
        )
        for layer in right.layers
    )
    result = map_trace(
        map_report(exported("bert_trt10/sync")).trace,
        [Engine("rebuilt.json", layers, detailed=True)],
    )
    fit = result.mapped.engine_fits.only()
    assert fit.text("verdict") == "cannot-tell"
    assert 2 * fit.integer("tactics_ran") < fit.integer("tactics")
    fit = map_trace(result.trace, [right]).mapped.engine_fits.only()
    assert fit.text("verdict") == "ran"
    assert fit.integer("tactics_ran") == fit.integer("tactics") > 40


@pytest.mark.parametrize("report", ["bert_trt10/sync", "bert_trt10/graph"])
def test_a_file_that_fits_mostly_is_said_to_differ_and_in_what(report: str) -> None:
    (right,) = read_engines([FIXTURES / "bert_trt10/engine.json"])
    trace = map_report(exported(report)).trace

    def told(*changed: Layer, more: tuple[Layer, ...] = ()) -> list[tuple[str, str]]:
        layers = list(right.layers)
        for layer in changed:
            layers[layer.index] = layer
        result = map_trace(trace, [Engine("other.json", (*layers, *more), detailed=True)])
        assert result.mapped.engine_fits.only().text("verdict") == "ran"
        return [
            (note.level, note.text.partition("though most of it fits: ")[2])
            for note in result.mapped.notes
        ]

    assert told() == []
    other = [
        replace(right.layers[at], tactic=f"{right.layers[at].tactic}"[:-4] + "beef")
        for at in (1, 2)
    ]
    ((level, text),) = told(*other)
    assert (level, figures(text)) == ("warning", ["2", "55"])
    renamed = replace(right.layers[1], name="renamed", tactic=None, kind="shape")
    ((level, text),) = told(renamed)
    assert (level, figures(text)) == ("warning", ["1", "56"])
    ((level, text),) = told(more=(Layer(57, "conv", "convolution"),))
    assert (level, figures(text)) == ("warning", ["1"])


@pytest.mark.parametrize(("inferences", "doubted"), [(1, False), (2, True), (3, True)])
def test_what_ran_once_says_nothing_against_others(inferences: int, doubted: bool) -> None:
    found = judge([kind("a"), kind("b", SPLIT, inferences=inferences)], engine())
    assert doubtful(found) == [doubted, doubted]


LISTED = Engine(
    "listed.json", tuple(Layer(at, f"gemm_{at}", "gemm") for at in range(20)), detailed=True
)


def listed(count: int, **changes: object) -> Kind:
    """Inferences in which so many of twenty layers ran a kernel of their own."""
    ran = tuple(Ran(at, f"gemm_kernel_{at}", 100.0) for at in range(count))
    return replace(
        Kind(5, ran, complete=True, by_range=True),
        **changes,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("one", "refused", "doubted"),
    [
        (listed(16), False, False),  # sixteen of twenty are enough
        (listed(15), True, True),
        (listed(15, others=1), False, False),  # another kernel may be the lacking layer's
        (listed(14, others=1), True, True),
        (listed(10, inferences=1), False, False),  # it may lack kernels
        (listed(10, inferences=2), True, True),
        (listed(10, complete=False), False, False),
        (listed(10, by_range=False), False, True),  # no range says whose layers they are
    ],
)
def test_inferences_that_run_too_few_layers_beside_whole_ones_are_another_engine_s(
    one: Kind, refused: bool, doubted: bool
) -> None:
    # of other kernels, so that they are no part of the whole ones
    other = replace(one, ran=tuple(replace(ran, kernel=f"x_{ran.layer}") for ran in one.ran))
    whole, found = judge([listed(20), other], LISTED)
    assert (found.refused, found.doubt is not None) == (refused, doubted)
    assert not whole.refused
    assert whole.doubt is None


def test_where_no_inference_runs_all_layers_none_is_refused() -> None:
    found = judge([listed(15), listed(10)], LISTED)
    assert [one.refused for one in found] == [False, False]
    looped = replace(LISTED, layers=(*LISTED.layers, Layer(20, "loop", "loop")))
    assert not any(one.doubt for one in judge([listed(10)], looped))
