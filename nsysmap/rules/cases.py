"""A rule's own cases: rows, what the rule must answer to them, and whether it does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import Table
from nsysmap.rules.finding import Finding, Outcome
from nsysmap.rules.rule_file import Case, Rule
from nsysmap.rules.run import run_rules
from nsysmap.rules.sandbox.strangers import AnySandbox, Strangers

_SPECS = {spec.name: spec for spec in RULE_TABLES}


@dataclass(frozen=True)
class CaseResult:
    """One case, and what the rule got wrong; empty if the rule answered as expected."""

    rule: str
    case: str
    wrong: str | None


def run_cases(rules: Iterable[Rule]) -> tuple[CaseResult, ...]:
    """Every case of these rules."""
    with Strangers() as sandbox:
        return tuple(run_case(rule, case, sandbox) for rule in rules for case in rule.cases)


def run_case(rule: Rule, case: Case, sandbox: AnySandbox) -> CaseResult:
    """Runs one case of a rule. Raises NsysmapError if its rows do not fit their tables."""
    tables = {}
    for name, rows in case.given.items():
        try:
            tables[name] = Table.of_rows(_SPECS[name], rows)
        except (TypeError, ValueError, OverflowError) as error:
            raise NsysmapError(
                f"{rule.source}: case {case.name!r}: given.{name}",
                f"does not fit the table: {error}",
                "see its columns",
            ) from None
    changed = replace(rule, params={**rule.params, **case.params})
    (outcome,) = run_rules([changed], tables, sandbox=sandbox)
    wrong = _wrong(case, outcome)
    if wrong is None and rule.only_if and not outcome.findings:
        (without,) = run_rules([replace(changed, only_if=())], tables, sandbox=sandbox)
        if without.findings:
            wrong = f"found nothing for only_if, but finds {len(without.findings)} without it"
    return CaseResult(rule.name, case.name, wrong)


def _wrong(case: Case, outcome: Outcome) -> str | None:
    if case.skips is not None:
        if outcome.skipped is None:
            return (
                f"should be skipped because of {case.skips!r}, but answered with"
                f" {len(outcome.findings)} findings"
            )
        return (
            None
            if case.skips in outcome.skipped
            else f"was skipped for another reason: {outcome.skipped}"
        )
    if outcome.skipped is not None:
        return f"was skipped: {outcome.skipped}"
    if len(outcome.findings) != len(case.finds):
        messages = "; ".join(finding.message for finding in outcome.findings)
        return f"found {len(outcome.findings)} instead of {len(case.finds)}" + (
            f": {messages}" if messages else ""
        )
    for place, (finding, expected) in enumerate(
        zip(outcome.findings, case.finds, strict=True), start=1
    ):
        for key, value in expected.items():
            found = _of(finding, key)
            if not _same(found, value, key):
                return f"finding {place} has {key} {found!r} instead of {value!r}"
    return None


def _of(finding: Finding, key: str) -> object:
    value: object = finding.evidence[key] if key in finding.evidence else getattr(finding, key)
    return value


def _same(found: object, expected: object, key: str) -> bool:
    """Numbers to six digits, a message by a part of it."""
    if key == "message":
        return str(expected) in str(found)
    if (
        isinstance(found, bool)
        or isinstance(expected, bool)
        or not isinstance(found, int | float)
        or not isinstance(expected, int | float)
    ):
        return found == expected
    return abs(found - expected) <= 1e-6 * max(abs(found), abs(expected))
