"""Recognises what a group of nodes computes by computing it: all ways to write a GELU or a norm are
one function of one tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.view import Array, ModelView, attribute

_MOST_NODES = 24  # that compute one function: attention with its mask has fewer
_ELEMENTS = 7  # along each axis that is summed, of the tensors it is tried with


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[float])(x))


_POINTWISE: dict[str, Callable[..., Array]] = {
    "Identity": lambda x: x,
    "Cast": lambda x: x,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Sqrt": np.sqrt,
    "Reciprocal": np.reciprocal,
    "Erf": _erf,
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Exp": np.exp,
    "Neg": np.negative,
}
_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "ReduceMean": np.mean,
    "ReduceSum": np.sum,
    "ReduceMax": np.max,
}


@dataclass(frozen=True)
class Cone:
    """The nodes between one tensor and another that follows from it alone."""

    source: ir.Value
    nodes: tuple[ir.Node, ...]  # in order
    result: ir.Value

    @property
    def ops(self) -> frozenset[str]:
        """The operators of its nodes."""
        return frozenset(node.op_type for node in self.nodes)


def cones(view: ModelView, result: ir.Value) -> Iterator[Cone]:
    """The cones that end at a tensor, the smallest first."""
    nodes: list[ir.Node] = []
    frontier = {result}
    while len(nodes) < _MOST_NODES:
        ready = [
            (view.place[made], value)
            for value in frontier
            if (made := view.made_by(value, *_POINTWISE, *_REDUCTIONS)) is not None
        ]
        if not ready:
            return
        _, value = max(ready, key=lambda one: one[0])
        made = value.producer()
        assert made is not None
        nodes.append(made)
        frontier.discard(value)
        frontier.update(one for one in made.inputs if one is not None and not view.is_constant(one))
        if len(frontier) == 1:
            (source,) = frontier
            held = tuple(reversed(nodes))
            if view.inside(held, (result,)):
                yield Cone(source, held, result)


def scalars(view: ModelView, cone: Cone) -> tuple[float, ...]:
    """The constants of one element that its nodes read."""
    found = (view.scalar(one) for node in cone.nodes for one in node.inputs)
    return tuple(one for one in found if one is not None)


def last_axes(view: ModelView, cone: Cone) -> int | None:
    """Over how many of the last axes its reductions go, if all go over the same ones and keep
    them; 0 if it has none.
    """
    shape = view.shape(cone.source)
    found = set()
    for node in cone.nodes:
        if node.op_type in _REDUCTIONS:
            axes = reduced_axes(view, node)
            if shape is None or axes is None or not attribute(node, "keepdims", 1):
                return None
            found.add(frozenset(axis % len(shape) for axis in axes))
    if not found:
        return 0
    if len(found) > 1 or shape is None:
        return None
    (over,) = found
    return len(over) if over == frozenset(range(len(shape) - len(over), len(shape))) else None


def reduced_axes(view: ModelView, node: ir.Node) -> tuple[int, ...] | None:
    """The axes that a reduction goes over; None if they are not known, or are all."""
    axes = attribute(node, "axes", None)
    if axes is None and len(node.inputs) > 1:
        axes = view.integers(node.inputs[1])
    return axes or None


def computes(view: ModelView, cone: Cone, expected: Callable[[Array], Array]) -> bool:
    """Whether the cone is this function: on random tensors the results agree to the digits that its
    constants have in their type.
    """
    shape = view.shape(cone.source)
    if shape is None or any(
        view.scalar(one) is None
        for node in cone.nodes
        for at, one in enumerate(node.inputs)
        if one is not None and view.is_constant(one) and not (node.op_type in _REDUCTIONS and at)
    ):
        return False
    digits = {2: 2e-3, 4: 1e-5}.get(view.bytes_of(cone.source) or 4, 1e-5)
    random = np.random.default_rng(0)
    for spread in (0.5, 3.0):
        sample = random.normal(0.1, spread, [_ELEMENTS if at else 2 for at in range(len(shape))])
        with np.errstate(all="ignore"):
            found, wanted = _evaluate(view, cone, sample), expected(sample)
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=digits, atol=digits):
            return False
    return True


def _evaluate(view: ModelView, cone: Cone, sample: Array) -> Array:
    values: dict[ir.Value, Array] = {cone.source: sample}
    for node in cone.nodes:
        read = [
            values[one] if one in values else np.asarray(view.constant(one), np.float64)
            for one in node.inputs
            if one is not None
        ]
        if node.op_type in _REDUCTIONS:
            made = _REDUCTIONS[node.op_type](read[0], axis=reduced_axes(view, node), keepdims=True)
        else:
            made = _POINTWISE[node.op_type](*read)
        values[node.outputs[0]] = made
    return values[cone.result]
