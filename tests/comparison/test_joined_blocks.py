"""Layers of repeated blocks that changed alike are one line of a comparison."""

from __future__ import annotations

from nsysmap.comparison.joined import block_name, blocks_of
from nsysmap.core.comparison_schema import JOINED_LAYERS
from nsysmap.core.table import Row, Table

SIDES = ("before", "after", "before_titles", "after_titles")


def rows(*layers: tuple[str, int, bool], **more: object) -> list[Row]:
    plain = {
        "relation": "one-to-one",
        "joined_by": "name",
        "change": "same",
        "kind": "gemm",
        **more,
    }
    made = [
        {
            "group": at,
            **dict.fromkeys(SIDES, name),
            "difference_ns": difference,
            "significant": sure,
            **plain,
        }
        for at, (name, difference, sure) in enumerate(layers)
    ]
    return list(Table.of_rows(JOINED_LAYERS, made))


def parts(found: list[Row]) -> list[list[int]]:
    return sorted(sorted(row.integer("group") for row in part) for part in blocks_of(found))


def test_layers_whose_names_differ_in_an_index_and_that_changed_alike_are_one_part() -> None:
    found = rows(("layer.0/fc2", -90, True), ("layer.1/fc2", -95, True), ("layer.1/fc1", -90, True))
    assert parts(found) == [[0, 1], [2]]
    assert block_name(found[:2], "after") == "layer.*/fc2"
    assert block_name(found[2:], "after") == "layer.1/fc1"


def test_one_layer_that_changed_more_than_its_likes_stands_alone() -> None:
    assert parts(rows(("layer.0", 1, False), ("layer.1", 400, True), ("layer.2", -2, False))) == [
        [0, 2],
        [1],
    ]
    assert parts(rows(("layer.0", 100, True), ("layer.1", 400, True), ("layer.2", 120, True))) == [
        [0, 2],
        [1],
    ]


def test_slower_and_faster_layers_are_not_added_up() -> None:
    assert parts(rows(("layer.0", 100, True), ("layer.1", -100, True))) == [[0], [1]]


def test_layers_with_other_kernels_or_another_change_stand_apart() -> None:
    both = [
        *rows(("layer.0", 9, True), change="tactic", after_kernels="a"),
        *rows(("layer.1", 9, True), change="tactic", after_kernels="b"),
    ]
    assert len(blocks_of(both)) == 2
    both = [
        *rows(("layer.0", 9, True)),
        *rows(("layer.1", 9, True), relation="new", before=None, before_titles=None, change="new"),
    ]
    assert len(blocks_of(both)) == 2


def test_without_times_layers_are_parted_by_name_alone() -> None:
    made = rows(("layer.0", 0, False), ("layer.1", 0, False), difference_ns=None)
    assert parts(made) == [[0, 1]]
    assert block_name(rows(("a", 0, False), after=None, after_titles=None), "after") is None
