"""How much work a layer has to do: multiply-adds, operations and bytes, computed from dimensions,
types and parameters.

Figures are what the layer's definition needs.  A Winograd or sparse kernel multiplies less, padding
inside a kernel more; a tensor that stays in the L2 cache never reaches memory.  One multiply-add
(MAC) is two operations (FLOPs; on integers too).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from nsysmap.core.engine_schema import WORK
from nsysmap.core.records import dataclass, kept
from nsysmap.core.table import Table
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.tensor_formats import (
    TYPE_BITS,
    channel_multiple,
    data_type,
    elements,
    total_bytes,
)
from nsysmap.names.decode import decode
from nsysmap.names.fusion import NORM_PATTERNS
from nsysmap.names.layers import layer_ops, node_row
from nsysmap.network.operations import Operations, operations, quantizes

_NO_WORK = {"shape", "signal", "noop", "constant", "loop"}
_MOVES = {"reformat", "shuffle", "slice", "concat", "gather", "scatter", "cast", "quantize"}
_PER_ELEMENT = {
    "softmax": 5,
    "normalization": 8,
    "pointwise": 1,
    "activation": 1,
    "scale": 2,
    "reduce": 1,
    "resize": 7,
}
"""Operations per element: a softmax's are maximum, subtract, exponentiate, add, divide; a norm's
subtract, square, add, add, divide, scale, shift and the mean's add; a resize is taken as
bilinear.
"""

Shape = tuple[int, ...]
# attention works on as many tokens as each request has, which no engine file shows
_TOLD_BY_PLUGIN = {
    "gemm",
    "normalization",
}
_LARGEST = 2**58  # operations or weights, far from what 64 bits hold


@dataclass(frozen=True)
class LayerWork:
    """What one execution of a layer needs at least; None if the file does not show it."""

    macs: int | None = None
    flops: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    weight_bytes: int | None = None
    reason: str | None = None  # why a figure is missing, or what it assumes
    channels_in: int | None = None  # of a product: C, or the extent that is summed over
    channels_out: int | None = None
    groups: int | None = None

    @property
    def bytes_moved(self) -> int | None:
        """Everything read and written once, weights included where they are known."""
        if self.bytes_in is None or self.bytes_out is None:
            return None
        return self.bytes_in + self.bytes_out + (self.weight_bytes or 0)


@dataclass(frozen=True)
class _Count:
    macs: int | None = None
    flops: int | None = None
    weight_elements: int | None = None
    reason: str | None = None
    channels: tuple[int, int] | None = None  # in, out
    groups: int | None = None


def layer_work(layer: Layer, written: Mapping[str, Shape] | None = None) -> LayerWork:
    """The work of one layer; `written` has the shapes in which its inputs were written, where those
    differ from how it reads them.
    """
    if layer.kind in _NO_WORK:
        return LayerWork(0, 0, 0, 0, 0)
    if not layer.inputs and not layer.outputs:
        return LayerWork(reason="the engine file has no tensors")
    if layer.kind == "foreign_node":
        return LayerWork(
            None,
            None,
            _total(layer.inputs),
            _total(layer.outputs),
            None,
            "an opaque region: the file does not show its inside",
        )
    count = _count(layer, written or {})
    if max(count.flops or 0, count.weight_elements or 0) > _LARGEST:
        count = _Count(reason="the dimensions are impossibly large")
    weights = _listed_weights(layer)
    if weights is None and count.weight_elements is not None:
        bits = TYPE_BITS.get(layer.precision or "")
        weights = None if bits is None else (count.weight_elements * bits + 7) // 8
    moved_in, moved_out = _total(layer.inputs), _total(layer.outputs)
    if _gathers(layer) and moved_out is not None:  # of a table, the rows that it looks up
        moved_in = _looked_up(layer.inputs, layer.outputs)
        weights = _looked_up(layer.constants, layer.outputs) if layer.constants else weights
    reason = count.reason
    if reason is None and (moved_in is None or moved_out is None):
        reason = "a dimension or type is not in the file"
    channels_in, channels_out = count.channels or (None, None)
    return LayerWork(
        count.macs,
        count.flops,
        moved_in,
        moved_out,
        weights,
        reason,
        channels_in,
        channels_out,
        count.groups,
    )


def work_table(engines: Sequence[Engine]) -> Table:
    """The table `work`, one row per layer, in the order of `layers`."""
    layers = [layer for engine in engines for layer in engine.layers]
    works = [work for engine in engines for _, work in engine_work(engine)]
    return Table.of_lists(
        WORK,
        {
            "layer_id": list(range(len(layers))),
            "macs": [work.macs for work in works],
            "flops": [work.flops for work in works],
            "bytes_in": [work.bytes_in for work in works],
            "bytes_out": [work.bytes_out for work in works],
            "weight_bytes": [work.weight_bytes for work in works],
            "bytes": [work.bytes_moved for work in works],
            "precision": [layer.precision for layer in layers],
            "tensor_cores": [tensor_cores(layer) for layer in layers],
            "does": [does(layer) for layer in layers],
            "channels_in": [work.channels_in for work in works],
            "channels_out": [work.channels_out for work in works],
            "in_multiple": [_multiple(layer.inputs) for layer in layers],
            "out_multiple": [_multiple(layer.outputs) for layer in layers],
            "groups": [work.groups for work in works],
            "reason": [work.reason for work in works],
        },
    )


def _multiple(tensors: Sequence[Tensor]) -> int | None:
    return channel_multiple(tensors[0].format) if tensors else None


def engine_work(engine: Engine) -> Iterator[tuple[Layer, LayerWork]]:
    """Every layer with its work, in the file's order."""
    written: dict[tuple[int | None, str], Shape] = {}
    for layer in engine.layers:
        shapes = {
            tensor.name: written[layer.optimization_profile, tensor.name]
            for tensor in layer.inputs
            if (layer.optimization_profile, tensor.name) in written
        }
        yield layer, layer_work(layer, shapes)
        for tensor in layer.outputs:
            shape = _shape(tensor)
            if shape is not None:
                written[layer.optimization_profile, tensor.name] = shape


