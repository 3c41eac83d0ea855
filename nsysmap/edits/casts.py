"""Casts that cancel, and regions in FP32 between casts that may compute in the type around them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field

import numpy as np
import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.bounds import FP16_MOST, Bounds
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor

_WIDE = ir.DataType.FLOAT
_REDUCED = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_LOSSLESS = {
    ir.DataType.FLOAT16: {ir.DataType.FLOAT, ir.DataType.DOUBLE},
    ir.DataType.BFLOAT16: {ir.DataType.FLOAT, ir.DataType.DOUBLE},
    ir.DataType.FLOAT: {ir.DataType.DOUBLE},
    ir.DataType.INT8: {ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64},
    ir.DataType.INT32: {ir.DataType.INT64, ir.DataType.DOUBLE},
    ir.DataType.BOOL: {ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT},
}
_MOVES = frozenset(
    [
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Slice",
        "Concat",
        "Expand",
        "Split",
        "Gather",
        "Tile",
        "Identity",
        "Relu",
        "MaxPool",
        "Neg",
        "Abs",
        "Max",
        "Min",
    ]
)
"""Operators whose result is one of the values read, whatever the type."""
_ROUNDED = frozenset(
    [
        "MatMul",
        "Gemm",
        "Conv",
        "Add",
        "Sub",
        "Mul",
        "Softmax",
        "LayerNormalization",
        "RMSNormalization",
        "Gelu",
        "Erf",
        "Tanh",
        "Sigmoid",
        "LeakyRelu",
        "Clip",
        "HardSwish",
        "AveragePool",
        "GlobalAveragePool",
    ]
)
"""Operators that TensorRT computes in the narrower type with sums in FP32."""
_MARGIN = 4.0  # a value may be so many times smaller than the largest that FP16 holds
_ROWS = 64  # of a product that a kernel for tensor cores computes at a time, at least
_EVEN = 4  # values of two bytes of which rows are multiples, for loads of more than one
_MOST_NODES = 200  # between two casts: a longer way is no local edit


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The casts of a model that cancel, and its islands of FP32."""
    bounds = Bounds(view)
    taken: set[ir.Node] = set()
    for node in view.of("Cast"):
        found = _pair(view, node)
        if found is not None:
            taken.add(node)
            yield found
    for node in view.of("Cast"):
        if node in taken or attribute(node, "to", 0) != int(_WIDE):
            continue
        island = _island(view, node)
        if island is None:
            continue
        taken |= {*island.opening, *island.closing}
        yield _narrowed(view, island, bounds)


def _pair(view: ModelView, node: ir.Node) -> Edit | Refusal | None:
    """A cast of a cast, as one or none."""
    before = view.made_by(node.inputs[0], "Cast")
    if before is None or before.inputs[0] is None:
        return None
    first, between, last = before.inputs[0].dtype, node.inputs[0].dtype, node.outputs[0].dtype  # type: ignore[union-attr]
    if first is None or between is None or last is None:
        return None
    nodes = [before, node] if view.reader(before.outputs[0]) is node else [node]
    if between not in _LOSSLESS.get(first, ()):
        if first == last:
            return Refusal(
                "casts", view.names(nodes), f"{first.name} to {between.name} and back rounds"
            )
        return None
    if first == last:
        steps: tuple[Call, ...] = (
            call("edit.replace", tensor(node.outputs[0]), tensor(before.inputs[0])),
        )
    else:
        made = view.fresh(node.outputs[0], "cast")
        steps = (
            call("edit.add", "Cast", [tensor(before.inputs[0])], [made], to=int(last)),
            call("edit.replace", tensor(node.outputs[0]), made),
        )
    return Edit(
        "casts",
        "no casts, the second undoes the first" if first == last else "one cast instead of two",
        view.names(nodes),
        steps,
        f"{between.name} holds every value of {first.name}",
        "vanish",
    )


@dataclass
class _Island:
    narrow: ir.DataType
    opening: dict[ir.Node, None] = field(default_factory=dict)
    inner: dict[ir.Node, None] = field(default_factory=dict)
    closing: dict[ir.Node, None] = field(default_factory=dict)
    hindrance: ir.Node | None = None


def _island(view: ModelView, start: ir.Node) -> _Island | None:
    """What is computed in FP32 between casts from a narrower type and casts back to it."""
    source = start.inputs[0]
    if source is None or source.dtype not in _REDUCED:
        return None
    found = _Island(source.dtype, {start: None})
    frontier: list[ir.Node] = [use.node for use in start.outputs[0].uses()]
    if start.outputs[0].is_graph_output():
        return None
    while frontier:
        node = frontier.pop()
        if node in found.inner or node in found.closing:
            continue
        if node not in view.place or len(found.inner) > _MOST_NODES:
            return None
        if node.op_type == "Cast":
            if node.outputs[0].dtype == found.narrow:
                found.closing[node] = None
                continue
            found.hindrance = found.hindrance or node
            continue
        divides = node.op_type == "Div" and view.is_constant(node.inputs[1])
        if node.domain != "" or not (divides or node.op_type in _MOVES | _ROUNDED):
            found.hindrance = found.hindrance or node
            continue
        found.inner[node] = None
        for one in node.outputs:
            if one.is_graph_output():
                found.hindrance = found.hindrance or node
            frontier += [use.node for use in one.uses()]
        for value in node.inputs:
            made = None if value is None else view.made_by(value)
            if made is None or value is None or value.dtype != _WIDE or view.is_constant(value):
                if value is not None and value.is_graph_input() and value.dtype == _WIDE:
                    found.hindrance = found.hindrance or node
                continue
            if made.op_type == "Cast" and made.inputs[0] is not None:
                if made.inputs[0].dtype == found.narrow:
                    found.opening[made] = None
                    continue
                found.hindrance = found.hindrance or made
            elif made not in found.inner:
                frontier.append(made)
    return found if found.hindrance or (found.inner and found.closing) else None


