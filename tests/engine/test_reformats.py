"""Why reformats are there, which take each other back, and quantisations that no neighbour took
in.
"""

from __future__ import annotations

import pytest

from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.reformats import engine_reformats, quantizers_table, reformats_table
from tests.made_engines import Row, made, row
from tests.places import CAPTURES, FIXTURES

X = [1, 32, 8, 8]
LINEAR16, LINEAR32 = "Row major linear FP16 format", "Row major linear FP32"
HWC8, CHW32 = (
    "Channel major FP16 format where channel % 8 == 0",
    "Thirty-two wide channel vectorized row major Int8 format",
)


def reformat(
    name: str, reads: tuple[str, str], writes: tuple[str, str], origin: str = "REFORMAT"
) -> Row:
    return row(
        name, "Reformat", [(reads[0], X, reads[1])], [(writes[0], X, writes[1])], Origin=origin
    )


def conv(reads: tuple[str, str], writes: tuple[str, str], kind: str = "CaskConvolution") -> Row:
    return row(f"{writes[0]}_layer", kind, [(reads[0], X, reads[1])], [(writes[0], X, writes[1])])


def causes(*rows: Row, outputs: tuple[str, ...] = ("in", "out")) -> list[str]:
    return [found.cause for found in engine_reformats(made(*rows, outputs=outputs))]


def test_the_engines_own_input_and_output_are_causes() -> None:
    rows = [
        reformat("a", ("in", LINEAR32), ("x", LINEAR16)),
        conv(("x", LINEAR16), ("y", LINEAR16)),
        reformat("b", ("y", LINEAR16), ("out", LINEAR32)),
    ]
    assert causes(*rows) == ["input", "output"]


@pytest.mark.parametrize(
    ("made_row", "kind", "cause"),
    [
        (reformat("r", ("x", LINEAR16), ("y", HWC8)), "CaskConvolution", "layout"),
        (reformat("r", ("x", LINEAR32), ("y", LINEAR16)), "CaskConvolution", "precision"),
        (reformat("r", ("x", LINEAR16), ("y", HWC8)), "PluginV2DynamicExt", "plugin"),
        (reformat("r", ("x", LINEAR16), ("y", HWC8)), "Myelin", "myelin"),
        (reformat("r", ("x", LINEAR16), ("y", CHW32), "QDQ"), "CaskConvolution", "quantize"),
    ],
)
def test_the_cause_is_read_off_types_origin_and_neighbours(
    made_row: Row, kind: str, cause: str
) -> None:
    before, after = conv(("in", LINEAR16), ("x", LINEAR16)), conv(("y", HWC8), ("out", HWC8), kind)
    assert causes(before, made_row, after) == [cause]


def test_a_region_split_into_rows_is_a_myelin_border_too() -> None:
    rows = [
        conv(("in", LINEAR16), ("x", LINEAR16)),
        reformat("r", ("x", LINEAR16), ("y", HWC8)),
        row("__myl_Add_myl3_0", "kgen", [("y", X, "Half")], [("out", X, "Half")]),
    ]
    assert causes(*rows) == ["myelin"]


def test_there_and_back_is_found_directly_and_over_one_layer() -> None:
    there, back = (
        reformat("a", ("x", LINEAR16), ("t", HWC8)),
        reformat("b", ("u", HWC8), ("y", LINEAR16)),
    )
    over = made(
        conv(("in", LINEAR16), ("x", LINEAR16)),
        there,
        conv(("t", HWC8), ("u", HWC8)),
        back,
        outputs=("in", "y"),
    )
    assert [found.undoes for found in engine_reformats(over)] == [None, 1]
    direct = made(there, reformat("b", ("t", HWC8), ("y", LINEAR16)), outputs=("x", "y"))
    assert [found.undoes for found in engine_reformats(direct)] == [None, 0]
    far = made(
        there,
        conv(("t", HWC8), ("v", HWC8)),
        conv(("v", HWC8), ("u", HWC8)),
        back,
        outputs=("x", "y"),
    )
    assert [found.undoes for found in engine_reformats(far)] == [None, None]


def test_a_copy_without_a_kernel_is_free() -> None:
    rows = [
        row(
            "Reformatting CopyNode for Input Tensor 0 to c",
            "NoOp",
            [("in", X, LINEAR16)],
            [("x", X, LINEAR16)],
        )
    ]
    (record,) = reformats_table([made(*rows)]).records()
    assert (record["free"], record["bytes"]) == (True, 0)


def test_casts_of_a_region_are_listed_with_their_types() -> None:
    rows = [
        row("__myl_Cast{}", "kgen", [("in", X, "Half")], [("t", X, "Float")]),
        row("__myl_Cast{}", "kgen", [("t", X, "Float")], [("out", X, "Half")]),
    ]
    records = reformats_table([made(*rows)]).records()
    assert [(record["from_type"], record["to_type"]) for record in records] == [
        ("FP16", "FP32"),
        ("FP32", "FP16"),
    ]
    assert records[1]["undoes"] == 0


def test_dynamic_shapes_leave_the_bytes_unknown() -> None:
    rows = [
        row(
            "r",
            "Reformat",
            [("in", [-1, 3], "N/A due to dynamic shapes")],
            [("x", [-1, 3], "N/A due to dynamic shapes")],
            Origin="REFORMAT",
        )
    ]
    assert reformats_table([made(*rows)]).records()[0]["bytes"] is None


