"""Kernels to launch calls, against a search through every call."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import API_CALLS
from nsysmap.trace.launches import Launches

PROCESS = 1 << 24
CALL = st.tuples(
    st.integers(1, 3),
    st.one_of(st.integers(0, 12), st.just(2**31)),
    st.sampled_from(["launch", "other", "sync"]),
)


def calls(rows: list[tuple[int, int, str]]) -> Table:
    return Table.of_rows(
        API_CALLS,
        [
            {
                "start_ns": i,
                "end_ns": i,
                "process": p * PROCESS,
                "thread": p * PROCESS + 1,
                "correlation": c,
                "api": k,
                "kind": k,
            }
            for i, (p, c, k) in enumerate(rows)
        ],
    )


@given(
    st.lists(CALL, max_size=30),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 14)), max_size=20),
)
def test_a_kernel_is_joined_to_the_call_of_its_own_process_and_correlation_id(
    rows: list[tuple[int, int, str]], asked: list[tuple[int, int]]
) -> None:
    process = np.array([p * PROCESS for p, _ in asked], np.int64)
    correlation = np.array([MISSING if c < 0 else c for _, c in asked], np.int64)
    found = Launches.of(calls(rows)).rows(process, correlation).tolist()
    for (wanted_process, wanted_id), row in zip(asked, found, strict=True):
        matching = [i for i, (p, c, _) in enumerate(rows) if p == wanted_process and c == wanted_id]
        launching = [i for i in matching if rows[i][2] != "other"]
        assert row in (launching or matching or [MISSING])


def test_a_kernel_whose_launch_was_not_traced_has_none() -> None:
    assert Launches.of(calls([(1, 5, "launch")])).rows(
        np.array([PROCESS]), np.array([6])
    ).tolist() == [MISSING]


def test_the_same_correlation_id_in_two_processes_is_two_launches() -> None:
    both = Launches.of(calls([(1, 5, "launch"), (2, 5, "launch")]))
    assert both.rows(np.array([2 * PROCESS, PROCESS]), np.array([5, 5])).tolist() == [1, 0]


def test_an_overhead_row_that_reuses_a_correlation_id_does_not_hide_the_launch() -> None:
    assert Launches.of(calls([(1, 5, "other"), (1, 5, "launch")])).rows(
        np.array([PROCESS]), np.array([5])
    ).tolist() == [1]
    assert Launches.of(calls([(1, 5, "launch"), (1, 5, "other")])).rows(
        np.array([PROCESS]), np.array([5])
    ).tolist() == [0]


def test_ids_far_apart_are_found_without_a_table_as_large_as_their_distance() -> None:
    rows = Launches.of(calls([(1, 0, "launch"), (1, 2**32 - 1, "launch"), (3, 7, "launch")]))
    assert rows.rows(np.array([PROCESS, 3 * PROCESS]), np.array([2**32 - 1, 7])).tolist() == [1, 2]
