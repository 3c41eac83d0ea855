"""How wide the ranges of predictions are: the conformal factor that benchmarks/whatif.py prints,
and what the ranges of programs are made of.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.whatif.changes import as_cuda_graph
from nsysmap.whatif.profiler import LIKELY, NOTHING_AROUND, Around, ProfilerCosts, unprofiled
from nsysmap.whatif.timeline import Timeline
from tests.places import ROOT
from tests.whatif.test_replay import program

BENCHMARK = runpy.run_path(str(ROOT / "benchmarks" / "whatif.py"))
conformal = cast("Callable[[Mapping[str, Sequence[float]]], float]", BENCHMARK["conformal"])
SHARE = cast("float", BENCHMARK["SHARE"])
NO_PROFILER = ProfilerCosts(own_calls=True, call_ns=0, edge_ns=0, range_ns=0)

scores = st.dictionaries(
    st.text(max_size=3), st.lists(st.floats(0, 10), min_size=1, max_size=5), min_size=2, max_size=30
)


@given(scores)
def test_ranges_hold_for_nine_of_ten_models_that_the_factor_was_not_chosen_on(
    of: dict[str, list[float]],
) -> None:
    """True of any scores: left out one after the other, each model counted once."""
    held = [
        mean(
            score <= conformal({one: its for one, its in of.items() if one != model})
            for score in mine
        )
        for model, mine in of.items()
    ]
    assert mean(held) >= SHARE - 1e-9


@given(scores)
def test_the_factor_does_not_depend_on_how_often_a_model_was_measured(
    of: dict[str, list[float]],
) -> None:
    assert conformal(of) == conformal({model: its * 3 for model, its in of.items()})


def test_too_few_models_tell_no_factor() -> None:
    assert conformal({str(one): [1.0] for one in range(8)}) == math.inf
    assert conformal({str(one): [float(one)] for one in range(9)}) == 8.0


@pytest.mark.parametrize(
    ("outside_ns", "program_ns"), [(4_000, 0), (15_000, 0), (115_000, 100_000)]
)
def test_a_graph_that_python_launches_takes_a_loop_s_own_work_and_what_the_program_does(
    outside_ns: int, program_ns: int
) -> None:
    """What lies around the calls of the trace says little about a loop that launches a graph."""
    recorded = program(kernels=[5_000] * 4)
    recorded = replace(
        recorded,
        threads=tuple(
            tuple(
                one._replace(own_ns=outside_ns, outside_ns=outside_ns)
                if one.kind == "sync"
                else one
                for one in steps
            )
            for steps in recorded.threads
        ),
    )
    around = Around(within_ns=15_000, left=0.6)
    without = unprofiled(recorded, NO_PROFILER, LIKELY, around=around)
    made = as_cuda_graph(without, branches_ns=0)
    assert isinstance(made, Timeline)
    launches = [one for one in made.threads[0] if one.graph]
    waits = [one for one in made.threads[0] if one.kind == "sync"]
    assert {one.own_ns for one in launches} == {made.costs.graph_own_ns} == {4_200}
    assert {one.own_ns for one in waits} == {
        program_ns + min(round(min(outside_ns, 15_000) * 0.6), made.costs.wait_own_ns)
    }
    plain = as_cuda_graph(
        unprofiled(recorded, NO_PROFILER, LIKELY, around=NOTHING_AROUND), branches_ns=0
    )
    assert isinstance(plain, Timeline)
    assert {one.own_ns for one in plain.threads[0] if one.graph} == {0}
    assert {one.own_ns for one in plain.threads[0] if one.kind == "sync"} == {outside_ns}
