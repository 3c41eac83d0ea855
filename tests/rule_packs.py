"""Writes rule files for tests: a sound one, and the same with parts replaced."""

from __future__ import annotations

import textwrap
from pathlib import Path

from nsysmap.core.result_schema import GAPS
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.rules.packs import chosen_rules, load_rules
from nsysmap.rules.rule_file import Rule
from tests.places import GOLDEN

SOUND = {
    "group": "launch",
    "severity": "warning",
    "summary": "Long gaps.",
    "why": "They cost.",
    "advice": "Close them, and look again.",
    "needs": "[gaps]",
    "params": "{min_ns: 100}",
    "sql": "SELECT start_ns, end_ns, dur_ns AS cost_ns, cause FROM gaps WHERE dur_ns >= $min_ns",
    "message": "a gap of {cost_ns:ns} by {cause}",
    "cases": (
        "\n  - {name: long, given: {gaps: [{dur_ns: 200, cause: host}]}, finds: [{cause: host}]}"
        "\n  - {name: short, given: {gaps: [{dur_ns: 20}]}, finds: []}"
    ),
}
ANY_CASES = (
    "\n  - {name: some, given: {gaps: [{dur_ns: 200, cause: host}]}, finds: [{}]}"
    "\n  - {name: none, given: {gaps: [{dur_ns: 20}]}, finds: []}"
)


def write_rule(folder: Path, name: str, **parts: str | None) -> Path:
    """A rule file with these parts in place of the sound ones; None leaves a part out."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"name: {name}"]
    for key, value in {**SOUND, **parts}.items():
        if value is None:
            continue
        prose = key in ("sql", "why", "advice", "message") and not value.startswith("[{")
        lines.append(f"{key}: |\n{textwrap.indent(value, '  ')}" if prose else f"{key}: {value}")
    path = folder / f"{name}.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def one_rule(folder: Path, name: str = "long-gap", **parts: str | None) -> Rule:
    """The rule in such a file, loaded."""
    write_rule(folder, name, **parts)
    (rule,) = (rule for rule in load_rules([folder]) if rule.name == name)
    return rule


def gaps(*durations: int, **columns: object) -> Table:
    """Gaps one after another, of these lengths."""
    rows, at = [], 0
    for number, duration in enumerate(durations):
        rows.append(
            {
                "gap_id": number,
                "start_ns": at,
                "end_ns": at + duration,
                "dur_ns": duration,
                "cause": "host",
                **columns,
            }
        )
        at += duration + 10
    return Table.of_rows(GAPS, rows)


def inferences(*spans: tuple[int, int], **columns: object) -> Table:
    """Complete inferences over these spans of host and GPU time."""
    return Table.of_rows(
        INFERENCES,
        [
            {
                "inference": number,
                "start_ns": start,
                "end_ns": end,
                "gpu_start_ns": start,
                "gpu_end_ns": end,
                "device": 0,
                "complete": True,
                **columns,
            }
            for number, (start, end) in enumerate(spans)
        ],
    )


def golden_rules() -> tuple[Rule, ...]:
    """The rules that golden runs have: a new rule changes no golden file until it is listed in
    tests/golden/rules.txt.
    """
    names = set((GOLDEN / "rules.txt").read_text(encoding="utf-8").split())
    return tuple(rule for rule in chosen_rules() if rule.name in names)
