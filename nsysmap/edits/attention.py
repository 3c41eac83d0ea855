"""Attention written so that TensorRT takes it for attention: the softmax as one operator, and the
whole block as one Attention node where its conditions are met.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.cone import Cone, computes, cones, last_axes
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import Array, ModelView, attribute, tensor

ATTENTION_OPSET = 23  # the first of ONNX with the operator Attention
_MOST_CHANNELS = 256  # of a head: TensorRT fuses no larger one


def find_softmax(view: ModelView) -> Iterator[Edit | Refusal]:
    """The softmaxes of a model that are written out with Exp and a sum."""
    for node in view.of("ReduceSum"):
        exponentials = view.made_by(node.inputs[0], "Exp")
        after = view.reader(node.outputs[0])
        if exponentials is None or after is None:
            continue
        result = after.outputs[0]
        if after.op_type == "Reciprocal" and (next_one := view.reader(result)) is not None:
            result = next_one.outputs[0]
        widest: Cone | None = None  # with the largest value subtracted it is the same function
        for cone in cones(view, result):
            if last_axes(view, cone) == 1 and computes(view, cone, _softmax):
                widest = cone
        if widest is not None:
            yield _softmax_edit(view, widest, -1)


def _softmax(x: Array) -> Array:
    away = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(away / away.sum(axis=-1, keepdims=True))


def _softmax_edit(view: ModelView, cone: Cone, axis: int) -> Edit | Refusal:
    made = view.fresh(cone.result, "Softmax")
    if cone.source.dtype != cone.result.dtype:
        return Refusal("softmax", view.names(cone.nodes), "it reads one type and writes another")
    return Edit(
        "softmax",
        f"one Softmax instead of {len(cone.nodes)} nodes",
        view.names(cone.nodes),
        (
            call("edit.add", "Softmax", [tensor(cone.source)], [made], axis=axis),
            call("edit.replace", tensor(cone.result), made),
        ),
        "the nodes compute exp(x) / sum(exp(x)); a largest value that is subtracted cancels",
        "join",
        beside=view.names(_products_around(view, cone)),
    )


def _products_around(view: ModelView, cone: Cone) -> list[ir.Node]:
    """The nodes from the product of queries and keys to that with the values."""
    found: list[ir.Node] = []
    value: ir.Value | None = cone.source
    for _ in range(6):
        node = view.made_by(value)
        if node is None:
            break
        if node.op_type == "MatMul":
            found.append(node)
            break
        if node.op_type not in ("Add", "Mul", "Div", "Cast", "Where", "Clip"):
            break
        found.append(node)
        value = next((one for one in node.inputs if not view.is_constant(one)), None)
    after = view.reader(cone.result)
    while after is not None and after.op_type in ("Cast", "Dropout"):
        found.append(after)
        after = view.reader(after.outputs[0])
    return [*found, after] if after is not None and after.op_type == "MatMul" else found


@dataclass(frozen=True)
class _Attention:
    nodes: tuple[ir.Node, ...]
    query: ir.Value
    key: ir.Value
    value: ir.Value
    turn: tuple[int, ...]  # the order of axes that makes keys of it: batch, heads, tokens, channels
    mask: ir.Value | None
    scale: float
    result: ir.Value


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The blocks of attention of a model, as one Attention node each."""
    for node in view.of("Softmax"):
        found = _block(view, node)
        if isinstance(found, Refusal):
            yield found
        elif found is not None:
            yield _operator(view, found)


