"""What names mean: the traps of Myelin's codes, data types, tensor cores, cut names, and the table
of names.
"""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.names.decode import KernelName, decode, layer_kind, names_table, pattern_words, summary
from nsysmap.names.myelin_tables import OPS, PATTERNS
from nsysmap.names.onnx_words import LAYER_TYPES, NODE_ROWS
from nsysmap.names.reference import field_words
from nsysmap.names.tactic_words import FIELD_ROWS, WORD_ROWS
from tests.places import SHARED

SHARED_NAMES = SHARED / "names"


def _ops(name: str) -> list[str]:
    return [op.op for op in decode(name).ops]


def _patterns(name: str) -> list[str]:
    return [pattern.name for pattern in decode(name).patterns]


def test_con_is_concat_res_is_reshape_and_sqr_is_square_root() -> None:
    assert _ops("__myl_ConResSqr_0x1f") == ["Concat", "Reshape", "Sqrt"]
    assert decode("__myl_CorrMulAddRelu_myl0_1").ops[0].op == "Conv"


def test_max_reduces_before_10_9_in_a_softmax_and_is_elementwise_after() -> None:
    assert _ops("__myl_TraMaxSubExpSum_0x1f")[1] == "ReduceMax"
    assert _ops("__myl_ReshMaxSubExpSum_0x1f")[1] == "Max"
    assert _ops("__myl_ReshMaxrSubExpSum_0x1f")[1] == "ReduceMax"


def test_max_alone_in_three_letters_cannot_be_told() -> None:
    _, op = decode("__myl_ResMax_0x1f").ops
    assert op.op == "Max or ReduceMax"
    assert op.evidence == "likely"


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("__myl_ResTra_0x1f", 3),
        ("__myl_ReshTran_0x1f", 4),
        ("__myl_DivMul_0x1f", None),
        ("__myl_bb0_3_MulSum", 3),
        ("__myl_ResReshAdd_0x1f", None),
    ],
)
def test_the_generation_is_told_where_the_codes_tell_it(name: str, generation: int | None) -> None:
    assert decode(name).generation == generation


def test_a_code_that_no_table_has_stays_and_is_never_guessed() -> None:
    decoded = decode("__myl_AddZorkMul_0x1f_com_vec")
    zork = decoded.ops[1]
    assert (zork.code, zork.op, zork.cls, zork.evidence) == ("Zork", "unknown", "unknown", "none")
    assert decoded.rest == "Zork"


def test_a_cut_list_says_so_and_tells_nothing_of_tensor_cores() -> None:
    decoded = decode("__myl_ConcSinCosSlicReshMulEtc_0x1f")
    assert decoded.ops[-1].cls == "cut"
    assert decoded.tensor_cores == "unknown"


def test_a_name_without_maximum_and_sum_is_a_silu_or_behind_the_statistics_of_a_softmax_its_second_half() -> (  # noqa: E501
    None
):
    assert _patterns("ResNegExpResAddDivMul") == ["silu"]
    assert "second half of" in decode("ResNegExpResAddDivMul").patterns[0].text


