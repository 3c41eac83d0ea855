"""Rejects runs that are not real: those which lie within the engine's own opaque region and do the
same as the layers before the region.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.mapping.order.open_ends import LEAST_ALIKE
from nsysmap.mapping.streams.stream_alignment import Runs, Stream, likeliest_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysmap.mapping.streams.segments import Lane, StreamKernels

_REGION = "foreign_node"
_ROUNDS = 3  # alignments, each without the beginnings that the one before made in a region
_NOWHERE = -1e4  # nats: no run begins there
_FEWEST_FLAWS = 2
"""Fewest flaws (layers without their kernel, kernels between layers) that identify a repetition: a
single one may be a kernel that the profiler lost in several inferences.
"""
_SAME_KERNELS = 0.5
"""If this share of the listed layers runs exactly the kernels of whole inferences in a repetition,
blocks included, the shapes are the same, and then the engine runs all of these kernels. At other
shapes most launches have another number of blocks.
"""
_ASKED = 0.5  # share of the runs before which the host waits or copies: they are inferences


_Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _ListedPart:
    """The part of a run in the layers that the file lists before its opaque region."""

    run: int
    last: int  # of its kernels in them, in the stream
    placed: _Pairs  # layer, and which of the distinct kernels
    # layers without a kernel, those with another than their tactic, and kernels in no layer with
    # the layer before them
    flaws: _Pairs
    asked: bool  # the host waited or copied before it


def without_repeats(kernels: StreamKernels, lanes: Sequence[Lane], stream: Stream) -> Stream:
    """The stream without runs that begin where an engine's opaque region repeats what the engine
    did before it.

    A network of like blocks does again in the region what its first blocks did, layer for layer but
    for those that only its beginning has.  The alignment takes that for another inference that
    lacks a few kernels; but what lacks the same ones each time, beside inferences that lack none,
    is no inference.
    """
    if not any(layer.kind == _REGION for lane in lanes for layer in lane.layers):
        return stream
    for _ in range(_ROUNDS):
        runs = likeliest_runs(stream)
        begin = stream.begin.copy()
        for first, last in _repetitions(kernels, lanes, runs):
            begin[first : last + 1] = _NOWHERE
        if (begin == stream.begin).all():
            break
        stream = replace(stream, begin=begin)
    return stream


def _repetitions(
    kernels: StreamKernels, lanes: Sequence[Lane], runs: Runs
) -> list[tuple[int, int]]:
    """The spans in which no inference begins: from behind the first kernel of the run before each
    repetition to the repetition's last kernel in a listed layer.
    """
    found = []
    for number, lane in enumerate(lanes):
        mine = np.flatnonzero(runs.track == number).tolist()
        if not 0 < _listed(lane) < len(lane.layers) or len(mine) < 2 * LEAST_ALIKE:
            continue
        parts = [part for run in mine if (part := _part(kernels, lane, runs, run)) is not None]
        whole = [part for part in parts if not part.flaws]
        if len(whole) < LEAST_ALIKE:
            continue
        usual: defaultdict[int, set[int]] = defaultdict(set)
        for part in whole:
            for slot, row in part.placed:
                usual[slot].add(row)
        like: defaultdict[tuple[_Pairs, _Pairs], list[_ListedPart]] = defaultdict(list)
        for part in parts:
            other = tuple((slot, row) for slot, row in part.placed if row not in usual[slot])
            if part.run and len(part.flaws) + len(other) >= _FEWEST_FLAWS:
                like[part.flaws, other].append(part)
        for (_, other), group in like.items():
            some = group[0]
            same = len(some.placed) - len(other)
            asked = np.mean([part.asked for part in group])
            if len(group) >= LEAST_ALIKE and same >= _SAME_KERNELS * len(usual) and asked < _ASKED:
                found += [(int(runs.first[part.run - 1]) + 1, part.last) for part in group]
    return found


def _listed(lane: Lane) -> int:
    """The number of layers that the file lists before the first opaque region."""
    kinds = [layer.kind for layer in lane.layers]
    return kinds.index(_REGION) if _REGION in kinds else len(kinds)


def _part(kernels: StreamKernels, lane: Lane, runs: Runs, run: int) -> _ListedPart | None:
    items = np.arange(int(runs.first[run]), int(runs.last[run]) + 1)
    slots = runs.slot[items]
    listed = _listed(lane)
    at = np.flatnonzero((slots >= 0) & (slots < listed))
    if not len(at):
        return None
    first, last = int(at[0]), int(at[-1])
    placed = tuple(zip(slots[at].tolist(), kernels.row[items[at]].tolist(), strict=True))
    empty = np.setdiff1d(np.flatnonzero(lane.scores.runs[:listed]), slots[at])
    flaws = [(slot, -1) for slot in empty.tolist()]
    tactic, before = lane.scores.tactic, -1
    for item in range(first, last + 1):
        row = int(kernels.row[items[item]])
        if slots[item] >= 0:
            before = int(slots[item])
            strange = bool(tactic[:, before].any()) and not tactic[row, before]
        else:
            strange = not lane.scores.foreign[row]
        if strange:
            flaws.append((before, row))
    asked = bool(kernels.waits[items[0]] or kernels.copies[items[0]])
    return _ListedPart(run, int(items[last]), placed, tuple(flaws), asked)