def tensor_cores(layer: Layer) -> str:
    """yes, no or unknown, from an exact decode of the tactic; no for layers that do no matrix
    product.
    """
    if layer.tactic:
        told = decode(layer.tactic).tensor_cores
        if told != "unknown" or layer.kind in (
            "gemm",
            "convolution",
            "deconvolution",
            "attention",
            "myelin_kernel",
        ):
            return told
    return (
        "unknown"
        if layer.kind
        in (
            "gemm",
            "convolution",
            "deconvolution",
            "attention",
            "foreign_node",
            "myelin_kernel",
            "plugin",
            "unknown",
        )
        else "no"
    )


@kept
def does(layer: Layer) -> str:
    """The layer's purpose, in the words of the table `work`."""
    if layer.kind in _NO_WORK or layer.kind in ("foreign_node", "attention"):
        return {"foreign_node": "region", "attention": "attention"}.get(layer.kind, "nothing")
    done = operations(layer)
    if done.product:
        return "product"
    if quantizes(layer) is not None:
        return "quantize"
    told = (
        ("norm", layer.kind == "normalization" or not NORM_PATTERNS.isdisjoint(done.patterns)),
        ("softmax", done.softmax),
        ("reformat", layer.kind == "reformat"),
        ("cast", done.cast),
        ("movement", done.movement),
        ("pointwise", done.pointwise),
    )
    word = next((word for word, holds in told if holds), None)
    return word or _DOES.get(layer.kind) or _mostly(layer, done)


_DOES = {
    "pooling": "pooling",
    "reduce": "reduction",
    "topk": "selection",
    "nms": "selection",
    "resize": "resize",
    "scatter": "movement",
}
_NODES = {
    "softmax": "softmax", "normalization": "norm", "topk": "selection", "reduce": "reduction",
    "resize": "resize", "pooling": "pooling",
    "pointwise": "pointwise", "activation": "pointwise",
}  # fmt: skip
_CLASSES = {
    "sort": "selection", "sampling": "resize", "reduction": "reduction", "scan": "reduction",
    "pooling": "pooling", "normalization": "norm",
    "pointwise": "pointwise", "compare": "pointwise", "logical": "pointwise",
    "pointwise or reduction": "pointwise", "quantize": "quantize",
    "index": "pointwise",
}  # fmt: skip


