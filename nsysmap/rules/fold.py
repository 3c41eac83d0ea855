"""Findings of several rules about one problem at one place become one finding, with one cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from nsysmap.core.note import LEVELS
from nsysmap.core.records import dataclass
from nsysmap.rules.finding import Finding, Outcome, order


@dataclass(frozen=True, eq=False)  # the same only as itself: two findings may say the same
class PlacedFinding:
    """A finding with its place, named as its rule chooses (layer ids, names of functions); None is
    the whole device.
    """

    finding: Finding
    about: frozenset[str] | None

    @property
    def device(self) -> object:
        """Its device; None if it is about all of them."""
        return self.finding.evidence.get("device")


@dataclass(frozen=True)
class _Inside:
    """A finding inside another."""

    finding: Finding
    no_problem: bool  # as the one that stands for it shows


@dataclass(frozen=True)
class WindowLengths:
    """How long the steady-state part is, by device; what shares are of."""

    by_device: Mapping[int, int]

    def of(self, devices: set[object]) -> int:
        """The windows of these devices together; of all devices if one of them is none."""
        known = [
            self.by_device[device]
            for device in devices
            if isinstance(device, int) and device in self.by_device
        ]
        return sum(known) if len(known) == len(devices) else sum(self.by_device.values())


def alike_on_gpus(placed: Sequence[PlacedFinding], windows: WindowLengths) -> list[PlacedFinding]:
    """The findings of one rule, with findings that several GPUs share merged: reported for the GPU
    where they cost most, with the cost of all.

    Alike are those about the same, of which each of these GPUs has one.
    """
    groups: dict[tuple[object, ...], list[PlacedFinding]] = {}
    for one in placed:
        groups.setdefault((one.about, one.finding.layer), []).append(one)
    result = []
    for group in groups.values():
        devices = [one.device for one in group]
        if len(group) < 2 or None in devices or len(set(devices)) < len(group):
            result += group
            continue
        first = min(group, key=lambda one: order(one.finding))
        costs = [one.finding.cost_ns for one in group if one.finding.cost_ns is not None]
        cost, window = (sum(costs) if len(costs) == len(group) else None), windows.of(set(devices))
        finding = replace(
            first.finding,
            message=f"On {len(group)} GPUs, most on GPU {first.device}: {first.finding.message}",
            cost_ns=cost,
            share_of_window=(
                min(cost / window, 1.0)
                if cost is not None and window
                else first.finding.share_of_window
            ),
            evidence={
                **first.finding.evidence,
                "device": None,
                "devices": ", ".join(sorted(map(str, devices))),
            },
        )
        result.append(replace(first, finding=finding))
    return result


def fold(
    outcomes: Sequence[Outcome],
    placed: Mapping[str, Sequence[PlacedFinding]],
    supersedes: Mapping[str, Sequence[str]],
    windows: WindowLengths,
    takes_back: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[Outcome, ...]:
    """The outcomes with each superseded finding inside the one that stands for it, and what each
    rule's findings cost together.

    ``placed`` has the findings of each rule, ``supersedes`` the rules whose findings a rule's own
    stand for.  A finding is superseded where findings of such rules, on its device, are about
    everything that it is about.  A finding is as severe as the most severe inside it, but for those
    that are no problem, as a rule ``takes_back`` what they say.
    """
    found = sorted(
        (one for mine in placed.values() for one in mine), key=lambda one: order(one.finding)
    )
    above: dict[PlacedFinding, PlacedFinding] = {}
    for one in found:
        root = _root_of(one, found, supersedes, above)
        if root is not None:
            above[one] = root
    inside: dict[PlacedFinding, list[_Inside]] = {}
    for one in found:
        root = above.get(one)
        if root is not None:
            while root in above:
                root = above[root]
            inside.setdefault(root, []).append(
                _Inside(one.finding, _taken_back(one, above, takes_back))
            )
    return tuple(
        _with_findings(outcome, placed.get(outcome.rule, ()), above, inside, windows)
        for outcome in outcomes
    )


def _root_of(
    one: PlacedFinding,
    found: Sequence[PlacedFinding],
    supersedes: Mapping[str, Sequence[str]],
    above: Mapping[PlacedFinding, PlacedFinding],
) -> PlacedFinding | None:
    """The finding that stands for this one; None if none does."""
    candidates = [
        other
        for other in found
        if one.finding.rule in supersedes.get(other.finding.rule, ())
        and _meets(one, other)
        and other is not one
    ]
    covered = frozenset[str]().union(*(other.about or () for other in candidates))
    whole = any(other.about is None for other in candidates)
    if not candidates or not (whole or one.about is None or one.about <= covered):
        return None
    # stable: then by cost
    candidates.sort(
        key=lambda other: -len((other.about or frozenset()) & (one.about or frozenset()))
    )
    for other in candidates:
        at: PlacedFinding | None = other
        while at is not None and at is not one:
            at = above.get(at)
        if at is None:  # else the two stand for each other
            return other
    return None


def _meets(one: PlacedFinding, other: PlacedFinding) -> bool:
    same_device = one.device is None or other.device is None or one.device == other.device
    return same_device and (
        one.about is None or other.about is None or not one.about.isdisjoint(other.about)
    )


def _with_findings(
    outcome: Outcome,
    mine: Sequence[PlacedFinding],
    above: Mapping[PlacedFinding, PlacedFinding],
    inside: Mapping[PlacedFinding, list[_Inside]],
    windows: WindowLengths,
) -> Outcome:
    standing = [one for one in mine if one not in above]
    findings = []
    for one in standing:
        within = inside.get(one, ())
        levels = [
            one.finding.severity,
            *(other.finding.severity for other in within if not other.no_problem),
        ]
        findings.append(
            replace(
                one.finding,
                severity=min(levels, key=LEVELS.index),
                also=tuple(other.finding for other in within),
            )
        )
    cost_ns, devices = _together(standing)
    window = windows.of(devices)
    return replace(
        outcome,
        findings=tuple(sorted(findings, key=order)),
        folded=tuple(one.finding for one in mine if one in above),
        cost_ns=cost_ns,
        share_of_window=min(cost_ns / window, 1.0) if cost_ns is not None and window else None,
    )


def _taken_back(
    one: PlacedFinding,
    above: Mapping[PlacedFinding, PlacedFinding],
    takes_back: Mapping[str, Sequence[str]],
) -> bool:
    """Whether a finding, or one that stands for it, is shown to be no problem."""
    while one in above:
        if one.finding.rule in takes_back.get(above[one].finding.rule, ()):
            return True
        one = above[one]
    return False


def _together(placed: Sequence[PlacedFinding]) -> tuple[int | None, set[object]]:
    """The cost of these findings of one rule, each place counted once, and their devices; no cost
    if none is known.
    """
    total: int | None = None
    seen: set[str] = set()
    devices: set[object] = set()
    for one in sorted(placed, key=lambda one: order(one.finding)):
        if one.finding.cost_ns is None or (
            one.about is not None and not one.about.isdisjoint(seen)
        ):
            continue
        seen |= one.about or frozenset()
        devices.add(one.device)
        total = (total or 0) + one.finding.cost_ns
    return total, devices
