"""The list of declared tables: what a rule, a test and a user can rely on.

They are declared in `trace_schema`, `engine_schema`, `result_schema`, `counter_schema` and `report_schema`.
``process`` and ``thread`` are nsys's serialized ids (globalPid, globalTid): unique over the whole trace,
where ``pid``, ``device``, ``stream`` and ``correlation`` are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.base.counter_schema import (
    COPY_COUNTERS,
    DEVICE_COUNTERS,
    GPU_SAMPLING,
    KERNEL_COUNTERS,
    KERNEL_ENDS,
    LAYER_COUNTERS,
    NCU_KERNELS,
)  # fmt: skip
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
    ENGINE_INFERENCES,
    FINDINGS,
    HIDDEN_REPLAYS,
    IDLE_TOTALS,
    INFERENCE_GROUPS,
    INFERENCE_LOOPS,
    INFERENCE_TIMES,
    KERNEL_FAMILIES,
    LAYER_KINDS,
    NOTES,
    OTHER_KERNELS,
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
    REPLAYED_TIMES,
    REPLAYED_WORK,
    ROOFLINE,
    TRTEXEC_TIMES,
    UNMAPPED,
    WHATIF,
    WHATIF_INFERENCES,
)
from nsysmap.base.table import Table
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
    KERNEL_FAMILIES, ENGINES, ENGINE_INFERENCES, INFERENCE_LOOPS, INFERENCE_GROUPS, INFERENCE_TIMES, DEVICE_TIMES, IDLE_TOTALS,
    HIDDEN_REPLAYS, LAYER_KINDS,
    REPEATED_LAYERS, OTHER_KERNELS, TRTEXEC_TIMES, REPLAYED_INFERENCES, REPLAYED_WORK, REPLAYED_TIMES, GPU_SAMPLING, KERNEL_COUNTERS,
    KERNEL_ENDS, LAYER_COUNTERS, DEVICE_COUNTERS, COPY_COUNTERS, NCU_KERNELS, WHATIF_INFERENCES,
)  # fmt: skip
"""The tables that the SQL of rules can read: all of an analysis except those made from the rules' answers."""

ANSWER_TABLES = (RULE_OUTCOMES, FINDINGS, NOTES)
"""The tables made from the rules' answers; the SQL of users can read them too."""

ALL_TABLES = (*RULE_TABLES, *ANSWER_TABLES)
"""Every table of an analysis."""


@dataclass(frozen=True)
class Tables:
    """Every declared table of an analysis; docs/rules/tables.md describes them. A field has the name of its table in SQL."""

    # the trace, and what it says by itself
    api_calls: Table
    nvtx_ranges: Table
    memcpys: Table
    memsets: Table
    syncs: Table
    cuda_graph_nodes: Table
    cuda_graph_traces: Table
    overheads: Table
    osrt_calls: Table
    devices: Table
    capture: Table
    inferences: Table
    steady_state: Table
    # the mapping
    kernels: Table
    names: Table
    engine_fits: Table
    # the engine files
    engines: Table
    layers: Table
    tensors: Table
    edges: Table
    work: Table
    engines_with_tensors: Table
    chains: Table
    chain_layers: Table
    attention: Table
    attention_layers: Table
    siblings: Table
    sibling_layers: Table
    reformats: Table
    quantizers: Table
    # where the time goes
    layer_times: Table
    kernel_time: Table
    precision: Table
    region_parts: Table
    kernel_runs: Table
    roofline: Table
    coverage: Table
    unmapped: Table
    kernel_totals: Table
    kernel_families: Table
    layer_kinds: Table
    repeated_layers: Table
    other_kernels: Table
    gaps: Table
    engine_inferences: Table
    inference_loops: Table
    inference_groups: Table
    inference_times: Table
    device_times: Table
    idle_totals: Table
    hidden_replays: Table
    trtexec_times: Table
    gpu_sampling: Table
    kernel_counters: Table
    kernel_ends: Table
    layer_counters: Table
    device_counters: Table
    copy_counters: Table
    ncu_kernels: Table
    whatif: Table
    whatif_inferences: Table
    replayed_inferences: Table
    replayed_work: Table
    replayed_times: Table
    # what was found
    rule_outcomes: Table
    findings: Table
    notes: Table

    def by_name(self) -> dict[str, Table]:
        """The tables by their names in SQL."""
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"<Tables: {', '.join(f'{name} {len(table):,}' for name, table in self.by_name().items() if len(table))} rows>"
