"""Norms and softmaxes in pieces, epilogues left out, pointwise and movement runs."""

from __future__ import annotations

import pytest

from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.chains import chain_tables, engine_chains
from tests.made_engines import Row, made, row
from tests.places import FIXTURES, SHARED

X = [1, 64, 384]
SIZE = 64 * 384


def fused(ops: str, reads: list[str], writes: list[str], form: str = "Half") -> Row:
    return row(
        f"__myl_{ops}{{}}",
        "kgen",
        [(item, X, form) for item in reads],
        [(item, X, form) for item in writes],
    )


def found(*rows: Row, outputs: tuple[str, ...] = ()) -> list[tuple[str, tuple[int, ...]]]:
    return [
        (chain.kind, tuple(index for index, _ in chain.layers))
        for chain in engine_chains(made(*rows, outputs=outputs))
    ]


def test_a_layernorm_over_four_kernels_is_one_chain_with_its_casts() -> None:
    rows = [
        fused("AddCast", ["x", "r"], ["t"]),
        fused("MeanSubMulMean", ["t"], ["u"], "Float"),
        fused("AddSqrtDivMulMulAdd", ["u"], ["v"], "Float"),
        fused("Cast", ["v"], ["y"]),
    ]
    (chain,) = engine_chains(made(*rows))
    assert chain.kind == "norm"
    assert chain.layers == ((0, "cast"), (1, "statistics"), (2, "normalize"), (3, "cast"))
    assert chain.separated_by == "cast"
    assert chain.saved_bytes == 2 * (4 * SIZE + 4 * SIZE + 2 * SIZE)


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        (["MeanSubMulMean", "AddSqrtDivMulMulAdd"], "norm"),
        (["MeaSubMulMea", "AddSqrDivMulMulAdd"], "norm"),
        (["AddCastMeanSubMulMean", "AddSqrtDivMulCastMulAdd"], "norm"),
        (["MulMean", "AddSqrtDivMulMul"], "norm"),
        (["MeanSub", "MulMeanAddSqrtDivMulMulAdd"], "norm"),
        (["MeanSubMulMean", "ReshTranAddSqrtDivMulMulAdd"], "norm"),
        (["MaxrSubExpSum", "DivMul"], "softmax"),
        (["MulAddMaxrSubExpSum", "DivMulCast"], "softmax"),
        (["MaxSubExpSum", "DivMul"], "softmax"),
    ],
)
def test_a_pattern_over_two_kernels_is_found_in_both_generations(
    pieces: list[str], kind: str
) -> None:
    assert found(fused(pieces[0], ["x"], ["t"]), fused(pieces[1], ["t"], ["y"])) == [(kind, (0, 1))]


def test_a_whole_norm_in_one_kernel_is_no_chain() -> None:
    assert found(fused("AddMeanSubMulMeanAddSqrtDivMulMulAdd", ["x"], ["y"])) == []


def test_two_whole_norms_in_a_row_are_a_pointwise_run_and_no_split_norm() -> None:
    norm = "MeanSubMulMeanAddSqrtDivMulMulAdd"
    assert found(fused(norm, ["x"], ["t"]), fused(norm, ["t"], ["y"])) == [("pointwise", (0, 1))]


def test_a_layout_change_between_the_pieces_is_named() -> None:
    rows = [
        fused("MeanSubMulMean", ["x"], ["t"]),
        fused("ReshTran", ["t"], ["u"]),
        fused("AddSqrtDivMulMulAdd", ["u"], ["y"]),
    ]
    (chain,) = engine_chains(made(*rows))
    assert (chain.kind, chain.separated_by) == ("norm", "layout")


def test_a_product_run_between_the_pieces_is_named() -> None:
    gemm = row("/fc/MatMul{}", "gemm", [("z", X, "Half")], [("w", X, "Half")])
    rows = [fused("MeanSubMulMean", ["x"], ["t"]), gemm, fused("AddSqrtDivMulMulAdd", ["t"], ["y"])]
    chains = engine_chains(made(*rows))
    assert [(chain.kind, chain.separated_by) for chain in chains] == [("norm", "product")]


def test_names_cut_off_say_nothing() -> None:
    assert found(
        fused("MeanSubMulMeanEtc", ["x"], ["t"]), fused("AddSqrtDivMulMulAdd", ["t"], ["y"])
    ) == [("pointwise", (0, 1))]


