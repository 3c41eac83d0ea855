"""The declared tables that follow from trace and engine together: mapping, time, idle time,
what-if.
"""

from __future__ import annotations

from nsysmap.core.changes import change_list
from nsysmap.core.columns import WHEN, flag, integer, of_engine, real, row_in, text
from nsysmap.core.headroom_reasons import REASONS
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.table import Spec
from nsysmap.core.trace_schema import GPU_KERNELS, MEMBERSHIP

KERNEL_RUNS = Spec(
    "kernel_runs",
    "Attention, norms and softmaxes inside opaque regions, recognised only by the names and order"
    " of kernels.",
    (
        integer("run_id", "row number, from 0"),
        text("kind", "attention, norm or softmax"),
        flag("fused", "one kernel does all of it"),
        row_in("layer_id", "layers", "the region"),
        text("part", "finest known name of its first kernel", null=True),
        integer("kernel_sequence", "the kernel sequence (see inferences) that has it", null=True),
        integer("first_position", "position of its first kernel in such an inference"),
        integer("last_position", "position of its last kernel"),
        integer("kernels", "how many kernels it became"),
        text("names", "operations or families of those kernels, in order, separated by semicolons"),
        integer("device", "CUDA device ordinal; none if several ran it", null=True),
        integer(
            "start_ns", "start of the first of its kernels in these inferences", "ns", null=True
        ),
        integer("end_ns", "end of the last", "ns", null=True),
        integer(
            "time_ns", "their time over the steady-state inferences of that kernel sequence", "ns"
        ),
        integer(
            "kept_ns",
            "assumed time in a single kernel: for attention its products and its longest other"
            " kernel, otherwise its two longest kernels",
            "ns",
        ),
        integer("inferences", "steady-state inferences of that kernel sequence"),
    ),
    key=("run_id",),
)


ROOFLINE_FROM_COUNTERS = frozenset(
    {"dram_percent", "tensor_percent", "issue_percent", "sm_percent", "dram_bytes"}
)
"""Its columns that only hardware counters fill."""

ROOFLINE = Spec(
    "roofline",
    "How close each layer is to the device's limits, one row per layer in the order of layers.",
    (
        row_in("layer_id", "layers"),
        integer(
            "time_ns",
            "time of its kernels per inference of its engine (see layers)",
            "ns",
            null=True,
        ),
        integer("bytes", "the minimum that it must read and write", "bytes", null=True),
        integer("flops", "the minimum number of operations that it must do", null=True),
        integer(
            "bytes_bound_ns",
            "bytes divided by the device's memory bandwidth; data in the L2 cache is faster",
            "ns",
            null=True,
        ),
        integer(
            "flops_bound_ns",
            "operations divided by the peak rate for its data type",
            "ns",
            null=True,
        ),
        integer("bound_ns", "the longer of the two", "ns", null=True),
        real("roofline_fraction", "bound_ns divided by time_ns: 1 is at the roofline", null=True),
        real("peak_flops_per_s", "the peak rate used", null=True),
        integer("blocks", "thread blocks of its longest kernel", null=True),
        real(
            "waves",
            "those blocks divided by the number that the device can hold at once",
            null=True,
        ),
        text("verdict", "memory-bound, compute-bound, latency-bound or unknown"),
        text("reason", "the basis of the verdict, or why there is none"),
        text(
            "verdict_from",
            "counters (hardware counters sampled in this trace) or model (bytes and operations of"
            " the engine file)",
        ),
        real(
            "dram_percent",
            "device memory bandwidth used, of the peak; from counters",
            "%",
            null=True,
        ),
        real("tensor_percent", "tensor cores active, of all cycles; from counters", "%", null=True),
        real("issue_percent", "instruction issue slots used; from counters", "%", null=True),
        real("sm_percent", "SMs that had work; from counters", "%", null=True),
        integer(
            "dram_bytes",
            "moved to and from device memory per inference; from counters",
            "bytes",
            null=True,
        ),
        text(
            "disagreement", "if counters and the engine file disagree, what that means", null=True
        ),
    ),
    key=("layer_id",),
)


