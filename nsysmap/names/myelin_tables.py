"""The tables of the name decoder for Myelin: op codes and patterns, one line each, with a name that
proves it.

Short source names (KTM, VIT, COOK, …) are spelled out in docs/names.md.
"""
# ruff: noqa: E501 - one entry per line

from __future__ import annotations

from typing import NamedTuple


class OpRow(NamedTuple):
    """One Myelin op code in both generations. A code is empty if it does not exist, the example if
    no name is known to use it.
    """

    code4: str  # TensorRT 10.9 and later
    code3: str  # up to TensorRT 10.8
    op: str  # in ONNX's terms
    cls: str
    evidence4: str
    evidence3: str
    source: str
    example: str


class PatternRow(NamedTuple):
    """One pattern over four-letter codes: ``?`` optional, ``( | )`` choice, ``^`` and ``$`` ends of
    the list, ``>`` lookahead.
    """

    name: str
    expression: str
    text: str
    evidence: str
    example: str


MOVE = "data movement"

SOURCES: tuple[tuple[str, str], ...] = (
    # short name, what it is
    (
        "KTM",
        "NVIDIA's own token map: NVIDIA/TensorRT, trt-perf-analysis, layer_info.py (TensorRT 11)",
    ),
    ("COOK", "NVIDIA/trt-samples-for-hackathon-cn, logs with metadata (TensorRT 10.16)"),
    ("VIT", "Ewha-Capstone-Project/Hambugy, nsys reports with NVTX payloads (TensorRT 10.3)"),
    ("DEIT", "the same project, detailed layers with metadata (TensorRT 10.3)"),
    ("PI05", "Lmy271828/openpi, layers, profiles and nsys tables (TensorRT 10, fp8 and nvfp4)"),
    ("IVIT", "Eternal-Raiden-Ying/i-vit-srtp, layer information with metadata (TensorRT 10)"),
    ("VITP", "Raghaverma/vitpose-inference-bench, layer information (TensorRT 11.3)"),
    ("RTX", "TensorRT-RTX documentation, performance and benchmarking"),
    ("HEAL", "lidar perception layer tables (TensorRT 10.9)"),
    ("YOLO", "YOLO26 layer tables (three-letter codes)"),
    (
        "TRTX",
        (
            "engines of TensorRT for RTX 1.5.0 with metadata, built from torchvision's and other"
            " models"
        ),
    ),
    ("RFD", "RF-DETR nano, layer to kernel table (TensorRT 10, T4)"),
)

