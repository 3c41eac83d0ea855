"""Finds the structures in an ONNX model that kernel names can show: matrix products, norms,
softmaxes, attention, activations, in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.onnx_model import OnnxModel, OnnxNode

_PRODUCTS = {
    **dict.fromkeys(
        ("MatMul", "Gemm", "FusedMatMul", "MatMulInteger", "QLinearMatMul", "Einsum"), "product"
    ),
    **dict.fromkeys(("Conv", "QLinearConv", "ConvInteger", "FusedConv"), "convolution"),
    "ConvTranspose": "deconvolution",
}
_WHOLE = {
    "LayerNormalization": "layernorm", "SkipLayerNormalization": "layernorm",
    "EmbedLayerNormalization": "layernorm",
    "RMSNormalization": "rmsnorm", "SimplifiedLayerNormalization": "rmsnorm",
    "SkipSimplifiedLayerNormalization": "rmsnorm",
    "GroupNormalization": "groupnorm", "InstanceNormalization": "groupnorm",
    "MeanVarianceNormalization": "layernorm",
    "Softmax": "softmax", "LogSoftmax": "log-softmax", "Attention": "attention",
    "MultiHeadAttention": "attention",
    "GroupQueryAttention": "attention", "Gelu": "gelu", "FastGelu": "gelu", "BiasGelu": "gelu",
    "QuickGelu": "sigmoid",
    "Tanh": "tanh", "Sigmoid": "sigmoid", "Swish": "sigmoid", "TopK": "topk",
}  # fmt: skip
_THROUGH = (
    "Cast",
    "Identity",
    "Reshape",
    "Transpose",
    "Unsqueeze",
    "Squeeze",
    "Expand",
    "QuantizeLinear",
    "DequantizeLinear",
)
_SCORES = (
    *_THROUGH,
    "Mul",
    "Div",
    "Add",
    "Sub",
    "Where",
    "Max",
    "Min",
    "Clip",
    "Dropout",
    "IsNaN",
    "Pad",
    "Slice",
    "Concat",
    "Tanh",
)
_STEPS = 10  # nodes between a product and its softmax
_KINDS = {**_PRODUCTS, **_WHOLE}


@dataclass(frozen=True)
class OnnxBlock:
    """Nodes of a model that a kernel's name shows as one operation."""

    # product, convolution, deconvolution, layernorm, rmsnorm, groupnorm, softmax, log-softmax,
    # attention, gelu, tanh, …
    kind: str
    # positions in the model, ascending; the inside of an attention block stays with its own blocks
    nodes: tuple[int, ...]
    # products of one input that may run as one, each by its nodes; else empty
    siblings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class ModelGraph:
    """A model with the readers of each tensor."""

    model: OnnxModel

    @cached_property
    def users(self) -> dict[str, list[int]]:
        """Positions of the nodes that read each tensor."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, node in enumerate(self.model.nodes):
            for tensor in dict.fromkeys(node.inputs):
                found[tensor].append(number)
        return found

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Position of each node by its name, or by its outputs if no node has that name."""
        # of equal names the first counts
        named = {node.name: number for number, node in reversed(list(enumerate(self.model.nodes)))}
        return {**self.model.producer, **named}

    def computed(self, node: OnnxNode) -> list[str]:
        """The node's inputs that are computed at run time."""
        return [tensor for tensor in node.inputs if tensor and tensor not in self.model.constants]

    def ancestors(self, numbers: Iterable[int]) -> set[int]:
        """These nodes and all nodes that they depend on."""
        return self._reached(numbers, lambda node: self.model.producers(node.inputs))

    def descendants(self, numbers: Iterable[int]) -> set[int]:
        """These nodes and all nodes that depend on them."""
        return self._reached(
            numbers,
            lambda node: [user for tensor in node.outputs for user in self.users.get(tensor, ())],
        )

    def _reached(
        self, numbers: Iterable[int], step: Callable[[OnnxNode], Iterable[int]]
    ) -> set[int]:
        found = set(numbers)
        waiting = list(found)
        while waiting:
            for other in step(self.model.nodes[waiting.pop()]):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def after(
        self, number: int, ops: Sequence[str], through: Sequence[str] = ("Cast",), steps: int = 3
    ) -> list[int] | None:
        """The path from a node to the next node downstream with such an operation, without the node
        itself; None if none is near.
        """
        ways = [[number]]
        for _ in range(steps):
            longer = []
            for way in ways:
                for tensor in self.model.nodes[way[-1]].outputs:
                    for user in self.users.get(tensor, ()):
                        if self.model.nodes[user].op in ops:
                            return [*way[1:], user]
                        if self.model.nodes[user].op in through:
                            longer.append([*way, user])
            ways = longer[:16]
        return None

    def before(
        self, number: int, ops: Sequence[str], through: Sequence[str], steps: int
    ) -> int | None:
        """The nearest node upstream with such an operation; None if none is near."""
        numbers = [number]
        for _ in range(steps):
            makers = [
                maker
                for one in numbers
                for maker in self.model.producers(self.computed(self.model.nodes[one]))
            ]
            for maker in makers:
                if self.model.nodes[maker].op in ops:
                    return maker
            numbers = [maker for maker in makers if self.model.nodes[maker].op in through][:16]
        return None


