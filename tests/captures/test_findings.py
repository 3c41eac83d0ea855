"""What the rules about the inside of an engine find in real captures and engine files: exactly what
is there, and priced soundly.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.analysis import ENGINE_GROUPS, engine_outcomes
from nsysmap.api import analyze
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.rules.finding import Finding, Outcome
from tests.captures.test_rules import shared
from tests.places import FIXTURES, SHARED
from tests.reports import analysis

ANY_BERT = {
    "attention-not-fused", "epilogue-missed", "fp16-norm", "pointwise-chain", "reformat-at-output",
    "time-not-in-kernels",
    "under-filled-gpu",
}  # fmt: skip
OPAQUE = {
    "hot-region",
    "pointwise-chain",
    "reformat-at-input",
    "split-inside-region",
    "time-not-in-kernels",
    "under-filled-gpu",
}
SPLIT = ANY_BERT | {"norm-split", "reformat-cost"}
INT8 = {
    "channel-alignment", "int8-with-float-output", "reformat-at-input", "reformat-cost",
    "quantized-latency-bound", "tensor-cores-missed", "under-filled-gpu",
    "unfused-quantize",
}  # fmt: skip
FOUND = {
    "bert_trt10/sync.sqlite": ANY_BERT,
    "bert_trt10/graph.sqlite": ANY_BERT - {"time-not-in-kernels"},
    "bert_trt10/graph_whole.sqlite": {
        "attention-not-fused",
        "fp16-norm",
        "reformat-at-output",
        "pointwise-chain",
        "epilogue-missed",
    },
    "bert_trt103/graph.sqlite": ANY_BERT - {"time-not-in-kernels"},
    "bert_trt85/sync.sqlite": OPAQUE,
}
FOUND_IN_SHARED = {
    "bert_trt10/hostgap": ANY_BERT,
    "bert_trt103/sync": ANY_BERT,
    "bert_trt86/sync": OPAQUE,
    "bert_split_trt10/sync": SPLIT,
    "bert_split_trt10/pageable": SPLIT,
    "bert_split_trt10/threads": SPLIT,
    "mobilenet_qat/sync": INT8,
    "mobilenet_qat/pinned": INT8,
    "torch_encoder/eager": {"time-not-in-kernels", "under-filled-gpu"},
    "torch_encoder/graph": {"time-not-in-kernels", "under-filled-gpu"},
}


def names(outcomes: tuple[Outcome, ...]) -> set[str]:
    return {
        outcome.rule
        for outcome in outcomes
        if (outcome.findings or outcome.folded) and outcome.group in ENGINE_GROUPS
    }


def of(outcomes: tuple[Outcome, ...], rule: str) -> list[Finding]:
    (outcome,) = [outcome for outcome in outcomes if outcome.rule == rule]
    assert outcome.skipped is None
    return sorted(
        (*outcome.findings, *outcome.folded), key=lambda finding: finding.layer_index or 0
    )


@cache
def in_engine(name: str) -> tuple[Outcome, ...]:
    return engine_outcomes(
        read_engine(FIXTURES / name / "engine.json", profile=FIXTURES / name / "profile.json")
    )


@cache
def in_public_engine(name: str) -> tuple[Outcome, ...]:
    folder = SHARED / "engines"
    if not folder.exists():
        pytest.skip("public engine files are not here")
    return engine_outcomes(
        read_engine(folder / f"{name}.graph.json", profile=folder / f"{name}.profile.json")
    )


@pytest.mark.parametrize("name", FOUND)
def test_a_fixture_s_engine_has_these_findings_and_no_others(name: str) -> None:
    folder, report = name.split("/")
    assert names(analysis(folder, report, rules=True).outcomes) == FOUND[name]


@pytest.mark.parametrize("name", FOUND_IN_SHARED)
def test_a_capture_s_engine_has_these_findings_and_no_others(name: str) -> None:
    assert names(shared(name).outcomes) == FOUND_IN_SHARED[name]


@pytest.mark.parametrize(
    ("report", "low", "high"), [("sync.sqlite", 15_500, 15_750), ("graph.sqlite", 12_100, 12_500)]
)
def test_the_attention_of_every_third_block_is_flagged_with_what_the_fused_ones_take(
    report: str, low: int, high: int
) -> None:
    found = of(analysis("bert_trt10", report, rules=True).outcomes, "attention-not-fused")
    assert [finding.evidence["block"] for finding in found] == [
        f"/bert/encoder/layer.{layer}/attention/self" for layer in (2, 5)
    ]
    for finding in found:
        assert (
            finding.evidence["kernels"],
            finding.evidence["unmet"],
            finding.evidence["unknown"],
        ) == (5, None, None)
        assert "head size a multiple of 8 (here 64)" in str(finding.evidence["met"])
        assert str(finding.evidence["basis"]).startswith("like the fused block layer.")
        assert low < int(finding.evidence["saving_ns"] or 0) < high


def test_what_launching_costs_is_one_finding_with_the_price_of_the_cuda_graph() -> None:
    outcomes = {
        outcome.rule: outcome
        for outcome in analysis("bert_trt10", "sync.sqlite", rules=True).outcomes
    }
    assert outcomes["launch-bound"].findings == outcomes["enqueue-bound"].findings == ()
    (finding,) = outcomes["cuda-graph-would-help"].findings
    assert {also.rule for also in finding.also} <= {
        "launch-bound",
        "enqueue-bound",
        "time-not-in-kernels",
    }
    assert finding.command == "nsysmap what-if REPORT ENGINE --change cuda-graph"


@pytest.mark.parametrize("name", ["bert_trt10", "bert_split_trt10", "bert_trt103"])
def test_the_attention_that_is_not_fused_is_that_of_the_truth(name: str) -> None:
    rows = list(
        csv.DictReader((FIXTURES / name / "truth.tsv").open(encoding="utf-8"), delimiter="\t")
    )
    softmaxes = {
        int(row["layer_index"])
        for row in rows
        if "Max" in row["layer"] and "ExpSum" in row["layer"]
    }
    assert softmaxes
    assert {
        finding.layer_index for finding in of(in_engine(name), "attention-not-fused")
    } == softmaxes


def test_exactly_the_split_norms_are_flagged_with_their_four_kernels_and_the_cast() -> None:
    found = of(in_engine("bert_split_trt10"), "norm-split")
    assert [finding.evidence["block"] for finding in found] == [
        f"/bert/encoder/layer.{layer}/attention/output" for layer in (0, 4)
    ]
    assert [finding.layer_index for finding in found] == [6, 41]
    for finding in found:
        assert (finding.evidence["kernels"], finding.evidence["stands_between"]) == (4, "cast")
        pieces = [name.split("_")[3] for name in str(finding.evidence["pieces"]).split(", ")]
        assert pieces == ["AddCast", "MeanSubMulMean", "AddSqrtDivMulMulAdd", "Cast"]
    assert of(in_engine("bert_trt10"), "norm-split") == []


def test_what_joined_norms_save_is_no_more_than_the_joined_engine_does() -> None:
    """bert_joined_trt10 against bert_split_trt10 at scale 1, both as graphs: no launches, so
    kernels and their dispatch only.
    """
    timings = FIXTURES / "timings.tsv"
    rows = csv.DictReader(timings.open(encoding="utf-8"), delimiter="\t")
    graph = {
        row["engine"]: float(row["us_per_inference"])
        for row in rows
        if (row["mode"], row["scale"]) == ("graph", "1")
    }
    real_us = graph["bert_split_trt10"] - graph["bert_joined_trt10"]
    unprofiled_us = (
        sum(finding.cost_ns or 0 for finding in of(in_engine("bert_split_trt10"), "norm-split"))
        / 1e3
    )
    assert 0.5 * real_us < unprofiled_us <= real_us
    traced_us = (
        sum(
            float(finding.evidence["saving_ns"] or 0)
            for finding in of(shared("bert_split_trt10/sync").outcomes, "norm-split")
        )
        / 1e3
    )
    assert traced_us == pytest.approx(real_us, rel=0.1)


def test_attention_inside_an_opaque_region_is_told_from_kernel_names_as_such() -> None:
    outcomes = analysis("bert_trt85", "sync.sqlite", rules=True).outcomes
    found = of(outcomes, "split-inside-region")
    assert Counter(finding.evidence["kind"] for finding in found) == {"attention": 4}
    assert sorted(int(finding.evidence["first_position"] or 0) for finding in found) == [
        7,
        23,
        39,
        55,
    ]
    assert all("They show neither its dimensions nor why" in finding.message for finding in found)
    cannot = {outcome.rule for outcome in outcomes if outcome.skipped is not None}
    assert {"attention-not-fused", "norm-split", "channel-alignment", "data-movement"} <= cannot


def test_the_reformats_of_mobilenet_are_flagged_with_cause_and_time() -> None:
    found = of(shared("mobilenet_qat/sync").outcomes, "reformat-cost")
    assert {finding.evidence["cause"]: finding.evidence["number"] for finding in found} == {
        "quantize": 16,
        "input": 1,
        "layout": 1,
    }
    timings = csv.DictReader((FIXTURES / "timings.tsv").open(encoding="utf-8"), delimiter="\t")
    graph = {
        row["engine"]: float(row["us_per_inference"])
        for row in timings
        if (row["mode"], row["scale"]) == ("graph", "1")
    }
    (layout,) = [finding for finding in found if finding.evidence["cause"] == "layout"]
    assert str(layout.layer).startswith("Reformatting CopyNode")
    assert (
        float(layout.evidence["took_ns"] or 0) / 1e3
        <= graph["mobilenet_qat"] - graph["mobilenet_qat_noreformat"]
    )


@pytest.mark.parametrize("name", ["trt8_resnet_qat", "trt8_mobilenet_v2_residuals"])
def test_quantisation_and_float_islands_are_found_where_trex_finds_them(name: str) -> None:
    """trex's lints: Reformat layers that convert a type, and INT8 convolutions with float outputs
    (but not the engine's own output).
    """
    outcomes = in_public_engine(name)
    layers = json.loads((SHARED / "engines" / f"{name}.graph.json").read_text(encoding="utf-8"))[
        "Layers"
    ]

    def types(index: int) -> tuple[bool, bool]:
        return tuple(
            "Int8" in layers[index][side][0]["Format/Datatype"] for side in ("Inputs", "Outputs")
        )  # type: ignore[return-value]

    def kinds(index: int) -> set[str]:
        return {
            word
            for side in ("Inputs", "Outputs")
            for word in ("FP32", "FP16", "Int8")
            if word in layers[index][side][0]["Format/Datatype"]
        }

    converting = {
        index
        for index, layer in enumerate(layers)
        if layer["LayerType"] == "Reformat" and len(kinds(index)) == 2
    }
    rules = ("unfused-quantize", "dtype-converting-reformat", "reformat-at-input")
    assert {finding.layer_index for rule in rules for finding in of(outcomes, rule)} == converting
    read = {
        tensor["Name"]
        for layer in layers
        if layer["LayerType"] != "NoOp"
        for tensor in layer["Inputs"]
    }
    floats = {
        index
        for index, layer in enumerate(layers)
        if layer.get("ParameterType") == "Convolution"
        and types(index) == (True, False)
        and layer["Outputs"][0]["Name"] in read
    }
    assert floats
    assert {finding.layer_index for finding in of(outcomes, "int8-with-float-output")} == floats


@pytest.mark.parametrize("name", ["trt8_resnet_qat", "trt8_mobilenet_v2_residuals"])
def test_tensor_cores_are_missed_by_the_first_convolution_only(name: str) -> None:
    (finding,) = of(in_public_engine(name), "tensor-cores-missed")
    assert finding.layer_index == 1
    assert "int8x4" in str(finding.evidence["kernel"])
    assert finding.evidence["channels_in"] == 3


def test_the_float_pooling_of_the_quantised_resnet_is_an_fp32_layer() -> None:
    (finding,) = of(in_public_engine("trt8_resnet_qat"), "fp32-in-reduced-engine")
    assert finding.layer == "MaxPool_12"


def test_without_times_no_rule_pretends_to_know_costs() -> None:
    outcomes = engine_outcomes(read_engine(FIXTURES / "bert_trt10" / "engine.json"))
    assert names(outcomes) == {
        "attention-not-fused",
        "fp16-norm",
        "reformat-at-output",
        "pointwise-chain",
        "epilogue-missed",
    }
    priced = [
        finding
        for outcome in outcomes
        for finding in outcome.findings
        if outcome.rule != "fp16-norm"
    ]
    assert {finding.cost_ns for finding in priced} == {None}
    assert not [
        finding.message for finding in priced if " ns" in finding.message or "µs" in finding.message
    ]
    skipped = {outcome.rule for outcome in outcomes if outcome.skipped is not None}
    assert {"reformat-cost", "hot-layer", "memory-bound", "data-movement"} <= skipped


def test_a_names_only_engine_is_never_said_to_be_clean(tmp_path: Path) -> None:
    layers = json.loads((FIXTURES / "bert_trt10" / "engine.json").read_text(encoding="utf-8"))[
        "Layers"
    ]
    file = tmp_path / "names.json"
    file.write_text(json.dumps({"Layers": [layer["Name"] for layer in layers]}), encoding="utf-8")
    outcomes = engine_outcomes(read_engine(file, profile=FIXTURES / "bert_trt10" / "profile.json"))
    told = {outcome.rule for outcome in outcomes if outcome.skipped is None}
    assert told <= {
        "hot-layer",
        "fragmented-myelin",
        "fp32-in-reduced-engine",
        "tensor-cores-missed",
        "hot-region",
    }


@pytest.mark.parametrize(
    ("report", "engines"),
    [
        ("torch_mixed/sync.nsys-rep", ["torch_mixed/backbone.engine.json"]),
        ("torch_mixed/sync.nsys-rep", ["torch_mixed/head.engine.json"]),
        ("two_processes/processes.nsys-rep", ["bert_trt10/engine.json"]),
        ("two_processes/processes.nsys-rep", ["bert_split_trt10/engine.json"]),
        ("bert_trt85/sync.sqlite", ["bert_trt85/engine.json"]),
    ],
)
def test_kernels_are_priced_by_what_the_engine_file_shows_or_by_their_names_and_never_by_both(
    report: str, engines: list[str]
) -> None:
    found = analyze(FIXTURES / report, [FIXTURES / engine for engine in engines])
    tables = found.tables.by_name()
    kernels = tables["kernels"]
    by_name: set[int] = set()
    for run in tables["kernel_runs"]:
        inferences = tables["inferences"].ints("kernel_sequence") == run.integer("kernel_sequence")
        inside = np.isin(
            kernels.ints("inference"), tables["inferences"].ints("inference")[inferences]
        )
        inside &= (kernels.ints("position") >= run.integer("first_position")) & (
            kernels.ints("position") <= run.integer("last_position")
        )
        assert inside.any()
        by_name |= set(kernels.ints("layer_id")[inside].tolist())
    shown = {
        layer
        for name in ("attention_layers", "chain_layers")
        for layer in tables[name].ints("layer_id").tolist()
    }
    assert by_name | shown
    assert not by_name & shown
    priced = {one.rule for one in found.outcomes if one.findings}
    assert ("split-inside-region" in priced) <= bool(by_name)
    assert ("attention-not-fused" in priced) <= bool(shown)
