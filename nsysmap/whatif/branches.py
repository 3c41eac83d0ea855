"""Changes a timeline so that independent layers run on separate streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field, replace
from typing import NamedTuple

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray
from nsysmap.whatif.changes import (
    CannotTell,
    Changed,
    DoesNotApply,
    node_lead_ns,
    uses_several_streams,
)
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.timeline import Step, Timeline, Work, all_works, each_step, main_queue

MOST_STREAMS = 4  # beside the main one; TensorRT decides itself unless setMaxAuxStreams is given
# how much further apart nodes of one branch are where others run beside them: 0.29 us against 0.1
_BESIDE_NS = 190
_MOST_LOST = 0.05  # of the kernels' time


@dataclass(frozen=True)
class LayerNeeds:
    """What a layer waits for."""

    # layer_ids of layers with kernels from which it reads, directly or through layers without
    # kernels
    layers: tuple[int, ...]
    unwritten: tuple[str, ...]
    """Tensors that no layer in the file writes and that are not engine inputs: anything that ran
    before may write them.
    """


Before = dict[int, LayerNeeds]


def layers_before(facts: EngineFacts, running: set[int]) -> Before:
    """What each layer with kernels waits for. Opaque regions and layers whose inputs the engine
    files do not show are left out.
    """
    writers: dict[int, list[int]] = defaultdict(list)
    for source, target in zip(
        facts.edges.ints("from_layer").tolist(), facts.edges.ints("to_layer").tolist(), strict=True
    ):
        writers[target].append(source)
    unwritten = _unwritten(facts)
    shown = set(
        facts.tensors.ints("layer_id")[facts.tensors.text("direction").equals("in")].tolist()
    )
    opaque = set(
        facts.layers.ints("layer_id")[facts.layers.text("kind").equals("foreign_node")].tolist()
    )
    found: Before = {}
    for layer in running & shown - opaque:
        before: dict[int, None] = {}
        tensors: dict[str, None] = {}
        seen: set[int] = set()
        reached = [layer]
        while reached:
            one = reached.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in running and one != layer:
                before[one] = None
                continue
            tensors.update(dict.fromkeys(unwritten[one]))
            reached += writers[one]
        found[layer] = LayerNeeds(tuple(before), tuple(tensors))
    return found


def _unwritten(facts: EngineFacts) -> dict[int, list[str]]:
    """For each layer the tensors that it reads and that no layer writes, except engine inputs. If
    the file does not list these, the inputs of the first reader take their place.
    """
    tensors = facts.tensors
    layer, name, reads = (
        tensors.ints("layer_id").tolist(),
        tensors.text("name").list(),
        tensors.text("direction").equals("in").tolist(),
    )
    written = {one for one, read in zip(name, reads, strict=True) if not read}
    first = min(layer, default=MISSING)
    result: dict[int, list[str]] = defaultdict(list)
    inputs: set[str | None] = set(facts.bindings) or {
        one for at, one, read in zip(layer, name, reads, strict=True) if read and at == first
    }
    for at, one, read in zip(layer, name, reads, strict=True):
        if read and one not in written and one not in inputs:
            result[at].append(str(one))
    return result


@dataclass
class _Streams:
    """What the streams of one inference contain so far, as numbers of pieces of work."""

    tail: dict[int, int] = field(default_factory=dict)  # per queue its last kernel
    of_layer: dict[int, int] = field(default_factory=dict)  # per layer its last kernel
    queue_of: dict[int, int] = field(default_factory=dict)
    # the work launched before the first read of an unwritten tensor
    at_tensor: dict[str, set[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dependencies:
    """The kernels that each kernel waits for."""

    layer_of: IntArray  # per kernel (kernel_id) its layer
    before: Before

    def wanted(self, work: Work, streams: _Streams) -> set[int]:
        """The work that this piece waits for: that of its layer and of the layers it reads from;
        all work if unknown.
        """
        layer = self.layer(work)
        if layer not in self.before:
            return set(streams.tail.values())
        needs = self.before[layer]
        wanted = {
            streams.of_layer[one] for one in (*needs.layers, layer) if one in streams.of_layer
        }
        for tensor in needs.unwritten:
            wanted |= streams.at_tensor.setdefault(tensor, set(streams.tail.values()))
        return wanted

    def layer(self, work: Work) -> int:
        """The kernel's layer, MISSING for none."""
        return int(self.layer_of[work.row]) if work.row != MISSING else MISSING


