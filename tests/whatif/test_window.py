"""Which inferences are replayed: those that a host held up are left out, however many they are."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import Spec, Table
from nsysmap.core.trace_schema import (
    API_CALLS,
    CUDA_GRAPH_NODES,
    CUDA_GRAPH_TRACES,
    DEVICES,
    EVENT_RECORDS,
    GPU_KERNELS,
    INFERENCES,
    MEMCPYS,
    MEMSETS,
    NVTX_RANGES,
    OSRT_CALLS,
    OVERHEADS,
    SYNCS,
)
from nsysmap.trace.model import Trace
from nsysmap.whatif.window import NoWindow, Window, _held_up, _home, _pauses, steady_window
from tests.figures import figures

USUAL = 1_000
WORK = 900


def trace() -> Trace:
    """A trace without anything: what is replayed depends on its inferences."""

    def none(spec: Spec) -> Table:
        return Table.empty(spec)

    return Trace(
        "report",
        None,
        None,
        none(GPU_KERNELS),
        none(API_CALLS),
        none(NVTX_RANGES),
        none(MEMCPYS),
        none(MEMSETS),
        none(SYNCS),
        none(EVENT_RECORDS),
        none(CUDA_GRAPH_NODES),
        none(CUDA_GRAPH_TRACES),
        none(OVERHEADS),
        none(OSRT_CALLS),
        none(DEVICES),
        (),
        (),
    )


def window(enqueue: list[int], work: list[int] | None = None) -> Window:
    """That of inferences of one thread, one after another: each is enqueued, then the GPU works for
    it.
    """
    rows, at = [], 0
    for number, took in enumerate(enqueue):
        busy = WORK if work is None else work[number]
        rows.append(
            {
                "inference": number,
                "process": 1,
                "thread": 7,
                "device": 0,
                "stream": 7,
                "complete": True,
                "kernel_sequence": 0,
                "kernels": 1,
                "enqueue_start_ns": at,
                "enqueue_end_ns": at + took,
                "enqueue_ns": took,
                "gpu_start_ns": at + took,
                "gpu_end_ns": at + took + busy,
                "gpu_busy_ns": busy,
                "start_ns": at,
                "end_ns": at + took + busy,
            }
        )
        at += took + busy
    found = steady_window(trace(), Table.of_rows(INFERENCES, rows))
    assert isinstance(found, Window)
    return found


def counted(found: Window) -> set[int]:
    return {int(found.inferences[0][place]) for place in found.weights[0]}


def test_a_host_held_up_in_many_inferences_does_not_make_them_a_kind_of_its_own() -> None:
    """Every fifth is enqueued three times as slowly: more than a tenth, and yet nothing that the
    program does, so neither they nor a note about them are in the prediction.
    """
    enqueue = [3 * USUAL if number % 5 == 4 else USUAL for number in range(60)]
    found = window(enqueue)
    assert counted(found) and all(number % 5 != 4 for number in counted(found))
    assert not found.notes


def test_many_inferences_whose_gpu_work_is_longer_count() -> None:
    """What takes longer on the GPU is the program's own, if it is not rare."""
    work = [4 * WORK if number % 5 == 4 else WORK for number in range(60)]
    found = window([USUAL] * 60, work)
    assert any(number % 5 == 4 for number in counted(found))
    assert len(found.notes) == 1


def test_the_gpu_s_work_is_that_of_the_whole_run() -> None:
    """A GPU at a lower clock in a few inferences, and in the part of a run that is not replayed."""
    rare = [9 * WORK if number in (20, 40) else WORK for number in range(60)]
    assert window([USUAL] * 60, rare).work_of_all == pytest.approx(1 + 2 * 8 / 58, rel=0.02)
    assert window([USUAL] * 60).work_of_all == pytest.approx(1)
    slower = [WORK + 8 * min(number, 200 - number) for number in range(200)]
    found = window([9 * USUAL] * 200, slower)
    mean = sum(slower[2:-1]) / len(slower[2:-1])
    replayed = sum(
        slower[int(found.inferences[0][place])] * weight
        for place, weight in found.weights[0].items()
    ) / sum(found.weights[0].values())
    assert found.work_of_all == pytest.approx(mean / replayed, rel=0.01)


# --- which rows of the trace are in the stretches
# -------------------------------------------------------------------------

STRETCHES = ((10, 20), (30, 40))