def _mostly(layer: Layer, done: Operations) -> str:
    """What a generated kernel does besides moving data: the most specific of its operations, or of
    its ONNX nodes if its name is cut.
    """
    if done.cut:
        kinds = {op.cls for op in layer_ops(layer.onnx)}
        told = next(
            (word for kind, word in _NODES.items() if kind in kinds),
            "movement" if kinds and kinds <= _MOVES | {"constant"} else "",
        )
        return told or "other"
    classes = {op.cls for op in done.ops}
    return next((word for cls, word in _CLASSES.items() if cls in classes), "other")


def product_extent(
    result: Shape, left: Sequence[Shape], right: Sequence[Shape], *, merged: bool = False
) -> int | None:
    """The summed extent K of a matrix product, from the shape of its result and those that its
    operands may have; None if none fits.

    Operands may be transposed, batched, broadcast over the batch, or shown in another view of the
    same elements ([1,128,768] for 12 heads). `right` is empty if the file hides the weights.
    `merged`: several products over one input (A+B+C), so the batch of the result is not one of the
    input.
    """
    if len(result) < 1 or 0 in result:
        return None
    columns, rows = result[-1], result[-2] if len(result) > 1 else 1
    batch: int = prod(result[:-2])
    for shared in (batch, 1):  # both operands batched; or one used for the whole batch
        for a in left:
            for b in right:
                for m, n in ((rows, columns), (columns, rows)):
                    for k in dict.fromkeys((*a[-1:], *a[-2:-1])):
                        if _fits(a, m, k, {batch, shared}) and _fits(b, n, k, {batch, shared}):
                            return k
    lines = batch * rows
    for a in left:
        if a and prod(a[:-1]) == lines:
            return a[-1]
    for step in ("row", "all") if merged else ("all", "row"):
        for a in left:
            size: int = prod(a)
            if step == "row" and len(a) > 1 and a[-2] == rows:
                return a[-1]
            if step == "all" and size and size % lines == 0:
                return size // lines
    return None


def _fits(shape: Shape, other: int, k: int, batches: set[int]) -> bool:
    """Whether k is one of the shape's last two axes and its elements are other x k, times one of
    the batches.
    """
    return k in shape[-2:] and prod(shape) in {batch * other * k for batch in batches}


def _plugin_operation(layer: Layer) -> str | None:
    """The kind of layer that a plugin stands for, where its type is the name of an operation whose
    work follows from its tensors.

    TensorRT-LLM's ``Gemm`` reads [..., K] or its transpose and K x N weights of the same type, and
    writes [..., N].
    """
    told = layer.parameters.get("PluginType") if layer.kind == "plugin" else None
    row = (
        node_row(told.removesuffix("_TRT").removesuffix("Plugin"))
        if isinstance(told, str)
        else None
    )
    return row.kind if row is not None and row.kind in _TOLD_BY_PLUGIN else None


def _count(layer: Layer, written: Mapping[str, Shape]) -> _Count:
    kind = _plugin_operation(layer) or layer.kind
    if kind in ("convolution", "deconvolution") or layer.parameters.get("ParameterType") in (
        "Convolution",
        "Deconvolution",
    ):
        return _convolution(layer)
    if kind == "attention":
        return _attention(layer)
    if kind == "pooling":
        return _pooling(layer)
    if kind == "gemm":
        return _gemm(layer, written)
    if kind == "myelin_kernel":
        return _fused(layer, written)
    if kind in _MOVES:
        return _Count(0, 0)
    return _elementwise(layer, kind)


