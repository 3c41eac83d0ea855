"""Decodes the names of kernels, tactics, layers and ranges: what a name says, and whether two names
can mean the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from nsysmap.names.layers import layer_kind, normalized_range_text, read_layer, split_layer_name
from nsysmap.names.model import KernelName, Op, Pattern, Reading, compiled
from nsysmap.names.myelin import PRODUCTS, known_codes, read_myelin, read_ops

if TYPE_CHECKING:
    from nsysmap.core.table import Table
    from nsysmap.names.match import affinity, matches_tactic

__all__ = [
    "KernelName",
    "Op",
    "Pattern",
    "affinity",
    "decode",
    "layer_kind",
    "matches_tactic",
    "names_table",
    "normalized_range_text",
    "split_layer_name",
    "summary",
]

_ARCH_WORD = r"(?:sm_?\d+[af]?|volta|turing|ampere|maxwell|pascal|kepler|hopper|ada|blackwell)"
_TACTIC = (
    rf"(?:trt_|(?:_5[x0-9]_)?cudnn_(?:infer_|train_)?)?{_ARCH_WORD}_(?=[A-Za-z0-9])|trt_conv_act_pool_|"
    r"cutlass\w{0,2}_|nvjet_|cudnn_|fmha_|fused_multihead_|cublas_|xmma_|cask_"
)
_FUNCTION = (
    r"(?!onnx::|ExecutionContext::)(?:[A-Za-z_][\w]*|<unnamed>|\(anonymous namespace\))"
    r"(?:::|<(?!\d)|<\d|\((?!Unnamed)(?:[^()]*[*&)]|.*\)$))"
)
_DOMAIN = (
    r"(TensorRT|myelin-exec|cuBLAS|cuBLASLt|cuDNN|NCCL|cuFFT|cuSPARSE|TensorRT-LLM|)\s?:(?!:)\s?"
)
_API = r"(ExecutionContext::|myelin(?:Graph|Tensor)\w+|cublas(?:Lt)?[A-Z]\w+|cudnn[A-Z]\w+|nccl(?!(?:Dev)?Kernel_)[A-Z]\w+$|Nv[A-Z]\w+::)"  # noqa: E501
_LAST_CODE = r"[A-Z][a-z0-9]*$"
# XLA's
_FUSION = r"(?:loop|input|wrapped|gemm|transpose|concatenate|scatter)_\w*fusion|fusion(?:_\d+)?$"
_CALLERS = ("ExecutionContext", "myelin", "cublas", "cudnn", "nccl", "Nv")
_SYMBOLS = ("triton_", "nccl", "_Z", "nvkernel_", "__omp_offloading_")
_CUT = ("…", "...")
# names, at some 1.2 kB: a program has hundreds, and each is asked about three or four times
_REMEMBERED = 1 << 19
_LONGEST_REMEMBERED = 4096  # characters: names of more are no kernels' of real programs
_MATRIX = frozenset(("gemm", "convolution", "attention", "cut", "unknown"))


def decode(name: str) -> KernelName:
    """The meaning of a kernel, tactic, layer or range name; never raises and never guesses, in time
    linear in the name's length.
    """
    return _remembered(name) if len(name) <= _LONGEST_REMEMBERED else _decode(name)


def _decode(name: str) -> KernelName:
    return _cut(name) if name.endswith(_CUT) and len(name) > 3 else _decode_whole(name)


_remembered = lru_cache(maxsize=_REMEMBERED)(_decode)


def _decode_whole(name: str) -> KernelName:
    if name.startswith(("/", "PWN(")):
        return _layer(name) or _nothing(name)
    if name.startswith(("__my", "_gem")):
        found = _decode_myelin(name)
        if found is not None:
            return found
    domain = compiled(_DOMAIN).match(name) if ":" in name else None
    if domain is not None and len(name) > domain.end():
        return _in_domain(name, domain)
    if compiled(_TACTIC).match(name) and not _is_template(name):
        from nsysmap.names.tactics import read_tactic

        return _from_reading(name, read_tactic(name))
    if name.startswith(_CALLERS) and compiled(_API).match(name):
        return _plain(name, "api", "range", {"function": name.strip()})
    if name.startswith(_SYMBOLS) and (symbol := _symbol(name)) is not None:
        return symbol
    if _is_function(name):
        from nsysmap.names.cpp import read_cpp

        return _from_reading(name, read_cpp(name))
    layer = _layer(name)
    if layer is not None and (layer.family != "layer" or not compiled(_FUSION).match(name)):
        return layer
    if name.isidentifier():
        if known_codes(name):
            ops = read_ops(name)
            codes = tuple(op.code for op in ops.ops)
            return KernelName(
                name,
                "myelin",
                "unknown",
                ops.ops,
                ops.generation,
                ops.patterns,
                {},
                _tensor_cores(ops.ops, None),
                "",
                codes,
            )
        symbol = _symbol(name)
        if symbol is not None:
            return symbol
    return _nothing(name)


def _is_template(name: str) -> bool:
    """True if what stands before a parameter list is C++, as in
    ``cutlass__5x_cudnn::Kernel<cutlass_tensorop_…>(…)``.
    """
    if "<" not in name and "::" not in name:
        return False
    head = name.partition("(")[0]
    return "<" in head or "::" in head


def _is_function(name: str) -> bool:
    return name.startswith("void ") or (
        ("(" in name or "<" in name or "::" in name) and compiled(_FUNCTION).match(name) is not None
    )


def _symbol(name: str) -> KernelName | None:
    from nsysmap.names.symbols import read_symbol

    reading = read_symbol(name)
    return _from_reading(name, reading) if reading is not None else None


def _layer(name: str) -> KernelName | None:
    layer = read_layer(name)
    if layer is None:
        return None
    return KernelName(
        name,
        layer.family,
        layer.kind,
        layer.ops,
        None,
        (),
        layer.fields,
        layer.tensor_cores,
        layer.rest,
        (name,),
    )


def _nothing(name: str) -> KernelName:
    return KernelName(
        name, "unknown", "unknown", (), None, (), {}, "unknown", name, (name,) if name else ()
    )


def _cut(name: str) -> KernelName:
    """A name that a table of nsys cut short: its last word may be half a word, so it is left out
    where it says nothing whole.
    """
    base = name.rstrip("….")
    inner = _decode_whole(base)
    if inner.family == "myelin" and (
        inner.rest or (inner.generation is None and inner.kind == "range")
    ):
        base = compiled(_LAST_CODE).sub("", base)
        inner = _decode_whole(base)
    elif compiled(_TACTIC).match(base) and "_" in base:
        base = base[: base.rindex("_")]
        inner = _decode_whole(base)
    rest = "" if _is_function(base) else inner.rest
    fields: dict[str, str | int] = {**inner.fields, "cut": "yes"}
    pieces = (*inner.pieces, name[len(base) :])
    return KernelName(
        name,
        inner.family,
        inner.kind,
        inner.ops,
        inner.generation,
        inner.patterns,
        fields,
        inner.tensor_cores,
        rest,
        pieces,
    )


def _decode_myelin(name: str) -> KernelName | None:
    found = read_myelin(name)
    if found is None:
        return None
    ops = found.ops
    tensor_cores = _tensor_cores(ops.ops, found.fields.get("instruction"))
    return KernelName(
        name,
        "myelin",
        found.kind,
        ops.ops,
        ops.generation,
        ops.patterns,
        found.fields,
        tensor_cores,
        found.rest,
        found.pieces,
    )


def _tensor_cores(ops: tuple[Op, ...], instruction: object) -> str:
    if instruction is not None:
        return "yes"
    return "unknown" if any(op.cls in _MATRIX for op in ops) or not ops else "no"


def _from_reading(name: str, reading: Reading) -> KernelName:
    return KernelName(
        name,
        reading.family,
        "kernel",
        (),
        None,
        (),
        reading.fields,
        reading.tensor_cores,
        " ".join(reading.rest),
        tuple(reading.pieces),
    )


def _plain(name: str, family: str, kind: str, fields: dict[str, str | int]) -> KernelName:
    return KernelName(name, family, kind, (), None, (), fields, "unknown", "", (name,))


def _in_domain(name: str, domain: re.Match[str]) -> KernelName:
    """A range as nsys stats prints it, ``domain:text``; the text is decoded by itself."""
    text = name[domain.end() :]
    inner = _plain(text, "nvtx", "range", {}) if compiled(_DOMAIN).match(text) else decode(text)
    family = "nvtx" if inner.family == "unknown" else inner.family
    rest = "" if family == "nvtx" else inner.rest
    fields: dict[str, str | int] = {"domain": domain[1], **inner.fields}
    return KernelName(
        name,
        family,
        "range",
        inner.ops,
        inner.generation,
        inner.patterns,
        fields,
        inner.tensor_cores,
        rest,
        (domain.group(), *inner.pieces),
    )


def __getattr__(name: str) -> object:
    """The functions that compare names, imported when first used: decoding one name must start at
    once.
    """
    if name in ("affinity", "matches_tactic"):
        from nsysmap.names import match as names_match

        return getattr(names_match, name)
    raise AttributeError(f"module 'nsysmap.names.decode' has no attribute {name!r}")


_SURE = {"likely": "likely ", "guess": "perhaps "}
"""The word put before a pattern with no better evidence than this."""


def pattern_words(decoded: KernelName) -> list[str]:
    """The product in a name and the patterns recognised in it, each once, with how sure that is
    unless it is confirmed.
    """
    words = list(
        dict.fromkeys(
            _SURE.get(pattern.evidence, "") + pattern.name for pattern in decoded.patterns
        )
    )
    products = (
        [op.cls for op in decoded.ops if op.cls in PRODUCTS][:1]
        if words and "attention" not in words
        else []
    )
    return products + words


def summary(decoded: KernelName, *, noun: bool = True) -> str:
    """A one-line summary of a decoded name; without the word kernel before its details unless
    ``noun``.
    """
    fields = decoded.fields
    if "of_layer" in fields:
        tensor = (
            f"{fields['direction']} tensor {fields['tensor']} of "
            if "tensor" in fields
            else "network tensor "
        )
        return f"reformat of {tensor}{fields['of_layer']}"
    if "first_node" in fields:
        first, last = fields["first_node"], fields["last_node"]
        return (
            f"Myelin region of {first}"
            if first == last
            else f"Myelin region from {first} to {last}"
        )
    operation = str(fields.get("operation", "unknown"))
    head = decoded.family
    if operation not in ("unknown", *head.split("-")) and not (
        decoded.family == "myelin" and operation == "myelin_kernel"
    ):
        head += f" {operation}"
    kind = f" {decoded.kind}" if decoded.kind not in ("unknown", head) else ""
    details = _details(decoded)
    if not details:
        return head + kind
    return f"{head}{kind if noun or decoded.kind != 'kernel' else ''}: {', '.join(details)}"


def tells_no_more(decoded: KernelName) -> bool:
    """Whether nothing is known about a kernel beyond its owner and its name as it stands."""
    return _details(decoded) == [decoded.name]


def _details(decoded: KernelName) -> list[str]:
    """What a name shows about its kernel besides owner and kind."""
    fields = decoded.fields
    details = pattern_words(decoded)
    if not details and decoded.ops:
        words = [op.word for op in decoded.ops]
        details = [" ".join(words[:12]) + (" …" if len(words) > 12 else "")]
    unknown = decoded.family == "cuda" and fields.get("operation", "unknown") == "unknown"
    if not details and "function" in fields and (unknown or not _types(fields)):
        details = [str(fields["function"])]
    details += _types(fields)
    details += [f"tile {fields['tile']}"] if "tile" in fields else []
    if "fused_nodes" in fields:
        count = fields["fused_nodes"]
        details.append(f"{count} fused node{'' if str(count) == '1' else 's'}")
    details += [str(fields["epilogue"])] if "epilogue" in fields else []
    return details


def _types(fields: dict[str, str | int]) -> list[str]:
    read, write, inside = (
        str(fields.get(f"{word}_type", "")) for word in ("input", "output", "accumulate")
    )
    if not read:
        return []
    moved = read if write in (read, "") else f"{read} to {write}"
    computed = str(fields.get("compute_type", ""))
    if computed and computed != read:
        moved += f", computes in {computed}"
    return [f"{moved}, accumulates in {inside}" if inside and inside != read else moved]


def names_table(names: Iterable[str]) -> Table:
    """Every distinct name of a kernel decoded once, in the order of first appearance, as the table
    ``names``.
    """
    from nsysmap.core.result_schema import NAMES
    from nsysmap.core.table import Table

    return Table.of_rows(NAMES, [_row(decode(name)) for name in dict.fromkeys(names)])


def _row(decoded: KernelName) -> dict[str, object]:
    if decoded.family == "layer":  # a kernel that is numbered like a layer
        decoded = _nothing(decoded.name)
    fields = decoded.fields
    return {
        "name": decoded.name,
        "family": decoded.family,
        "summary": summary(decoded),
        "ops": ",".join(op.word for op in decoded.ops) or None,
        "patterns": ",".join(pattern.name for pattern in decoded.patterns) or None,
        "arch": fields.get("arch"),
        "input_type": fields.get("input_type"),
        "accumulate_type": fields.get("accumulate_type"),
        "output_type": fields.get("output_type"),
        "tensor_cores": decoded.tensor_cores,
        "rest": decoded.rest,
    }