def stretches() -> Window:
    begin, end = (np.array(one) for one in zip(*STRETCHES, strict=True))
    return Window(
        1, 0, (7,), (np.arange(2),), ({1: 1.0},), begin, end, ({0: 0, 1: 0},), (1.0,), 1, (), 1.0
    )


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 15)), max_size=8))
def test_rows_are_in_a_stretch_from_its_begin_to_before_its_end(
    spans: list[tuple[int, int]],
) -> None:
    one = stretches()
    rows = [
        {"kernel_id": at, "name": "k", "start_ns": start, "end_ns": start + lasts}
        for at, (start, lasts) in enumerate(spans)
    ]
    table = Table.of_rows(GPU_KERNELS, rows)
    held = [any(begin <= start < end for begin, end in STRETCHES) for start, _ in spans]
    assert one.holds(np.array([start for start, _ in spans], np.int64)).tolist() == held
    assert one.rows(table).tolist() == [at for at, is_held in enumerate(held) if is_held]
    assert one.touching(table).tolist() == [
        at
        for at, (start, lasts) in enumerate(spans)
        if any(begin <= start + lasts and start <= end for begin, end in STRETCHES)
    ]


def test_what_is_launched_is_the_process_s_on_the_device_by_a_call_of_the_trace() -> None:
    rows = [
        {"process": 1, "device": 0, "launch": 0, "launch_start_ns": 10},
        {"process": 1, "device": 0, "launch": 0, "launch_start_ns": 9},
        {"process": 1, "device": 0, "launch": 0, "launch_start_ns": 20},
        {"process": 2, "device": 0, "launch": 0, "launch_start_ns": 10},
        {"process": 1, "device": 1, "launch": 0, "launch_start_ns": 10},
        {"process": 1, "device": 0, "launch_start_ns": 10},
        {"process": 1, "device": 0, "launch": 5, "launch_start_ns": 39},
    ]
    made = [
        {"kernel_id": at, "name": "k", "start_ns": 0, "end_ns": 1, **row}
        for at, row in enumerate(rows)
    ]
    assert stretches().launched(Table.of_rows(GPU_KERNELS, made)).tolist() == [0, 6]


# --- what counts
# ---------------------------------------------------------------------------------------


def slowly_held_up(
    took: list[int], own: list[int], by_its_work: list[int]
) -> tuple[list[bool], list[int]]:
    """The rules of `_held_up`, one inference after another."""
    odd = [
        mine > 1.5 * max(median(took), 0) and its <= 1.5 * max(median(own), 0) and its < mine
        for mine, its in zip(took, own, strict=True)
    ]
    kind = [0] * len(took)
    left = [at for at, is_odd in enumerate(odd) if not is_odd]
    while left:
        usual = max(median(took[at] for at in left), 0)
        slow = [at for at in left if took[at] > 1.5 * usual]
        if len(slow) <= 0.1 * len(took):
            for at in slow:
                odd[at] = took[at] - by_its_work[at] > 1.5 * usual
            break
        left = slow
        for at in left:
            kind[at] += 1
    return odd, kind


