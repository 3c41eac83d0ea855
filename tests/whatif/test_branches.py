"""Which kernels could run at once, by the data flow of their layers."""

from __future__ import annotations

import numpy as np

from nsysmap.core.engine_schema import CHAIN_LAYERS, CHAINS, EDGES, LAYERS, TENSORS
from nsysmap.core.result_schema import ROOFLINE
from nsysmap.core.table import Table
from nsysmap.whatif.branches import (
    Dependencies,
    LayerNeeds,
    layers_before,
    placed_on_streams,
)
from nsysmap.whatif.changes import CannotTell, DoesNotApply
from nsysmap.whatif.engine_facts import EngineFacts
from tests.whatif.test_replay import branching, program


def _dependencies(*before: tuple[int, ...], kernels: int = 1_000) -> Dependencies:
    """Layer for layer those from which each reads; kernel after kernel runs layer after layer."""
    layer_of = (np.arange(kernels) - 1) % len(before)
    return Dependencies(
        layer_of, {layer: LayerNeeds(reads, ()) for layer, reads in enumerate(before)}
    )


def test_layers_that_read_one_after_the_other_stay_on_one_stream() -> None:
    timeline = program(kernels=[1_000] * 3)
    found = placed_on_streams(timeline, _dependencies((), (0,), (1,)), 4)
    assert isinstance(found, DoesNotApply)
    assert "none could run concurrently" in found.reason


def test_layers_that_read_the_same_run_on_streams_of_their_own() -> None:
    timeline = program(kernels=[1_000] * 4, inferences=2)
    found = placed_on_streams(timeline, _dependencies((), (0,), (0,), (1, 2)), 4)
    assert not isinstance(found, (DoesNotApply, CannotTell))
    first, left, right, joined = (found[number] for number in (1, 2, 3, 4))
    assert first.queue == left.queue != right.queue
    assert (left.after, left.crossing) == ((1,), ())
    assert (right.after, right.crossing) == ((1,), (1,))
    assert joined.after == (2, 3)
    assert joined.crossing == ((3,) if joined.queue == left.queue else (2,))


def test_without_data_flow_nothing_is_known() -> None:
    timeline = program(kernels=[1_000] * 3)
    found = placed_on_streams(timeline, Dependencies(np.zeros(99, np.int64), {}), 4)
    assert isinstance(found, CannotTell)
    assert "give an engine file" in found.reason


def test_what_runs_on_several_streams_is_left_as_it_is() -> None:
    assert isinstance(placed_on_streams(branching(), _dependencies(()), 4), DoesNotApply)


# --- what layers read
# ---

Tensor = tuple[int, str, str]


def facts(
    *tensors: Tensor,
    edges: tuple[tuple[int, int], ...] = (),
    bindings: tuple[str, ...] = (),
    opaque: int | None = None,
) -> EngineFacts:
    """An engine of layers 0 to 5 with these tensors: (layer, in or out, name)."""
    return EngineFacts(
        layers=Table.of_rows(
            LAYERS,
            [
                {
                    "layer_id": at,
                    "name": f"l{at}",
                    "kind": "foreign_node" if at == opaque else "conv",
                }
                for at in range(6)
            ],
        ),
        tensors=Table.of_rows(
            TENSORS,
            [{"layer_id": at, "direction": way, "name": name} for at, way, name in tensors],
        ),
        edges=Table.of_rows(EDGES, [{"from_layer": one, "to_layer": two} for one, two in edges]),
        chains=Table.empty(CHAINS),
        chain_layers=Table.empty(CHAIN_LAYERS),
        roofline=Table.empty(ROOFLINE),
        bindings=bindings,
    )


CHAIN: tuple[Tensor, ...] = (
    *((1, "in", "x"), (1, "out", "a")),
    *((2, "in", "a"), (2, "out", "b")),
    *((3, "in", "b"), (3, "in", "x"), (3, "in", "state"), (3, "out", "c")),
)


def test_a_layer_waits_for_what_writes_its_tensors_and_for_what_nobody_shows_to() -> None:
    engine = facts(*CHAIN, edges=((1, 2), (2, 3)))
    assert layers_before(engine, {1, 2, 3}) == {
        1: LayerNeeds((), ()),  # the first reader's are the engine's inputs
        2: LayerNeeds((1,), ()),
        3: LayerNeeds((2,), ("state",)),
    }
    named = facts(*CHAIN, edges=((1, 2), (2, 3)), bindings=("state",))
    assert layers_before(named, {1, 3})[1] == LayerNeeds((), ("x",))
    assert layers_before(named, {1, 3})[3] == LayerNeeds((1,), ("x",))


def test_layers_without_kernels_are_looked_through() -> None:
    engine = facts(*CHAIN, edges=((1, 2), (2, 3), (3, 3)))
    assert layers_before(engine, {1, 3})[3] == LayerNeeds((1,), ("state",))
    assert layers_before(engine, {3})[3] == LayerNeeds((), ("state",))
    assert set(layers_before(engine, {3, 5})) == {3}  # of the other no inputs are shown
    assert set(layers_before(facts(*CHAIN, opaque=3), {2, 3})) == {2}
    assert layers_before(facts(), {1}) == {}


def test_the_first_layer_that_is_listed_reads_the_inputs_and_no_other_does() -> None:
    late = facts((4, "in", "y"), (2, "in", "x"), (2, "out", "y"), (5, "in", "z"))
    assert layers_before(late, {2, 4, 5}) == {
        2: LayerNeeds((), ()),
        4: LayerNeeds((), ()),
        5: LayerNeeds((), ("z",)),
    }
