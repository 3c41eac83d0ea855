"""What trtexec measured without the profiler: read off its files, and put beside what a trace
shows.
"""
# ruff: noqa: E501 (lines as trtexec writes them)

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.trtexec_times import Measure, read_times, times_in
from tests.figures import figures
from tests.places import FIXTURES

CAPTURE = FIXTURES / "bert_trt10"
HEAD = """&&&& RUNNING TensorRT.trtexec [TensorRT v100300] [b26] # trtexec --loadEngine=x.plan --useCudaGraph
[05/26/2023-16:10:43] [I] Streams: 1
[05/26/2023-16:10:43] [I] CUDA Graph: {graph}
[05/26/2023-16:10:43] [I] Separate profiling: {separate}
[05/26/2023-16:10:43] [I] Profile: {profile}
[05/26/2023-16:10:49] [I] Warmup completed 100 queries over 200 ms
[05/26/2023-16:10:49] [I] Timing trace has 1234 queries over 3.0 s
[05/26/2023-16:10:49] [I]
"""
SUMMARY = """[05/26/2023-16:10:49] [I] === Performance summary ===
[05/26/2023-16:10:49] [I] Throughput: 3194.57 qps
[05/26/2023-16:10:49] [I] Latency: min = 0.31 ms, max = 0.41 ms, mean = 0.33 ms, median = 0.32 ms, percentile(90%) = 0.34 ms, percentile(99%) = 0.40 ms
[05/26/2023-16:10:49] [I] End-to-End Host Latency: min = 9 ms, max = 9 ms, mean = 9 ms, median = 9 ms, percentile(99%) = 9 ms
[05/26/2023-16:10:49] [I] Enqueue Time: min = 0.1 ms, max = 0.3 ms, mean = 0.2 ms, median = {enqueue} ms, percentile(99%) = 0.3 ms
[05/26/2023-16:10:49] [I] H2D Latency: min = 0 ms, max = 0 ms, mean = 0 ms, median = 0 ms, percentile(99%) = 0 ms
[05/26/2023-16:10:49] [I] GPU Compute Time: min = 0.25 ms, max = 0.4 ms, mean = 0.3 ms, median = {compute} ms, percentile(90%) = 0.31 ms, percentile(95%) = 0.32 ms, percentile(99%) = 0.39 ms
[05/26/2023-16:10:49] [I] D2H Latency: min = 0.01 ms, max = 0.01 ms, mean = 0.01 ms, median = 0.01 ms, percentile(99%) = 0.01 ms
[05/26/2023-16:10:49] [I] Total Host Walltime: 3.0 s
[05/26/2023-16:10:49] [I] Explanations of the performance metrics are printed in the verbose logs.
[05/26/2023-16:10:49] [V] Enqueue Time: the host latency to enqueue a query. If this is longer than GPU Compute Time, the GPU may be under-utilized.
&&&& PASSED TensorRT.trtexec [TensorRT v100300]
"""
OLD = """[01/30/2021-00:58:04] [I] === Performance summary ===
[01/30/2021-00:58:04] [I] Host Latency
[01/30/2021-00:58:04] [I] min: 2.16614 ms (end to end 2.19995 ms)
[01/30/2021-00:58:04] [I] median: 2.17676 ms (end to end 4.15125 ms)
[01/30/2021-00:58:04] [I] percentile: 2.19336 ms at 99% (end to end 4.18213 ms at 99%)
[01/30/2021-00:58:04] [I] throughput: 0 qps
[01/30/2021-00:58:04] [I] Enqueue Time
[01/30/2021-00:58:04] [I] median: 0.559113 ms
[01/30/2021-00:58:04] [I] GPU Compute
[01/30/2021-00:58:04] [I] mean: 2.11412 ms
[01/30/2021-00:58:04] [I] median: 2.11353 ms
"""


def log(
    enqueue: float = 0.2,
    compute: float = 0.3,
    *,
    graph: str = "Disabled",
    separate: str = "Disabled",
    profile: str = "Disabled",
) -> str:
    return HEAD.format(graph=graph, separate=separate, profile=profile) + SUMMARY.format(
        enqueue=enqueue, compute=compute
    )


def written(folder: Path, text: str, name: str = "trtexec.log") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_performance_summary_of_a_log_is_read(tmp_path: Path) -> None:
    times = read_times(written(tmp_path, log(graph="Enabled")))
    assert (
        times.source,
        times.queries,
        times.tensorrt_version,
        times.cuda_graph,
        times.streams,
    ) == (
        "trtexec.log",
        1234,
        "10.3.0",
        True,
        1,
    )
    assert times.measures["gpu_compute"] == Measure(300_000, 300_000, 250_000, 400_000, 390_000)
    assert times.measures["latency"].median_ns == 320_000
    assert times.measures["h2d"].median_ns == 0
    assert times.measures["interval"] == Measure(None, mean_ns=313_031)
    assert not times.by_layer


def test_of_several_runs_in_a_log_the_last_counts(tmp_path: Path) -> None:
    times = read_times(written(tmp_path, log(enqueue=0.7) + log(enqueue=0.4)))
    assert times.measures["enqueue"].median_ns == 400_000


