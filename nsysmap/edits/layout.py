"""Transposes that cancel, with what stands between them computed in the other layout; reshapes that
cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor

UNARY = frozenset(
    [
        "Relu",
        "LeakyRelu",
        "Sigmoid",
        "Tanh",
        "Erf",
        "Exp",
        "Log",
        "Sqrt",
        "Neg",
        "Abs",
        "Cast",
        "Clip",
        "Elu",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "Softplus",
        "Reciprocal",
        "Mish",
        "Selu",
        "Identity",
        "Floor",
        "Ceil",
        "Round",
        "Sin",
        "Cos",
    ]
)
"""Operators of one tensor (and scalars) that compute each element alone."""
BINARY = frozenset(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Where", "PRelu"])
"""Operators that compute each element of tensors that broadcast alone."""
_OF_AXIS = frozenset(["Softmax", "LogSoftmax", "Concat"])
_REDUCTIONS = frozenset(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"])
_SHAPED = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
_MOST_NODES = 64  # between two transposes: a longer way is no local edit


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The transposes and reshapes of a model that cancel."""
    seen: set[ir.Node] = set()
    for node in view.of("Transpose"):
        if node in seen:
            continue
        found = _pair(view, node) or _region(view, node)
        if isinstance(found, _Between):
            seen |= {*found.opening, *found.closing}
            yield _rewritten(view, found)
        elif found is not None:
            yield found
    for node in view.of(*_SHAPED):
        found = _reshaped(view, node)
        if found is not None:
            yield found


def _perm(view: ModelView, node: ir.Node) -> tuple[int, ...] | None:
    shape = view.shape(node.inputs[0])
    held: tuple[int, ...] | None = attribute(node, "perm", None)
    if shape is None or held is not None:
        return held
    return tuple(reversed(range(len(shape))))


def _pair(view: ModelView, node: ir.Node) -> Edit | None:
    """Two transposes in a row, as one or none."""
    before = view.made_by(node.inputs[0], "Transpose")
    if before is None:
        return None
    first, second = _perm(view, before), _perm(view, node)
    if first is None or second is None or len(first) != len(second):
        return None
    both = tuple(first[one] for one in second)
    result, source = node.outputs[0], before.inputs[0]
    straight = both == tuple(range(len(both)))
    if straight:
        steps: tuple[Call, ...] = (call("edit.replace", tensor(result), tensor(source)),)
        does = "no transposes, the second undoes the first"
    elif view.reader(before.outputs[0]) is node:
        made = view.fresh(result, "transposed")
        steps = (
            call("edit.add", "Transpose", [tensor(source)], [made], perm=list(both)),
            call("edit.replace", tensor(result), made),
        )
        does = "one transpose instead of two"
    else:
        return None
    nodes = [before, node] if view.reader(before.outputs[0]) is node else [node]
    return Edit(
        "layout",
        does,
        view.names(nodes),
        steps,
        f"the orders of axes {list(first)} and {list(second)} together are {list(both)}",
        "vanish" if straight else "join",
        unblocks=straight,
    )


@dataclass
class _Between:
    """The nodes between transposes to one order of axes and those back."""

    perm: tuple[int, ...]
    opening: dict[ir.Node, None] = field(default_factory=dict)
    inner: dict[ir.Node, None] = field(default_factory=dict)
    closing: dict[ir.Node, None] = field(default_factory=dict)


def _region(view: ModelView, start: ir.Node) -> _Between | Refusal | None:
    perm = _perm(view, start)
    if perm is None or perm == tuple(range(len(perm))):
        return None
    back = tuple(sorted(range(len(perm)), key=lambda axis: perm[axis]))
    found = _Between(perm, {start: None})
    frontier = [start.outputs[0]]
    hindrance: ir.Node | None = None
    while frontier:
        value = frontier.pop()
        if value.is_graph_output():
            return None
        for use in value.uses():
            node = use.node
            if node in found.inner or node in found.closing:
                continue
            if node not in view.place or len(found.inner) > _MOST_NODES:
                return None
            if node.op_type == "Transpose" and _perm(view, node) == back:
                found.closing[node] = None
            elif _agnostic(view, node, found, len(perm)):
                found.inner[node] = None
                frontier += [one for one in node.outputs if one.uses() or one.is_graph_output()]
            else:
                hindrance = node
    if not found.closing or (hindrance is None and not found.inner):
        return None
    if hindrance is not None:
        return Refusal(
            "layout",
            view.names([*found.opening, *found.closing]),
            f"{view.names([hindrance])[0]} ({hindrance.op_type}) reads the other layout",
        )
    held = {*found.opening, *found.inner}
    for node in found.inner:
        for read in node.inputs:
            if read is None or view.is_constant(read) or read.producer() in held:
                continue
            other = view.made_by(read, "Transpose")
            if other is None or _perm(view, other) != perm:
                return Refusal(
                    "layout",
                    view.names([*found.opening, *found.closing]),
                    f"{view.names([node])[0]} ({node.op_type}) also reads a tensor that has no"
                    " such transpose",
                )
            found.opening[other] = None
    return found


