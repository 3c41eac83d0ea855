"""The order in which kernels were launched, and their places in it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import GPU_KERNELS
from nsysmap.trace.inferences.launch_order import launch_order, positions

NOTHING = None


def kernels(rows: list[dict[str, object]]) -> Table:
    return Table.of_rows(GPU_KERNELS, rows)


def order_of(rows: list[dict[str, object]], group: list[int] | None = None) -> list[int]:
    groups = np.array(group if group is not None else [0] * len(rows), np.int64)
    found: list[int] = launch_order(kernels(rows), np.arange(len(rows)), groups).tolist()
    return found


def test_kernels_go_by_launch_not_by_start() -> None:
    """On two streams the later launch can begin first."""
    assert order_of(
        [{"launch_start_ns": 20, "start_ns": 100}, {"launch_start_ns": 10, "start_ns": 200}]
    ) == [1, 0]


def test_kernels_of_one_graph_launch_go_by_node_not_by_start() -> None:
    rows: list[dict[str, object]] = [
        {"launch_start_ns": 10, "start_ns": 300, "graph_node_id": 1},
        {"launch_start_ns": 10, "start_ns": 200, "graph_node_id": 3},
        {"launch_start_ns": 10, "start_ns": 250, "graph_node_id": 2},
        {"launch_start_ns": 5, "start_ns": 400, "graph_node_id": 9},
    ]
    assert order_of(rows) == [3, 0, 2, 1]


def test_a_kernel_whose_launch_is_not_in_the_trace_counts_as_launched_when_it_began() -> None:
    assert order_of(
        [{"launch_start_ns": 50, "start_ns": 60}, {"launch_start_ns": NOTHING, "start_ns": 40}]
    ) == [1, 0]


def test_groups_come_one_after_the_other() -> None:
    rows: list[dict[str, object]] = [{"launch_start_ns": at, "start_ns": at} for at in (1, 2, 3, 4)]
    assert order_of(rows, [1, 0, 1, 0]) == [1, 3, 0, 2]


def test_positions_count_from_zero_within_each_inference() -> None:
    inference = np.array([1, MISSING, 0, 1, 0], np.int64)
    assert positions(inference[np.array([4, 2, 3, 0])]).tolist() == [0, 1, 0, 1]


row = st.tuples(
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 9)),
    st.integers(0, 20),
    st.one_of(st.none(), st.integers(0, 4)),
)


@given(st.lists(row, max_size=12))
def test_the_order_is_the_plain_sort_by_group_launch_node_and_start(
    made: list[tuple[int, int | None, int, int | None]],
) -> None:
    def key(at: int) -> tuple[int, int, int, int]:
        group, launched, start, node = made[at]
        return (
            group,
            start if launched is None else launched,
            start if node is None else node,
            start,
        )

    table: list[dict[str, object]] = [
        {"launch_start_ns": launched, "start_ns": start, "graph_node_id": node}
        for _, launched, start, node in made
    ]
    assert order_of(table, [group for group, *_ in made]) == sorted(range(len(made)), key=key)
