"""The engine as a graph: false edges, cycles, runs of single readers."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.dataflow import (
    MOST_EDGES,
    common_path,
    engine_graph,
    flow_of,
    links,
    nearest,
    runs,
)
from nsysmap.inputs.engine.model import Engine, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.inputs.engine.tensor_formats import elements
from nsysmap.network.operations import operations
from tests.made_engines import made, row
from tests.places import FIXTURES

T = [4, 4]


def step(name: str, reads: str, writes: str) -> dict[str, object]:
    return row(
        name, "kgen", [(item, T, "Half") for item in reads], [(item, T, "Half") for item in writes]
    )


def test_a_run_ends_where_a_second_reader_or_an_engine_output_is() -> None:
    engine = made(
        step("__myl_Add{}", "x", "a"),
        step("__myl_Mul{}", "a", "b"),
        step("__myl_Sub{}", "b", "c"),
        step("__myl_Add{}", "bc", "y"),
    )
    assert runs(engine, flow_of(engine), lambda layer: operations(layer).fusable) == [
        (0, 1),
        (2, 3),
    ]
    bound = made(
        step("__myl_Add{}", "x", "a"), step("__myl_Mul{}", "a", "b"), outputs=("x", "a", "b")
    )
    assert runs(bound, flow_of(bound), lambda _layer: True) == []


def test_two_branches_into_one_reader_make_one_run() -> None:
    engine = made(
        step("__myl_Add{}", "x", "a"), step("__myl_Mul{}", "x", "b"), step("__myl_Sub{}", "ab", "y")
    )
    assert runs(engine, flow_of(engine), lambda _layer: True) == [(0, 2)]


def test_bytes_between_two_layers_are_those_of_all_tensors_that_pass() -> None:
    engine = made(step("__myl_Add{}", "x", "ab"), step("__myl_Mul{}", "ab", "y"))
    assert flow_of(engine).bytes_between(0, 1) == 2 * 4 * 4 * 2


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.text("abcd", max_size=3), st.text("abcd", max_size=2)), min_size=1, max_size=14
    )
)
def test_repeated_tensor_names_close_no_cycle_and_runs_share_no_layer(
    layers: list[tuple[str, str]],
) -> None:
    engine = made(*(step("__myl_Add{}", reads, writes) for reads, writes in layers))
    assert nx.is_directed_acyclic_graph(engine_graph(engine))
    found = runs(engine, flow_of(engine), lambda _layer: True)
    indices = [index for run in found for index in run]
    assert len(indices) == len(set(indices))
    flow = flow_of(engine)
    assert all(
        flow.only_reader(before) == after for run in found for before, after in pairwise(run)
    )


def test_an_encoder_is_one_connected_graph_without_cycles() -> None:
    graph = engine_graph(read_engine(FIXTURES / "bert_trt10" / "engine.json"))
    assert nx.is_directed_acyclic_graph(graph)
    assert nx.number_weakly_connected_components(graph) == 2  # the shape call stands alone
    assert graph.edges[3, 4]["bytes"] == 128 * 2304 * 2


def test_the_path_that_most_nodes_share_names_a_block() -> None:
    attention = "/bert/encoder/layer.2/attention"
    assert (
        common_path(
            [f"{attention}/self/MatMul", f"{attention}/self/Softmax", f"{attention}/output/Add"]
        )
        == f"{attention}/self"
    )
    assert (
        common_path(
            [
                f"{attention}/output/Add",
                f"{attention}/output/LayerNorm/Pow",
                f"{attention}/output/LayerNorm/Sqrt",
            ]
        )
        == f"{attention}/output/LayerNorm"
    )
    assert common_path(["/MatMul", "/Softmax"]) is None
    assert common_path(["node_linear", "node_view"]) is None
    assert common_path([]) is None


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=12))
def test_it_is_the_deepest_path_of_most_nodes(given: list[list[str]]) -> None:
    nodes = ["/" + "/".join(parts) for parts in given]
    paths = [node.split("/")[:-1] for node in nodes]
    deep = [
        path[:depth]
        for path in paths
        for depth in range(3, len(path) + 1)
        if 2 * sum(other[:depth] == path[:depth] for other in paths) > len(paths)
    ]
    assert common_path(nodes) == (max(map("/".join, deep), key=len) if deep else None)


@given(st.sets(st.integers(0, 20)), st.integers(0, 20))
def test_the_nearest_number_is_the_smaller_of_two_as_near(held: set[int], to: int) -> None:
    wanted = min(sorted(held), key=lambda one: abs(one - to), default=None)
    assert nearest(sorted(held), to) == wanted


Step = tuple[list[tuple[str, int | None]], list[tuple[str, int | None]]]
EXTENTS = st.one_of(st.none(), st.integers(0, 4))
SIDES = st.lists(st.tuples(st.sampled_from("ab"), EXTENTS), max_size=2)


def parts_one_by_one(engine: Engine) -> list[tuple[int, int, Tensor]]:
    """The edges as `edges_table` says, looking back through all writers of a name."""
    found: list[tuple[int, int, Tensor]] = []
    writers: dict[str, list[tuple[int, Tensor]]] = {}
    for layer in engine.layers:
        for tensor in {tensor.name: tensor for tensor in reversed(layer.inputs)}.values():
            before = writers.get(tensor.name, [])
            left, parts = elements(tensor), []
            for index, part in reversed(before):
                held = elements(part)
                if left is None or not held or held > left:
                    break
                parts.append((index, layer.index, part))
                left -= held
                if left == 0:
                    break
            whole = left == 0 and len(parts) > 1
            found += parts if whole else [(index, layer.index, tensor) for index, _ in before[-1:]]
        for tensor in layer.outputs:
            writers.setdefault(tensor.name, []).append((layer.index, tensor))
    return sorted(found, key=str)


@settings(deadline=None)
@given(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=8))
def test_parts_make_up_what_is_read_as_they_do_one_by_one(steps: list[Step]) -> None:
    def tensors(side: list[tuple[str, int | None]]) -> list[tuple[str, list[int], str]]:
        return [(name, [-1 if extent is None else extent], "Half") for name, extent in side]

    engine = made(
        *(row("__myl_Add{}", "kgen", tensors(reads), tensors(writes)) for reads, writes in steps)
    )
    found = [(source.index, target.index, tensor) for source, target, tensor in links(engine)]
    assert sorted(found, key=str) == parts_one_by_one(engine)


def test_an_engine_whose_parts_would_make_millions_of_edges_is_refused_before_they_are_made() -> (
    None
):
    def step(number: int) -> dict[str, object]:
        return row(f"l{number}", "gemm", [("x", [max(number, 1)], "Half")], [("x", [1], "Half")])

    dense = made(*(step(number) for number in range(300)))
    assert sum(1 for _ in links(dense)) == 299 * 300 // 2  # a dense network of 300 layers is read
    with pytest.raises(NsysmapError, match="more than 124,000 edges") as refused:
        flow_of(made(*(step(number) for number in range(600))))
    assert refused.value.where == "made.json"
    assert MOST_EDGES == 100_000
