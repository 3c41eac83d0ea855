"""The answer that stands on top of the page: how long an inference takes, where the time goes, what would pay most."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.analysis import Analysis
from nsysmap.base.terminal import escaped
from nsysmap.base.units import counted, duration, percent
from nsysmap.picture.swatches import CAUSES
from nsysmap.report.model import Report, WhatIfRow
from nsysmap.report.words import CAUSES as CAUSE_WORDS
from nsysmap.report.words import change_words, pass_words

_ACTIONS = 3
_LAYERS = 3
_BUSY = "#566bcb"


@dataclass(frozen=True)
class Part:
    """One part of the bar that shows where the time goes: from where to where, in percent of the bar."""

    words: str
    said: str
    fill: str
    left: float
    wide: float


@dataclass(frozen=True)
class Action:
    """Something that would save time: what, by how much, and what to do."""

    words: str
    saving: str
    advice: str | None


@dataclass(frozen=True)
class Answer:
    """The answer in a few sentences and one bar."""

    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    layers: tuple[str, ...]
    actions: tuple[Action, ...]


def answer_of(analysis: Analysis, report: Report) -> Answer:
    """The answer of an analysis."""
    return Answer(tuple(_facts(analysis, report)), _parts(report), _layers(analysis), _actions(analysis, report))


def _facts(analysis: Analysis, report: Report) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    for loop in analysis.tables.inference_loops:
        mean, per = loop.maybe_integer("mean_ns"), pass_words(loop.integer("inferences_a_pass"))
        rate = loop.maybe_real("per_second")
        if mean is not None and rate is not None:
            several = f", GPU {loop.maybe_integer('device')}" if len(analysis.tables.inference_loops) > 1 else ""
            spread = f"median {duration(loop.maybe_integer('median_ns'))}, 95th percentile {duration(loop.maybe_integer('p95_ns'))}"
            facts.append((f"Time per {per}, under the profiler{several}", f"{duration(mean)} ({rate:,.0f} a second); {spread}"))
    row = next((row for row in report.whatif if row.before_ns is not None), None)
    if row is not None:
        low, high = duration(row.low_before_ns), duration(row.high_before_ns)
        facts.append(
            (f"Without the profiler, predicted per {pass_words(row.inferences or 1)}", f"{duration(row.before_ns)} ({low} to {high})")
        )
    if report.busy_share is not None:
        window = "first to last measured inference" if report.busy_window == "inferences" else "first to last GPU work"
        facts.append(("GPU at work", f"{percent(report.busy_share, 1)} of the time from {window}"))
    figures = report.inferences
    apart = [f"{figures.warmup:,} warm-up" if figures.warmup else "", f"{figures.cut:,} cut by the capture" if figures.cut else ""]
    left_out = " and ".join(one for one in apart if one)
    facts.append(
        ("Inferences", f"{figures.count:,}" + (f", {left_out} set apart" if left_out else "") if figures.count else "none was recognised")
    )
    mapped = sum(row.time_ns for row in report.mapped)
    facts.append(("Kernel time with a known layer", percent(mapped, report.kernel_time_ns, 2)))
    skipped = len(report.skipped)
    facts.append(
        ("Rules", f"{counted(sum(1 for one in report.outcomes if one.findings), 'rule')} found something, {skipped} could not tell")
    )
    return facts


def _parts(report: Report) -> tuple[Part, ...]:
    if report.busy_share is None:
        return ()
    idle = [(row.cause, row.share_of_window, row.time_ns) for row in report.idle]
    shares = [("GPU work", report.busy_share, _BUSY, "kernels, copies and memsets")]
    shares += [(f"idle: {cause}", share, CAUSES[cause], f"{CAUSE_WORDS[cause]} ({duration(time)})") for cause, share, time in idle]
    parts, left = [], 0.0
    for words, share, fill, said in shares:
        parts.append(Part(f"{words} {percent(share, 1)}", said, fill, round(left * 100, 3), round(share * 100, 3)))
        left += share
    return tuple(parts)


def _layers(analysis: Analysis) -> tuple[str, ...]:
    found = []
    for row in list(analysis.tables.repeated_layers)[:_LAYERS]:
        count = row.integer("layers")
        several = f"{count} × " if count > 1 else ""
        time = f"{percent(row.real('share_of_kernel_time'), 1)}, {duration(row.integer('time_ns'))}"
        found.append(f"{several}{escaped(row.text('name'))} ({row.text('kind')}): {time}")
    return tuple(found)


def _actions(analysis: Analysis, report: Report) -> tuple[Action, ...]:
    answered = [row for row in report.whatif if row.answer == "answered" and row.saving_ns and row.saving_ns > 0]
    answered.sort(key=lambda row: -(row.saving_ns or 0))
    return tuple(_action(analysis, row) for row in answered[:_ACTIONS])


def _action(analysis: Analysis, row: WhatIfRow) -> Action:
    saving = f"{duration(row.saving_ns)} of {duration(row.before_ns)} per {pass_words(row.inferences or 1)}"
    saving += f" ({duration(row.low_saving_ns)} to {duration(row.high_saving_ns)}), predicted without the profiler"
    advice = next(
        (
            finding.text("advice")
            for finding in analysis.tables.findings
            if f"--change {row.change}" in (finding.maybe_text("command") or "")
        ),
        None,
    )
    return Action(change_words(row.change), saving, None if advice is None else escaped(advice))
