"""The first twenty lines: each sentence is made once from the answer's facts, with the longest form
first for lines that may be too short for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from nsysmap.advice.paste import CHANGES as ADVISED
from nsysmap.advice.program import (
    ONNX_RUNTIME,
    PYTORCH,
    TENSORRT_LLM,
    TORCH_TENSORRT,
    program_of,
)
from nsysmap.advice.ways import how
from nsysmap.answer import gains, whose, words
from nsysmap.answer.actions import LEAST_SHARE
from nsysmap.answer.costs import cost_rows, functions, kernel_titles, whole_forms
from nsysmap.answer.headroom import TRANSPOSED_NORM
from nsysmap.answer.headroom_words import farthest
from nsysmap.answer.model import (
    WORK,
    Action,
    Answer,
    EngineRan,
    Figure,
    GpuTime,
    Headroom,
    IdleCause,
    LoopAlone,
    NextStep,
    Trial,
    Trouble,
)
from nsysmap.answer.next_steps import LongKernel, long_kernel, pageable_copies
from nsysmap.answer.ranks import replayed_alone
from nsysmap.core.changes import CHANGES
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.records import dataclass
from nsysmap.names.layers import short_nodes
from nsysmap.text.terminal import columns, escaped, shortened, told_apart
from nsysmap.text.units import a_or_an, about, counted, multiple, percent, rate, rounded
from nsysmap.trace.inferences.steady import OUTLIER

LAYERS = 5
"""How many layers, or kernels, are said first."""
_LEAST_IDLE = 0.05  # share of the window from which a cause of idle time is named
_CAUSES = 2  # of idle time that one line has room for
_LEAST_COST = 0.04  # share of the kernel time from which a layer is named
_LOOPS = 4  # that are named, of those that a program runs one after the other
_MAJOR = 0.1  # share of all time from which one is not minor
_FIRST_FEW = 3  # layers that are named however little of all time the kernels are
_LAUNCHED = ("launch", "dispatch")  # causes that lie between the launches of an inference
_SOURCE = 12  # columns of the name of a report, at least
_NAME = 8  # columns of the name of a layer, at least
_MOST_GPUS = 4  # that are named one by one
_MUCH_COPYING = 0.2  # of the busy time of a GPU: copies from which on they are named
_MUCH_COMPILING = 0.05  # of the time that counts: compiling is told from which on it is
# of the time that counts: what lies between the first and the last, and does not, is told
_LONG_PAUSE = 0.05
# GB/s of copies: half of what pinned memory reaches over PCIe 3.0 with 16 lanes, the slowest link
# of GPUs with tensor cores; pinned memory saves less than half of faster ones
_SLOW_COPY = 6.0
_FAR = 0.75  # of the time in the trace: a shorter one without the profiler needs its reason
# of the time: a kind of repetitions that takes less is not what the program does, and GPU work
# within less of the trace is told with both
_MOSTLY = 0.5
_MUCH_OUTSIDE = 0.25  # of the kernel time: what is in no repetition is told from which on it is
_FULL = 0.9  # of the SMs: kernels on so many are no reason to run others beside them
_MOSTLY_KNOWN = 0.5  # of the kernel time: what the hardware needs is known from which on it is told
# ratio of the ends of a range to its middle, from which on it is called uncertain
_UNCERTAIN = 0.25
# " 80GB HBM3" of a GPU's name
_MEMORY = re.compile(r" \d+ ?GB\b| HBM\d\w*")
_SAID_ELSEWHERE = ("no-inference", "no-layer", "another-build")
_INSIDE = 0.3  # of the kernel time: an opaque region from which on its parts are named instead


# --- what ran
# ----------------------------------------------------------------------------------------------


def headline(answer: Answer) -> str:
    """The report, what ran in it, on which GPU, and how often."""
    return " · ".join(part for part in _headline(answer) if part)


def headlines(answer: Answer, width: int) -> tuple[str, ...]:
    """The headline in several forms, the longest first; the last one shortens the report's name to
    ``width`` columns.
    """
    rest = (_gpus(answer), _how_often(answer))
    named = _what_ran(answer, version=False)
    brief = _what_ran(answer, version=False, suffix=False)
    forms = [(answer.source, what, *rest) for what in (_what_ran(answer), named, brief)]
    least = (brief, _gpus(answer), _how_often(answer, brief=True))
    room = width - columns(escaped(" · ".join(("", *(part for part in least if part)))))
    name = shortened(escaped(answer.source), max(room, _SOURCE))
    forms += [(answer.source, *least), (name, *least)]
    return tuple(" · ".join(part for part in form if part) for form in forms)


def _headline(answer: Answer) -> tuple[str, ...]:
    return answer.source, _what_ran(answer), _gpus(answer), _how_often(answer)


def _what_ran(answer: Answer, *, version: bool = True, suffix: bool = True) -> str:
    mine = [one for one in answer.engines if one.verdict == "ran" or one.inferences]
    known = answer.tensorrt_version or (
        f"{answer.tensorrt_since}+" if answer.tensorrt_since else answer.tensorrt_bound
    )
    tensorrt = f"TensorRT {known}" if known else "TensorRT"
    around = {
        ONNX_RUNTIME: "ONNX Runtime",
        TENSORRT_LLM: "TensorRT-LLM",
        TORCH_TENSORRT: "Torch-TensorRT",
    }.get(answer.program, "PyTorch" if answer.pytorch else "")
    if not answer.tensorrt:
        seen = answer.trace.kernels or answer.inferences
        nothing = "no TensorRT" if seen else "no kernels"  # which would show it
        return around or {PYTORCH: "PyTorch"}.get(answer.program, nothing)
    if len(mine) > 1:
        told = f"{len(mine)} {tensorrt} engines"
    elif mine:
        told = _engine(mine[0], suffix=suffix) + (f", {tensorrt}" if version else "")
    else:
        told = tensorrt
    return f"{told} in {around}" if around else told


def _engine(engine: EngineRan, *, suffix: bool) -> str:
    name = engine.source if suffix else PurePath(engine.source).name.partition(".")[0]
    return name if engine.ran_inferences else f"perhaps {name}"


def _gpus(answer: Answer) -> str:
    names = [_MEMORY.sub("", gpu.name.removeprefix("NVIDIA ")) for gpu in answer.gpus]
    return ", ".join(
        f"{names.count(name)} x {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    )


def _how_often(answer: Answer, *, brief: bool = False) -> str:
    if not answer.inferences:
        return ""
    unit = answer.unit_of_time
    if unit.inferences > 1:
        passes = words.whole_ones(answer) // unit.inferences
        told = counted(passes, "pass")
        return told if brief else f"{told} of {counted(unit.inferences, unit.one)}"
    return counted(words.whole_ones(answer), unit.one) + whose.among(answer)


# --- what makes it doubtful
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Doubtful:
    """Something that changes how far the answer can be believed."""

    text: str
    wrong: bool = False  # there is no answer, or a wrong one
    shorter: tuple[str, ...] = ()  # the same in fewer words, the longest first
    lines: int = 1  # that there is room for

    def forms(self, more: str) -> tuple[str, ...]:
        """It in forms, the longest first, with ``more`` behind it."""
        return tuple(f"{one}{more}" for one in (self.text, *self.shorter))


def doubts(answer: Answer) -> tuple[Doubtful, ...]:
    """What to know before believing the figures, the gravest first."""
    found = [_trouble(answer, one) for one in answer.errors]
    if told := _host(answer):
        found.append(Doubtful(told[0], shorter=told[1:]))
    known = (
        answer.inferences
        or answer.blocked
        or answer.next_steps
        or answer.trace.nothing_recurs  # there is none
    )
    if not (known or (not answer.tensorrt and long_kernel(answer.tables))):
        found.append(Doubtful(f"{words.none_of(answer)} was recognised: no time of one is known"))
    found += [
        Doubtful(note.brief or note.text)
        for note in answer.notes
        if note.level == "warning" and note.about not in _SAID_ELSEWHERE
    ]
    return tuple(found)


def _trouble(answer: Answer, found: Trouble) -> Doubtful:
    """Why there is no answer; where the trace has no GPU work, with what to do about it."""
    if answer.gpus or answer.inferences:
        return Doubtful(found.brief, wrong=True)
    told = (f"{found.brief}: {found.remedy}", found.brief) if found.remedy else (found.brief,)
    return Doubtful(found.text, wrong=True, shorter=told, lines=2)


def _host(answer: Answer) -> tuple[str, ...]:
    """Says that the host was held up or slowed down while it was recorded, in forms."""
    found = answer.disturbance
    if found is None:
        return ()
    if not found.slow:
        slower = f"{found.quick_call} {multiple(found.slowdown)}x its fastest"
        return (
            f"slow host ({slower}): times are too long",
            f"times are too long: slow host, {slower}",
            f"times are too long: slow host ({multiple(found.slowdown)}x)",
        )
    share = percent(found.share, 1, 0)
    told = f"host held up in {found.slow:,} of {counted(found.inferences, words.each(answer))}"
    return f"{told}: {share} of the profiled time", f"{told} ({share} of the time)", told


# --- time
# ----------------------------------------------------------------------------------------------


def times(answer: Answer) -> list[tuple[str, ...]]:
    """The time in the trace and without the profiler, each in its forms, the longest first."""
    lines: list[tuple[str, ...]] = []
    if answer.decoding is not None:
        lines += _decoding(answer)
    elif answer.unlike_loops is not None:
        lines += _of_loops(answer.unlike_loops.loops, answer.unit_of_time.short)
        return [*lines, *_beside(answer), *_pauses(answer)]
    elif answer.traced and answer.per_second:
        lines.append(_traced(answer))
    if answer.trtexec_ns:
        each = words.throughput(answer, answer.trtexec_ns)
        told = f"{rounded(answer.trtexec_ns)} without nsys, as trtexec measured it"
        lines.append((f"{told}, {each}", told))
    elif answer.unprofiled:
        lines.append(_unprofiled(answer, answer.unprofiled))
    elif answer.traced and not answer.blocked:
        reason = words.not_replayed(answer)
        told = "without nsys: cannot tell"
        lines.append((f"{told} ({reason})" if reason else told, told))
    if not lines and (told := words.alone(answer)):
        lines.append((told,))
    return [*lines, *_beside(answer), *_pauses(answer), *_in_none(answer)]


def _beside(answer: Answer) -> list[tuple[str, ...]]:
    """What comes before the repetitions that the time is of."""
    return [*_named_warm_up(answer), *_start_up(answer), *_slow_first(answer)]


def _named_warm_up(answer: Answer) -> list[tuple[str, ...]]:
    """What the program itself calls its warm-up, where that is other work than what counts."""
    found = answer.named_warm_up
    if found is None or not answer.usual_ns:
        return []
    kernels, times = counted(found.kernels, "kernel"), counted(found.times, "time")
    told = f"not in it: {rounded(found.median_ns)} per {words.each(answer)} of {kernels}"
    return [(f"{told}, {times} in NVTX range {found.range}", f"{told}, the program's warm-up")]


def _in_none(answer: Answer) -> list[tuple[str, ...]]:
    """How much of the kernels' time is in no repetition that counts, where it is much."""
    share = words.in_none(answer)
    if share < _MUCH_OUTSIDE or not answer.traced or answer.named_warm_up is not None:
        return []
    told = f"not in it: {percent(share, 1, 0)} of all kernel time in the trace"
    return [(f"{told}, before or after the {words.each(answer)}s that count", told)]


