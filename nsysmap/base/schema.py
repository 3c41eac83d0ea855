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
    LAYERS,
    OPEN_ENGINES,
    QUANTIZERS,
    REFORMATS,
    SIBLING_LAYERS,
    SIBLINGS,
    TENSORS,
    WORK,
)
from nsysmap.base.result_schema import (
    ENGINE_FITS,
    GAPS,
    KERNEL_RUNS,
    KERNEL_TIME,
    KERNELS,
    LAYER_TIMES,
    LIMITS,
    NAMES,
    PRECISION,
    RESOURCES,
    WHATIF,
)
from nsysmap.base.trace_schema import (
    API_CALLS,
    CAPTURE,
    COPIES,
    DEVICES,
    GRAPH_NODES,
    GRAPH_RUNS,
    INFERENCES,
    MEMSETS,
    OS_CALLS,
    OVERHEADS,
    RANGES,
    STEADY,
    SYNCS,
)

RULE_TABLES = (
    KERNELS, NAMES, LAYERS, TENSORS, EDGES, INFERENCES, GAPS, API_CALLS, RANGES, COPIES, MEMSETS, SYNCS, GRAPH_NODES, GRAPH_RUNS,
    OVERHEADS, OS_CALLS, DEVICES, CAPTURE, WHATIF, STEADY,
    WORK, LIMITS, OPEN_ENGINES, CHAINS, CHAIN_LAYERS, ATTENTION, ATTENTION_LAYERS, REFORMATS, QUANTIZERS, PRECISION,
    LAYER_TIMES, KERNEL_RUNS, SIBLINGS, SIBLING_LAYERS, KERNEL_TIME, ENGINE_FITS, RESOURCES,
)  # fmt: skip
"""What a rule's SQL can read."""
