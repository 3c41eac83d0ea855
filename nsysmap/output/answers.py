"""The answers that are a sentence, in reading order: what stands above the actions, and below.

A new answer is a line here; every form of output shows it, those with a way of their own for it by
its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsysmap.answer import gains, hardware, next_steps, words
from nsysmap.answer.commands import commands
from nsysmap.answer.costs import cost_rows, costs_heading
from nsysmap.answer.model import Action, Answer, Region, RegionPart
from nsysmap.answer.whose import engine_names
from nsysmap.core.records import dataclass
from nsysmap.text.page import (
    Block,
    Grid,
    Instruction,
    Instructions,
    Pairs,
    Paragraph,
    Section,
    Subheading,
)
from nsysmap.text.units import capitalised, percent, rounded
from nsysmap.timing.layer_sums import NUMBER, common_name

_TOP_GROUPS = 15  # rows; the sections below have every layer


@dataclass(frozen=True)
class AnswerRow:
    """One answer: the word on its left, and its sentences."""

    key: str
    word: str
    sentences: tuple[tuple[str, ...], ...]  # each in its forms, the longest first

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences in their longest form."""
        return tuple(forms[0] for forms in self.sentences)


def above_actions(summary: Answer) -> Iterator[AnswerRow]:
    """The answers above what to do first, those that say nothing left out."""
    doubts = tuple(words.first_doubt(summary, brief=brief) for brief in (False, True))
    times = zip(words.times(summary), words.times(summary, brief=True), strict=True)
    yield from _said("doubt", "doubt", [doubts])
    yield from _said("time", "time", list(times))
    yield from _said("kinds", "", [(words.kinds(summary),)])
    yield from _said("gpu", "GPU", [(text,) for text in words.where(summary)])
    yield from _said(
        "counters", "counters", [(text,) for text in hardware.counter_sentences(summary)]
    )


def below_actions(
    summary: Answer,
    listed: str = "",
    *,
    why: bool = True,
    held_up: bool = True,
    alone: bool = False,
) -> Iterator[AnswerRow]:
    """The answers below what to do first; ``listed`` says where all that is unknown is listed.

    Without ``why`` and ``held_up`` less is said of the slowest inference; ``alone`` says that the
    actions already have what else a CUDA graph of all launches brings.
    """
    if summary.inferences:
        yield from _said("graph", "CUDA graph", [(gains.graph(summary, alone=alone),)])
    if summary.rules:
        details = ((True, True), (False, True), (False, False))
        fused = (words.not_fused(summary, places=some, counts=many) for some, many in details)
        yield from _said("not-fused", "not fused", [tuple(fused)])
    slowest = (
        words.slowest(summary, why=why, usual=usual, held_up=held_up) for usual in (True, False)
    )
    yield from _said("slowest", "slowest", [tuple(slowest)])
    certain = (words.certainty(summary, methods=methods) for methods in (True, False))
    yield from _said("sure", "how sure", [tuple(certain)])
    yield from _said("unknown", "unknown", [(next_steps.doubts(summary, listed),)])


def do_first(summary: Answer) -> Iterator[Block]:
    """What to do, the largest saving first, and the commands that answer open questions."""
    shown = gains.first_actions(summary)
    if not shown and not (summary.blocked and summary.next_steps):
        yield Paragraph(gains.no_action(summary))
    if shown:
        yield Instructions(tuple(_step(summary, action) for action in shown))
    if shown and (cut_off := gains.cut_off(summary)):
        yield Paragraph(cut_off)
    if summary.next_steps:
        steps = tuple(Instruction(step.why, (step.command,)) for step in summary.next_steps)
        yield Instructions(steps, numbered=False)


def _step(summary: Answer, action: Action) -> Instruction:
    told = (
        f"{'for throughput only, ' if action.throughput_only else ''}{gains.action_title(action)}:"
        f" {gains.gain(summary, action, f' per {summary.unit}')}"
    )
    return Instruction(told, tuple(gains.ways(action)), action.change or "")


