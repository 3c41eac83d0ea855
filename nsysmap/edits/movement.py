"""Slices, splits and concatenations that only move data, and copies that a broadcast makes
unnecessary.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.layout import BINARY
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor


@dataclass(frozen=True)
class _Piece:
    """A stretch of a tensor along an axis."""

    source: ir.Value
    axis: int
    begin: int
    end: int


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The slices and concatenations of a model that move data for nothing."""
    for node in view.of("Concat"):
        yield from _joined(view, node)
    for node in view.of("Slice"):
        yield from _cut(view, node)
    for node in view.of("Expand", "Tile"):
        yield from _copied(view, node)


def _piece(view: ModelView, value: ir.Value) -> tuple[_Piece, list[ir.Node]]:
    """The part of another tensor that a tensor is, through slices, splits and concatenations along
    one axis; the whole of itself where it is computed.
    """
    shape = view.fixed(value)
    node = view.made_by(value, "Slice", "Split")
    whole = _Piece(value, -1, 0, 0)
    if shape is None or node is None:
        return whole, []
    step = _stretch(view, node, value)
    if step is None:
        return whole, []
    nodes = [node]
    while True:  # what it is a stretch of may be joined, or cut itself
        made = view.made_by(step.source)
        if made is None:
            return step, nodes
        if made.op_type == "Concat" and _axis(view, made) == step.axis:
            at = 0
            for part in made.inputs:
                size = (view.fixed(part) or ())[step.axis : step.axis + 1]
                if part is None or not size:
                    return step, nodes
                if at <= step.begin and step.end <= at + size[0]:
                    step = _Piece(part, step.axis, step.begin - at, step.end - at)
                    break
                at += size[0]
            else:
                return step, nodes
            nodes.append(made)
            continue
        if made.op_type in ("Slice", "Split"):
            inner = _stretch(view, made, step.source)
            if inner is not None and inner.axis == step.axis:
                step = _Piece(
                    inner.source, inner.axis, inner.begin + step.begin, inner.begin + step.end
                )
                nodes.append(made)
                continue
        return step, nodes


def _axis(view: ModelView, node: ir.Node) -> int | None:
    shape = view.shape(node.outputs[0])
    axis = attribute(node, "axis", None)
    return None if shape is None or axis is None else int(axis) % len(shape)


def _stretch(view: ModelView, node: ir.Node, value: ir.Value) -> _Piece | None:
    """The range that a slice, or one part of a split, takes, if it is along one axis and
    forwards.
    """
    source = node.inputs[0]
    shape = view.fixed(source)
    if source is None or shape is None:
        return None
    if node.op_type == "Split":
        axis = int(attribute(node, "axis", 0)) % len(shape)
        at = 0
        for part in node.outputs:
            size = (view.fixed(part) or ())[axis : axis + 1]
            if not size:
                return None
            if part is value:
                return _Piece(source, axis, at, at + size[0])
            at += size[0]
        return None
    starts, ends = (view.integers(one) for one in node.inputs[1:3])
    axes = view.integers(node.inputs[3]) if len(node.inputs) > 3 else (0,)
    steps = view.integers(node.inputs[4]) if len(node.inputs) > 4 else (1,)
    if starts is None or ends is None or axes is None or steps != (1,):
        return None
    if not len(starts) == len(ends) == len(axes) == 1:
        return None
    axis = axes[0] % len(shape)
    whole = shape[axis]
    begin, end = (
        max(0, min(whole, one + whole if one < 0 else one)) for one in (starts[0], ends[0])
    )
    return _Piece(source, axis, begin, end) if end > begin else None


