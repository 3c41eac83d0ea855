"""One side of a comparison as a network: its layers in order, what each computes, and the dataflow
between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.dataflow import links
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.names.decode import decode
from nsysmap.names.layers import layer_ops, node_row, nodes_of, split_layer_name
from nsysmap.network.execution_order import execution_orders

CARRIERS = frozenset({"reformat", "cast", "quantize", "noop", "constant", "shape", "signal"})
"""Kinds of layers that compute nothing: TensorRT inserts them as needed."""

PRODUCTS = frozenset({"convolution", "deconvolution", "gemm"})
_HEAVY_KINDS = PRODUCTS | {
    "attention",
    "normalization",
    "softmax",
    "pooling",
    "reduce",
    "resize",
    "topk",
    "nms",
    "gather",
    "scatter",
    "loop",
}
_FOLDED = "BatchNormalization"  # part of the convolution before it, and left out by some exporters
_HEAVY, _LIGHT = 10, 1  # weight of a node when two layers share some
_ATTENTION_OPS = ("MatMul", "Softmax", "MatMul")

_UNNAMED = re.compile(r"\(Unnamed Layer\* \d+\)")
# a tensor's name in PyTorch's ONNX export; TensorRT numbers the clones in each build
_NUMBER = re.compile(r"\d+(?:_clone_\d+)?$")
_SHAPE_PARAMETERS = (
    "Kernel", "Stride", "Dilation", "Groups", "OutMaps", "WindowSize", "PoolingType", "Axis",
    "ReduceAxes", "Operation",
)  # fmt: skip
"""Parameters that do not depend on precision and tactic."""


@dataclass(frozen=True)
class Piece:
    """The unit that is matched: a layer, or a part of an opaque region."""

    layer_id: int
    name: str
    kind: str
    typed: bool = True  # whether its file says what it is; else its kind is only read from its name
    part: str | None = None  # the part's label; None for a whole layer
    nodes: tuple[str, ...] = ()  # ONNX nodes that it computes
    # their source: onnx (Metadata or the model) or name; empty if there are none
    nodes_by: str = ""
    constants: tuple[str, ...] = ()  # of the model, mainly weights, that its name contains
    ops: tuple[str, ...] = ()  # its operations in ONNX terms; empty if unknown
    shapes: tuple[tuple[int, ...], ...] = ()  # of its outputs, see `_shape`
    # what it writes has other extents, or the same ones in another order, than what it reads
    reshapes: bool = False
    reads: tuple[str, ...] = ()  # tensors
    writes: tuple[str, ...] = ()
    detail: tuple[tuple[str, str], ...] = ()  # parameters that do not depend on the build
    tactic: str | None = None

    @property
    def computes(self) -> bool:
        """False if it only carries data from one layer to another."""
        return self.kind not in CARRIERS

    @cached_property
    def softmax(self) -> bool:
        """Whether it computes a softmax, or fused attention."""
        if self.kind in ("softmax", "attention") or "Softmax" in self.ops:
            return True
        return self.kind == "myelin_kernel" and any(
            one.name == "softmax" for one in decode(self.name).patterns
        )

    @cached_property
    def weights(self) -> dict[str, int]:
        """Its nodes with their weights."""
        return {node: node_weight(node) for node in self.nodes}

    @cached_property
    def told_nodes(self) -> dict[str, str]:
        """Its nodes that compute something, with their operations if their names show them."""
        rows = ((node, node_row(node)) for node in self.nodes)
        return {node: row.op for node, row in rows if row is not None and row.kind not in CARRIERS}

    @cached_property
    def op_counts(self) -> Counter[str]:
        """The number of times it has each operation."""
        return Counter(self.ops)


@dataclass(frozen=True)
class Network:
    """Pieces in execution order; neighbours by their index in it, with the reader's input slot."""

    pieces: tuple[Piece, ...]
    readers: tuple[tuple[tuple[int, int], ...], ...]  # (piece, slot)
    writers: tuple[tuple[tuple[int, int], ...], ...]
    # whether its nodes are those of the ONNX model that is given for both sides
    of_model: bool = False

    @cached_property
    def flows(self) -> bool:
        """Whether the dataflow is known."""
        return any(self.readers)


def unnumbered(name: str) -> str:
    """The name without the numbers that TensorRT gives to its own layers, which differ in the next
    build.
    """
    return _UNNAMED.sub("(Unnamed Layer)", name)


@lru_cache(maxsize=65536)
def node_weight(node: str) -> int:
    """The weight of an ONNX node: high for a matrix product, a norm, a softmax or a pooling, low
    for one step of many.
    """
    row = node_row(node)
    return _HEAVY if row is not None and row.kind in _HEAVY_KINDS and row.op != _FOLDED else _LIGHT