HEADROOM = Spec(
    "headroom",
    "What each layer takes beyond the least time that the GPU needs for its bytes and products, the"
    " most first; one row per layer with time.",
    (
        integer("rank", "place in that order, from 1"),
        row_in("layer_id", "layers"),
        of_engine(null=True),
        integer("time_ns", "time of its kernels per inference of its engine (see layers)", "ns"),
        integer(
            "least_ns",
            "the least time for its bytes and products; 0 for a format conversion, which its"
            " neighbours may make unnecessary; of a layer that is not fused, for the bytes that one"
            " kernel of all would still move",
            "ns",
            null=True,
        ),
        integer("headroom_ns", "time_ns minus least_ns: the time that could go", "ns", null=True),
        real("share_of_headroom", "share of the headroom of all layers", null=True),
        text(
            "least_from",
            "counters (hardware counters of this trace, or fewer bytes and operations of the engine"
            " file), model (bytes and operations of the engine file) or weights (only their bytes"
            " are known)",
            null=True,
        ),
        text("limit", "what is longest: device-memory, l2-cache or arithmetic", null=True),
        integer(
            "memory_bytes",
            "bytes to or from device memory: counted, otherwise those that the L2 cache cannot"
            " hold",
            "bytes",
            null=True,
        ),
        integer("memory_ns", "memory_bytes at the bandwidth of device memory", "ns", null=True),
        integer(
            "cache_ns",
            "all its bytes at 64 bytes per SM and clock, the most that an L2 cache can deliver",
            "ns",
            null=True,
        ),
        integer(
            "compute_ns",
            "operations at the peak rate for its data type, of products that of tensor cores",
            "ns",
            null=True,
        ),
        real("reached", "the longest of these three divided by time_ns", null=True),
        text(
            "shape",
            "of a product rows x columns x summed extent, of a convolution output pixels x output"
            " channels x input channels and kernel, of fused attention heads x queries x keys x"
            " head size",
            null=True,
        ),
        integer(
            "reachable_ns",
            "what a GPU of this architecture was measured to take at most for a product of such a"
            " shape, with good kernels (see docs/headroom.md)",
            "ns",
            null=True,
        ),
        text("reachable_shape", "the measured shape that this follows from", null=True),
        text(
            "reason",
            "why it takes longer: "
            + "; ".join(f"{one.name} ({one.meaning})" for one in REASONS.values()),
        ),
        integer("kernels", "number of its kernels per inference", null=True),
        integer(
            "start_ns",
            "median time of the trace's shortest kernel, if that is less than 3 us",
            "ns",
            null=True,
        ),
        integer("blocks", "thread blocks of its longest kernel", null=True),
        integer("sms", "SMs of the GPU", null=True),
        real("waves", "those blocks divided by the number that the GPU holds at once", null=True),
        real(
            "occupancy",
            "share of an SM's warps that its longest kernel leaves room for",
            null=True,
        ),
        text("tile", "tile of its longest kernel, by its name", null=True),
        real(
            "tile_reaches",
            "share of the peak of tensor cores that such a tile can reach at most",
            null=True,
        ),
        text(
            "kernel_arch",
            "architecture that its longest kernel was made for, by its name",
            null=True,
        ),
        text("tensor_cores", "whether its products use tensor cores: yes, no or unknown"),
    ),
    key=("layer_id",),
)


ENGINE_HEADROOM = Spec(
    "engine_headroom",
    "The same for all layers of each engine, one after another.",
    (
        of_engine(null=True),
        integer("layers", "layers with time"),
        integer("time_ns", "their time per inference", "ns"),
        integer("known_layers", "layers whose least time is known"),
        integer("known_ns", "their time", "ns"),
        integer("least_ns", "the least time for those", "ns", null=True),
        integer("headroom_ns", "known_ns minus least_ns", "ns", null=True),
        integer("counted_layers", "layers whose least time rests on hardware counters"),
        integer("memory_ns", "bytes of device memory at its bandwidth", "ns", null=True),
        integer("compute_ns", "operations at the peak rates", "ns", null=True),
        integer("compared_ns", "time of the layers whose shape was measured", "ns", null=True),
        integer(
            "reachable_ns",
            "what those were measured to take at most (see headroom), each no more than it takes"
            " here",
            "ns",
            null=True,
        ),
        integer("weight_bytes", "known weights of the engine", "bytes", null=True),
    ),
    key=("engine",),
)


