"""Layers added up by kind, and over names that differ in numbers only."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.table import Table
from nsysmap.timing.layer_sums import (
    _by_time,
    common_name,
    layer_kinds,
    names_apart,
    repeated_layers,
)
from tests.reports import analysis


def layers(*rows: tuple[str, str, int | None]) -> Table:
    made = [
        {
            "layer_id": number,
            "engine": 0,
            "name": name,
            "kind": kind,
            "time_ns": time,
            "kernels": 1,
            "share_of_kernel_time": 0.1,
        }
        for number, (name, kind, time) in enumerate(rows)
    ]
    return Table.of_rows(LAYERS, made)


def test_layers_of_repeated_blocks_are_one_row_with_a_star_for_what_differs() -> None:
    rows = repeated_layers(
        layers(
            ("/layer.0/fc1_myl0_3", "gemm", 10),
            ("/layer.1/fc1_myl0_9", "gemm", 12),
            ("/layer.0/fc2_myl0_4", "gemm", 30),
            ("x", "cast", None),
        ),
        np.array([100, 200, 400, 50]),
        1000,
    )
    assert rows.ints("total_ns").tolist() == [400, 300, 50]
    assert rows.floats("share_of_all_kernel_time").tolist() == pytest.approx([0.4, 0.3, 0.05])
    told = [
        (
            row.text("name"),
            row.integer("layers"),
            row.integer("time_ns"),
            row.integer("first_layer"),
        )
        for row in rows
    ]
    assert told == [
        ("/layer.0/fc2_myl0_4", 1, 30, 2),
        ("/layer.*/fc1_myl0_*", 2, 22, 0),
        ("x", 1, 0, 3),
    ]


def test_layers_of_other_kinds_or_of_quite_another_time_are_not_taken_together() -> None:
    rows = repeated_layers(
        layers(
            ("conv1", "convolution", 100),
            ("conv2", "convolution", 40),
            ("conv3", "convolution", 30),
            ("conv4", "cast", 30),
        ),
        np.array([40, 30, 20, 10]),
        100,
    )
    assert [(row.text("name"), row.integer("layers")) for row in rows] == [
        ("conv{2,3}", 2),
        ("conv1", 1),
        ("conv4", 1),
    ]


def test_rows_that_would_have_the_same_name_have_their_numbers_in_it() -> None:
    named = [
        ("conv2", 100),
        ("conv3", 90),
        ("conv10", 95),
        ("conv4", 20),
        ("conv5", 19),
        ("fc1", 5),
        ("fc2", 5),
    ]
    rows = repeated_layers(
        layers(*((name, "convolution", time) for name, time in named)),
        np.array([100, 90, 95, 20, 19, 5, 5]),
        334,
    )
    assert [(row.text("name"), row.integer("layers")) for row in rows] == [
        ("conv{2,3,10}", 3),
        ("conv{4,5}", 2),
        ("fc*", 2),
    ]
    one, other, third = (
        ["a0/b2/c1", "a0/b3/c2", "a1/b2/c1"],
        ["a0/b2/c1", "a1/b4/c2"],
        ["a0/b5/c1", "a1/b6/c2"],
    )
    assert names_apart([one, other, third], [0, 0, 0]) == [
        "a*/b{2,3}/c*",
        "a*/b{2,4}/c*",
        "a*/b{5,6}/c*",
    ]
    assert names_apart([one, other, third], [0, 1, 2]) == ["a*/b*/c*"] * 3
    long = [f"a.{number}/b7/c{number + 1}" for number in (3, 12, 5, 9, 4)]
    assert names_apart([long, ["a.1/b7/c1", "a.2/b7/c9"]], [0, 0]) == [
        "a.{3,4,5,…}/b7/c*",
        "a.{1,2}/b7/c*",
    ]
    assert names_apart([["a1b1", "a2b1"], ["a1b1", "a2b1"], ["a1b2"]], [0, 0, 0]) == [
        "a*b1",
        "a*b1",
        "a1b2",
    ]  # nothing tells them apart


def fits(pattern: str, name: str) -> bool:
    """Whether a layer's name fits that of a row in which no number is left out."""
    text = (
        re.escape(pattern)
        .replace(r"\*", "[0-9]+")
        .replace(r"\{", "(")
        .replace(r"\}", ")")
        .replace(",", "|")
    )
    return re.fullmatch(text, name) is not None