def _joined(view: ModelView, node: ir.Node) -> Iterator[Edit | Refusal]:
    """A concatenation whose parts are stretches of one tensor in order, or contain others."""
    axis = _axis(view, node)
    if axis is None or len(node.inputs) < 2:
        return
    pieces: list[_Piece] = []
    nodes: dict[ir.Node, None] = {}
    for value in node.inputs:
        if value is None:
            return
        piece, through = _piece(view, value)
        nodes.update(dict.fromkeys(through))
        if piece.axis not in (axis, -1):
            piece = _Piece(value, -1, 0, 0)
        size = (view.fixed(value) or ())[axis : axis + 1]
        if not size:
            return
        if piece.axis == -1:
            piece = _Piece(value, axis, 0, size[0])
        if pieces and pieces[-1].source is piece.source and pieces[-1].end == piece.begin:
            pieces[-1] = _Piece(piece.source, axis, pieces[-1].begin, piece.end)
        else:
            pieces.append(piece)
    result = node.outputs[0]
    if len(pieces) != 1:
        return
    piece = pieces[0]
    size = (view.fixed(piece.source) or ())[axis : axis + 1]
    if not size or piece.source in node.inputs:
        return
    yield _moved(view, [*nodes, node], result, piece, size[0])


def _cut(view: ModelView, node: ir.Node) -> Iterator[Edit | Refusal]:
    """A slice of a slice, a split or a concatenation, as a slice of what those read."""
    result = node.outputs[0]
    piece, nodes = _piece(view, result)
    if len(nodes) < 2:
        return
    size = (view.fixed(piece.source) or ())[piece.axis : piece.axis + 1]
    if size:
        yield _moved(view, nodes, result, piece, size[0])


def _moved(
    view: ModelView, nodes: list[ir.Node], result: ir.Value, piece: _Piece, size: int
) -> Edit | Refusal:
    last = result.producer()
    gone = [
        one
        for one in nodes
        if one is last
        or (
            all(use.node in nodes for made in one.outputs for use in made.uses())
            and not any(made.is_graph_output() for made in one.outputs)
        )
    ]
    steps: list[Call] = []
    if (piece.begin, piece.end) == (0, size):
        does = f"the tensor itself instead of {len(gone)} nodes that cut and join it again"
        steps.append(call("edit.replace", tensor(result), tensor(piece.source)))
    else:
        does = "one slice of the tensor itself"
        made = view.fresh(result, "slice")
        names = [view.fresh(result, one) for one in ("begin", "end", "axis")]
        for name, value in zip(names, (piece.begin, piece.end, piece.axis), strict=True):
            steps.append(call("edit.weight", name, call("np.array", [value], "int64")))
        steps.append(call("edit.add", "Slice", [tensor(piece.source), *names], [made]))
        steps.append(call("edit.replace", tensor(result), made))
    return Edit(
        "movement",
        does,
        view.names(gone),
        tuple(steps),
        f"the result is elements {piece.begin} to {piece.end - 1} of axis {piece.axis} of"
        f" {tensor(piece.source)}, in order",
        "vanish",
        unblocks=True,
        parted=view.names(_joined_by(view, nodes)),
    )


def _joined_by(view: ModelView, nodes: list[ir.Node]) -> list[ir.Node]:
    """The nodes that make what the concatenations among these join."""
    made = (
        view.made_by(value) for node in nodes if node.op_type == "Concat" for value in node.inputs
    )
    return [one for one in dict.fromkeys(made) if one is not None and one not in nodes]


def _copied(view: ModelView, node: ir.Node) -> Iterator[Edit | Refusal]:
    """An Expand whose reader would broadcast by itself."""
    source, result = node.inputs[0], node.outputs[0]
    shape, full = view.fixed(source), view.fixed(result)
    reader = view.reader(result)
    if source is None or shape is None or full is None or reader is None:
        return
    if shape == full or any(
        one not in (1, whole) for one, whole in zip(reversed(shape), reversed(full), strict=False)
    ):
        return
    others = [one for one in reader.inputs if one is not result]
    if reader.op_type not in BINARY or reader.domain != "" or reader.op_type == "PRelu":
        return
    if not any(
        (other := view.fixed(one)) is not None
        and len(other) >= len(full)
        and other[len(other) - len(full) :] == full
        for one in others
    ):
        return
    at = [*reader.inputs].index(result)
    yield Edit(
        "movement",
        f"no {node.op_type}: {reader.op_type} broadcasts by itself",
        view.names([node]),
        (call("edit.connect", tensor(reader.outputs[0]), at, tensor(source)),),
        "the other operand has the full shape, so the result keeps it",
        "vanish",
        beside=view.names([reader]),
    )