def _convolution(layer: Layer) -> _Count:
    """N*K*P*Q*(C/G)*R*S for a convolution; for a deconvolution every input element meets (K/G)*R*S
    weights.
    """
    source, target = _shape_of(layer.inputs), _shape_of(layer.outputs)
    transposed = (
        layer.kind == "deconvolution" or layer.parameters.get("ParameterType") == "Deconvolution"
    )
    filters = _filters(layer, transposed=transposed)
    if source is None or target is None:
        inward, outward = filters.channels or (-1, -1)
        channels = filters.channels if inward > 0 and outward > 0 else None
        return _Count(
            reason="a dimension is dynamic or not in the file",
            channels=channels,
            groups=filters.groups,
        )
    each = source if transposed else target
    groups = filters.groups or 1
    if filters.kernel and filters.channels:
        inward, outward = filters.channels
        across = outward if transposed else inward
        macs = prod(each) * across * prod(filters.kernel) // groups
        return _Count(
            macs,
            2 * macs,
            inward * outward * prod(filters.kernel) // groups,
            None,
            (inward, outward),
            groups,
        )
    weights = _weight_count(layer)
    maps = _number(layer.parameters.get("OutMaps")) or (target[1] if len(target) > 2 else 0)
    if weights is None or not maps or transposed:
        return _Count(reason="the kernel size is not in the file")
    macs = prod(each) * weights // maps
    return _Count(
        macs,
        2 * macs,
        weights,
        "from the number of weights",
        (source[1], maps) if len(source) > 2 else None,
        groups,
    )


@dataclass(frozen=True)
class _Filters:
    """What a convolution's row in the file shows about its filters, whatever the batch or image
    size.
    """

    kernel: Shape = ()
    channels: tuple[int, int] | None = None  # in, out
    groups: int | None = None


