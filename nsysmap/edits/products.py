"""Products and convolutions of the same tensor, as one: queries, keys and values; gate and up."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from nsysmap.core.records import dataclass
from nsysmap.edits.model import Call, Edit, Refusal, call
from nsysmap.edits.view import ModelView, attribute, tensor


@dataclass(frozen=True)
class _Product:
    node: ir.Node
    bias: ir.Value | None  # added to it, one value an output channel
    end: ir.Node  # the node that adds it, or the product
    width: int  # output channels


def find(view: ModelView) -> Iterator[Edit | Refusal]:
    """The groups of products of one tensor."""
    groups: dict[tuple[object, ...], list[_Product]] = {}
    for node in view.of("MatMul", "Gemm", "Conv"):
        if len(node.inputs) < 2 or node.inputs[0] is None or view.is_constant(node.inputs[0]):
            continue
        shape = view.fixed(node.inputs[1]) if view.is_constant(node.inputs[1]) else None
        if shape is None or (node.op_type != "Conv" and len(shape) != 2):
            continue
        alike: tuple[object, ...]
        if node.op_type == "Conv":
            if attribute(node, "group", 1) != 1:
                continue
            padding = tuple(
                attribute(node, name, None) for name in ("pads", "strides", "dilations", "auto_pad")
            )
            alike = (*padding, shape[1:])
        elif node.op_type == "Gemm":
            if attribute(node, "transA", 0) or attribute(node, "alpha", 1.0) != 1.0:
                continue
            if attribute(node, "beta", 1.0) != 1.0:
                continue
            alike = (attribute(node, "transB", 0),)
        else:
            alike = ()
        made = _with_bias(view, node, shape)
        groups.setdefault((node.inputs[0], node.op_type, *alike, made.bias is None), []).append(
            made
        )
    for group in groups.values():
        if len(group) > 1:
            yield _merged(view, group)


def _with_bias(view: ModelView, node: ir.Node, shape: tuple[int, ...]) -> _Product:
    width = shape[0] if node.op_type == "Conv" or attribute(node, "transB", 0) else shape[-1]
    if node.op_type != "MatMul":
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        return _Product(node, bias, node, width)
    after = view.reader(node.outputs[0])
    if after is not None and after.op_type == "Add" and after.domain == "":
        (other,) = [one for one in after.inputs if one is not node.outputs[0]] or [None]
        if view.is_constant(other) and view.fixed(other) == (width,):
            return _Product(node, other, after, width)
    return _Product(node, None, node, width)


def _merged(view: ModelView, group: list[_Product]) -> Edit | Refusal:
    first = group[0].node
    nodes = [one for each in group for one in dict.fromkeys((each.node, each.end))]
    names = view.names(nodes)
    types = {one.node.inputs[1].dtype for one in group if one.node.inputs[1] is not None}
    biases = [one.bias for one in group if one.bias is not None]
    if len(types) > 1:
        return Refusal("products", names, "their weights have different types")
    if any(
        not view.is_constant(one) or view.fixed(one) != (each.width,)
        for each in group
        if (one := each.bias) is not None
    ):
        return Refusal("products", names, "a bias is not one constant for each output channel")
    conv = first.op_type == "Conv"
    axis = 0 if conv or attribute(first, "transB", 0) else 1
    rank = len(view.shape(first.outputs[0]) or ()) or None
    if rank is None:
        return Refusal("products", names, "the rank of their results is unknown")
    near = first.outputs[0]
    weight, made = view.fresh(near, "merged_weight"), view.fresh(near, "merged")
    weights = [call("edit.array", tensor(one.node.inputs[1])) for one in group]
    steps: list[Call] = [call("edit.weight", weight, call("np.concatenate", weights, axis=axis))]
    reads = [tensor(first.inputs[0]), weight]
    summed = made
    if biases:
        bias = view.fresh(near, "merged_bias")
        arrays = [call("edit.array", tensor(one)) for one in biases]
        steps.append(call("edit.weight", bias, call("np.concatenate", arrays, axis=0)))
        if first.op_type == "MatMul":
            summed = view.fresh(near, "merged_sum")
        else:
            reads.append(bias)
    options = {name: attribute(first, name, None) for name in first.attributes if name != "name"}
    steps.append(call("edit.add", first.op_type, reads, [made], **_plain(options)))
    if summed != made:
        steps.append(call("edit.add", "Add", [made, bias], [summed]))
    sizes = view.fresh(near, "merged_sizes")
    parts = [view.fresh(one.end.outputs[0], "part") for one in group]
    steps.append(
        call("edit.weight", sizes, call("np.array", [one.width for one in group], "int64"))
    )
    steps.append(call("edit.add", "Split", [summed, sizes], parts, axis=1 if conv else rank - 1))
    steps += [
        call("edit.replace", tensor(one.end.outputs[0]), part)
        for one, part in zip(group, parts, strict=True)
    ]
    what = "convolution" if conv else "product"
    return Edit(
        "products",
        f"one {what} of {sum(one.width for one in group)} channels instead of {len(group)} of the"
        f" same tensor",
        names,
        tuple(steps),
        "each output channel is computed from the same inputs and weights as before",
        "merge",
    )


def _plain(options: dict[str, object]) -> dict[str, object]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value is not None
    }
