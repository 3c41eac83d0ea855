"""The answer as values, so that all forms of output show the same: what is said first, and the
figures and tables below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Literal

from nsysmap.core.note import Note, WhyUnknown
from nsysmap.core.records import dataclass
from nsysmap.core.schema import ALL_TABLES, Tables
from nsysmap.core.table import Row, Table
from nsysmap.rules.finding import Finding, Outcome, by_cost
from nsysmap.text.units import counted, percent, unit_words
from nsysmap.trace.cpu_samples import (
    CUDA,
    GENERATED,
    JULIA,
    LIBRARY,
    MPI,
    PROFILER,
    PROGRAM,
    PYTHON,
    SYSTEM,
    UNKNOWN,
)

UNKNOWN_GPU = "unknown GPU"
INFERENCE, REPETITION = "inference", "repetition"
"""The unit of times: a repetition if no range, graph launch or engine file shows that it is an
inference.
"""

PASS_OF_ONE = "pass of 1 inference"
"""The unit if so much runs outside the inferences that the time from one to the next is not that of
an inference.
"""

REPLAY = "replay"
"""The window of a GPU whose time is that of the replay, without the profiler."""

WORK = "work"
"""The GPU's work, beside the causes of its idle time."""


@dataclass(frozen=True)
class UnitOfTime:
    """What times refer to: one inference, or a pass of several."""

    inferences: int = 1
    repetitions: bool = False  # of something that nothing shows to be an inference
    among_others: bool = False  # so much runs outside that the time is not the inference's own

    @property
    def one(self) -> str:
        """The word for one of them."""
        return REPETITION if self.repetitions else INFERENCE

    @property
    def is_pass(self) -> bool:
        """Whether it is called a pass."""
        return self.inferences > 1 or self.among_others

    @property
    def short(self) -> str:
        """The unit in one word."""
        return "pass" if self.is_pass else self.one

    @property
    def words(self) -> str:
        """The unit, as after "per"."""
        return PASS_OF_ONE if self.among_others else unit_words(self.inferences, self.one)


@dataclass(frozen=True)
class WhereItRan:
    """The process, thread and GPU where inferences ran, as far as that distinguishes them from
    others.
    """

    process: int | None = None
    gpu: int | None = None
    thread: int | None = None  # its number, from 1
    hidden_graphs: bool = False  # launched as CUDA graphs whose kernels the trace hides

    @property
    def known(self) -> bool:
        """Whether a process, GPU or thread distinguishes it from others."""
        return any(one is not None for one in (self.process, self.gpu, self.thread))

    @property
    def words(self) -> str:
        """The place; empty where it tells nothing."""
        parts = [f"process {self.process}"] if self.process is not None else []
        parts += ["CUDA graphs"] if self.hidden_graphs else []
        parts += [f"GPU {self.gpu}"] if self.gpu is not None else []
        parts += [f"thread {self.thread}"] if self.thread is not None else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Distinction:
    """What distinguishes inferences of one kind from others of the same engine."""

    profile: int | None = None  # optimization profile
    kernels: int | None = None
    own_kernel: str = ""  # the longest kernel that only they launch
    hidden: bool = False  # the trace hides their kernels
    number: int = 1  # among several that this does not tell apart

    @property
    def only_kernels(self) -> bool:
        """Whether the number of kernels is all that is known."""
        return self.profile is None and not (self.own_kernel or self.hidden) and self.number == 1

    @property
    def words(self) -> str:
        """That, in words."""
        if self.hidden:
            what = "hidden kernels"
        elif self.profile is not None:
            what = f"profile {self.profile}"
        else:
            what = counted(self.kernels or 0, "kernel")
            what += f" with {self.own_kernel}" if self.own_kernel else ""
        return f"{what} #{self.number}" if self.number > 1 else what


@dataclass(frozen=True)
class Figure:
    """A time with the range in which it is expected; without a range if it was measured."""

    ns: int
    low_ns: int | None = None
    high_ns: int | None = None


