"""The keys of the JSON report: which the object of each value has, and what they hold.

A key that is removed, renamed or means something else is a new version of the schema, written in
CHANGELOG.md; a new key is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from nsysmap.answer.model import (
    Action,
    Answer,
    Decoding,
    Distinction,
    Disturbance,
    Doubt,
    EightBitPart,
    EightBits,
    EngineRan,
    Figure,
    FirstUse,
    Gpu,
    GpuTime,
    GraphVerdict,
    HardwareUse,
    Headroom,
    HeadroomGroup,
    HostEvidence,
    IdleCause,
    InferenceFigures,
    InferenceKind,
    KernelShare,
    LayerGroup,
    LoopAlone,
    MappedCounts,
    NamedWarmUp,
    NextStep,
    OtherKernels,
    Outside,
    Region,
    RegionPart,
    ReplayFigures,
    RuleAnswer,
    SampledCode,
    Skipped,
    Slowest,
    Spread,
    TraceFacts,
    Trial,
    UnitOfTime,
    UnitUse,
    UnlikeLoops,
    Wait,
    WhereItRan,
)
from nsysmap.core.json_record import Declared, keys
from nsysmap.core.note import Note
from nsysmap.rules.finding import Finding

REPORT: Declared = {
    Distinction: keys("profile kernels own_kernel hidden number"),
    WhereItRan: keys("process gpu thread hidden_graphs"),
    HostEvidence: keys("kind name text sampled"),
    SampledCode: keys("owner library share function"),
    UnitOfTime: keys("inferences repetitions among_others"),
    EngineRan: keys(
        "source tensorrt_version layers detailed inferences verdict how in_doubt other_kernels "
        "tactics other_tactics lacking by_order one_of unknown_layers"
    ),
    Figure: keys("ns low_ns high_ns"),
    InferenceKind: keys(
        "what inferences warmup cut kernels mean_ns median_ns p95_ns gpu_time_ns enqueue_ns "
        "gpu_span_ns steady phase group drift engine_name distinction place one"
    ),
    IdleCause: keys("cause ns share_of_window outside_calls inferred"),
    GpuTime: keys(
        "device name window window_ns busy_share busy_ns copies_share idle collectives_ns "
        "left_out_ns slow_first slow_first_ns"
    ),
    UnitUse: keys("unit percent known_share"),
    HardwareUse: keys("device frequency_hz units concurrent_share reason"),
    LayerGroup: keys(
        "name title kind does engine layers kernels time_ns share_of_all_kernel_time opaque"
    ),
    OtherKernels: keys("family names kernels time_ns share_of_all_kernel_time"),
    Outside: keys("kernels share tensorrt pytorch span_ns"),
    KernelShare: keys("name what kernels time_ns share_of_kernel_time"),
    Wait: keys("ns in_calls_ns call in_call_ns call_ns"),
    Slowest: keys(
        "inference engine time_ns times_median usual usual_ns more early later artefact "
        "longest device kind whose"
    ),
    RegionPart: keys("name does parts kernels time_ns share_of_region_time"),
    Region: keys("name engine share_of_all_kernel_time parts"),
    RuleAnswer: keys("rule group severity outcome places at_most_ns message where in_pieces"),
    GraphVerdict: keys("answer saving share reason perhaps"),
    Action: keys(
        "name title saving share basis throughput_only places paste paste_pytorch change "
        "paste_brief change_brief rules idle filled host_work after beside in_phase host_evidence "
        "after_results graph_of_all"
    ),
    HeadroomGroup: keys(
        "title engine layers layer_ids time_ns least_ns headroom_ns reason limit reached waves "
        "blocks sms occupancy tile kernel_arch kernels counted shape "
        "reachable_ns"
    ),
    Trial: keys(
        "name title at_most_ns layers throughput_only paste paste_pytorch change paste_brief "
        "change_brief likely"
    ),
    Headroom: keys(
        "time_ns known_ns least_ns headroom_ns share layers counted_layers weights_only_layers "
        "groups reasons gpu_bound trials compared_ns reachable_ns"
    ),
    EightBitPart: keys("part why layers time_ns datatypes titles"),
    EightBits: keys("engine type time_ns parts older_products older_ns older_arch reached"),
    Doubt: keys("what reason rules changes because lacks about_engines"),
    MappedCounts: keys("kernels with_layer share_of_time methods"),
    NextStep: keys("why command brief"),
    Decoding: keys("first_token_ns token_ns requests steps"),
    Disturbance: keys("slow inferences first last share times_median quick_call slowdown"),
    FirstUse: keys("inferences compile_ns longest_ns compiled tried_out remedy remedy_brief"),
    Answer: keys(
        "source unit inferences steady tensorrt tensorrt_version pytorch program engines "
        "traced traced_gpu unprofiled trtexec_ns kinds gpus gpu_unprofiled counters "
        "counted_limits layers other_kernels outside kernel_ns kernel_units units hidden "
        "kernels kernel_kinds slowest regions rules graph replayed_ns replay_error actions "
        "doubts mapped blocked warnings next_steps opaque_layers selected collectives in_turn "
        "in_step disturbance first_use tensorrt_bound tensorrt_since "
        "headroom eight_bits unit_facts=unit_of_time decoding unlike_loops "
        "named_warm_up"
    ),
    UnlikeLoops: keys("loops paused_ns"),
    LoopAlone: keys("what median_ns share"),
    NamedWarmUp: keys("range kernels times median_ns"),
    TraceFacts: keys(
        "source nsys_version schema_version form tensorrt_version duration_ns "
        "cuda_graph_trace graph_launches kernels copies memsets processes threads streams "
        "dropped_rows overhead_ns nothing_recurs"
    ),
    Gpu: keys("device name chip compute sm_count memory_bytes bandwidth_bytes_per_s"),
    Spread: keys("median=median_ns p95=p95_ns"),
    InferenceFigures: keys(
        "engine count warmup cut measured found_by launch_api gpu_time_ns gpu_span_ns enqueue_ns"
    ),
    ReplayFigures: keys("launches runs gpu_time_ns launch_ns round_trip_ns gap_ns gaps_of_gpu"),
    Skipped: keys("rule group reason lacks because about_engines"),
    Note: keys("level text remedy"),
    Finding: keys(
        "rule group severity message start_ns end_ns cost_ns share_of_window layer_index "
        "layer evidence advice about command layer_title also"
    ),
}
"""The objects in the JSON report, version 1."""

LEFT_OUT: Mapping[type, frozenset[str]] = {
    Answer: frozenset(
        {
            "errors",
            # these stand beside the answer, or are its sections
            *("trace", "machine_gpus", "figures", "figures_by_engine", "busy_share"),
            *("busy_window", "replays", "tables", "outcomes", "notes"),
        }
    ),
    GpuTime: frozenset({"whole_busy_ns"}),  # busy_ns of trace.gpus
    EngineRan: frozenset({"file"}),  # `source` names it too
    HardwareUse: frozenset({"unknown"}),  # `reason` is the same as a text
    RegionPart: frozenset({"does_each"}),  # `does` is the same as a text
    Finding: frozenset({"what_if"}),  # `command` has it
    Note: frozenset({"brief", "without_command", "about"}),
}
"""Fields that JSON does not have: other forms of what it has under another key."""

ENGINE_FILES: Declared = {EngineRan: keys("source tensorrt_version layers detailed inferences")}
"""The facts about an engine that ran which stand under `engines`, with its number."""
