"""The steps of an analysis, from a report and engine files to the rules' findings: each is done
when its result is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.advice.program import program_of
from nsysmap.core.counter_schema import NCU_KERNELS
from nsysmap.core.errors import current_folder
from nsysmap.core.note import Note, notes_table
from nsysmap.core.records import dataclass, kept
from nsysmap.core.report_schema import HIDDEN_REPLAYS
from nsysmap.core.result_schema import GRAPH_ANNOTATIONS, KERNELS
from nsysmap.core.schema import ANSWER_TABLES, Tables
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.core.trace_schema import CAPTURE, DEVICES
from nsysmap.inputs.engine.model import Engine
from nsysmap.mapping.mapped_trace import MappedTrace, Progress, map_report, read_engines, silent
from nsysmap.rules.settings_files import SETTINGS
from nsysmap.text.units import counted, rounded, worded
from nsysmap.trace.gpu_metrics import GpuMetrics
from nsysmap.trace.inferences.compilation import first_use_ns
from nsysmap.trace.inferences.steady import called_repetitions, excluded_spans, steady_inferences

if TYPE_CHECKING:
    import pandas

    from nsysmap.answer.model import Answer
    from nsysmap.counters.sampling import Counters
    from nsysmap.inputs.engine.onnx_model import OnnxModel
    from nsysmap.inputs.engine.trtexec_times import TrtexecTimes
    from nsysmap.inputs.ncu.printed import NcuKernel
    from nsysmap.inputs.torch.graph_annotations import NodeAnnotation
    from nsysmap.mapping.selection import Selection
    from nsysmap.network.tables import EngineTables
    from nsysmap.rules.finding import Finding, Outcome
    from nsysmap.rules.rule_file import Rule
    from nsysmap.timing.headroom import Sources
    from nsysmap.timing.inference_groups import InferenceTables
    from nsysmap.timing.measured import KindTimes, Measured
    from nsysmap.trace.open_report import Reader
    from nsysmap.whatif.engine_facts import EngineFacts
    from nsysmap.whatif.model import Model, NoModel, Observed
    from nsysmap.whatif.predict import Predicted
    from nsysmap.whatif.replayed import Replayed


@dataclass(frozen=True)
class Analysis:
    """The result of analysing one report: declared tables, notes and what the rules answered.

    The report has been read and its kernels are mapped; everything else is worked out when it is
    first asked for, and then kept.
    """

    source: str  # the report's file name
    engines: tuple[Engine, ...]
    tables: Tables
    steps: Pipeline
    # hardware counters as they were sampled
    gpu_metrics: GpuMetrics = field(default_factory=GpuMetrics)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the reader must know before believing the figures."""
        return self.steps.notes

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each rule."""
        return self.steps.outcomes

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
        from nsysmap.rules.finding import by_cost

        return by_cost(self.outcomes)

    @cached_property
    def skipped(self) -> tuple[Outcome, ...]:
        """The outcomes of the rules that could not decide, each with the reason in ``skipped``."""
        return tuple(outcome for outcome in self.outcomes if outcome.skipped is not None)

    @cached_property
    def summary(self) -> Answer:
        """The answer on top of every report: time per inference, where it goes, what to do first,
        and how certain that is.
        """
        from nsysmap.answer.summarize import summarize

        return summarize(self.tables.by_name(), self.outcomes, self.notes)

    def query(self, sql: str) -> pandas.DataFrame:
        """The rows of one SELECT over the declared tables; it runs in the rules' sandbox, without
        access to files or the network.

        Raises NsysmapError if the statement is invalid, not allowed, or takes longer than a minute.
        """
        from nsysmap.rules.select import select

        frame: pandas.DataFrame = select(sql, self.tables.by_name()).to_pandas()
        return frame

    def __repr__(self) -> str:
        from nsysmap.answer.gains import in_short

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
    summary: Answer | None = None  # the answer of the report, if asked for
    # times of each kind of its inferences, where there are several
    kinds: tuple[KindTimes, ...] = ()
    model: OnnxModel | None = None  # which names its layers

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The layers' titles."""
        from nsysmap.network.tables import engine_titles

        return engine_titles(self.engine, self.model)


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
    from nsysmap.inputs.engine.onnx_model import read_model as onnx_model
    from nsysmap.inputs.engine.reader import read_engine
    from nsysmap.timing.measured import by_kind

    model = onnx_model(onnx) if onnx is not None else None
    if report is None:
        found = [
            replace(read_engine(file, profile=profile), source=Path(file).name)
            for file in engine_files
        ]
        return tuple(
            EngineRun(engine, number, "", None, (), model=model)
            for number, engine in enumerate(found)
        )
    engines = read_engines(engine_files, profile=profile)
    mapped = map_report(
        report, engines, model=model, reader=reader, selection=selection, progress=progress
    )
    summary = None
    if summarised:  # without the events, which nobody asks it for
        summary = analyze_mapped(mapped, rules=[], progress=progress).summary.without_tables()
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
            model,
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
    from nsysmap.inputs.engine.trtexec_times import read_times, times_in

    if path is not None:
        return read_times(path)
    return next((found for file in engine_files if (found := times_in(file)) is not None), None)