@dataclass(frozen=True)
class InferenceKind:
    """Inferences of one kind (a row of `inference_groups`); times are over the steady-state
    ones.
    """

    # what ran: an engine, inferences of so many kernels (as of one shape), and the thread or GPU if
    # these differ
    what: str = field(init=False)
    inferences: int
    warmup: int
    cut: int
    kernels: int | None
    mean_ns: int | None  # time per inference in the trace
    median_ns: int | None
    p95_ns: int | None
    gpu_time_ns: int | None  # union of its kernels, copies and memsets, the median
    enqueue_ns: int | None
    gpu_span_ns: int | None = None  # from the first of these to the last, the median
    steady: int = 0  # how many of them are in these times
    # what tells them from the same inferences in other parts of the run; empty if the run has one
    # phase
    phase: str = ""
    group: int | None = None  # group_id
    drift: str = ""  # how their time rises or falls over the run; empty if it does not
    engine_name: str = (
        ""  # the engine's, or that it is none that is given; empty where all are alike
    )
    distinction: Distinction | None = None
    place: WhereItRan = WhereItRan()
    one: str = INFERENCE  # the word for one of them

    def __post_init__(self) -> None:
        """Makes the words for them, once."""
        object.__setattr__(self, "what", self.called(first=True))

    @property
    def told_by_kernels_alone(self) -> bool:
        """Whether they are called by what their kernels are, without an engine."""
        return not self.engine_name and self.distinction is not None

    def called(self, *, first: bool, noun: bool = True) -> str:
        """What they are called: with "inferences of" (or "repetitions of") where only kernels tell
        them apart, unless others were named ``first``; without the word kernels behind a bare
        number, unless ``noun``.
        """
        what = self.engine_name
        if self.distinction is not None:
            lead = f"{what} with " if what else f"{self.one}s of " if first else ""
            bare = not noun and self.distinction.only_kernels and not self.place.words
            what = lead + (f"{self.distinction.kernels:,}" if bare else self.distinction.words)
        return ", ".join(part for part in (what, self.place.words) if part)


@dataclass(frozen=True)
class IdleCause:
    """Idle time of a GPU for one cause (see the table `gaps`)."""

    cause: str
    ns: int | None  # per unit (see Answer.unit); None if no inference is known
    share_of_window: float
    # of that share, in which the thread was in no CUDA call; of programs whose launches nothing
    # encloses
    outside_calls: float = 0.0
    # no row of the trace shows most of it: it follows from what is known of the calls
    inferred: bool = False


@dataclass(frozen=True)
class GpuTime:
    """How busy one GPU was within its window (a row of `device_times`).

    The window goes from the begin of the first to the end of the last steady-state inference (host
    call or GPU work); without inferences, from the first to the last GPU work of the trace.
    """

    device: int
    name: str
    window: str  # inferences, trace, or REPLAY
    window_ns: int
    busy_share: float | None  # None if the trace hides work
    busy_ns: int | None  # per unit
    copies_share: float  # of the busy time: copies while nothing else ran
    idle: tuple[IdleCause, ...]  # the most first
    # the part of the window in which a kernel, copy, memset or graph ran
    whole_busy_ns: int | None = None
    # between the first and the last of the window, in none of it: pauses between runs, and
    # inferences that do not count, with the time before them
    left_out_ns: int = 0
    # the slow first repetitions of its loops, before the window (`steady.slow_first`): how many,
    # and how long from their first GPU work to their last
    slow_first: int = 0
    slow_first_ns: int = 0
    # NCCL's kernels in inferences, per unit: waiting for other GPUs is in that; None without any
    collectives_ns: int | None = None


@dataclass(frozen=True)
class UnitUse:
    """How busy one kind of hardware unit was according to counters: the mean over the time of the
    kernels whose value is known.
    """

    unit: str  # SMs active, tensor cores active, device memory (reads and writes)
    percent: float  # of the peak
    # of the kernel time: the kernels whose value is known; None: of the GPU in samples that kernels
    # fill
    known_share: float | None


@dataclass(frozen=True)
class HardwareUse:
    """Sampled hardware counters of one GPU, over the kernels of repeated inferences."""

    device: int
    frequency_hz: float
    units: tuple[UnitUse, ...]  # none if nothing is known of any kernel
    # of the kernel time, during which other work ran too, with which a kernel shares its samples
    concurrent_share: float
    # why nothing is known, otherwise why the value of the longest kernel without one is not
    reason: str | None
    unknown: WhyUnknown | None = None  # the same as a record


@dataclass(frozen=True)
class LayerGroup:
    """Layers whose titles differ only in numbers (a row of `repeated_layers`)."""

    name: str  # the engine's
    title: str  # what they are called
    kind: str
    does: str  # what a kernel generated by Myelin computes, according to its name; otherwise empty
    engine: int | None
    layers: int
    kernels: int
    time_ns: int  # the mean of Answer.kernel_units
    share_of_all_kernel_time: float  # of Answer.kernel_ns
    opaque: bool  # an opaque Myelin region


@dataclass(frozen=True)
class OtherKernels:
    """Kernels of one family that have no layer (a row of `other_kernels`)."""

    family: str
    names: int
    kernels: float  # as their time
    time_ns: int  # the mean of Answer.kernel_units
    share_of_all_kernel_time: float


