"""Checks a capture against the limits of a budget: which are met, which are exceeded and by how
much, which cannot be determined.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace

from nsysmap.comparison.gate.baseline import Baseline, baseline_of
from nsysmap.comparison.gate.budget import Limit
from nsysmap.comparison.gate.ignores import Ignore
from nsysmap.comparison.noise import Mean, difference, run_to_run
from nsysmap.comparison.pace import HIDDEN_COST, HIDDEN_COST_WORDS, HOST_CAUSES
from nsysmap.comparison.side import Side
from nsysmap.core.note import LEVELS
from nsysmap.core.records import dataclass
from nsysmap.rules.finding import Finding
from nsysmap.text.units import counted, duration, percent

KEPT, BROKEN, UNKNOWN = "kept", "broken", "cannot-tell"
_MANY = 10  # ratio to the limit above which a percentage says little


@dataclass(frozen=True)
class Check:
    """One limit checked against a capture."""

    name: str  # section.name
    limit: str  # in words
    value: str
    status: str  # kept, broken or cannot-tell
    told: str  # what exceeded it and by how much, or why it cannot be determined


@dataclass(frozen=True)
class Ignored:
    """A finding that is ignored."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The result of the gate."""

    source: str
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]  # that are not ignored
    ignored: tuple[Ignored, ...]
    notes: tuple[str, ...]
    day: datetime.date  # of the check

    @property
    def passed(self) -> bool:
        """Whether every limit is met; one that cannot be determined is not."""
        return all(check.status == KEPT for check in self.checks)


def held_to(
    side: Side,
    limits: Sequence[Limit],
    baseline: Baseline | None,
    ignores: Sequence[Ignore],
    today: datetime.date,
) -> Verdict:
    """The checks of a capture against the limits."""
    measured = baseline_of(side)
    every = [finding for outcome in side.outcomes for finding in outcome.findings]
    reasons = [
        next((one for one in ignores if one.covers(finding, today)), None) for finding in every
    ]
    kept = [finding for finding, reason in zip(every, reasons, strict=True) if reason is None]
    skipped = {one.rule: one.skipped for one in side.outcomes if one.skipped is not None}
    rules = _Rules(
        tuple(kept),
        skipped,
        frozenset(one.rule for one in side.outcomes),
        bool(len(side.tables["kernels"])),
    )
    notes = [
        f"The ignore of {one.rule}{':' + one.place if one.place else ''} ended on {one.until}:"
        f" {one.reason}"
        for one in ignores
        if one.expired(today)
    ]
    if baseline is not None and any(limit.relative for limit in limits):
        notes += _unlike(measured, baseline)
    return Verdict(
        side.source,
        tuple(_check(limit, measured, baseline, rules) for limit in limits),
        tuple(kept),
        tuple(
            Ignored(finding, reason.reason)
            for finding, reason in zip(every, reasons, strict=True)
            if reason is not None
        ),
        tuple(notes),
        today,
    )


@dataclass(frozen=True)
class _Rules:
    counted: tuple[Finding, ...]
    skipped: dict[str, str]
    known: frozenset[str]
    kernels: bool  # whether the trace shows any


def _unlike(measured: Baseline, baseline: Baseline) -> list[str]:
    was, now = baseline.tensorrt_version, measured.tensorrt_version
    return (
        [f"TensorRT differs from the baseline's: {now}, was {was}."]
        if was and now and was != now
        else []
    )


