"""A loop whose host needs no result can wait once, at its end: each step keeps its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.advice.program import CUDA, Program, program_of
from nsysmap.answer import gains
from nsysmap.answer.actions import RunFacts, UnitTime, actions, run_facts
from nsysmap.api import analyze
from tests.nsys_file import PROCESS, NsysFile
from tests.summary.test_summarize import answered, tables

STEP = 100_000


def loop(
    *, streams: int = 1, copy_kind: int = 0, memory: str = "cudaMalloc", turns: int = 40
) -> NsysFile:
    """Three kernels a step, perhaps on two streams, perhaps a copy of this kind, and a wait."""
    file = NsysFile()
    file.call(memory, 0, 20, 1)
    for turn in range(turns):
        now = 1000 + turn * STEP
        for at in range(3):
            number = 10 * (turn + 1) + at
            start = now + 20_000 * at
            file.call("cudaLaunchKernel", start, start + 2000, number)
            stream = 13 + at % streams
            file.kernel(f"k{at}(float*)", start + 4000, number, took=9000, stream=stream)
        if copy_kind:
            number, start = 10 * (turn + 1) + 3, now + 60_000
            file.call("cudaMemcpyAsync", start, start + 1000, number)
            file.add(
                "CUPTI_ACTIVITY_KIND_MEMCPY",
                start=start + 2000, end=start + 4000, deviceId=0, contextId=1, streamId=13,
                correlationId=number, globalPid=PROCESS, bytes=64, copyKind=copy_kind,
                srcKind=1, dstKind=2,
            )  # fmt: skip
        file.call("cudaDeviceSynchronize", now + 62_000, now + 80_000, 10 * (turn + 1) + 4)
    return file


@pytest.mark.parametrize(
    ("file", "in_order"),
    [
        (loop(), True),
        (loop(copy_kind=1), True),  # to the GPU
        (loop(copy_kind=2), False),  # the host may need what it copies back
        (loop(streams=2), False),
        (loop(memory="cudaMallocManaged"), False),  # the host may read it without a copy
    ],
)
def test_one_stream_without_results_for_the_host_is_in_order(
    tmp_path: Path, file: NsysFile, *, in_order: bool
) -> None:
    known = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.by_name()
    assert len(known["steady_state"])
    assert run_facts(known, program_of(known)).in_order is in_order


def test_waiting_once_then_saves_time_on_no_condition() -> None:
    rows = [answered("no-host-gap", 90, 80, 100), answered("async", 100, 80, 120)]
    for in_order in (True, False):
        runs = RunFacts(Program(CUDA), 1, repeats=True, in_order=in_order)
        found = actions(tables(rows, [], []), runs, units=10, unit_time=UnitTime(1000, 1000))
        waits = next(one for one in found if one.name == "async")
        assert waits.throughput_only is not in_order
        assert found[0].name == ("async" if in_order else "no-host-gap")
        assert gains.saving_words(waits).startswith("saves")