def blocks(graph: ModelGraph, region: Iterable[int]) -> list[OnnxBlock]:
    """The blocks among these nodes (positions in the model), in topological order; an attention
    block stands before those inside it.

    LayerNorm and RMSNorm are found whole or as the chain ReduceMean … Sqrt, Div, Mul, Add that
    exporters write for them; products whose weights are constants and that read one tensor, with no
    other block between them, are one block with ``siblings``.
    """
    wanted = sorted(set(region))
    inside = set(wanted)
    taken: set[int] = set()
    found: list[tuple[int, int, OnnxBlock]] = []
    for number in wanted:
        node = graph.model.nodes[number]
        if number in taken or not graph.computed(node):
            continue  # part of an earlier block, or worked out when the engine is built
        made = (
            _norm(graph, number)
            if node.op in ("ReduceMean", "Pow", "Mul")
            else _gelu(graph, number)
            if node.op == "Erf"
            else None
        )
        if made is None and node.op in _KINDS:
            made = OnnxBlock(_KINDS[node.op], (number,))
        if made is None or not inside.issuperset(made.nodes):
            continue
        if (
            made.kind == "softmax"
            and (attention := _attention(graph, number)) is not None
            and inside.issuperset(attention.nodes)
        ):
            found.append((attention.nodes[0], 0, attention))
        taken.update(made.nodes)
        found.append((made.nodes[0] if made.kind != "gelu" else number, 1, made))
    return _merged(graph, [block for _, _, block in sorted(found, key=lambda one: one[:2])])


def _norm(graph: ModelGraph, number: int) -> OnnxBlock | None:
    """The decomposed norm that begins at a ReduceMean (LayerNorm) or at a square (RMSNorm)."""
    nodes = graph.model.nodes
    if nodes[number].op == "ReduceMean":
        kind, way = "layernorm", [number]
        steps: tuple[tuple[str, ...], ...] = (
            ("Sub",),
            ("Pow", "Mul"),
            ("ReduceMean",),
            ("Add",),
            ("Sqrt",),
            ("Div", "Reciprocal"),
        )
    else:
        if nodes[number].op == "Mul" and len(set(nodes[number].inputs)) != 1:
            return None  # no square
        kind, way = "rmsnorm", [number]
        steps = (("ReduceMean",), ("Add",), ("Sqrt",), ("Div", "Reciprocal"))
    for ops in steps:
        on = graph.after(way[-1], ops)
        if on is None:
            return None
        way += on
    for ops in (
        (("Mul",), ("Mul",), ("Add",))
        if nodes[way[-1]].op == "Reciprocal"
        else (("Mul",), ("Add",))
    ):
        if kind == "rmsnorm" and ops == ("Add",):
            break
        on = graph.after(way[-1], ops)
        if on is None:
            break
        way += on
    return OnnxBlock(kind, tuple(sorted(set(way))))


def _gelu(graph: ModelGraph, number: int) -> OnnxBlock:
    """The GELU around an Erf: what scales its input, and the addition and products after it."""
    way = [number]
    scaled = graph.before(number, ("Div", "Mul"), ("Cast",), 2)
    if scaled is not None and len(graph.computed(graph.model.nodes[scaled])) == 1:
        way.insert(0, scaled)
    for ops in (("Add",), ("Mul",), ("Mul",)):
        on = graph.after(way[-1], ops)
        if on is None:
            break
        way += on
    return OnnxBlock("gelu", tuple(sorted(set(way))))


def _attention(graph: ModelGraph, softmax: int) -> OnnxBlock | None:
    """The product of queries and keys, the softmax and the product with the values, where the
    softmax stands between two products.
    """
    nodes = graph.model.nodes
    scores = graph.before(softmax, ("MatMul", "FusedMatMul", "Einsum"), _SCORES, _STEPS)
    way = graph.after(softmax, ("MatMul", "FusedMatMul", "Einsum"), _SCORES, _STEPS)
    if (
        scores is None
        or way is None
        or len(graph.computed(nodes[scores])) < 2
        or len(graph.computed(nodes[way[-1]])) < 2
    ):
        return None
    return OnnxBlock("attention", (scores, softmax, way[-1]))


def _merged(graph: ModelGraph, found: list[OnnxBlock]) -> list[OnnxBlock]:
    """The blocks, with adjacent products of one input joined."""
    result: list[OnnxBlock] = []
    for block in found:
        last = result[-1] if result else None
        if (
            last is not None
            and block.kind == last.kind == "product"
            and (shared := _weighted(graph, block))
            and shared == _weighted(graph, last)
        ):
            siblings = (*(last.siblings or (last.nodes,)), block.nodes)
            result[-1] = replace(
                last, nodes=tuple(sorted((*last.nodes, *block.nodes))), siblings=siblings
            )
        else:
            result.append(block)
    return result


def _weighted(graph: ModelGraph, block: OnnxBlock) -> str | None:
    """The tensor that a product with constant weights reads, before any type conversion; None for
    other products.
    """
    node = graph.model.nodes[block.nodes[0]]
    if node.op not in ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"):
        return None
    read = graph.computed(node)
    for _ in range(4):
        if len(read) != 1:
            return None
        maker = graph.model.producer.get(read[0])
        if maker is None or graph.model.nodes[maker].op not in (
            "Cast",
            "Identity",
            "QuantizeLinear",
            "DequantizeLinear",
        ):
            break
        read = graph.computed(graph.model.nodes[maker])
    return read[0] if len(read) == 1 else None