def _filters(layer: Layer, *, transposed: bool) -> _Filters:
    """The filters, from the parameters of the layer, otherwise from its weights where the file
    lists them: K x C/G x R x S (C x K/G of a deconvolution).
    """
    source, target = (
        tensors[0].dimensions or () if tensors else () for tensors in (layer.inputs, layer.outputs)
    )
    kernel, groups = (
        _whole_numbers(layer.parameters.get("Kernel")),
        _number(layer.parameters.get("Groups")),
    )
    if len(source) != len(target) or not source:
        return _Filters(groups=groups)
    if kernel and len(kernel) < len(source):
        axis = len(source) - len(kernel) - 1
        return _Filters(kernel, (source[axis], target[axis]), groups or 1)
    first = source if transposed else target
    for tensor in sorted(layer.constants, key=lambda one: -(elements(one) or 0)):
        weights = _shape(tensor)
        if (
            weights is None
            or len(weights) != len(source)
            or len(weights) < 3
            or weights[0] != first[1]
            or not weights[1]
        ):
            continue
        over, other = (target[1], weights[1]) if transposed else (source[1], weights[1])
        if over > 0 and over % other == 0:
            return _Filters(weights[2:], (source[1], target[1]), over // other)
    return _Filters(groups=groups)


def _constant_product(layer: Layer) -> tuple[int, int] | None:
    """K and N of a product with constant weights, if the batch or the number of rows is dynamic;
    None if the file does not show them.
    """
    source, target = (
        tensors[0].dimensions or () if tensors else () for tensors in (layer.inputs, layer.outputs)
    )
    weights = [
        shape
        for tensor in layer.constants
        if (shape := _shape(tensor)) is not None and len(shape) > 1 and min(shape[-2:]) > 1
    ]
    if not source or not target or not weights:
        return None
    k, n = source[-1], target[-1]
    return (
        (k, n)
        if k > 0
        and n > 0
        and any({k, n} == {*shape[-2:]} or shape[-2:] == (k, n) for shape in weights)
        else None
    )


def _gemm(layer: Layer, written: Mapping[str, Shape]) -> _Count:
    result = _shape_of(layer.outputs)
    if result is None:
        return _Count(
            reason="a dimension is dynamic or not in the file", channels=_constant_product(layer)
        )
    weights, maps = _weight_count(layer), _number(layer.parameters.get("OutMaps"))
    if weights is not None and maps and layer.parameters.get("Weights") is not None:
        macs = prod(result) * weights // maps
        return _Count(macs, 2 * macs, weights, None, (weights // maps, maps))
    operands = [
        tensor
        for tensor in layer.inputs
        if (elements(tensor) or 0) > 1 and len(tensor.dimensions or ()) > 1
    ]
    constants = [
        shape
        for tensor in layer.constants
        if (shape := _shape(tensor)) is not None
        and len(shape) > 1
        and prod(shape) > max(result[-1], 1)
    ]
    shapes = [shape for tensor in operands[:1] for shape in _views(tensor, written)]
    others = [shape for tensor in operands[1:] for shape in _views(tensor, written)] + constants
    if not shapes and len(constants) > 1:
        shapes, others = constants[:1], constants[1:]
    k = product_extent(result, shapes, others, merged="+" in layer.name)
    if k is None:
        return _Count(reason="the operands' dimensions do not show what is summed over")
    macs = prod(result) * k
    if others:
        return _Count(macs, 2 * macs, channels=(k, _outward(result, k, constants)))
    return _Count(
        macs,
        2 * macs,
        k * result[-1],
        "the file hides the weights: assumed to be one K x N matrix",
        (k, result[-1]),
    )


def _outward(result: Shape, k: int, weights: Sequence[Shape]) -> int:
    """The output channels of a product: its columns, or its rows where the weights are its left
    operand, as of a 1x1 convolution.
    """
    left = len(result) > 1 and any(
        shape[-2:] == (result[-2], k) and result[-1] not in shape[-2:] for shape in weights
    )
    return result[-2] if left else result[-1]


def _attention(layer: Layer) -> _Count:
    """Q*K^T and P*V: 2 * batch * heads * Sq * Sk * d multiply-adds; the softmax between them is not
    counted.
    """
    shapes = [
        shape
        for tensor in layer.outputs
        if (shape := _shape(tensor)) is not None and len(shape) > 1
    ]
    # besides it, a decoding step writes its new keys and values
    result = max(shapes, key=prod, default=None)
    inputs = [shape for tensor in layer.inputs if (shape := _shape(tensor)) is not None]
    if result is None or len(inputs) != len(layer.inputs) or len(result) < 2:
        return _Count(reason="a dimension is dynamic or not in the file")
    rows = result[-2]
    keys = _key_length(result, inputs)
    if keys is None or not rows:
        return _Count(reason="the inputs' dimensions do not show how long keys and queries are")
    macs = 2 * prod(result) * keys
    return _Count(macs, 2 * macs)


def _key_length(result: Shape, inputs: Sequence[Shape]) -> int | None:
    """Sk, from separate Q, K, V in any order of the last two axes with a mask or without, from
    packed QKV, or from Q with packed KV.
    """
    size = prod(result)
    sizes = [prod(shape) for shape in inputs if result[-1] in shape[-2:]]  # not a mask, nor a scale
    if len(sizes) >= 3 and sizes[0] == size and sizes[1] == sizes[2]:
        keys = sizes[1] * result[-2]
        return keys // size if size and keys % size == 0 else None
    if len(inputs) >= 3 and prod(inputs[0]) == size and prod(inputs[1]) == prod(inputs[2]):
        keys = prod(inputs[1]) * result[-2]
        return keys // size if size and keys % size == 0 else None
    if inputs and prod(inputs[0]) == 3 * size:
        return result[-2]
    if len(inputs) >= 2 and prod(inputs[0]) == size:
        keys = prod(inputs[1]) * result[-2]
        return keys // (2 * size) if size and keys % (2 * size) == 0 else None
    return None


def _pooling(layer: Layer) -> _Count:
    target, window = _shape_of(layer.outputs), _whole_numbers(layer.parameters.get("WindowSize"))
    source = _shape_of(layer.inputs)
    if target is not None and source is not None and not window:
        return _Count(
            0,
            prod(source),
            reason="the window is not in the file: assumed to be one operation per element read",
        )
    if target is None or not window:
        return _Count(reason="the window or a dimension is not in the file")
    return _Count(0, prod(target) * prod(window))


def _fused(layer: Layer, written: Mapping[str, Shape]) -> _Count:
    """The work of a generated kernel: a product if its ops contain one, otherwise one operation per
    element and arithmetic op in its name.
    """
    ops = operations(layer).ops
    classes = {op.cls for op in ops}
    if "gemm" in classes:
        return _gemm(layer, written)
    if "convolution" in classes:
        return _convolution(layer)
    sizes = [
        size for tensor in (*layer.inputs, *layer.outputs) if (size := elements(tensor)) is not None
    ]
    if len(sizes) != len(layer.inputs) + len(layer.outputs) or not sizes:
        return _Count(reason="a dimension is dynamic or not in the file")
    if not ops or classes & {"cut", "unknown"}:
        return _Count(macs=0, reason="the name does not list every operation")
    arithmetic = sum(
        op.cls
        in (
            "pointwise",
            "reduction",
            "compare",
            "logical",
            "quantize",
            "pointwise or reduction",
        )
        for op in ops
    )
    return _Count(0, arithmetic * max(sizes))


def _elementwise(layer: Layer, kind: str) -> _Count:
    each = _PER_ELEMENT.get(kind)
    target = _shape_of(layer.outputs)
    if each is None:
        plugin = layer.parameters.get("PluginType") if kind == "plugin" else None
        what = (
            f"plugin {plugin} cannot be told from its tensors"
            if isinstance(plugin, str)
            else f"layer of kind {kind} is unknown"
        )
        return _Count(reason=f"the work of a {what}")
    if target is None:
        return _Count(reason="a dimension is dynamic or not in the file")
    operations = _number(layer.parameters.get("NbOperations")) if kind == "pointwise" else None
    source = _shape_of(layer.inputs) if kind == "reduce" else None
    return _Count(0, prod(source or target) * (operations or each))


def _views(tensor: Tensor, written: Mapping[str, Shape]) -> list[Shape]:
    """The shape in which the tensor is read, and the one in which it was written where that is
    another.
    """
    shapes = [
        shape for shape in (_shape(tensor), written.get(tensor.name)) if shape is not None and shape
    ]
    return list(dict.fromkeys(shapes))


def _listed_weights(layer: Layer) -> int | None:
    """Bytes of the weights that the file lists: TensorRT 11's constants, or the counts of Weights
    and Bias.
    """
    if layer.constants:
        return _total(layer.constants)
    sizes: list[int] = []
    for key in ("Weights", "Bias"):
        held = layer.parameters.get(key)
        if isinstance(held, dict):
            count, bits = (
                _number(held.get("Count")),
                TYPE_BITS.get(data_type(str(held.get("Type"))) or ""),
            )
            if count is None or bits is None:
                return None
            sizes.append((count * bits + 7) // 8)
    return sum(sizes) if sizes else None


def _weight_count(layer: Layer) -> int | None:
    held = layer.parameters.get("Weights")
    if isinstance(held, dict):
        return _number(held.get("Count"))
    counts = [
        count
        for tensor in layer.constants
        if (count := elements(tensor)) is not None and len(tensor.dimensions or ()) > 2
    ]
    return max(counts, default=None)


def _total(tensors: Sequence[Tensor]) -> int | None:
    """Bytes of the tensors in device memory; None if one is not known."""
    return total_bytes(tensor for tensor in tensors if tensor.location != "Host")


def _gathers(layer: Layer) -> bool:
    return layer.kind == "gather" or any(op.op == "Gather" for op in operations(layer).ops)


def _looked_up(tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> int | None:
    """Bytes of what a gather reads: of each tensor at most as many elements as the largest output
    has; None if one is not known.
    """
    most = max((elements(tensor) or 0 for tensor in outputs), default=0)
    sizes = []
    for tensor in tensors:
        size, held = _total([tensor]), elements(tensor)
        if size is None or (size and not held):
            return None
        sizes.append(size * min(held or 0, most) // held if held else 0)
    return sum(sizes)


def _shape_of(tensors: Sequence[Tensor]) -> Shape | None:
    return _shape(tensors[0]) if tensors else None


def _shape(tensor: Tensor) -> Shape | None:
    return tensor.dimensions if elements(tensor) is not None else None


def _number(value: object) -> int | None:
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**56
        else None
    )


def _whole_numbers(value: object) -> tuple[int, ...]:
    """The list if it holds whole numbers only, otherwise nothing."""
    numbers = [_number(item) for item in value] if isinstance(value, list) else []
    return () if None in numbers else tuple(number for number in numbers if number is not None)
