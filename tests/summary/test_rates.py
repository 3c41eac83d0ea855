"""Throughput of several processes or threads: the number of inferences over the time in which they
run, whether they run at once or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest

from nsysmap.analysis import Analysis
from nsysmap.answer.gains import first_actions
from nsysmap.answer.words import times
from nsysmap.core.table import MISSING, BoolArray, Text
from tests.exports import exported
from tests.held_tables import TIMES, Column, Held, analysed, held

PROCESSES, THREADS = "two_processes/processes", "bert_split_trt10/threads"


def of_process(number: int) -> Callable[[Held, str], BoolArray]:
    """Which rows of a table are of this process."""

    def rows(tables: Held, table: str) -> BoolArray:
        ids = next(
            (
                column
                for name in ("globalTid", "globalPid")
                if (column := tables[table].get(name)) is not None
            ),
            None,
        )
        assert not isinstance(ids, Text)
        found: BoolArray = (
            np.zeros(0, np.bool_) if ids is None else (ids >> 24) & 0xFFFFFF == number
        )
        return found

    return rows


def of_thread(tables: Held, table: str) -> BoolArray:
    """Which rows are of the second thread that launches kernels, or of its launches."""
    calls = tables["CUPTI_ACTIVITY_KIND_RUNTIME"]
    thread, call = (np.asarray(calls[name]) for name in ("globalTid", "correlationId"))
    launched = np.isin(call, np.asarray(tables["CUPTI_ACTIVITY_KIND_KERNEL"]["correlationId"]))
    second = np.unique(thread[launched])[1]
    columns = tables[table]
    found: BoolArray = np.zeros(0, np.bool_)
    if "globalTid" in columns:
        found = np.asarray(columns["globalTid"]) == second
    elif "correlationId" in columns:
        found = np.isin(np.asarray(columns["correlationId"]), call[thread == second])
    return found


def shifted(name: str, mine: Callable[[Held, str], BoolArray], by_ns: int) -> Analysis:
    """The capture, with the rows of one process or thread so much later."""
    tables = held(exported(name))

    def made(table: str) -> Mapping[str, Column]:
        rows = mine(tables, table)
        return {
            name: later(values, rows) if name in TIMES and len(rows) else values
            for name, values in tables[table].items()
        }

    def later(values: Column, rows: BoolArray) -> Column:
        return (
            values
            if isinstance(values, Text)
            else np.where(rows & (values != MISSING), values + by_ns, values)
        )

    return analysed({table: made(table) for table in tables}, rules=False)


@cache
def as_recorded(name: str) -> Analysis:
    return analysed(held(exported(name)), rules=False)


@pytest.mark.parametrize(("name", "mine"), [(PROCESSES, of_process(30)), (THREADS, of_thread)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_rate_is_a_count_over_the_time_that_it_covers(
    name: str, mine: Callable[[Held, str], BoolArray], share: float
) -> None:
    whole = as_recorded(name).tables.device_times.only()
    found = shifted(name, mine, round(share * whole.integer("window_ns")))
    inferences, summary = found.tables.inferences, found.summary
    assert summary.per_second is not None
    steady = inferences.bools("complete") & ~inferences.bools("warmup")
    busy = found.tables.device_times.only()
    assert busy.integer("inferences") == np.count_nonzero(steady)
    assert summary.per_second == pytest.approx(
        1e9 * np.count_nonzero(steady) / busy.integer("window_ns"), rel=0.06
    )
    if share < 1.0:  # later the warm-up of the second lies between
        window = inferences.ints("end_ns")[steady].max() - inferences.ints("start_ns")[steady].min()
        assert busy.integer("window_ns") == pytest.approx(window, rel=0.01)
    told = times(summary)[0]
    assert ("one after the" in told) == (share == 1.0)
    assert ("together" in told) == (share < 1.0)


def test_switches_between_processes_are_a_cause_of_their_own_and_sharing_the_gpu_is_the_first_advice() -> (  # noqa: E501
    None
):
    """Two thirds of the time between queued kernels: the hardware's dispatch latency is the
    rest.
    """
    found = analysed(held(exported(PROCESSES)))
    gaps = found.tables.gaps
    switched = gaps.text("cause").equals("switch")
    process = found.tables.kernels.ints("process")
    before, after = (
        process[gaps.ints(name)[switched]] for name in ("before_kernel", "after_kernel")
    )
    assert (before != after).all()
    queued = gaps.text("cause").equals("dispatch")
    assert gaps.ints("dur_ns")[switched].sum() > 1.2 * gaps.ints("dur_ns")[queued].sum()
    first = first_actions(found.summary)[0]
    assert first.name == "time-sliced-processes"
    per_inference = gaps.ints("dur_ns")[switched].sum() / found.tables.device_times.only().integer(
        "inferences"
    )
    assert first.saving.ns == pytest.approx(per_inference, rel=0.1)


def test_what_threads_take_without_the_profiler_is_of_the_time_in_which_they_run() -> None:
    """One thread after the other runs half as many inferences a second as both at once would."""
    both, after = as_recorded(THREADS).summary, shifted(THREADS, of_thread, 10**9).summary
    assert both.unprofiled is not None
    assert after.unprofiled is not None
    assert after.unprofiled.ns > 1.7 * both.unprofiled.ns
