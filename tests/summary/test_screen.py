"""The first screen answers what an engineer asks of a capture, or names the command that does."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nsysmap.answer.commands import commands
from nsysmap.answer.model import Answer, Trouble
from nsysmap.api import analyze
from nsysmap.output.build import report_of
from nsysmap.output.text.report import report_text
from nsysmap.text.terminal import columns
from tests.places import FIXTURES, GOLDEN
from tests.reports import hostile
from tests.rule_packs import golden_rules

SCREENS = {
    "bert_trt10": ("bert_trt10/sync.sqlite", "bert_trt10/engine.json"),
    "opaque_region": ("bert_trt85/sync.sqlite", "bert_trt85/engine.json"),
    "whole_graph": ("bert_trt10/graph_whole.sqlite", "bert_trt10/engine.json"),
    "wrong_engine": ("bert_trt103/graph.sqlite", "bert_trt10/engine.json"),
    "two_engines": (
        "torch_mixed/sync.nsys-rep",
        "torch_mixed/backbone.engine.json",
        "torch_mixed/head.engine.json",
    ),
    "pytorch": ("torch_encoder/eager.nsys-rep",),
}
WIDTHS = (80, 140)
FIRST_LINES = 24

NO_ENGINE = r"no\s+(?:engine file|TensorRT)"
QUESTIONS = {
    "which layer costs the time": (
        r"costliest (layers|kernels)|# layers|nsysmap layers( \S+)+ --sort time|hidden"
    ),
    "what is inside the region": (
        rf"inside {{ForeignNode|nsysmap layers( \S+)+ --sort time|capture again|{NO_ENGINE}|is not"
        r" the engine"
    ),
    "why is the GPU idle": r"^GPU +.*idle",
    "is a CUDA graph worth it": (
        r"run (it|each kind of inference) as a CUDA graph|^CUDA graph |"
        r"CUDA graphs? are hidden|kernels of \d+ CUDA graph"
    ),
    "what did not fuse": r"^not fused ",
    "what does the name mean": r"nsysmap decode|kernels .* hidden|hides the kernels",
    "is this the right engine": (
        rf"(is|are)\s+(NOT\s+)?the\s+engine\s+that\s+ran|engines\s+ran|fits?\s+by\s+layer\s+names|"
        rf"ran\s+the\s+tactics\s+of|is not the engine|{NO_ENGINE}"
    ),
    "which inference is the outlier": r"^slowest ",
    "what to do first": r"^do first +\S",
    "how sure is it": r"\(\d[\d.]* to \d[\d.]*\)|cannot tell|^how sure",
}


@cache
def held(name: str) -> Answer:
    first, *engines = (FIXTURES / part for part in SCREENS[name])
    return report_of(analyze(first, engines, rules=golden_rules()))


def unanswered(told: Answer, width: int, folder: str = "") -> list[str]:
    """The questions without an answer in the first lines, where the files are in that folder."""
    given = [
        f"{folder}{name}" for name in (told.source, *(engine.source for engine in told.engines))
    ]
    lines = report_text(told, width=width, given=given).splitlines()[:FIRST_LINES]
    whole = re.sub(r"\n {9,}", " ", "\n".join(lines))  # a sentence may be wrapped anywhere
    return [
        question
        for question, answer in QUESTIONS.items()
        if not re.search(answer, whole, re.MULTILINE)
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_the_golden_one(name: str, width: int) -> None:
    path = GOLDEN / "screens" / f"{name}.{width}.txt"
    text = report_text(held(name), width=width)
    if os.environ.get("NSYSMAP_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_the_first_24_lines_answer_ten_questions(name: str, width: int) -> None:
    assert unanswered(held(name), width) == []
    assert unanswered(held(name), width, "/captures/of/a/model/") == []


@pytest.mark.parametrize(
    "files",
    [
        ("bert_trt10/hostgap.nsys-rep", "bert_trt10/engine.json"),
        ("bert_split_trt10/pageable.nsys-rep", "bert_split_trt10/engine.json"),
        ("bert_split_trt10/threads.nsys-rep", "bert_split_trt10/engine.json"),
        (
            "decode_loop/nonvtx.nsys-rep",
            "decode_loop/context.engine.json",
            "decode_loop/generation.engine.json",
        ),
        ("two_shapes/sync.nsys-rep", "two_shapes/engine.json"),
        ("two_gpus/tp_sync.nsys-rep", "two_gpus/tp.engine.json"),
        pytest.param(
            ("two_processes/processes.nsys-rep",),
            marks=pytest.mark.xfail(
                reason=(
                    "what loading took and the phases of both processes push the layers below 24"
                    " lines"
                ),
                strict=True,
            ),
        ),
        ("torch_mixed/sync.nsys-rep",),
        ("newer/aux_graph.nsys-rep",),
        ("newer/bert_sync.nsys-rep",),
        ("newer/llama_graph_whole.nsys-rep",),
    ],
    ids=lambda files: files[0].partition(".")[0],
)
def test_so_do_those_of_other_programs(files: tuple[str, ...]) -> None:
    first, *engines = (FIXTURES / part for part in files)
    told = report_of(analyze(first, engines, rules=golden_rules()))
    for width in WIDTHS:
        assert unanswered(told, width) == []
        assert unanswered(told, width, "/captures/of/a/model/") == []


@pytest.mark.parametrize("name", SCREENS)
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    for width in (80, 100, 140, 200):
        for text in (report_text(held(name), width=width), report_text(hostile(), width=width)):
            assert [line for line in text.splitlines() if columns(line) > width] == []


@pytest.mark.parametrize("name", ["bert_trt10", "opaque_region", "pytorch"])
def test_the_answer_is_the_first_ten_lines(name: str) -> None:
    first = "\n".join(report_text(held(name), width=80).splitlines()[:10])
    for told in (
        r"per (inference|repetition) in the trace, [\d,]+ per second",
        r"predicted without (the )?profiler",
        r"\d+% busy",
        r"1\. .*saves .*\(.* to .*\)",
    ):
        assert re.search(told, first), told


MOST_LINES = {80: 24, 140: 22}
"""Lines above the table of what costs most, of every one of these screens; the measured most."""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_the_table_is_not_pushed_down(name: str, width: int) -> None:
    above = re.split(
        r"^ +share +(?:time|total) ", report_text(held(name), width=width), flags=re.MULTILINE
    )[0]
    assert len(above.splitlines()) <= MOST_LINES[width]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_of_two_engines_the_answer_says_why_the_slowest_inference_is_and_what_each_change_saves(
    width: int,
) -> None:
    text = " ".join(report_text(held("two_engines"), width=width).split())
    assert "inference 1 (head): 985 µs, 1.6 x median" in text
    assert (
        "+283 µs host busy elsewhere, +81.1 µs waiting for launches; mostly before it began; one of"
        " the first, may be warm-up" in text
    )
    assert "use a larger batch" in text
    assert "CUDA graph of each engine alone: cannot tell: it may save" in text


@pytest.mark.parametrize("width", [80, 100, 140])
def test_throughput_is_predicted_in_a_line_of_its_own(width: int) -> None:
    engines = [FIXTURES / f"decode_loop/{name}.engine.json" for name in ("context", "generation")]
    told = report_text(
        report_of(
            analyze(FIXTURES / "decode_loop" / "nonvtx.nsys-rep", engines, rules=golden_rules())
        ),
        width=width,
    )
    (line,) = re.findall(r"^throughput .*", told, re.MULTILINE)
    assert re.search(
        r"keep two inferences in flight.*: up to [\d,]+ \(likely [\d,]+\)( per second|/s)", line
    )


def test_a_sentence_says_as_much_as_fits_the_lines_that_it_needs() -> None:
    text = report_text(held("bert_trt10"), width=80)
    assert (
        "\nslowest    inference 34: 603 µs, 1.7 x median: +256 µs waiting for launches (242\n"
        in text
    )
    assert "1.7 x median (351 µs): +256 µs" in report_text(held("bert_trt10"), width=140)


def test_layers_of_repeated_blocks_are_one_row_with_their_count() -> None:
    text = report_text(held("bert_trt10"), width=140)
    assert re.search(
        r"51\.7 µs +6 +gemm +layer\.\*/intermediate/dense/MatMul \+ bias \+ GELU", text
    )


def test_nothing_is_cut_in_a_pipe() -> None:
    text = report_text(held("bert_trt10"))
    assert (
        "per second, now 3,020; kernels are on 53% of the SMs; each takes 350 µs, up from"
        " 331 µs" in " ".join(text.split())
    )
    assert "attention 31.2 µs (2 places: /bert/encoder/layer.{2,5}/attention/self), " in text
    assert "layer.* … query|key|value/MatMul + bias" in text
    # which stands for the modules that all such layers are in
    assert "…" not in text.replace(" … ", "")


def golden_names() -> list[str]:
    return sorted(path.name for path in Path(GOLDEN / "screens").glob("*"))


def test_every_golden_screen_is_of_a_screen() -> None:
    assert golden_names() == sorted(f"{name}.{width}.txt" for name in SCREENS for width in WIDTHS)


def test_where_a_graph_is_only_priced_by_a_rule_no_row_below_says_that_this_cannot_be_told() -> (
    None
):
    told = report_of(
        analyze(FIXTURES / "two_processes" / "processes.nsys-rep", rules=golden_rules())
    )
    text = report_text(told, width=80)
    assert ("run it as a CUDA graph: may save up to" in text) != ("\nCUDA graph " in text)


def test_full_says_by_what_the_first_actions_are_chosen_and_what_comes_next() -> None:
    text = " ".join(report_text(held("bert_trt10"), full=True, width=140).split())
    assert (
        "Do first: At most 3 are listed; each saves at least 1% even at the low end of its range"
        in " ".join(text.split())
    )
    assert "What a replay predicts (saves) comes before what a rule prices (may save up to)" in text


def commands_on(text: str) -> list[str]:
    """The commands on a screen after `see`, each in one line and without its comment."""
    joined = re.sub(r" \\\n +", " ", text)
    found = re.findall(
        r"^(?:see also|see {5}| {8}) {3}((?:nsysmap|cd) .*?)(?: +# [a-z ]+)?$", joined, re.MULTILINE
    )
    assert found
    return found


GIVEN = ("/captures/it's a/run.nsys-rep", "/captures/engines/b c/engine.json")


@pytest.mark.parametrize("width", [80, 100, 140, 300, None])
def test_the_commands_name_the_files_as_they_were_given(width: int | None) -> None:
    """Each is what a shell passes on, from the current folder or after the cd before them."""
    commands = [
        shlex.split(one)
        for one in commands_on(report_text(held("bert_trt10"), width=width, given=GIVEN))
    ]
    folder = commands.pop(0)[1] if commands[0][0] == "cd" else ""
    assert (folder != "") == (width in (80, 100))
    about_files = [one for one in commands if one[1] != "decode"]
    assert [one[1] for one in about_files] == ["layers", "layers", "inference", "analyze"]
    for _, _, *arguments in about_files:
        assert {str(Path(folder, one)) for one in arguments[:2]} == set(GIVEN)


def test_without_a_folder_in_common_a_long_command_goes_on_after_a_backslash_between_its_words() -> (  # noqa: E501
    None
):
    given = (
        "a b/it's a rather long name of a report.nsys-rep",
        "/elsewhere/with a name/engine.json",
    )
    for command in commands_on(report_text(held("bert_trt10"), width=80, given=given)):
        words = shlex.split(command)
        assert words[1] == "decode" or set(words[2:4]) == set(given)


def test_files_of_one_name_and_several_engines_in_one_file_are_named_once_each_by_their_paths() -> (
    None
):
    summary = held("two_engines")
    first, second = summary.engines
    twins = replace(
        summary,
        engines=tuple(
            replace(one, source=name, file=name)
            for one, name in ((first, "a/engine.json"), (second, "b/engine.json"))
        ),
    )
    layers = next(
        command
        for what, command in commands(twins, ("r.nsys-rep", "x/b/engine.json", "x/a/engine.json"))
        if what == "layers"
    )
    assert layers == "nsysmap layers x/a/engine.json x/b/engine.json r.nsys-rep --sort time"
    of_one = [
        replace(first, source=f"build.log (engine {number} of 2)", file="build.log")
        for number in (1, 2)
    ]
    both = next(
        command
        for what, command in commands(replace(summary, engines=tuple(of_one)), ("r", "x/build.log"))
        if what == "layers"
    )
    assert both == "nsysmap layers x/build.log r --sort time"


def test_a_name_that_is_decoded_on_the_screen_is_of_a_kernel_that_ran() -> None:
    summary = held("bert_trt10")
    told = next(command for what, command in commands(summary) if what == "names")
    assert told.removeprefix("nsysmap decode ") in {one.name for one in summary.kernels}
    nothing = replace(summary, kernels=tuple(replace(one, name="k") for one in summary.kernels))
    assert (
        dict(commands(nothing, ("a b/r.nsys-rep", "engine.json")))["names"]
        == "nsysmap decode 'a b/r.nsys-rep'"
    )
    long = replace(
        summary,
        kernels=tuple(replace(one, name=one.name + "_gemm" * 20) for one in summary.kernels),
    )
    assert (
        dict(commands(long, ("r.nsys-rep", "engine.json")))["names"] == "nsysmap decode r.nsys-rep"
    )
    assert "names" not in dict(commands(replace(summary, kernels=())))


def screen_of(report: str, *engines: str) -> str:
    return " ".join(
        report_text(
            report_of(analyze(FIXTURES / report, [FIXTURES / file for file in engines], rules=[])),
            width=140,
        ).split()
    )


def test_the_screen_says_how_many_inferences_are_of_the_files_that_were_given() -> None:
    backbone, head = "torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"
    one = screen_of("torch_mixed/sync.nsys-rep", backbone)
    assert "sync.nsys-rep: 80 inferences, 40 of backbone.engine.json on" in one
    assert (
        "backbone.engine.json ran in 40 of 80 inferences; 40 inferences are of no given engine, as"
        " far as their kernels show" in one
    )
    two = screen_of("torch_mixed/sync.nsys-rep", backbone, head)
    assert "sync.nsys-rep: 80 inferences of backbone.engine.json and head.engine.json on" in two
    assert "both engines ran" in two
    assert "no given engine" not in two


def test_the_screen_tells_inferences_of_another_engine_with_the_same_names_from_those_of_another_shape() -> (  # noqa: E501
    None
):
    context = screen_of("decode_loop/sync.nsys-rep", "decode_loop/context.engine.json")
    assert "sync.nsys-rep: 99 inferences, 3 of context.engine.json on" in context
    assert (
        "warning: 96 of 99 inferences have layers of the names in context.engine.json and are of"
        " another engine" in context
    )
    shapes = screen_of("two_shapes/sync.nsys-rep", "two_shapes/engine.json")
    assert "sync.nsys-rep: 48 inferences of engine.json on" in shapes
    told = (
        "22 of 48 inferences ran the tactics of engine.json; 26 ran the same layers with other"
        " kernels: another shape, profile or engine"
    )
    assert told in shapes and "is the engine that ran" not in shapes
    assert "warning" not in shapes
    build = screen_of("two_shapes/sync.nsys-rep", "bert_trt10/engine.json")
    assert "engine.json may be another build of the engine that ran (26 of another shape" in build
    assert "is the engine that ran" not in build
    hidden = screen_of("decode_loop/graph_whole.nsys-rep", "decode_loop/generation.engine.json")
    assert "99 inferences, 3 perhaps of generation.engine.json on" in hidden
    assert "generation.engine.json may or may not be the engine that ran" in hidden
    assert "96 inferences hide their kernels" in hidden
    assert "visible kernels have a layer" in hidden
    assert "of visible kernel time" in hidden


def test_a_trace_without_any_work_has_a_screen_without_commands() -> None:
    told = held("pytorch")
    nothing = replace(
        told,
        kernels=(),
        engines=(),
        layers=(),
        slowest=None,
        errors=(Trouble("no CUDA events were recorded"),),
    )
    assert commands(nothing) == []
    lines = report_text(nothing, width=80, given=["report.nsys-rep"]).splitlines()
    assert any("no CUDA events were recorded" in line for line in lines)


def test_the_name_to_decode_is_the_costliest_that_has_a_meaning_beside_itself() -> None:
    kernels = held("bert_trt10").kernels
    pointwise = replace(
        kernels[0],
        name="generatedNativePointwise",
        what="native-pointwise kernel: generatedNativePointwise",
    )
    myelin = replace(
        kernels[0],
        name="__myl_AddMulMeanAddSqrtDivMulMul_0x" + "a" * 32,
        what="myelin kernel: likely residual-add, rmsnorm",
    )
    found = dict(commands(replace(held("bert_trt10"), kernels=(pointwise, myelin))))
    assert found["names"] == f"nsysmap decode {myelin.name}"
    alone = dict(commands(replace(held("bert_trt10"), kernels=(pointwise,))))
    assert alone["names"] == "nsysmap decode sync.sqlite"  # every name of the report