def test_the_name_of_a_row_fits_the_layers_in_it_and_no_other_that_has_time() -> None:
    drawn = random.Random(7)
    for _ in range(300):
        blocks, branches = drawn.randint(1, 4), drawn.randint(1, 4)
        slow = [drawn.choice((100, 100, 150, 400)) for _ in range(branches)]
        rows = [
            (f"/inception{block}/branch{branch}/conv{number}", "convolution", round(slow[branch] * drawn.choice((1, 1, 1, 0.4))))  # noqa: E501
            for block in range(blocks) for branch in range(branches) for number in range(drawn.randint(1, 2))  # noqa: E501
        ]  # fmt: skip
        table = repeated_layers(layers(*rows), np.array([time for *_, time in rows]), 10_000)
        assert sum(row.integer("layers") for row in table) == len(rows)
        for row in table:
            mine = [time for name, _, time in rows if fits(row.text("name"), name)]
            assert (len(mine), sum(mine)) == (row.integer("layers"), row.integer("time_ns")), (
                row.text("name"),
                rows,
            )
            assert max(mine) <= 2 * min(mine)


def test_layers_with_one_number_in_common_stay_in_one_row_where_their_times_allow() -> None:
    near = [
        ("/b0/conv1", 210),
        ("/b1/conv1", 190),
        ("/b2/conv1", 205),
        ("/b0/conv2", 400),
        ("/b1/conv2", 390),
        ("/b0/conv3", 120),
    ]
    rows = repeated_layers(
        layers(*((name, "convolution", time) for name, time in near)),
        np.array([time for _, time in near]),
        2000,
    )
    assert {row.text("name"): row.integer("layers") for row in rows} == {
        "/b*/conv2": 2,
        "/b*/conv{1,3}": 4,
    }


def test_a_star_in_a_name_is_like_a_number() -> None:
    assert (
        common_name(["layer.*/fc1", "layer.2/fc1"])
        == common_name(["layer.2/fc1", "layer.*/fc1"])
        == "layer.*/fc*"
    )


@pytest.mark.parametrize(
    ("times", "together"),
    [
        ((100, 60), [[0, 1]]),
        ((100, 40), [[0], [1]]),
        # each is held to the slowest, by the fastest layer of a group
        ((100, 60, 55, 49), [[0, 1, 2], [3]]),
        ((100, 60, 45), [[0, 1], [2]]),
    ],
)
def test_layers_are_taken_together_while_the_slowest_takes_at_most_twice_the_fastest(
    times: tuple[int, ...], together: list[list[int]]
) -> None:
    assert _by_time([[at] for at in range(len(times))], times) == together


def test_the_fastest_layer_of_a_group_decides() -> None:
    assert _by_time([[0], [1, 2]], (100, 90, 40)) == [[0], [1, 2]]
    assert _by_time([[0, 1], [2]], (100, 40, 90)) == [[0, 1], [2]]


def test_numbers_that_all_names_share_stay() -> None:
    assert common_name(["a.0/b12/c", "a.1/b12/c"]) == "a.*/b12/c"
    assert common_name(["a.0"]) == "a.0"


def test_every_layer_with_time_is_in_one_kind_and_one_row() -> None:
    tables = analysis("bert_trt10", "sync.sqlite").tables
    times = tables.layers.ints("time_ns")
    for table in (layer_kinds(tables.layers), tables.repeated_layers):
        assert table.ints("time_ns").sum() == times[times > 0].sum()
        assert table.ints("layers").sum() == (times > 0).sum()


def test_layers_of_incomplete_inferences_count_though_nothing_tells_their_kernels() -> None:
    whole = Table.of_rows(
        LAYERS,
        [
            {"layer_id": 0, "name": "a", "kind": "gemm"},
            {"layer_id": 1, "name": "b", "kind": "cast"},
        ],
    )
    rows = repeated_layers(whole, np.array([1, 0]), 1)
    assert rows.ints("kernels").tolist() == [0]
    assert rows.floats("share_of_all_kernel_time").tolist() == [1.0]
    assert rows.ints("repeat_id").tolist() == [0]
    # of no kernels at all nothing is a share
    timed = Table.of_rows(LAYERS, [{"layer_id": 0, "name": "a", "kind": "gemm", "time_ns": 4}])
    assert repeated_layers(timed, np.array([0]), 0).floats("share_of_all_kernel_time").tolist() == [
        0
    ]


def test_rows_of_the_same_time_are_by_engine_and_then_by_name() -> None:
    made = [
        {"layer_id": at, "engine": engine, "name": name, "kind": "gemm", "time_ns": 5, "kernels": 2}
        for at, (engine, name) in enumerate(((1, "a"), (0, "c"), (0, "b"), (None, "d")))
    ]
    rows = repeated_layers(Table.of_rows(LAYERS, made), np.array([7] * 4), 28)
    assert [row.text("name") for row in rows] == ["d", "b", "c", "a"]
    assert rows.ints("kernels").tolist() == [2] * 4
    assert rows.ints("repeat_id").tolist() == [0, 1, 2, 3]
