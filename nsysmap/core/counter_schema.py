"""The declared tables of hardware counters: what GPU metrics sampling and Nsight Compute say about
kernels and layers.
"""

from __future__ import annotations

from nsysmap.core.columns import flag, integer, real, row_in, text
from nsysmap.core.table import Spec

GPU_SAMPLING = Spec(
    "gpu_sampling",
    "How hardware counters were sampled (nsys --gpu-metrics-devices) and what they say about the"
    " run, one row per GPU.",
    (
        integer("device", "CUDA device ordinal"),
        real("frequency_hz", "sampling frequency", "Hz"),
        integer("metrics", "metrics that were sampled"),
        integer("samples", "samples in the trace"),
        integer("used", "samples used for the estimates"),
        integer(
            "outliers",
            "samples excluded because they are far from what the same kernels usually give",
        ),
        integer(
            "left_out",
            "samples excluded because they overlap GPU work outside the repeated kernel sequences",
        ),
        integer("holes", "intervals without samples from nsys"),
        real(
            "lost_share", "share of those intervals in the time from the first sample to the last"
        ),
        integer("mistrusted", "samples that nsys itself marks as doubtful"),
        flag("thinned", "only part of the samples was used, because there are more than needed"),
        integer("inferences", "steady-state inferences that were sampled"),
        real(
            "clock_offset_ns",
            "added to the samples' times to get the kernels' clock, estimated from the trace",
            "ns",
            null=True,
        ),
        real("clock_offset_error_ns", "its standard error", "ns", null=True),
        real("clock_drift", "change of that offset per nanosecond", null=True),
        real(
            "first_clock_hz",
            "SM clock while kernels ran, in the first tenth of the inferences",
            "Hz",
            null=True,
        ),
        real("last_clock_hz", "the same in the last tenth", "Hz", null=True),
        real("lowest_clock_hz", "the same in the lowest tenth", "Hz", null=True),
        real(
            "idle_share",
            "share of the samples within the window of GPU work that fall where the trace shows no"
            " work",
            null=True,
        ),
        real(
            "others_share",
            "share of those in which SMs were active: another program's work",
            null=True,
        ),
        real("others_percent", "mean SM activity in them", "%", null=True),
        real(
            "sm_percent",
            "SMs active in samples that kernels fill, if nothing could be estimated by kernel",
            "%",
            null=True,
        ),
        real("tensor_percent", "tensor cores active in them", "%", null=True),
        real("memory_percent", "device memory bandwidth used in them, of the peak", "%", null=True),
        text(
            "unknown_metrics",
            "names of metrics whose meaning nsysmap does not know; they are not used",
            null=True,
        ),
        text("reason", "why nothing could be estimated by kernel", null=True),
        text("why", "the same without how to obtain it", null=True),
        text("enough", "how much of the capture that would tell it is enough", null=True),
        text("capture", "the command of that capture", null=True),
    ),
    key=("device",),
)

_KERNEL = (
    integer("device", "CUDA device ordinal"),
    integer("kernel_sequence", "as in inferences"),
    integer("position", "position of the kernel in its inference"),
    row_in("layer_id", "layers", null=True),
    text("kernel", "full (demangled) kernel name"),
    real("duration_ns", "mean duration", "ns"),
)
_VALUE = (
    text("metric", "sm_active, sm_issue, tensor_active, compute_warps, dram_read, dram_write, …"),
    text("unit", "percent (of the peak)"),
    real("value", "mean over the time during which it ran", null=True),
    real(
        "error",
        "its standard error as the kernel's own value, whatever runs before and after, in the same"
        " unit",
        null=True,
    ),
    real(
        "context_error",
        "the part of the error due to what runs before and after: cache contents, SMs that drain"
        " and fill",
        null=True,
    ),
    real(
        "low",
        "lower end of the 90 % interval from the samples alone; none if the error without"
        " context_error exceeds 10 points, if it ran fewer than 5 times, or if other work ran"
        " during more than 5 % of its time: too little is then known to say how far the value can"
        " be off",
        null=True,
    ),
    real("high", "upper end of that interval", null=True),
    flag(
        "known",
        "the error without context_error is small enough for the value to be used: 5 points",
    ),
)

KERNEL_COUNTERS = Spec(
    "kernel_counters",
    "Hardware counters of each kernel of a repeated sequence, estimated from samples, one row per"
    " kernel and metric.",
    (
        *_KERNEL,
        integer("executions", "executions that were sampled"),
        real(
            "concurrent_share",
            "share of its time during which other GPU work ran: samples cover all work",
        ),
        *_VALUE,
        text("reason", "why the value is unknown, and how to obtain it", null=True),
        text("why", "the same without how to obtain it", null=True),
        text("enough", "how much of the capture that would tell it is enough", null=True),
        text("capture", "the command of that capture", null=True),
    ),
)