class Placement(NamedTuple):
    """The stream where a piece of work runs, and what it waits for."""

    queue: int
    after: tuple[int, ...]  # numbers of all work for which it waits
    crossing: tuple[int, ...]  # of those: in other queues


Placements = Mapping[int, Placement]
"""The placement of each piece of work in an enqueue, by its number."""


def placed_on_streams(
    timeline: Timeline, dependencies: Dependencies, streams: int
) -> Placements | DoesNotApply | CannotTell:
    """Places each kernel after those it depends on, on up to so many additional streams."""
    if uses_several_streams(timeline):
        return DoesNotApply("the {:inference}s already use several streams")
    if not dependencies.before:
        return CannotTell(
            "the dependencies between layers are unknown: give an engine file with tensors"
            " (--exportLayerInfo)"
        )
    kernels = [work for work in all_works(timeline) if work.kind == "kernel"]
    lost = sum(
        work.dur_ns for work in kernels if dependencies.layer(work) not in dependencies.before
    )
    if lost > _MOST_LOST * sum(work.dur_ns for work in kernels):
        unmapped = sum(work.dur_ns for work in kernels if dependencies.layer(work) == MISSING)
        if 2 * unmapped > lost:
            return CannotTell("too many kernels have no layer")
        return CannotTell(
            "too many kernels have a layer whose inputs the engine file does not show"
        )
    first_free = 1 + max((work.queue for work in all_works(timeline)), default=0)
    places: dict[int, Placement] = {}
    first_queue: dict[tuple[int, int], int] = {}  # of the kernels of each thread's inference
    branches = False
    for number, steps in enumerate(timeline.threads):
        first = first_free + number * streams
        queues = (main_queue(steps), *range(first, first + streams))
        inference, so_far = -1, _Streams()
        for step in steps:
            if not step.enqueue:
                continue
            if step.works and step.inference != inference:
                inference, so_far = step.inference, _Streams()
            for work in step.works:
                place = _place(work, queues, dependencies, so_far)
                places[work.number] = place
                if work.kind == "kernel":
                    mine = (number, step.inference)
                    branches |= first_queue.setdefault(mine, place.queue) != place.queue
    if not branches:
        return DoesNotApply("each layer depends on the one before it: none could run concurrently")
    return places


def on_auxiliary_streams(
    timeline: Timeline,
    places: Placements | DoesNotApply | CannotTell,
    *,
    event_ns: int,
    branches_ns: int,
) -> Changed:
    """The timeline with its kernels placed so: a wait for another stream costs two event calls of
    ``event_ns``, and a graph with branches takes longer to launch.
    """
    if isinstance(places, (DoesNotApply, CannotTell)):
        return places
    beside = replace(timeline.costs, node_ns=timeline.costs.node_ns + _BESIDE_NS)

    def changed(step: Step) -> Step:
        if not step.enqueue or not step.works:
            return step
        waits = sum(bool(places[work.number].crossing) for work in step.works)
        if not step.graph:
            works = [
                work.moved(place.queue, place.crossing, work.lead_ns)
                for work in step.works
                for place in (places[work.number],)
            ]
            return step._replace(own_ns=step.own_ns + 2 * waits * event_ns, works=tuple(works))
        here: dict[int, Work] = {}
        for work in step.works:
            place = places[work.number]
            before = [here[one] for one in place.after if one in here]
            lead_ns = node_lead_ns(work, place.queue, before, beside)
            here[work.number] = work.moved(place.queue, place.after, lead_ns)
        return step._replace(
            call_ns=step.call_ns + (branches_ns if waits else 0), works=tuple(here.values())
        )

    return each_step(timeline, changed)


def _place(
    work: Work, queues: tuple[int, ...], dependencies: Dependencies, streams: _Streams
) -> Placement:
    """Places work after a piece it waits for, otherwise in an empty stream, otherwise after the
    oldest work.
    """
    wanted = dependencies.wanted(work, streams)
    behind = [queue for queue in queues if streams.tail.get(queue) in wanted]
    free = [queue for queue in queues if queue not in streams.tail]
    queue = (behind or free or [min(queues, key=lambda one: streams.tail[one])])[0]
    streams.tail[queue], streams.queue_of[work.number] = work.number, queue
    streams.of_layer[dependencies.layer(work)] = work.number
    after = tuple(sorted(wanted))
    return Placement(queue, after, tuple(one for one in after if streams.queue_of[one] != queue))
