"""The first page of an answer, which fits a screen: its sections, made once for every form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

from nsysmap.answer import first, gains, words
from nsysmap.answer.model import Answer
from nsysmap.core.records import dataclass
from nsysmap.text.lines import wrapped
from nsysmap.text.page import (
    Block,
    Grid,
    Instruction,
    Instructions,
    Meter,
    Paragraph,
    Section,
)
from nsysmap.text.page_lines import BESIDE, GAIN, LEAD, METER, STEP, bar
from nsysmap.text.terminal import columns, shortened
from nsysmap.text.units import percent, rounded


@dataclass(frozen=True)
class Amount:
    """How much the first page says."""

    layers: int = first.LAYERS
    actions: int = gains.ACTIONS
    reasons: int = gains.ACTIONS  # of the first actions
    kinds: int = 4  # of inferences whose times are told
    detail: int = 0  # which form of sentences: 0 is the longest
    missing: int = 1  # what another capture or file would tell
    minor: int = 1  # layers of a few percent of all time, after the first few


_LONGEST_WORD = 20  # columns that a line may lack where a sentence is cut to a few lines
EVERYTHING = Amount()

_BRIEFER: tuple[Mapping[str, int], ...] = (
    {"reasons": 1},
    {"minor": 0},
    {"layers": 4},
    {"layers": 3},
)
"""Parts that are left out if the screen is longer than most, though there is room."""
_LESS: tuple[Mapping[str, int], ...] = (
    {"layers": 4},
    {"layers": 3},
    {"reasons": 1},
    {"kinds": 2},
    {"kinds": 0},
    {"actions": 1},
    {"detail": 1},
    {"reasons": 0},
    {"missing": 0},
    {"layers": 2},
    {"detail": 2},
    {"layers": 1},
    {"detail": 3},
)
"""Parts that are left out one after the other if there is too little room."""


def fitting(fits: Callable[[Amount], bool], short: Callable[[Amount], bool]) -> Amount:
    """As many of the parts as fit. The least important go first; parts that need not go stay. A
    part of little importance is left out if that makes the line ``short``, or if the line would not
    fit with it.
    """
    held = {one.name: getattr(EVERYTHING, one.name) for one in fields(Amount)}
    for step in _BRIEFER:
        if not short(Amount(**held)):
            held |= step
    gone: list[tuple[str, int]] = []
    for step in _LESS:
        if fits(Amount(**held)):
            break
        for name, less in step.items():
            gone.append((name, held[name]))
            held[name] = less if name == "detail" else min(less, held[name])
    for name, before in reversed(gone):
        more = {**held, name: before}
        if fits(Amount(**more)):
            held = more
    return Amount(**held)


def first_sections(
    answer: Answer, amount: Amount = EVERYTHING, room: int | None = None
) -> Iterator[Section]:
    """The sections of the first page; a sentence has the longest form that takes one line of
    ``room`` characters, or the shortest.
    """
    fit = _Fit(room, amount.detail)
    doubts = first.doubts(answer)
    if doubts:
        more = f" (+{left}: --full)" if (left := len(doubts) - 1) else ""
        told = fit(doubts[0].forms(more), lines=doubts[0].lines)
        yield _beside("doubt", "Doubt", [Paragraph(told, "red" if doubts[0].wrong else "yellow")])
    times = [Paragraph(fit(forms)) for forms in first.times(answer)]
    if amount.kinds and (kinds := _kinds(answer, amount.kinds, room)):
        times.append(Paragraph(kinds))
    if times:
        yield _beside("time", "Time", times)
    if gpu := _gpu(answer, fit):
        yield _beside("gpu", "GPU", gpu)
    todo = first.todo(answer)[: amount.actions]
    todo = tuple(_reasoned(one, room, told=at < amount.reasons) for at, one in enumerate(todo))
    shorter = [one for one in todo if not one.throughput]
    if shorter:
        yield _beside("do-first", "Do first", [_todo(shorter, fit)])
    elif not answer.blocked and answer.inferences and not todo:
        yield _beside("do-first", "Do first", [Paragraph(first.nothing(answer))])
    if wider := [one for one in todo if one.throughput]:
        yield _beside("throughput", "Throughput", [_todo(wider, fit)])
    if (step := first.missing(answer)) and (amount.missing or answer.blocked):
        line = fit.line(step.command, step.brief or "")
        again = Instructions((Instruction(step.why, (line,)),), numbered=False)
        first_of_all = not todo and (answer.blocked or not answer.inferences)
        yield _beside("next", "Do first" if first_of_all else "Next", [again])
    if costs := first.costs(answer, minor=bool(amount.minor))[: amount.layers]:
        yield Section("costs", fit(first.costs_headings(answer), wide=True), (_costs(costs),))
    if sure := fit(first.confidence(answer)):
        yield _beside("sure", "Confidence", [Paragraph(sure)])
    yield _beside("more", "More", [Paragraph(fit(first.more(answer)))])


@dataclass(frozen=True)
class _Fit:
    """Chooses a form of a sentence."""

    room: int | None
    least: int  # longer forms are not used

    def __call__(
        self, forms: Sequence[str], *, wide: bool = False, taken: int = 0, lines: int = 1
    ) -> str:
        """The first that fits; ``wide``: the whole line is free; ``taken``: so much of it is not;
        ``lines``: that it may take.
        """
        if not forms:
            return ""
        left = forms[min(self.least, len(forms) - 1) :]
        if self.room is None:
            return left[0]
        room = (self.room + BESIDE if wide else self.room) - taken
        fit = (one for one in left if len(wrapped(one, room, indent=0, hang=0)) <= lines)
        cut = left[-1] if lines == 1 else shortened(left[-1], lines * room - _LONGEST_WORD)
        return next(fit, cut)

    def line(self, whole: str, brief: str) -> str:
        """The command or line to paste; the essential part if it takes several lines of a
        terminal.
        """
        if self.room is None or not brief or columns(whole) <= self.room + BESIDE - LEAD:
            return whole
        return brief


def _beside(key: str, word: str, blocks: Sequence[Block]) -> Section:
    return Section(key, word, tuple(blocks), beside=True)


def _kinds(answer: Answer, most: int, room: int | None) -> str:
    """The times of as many kinds of inferences as fit a line; none if similar threads are shown as
    one.
    """
    if words.each_alike(answer) is not None:
        return ""
    for number in range(most, 1, -1):
        told = words.kinds(answer, number)
        if room is None or columns(told) <= room:
            return told
    return ""


def _gpu(answer: Answer, fit: _Fit) -> list[Block]:
    gpu = first.main_gpu(answer)
    if gpu is None:
        return []
    blocks: list[Block] = (
        [Paragraph(fit(first.busy(answer, gpu)))]
        if answer.trace.one_piece
        else [Meter(gpu.busy_share or 0.0, fit(first.busy(answer, gpu), taken=METER))]
    )
    named = any(one.above_ns for one in first.costs(answer))
    told = (
        first.copying(gpu),
        first.idle(answer, gpu),
        first.counters(answer, gpu),
        () if named else first.excess(answer, fit.room),
    )
    for forms in told:
        blocks += [Paragraph(fit(forms))] if any(forms) else []
    return blocks


def _reasoned(one: first.Todo, room: int | None, *, told: bool) -> first.Todo:
    """The action with its reason in the title, if both and the gain fit one line; otherwise without
    the reason, unless it is ``told``.
    """
    beside = [] if room is None else [
        title for title in one.reasoned if columns(title) + GAIN + columns(one.gain) <= room
    ]  # fmt: skip
    if beside:
        return replace(one, title=beside[0], why="")
    return one if told else replace(one, why="")


def _todo(shown: Sequence[first.Todo], fit: _Fit) -> Instructions:
    steps = tuple(
        Instruction(
            one.title,
            (fit.line(one.paste, one.paste_brief),) if one.paste else (),
            fit(_to_change(one), taken=STEP),
            gain=one.gain,
            why="" if one.change else one.why,
            name=one.name,
        )
        for one in shown
    )
    return Instructions(steps, numbered=len(shown) > 1)


def _to_change(one: first.Todo) -> Sequence[str]:
    """What to change and why, in forms."""
    told = dict.fromkeys(form for form in (one.change, one.change_brief) if form)
    return [f"{form}; {one.why}" if one.why else form for form in told]


def _costs(shown: Sequence[first.Costliest]) -> Grid:
    several, counts = any(one.engine for one in shown), any(one.what for one in shown)
    above = any(one.above_ns for one in shown)
    rows = tuple(
        (
            percent(one.share, 1, 0),
            bar(one.share),
            *((one.engine,) if several else ()),
            one.name,
            *((one.what,) if counts else ()),
            *((f"{rounded(one.above_ns)} above" if one.above_ns else "",) if above else ()),
        )
        for one in shown
    )
    header = ("",) * len(rows[0])
    align = "rk" + "k" * several + "n" + "k" * counts + "r" * above
    tips = tuple(one.own_name for one in shown)
    return Grid(header, rows, align, names=(2 + several,), tips=tips if any(tips) else ())