EIGHT_BITS = Spec(
    "eight_bits",
    "What INT8, FP8 or FP4 is used for in engines that have it: their layers, each with its part;"
    " no rows for other engines.",
    (
        row_in("layer_id", "layers"),
        of_engine(null=True),
        text("eight_bit_type", "INT8, FP8 or FP4: the type of the engine's products"),
        text(
            "part",
            "product (computes in it), stayed (a product in a wider type), convert (changes types"
            " only: quantizers, casts), epilogue (element-wise work on what such a product wrote as"
            " a float, in a kernel of its own), rest",
        ),
        text("datatype", "data type it computes in", null=True),
        text(
            "why",
            "of a product that stayed: no-quantizer (none at its inputs), one-input (only one of"
            " them is quantised), channels (not a multiple of 16), dequantized (quantizers are"
            " there, and the builder multiplies after them in the wider type), no-tensor-cores (the"
            " GPU has none for it)",
            null=True,
        ),
        text(
            "kernel_arch",
            "of a product: the architecture that its kernel was made for, if that has no tensor"
            " cores for the type",
            null=True,
        ),
        integer("time_ns", "its time per inference (see layers)", "ns", null=True),
    ),
    key=("layer_id",),
)


PRECISION_CHANGES = Spec(
    "precision_changes",
    "What each layer would take in a narrower data type: at best, and as measured pairs of engines"
    " suggest.",
    (
        row_in("layer_id", "layers"),
        of_engine(null=True),
        text("from_type", "data type it computes in"),
        text("to_type", "the other one"),
        integer("time_ns", "time of its kernels per inference (see layers)", "ns"),
        integer(
            "best_ns",
            "at best: what it comes closest to, bytes or products, shrinks as the type does; of a"
            " layer that is launch-bound nothing",
            "ns",
        ),
        integer(
            "low_ns",
            "the lower end of what measured pairs suggest; none where no pair was measured",
            "ns",
            null=True,
        ),
        integer("likely_ns", "the middle of that", "ns", null=True),
        integer("high_ns", "the upper end", "ns", null=True),
        text(
            "gains_by",
            "what shrinks: bytes, products, nothing, or fusion (attention that FP32 keeps apart)",
        ),
    ),
    key=("layer_id", "to_type"),
)


LAYER_TIMES = Spec(
    "layer_times",
    "Time of each layer over the steady-state inferences, one row per layer that ran.",
    (
        row_in("layer_id", "layers"),
        of_engine(null=True),
        text(
            "told_by", "trace, or profile (one inference of --exportProfile, if there is no trace)"
        ),
        integer("device", "CUDA device ordinal; none if several ran it", null=True),
        integer("start_ns", "begin of its first kernel", "ns", null=True),
        integer("end_ns", "end of its last kernel", "ns", null=True),
        integer("total_ns", "time of its kernels", "ns"),
        integer("inferences", "steady-state inferences of its engine"),
        integer("kernels", "kernels in total", null=True),
        text("kernel", "name of its longest kernel", null=True),
        real("share_of_kernel_time", "share of the time of all layers of its engine"),
    ),
    key=("layer_id",),
)


