"""What-if answers on real captures: the replay reproduces the trace, and predictions meet what was
measured without the profiler.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nsysmap import analyze
from nsysmap.analysis import analyze_mapped, observed_of, predict_changes
from nsysmap.cli.main import cli
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import INFERENCES, OVERHEADS
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, read_engines
from nsysmap.text.units import worded
from nsysmap.whatif.change import CHANGE_NAMES, Change, chosen_changes, default_changes
from nsysmap.whatif.changes import ALREADY_A_GRAPH, uses_several_streams
from nsysmap.whatif.model import TOLERANCE, Model, NoModel, read_model
from nsysmap.whatif.predict import predicted, what_if
from nsysmap.whatif.profiler import LIKELY, MACHINES
from nsysmap.whatif.timeline import Step, all_works, each_step
from nsysmap.whatif.window import Window, steady_window
from tests.exports import exported
from tests.nsys_file import PROCESS, NsysFile
from tests.places import CAPTURES, FIXTURES

Answers = dict[str, dict[str, object]]

REPLAYED = (
    "bert_trt10/sync", "bert_trt10/graph", "bert_trt10/hostgap", "bert_trt85/sync",
    "bert_trt86/sync", "bert_trt103/sync",
    "bert_trt103/graph", "bert_split_trt10/sync", "bert_split_trt10/pageable",
    "bert_split_trt10/threads", "mobilenet_qat/sync",
    "mobilenet_qat/pinned", "torch_encoder/eager", "torch_encoder/graph", "aux_streams/sync",
    "aux_streams/graph", "two_shapes/sync",
    "two_shapes/nonvtx", "torch_mixed/sync", "newer/bert_sync", "newer/bert_graph",
    "newer/aux_graph", "newer/torch_sync",
    "two_gpus/tp_sync", "two_gpus/tp_graph",
)  # fmt: skip
ENGINES = {
    "newer/aux_graph": "aux_streams",
    "newer/torch_sync": "torch_mixed",
    "newer/bert_sync": "bert_trt10",
}

_ALREADY_A_GRAPH = worded(ALREADY_A_GRAPH, repetitions=False)


def engine_files(name: str) -> list[Path]:
    folder = ENGINES.get(name, name.split("/", maxsplit=1)[0])
    found = [sorted((place / folder).glob("*engine.json")) for place in (FIXTURES, CAPTURES)]
    return next((files for files in found if files), [])


def fills(step: Step) -> Step:
    return step._replace(works=tuple(work._replace(need=1.0) for work in step.works))


def test_times_are_of_all_inferences_of_a_run_whose_replayed_ones_are_not_like_the_rest() -> None:
    observed, facts = observed_of(mapped("bert_trt10/sync"))
    steady = steady_window(observed.trace, observed.inferences)
    assert isinstance(steady, Window)
    assert steady.of_all == pytest.approx(1, abs=0.01)
    replayed = np.isin(observed.inferences.ints("inference"), steady.inferences[0])
    end = observed.inferences.ints("gpu_end_ns")
    # all but the replayed ones take 40 % longer
    later = np.cumsum(~replayed * np.diff(end, prepend=end[0]) * 4 // 10)
    moments = [f"{part}{edge}_ns" for part in ("", "enqueue_", "gpu_") for edge in ("start", "end")]
    drifting = observed.inferences.with_columns(
        INFERENCES, {name: observed.inferences.ints(name) + later for name in moments}
    )
    window = steady_window(observed.trace, drifting)
    assert isinstance(window, Window)
    assert window.of_all == pytest.approx(1 + 0.4 * (~replayed).mean(), rel=0.05)
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    ratio = window.of_all / model.window.of_all
    longer = replace(
        model,
        window=replace(model.window, of_all=window.of_all),
        recorded_ns=round(model.recorded_ns * ratio),
    )
    assert list(longer.before.values()) == pytest.approx(
        [window.of_all * ns for ns in model.before.values()], rel=3e-3
    )


@pytest.mark.parametrize(
    ("slow", "every", "told"), [(1, 1, ""), (15, 2, "outliers"), (15, 1, "phases")]
)
def test_inferences_that_take_long_are_outliers_where_they_are_few_and_count_where_they_are_many(
    slow: int, every: int, told: str
) -> None:
    observed, _ = observed_of(mapped("bert_trt10/sync"))
    inferences = observed.inferences
    end = inferences.ints("gpu_end_ns")
    took = np.diff(end, prepend=end[0])
    back = len(end) - 1 - np.arange(len(end))
    # the last of them take three times as long
    later = np.cumsum(np.where((back <= slow * every) & (back % every == 0), 2 * took, 0))
    before = np.concatenate([[0], later[:-1]])
    moved = {
        f"{part}{edge}_ns": by
        for part in ("", "enqueue_", "gpu_")
        for edge, by in (("start", before), ("end", later))
    }
    slowed = inferences.with_columns(
        INFERENCES, {name: inferences.ints(name) + by for name, by in moved.items()}
    )
    # which do not move with the inferences
    trace = replace(observed.trace, overheads=Table.empty(OVERHEADS))
    plain, window = (steady_window(trace, one) for one in (inferences, slowed))
    assert isinstance(plain, Window)
    assert isinstance(window, Window)
    few = slow == 1
    counted = sum(sum(one.values()) for one in plain.weights)
    stood_for = sum(sum(one.values()) for one in window.weights)
    assert stood_for == pytest.approx(counted - 1) if few else stood_for > counted - 0.5
    for note in ("outliers", "phases"):
        assert any(note in one for one in window.notes) == (note == told)
    replayed = {float(took[row] + np.diff(later, prepend=0)[row]) for row in window.inferences[0]}
    assert (max(replayed) > 2.5 * float(np.median(took))) != few


def shrinking(folder: Path, turns: int = 100) -> Path:
    """An elimination: each turn launches a kernel, waits for it, and has less to do than the one
    before; the first few take more than twice the median.
    """
    file, now = NsysFile(), 1_000
    for turn in range(turns):
        took = round(40_000 + 400_000 * (1 - turn / turns) ** 3)
        file.call("cudaLaunchKernel_v7000", now, now + 4_000, 2 * turn)
        file.kernel("_Z7columnsPf", now + 6_000, 2 * turn, grid=turns - turn, took=took)
        file.kernel("_Z4restPf", now + 6_500 + took, 2 * turn + 1, grid=turns - turn, took=took)
        file.call("cudaLaunchKernel_v7000", now + 4_500, now + 6_000, 2 * turn + 1)
        end = now + 6_500 + 2 * took
        file.call("cudaDeviceSynchronize_v3020", now + 7_000, end + 2_000, 1_000 + turn)
        now = end + 4_000
    return file.write(folder / "shrinking.sqlite")


def test_repetitions_whose_kernels_take_longer_count_and_no_time_is_below_the_kernels_own(
    tmp_path: Path,
) -> None:
    analysis = analyze(shrinking(tmp_path), rules=[])
    kernels, whatif = analysis.tables.kernels, analysis.tables.whatif
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    observed, _ = observed_of(map_report(tmp_path / "shrinking.sqlite"))
    window = steady_window(observed.trace, observed.inferences)
    assert isinstance(window, Window)
    counted = sum(sum(one.values()) for one in window.weights)
    assert counted == pytest.approx(100, abs=4)  # all but the first and the last
    before = whatif.ints("before_ns")[whatif.ints("before_ns") != MISSING]
    assert before.min() >= took[8:].sum() / 96


@pytest.mark.parametrize("by", ["nsys", "host"])
def test_inferences_that_nsys_or_the_host_held_up_are_outliers_however_many_they_are(
    by: str,
) -> None:
    observed, _ = observed_of(mapped("bert_trt10/sync"))
    inferences, trace = observed.inferences, observed.trace
    end = inferences.ints("gpu_end_ns")
    took = np.diff(end, prepend=end[0])
    at = np.arange(len(end))
    slow = (at % 3 == 0) & (at > 5)
    later = np.cumsum(np.where(slow, 2 * took, 0))
    before = np.concatenate([[0], later[:-1]])
    moved = {
        f"{part}{edge}_ns": shift
        for part in ("", "enqueue_", "gpu_")
        for edge, shift in (("start", before), ("end", later))
    }
    columns = {name: inferences.ints(name) + shift for name, shift in moved.items()}
    added = np.where(slow, 2 * took, 0)
    longer = {"enqueue_ns": inferences.ints("enqueue_ns") + added} if by == "host" else {}
    held = [
        {"start_ns": int(stop - 2 * one), "end_ns": int(stop), "thread": 1, "name": "flush"}
        for stop, one in zip(columns["gpu_end_ns"][slow], took[slow], strict=True)
    ]
    overheads = Table.of_rows(OVERHEADS, held if by == "nsys" else [])
    window = steady_window(
        replace(trace, overheads=overheads),
        inferences.with_columns(INFERENCES, {**columns, **longer}),
    )
    assert isinstance(window, Window)
    assert not any("too many" in note for note in window.notes)
    counted = {int(window.inferences[0][position]) for position in window.weights[0]}
    assert counted
    assert not counted & set(np.flatnonzero(slow).tolist())


@pytest.mark.parametrize("device", [0, 1])
def test_of_gpus_that_exchange_data_the_slowest_is_replayed_and_of_those_as_slow_the_one_that_others_wait_for(  # noqa: E501
    device: int,
) -> None:
    observed, _ = observed_of(mapped("two_gpus/tp_sync"))
    kernels, inferences = observed.trace.kernels, observed.inferences
    name = kernels.text("name")
    collective = np.array([value.startswith("nccl") for value in name.values], np.bool_)[name.codes]
    waits = collective & (kernels.ints("device") != device)
    earlier = kernels.with_columns(
        kernels.spec, {"start_ns": kernels.ints("start_ns") - 20_000 * waits}
    )
    found = steady_window(replace(observed.trace, kernels=earlier), inferences)
    assert isinstance(found, Window)
    assert found.device == device
    # the other one takes longer
    later = np.where(inferences.ints("device") == device, 0, np.arange(len(inferences)) * 20_000)
    slower = inferences.with_columns(
        INFERENCES, {"gpu_end_ns": inferences.ints("gpu_end_ns") + later}
    )
    found = steady_window(replace(observed.trace, kernels=earlier), slower)
    assert isinstance(found, Window)
    assert found.device != device


def test_inferences_of_one_kernel_each_on_streams_in_turns_use_one_stream() -> None:
    model = read_model(*observed_of(mapped("bert_trt10/sync")), MACHINES)
    assert isinstance(model, Model)
    turns = each_step(
        model.likely,
        lambda step: step._replace(
            works=tuple(work._replace(queue=100 + step.inference % 2) for work in step.works)
        ),
    )
    assert not uses_several_streams(turns)
    split = each_step(
        model.likely,
        lambda step: step._replace(
            works=tuple(work._replace(queue=work.number % 2) for work in step.works)
        ),
    )
    assert uses_several_streams(split)


def test_work_that_another_thread_launches_is_in_the_replay() -> None:
    observed, facts = observed_of(mapped("bert_trt10/sync"))
    calls, launch = observed.trace.api_calls, observed.trace.kernels.ints("launch")
    thread = calls.ints("thread").copy()
    thread[launch[launch % 3 == 0]] += 1  # as PyTorch's backward thread does
    two = replace(
        observed,
        trace=replace(observed.trace, api_calls=calls.with_columns(calls.spec, {"thread": thread})),
    )
    alone, helped = read_model(observed, facts, MACHINES), read_model(two, facts, MACHINES)
    assert isinstance(alone, Model)
    assert isinstance(helped, Model)
    assert [work.row for work in all_works(helped.timeline)] == [
        work.row for work in all_works(alone.timeline)
    ]
    assert helped.recorded_ns == alone.recorded_ns
    assert abs(helped.error) < 0.01
    assert list(helped.before.values()) == pytest.approx(list(alone.before.values()), rel=0.01)


def test_a_wait_of_that_other_thread_ends_when_the_gpu_is_done() -> None:
    """The later half of each inference is launched, and waited for, by a second thread, for which
    the first waits outside CUDA.
    """
    observed, facts = observed_of(mapped("bert_trt10/sync"))
    calls, kernels = observed.trace.api_calls, observed.trace.kernels
    thread = calls.ints("thread").copy()
    an_inference = len(kernels) // len(observed.inferences)
    launch = kernels.ints("launch")[np.argsort(kernels.ints("launch_start_ns"), kind="stable")]
    later = launch[np.arange(len(launch)) % an_inference >= an_inference // 2]
    waits = np.flatnonzero(calls.text("kind").equals("sync"))
    thread[np.concatenate([later[later >= 0], waits])] += 1
    two = replace(
        observed,
        trace=replace(observed.trace, api_calls=calls.with_columns(calls.spec, {"thread": thread})),
    )
    alone, helped = read_model(observed, facts, MACHINES), read_model(two, facts, MACHINES)
    assert isinstance(alone, Model)
    assert isinstance(helped, Model)
    assert helped.recorded_ns == alone.recorded_ns
    assert abs(helped.error) < 0.02
    assert list(helped.before.values()) == pytest.approx(list(alone.before.values()), rel=0.02)


def test_a_trace_of_copies_alone_has_no_kernels_but_gpu_work(tmp_path: Path) -> None:
    file = NsysFile()
    file.call("cudaMemcpy_v3020", 0, 900, 1)
    file.add(
        "CUPTI_ACTIVITY_KIND_MEMCPY", start=100, end=800, deviceId=0, contextId=1, streamId=7,
        correlationId=1, globalPid=PROCESS, bytes=4096, copyKind=1, srcKind=0, dstKind=2,
    )  # fmt: skip
    reasons = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.whatif.text("reason")
    assert set(reasons.list()) == {"the trace has no kernels"}


def test_a_replay_without_all_gpu_work_of_its_inferences_is_none() -> None:
    observed, facts = observed_of(mapped("bert_trt10/sync"))
    kernels = observed.trace.kernels
    # in no stream that it waits for
    launch = np.where(np.arange(len(kernels)) % 20 == 0, np.int64(MISSING), kernels.ints("launch"))
    less = replace(
        observed,
        trace=replace(
            observed.trace, kernels=kernels.with_columns(kernels.spec, {"launch": launch})
        ),
    )
    found = read_model(less, facts, MACHINES)
    assert isinstance(found, NoModel)
    assert "the GPU work" in found.reason
    assert found.error is not None
    assert -0.15 < found.error < -0.01


def test_an_inference_that_does_not_count_is_no_part_of_the_hosts_share() -> None:
    model = read_model(*observed_of(mapped("torch_mixed/sync")), MACHINES)
    assert isinstance(model, Model)
    (first, *later), *others = model.likely.threads
    assert first.inference not in model.likely.weights[0]
    held_up = replace(model.likely, threads=((first._replace(own_ns=10**9), *later), *others))
    assert 0.1 < model.own_share(model.likely) <= 1
    assert model.own_share(held_up) == pytest.approx(model.own_share(model.likely), rel=0.02)


def test_where_kernels_fill_the_gpu_no_change_saves_that_leaves_them_as_they_are() -> None:
    observed, facts = observed_of(mapped("bert_trt10/sync"))
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    changes = [
        change
        for change in chosen_changes(["cuda-graph", "no-host-gap"], ())
        if isinstance(change, Change)
    ]
    assert any(
        (row.maybe_integer("low_saving_ns") or 0) > 0.1 * (row.maybe_integer("before_ns") or 0)
        for row in predicted(model, changes).whatif
    )
    kernels = observed.trace.kernels
    start, order = kernels.ints("start_ns"), np.argsort(kernels.ints("start_ns"), kind="stable")
    end = kernels.ints("end_ns").copy()
    end[order[:-1]] = np.maximum(end[order[:-1]], start[order[1:]] + LIKELY.queued_saved_ns)
    full = replace(
        observed,
        trace=replace(observed.trace, kernels=kernels.with_columns(kernels.spec, {"end_ns": end})),
    )
    large = {machine: each_step(timeline, fills) for machine, timeline in model.without.items()}
    for row in predicted(replace(model, observed=full, without=large), changes).whatif:
        if row.text("answer") == "answered":
            assert row.integer("low_saving_ns") < 0.01 * row.integer("before_ns")
            assert row.integer("saving_ns") < 0.03 * row.integer("before_ns")


@cache
def mapped(name: str) -> MappedTrace:
    if name.startswith("real_trt/"):  # of nsys 2025.3
        folder, model = FIXTURES / "real_trt", name.removeprefix("real_trt/").partition("-")[0]
        return map_report(
            f"{FIXTURES / name}.nsys-rep",
            read_engines([folder / f"{model}.engine.json"]),
            reader="own",
        )
    return map_report(exported(name), read_engines(engine_files(name)))


@cache
def real(name: str) -> MappedTrace:
    """A capture of TensorRT itself, with its engine."""
    folder, model = FIXTURES / "real_trt", name.removeprefix("gm_").rpartition("-")[0]
    engine = folder / f"{'bert_eager' if model == 'bert' else model}.engine.json"
    return map_report(folder / f"{name}.nsys-rep", read_engines([engine]))


@cache
def answers(name: str) -> Answers:
    return {str(row["change"]): row for row in predict_changes(mapped(name)).records()}


@cache
def timings(file: str) -> dict[tuple[str, str, str], float]:
    with (FIXTURES / file).open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return {
            (row["engine"], row["mode"], row["scale"]): 1000 * float(row["us_per_inference"])
            for row in rows
        }


def real_ns(model: str, mode: str) -> float:
    """The un-profiled time of TensorRT itself; of two threads it is that of one inference of
    each.
    """
    with (FIXTURES / "real_trt" / "timings.tsv").open(encoding="utf-8", newline="") as lines:
        rows = {
            (row["engine"], row["mode"]): row["us_median"]
            for row in csv.DictReader(lines, delimiter="\t")
        }
    return 1000 * float(rows[model, mode])


def measured_ns(engine: str, mode: str, file: str = "timings.tsv") -> float:
    """The un-profiled time of an inference; two threads' timings are for one of each."""
    return timings(file)[engine, mode, "1"] / (2 if mode.endswith("threads") else 1)


