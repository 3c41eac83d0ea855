"""Which engine and which of its layers each range is of, on ranges that are made up."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import NVTX_RANGES
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.ranges.range_layers import RangeLayers, payload_nodes, resolve_ranges
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges, tensorrt_ranges

CALL = "ExecutionContext::enqueueV3"
REGION = "{ForeignNode[a...b]}"


def engine(*names: str, region: int | None = None) -> Engine:
    layers = tuple(Layer(at, name, "gemm", region=region) for at, name in enumerate(names))
    return Engine("x.json", layers, detailed=True)


Tree = str | tuple[str, Sequence["Tree"]] | tuple[str, Sequence["Tree"], str]
"""A range's text, what lies in it, and its payload."""


def ranges_of(calls: Sequence[Sequence[Tree]], *, thread: Sequence[int] = ()) -> TensorRtRanges:
    """Calls of the engine with the ranges in each; the text of those in none begins with ``-``."""
    rows: list[dict[str, object]] = []
    clock = iter(range(0, 1_000_000, 10))

    def add(tree: Tree, on: int) -> None:
        name, inside, payload = (*((tree,) if isinstance(tree, str) else tree), [], None)[:3]
        row: dict[str, object] = {
            "start_ns": next(clock),
            "process": 1,
            "thread": on,
            "name": name,
            "payload": payload,
            "domain": "TensorRT" if payload is None else "myelin-exec",
            "push_pop": True,
            "one_thread": True,
        }
        rows.append(row)
        for one in inside:
            add(one, on)
        row["end_ns"] = next(clock)

    for at, call in enumerate(calls):
        on = thread[at] if thread else 7
        add((CALL, list(call)), on)
    return tensorrt_ranges(Table.of_rows(NVTX_RANGES, rows))


def resolved(
    calls: Sequence[Sequence[Tree]],
    *engines: Engine,
    used: Sequence[int] | None = None,
    thread: Sequence[int] = (),
) -> RangeLayers:
    held = ranges_of(calls, thread=thread)
    every = np.arange(len(held.layers)) if used is None else np.array(used, np.int64)
    return resolve_ranges(held, engines, every)


def test_a_range_is_the_layer_of_its_text_in_the_engine_that_knows_most_of_its_call() -> None:
    first, second = engine("a", "b", "c"), engine("a", "d", "e")
    found = resolved([["a", "b", "c"], ["a", "d", "e"]], first, second)
    assert found.engine.tolist() == [0] * 3 + [1] * 3
    assert found.layer.tolist() == [0, 1, 2, 3, 4, 5]
    assert not (found.inner.any() or found.ambiguous.any() or found.several.any())
    assert [(one.engine, one.ranges, one.known, one.accepted) for one in found.fits] == [
        (0, 3, 3, True),
        (1, 3, 3, True),
    ]
    assert [one.named for one in found.fits] == [frozenset({0, 1, 2})] * 2


def test_without_engines_or_ranges_nothing_is_found() -> None:
    for found in (resolved([["a"]]), resolved([[]], engine("a"))):
        assert set(found.layer.tolist()) <= {MISSING}
        assert set(found.engine.tolist()) <= {MISSING}
        assert found.fits == ()
        assert not (found.inner.any() or found.ambiguous.any() or found.several.any())


@pytest.mark.parametrize(("known", "accepted"), [(4, True), (3, False)])
def test_an_engine_must_know_four_fifths_of_a_call_s_ranges(known: int, accepted: bool) -> None:
    names = [f"n{at}" for at in range(5)]
    found = resolved([[*names]], engine(*names[:known], "other"))
    assert found.engine.tolist() == [0 if accepted else MISSING] * 5
    [fit] = found.fits
    assert (fit.ranges, fit.known, fit.accepted) == (5, known, accepted)
    assert (fit.trace_layer, fit.engine_layer) == (f"n{known}", "other")