def test_an_activation_after_a_product_is_an_epilogue_left_out() -> None:
    gemm = row("/fc/Gemm{}", "gemm", [("x", X, "Half")], [("t", X, "Half")])
    assert found(gemm, fused("AddTanh", ["t"], ["y"])) == [("epilogue", (0, 1))]
    conv = row(
        "c",
        "CaskConvolution",
        [("x", [1, 8, 4, 4], "Half")],
        [("t", [1, 8, 4, 4], "Half")],
        ParameterType="Convolution",
        Kernel=[1, 1],
    )
    pwn = row(
        "PWN(PWN(s), m)",
        "PointWiseV2",
        [("t", [1, 8, 4, 4], "Half")],
        [("y", [1, 8, 4, 4], "Half")],
    )
    assert found(conv, pwn) == [("epilogue", (0, 1))]


def test_a_dynamic_batch_does_not_hide_an_epilogue() -> None:
    gemm = row("/fc/Gemm{}", "gemm", [("x", [-1, 8], "Half")], [("t", [-1, 16], "Half")])
    assert found(
        gemm, row("__myl_AddTanh{}", "kgen", [("t", [-1, 16], "Half")], [("y", [-1, 16], "Half")])
    ) == [("epilogue", (0, 1))]


def test_a_view_or_transpose_between_a_product_and_its_bias_is_what_keeps_them_apart() -> None:
    conv = row(
        "Conv-0{}",
        "CaskConvolution",
        [("x", [-1, 32, 16, 16], "Float")],
        [("t", [-1, 32, 16, 16], "Float")],
    )
    view = row(
        "Unsqueeze{}",
        "NoOp",
        [("t", [-1, 32, 16, 16], "Float")],
        [("u", [-1, 1, 32, 16, 16], "Float")],
    )
    bias = row(
        "Add-0{}",
        "Scale",
        [("u", [-1, 1, 32, 16, 16], "Float")],
        [("v", [-1, 1, 32, 16, 16], "Float")],
    )
    assert found(conv, view, bias) == [("epilogue", (0, 1, 2))]
    second = row(
        "Other{}", "NoOp", [("t", [-1, 32, 16, 16], "Float")], [("w", [-1, 32, 256], "Float")]
    )
    # somebody else reads the product's result
    assert not [chain for chain in found(conv, view, bias, second) if chain[0] == "epilogue"]
    part = row(
        "Slice-0{}",
        "Slice",
        [("t", [-1, 32, 16, 16], "Float")],
        [("u", [-1, 1, 32, 16, 16], "Float")],
    )
    # a part of it is no view of all
    assert not [chain for chain in found(conv, part, bias) if chain[0] == "epilogue"]


def test_what_needs_all_of_its_input_shares_a_kernel_with_no_neighbour() -> None:
    for code in ("Topk", "Scat"):
        first, second = fused("NegAdd", ["x"], ["t"]), fused(code, ["t"], ["u"])
        assert not found(first, second, fused("CastMul", ["u"], ["y"]))


def test_what_an_epilogue_cannot_do_is_none() -> None:
    gemm = row("/fc/Gemm{}", "gemm", [("x", X, "Half")], [("t", X, "Half")])
    assert found(gemm, fused("MeanSubMulMeanAddSqrtDivMulMulAdd", ["t"], ["y"])) == []
    assert found(gemm, fused("ReshTran", ["t"], ["y"])) == []
    assert found(gemm, fused("AddTanh", ["t"], ["y"]), fused("Mul", ["t", "y"], ["z"])) == [
        ("pointwise", (1, 2))
    ]
    assert found(gemm, fused("AddTanh", ["t"], ["y"]), outputs=("x", "t", "y")) == []


def test_runs_of_single_readers_are_pointwise_or_movement() -> None:
    assert found(fused("AddMul", ["x"], ["t"]), fused("Relu", ["t"], ["y"])) == [
        ("pointwise", (0, 1))
    ]
    assert found(fused("ReshTran", ["x"], ["t"]), fused("Slic", ["t"], ["y"])) == [
        ("movement", (0, 1))
    ]
    assert (
        found(
            fused("AddMul", ["x"], ["t"]), fused("Relu", ["t"], ["y"]), fused("Neg", ["t"], ["z"])
        )
        == []
    )


