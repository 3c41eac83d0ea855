"""Precision: time by data type, tensor cores and conversions; what cannot be determined is a row of
its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.analysis import measured
from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.result_schema import KERNEL_TIME
from nsysmap.core.table import Table
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_report, read_engines
from nsysmap.output import precision as report_precision
from nsysmap.timing.precision import (
    Use,
    engine_precision_table,
    precision_table,
    region_of,
    totals,
    use_of,
    uses_of,
)
from tests.exports import exported
from tests.made_engines import made, row
from tests.places import FIXTURES, SHARED
from tests.reports import analysis

H, F, I8 = "Half", "Float", "Int8"


def layer(name: str, kind: str, read: str = H, written: str = H, **more: object) -> Layer:
    return made(row(name, kind, [("a", [8, 8], read)], [("b", [8, 8], written)], **more)).layers[0]


@pytest.mark.parametrize(
    ("kernel", "of", "use"),
    [
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel", layer("/a/MatMul{}", "gemm"),  # noqa: E501
         Use("product", "FP16", "kernel", None, "yes")),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64_tensor16x8x8_execute_kernel_trt", layer("/a/MatMul{}", "gemm", F, F),  # noqa: E501
         Use("product", "TF32", "kernel", None, "yes")),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_execute_kernel_trt",
         layer("/a/MatMul{}", "gemm", F, F), Use("product", "FP32", "kernel", None, "no")),
        ("cudnn_generated_fort_native_sm80_matMul_knob_41_32x32x16_8_0", layer("/a/MatMul{}", "gemm", F, F),  # noqa: E501
         Use("product", "TF32", "engine", None, "yes")),
        ("cudnn_generated_matMul_fort_ffma_grouped_sm50_kernel0_0", layer("/a/MatMul{}", "gemm", F, F),  # noqa: E501
         Use("product", "FP32", "engine", None, "no")),
        ("cudnn_generated_fort_native_sm80_matMul_pointwise_knob_41_32x32x32_8_0", layer("__myl_FcAdd{}", "runtime_fusion"),  # noqa: E501
         Use("product", "FP16", "engine", None, "yes")),
        ("_gemm_mha_v2_0x7dc336e00c2ca56d5e53908cfcb191b1", layer("_gemm_mha_v2{}", "kgen"),
         Use("product", "FP16", "engine", None, "unknown")),
        ("__myl_AddErf_0x1a_com", layer("__myl_AddErf{}", "kgen"), Use("arithmetic", "FP16", "engine", None, "no")),  # noqa: E501
        ("__myl_bb0_5_AddResTra", Layer(0, "{ForeignNode[a...b]}", "foreign_node"), Use("arithmetic", None, None, None, "no")),  # noqa: E501
        ("__myl_bb0_1_Fc", Layer(0, "{ForeignNode[a...b]}", "foreign_node"), Use("product", None, None, None, "unknown")),  # noqa: E501
        ("__myl_ReshTran_0x1a", layer("__myl_ReshTran{}", "kgen"), Use("move", "FP16", "engine", None, "no")),  # noqa: E501
        ("__myl_Cast_0x1a", layer("__myl_Cast{}", "kgen", F), Use("convert", "FP32", "engine", "FP16", "no")),  # noqa: E501
        ("__myl_Cast_0x1a", Layer(0, "{ForeignNode[a...b]}", "foreign_node"), Use("convert", None, None, None, "no")),  # noqa: E501
        ("__myl_MulMinMaxRounCast_0x1a", layer("__myl_MulMinMaxRounCast{}", "kgen", F, I8), Use("convert", "FP32", "engine", "INT8", "no")),  # noqa: E501
        ("void genericReformat::copyPackedKernel<float, __half, (bool)1>(a)",
         layer("Reformatting CopyNode for Input Tensor 0 to a", "Reformat", F),
         Use("convert", "FP32", "engine", "FP16", "no")),
        ("void genericReformat::copyPackedKernel<float, __half, (bool)1>(a)", layer("/a/MatMul{}", "gemm"),  # noqa: E501
         Use("convert", "FP32", "kernel", "FP16", "no")),
        ("a_kernel_of_a_plugin", layer("p", "PluginV2DynamicExt"), Use("unknown", "FP16", "engine", None, "unknown")),  # noqa: E501
        ("a_kernel_of_nobody", None, Use("unknown", None, None, None, "unknown")),
    ],
)  # fmt: skip
def test_a_kernel_s_work_type_and_tensor_cores(kernel: str, of: Layer | None, use: Use) -> None:
    assert use_of(kernel, of) == use


def test_a_kernel_that_is_the_layer_s_tactic_by_another_name_has_the_tactic_s_answer() -> None:
    of = layer(
        "__myl_Fc{}",
        "fusion",
        TacticName="__myl_Fc_0x1a_tensorop128x64_cga1x1_sm1_acc_f32_tile_k_count_4_gemm_8_0",
    )
    assert (
        use_of(
            "__myl_Fc_0x1a_tensorop128x64_cga1x1_sm1_acc_f32_tile_k_count_4_gemm_8_0", of
        ).tensor_cores
        == "yes"
    )
    assert use_of("__myl_Fc_0x99", of).tensor_cores == "unknown"


def test_a_convolution_of_which_only_a_transposition_ran_is_no_conversion() -> None:
    of = layer("Conv_1", "CaskConvolution")
    moved = "void CUTENSOR_NAMESPACE::permutationKernelPLC3<float, (unsigned int)4>(x)"
    assert uses_of([moved], of)[moved] == Use("product", "FP16", "engine", None, "unknown")
    with_product = uses_of([moved, "trt_ampere_h16816gemm_128x64_ldg8_stages_64x3_tn_v1"], of)
    assert with_product[moved].work == "move"


def test_a_cast_reads_what_was_written_where_its_own_row_shows_one_type() -> None:
    engine = made(
        row("__myl_Mean{}", "kgen", [("x", [8], F)], [("v", [8], F)]),
        row("__myl_Cast{}", "kgen", [("v", [8], H)], [("y", [8], H)], TacticName="__myl_Cast_0x1a"),
    )
    cast = engine_precision_table(engine).records()[1]
    assert (cast["work"], cast["datatype"], cast["to_type"]) == ("convert", "FP32", "FP16")


def test_times_add_up_to_the_kernel_time_of_the_measured_inferences() -> None:
    for folder, file, engine in (
        ("bert_trt10", "sync.sqlite", True),
        ("bert_trt85", "sync.sqlite", True),
        ("bert_trt10", "graph.sqlite", False),
    ):
        tables = analysis(folder, file, engine=engine).tables
        kernels, inferences, table = tables.kernels, tables.inferences, tables.precision
        steady = inferences.ints("inference")[
            inferences.bools("complete") & ~inferences.bools("warmup")
        ]
        spent = (kernels.ints("end_ns") - kernels.ints("start_ns"))[
            np.isin(kernels.ints("inference"), steady)
        ].sum()
        assert table.ints("time_ns").sum() == spent
        assert table.ints("kernels").sum() == np.isin(kernels.ints("inference"), steady).sum()
        assert table.floats("share_of_kernel_time").sum() == pytest.approx(1)


def test_the_mean_is_over_the_inferences_that_ran_the_engine_and_unknown_without() -> None:
    """Two kernels of one kind of a layer of 3 inferences; a kernel of no engine, of none."""
    gemm = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize{}x64x32_stage4_tensor16x8x16_kernel"
    of_layer = {"layer_id": 0, "engine": 0, "inferences": 3, "kernels": 3}
    spent = Table.of_rows(
        KERNEL_TIME,
        [
            {**of_layer, "name": gemm.format(128), "time_ns": 600, "share_of_kernel_time": 0.6},
            {**of_layer, "name": gemm.format(64), "time_ns": 300, "share_of_kernel_time": 0.3},
            {"name": "own", "kernels": 2, "time_ns": 100, "share_of_kernel_time": 0.1},
        ],
    )
    engine = made(row("/a/MatMul", "gemm", [("a", [8, 8], H)], [("b", [8, 8], H)]))
    found = precision_table(spent, Table.empty(LAYERS), [engine])
    assert [
        (one.maybe_integer("layer_id"), one.integer("kernels"), one.maybe_integer("mean_ns"))
        for one in found
    ] == [(0, 6, 300), (None, 2, None)]
    assert found.floats("share_of_kernel_time") == pytest.approx([0.9, 0.1])


def by(table: Table, *columns: str) -> dict[tuple[object, ...], tuple[int, int | None]]:
    return {one.key: (one.layers, one.kernels) for one in totals(table, *columns)}


def test_bert_s_gemms_use_tensor_cores_and_its_attention_cannot_be_told() -> None:
    found = by(
        analysis("bert_trt10", "sync.sqlite").tables.precision,
        "work",
        "datatype",
        "to_type",
        "tensor_cores",
    )
    assert found[("product", "FP16", None, "yes")] == (29, 29 * 50)
    assert found[("product", "FP16", None, "unknown")] == (4, 4 * 50)
    assert found[("convert", "FP16", "FP32", "no")] == (1, 50)
    assert not any(work == "product" and cores == "no" for work, _, _, cores in found)


def test_inside_an_opaque_region_a_generated_kernel_s_type_cannot_be_told() -> None:
    tables = analysis("bert_trt85", "sync.sqlite").tables.precision.records()
    inside = [one for one in tables if str(one["region"]).startswith("{ForeignNode[")]
    assert {(one["work"], one["datatype"]) for one in inside} == {
        ("product", "FP16"),
        ("arithmetic", None),
        ("move", None),
    }


def test_a_trace_without_an_engine_is_told_by_its_kernel_names() -> None:
    found = totals(
        measured(map_report(exported("torch_encoder/eager"), [])).precision, "datatype", "told_by"
    )
    assert [(one.key, one.layers) for one in found] == [(("FP16", "kernel"), 0)]


def test_quantised_resnets_get_no_false_alarm_about_tensor_cores() -> None:
    folder = SHARED / "engines"
    if not folder.is_dir():
        pytest.skip("no public engine files here")
    found = engine_precision_table(
        read_engine(
            folder / "trt8_resnet_qat.graph.json", profile=folder / "trt8_resnet_qat.profile.json"
        )
    )
    without = [one for one in found if one["work"] == "product" and one["tensor_cores"] == "no"]
    # an int8x4 convolution of cuDNN runs on the integer units (DP4A), and is the only one
    assert [
        str(
            read_engine(folder / "trt8_resnet_qat.graph.json")
            .layers[one.integer("layer_id")]
            .tactic
        )
        for one in without
    ] == ["ampere_fp32_icudnn_int8x4_128x64_relu_medium_nn_v1"]


def test_a_names_only_engine_tells_no_types_and_little_about_tensor_cores() -> None:
    engine = made(
        {"Name": "/a/MatMul_myl0_1"},
        {"Name": "__myl_AddErf_myl0_2"},
        {"Name": "_gemm_mha_v2_myl0_3"},
    )
    found = engine_precision_table(engine).records()
    assert {one["datatype"] for one in found} == {None}
    assert [one["tensor_cores"] for one in found] == ["unknown", "no", "unknown"]


def test_a_region_is_known_from_the_file_or_from_the_name() -> None:
    assert region_of("x_myl3_1", "myelin_kernel", 3) == "myl3"
    assert region_of("x_myl5_1", "myelin_kernel", None) == "myl5"
    assert region_of("{ForeignNode[a...b]}", "foreign_node", None) == "{ForeignNode[a...b]}"
    assert region_of("Conv_1", "convolution", None) is None


def test_sentences_keep_cannot_tell_apart_from_not_used() -> None:
    rows = list(analysis("bert_trt10", "sync.sqlite").tables.precision)
    cores, conversions = report_precision.sentences(rows)
    shares = {one.key[0]: one.share for one in totals(rows, "tensor_cores")}
    assert set(shares) == {"yes", "no", "unknown"}
    assert f"cannot tell in {100 * (shares['unknown'] or 0):.1f}%" in cores
    assert f"not used in {100 * (shares['no'] or 0):.1f}%" in cores
    assert "(1 layer)" in conversions


def test_rows_without_times_are_counted_by_layer() -> None:
    rows = list(
        engine_precision_table(
            made(row("/a/MatMul{}", "gemm", [("a", [8, 8], H)], [("b", [8, 8], H)]))
        )
    )
    assert report_precision.heading(rows) == "Precision (from the engine file; no times were given)"
    assert report_precision.sentences(rows) == ["Tensor cores: cannot tell in 1 layer."]


def test_two_engines_are_kept_apart() -> None:
    path = exported("two_processes/processes")
    engines = read_engines(
        [FIXTURES / "bert_trt10" / "engine.json", FIXTURES / "bert_split_trt10" / "engine.json"]
    )
    found = dict(report_precision.by_engine(list(measured(map_report(path, engines)).precision)))
    assert set(found) == {0, 1}
    for rows in found.values():
        assert sum(one.real("share_of_kernel_time") for one in rows) == pytest.approx(1)


def test_an_engine_of_no_layers_that_work_has_no_rows() -> None:
    assert len(engine_precision_table(Engine("e", (Layer(0, "s", "shape"),), detailed=True))) == 0
