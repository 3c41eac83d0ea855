"""What is said of programs that do everything once."""

from __future__ import annotations

from pathlib import Path

from nsysmap.answer import first
from nsysmap.answer.model import Answer
from nsysmap.api import analyze
from nsysmap.output.first import EVERYTHING, first_sections
from nsysmap.output.page.answer import bars_of
from nsysmap.text.page import Meter
from nsysmap.text.units import rounded
from tests.nsys_file import PROCESS, NsysFile

MS = 1_000_000
START = 100 * MS  # of the first launch, after the context is created


def whole(file: NsysFile, path: Path, *, end: int) -> Answer:
    """The answer of a program that also creates its context and waits for the GPU."""
    file.call("cudaMalloc", 0, 90 * MS, 1)
    file.call("cudaDeviceSynchronize", end - 10, end, 2)
    return analyze(file.write(path), rules=[]).summary


def copied(file: NsysFile, took: int, *, source: int = 0, rate: int = 1) -> None:
    """A copy to the GPU of so many bytes a ns, from pageable or (1) pinned memory."""
    file.call("cudaMemcpy", 91 * MS, 91 * MS + took, 3)
    file.add(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        start=91 * MS, end=91 * MS + took, deviceId=0, contextId=1, streamId=13, correlationId=3,
        globalPid=PROCESS, bytes=rate * took, copyKind=1, srcKind=source, dstKind=2,
    )  # fmt: skip


def test_a_single_kernel_is_no_busy_gpu(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("fill(float*)", START, 9, took=2000)
    answer = whole(file, tmp_path / "x.sqlite", end=START + 10_000)
    assert answer.trace.nothing_recurs
    gpu = first.main_gpu(answer)
    assert gpu is not None
    assert first.busy(answer, gpu) == ("one kernel, 2.00 µs, in 100 ms of trace",)
    sections = {one.key: one for one in first_sections(answer, EVERYTHING, 80)}
    assert not any(isinstance(block, Meter) for block in sections["gpu"].blocks)
    assert not bars_of(answer)
    # nobody has to capture it again, or to make 2 µs of 100 ms faster
    assert not answer.next_steps
    assert not first.todo(answer)
    assert not {"doubt", "do-first", "next"} & set(sections)


def test_of_work_in_a_small_part_of_the_trace_both_are_told(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(2):
        file.launch(f"k{number}(float*)", START + number * MS, 9 + number, took=MS // 2)
    answer = whole(file, tmp_path / "x.sqlite", end=START + 3 * MS)
    gpu = first.main_gpu(answer)
    assert gpu is not None
    told = first.busy(answer, gpu)[-1]
    assert rounded(gpu.window_ns) in told
    assert rounded(answer.trace.duration_ns) in told


def test_copies_of_pageable_memory_come_first_where_they_take_most(tmp_path: Path) -> None:
    for source, rate, title in ((0, 1, "pinned memory"), (1, 1, "faster"), (0, 10, "faster")):
        file = NsysFile()
        copied(file, 8 * MS, source=source, rate=rate)  # 10 GB/s is as fast as pinned memory
        file.launch("k(float*)", START, 9, took=2 * MS)
        answer = whole(file, tmp_path / f"{source}{rate}.sqlite", end=START + 3 * MS)
        (todo,) = first.todo(answer)
        assert title in todo.title
    assert not answer.next_steps


def test_without_kernels_no_loop_of_them_is_asked_for(tmp_path: Path) -> None:
    file = NsysFile()
    copied(file, 8 * MS)
    answer = whole(file, tmp_path / "x.sqlite", end=START + MS)
    assert "no kernels" in answer.errors[0].text
    assert not answer.next_steps


def test_a_kernel_of_little_of_the_time_is_not_what_to_do_first(tmp_path: Path) -> None:
    for took, first_of_all in ((2 * MS, True), (MS, False)):
        file = NsysFile()
        copied(file, 10, source=1)
        file.launch("k(float*)", 105 * MS, 9, took=took)
        answer = whole(file, tmp_path / f"{took}.sqlite", end=109 * MS)
        assert bool(first.todo(answer)) is first_of_all
