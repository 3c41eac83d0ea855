"""The share of each sample that each part of each kernel takes: the sparse matrix of the estimate,
and its normal equations.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nsysmap.core.groups import scattered
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.model import GpuRan
from nsysmap.counters.ring import Gram, band_of_pairs, gram_of_dense, trimmed

MOST_PARTS = 24
"""A kernel is divided into at most that many parts."""
_PAIR = 150  # cost of combining a single pair of entries, relative to a product within a matrix
_ROWS = 2048  # samples at a time
_MANY_PAIRS = 1_000_000  # entries of the same sample: for fewer, they are multiplied one by one
_NEVER = np.iinfo(np.int64).max
# share of the executions of the kernel that began last: a set of kernels that runs as often is a
# group
_USUAL = 0.5
# share of a part's length: shorter kernels are divided in two, because the distribution within them
# matters little
_SHORT = 1.5


@dataclass(frozen=True)
class ColumnLayout:
    """The columns of the groups: group g has the columns first[g] to first[g + 1]; the last column
    is time without work.
    """

    first: IntArray
    duration_ns: FloatArray  # usual duration of one execution of the group
    executions: IntArray

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.duration_ns)

    @property
    def columns(self) -> int:
        """The number of columns, including the idle one."""
        return int(self.first[-1]) + 1

    @property
    def parts(self) -> IntArray:
        """The number of equal parts of each group's kernel."""
        return np.diff(self.first)

    def halved(self) -> tuple[ColumnLayout, IntArray]:
        """A layout with half as many parts, and the part of it that each part but idle time
        becomes.
        """
        parts = (self.parts + 1) // 2
        first = np.concatenate([[0], np.cumsum(parts)])
        into = np.repeat(first[:-1], self.parts) + _counted(self.parts) // 2
        return ColumnLayout(first, self.duration_ns, self.executions), into


@dataclass(frozen=True)
class Shares:
    """Nonzero entries of the matrix, by sample: ``share`` of ``sample`` belongs to ``column``."""

    sample: IntArray
    column: IntArray
    share: FloatArray
    samples: int
    columns: int

    def applied(self, rates: FloatArray) -> FloatArray:
        """The samples predicted from these rates of the columns."""
        return summed(self.sample, self.share * rates[self.column], self.samples)

    def gathered(self, values: FloatArray) -> FloatArray:
        """The transposed matrix times one value per sample."""
        return summed(self.column, self.share * values[self.sample], self.columns)

    def kept(self, wanted: BoolArray) -> Shares:
        """Only the entries of these samples, which keep their numbers."""
        if wanted.all():
            return self
        entries = wanted[self.sample]
        return Shares(
            self.sample[entries],
            self.column[entries],
            self.share[entries],
            self.samples,
            self.columns,
        )


