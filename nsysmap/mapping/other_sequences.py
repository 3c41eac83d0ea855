"""Sequences of kernels that recur between pauses of the host and are in no inference found: of an engine that was not given, say."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from nsysmap.base.table import BoolArray, FloatArray, IntArray
from nsysmap.mapping.stream_alignment import Track

_RECURS = 3  # times
_SHORTEST, _LONGEST = 5, 1000  # kernels
_MOST = 8  # sequences, those that most kernels are in
_INSIDE = 0.1  # share of the kernels that may be in inferences
_SAME, _ELSE, _MISSING, _AGAIN = 5.0, -30.0, -6.0, -30.0  # nats of such a sequence's track


def other_tracks(row: IntArray, pauses: BoolArray, inside: BoolArray) -> tuple[Track, ...]:
    """A track for each of these sequences.

    One entry a kernel: which of the distinct ones it is, whether the host paused before it, whether it is in an inference that was found.
    """
    starts = np.flatnonzero(pauses)
    if not len(starts):
        return ()
    where: dict[tuple[int, ...], list[int]] = defaultdict(list)
    begins = np.concatenate([[0], starts])
    for begin, piece in zip(begins.tolist(), np.split(row, starts), strict=True):
        if _SHORTEST <= len(piece) <= _LONGEST:
            where[tuple(piece.tolist())].append(begin)
    often = [
        (piece, at)
        for piece, at in where.items()
        if len(at) >= _RECURS and np.mean([inside[begin : begin + len(piece)].mean() for begin in at]) <= _INSIDE
    ]
    often.sort(key=lambda one: (-len(one[0]) * len(one[1]), one[0]))
    return tuple(_track(np.array(piece), int(row.max()) + 1) for piece, _ in often[:_MOST])


def _track(piece: IntArray, distinct: int) -> Track:
    match: FloatArray = np.full((distinct, len(piece)), _ELSE)
    match[piece, np.arange(len(piece))] = _SAME
    return Track(match, np.full(match.shape, _AGAIN), np.full(len(piece), _MISSING))