OPS: tuple[OpRow, ...] = (
    # code4, code3, operation, class, evidence of code4, of code3, source, example
    OpRow("Resh", "Res", "Reshape", MOVE, "confirmed", "confirmed", "KTM; COOK node_view; VIT patch_embed/Reshape", "__myl_Resh_myl5_1"),
    OpRow("Tran", "Tra", "Transpose", MOVE, "confirmed", "confirmed", "KTM; VITP node_transpose; VIT", "__myl_ReshTran_myl3_0"),
    OpRow("Cast", "Cas", "Cast", "cast", "confirmed", "confirmed", "KTM; PI05; often LayerNorm's own upcast (VIT)", "__myl_Cast_myl5_7"),
    OpRow("Mean", "Mea", "ReduceMean", "reduction", "confirmed", "confirmed", "KTM; PI05, DEIT", "__myl_AddCasMeaSubMulMea"),
    OpRow("Sqrt", "Sqr", "Sqrt", "pointwise", "confirmed", "confirmed", "KTM; PI05; DEIT norm1/Sqrt (x*x is Mul)", "__myl_AddSqrDivMulMulAddResResTra"),
    OpRow("Add", "Add", "Add", "pointwise", "confirmed", "confirmed", "KTM; COOK; IVIT", "__myl_AddMulCastReshTran"),
    OpRow("Sub", "Sub", "Sub", "pointwise", "confirmed", "confirmed", "KTM; DEIT norm1/Sub", "__myl_CastSubMul_myl0_2"),
    OpRow("Mul", "Mul", "Mul", "pointwise", "confirmed", "confirmed", "KTM; DEIT: also Pow(x, 2)", "__myl_MulAddMulCast"),
    OpRow("Div", "Div", "Div", "pointwise", "confirmed", "confirmed", "KTM; IVIT: also Reciprocal", "__myl_DivMul_myl0_2"),
    OpRow("Sum", "Sum", "ReduceSum", "reduction", "confirmed", "confirmed", "IVIT ReduceSum", "__myl_MulSum_myl4_1"),
    OpRow("Max", "", "Max", "pointwise", "confirmed", "", "IVIT .../Max and clip (from 10.9: elementwise only)", "__myl_MulMinMaxRounCast_myl0_1"),
    OpRow("Maxr", "Max", "ReduceMax", "reduction", "confirmed", "aligned", "IVIT ReduceMax; COOK softmax, ArgMax", "__myl_MaxrSubExpSum_myl5_4"),
    OpRow("Min", "Min", "Min", "pointwise", "confirmed", "likely", "IVIT MulMinMaxRounCast = QuantizeLinear", "__myl_MulMinMaxRounCast_myl0_1"),
    OpRow("Minr", "", "ReduceMin", "reduction", "guess", "", "as Maxr to Max", ""),
    OpRow("Exp", "Exp", "Exp", "pointwise", "confirmed", "aligned", "COOK softmax", "__myl_MaxrSubExpSum_myl5_4"),
    OpRow("Neg", "Neg", "Neg", "pointwise", "confirmed", "aligned", "PI05 .../Neg in RoPE", "__myl_SlicReshSlicNegSlicConcMulMulAddTran"),
    OpRow("Erf", "Erf", "Erf", "pointwise", "confirmed", "confirmed", "KTM; DEIT act/Erf", "__myl_DivCasErfCasAddMulMul"),
    OpRow("Tanh", "Tan", "Tanh", "pointwise", "confirmed", "likely", "KTM; PI05 Gelu", "__myl_SlicSlicMulMulMulAddMulTanhAddMulMulMulMulCast"),
    OpRow("Pow", "Pow", "Pow", "pointwise", "confirmed", "likely", "IVIT", "__myl_CastRounMaxrSubDivFlooDivFlooAddSubMaxDivFlooSubMulSubPowMul"),
    OpRow("Floo", "Flo", "Floor", "pointwise", "confirmed", "aligned", "IVIT; YOLO index // nc", "__myl_CasCasDivFloCasSubResCasMov_myl0_5"),
    OpRow("Roun", "Rou", "Round", "pointwise", "confirmed", "guess", "IVIT MulMinMaxRounCast = QuantizeLinear", "__myl_MulMinMaxRounCast_myl0_1"),
    OpRow("Ceil", "Cei", "Ceil", "pointwise", "guess", "guess", "the rule of Floo", ""),
    OpRow("Sin", "Sin", "Sin", "pointwise", "likely", "likely", "RoPE tables, timestep embedding (PI05)", "__myl_ConcSinCos"),
    OpRow("Cos", "Cos", "Cos", "pointwise", "likely", "likely", "RoPE tables, timestep embedding (PI05)", "__myl_ConcSinCos"),
    OpRow("Log", "Log", "Log", "pointwise", "likely", "likely", "entropy head", "__myl_MaxMinLogMulSum"),
    OpRow("Log1", "Log1", "Log1p", "pointwise", "likely", "guess", "softplus of a state space model: Exp, Log1p, and the input where Exp is infinite", "__myl_ReshExpLog1IsinSeleMul"),
    OpRow("Isin", "Isi", "IsInf", "compare", "likely", "guess", "the same", "__myl_ReshExpLog1IsinSeleMul"),
    OpRow("Conc", "Con", "Concat", MOVE, "confirmed", "confirmed", "PI05 Concat_8; VIT, DEIT /Concat_1; never convolution", "__myl_ConcMoveMul"),
    OpRow("Slic", "Sli", "Slice", MOVE, "confirmed", "confirmed", "PI05 Split; VIT /Gather_1: also Split and constant Gather", "__myl_Slic_myl0_881"),
    OpRow("Gath", "Gat", "Gather", MOVE, "confirmed", "aligned", "KTM; PI05 position_embedding/Gather", "__myl_ReshTranGathAddReshCastMeanSubMulMean"),
    OpRow("Sele", "Sel", "Where", MOVE, "confirmed", "likely", "KTM says Select; mask code", "__myl_ReplCastReshReshAndEqlLtOrAndReshSele"),
    OpRow("Repl", "Rep", "Expand", MOVE, "confirmed", "confirmed", "DEIT /Expand; also Tile, fill, padding", "__myl_ResTraRepConAddMeaSubMulMeaResResTraRes"),
    OpRow("Move", "Mov", "Identity", MOVE, "confirmed", "confirmed", "KTM Move: a copy; HEAL parts of a Concat", "__myl_bb0_1_Mov"),
    OpRow("Topk", "Top", "TopK", "sort", "confirmed", "likely", "COOK softmax + argmax", "__myl_DivMulTopk"),
    OpRow("Iota", "Iot", "Range", "index", "likely", "guess", "HEAL, RFD index grids", "__myl_IotaReplResh"),
    OpRow("Scat", "Sca", "ScatterND", MOVE, "likely", "guess", "HEAL pillar scatter", "__myl_Scat"),
    OpRow("Grid", "Gri", "GridSample", "sampling", "likely", "guess", "HEAL BEV warp; RFD deformable attention", "__myl_GridCastReshTran"),
    OpRow("Cums", "Cum", "CumSum", "scan", "guess", "guess", "PI05 position ids", ""),
    OpRow("Eql", "Eql", "Equal", "compare", "likely", "likely", "PI05 mask code", "__myl_EqlLtOrReshAndAndReshSele"),
    OpRow("Gtr", "Gtr", "Greater", "compare", "likely", "likely", "RFD mask code", "__myl_ReshGtrReshCastCastReshDivMulSubConcMul_myl0_3"),
    OpRow("Lt", "Lt", "Less", "compare", "likely", "likely", "PI05 mask code", "__myl_EqlLtOrReshAndAndReshSele"),
    OpRow("Gt", "Gt", "Greater", "compare", "guess", "guess", "the rule of Lt", ""),
    OpRow("Le", "Le", "LessOrEqual", "compare", "guess", "guess", "the rule of Lt", ""),
    OpRow("Ge", "Ge", "GreaterOrEqual", "compare", "guess", "guess", "the rule of Lt", ""),
    OpRow("And", "And", "And", "logical", "confirmed", "aligned", "KTM", "__myl_ReplCastReshReshAndEqlLtOrAndReshSele"),
    OpRow("Or", "Or", "Or", "logical", "likely", "likely", "PI05 mask code", "__myl_EqlLtOrReshAndAndReshSele"),
    OpRow("Xor", "Xor", "Xor", "logical", "guess", "guess", "ONNX's own name", ""),
    OpRow("Not", "Not", "Not", "logical", "likely", "likely", "laya_trt mask code", "__myl_CasNotSelResSelResEql"),
    OpRow("Abs", "Abs", "Abs", "pointwise", "guess", "guess", "ONNX's own name", ""),
    OpRow("Sign", "", "Sign", "pointwise", "guess", "", "ONNX's own name", ""),
    OpRow("Mod", "Mod", "Mod", "pointwise", "guess", "guess", "ONNX's own name", ""),
    OpRow("Neq", "Neq", "Not Equal", "compare", "guess", "guess", "the rule of Eql", ""),
    OpRow("Geq", "Geq", "GreaterOrEqual", "compare", "guess", "guess", "the rule of Eql", ""),
    OpRow("Leq", "Leq", "LessOrEqual", "compare", "guess", "guess", "the rule of Eql", ""),
    OpRow("Trun", "", "Trunc", "pointwise", "guess", "", "ONNX's own name", ""),
    OpRow("Rsqr", "", "Reciprocal of Sqrt", "pointwise", "guess", "", "the rule of Sqrt", ""),
    OpRow("Clip", "Cli", "Clip", "pointwise", "guess", "guess", "ONNX's own name", ""),
    OpRow("Elu", "Elu", "Elu", "pointwise", "guess", "guess", "ONNX's own name", ""),
    OpRow("Selu", "", "Selu", "pointwise", "guess", "", "ONNX's own name", ""),
    OpRow("Prod", "Pro", "ReduceProd", "reduction", "guess", "guess", "the rule of Sum", ""),
    OpRow("Pad", "Pad", "Pad", MOVE, "guess", "guess", "ONNX's own name", ""),
    OpRow("Resi", "", "Resize", "sampling", "confirmed", "", "TRTX /classifier/…/Resize", "__myl_ReshReshResiConc_myl0_104"),
    OpRow("Sort", "Sor", "Sort", "sort", "guess", "guess", "Myelin's other names", ""),
    OpRow("Nonz", "Non", "NonZero", "index", "guess", "guess", "ONNX's own name", ""),
    OpRow("Quan", "Qua", "QuantizeLinear", "quantize", "guess", "guess", "ONNX's own name", ""),
    OpRow("Dequ", "Deq", "DequantizeLinear", "quantize", "guess", "guess", "ONNX's own name", ""),
    OpRow("Pool", "Poo", "MaxPool or AveragePool", "pooling", "guess", "guess", "ONNX's own name", ""),
    OpRow("Relu", "Rel", "Relu", "pointwise", "confirmed", "guess", "RTX CorrMulAddRelu; HEAL", "__myl_CorrMulAddRelu_myl0_1"),
    OpRow("Silu", "Sil", "Swish", "pointwise", "confirmed", "guess", "TRTX Sigmoid and Mul; RFD", "__myl_SiluMulMulCast"),
    OpRow("Gelu", "Gel", "Gelu", "pointwise", "guess", "guess", "ONNX's own name", ""),
    OpRow("Sigm", "Sig", "Sigmoid", "pointwise", "confirmed", "guess", "TRTX /Sigmoid; gated recurrent block of a Qwen model", "__myl_SlicReshSigmMul"),
    OpRow("Fc", "Fc", "MatMul", "gemm", "confirmed", "confirmed", "VIT fc1/MatMul, /head/Gemm; PI05; hides its epilogue", "__myl_FcCas"),
    OpRow("Gemm", "", "Gemm", "gemm", "confirmed", "", "KTM gemm", "__myl_Gemm"),
    OpRow("Corr", "Cor", "Conv", "convolution", "confirmed", "guess", "RTX ResNet-50 stem; PI05 LayerType correlation", "__myl_CorrMulAddRelu_myl0_1"),
    OpRow("Gnor", "", "GroupNormalization", "normalization", "likely", "", "TRTX, U-Net with GroupNorm", "__myl_GnorSilu_myl0_1"),
    OpRow("Lnor", "", "LayerNormalization", "normalization", "guess", "", "the rule of Inor and Gnor", ""),
    OpRow("Rnor", "", "RMSNormalization", "normalization", "guess", "", "the rule of Inor and Gnor", ""),
    OpRow("Inor", "Ino", "InstanceNormalization", "normalization", "likely", "guess", "CoTracker note", "__myl_Inor"),
    OpRow("Dyna", "Dyn", "DynamicQuantize", "quantize", "likely", "guess", "PI05 NVFP4, only where it quantises", "__myl_MulReshDyna_cuda_tile"),
    OpRow("Etc", "Etc", "further operations, cut off", "cut", "confirmed", "confirmed", "by counting: cut after 88 letters", "__myl_ConcSinCosSlicReshEtc"),
)  # fmt: skip

