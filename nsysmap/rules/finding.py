"""The answers of rules: findings, and one outcome per rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nsysmap.core.note import LEVELS, Level
from nsysmap.core.records import dataclass


@dataclass(frozen=True)
class Finding:
    """One place where a rule applies.

    ``cost_ns`` is the total over the steady-state inferences (the table `steady_state`), not per
    inference, and None if it is not known; ``share_of_window`` is of their window, on the finding's
    device, or of all devices' windows together. Costs of different rules overlap and are never
    added.
    """

    rule: str
    group: str
    severity: Level
    message: str
    start_ns: int
    end_ns: int
    cost_ns: int | None
    share_of_window: float | None
    layer_index: int | None
    layer: str | None
    evidence: Mapping[str, int | float | str | bool | None]
    advice: str
    # all that it is about: ids of `layers`, or names in its rule's words; empty if it is about its
    # device
    about: tuple[str, ...] = ()
    what_if: str | None = None  # the change of what-if that works out this finding's saving
    command: str | None = None  # the command for that
    layer_title: str | None = None  # what its layer is called
    # what other rules found of the same problem at the same place; its cost counts there only
    also: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Skip:
    """Why a rule could not decide."""

    why: str  # in words; of a lack, why it is one: empty if that is unknown
    lacks: str = ""  # the table without rows, or the column (table.column) without a value
    about_engines: bool = False  # it is about the layers of engines

    @property
    def reason(self) -> str:
        """What is missing, and why."""
        if not self.lacks:
            return self.why
        what = f"no {'value' if '.' in self.lacks else 'rows'} in {self.lacks}"
        return f"{what}: {self.why}" if self.why else what


@dataclass(frozen=True)
class Outcome:
    """The answer of one rule: findings, none, or skipped because of ``skip``."""

    rule: str
    group: str
    severity: Level
    findings: tuple[Finding, ...] = ()
    skip: Skip | None = None
    more: int = 0  # findings beyond the most costly that are kept
    # found too, and told under another rule's findings (their ``also``)
    folded: tuple[Finding, ...] = ()
    # of its findings together, each place counted once; None if no cost is known
    cost_ns: int | None = None
    share_of_window: float | None = None  # that cost's
    summary: str = ""  # what the rule finds, in a sentence

    @property
    def skipped(self) -> str | None:
        """Why the rule could not decide, in words; None if it could."""
        return None if self.skip is None else self.skip.reason

    @property
    def clean(self) -> bool:
        """Whether the rule could decide and found nothing."""
        return self.skipped is None and not self.findings and not self.folded


def at_least(findings: Iterable[Finding], severity: Level) -> tuple[Finding, ...]:
    """The findings that are at least so severe, the gravest first."""
    grave = LEVELS[: LEVELS.index(severity) + 1]
    chosen = (finding for finding in findings if finding.severity in grave)
    return tuple(sorted(chosen, key=lambda finding: grave.index(finding.severity)))


def by_cost(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """All findings, the most costly first; those without a known cost last."""
    return tuple(
        sorted((finding for outcome in outcomes for finding in outcome.findings), key=order)
    )


def order(finding: Finding) -> tuple[int, str, int, int, str]:
    """The key that sorts findings: the most costly first, then by rule and place."""
    layer = -1 if finding.layer_index is None else finding.layer_index
    return (
        -(finding.cost_ns if finding.cost_ns is not None else -1),
        finding.rule,
        finding.start_ns,
        layer,
        finding.message,
    )
