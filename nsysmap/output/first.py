"""The first page of an answer, which fits a screen: its sections, made once for every form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

from nsysmap.answer import first, words
from nsysmap.answer.model import Answer
from nsysmap.core.records import dataclass
from nsysmap.text.page import (
    Block,
    Grid,
    Instruction,
    Instructions,
    Meter,
    Paragraph,
    Section,
)
from nsysmap.text.page_lines import BESIDE
from nsysmap.text.terminal import columns
from nsysmap.text.units import percent


@dataclass(frozen=True)
class Amount:
    """How much the first page says."""

    layers: int = first.LAYERS
    actions: int = first.ACTIONS
    reasons: int = first.ACTIONS  # of the first actions
    kinds: int = 4  # of inferences whose times are told
    doubts: int = 3
    detail: int = 0  # which form of sentences: 0 is the longest
    missing: int = 1  # what another capture or file would tell


EVERYTHING = Amount()

_LESS: tuple[Mapping[str, int], ...] = (
    {"layers": 4},
    {"layers": 3},
    {"reasons": 1},
    {"kinds": 2},
    {"doubts": 2},
    {"kinds": 0},
    {"actions": 1},
    {"doubts": 1},
    {"detail": 1},
    {"reasons": 0},
    {"missing": 0},
    {"layers": 2},
    {"detail": 2},
    {"layers": 1},
    {"detail": 3},
)
"""What is left out, one after the other, where there is too little room."""


def fitting(fits: Callable[[Amount], bool]) -> Amount:
    """As much as fits: what says least goes first, and what need not have gone stays."""
    held = {one.name: getattr(EVERYTHING, one.name) for one in fields(Amount)}
    gone: list[tuple[str, int]] = []
    for step in _LESS:
        if fits(Amount(**held)):
            break
        for name, less in step.items():
            gone.append((name, held[name]))
            held[name] = less
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
    shown = doubts[: amount.doubts]
    if left := len(doubts) - len(shown):
        shown = (
            *shown[:-1],
            replace(shown[-1], text=f"{shown[-1].text} (and {left} more: --full)"),
        )
    if shown:
        yield _beside("doubt", "Doubt", [
            Paragraph(one.text, "red" if one.wrong else "yellow") for one in shown
        ])  # fmt: skip
    told = [Paragraph(fit(forms)) for forms in first.times(answer)]
    if amount.kinds and (kinds := _kinds(answer, amount.kinds, room)):
        told.append(Paragraph(kinds))
    if told:
        yield _beside("time", "Time", told)
    if gpu := _gpu(answer, fit):
        yield _beside("gpu", "GPU", gpu)
    todo = first.todo(answer)[: amount.actions]
    shorter = [one for one in todo if not one.throughput]
    if shorter:
        yield _beside("do-first", "Do first", [_todo(shorter, amount)])
    elif not answer.blocked and answer.inferences and not todo:
        yield _beside("do-first", "Do first", [Paragraph(first.nothing(answer))])
    if wider := [one for one in todo if one.throughput]:
        yield _beside("throughput", "Throughput", [_todo(wider, amount)])
    if (step := first.missing(answer)) and (amount.missing or answer.blocked):
        why, command = step
        again = Instructions((Instruction(why, (command,)),), numbered=False)
        first_of_all = not todo and (answer.blocked or not answer.inferences)
        yield _beside("next", "Do first" if first_of_all else "Next", [again])
    if amount.layers and (costs := first.costs(answer)[: amount.layers]):
        yield Section("costs", fit(first.costs_headings(answer), wide=True), (_costs(costs),))
    if sure := fit(first.confidence(answer)):
        yield _beside("sure", "Confidence", [Paragraph(sure)])
    yield _beside("more", "More", [Paragraph(fit(first.more(answer)))])


@dataclass(frozen=True)
class _Fit:
    """Chooses a form of a sentence."""

    room: int | None
    least: int  # longer forms are not used

    def __call__(self, forms: Sequence[str], *, wide: bool = False) -> str:
        """The first that fits; ``wide``: the whole line is free."""
        if not forms:
            return ""
        left = forms[min(self.least, len(forms) - 1) :]
        if self.room is None:
            return left[0]
        room = self.room + BESIDE if wide else self.room
        return next((one for one in left if columns(one) <= room), left[-1])


def _beside(key: str, word: str, blocks: Sequence[Block]) -> Section:
    return Section(key, word, tuple(blocks), beside=True)


def _kinds(answer: Answer, most: int, room: int | None) -> str:
    """The times of the kinds of inferences, of as many as fit a line."""
    for number in range(most, 1, -1):
        told = words.kinds(answer, number)
        if room is None or columns(told) <= room:
            return told
    return ""


def _gpu(answer: Answer, fit: _Fit) -> list[Block]:
    gpu = first.main_gpu(answer)
    if gpu is None:
        return []
    blocks: list[Block] = [Meter(gpu.busy_share or 0.0, fit(first.busy(answer, gpu)))]
    told = (
        first.copying(answer, gpu),
        first.idle(answer, gpu),
        first.counters(answer, gpu),
        (first.hardware(answer),),
        first.excess(answer, fit.room),
    )
    for forms in told:
        blocks += [Paragraph(fit(forms))] if any(forms) else []
    return blocks


def _todo(shown: Sequence[first.Todo], amount: Amount) -> Instructions:
    return Instructions(
        tuple(
            Instruction(
                one.title,
                (one.paste,) if one.paste else (),
                one.change,
                gain=one.gain,
                why=one.why if number < amount.reasons else "",
                name=one.name,
            )
            for number, one in enumerate(shown)
        ),
        numbered=len(shown) > 1,
    )


def _costs(shown: Sequence[first.Costliest]) -> Grid:
    several = any(one.engine for one in shown)
    rows = tuple(
        (
            percent(one.share, 1, 0),
            *((one.engine,) if several else ()),
            one.name,
            one.what,
        )
        for one in shown
    )
    counts = any(one.what for one in shown)
    if not counts:
        rows = tuple(row[:-1] for row in rows)
    header = ("",) * (2 + several + counts)
    align = "r" + "k" * several + "n" + "k" * counts
    tips = tuple(one.own_name for one in shown)
    return Grid(header, rows, align, names=(1 + several,), tips=tips if any(tips) else ())
