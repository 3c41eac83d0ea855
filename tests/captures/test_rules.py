"""What the rules find in real captures: exactly what a person reading the timeline would.

``fixtures`` are read as exported; the other captures are read where they lie beside the checkout
and nsys can export them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.rules.finding import Outcome
from tests.exports import exported
from tests.places import CAPTURES, FIXTURES
from tests.reports import analysis

GROUPS = ("capture", "launch", "host", "copy")
WHOLE_GRAPH_CANNOT_TELL = {
    "launch-bound", "enqueue-bound", "tiny-kernels", "unstable-time", "copy-not-overlapped",
    "no-layer-ranges",
}  # fmt: skip

FOUND = {
    "bert_trt10/sync.sqlite": {"enqueue-bound", "cuda-graph-would-help"},
    "bert_trt10/graph.sqlite": {"warm-up-included"},
    "bert_trt10/graph_whole.sqlite": {"whole-graph-trace"},
    "bert_trt103/graph.sqlite": {"warm-up-included"},
    "bert_trt85/sync.sqlite": {"enqueue-bound", "cuda-graph-would-help"},
}
FOUND_IN_SHARED = {
    "bert_trt10/hostgap": {"idle-between-inferences", "enqueue-bound", "warm-up-included"},
    "bert_trt103/sync": {
        "enqueue-bound",
        "launch-bound",
        "cuda-graph-would-help",
        "warm-up-included",
    },
    "bert_trt86/sync": {
        "enqueue-bound",
        "launch-bound",
        "cuda-graph-would-help",
        "profiler-overhead",
    },
    "bert_split_trt10/sync": {"enqueue-bound", "launch-bound", "cuda-graph-would-help"},
    "bert_split_trt10/pageable": {
        "enqueue-bound",
        "launch-bound",
        "cuda-graph-would-help",
        "blocking-copy",
        "copy-not-overlapped",
    },
    "bert_split_trt10/threads": {
        "enqueue-bound",
        "launch-bound",
        "cuda-graph-would-help",
        "warm-up-included",
    },
    "mobilenet_qat/sync": {"cuda-graph-would-help"},
    "mobilenet_qat/pinned": {"cuda-graph-would-help", "copy-not-overlapped"},
    "torch_encoder/eager": {
        "enqueue-bound",
        "launch-bound",
        "cuda-graph-would-help",
        "idle-between-inferences",
    },
    "torch_encoder/graph": {"gap-between-graphs", "warm-up-included"},
    "two_processes/processes": {
        "enqueue-bound",
        "launch-bound",
        "time-sliced-processes",
        "warm-up-included",
    },
}


def found(outcomes: tuple[Outcome, ...]) -> set[str]:
    return {
        outcome.rule
        for outcome in outcomes
        if (outcome.findings or outcome.folded) and outcome.group in GROUPS
    }


@cache
def shared(name: str) -> Analysis:
    """The analysis of a capture that is kept as nsys wrote it, with its engine where it has one."""
    path = exported(name)
    engines = [
        base / name.split("/", maxsplit=1)[0] / "engine.json" for base in (FIXTURES, CAPTURES)
    ]
    return analyze(path, next((engine for engine in engines if engine.exists()), None))


@pytest.mark.parametrize("name", FOUND)
def test_a_fixture_s_findings_are_those_of_its_program(name: str) -> None:
    folder, report = name.split("/")
    assert found(analysis(folder, report, rules=True).outcomes) == FOUND[name]


@pytest.mark.parametrize("name", FOUND_IN_SHARED)
def test_a_capture_s_findings_are_those_of_its_program(name: str) -> None:
    assert found(shared(name).outcomes) == FOUND_IN_SHARED[name]


def test_a_whole_graph_trace_is_blind_not_healthy() -> None:
    outcomes = {
        outcome.rule: outcome
        for outcome in analysis("bert_trt10", "graph_whole.sqlite", rules=True).outcomes
    }
    assert all(outcomes[rule].skipped for rule in WHOLE_GRAPH_CANNOT_TELL)
    # they are CUDA graphs already
    assert all(
        outcomes[rule].clean for rule in ("cuda-graph-would-help", "cuda-graph-would-not-help")
    )
    (finding,) = outcomes["whole-graph-trace"].findings
    assert finding.severity == "error"
    assert "--cuda-graph-trace=node" in finding.advice
    assert "50 CUDA graph launches" in finding.message


def test_the_engine_of_another_model_is_an_error_that_shows_both_sides() -> None:
    outcomes = analyze(
        FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt85" / "engine.json"
    ).outcomes
    (finding,) = next(outcome for outcome in outcomes if outcome.rule == "engine-mismatch").findings
    assert finding.severity == "error"
    assert finding.evidence["known"] == 0
    given = (FIXTURES / "bert_trt85" / "engine.json").read_text(encoding="utf-8")
    assert f'"{finding.evidence["engine_layer"]}"' in given
    assert f'"{finding.evidence["trace_layer"]}"' not in given
    assert str(finding.evidence["trace_layer"])[:20] in finding.message


def test_an_engine_file_of_names_only_is_found(tmp_path: Path) -> None:
    layers = json.loads((FIXTURES / "bert_trt10" / "engine.json").read_text(encoding="utf-8"))[
        "Layers"
    ]
    (tmp_path / "names.json").write_text(
        json.dumps({"Layers": [layer["Name"] for layer in layers]}), encoding="utf-8"
    )
    outcomes = analyze(FIXTURES / "bert_trt10" / "sync.sqlite", tmp_path / "names.json").outcomes
    assert found(outcomes) == {*FOUND["bert_trt10/sync.sqlite"], "names-only-engine"}


@pytest.mark.parametrize("name", FOUND)
def test_every_finding_lies_in_its_trace_and_costs_no_more_than_it_lasts(name: str) -> None:
    folder, report = name.split("/")
    done = analysis(folder, report, rules=True)
    calls = done.tables.api_calls
    last = max(
        int(calls.ints("end_ns").max()),
        *(
            int(table.ints("end_ns").max(initial=0))
            for table in (done.tables.kernels, done.tables.memcpys)
        ),
    )
    for outcome in done.outcomes:
        for finding in outcome.findings:
            assert 0 <= finding.start_ns <= finding.end_ns <= last, finding.rule
            assert (
                finding.cost_ns is None or 0 <= finding.cost_ns <= finding.end_ns - finding.start_ns
            ), finding.rule
            assert finding.share_of_window is None or 0 <= finding.share_of_window <= 1
            assert finding.advice
