"""Removes quantizers that are doubled, moves those that stand on the wrong side of what only moves
data, and names those that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from onnx import defs

from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor

_MOVES = frozenset(
    ["Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "MaxPool", "Identity"]
)
_LEAST_FP16_SCALE = 2.0**-14
"""The least normal number of FP16."""
_PRODUCTS = ("MatMul", "Gemm", "Conv")


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The quantizers of a model that cost time for nothing."""
    for node in view.of("QuantizeLinear"):
        found = _doubled(view, node) or _behind_moves(view, node) or _behind_concat(view, node)
        if found is not None:
            yield found
    yield from _parallel(view)
    for node in view.of(*_PRODUCTS):
        found = _missing(view, node)
        if found is not None:
            yield found
    for node in view.of("Add"):
        found = _one_branch(view, node)
        if found is not None:
            yield found


def _alike(view: ModelView, one: ir.Node, other: ir.Node) -> bool:
    """Whether two of these nodes have the same constant scale, zero point, axis and types."""
    for at in (1, 2):
        values = [node.inputs[at] if len(node.inputs) > at else None for node in (one, other)]
        if values[0] is values[1]:
            continue
        arrays = [view.constant(value) for value in values]
        if (
            arrays[0] is None
            or arrays[1] is None
            or values[0].dtype != values[1].dtype  # type: ignore[union-attr]
            or arrays[0].shape != arrays[1].shape
            or not np.array_equal(arrays[0].astype(np.float64), arrays[1].astype(np.float64))
        ):
            return False
    return view.is_constant(one.inputs[1]) and all(
        attribute(one, name, default) == attribute(other, name, default)
        for name, default in (("axis", 1), ("block_size", 0))
    )


def _each_tensor(view: ModelView, node: ir.Node) -> bool:
    """Whether a node has one scale for the whole tensor."""
    return view.scalar(node.inputs[1]) is not None


def _held(view: ModelView, node: ir.Node) -> bool:
    """Whether what is dequantized is quantized to what it was: the rounding of the wider type is
    far smaller than a step of the narrower one, unless a scale in FP16 makes the values tiny.
    """
    scale = view.constant(node.inputs[1])
    if scale is None or node.inputs[1] is None or node.inputs[1].dtype != ir.DataType.FLOAT16:
        return scale is not None
    return bool(np.all(scale.astype(np.float64) >= _LEAST_FP16_SCALE))


def _takes(view: ModelView, op: str, held: ir.DataType | None) -> bool:
    """Whether ONNX defines an operator of the model's opset for tensors of a type."""
    try:
        schema = defs.get_schema(op, view.opset, "")
    except defs.SchemaError:
        return False
    return held is not None and f"tensor({held.name.lower()})" in schema.inputs[0].types


def _doubled(view: ModelView, node: ir.Node) -> Edit | None:
    """A quantizer of what was just dequantized with the same scale."""
    before = view.made_by(node.inputs[0], "DequantizeLinear")
    if before is None or not _alike(view, before, node):
        return None
    source = before.inputs[0]
    if source is None or source.dtype != node.outputs[0].dtype or not _held(view, node):
        return None
    gone = [node]
    if view.reader(before.outputs[0]) is node:
        gone.insert(0, before)
    return Edit(
        "quantizers",
        "no second quantizer of the same tensor",
        view.names(gone),
        (call("edit.replace", tensor(node.outputs[0]), tensor(source)),),
        "with the same scale and type, quantizing what was dequantized gives it back",
        "vanish",
        beside=view.names([before]),
    )


def _behind_moves(view: ModelView, node: ir.Node) -> Edit | None:
    """Dequantize, move, quantize with the same scale: the values are moved as they are."""
    moves: list[ir.Node] = []
    value = node.inputs[0]
    while (move := view.made_by(value, *_MOVES)) is not None and len(moves) < 8:
        if value is None or view.reader(value) is None:
            return None
        moves.append(move)
        value = move.inputs[0]
    before = view.made_by(value, "DequantizeLinear")
    if not moves or before is None or value is None or not _alike(view, before, node):
        return None
    if not _each_tensor(view, node) or before.inputs[0] is None or not _held(view, node):
        return None
    integers = node.outputs[0].dtype in (ir.DataType.INT8, ir.DataType.UINT8)
    if any(one.op_type == "MaxPool" and (len(one.outputs) > 1 or not integers) for one in moves):
        return None
    first = moves[-1]
    quantizer = view.made_by(before.inputs[0], "QuantizeLinear")
    if (
        quantizer is not None
        and quantizer.inputs[0] is not None
        and view.reader(quantizer.outputs[0]) is before
        and view.reader(before.outputs[0]) is first
    ):
        return Edit(
            "quantizers",
            "one quantizer, behind what moves the data",
            view.names([quantizer, before]),
            (call("edit.replace", tensor(before.outputs[0]), tensor(quantizer.inputs[0])),),
            "moving values and quantizing them with one scale may change places, and the second"
            " quantizer has the scale of the first",
            "vanish",
            beside=view.names([*moves, node]),
            instead=view.names([node]),
        )
    if not all(_takes(view, one.op_type, before.inputs[0].dtype) for one in moves):
        return None
    steps: list[Call] = [
        call("edit.connect", tensor(first.outputs[0]), 0, tensor(before.inputs[0]))
    ]
    steps += [
        call("edit.retyped", tensor(one.outputs[0]), type=view.type(before.inputs[0]))
        for one in moves
    ]
    steps.append(call("edit.replace", tensor(node.outputs[0]), tensor(moves[0].outputs[0])))
    gone = [node] if view.reader(value) is not first else [before, node]
    return Edit(
        "quantizers",
        f"{len(moves)} nodes that move data move the quantized values",
        view.names(gone),
        tuple(steps),
        "they choose values and compute none, and the scale is the same before and after",
        "vanish",
        beside=view.names(moves),
    )