def _narrowed(view: ModelView, island: _Island, bounds: Bounds) -> Edit | Refusal:
    name = "FP16" if island.narrow == ir.DataType.FLOAT16 else "BF16"
    inner = sorted(island.inner, key=lambda one: view.place[one])
    nodes = [*island.opening, *inner, *island.closing]
    names = view.names(nodes)
    if island.hindrance is not None:
        return Refusal(
            "casts",
            names,
            f"{view.names([island.hindrance])[0]} ({island.hindrance.op_type}) needs FP32, or reads"
            " or writes it elsewhere",
        )
    exact = all(node.op_type in _MOVES for node in inner)
    if not exact and island.narrow == ir.DataType.FLOAT16:
        for node in inner:
            for value in node.outputs:
                most = bounds.of(value).most
                if most * _MARGIN > FP16_MOST:
                    told = "nothing bounds" if most == np.inf else f"{most:.3g} bounds"
                    return Refusal(
                        "casts",
                        names,
                        f"FP16 may not hold {view.names([node])[0]} ({node.op_type}): {told} its"
                        " values whatever the input",
                    )
    steps: list[Call] = []
    narrowed: dict[str, str] = {}
    kind = island.narrow.name
    for node in inner:
        result = tensor(node.outputs[0])
        for at, read in enumerate(node.inputs):
            if read is None or read.dtype != _WIDE:
                continue
            made = view.made_by(read, "Cast")
            if made is not None and made in island.opening:
                steps.append(call("edit.connect", result, at, tensor(made.inputs[0])))
            elif view.is_constant(read):
                array = view.constant(read)
                assert array is not None
                if (
                    island.narrow == ir.DataType.FLOAT16
                    and array.size
                    and not float(np.abs(array).max()) <= FP16_MOST
                ):
                    return Refusal("casts", names, f"FP16 does not hold the constant {read.name}")
                if tensor(read) not in narrowed:
                    narrowed[tensor(read)] = view.fresh(read, name.lower())
                    steps.append(
                        call(
                            "edit.weight",
                            narrowed[tensor(read)],
                            call("edit.array", tensor(read)),
                            type=kind,
                        )
                    )
                steps.append(call("edit.connect", result, at, narrowed[tensor(read)]))
        steps += [call("edit.retyped", tensor(one), type=kind) for one in node.outputs]
    for node in island.closing:
        opened = view.made_by(node.inputs[0], "Cast")
        kept = opened.inputs[0] if opened in island.opening and opened else node.inputs[0]
        steps.append(call("edit.replace", tensor(node.outputs[0]), tensor(kept)))
    largest = max((bounds.of(one).most for node in inner for one in node.outputs), default=0.0)
    return Edit(
        "casts",
        f"{len(inner)} nodes in {name} instead of FP32 between casts",
        names,
        tuple(steps),
        "moving values does not round them"
        if exact
        else f"no value is larger than {largest:.3g}, whatever the input; sums stay in FP32"
        if island.narrow == ir.DataType.FLOAT16
        else "BF16 has the range of FP32; sums stay in FP32",
        "vanish" if exact else "narrow",
        kept=view.names(inner),
        uneven=view.names([one for one in inner if _uneven(view, one)]),
        scant=view.names([one for one in inner if _scant(view, one)]),
    )


def _uneven(view: ModelView, node: ir.Node) -> bool:
    """Whether kernels for tensor cores may not take a product in two bytes: its rows do not fill
    whole vectors, or it is a convolution by groups.
    """
    if node.op_type == "Conv" and attribute(node, "group", 1) != 1:
        return True
    if node.op_type not in ("MatMul", "Gemm", "Conv"):
        return False
    weight, result = (view.shape(one) or () for one in (node.inputs[1], node.outputs[0]))
    sizes = weight[:2] if node.op_type == "Conv" else (*weight[-2:], *result[-1:])
    return any(one is None or one % _EVEN for one in sizes)


def _scant(view: ModelView, node: ir.Node) -> bool:
    """Whether a product has fewer rows than a kernel for tensor cores computes at a time: tokens of
    the batch, or places of its maps.
    """
    shape = view.fixed(node.outputs[0])
    if node.op_type not in ("MatMul", "Gemm", "Conv") or shape is None:
        return False
    rows = (shape[0], *shape[2:]) if node.op_type == "Conv" else shape[:-1]
    return math.prod(rows) < _ROWS
