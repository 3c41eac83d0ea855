"""The declared tables of the trace: what nsys wrote, and what the trace says by itself."""

from __future__ import annotations

from nsysmap.core.columns import LAUNCHED, WHEN, WHERE, flag, integer, of_engine, row_in, text
from nsysmap.core.table import Spec

GPU_KERNELS = Spec(
    "gpu_kernels",
    "Executions of kernels on the GPU, by start time.",
    (
        integer("kernel_id", "number in the report, from 0"),
        *WHEN,
        *WHERE,
        *LAUNCHED,
        text("name", "full (demangled) kernel name"),
        integer("graph_id", "nsys graphId of the CUDA graph it was replayed in", null=True),
        integer("graph_node_id", "nsys graphNodeId of the replayed node", null=True),
        integer("grid_x", "blocks in x"),
        integer("grid_y", "blocks in y"),
        integer("grid_z", "blocks in z"),
        integer("block_x", "threads of a block in x"),
        integer("block_y", "threads of a block in y"),
        integer("block_z", "threads of a block in z"),
        integer("registers", "registers per thread"),
        integer("static_shared_bytes", "static shared memory per block", "bytes"),
        integer("dynamic_shared_bytes", "dynamic shared memory per block", "bytes"),
    ),
    key=("kernel_id",),
)


API_CALLS = Spec(
    "api_calls",
    "Calls of the CUDA runtime and driver, by start time.",
    (
        *WHEN,
        integer("process", "nsys globalPid"),
        integer("pid", "process id"),
        integer("thread", "nsys globalTid of the calling thread"),
        integer("correlation", "CUPTI correlation id, unique only within a process", null=True),
        text("api", "function without its version suffix, such as cudaLaunchKernel"),
        text(
            "kind",
            "launch, graph-launch, copy, memset, sync, event, stream-wait, alloc, free,"
            " host-register, capture, graph-build, module-load, other",
        ),
        integer("result", "return value; 0 is success"),
    ),
)


NVTX_RANGES = Spec(
    "nvtx_ranges",
    "NVTX ranges, by start time; one left open ends with the trace.",
    (
        *WHEN,
        integer("process", "nsys globalPid"),
        integer("pid", "process id"),
        integer("thread", "nsys globalTid of the thread that opened it"),
        text("domain", "NVTX domain name; empty for the default domain"),
        text("name", "the range's text"),
        text("payload", "JSON payload, if it has one", null=True),
        flag("push_pop", "a push/pop range; otherwise a start/end range"),
        flag("one_thread", "ended by the thread that opened it"),
    ),
)


MEMCPYS = Spec(
    "memcpys",
    "Memory copies on the GPU, by start time.",
    (
        *WHEN,
        *WHERE,
        *LAUNCHED,
        text("api", "function that requested it, without version suffix", null=True),
        text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, other"),
        text("source", "pageable, pinned, device, array, managed or unknown memory"),
        text("target", "pageable, pinned, device, array, managed or unknown memory"),
        integer("bytes", "size", "bytes"),
        flag(
            "asynchronous",
            "requested by an …Async call (which may block with pageable memory) or replayed in a"
            " graph",
        ),
        integer("graph_node_id", "nsys graphNodeId of the replayed node", null=True),
    ),
)


MEMSETS = Spec(
    "memsets",
    "Memory fills on the GPU, by start time.",
    (
        *WHEN,
        *WHERE,
        *LAUNCHED,
        text("api", "function that requested it, without version suffix", null=True),
        text("target", "pageable, pinned, device, array, managed or unknown memory"),
        integer("bytes", "size", "bytes"),
        integer("graph_node_id", "nsys graphNodeId of the replayed node", null=True),
    ),
)


SYNCS = Spec(
    "syncs",
    "Synchronisations as CUPTI saw them: the host, or a stream, waits for the GPU; by start time.",
    (
        *WHEN,
        *WHERE,
        integer("correlation", "CUPTI correlation id, unique only within a process", null=True),
        integer("launch", "row in api_calls of the call that requested it", null=True),
        integer("thread", "nsys globalTid of the waiting thread", null=True),
        text("kind", "event, stream-wait, stream, context, other"),
        integer(
            "event", "id of the CUDA event waited for, unique only within a process", null=True
        ),
    ),
)


EVENT_RECORDS = Spec(
    "event_records",
    "CUDA events recorded into a stream (cudaEventRecord): waiting for one means waiting for the"
    " stream's work up to there; in file order.",
    (
        integer("process", "nsys globalPid of the process that recorded it"),
        integer("stream", "CUDA stream id within its context"),
        integer("event", "CUDA event id, unique only within a process"),
        integer("launch", "row in api_calls of the call that recorded it", null=True),
    ),
)


