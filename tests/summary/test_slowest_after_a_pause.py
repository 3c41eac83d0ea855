"""A repetition that is long only by the pause before its loop is not the slowest one."""

from __future__ import annotations

from pathlib import Path

from nsysmap.answer.slowest import slowest
from tests.trace.test_before_the_loop import MS, Program


def test_the_first_after_another_loop_and_a_pause_is_not_the_slowest(tmp_path: Path) -> None:
    program = Program()
    for kernels in (40, 30, 20):
        for _ in range(20):
            program.launch([f"loop_{kernels}_{place}" for place in range(kernels)], 100_000)
        program.pause(60 * MS)
    found = slowest(program.tables(tmp_path))
    assert found is None or found.times_median < 1.5


def test_one_that_is_slow_within_its_loop_is(tmp_path: Path) -> None:
    program = Program()
    for kernels in (40, 30):
        for turn in range(20):
            took = 500_000 if (kernels, turn) == (30, 12) else 100_000
            program.launch([f"loop_{kernels}_{place}" for place in range(kernels)], took)
        program.pause(60 * MS)
    found = slowest(program.tables(tmp_path))
    assert found is not None and found.inference == 32
    assert found.times_median > 3
