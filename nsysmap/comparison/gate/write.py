"""The gate's verdict as text, Markdown and JSON, and into a file by its suffix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nsysmap.comparison.gate.checks import BROKEN, KEPT, Check, Verdict
from nsysmap.comparison.gate.junit import junit_xml
from nsysmap.comparison.gate.sarif import sarif
from nsysmap.core.json_record import Declared, keys, record
from nsysmap.core.output_file import replacing
from nsysmap.rules.finding import Finding
from nsysmap.text.terminal import escaped, plain
from nsysmap.text.units import counted

SUFFIXES = (".xml", ".sarif", ".md", ".json")
_MARKS = {KEPT: "ok", BROKEN: "BROKEN"}


def verdict_text(verdict: Verdict) -> str:
    """One line per limit, then the notes."""
    lines = [
        f"{_MARKS.get(check.status, 'CANNOT TELL'):11}  {check.name}: {check.limit}, is"
        f" {check.value}{_told(check.told)}"
        for check in verdict.checks
    ]
    lines += [f"note: {note}" for note in verdict.notes]
    if verdict.ignored:
        lines.append(f"note: {counted(len(verdict.ignored), 'finding')} ignored")
    return "\n".join(escaped(line) for line in lines)


def broken_lines(verdict: Verdict) -> list[str]:
    """One line per limit that was exceeded, with the excess, or that could not be determined."""
    return [
        escaped(
            f"{check.name}: {check.limit}, is {check.value}: {check.told}"
            + ("" if check.status == BROKEN else " (cannot tell)")
        )
        for check in verdict.checks
        if check.status != KEPT
    ]


def _told(told: str) -> str:
    return f": {told}" if told else ""


def verdict_markdown(verdict: Verdict) -> str:
    """The verdict as Markdown, for a pull request's comment."""
    head = "kept" if verdict.passed else "broken"
    lines = [
        f"## nsysmap gate: budget {head} ({plain(verdict.source)})",
        "",
        "| | limit | allowed | is | |",
        "|---|---|---|---|---|",
    ]
    for check in verdict.checks:
        cells = (
            _MARKS.get(check.status, "cannot tell"),
            check.name,
            check.limit,
            check.value,
            check.told,
        )
        lines.append("| " + " | ".join(map(plain, cells)) + " |")
    if verdict.notes:
        lines += ["", *(f"- {plain(note)}" for note in verdict.notes)]
    if verdict.ignored:
        lines += ["", f"{counted(len(verdict.ignored), 'finding')} ignored:", ""]
        lines += [
            f"- {plain(one.finding.rule)}"
            f" {plain(one.finding.layer_title or one.finding.layer or '')}: {plain(one.reason)}"
            for one in verdict.ignored
        ]
    return "\n".join(lines) + "\n"


_KEYS: Declared = {Check: keys("name limit value status told")}
"""The objects in the JSON of a verdict, version 1."""


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON values."""
    return {
        "schema": "nsysmap/gate/1",
        "source": verdict.source,
        "passed": verdict.passed,
        "checks": record(verdict.checks, _KEYS),
        "findings": [_finding(one) for one in verdict.findings],
        "ignored": [_finding(one.finding) | {"reason": one.reason} for one in verdict.ignored],
        "notes": list(verdict.notes),
    }


def _finding(finding: Finding) -> dict[str, str | None]:
    return {
        "rule": finding.rule,
        "layer": finding.layer,
        "layer_title": finding.layer_title,
        "message": finding.message,
    }


def write_verdict(verdict: Verdict, path: Path, version: str) -> None:
    """Write the verdict: JUnit XML (.xml), SARIF 2.1.0 (.sarif), Markdown (.md) or JSON (.json);
    ``version`` is nsysmap's.
    """
    suffix = path.suffix.lower()
    if suffix == ".xml":
        text = junit_xml(verdict)
    elif suffix == ".md":
        text = verdict_markdown(verdict)
    else:
        text = (
            json.dumps(
                sarif(verdict, version) if suffix == ".sarif" else verdict_json(verdict), indent=1
            )
            + "\n"
        )
    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8")