PATTERNS: tuple[PatternRow, ...] = (
    # Tried in this order at each place; the first that fits is taken.  None overlaps another.
    PatternRow("geglu", "Slic Slic Mul Mul Mul Add Mul Tanh Add Mul Mul Mul", "GEGLU: half of the input gates the other by tanh-GELU", "confirmed", "__myl_SlicSlicMulMulMulAddMulTanhAddMulMulMulMulCast"),
    PatternRow("swiglu", "Slic Silu Slic Mul", "SwiGLU: half of the input gates the other by SiLU", "likely", "__myl_SlicSiluSlicMul"),
    PatternRow("rope", "Slic Neg Slic Conc (Resh|Cast|Tran|Move)* Mul Mul Add", "rotary position embedding: x*cos + rotate-half(x)*sin", "confirmed", "__myl_SlicReshSlicNegSlicConcMulMulAddTran"),
    PatternRow("rope", "Slic Resh* Mul Mul Slic Resh* Mul Add Mul Sub Conc", "rotary position embedding: both halves times cos and sin", "confirmed", "__myl_MoveReshReshSlicMulMulSlicMulAddMulSubConc_myl0_12"),
    PatternRow("rotate-half", "Slic Neg Slic Conc", "rotate-half of a rotary position embedding", "likely", "__myl_ReshReshMulReshSlicNegSlicConcResh"),
    PatternRow("groupnorm", "Cast? Mean Sub (Mul|Pow) Mean Add Sqrt Div Mul Cast? Resh (Resh|Cast)* Mul Add", "instance or group normalisation: normalised, reshaped back, then scale and shift", "guess", "__myl_ReshMeanSubMulMeanAddSqrtDivMulReshMulAdd"),
    PatternRow("layernorm", "Cast? Mean Sub Cast? (Mul|Pow) Mean Add Sqrt Div Mul Cast? Mul Add", "LayerNormalization: mean, variance, normalise, scale and shift", "confirmed", "__myl_MoveMeanSubMulMeanAddSqrtDivMulMulAdd_myl305_0"),
    PatternRow("normalize", "Cast? Mean Sub Cast? (Mul|Pow) Mean Add Sqrt Div Mul?", "normalisation without scale and shift (LayerNorm, InstanceNorm)", "likely", "__myl_CastMeanSubMulMeanAddSqrtDivMulCast"),
    PatternRow("layernorm-statistics", "Cast? Mean Sub Cast? (Mul|Pow) Mean", "first half of a LayerNorm: mean and variance", "confirmed", "__myl_AddCasMeaSubMulMea"),
    PatternRow("rmsnorm", "Cast? (Mul|Pow) Mean Add Sqrt Div Mul Cast? Mul", "RMS normalisation: x / sqrt(mean(x*x) + eps), scaled", "confirmed", "__myl_AddCastMulMeanAddSqrtDivMulCastMulCast"),
    PatternRow("rms-normalize", "Cast? (Mul|Pow) Mean Add Sqrt Div Mul?", "RMS normalisation without scale", "likely", "__myl_MulMeanAddSqrtDivMul"),
    PatternRow("rmsnorm-statistics", "Cast? (Mul|Pow) Mean$", "first half of an RMS normalisation: mean of squares", "guess", "__myl_CastMulMean"),
    PatternRow("layernorm-affine", "Add Sqrt Div Mul Cast? Mul Add", "second half of a LayerNorm: normalise, scale and shift", "confirmed", "__myl_AddSqrDivMulCasMulAddSli"),
    PatternRow("norm-scale", "Add Sqrt Div Mul Cast? Mul", "second half of a normalisation: normalise and scale", "likely", "__myl_AddSqrtDivMulMul"),
    PatternRow("softmax", "Maxr Sub Exp Cast? Sum Cast? Div Mul?", "softmax: subtract the maximum, exponentiate, divide by the sum", "confirmed", "__myl_MulCastAddMaxrSubExpSumDivMulCastCastMulCast"),
    PatternRow("log-softmax", "Maxr Sub Exp Sum Log Sub", "log-softmax", "guess", "__myl_MaxrSubExpSumLogSub"),
    PatternRow("softmax-statistics", "Maxr Sub Exp Cast? Sum", "first half of a softmax: maximum, exponentials and their sum", "confirmed", "__myl_MaxrSubExpSum_myl5_4"),
    PatternRow("softmax-normalize", "^Div Mul", "second half of a softmax: divide by the sum", "likely", "__myl_DivMulMaxr_myl4_3"),
    PatternRow("gelu-tanh", "((Mul Mul)|Pow) Mul Add Mul Cast? Tanh Cast? Add Mul Mul?", "GELU, tanh form", "confirmed", "__myl_FcMulMulMulAddMulTanhAddMulMul"),
    PatternRow("hard-swish", "Mul Add ((Min Max)|(Max Min)) Mul", "x times hard-sigmoid(x)", "confirmed", "__myl_CorrMulAddMinMaxMul_myl0_1"),
    PatternRow("hard-swish", "Add ((Min Max)|(Max Min)) (Div|Mul) Mul", "x * ReLU6(x + 3) / 6", "likely", "__myl_AddMaxMinMulMul"),
    PatternRow("hard-sigmoid", "Mul Add ((Min Max)|(Max Min))", "hard-sigmoid: scale, shift, clip", "likely", "__myl_MulAddMinMax"),
    PatternRow("gelu-erf", "(Div|Mul) Cast? Erf Cast? Add Mul Mul?", "GELU, erf form", "confirmed", "__myl_DivCasErfCasAddMulMul"),
    PatternRow("swiglu", "Neg Exp Resh? Add Div Mul Mul", "SiLU times another value: gate of a SwiGLU", "likely", "__myl_FcNegExpAddDivMulMul"),
    PatternRow("silu", "Neg Exp Resh? Add Div Mul", "SiLU: x * sigmoid(x); behind softmax-statistics (TensorRT 8.5 and 8.6), the second half of that softmax", "likely", "ResNegExpResAddDivMul"),
    PatternRow("sigmoid", "Neg Exp Resh? Add Div", "sigmoid: 1 / (1 + exp(-x))", "likely", "__myl_MulNegExpAddDiv"),
    PatternRow("swiglu", "Silu Mul", "SiLU times another value: gate of a SwiGLU", "likely", "__myl_SiluMulMulCast"),
    PatternRow("silu", "Silu", "SiLU: x * sigmoid(x)", "confirmed", "__myl_GnorSilu_myl0_1"),
    PatternRow("int8-quantize-dequantize", "(Mul|Div) Add? ((Min Max Roun)|(Max Min Roun)|(Roun Min Max)|(Roun Max Min)) Cast Cast? Mul", "INT8 quantise and dequantise again", "confirmed", "__myl_MulMinMaxRounCastCastMul_myl0_5"),
    PatternRow("int8-quantize", "(Mul|Div) Add? ((Min Max Roun)|(Max Min Roun)|(Roun Min Max)|(Roun Max Min)) Cast", "INT8 quantise: scale, clip, round, cast", "confirmed", "__myl_MulMinMaxRounCast_myl0_1"),
    PatternRow("fp4-quantize", "Dyna", "NVFP4 dynamic quantise", "likely", "__myl_MulReshDyna_cuda_tile"),
    PatternRow("groupnorm", "Gnor", "GroupNormalization in one operation", "likely", "__myl_GnorSilu_myl0_1"),
    PatternRow("instancenorm", "Inor", "InstanceNormalization in one operation", "likely", "__myl_Inor"),
    PatternRow("residual-add", "Add (Resh|Tran)* >(Cast? Mean Sub Cast? (Mul|Pow) Mean)", "addition whose sum is normalised next: residual, bias or position", "confirmed", "__myl_AddCasMeaSubMulMea"),
    PatternRow("residual-add", "Add (Resh|Tran)* >(Cast? (Mul|Pow) Mean Add Sqrt)", "addition whose sum is normalised next: residual, bias or position", "likely", "__myl_AddCasMulMeaAddSqrDivMulCasMul"),
    PatternRow("bias", "(<(Fc|Gemm|Corr)|<(Fc Cast)) Add >(Cast? (Add|Relu|Silu|Gelu|Tanh|Sigm|Neg|Max|Min|((Div|Mul) Cast? Erf)|(Mul Mul Mul Add Mul Tanh)))", "addition to a product before an activation or a second addition: its bias", "confirmed", "__myl_FcAddRelu_myl0_5"),
    PatternRow("bias-or-residual", "(<(Fc|Gemm|Corr)|<(Fc Cast)) Add", "one addition to a product: its bias (25 of 40 layers of TRTX), or a residual (15)", "confirmed", "__myl_FcAdd_myl0_5"),
    PatternRow("residual-add", "(<((Fc|Gemm|Corr) Add)) Add", "second addition to a product: residual", "likely", "__myl_FcAddAdd_myl0_5"),
    PatternRow("clip", "((Max Min)|(Min Max))", "clip: no smaller than one bound, no larger than the other, as in ReLU6", "likely", "__myl_MaxMinLogMulSum"),
    PatternRow("floor-division", "Div Floo", "integer division", "likely", "__myl_CasCasDivFloCasSubResCasMov_myl0_5"),
    PatternRow("matmul-by-reduction", "Mul Sum", "product summed: a small matrix product on CUDA cores", "confirmed", "__myl_MulSum_myl4_1"),
    PatternRow("scale-shift-relu", "Mul Add Relu", "scale, shift and ReLU (batch normalisation)", "likely", "__myl_CorrMulAddRelu_myl0_1"),
    PatternRow("fp8-quantize", "Mul Cast >((Resh|Tran|Slic|Move)*$)", "FP8 quantise, if the output is FP8: scale and cast", "guess", "__myl_AddMulCastReshTran"),
    PatternRow("dequantize", "^Cast Mul", "dequantise, if the input is INT8 or FP8: cast and scale", "guess", "__myl_CastMulAdd"),
)  # fmt: skip