@pytest.mark.parametrize(
    ("codes", "patterns"),
    [
        ("AddCastMeanSubMulMeanAddSqrtDivMulCastMulAdd", ["residual-add", "layernorm"]),
        ("AddCastMeanSubMulMean", ["residual-add", "layernorm-statistics"]),
        ("AddSqrtDivMulCastMulAddReshTran", ["layernorm-affine"]),
        ("AddCastMulMeanAddSqrtDivMulCastMulCast", ["residual-add", "rmsnorm"]),
        ("MaxrSubExpSumDivMul", ["softmax"]),
        ("AddMaxrSubExpSum", ["softmax-statistics"]),
        ("DivMulTran", ["softmax-normalize"]),
        ("FcMulCastErfCastAddMulMul", ["gelu-erf"]),
        ("FcMulMulMulAddMulTanhAddMulMul", ["gelu-tanh"]),
        ("SlicSlicMulMulMulAddMulTanhAddMulMulMul", ["geglu"]),
        ("SlicSiluSlicMul", ["swiglu"]),
        ("SlicNegSlicConcMulMulAdd", ["rope"]),
        ("FcAddDivCastErfCastAddMulMul", ["bias", "gelu-erf"]),
        ("CorrMulAddMinMaxMul", ["hard-swish"]),
        ("FcAddAdd", ["bias", "residual-add"]),
        ("FcAddSilu", ["bias", "silu"]),
        ("FcAdd", ["bias-or-residual"]),
        ("CorrAddMaxMin", ["bias", "clip"]),
        ("GnorSilu", ["groupnorm", "silu"]),
        ("AddAddMeanSubCastMulMeanAddSqrtDivMulCastMulAdd", ["residual-add", "layernorm"]),
        ("SlicMulMulSlicMulAddMulSubConc", ["rope"]),
        ("MulMinMaxRounCast", ["int8-quantize"]),
        ("MulMinMaxRounCastCastMul", ["int8-quantize-dequantize"]),
        ("ReshTranMulCast", ["fp8-quantize"]),
        ("MulReshDyna", ["fp4-quantize"]),
        ("ReshTranReshMove", ["pure-data-movement"]),
        ("CastCast", ["pure-cast"]),
        ("CastReshCast", ["data-movement-and-cast"]),
        ("AddMul", []),
    ],
)
def test_patterns_are_found_in_order(codes: str, patterns: list[str]) -> None:
    assert _patterns(f"__myl_{codes}_0x1f") == patterns


def test_a_pattern_covers_the_ops_it_names() -> None:
    decoded = decode(
        "__myl_ReshTranReshAddCastMeanSubMulMeanAddSqrtDivMulCastMulAddMulCast_0x1f_vec"
    )
    spans = {pattern.name: (pattern.first, pattern.last) for pattern in decoded.patterns}
    assert spans == {"residual-add": (3, 3), "layernorm": (4, 15), "fp8-quantize": (16, 17)}


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row.name)
def test_every_pattern_is_found_in_the_name_that_proves_it(row: object) -> None:
    name, example = str(getattr(row, "name", "")), str(getattr(row, "example", ""))
    assert name in _patterns(example)


@pytest.mark.parametrize("row", OPS, ids=lambda row: row.code4 or row.code3)
def test_every_op_code_stands_in_the_name_that_proves_it_or_is_a_guess(row: object) -> None:
    example = str(getattr(row, "example", ""))
    codes = {getattr(row, "code4", ""), getattr(row, "code3", "")} - {""}
    if not example:
        assert {getattr(row, "evidence4", ""), getattr(row, "evidence3", "")} <= {"guess", ""}
    else:
        assert codes & {op.code for op in decode(example).ops}


@pytest.mark.parametrize("row", WORD_ROWS, ids=lambda row: row.word)
def test_every_word_stands_in_the_name_that_proves_it(row: object) -> None:
    assert str(getattr(row, "word", "")) in str(getattr(row, "example", "")).split("_")


def test_no_op_code_and_no_node_word_is_listed_twice() -> None:
    for codes in (
        [row.code4 for row in OPS],
        [row.code3 for row in OPS],
        [row.word for row in NODE_ROWS],
    ):
        held = [code for code in codes if code]
        assert len(held) == len(set(held))


def test_xmma_types_are_input_output_compute_accumulate() -> None:
    fields = decode(
        "sm80_xmma_fprop_implicit_gemm_interleaved_i8f16_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32_nchw_vect_c_32"
    ).fields
    assert (
        fields["input_type"],
        fields["output_type"],
        fields["compute_type"],
        fields["accumulate_type"],
    ) == (
        "INT8",
        "FP16",
        "INT8",
        "INT32",
    )
    assert fields["layout"] == "nchw_vect_c_32kcrs_vect_c_32_nchw_vect_c_32"


