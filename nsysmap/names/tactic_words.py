"""The tables of the name decoder for library kernels: family words, the words of tactic names and
data types, one line each.
"""
# ruff: noqa: E501 - one entry per line

from __future__ import annotations

from typing import NamedTuple


class WordRow(NamedTuple):
    """One word of an underscore-joined name: the field it fills, its value, and a name that
    contains it.
    """

    word: str
    role: str
    value: str
    example: str


_X = "sm80_xmma_fprop_implicit_gemm_interleaved_indexed_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32_nchw_vect_c_32_tilesize64x32x64_stage6"
_W = "sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x32x64_stage1_warpsize4x1x1_g1_tensor16x8x16"
_D = "sm72_xmma_convolution_depthwiseSdcrr_INT8NCxHW32_R3_S3_U1_V1_ReusePRMT_InnerLoop4_CtaSize128"
_B = "sm50_xmma_cublas_gemvx_f32f32_f32_f32_tn_n_int32_unit_n_launch_param8x32x32_strided_unit_stride"
_F = "trt_turing_cutlass_image_network_first_layer_hmma_fprop_f16f16f32_nhwc_nhwc_k64r7s7c4_stride2x2"
_C = "ampere_scudnn_128x64_relu_xregs_large_nn_v1"
_G = "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_cooperative_epi_tma"
_S = "sm50_xmma_conv_fprop_fused_conv_act_fp32_NCHW_fp32_NCHW_KCRS_fp32_fp32_fp32_Accfloat_1_1_cC1_dC1_srcVec1_fltVec1"
_H = "fmha_v2_flash_attention_fp16_64_128_S_qkv_128_causal_sm86_kernel_nl"

