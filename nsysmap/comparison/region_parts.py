"""Matches the parts of a region before and after: its kernels in order, by what they do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from nsysmap.comparison.joined import JoinedGroup
from nsysmap.comparison.region_kinds import kernels_of, regions_in
from nsysmap.comparison.side import Side
from nsysmap.comparison.waterfall import whole_parts
from nsysmap.core.comparison_schema import REGION_PARTS
from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, Table
from nsysmap.mapping.parts.parts_by_name import pattern_parts
from nsysmap.names.fusion import NORM_PATTERNS


@dataclass(frozen=True)
class ComparedPart:
    """One or more kernels of a region that together compute one thing."""

    word: str  # gemm, layernorm, …
    time_ns: int  # per inference


def region_parts(before: Side, after: Side, groups: Sequence[JoinedGroup], joined: Table) -> Table:
    """The table `region_parts`: for each group with an opaque region, which parts became which.

    The times of a group add up to its time in ``joined`` (JOINED_LAYERS).
    """
    rows: list[dict[str, object]] = []
    for number, group, times in regions_in(before, after, groups, joined):
        sides = [
            _parts(side, ids, whole)
            for side, ids, whole in zip(
                (before, after), (group.before, group.after), times, strict=True
            )
        ]
        if not all(sides):
            continue
        became: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for ours, theirs in joined_parts(*sides):
            spent = (sum(part.time_ns for part in ours), sum(part.time_ns for part in theirs))
            became[_words(ours), _words(theirs)].append(spent)
        for (ours_words, theirs_words), spent_by in became.items():
            was, now = (sum(one[side] for one in spent_by) for side in (0, 1))
            rows.append(
                {
                    "group": number,
                    "before": ours_words or None,
                    "after": theirs_words or None,
                    "places": len(spent_by),
                    "before_ns": was,
                    "after_ns": now,
                    "difference_ns": now - was,
                }
            )
    return Table.of_rows(REGION_PARTS, rows)


def joined_parts(
    before: Sequence[ComparedPart], after: Sequence[ComparedPart]
) -> list[tuple[Sequence[ComparedPart], Sequence[ComparedPart]]]:
    """Corresponding parts of both sides, in order; nothing if the sides differ in their number of
    norms.

    Matrix products all look alike and are merged and split, but norms remain: if both sides have
    equally many, they correspond in order. What lies between two norms is one group, or one per
    part if it is the same on both sides.
    """
    marks = [
        [at for at, part in enumerate(side) if part.word in NORM_PATTERNS]
        for side in (before, after)
    ]
    if not marks[0] or [before[at].word for at in marks[0]] != [after[at].word for at in marks[1]]:
        return []
    found: list[tuple[Sequence[ComparedPart], Sequence[ComparedPart]]] = []
    at, other = 0, 0
    for row, column in [*zip(*marks, strict=True), (len(before), len(after))]:
        ours, theirs = before[at:row], after[other:column]
        if [part.word for part in ours] == [part.word for part in theirs]:
            found += [((one,), (two,)) for one, two in zip(ours, theirs, strict=True)]
        else:
            found.append((ours, theirs))
        found += [
            ((one,), (two,))
            for one, two in zip(before[row : row + 1], after[column : column + 1], strict=True)
        ]
        at, other = row + 1, column + 1
    return found


def _parts(side: Side, ids: Sequence[int], whole: int) -> list[ComparedPart]:
    """The parts in order of their start, for the kernel sequence that most inferences have; their
    times add up to ``whole``.
    """
    sequences: dict[tuple[tuple[str, ...], tuple[int, ...]], list[FloatArray]] = defaultdict(list)
    for called, on, lengths in kernels_of(side, ids):
        sequences[called, on].append(lengths)
    if not sequences:
        return []
    (names, streams), every = max(sequences.items(), key=lambda one: len(one[1]))
    spent: FloatArray = np.mean(every, axis=0)
    held = sorted(pattern_parts(names, streams), key=lambda part: part.places[0])
    shares = np.array([spent[list(part.places)].sum() for part in held])
    if not shares.sum():
        return []
    times = whole_parts(shares / shares.sum() * whole, whole)
    return [ComparedPart(part.word, time) for part, time in zip(held, times.tolist(), strict=True)]


def _words(parts: Sequence[ComparedPart]) -> str:
    return " + ".join(
        word if count == 1 else f"{count} {word}"
        for word, count in Counter(part.word for part in parts).items()
    )