MAPPING = Spec(
    "mapping",
    "Kernel to layer, one row per kernel in the order of kernels.",
    (
        row_in("layer_id", "layers", null=True),
        of_engine(null=True),
        integer("layer_index", "position in that engine file", null=True),
        text("layer", "the layer's name", null=True),
        text("layer_title", "what the layer is called: its title", null=True),
        text("part", "inside a Myelin region: the finest known name", null=True),
        text("method", "nvtx, graph-node, tactic, order, region or none"),
        real("confidence", "0 to 1; 1 is exact"),
        text("reason", "why there is no layer, or what limits the confidence", null=True),
        text(
            "part_by",
            "where the part comes from: tag, payload or node (a range of the trace), pattern (the"
            " kernel's name), onnx",
            null=True,
        ),
    ),
)


KERNELS = Spec(
    "kernels",
    "Every kernel with its launch, its inference and its layer.",
    (
        *GPU_KERNELS.columns,
        *MEMBERSHIP.columns,
        *MAPPING.columns,
        integer("duration_ns", "end_ns - start_ns", "ns", null=True),
    ),
    key=("kernel_id",),
)


GRAPH_ANNOTATIONS = Spec(
    "graph_annotations",
    "What PyTorch annotated the nodes of CUDA graphs with (--graph-annotations), one row per node.",
    (
        integer("graph_node_id", "as in kernels"),
        text("name", "its name; without one, all of the annotation as JSON"),
        text("rest", "what else it is annotated with, as JSON", null=True),
        integer("kernels", "its kernels in the trace"),
        integer("time_ns", "their time", "ns"),
    ),
    key=("graph_node_id",),
)

ENGINE_FITS = Spec(
    "engine_fits",
    "Whether each given engine file belongs to an engine that ran in the trace.",
    (
        of_engine(),
        text("source", "its file name"),
        text("verdict", "ran, did-not-run or cannot-tell"),
        integer(
            "one_of",
            "how many given files there are of which one ran, where nothing tells them apart: the"
            " layers shown are those of the first, and each has the same index in the others; none"
            " are where their layers work on other sizes",
            null=True,
        ),
        integer(
            "compared",
            "layer ranges that ran kernels, or without ranges the engine's layers; none if nothing"
            " could be compared",
            null=True,
        ),
        integer(
            "known",
            "how many of the layer ranges this engine has; none if the order of kernels decided",
            null=True,
        ),
        integer("inferences", "inferences that are mapped to it", null=True),
        integer(
            "in_doubt",
            "of them: may be of another engine or optimization profile (see"
            " inferences.engine_doubt)",
            null=True,
        ),
        integer(
            "other_kernels",
            "of them: run other kernels in the same layers than those that the file describes, or"
            " than most",
            null=True,
        ),
        integer(
            "refused", "inferences that have the names of its layers, and are not its", null=True
        ),
        integer("kernels", "kernels with a layer of it", null=True),
        integer(
            "tactics",
            "layers with a tactic whose ranges ran a kernel that can be compared with it",
            null=True,
        ),
        integer("tactics_ran", "of them: ran the kernel that the tactic names", null=True),
        integer(
            "lacking",
            "layers that must run kernels, ran none in its inferences and are named by no range",
            null=True,
        ),
        text("against", "why inferences are not its, or may not be", null=True),
        text("trace_layer", "a layer named in the trace that this engine does not have", null=True),
        text("engine_layer", "a layer of this engine, for comparison", null=True),
        text("how", "the evidence, in words"),
    ),
    key=("engine",),
)


GAPS = Spec(
    "gaps",
    "Idle time of a device between two pieces of GPU work, split where its cause changes.",
    (
        integer("gap_id", "row number, from 0"),
        *WHEN,
        integer("dur_ns", "how long", "ns"),
        integer("device", "CUDA device ordinal"),
        row_in("before_kernel", "kernels", "the last kernel before it", null=True),
        row_in("after_kernel", "kernels", "the first kernel after it", null=True),
        row_in("inference", "inferences", "the inference that it is in", null=True),
        text("cause", "; ".join(f"{one.name} ({one.words})" for one in IDLE_CAUSES.values())),
        text("evidence", "the evidence on the host: the API call, range or profiler activity"),
        text(
            "evidence_kind",
            "what that is: call, range, os-call, profiler, inferred (the profiler's work, of which"
            " the trace has no row), first-use, gpu (no row of the host), or none",
            null=True,
        ),
        text("evidence_name", "its name alone", null=True),
        integer("evidence_start_ns", "when that row began", "ns", null=True),
        integer("evidence_end_ns", "when it ended", "ns", null=True),
        integer("pid", "process id of the thread that the evidence is about", null=True),
        integer("thread", "nsys globalTid of that thread", null=True),
        text("before_layer", "layer of the kernel before", null=True),
        text("after_layer", "layer of the kernel after", null=True),
        flag(
            "left_out",
            "in a part of the steady state that its window leaves out: a pause between runs, or an"
            " inference that does not count",
        ),
    ),
    key=("gap_id",),
)


