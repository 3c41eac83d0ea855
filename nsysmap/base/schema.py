"""Which declared tables there are: what a rule, a test and a user can rely on.

They are declared in `trace_schema`, `engine_schema` and `result_schema`.  ``process`` and ``thread`` are nsys's serialized ids (globalPid,
globalTid): unique over the whole trace, where ``pid``, ``device``, ``stream`` and ``correlation`` are not.
"""

from __future__ import annotations

from nsysmap.base.engine_schema import (
    ATTENTION,
    ATTENTION_LAYERS,
    CHAIN_LAYERS,
    CHAINS,
    EDGES,
    ENGINES_WITH_TENSORS,
    LAYERS,
    QUANTIZERS,
    REFORMATS,
    SIBLING_LAYERS,
    SIBLINGS,
    TENSORS,
    WORK,
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
    ROOFLINE,
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
)  # fmt: skip
"""Every table of an analysis: what the SQL of rules and users can read."""
