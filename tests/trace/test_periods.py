"""Inferences found by what repeats, in whole traces: streams, threads, engines and graph launches
kept apart.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING, IntArray
from nsysmap.trace.inferences.periods import Periods, find_periods
from nsysmap.trace.model import Trace
from tests.nsys_file import PROCESS, THREAD, NsysFile
from tests.places import FIXTURES
from tests.reports import read_trace

UNCUT = {
    "bert_trt10/sync.sqlite": 56,
    "bert_trt10/graph.sqlite": 56,
    "bert_trt103/graph.sqlite": 38,
    "bert_trt85/sync.sqlite": 71,
}


class Program:
    """Writes launches and waits one after the other, each on the thread and stream that it is
    told.
    """

    def __init__(self) -> None:
        self.file = NsysFile()
        self.now = 1000
        self.correlation = 0

    def launch(self, name: str, *, stream: int = 13, thread: int = THREAD) -> None:
        self.correlation += 1
        self.file.call(
            "cudaLaunchKernel_v7000", self.now, self.now + 2, self.correlation, thread=thread
        )
        self.file.kernel(
            name, self.now + 10, self.correlation, stream=stream, process=thread & ~0xFFFFFF
        )
        self.now += 20

    def wait(self, *, thread: int = THREAD) -> None:
        self.correlation += 1
        self.file.call(
            "cudaStreamSynchronize_v3020", self.now, self.now + 5, self.correlation, thread=thread
        )
        self.now += 30

    def trace(self, folder: Path) -> Trace:
        return read_trace(self.file.write(folder / "x.sqlite"))


def parts(periods: Periods) -> list[list[int]]:
    """The kernels (rows) of each inference."""
    count = int(periods.inference.max()) + 1
    return [np.flatnonzero(periods.inference == number).tolist() for number in range(count)]


def true_inferences(trace: Trace, size: int) -> IntArray:
    return np.arange(len(trace.kernels)) // size


@pytest.mark.parametrize("report", UNCUT)
def test_a_captures_inferences_are_found_without_its_ranges(report: str) -> None:
    trace = read_trace(FIXTURES / report)
    found = find_periods(trace)
    assert found.inference.tolist() == true_inferences(trace, UNCUT[report]).tolist()
    assert found.slot.tolist() == (np.arange(len(trace.kernels)) % UNCUT[report]).tolist()
    assert found.complete.all()
    assert set(found.shape.tolist()) == {0}


@given(st.sampled_from(sorted(UNCUT)), st.data())
def test_a_capture_cut_anywhere_keeps_its_inferences(report: str, data: st.DataObject) -> None:
    trace, size = cached(report), UNCUT[report]
    count = len(trace.kernels)
    begin = data.draw(st.integers(0, count - 3 * size))
    end = data.draw(st.integers(begin + 3 * size, count))
    found = find_periods(trace, np.arange(begin, end))
    true = true_inferences(trace, size)[begin:end]
    assert found.inference[begin:end].tolist() == (true - true[0]).tolist()
    assert (found.inference[:begin] == MISSING).all()
    assert (found.inference[end:] == MISSING).all()
    assert found.slot[begin:end].tolist() == (np.arange(begin, end) % size).tolist()


_READ: dict[str, Trace] = {}


def cached(report: str) -> Trace:
    if report not in _READ:
        _READ[report] = read_trace(FIXTURES / report)
    return _READ[report]


def test_without_any_host_call_the_pauses_of_the_gpu_tell() -> None:
    trace = cached("bert_trt10/sync.sqlite")
    unknown = np.full(len(trace.kernels), MISSING)
    columns = dict.fromkeys(("launch", "launch_start_ns", "launch_end_ns", "thread"), unknown)
    bare = replace(
        trace,
        api_calls=trace.api_calls.take(np.zeros(0, np.int64)),
        kernels=trace.kernels.with_columns(trace.kernels.spec, columns),
    )
    assert (
        find_periods(bare, np.arange(20, 2000)).inference[20:2000].tolist()
        == true_inferences(trace, 56)[20:2000].tolist()
    )


def test_two_engines_that_one_thread_runs_on_two_streams_stay_apart(tmp_path: Path) -> None:
    program = Program()
    for _ in range(4):
        for name in ("a1", "a2", "a3"):
            program.launch(name, stream=1)
        for name in ("b1", "b2"):
            program.launch(name, stream=2)
        program.wait()
    assert parts(find_periods(program.trace(tmp_path))) == [
        [at + 5 * turn for at in kernels] for turn in range(4) for kernels in ([0, 1, 2], [3, 4])
    ]


def test_an_auxiliary_stream_belongs_to_the_inference_that_forks_to_it(tmp_path: Path) -> None:
    program = Program()
    for _ in range(4):
        for name, stream in (("a1", 1), ("x1", 2), ("a2", 1), ("x2", 2), ("a3", 1)):
            program.launch(name, stream=stream)
        program.wait()
    assert parts(find_periods(program.trace(tmp_path))) == [
        [at + 5 * turn for at in range(5)] for turn in range(4)
    ]


def test_two_threads_with_inferences_in_flight_at_once_are_never_mixed(tmp_path: Path) -> None:
    program = Program()
    other = PROCESS | 8
    for _ in range(4):
        for number in range(3):
            program.launch(f"k{number}", stream=1)
            program.launch(f"k{number}", stream=2, thread=other)
        program.wait()
        program.wait(thread=other)
    trace = program.trace(tmp_path)
    found = find_periods(trace)
    stream = trace.kernels.ints("stream")
    for kernels in parts(found):
        assert len(kernels) == 3
        assert len(set(stream[kernels].tolist())) == 1
    assert len(parts(found)) == 8


def test_two_profiles_in_turn_are_two_shapes(tmp_path: Path) -> None:
    program = Program()
    for turn in range(6):
        for name in ("in", "small", "out") if turn % 2 else ("in", "large", "large", "out"):
            program.launch(name)
        program.wait()
    found = find_periods(program.trace(tmp_path))
    assert [len(kernels) for kernels in parts(found)] == [4, 3] * 3
    assert found.shape.tolist() == [0, 1] * 3
    assert found.complete.all()


def test_a_trace_of_one_inference_has_one(tmp_path: Path) -> None:
    program = Program()
    for name in ("embed", *("qkv", "attention", "project") * 6, "head"):
        program.launch(name)
    assert parts(find_periods(program.trace(tmp_path))) == [list(range(20))]


def test_kernels_that_were_not_asked_for_belong_to_nothing(tmp_path: Path) -> None:
    program = Program()
    for _ in range(3):
        program.launch("a")
        program.launch("b")
        program.wait()
    found = find_periods(program.trace(tmp_path), np.arange(2, 6))
    assert found.inference.tolist() == [MISSING, MISSING, 0, 0, 1, 1]


def test_no_kernels_no_inferences(tmp_path: Path) -> None:
    program = Program()
    program.wait()
    found = find_periods(program.trace(tmp_path))
    assert len(found.inference) == len(found.shape) == 0