def measured(mapped: MappedTrace) -> Measured:
    """The times of the engines' layers and kernels in a mapped trace."""
    from nsysmap.timing.measured import measure

    return measure(
        mapped.kernels,
        mapped.inferences,
        mapped.mapped.layers,
        mapped.steady,
        mapped.engines,
        _compute_capability(mapped.trace.devices, mapped.kernels),
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


@kept
def _capture(mapped: MappedTrace) -> Table:
    """The facts about the trace (CAPTURE); for a selection, its counts are of the part, and what is
    shown or hidden is of the whole.
    """
    from nsysmap.trace.capture_facts import capture_facts

    version = next(
        (engine.tensorrt_version for engine in mapped.engines if engine.tensorrt_version), None
    )
    facts = capture_facts(mapped.trace, mapped.tensorrt, version)
    if mapped.selected is None:
        return facts
    whole = {
        name: data
        for name, data in mapped.selected.capture.columns.items()
        if name.startswith("has_") or name in ("cuda_graph_trace", "nothing_recurs")
    }
    return facts.with_columns(CAPTURE, whole)


def analyze_mapped(  # what else is known, and what is asked
    mapped: MappedTrace,
    *,
    rules: Sequence[Rule] | None = None,
    times: TrtexecTimes | None = None,
    ncu: tuple[NcuKernel, ...] = (),
    annotations: tuple[NodeAnnotation, ...] = (),
    device: int | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """The analysis of a mapped trace: totals, idle time, predictions, the rules' findings, and
    notes, each worked out when it is first asked for.

    What is predicted is of the inferences on ``device``; if it is None, on the GPU with the most.
    ``progress`` is told of each step when it is done.  Raises NsysmapError for settings of rules
    that cannot be used.
    """
    try:
        settings = Path.cwd()  # the folder may be another one when the rules run
    except FileNotFoundError:  # it was removed: it has no settings
        settings = Path()
    if rules is None and any((settings / name).is_file() for name in SETTINGS):
        from nsysmap.rules.parameters import load_params

        if load_params(settings):
            from nsysmap.rules.packs import chosen_rules

            rules = chosen_rules(settings=settings)  # what is wrong with them is said at once
    steps = Pipeline(
        mapped,
        rules=None if rules is None else tuple(rules),
        times=times,
        ncu=ncu,
        annotations=annotations,
        device=device,
        progress=progress,
        settings=current_folder(),
    )
    return Analysis(
        mapped.trace.source, mapped.engines, steps.tables, steps, mapped.trace.gpu_metrics
    )


@dataclass(frozen=True)
class Pipeline:
    """The steps of the analysis of one mapped trace: each is a property that is worked out of
    others when it is first asked for, and then kept.
    """

    mapped: MappedTrace
    rules: tuple[Rule, ...] | None  # None: those that come with nsysmap
    times: TrtexecTimes | None
    ncu: tuple[NcuKernel, ...]
    annotations: tuple[NodeAnnotation, ...]  # of nodes of CUDA graphs
    device: int | None
    progress: Progress | None
    settings: Path  # where the parameters of rules are looked for

    def __repr__(self) -> str:
        done = [name for name in vars(self) if name not in {one.name for one in fields(self)}]
        return f"<Pipeline of {self.mapped!r}: {', '.join(done) or 'none'} done>"

    def _tell(self, doing: str) -> None:
        (self.progress or silent)(doing)

    @cached_property
    def tables(self) -> Tables:
        """Every declared table, each worked out when it is first asked for."""
        made = {
            **self._of_the_trace(),
            **self._totals(),
            **{
                name: self._of_record(step, name)
                for step, names in MADE_TOGETHER.items()
                for name in names
            },
            "rule_outcomes": lambda: self._answered("rule_outcomes"),
            "findings": lambda: self._answered("findings"),
            "notes": lambda: notes_table(self.notes),
        }
        return Tables({name: self._as_in_report(name, make) for name, make in made.items()})

    def _as_in_report(self, name: str, make: Callable[[], Table]) -> Callable[[], Table]:
        if self.mapped.selected is None or name in _ANSWERED:
            return make
        return lambda: self.mapped.as_in_report(make())

    def _of_the_trace(self) -> dict[str, Callable[[], Table]]:
        mapped, trace = self.mapped, self.mapped.trace
        return {
            "api_calls": lambda: trace.api_calls,
            "nvtx_ranges": lambda: trace.nvtx_ranges,
            "memcpys": lambda: trace.memcpys,
            "memsets": lambda: trace.memsets,
            "syncs": lambda: trace.syncs,
            "cuda_graph_nodes": lambda: trace.cuda_graph_nodes,
            "cuda_graph_traces": lambda: trace.cuda_graph_traces,
            "overheads": lambda: trace.overheads,
            "osrt_calls": lambda: trace.osrt_calls,
            "devices": lambda: trace.devices,
            "capture": lambda: self.capture,
            "inferences": lambda: mapped.inferences,
            "kernels": lambda: mapped.kernels,
            "names": lambda: self.names,
            "engine_fits": lambda: mapped.mapped.engine_fits,
        }

    def _totals(self) -> dict[str, Callable[[], Table]]:
        mapped = self.mapped
        return {
            "kernel_runs": self._kernel_runs,
            "roofline": lambda: self.engine_facts.roofline,
            "headroom": self._headroom,
            "engine_headroom": self._engine_headroom,
            "precision_changes": self._precision_changes,
            "eight_bits": self._eight_bits,
            "coverage": self._coverage,
            "unmapped": self._unmapped,
            "kernel_totals": lambda: self.kernel_totals,
            "graph_annotations": self._graph_annotations,
            "kernel_families": self._kernel_families,
            "layer_kinds": self._layer_kinds,
            "repeated_layers": self._repeated_layers,
            "other_kernels": self._other_kernels,
            "gaps": lambda: self.gaps,
            "host_samples": self._host_samples,
            "device_times": lambda: self.device_times,
            "idle_totals": self._idle_totals,
            "hidden_replays": lambda: _hidden(mapped, self.capture),
            "trtexec_times": self._trtexec_times,
            "ncu_kernels": self._ncu_kernels,
            "replayed_times": self._replayed_times,
        }

    def _of_record(self, step: str, name: str) -> Callable[[], Table]:
        def table() -> Table:
            found = getattr(getattr(self, step), name)
            assert isinstance(found, Table)
            return found

        return table

    @cached_property
    def capture(self) -> Table:
        """The facts about the trace (CAPTURE)."""
        return _capture(self.mapped)

    @cached_property
    def names(self) -> Table:
        """The decoded names of the kernels."""
        from nsysmap.names.decode import names_table

        return names_table(self.mapped.kernels.text("name").values)

    @cached_property
    def measured(self) -> Measured:
        """Times by layer and kernel."""
        self._tell("adding up")
        return measured(self.mapped)

    @cached_property
    def kernel_totals(self) -> Table:
        """Times by kernel name."""
        from nsysmap.timing import totals

        return totals.by_kernel_name(self.mapped.kernels, self.names)

    @cached_property
    def engine_tables(self) -> EngineTables:
        """The tables that follow from the engine files, for the GPU that ran the kernels."""
        from nsysmap.network.tables import engine_tables

        mapped = self.mapped
        return engine_tables(
            mapped.engines, compute=_compute_capability(mapped.trace.devices, mapped.kernels)
        )

    @cached_property
    def gaps(self) -> Table:
        """The idle time between GPU work, each interval with its cause."""
        from nsysmap.timing.idle.intervals import find_gaps

        mapped = self.mapped
        return find_gaps(
            mapped.trace,
            mapped.inferences,
            mapped.found.membership,
            mapped.mapped.table,
            self.progress,
            excluded=self._excluded_spans,
        )

    @cached_property
    def device_times(self) -> Table:
        """How long each GPU was busy."""
        from nsysmap.timing.device_times import device_times, hides_work

        return device_times(
            self.mapped.trace,
            self.mapped.found,
            self.measured.steady_state,
            self._excluded_spans,
            hidden=hides_work(self.capture),
        )

    @cached_property
    def counters(self) -> Counters:
        """The hardware counters of the trace; no rows if none were sampled."""
        mapped = self.mapped
        if mapped.trace.gpu_metrics.tables is None:
            from nsysmap.counters.sampling import no_counters

            return no_counters()
        from nsysmap.counters.of_trace import counters_of

        self._tell("reading hardware counters")
        return counters_of(mapped.trace, mapped.kernels, mapped.inferences, mapped.found.of_call)

    @cached_property
    def engine_facts(self) -> EngineFacts:
        """What predictions need to know about the engines."""
        counted = (self.counters.layer_counters, self.counters.gpu_sampling)
        return _engine_facts(self.mapped, self.measured, self.engine_tables, counted)

    @cached_property
    def inference_figures(self) -> InferenceTables:
        """The tables about inferences."""
        from nsysmap.timing.inference_groups import inference_figures

        trace = self.mapped.trace
        return inference_figures(
            self.mapped.inferences, self.gaps, trace.memcpys, trace.api_calls, trace.overheads
        )

    @cached_property
    def model(self) -> Model | NoModel:
        """The timeline that predictions replay."""
        from nsysmap.whatif.model import read_model
        from nsysmap.whatif.profiler import MACHINES

        facts = self.engine_facts
        self._tell("replaying the timeline")
        return read_model(replace(_seen(self.mapped), device=self.device), facts, MACHINES)

    @cached_property
    def predicted(self) -> Predicted:
        """What each change would save."""
        from nsysmap.whatif.change import chosen_changes
        from nsysmap.whatif.predict import predicted

        return predicted(self.model, chosen_changes((), (), self.engine_facts))

    @cached_property
    def replayed(self) -> Replayed:
        """The timeline without the profiler."""
        from nsysmap.whatif.replayed import replayed_tables

        return replayed_tables(self.model)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each rule.  Raises NsysmapError for rules that cannot be run."""
        from nsysmap.rules.packs import chosen_rules
        from nsysmap.rules.run import run_rules

        rules = chosen_rules(settings=self.settings) if self.rules is None else self.rules
        return run_rules(rules, self.tables.by_name(), progress=self.progress) if rules else ()

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What the reader must know before believing the figures."""
        from nsysmap.counters.sampling import sampling_notes
        from nsysmap.timing.unprofiled import trtexec_notes

        mapped, tables = self.mapped, self.tables
        return (
            *mapped.mapped.notes,
            *_notes(mapped, self.capture.only()),
            *trtexec_notes(self.times, tables.trtexec_times),
            *sampling_notes(tables.gpu_sampling, _one(mapped)),
            *self._ncu_notes(),
            *self._annotation_notes(),
        )

    def _ncu_notes(self) -> tuple[Note, ...]:
        if not self.ncu:
            return ()
        from nsysmap.counters.beside_ncu import ncu_notes

        return ncu_notes(self.tables.ncu_kernels)

    def _annotation_notes(self) -> tuple[Note, ...]:
        if not self.annotations:
            return ()
        from nsysmap.timing.annotated_nodes import annotation_notes

        return annotation_notes(self.tables.graph_annotations, self.mapped.kernels)

    def _graph_annotations(self) -> Table:
        if not self.annotations:
            return Table.empty(GRAPH_ANNOTATIONS)
        from nsysmap.timing.annotated_nodes import annotations_table

        return annotations_table(self.annotations, self.mapped.kernels)

    def _coverage(self) -> Table:
        from nsysmap.timing.totals import coverage

        return coverage(self.mapped.kernels)

    def _unmapped(self) -> Table:
        from nsysmap.timing.totals import unmapped

        return unmapped(self.mapped.kernels)

    def _kernel_families(self) -> Table:
        from nsysmap.timing.totals import by_family

        return by_family(self.kernel_totals)

    def _other_kernels(self) -> Table:
        from nsysmap.timing.totals import other_kernels

        return other_kernels(self.mapped.kernels, self.names, self.mapped.steady)

    def _kernel_runs(self) -> Table:
        from nsysmap.timing.kernel_runs import hidden_layers, kernel_runs

        mapped = self.mapped
        hidden = hidden_layers(self.measured.layers, self.engine_tables.engines_with_tensors)
        return kernel_runs(mapped.kernels, mapped.inferences, mapped.steady, hidden)

    def _headroom_sources(self) -> Sources:
        from nsysmap.timing.headroom import Sources

        return Sources(**{one.name: getattr(self.tables, one.name) for one in fields(Sources)})

    def _headroom(self) -> Table:
        from nsysmap.timing.headroom import headroom_table

        return headroom_table(self._headroom_sources())

    def _engine_headroom(self) -> Table:
        from nsysmap.timing.headroom import engine_headroom_table

        return engine_headroom_table(self._headroom_sources(), self.tables.headroom)

    def _eight_bits(self) -> Table:
        from nsysmap.timing.eight_bits import QuantizedEngine, eight_bits_table

        given = {one.name: getattr(self.tables, one.name) for one in fields(QuantizedEngine)}
        return eight_bits_table(QuantizedEngine(**given))

    def _precision_changes(self) -> Table:
        from nsysmap.timing.other_precision import Described, precision_changes_table

        tables = self.tables
        told = Described(tables.work, tables.attention, tables.attention_layers)
        rtx = program_of(tables.by_name()).rtx
        return precision_changes_table(told, tables.headroom, tables.devices, rtx=rtx)

    def _layer_kinds(self) -> Table:
        from nsysmap.timing.layer_sums import layer_kinds

        return layer_kinds(self.measured.layers)

    def _repeated_layers(self) -> Table:
        from nsysmap.timing import totals
        from nsysmap.timing.layer_sums import repeated_layers

        layers, mapped = self.measured.layers, self.mapped
        return repeated_layers(
            layers, *totals.layer_totals(mapped.kernels, len(layers), mapped.steady)
        )

    def _idle_totals(self) -> Table:
        from nsysmap.timing.device_times import idle_totals

        return idle_totals(self.gaps, self.device_times, self._excluded_spans)

    @cached_property
    def _excluded_spans(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        from nsysmap.timing.device_times import with_served

        mapped = self.mapped
        return with_served(excluded_spans(mapped.inferences), mapped.trace, mapped.found)

    def _host_samples(self) -> Table:
        from nsysmap.timing.idle.host_samples import host_samples

        samples = self.mapped.trace.cpu_samples
        return host_samples(samples, self.gaps, self.measured.steady_state)

    def _trtexec_times(self) -> Table:
        from nsysmap.timing.unprofiled import trtexec_table

        return trtexec_table(self.times, self.inference_figures.inference_groups)

    def _ncu_kernels(self) -> Table:
        if not self.ncu:
            return Table.empty(NCU_KERNELS)
        from nsysmap.counters.beside_ncu import ncu_table

        mapped = self.mapped
        return ncu_table(
            self.ncu,
            mapped.kernels,
            mapped.inferences,
            mapped.trace.devices,
            self.engine_tables.edges,
        )

    def _replayed_times(self) -> Table:
        from nsysmap.timing.idle.replayed import replayed_times

        whatif = self.predicted.whatif
        before_ns = next((row.maybe_integer("before_ns") for row in whatif), None)
        return replayed_times(
            self.replayed.replayed_work,
            self.replayed.replayed_inferences,
            self.mapped.inferences,
            self.gaps,
            before_ns,
        )

    def _answered(self, name: str) -> Table:
        from nsysmap.rules.result_tables import findings_table, outcomes_table

        if name == "findings":
            return findings_table(self.outcomes, self.tables.layers)
        return outcomes_table(self.outcomes)


_ANSWERED = frozenset(spec.name for spec in ANSWER_TABLES)
"""Made of tables that have the report's numbers already."""


MADE_TOGETHER = {
    "measured": (
        "layers",
        "layer_times",
        "kernel_time",
        "precision",
        "region_parts",
        "steady_state",
    ),
    "engine_tables": (
        "engines",
        "tensors",
        "edges",
        "work",
        "engines_with_tensors",
        "chains",
        "chain_layers",
        "attention",
        "attention_layers",
        "siblings",
        "sibling_layers",
        "reformats",
        "quantizers",
    ),
    "counters": (
        "gpu_sampling",
        "kernel_counters",
        "kernel_ends",
        "layer_counters",
        "device_counters",
        "copy_counters",
    ),
    "inference_figures": (
        "engine_inferences",
        "inference_loops",
        "inference_groups",
        "inference_times",
    ),
    "predicted": ("whatif", "whatif_inferences"),
    "replayed": ("replayed_inferences", "replayed_work"),
}
"""The steps that make several tables, which are the fields of a record."""


def _hidden(mapped: MappedTrace, capture: Table) -> Table:
    """What is known about graph launches with hidden kernels; no rows if there are none."""
    from nsysmap.trace.inferences.whole_graph import hidden_replays

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
    from nsysmap.whatif.change import chosen_changes
    from nsysmap.whatif.predict import what_if
    from nsysmap.whatif.selection import check_named

    observed, facts = observed_of(mapped)
    names, layers = ([given] if isinstance(given, str) else given for given in (names, layers))
    known = [facts.layers.text(name) for name in ("name", "title")]
    check_named(
        layers, [*known, *(mapped.kernels.text(name) for name in ("layer", "part", "name"))]
    )
    return what_if(observed, facts, chosen_changes(names, layers, facts))


def _repetitions(mapped: MappedTrace) -> bool:
    """Whether sentences say repetition instead of inference."""
    return called_repetitions(mapped.inferences, tensorrt=shows_engine(mapped))


def _one(mapped: MappedTrace) -> str:
    """The word for one of what runs."""
    return worded("{:inference}", repetitions=_repetitions(mapped))


def observed_of(mapped: MappedTrace) -> tuple[Observed, EngineFacts]:
    """The inputs of a replay."""
    from nsysmap.network.tables import engine_tables

    facts = _engine_facts(mapped, measured(mapped), engine_tables(mapped.engines), None)
    return _seen(mapped), facts


def _seen(mapped: MappedTrace) -> Observed:
    """What a replay is made from."""
    from nsysmap.whatif.model import Observed

    return Observed(
        mapped.trace,
        mapped.inferences,
        mapped.found.membership,
        mapped.mapped.table,
        repetitions=_repetitions(mapped),
    )


def _engine_facts(
    mapped: MappedTrace, times: Measured, inside: EngineTables, counters: tuple[Table, Table] | None
) -> EngineFacts:
    from nsysmap.timing.roofline import roofline_table
    from nsysmap.whatif.engine_facts import EngineFacts

    roofline = roofline_table(
        times.layers, inside.work, mapped.trace.devices, mapped.kernels, counters=counters
    )
    bindings = tuple(name for engine in mapped.engines for name in engine.bindings)
    return EngineFacts(
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
    from nsysmap.timing import totals
    from nsysmap.trace.lacking import lacking
    from nsysmap.trace.lost_calls import lost_calls

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
    one = _one(mapped)
    compiled = inferences.text("compile_evidence").codes >= 0
    if compiled.any():
        took = rounded(int(first_use_ns(inferences)[compiled].sum()))
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
                f"Not in the medians: {counted(cut, one)} cut off by"
                f" {'lost calls, or ' if lost_calls(trace) else ''}the start or end of the"
                " capture, or the last of a loop and of other kernels than those before it.",
            )
        )
    if len(trace.kernels) and not len(inferences):
        notes.append(
            Note(
                "warning",
                "No inference was found: no ExecutionContext:: ranges, no graph launches, no"
                " repeating sequence of kernels. Times are totals over the trace.",
                about="no-inference",
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
            Note(
                "warning",
                f"{unknown:,} of {len(trace.kernels):,} kernels have no layer{why}.",
                about="no-layer",
            )
        )
    return notes


ENGINE_GROUPS = frozenset({"fusion", "reformat", "precision", "hotspot"})
"""The groups of rules that examine the engine rather than the trace."""


def engine_tables_with_profile(engine: Engine) -> dict[str, Table]:
    """The tables of one engine by name; ``layers`` and ``layer_times`` have its profile's times, if
    any, in ns per inference.
    """
    from nsysmap.core.engine_schema import LAYERS
    from nsysmap.network.tables import engine_tables, layers_table
    from nsysmap.timing.eight_bits import QuantizedEngine, eight_bits_table
    from nsysmap.timing.layer_times import profiled_layer_times
    from nsysmap.timing.precision import engine_precision_table
    from nsysmap.timing.roofline import roofline_table

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
    precision = engine_precision_table(engine)
    facts = QuantizedEngine(
        layers=layers,
        work=inside.work,
        tensors=inside.tensors,
        edges=inside.edges,
        precision=precision,
        devices=Table.empty(DEVICES),
        layer_times=times,
    )
    return vars(inside) | {
        "layers": layers,
        "layer_times": times,
        "precision": precision,
        "roofline": roofline,
        "eight_bits": eight_bits_table(facts),
    }


def engine_outcomes(engine: Engine, *, rules: Sequence[Rule] | None = None) -> tuple[Outcome, ...]:
    """The outcomes of the rules about the inside of an engine; costs are in ns per inference.

    Rules that need a trace, or times, are skipped with the reason.
    """
    from nsysmap.rules.packs import chosen_rules
    from nsysmap.rules.run import run_rules

    chosen = chosen_rules() if rules is None else rules
    return run_rules(
        [rule for rule in chosen if rule.group in ENGINE_GROUPS], engine_tables_with_profile(engine)
    )
