"""The declared tables of the engine: its layers, the tensors between them, and what follows from the engine file alone."""

from __future__ import annotations

from nsysmap.base.columns import flag, integer, of_engine, real, row_in, text
from nsysmap.base.table import Spec

ENGINES = Spec(
    "engines",
    "The engine files given.",
    (
        integer("engine", "row number, from 0, in the order given"),
        text("source", "file name, with as much of its path as tells it from the others"),
        text("tensorrt_version", "TensorRT's version, where the file tells", null=True),
        integer("layers", "how many layers"),
        flag("detailed", "the file has more of a layer than its name"),
    ),
    key=("engine",),
)


LAYERS = Spec(
    "layers",
    "The layers of the engines (or, without an engine file, those that the trace's ranges name), with their measured time.",
    (
        integer("layer_id", "row number, from 0"),
        of_engine(null=True),
        integer("layer_index", "position in the engine file, from 0; none for a layer known from ranges only", null=True),
        text("name", "TensorRT's name"),
        text("kind", "our short class of its type: see nsysmap.engine.model.LAYER_KINDS"),
        text("type", "TensorRT's LayerType", null=True),
        text("tactic", "TacticName", null=True),
        integer("stream", "StreamId in the engine file", null=True),
        integer("region", "Myelin region number R of _myl<R>_<i>", null=True),
        integer("region_index", "instruction number i of _myl<R>_<i>", null=True),
        integer("optimization_profile", "optimization profile it belongs to", null=True),
        text("onnx", "ONNX nodes from its Metadata, comma separated", null=True),
        text("origin", "why a reformat is there: Origin in the engine file", null=True),
        text("precision", "data type it computes in, where the file tells", null=True),
        integer("trtexec_ns", "median time in trtexec's --exportProfile file", "ns", null=True),
        integer("time_ns", "median GPU time of its kernels per inference", "ns", null=True),
        real("share_of_kernel_time", "of the engine's GPU time", null=True),
        integer("kernels", "median number of its kernels per inference", null=True),
    ),
    key=("layer_id",),
)


TENSORS = Spec(
    "tensors",
    "What the layers read and write, in the file's order.",
    (
        row_in("layer_id", "layers"),
        text("direction", "in or out"),
        integer("position", "place among the layer's inputs or outputs"),
        text("name", "tensor name; Myelin repeats them between producers"),
        text("dimensions", "like 1x128x768; none where the file does not tell", null=True),
        text("datatype", "FP32, FP16, BF16, TF32, INT8, FP8, FP4, INT4, INT32, INT64, BOOL, UINT8", null=True),
        text("format", "memory layout as the file says it", null=True),
        integer("bytes", "size in device memory, channel padding included", "bytes", null=True),
    ),
)


EDGES = Spec(
    "edges",
    "Which layer's output is which layer's input.",
    (
        integer("from_layer", "layer_id of the producer"),
        integer("to_layer", "layer_id of the consumer"),
        text("tensor", "tensor name"),
        integer("bytes", "its size in device memory", "bytes", null=True),
    ),
)


WORK = Spec(
    "work",
    "The least that each layer has to read, write and compute, one row a layer in the order of layers; by `work`.",
    (
        row_in("layer_id", "layers"),
        integer("macs", "multiply-adds of convolution, matrix product or attention; 0 for other layers", null=True),
        integer("flops", "operations, two a multiply-add; integer ones too", null=True),
        integer("bytes_in", "size of its inputs, channel padding included", "bytes", null=True),
        integer("bytes_out", "size of its outputs", "bytes", null=True),
        integer("weight_bytes", "size of its weights, where the file tells or they can be inferred", "bytes", null=True),
        integer("bytes", "read and written once: inputs, outputs and the weights that are known", "bytes", null=True),
        text("precision", "data type it computes in, where the file tells", null=True),
        text("tensor_cores", "yes, no or unknown, from an exact decode of its tactic"),
        text("does", "product, attention, softmax, norm, pointwise, movement, cast, reformat, quantize, region (opaque), nothing, other"),
        integer("channels_in", "of a product: input channels, or the extent K that a matrix product sums over", null=True),
        integer("channels_out", "of a product: output channels, or the columns N of a matrix product", null=True),
        integer("in_multiple", "multiple that the layout of its first input pads channels to; 1 where it pads none", null=True),
        integer("out_multiple", "multiple that the layout of its first output pads channels to", null=True),
        integer("groups", "of a convolution", null=True),
        text("reason", "why a figure is missing, or what it assumes", null=True),
    ),
    key=("layer_id",),
)


ENGINES_WITH_TENSORS = Spec(
    "engines_with_tensors",
    "The engines whose file shows the tensors of layers. A rule that needs it is skipped for the others.",
    (
        of_engine(),
        text("source", "file name"),
        integer("layers", "how many layers"),
        integer("opaque_regions", "layers whose inside the file does not show ({ForeignNode[…]}): there nothing found is no answer"),
        text("tensorrt_version", "TensorRT's version, where the file tells", null=True),
    ),
    key=("engine",),
)


