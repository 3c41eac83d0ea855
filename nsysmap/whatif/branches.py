"""The change of a timeline in which independent layers run on separate streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from nsysmap.core.table import MISSING, IntArray
from nsysmap.whatif.changes import (
    CannotTell,
    Changed,
    DoesNotApply,
    node_lead_ns,
    uses_several_streams,
)
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.timeline import Costs, Step, Timeline, Work, all_works, main_queue

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
    """What each layer with kernels waits for; without opaque regions and layers whose inputs the
    engine files do not show.
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
    """Per layer the tensors that it reads and no layer writes, except engine inputs; if the file
    does not list these, those of the first reader.
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
    """The contents of one inference's streams so far; pieces of work by number."""

    tail: dict[int, int] = field(default_factory=dict)  # per queue its last kernel
    of_layer: dict[int, int] = field(default_factory=dict)  # per layer its last kernel
    queue_of: dict[int, int] = field(default_factory=dict)
    # the work launched before the first read of an unwritten tensor
    at_tensor: dict[str, set[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Dependencies:
    """Which kernels wait for which."""

    layer_of: IntArray  # per kernel (kernel_id) its layer
    before: Before

    def wanted(self, work: Work, streams: _Streams) -> set[int]:
        """The work for which this piece waits: that of its layer and of the layers from which it
        reads; all work if unknown.
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


def on_auxiliary_streams(
    timeline: Timeline, dependencies: Dependencies, *, event_ns: int, branches_ns: int, streams: int
) -> Changed:
    """Each kernel after those on which it depends, on up to so many more streams; a wait for
    another stream costs two event calls, and a graph takes longer to launch.
    """
    if uses_several_streams(timeline):
        return DoesNotApply("the inferences already use several streams")
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
    threads = []
    for number, steps in enumerate(timeline.threads):
        first = first_free + number * streams
        queues = (main_queue(steps), *range(first, first + streams))
        threads.append(_spread(steps, queues, dependencies, timeline.costs, event_ns, branches_ns))
    changed = replace(timeline, threads=tuple(threads))
    if not uses_several_streams(changed):
        return DoesNotApply("each layer depends on the one before it: none could run concurrently")
    return changed


def _spread(
    steps: Iterable[Step],
    queues: tuple[int, ...],
    dependencies: Dependencies,
    costs: Costs,
    event_ns: int,
    branches_ns: int,
) -> tuple[Step, ...]:
    """The steps with their kernels on these queues; an event call takes ``event_ns``, and a
    graph with branches so much longer.
    """
    inference, streams = -1, _Streams()
    beside = replace(costs, node_ns=costs.node_ns + _BESIDE_NS)
    result = []
    for step in steps:
        if not step.enqueue or not step.works:
            result.append(step)
            continue
        if step.inference != inference:
            inference, streams = step.inference, _Streams()
        works: list[Work] = []
        here: dict[int, Work] = {}
        waits = 0
        for work in step.works:
            placed = _placed(work, queues, dependencies, streams)
            crossing = tuple(one for one in placed.after if streams.queue_of[one] != placed.queue)
            waits += bool(crossing)
            if step.graph:
                works.append(
                    placed._replace(
                        lead_ns=node_lead_ns(
                            placed, [here[one] for one in placed.after if one in here], beside
                        )
                    )
                )
            else:
                same = crossing == placed.after
                works.append(placed if same else placed._replace(after=crossing))
            here[placed.number] = placed
        if step.graph:
            result.append(
                step._replace(
                    call_ns=step.call_ns + (branches_ns if waits else 0), works=tuple(works)
                )
            )
        else:
            result.append(
                step._replace(own_ns=step.own_ns + 2 * waits * event_ns, works=tuple(works))
            )
    return tuple(result)


def _placed(
    work: Work, queues: tuple[int, ...], dependencies: Dependencies, streams: _Streams
) -> Work:
    """The work placed after one for which it waits, otherwise in an empty stream, otherwise after
    the oldest; ``after`` is everything for which it waits.
    """
    wanted = dependencies.wanted(work, streams)
    behind = [queue for queue in queues if streams.tail.get(queue) in wanted]
    free = [queue for queue in queues if queue not in streams.tail]
    queue = (behind or free or [min(queues, key=lambda one: streams.tail[one])])[0]
    streams.tail[queue], streams.queue_of[work.number] = work.number, queue
    streams.of_layer[dependencies.layer(work)] = work.number
    return work._replace(queue=queue, after=tuple(sorted(wanted)))
