"""Runs every step of an analysis in order, from a report and engine files to the rules'
findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.advice.program import program_of
from nsysmap.answer.gains import in_short
from nsysmap.answer.model import Summary
from nsysmap.answer.summarize import summarize
from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.note import Note, notes_table
from nsysmap.core.report_schema import HIDDEN_REPLAYS
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.schema import ANSWER_TABLES, Tables
from nsysmap.core.table import MISSING, Row, Table, Text
from nsysmap.core.trace_schema import CAPTURE, DEVICES
from nsysmap.counters.beside_ncu import ncu_notes, ncu_table
from nsysmap.counters.of_trace import Counters, counters_of, sampling_notes
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.onnx_model import read_model as onnx_model
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.inputs.engine.trtexec_times import TrtexecTimes, read_times, times_in
from nsysmap.inputs.ncu.printed import NcuKernel
from nsysmap.mapping.mapped_trace import MappedTrace, Progress, map_report, read_engines, silent
from nsysmap.mapping.selection import Selection
from nsysmap.names.decode import names_table
from nsysmap.network.tables import EngineTables, engine_tables, engine_titles, layers_table
from nsysmap.rules.finding import Finding, Outcome, by_cost
from nsysmap.rules.packs import chosen_rules
from nsysmap.rules.result_tables import findings_table, outcomes_table
from nsysmap.rules.run import run_rules
from nsysmap.rules.select import select
from nsysmap.text.units import counted, of_repetitions, rounded
from nsysmap.timing import totals
from nsysmap.timing.device_times import device_times, hides_work, idle_totals
from nsysmap.timing.idle.intervals import find_gaps
from nsysmap.timing.idle.replayed import replayed_times
from nsysmap.timing.inference_groups import inference_figures
from nsysmap.timing.kernel_runs import hidden_layers, kernel_runs
from nsysmap.timing.layer_sums import layer_kinds, repeated_layers
from nsysmap.timing.layer_times import profiled_layer_times
from nsysmap.timing.measured import KindTimes, Measured, by_kind, measure
from nsysmap.timing.precision import engine_precision_table
from nsysmap.timing.roofline import roofline_table
from nsysmap.timing.unprofiled import trtexec_notes, trtexec_table
from nsysmap.trace.capture_facts import capture_facts
from nsysmap.trace.gpu_metrics import GpuMetrics
from nsysmap.trace.inferences.steady import excluded_spans, only_repeats, steady_inferences
from nsysmap.trace.inferences.whole_graph import hidden_replays
from nsysmap.trace.lacking import lacking
from nsysmap.trace.open_report import Reader
from nsysmap.whatif.change import chosen_changes
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Observed, read_model
from nsysmap.whatif.predict import predicted, what_if
from nsysmap.whatif.profiler import MACHINES
from nsysmap.whatif.replayed import replayed_tables
from nsysmap.whatif.selection import check_named

if TYPE_CHECKING:
    import pandas

    from nsysmap.rules.rule_file import Rule


@dataclass(frozen=True)
class Analysis:
    """The result of analysing one report: declared tables, notes and what the rules answered."""

    source: str  # the report's file name
    engines: tuple[Engine, ...]
    tables: Tables
    notes: tuple[Note, ...]
    outcomes: tuple[Outcome, ...] = ()  # one a rule
    # hardware counters as they were sampled
    gpu_metrics: GpuMetrics = field(default_factory=GpuMetrics)

    @cached_property
    def kernels(self) -> pandas.DataFrame:
        """One row per kernel (the table `kernels`), times in ns."""
        return self.tables.kernels.pandas()

    @cached_property
    def layers(self) -> pandas.DataFrame:
        """One row per layer, with its time in ns (the table `layers`)."""
        return self.tables.layers.pandas()

    @cached_property
    def inferences(self) -> pandas.DataFrame:
        """One row per inference (the table `inferences`), times in ns."""
        return self.tables.inferences.pandas()

    @cached_property
    def idle(self) -> pandas.DataFrame:
        """One row per device and cause of idle time within its window (the table `idle_totals`)."""
        return self.tables.idle_totals.pandas()

    @cached_property
    def whatif(self) -> pandas.DataFrame:
        """One row per change, with its predicted saving in ns (the table `whatif`)."""
        return self.tables.whatif.pandas()

    @cached_property
    def coverage(self) -> pandas.DataFrame:
        """One row per mapping method, with the number of kernels it mapped and their time in ns
        (the table `coverage`).
        """
        return self.tables.coverage.pandas()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all rules, the costliest first."""
        return by_cost(self.outcomes)

    @cached_property
    def skipped(self) -> tuple[Outcome, ...]:
        """The outcomes of the rules that could not tell, each with the reason in ``skipped``."""
        return tuple(outcome for outcome in self.outcomes if outcome.skipped is not None)

    @cached_property
    def summary(self) -> Summary:
        """The answer on top of every report: time per inference, where it goes, what to do first,
        and how certain that is.
        """
        return summarize(self.tables.by_name())

    def query(self, sql: str) -> pandas.DataFrame:
        """The rows of one SELECT over the declared tables; it runs in the rules' sandbox, without
        access to files or the network.

        Raises NsysmapError if the statement is invalid, not allowed, or takes longer than a minute.
        """
        frame: pandas.DataFrame = select(sql, self.tables.by_name()).to_pandas()
        return frame

    def __repr__(self) -> str:
        engines = (
            f" with {', '.join(engine.source for engine in self.engines)}" if self.engines else ""
        )
        return f"<Analysis of {self.source}{engines}: {in_short(self.summary)}>"