@dataclass(frozen=True)
class Outside:
    """What the inferences' processes run outside the inferences, in the steady-state part. Shares
    are of the time of all their kernels.
    """

    kernels: float  # per unit
    share: float
    # share of kernels that only TensorRT has by their names: of an engine that is not given
    tensorrt: float
    pytorch: float
    # from an inference's first kernel to its last, the median; None where there are several kinds
    span_ns: int | None


@dataclass(frozen=True)
class KernelShare:
    """All kernels of one name (a row of `kernel_totals`), over the whole trace."""

    name: str
    what: str  # what the name says
    kernels: int
    time_ns: int
    share_of_kernel_time: float


@dataclass(frozen=True)
class RegionPart:
    """Parts of a Myelin region whose names differ only in numbers."""

    name: str
    # what its kernel computes according to its name; empty if the name is not of a kernel that
    # Myelin generated
    does: str
    parts: int
    kernels: float  # as their time
    time_ns: int  # the mean of Answer.kernel_units
    share_of_region_time: float
    does_each: tuple[str, ...] = ()  # what it computes, one by one


@dataclass(frozen=True)
class Region:
    """The work inside an opaque Myelin region."""

    name: str
    engine: int | None
    share_of_all_kernel_time: float
    parts: tuple[RegionPart, ...]  # the most time first


@dataclass(frozen=True)
class Wait:
    """One idle interval of the GPU."""

    ns: int
    # of that, how long the thread that ended it was in CUDA calls; None if unknown
    in_calls_ns: int | None
    # the single call of that thread that more than half of it is in; empty if there is none
    call: str = ""
    in_call_ns: int = 0  # of the interval, how long it was in that call
    call_ns: int = 0  # how long that call took


@dataclass(frozen=True)
class Slowest:
    """The slowest steady-state inference beside the median of its kind."""

    inference: int
    engine: int | None
    time_ns: int
    times_median: float
    usual: int  # the inference with the median time, which it is compared with
    usual_ns: int
    # what it spent more on, the most first: work (of the GPU), and causes of idle time
    more: tuple[tuple[str, int], ...]
    # all earlier ones of its kind after the warm-up are outliers too, or there are none: it may be
    # warm-up itself
    early: bool
    later: bool  # most of its excess had passed before it began
    artefact: bool  # most of its excess is the profiler's own work
    # the longest idle interval of the first cause, if most of its excess is in that
    longest: Wait | None
    device: int | None = None  # its GPU, where inferences ran on several
    kind: str = ""  # what only inferences of its kind have, where its engine has several
    whose: str = ""  # whose median that is: of its phase, or its thread, where there are several

    @property
    def where(self) -> str:
        """Its GPU in words; empty where there is only one."""
        return "" if self.device is None else f" on GPU {self.device}"


@dataclass(frozen=True)
class Disturbance:
    """A host that was held up or slowed down while it enqueued inferences, so that times are not
    those of an undisturbed run.
    """

    # inferences that took 1.25 times the median of their kind or longer for that; 0 if it was not
    # held up
    slow: int = 0
    inferences: int = 0  # of so many
    first: int = 0  # number of the first of them, and …
    last: int = 0  # … of the last
    share: float = 0.0  # of the time, by which they took longer
    times_median: float = 0.0  # that the slowest of them took
    # the function whose calls show that the host was slowed down throughout; empty if it was not
    quick_call: str = ""
    slowdown: float = 1.0  # times the fastest of these calls, the median


@dataclass(frozen=True)
class FirstUse:
    """The inferences that count in no time because kernels were compiled, or their code was loaded,
    in them.
    """

    inferences: tuple[int, ...]  # their numbers
    compile_ns: int  # that it kept them, without what the GPU worked meanwhile
    longest_ns: int  # in the one that took longest
    compiled: bool  # most of it was a compiler's work; otherwise code was loaded that existed
    tried_out: bool  # in some of them kernels were only run to choose the fastest
    remedy: str  # what avoids it, in a sentence for the program that ran
    remedy_brief: str  # the same in a few words


@dataclass(frozen=True)
class SampledCode:
    """Code that a host thread was in, with its share of the CPU samples (see `host_samples`)."""

    owner: str  # mpi, python, …
    library: str | None  # of a library, and of one only, the name of its file
    share: float
    function: str | None  # in which most of these samples are, where they are in one

    @property
    def words(self) -> str:
        """That, after "in"."""
        name = self.library or _OWNERS[self.owner]
        within = "" if self.function is None else f", mostly in {self.function}"
        return f"{name} ({percent(self.share, 1, 0)} of its samples{within})"


MOST = 0.5
"""Share of the samples from which on a thread is said to be in something."""

