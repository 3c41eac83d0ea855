"""Reads the nodes of an ONNX model, without its weights; nothing else imports onnx."""

from __future__ import annotations

import heapq
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.extras import need_extras
from nsysmap.core.records import dataclass

# protobuf reads no more; larger models keep their weights in files of their own
_MOST_BYTES = 2**31
_MOST_NODES = 1_000_000  # with all functions inlined
_DEEPEST_CALL = 100  # of functions that call functions
_RANDOM = frozenset(
    {
        "RandomNormal",
        "RandomUniform",
        "RandomNormalLike",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
    }
)


@dataclass(frozen=True)
class OnnxNode:
    """One node of the graph; an input that is left out is an empty text."""

    name: str  # as TensorRT calls it: node_of_<first output> where the model gives none
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class OnnxModel:
    """The main graph of a model."""

    source: str  # file name, for messages
    nodes: tuple[OnnxNode, ...]  # each behind all that it reads from, else in the file's order
    # tensors that are known when the engine is built: weights, constants and what is made of them
    # alone
    constants: frozenset[str]

    @cached_property
    def producer(self) -> Mapping[str, int]:
        """The index of the node that produces each tensor."""
        return {
            tensor: at for at, node in enumerate(self.nodes) for tensor in node.outputs if tensor
        }

    def producers(self, tensors: Iterable[str]) -> list[int]:
        """The indices of the nodes that produce these tensors; nothing produces inputs and
        weights.
        """
        return [self.producer[tensor] for tensor in tensors if tensor in self.producer]


def read_model(path: str | Path) -> OnnxModel:
    """The model in an .onnx file; weights in files of their own need not be there.

    Raises NsysmapError if the onnx package is missing, the file cannot be read, or it is no ONNX
    model.
    """
    file = Path(path)
    need_extras(str(file), "onnx")
    import onnx
    from google.protobuf.message import DecodeError

    remedy = "give the .onnx file that the engine was built from"
    try:
        status = named_path(file).stat()
        if stat.S_ISDIR(status.st_mode):
            raise NsysmapError(str(file), "is a folder", remedy)
        if not stat.S_ISREG(status.st_mode):
            raise NsysmapError(
                str(file), "is a pipe or a device, not a file", "save it to a file first"
            )
        if status.st_size >= _MOST_BYTES:
            raise NsysmapError(
                str(file),
                "is larger than 2 GiB, which no ONNX file can be",
                "save the model with its weights as external data",
            )
        model = onnx.ModelProto.FromString(file.read_bytes())
    except FileNotFoundError:
        raise NsysmapError(str(file), "there is no such file", remedy) from None
    except OSError as error:
        raise NsysmapError(str(file), f"cannot be read ({error.strerror})", remedy) from None
    except DecodeError:
        raise NsysmapError(str(file), "is not an ONNX model", remedy) from None
    if not model.graph.node or not model.ir_version:
        raise NsysmapError(str(file), "is not an ONNX model, or has no nodes", remedy)
    if model.functions:
        from onnx import inliner

        if _inlined_nodes(model) > _MOST_NODES:
            raise NsysmapError(
                str(file), "has functions that call themselves or expand without limit", remedy
            )
        try:
            model = inliner.inline_local_functions(model)
        except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
            raise NsysmapError(
                str(file), f"is not an ONNX model ({str(error).splitlines()[0]})", remedy
            ) from None
    return _model(model.graph, file.name)


def _inlined_nodes(model: Any) -> int:
    """How many nodes the graph has once its functions are put in place of the calls; more than any
    bound where one calls itself.
    """
    functions = {(function.domain, function.name): function for function in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(nodes: Any, depth: int) -> int:
        if depth > _DEEPEST_CALL:
            return _MOST_NODES + 1
        total = len(nodes)
        for node in nodes:
            total += sum(
                size(attribute.g.node, depth + 1)
                for attribute in node.attribute
                if attribute.HasField("g")
            )
            called = (node.domain, node.op_type)
            if called in functions:
                if called not in sizes:
                    sizes[called] = _MOST_NODES + 1  # what it has where it calls itself
                    sizes[called] = size(functions[called].node, depth + 1)
                total += sizes[called]
        return total

    return size(model.graph.node, 0)


def _model(graph: Any, source: str) -> OnnxModel:
    """The value of a GraphProto."""
    held = [
        OnnxNode(
            str(node.name) or f"node_of_{next(iter(node.output), '')}",
            str(node.op_type),
            tuple(node.input),
            tuple(node.output),
        )
        for node in graph.node
    ]
    nodes = _sorted(held)
    constants = {str(tensor.name) for tensor in graph.initializer} | {
        str(tensor.values.name) for tensor in graph.sparse_initializer
    }
    constants.add("")  # what is left out
    for node in nodes:
        if node.op not in _RANDOM and constants.issuperset(node.inputs):
            constants.update(node.outputs)
    return OnnxModel(source, tuple(nodes), frozenset(constants - {""}))


def _sorted(nodes: Sequence[OnnxNode]) -> list[OnnxNode]:
    """The nodes in topological order, as near to the file's as can be; those in a circle last."""
    producer = {
        tensor: number for number, node in enumerate(nodes) for tensor in node.outputs if tensor
    }
    needs = [
        {producer[tensor] for tensor in node.inputs if tensor in producer} - {number}
        for number, node in enumerate(nodes)
    ]
    if all(all(other < number for other in held) for number, held in enumerate(needs)):
        return list(nodes)
    users: dict[int, list[int]] = {}
    for number, held in enumerate(needs):
        for other in held:
            users.setdefault(other, []).append(number)
    waiting = [len(held) for held in needs]
    ready = [number for number, count in enumerate(waiting) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for user in users.get(number, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    return [nodes[number] for number in [*order, *sorted(set(range(len(nodes))) - set(order))]]
