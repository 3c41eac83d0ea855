"""Calls that nsys lost are noticed, and the repetitions that lack them do not count."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsysmap.api import analyze
from nsysmap.trace.lacking import lacking
from nsysmap.trace.lost_calls import lost_calls
from nsysmap.trace.model import Trace
from tests.nsys_file import PROCESS, THREAD, NsysFile
from tests.reports import read_trace

AUTOGRAD = PROCESS | 9
STEP = 100_000


def training(*, steps: int, backward_until: int, evaluation: bool = False) -> NsysFile:
    """Forward on the main thread, backward on another, whose calls are there until that step; the
    ranges of all steps are there, but not those of backward in an evaluation.
    """
    file = NsysFile()
    for step in range(steps):
        at = 1_000 + STEP * step
        backward = step < backward_until
        file.range(f"iteration{step}", at, at + 90_000)
        file.range("forward", at + 100, at + 40_000)
        for number in range(4):
            launched = at + 200 + 9_000 * number
            file.launch(f"forward_{number}", launched, 10 * step + number, took=8_000)
        if backward or not evaluation:
            file.range("backward", at + 45_000, at + 85_000)
        if backward:
            for number in range(4):
                file.launch(
                    f"backward_{number}",
                    at + 46_000 + 9_000 * number,
                    10 * step + 4 + number,
                    thread=AUTOGRAD,
                    took=8_000,
                )
    return file


def trace_of(file: NsysFile, folder: Path) -> Trace:
    return read_trace(file.write(folder / "x.sqlite"))


def test_a_thread_whose_calls_end_before_the_ranges_that_held_them_has_lost_calls(
    tmp_path: Path,
) -> None:
    (one,) = lost_calls(trace_of(training(steps=20, backward_until=8), tmp_path))
    assert (one.thread, one.range_name, one.before, one.after) == (AUTOGRAD, "backward", 7, 12)
    assert one.since_ns == 1_000 + STEP * 7 + 46_000 + 27_000 + 2


def test_what_lacks_lost_calls_is_in_no_figure(tmp_path: Path) -> None:
    file = training(steps=20, backward_until=8).write(tmp_path / "x.sqlite")
    tables = analyze(file).tables
    lost = np.arange(len(tables.inferences)) >= 7  # the last of them may be cut, too
    assert len(lost) == 20
    np.testing.assert_array_equal(~tables.inferences.bools("complete"), lost)
    (gpu,) = tables.device_times
    assert gpu.real("busy_share") > 0.6  # 8 kernels of 8 us in 100; 0.45 with the later ones


def test_the_note_names_the_thread_and_the_moment(tmp_path: Path) -> None:
    trace = trace_of(training(steps=20, backward_until=8), tmp_path)
    (note,) = lacking(trace, "none")
    assert note.level == "warning"
    assert "thread 9" in note.text and "`backward`" in note.text and "--duration" in note.text


def test_a_thread_that_has_nothing_more_to_do_has_lost_nothing(tmp_path: Path) -> None:
    """Training and then evaluation, with the same range around both."""
    file = training(steps=20, backward_until=8, evaluation=True)
    assert lost_calls(trace_of(file, tmp_path)) == ()


def test_whole_traces_have_lost_nothing(tmp_path: Path) -> None:
    assert lost_calls(trace_of(training(steps=20, backward_until=20), tmp_path)) == ()


def test_work_that_another_thread_takes_over_is_not_lost(tmp_path: Path) -> None:
    file = NsysFile()
    for request in range(20):
        at = 1_000 + STEP * request
        file.range("request", at, at + 50_000)
        server = AUTOGRAD if request < 8 else PROCESS | 11
        file.launch("k", at + 1_000, request, thread=server)
    assert lost_calls(trace_of(file, tmp_path)) == ()


def test_kernels_whose_launches_alone_were_lost_are_no_lost_work(tmp_path: Path) -> None:
    file = training(steps=20, backward_until=8)
    for step in range(8, 20):
        file.kernel("backward_0", 1_000 + STEP * step + 46_000, 5_000 + step)
    assert lost_calls(trace_of(file, tmp_path)) == ()


def test_a_few_ranges_show_nothing(tmp_path: Path) -> None:
    assert lost_calls(trace_of(training(steps=4, backward_until=2), tmp_path)) == ()
    assert THREAD != AUTOGRAD