CHAINS = Spec(
    "chains",
    "Runs of layers that could be one kernel, found in the engine file; by `chains`. Runs of different kinds may share layers.",
    (
        integer("chain_id", "row number, from 0"),
        of_engine(),
        text("kind", "norm or softmax (one of them, in pieces), epilogue (after a product), pointwise, movement (only that)"),
        integer("layers", "how many layers"),
        integer("first_layer", "layer_id of the first"),
        integer("last_layer", "layer_id of the last"),
        integer("saved_bytes", "written by one and read by the next, which one kernel would keep", "bytes", null=True),
        text("separated_by", "what stands between its pieces: cast, layout, product or nothing"),
        integer("reference_layer", "layer_id of a layer of this engine that does the same in one kernel, on as many elements", null=True),
        flag("in_attention", "its layers belong to an attention block"),
        text("place", "path that most of its ONNX nodes share", null=True),
        text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
    key=("chain_id",),
)


CHAIN_LAYERS = Spec(
    "chain_layers",
    "The layers of the chains, in order; by `chains`.",
    (
        row_in("chain_id", "chains"),
        integer("position", "place in the chain, from 0"),
        row_in("layer_id", "layers"),
        text("role", "statistics, normalize, cast, movement, product, epilogue or pointwise"),
    ),
)


ATTENTION = Spec(
    "attention",
    "Attention blocks: matrix product, scale and mask, softmax, matrix product; by `attention`.",
    (
        integer("block_id", "row number, from 0"),
        of_engine(),
        flag("fused", "one kernel does it all"),
        integer("first_layer", "layer_id of its first layer"),
        integer("last_layer", "layer_id of its last layer"),
        integer("softmax_layer", "layer_id of the layer with the softmax"),
        integer("layers", "how many layers it became"),
        integer("heads", "batch x heads: independent products", null=True),
        integer("head_size", "extent that Q*K^T sums over", null=True),
        integer("query_length", "rows of the scores", null=True),
        integer("key_length", "columns of the scores", null=True),
        text("datatype", "data type that the products read", null=True),
        integer(
            "score_bytes", "scores and probabilities written and read between its layers, which a fused kernel keeps", "bytes", null=True
        ),
        integer("reference_layer", "layer_id of a fused block of this engine with a result of the same size", null=True),
        text("met", "known conditions for fusing that are met, semicolons between", null=True),
        text("unmet", "known conditions that are not met, semicolons between", null=True),
        text("unknown", "known conditions that these files do not tell of, semicolons between", null=True),
        text("place", "path that most of its ONNX nodes share", null=True),
        text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
    key=("block_id",),
)


ATTENTION_LAYERS = Spec(
    "attention_layers",
    "The layers of the attention blocks, in order; by `attention`.",
    (
        row_in("block_id", "attention"),
        integer("position", "place in the block, from 0"),
        row_in("layer_id", "layers"),
        text("role", "movement, scores (Q*K^T), softmax, pointwise, values (P*V) or fused"),
    ),
)


REFORMATS = Spec(
    "reformats",
    "Layers that only change a tensor's type or layout, with the cause; by `reformats`.",
    (
        row_in("layer_id", "layers"),
        of_engine(),
        text("cause", "input, output (the engine's own format), quantize, concat, precision, plugin, myelin, layout or unknown"),
        text("origin", "Origin in the engine file: REFORMAT, QDQ, CAST, …", null=True),
        text("from_type", "data type it reads", null=True),
        text("to_type", "data type it writes", null=True),
        text("from_format", "layout it reads", null=True),
        text("to_format", "layout it writes", null=True),
        flag("converts", "the data type changes"),
        flag("free", "TensorRT made it a no-op: no kernel"),
        integer("producer", "layer_id that writes what it reads; none for an engine input", null=True),
        integer("consumer", "layer_id that reads what it writes, the first of them; none for an engine output", null=True),
        integer("consumers", "how many layers read what it writes"),
        integer("undoes", "layer_id of an earlier reformat that it takes back (A to B to A)", null=True),
        integer("bytes", "read and written", "bytes", null=True),
    ),
)


QUANTIZERS = Spec(
    "quantizers",
    "Layers that only quantise or dequantise, which a neighbour could have done; by `reformats`.",
    (
        row_in("layer_id", "layers"),
        of_engine(),
        text("direction", "quantize, dequantize or both"),
        text("from_type", "data type it reads", null=True),
        text("to_type", "data type it writes", null=True),
        integer("producer", "layer_id that writes what it reads; none for an engine input", null=True),
        integer("consumer", "layer_id that reads what it writes, the first of them", null=True),
        text(
            "blocked_by",
            "why no neighbour does it: input, residual (its input is read as a float too), shared (its quantised input is read too), "
            "plugin, producer, unknown",
        ),
        integer("bytes", "read and written", "bytes", null=True),
    ),
)


SIBLINGS = Spec(
    "siblings",
    "Groups of layers none of which needs another: what could be merged, or run at the same time; by `siblings`.",
    (
        integer("group_id", "row number, from 0"),
        of_engine(),
        text("kind", "merge (matrix products that read the same tensor) or parallel (one after another on one stream)"),
        integer("layers", "how many layers"),
        integer("first_layer", "layer_id of the first"),
        integer("last_layer", "layer_id of the last"),
        text("tensor", "what all of them read, of a merge", null=True),
        integer("saved_bytes", "read more than once, of a merge", "bytes", null=True),
        text("place", "path that most of its ONNX nodes share", null=True),
        text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
    key=("group_id",),
)


SIBLING_LAYERS = Spec(
    "sibling_layers",
    "The layers of those groups, in order; by `siblings`.",
    (
        row_in("group_id", "siblings"),
        integer("position", "place in the group, from 0"),
        row_in("layer_id", "layers"),
    ),
)