def test_the_summary_of_tensorrt_7_is_read(tmp_path: Path) -> None:
    times = read_times(written(tmp_path, OLD))
    assert {name: measure.median_ns for name, measure in times.measures.items()} == {
        "latency": 2_176_760,
        "enqueue": 559_113,
        "gpu_compute": 2_113_530,
    }
    assert times.measures["latency"].p99_ns == 2_193_360


def query(number: int, compute: float = 0.25) -> dict[str, float]:
    start = 10 + 0.5 * number
    return {
        "startEnqMs": start, "endEnqMs": start + 0.2, "startH2dMs": start, "endH2dMs": start + 0.1, "startComputeMs": start + 0.1,
        "endComputeMs": start + 0.35, "startD2hMs": start + 0.4, "endD2hMs": start + 0.5, "h2dMs": 0.1, "computeMs": compute,
        "d2hMs": 0.1, "latencyMs": 0.45,
    }  # fmt: skip


def test_a_file_of_exportTimes_is_read(tmp_path: Path) -> None:  # noqa: N802
    path = written(
        tmp_path,
        json.dumps([query(number, 0.2 + 0.01 * number) for number in range(101)]),
        "times.json",
    )
    times = read_times(path)
    assert times.queries == 101
    assert times.measures["gpu_compute"] == Measure(700_000, 700_000, 200_000, 1_200_000, 1_190_000)
    assert times.measures["enqueue"].median_ns == 200_000
    assert times.measures["interval"].median_ns == 500_000
    assert set(times.measures) == {"enqueue", "h2d", "gpu_compute", "d2h", "latency", "interval"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("hello", "has no performance summary of trtexec"),
        ('{"Layers": []}', "has no performance summary"),
        ("[]", "is other JSON"),
        ('[{"name": "x"}]', "is other JSON"),
        ('[{"computeMs": "soon"}]', "computeMs of a query is not a time"),
        ('[{"computeMs": -1}]', "computeMs of a query is not a time"),
        ('[{"computeMs": 1e400}]', "computeMs of a query is not a time"),
        ("[[[", "cut short"),
    ],
)
def test_what_holds_no_times_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(NsysmapError, match=told):
        read_times(written(tmp_path, text, "x.json"))


def test_an_engine_file_that_is_such_a_log_brings_its_times(tmp_path: Path) -> None:
    assert times_in(CAPTURE / "engine.json") is None
    assert times_in(tmp_path / "none.log") is None
    found = times_in(written(tmp_path, log()))
    assert found is not None
    assert found.measures["enqueue"].median_ns == 200_000


def analysis(folder: Path, text: str) -> Analysis:
    return analyze(
        CAPTURE / "sync.sqlite", CAPTURE / "engine.json", times=written(folder, text), rules=()
    )


def test_without_the_profiler_stands_beside_the_trace(tmp_path: Path) -> None:
    result = analysis(tmp_path, log(enqueue=0.2, compute=0.28))
    rows = {row["measure"]: row for row in result.tables.trtexec_times.records()}
    group = result.tables.inference_groups.records()[0]
    assert list(rows) == ["enqueue", "h2d", "gpu_compute", "d2h", "latency", "interval"]
    assert rows["enqueue"]["traced_ns"] == group["enqueue_median_ns"]
    assert rows["gpu_compute"]["traced_ns"] == group["gpu_span_median_ns"]
    assert rows["enqueue"]["profiling_ns"] == int(str(group["enqueue_median_ns"])) - 200_000
    assert rows["latency"]["traced_ns"] is None
    notes = [note.text for note in result.notes]
    assert any(figures(note)[:2] == ["1,234", "313.0"] for note in notes)
    assert any(figures(note)[-1:] == ["56"] for note in notes)  # kernels, each of which costs


@pytest.mark.parametrize(
    ("enqueue", "told"),
    [
        (0.02, "too different to be the cost of profiling"),
        (5.0, "too different"),
        (0.4, "less here than with trtexec: the conditions differ"),
    ],
)
def test_times_that_profiling_cannot_explain_are_not_explained_by_it(
    tmp_path: Path, enqueue: float, told: str
) -> None:
    rows = {
        row["measure"]: row
        for row in analysis(tmp_path, log(enqueue=enqueue)).tables.trtexec_times.records()
    }
    assert told in str(rows["enqueue"]["told"])


def test_times_that_hardly_differ_are_told_as_the_same(tmp_path: Path) -> None:
    traced = analyze(CAPTURE / "sync.sqlite", rules=()).tables.inference_groups.records()[0][
        "enqueue_median_ns"
    ]
    rows = {
        row["measure"]: row
        for row in analysis(
            tmp_path, log(enqueue=int(str(traced)) / 1e6)
        ).tables.trtexec_times.records()
    }
    assert "as long under" in str(rows["enqueue"]["told"])


def test_times_taken_while_layers_were_timed_are_warned_of(tmp_path: Path) -> None:
    warned = [
        note.text
        for note in analysis(tmp_path, log(profile="Enabled")).notes
        if note.level == "warning"
    ]
    assert any("--separateProfileRun" in text for text in warned)
    assert not read_times(written(tmp_path, log(profile="Enabled", separate="Enabled"))).by_layer


def test_without_times_the_table_is_empty() -> None:
    result = analyze(CAPTURE / "sync.sqlite", rules=())
    assert len(result.tables.trtexec_times) == 0
    assert not any("trtexec measured" in note.text for note in result.notes)
