"""Calls of the host that something disturbed take as long as the same calls of other inferences."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from nsysmap.analysis import observed_of
from nsysmap.core.table import IntArray, Table
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace
from nsysmap.whatif.disturbed import brisk, undisturbed, without_pauses
from nsysmap.whatif.model import Model, NoModel, read_model
from nsysmap.whatif.profiler import MACHINES
from nsysmap.whatif.spread import recorded_spread
from nsysmap.whatif.timeline import Step, Timeline, all_steps, each_step
from tests.places import FIXTURES
from tests.whatif.test_replay import program


def slowed(by: int, *, inferences: set[int], outside: bool = False) -> Timeline:
    """Five launches an inference, with 2 us of the host's own work before each, which takes so many
    times as long in these inferences.
    """

    def slow(step: Step) -> Step:
        enqueue = step.kind == "submit"
        own = 2_000 * (by if step.inference in inferences and enqueue else 1)
        return step._replace(
            own_ns=own, outside_ns=own if outside or not enqueue else 0, enqueue=enqueue
        )

    return each_step(program(kernels=[1_000] * 5, inferences=20), slow)


@pytest.mark.parametrize(
    ("slow", "outside", "found"),
    [
        (set(), False, 0),
        ({3, 4, 5, 9, 11, 12}, False, 6),  # too many to be outliers
        ({3}, False, 1),
        (
            {3, 4, 5, 9, 11, 12},
            True,
            0,
        ),  # work between inferences is the program's own: it may do more in some
    ],
)
def test_calls_that_are_far_slower_than_the_same_calls_elsewhere_take_what_those_take(
    slow: set[int], outside: bool, found: int
) -> None:
    timeline = slowed(8, inferences=slow, outside=outside)
    calm, held_up = undisturbed(timeline)
    assert held_up == found
    assert calm == (timeline if outside or not slow else slowed(1, inferences=set()))


def test_inferences_that_make_other_calls_are_compared_with_their_like_only() -> None:
    timeline = slowed(8, inferences={3, 4, 5, 9})
    other = each_step(
        timeline,
        lambda step: step._replace(api="other") if step.inference in {3, 4, 5, 9} else step,
    )
    assert undisturbed(other) == (other, 0)


def test_a_quick_host_takes_what_the_quickest_tenth_of_inferences_take() -> None:
    timeline = slowed(4, inferences=set(range(4, 20)))  # disturbed nearly throughout
    assert brisk(timeline) == slowed(1, inferences=set())
    assert brisk(slowed(1, inferences=set())) == slowed(1, inferences=set())


def test_a_host_that_was_held_up_in_its_calls_may_have_been_between_inferences_too() -> None:
    often = slowed(40, inferences={3, 4, 5, 9, 11, 12}, outside=True)
    assert without_pauses(often) == often  # too many to be pauses: it is what the program does
    assert without_pauses(slowed(40, inferences={3}, outside=True)) == slowed(
        1, inferences=set(), outside=True
    )


# --- waits that return late
# ---------------------------------------------------------------------------------------

MEASURED_NS = 66_080  # bn_written without the profiler, see fixtures/real_trt/timings.tsv
LATE_NS = 600_000


def model_of(trace: Trace) -> Model | NoModel:
    observed, facts = observed_of(map_trace(trace, []))
    return read_model(observed, facts, MACHINES)


def test_waits_that_return_late_in_a_few_inferences_are_the_host_s_not_the_gpu_s() -> None:
    model = model_of(open_trace(FIXTURES / "real_trt" / "bn_written-graph.nsys-rep"))
    assert isinstance(model, Model)
    late = [step.lag_ns for step in all_steps(model.timeline) if step.lag_ns]
    assert [round(lag_ns, -4) for lag_ns in late] == [170_000, 320_000, 60_000]
    assert not any(step.lag_ns for step in all_steps(model.likely))
    likely, (below, above) = model.before[model.machines[0]], recorded_spread(model)
    # half of it was captured in 95 us, a tenth in 300 and more: pauses may be disturbances too
    assert likely - below < MEASURED_NS < likely + above
    assert above < below < 0.25 * likely


def test_waits_that_return_late_in_many_inferences_wait_for_what_is_not_in_the_trace() -> None:
    trace = open_trace(FIXTURES / "real_trt" / "bert_eager-graph.nsys-rep")
    waits = np.flatnonzero(trace.api_calls.text("kind").equals("sync"))
    moments = trace.api_calls.ints("end_ns")[waits[5:35:3]]

    def moved(table: Table) -> Table:
        columns: dict[str, IntArray] = {
            name: table.ints(name) + LATE_NS * np.searchsorted(moments, table.ints(name), "right")
            for name in ("start_ns", "end_ns", "launch_start_ns", "launch_end_ns")
            if name in table.columns
        }
        return table.with_columns(table.spec, columns)

    tables: dict[str, Any] = {
        field.name: moved(value)
        for field in fields(Trace)
        if isinstance(value := getattr(trace, field.name), Table)
    }
    assert isinstance(model_of(trace), Model)
    assert isinstance(model_of(replace(trace, **tables)), NoModel)
