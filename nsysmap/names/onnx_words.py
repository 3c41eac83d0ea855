"""The tables of the name decoder for layers: ONNX and framework node names, and TensorRT's layer
types, as classes of layers.
"""
# ruff: noqa: E501 - one entry per line

from __future__ import annotations

from typing import NamedTuple


class NodeRow(NamedTuple):
    """One operation as node names write it (lower case, no separators), its ONNX name and the class
    of a layer made of it.
    """

    word: str
    op: str
    kind: str


def _rows(kind: str, *names: str) -> tuple[NodeRow, ...]:
    """Rows of one kind; ``word=Op`` where a framework's word is not ONNX's."""
    pairs = (name.split("=") for name in names)
    return tuple(NodeRow(pair[0].lower(), pair[-1], kind) for pair in pairs)


NODE_ROWS: tuple[NodeRow, ...] = (
    *_rows("convolution", "Conv", "Conv1d=Conv", "Conv2d=Conv", "Conv3d=Conv", "Convolution=Conv", "DepthwiseConv2dNative=Conv", "DepthwiseConv2d=Conv", "ConvInteger", "QLinearConv", "DeformConv"),
    *_rows("deconvolution", "ConvTranspose", "ConvTranspose1d=ConvTranspose", "ConvTranspose2d=ConvTranspose", "ConvTranspose3d=ConvTranspose", "Deconvolution=ConvTranspose", "Conv2DBackpropInput=ConvTranspose"),
    *_rows("gemm", "MatMul", "Gemm", "Linear=Gemm", "FullyConnected=Gemm", "MatMulInteger", "FusedMatMul=MatMul", "QLinearMatMul", "Einsum", "BMM=MatMul", "Addmm=Gemm", "MM=MatMul", "MatrixMultiply=MatMul", "MatrixMultiplication=MatMul", "Dense=Gemm", "InnerProduct=Gemm", "BatchMatMul=MatMul", "BatchMatMulV2=MatMul", "Baddbmm=Gemm"),
    *_rows("attention", "Attention", "MultiHeadAttention=Attention", "ScaledDotProductAttention=Attention", "GroupQueryAttention", "GPTAttention=Attention"),
    *_rows("pointwise", "Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp", "Log", "Neg", "Abs", "Erf", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Min", "Max", "Mod", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Clip", "And", "Or", "Xor", "Not", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Where", "IsNaN", "IsInf", "Sum", "PRelu", "Rsqrt=Reciprocal", "BiasAdd=Add", "AddV2=Add", "Multiply=Mul", "Subtract=Sub", "RealDiv=Div", "TrueDiv=Div", "Square=Mul", "Maximum=Max", "Minimum=Min", "ElementWise", "Unary", "Select=Where", "BitShift", "Clamp=Clip", "Eq=Equal", "Lt=Less", "Gt=Greater", "Ge=GreaterOrEqual", "Le=LessOrEqual", "LogicalNot=Not", "LogicalAnd=And", "LogicalOr=Or"),
    *_rows("activation", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Selu", "Celu", "Gelu", "HardSigmoid", "HardSwish", "Softplus", "Softsign", "Mish", "Swish", "Silu=Swish", "ThresholdedRelu", "Relu6=Clip", "FusedGelu=Gelu", "FastGelu=Gelu", "BiasGelu=Gelu", "QuickGelu=Gelu", "Activation", "HardTanh=Clip"),
    *_rows("softmax", "Softmax", "LogSoftmax", "Hardmax"),
    *_rows("normalization", "LayerNormalization", "LayerNorm=LayerNormalization", "BatchNormalization", "BatchNorm=BatchNormalization", "BatchNorm2d=BatchNormalization", "InstanceNormalization", "InstanceNorm=InstanceNormalization", "GroupNormalization", "GroupNorm=GroupNormalization", "RMSNormalization", "RMSNorm=RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipLayerNorm=SkipLayerNormalization", "LpNormalization", "MeanVarianceNormalization", "LRN", "FusedBatchNorm=BatchNormalization", "FusedBatchNormV3=BatchNormalization", "NativeBatchNormLegitNoTraining=BatchNormalization"),
    *_rows("reduce", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Mean=ReduceMean", "Reduce"),
    *_rows("pooling", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "AvgPool=AveragePool", "MaxPool1d=MaxPool", "MaxPool2d=MaxPool", "MaxPool3d=MaxPool", "AvgPool2d=AveragePool", "AvgPool3d=AveragePool", "AdaptiveAvgPool2d=GlobalAveragePool", "Pooling", "GlobalPool"),
    *_rows("shuffle", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "DepthToSpace", "SpaceToDepth", "Expand", "Tile", "View=Reshape", "Permute=Transpose", "Shuffle", "PixelShuffle=DepthToSpace", "Contiguous=Identity", "Repeat=Tile", "Expanddims=Unsqueeze"),
    *_rows("slice", "Slice", "Split", "Pad", "Chunk=Split", "StridedSlice=Slice", "Crop=Slice", "Unbind=Split", "Padding=Pad", "SplitWithSizes=Split"),
    *_rows("concat", "Concat", "Concatenation=Concat", "Cat=Concat", "ConcatV2=Concat", "Stack=Concat", "SequenceConstruct"),
    *_rows("gather", "Gather", "GatherElements", "GatherND", "Embedding=Gather", "IndexSelect=Gather", "GatherV2=Gather", "Index=Gather", "OneHot", "Compress"),
    *_rows("scatter", "Scatter", "ScatterElements", "ScatterND", "IndexPut=ScatterND"),
    *_rows("resize", "Resize", "Upsample", "UpsampleNearest2d=Resize", "UpsampleBilinear2d=Resize", "Interpolate=Resize", "ResizeBilinear=Resize", "ResizeNearestNeighbor=Resize", "GridSample", "GridSampler2d=GridSample", "AffineGrid"),
    *_rows("topk", "TopK", "ArgMax", "ArgMin", "Sort=TopK", "NonZero"),
    *_rows("nms", "NonMaxSuppression", "NMS=NonMaxSuppression", "EfficientNMS=NonMaxSuppression", "EfficientNMSTRT=NonMaxSuppression", "BatchedNMS=NonMaxSuppression", "BatchedNMSTRT=NonMaxSuppression", "BatchedNMSDynamicTRT=NonMaxSuppression"),
    *_rows("cast", "Cast", "ToCopy=Cast", "CastLike"),
    *_rows("quantize", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Quantize=QuantizeLinear", "Dequantize=DequantizeLinear", "QuantLinearNode=QuantizeLinear", "DequantLinearNode=DequantizeLinear", "TRTFP8QuantizeLinear=QuantizeLinear", "TRTFP8DequantizeLinear=DequantizeLinear", "TRTFP4DynamicQuantize=DynamicQuantize", "TRTINT4DequantizeLinear=DequantizeLinear", "DynamicQuantize"),
    *_rows("constant", "Constant", "ConstantOfShape", "ReadVariableOp=Constant", "Fill=ConstantOfShape", "Full=ConstantOfShape"),
    *_rows("shape", "Shape", "Size", "Range", "Arange=Range"),
    *_rows("loop", "Loop", "Scan", "If", "LSTM", "GRU", "RNN", "TripLimit", "Recurrence", "LoopOutput", "Iterator"),
    *_rows("scale", "Scale"),
    *_rows("reformat", "Identity", "Reformat", "Copy=Identity", "Clone=Identity"),
    *_rows("other", "CumSum", "RoiAlign", "Dropout", "RandomNormal", "RandomUniform", "Multinomial", "Trilu", "EyeLike", "Bernoulli", "DFT", "STFT", "Det", "ReverseSequence", "Unique"),
)  # fmt: skip

NODES: dict[str, NodeRow] = {row.word: row for row in NODE_ROWS}

LAYER_TYPES: dict[str, str] = {
    # the first word of TensorRT's LayerType, in lower case
    "caskconvolution": "convolution", "caskgemmconvolution": "convolution", "caskflattenconvolution": "convolution", "cudadepthwiseconvolution": "convolution",
    "fusedconvactconvolution": "convolution", "convactpool": "convolution", "convolution": "convolution", "correlation": "convolution", "cudnnconvolution": "convolution",
    "cublasconvolution": "convolution", "caskconvactpool": "convolution",
    "caskdeconvolution": "deconvolution", "caskdeconvolutionv2": "deconvolution", "deconvolution": "deconvolution", "cudnndeconvolution": "deconvolution", "gemmdeconvolution": "deconvolution",
    "gemm": "gemm", "matrixmultiply": "gemm", "caskgemmmatrixmultiply": "gemm", "caskmatrixmultiply": "gemm", "caskfullyconnected": "gemm", "fullyconnected": "gemm", "cublas": "gemm", "matmul": "gemm",
    "gemv": "gemm", "einsum": "gemm", "cublasmatrixmultiply": "gemm", "mha": "attention", "attention": "attention", "multiheadattention": "attention", "fusedmha": "attention",
    "myelin": "foreign_node", "foreignnode": "foreign_node", "kgen": "myelin_kernel", "fusion": "myelin_kernel", "runtime_fusion": "myelin_kernel", "runtime_function": "myelin_kernel",
    "pointwise": "pointwise", "pointwisev2": "pointwise", "elementwise": "pointwise", "unary": "pointwise", "select": "pointwise", "dynamicpointwise": "pointwise", "add": "pointwise", "sub": "pointwise", "mul": "pointwise", "div": "pointwise",
    "activation": "activation", "parametricrelu": "activation", "scale": "scale", "cudascale": "scale",
    "softmax": "softmax", "softmaxv2": "softmax", "cudasoftmax": "softmax", "raggedsoftmax": "softmax", "cudnnsoftmax": "softmax", "casksoftmax": "softmax", "casksoftmaxv2": "softmax", "logsoftmaxtopk": "softmax",
    "normalization": "normalization", "layernorm": "normalization", "instancenormalization": "normalization", "lrn": "normalization", "cudalrn": "normalization", "casknormalization": "normalization",
    "reduce": "reduce", "cudareduce": "reduce", "caskreduce": "reduce",
    "pooling": "pooling", "caskpooling": "pooling", "cudapooling": "pooling", "cudnnpooling": "pooling", "tiledpooling": "pooling", "maxpool": "pooling", "avgpool": "pooling", "averagepool": "pooling",
    "reformat": "reformat", "myelinreformat": "reformat", "vanillareformat": "reformat", "uninitializedreformat": "reformat", "identity": "reformat", "copy": "reformat", "move": "reformat",
    "noop": "noop", "assertion": "noop", "shuffle": "shuffle", "reshape": "shuffle", "transpose": "shuffle", "squeeze": "shuffle", "unsqueeze": "shuffle",
    "slice": "slice", "padding": "slice", "split": "slice", "concat": "concat", "concatenation": "concat", "gather": "gather", "onehot": "gather", "scatter": "scatter",
    "resize": "resize", "gridsample": "resize", "topk": "topk", "nonzero": "topk", "argmax": "topk", "sort": "topk", "nms": "nms", "cast": "cast",
    "quantize": "quantize", "dequantize": "quantize", "dynamicquantize": "quantize", "constant": "constant", "fill": "constant", "memset": "constant",
    "plugin": "plugin", "pluginv2": "plugin", "pluginv2ext": "plugin", "pluginv2ioext": "plugin", "pluginv2dynamicext": "plugin", "pluginv3": "plugin",
    "shape": "shape", "shape_call": "shape", "shapehosttodevice": "shape", "shapehosttodevicecopy": "shape", "shapedevicetohostcopy": "shape", "trainstation": "other", "finish": "other", "hosttodevicecopy": "shape", "devicetohostcopy": "shape", "devicetoshapehost": "shape", "signal": "signal", "wait": "signal", "cjmp": "signal", "jmp": "signal",
    "loop": "loop", "recurrence": "loop", "triplimit": "loop", "iterator": "loop", "loopoutput": "loop", "condition": "loop", "conditional": "loop", "conditionalinput": "loop",
    "conditionaloutput": "loop", "rnn": "loop", "rnnv2": "loop",
}  # fmt: skip

MAIN_KINDS = (
    "attention",
    "convolution",
    "deconvolution",
    "gemm",
    "nms",
    "topk",
    "pooling",
    "softmax",
    "normalization",
    "reduce",
    "resize",
    "scatter",
    "gather",
)
"""The kind of a layer with merged nodes is the first of these that one of them has."""
