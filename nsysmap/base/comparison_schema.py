"""The declared tables of a comparison of two captures, engines or builds."""

from __future__ import annotations

from nsysmap.base.columns import flag, integer, real, text
from nsysmap.base.table import Spec

JOINED_LAYERS = Spec(
    "joined_layers",
    "Which layers of BEFORE became which of AFTER, one row a group of layers that computes the same; by `joined_layers`.",
    (
        integer("group", "row number, from 0, in the order of AFTER"),
        text("before", "names of the layers of BEFORE, semicolons between; none where the group is new", null=True),
        text("after", "names of the layers of AFTER; none where the group is gone", null=True),
        text("before_ids", "their layer ids in the analysis of BEFORE, dots between; none where kernels stand for layers", null=True),
        text("after_ids", "the same of AFTER", null=True),
        text("relation", "one-to-one, split, merged, regrouped, moved-into-region, moved-out-of-region, new or gone"),
        text("joined_by", "how that is known: onnx, name, tensors, structure or position; none for what is new or gone", null=True),
        text("kind", "kind of its first layer (see layers)"),
        integer("before_layers", "how many layers of BEFORE"),
        integer("after_layers", "how many layers of AFTER"),
        integer("before_ns", "kernel time per inference, without what the profiler adds; from a profile where there is no trace",
                "ns", null=True),
        integer("after_ns", "the same of AFTER", "ns", null=True),
        integer("difference_ns", "after less before; what is new or gone counts whole", "ns", null=True),
        integer("low_ns", "lower end of the 95 % interval of the difference", "ns", null=True),
        integer("high_ns", "upper end of that interval", "ns", null=True),
        flag("significant", "beyond the noise of the inferences, all layers tested together (Holm)"),
        integer("shown_ns", "what the group adds to the time per inference: time in which nothing that began earlier ran beside it",
                "ns", null=True),
        text("before_precision", "data types that its layers compute in", null=True),
        text("after_precision", "the same of AFTER", null=True),
        text("before_kernels", "its kernels' names, semicolons between (without a trace: tactics)", null=True),
        text("after_kernels", "the same of AFTER", null=True),
        text("change", "same, tactic, precision, fusion, reformat, new, gone, or no-op (new or gone, runs nothing)"),
    ),
    key=("group",),
)  # fmt: skip
"""Groups of layers on both sides."""

REGION_PARTS = Spec(
    "region_parts",
    "What the parts of groups of layers with a region that its engine file does not open became, joined in order by what they do.",
    (
        integer("group", "row of joined_layers"),
        text("before", "what the parts do, by the names of their kernels (see docs/parts.md); none where they are new", null=True),
        text("after", "the same of AFTER; none where they are gone", null=True),
        integer("places", "how often that is so in the region"),
        integer("before_ns", "their time per inference, all places together; those of a group add up to the group's", "ns"),
        integer("after_ns", "the same of AFTER", "ns"),
        integer("difference_ns", "after less before", "ns"),
    ),
    key=("group", "before", "after"),
)

REGION_KINDS = Spec(
    "region_kinds",
    "What the kernels do of groups of layers with a region that its engine file does not open, before and after; by `region_kinds`.",
    (
        integer("group", "row of joined_layers"),
        text("kind", "what the kernels do, by their names (see docs/parts.md)"),
        real("before_kernels", "how many of them an inference has"),
        real("after_kernels", "the same of AFTER"),
        integer("before_ns", "their time per inference; those of a group add up to the group's", "ns"),
        integer("after_ns", "the same of AFTER", "ns"),
        integer("difference_ns", "after less before", "ns"),
    ),
    key=("group", "kind"),
)
"""Inside regions, by what kernels do."""

INFERENCE_KERNELS = Spec(
    "inference_kernels",
    "The kernels of one inference in order of launch, each beside the median one at its place; times are as recorded.",
    (
        integer("position", "its place among the inference's kernels, from 0"),
        integer("kernel_id", "row in kernels"),
        text("layer", "the layer that it ran for", null=True),
        text("kernel", "its name"),
        integer("time_ns", "how long it ran", "ns"),
        integer("usual_ns", "the median of the kernels at that place", "ns"),
        integer("gap_ns", "idle time of the GPU that it ended", "ns"),
        integer("usual_gap_ns", "the median of that at its place", "ns"),
        text("cause", "cause of the longest part of that idle time (see gaps)", null=True),
        text("evidence", "the host row that proves it", null=True),
        integer("extra_ns", "by how much kernel and gap together are longer than usual", "ns"),
    ),
    key=("position",),
)
"""One inference's kernels beside the usual ones."""
