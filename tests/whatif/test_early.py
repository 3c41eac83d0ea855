"""Which kernels may begin before the one before them ends, on a few rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.core.table import Table
from nsysmap.core.trace_schema import API_CALLS, GPU_KERNELS
from nsysmap.trace.model import Trace
from nsysmap.whatif.early import MOVED_NS, begins_early, runs_at_once
from tests.whatif.test_window import trace as empty

Kernel = tuple[str, int, int, int]  # name, start, end, stream
EX, PLAIN, CONVOLUTION = "cuLaunchKernelEx", "cuLaunchKernel", "a_convFwd_b"


def traced(kernels: list[Kernel], *, api: str = EX, **fields: object) -> Trace:
    """Each kernel is launched by the call of its place."""
    rows = [
        {"kernel_id": at, "name": name, "start_ns": start, "end_ns": end, "stream": stream,
         "launch": at, **fields}
        for at, (name, start, end, stream) in enumerate(kernels)
    ]  # fmt: skip
    calls = [{"api": api, "start_ns": at, "end_ns": at} for at in range(len(kernels))]
    return replace(
        empty(),
        kernels=Table.of_rows(GPU_KERNELS, rows),
        api_calls=Table.of_rows(API_CALLS, calls),
    )


def early(kernels: list[Kernel], **fields: object) -> list[int]:
    made = traced(kernels, **fields)  # type: ignore[arg-type]
    return np.flatnonzero(begins_early(made, np.arange(len(kernels)))).tolist()


def test_what_follows_a_convolution_in_its_stream_may_begin_early() -> None:
    chain: list[Kernel] = [(CONVOLUTION, 0, 10, 7), ("k", 20, 30, 7), ("k", 40, 50, 7)]
    assert early(chain) == [1]
    assert early(chain, api="cudaLaunchKernelExC") == [1]
    assert early(chain, api=PLAIN) == []
    assert early(chain, graph_node_id=5) == []
    assert early(chain, graph_node_id=0) == []
    assert early([chain[0], ("k", 20, 30, 8), chain[2]]) == [2]  # the next one of the same stream
    assert early([*chain[1:], (CONVOLUTION, 60, 70, 7)]) == []
    assert early(chain[:1]) == []
    assert early([chain[0], ("k", 20, 30, 8)]) == []


def test_what_overlaps_elsewhere_may_begin_early_behind_the_same_name() -> None:
    overlapping: list[Kernel] = [
        ("a", 0, 10, 7),
        ("b", 9, 20, 7),
        ("a", 30, 40, 7),
        ("c", 50, 60, 7),
    ]
    assert early(overlapping) == [1, 3]
    assert early([("a", 0, 10, 7), ("b", 10, 20, 7), ("a", 30, 40, 7), ("c", 50, 60, 7)]) == []
    assert early([("a", 0, 10, 7), ("b", 9, 20, 8), ("a", 30, 40, 7), ("c", 50, 60, 7)]) == []


def pairs(gaps: list[int], name: str = CONVOLUTION) -> list[Kernel]:
    """Convolutions, each with a kernel that begins so long after its end."""
    found: list[Kernel] = []
    for at, gap in enumerate(gaps):
        begin = 100_000 * at
        found += [(name, begin, begin + 10_000, 7), ("k", begin + 10_000 + gap, begin + 50_000, 7)]
    return found


@pytest.mark.parametrize(
    ("gaps", "at_once"),
    [
        ([-MOVED_NS - 1] * 3, True),
        ([-MOVED_NS] * 3, False),
        ([-9_000, -9_000, 100], True),  # in most places
        ([-9_000, 100, 100], False),
        ([100, 899, 100, 900, 5_000], False),
        ([100, 899, 900, 900, 5_000], True),  # two were queued: too few
        ([5_000] * 5, True),  # none was queued
        ([-9_000, -9_000, 899, 899, 899], False),
    ],
)
def test_kernels_run_at_once_where_most_that_were_queued_overlap(
    gaps: list[int], at_once: bool
) -> None:
    kernels = pairs(gaps)
    found = runs_at_once(traced(kernels), np.arange(len(kernels)))
    assert np.flatnonzero(found).tolist() == ([*range(1, len(kernels), 2)] if at_once else [])


def test_only_behind_convolutions_they_do_where_none_was_queued() -> None:
    other = [("a", -90_000, -80_000, 7), ("b", -80_001, -70_000, 7), *pairs([5_000] * 3, "a")]
    kernels = [(name, start, end, 7) for name, start, end, _ in other]
    assert len(early(kernels)) == 4
    assert not runs_at_once(traced(kernels), np.arange(len(kernels))).any()


def test_names_are_judged_by_both_of_a_pair() -> None:
    mixed = [*pairs([-9_000] * 3), *((n, s + 10**6, e + 10**6, t) for n, s, e, t in pairs([5] * 3))]
    renamed: list[Kernel] = [
        ("l" if name == "k" and at > 6 else name, start, end, stream)
        for at, (name, start, end, stream) in enumerate(mixed)
    ]
    found = runs_at_once(traced(renamed), np.arange(len(renamed)))
    assert np.flatnonzero(found).tolist() == [1, 3, 5]