def test_only_ranges_that_ran_kernels_speak_for_an_engine() -> None:
    names = ["a", "b", "x", "y", "z"]
    known = engine("a", "b")
    assert resolved([[*names]], known).engine.tolist() == [MISSING] * 5
    assert resolved([[*names]], known, used=[0, 1]).engine.tolist() == [0] * 5
    # where no kernels are in the trace, the innermost ranges do
    nested: list[Tree] = [("x", ["a"]), ("y", ["b"])]
    assert resolved([nested], known).engine.tolist() == [MISSING] * 4
    assert resolved([nested], known, used=[]).engine.tolist() == [0] * 4


def test_of_two_engines_that_know_all_the_one_with_less_left_over_ran() -> None:
    small, large = engine("a", "b"), engine("a", "b", "c", "d")
    for engines, ran in (((small, large), 0), ((large, small), 1)):
        assert resolved([["a", "b"]], *engines).engine.tolist() == [ran] * 2
    # but one that knows more goes before one that is used whole
    assert resolved([["a", "b", "c"]], small, large).engine.tolist() == [1] * 3
    assert (
        resolved([["a", "b"], ["a", "b", "c"]], small, large).engine.tolist() == [0] * 2 + [1] * 3
    )


def test_a_file_that_fits_no_call_says_what_of_all_ranges_it_knows() -> None:
    found = resolved([["a", "b"], ["a", "c"]], engine("a", "b"), engine("c", "q"))
    assert [(one.ranges, one.known, one.accepted) for one in found.fits] == [
        (2, 2, True),
        (3, 1, False),
    ]
    assert found.fits[1].trace_layer == "a"
    assert found.fits[1].engine_layer == "q"
    assert found.fits[0].engine_layer is None


def test_ranges_outside_of_calls_are_one_group() -> None:
    held = ranges_of([["a", "b"]])
    outside = TensorRtRanges(
        held.ranges, held.calls[:0], held.held_layers, np.full(2, MISSING, np.int64)
    )
    found = resolve_ranges(outside, [engine("a", "b")], np.arange(2))
    assert found.layer.tolist() == [0, 1]


# --- regions
# ------------------------------------------------------------------------------------------


def test_a_range_within_an_opaque_region_is_a_part_of_it() -> None:
    opaque = engine("conv", REGION)
    tree: list[Tree] = ["conv", (REGION, [("$$myelin$$tag", ["node_myl0_1", "node_myl0_2"])])]
    found = resolved([tree], opaque)
    assert found.layer.tolist() == [0, 1, 1, 1, 1]
    assert found.inner.tolist() == [False, False, True, True, True]
    assert not found.ambiguous.any()
    [fit] = found.fits
    assert (fit.ranges, fit.known, fit.parts) == (5, 5, 3)
    # without the region's own range they are unknown
    assert resolved([["conv", "x", "y"]], opaque).layer.tolist() == [MISSING] * 3


def test_four_ranges_between_a_launch_and_its_region_are_looked_through() -> None:
    def nested(depth: int) -> list[Tree]:
        tree: Tree = "launch"
        for at in range(depth):
            tree = (f"around{at}", [tree])
        return ["conv", (REGION, [tree])]

    for depth, known in ((4, True), (5, False)):
        found = resolved([nested(depth)], engine("conv", REGION), used=[0, 1])
        assert (found.layer.tolist()[-1] == 1) == known, depth
        assert found.inner.tolist()[-1] == known


def test_the_range_of_a_region_whose_nodes_are_layers_says_nothing() -> None:
    split = engine("n_myl0_0", "n_myl0_1", region=0)
    tree: list[Tree] = [(REGION, ["n_myl0_0", "n_myl0_1"])]
    found = resolved([tree], split)
    assert found.layer.tolist() == [MISSING, 0, 1]
    assert (found.fits[0].ranges, found.fits[0].known) == (2, 2)
    # of an engine without such nodes it counts
    plain = resolved([tree], engine("n_myl0_0", "n_myl0_1"))
    assert plain.fits[0].ranges == 3


# --- texts that several layers share
# -------------------------------------------------------------------


def onnx(*names: str) -> str:
    return json.dumps({"Name": "x", "Layers": "".join(f"[ONNX Layer: {name}]" for name in names)})


SHARED = ("n_myl0_0", "n_myl1_0", "n_myl2_0")  # Myelin's ranges leave out what differs


