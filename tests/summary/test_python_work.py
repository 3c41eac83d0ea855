"""Where Python works between launches: what to do, and whether a CUDA graph is worth it, of
everything or of each engine alone.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from nsysmap.advice.paste import DATA_LOADER_WORKERS
from nsysmap.advice.program import TORCH_ENGINES, Program
from nsysmap.analysis import predict_changes
from nsysmap.answer import gains, words
from nsysmap.answer.actions import (
    LEAST_SHARE,
    RunFacts,
    UnitTime,
    _host_evidence,
    actions,
    run_facts,
)
from nsysmap.answer.model import HostEvidence, SampledCode
from nsysmap.core.table import Table, Text
from nsysmap.mapping.mapped_trace import map_report
from tests.places import FIXTURES
from tests.reports import analysis
from tests.summary.test_summarize import answered, finding, outcome, tables

PREPROCESS = HostEvidence("range", "preprocess", "range preprocess")


@pytest.mark.parametrize(
    ("kind", "gaps", "line"),
    [
        ("cuda", 1, "auto next = std::async("),
        ("torch-tensorrt", 1, "following = executor.submit(preprocess"),
        ("torch-tensorrt", 12, "nsys profile --python-sampling=true"),
        ("tensorrt-llm", 12, "outputs = [llm.generate_async("),
    ],
)
def test_the_line_against_host_work_changes_the_program_that_ran(
    kind: str, gaps: float, line: str
) -> None:
    runs = RunFacts(Program(kind), gaps, PREPROCESS, uploads=True)
    (action,) = actions(
        tables([answered("no-host-gap", 400, 300, 500)], [], []),
        runs,
        units=10,
        unit_time=UnitTime(1000, 1000),
    )
    assert (action.paste or "").startswith(line)
    assert "host work" in action.title
    assert gains.gain(analysis("bert_trt10", "sync.sqlite").summary, action).endswith(
        ": host busy elsewhere (in NVTX range preprocess)"
    )


def test_a_data_loader_is_named_where_there_is_one() -> None:
    replayed = tables([answered("no-host-gap", 400, 300, 500)], [], [])
    for loader, begin in ((True, "for x in DataLoader("), (False, "following = executor.submit(")):
        runs = RunFacts(Program("pytorch"), 1, uploads=True, data_loader=loader)
        (action,) = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
        assert (action.paste or "").startswith(begin)


def test_who_uploads_nothing_is_told_how_to_see_what_python_does_instead_of_loading_batches_earlier() -> (  # noqa: E501
    None
):
    replayed = tables([answered("no-host-gap", 400, 300, 500)], [], [])
    for kind in ("pytorch", "torch-tensorrt", "pytorch-with-engines"):
        (action,) = actions(
            replayed, RunFacts(Program(kind), 1), units=10, unit_time=UnitTime(1000, 1000)
        )
        assert (action.paste or "").startswith("nsys profile --python-sampling=true")
    for kind in ("cuda", "tensorrt"):
        for downloads, begin in ((True, "auto next"), (False, "nsys profile --sample=")):
            runs = RunFacts(Program(kind, host="other"), 1, downloads=downloads)
            (action,) = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
            assert (action.paste or "").startswith(begin)


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("pytorch", 40, ["make one CUDA graph of all that Python launches"]),
        (
            "torch-tensorrt",
            40,
            ["make one CUDA graph of all that Python launches", "run each engine as a CUDA graph"],
        ),
        (
            "tensorrt",
            40,
            ["make one CUDA graph of all that is launched", "move host work out of the loop"],
        ),
        ("tensorrt", 20, ["run it as a CUDA graph", "move host work out of the loop"]),
    ],
)
def test_of_two_graphs_of_the_same_kernels_one_is_an_action(
    kind: str, more: int, told: list[str]
) -> None:
    changes = [("one-graph", 300 + more), ("cuda-graph", 300), ("no-host-gap", 200)]
    replayed = tables(
        [answered(name, saving, saving - 50, saving + 50) for name, saving in changes], [], []
    )
    runs = RunFacts(Program(kind), 12, uploads=True)
    found = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
    assert [one.title for one in found] == told


def test_a_line_for_one_graph_of_everything_is_for_the_program_that_ran() -> None:
    lines = {
        "pytorch": "model = torch.compile(",
        "torch-tensorrt": "with torch.cuda.graph(graph): out = model(x)  # no blocking copies",
        "tensorrt": "cudaStreamBeginCapture(",
        "cuda": "cudaStreamBeginCapture(",
    }
    for kind, line in lines.items():
        runs = RunFacts(Program(kind), 12, PREPROCESS)
        (action,) = actions(
            tables([answered("one-graph", 400, 300, 500)], [], []),
            runs,
            units=10,
            unit_time=UnitTime(1000, 1000),
        )
        assert (action.name, (action.paste or "")[: len(line)], action.host_work) == (
            "one-graph",
            line,
            "range preprocess",
        )


def test_who_follows_the_first_action_by_its_name_gets_the_figures_of_the_screen() -> None:
    held = analysis("torch_mixed", "sync.nsys-rep", engine=False)
    assert held.summary.actions
    for action in held.summary.actions:
        if action.basis == "replay":
            (row,) = predict_changes(
                map_report(FIXTURES / "torch_mixed" / "sync.nsys-rep", []), [action.name], ()
            )
            assert (row.text("answer"), row.integer("saving_ns")) == ("answered", action.saving.ns)
    (alone,) = (row for row in held.tables.whatif if row.text("change") == "cuda-graph")
    assert alone.text("answer") == "answered" or "one-graph" in alone.text("reason")


def test_where_a_host_was_slowed_down_no_change_is_told_that_may_save_nothing() -> None:
    """That of torch_mixed/nonvtx, 1.4 times."""
    held = analysis("torch_mixed", "nonvtx.nsys-rep", engine=False)
    assert held.summary.disturbance is not None
    assert not [one for one in held.summary.actions if one.basis == "replay"]
    for row in held.tables.whatif:
        least = max(LEAST_SHARE * (row.maybe_integer("before_ns") or 0), 1)
        assert row.text("answer") != "answered" or row.integer("low_saving_ns") < least


def test_an_idle_interval_counts_once_however_many_calls_the_host_made_in_it() -> None:
    held = analysis("torch_mixed", "sync.nsys-rep", engine=False).tables.by_name()
    whole = run_facts(held, Program("pytorch"))
    gaps = held["gaps"]
    start, end = gaps.ints("start_ns"), gaps.ints("end_ns")
    middle = (start + end) // 2
    order = np.repeat(np.arange(len(gaps)), 2)
    first = np.arange(len(order)) % 2 == 0
    ends = {
        "start_ns": np.where(first, start[order], middle[order]),
        "end_ns": np.where(first, middle[order], end[order]),
    }
    halves = Table(gaps.spec, {**gaps.take(order).columns, **ends})
    assert run_facts({**held, "gaps": halves}, Program("pytorch")) == whole
    assert 3 < whole.host_gaps < 17.5  # it has 35 pieces of GPU work in two inferences
    assert whole.uploads


def test_of_engines_that_pytorch_runs_the_verdict_on_cuda_graphs_says_that_it_is_of_the_engines() -> (  # noqa: E501
    None
):
    summary = analysis("bert_trt10", "sync.sqlite").summary
    assert (
        gains.graph(replace(summary, program="torch-tensorrt"))
        == f"of each engine alone: {gains.graph(summary)}"
    )
    assert gains.graph(replace(summary, program="pytorch")) == gains.graph(summary)


def test_where_python_works_between_launches_the_verdict_is_on_a_graph_of_everything_and_on_each_engines() -> (  # noqa: E501
    None
):
    summary = analysis("torch_mixed", "sync.nsys-rep", engine=False).summary
    (action,) = summary.actions
    assert action.name == "one-graph"
    everything, alone = gains.graph(summary).split("; ")
    assert everything.endswith(f"worth it: saves {words.figure(action.saving)}")
    assert re.fullmatch(r"of each engine alone: cannot tell: it may save -\d+ to \d+ µs", alone)
    assert gains.graph(replace(summary, program="pytorch")).split("; ")[1] == alone.replace(
        "of each engine alone", "without Python's work"
    )
    assert "Python's own work" in gains.graph(replace(summary, actions=()))


def test_where_only_repetitions_are_known_one_graph_is_of_a_whole_repetition_and_no_line_is_trtexecs() -> (  # noqa: E501
    None
):
    summary = analysis("torch_mixed", "nonvtx.nsys-rep", engine=False).summary
    assert summary.unit == "repetition"
    (action,) = actions(
        tables([answered("cuda-graph", 400, 300, 500)], [], []),
        RunFacts(Program(TORCH_ENGINES), 12, repeats=True),
        units=10,
        unit_time=UnitTime(1000, 1000),
    )
    assert "whole repetition" in action.title
    assert "torch.cuda.graph" in (action.paste or "")
    assert "each engine" not in gains.graph(replace(summary, actions=(action,)))


def test_calls_that_are_no_longer_made_save_no_more_than_they_take() -> None:
    """The host is busy elsewhere for 400 ns of a repetition, 250 of them in calls that allocate."""
    allocates = HostEvidence("call", "cudaMallocAsync", "call cudaMallocAsync")
    runs = RunFacts(Program("cuda"), 1, allocates, repeats=True, allocating_ns=2500)
    replayed = tables([answered("no-host-gap", 400, 300, 500)], [], [])
    (action,) = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
    assert action.title.startswith("allocate")
    assert (action.saving.ns, action.saving.low_ns, action.saving.high_ns) == (250, 0, 250)
    assert action.after is not None and action.after.ns == 750
    (whole,) = actions(
        replayed, replace(runs, allocating_ns=9000), units=10, unit_time=UnitTime(1000, 1000)
    )
    assert whole.saving.ns == 400


@pytest.mark.parametrize(
    ("saving", "expected"),
    [
        ((700, 650, 900), (300, 100, 350)),  # the thread is never done before the rest
        ((700, 400, 800), (300, 200, 500)),  # it may take as long as the rest: half at most
        ((400, 300, 450), (400, 300, 450)),  # the rest hides all of it
    ],
)
def test_one_thread_that_prepares_ahead_hides_no_more_than_the_rest(
    saving: tuple[int, int, int], expected: tuple[int, int, int]
) -> None:
    """Of 1000 ns: the longer of the host's work and of the rest remains."""
    replayed = tables([answered("no-host-gap", *saving)], [], [])
    runs = RunFacts(Program("pytorch"), 1, uploads=True)
    (action,) = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
    found = action.saving
    assert (found.ns, found.low_ns, found.high_ns) == expected
    assert action.after is not None and action.after.ns == 1000 - expected[0]
    assert action.share == expected[0] / 1000


