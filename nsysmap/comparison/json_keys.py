"""The keys of the JSON of a comparison and of an inference: which the object of each value has, and
what they hold.

A key that is removed, renamed or means something else is a new version of the schema, written in
CHANGELOG.md; a new key is none.
"""

from __future__ import annotations

from nsysmap.answer.model import EightBitPart, EightBits
from nsysmap.comparison.compare import SideTime
from nsysmap.comparison.conditions import Condition
from nsysmap.comparison.finding_changes import FindingChange
from nsysmap.comparison.inference import OneInference, WaitBefore
from nsysmap.comparison.precision import PrecisionReason
from nsysmap.comparison.predictions import Prediction
from nsysmap.comparison.waterfall import Contribution
from nsysmap.core.json_record import Declared, keys

COMPARISON: Declared = {
    SideTime: keys(
        "source engines runs inferences held_up held_up_ns time_ns low_ns high_ns recorded_ns "
        "per_second effective drift_ns profiled gpu_ns enqueue_ns with_outliers_ns "
        "whole_graphs"
    ),
    Contribution: keys("name ns before_ns after_ns kind cause"),
    FindingChange: keys(
        "change rule severity place before after before_ns after_ns message told title"
    ),
    Condition: keys("what before after told other_work"),
    Prediction: keys(
        "change predicted_ns low_ns high_ns measured_ns measured_low_ns measured_high_ns "
        "inside told"
    ),
    PrecisionReason: keys(
        "reason types ns before_ns after_ns before_layers after_layers names told"
    ),
    EightBitPart: keys("part why layers time_ns datatypes titles"),
    EightBits: keys("engine type time_ns parts older_products older_ns older_arch reached"),
    OneInference: keys(
        "source one inference like rank first warmup time_ns usual usual_ns before_ns "
        "usual_before_ns phases"
    ),
    WaitBefore: keys("ns cause evidence ended_by evidence_kind evidence_name"),
}
"""The objects in the JSON of `nsysmap compare` and `nsysmap inference`, version 1 of each."""