def _slow_first(answer: Answer) -> list[tuple[str, ...]]:
    """The first repetitions, where they are slow and long beside the others: neither time nor busy
    share has them.
    """
    gpu = main_gpu(answer)
    if gpu is None or answer.usual_ns is None or gpu.slow_first_ns < _LONG_PAUSE * gpu.window_ns:
        return []
    one = words.each(answer)
    what = f"first {one}" if gpu.slow_first == 1 else counted(gpu.slow_first, f"first {one}")
    return [(f"not in it: {rounded(gpu.slow_first_ns)} of the {what}",)]


def _pauses(answer: Answer) -> list[tuple[str, ...]]:
    """How long pauses between the runs of a program are, with their first, slow ones, where they
    are long: neither time nor busy share has them.
    """
    gpu, compiled = main_gpu(answer), answer.first_use
    if gpu is None or answer.usual_ns is None:
        return []
    loops = answer.unlike_loops
    paused_ns = gpu.left_out_ns + (loops.paused_ns if loops is not None else 0)
    left_out = paused_ns - (compiled.compile_ns if compiled else 0)
    if left_out < _LONG_PAUSE * gpu.window_ns:
        return []
    one = words.each(answer)
    told = f"not in it: {rounded(left_out)} between runs"
    return [(f"{told}, with {one}s that do not count", told)]


