"""The brief answers a program in at most 4 kB, and says what is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsysmap.api import analyze
from nsysmap.cli.analyze import analyze_command
from nsysmap.output.brief import LIMIT_BYTES, brief, brief_text
from tests.places import FIXTURES

REAL = FIXTURES / "real_trt"
CASES = (
    (REAL / "bert_eager-sync.nsys-rep", REAL / "bert_eager.engine.json"),
    (REAL / "bert_dyn-shapes.nsys-rep", REAL / "bert_dyn.engine.json"),
    (FIXTURES / "bert_trt10" / "graph_whole.sqlite", FIXTURES / "bert_trt10" / "engine.json"),
)


@pytest.mark.parametrize(("report", "engine"), CASES)
def test_the_brief_has_at_most_4_kb_for_any_report(report: Path, engine: Path) -> None:
    text = brief_text(analyze(report, engine).summary)
    assert len(text.encode()) <= LIMIT_BYTES
    assert json.loads(text)["schema"] == 1


def test_the_brief_has_the_answer_with_its_ranges() -> None:
    found = json.loads(brief_text(analyze(*CASES[0]).summary))
    assert found["unit"] == "inference"
    assert found["units_seen"] == 40
    (engine,) = found["engines"]
    assert engine["did_it_run"] == "ran"
    assert engine["inferences"] == 40
    time = found["time_without_profiler_us"]
    assert time["low"] < time["likely"] < time["high"] < found["time_in_trace_us"]
    assert found["do_first"][0]["action"] == "cuda-graph"
    assert found["costliest_layers"][0]["layer"].endswith("MatMul")
    assert found["kernels"]["with_a_layer"] == found["kernels"]["seen"] == 1680


def test_what_is_hidden_in_graphs_is_unknown_and_not_zero() -> None:
    found = brief(analyze(CASES[2][0]).summary)
    assert found["no_answer_because"]
    assert found["time_without_profiler_us"] is None
    assert found["kernels"] == {
        "seen": 0,
        "with_a_layer": 0,
        "more_are_hidden_in_graphs": True,
        "joined_by": [],
    }


def test_an_engine_whose_kernels_are_hidden_ran_perhaps() -> None:
    folder = FIXTURES / "bert_trt10"
    found = json.loads(
        brief_text(analyze(folder / "graph_whole.sqlite", folder / "engine.json").summary)
    )
    (engine,) = found["engines"]
    assert engine["did_it_run"] == "perhaps"
    assert engine["how_sure"]


def test_what_is_in_the_way_of_an_answer_is_said_in_whole_sentences() -> None:
    folder = FIXTURES / "bert_trt10"
    found = json.loads(brief_text(analyze(folder / "graph_whole.sqlite").summary))
    (reason,) = found["no_answer_because"]
    assert "--cuda-graph-trace=node" in reason
    assert not any("…" in sentence[:-30] for sentence in reason.split(". ")[:-1])


def test_the_command_prints_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYSMAP_CACHE", str(tmp_path))
    done = CliRunner().invoke(analyze_command, ["--json-brief", *map(str, CASES[0])])
    assert done.exit_code == 0
    assert done.stdout.count("\n") == 1
    assert json.loads(done.stdout)["report"] == "bert_eager-sync.nsys-rep"