@given(
    st.lists(
        st.tuples(
            st.sampled_from([10, 15, 16, 20, 40, 60, 61]),
            st.sampled_from([0, 0, 5, 30]),
            st.sampled_from([0, 0, 10, 45]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_what_something_held_up_is_told_from_what_did_something_else(
    times: list[tuple[int, int, int]],
) -> None:
    took = [mine for mine, _, _ in times]
    own = [mine - held for mine, held, _ in times]
    longer = [work for _, _, work in times]
    odd, kind = _held_up(np.array(took), np.array(own), np.array(longer))
    assert (odd.tolist(), kind.tolist()) == slowly_held_up(took, own, longer)


@pytest.mark.parametrize(
    ("pauses", "marked", "uneven"),
    [
        ([0] * 19 + [10_000], [19], False),  # one in twenty pauses: it is left out
        ([0] * 18 + [10_000] * 2, [18, 19], False),
        ([0] * 17 + [10_000] * 3, [], True),  # neither is few
        ([10_000] * 18 + [0] * 2, [18, 19], False),
        ([0] * 20, [], False),
        ([0, 0, 10_000], [], False),  # too few to tell
        ([0] * 19 + [500], [], False),  # shorter than four times what there is anyway
    ],
)
def test_inferences_after_a_pause_of_another_kind_are_left_out_where_they_are_few(
    pauses: list[int], marked: list[int], uneven: bool
) -> None:
    took = np.array([1000 + pause for pause in pauses])
    mark, why, notes = _pauses(np.array(pauses), took)
    assert np.flatnonzero(mark).tolist() == marked
    assert bool(why) == uneven
    assert bool(notes) == bool(marked)
    if marked:
        assert figures(notes[0])[0] == str(len(pauses) - pauses.count(10_000))
        few_are_long = pauses.count(10_000) < len(pauses) / 2
        assert ("latter" in notes[0]) == few_are_long


def test_pauses_are_of_two_kinds_from_four_times_on() -> None:
    """A fifth of the time of an inference without its pause is what pauses differ by anyway."""
    for long, found in ((1000 * 0.2 * 3, True), (1000 * 0.2 * 3 - 1, False)):
        pause = np.array([0] * 19 + [int(long)])
        took = np.array([1000] * 19 + [1000 + int(long)])
        assert _pauses(pause, took)[0].any() == found


def inferences_on(*where: tuple[int, int, int]) -> Table:
    """Inferences as (process, device, when it ends)."""
    return Table.of_rows(
        INFERENCES,
        [
            {"inference": at, "process": process, "device": device, "gpu_end_ns": end}
            for at, (process, device, end) in enumerate(where)
        ],
    )


def nccl(*spent: tuple[int, int]) -> Trace:
    """A trace with one collective a device: (device, how long)."""
    rows = [
        {
            "kernel_id": at,
            "name": "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)",
            "process": 1,
            "device": device,
            "start_ns": 0,
            "end_ns": took,
        }
        for at, (device, took) in enumerate(spent)
    ]
    return replace(trace(), kernels=Table.of_rows(GPU_KERNELS, rows))


@pytest.mark.parametrize(
    ("counts", "paces", "spent", "home"),
    [
        ((10, 12), (9, 5), (), 1),  # without collectives the most inferences
        ((10, 10), (50, 40), ((0, 1), (1, 1)), 0),  # the slower of two that exchange data
        ((10, 10), (40, 50), ((0, 1), (1, 1)), 1),
        ((10, 10), (100, 98), ((0, 9), (1, 5)), 1),  # as slow: the one that others wait for
        ((10, 10), (100, 98), ((0, 5), (1, 9)), 0),
        ((10, 10), (100, 96), ((0, 9), (1, 5)), 0),  # not as slow
        ((10, 20), (90, 50), ((0, 1), (1, 1)), 1),  # too few to be one of them
        ((18, 20), (90, 50), ((0, 1), (1, 1)), 0),  # nine tenths as many are enough
    ],
)
def test_the_gpu_that_sets_the_rate_is_replayed(
    counts: tuple[int, int], paces: tuple[int, int], spent: tuple[tuple[int, int], ...], home: int
) -> None:
    where = [
        (1, device, 1000 + number * pace)
        for device, (count, pace) in enumerate(zip(counts, paces, strict=True))
        for number in range(count)
    ]
    made = nccl(*spent) if spent else trace()
    assert _home(made, inferences_on(*where), np.arange(len(where))) == (1, home)


def test_of_a_long_run_a_third_each_of_its_begin_its_middle_and_its_end_is_replayed() -> None:
    found = window([USUAL] * 300)
    held = sorted(counted(found))
    assert len(held) == 24
    assert held[0] == 1  # the first only precedes
    thirds = [held[:8], held[8:16], held[16:]]
    assert all(one == list(range(one[0], one[0] + 8)) for one in thirds)
    assert thirds[1][0] == 1 + (298 - 8) // 2
    assert thirds[2][-1] == 298  # behind the last one nothing ends it
    assert len(found.begin_ns) == 3
    assert sum(found.weights[0].values()) == pytest.approx(298)
    assert len(set(found.weights[0].values())) == 1
    took = USUAL + WORK
    assert found.begin_ns.tolist() == [(one[0] - 1) * took for one in thirds]
    assert found.end_ns.tolist() == [(one[-1] + 1) * took for one in thirds]
    assert found.of_all == pytest.approx(1)


def test_of_a_short_run_all_is_replayed_but_what_only_precedes_or_follows() -> None:
    found = window([USUAL] * 12)
    assert counted(found) == set(range(1, 11))
    assert set(found.weights[0].values()) == {1.0}
    assert (found.threads, found.process, found.device) == ((7,), 1, 0)
    assert found.present == (1.0,)
    assert found.inferences_a_pass == 1
    assert not found.notes


@pytest.mark.parametrize(("count", "found"), [(2, False), (3, False), (4, True)])
def test_fewer_than_two_that_count_are_no_window(count: int, found: bool) -> None:
    rows = [
        {
            "inference": at,
            "process": 1,
            "thread": 7,
            "device": 0,
            "stream": 7,
            "complete": True,
            "kernel_sequence": 0,
            "kernels": 1,
            "enqueue_start_ns": 100 * at,
            "enqueue_end_ns": 100 * at + 10,
            "enqueue_ns": 10,
            "gpu_start_ns": 100 * at + 10,
            "gpu_end_ns": 100 * at + 90,
            "gpu_busy_ns": 80,
            "start_ns": 100 * at,
            "end_ns": 100 * at + 90,
        }
        for at in range(count)
    ]
    assert isinstance(steady_window(trace(), Table.of_rows(INFERENCES, rows)), Window) == found
    other = steady_window(trace(), Table.of_rows(INFERENCES, rows), only=1)
    assert isinstance(other, NoWindow)
    lacking = [{**row, "warmup": True} for row in rows]
    assert isinstance(steady_window(trace(), Table.of_rows(INFERENCES, lacking)), NoWindow)
