"""Which kernels could run at once, by the data flow of their layers."""

from __future__ import annotations

import numpy as np

from nsysmap.whatif.branches import Dependencies, LayerNeeds, placed_on_streams
from nsysmap.whatif.changes import CannotTell, DoesNotApply
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
