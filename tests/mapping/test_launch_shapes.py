"""The blocks of a launch against the tiles of a layer's output."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.mapping.order.launch_shapes import threads_fit, tiles_agree

PRODUCT = "cudnn_generated_fort_native_sm80_matMul_knob_24_splitk_5_64x64x32_5_0"
CONVOLUTION = "cudnn_generated_fort_native_sm90_convFwd_pointwise_pointwise_knob_39_128x16x32_12_0"
POOLING = "cudnn_generated_resampleFwd_cutlass_sm80_knob_34_16x32x1_8x32x1_1_kernel0_0"


def _layer(*shapes: tuple[int, ...]) -> Layer:
    kind = "convolution" if shapes and len(shapes[0]) > 3 else "gemm"
    return Layer(0, "layer", kind, outputs=tuple(Tensor("out", shape) for shape in shapes))


def _answer(name: str, grid: tuple[int, int, int], layer: Layer) -> bool | None:
    agree, told = tiles_agree([(name, grid)], [layer])
    return bool(agree[0, 0]) if told[0, 0] else None


@pytest.mark.parametrize(
    ("name", "grid", "layer"),
    [
        (PRODUCT, (2, 12, 5), _layer((1, 128, 768))),
        (CONVOLUTION, (100, 1, 1), _layer((1, 64, 56, 56))),
        (POOLING, (196, 2, 1), _layer((1, 64, 56, 56))),
        (
            "cudnn_generated_fort_native_sm90_matMul_knob_55_64x64x64_8_0",
            (72, 1, 1),
            _layer((1, 128, 2304)),
        ),
        (
            "cudnn_generated_fort_native_sm90_matMul_knob_55_64x64x64_8_0",
            (72, 1, 1),
            _layer((128, 768), (128, 768), (128, 768)),
        ),
        (
            "cudnn_generated_fort_native_sm80_matMul_knob_1_32x32x32_8_0",
            (4, 4, 12),
            _layer((12, 128, 128)),
        ),
        (
            "cudnn_generated_fort_native_sm80_matMul_pointwise_knob_25_128x32x32_3_0",
            (2, 32, 1),
            _layer((1, 1024, 14, 14)),
        ),
    ],
)
def test_a_layer_with_as_many_tiles_as_blocks_agrees(
    name: str, grid: tuple[int, int, int], layer: Layer
) -> None:
    assert _answer(name, grid, layer) is True


def test_another_batch_size_does_not() -> None:
    assert _answer(CONVOLUTION, (56, 1, 1), _layer((8, 128, 28, 28))) is False


def test_an_extent_that_the_file_does_not_tell_may_be_any() -> None:
    assert _answer(PRODUCT, (7, 12, 5), _layer((1, -1, 768))) is True
    assert _answer(PRODUCT, (7, 11, 5), _layer((1, -1, 768))) is False


def test_the_rows_of_an_unknown_batch_may_be_any() -> None:
    assert _answer(PRODUCT, (7, 12, 5), _layer((-1, 768))) is True
    assert _answer(PRODUCT, (7, 11, 5), _layer((-1, 768))) is False


@pytest.mark.parametrize(
    "name",
    [
        "cudnn_generated_matMul_fort_ffma_grouped_sm50_kernel0_0",
        "sm80_xmma_gemm_f16f16_tilesize128x64x64_stage3",
    ],
)
def test_a_name_without_such_a_tile_tells_nothing(name: str) -> None:
    assert _answer(name, (72, 1, 1), _layer((1, 128, 2304))) is None


def test_neither_does_a_layer_without_outputs() -> None:
    assert _answer(PRODUCT, (2, 12, 5), _layer()) is None


def test_persistent_kernels_launch_no_more_blocks_than_run_at_once() -> None:
    persistent = (
        "cudnn_generated_fort_native_sm90_convFwd_pointwise_pointwise_knob_26_256x64x32_8_0"
    )
    # 784 tiles for 132 SMs
    assert _answer(persistent, (66, 2, 1), _layer((64, 64, 56, 56))) is None
    assert _answer(persistent, (66, 2, 1), _layer((64, 64, 8, 8))) is False  # 16 tiles
    # no GPU of that kind is so small
    assert _answer(persistent, (20, 1, 1), _layer((64, 64, 56, 56))) is False
    assert (
        _answer(persistent.replace("sm90", "sm80"), (66, 2, 1), _layer((64, 64, 56, 56))) is False
    )


def test_their_blocks_come_in_clusters() -> None:
    assert (
        _answer(
            "cudnn_generated_fort_native_sm90_convFwd_pointwise_knob_23_128x128x32_10_0",
            (52, 2, 1),
            _layer((64, 512, 7, 7)),
        )
        is True
    )


def test_a_volume_has_its_channels_second() -> None:
    stem = "cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise_knob_21_128x128x32_4_0"
    assert _answer(stem, (196, 1, 1), _layer((1, 64, 8, 56, 56))) is True


@pytest.mark.parametrize(
    ("channels", "size", "grid"),
    [(120, 28, (25, 1, 5)), (336, 14, (7, 1, 14)), (888, 7, (2, 1, 37))],
)
def test_groups_of_a_convolution_are_matrices_of_their_own(
    channels: int, size: int, grid: tuple[int, int, int]
) -> None:
    name = "cudnn_generated_fort_native_sm80_convFwd_knob_27_128x32x32_1_0"
    assert _answer(name, grid, _layer((4, channels, size, size))) is True
    assert _answer(name, grid, _layer((8, channels, size, size))) is False


def test_clusters_round_both_sides_up() -> None:
    name = "cudnn_generated_fort_native_sm90_convFwd_pointwise_pointwise_knob_23_128x128x32_10_0"
    assert _answer(name, (52, 2, 1), _layer((4, 336, 28, 28))) is True  # 25 x 3 tiles in 2 x 2


@pytest.mark.parametrize(
    ("grid", "block", "shape", "fits"),
    [
        ((112, 1, 1), 248, (1, 62, 56, 56), True),  # seven elements a thread
        ((112, 1, 1), 248, (1, 64, 56, 56), False),
        ((221, 1, 1), 256, (1, 288, 14, 14), True),  # the last block is half empty
        ((221, 1, 1), 256, (1, 320, 14, 14), False),
        ((32, 1, 1), 128, (1, 128, 768), True),  # four rows a block
        ((32, 1, 1), 128, (1, -1, 768), None),
        ((32, 1, 1), 0, (1, 128, 768), None),
    ],
)
def test_threads_of_compiled_code_cover_a_tensor(
    grid: tuple[int, int, int], block: int, shape: tuple[int, ...], fits: bool | None
) -> None:
    assert threads_fit(grid, block, _layer(shape)) is fits


def test_a_single_number_is_one_tile() -> None:
    assert _answer(PRODUCT, (1, 1, 5), _layer((1, 1))) is True
    assert _answer(PRODUCT, (3, 1, 5), _layer((1, 1))) is False


# --- against the obvious count
# ------------------------------------------------------------------------------


def tiles(rows: int, columns: int, high: int, wide: int) -> set[int]:
    return {
        math.ceil(rows / high) * math.ceil(columns / wide),
        math.ceil(rows / wide) * math.ceil(columns / high),
    }


sides = st.integers(1, 40)


@given(sides, sides, st.integers(1, 3), st.integers(1, 60), st.sampled_from([(8, 16), (8, 8)]))
def test_a_matrix_takes_as_many_blocks_as_tiles_cover_it(
    rows: int, columns: int, parts: int, blocks: int, tile: tuple[int, int]
) -> None:
    split = f"splitk_{parts}_" if parts > 1 else ""
    name = f"cudnn_generated_fort_native_sm80_matMul_{split}{tile[0]}x{tile[1]}x32_5_0"
    needed = {parts * one for one in tiles(rows, columns, *tile)}
    layer = _layer((rows, columns))
    assert _answer(name, (blocks, 1, 1), layer) is (blocks in needed)
    for one in needed:
        assert _answer(name, (one, 1, 1), layer) is True


CLUSTERS = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2))


@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 90))
def test_from_hopper_on_tiles_come_in_clusters_and_not_all_are_launched(
    rows: int, columns: int, blocks: int
) -> None:
    name = "cudnn_generated_fort_native_sm90_matMul_8x8x32_5_0"
    sides = math.ceil(rows / 8), math.ceil(columns / 8)
    needed = {
        math.ceil(down / high) * high * math.ceil(across / wide) * wide
        for high, wide in CLUSTERS
        for down, across in (sides, sides[::-1])
        if down >= high and across >= wide
    }
    want = True if blocks in needed else None if 60 <= blocks < max(needed) else False
    assert _answer(name, (blocks, 1, 1), _layer((rows, columns))) is want


@pytest.mark.parametrize(
    ("kind", "shape", "blocks"),
    [
        ("gemm", (16, 8, 24), {2 * 8 * 3, 16 * 3, 2 * 1 * 3 * 8, 1 * 3 * 16}),
        ("convolution", (2, 24, 4, 6), {6 * 3}),
        ("pooling", (2, 24, 4, 6), {6 * 3}),
        ("deconvolution", (2, 24, 4, 6), {6 * 3}),
        # of other layers the last may be the channels, or each matrix one of its own
        ("gemm", (2, 24, 4, 6), {6 * 3, 24 * 1, 1 * 1 * 48}),
    ],
)
def test_in_which_ways_an_output_may_be_seen(
    kind: str, shape: tuple[int, ...], blocks: set[int]
) -> None:
    name = "cudnn_generated_fort_native_sm80_matMul_8x8x32_5_0"
    layer = Layer(0, "layer", kind, outputs=(Tensor("out", shape),))
    found = {at for at in range(1, 200) if _answer(name, (at, 1, 1), layer)}
    assert found == blocks
    # of what is told all other numbers are refuted
    assert {at for at in range(1, 200) if _answer(name, (at, 1, 1), layer) is False} == (
        set(range(1, 200)) - blocks
    )


@pytest.mark.parametrize(
    ("shapes", "blocks"),
    [
        (((16, 8), (16, 16)), {2, 4, 6}),  # each alone, and both beside one another
        (((16, 8), (24, 16)), {2, 6}),
        (((16, 8), (16, -1)), {2}),  # without its columns nothing is known of it
    ],
)
def test_outputs_of_equally_many_rows_may_be_one_product(
    shapes: tuple[tuple[int, ...], ...], blocks: set[int]
) -> None:
    name = "cudnn_generated_fort_native_sm80_matMul_8x8x32_5_0"
    found = {at for at in range(1, 60) if _answer(name, (at, 1, 1), _layer(*shapes))}
    assert found == blocks


@pytest.mark.parametrize(
    ("deep", "parts", "groups"), [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 2), (5, 1, 1), (6, 2, 3)]
)
def test_stacked_matrices_are_groups_of_channels_where_these_divide(
    deep: int, parts: int, groups: int
) -> None:
    split = f"splitk_{parts}_" if parts > 1 else ""
    name = f"cudnn_generated_fort_native_sm80_convFwd_{split}8x8x32_5_0"
    layer = _layer((1, 48, 8, 4))
    grouped = math.ceil(32 / 8) * math.ceil(48 / groups / 8) * groups * parts
    whole = math.ceil(32 / 8) * math.ceil(48 / 8) * parts
    found = {at for at in range(1, 99) if _answer(name, (at, 1, deep), layer) is True}
    assert found == {need // deep for need in (grouped, whole) if need % deep == 0}


def test_where_rows_are_unknown_a_persistent_kernel_tells_nothing() -> None:
    for arch, right, wrong in ((80, True, False), (89, True, False), (90, None, None)):
        name = f"cudnn_generated_fort_native_sm{arch}_matMul_8x8x32_5_0"
        assert _answer(name, (6, 1, 1), _layer((-1, 24))) is right
        assert _answer(name, (7, 1, 1), _layer((-1, 24))) is wrong


def test_of_several_kernels_and_layers_each_pair_has_its_own_answer() -> None:
    name = "cudnn_generated_fort_native_sm80_matMul_8x8x32_5_0"
    agree, told = tiles_agree(
        [(name, (2, 1, 1)), ("other", (2, 1, 1)), (name, (3, 1, 1))],
        [_layer((8, 16)), _layer(), _layer((8, 24)), _layer((16, 8))],
    )
    assert agree.tolist() == [
        [True, False, False, True],
        [False] * 4,
        [False, False, True, False],
    ]
    assert told.tolist() == [[True, False, True, True], [False] * 4, [True, False, True, True]]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.tuples(st.integers(1, 20), st.integers(1, 3), st.integers(1, 2)),
    st.sampled_from([1, 2, 3, 8, 32]),
)
def test_threads_fit_if_they_cover_a_tensor_or_its_rows(
    output: list[int], given_in: list[int], grid: tuple[int, int, int], block: int
) -> None:
    layer = Layer(
        0,
        "layer",
        "myelin_kernel",
        outputs=(Tensor("out", tuple(output)),),
        inputs=(Tensor("in", tuple(given_in)),),
    )
    blocks = grid[0] * grid[1] * grid[2]
    want = False
    for shape in (output, given_in):
        size = math.prod(shape)
        want |= size % (blocks * block) == 0
        want |= any(blocks == math.ceil(size / (block * vector)) for vector in (1, 2, 4, 8, 16))
        want |= any(
            blocks == math.ceil(math.prod(shape[:at]) / rows)
            for at in range(1, len(shape))
            for rows in (1, 2, 4, 8)
        )
    assert threads_fit(grid, block, layer) is want


@pytest.mark.parametrize(
    ("outputs", "inputs", "fits"),
    [
        ([(8, 4)], [], True),
        ([(8, 1)], [], True),
        ([(7, 3)], [(-1, 4)], False),
        ([(7, 3)], [(8, 4)], True),  # an input will do
        ([(7, 3)], [(8, 1)], True),
        ([(7, 3)], [(0, 4)], False),
        ([(7, 3)], [None], False),
        ([(8, 4), (0, 4)], [], None),
        ([(8, 4), None], [], None),
        ([], [], None),
        ([], [(8, 4)], True),
    ],
)
def test_which_tensors_tell_how_many_threads_there_must_be(
    outputs: list[tuple[int, ...] | None], inputs: list[tuple[int, ...] | None], fits: bool | None
) -> None:
    layer = Layer(
        0,
        "layer",
        "myelin_kernel",
        outputs=tuple(Tensor("out", shape) for shape in outputs),
        inputs=tuple(Tensor("in", shape) for shape in inputs),
    )
    assert threads_fit((8, 1, 1), 1, layer) is fits


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_so_many_rows_a_block(rows: int) -> None:
    """Of 10 * rows rows of seven, which no whole number of vectors covers."""
    assert threads_fit((10, 1, 1), 3, _layer((10 * rows, 7))) is True
    assert threads_fit((11, 1, 1), 3, _layer((10 * rows, 7))) is False


@pytest.mark.parametrize("vector", [1, 2, 4, 8, 16])
def test_so_many_elements_a_thread(vector: int) -> None:
    size = 9 * 3 * vector - 1  # the last thread has one less
    assert threads_fit((9, 1, 1), 3, _layer((size,))) is True
    assert threads_fit((13, 1, 1), 3, _layer((size,))) is False


@pytest.mark.parametrize(
    ("shapes", "blocks"),
    [
        (((24,),), {3}),
        (((1, 8), (1, 16)), {1, 2, 3}),
        (((2, 8, 8), (2, 24, 8)), {2, 6}),  # as wide, but of other rows
        (((0, 8), (16, 8)), {2}),
    ],
)
def test_a_name_without_an_architecture_has_tiles_all_the_same(
    shapes: tuple[tuple[int, ...], ...], blocks: set[int]
) -> None:
    name = "cudnn_generated_matMul_8x8x32_5_0"
    layer = _layer(*shapes)
    found = {at for at in range(1, 60) if _answer(name, (at, 1, 1), layer)}
    if any(0 in shape for shape in shapes):
        assert found == set(range(1, 60))  # how many rows the one has is not known
    else:
        assert found == blocks
