"""The declared tables that sum up an analysis: inferences by group, busy and idle time, repeated
layers, what was found.
"""

from __future__ import annotations

from nsysmap.core.columns import flag, integer, of_engine, real, row_in, text
from nsysmap.core.table import Spec

_COUNTS = (
    integer("inferences", "all inferences, warm-up included"),
    integer("warmup", "of these warm-up"),
    integer(
        "cut",
        "of these cut off by the start or end of the capture, or last and alone of other kernels",
    ),
    integer("steady", "of these steady-state"),
)
_HOW = (
    text("found_by", "range, graph-launch or period; several joined by a plus sign", null=True),
    text("launch_api", "call that enqueued them; several joined by a plus sign", null=True),
)
_SPREADS = (
    integer(
        "gpu_time_median_ns",
        "union of its kernels, copies and memsets, the median",
        "ns",
        null=True,
    ),
    integer("gpu_time_p95_ns", "the same, the 95th percentile", "ns", null=True),
    integer(
        "gpu_span_median_ns", "from the first to the last of them, the median", "ns", null=True
    ),
    integer("gpu_span_p95_ns", "the same, the 95th percentile", "ns", null=True),
    integer("enqueue_median_ns", "host time to enqueue it, the median", "ns", null=True),
    integer("enqueue_p95_ns", "the same, the 95th percentile", "ns", null=True),
)

INFERENCE_LOOPS = Spec(
    "inference_loops",
    "Threads that run inferences on a device, one row per process, device and thread; times are"
    " over the steady-state inferences.",
    (
        integer("loop_id", "row number, from 0, by the first inference's start"),
        integer("pid", "process id"),
        integer("thread", "nsys globalTid of the enqueuing thread", null=True),
        integer("device", "CUDA device ordinal", null=True),
        *_COUNTS,
        integer("groups", "kinds of the steady-state ones: rows in inference_groups"),
        integer(
            "inferences_a_pass",
            "inferences per pass: kinds that always take turns in the same order; 1 without such an"
            " order",
        ),
        integer(
            "window_ns",
            "from the start of the first steady-state inference to the end of the last",
            "ns",
            null=True,
        ),
        integer(
            "mean_ns",
            "time per pass, profiler included: from one end to the next, the mean",
            "ns",
            null=True,
        ),
        integer("median_ns", "the same, the median", "ns", null=True),
        integer("p95_ns", "the same, the 95th percentile", "ns", null=True),
        real("per_second", "passes per second: 10⁹ over mean_ns", "1/s", null=True),
        integer(
            "held_up",
            "steady-state inferences that took 1.25 times the median of those with the same kernels"
            " or longer because the host took longer to enqueue them, without what nsys did and"
            " what the GPU worked longer; none if no 8 are alike",
            null=True,
        ),
        integer("held_up_ns", "by which these took longer than the median", "ns", null=True),
        real(
            "held_up_share",
            "held_up_ns divided by the time of all that were compared; from 0.05 on, of three or"
            " more, the host was disturbed",
            null=True,
        ),
        real("held_up_times_median", "times the median that the slowest of them took", null=True),
        row_in("first_held_up", "inferences", "the first of them", null=True),
        row_in("last_held_up", "inferences", "the last of them", null=True),
        text(
            "quick_call",
            "the function whose calls by the thread are the shortest, of those that it made 200"
            " times or more",
            null=True,
        ),
        real(
            "quick_call_slowdown",
            "median time of these calls, which do the same every time, divided by that of their"
            " fastest twentieth; from 1.2 on the host was slowed down throughout, as by other work"
            " on its processor, unless other threads of the program launch too",
            null=True,
        ),
    ),
    key=("loop_id",),
)


INFERENCE_GROUPS = Spec(
    "inference_groups",
    "Inferences by kind, one row per loop, engine, kernel sequence and phase; times are over the"
    " steady-state ones.",
    (
        integer("group_id", "row number, from 0, by the first inference's start"),
        row_in("loop_id", "inference_loops"),
        of_engine(null=True),
        integer("kernel_sequence", "see inferences", null=True),
        integer(
            "phase",
            "from 0, where at least 8 consecutive inferences with the same kernels copy from or to"
            " other host memory than before or after, or take another time, 1.25 times as long or"
            " longer; none if there is one phase",
            null=True,
        ),
        text(
            "copies",
            "host memory of most of their copies, requested by their thread after it enqueued the"
            " inference before: pageable, pinned, …, none, or HtoD pageable, DtoH pinned; none if"
            " unknown",
            null=True,
        ),
        *_HOW,
        *_COUNTS,
        integer("kernels", "kernels of one", null=True),
        integer(
            "mean_ns",
            "mean time per inference: from the end of the previous one on its thread to its"
            " own end",
            "ns",
            null=True,
        ),
        integer("median_ns", "the same, the median", "ns", null=True),
        integer("p95_ns", "the same, the 95th percentile", "ns", null=True),
        *_SPREADS,
    ),
    key=("group_id",),
)


