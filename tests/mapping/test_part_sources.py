"""Where the part of a kernel within an opaque region comes from, on ranges and kernels that are
made up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import GPU_KERNELS
from nsysmap.mapping.parts.parts import Parts, Settled, find_parts
from nsysmap.mapping.parts.parts_by_name import PatternPart
from tests.mapping.test_range_layers import REGION, Tree, onnx, ranges_of

SUM, NORM, OTHER = "__myl_Add_0x1", "__myl_AddMeanMulSubSqrtDiv_0x2", "__myl_Tan_0x3"


def layers(*names: str) -> Table:
    """Layers, of which a name in braces is an opaque region."""
    rows = [
        {
            "layer_id": at,
            "engine": 0,
            "layer_index": at,
            "name": name,
            "kind": "foreign_node" if name.startswith("{") else "gemm",
        }
        for at, name in enumerate(names)
    ]
    blank = {
        column.name: {"int": 0, "float": 0.0, "bool": False, "text": ""}[column.kind]
        for column in LAYERS.columns
        if not column.nullable
    }
    return Table.of_rows(LAYERS, [{**blank, **row} for row in rows])


def kernels(names: Sequence[str], *, stream: Sequence[int] = ()) -> Table:
    rows = [
        {
            "kernel_id": at,
            "name": name,
            "start_ns": 10 * at,
            "end_ns": 10 * at + 5,
            "launch": at,
            "launch_start_ns": 10 * at,
            "stream": stream[at] if stream else 7,
        }
        for at, name in enumerate(names)
    ]
    return Table.of_rows(GPU_KERNELS, rows)


def settled(
    place: Sequence[int],
    layer: Sequence[int],
    *,
    inference: Sequence[int] = (),
    whole: Sequence[bool] = (),
) -> Settled:
    count = len(place)
    return Settled(
        np.array(place, np.int64),
        np.array(layer, np.int64),
        np.array(inference if len(inference) else [0] * count, np.int64),
        np.array(whole if len(whole) else [True] * count, np.bool_),
    )


def told(found: Parts) -> list[tuple[str | None, str | None]]:
    return list(zip(found.part.list(), found.by.list(), strict=True))


def test_without_an_opaque_region_there_are_no_parts() -> None:
    held = ranges_of([["conv"]])
    found = find_parts(kernels([SUM, SUM]), held, settled([0, 0], [0, MISSING]), layers("conv"))
    assert told(found) == [(None, None)] * 2


def test_a_part_is_the_tag_around_it_else_its_payload_s_nodes_else_its_range() -> None:
    inside: list[Tree] = [
        ("$$myelin$$tag", [("inner", ["innermost"])]),  # 2, 3, 4
        "node",  # 5
        ("nodes", [], onnx("a", "b")),  # 6
        ("odd", [], "no JSON"),  # 7
    ]
    held = ranges_of([["conv", (REGION, inside)]])  # 0, 1
    places = [0, 1, 2, 3, 4, 5, 6, 7, MISSING]
    found = find_parts(
        kernels([OTHER] * 9), held, settled(places, [0, *[1] * 8]), layers("conv", REGION)
    )
    assert told(found)[2:8] == [
        ("$$myelin$$tag", "tag"),
        ("$$myelin$$tag", "tag"),
        ("$$myelin$$tag", "tag"),
        ("node", "node"),
        ("a, b", "payload"),
        ("odd", "node"),
    ]
    assert told(found)[0] == (None, None)  # it is in no region
    # the region's own range is no finer than the layer, and neither is none
    assert [by for _, by in told(found)[1::7]] == ["pattern", "pattern"]


def test_payloads_of_other_domains_than_myelin_s_say_nothing() -> None:
    tree: list[Tree] = [(REGION, [("nodes", [], onnx("a"))])]
    held = ranges_of([tree])
    rows = held.ranges.records()
    for row in rows:
        row["domain"] = "TensorRT"
    renamed = type(held)(
        Table.of_rows(held.ranges.spec, rows), held.calls, held.held_layers, held.held_calls
    )
    where = settled([1], [0])
    assert told(find_parts(kernels([OTHER]), held, where, layers(REGION))) == [("a", "payload")]
    assert told(find_parts(kernels([OTHER]), renamed, where, layers(REGION))) == [("nodes", "node")]


@pytest.mark.parametrize(("depth", "is_tagged"), [(1, True), (4, True), (5, False)])
def test_a_tag_is_found_up_to_four_ranges_out(depth: int, is_tagged: bool) -> None:
    tree: Tree = "launch"
    for at in range(depth - 1):
        tree = (f"around{at}", [tree])
    held = ranges_of([[(REGION, [("$$myelin$$tag", [tree])])]])
    last = len(held.layers) - 1
    found = find_parts(kernels([OTHER]), held, settled([last], [0]), layers(REGION))
    assert told(found) == [("$$myelin$$tag", "tag") if is_tagged else ("launch", "node")]


def by_name(
    names: Sequence[str],
    *,
    layer: Sequence[int] = (),
    inference: Sequence[int] = (),
    whole: Sequence[bool] = (),
    stream: Sequence[int] = (),
    namer: object = None,
) -> list[tuple[str | None, str | None]]:
    """Parts where no range tells any, of kernels in the first of two regions by default."""
    nothing = ranges_of([[]])
    held = settled(
        [MISSING] * len(names), layer or [0] * len(names), inference=inference, whole=whole
    )
    regions = layers(REGION, "{ForeignNode[c...d]}", "conv")
    return told(find_parts(kernels(names, stream=stream), nothing, held, regions, namer))  # type: ignore[arg-type]


def test_parts_are_numbered_within_an_inference_and_a_region() -> None:
    found = by_name(
        [NORM, NORM, NORM, NORM, NORM],
        layer=[0, 0, 1, 0, 0],
        inference=[0, 0, 0, 1, 1],
    )
    words = [part for part, _ in found]
    assert {by for _, by in found} == {"pattern"}
    assert words[0] == words[2] == words[3]
    assert words[1] == words[4] != words[0]
    assert words[0] is not None
    assert words[0].endswith("#1")


def test_outside_of_inferences_and_in_cut_ones_there_is_no_number() -> None:
    alone, cut = by_name([NORM, NORM], inference=[MISSING, 0], whole=[False, False])
    (numbered,) = by_name([NORM])
    assert alone == cut
    assert numbered[0] == f"{alone[0]} #1"


def test_the_end_or_the_beginning_of_a_whole_inference_has_its_numbers() -> None:
    names = [NORM, SUM, NORM, OTHER]
    whole = [part for part, _ in by_name(names)]

    def parts(cut: Sequence[str], layer: int = 0) -> list[str | None]:
        count = len(cut)
        found = by_name(
            [*names, *cut],
            layer=[0] * 4 + [layer] * count,
            inference=[0] * 4 + [1] * count,
            whole=[True] * 4 + [False] * count,
        )
        return [part for part, _ in found][4:]

    assert parts(names[2:]) == whole[2:]
    assert parts(names[:3]) == whole[:3]
    assert parts(names[1:3]) != whole[1:3]
    assert parts(names[2:], layer=1) != whole[2:]
    assert parts([*names, SUM]) != [*whole, whole[1]]


def test_what_a_namer_knows_is_the_part_of_whole_inferences() -> None:
    asked: list[tuple[int, list[tuple[int, ...]]]] = []

    def namer(layer: int, parts: Sequence[PatternPart]) -> list[str | None]:
        asked.append((layer, [tuple(one.places) for one in parts]))
        return ["/block/norm", *[None] * (len(parts) - 1)]

    found = by_name([NORM, OTHER, NORM, OTHER], layer=[1] * 4, inference=[0, 0, 1, 1], namer=namer)
    assert found[0] == found[2] == ("/block/norm", "onnx")
    assert found[1] == found[3]
    assert found[1][1] == "pattern"
    assert asked == [(1, [(0,), (1,)])]  # inferences that launch the same are asked about once
    asked.clear()
    cut = by_name([NORM, OTHER], whole=[False] * 2, namer=namer)
    assert [by for _, by in cut] == ["pattern"] * 2
    assert asked == []


def test_inferences_on_other_streams_are_alike_if_their_side_streams_are() -> None:
    asked: list[int] = []

    def namer(layer: int, parts: Sequence[PatternPart]) -> list[str | None]:
        asked.append(layer)
        return [None] * len(parts)

    names = [NORM, OTHER, NORM, OTHER]
    for stream, often in (([7, 7, 9, 9], 1), ([7, 8, 9, 10], 1), ([7, 8, 9, 9], 2)):
        asked.clear()
        by_name(names, inference=[0, 0, 1, 1], stream=stream, namer=namer)
        assert len(asked) == often
