"""What a program repeats before its loop begins is no step of it, and a pause is nobody's time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nsysmap.answer import first
from nsysmap.answer.summarize import summarize
from nsysmap.api import analyze
from nsysmap.core.table import Table
from tests.nsys_file import NsysFile

MS = 1_000_000


class Program:
    """Launches forwards of many kernels, and the trials of a library of few."""

    def __init__(self) -> None:
        self.file, self.now, self.correlation = NsysFile(), 1000, 0

    def launch(self, names: list[str], took: int) -> None:
        for name in names:
            self.correlation += 1
            self.file.launch(name, self.now, self.correlation, took=took)
            self.now += took + 20_000
        self.file.call("cudaStreamSynchronize_v3020", self.now, self.now + 9, 10**6 + self.now)
        self.now += 10_000

    def trials(self, number: int, times: int) -> None:
        for _ in range(times):
            self.launch([f"trial_{number}_{place}" for place in range(1 + number % 3)], 300_000)

    def forwards(self, times: int, *, took: int = 100_000) -> None:
        for _ in range(times):
            self.launch([f"layer_{place}" for place in range(40)], took)

    def pause(self, ns: int) -> None:
        self.now += ns

    def tables(self, folder: Path) -> Mapping[str, Table]:
        return analyze(self.file.write(folder / "x.sqlite"), rules=[]).tables.by_name()


def steady(tables: Mapping[str, Table]) -> Table:
    inferences = tables["inferences"]
    return inferences.take(inferences.bools("complete") & ~inferences.bools("warmup"))


def test_trials_before_the_first_step_are_no_steps(tmp_path: Path) -> None:
    program = Program()
    for number in range(6):
        program.trials(number, 4)
    program.pause(3 * MS)
    program.forwards(20)
    assert set(steady(program.tables(tmp_path)).ints("kernels").tolist()) == {40}


def test_the_pause_before_the_first_step_is_in_no_time(tmp_path: Path) -> None:
    program = Program()
    program.trials(1, 5)
    program.trials(2, 5)
    program.pause(900 * MS)
    program.forwards(20)
    times = program.tables(tmp_path)["inference_times"].ints("time_ns")
    counted = times[times >= 0]
    assert counted.max() < 2 * np.median(counted)


def test_a_long_part_of_another_kind_before_them_counts(tmp_path: Path) -> None:
    """A benchmark of a small model and then of a large one."""
    program = Program()
    for _ in range(20):
        program.launch([f"small_{place}" for place in range(10)], 200_000)
    program.forwards(20)
    assert set(steady(program.tables(tmp_path)).ints("kernels").tolist()) == {10, 40}


def test_what_comes_again_between_the_steps_counts(tmp_path: Path) -> None:
    program = Program()
    for _ in range(12):
        program.trials(2, 1)
        program.forwards(1)
    found = steady(program.tables(tmp_path))
    assert len(found) >= 11


def test_a_pause_between_two_runs_is_told_not_to_be_in_the_figures(tmp_path: Path) -> None:
    program = Program()
    program.forwards(30)
    program.pause(60 * MS)
    program.forwards(30)
    tables = program.tables(tmp_path)
    answer = summarize(tables)
    (gpu,) = answer.gpus
    assert 60 * MS < gpu.left_out_ns < 75 * MS
    assert any("between runs" in line[-1] for line in first.times(answer))


def test_how_busy_the_gpu_was_is_of_the_repetitions_that_the_time_is_of(tmp_path: Path) -> None:
    """The GPU waits ten times within the first of four: no time is its."""
    program = Program()
    for pause in (10 * MS, 0, 0, 0):
        called = program.now
        for place in range(20):
            program.correlation += 1
            called += 1_000
            program.now += pause + 100_000
            program.file.call("cudaLaunchKernel_v7000", called, called + 2, program.correlation)
            program.file.kernel(f"layer_{place}", program.now, program.correlation, took=90_000)
        program.now += 100_000
        program.file.call(
            "cudaStreamSynchronize_v3020", called + 9, program.now, 10**6 + program.now
        )
        program.now += 1_000
    tables = program.tables(tmp_path)
    answer = summarize(tables)
    (gpu,) = answer.gpus
    assert answer.traced is not None and answer.traced.ns < 4 * MS
    assert gpu.busy_share is not None and gpu.busy_share > 0.8
    assert (gpu.slow_first, gpu.left_out_ns) == (1, 0) and gpu.slow_first_ns > 190 * MS
    assert any("of the first repetition" in line[0] for line in first.times(answer))
    (window,) = tables["device_times"]
    assert window.integer("inferences") == 3


def test_a_last_repetition_of_other_kernels_is_not_in_the_time(tmp_path: Path) -> None:
    """The last batch of a data set is smaller, and libraries choose other kernels for it."""
    program = Program()
    program.forwards(6)
    names = [f"layer_{place}" if place % 4 else f"small_layer_{place}" for place in range(40)]
    program.launch(names, 30_000)
    tables = program.tables(tmp_path)
    (loop,) = tables["inference_loops"].records()
    assert loop["steady"] == 6
    assert loop["mean_ns"] == 40 * 120_000 + 10_000


def test_other_kernels_now_and_then_are_in_the_time(tmp_path: Path) -> None:
    program = Program()
    names = [f"layer_{place}" if place % 4 else f"small_layer_{place}" for place in range(40)]
    for times in (4, 3):
        program.forwards(times)
        program.launch(names, 30_000)
    (loop,) = program.tables(tmp_path)["inference_loops"].records()
    assert loop["steady"] == 9


def test_the_pause_between_two_runs_is_idle_time_that_the_window_leaves_out(
    tmp_path: Path,
) -> None:
    program = Program()
    program.forwards(10)
    program.pause(900 * MS)
    program.forwards(10)
    gaps = program.tables(tmp_path)["gaps"]
    left_out = gaps.bools("left_out")
    assert left_out.any()
    assert int(gaps.ints("dur_ns")[left_out].max()) > 800 * MS
    assert int(gaps.ints("dur_ns")[~left_out].max()) < 100 * MS