def _start_up(answer: Answer) -> list[tuple[str, ...]]:
    """How long compiling or loading kernels took, which no other time includes, if it was longer
    than one unit and not small beside everything that counts.
    """
    found = answer.first_use
    if found is None or answer.usual_ns is None:
        return []
    steady_ns = answer.steady / answer.unit_of_time.inferences * answer.usual_ns
    if found.compile_ns < max(answer.usual_ns, _MUCH_COMPILING * steady_ns):
        return []
    if _mostly_compiling(answer):
        return []  # it is what to do first
    what = "compiling" if found.compiled else "loading"
    where = counted(len(found.inferences), words.each(answer))
    told = f"not in it: {rounded(found.compile_ns)} of {what} kernels in {where}"
    return [(f"{told}; {found.remedy}", told)]


def _mostly_compiling(answer: Answer) -> bool:
    """Whether the run compiled or loaded kernels for longer than its steady part took."""
    if answer.first_use is None or answer.usual_ns is None:
        return False
    steady = answer.steady / answer.unit_of_time.inferences
    return answer.first_use.compile_ns > steady * answer.usual_ns


def _traced(answer: Answer) -> tuple[str, ...]:
    assert answer.traced is not None
    unit, time = answer.unit_of_time, rounded(answer.traced.ns)
    at_once = words.at_once(answer)
    per = answer.unit if unit.inferences > 1 else unit.short
    told = f"{a_or_an(per)} every {time}" if at_once else f"{time} per {per}"
    each, beside = words.throughput(answer, answer.traced.ns), words.together(answer)
    median = words.median(answer, answer.traced.ns)
    if (main := words.mean_misleads(answer)) is not None:
        kind = f"{rounded(main.mean_ns)} per {unit.short} of {main.what}"
        of = f"{percent(main.share, 1, 0)} of the time"
        mean = f"{time} in the mean of {counted(main.kinds, 'kind')}"
        if main.share < _MOSTLY:  # none is what the program does
            apart = f"{mean} of {unit.short}s"
            return f"{apart}, {each}{beside}; {kind} ({of})", f"{apart}; {kind} ({of})", apart
        return f"{kind} ({of}), {mean}, {each}{beside}", f"{kind} ({of}), {mean}", f"{kind} ({of})"
    if (alike := words.each_alike(answer)) is not None:
        return (
            f"{told} while profiled{words.together(answer, rounded(alike))}, {each}",
            f"{told} while profiled{words.together(answer, rounded(alike))}",
            f"{told} while profiled{beside}",
        )
    return (
        f"{told} while profiled{median}, {each}{beside}",
        # a mean that is not the usual time says less without it than without a rate
        f"{told} while profiled{median or f', {each}'}{beside}",
        f"{told} while profiled{beside}",
        f"{told} while profiled",
    )


def _of_loops(loops: Sequence[LoopAlone], one: str) -> list[tuple[str, ...]]:
    """The time of a repetition of the loop that takes most, and of the next ones."""
    main = f"{rounded(loops[0].median_ns)} per {one} of {escaped(loops[0].what)}"
    share, several = percent(loops[0].share, 1, 0), counted(len(loops), "loop")
    named = [
        f"{rounded(loop.median_ns)} of {escaped(loop.what)} ({percent(loop.share, 1, 0)})"
        for loop in loops
    ]
    forms = []
    for number in range(min(len(loops), _LOOPS), 1, -1):
        more = len(loops) - number
        behind = f" and {counted(more, 'more loop')}" if more else ""
        forms.append(f"others: {', '.join(named[1:number])}{behind}")
    whole = f"{main} ({share} of {several} one after the other)"
    first = (
        f"{whole} while profiled",
        whole,
        f"{main} ({share} of {several})",
        f"{main} ({share})",
    )
    return [first, tuple(forms)]


