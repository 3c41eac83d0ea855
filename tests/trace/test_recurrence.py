"""Whether anything in a trace comes twice, and which launches are alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.groups import in_first_order
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.trace.inferences.recurrence import like_launches, nothing_recurs
from tests.nsys_file import PROCESS, NsysFile
from tests.reports import read_trace

Launched = tuple[str, int, int]  # a kernel's name, its grid, and the bytes copied before it


def program(launched: Sequence[Launched], *, begins: bool = True, waits: bool = True) -> NsysFile:
    """Kernels one after the other; the first call makes a context, the last waits for the GPU."""
    file, now = NsysFile(), 1_000
    if begins:
        file.call("cudaMalloc_v3020", now, now + 80_000_000, 1)
    now += 90_000_000
    for number, (name, grid, size) in enumerate(launched, 10):
        if size:
            file.call("cudaMemcpy_v3020", now, now + 2_000, 1_000 + number)
            file.add(
                "CUPTI_ACTIVITY_KIND_MEMCPY",
                start=now + 500, end=now + 1_500, deviceId=0, contextId=1, streamId=13,
                correlationId=1_000 + number, globalPid=PROCESS, bytes=size, copyKind=1,
                srcKind=1, dstKind=2,
            )  # fmt: skip
        file.call("cudaLaunchKernel_v7000", now + 3_000, now + 5_000, number)
        file.kernel(name, now + 6_000, number, grid=grid, took=3_000)
        now += 20_000
    if waits:
        file.call("cudaDeviceSynchronize_v3020", now, now + 1_000, 9)
    return file


ONCE = [("_Z1aPf", 1, 0), ("_Z1bPf", 1, 0), ("_Z1cPf", 1, 0)]
OTHER_SIZES = [("_Z3mulPf", 1, 24), ("_Z3mulPf", 1, 60), ("_Z3mulPf", 2, 60), ("_Z3addPf", 1, 24)]


@pytest.mark.parametrize(
    ("launched", "begins", "waits", "expected"),
    [
        (ONCE, True, True, True),
        (ONCE[:1], True, True, True),
        (OTHER_SIZES, True, True, True),  # other work each time, of one name
        (ONCE, False, True, False),  # what ran before the trace is not known
        (ONCE, True, False, False),  # nor what would have followed
        ([*ONCE, ONCE[0]], True, True, False),
        ([("_Z4stepPf", 30 - turn, 0) for turn in range(25)], True, True, False),  # a loop
        ([], True, True, False),
    ],
)
def test_nothing_recurs_only_where_a_whole_program_launched_each_kernel_once(
    tmp_path: Path, launched: Sequence[Launched], begins: bool, waits: bool, expected: bool
) -> None:
    file = program(launched, begins=begins, waits=waits)
    assert nothing_recurs(read_trace(file.write(tmp_path / "x.sqlite"))) is expected


def test_lost_events_may_have_been_what_recurs(tmp_path: Path) -> None:
    file = program(ONCE)
    file.add("DIAGNOSTIC_EVENT", timestamp=1, text="Not all CUDA events might have been collected.")
    assert not nothing_recurs(read_trace(file.write(tmp_path / "x.sqlite")))


def test_launches_are_alike_by_name_grid_and_what_was_copied_before(tmp_path: Path) -> None:
    launched = [*OTHER_SIZES, ("_Z3mulPf", 1, 60), ("_Z3addPf", 1, 24), ("_Z3addPf", 1, 0)]
    trace = read_trace(program(launched).write(tmp_path / "x.sqlite"))
    alike = like_launches(trace, np.arange(len(launched)), copied=True)
    number, _ = in_first_order(alike, len(np.unique(alike)))
    assert number.tolist() == [0, 1, 2, 3, 1, 3, 4]


@pytest.mark.parametrize(("sizes", "times"), [((24, 60, 40, 80), 0), ((24, 60, 24, 24), 4)])
def test_calls_of_one_kernel_with_other_copies_each_are_no_turns(
    tmp_path: Path, sizes: Sequence[int], times: int
) -> None:
    file = program([("_Z3mulPf", 1, size) for size in sizes])
    assert len(map_trace(read_trace(file.write(tmp_path / "x.sqlite")), ()).inferences) == times
