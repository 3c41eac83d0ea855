"""How large the values of a tensor can be, whatever the inputs: the proof that FP16 holds them."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.view import Array, ModelView, attribute

FP16_MOST = 65504.0  # the largest finite number of FP16
_DEEPEST = 400  # nodes behind each other: Python's own stack takes some more


@dataclass(frozen=True)
class Bound:
    """The largest absolute value of a tensor, and the largest Euclidean norm along its last axis;
    infinite where nothing bounds them.
    """

    most: float = math.inf
    norm: float = math.inf


_UNKNOWN = Bound()
_AT_MOST_ONE = frozenset(["Sigmoid", "Tanh", "Erf", "Sin", "Cos", "HardSigmoid"])
_NOT_MORE = frozenset(
    [
        "Relu",
        "LeakyRelu",
        "Gelu",
        "Elu",
        "HardSwish",
        "Mish",
        "Neg",
        "Abs",
        "Identity",
        "Dropout",
        "Cast",
        "Clip",
    ]
)
"""Operators whose result is nowhere larger than what they read, in absolute value."""
_MOVED = frozenset(
    [
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Slice",
        "Expand",
        "Split",
        "Gather",
        "Tile",
        "MaxPool",
        "DepthToSpace",
        "SpaceToDepth",
        "AveragePool",
        "GlobalAveragePool",
        "ReduceMean",
        "ReduceMax",
    ]
)


class Bounds:
    """The bounds of the tensors of a model, each worked out when it is asked for."""

    def __init__(self, view: ModelView) -> None:
        self.view = view
        self._known: dict[ir.Value, Bound] = {}

    def of(self, value: ir.Value | None, depth: int = 0) -> Bound:
        """The bound of one tensor."""
        if value is None or depth > _DEEPEST:
            return _UNKNOWN
        if value not in self._known:
            self._known[value] = _UNKNOWN  # while it is worked out
            found = self._found(value, depth + 1)
            last = (self.view.shape(value) or (None,))[-1:] or (1,)
            if last[0] is not None and found.norm == math.inf:
                found = Bound(found.most, found.most * math.sqrt(last[0]))
            self._known[value] = Bound(min(found.most, found.norm), found.norm)
        return self._known[value]

    def _found(self, value: ir.Value, depth: int) -> Bound:
        array = self.view.constant(value)
        if array is not None:
            return _of_array(array)
        node = self.view.made_by(value)
        if node is None:
            return _UNKNOWN
        op = node.op_type
        reads = [self.of(one, depth) for one in node.inputs]
        if op in _AT_MOST_ONE:
            return Bound(1.0)
        if op == "Softmax":
            last = attribute(node, "axis", -1) in (-1, len(self.view.shape(value) or ()) - 1)
            return Bound(1.0, 1.0 if last else math.inf)
        if op in ("LayerNormalization", "RMSNormalization"):
            return self._norm(node)
        if op in _NOT_MORE and reads:
            return reads[0]
        if op in _MOVED and reads:
            return Bound(reads[0].most)
        if op == "Concat":
            return Bound(max((one.most for one in reads), default=math.inf))
        if op in ("Add", "Sub", "Max", "Min"):
            sums = sum(one.most for one in reads)
            same = all(
                (self.view.shape(one) or (None,))[-1:] == (self.view.shape(value) or (0,))[-1:]
                for one in node.inputs
            )
            return Bound(sums, sum(one.norm for one in reads) if same else math.inf)
        if op == "Mul" and len(reads) == 2:
            most = reads[0].most * reads[1].most
            return Bound(most, min(a.norm * b.most for a, b in (reads, reads[::-1])))
        if op == "Div":
            divisor = self.view.constant(node.inputs[1])
            if divisor is not None and np.all(divisor != 0):
                least = float(np.abs(divisor.astype(np.float64)).min())
                return Bound(reads[0].most / least, reads[0].norm / least)
        if op in ("MatMul", "Gemm", "Conv"):
            return self._product(node, reads)
        return _UNKNOWN

    def _norm(self, node: ir.Node) -> Bound:
        size = self.view.fixed(node.inputs[1])
        scale = self.view.constant(node.inputs[1])
        bias = self.view.constant(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1)
        if size is None or scale is None or bias is None:
            return _UNKNOWN
        # of n values with mean 0 and variance 1 the norm is the root of n, and none is larger
        norm = math.sqrt(math.prod(size)) * float(np.abs(scale.astype(np.float64)).max())
        return Bound(norm + float(np.linalg.norm(bias.astype(np.float64))),
                     norm + float(np.linalg.norm(bias.astype(np.float64))))  # fmt: skip

    def _product(self, node: ir.Node, reads: list[Bound]) -> Bound:
        weight = self.view.constant(node.inputs[1])
        added = reads[2] if len(reads) > 2 and node.inputs[2] is not None else Bound(0.0, 0.0)
        if weight is None:
            if node.op_type != "MatMul":
                return _UNKNOWN
            # each result is a sum over the shared axis, whose weights the first operand is
            shared = (self.view.shape(node.inputs[0]) or (None,))[-1]
            sums = reads[0].norm * reads[1].most * math.sqrt(shared) if shared else math.inf
            return Bound(sums)
        table = np.abs(weight.astype(np.float64))
        if node.op_type == "Conv":
            return Bound(
                reads[0].most * float(table.reshape(len(table), -1).sum(axis=1).max()) + added.most
            )
        if table.ndim != 2 or attribute(node, "transA", 0):
            return _UNKNOWN
        table = table.T if attribute(node, "transB", 0) else table
        alpha = abs(attribute(node, "alpha", 1.0))
        columns = float(np.linalg.norm(table, axis=0).max())
        whole = float(np.linalg.norm(table))
        return Bound(
            alpha * min(reads[0].norm * columns, reads[0].most * float(table.sum(axis=0).max()))
            + added.most,
            alpha * reads[0].norm * whole + added.norm,
        )


def _of_array(array: Array) -> Bound:
    if array.size == 0 or array.dtype.kind in "OSU":
        return _UNKNOWN
    table = np.abs(array.astype(np.float64))
    rows = np.linalg.norm(table, axis=-1) if table.ndim else table
    return Bound(float(table.max()), float(np.max(rows)))