def test_four_workers_of_a_data_loader_prepare_four_batches_meanwhile() -> None:
    replayed = tables([answered("no-host-gap", 900, 900, 900)], [], [])
    runs = RunFacts(Program("pytorch"), 1, uploads=True, data_loader=True)
    (action,) = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
    assert action.saving.ns == 1000 - 900 // DATA_LOADER_WORKERS


def test_calls_that_allocate_are_one_reason_together() -> None:
    """None of them has half of the time alone."""
    known = analysis("bert_trt10", "sync.sqlite").tables.by_name()["gaps"].take(np.arange(3))
    rows = [("cudaMallocPitch", 45), ("cudaFree", 30), ("my_range", 25)]
    names = Text.of([name for name, _ in rows])
    kinds = Text.of(["call", "call", "range"])
    spent = np.array([took for _, took in rows])
    texts = {"evidence": names, "evidence_name": names, "evidence_kind": kinds}
    found = _host_evidence(Table(known.spec, {**known.columns, **texts, "dur_ns": spent}))
    assert found is not None
    assert (found.kind, found.name) == ("call", "cudaMallocPitch")
    assert "cudaFree" in found.text


def test_what_is_compiled_already_is_not_to_be_compiled_again() -> None:
    replayed = tables([answered("one-graph", 400, 300, 500)], [], [])
    for compiled in (True, False):
        runs = RunFacts(Program("pytorch"), 40, compiled=compiled)
        (action,) = actions(replayed, runs, units=10, unit_time=UnitTime(1000, 1000))
        assert ("compile(model" in (action.paste or "")) != compiled