def number(name: str, change: str, column: str) -> int:
    value = answers(name)[change][column]
    assert isinstance(value, int), answers(name)[change]["reason"]
    return value


def holds(name: str, change: str, saved_ns: float) -> bool:
    return (
        number(name, change, "low_saving_ns") <= saved_ns <= number(name, change, "high_saving_ns")
    )


@pytest.mark.parametrize("name", REPLAYED)
def test_the_replay_reproduces_the_trace_it_was_made_from(name: str) -> None:
    for row in answers(name).values():
        error = row["replay_error"]
        assert isinstance(error, float), row["reason"]
        assert abs(error) < 0.02 < TOLERANCE


@pytest.mark.parametrize("name", REPLAYED)
def test_a_change_is_answered_with_figures_or_not_with_a_reason_and_no_figures(name: str) -> None:
    assert set(answers(name)) == set(CHANGE_NAMES)
    for row in answers(name).values():
        figures = [
            row[column]
            for column in (
                "after_ns",
                "saving_ns",
                "low_saving_ns",
                "high_saving_ns",
                "low_after_ns",
                "high_after_ns",
            )
        ]
        if row["answer"] != "answered":
            assert row["answer"] in ("does-not-apply", "cannot-tell")
            assert row["reason"]
            assert figures == [None] * 6
            continue
        assert row["reason"] is None
        change = str(row["change"])
        if change != "drop-layers":  # which may also be predicted as part of a CUDA graph
            assert number(name, change, "high_saving_ns") <= number(
                name, change, "high_before_ns"
            ) - number(name, change, "low_after_ns")
        for time in ("before", "after", "saving"):
            likely, low, high = (
                number(name, change, f"{side}{time}_ns") for side in ("", "low_", "high_")
            )
            assert low <= likely <= high, (name, change, time)
        assert number(name, change, "before_ns") - number(name, change, "after_ns") == number(
            name, change, "saving_ns"
        )
        assert "profiler" in str(row["assumptions"])


