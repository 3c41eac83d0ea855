"""Compares what the kernels of regions do, before and after: the change inside a `{ForeignNode[…]}`
that no engine file shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nsysmap.comparison.joined import JoinedGroup
from nsysmap.comparison.side import Side
from nsysmap.comparison.waterfall import whole_parts
from nsysmap.core.comparison_schema import JOINED_LAYERS, REGION_KINDS
from nsysmap.core.table import FloatArray, Table
from nsysmap.mapping.parts.parts_by_name import pattern_parts
from nsysmap.trace.inferences.launch_order import launch_order

_REGION = "foreign_node"
_NONE = (0.0, 0)
# number and time of kernels, over all counted inferences, by what they do
_Kinds = dict[str, tuple[int, int]]


def region_kinds(before: Side, after: Side, groups: Sequence[JoinedGroup], joined: Table) -> Table:
    """The table `region_kinds`: for each group with an opaque region, its kernels by what they do.

    The times of a group add up to its time in ``joined`` (JOINED_LAYERS).  A group without kernels
    on one side is left out.
    """
    rows: list[dict[str, object]] = []
    for number, group, times in regions_in(before, after, groups, joined):
        sides = [
            _side(side, ids, whole)
            for side, ids, whole in zip(
                (before, after), (group.before, group.after), times, strict=True
            )
        ]
        if not all(sides):
            continue
        first, second = sides
        kinds = dict.fromkeys([*first, *second])
        for kind in sorted(
            kinds, key=lambda one: -max(first.get(one, _NONE)[1], second.get(one, _NONE)[1])
        ):
            (count, time), (later, later_time) = (one.get(kind, _NONE) for one in sides)
            rows.append(
                {
                    "group": number,
                    "kind": kind,
                    "before_kernels": count,
                    "after_kernels": later,
                    "before_ns": time,
                    "after_ns": later_time,
                    "difference_ns": later_time - time,
                }
            )
    return Table.of_rows(REGION_KINDS, rows)


def regions_in(
    before: Side, after: Side, groups: Sequence[JoinedGroup], joined: Table
) -> Iterator[tuple[int, JoinedGroup, tuple[int, int]]]:
    """The groups with an opaque region, their rows in ``joined`` (JOINED_LAYERS), and their times
    on both sides.
    """
    assert joined.spec is JOINED_LAYERS
    for number, (group, row) in enumerate(zip(groups, joined, strict=True)):
        regions = [
            any(side.layers[at].kind == _REGION for at in ids)
            for side, ids in ((before, group.before), (after, group.after))
        ]
        if any(regions) and row["before_ns"] is not None and row["after_ns"] is not None:
            yield number, group, (row.integer("before_ns"), row.integer("after_ns"))


def _side(side: Side, ids: Sequence[int], whole: int) -> dict[str, tuple[float, int]]:
    """The kernels' figures on one side: their number per inference, and their time, which adds up
    to ``whole``.
    """
    kinds = _kinds(side, ids)
    total = sum(time for _, time in kinds.values())
    if not total:
        return {}
    parts = whole_parts(np.array([time / total * whole for _, time in kinds.values()]), whole)
    inferences = max(len(side.pace.inferences), 1)
    return {
        kind: (round(count / inferences, 1), int(part))
        for (kind, (count, _)), part in zip(kinds.items(), parts.tolist(), strict=True)
    }


def kernels_of(
    side: Side, ids: Sequence[int]
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...], FloatArray]]:
    """For each counted inference, the names, streams and times (ns) of the kernels of these layers,
    in launch order.
    """
    kernels = side.tables["kernels"]
    inference = kernels.ints("inference")
    rows = np.flatnonzero(
        np.isin(kernels.ints("layer_id"), ids) & np.isin(inference, side.pace.inferences)
    )
    rows = launch_order(kernels, rows, inference[rows])
    names, codes = kernels.text("name").values, kernels.text("name").codes[rows]
    streams, length = (
        kernels.ints("stream")[rows],
        (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows],
    )
    known: dict[bytes, tuple[tuple[str, ...], tuple[int, ...]]] = {}
    first = 0
    for end in (np.flatnonzero(np.diff(inference[rows], append=-1)) + 1).tolist():
        key = codes[first:end].tobytes() + streams[first:end].tobytes()
        if key not in known:
            known[key] = (
                tuple(names[code] for code in codes[first:end].tolist()),
                tuple(streams[first:end].tolist()),
            )
        yield (*known[key], length[first:end].astype(np.float64))
        first = end


def _kinds(side: Side, ids: Sequence[int]) -> _Kinds:
    known: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = {}
    result: _Kinds = {}
    for names, streams, lengths in kernels_of(side, ids):
        if (names, streams) not in known:
            known[names, streams] = _words(names, streams)
        for word, time in zip(known[names, streams], lengths.tolist(), strict=True):
            count, spent = result.get(word, (0, 0))
            result[word] = (count + 1, spent + int(time))
    return result


def _words(names: Sequence[str], streams: Sequence[int]) -> list[str]:
    """The words for each kernel of one inference."""
    result = [""] * len(names)
    for part in pattern_parts(names, streams):
        for place in part.places:
            result[place] = part.word
    return result
