"""The declared tables of a fleet's dataset: one Parquet file per report and table."""

from __future__ import annotations

from nsysmap.core.columns import flag, integer, real, text
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.table import Column, Spec

OF_REPORT: tuple[Column, ...] = (
    text("report", "the report's path relative to the dataset's folder, or its URL"),
    text(
        "report_key",
        "digest of everything the row depends on: the report, the engine files, the rules and this"
        " version of nsysmap",
    ),
    text("report_group", "the label `group`, otherwise the folder of the report"),
    integer("rank", "the label `rank`, if there is one", null=True),
    text("labels", "all labels, as a JSON object of texts"),
)

FLEET_REPORTS = Spec(
    "reports",
    "The reports that were analysed, one row each.",
    (
        *OF_REPORT,
        integer("captured_at_ns", "when the capture began, since 1970 (UTC)", "ns", null=True),
        text("nsys_version", "the nsys that captured it", null=True),
        text("tensorrt_version", "if the trace or the engine file has it", null=True),
        text("gpu", "names of the GPUs that worked, separated by commas", null=True),
        integer("kernels", "kernels in it"),
        real("mapped_share", "share of the kernel time with a known layer", null=True),
        integer("inferences", "steady-state inferences"),
        integer(
            "gpu_time_ns",
            "median GPU time of these (the union of kernels, copies and memsets)",
            "ns",
            null=True,
        ),
        integer("enqueue_ns", "median host time to enqueue them", "ns", null=True),
        real("busy_share", "share of the GPUs' windows in which they were busy", null=True),
        integer("findings", "what the rules found"),
        integer("skipped_rules", "rules that could not tell"),
        integer("errors", "notes about something essential that is missing"),
        text("first_error", "the first of them", null=True),
    ),
    key=("report",),
)

FLEET_INFERENCES = Spec(
    "inferences",
    "The inferences of all reports, one row each.",
    (
        *OF_REPORT,
        integer("inference", "its number in the report"),
        text("engine", "the engine file that ran; none if no engine fits", null=True),
        integer(
            "start_ns", "start of its first host call or GPU work, since the session began", "ns"
        ),
        integer("device", "CUDA device ordinal", null=True),
        integer("gpu_time_ns", "union of its kernels, copies and memsets", "ns", null=True),
        integer("gpu_span_ns", "from the first to the last of them", "ns", null=True),
        integer("idle_ns", "gpu_span_ns minus gpu_time_ns", "ns", null=True),
        integer("enqueue_ns", "host time to enqueue it", "ns", null=True),
        integer("kernels", "kernels"),
        flag("steady", "complete, and after the warm-up"),
    ),
    key=("report", "inference"),
)

FLEET_LAYERS = Spec(
    "layers",
    "The layers that ran, with their times, one row per report and layer.",
    (
        *OF_REPORT,
        text("engine", "engine file; none for a layer known from ranges only", null=True),
        integer("layer_index", "position in it", null=True),
        text("layer", "TensorRT's name"),
        text("layer_title", "what it is called: its module and operators in the model"),
        text("kind", "short class of its type"),
        integer("time_ns", "mean GPU time per inference of its engine", "ns", null=True),
        real("share_of_kernel_time", "of its engine's", null=True),
        integer("kernels", "median number of its kernels per inference", null=True),
    ),
)

FLEET_FINDINGS = Spec(
    "findings",
    "What the rules found, one row per report and finding.",
    (
        *OF_REPORT,
        text("rule", "which rule"),
        text("severity", "info, warning or error"),
        text("layer", "the layer that it is about, if it is about one", null=True),
        text("layer_title", "what that layer is called", null=True),
        integer("cost_ns", "its cost over the report's steady-state inferences", "ns", null=True),
        real("share_of_window", "that cost divided by the window of its device", null=True),
        text("message", "what it found, in a sentence"),
    ),
)

FLEET_IDLE = Spec(
    "idle",
    "Idle time by device and cause, one row each.",
    (
        *OF_REPORT,
        integer("device", "CUDA device ordinal"),
        text(
            "cause",
            f"one of {', '.join(IDLE_CAUSES)}",
        ),
        integer("gaps", "how many"),
        integer("time_ns", "their time within the window", "ns"),
        real("share_of_window", "share of the device's window"),
        integer(
            "ns_per_inference",
            "their time over the window's steady-state inferences",
            "ns",
            null=True,
        ),
    ),
)

FLEET_TABLES = (FLEET_INFERENCES, FLEET_LAYERS, FLEET_FINDINGS, FLEET_IDLE, FLEET_REPORTS)
"""The table of reports comes last: a report with a row there is finished."""
