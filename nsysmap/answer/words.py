"""The sentences of the answer: what the terminal, Markdown and the page say first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nsysmap.answer import first_use
from nsysmap.answer.costs import several_processes, whose_unit
from nsysmap.answer.model import (
    IN_A_REGION,
    INFERENCE,
    PASS_OF_ONE,
    REPETITION,
    UNKNOWN_GPU,
    WORK,
    Answer,
    Distinction,
    Figure,
    GpuTime,
    InferenceKind,
    RuleAnswer,
    Slowest,
    UnlikeLoops,
    WhereItRan,
)
from nsysmap.answer.ranks import exchange, jointly, replayed_alone
from nsysmap.answer.whose import among, engines_ran, no_region, outside, whose_slowest
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.records import dataclass
from nsysmap.text.terminal import escaped, told_apart
from nsysmap.text.units import (
    Range,
    counted,
    in_unit,
    multiple,
    percent,
    percent_number,
    range_of,
    rate,
    rate_range,
    rounded,
    rounded_share,
    worded,
)
from nsysmap.trace.inferences.steady import OUTLIER

_LEAST_IDLE = 0.05  # share of the window; smaller causes are added up
_LEAST_REST = 0.005  # of their sum: less is within the rounding of the others
_ALIKE = 0.1  # of their mean: how far the times of threads differ that are told as one
_SAME_TIME = 0.03  # by which two times may differ and be told once
# by which the GPU's work and kernel time may differ and be told once: copies, memsets, and kernels
# side by side
_SAME_WORK = 0.01
_LEAST_OUTSIDE = 0.005  # of the kernel time; less changes no figure that is told
_LEAST_COPIES = 0.05  # of the time that a GPU is busy
MOST_KINDS = 4
"""How many kinds of inferences the answer names."""
_UNLIKE = 1.1  # ratio to the time per inference; the GPU cannot be busy longer than that
# ratio of the times of two kinds of repetitions, from which on a mean over both is that of neither
_UNLIKE_KINDS = 1.25
_ALIKE = 0.1  # by which the medians of GPUs that do the same may differ, to be told as one
# of the repetitions that compile or load kernels, from which on they are not counted with the
# others
_START_UP = 0.1
_FEW = 10  # inferences; of eleven, one more or less changes a mean by less than the ratio above
_FEWER = 1.5  # ratio of the work implied by the busy share to the work measured
_ONE_PERCENT = 0.01  # from here on a share is said in whole percent
# times the replayed inferences' time that all take on average, from which pauses too are left out
# of the replay
_LEFT_OUT = 1.25
_FUSION = "fusion"
_NOT_FUSED = ("unfused-quantize",)  # rules of other groups about missing fusions
# rules of that group about something else: what could run at the same time
_ALONGSIDE = ("parallel-small-kernels",)
_NO_TENSORRT = "only TensorRT is checked, and the trace shows none"
NOT_ABOUT_THIS = "they are about TensorRT, and the trace shows none"
"""Why rules about engines could not decide in a program without engines."""
_PLACE_WIDTH = 44  # of the layers in which something was not fused
_UNFUSED = {
    "attention-not-fused": "attention",
    "norm-split": "norms",
    "softmax-split": "softmaxes",
    IN_A_REGION: "attention or norms in several kernels",
    "pointwise-chain": "element-wise",
    "epilogue-missed": "epilogues",
    "qkv-not-merged": "Q, K and V GEMMs",
    "cast-chain": "casts that undo each other",
    "data-movement": "kernels that only move data",
    "fragmented-myelin": "Myelin's regions",
    "unfused-quantize": "Q/DQ",
}
"""What was not fused, by the rule that finds it."""


def title(summary: Answer) -> str:
    """What ran and where, with the name of the report."""
    return f"{summary.source}: {ran(summary)}"


def ran(summary: Answer) -> str:
    """What ran and where."""
    either = [engine.source for engine in summary.engines if engine.one_of]
    others = [engine for engine in summary.engines if not engine.one_of]
    ran = [engine.source for engine in others if engine.verdict == "ran" or engine.inferences]
    ran += [" or ".join(either)] if either else []
    perhaps = [
        engine.source
        for engine in others
        if engine.verdict not in ("ran", "did-not-run") and not engine.inferences
    ]
    parts = [
        (
            counted(whole_ones(summary), "inference")
            if summary.inferences
            else f"{none_of(summary)} recognised"
        )
    ]
    if summary.inferences and summary.unit_of_time.repetitions:
        before = len(summary.first_use.inferences) if summary.first_use else 0
        after = (
            f" after {before:,} that compile or load them"
            if before > _START_UP * summary.inferences
            else ""
        )
        number = whole_ones(summary) - (before if after else 0)
        parts = [
            f"{counted(number, REPETITION)} of {_sequences(summary)}{after} (no range marks an"
            " inference)"
        ]
    own = sum(engine.inferences for engine in summary.engines)
    if ran:
        known = own == summary.inferences or not own
        doubtful = own and own == sum(engine.in_doubt for engine in summary.engines)
        parts[0] += (
            f"{'' if known else f', {own:,}'} {'perhaps ' if doubtful else ''}of"
            f" {' and '.join(ran)}"
        )
    parts[0] += f", perhaps of {' or '.join(perhaps)}" if perhaps and summary.inferences else ""
    parts[0] += among(summary)
    names = [gpu.name for gpu in summary.gpus]
    gpus = [_models(name, names.count(name)) for name in dict.fromkeys(names)]
    parts += [f"on {', '.join(gpus)}{exchange(summary)}"] if gpus else []
    text = " ".join(parts)
    version = summary.tensorrt_version or (
        f"{summary.tensorrt_since}+" if summary.tensorrt_since else summary.tensorrt_bound
    )
    return (
        text
        + (f", TensorRT {version}" if version else "")
        + (", PyTorch" if summary.pytorch else "")
    )


def first_doubt(summary: Answer, *, brief: bool = False) -> str:
    """Why the times that follow are doubtful: a host that was held up or slowed down while
    recorded; empty if neither.
    """
    found = summary.disturbance
    if found is None:
        return ""
    told = [
        f"held up in {found.slow} of {counted(found.inferences, each(summary))},"
        f" {percent(found.share, 1, 0)} of the time"
    ] * bool(found.slow)
    slowed = (
        f"slowed down: most calls of {found.quick_call} take {multiple(found.slowdown)} x the"
        " fastest"
    )
    told += (
        ([slowed] if not told else [f"slowed down ({multiple(found.slowdown)} x)"])
        if found.quick_call
        else []
    )
    shorter = "the times are shorter on an idle machine"
    return f"the host was {' and '.join(told)}{'' if brief else f'; {shorter}'}"


def none_of(summary: Answer) -> str:
    """What was not found if there are no inferences: in a program without TensorRT, anything that
    repeats.
    """
    return "no inference" if summary.tensorrt else "no repeating work"


def in_its_words(summary: Answer, template: str) -> str:
    """A sentence whose template has ``{:inference}`` where the word for what runs belongs."""
    inferences = not summary.unit_of_time.repetitions and (summary.inferences or summary.tensorrt)
    return worded(template, repetitions=not inferences)


def _sequences(summary: Answer) -> str:
    """What repeats: the same kernels on each thread, process and GPU, or sequences of kernels that
    differ.
    """
    whole = [
        kind for kind in summary.kinds if kind.inferences > kind.cut + kind.warmup
    ] or summary.kinds
    # phases of one sequence are called the same
    phases = {
        (kind.engine_name, kind.distinction, kind.place): kind for kind in whole if kind.phase
    }
    kinds = Counter(
        _spot(kind) for kind in (*(kind for kind in whole if not kind.phase), *phases.values())
    )
    most = max(kinds.values(), default=1)
    return "the same kernels" if most == 1 else f"{most} sequences of kernels"


def _models(name: str, count: int) -> str:
    if name == UNKNOWN_GPU:
        return (
            f"{counted(count, 'GPU')} of unknown model" if count > 1 else "a GPU of unknown model"
        )
    return f"{count} x {name}" if count > 1 else name


def times(summary: Answer, *, brief: bool = False) -> list[str]:
    """Time per inference and throughput, in the trace and without the profiler; the latter in fewer
    words if ``brief``.
    """
    unit = summary.unit
    lines = []
    if summary.traced and summary.per_second:
        beside, one = together(summary), summary.unit_of_time.short
        per = (
            f"from the end of one {one} to the end of the next"
            if _concurrent(summary).at_once
            else f"per {unit}"
        )
        mean = (
            f"{rounded(summary.traced.ns)} mean{median(summary, summary.traced.ns)} {per} in the"
            " trace"
        )
        mean = _of_main_kind(summary, mean)
        lines.append(f"{mean}, {throughput(summary, summary.traced.ns)}{beside}")
        lines += [told] if (told := outside(summary)) else []
        lines += [told] if (told := _drift(summary)) else []
    elif summary.unlike_loops is not None:
        lines.append(_of_loops(summary, summary.unlike_loops))
    if summary.trtexec_ns:
        lines.append(
            f"{rounded(summary.trtexec_ns)} without the profiler, as trtexec measured it,"
            f" {throughput(summary, summary.trtexec_ns)}"
        )
    elif summary.unprofiled:
        predicted = (
            f"{figure(summary.unprofiled)} predicted without"
            f" {'' if brief else 'the '}profiler{left_out(summary)}"
        )
        if (main := mean_misleads(summary)) is not None:
            predicted += f" in the mean over {counted(main.kinds, 'kind')}"
        rate = f"{rate_of(summary.unprofiled)}{rate_unit(summary, brief=brief)}"
        lines.append(f"{predicted}, {rate}{replayed_alone(summary)}")
    elif summary.traced:
        reason = "see above" if summary.blocked else not_replayed(summary)
        lines.append("without the profiler: cannot tell" + (f" ({reason})" if reason else ""))
    elif told := alone(summary):
        lines.append(told)
    excluded = first_use.sentence(summary.first_use, each(summary), summary.usual_ns or 0)
    return [*lines, *([excluded] if excluded else [])]


_LOOPS_NAMED = 3  # of more loops the number is told: a line has room for no more


def _of_loops(summary: Answer, found: UnlikeLoops) -> str:
    """The times of unlike loops, each of its own repetitions: a mean over all is of none."""
    told = [
        f"{rounded(one.median_ns)} of {one.what} ({percent(one.share, 1, 0)} of the time)"
        for one in found.loops[:_LOOPS_NAMED]
    ]
    more = counted(len(found.loops) - len(told), "more loop")
    told += [more] if len(found.loops) > len(told) else []
    short = summary.unit_of_time.short
    return f"median per {short} of each of {len(found.loops)} unlike loops: {', '.join(told)}"


@dataclass(frozen=True)
class MainKind:
    """The kind of repetitions that takes most of the time, where unlike things repeat."""

    what: str
    mean_ns: int
    share: float  # of the time of all
    kinds: int


def main_kind(summary: Answer) -> MainKind | None:
    """The kind of repetitions that takes most of the time, where unlike things repeat; None where
    they do not.
    """
    known = [
        kind
        for kind in summary.kinds
        if kind.mean_ns is not None and kind.inferences > kind.warmup + kind.cut
    ]
    gpu = summary.traced_gpu if not summary.in_step else None
    if gpu is not None:  # whose mean it is
        known = [kind for kind in known if kind.place.gpu in (gpu, None)]
    if (
        summary.unit != REPETITION
        or len(known) < 2
        or any(kind.phase or replace(kind.place, gpu=None).known for kind in known)
        or (gpu is None and any(kind.place.known for kind in known))
    ):
        return None
    took = [(kind.mean_ns or 0) * (kind.inferences - kind.warmup - kind.cut) for kind in known]
    main = known[took.index(max(took))]
    if max(kind.mean_ns or 0 for kind in known) < _UNLIKE_KINDS * min(
        kind.mean_ns or 0 for kind in known
    ):
        return None
    alone = replace(main, place=replace(main.place, gpu=None))  # it is told behind the rate
    what = alone.called(first=False) or counted(main.kernels or 0, "kernel")
    return MainKind(what, main.mean_ns or 0, max(took) / max(sum(took), 1), len(known))


def _of_main_kind(summary: Answer, mean: str) -> str:
    """The time of the kind of repetitions that takes most of the time, before the mean over all,
    where unlike things repeat.
    """
    main = main_kind(summary)
    if main is None:
        return mean
    return (
        f"{rounded(main.mean_ns)} mean per {REPETITION} of {main.what}"
        f" ({percent(main.share, 1, 0)} of the time), {mean} over {counted(main.kinds, 'kind')}"
    )


def mean_misleads(summary: Answer) -> MainKind | None:
    """The kind that takes most of the time, where the mean over all is another time; None where it
    is not.
    """
    main, mean = main_kind(summary), summary.traced
    if main is None or mean is None:
        return None
    ratio = main.mean_ns / max(mean.ns, 1)
    return main if not 1 / _UNLIKE_KINDS < ratio < _UNLIKE_KINDS else None


def whole_ones(summary: Answer) -> int:
    """How many inferences are in the trace as a whole; of repetitions that nothing marks those of
    kinds that count: others are what comes before a program's loop, or by chance.
    """
    repetitions = summary.unit_of_time.repetitions and summary.steady
    left_out = sum(
        kind.cut if kind.steady or not repetitions else kind.inferences for kind in summary.kinds
    )
    return max(summary.inferences - left_out, summary.steady) or summary.inferences


def in_none(summary: Answer) -> float:
    """The share of all kernel time in the trace that lies outside the repetitions that count, and
    outside the time from the first of them to the last; 0 where inferences are known.
    """
    if not summary.unit_of_time.repetitions or summary.hidden or not summary.kernel_units:
        return 0.0
    whole = int(summary.tables["kernel_totals"].ints("time_ns").sum())
    return max(0.0, 1 - summary.kernel_ns * summary.kernel_units / max(whole, 1))


def alone(summary: Answer) -> str:
    """The known time if no inference follows another of its kind, as in a trace of one: its GPU
    work from first to last.
    """
    known = [kind for kind in summary.kinds if kind.steady and kind.gpu_span_ns]
    if len(known) != 1:
        return ""
    return in_its_words(
        summary,
        f"{rounded(known[0].gpu_span_ns)} from the first GPU work of {{:an inference}} to its last;"
        " with waits unknown, because no {:inference} follows another of its kind",
    )


def not_replayed(summary: Answer) -> str:
    """Why what-if has no answer."""
    return "; ".join(doubt.reason for doubt in summary.doubts if doubt.changes)


def median(summary: Answer, mean_ns: int) -> str:
    """The median, where all inferences are of one kind, on however many GPUs, and it is not the
    mean.
    """
    medians = [kind.median_ns for kind in summary.kinds if kind.median_ns is not None]
    if (
        not medians
        or len(medians) < len(summary.kinds)
        or len({replace(kind, place=WhereItRan()).what for kind in summary.kinds}) > 1
        or (len(medians) > 1 and not all(kind.place.gpu is not None for kind in summary.kinds))
        or max(medians) > (1 + _ALIKE) * min(medians)
        or summary.unit not in (INFERENCE, REPETITION, PASS_OF_ONE)
    ):
        return ""
    median_ns = round(sum(medians) / len(medians))
    if abs(median_ns - mean_ns) <= _SAME_TIME * mean_ns:
        return ""
    median, mean = in_unit(median_ns, mean_ns), in_unit(mean_ns)
    return f" (median {median.number if median.unit == mean.unit else median})"


def _drift(summary: Answer) -> str:
    """How the time per inference drifts, of the kind that takes most of the time among those that
    do; empty if none does.
    """
    drifting = [kind for kind in summary.kinds if kind.drift and kind.mean_ns is not None]
    if not drifting:
        return ""
    most = max(drifting, key=lambda kind: (kind.mean_ns or 0) * kind.inferences)
    return f"{_kind(most)}: {most.drift}" if len(summary.kinds) > 1 else most.drift


def left_out(summary: Answer) -> str:
    """What else the time without the profiler leaves out, if that matters, and its share of the
    trace.
    """
    longer = _longer(summary)
    if abs(longer - 1) <= _SAME_TIME:
        return ""
    if longer > _LEFT_OUT:
        return f", pauses and outliers ({_most(1 - 1 / longer)} of the trace)"
    return " and outliers" if longer > 1 else " for those replayed"


def _longer(summary: Answer) -> float:
    """How many times as long as what is replayed of the trace its time per inference is; 1 where
    the two are not of the same GPU.
    """
    replayed = None if summary.gpu_unprofiled is None else summary.gpu_unprofiled.device
    if (
        summary.replayed_ns is None
        or summary.traced is None
        or summary.traced_gpu not in (None, replayed)
    ):
        return 1.0
    return summary.traced.ns / max(summary.replayed_ns, 1)


def of_the_trace(summary: Answer, ns: int) -> str:
    """The share of the trace's time per inference that a time is, if the replay leaves out so much
    that its own share differs; otherwise empty.
    """
    if summary.traced is None or _longer(summary) <= _LEFT_OUT:
        return ""
    share = ns / summary.traced.ns
    return f"{percent(share, 1, 0 if share >= _ONE_PERCENT else 2)} of the trace"


def _most(share: float) -> str:
    """A share in percent that may be nearly all."""
    return percent(share, 1, 0 if share <= 1 - _ONE_PERCENT else 1)


def throughput(summary: Answer, unit_ns: int) -> str:
    """How many a second that is."""
    return f"{rate(1e9 / max(unit_ns, 1))} {per_second(summary)}"


def at_once(summary: Answer) -> bool:
    """Whether several threads or processes run on the GPU that the time is of."""
    return _concurrent(summary).at_once


def rate_of(value: Figure) -> str:
    """How many a second, no finer than the range of the time allows."""
    if value.low_ns is None or value.high_ns is None:
        return rate(1e9 / max(value.ns, 1))
    return rate_range(*(1e9 / max(one, 1) for one in (value.ns, value.high_ns, value.low_ns))).alone


def per_second(summary: Answer) -> str:
    """What a rate counts."""
    return "passes/s" if summary.unit_of_time.is_pass else "per second"


def rate_unit(summary: Answer, *, brief: bool) -> str:
    """The unit of a rate after a number; of inferences in one word if ``brief``."""
    return "/s" if brief and not summary.unit_of_time.is_pass else f" {per_second(summary)}"


def each(summary: Answer) -> str:
    """The word for one repetition."""
    return summary.unit_of_time.one


@dataclass(frozen=True)
class _Concurrent:
    """How many threads, or processes, run inferences of the same time per inference."""

    gpus: int = 1  # on so many GPUs
    threads: int = 1
    processes: int = 1
    in_turn: bool = False

    @property
    def at_once(self) -> bool:
        """Whether several run at the same time."""
        return not self.in_turn and max(self.threads, self.processes) > 1


def _spot(kind: InferenceKind) -> tuple[int | None, int | None, int | None]:
    return kind.place.process, kind.place.gpu, kind.place.thread


def _concurrent(summary: Answer) -> _Concurrent:
    """How many work at the same time, or in turn, on the GPU that the time is of."""
    spots = {_spot(kind) for kind in summary.kinds if kind.median_ns is not None}
    gpus: dict[int | None, list[int | None]] = {}
    for process, gpu, _ in spots:
        gpus.setdefault(gpu, []).append(process)
    count = len(gpus)
    if summary.traced_gpu is not None and not summary.in_step:
        gpus = {gpu: those for gpu, those in gpus.items() if gpu == summary.traced_gpu}
    most = max(gpus.values(), key=len, default=[])
    return _Concurrent(count, len(most), len(set(most)), summary.in_turn)


def each_alike(summary: Answer) -> int | None:
    """The time of each inference, with waits, if threads or processes that run at the same time
    differ in nothing else and take about as long; otherwise None.
    """
    known = [kind for kind in summary.kinds if kind.mean_ns is not None]
    if len(known) < 2 or any(kind.phase or kind.distinction is not None for kind in known):
        return None
    if len({kind.engine_name for kind in known}) > 1 or len(set(map(_spot, known))) < len(known):
        return None
    means = [kind.mean_ns or 0 for kind in known]
    if not at_once(summary) or len({kind.place.gpu for kind in known}) > 1:
        return None
    mean = sum(means) / len(means)
    return round(mean) if max(means) - min(means) <= _ALIKE * mean else None


def together(summary: Answer, each_takes: str = "") -> str:
    """Why the time is shorter than that of each inference if several threads work at the same time,
    and what each takes, where that is known.
    """
    found = _concurrent(summary)
    each = jointly(summary) or (" on each GPU" if found.gpus > 1 else "")
    if summary.traced_gpu is not None and not summary.in_step:
        each = f" on GPU {summary.traced_gpu}"
    how = "one after the other" if found.in_turn else "together"
    threads, processes = f"{found.threads} threads {how}", f"{found.processes} processes {how}"
    if each_takes:
        threads, processes = (
            f"{found.threads} threads, {each_takes} each",
            f"{found.processes} processes, {each_takes} each",
        )
    if found.processes > 1:
        return f"{each} ({processes})"
    return f"{each} ({threads})" if found.threads > 1 else each


def kinds(summary: Answer, most: int = MOST_KINDS) -> str:
    """The time per inference of each kind, if there are several; of ``most`` kinds at most."""
    known = [kind for kind in summary.kinds if kind.mean_ns is not None]
    if len(known) < 2:
        return ""
    phases = any(kind.phase for kind in known)
    shown = [_distinct(kind) for kind in known[:most]]
    several = any(not kind.phase for kind in known)
    head = (
        ("mean with waits, in phases the median: " if several else "phases, median with waits: ")
        if phases
        else "mean with waits: "
    )
    if all(kind.told_by_kernels_alone for kind in shown) and not phases:
        head = f"mean of {each(summary)}s "
        names = [f"of {kind.called(first=False, noun=kind is shown[0])}" for kind in shown]
    else:
        names = [_kind(kind) for kind in shown]
    told = [
        f"{name}: {_took(kind)} ({kind.steady:,}x)" for name, kind in zip(names, shown, strict=True)
    ]
    more = f" and {counted(len(known) - most, 'more kind')}" if len(known) > most else ""
    return f"{head}{', '.join(told)}{more}"


def _took(kind: InferenceKind) -> str:
    """How long one of these inferences takes: from the end of the one before to its own, with
    waits; or, where others of its loop end shortly before it, from its first GPU work to its last:
    the time since the last of those is only a part of it.
    """
    if kind.phase:
        return rounded(kind.median_ns)  # a pause between two phases is in the mean of one
    if (
        kind.gpu_time_ns and kind.gpu_span_ns and (kind.median_ns or 0) < kind.gpu_time_ns
    ):  # of each it is the less
        return f"{rounded(kind.gpu_span_ns)} from first to last GPU work, others within"
    return rounded(kind.mean_ns)


def _kind(kind: InferenceKind) -> str:
    """What distinguishes these inferences from the others."""
    if not kind.phase:
        return _distinct(kind).what
    return ", ".join(part for part in (kind.what, kind.phase) if part)


def _distinct(kind: InferenceKind) -> InferenceKind:
    """The distinction, by number of kernels if nothing else distinguishes it."""
    if kind.what or kind.phase:
        return kind
    return replace(kind, distinction=Distinction(kernels=kind.kernels or 0))


def mixture(summary: Answer) -> str:
    """What times per inference are averaged over, if inferences of one engine differ, as in their
    shapes; otherwise empty.
    """
    known = [kind for kind in summary.kinds if not kind.phase and kind.mean_ns is not None]
    mixed = [kind for kind in known if kind.distinction and not kind.distinction.hidden]
    if len(mixed) < 2 or not summary.kernel_units:
        return ""
    of = [f"{kind.called(first=False)} ({kind.steady:,}x)" for kind in mixed]
    return f"No {each(summary)} takes these times: they are means over those of {' and '.join(of)}."


def where(summary: Answer) -> list[str]:
    """GPU work and idle time by cause of each GPU; of the one that was replayed, each share also
    without the profiler.
    """
    if not summary.gpus and summary.blocked:
        return ["busy and idle time unknown: the trace shows no GPU work"]
    without = summary.gpu_unprofiled
    return [
        told
        for gpu in summary.gpus
        for told in _gpu(
            summary, gpu, without if without and without.device == gpu.device else None
        )
    ]


def one_piece(summary: Answer, gpu: GpuTime) -> str:
    """How long a single piece of GPU work is, of the trace: from its begin to its end the GPU is
    always busy.
    """
    found = summary.trace
    what = "kernel" if found.kernels else "copy" if found.copies else "memset"
    return f"one {what}, {rounded(gpu.window_ns)}, in {rounded(found.duration_ns)} of trace"


def _gpu(summary: Answer, gpu: GpuTime, without: GpuTime | None) -> list[str]:
    """How busy a GPU was, and why it was idle; in two sentences that have both figures of each
    share where it was replayed.
    """
    which = f"GPU {gpu.device} " if len(summary.gpus) > 1 else ""
    if gpu.busy_share is None:
        return [f"{which}busy time unknown: the trace hides work"]
    if summary.trace.one_piece:
        return [one_piece(summary, gpu)]
    span = "in the trace" if gpu.window == "inferences" else "from first to last work"
    work_ns = (
        gpu.busy_ns
        if gpu.busy_ns is not None or len(summary.kinds) != 1
        else summary.kinds[0].gpu_time_ns
    )
    if (
        work_ns is not None
        and summary.traced is not None
        and _unlike(summary, gpu, work_ns / max(summary.traced.ns, 1))
    ):
        # the mean over different kinds of inferences, while the time is that of some
        work_ns = None
    elif (
        len(summary.gpus) == 1
        and summary.traced is not None
        and (gpu.busy_ns or 0) > _UNLIKE * gpu.busy_share * summary.traced.ns
    ):
        span += ", pauses included"  # which the time per inference leaves out
    if _of_few(summary, gpu):
        span, work_ns = f"from the first {summary.unit_of_time.short} to the last", None
    whose = whose_unit(summary)
    per = (
        [f"{rounded(work_ns)}{f' per {whose}' if several_processes(summary) else ''}"]
        if work_ns is not None
        else []
    )
    per += (
        [f"{percent(gpu.copies_share, 1, 0)} of it copies"]
        if gpu.copies_share >= _LEAST_COPIES
        else []
    )
    per += [told] if work_ns is not None and (told := _kernels(summary, gpu)) else []
    per += (
        [f"{rounded(gpu.collectives_ns)} in collectives"]
        if gpu.collectives_ns and work_ns is not None
        else []
    )
    told = f"{which}{percent(gpu.busy_share, 1, 0)} busy {span}" + (
        f" ({', '.join(per)})" if per else ""
    )
    if without is None:
        return [f"{told}; {idle}" if (idle := _idle([gpu])) else told]
    pauses = " and pauses" if _longer(summary) > _LEFT_OUT else ""
    told += (
        f" → {percent(without.busy_share or 0.0, 1, 0)} without the profiler{pauses}"
        f" ({rounded(without.busy_ns)})"
    )
    return [told, *([f"{which}{idle}"] if (idle := _idle([gpu, without])) else [])]


def unprofiled(summary: Answer) -> str:
    """The busy and idle share of the replay without the profiler; empty if there is none."""
    gpu = summary.gpu_unprofiled
    if gpu is None:
        return ""
    which = f"GPU {gpu.device} " if len(summary.gpus) > 1 else ""
    told = (
        f"{which}{percent(gpu.busy_share or 0.0, 1, 0)} busy without the profiler"
        f" ({rounded(gpu.busy_ns)})"
    )
    return f"{told}; {idle}" if (idle := _idle([gpu])) else told


def _idle(worlds: Sequence[GpuTime]) -> str:
    """The idle share by cause, small ones together: of the trace, or of the trace and then without
    the profiler.
    """
    by_cause = [{one.cause: one.share_of_window for one in gpu.idle} for gpu in worlds]
    causes = dict.fromkeys(one.cause for gpu in worlds for one in gpu.idle)
    large = [
        cause
        for cause in causes
        if max(shares.get(cause, 0.0) for shares in by_cause) >= _LEAST_IDLE
    ]
    large.sort(key=lambda cause: [-shares.get(cause, 0.0) for shares in by_cause])
    rest = [
        max(1 - (gpu.busy_share or 0.0) - sum(shares.get(cause, 0.0) for cause in large), 0.0)
        for gpu, shares in zip(worlds, by_cause, strict=True)
    ]
    inferred = {one.cause for gpu in worlds for one in gpu.idle if one.inferred}
    outside = {
        one.cause: one.outside_calls for one in worlds[0].idle if one.outside_calls >= _LEAST_IDLE
    }
    told = [
        (
            _shares([shares.get(cause, 0.0) for shares in by_cause]),
            idle_words(cause, inferred=cause in inferred),
        )
        for cause in large
    ]
    parts = [" ".join(words) for words in told]
    for at, cause in enumerate(large):
        parts[at] += (
            f" ({percent(outside[cause], 1, 0)} in no CUDA call)" if cause in outside else ""
        )
    parts += [f"{_shares(rest)}{' other' if large else ''}"] if max(rest) >= _LEAST_REST else []
    return f"idle {', '.join(parts)}" if parts else ""


def _shares(shares: Sequence[float]) -> str:
    return "→".join(percent_number(rounded_share(share), 1, 0) for share in shares) + "%"


def _kernels(summary: Answer, gpu: GpuTime) -> str:
    """The kernel time, which the table of layers divides, where it is not the GPU work that was
    just given.
    """
    if (
        len(summary.gpus) != 1
        or gpu.busy_ns is None
        or not (summary.layers and summary.kernel_units)
        or abs(summary.kernel_ns - gpu.busy_ns) <= _SAME_WORK * gpu.busy_ns
    ):
        return ""
    if summary.kernel_ns > gpu.busy_ns:
        return f"kernels side by side: {rounded(summary.kernel_ns)}"
    return f"kernels {rounded(summary.kernel_ns)}" if gpu.copies_share < _LEAST_COPIES else ""


def filled(summary: Answer) -> float | None:
    """The share of the SMs that have a block while kernels run, where the one GPU's kernels were
    found to be small.
    """
    return (
        next((one.filled for one in summary.actions if one.filled is not None), None)
        if len(summary.gpus) == 1
        else None
    )


def whose_filled(summary: Answer) -> str:
    """The owner of the kernels that the share of busy SMs was measured over; empty where they are
    all that ran.
    """
    others = summary.outside is not None and summary.outside.share >= _LEAST_OUTSIDE
    return "the inferences'" if others else ""


def filled_kernels(summary: Answer) -> str:
    """The kernels that the share of busy SMs is measured over."""
    whose = whose_filled(summary)
    return f"{whose} kernels" if whose else "kernels"


def _unlike(summary: Answer, gpu: GpuTime, part: float) -> bool:
    """Whether the GPU work per inference contradicts the busy share."""
    return part > _UNLIKE or (
        len(summary.gpus) == 1 and gpu.busy_share is not None and part < gpu.busy_share / _FEWER
    )


def _of_few(summary: Answer, gpu: GpuTime) -> bool:
    """Whether the mean time contradicts the busy share because so few inferences were timed that
    the first one's begin matters: its time counts from the end of the one before, which is not in
    the window, or is unknown.
    """
    if (
        len(summary.gpus) != 1
        or summary.traced is None
        or not gpu.busy_ns
        or not gpu.busy_share
        or summary.steady > _FEW
    ):
        return False
    part = gpu.busy_ns / summary.traced.ns
    return not 1 / _UNLIKE <= part / gpu.busy_share <= _UNLIKE


def figure(value: Figure) -> str:
    """A time, with its range if it has one."""
    found = figure_range(value)
    return rounded(value.ns) if found is None else str(found)


def figure_range(value: Figure) -> Range | None:
    """A time with its range; None if it has none."""
    if value.low_ns is None or value.high_ns is None:
        return None
    return range_of(value.ns, value.low_ns, value.high_ns)


def of_fusion(group: str, rule: str) -> bool:
    """Whether a rule of this group is about something that could be fused."""
    return (group == _FUSION and rule not in _ALONGSIDE) or rule in _NOT_FUSED


def not_fused(summary: Answer, *, places: bool = True, counts: bool = True) -> str:
    """What was not fused, by rule, with the number of places (``counts``) and the costliest with
    its layers (``places``); or that nothing was found, or that it could not be determined.
    """
    mine = [one for one in summary.rules if of_fusion(one.group, one.rule)]
    found = [one for one in mine if one.outcome == "found" and one.places]
    clean = [one for one in mine if one.outcome == "clean"]
    skipped = [one for one in mine if one.outcome == "skipped"]
    if found:
        told = ", ".join(
            _unfused(one, one.where if places and one is found[0] else None, counts=counts)
            for one in found
        )
        return told + ("; at most" if any(one.at_most_ns for one in found) else "")
    if not mine:
        return "no rule ran"
    if summary.engines and all(engine.verdict == "did-not-run" for engine in summary.engines):
        other = "the engine file is not of the engine that ran"
        return f"cannot tell: {other if summary.tensorrt else _NO_TENSORRT}"
    if not clean:
        if summary.blocked:
            return "cannot tell"
        if not summary.tensorrt:
            return f"cannot tell: {_NO_TENSORRT}"
        return "cannot tell: " + (
            "the engine file does not show its layers' tensors"
            if summary.engines
            else "no engine file was given"
        )
    return f"nothing found by {counted(len(clean), 'rule')}" + (
        f"; {len(skipped)} could not tell" if skipped else ""
    )


def _unfused(answer: RuleAnswer, where: str | None, *, counts: bool) -> str:
    count = f"{answer.places} places" if counts and answer.places > 1 else ""
    places = ": ".join(
        part
        for part in (count, "" if where is None else told_apart([escaped(where)], _PLACE_WIDTH)[0])
        if part
    )
    what = (
        f"{answer.in_pieces} in several kernels"
        if answer.in_pieces
        else _UNFUSED.get(answer.rule, answer.rule)
    )
    cost = f" {rounded(answer.at_most_ns)}" if answer.at_most_ns else ""
    return f"{what}{cost}{f' ({places})' if places else ''}"


def slowest(summary: Answer, *, why: bool = True, usual: bool = True, held_up: bool = True) -> str:
    """The slowest inference, and what it waited for (``why``), and what the host did in a single
    wait (``held_up``); with the median time of an outlier (``usual``).
    """
    found = summary.slowest
    if found is None:
        return (
            f"cannot tell: no three steady-state {each(summary)}s are of one kind"
            if summary.inferences
            else ""
        )
    # 1.47 is not called 1.5
    ratio = (
        min(found.times_median, OUTLIER - 0.1)
        if found.times_median < OUTLIER
        else found.times_median
    )
    kind, median = (f" with {found.kind}", "their median") if found.kind else ("", "median")
    median = f"median of {found.whose}" if found.whose else median
    which = f"{each(summary)} {found.inference}{whose_slowest(summary, found)}{found.where}{kind}"
    told = (
        f"{'pass of ' * (summary.unit == PASS_OF_ONE)}{which}: {rounded(found.time_ns)},"
        f" {multiple(ratio)} x {median}"
    )
    middle_ns = round(found.time_ns / found.times_median)
    told += (
        f" ({rounded(middle_ns, found.time_ns)})"
        if usual and (found.times_median >= OUTLIER or found.whose)
        else ""
    )
    if found.times_median < OUTLIER:
        if found.whose or found.kind:  # what it is among takes more words than it is worth
            return (
                f"no outlier: at most {multiple(ratio)} x {median} ({each(summary)}"
                f" {found.inference})"
            )
        return f"{told}: not an outlier (below {OUTLIER} x)"
    if not why:
        return told
    more = [
        f"+{rounded(ns, found.time_ns)} {'GPU work' if what == WORK else idle_words(what)}"
        for what, ns in found.more
    ]
    told += f": {', '.join(more)}{_held_up(found) if held_up else ''}" if more else ""
    told += ", an artefact of profiling" if found.artefact else ""
    told += "; mostly before it began" if found.later else ""
    return told + ("; one of the first, may be warm-up" if found.early else "")


def _held_up(found: Slowest) -> str:
    """What held the host up in the one interval that makes up most of the GPU's waiting for
    launches: a single call, or nothing visible in CUDA.
    """
    longest, cause = found.longest, next((what for what, _ in found.more if what != WORK), None)
    if cause != "launch" or longest is None or longest.in_calls_ns is None:
        return ""
    if longest.call:
        mostly = "mostly " if longest.in_call_ns < longest.ns else ""
        inside = f"{mostly}in one {escaped(longest.call)} of {rounded(longest.call_ns)}"
        return f" ({rounded(longest.ns)} at once, {inside}: preempted or blocked?)"
    if 2 * longest.in_calls_ns >= longest.ns:
        return ""
    return (
        f" ({rounded(longest.ns)} at once, {rounded(longest.ns - longest.in_calls_ns)} of it in no"
        " CUDA call: preempted or blocked?)"
    )


def certainty(summary: Answer, *, methods: bool = True) -> str:
    """How sure the answer is: kernels with a layer (by which ``methods``), whether the engine files
    ran, how well the replay fits.
    """
    parts = (
        with_layer(summary, methods=methods),
        no_region(summary),
        *engines_ran(summary),
        replayed(summary),
    )
    return "; ".join(part for part in parts if part)


def with_layer(summary: Answer, *, methods: bool = True) -> str:
    """How many kernels have a layer, and by which ``methods``."""
    mapped = summary.mapped
    if mapped.kernels and not mapped.with_layer and not (summary.engines and summary.tensorrt):
        why = (
            "there is no engine file, and no range names a layer"
            if summary.tensorrt
            else "the trace shows no TensorRT"
        )
        return f"no layers are known for the {counted(mapped.kernels, 'kernel')}: {why}"
    if not mapped.kernels:
        return ""
    how = f" ({', '.join(mapped.methods)})" if methods and mapped.methods else ""
    kernel = "visible kernel" if summary.hidden else "kernel"
    if mapped.with_layer == mapped.kernels > 1:
        return f"all {mapped.kernels:,} {kernel}s have a layer{how}"
    told = f"{mapped.with_layer:,} of {counted(mapped.kernels, kernel)} have a layer"
    steady = " in steady state" if summary.layers and summary.units else ""
    return f"{told}, {percent(mapped.share_of_time or 0, 1, 1)} of {kernel} time{steady}{how}"


def replay_error(summary: Answer) -> str:
    """How well the replay reproduces the captured time."""
    if summary.replay_error is None:
        return ""
    return f"replay off by {percent(abs(summary.replay_error), 1)}"


def replayed(summary: Answer) -> str:
    """How well the replay that predictions rest on reproduces the captured time, and how much of
    that it leaves out.
    """
    if summary.replay_error is None:
        return ""
    told = f"the replay is off by {percent(abs(summary.replay_error), 1)}"
    longer = _longer(summary)
    return (
        f"{told}, and leaves out the {_most(1 - 1 / longer)} that are pauses and outliers"
        if longer > _LEFT_OUT
        else told
    )
