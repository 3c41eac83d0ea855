"""Which declared tables there are: what a rule, a test and a user can rely on.

They are declared in `trace_schema`, `engine_schema`, `result_schema`, `counter_schema` and `report_schema`.
``process`` and ``thread`` are nsys's serialized ids (globalPid, globalTid): unique over the whole trace,
where ``pid``, ``device``, ``stream`` and ``correlation`` are not.
"""

from __future__ import annotations

from nsysmap.base.counter_schema import GPU_SAMPLING, KERNEL_COUNTERS, KERNEL_ENDS, LAYER_COUNTERS, NCU_KERNELS
from nsysmap.base.engine_schema import (
    ATTENTION,
    ATTENTION_LAYERS,
    CHAIN_LAYERS,
    CHAINS,
    EDGES,
    ENGINES,
    ENGINES_WITH_TENSORS,
    LAYERS,
    QUANTIZERS,
    REFORMATS,
    SIBLING_LAYERS,
    SIBLINGS,
    TENSORS,
    WORK,
)
from nsysmap.base.report_schema import (
    DEVICE_TIMES,
    FINDINGS,
    HIDDEN_REPLAYS,
    IDLE_TOTALS,
    INFERENCE_GROUPS,
    INFERENCE_LOOPS,
    INFERENCE_TIMES,
    KERNEL_FAMILIES,
    LAYER_KINDS,
    NOTES,
    REPEATED_LAYERS,
    RULE_OUTCOMES,
)
from nsysmap.base.result_schema import (
    COVERAGE,
    ENGINE_FITS,
    GAPS,
    KERNEL_RUNS,
    KERNEL_TIME,
    KERNEL_TOTALS,
    KERNELS,
    LAYER_TIMES,
    NAMES,
    PRECISION,
    REGION_PARTS,
    REPLAYED_INFERENCES,
    REPLAYED_WORK,
    ROOFLINE,
    TRTEXEC_TIMES,
    UNMAPPED,
    WHATIF,
)
from nsysmap.base.trace_schema import (
    API_CALLS,
    CAPTURE,
    CUDA_GRAPH_NODES,
    CUDA_GRAPH_TRACES,
    DEVICES,
    INFERENCES,
    MEMCPYS,
    MEMSETS,
    NVTX_RANGES,
    OSRT_CALLS,
    OVERHEADS,
    STEADY_STATE,
    SYNCS,
)

RULE_TABLES = (
    KERNELS, NAMES, LAYERS, TENSORS, EDGES, INFERENCES, GAPS, API_CALLS, NVTX_RANGES, MEMCPYS, MEMSETS, SYNCS, CUDA_GRAPH_NODES,
    CUDA_GRAPH_TRACES, OVERHEADS, OSRT_CALLS, DEVICES, CAPTURE, WHATIF, STEADY_STATE,
    WORK, ROOFLINE, ENGINES_WITH_TENSORS, CHAINS, CHAIN_LAYERS, ATTENTION, ATTENTION_LAYERS, REFORMATS, QUANTIZERS, PRECISION,
    LAYER_TIMES, KERNEL_RUNS, SIBLINGS, SIBLING_LAYERS, KERNEL_TIME, ENGINE_FITS, REGION_PARTS, COVERAGE, UNMAPPED, KERNEL_TOTALS,
    KERNEL_FAMILIES, ENGINES, INFERENCE_LOOPS, INFERENCE_GROUPS, INFERENCE_TIMES, DEVICE_TIMES, IDLE_TOTALS, HIDDEN_REPLAYS, LAYER_KINDS,
    REPEATED_LAYERS, TRTEXEC_TIMES, REPLAYED_INFERENCES, REPLAYED_WORK, GPU_SAMPLING, KERNEL_COUNTERS, KERNEL_ENDS,
    LAYER_COUNTERS, NCU_KERNELS,
)  # fmt: skip
"""What the SQL of rules can read: every table of an analysis but those that rest on the rules' answers."""

ANSWER_TABLES = (RULE_OUTCOMES, FINDINGS, NOTES)
"""What follows from the rules' answers; the SQL of users can read it too."""

ALL_TABLES = (*RULE_TABLES, *ANSWER_TABLES)
"""Every table of an analysis."""
