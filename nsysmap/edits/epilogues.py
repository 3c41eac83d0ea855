"""Scales and biases behind a product or convolution, as part of its weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import Array, ModelView, attribute, tensor


@dataclass(frozen=True)
class _Change:
    """What a node does to each output channel: multiplies by a factor, then adds something; one of
    the two may be the same for all channels.
    """

    factor: Array
    added: Array
    factor_of: Call | None = None  # how the script computes them; None of no factor, nothing added
    added_of: Call | None = None


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The products of a model that scales and biases follow."""
    for node in view.of("MatMul", "Gemm", "Conv"):
        if len(node.inputs) < 2 or not view.is_constant(node.inputs[1]):
            continue
        shape = view.fixed(node.inputs[1])
        if shape is None or (node.op_type != "Conv" and len(shape) != 2):
            continue
        width = shape[0] if node.op_type == "Conv" or attribute(node, "transB", 0) else shape[1]
        found = _followed(view, node, width)
        if found is not None:
            yield found


def _followed(view: ModelView, node: ir.Node, width: int) -> Edit | Refusal | None:
    value = node.outputs[0]
    chain: list[ir.Node] = []
    factor, added = np.ones(width), np.zeros(width)
    factor_of: Call | None = None
    added_of: Call | None = None
    while (after := view.reader(value)) is not None:
        change = _change(view, node, after, value, width)
        if change is None:
            break
        if node.op_type == "MatMul" and not chain and np.all(change.factor == 1):
            # a bias behind a product is its own; only a scale behind it is more
            ahead = view.reader(after.outputs[0])
            if ahead is None or _change(view, node, ahead, after.outputs[0], width) is None:
                break
        factor, added = factor * change.factor, added * change.factor + change.added
        factor_of = _both("np.multiply", factor_of, change.factor_of)
        if added_of is not None:
            added_of = _both("np.multiply", added_of, change.factor_of)
        added_of = _both("np.add", added_of, change.added_of)
        chain.append(after)
        value = after.outputs[0]
    if not chain:
        return None
    change = _Change(factor, added, factor_of, added_of)
    return _folded(view, node, chain, change, width)


def _both(function: str, one: Call | None, other: Call | None) -> Call | None:
    """Two arrays as one; the other, where there is only one."""
    return other if one is None else one if other is None else call(function, one, other)


def _change(
    view: ModelView, product: ir.Node, node: ir.Node, given: ir.Value, width: int
) -> _Change | None:
    if node.domain != "":
        return None
    if node.op_type == "BatchNormalization" and product.op_type == "Conv":
        if attribute(node, "training_mode", 0) or any(one.uses() for one in node.outputs[1:]):
            return None
        arrays = [view.constant(one) for one in node.inputs[1:5]]
        if any(one is None for one in arrays):
            return None
        scale, bias, mean, variance = (np.asarray(one, np.float64) for one in arrays)
        epsilon = attribute(node, "epsilon", 1e-5)
        factor = scale / np.sqrt(variance + epsilon)
        wide = [call("edit.wide", tensor(one)) for one in node.inputs[1:5]]
        root = call("np.sqrt", call("np.add", wide[3], epsilon))
        factor_of = call("np.divide", wide[0], root)
        added_of = call("np.subtract", wide[1], call("np.multiply", wide[2], factor_of))
        return _Change(factor, bias - mean * factor, factor_of, added_of)
    if node.op_type not in ("Mul", "Div", "Add", "Sub") or len(node.inputs) != 2:
        return None
    if (node.op_type in ("Div", "Sub") and node.inputs[0] is not given) or (
        node.inputs[0] is node.inputs[1]
    ):
        return None
    other = node.inputs[1] if node.inputs[0] is given else node.inputs[0]
    array = view.constant(other)
    rank = len(view.shape(given) or ())
    if array is None or array.size not in (1, width) or array.dtype.kind not in "fV" or not rank:
        return None
    if array.size == width and width > 1:
        channel = 1 if product.op_type == "Conv" else rank - 1
        full = (1,) * (rank - array.ndim) + array.shape
        if len(full) != rank or full[channel] != width:
            return None
    elif array.ndim > rank:
        return None
    each = np.broadcast_to(array.astype(np.float64).reshape(-1), (width,))
    none, one = np.zeros(width), np.ones(width)
    held = call("np.reshape", call("edit.wide", tensor(other)), -1)
    if node.op_type == "Mul":
        return _Change(each, none, held)
    if node.op_type == "Div":
        ok = bool(np.all(each != 0))
        return _Change(1 / each, none, call("np.reciprocal", held)) if ok else None
    if node.op_type == "Add":
        return _Change(one, each, None, held)
    return _Change(one, -each, None, call("np.negative", held))