def _block(view: ModelView, softmax: ir.Node) -> _Attention | Refusal | None:
    """The nodes that compute softmax(scale * Q K^T + mask) V around a softmax; None if there are
    none.
    """
    shape = view.shape(softmax.outputs[0])
    if shape is None or attribute(softmax, "axis", -1) not in (-1, len(shape) - 1):
        return None
    second = view.reader(softmax.outputs[0])
    if second is None or second.op_type != "MatMul" or second.inputs[0] is not softmax.outputs[0]:
        return None
    nodes = [softmax, second]
    scale, mask = 1.0, None
    value = softmax.inputs[0]
    while True:
        node = view.made_by(value)
        if node is None or value is None or view.reader(value) not in nodes:
            return None
        nodes.append(node)
        if node.op_type == "MatMul":
            break
        if node.op_type not in ("Mul", "Div", "Add"):
            return None
        left, right = node.inputs
        if node.op_type == "Add":
            scores = [one for one in (left, right) if _leads_to_product(view, one)]
            if len(scores) != 1 or mask is not None or scale != 1.0:
                return None
            mask = right if scores[0] is left else left
            value = scores[0]
            continue
        factor = view.scalar(right)
        other: ir.Value | None = left
        if factor is None and node.op_type == "Mul":
            factor, other = view.scalar(left), right
        if factor is None or not factor:
            return None
        scale *= factor if node.op_type == "Mul" else 1 / factor
        value = other
    query, turned = node.inputs
    transpose = view.made_by(turned, "Transpose")
    if transpose is None or query is None:
        return None
    names = view.names(nodes)
    perm = attribute(transpose, "perm", ())
    heads = view.fixed(query)
    key_shape, value_shape = view.shape(turned), view.shape(second.inputs[1])
    if len(perm) != 4 or heads is None or len(heads) != 4:
        return Refusal("attention", names, "its tensors are not batch, heads, tokens and channels")
    if key_shape is None or value_shape is None or len(value_shape) != 4:
        return None
    key = transpose.inputs[0]
    if view.reader(transpose.outputs[0]) is node:
        nodes.append(transpose)
    turn = (perm[0], perm[1], perm[3], perm[2])
    values = second.inputs[1]
    assert key is not None
    assert values is not None
    return _Attention(tuple(nodes), query, key, values, turn, mask, scale, second.outputs[0])


def _leads_to_product(view: ModelView, value: ir.Value | None) -> bool:
    for _ in range(4):
        node = view.made_by(value, "MatMul", "Mul", "Div")
        if node is None:
            return False
        if node.op_type == "MatMul":
            return not view.is_constant(node.inputs[1])
        value = next((one for one in node.inputs if not view.is_constant(one)), None)
    return False


def _turned(view: ModelView, block: _Attention) -> tuple[int | None, ...] | None:
    shape = view.shape(block.key)
    return None if shape is None else tuple(shape[axis] for axis in block.turn)


def _operator(view: ModelView, block: _Attention) -> Edit | Refusal:
    names = view.names(block.nodes)
    heads = view.fixed(block.query) or (0, 0, 0, 0)
    keys, values = _turned(view, block), view.shape(block.value)
    if heads[3] % 8 or not 16 <= heads[3] <= _MOST_CHANNELS:
        return Refusal(
            "attention",
            names,
            f"its heads have {heads[3]} channels; fused kernels take multiples of 8 from 16 to"
            f" {_MOST_CHANNELS}",
        )
    if view.bytes_of(block.query) != 2:
        return Refusal("attention", names, "it computes in FP32; fused kernels take FP16 and BF16")
    if keys is None or values is None or keys[1] != heads[1] or values[1] != heads[1]:
        return Refusal("attention", names, "the heads of its keys or values are not its queries'")
    steps: list[Call] = []
    key = tensor(block.key)
    if block.turn != (0, 1, 2, 3):
        key = view.fresh(block.result, "keys")
        steps.append(
            call("edit.add", "Transpose", [tensor(block.key)], [key], perm=list(block.turn))
        )
    reads = [tensor(block.query), key, tensor(block.value)]
    if block.mask is not None:
        mask = view.shape(block.mask)
        if block.mask.dtype != block.query.dtype or mask is None or len(mask) > 4:
            return Refusal("attention", names, "its mask has another type than its queries")
        masked = tensor(block.mask)
        if len(mask) >= 2 and mask[-2] == 1 != heads[2]:  # the operator repeats it for no query
            masked, sizes = view.fresh(block.result, "mask"), view.fresh(block.result, "mask_shape")
            full = [*mask[:-2], heads[2], mask[-1]]
            if any(one is None for one in full):
                return Refusal("attention", names, "the shape of its mask is not fixed")
            steps.append(call("edit.weight", sizes, call("np.array", full, "int64")))
            steps.append(call("edit.add", "Expand", [tensor(block.mask), sizes], [masked]))
        reads.append(masked)
    made = view.fresh(block.result, "Attention")
    return Edit(
        "attention",
        f"one Attention node instead of {len(block.nodes)} nodes",
        names,
        (
            *steps,
            call("edit.add", "Attention", reads, [made], scale=block.scale),
            call("edit.replace", tensor(block.result), made),
        ),
        f"the nodes compute softmax({block.scale:.4g} Q K^T{' + mask' if block.mask else ''}) V",
        "join",
        opset=ATTENTION_OPSET,
    )