def _behind_concat(view: ModelView, node: ir.Node) -> Edit | Refusal | None:
    """Dequantize each part, join, quantize with the same scale: the quantized parts are joined."""
    joined = view.made_by(node.inputs[0], "Concat")
    if joined is None or view.reader(joined.outputs[0]) is not node:
        return None
    parts = [view.made_by(one, "DequantizeLinear") for one in joined.inputs]
    if not any(parts):
        return None
    names = view.names([joined, node])
    if any(one is None for one in parts):
        return Refusal(
            "quantizers", names, "only some parts of the Concat are quantized: calibrate the others"
        )
    if any(one is None or not _alike(view, one, node) for one in parts) or not _each_tensor(
        view, node
    ):
        return Refusal(
            "quantizers",
            names,
            "the parts of the Concat have other scales than what follows: calibrate them together",
        )
    narrow = node.outputs[0].dtype
    if not _takes(view, "Concat", narrow):
        told = "that type" if narrow is None else narrow.name
        return Refusal("quantizers", names, f"ONNX has no Concat of tensors in {told}")
    made = view.fresh(joined.outputs[0], "quantized")
    sources = [tensor(one.inputs[0]) for one in parts if one is not None]
    gone = [
        *(one for one in parts if one is not None and view.reader(one.outputs[0]) is joined),
        node,
    ]
    return Edit(
        "quantizers",
        "the quantized parts are joined, not the dequantized ones",
        view.names(gone),
        (
            call("edit.add", "Concat", sources, [made], axis=attribute(joined, "axis", 0)),
            call("edit.replace", tensor(node.outputs[0]), made),
        ),
        "all parts have the scale of the result, so joining and quantizing may change places",
        "vanish",
        beside=view.names([joined]),
    )


def _parallel(view: ModelView) -> Iterator[Edit]:
    """Several quantizers of one tensor with the same scale, as one."""
    first: dict[ir.Value, list[ir.Node]] = {}
    for node in view.of("QuantizeLinear", "DequantizeLinear"):
        value = node.inputs[0]
        if value is None or view.is_constant(value):
            continue
        same = [
            one
            for one in first.get(value, [])
            if one.op_type == node.op_type
            and _alike(view, one, node)
            and one.outputs[0].dtype == node.outputs[0].dtype
        ]
        if not same:
            first.setdefault(value, []).append(node)
            continue
        yield Edit(
            "quantizers",
            f"one {node.op_type} of the tensor instead of two",
            view.names([node]),
            (call("edit.replace", tensor(node.outputs[0]), tensor(same[0].outputs[0])),),
            "both have the same input, scale and type",
            "vanish",
        )


def _quantized(view: ModelView, value: ir.Value | None) -> bool:
    for _ in range(4):
        node = view.made_by(value, "DequantizeLinear", *_MOVES)
        if node is None:
            return False
        if node.op_type == "DequantizeLinear":
            return True
        value = node.inputs[0]
    return False


def _missing(view: ModelView, node: ir.Node) -> Refusal | None:
    """A product with only one quantized operand."""
    if len(node.inputs) < 2:
        return None
    told = [_quantized(view, one) for one in node.inputs[:2]]
    if told in ([True, True], [False, False]):
        return None
    which = "weights" if told[0] else "activations"
    made = view.made_by(node.inputs[1], "DequantizeLinear")
    if which == "activations" and made is not None and made.inputs[0] is not None:
        held = made.inputs[0].dtype
        if held is not None and held.name in ("INT4", "UINT4", "FLOAT4E2M1"):
            return None  # weights alone, on purpose
    return Refusal(
        "quantizers",
        view.names([node]),
        f"its {which} have no quantizer, so it computes in the wider type; their scale must come"
        " from calibration",
    )


def _one_branch(view: ModelView, node: ir.Node) -> Refusal | None:
    """A sum behind a convolution with a result that is quantized on the way, which keeps the two
    apart.
    """
    told = [_quantized(view, one) for one in node.inputs]
    if sorted(told) != [False, True]:
        return None
    value = node.inputs[told.index(True)]
    made = view.made_by(value, "DequantizeLinear")
    quantizer = None if made is None else view.made_by(made.inputs[0], "QuantizeLinear")
    product = None if quantizer is None else view.made_by(quantizer.inputs[0], *_PRODUCTS)
    if product is None:
        return None
    return Refusal(
        "quantizers",
        view.names([node]),
        f"the result of {view.names([product])[0]} is quantized before the sum, which keeps them"
        " from being one kernel; quantize the other summand instead, when calibrating: it changes"
        " the results",
    )
