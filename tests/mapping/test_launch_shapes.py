"""The blocks of a launch against the tiles of a layer's output."""

from __future__ import annotations

import pytest

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