HOST_SAMPLES = Spec(
    "host_samples",
    "What CPU samples show of host threads while a GPU waited for work of their own (gaps of the"
    " cause host) in the steady-state parts; no rows if none were taken then.",
    (
        text(
            "owner",
            "whose code it was: mpi (MPI, whatever it calls), python, julia, cuda (its driver and"
            " runtime), profiler, library (another one), program, generated (compiled at run time),"
            " system, or unknown",
        ),
        text("library", "name of its file", null=True),
        text("function", "the function, where its name is known; of MPI the call", null=True),
        integer("samples", "samples in it, of at most a thousand"),
        real("share", "of these samples"),
        integer("time_ns", "how long that is, by the usual time between two samples", "ns"),
    ),
)


NAMES = Spec(
    "names",
    "Every distinct kernel name, decoded.",
    (
        text("name", "kernel name"),
        text("family", "myelin, xmma, cutlass, … : see docs/names.md"),
        text("summary", "what it is, in one line"),
        text("ops", "operations in order, comma separated", null=True),
        text("patterns", "recognised patterns in order, comma separated", null=True),
        text("arch", "sm75, sm80, …", null=True),
        text("input_type", "data type it reads", null=True),
        text("accumulate_type", "data type it accumulates in", null=True),
        text("output_type", "data type it writes", null=True),
        text("tensor_cores", "yes, no or unknown"),
        text("rest", "the part of the name that was not understood; empty if there is none"),
    ),
    key=("name",),
)


WHATIF = Spec(
    "whatif",
    "What each change would save, predicted by replaying the timeline; times are per inference (or"
    " pass) of a run without the profiler.",
    (
        text(
            "change",
            change_list(),
        ),
        text(
            "answer",
            "answered, does-not-apply or cannot-tell (then `reason` says why, and there is no"
            " saving)",
        ),
        integer(
            "inferences",
            "number of inferences that the times cover: 1, or those of a pass if several engines"
            " run in turn",
            null=True,
        ),
        integer(
            "before_ns",
            "time from the end of one to the end of the next, without the change",
            "ns",
            null=True,
        ),
        integer("low_before_ns", "the same with a faster host and driver", "ns", null=True),
        integer(
            "high_before_ns",
            "the same with a slower one, but no longer than recorded",
            "ns",
            null=True,
        ),
        integer("after_ns", "the same with the change", "ns", null=True),
        integer("low_after_ns", "after, the lower end of its range", "ns", null=True),
        integer("high_after_ns", "after, the upper end of its range", "ns", null=True),
        integer("saving_ns", "before_ns minus after_ns", "ns", null=True),
        integer("low_saving_ns", "saving, the lower end of its range", "ns", null=True),
        integer("high_saving_ns", "saving, the upper end of its range", "ns", null=True),
        integer(
            "may_save_low_ns",
            "what it may save at least, where that is too uncertain to be an answer",
            "ns",
            null=True,
        ),
        integer("may_save_high_ns", "the same, at most", "ns", null=True),
        text("assumptions", "what the figures assume, in words"),
        text("reason", "why it does not apply, or why it cannot be determined", null=True),
        integer(
            "recorded_ns",
            "the time in the trace, profiler included, without outliers and long pauses",
            "ns",
            null=True,
        ),
        real(
            "replay_error",
            "error of the replay without a change: replayed time divided by recorded time, minus 1",
            null=True,
        ),
        flag(
            "kernels_beside",
            "with the change, kernels run beside others that in the trace they run before or after:"
            " how much they slow each other is not known, and the range covers it",
        ),
    ),
    key=("change",),
)


