"""The declared tables of a comparison of two captures, engines or builds."""

from __future__ import annotations

from nsysmap.core.columns import flag, integer, real, text
from nsysmap.core.table import Spec

JOINED_LAYERS = Spec(
    "joined_layers",
    "Which layers of BEFORE became which of AFTER, one row per group of layers that compute the"
    " same.",
    (
        integer("group", "row number, from 0, in the order of AFTER"),
        text(
            "before",
            "names of the layers of BEFORE, separated by semicolons; none if the group is new",
            null=True,
        ),
        text("after", "names of the layers of AFTER; none if the group is gone", null=True),
        text(
            "before_titles",
            "what the layers of BEFORE are called, separated by semicolons; none if the group is"
            " new",
            null=True,
        ),
        text("after_titles", "the same for AFTER; none if the group is gone", null=True),
        text(
            "before_ids",
            "their layer ids in the analysis of BEFORE, separated by dots; none if the layers are"
            " kernel names",
            null=True,
        ),
        text("after_ids", "the same for AFTER", null=True),
        text(
            "relation",
            "one-to-one, split, merged, regrouped, moved-into-region, moved-out-of-region, new or"
            " gone",
        ),
        text(
            "joined_by",
            "evidence: onnx, name, tensors, structure or position; none for new or gone layers",
            null=True,
        ),
        text("kind", "kind of the group's first layer (see layers)"),
        integer("before_layers", "number of layers in BEFORE"),
        integer("after_layers", "number of layers in AFTER"),
        integer(
            "before_ns",
            "kernel time per inference as recorded; from a trtexec profile if there is no trace",
            "ns",
            null=True,
        ),
        integer("after_ns", "the same for AFTER", "ns", null=True),
        integer(
            "difference_ns",
            "after minus before; a side without the layers counts as 0",
            "ns",
            null=True,
        ),
        integer("low_ns", "lower end of the 95 % interval of the difference", "ns", null=True),
        integer("high_ns", "upper end of that interval", "ns", null=True),
        flag("significant", "beyond the noise, with all layers tested together (Holm's method)"),
        integer(
            "shown_ns", "contribution to the difference: the same as difference_ns", "ns", null=True
        ),
        text("before_precision", "data types in which its layers compute", null=True),
        text("after_precision", "the same for AFTER", null=True),
        text(
            "before_kernels",
            "names of its kernels (without a trace: its tactics), separated by semicolons",
            null=True,
        ),
        text("after_kernels", "the same for AFTER", null=True),
        text(
            "change",
            "same, tactic, precision, fusion, reformat, new, gone, or no-op (new or gone, runs"
            " nothing)",
        ),
    ),
    key=("group",),
)
"""Groups of layers on both sides."""

REGION_PARTS = Spec(
    "region_parts",
    "For groups with an opaque region: which of its parts became which, joined in order by what"
    " their kernels do.",
    (
        integer("group", "row of joined_layers"),
        text(
            "before",
            "what the parts do, decoded from their kernels' names (see docs/parts.md); none if they"
            " are new",
            null=True,
        ),
        text("after", "the same for AFTER; none if they are gone", null=True),
        integer("places", "how many times this occurs in the region"),
        integer(
            "before_ns",
            "their time per inference over all these places; the times of a group add up to the"
            " group's time",
            "ns",
        ),
        integer("after_ns", "the same for AFTER", "ns"),
        integer("difference_ns", "after minus before", "ns"),
    ),
    key=("group", "before", "after"),
)

REGION_KINDS = Spec(
    "region_kinds",
    "For groups with an opaque region: its kernels by what they do, before and after, one row per"
    " kind.",
    (
        integer("group", "row of joined_layers"),
        text("kind", "what the kernels do, decoded from their names (see docs/parts.md)"),
        real("before_kernels", "number of them per inference"),
        real("after_kernels", "the same for AFTER"),
        integer(
            "before_ns",
            "their time per inference; the times of a group add up to the group's time",
            "ns",
        ),
        integer("after_ns", "the same for AFTER", "ns"),
        integer("difference_ns", "after minus before", "ns"),
    ),
    key=("group", "kind"),
)
"""The work inside opaque regions, by kind."""

INFERENCE_KERNELS = Spec(
    "inference_kernels",
    "The kernels of one inference in launch order, each beside the median at its position; times as"
    " recorded, profiler included.",
    (
        integer("position", "position in the inference's launch order, from 0"),
        integer("kernel_id", "row in kernels"),
        text("layer", "layer it ran for", null=True),
        text("layer_title", "what that layer is called", null=True),
        text("kernel", "kernel name"),
        integer("time_ns", "its duration", "ns"),
        integer("usual_ns", "median duration of the kernels at that position", "ns"),
        integer("gap_ns", "idle time of the GPU right before it", "ns"),
        integer("usual_gap_ns", "median idle time before the kernels at that position", "ns"),
        text("cause", "cause of the longest part of that idle time (see gaps)", null=True),
        text("evidence", "the host row that proves it", null=True),
        text("evidence_kind", "what kind of row that is (see gaps)", null=True),
        text("evidence_name", "its name alone", null=True),
        integer(
            "late_ns",
            "from the start of that idle time to its launch call; negative if launched before",
            "ns",
            null=True,
        ),
        integer("call_ns", "duration of its launch call", "ns", null=True),
        integer(
            "extra_ns",
            "how much longer the kernel and the gap before it are than the medians",
            "ns",
        ),
    ),
    key=("position",),
)
"""One inference's kernels next to the medians."""