_OWNERS = {
    MPI: "MPI",
    PYTHON: "Python's interpreter",
    JULIA: "Julia's runtime",
    CUDA: "CUDA's libraries",
    PROFILER: "the profiler",
    LIBRARY: "libraries",
    PROGRAM: "its own code",
    GENERATED: "code compiled at run time",
    SYSTEM: "the operating system",
    UNKNOWN: "unknown code",
}


_NAMED_CODE = 2  # pieces of code that the host was in, at most


@dataclass(frozen=True)
class HostEvidence:
    """What a host thread was doing while the GPU waited for it."""

    kind: str  # range, call, none, … (see the column evidence_kind of `gaps`)
    name: str
    text: str  # both, as the table `gaps` has them
    # what CPU samples show besides, the code with most of them first; empty where there are few
    sampled: tuple[SampledCode, ...] = ()

    @property
    def words(self) -> str:
        """That, after "in"."""
        if self.kind == "none":
            most = self.mostly
            known = [one for one in self.sampled if one.owner != UNKNOWN]
            named = known[:_NAMED_CODE] if most is None else [most]
            return ", ".join(one.words for one in named) or "no CUDA call, no NVTX range"
        return f"NVTX range {self.name}" if self.kind == "range" else self.text

    @property
    def waits_for_ranks(self) -> bool:
        """Whether it is mostly in MPI, where other processes are waited for."""
        return self.mostly is not None and self.mostly.owner == MPI

    @property
    def mostly(self) -> SampledCode | None:
        """What most of the samples are in, where that is one thing."""
        known = (one for one in self.sampled if one.owner != UNKNOWN)
        return next((one for one in known if one.share >= MOST), None)


@dataclass(frozen=True)
class Decoding:
    """A loop that makes one token a step, after a pass over each request's prompt; means over the
    requests of a trace, with the profiler.
    """

    first_token_ns: int  # from the begin of that pass to the begin of the step after it
    token_ns: int  # of a step, from the end of one to the end of the next
    requests: int
    steps: int


GraphOfAll = Literal["python", "program"]
"""Whose launches between two waits one CUDA graph would hold: Python's, or all of the program's."""


@dataclass(frozen=True)
class Action:
    """Something to do, and its predicted saving."""

    name: str  # name of a what-if change, or of a rule
    title: str
    saving: Figure  # per unit, without the profiler
    share: float | None  # share of the time per unit in the same prediction
    basis: str  # replay (of the timeline) or rule (at most the GPU time of its findings)
    throughput_only: bool  # several requests at once finish sooner; no single inference gets faster
    places: int  # findings of that rule; 0 for a change
    # one line to paste for the program that ran and its version of TensorRT; None if no line does
    # it
    paste: str | None
    paste_pytorch: str | None  # the same for PyTorch if both run
    change: str | None = None  # what to change, in a sentence, where there is no line to paste
    # what matters most of a line to paste, or of what to change, where that is long
    paste_brief: str | None = None
    change_brief: str | None = None
    rules: tuple[str, ...] = ()  # whose findings are about the same
    # without the profiler, that the saving is made of, where it is more than the change is about
    idle: tuple[IdleCause, ...] = ()
    # share of the SMs that have a block while kernels run, where most kernels have too few
    filled: float | None = None
    # where most of the host's own work was that the GPU waits for: an NVTX range, or a call
    host_work: str | None = field(init=False)
    host_evidence: HostEvidence | None = None
    after: Figure | None = None  # the time per unit that a replay predicts with the change
    # of whose launches it makes one CUDA graph, where that is more than an inference enqueues
    graph_of_all: GraphOfAll | None = None
    beside: bool = False  # kernels then run beside others, and slow each other by an unknown factor
    # the phase of the run in which nearly all of it is saved, and what an inference of that takes
    # then
    in_phase: str = ""
    # the host's work comes after a copy of results to the host, in what nothing shows to be
    # independent: it may be made of them
    after_results: bool = False

    @property
    def sure(self) -> bool:
        """Whether the range of a replay's saving lies above nothing, on no condition."""
        above = self.basis == "replay" and (self.saving.low_ns or 0) > 0
        return above and not self.after_results

    def __post_init__(self) -> None:
        """Takes the evidence as the trace's tables have it."""
        found = self.host_evidence
        object.__setattr__(self, "host_work", None if found is None else found.text)


IN_A_REGION = "split-inside-region"
"""The rule about blocks that kernel names alone show to be in several kernels."""

_BLOCKS = (("attention", "attention"), ("norm", "norms"), ("softmax", "softmaxes"))


def in_pieces(evidence: Iterable[Mapping[str, object]]) -> str:
    """The blocks of a network that findings show to run in several kernels; empty if their evidence
    does not name any.
    """
    kinds = {str(one["kind"]) for one in evidence if one.get("kind")}
    return " and ".join(word for kind, word in _BLOCKS if kind in kinds)


