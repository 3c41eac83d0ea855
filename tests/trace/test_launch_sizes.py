"""Repetitions of the same kernels with other launch sizes are other work where each size comes many
times in a row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsysmap.core.table import MISSING
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.trace.inferences.launch_sizes import sequences_by_sizes
from tests.nsys_file import THREAD, NsysFile
from tests.reports import read_trace

US = 1000


def numbers(sizes: list[int], busy: list[int]) -> list[int]:
    """The sequences of that many repetitions of the same kernels."""
    count = len(sizes)
    found = sequences_by_sizes(
        np.zeros(count, np.int64),
        np.array(sizes, np.uint64),
        np.zeros(count, np.int64),
        np.array(busy, np.int64),
        np.ones(count, np.bool_),
    )
    return [int(one) for one in found]


def test_two_sizes_one_after_the_other_are_apart() -> None:
    assert numbers([1] * 10 + [2] * 10, [100] * 10 + [500] * 10) == [0] * 10 + [1] * 10


def test_a_size_that_comes_again_is_the_same() -> None:
    sizes = [1] * 9 + [2] * 9 + [1] * 9
    assert numbers(sizes, [100 * size for size in sizes]) == [0] * 9 + [1] * 9 + [0] * 9


def test_sizes_that_take_turns_are_one_loop() -> None:
    assert numbers([1, 2] * 10, [100, 500] * 10) == [0] * 20


def test_a_size_that_grows_a_little_each_time_is_of_one_loop() -> None:
    """A decoder's attention has a larger grid every so many tokens."""
    steps = [step for step in range(20) for _ in range(16)]
    assert set(numbers(steps, [100 + 5 * step for step in steps])) == {0}


def test_sizes_of_the_same_time_are_one_loop() -> None:
    assert set(numbers([1] * 10 + [2] * 10, [100] * 20)) == {0}


def test_inferences_without_kernels_keep_none() -> None:
    sequence = np.array([0] * 9 + [MISSING] + [0] * 9)
    sizes = np.array([1] * 10 + [2] * 9, np.uint64)
    busy = np.array([100] * 10 + [500] * 9)
    found = sequences_by_sizes(sequence, sizes, np.zeros(19, np.int64), busy, np.ones(19, np.bool_))
    assert found.tolist() == [0] * 9 + [MISSING] + [1] * 9


def test_a_first_loop_is_no_warm_up_of_later_ones_on_smaller_data(tmp_path: Path) -> None:
    """A hundred turns on one size, a hundred of another function, then nine on small data."""
    file, now, correlation = NsysFile(), 1000, 0
    loops = ((100, "far", 64, 300 * US), (100, "near", 64, 300 * US), (9, "far", 2, 5 * US))
    for times, name, grid, took in loops:
        for _ in range(times):
            for kernel in (name, "sort", "root"):
                correlation += 1
                file.call("cudaLaunchKernel_v7000", now, now + 2, correlation, thread=THREAD)
                file.kernel(kernel, now + 10, correlation, grid=grid, took=took)
                now += took + 20
            file.call("cudaStreamSynchronize_v3020", now, now + 9, 10**6 + now, thread=THREAD)
            now += 100
    rows = map_trace(read_trace(file.write(tmp_path / "x.sqlite")), []).inferences
    assert len(rows) == 209
    assert np.count_nonzero(rows.bools("warmup")) < 5
    _, size = np.unique(rows.ints("kernel_sequence"), return_counts=True)
    assert size.tolist() == [100, 100, 9]
