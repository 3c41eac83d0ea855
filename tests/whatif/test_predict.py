"""What-if answers on real captures: the replay reproduces the trace, and predictions meet what was measured without the profiler."""

from __future__ import annotations

import csv
import json
from functools import cache

import pytest
from click.testing import CliRunner

from nsysmap.base.errors import NsysmapError
from nsysmap.base.table import Table
from nsysmap.cli.main import cli
from nsysmap.engine.chains import chain_tables
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, read_engines
from nsysmap.whatif.engine_runs import EngineRuns
from nsysmap.whatif.predict import CHANGE_NAMES, TOLERANCE, Change, chosen_changes, default_changes, what_if
from tests.exports import exported
from tests.places import CAPTURES, FIXTURES

SINGLE = (
    "bert_trt10/sync", "bert_trt10/graph", "bert_trt10/hostgap", "bert_trt85/sync", "bert_trt86/sync", "bert_trt103/sync",
    "bert_trt103/graph", "bert_split_trt10/sync", "bert_split_trt10/pageable", "bert_split_trt10/threads", "mobilenet_qat/sync",
    "mobilenet_qat/pinned", "torch_encoder/eager", "torch_encoder/graph",
)  # fmt: skip


@cache
def mapped(name: str) -> MappedTrace:
    folder = name.split("/", maxsplit=1)[0]
    files = [path / folder / "engine.json" for path in (FIXTURES, CAPTURES) if (path / folder / "engine.json").exists()]
    return map_report(exported(name), read_engines(files[:1]))


@cache
def answers(name: str) -> dict[str, dict[str, object]]:
    chains, chain_layers = chain_tables(mapped(name).engines)
    runs = EngineRuns(mapped(name).mapped.layers, chains, chain_layers)
    return {str(row["change"]): row for row in asked(name, default_changes(runs)).records()}


def asked(name: str, changes: list[Change]) -> Table:
    of = mapped(name)
    return what_if(of.trace, of.inferences, of.found.membership, of.mapped.table, changes=changes)


