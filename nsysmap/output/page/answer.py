"""The top of the page: bars that show where the time of each GPU goes, and the answers that are a
sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from nsysmap.answer import first, gains, whose, words
from nsysmap.answer.costs import Cost, cost_rows, costs_of, functions, inside
from nsysmap.answer.model import REPLAY, Answer, GpuTime, LayerGroup
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.records import dataclass
from nsysmap.output.answers import above_actions, below_actions
from nsysmap.output.first import EVERYTHING, first_sections
from nsysmap.output.picture.swatches import CAUSES
from nsysmap.output.words import CAUSES as CAUSE_WORDS
from nsysmap.text.page import Block, Instruction, Instructions, Paragraph
from nsysmap.text.terminal import escaped, told_apart
from nsysmap.text.units import counted, duration, percent, rounded
from nsysmap.trace.inferences.steady import OUTLIER

TOP = 5
"""Layers, or kernels, at the top of the page."""

_NAME = 46  # characters of a name at the top of the page
_LEAST_PART = 0.0005  # of a bar: what is less would be said as 0.0%
_LEAST_EXPLAINED = (
    0.01  # of a bar: what is less is hardly seen, and explained in the tab of idle time
)
_LEAST_OWN = 0.05  # of a bar: what only the replay has is explained, in a line of its own
BUSY = "#566bcb"
"""The colour of GPU work."""


@dataclass(frozen=True)
class BarPart:
    """One part of a bar: position and width in percent of the bar."""

    words: str
    means: str
    said: str
    time: str
    fill: str
    left: float
    wide: float
    cause: str = ""  # of idle time in the trace, which a click shows
    device: int = 0


@dataclass(frozen=True)
class Bar:
    """The parts of the time of one GPU."""

    title: str
    short: str  # which time that is, in a word or two
    parts: tuple[BarPart, ...]
    legend: tuple[BarPart, ...]  # those that the bar above does not explain already
    replayed: bool = False  # without the profiler


@dataclass(frozen=True)
class Answered:
    """One answer in a sentence, and its place on the page: in a tab, or on top under a word of its
    own.
    """

    place: str
    word: str
    text: str
    inference: int | None = None


@dataclass(frozen=True)
class Costly:
    """Layers that are alike, or kernels of one family without a layer, among those that cost
    most.
    """

    share: float
    time: str  # in the unit of the answer
    layers: int | None
    name: str  # the engine's
    title: str  # what they are called
    what: str
    engine: int | None
    family: str  # of kernels without a layer
    group: LayerGroup | None


@dataclass(frozen=True)
class PageSentences:
    """The sentences at the top of the page."""

    title: str
    traced: str  # time per unit in the trace
    traced_of: str  # what that is of
    predicted: str  # time per unit without the profiler
    predicted_range: str
    predicted_rate: str
    per_second: str  # what a rate counts
    # the same of the trace, with how many threads or on which GPU; empty for unlike loops
    rate: str
    without: str  # the profiler: where the time goes, as replayed
    shorter: tuple[Block, ...]  # what to do first, or that nothing saves time
    wider: tuple[Block, ...]  # what to do for throughput
    again: tuple[Block, ...]  # what to capture or export for what is not known
    again_first: bool  # nothing else is to be done before
    costs: tuple[Costly, ...]
    costs_of: str  # what their shares are of
    kernels: tuple[str, ...]
    confidence: str
    rows: Mapping[str, Sequence[Answered]]  # by place


def page_sentences(summary: Answer, proofs: Mapping[int, str], *, layers: bool) -> PageSentences:
    """The sentences of an answer; ``layers`` says that the page has a tab of layers, and ``proofs``
    by engine what shows that it ran.
    """
    guess, costs = summary.unprofiled, cost_rows(summary, families=True)[:TOP]
    predicted = None if guess is None else words.figure_range(guess)
    todo = {section.key: section.blocks for section in first_sections(summary, EVERYTHING)}
    again: tuple[Block, ...] = (
        (
            Instructions(
                tuple(Instruction(one.why, (one.command,)) for one in summary.next_steps),
                numbered=False,
            ),
        )
        if summary.next_steps
        else ()
    )
    time, per = _traced(summary)
    return PageSentences(
        words.title(summary),
        time,
        per,
        "" if predicted is None else predicted.alone,
        "" if predicted is None else predicted.ends,
        "" if guess is None else words.rate_of(guess),
        words.per_second(summary),
        "" if summary.unlike_loops else words.per_second(summary) + words.together(summary),
        words.unprofiled(summary),
        todo.get("do-first", () if again else (Paragraph(first.nothing(summary)),)),
        todo.get("throughput", ()),
        again,
        "next" in todo and "do-first" not in todo and "throughput" not in todo,
        tuple(_costly(cost, short) for cost, short in zip(costs, _short(costs), strict=True)),
        costs_of(summary),
        tuple(
            told_apart(
                [escaped(name) for name in functions([row.name for row in summary.kernels[:TOP]])],
                _NAME,
            )
        ),
        _confidence(summary),
        _placed(_rows(summary, proofs, layers="layers" if layers else "kernels")),
    )


def _traced(summary: Answer) -> tuple[str, str]:
    """Returns the time in the trace and what it is of: of the kind that takes most of the time
    where the mean over all kinds is the time of none, as on the terminal.
    """
    if (loops := summary.unlike_loops) is not None:
        longest = loops.loops[0]
        of = f"{longest.what} ({percent(longest.share, 1, 0)} of {len(loops.loops)} loops)"
        per = f"per {summary.unit_of_time.short} of {of}, profiler included"
        return rounded(longest.median_ns), per
    if summary.traced is None:
        return "", ""
    if (main := words.mean_misleads(summary)) is None:
        return rounded(summary.traced.ns), f"per {summary.unit}, profiler included"
    of = (
        f"per {summary.unit_of_time.short} of {main.what} ({percent(main.share, 1, 0)} of the time;"
        f" mean of {counted(main.kinds, 'kind')} {rounded(summary.traced.ns)})"
    )
    return rounded(main.mean_ns), f"{of}, profiler included"


def _placed(rows: Iterable[Answered]) -> Mapping[str, Sequence[Answered]]:
    found: dict[str, list[Answered]] = {place: [] for place in PLACES}
    for row in rows:
        if row.text:
            found[row.place].append(row)
    return found


def _costly(cost: Cost, short: str) -> Costly:
    name = cost.name if cost.group is None else cost.group.name
    return Costly(
        cost.share,
        rounded(cost.time_ns),
        cost.layers,
        name,
        short,
        cost.what,
        cost.engine,
        cost.family,
        cost.group,
    )


def _short(costs: Sequence[Cost]) -> tuple[str, ...]:
    return tuple(told_apart([escaped(cost.name) for cost in costs], _NAME))


OWN_ANSWERS = frozenset({"time", "kinds", "gpu", "sure"})
"""Answers that the page shows in a way of its own: figures, bars, a table, and the evidence of each
engine.
"""
_ON_TOP = ("doubt", "slowest")
_PLACE = {"graph": "whatif", "not-fused": "findings", "unknown": "sure", "counters": "kernels"}
"""The tabs of the answers that are not on top."""
PLACES = (
    *_ON_TOP, "layers", "idle", "inferences", "kernels", "findings", "whatif", "sure",
)  # fmt: skip
"""The places of answers: on top, or in the tab with that name."""


def _rows(summary: Answer, proofs: Mapping[int, str], *, layers: str) -> Iterator[Answered]:
    for one in (*above_actions(summary), *below_actions(summary)):
        if one.key == "sure":
            yield from _sure(summary, proofs)
        if one.key in OWN_ANSWERS:
            continue
        slowest = summary.slowest if one.key == "slowest" else None
        place = one.key if one.key in _ON_TOP else _PLACE.get(one.key, "sure")
        if slowest is not None and slowest.times_median < OUTLIER:
            place = "inferences"
        for text in one.texts:
            yield Answered(place, one.word, text, slowest.inference if slowest else None)
    yield Answered(layers, "other kernels", whose.outside(summary))
    several = len(summary.regions) > 1
    yield Answered(layers, "inside regions" if several else "inside the region", inside(summary))
    yield Answered("whatif", "do first", gains.cut_off(summary))


def _confidence(summary: Answer) -> str:
    """Says in a line whether the engine files are those that ran, and for which kernels a layer is
    known.
    """
    verdicts = (whose.engine_ran(summary, engine) for engine in summary.engines)
    told = (*dict.fromkeys(verdicts), words.with_layer(summary))
    return "; ".join(one for one in told if one)


def _sure(summary: Answer, proofs: Mapping[int, str]) -> Iterator[Answered]:
    """How sure the answer is, with what shows that each engine ran."""
    for number, engine in enumerate(summary.engines):
        verdict = whose.engine_ran(summary, engine)
        told = (
            f"{verdict}: {engine.how}"
            if verdict and engine.how
            else verdict or f"{engine.source} was not compared"
        )
        text = "; ".join(part for part in (told, proofs.get(number, "")) if part)
        yield Answered("sure", "engine", text)
    sure = (words.with_layer(summary), *whose.other_engines(summary), words.replayed(summary))
    yield Answered("sure", "how sure", "; ".join(part for part in sure if part))


def bars_of(summary: Answer) -> tuple[Bar, ...]:
    """A bar for each GPU, if the trace shows how busy it was, and below that of the replayed one
    the same without the profiler.  None for unlike loops one after the other: causes are known of
    the time inside them, not of what lies between; nor for a single piece of work.
    """
    if summary.unlike_loops is not None or summary.trace.one_piece:
        return ()
    without = summary.gpu_unprofiled
    bars = []
    for gpu in summary.gpus:
        bars += [_bar(summary, gpu)] if gpu.busy_share is not None else []
        bars += (
            [_replayed(summary, without, bars)]
            if without is not None and without.device == gpu.device
            else []
        )
    return tuple(bars)


def _bar(summary: Answer, gpu: GpuTime) -> Bar:
    parts = _parts(summary, gpu)
    ends = f"steady-state {words.each(summary)}" if gpu.window == "inferences" else "GPU work"
    between = f"from the first to the last {ends}"
    if gpu.left_out_ns:
        between = f"that count, of {duration(gpu.window_ns + gpu.left_out_ns)} {between}"
    name = f"GPU {gpu.device}: " if len(summary.gpus) > 1 else ""
    if gpu.busy_ns is None:
        title = f"Where the time goes, {name}{duration(gpu.window_ns)} {between}"
        return Bar(title, name or "in the trace", parts, _explained(parts))
    title = (
        f"Where the time goes, {name}in the trace: mean per {summary.unit} over"
        f" {duration(gpu.window_ns)} {between}"
    )
    return Bar(title, f"{name}in the trace", parts, _explained(parts))


def _explained(parts: Sequence[BarPart]) -> tuple[BarPart, ...]:
    """Returns those parts of a bar that can be seen."""
    work, *idle = parts
    return (work, *(one for one in idle if one.wide >= 100 * _LEAST_EXPLAINED))


def _replayed(summary: Answer, gpu: GpuTime, above: Sequence[Bar]) -> Bar:
    parts = _parts(summary, gpu)
    explained = {part.fill for bar in above for part in bar.legend}
    of = f"Predicted, of {rounded(gpu.window_ns)} per {summary.unit}"
    return Bar(
        f"{of}: {words.unprofiled(summary)}",
        "without nsys",
        parts,
        tuple(
            part for part in parts if part.fill not in explained and part.wide >= 100 * _LEAST_OWN
        ),
        replayed=True,
    )


def _parts(summary: Answer, gpu: GpuTime) -> tuple[BarPart, ...]:
    parts: list[BarPart] = []
    left, replayed = 0.0, gpu.window == REPLAY

    def add(word: str, means: str, share: float, time_ns: int | None, cause: str = "") -> None:
        nonlocal left
        time, fill = "" if time_ns is None else rounded(time_ns), CAUSES[cause] if cause else BUSY
        place, shown = (round(left * 100, 3), round(share * 100, 3)), "" if replayed else cause
        parts.append(BarPart(word, means, percent(share, 1), time, fill, *place, shown, gpu.device))
        left += share

    filled = None if replayed else words.filled(summary)
    whose = words.whose_filled(summary)
    on = (
        ""
        if filled is None
        else f" ({f'{whose} kernels ' if whose else ''}on {percent(filled, 1, 0)} of the SMs)"
    )
    add(
        f"GPU work{on}",
        "kernels, copies and memsets; overlaps counted once",
        gpu.busy_share or 0.0,
        gpu.busy_ns,
    )
    for one in gpu.idle:
        word = idle_words(one.cause, inferred=one.inferred)
        add(
            word,
            f"idle, {word}: {CAUSE_WORDS[one.cause]}{', as inferred' if one.inferred else ''}",
            one.share_of_window,
            one.ns,
            one.cause,
        )
    if 1 - left >= _LEAST_PART:  # idle time with a cause is between two pieces of work
        means = (
            "idle, before the first or after the last work of this GPU in the trace: its cause is"
            " unknown"
        )
        rest, whole_ns = 1 - left, (gpu.busy_ns or 0) / (gpu.busy_share or 1)
        add(
            "before the first work",
            means,
            rest,
            round(rest * whole_ns) if whole_ns else None,
            "unknown",
        )
        parts[-1] = replace(parts[-1], cause="")
    return tuple(parts)
