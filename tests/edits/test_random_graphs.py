"""Whatever edits find in random graphs, the results stay: pieces of networks are strung together
at random, every edit that is offered is made, and both models are run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.edits.graphs import Graph, edited

Shape = tuple[int, ...]
SEEDS = 60


@dataclass
class Net:
    """A graph under construction, with the shapes of its tensors."""

    random: np.random.Generator
    g: Graph
    shapes: dict[str, Shape] = field(default_factory=dict)

    def any(self, rank: int = 0) -> str | None:
        """One of the last tensors, of this rank if one is given."""
        found = [name for name in [*self.shapes][-6:] if not rank or len(self.shapes[name]) == rank]
        return str(self.random.choice(found)) if found else None

    def put(self, shape: Shape, op: str, *reads: str, **attributes: Any) -> str:
        made = str(self.g.node(op, *reads, **attributes))
        self.shapes[made] = shape
        return made

    def weight(self, *shape: int, mean: float = 0.0) -> str:
        return self.g.weight(f"w{len(self.g.weights)}", *shape, mean=mean)

    def number(self, most: int) -> int:
        return int(self.random.integers(0, most))

    def mean(self, x: str) -> str:
        shape = (*self.shapes[x][:-1], 1)
        if self.g.opset >= 18:
            return self.put(shape, "ReduceMean", x, self.g.ints(-1))
        return self.put(shape, "ReduceMean", x, axes=[-1])


def pointwise(net: Net, x: str) -> None:
    net.put(net.shapes[x], ["Relu", "Sigmoid", "Tanh", "Identity", "Neg"][net.number(5)], x)


def scaled(net: Net, x: str) -> None:
    op, value = [("Mul", 1.0), ("Add", 0.0), ("Div", 2.0), ("Sub", 0.5), ("Mul", 0.5)][
        net.number(5)
    ]
    net.put(net.shapes[x], op, x, net.g.value(value))


def channelwise(net: Net, x: str) -> None:
    shape = net.shapes[x]
    axis = net.number(len(shape))
    full = [1] * (len(shape) - axis)
    full[0] = shape[axis]
    net.put(shape, ["Mul", "Add", "Sub"][net.number(3)], x, net.weight(*full, mean=1.0))


def transposed(net: Net, x: str) -> None:
    shape = net.shapes[x]
    perm = [int(one) for one in net.random.permutation(len(shape))]
    made = net.put(tuple(shape[one] for one in perm), "Transpose", x, perm=perm)
    if net.number(2):
        made = net.put(net.shapes[made], "Sigmoid", made)
        net.put(shape, "Transpose", made, perm=[perm.index(one) for one in range(len(perm))])


def reshaped(net: Net, x: str) -> None:
    flat = net.put((int(np.prod(net.shapes[x])),), "Reshape", x, net.g.ints(-1))
    net.put(net.shapes[x], "Reshape", flat, net.g.ints(*net.shapes[x]))


def summed(net: Net, x: str) -> None:
    alike = [name for name, shape in net.shapes.items() if shape == net.shapes[x]]
    other = str(net.random.choice(alike))
    net.put(net.shapes[x], ["Add", "Mul", "Sub", "Max"][net.number(4)], x, other)


def multiplied(net: Net, x: str) -> None:
    shape = net.shapes[x]
    if len(shape) < 2:
        return
    for _ in range(1 + net.number(2)):
        out = (*shape[:-1], 2 + net.number(7))
        made = net.put(out, "MatMul", x, net.weight(shape[-1], out[-1]))
        if net.number(2):
            made = net.put(out, "Add", made, net.weight(out[-1]))
        if net.number(2):
            net.put(out, "Mul", made, net.weight(out[-1], mean=1.0))


def convolved(net: Net, x: str) -> None:
    shape = net.shapes[x]
    if len(shape) != 4:
        return
    for _ in range(1 + net.number(2)):
        out = (shape[0], 3 + net.number(12), *shape[2:])
        size = [1, 3][net.number(2)]
        reads = [x, net.weight(out[1], shape[1], size, size), net.weight(out[1])]
        made = net.put(out, "Conv", *reads[: 2 + net.number(2)], pads=[size // 2] * 4)
        if net.number(2):
            made = net.put(out, "Relu", made)
            last = (shape[0], 4, *shape[2:])
            net.put(last, "Conv", made, net.weight(4, out[1], 1, 1))


def rolled(net: Net, x: str) -> None:
    shape = net.shapes[x]
    axis = net.number(len(shape))
    if shape[axis] < 3:
        return
    by = 1 + net.number(shape[axis] - 1)
    parts = []
    for begin, end in ((by, shape[axis]), (0, by)):
        part = (*shape[:axis], end - begin, *shape[axis + 1 :])
        reads = [net.g.ints(one) for one in (begin, end, axis)]
        parts.append(net.put(part, "Slice", x, *reads))
    net.put(shape, "Concat", *(parts if net.number(2) else parts[::-1]), axis=axis)


def normed(net: Net, x: str) -> None:
    shape, narrow = net.shapes[x], (*net.shapes[x][:-1], 1)
    away = net.put(shape, "Sub", x, net.mean(x)) if net.number(2) else x
    mean = net.mean(net.put(shape, "Mul", away, away))
    root = net.put(narrow, "Sqrt", net.put(narrow, "Add", mean, net.g.value(0.01)))
    made = net.put(shape, "Div", away, root)
    net.put(shape, "Mul", made, net.weight(shape[-1], mean=1.0))


def gelu(net: Net, x: str) -> None:
    shape = net.shapes[x]
    inner = net.put(shape, "Erf", net.put(shape, "Div", x, net.g.value(2**0.5)))
    inner = net.put(shape, "Add", inner, net.g.value(1.0))
    net.put(shape, "Mul", net.put(shape, "Mul", x, inner), net.g.value(0.5))


def softmaxed(net: Net, x: str) -> None:
    shape = net.shapes[x]
    away = net.put(shape, "Exp", net.put(shape, "Tanh", x))
    total = net.put((*shape[:-1], 1), "ReduceSum", away, net.g.ints(-1))
    net.put(shape, "Div", away, total)


def cast(net: Net, x: str) -> None:
    own = {"float32": 1, "float16": 10}[net.g.dtype]
    wide = net.g.node("Cast", x, to=11 - own)
    if net.number(2):
        wide = net.g.node("Relu", wide)
    net.put(net.shapes[x], "Cast", wide, to=own)


def quantized(net: Net, x: str) -> None:
    held = (net.g.value([0.05, 0.04][net.number(2)]), net.g.value(0, "int8"))
    for _ in range(1 + net.number(2)):
        x = net.put(
            net.shapes[x], "DequantizeLinear", net.g.node("QuantizeLinear", x, *held), *held
        )


PIECES: tuple[Callable[[Net, str], None], ...] = (
    pointwise, scaled, channelwise, transposed, reshaped, summed, multiplied, convolved, rolled,
    normed, gelu, softmaxed, cast, quantized,
)  # fmt: skip


def network(seed: int) -> Graph:
    random = np.random.default_rng(seed)
    g = Graph(opset=[13, 17, 18][seed % 3], dtype="float32")
    net = Net(random, g)
    shape = (1, 6, 4, 4) if seed % 2 else (2, 5, 8)
    net.shapes[g.given("x", *shape)] = shape
    for _ in range(int(random.integers(3, 9))):
        x = net.any()
        assert x is not None
        PIECES[net.number(len(PIECES))](net, x)
    for name in [*net.shapes][1:][-2:]:
        g.ends(name, *net.shapes[name])
    return g


@pytest.mark.parametrize("seed", range(SEEDS))
def test_results_stay_whatever_is_edited(tmp_path: Path, seed: int) -> None:
    made = edited(tmp_path, network(seed))
    assert made.worst < 1