def whole_answer(summary: Answer, given: Sequence[str] = ()) -> Iterator[Section]:
    """What the first page leaves out, in sections: everything known about the time, the GPU and the
    certainty, every action, the costs, and the commands that show more.

    ``given`` are the paths of the report and of the engine files.
    """
    rows = [(one.word, text) for one in above_actions(summary) for text in one.texts]
    below = below_actions(summary, " (all are listed below)")
    rows += [(one.word, text) for one in below for text in one.texts]
    if summary.selected:
        rows.insert(0, ("part", summary.selected))
    yield Section("answer", words.title(summary), (Pairs(tuple(rows)),))
    yield Section("do-first", "What to do", tuple(do_first(summary)))
    if costs := costs_section(summary):
        yield costs
    told = tuple((what, command) for what, command in commands(summary, given))
    if told:
        yield Section("commands", "Commands that show more", (Pairs(told),))


def _said(key: str, word: str, sentences: list[tuple[str, ...]]) -> Iterator[AnswerRow]:
    told = tuple(forms for forms in sentences if forms[0])
    if told:
        yield AnswerRow(key, word, told)


def costs_section(summary: Answer) -> Section | None:
    """The costliest layers, and the work inside opaque regions; None if no layer is known."""
    if not summary.layers:
        return None
    found = cost_rows(summary)
    several = len(summary.engines) > 1
    rows = tuple(
        (
            percent(one.share, 1),
            rounded(one.time_ns),
            "–" if one.layers is None else f"{one.layers}",
            *((_engine(summary, one.engine),) if several else ()),
            one.group.kind if one.group else "–",
            one.name,
        )
        for one in found[:_TOP_GROUPS]
    )
    grid = Grid(
        ("share", "time", "layers", *(("engine",) if several else ()), "kind", "layer"),
        rows,
        "rrr" + "l" * several + "ln",
        more=max(len(found) - _TOP_GROUPS, 0),
        names=(3, 5) if several else (4,),
        where="every layer is listed below",
    )
    heading = costs_heading(summary)
    return Section(
        "costs",
        f"{capitalised(heading)} (* stands for numbers)",
        (grid, *_insides(summary)),
    )


def _engine(summary: Answer, engine: int | None) -> str:
    return "–" if engine is None else engine_names(summary)[engine]


def _insides(summary: Answer) -> Iterator[Block]:
    """The parts of opaque regions; regions of an engine whose names differ only in numbers are
    one.
    """
    regions: dict[tuple[int | None, str], list[Region]] = {}
    for region in summary.regions:
        regions.setdefault((region.engine, NUMBER.sub("*", region.name)), []).append(region)
    for mine in sorted(
        regions.values(),
        key=lambda mine: -sum(part.time_ns for region in mine for part in region.parts),
    ):
        head = f"{len(mine)} × " if len(mine) > 1 else ""
        of = f" of {_engine(summary, mine[0].engine)}" if len(summary.engines) > 1 else ""
        yield Subheading(f"Inside {head}{common_name([region.name for region in mine])}{of}")
        parts: dict[str, list[RegionPart]] = {}
        for part in (part for region in mine for part in region.parts):
            parts.setdefault(NUMBER.sub("*", part.name), []).append(part)
        spent = {name: sum(part.time_ns for part in same) for name, same in parts.items()}
        rows = []
        for name in sorted(parts, key=lambda name: -spent[name])[:_TOP_GROUPS]:
            told = common_name([part.name for part in parts[name]]).removeprefix("$$myelin$$")
            rows.append(
                (
                    percent(spent[name], sum(spent.values())),
                    rounded(spent[name]),
                    f"{sum(part.parts for part in parts[name])}",
                    told,
                )
            )
        yield Grid(
            ("share", "time", "parts", "part"),
            tuple(rows),
            "rrrn",
            more=max(len(parts) - _TOP_GROUPS, 0),
            names=(3,),
            where="the .json and .db reports have all parts",
        )