WORD_ROWS: tuple[WordRow, ...] = (
    WordRow("5x", "", "", "_5x_cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1"),
    # what it computes
    WordRow("gemm", "operation", "gemm", "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize128x64x32_stage5"),
    WordRow("gemvx", "operation", "gemv", _B),
    WordRow("fprop", "direction", "fprop", _X),
    WordRow("dgrad", "direction", "dgrad", "sm80_xmma_dgrad_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32_stage4"),
    WordRow("wgrad", "direction", "wgrad", "sm80_xmma_wgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4"),
    WordRow("deconv", "operation", "deconvolution", "sm80_xmma_deconv_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32"),
    WordRow("convolution", "operation", "convolution", _D),
    WordRow("conv", "operation", "convolution", _S),
    WordRow("conv1x1", "operation", "convolution", "sm70_xmma_fprop_conv1x1_i8f32_f32_f32_nchw_vect_c_4kcrs_vect_c_4_nchw_simt_small_batch_bias_relu"),
    WordRow("conv2d", "operation", "convolution", "sm50_xmma_fprop_conv2d_c1_k1_f32f32_f32_f32_nchwkcrs_nchw_tilesize10x10x8_threadsize2x2"),
    WordRow("pooling", "operation", "pooling", "sm50_xmma_pooling_fw_4d_FP32FP32NCHW_Max"),
    WordRow("pool", "epilogue", "pool", "sm80_trt_conv_act_pool_v3_tile_rows_8_tile_cols_116"),
    WordRow("sdpa", "operation", "attention", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"),
    # how: variants
    WordRow("implicit", "variant", "implicit", _X),
    WordRow("indexed", "variant", "indexed", _X),
    WordRow("interleaved", "variant", "interleaved", _X),
    WordRow("sparse", "variant", "sparse", "sm80_xmma_gemm_sparse_f16f16_f16f16_f16_tn_n_tilesize128x128x64_stage3"),
    WordRow("wo", "variant", "wo", _W),
    WordRow("smem", "variant", "smem", _W),
    WordRow("simple", "variant", "simple", "sm75_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32_stage1_warpsize2x2x1_g1_tensor16x8x8_simple_t1r1s1"),
    WordRow("aACCESS", "variant", "aACCESS", "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16_t1r3s3_aACCESS"),
    WordRow("xcorr", "variant", "xcorr", "sm50_xmma_fprop_conv2d_c1_k1_f32f32_f32_f32_nchwkcrs_nchw_tilesize10x10x8_threadsize2x2_r3s3_u2v2_xcorr_zerobeta"),
    WordRow("zerobeta", "variant", "zerobeta", "sm50_xmma_fprop_conv2d_c1_k1_f32f32_f32_f32_nchwkcrs_nchw_tilesize10x10x8_threadsize2x2_r3s3_u2v2_xcorr_zerobeta"),
    WordRow("packed", "variant", "packed", "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage2_g1_ffma_beta0_packed_stride"),
    WordRow("stride", "variant", "stride", "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage2_g1_ffma_beta0_packed_stride"),
    WordRow("strided", "variant", "strided", _B),
    WordRow("stridedB", "variant", "stridedB", "volta_scudnn_128x64_stridedB_splitK_medium_nn_v1"),
    WordRow("unit", "variant", "unit", _B),
    WordRow("copyx", "variant", "copyx", "sm50_xmma_cublas_gemvx_f16f16_f32_f32_tn_n_int32_unit_n_launch_param8x32x32_strided_copyx_unit_stride"),
    WordRow("launch", "", "", _B),
    WordRow("small", "variant", "small", "volta_fp16_scudnn_fp16_128x64_relu_small_nn_v1"),
    WordRow("medium", "variant", "medium", "ampere_scudnn_128x64_relu_medium_nn_v1"),
    WordRow("large", "variant", "large", _C),
    WordRow("interior", "variant", "interior", "trt_maxwell_scudnn_128x32_relu_interior_nn_v1"),
    WordRow("exp", "variant", "exp", "ampere_scudnn_128x128_ldg4_relu_exp_large_nhwc_tn_v1"),
    WordRow("xregs", "variant", "xregs", _C),
    WordRow("singleBuffer", "variant", "singleBuffer", "volta_fp32_i8816cudnn_int8_256x64_ldg16_relu_singleBuffer_interior_nt_v1"),
    WordRow("mobile", "variant", "mobile", "ampere_scudnn_winograd_128x128_ldg1_ldg4_mobile_relu_tile148t_nt_v0"),
    WordRow("winograd", "variant", "winograd", "ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"),
    WordRow("wngd", "variant", "winograd", "sm80_xmma_fprop_wngd_f32f32_f32_f32_nchwkcrs_nchw_tilesize8x16x64x8_warpsize8x1x1_wngd2x2"),
    WordRow("f2f", "variant", "f2f", "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_nn"),
    WordRow("batch", "variant", "batch", "sm70_xmma_fprop_conv1x1_i8f32_f32_f32_nchw_vect_c_4kcrs_vect_c_4_nchw_simt_small_batch_bias_relu"),
    WordRow("fused", "variant", "fused", _S),
    WordRow("image", "variant", "image", _F),
    WordRow("network", "variant", "network", _F),
    WordRow("first", "variant", "first", _F),
    WordRow("layer", "variant", "layer", _F),
    WordRow("optimized", "variant", "optimized", "cutlass_tensorop_h16816fprop_optimized_128x128_32x3_nhwc_align8"),
    WordRow("stages", "", "", "ampere_h16816gemm_128x128_ldg8_relu_stages_32x5_nn_v1"),
    WordRow("tiled", "variant", "tiled", "sm50_xmma_pooling_tiled_FP32NCHW_kMAX_tP2_tQ16_tR2_tS2"),
    WordRow("fw", "direction", "fw", "sm50_xmma_pooling_fw_4d_FP32FP32NCHW_Max"),
    WordRow("4d", "variant", "4d", "sm50_xmma_pooling_fw_4d_FP32FP32NCHW_Max"),
    WordRow("nd", "variant", "nd", "sm50_xmma_pooling_nd_NDHWC_kMAX_kGENERIC_3D_POOLING_MODE_kHALF_3"),
    WordRow("GenericWindowWidth", "variant", "GenericWindowWidth", "sm50_xmma_pooling_fw_4d_FP16FP32NHWC_Average_FastDiv_GenericWindowWidth_CAlign4_execute_kernel_trt"),
    WordRow("linkable", "variant", "linkable", "trt_turing_h1688cudnn_256x64_ldg8_relu_exp_small_nhwc_linkable_tn_v1"),
    WordRow("as", "variant", "as", "sm70_xmma_gemm_as_conv1x1_f16f16_f16_f16_tn_n_simt_small_batch_bias_relu_exec_conv1x1_kernel_0_kernel_trt"),
    WordRow("coalescedC", "variant", "coalescedC", "sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False"),
    WordRow("CHWPacked", "variant", "CHWPacked", "sm50_xmma_pooling_CHWPacked_NCxHW4_kAVERAGE"),
    WordRow("FastDiv", "variant", "FastDiv", "sm50_xmma_pooling_fw_4d_FP32FP32NCHW_Average_FastDiv"),
    WordRow("False", "variant", "False", "sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False"),
    WordRow("True", "variant", "True", "sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_True"),
    WordRow("kGENERIC", "variant", "generic", "sm50_xmma_pooling_nd_NDHWC_kMAX_kGENERIC_3D_POOLING_MODE_kHALF_3"),
    WordRow("3D", "variant", "3D", "sm50_xmma_pooling_nd_NDHWC_kMAX_kGENERIC_3D_POOLING_MODE_kHALF_3"),
    WordRow("2D", "variant", "2D", "sm50_xmma_pooling_nd_NHWC_kMAX_kGENERIC_2D_POOLING_MODE_kHALF_3"),
    WordRow("POOLING", "", "", "sm50_xmma_pooling_nd_NDHWC_kMAX_kGENERIC_3D_POOLING_MODE_kHALF_3"),
    WordRow("MODE", "", "", "sm50_xmma_pooling_nd_NDHWC_kMAX_kGENERIC_3D_POOLING_MODE_kHALF_3"),
    WordRow("kMAX", "pooling", "max", "sm50_xmma_pooling_CHWPacked_NCxHW4_kMAX"),
    WordRow("Max", "pooling", "max", "sm50_xmma_pooling_fw_4d_FP32FP32NCHW_Max"),
    WordRow("max", "pooling", "max", "sm50_xmma_pooling_max_nhwc_FP16FP32_WINDOWSIZE_3_NOT_PROPAGATE_NAN_2D"),
    WordRow("WINDOWSIZE", "", "", "sm50_xmma_pooling_max_nhwc_FP16FP32_WINDOWSIZE_3_NOT_PROPAGATE_NAN_2D"),
    WordRow("NOT", "variant", "NOT", "sm50_xmma_pooling_max_nhwc_FP16FP32_WINDOWSIZE_3_NOT_PROPAGATE_NAN_2D"),
    WordRow("PROPAGATE", "variant", "PROPAGATE", "sm50_xmma_pooling_max_nhwc_FP16FP32_WINDOWSIZE_3_NOT_PROPAGATE_NAN_2D"),
    WordRow("NAN", "variant", "NAN", "sm50_xmma_pooling_max_nhwc_FP16FP32_WINDOWSIZE_3_NOT_PROPAGATE_NAN_2D"),
    WordRow("kAVERAGE", "pooling", "average", "sm50_xmma_pooling_CHWPacked_NCxHW4_kAVERAGE"),
    WordRow("Average", "pooling", "average", "sm50_xmma_pooling_fw_4d_FP32FP32NCHW_Average_FastDiv"),
    WordRow("gap", "pooling", "global average", "sm72_xmma_pooling_IMMA_NCxHW32_gap"),
    WordRow("kHALF", "types", "fp16", "sm50_xmma_pooling_nd_NDHWC_kMAX_kGENERIC_3D_POOLING_MODE_kHALF_3"),
    WordRow("kFLOAT", "types", "fp32", "sm50_xmma_pooling_nd_NCDHW_kMAX_kGENERIC_3D_POOLING_MODE_kFLOAT_0"),
    WordRow("kINT8", "types", "int8", "sm50_xmma_pooling_nd_NHWC_kMAX_kGENERIC_2D_POOLING_MODE_kINT8_0"),
    WordRow("ReusePRMT", "variant", "ReusePRMT", _D),
    WordRow("Accfloat", "accumulate_type", "FP32", _S),
    WordRow("trt", "", "", "sm50_xmma_convolution_trt_depthwiseFP32NHWC4_fp32nhwcx4_fp32nhwcx4_fp32kcrs"),
    WordRow("int8x4", "types", "int8", "volta_int8x4_icudnn_int8x4_128x32_relu_small_nn_v1"),
    WordRow("fp16x2", "types", "fp16", "ampere_fp16x2_hcudnn_fp16x2_128x64_relu_small_nn_v1"),
    # epilogue
    WordRow("bias", "epilogue", "bias", "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm_bias_f32_gelu_valpha_vbeta"),
    WordRow("relu", "variant", "relu", _C),
    WordRow("gelu", "epilogue", "gelu", "sm90_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize128x128x64_warpgroupsize1x1x1_gelu"),
    WordRow("silu", "epilogue", "silu", "cutlass3x_sm100_tensorop_s128x128x32gemm_e4m3_e4m3_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm_bias_f32_silu"),
    WordRow("gelubias", "epilogue", "bias+gelu", "nvjet_sm90_hsh_48x64_64x15_4x2_h_bz_gelubias_TNN"),
    WordRow("epifadd", "epilogue", "residual add", "sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32_nchw_vect_c_32_tilesize64x64x64_stage6_t1r1s1_epifadd"),
    WordRow("act", "epilogue", "activation", "sm80_trt_conv_act_pool_v3_tile_rows_8_tile_cols_116"),
    WordRow("valpha", "epilogue", "vector alpha", "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm_bias_f32_gelu_valpha_vbeta"),
    WordRow("vbeta", "epilogue", "vector beta", "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm_bias_f32_gelu_valpha_vbeta"),
    # tensor cores or not
    WordRow("ffma", "math", "cuda:ffma", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4"),
    WordRow("simt", "math", "cuda:simt", "cutlass_80_simt_sgemm_128x128_8x5_nt_align1"),
    WordRow("hmma", "math", "hmma", _F),
    WordRow("IMMA", "math", "imma", "sm72_xmma_pooling_IMMA_NCxHW32_gap"),
    WordRow("HMMA", "math", "hmma", "sm72_xmma_pooling_HMMA_NCxHW32_gap"),
    WordRow("wgmma", "math", "wgmma", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"),
    WordRow("tensorop", "math", "tensorop", _G),
    WordRow("bstensorop", "math", "bstensorop", "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_128x128x256_0_tnn_align32_o_vs16_1sm"),
    WordRow("sptensorop", "math", "sptensorop", "cutlass_80_sptensorop_h16832gemm_128x128_64x3_tn_align8"),
    WordRow("wmma", "math", "wmma", "cutlass_75_wmma_tensorop_h161616gemm_16x16_128x2_tn_align8"),
    # layout
    WordRow("vect", "layout", "vect", _X),
    WordRow("c", "layout", "c", _X),
    WordRow("n", "output_layout", "n", "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize128x64x32_stage5"),
    WordRow("t", "output_layout", "t", "sm80_xmma_gemm_f16f16_f16f16_f16_tn_t_tilesize128x64x32_stage5"),
    # cutlass 3 and nvjet schedules
    WordRow("warpspecialized", "schedule", "warpspecialized", _G),
    WordRow("cooperative", "schedule", "cooperative", _G),
    WordRow("pingpong", "schedule", "pingpong", "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_ttt_align8_warpspecialized_pingpong_epi_tma"),
    WordRow("epi", "schedule", "epi", _G),
    WordRow("tma", "schedule", "tma", _G),
    WordRow("nosmem", "schedule", "nosmem", "cutlass3x_sm90_tensorop_h64x128x16gemm_f16_f16_f16_void_f16_128x128x64_2x1x1_0_ttn_align8_warpspecialized_pingpong_epi_nosmem"),
    WordRow("1sm", "schedule", "1sm", "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_e4m3_e4m3_128x128x128_0_tnn_align16_1sm"),
    WordRow("2sm", "schedule", "2sm", "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_e4m3_e4m3_128x128x128_0_tnn_align16_2sm"),
    WordRow("o", "schedule", "o", "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_128x128x256_0_tnn_align32_o_vs16_1sm"),
    WordRow("vs16", "schedule", "vs16", "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_128x128x256_0_tnn_align32_o_vs16_1sm"),
    WordRow("vs32", "schedule", "vs32", "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue8m0xe4m3_ue8m0xe4m3_f32_f16_f16_128x128x256_0_tnn_align32_o_vs32_1sm"),
    WordRow("block", "variant", "block", "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_128x128x256_0_tnn_align32_o_vs16_1sm"),
    WordRow("scaled", "variant", "scaled", "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_128x128x256_0_tnn_align32_o_vs16_1sm"),
    WordRow("h", "schedule", "h", "nvjet_sm90_hsh_48x64_64x15_4x2_h_bz_gelubias_TNN"),
    WordRow("v", "schedule", "v", "nvjet_tst_192x192_64x4_2x1_2cta_v_bz_TNT"),
    WordRow("bz", "variant", "bz", "nvjet_sm90_hsh_48x64_64x15_4x2_h_bz_gelubias_TNN"),
    WordRow("coopA", "schedule", "coopA", "nvjet_tst_192x192_64x4_2x1_v_bz_coopA_TNT"),
    WordRow("coopB", "schedule", "coopB", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"),
    WordRow("splitK", "split_k", "yes", "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_splitK_TNT"),
    WordRow("2cta", "schedule", "2cta", "nvjet_tst_192x192_64x4_2x1_2cta_v_bz_TNT"),
    # cuDNN's generated kernels
    WordRow("generated", "variant", "generated", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"),
    WordRow("fort", "variant", "fort", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"),
    WordRow("native", "variant", "native", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"),
    WordRow("flash", "variant", "flash", _H),
    WordRow("splitk", "", "", "cudnn_generated_fort_native_sm80_matMul_knob_24_splitk_5_64x64x32_5_0"),
    WordRow("knob", "", "", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"),
    WordRow("infer", "variant", "infer", "cudnn_infer_ampere_scudnn_128x32_relu_small_nn_v1"),
    WordRow("train", "variant", "train", "cudnn_train_ampere_scudnn_128x32_relu_small_nn_v1"),
    # sparse, and words of newer generators
    WordRow("avdt", "variant", "avdt", "sm80_xmma_fprop_avdt_dense_int8int8"),
    WordRow("dense", "variant", "dense", "sm80_xmma_fprop_avdt_dense_int8int8"),
    WordRow("sp", "variant", "sparse", "ampere_fp16_s16832gemm_sp_fp16_128x128_ldg8_relu_f2f_stages_64x3_tn_v1"),
    WordRow("CAlign", "variant", "CAlign", "sm50_xmma_pooling_fw_4d_FP32FP32NHWC_Average_FastDiv_CAlign"),
    WordRow("mma", "math", "mma", "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN"),
    WordRow("tmaAB", "schedule", "tmaAB", "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN"),
    WordRow("bgrada", "epilogue", "bias gradient", "cutlass3x_sm100_tensorop_s128x256x16gemm_bgrada_f16_f16_f32_f16_f16_128x256x64_0_nnn_align8_2sm"),
    WordRow("ptr", "schedule", "ptr", "cutlass3x_sm100_tensorop_s128x128x8tf32gemm_f32_f32_f32_f32_f32_128x128x32_0_tnn_align4_2sm_epi_tma_ptr_array"),
    WordRow("array", "schedule", "array", "cutlass3x_sm100_tensorop_s128x128x8tf32gemm_f32_f32_f32_f32_f32_128x128x32_0_tnn_align4_2sm_epi_tma_ptr_array"),
    WordRow("dyn", "schedule", "dynamic", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("cga", "schedule", "cga", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("conv3d", "operation", "convolution", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("weight", "variant", "weight", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("stationary", "variant", "stationary", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("nq", "variant", "nq", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("2d", "variant", "2d", "cutlass3x_sm100_tensorop_s32x256x16_conv3d_fprop_weight_stationary_nq_2d_tiled_bf16_bf16_f32_void_bf16_void_t3xr3xs3_32x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_1sm"),
    WordRow("void", "types", "void", "cutlass3x_sm90_tensorop_h64x128x16gemm_f16_f16_f16_void_f16_128x128x64_2x1x1_0_ttn_align8_warpspecialized_pingpong_epi_nosmem"),
    WordRow("stream", "schedule", "stream", "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnn_align8_stream_k_warpspecialized_cooperative_epi_tma"),
    WordRow("k", "schedule", "k", "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnn_align8_stream_k_warpspecialized_cooperative_epi_tma"),
    WordRow("fp8", "types", "fp8", "fmha_v2_flash_attention_fp8_64_32_S_qkv_128_sm89_kernel"),
    WordRow("fastaccum", "schedule", "fastaccum", "cutlass3x_sm90_tensorop_s64x128x32gemm_e4m3_e4m3_f32_bf16_bf16_128x128x128_1x1x1_0_tnn_align16_warpspecialized_pingpong_fp8_fastaccum_epi_tma"),
    WordRow("analytic", "variant", "analytic", "cutlass_tensorop_s1688fprop_analytic_128x128_16x4_nhwc_align4"),
    WordRow("tf32", "types", "tf32", "cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4_nhwc_align4"),
    WordRow("unity", "variant", "unity", "cutlass_tensorop_f16_s16816dgrad_optimized_f16_128x128_32x5_nhwc_unity_stride_align8"),
    WordRow("group", "variant", "group", "cutlass_tensorop_f16_s16816fprop_optimized_f16_64x128_32x5_nhwc_align8_single_group"),
    WordRow("single", "variant", "single", "cutlass_tensorop_f16_s16816fprop_optimized_f16_64x128_32x5_nhwc_align8_single_group"),
    WordRow("grouped", "variant", "grouped", "cutlass_80_tensorop_f16_s16816gemm_grouped_f16_128x128_32x4_tn_align8_scheduleDevice"),
    WordRow("scheduleDevice", "schedule", "scheduleDevice", "cutlass_80_tensorop_f16_s16816gemm_grouped_f16_128x128_32x4_tn_align8_scheduleDevice"),
    WordRow("planar", "variant", "planar", "cutlass_80_tensorop_s16816gemm_planar_complex_f16_64x64_32x5_tn_align8"),
    WordRow("complex", "variant", "complex", "cutlass_80_tensorop_s16816gemm_planar_complex_f16_64x64_32x5_tn_align8"),
    WordRow("fwd", "direction", "fwd", "turing_first_layer_filter7x7_imma_fwd_swish"),
    WordRow("swish", "epilogue", "swish", "turing_first_layer_filter7x7_imma_fwd_swish"),
    WordRow("cutlassF", "operation", "attention", "fmha_cutlassF_f16_aligned_64x64_rf_sm80"),
    WordRow("cutlassB", "operation", "attention", "fmha_cutlassB_f16_aligned_64x64_k64_sm80"),
    WordRow("aligned", "variant", "aligned", "fmha_cutlassF_f16_aligned_64x64_rf_sm80"),
    WordRow("notaligned", "variant", "notaligned", "fmha_cutlassF_f32_notaligned_64x64_rf_sm80"),
    WordRow("rf", "variant", "rf", "fmha_cutlassF_f16_aligned_64x64_rf_sm80"),
    WordRow("gmem", "variant", "gmem", "fmha_cutlassF_f16_aligned_32x128_gmem_sm80"),
    # more of cuDNN's generated kernels
    WordRow("oss", "variant", "oss", "cudnn_generated_oss_sdpa_sm100_flash_fprop_f16_knob_7_128x128x128_4x1x1_cga1x1x1_kernel0_0"),
    WordRow("bprop", "direction", "bprop", "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_32_64x64x64_1x4x1_cga1x1x1_kernel0_0"),
    WordRow("matMul", "operation", "gemm", "cudnn_generated_fort_native_sm120_matMul_knob_3_64x64x256_4x1x1_kernel0_0"),
    # fused attention
    WordRow("attention", "operation", "attention", _H),
    WordRow("causal", "mask", "causal", _H),
    WordRow("S", "variant", "S", _H),
    WordRow("qkv", "variant", "qkv", _H),
    WordRow("nl", "variant", "nl", _H),
    WordRow("q", "variant", "q", "fmha_v2_flash_attention_fp16_fp32_64_32_S_q_k_v_128_sm87"),
    WordRow("kv", "variant", "kv", "fmha_v2_flash_attention_bf16_64_128_S_q_kv_128_sm90_kernel_nl"),
    WordRow("paged", "variant", "paged", "fmha_v2_flash_attention_bf16_32_64_S_q_paged_kv_128_causal_output_bf16_kv_e2m1_gqa_m_sm120_kernel_nl_tiled"),
    WordRow("output", "variant", "output", "fmha_v2_flash_attention_e4m3_fp32_64_64_S_q_k_v_192x128_output_bf16_sm120_nl_tiled"),
    WordRow("gqa", "variant", "gqa", "fmha_v2_flash_attention_bf16_32_64_S_q_paged_kv_128_causal_output_bf16_kv_e2m1_gqa_m_sm120_kernel_nl_tiled"),
    WordRow("m", "variant", "m", "fmha_v2_flash_attention_bf16_32_64_S_q_paged_kv_128_causal_output_bf16_kv_e2m1_gqa_m_sm120_kernel_nl_tiled"),
    WordRow("tiled", "variant", "tiled", "fmha_v2_flash_attention_e4m3_fp32_64_64_S_q_k_v_192x128_output_bf16_sm120_nl_tiled"),
    WordRow("sliding", "mask", "sliding window", "fmha_v2_flash_attention_bf16_64_128_S_q_kv_128_sliding_or_chunked_causal_tma_ws_sm90_kernel"),
    WordRow("window", "variant", "window", "fmha_v2_flash_attention_bf16_64_128_S_q_kv_128_sliding_window_causal_tma_ws_sm90_kernel"),
    WordRow("or", "variant", "or", "fmha_v2_flash_attention_bf16_64_128_S_q_kv_128_sliding_or_chunked_causal_tma_ws_sm90_kernel"),
    WordRow("chunked", "mask", "chunked", "fmha_v2_flash_attention_bf16_64_128_S_q_kv_128_sliding_or_chunked_causal_tma_ws_sm90_kernel"),
    WordRow("custom", "variant", "custom", "fmha_v2_flash_attention_bf16_64_128_S_qkv_128_custom_mask_tma_ws_sm90_kernel"),
    WordRow("mask", "variant", "mask", "fmha_v2_flash_attention_bf16_64_128_S_qkv_128_custom_mask_tma_ws_sm90_kernel"),
    WordRow("softcapping", "variant", "softcapping", "fmha_v2_flash_attention_bf16_64_128_S_qkv_128_softcapping_causal_tma_ws_sm90_kernel"),
    WordRow("softmax", "variant", "softmax", "fmha_v2_flash_attention_bf16_64_128_S_q_k_v_192x128_softmax_tma_ws_sm90_kernel"),
    WordRow("il", "variant", "interleaved", "fmha_v2_il_int8_128_64_sm80_kernel"),
    WordRow("mhca", "operation", "attention", "fmha_mhca_fp16_128_64_sm80_kernel"),
    WordRow("multihead", "operation", "attention", "fused_multihead_attention_v2_fp16_128_64_kernel_sm80"),
    WordRow("kernel", "", "", "fused_multihead_attention_v2_fp16_128_64_kernel_sm80"),
    WordRow("noloop", "variant", "no loop", "fmha_v2_fp16_128_64_ldgsts_sm86_kernel_noloop"),
    WordRow("alibi", "variant", "alibi", "fmha_v2_flash_attention_bf16_64_64_S_qkv_128_causal_alibi_tma_ws_sm90_kernel"),
    WordRow("ws", "schedule", "ws", "fmha_v2_flash_attention_bf16_64_64_S_qkv_128_causal_alibi_tma_ws_sm90_kernel"),
    WordRow("ldgsts", "schedule", "ldgsts", "fmha_v2_fp16_128_64_ldgsts_sm86_kernel"),
    # tiling of TensorRT's convolution + activation + pooling kernel
    WordRow("tile", "", "", "sm80_trt_conv_act_pool_v3_tile_rows_8_tile_cols_116"),
    WordRow("rows", "", "", "sm80_trt_conv_act_pool_v3_tile_rows_8_tile_cols_116"),
    WordRow("cols", "", "", "sm80_trt_conv_act_pool_v3_tile_rows_8_tile_cols_116"),
)  # fmt: skip

FAMILIES: dict[str, str] = {
    # word that names the family, in the first words of a name
    "xmma": "xmma", "nvjet": "nvjet", "cutlass": "cutlass", "cutlass3x": "cutlass", "fmha": "fmha", "triton": "triton",
    "ncclDevKernel": "nccl", "ncclKernel": "nccl", "cudnn": "cudnn", "cask": "cask", "trt": "trt", "cublas": "cublas", "multihead": "fmha",
}  # fmt: skip

ARCHITECTURES: dict[str, str] = {
    # architecture word at the head of a name, compute capability
    "kepler": "sm30", "maxwell": "sm50", "pascal": "sm60", "volta": "sm70", "turing": "sm75", "ampere": "sm80", "ada": "sm89", "hopper": "sm90", "blackwell": "sm100",
}  # fmt: skip

GRAPH_NODES: dict[str, tuple[str, str]] = {
    # node of the graph that a kernel generated by cuDNN 9 computes, as its name spells it:
    # operation, direction
    "convFwd": ("convolution", "fprop"), "convDgrad": ("convolution", "dgrad"), "convWgrad": ("convolution", "wgrad"), "convBwdData": ("convolution", "dgrad"), "convBwdDataStrided": ("convolution", "dgrad"),
    "convBwdFilter": ("convolution", "wgrad"), "matMul": ("gemm", ""), "resampleFwd": ("pooling", "fwd"), "resampleBwd": ("pooling", "bprop"),
    "reduction": ("reduce", ""), "pointwise": ("pointwise", ""), "sdpa": ("attention", ""),
}  # fmt: skip
"""Seen in names: convFwd, matMul, resampleFwd, pointwise and sdpa; the others are cuDNN's own words
for its graph's operations, in the same form.
"""

NUMBERED: dict[str, str] = {
    # word of such a name behind which a number stands, the field that it fills
    "knob": "knob", "splitk": "split_k",
}  # fmt: skip

WORDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(FAMILIES, ("", "")),
    **{word: ("arch", arch) for word, arch in ARCHITECTURES.items()},
    **{row.word: (row.role, row.value) for row in WORD_ROWS},
}

DATATYPES: dict[str, str] = {
    "f16": "FP16", "fp16": "FP16", "half": "FP16", "f32": "FP32", "fp32": "FP32", "float": "FP32", "f64": "FP64", "fp64": "FP64", "double": "FP64",
    "tf32": "TF32", "bf16": "BF16", "i8": "INT8", "s8": "INT8", "int8": "INT8", "u8": "UINT8", "ui8": "UINT8", "uint8": "UINT8", "i4": "INT4", "int4": "INT4",
    "i16": "INT16", "i32": "INT32", "s32": "INT32", "int32": "INT32", "i64": "INT64", "int64": "INT64",
    "f8": "FP8", "fp8": "FP8", "e4m3": "FP8", "e5m2": "FP8", "f4": "FP4", "e2m1": "FP4", "ue4m3xf4": "FP4", "ue8m0xf4": "FP4", "ue4m3xe2m1": "FP4", "ue8m0xe2m1": "FP4", "ue8m0xe4m3": "FP8", "void": "none", "b1": "BOOL", "s4": "INT4",
}  # fmt: skip


class FieldRow(NamedTuple):
    """One field of a decoded kernel name: its title and its meaning."""

    field: str
    label: str
    means: str


FIELD_ROWS: tuple[FieldRow, ...] = (
    FieldRow("operation", "operation", ""),
    FieldRow(
        "direction",
        "direction",
        "fprop, fwd, fw: forward, as in inference; dgrad, wgrad, bprop: backward",
    ),
    FieldRow("arch", "built for", "compute capability of the GPU that it was compiled for"),
    FieldRow("input_type", "reads", ""),
    FieldRow("accumulate_type", "accumulates in", ""),
    FieldRow("output_type", "writes", ""),
    FieldRow("compute_type", "computes in", ""),
    FieldRow("weights_type", "weights", "data type of the second operand, where it is another"),
    FieldRow(
        "cache_type", "keys and values", "their data type, where it is not that of the queries"
    ),
    FieldRow(
        "tile",
        "tile",
        "part of the result that one block computes, rows x columns, and how much of the sum at a"
        " time (x depth)",
    ),
    FieldRow("warp_tile", "warp tile", "the part of the tile that one warp computes"),
    FieldRow("stages", "stages", "tiles of the inputs that are loaded ahead while one is computed"),
    FieldRow(
        "cluster",
        "cluster",
        "blocks that share their inputs (a thread block cluster, from Hopper on)",
    ),
    FieldRow("warps", "warps", "how the warps of a block divide its tile: rows x columns x depth"),
    FieldRow(
        "warpgroups",
        "warpgroups",
        "how groups of four warps (warpgroups, from Hopper on) divide the tile: rows x columns x"
        " depth",
    ),
    FieldRow("threads", "threads", "how its threads divide a tile"),
    FieldRow("slice", "slice", "parts that the sum of one block is cut into"),
    FieldRow(
        "instruction", "instruction", "the matrix or vector instruction that it uses, with its size"
    ),
    FieldRow(
        "epilogue",
        "epilogue",
        "what it does with the result before it writes it: fused into this kernel",
    ),
    FieldRow(
        "fused_nodes",
        "fused nodes",
        "nodes of cuDNN's graph that it computes besides, mostly pointwise ones: a bias, an"
        " activation, a residual",
    ),
    FieldRow("knob", "knob", "number of the configuration that cuDNN generated it with"),
    FieldRow(
        "split_k",
        "split-K",
        "several blocks, as many as the number says, add up one part of the result, which is added"
        " together afterwards",
    ),
    FieldRow(
        "transpose", "transpose", "each matrix as BLAS names it, A, B, then C: t transposed, n not"
    ),
    FieldRow("output_layout", "output layout", "n: column-major, as BLAS has it; t: row-major"),
    FieldRow(
        "layout",
        "layout",
        "order of the dimensions in memory: n batch, c channels, h rows, w columns; k and rs of the"
        " filter",
    ),
    FieldRow("align", "alignment", "elements that rows must be a multiple of, for wide loads"),
    FieldRow("load_width", "load width", "elements that one load reads"),
    FieldRow(
        "schedule",
        "schedule",
        "how work is divided among warps and blocks, and how data is loaded (tma: by the copy"
        " engine of Hopper)",
    ),
    FieldRow("variant", "variant", "which of several versions of the kernel"),
    FieldRow("version", "version", ""),
    FieldRow("groups", "groups", "of a grouped convolution"),
    FieldRow(
        "filter", "filter", "size of the filter that it is made for: t depth, r rows, s columns"
    ),
    FieldRow("kernel_size", "filter size", "of the convolution"),
    FieldRow("stride", "stride", "of the convolution"),
    FieldRow("winograd_tile", "Winograd tile", "size of the transformed tile"),
    FieldRow("pooling", "pooling", "how values are put together"),
    FieldRow("head_size", "head size", "elements of one attention head"),
    FieldRow("sequence", "sequence", "tokens that it is made for, or takes at a time"),
    FieldRow("mask", "mask", "which tokens see which"),
    FieldRow("beta", "beta", "factor of what the result is added to; 0: nothing is added"),
    FieldRow("problem", "problem", "the sizes that it is made for"),
    FieldRow(
        "parameters", "parameters", "numbers of the name that mean something to the library only"
    ),
    FieldRow("number", "number", ""),
    FieldRow("launch_param", "launch parameters", ""),
    FieldRow("launcher", "launcher", "which entry point of the library launched it"),
    FieldRow("suffix", "suffix", ""),
    FieldRow("hash", "hash", "distinguishes generated kernels"),
    FieldRow("function", "function", ""),
    FieldRow("namespace", "namespace", ""),
    FieldRow("template", "template", "arguments of the C++ template"),
    FieldRow("sort", "sort", ""),
    FieldRow("fused", "fused", "operations in one kernel"),
    FieldRow("collective", "collective", "what the GPUs do together"),
    FieldRow("reduction", "reduction", "how their values are put together"),
    FieldRow("algorithm", "algorithm", "along which the data goes from GPU to GPU"),
    FieldRow("protocol", "protocol", "LL: low latency, for small messages; SIMPLE: for large ones"),
)

ARCHITECTURES = {
    "50": "Maxwell", "52": "Maxwell", "53": "Maxwell", "60": "Pascal", "61": "Pascal", "62": "Pascal", "70": "Volta", "72": "Volta",
    "75": "Turing", "80": "Ampere", "86": "Ampere", "87": "Ampere", "89": "Ada", "90": "Hopper", "100": "Blackwell", "101": "Blackwell",
    "103": "Blackwell", "110": "Blackwell", "120": "Blackwell", "121": "Blackwell",
}  # fmt: skip
"""NVIDIA's names of GPU architectures, by compute capability without its point."""
