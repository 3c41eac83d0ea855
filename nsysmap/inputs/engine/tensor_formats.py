"""The meaning of TensorRT's words for a tensor's type and memory layout: data type, channel
padding, bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from math import prod

from nsysmap.inputs.engine.model import Tensor

TYPE_BITS = {
    "FP64": 64, "FP32": 32, "TF32": 32, "FP16": 16, "BF16": 16, "FP8": 8, "FP4": 4, "E8M0": 8,
    "INT64": 64, "INT32": 32, "INT16": 16, "INT8": 8, "INT4": 4, "UINT64": 64, "UINT32": 32,
    "UINT16": 16, "UINT8": 8, "BOOL": 8,
}  # fmt: skip
"""Bits that one element of each data type takes in memory (TensorRT's nvinfer1::DataType)."""

FLOATING = frozenset({"FP64", "FP32", "TF32", "FP16", "BF16", "FP8", "FP4"})

_WORDS = {
    "double": "FP64", "fp64": "FP64", "float": "FP32", "fp32": "FP32", "float32": "FP32",
    "kfloat": "FP32", "tf32": "TF32",
    "half": "FP16", "fp16": "FP16", "float16": "FP16", "khalf": "FP16", "bfloat16": "BF16",
    "bf16": "BF16", "bfloat": "BF16",
    "fp8": "FP8", "fp8e4m3": "FP8", "fp8e5m2": "FP8", "float8": "FP8", "e4m3": "FP8", "fp4": "FP4",
    "nvfp4": "FP4", "fp4e2m1": "FP4",
    "e2m1": "FP4", "e8m0": "E8M0", "int64": "INT64", "int32": "INT32", "int16": "INT16",
    "int8": "INT8", "int4": "INT4",
    "uint64": "UINT64", "uint32": "UINT32", "uint16": "UINT16", "uint8": "UINT8", "bool": "BOOL",
}  # fmt: skip
_WIDTHS = {
    "two": 2,
    "four": 4,
    "eight": 8,
    "sixteen": 16,
    "thirty-two": 32,
    "thirty two": 32,
    "sixty-four": 64,
}

_WIDE = re.compile(
    r"\b(two|four|eight|sixteen|thirty[- ]two|sixty-four|\d{1,6})[ -]wide channel", re.IGNORECASE
)
_MULTIPLE = re.compile(r"\b(?:channel|c)\s*%\s*(\d{1,6})\s*==\s*0", re.IGNORECASE)
_EXACT = re.compile(r"\bchannel\s*==\s*(\d{1,6})", re.IGNORECASE)
_ROW_STRIDE = re.compile(r"\bcolumn stride\s*%\s*(\d{1,6})\s*==\s*0", re.IGNORECASE)
# elements: beyond any memory, and far from what 64 bits hold when some are added up
_LARGEST = 2**48
_SHAPES = 1 << 12  # an engine has few, however many layers


@lru_cache(maxsize=_SHAPES)
def data_type(text: str | None) -> str | None:
    """The data type that a format or type text names: FP16 for "Half" and "Row major linear FP16
    format"; None if it names none.
    """
    for word in re.findall(r"[A-Za-z][A-Za-z0-9]*", text or ""):
        known = _WORDS.get(word.lower())
        if known is not None:
            return known
    return None


@lru_cache(maxsize=_SHAPES)
def layout(text: str | None) -> str | None:
    """The format text where it says more than a data type ("Half" and "N/A due to dynamic shapes"
    do not).
    """
    if (
        not text
        or text.lower() in _WORDS
        or "dynamic shapes" in text
        or text in ("None", "Unknown format")
    ):
        return None
    return text


@lru_cache(maxsize=_SHAPES)
def channel_multiple(text: str | None) -> int:
    """The number of channels that the layout pads to a multiple of; 1 where it does not pad."""
    if not text:
        return 1
    wide = _WIDE.search(text)
    if wide:
        word = wide.group(1).lower()
        return int(word) if word.isdigit() else _WIDTHS[word]
    multiple = _MULTIPLE.search(text) or _EXACT.search(text)
    return max(int(multiple.group(1)), 1) if multiple else 1


def channel_axis(text: str | None, rank: int) -> int:
    """The axis that a vectorised layout pads: third from last, fourth with 3 spatial dimensions
    (TensorRT's TensorFormat), at least 0.
    """
    if rank <= 2:
        return rank - 1
    return max(rank - (4 if text and "3 spatial" in text else 3), 0)


def elements(tensor: Tensor) -> int | None:
    """How many elements the tensor has, without padding; None if an extent is not known."""
    return None if tensor.dimensions is None else _product(tensor.dimensions)


@lru_cache(maxsize=_SHAPES)
def _product(dimensions: tuple[int, ...]) -> int | None:
    if any(extent < 0 for extent in dimensions):
        return None
    number = prod(dimensions)
    return number if number <= _LARGEST else None


def tensor_bytes(tensor: Tensor) -> int | None:
    """The bytes of device memory that reading the tensor once touches, channel padding included;
    None if the file does not show them.

    An axis of stride 0 (a broadcast) is counted once.  Rows of DLA layouts ("column stride % 64 ==
    0") are rounded up to that many bytes.
    """
    if tensor.dimensions is None or tensor.datatype is None:
        return None
    return _bytes(tensor.dimensions, tensor.datatype, tensor.format, tensor.strides)


@lru_cache(maxsize=_SHAPES)
def _bytes(
    dimensions: tuple[int, ...], datatype: str, form: str | None, strides: tuple[int, ...] | None
) -> int | None:
    if datatype not in TYPE_BITS or any(extent < 0 for extent in dimensions):
        return None
    extents = list(dimensions)
    if strides is not None and len(strides) == len(extents):
        extents = [
            1 if stride == 0 and extent > 0 else extent
            for extent, stride in zip(extents, strides, strict=True)
        ]
    multiple = channel_multiple(form)
    if multiple > 1 and extents:
        axis = channel_axis(form, len(extents))
        extents[axis] = -(-extents[axis] // multiple) * multiple
    bits = TYPE_BITS[datatype]
    total = prod(extents)
    if total > _LARGEST:
        return None
    stride = _ROW_STRIDE.search(form or "")
    if stride and total and int(stride.group(1)):
        row = extents[-1]
        if "channel major" in (form or "").lower() and len(extents) >= 3:
            row *= extents[channel_axis(form, len(extents))]
        row_bytes, multiple = (row * bits + 7) // 8, int(stride.group(1))
        return total // row * (-(-row_bytes // multiple) * multiple)
    return (total * bits + 7) // 8


def total_bytes(tensors: Iterable[Tensor]) -> int | None:
    """The bytes of all these tensors, each by `tensor_bytes`; None if one is not known."""
    sizes = [tensor_bytes(tensor) for tensor in tensors]
    return None if None in sizes else sum(size for size in sizes if size is not None)