@dataclass(frozen=True)
class HeadroomGroup:
    """Layers whose titles differ only in numbers (a row of `repeated_layers`), and how far they are
    from the hardware.
    """

    title: str
    engine: int | None
    layers: int
    layer_ids: tuple[int, ...]
    time_ns: int  # per unit
    least_ns: int | None  # that the GPU needs for their bytes and products; None if unknown
    headroom_ns: int = field(init=False)  # the time that could go; 0 if that is unknown
    # why they take longer: a name of nsysmap.core.headroom_reasons.REASONS, of the layer with most
    # headroom
    reason: str
    limit: str | None  # what is longest: device-memory, l2-cache or arithmetic
    reached: float | None  # the share of that limit that they reach, the mean over their time
    # of the longest kernel of that layer, as in the table `headroom`
    waves: float | None
    blocks: int | None
    sms: int | None
    occupancy: float | None
    tile: str | None
    kernel_arch: str | None
    kernels: int  # per inference
    counted: bool  # the least time rests on hardware counters
    shape: str | None = None  # of that layer's product (see the table)
    # what such shapes were measured to take at most, of all layers; None unless of all it is known
    reachable_ns: int | None = None

    def __post_init__(self) -> None:
        """Takes the difference."""
        more = 0 if self.least_ns is None else max(self.time_ns - self.least_ns, 0)
        object.__setattr__(self, "headroom_ns", more)


@dataclass(frozen=True)
class Trial:
    """Something to try on layers that are far from the hardware, with what it saves at most: never
    a prediction.
    """

    name: str  # a key of nsysmap.advice.paste.TRIALS
    title: str
    at_most_ns: int  # per unit: the headroom of the layers that it may help
    layers: tuple[str, ...]  # their titles, those with the most headroom first
    throughput_only: bool
    paste: str | None
    paste_pytorch: str | None
    change: str | None  # what to change, in a sentence, where there is no line to paste
    # what matters most of a line to paste, or of what to change, where that is long
    paste_brief: str | None = None
    change_brief: str | None = None
    # what it saves as measured pairs of other engines suggest, where there are any
    likely: Figure | None = None


@dataclass(frozen=True)
class Headroom:
    """How far the layers of the engines that ran are from the hardware; times are per unit, of
    kernels as recorded.

    ``time_ns`` is the time of all layers, ``known_ns`` that of the layers whose least time is
    known, ``least_ns`` their least time: the GPU needs that for their bytes and products, however
    good its kernels are.  What lies between is at most what could go; no one change removes all of
    it.
    """

    time_ns: int
    known_ns: int
    least_ns: int
    headroom_ns: int = field(init=False)  # the time that could go, of those layers
    # the least time as a share of the time of those layers: 1 is at the hardware's limit
    share: float | None = field(init=False)
    layers: int
    counted_layers: int  # whose least time rests on hardware counters; of the others on the model
    # of which only the bytes of weights are known (dynamic shapes): their least time is too short
    weights_only_layers: int
    groups: tuple[HeadroomGroup, ...]  # the most headroom first, the unknown last
    # names of nsysmap.core.headroom_reasons.REASONS with the headroom of their layers, the most
    # first
    reasons: tuple[tuple[str, int], ...]
    # the GPU works, or has work queued, for at least 80 % of the time: what the host does hardly
    # matters, and this is what is left to gain
    gpu_bound: bool
    trials: tuple[Trial, ...]  # the largest bound first; those for throughput only last
    # time of the layers whose shape was measured on a GPU of this architecture, and what those
    # shapes take at most with good kernels
    compared_ns: int = 0
    reachable_ns: int = 0

    def __post_init__(self) -> None:
        """Takes the difference and the ratio."""
        object.__setattr__(self, "headroom_ns", max(self.known_ns - self.least_ns, 0))
        share = self.least_ns / self.known_ns if self.known_ns else None
        object.__setattr__(self, "share", share)


@dataclass(frozen=True)
class EightBitPart:
    """Layers of an engine with products in 8 bits that have the same part in it (see the table
    `eight_bits`).
    """

    part: str  # product, stayed, convert, epilogue or rest
    why: str | None  # of products that stayed in a wider type
    layers: int
    time_ns: int  # per inference of the engine
    datatypes: tuple[str, ...]
    titles: tuple[str, ...]  # the most time first


@dataclass(frozen=True)
class EightBits:
    """How an engine uses INT8, FP8 or FP4, and what the rest of its time goes to."""

    engine: int | None
    type: str
    time_ns: int  # of all its layers, per inference of the engine
    parts: tuple[EightBitPart, ...]  # the most time first
    # products whose kernels were made for an architecture without tensor cores for the type
    older_products: int
    older_ns: int
    older_arch: str | None
    reached: float | None  # share of their limit that the products reach, the mean over their time


