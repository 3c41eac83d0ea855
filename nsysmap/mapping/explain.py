"""Gathers every piece of evidence for the layer of one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray
from nsysmap.inputs.engine.model import Engine
from nsysmap.mapping.mapped_trace import MappedTrace
from nsysmap.mapping.order.by_order import EngineVerdict, considered
from nsysmap.mapping.order.kernel_alignment import Alignment
from nsysmap.mapping.ranges.launch_ranges import node_chain
from nsysmap.names.decode import affinity, decode, matches_tactic, summary


@dataclass(frozen=True)
class Launch:
    """The call that launched the kernel, or its graph."""

    api: str
    start_ns: int
    end_ns: int
    thread: int  # nsys globalTid
    correlation: int | None


@dataclass(frozen=True)
class NodeCreation:
    """One step from a replayed graph node to the node that stream capture created."""

    graph_node: int
    start_ns: int
    thread: int


@dataclass(frozen=True)
class GraphNode:
    """The graph node that a kernel was replayed from."""

    graph: int | None
    graph_node: int
    # its own creation first, then that of the node it was cloned from, …
    created: tuple[NodeCreation, ...]
    # the last of them is the captured node itself; otherwise the chain leads out of the trace
    complete: bool


@dataclass(frozen=True)
class RangeAround:
    """An NVTX range around the launch call, or around the creation of the graph node."""

    domain: str  # empty for the default domain
    name: str
    start_ns: int
    end_ns: int
    names: str  # call (of the engine), layer (or Myelin node), nothing
    decides: bool  # the innermost that names a layer: the mapping goes by it


@dataclass(frozen=True)
class InInference:
    """The inference that the kernel belongs to."""

    inference: int
    position: int
    kernels: int
    found_by: str
    launch_api: str | None
    complete: bool
    same: int  # inferences that launch the same kernels in the same order, this one included
    same_name: int  # kernels of that name in it
    engine_doubt: str | None  # why it is not, or may not be, of the engine whose layers it has


@dataclass(frozen=True)
class EngineEvidence:
    """One given engine file: whether it ran in this trace, and how much it explains of inferences
    like this one.
    """

    engine: int
    source: str
    verdict: str
    how: str
    ran_this: bool  # it ran most of this inference
    # share of the kernels that find a layer; these four are None where ranges decided
    placed: float | None
    used: float | None  # share of the layers that must run kernels and got one
    tactics: float | None  # share of the tactics that ran
    # nats a kernel that the kernels as they ran are better than in random order
    margin: float | None


@dataclass(frozen=True)
class Candidate:
    """A layer that the kernel could belong to."""

    engine: int
    layer_index: int
    layer: str
    match: float  # how well the names suit: 0 impossible, 0.5 cannot tell, 1 certain
    chance: float | None = None  # by the order


@dataclass(frozen=True)
class ByOrder:
    """The result of aligning the inference with the engine's layers."""

    chosen: Candidate | None
    chance: float
    rival: Candidate | None  # the likeliest other layer
    rival_chance: float
    by_tactic: bool  # the kernel's name is the layer's tactic
    explained: bool  # the name speaks for that layer; otherwise its place alone does
    before: str | None  # layer of the kernel before it in launch order
    after: str | None
    inferences: int  # that share the alignment
    kernels: int
    layers: int


@dataclass(frozen=True)
class MappedTo:
    """The layer that the map gives for the kernel."""

    layer: str | None
    layer_title: str | None  # what it is called
    layer_index: int | None
    engine: str | None
    part: str | None
    part_by: str | None
    method: str
    confidence: float
    reason: str | None


@dataclass(frozen=True)
class Explanation:
    """One kernel and the evidence for its layer."""

    source: str  # the trace's file name
    kernel_id: int
    name: str
    says: str  # the name, decoded
    start_ns: int
    end_ns: int
    device: int
    context: int | None
    stream: int
    pid: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    launch: Launch | None
    graph: GraphNode | None
    ranges: tuple[RangeAround, ...]  # the outermost first
    inference: InInference | None
    engines: tuple[EngineEvidence, ...]
    tactics: tuple[Candidate, ...]  # layers whose tactic the name can be
    order: ByOrder | None  # None where ranges told, or nothing could be aligned
    answer: MappedTo


