"""Runs two models with onnxruntime and compares what they compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from nsysmap.core.errors import NsysmapError
from nsysmap.core.extras import need_extras
from nsysmap.core.records import dataclass
from nsysmap.edits.view import Array

TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-3, "float64": 1e-6}
"""How much results may differ, as a share of the largest value of the output: so many roundings of
its type as the layers of a deep network add up.
"""
_QUANTIZED = 5e-2
"""The tolerance where tensors are quantized on the way: a value that is rounded differently by a
bit falls on another step of 8 bits here and there.
"""
_RUNS = 2  # with random inputs
_UNKNOWN_SIZE = 4  # of a dynamic dimension in random inputs


@dataclass(frozen=True)
class Compared:
    """How much two models differ."""

    runs: int
    worst: float  # as a share of what is allowed
    output: str  # which one that is


def check_interface(before: ir.Model, after: ir.Model) -> str | None:
    """The differences between the models' inputs and outputs; None if they are the same."""
    for what, old, new in (
        ("inputs", before.graph.inputs, after.graph.inputs),
        ("outputs", before.graph.outputs, after.graph.outputs),
    ):
        if [_told(one) for one in old] != [_told(one) for one in new]:
            return what
    return None


def _told(value: ir.Value) -> tuple[str, str, str]:
    return str(value.name), str(value.dtype), str(value.shape)


def compare(
    before: Path,
    after: Path,
    given: Sequence[Mapping[str, Array]],
    shapes: Mapping[str, Sequence[int]],
) -> Compared:
    """How much two models differ on random inputs and on given ones.

    ``shapes`` are those of inputs whose model leaves dimensions open.  Raises NsysmapError if
    onnxruntime is not installed, or cannot run them.
    """
    need_extras(str(before), "onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    sessions: list[Any] = []
    for path in (before, after):
        try:
            sessions.append(
                onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            )
        except Exception as error:  # noqa: BLE001  onnxruntime has an exception of its own for each
            raise NsysmapError(
                path.name,
                f"onnxruntime cannot run it ({_first_line(error)})",
                "compare the results where the model runs",
            ) from None
    names = [one.name for one in sessions[0].get_outputs()]
    rows = [*given, *(_random(sessions[0], seed, shapes) for seed in range(_RUNS))]
    worst, which = 0.0, names[0]
    ops = {node.op_type for node in ir.load(before).graph}
    least = _QUANTIZED if "QuantizeLinear" in ops else 0.0
    for inputs in rows:
        try:
            old, new = (one.run(names, dict(inputs)) for one in sessions)
        except Exception as error:  # noqa: BLE001
            raise NsysmapError(
                before.name,
                f"onnxruntime cannot run it ({_first_line(error)})",
                "give inputs that it takes with --inputs",
            ) from None
        for name, one, other in zip(names, old, new, strict=True):
            apart = _apart(one, other, least)
            if not apart <= worst:
                worst, which = apart, name
    return Compared(len(rows), worst, which)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200]


def _random(session: Any, seed: int, shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    sizes: dict[str, int] = {}
    for one in session.get_inputs():
        shape = [
            size
            if isinstance(size, int) and size > 0
            else sizes.setdefault(str(size), _UNKNOWN_SIZE)
            for size in one.shape
        ]
        shape = [*shapes.get(one.name, shape)]
        kind = one.type.removeprefix("tensor(").removesuffix(")")
        if kind in ("float", "double", "float16"):
            values = random.normal(0, 1, shape)
            made[one.name] = values.astype(
                {"float": np.float32, "double": np.float64}.get(kind, np.float16)
            )
        elif kind == "bool":
            made[one.name] = np.ones(shape, bool)
        elif kind.startswith(("int", "uint")):
            made[one.name] = random.integers(0, 2, shape).astype(kind)
        else:
            raise NsysmapError(one.name, f"random values of {kind} are not known", "give --inputs")
    return made


def _apart(one: Any, other: Any, least: float) -> float:
    """The largest difference, as a share of what the type allows, ``least`` at least; infinite
    where one is no number and the other is.
    """
    if not isinstance(one, np.ndarray):
        return 0.0 if one == other else math.inf
    if one.shape != other.shape or one.dtype != other.dtype:
        return math.inf
    if one.dtype.kind in "iub":
        return 0.0 if np.array_equal(one, other) else math.inf
    share = max(least, TOLERANCE.get(one.dtype.name, 1e-3))
    left, right = one.astype(np.float64), other.astype(np.float64)
    if not np.array_equal(np.isnan(left), np.isnan(right)) or not np.array_equal(
        np.isinf(left), np.isinf(right)
    ):
        return math.inf
    known = np.isfinite(left)
    if not known.any():
        return 0.0
    largest = float(np.abs(left[known]).max())
    apart = float(np.abs(left[known] - right[known]).max())
    return apart / (share * largest) if largest else (0.0 if apart == 0 else math.inf)
