"""The edits that there are, in the order in which they are tried: one line a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nsysmap.core.records import dataclass
from nsysmap.edits import (
    attention,
    casts,
    channels,
    epilogues,
    gelu,
    layout,
    movement,
    noops,
    norms,
    products,
    quantizers,
    shapes,
)
from nsysmap.edits.model import Edit, Refusal
from nsysmap.edits.view import ModelView


@dataclass(frozen=True)
class EditKind:
    """One kind of edit."""

    name: str
    does: str
    find: Callable[[ModelView], Iterator[Edit | Refusal]]
    rules: tuple[str, ...]  # whose findings it serves


_MOVING = ("data-movement", "reformat-cost", "reformat-ping-pong", "dtype-converting-reformat")

KINDS: tuple[EditKind, ...] = (
    EditKind("shapes", "shapes that are known are constants", shapes.find, _MOVING),
    EditKind(
        "noops",
        "nodes that do nothing are gone",
        noops.find,
        ("epilogue-missed", "pointwise-chain", "tiny-kernels", *_MOVING),
    ),
    EditKind("movement", "data is not cut and joined again", movement.find, _MOVING),
    EditKind(
        "norms",
        "LayerNorm and RMSNorm are one operator each",
        norms.find,
        ("norm-split", "split-inside-region", "pointwise-chain", "tiny-kernels"),
    ),
    EditKind(
        "gelu",
        "GELU is one operator",
        gelu.find,
        ("pointwise-chain", "epilogue-missed", "tiny-kernels"),
    ),
    EditKind(
        "softmax",
        "softmax is one operator, which attention needs to be fused",
        attention.find_softmax,
        ("attention-not-fused", "softmax-split", "split-inside-region", "pointwise-chain"),
    ),
    EditKind(
        "layout",
        "transposes and reshapes that cancel are gone",
        layout.find,
        (*_MOVING, "channel-alignment", "pointwise-chain"),
    ),
    EditKind(
        "casts",
        "casts that cancel are gone, and FP32 between them",
        casts.find,
        (
            "cast-chain",
            "fp32-in-reduced-engine",
            "fp16-norm",
            "attention-not-fused",
            "norm-split",
            "softmax-split",
            "tensor-cores-missed",
        ),
    ),
    EditKind(
        "epilogues",
        "scales and biases are part of the weights",
        epilogues.find,
        ("epilogue-missed", "pointwise-chain"),
    ),
    EditKind(
        "products",
        "products of the same tensor are one",
        products.find,
        ("qkv-not-merged", "parallel-small-kernels", "under-filled-gpu", "tiny-kernels"),
    ),
    EditKind(
        "quantizers",
        "quantizers that are doubled or in the way are gone",
        quantizers.find,
        ("unfused-quantize", "int8-with-float-output", "quantized-latency-bound", *_MOVING),
    ),
    EditKind(
        "channels",
        "channels are padded to whole vectors",
        channels.find,
        ("channel-alignment", "tensor-cores-missed"),
    ),
    EditKind(
        "attention",
        "attention is one operator",
        attention.find,
        ("attention-not-fused", "softmax-split"),
    ),
)
