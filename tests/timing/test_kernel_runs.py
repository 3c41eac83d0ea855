"""Attention, norms and softmaxes in pieces, told from the order and the names of kernels in regions
that the engine file hides.
"""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.core.engine_schema import ENGINES_WITH_TENSORS, LAYERS
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.timing.kernel_runs import hidden_layers, kernel_runs

GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"  # noqa: E501
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x32x32_stage4_warpsize4x1x1_g1_tensor16x8x16_simple_t1r1s1"  # noqa: E501


def runs(
    *names: str, hidden: int = 0, times: tuple[int, ...] = (), layers: tuple[int, ...] = ()
) -> list[dict[str, object]]:
    """The runs in two inferences of these kernels, each 10 ns long and of layer 0 unless `times`
    and `layers` say otherwise.
    """
    lengths = times or (10,) * len(names)
    rows: list[dict[str, object]] = []
    for inference in range(2):
        start = inference * 10_000
        for position, (name, length) in enumerate(zip(names, lengths, strict=True)):
            layer = layers[position] if layers else 0
            where = {"layer_id": layer, "engine": 0, "inference": inference, "position": position}
            rows.append({**where, "name": name, "start_ns": start, "end_ns": start + length})
            start += length + 1
    inferences = Table.of_rows(
        INFERENCES,
        [{"inference": number, "kernel_sequence": 0, "engine": 0} for number in range(2)],
    )
    return kernel_runs(
        Table.of_rows(KERNELS, rows), inferences, np.arange(2), np.array([hidden])
    ).records()


def found(*names: str) -> list[tuple[object, object, object]]:
    return [
        (run["kind"], run["first_position"], run["last_position"])
        for run in runs(*names)
        if not run["fused"]
    ]


def test_a_product_a_softmax_and_a_product_are_attention_in_pieces() -> None:
    run = runs(GEMM, "__myl_bb0_4_ResMulAddMaxSubExpSumDivMul", GEMM, times=(10, 30, 20))[0]
    assert (run["kind"], run["kernels"], run["layer_id"], run["inferences"]) == (
        "attention",
        3,
        0,
        2,
    )
    assert run["names"] == "gemm; ResMulAddMaxSubExpSumDivMul; gemm"
    assert (run["time_ns"], run["kept_ns"]) == (120, 120)
    assert (run["start_ns"], run["end_ns"]) == (0, 10_062)


def test_a_softmax_in_two_kernels_is_found_and_belongs_to_the_attention() -> None:
    assert found(
        GEMM, "__myl_bb0_1_ResMulAddMaxSubExpSum_com_vec", "__myl_bb0_2_ResDivMul", GEMM
    ) == [
        ("softmax", 1, 2),
        ("attention", 0, 3),
    ]


def test_what_one_kernel_would_keep_are_the_products_and_the_longest_other() -> None:
    run = runs(
        GEMM, "__myl_MulAdd_0x1", "__myl_MaxrSubExpSumDivMul_0x2", GEMM, times=(10, 5, 30, 20)
    )[0]
    assert (run["time_ns"], run["kept_ns"]) == (2 * 65, 2 * 60)


def test_fused_attention_is_one_kernel() -> None:
    (run,) = runs(GEMM, "_gemm_mha_v2_0x4099", GEMM)
    assert (run["kind"], run["fused"], run["kernels"]) == ("attention", True, 1)


@pytest.mark.parametrize(
    "names",
    [
        (GEMM, "__myl_bb0_4_MaxSubExpSumDivMul"),
        ("__myl_bb0_4_MaxSubExpSumDivMul", GEMM),
        (GEMM, "__myl_MaxrSubExpSum_0x1", "__myl_DivMulTopk_0x2", GEMM),
        (CONV, "__myl_MaxrSubExpSumDivMul_0x1", CONV),
        (GEMM, "__myl_NegExpAddDivMul_0x1", GEMM),
        (GEMM, "_gemm_mha_v2_0x1", "__myl_MaxrSubExpSumDivMul_0x1", "_gemm_mha_v2_0x2", GEMM),
    ],
    ids=["classifier", "after a softmax", "router", "convolutions", "silu", "between fused blocks"],
)
def test_what_only_looks_like_attention_is_not_taken_for_it(names: tuple[str, ...]) -> None:
    assert "attention" not in [kind for kind, _, _ in found(*names)]


def test_a_norm_in_halves_is_found_and_a_whole_one_is_not() -> None:
    assert found("__myl_AddCastMeanSubMulMean_0x1", "__myl_AddSqrtDivMulCastMulAdd_0x2") == [
        ("norm", 0, 1)
    ]
    assert (
        found("__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_0x1", "__myl_AddSqrtDivMulMulAdd_0x2")
        == []
    )
    statistics, ends = "__myl_AddCastMeanSubMulMean_0x1", "__myl_AddSqrtDivMulMulAdd"
    whole = "MeanSubMulMeanAddSqrtDivMulMulAdd_0x2"
    assert found(statistics, f"__myl_{whole}") == []
    assert found(statistics, f"{ends}{whole}") == []  # it holds a norm of its own besides
    assert found(statistics, ends) == [("norm", 0, 1)]


def test_layers_that_the_engine_file_shows_are_left_to_the_rules_on_it() -> None:
    assert runs(GEMM, "__myl_MaxrSubExpSumDivMul_0x2", GEMM, hidden=7) == []
    layers = Table.of_rows(
        LAYERS, [{"layer_id": 0, "engine": 0}, {"layer_id": 1, "engine": 1}, {"layer_id": 2}]
    )
    assert hidden_layers(layers, Table.of_rows(ENGINES_WITH_TENSORS, [{"engine": 0}])).tolist() == [
        1,
        2,
    ]


def test_kernels_inside_a_region_are_looked_at_where_others_of_the_inference_are_outside() -> None:
    softmax = "__myl_MaxrSubExpSumDivMul_0x2"
    (run,) = runs(CONV, GEMM, softmax, GEMM, CONV, layers=(5, 0, 0, 0, 6))
    assert (run["kind"], run["first_position"], run["last_position"]) == ("attention", 1, 3)