def test_a_cuda_graph_of_inferences_with_several_kernel_sequences_is_one_of_each() -> None:
    assert "each of the 2 kernel sequences" in str(
        answers("two_shapes/sync")["cuda-graph"]["assumptions"]
    )
    assert "kernel sequences" not in str(answers("bert_trt10/sync")["cuda-graph"]["assumptions"])


# --- against what was measured
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "engine", "mode", "file"),
    [
        ("bert_trt10/sync", "bert_trt10", "sync", "timings.tsv"),
        ("bert_trt10/graph", "bert_trt10", "graph", "timings.tsv"),
        ("bert_trt10/hostgap", "bert_trt10", "hostgap", "timings.tsv"),
        ("bert_trt103/sync", "bert_trt103", "sync", "timings.tsv"),
        ("bert_trt103/graph", "bert_trt103", "graph", "timings.tsv"),
        ("bert_split_trt10/sync", "bert_split_trt10", "sync", "timings.tsv"),
        ("bert_split_trt10/pageable", "bert_split_trt10", "pageable", "timings.tsv"),
        ("mobilenet_qat/sync", "mobilenet_qat", "sync", "timings.tsv"),
        ("mobilenet_qat/pinned", "mobilenet_qat", "pinned", "timings.tsv"),
        ("aux_streams/graph", "inception_aux_trt10", "graph", "timings_h100.tsv"),
        ("newer/aux_graph", "inception_aux_trt10", "graph", "timings_h100.tsv"),
        ("two_shapes/sync", "bert_dyn", "sync", "timings_h100.tsv"),
        ("newer/torch_sync", "torch_mixed", "sync", "timings_h100.tsv"),
    ],
)
def test_the_time_without_the_profiler_is_predicted_too(
    name: str, engine: str, mode: str, file: str
) -> None:
    assert number(name, "cuda-graph", "before_ns") == pytest.approx(
        measured_ns(engine, mode, file), rel=0.05
    )


