"""The declared tables themselves: what a rule, a test and a user can rely on.

Read off an nsys report by ``trace`` (the first block), worked out by the modules named in each comment (the second).
``process`` and ``thread`` are nsys's serialized ids (globalPid, globalTid): unique over the whole trace, where ``pid``,
``device``, ``stream`` and ``correlation`` are not.
"""

from __future__ import annotations

from nsysmap.tables import Column, Kind, Spec


def _int(name: str, comment: str, unit: str = "", *, null: bool = False) -> Column:
    return Column(name, "int", comment, unit, null)


def _float(name: str, comment: str, unit: str = "", *, null: bool = False) -> Column:
    return Column(name, "float", comment, unit, null)


def _text(name: str, comment: str, *, null: bool = False) -> Column:
    return Column(name, "text", comment, "", null)


def _bool(name: str, comment: str) -> Column:
    kind: Kind = "bool"
    return Column(name, kind, comment)


_WHEN = (_int("start_ns", "when it began", "ns"), _int("end_ns", "when it ended", "ns"))
_WHERE = (
    _int("device", "CUDA device ordinal"),
    _int("context", "CUDA context id within its process", null=True),
    _int("stream", "CUDA stream id within its context"),
    _int("process", "nsys globalPid of the process that launched it"),
    _int("pid", "process id"),
)
_LAUNCHED = (
    _int("correlation", "CUPTI correlation id, unique within a process only", null=True),
    _int("launch", "row in api_calls of the call that launched it", null=True),
    _int("launch_start_ns", "when that call began", "ns", null=True),
    _int("launch_end_ns", "when that call returned", "ns", null=True),
    _int("thread", "nsys globalTid of the launching thread", null=True),
)

# --- read off the report by `trace` ---------------------------------------------------------------------------------

GPU_KERNELS = Spec(
    "gpu_kernels",
    "Executions of kernels on the GPU, by start time.",
    (
        _int("kernel_id", "row number, from 0"),
        *_WHEN,
        *_WHERE,
        *_LAUNCHED,
        _text("name", "full (demangled) kernel name"),
        _int("graph", "id of the CUDA graph it was replayed in", null=True),
        _int("graph_node", "nsys graphNodeId of the replayed node", null=True),
        _int("grid_x", "blocks in x"),
        _int("grid_y", "blocks in y"),
        _int("grid_z", "blocks in z"),
        _int("block_x", "threads of a block in x"),
        _int("block_y", "threads of a block in y"),
        _int("block_z", "threads of a block in z"),
        _int("registers", "registers per thread"),
        _int("static_shared_bytes", "static shared memory per block", "bytes"),
        _int("dynamic_shared_bytes", "dynamic shared memory per block", "bytes"),
    ),
)

API_CALLS = Spec(
    "api_calls",
    "Calls of the CUDA runtime and driver, by start time.",
    (
        *_WHEN,
        _int("process", "nsys globalPid"),
        _int("pid", "process id"),
        _int("thread", "nsys globalTid of the calling thread"),
        _int("correlation", "CUPTI correlation id, unique within a process only", null=True),
        _text("api", "function without its version suffix, such as cudaLaunchKernel"),
        _text(
            "kind",
            "launch, graph-launch, copy, memset, sync, event, stream-wait, alloc, free, host-register, capture, "
            "graph-build, module-load, other",
        ),
        _int("result", "what it returned; 0 is success"),
    ),
)

RANGES = Spec(
    "ranges",
    "NVTX ranges, by start time; one left open ends with the trace.",
    (
        *_WHEN,
        _int("process", "nsys globalPid"),
        _int("pid", "process id"),
        _int("thread", "nsys globalTid of the thread that opened it"),
        _text("domain", "NVTX domain name; empty for the default domain"),
        _text("name", "the range's text"),
        _text("payload", "JSON payload, where it has one", null=True),
        _bool("push_pop", "a push/pop range; otherwise a start/end range"),
        _bool("one_thread", "ended by the thread that opened it"),
    ),
)

COPIES = Spec(
    "copies",
    "Memory copies on the GPU, by start time.",
    (
        *_WHEN,
        *_WHERE,
        *_LAUNCHED,
        _text("api", "function that asked for it, without version suffix", null=True),
        _text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, other"),
        _text("source", "pageable, pinned, device, array, managed or unknown memory"),
        _text("target", "pageable, pinned, device, array, managed or unknown memory"),
        _int("bytes", "how much", "bytes"),
        _bool("asynchronous", "asked for by an …Async call (which pageable memory may block all the same) or replayed in a graph"),
        _int("graph_node", "nsys graphNodeId of the replayed node", null=True),
    ),
)

