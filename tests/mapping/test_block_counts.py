"""How many blocks compute a matrix, beside a count of its tiles."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.mapping.order.launch_shapes import _grouped, _matrices, _needed, threads_fit

SIZES = st.integers(1, 40)
CLUSTERS = [(1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2)]


def tiles(size: int, side: int) -> int:
    """Counted one by one."""
    return len({at // side for at in range(size)})


@given(SIZES, SIZES, st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
def test_a_matrix_takes_a_block_for_each_tile_either_way_up(
    rows: int, columns: int, batch: int, high: int, wide: int, parts: int
) -> None:
    want, clustered = set(), set()
    for one, other in ((high, wide), (wide, high)):
        down, across = tiles(rows, one), tiles(columns, other)
        want.add(down * across * batch * parts)
        for a, b in CLUSTERS:
            if down >= a and across >= b:
                clustered.add(tiles(down, a) * a * tiles(across, b) * b * batch * parts)
    matrix = (rows, columns, batch)
    assert _needed(matrix, (high, wide), parts, persistent=False) == want
    assert _needed(matrix, (high, wide), parts, persistent=True) == clustered


def test_of_unknown_rows_it_is_a_multiple_of_the_tiles_along_the_columns() -> None:
    assert _needed((-1, 100, 1), (64, 32), 3, persistent=False) == {-4 * 3, -2 * 3}


@pytest.mark.parametrize(
    ("deep", "parts", "found"),
    [
        (4, 1, [(10, 6, 4)]),
        (4, 2, [(10, 12, 2)]),
        (1, 1, []),
        (3, 2, []),
        (5, 1, []),  # does not divide the channels
    ],
)
def test_groups_of_channels_are_stacked(
    deep: int, parts: int, found: list[tuple[int, int, int]]
) -> None:
    assert _grouped(frozenset({(10, 24, 1)}), deep, parts) == found


def layer(*shapes: tuple[int, ...], kind: str = "gemm", reads: tuple[int, ...] = ()) -> Layer:
    inputs = (Tensor("x", reads, "Half"),) if reads else ()
    outputs = tuple(Tensor(f"y{at}", shape, "Half") for at, shape in enumerate(shapes))
    return Layer(0, "a", kind, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (layer((6, 5)), {(6, 5, 1)}),
        (layer((2, 6, 5)), {(12, 5, 1), (6, 5, 2)}),
        (layer((2, 3, 6, 5)), {(36, 5, 1), (60, 3, 1), (6, 5, 6)}),
        (layer((2, 3, 6, 5), kind="convolution"), {(60, 3, 1)}),
        (layer((2, 3, 6, 5), kind="pooling"), {(60, 3, 1)}),
        (layer((2, 3, 6), kind="convolution"), {(6, 6, 1), (3, 6, 2)}),
        (layer((-1, 5)), {(-1, 5, 1)}),
        (layer((5, -1)), set()),
        (layer((2, 5), (2, 7)), {(2, 5, 1), (2, 7, 1), (2, 12, 1)}),  # side by side
        (layer((2, 5), (3, 7)), {(2, 5, 1), (3, 7, 1)}),
        (layer((2, 5), (2, -1)), {(2, 5, 1)}),
    ],
)
def test_a_result_may_be_seen_as_these_matrices(
    one: Layer, found: set[tuple[int, int, int]]
) -> None:
    assert _matrices(one) == found


VECTORS, ROWS = (1, 2, 4, 8, 16), (1, 2, 4, 8)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 40), st.integers(1, 40))
def test_threads_cover_a_tensor_its_vectors_or_its_rows(
    shape: list[int], blocks: int, block: int
) -> None:
    size = math.prod(shape)
    covers = size % (blocks * block) == 0
    covers |= any(blocks == tiles(size, block * vector) for vector in VECTORS)
    rows = [math.prod(shape[:at]) for at in range(1, len(shape))]
    covers |= any(blocks == tiles(count, several) for count in rows for several in ROWS)
    assert threads_fit((blocks, 1, 1), block, layer(tuple(shape))) == covers


def test_without_threads_or_shapes_nothing_is_told() -> None:
    assert threads_fit((1, 1, 1), 0, layer((4,))) is None
    assert threads_fit((1, 1, 1), 4, layer((-1, 4))) is None
    assert threads_fit((1, 1, 1), 4, layer()) is None
    assert threads_fit((1, 1, 1), 4, layer((4,), (0, 4))) is None
    # what it reads counts too
    assert threads_fit((2, 2, 2), 1, layer((3,))) is False
    assert threads_fit((2, 2, 2), 1, layer((3,), reads=(8,))) is True