def _unprofiled(answer: Answer, value: Figure) -> tuple[str, ...]:
    found, per = words.figure_range(value), ""
    if answer.decoding is not None:  # the line above is of tokens
        per = f" per {answer.unit_of_time.short}"
    if (main := words.mean_misleads(answer)) is not None:  # the line above is of one of them
        per = f" in the mean of {counted(main.kinds, 'kind')}"
    if found is None:
        told = f"{rounded(value.ns)}{per} without nsys"
    else:
        sure = "uncertain: " if _uncertain(value) else ""
        told = f"~{found.alone}{per} without nsys ({sure}{found.ends})"
    left_out = words.left_out(answer)
    each = f"{words.rate_of(value)}{words.rate_unit(answer, brief=False)}"
    alone = replayed_alone(answer)
    return (
        f"{told}{left_out}, {each}{alone}",
        f"{told}{left_out}, {each}",
        # what is left out may be most of the time above
        f"{told}{left_out}",
        *(() if left_out and _far_less(answer, value) else (f"{told}, {each}", told)),
    )


def _far_less(answer: Answer, value: Figure) -> bool:
    """Whether the time without the profiler is far less than that in the trace."""
    return answer.traced is not None and value.ns < _FAR * answer.traced.ns


def _uncertain(value: Figure) -> bool:
    """Whether the time's range is so wide that the screen must mention it."""
    wide = max(abs((end or value.ns) - value.ns) for end in (value.low_ns, value.high_ns))
    return wide > _UNCERTAIN * value.ns


def _decoding(answer: Answer) -> list[tuple[str, ...]]:
    found = answer.decoding
    assert found is not None
    per_second = f"{rate(1e9 / max(found.token_ns, 1))} tokens/s a sequence"
    first = (
        f"first token after {rounded(found.first_token_ns)}, then {rounded(found.token_ns)} a token"
    )
    return [
        (
            f"{first}: {per_second}, while profiled ({counted(found.requests, 'request')})",
            f"{first}: {per_second}, while profiled",
            (
                f"first token {rounded(found.first_token_ns)}, then {rounded(found.token_ns)} a"
                f" token: {rate(1e9 / max(found.token_ns, 1))} tokens/s (profiled)"
            ),
        )
    ]


# --- the GPU
# ----------------------------------------------------------------------------------------------


def main_gpu(answer: Answer) -> GpuTime | None:
    """The GPU whose bar is shown: the one that the time refers to, otherwise the replay's,
    otherwise the first; None if no GPU's busy share is known.
    """
    known = [gpu for gpu in answer.gpus if gpu.busy_share is not None]
    replayed = answer.gpu_unprofiled.device if answer.gpu_unprofiled else None
    for device in (answer.traced_gpu, replayed):
        for gpu in known:
            if gpu.device == device:
                return gpu
    return known[0] if known else None


def busy(answer: Answer, gpu: GpuTime) -> tuple[str, ...]:
    """How busy it was while it was profiled, and how busy it is without; of a single piece of work,
    which is always busy from its begin to its end, how long that is of the trace.
    """
    traced_ns = answer.trace.duration_ns
    if answer.trace.one_piece:
        return (words.one_piece(answer, gpu),)
    share = percent(gpu.busy_share or 0.0, 1, 0)
    span = "" if gpu.window == "inferences" else " from first to last work"
    long = f" ({rounded(gpu.window_ns)})" if span and answer.usual_ns is None else ""
    if long and gpu.window_ns < _MOSTLY * traced_ns:
        span, long = " for", f" {rounded(gpu.window_ns)} of {rounded(traced_ns)} traced"
    which = f"GPU {gpu.device} " if len(answer.gpus) > 1 else ""
    without = answer.gpu_unprofiled
    then = (
        f", {percent(without.busy_share or 0.0, 1, 0)} without nsys"
        if without is not None
        and without.device == gpu.device
        and without.busy_share is not None
        and span == ""
        else ""
    )
    others = [one for one in answer.gpus if one.device != gpu.device and one.busy_share is not None]
    more = (
        "; "
        + ", ".join(f"GPU {one.device} {percent(one.busy_share or 0.0, 1, 0)}" for one in others)
        if 0 < len(others) < _MOST_GPUS
        else f"; {len(others)} more GPUs"
        if others
        else ""
    )
    told = f"{which}{share} busy{span}"
    least = (told,) if span != " for" else ()
    return f"{told}{long}{then}{more}", f"{told}{long}{more}", f"{told}{long}", *least


def idle(answer: Answer, gpu: GpuTime) -> tuple[str, ...]:
    """The largest causes of idle time, and what removing each may save; empty if none is large."""
    without = answer.gpu_unprofiled
    replayed = without if without is not None and without.device == gpu.device else None
    large = _large_idle(gpu)
    if not large:
        return ()
    limit = "~" if answer.unprofiled is not None and _uncertain(answer.unprofiled) else "≤ "
    gains = [_to_gain(one, replayed, limit, first=one is large[0]) for one in large]
    shares = [percent(one.share_of_window, 1, 0) for one in large]
    forms = []
    for short in (False, True):
        named = [_idle_words(answer, one, short=short) for one in large]
        told = [
            f"{share} {name}{gain}" for name, share, gain in zip(named, shares, gains, strict=True)
        ]
        forms.append(f"idle {', '.join(told)}")
    return (*forms, f"idle {told[0]}")


