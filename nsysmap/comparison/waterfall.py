"""Divides the difference of two times into named contributions that add up to it exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from nsysmap.comparison.joined import JoinedGroup, blocks_of, group_name
from nsysmap.comparison.pace import Pace
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray, Row, Table
from nsysmap.timing.idle.causes import CAUSES

_NAMED = 10  # groups of layers that are named
_LEAST = 0.002  # … if their contribution is at least this share of the time per inference
_BUCKETS = {
    "same": "other layers with the same kernels",
    "tactic": "other layers with different kernels",
    "precision": "other layers in a different precision",
    "fusion": "other layers fused or split differently",
    "reformat": "reformats",
    "new": "other new layers",
    "gone": "other layers that are gone",
    "no-op": "layers that run nothing",
}


@dataclass(frozen=True)
class Contribution:
    """The contribution of one thing to the difference."""

    name: str
    ns: int  # after minus before
    before_ns: int
    after_ns: int
    kind: str  # layers, work or idle
    cause: str = ""  # of idle time


def whole_parts(parts: FloatArray, whole: int) -> IntArray:
    """Integers close to these parts that add up to the whole: those with the largest remainders are
    rounded up.
    """
    low = np.floor(parts)
    result = low.astype(np.int64)
    left = int(whole - result.sum())
    order = np.argsort(low - parts, kind="stable")
    if left >= 0:
        np.add.at(result, np.resize(order, left), 1)
    else:
        np.subtract.at(result, np.resize(order[::-1], -left), 1)
    return result


SIDE_BY_SIDE = "kernels at the same time as others"
PROFILED = "the profiler's part of kernel times (estimated)"


def contributions(
    paces: tuple[Pace, Pace], groups: Sequence[JoinedGroup], joined: Table, wholes: tuple[int, int]
) -> tuple[Contribution, ...]:
    """The contributions, the largest first; those of each side add up to its time (``wholes``).

    A layer contributes its kernels' time as recorded, which is the one time that it has on every
    page.  What kernels take less of the wall time than that, because they run at the same time or
    because the profiler lengthened them, are contributions of their own.
    """
    parts = [_parts(pace, whole) for pace, whole in zip(paces, wholes, strict=True)]
    found: list[Contribution] = []
    buckets: dict[str, list[tuple[int, int]]] = defaultdict(list)
    blocks = blocks_of(joined)
    held = [[groups[row.integer("group")] for row in rows] for rows in blocks]
    sums = [
        (
            sum(int(parts[0][list(one.before)].sum()) for one in mine),
            sum(int(parts[1][list(one.after)].sum()) for one in mine),
        )
        for mine in held
    ]
    least = _LEAST * min(wholes)
    largest = set(
        sorted(range(len(blocks)), key=lambda at: -abs(sums[at][1] - sums[at][0]))[:_NAMED]
    )
    taken: set[str] = set()
    for at, ((ours, theirs), rows) in enumerate(zip(sums, blocks, strict=True)):
        if at in largest and abs(theirs - ours) >= least:
            name = _own_name(rows, taken)
            taken.add(name)
            found.append(Contribution(name, theirs - ours, ours, theirs, "layers"))
        else:
            buckets[_BUCKETS[rows[0].text("change")]].append((ours, theirs))
    found += [_sum(name, pairs, "layers") for name, pairs in buckets.items()]
    layers = [pace.kinds.layers for pace in paces]
    beyond = paces[0].kinds.count - layers[0]
    found += [
        _sum(name, [(int(parts[0][place - 2]), int(parts[1][place - 2]))], "work")
        for place, name in enumerate((SIDE_BY_SIDE, PROFILED))
    ]
    for column in range(beyond):
        pair = (int(parts[0][layers[0] + column]), int(parts[1][layers[1] + column]))
        cause = paces[0].kinds.cause(layers[0] + column)
        kind = "work" if cause is None else "idle"
        found.append(_sum(paces[0].kinds.name(layers[0] + column), [pair], kind, cause or ""))
    kept = [one for one in found if one.ns or one.before_ns or one.after_ns]
    return tuple(sorted(kept, key=lambda one: (-abs(one.ns), one.name)))


def _parts(pace: Pace, whole: int) -> IntArray:
    """The parts of a side's time by column of its kinds, those of layers as recorded; then how much
    less of the wall time these take because kernels run at the same time, and because of the
    profiler.
    """
    layers = pace.kinds.layers
    recorded = pace.weight @ pace.kernels if len(pace.kernels) else np.zeros(layers)
    profiled = pace.kernel_excess.sum()
    less = [pace.parts[:layers].sum() - (recorded.sum() - profiled), -profiled]
    return whole_parts(
        np.concatenate([recorded, pace.parts[layers:], less]) * (whole / pace.likely), whole
    )


def hidden_contributions(
    paces: tuple[Pace, Pace], wholes: tuple[int, int]
) -> tuple[Contribution, ...]:
    """The contributions for a trace of whole CUDA graphs: GPU work, including the idle time between
    kernels, is one contribution.
    """
    parts = [
        whole_parts(pace.parts * (whole / pace.likely), whole)
        for pace, whole in zip(paces, wholes, strict=True)
    ]
    idle = [
        sum(int(one[pace.kinds.idle(cause)]) for cause in CAUSES)
        for pace, one in zip(paces, parts, strict=True)
    ]
    # otherwise one trace shows no GPU work at all
    outside = (
        [cause for cause in CAUSES if not IDLE_CAUSES[cause].between_kernels] if all(idle) else []
    )
    found = [
        _sum(
            paces[0].kinds.name(paces[0].kinds.idle(cause)),
            [
                (
                    int(parts[0][paces[0].kinds.idle(cause)]),
                    int(parts[1][paces[1].kinds.idle(cause)]),
                )
            ],
            "idle",
            cause,
        )
        for cause in outside
    ]
    left = [
        whole - sum((one.before_ns, one.after_ns)[side] for one in found)
        for side, whole in enumerate(wholes)
    ]
    found.append(
        _sum(
            (
                "GPU work, including idle time within it"
                if outside
                else "GPU work and idle time (the trace cannot separate them)"
            ),
            [(left[0], left[1])],
            "work",
        )
    )
    return tuple(
        sorted(
            (one for one in found if one.before_ns or one.after_ns),
            key=lambda one: (-abs(one.ns), one.name),
        )
    )


def _sum(name: str, pairs: Sequence[tuple[int, int]], kind: str, cause: str = "") -> Contribution:
    ours, theirs = (sum(pair[side] for pair in pairs) for side in (0, 1))
    return Contribution(name, theirs - ours, ours, theirs, kind, cause)


def _own_name(rows: list[Row], taken: set[str]) -> str:
    relation = rows[0].text("relation")
    words = [] if relation == "one-to-one" else [relation]
    words += [f"{len(rows)} layers"] if len(rows) > 1 else []
    name = (group_name(rows, "after") or group_name(rows, "before") or "") + (
        f" ({', '.join(words)})" if words else ""
    )
    return name if name not in taken else f"{name} #{rows[0]['group']}"
