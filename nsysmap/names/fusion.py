"""What a kernel's name shows about fusion: its products, norms, softmaxes and attention, in a few
words or as facts.
"""

from __future__ import annotations

from functools import lru_cache

from nsysmap.core.records import dataclass
from nsysmap.names.decode import KernelName, decode


def part_words(decoded: KernelName) -> str:
    """A short description of a kernel: its patterns, otherwise its operation, otherwise its
    operations listed.
    """
    patterns = list(dict.fromkeys(pattern.name for pattern in decoded.patterns))
    products = [op.op for op in decoded.ops if op.cls in ("gemm", "convolution")][:1]
    if patterns:
        return " + ".join(([] if "attention" in patterns else products) + patterns)
    if decoded.ops:
        words = [op.word for op in decoded.ops]
        return " ".join(words[:_WORDS_SHOWN]) + (" …" if len(words) > _WORDS_SHOWN else "")
    operation = str(decoded.fields.get("operation", "unknown"))
    return (
        operation if operation != "unknown" else str(decoded.fields.get("function", decoded.name))
    )


NORM_PATTERNS = frozenset(
    {
        "layernorm",
        "rmsnorm",
        "groupnorm",
        "normalize",
        "rms-normalize",
        "layernorm-statistics",
        "rmsnorm-statistics",
        "layernorm-affine",
    }
)


@dataclass(frozen=True)
class Told:
    """What one kernel's name shows about fusion."""

    text: str
    product: bool
    attention: bool
    memory: bool  # generated, without a product: could share a kernel with a neighbour
    patterns: frozenset[str]
    divides: bool


@lru_cache(maxsize=4096)
def told_by_name(name: str) -> Told:
    """What a kernel's name shows about products, attention, norms and softmaxes."""
    decoded = decode(name)
    patterns = frozenset(pattern.name for pattern in decoded.patterns)
    classes = {op.cls for op in decoded.ops}
    operation = decoded.fields.get("operation")
    attention = operation == "attention" or "attention" in patterns
    product = not attention and (operation == "gemm" or "gemm" in classes)
    memory = (
        bool(decoded.ops)
        and not product
        and not attention
        and not classes & (_STRANGE | {"convolution"})
    )
    text = (
        "".join(op.code for op in decoded.ops) if decoded.ops else str(operation or decoded.family)
    )
    return Told(
        text, product, attention, memory, patterns, any(op.op == "Div" for op in decoded.ops)
    )


_WORDS_SHOWN = 8  # of a name


_STRANGE = frozenset({"sort", "scatter", "cut", "unknown"})
