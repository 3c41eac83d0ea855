"""The common part of all metrics' estimates: the samples used, the kernels in them, and the
requested means.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.edges import GroupNeighbours, beside
from nsysmap.counters.means import Means, means_of
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.ring import Gram
from nsysmap.counters.shares import (
    MOST_PARTS,
    ColumnLayout,
    Shares,
    change_in,
    gram,
    layout_of,
    overlapping,
    parts_of,
    shares_in,
    touched,
)
from nsysmap.trace.gpu_metrics import Enough

PARTS_PER_SAMPLE = 16.0
"""Kernels are divided into parts of a sample's length divided by this …"""
SHORTEST_PART_NS = 500.0
"""… but not shorter: nothing in a kernel changes faster than blocks start and end."""
FEWEST_PARTS = 8
"""Parts of a kernel that is shorter than a sample: the distribution within it is also unknown."""
FEWEST_FOR_PART = 4
"""Fewest samples per part: with fewer, residuals hardly distinguish noise from rates, and parts are
twice as long.
"""
MOST_COLUMNS = 3000  # unknowns: their matrix has 72 MB
MOST_COUPLED = 300
"""Most columns if repetitions overlap: all columns then share samples, and the time to solve grows
with the third power …
"""
# … which is the case if more than this share of the executions begin while another repetition is
# still running;
_CROSSING = 0.01
# kernels run at the same time if they do for more than this share of their time
MOST_SAMPLES = 200_000
ENOUGH_SAMPLES = 50_000
"""More samples than that, and than this many per part, are thinned by whole stretches: errors are
then below the counters' resolution …
"""
ENOUGH_FOR_PART = 25
"""… and in no case are more than MOST_SAMPLES used."""
TOGETHER = 1250
"""Samples that follow one another and are looked at together where clocks are aligned."""
FAR_SAMPLES = 64
"""The offset of the clocks is at most that many samples."""
_REPETITIONS = 4  # of the sequence, that stretches of samples last if that is longer
_STRETCHES = 64  # spread over the run, so that all of it is in them
_CLUSTERS = 64  # clusters of whole repetitions: the errors come from their differences
_AROUND = 10  # samples before the first kernel and after the last that are used


@dataclass(frozen=True)
class Problem:
    """Samples and kernels, prepared for the estimate; groups are numbered in the order in which
    they run.
    """

    values: FloatArray  # one row per metric
    work: GpuRan
    place: IntArray  # index of each of the caller's groups
    layout: ColumnLayout
    shares: Shares
    change: Shares  # of the shares, per ns by which the samples are shifted later
    beside: GroupNeighbours
    matrix: Gram
    means: Means
    cluster: IntArray  # cluster of whole repetitions of each sample
    clusters: int
    # place in the sequence at which each sample begins, in steps of parts of a sample
    phase: IntArray
    # effective number of clusters over which the time of each group, and of each set, is spread
    spread: FloatArray
    used: BoolArray
    left_out: int  # samples that overlap work outside the sequence
    thinned: bool
    period_ns: float
    shift_error_ns: float


def problem_of(
    samples: Samples, work: GpuRan, shift: Shift, member_of: IntArray, sets: int
) -> Problem:
    """The problem with all samples near the sequence, or a representative part of them;
    ``member_of`` is the set of each group, -1 for none.
    """
    kept, thinned = _thinned(_near(work, samples, shift), _enough(work, samples.period_ns))
    start, end = shift.moved(samples.start_ns[kept]), shift.moved(samples.end_ns[kept])
    values = np.stack([row[kept] for row in samples.values])
    work, place = in_sequence_order(work.some(overlapping(work, start, end)))
    layout = layout_for(work, samples.period_ns, len(start))
    foreign = touched(work, work.group < 0, start, end)
    used = ~foreign & np.isfinite(values).all(axis=0)
    parts = parts_of(work, layout)
    shares = shares_in(parts, start, end).kept(used)
    matrix = gram(shares)
    cluster, clusters = _clusters(work, start)
    member = np.full(layout.groups, -1)
    member[place] = member_of
    means = means_of(layout, member, sets)
    return Problem(
        values=values, work=work, place=place, layout=layout, shares=shares,
        change=change_in(parts, start, end).kept(used),
        beside=beside(work), matrix=matrix,
        means=means, cluster=cluster, clusters=clusters,
        phase=_phase(work, layout, start, samples.period_ns / PARTS_PER_SAMPLE),
        spread=_spread(shares, means, cluster, clusters),
        used=used, left_out=int(foreign.sum()), thinned=thinned, period_ns=samples.period_ns,
        shift_error_ns=shift.likely_ns,
    )  # fmt: skip


