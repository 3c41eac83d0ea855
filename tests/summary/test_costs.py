"""The rows of the table of kernel time add up, in shares and in times, to the kernel time and the
GPU work that the screen tells.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from functools import cache

import pytest

from nsysmap.analysis import Analysis
from nsysmap.answer import words
from nsysmap.answer.commands import commands
from nsysmap.answer.costs import cost_rows, costs_heading, inside
from nsysmap.answer.model import WORK, Answer
from nsysmap.api import analyze
from nsysmap.comparison.inference import one_inference
from nsysmap.comparison.inference_page import inference_text
from nsysmap.core.idle_causes import idle_words
from nsysmap.output.words import cost_words
from nsysmap.text.units import rounded
from nsysmap.timing.totals import in_steady_part
from nsysmap.trace.inferences.steady import OUTLIER, steady_inferences
from tests.figures import figures
from tests.places import FIXTURES
from tests.rule_packs import golden_rules

CAPTURES = {
    "one engine": ("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"),
    "a CUDA graph": ("bert_trt10/graph.nsys-rep", "bert_trt10/engine.json"),
    "an opaque region": ("bert_trt85/sync.nsys-rep", "bert_trt85/engine.json"),
    "a slow host": ("bert_trt86/sync.nsys-rep", "bert_trt86/engine.json"),
    "copies": ("bert_split_trt10/pageable.nsys-rep", "bert_split_trt10/engine.json"),
    "two threads": ("bert_split_trt10/threads.nsys-rep", "bert_split_trt10/engine.json"),
    "auxiliary streams": ("aux_streams/sync.nsys-rep", "aux_streams/engine.json"),
    "auxiliary streams in a graph": ("aux_streams/graph.nsys-rep", "aux_streams/engine.json"),
    "two shapes": ("two_shapes/sync.nsys-rep", "two_shapes/engine.json"),
    "two shapes without ranges": ("two_shapes/nonvtx.nsys-rep", "two_shapes/engine.json"),
    "two engines in turn": (
        "torch_mixed/sync.nsys-rep",
        "torch_mixed/backbone.engine.json",
        "torch_mixed/head.engine.json",
    ),
    "one of two engines": ("torch_mixed/sync.nsys-rep", "torch_mixed/backbone.engine.json"),
    "a decode loop": (
        "decode_loop/sync.nsys-rep",
        "decode_loop/context.engine.json",
        "decode_loop/generation.engine.json",
    ),
    "a hidden decode loop": (
        "decode_loop/graph_whole.nsys-rep",
        "decode_loop/context.engine.json",
        "decode_loop/generation.engine.json",
    ),
    "two GPUs": ("two_gpus/tp_sync.nsys-rep", "two_gpus/tp.engine.json"),
    "two processes": (
        "two_processes/processes.nsys-rep",
        "bert_trt10/engine.json",
        "bert_split_trt10/engine.json",
    ),
}
_SIZES = {"ns": 1, "µs": 1e3, "ms": 1e6}
_TIME = r"([\d.,]+) (ns|µs|ms)"


@cache
def held(name: str) -> Analysis:
    report, *engines = (FIXTURES / part for part in CAPTURES[name])
    return analyze(report, engines, rules=[])


def ns(number: str, unit: str) -> float:
    return float(number.replace(",", "")) * _SIZES[unit]


@pytest.mark.parametrize("name", CAPTURES)
def test_the_rows_are_all_kernels_of_the_steady_part(name: str) -> None:
    analysis, summary = held(name), held(name).summary
    inside = in_steady_part(analysis.tables.kernels, steady_inferences(analysis.tables.inferences))
    spent = sum(
        row.integer("end_ns") - row.integer("start_ns")
        for row in analysis.tables.kernels.take(inside)
    )
    a_pass = int(summary.unit.split()[2]) if summary.unit.startswith("pass") else 1
    units = sum(row.integer("inferences") for row in analysis.tables.device_times) / a_pass
    assert summary.units == units
    assert summary.kernel_units == (0 if summary.hidden else units)
    assert summary.kernel_ns == pytest.approx(spent / (summary.kernel_units or 1), abs=1)
    rows = cost_rows(summary)
    assert sum(row.time_ns for row in rows) == pytest.approx(summary.kernel_ns, abs=len(rows))
    for row in rows:
        assert row.time_ns == pytest.approx(row.share * summary.kernel_ns, abs=1.5)


@pytest.mark.parametrize("name", CAPTURES)
def test_where_kernel_time_is_not_the_gpu_work_that_is_told_it_says_both(name: str) -> None:
    text, whole = " ".join(words.where(held(name).summary)), held(name).summary.kernel_ns
    for found in re.finditer(rf"busy in the trace \({_TIME}(.*?)\)", text):
        work, told = ns(found[1], found[2]), found[3]
        if said := re.search(rf"kernels side by side: {_TIME}|kernels {_TIME}", told):
            assert ns(said[1] or said[3], said[2] or said[4]) == pytest.approx(whole, rel=0.01)
        elif copies := re.search(r"([\d.]+)% of it copies", told):
            assert whole == pytest.approx(work * (1 - float(copies[1]) / 100), rel=0.01)
        elif not held(name).summary.hidden:
            assert whole == pytest.approx(work, rel=0.01)
    assert "busy in the trace" in text


def test_of_two_processes_no_mean_is_taken_for_that_of_one() -> None:
    """Whether the engine files of both are given, or of one: the mean over both says so, and each
    has its own time.
    """
    report, *engines = (FIXTURES / part for part in CAPTURES["two processes"])
    for given in (engines, engines[:1], engines[1:]):
        summary = analyze(report, given, rules=[]).summary
        text = " ".join([*words.times(summary), *words.where(summary), costs_heading(summary)])
        assert "(2 processes together)" in text
        assert re.search(
            rf"busy in the trace(?:, pauses included)? \({_TIME} per inference of either process",
            text,
        )
        assert re.search(
            rf"costliest layers, of {_TIME} kernel time per inference of either process", text
        )
        assert cost_words(1e6, "fusion", summary).endswith(" per inference of either process")
        assert {"29", "30"} == set(re.findall(r"process (\d+)", words.kinds(summary)))
    assert "of either process" not in costs_heading(held("one engine").summary)


def test_of_inferences_that_mostly_hide_their_kernels_layers_have_sums_not_means() -> None:
    summary = held("a hidden decode loop").summary
    assert f"visible kernel time in {summary.steady} steady inferences" in costs_heading(summary)
    tables = held("a hidden decode loop").tables
    kernels = list(
        tables.kernels.take(in_steady_part(tables.kernels, steady_inferences(tables.inferences)))
    )
    single = [row for row in cost_rows(summary) if row.layers == 1]
    assert single
    for row in single:
        of_layer = [one for one in kernels if one.maybe_text("layer_title") == row.name]
        assert row.time_ns == sum(
            one.integer("end_ns") - one.integer("start_ns") for one in of_layer
        )


@pytest.mark.parametrize("name", ["an opaque region"])
def test_the_parts_of_a_region_add_up_to_its_row(name: str) -> None:
    (region,) = held(name).summary.regions
    (row,) = [
        row
        for row in cost_rows(held(name).summary)
        if row.group is not None and row.group.name == region.name
    ]
    assert sum(part.time_ns for part in region.parts) == pytest.approx(
        row.time_ns, abs=len(region.parts)
    )
    assert region.share_of_all_kernel_time == pytest.approx(row.share)


def test_times_of_an_engine_s_layers_add_up_to_its_kernel_time_per_inference() -> None:
    for name in CAPTURES:
        tables = held(name).tables
        for engine in {row.maybe_integer("engine") for row in tables.layers} - {None}:
            steady = [
                row.integer("inference")
                for row in tables.inferences
                if row.maybe_integer("engine") == engine and row.flag("complete")
            ]
            steady = [
                one for one in steady if one in set(steady_inferences(tables.inferences).tolist())
            ]
            mine = [
                row
                for row in tables.kernels
                if row.maybe_integer("engine") == engine
                and row.maybe_integer("inference") in set(steady)
            ]
            spent = sum(
                row.integer("end_ns") - row.integer("start_ns")
                for row in mine
                if row.maybe_integer("layer_id") is not None
            )
            layers = [row for row in tables.layers if row.maybe_integer("engine") == engine]
            if steady and mine:
                assert sum(row.maybe_integer("time_ns") or 0 for row in layers) == pytest.approx(
                    spent / len(steady), abs=len(layers)
                ), name


def shares_of_gpus(summary: Answer) -> list[list[list[int]]]:
    """Of each GPU, in the trace and where it was replayed without the profiler too: the busy share,
    then the idle ones, in percent.
    """
    found = []
    for line in re.split(r"\n(?!(?:GPU \d+ )?idle )", "\n".join(words.where(summary))):
        told = re.sub(r"GPU \d+ |\([^)]*\)", "", line)
        busy = [int(number) for number in re.findall(r"(\d+)% (?:busy|without)", told)]
        idle = [
            [int(number) for number in one.split("→")]
            for one in re.findall(r"([\d<→]+)%", told.partition("idle ")[2].replace("<", ""))
        ]
        assert {len(one) for one in idle} <= {len(busy)}, line
        found.append([[one, *(shares[world] for shares in idle)] for world, one in enumerate(busy)])
    assert len(found) == len(summary.gpus)
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_the_shares_of_busy_and_idle_time_add_up_in_the_trace_and_without_the_profiler(
    name: str,
) -> None:
    for worlds in shares_of_gpus(held(name).summary):
        for busy, *idle in worlds:
            assert abs(busy + sum(idle) - 100) <= (1 + len(idle)) / 2, worlds


@pytest.mark.parametrize("name", CAPTURES)
def test_the_gpu_work_of_either_world_is_its_share_of_the_time_of_the_same_world(name: str) -> None:
    summary = held(name).summary
    traced, without = summary.traced, summary.gpu_unprofiled
    text = "\n".join(words.where(summary))
    told = list(
        re.finditer(
            rf"(\d+)% (busy in the trace|without the profiler)(, pauses included)? \({_TIME}", text
        )
    )
    assert len(told) == len(summary.gpus) + (without is not None), text
    for found in told:
        whole = (
            traced.ns
            if found[2] == "busy in the trace" and traced
            else summary.unprofiled.ns
            if summary.unprofiled
            else 0
        )
        work, said = ns(found[4], found[5]), int(found[1]) / 100 * whole
        assert (
            work > said
            if found[3]
            else work == pytest.approx(said, abs=0.005 * whole + 0.03 * said)
        ), text
    assert (without is None) == (summary.unprofiled is None)
    if without is not None and summary.unprofiled is not None:
        assert (without.busy_ns or 0) + sum(
            one.ns or 0 for one in without.idle
        ) == summary.unprofiled.ns


@pytest.mark.parametrize("name", CAPTURES)
def test_no_prediction_of_what_ran_reaches_below_the_gpu_work_of_its_own_world(name: str) -> None:
    summary = held(name).summary
    if summary.unprofiled is None or summary.gpu_unprofiled is None:
        return
    work_ns = summary.gpu_unprofiled.busy_ns or 0
    assert work_ns <= (summary.unprofiled.low_ns or 0)


@pytest.mark.parametrize("name", CAPTURES)
def test_of_what_the_slowest_inference_took_longer_the_screen_and_the_command_have_the_same_figures(
    name: str,
) -> None:
    analysis, found = held(name), held(name).summary.slowest
    if found is None:
        return
    beside = one_inference(analysis.tables.by_name(), analysis.source, str(found.inference))
    assert (beside.time_ns, beside.usual, beside.usual_ns) == (
        found.time_ns,
        found.usual,
        found.usual_ns,
    )
    idle = {one.name: one.ns for one in beside.contributions if one.kind == "idle"}
    for cause, more_ns in found.more:
        if cause != WORK:
            assert idle[f"idle: {idle_words(cause)}"] == more_ns
    work = dict(found.more).get(WORK)
    if work is not None:
        assert work == sum(one.ns for one in beside.contributions if one.kind != "idle")
    if found.times_median >= OUTLIER:
        longer = found.time_ns - found.usual_ns
        assert sum(more_ns for _, more_ns in found.more) > 0.5 * longer  # all that is large is told
        begun = inference_text(beside)
        assert ("Before it began" in begun) >= found.later


@pytest.mark.parametrize("name", CAPTURES)
def test_every_command_on_the_screen_names_every_engine_that_ran(name: str) -> None:
    summary = held(name).summary
    ran = [engine.source for engine in summary.engines if engine.verdict != "did-not-run"]
    for _, command in commands(summary):
        if summary.source in command and not command.startswith(
            "nsysmap decode "
        ):  # which explains the names in a report
            assert [engine for engine in ran if f" {engine} " not in command] == []


def test_of_several_engines_the_slowest_inference_names_its_own() -> None:
    assert words.slowest(held("a decode loop").summary).startswith("inference 16 (generation): ")
    assert words.slowest(held("one engine").summary).startswith("inference 34: ")


def test_small_opaque_regions_are_told_in_a_sentence() -> None:
    text = inside(held("a decode loop").summary)
    assert text.startswith("18 regions, 11.4%")
    assert "5.4% likely residual-add + " in text


def test_inferences_of_two_shapes_are_named_by_their_number_of_kernels() -> None:
    assert (
        words.kinds(held("two shapes").summary)
        == "mean of inferences of 48 kernels: 487 µs (26x), of 45: 413 µs (22x)"
    )


def test_what_if_tells_the_host_s_work_in_the_unit_of_its_times() -> None:
    (row,) = [
        row
        for row in held("two engines in turn").tables.whatif
        if row.text("change") == "no-host-gap"
    ]
    found = re.search(
        rf"work between inferences \(now {_TIME} per pass of 2 inferences", row.text("assumptions")
    )
    assert found
    idle = {one.cause: one.ns or 0 for one in held("two engines in turn").summary.gpus[0].idle}
    assert idle["host"] < ns(found[1], found[2]) < row.integer("before_ns")


def test_a_rule_tells_a_prediction_as_the_answer_does() -> None:
    report, engine = (FIXTURES / part for part in CAPTURES["a slow host"])
    analysis = analyze(report, engine, rules=golden_rules())
    (finding,) = [one for one in analysis.findings if one.rule == "cuda-graph-would-help"]
    predicted = words.figure(analysis.summary.unprofiled) if analysis.summary.unprofiled else ""
    assert f" less than its {predicted.partition(' (')[0]} without the profiler" in finding.message
    (action,) = [one for one in analysis.summary.actions if one.name == "cuda-graph"]
    assert f" would take {words.figure(action.saving)}, or " in finding.message
    assert (
        cost_words(finding.cost_ns or 0, finding.group, analysis.summary)
        == f"{rounded(action.saving.ns)} per inference"
    )


@pytest.mark.parametrize(
    ("report", "rules", "file", "before", "after"),
    [
        (
            "bert_split_trt10/sync",
            {"norm-split"},
            "timings.tsv",
            "bert_split_trt10",
            "bert_joined_trt10",
        ),
        (
            "aux_streams/graph",
            {"reformat-cost", "reformat-at-input", "reformat-at-output"},
            "timings_h100.tsv",
            "inception_aux_trt10",
            "inception_aux_trt10_noreformat",
        ),
    ],
)
def test_what_rules_price_is_what_engines_without_these_kernels_took_less(
    report: str, rules: set[str], file: str, before: str, after: str
) -> None:
    """As CUDA graphs, in which no launch that goes is saved too."""
    rows = csv.DictReader(
        (FIXTURES / file).read_text(encoding="utf-8").splitlines(), delimiter="\t"
    )
    took = {
        row["engine"]: float(row["us_per_inference"])
        for row in rows
        if (row["mode"], row["scale"]) == ("graph", "1")
    }
    engine = FIXTURES / report.partition("/")[0] / "engine.json"
    chosen = [rule for rule in golden_rules() if rule.name in rules]
    found = analyze(FIXTURES / f"{report}.nsys-rep", engine, rules=chosen)
    priced = sum(one.cost_ns or 0 for one in found.outcomes) / found.summary.units
    assert priced / 1e3 == pytest.approx(took[before] - took[after], rel=0.1)


def test_kernels_without_a_layer_are_one_row_as_they_are_one_share_of_how_sure() -> None:
    summary = held("two engines in turn").summary
    (row,) = [row for row in cost_rows(summary) if row.group is None]
    assert row.share == pytest.approx(1 - (summary.mapped.share_of_time or 0), abs=1e-9)
    assert row.name == "(without a layer: pytorch, cutlass, cublas)"
    assert figures(words.certainty(summary))[:3] == ["2,000", "2,800", "82.8"]
    apart = [row for row in cost_rows(summary, families=True) if row.group is None]
    assert [row.what for row in apart] == ["pytorch kernel", "cutlass kernel", "cublas kernel"]
    assert sum(row.share for row in apart) == pytest.approx(row.share)
    more = replace(summary, other_kernels=(*summary.other_kernels, *summary.other_kernels))
    assert [row.name for row in cost_rows(more) if row.group is None] == [
        "(without a layer: pytorch, cutlass, cublas and 3 more)"
    ]


def test_the_share_of_sms_says_whose_kernels_it_is_of_where_others_run_too() -> None:
    mixed, alone = held("two engines in turn").summary, held("one engine").summary
    assert mixed.outside is not None and mixed.outside.share > 0.1
    assert words.filled_kernels(mixed) == "the inferences' kernels"
    assert words.filled_kernels(alone) == "kernels"


def test_what_follows_from_the_calls_alone_is_called_likely() -> None:
    told = " ".join(words.where(held("auxiliary streams in a graph").summary))
    assert re.search(r"\b36(→0)?% likely nsys's own work", told)
    assert "likely" not in " ".join(words.where(held("one engine").summary))


def test_of_two_kinds_of_inferences_the_table_says_that_its_times_are_of_both() -> None:
    for name, said in (("two shapes", True), ("two engines in turn", False), ("one engine", False)):
        for room in (None, 54):  # as wide as it may be, and on a narrow terminal
            assert ("mean over both kinds" in costs_heading(held(name).summary, room)) is said