def _folded(
    view: ModelView, node: ir.Node, chain: list[ir.Node], change: _Change, width: int
) -> Edit | Refusal | None:
    result, near = chain[-1].outputs[0], node.outputs[0]
    factor = change.factor
    names = view.names([node, *chain])
    weight = view.constant(node.inputs[1])
    assert weight is not None
    conv = node.op_type == "Conv"
    first = conv or bool(attribute(node, "transB", 0))
    spread = factor.reshape(-1, *([1] * (weight.ndim - 1))) if first else factor
    with np.errstate(all="ignore"):
        made = (weight.astype(np.float64) * spread).astype(weight.dtype).astype(np.float64)
    lost = np.count_nonzero((made == 0) & (weight != 0)) > 0.001 * weight.size
    if not np.all(np.isfinite(made)) or lost:
        return Refusal("epilogues", names, f"{weight.dtype} does not hold the scaled weights")
    if node.op_type == "Gemm" and (
        attribute(node, "alpha", 1.0) != 1.0 or attribute(node, "beta", 1.0) != 1.0
    ):
        return Refusal("epilogues", names, "the Gemm has factors of its own")
    held = node.inputs[2] if len(node.inputs) > 2 else None
    bias_of: Call | None = None
    if held is not None:
        if (view.constant(held) is None) or view.fixed(held) not in ((1,), (width,), (1, width)):
            return Refusal("epilogues", names, "its bias is not one value for each channel")
        bias_of = call("np.reshape", call("edit.wide", tensor(held)), -1)
        bias_of = _both("np.multiply", bias_of, change.factor_of)
    bias_of = _both("np.add", bias_of, change.added_of)
    steps: list[Call] = []
    reads = [tensor(one) for one in node.inputs[:2]]
    if change.factor_of is not None:
        reads[1] = view.fresh(near, "scaled_weight")
        along = [-1] + [1] * (weight.ndim - 1) if first else [-1]
        by = call("np.reshape", change.factor_of, along)
        scaled = call("np.multiply", call("edit.wide", tensor(node.inputs[1])), by)
        steps.append(call("edit.weight", reads[1], scaled, type=view.type(node.inputs[1])))
    made_name = view.fresh(result, "folded")
    options = {
        name: list(value) if isinstance(value := attribute(node, name, None), tuple) else value
        for name in node.attributes
    }
    if bias_of is not None:
        bias_name = view.fresh(near, "folded_bias")
        steps.append(
            call(
                "edit.weight",
                bias_name,
                call("np.broadcast_to", bias_of, [width]),
                type=view.type(node.inputs[1]),
            )
        )
        if node.op_type == "MatMul":
            product = view.fresh(near, "folded_product")
            steps.append(call("edit.add", "MatMul", reads, [product]))
            steps.append(call("edit.add", "Add", [product, bias_name], [made_name]))
        else:
            steps.append(
                call("edit.add", node.op_type, [*reads, bias_name], [made_name], **options)
            )
    else:
        steps.append(call("edit.add", node.op_type, reads, [made_name], **options))
    steps.append(call("edit.replace", tensor(result), made_name))
    what = " and ".join(dict.fromkeys(one.op_type for one in chain))
    return Edit(
        "epilogues",
        f"{what} behind {node.op_type} as part of its weights",
        names,
        tuple(steps),
        "a factor and a sum for each output channel are a factor of its weights and a bias",
        "join",
    )
