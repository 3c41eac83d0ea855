"""Compares the findings of the rules: gone, new, worse or better, by rule and by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nsysmap.comparison.joined import JoinedGroup
from nsysmap.comparison.side import Side
from nsysmap.core.records import dataclass
from nsysmap.core.table import Row, Table
from nsysmap.text.units import duration

_WORSE = 1.1  # a ratio of counts or of costs per inference
_LEAST_NS = 500  # per inference: a smaller difference of costs is not told
_NO_TRACE = "an engine file alone: nothing ran"


@dataclass(frozen=True)
class FindingChange:
    """How one rule's findings for one layer or cause changed."""

    change: str  # gone, new, worse, better, same; cannot-tell if the rule was skipped on one side
    rule: str
    severity: str
    # layer of AFTER (of BEFORE if it is gone); empty if the finding is not about a layer
    place: str
    before: int  # findings
    after: int
    before_ns: int | None  # their cost per inference
    after_ns: int | None
    message: str  # message of the costliest one
    told: str = ""  # why it cannot be determined, or a note that the layer has not changed
    title: str = ""  # what that layer is called


def finding_changes(
    sides: tuple[Side, Side],
    groups: Sequence[JoinedGroup],
    joined: Table,
    scale: int,
    noise_ns: int = 0,
) -> tuple[FindingChange, ...]:
    """The changes, the worst first; unchanged findings are omitted. ``joined`` is the table
    JOINED_LAYERS.

    A cost that differs by no more than ``noise_ns``, by which the time per inference may differ by
    chance, is unchanged if the finding is about no layer; about one layer, if it differs by no more
    than that layer's time may.
    """
    rows = list(joined)
    found = _of_single_rules([_by_place(side, groups, at, scale) for at, side in enumerate(sides)])
    skipped = [_unanswered(side, {rule for rule, _ in (*found[0], *found[1])}) for side in sides]
    result = []
    for key in dict.fromkeys([*found[1], *found[0]]):
        ours, theirs = found[0].get(key), found[1].get(key)
        rule = key[0]
        if (ours is None and rule in skipped[0]) or (theirs is None and rule in skipped[1]):
            side, why = (0, skipped[0][rule]) if ours is None else (1, skipped[1][rule])
            change, told = "cannot-tell", f"{sides[side].source}: {why}"
        else:
            change, told = _change(ours, theirs, _noise_of((ours, theirs), rows, noise_ns)), ""
        shown = theirs or ours
        assert shown is not None
        told = told or (
            _still_there(change, rows[shown.group])
            if shown.group is not None and shown.group < len(rows)
            else ""
        )
        if change != "same" and any(one is not None and one.stands for one in (ours, theirs)):
            result.append(
                FindingChange(
                    change,
                    rule,
                    shown.severity,
                    shown.layer,
                    ours.count if ours else 0,
                    theirs.count if theirs else 0,
                    ours.cost_ns if ours else None,
                    theirs.cost_ns if theirs else None,
                    shown.message,
                    told,
                    shown.title,
                )
            )
    order = ("new", "worse", "gone", "better", "cannot-tell")
    return tuple(
        sorted(
            result,
            key=lambda one: (
                order.index(one.change),
                -(one.after_ns or one.before_ns or 0),
                one.rule,
                one.place,
            ),
        )
    )


def _unanswered(side: Side, rules: set[str]) -> dict[str, str]:
    """The rules that could not decide on this side, with the reasons; rules about a trace do not
    apply to an engine file alone.
    """
    skipped = {one.rule: one.skipped for one in side.outcomes if one.skipped is not None}
    asked = {one.rule for one in side.outcomes}
    return skipped if side.traced else skipped | dict.fromkeys(rules - asked, _NO_TRACE)


def _of_single_rules(
    found: list[dict[tuple[str, str], _Found]],
) -> list[dict[tuple[str, str], _Found]]:
    """Drop the place for rules with at most one finding per side: it may be about the whole engine
    and name only the largest part.
    """
    single = {
        rule
        for rule, _ in (*found[0], *found[1])
        if all(sum(one == rule for one, _ in side) <= 1 for side in found)
    }
    return [
        {(rule, "" if rule in single else place): one for (rule, place), one in side.items()}
        for side in found
    ]


