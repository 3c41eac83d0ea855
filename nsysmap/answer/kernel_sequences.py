"""Distinguishes inferences of one engine that run different kernels, such as those of different
shapes: by optimization profile, otherwise by the kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nsysmap.answer.model import Distinction
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.text.terminal import shortened

_NAME = 28  # columns of a kernel's name
_ABOUT = 4  # groups whose kernels are compared: no more are shown


def what_differs(tables: Mapping[str, Table], groups: Sequence[Row]) -> dict[int, Distinction]:
    """For each of these rows of `inference_groups`, by its id, what distinguishes it; ``groups``
    are those of one loop and one engine.

    That is the optimization profile where layers say it, else the number of kernels, with the
    longest kernel of its own where others launch as many.  Nothing for a group that nothing tells
    from others; graph launches of which the trace shows no kernel have hidden ones.
    """
    numbers = Counter(
        group.integer("kernels") if group.maybe_integer("kernels") is not None else MISSING
        for group in groups
    )
    if len(groups) < 2:
        return {}
    first = {
        row.integer("group_id"): row.integer("inference")
        for row in reversed(list(tables["inference_times"]))
    }
    shown = sorted(groups, key=lambda group: -group.integer("inferences"))[:_ABOUT]
    rows = {
        group.integer("group_id"): np.flatnonzero(
            tables["kernels"].ints("inference") == first[group.integer("group_id")]
        )
        for group in shown
        if group.integer("group_id") in first
    }
    profiles = _profiles(tables, rows) if len(rows) == len(groups) else {}
    found: dict[int, Distinction] = {}
    for group in groups:
        own, kernels = group.integer("group_id"), group.maybe_integer("kernels") or 0
        if own in profiles:
            found[own] = Distinction(profile=profiles[own])
        elif not kernels and group.maybe_text("found_by") == "graph-launch":
            found[own] = Distinction(hidden=True)
        elif numbers[kernels] == 1:
            found[own] = Distinction(kernels=kernels)
        else:
            alike = [
                one.integer("group_id")
                for one in shown
                if (one.maybe_integer("kernels") or 0) == kernels
            ]
            name = _kernel_of_its_own(
                tables["kernels"], {one: rows[one] for one in alike if one in rows}, own
            )
            if len(numbers) > 1 or name:
                found[own] = Distinction(kernels=kernels, own_kernel=name)
    times = Counter[Distinction]()
    for own, what in found.items():
        times[what] += 1
        found[own] = replace(what, number=times[what])
    return found


def _profiles(
    tables: Mapping[str, Table], rows: Mapping[int, np.ndarray[tuple[int], np.dtype[np.int64]]]
) -> dict[int, int]:
    """The one optimization profile of each group's layers; none unless each has one of its own."""
    layers = tables["layers"]
    of_layer = dict(
        zip(
            layers.ints("layer_id").tolist(),
            layers.ints("optimization_profile").tolist(),
            strict=True,
        )
    )
    told = {}
    for group, mine in rows.items():
        profiles = {
            of_layer.get(layer, MISSING)
            for layer in tables["kernels"].ints("layer_id")[mine].tolist()
        } - {MISSING}
        if len(profiles) == 1:
            told[group] = profiles.pop()
    return told if len(told) == len(rows) == len(set(told.values())) else {}


def _kernel_of_its_own(
    kernels: Table, rows: Mapping[int, np.ndarray[tuple[int], np.dtype[np.int64]]], own: int
) -> str:
    """The function of the longest kernel that only this group launches; empty if there is none."""
    names = kernels.text("name")
    others = {
        int(code) for group, mine in rows.items() if group != own for code in names.codes[mine]
    }
    mine = [row for row in rows.get(own, ()) if int(names.codes[row]) not in others]
    longest = max(
        mine,
        key=lambda row: int(kernels.ints("end_ns")[row] - kernels.ints("start_ns")[row]),
        default=None,
    )
    if longest is None:
        return ""
    name = str(names.values[int(names.codes[longest])])
    return shortened(
        name.partition("(")[0].partition("<")[0].removeprefix("void ").rpartition("::")[2] or name,
        _NAME,
    )