REPLAYED_INFERENCES = Spec(
    "replayed_inferences",
    "The inferences behind what-if's times, one row each, replayed without the profiler; no rows if"
    " there is no replay.",
    (
        row_in("inference", "inferences"),
        integer("thread", "nsys globalTid of the enqueuing thread"),
        real("weight", "number of inferences of the trace that it represents"),
        integer("begin_ns", "end of the one before it on its thread, in the replay", "ns"),
        integer("end_ns", "its own end", "ns"),
        integer("quick_ns", "the time between these two with a faster host and driver", "ns"),
        integer("slow_ns", "the same with a slower one", "ns"),
        integer("recorded_ns", "the same as recorded, profiler included", "ns"),
    ),
    key=("inference",),
)


WHATIF_INFERENCES = Spec(
    "whatif_inferences",
    "What each answered change makes of each replayed inference; no rows for changes by which"
    " several inferences or layers run at once, or whose saving is limited by what the GPU has left"
    " to do.",
    (
        text("change", "as in whatif"),
        row_in("inference", "inferences"),
        integer(
            "before_ns",
            "time from the end of the one before it to its own, replayed without the profiler and"
            " without the change",
            "ns",
        ),
        integer("after_ns", "the same with the change", "ns"),
    ),
    key=("change", "inference"),
)


REPLAYED_WORK = Spec(
    "replayed_work",
    "The GPU work of that replay, in order of its start there.",
    (
        text("kind", "kernel, HtoD, DtoH, copy, memset or graph"),
        row_in("kernel_id", "kernels", null=True),
        integer("start_ns", "when it began in the replay", "ns"),
        integer("end_ns", "when it ended there", "ns"),
        integer("recorded_start_ns", "when it began as recorded", "ns"),
        integer("recorded_end_ns", "when it ended as recorded", "ns"),
    ),
)


REPLAYED_TIMES = Spec(
    "replayed_times",
    "Where the time goes without the profiler: the GPU work of that replay, and idle time by cause;"
    " adds up to what-if's before_ns.",
    (
        integer("device", "CUDA device ordinal of the replayed inferences", null=True),
        text(
            "part",
            "work (kernels, copies and memsets; overlaps counted once), or a cause of idle time as"
            " in gaps",
        ),
        integer("time_ns", "per inference (or pass) without the profiler", "ns"),
        real("share", "share of that time"),
    ),
    key=("part",),
)


COVERAGE = Spec(
    "coverage",
    "Kernels, and kernel time, mapped by each method; over the whole trace.",
    (
        text("method", "nvtx, graph-node, tactic, order, region or none"),
        integer("kernels", "kernels"),
        integer("time_ns", "their time", "ns"),
        real("share_of_kernel_time", "share of all kernel time"),
    ),
    key=("method",),
)


UNMAPPED = Spec(
    "unmapped",
    "Why kernels have no layer; over the whole trace.",
    (text("reason", "why"), integer("kernels", "kernels"), integer("time_ns", "their time", "ns")),
    key=("reason",),
)


KERNEL_TOTALS = Spec(
    "kernel_totals",
    "Every distinct kernel name, decoded, with its time over the whole trace.",
    (
        *NAMES.columns,
        integer("count", "executions"),
        integer("time_ns", "their total time", "ns"),
        integer("median_ns", "median time of one execution", "ns"),
        real("share_of_kernel_time", "share of all kernel time"),
    ),
    key=("name",),
)