MEMSETS = Spec(
    "memsets",
    "Memory fills on the GPU, by start time.",
    (
        *_WHEN,
        *_WHERE,
        *_LAUNCHED,
        _text("api", "function that asked for it, without version suffix", null=True),
        _text("target", "pageable, pinned, device, array, managed or unknown memory"),
        _int("bytes", "how much", "bytes"),
        _int("graph_node", "nsys graphNodeId of the replayed node", null=True),
    ),
)

SYNCS = Spec(
    "syncs",
    "Synchronisations as CUPTI saw them: the host, or a stream, waits for the GPU; by start time.",
    (
        *_WHEN,
        *_WHERE,
        _int("correlation", "CUPTI correlation id, unique within a process only", null=True),
        _int("launch", "row in api_calls of the call that asked for it", null=True),
        _int("thread", "nsys globalTid of the waiting thread", null=True),
        _text("kind", "event, stream-wait, stream, context, other"),
    ),
)

GRAPH_NODES = Spec(
    "graph_nodes",
    "Creations of CUDA graph nodes, clones included, by start time; may lie before the trace's time 0.",
    (
        *_WHEN,
        _int("process", "nsys globalPid"),
        _int("thread", "nsys globalTid of the creating (capturing) thread"),
        _int("graph_node", "nsys graphNodeId"),
        _int("original", "graphNodeId of the node it was cloned from", null=True),
    ),
)

GRAPH_RUNS = Spec(
    "graph_runs",
    "Whole executions of a CUDA graph under --cuda-graph-trace=graph: their kernels are not in the trace.",
    (
        *_WHEN,
        *_WHERE,
        *_LAUNCHED,
        _int("graph", "graph id", null=True),
        _int("graph_exec", "id of the instantiated graph", null=True),
    ),
)

OVERHEADS = Spec(
    "overheads",
    "Times in which the profiler itself held a thread.",
    (*_WHEN, _int("thread", "nsys globalTid", null=True), _text("name", "what it did")),
)

OS_CALLS = Spec(
    "os_calls",
    "Calls of the OS runtime (with nsys -t osrt), by start time.",
    (*_WHEN, _int("pid", "process id"), _int("thread", "nsys globalTid of the calling thread"), _text("name", "function")),
)

DEVICES = Spec(
    "devices",
    "The GPUs of the machine that was profiled.",
    (
        _int("device", "CUDA device ordinal"),
        _text("name", "marketing name"),
        _text("chip", "chip name, such as GH100", null=True),
        _int("compute_major", "compute capability, major", null=True),
        _int("compute_minor", "compute capability, minor", null=True),
        _int("sm_count", "streaming multiprocessors", null=True),
        _int("clock_hz", "SM clock", "Hz", null=True),
        _int("memory_bytes", "device memory", "bytes", null=True),
        _int("bandwidth_bytes_per_s", "device memory bandwidth", "bytes/s", null=True),
        _int("l2_bytes", "level-2 cache", "bytes", null=True),
    ),
)

CAPTURE = Spec(
    "capture",
    "One row of facts about the trace itself.",
    (
        _text("nsys_version", "version of nsys that wrote the report", null=True),
        _text("schema_version", "version of nsys's export schema", null=True),
        _int("duration_ns", "from the first to the last piece of GPU work or host call", "ns"),
        _int("kernels", "kernel rows"),
        _int("graph_launches", "calls that launched a CUDA graph"),
        _int("graph_runs", "whole-graph rows"),
        _int("graph_kernels", "kernel rows with a graph node id"),
        _int("graph_nodes", "graph node creation rows"),
        _text("graph_mode", "none, node (kernels of graphs are traced), whole (they are hidden)"),
        _bool("has_tensorrt_ranges", "the NVTX domain TensorRT has ranges"),
        _bool("has_layer_ranges", "ranges below ExecutionContext:: name layers"),
        _bool("has_myelin_ranges", "the NVTX domain myelin-exec has ranges"),
        _bool("has_api_calls", "CUDA API calls were traced"),
        _bool("has_syncs", "synchronisations were traced"),
        _bool("has_osrt", "OS runtime calls were traced"),
        _int("processes", "processes with GPU work"),
        _int("threads", "threads with CUDA calls"),
        _int("streams", "streams with GPU work"),
        _int("devices", "devices with GPU work"),
        _int("dropped_rows", "rows that made no sense and were left out"),
        _int("unmatched_launches", "kernels whose launch call is not in the trace"),
        _int("overhead_ns", "time in which the profiler held a thread that launched work, within the window of GPU work", "ns"),
        _text("tensorrt_version", "TensorRT's version, where trace or engine tells", null=True),
    ),
)