def test_dynamic_shapes_leave_the_saving_unknown() -> None:
    rows = [
        row("__myl_Add{}", "kgen", [("x", [-1], "Half")], [("t", [-1], "Half")]),
        row("__myl_Mul{}", "kgen", [("t", [-1], "Half")], [("y", [-1], "Half")]),
    ]
    assert [chain.saved_bytes for chain in engine_chains(made(*rows))] == [None]


def test_the_split_norms_of_an_encoder_are_those_of_blocks_0_and_4() -> None:
    engine = read_engine(FIXTURES / "bert_split_trt10" / "engine.json")
    norms = [chain for chain in engine_chains(engine) if chain.kind == "norm"]
    assert [tuple(index for index, _ in chain.layers) for chain in norms] == [
        (6, 7, 8, 9),
        (41, 42, 43, 44),
    ]
    nodes = [
        next(node for index, _ in chain.layers for node in engine.layers[index].onnx)
        for chain in norms
    ]
    assert ["layer.0" in nodes[0], "layer.4" in nodes[1]] == [True, True]


def test_an_encoder_with_whole_norms_has_no_split_one() -> None:
    for folder in ("bert_trt10", "bert_trt103"):
        assert not [
            chain
            for chain in engine_chains(read_engine(FIXTURES / folder / "engine.json"))
            if chain.kind in ("norm", "softmax")
        ]


def test_the_tables_number_layers_over_all_engines() -> None:
    engine = read_engine(FIXTURES / "bert_split_trt10" / "engine.json")
    chains, members = chain_tables([engine, engine])
    norms = [record for record in chains.records() if record["kind"] == "norm"]
    assert [record["first_layer"] for record in norms] == [6, 41, 77 + 6, 77 + 41]
    assert [
        record["layer_id"]
        for record in members.records()
        if record["chain_id"] == norms[2]["chain_id"]
    ] == [83, 84, 85, 86]


def test_a_softmax_in_two_kernels_in_a_public_engine_is_found() -> None:
    file = SHARED / "engines" / "trt10.16_mnist.layers.json"
    if not file.exists():
        pytest.skip("public engine files are not here")
    assert [
        (chain.kind, tuple(index for index, _ in chain.layers))
        for chain in engine_chains(read_engine(file))
    ] == [("softmax", (6, 7))]


def test_a_norm_in_pieces_knows_the_nearest_whole_one_of_its_size() -> None:
    whole = "AddMeanSubMulMeanAddSqrtDivMulMulAdd"
    other = row(
        f"__myl_{whole}{{}}", "kgen", [("o", [1, 8, 8], "Half")], [("p", [1, 8, 8], "Half")]
    )
    rows = [
        fused(whole, ["a"], ["x"]),
        other,
        fused("MeanSubMulMean", ["x"], ["t"]),
        fused("AddSqrtDivMulMulAdd", ["t"], ["y"]),
        fused("Relu", ["y"], ["z"]),
        fused(whole, ["z"], ["w"]),
    ]
    peers = {
        chain.kind: chain.reference_layer
        for chain in engine_chains(made(*rows))
        if chain.kind == "norm"
    }
    assert peers == {"norm": 5}
    assert [
        chain.reference_layer for chain in engine_chains(made(*rows[1:4])) if chain.kind == "norm"
    ] == [None]


def test_a_softmax_in_pieces_inside_attention_is_a_chain_and_says_so() -> None:
    scores, half = [12, 64, 64], "Half"
    rows = [
        row(
            "/attn/MatMul{}",
            "gemm",
            [("q", [12, 64, 32], half), ("k", [12, 32, 64], half)],
            [("s0", scores, half)],
        ),
        row("__myl_MaxrSubExpSum{}", "kgen", [("s0", scores, half)], [("s1", scores, half)]),
        row("__myl_DivMul{}", "kgen", [("s1", scores, half)], [("s2", scores, half)]),
        row(
            "/attn/MatMul_1{}",
            "gemm",
            [("s2", scores, half), ("v", [12, 64, 32], half)],
            [("y", [12, 64, 32], half)],
        ),
    ]
    (chain,) = engine_chains(made(*rows))
    assert (chain.kind, chain.in_attention, [index for index, _ in chain.layers]) == (
        "softmax",
        True,
        [1, 2],
    )
