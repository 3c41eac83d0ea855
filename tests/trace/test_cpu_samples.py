"""What CPU samples show a host thread to have been in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nsysmap.core.table import IntArray, Text
from nsysmap.inputs.nsys.own_reader import own_tables
from nsysmap.inputs.nsys.tables import NsysTables, in_memory
from nsysmap.trace.cpu_samples import CpuSamples, Frame, HostCode, code_of, has_samples
from tests.made_report import Made, message

MODULES = "[Unknown]", "/opt/mpi/lib/libmpi.so.40.20", "/home/name/run/solver", "/usr/lib/libm.so.6"
STRINGS = (*MODULES, "MPI_Barrier", "main", "step_", "sin")
MPI_FRAMES = ((4, 1), (5, 2))  # string numbers of functions and of their modules
OWN_FRAMES = ((7, 3), (6, 2), (5, 2))


@pytest.mark.parametrize(
    ("frames", "owner", "function"),
    [
        ([("uct_progress", "libuct.so.0"), ("PMPI_Barrier", "libmpi.so.40")], "mpi", "MPI_Barrier"),
        ([("poll", "libc.so.6"), ("mpi_allreduce__", "solver")], "mpi", "MPI_Allreduce"),
        ([("ompi_barrier_f", "libmpi_mpifh.so.40"), ("MAIN_", "solver")], "mpi", "MPI_Barrier"),
        ([("0x12", "libopen-pal.so.40")], "mpi", None),
        ([("_PyEval_EvalFrameDefault", "python3.11")], "python", "_PyEval_EvalFrameDefault"),
        ([("malloc", "libc-2.28.so"), ("jl_gc_alloc", "libjulia-internal.so.1.9")], "julia", "jl_"),
        ([("0x7f", "libcuda.so.550.54")], "cuda", None),
        ([("0x7f", "libcudnn_ops.so.9")], "library", None),
        ([("0x7f", "libToolsInjection64.so")], "profiler", None),
        ([("__mth_i_dsin", "libnvcpumath-avx512.so"), ("pmove_", "gem_main")], "program", "pmove_"),
        ([("0xffff", "[kernel.kallsyms]")], "system", None),
        ([("0x15", "//anon"), ("[Max depth]", "[Max depth]")], "generated", None),
        ([("0x15", "//anon"), ("jl_apply", "libjulia.so")], "generated", None),
        ([("0x15", "[Unknown]"), ("0x16", "[Unknown]")], "unknown", None),
        ([("0x15", "[Unknown]"), ("main", "solver")], "program", "main"),
        ([], "unknown", None),
        ([("fill", r"C:\tool\solver.exe")], "program", "fill"),
    ],
)
def test_whose_code_a_stack_is_in(
    frames: list[tuple[str, str]], owner: str, function: str | None
) -> None:
    found = code_of([Frame(name, f"/path/to/{module}") for name, module in frames])
    assert found.owner == owner
    assert (found.function or "")[: len(function or "")] == (function or "")
    assert (found.function is None) == (function is None)
    assert "/" not in (found.library or "")
    assert "\\" not in (found.library or "")


def tables_with(stacks: Sequence[Sequence[tuple[int, int]]], start: IntArray) -> NsysTables:
    """Tables with a sample of thread 9 at each of these times, the last of another thread."""
    ids = np.arange(1, len(stacks) + 1)
    thread = np.full(len(stacks), 9)
    thread[-1] = 8
    rows = [
        (number, symbol, module, depth)
        for number, stack in zip(ids.tolist(), stacks, strict=True)
        for depth, (symbol, module) in enumerate(stack)
    ]
    chains = np.array(rows, np.int64).T
    return in_memory(
        Path("made"),
        "SQLite",
        {
            "StringIds": {"id": np.arange(len(STRINGS)), "value": Text.of(STRINGS)},
            "COMPOSITE_EVENTS": {"id": ids, "start": start, "globalTid": thread},
            "SAMPLING_CALLCHAINS": dict(
                zip(("id", "symbol", "module", "stackDepth"), chains, strict=True)
            ),
        },
    )


def test_samples_of_the_thread_within_the_stretches_count() -> None:
    stacks = [MPI_FRAMES] * 6 + [OWN_FRAMES] * 4
    samples = CpuSamples(tables_with(stacks, np.arange(10) * 100))
    found = samples.during(np.array([9, 9]), np.array([600, 100]), np.array([1000, 301]))
    # at 100, 200, 300 in MPI, at 600, 700, 800 in the program; at 900 another thread ran
    assert (found.samples, found.read, found.period_ns) == (6, 6, 100)
    assert set(found.code) == {
        HostCode("mpi", "libmpi.so.40.20", "MPI_Barrier", 3),
        HostCode("program", "solver", "step_", 3),
    }


def test_of_many_samples_the_stacks_of_a_thousand_are_read() -> None:
    stacks = [MPI_FRAMES, OWN_FRAMES] * 5000
    samples = CpuSamples(tables_with(stacks, np.arange(10_000) * 100))
    found = samples.during(np.array([9]), np.array([0]), np.array([2_000_000]))
    assert (found.samples, found.read) == (9_999, 1000)
    assert {one.owner: round(one.samples / 1000, 1) for one in found.code} == {
        "mpi": 0.5,
        "program": 0.5,
    }


def test_without_samples_there_is_nothing() -> None:
    assert not CpuSamples().during(np.array([9]), np.array([0]), np.array([9])).code
    empty = in_memory(Path("made"), "SQLite", {"StringIds": {"id": np.arange(0)}})
    assert not has_samples(empty)


def test_a_report_that_nsysmap_reads_itself_has_the_same_samples(tmp_path: Path) -> None:
    def sample(start: int, *frames: tuple[int, int]) -> bytes:
        stack = [(4, [(1, symbol), (2, module), (8, 77), (9, 8)]) for symbol, module in frames]
        return message((1, 31), (104, [(1, start), (3, 0), *stack, (6, 1), (11, 9), (12, 1)]))

    stacks = [MPI_FRAMES, OWN_FRAMES, OWN_FRAMES, MPI_FRAMES, OWN_FRAMES]
    path = tmp_path / "made.nsys-rep"
    events = [sample(100 * at, *stack) for at, stack in enumerate(stacks)]
    path.write_bytes(Made(events=events, strings=list(STRINGS), per_block=2).data())
    tables = own_tables(path)
    assert has_samples(tables)
    found = CpuSamples(tables).during(np.array([9]), np.array([100]), np.array([400]))
    assert {one.owner: one.samples for one in found.code} == {"program": 2, "mpi": 1}
    stored = tables.read("SAMPLING_CALLCHAINS", ("id", "symbol", "module", "stackDepth"))
    every = [
        (number + 1, symbol, module, depth)
        for number, stack in enumerate(stacks)
        for depth, (symbol, module) in enumerate(stack)
    ]
    assert list(zip(*(stored[name].tolist() for name in stored), strict=True)) == every


def test_samples_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    path = tmp_path / "made.nsys-rep"
    sample = message((1, 31), (104, [(1, 100), (4, b"\x80"), (11, 9)]))
    path.write_bytes(Made(events=[sample], strings=list(STRINGS)).data())
    tables = own_tables(path)
    stretch = (np.array([9]), np.array([0]), np.array([400]))
    assert not CpuSamples(tables).during(*stretch).samples
    path.unlink()
    assert not CpuSamples(tables).during(*stretch).samples