def _check(limit: Limit, measured: Baseline, baseline: Baseline | None, rules: _Rules) -> Check:
    name = f"{limit.section}.{limit.name}"
    if limit.section == "findings":
        return _findings(name, limit, rules)
    if limit.section == "coverage":
        if measured.mapped is None:
            return Check(
                name,
                f"at least {percent(limit.value, 1)}",
                "–",
                UNKNOWN,
                "the trace has no kernels",
            )
        kept = measured.mapped >= limit.value
        told = (
            ""
            if kept
            else (
                f"{percent(limit.value - measured.mapped, 1, 2)} too little of the kernel time has"
                " a layer"
            )
        )
        return Check(
            name,
            f"at least {percent(limit.value, 1)}",
            percent(measured.mapped, 1, 2),
            KEPT if kept else BROKEN,
            told,
        )
    if math.isnan(measured.time.value):
        return Check(name, _words(limit), "–", UNKNOWN, measured.profiled)
    if limit.section == "time" and limit.name == "per_inference" and measured.profiled:
        return Check(
            name,
            _words(limit),
            "–",
            UNKNOWN,
            f"the profiler's overhead cannot be subtracted: {measured.profiled}",
        )
    now = _now(limit, measured)
    if isinstance(now, str):
        return Check(name, _words(limit), "–", UNKNOWN, now)
    if limit.relative:
        return _against(name, limit, now, baseline, measured)
    most = limit.value * measured.time.value if limit.kind == "share" else limit.value
    over = now.value - most
    if _of_whole_graphs(limit, measured):
        return _of_whole_graphs_held(name, limit, now.value, most)
    told = (
        ""
        if over <= 0
        else (
            f"{duration(over)} too long ({_over(over, most)} {duration(most)})"
            if most
            else f"{duration(over)} too long"
        )
    )
    return Check(name, _words(limit), duration(now.value), BROKEN if over > 0 else KEPT, told)


def _of_whole_graphs(limit: Limit, measured: Baseline) -> bool:
    """Whether a time without the profiler is asked for that the trace has only as recorded."""
    return measured.whole_graphs and (limit.section, limit.name) == ("time", "per_inference")


def _of_whole_graphs_held(name: str, limit: Limit, value: float, most: float) -> Check:
    """The check of a time as recorded: without the profiler it is not longer, and what it may be
    shorter by is assumed.
    """
    told = f"as recorded; tracing whole CUDA graphs is assumed to add {HIDDEN_COST_WORDS} of it"
    over = value - most
    if over <= 0:
        return Check(name, _words(limit), duration(value), KEPT, told)
    least = value * (1 - HIDDEN_COST) - most
    if least > 0:
        told = f"{duration(least)} to {duration(over)} too long; {told}"
        return Check(name, _words(limit), duration(value), BROKEN, told)
    told = (
        f"{duration(over)} too long {told}, so whether it is too long without the profiler"
        " cannot be told; capture with --cuda-graph-trace=node"
    )
    return Check(name, _words(limit), duration(value), UNKNOWN, told)


def _now(limit: Limit, measured: Baseline) -> Mean | str:
    """The measured value, or why it is not known."""
    if limit.section == "time":
        return measured.time if limit.name == "per_inference" else measured.recorded
    if limit.section == "idle":
        if not measured.idle:
            return "idle time is unknown: the trace hides GPU work"
        causes = [cause for cause in measured.idle if limit.name in ("total", cause)]
        if not causes:
            return (
                f"there is no cause {limit.name}; the causes are {', '.join(measured.idle)}, or"
                " total"
            )
        value = sum(measured.idle[cause] for cause in causes)
        return replace(measured.time, value=value)
    found = [
        mean for layer, mean in measured.layers.items() if measured.is_called(layer, limit.name)
    ]
    if not found:
        return f"no layer that ran is called {limit.name}"
    return _sum(found)


def _sum(means: Sequence[Mean]) -> Mean:
    return Mean(
        sum(one.value for one in means),
        math.sqrt(sum(one.error**2 for one in means)),
        min(one.freedom for one in means),
        means[0].count,
        min(one.effective for one in means),
        sum(one.drift for one in means),
    )


