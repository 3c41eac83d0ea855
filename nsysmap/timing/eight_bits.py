"""How an engine with INT8, FP8 or FP4 uses them: which products compute in them, which stayed in a
wider type and why, and what the rest of the time goes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import EIGHT_BITS
from nsysmap.core.table import Row, Table
from nsysmap.names.decode import decode
from nsysmap.timing.peak_rates import TENSOR, Capability

NARROW = frozenset({"INT8", "FP8", "FP4"})
FIRST_ARCH = {"BF16": 80, "TF32": 80, "INT8": 72, "FP8": 89, "FP4": 100}
"""The first compute capability whose tensor cores multiply such numbers (the instruction mma of PTX
and its successors).
"""
_PRODUCTS = frozenset({"product", "attention"})
_CONVERTS = frozenset({"quantize", "cast"})
_ELEMENTWISE = frozenset({"pointwise", "scale", "reduction"})
_MULTIPLE = 16
"""Channels that a tensor-core instruction takes at once in 8 bits."""
_QUANTIZER = "quant"


@dataclass(frozen=True)
class QuantizedEngine:
    """The tables of the engines, and the measurements of them."""

    layers: Table
    work: Table
    tensors: Table
    edges: Table
    precision: Table
    devices: Table
    layer_times: Table


def eight_bits_table(facts: QuantizedEngine) -> Table:
    """The table `eight_bits`: the layers of engines with products in 8 bits or fewer; no rows for
    other engines.
    """
    layers = {row.integer("layer_id"): row for row in facts.layers}
    work = {row.integer("layer_id"): row for row in facts.work}
    narrow: dict[int | None, str] = {}
    for layer, needed in work.items():
        type_ = needed.maybe_text("precision")
        if needed.text("does") in _PRODUCTS and type_ in NARROW and layer in layers:
            narrow.setdefault(layers[layer].maybe_integer("engine"), type_ or "")
    if not narrow:
        return Table.empty(EIGHT_BITS)
    context = _Context(
        layers=layers,
        work=work,
        writers=_ends(facts.edges, "to_layer", "from_layer"),
        types=_types(facts.tensors),
        capability=_capability(facts.devices),
        kernels={
            one.integer("layer_id"): one.maybe_text("kernel") or "" for one in facts.layer_times
        },
        converts=frozenset(
            one
            for row in facts.precision
            if row.text("work") == "convert" and (one := row.maybe_integer("layer_id")) is not None
        ),
    )
    rows = []
    for layer, named in layers.items():
        engine = named.maybe_integer("engine")
        if engine not in narrow or layer not in work or work[layer].text("does") == "nothing":
            continue
        part = _part(layer, context)
        older = _older_arch(layer, context) if part == "product" else None
        rows.append(
            {
                "layer_id": layer,
                "engine": engine,
                "eight_bit_type": narrow[engine],
                "part": part,
                "datatype": work[layer].maybe_text("precision"),
                "why": _why(layer, narrow[engine], context) if part == "stayed" else None,
                "kernel_arch": older,
                "time_ns": named.maybe_integer("time_ns"),
            }
        )
    return Table.of_rows(EIGHT_BITS, rows)


@dataclass(frozen=True)
class _Context:
    """Facts about all layers together."""

    layers: Mapping[int, Row]
    work: Mapping[int, Row]
    writers: Mapping[int, Sequence[int]]
    types: Mapping[int, tuple[frozenset[str], frozenset[str]]]  # read and written
    capability: Capability | None
    kernels: Mapping[int, str]
    converts: frozenset[int]


def _ends(edges: Table, of: str, other: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in edges:
        found.setdefault(row.integer(of), []).append(row.integer(other))
    return found


def _types(tensors: Table) -> dict[int, tuple[frozenset[str], frozenset[str]]]:
    held: dict[int, tuple[set[str], set[str]]] = {}
    for row in tensors:
        read, written = held.setdefault(row.integer("layer_id"), (set(), set()))
        if type_ := row.maybe_text("datatype"):
            (read if row.text("direction") == "in" else written).add(type_)
    return {layer: (frozenset(read), frozenset(out)) for layer, (read, out) in held.items()}


def _capability(devices: Table) -> Capability | None:
    row = next(iter(devices), None)
    major, minor = (
        (None, None)
        if row is None
        else (row.maybe_integer("compute_major"), row.maybe_integer("compute_minor"))
    )
    return None if major is None or minor is None else (major, minor)


def _part(layer: int, context: _Context) -> str:
    """The layer's role in such an engine: see the table."""
    row = context.work[layer]
    does, type_ = row.text("does"), row.maybe_text("precision")
    if does in _PRODUCTS:
        return "product" if type_ in NARROW else "stayed"
    if does in _CONVERTS or layer in context.converts:
        return "convert"
    if does in _ELEMENTWISE and any(
        context.work[one].text("does") == "product"
        and context.work[one].maybe_text("precision") in NARROW
        for one in context.writers.get(layer, ())
        if one in context.work
    ):
        return "epilogue"
    return "rest"


def _why(layer: int, narrow: str, context: _Context) -> str:
    """Why a product stayed in a wider type."""
    if context.capability is not None and narrow not in TENSOR.get(context.capability, {narrow: 0}):
        return "no-tensor-cores"
    read, _ = context.types.get(layer, (frozenset(), frozenset()))
    if read & NARROW:
        return "one-input"
    if not _has_quantizers(layer, context):
        return "no-quantizer"
    channels = [context.work[layer].maybe_integer(name) for name in ("channels_in", "channels_out")]
    if any(count is not None and count % _MULTIPLE for count in channels):
        return "channels"
    return "dequantized"


def _has_quantizers(layer: int, context: _Context) -> bool:
    """Whether the product's inputs have quantizers in the model: their nodes are in the layer, or
    in the layers that write what it reads.
    """
    near = [layer, *context.writers.get(layer, ())]
    for one in near:
        row = context.layers.get(one)
        if row is None:
            continue
        names = f"{row.maybe_text('onnx') or ''} {row.text('name')}".lower()
        if one == layer:
            # what it writes may be quantised for the next one: only weights and inputs count
            inward = any(
                _QUANTIZER in name and "dequant" in name
                for name in (row.maybe_text("onnx") or row.text("name")).lower().split(",")
            )
            if inward:
                return True
        elif _QUANTIZER in names and "dequant" in names:
            return True
    return False


def _older_arch(layer: int, context: _Context) -> str | None:
    """The architecture that the layer's kernel was made for, if that architecture has no tensor
    cores for the type.
    """
    type_ = context.work[layer].maybe_text("precision") or ""
    arch = (
        decode(context.kernels.get(layer, "")).fields.get("arch")
        if layer in context.kernels
        else None
    )
    if not isinstance(arch, str):
        return None
    digits = arch.removeprefix("sm").rstrip("af")
    first = FIRST_ARCH.get(type_)
    return arch if digits.isdigit() and first is not None and int(digits) < first else None