def test_the_kth_range_of_a_text_is_the_kth_layer_of_that_text() -> None:
    held = engine("a", *SHARED)
    found = resolved([["n", "a", "n", "n"], ["n", "n", "a", "n"]], held)
    assert found.layer.tolist() == [1, 0, 2, 3, 1, 2, 0, 3]
    assert not found.ambiguous.any()
    # and an exact text is only its own layer's
    assert resolved([["n_myl1_0", "a"]], held).layer.tolist() == [2, 0]


def test_where_the_number_does_not_fit_nothing_is_told_but_in_the_last_call_of_a_thread() -> None:
    held = engine("a", *SHARED)
    found = resolved([["a", "n", "n"], ["a", "n", "n", "n"], ["a", "n"]], held)
    assert found.layer.tolist() == [0, MISSING, MISSING, 0, 1, 2, 3, 0, 1]
    assert found.ambiguous.tolist() == [False, True, True, *[False] * 6]
    # each thread has a last call
    found = resolved([["a", "n"], ["a", "n"]], held, thread=[7, 8])
    assert found.layer.tolist() == [0, 1, 0, 1]
    # more than there are layers is no cut
    found = resolved([["a", "n", "n", "n", "n"]], held)
    assert found.ambiguous.tolist() == [False, *[True] * 4]


def test_a_payload_s_onnx_nodes_decide_before_the_order_does() -> None:
    layers = tuple(
        Layer(at, name, "gemm", onnx=nodes)
        for at, (name, nodes) in enumerate(zip(SHARED, (("x",), ("y",), ("x",)), strict=True))
    )
    held = Engine("x.json", layers, detailed=True)
    tree: list[Tree] = [("n", [], onnx("y")), ("n", [], onnx("x")), ("n", [], onnx("x"))]
    assert resolved([tree], held).layer.tolist() == [1, 0, 2]
    # the only layer of these nodes is meant however often it is named
    twice: list[Tree] = [("n", [], onnx("y")), ("n", [], onnx("y"))]
    assert resolved([twice, ["n"]], held).layer.tolist() == [1, 1, 0]
    # nodes that no layer has say nothing
    other: list[Tree] = [("n", [], onnx("q")), ("n", [], onnx("q")), ("n", [], onnx("q"))]
    assert resolved([other], held).layer.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("payload", "nodes"),
    [
        (onnx("a", "b"), ("a", "b")),
        ('{"Layers": 3}', ()),
        ('{"Other": "[ONNX Layer: a]"}', ()),
        ('["[ONNX Layer: a]"]', ()),
        ("no JSON", ()),
        ("", ()),
        ("[" * 100_000, ()),
    ],
)
def test_the_nodes_of_a_payload(payload: str, nodes: tuple[str, ...]) -> None:
    assert payload_nodes(payload) == nodes


def test_a_region_may_be_the_first_layer_of_its_engine() -> None:
    found = resolved([[(REGION, ["$$myelin$$tag"]), "b"]], engine(REGION, "b"), used=[1, 2])
    assert found.layer.tolist() == [0, 0, 1]
    assert found.inner.tolist() == [False, True, False]
    assert found.engine.tolist() == [0, 0, 0]


def test_the_first_payload_of_a_trace_decides_like_any_other() -> None:
    layers = tuple(Layer(at, "x", "gemm", onnx=(f"n{at}",)) for at in range(2))
    found = resolved([[("x", [], onnx("n1"))]], Engine("x.json", layers, detailed=True))
    assert found.layer.tolist() == [1]
    assert found.ambiguous.tolist() == [False]


def test_calls_outside_all_others_share_a_group_and_each_call_has_its_own_engine() -> None:
    one, other = engine("a", "b"), engine("c", "d")
    found = resolved([["c", "d"], ["a", "b"], ["a"]], one, other)
    assert found.engine.tolist() == [1, 1, 0, 0, 0]
    assert found.layer.tolist() == [2, 3, 0, 1, 0]
    # of two that know all, the one with fewer layers left over
    larger = engine("a", "b", "e", "f")
    assert resolved([["a", "b"]], larger, one).engine.tolist() == [1, 1]
    assert resolved([["a", "b"]], one, larger).engine.tolist() == [0, 0]
