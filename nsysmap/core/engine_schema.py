"""The declared tables of the engine: its layers, the tensors between them, and what follows from
the engine file alone.
"""

from __future__ import annotations

from nsysmap.core.columns import flag, integer, of_engine, real, row_in, text
from nsysmap.core.table import Spec

ENGINES = Spec(
    "engines",
    "The given engine files.",
    (
        integer("engine", "row number, from 0, in the order given"),
        text("source", "file name, with as much of its path as distinguishes it from the others"),
        text("file", "the same without a number, where the file lists several", null=True),
        text("tensorrt_version", "TensorRT's version, if the file has it", null=True),
        integer("layers", "how many layers"),
        flag("detailed", "the file has more than the names of layers"),
    ),
    key=("engine",),
)


LAYERS = Spec(
    "layers",
    "The layers of the engines (without an engine file, those named by the trace's ranges), with"
    " their measured time.",
    (
        integer("layer_id", "row number, from 0"),
        of_engine(null=True),
        integer(
            "layer_index",
            "position in the engine file, from 0; none for a layer known only from ranges",
            null=True,
        ),
        text("name", "TensorRT's name"),
        text(
            "title",
            "what it is called: its module and operators in the model (see the glossary)",
            null=True,
        ),
        text("kind", "nsysmap's class of its type: see nsysmap.inputs.engine.model.LAYER_KINDS"),
        text("type", "TensorRT's LayerType", null=True),
        text("tactic", "TacticName", null=True),
        integer("stream", "StreamId in the engine file", null=True),
        integer("region", "Myelin region number R of _myl<R>_<i>", null=True),
        integer("region_index", "instruction number i of _myl<R>_<i>", null=True),
        integer("optimization_profile", "optimization profile it belongs to", null=True),
        text("onnx", "ONNX nodes from its Metadata, comma separated", null=True),
        text("origin", "why a reformat is there: Origin in the engine file", null=True),
        text("precision", "data type it computes in, if the file has it", null=True),
        integer("trtexec_ns", "median time in trtexec's --exportProfile file", "ns", null=True),
        integer(
            "time_ns",
            "GPU time of its kernels per inference of its engine: the mean of the steady-state ones"
            " (without any the total); these add up",
            "ns",
            null=True,
        ),
        integer("median_ns", "the same, the median", "ns", null=True),
        real("share_of_kernel_time", "share of the engine's GPU time", null=True),
        real(
            "share_of_all_kernel_time",
            "share of the time of all kernels in the steady-state part, of any engine or none",
            null=True,
        ),
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
        integer("position", "position among the layer's inputs or outputs"),
        text("name", "tensor name; Myelin repeats them between producers"),
        text("dimensions", "such as 1x128x768; none if the file has none", null=True),
        text(
            "datatype",
            "FP32, FP16, BF16, TF32, INT8, FP8, FP4, INT4, INT32, INT64, BOOL, UINT8",
            null=True,
        ),
        text("format", "memory layout in the file's words", null=True),
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
    "The minimum that each layer has to read, write and compute, one row per layer in the order of"
    " layers.",
    (
        row_in("layer_id", "layers"),
        integer(
            "macs",
            "multiply-adds of convolution, matrix product or attention; 0 for other layers",
            null=True,
        ),
        integer("flops", "operations, two per multiply-add; integer operations too", null=True),
        integer("bytes_in", "size of its inputs, channel padding included", "bytes", null=True),
        integer("bytes_out", "size of its outputs", "bytes", null=True),
        integer(
            "weight_bytes",
            "size of its weights, if the file has it or it can be inferred",
            "bytes",
            null=True,
        ),
        integer(
            "bytes", "read and written once: inputs, outputs and known weights", "bytes", null=True
        ),
        text("precision", "data type it computes in, if the file has it", null=True),
        text("tensor_cores", "yes, no or unknown, from an exact decode of its tactic"),
        text(
            "does",
            "product, attention, softmax, norm, pointwise, reduction, pooling, selection (top-k,"
            " NMS), resize, movement, cast, reformat, quantize, region (opaque), nothing, other",
        ),
        integer(
            "channels_in",
            "for a product: input channels, or the dimension K that a matrix product sums over",
            null=True,
        ),
        integer(
            "channels_out",
            "for a product: output channels, or the columns N of a matrix product",
            null=True,
        ),
        integer(
            "in_multiple",
            "multiple that the layout of its first input pads channels to; 1 if there is no"
            " padding",
            null=True,
        ),
        integer(
            "out_multiple",
            "multiple that the layout of its first output pads channels to",
            null=True,
        ),
        integer("groups", "groups of a convolution", null=True),
        text("reason", "why a figure is missing, or what it assumes", null=True),
    ),
    key=("layer_id",),
)


ENGINES_WITH_TENSORS = Spec(
    "engines_with_tensors",
    "The engines whose file shows the layers' tensors. A rule that needs this table is skipped for"
    " the others.",
    (
        of_engine(),
        text("source", "file name"),
        integer("layers", "how many layers"),
        integer(
            "opaque_regions",
            "layers whose inside the file does not show ({ForeignNode[…]}): finding nothing there"
            " is not an answer",
        ),
        text("tensorrt_version", "TensorRT's version, if the file has it", null=True),
    ),
    key=("engine",),
)


CHAINS = Spec(
    "chains",
    "Chains of layers that could be one kernel, found in the engine file. Chains of different kinds"
    " may share layers.",
    (
        integer("chain_id", "row number, from 0"),
        of_engine(),
        text(
            "kind",
            "norm or softmax (one of them, in several kernels), epilogue (after a product),"
            " pointwise, movement (nothing else)",
        ),
        integer("layers", "how many layers"),
        integer("first_layer", "layer_id of the first"),
        integer("last_layer", "layer_id of the last"),
        integer(
            "saved_bytes",
            "written by one layer and read by the next, which a single kernel would keep on the"
            " chip",
            "bytes",
            null=True,
        ),
        text("separated_by", "what is between its kernels: cast, layout, product or nothing"),
        integer(
            "reference_layer",
            "layer_id of a layer of this engine that does the same in one kernel, on as many"
            " elements",
            null=True,
        ),
        flag("in_attention", "its layers belong to an attention block"),
        text("place", "path shared by most of its ONNX nodes", null=True),
        text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
    key=("chain_id",),
)


CHAIN_LAYERS = Spec(
    "chain_layers",
    "The layers of the chains, in order.",
    (
        row_in("chain_id", "chains"),
        integer("position", "position in the chain, from 0"),
        row_in("layer_id", "layers"),
        text("role", "statistics, normalize, cast, movement, product, epilogue or pointwise"),
    ),
)


ATTENTION = Spec(
    "attention",
    "Attention blocks: matrix product, scale and mask, softmax, matrix product.",
    (
        integer("block_id", "row number, from 0"),
        of_engine(),
        flag("fused", "one kernel does all of it"),
        integer("first_layer", "layer_id of its first layer"),
        integer("last_layer", "layer_id of its last layer"),
        integer("softmax_layer", "layer_id of the layer with the softmax"),
        integer("layers", "number of its layers"),
        integer("heads", "batch x heads: independent products", null=True),
        integer("head_size", "dimension that Q*K^T sums over", null=True),
        integer("query_length", "rows of the scores", null=True),
        integer("key_length", "columns of the scores", null=True),
        text("datatype", "data type that the products read", null=True),
        integer(
            "score_bytes",
            "scores and probabilities written and read between its layers, which a fused kernel"
            " keeps on the chip",
            "bytes",
            null=True,
        ),
        integer(
            "reference_layer",
            "layer_id of a fused block of this engine with a result of the same size",
            null=True,
        ),
        text("met", "known conditions for fusion that are met, separated by semicolons", null=True),
        text("unmet", "known conditions that are not met, separated by semicolons", null=True),
        text(
            "unknown", "conditions that these files leave open, separated by semicolons", null=True
        ),
        text("place", "path shared by most of its ONNX nodes", null=True),
        text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
    key=("block_id",),
)


ATTENTION_LAYERS = Spec(
    "attention_layers",
    "The layers of the attention blocks, in order.",
    (
        row_in("block_id", "attention"),
        integer("position", "position in the block, from 0"),
        row_in("layer_id", "layers"),
        text("role", "movement, scores (Q*K^T), softmax, pointwise, values (P*V) or fused"),
    ),
)


REFORMATS = Spec(
    "reformats",
    "Layers that only change a tensor's type or layout, with the cause.",
    (
        row_in("layer_id", "layers"),
        of_engine(),
        text(
            "cause",
            "input, output (the engine's own format), quantize, concat, precision, plugin, myelin,"
            " layout or unknown",
        ),
        text("origin", "Origin in the engine file: REFORMAT, QDQ, CAST, …", null=True),
        text("from_type", "data type it reads", null=True),
        text("to_type", "data type it writes", null=True),
        text("from_format", "layout it reads", null=True),
        text("to_format", "layout it writes", null=True),
        flag("converts", "the data type changes"),
        flag("free", "TensorRT made it a no-op: no kernel"),
        integer("producer", "layer_id that writes its input; none for an engine input", null=True),
        integer(
            "consumer",
            "layer_id that reads its output, the first of them; none for an engine output",
            null=True,
        ),
        integer("consumers", "number of layers that read its output"),
        integer(
            "undoes", "layer_id of an earlier reformat that it undoes (A to B to A)", null=True
        ),
        integer("bytes", "read and written", "bytes", null=True),
    ),
)


QUANTIZERS = Spec(
    "quantizers",
    "Layers that only quantise or dequantise, which a neighbour could have done.",
    (
        row_in("layer_id", "layers"),
        of_engine(),
        text("direction", "quantize, dequantize or both"),
        text("from_type", "data type it reads", null=True),
        text("to_type", "data type it writes", null=True),
        integer("producer", "layer_id that writes its input; none for an engine input", null=True),
        integer("consumer", "layer_id that reads its output, the first of them", null=True),
        text(
            "blocked_by",
            "why no neighbour does it: input (of the engine), constant, residual (its input is also"
            " read as a float), shared (its quantised input is also read), plugin, producer,"
            " unknown",
        ),
        integer("bytes", "read and written", "bytes", null=True),
    ),
)


SIBLINGS = Spec(
    "siblings",
    "Groups of independent layers that could be merged, or run concurrently.",
    (
        integer("group_id", "row number, from 0"),
        of_engine(),
        text(
            "kind",
            "merge (matrix products that read the same tensor) or parallel (one after another on"
            " one stream)",
        ),
        integer("layers", "how many layers"),
        integer("first_layer", "layer_id of the first"),
        integer("last_layer", "layer_id of the last"),
        text("tensor", "for a merge: the tensor that all of them read", null=True),
        integer("saved_bytes", "for a merge: bytes read more than once", "bytes", null=True),
        text("place", "path shared by most of its ONNX nodes", null=True),
        text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
    key=("group_id",),
)


SIBLING_LAYERS = Spec(
    "sibling_layers",
    "The layers of those groups, in order.",
    (
        row_in("group_id", "siblings"),
        integer("position", "position in the group, from 0"),
        row_in("layer_id", "layers"),
    ),
)