def without(problem: Problem, outliers: BoolArray) -> Problem:
    """The problem without those samples."""
    matrix = problem.matrix.without(gram(problem.shares.kept(outliers)))
    return replace(
        problem, shares=problem.shares.kept(~outliers), matrix=matrix, used=problem.used & ~outliers
    )


def layout_for(work: GpuRan, period_ns: float, samples: int) -> ColumnLayout:
    """Parts as fine as the samples resolve, twice as coarse if samples are few or kernels run at
    the same time, which leaves fine parts undetermined, and coarser still if there would be too
    many to solve for.
    """
    if not at_once(work):
        fine = coarse_enough(
            work, max(period_ns / PARTS_PER_SAMPLE, SHORTEST_PART_NS), FEWEST_PARTS
        )
        if FEWEST_FOR_PART * fine.columns <= samples:
            return fine
    return coarse_enough(
        work, max(2 * period_ns / PARTS_PER_SAMPLE, SHORTEST_PART_NS), FEWEST_PARTS // 2
    )


def coarse_enough(work: GpuRan, part_ns: float, fewest: int) -> ColumnLayout:
    """Parts of that length, at least so many per kernel; longer and fewer if there would be too
    many to solve for.
    """
    most = MOST_COUPLED if _crossing(work) else MOST_COLUMNS
    layout = layout_of(work, part_ns, fewest=fewest)
    while layout.columns > most and int(layout.parts.max()) > 1:
        part_ns, fewest = part_ns * 1.5, max(fewest - 1, 1)
        layout = layout_of(work, part_ns, fewest=fewest)
    return layout


def at_once(work: GpuRan) -> bool:
    """Whether other work that began earlier is still running for more than a small share of the
    work's time.
    """
    reached = np.maximum.accumulate(np.append(work.start_ns[:1], work.end_ns[:-1]))[
        : len(work.start_ns)
    ]
    both = np.maximum(np.minimum(work.end_ns, reached) - work.start_ns, 0)
    return float(both.sum()) > _CROSSING * float((work.end_ns - work.start_ns).sum())


def _crossing(work: GpuRan) -> bool:
    """Whether different repetitions run at the same time, as those of two threads do."""
    inside = np.flatnonzero(work.repeat >= 0)
    if len(inside) < 2:
        return False
    end, repeat = work.end_ns[inside], work.repeat[inside]
    crossing = (work.start_ns[inside][1:] < end[:-1]) & (repeat[1:] != repeat[:-1])
    return float(crossing.mean()) > _CROSSING


