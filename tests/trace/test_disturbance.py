"""A host that was held up while it was recorded: seen by inferences that it took longer to enqueue,
not by what else made them longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap import analyze
from nsysmap.answer.words import first_doubt
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import API_CALLS, INFERENCES, OVERHEADS
from nsysmap.trace.inferences.disturbance import (
    HostDisturbance,
    host_disturbances,
    is_disturbed,
    slow_calls,
)
from tests.nsys_file import THREAD, NsysFile
from tests.reports import read_trace

FIXTURES = Path(__file__).parents[2] / "fixtures"
LONG = 1000


def run(
    enqueue: list[int],
    *,
    busy: dict[int, int] | None = None,
    pause: dict[int, int] | None = None,
    nsys: tuple[int, ...] = (),
) -> HostDisturbance:
    """Inferences that take their enqueue time and 100 ns of GPU work after it, after a pause; nsys
    held the host up within these.
    """
    rows, overheads, at = [], [], 0
    for number, took in enumerate(enqueue):
        begin = at + (pause or {}).get(number, 0)
        end = begin + took + (busy or {}).get(number, 100)
        times = {
            "enqueue_start_ns": begin,
            "enqueue_end_ns": begin + took,
            "enqueue_ns": took,
            "start_ns": begin,
            "end_ns": end,
        }
        work = {
            "gpu_start_ns": begin,
            "gpu_end_ns": end,
            "gpu_busy_ns": (busy or {}).get(number, 100),
        }
        rows.append(
            {
                "inference": number,
                "complete": True,
                "kernel_sequence": 0,
                "thread": 7,
                "device": 0,
                **times,
                **work,
            }
        )
        overheads += (
            [{"start_ns": begin, "end_ns": begin + took - LONG, "thread": 7, "name": "flush"}]
            if number in nsys
            else []
        )
        at = end
    (found,) = host_disturbances(
        Table.of_rows(INFERENCES, rows), Table.of_rows(OVERHEADS, overheads)
    )
    return found


STEADY = [LONG] * 20


def test_inferences_that_take_longer_to_enqueue_are_held_up() -> None:
    found = run([*STEADY, 3 * LONG, 2 * LONG, 2 * LONG, *STEADY])
    assert (found.slow.tolist(), found.excess_ns, is_disturbed(found.share, len(found.slow))) == (
        [20, 21, 22],
        4 * LONG,
        True,
    )
    assert found.share == pytest.approx(4000 / (42 * 1100 + 4000))  # the first has no time
    assert found.longest == pytest.approx(3100 / 1100)


def test_two_slow_inferences_are_outliers() -> None:
    found = run([*STEADY, 9 * LONG, 9 * LONG, *STEADY])
    assert (found.slow.tolist(), is_disturbed(found.share, len(found.slow))) == ([20, 21], False)


def test_one_slow_inference_of_many_changes_nothing() -> None:
    found = run([*STEADY, 3 * LONG, *STEADY, *STEADY])
    assert (found.slow.tolist(), is_disturbed(found.share, len(found.slow))) == ([20], False)


def test_what_nsys_did_is_no_disturbance() -> None:
    assert run([*STEADY, 3 * LONG, 3 * LONG, *STEADY], nsys=(20, 21)).slow.tolist() == []


def test_gpu_work_that_takes_longer_is_none_nor_are_callers_that_come_later() -> None:
    assert run([*STEADY, *STEADY], busy={20: 9000, 21: 9000}).slow.tolist() == []
    assert run([*STEADY, *STEADY], pause={20: 9000, 21: 9000}).slow.tolist() == []


def calls(**took: list[int]) -> Table:
    """Calls of each function of one thread, that take so long."""
    kinds = {"cuLaunchKernel": "launch"}
    rows = [
        {
            "start_ns": at,
            "end_ns": at + ns,
            "thread": 7,
            "api": api,
            "kind": kinds.get(api, "other"),
        }
        for api, times in took.items()
        for at, ns in enumerate(times)
    ]
    return Table.of_rows(API_CALLS, rows)


def test_the_quickest_calls_that_launch_nothing_show_how_fast_the_host_was() -> None:
    found = slow_calls(
        calls(
            cuKernelSetAttribute=[100] * 30 + [150] * 200,
            cudaEventRecord=[400] * 300,
            cuLaunchKernel=[90] * 300,
        ),
        7,
        (0, 999),
    )
    assert found is not None
    assert (found.api, found.calls, found.slowdown) == ("cuKernelSetAttribute", 230, 1.5)
    assert slow_calls(calls(cuKernelSetAttribute=[100] * 199), 7, (0, 999)) is None
    assert slow_calls(calls(cuKernelSetAttribute=[100] * 200), 8, (0, 999)) is None


@pytest.mark.parametrize(
    ("report", "slowed"),
    [
        ("real_trt/resnet50_b1-sync", 1.35),
        ("real_trt/bert_eager-sync_nonvtx", 1.36),  # recorded 549 us, 308 without nsys
        ("real_trt/bert_eager-sync", None),  # recorded 352
        ("real_trt/googlenet-sync_nonvtx", None),
        ("bert_trt10/sync", None),
        ("two_processes/processes", None),  # its own threads slow each other
    ],
)
def test_a_host_that_was_slow_throughout_is_doubtful_where_the_gpu_waits_for_it(
    report: str, slowed: float | None
) -> None:
    found = analyze(FIXTURES / f"{report}.nsys-rep", rules=[]).summary.disturbance
    assert (found is None or not found.quick_call) == (slowed is None)
    if found is not None and slowed is not None:
        assert found.slowdown == pytest.approx(slowed, abs=0.01)


@pytest.mark.parametrize(
    ("report", "slow"),
    [
        ("real_trt/resnet50_b1-sync", [20, 21, 22, 24]),  # recorded 1,683 us, 520 without nsys
        ("real_trt/bert_eager-sync", [1]),
        ("real_trt/bert_eager-graph", []),
        ("real_trt/resnet50_b1-graph", []),
        ("bert_trt10/hostgap", []),
    ],
)
def test_captures(report: str, slow: list[int]) -> None:
    analysis = analyze(FIXTURES / f"{report}.nsys-rep", rules=[])
    loop = analysis.tables.inference_loops.only()
    assert loop.integer("held_up") == len(slow)
    assert (loop.maybe_integer("first_held_up"), loop.maybe_integer("last_held_up")) == (
        (slow[0], slow[-1]) if slow else (None, None)
    )
    disturbed = analysis.summary.disturbance
    assert (disturbed is not None) == (len(slow) > 1) == bool(first_doubt(analysis.summary))
    if disturbed:
        assert disturbed.share == pytest.approx(0.057, abs=0.001)


@pytest.mark.parametrize("report", ["bert_split_trt10/threads", "two_gpus/tp_sync"])
def test_of_threads_that_hold_each_other_up_nothing_is_told(report: str) -> None:
    assert analyze(FIXTURES / f"{report}.nsys-rep", rules=[]).summary.disturbance is None


def test_calls_whose_work_depends_on_what_they_are_given_tell_nothing(tmp_path: Path) -> None:
    """Looking up kernels by name takes as long as the list is."""
    file = NsysFile()
    for number in range(900):
        at, took = 1000 * number, 100 + 10 * (number % 60)
        name = ("cuKernelGetFunction", "cudaMalloc_v3020", "cudaMemsetAsync_v3020")[number % 3]
        file.call(name, at, at + took, number)
    calls = read_trace(file.write(tmp_path / "x.sqlite")).api_calls
    assert slow_calls(calls, THREAD, (0, 10**9)) is None
    for number in range(300):
        file.call("cudaStreamIsCapturing_v10000", 10**6 + 100 * number, 10**6 + 100 * number + 9, 1)
    calls = read_trace(file.write(tmp_path / "y.sqlite")).api_calls
    found = slow_calls(calls, THREAD, (0, 10**9))
    assert found is not None
    assert (found.api, found.slowdown) == ("cudaStreamIsCapturing", 1.0)