@pytest.mark.parametrize(
    ("engine", "off"),
    # where no kernel is queued, what lies between two nodes is unknown: it is taken from TensorRT's
    # own engines, and too long for these
    [
        ("bert_trt10", 0.02),
        ("bert_trt103", 0.05),
        ("bert_split_trt10", 0.05),
        ("bert_trt85", 0.02),
        ("mobilenet_qat", 0.02),
    ],
)
def test_a_cuda_graph_takes_what_was_predicted_from_the_profiled_stream_capture(
    engine: str, off: float
) -> None:
    assert number(f"{engine}/sync", "cuda-graph", "after_ns") == pytest.approx(
        measured_ns(engine, "graph"), rel=off
    )


@pytest.mark.parametrize(
    # TensorRT itself, on the machine of the report; the graph of the first two on one of the same
    # kind
    ("name", "graph_us", "off"),
    [
        ("bert_eager-sync", 191.06, 0.03), ("bert_eager-sync_nonvtx", 191.06, 0.04),
        ("llama-sync", 183.23, 0.06),
        ("llama-sync_nonvtx", 183.23, 0.05), ("googlenet-sync_nonvtx", 206.8, 0.08),
        ("resnet50_b1-sync", 400.96, 0.03),
    ],
)  # fmt: skip
def test_a_cuda_graph_of_tensorrt_itself_takes_what_was_predicted(
    name: str, graph_us: float, off: float
) -> None:
    found = predict_changes(real(name)).records()
    answer = next(row for row in found if row["change"] == "cuda-graph")
    assert answer["after_ns"] == pytest.approx(graph_us * 1000, rel=off)
    assert int(str(answer["low_after_ns"])) < graph_us * 1000 < int(str(answer["high_after_ns"]))


