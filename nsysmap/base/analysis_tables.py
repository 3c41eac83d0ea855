"""The declared tables of one analysis, as a record: one field a table."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.base.table import Table


@dataclass(frozen=True)
class Tables:
    """Every declared table of an analysis; docs/rules/tables.md says what is in each.  A field is named as its table is in SQL."""

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
    gaps: Table
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
    ncu_kernels: Table
    whatif: Table
    replayed_inferences: Table
    replayed_work: Table
    # what was found
    rule_outcomes: Table
    findings: Table
    notes: Table

    def by_name(self) -> dict[str, Table]:
        """The same by the names that SQL uses."""
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"<Tables: {', '.join(f'{name} {len(table):,}' for name, table in self.by_name().items() if len(table))} rows>"