def in_sequence_order(work: GpuRan) -> tuple[GpuRan, IntArray]:
    """The work with its groups numbered in the order in which they run, and the new number of each
    group.

    Neighbours in time get neighbouring columns: only they share samples, so that long sequences can
    be solved.
    """
    inside = (work.group >= 0) & (work.repeat >= 0)
    group, repeat = work.group[inside], work.repeat[inside]
    begin = np.full(int(repeat.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begin, repeat, work.start_ns[inside])
    count = np.bincount(group, minlength=work.groups)
    late = np.bincount(
        group, (work.start_ns[inside] - begin[repeat]).astype(np.float64), work.groups
    )
    place = np.empty(work.groups, np.int64)
    place[np.argsort(np.where(count > 0, late / np.maximum(count, 1), np.inf), kind="stable")] = (
        np.arange(work.groups)
    )
    numbered = np.where(work.group >= 0, place[work.group], -1)
    return GpuRan(work.start_ns, work.end_ns, numbered, work.repeat, work.groups), place


def _near(work: GpuRan, samples: Samples, shift: Shift) -> range:
    """Samples from a little before the first kernel of the sequence to a little after the last."""
    inside = work.group >= 0
    if not inside.any():
        return range(0)
    around = _AROUND * samples.period_ns
    begin, finish = (
        float(work.start_ns[inside].min()) - around,
        float(work.end_ns[inside].max()) + around,
    )
    rows = range(len(samples.start_ns))
    first = bisect_right(rows, begin, key=lambda row: float(shift.moved(samples.end_ns[row])))
    return range(
        first,
        max(
            first,
            bisect_left(rows, finish, key=lambda row: float(shift.moved(samples.start_ns[row]))),
        ),
    )


def enough_of(work: GpuRan, period_ns: float) -> Enough:
    """The samples that suffice for estimates by kernel, for the clocks' offset, and for means over
    whole repetitions.
    """
    inside = work.group >= 0
    if not inside.any():
        return Enough(0.0, 0.0, MOST_SAMPLES, TOGETHER)
    around = FAR_SAMPLES * period_ns
    begin, end = work.spans_ns
    repetition = float(np.median(end - begin)) / period_ns if len(begin) else 0.0
    most = _enough(work, period_ns)
    together = int(max(TOGETHER, min(_REPETITIONS * repetition, most / 8)))
    return Enough(
        float(work.start_ns[inside].min()) - around,
        float(work.end_ns[inside].max()) + around,
        most,
        together,
    )


def _enough(work: GpuRan, period_ns: float) -> int:
    """The number of samples that is enough for that many parts of kernels."""
    inside = work.group >= 0
    count = np.bincount(work.group[inside], minlength=work.groups)
    mean = np.bincount(
        work.group[inside], (work.end_ns - work.start_ns)[inside], work.groups
    ) / np.maximum(count, 1)
    parts = np.clip(
        mean / max(period_ns / PARTS_PER_SAMPLE, SHORTEST_PART_NS), FEWEST_PARTS, MOST_PARTS
    ).sum()
    return int(min(max(ENOUGH_SAMPLES, ENOUGH_FOR_PART * parts), MOST_SAMPLES))


def _thinned(near: range, most: int) -> tuple[IntArray, bool]:
    if len(near) <= most:
        return np.arange(near.start, near.stop), False
    length = most // _STRETCHES
    begins = np.linspace(near.start, near.stop - length, _STRETCHES).astype(np.int64)
    return (begins[:, None] + np.arange(length)).ravel(), True


def _clusters(work: GpuRan, start: FloatArray) -> tuple[IntArray, int]:
    """The cluster of whole repetitions of each sample; stretches of time if nothing is known to
    repeat.
    """
    begins = work.spans_ns[0]
    if len(begins) < 2:
        count = min(_CLUSTERS, max(len(start), 1))
        return np.arange(len(start)) * count // max(len(start), 1), count
    count = min(_CLUSTERS, len(begins))
    repeat = np.clip(np.searchsorted(np.sort(begins), start, "right") - 1, 0, None)
    return repeat * count // len(begins), count


def _phase(work: GpuRan, layout: ColumnLayout, start: FloatArray, step_ns: float) -> IntArray:
    """How far into the sequence each sample begins: that much work, in steps, of the kernels up to
    there; -1 before the first.
    """
    done = np.cumsum(np.append(0.0, layout.duration_ns))
    row = np.searchsorted(work.start_ns, start, "right") - 1
    group = np.where(row >= 0, work.group[row], -1)
    inside = np.minimum(start - work.start_ns[row], layout.duration_ns[group])
    phase: IntArray = np.where(group >= 0, (done[group] + inside) // step_ns, -1).astype(np.int64)
    return phase


def _spread(shares: Shares, means: Means, cluster: IntArray, clusters: int) -> FloatArray:
    """The effective number of clusters over which the time of each mean is spread."""
    columns = shares.columns
    taken = np.bincount(
        cluster[shares.sample] * columns + shares.column, shares.share, clusters * columns
    ).reshape(clusters, columns)
    groups = np.add.reduceat(taken[:, :-1], means.first, axis=1)
    by_mean = np.concatenate([groups, groups @ (means.sets > 0)], axis=1)
    spread: FloatArray = by_mean.sum(axis=0) ** 2 / np.maximum((by_mean**2).sum(axis=0), 1e-12)
    return spread
