"""Whether a launch has as many blocks as a layer's output needs, where the kernel's name states the tile that one block computes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from nsysmap.base.table import BoolArray
from nsysmap.engine.model import Layer

_TILED = re.compile(r"cudnn_generated_.*?_(?:splitk_(?P<parts>\d+)_)?(?P<rows>\d+)x(?P<columns>\d+)x\d+_")
"""cuDNN's generated kernels: rows x columns of the output in one block, whose sum over the depth ``parts`` blocks share.
140 of 140 launches in graphs of TensorRT for RTX have as many blocks as the layer's output has tiles; of other layers of the same engines
that have another output 8 to 25 %, and with the file for batch 8 none of 54."""

_IMAGE = 4  # dimensions: images x channels x height x width


def tiles_agree(kernels: Sequence[tuple[str, tuple[int, int, int]]], layers: Sequence[Layer]) -> tuple[BoolArray, BoolArray]:
    """For each kernel (its name and grid) and layer: whether the blocks are as many as needed, and whether that can be told."""
    agree = np.zeros((len(kernels), len(layers)), np.bool_)
    told = np.zeros_like(agree)
    outputs: dict[frozenset[tuple[int, int, int]], list[int]] = {}
    for at, layer in enumerate(layers):
        if matrices := _matrices(layer):
            outputs.setdefault(matrices, []).append(at)
    for number, (name, grid) in enumerate(kernels):
        tile = _TILED.match(name)
        if tile is None:
            continue
        rows, columns, parts = (int(tile[group] or 1) for group in ("rows", "columns", "parts"))
        for matrices, places in outputs.items():
            told[number, places] = True
            agree[number, places] = any(_covers(math.prod(grid), matrix, (rows, columns), parts) for matrix in matrices)
    return agree, told


def _covers(blocks: int, matrix: tuple[int, int, int], tile: tuple[int, int], parts: int) -> bool:
    """Whether so many blocks compute a batch of matrices (rows, columns, how many; rows -1 where the file does not tell)."""
    rows, columns, batch = matrix
    for high, wide in (tile, tile[::-1]):
        if rows < 0:
            if blocks % (-(-columns // wide) * parts) == 0:
                return True
        elif blocks == -(-rows // high) * -(-columns // wide) * batch * parts:
            return True
    return False


def _matrices(layer: Layer) -> frozenset[tuple[int, int, int]]:
    """What the outputs of a layer are as batches of matrices, in each way that a product or a convolution may see them."""
    found = set()
    shapes = [tensor.dimensions for tensor in layer.outputs if tensor.dimensions]
    for shape in shapes:
        whole = math.prod(shape) if min(shape) > 0 else -1
        for channel in (shape[-1], shape[1] if len(shape) == _IMAGE else shape[-1]):
            if channel > 0:
                found.add((whole // channel if whole > 0 else -1, channel, 1))
        if len(shape) > 2 and whole > 0:
            found.add((shape[-2], shape[-1], whole // (shape[-2] * shape[-1])))
    if len(shapes) > 1 and len({shape[:-1] for shape in shapes}) == 1 and min(min(shape) for shape in shapes) > 0:
        found.add((math.prod(shapes[0][:-1]), sum(shape[-1] for shape in shapes), 1))
    return frozenset(found)
