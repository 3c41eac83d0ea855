"""Reads the kernels of a Myelin region, in launch order, as parts such as the k-th gemm, LayerNorm
or softmax, from their names alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from nsysmap.core.records import dataclass
from nsysmap.names.decode import decode
from nsysmap.names.fusion import NORM_PATTERNS, Told, part_words, told_by_name

_STEPS = 4  # kernels between the halves of a norm or softmax
_BEGINS = {
    "layernorm-statistics": "layernorm",
    "rmsnorm-statistics": "rmsnorm",
    "softmax-statistics": "softmax",
}
_NORM_ENDS = frozenset({"layernorm-affine", "norm-scale"})
_WHOLE = (NORM_PATTERNS - _NORM_ENDS - frozenset(_BEGINS)) | {"softmax", "log-softmax"}
_GELU = frozenset({"gelu-erf", "gelu-tanh", "geglu"})
# what goes along with something else: a kernel is called by these only where it does nothing more
# telling
_BESIDE = frozenset({
    "residual-add", "bias", "bias-or-residual", "clip", "dequantize", "floor-division",
    "fp8-quantize", "int8-quantize",
    "int8-quantize-dequantize", "scale-shift-relu", "pure-cast", "pure-data-movement",
    "data-movement-and-cast",
})  # fmt: skip
_PRODUCTS = {
    "gemm": "gemm",
    "gemv": "gemm",
    "convolution": "convolution",
    "deconvolution": "deconvolution",
}


@dataclass(frozen=True)
class PatternPart:
    """One or more kernels that together perform one operation."""

    # what: gemm, layernorm, softmax, attention, … a pattern of docs/names.md, or the operations one
    # by one
    word: str
    number: int  # which of the region's parts of that word, from 1, by their first kernels
    places: tuple[int, ...]  # of its kernels in the region, ascending

    @property
    def name(self) -> str:
        """The part's name, such as `layernorm #3`."""
        return f"{self.word} #{self.number}"


@dataclass(frozen=True)
class _Kernel:
    told: Told
    word: str
    product: bool
    begins: str | None  # the first half of that
    ends: frozenset[str]  # can be the second half of these
    sums: bool  # adds up what a split matrix product left: belongs to the product before it


def pattern_parts(names: Sequence[str], streams: Sequence[int]) -> list[PatternPart]:
    """The parts of a region in launch order; ``names`` and ``streams`` are those of its kernels in
    one inference, in launch order.

    The halves of a LayerNorm, RMSNorm or softmax that follow one another on a stream are one part,
    and so are a matrix product and the kernel that adds up its split sums.  Every kernel is in
    exactly one part.
    """
    kernels = [_kernel(name) for name in names]
    head = list(range(len(kernels)))
    words = [kernel.word for kernel in kernels]
    for stream in set(streams):
        _join([place for place, one in enumerate(streams) if one == stream], kernels, head, words)
    members: dict[int, list[int]] = {}
    for place, first in enumerate(head):
        members.setdefault(first, []).append(place)
    numbers: Counter[str] = Counter()
    parts = []
    for first, places in sorted(members.items()):
        numbers[words[first]] += 1
        parts.append(PatternPart(words[first], numbers[words[first]], tuple(places)))
    return parts


def pattern_word(name: str) -> str:
    """The word for a single kernel: its most specific pattern, otherwise its operation, otherwise
    its operations listed.
    """
    return _kernel(name).word


def _join(
    places: Sequence[int], kernels: Sequence[_Kernel], head: list[int], words: list[str]
) -> None:
    """Sets the head of each kernel that belongs to the part of an earlier kernel on the same
    stream.
    """
    for at, place in enumerate(places):
        kernel = kernels[place]
        if kernel.sums and at and kernels[places[at - 1]].product:
            head[place] = head[places[at - 1]]
        if kernel.begins is None or head[place] != place:
            continue
        for later in places[at + 1 : at + 1 + _STEPS]:
            if kernel.begins in kernels[later].ends and head[later] == later:
                head[later], words[place] = place, kernel.begins
                break
            if not kernels[later].told.memory:
                break


@lru_cache(maxsize=4096)
def _kernel(name: str) -> _Kernel:
    told, decoded = told_by_name(name), decode(name)
    operation = str(decoded.fields.get("operation", ""))
    classes = {op.cls for op in decoded.ops}
    product = _PRODUCTS.get(operation) or next(
        (cls for cls in ("gemm", "convolution") if cls in classes), None
    )
    begins = next((word for half, word in _BEGINS.items() if half in told.patterns), None)
    single = not told.patterns & _WHOLE and product is None and not told.attention
    ends: set[str] = set()
    if single and told.divides:
        ops = [op.op for op in decoded.ops]
        if told.patterns & _NORM_ENDS or ("Sqrt" in ops and "ReduceMean" not in ops):
            ends |= {"layernorm", "rmsnorm"}
        elif not told.patterns & _GELU:
            ends.add("softmax")
    if told.attention:
        word = "attention"
    elif product is not None:
        word = product
    elif operation in ("softmax", "normalization"):
        word = operation
    else:
        found = [pattern.name for pattern in decoded.patterns]
        telling = [one for one in found if one not in _BESIDE]
        word = (telling or [one for one in found if one != "residual-add"] or [""])[
            0
        ] or _plain_words(name)
    sums = operation == "reduce" and "splitk" in name.lower()
    return _Kernel(
        told, word, product is not None, begins if single else None, frozenset(ends), sums
    )


def _plain_words(name: str) -> str:
    """The operations listed one by one, if nothing but an addition is recognised in them."""
    decoded = decode(name)
    words = [op.word for op in decoded.ops]
    return " ".join(words[:8]) + (" …" if len(words) > 8 else "") if words else part_words(decoded)
