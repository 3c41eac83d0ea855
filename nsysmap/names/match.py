"""Says whether a kernel's name can be a given tactic, and how well a kernel can belong to a given
layer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from nsysmap.names.families import operation_of
from nsysmap.names.layers import layer_ops, split_layer_name
from nsysmap.names.model import KernelName, Op
from nsysmap.names.myelin import read_myelin
from nsysmap.names.onnx_words import MAIN_KINDS
from nsysmap.names.tactics import launch_suffix

_MYELIN_SUFFIX = re.compile(r"(?:_com)?(?:_vec)?$")
_NOT_LAUNCHED = ("", "_fused", "_by_fusion_tactic")
_FUSED, _BY_FUSION = "_fused", "_by_fusion_tactic"
_FP8 = frozenset(("e4m3", "e5m2"))


def matches_tactic(kernel: str, tactic: str) -> bool:
    """True if a kernel of this name can be the inspector's TacticName; two different tactics never
    match each other.
    """
    if kernel == tactic:
        return bool(kernel)
    if not kernel or not tactic:
        return False
    if tactic.startswith(("__my", "_gem")):
        return "_com" in kernel and _without_com(kernel) in (tactic, tactic + "_vec")
    if tactic.endswith(_BY_FUSION):
        return kernel.endswith(_FUSED) and _same_words(
            kernel.removesuffix(_FUSED), tactic.removesuffix(_BY_FUSION)
        )
    launch = launch_suffix(kernel)
    launched = launch not in _NOT_LAUNCHED and launch_suffix(tactic) in _NOT_LAUNCHED
    base = kernel[: len(kernel) - len(launch)] if launched else kernel
    return _same_words(base, tactic)


NAMES_NO_KERNEL = frozenset(("__myelin_CASK_STUB",))
"""TacticNames that stand for whichever kernel of a library is chosen at run time (TensorRT for
RTX).
"""


def is_generated(name: str) -> bool:
    """Whether a kernel's or a tactic's name is the symbol of code that Myelin compiled: its
    operations and a hash.
    """
    return name.startswith(("__my", "_gem")) and name not in NAMES_NO_KERNEL


def same_operations(kernel: str, tactic: str) -> bool:
    """Whether two symbols of compiled code have the same operations, whatever their hashes."""
    return (
        is_generated(kernel)
        and is_generated(tactic)
        and kernel.partition("_0x")[0] == tactic.partition("_0x")[0]
    )


def _without_com(kernel: str) -> str:
    suffix = _MYELIN_SUFFIX.search(kernel)
    start = suffix.start() if suffix else len(kernel)
    return kernel[:start] + kernel[start:].replace("_com", "")


def _same_words(kernel: str, tactic: str) -> bool:
    """True if the words are equal; nsys's ``f8`` stands for the inspector's ``e4m3`` or ``e5m2``
    (openpi, TensorRT 10).
    """
    if kernel == tactic:
        return True
    if "f8" not in kernel:
        return False
    ours, theirs = kernel.split("_"), tactic.split("_")
    return len(ours) == len(theirs) and all(
        a == b or (a == "f8" and b in _FP8) for a, b in zip(ours, theirs, strict=True)
    )


_WITH_EPILOGUE = ("fused", "by_fusion_tactic")
_NO_KERNEL = frozenset(("shape", "signal", "constant", "noop"))
_SUITS: dict[str, dict[str, float]] = {
    # layer kind: what a kernel computes, and how well that suits
    "convolution": {"convolution": 0.95, "gemm": 0.5, "deconvolution": 0.3, "gemv": 0.3, "pooling": 0.1, "shuffle": 0.25, "reformat": 0.25},  # noqa: E501
    "deconvolution": {"deconvolution": 0.95, "convolution": 0.7, "gemm": 0.4, "reformat": 0.1},
    "gemm": {"gemm": 0.95, "gemv": 0.95, "reduce": 0.5, "convolution": 0.15},
    "attention": {"attention": 0.95, "gemm": 0.2, "softmax": 0.2},
    "pointwise": {"pointwise": 0.95, "copy": 0.2, "cast": 0.4, "constant": 0.2, "reformat": 0.1},
    "activation": {"pointwise": 0.9, "activation": 0.95},
    "scale": {"pointwise": 0.85, "normalization": 0.5},
    "softmax": {"softmax": 0.95, "reduce": 0.3},
    "normalization": {"normalization": 0.95, "reduce": 0.4, "pointwise": 0.2},
    "reduce": {"reduce": 0.95, "pooling": 0.4},
    "pooling": {"pooling": 0.95, "reduce": 0.4},
    "reformat": {"reformat": 0.95, "shuffle": 0.8, "copy": 0.7, "cast": 0.6, "quantize": 0.6, "pointwise": 0.1},  # noqa: E501
    "shuffle": {"shuffle": 0.95, "reformat": 0.8, "copy": 0.8, "gather": 0.2},
    "slice": {"slice": 0.95, "copy": 0.7, "reformat": 0.5, "gather": 0.4},
    "concat": {"concat": 0.95, "copy": 0.8, "reformat": 0.7},
    "gather": {"gather": 0.95, "slice": 0.3, "copy": 0.3},
    "scatter": {"scatter": 0.95, "copy": 0.4},
    "resize": {"resize": 0.95},
    "topk": {"topk": 0.95, "reduce": 0.4, "gather": 0.3, "scan": 0.3},
    "nms": {"nms": 0.95, "topk": 0.7, "gather": 0.4, "scan": 0.4, "reduce": 0.3},
    "cast": {"cast": 0.95, "reformat": 0.8, "copy": 0.7, "pointwise": 0.4},
    "quantize": {"quantize": 0.95, "reformat": 0.9, "cast": 0.6, "pointwise": 0.5},
}  # fmt: skip


def affinity(kernel: KernelName, layer_kind: str, layer_name: str, onnx: Sequence[str]) -> float:
    """How well a kernel fits a layer of that kind, name and ONNX nodes: 0 impossible, 0.5
    undecided, 1 certain.
    """
    if layer_kind in _NO_KERNEL:
        return 0.02
    operation = str(kernel.fields.get("operation", "unknown"))
    if kernel.family == "myelin":
        return _myelin_affinity(kernel, layer_kind, layer_name)
    if layer_kind in ("unknown", "other"):
        kinds = [op.cls for op in layer_ops(list(onnx))]
        told = next((kind for kind in MAIN_KINDS if kind in kinds), kinds[0] if kinds else "")
        return (
            affinity(kernel, told, layer_name, ())
            if told in _SUITS
            else (0.05 if layer_name.startswith("__mye") else 0.5)
        )
    if layer_kind == "myelin_kernel" or layer_name.startswith("__myl_"):
        return _fused_affinity(kernel, operation, layer_name, onnx)
    if layer_kind == "foreign_node":
        if kernel.family == "cudnn":  # which Myelin calls, and TensorRT's own layers do not
            return 0.65
        return {
            "gemm": 0.65,
            "gemv": 0.65,
            "convolution": 0.5,
            "attention": 0.5,
            "unknown": 0.5,
        }.get(operation, 0.15)
    if layer_kind == "plugin":
        return _plugin_affinity(kernel, operation, layer_name)
    if operation == "unknown":
        return 0.4
    if layer_kind == "gemm" and "fused_nodes" in kernel.fields:
        return 0.2  # a plain product fuses nothing
    if layer_kind == "gemm" and kernel.fields.get("launcher") in _WITH_EPILOGUE:
        return 0.5  # seen only in layers whose name says that an epilogue is generated
    # many a layer changes its own tensors' layout before or behind its work
    return _SUITS.get(layer_kind, {}).get(
        operation, 0.15 if operation in ("shuffle", "reformat", "copy") else 0.02
    )


_PLUGIN_FAMILIES = frozenset(
    (
        "cuda",
        "unknown",
        "cub",
        "tensorrt-llm",
        "plugin",
        "triton",
        "flash-attention",
        "fmha",
        "cusparse",
    )
)
_PLUGIN_WORD = re.compile(r"[A-Z]?[a-z]{3,}")
_NO_WORDS = frozenset(("plugin", "kernel", "layer", "dynamic", "custom"))
_MATRIX = ("gemm", "gemv", "convolution", "attention")
_PLUGIN_MATRIX = {
    ("attention", "gemm"): 0.6,
    ("attention", "gemv"): 0.6,
    ("gemm", "attention"): 0.2,
    ("gemv", "attention"): 0.2,
}


def _plugin_affinity(kernel: KernelName, operation: str, layer_name: str) -> float:
    """How well a kernel fits a plugin: only the plugin's own name, or that no other owner is known,
    supports it.
    """
    plugin = layer_name.rsplit("/", 1)[-1]
    wanted = operation_of(plugin)
    if operation == "communication" or wanted == "communication":
        return 0.95 if operation == wanted else 0.1
    named = kernel.name.lower()
    if any(
        word.lower() in named
        for word in _PLUGIN_WORD.findall(plugin)
        if word.lower() not in _NO_WORDS
    ):
        return 0.95
    if operation != "unknown" and wanted == operation:
        return 0.9
    if wanted in _MATRIX and operation in _MATRIX:
        return _PLUGIN_MATRIX.get((wanted, operation), 0.9)
    if wanted in _MATRIX and operation == "reduce":
        return 0.6  # split-K
    if operation != "unknown" and wanted != "attention":
        return 0.45 if wanted == "unknown" and kernel.family in _PLUGIN_FAMILIES else 0.3
    return 0.55 if kernel.family in _PLUGIN_FAMILIES else 0.3


def _fused_affinity(
    kernel: KernelName, operation: str, layer_name: str, onnx: Sequence[str]
) -> float:
    """A library kernel for a layer that Myelin generated: it must hold a matrix product or a
    convolution.
    """
    ops = _generated_ops(split_layer_name(layer_name).node)
    classes = {op.cls for op in ops or ()}
    wanted = {"gemm": "gemm", "gemv": "gemm", "convolution": "convolution"}.get(operation)
    if operation == "unknown":
        return 0.2
    if wanted is None:
        return 0.02
    if (
        wanted in classes
        and ops is not None
        and kernel.family == "cudnn"
        and "knob" in kernel.fields
    ):
        return 0.95 if _fused_nodes(ops) == kernel.fields.get("fused_nodes", 0) else 0.3
    if wanted in classes:
        return 0.95 if kernel.fields.get("launcher") in _WITH_EPILOGUE else 0.7
    if "cut" in classes or not classes:
        return 0.4
    named = any(op.cls == wanted for op in layer_ops(list(onnx)))
    return 0.1 if named else 0.02


@lru_cache(maxsize=8192)
def _generated_ops(node: str) -> tuple[Op, ...] | None:
    """The operations that a generated layer's name lists, None if it is no such name: remembered,
    since every kernel is held against every layer.
    """
    read = read_myelin(node)
    return tuple(read.ops.ops) if read is not None else None


def _fused_nodes(ops: Sequence[Op]) -> int | None:
    """How many nodes cuDNN's kernel for these operations fuses: all but the product, casts and data
    movement; None: not all are listed.
    """
    if any(op.cls in ("cut", "unknown") for op in ops):
        return None
    return sum(op.cls not in ("gemm", "convolution", "cast", "data movement") for op in ops)


def _myelin_affinity(kernel: KernelName, layer_kind: str, layer_name: str) -> float:
    if layer_kind == "foreign_node":
        return 0.95
    node = split_layer_name(layer_name).node
    ops = _generated_ops(node) if node.startswith(("__my", "_gem")) else None
    if ops is not None:
        return 1.0 if [op.code for op in kernel.ops] == [op.code for op in ops] else 0.03
    classes = {op.cls for op in kernel.ops}
    if layer_kind in ("gemm", "convolution", "attention"):
        if layer_kind in classes:
            return 0.6
        return (
            0.3
            if any(pattern.name == "matmul-by-reduction" for pattern in kernel.patterns)
            and layer_kind == "gemm"
            else 0.03
        )
    if layer_kind in ("unknown", "other", "myelin_kernel"):
        return 0.4
    return 0.1 if "_myl" in layer_name else 0.02
