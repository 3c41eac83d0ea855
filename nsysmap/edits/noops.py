"""Nodes that do nothing: identities, dropouts, a factor of one, a reshape to the same shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nsysmap.edits.model import Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor

_NEUTRAL = {"Mul": 1.0, "Div": 1.0, "Pow": 1.0, "Add": 0.0, "Sub": 0.0}
_FIRST_ONLY = ("Div", "Pow", "Sub")


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The nodes of a model that do nothing."""
    for node in view.nodes:
        if node.domain != "" or len(node.outputs) == 0 or node.op_type == "Constant":
            continue
        kept = _passed_on(view, node)
        if kept is None:
            continue
        value, proof = kept
        if node.outputs[0].is_graph_output() and (
            value.producer() is None or value.is_graph_output()
        ):
            continue  # an output is a tensor of its own
        yield Edit(
            "noops",
            f"no {node.op_type}",
            view.names([node]),
            (call("edit.replace", tensor(node.outputs[0]), tensor(value)),),
            proof,
            "vanish",
            beside=view.names(_neighbours(view, node)),
        )


def _neighbours(view: ModelView, node: ir.Node) -> list[ir.Node]:
    before = [one.producer() for one in node.inputs if one is not None]
    after = [use.node for one in node.outputs for use in one.uses()]
    return [one for one in (*before, *after) if one is not None and one in view.place]


def _passed_on(view: ModelView, node: ir.Node) -> tuple[ir.Value, str] | None:
    """The input that a node passes on unchanged, and why."""
    op, first = node.op_type, node.inputs[0] if node.inputs else None
    if first is None:
        return None
    if op == "Identity":
        return first, "Identity passes its input on"
    if op == "Dropout" and not any(one.uses() for one in node.outputs[1:]):
        training = view.constant(node.inputs[2]) if len(node.inputs) > 2 else np.array(False)
        if training is not None and not training.any():
            return first, "Dropout passes its input on outside training"
        return None
    if op in _NEUTRAL and len(node.inputs) == 2:
        return _neutral(view, node)
    shape, made = view.shape(first), view.shape(node.outputs[0])
    if op == "Cast" and first.dtype is not None and int(first.dtype) == attribute(node, "to", 0):
        return first, "it casts to the type that the tensor has"
    shaped = op in ("Reshape", "Expand", "Flatten", "Squeeze", "Unsqueeze", "Tile")
    if shaped and view.fixed(first) is not None and shape == made:
        return first, f"the shape stays {'x'.join(map(str, shape or ()))}"
    straight = tuple(range(len(shape or ())))
    if op == "Transpose" and shape is not None and attribute(node, "perm", None) == straight:
        return first, "its order of axes is the one that the tensor has"
    if op == "Concat" and len(node.inputs) == 1:
        return first, "it joins a single tensor"
    whole = op == "Pad" or (op == "Slice" and _forwards(view, node))
    if whole and view.fixed(first) is not None and shape == made:
        return first, "it keeps all of the tensor"
    return None


def _forwards(view: ModelView, node: ir.Node) -> bool:
    if len(node.inputs) < 5 or node.inputs[4] is None:
        return True
    steps = view.integers(node.inputs[4])
    return steps is not None and all(one == 1 for one in steps)


def _neutral(view: ModelView, node: ir.Node) -> tuple[ir.Value, str] | None:
    for at, other in enumerate(node.inputs):
        value = node.inputs[1 - at]
        if value is None or other is None or (at == 0 and node.op_type in _FIRST_ONLY):
            continue
        array = view.constant(other)
        if array is None or array.size > 65536 or not np.all(array == _NEUTRAL[node.op_type]):
            continue
        if (view.shape(value) == view.shape(node.outputs[0]) and view.fixed(value) is not None) or (
            array.size == 1 and len(array.shape) <= len(view.shape(value) or ())
        ):
            neutral = _NEUTRAL[node.op_type]
            return value, f"{node.op_type} by {neutral:g} changes nothing"
    return None
