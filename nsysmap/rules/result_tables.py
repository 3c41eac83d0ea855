"""The answers of the rules, as declared tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nsysmap.core.report_schema import FINDINGS, RULE_OUTCOMES
from nsysmap.core.table import Row, Table
from nsysmap.rules.finding import Finding, Outcome, by_cost


def outcomes_table(outcomes: Sequence[Outcome]) -> Table:
    """The table `rule_outcomes`, in the order of the rules."""
    return Table.of_rows(
        RULE_OUTCOMES,
        [
            {
                "rule": one.rule,
                "rule_group": one.group,
                "severity": one.severity,
                "outcome": (
                    "skipped" if one.skipped is not None else "clean" if one.clean else "found"
                ),
                "reason": one.skipped,
                "lacks": (one.skip.lacks or None) if one.skip else None,
                "because": (one.skip.why or None) if one.skip else None,
                "about_engines": one.skip is not None and one.skip.about_engines,
                "findings": len(one.findings) + len(one.folded),
                "left_out": one.more,
                "cost_ns": one.cost_ns,
                "share_of_window": one.share_of_window,
                "summary": one.summary or None,
            }
            for one in outcomes
        ],
    )


def findings_table(outcomes: Sequence[Outcome], layers: Table) -> Table:
    """The table `findings`; ``layers`` is LAYERS."""
    by_name: dict[str, list[Row]] = {}
    by_index: dict[int | None, list[Row]] = {}
    for row in layers:
        by_name.setdefault(row.text("name"), []).append(row)
        by_index.setdefault(row.maybe_integer("layer_index"), []).append(row)
    standing = by_cost(outcomes)
    inside = [(other, number) for number, one in enumerate(standing) for other in one.also]
    rows = []
    for number, (one, within) in enumerate([*((one, None) for one in standing), *inside]):
        near = (
            by_name.get(one.layer, [])
            if one.layer is not None
            else by_index.get(one.layer_index, [])
        )
        rows.append(
            {"finding_id": number, **_row(one), "layer_id": _layer_of(one, near), "inside": within}
        )
    return Table.of_rows(FINDINGS, rows)


def _row(finding: Finding) -> Mapping[str, object]:
    return {
        "rule": finding.rule,
        "rule_group": finding.group,
        "severity": finding.severity,
        "message": finding.message,
        "start_ns": finding.start_ns,
        "end_ns": finding.end_ns,
        "cost_ns": finding.cost_ns,
        "share_of_window": finding.share_of_window,
        "layer": finding.layer,
        "layer_title": finding.layer_title,
        "about": " ".join(finding.about) or None,
        "evidence": json.dumps(dict(finding.evidence), ensure_ascii=False, sort_keys=True),
        "advice": finding.advice,
        "what_if": finding.what_if,
        "command": finding.command,
    }


def _layer_of(finding: Finding, near: Sequence[Row]) -> int | None:
    """The row in layers that a finding is about; none if its engine is unknown and several have
    such a layer.
    """
    if finding.layer is None and finding.layer_index is None:
        return None
    engine = finding.evidence.get("engine")
    found = [
        row.integer("layer_id")
        for row in near
        if finding.layer_index in (None, row.maybe_integer("layer_index"))
        and engine in (None, row.maybe_integer("engine"))
    ]
    return found[0] if len(found) == 1 else None
