"""The phases of a run: what to call them, and in which of them a change saves time; and how times
drift over the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.answer.model import InferenceKind
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.text.units import rounded
from nsysmap.trace.copies import NO_COPIES
from nsysmap.trace.inferences.steady import drift

_STRETCHES = 2  # of a phase, that are listed
_NEARLY_ALL = 0.9  # of what a change saves: in one phase
_PINNED_COPIES = "pinned-copies"


def phase_words(tables: Mapping[str, Table], groups: Sequence[Row]) -> dict[int, str]:
    """For each of these rows of `inference_groups`, by its id, which part of the run it is, and
    what it copies if that differs from others; ``groups`` are the phases of one kernel sequence.
    """
    times = tables["inference_times"]
    ids = [group.integer("group_id") for group in groups]
    rows = np.flatnonzero(np.isin(times.ints("group_id"), ids))
    rows = rows[np.argsort(times.ints("inference")[rows], kind="stable")]
    group, number = times.ints("group_id")[rows], times.ints("inference")[rows]
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(rows) else rows
    ends = np.append(begins[1:], len(rows)) - 1
    memory = [one.maybe_text("copies") for one in groups]
    copied = None not in memory and len(set(memory)) > 1
    found = {}
    for one, name in zip(ids, memory, strict=True):
        mine = [
            (int(number[begin]), int(number[end]))
            for begin, end in zip(begins, ends, strict=True)
            if group[begin] == one
        ]
        where = " and ".join(
            f"{begin} to {end}" if begin < end else str(begin) for begin, end in mine[:_STRETCHES]
        )
        where += f" and {len(mine) - _STRETCHES} more" if len(mine) > _STRETCHES else ""
        found[one] = (
            f"{'no' if name == NO_COPIES else name} copies ({where})"
            if copied
            else f"inferences {where}"
        )
    return found


def saved_in(tables: Mapping[str, Table], kinds: Sequence[InferenceKind], change: str) -> str:
    """The phase in which a change of what-if saves nearly all that it saves, with the time per
    inference before and after; and of pinned copies, what the phase takes in which they are pinned
    already.  Empty if the run has no phases, or the change saves in several.
    """
    phases = {kind.group: kind.phase for kind in kinds if kind.phase and kind.group is not None}
    times, made = tables["inference_times"], tables["whatif_inferences"]
    made = made.take(made.text("change").equals(change))
    if not phases or not len(made):
        return ""
    of_inference = dict(
        zip(times.ints("inference").tolist(), times.ints("group_id").tolist(), strict=True)
    )
    group = np.array(
        [of_inference.get(one, MISSING) for one in made.ints("inference").tolist()], np.int64
    )
    spans = {
        one: tuple(
            float(made.ints(f"{end}_ns")[group == one].mean()) for end in ("before", "after")
        )
        for one in np.unique(group).tolist()
    }
    saved = {
        one: max(before - after, 0.0) * np.count_nonzero(times.ints("group_id") == one)
        for one, (before, after) in spans.items()
    }
    most = max(saved, key=lambda one: saved[one])
    if most not in phases or saved[most] < _NEARLY_ALL * sum(saved.values()):
        return ""
    told = (
        f"in the phase of {phases[most]} {rounded(spans[most][0])} becomes"
        f" {rounded(spans[most][1])}"
    )
    pinned = [
        row
        for row in tables["inference_groups"]
        if row.integer("group_id") in phases and row.maybe_text("copies") == "pinned"
    ]
    if change == _PINNED_COPIES and pinned and pinned[0].integer("group_id") != most:
        told += (
            f"; that of {phases[pinned[0].integer('group_id')]} takes"
            f" {rounded(pinned[0].maybe_integer('median_ns'))}"
        )
    return told


def drift_words(tables: Mapping[str, Table], group: int) -> str:
    """How the times of a row of `inference_groups` rise or fall over the run; empty if they do
    not.
    """
    times = tables["inference_times"]
    rows = np.flatnonzero((times.ints("group_id") == group) & (times.ints("time_ns") != MISSING))
    found = drift(
        times.ints("time_ns")[rows[np.argsort(times.ints("inference")[rows], kind="stable")]]
    )
    if found is None:
        return ""
    verb = "rises" if found.last_ns > found.first_ns else "falls"
    return (
        f"{verb} over the run from {rounded(found.first_ns)} to {rounded(found.last_ns)} (medians"
        " of the first and the last tenth)"
    )
