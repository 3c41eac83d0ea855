"""Replayed graph nodes to their first creation, against following the chain by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import CUDA_GRAPH_NODES
from nsysmap.mapping.ranges.launch_ranges import gather_evidence, node_chain, root_nodes
from nsysmap.trace.inferences.tensorrt_ranges import tensorrt_ranges
from tests.nsys_file import NsysFile
from tests.reports import read_trace

NODE = st.tuples(st.integers(1, 2), st.integers(1, 9), st.one_of(st.none(), st.integers(1, 9)))


def nodes(rows: list[tuple[int, int, int | None]]) -> Table:
    return Table.of_rows(
        CUDA_GRAPH_NODES,
        [
            {"process": p, "thread": p, "graph_node_id": n, "original_graph_node_id": o}
            for p, n, o in rows
        ],
    )


def naive(rows: list[tuple[int, int, int | None]], process: int, node: int) -> int:
    for _ in range(len(rows) + 1):
        at = max((i for i, (p, n, _) in enumerate(rows) if (p, n) == (process, node)), default=None)
        if at is None:
            return MISSING
        original = rows[at][2]
        if original is None:
            return at
        node = original
    return MISSING  # round in a circle


@given(
    st.lists(NODE, max_size=12),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 10)), max_size=10),
)
def test_a_replayed_node_leads_to_the_creation_at_the_end_of_its_chain(
    rows: list[tuple[int, int, int | None]], asked: list[tuple[int, int]]
) -> None:
    found = root_nodes(
        nodes(rows),
        np.array([p for p, _ in asked], np.int64),
        np.array([n for _, n in asked], np.int64),
    )
    assert found.tolist() == [naive(rows, process, node) for process, node in asked]


def test_a_node_cloned_twice_is_the_one_that_was_captured() -> None:
    chain: list[tuple[int, int, int | None]] = [(1, 10, None), (1, 20, 10), (1, 30, 20)]
    assert root_nodes(nodes(chain), np.array([1]), np.array([30])).tolist() == [0]


def test_a_clone_of_a_node_made_before_the_trace_has_no_creation() -> None:
    assert root_nodes(nodes([(1, 20, 10)]), np.array([1]), np.array([20])).tolist() == [MISSING]


def test_node_ids_of_two_processes_are_not_mixed_up() -> None:
    assert root_nodes(
        nodes([(1, 5, None), (2, 5, None)]), np.array([2, 1, 3]), np.array([5, 5, 5])
    ).tolist() == [1, 0, MISSING]


def test_a_launch_is_within_a_call_of_the_engine_though_that_is_the_first_range(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.domain("TensorRT", 3)
    file.range("ExecutionContext::enqueueV3", 0, 100, domain=3)
    file.range("layer", 10, 20, domain=3)
    file.launch("named", 12, 1)
    file.launch("unnamed", 30, 2)
    file.launch("outside", 200, 3)
    trace = read_trace(file.write(tmp_path / "made.sqlite"))
    found = gather_evidence(trace, tensorrt_ranges(trace.nvtx_ranges))
    assert found.in_call.tolist() == [False, True, False]


def test_a_clone_in_the_first_row_is_followed_like_any_other() -> None:
    chain: list[tuple[int, int, int | None]] = [(1, 20, 10), (1, 10, None), (1, 30, 20)]
    assert root_nodes(nodes(chain), np.array([1, 1]), np.array([30, 20])).tolist() == [1, 1]
    out: list[tuple[int, int, int | None]] = [(1, 20, 99), (1, 30, 20)]  # 99 is not in the trace
    assert root_nodes(nodes(out), np.array([1, 1]), np.array([30, 20])).tolist() == [MISSING] * 2


def test_a_long_chain_leads_to_its_creation_however_its_nodes_are_ordered() -> None:
    for size in (1, 2, 3, 12, 33):
        chain: list[tuple[int, int, int | None]] = [
            (1, node, node - 1 if node > 1 else None) for node in range(1, size + 1)
        ]
        for rows in (chain, chain[::-1]):
            root = next(at for at, row in enumerate(rows) if row[2] is None)
            assert root_nodes(nodes(rows), np.array([1]), np.array([size])).tolist() == [root]
    none = np.zeros(0, np.int64)
    assert root_nodes(nodes([(1, 5, None)]), none, none).tolist() == []
    assert root_nodes(nodes([]), np.array([1]), np.array([5])).tolist() == [MISSING]
    circle: list[tuple[int, int, int | None]] = [(1, 1, 2), (1, 2, 1), (1, 3, None)]
    asked = np.array([1, 2, 3])
    found = root_nodes(nodes(circle), np.array([1, 1, 1]), asked)
    assert found.tolist() == [MISSING, MISSING, 2]


def test_the_chain_of_a_node_goes_from_itself_to_the_first_as_far_as_the_trace_has_it() -> None:
    rows: list[tuple[int, int, int | None]] = [
        (1, 30, 20),
        (1, 20, 10),
        (1, 10, None),
        (2, 30, 99),
        (1, 40, 41),
        (1, 41, 40),
        (1, 20, 10),  # made anew: the last one counts
    ]
    table = nodes(rows)
    assert node_chain(table, 1, 30) == [0, 6, 2]
    assert node_chain(table, 1, 10) == [2]
    assert node_chain(table, 2, 30) == [3]
    assert node_chain(table, 1, 40) == [4, 5]
    assert node_chain(table, 1, 99) == []
    assert node_chain(table, 3, 30) == []
    assert node_chain(table, 1, MISSING) == []


def test_a_replayed_kernel_is_where_its_node_was_captured_and_any_other_where_it_was_launched(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.domain("TensorRT", 3)
    file.range("ExecutionContext::enqueueV3", 0, 100, domain=3)
    file.range("first", 10, 20, domain=3)
    file.range("second", 40, 50, domain=3)
    for number, at in enumerate((12, 16, 30, 32, 42, 44, 200)):
        file.launch(f"kernel_{number}", at, number + 1)
    trace = read_trace(file.write(tmp_path / "made.sqlite"))
    kernels = trace.kernels
    place = {"process": int(kernels.ints("process")[0]), "thread": int(kernels.ints("thread")[0])}
    launch = kernels.ints("launch").copy()
    launch[1] = MISSING
    # the sixth is a clone of what was captured in the first layer, the fourth of nothing known
    node = np.array([MISSING, MISSING, MISSING, 7, MISSING, 6, MISSING])
    made = kernels.with_columns(kernels.spec, {"launch": launch, "graph_node_id": node})
    captured = Table.of_rows(
        CUDA_GRAPH_NODES,
        [
            {**place, "graph_node_id": 5, "start_ns": 15, "end_ns": 16},
            {**place, "graph_node_id": 6, "original_graph_node_id": 5, "start_ns": 60},
            {**place, "graph_node_id": 7, "original_graph_node_id": 99, "start_ns": 61},
        ],
    )
    ranges = tensorrt_ranges(trace.nvtx_ranges)
    found = gather_evidence(replace(trace, kernels=made, cuda_graph_nodes=captured), ranges)
    assert found.place.tolist() == [0, MISSING, MISSING, MISSING, 1, 0, MISSING]
    assert found.in_call.tolist() == [False, False, True, False, False, False, False]
    assert found.replayed.tolist() == [False, False, False, True, False, True, False]
    assert found.created.tolist() == [False, False, False, False, False, True, False]
    # without any node in the trace nothing was created in it
    without = gather_evidence(replace(trace, kernels=made), ranges)
    assert without.place.tolist() == [0, MISSING, MISSING, MISSING, 1, MISSING, MISSING]
    assert not without.created.any()
    assert without.replayed.tolist() == found.replayed.tolist()