@dataclass
class _Found:
    severity: str
    layer: str
    title: str  # of the layer
    count: int
    cost_ns: int | None
    message: str
    costliest: int
    group: int | None  # a row of layers, if the finding is about exactly one
    stands: bool = False  # false if findings of other rules represent it


def _by_place(
    side: Side, groups: Sequence[JoinedGroup], number: int, scale: int
) -> dict[tuple[str, str], _Found]:
    group_of = {
        at: place
        for place, group in enumerate(groups)
        for at in (group.before, group.after)[number]
    }
    by_name: dict[str, set[int]] = defaultdict(set)
    for at, layer in enumerate(side.layers):
        if at in group_of:
            by_name[layer.name].add(group_of[at])
    inferences = (
        max(int(side.tables["steady_state"].ints("inferences").sum()), 1) if side.traced else 1
    )
    found: dict[tuple[str, str], _Found] = {}
    for outcome in side.outcomes:
        for one in (*outcome.findings, *outcome.folded):
            held, cause = by_name.get(one.layer or "", set()), one.evidence.get("cause")
            group = min(held) if len(held) == 1 and cause is None else None
            place = (
                f"cause {cause}"
                if cause is not None
                else one.layer or ""
                if group is None
                else f"group {group}"
            )
            cost = None if one.cost_ns is None else round(one.cost_ns * scale / inferences)
            alone = group if len(one.about) <= 1 else None
            entry = found.setdefault(
                (one.rule, place),
                _Found(
                    one.severity,
                    one.layer or "",
                    one.layer_title or "",
                    0,
                    None,
                    one.message,
                    -1,
                    alone,
                ),
            )
            entry.count += 1
            entry.stands |= one in outcome.findings
            if cost is not None:
                entry.cost_ns = (entry.cost_ns or 0) + cost
            if (cost or 0) > entry.costliest:
                entry.costliest, entry.message = cost or 0, one.message
    return found


def _still_there(change: str, row: Row) -> str:
    """A note on a finding that came or went although its layer is unchanged and takes no less time:
    it crossed a threshold.
    """
    times = row.maybe_integer("before_ns"), row.maybe_integer("after_ns")
    if (
        change not in ("new", "gone")
        or row.text("change") != "same"
        or times[0] is None
        or times[1] is None
    ):
        return ""
    before, after = duration(times[0]), duration(times[1])
    if change == "gone" and times[1] * _WORSE >= times[0]:
        return (
            f"the layer is still there and takes {after} instead of {before}; it is now below the"
            " rule's threshold."
        )
    if change == "new" and times[0] * _WORSE >= times[1]:
        return (
            f"the layer was there before and takes {after} instead of {before}; it is now above the"
            " rule's threshold."
        )
    return ""


def _noise_of(found: Sequence[_Found | None], rows: Sequence[Row], noise_ns: int) -> int:
    """The most that the cost may differ by chance: without a layer as the time per inference, about
    one layer as its time, otherwise 0.
    """
    held = [one for one in found if one is not None]
    if not any(one.layer for one in held):
        return noise_ns
    groups = {one.group for one in held}
    group = next(iter(groups)) if len(groups) == 1 else None
    if group is None or group >= len(rows):
        return 0
    low, high = (rows[group].maybe_integer(name) for name in ("low_ns", "high_ns"))
    return 0 if low is None or high is None else (high - low) // 2


def _change(ours: _Found | None, theirs: _Found | None, noise_ns: int) -> str:
    if ours is None or theirs is None:
        return "new" if ours is None else "gone"
    if ours.cost_ns is None or theirs.cost_ns is None:
        return "same"
    more = theirs.cost_ns - ours.cost_ns
    if abs(more) < max(_LEAST_NS, noise_ns):
        return "same"
    return (
        "worse"
        if theirs.cost_ns > _WORSE * ours.cost_ns
        else "better"
        if ours.cost_ns > _WORSE * theirs.cost_ns
        else "same"
    )