@dataclass(frozen=True)
class RuleAnswer:
    """The answer of one rule (a row of `rule_outcomes`)."""

    rule: str
    group: str
    severity: str
    outcome: str  # found, clean or skipped
    places: int  # its own findings, without those inside other rules' findings
    at_most_ns: int | None  # its findings' cost, per unit
    message: str | None  # message of its costliest finding
    # the layers, blocks or parts that its findings are about; None if they are about none
    where: str | None = None
    in_pieces: str = ""  # which blocks its findings are about, where they say it (see `in_pieces`)


@dataclass(frozen=True)
class GraphVerdict:
    """Whether a CUDA graph would help, by replay."""

    answer: str  # answered, does-not-apply or cannot-tell
    saving: Figure | None  # per unit
    share: float | None  # of the time per unit
    reason: str | None
    perhaps: Figure | None = None  # what it may save where that is too uncertain to answer


@dataclass(frozen=True)
class Doubt:
    """Something that could not be determined."""

    what: tuple[str, ...] = field(init=False)  # rules, and changes of what-if
    reason: str
    rules: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()  # of what-if
    because: str = ""  # the reason, without the table or column that is empty for it
    lacks: str = ""  # that table, or that column (table.column)
    about_engines: bool = False  # it is about the layers of engines

    @property
    def of_a_column(self) -> bool:
        """Whether a column of a table has no value, while the table has rows."""
        return "." in self.lacks

    def __post_init__(self) -> None:
        """Lists all of them."""
        changes = (f"what-if {name}" for name in self.changes)
        object.__setattr__(self, "what", (*self.rules, *changes))


@dataclass(frozen=True)
class Trouble:
    """Why there is no answer, or a wrong one."""

    text: str
    brief: str = ""  # what it says first
    without_command: str = ""  # the same without the command that captures again
    remedy: str = ""  # what to do about it, in a few words, where no command does

    def __post_init__(self) -> None:
        """Without other forms, the text stands for them."""
        object.__setattr__(self, "brief", self.brief or self.text)
        object.__setattr__(self, "without_command", self.without_command or self.text)


@dataclass(frozen=True)
class NextStep:
    """A command that answers what this analysis cannot."""

    why: str
    command: str
    brief: str | None = None  # what matters most of a command that is long


@dataclass(frozen=True)
class EngineRan:
    """One engine file, and whether it ran."""

    source: str
    tensorrt_version: str | None
    layers: int
    detailed: bool  # the file has more than the names of layers
    inferences: int
    verdict: str | None  # verdict in the table `engine_fits`; None if nothing could be compared
    how: str | None
    in_doubt: int = 0  # of its inferences: may be of another engine
    # of its inferences: run other kernels in its layers than those that the file describes
    other_kernels: int = 0
    tactics: int = 0  # layers with a tactic that could be compared with the kernel that ran
    # of them: layers whose tactic names another kernel than the one that ran
    other_tactics: int = 0
    lacking: int = 0  # layers that must run kernels, and ran none
    # no range names its layers: another engine of the same structure would fit as well
    by_order: bool = False
    one_of: int = 0  # files of which one ran, where nothing tells them apart
    # layers named by the ranges of its inferences that the file does not have
    unknown_layers: int = 0
    file: str = ""  # the file that lists it, where that lists several

    @property
    def ran_inferences(self) -> bool:
        """Whether it ran, and most probably some of the inferences; without, it ran perhaps: only
        the names of its layers fit, say.
        """
        return self.verdict == "ran" and 0 <= self.in_doubt < self.inferences

    @property
    def in_file(self) -> str:
        """The name of its file."""
        return self.file or self.source


@dataclass(frozen=True)
class MappedCounts:
    """How many kernels have a layer, and by which methods."""

    kernels: int
    with_layer: int
    # share of the kernel time that the table of layers divides; None if the trace shows no kernels
    share_of_time: float | None
    methods: tuple[str, ...]  # the one with the most kernels first


@dataclass(frozen=True)
class Spread:
    """The middle and the upper end of many times: the median, and the 95th percentile by linear
    interpolation; rounded to ns.
    """

    median_ns: int
    p95_ns: int


@dataclass(frozen=True)
class Gpu:
    """One GPU of the machine."""

    device: int
    name: str
    chip: str | None
    compute: str | None
    sm_count: int | None
    memory_bytes: int | None
    bandwidth_bytes_per_s: int | None