def explain(mapped: MappedTrace, kernel_id: int) -> Explanation:
    """Collects everything known about one kernel's layer. Raises NsysmapError if the trace has no
    such kernel.
    """
    kernels = mapped.kernels
    if not 0 <= kernel_id < len(kernels):
        last = (
            f"kernel ids go from 0 to {len(kernels) - 1}"
            if len(kernels)
            else "it has no kernels at all"
        )
        raise NsysmapError(
            mapped.trace.source,
            f"has no kernel {kernel_id}",
            f"{last}; `nsysmap map -o FILE.csv` lists them",
        )
    row = kernels.take(np.array([kernel_id])).only()
    name, engine = row.text("name"), row.maybe_integer("engine")
    graph = _graph_node(mapped, kernel_id)
    inference = _inference(mapped, kernel_id)
    return Explanation(
        source=mapped.trace.source,
        kernel_id=kernel_id,
        name=name,
        says=summary(decode(name)),
        start_ns=row.integer("start_ns"),
        end_ns=row.integer("end_ns"),
        device=row.integer("device"),
        context=row.maybe_integer("context"),
        stream=row.integer("stream"),
        pid=row.integer("pid"),
        grid=(row.integer("grid_x"), row.integer("grid_y"), row.integer("grid_z")),
        block=(row.integer("block_x"), row.integer("block_y"), row.integer("block_z")),
        launch=_launch(mapped, row.maybe_integer("launch")),
        graph=graph,
        ranges=_ranges(mapped, kernel_id, graph),
        inference=inference,
        engines=_engines(mapped, None if inference is None else inference.inference),
        tactics=_tactics(mapped.engines, name),
        order=_order(mapped, kernel_id),
        answer=MappedTo(
            layer=row.maybe_text("layer"),
            layer_title=row.maybe_text("layer_title"),
            layer_index=row.maybe_integer("layer_index"),
            engine=None if engine is None else mapped.engines[engine].source,
            part=row.maybe_text("part"),
            part_by=row.maybe_text("part_by"),
            method=row.text("method"),
            confidence=row.real("confidence"),
            reason=row.maybe_text("reason"),
        ),
    )


def _launch(mapped: MappedTrace, row: int | None) -> Launch | None:
    if row is None:
        return None
    calls = mapped.trace.api_calls
    correlation = int(calls.ints("correlation")[row])
    return Launch(
        calls.text("api")[row] or "",
        int(calls.ints("start_ns")[row]),
        int(calls.ints("end_ns")[row]),
        int(calls.ints("thread")[row]),
        None if correlation == MISSING else correlation,
    )


def _graph_node(mapped: MappedTrace, kernel: int) -> GraphNode | None:
    kernels, nodes = mapped.trace.kernels, mapped.trace.cuda_graph_nodes
    node, graph = int(kernels.ints("graph_node_id")[kernel]), int(kernels.ints("graph_id")[kernel])
    if node == MISSING:
        return None
    chain = node_chain(nodes, int(kernels.ints("process")[kernel]), node)
    made = tuple(
        NodeCreation(
            int(nodes.ints("graph_node_id")[row]),
            int(nodes.ints("start_ns")[row]),
            int(nodes.ints("thread")[row]),
        )
        for row in chain
    )
    complete = bool(chain) and int(nodes.ints("original_graph_node_id")[chain[-1]]) == MISSING
    return GraphNode(None if graph == MISSING else graph, node, made, complete)


def _ranges(mapped: MappedTrace, kernel: int, graph: GraphNode | None) -> tuple[RangeAround, ...]:
    """The ranges around the launch call. For a replayed kernel: those around the creation of its
    captured node.
    """
    ranges, calls = mapped.trace.nvtx_ranges, mapped.trace.api_calls
    launch = int(mapped.trace.kernels.ints("launch")[kernel])
    if graph is not None:
        if not graph.complete:
            return ()
        root = graph.created[-1]
        thread, begin, end = root.thread, root.start_ns, root.start_ns
    elif launch >= 0:
        thread, begin, end = (
            int(calls.ints(name)[launch]) for name in ("thread", "start_ns", "end_ns")
        )
    else:
        return ()
    starts, ends = ranges.ints("start_ns"), ranges.ints("end_ns")
    rows = np.flatnonzero((ranges.ints("thread") == thread) & (starts <= begin) & (ends >= end))
    rows = rows[np.lexsort((rows, -ends[rows], starts[rows]))]
    place = int(mapped.mapped.evidence.place[kernel])
    innermost = int(mapped.tensorrt.layers[place]) if place >= 0 else -1
    calls_of_engine, layers = (
        set(mapped.tensorrt.calls.tolist()),
        set(mapped.tensorrt.layers.tolist()),
    )
    return tuple(
        RangeAround(
            ranges.text("domain")[row] or "",
            ranges.text("name")[row] or "",
            int(starts[row]),
            int(ends[row]),
            "call" if row in calls_of_engine else "layer" if row in layers else "nothing",
            row == innermost,
        )
        for row in rows.tolist()
    )