@dataclass(frozen=True)
class EngineRun:
    """One engine, and its times measured in a report; without a report, ``times`` is None and
    ``source`` is empty.
    """

    engine: Engine
    number: int  # among the engines that were measured
    source: str  # the report's file name
    times: Measured | None
    notes: tuple[Note, ...]  # beside the engines' own
    summary: Summary | None = None  # the answer of the report, if asked for
    # times of each kind of its inferences, where there are several
    kinds: tuple[KindTimes, ...] = ()
    titles: tuple[str, ...] = ()  # what its layers are called


def engine_runs(  # one parameter a file or an option
    engine_files: Sequence[str | Path],
    report: str | Path | None = None,
    *,
    profile: str | Path | None = None,
    onnx: str | Path | None = None,
    reader: Reader = "auto",
    selection: Selection | None = None,
    progress: Progress | None = None,
    summarised: bool = False,
) -> tuple[EngineRun, ...]:
    """The engines of these files, with their times measured in a report; of a single file with
    several, the one that ran, or the last.

    With ``summarised`` each has the answer of the report, without what rules find.

    Raises NsysmapError for input that cannot be used.
    """
    model = onnx_model(onnx) if onnx is not None else None
    if report is None:
        found = [
            replace(read_engine(file, profile=profile), source=Path(file).name)
            for file in engine_files
        ]
        return tuple(
            EngineRun(engine, number, "", None, (), titles=engine_titles(engine, model))
            for number, engine in enumerate(found)
        )
    engines = read_engines(engine_files, profile=profile)
    mapped = map_report(
        report, engines, model=model, reader=reader, selection=selection, progress=progress
    )
    summary = analyze_mapped(mapped, rules=[], progress=progress).summary if summarised else None
    times, own = measured(mapped), {note for engine in mapped.engines for note in engine.notes}
    notes = tuple(note for note in notes_of(mapped) if note not in own)
    shown = mapped.engines if len(engine_files) > 1 else mapped.engines[:1]
    kinds = [
        by_kind(mapped.kernels, mapped.inferences, mapped.mapped.layers, mapped.steady, number)
        for number in range(len(shown))
    ]
    return tuple(
        EngineRun(
            engine,
            number,
            mapped.trace.source,
            times,
            notes,
            summary,
            kinds[number],
            engine_titles(engine, model),
        )
        for number, engine in enumerate(shown)
    )


def unprofiled_times(
    path: str | Path | None, engine_files: Sequence[str | Path]
) -> TrtexecTimes | None:
    """Times that trtexec measured without the profiler; None if there are none.

    They come from this file (--exportTimes, or its log), else from an engine file that is such a
    log.
    """
    if path is not None:
        return read_times(path)
    return next((found for file in engine_files if (found := times_in(file)) is not None), None)


def measured(mapped: MappedTrace) -> Measured:
    """The times of the engines' layers and kernels in a mapped trace."""
    return measure(
        mapped.kernels, mapped.inferences, mapped.mapped.layers, mapped.steady, mapped.engines
    )


def notes_of(mapped: MappedTrace) -> tuple[Note, ...]:
    """What the reader must know before believing the figures."""
    return (*mapped.mapped.notes, *_notes(mapped, _capture(mapped).only()))


