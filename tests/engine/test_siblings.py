"""Layers that do not need each other: products to merge, runs that could run at the same time."""

from __future__ import annotations

from nsysmap.network.siblings import engine_siblings, sibling_tables
from tests.made_engines import Row, made, row

X = [1, 64, 384]
HALF = "Half"


def gemm(name: str, reads: str, writes: str, form: str = HALF) -> Row:
    return row(f"{name}{{}}", "gemm", [(reads, X, form)], [(writes, X, form)])


def kinds(*rows: Row) -> list[tuple[str, tuple[int, ...]]]:
    return [(group.kind, group.layers) for group in engine_siblings(made(*rows))]


def test_products_on_one_tensor_are_a_merge_and_what_they_read_again_is_counted() -> None:
    rows = [
        row("__myl_Mul{}", "kgen", [("w", X, HALF)], [("x", X, HALF)]),
        *(gemm(name, "x", name) for name in ("/q", "/k", "/v")),
    ]
    merge, parallel = engine_siblings(made(*rows))
    assert (merge.kind, merge.layers, merge.tensor) == ("merge", (1, 2, 3), "x")
    assert merge.saved_bytes == 2 * 64 * 384 * 2
    assert (parallel.kind, parallel.layers) == ("parallel", (1, 2, 3))


def test_products_on_an_input_of_the_engine_are_a_merge_too() -> None:
    assert ("merge", (0, 1, 2)) in kinds(*(gemm(name, "x", name) for name in ("/q", "/k", "/v")))


def test_products_of_other_types_batches_or_of_two_activations_are_no_merge() -> None:
    other_type = [gemm("/q", "x", "q"), row("/k{}", "gemm", [("x", X, HALF)], [("k", X, "Float")])]
    other_rows = [
        gemm("/q", "x", "q"),
        row("/k{}", "gemm", [("x", X, HALF)], [("k", [1, 32, 384], HALF)]),
    ]
    two = [
        row(
            f"/m{place}{{}}",
            "gemm",
            [("x", X, HALF), (f"y{place}", X, HALF)],
            [(f"z{place}", X, HALF)],
        )
        for place in range(2)
    ]
    for rows in (other_type, other_rows, two):
        assert [kind for kind, _ in kinds(*rows)] == ["parallel"]


def test_the_same_name_written_anew_is_another_tensor() -> None:
    rows = [gemm("/a", "x", "x"), gemm("/b", "x", "x"), gemm("/c", "x", "y")]
    assert kinds(*rows) == []


def test_a_chain_has_no_parallel_layers_and_two_branches_step_side_by_side() -> None:
    chain = [gemm("/a", "x", "a"), gemm("/b", "a", "b"), gemm("/c", "b", "c")]
    assert kinds(*chain) == []
    branches = [
        gemm("/a1", "x", "a1"),
        gemm("/b1", "y", "b1"),
        gemm("/a2", "a1", "a2"),
        gemm("/b2", "b1", "b2"),
    ]
    assert kinds(*branches) == [("parallel", (0, 1)), ("parallel", (2, 3))]


def test_a_layer_that_needs_another_through_a_reshape_does_not_run_beside_it() -> None:
    reshape = row("reshape", "NoOp", [("a", X, HALF)], [("b", X, HALF)])
    twice = row("again", "NoOp", [("b", X, HALF)], [("c", X, HALF)])
    assert kinds(gemm("/a", "x", "a"), reshape, twice, gemm("/c", "c", "d")) == []
    assert kinds(gemm("/a", "x", "a"), reshape, gemm("/c", "y", "d")) == [("parallel", (0, 2))]


def test_a_layer_that_reads_what_nobody_is_known_to_write_may_need_any() -> None:
    rows = [gemm("/a", "in", "a"), gemm("/b", "hidden", "out")]
    assert [group.kind for group in engine_siblings(made(*rows, outputs=("in", "out")))] == []
    assert [
        group.kind for group in engine_siblings(made(*rows, outputs=("in", "hidden", "out")))
    ] == ["parallel"]


def test_layers_on_two_streams_are_not_told_to_run_at_the_same_time() -> None:
    assert kinds(gemm("/a", "x", "a"), {**gemm("/b", "y", "b"), "StreamId": 1}) == []


def test_layers_without_tensors_are_in_no_group() -> None:
    assert kinds(row("a{}", "kgen", [], []), row("b{}", "kgen", [], [])) == []


def test_the_tables_number_groups_and_layers_over_all_engines() -> None:
    engine = made(*(gemm(name, "x", name) for name in ("/q", "/k")))
    groups, members = sibling_tables([engine, engine])
    assert groups.ints("group_id").tolist() == [0, 1, 2, 3]
    assert groups.ints("first_layer").tolist() == [0, 0, 2, 2]
    assert members.ints("layer_id").tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
