"""How many inferences a second each GPU runs: those of all its loops, over the time that they
take.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.core.intervals import union_ns
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Table

_IN_TURN = 1.05
"""Times the time in which any loop of a GPU runs inferences that all take in total, below which
they never run at the same time.
"""


@dataclass(frozen=True)
class Rate:
    """The inferences of one GPU's loops."""

    per_second: float
    loops: int
    in_turn: bool  # there are several, and no two of them run at the same time


def rates(tables: Mapping[str, Table]) -> dict[int | None, Rate]:
    """The rate of each device (None: of launches whose GPU the trace does not show).

    Loops need not run at the same time: of several, it is the number of their inferences over the
    time in which any of them takes one, each from the end of the one before it.
    """
    loops: dict[int | None, list[int]] = {}
    alone: dict[int, float] = {}
    for row in tables["inference_loops"]:
        if rate := row.maybe_real("per_second"):
            loops.setdefault(row.maybe_integer("device"), []).append(row.integer("loop_id"))
            alone[row.integer("loop_id")] = rate * row.integer("inferences_a_pass")
    spans = _spans(tables)
    found: dict[int | None, Rate] = {}
    for device, mine in loops.items():
        if len(mine) == 1:
            found[device] = Rate(alone[mine[0]], 1, in_turn=False)
            continue
        begin, end = (np.concatenate([spans[loop][place] for loop in mine]) for place in (0, 1))
        whole, total = union_ns(begin, end), int((end - begin).sum())
        found[device] = Rate(
            1e9 * len(begin) / max(whole, 1), len(mine), in_turn=total < _IN_TURN * whole
        )
    return found


def _spans(tables: Mapping[str, Table]) -> dict[int, tuple[IntArray, IntArray]]:
    """The begin and the end of each timed inference of each loop; it begins when the one before it
    ends.
    """
    times, inferences, groups = (
        tables["inference_times"],
        tables["inferences"],
        tables["inference_groups"],
    )
    timed = times.ints("time_ns") != MISSING
    number, took, group = (times.ints(name)[timed] for name in ("inference", "time_ns", "group_id"))
    loop_of = dict(
        zip(groups.ints("group_id").tolist(), groups.ints("loop_id").tolist(), strict=True)
    )
    loop = np.array([loop_of[one] for one in group.tolist()], np.int64)
    at = np.searchsorted(inferences.ints("inference"), number)
    gpu_end = inferences.ints("gpu_end_ns")[at]
    end = np.where(gpu_end != MISSING, gpu_end, inferences.ints("end_ns")[at])
    return {
        one: (end[loop == one] - took[loop == one], end[loop == one])
        for one in np.unique(loop).tolist()
    }