def shows_engine(mapped: MappedTrace) -> bool:
    """Whether an engine file, a range or a kernel shows that TensorRT ran."""
    return (
        bool(mapped.engines)
        or program_of({"capture": _capture(mapped), "kernels": mapped.trace.kernels}).shows_engine
    )


def _capture(mapped: MappedTrace) -> Table:
    """The facts about the trace (CAPTURE); for a selection, its counts are of the part, and what is
    shown or hidden is of the whole.
    """
    version = next(
        (engine.tensorrt_version for engine in mapped.engines if engine.tensorrt_version), None
    )
    facts = capture_facts(mapped.trace, mapped.tensorrt, version)
    if mapped.selected is None:
        return facts
    whole = {
        name: data
        for name, data in mapped.selected.capture.columns.items()
        if name.startswith("has_") or name == "cuda_graph_trace"
    }
    return facts.with_columns(CAPTURE, whole)


def analyze_mapped(  # what else is known, and what is asked
    mapped: MappedTrace,
    *,
    rules: Sequence[Rule] | None = None,
    times: TrtexecTimes | None = None,
    ncu: tuple[NcuKernel, ...] = (),
    device: int | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """The analysis of a mapped trace: totals, idle time, predictions, the rules' findings, and
    notes.

    What is predicted is of the inferences on ``device``; if it is None, on the GPU with the most.
    """
    tell = progress or silent
    tell("adding up")
    trace, kernels, inferences = mapped.trace, mapped.kernels, mapped.inferences
    names = names_table(kernels.text("name").values)
    spent = measured(mapped)
    inside = engine_tables(mapped.engines, compute=_compute_capability(trace.devices, kernels))
    gaps = find_gaps(trace, inferences, mapped.found.membership, mapped.mapped.table, progress)
    tell("adding up by layer and kernel")
    capture = _capture(mapped)
    excluded = excluded_spans(inferences)
    busy = device_times(trace, spent.steady_state, excluded, hidden=hides_work(capture))
    by_name = totals.by_kernel_name(kernels, names)
    counted = _counters(mapped, tell)
    observed, facts = _observed(
        mapped, spent, inside, (counted.layer_counters, counted.gpu_sampling)
    )
    tell("replaying the timeline")
    figures = inference_figures(inferences, gaps, trace.memcpys, (trace.api_calls, trace.overheads))
    model = read_model(replace(observed, device=device), facts, MACHINES)
    answers, replay = predicted(model, chosen_changes((), (), facts)), replayed_tables(model)
    answers = replace(answers, whatif=_worded(answers.whatif, mapped))
    before_ns = next((row.maybe_integer("before_ns") for row in answers.whatif), None)
    tables = Tables(
        api_calls=trace.api_calls,
        nvtx_ranges=trace.nvtx_ranges,
        memcpys=trace.memcpys,
        memsets=trace.memsets,
        syncs=trace.syncs,
        cuda_graph_nodes=trace.cuda_graph_nodes,
        cuda_graph_traces=trace.cuda_graph_traces,
        overheads=trace.overheads,
        osrt_calls=trace.osrt_calls,
        devices=trace.devices,
        capture=capture,
        inferences=inferences,
        kernels=kernels,
        names=names,
        engine_fits=mapped.mapped.engine_fits,
        kernel_runs=kernel_runs(
            kernels,
            inferences,
            mapped.steady,
            hidden_layers(spent.layers, inside.engines_with_tensors),
        ),
        roofline=facts.roofline,
        coverage=totals.coverage(kernels),
        unmapped=totals.unmapped(kernels),
        kernel_totals=by_name,
        kernel_families=totals.by_family(by_name),
        layer_kinds=layer_kinds(spent.layers),
        repeated_layers=repeated_layers(
            spent.layers, *totals.layer_totals(kernels, len(spent.layers), mapped.steady)
        ),
        other_kernels=totals.other_kernels(kernels, names, mapped.steady),
        gaps=gaps,
        device_times=busy,
        idle_totals=idle_totals(gaps, busy, excluded),
        hidden_replays=_hidden(mapped, capture),
        trtexec_times=trtexec_table(times, figures.inference_groups),
        ncu_kernels=ncu_table(ncu, kernels, inferences, trace.devices, inside.edges),
        **vars(counted),
        **vars(answers),
        **vars(replay),
        replayed_times=replayed_times(
            replay.replayed_work, replay.replayed_inferences, inferences, gaps, before_ns
        ),
        **vars(figures),
        **vars(spent),
        **vars(inside),
        **{spec.name: Table.empty(spec) for spec in ANSWER_TABLES},
    )
    if mapped.selected is not None:
        tables = Tables(
            **{name: mapped.as_in_report(table) for name, table in tables.by_name().items()}
        )
    tell("running the rules")
    outcomes = run_rules(
        chosen_rules() if rules is None else rules, tables.by_name(), progress=progress
    )
    notes = (
        *notes_of(mapped),
        *trtexec_notes(times, tables.trtexec_times),
        *(
            replace(note, text=_of_what_repeats(note.text, mapped))
            for note in sampling_notes(tables.gpu_sampling)
        ),
        *ncu_notes(tables.ncu_kernels),
    )
    tables = replace(
        tables,
        rule_outcomes=outcomes_table(outcomes),
        findings=findings_table(outcomes, tables.layers),
        notes=notes_table(notes),
    )
    return Analysis(trace.source, mapped.engines, tables, notes, outcomes, trace.gpu_metrics)


def _counters(mapped: MappedTrace, tell: Progress) -> Counters:
    """The hardware counters of the trace; no rows if none were sampled."""
    if mapped.trace.gpu_metrics.tables is not None:
        tell("reading hardware counters")
    return counters_of(mapped.trace, mapped.kernels, mapped.inferences, mapped.found.of_call)


def _hidden(mapped: MappedTrace, capture: Table) -> Table:
    """What is known about graph launches with hidden kernels; no rows if there are none."""
    if capture.only().text("cuda_graph_trace") != "graph":
        return Table.empty(HIDDEN_REPLAYS)
    starts = mapped.inferences.ints("start_ns")[
        np.isin(mapped.inferences.ints("inference"), steady_inferences(mapped.inferences))
    ]
    return hidden_replays(
        mapped.trace.api_calls,
        mapped.trace.cuda_graph_traces,
        int(starts.min()) if len(starts) else 0,
    )


def predict_changes(
    mapped: MappedTrace, names: str | Sequence[str] = (), layers: str | Sequence[str] = ()
) -> Table:
    """The table `whatif` of an analysis, for the named change or changes only (all if none is
    named).

    ``layers`` are those that drop-layers removes and join-kernels joins into one kernel.
    Raises NsysmapError for a change that does not exist, and for a name that no layer, part of a
    layer or kernel has.
    """
    observed, facts = observed_of(mapped)
    names, layers = ([given] if isinstance(given, str) else given for given in (names, layers))
    known = [facts.layers.text(name) for name in ("name", "title")]
    check_named(
        layers, [*known, *(mapped.kernels.text(name) for name in ("layer", "part", "name"))]
    )
    return _worded(what_if(observed, facts, chosen_changes(names, layers, facts)), mapped)


def _of_what_repeats(text: str, mapped: MappedTrace) -> str:
    """A sentence about inferences, in the word for what repeats."""
    return (
        of_repetitions(text)
        if only_repeats(mapped.inferences, tensorrt=shows_engine(mapped))
        else text
    )


def _worded(whatif: Table, mapped: MappedTrace) -> Table:
    """The table `whatif` in the words for what repeats."""
    said = {
        name: Text.of(text and _of_what_repeats(text, mapped) for text in whatif.text(name).list())
        for name in ("assumptions", "reason")
    }
    return whatif.with_columns(whatif.spec, said)


def observed_of(mapped: MappedTrace) -> tuple[Observed, EngineFacts]:
    """The inputs of a replay."""
    times, inside = measured(mapped), engine_tables(mapped.engines)
    return _observed(mapped, times, inside, None)


def _observed(
    mapped: MappedTrace, times: Measured, inside: EngineTables, counters: tuple[Table, Table] | None
) -> tuple[Observed, EngineFacts]:
    roofline = roofline_table(
        times.layers, inside.work, mapped.trace.devices, mapped.kernels, counters=counters
    )
    bindings = tuple(name for engine in mapped.engines for name in engine.bindings)
    observed = Observed(
        mapped.trace, mapped.inferences, mapped.found.membership, mapped.mapped.table
    )
    return observed, EngineFacts(
        times.layers,
        inside.tensors,
        inside.edges,
        inside.chains,
        inside.chain_layers,
        roofline,
        bindings,
    )


def _compute_capability(devices: Table, kernels: Table) -> tuple[int, int] | None:
    """The compute capability of the devices that ran kernels; None if it is unknown, or they
    differ.
    """
    used = np.isin(devices.ints("device"), np.unique(kernels.ints("device")))
    found = set(
        zip(
            devices.ints("compute_major")[used].tolist(),
            devices.ints("compute_minor")[used].tolist(),
            strict=True,
        )
    )
    return found.pop() if len(found) == 1 and not any(MISSING in pair for pair in found) else None


def _notes(mapped: MappedTrace, capture: Row) -> list[Note]:
    """What the reader must know before believing the figures."""
    trace = mapped.trace
    notes = [note for engine in mapped.engines for note in engine.notes]
    lacks = lacking(trace, capture.text("cuda_graph_trace")) if mapped.selected is None else []
    notes += [*trace.notes, *lacks]
    notes.extend(
        Note(
            "warning",
            f"{counted(dropped.rows, 'row')} of {dropped.table} left out: {dropped.reason}.",
        )
        for dropped in trace.dropped
    )
    if count := capture.integer("unmatched_launches"):
        told = (
            f"No launch call in the trace: {counted(count, 'kernel')}; the capture began or ended"
            " between launch and kernel."
        )
        notes.append(Note("info", told))
    inferences = mapped.inferences
    one = _of_what_repeats("inference", mapped)
    compiled = inferences.text("compile_evidence").codes >= 0
    if compiled.any():
        took = rounded(int(inferences.ints("compile_ns")[compiled].sum()))
        where = (
            f"{counted(int(np.count_nonzero(compiled)), one)} in which kernels were compiled or"
            " their code was loaded"
        )
        notes.append(Note("info", f"Not in the medians: {where}, for {took} in all."))
    if warmup := int(np.count_nonzero(inferences.bools("warmup") & ~compiled)):
        notes.append(
            Note(
                "info",
                f"Not in the medians: {counted(warmup, f'warm-up {one}')} (slower than later"
                " ones).",
            )
        )
    cut_here = 0 if mapped.selected is None else len(mapped.selected.cut)
    if (cut := int(np.count_nonzero(~inferences.bools("complete"))) - cut_here) > 0:
        notes.append(
            Note(
                "info",
                f"Not in the medians: {counted(cut, one)} cut off by the start or end of the"
                " capture.",
            )
        )
    if len(trace.kernels) and not len(inferences):
        notes.append(
            Note(
                "warning",
                "No inference was found: no ExecutionContext:: ranges, no graph launches, no"
                " repeating sequence of kernels. Times are totals over the trace.",
            )
        )
    unknown = int(np.count_nonzero(mapped.kernels.ints("layer_id") == MISSING))
    if unknown and mapped.engines and capture.text("cuda_graph_trace") != "graph":
        reasons = sorted(totals.unmapped(mapped.kernels), key=lambda row: -row.integer("kernels"))
        why = (
            (", most of them: " if len(reasons) > 1 else ": ") + reasons[0].text("reason")
            if reasons
            else ""
        )
        notes.append(
            Note("warning", f"{unknown:,} of {len(trace.kernels):,} kernels have no layer{why}.")
        )
    return notes


ENGINE_GROUPS = frozenset({"fusion", "reformat", "precision", "hotspot"})
"""The groups of rules that examine the engine rather than the trace."""


def engine_tables_with_profile(engine: Engine) -> dict[str, Table]:
    """The tables of one engine by name; ``layers`` and ``layer_times`` have its profile's times, if
    any, in ns per inference.
    """
    times = profiled_layer_times([engine])
    layers = layers_table([engine])
    ids = times.ints("layer_id")
    share = np.full(len(layers), np.nan)
    share[ids] = times.floats("share_of_kernel_time")
    time_ns = layers.ints("time_ns").copy()
    time_ns[ids] = times.ints("total_ns")
    layers = layers.with_columns(LAYERS, {"time_ns": time_ns, "share_of_kernel_time": share})
    inside = engine_tables([engine])
    roofline = roofline_table(layers, inside.work, Table.empty(DEVICES), Table.empty(KERNELS))
    return vars(inside) | {
        "layers": layers,
        "layer_times": times,
        "precision": engine_precision_table(engine),
        "roofline": roofline,
    }


def engine_outcomes(engine: Engine, *, rules: Sequence[Rule] | None = None) -> tuple[Outcome, ...]:
    """The outcomes of the rules about the inside of an engine; costs are in ns per inference.

    Rules that need a trace, or times, are skipped with the reason.
    """
    chosen = chosen_rules() if rules is None else rules
    return run_rules(
        [rule for rule in chosen if rule.group in ENGINE_GROUPS], engine_tables_with_profile(engine)
    )
