"""The answer as values: what every writer shows first."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_GPU = "unknown GPU"
INFERENCE, REPETITION = "inference", "repetition"
"""What times are given of: a repetition where no range, graph launch or engine file shows that it is an inference."""


@dataclass(frozen=True)
class Figure:
    """A time with the range that it is believed to lie in; no range where it was measured."""

    ns: int
    low_ns: int | None = None
    high_ns: int | None = None


@dataclass(frozen=True)
class InferenceKind:
    """Inferences that are alike (a row of `inference_groups`); times are over the steady-state ones."""

    what: str  # what ran: an engine, a shape of it (by its kernels), in which thread or on which GPU where that differs
    inferences: int
    warmup: int
    cut: int
    kernels: int | None
    median_ns: int | None  # time per inference in the trace
    p95_ns: int | None
    gpu_time_ns: int | None  # union of its kernels, copies and memsets, the median
    enqueue_ns: int | None


@dataclass(frozen=True)
class IdleCause:
    """Idle time of a GPU for one cause (see the table `gaps`)."""

    cause: str
    ns: int | None  # per unit (see Summary.unit); None where no inference is known
    share_of_window: float


@dataclass(frozen=True)
class GpuTime:
    """How busy one GPU was within its window (a row of `device_times`)."""

    device: int
    name: str
    window: str  # inferences or trace
    window_ns: int
    busy_share: float | None  # None where the trace hides work
    busy_ns: int | None  # per unit
    idle: tuple[IdleCause, ...]  # the most first


@dataclass(frozen=True)
class LayerGroup:
    """Layers whose names differ in numbers only (a row of `repeated_layers`)."""

    name: str
    kind: str
    does: str  # what a kernel that Myelin generated computes, as far as its name says; else empty
    engine: int | None
    layers: int
    kernels: int
    time_ns: int  # per inference of that engine
    share_of_all_kernel_time: float  # also of other engines and of kernels without a layer, in the steady-state part
    opaque: bool  # a Myelin region that the engine file does not open


@dataclass(frozen=True)
class OtherKernels:
    """Kernels of one family that have no layer (a row of `other_kernels`)."""

    family: str
    names: int
    kernels: float  # per unit, as their time
    time_ns: int  # per unit; over the trace where no inference is known
    share_of_all_kernel_time: float


@dataclass(frozen=True)
class KernelShare:
    """All kernels of one name (a row of `kernel_totals`), over the whole trace."""

    name: str
    what: str  # what the name says
    kernels: int
    time_ns: int
    share_of_kernel_time: float


@dataclass(frozen=True)
class Part:
    """Parts of a Myelin region whose names differ in numbers only."""

    name: str
    parts: int
    kernels: float  # per inference
    time_ns: int  # per inference
    share_of_region_time: float


@dataclass(frozen=True)
class Region:
    """What runs inside a Myelin region that the engine file does not open."""

    name: str
    parts: tuple[Part, ...]  # the most time first


@dataclass(frozen=True)
class Slowest:
    """The slowest steady-state inference beside the median of its kind."""

    inference: int
    time_ns: int
    times_median: float
    cause: str | None  # the idle time that it has most more of
    extra_ns: int | None
    early: bool  # all before it of its kind that are no warm-up are outliers too, or none is: it may be warm-up itself


@dataclass(frozen=True)
class Action:
    """Something to do, and what it is predicted to save."""

    name: str  # a change of what-if, or a rule
    title: str
    saving: Figure  # per unit, without the profiler
    share: float | None  # of the time per unit, by the same prediction
    basis: str  # replay (of the timeline) or rule (at most the GPU time that the rule prices)
    throughput_only: bool  # several requests at once finish sooner; no single inference gets faster
    places: int  # findings of that rule; 0 for a change
    paste: str  # one line to paste for TensorRT, or for PyTorch where that is all that runs
    paste_pytorch: str | None  # the same for PyTorch where both run
    rules: tuple[str, ...] = ()  # whose findings are about the same
    idle: tuple[IdleCause, ...] = ()  # that the saving is made of, where it is more than the idle time that the change is about
    filled: float | None = None  # share of the SMs that have a block while kernels run, where most kernels have too few


@dataclass(frozen=True)
class RuleAnswer:
    """What one rule answered (a row of `rule_outcomes`)."""

    rule: str
    group: str
    severity: str
    outcome: str  # found, clean or skipped
    places: int  # findings of its own, those that it tells inside other rules' findings not counted
    at_most_ns: int | None  # what it priced, per unit
    message: str | None  # of its costliest finding


@dataclass(frozen=True)
class GraphVerdict:
    """Whether a CUDA graph would help, by replay."""

    answer: str  # answered, does-not-apply or cannot-tell
    saving: Figure | None  # per unit
    share: float | None  # of the time per unit
    reason: str | None


@dataclass(frozen=True)
class Doubt:
    """Something that could not be determined."""

    what: tuple[str, ...]  # rules or changes
    reason: str


@dataclass(frozen=True)
class NextStep:
    """A command that answers what this analysis cannot."""

    why: str
    command: str


@dataclass(frozen=True)
class EngineRan:
    """One engine file, and whether it is what ran."""

    source: str
    tensorrt_version: str | None
    layers: int
    inferences: int
    verdict: str | None  # of the table `engine_fits`; None where nothing could be compared
    how: str | None


@dataclass(frozen=True)
class Mapped:
    """How many kernels have a layer, and how that is known."""

    kernels: int
    with_layer: int
    share_of_time: float | None  # of kernel time; None where the trace shows no kernels
    methods: tuple[str, ...]  # the one with most kernels first


@dataclass(frozen=True)
class Summary:
    """The answer of one analysis; times are in ns, and per unit where nothing else is said."""

    source: str
    unit: str  # what times are of: "inference", "repetition", or "pass of 2 inferences"
    inferences: int
    steady: int
    tensorrt_version: str | None
    pytorch: bool
    engines: tuple[EngineRan, ...]
    traced: Figure | None  # time per unit in the trace, profiler included: one over throughput
    unprofiled: Figure | None  # the same predicted without the profiler
    trtexec_ns: int | None  # the same as trtexec measured it without the profiler (--times)
    kinds: tuple[InferenceKind, ...]
    gpus: tuple[GpuTime, ...]
    layers: tuple[LayerGroup, ...]  # the most time first
    other_kernels: tuple[OtherKernels, ...]  # the same; their shares and those of the layers add up to 1
    kernels: tuple[KernelShare, ...]  # the ten that cost most
    kernel_kinds: tuple[tuple[str, float], ...]  # kinds of layers, else families of kernels, with their share of kernel time
    slowest: Slowest | None
    regions: tuple[Region, ...]
    rules: tuple[RuleAnswer, ...]  # the most costly first
    graph: GraphVerdict
    replay_error: float | None  # how far the replay of the trace as it is was from the trace
    actions: tuple[Action, ...]  # what makes one inference shorter, what saves most first; then what is throughput only
    doubts: tuple[Doubt, ...]
    mapped: Mapped
    blocked: tuple[str, ...]  # errors: why there is no answer, or not the right one
    warnings: tuple[str, ...]  # what else the reader must know before believing the figures
    next_steps: tuple[NextStep, ...]
    selected: str | None = None  # which part of the report all figures are of; None where it is the whole

    @property
    def per_second(self) -> float | None:
        """Units a second in the trace."""
        return 1e9 / self.traced.ns if self.traced and self.traced.ns else None

    @property
    def unprofiled_per_second(self) -> float | None:
        """Units a second without the profiler: measured by trtexec, else predicted."""
        ns = self.trtexec_ns or (self.unprofiled.ns if self.unprofiled else None)
        return 1e9 / ns if ns else None