def _agnostic(view: ModelView, node: ir.Node, region: _Between, rank: int) -> bool:
    """Whether a node computes the same in any layout, once its axes and constants are moved."""
    if node.domain != "" or any(one in region.closing for one in (node,)):
        return False
    if node.op_type in UNARY:
        return True
    if len(view.shape(node.outputs[0]) or ()) != rank:
        return False
    if node.op_type in BINARY:
        return all(
            not view.is_constant(one) or len(view.fixed(one) or ()) <= rank for one in node.inputs
        )
    if node.op_type in _OF_AXIS:
        return not any(view.is_constant(one) for one in node.inputs)
    return (
        node.op_type in _REDUCTIONS
        and bool(attribute(node, "keepdims", 1))
        and _reduced(view, node) is not None
        and view.opset >= 13
    )


def _reduced(view: ModelView, node: ir.Node) -> tuple[int, ...] | None:
    if len(node.inputs) > 1:
        return view.integers(node.inputs[1])
    held: tuple[int, ...] | None = attribute(node, "axes", None)
    return held


def _rewritten(view: ModelView, region: _Between) -> Edit:
    perm, rank = region.perm, len(region.perm)
    back = sorted(range(rank), key=lambda axis: perm[axis])
    steps: list[Call] = []
    moved: dict[str, str] = {}
    for node in sorted(region.inner, key=lambda one: view.place[one]):
        name = tensor(node.outputs[0])
        for at, value in enumerate(node.inputs):
            opened = None if value is None else view.made_by(value, "Transpose")
            if opened is not None and opened in region.opening:
                steps.append(call("edit.connect", name, at, tensor(opened.inputs[0])))
            elif node.op_type in BINARY and view.is_constant(value):
                shape = view.fixed(value) or ()
                if len(shape) == 0 or set(shape) == {1}:
                    continue
                if tensor(value) not in moved:
                    moved[tensor(value)] = view.fresh(value, "moved")  # type: ignore[arg-type]
                    full = [1] * (rank - len(shape)) + list(shape)
                    array = call("np.reshape", call("edit.array", tensor(value)), full)
                    steps.append(
                        call(
                            "edit.weight",
                            moved[tensor(value)],
                            call("np.ascontiguousarray", call("np.transpose", array, back)),
                        )
                    )
                steps.append(call("edit.connect", name, at, moved[tensor(value)]))
        if node.op_type in _OF_AXIS:
            axis = attribute(node, "axis", -1)
            steps.append(call("edit.change", name, axis=perm[axis % rank]))
        elif node.op_type in _REDUCTIONS:
            axes = [perm[axis % rank] for axis in _reduced(view, node) or ()]
            if len(node.inputs) > 1:
                fresh = view.fresh(node.outputs[0], "axes")
                steps.append(call("edit.weight", fresh, call("np.array", axes, "int64")))
                steps.append(call("edit.connect", name, 1, fresh))
            else:
                steps.append(call("edit.change", name, axes=axes))
        steps += [call("edit.reshaped", tensor(one)) for one in node.outputs]
    for node in region.closing:
        opened = view.made_by(node.inputs[0], "Transpose")
        source = opened.inputs[0] if opened in region.opening and opened else node.inputs[0]
        steps.append(call("edit.replace", tensor(node.outputs[0]), tensor(source)))
    nodes = [
        *(one for one in region.opening if _read_by(one, region)),
        *region.closing,
    ]
    inner = [one for one in region.inner if one.op_type != "Constant"]
    return Edit(
        "layout",
        f"{len(inner)} nodes in the layout of their neighbours, without {len(nodes)} transposes"
        if inner
        else f"no transposes: {len(region.closing)} undo another",
        view.names(nodes),
        tuple(steps),
        "every node between computes each element alone or along an axis that is moved with it",
        "vanish",
        beside=view.names(inner),
        unblocks=True,
    )


def _read_by(opening: ir.Node, region: _Between) -> bool:
    return all(
        use.node in region.inner or use.node in region.closing for use in opening.outputs[0].uses()
    )


def _reshaped(view: ModelView, node: ir.Node) -> Edit | None:
    """A reshape of a reshape: the shape before both, or one reshape."""
    before = view.made_by(node.inputs[0], *_SHAPED)
    if before is None or view.reader(before.outputs[0]) is not node:
        return None
    source, result = before.inputs[0], node.outputs[0]
    shape = view.fixed(result)
    if shape is None or source is None:
        return None
    chain: Sequence[ir.Node] = (before, node)
    gone = view.fixed(source) == shape
    if gone:
        steps: tuple[Call, ...] = (call("edit.replace", tensor(result), tensor(source)),)
        does = "no reshapes, the second undoes the first"
    else:
        sizes, made = view.fresh(result, "shape"), view.fresh(result, "reshaped")
        steps = (
            call("edit.weight", sizes, call("np.array", list(shape), "int64")),
            call("edit.add", "Reshape", [tensor(source), sizes], [made]),
            call("edit.replace", tensor(result), made),
        )
        does = "one reshape instead of two"
    return Edit(
        "layout",
        does,
        view.names(chain),
        steps,
        "a reshape keeps the order of the elements, so the last one decides",
        "vanish" if gone else "join",
        unblocks=gone,
    )
