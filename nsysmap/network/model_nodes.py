"""The nodes of the ONNX model that each layer of an engine computes: those in its name, and those
between its tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.names.layers import nodes_of, split_layer_name, without_suffix

_ENDS = re.compile(r"\{ForeignNode\[(.*?)(?:\.\.\.(.*))?\]\}$", re.DOTALL)
# of the layers that tell their nodes and write a tensor of the model, at least so many write what
# one of those nodes makes
_FIT = 0.7


def with_model_nodes(layers: Sequence[Layer], model: OnnxModel) -> tuple[Layer, ...]:
    """The layers, with the model's nodes that each computes as its ONNX nodes; unchanged if the
    model says nothing about a layer.

    A layer computes the nodes in its metadata or its name, and those between the tensors that it
    reads and writes: TensorRT keeps the names of the model's tensors.  The nodes of an opaque
    region are found in the same way, or from its last node if its tensors have other names.
    """
    work = _NodeSearch(layers, _Graph(model))
    return tuple(
        replace(layer, onnx=nodes) if nodes else layer
        for layer, nodes in zip(layers, work.nodes(), strict=True)
    )


def of_model(layers: Sequence[Layer], model: OnnxModel) -> bool:
    """Whether the layers' names and tensors agree that they were built from this model; False if
    undecided.
    """
    return _NodeSearch(layers, _Graph(model)).fits


@dataclass(frozen=True)
class _Graph:
    model: OnnxModel

    @cached_property
    def place(self) -> Mapping[str, int]:
        """A node's index by its name."""
        return {node.name: at for at, node in enumerate(self.model.nodes)}

    @cached_property
    def tensors(self) -> frozenset[str]:
        """Every tensor of the model that is not a constant."""
        named = (
            tensor
            for node in self.model.nodes
            for tensor in (*node.inputs, *node.outputs)
            if tensor
        )
        return frozenset(named) - self.model.constants


class _NodeSearch:
    def __init__(self, layers: Sequence[Layer], graph: _Graph) -> None:
        self.layers, self.graph = layers, graph
        self.carried = _carried(layers, graph.tensors)
        self.claimed = [self._claims(layer) for layer in layers]
        self.fits = self._fits()
        if self.fits:
            self.claimed = [
                self._possible(layer, claimed)
                for layer, claimed in zip(layers, self.claimed, strict=True)
            ]
        self.owner = {
            node: at for at in range(len(layers) - 1, -1, -1) for node in self.claimed[at]
        }

    def nodes(self) -> list[tuple[str, ...]]:
        """For each layer its nodes, in the model's order."""
        found: list[tuple[str, ...]] = []
        writes = [
            (
                self._tensors(tensor.name for tensor in layer.outputs)
                if _computes(layer)
                else set[str]()
            )
            for layer in self.layers
        ]
        writers: dict[str, int] = {}
        for at, held in enumerate(writes):
            for tensor in held:
                writers.setdefault(tensor, at)
        for at, layer in enumerate(self.layers):
            between: set[int] = set()
            if _computes(layer):
                ends = set(self.graph.model.producers(writes[at]))
                last = _last_node(layer)
                ends |= {self.graph.place[last]} if not ends and last in self.graph.place else set()
                stops = self._tensors(tensor.name for tensor in layer.inputs)
                between = self._between(at, ends, stops, writers)
                for node in between:
                    self.owner.setdefault(node, at)
            places = sorted(between.union(self.claimed[at]))
            found.append(tuple(self.graph.model.nodes[place].name for place in places))
        return found

    def _claims(self, layer: Layer) -> set[int]:
        """The nodes in a layer's metadata or name."""
        if not layer.onnx and not _computes(layer):
            return set()
        ends = _ENDS.match(split_layer_name(layer.name).node)
        told = layer.onnx or (
            [one for one in ends.groups() if one]
            if ends
            else nodes_of(split_layer_name(layer.name).node)
        )
        return {
            self.graph.place[name]
            for one in told
            for name in (one, without_suffix(one))
            if name in self.graph.place
        }

    def _made_by(self, tensors: Iterable[Tensor]) -> set[int]:
        """The nodes that make these tensors."""
        return set(self.graph.model.producers(self._tensors(tensor.name for tensor in tensors)))

    def _fits(self) -> bool:
        told = [
            bool(claimed & made)
            for layer, claimed in zip(self.layers, self.claimed, strict=True)
            if claimed and _computes(layer) and (made := self._made_by(layer.outputs))
        ]
        return bool(told) and sum(told) >= _FIT * len(told)

    def _possible(self, layer: Layer, claimed: set[int]) -> set[int]:
        """Only the nodes between the layer's inputs and outputs, where the model has all of those:
        another export named other nodes so.
        """
        made = self._made_by(layer.outputs)
        if not claimed or layer.onnx or claimed & made or len(made) < len(layer.outputs):
            return claimed
        before = self._needed(
            at for node in self._made_by(layer.inputs) for at in self._reads(node)
        )
        return (claimed - before) & self._needed(made)

    def _needed(self, nodes: Iterable[int]) -> set[int]:
        """These nodes and all that they depend on."""
        found: set[int] = set()
        frontier = list(nodes)
        while frontier:
            node = frontier.pop()
            if node not in found:
                found.add(node)
                frontier += self._reads(node)
        return found

    def _reads(self, node: int) -> list[int]:
        return self.graph.model.producers(self.graph.model.nodes[node].inputs)

    def _tensors(self, names: Iterable[str]) -> set[str]:
        """The model's tensors that these are, under their own names or as the source of a
        reformat.
        """
        return {self.carried.get(name, name) for name in names} & self.graph.tensors

    def _between(
        self, at: int, ends: set[int], stops: set[str], writers: Mapping[str, int]
    ) -> set[int]:
        """The nodes from these back to the tensors that the layer reads; none if that leads past
        them.

        Then it ends at an input of the model or at a tensor that another layer writes, and layers
        between compute some of these nodes.
        """
        found: set[int] = set()
        frontier = [node for node in ends if self.owner.get(node, at) == at]
        while frontier:
            place = frontier.pop()
            if place in found:
                continue
            found.add(place)
            for tensor in self.graph.model.nodes[place].inputs:
                if not tensor or tensor in stops or tensor in self.graph.model.constants:
                    continue
                if tensor not in self.graph.model.producer or writers.get(tensor, at) != at:
                    return set()
                if self.owner.get(self.graph.model.producer[tensor], at) == at:
                    frontier.append(self.graph.model.producer[tensor])
        return found


def _computes(layer: Layer) -> bool:
    return layer.kind not in ("reformat", "constant", "noop", "signal")


def _last_node(layer: Layer) -> str:
    found = _ENDS.match(split_layer_name(layer.name).node)
    return (found[2] or found[1]) if found else ""


def _carried(layers: Sequence[Layer], known: frozenset[str]) -> dict[str, str]:
    """The model's tensor behind another name: reformats rename what they read or write."""
    result: dict[str, str] = {}
    ends = [
        (layer.inputs[0].name, layer.outputs[0].name)
        for layer in layers
        if not _computes(layer) and len(layer.inputs) == len(layer.outputs) == 1
    ]
    for _ in range(4):  # a chain of them
        for read, written in ends:
            for one, other in ((read, written), (written, read)):
                if one not in known and one not in result and (other in known or other in result):
                    result[one] = result.get(other, other)
    return result