def test_cudnn_style_names_put_the_output_type_first() -> None:
    fields = decode("turing_fp32_i8816cudnn_int8_128x128_ldg16_relu_small_nt_v1").fields
    assert (fields["input_type"], fields["output_type"]) == ("INT8", "FP32")


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4",
            "no",
        ),
        (
            "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x64_stage4_warpsize2x2x1_tensor16x8x16",
            "yes",
        ),
        (
            "sm90_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x64_cgasize1x1x1_warpgroupsize1x1x1_beta0",
            "yes",
        ),
        ("sm80_xmma_gemm_f16f16_f16f16_f16_tn_n", "unknown"),
        ("ampere_scudnn_128x64_relu_medium_nn_v1", "no"),
        ("ampere_fp16x2_hcudnn_fp16x2_128x64_relu_small_nn_v1", "no"),
        ("volta_int8x4_icudnn_int8x4_128x32_relu_small_nn_v1", "no"),
        ("turing_fp16_i8816cudnn_int8_128x128_ldg16_relu_small_nt_v1", "yes"),
        ("ampere_h16816gemm_128x128_ldg8_relu_stages_32x5_nn_v1", "yes"),
        (
            "sm70_xmma_fprop_conv1x1_i8f32_f32_f32_nchw_vect_c_4kcrs_vect_c_4_nchw_simt_small_batch_bias_relu",
            "no",
        ),
        ("sm72_xmma_pooling_IMMA_NCxHW32_gap_execute_kernel_trt", "yes"),
        ("__myl_Fc_0x1f_tensorop64x128_cga1x1_sm1_acc_float_tile_k_count_4_gemm_810_0", "yes"),
        ("__myl_FcCas_0x1f", "unknown"),
        ("__myl_AddMul_0x1f", "no"),
        ("generatedNativePointwise", "no"),
        ("_gemm_mha_v2_0x1f", "unknown"),
    ],
)
def test_tensor_cores_are_told_only_by_what_proves_them(name: str, uses: str) -> None:
    assert decode(name).tensor_cores == uses


def test_nested_template_arguments_are_split_at_their_own_commas_only() -> None:
    decoded = decode(
        "void ns::kernel<(int)4, ns::Op<float, std::array<char *, (unsigned long)3>>,"
        " (bool)0>(const T1 *, T2<int, 3>)"
    )
    assert (
        decoded.fields["template"]
        == "(int)4, ns::Op<float, std::array<char *, (unsigned long)3>>, (bool)0"
    )
    assert decoded.fields["function"] == "kernel"
    assert decoded.fields["namespace"] == "ns"


def test_a_name_with_brackets_that_do_not_close_is_left_over() -> None:
    assert decode("void ns::kernel<int(").rest == "ns::kernel<int("


def test_a_name_that_nsys_cut_keeps_what_is_whole() -> None:
    decoded = decode("sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x2…")
    assert decoded.fields["cut"] == "yes"
    assert "tile" not in decoded.fields
    assert decoded.rest == ""


def test_a_range_is_read_by_the_text_behind_its_domain() -> None:
    decoded = decode("myelin-exec:__myl_Fc_myl0_1764")
    assert (decoded.family, decoded.kind, decoded.fields["domain"]) == (
        "myelin",
        "range",
        "myelin-exec",
    )
    assert decode(":S0_policy_infer_total").family == "nvtx"
    assert decode("myelinGraphExecute ").family == "api"


def test_a_reformat_names_the_tensor_and_the_layer_it_serves() -> None:
    fields = decode("Reformatting CopyNode for Output Tensor 1 to /a/Conv + /b/Relu").fields
    assert (fields["direction"], fields["tensor"], fields["of_layer"]) == (
        "output",
        1,
        "/a/Conv + /b/Relu",
    )


def test_a_foreign_node_names_its_first_and_last_node() -> None:
    fields = decode(
        "{ForeignNode[bert.embeddings.weight + (Unnamed Layer* 3)"
        " [Shuffle].../pooler/activation/Tanh]}"
    ).fields
    assert fields["first_node"] == "bert.embeddings.weight + (Unnamed Layer* 3) [Shuffle]"
    assert fields["last_node"] == "/pooler/activation/Tanh"