# --- from the engine file, by `engine` ------------------------------------------------------------------------------

LAYERS = Spec(
    "layers",
    "The layers of the engines (or, without an engine file, those that the trace's ranges name), with their measured time.",
    (
        _int("layer_id", "row number, from 0"),
        _int("engine", "which engine file, from 0", null=True),
        _int("layer_index", "position in the engine file, from 0; none for a layer known from ranges only", null=True),
        _text("name", "TensorRT's name"),
        _text("kind", "our short class of its type: see nsysmap.model.LAYER_KINDS"),
        _text("type", "TensorRT's LayerType", null=True),
        _text("tactic", "TacticName", null=True),
        _int("stream", "StreamId in the engine file", null=True),
        _int("region", "Myelin region number R of _myl<R>_<i>", null=True),
        _int("region_index", "instruction number i of _myl<R>_<i>", null=True),
        _int("profile", "optimisation profile it belongs to", null=True),
        _text("onnx", "ONNX nodes from its Metadata, comma separated", null=True),
        _text("origin", "why a reformat is there: Origin in the engine file", null=True),
        _text("precision", "data type it computes in, where the file tells", null=True),
        _int("profile_ns", "median time in trtexec's --exportProfile file", "ns", null=True),
        _int("time_ns", "median GPU time of its kernels per inference", "ns", null=True),
        _float("share", "of the engine's GPU time", null=True),
        _int("kernels", "median number of its kernels per inference", null=True),
    ),
)

TENSORS = Spec(
    "tensors",
    "What the layers read and write, in the file's order.",
    (
        _int("layer_id", "row in layers"),
        _text("direction", "in or out"),
        _int("position", "place among the layer's inputs or outputs"),
        _text("name", "tensor name; Myelin repeats them between producers"),
        _text("dimensions", "like 1x128x768; none where the file does not tell", null=True),
        _text("datatype", "FP32, FP16, BF16, TF32, INT8, FP8, FP4, INT4, INT32, INT64, BOOL, UINT8", null=True),
        _text("format", "memory layout as the file says it", null=True),
        _int("bytes", "size in device memory, channel padding included", "bytes", null=True),
    ),
)

EDGES = Spec(
    "edges",
    "Which layer's output is which layer's input.",
    (
        _int("from_layer", "layer_id of the producer"),
        _int("to_layer", "layer_id of the consumer"),
        _text("tensor", "tensor name"),
        _int("bytes", "its size in device memory", "bytes", null=True),
    ),
)

WORK = Spec(
    "work",
    "What each layer has to do at the least, one row a layer in the order of layers; by `work`.",
    (
        _int("layer_id", "row in layers"),
        _int("macs", "multiply-adds of convolution, matrix product or attention; 0 for other layers", null=True),
        _int("flops", "operations, two a multiply-add; integer ones too", null=True),
        _int("bytes_in", "size of its inputs, channel padding included", "bytes", null=True),
        _int("bytes_out", "size of its outputs", "bytes", null=True),
        _int("weight_bytes", "size of its weights, where the file tells or they can be inferred", "bytes", null=True),
        _int("bytes", "read and written once: inputs, outputs and the weights that are known", "bytes", null=True),
        _text("precision", "data type it computes in, where the file tells", null=True),
        _text("tensor_cores", "yes, no or unknown, from an exact decode of its tactic"),
        _text("does", "product, attention, softmax, norm, pointwise, movement, cast, reformat, quantize, region (opaque), nothing, other"),
        _int("channels_in", "of a product: input channels, or the extent K that a matrix product sums over", null=True),
        _int("channels_out", "of a product: output channels, or the columns N of a matrix product", null=True),
        _int("groups", "of a convolution", null=True),
        _text("reason", "why a figure is missing, or what it assumes", null=True),
    ),
)

OPEN_ENGINES = Spec(
    "open_engines",
    "The engines whose file shows their inside: tensors, and no opaque region. A rule that needs it is skipped for the others.",
    (
        _int("engine", "which engine file, from 0"),
        _text("source", "file name"),
        _int("layers", "how many layers"),
        _text("tensorrt_version", "TensorRT's version, where the file tells", null=True),
    ),
)

