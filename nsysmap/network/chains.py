"""Finds chains of layers that could be one kernel: split norms and softmaxes, epilogues not fused,
pointwise and movement chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from nsysmap.core.engine_schema import CHAIN_LAYERS, CHAINS
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.inputs.engine.dataflow import Flow, common_path, nearest, runs
from nsysmap.inputs.engine.model import Engine, Layer, numbered_engines
from nsysmap.inputs.engine.tensor_formats import FLOATING
from nsysmap.names.decode import Op, decode
from nsysmap.network.attention import attention_blocks
from nsysmap.network.operations import Operations, converts, operations

# layers that one norm or softmax has been seen in, at most, between its statistics and its end
_PIECES = 4
_NORMS = ("layernorm", "rmsnorm", "groupnorm", "normalize", "rms-normalize")
_SOFTMAXES = ("softmax", "log-softmax")
# between a product and its epilogue: a squeeze or transpose, with the reformats around it
_MOVES = 3
_EPILOGUE_OPS = 8  # longer ones have not been seen in an epilogue


@dataclass(frozen=True)
class Chain:
    """One run; `layers` are (index in the file, role) in order."""

    kind: str  # norm, softmax, epilogue, pointwise, movement
    layers: tuple[tuple[int, str], ...]
    saved_bytes: int | None
    separated_by: str = "nothing"
    reference_layer: int | None = None  # index of a layer that does the same in one kernel
    in_attention: bool = False


def chain_tables(engines: Sequence[Engine]) -> tuple[Table, Table]:
    """The tables `chains` and `chain_layers`."""
    found: list[dict[str, object]] = []
    members: list[dict[str, object]] = []
    for number, first_id, engine in numbered_engines(engines):
        for chain in engine_chains(engine):
            nodes = dict.fromkeys(
                node for index, _ in chain.layers for node in engine.layers[index].onnx
            )
            for position, (index, role) in enumerate(chain.layers):
                members.append(
                    {
                        "chain_id": len(found),
                        "position": position,
                        "layer_id": first_id + index,
                        "role": role,
                    }
                )
            found.append(
                {
                    "chain_id": len(found),
                    "engine": number,
                    "kind": chain.kind,
                    "layers": len(chain.layers),
                    "first_layer": first_id + chain.layers[0][0],
                    "last_layer": first_id + chain.layers[-1][0],
                    "saved_bytes": chain.saved_bytes,
                    "separated_by": chain.separated_by,
                    "reference_layer": (
                        None if chain.reference_layer is None else first_id + chain.reference_layer
                    ),
                    "in_attention": chain.in_attention,
                    "place": common_path(nodes),
                    "onnx": ",".join(nodes) or None,
                }
            )
    return Table.of_rows(CHAINS, found), Table.of_rows(CHAIN_LAYERS, members)


def engine_chains(engine: Engine) -> list[Chain]:
    """Every chain of an engine, in the order of the file; none if the file has no tensors.

    A pointwise or movement run inside a norm or softmax is that norm's or softmax's; of the layers
    of an attention block only a softmax in pieces is a chain, the rest is in `attention`.
    """
    flow = engine.flow
    # any: why they are not fused does not matter here
    blocks = attention_blocks(engine, compute=(7, 5))
    attention = {index for block in blocks for index, _ in block.layers}
    pieces = _pieces(engine, flow, attention)
    if pieces:
        peers = _whole_patterns(engine)
        pieces = [_with_peer(engine, chain, peers) for chain in pieces]
    taken = attention | {index for chain in pieces for index, _ in chain.layers}
    epilogues = _epilogues(engine, flow, taken)
    taken |= {index for chain in epilogues for index, _ in chain.layers[1:]}
    plain = _plain_runs(engine, flow, taken)
    return sorted((*pieces, *epilogues, *plain), key=lambda chain: chain.layers[0][0])


def _pieces(engine: Engine, flow: Flow, attention: set[int]) -> list[Chain]:
    """Norms and softmaxes whose operations, read on from one layer to the next, make up one pattern
    that no layer has alone.
    """
    found: list[Chain] = []
    taken: set[int] = set()
    for layer in engine.layers:
        if layer.index in taken or layer.kind != "myelin_kernel":
            continue
        run = _joined(engine, flow, layer)
        if run is None or not (
            attention.isdisjoint(run[1]) or (run[0] == "softmax" and attention.issuperset(run[1]))
        ):
            continue
        kind, indices = run
        inside = not attention.isdisjoint(indices)
        indices = indices if inside else _extended(engine, flow, indices)
        taken.update(indices)
        roles = tuple((index, _role(engine.layers[index])) for index in indices)
        found.append(
            Chain(
                kind,
                roles,
                flow.bytes_kept(indices),
                _between(engine, indices),
                in_attention=inside,
            )
        )
    return found


_Peers = Mapping[tuple[str, tuple[int, int]], Sequence[int]]
"""The layers that hold a whole norm or softmax, by that and by what they write."""


def _whole_patterns(engine: Engine) -> _Peers:
    found: dict[tuple[str, tuple[int, int]], list[int]] = {}
    for layer in engine.layers:
        size = _written(layer)
        if layer.kind != "myelin_kernel" or size is None:
            continue
        for kind, wanted in (("softmax", _SOFTMAXES), ("norm", _NORMS)):
            if not set(wanted).isdisjoint(operations(layer).patterns):
                found.setdefault((kind, size), []).append(layer.index)
    return found


def _with_peer(engine: Engine, chain: Chain, peers: _Peers) -> Chain:
    """Adds the nearest layer that holds the whole pattern and writes as much."""
    kind = "softmax" if chain.kind == "softmax" else "norm"
    last = chain.layers[-1][0]
    size = _written(engine.layers[last])
    alike = () if size is None else peers.get((kind, size), ())
    return replace(chain, reference_layer=nearest(alike, last))


def _joined(engine: Engine, flow: Flow, first: Layer) -> tuple[str, list[int]] | None:
    """The kind and the layers of the pattern that begins in this layer and ends in a later one;
    None if none does.

    The way goes to the nearest reader that is limited by memory: a norm's statistics and its values
    may go different ways.
    """
    start = operations(first)
    if (
        start.cut
        or start.product
        or not any(op.cls in ("reduction", "pointwise or reduction") for op in start.ops)
    ):
        return None
    indices, ops = [first.index], list(start.ops)
    while len(indices) < _PIECES:
        following = [
            index
            for index in flow.readers.get(indices[-1], ())
            if _listed(operations(engine.layers[index]))
        ]
        if not following:
            return None
        indices.append(min(following))
        held = len(ops)
        ops += operations(engine.layers[indices[-1]]).ops
        kind = _pattern_over(ops, len(start.ops), held)
        if kind is not None:
            return kind, indices
    return None


def _pattern_over(ops: Sequence[Op], first_end: int, last_begin: int) -> str | None:
    """norm or softmax where one of their patterns begins before `first_end` and ends at or after
    `last_begin`.
    """
    # a layout change between the pieces does not part them
    moving = [index for index, op in enumerate(ops) if op.cls != "data movement"]
    text = "__myl_" + "".join(ops[index].code for index in moving)
    for pattern in decode(text).patterns:
        begin, end = moving[pattern.first], moving[pattern.last]
        if begin < first_end and end >= last_begin:
            return (
                "norm"
                if pattern.name in _NORMS
                else "softmax"
                if pattern.name in _SOFTMAXES
                else None
            )
    return None


def _extended(engine: Engine, flow: Flow, indices: list[int]) -> list[int]:
    """Adds the layer before that only adds or casts for this run, and the layer after that only
    casts its result.
    """
    result = list(indices)
    writer = flow.only_writer(result[0])
    writers = flow.writers.get(result[0], ())
    before = writer if writer is not None else max(writers, default=None)
    if before is not None and flow.only_reader(before) == result[0]:
        done = operations(engine.layers[before])
        if done.ops and not done.cut and all(op.op in ("Add", "Cast") for op in done.ops):
            result.insert(0, before)
    after = flow.only_reader(result[-1])
    if (
        after is not None
        and flow.only_writer(after) == result[-1]
        and _casts_floats(engine.layers[after])
    ):
        result.append(after)
    return result


def _casts_floats(layer: Layer) -> bool:
    return operations(layer).cast and all(
        tensor.datatype is None or tensor.datatype in FLOATING
        for tensor in (*layer.inputs, *layer.outputs)
    )


def _role(layer: Layer) -> str:
    done = operations(layer)
    if done.cast or all(op.op in ("Add", "Cast") for op in done.ops):
        return "cast" if any(op.op == "Cast" for op in done.ops) else "pointwise"
    if done.movement:
        return "movement"
    return "normalize" if any(op.op in ("Sqrt", "Div") for op in done.ops) else "statistics"


def _between(engine: Engine, indices: Sequence[int]) -> str:
    """What keeps the pieces apart, as far as the file shows: a cast or layout change among them, or
    a product that runs between them.
    """
    done = [operations(engine.layers[index]) for index in indices]
    casts = any(
        item.cast or (item.ops and item.ops[-1].op == "Cast" and position < len(done) - 1)
        for position, item in enumerate(done)
    )
    moves = any(item.movement or any(op.cls == "data movement" for op in item.ops) for item in done)
    strangers = set(range(indices[0], indices[-1])) - set(indices)
    products = any(
        operations(engine.layers[index]).product or engine.layers[index].kind == "attention"
        for index in strangers
    )
    return (
        ", ".join(
            word
            for word, there in (("cast", casts), ("layout", moves), ("product", products))
            if there
        )
        or "nothing"
    )


def _epilogues(engine: Engine, flow: Flow, taken: set[int]) -> list[Chain]:
    """Products followed by their only reader, which does element by element what an epilogue does:
    bias, scale, residual, activation.

    What only moves or views the product's result in between, for nobody else, is what keeps the two
    apart.
    """
    found: list[Chain] = []
    used = set(taken)
    for layer in engine.layers:
        if not operations(layer).product or layer.index in taken:
            continue
        moves = _moved_to(engine, flow, layer.index)
        last = moves[-1] if moves else layer.index
        after = flow.only_reader(last)
        if after is None or not used.isdisjoint((after, *moves)):
            continue
        done = operations(engine.layers[after])
        if (
            done.pointwise
            and not done.cut
            and len(done.ops) <= _EPILOGUE_OPS
            and _same_size(engine.layers[last], engine.layers[after])
        ):
            used.update((after, *moves))
            roles = (
                (layer.index, "product"),
                *((index, "movement") for index in moves),
                (after, "epilogue"),
            )
            ends = (
                flow.bytes_between(layer.index, moves[0] if moves else after),
                flow.bytes_between(last, after),
            )
            saved = None if None in ends else sum(size or 0 for size in ends)
            found.append(Chain("epilogue", roles, saved, "layout" if moves else "nothing"))
    return found


def _moved_to(engine: Engine, flow: Flow, product: int) -> list[int]:
    """The layers after a product that only move or view its result, each the only reader of the one
    before.
    """
    moves: list[int] = []
    at = flow.only_reader(product)
    while at is not None and len(moves) < _MOVES:
        layer = engine.layers[at]
        if not (
            layer.kind == "noop"
            or (layer.kind == "reformat" and not converts(layer))
            or operations(layer).movement
        ):
            break
        if layer.kind in ("concat", "slice", "gather") or len(flow.writers.get(at, ())) > 1:
            break
        moves.append(at)
        at = flow.only_reader(at)
    return moves


def _plain_runs(engine: Engine, flow: Flow, taken: set[int]) -> list[Chain]:
    def member(layer: Layer) -> bool:
        return (
            operations(layer).fusable
            and layer.index not in taken
            and bool(layer.inputs and layer.outputs)
        )

    found: list[Chain] = []
    for run in runs(engine, flow, member):
        done = [operations(engine.layers[index]) for index in run]
        kind = "movement" if all(item.movement for item in done) else "pointwise"
        roles = tuple((index, _plain_role(item)) for index, item in zip(run, done, strict=True))
        found.append(Chain(kind, roles, flow.bytes_kept(run)))
    return found


def _plain_role(done: Operations) -> str:
    return "movement" if done.movement else "cast" if done.cast else "pointwise"


def _listed(done: Operations) -> bool:
    return done.fusable and bool(done.ops) and not done.cut


def _same_size(first: Layer, second: Layer) -> bool:
    """Whether both write as many elements; dynamic extents are taken to be equal where there are as
    many and all others agree.
    """
    one = _written(first)
    return one is not None and one == _written(second)


def _written(layer: Layer) -> tuple[int, int] | None:
    """The product of the known dimensions of what a layer writes, and the number of dynamic ones;
    None if the file does not show them.
    """
    dimensions = layer.outputs[0].dimensions if layer.outputs else None
    return None if dimensions is None else _extent(dimensions)


@lru_cache(maxsize=1 << 12)  # an engine has few, however many layers
def _extent(dimensions: tuple[int, ...]) -> tuple[int, int]:
    return prod(extent for extent in dimensions if extent >= 0), sum(
        extent < 0 for extent in dimensions
    )
