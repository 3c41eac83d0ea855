"""Adds channels of zeros to convolutions whose channels do not fill a whole vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.layout import UNARY
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor

_POOLS = frozenset(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
_SUMS = frozenset(["Add", "Sub", "Mul", "Max", "Min"])
_INFINITE = frozenset(["Log", "Reciprocal", "Sqrt", "Pow"])
_MOST_PADDED = 0.5
"""Channels are not added where they are more than this share of those that are there."""


@dataclass
class _Space:
    """Tensors that must have the same channels, and who makes and reads them."""

    makers: dict[ir.Node, None] = field(default_factory=dict)
    readers: dict[ir.Node, None] = field(default_factory=dict)
    inner: dict[ir.Node, None] = field(default_factory=dict)
    hindrance: ir.Node | None = None


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The groups of convolutions whose channels are misaligned."""
    seen: set[ir.Node] = set()
    for node in view.of("Conv"):
        if node in seen or not _plain(view, node):
            continue
        shape = view.fixed(node.inputs[1]) or ()
        width = shape[0]
        multiple = 8 if view.bytes_of(node.inputs[1]) == 2 else 4
        if width % multiple == 0:
            continue
        space = _space(view, node)
        seen |= set(space.makers)
        if not space.readers and space.hindrance is None:
            continue
        to = -(-width // multiple) * multiple
        names = view.names([*space.makers, *space.readers])
        if space.hindrance is not None:
            yield Refusal(
                "channels",
                names,
                f"{view.names([space.hindrance])[0]} ({space.hindrance.op_type}) needs the"
                f" {width} channels as they are",
            )
        elif to - width > _MOST_PADDED * width:
            yield Refusal("channels", names, f"{to} channels instead of {width} are too many more")
        else:
            yield _padded(view, space, width, to, names)


def _plain(view: ModelView, node: ir.Node) -> bool:
    return (
        attribute(node, "group", 1) == 1
        and view.is_constant(node.inputs[1])
        and view.fixed(node.inputs[1]) is not None
        and (len(node.inputs) < 3 or node.inputs[2] is None or view.is_constant(node.inputs[2]))
    )


def _space(view: ModelView, start: ir.Node) -> _Space:
    """All convolutions whose output channels are those of one, through what keeps channels."""
    found = _Space({start: None})
    frontier: list[ir.Value] = [start.outputs[0]]
    width = (view.fixed(start.inputs[1]) or (0,))[0]
    known: set[ir.Value] = set()
    while frontier:
        value = frontier.pop()
        if value in known:
            continue
        known.add(value)
        made = view.made_by(value)
        channels = (view.shape(value) or ())[1:2]
        if made is None or value.is_graph_output() or channels != (width,):
            found.hindrance = found.hindrance or made or start
            continue
        if made.op_type == "Conv" and _plain(view, made):
            found.makers[made] = None
        elif not _keeps(view, made):
            found.hindrance = found.hindrance or made
        else:
            found.inner[made] = None
            frontier += [
                one for one in made.inputs if one is not None and not view.is_constant(one)
            ]
        for use in value.uses():
            node = use.node
            if node.op_type == "Conv" and use.idx == 0 and _plain(view, node):
                found.readers[node] = None
            elif node in view.place and _keeps(view, node):
                frontier.append(node.outputs[0])
            else:
                found.hindrance = found.hindrance or node
    return found


def _keeps(view: ModelView, node: ir.Node) -> bool:
    """Whether a node computes each channel alone, and zeros to something finite."""
    if node.domain != "" or node.op_type in _INFINITE:
        return False
    if node.op_type in UNARY or node.op_type in _POOLS:
        return len(node.outputs) == 1
    return node.op_type in _SUMS and all(
        not view.is_constant(one) or view.scalar(one) is not None for one in node.inputs
    )


def _padded(view: ModelView, space: _Space, width: int, to: int, names: tuple[str, ...]) -> Edit:
    steps: list[Call] = []
    made: dict[ir.Node, str] = {}
    for node in (*space.makers, *space.readers):
        if node in made:
            continue
        shape = view.fixed(node.inputs[1]) or ()
        amounts = [[0, 0] for _ in shape]
        if node in space.makers:
            amounts[0][1] = to - width
        if node in space.readers:
            amounts[1][1] = to - width
        weight = made[node] = view.fresh(node.inputs[1], "padded")  # type: ignore[arg-type]
        array = call("np.pad", call("edit.array", tensor(node.inputs[1])), amounts)
        steps.append(call("edit.weight", weight, array))
        steps.append(call("edit.connect", tensor(node.outputs[0]), 1, weight))
        if node in space.makers and len(node.inputs) > 2 and node.inputs[2] is not None:
            bias = view.fresh(node.inputs[2], "padded")
            array = call("np.pad", call("edit.array", tensor(node.inputs[2])), [[0, to - width]])
            steps.append(call("edit.weight", bias, array))
            steps.append(call("edit.connect", tensor(node.outputs[0]), 2, bias))
        if node in space.makers:
            steps.append(call("edit.reshaped", tensor(node.outputs[0])))
    steps += [call("edit.reshaped", tensor(one.outputs[0])) for one in space.inner]
    return Edit(
        "channels",
        f"{to} channels instead of {width}, of which {to - width} are zeros",
        names,
        tuple(steps),
        "the weights that read the added channels are zeros",
        "align",
        beside=view.names([*space.inner]),
        growth=to / width,
    )