ENGINE_INFERENCES = Spec(
    "engine_inferences",
    "The inferences of each engine, after a row for those of all engines; times are over the"
    " steady-state ones.",
    (
        flag("all_engines", "the row for the inferences of all engines"),
        of_engine(null=True),
        *_HOW,
        *_COUNTS,
        *_SPREADS,
    ),
    key=("all_engines", "engine"),
)


INFERENCE_TIMES = Spec(
    "inference_times",
    "What each steady-state inference took, by start time.",
    (
        row_in("inference", "inferences"),
        row_in("group_id", "inference_groups"),
        integer(
            "time_ns",
            "from the end of the previous one on its thread to its own end; none for the first of a"
            " thread",
            "ns",
            null=True,
        ),
        integer("idle_ns", "idle time of its device in that time", "ns", null=True),
        real("times_median", "that time divided by its group's median", null=True),
        row_in(
            "usual",
            "inferences",
            "the one with the median time of its group, which it is compared with",
            null=True,
        ),
        text("extra_cause", "the cause of idle time that exceeds that one's the most", null=True),
        integer("extra_ns", "by how much it exceeds it", "ns", null=True),
    ),
    key=("inference",),
)


DEVICE_TIMES = Spec(
    "device_times",
    "How busy each GPU with work in the trace was, within a window.",
    (
        integer("device", "CUDA device ordinal"),
        text(
            "window",
            "inferences (from the start of the first steady-state one to the end of the last) or"
            " trace (first to last work)",
        ),
        integer("start_ns", "when the window begins", "ns"),
        integer("end_ns", "when it ends", "ns"),
        integer("window_ns", "how long it is", "ns"),
        integer(
            "inferences",
            "steady-state inferences in it; 0 also for a GPU that runs a part of another's, whose"
            " window it has",
        ),
        integer(
            "busy_ns",
            "time in which a kernel, copy, memset or whole graph ran; none if the trace hides work",
            "ns",
            null=True,
        ),
        integer("copies_ns", "of that, time in which copies ran and nothing else", "ns", null=True),
        integer("idle_ns", "the rest of the window", "ns", null=True),
        real("busy_share", "busy_ns divided by window_ns", null=True),
    ),
    key=("device",),
)


IDLE_TOTALS = Spec(
    "idle_totals",
    "Idle time between pieces of GPU work by device and cause, within the windows of device_times,"
    " the most first.",
    (
        integer("device", "CUDA device ordinal"),
        text("cause", "see gaps"),
        integer("gaps", "how many"),
        integer("time_ns", "their time within the window", "ns"),
        real("share_of_window", "of the device's window"),
        integer(
            "ns_per_inference",
            "their time over the window's steady-state inferences",
            "ns",
            null=True,
        ),
    ),
    key=("device", "cause"),
)


HIDDEN_REPLAYS = Spec(
    "hidden_replays",
    "What is known about CUDA graph launches with hidden kernels (whole-graph tracing), one row per"
    " thread; the warm-up is left out.",
    (
        integer("pid", "process id"),
        integer("thread", "nsys globalTid of the launching thread", null=True),
        integer("launches", "launch calls"),
        integer("runs", "whole-graph rows in the trace"),
        integer(
            "gpu_time_median_ns",
            "time of one on the GPU, from those rows, the median",
            "ns",
            null=True,
        ),
        integer("gpu_time_p95_ns", "the same, the 95th percentile", "ns", null=True),
        integer("launch_median_ns", "host time of the launch call, the median", "ns", null=True),
        integer("launch_p95_ns", "the same, the 95th percentile", "ns", null=True),
        integer(
            "period_median_ns",
            "from the start of one launch call to the next, the median",
            "ns",
            null=True,
        ),
        integer("period_p95_ns", "the same, the 95th percentile", "ns", null=True),
        integer(
            "round_trip_median_ns",
            "from the start of the launch call to the return of the next blocking call, the median",
            "ns",
            null=True,
        ),
        integer(
            "round_trip_p95_ns",
            "the same, the 95th percentile: a replay takes no longer",
            "ns",
            null=True,
        ),
        integer(
            "between_median_ns",
            "between two: GPU idle time from those rows, otherwise from that return to the next"
            " launch call",
            "ns",
            null=True,
        ),
        integer("between_p95_ns", "the same, the 95th percentile", "ns", null=True),
    ),
)


LAYER_KINDS = Spec(
    "layer_kinds",
    "Layers of one kind in one engine: their times added up, the most first.",
    (
        of_engine(null=True),
        text("kind", "see layers"),
        integer("layers", "how many with time"),
        integer("time_ns", "their times per inference of their engine (see layers) added up", "ns"),
        real("share_of_kernel_time", "share of the engine's kernel time"),
    ),
)


