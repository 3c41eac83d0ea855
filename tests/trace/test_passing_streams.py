"""A stream for each piece of work, used once, hides no loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.trace.inferences.passing_streams import on_one_stream
from tests.nsys_file import THREAD, NsysFile
from tests.reports import read_trace


def program(streams: list[int], *, threads: int = 1) -> NsysFile:
    """Six kernels on each of these streams, one stream after the other."""
    file = NsysFile()
    for step, stream in enumerate(streams):
        for place in range(6):
            at, number = 1_000 + 1_000_000 * step + 20_000 * place, 6 * step + place
            thread = THREAD + step % threads
            file.call("cudaLaunchKernel_v7000", at, at + 2, number, thread=thread)
            file.kernel(f"k{place}", at + 10, number, stream=stream, took=9_000)
    return file


def test_a_loop_with_a_new_stream_each_time_is_found(tmp_path: Path) -> None:
    inferences = analyze(
        program(list(range(14, 34))).write(tmp_path / "x.sqlite"), rules=[]
    ).tables.inferences
    assert inferences.ints("kernels").tolist() == [6] * 20
    assert inferences.ints("stream").tolist() == list(range(14, 34))  # as they were


@pytest.mark.parametrize(
    ("streams", "threads"),
    [
        ([13, 14] * 10, 1),  # two in turns
        ([13, 14, 15], 1),  # too few
        ([13] * 20, 1),
    ],
)
def test_streams_that_are_used_again_stay_as_they_are(
    tmp_path: Path, streams: list[int], threads: int
) -> None:
    trace = read_trace(program(streams, threads=threads).write(tmp_path / "x.sqlite"))
    assert on_one_stream(trace) is trace


def test_a_stream_of_several_threads_stays_as_it_is(tmp_path: Path) -> None:
    streams = [13, *range(14, 34), 13]
    trace = read_trace(program(streams, threads=2).write(tmp_path / "x.sqlite"))
    stream = on_one_stream(trace).kernels.ints("stream")
    assert np.count_nonzero(stream == 13) == 12
