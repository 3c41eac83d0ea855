"""The first screen: what it says first, in how few lines, and that all else is one option away."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nsysmap.answer import first, gains
from nsysmap.answer.commands import commands
from nsysmap.answer.model import Answer, Disturbance, Figure, Trouble
from nsysmap.api import analyze
from nsysmap.output.first import EVERYTHING, first_sections
from nsysmap.output.text.report import report_text
from nsysmap.output.text.screen import MOST_LINES, MOST_WORDS, screen
from nsysmap.text.lines import rendered
from nsysmap.text.page import Instructions, Paragraph
from nsysmap.text.page_lines import bar
from nsysmap.text.terminal import columns
from nsysmap.text.units import rounded
from tests.nsys_file import NsysFile
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
OTHERS = (
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
    ("two_processes/processes.nsys-rep",),
    ("torch_mixed/sync.nsys-rep",),
    ("newer/aux_graph.nsys-rep",),
    ("newer/bert_sync.nsys-rep",),
    ("newer/llama_graph_whole.nsys-rep",),
    ("real_trt/bert_eager-pageable.nsys-rep", "real_trt/bert_eager.engine.json"),
    ("real_trt/bert_dyn-shapes.nsys-rep", "real_trt/bert_dyn.engine.json"),
    ("real_trt/gm_bert-graph.nsys-rep",),
)
WIDTH = 80


@cache
def of_files(files: tuple[str, ...]) -> Answer:
    report, *engines = (FIXTURES / part for part in files)
    return analyze(report, engines, rules=golden_rules()).summary


def held(name: str) -> Answer:
    return of_files(SCREENS[name])


def lines_of(answer: Answer, width: int = WIDTH) -> list[str]:
    return rendered(screen(answer, width), colour=False).splitlines()


def keys_of(answer: Answer) -> list[str]:
    return [one.key for one in first_sections(answer, EVERYTHING, WIDTH)]


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_the_golden_one(name: str) -> None:
    path = GOLDEN / "screens" / f"{name}.txt"
    text = report_text(held(name), width=WIDTH)
    if os.environ.get("NSYSMAP_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_golden_screen_is_of_a_screen() -> None:
    shown = sorted(path.name for path in Path(GOLDEN / "screens").glob("*"))
    assert shown == sorted(f"{name}.txt" for name in SCREENS)


@pytest.mark.parametrize("files", [*SCREENS.values(), *OTHERS], ids=lambda files: files[0])
def test_twenty_lines_and_180_words_hold_any_report(files: tuple[str, ...]) -> None:
    told = lines_of(of_files(files))
    assert len(told) <= MOST_LINES == 20
    assert len(" ".join(told).split()) <= MOST_WORDS == 180
    for width in (WIDTH, 100, 140, 200):
        assert [line for line in lines_of(of_files(files), width) if columns(line) > width] == []


def test_so_do_names_out_of_files_whatever_they_hold() -> None:
    for width in (WIDTH, 140):
        told = lines_of(hostile(), width)
        assert len(told) <= MOST_LINES
        assert [line for line in told if columns(line) > width] == []
        assert all(line.isprintable() for line in told)


@pytest.mark.parametrize("name", ["bert_trt10", "opaque_region", "two_engines"])
def test_it_says_what_an_engineer_asks_in_that_order(name: str) -> None:
    order = ["doubt", "time", "gpu", "do-first", "throughput", "next", "costs", "sure", "more"]
    keys = keys_of(held(name))
    assert keys == [key for key in order if key in keys]
    assert {"time", "gpu", "do-first", "costs", "sure", "more"} <= set(keys)


def test_a_trace_that_hides_its_kernels_says_so_first_and_what_to_capture_instead() -> None:
    answer = held("whole_graph")
    assert first.doubts(answer)[0].wrong
    keys = keys_of(answer)
    assert keys[0] == "doubt"
    assert "costs" not in keys
    again = first.missing(answer)
    assert again is not None and "--cuda-graph-trace=node" in again.command


def test_what_says_nothing_is_not_printed() -> None:
    answer = held("opaque_region")
    assert answer.slowest is not None
    usual = replace(answer.slowest, times_median=1.2)
    (told,) = first.more(replace(answer, slowest=usual))
    assert "slowest" not in told
    outlier = first.more(replace(answer, slowest=replace(usual, times_median=2.0)))
    assert "slowest" in outlier[0]
    assert first.doubts(answer) == ()


def test_of_two_engines_each_has_its_name_in_the_table() -> None:
    assert {one.engine for one in first.costs(held("two_engines"))} >= {"backbone"}
    assert {one.engine for one in first.costs(held("bert_trt10"))} == {""}


def test_the_shares_of_the_table_are_those_of_the_answer() -> None:
    for name in SCREENS:
        answer = held(name)
        if not answer.layers:
            continue
        shown = [one for one in first.costs(answer) if not one.name.startswith("region › ")]
        shares = [one.share_of_all_kernel_time for one in answer.layers]
        others = sum(one.share_of_all_kernel_time for one in answer.other_kernels)
        for one in shown:
            assert any(abs(one.share - share) < 1e-9 for share in (*shares, others))


def test_the_parts_of_a_region_stand_for_it() -> None:
    shown = first.costs(held("opaque_region"))
    assert shown and all(one.name.startswith("region › ") for one in shown)
    assert sum(one.share for one in shown) <= 1


def test_an_action_has_its_saving_a_line_to_paste_or_what_to_change_and_a_reason() -> None:
    for name in ("bert_trt10", "two_engines", "opaque_region"):
        for one in first.todo(held(name)):
            assert one.gain
            assert one.paste or one.change
            assert one.why or one.throughput  # whose gain says it


def test_the_reason_stands_in_the_title_of_a_graph_where_both_fit_and_is_never_lost() -> None:
    answer = held("bert_trt10")
    (graph, *_) = first.todo(answer)
    kernels = {kind.kernels for kind in answer.kinds}
    assert kernels == {56}
    assert "56" in graph.reasoned[0]
    assert "56" in graph.why
    (beside,) = [one for one in first_sections(answer, EVERYTHING, WIDTH) if one.key == "do-first"]
    (narrow,) = [one for one in first_sections(answer, EVERYTHING, 40) if one.key == "do-first"]
    told = [one.blocks[0] for one in (beside, narrow)]
    assert all(isinstance(one, Instructions) for one in told)
    first_steps = [one.steps[0] for one in told if isinstance(one, Instructions)]
    assert [(step.text == graph.title, bool(step.why)) for step in first_steps] == [
        (False, False),
        (True, True),
    ]


def test_an_action_of_unknown_gain_is_told_only_where_no_other_is() -> None:
    answer = held("two_engines")
    unknown = [one for one in answer.actions if one.filled is not None and one.basis == "rule"]
    assert unknown
    assert not set(unknown) & set(gains.first_actions(answer))
    alone = replace(answer, actions=tuple(unknown))
    assert gains.first_actions(alone) == tuple(unknown[:1])


def test_two_actions_are_told_and_the_second_saves_not_little_beside_the_first() -> None:
    answer = held("bert_trt10")
    shown = gains.first_actions(answer)
    assert len(shown) <= gains.ACTIONS == 2
    graph = shown[0]
    small = replace(graph, name="small", saving=Figure(1_000, 900, 1_100), share=0.05)
    large = replace(graph, name="large", saving=Figure(30_000, 29_000, 31_000), share=0.09)
    assert gains.first_actions(replace(answer, actions=(graph, small))) == (graph,)
    assert gains.first_actions(replace(answer, actions=(graph, small, large))) == (graph, large)


def test_each_layer_has_a_bar_on_the_scale_of_that_of_the_gpu() -> None:
    assert (bar(1.0), bar(0.5), bar(0.001)) == ("█" * 20, "█" * 10, "▏")
    lines = lines_of(held("bert_trt10"))
    rows = [line for line in lines if re.match(r" +\d+%  [█▏▎▍▌▋▊▉]", line)]
    assert len(rows) >= 3
    for line in rows:
        share, drawn = line.split()[:2]
        assert drawn.count("█") == int(0.2 * int(share.rstrip("%")) + 0.06)


def test_where_the_gpu_is_the_limit_each_layer_says_how_far_above_the_hardware_it_is() -> None:
    answer = held("bert_trt10")
    found = answer.headroom
    assert found is not None and found.gpu_bound
    shown = first.costs(answer)
    known = {one.headroom_ns for one in found.groups if one.least_ns is not None}
    assert found.groups[0].headroom_ns in {one.above_ns for one in shown}
    assert {one.above_ns for one in shown} - {None} <= known
    assert f"roofline floor {rounded(found.least_ns)}" in first.costs_headings(answer)[0]
    host_bound = replace(answer, headroom=replace(found, gpu_bound=False))
    assert not any(one.above_ns for one in first.costs(host_bound))
    assert "hardware" not in first.costs_headings(host_bound)[0]


def test_where_kernels_are_little_of_the_time_only_the_first_layers_are_told() -> None:
    answer = held("bert_trt10")
    assert answer.gpu_unprofiled is not None
    assert len(first.costs(answer)) == first.LAYERS
    idle = replace(answer, gpu_unprofiled=replace(answer.gpu_unprofiled, busy_share=0.1))
    assert len(first.costs(idle)) == 3
    assert len(first.costs(answer, minor=False)) == 3


def test_threads_that_take_as_long_are_told_in_one_line_with_what_each_takes() -> None:
    answer = of_files(("bert_split_trt10/threads.nsys-rep", "bert_split_trt10/engine.json"))
    means = [one.mean_ns for one in answer.kinds if one.mean_ns]
    assert len(means) == 2
    alike = replace(answer, kinds=tuple(replace(one, mean_ns=means[0]) for one in answer.kinds))
    assert f"{rounded(means[0])} each" in first.times(alike)[0][1]
    apart = replace(
        answer,
        kinds=tuple(
            replace(one, mean_ns=means[0] * (1 + at)) for at, one in enumerate(answer.kinds)
        ),
    )
    assert "each" not in first.times(apart)[0][1]


def test_doubts_are_one_line_that_counts_the_others() -> None:
    answer = replace(
        held("wrong_engine"), disturbance=Disturbance(slow=5, inferences=50, share=0.2)
    )
    assert len(first.doubts(answer)) == 2
    (told,) = [one for one in first_sections(answer, EVERYTHING, WIDTH) if one.key == "doubt"]
    (block,) = told.blocks
    assert isinstance(block, Paragraph)
    assert block.text.endswith("(+1: --full)")


@pytest.mark.parametrize(
    ("calls", "traced"), [(True, "Cuda"), (False, "Cuda"), (False, "NvtxEvents")]
)
def test_the_doubt_of_a_trace_without_gpu_work_takes_two_lines_with_what_to_do(
    tmp_path: Path, calls: bool, traced: str
) -> None:
    file = NsysFile()
    file.add("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value=traced)
    file.range("a", 1, 2)
    for number in range(12345 if calls else 0):
        file.call("cudaStreamSynchronize_v3020", 10 * number, 10 * number + 5, number)
    answer = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).summary
    lines = lines_of(answer)
    (begin,) = [at for at, line in enumerate(lines) if line.startswith("Doubt")]
    end = next(at for at, line in enumerate(lines) if at > begin and not line.startswith(" "))
    assert end - begin <= 2
    (trouble,) = answer.errors
    assert trouble.brief in " ".join(" ".join(lines).split())
    assert bool(trouble.remedy) != bool(first.missing(answer))
    assert trouble.remedy in " ".join(" ".join(lines).split())
    assert trouble.text in " ".join(report_text(answer, full=True).split())


def test_the_name_of_a_report_is_cut_where_the_title_takes_more_than_a_line() -> None:
    long = replace(
        held("pytorch"), source="a_folder+of_a_name+that_is_long+" * 3 + "report.nsys-rep"
    )
    title = lines_of(long)[0]
    assert columns(title) <= WIDTH
    assert "…" in title and "passes" not in title
    assert lines_of(long)[1].startswith(("Doubt", "Time"))


def test_a_saving_says_of_which_time() -> None:
    answer = held("bert_trt10")
    assert answer.unprofiled is not None
    action = next(one for one in answer.actions if one.basis == "replay")
    (whole,) = re.findall(r"of (\d[\d,.]* \w+)$", first.saves(answer, action))
    assert whole == f"{round(answer.unprofiled.ns / 1e3)} µs"


def test_a_wide_range_is_called_uncertain() -> None:
    answer = held("bert_trt10")
    wide = replace(answer, unprofiled=Figure(100_000, 50_000, 160_000))
    assert any("uncertain" in forms[0] for forms in first.times(wide))
    narrow = replace(answer, unprofiled=Figure(100_000, 95_000, 106_000))
    assert not any("uncertain" in forms[0] for forms in first.times(narrow))


def test_idle_time_is_no_limit_of_a_gain_where_the_prediction_is_uncertain() -> None:
    answer = held("bert_trt10")
    gpu = first.main_gpu(answer)
    assert gpu is not None
    assert "gain ≤ " in first.idle(answer, gpu)[0]
    wide = replace(answer, unprofiled=Figure(100_000, 50_000, 160_000))
    told = first.idle(wide, gpu)[0]
    assert "gain ~" in told
    assert "≤" not in told


def test_what_the_hardware_needs_is_told_of_the_kernel_time_of_the_table() -> None:
    answer = held("bert_trt10")
    found = answer.headroom
    assert found is not None
    gpu_bound = replace(answer, headroom=replace(found, gpu_bound=True))
    kernels = rounded(answer.kernel_ns)
    assert f"for the kernels' {kernels}" in first.hardware(gpu_bound)
    part = replace(found, gpu_bound=True, known_ns=found.known_ns * 3 // 4)
    told = first.hardware(replace(answer, headroom=part))
    assert told.endswith(f"for {rounded(part.known_ns)} of the kernels' {kernels}")
    little = replace(found, gpu_bound=True, known_ns=found.known_ns // 50)
    assert first.hardware(replace(answer, headroom=little)) == ""
    far = found.groups[0]
    assert first.excess(gpu_bound)[0].count(rounded(far.headroom_ns)) == 1
    assert first.excess(replace(answer, headroom=replace(found, gpu_bound=False))) == ()


def test_without_a_unit_the_busy_share_says_of_how_long_and_how_much_of_it_is_copies() -> None:
    answer = held("bert_trt10")
    gpu = first.main_gpu(answer)
    assert gpu is not None
    trace = replace(gpu, window="trace", copies_share=0.39)
    bare = replace(answer, traced=None, unprofiled=None, gpu_unprofiled=None, gpus=(trace,))
    assert f"from first to last work ({rounded(gpu.window_ns)})" in first.busy(bare, trace)[0]
    assert first.copying(trace)[0].startswith("39% of the busy time is copies")
    assert first.copying(gpu) == ()


def test_a_host_that_was_slowed_down_is_the_first_doubt() -> None:
    answer = replace(held("bert_trt10"), disturbance=Disturbance(slow=5, inferences=50, share=0.2))
    assert keys_of(answer)[0] == "doubt"
    assert "5 of 50 inferences" in first.doubts(answer)[0].text


def test_errors_come_right_after_the_title_and_are_red() -> None:
    text = report_text(held("whole_graph"), width=WIDTH, colour=True)
    assert "\x1b[1;31m" in text.splitlines()[1]


def test_a_decoding_loop_has_its_first_token_and_the_time_of_one() -> None:
    answer = of_files(OTHERS[3])
    found = answer.decoding
    assert found is not None
    assert (found.requests, found.steps) == (3, 93)
    generation = next(one for one in answer.kinds if one.what == "generation")
    assert generation.median_ns is not None
    assert found.token_ns == pytest.approx(generation.median_ns, rel=0.15)
    assert found.first_token_ns > found.token_ns
    assert "tokens/s" in first.times(answer)[0][0]
    assert all(one.decoding is None for one in (held("bert_trt10"), held("two_engines")))


# --- the commands that show more
# ----------------------------------------------------------------------------------------------

GIVEN = ("/captures/it's a/run.nsys-rep", "/captures/engines/b c/engine.json")


def about_files(answer: Answer, given: tuple[str, ...] = ()) -> Iterator[list[str]]:
    for what, command in commands(answer, given):
        if what != "names":
            yield shlex.split(command)


def test_the_commands_name_the_files_as_they_were_given() -> None:
    told = list(about_files(held("bert_trt10"), GIVEN))
    assert [one[1] for one in told] == ["layers", "layers", "inference", GIVEN[0]]
    for _, *arguments in told:
        assert set(GIVEN) <= set(arguments)
    assert not any("cd " in command or "OLDPWD" in command for _, command in commands(
        held("bert_trt10"), GIVEN
    ))  # fmt: skip


def test_files_of_one_name_and_several_engines_in_one_file_are_named_once_each_by_their_paths() -> (
    None
):
    summary = held("two_engines")
    first_one, second = summary.engines
    twins = replace(
        summary,
        engines=tuple(
            replace(one, source=name, file=name)
            for one, name in ((first_one, "a/engine.json"), (second, "b/engine.json"))
        ),
    )
    layers = dict(commands(twins, ("r.nsys-rep", "x/b/engine.json", "x/a/engine.json")))["layers"]
    assert layers == "nsysmap layers r.nsys-rep x/a/engine.json x/b/engine.json --sort time"
    of_one = [
        replace(first_one, source=f"build.log (engine {number} of 2)", file="build.log")
        for number in (1, 2)
    ]
    both = dict(commands(replace(summary, engines=tuple(of_one)), ("r", "x/build.log")))["layers"]
    assert both == "nsysmap layers r x/build.log --sort time"


def test_a_name_that_is_decoded_is_of_a_kernel_that_ran() -> None:
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


def test_a_trace_without_any_work_has_a_screen_without_commands() -> None:
    nothing = replace(
        held("pytorch"),
        kernels=(),
        engines=(),
        layers=(),
        slowest=None,
        errors=(Trouble("no CUDA events were recorded"),),
    )
    assert commands(nothing) == []
    assert any("no CUDA events were recorded" in line for line in lines_of(nothing))


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


# --- which of the files ran
# ----------------------------------------------------------------------------------------------


def said(report: str, *engines: str) -> str:
    """All that the report says, in one line."""
    found = analyze(FIXTURES / report, [FIXTURES / file for file in engines], rules=[])
    return " ".join(report_text(found.summary, full=True).split())


def test_it_says_how_many_inferences_are_of_the_files_that_were_given() -> None:
    backbone, head = "torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"
    one = said("torch_mixed/sync.nsys-rep", backbone)
    assert "80 inferences, 40 of backbone.engine.json on" in one
    assert (
        "backbone.engine.json ran in 40 of 80 inferences; 40 inferences are of no given engine, as"
        " far as their kernels show" in one
    )
    two = said("torch_mixed/sync.nsys-rep", backbone, head)
    assert "80 inferences of backbone.engine.json and head.engine.json on" in two
    assert "both engines ran" in two
    assert "no given engine" not in two


def test_it_tells_inferences_of_another_engine_from_those_of_another_shape() -> None:
    context = said("decode_loop/sync.nsys-rep", "decode_loop/context.engine.json")
    assert "99 inferences, 3 of context.engine.json on" in context
    assert "of 99 inferences have layers of the names in context.engine.json and are of" in context
    shapes = said("two_shapes/sync.nsys-rep", "two_shapes/engine.json")
    assert "48 inferences of engine.json on" in shapes
    assert "22 of 48 inferences ran the tactics of engine.json" in shapes
    assert "is the engine that ran" not in shapes
    build = said("two_shapes/sync.nsys-rep", "bert_trt10/engine.json")
    assert "engine.json may be another build of the engine that ran (26 of another shape" in build
    assert "is the engine that ran" not in build
    hidden = said("decode_loop/graph_whole.nsys-rep", "decode_loop/generation.engine.json")
    assert "99 inferences, 3 perhaps of generation.engine.json on" in hidden
    assert "generation.engine.json may or may not be the engine that ran" in hidden
    assert "96 inferences hide their kernels" in hidden
