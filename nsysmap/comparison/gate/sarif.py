"""The gate's verdict as SARIF 2.1.0: exceeded limits and findings, for code-scanning pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nsysmap.comparison.gate.checks import BROKEN, KEPT, Check, Verdict
from nsysmap.rules.finding import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif(verdict: Verdict, version: str) -> dict[str, Any]:
    """One run with one result per limit that is not met and per finding; ignored findings have a
    suppression.
    """
    broken = [check for check in verdict.checks if check.status != KEPT]
    found = [*verdict.findings, *(one.finding for one in verdict.ignored)]
    rules: dict[str, dict[str, Any]] = {}
    for check in broken:
        rules.setdefault(
            _id(check),
            {"id": _id(check), "shortDescription": {"text": f"The budget's limit on {check.name}"}},
        )
    for one in found:
        rules.setdefault(
            one.rule,
            {
                "id": one.rule,
                "shortDescription": {"text": f"nsysmap's rule {one.rule}"},
                "help": {"text": one.advice},
            },
        )
    number = {rule: at for at, rule in enumerate(rules)}
    results = [_of_check(check, verdict.source, number) for check in broken]
    results += [_of_finding(one, verdict.source, number, None) for one in verdict.findings]
    results += [
        _of_finding(one.finding, verdict.source, number, one.reason) for one in verdict.ignored
    ]
    driver = {"name": "nsysmap", "version": version, "rules": list(rules.values())}
    notes = [{"level": "note", "message": {"text": note}} for note in verdict.notes]
    invocation: dict[str, Any] = {
        "executionSuccessful": True,
        "exitCode": 0 if verdict.passed else 1,
    }
    if notes:
        invocation["toolExecutionNotifications"] = notes
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
    }


def _id(check: Check) -> str:
    return f"budget/{check.name}"


def _of_check(check: Check, source: str, number: dict[str, int]) -> dict[str, Any]:
    text = f"{check.name}: {check.limit}, is {check.value}: {check.told}"
    level = "error" if check.status == BROKEN else "warning"
    return _result(_id(check), number, level, text, [_location(source, check.name)])


def _of_finding(
    one: Finding, source: str, number: dict[str, int], ignored: str | None
) -> dict[str, Any]:
    result = _result(
        one.rule,
        number,
        _LEVELS[one.severity],
        one.message,
        [_location(source, one.layer, one.layer_title)],
    )
    if ignored is not None:
        result["suppressions"] = [{"kind": "external", "justification": ignored}]
    return result


def _result(
    rule: str, number: dict[str, int], level: str, text: str, locations: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "ruleIndex": number[rule],
        "level": level,
        "message": {"text": text},
        "locations": locations,
    }


def _location(source: str, name: str | None, title: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": quote(source)}}}
    if name:
        found["logicalLocations"] = [
            {"fullyQualifiedName": name, **({"name": title} if title else {})}
        ]
    return found