def _idle_words(answer: Answer, one: IdleCause, *, short: bool) -> str:
    """What a cause of idle time is called."""
    if one.cause == "host" and any(
        action.host_evidence is not None and action.host_evidence.waits_for_ranks
        for action in answer.actions
    ):
        return "host in MPI, where it waits for other ranks" if not short else "host in MPI"
    return idle_words(one.cause, inferred=one.inferred, short=short)


def _large_idle(gpu: GpuTime) -> Sequence[IdleCause]:
    return [one for one in gpu.idle if one.share_of_window >= _LEAST_IDLE][:_CAUSES]


def _to_gain(one: IdleCause, without: GpuTime | None, limit: str, *, first: bool) -> str:
    """The idle time of a cause per unit, without the profiler if a replay shows it, otherwise in
    the trace: no more than that can be gained. It is not a limit where the replay is uncertain,
    because then the GPU's waiting time is as uncertain as the time itself.
    """
    left_ns = one.ns
    if without is not None:
        left_ns = next((other.ns for other in without.idle if other.cause == one.cause), None)
        if not left_ns:
            return " (gone without nsys)"
    else:
        limit = "≤ "
    return f" ({'gain ' if first else ''}{limit}{about(left_ns)})" if left_ns else ""


def copying(gpu: GpuTime) -> tuple[str, ...]:
    """How much of the busy time is copies alone, where it is much: kernels, which the table
    divides, are only the rest.
    """
    if gpu.copies_share < _MUCH_COPYING:
        return ()
    return (f"{percent(gpu.copies_share, 1, 0)} of the busy time is copies, while no kernel ran",)


def counters(answer: Answer, gpu: GpuTime) -> tuple[str, ...]:
    """How busy the GPU's units were while kernels ran, if hardware counters show it."""
    found = next((one for one in answer.counters if one.device == gpu.device), None)
    if found is None or not found.units:
        return ()
    figures = [f"{one.unit} {one.percent:.0f}%" for one in found.units]
    told = f"while kernels ran: {', '.join(figures)} of the peak"
    return f"{told} (counters)", told, ", ".join(figures)


def hardware(answer: Answer) -> str:
    """How much of the kernels' time the hardware needs, where the GPU is the limit, and of how much
    of it that is known; empty otherwise.
    """
    found = answer.headroom
    if found is None or not found.gpu_bound or found.share is None:
        return ""
    if found.known_ns < _MOSTLY_KNOWN * answer.kernel_ns:
        return ""  # what is known of a small part says nothing about the whole
    needed, known, whole = (
        rounded(one) for one in (found.least_ns, found.known_ns, answer.kernel_ns)
    )
    if known == whole:
        return f"roofline floor {needed} for the kernels' {whole} ({_told_by(found)})"
    return f"roofline floor {needed} ({_told_by(found)}) for {known} of the kernels' {whole}"


def _told_by(found: Headroom) -> str:
    """Whether what the hardware needs is measured."""
    if found.counted_layers == found.layers:
        return "measured"
    return "in part measured" if found.counted_layers else "modelled"


def _needed(answer: Answer) -> tuple[str, ...]:
    """The text of `hardware` as it follows the kernel time, in forms; none if that is empty."""
    found = answer.headroom
    if found is None or not hardware(answer):
        return ()
    known, how = rounded(found.known_ns), _told_by(found)
    whole = known == rounded(answer.kernel_ns)
    parts = ("",) if whole else (f" for {known} of it", f" for {known}")
    return tuple(f"roofline floor {rounded(found.least_ns)}{part} ({how})" for part in parts)


def excess(answer: Answer, room: int | None = None) -> tuple[str, ...]:
    """The layers in which the distance from what the hardware needs lies. The last form has a name
    in as much of ``room`` as is left.
    """
    found = answer.headroom
    if found is None or not hardware(answer):
        return ()
    far = [
        (escaped(short_nodes(one.title)), rounded(one.headroom_ns)) for one in farthest(found, 2)
    ]
    if not far:
        return ()
    named = [f"{name} {ns}" for name, ns in far]
    name, ns = far[0]
    told = "most above that: "
    left = columns(name) if room is None else max(room - columns(f"{told} {ns}"), _NAME)
    return (
        f"{told}{', '.join(named)}",
        f"{told}{named[0]}",
        f"{told}{shortened(name, left)} {ns}",
    )


# --- what to do
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Todo:
    """One thing to do first."""

    title: str
    gain: str
    paste: str  # one line, empty if a sentence says what to change
    change: str
    why: str
    throughput: bool  # no single inference gets faster
    name: str = ""  # of a what-if change, or of a rule
    # what matters most of what to paste, or to change, where it is long
    paste_brief: str = ""
    change_brief: str = ""
    # the title with the reason in it, where a few words say both: in forms, the longest first
    reasoned: tuple[str, ...] = ()


def todo(answer: Answer) -> tuple[Todo, ...]:
    """What to do first, the largest saving first."""
    shown = gains.first_actions(answer)
    before = _compiled(answer) or _run_once(answer)
    shorter = [one for one in shown if not one.throughput_only]
    if not before:
        before = _trials(answer) if not shorter else _far_norm(answer, shorter)
    return (*before, *_actions(answer, shown[: gains.ACTIONS - len(before)]))


