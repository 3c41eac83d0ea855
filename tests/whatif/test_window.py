"""Which inferences are replayed: those that a host held up are left out, however many they are."""

from __future__ import annotations

import pytest

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
from nsysmap.whatif.window import Window, steady_window

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