@pytest.mark.parametrize(
    ("name", "measured_us"), [("llama-graph", 183.23), ("gm_bert-graph", 191.06)]
)
def test_the_time_of_a_graph_of_tensorrt_itself_without_the_profiler_is_predicted(
    name: str, measured_us: float
) -> None:
    answer = predict_changes(real(name)).records()[0]
    assert answer["before_ns"] == pytest.approx(measured_us * 1000, rel=0.03)
    assert (
        int(str(answer["low_before_ns"])) < measured_us * 1000 < int(str(answer["high_before_ns"]))
    )


@pytest.mark.parametrize(
    ("name", "measured_us", "off"),  # recorded: 1,598 and 552
    [("resnet50_b1-sync", 519.8, 0.85), ("bert_eager-sync_nonvtx", 308.15, 0.1)],
)
def test_a_host_that_was_slowed_down_throughout_launches_faster_without_that_and_the_range_holds_it(
    name: str, measured_us: float, off: float
) -> None:
    answer = predict_changes(real(name)).records()[0]
    assert answer["before_ns"] == pytest.approx(measured_us * 1000, rel=off)
    assert (
        int(str(answer["low_before_ns"])) < measured_us * 1000 < int(str(answer["high_before_ns"]))
    )
    slowed = float(re.findall(r"take (1[.]\d+) times", str(answer["assumptions"]))[0])
    assert 1.25 < slowed < 1.45


@pytest.mark.parametrize(
    "name",
    ["bert_eager-graph", "llama-graph", "resnet50_b1-graph", "bert_eager-sync", "resnet50_b1-sync"],
)
def test_no_prediction_leaves_less_than_what_the_kernels_take_or_more_than_was_recorded(
    name: str,
) -> None:
    observed, facts = observed_of(real(name))
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    for timeline in model.without.values():
        for was, now in zip(all_works(model.timeline), all_works(timeline), strict=True):
            # recording costs a kernel 0.1 to 0.3 us
            assert was.dur_ns - 400 <= now.dur_ns <= was.dur_ns
    assert max(model.before.values()) <= model.recorded_ns


def test_branches_on_auxiliary_streams_stay_parallel_in_a_graph() -> None:
    graph_ns = measured_ns("inception_aux_trt10", "graph", "timings_h100.tsv")
    assert number("aux_streams/sync", "cuda-graph", "after_ns") == pytest.approx(graph_ns, rel=0.03)


@pytest.mark.parametrize("name", ["aux_streams/graph", "newer/aux_graph"])
def test_on_one_stream_the_branches_of_a_graph_run_one_after_the_other(name: str) -> None:
    one_ns = measured_ns("inception_aux_trt10", "one_graph", "timings_h100.tsv")
    assert number(name, "one-stream", "after_ns") == pytest.approx(one_ns, rel=0.03)