def summed(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """The sum of the values of each index."""
    total: FloatArray = np.bincount(index, values, size).astype(np.float64, copy=False)
    return total


def layout_of(work: GpuRan, part_ns: float, *, fewest: int) -> ColumnLayout:
    """The number of parts of about ``part_ns`` for the kernels of each group, at least ``fewest``
    unless they are very short.
    """
    inside = work.group >= 0
    group = work.group[inside]
    duration = (work.end_ns - work.start_ns)[inside].astype(np.float64)
    order = np.lexsort((duration, group))
    executions = np.bincount(group, minlength=work.groups)
    begins = np.cumsum(executions) - executions
    ran = executions > 0
    median = np.zeros(work.groups)
    median[ran] = duration[order][(begins + executions // 2)[ran]]
    parts = np.full(work.groups, fewest)
    if part_ns > 0:
        least = np.where(median < _SHORT * part_ns, min(fewest, 2), fewest)
        parts = np.clip(np.round(median / part_ns), least, MOST_PARTS).astype(np.int64)
    return ColumnLayout(np.concatenate([[0], np.cumsum(parts)]), median, executions)


@dataclass(frozen=True)
class KernelParts:
    """The parts of all kernels of the sequence, and the time that work takes: all that shares of
    samples need.
    """

    layout: ColumnLayout
    column: IntArray
    begin_ns: FloatArray
    end_ns: FloatArray
    time: BusyTime


def parts_of(work: GpuRan, layout: ColumnLayout) -> KernelParts:
    """The parts of this work's kernels."""
    return KernelParts(layout, *_pieces(work, layout), busy_time(work))


def shares_in(parts: KernelParts, start_ns: FloatArray, end_ns: FloatArray) -> Shares:
    """The matrix for samples over these intervals of the kernels' clock, by time and without
    overlap.
    """
    sample, entry, share = _overlaps(parts.begin_ns, parts.end_ns, start_ns, end_ns)
    idle = 1.0 - parts.time.share(start_ns, end_ns)
    some = np.flatnonzero(idle > 0)
    return _by_sample(
        np.concatenate([sample, some]),
        np.concatenate([parts.column[entry], np.full(len(some), parts.layout.columns - 1)]),
        np.concatenate([share, idle[some]]),
        (len(start_ns), parts.layout.columns),
    )


def change_in(parts: KernelParts, start_ns: FloatArray, end_ns: FloatArray) -> Shares:
    """The change of these shares per ns by which the samples are shifted later: what runs at a
    sample's end is added, what runs at its start is lost.
    """
    moments = np.concatenate([start_ns, end_ns])
    order = np.argsort(moments, kind="stable")
    first = np.searchsorted(moments[order], parts.begin_ns)
    count = np.searchsorted(moments[order], parts.end_ns) - first
    at = order[np.repeat(first, count) + _counted(count)]  # moments at which each part runs
    idle = np.flatnonzero(np.bincount(at, minlength=len(moments)) == 0)
    at = np.concatenate([at, idle])
    column = np.concatenate(
        [np.repeat(parts.column, count), np.full(len(idle), parts.layout.columns - 1)]
    )
    sample = at % len(start_ns)
    return _by_sample(
        sample,
        column,
        np.where(at < len(start_ns), -1.0, 1.0) / (end_ns - start_ns)[sample],
        (len(start_ns), parts.layout.columns),
    )


def _by_sample(
    sample: IntArray, column: IntArray, share: FloatArray, shape: tuple[int, int]
) -> Shares:
    order = np.argsort(sample, kind="stable")
    return Shares(sample[order], column[order], share[order], *shape)


def overlapping(
    work: GpuRan, start_ns: FloatArray | IntArray, end_ns: FloatArray | IntArray
) -> BoolArray:
    """Marks the work that overlaps any of the samples."""
    # samples follow one another, but where some were lost
    first = np.append(True, start_ns[1:] != end_ns[:-1])[: len(start_ns)]
    begins, ends = start_ns[first], end_ns[np.append(first[1:], True)[: len(end_ns)]]
    # the first work that begins after each stretch of samples
    past = np.searchsorted(work.start_ns, ends)
    following = np.repeat(
        np.append(begins, _NEVER), np.diff(past, prepend=0, append=len(work.start_ns))
    )
    # the begin of the first stretch that ends after the work begins
    some: BoolArray = following < work.end_ns
    return some


def touched(work: GpuRan, rows: BoolArray, start_ns: FloatArray, end_ns: FloatArray) -> BoolArray:
    """The samples that these rows of the work overlap."""
    if not rows.any():
        return np.zeros(len(start_ns), np.bool_)
    first = np.searchsorted(end_ns, work.start_ns[rows], "right")
    last = np.searchsorted(start_ns, work.end_ns[rows], "left")
    some = last > first
    steps = np.zeros(len(start_ns) + 1, np.int64)
    np.add.at(steps, first[some], 1)
    np.add.at(steps, last[some], -1)
    return np.cumsum(steps[:-1]) > 0


@dataclass(frozen=True)
class BusyTime:
    """Busy time up to each time."""

    moments: FloatArray
    busy: FloatArray

    def share(self, start_ns: FloatArray, end_ns: FloatArray) -> FloatArray:
        """The share of each sample that work covers; samples follow one another along the last
        axis.
        """
        until = np.interp(end_ns, self.moments, self.busy)
        since = np.empty_like(until)
        since[..., 1:] = until[..., :-1]
        apart = start_ns[..., 1:] != end_ns[..., :-1]  # where some were lost
        apart = (
            np.concatenate([np.ones_like(apart[..., :1]), apart], axis=-1)
            if apart.shape[-1]
            else np.ones(start_ns.shape, np.bool_)
        )
        since[apart] = np.interp(start_ns[apart], self.moments, self.busy)
        share: FloatArray = (until - since) / (end_ns - start_ns)
        return share


def busy_time(work: GpuRan) -> BusyTime:
    """The union of the work, which is ordered by start time."""
    reached = np.maximum.accumulate(work.end_ns)
    last = np.append(work.start_ns[1:] > reached[:-1], True)[: len(reached)]
    first = np.append(True, last[:-1])[: len(reached)]
    moments = np.empty((int(last.sum()), 2))
    moments[:, 0], moments[:, 1] = work.start_ns[first], reached[last]
    busy, length = np.empty_like(moments), moments[:, 1] - moments[:, 0]
    np.cumsum(length, out=busy[:, 1])
    busy[:, 0] = busy[:, 1] - length
    return BusyTime(moments.ravel(), busy.ravel())


def concurrent_share(work: GpuRan) -> FloatArray:
    """The share of each group's time in which something else also ran."""
    moments = np.concatenate([work.start_ns, work.end_ns])
    change = np.repeat(np.array([1, -1]), len(work.start_ns))
    order = np.argsort(moments, kind="stable")
    moments = moments[order].astype(np.float64)
    several = np.concatenate(
        [[0.0], np.cumsum(np.diff(moments) * (np.cumsum(change[order])[:-1] > 1))]
    )
    inside = work.group >= 0
    start, end, group = work.start_ns[inside], work.end_ns[inside], work.group[inside]
    overlapped = np.interp(end, moments, several) - np.interp(start, moments, several)
    total = np.bincount(group, end - start, work.groups)
    share: FloatArray = np.bincount(group, overlapped, work.groups) / np.maximum(total, 1)
    return share


def by_company(work: GpuRan) -> GpuRan:
    """The work cut where something begins or ends, in groups of what runs: kernels that run at the
    same time slow one another down, and their rates do not add up.

    What runs alone is a group: one of the kernel's begin, one of what is left of it when others
    have ended.  So is each set of kernels that usually runs when its last kernel has begun.  In
    other company, kernels count as groups of their own, whose rates add up.
    """
    own = np.flatnonzero(work.group >= 0)
    start, end, group = work.start_ns[own], work.end_ns[own], work.group[own]
    moments = np.concatenate([start, end])
    begins = np.repeat([True, False], len(own))
    order = np.lexsort((begins, moments))
    moments, begins, row = moments[order], begins[order], order % len(own)
    change = np.where(begins, 1, -1)
    of_set = np.cumsum(change * scattered(work.groups, salt=1).astype(np.int64)[group[row]])[:-1]
    latest = row[np.maximum.accumulate(np.where(begins, np.arange(len(row)), 0))][:-1]
    running, pieces = np.cumsum(change)[:-1], moments[1:] > moments[:-1]
    some = np.flatnonzero(pieces & (running > 0))
    _, first, number, count = np.unique(
        2 * of_set[some] + begins[some], return_index=True, return_inverse=True, return_counts=True
    )
    executions = np.bincount(group, minlength=work.groups)
    usual = (running[some[first]] == 1) | (count >= _USUAL * executions[group[latest[some[first]]]])
    kept = some[usual[number]]
    rare = np.zeros(len(moments), np.int64)
    rare[some] = ~usual[number]
    before = np.concatenate([[0], np.cumsum(rare)])
    at = np.searchsorted(moments, start), np.searchsorted(moments, end)
    inside = before[at[1]] - before[at[0]]  # rare pieces of each kernel
    piece = np.flatnonzero(rare)[np.repeat(before[at[0]], inside) + _counted(inside)]
    kernel = np.repeat(np.arange(len(own)), inside)
    others = np.flatnonzero(work.group < 0)
    groups = np.concatenate([work.groups + number[usual[number]], group[kernel]])
    named, named_groups = np.unique(groups, return_inverse=True)
    begin = np.concatenate([moments[kept], moments[piece], work.start_ns[others]])
    finish = np.concatenate([moments[kept + 1], moments[piece + 1], work.end_ns[others]])
    of_row = np.concatenate([named_groups, work.group[others]])
    repeat = np.concatenate(
        [work.repeat[own[latest[kept]]], work.repeat[own[kernel]], work.repeat[others]]
    )
    by_start = np.argsort(begin, kind="stable")
    return GpuRan(begin[by_start], finish[by_start], of_row[by_start], repeat[by_start], len(named))


def blurred(work: GpuRan, length_ns: float) -> GpuRan:
    """The work with those kernels as one that begin within the same stretch of that length of their
    sequence.
    """
    inside = np.flatnonzero((work.group >= 0) & (work.repeat >= 0))
    group, repeat = work.group[inside], work.repeat[inside]
    begin = np.full(int(repeat.max(initial=-1)) + 1, _NEVER)
    np.minimum.at(begin, repeat, work.start_ns[inside])
    late = summed(group, work.start_ns[inside] - begin[repeat], work.groups) / np.maximum(
        np.bincount(group, minlength=work.groups), 1
    )
    sequence = np.full(work.groups, len(begin))
    np.minimum.at(sequence, group, repeat)  # its first repetition
    named, into = np.unique(
        np.stack([sequence, (late // length_ns).astype(np.int64)]), axis=1, return_inverse=True
    )
    number = np.where(work.group >= 0, into.reshape(-1)[work.group], -1)
    first = np.flatnonzero(
        np.append(True, (np.diff(number) != 0) | (np.diff(work.repeat) != 0) | (number[1:] < 0))[
            : len(number)
        ]
    )
    end = np.maximum.reduceat(work.end_ns, first) if len(first) else work.end_ns
    return GpuRan(work.start_ns[first], end, number[first], work.repeat[first], named.shape[1])


def gram(shares: Shares) -> Gram:
    """The transposed matrix times the matrix."""
    by_sample = np.bincount(shares.sample, minlength=shares.samples)
    pairs = int((by_sample**2).sum())
    if _PAIR * pairs > int((by_sample > 0).sum()) * shares.columns**2:
        return gram_of_dense(_dense_gram(shares))
    ring = shares.columns - 1
    common, inner = np.flatnonzero(shares.column == ring), np.flatnonzero(shares.column < ring)
    idle = summed(shares.sample[common], shares.share[common], shares.samples)
    busy = Shares(
        shares.sample[inner], shares.column[inner], shares.share[inner], shares.samples, ring
    )
    band = _band_by_blocks(busy) if pairs > _MANY_PAIRS else None
    return Gram(
        trimmed(_band_by_pairs(busy) if band is None else band),
        busy.gathered(idle),
        float(idle @ idle),
    )


def _band_by_pairs(shares: Shares) -> FloatArray:
    """The band of the product of columns on a ring, from each pair of entries of the same
    sample.
    """
    sample, column, share, ring = shares.sample, shares.column, shares.share, shares.columns
    size = np.diff(np.flatnonzero(np.diff(sample, prepend=-1, append=-1)))
    # entries of the sample from each one on, itself included
    following = np.repeat(size, size) - _counted(size)
    left, after = np.repeat(np.arange(len(following)), following), _counted(following)
    right = left + after
    return band_of_pairs(column[left], column[right], share[left] * share[right], after == 0, ring)


def _band_by_blocks(shares: Shares) -> FloatArray | None:
    """The band by products of small matrices, for samples that begin near one another; None if the
    columns of some are far apart.
    """
    sample, column, share, ring = shares.sample, shares.column, shares.share, shares.columns
    if not len(sample):
        return None
    first = np.flatnonzero(np.diff(sample, prepend=-1))
    size = np.diff(np.append(first, len(sample)))
    away = column - np.repeat(column[first], size)
    away[away < -(ring // 2)] += ring
    away[away >= ring - ring // 2] -= ring
    least = np.minimum.reduceat(away, first)
    reach = int((np.maximum.reduceat(away, first) - least).max()) + 1
    if 4 * reach > ring:
        return None
    begin = (column[first] + least) % ring
    order = np.argsort(begin // reach, kind="stable")
    number = begin[order] // reach
    bounds = np.searchsorted(number, np.arange(-(-ring // reach) + 1))
    until = np.append(0, np.cumsum(size[order]))
    entry = np.repeat(first[order] - until[:-1], size[order]) + np.arange(len(sample))
    row = np.arange(len(order)) - bounds[number]
    place = (
        np.repeat(row * (2 * reach) + begin[order] - number * reach - least[order], size[order])
        + away[entry]
    )
    share = share[entry]
    band = np.zeros((reach, ring + 2 * reach))
    square = np.zeros((2 * reach, 3 * reach))
    for at, (low, high) in enumerate(pairwise(bounds.tolist())):
        if low == high:
            continue
        some = summed(
            place[until[low] : until[high]],
            share[until[low] : until[high]],
            (high - low) * 2 * reach,
        ).reshape(-1, 2 * reach)
        square[:, : 2 * reach] = some.T @ some
        along = np.lib.stride_tricks.as_strided(
            square, (2 * reach, reach), (square.strides[0] + square.itemsize, square.itemsize)
        )
        band[:, at * reach : (at + 2) * reach] += along.T  # its diagonals, one a row
    band[:, : 2 * reach] += band[:, ring:]
    return band[:, :ring]


def _dense_gram(shares: Shares) -> FloatArray:
    """The same matrix with all entries, which is faster if each sample has many kernels."""
    total = np.zeros((shares.columns, shares.columns))
    bounds = np.searchsorted(shares.sample, np.arange(0, shares.samples + _ROWS, _ROWS))
    for first, begin, end in zip(
        range(0, shares.samples, _ROWS), bounds[:-1].tolist(), bounds[1:].tolist(), strict=False
    ):
        place = (shares.sample[begin:end] - first) * shares.columns + shares.column[begin:end]
        rows = summed(place, shares.share[begin:end], _ROWS * shares.columns).reshape(
            _ROWS, shares.columns
        )
        total += rows.T @ rows
    return total


def _pieces(work: GpuRan, layout: ColumnLayout) -> tuple[IntArray, FloatArray, FloatArray]:
    """Column, begin and end of every part of every kernel of the sequence."""
    inside = np.flatnonzero((work.group >= 0) & (work.end_ns > work.start_ns))
    parts = layout.parts[work.group[inside]]
    row = np.repeat(inside, parts)
    part = _counted(parts)
    length = (work.end_ns - work.start_ns)[row] / np.repeat(parts, parts)
    begin = work.start_ns[row] + length * part
    return layout.first[work.group[row]] + part, begin, begin + length


def _overlaps(
    begin: FloatArray, end: FloatArray, start_ns: FloatArray, end_ns: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Sample, interval and share of the sample, for each sample that each interval overlaps."""
    if (begin[1:] < begin[:-1]).any() or (end[1:] < end[:-1]).any():
        first = np.searchsorted(end_ns, begin, "right")
        count = np.maximum(np.searchsorted(start_ns, end, "left") - first, 0)
        entry = np.repeat(np.arange(len(begin)), count)
        sample = np.repeat(first, count) + _counted(count)
    else:  # the same, sample by sample
        first = np.searchsorted(end, start_ns, "right")
        count = np.maximum(np.searchsorted(begin, end_ns, "left") - first, 0)
        sample = np.repeat(np.arange(len(start_ns)), count)
        entry = np.repeat(first, count) + _counted(count)
    covered = np.minimum(end[entry], end_ns[sample]) - np.maximum(begin[entry], start_ns[sample])
    return sample, entry, covered / (end_ns - start_ns)[sample]


def _counted(count: IntArray) -> IntArray:
    """0, 1, …, count[i] - 1 for each i in turn."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
