"""The colours of pictures and their meaning: time, kind of work, data type, cause of idle time.

Kinds and causes differ by at least 15 in CIE L*a*b*, for viewers with and without colour blindness
(tests/picture/test_swatches.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.records import dataclass
from nsysmap.core.table import Row
from nsysmap.names.decode import decode
from nsysmap.names.fusion import NORM_PATTERNS

_HEAT = ("#fffbe6", "#fee391", "#fe9929", "#d7301f", "#7f0000")
PLAIN, UNKNOWN = "#e9ecef", "#ffffff"
_KINDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("matrix product", "#566bcb", ("gemm", "gemv")),
    ("convolution", "#523d79", ("convolution", "deconvolution")),
    ("attention", "#9744ff", ("attention",)),
    ("softmax, norm, reduction", "#3da682", ("softmax", "normalization", "reduce", "scan")),
    ("pointwise, activation, scale", "#b2f9b6", ("pointwise", "activation", "scale", "index")),
    (
        "pooling, resize, top-k, NMS",
        "#a06a00",
        ("pooling", "resize", "topk", "nms", "sampling", "random"),
    ),
    ("data movement", "#fddf77", ("shuffle", "slice", "concat", "gather", "scatter", "copy")),
    ("reformat", "#ff9600", ("reformat",)),
    ("cast, quantise", "#afab62", ("cast", "quantize")),
    ("other kernel that Myelin generated", "#7e80a1", ("myelin_kernel",)),
    ("opaque Myelin region", "#654141", ("foreign_node",)),
    ("plugin", "#812e12", ("plugin",)),
    ("communication", "#ff98f6", ("communication",)),
    ("no GPU work, or control", "#d0d3d6", ("shape", "signal", "constant", "noop", "loop")),
    ("cannot tell", UNKNOWN, ("other", "unknown")),
)
_TYPES = {
    "FP64": "#812e12", "FP32": "#ff9600", "TF32": "#fddf77", "FP16": "#566bcb", "BF16": "#3da682",
    "FP8": "#9744ff", "FP4": "#523d79",
    "INT8": "#ff98f6", "INT4": "#a06a00",
}  # fmt: skip
_EVEN = 0.2  # the luminance on which white and our black have the same contrast ratio, by the WCAG
_OTHER_TYPE, _CONVERTS, _MOVES, _NO_WORK = "#654141", "#afab62", "#d0d3d6", "#f1f3f5"
CAUSES: Mapping[str, str] = {cause.name: cause.fill for cause in IDLE_CAUSES.values()}
"""The colour of idle time by its cause (see the table gaps)."""


@dataclass(frozen=True)
class Swatch:
    """A colour and its meaning; `untold` colours mean that something is unknown."""

    fill: str
    words: str
    untold: bool = False


@dataclass(frozen=True)
class Legend:
    """The legend of one mode."""

    title: str
    swatches: tuple[Swatch, ...]


KIND_WORDS = tuple(words for words, _, _ in _KINDS)
"""The meanings of the colours of kinds, in the order of a legend."""
TYPE_WORDS = (
    *_TYPES,
    "another type",
    "changes the type",
    "moves data",
    "no GPU work",
    "cannot tell",
)
"""The meanings of the colours of data types, in the order of a legend."""
UNTIMED = Swatch(UNKNOWN, "no time measured", untold=True)
_KIND_SWATCH = {
    kind: Swatch(fill, words, fill == UNKNOWN) for words, fill, kinds in _KINDS for kind in kinds
}
_REFINED = frozenset({"myelin_kernel", "other", "unknown"})


def kind_swatch(kind: str, name: str) -> Swatch:
    """The colour of a layer of that kind; if the kind says little, by its name or its kernel's."""
    return (
        _KIND_SWATCH[kind] if kind not in _REFINED else _swatch_by_name(name) or _KIND_SWATCH[kind]
    )


def kernel_swatch(kind: str | None, name: str) -> Swatch:
    """The colour of a kernel that ran for a layer of that kind (None: layer unknown); in an opaque
    region, by its name.
    """
    if kind is None or kind == "foreign_node":
        return _swatch_by_name(name) or _KIND_SWATCH["unknown"]
    return kind_swatch(kind, name)


@lru_cache(maxsize=8192)
def _swatch_by_name(name: str) -> Swatch | None:
    decoded = decode(name)
    patterns = {pattern.name for pattern in decoded.patterns}
    classes = {op.cls for op in decoded.ops}
    for kind in ("attention", "convolution", "gemm"):
        if kind in patterns | classes:
            return _KIND_SWATCH[kind]
    if patterns & (NORM_PATTERNS | {"norm-scale"}) or any("softmax" in one for one in patterns):
        return _KIND_SWATCH["softmax"]
    if classes and classes <= {"data movement"}:
        return _KIND_SWATCH["shuffle"]
    if classes and classes <= {"data movement", "cast", "quantize"}:
        return _KIND_SWATCH["cast"]
    if classes and not classes <= {"unknown", "cut", "data movement"}:
        return _KIND_SWATCH["pointwise"]
    found = _KIND_SWATCH.get(str(decoded.fields.get("operation")))
    return None if found is None or found.untold else found


def heat(share: float) -> str:
    """A colour between cold and hot."""
    place = min(max(share, 0.0), 1.0) * (len(_HEAT) - 1)
    low = min(int(place), len(_HEAT) - 2)
    mixed = (
        round(
            int(_HEAT[low][at : at + 2], 16) * (1 - place + low)
            + int(_HEAT[low + 1][at : at + 2], 16) * (place - low)
        )
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def ink_on(fill: str) -> str:
    """Black or white, whichever is more readable on that colour."""
    red, green, blue = (int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return (
        "#ffffff"
        if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < _EVEN
        else "#1a1d21"
    )


def type_swatch(row: Row | None) -> Swatch:
    """The colour of a layer by the row of the table precision with most of its time; None: it ran
    no kernel.
    """
    if row is None:
        return Swatch(_NO_WORK, "no GPU work")
    if row["work"] == "convert":
        return Swatch(_CONVERTS, "changes the type")
    if row["work"] == "move":
        return Swatch(_MOVES, "moves data")
    datatype = row.maybe_text("datatype")
    if datatype is None:
        return Swatch(UNKNOWN, "cannot tell", untold=True)
    return (
        Swatch(_TYPES[datatype], datatype)
        if datatype in _TYPES
        else Swatch(_OTHER_TYPE, "another type")
    )
