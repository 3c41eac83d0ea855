"""Whose the inferences and the time are, with one of two engine files, both, the wrong one or none;
against each kernel's known engine.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.answer import whose, words
from nsysmap.answer.model import PASS_OF_ONE, Answer
from nsysmap.api import analyze
from nsysmap.cli.main import cli
from nsysmap.output.build import report_of
from nsysmap.output.page.answer import page_sentences
from nsysmap.output.text.report import report_text
from tests.figures import figures
from tests.places import FIXTURES

MIXED = ("backbone", "head")


@cache
def summary(report: str, *engines: str) -> Answer:
    folder = FIXTURES / report.partition("/")[0]
    return analyze(
        FIXTURES / f"{report}.nsys-rep",
        [folder / f"{name}.engine.json" for name in engines],
        rules=(),
    ).summary


def ran() -> list[tuple[int, int, int]]:
    """Start, duration and engine (-1: none) of each kernel of torch_mixed/nonvtx; the engines in
    the order of MIXED.
    """
    from nsysmap.trace.open_report import open_trace

    kernels = open_trace(FIXTURES / "torch_mixed/nonvtx.nsys-rep").kernels
    took = dict(
        zip(
            kernels.ints("start_ns").tolist(),
            (kernels.ints("end_ns") - kernels.ints("start_ns")).tolist(),
            strict=True,
        )
    )
    with (FIXTURES / "torch_mixed/nonvtx.kernels.tsv").open(newline="") as rows:
        return [
            (start := int(row["start_ns"]), took[start], int(row["engine"]))
            for row in csv.DictReader(rows, delimiter="\t")
        ]


@pytest.mark.parametrize("file", MIXED)
def test_with_one_of_two_engines_and_no_ranges_a_pass_is_not_called_an_inference(file: str) -> None:
    found = summary("torch_mixed/nonvtx", file)
    number = MIXED.index(file)
    own = [(start, took) for start, took, engine in ran() if engine == number]
    inside = [row for row in ran() if own[0][0] <= row[0] <= own[-1][0]]
    others = [(took, engine) for _, took, engine in inside if engine != number]
    whole = sum(took for _, took, _ in inside)
    size = len(own) // 40
    spans = [
        own[at + size - 1][0] + own[at + size - 1][1] - own[at][0]
        for at in range(0, len(own), size)
    ]
    assert (found.inferences, found.unit, found.outside is None) == (40, PASS_OF_ONE, False)
    assert found.outside is not None
    assert found.outside.kernels == pytest.approx(len(others) / 39)
    assert found.outside.share == pytest.approx(sum(took for took, _ in others) / whole)
    other_engine = sum(took for took, engine in others if engine == 1 - number) / whole
    # at least, as the names tell
    assert 0.4 * other_engine < found.outside.tensorrt <= other_engine
    assert found.outside.pytorch <= sum(took for took, engine in others if engine < 0) / whole
    assert found.outside.span_ns == pytest.approx(np.median(spans), rel=0.001)
    assert words.title(found).startswith(
        f"nonvtx.nsys-rep: 40 inferences of {file}.engine.json among other kernels on "
    )
    told = words.times(found)
    assert " mean per pass of 1 inference in the trace, " in told[0] and told[0].endswith(
        " passes/s"
    )
    assert f"; {round(len(others) / 39)} kernels outside inferences, " in told[1]
    assert "% another engine's; 15% PyTorch's)" in told[1]
    assert "other TensorRT kernels'" in words.certainty(found)


def test_with_both_files_no_kernel_of_tensorrt_is_left_and_a_pass_is_of_two_inferences() -> None:
    for report in ("nonvtx", "sync"):
        found = summary(f"torch_mixed/{report}", *MIXED)
        assert found.unit == "pass of 2 inferences"
        assert found.outside is not None and found.outside.tensorrt == 0
        assert "outside" not in "".join(words.times(found)) and "among" not in words.title(found)
        alike = ", or others of the same structure" if report == "nonvtx" else ""
        assert f"both engines ran{alike};" in words.certainty(found)


@pytest.mark.parametrize(("report", "engines"), [
    ("decode_loop/sync", ("generation", "context")),
    ("decode_loop/nonvtx", ("generation", "context")), ("torch_mixed/sync", ()),
])  # fmt: skip
def test_little_outside_the_inferences_is_not_told(report: str, engines: Sequence[str]) -> None:
    found = summary(report, *engines)
    assert "outside" not in "".join(words.times(found)) and found.unit != PASS_OF_ONE


@pytest.mark.parametrize("report", ["torch_mixed/sync", "decode_loop/sync", "decode_loop/nonvtx"])
def test_each_kind_of_inferences_has_its_engine_or_none(report: str) -> None:
    # that count
    engine, own, others = (
        ("head", 40, 40)
        if "mixed" in report
        else ("generation", 96, 2 if "nonvtx" in report else 3)
    )
    told = words.kinds(summary(report, engine))
    assert f"{engine}.engine.json: " in told and f"({own}x)" in told
    assert f"{whose.NO_GIVEN}: " in told and f"({others}x)" in told


def test_hidden_inferences_are_not_said_to_be_of_no_given_engine() -> None:
    found = summary("decode_loop/graph_whole", "context")
    assert words.kinds(found).startswith("mean with waits: CUDA graphs: ")
    assert "context.engine.json: " in words.kinds(found)
    assert whose.NO_GIVEN not in words.kinds(found) + words.slowest(found) + words.certainty(found)
    assert found.outside is None
    assert ", perhaps generation.engine.json: " in words.kinds(
        summary("decode_loop/graph_whole", "generation")
    )


def placed(found: Answer) -> dict[str, str]:
    """What the page says, by its word."""
    told = page_sentences(found, {}, layers=True).rows
    return {row.word: row.text for rows in told.values() for row in rows}


def test_the_page_says_what_runs_outside_and_of_what_engine_inferences_are_not() -> None:
    found = summary("torch_mixed/nonvtx", "head")
    rows = placed(found)
    assert rows["other kernels"] == whose.outside(found)
    assert "other TensorRT kernels'" in rows["how sure"]
    ranges = summary("torch_mixed/sync", "head")
    rows = placed(ranges)
    assert "other kernels" not in rows
    assert "40 inferences are of no given engine" in rows["how sure"]


def test_an_engine_that_no_range_names_may_be_another_of_the_same_structure() -> None:
    assert "ran in 40 of 80 inferences;" in words.certainty(summary("torch_mixed/sync", "head"))
    assert "the same structure" in words.certainty(summary("torch_mixed/nonvtx", "head"))


def test_engines_that_only_the_names_of_their_layers_speak_for_are_not_said_to_have_run() -> None:
    found = summary("decode_loop/sync", "generation", "context")
    assert "both engines fit" in words.certainty(found)
    told = whose.engine_ran(found, found.engines[0])
    assert told.startswith("generation.engine.json fits")
    assert figures(told) == ["96", "99"]
    hidden = analyze(
        FIXTURES / "bert_trt10/graph_whole.nsys-rep", FIXTURES / "bert_trt10/engine.json", rules=()
    ).summary
    assert words.certainty(hidden).startswith("engine.json fits")


@pytest.mark.parametrize(("report", "engines", "told"), [
    ("torch_mixed/sync", MIXED, True), ("decode_loop/sync", ("generation", "context"), False),
    ("torch_mixed/sync", (), False),
    ("torch_mixed/sync", ("head",), False),  # nothing is known of the other engine
])  # fmt: skip
def test_that_no_region_is_opaque_is_said_where_it_is_known(
    report: str, engines: Sequence[str], told: bool
) -> None:
    found = summary(report, *engines)
    assert ("no opaque region" in words.certainty(found)) == told
    assert not (told and found.regions)


def test_the_full_report_has_the_evidence_for_each_engine() -> None:
    folder = FIXTURES / "decode_loop"
    report = report_of(
        analyze(
            folder / "sync.nsys-rep",
            [folder / f"{name}.engine.json" for name in ("context", "generation")],
            rules=(),
        )
    )
    full, brief = ("".join(report_text(report, full=full).split()) for full in (True, False))
    for engine, inferences in zip(report.engines, (3, 96), strict=True):
        assert engine.how is not None and f"explains {inferences} of 99 inferences" in engine.how
        assert "".join(engine.how.split()) in full and "".join(engine.how.split()) not in brief


@pytest.mark.parametrize("file", ["bert_trt85", "bert_trt10", "aux_streams"])
def test_a_file_beside_a_program_without_tensorrt_is_told_so_and_nothing_else(file: str) -> None:
    result = analyze(FIXTURES / "torch_encoder/eager.nsys-rep", FIXTURES / file / "engine.json")
    found = result.summary
    none = (
        "engine.json did not run: no TensorRT is in this trace, neither its ranges nor a kernel"
        " that only it has; leave it out."
    )
    assert found.blocked == (none,)
    assert "engine.json did not run" in words.certainty(found)
    assert "no layers" in words.certainty(found)
    assert "only TensorRT" in words.not_fused(found)
    assert "%" not in result.tables.engine_fits.only().text("how")


def test_which_of_two_files_with_the_same_layers_ran_is_left_open(tmp_path: Path) -> None:
    right = FIXTURES / "torch_mixed/head.engine.json"
    twin = tmp_path / "tail.engine.json"
    twin.write_text(right.read_text(encoding="utf-8").replace("/head/", "/tail/"), encoding="utf-8")
    for files in ([right, twin], [twin, right]):
        found = analyze(FIXTURES / "torch_mixed/nonvtx.nsys-rep", files, rules=()).summary
        names = [path.name for path in files]
        assert f"40 inferences of {' or '.join(names)} among " in words.title(found)
        assert f"one of {' and '.join(names)} ran" in words.certainty(found)
        shown = [fit for fit in found.engines if fit.inferences]
        assert [fit.source for fit in shown] == names[:1]  # its layers stand for those of both
        assert found.layers
    backbone = FIXTURES / "torch_mixed/backbone.engine.json"
    found = analyze(
        FIXTURES / "torch_mixed/nonvtx.nsys-rep", [twin, backbone, right], rules=()
    ).summary
    assert (
        "80 inferences of backbone.engine.json and tail.engine.json or head.engine.json on "
        in words.title(found)
    )
    assert whose.NO_GIVEN not in words.kinds(found) + words.certainty(found)


@pytest.mark.parametrize(
    ("engines", "unit"),
    [(("head",), PASS_OF_ONE), (MIXED, "pass of 2 inferences"), ((), "repetition")],
)
def test_what_if_has_the_same_unit(
    engines: Sequence[str], unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(FIXTURES / f"torch_mixed/{name}.engine.json") for name in engines]
    cli(["what-if", str(FIXTURES / "torch_mixed/nonvtx.nsys-rep"), *files], standalone_mode=False)
    assert capsys.readouterr().out.startswith(
        f"nonvtx.nsys-rep: wall time per {unit} without the profiler, µs\n"
    )