def test_auxiliary_streams_bring_back_about_what_one_stream_took() -> None:
    """From the same graph on one stream: the engine's tensors say which layers may run at once."""
    from nsysmap.whatif.branches import (
        Dependencies,
        layers_before,
        on_auxiliary_streams,
        placed_on_streams,
    )
    from nsysmap.whatif.changes import on_one_stream
    from nsysmap.whatif.model import Model, read_model
    from nsysmap.whatif.profiler import MACHINES
    from nsysmap.whatif.timeline import Timeline

    observed, facts = observed_of(mapped("aux_streams/graph"))
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    assert observed.mapping is not None
    one = on_one_stream(model.likely)
    assert isinstance(one, Timeline)
    layer_of = observed.mapping.ints("layer_id")
    before = layers_before(facts, set(layer_of[layer_of >= 0].tolist()))
    several = on_auxiliary_streams(
        one,
        placed_on_streams(one, Dependencies(layer_of, before), 4),
        event_ns=0,
        branches_ns=model.machines[0].branches_ns,
    )
    assert isinstance(several, Timeline)
    assert model.period(several) == pytest.approx(model.period(model.likely), rel=0.08)


@pytest.mark.parametrize(
    ("name", "engine", "mode", "file"),
    [
        ("bert_trt10/sync", "bert_trt10", "threads", "timings.tsv"),
        ("bert_trt85/sync", "bert_trt85", "threads", "timings.tsv"),
        ("bert_split_trt10/sync", "bert_split_trt10", "threads", "timings.tsv"),
        ("mobilenet_qat/sync", "mobilenet_qat", "threads", "timings.tsv"),
        ("aux_streams/sync", "inception_aux_trt10", "threads", "timings_h100.tsv"),
        ("aux_streams/graph", "inception_aux_trt10", "graph_threads", "timings_h100.tsv"),
        ("two_shapes/sync", "bert_dyn", "threads", "timings_h100.tsv"),
    ],
)
def test_two_in_flight_reach_the_throughput_of_two_threads(
    name: str, engine: str, mode: str, file: str
) -> None:
    assert number(name, "two-in-flight", "after_ns") == pytest.approx(
        measured_ns(engine, mode, file), rel=0.1
    )
    assert "Throughput, not latency" in str(answers(name)["two-in-flight"]["assumptions"])


@pytest.mark.parametrize("model", ["bert_eager", "llama", "resnet50_b1"])
def test_two_graphs_of_real_kernels_in_flight_reach_the_throughput_of_two_threads(
    model: str,
) -> None:
    """Each program beside itself: what a capture's own time is off by is another question."""
    name, measured = f"real_trt/{model}-graph", real_ns(model, "graph_threads") / 2
    share = number(name, "two-in-flight", "after_ns") / number(name, "two-in-flight", "before_ns")
    assert share == pytest.approx(measured / real_ns(model, "graph"), rel=0.1)
    if model != "resnet50_b1":  # whose replay is 18 % faster than the program
        assert (
            number(name, "two-in-flight", "low_after_ns")
            < measured
            < number(name, "two-in-flight", "high_after_ns")
        )


def test_graphs_of_two_threads_slow_each_other_as_measured() -> None:
    """Recorded while the threads launched kernel by kernel, when hardly any ran at the same time:
    237 us for both.
    """
    report = CAPTURES / "real_trt" / "bert_eager-threads.nsys-rep"
    if not report.exists():
        pytest.skip("bert_eager-threads is not here")
    found = predict_changes(
        map_report(
            str(report),
            read_engines([FIXTURES / "real_trt" / "bert_eager.engine.json"]),
            reader="own",
        )
    )
    graph = next(row for row in found if row.text("change") == "cuda-graph")
    measured = real_ns("bert_eager", "graph_threads") / 2
    assert graph.integer("low_after_ns") < measured < graph.integer("high_after_ns")
    # its nodes' costs were learnt on other engines since: 17 % off
    assert graph.integer("after_ns") == pytest.approx(measured, rel=0.2)


def test_a_second_thread_of_a_python_program_that_launches_all_the_time_gains_nothing() -> None:
    """Measured: 308 us with one thread, 314 with two."""
    answer = answers("real_trt/bert_eager-sync")["two-in-flight"]
    assert real_ns("bert_eager", "threads") / 2 > 0.98 * real_ns("bert_eager", "sync")
    assert int(str(answer["after_ns"])) > 0.94 * int(str(answer["before_ns"]))
    assert int(str(answer["low_saving_ns"])) < 0
    assert "Python" in str(answer["assumptions"])
    assert "Python" not in str(answers("bert_trt10/sync")["two-in-flight"]["assumptions"])


@pytest.mark.parametrize(
    ("name", "change", "mode"),
    [
        ("bert_split_trt10/pageable", "pinned-copies", "pinned"),
        ("bert_trt10/hostgap", "no-host-gap", "sync"),
        ("bert_trt10/sync", "async", "async"),
        ("bert_trt103/sync", "async", "async"),
    ],
)
def test_copies_host_work_and_waits_out_of_the_way_leave_what_was_measured(
    name: str, change: str, mode: str
) -> None:
    engine, before = name.split("/")
    assert number(name, change, "after_ns") == pytest.approx(measured_ns(engine, mode), rel=0.03)
    assert holds(name, change, measured_ns(engine, before) - measured_ns(engine, mode))


@pytest.mark.parametrize(("name", "off"), [("torch_mixed/sync", 0.1), ("torch_mixed/nonvtx", 0.12)])
def test_one_graph_of_all_that_python_launches_takes_what_was_measured(
    name: str, off: float
) -> None:
    before, after = (
        measured_ns("torch_mixed", mode, "timings_h100.tsv") for mode in ("sync", "graph")
    )
    assert number(name, "one-graph", "after_ns") == pytest.approx(after, rel=off)
    assert holds(name, "one-graph", before - after)


