"""Shapes that are computed although they are known: as constants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nsysmap.edits.model import Edit, Refusal, call
from nsysmap.edits.view import Array, ModelView, attribute, tensor

_MOST = 64  # elements of a shape
_ARITHMETIC = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """Finds the tensors of a model that follow from fixed shapes alone and that other
    nodes read.
    """
    known: dict[ir.Value, Array] = {}
    nodes: dict[ir.Value, tuple[ir.Node, ...]] = {}
    for node in view.nodes:
        if node.domain != "" or len(node.outputs) != 1 or node.op_type == "Constant":
            continue
        made = _value(view, node, known)
        if made is not None and made.size <= _MOST:
            known[node.outputs[0]] = made
            before = [one for value in node.inputs for one in nodes.get(value, ())]  # type: ignore[arg-type]
            nodes[node.outputs[0]] = tuple(dict.fromkeys((*before, node)))
    for value, array in known.items():
        if (
            all(use.node.outputs[0] in known for use in value.uses())
            and not value.is_graph_output()
        ):
            continue
        if array.dtype.kind not in "iu" or not value.uses():
            continue
        name = view.fresh(value, "known")
        yield Edit(
            "shapes",
            f"the constant {array.tolist()} instead of {len(nodes[value])} nodes that compute it",
            view.names(nodes[value]),
            (
                call("edit.weight", name, call("np.array", array.tolist(), str(array.dtype))),
                call("edit.replace", tensor(value), name),
            ),
            "it follows from shapes that the model fixes",
            "vanish",
        )


def _value(view: ModelView, node: ir.Node, known: dict[ir.Value, Array]) -> Array | None:
    if node.op_type == "Shape":
        shape = view.fixed(node.inputs[0])
        if shape is None:
            return None
        begin, end = attribute(node, "start", 0), attribute(node, "end", None)
        return np.array(shape[begin:end], np.int64)
    if not any(one in known for one in node.inputs):
        return None
    reads = [None if one is None else known.get(one, view.constant(one)) for one in node.inputs]
    if any(one is None for one in reads):
        return None
    arrays = [np.asarray(one) for one in reads]
    first = arrays[0]
    if node.op_type in _ARITHMETIC and len(arrays) == 2:
        return np.asarray(_ARITHMETIC[node.op_type](*arrays))
    if node.op_type == "Div" and first.dtype.kind in "iu" and np.all(arrays[1] > 0):
        return np.asarray(first // arrays[1]) if np.all(first >= 0) else None
    if node.op_type == "Gather":
        return np.asarray(np.take(first, arrays[1], axis=attribute(node, "axis", 0)))
    if node.op_type == "Concat":
        return np.concatenate(arrays, axis=attribute(node, "axis", 0))
    if node.op_type == "Unsqueeze" and len(arrays) == 2 and first.ndim == 0:
        return first.reshape(1)
    if node.op_type == "Squeeze" and first.size == 1:
        return first.reshape(())
    if node.op_type == "Slice" and first.ndim == 1:
        starts, ends = int(arrays[1].reshape(-1)[0]), int(arrays[2].reshape(-1)[0])
        step = int(arrays[4].reshape(-1)[0]) if len(arrays) > 4 else 1
        return first[starts : min(ends, len(first)) : step] if step > 0 else None
    if node.op_type in ("Cast", "Identity"):
        to = attribute(node, "to", 7)
        return first.astype(np.int64 if to == 7 else np.int32) if to in (6, 7) else None
    return None
