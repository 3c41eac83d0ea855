"""The terminal report fits, reads top-down, hides nothing, and is not driven by the names in it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from nsysmap.answer.model import Answer, UnitOfTime
from nsysmap.answer.words import NOT_ABOUT_THIS
from nsysmap.core.note import Level, Note
from nsysmap.core.result_schema import WHATIF
from nsysmap.core.table import Table
from nsysmap.output.markdown import report_markdown
from nsysmap.output.text.report import NARROWEST, report_text
from nsysmap.output.words import because, to_do
from nsysmap.rules.finding import Finding, Outcome, Skip
from nsysmap.text.terminal import columns
from tests.reports import hostile, numbered, report, with_tables

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def some() -> list[Answer]:
    return [
        report("bert_trt10", "sync.sqlite"),
        report("bert_trt10", "graph.sqlite", engine=False),
        report("bert_trt10", "graph_whole.sqlite"),
        report("bert_trt85", "sync.sqlite", rules=True),
        hostile(),
    ]


def test_no_line_of_the_whole_report_is_wider_than_the_terminal() -> None:
    for held in some():
        for width in (NARROWEST, 80, 99, 140, 200):
            for line in report_text(held, width=width, full=True).splitlines():
                assert columns(line) <= width, line


def test_names_are_whole_where_no_terminal_cuts_them() -> None:
    held = report("bert_trt10", "sync.sqlite")
    name = "/bert/" + "x" * 3000 + "/the_end_myl0_"
    assert f"{name}7" in report_text(
        with_tables(held, layers=numbered(held.tables.layers, name)), full=True
    )


def test_a_piped_report_has_no_escape_sequence_and_no_trailing_space() -> None:
    for held in some():
        text = report_text(held)
        assert "\x1b" not in text
        assert text.replace("\n", "").isprintable()
        assert not re.search(r"[ \t]$", text, re.MULTILINE)
        assert text.endswith("\n")
        assert "\n\n\n" not in text


def test_colours_change_nothing_but_colours() -> None:
    for held in some():
        coloured = report_text(held, colour=True)
        assert ANSI.search(coloured)
        plain = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).splitlines())
        assert plain == report_text(held).rstrip("\n")


def test_a_whole_graph_trace_says_that_kernels_are_hidden_what_is_known_all_the_same_and_how_to_see_them() -> (  # noqa: E501
    None
):
    text = report_text(report("bert_trt10", "graph_whole.sqlite"), full=True)
    assert "hides the kernels of 50 CUDA graph launches" in text
    assert "--cuda-graph-trace=node" in text
    assert re.search(r"launch call +11\.10 µs", text)
    assert re.search(r"round trip +288\.3 µs", text)
    assert re.search(r"between +1\.36 µs", text)
    for absent in ("Layers (", "Kernels (", "By kind", "Mapping over the whole trace:", "100%"):
        assert absent not in text


def test_the_sections_come_in_the_order_in_which_one_asks() -> None:
    text = report_text(report("bert_trt10", "sync.sqlite"), full=True)
    order = [
        "Captured",
        "Inferences: 50",
        "Why the GPU was idle",
        "Mapping over the whole trace:",
        "Layers (",
        "By kind of layer",
        "Kernels (",
    ]
    assert [text.index(f"\n{heading}") for heading in order] == sorted(
        text.index(f"\n{heading}") for heading in order
    )


def test_kernels_without_a_layer_are_listed_with_the_reason() -> None:
    held = report("bert_trt10", "graph.sqlite", engine=False)
    coverage = held.tables.coverage
    short = with_tables(
        held,
        coverage=Table.of_rows(
            coverage.spec, [{**row, "method": "none"} for row in coverage.records()]
        ),
    )
    assert (
        "Mapping over the whole trace: 0 of 2,800 kernels have a layer, 0% of kernel time"
        in report_text(short, full=True)
    )
    text = report_text(hostile(), full=True)
    assert (
        "Mapping over the whole trace: 2,800 of 2,801 kernels have a layer, 99.99% of kernel time"
        in text
    )
    assert "none: <script>" in text


def test_kernels_that_say_the_same_operations_are_one_line() -> None:
    held = report("bert_trt85", "sync.sqlite")
    text = report_text(held, full=True)
    alike = Counter(ops for row in held.tables.kernel_totals if (ops := row.maybe_text("ops")))
    most = max(alike.values())
    assert most > 1
    assert f"{most} names: " in text


def test_findings_show_cost_message_advice_and_the_rules_that_could_not_tell() -> None:
    held = report("bert_trt10", "sync.sqlite")
    finding = Finding(
        "launch-bound",
        "launch",
        "error",
        "It waits.",
        0,
        10,
        2_500_000,
        0.25,
        None,
        None,
        {},
        "Use a graph.\nCheck it.",
    )
    outcomes = (
        Outcome(
            "launch-bound",
            "launch",
            "error",
            (finding, finding),
            cost_ns=5_000_000,
            share_of_window=0.5,
        ),
        Outcome("blind", "host", "info", (), Skip("", "osrt_calls")),
        Outcome("clean", "host", "info"),
    )
    text = report_text(replace(held, outcomes=outcomes), full=True)
    assert "Findings of 1 of the 2 rules that could run" in text
    assert (
        "  error  launch-bound, 2 places, 100 µs per inference\n    It waits.\n    It waits.\n"
        in text
    )
    assert "→ Use a graph. Check it." in text
    assert "blind: no rows in osrt_calls" in text


def test_findings_come_by_severity_then_cost_each_with_its_advice() -> None:
    def outcome(rule: str, severity: Level, cost_ns: int) -> Outcome:
        finding = Finding(
            rule,
            "launch",
            severity,
            f"message of {rule}.",
            0,
            1,
            cost_ns,
            None,
            None,
            None,
            {},
            f"advice of {rule}",
        )
        return Outcome(rule, "launch", severity, (finding,))

    outcomes = (
        outcome("dear", "info", 900),
        outcome("cheap", "warning", 1),
        outcome("dearer", "warning", 5),
        outcome("bad", "error", 0),
    )
    text = report_text(replace(report("bert_trt10", "sync.sqlite"), outcomes=outcomes), full=True)
    assert re.findall(r"message of (\w+)", text) == ["bad", "dearer", "cheap", "dear"]
    assert re.findall(r"advice of (\w+)", text) == ["bad", "dearer", "cheap", "dear"]


@pytest.mark.parametrize(
    ("rule", "told"),
    [("enqueue-bound", "Run it as a CUDA graph. Look."), ("cuda-graph-would-not-help", "Look.")],
)
def test_a_finding_begins_with_its_change_unless_it_advises_against_it(
    rule: str, told: str
) -> None:
    assert (
        to_do(
            [
                Finding(
                    rule,
                    "launch",
                    "info",
                    "So.",
                    0,
                    1,
                    1,
                    None,
                    None,
                    None,
                    {},
                    "Look.",
                    what_if="cuda-graph",
                )
            ]
        )
        == told
    )


def what_if_row(change: str, answer: str, **figures: object) -> dict[str, object]:
    before = {"before_ns": 300_000, "low_before_ns": 290_000, "high_before_ns": 320_000}
    return {
        "change": change,
        "answer": answer,
        "inferences": 1,
        **before,
        "assumptions": "",
        **figures,
    }


def test_a_change_that_is_not_answered_says_which_of_two_it_is() -> None:
    after = {"after_ns": 249_700, "low_after_ns": 240_000, "high_after_ns": 262_000}
    rows = [
        what_if_row(
            "cuda-graph",
            "answered",
            saving_ns=50_300,
            low_saving_ns=40_000,
            high_saving_ns=60_000,
            **after,
        ),
        what_if_row("pinned-copies", "does-not-apply", reason="the trace has no copies"),
        what_if_row("aux-streams", "cannot-tell", reason="no engine file was given"),
    ]
    text = report_text(
        with_tables(report("bert_trt10", "sync.sqlite"), whatif=Table.of_rows(WHATIF, rows)),
        full=True,
    )
    assert re.search(r"50 µs +40 to 60 µs +300 → 250 µs +cuda-graph: run it as a CUDA graph", text)
    assert "pinned-copies: does not apply" in text
    assert "aux-streams: cannot tell" in text


@pytest.mark.parametrize("level", ["warning", "info"])
def test_other_notes_come_last(level: str) -> None:
    held = replace(report("bert_trt10", "sync.sqlite"), notes=(Note(level, "Mind this."),))  # type: ignore[arg-type]
    assert report_text(held, full=True).endswith(f"\nNotes\n  {level}: Mind this.\n")


@pytest.mark.parametrize(
    ("unit", "word"),
    [
        (UnitOfTime(), "Inference"),
        (UnitOfTime(repetitions=True), "Repetition"),
        (UnitOfTime(2, repetitions=True), "Repetition"),
    ],
)
def test_what_repeats_unmarked_is_no_inference_in_headings(unit: UnitOfTime, word: str) -> None:
    given = report("bert_trt10", "sync.sqlite")
    told = replace(given, unit_of_time=unit)
    for text in (report_text(told, full=True), report_markdown(told)):
        assert f"{word}s: 50, found by" in text
        assert f"to the last steady-state {word.lower()}" in " ".join(text.split())
    nothing = replace(told, figures=replace(told.figures, count=0))
    assert f"{word}s: none recognised" in report_text(nothing, full=True)


def test_why_a_rule_could_not_tell_is_without_the_table_that_is_empty() -> None:
    sampled = "no hardware counters were sampled"
    assert because(Skip(sampled, "gpu_sampling")) == sampled
    assert because(Skip("no counters", "roofline.dram_bytes")) == "no counters"
    assert because(Skip("", "memcpys")) == "no rows in memcpys"
    assert because(Skip("", "devices.sm_count")) == "no value in devices.sm_count"
    assert because(Skip("it could not be predicted: few")) == "it could not be predicted: few"
    eager = report("torch_encoder", "eager.nsys-rep", engine=False)
    without = Skip("", "engine_fits", about_engines=True)
    assert because(without, eager) == NOT_ABOUT_THIS
    assert because(without) == "no rows in engine_fits"
    assert because(Skip("OS runtime calls were not traced"), eager).startswith("OS runtime")