def network_of(
    layers: Sequence[Layer],
    ids: Sequence[int],
    bindings: Iterable[str] = (),
    *,
    of_model: bool = False,
) -> Network:
    """The layers as a network; ``ids`` are their layer ids, ``of_model`` says that their nodes are
    those of the ONNX model given.
    """
    order = execution_orders(layers)[-1]
    ordered = tuple(replace(layers[at], index=place) for place, at in enumerate(order))
    batch = _batch(ordered)
    pieces = tuple(_piece(layer, ids[at], batch) for layer, at in zip(ordered, order, strict=True))
    readers: list[dict[int, int]] = [{} for _ in pieces]
    writers: list[dict[int, int]] = [{} for _ in pieces]
    for source, target, tensor in links(
        Engine("", ordered, detailed=True, bindings=tuple(bindings))
    ):
        slot = next(
            (place for place, read in enumerate(target.inputs) if read.name == tensor.name), 0
        )
        readers[source.index].setdefault(target.index, slot)
        writers[target.index].setdefault(source.index, slot)
    return Network(
        pieces,
        tuple(tuple(one.items()) for one in readers),
        tuple(tuple(one.items()) for one in writers),
        of_model,
    )


def _piece(layer: Layer, layer_id: int, batch: int | None) -> Piece:
    nodes, nodes_by = _nodes(layer)
    return Piece(
        layer_id=layer_id,
        name=layer.name,
        kind=layer.kind,
        typed=layer.type is not None,
        nodes=nodes,
        nodes_by=nodes_by,
        constants=_constants(layer),
        ops=operations_of(layer.name, layer.kind, nodes),
        shapes=tuple(_shape(tensor, batch) for tensor in layer.outputs),
        reshapes=_extents(layer.inputs) != _extents(layer.outputs),
        reads=tuple(tensor.name for tensor in layer.inputs),
        writes=tuple(tensor.name for tensor in layer.outputs),
        detail=_detail(layer.parameters),
        tactic=layer.tactic,
    )


def _nodes(layer: Layer) -> tuple[tuple[str, ...], str]:
    """The ONNX nodes that a layer computes, and their source."""
    if (
        layer.kind in ("reformat", "constant")
        or (layer.kind == "foreign_node" and not layer.onnx)
        or (layer.kind in CARRIERS and not layer.onnx)
    ):
        found: Sequence[str] = (
            () if layer.kind != "noop" else nodes_of(split_layer_name(layer.name).node)
        )
        return tuple(node for node in found if _computes(node)), "name"
    if layer.onnx:
        return tuple(node for node in dict.fromkeys(layer.onnx) if _computes(node)), "onnx"
    split = split_layer_name(layer.name)
    if split.node.startswith(("__my", "_gem", "Reformatting CopyNode")):
        return (), ""
    found = tuple(node for node in dict.fromkeys(nodes_of(split.node)) if _computes(node))
    # constants folded into the layer
    found = tuple(node for node in found if not _NUMBER.match(node)) or found
    return found, "name" if found else ""


def _constants(layer: Layer) -> tuple[str, ...]:
    """The model's constants in a layer's name: ``layer1.0.conv1.weight + QuantizeLinear_20 +
    Conv_22``.
    """
    if layer.kind in CARRIERS or layer.kind == "foreign_node":
        return ()
    rows = (
        (node, node_row(node))
        for node in nodes_of(split_layer_name(layer.name).node)
        if not _UNNAMED.search(node)
    )
    return tuple(
        dict.fromkeys(node for node, row in rows if row is not None and row.kind == "constant")
    )


def _computes(node: str) -> bool:
    """Whether it is a node of the model that computes something, not a weight or a layer that
    TensorRT's parser inserted.
    """
    if _UNNAMED.search(node):
        return False
    row = node_row(node)
    return row is None or row.kind != "constant"


def operations_of(name: str, kind: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """The work of a layer or kernel with that name, in ONNX terms: from the codes in its name,
    otherwise from its nodes.
    """
    if kind == "attention":
        return _ATTENTION_OPS
    codes = (
        tuple(op.word for op in decode(name).ops)
        if kind in ("myelin_kernel", "unknown") or name.startswith("__myl_")
        else ()
    )
    return codes or tuple(op.op for op in layer_ops(nodes))


def _batch(layers: Sequence[Layer]) -> int | None:
    """The first extent that most tensors have."""
    extents = Counter(
        tensor.dimensions[0]
        for layer in layers
        for tensor in layer.outputs
        if tensor.dimensions is not None and len(tensor.dimensions) > 1
    )
    return extents.most_common(1)[0][0] if extents else None


def _shape(tensor: Tensor, batch: int | None) -> tuple[int, ...]:
    """The extents above 1, without the batch, in ascending order: the same for [1, 65536, 64] and
    [65536, 64, 1, 1].
    """
    extents = tensor.dimensions or ()
    inner = extents[1:] if len(extents) > 1 and extents[0] == batch else extents
    return tuple(sorted(extent for extent in inner if extent != 1))


def _extents(tensors: Iterable[Tensor]) -> list[tuple[int, ...] | None]:
    return [tensor.dimensions for tensor in tensors]


def _detail(parameters: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    found = [(key, str(parameters[key])) for key in _SHAPE_PARAMETERS if key in parameters]
    weights = parameters.get("Weights", parameters.get("weights"))
    if (
        isinstance(weights, dict)
        and isinstance(count := weights.get("Count", weights.get("count")), int)
        and count > 0
    ):
        found.append(("Weights", str(count)))
    return tuple(found)