def _inference(mapped: MappedTrace, kernel: int) -> InInference | None:
    membership = mapped.found.membership
    number = int(membership.ints("inference")[kernel])
    if number == MISSING:
        return None
    row = mapped.inferences.take(np.array([number])).only()
    shape = mapped.inferences.ints("kernel_sequence")
    names = mapped.trace.kernels.text("name").codes
    inside = membership.ints("inference") == number
    return InInference(
        inference=number,
        position=int(membership.ints("position")[kernel]),
        kernels=row.integer("kernels"),
        found_by=row.text("found_by"),
        launch_api=row.maybe_text("launch_api"),
        complete=row.flag("complete"),
        same=int(np.count_nonzero(shape == shape[number])),
        same_name=int(np.count_nonzero(inside & (names == names[kernel]))),
        engine_doubt=row.maybe_text("engine_doubt"),
    )


def _engines(mapped: MappedTrace, inference: int | None) -> tuple[EngineEvidence, ...]:
    """Each engine file, with what it explains of the inferences in the same process, context and
    stream.
    """
    found = mapped.found.table
    home = (
        tuple(int(found.ints(name)[inference]) for name in ("process", "context", "stream"))
        if inference is not None
        else ()
    )
    ran = int(mapped.mapped.engine_of_inference[inference]) if inference is not None else MISSING
    best: dict[int, EngineVerdict] = {}
    for verdict in mapped.mapped.placed.verdicts:
        if (verdict.process, verdict.context, verdict.stream) == home:
            held = best.get(verdict.engine)
            if held is None or verdict.match.share > held.match.share:
                best[verdict.engine] = verdict
    result = []
    for row in mapped.mapped.engine_fits:
        number = row.integer("engine")
        match = best[number].match if number in best else None
        result.append(
            EngineEvidence(
                engine=number,
                source=row.text("source"),
                verdict=row.text("verdict"),
                how=row.text("how"),
                ran_this=number == ran,
                placed=match.placed if match is not None else None,
                used=match.used if match is not None else None,
                tactics=match.tactics if match is not None else None,
                margin=match.evidence - match.by_chance if match is not None else None,
            )
        )
    return tuple(result)


def _tactics(engines: Sequence[Engine], name: str) -> tuple[Candidate, ...]:
    return tuple(
        _candidate(engine, number, layer.index, name)
        for number, engine in enumerate(engines)
        for layer in engine.layers
        if layer.tactic and matches_tactic(name, layer.tactic)
    )


def _candidate(
    engine: Engine, number: int, index: int, name: str, chance: float | None = None
) -> Candidate:
    layer = engine.layers[index]
    match = (
        1.0
        if layer.tactic and matches_tactic(name, layer.tactic)
        else affinity(decode(name), layer.kind, layer.name, layer.onnx)
    )
    return Candidate(number, index, layer.name, match, chance)


def _order(mapped: MappedTrace, kernel: int) -> ByOrder | None:
    found = considered(mapped.trace, mapped.found, mapped.engines, mapped.mapped.placed, kernel)
    if found is None:
        return None
    engine, at, aligned = mapped.engines[found.engine], found.place, found.alignment
    name = mapped.trace.kernels.text("name")[kernel] or ""
    chance, rival_chance = float(aligned.confidence[at]), float(aligned.rival_confidence[at])

    def candidate(indexes: IntArray, sure: float) -> Candidate | None:
        index = int(indexes[at])
        return _candidate(engine, found.engine, index, name, sure) if index >= 0 else None

    return ByOrder(
        chosen=candidate(aligned.layer, chance),
        chance=chance,
        rival=candidate(aligned.rival, rival_chance),
        rival_chance=rival_chance,
        by_tactic=bool(aligned.by_tactic[at]),
        explained=bool(aligned.explained[at]),
        before=_layer_at(engine, aligned, at - 1),
        after=_layer_at(engine, aligned, at + 1),
        inferences=found.inferences,
        kernels=len(aligned.layer),
        layers=len(aligned.order),
    )


def _layer_at(engine: Engine, aligned: Alignment, at: int) -> str | None:
    inside = 0 <= at < len(aligned.layer) and int(aligned.layer[at]) >= 0
    return engine.layers[int(aligned.layer[at])].name if inside else None
