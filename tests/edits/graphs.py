"""Tiny ONNX graphs for the tests of edits, made line by line, and what edits make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ir = pytest.importorskip("onnx_ir")
pytest.importorskip("onnxruntime")

from nsysmap.edits.check import compare  # noqa: E402
from nsysmap.edits.model import Edit  # noqa: E402
from nsysmap.edits.registry import KINDS  # noqa: E402
from nsysmap.edits.search import EditPlan, plan  # noqa: E402

FLOATS = {"float32": 1, "float16": 10, "int64": 7, "bool": 9, "bfloat16": 16}


@dataclass
class Graph:
    """A model under construction; tensors are called by the node that makes them."""

    opset: int = 17
    dtype: str = "float32"
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def given(self, name: str, *shape: int | str, dtype: str = "") -> str:
        kind = FLOATS[dtype or self.dtype]
        self.inputs.append(onnx.helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def weight(self, name: str, *shape: int, mean: float = 0.0, dtype: str = "") -> str:
        random = np.random.default_rng(len(self.weights))
        made = random.normal(mean, 0.3, shape).astype(dtype or self.dtype)
        self.weights[name] = made
        return name

    def value(self, value: Any, dtype: str = "") -> str:
        name = f"value_{len(self.weights)}"
        self.weights[name] = np.array(value).astype(dtype or self.dtype)
        return name

    def ints(self, *values: int) -> str:
        return self.value(list(values), "int64")

    def node(self, op: str, *reads: str, name: str = "", parts: int = 1, **attributes: Any) -> Any:
        name = name or f"/{op}_{len(self.nodes)}"
        made = [f"{name}_output_{at}" for at in range(parts)]
        self.nodes.append(onnx.helper.make_node(op, list(reads), made, name=name, **attributes))
        return made[0] if parts == 1 else made

    def ends(self, tensor: str, *shape: int | str, dtype: str = "") -> Graph:
        kind = FLOATS[dtype or self.dtype]
        self.outputs.append(onnx.helper.make_tensor_value_info(tensor, kind, list(shape)))
        return self

    def model(self) -> Any:
        held = [onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = onnx.helper.make_graph(self.nodes, "g", self.inputs, self.outputs, held)
        opsets = [onnx.helper.make_opsetid("", self.opset)]
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 9
        return model


@dataclass(frozen=True)
class Edited:
    """What edits made of a graph, and how many times what its type allows the results differ."""

    plan: EditPlan
    ops: list[str]  # operators that are left, in order
    worst: float

    @property
    def kinds(self) -> list[str]:
        return [edit.kind for edit in self.plan.made]

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.plan.refused]


def edited(folder: Path, graph: Graph, *kinds: str) -> Edited:
    """The graph as these kinds of edits leave it, run beside what it was."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(graph.model(), before)
    model = ir.load(before)
    chosen = [kind for kind in KINDS if not kinds or kind.name in kinds]
    found = plan(model, _all, chosen)
    ir.save(model, after)
    onnx.checker.check_model(onnx.load(after), full_check=True)
    compared = compare(before, after, [], {})
    return Edited(found, [node.op_type for node in model.graph], compared.worst)


def _all(_edit: Edit) -> None:
    """Wants every edit."""


def ops(made: Edited, *names: str) -> Sequence[int]:
    """How many nodes of each of these operators are left."""
    return [made.ops.count(name) for name in names]
