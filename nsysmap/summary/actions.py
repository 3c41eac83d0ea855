"""What to do first: the changes and findings that are predicted to save most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nsysmap.base.table import Row, Table
from nsysmap.summary.model import Action, Figure
from nsysmap.summary.paste import THROUGHPUT, TITLES, Version, lines_for

_LEAST_SHARE = 0.01  # of the time per unit; less is within what two runs of one program differ by
_RULE_GROUPS = ("fusion", "reformat", "precision")
"""Groups of rules that price GPU time that would go; what host and launches cost is priced by what-if, by replay."""
_SAME = {"reformat": "drop-layers"}
"""The change of what-if that prices what a group of rules finds."""


@dataclass(frozen=True)
class Runs:
    """What runs, as far as it decides which line to paste."""

    tensorrt: Version | None
    engine: bool
    pytorch: bool


def actions(tables: Mapping[str, Table], runs: Runs, *, units: float, unit_ns: int | None) -> tuple[Action, ...]:
    """What is predicted to save more than noise: what shortens one inference, by replay, then by rule; then what is throughput only.

    ``units`` is how many inferences (or passes) the rules' costs are of, ``unit_ns`` what one takes.
    """
    changes = [_change(row, runs) for row in tables["whatif"] if _pays(row)]
    changes.sort(key=lambda one: (one.throughput_only, -one.saving.ns))
    told = {one.name for one in changes}
    rules = [
        found
        for row in tables["rule_outcomes"]
        if row.text("rule_group") in _RULE_GROUPS and _SAME.get(row.text("rule_group")) not in told
        if (found := _rule(row, tables["findings"], units, unit_ns)) is not None
    ]
    rules.sort(key=lambda one: -one.saving.ns)
    shorter = [one for one in changes if not one.throughput_only]
    return (*shorter, *rules, *changes[len(shorter) :])


def _pays(row: Row) -> bool:
    if row.text("answer") != "answered":
        return False
    return row.integer("low_saving_ns") > 0 and row.integer("low_saving_ns") >= _LEAST_SHARE * row.integer("before_ns")


def _change(row: Row, runs: Runs) -> Action:
    name = row.text("change")
    paste, pytorch = lines_for(name, runs.tensorrt, engine=runs.engine, pytorch=runs.pytorch)
    saving = row.integer("saving_ns")
    return Action(
        name=name,
        title=TITLES[name],
        saving=Figure(saving, row.integer("low_saving_ns"), row.integer("high_saving_ns")),
        share=saving / row.integer("before_ns") if row.integer("before_ns") else None,
        basis="replay",
        throughput_only=name in THROUGHPUT,
        places=0,
        paste=paste,
        paste_pytorch=pytorch,
    )


def _rule(row: Row, findings: Table, units: float, unit_ns: int | None) -> Action | None:
    cost = row.maybe_integer("cost_ns")
    if row.text("outcome") != "found" or not cost or not units:
        return None
    at_most = round(cost / units)
    if unit_ns is None or at_most < _LEAST_SHARE * unit_ns:
        return None
    mine = [one for one in findings if one.text("rule") == row.text("rule") and one.maybe_integer("inside") is None]
    if not mine:
        return None
    places = len(mine) + row.integer("left_out")
    command = mine[0].maybe_text("command") if places == 1 else None  # of several places it would price one
    return Action(
        name=row.text("rule"),
        title=row.text("rule"),
        saving=Figure(at_most, 0, at_most),
        share=at_most / unit_ns,
        basis="rule",
        throughput_only=False,
        places=places,
        paste=command or f"nsysmap rules show {row.text('rule')}",
        paste_pytorch=None,
    )