def _run_once(answer: Answer) -> list[Todo]:
    """What to do about what takes much of the time of a program in which nothing was recognised."""
    if answer.tensorrt or answer.inferences:
        return []
    kernel = long_kernel(answer.tables)
    return _pageable(answer) or ([] if kernel is None else _one_kernel(answer, kernel))


def _pageable(answer: Answer) -> list[Todo]:
    """Pinned memory, where copies of pageable memory take more time than all kernels."""
    found, gpu = pageable_copies(answer.tables), main_gpu(answer)
    kernels = answer.tables["kernels"]
    kernel_ns = int((kernels.ints("end_ns") - kernels.ints("start_ns")).sum())
    if gpu is None or found is None or found.time_ns <= kernel_ns:
        return []
    if found.gigabytes_per_s > _SLOW_COPY:
        return []
    least_ns = max(_MAJOR * gpu.window_ns, LEAST_SHARE * answer.trace.duration_ns)
    if found.time_ns < least_ns:
        return []
    made = how(ADVISED["pinned-copies"], program_of(answer.tables))
    return [
        Todo(
            "copy to and from pinned memory",
            f"{rounded(found.time_ns)} of copies at {found.gigabytes_per_s:.1f} GB/s",
            made.paste or "",
            made.change or "",
            "because the memory is pageable",
            throughput=False,
            paste_brief=made.paste_brief or "",
            change_brief=made.change_brief or "",
        )
    ]


def _one_kernel(answer: Answer, found: LongKernel) -> list[Todo]:
    """The kernel to make faster, where a few launches of one take most of a program's time."""
    gpu = main_gpu(answer)
    window_ns = 0 if gpu is None else gpu.window_ns
    if found.time_ns < max(_MAJOR * window_ns, LEAST_SHARE * answer.trace.duration_ns):
        return []
    (name,) = functions([found.name])
    gain = f"{rounded(found.time_ns)} in {counted(found.launches, 'launch')}"
    return [
        Todo(
            f"make {escaped(name)} faster",
            f"{gain}, {percent(found.share, 1, 0)} of all kernel time",
            "",
            "see with Nsight Compute (ncu) what limits it: nothing that repeats takes as long",
            "",
            throughput=False,
        )
    ]


def _compiled(answer: Answer) -> list[Todo]:
    """How to avoid compiling kernels during the run, if that took most of it."""
    found = answer.first_use
    if found is None or not _mostly_compiling(answer):
        return []
    what = "compile kernels" if found.compiled else "load kernels"
    where = counted(len(found.inferences), words.each(answer))
    gain = f"{rounded(found.compile_ns)} in {where}"
    return [
        Todo(
            f"{what} before the run",
            gain,
            "",
            found.remedy,
            "",
            throughput=False,
            change_brief=found.remedy_brief,
        )
    ]


def _far_norm(answer: Answer, shown: Sequence[Action]) -> list[Todo]:
    """Norms far from every limit whose names tell why, where they cost more than what rules price:
    a price is no prediction either.
    """
    if any(one.basis == "replay" for one in shown):
        return []
    priced = max(one.saving.ns for one in shown)
    found = answer.headroom.trials if answer.headroom is not None else ()
    far = [one for one in found if one.name == TRANSPOSED_NORM and one.at_most_ns > priced]
    return _trials(answer, far) if far else []


def _trials(answer: Answer, chosen: Sequence[Trial] = ()) -> list[Todo]:
    """What to try on the layers that are furthest from the hardware's limits, where the GPU is the
    limit.
    """
    found = answer.headroom
    if found is None or not found.gpu_bound or answer.blocked:
        return []
    return [
        Todo(
            f"try: {one.title}",
            f"at most {rounded(one.at_most_ns)} of {rounded(found.time_ns)} of kernels",
            one.paste or one.paste_pytorch or "",
            one.change or "",
            f"on {told_apart([escaped(short_nodes(one.layers[0]))], _PLACE)[0]}",
            throughput=False,
            paste_brief=one.paste_brief or "",
            change_brief=one.change_brief or "",
        )
        for one in chosen or found.trials
        if not one.throughput_only
    ][:1]


def _actions(answer: Answer, shown: Sequence[Action]) -> tuple[Todo, ...]:
    return tuple(
        Todo(
            one.title
            if one.throughput_only or one.name in _in_places(answer)
            else gains.action_title(one),
            saves(answer, one),
            next(iter(gains.ways(one)), ""),
            one.change or "",
            _why(answer, one),
            one.throughput_only,
            one.name,
            one.paste_brief or "",
            one.change_brief or "",
            _reasoned(answer, one),
        )
        for one in shown
    )


def _in_places(answer: Answer) -> frozenset[str]:
    """The rules whose reason gives the number of places where they were found."""
    return frozenset(one.rule for one in answer.rules if one.where)


def _reasoned(answer: Answer, action: Action) -> tuple[str, ...]:
    """The title of a CUDA graph with how many kernels one by one are the reason for it."""
    if action.name != "cuda-graph" or action.title != ADVISED["cuda-graph"].title:
        return ()
    cause, kernels = _behind(answer, action), _launches(answer)
    if cause is None or cause.cause not in _LAUNCHED or kernels is None:
        return ()
    if action.host_evidence is not None or action.in_phase or kernels.least != kernels.most:
        return ()
    many = counted(kernels.most, "kernel")
    return f"run its {many} as a CUDA graph", f"CUDA graph of {many}"


