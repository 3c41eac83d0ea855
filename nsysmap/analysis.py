"""Strings together what follows from a mapped trace, up to the rules: the Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.base.engine_schema import LAYERS
from nsysmap.base.note import Note
from nsysmap.base.result_schema import KERNELS
from nsysmap.base.table import MISSING, Table
from nsysmap.base.trace_schema import DEVICES
from nsysmap.base.units import counted
from nsysmap.engine.model import Engine
from nsysmap.engine.tables import engine_tables, layers_table
from nsysmap.mapping.mapped_trace import MappedTrace, Progress, map_report, read_engines, silent
from nsysmap.names.decode import names_table
from nsysmap.rules.finding import Finding, Outcome, by_cost
from nsysmap.rules.run import builtin_rules_dir, load_rules, run_rules
from nsysmap.timing import totals
from nsysmap.timing.idle import find_gaps
from nsysmap.timing.kernel_runs import hidden_layers, kernel_runs
from nsysmap.timing.kernel_time import kernel_time
from nsysmap.timing.layer_times import layer_times, profiled_layer_times
from nsysmap.timing.precision import engine_precision_table, precision_table
from nsysmap.timing.region_times import region_parts
from nsysmap.timing.resources import inference_resources
from nsysmap.timing.roofline import roofline_table
from nsysmap.trace.capture_facts import capture_facts
from nsysmap.trace.steady import steady_windows
from nsysmap.whatif.predict import default_changes, what_if

if TYPE_CHECKING:
    import pandas

    from nsysmap.rules.rule_file import Rule


@dataclass(frozen=True)
class Analysis:
    """Everything that a report says, as declared tables and notes."""

    source: str  # the report's file name
    engines: tuple[Engine, ...]
    tables: Mapping[str, Table]  # by name: schema.RULE_TABLES and the totals
    notes: tuple[Note, ...]
    outcomes: tuple[Outcome, ...] = ()  # one a rule

    @cached_property
    def kernels(self) -> pandas.DataFrame:
        """One row a kernel (schema.KERNELS)."""
        return self.tables["kernels"].pandas()

    @cached_property
    def layers(self) -> pandas.DataFrame:
        """One row a layer, with its time (schema.LAYERS)."""
        return self.tables["layers"].pandas()

    @cached_property
    def inferences(self) -> pandas.DataFrame:
        """One row an inference (schema.INFERENCES)."""
        return self.tables["inferences"].pandas()

    @cached_property
    def coverage(self) -> pandas.DataFrame:
        """One row a mapping method, with its kernels and their time (schema.COVERAGE)."""
        return self.tables["coverage"].pandas()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules found, the most costly first."""
        return by_cost(self.outcomes)

    @cached_property
    def skipped(self) -> tuple[Outcome, ...]:
        """The rules that could not tell, each with the reason in ``skipped``."""
        return tuple(outcome for outcome in self.outcomes if outcome.skipped is not None)


