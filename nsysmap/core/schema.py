"""The list of declared tables: what a rule, a test and a user can rely on.

They are declared in `trace_schema`, `engine_schema`, `result_schema`, `counter_schema` and
`report_schema`.
``process`` and ``thread`` are nsys's serialized ids (globalPid, globalTid): unique over the whole
trace,
where ``pid``, ``device``, ``stream`` and ``correlation`` are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from nsysmap.core import counter_schema as counter
from nsysmap.core import engine_schema as engine
from nsysmap.core import report_schema as report
from nsysmap.core import result_schema as result
from nsysmap.core import trace_schema as trace
from nsysmap.core.table import Table

RULE_TABLES = (
    result.KERNELS, result.NAMES, engine.LAYERS, engine.TENSORS, engine.EDGES, trace.INFERENCES,
    result.GAPS, result.HOST_SAMPLES, trace.API_CALLS,
    trace.NVTX_RANGES, trace.MEMCPYS, trace.MEMSETS, trace.SYNCS, trace.CUDA_GRAPH_NODES,
    trace.CUDA_GRAPH_TRACES, trace.OVERHEADS,
    trace.OSRT_CALLS, trace.DEVICES, trace.CAPTURE, result.WHATIF, trace.STEADY_STATE, engine.WORK,
    result.ROOFLINE, result.HEADROOM, result.ENGINE_HEADROOM, result.PRECISION_CHANGES,
    result.EIGHT_BITS,
    engine.ENGINES_WITH_TENSORS, engine.CHAINS, engine.CHAIN_LAYERS, engine.ATTENTION,
    engine.ATTENTION_LAYERS, engine.REFORMATS,
    engine.QUANTIZERS, result.PRECISION, result.LAYER_TIMES, result.KERNEL_RUNS, engine.SIBLINGS,
    engine.SIBLING_LAYERS,
    result.KERNEL_TIME, result.ENGINE_FITS, result.REGION_PARTS, result.COVERAGE, result.UNMAPPED,
    result.KERNEL_TOTALS, result.GRAPH_ANNOTATIONS,
    report.KERNEL_FAMILIES, engine.ENGINES, report.ENGINE_INFERENCES, report.INFERENCE_LOOPS,
    report.INFERENCE_GROUPS,
    report.INFERENCE_TIMES, report.DEVICE_TIMES, report.IDLE_TOTALS, report.HIDDEN_REPLAYS,
    report.LAYER_KINDS, report.REPEATED_LAYERS,
    report.OTHER_KERNELS, result.TRTEXEC_TIMES, result.REPLAYED_INFERENCES, result.REPLAYED_WORK,
    result.REPLAYED_TIMES,
    counter.GPU_SAMPLING, counter.KERNEL_COUNTERS, counter.KERNEL_ENDS, counter.LAYER_COUNTERS,
    counter.DEVICE_COUNTERS,
    counter.COPY_COUNTERS, counter.NCU_KERNELS, result.WHATIF_INFERENCES,
)  # fmt: skip
"""The tables that the SQL of rules can read: all of an analysis except those made from the rules'
answers.
"""

ANSWER_TABLES = (report.RULE_OUTCOMES, report.FINDINGS, report.NOTES)
"""The tables made from the rules' answers; the SQL of users can read them too."""

ALL_TABLES = (*RULE_TABLES, *ANSWER_TABLES)
"""Every table of an analysis."""


class Tables(Mapping[str, Table]):
    """Every declared table of an analysis; docs/rules/tables.md describes them. An attribute has
    the name of its table in SQL.

    A table is made when it is first asked for, and then kept.
    """

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
    headroom: Table
    engine_headroom: Table
    precision_changes: Table
    eight_bits: Table
    coverage: Table
    unmapped: Table
    kernel_totals: Table
    graph_annotations: Table
    kernel_families: Table
    layer_kinds: Table
    repeated_layers: Table
    other_kernels: Table
    gaps: Table
    host_samples: Table
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

    def __init__(self, made: Mapping[str, Table | Callable[[], Table]]) -> None:
        """Hold these tables by name; a function makes its table when that is first asked for."""
        wrong = set(made) ^ {spec.name for spec in ALL_TABLES}
        assert not wrong, f"not exactly the declared tables: {sorted(wrong)}"
        self._made = {name: made[name] for name in Tables.__annotations__}

    def __getitem__(self, name: str) -> Table:
        held = self._made[name]
        if not isinstance(held, Table):
            held = self._made[name] = held()
        return held

    if not TYPE_CHECKING:  # else every attribute would be a table, declared or not

        def __getattr__(self, name: str) -> Table:
            if name == "_made" or name not in self._made:
                raise AttributeError(name)
            return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def by_name(self) -> Mapping[str, Table]:
        """The tables by their names in SQL."""
        return self

    def made(self) -> dict[str, Table]:
        """The tables that are worked out already."""
        return {name: held for name, held in self._made.items() if isinstance(held, Table)}

    def with_tables(self, **tables: Table) -> Tables:
        """A copy with these tables in place of those with their names."""
        return Tables({**self._made, **tables})

    def __repr__(self) -> str:
        rows = {name: len(held) for name, held in self._made.items() if isinstance(held, Table)}
        told = ", ".join(f"{name} {count:,}" for name, count in rows.items() if count)
        return f"<Tables: {told or 'none'} rows; {len(self) - len(rows)} not worked out yet>"