def nothing(answer: Answer) -> str:
    """The sentence if there is nothing to do."""
    if answer.headroom is not None and answer.headroom.gpu_bound:
        return "no change around the engine saves more than 1%: kernels are the limit"
    return gains.no_action(answer)


def saves(answer: Answer, action: Action) -> str:
    """How much an action saves, and of which time."""
    if action.throughput_only:
        return gains.gain(answer, action, brief=True)
    return gains.saving_of(answer, action)


def _why(answer: Answer, action: Action) -> str:
    """Why that helps, in the names of ranges, calls, layers and blocks of the program."""
    parts, inside = [], False
    rule = next((one for one in answer.rules if one.rule == action.name), None)
    rules = [one for one in answer.rules if one.rule in (action.name, *action.rules) and one.where]
    if action.host_evidence is not None:
        parts.append(f"the host is in {action.host_evidence.words}")
    elif rule is not None and rule.where:
        parts.append(f"in {told_apart([escaped(rule.where)], _PLACE)[0]}")
        inside = True
    elif action.filled is not None and action.basis == "replay" and action.filled < _FULL:
        whose_kernels = words.filled_kernels(answer)
        parts.append(f"{whose_kernels} are on {percent(action.filled, 1, 0)} of the SMs")
    elif (cause := _behind(answer, action)) is not None:
        if cause.cause in _LAUNCHED and _launched(answer):
            parts.append(_launched(answer))
        elif cause not in _told_idle(answer):
            parts.append(f"the GPU is idle: {idle_words(cause.cause)}")
    elif rules:
        parts.append(f"in {rules[0].where}")
        inside = True
    if action.in_phase:
        parts.append(action.in_phase)
    if not parts:
        return gains.conditions(answer, action)
    if conditions := gains.conditions(answer, action):
        parts.append(conditions)
    return "; ".join(parts) if inside else f"because {'; '.join(parts)}"


def _told_idle(answer: Answer) -> Sequence[IdleCause]:
    """The causes of idle time that stand beside the bar."""
    gpu = main_gpu(answer)
    return () if gpu is None else _large_idle(gpu)


def _launched(answer: Answer) -> str:
    """How many launches an inference is, where all have as many."""
    found = _launches(answer)
    if found is None:
        return ""
    least, most = found.least, found.most
    many = counted(most, "kernel") if least == most else f"{least:,} to {most:,} kernels"
    return f"each {words.each(answer)} launches {many} one by one"


@dataclass(frozen=True)
class _Launches:
    """How many kernels an inference has, in the kinds with the fewest and the most."""

    least: int
    most: int


def _launches(answer: Answer) -> _Launches | None:
    kernels = [kind.kernels for kind in answer.kinds if kind.kernels and kind.steady]
    return _Launches(min(kernels), max(kernels)) if kernels else None


def _behind(answer: Answer, action: Action) -> IdleCause | None:
    """The largest idle time in the trace that a change is about."""
    change, gpu = CHANGES.get(action.name), main_gpu(answer)
    if change is None or gpu is None:
        return None
    about = [one for one in gpu.idle if one.cause in change.removes]
    return max(about, key=lambda one: one.share_of_window, default=None)


# --- where GPU time goes
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costliest:
    """One row of where GPU time goes, with its share of the kernel time."""

    share: float
    engine: str
    name: str
    what: str  # how many layers, or what it computes
    own_name: str = ""  # what the engine file calls it, where that is another name
    above_ns: int | None = None  # what it takes above what the hardware needs, where that is told


def costs(answer: Answer, *, minor: bool = True) -> tuple[Costliest, ...]:
    """The costliest layers, or kernels where no layer is known, the largest share first; without
    ``minor`` ones only the first few of those that are a few percent of all time.
    """
    rows = cost_rows(answer)
    if not rows:
        shown = answer.kernels[:LAYERS]
        titles = kernel_titles([(one.what, one.name) for one in shown], _KERNEL)
        return _large(
            answer,
            minor,
            (
                Costliest(one.share_of_kernel_time, "", title, f"{one.kernels:,}x")
                for one, title in zip(shown, titles, strict=True)
            ),
        )
    names = whose.engine_names(answer)
    several = len({one.engine for one in answer.layers}) > 1
    above = _above(answer)
    found: list[Costliest] = []
    for one in rows:
        engine = names[one.engine] if several and one.engine is not None else ""
        region = next(
            (
                region
                for region in answer.regions
                if one.group is not None
                and one.group.opaque
                and (region.engine, region.name) == (one.group.engine, one.group.name)
            ),
            None,
        )
        if region is not None and one.share >= _INSIDE and len(region.parts) > 1:
            found += [
                Costliest(
                    one.share * part.share_of_region_time,
                    engine,
                    f"region › {part.name.removeprefix('$$myelin$$')}",
                    counted(part.parts, "part") if part.parts > 1 else "",
                )
                for part in region.parts
            ]
            continue
        layers = counted(one.layers, "layer") if one.layers and one.layers > 1 else ""
        own = one.group.name if one.group is not None and one.group.name != one.name else ""
        far = None if one.group is None else above.get(_Titled(one.group.engine, one.group.title))
        found.append(Costliest(one.share, engine, short_nodes(one.name), layers, own, far))
    return _large(answer, minor, found)


@dataclass(frozen=True)
class _Titled:
    """Layers that have one title, of an engine."""

    engine: int | None
    title: str


