"""Whether a model can be declared to be of a newer opset with every node meaning what it did."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx_ir as ir
from onnx import defs

from nsysmap.edits.model import Call, call
from nsysmap.edits.view import node_name

LEAST = 13
"""The oldest opset whose models are edited: before it Softmax and Squeeze meant other things."""

_CHANGED = frozenset({"GroupNormalization", "Upsample", "AveragePool", "Loop", "Scan", "If"})
"""Operators whose meaning changed, or may have, without their declaration showing it."""


def hindered(model: ir.Model, opset: int) -> str | None:
    """The first node whose meaning changes in a newer opset, and its operator; None if there is
    none.
    """
    now = int(model.graph.opset_imports.get("", 0))
    for node in model.graph.all_nodes():
        if node.domain in ("", "ai.onnx") and not (
            _same(node, now, opset) or _rewritten(model, node, now, opset)
        ):
            return f"{node_name(node)} ({node.op_type})"
    return None


def raised(model: ir.Model, opset: int) -> tuple[Call, ...]:
    """The steps that declare a newer opset, and have nodes say in its way what they said."""
    now = int(model.graph.opset_imports.get("", 0))
    steps = [call("edit.opset", opset)]
    for node in model.graph:
        if _rewritten(model, node, now, opset):
            name = str(node.outputs[0].name)
            steps.append(
                call("edit.change", name, num_outputs=len(node.outputs))
                if node.op_type == "Split"
                else call("edit.axes_as_input", name)
            )
    return tuple(steps)


def _rewritten(model: ir.Model, node: ir.Node, now: int, then: int) -> bool:
    """Whether a node of the main graph can be rewritten for the newer opset: a reduction whose axes
    became an input, a split that must give its number of parts.
    """
    if not now < 18 <= then or node.graph is not model.graph or node.domain != "":
        return False
    if node.op_type == "Split":
        return len(node.inputs) < 2
    return node.op_type.startswith("Reduce") and "axes" in node.attributes


def _same(node: ir.Node, now: int, then: int) -> bool:
    before, after = _schema(node.op_type, now), _schema(node.op_type, then)
    if before is None or after is None or after.deprecated:
        return False
    if before.since_version == after.since_version:
        return True
    if node.op_type in _CHANGED:
        return False
    if node.op_type == "Split" and len(node.inputs) < 2 and now < 18 <= then:
        return False  # how many parts was told by the outputs alone
    if node.op_type == "BatchNormalization" and len(node.outputs) > 1:
        return False
    if set(node.attributes) - set(after.attributes):
        return False  # such as axes, which became an input
    if any(
        name in after.attributes and _default(one) != _default(after.attributes[name])
        for name, one in before.attributes.items()
    ):
        return False
    return len(after.inputs) >= len(before.inputs) and [one.name for one in before.inputs] == [
        one.name for one in after.inputs[: len(before.inputs)]
    ]


@cache
def _schema(op: str, opset: int) -> Any:
    try:
        return defs.get_schema(op, opset, "")
    except defs.SchemaError:
        return None


def _default(one: Any) -> bytes:
    return bytes(one.default_value.SerializeToString())
