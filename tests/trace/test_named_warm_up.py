"""What a program's own range calls its warm-up is told beside the loop that it measures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nsysmap.answer import first
from nsysmap.answer.summarize import summarize
from nsysmap.api import analyze
from nsysmap.core.table import Table
from tests.trace.test_before_the_loop import Program

MS = 1_000_000


def steps(program: Program, times: int) -> None:
    """Training steps, each in a range of its own."""
    for number in range(times):
        begin = program.now
        program.launch([f"step_{place}" for place in range(60)], 100_000)
        program.file.range(f"Warm-up Step {number}", begin, program.now - 1)
        program.now += 10


def forwards(program: Program, times: int) -> None:
    for _ in range(times):
        program.launch([f"layer_{place}" for place in range(40)], 50_000)


def counting(tables: Mapping[str, Table]) -> list[int]:
    inferences = tables["inferences"]
    rows = inferences.take(inferences.bools("complete") & ~inferences.bools("warmup"))
    return [row.integer("kernels") for row in rows]


def test_the_loop_after_a_marked_warm_up_is_the_one_that_is_told(tmp_path: Path) -> None:
    program = Program()
    steps(program, 5)
    program.file.range("Warm-up", 900, program.now - 5)
    forwards(program, 10)
    tables = program.tables(tmp_path)
    assert counting(tables) == [40] * 10
    answer = summarize(tables)
    assert answer.traced is not None and answer.traced.ns < 4 * MS
    found = answer.named_warm_up
    assert found is not None
    assert (found.range, found.kernels, found.times) == ("Warm-up", 60, 4)
    assert 7 * MS < found.median_ns < 8 * MS
    assert any(found.range in line[0] for line in first.times(answer))


def test_a_warm_up_of_the_same_kernels_does_not_count(tmp_path: Path) -> None:
    program = Program()
    forwards(program, 5)
    program.file.range("warmup", 900, program.now - 5)
    forwards(program, 10)
    tables = program.tables(tmp_path)
    assert counting(tables) == [40] * 10
    assert summarize(tables).named_warm_up is None


def test_where_all_is_called_a_warm_up_all_counts(tmp_path: Path) -> None:
    program = Program()
    forwards(program, 10)
    program.file.range("warm up", 900, program.now - 5)
    assert len(counting(program.tables(tmp_path))) >= 9


def test_what_repeats_after_all_marked_steps_counts_beside_them(tmp_path: Path) -> None:
    program = Program()
    for _ in range(12):
        begin = program.now
        program.launch([f"step_{place}" for place in range(60)], 100_000)
        program.file.range("train", begin, program.now - 1)
        program.now += 10
    forwards(program, 12)
    tables = analyze(program.file.write(tmp_path / "x.sqlite"), rules=[]).tables.by_name()
    assert set(counting(tables)) == {60, 40}
