"""Which executions of an engine a trace shows, and what each one took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from nsysmap.trace.inferences.find import Inferences, find_inferences
from nsysmap.trace.inferences.tensorrt_ranges import tensorrt_ranges
from tests.nsys_file import PROCESS, THREAD, NsysFile, engine_call
from tests.reports import read_trace

LAYERS = [("conv", "k_conv"), ("relu", "k_relu")]


def found(file: NsysFile, folder: Path) -> Inferences:
    trace = read_trace(file.write(folder / "x.sqlite"))
    return find_inferences(trace, tensorrt_ranges(trace.nvtx_ranges))


def trace_of(calls: int) -> NsysFile:
    file = NsysFile()
    file.domain("TensorRT", 1)
    for number in range(calls):
        engine_call(file, 1000 * (number + 1), LAYERS, 10 * number)
    return file


def test_every_enqueue_range_is_an_inference_with_the_kernels_launched_in_it(
    tmp_path: Path,
) -> None:
    inferences = found(trace_of(3), tmp_path)
    assert inferences.table.ints("kernels").tolist() == [2, 2, 2]
    assert inferences.membership.ints("inference").tolist() == [0, 0, 1, 1, 2, 2]
    assert inferences.membership.ints("position").tolist() == [0, 1, 0, 1, 0, 1]
    assert set(inferences.table.text("found_by").list()) == {"range"}


def test_gpu_time_is_the_union_of_the_kernels_and_idle_is_the_rest_of_the_span(
    tmp_path: Path,
) -> None:
    (row,) = found(trace_of(1), tmp_path).table.records()
    assert (
        row["gpu_busy_ns"],
        row["gpu_span_ns"],
        row["idle_ns"],
        row["enqueue_ns"],
        row["launches"],
    ) == (10, 25, 15, 50, 2)


def test_a_kernel_launched_outside_the_engine_belongs_to_no_inference(tmp_path: Path) -> None:
    file = trace_of(2)
    file.launch("preprocess", 500, 99)
    assert found(file, tmp_path).membership.ints("inference").tolist()[0] < 0


def test_a_range_that_only_captured_a_graph_is_no_inference_and_each_launch_of_the_graph_is_one(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.domain("TensorRT", 1)
    file.range("ExecutionContext::enqueueV3", 10, 100, domain=1)
    file.add("CUDA_GRAPH_EVENTS", start=50, end=50, eventClass=77, globalTid=THREAD, graphNodeId=5)
    for number in range(3):
        file.call("cudaGraphLaunch_v10000", 1000 + 100 * number, 1010 + 100 * number, 40 + number)
        file.kernel("k", 1020 + 100 * number, 40 + number, node=5)
    inferences = found(file, tmp_path)
    assert inferences.table.text("launch_api").list() == ["cudaGraphLaunch"] * 3
    assert inferences.table.bools("cuda_graph").all()
    assert inferences.empty_calls == 1


def test_hidden_graph_launches_are_inferences_of_which_nothing_but_the_host_time_is_known(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    for number in range(2):
        file.call("cudaGraphLaunch_v10000", 100 + 100 * number, 110 + 100 * number, number)
    rows = found(file, tmp_path).table.records()
    assert [(row["enqueue_ns"], row["gpu_busy_ns"], row["kernels"]) for row in rows] == [
        (10, None, 0),
        (10, None, 0),
    ]


@pytest.mark.parametrize("captured", [False, True])
def test_hidden_graph_launches_are_inferences_beside_one_without_a_graph_if_an_enqueue_was_captured(
    tmp_path: Path, captured: bool
) -> None:
    file = trace_of(1)
    for name, at in (
        ("cudaStreamBeginCapture_v10000", 2000),
        ("cudaStreamEndCapture_v10000", 2200),
    ):
        file.call(name, at, at + 10, at)
    start = 2050 if captured else 2300
    file.range("ExecutionContext::enqueueV3", start, start + 100, domain=1)
    for number in range(3):
        file.call("cudaGraphLaunch_v10000", 3000 + 100 * number, 3010 + 100 * number, 40 + number)
    assert found(file, tmp_path).table.text("found_by").list() == [
        "range",
        *["graph-launch"] * (3 * captured),
    ]


def test_a_whole_run_of_a_graph_tells_the_device_of_its_inference(tmp_path: Path) -> None:
    file = NsysFile()
    file.call("cudaGraphLaunch_v10000", 100, 110, 7)
    file.add(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=120, end=150, deviceId=1, contextId=2, streamId=3,
        correlationId=7, globalPid=PROCESS,
        graphId=1, graphExecId=1,
    )  # fmt: skip
    (row,) = found(file, tmp_path).table.records()
    assert (row["device"], row["context"], row["stream"], row["gpu_busy_ns"]) == (1, 2, 3, 30)


def test_two_threads_enqueueing_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    file = NsysFile()
    other = THREAD + 1
    for thread in (THREAD, other):
        file.domain("TensorRT", 1, thread=thread)
    engine_call(file, 1000, LAYERS, 10)
    engine_call(file, 1003, LAYERS, 20, thread=other)
    inferences = found(file, tmp_path)
    assert inferences.membership.ints("inference").tolist() == [0, 1, 0, 1]
    assert inferences.table.ints("thread").tolist() == [THREAD, other]


def warmup(
    folder: Path,
    times: Sequence[int],
    layers: Sequence[list[tuple[str, str]]] = (),
    pauses: Mapping[int, int] = MappingProxyType({}),
) -> list[int]:
    """Which of inferences whose kernels take so long, some after pauses, are warm-up."""
    file = NsysFile()
    file.domain("TensorRT", 1)
    paused = 0
    for number, took in enumerate(times):
        paused += pauses.get(number, 0)
        engine_call(
            file,
            100_000 * (number + 1) + paused,
            layers[number] if layers else LAYERS,
            50 * number,
            took=took,
        )
    return np.flatnonzero(found(file, folder).table.bools("warmup")).tolist()


def test_slow_first_inferences_are_warm_up_and_a_slow_one_later_is_not(tmp_path: Path) -> None:
    assert warmup(tmp_path, [20, *[5] * 6, 20, *[5] * 4]) == [0]


def test_four_inferences_are_enough_to_tell_a_warm_up_and_three_are_mostly_not(
    tmp_path: Path,
) -> None:
    for times, found_ones in (([20, 5, 5, 5, 5], [0]), ([20, 5, 5, 5], [0]), ([20, 5, 5], [])):
        (folder := tmp_path / str(len(times))).mkdir()
        assert warmup(folder, times) == found_ones


def test_the_first_of_three_inferences_is_warm_up_if_it_is_far_slower(tmp_path: Path) -> None:
    assert warmup(tmp_path, [200, 20, 21]) == [0]
    for name, times in (("slower", [60, 20, 21]), ("two", [200, 20]), ("second", [20, 200, 20])):
        (tmp_path / name).mkdir()
        assert warmup(tmp_path / name, times) == []


def test_slow_inferences_after_a_pause_warm_the_next_run_up(tmp_path: Path) -> None:
    times = [*[5] * 12, 30, 20, *[5] * 10]
    gap = 3_000_000
    assert warmup(tmp_path, times, pauses={12: gap}) == [12, 13]
    for name, pauses in (
        ("none", {}),
        ("few follow", {17: gap}),
        ("a server's", dict.fromkeys(range(2, 24, 2), gap)),
    ):
        (tmp_path / name).mkdir()
        assert warmup(tmp_path / name, times, pauses=pauses) == []


def test_what_is_slower_than_other_kernels_but_not_than_the_same_later_is_no_warm_up(
    tmp_path: Path,
) -> None:
    """As the context phase of a language model before its many generation steps, or the larger of
    two shapes that comes first.
    """
    long, short = LAYERS * 4, LAYERS
    order = [long, *[short] * 6, long, *[short] * 6]
    assert warmup(tmp_path, [5] * len(order), order) == []
    (tmp_path / "once").mkdir()
    # nothing later shows that it is always so long
    assert warmup(tmp_path / "once", [5] * 12, [long, *[short] * 11]) == [0]


def test_times_that_fall_over_the_whole_run_are_no_warm_up(tmp_path: Path) -> None:
    assert warmup(tmp_path, [round(9000 * (1 + at) ** -0.4) for at in range(100)]) == []
    (tmp_path / "ended").mkdir()
    assert warmup(tmp_path / "ended", [round(1000 * (1 + 2**-at)) for at in range(100)]) == [0, 1]


def test_a_last_inference_cut_short_is_not_complete(tmp_path: Path) -> None:
    file = trace_of(4)
    engine_call(file, 9000, LAYERS[:1], 90)
    assert found(file, tmp_path).table.bools("complete").tolist() == [True] * 4 + [False]


def test_inferences_of_the_same_kernels_have_the_same_shape(tmp_path: Path) -> None:
    file = trace_of(2)
    engine_call(file, 8000, LAYERS[::-1], 80)
    assert found(file, tmp_path).table.ints("kernel_sequence").tolist() == [0, 0, 1]


def test_an_execute_call_inside_an_enqueue_call_is_not_counted_twice(tmp_path: Path) -> None:
    file = trace_of(1)
    file.range("ExecutionContext::enqueue", 1001, 1049, domain=1)
    assert len(found(file, tmp_path).table) == 1


def test_a_trace_without_ranges_and_graphs_has_no_inferences(tmp_path: Path) -> None:
    file = NsysFile()
    file.kernel("k", 100, 1, process=PROCESS)
    assert len(found(file, tmp_path).table) == 0
