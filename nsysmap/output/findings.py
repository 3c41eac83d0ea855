"""Findings on an engine file as text: what `nsysmap layers --findings` shows."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.answer.model import Answer
from nsysmap.answer.words import not_fused, of_fusion
from nsysmap.output.words import because, cost_words
from nsysmap.rules.finding import Finding, Outcome, by_cost
from nsysmap.text.lines import folded
from nsysmap.text.terminal import escaped
from nsysmap.text.units import counted

WIDTH = 80  # columns


def findings_text(
    outcomes: Sequence[Outcome],
    summary: Answer | None = None,
    unknown: frozenset[str] = frozenset(),
    *,
    fusion: bool = False,
) -> str:
    """Every finding (with ``fusion`` those of fusion rules only), the costliest first, then the
    rules that could not decide, by reason.

    Costs are in the unit of the answer; of an engine file alone, which has none, they are of one
    inference.  ``unknown`` has the layers of engines whose files were not given.
    """
    lines = (
        folded(f"not fused: {not_fused(summary)}", WIDTH, first="", later="  ", whole=True)
        if fusion and summary is not None
        else []
    )
    outcomes = [one for one in outcomes if of_fusion(one.group, one.rule)] if fusion else outcomes
    findings = by_cost(outcomes)
    for finding in findings:
        cost = f", {cost_words(finding.cost_ns, finding.group, summary)}" if finding.cost_ns else ""
        lines += [
            f"{finding.severity:<8} {finding.rule}{cost}",
            *_wrapped(finding.message, "         "),
        ]
        if summary is not None and summary.engines and finding.layer in unknown:
            lines += _wrapped("This is in an engine whose file was not given.", "         ")
        for other in (one for one in finding.also if not fusion or of_fusion(one.group, one.rule)):
            lines += _wrapped(f"also {other.rule}: {other.message}", "           ")
    told = [outcome for outcome in outcomes if outcome.skipped is None]
    rules = f"{counted(len(told), 'rule')}{' about fusion' if fusion else ''}"
    lines.append(
        f"{counted(len(findings), 'finding')} of {rules} that could tell. Costs of different rules"
        " overlap: do not add them."
    )
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.skip is not None:
            reasons.setdefault(because(outcome.skip, summary), []).append(outcome.rule)
    for reason, names in reasons.items():
        lines += _wrapped(f"could not tell: {', '.join(names)}: {reason}", "  ")
    return "\n".join(lines)


def failed_text(findings: Sequence[Finding], severity: str) -> str:
    """Why `--fail-on` failed: how many findings are so severe, and each with its rule and message,
    on a line.
    """
    lines = [
        f"failed: {counted(len(findings), 'finding')} of severity {severity} or higher (--fail-on"
        f" {severity})"
    ]
    lines += [
        f"  {finding.severity} {finding.rule}: {escaped(' '.join(finding.message.split()))}"
        for finding in findings
    ]
    return "\n".join(lines)


def _wrapped(text: str, indent: str) -> list[str]:
    return folded(text, WIDTH, first=indent, later=indent, whole=True)