def measured_ns(engine: str, mode: str) -> float:
    with (FIXTURES / "timings.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if (row["engine"], row["mode"], row["scale"]) == (engine, mode, "1"):
                return 1000 * float(row["us_per_inference"])
    raise AssertionError(f"{engine} was not timed as {mode}")


def number(name: str, change: str, column: str) -> int:
    value = answers(name)[change][column]
    assert isinstance(value, int), answers(name)[change]["reason"]
    return value


@pytest.mark.parametrize("name", SINGLE)
def test_the_replay_reproduces_the_trace_it_was_made_from(name: str) -> None:
    for row in answers(name).values():
        error = row["replay_error"]
        assert isinstance(error, float)
        assert abs(error) < 0.02 < TOLERANCE


@pytest.mark.parametrize("name", SINGLE)
def test_an_answer_has_figures_and_assumptions_or_a_reason_and_no_figures(name: str) -> None:
    assert set(answers(name)) == set(CHANGE_NAMES)
    for row in answers(name).values():
        figures = [row[column] for column in ("after_ns", "saving_ns", "low_saving_ns", "high_saving_ns")]
        if row["reason"] is not None:
            assert figures == [None] * 4
            continue
        before, after, saving, low, high = (number(name, str(row["change"]), column) for column in
                                            ("before_ns", "after_ns", "saving_ns", "low_saving_ns", "high_saving_ns"))  # fmt: skip
        assert before - after == saving
        assert low <= saving <= high
        assert "profiler" in str(row["assumptions"])


@pytest.mark.parametrize("engine", ["bert_trt10", "bert_trt103", "bert_split_trt10", "bert_trt85", "mobilenet_qat"])
def test_a_cuda_graph_takes_what_was_predicted_from_the_profiled_stream_capture(engine: str) -> None:
    assert number(f"{engine}/sync", "cuda-graph", "after_ns") == pytest.approx(measured_ns(engine, "graph"), rel=0.02)


@pytest.mark.parametrize(
    ("name", "change", "mode"),
    [("bert_split_trt10/pageable", "pinned-copies", "pinned"), ("bert_trt10/hostgap", "no-host-gap", "sync")],
)
def test_copies_and_host_work_out_of_the_way_leave_what_was_measured(name: str, change: str, mode: str) -> None:
    engine, before = name.split("/")
    assert number(name, change, "after_ns") == pytest.approx(measured_ns(engine, mode), rel=0.05)
    saved = measured_ns(engine, before) - measured_ns(engine, mode)
    assert number(name, change, "low_saving_ns") <= saved <= number(name, change, "high_saving_ns")


@pytest.mark.parametrize(
    ("name", "change", "other"),
    [("mobilenet_qat/sync", "drop-layers", "mobilenet_qat_noreformat"), ("bert_split_trt10/sync", "join-kernels", "bert_joined_trt10")],
)
def test_layers_dropped_or_joined_save_what_was_measured(name: str, change: str, other: str) -> None:
    saved = measured_ns(name.split("/", maxsplit=1)[0], "sync") - measured_ns(other, "sync")
    assert number(name, change, "low_saving_ns") <= saved <= number(name, change, "high_saving_ns")


@pytest.mark.parametrize("mode", ["pageable", "threads"])
def test_assumptions_count_kernels_per_inference_as_people_do(mode: str) -> None:
    told = answers(f"bert_split_trt10/{mode}")
    assert "(1 an inference) go" in str(told["drop-layers"]["assumptions"])
    counts = {"pageable": "8 kernels an inference, in 2 runs, become", "threads": "7.8 kernels an inference, in 2 runs, become"}[mode]
    assert counts in str(told["join-kernels"]["assumptions"])


@pytest.mark.parametrize("name", ["bert_trt10/graph", "bert_trt103/graph", "torch_encoder/graph"])
def test_a_graph_is_not_advised_where_there_is_one(name: str) -> None:
    assert "already" in str(answers(name)["cuda-graph"]["reason"])


def test_hidden_kernels_are_said_to_be_hidden_and_nothing_is_made_up() -> None:
    for row in answers("bert_trt10/graph_whole").values():
        assert "--cuda-graph-trace=node" in str(row["reason"])
        assert row["before_ns"] is None


def test_a_gpu_shared_with_another_process_is_not_reproduced_and_so_not_answered() -> None:
    for row in answers("two_processes/processes").values():
        assert "does not reproduce" in str(row["reason"])
        assert row["after_ns"] is None


def test_a_trace_without_copies_or_reformats_says_so() -> None:
    assert "copy nothing" in str(answers("bert_trt10/sync")["pinned-copies"]["reason"])
    assert "no kernel is mapped to a reformat" in str(answers("torch_encoder/eager")["drop-layers"]["reason"])


def test_layers_to_drop_can_be_named_with_a_star() -> None:
    changes = chosen_changes(["drop-layers"], ["__myl_AddTanh*"])
    (row,) = asked("bert_trt10/sync", changes).records()
    assert "AddTanh" in str(row["assumptions"])
    (row,) = asked("bert_trt10/sync", chosen_changes(["drop-layers"], ["no such layer"])).records()
    assert row["reason"] == "none of the layers named runs a kernel in the steady inferences"


def test_a_change_that_does_not_exist_is_a_user_s_mistake() -> None:
    with pytest.raises(NsysmapError, match="take one of: cuda-graph"):
        chosen_changes(["cuda-grpah"], [])
    with pytest.raises(NsysmapError, match="add --change drop-layers"):
        chosen_changes(["cuda-graph"], ["a layer"])


def test_the_same_trace_always_gives_the_same_answers() -> None:
    first, second = (asked("bert_trt10/sync", default_changes()).records() for _ in range(2))
    assert first == second


def test_the_command_prints_figures_and_assumptions_or_json() -> None:
    arguments = ["what-if", str(exported("bert_trt10/sync")), "--change", "cuda-graph"]
    text = CliRunner().invoke(cli, arguments)
    assert text.exit_code == 0, text.output
    assert "cuda-graph" in text.output
    assert "Corrected for the profiler" in " ".join(text.output.split())
    (row,) = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)["whatif"]
    assert row["saving_ns"] == row["before_ns"] - row["after_ns"] > 0


def test_a_reason_that_holds_for_every_change_is_said_once() -> None:
    whole = str(exported("bert_trt10/graph_whole"))
    text = CliRunner().invoke(cli, ["what-if", whole])
    assert text.output.startswith("graph_whole.sqlite: no change can be told: the trace hides the kernels")
    assert text.output.count("--cuda-graph-trace=node") == 1
    assert len(json.loads(CliRunner().invoke(cli, ["what-if", whole, "--json"]).output)["whatif"]) == len(CHANGE_NAMES)


# --- what sets the pace ---------------------------------------------------------------------------------------------