@pytest.mark.parametrize(
    ("window_ns", "expected"),
    [(10_000, 300), (5000, 200)],  # a copy is hidden by the rest of the turn at most
)
def test_copies_of_a_loop_are_first_where_they_take_most(window_ns: int, expected: int) -> None:
    """Of 10 repetitions of 1000 ns, 300 each are copies while no kernel runs."""
    rule = "copy-not-overlapped"
    replayed = [answered("two-in-flight", 100, 90, 110)]
    known = dict(tables(replayed, [outcome(rule, "copy", 3000)], [finding(rule)]))
    times = (
        analysis("bert_trt10", "sync.sqlite").tables.by_name()["device_times"].take(np.arange(1))
    )
    known["device_times"] = Table(times.spec, {**times.columns, "window_ns": np.array([window_ns])})
    runs = RunFacts(Program("cuda"), 1, uploads=True, repeats=True)
    first, *_ = actions(known, runs, units=10, unit_time=UnitTime(1000, 1000))
    assert (first.name, first.saving.ns, first.throughput_only) == (
        "copy-not-overlapped",
        expected,
        False,
    )
    inferences = actions(
        known, replace(runs, repeats=False), units=10, unit_time=UnitTime(1000, 1000)
    )
    assert all(one.name != "copy-not-overlapped" for one in inferences)


def test_copies_that_come_back_or_wait_for_ranks_are_not_sent_ahead_without_a_word() -> None:
    """What goes up may be made of what came down: by the host, or by way of another rank."""
    rule = "copy-not-overlapped"
    known = dict(tables([], [outcome(rule, "copy", 3000)], [finding(rule)]))
    times = (
        analysis("bert_trt10", "sync.sqlite").tables.by_name()["device_times"].take(np.arange(1))
    )
    known["device_times"] = Table(times.spec, {**times.columns, "window_ns": np.array([10_000])})
    alone = RunFacts(Program("cuda"), 1, uploads=True, repeats=True)
    ranks = HostEvidence("none", "", "", (SampledCode("mpi", None, 0.7, "MPI_Barrier"),))
    titles = [
        actions(known, runs, units=10, unit_time=UnitTime(1000, 1000))[0].title
        for runs in (
            alone,
            replace(alone, downloads=True),
            replace(alone, downloads=True, host_evidence=ranks),
        )
    ]
    ahead, conditional, kept = titles
    assert conditional.startswith(ahead) and "results" in conditional and "results" not in ahead
    assert "GPU" in kept and "GPU" not in ahead