def test_layers_dropped_or_joined_save_what_was_measured() -> None:
    assert holds(
        "mobilenet_qat/sync",
        "drop-layers",
        measured_ns("mobilenet_qat", "sync") - measured_ns("mobilenet_qat_noreformat", "sync"),
    )
    saved = measured_ns("bert_split_trt10", "sync") - measured_ns("bert_joined_trt10", "sync")
    assert holds("bert_split_trt10/sync", "join-kernels", saved)
    modes = [
        ("inception_aux_trt10", "graph", "timings_h100.tsv"),
        ("inception_aux_trt10_noreformat", "graph", "timings_h100.tsv"),
    ]
    with_them, without = (measured_ns(*mode) for mode in modes)
    assert holds("aux_streams/graph", "drop-layers", with_them - without)


def test_two_kernel_sequences_in_turns_are_weighted_as_they_come() -> None:
    """Without ranges, too: 22 inferences of the short one (202 µs as a graph) and 26 of the long
    one (422 µs); the first follows none.
    """
    short, long = (
        measured_ns("bert_dyn", mode, "timings_h100.tsv")
        for mode in ("onlya_graphs", "onlyb_graphs")
    )
    for name in ("two_shapes/sync", "two_shapes/nonvtx"):
        assert number(name, "cuda-graph", "after_ns") == pytest.approx(
            (22 * short + 25 * long) / 47, rel=0.02
        )


def test_engines_that_run_in_turns_are_timed_by_the_pass() -> None:
    assert answers("torch_mixed/sync")["cuda-graph"]["inferences"] == 2
    assert answers("bert_trt10/sync")["cuda-graph"]["inferences"] == 1


# --- which of three it is
# -------------------------------------------------------------------------------------------


def test_nothing_to_change_is_not_the_same_as_not_known() -> None:
    sync = answers("bert_trt10/sync")
    assert (
        sync["pinned-copies"]["answer"],
        "copy nothing" in str(sync["pinned-copies"]["reason"]),
    ) == ("does-not-apply", True)
    assert sync["one-stream"]["answer"] == "does-not-apply"
    eager = answers("torch_encoder/eager")
    assert (
        eager["aux-streams"]["answer"],
        "engine file" in str(eager["aux-streams"]["reason"]),
    ) == ("cannot-tell", True)
    assert eager["drop-layers"]["answer"] == "does-not-apply"


@pytest.mark.parametrize("name", ["bert_trt10/graph", "bert_trt103/graph", "torch_encoder/graph"])
def test_a_graph_is_not_advised_where_there_is_one(name: str) -> None:
    row = answers(name)["cuda-graph"]
    assert row["answer"] == "does-not-apply"
    assert "already" in str(row["reason"])


@pytest.mark.parametrize("name", ["bert_trt10/graph_whole", "decode_loop/graph_whole"])
def test_hidden_kernels_are_said_to_be_hidden_and_nothing_is_made_up(name: str) -> None:
    for change, row in answers(name).items():
        # decode_loop launches its context engine without one
        known = change == "cuda-graph" and name == "bert_trt10/graph_whole"
        assert row["answer"] == ("does-not-apply" if known else "cannot-tell")
        assert (_ALREADY_A_GRAPH if known else "--cuda-graph-trace=node") in str(row["reason"])
        assert row["before_ns"] is None


def test_hidden_graphs_are_told_where_the_gpu_runs_them_long_after_their_launch() -> None:
    """As in a loop that launches everything before the first graph is done: no replay begins while
    the host still launches.
    """
    observed, facts = observed_of(mapped("newer/llama_graph_whole"))
    graphs, inferences = observed.trace.cuda_graph_traces, observed.inferences
    assert len(graphs) > 10
    late_ns = int(observed.trace.api_calls.ints("end_ns").max() - graphs.ints("start_ns").min())
    late = graphs.with_columns(
        graphs.spec,
        {f"{edge}_ns": graphs.ints(f"{edge}_ns") + late_ns for edge in ("start", "end")},
    )
    hidden = inferences.ints("kernels") == 0
    later = {
        f"gpu_{edge}_ns": inferences.ints(f"gpu_{edge}_ns") + late_ns * hidden
        for edge in ("start", "end")
    }
    queued = replace(
        observed,
        trace=replace(observed.trace, cuda_graph_traces=late),
        inferences=inferences.with_columns(INFERENCES, later),
    )
    model = read_model(queued, facts, MACHINES)
    assert isinstance(model, NoModel)
    assert "--cuda-graph-trace=node" in model.reason


def test_a_gpu_shared_with_another_process_is_said_to_be_and_not_answered() -> None:
    for row in answers("two_processes/processes").values():
        assert row["answer"] == "cannot-tell"
        assert "process" in str(row["reason"])
        assert row["after_ns"] is None


def test_only_reformats_are_dropped_where_no_layer_is_named() -> None:
    told = str(answers("aux_streams/sync")["drop-layers"]["assumptions"])
    assert "reformat input 0 of stem/conv1/Conv" in told
    assert "4 per inference" in told
    assert "QuantizeLinear" not in str(answers("mobilenet_qat/sync")["drop-layers"]["assumptions"])


@pytest.mark.parametrize("mode", ["pageable", "threads"])
def test_assumptions_count_kernels_per_inference_as_people_do(mode: str) -> None:
    told = answers(f"bert_split_trt10/{mode}")
    assert "1 per inference" in str(told["drop-layers"]["assumptions"])
    counts = set(map(int, re.findall(r"\b\d+\b", str(told["join-kernels"]["assumptions"]))))
    assert {8, 2} <= counts, "kernels an inference, and the groups that they are in"


