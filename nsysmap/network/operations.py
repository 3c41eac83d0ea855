"""Classifies an engine layer's work as far as it matters for fusion: product, softmax,
normalisation, pointwise, movement, cast.
"""

from __future__ import annotations

from functools import lru_cache

from nsysmap.core.records import dataclass, kept
from nsysmap.inputs.engine.model import Layer
from nsysmap.inputs.engine.tensor_formats import FLOATING
from nsysmap.names.decode import Op, decode, layer_kind, split_layer_name

PRODUCTS = frozenset({"gemm", "convolution", "deconvolution"})
_POINTWISE = frozenset({"pointwise", "activation", "scale"})
_MOVEMENT = frozenset({"shuffle", "slice", "concat", "gather"})
_FUSABLE = (
    frozenset({"myelin_kernel", "cast", "softmax", "normalization", "reduce"})
    | _POINTWISE
    | _MOVEMENT
)
_SOFTMAX_PATTERNS = frozenset({"softmax", "softmax-statistics", "log-softmax"})
# what needs all of its input before it writes: it shares a kernel with no neighbour
_OF_ITS_OWN = frozenset({"sort", "scan", "index"})
# what follows must wait for all that they write
_SCATTERS = frozenset({"ScatterND", "ScatterElements", "Scatter"})
_ARITHMETIC = frozenset({"pointwise", "compare", "logical", "pointwise or reduction"})

_NAMES = 1 << 12  # of kernels that Myelin generated: repeated blocks share most


@dataclass(frozen=True)
class Operations:
    """The work of one layer. `ops` is empty if its name does not list them."""

    ops: tuple[Op, ...]
    patterns: tuple[str, ...]
    product: bool  # a matrix product or convolution, with or without more
    softmax: bool  # a softmax or the first half of one
    # element by element only, casts among them; at least one operation that is no cast
    pointwise: bool
    movement: bool  # moves or views data only
    cast: bool  # converts the type only, moving data or not
    fusable: bool  # limited by memory: could in principle share a kernel with a neighbour
    cut: bool  # the name does not list every operation


@kept
def operations(layer: Layer) -> Operations:
    """The layer's work, from its kind and the op codes in its name."""
    named = layer.kind == "myelin_kernel" or (
        layer.kind in PRODUCTS and layer.name.startswith("__myl_")
    )
    return _operations(_without_number(layer.name) if named else None, layer.kind)


def _without_number(name: str) -> str:
    """The name of a kernel that Myelin generated, without the number of its instruction: it says
    nothing of the operations, which repeated blocks share.
    """
    node = split_layer_name(name).node
    plain = node.startswith("__myl_") and node.isascii() and node.replace("_", "").isalnum()
    return node if plain else name


def converts(layer: Layer) -> bool:
    """Whether the layer's first output has another data type than its first input."""
    if not layer.inputs or not layer.outputs:
        return False
    source, target = layer.inputs[0].datatype, layer.outputs[0].datatype
    return source is not None and target is not None and source != target


@kept
def quantizes(layer: Layer) -> str | None:
    """ "quantize", "dequantize", "both" or None: whether the layer does nothing but that."""
    source = layer.inputs[0].datatype if layer.inputs else None
    target = layer.outputs[0].datatype if layer.outputs else None
    if layer.kind == "myelin_kernel":
        if not _only_quantizes(_without_number(layer.name)):
            return None
    elif (
        layer.kind != "quantize"
        and not (layer.kind == "reformat" and layer.origin == "QDQ")
        and not _reformat_that_quantizes(layer)
    ):
        return None
    narrow = {"INT8", "FP8", "INT4", "FP4"}
    if source in FLOATING - narrow and target in narrow:
        return "quantize"
    if source in narrow and target in FLOATING - narrow:
        return "dequantize"
    if layer.kind == "myelin_kernel":
        return "both" if source is not None and source == target else None
    return "quantize" if "dequantize" not in layer.name.lower() else "dequantize"


def _reformat_that_quantizes(layer: Layer) -> bool:
    """Whether a QuantizeLinear or DequantizeLinear runs as a reformat whose origin is not recorded,
    as in a log.
    """
    return (
        layer.kind == "reformat"
        and layer.origin is None
        and converts(layer)
        and layer_kind(layer.name, None) == "quantize"
    )


@lru_cache(maxsize=_NAMES)
def _only_quantizes(name: str) -> bool:
    """Whether the ops in the name are those of QuantizeLinear or DequantizeLinear, with or without
    movement, and no others.
    """
    decoded = decode(name)
    inside = {
        place
        for pattern in decoded.patterns
        if pattern.name.startswith(("int8-quantize", "fp4-quantize"))
        for place in range(pattern.first, pattern.last + 1)
    }
    left = [
        op.op
        for place, op in enumerate(decoded.ops)
        if op.cls != "data movement" and place not in inside
    ]
    return bool(inside and not left) or left in (["Mul", "Cast"], ["Cast", "Mul"], ["Div", "Cast"])


@lru_cache(maxsize=_NAMES)
def _operations(name: str | None, kind: str) -> Operations:
    """The work according to the name of a kernel that Myelin generated, which lists its operations;
    None for all others.
    """
    generated = name is not None
    decoded = decode(name) if name is not None else None
    ops = decoded.ops if decoded is not None else ()
    patterns = tuple(pattern.name for pattern in decoded.patterns) if decoded is not None else ()
    classes = {op.cls for op in ops}
    cut = generated and (not ops or bool(classes & {"cut", "unknown"}))
    product = kind in PRODUCTS or bool(classes & {"gemm", "convolution"})
    softmax = kind == "softmax" or bool(_SOFTMAX_PATTERNS & {*patterns})
    arithmetic = (
        bool(ops) and not cut and classes <= _ARITHMETIC | {"cast"} and bool(classes & _ARITHMETIC)
    )
    moved = bool(ops) and not cut and classes == {"data movement"}
    cast = bool(ops) and not cut and "cast" in classes and classes <= {"data movement", "cast"}
    return Operations(
        ops=ops,
        patterns=patterns,
        product=product,
        softmax=softmax,
        pointwise=kind in _POINTWISE or arithmetic,
        movement=kind in _MOVEMENT or moved,
        cast=kind == "cast" or cast,
        fusable=kind in _FUSABLE
        and not product
        and not classes & _OF_ITS_OWN
        and _SCATTERS.isdisjoint(op.op for op in ops),
        cut=cut,
    )