def analyze(
    report: str | Path,
    engine: str | Path | Sequence[str | Path] | None = None,
    *,
    profile: str | Path | None = None,
    rules: Sequence[Rule] | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """The post-mortem of one report, with the engine files that ran in it (none: layers come from the trace's ranges).

    ``rules`` are those that come with nsysmap unless given (see rules.load_rules); none run where it is empty.
    Raises NsysmapError for input that cannot be used.
    """
    paths = [] if engine is None else [engine] if isinstance(engine, (str, Path)) else list(engine)
    engines = read_engines(paths, profile=profile)
    return analyze_mapped(map_report(report, engines, progress=progress), rules=rules, progress=progress)


def measured(mapped: MappedTrace) -> dict[str, Table]:
    """What the trace measured of the engines: layers (with their time), kernel_time, precision, region_parts, steady_state and capture."""
    kernels, inferences = mapped.kernels, mapped.inferences
    layers = totals.layers_with_time(mapped.mapped.layers, kernels, mapped.steady)
    spent = kernel_time(kernels, inferences, mapped.steady)
    version = next((engine.tensorrt_version for engine in mapped.engines if engine.tensorrt_version), None)
    return {
        "layers": layers,
        "kernel_time": spent,
        "precision": precision_table(spent, layers, mapped.engines),
        "region_parts": region_parts(kernels, layers, inferences, mapped.steady),
        "steady_state": steady_windows(inferences),
        "capture": capture_facts(mapped.trace, mapped.tensorrt, version),
    }


def notes_of(mapped: MappedTrace, tables: Mapping[str, Table]) -> tuple[Note, ...]:
    """What the reader must know before believing the figures; `tables` has `capture`."""
    return (*mapped.mapped.notes, *_notes(mapped, tables))


def analyze_mapped(mapped: MappedTrace, *, rules: Sequence[Rule] | None = None, progress: Progress | None = None) -> Analysis:
    """What follows from a mapped trace: totals, idle time, what the rules find, and notes."""
    tell = progress or silent
    tell("adding up")
    trace, engines = mapped.trace, mapped.engines
    names = names_table(trace.kernels.text("name").values)
    tables = measured(mapped)
    layers = tables["layers"]
    tables |= {
        "kernels": mapped.kernels,
        "inferences": mapped.inferences,
        "names": names,
        "api_calls": trace.api_calls,
        "nvtx_ranges": trace.nvtx_ranges,
        "memcpys": trace.memcpys,
        "memsets": trace.memsets,
        "syncs": trace.syncs,
        "cuda_graph_nodes": trace.cuda_graph_nodes,
        "cuda_graph_traces": trace.cuda_graph_traces,
        "overheads": trace.overheads,
        "osrt_calls": trace.osrt_calls,
        "devices": trace.devices,
        "coverage": totals.coverage(mapped.kernels),
        "unmapped": totals.unmapped(mapped.kernels),
        "kind_totals": totals.by_kind(layers),
        "kernel_totals": totals.by_kernel_name(mapped.kernels, names),
        "gaps": find_gaps(trace, mapped.inferences, mapped.found.membership, mapped.mapped.table),
        "resources": inference_resources(mapped.inferences),
        "engine_fits": mapped.mapped.engine_fits,
    }
    tables |= engine_tables(engines, compute=_compute_capability(trace.devices, mapped.kernels))
    tables["layer_times"] = layer_times(mapped.kernels, mapped.inferences, mapped.steady)
    hidden = hidden_layers(layers, tables["engines_with_tensors"])
    tables["kernel_runs"] = kernel_runs(mapped.kernels, mapped.inferences, mapped.steady, hidden)
    tables["roofline"] = roofline_table(layers, tables["work"], trace.devices, mapped.kernels)
    tell("replaying the timeline")
    tables["whatif"] = what_if(trace, mapped.inferences, mapped.found.membership, mapped.mapped.table, changes=default_changes(tables))
    tell("running the rules")
    outcomes = run_rules(load_rules([builtin_rules_dir()], check_own=False) if rules is None else rules, tables)
    return Analysis(trace.source, engines, tables, notes_of(mapped, tables), outcomes)


def _compute_capability(devices: Table, kernels: Table) -> tuple[int, int] | None:
    """That of the devices that ran kernels; None where the trace does not tell, or they differ."""
    used = np.isin(devices.ints("device"), np.unique(kernels.ints("device")))
    found = set(zip(devices.ints("compute_major")[used].tolist(), devices.ints("compute_minor")[used].tolist(), strict=True))
    return found.pop() if len(found) == 1 and not any(MISSING in pair for pair in found) else None


def _notes(mapped: MappedTrace, tables: Mapping[str, Table]) -> list[Note]:
    """What the reader must know before believing the figures."""
    trace, capture = mapped.trace, tables["capture"].records()[0]
    notes = [note for engine in mapped.engines for note in engine.notes]
    if capture["cuda_graph_trace"] == "graph":
        notes.append(
            Note(
                "error",
                f"The trace hides the kernels of {capture['graph_launches']} CUDA graph launches: it was taken with whole-graph tracing, "
                "nsys's default. Nothing is known about their layers, kernels or idle time inside. "
                "Capture again with: nsys profile --cuda-graph-trace=node … (or run trtexec with --noCudaGraph).",
            )
        )
    elif not len(trace.kernels):
        notes.append(
            Note(
                "error",
                "The trace has no GPU kernels at all: nothing can be said about the GPU. "
                "Capture again with: nsys profile -t cuda,nvtx --cuda-graph-trace=node …",
            )
        )
    notes.extend(Note("warning", f"{dropped.rows} rows of {dropped.table} left out: {dropped.reason}.") for dropped in trace.dropped)
    if count := capture["unmatched_launches"]:
        told = f"No launch call in the trace: {counted(int(str(count)), 'kernel')}; the capture began or ended between the two."
        notes.append(Note("info", told))
    inferences = mapped.inferences
    if warmup := int(np.count_nonzero(inferences.bools("warmup"))):
        notes.append(Note("info", f"Not in the medians: {counted(warmup, 'warm-up inference')} (slower than those after)."))
    if cut := int(np.count_nonzero(~inferences.bools("complete"))):
        notes.append(Note("info", f"Not in the medians: {counted(cut, 'inference')} cut by the begin or end of the capture."))
    if len(trace.kernels) and not len(inferences):
        notes.append(
            Note(
                "warning",
                "No inference was recognised: no ExecutionContext:: ranges and no graph launches. Times are totals over the trace.",
            )
        )
    unknown = int(np.count_nonzero(mapped.kernels.ints("layer_id") == MISSING))
    if unknown and mapped.engines and capture["cuda_graph_trace"] != "graph":
        notes.append(
            Note("warning", f"{unknown} of {len(trace.kernels)} kernels could not be given a layer; the reasons are listed under coverage.")
        )
    return notes


ENGINE_GROUPS = frozenset({"fusion", "reformat", "precision", "hotspot"})
"""The groups of rules that look at the engine rather than at the trace."""


def engine_tables_with_profile(engine: Engine) -> dict[str, Table]:
    """The tables of one engine by name, with the times of its profile, if it has one, in layers and layer_times (one inference)."""
    times = profiled_layer_times([engine])
    layers = layers_table([engine])
    ids = times.ints("layer_id")
    share = np.full(len(layers), np.nan)
    share[ids] = times.floats("share_of_kernel_time")
    time_ns = layers.ints("time_ns").copy()
    time_ns[ids] = times.ints("total_ns")
    layers = layers.with_columns(LAYERS, {"time_ns": time_ns, "share_of_kernel_time": share})
    tables = engine_tables([engine])
    tables |= {"layers": layers, "layer_times": times, "precision": engine_precision_table(engine)}
    tables["roofline"] = roofline_table(layers, tables["work"], Table.empty(DEVICES), Table.empty(KERNELS))
    return tables


def engine_outcomes(engine: Engine, *, rules: Sequence[Rule] | None = None) -> tuple[Outcome, ...]:
    """What the rules about the inside of an engine answer; costs are of one inference.

    Those that need a trace, or times, are skipped with the reason.
    """
    chosen = load_rules([builtin_rules_dir()], check_own=False) if rules is None else rules
    return run_rules([rule for rule in chosen if rule.group in ENGINE_GROUPS], engine_tables_with_profile(engine))