def test_layers_to_drop_can_be_named_with_a_star() -> None:
    (row,) = predict_changes(
        mapped("bert_trt10/sync"), ["drop-layers"], ["__myl_AddTanh*"]
    ).records()
    assert "pooler/activation/Tanh" in str(row["assumptions"])
    (same,) = predict_changes(
        mapped("bert_trt10/sync"), ["drop-layers"], ["pooler/activation/*"]
    ).records()
    assert same == row
    (row,) = predict_changes(mapped("bert_trt10/sync"), ["drop-layers"], ["__mye4000_0*"]).records()
    assert row["answer"] == "does-not-apply"


def test_a_misspelt_layer_is_a_mistake_that_names_the_layers_near_it() -> None:
    with pytest.raises(
        NsysmapError,
        match=r"--layer __myl_AddTahn_myl0_55: no layer.*did you mean __myl_AddTanh_myl0_55",
    ):
        predict_changes(mapped("bert_trt10/sync"), ["drop-layers"], ["__myl_AddTahn_myl0_55"])
    with pytest.raises(NsysmapError, match="nsysmap layers lists"):
        predict_changes(mapped("bert_trt10/sync"), ["drop-layers"], ["no such layer"])


def test_a_change_that_does_not_exist_is_a_user_s_mistake() -> None:
    with pytest.raises(NsysmapError, match="cuda-graph"):
        chosen_changes(["cuda-grpah"], [])
    with pytest.raises(NsysmapError, match="add --change drop-layers"):
        chosen_changes(["cuda-graph"], ["a layer"])


def test_the_same_trace_always_gives_the_same_answers() -> None:
    observed, facts = observed_of(mapped("bert_trt10/sync"))
    first, second = (what_if(observed, facts, default_changes(facts)).records() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["aux_streams/sync", "two_shapes/nonvtx"])
def test_an_analysis_and_the_command_say_the_same(name: str) -> None:
    assert analyze_mapped(mapped(name), rules=[]).tables.whatif.records() == list(
        answers(name).values()
    )


def test_the_command_prints_figures_and_assumptions_or_json() -> None:
    arguments = ["what-if", str(exported("bert_trt10/sync")), "--change", "cuda-graph"]
    text = CliRunner().invoke(cli, arguments)
    assert text.exit_code == 0, text.output
    assert "cuda-graph" in text.output
    (row,) = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)["whatif"]
    assert row["saving_ns"] == row["before_ns"] - row["after_ns"] > 0


def test_a_reason_that_holds_for_every_change_is_said_once() -> None:
    whole = str(exported("bert_trt10/graph_whole"))
    text = CliRunner().invoke(cli, ["what-if", whole])
    assert _ALREADY_A_GRAPH in text.output
    assert text.output.count("--cuda-graph-trace=node") == 1
    assert len(
        json.loads(CliRunner().invoke(cli, ["what-if", whole, "--json"]).output)["whatif"]
    ) == len(CHANGE_NAMES)


def test_where_python_sets_the_pace_a_change_is_answered_only_if_it_saves_more_than_python_varies_by() -> (  # noqa: E501
    None
):
    mixed = answers("torch_mixed/sync")
    assert mixed["cuda-graph"]["answer"] == "cannot-tell"
    assert "Python" in str(mixed["cuda-graph"]["reason"])
    two = mixed["two-in-flight"]  # one thread of Python works at a time
    assert int(str(two["low_saving_ns"])) < 0
    assert int(str(two["saving_ns"])) < 0.02 * int(str(two["before_ns"]))
    row = mixed["no-host-gap"]
    assert row["answer"] == "answered"
    # timings_h100.tsv: 745 to 909 us
    assert int(str(row["low_before_ns"])) < 829_810 < int(str(row["high_before_ns"]))
    eager = answers("torch_encoder/eager")["cuda-graph"]  # 2.8 ms of launches for 0.2 ms of kernels
    assert eager["answer"] == "answered"
    # of a host that was slowed down
    assert int(str(eager["low_saving_ns"])) > 0.65 * int(str(eager["low_before_ns"]))


def test_knowing_less_of_a_python_program_gives_no_narrower_range() -> None:
    """Without engine files nothing shows which of the host's own work is an engine's, so that all
    of it may be Python's.
    """
    report = next(
        place / "torch_mixed" / "nonvtx.nsys-rep"
        for place in (FIXTURES, CAPTURES)
        if (place / "torch_mixed").exists()
    )
    widths = []
    for engines in (engine_files("torch_mixed"), []):
        row = next(iter(predict_changes(map_report(report, engines))))
        widths.append(
            (row.integer("high_before_ns") - row.integer("low_before_ns"))
            / row.integer("before_ns")
        )
    assert widths[1] >= 0.95 * widths[0]


def test_what_the_replay_misses_of_the_trace_is_in_no_prediction() -> None:
    row = answers("bert_trt10/sync")["async"]
    tables = analyze_mapped(mapped("bert_trt10/sync"), rules=[]).tables
    replayed = tables.replayed_inferences
    length, weight = replayed.ints("end_ns") - replayed.ints("begin_ns"), replayed.floats("weight")
    missed = float(str(row["replay_error"])) * int(str(row["recorded_ns"]))
    assert abs(missed) > 200
    # at most, for how the others differ from those replayed
    moved = 2e-3 * int(str(row["before_ns"]))
    assert int(str(row["before_ns"])) == pytest.approx(
        (length * weight).sum() / weight.sum() - missed, abs=min(moved, abs(missed) / 2)
    )
