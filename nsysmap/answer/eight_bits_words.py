"""The sentences about why INT8 or FP8 is not faster."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.answer.model import EightBitPart, EightBits
from nsysmap.text.units import microseconds, percent
from nsysmap.timing.eight_bits import FIRST_ARCH

_NAMED = 3  # layers named in a sentence; the rest is counted
_ORDER = ("product", "stayed", "convert", "epilogue", "rest")
_WHY = {
    "no-quantizer": "no quantizer at their inputs",
    "one-input": "only one of their inputs is quantised",
    "channels": (
        "quantised in the model, but their channels are no multiple of 16, for which there is no"
        " kernel"
    ),
    "dequantized": (
        "quantised in the model, but the builder multiplies in the wider type: no kernel of that"
        " type, or the quantizer is on the wrong side of an operation"
    ),
    "no-tensor-cores": "this GPU has no tensor cores for the type",
}
FAR = 0.25
"""Share of the limit below which 8 bits are not what products need."""


HEADER = ("µs", "share", "layers", "what they are")
ALIGN = "rrrw"


def heading(types: Sequence[str]) -> str:
    """The section's heading."""
    return f"What {'/'.join(dict.fromkeys(types))} is used for, and what the rest of the time is"


def cells(found: EightBits) -> tuple[tuple[str, str, str, str], ...]:
    """A row for each part of the engine: its time, its share, its layers, and the explanation."""
    rows = sorted(found.parts, key=lambda one: _ORDER.index(one.part))
    return tuple(
        (
            microseconds(one.time_ns) if found.time_ns else "",
            percent(one.time_ns, found.time_ns, 0) if found.time_ns else "",
            f"{one.layers}",
            _told(found, one),
        )
        for one in rows
    )


def _told(found: EightBits, one: EightBitPart) -> str:
    if one.part == "product":
        return _products(found, one)
    if one.part == "stayed":
        types = "/".join(one.datatypes) or "a wider type"
        return f"products that stay in {types}: {_WHY.get(one.why or '', '')} ({_names(one)})"
    if one.part == "convert":
        return f"only change types, such as quantizers that no neighbour does ({_names(one)})"
    if one.part == "epilogue":
        return (
            "element-wise work on what a product wrote as a float, which its kernel could do"
            f" ({_names(one)})"
        )
    return f"gain nothing by {found.type} ({_names(one)})"


def _products(found: EightBits, one: EightBitPart) -> str:
    parts = [f"products in {found.type}"]
    if found.older_products and found.older_arch:
        many = "" if found.older_products == one.layers else f"{found.older_products} of them "
        parts.append(
            f"{many}by {found.older_arch} kernels, made before {found.type} tensor cores"
            f" (sm{FIRST_ARCH.get(found.type)}): they multiply in a wider type"
        )
    if found.reached is not None and found.reached < FAR:
        parts.append(
            f"they reach {percent(found.reached, 1, 0)} of what the GPU can do in {found.type}, so"
            " that their time is not what fewer bits shorten"
        )
    return "; ".join(parts)


def _names(one: EightBitPart) -> str:
    shown = ", ".join(one.titles[:_NAMED])
    more = len(one.titles) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