def test_the_summary_is_one_line() -> None:
    assert (
        summary(decode("__myl_AddCastMeanSubMulMeanAddSqrtDivMulMulAdd_myl0_6"))
        == "myelin layer: residual-add, layernorm"
    )
    assert (
        summary(decode("Reformatting CopyNode for Input Tensor 0 to /a/Conv"))
        == "reformat of input tensor 0 of /a/Conv"
    )


def test_the_table_of_names_holds_every_distinct_name_once() -> None:
    table = names_table(["__myl_AddCast_0x1f", "ampere_sgemm_128x64_tn", "__myl_AddCast_0x1f"])
    records = table.records()
    assert [record["name"] for record in records] == [
        "__myl_AddCast_0x1f",
        "ampere_sgemm_128x64_tn",
    ]
    assert records[0]["ops"] == "Add,Cast"
    assert (records[1]["arch"], records[1]["tensor_cores"]) == ("sm80", "no")


def _holds_together(decoded: KernelName, name: str) -> None:
    assert decoded.name == name
    assert "".join(decoded.pieces) == name
    assert decoded.kind in ("kernel", "layer", "range", "unknown")
    assert decoded.tensor_cores in ("yes", "no", "unknown")
    for pattern in decoded.patterns:
        assert 0 <= pattern.first <= pattern.last < len(decoded.ops)
    assert "\n" in name or "\n" not in summary(decoded)


@given(st.text())
def test_any_text_decodes_and_its_pieces_rejoin(name: str) -> None:
    _holds_together(decode(name), name)


_PARTS = [
    *(
        "__myl_",
        "_gemm_mha_v2",
        "__mye12",
        "bb0_1_",
        "Resh",
        "Mul",
        "Max",
        "Etc",
        "_0x1f",
        "_com",
        "_vec",
        "_myl0_3",
        " [profile 1]",
    ),
    *(
        "sm80_xmma_",
        "cutlass_80_",
        "nvjet_",
        "fmha_v2_",
        "triton_poi_fused_",
        "nccl",
        "_Z",
        "f16f16_",
        "tilesize64x64x32_",
        "_execute_kernel_trt",
    ),
    *(
        "void ",
        "at::native::",
        "<",
        ">",
        "(",
        ")",
        ",",
        "::",
        "PWN(",
        "{ForeignNode[",
        "...",
        "]}",
        " + ",
        " || ",
        "/",
        "Conv",
        "_1",
        "…",
        "9" * 30,
    ),
]