CUDA_GRAPH_NODES = Spec(
    "cuda_graph_nodes",
    "Creations of CUDA graph nodes, clones included, by start time; may lie before the trace's"
    " time 0.",
    (
        *WHEN,
        integer("process", "nsys globalPid"),
        integer("thread", "nsys globalTid of the creating (capturing) thread"),
        integer("graph_node_id", "nsys graphNodeId"),
        integer(
            "original_graph_node_id", "graphNodeId of the node that it was cloned from", null=True
        ),
    ),
)


CUDA_GRAPH_TRACES = Spec(
    "cuda_graph_traces",
    "Whole executions of a CUDA graph under --cuda-graph-trace=graph: their kernels are not in the"
    " trace.",
    (
        *WHEN,
        *WHERE,
        *LAUNCHED,
        integer("graph_id", "nsys graphId", null=True),
        integer("graph_exec_id", "nsys graphExecId, the id of the instantiated graph", null=True),
    ),
)


OVERHEADS = Spec(
    "overheads",
    "Times during which the profiler itself stopped a thread.",
    (*WHEN, integer("thread", "nsys globalTid", null=True), text("name", "what the profiler did")),
)


OSRT_CALLS = Spec(
    "osrt_calls",
    "Calls of the OS runtime (with nsys -t osrt), by start time.",
    (
        *WHEN,
        integer("pid", "process id"),
        integer("thread", "nsys globalTid of the calling thread"),
        text("name", "function"),
    ),
)


DEVICES = Spec(
    "devices",
    "The GPUs of the profiled machine.",
    (
        integer("device", "CUDA device ordinal"),
        text("name", "marketing name"),
        text("chip", "chip name, such as GH100", null=True),
        integer("compute_major", "compute capability, major", null=True),
        integer("compute_minor", "compute capability, minor", null=True),
        integer("sm_count", "streaming multiprocessors", null=True),
        integer("clock_hz", "SM clock", "Hz", null=True),
        integer("memory_bytes", "device memory", "bytes", null=True),
        integer("bandwidth_bytes_per_s", "device memory bandwidth", "bytes/s", null=True),
        integer("l2_bytes", "L2 cache", "bytes", null=True),
    ),
    key=("device",),
)


TRTEXEC, TENSORRT_RTX, PYTHON, OTHER_HOST = "trtexec", "tensorrt_rtx", "python", "other"
HOSTS = (TRTEXEC, TENSORRT_RTX, PYTHON, OTHER_HOST)
"""The programs that can launch GPU work (`capture.host`): NVIDIA's two tools that run engines,
Python, and every other program.
"""


CAPTURE = Spec(
    "capture",
    "One row of facts about the trace itself.",
    (
        text("source", "the report's file name"),
        text("nsys_version", "version of nsys that wrote the report", null=True),
        text("schema_version", "version of nsys's export schema", null=True),
        text(
            "form",
            "what was read: nsys-rep (exported by nsys), nsys-rep read by nsysmap, SQLite, Parquet,"
            " Arrow or JSON lines",
        ),
        integer("duration_ns", "from the first to the last piece of GPU work or host call", "ns"),
        integer("kernels", "kernel rows"),
        integer("memcpys", "memory copy rows"),
        integer("memsets", "memory fill rows"),
        integer("graph_launches", "calls that launched a CUDA graph"),
        integer("cuda_graph_traces", "whole-graph rows"),
        integer("graph_kernels", "kernel rows with a graph node id"),
        integer("cuda_graph_nodes", "graph node creation rows"),
        text(
            "cuda_graph_trace",
            "none (no graph was launched), node (the kernels of graphs are traced), graph (they are"
            " hidden)",
        ),
        flag("has_tensorrt_ranges", "the NVTX domain TensorRT has ranges"),
        flag("has_layer_ranges", "ranges below ExecutionContext:: name layers"),
        flag("has_myelin_ranges", "the NVTX domain myelin-exec has ranges"),
        flag("has_pytorch", "kernels or NVTX ranges of PyTorch"),
        flag("has_api_calls", "CUDA API calls were traced"),
        flag("has_syncs", "synchronisations were traced"),
        flag("has_osrt", "OS runtime calls were traced"),
        flag(
            "nothing_recurs",
            "each kernel was launched once with its sizes (grid, block, bytes copied before), by"
            " programs that began in the trace and waited in it for their last kernel",
        ),
        flag("has_cpu_samples", "CPU samples were taken, with the functions on the stack"),
        integer("processes", "processes with GPU work"),
        integer("threads", "threads with CUDA calls"),
        integer("streams", "streams with GPU work"),
        integer("devices", "devices with GPU work"),
        integer("dropped_rows", "rows with impossible times, which were left out"),
        integer("unmatched_launches", "kernels whose launch call is not in the trace"),
        integer(
            "overhead_ns",
            "time for which the profiler stopped a thread that launched work, within the window of"
            " GPU work",
            "ns",
        ),
        text(
            "tensorrt_version",
            "TensorRT's version, if the trace or an engine file has it",
            null=True,
        ),
        text(
            "environment_tensorrt",
            "TENSORRT_VERSION in the program's environment: that of its container; else what its"
            " trtexec says it is of",
            null=True,
        ),
        text(
            "host",
            "what launched the GPU work, as the processes' names tell: trtexec, tensorrt_rtx,"
            " python or other",
            null=True,
        ),
    ),
)


