"""Tells whether a launch has as many blocks as a layer's output needs, if the kernel's name states
the tile of one block, and whether the threads of compiled code cover the layer's tensors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nsysmap.core.table import BoolArray
from nsysmap.inputs.engine.model import Layer

_TILED = re.compile(
    r"cudnn_generated_(?:\w*?_sm(?P<arch>\d+)_)?\w*?_(?:splitk_(?P<parts>\d+)_)?(?P<rows>\d+)x(?P<columns>\d+)x\d+_"
)
"""cuDNN's generated kernels: rows x columns of the output in one block, whose sum over the depth
``parts`` blocks share.
"""

_PERSISTENT = 90
"""From compute capability 9.0 on a block computes tile after tile: no more are launched than run at
once …
"""
_WAVE = 60
"""… which are at least so many: of the GPUs that have it, H20 is the smallest, with 78 SMs;
clusters do not fill all of them (seen: 104 to 132 of 132).
"""
_CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2))
"""On such GPUs the tiles along each side are rounded up to whole clusters of blocks."""

_VECTORS, _ROWS = (1, 2, 4, 8, 16), (1, 2, 4, 8)
"""Elements that one thread, and rows that one block of Myelin's code computes."""

_ON_IMAGES = ("convolution", "deconvolution", "pooling")
_CHANNELS_SECOND = 4  # dimensions: images x channels x height x width, or with depth before them


def tiles_agree(
    kernels: Sequence[tuple[str, tuple[int, int, int]]], layers: Sequence[Layer]
) -> tuple[BoolArray, BoolArray]:
    """For each kernel (its name and grid) and layer: whether the number of blocks is the one
    needed, and whether that can be determined.
    """
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
        persistent, blocks = int(tile["arch"] or 0) >= _PERSISTENT, math.prod(grid)
        for matrices, places in outputs.items():
            needed = _blocks(matrices, grid[2], (rows, columns), parts, persistent)
            divides = any(one < 0 and blocks % -one == 0 for one in needed)
            agree[number, places] = blocks in needed or divides
            a_wave = persistent and blocks >= _WAVE and max(needed) > blocks
            unknown = persistent and min(needed) < 0
            told[number, places] = blocks in needed or not (a_wave or unknown)
    return agree, told


def threads_fit(grid: tuple[int, int, int], block: int, layer: Layer) -> bool | None:
    """Whether a launch of so many blocks of ``block`` threads covers a tensor of the layer or its
    rows, as code compiled for it does; None if that cannot be determined.
    """
    shapes = [tensor.dimensions for tensor in (*layer.outputs, *layer.inputs) if tensor.dimensions]
    shapes = [shape for shape in shapes if min(shape) > 0]
    if (
        not shapes
        or block <= 0
        or any(not t.dimensions or min(t.dimensions) <= 0 for t in layer.outputs)
    ):
        return None
    blocks = math.prod(grid)
    for shape in shapes:
        size = math.prod(shape)
        rows = {math.prod(shape[:at]) for at in range(1, len(shape))}
        if (
            size % (blocks * block) == 0
            or any(blocks == -(-size // (block * vector)) for vector in _VECTORS)
            or any(blocks == -(-count // several) for count in rows for several in _ROWS)
        ):
            return True
    return False


@lru_cache(maxsize=1 << 15)
def _blocks(
    matrices: frozenset[tuple[int, int, int]],
    deep: int,
    tile: tuple[int, int],
    parts: int,
    persistent: bool,
) -> frozenset[int]:
    """The numbers of blocks that may compute any of these matrices, given how many matrices are
    stacked along the grid. Cached, because a few launches recur in each inference and for each
    engine file tried.
    """
    return frozenset(
        need
        for matrix in (*matrices, *_grouped(matrices, deep, parts))
        for need in _needed(matrix, tile, parts, persistent=persistent)
    )


def _grouped(
    matrices: frozenset[tuple[int, int, int]], deep: int, parts: int
) -> list[tuple[int, int, int]]:
    """The same for a convolution whose channels are in groups: each group is a matrix of its own,
    stacked along the grid.
    """
    groups = deep // parts
    return [
        (rows, columns // groups, batch * groups)
        for rows, columns, batch in matrices
        if groups > 1 and columns % groups == 0
    ]


def _needed(
    matrix: tuple[int, int, int], tile: tuple[int, int], parts: int, *, persistent: bool
) -> set[int]:
    """The numbers of blocks that may compute a batch of matrices (rows, columns, count). For
    unknown rows: the number they are a multiple of, negated.
    """
    rows, columns, batch = matrix
    found = set()
    for high, wide in (tile, tile[::-1]):
        across = -(-columns // wide)
        if rows < 0:
            found.add(-across * parts)
            continue
        down = -(-rows // high)
        for cluster in _CLUSTERS if persistent else _CLUSTERS[:1]:
            sides = [
                -(-count // several) * several
                for count, several in zip((down, across), cluster, strict=True)
                if count >= several
            ]
            if len(sides) == len(cluster):
                found.add(math.prod(sides) * batch * parts)
    return found


def _matrices(layer: Layer) -> frozenset[tuple[int, int, int]]:
    """The outputs of a layer as batches of matrices, in each way that a product or a convolution
    may view them.
    """
    found = set()
    shapes = [tensor.dimensions for tensor in layer.outputs if tensor.dimensions]
    for shape in shapes:
        whole = math.prod(shape) if min(shape) > 0 else -1
        image = len(shape) >= _CHANNELS_SECOND
        channels = (
            {shape[1]}
            if image and layer.kind in _ON_IMAGES
            else {shape[-1], shape[1] if image else shape[-1]}
        )
        for channel in channels - {-1, 0}:
            found.add((whole // channel if whole > 0 else -1, channel, 1))
        if len(shape) > 2 and whole > 0 and not (image and layer.kind in _ON_IMAGES):
            found.add((shape[-2], shape[-1], whole // (shape[-2] * shape[-1])))
    if (
        len(shapes) > 1
        and len({shape[:-1] for shape in shapes}) == 1
        and min(min(shape) for shape in shapes) > 0
    ):
        found.add((math.prod(shapes[0][:-1]), sum(shape[-1] for shape in shapes), 1))
    return frozenset(found)
