"""What the kernels of a Myelin region are, part by part, from their names and order alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nsysmap.mapping.parts.parts_by_name import pattern_parts, pattern_word

GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"  # noqa: E501
NORM = "__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_0x1a"
STATISTICS, AFFINE = "__myl_AddCastMeanSubMulMean_0x1a", "__myl_AddSqrtDivMulCastMulAdd_0x1a"
SOFTMAX, MAXIMUM, DIVIDE = (
    "__myl_MulAddMaxrSubExpSumDivMul_0x1a",
    "__myl_MaxrSubExpSum_0x1a",
    "__myl_DivMul_0x1a",
)
MOVE = "__myl_ReshTran_0x1a"
SPLIT_SUMS = (
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, true, false,"
    " false>(float const*)"
)


def named(*names: str, streams: tuple[int, ...] = ()) -> list[str]:
    """Each kernel's part."""
    texts = [""] * len(names)
    for part in pattern_parts(names, streams or (7,) * len(names)):
        for place in part.places:
            texts[place] = part.name
    return texts


def test_parts_of_a_word_are_numbered_in_launch_order() -> None:
    assert named(GEMM, NORM, GEMM, "_gemm_mha_v2_0x7d", NORM) == [
        "gemm #1",
        "layernorm #1",
        "gemm #2",
        "attention #1",
        "layernorm #2",
    ]


def test_the_halves_of_a_norm_or_softmax_are_one_part() -> None:
    assert named(STATISTICS, AFFINE, GEMM, MAXIMUM, DIVIDE, NORM) == [
        "layernorm #1", "layernorm #1", "gemm #1", "softmax #1", "softmax #1", "layernorm #2",
    ]  # fmt: skip


def test_what_only_moves_data_may_stand_between_two_halves_but_a_product_may_not() -> None:
    assert named(STATISTICS, MOVE, AFFINE) == [
        "layernorm #1",
        "pure-data-movement #1",
        "layernorm #1",
    ]
    assert named(STATISTICS, GEMM, AFFINE) == [
        "layernorm-statistics #1",
        "gemm #1",
        "layernorm-affine #1",
    ]


def test_tensorrt_8_s_second_half_of_a_softmax_is_one_though_it_spells_a_silu() -> None:
    assert named(
        "__myl_bb0_7_ResMulAddMaxSubExpSum_com_vec", "__myl_bb0_8_ResNegExpResAddDivMul"
    ) == ["softmax #1", "softmax #1"]
    assert named("__myl_bb0_8_ResNegExpResAddDivMul") == ["silu #1"]


def test_halves_on_two_streams_are_not_mixed_up() -> None:
    names = (STATISTICS, STATISTICS, GEMM, AFFINE, AFFINE)
    assert named(*names, streams=(1, 2, 1, 2, 1)) == [
        "layernorm-statistics #1", "layernorm #1", "gemm #1", "layernorm #1", "layernorm-affine #1",
    ]  # fmt: skip


def test_two_norms_whose_halves_follow_in_turn_take_one_second_half_each() -> None:
    assert named(STATISTICS, STATISTICS, AFFINE, AFFINE) == [
        "layernorm #1",
        "layernorm #2",
        "layernorm #1",
        "layernorm #2",
    ]


def test_the_kernel_that_adds_up_a_split_product_belongs_to_it() -> None:
    assert named(GEMM, SPLIT_SUMS, GEMM) == ["gemm #1", "gemm #1", "gemm #2"]


def test_sums_after_something_else_than_a_product_are_a_part_of_their_own() -> None:
    assert named(NORM, SPLIT_SUMS, GEMM) == ["layernorm #1", "reduce #1", "gemm #1"]


def test_a_whole_norm_is_no_second_half_of_the_softmax_before_it() -> None:
    assert named(MAXIMUM, NORM, DIVIDE) == ["softmax #1", "layernorm #1", "softmax #1"]
    assert named(MAXIMUM, "__myl_DivErfAddMulMul_0x1a", GEMM) == [
        "softmax-statistics #1",
        "gelu-erf #1",
        "gemm #1",
    ]


def test_a_kernel_is_called_by_what_is_most_telling_in_its_name() -> None:
    assert pattern_word("__myl_FcMulCastErfCastAddMulMul_0x1a") == "gemm"
    assert pattern_word("__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_0x1a") == "layernorm"
    assert pattern_word("__myl_AddTanh_0x1a") == "Add Tanh"
    assert (
        pattern_word(
            "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x32x32_kernel_trt"
        )
        == "convolution"
    )
    assert pattern_word("somebody_s_kernel") == "somebody_s_kernel"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [GEMM, NORM, STATISTICS, AFFINE, SOFTMAX, MAXIMUM, DIVIDE, MOVE, SPLIT_SUMS]
            ),
            st.integers(1, 2),
        )
    )
)
def test_every_kernel_is_in_exactly_one_part_and_no_number_is_left_out(
    kernels: list[tuple[str, int]],
) -> None:
    parts = pattern_parts([name for name, _ in kernels], [stream for _, stream in kernels])
    assert sorted(place for part in parts for place in part.places) == list(range(len(kernels)))
    assert [part.places[0] for part in parts] == sorted(part.places[0] for part in parts)
    for word in {part.word for part in parts}:
        assert [part.number for part in parts if part.word == word] == list(
            range(1, sum(part.word == word for part in parts) + 1)
        )
        streams = {
            part.name: {kernels[place][1] for place in part.places}
            for part in parts
            if part.word == word
        }
        assert all(len(held) == 1 for held in streams.values())
