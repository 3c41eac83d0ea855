"""The whole answer as values, so that all forms of output show the same: the summary, and the
figures below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from nsysmap.answer.model import EngineRan, Summary
from nsysmap.core.note import Note, gravest_first
from nsysmap.core.schema import Tables
from nsysmap.core.table import Row, Table
from nsysmap.rules.finding import Finding, Outcome, by_cost
from nsysmap.text.units import rounded_share


@dataclass(frozen=True)
class Spread:
    """The middle and the upper end of many times: the median, and the 95th percentile by linear
    interpolation; rounded to ns.
    """

    median_ns: int
    p95_ns: int


@dataclass(frozen=True)
class Gpu:
    """One GPU of the machine, and how busy it was.

    ``window_ns`` goes from the begin of the first to the end of the last steady-state inference
    (host call or GPU work); without inferences, from the first to the last GPU work of the trace.
    ``busy_ns`` is the part of it in which a kernel, copy, memset or graph ran.
    """

    device: int
    name: str
    chip: str | None
    compute: str | None
    sm_count: int | None
    memory_bytes: int | None
    bandwidth_bytes_per_s: int | None
    window_ns: int | None
    busy_ns: int | None


@dataclass(frozen=True)
class TraceFacts:
    """What was captured."""

    source: str
    nsys_version: str | None
    schema_version: str | None
    form: str
    tensorrt_version: str | None
    duration_ns: int
    cuda_graph_trace: str
    graph_launches: int
    kernels: int
    copies: int
    memsets: int
    processes: int
    threads: int
    streams: int
    dropped_rows: int
    overhead_ns: int


@dataclass(frozen=True)
class InferenceFigures:
    """The inferences of one engine, or of all; the spreads are over the measured ones: complete,
    and after the warm-up.
    """

    engine: int | None
    count: int
    warmup: int
    cut: int
    measured: int
    found_by: str | None
    launch_api: str | None
    gpu_time_ns: Spread | None  # union of its kernels, copies and memsets
    gpu_span_ns: Spread | None  # from the first to the last of them
    enqueue_ns: Spread | None


@dataclass(frozen=True)
class ReplayFigures:
    """What is known about CUDA graph replays whose kernels the trace hides; see the table
    `hidden_replays`.
    """

    launches: int
    runs: int
    gpu_time_ns: Spread | None
    launch_ns: Spread | None
    round_trip_ns: Spread | None
    gap_ns: Spread | None
    gaps_of_gpu: bool


@dataclass(frozen=True)
class Skipped:
    """A rule that could not tell, and why."""

    rule: str
    group: str
    reason: str
    lacks: str = ""  # the table without rows, or the column without a value, that it needs
    because: str = ""  # why that is so, or else why it could not tell
    about_engines: bool = False  # it is about the layers of engines


@dataclass(frozen=True)
class Report:
    """The content of a report, in reading order."""

    summary: Summary
    trace: TraceFacts
    gpus: tuple[Gpu, ...]
    inferences: InferenceFigures
    by_engine: tuple[InferenceFigures, ...]  # empty if one engine, or none, ran
    busy_share: float | None  # busy_ns divided by window_ns, over the GPUs that worked
    busy_window: str  # the kind of window: inferences or trace
    replays: ReplayFigures | None  # where the trace hides the kernels of CUDA graphs
    # a description of the layers' figures: "mean per inference of the engine" or "total over the
    # trace"
    layer_time: str
    tables: Tables  # the declared tables of the analysis: everything that is shown row by row
    outcomes: tuple[Outcome, ...]
    notes: tuple[Note, ...]  # errors first

    @property
    def engines(self) -> tuple[EngineRan, ...]:
        """The engine files, in the order given."""
        return self.summary.engines

    @cached_property
    def idle(self) -> tuple[Row, ...]:
        """Idle time of each GPU by cause, within its window (see Gpu): rows of `idle_totals`, the
        most first.
        """
        return tuple(
            sorted(
                self.tables.idle_totals,
                key=lambda row: (row.integer("device"), -row.integer("time_ns"), row.text("cause")),
            )
        )

    @property
    def kernel_time_ns(self) -> int:
        """Time of all kernels of the trace."""
        return int(self.tables.coverage.ints("time_ns").sum())

    @property
    def mapped(self) -> Table:
        """The rows of coverage by the methods that found a layer."""
        return self.tables.coverage.take(~self.tables.coverage.text("method").equals("none"))

    @property
    def shares_of(self) -> str:
        """What the shares of layers are of."""
        return "all kernel time" if self.replays is None else "visible kernel time"

    @property
    def kernels_shown(self) -> str:
        """Which kernels the trace shows."""
        return "Kernels" if self.replays is None else "Visible kernels"

    @cached_property
    def layers(self) -> tuple[Row, ...]:
        """The layers, those with the largest share of all kernel time first."""
        return tuple(
            sorted(
                self.tables.layers,
                key=lambda row: (
                    -(row.maybe_real("share_of_all_kernel_time") or 0.0),
                    -(row.maybe_integer("time_ns") or 0),
                    row.integer("layer_id"),
                ),
            )
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the most costly first."""
        return by_cost(self.outcomes)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The rules that could not tell."""
        return tuple(
            Skipped(
                one.rule,
                one.group,
                one.skip.reason,
                one.skip.lacks,
                one.skip.why,
                one.skip.about_engines,
            )
            for one in self.outcomes
            if one.skip is not None
        )

    @property
    def clean(self) -> tuple[str, ...]:
        """The rules that could tell and found nothing."""
        return tuple(one.rule for one in self.outcomes if one.clean)


_NO_INFERENCES = InferenceFigures(None, 0, 0, 0, 0, None, None, None, None, None)


def whole_answer(
    summary: Summary, tables: Tables, outcomes: Sequence[Outcome], notes: Sequence[Note]
) -> Report:
    """The report of an analysis: its summary, and every figure that the forms of output show."""
    capture = tables.capture.records()[0]
    every, *by_engine = [_figures(row) for row in tables.engine_inferences] or [_NO_INFERENCES]
    gpus = _gpus(tables)
    worked = [
        (gpu.busy_ns, gpu.window_ns) for gpu in gpus if gpu.busy_ns is not None and gpu.window_ns
    ]
    return Report(
        summary=summary,
        trace=TraceFacts(
            copies=len(tables.memcpys),
            **{
                field.name: capture[field.name]
                for field in fields(TraceFacts)
                if field.name in capture
            },  # type: ignore[arg-type]
        ),
        gpus=gpus,
        inferences=every,
        by_engine=tuple(by_engine) if len(by_engine) > 1 else (),
        busy_share=(
            _share(sum(busy for busy, _ in worked), sum(window for _, window in worked))
            if worked
            else None
        ),
        busy_window="inferences" if every.measured else "trace",
        replays=_replays(tables) if capture["cuda_graph_trace"] == "graph" else None,
        layer_time="mean per inference of the engine" if every.measured else "total over the trace",
        tables=tables,
        outcomes=tuple(outcomes),
        notes=tuple(gravest_first(notes)),
    )


def _share(part: float, whole: float) -> float:
    return rounded_share(part / whole) if whole > 0 else 0.0


def _spread(row: Row, name: str) -> Spread | None:
    median, p95 = (row.maybe_integer(f"{name}_{of}_ns") for of in ("median", "p95"))
    return None if median is None or p95 is None else Spread(median, p95)


def _gpus(tables: Tables) -> tuple[Gpu, ...]:
    """The GPUs that worked, with the windows of `device_times`; all GPUs of the machine where the
    trace shows no work.
    """
    times = {row.integer("device"): row for row in tables.device_times}
    known = {row.integer("device"): row for row in tables.devices}
    gpus = []
    for device in sorted(times or known):
        facts, time = known.get(device), times.get(device)
        major = None if facts is None else facts.maybe_integer("compute_major")
        gpus.append(
            Gpu(
                device=device,
                name=(None if facts is None else facts.maybe_text("name")) or "unknown GPU",
                chip=None if facts is None else facts.maybe_text("chip"),
                compute=(
                    None
                    if facts is None or major is None
                    else f"{major}.{facts.maybe_integer('compute_minor') or 0}"
                ),
                sm_count=None if facts is None else facts.maybe_integer("sm_count"),
                memory_bytes=None if facts is None else facts.maybe_integer("memory_bytes"),
                bandwidth_bytes_per_s=(
                    None if facts is None else facts.maybe_integer("bandwidth_bytes_per_s")
                ),
                window_ns=None if time is None else time.integer("window_ns"),
                busy_ns=None if time is None else time.maybe_integer("busy_ns"),
            )
        )
    return tuple(gpus)


def _figures(row: Row) -> InferenceFigures:
    """The inferences of one engine, or of all: a row of `engine_inferences`."""
    return InferenceFigures(
        engine=row.maybe_integer("engine"),
        count=row.integer("inferences"),
        warmup=row.integer("warmup"),
        cut=row.integer("cut"),
        measured=row.integer("steady"),
        found_by=row.maybe_text("found_by"),
        launch_api=row.maybe_text("launch_api"),
        gpu_time_ns=_spread(row, "gpu_time"),
        gpu_span_ns=_spread(row, "gpu_span"),
        enqueue_ns=_spread(row, "enqueue"),
    )


def _replays(tables: Tables) -> ReplayFigures:
    first = next(iter(tables.hidden_replays), None)

    def spread(name: str) -> Spread | None:
        return None if first is None else _spread(first, name)

    return ReplayFigures(
        launches=int(tables.hidden_replays.ints("launches").sum()),
        runs=int(tables.hidden_replays.ints("runs").sum()),
        gpu_time_ns=spread("gpu_time"),
        launch_ns=spread("launch"),
        round_trip_ns=spread("round_trip"),
        gap_ns=spread("between"),
        gaps_of_gpu=len(tables.cuda_graph_traces) > 0,
    )
