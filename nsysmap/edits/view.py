"""A model as edits look at it: constants, shapes, types, and who reads what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

Array = np.ndarray[Any, Any]

FLOATS = {ir.DataType.FLOAT: 4, ir.DataType.FLOAT16: 2, ir.DataType.BFLOAT16: 2}
"""The types that edits compute with, and their bytes."""


class ModelView:
    """The main graph of a model, whose shapes have been inferred."""

    def __init__(self, model: ir.Model, origins: Mapping[str, tuple[str, ...]]) -> None:
        self.model, self.graph, self.origins = model, model.graph, origins
        self.nodes: Sequence[ir.Node] = tuple(model.graph)
        self.place = {node: at for at, node in enumerate(self.nodes)}
        self.opset = int(model.graph.opset_imports.get("", 0))
        self._arrays: dict[ir.Value, Array | None] = {}
        self._taken = {str(one.name) for node in self.nodes for one in node.outputs}
        self._taken |= {str(one.name) for one in self.graph.inputs} | set(self.graph.initializers)

    def of(self, *ops: str) -> Iterator[ir.Node]:
        """The nodes with these operators, in order."""
        return (node for node in self.nodes if node.domain == "" and node.op_type in ops)

    def constant(self, value: ir.Value | None) -> Array | None:
        """The values of a weight or of a Constant node; None if it is no constant."""
        if value is None:
            return None
        if value not in self._arrays:
            self._arrays[value] = self._read(value)
        return self._arrays[value]

    def is_constant(self, value: ir.Value | None) -> bool:
        """Whether a tensor is a weight or a constant; its values are not read."""
        if value is None:
            return False
        made = value.producer()
        if made is not None:
            return made.op_type == "Constant" and "value" in made.attributes
        return value.const_value is not None and not value.is_graph_input()

    def _read(self, value: ir.Value) -> Array | None:
        if not self.is_constant(value):
            return None
        made = value.producer()
        held = value.const_value if made is None else made.attributes["value"].as_tensor()
        return None if held is None else np.asarray(held.numpy())

    def scalar(self, value: ir.Value | None) -> float | None:
        """The value of a constant with one element."""
        array = self.constant(value)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def integers(self, value: ir.Value | None) -> tuple[int, ...] | None:
        """The values of a constant of integers."""
        array = self.constant(value)
        if array is None or array.dtype.kind not in "iu" or array.size > 64:
            return None
        return tuple(int(one) for one in array.reshape(-1))

    def shape(self, value: ir.Value | None) -> tuple[int | None, ...] | None:
        """The dimensions of a tensor, None for each that is not fixed; None if its rank is
        unknown.
        """
        if value is None:
            return None
        if value.shape is None:
            array = self.constant(value)
            return None if array is None else array.shape
        return tuple(one if isinstance(one, int) else None for one in value.shape)

    def fixed(self, value: ir.Value | None) -> tuple[int, ...] | None:
        """The dimensions of a tensor, if all are fixed."""
        shape = self.shape(value)
        if shape is None or any(one is None for one in shape):
            return None
        return tuple(int(one or 0) for one in shape)

    def type(self, value: ir.Value | None) -> str:
        """ONNX's name of a tensor's type, such as FLOAT16; empty if it is unknown."""
        return "" if value is None or value.dtype is None else value.dtype.name

    def bytes_of(self, value: ir.Value | None) -> int | None:
        """The size of one element of a floating-point tensor of two or more bytes."""
        return None if value is None or value.dtype is None else FLOATS.get(value.dtype)

    def reader(self, value: ir.Value) -> ir.Node | None:
        """The only node that reads a tensor; None if there are others, or it is an output."""
        uses = value.uses()
        if len(uses) != 1 or value.is_graph_output():
            return None
        (use,) = uses
        return use.node if use.node.graph is self.graph else None

    def made_by(self, value: ir.Value | None, *ops: str) -> ir.Node | None:
        """The node of the main graph that makes a tensor, if it has one of these operators."""
        made = None if value is None else value.producer()
        if made is None or made not in self.place or made.domain != "":
            return None
        return made if not ops or made.op_type in ops else None

    def inside(self, nodes: Sequence[ir.Node], last: Sequence[ir.Value]) -> bool:
        """Whether nothing but these nodes reads what they make, except the ``last``."""
        held = set(nodes)
        return all(
            not one.is_graph_output() and all(use.node in held for use in one.uses())
            for node in nodes
            for one in node.outputs
            if one not in last
        )

    def names(self, nodes: Sequence[ir.Node]) -> tuple[str, ...]:
        """TensorRT's names for these nodes, in order; for nodes that an edit made, those they
        replace.
        """
        found: dict[str, None] = {}
        for node in sorted(nodes, key=lambda one: self.place.get(one, len(self.place))):
            if node.op_type == "Constant":
                continue
            name = node_name(node)
            found.update(dict.fromkeys(self.origins.get(name, (name,))))
        return tuple(found)

    def fresh(self, near: ir.Value, what: str) -> str:
        """A name for a new tensor that nothing has yet."""
        name, number = f"{near.name}/{what}", 2
        while name in self._taken:
            name, number = f"{near.name}/{what}_{number}", number + 1
        self._taken.add(name)
        return name


def node_name(node: ir.Node) -> str:
    """TensorRT's name for a node."""
    return str(node.name) if node.name else f"node_of_{node.outputs[0].name}"


def attribute(node: ir.Node, name: str, default: Any) -> Any:
    """An attribute's plain value."""
    held = node.attributes.get(name)
    if held is None:
        return default
    value = held.value
    return tuple(value) if isinstance(value, list | tuple) else value


def tensor(value: ir.Value | None) -> str:
    """A tensor's name, empty for an input that is left out."""
    return "" if value is None else str(value.name)