def test_quantisations_say_why_no_neighbour_did_them() -> None:
    first = reformat("QuantizeLinear_1", ("in", LINEAR32), ("q", CHW32), "QDQ")
    body = conv(("q", CHW32), ("f", LINEAR16))
    second = reformat("QuantizeLinear_2", ("f", LINEAR16), ("p", CHW32), "QDQ")
    add = row(
        "add_layer",
        "CaskConvolution",
        [("p", X, CHW32), ("f", X, LINEAR16)],
        [("out", X, LINEAR16)],
    )
    assert [
        record["blocked_by"]
        for record in quantizers_table([made(first, body, second, add)]).records()
    ] == ["input", "residual"]
    alone = [
        record["blocked_by"]
        for record in quantizers_table(
            [made(first, body, second, conv(("p", CHW32), ("out", LINEAR16)))]
        ).records()
    ]
    assert alone == ["input", "producer"]


@pytest.mark.parametrize(
    ("ops", "types", "direction"),
    [
        ("MulMinMaxRounCast", ("Half", "Int8"), "quantize"),
        ("MulCast", ("Half", "FP8"), "quantize"),
        ("CastMul", ("Int8", "Half"), "dequantize"),
        ("MulMinMaxRounCastCastMul", ("Float", "Float"), "both"),
        ("AddMulMinMaxRounCast", ("Half", "Int8"), None),
        ("MulCast", ("Half", "Float"), None),
        ("MeanSubMulMeanAddSqrtDivMulMulAddMulCast", ("Half", "FP8"), None),
    ],
)
def test_generated_kernels_that_only_quantise_are_found(
    ops: str, types: tuple[str, str], direction: str | None
) -> None:
    records = quantizers_table(
        [made(row(f"__myl_{ops}{{}}", "kgen", [("in", X, types[0])], [("out", X, types[1])]))]
    ).records()
    assert [record["direction"] for record in records] == ([] if direction is None else [direction])


def test_the_encoders_one_reformat_is_at_its_output() -> None:
    records = reformats_table([read_engine(FIXTURES / "bert_trt10" / "engine.json")]).records()
    assert [
        (record["layer_id"], record["cause"], record["from_type"], record["to_type"])
        for record in records
    ] == [(56, "output", "FP16", "FP32")]


def test_a_public_quantised_network_has_one_layout_change_and_17_quantisations() -> None:
    file = CAPTURES / "mobilenet_qat" / "engine.json"
    if not file.exists():
        pytest.skip("public engine files are not here")
    engine = read_engine(file)
    found = [record["cause"] for record in reformats_table([engine]).records()]
    assert (found.count("quantize"), found.count("input"), found.count("layout"), len(found)) == (
        16,
        1,
        1,
        18,
    )
    reasons = [record["blocked_by"] for record in quantizers_table([engine]).records()]
    assert (reasons.count("input"), reasons.count("residual"), reasons.count("producer")) == (
        1,
        10,
        6,
    )


def test_a_copy_into_a_concatenation_is_there_for_it() -> None:
    rows = [
        conv(("in", LINEAR16), ("y", LINEAR16)),
        reformat("/Concat branch copy", ("y", LINEAR16), ("z", HWC8), "CONCAT"),
        conv(("z", HWC8), ("out", HWC8)),
    ]
    assert causes(*rows) == ["concat"]


def test_a_dequantisation_whose_input_others_read_quantised_is_not_the_producers_to_leave_out() -> (
    None
):
    rows = [
        conv(("in", CHW32), ("y", CHW32)),
        reformat("DequantizeLinear_1", ("y", CHW32), ("z", LINEAR16), "QDQ"),
        conv(("y", CHW32), ("a", CHW32)),
        conv(("z", LINEAR16), ("out", LINEAR16)),
    ]
    assert [
        found["blocked_by"]
        for found in quantizers_table([made(*rows, outputs=("in", "out"))]).records()
    ] == ["shared"]
    assert [
        found["blocked_by"]
        for found in quantizers_table([made(*rows[:2], *rows[3:], outputs=("in", "out"))]).records()
    ] == ["producer"]


def test_an_input_of_another_optimization_profile_is_an_input() -> None:
    rows = [
        reformat("a [profile 1]", ("in [profile 1]", LINEAR32), ("x [profile 1]", LINEAR16)),
        conv(("x", LINEAR16), ("out", LINEAR16)),
    ]
    assert causes(*rows) == ["input"]


@pytest.mark.parametrize(
    ("kind", "origin"), [("Reformat", None), ("Scale", None), ("Reformat", "QDQ")]
)
def test_a_quantisation_is_one_whatever_layer_type_runs_it(kind: str, origin: str | None) -> None:
    made_row = row(
        "/conv/_input_quantizer/QuantizeLinear_clone_1",
        kind,
        [("x", X, LINEAR32)],
        [("y", X, CHW32)],
    )
    if origin is not None:
        made_row["Origin"] = origin
    rows = [conv(("in", LINEAR32), ("x", LINEAR32)), made_row, conv(("y", CHW32), ("out", CHW32))]
    assert [found["direction"] for found in quantizers_table([made(*rows)]).records()] == [
        "quantize"
    ]
    copy = row(
        "Reformatting CopyNode for Input Tensor 0 to QuantizeLinear_3",
        kind,
        [("x", X, LINEAR32)],
        [("y", X, LINEAR16)],
    )
    assert len(quantizers_table([made(rows[0], copy, rows[2])])) == 0


def test_an_output_of_another_optimization_profile_is_an_output_and_what_nobody_is_told_to_read_is_none() -> (  # noqa: E501
    None
):
    rows = [
        conv(("in", LINEAR16), ("y", LINEAR16)),
        reformat("a", ("y", LINEAR16), ("out [profile 1]", LINEAR32)),
        reformat("b", ("y", LINEAR16), ("hidden", LINEAR32)),
    ]
    assert causes(*rows) == ["output", "precision"]