REPEATED_LAYERS = Spec(
    "repeated_layers",
    "Layers of one kind whose titles differ only in numbers, such as those of repeated blocks:"
    " their times added up, the most first.",
    (
        integer("repeat_id", "row number, from 0"),
        of_engine(null=True),
        text(
            "name",
            "TensorRT's name, with * for what differs, or {2,7} where others have the same; of a"
            " single layer its own",
        ),
        text(
            "title",
            "what they are called: their title, with * for the numbers that differ, or {2,7} where"
            " others have the same",
        ),
        text("kind", "see layers"),
        integer("layers", "how many with time"),
        row_in("first_layer", "layers", "the first of them"),
        integer("time_ns", "their times per inference of their engine (see layers) added up", "ns"),
        integer("kernels", "their median kernels added up"),
        real("share_of_kernel_time", "share of the engine's kernel time"),
        integer(
            "total_ns", "time of their kernels in the steady-state part (see other_kernels)", "ns"
        ),
        real(
            "share_of_all_kernel_time",
            "that, of the time of all kernels in that part, of any engine or none",
        ),
        flag("opaque", "Myelin regions whose inside the engine file does not show"),
    ),
    key=("repeat_id",),
)


OTHER_KERNELS = Spec(
    "other_kernels",
    "Kernels without a layer in the steady-state part, by family of names, the most time first. "
    " That part is, on each device, from the first to the last kernel of a steady-state inference;"
    " without one the whole trace.",
    (
        text("family", "see names"),
        integer("names", "distinct kernel names"),
        integer("kernels", "executions"),
        integer("time_ns", "their total time", "ns"),
        real(
            "share_of_all_kernel_time",
            "of the time of all kernels in that part; these shares and those of repeated_layers add"
            " up to 1",
        ),
    ),
    key=("family",),
)


KERNEL_FAMILIES = Spec(
    "kernel_families",
    "Kernels of one family of names, over the whole trace, the most time first.",
    (
        text("family", "see names"),
        integer("names", "distinct kernel names"),
        integer("kernels", "executions"),
        integer("time_ns", "their total time", "ns"),
        real("share_of_kernel_time", "of all kernel time"),
    ),
    key=("family",),
)


RULE_OUTCOMES = Spec(
    "rule_outcomes",
    "What each rule answered.",
    (
        text("rule", "its name"),
        text("rule_group", "group it belongs to"),
        text("severity", "info, warning or error"),
        text(
            "outcome",
            "found, clean (it could tell, and found nothing) or skipped (it could not tell)",
        ),
        text("reason", "why it could not tell", null=True),
        text(
            "lacks",
            "the table without rows, or the column without a value, that it needs",
            null=True,
        ),
        text("because", "why that is so, or else why it could not tell", null=True),
        flag("about_engines", "it could not tell for lack of the layers of engines"),
        integer(
            "findings", "how many it found, those listed under findings of other rules included"
        ),
        integer("left_out", "found beyond those that are kept: see findings"),
        integer(
            "cost_ns",
            "of its own findings together, each place counted once; none if no cost is known",
            "ns",
            null=True,
        ),
        real("share_of_window", "that cost divided by the windows of their devices", null=True),
        text("summary", "what the rule finds, in a sentence", null=True),
    ),
    key=("rule",),
)


FINDINGS = Spec(
    "findings",
    "What the rules found, the most costly first, then those that are listed under another rule's"
    " finding.",
    (
        integer("finding_id", "row number, from 0"),
        text("rule", "which rule", row_of="rule_outcomes"),
        text("rule_group", "group of the rule"),
        text("severity", "info, warning or error"),
        text("message", "what it found, in a sentence"),
        integer("start_ns", "where it begins", "ns"),
        integer("end_ns", "where it ends", "ns"),
        integer(
            "cost_ns", "its cost over the steady-state inferences; none if unknown", "ns", null=True
        ),
        real("share_of_window", "that cost divided by the window of its device", null=True),
        integer(
            "inside",
            "finding_id of the finding that it is listed under: the same problem at the same place,"
            " whose cost counts",
            null=True,
        ),
        row_in("layer_id", "layers", "the layer that it is about, if it is about one", null=True),
        text("layer", "that layer's name", null=True),
        text("layer_title", "what that layer is called", null=True),
        text(
            "about",
            "everything that it is about: ids of layers, or names from its rule; none if it is"
            " about its device",
            null=True,
        ),
        text("evidence", "the other columns of the rule's SQL, as JSON"),
        text("advice", "what to do"),
        text("what_if", "the change of what-if that works out its saving", null=True),
        text("command", "the what-if command that predicts its saving", null=True),
    ),
    key=("finding_id",),
)


NOTES = Spec(
    "notes",
    "What to know before trusting the figures, errors first.",
    (
        text("level", "error, warning or info"),
        text("text", "in a sentence or two"),
        text("brief", "what it says first, without reasons and remedies", null=True),
        text("without_command", "the same without the command that captures again", null=True),
        text("remedy", "what to do about it, in a few words, where no command does", null=True),
        text("about", "selection or nothing-recorded, if it is about one of these", null=True),
    ),
)