@given(st.lists(st.sampled_from(_PARTS), max_size=40).map("".join))
@settings(max_examples=400)
def test_any_joining_of_the_parts_of_names_decodes(name: str) -> None:
    _holds_together(decode(name), name)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "_",
            "1",
            "_1",
            "Aa",
            "__myl_Add",
            "<",
            ">",
            "(",
            "<a",
            "(Unnamed Layer* 1) [a",
            "PWN(",
            " + ",
            "_exec_a",
            "1d",
            "x1",
            "FP32",
            "n",
        ),
        *(
            "_clone_1",
            "::",
            "...",
            "a...",
            "TensorRT:",
            "sm80_xmma_c_1_",
            "/a",
            "[",
            "\x1f",
            "é",
            "_output_1",
            "depthwise",
            "nchw_vect_c_",
        ),
    ],
)
@pytest.mark.parametrize(
    "begin",
    [
        "",
        "__myl_",
        "sm80_xmma_",
        "triton_poi_",
        "void f<",
        "nccl",
        "PWN(",
        "Reformatting CopyNode for Input Tensor 0 to ",
    ],
)
def test_names_of_100_kilobytes_decode(begin: str, unit: str) -> None:
    """Work that grows with the square of the length would take minutes here."""
    name = begin + unit * (100_000 // len(unit)) + "!"
    _holds_together(decode(name), name)


def test_every_layer_type_has_a_class_of_the_model() -> None:
    from nsysmap.inputs.engine.model import LAYER_KINDS

    assert set(LAYER_TYPES.values()) <= set(LAYER_KINDS)
    assert {row.kind for row in NODE_ROWS} <= set(LAYER_KINDS)


@pytest.mark.skipif(not SHARED_NAMES.is_dir(), reason="the public names are not here")
def test_public_convolution_tactics_use_tensor_cores_as_known() -> None:
    with (SHARED_NAMES / "tensor_cores.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            assert decode(row["tactic"]).tensor_cores == row["tensor_cores"], row["tactic"]


@pytest.mark.skipif(not SHARED_NAMES.is_dir(), reason="the public names are not here")
def test_of_the_public_names_no_op_code_is_unknown_and_nothing_is_left_over() -> None:
    with (SHARED_NAMES / "names.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    decoded = [decode(row["name"]) for row in rows]
    assert len(rows) > 1800
    assert [op.code for name in decoded for op in name.ops if op.op == "unknown"] == []
    assert [name.name for name in decoded if name.rest] == []
    assert [
        name.name for name in decoded if "ffma" in name.name and name.tensor_cores != "no"
    ] == []


def test_every_field_of_every_example_has_a_label_and_tokens_are_explained() -> None:
    names = [decode(row.example) for row in WORD_ROWS]
    fields = {field for name in names if name.kind == "kernel" for field in name.fields}
    assert fields <= {row.field for row in FIELD_ROWS}
    told = {
        label: (value, means)
        for label, value, means in field_words(
            decode("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4")
        )
    }
    assert told["built for"] == ("sm80", "compute capability 8.0: Ampere")
    assert told["transpose"] == ("tn", "A transposed, B not")
    assert told["stages"][0] == "4"
    wide = field_words(
        decode("sm90_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize128x128x64_warpgroupsize1x1x1_gelu")
    )
    assert "of four warps" in next(means for label, _, means in wide if label == "warpgroups")


@pytest.mark.parametrize(
    ("name", "family", "fields"),
    [
        ("nvkernel_solve_F1L204_2", "offload", {"function": "solve", "line": 204}),
        (
            "nvkernel__Z20openmp_metadirectivePKdPdiiddb_F1L347_62",
            "offload",
            {"function": "openmp_metadirective", "line": 347},
        ),
        ("__omp_offloading_10302_a2f0_main_l57", "offload", {"function": "main", "line": 57}),
        (
            "matrixCalc_12_gpu",
            "offload",
            {"function": "matrixCalc", "line": 12, "operation": "unknown"},
        ),
        (
            "matrixCalc_12_gpu__red",
            "offload",
            {"function": "matrixCalc", "line": 12, "operation": "reduce"},
        ),
        ("_Z17matrixCalc_12_gpui", "offload", {"function": "matrixCalc", "line": 12}),
        (
            "loop_multiply_fusion",
            "xla",
            {"sort": "loop", "fused": "multiply", "operation": "pointwise"},
        ),
        ("input_concatenate_fusion_3", "xla", {"sort": "input", "operation": "concat"}),
        ("gemm_fusion_dot_6", "xla", {"sort": "gemm", "operation": "gemm"}),
        (
            "cumsum_kernel_0d1d2c3de4de",
            "triton",
            {"function": "cumsum_kernel", "signature": "0d1d2c3de4de", "operation": "scan"},
        ),
        (
            "multinomial_with_replacement_0d1d2345",
            "triton",
            {"function": "multinomial_with_replacement"},
        ),
        (
            "kernel_2d",
            "cuda",
            {"function": "kernel_2d"},
        ),  # no signature: it does not begin with the first argument
        ("sgemm_naive(int, float, const float *, float *)", "cuda", {"operation": "gemm"}),
        ("matrixTransposeMulKernel(float *, float *)", "cuda", {"operation": "gemm"}),
        ("void MatrixMulCUDA<32>(float *, float *, int)", "cuda", {"operation": "gemm"}),
        ("transpose_kernel(float *)", "cuda", {"operation": "shuffle"}),
        ("_16broadcast_kernel15CuKernelContext", "cuda", {"operation": "pointwise"}),
        ("float2half_cast_kernel(float *)", "cuda", {"operation": "cast"}),
        ("void sgemm_tiled<(int)32>(const float *, float *)", "cuda", {"operation": "gemm"}),
        ("void gemmSN_NN_kernel<float, (int)128>(const float *)", "cublas", {"operation": "gemm"}),
        ("convexConvexNphase_stage1Kernel", "cuda", {"operation": "unknown"}),
        ("ngp::generate_grid_samples_nerf_uniform(unsigned int)", "cuda", {"operation": "unknown"}),
        (
            "void tcnn::kernel_mlp_fused<(int)64, __half, (tcnn::Activation)0>(tcnn::Activation)",
            "cuda",
            {"operation": "gemm"},
        ),
        ("conv1d_kernel(float *, int)", "cuda", {"operation": "convolution"}),
    ],
)
def test_kernels_of_compilers_and_other_programs_are_not_taken_for_layers_or_libraries(
    name: str, family: str, fields: dict[str, str | int]
) -> None:
    decoded = decode(name)
    assert decoded.family == family
    assert {key: decoded.fields.get(key) for key in fields} == fields


@pytest.mark.parametrize(
    "node",
    [
        "/blocks.5/attn/ViTAttentionPlugin",
        "/mlp/up_proj/MatMulPlugin_3",
        "CustomSkipLayerNormPluginDynamic_7",
    ],
)
def test_a_node_named_as_a_plugin_is_a_plugin_layer(node: str) -> None:
    assert layer_kind(node, None) == "plugin"
    assert layer_kind("/PluginHead/fc/Gemm", None) == "gemm"


def test_a_kernel_numbered_like_a_layer_is_no_layer() -> None:
    (row,) = names_table(["mixed_cp_fft_kernel_3_1"])
    assert row.text("family") == "unknown"
    assert decode("mixed_cp_fft_kernel_3_1").family == "layer"


def test_tf32_is_told_beside_the_type_of_the_data() -> None:
    assert "FP32, computes in TF32" in summary(
        decode("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_stage3_tensor16x8x8")
    )


def test_what_a_name_only_makes_likely_is_called_so_in_every_table() -> None:
    assert summary(decode("__myl_bb0_24_ResNegExpResAddDivMul")) == "myelin kernel: likely silu"
    assert (
        summary(decode("__myl_bb0_23_ResMulAddMaxSubExpSum")) == "myelin kernel: softmax-statistics"
    )
    assert pattern_words(decode("__myl_CastMulAdd_myl0_1"))[0].startswith("perhaps ")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ncclDevKernel_AllReduce_Sum_f16_RING_LL", "nccl"),
        ("ncclKernel_SendRecv", "nccl"),
        ("ncclAllReduce", "api"),
    ],
)
def test_an_nccl_kernel_without_parameters_is_no_call_of_nccl(name: str, family: str) -> None:
    assert decode(name).family == family


def test_the_words_for_a_generated_kernel_begin_with_its_product() -> None:
    decoded = decode("__myl_FcAddDivCastErfCastAddMulMul_myl0_9")
    assert pattern_words(decoded) == ["gemm", "bias", "gelu-erf"]
    assert pattern_words(decode("__myl_FcAdd_myl0_9")) == ["gemm", "bias-or-residual"]
    assert pattern_words(decode("_gemm_mha_v2_0x5c2a")) == ["attention"]


@pytest.mark.parametrize(
    ("name", "random"),
    [
        ("julia_calculate_normal_velocity_tendency_cuda_kernel__6948", False),
        ("compute_normal_kernel", False),
        ("void uniform_grid_kernel(float*)", False),
        ("surface_normal_(float*)", False),
        ("void generate_seed_pseudo<rng_config<curandStateXORWOW> >(int)", True),
        ("_philox_dropout_kernel", True),
        ("cupy_random_uniform", True),
    ],
)
def test_what_is_normal_or_uniform_draws_nothing(name: str, *, random: bool) -> None:
    assert (decode(name).fields.get("operation") == "random") == random
