"""GELU written out with Erf or Tanh, and SiLU, as the operator or the form that fuses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsysmap.edits.cone import Cone, computes, cones
from nsysmap.edits.model import Edit, Refusal, call
from nsysmap.edits.view import Array, ModelView, tensor

GELU_OPSET = 20  # the first of ONNX with the operator Gelu
_STEPS = 5  # nodes from the product to the input that it is of


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The GELUs of a model that are written out."""
    for anchor in view.of("Erf", "Tanh"):
        value = anchor.outputs[0]
        for _ in range(_STEPS):
            node = view.reader(value)
            if node is None or node.op_type not in ("Add", "Mul", "Div", "Cast"):
                break
            value = node.outputs[0]
            found = next((one for cone in cones(view, value) if (one := _gelu(view, cone))), None)
            if found is not None:
                yield found
                break


def _gelu(view: ModelView, cone: Cone) -> Edit | None:
    form = next(
        (
            name
            for name, function in (("none", _by_erf), ("tanh", _by_tanh))
            if {"none": "Erf", "tanh": "Tanh"}[name] in cone.ops and computes(view, cone, function)
        ),
        None,
    )
    if form is None or cone.source.dtype != cone.result.dtype:
        return None
    made = view.fresh(cone.result, "Gelu")
    return Edit(
        "gelu",
        f"one Gelu instead of {len(cone.nodes)} nodes",
        view.names(cone.nodes),
        (
            call("edit.add", "Gelu", [tensor(cone.source)], [made], approximate=form),
            call("edit.replace", tensor(cone.result), made),
        ),
        f"the nodes compute GELU {'by Erf' if form == 'none' else 'by its Tanh approximation'}",
        "join",
        opset=GELU_OPSET,
    )


def _by_erf(x: Array) -> Array:
    from math import erf

    return np.asarray(x * 0.5 * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2.0))))


def _by_tanh(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