def _above(answer: Answer) -> Mapping[_Titled, int]:
    """How far layers are above what the hardware needs, where that is known."""
    found = answer.headroom
    if found is None or not hardware(answer):
        return {}
    known = [one for one in found.groups if one.least_ns is not None]
    return {_Titled(one.engine, one.title): one.headroom_ns for one in known}


def _large(answer: Answer, minor: bool, found: Iterable[Costliest]) -> tuple[Costliest, ...]:
    """The largest, as far as they are worth a line: a few percent of the kernel time, and after the
    first few as much of all time; one always.
    """
    shown = sorted(found, key=lambda one: -one.share)[:LAYERS]
    gpu = main_gpu(answer)
    busy_share = answer.gpu_unprofiled.busy_share if answer.gpu_unprofiled else None
    busy_share = busy_share or (gpu.busy_share if gpu is not None else None) or 1.0
    later = _LEAST_COST if minor else _MAJOR
    large = tuple(
        one
        for place, one in enumerate(shown)
        if (one.share >= _LEAST_COST if place < _FIRST_FEW else one.share * busy_share >= later)
    )
    return large or tuple(shown[:1])


def costs_headings(answer: Answer) -> tuple[str, ...]:
    """What the shares refer to, and how much of it the hardware needs where the GPU is the limit;
    in forms, the longest first.
    """
    if not answer.layers:
        return ("Where GPU time goes, of all kernel time in the trace",)
    ends = [f"; {one}" for one in _needed(answer)] or [""]
    *named, per, short = whole_forms(answer)
    # without the words "kernel time" it would read as the GPU's busy time, in which kernels overlap
    told = [f"Where GPU time goes, of {one}{ends[0]}" for one in named[:2]]
    told += [f"Kernel time: {one}{end}" for one in (*named[2:], per) for end in ends]
    return (*told, f"Kernel time: {short}{ends[-1]}")


# --- how sure, and more
# ----------------------------------------------------------------------------------------------


def confidence(answer: Answer) -> tuple[str, ...]:
    """What is proved and what is not, in forms, the longest first."""
    engines, short = whose.engines_ran(answer), _engines(answer)
    layers, replay = _layers(answer), words.replay_error(answer)
    forms = (
        [*engines, layers, replay],
        [short, layers, replay],
        [short, layers],
        [short or layers],
    )
    return tuple("; ".join(part for part in form if part) for form in forms)


def _engines(answer: Answer) -> str:
    """Whether the engine files are what ran, in as few words as say it."""
    if len(answer.engines) > 1 and all(one.one_of for one in answer.engines):
        return f"one of the {len(answer.engines)} engine files ran, nothing tells which"
    told = [(one.source, _ran(one)) for one in answer.engines]
    states = {state for _, state in told}
    if len(told) > 1 and len(states) == 1:
        files = "both engine files" if len(told) == 2 else f"all {len(told)} engine files"
        return f"{files} {states.pop().several}"
    if len(told) > 2:
        ran = sum(one.verdict == "ran" for one in answer.engines)
        return f"{ran} of {len(told)} engine files ran"
    return ", ".join(f"{source} {state.one}" for source, state in told)


@dataclass(frozen=True)
class _RanAsFar:
    """How far it is known that an engine ran, said of one file, and of several."""

    one: str
    several: str = ""


def _ran(engine: EngineRan) -> _RanAsFar:
    if engine.verdict == "did-not-run":
        return _RanAsFar("did not run", "did not run")
    if engine.verdict != "ran":
        told = "may have run" if engine.verdict else "could not be compared"
        return _RanAsFar(told, told)
    if engine.unknown_layers or engine.lacking or engine.other_tactics:
        return _RanAsFar("ran, or another build of it", "ran, or other builds of them")
    if engine.by_order:
        return _RanAsFar("ran, or one like it", "ran, or others like them")
    if not engine.tactics:
        return _RanAsFar("fits by its layers' names", "fit by their layers' names")
    if engine.in_doubt or engine.other_kernels:
        told = "ran, partly with other kernels"
        return _RanAsFar(told, told)
    return _RanAsFar("ran", "ran")


def _layers(answer: Answer) -> str:
    """How many kernels have a layer; empty in a program that has none."""
    mapped = answer.mapped
    if not mapped.kernels or not answer.tensorrt:
        return ""
    visible = "visible " if answer.hidden else ""
    if mapped.with_layer == mapped.kernels:
        return f"every {visible}kernel has a layer"
    if not mapped.with_layer:
        return "no layer is known: there is no engine file, and no range names one"
    return f"{mapped.with_layer:,} of {mapped.kernels:,} {visible}kernels have a layer"


def more(answer: Answer) -> tuple[str, ...]:
    """Where to see more, in forms: options, and the slowest inference if it is an outlier."""
    options = "--full · -o report.html"
    found = answer.slowest
    if found is None or found.times_median < OUTLIER:
        return (options,)
    cause = next((what for what, _ in found.more), None)
    because = "" if cause is None else "GPU work" if cause == WORK else idle_words(cause)
    which = f"{options} · slowest: {words.each(answer)} {found.inference}"
    times_median = f"{multiple(found.times_median)}x its median"
    return (
        f"{which}, {times_median} ({because})" if because else f"{which}, {times_median}",
        f"{which}, {times_median}",
        which,
    )


def missing(answer: Answer) -> NextStep | None:
    """What another capture or file would show, and the command that makes it; None if nothing is
    missing.
    """
    return next(iter(answer.next_steps), None)


_PLACE = 50  # columns of where something was found
_KERNEL = 60  # columns of what a kernel is
