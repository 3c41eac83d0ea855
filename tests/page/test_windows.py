"""Which parts of a long trace the page shows event by event, and what it says of the rest."""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.core.table import Table
from nsysmap.output.page.events import events_of
from nsysmap.output.page.windows import windows_of
from tests.places import FIXTURES


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(
        FIXTURES / "bert_trt103" / "sync.nsys-rep",
        FIXTURES / "bert_trt103" / "engine.json",
        rules=(),
    )


def test_a_trace_that_is_short_is_shown_whole(analysis: Analysis) -> None:
    windows = windows_of(analysis.tables)
    assert windows.all
    events = events_of(analysis.tables, windows)
    assert len(events.tables["kernels"]["start"]) == len(analysis.tables.kernels)
    assert len(events.tables["left_out"]["start"]) == 0


def test_a_trace_of_ranges_alone_lasts_as_long_as_they(analysis: Analysis) -> None:
    tables = analysis.tables
    shown = (
        "kernels",
        "memcpys",
        "memsets",
        "cuda_graph_traces",
        "api_calls",
        "inferences",
        "gaps",
        "inference_times",
    )
    bare = tables.with_tables(**{name: Table.empty(getattr(tables, name).spec) for name in shown})
    events, ranges = events_of(bare, windows_of(bare)), tables.nvtx_ranges
    assert events.origin_ns == ranges.ints("start_ns").min()
    assert events.duration_ns == ranges.ints("end_ns").max() - events.origin_ns


@pytest.mark.parametrize("most", [0, 100, 500, 1899])
def test_of_a_long_one_no_kernel_and_no_time_gets_lost(analysis: Analysis, most: int) -> None:
    windows = windows_of(analysis.tables, most)
    assert not windows.all
    events = events_of(analysis.tables, windows).tables
    kernels = analysis.tables.kernels
    assert len(events["kernels"]["start"]) <= most
    assert len(events["kernels"]["start"]) + events["left_out"]["count"].sum() == len(kernels)
    spent = events["kernels"]["dur"].sum() + events["left_out"]["busy"].sum()
    assert spent == (kernels.ints("end_ns") - kernels.ints("start_ns")).sum()


def test_the_slowest_inference_is_shown(analysis: Analysis) -> None:
    windows = windows_of(analysis.tables, 400)
    times = analysis.tables.inference_times
    slowest = int(times.ints("inference")[int(np.nanargmax(times.floats("times_median")))])
    assert windows.inferences[slowest]
    assert 0 < np.count_nonzero(windows.inferences) < len(windows.inferences)


def test_every_launch_of_what_is_shown_is_shown(analysis: Analysis) -> None:
    events = events_of(analysis.tables, windows_of(analysis.tables, 400)).tables
    launch = events["kernels"]["launch"]
    assert (launch >= 0).all()
    assert (events["calls"]["start"][launch] <= events["kernels"]["start"]).all()


def test_idle_time_is_told_by_the_kernels_beside_it(analysis: Analysis) -> None:
    events, gaps = events_of(analysis.tables, windows_of(analysis.tables)), analysis.tables.gaps
    told, kernels = events.tables["gaps"], events.tables["kernels"]
    starts = told["from"] + np.where(
        told["before"] < 0, 0, (kernels["start"] + kernels["dur"])[told["before"]]
    )
    ends = np.where(told["after"] < 0, 0, kernels["start"][told["after"]]) - told["to"]
    assert (starts == gaps.ints("start_ns") - events.origin_ns).all()
    assert (ends == gaps.ints("end_ns") - events.origin_ns).all()
    call = told["call"]
    assert (call >= 0).any()
    begin = events.tables["calls"]["start"][call[call >= 0]] + events.origin_ns
    assert (begin == gaps.ints("evidence_start_ns")[call >= 0]).all()
