"""The tables of the name decoder for families and operations: what a family is, and the words in a
function's name that identify it.
"""
# ruff: noqa: E501 - one entry per line

from __future__ import annotations

from typing import NamedTuple


class FamilyRow(NamedTuple):
    """One family of names."""

    name: str
    text: str
    example: str


FAMILY_ROWS: tuple[FamilyRow, ...] = (
    # kernels
    FamilyRow("myelin", "kernel, layer or range of TensorRT's compiler Myelin", "__myl_AddMulCastReshTran_0xf7e2b434b541645892ba84e278dad6f5_com_vec"),
    FamilyRow("xmma", "TensorRT, cuBLAS or cuDNN kernel of the xmma generator; the word alone says nothing about tensor cores", "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize32x32x64_stage6_warpsize2x2x1_tensor16x8x16_execute_kernel_trt"),
    FamilyRow("cutlass", "kernel made from CUTLASS 2 or 3 templates", "cutlass_80_tensorop_f16_s16816gemm_f16_64x64_32x6_nn_align8"),
    FamilyRow("cublas", "matrix product, matrix-vector product or helper kernel of cuBLAS and cuBLASLt", "ampere_sgemm_128x64_tn"),
    FamilyRow("nvjet", "cuBLAS matrix product of the nvjet generator (Hopper and later)", "nvjet_sm90_hsh_48x64_64x15_4x2_h_bz_gelubias_TNN"),
    FamilyRow("cudnn", "convolution, attention or helper kernel of cuDNN, also inside TensorRT", "ampere_scudnn_128x64_relu_medium_nn_v1"),
    FamilyRow("trt", "TensorRT's own build of a cuDNN- or cuBLAS-style kernel", "trt_turing_h1688gemm_256x64_ldg8_relu_stages_32x1_nn_v1"),
    FamilyRow("fmha", "fused attention of the fmha_v2 generator (TensorRT, TensorRT-LLM)", "fmha_v2_flash_attention_fp16_64_32_S_qkv_128_causal_sm86_kernel_nl"),
    FamilyRow("flash-attention", "FlashAttention kernel", "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::half_t>>(Flash_fwd_params)"),
    FamilyRow("cusparse", "sparse matrix product of cuSPARSE or cuSPARSELt", "void cusparse::csrmv_v3_kernel<float>(int)"),
    FamilyRow("cutensor", "cuTENSOR kernel, in TensorRT a permutation", "void CUTENSOR_NAMESPACE::permutationKernelPLC3<float, (unsigned int)4, (int)128, (int)2, (bool)0>(long long)"),
    FamilyRow("reformat", "TensorRT reformat: change of layout or data type; also the layer that asks for it", "void genericReformat::copyVectorizedKernel<double, __half, float, true, false, 1>(unsigned int)"),
    FamilyRow("native-pointwise", "kernel that TensorRT generated for one layer of fused element-wise operations, PWN(...); all have this one name: the name of the layer that ran it lists the operations (nsysmap layers ENGINE REPORT)", "generatedNativePointwise"),
    FamilyRow("tensorrt", "other kernel of TensorRT itself", "void cuSliceLayer::naiveSlice<float, (cuSliceLayer::Mode)2, (int)4>(cuSliceLayer::LaunchParams<T1>)"),
    FamilyRow("plugin", "kernel of TensorRT's plugin library; also a plugin layer", "void nvinfer1::plugin::gatherTopDetections_kernel<float, float, 256u>(bool, int, int)"),
    FamilyRow("tensorrt-llm", "kernel of TensorRT-LLM or TensorRT Edge-LLM", "void tensorrt_llm::kernels::generalRmsNorm<__half, false>(const T1 *)"),
    FamilyRow("triton", "kernel that Triton compiled, mostly for torch.compile", "triton_poi_fused_add_mul_3"),
    FamilyRow("xla", "fusion that XLA compiled, for JAX or TensorFlow", "loop_multiply_fusion_1"),
    FamilyRow("offload", "region of a program that a compiler made a kernel of (OpenACC, OpenMP, standard parallelism), with its line", "nvkernel_solve_F1L204_2"),
    FamilyRow("pytorch", "kernel of PyTorch (ATen, c10)", "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, std::array<char *, (unsigned long)3>>(int, T2, T3)"),
    FamilyRow("cub", "Thrust or CUB algorithm", "void cub::DeviceRadixSortSingleTileKernel<int>(const int *)"),
    FamilyRow("nccl", "NCCL collective", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"),
    FamilyRow("cufft", "cuFFT transform", "void regular_fft<1024u, EPT<4u>>(kernel_arguments_t<unsigned int>)"),
    FamilyRow("tactic", "tactic or library kernel of unknown origin", "sm80_f16_direct_128x64"),
    FamilyRow("cuda", "kernel of unknown origin: a plugin's, a framework's or hand-written", "ResizeBicubicKernel"),
    # layers and ranges
    FamilyRow("convolution", "layer of one or more ONNX nodes with a convolution", "/conv1/Conv + /relu/Relu"),
    FamilyRow("pointwise", "layer of pointwise nodes, as PWN(...) or one node", "PWN(PWN(/classifier/Sigmoid), /classifier/Mul)"),
    FamilyRow("gemm", "layer of a matrix product; other ONNX layers are named by their class in the same way", "/fc/Gemm"),
    FamilyRow("layer", "layer of nodes whose names tell no operation", "(Unnamed Layer* 12) [Unknown]"),
    FamilyRow("api", "NVTX range around a call of TensorRT, Myelin, cuBLAS, …", "ExecutionContext::enqueueV3"),
    FamilyRow("nvtx", "range of the application itself", ":S0_policy_infer_total"),
    FamilyRow("unknown", "nothing in the name is known", "xyzzy"),
)  # fmt: skip

OF_A_FRAMEWORK = ("c10::", "torch::", "at::")
"""Namespaces of PyTorch that say whose a kernel is in its own name only: extensions use their types
as arguments.
"""

FUNCTION_FAMILIES: tuple[tuple[str, str], ...] = (
    # text anywhere in a C++ name, family; the first that is there counts
    ("genericReformat::", "reformat"), ("cuInt8::", "reformat"),
    ("CUTENSOR", "cutensor"), ("cutensor", "cutensor"),
    ("flash_fwd", "flash-attention"), ("flash_bwd", "flash-attention"), ("flash::", "flash-attention"), ("flash_attn", "flash-attention"), ("FlashAttn", "flash-attention"), ("pytorch_flash", "flash-attention"),
    ("tensorrt_llm::", "tensorrt-llm"), ("trt_edgellm::", "tensorrt-llm"), ("nvinfer1::plugin", "plugin"),
    ("cuEltwise::", "tensorrt"), ("cuSliceLayer::", "tensorrt"), ("cuResizeLayer::", "tensorrt"), ("cuReduceLayer::", "tensorrt"), ("cuSoftMaxLayer::", "tensorrt"),
    ("xmma_trt::", "xmma"), ("xmma_cudnn::", "cudnn"),
    ("nvinfer1::", "tensorrt"), ("cask_trt::", "tensorrt"), ("myelin::", "myelin"),
    ("at::native", "pytorch"), ("c10::", "pytorch"), ("at::cuda", "pytorch"), ("at_cuda_detail::", "cub"), ("torch::", "pytorch"), ("at::", "pytorch"),
    ("softmax_warp", "pytorch"), ("elementwise_kernel_with_index", "pytorch"), ("multi_tensor_apply", "pytorch"),
    ("cutlass::", "cutlass"), ("cutlass_", "cutlass"), ("cutlass", "cutlass"),
    ("cublas", "cublas"), ("cudnn", "cudnn"), ("cusparse", "cusparse"), ("nccl", "nccl"), ("cub::", "cub"), ("thrust::", "cub"),
    ("convolve", "cudnn"), ("wgrad_alg", "cudnn"), ("dgrad_engine", "cudnn"), ("winograd", "cudnn"), ("flip_filter", "cudnn"), ("fft2d", "cudnn"), ("regular_fft", "cufft"), ("vector_fft", "cufft"),
    ("gemvx", "cublas"), ("gemv2", "cublas"), ("gemvNSP", "cublas"), ("gemmSN_", "cublas"), ("gemmk1_", "cublas"), ("gemm_kernel2x2", "cublas"), ("gemm_kernel1x1", "cublas"), ("gemm_largek", "cublas"), ("compute_gemm_pointers", "cublas"),
    ("splitKreduce", "cublas"), ("dot_kernel", "cublas"), ("reduce_1Block_kernel", "cublas"), ("asum_kernel", "cublas"), ("scal_kernel", "cublas"), ("fmha", "fmha"),
)  # fmt: skip

WORD_FAMILIES: tuple[tuple[str, str], ...] = (
    # begin of a kernel's bare identifier, family
    ("generatedNativePointwise", "native-pointwise"), ("gemmSN_", "cublas"), ("gemmk1_", "cublas"), ("gemv2", "cublas"), ("gemvNSP", "cublas"), ("dot_kernel", "cublas"), ("flash_", "flash-attention"), ("fmha", "fmha"),
    ("BlackwellFusedMultiHeadAttention", "fmha"), ("kernel_mha", "fmha"), ("cudnn", "cudnn"), ("permutationKernel", "cutensor"), ("bmm_", "tensorrt-llm"),
    ("gatherTopDetections", "plugin"), ("allClassNMS", "plugin"), ("gatherNMSOutputs", "plugin"), ("decodeBBoxes", "plugin"), ("EfficientNMS", "plugin"),
)  # fmt: skip

OPERATION_WORDS: tuple[tuple[str, str], ...] = (
    # operation, parts of words (lower case) that tell it in a function's name; the first operation
    # that has one counts
    ("communication", "allreduce all_reduce allgather all_gather reducescatter reduce_scatter sendrecv send_recv alltoall all_to_all nccldevkernel ncclkernel broadcastkernel"),
    ("reduce", "splitkreduce splitk_reduce"),
    ("reformat", "copypacked copyvectorized reformat nchwto nhwcto nchw2nhwc nhwc2nchw tonchw tonhwc computeoffsetskernel flip_filter"),
    ("attention", "attention fmha flash_fwd flash_bwd flash_attn flashattn mha_ _mha multihead attn_fwd attn_bwd singleprefill singledecode batchprefill batchdecode"),
    ("normalization", "layernorm layer_norm rmsnorm rms_norm batchnorm batch_norm groupnorm group_norm instancenorm instance_norm bn_fw bn_bw rowwisemoments gammabeta"),
    ("softmax", "softmax soft_max"),
    ("sampling", "penalt sampling"),
    ("nms", "nms nonmax topdetections"),
    ("topk", "topk top_k radixsort radix_sort radixfindkth bitonic sort argmax argmin"),
    ("index", "rope rotary"),
    ("gather", "gather embedding indexselect index_select indexing index_elementwise index_kernel"),
    ("scatter", "scatter indexput index_put indexfunc"),
    ("resize", "resize upsample interpolate gridsample grid_sample"),
    ("concat", "catarray concat"),
    ("slice", "slice _pad_ cupad padkernel pad_kernel reflection_pad padding splitkernel split_kernel"),
    ("pointwise", "broadcast_kernel"),  # of CUDA.jl and GPUArrays: any elementwise expression
    ("cast", "convert float2half half2float cast_kernel castkernel"),
    ("deconvolution", "xmma_trt::implicit_gemm::strided_dgrad"),
    ("convolution", "conv depthwise winograd im2col wgrad dgrad"),
    ("gemv", "gemv matvec"),
    ("gemm", "gemm bmm_ splitk matmul mat_mul matrixmul matrix_mul transposemul transpose_mul _mm_ scaled_mm moe_kernel mlp_"),
    ("pooling", "pool"),
    ("shuffle", "permut transpose roll_cuda_kernel"),
    ("quantize", "quant"),
    ("fft", "fft"),
    ("scan", "scan cumsum"),
    ("random", "random distribution_elementwise distribution_nullary philox curand xorwow dropout uniform_and_transform normal_and_transform"),
    ("reduce", "reduc dot_kernel asum norm2 nrm2 sum_kernel max_kernel min_kernel"),
    ("constant", "fill memset arange"),
    ("copy", "copy memcpy clone _cache"),
    ("pointwise", "elementwise eltwise pointwise unary binary activation foreach for_each transform act_and_mul silu gelu relu sigmoid multi_tensor_apply _add_ _mul_ scal_kernel axpy"),
)  # fmt: skip

FUNCTOR_OPERATIONS: tuple[tuple[str, str], ...] = (
    # operation, words that tell it in the template arguments of a generic pointwise or reduction
    # kernel
    ("cast", "float16_copy_kernel"),
    ("copy", "direct_copy copy_kernel"),
    ("constant", "FillFunctor arange zero_"),
)  # fmt: skip

TYPE_WORDS: tuple[tuple[str, str], ...] = (
    # how C++ spells a data type, data type; the first that is there counts
    ("__nv_bfloat16", "BF16"), ("BFloat16", "BF16"), ("bfloat16_t", "BF16"), ("__half", "FP16"), ("Half", "FP16"), ("half_t", "FP16"), ("__nv_fp8", "FP8"), ("Float8", "FP8"), ("float_e4m3", "FP8"), ("float_e5m2", "FP8"),
    ("float_e2m1", "FP4"), ("float", "FP32"), ("double", "FP64"), ("signed char", "INT8"), ("int8_t", "INT8"), ("long", "INT64"),
)  # fmt: skip

MATRIX_OPERATIONS = frozenset(("gemm", "convolution", "attention", "unknown", "deconvolution"))
"""Operations that may run on tensor cores; no others do."""

ACCIDENTAL = ("convex", "converg", "quantum", "quantit", "quantil", "grid_samples", "together")
"""Parts of words in which a word for an operation occurs by chance."""

_READ = 400  # characters in which the words that tell are looked for: they stand in front
_OPERATION_PARTS = [(operation, words.split()) for operation, words in OPERATION_WORDS]


def operation_of(function: str, template: str = "") -> str:
    """What a function computes, by the words in its name, otherwise in its template arguments;
    "unknown" if no word shows it.
    """
    name = function[:_READ].lower()
    for part in ACCIDENTAL:
        name = name.replace(part, "")
    for operation, parts in _OPERATION_PARTS:
        for part in parts:
            if part in name:
                return _of_functor(template) if template and operation == "pointwise" else operation
    return operation_of(template[:_READ]) if template else "unknown"


def _of_functor(template: str) -> str:
    head = template[:_READ]
    for operation, words in FUNCTOR_OPERATIONS:
        if any(word in head for word in words.split()):
            return "cast" if operation == "copy" and "WithCast" in template else operation
    return "pointwise"