KERNEL_ENDS = Spec(
    "kernel_ends",
    "Idle SM time while each kernel of a repeated sequence begins and ends, from sampled activity,"
    " one row per kernel.",
    (
        *_KERNEL,
        real(
            "begin_idle_ns",
            "SM time lost until activity reaches its usual level, converted into time with all SMs"
            " idle",
            "ns",
            null=True,
        ),
        real(
            "end_idle_ns", "the same from the last time activity was at that level", "ns", null=True
        ),
    ),
)

LAYER_COUNTERS = Spec(
    "layer_counters",
    "Hardware counters of each layer, over all its kernels, estimated from samples, one row per"
    " layer and metric.",
    (
        row_in("layer_id", "layers"),
        integer("device", "CUDA device ordinal"),
        real("duration_ns", "mean time of its kernels per inference", "ns"),
        integer("executions", "executions that were sampled, of the kernel with the fewest"),
        *_VALUE,
    ),
)

DEVICE_COUNTERS = Spec(
    "device_counters",
    "What samples say of clocks and of links (PCIe, NVLink) during inferences, one row per GPU and"
    " metric: they are not single kernels'.",
    (
        integer("device", "CUDA device ordinal"),
        text(
            "metric",
            "gpc_clock, sys_clock, pcie_receive, pcie_send, nvlink_receive, nvlink_send, …",
        ),
        text("unit", "percent (of the peak) or hertz"),
        integer("inferences", "steady-state inferences that were sampled"),
        real("value", "mean over them"),
        real("low", "mean during an inference: one in twenty is lower"),
        real("high", "mean during an inference: one in twenty is higher"),
        real("idle_value", "mean while no work of the trace ran", null=True),
    ),
    key=("device", "metric"),
)

COPY_COUNTERS = Spec(
    "copy_counters",
    "Share of the PCIe link used by copies between host and device, from samples, one row per"
    " direction, memory and size.",
    (
        integer("device", "CUDA device ordinal"),
        text("kind", "HtoD or DtoH"),
        text("source", "pageable, pinned, device, … as in memcpys"),
        text("target", "pageable, pinned, device, … as in memcpys"),
        integer("bytes", "size of each", "bytes"),
        integer("copies", "how many of them the trace has"),
        real("duration_ns", "mean duration of one", "ns"),
        real("alone_ns", "mean part of it during which no kernel ran on the device", "ns"),
        real("bytes_per_s", "bytes divided by duration_ns", "bytes/s"),
        integer("executions", "copies that were sampled"),
        real(
            "pcie_percent",
            "mean traffic in that direction while it ran, of the link's peak",
            "%",
            null=True,
        ),
        real("error", "its standard error", "%", null=True),
        flag("known", "the error is small enough for the value to be used: 5 points"),
        text("reason", "why the value is unknown, and how to obtain it", null=True),
    ),
)

NCU_KERNELS = Spec(
    "ncu_kernels",
    "What Nsight Compute counted (--ncu), matched to the trace's kernels by order, one row per"
    " profiled kernel.",
    (
        integer("profile_id", "ncu's own number (column ID)"),
        text("kernel", "name that ncu prints"),
        integer(
            "kernel_sequence", "as in inferences; none if no kernel of the trace matches", null=True
        ),
        integer("position", "position of the kernel in its inference", null=True),
        integer(
            "places",
            "positions that fit the profile equally well, of which this is the first; 1 if it is"
            " the only one",
            null=True,
        ),
        row_in("layer_id", "layers", null=True),
        text("matched_by", "what agrees: name, grid, block", null=True),
        text(
            "caches",
            "emptied before each kernel, or left alone; none if ncu's output does not say",
            null=True,
        ),
        text(
            "clocks", "locked to base, or left alone; none if ncu's output does not say", null=True
        ),
        real(
            "ncu_duration_ns",
            "how long it took under ncu, which locks clocks and empties caches by default",
            "ns",
            null=True,
        ),
        real("duration_ns", "median duration in the trace", "ns", null=True),
        real(
            "tensor_active",
            "tensor pipe active, of the elapsed cycles, as ncu prints it",
            "%",
            null=True,
        ),
        real("dram_bytes", "bytes read from and written to device memory", "bytes", null=True),
        real(
            "dram_percent",
            "those bytes over the trace's duration, of the device's bandwidth",
            "%",
            null=True,
        ),
        real(
            "dram_read_percent",
            "bytes read in the same way; if the caches were emptied, minus what the kernel before"
            " wrote (lts__t_sectors_op_write.sum) or, if ncu did not count that, minus its input"
            " tensors that earlier layers wrote, as far as the level-2 cache still holds them",
            "%",
            null=True,
        ),
        text("reason", "why there is no such kernel in the trace", null=True),
    ),
)