MEMBERSHIP = Spec(
    "membership",
    "Kernel to inference, one row per kernel in the order of kernels.",
    (
        row_in("inference", "inferences", null=True),
        integer(
            "position",
            "position among the kernels of that inference, in launch order, from 0",
            null=True,
        ),
    ),
)


INFERENCES = Spec(
    "inferences",
    "Executions of an engine, by start time.",
    (
        integer("inference", "number in the report, from 0"),
        integer("start_ns", "start of its first host call or GPU work", "ns"),
        integer("end_ns", "end of its last host call or GPU work", "ns"),
        integer("process", "nsys globalPid"),
        integer("pid", "process id"),
        integer("thread", "nsys globalTid of the enqueuing thread", null=True),
        integer("device", "CUDA device ordinal", null=True),
        integer("context", "CUDA context id", null=True),
        integer("stream", "stream of most of its GPU work", null=True),
        of_engine(null=True),
        text(
            "engine_doubt",
            "why it is not, or may not be, of the engine whose layers it has; none if nothing"
            " speaks against it",
            null=True,
        ),
        text("found_by", "range (ExecutionContext::…), graph-launch or period"),
        text(
            "launch_api",
            "call that enqueued it: ExecutionContext::enqueueV3, cudaGraphLaunch, …",
            null=True,
        ),
        flag("cuda_graph", "replayed from a CUDA graph"),
        flag(
            "warmup",
            "excluded: slower than the later ones, before the first steady-state one; kernels"
            " were compiled or loaded in it; or a range of the program's own says so",
        ),
        text(
            "warmup_range",
            "the program's own range around it that is called a warm-up, where others follow",
            null=True,
        ),
        flag(
            "complete",
            "has all kernels of its kind: not cut off by the start or end of the capture, nor the"
            " last repetition of a loop that nothing marks if it alone runs other kernels",
        ),
        integer("kernels", "number of kernels"),
        integer("launches", "number of launch calls"),
        integer("enqueue_start_ns", "start of the enqueue range or launch call", "ns", null=True),
        integer("enqueue_end_ns", "its end", "ns", null=True),
        integer("enqueue_ns", "host time to enqueue it", "ns", null=True),
        integer(
            "compile_ns",
            "of that, in which its thread compiled kernels or loaded their code",
            "ns",
            null=True,
        ),
        text(
            "compile_evidence",
            "of one excluded for that, what most of it was: before CALL (the host's own work until"
            " it loaded code), library before CALL (where all kernels that follow are those of"
            " libraries), the call, or the range",
            null=True,
        ),
        text(
            "compile_evidence_kind",
            "which of these it is: compiler, library, load, first-call or range; tried-out or"
            " among-them if it is only among such inferences",
            null=True,
        ),
        integer("gpu_start_ns", "start of its first kernel, copy or memset", "ns", null=True),
        integer("gpu_end_ns", "end of its last", "ns", null=True),
        integer(
            "gpu_busy_ns", "GPU time: union of its kernels, copies and memsets", "ns", null=True
        ),
        integer("gpu_span_ns", "from the first to the last of them", "ns", null=True),
        integer("idle_ns", "gpu_span_ns minus gpu_busy_ns", "ns", null=True),
        integer(
            "kernel_sequence",
            "inferences with the same number launch the same kernels in the same order; of"
            " repetitions that nothing marks, with the same sizes where each has its own time",
            null=True,
        ),
    ),
    key=("inference",),
)


STEADY_STATE = Spec(
    "steady_state",
    "The inferences over which findings' costs are computed, one row per device: complete ones"
    " after the warm-up.",
    (
        integer("device", "CUDA device ordinal", null=True),
        integer("start_ns", "start of the first of them, host call or GPU work", "ns"),
        integer("end_ns", "end of the last", "ns"),
        integer(
            "window_ns",
            "from start_ns to end_ns, without inferences between them that do not count; a"
            " finding's share is a share of this",
            "ns",
        ),
        integer("inferences", "number of them"),
        integer(
            "span_ns", "union of their spans on the GPU, from first to last GPU work of each", "ns"
        ),
    ),
)
