"""Attention blocks: found or not, fused or not, and which known condition for fusing fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.attention import AttentionBlock, attention_blocks, attention_tables
from tests.made_engines import Row, made, row
from tests.places import FIXTURES


def block(
    head: int = 64,
    keys: int = 128,
    form: str = "Half",
    softmax: tuple[str, ...] = ("MulAddMaxrSubExpSumDivMul",),
) -> list[Row]:
    """Q*K^T, the softmax in as many kernels as given, P*V; 12 heads, 128 queries."""
    scores = [12, 128, keys]
    rows = [
        row(
            "/attn/MatMul{}",
            "gemm",
            [("q", [12, 128, head], form), ("k", [12, head, keys], form)],
            [("s0", scores, form)],
        )
    ]
    for place, ops in enumerate(softmax):
        rows.append(
            row(
                f"__myl_{ops}{{}}",
                "kgen",
                [(f"s{place}", scores, form)],
                [(f"s{place + 1}", scores, form)],
            )
        )
    rows.append(
        row(
            "/attn/MatMul_1{}",
            "gemm",
            [(f"s{len(softmax)}", scores, form), ("v", [12, keys, head], form)],
            [("y", [12, 128, head], form)],
        )
    )
    return rows


def only(engine: Engine, compute: tuple[int, int] | None = (9, 0)) -> AttentionBlock:
    (found,) = attention_blocks(engine, compute=compute)
    return found


def test_products_around_a_softmax_are_one_block_with_its_dimensions() -> None:
    found = only(made(*block()))
    assert found.layers == ((0, "scores"), (1, "softmax"), (2, "values"))
    assert (found.heads, found.head_size, found.query_length, found.key_length) == (
        12,
        64,
        128,
        128,
    )
    assert found.datatype == "FP16"
    assert found.score_bytes == 2 * 2 * (12 * 128 * 128 * 2)
    assert found.conditions.unmet == ()
    assert found.conditions.unknown == ()


@pytest.mark.parametrize(
    "softmax",
    [
        ("MaxrSubExpSum", "DivMul"),
        ("MulAdd", "MaxrSubExpSumDivMul"),
        ("MulAddMaxSubExpSumDivMul",),
        ("MulAdd", "MaxrSubExpSum", "DivMul"),
    ],
)
def test_a_softmax_in_pieces_belongs_to_the_block(softmax: tuple[str, ...]) -> None:
    assert [index for index, _ in only(made(*block(softmax=softmax))).layers] == list(
        range(len(softmax) + 2)
    )


def test_layers_that_only_move_data_around_the_products_belong_to_the_block() -> None:
    before = row(
        "__myl_ReshTran{}", "kgen", [("x", [1, 128, 768], "Half")], [("q", [12, 128, 64], "Half")]
    )
    after = row(
        "__myl_TranResh{}", "kgen", [("y", [12, 128, 64], "Half")], [("z", [1, 128, 768], "Half")]
    )
    assert only(made(before, *block(), after)).layers[0] == (0, "movement")
    assert only(made(before, *block(), after)).layers[-1] == (4, "movement")


def test_tensorrt_8_layers_are_found_by_kind() -> None:
    scores, half = [1, 12, 128, 128], "Row major linear FP16 format"
    rows = [
        row(
            "MatMul_1",
            "MatrixMultiply",
            [("q", [1, 12, 128, 64], half), ("k", [1, 12, 64, 128], half)],
            [("s", scores, half)],
        ),
        row(
            "PWN(Div_1, Add_1)",
            "PointWiseV2",
            [("s", scores, half), ("m", [1, 1, 1, 128], half)],
            [("t", scores, half)],
        ),
        row("Softmax_1", "SoftMax", [("t", scores, half)], [("p", scores, half)]),
        row(
            "MatMul_2",
            "MatrixMultiply",
            [("p", scores, half), ("v", [1, 12, 128, 64], half)],
            [("y", [1, 12, 128, 64], half)],
        ),
    ]
    found = only(made(*rows))
    assert [role for _, role in found.layers] == ["scores", "pointwise", "softmax", "values"]
    assert found.head_size == 64


def test_a_fused_block_is_one_layer() -> None:
    found = only(
        made(
            row(
                "_gemm_mha_v2{}",
                "kgen",
                [("qkv", [1, 128, 2304], "Half")],
                [("y", [1, 128, 768], "Half")],
            )
        )
    )
    assert (found.fused, found.layers) == (True, ((0, "fused"),))


@pytest.mark.parametrize(
    ("change", "compute", "fails"),
    [
        ({"head": 512}, (9, 0), "head size 16 to 256 (here 512)"),
        ({"head": 8}, (9, 0), "head size 16 to 256 (here 8)"),
        ({"head": 60}, (9, 0), "head size a multiple of 8 (here 60)"),
        ({"form": "Float"}, (9, 0), "data type FP16, BF16, INT8 or FP8 (here FP32)"),
        ({}, (7, 0), "compute capability 7.5 or newer"),
        ({"form": "Int8", "head": 128}, (9, 0), "INT8: head size 16, 32 or 64 (here 128)"),
        ({"form": "Int8", "keys": 1024}, (9, 0), "INT8: at most 512 positions (here 1024)"),
    ],
)
def test_the_condition_that_fails_is_named(
    change: dict[str, object], compute: tuple[int, int], fails: str
) -> None:
    found = only(made(*block(**change)), compute)  # type: ignore[arg-type]  # keyword arguments of the cases above
    assert fails in found.conditions.unmet


def test_scores_that_are_read_elsewhere_fail_a_condition() -> None:
    reader = row(
        "__myl_Add{}", "kgen", [("s0", [12, 128, 128], "Half")], [("z", [12, 128, 128], "Half")]
    )
    for engine in (made(*block(), reader), made(*block(), outputs=("q", "s1", "y"))):
        (unmet,) = only(engine).conditions.unmet
        assert "reads the scores" in unmet


def test_an_unknown_device_is_said_to_be_untold_unless_a_tactic_tells() -> None:
    engine = made(*block())
    assert "compute capability 7.5 or newer" in only(engine, None).conditions.unknown
    tactic = (
        "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x32_stage5_warpsize2x2x1_tensor16x8x16"
    )
    told = replace(engine, layers=(replace(engine.layers[0], tactic=tactic), *engine.layers[1:]))
    assert "compute capability 7.5 or newer" in only(told, None).conditions.met


@pytest.mark.parametrize(("batch", "head", "told"), [(-1, 64, 64), (-1, -1, None)])
def test_a_dynamic_batch_leaves_the_head_size_told_and_a_dynamic_head_does_not(
    batch: int, head: int, told: int | None
) -> None:
    rows = [
        row(
            "/a/MatMul{}",
            "gemm",
            [("q", [batch, 12, 128, head], "Half"), ("k", [batch, 12, head, 128], "Half")],
            [("s", [batch, 12, 128, 128], "Half")],
        ),
        row(
            "__myl_MaxrSubExpSumDivMul{}",
            "kgen",
            [("s", [batch, 12, 128, 128], "Half")],
            [("p", [batch, 12, 128, 128], "Half")],
        ),
        row(
            "/a/MatMul_1{}",
            "gemm",
            [("p", [batch, 12, 128, 128], "Half"), ("v", [batch, 12, 128, head], "Half")],
            [("y", [batch, 12, 128, head], "Half")],
        ),
    ]
    found = only(made(*rows))
    assert (found.head_size, found.query_length, found.key_length, found.heads) == (
        told,
        128,
        128,
        None,
    )
    unknown = " ".join(found.conditions.unknown)
    assert ("not in the file" in unknown) == (told is None)


def test_a_softmax_behind_a_linear_layer_is_no_attention() -> None:
    logits = [1, 128, 10]
    rows = [
        row("/head/MatMul{}", "gemm", [("x", [1, 128, 768], "Half")], [("s", logits, "Half")]),
        row(
            "__myl_MaxrSubExpSumDivMul{}", "kgen", [("s", logits, "Half")], [("p", logits, "Half")]
        ),
        row(
            "/mix/MatMul{}",
            "gemm",
            [("p", logits, "Half"), ("e", [1, 10, 64], "Half")],
            [("y", [1, 128, 64], "Half")],
        ),
    ]
    assert attention_blocks(made(*rows)) == []
    assert attention_blocks(made(*rows[:2])) == []


def test_a_names_only_file_shows_the_fused_blocks_alone() -> None:
    engine = made(
        row("_gemm_mha_v2{}", "kgen", [], []),
        *({"Name": item["Name"], "LayerType": item["LayerType"]} for item in block()),
    )
    assert [found.fused for found in attention_blocks(engine)] == [True]


@pytest.mark.parametrize(
    ("folder", "unfused"),
    [("bert_trt10", [18, 43]), ("bert_split_trt10", [21, 49]), ("bert_trt103", [18])],
)
def test_every_third_block_of_the_encoders_is_unfused_and_the_others_are_not(
    folder: str, unfused: list[int]
) -> None:
    engine = read_engine(FIXTURES / folder / "engine.json")
    blocks = attention_blocks(engine, compute=(9, 0))
    encoder_layers = len(
        {
            node.split("/")[3]
            for layer in engine.layers
            for node in layer.onnx
            if "/encoder/layer." in node
        }
    )
    assert len(blocks) == encoder_layers
    assert [found.layers[0][0] for found in blocks if not found.fused] == unfused
    assert [place for place, found in enumerate(blocks) if not found.fused] == list(
        range(2, encoder_layers, 3)
    )
    assert all(
        found.head_size == 64 and not found.conditions.unmet for found in blocks if not found.fused
    )


def test_the_table_names_the_onnx_nodes_and_five_layers() -> None:
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    attention, members = attention_tables([engine, engine], compute=(9, 0))
    first = next(record for record in attention.records() if not record["fused"])
    assert (first["layers"], first["first_layer"], first["last_layer"], first["unmet"]) == (
        5,
        18,
        22,
        None,
    )
    assert "/bert/encoder/layer.2/attention/self/Softmax" in str(first["onnx"])
    assert [
        record["layer_id"]
        for record in members.records()
        if record["block_id"] == first["block_id"]
    ] == [18, 19, 20, 21, 22]
    assert max(int(str(record["layer_id"])) for record in members.records()) == 57 + 47


def test_a_block_knows_the_nearest_fused_one_with_a_result_of_its_size() -> None:
    far = row(
        "_gemm_mha_v2{}", "kgen", [("a", [12, 128, 64], "Half")], [("q", [12, 128, 64], "Half")]
    )
    near = row(
        "_gemm_mha_v2{}", "kgen", [("y", [12, 128, 64], "Half")], [("z", [1, 128, 768], "Half")]
    )
    other = row(
        "_gemm_mha_v2{}", "kgen", [("z", [1, 128, 768], "Half")], [("u", [1, 16, 768], "Half")]
    )
    peers = [
        found.reference_layer
        for found in attention_blocks(made(far, *block(), near, other))
        if not found.fused
    ]
    assert peers == [4]
    assert only(made(*block())).reference_layer is None


def test_a_division_by_the_sums_that_comes_after_the_second_product_belongs_to_the_block() -> None:
    rows = [
        row(
            "/attn/MatMul{}",
            "gemm",
            [("q", [12, 128, 64], "Half"), ("k", [12, 64, 128], "Half")],
            [("s", [12, 128, 128], "Half")],
        ),
        row(
            "__myl_MaxrSubExpSum{}",
            "kgen",
            [("s", [12, 128, 128], "Half")],
            [("p", [12, 128, 128], "Half"), ("sums", [12, 128, 1], "Half")],
        ),
        row(
            "/attn/MatMul_1{}",
            "gemm",
            [("p", [12, 128, 128], "Half"), ("v", [12, 128, 64], "Half")],
            [("y", [12, 128, 64], "Half")],
        ),
        row(
            "__myl_DivTran{}",
            "kgen",
            [("sums", [12, 128, 1], "Half"), ("y", [12, 128, 64], "Half")],
            [("z", [128, 768], "Half")],
        ),
        row("/out/MatMul{}", "gemm", [("z", [128, 768], "Half")], [("u", [128, 768], "Half")]),
    ]
    found = only(made(*rows))
    assert found.layers == ((0, "scores"), (1, "softmax"), (2, "values"), (3, "softmax"))
    assert not found.conditions.unmet


def test_a_mask_that_the_softmax_computes_for_other_blocks_too_is_no_reader_of_the_scores() -> None:
    # the first block writes the mask that all use
    engine = read_engine(FIXTURES / "real_trt" / "p_softmax.engine.json")
    assert [
        (found.fused, found.conditions.unmet) for found in attention_blocks(engine, compute=(9, 0))
    ] == [(False, ())] * 4
