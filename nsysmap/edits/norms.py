"""Norms written out as means, differences and roots, as one operator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import onnx_ir as ir

from nsysmap.edits.cone import Cone, computes, cones, last_axes, scalars
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import Array, ModelView, tensor

LAYER_NORM_OPSET = 17  # the first of ONNX with the operator LayerNormalization
RMS_NORM_OPSET = 23  # the first of ONNX with the operator RMSNormalization


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The norms of a model that are written out."""
    for root in view.of("Sqrt", "Pow"):
        if root.op_type == "Pow" and view.scalar(root.inputs[1]) not in (0.5, -0.5):
            continue
        for result in _after(view, root):
            found = _norm(view, result)
            if found is not None:
                yield found
                break


def _after(view: ModelView, root: ir.Node) -> Iterator[ir.Value]:
    """The tensors one to three nodes behind the root, where a norm may be complete."""
    value = root.outputs[0]
    for _ in range(3):
        node = view.reader(value)
        if node is None or node.op_type not in ("Div", "Reciprocal", "Mul", "Cast"):
            return
        value = node.outputs[0]
        yield value


def _norm(view: ModelView, result: ir.Value) -> Edit | Refusal | None:
    found: tuple[Cone, int, float, bool] | None = None
    for cone in cones(view, result):  # the widest: a LayerNorm ends as an RMSNorm of differences
        axes = last_axes(view, cone)
        if not axes:
            continue
        over = tuple(range(-axes, 0))
        for epsilon in sorted(set(scalars(view, cone))):
            if not 0 < epsilon < 0.1:
                continue
            for norm, centred in ((_layer_norm, True), (_rms_norm, False)):
                if computes(view, cone, partial(norm, axes=over, epsilon=epsilon)):
                    found = (cone, axes, epsilon, centred)
    if found is None:
        return None
    cone, axes, epsilon, centred = found
    return _edit(view, cone, axes, epsilon, centred=centred)


def _layer_norm(x: Array, *, axes: tuple[int, ...], epsilon: float) -> Array:
    away = x - x.mean(axis=axes, keepdims=True)
    return np.asarray(away / np.sqrt((away**2).mean(axis=axes, keepdims=True) + epsilon))


def _rms_norm(x: Array, *, axes: tuple[int, ...], epsilon: float) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(axis=axes, keepdims=True) + epsilon))


def _edit(
    view: ModelView, cone: Cone, axes: int, epsilon: float, *, centred: bool
) -> Edit | Refusal:
    """The cone, with the casts around it and the scale and bias behind it, as one operator."""
    nodes, source, result = [*cone.nodes], cone.source, cone.result
    shape = view.shape(source)
    assert shape is not None
    size = shape[len(shape) - axes :]
    kind = "LayerNormalization" if centred else "RMSNormalization"
    if any(one is None for one in size):
        return Refusal(
            "norms", view.names(nodes), f"the size that {kind} goes over is not fixed in the model"
        )
    dimensions = tuple(int(one or 0) for one in size)
    scale: ir.Value | None = None
    bias: ir.Value | None = None
    while (node := view.reader(result)) is not None:
        if node.op_type == "Cast" and scale is None and node.outputs[0].dtype == source.dtype:
            pass
        elif node.op_type == "Mul" and scale is None and bias is None:
            scale = _of_size(view, node, result, dimensions)
            if scale is None:
                break
        elif node.op_type == "Add" and scale is not None and bias is None and centred:
            bias = _of_size(view, node, result, dimensions)
            if bias is None:
                break
        else:
            break
        nodes.append(node)
        result = node.outputs[0]
    before = view.made_by(source, "Cast")
    if (
        before is not None
        and before.inputs[0] is not None
        and before.inputs[0].dtype == result.dtype != source.dtype
        and view.inside([before, *nodes], (result,))
    ):  # the sums are in FP32 inside the operator too
        nodes.insert(0, before)
        source = before.inputs[0]
    if source.dtype != result.dtype:
        return Refusal(
            "norms", view.names(nodes), "it reads one type and writes another behind its scale"
        )
    steps: list[Call] = []
    reads = [tensor(source)]
    for value, name, fill in ((scale, "scale", 1.0), (bias, "bias", 0.0)):
        if value is None and name == "bias":
            continue
        weight = view.fresh(cone.result, name)
        array: Call = (
            call("np.full", [*dimensions], fill)
            if value is None
            else call("np.reshape", call("edit.array", tensor(value)), [*dimensions])
        )
        steps.append(call("edit.weight", weight, array, type=view.type(source)))
        reads.append(weight)
    made = view.fresh(result, kind)
    options = {} if not centred and source.dtype is None else {"stash_type": 1}
    steps.append(call("edit.add", kind, reads, [made], axis=-axes, epsilon=epsilon, **options))
    steps.append(call("edit.replace", tensor(result), made))
    return Edit(
        "norms",
        f"one {kind} instead of {len(nodes)} nodes",
        view.names(nodes),
        tuple(steps),
        f"the nodes compute {'(x - mean) / sqrt(variance' if centred else 'x / sqrt(mean square'}"
        f" + {epsilon:g}) of the last {'axis' if axes == 1 else f'{axes} axes'}",
        "join",
        opset=LAYER_NORM_OPSET if centred else RMS_NORM_OPSET,
    )


def _of_size(
    view: ModelView, node: ir.Node, given: ir.Value, dimensions: tuple[int, ...]
) -> ir.Value | None:
    """The other input of a node, if it is a weight of the norm's size."""
    (other,) = [one for one in node.inputs if one is not given] or [None]
    shape = view.fixed(other) if view.is_constant(other) else None
    if shape is None:
        return None
    fits = shape[-len(dimensions) :] == dimensions and set(shape[: -len(dimensions)]) <= {1}
    return other if fits else None
