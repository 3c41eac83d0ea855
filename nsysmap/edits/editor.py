"""Edits an ONNX model by the names of its tensors; its source is copied into the scripts that
`nsysmap fix` writes, which is why it imports nothing of nsysmap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir


class Editor:
    """The main graph of a model, whose tensors are called by name."""

    def __init__(self, model: ir.Model) -> None:
        self.model, self.graph = model, model.graph
        self.tensors = {str(one.name): one for one in self._values()}

    def _values(self) -> Iterator[ir.Value]:
        yield from self.graph.inputs
        yield from self.graph.initializers.values()
        for node in self.graph:
            yield from (one for one in node.outputs if one.name)

    def _node(self, made: str) -> ir.Node:
        """The node that makes a tensor."""
        node = self.tensors[made].producer()
        assert node is not None
        return node

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The values of a weight or of a Constant node."""
        held = self.tensors[name].const_value
        if held is None:
            held = self._node(name).attributes["value"].as_tensor()
        return held.numpy()

    def wide(self, name: str) -> np.ndarray[Any, Any]:
        """The same as FP64."""
        return self.array(name).astype(np.float64)

    def weight(self, name: str, array: Any, *, type: str = "") -> None:
        """A new weight, of this type where one is given."""
        made = np.asarray(array)
        made = made.astype(ir.DataType[type].numpy()) if type else made
        held = ir.tensor(made, name=name)
        kind = ir.TensorType(held.dtype)
        value = ir.Value(name=name, shape=ir.Shape(made.shape), type=kind, const_value=held)
        self.graph.register_initializer(value)
        self.tensors[name] = value

    def add(self, op: str, reads: Sequence[str], writes: Sequence[str], **attributes: Any) -> None:
        """A new node, called as the first tensor that it writes."""
        inputs = [self.tensors[one] if one else None for one in reads]
        outputs = [ir.Value(name=one) for one in writes]
        node = ir.node(op, inputs, attributes or None, outputs=outputs, name=writes[0])
        self.graph.append(node)
        self.tensors.update(zip(writes, outputs, strict=True))

    def connect(self, made: str, position: int, read: str) -> None:
        """Have the node that makes one tensor read another as its input at this position."""
        self._node(made).replace_input_with(position, self.tensors[read])

    def change(self, made: str, **attributes: Any) -> None:
        """Set attributes of the node that makes a tensor."""
        for name, value in attributes.items():
            held = ir.convenience.convert_attribute(name, value)
            self._node(made).attributes[name] = held

    def reshaped(self, name: str) -> None:
        """Forget the shape of a tensor that the model states: it is another now."""
        if not self.tensors[name].is_graph_output():
            self.tensors[name].shape = None

    def retyped(self, name: str, type: str) -> None:
        """State that a tensor has another type now."""
        self.tensors[name].type = ir.TensorType(ir.DataType[type])

    def replace(self, old: str, new: str) -> None:
        """Have everything that reads one tensor read another; an output keeps its name."""
        before, after = self.tensors[old], self.tensors[new]
        if before.is_graph_output():
            if after.producer() is None or after.is_graph_output():
                self.add("Identity", [new], [f"{old}/kept"])
                after = self.tensors[f"{old}/kept"]
            outputs = self.graph.outputs
            for at in [at for at, one in enumerate(outputs) if one is before]:
                outputs[at] = after
            after.type, after.shape = before.type, before.shape
            before.name, after.name = f"{old}/before", old
        before.replace_all_uses_with(after)
        self.tensors[old] = after

    def opset(self, version: int) -> None:
        """Declare a newer opset, in which every other node means the same."""
        self.graph.opset_imports[""] = version

    def axes_as_input(self, made: str) -> None:
        """Give a reduction its axes as an input, as opset 18 has them."""
        node, name = self._node(made), f"{made}/axes"
        self.weight(name, np.array(node.attributes.pop("axes").as_ints()))
        node.resize_inputs(2)
        node.replace_input_with(1, self.tensors[name])

    def finish(self) -> ir.Model:
        """The model without the nodes and weights that nothing reads any more, in order."""
        outputs = set(self.graph.outputs)
        for node in reversed([*self.graph]):
            if not any(one.uses() or one in outputs for one in node.outputs):
                self.graph.remove(node, safe=True)
        for name, weight in [*self.graph.initializers.items()]:
            if not (weight.uses() or weight in outputs or weight.is_graph_input()):
                del self.graph.initializers[name]
        self.graph.sort()
        return self.model