def _against(
    name: str, limit: Limit, now: Mean, baseline: Baseline | None, measured: Baseline
) -> Check:
    """The check against the baseline: broken if the increase is more than allowed and more than
    noise.
    """
    if baseline is None:
        return Check(
            name,
            _words(limit),
            duration(now.value),
            UNKNOWN,
            "there is no baseline; give one with --baseline",
        )
    if bool(baseline.profiled) != bool(measured.profiled) or (
        measured.profiled and baseline.cuda_graph != measured.cuda_graph
    ):
        why = measured.profiled or baseline.profiled
        return Check(
            name,
            _words(limit),
            duration(now.value),
            UNKNOWN,
            f"only one of the two includes the profiler's overhead: {why}",
        )
    if baseline.whole_graphs != measured.whole_graphs:
        one = "this capture" if measured.whole_graphs else "the baseline"
        told = (
            f"only {one} traces its CUDA graphs as a whole, which hides what the profiler adds;"
            " make both with --cuda-graph-trace=node"
        )
        return Check(name, _words(limit), duration(now.value), UNKNOWN, told)
    if baseline.gpu and measured.gpu and baseline.gpu != measured.gpu:
        told = (
            f"measured on another GPU ({measured.gpu}) than the baseline ({baseline.gpu}); make a"
            " baseline on this one"
        )
        return Check(name, _words(limit), duration(now.value), UNKNOWN, told)
    was = _now(limit, baseline)
    if isinstance(was, str):
        return Check(name, _words(limit), duration(now.value), UNKNOWN, f"the baseline: {was}")
    allowed = limit.value * was.value if limit.kind == "more-share" else limit.value
    found = difference(was, now, slack=_run_to_run(limit, was, baseline))
    value = f"{duration(now.value)}, was {duration(was.value)}"
    if math.isnan(found.low):
        return Check(
            name, _words(limit), value, UNKNOWN, "too few inferences to distinguish it from noise"
        )
    if found.value <= allowed:
        return Check(name, _words(limit), value, KEPT, "")
    interval = f"95 % interval {duration(found.low)} to {duration(found.high)}"
    if found.low <= 0:
        return Check(
            name,
            _words(limit),
            value,
            KEPT,
            f"{duration(found.value)} more, within the noise ({interval}, including the difference"
            " between two runs)",
        )
    over = f"{duration(found.value - allowed)} over the limit"
    told = f"{duration(found.value)} more ({percent(found.value, was.value)}), {over}; {interval}"
    return Check(name, _words(limit), value, BROKEN, told)


def _run_to_run(limit: Limit, was: Mean, baseline: Baseline) -> float:
    """How much larger the value may be in another run of the same program."""
    host = sum(
        value
        for cause, value in baseline.idle.items()
        if cause in HOST_CAUSES and limit.name in ("total", cause)
    )
    whole = sum(value for cause, value in baseline.idle.items() if cause in HOST_CAUSES)
    return run_to_run(was.value, {"time": whole, "idle": host}.get(limit.section, 0.0))


def _findings(name: str, limit: Limit, rules: _Rules) -> Check:
    words = f"at most {limit.value:.0f}"
    if limit.name in LEVELS:
        found = [one for one in rules.counted if one.severity == limit.name]
        told = (
            f"{len(rules.skipped)} of {counted(len(rules.known), 'rule')} could not tell"
            if rules.skipped
            else ""
        )
        if len(found) <= limit.value:
            status = KEPT if rules.kernels else UNKNOWN
            return Check(
                name,
                words,
                str(len(found)),
                status,
                told if rules.kernels else f"the trace shows no kernels: {told}",
            )
    else:
        if limit.name not in rules.known:
            return Check(name, words, "–", UNKNOWN, f"no rule that ran is called {limit.name}")
        if limit.name in rules.skipped:
            return Check(
                name, words, "–", UNKNOWN, f"the rule could not tell: {rules.skipped[limit.name]}"
            )
        found = [one for one in rules.counted if one.rule == limit.name]
    if len(found) <= limit.value:
        return Check(name, words, str(len(found)), KEPT, "")
    return Check(
        name,
        words,
        str(len(found)),
        BROKEN,
        f"{len(found) - limit.value:.0f} too many; the costliest: {found[0].message}",
    )


def _over(over: float, most: float) -> str:
    """How far a limit is exceeded: as a percentage, or as a multiple of the limit."""
    return (
        f"{percent(over, most)} over"
        if over < _MANY * most
        else f"{(over + most) / most:,.0f} times"
    )


def _words(limit: Limit) -> str:
    amount = f"{limit.value * 100:g} %" if limit.of_share else duration(limit.value)
    return (
        f"at most {amount} more than the baseline"
        if limit.relative
        else f"at most {amount}" + (" of an inference" if limit.kind == "share" else "")
    )
