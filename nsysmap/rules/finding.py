"""What the rules answer: findings, and one outcome a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsysmap.base.note import Level


@dataclass(frozen=True)
class Finding:
    """One place where a rule holds.

    ``cost_ns`` is the total over the steady inferences (the table `steady_state`), not per inference; ``share_of_window`` is of
    their window.
    Costs of different rules overlap and are never added.
    """

    rule: str
    group: str
    severity: Level
    message: str
    start_ns: int
    end_ns: int
    cost_ns: int
    share_of_window: float | None
    layer_index: int | None
    layer: str | None
    evidence: Mapping[str, int | float | str | bool | None]
    advice: str


@dataclass(frozen=True)
class Outcome:
    """What one rule answered: findings, none, or skipped because of ``skipped``."""

    rule: str
    group: str
    severity: Level
    findings: tuple[Finding, ...] = ()
    skipped: str | None = None
    more: int = 0  # findings beyond the most costly that are kept


def by_cost(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """All findings, the most costly first."""
    return tuple(sorted((finding for outcome in outcomes for finding in outcome.findings), key=_order))


def _order(finding: Finding) -> tuple[int, str, int, int, str]:
    layer = -1 if finding.layer_index is None else finding.layer_index
    return -finding.cost_ns, finding.rule, finding.start_ns, layer, finding.message