KERNEL_TIME = Spec(
    "kernel_time",
    "Kernel time by layer, part and kernel name, over steady-state inferences (without inferences:"
    " over the trace).",
    (
        row_in("layer_id", "layers", "none if no layer is known", null=True),
        of_engine(null=True),
        text("part", "inside an opaque region: the finest known name", null=True),
        text("name", "kernel name", row_of="kernel_totals"),
        integer("kernels", "executions"),
        integer("time_ns", "their total time", "ns"),
        integer(
            "inferences",
            "steady-state inferences of that engine; none if no inference was found",
            null=True,
        ),
        real(
            "share_of_kernel_time",
            "share of the kernel time of that engine's steady-state inferences",
        ),
    ),
)


PRECISION = Spec(
    "precision",
    "Kernel time by data type, work and tensor cores, one row per layer and combination, over"
    " steady-state inferences.",
    (
        row_in("layer_id", "layers", "none if no layer is known", null=True),
        of_engine(null=True),
        text(
            "region", "Myelin region: myl<R>, or the name of an opaque one; none outside", null=True
        ),
        text(
            "work",
            "product (matrix product, convolution, attention), arithmetic (any other), convert"
            " (changes the type only), move (layout or copy), unknown",
        ),
        text("datatype", "type it computes in, or converts or moves; none if unknown", null=True),
        text(
            "told_by",
            "where the data type comes from: kernel (its name) or engine (the engine file)",
            null=True,
        ),
        text(
            "to_type", "what a conversion writes; none if unknown, or not a conversion", null=True
        ),
        text("tensor_cores", "yes, no or unknown"),
        integer("kernels", "executions; none without a trace", null=True),
        integer(
            "time_ns", "their total time; from --exportProfile without a trace", "ns", null=True
        ),
        integer("mean_ns", "the same per inference", "ns", null=True),
        integer(
            "half_saved_ns",
            "how much of time_ns half precision saves at most, by the rates of the GPU's units;"
            " none if it is not known to compute in FP32 or TF32",
            "ns",
            null=True,
        ),
        real(
            "share_of_kernel_time",
            "share of the kernel time of that engine's steady-state inferences",
            null=True,
        ),
    ),
)


REGION_PARTS = Spec(
    "region_parts",
    "Time of each Myelin region, by part, over the steady-state inferences.",
    (
        of_engine(null=True),
        text("region", "myl<R>, or the name of an opaque region"),
        text(
            "part",
            "node, tag or range if the trace names one, otherwise what the kernel's name says",
        ),
        text(
            "told_by",
            "trace (a range or tag), engine (a layer of the region), kernel (its decoded name) or"
            " onnx (a node of --onnx)",
        ),
        text("summary", "what its kernels are, the costliest first"),
        integer("kernels", "executions"),
        integer("time_ns", "their total time", "ns"),
        integer("mean_ns", "the same per inference", "ns", null=True),
        real("share_of_region_time", "share of the region's kernel time"),
    ),
)


TRTEXEC_TIMES = Spec(
    "trtexec_times",
    "What trtexec measured without the profiler (--times), and the same in this trace, one row per"
    " measure.",
    (
        text(
            "measure",
            "enqueue, h2d, gpu_compute, d2h, latency (h2d, gpu_compute and d2h), interval (between"
            " two queries: 1 / throughput)",
        ),
        text("source", "file that trtexec wrote"),
        row_in("group_id", "inference_groups", null=True),
        integer("queries", "number of queries that trtexec measured", null=True),
        integer("trtexec_ns", "median of its queries", "ns", null=True),
        integer("trtexec_mean_ns", "their mean", "ns", null=True),
        integer("trtexec_min_ns", "the shortest", "ns", null=True),
        integer("trtexec_max_ns", "the longest", "ns", null=True),
        integer("trtexec_p99_ns", "the 99th percentile", "ns", null=True),
        integer(
            "traced_ns",
            "median of the steady-state inferences of that group in this trace",
            "ns",
            null=True,
        ),
        integer(
            "profiling_ns",
            "how much longer it is in the trace: the cost of profiling, if the two runs are alike",
            "ns",
            null=True,
        ),
        text("told", "an explanation of the difference", null=True),
    ),
    key=("measure",),
)
