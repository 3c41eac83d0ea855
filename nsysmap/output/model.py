"""A report's figures as values, so that all writers show the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nsysmap.answer.model import Summary
from nsysmap.core.note import Note
from nsysmap.core.schema import Tables
from nsysmap.core.table import Row, Table
from nsysmap.rules.finding import Finding, Outcome, by_cost


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
class EngineFile:
    """One engine file, and how many of the inferences ran it."""

    number: int
    source: str
    tensorrt_version: str | None
    layers: int
    detailed: bool
    inferences: int


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
class IdleRow:
    """Idle time of a GPU for one cause, within its window (see Gpu)."""

    device: int
    cause: str
    gaps: int
    time_ns: int
    share_of_window: float


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
    engines: tuple[EngineFile, ...]
    inferences: InferenceFigures
    by_engine: tuple[InferenceFigures, ...]  # empty if one engine, or none, ran
    busy_share: float | None  # busy_ns divided by window_ns, over the GPUs that worked
    busy_window: str  # the kind of window: inferences or trace
    replays: ReplayFigures | None  # where the trace hides the kernels of CUDA graphs
    # a description of the layers' figures: "mean per inference of the engine" or "total over the
    # trace"
    layer_time: str
    idle: tuple[IdleRow, ...]
    tables: Tables  # the declared tables of the analysis: everything that is shown row by row
    outcomes: tuple[Outcome, ...]
    notes: tuple[Note, ...]  # errors first

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