@dataclass(frozen=True)
class TraceFacts:
    """What the trace captured."""

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
    nothing_recurs: bool = False  # whole programs without a loop

    @property
    def one_piece(self) -> bool:
        """Whether all GPU work is a single kernel, copy or memset."""
        return self.kernels + self.copies + self.memsets == 1 and not self.graph_launches


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
    """Known figures of CUDA graph replays whose kernels the trace hides; see the table
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
    """A rule that could not decide, and why."""

    rule: str
    group: str
    reason: str
    lacks: str = ""  # the table without rows, or the column without a value, that it needs
    because: str = ""  # why that is so, or else why it could not tell
    about_engines: bool = False  # it is about the layers of engines


@dataclass(frozen=True)
class LoopAlone:
    """One of several unlike loops."""

    what: str  # its kernel, or how many it has
    median_ns: int  # of one of its repetitions
    share: float  # of the time of all


@dataclass(frozen=True)
class UnlikeLoops:
    """The loops that a program runs one after the other, where a mean over their repetitions is the
    time of none.
    """

    loops: tuple[LoopAlone, ...]  # the one with the most time first
    paused_ns: int  # in the times of repetitions that came after a pause, beyond their usual one


@dataclass(frozen=True)
class NamedWarmUp:
    """Repetitions of one kind that all lie in a range which the program itself calls a warm-up."""

    range: str
    kernels: int
    times: int
    median_ns: int  # of one of them


@dataclass(frozen=True)
class Answer:
    """The answer of one analysis; times are in nanoseconds, per unit unless noted otherwise.

    Its tables are made when they are first asked for.
    """

    source: str
    # the words of unit_of_time
    unit: str = field(init=False)
    unit_of_time: UnitOfTime
    inferences: int
    steady: int
    tensorrt: bool  # whether ranges, kernels or a given engine file show TensorRT
    tensorrt_version: str | None
    pytorch: bool
    program: str  # one of nsysmap.advice.program.KINDS: what the lines to paste are for
    engines: tuple[EngineRan, ...]
    # time per unit in the trace, profiler included: the inverse of throughput; None over unlike
    # loops
    traced: Figure | None
    traced_gpu: int | None  # the GPU that it is of, where other GPUs take another time
    unprofiled: Figure | None  # the same without the profiler, predicted
    trtexec_ns: int | None  # the same without the profiler, measured by trtexec (--times)
    kinds: tuple[InferenceKind, ...]
    gpus: tuple[GpuTime, ...]
    gpu_unprofiled: GpuTime | None  # the same of one GPU without the profiler, as replayed
    counters: tuple[HardwareUse, ...]  # by GPU; none if no hardware counters were sampled
    # verdicts that rest on counters, with their share of the layers' time
    counted_limits: tuple[tuple[str, float], ...]
    layers: tuple[LayerGroup, ...]  # the most time first
    # the same; their shares and the layers' add up to 1, their times to kernel_ns
    other_kernels: tuple[OtherKernels, ...]
    outside: Outside | None  # what runs outside the inferences; None if unknown
    # time of all kernels, with a layer or without; kernels side by side count each, copies not
    kernel_ns: int
    # of how many units times of kernels and layers are the mean; 0 if they are sums: no inference
    # is known, or `hidden`
    kernel_units: float
    units: float  # of how many units the rules' costs are; 0 if no inference is known
    hidden: bool  # the trace hides kernels, inside CUDA graphs traced as a whole
    kernels: tuple[KernelShare, ...]  # the ten with the most time
    # kinds of layers, or families of kernels, with their share of kernel time
    kernel_kinds: tuple[tuple[str, float], ...]
    slowest: Slowest | None
    regions: tuple[Region, ...]
    rules: tuple[RuleAnswer, ...]  # the most costly first
    graph: GraphVerdict
    # time per unit in the trace of those inferences that are replayed: outliers and long pauses are
    # left out
    replayed_ns: int | None
    # difference between the replay without a change and the trace, as a share
    replay_error: float | None
    # actions that shorten one inference, the largest saving first; then those for throughput only
    actions: tuple[Action, ...]
    doubts: tuple[Doubt, ...]
    mapped: MappedCounts
    blocked: tuple[str, ...] = field(init=False)  # the texts of errors
    errors: tuple[Trouble, ...]  # why there is no answer, or a wrong one
    warnings: tuple[str, ...]  # what else the reader must know before trusting the figures
    next_steps: tuple[NextStep, ...]
    trace: TraceFacts
    machine_gpus: tuple[Gpu, ...]  # those that worked; all where the trace shows no work
    figures: InferenceFigures
    figures_by_engine: tuple[InferenceFigures, ...]  # empty if one engine, or none, ran
    busy_share: float | None  # busy time divided by the window's, over the GPUs that worked
    busy_window: str  # the kind of window: inferences or trace
    replays: ReplayFigures | None  # where the trace hides the kernels of CUDA graphs
    tables: Tables  # the declared tables of the analysis: everything that is shown row by row
    outcomes: tuple[Outcome, ...]
    notes: tuple[Note, ...]  # errors first
    # {ForeignNode[…]} layers of the engines that ran; None if no given engine did
    opaque_layers: int | None = None
    selected: str | None = None  # the part of the report that all figures cover; None for the whole
    collectives: bool = False  # inferences exchange data with other GPUs, by NCCL
    # the loops of a GPU, of several processes or threads, do not run at the same time
    in_turn: bool = False
    # whether those of the GPUs are joint inferences, their collectives ending together; None if
    # unknown
    in_step: bool | None = None
    disturbance: Disturbance | None = None  # of the host; None if nothing shows one
    # compilation in the run; None if no inference was excluded for it
    first_use: FirstUse | None = None
    decoding: Decoding | None = None  # None where no loop makes tokens one by one
    # where its version is unknown: "before 10" or "10 or later", as names tell; or "for RTX"
    tensorrt_bound: str | None = None
    tensorrt_since: str | None = None  # the oldest version that it may be, where no newest is known
    # how far the layers are from the hardware; None if nothing is known of any layer
    headroom: Headroom | None = None
    eight_bits: tuple[EightBits, ...] = ()  # of engines with products in 8 bits or fewer
    # then no time is a mean over them, and how busy a GPU was is from the first loop to the last
    unlike_loops: UnlikeLoops | None = None
    named_warm_up: NamedWarmUp | None = None  # of other kernels than what counts

    def __post_init__(self) -> None:
        """Makes the words for the unit and the errors, once."""
        object.__setattr__(self, "unit", self.unit_of_time.words)
        object.__setattr__(self, "blocked", tuple(one.text for one in self.errors))

    @property
    def one_a_unit(self) -> bool:
        """Whether a unit has one inference, or is one repetition."""
        return self.unit_of_time.inferences == 1

    @property
    def usual_ns(self) -> int | None:
        """Time per unit in the trace: the mean, or of unlike loops that of a repetition of the
        longest one; None if unknown.
        """
        if self.unlike_loops is not None:
            return self.unlike_loops.loops[0].median_ns
        return self.traced.ns if self.traced else None

    @property
    def per_second(self) -> float | None:
        """Units per second in the trace."""
        return 1e9 / self.traced.ns if self.traced and self.traced.ns else None

    @cached_property
    def idle_rows(self) -> tuple[Row, ...]:
        """Idle time of each GPU by cause, within its window (see GpuTime): rows of `idle_totals`,
        the most first.
        """
        return tuple(
            sorted(
                self.tables.idle_totals,
                key=lambda row: (row.integer("device"), -row.integer("time_ns"), row.text("cause")),
            )
        )

    @property
    def nothing_ran(self) -> str:
        """Why this is no answer about the files that were given: an engine of theirs did not run,
        or the trace has no GPU work; empty if it is one.
        """
        found = self.trace
        work = found.kernels + found.copies + found.memsets + found.graph_launches
        if not work:
            return f"{self.source} has no GPU work"
        absent = [one.source for one in self.engines if one.verdict == "did-not-run"]
        return f"{' and '.join(absent)} did not run in {self.source}" if absent else ""

    def without_tables(self) -> Answer:
        """A copy without the tables."""
        none = Tables({spec.name: Table.empty(spec) for spec in ALL_TABLES})
        return replace(self, tables=none, outcomes=())

    def time_of(self, gpu: Gpu) -> GpuTime | None:
        """How busy that GPU was; None where the trace shows no work of it."""
        return next((one for one in self.gpus if one.device == gpu.device), None)

    @property
    def layer_time(self) -> str:
        """What the figures of layers are."""
        measured = self.figures.measured
        return "mean per inference of the engine" if measured else "total over the trace"

    @property
    def kernel_time_ns(self) -> int:
        """Time of all kernels of the trace."""
        return int(self.tables.coverage.ints("time_ns").sum())

    @property
    def mapped_rows(self) -> Table:
        """The rows of coverage by the methods that found a layer."""
        return self.tables.coverage.take(~self.tables.coverage.text("method").equals("none"))

    @property
    def shares_of(self) -> str:
        """What the shares of layers refer to."""
        return "all kernel time" if self.replays is None else "visible kernel time"

    @property
    def kernels_shown(self) -> str:
        """The kernels that the trace contains."""
        return "Kernels" if self.replays is None else "Visible kernels"

    @cached_property
    def layer_rows(self) -> tuple[Row, ...]:
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
        """The rules that could not decide."""
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
        """The rules that could decide and found nothing."""
        return tuple(one.rule for one in self.outcomes if one.clean)
