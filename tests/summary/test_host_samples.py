"""What is advised of the host's own work where CPU samples show what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.advice.paste import CHANGES
from nsysmap.advice.program import CUDA, OTHER, Program
from nsysmap.advice.ways import how
from nsysmap.answer import gains
from nsysmap.answer.actions import RunFacts, UnitTime, _sampled, actions, sampled_code
from nsysmap.answer.model import Action, HostEvidence
from nsysmap.core.result_schema import HOST_SAMPLES
from nsysmap.core.table import Table, Text
from nsysmap.core.trace_schema import OTHER_HOST, PYTHON
from tests.reports import analysis
from tests.summary.test_summarize import answered, tables

NONE = HostEvidence("none", "no CUDA call", "no CUDA call")
UNIT = UnitTime(1000, 1000)


def samples(*rows: tuple[str, str, str | None, int], each_ns: int = 100) -> Table:
    """Samples: whose code, the library, the function and how many."""
    counts = np.array([row[3] for row in rows], np.int64)
    return Table(
        HOST_SAMPLES,
        {
            "owner": Text.of(row[0] for row in rows),
            "library": Text.of(row[1] for row in rows),
            "function": Text.of(row[2] for row in rows),
            "samples": counts,
            "share": counts / max(counts.sum(), 1),
            "time_ns": counts * each_ns,
        },
    )


IN_MPI = samples(
    ("mpi", "libuct.so.0", "MPI_Barrier", 50),
    ("mpi", "libmpi.so.40", "MPI_Barrier", 20),
    ("mpi", "libmpi.so.40", "MPI_Send", 5),
    ("program", "solver", "step_", 25),
)


def test_samples_are_added_up_by_whose_code_they_are_in() -> None:
    found = sampled_code(IN_MPI, idle_ns=10_000)
    assert [(one.owner, one.share, one.function) for one in found] == [
        ("mpi", 0.75, "MPI_Barrier"),
        ("program", 0.25, "step_"),
    ]
    apart = samples(("library", "a.so", None, 15), ("library", "b.so", None, 15))
    assert [one.library for one in sampled_code(apart, idle_ns=3000)] == ["a.so", "b.so"]


def test_few_samples_tell_nothing() -> None:
    assert not sampled_code(samples(("mpi", "libmpi.so", "MPI_Barrier", 8)), idle_ns=800)
    # the thread slept nearly all the time
    assert not sampled_code(IN_MPI, idle_ns=100 * 10_000)
    assert not sampled_code(samples(), idle_ns=800)


def test_samples_are_read_only_where_much_of_the_time_is_the_hosts_own_work() -> None:
    known = analysis("bert_trt10", "sync.sqlite").tables.by_name()
    window_ns = sum(one.integer("window_ns") for one in known["device_times"])
    gap = known["gaps"].take(np.arange(1))

    def sampled(share: float, *, taken: bool) -> HostEvidence | None:
        spans = {"start_ns": np.array([0]), "end_ns": np.array([1])}
        gaps = Table(
            gap.spec, {**gap.columns, **spans, "dur_ns": np.array([round(share * window_ns)])}
        )
        capture = {**known["capture"].columns, "has_cpu_samples": np.array([taken])}
        tables = {
            "device_times": known["device_times"],
            "capture": Table(known["capture"].spec, capture),
        }
        many = samples(("mpi", "libmpi.so", "MPI_Wait", 100), each_ns=round(window_ns / 100))
        tables |= {"host_samples": many} if taken and share > 0.05 else {}  # else it is not asked
        return _sampled(NONE, tables, gaps)

    assert sampled(0.04, taken=True) == NONE
    assert sampled(0.5, taken=False) == NONE
    found = sampled(0.5, taken=True)
    assert found is not None
    assert found.waits_for_ranks


def against_host_work(program: Program, evidence: HostEvidence, **facts: bool) -> Action:
    runs = RunFacts(program, 1, evidence, repeats=True, **facts)
    rows = [answered("no-host-gap", 400, 300, 500), answered("two-in-flight", 300, 200, 400)]
    found = actions(tables(rows, [], []), runs, units=10, unit_time=UNIT)
    return next(one for one in found if one.name == "no-host-gap")


def test_a_host_in_mpi_waits_for_other_ranks_and_no_thread_is_advised() -> None:
    evidence = replace(NONE, sampled=sampled_code(IN_MPI, idle_ns=10_000))
    found = against_host_work(Program(OTHER), evidence, downloads=True, uploads=True)
    assert evidence.waits_for_ranks
    assert found.paste is None
    assert "MPI_Wait" in (found.change or "")
    assert "another thread" not in (found.change or "")
    # its share of what the host's whole work costs, at most, and perhaps nothing
    assert (found.saving.ns, found.saving.low_ns, found.saving.high_ns) == (300, 0, 300)
    assert not found.sure
    assert not found.after_results
    assert "MPI (75% of its samples" in gains._where(found)
    runs = RunFacts(Program(OTHER), 1, evidence, repeats=True)
    rows = [answered("two-in-flight", 300, 200, 400)]
    assert not actions(tables(rows, [], []), runs, units=10, unit_time=UNIT)


def test_the_loop_s_own_work_is_told_where_samples_show_it() -> None:
    julia = samples(("julia", "libjulia.so", "jl_apply", 60), ("program", "julia", None, 20))
    evidence = replace(NONE, sampled=sampled_code(julia, idle_ns=8000))
    found = against_host_work(Program(OTHER), evidence, has_samples=True)
    assert (found.paste or "").startswith("perf record")
    assert found.change is None  # the reason stands beside it, once
    assert "Julia's runtime (75% of its samples, mostly in jl_apply)" in gains._where(found)


def test_code_of_several_owners_is_named_where_none_has_most_samples() -> None:
    several = samples(("julia", "libjulia.so", None, 20), ("program", "main", None, 18))
    mostly = replace(NONE, sampled=sampled_code(several, idle_ns=3800))
    assert mostly.words.count("%") == 1
    even = samples(
        ("julia", "j.so", None, 20), ("program", "main", None, 20), ("cuda", "c", None, 9)
    )
    assert replace(NONE, sampled=sampled_code(even, idle_ns=4900)).words.count("%") == 2


@pytest.mark.parametrize("osrt", [True, False])
@pytest.mark.parametrize("sampled", [True, False])
def test_a_capture_that_is_advised_adds_what_this_one_lacks(*, sampled: bool, osrt: bool) -> None:
    found = against_host_work(Program(OTHER), NONE, has_samples=sampled, has_osrt=osrt)
    line = found.paste or ""
    assert ("--sampling-period=" in line, "--sample=" in line) == (sampled, not sampled)
    assert ("osrt" in line) == (not osrt)


@pytest.mark.parametrize(
    ("program", "cpp"),
    [
        (Program(CUDA), True),
        (Program("tensorrt", host=OTHER_HOST), True),
        (Program("tensorrt"), False),  # Python may call it
        (Program("tensorrt", host=PYTHON), False),
        (Program(OTHER), False),
    ],
)
def test_cpp_is_for_programs_that_are_known_to_be_of_it(program: Program, *, cpp: bool) -> None:
    found = against_host_work(program, NONE, uploads=True)
    assert ("std::async" in (found.paste or "")) == cpp
    assert found.paste or found.change


@pytest.mark.parametrize("change", ["cuda-graph", "async", "pinned-copies"])
def test_a_program_in_julia_is_told_its_own_call(change: str) -> None:
    made = how(CHANGES[change], Program(OTHER, julia=True))
    assert (made.paste or "").startswith("CUDA.")
    others = how(CHANGES[change], Program(OTHER))
    assert others.paste is None
    assert others.change