CHAINS = Spec(
    "chains",
    "Runs of layers that could be one kernel, found in the engine file; by `chains`. Runs of different kinds may share layers.",
    (
        _int("chain_id", "row number, from 0"),
        _int("engine", "which engine file, from 0"),
        _text("kind", "norm or softmax (one of them, in pieces), epilogue (after a product), pointwise, movement (only that)"),
        _int("layers", "how many layers"),
        _int("first_layer", "layer_id of the first"),
        _int("last_layer", "layer_id of the last"),
        _int("saved_bytes", "written by one and read by the next, which one kernel would keep", "bytes", null=True),
        _text("between", "what stands between its pieces: cast, layout, product or nothing"),
        _int("peer", "layer_id of a layer of this engine that does the same in one kernel, on as many elements", null=True),
        _bool("in_attention", "its layers belong to an attention block"),
        _text("place", "path that most of its ONNX nodes share", null=True),
        _text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
)

CHAIN_LAYERS = Spec(
    "chain_layers",
    "The layers of the chains, in order; by `chains`.",
    (
        _int("chain_id", "row in chains"),
        _int("position", "place in the chain, from 0"),
        _int("layer_id", "row in layers"),
        _text("role", "statistics, normalize, cast, movement, product, epilogue or pointwise"),
    ),
)

ATTENTION = Spec(
    "attention",
    "Attention blocks: matrix product, scale and mask, softmax, matrix product; by `attention`.",
    (
        _int("block_id", "row number, from 0"),
        _int("engine", "which engine file, from 0"),
        _bool("fused", "one kernel does it all"),
        _int("first_layer", "layer_id of its first layer"),
        _int("last_layer", "layer_id of its last layer"),
        _int("softmax_layer", "layer_id of the layer with the softmax"),
        _int("layers", "how many layers it became"),
        _int("heads", "batch x heads: independent products", null=True),
        _int("head_size", "extent that Q*K^T sums over", null=True),
        _int("query_length", "rows of the scores", null=True),
        _int("key_length", "columns of the scores", null=True),
        _text("datatype", "data type that the products read", null=True),
        _int("score_bytes", "scores and probabilities written and read between its layers, which a fused kernel keeps", "bytes", null=True),
        _int("peer", "layer_id of a fused block of this engine with a result of the same size", null=True),
        _text("holds", "known conditions for fusing that hold, semicolons between", null=True),
        _text("fails", "known conditions that fail, semicolons between", null=True),
        _text("untold", "known conditions that these files do not tell, semicolons between", null=True),
        _text("place", "path that most of its ONNX nodes share", null=True),
        _text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
)

ATTENTION_LAYERS = Spec(
    "attention_layers",
    "The layers of the attention blocks, in order; by `attention`.",
    (
        _int("block_id", "row in attention"),
        _int("position", "place in the block, from 0"),
        _int("layer_id", "row in layers"),
        _text("role", "movement, scores (Q*K^T), softmax, pointwise, values (P*V) or fused"),
    ),
)

REFORMATS = Spec(
    "reformats",
    "Layers that only change a tensor's type or layout, with the cause; by `reformats`.",
    (
        _int("layer_id", "row in layers"),
        _int("engine", "which engine file, from 0"),
        _text("cause", "input, output (the engine's own format), quantize, precision, plugin, myelin, layout or unknown"),
        _text("origin", "Origin in the engine file: REFORMAT, QDQ, CAST, …", null=True),
        _text("from_type", "data type it reads", null=True),
        _text("to_type", "data type it writes", null=True),
        _text("from_format", "layout it reads", null=True),
        _text("to_format", "layout it writes", null=True),
        _bool("converts", "the data type changes"),
        _bool("free", "TensorRT made it a no-op: no kernel"),
        _int("producer", "layer_id that writes what it reads; none for an engine input", null=True),
        _int("consumer", "layer_id that reads what it writes, the first of them; none for an engine output", null=True),
        _int("consumers", "how many layers read what it writes"),
        _int("undoes", "layer_id of an earlier reformat that it takes back (A to B to A)", null=True),
        _int("bytes", "read and written", "bytes", null=True),
    ),
)

QUANTIZERS = Spec(
    "quantizers",
    "Layers that only quantise or dequantise, which a neighbour could have done; by `reformats`.",
    (
        _int("layer_id", "row in layers"),
        _int("engine", "which engine file, from 0"),
        _text("direction", "quantize, dequantize or both"),
        _text("from_type", "data type it reads", null=True),
        _text("to_type", "data type it writes", null=True),
        _int("producer", "layer_id that writes what it reads; none for an engine input", null=True),
        _int("consumer", "layer_id that reads what it writes, the first of them", null=True),
        _text("blocked_by", "why no neighbour does it: input, residual (its input is read as a float too), plugin, producer, unknown"),
        _int("bytes", "read and written", "bytes", null=True),
    ),
)

SIBLINGS = Spec(
    "siblings",
    "Groups of layers none of which needs another: what could be merged, or run at the same time; by `siblings`.",
    (
        _int("group_id", "row number, from 0"),
        _int("engine", "which engine file, from 0"),
        _text("kind", "merge (matrix products that read the same tensor) or parallel (one after another on one stream)"),
        _int("layers", "how many layers"),
        _int("first_layer", "layer_id of the first"),
        _int("last_layer", "layer_id of the last"),
        _text("tensor", "what all of them read, of a merge", null=True),
        _int("saved_bytes", "read more than once, of a merge", "bytes", null=True),
        _text("place", "path that most of its ONNX nodes share", null=True),
        _text("onnx", "ONNX nodes of its layers, comma separated", null=True),
    ),
)

SIBLING_LAYERS = Spec(
    "sibling_layers",
    "The layers of those groups, in order; by `siblings`.",
    (
        _int("group_id", "row in siblings"),
        _int("position", "place in the group, from 0"),
        _int("layer_id", "row in layers"),
    ),
)

KERNEL_RUNS = Spec(
    "kernel_runs",
    "Attention, norms and softmaxes in pieces inside opaque regions, told from the kernels' names and order alone; by `kernel_runs`.",
    (
        _int("run_id", "row number, from 0"),
        _text("kind", "attention, norm or softmax"),
        _bool("fused", "one kernel does it all"),
        _int("layer_id", "row in layers: the region"),
        _text("part", "finest name known of its first kernel", null=True),
        _int("shape", "inferences of that shape have it", null=True),
        _int("first_position", "place of its first kernel among those of such an inference"),
        _int("last_position", "place of its last kernel"),
        _int("kernels", "how many kernels it became"),
        _text("names", "those kernels' operations or families, in order, semicolons between"),
        _int("device", "CUDA device ordinal; none where several ran it", null=True),
        _int("start_ns", "begin of the first of these inferences' kernels of it", "ns", null=True),
        _int("end_ns", "end of the last", "ns", null=True),
        _int("time_ns", "their time over the steady inferences of that shape", "ns"),
        _int("kept_ns", "the part of it in products, or in the longest piece: what one kernel would still take at the least", "ns"),
        _int("inferences", "steady inferences of that shape"),
    ),
)

LIMITS = Spec(
    "limits",
    "How far each layer is from what the device allows, one row a layer in the order of layers; by `limits`.",
    (
        _int("layer_id", "row in layers"),
        _int("time_ns", "median GPU time per inference", "ns", null=True),
        _int("bytes", "read and written at the least", "bytes", null=True),
        _int("flops", "operations at the least", null=True),
        _int("bytes_floor_ns", "bytes over the device's bandwidth; data in the level-2 cache is faster", "ns", null=True),
        _int("flops_floor_ns", "operations over the peak rate for its data type", "ns", null=True),
        _int("floor_ns", "the longer of the two", "ns", null=True),
        _float("reached", "floor over time: 1 is at the limit", null=True),
        _float("peak_flops_per_s", "peak rate that was taken", null=True),
        _int("blocks", "thread blocks of its longest kernel", null=True),
        _float("waves", "those blocks over what the device holds at once", null=True),
        _text("verdict", "memory-bound, compute-bound, latency-bound or unknown"),
        _text("reason", "what the verdict rests on, or why there is none"),
    ),
)

LAYER_TIMES = Spec(
    "layer_times",
    "What each layer took over the steady inferences, one row a layer that ran; by `layer_times`.",
    (
        _int("layer_id", "row in layers"),
        _int("engine", "which engine file, from 0", null=True),
        _text("told_by", "trace, or profile (one inference of --exportProfile, where there is no trace)"),
        _int("device", "CUDA device ordinal; none where several ran it", null=True),
        _int("start_ns", "begin of its first kernel", "ns", null=True),
        _int("end_ns", "end of its last kernel", "ns", null=True),
        _int("total_ns", "time of its kernels", "ns"),
        _int("inferences", "steady inferences of its engine"),
        _int("kernels", "kernels in all", null=True),
        _text("kernel", "name of its longest kernel", null=True),
        _float("share", "of the time of all layers of its engine"),
    ),
)

# --- worked out -----------------------------------------------------------------------------------------------------

MAPPING = Spec(
    "mapping",
    "Kernel to layer, one row a kernel in the order of the kernels; by `mapping`.",
    (
        _int("layer_id", "row in layers", null=True),
        _int("engine", "which engine file, from 0", null=True),
        _int("layer_index", "position in that engine file", null=True),
        _text("layer", "the layer's name", null=True),
        _text("part", "inside a Myelin region: the finest name known", null=True),
        _text("method", "nvtx, graph-node, tactic, order, region or none"),
        _float("confidence", "0 to 1; 1 is exact"),
        _text("reason", "why there is no layer, or what limits the confidence", null=True),
        _text("part_by", "what tells the part: tag, payload or node (a range of the trace), pattern (the kernel's name), onnx", null=True),
    ),
)

MEMBERSHIP = Spec(
    "membership",
    "Kernel to inference, one row a kernel in the order of the kernels; by `inferences`.",
    (
        _int("inference", "row in inferences", null=True),
        _int("position", "place among the kernels of that inference, in launch order, from 0", null=True),
    ),
)

KERNELS = Spec(
    "kernels",
    "Every kernel with its launch, its inference and its layer.",
    (*GPU_KERNELS.columns, *MEMBERSHIP.columns, *MAPPING.columns),
)

ENGINE_FITS = Spec(
    "engine_fits",
    "Whether each engine file given is of an engine that ran in the trace; by `engine_fits`.",
    (
        _int("engine", "which engine file, from 0"),
        _text("source", "its file name"),
        _text("verdict", "ran, did-not-run or cannot-tell"),
        _int(
            "compared",
            "layer ranges that ran kernels, or without ranges the engine's layers; none where nothing could be compared",
            null=True,
        ),
        _int("known", "of the layer ranges: known to this engine; none where the order of the kernels decided", null=True),
        _text("trace_layer", "a layer that the trace names and this engine does not have", null=True),
        _text("engine_layer", "a layer of this engine, beside it", null=True),
        _text("how", "how that is known, in words"),
    ),
)

INFERENCES = Spec(
    "inferences",
    "Executions of an engine, by start time; by `inferences`.",
    (
        _int("inference", "row number, from 0"),
        _int("start_ns", "begin of its first host call or GPU work", "ns"),
        _int("end_ns", "end of its last host call or GPU work", "ns"),
        _int("process", "nsys globalPid"),
        _int("pid", "process id"),
        _int("thread", "nsys globalTid of the enqueuing thread", null=True),
        _int("device", "CUDA device ordinal", null=True),
        _int("context", "CUDA context id", null=True),
        _int("stream", "stream of most of its GPU work", null=True),
        _int("engine", "which engine file, from 0", null=True),
        _text("found_by", "range (ExecutionContext::…), graph-launch or period"),
        _text("launch_api", "call that enqueued it: ExecutionContext::enqueueV3, cudaGraphLaunch, …", null=True),
        _bool("graph", "replayed from a CUDA graph"),
        _bool("warmup", "set apart: slower than the later ones, before the first steady one"),
        _bool("complete", "has as many kernels as its like; a cut first or last one has fewer"),
        _int("kernels", "kernels"),
        _int("launches", "launch calls"),
        _int("enqueue_start_ns", "begin of the enqueue range or launch call", "ns", null=True),
        _int("enqueue_end_ns", "its end", "ns", null=True),
        _int("enqueue_ns", "host time to enqueue it", "ns", null=True),
        _int("gpu_start_ns", "begin of its first kernel, copy or memset", "ns", null=True),
        _int("gpu_end_ns", "end of its last", "ns", null=True),
        _int("gpu_busy_ns", "GPU time: union of its kernels, copies and memsets", "ns", null=True),
        _int("gpu_span_ns", "from the first to the last of them", "ns", null=True),
        _int("idle_ns", "span less busy", "ns", null=True),
        _int("shape", "inferences of the same shape launch the same kernels in the same order", null=True),
    ),
)

GAPS = Spec(
    "gaps",
    "Idle time of a device between two pieces of GPU work, each hole split where its cause changes; by `gaps`.",
    (
        _int("gap_id", "row number, from 0"),
        *_WHEN,
        _int("dur_ns", "how long", "ns"),
        _int("device", "CUDA device ordinal"),
        _int("before_kernel", "kernel_id of the last kernel before it", null=True),
        _int("after_kernel", "kernel_id of the first kernel after it", null=True),
        _int("inference", "inference it lies in", null=True),
        _text("cause", "launch, host, sync, copy, dispatch, graph, profiler, no-work, unknown"),
        _text("evidence", "the host row that proves it: the API call, range or profiler activity"),
        _int("evidence_start_ns", "when that row began", "ns", null=True),
        _int("evidence_end_ns", "when it ended", "ns", null=True),
        _int("pid", "process id of the thread that the evidence is about", null=True),
        _int("thread", "nsys globalTid of that thread", null=True),
        _text("before_layer", "layer of the kernel before", null=True),
        _text("after_layer", "layer of the kernel after", null=True),
    ),
)

RESOURCES = Spec(
    "resources",
    "What sets each inference's pace, one row an inference in the order of inferences; by `resources`.",
    (
        _int("inference", "row in inferences"),
        _text("critical", "host where the enqueue takes more than 0.8 of the GPU time (trtexec's criterion), else gpu", null=True),
        _float("enqueue_share", "enqueue time over GPU time", null=True),
        _float("busy_share", "GPU time over the span from the first to the last GPU work", null=True),
        _int("ns_per_launch", "enqueue time over launch calls", "ns", null=True),
    ),
)

NAMES = Spec(
    "names",
    "Every distinct kernel name, decoded; by `names`.",
    (
        _text("name", "kernel name"),
        _text("family", "myelin, xmma, cutlass, … : see docs/names.md"),
        _text("summary", "one line of what it is"),
        _text("ops", "operations in order, comma separated", null=True),
        _text("patterns", "recognised patterns in order, comma separated", null=True),
        _text("arch", "sm75, sm80, …", null=True),
        _text("input_type", "data type it reads", null=True),
        _text("accumulate_type", "data type it accumulates in", null=True),
        _text("output_type", "data type it writes", null=True),
        _text("tensor_cores", "yes, no or unknown"),
        _text("rest", "what was not understood; empty when all was"),
    ),
)

STEADY = Spec(
    "steady",
    "The part of the trace that findings are priced on, one row a device: its complete inferences after the warm-up; by `rules`.",
    (
        _int("device", "CUDA device ordinal", null=True),
        _int("start_ns", "begin of the first of them, host call or GPU work", "ns"),
        _int("end_ns", "end of the last", "ns"),
        _int("window_ns", "from the one to the other; what a finding's share is of", "ns"),
        _int("inferences", "how many"),
        _int("span_ns", "union of their spans on the GPU, from first to last GPU work of each", "ns"),
    ),
)

WHATIF = Spec(
    "whatif",
    "What a change would bring, by replaying the timeline; nanoseconds are medians per inference.",
    (
        _text("change", "cuda-graph, two-in-flight, pinned-copies, drop-layers, join-kernels, no-host-gap"),
        _int("before_ns", "an inference of this program without the profiler, from one end to the next", "ns", null=True),
        _int("after_ns", "the same with the change; none where it could not be computed", "ns", null=True),
        _int("saving_ns", "before less after", "ns", null=True),
        _int("low_saving_ns", "saving at the least", "ns", null=True),
        _int("high_saving_ns", "saving at the most", "ns", null=True),
        _text("assumptions", "what the figures take for granted, in words"),
        _text("reason", "why it could not be computed", null=True),
        _int("recorded_ns", "an inference as the trace has it, under the profiler", "ns", null=True),
        _float("replay_error", "how far the replay of the trace as it is was from the trace: replayed over recorded, less 1", null=True),
    ),
)

# --- totals, by `totals` ----------------------------------------------------------------------------------------------

COVERAGE = Spec(
    "coverage",
    "How many kernels, and how much of their time, each mapping method settled; over the whole trace.",
    (
        _text("method", "nvtx, graph-node, tactic, order, region or none"),
        _int("kernels", "kernels"),
        _int("time_ns", "their time", "ns"),
        _float("share", "of all kernel time"),
    ),
)

UNMAPPED = Spec(
    "unmapped",
    "Why kernels have no layer; over the whole trace.",
    (_text("reason", "why"), _int("kernels", "kernels"), _int("time_ns", "their time", "ns")),
)

KIND_TOTALS = Spec(
    "kind_totals",
    "Time by kind of layer.",
    (
        _text("kind", "our short class of a layer's type"),
        _int("layers", "layers of that kind that ran kernels"),
        _int("time_ns", "sum of their median times per inference", "ns"),
        _float("share", "of the engine's GPU time"),
    ),
)

KERNEL_TOTALS = Spec(
    "kernel_totals",
    "Every distinct kernel name, decoded, with its time over the whole trace.",
    (
        *NAMES.columns,
        _int("count", "executions"),
        _int("time_ns", "their total time", "ns"),
        _int("median_ns", "median time of one", "ns"),
        _float("share", "of all kernel time"),
    ),
)

# --- where kernel time went, over the measured inferences ------------------------------------------------------------------

KERNEL_TIME = Spec(
    "kernel_time",
    "Kernel time by layer, part and kernel name, over the measured inferences (without inferences: over the trace); by `kernel_time`.",
    (
        _int("layer_id", "row in layers; none: no layer is known", null=True),
        _int("engine", "which engine file, from 0", null=True),
        _text("part", "inside an opaque region: the finest name known", null=True),
        _text("name", "kernel name"),
        _int("kernels", "executions"),
        _int("time_ns", "their total time", "ns"),
        _int("inferences", "measured inferences of that engine; none where no inference was found", null=True),
        _float("share", "of all kernel time of that engine's measured inferences"),
    ),
)

PRECISION = Spec(
    "precision",
    "Kernel time by data type, work and tensor cores, one row a layer and combination, over the measured inferences; by `precision`.",
    (
        _int("layer_id", "row in layers; none: no layer is known", null=True),
        _int("engine", "which engine file, from 0", null=True),
        _text("region", "Myelin region: myl<R>, or the name of an opaque one; none outside", null=True),
        _text("work", "product (matrix product, convolution, attention), arithmetic (any other), convert (changes the type only), "
              "move (layout or copy), unknown"),
        _text("datatype", "type it computes in, or converts or moves; none: cannot tell", null=True),
        _text("told_by", "what tells the data type: kernel (its name) or engine (the engine file)", null=True),
        _text("to_type", "what a conversion writes; none: cannot tell, or no conversion", null=True),
        _text("tensor_cores", "yes, no or unknown"),
        _int("kernels", "executions; none without a trace", null=True),
        _int("time_ns", "their total time; from --exportProfile without a trace", "ns", null=True),
        _int("mean_ns", "the same per measured inference", "ns", null=True),
        _float("share", "of all kernel time of that engine's measured inferences", null=True),
    ),
)  # fmt: skip

REGION_PARTS = Spec(
    "region_parts",
    "What each Myelin region spends, by part, over the measured inferences; by `region_parts`.",
    (
        _int("engine", "which engine file, from 0", null=True),
        _text("region", "myl<R>, or the name of an opaque region"),
        _text("part", "node, tag or range where the trace names one, else what the kernel's name says it is"),
        _text("told_by", "trace (a range or tag), engine (a layer of the region), kernel (its decoded name) or onnx (a node of --onnx)"),
        _text("summary", "what its kernels are, the costliest first"),
        _int("kernels", "executions"),
        _int("time_ns", "their total time", "ns"),
        _int("mean_ns", "the same per measured inference", "ns", null=True),
        _float("share", "of the region's kernel time"),
    ),
)

TRACE_TABLES = (GPU_KERNELS, API_CALLS, RANGES, COPIES, MEMSETS, SYNCS, GRAPH_NODES, GRAPH_RUNS, OVERHEADS, OS_CALLS, DEVICES, CAPTURE)
RULE_TABLES = (
    KERNELS, NAMES, LAYERS, TENSORS, EDGES, INFERENCES, GAPS, API_CALLS, RANGES, COPIES, MEMSETS, SYNCS, GRAPH_NODES, GRAPH_RUNS,
    OVERHEADS, OS_CALLS, DEVICES, CAPTURE, WHATIF, STEADY,
    WORK, LIMITS, OPEN_ENGINES, CHAINS, CHAIN_LAYERS, ATTENTION, ATTENTION_LAYERS, REFORMATS, QUANTIZERS, PRECISION,
    LAYER_TIMES, KERNEL_RUNS, SIBLINGS, SIBLING_LAYERS, KERNEL_TIME, ENGINE_FITS, RESOURCES,
)  # fmt: skip
"""What a rule's SQL can read."""
