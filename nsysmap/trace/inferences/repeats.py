"""Cuts a sequence of kernels, in launch order, into what repeats in it: the inferences of one
engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.groups import distinct, in_first_order
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, CodeArray, FloatArray, IntArray

_GRAMS = (1, 4, 16, 64, 256)  # lengths of the runs of kernels whose distances suggest a period
_RARE = 12  # how many of the rarest runs of kernels are asked
_LIKE = 0.5  # an odd inference shares at least that much of its kernels with the usual one …
_SIZE = (0.5, 1.5)  # … and is that many times as long
# the host is that much longer between inferences than anywhere within them, to tell where they
# begin
_CONTRAST = 1.5
_PAUSE = 3.0  # … to tell inferences from the blocks of one
_CLEAR = 2.0  # … to overrule that the sequence is a whole number of periods
_BORDER = 0.5  # a period seen less than twice is believed if at least that part of it is seen again
_EACH = 0.9  # waits a kernel: from here on the host waits for each …
_SEVERAL = 4  # … of that many kernels or more, which one inference then has
# stretches between waits that are alike, after others that are not: two may be by chance
_LEAST_RUN = 3
_KNOWN = 64  # sequences of kernels that others are compared with
_MOSTLY = 0.75  # of a sequence: what repeats between other kernels is at least that
# repeats that make an unlike beginning believable as what leads a loop in: models have as many
# layers, but then a head
_MANY = 20

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class LaunchedKernels:
    """The kernels of one engine's streams in launch order; all arrays have one entry per kernel."""

    codes: IntArray  # which kernel, as a small number
    syncs: IntArray  # how often the host waited for the GPU since it launched the kernel before
    copies: IntArray  # how many copies from or to the host it asked for since then
    gap_ns: IntArray  # host time since then
    # all of them from CUDA graphs; each graph launch counts as a wait: it is a whole inference
    replayed: bool = False


@dataclass(frozen=True)
class SequenceInferences:
    """The inferences of one sequence, in order; one entry per inference, but ``inference`` has one
    entry per kernel.
    """

    inference: IntArray  # -1: belongs to none
    start: IntArray  # its first kernel
    size: IntArray  # how many kernels
    shape: IntArray  # inferences with the same number launch the same kernels
    # where in its shape's full sequence it begins; not 0 for a first one that is cut
    offset: IntArray
    complete: BoolArray


ONE_KERNEL = SequenceInferences(
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
    np.ones(1, np.int64),
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
    np.ones(1, np.bool_),
)
"""What `cut_inferences` makes of one kernel, whatever it is: traces may have very many streams, of
a kernel each.
"""


def cut_inferences(launches: LaunchedKernels, *, expected: int | None = None) -> SequenceInferences:
    """The inferences in a sequence of kernels.

    They end where the host waited for the GPU, if what lies between repeats; otherwise the
    sequence's own period tells. ``expected`` (kernels of one inference, from the engine) decides
    only between readings that the sequence allows.
    """
    n = len(launches.codes)
    if n == 0:
        nothing = np.zeros(0, np.int64)
        return SequenceInferences(
            nothing, nothing, nothing, nothing, nothing, np.zeros(0, np.bool_)
        )
    if _after_each_kernel(launches):
        launches = replace(launches, syncs=np.zeros_like(launches.syncs))
    starts = _by_syncs(launches, expected)
    if starts is None:
        starts = _by_period(launches, expected)
    return _pieces(launches, starts)


def _after_each_kernel(launches: LaunchedKernels) -> bool:
    """Whether the host waits for nearly every kernel, of several (as with CUDA_LAUNCH_BLOCKING=1):
    such waits bound no inference.
    """
    waits = int(np.count_nonzero(launches.syncs))
    return (
        not launches.replayed
        and waits >= _EACH * len(launches.codes)
        and len(np.unique(launches.codes)) >= _SEVERAL
    )


# --- by what the host does
# -------------------------------------------------------------------------------------------


def _by_syncs(launches: LaunchedKernels, expected: int | None) -> IntArray | None:
    """First kernels of the inferences where the host's waits bound them; None if they bound nothing
    that repeats.
    """
    codes = launches.codes
    starts = distinct(np.concatenate([[0], np.flatnonzero(launches.syncs > 0)]))
    if len(starts) < 2 or launches.replayed:
        return starts if launches.replayed else None
    ends = np.append(starts[1:], len(codes))
    size = ends - starts
    word, first, count = _words(codes, starts)
    inner = (
        np.bincount(word[1:-1], minlength=len(first))
        if len(starts) > 2
        else np.zeros(len(first), np.int64)
    )
    recurs = (count >= 2) | (inner > 0) if len(starts) <= 4 else count >= 2
    known = [
        codes[starts[first[w]] : ends[first[w]]] for w in np.flatnonzero(recurs)[:_KNOWN].tolist()
    ]
    whole = _waited_within(codes, np.append(starts, len(codes)), recurs[word], known)
    if len(whole):
        syncs = launches.syncs.copy()
        syncs[starts[whole]] = 0
        return _by_syncs(replace(launches, syncs=syncs), expected)
    covered = int(size[recurs[word]].sum())
    for at, end in (
        (0, False),
        (len(starts) - 1, True),
    ):  # a cut first or last one is part of another
        if not recurs[word[at]] and any(
            is_part(codes[starts[at] : ends[at]], full, front=end) for full in known
        ):
            covered += int(size[at])
    if (
        len(starts) > 4
        and covered < 0.5 * len(codes)
        and np.count_nonzero(recurs[word]) < 0.6 * len(starts)
    ):
        return None
    if expected is not None and _parts_of_more(launches, size, expected):
        return None
    fine: list[IntArray] = []
    periods: dict[int, int] = {}
    for w in range(len(first)):
        text = codes[starts[first[w]] : ends[first[w]]]
        periods[w] = _power(text, expected) if len(first) <= 256 or count[w] >= 2 else len(text)
    blocks = _blocks(launches, starts, size, np.array([periods[w] for w in word.tolist()]))
    if blocks is not None:
        unit, often = blocks
        cut = [
            periods[w] == unit and not at % (often * unit)
            for w, at in zip(word.tolist(), size.tolist(), strict=True)
        ]
        parts = zip(starts.tolist(), ends.tolist(), cut, strict=True)
        return np.concatenate(
            [
                np.arange(start, end, often * unit if whole else end - start)
                for start, end, whole in parts
            ]
        )
    units = [
        codes[starts[first[w]] : starts[first[w]] + p]
        for w, p in periods.items()
        if p < size[first[w]] or recurs[w]
    ][:_KNOWN]
    for at in range(len(starts)):
        period = periods[int(word[at])]
        if period == size[at] and at in (0, len(starts) - 1) and not recurs[word[at]]:
            fine.append(
                starts[at] + _split_by_unit(codes[starts[at] : ends[at]], units, from_end=at == 0)
            )
        else:
            fine.append(np.arange(starts[at], ends[at], period))
    return np.concatenate(fine)


def _waited_within(
    codes: IntArray, bounds: IntArray, recurs: BoolArray, known: list[IntArray]
) -> IntArray:
    """The stretches between waits that are the rest of one that recurs whole, begun by the stretch
    before: the host waited once in its middle, as for what a first kernel loads.
    """
    words = {word.tobytes() for word in known}
    alone = np.flatnonzero(~recurs[:-1] & ~recurs[1:])
    joined = [
        at + 1 for at in alone.tolist() if codes[bounds[at] : bounds[at + 2]].tobytes() in words
    ]
    return np.array(joined, np.int64)


def _parts_of_more(launches: LaunchedKernels, size: IntArray, expected: int) -> bool:
    """Whether the host waits several times within one inference, judged by the kernels that the
    engine should launch.
    """
    if len(size) < 4 or float(np.median(size)) > 0.7 * expected:
        return False
    steady = steady_period(launches.codes)
    return steady is not None and abs(steady[0] - expected) <= 0.25 * expected


def _blocks(
    launches: LaunchedKernels, starts: IntArray, size: IntArray, period: IntArray
) -> tuple[int, int] | None:
    """A period and how often it repeats between any two waits, if always as often and without a
    copy in between: blocks of a network.

    But for the first and the last stretch between waits, which may be cut (of three they count);
    and for set-up and warm-up before that, of fewer stretches, in which something else runs or as
    many blocks as several inferences have.
    """
    if len(size) < 3:
        return None
    last = len(size) - 2
    unit, often = int(period[last]), int(size[last] // period[last])
    alike = (period == unit) & (size == often * unit)
    begin = int(np.append(np.flatnonzero(~alike[: last + 1]), -1).max()) + 1
    before, run = np.arange(1, begin), last + 1 - begin
    if often == 1 or (len(before) and run < max(_LEAST_RUN, len(before))):
        return None
    known = before[period[before] == unit]
    if (size[known] // unit % often).any() or (last == 1 and not alike[period == unit].all()):
        return None
    again = starts[max(begin, 1)] + np.arange(1, often) * unit
    return None if (launches.copies[again] > 0).all() else (unit, often)


def _power(codes: IntArray, expected: int | None) -> int:
    """The length of the word whose repetition the sequence is (its own length where it is no
    repetition).
    """
    n = len(codes)
    period = _whole_period(codes)
    if period is None or n % period:
        return n
    fits = expected is None or abs(period - expected) <= abs(n - expected)
    return period if fits else n


def _split_by_unit(codes: IntArray, units: list[IntArray], *, from_end: bool) -> IntArray:
    """The positions at which a cut stretch of whole inferences and a part of one is to be
    divided.
    """
    n = len(codes)
    for unit in units:
        p = len(unit)
        count = n // p
        if count == 0:
            continue
        rest = n - count * p
        whole = codes[rest:] if from_end else codes[: count * p]
        part = codes[:rest] if from_end else codes[count * p :]
        if np.array_equal(whole, np.tile(unit, count)) and is_part(part, unit, front=not from_end):
            begins = np.arange(rest, n, p) if from_end else np.arange(0, n, p)
            return distinct(np.concatenate([[0], begins]))
    return np.zeros(1, np.int64)


def is_part(part: IntArray, full: IntArray, *, front: bool) -> bool:
    """Whether ``part`` is the beginning (or the end) of ``full``."""
    size = len(part)
    if size > len(full):
        return False
    return size == 0 or np.array_equal(part, full[:size] if front else full[len(full) - size :])


# --- by the sequence itself
# ------------------------------------------------------------------------------------------


def steady_period(codes: IntArray, gap_ns: IntArray | None = None) -> tuple[int, int] | None:
    """The smallest period of (nearly) the whole sequence, and from which kernel on it holds; None
    if nothing repeats.

    A network repeats its blocks inside one inference.  What tells them from inferences is that a
    period of the whole must hold to the very end, and that what comes before it must be like it, or
    it repeats many times: an embedding or a head is not.  A host that pauses once a period
    (``gap_ns``) makes up for that.
    """
    n = len(codes)
    whole = _whole_period(codes)
    if whole is not None:
        return whole, 0
    for period in candidates(codes):
        if period >= n:
            continue
        differs = np.flatnonzero(codes[period:] != codes[: n - period])
        before = int(differs[-1]) + 1 if len(differs) else 0
        pauses = gap_ns is not None and 2 * before < n and _pauses(gap_ns[before:], period)
        if pauses or _believable(codes, period, before):
            return period, before
    return None


def _whole_period(codes: IntArray) -> int | None:
    """The smallest period of all of the sequence, if it holds at least twice: its first half comes
    again after one period.
    """
    n = len(codes)
    if n < 2:
        return None
    halves = _windows(codes, n // 2)
    for period in (np.flatnonzero(halves[1:] == halves[0]) + 1)[:8].tolist():
        if 2 * period <= n and np.array_equal(codes[period:], codes[: n - period]):
            return int(period)
    return None


def _pauses(gap_ns: IntArray, period: int) -> bool:
    """Whether the host clearly pauses at one and the same place of each period."""
    count = len(gap_ns) // period
    if count < 3 or period < 2:
        return False
    usual: FloatArray = np.sort(np.median(gap_ns[: count * period].reshape(count, period), axis=0))
    return bool(usual[-1] > 0 and usual[-1] >= _PAUSE * usual[-2])


def _believable(codes: IntArray, period: int, before: int) -> bool:
    n = len(codes)
    steady = n - before
    if (
        steady < 2 * period
    ):  # seen less than twice: what is seen again must be long enough, and nothing may precede it
        return before == 0 and steady - period >= max(4, _BORDER * period)
    if before == 0:
        return True
    if 2 * steady < n:
        return False
    unit = codes[before : before + period]
    head = codes[:before]
    rest = head[~_covered(head, codes[before:], period)]
    if len(rest) == 0:
        return True
    if float(np.isin(rest, unit).mean()) >= _LIKE and _SIZE[0] * period <= before:
        return True
    return steady >= _MANY * period


def _covered(head: IntArray, steady: IntArray, period: int) -> BoolArray:
    """Marks the kernels of the head that lie in a repetition of the steady part's period, in any
    rotation.
    """
    covered = np.zeros(len(head), np.bool_)
    if len(head) < period:
        return covered
    rotations = np.unique(_windows(steady[: 2 * period], period))
    at = np.flatnonzero(np.isin(_windows(head, period), rotations))
    if len(at):
        steps = np.zeros(len(head) + 1, np.int64)
        np.add.at(steps, at, 1)
        np.add.at(steps, at + period, -1)
        covered = np.cumsum(steps[:-1]) > 0
    return covered


def candidates(codes: IntArray) -> Iterator[int]:
    """Distances at which rare runs of kernels come again, ascending: a period is among them; longer
    runs are asked only if need be.
    """
    seen: set[int] = set()
    for gram in _GRAMS:
        if 2 * gram > max(len(codes), 2):
            return
        fresh = {
            part for step in _distances(codes, gram) for part in (step, *_divisors(step))
        } - seen
        seen |= fresh
        yield from sorted(fresh)


def _distances(codes: IntArray, gram: int) -> set[int]:
    found: set[int] = set()
    if gram == 1:
        count = np.bincount(codes)
        order = np.argsort(codes.astype(np.uint16) if len(count) < 2**16 else codes, kind="stable")
    else:
        _, inverse, count = np.unique(
            _windows(codes, gram), return_inverse=True, return_counts=True
        )
        order = np.argsort(inverse, kind="stable")
    begin = np.concatenate([[0], np.cumsum(count)[:-1]])
    again = np.flatnonzero(count >= 2)
    if len(again) == 0:
        return found
    reach = order[begin[again] + count[again] - 1] - order[begin[again]]
    # a kernel of the warm-up alone says nothing about the rest
    wide = again[reach >= 0.4 * reach.max()]
    for which in wide[np.argsort(count[wide], kind="stable")][:_RARE].tolist():
        steps, often = np.unique(
            np.diff(order[begin[which] : begin[which] + count[which]]), return_counts=True
        )
        found.update(steps[np.argsort(-often, kind="stable")][:4].tolist())
        found.add(int(steps[-1]))
    return found


def _divisors(number: int) -> list[int]:
    return [number // prime for prime in (2, 3, 5, 7) if number % prime == 0]


def _by_period(launches: LaunchedKernels, expected: int | None) -> IntArray:
    """First kernels of the inferences, from the sequence alone; one inference where nothing
    repeats.
    """
    codes = launches.codes
    n = len(codes)
    steady = steady_period(codes, launches.gap_ns)
    if steady is None or (expected is not None and 3 * steady[0] < expected):
        marked = _by_marker(launches)
        if marked is None or (
            expected is not None and 3 * float(np.median(np.diff(marked))) < expected
        ):
            between = _between_others(launches) if expected is None else None
            return np.zeros(1, np.int64) if between is None else between
        return marked
    period, before = steady
    begins = turn_begins(launches, period, before)
    starts = np.concatenate([np.arange(first, n, period) for first in begins])
    head = int(min(begins))
    if head > _SIZE[1] * period:
        part = LaunchedKernels(
            codes[:head], launches.syncs[:head], launches.copies[:head], launches.gap_ns[:head]
        )
        return distinct(np.concatenate([_by_period(part, expected), starts]))
    return distinct(np.concatenate([[0], starts]))


def _between_others(launches: LaunchedKernels) -> IntArray | None:
    """First kernels of what repeats at least three times between kernels that come before and
    after it, if that is most of the sequence and the host asks for a copy at one and the same place
    of nearly every repetition: it does not between the blocks of one inference.
    """
    codes, n = launches.codes, len(launches.codes)
    for period in candidates(codes):
        if period < 2 or 3 * period > n:
            continue
        again = np.concatenate([[False], codes[period:] == codes[:-period], [False]])
        edges = np.flatnonzero(again[1:] != again[:-1])
        if not len(edges):
            continue
        begins, ends = edges[::2], edges[1::2]
        longest = int(np.argmax(ends - begins))
        first = int(begins[longest])
        count = int(ends[longest] - begins[longest]) // period + 1
        if count < 3 or count * period < _MOSTLY * n:
            continue
        block = slice(first, first + count * period)
        # before the first repetition lies what came before
        copied = (launches.copies[block].reshape(count, period)[1:] > 0).mean(axis=0)
        if copied.max() >= _EACH:
            end = first + count * period
            return distinct(np.concatenate([[0], np.arange(first, end, period), [min(end, n - 1)]]))
    return None


def turn_begins(launches: LaunchedKernels, period: int, before: int) -> list[int]:
    """The places in the steady part's period where inferences begin (one place, or two where two
    shapes take turns), first occurrence of each.
    """
    n = len(launches.codes)
    count = (n - before) // period
    whole = before == 0 and n % period == 0
    if count == 0:
        return [before]
    block = slice(before, before + count * period)
    # before the first kernel is nothing
    rows = np.arange(count) > 0 if before == 0 and count > 1 else np.ones(count, np.bool_)
    for counted in (launches.syncs, launches.copies):
        share = (counted[block].reshape(count, period)[rows] > 0).mean(axis=0)
        if share.max(initial=0.0) >= 0.5:
            return [
                before + int(at)
                for at in np.flatnonzero(share >= max(0.5, 0.8 * float(share.max())))
            ]
    gaps: FloatArray = np.median(launches.gap_ns[block].reshape(count, period)[rows], axis=0)
    order = np.argsort(-gaps, kind="stable")
    longest = float(gaps[order[0]])
    next_longest = float(gaps[order[1]]) if period > 1 else 0.0
    if longest > 0 and longest >= (_CLEAR if whole else _CONTRAST) * next_longest:
        return [before + int(order[0])]
    if before == 0:
        return [0]
    return [before + (n - before) % period]  # taken to end with a whole one


def _by_marker(launches: LaunchedKernels) -> IntArray | None:
    """First kernels of the inferences where several shapes take turns irregularly: they all run one
    kernel exactly once.
    """
    codes = launches.codes
    n = len(codes)
    count = np.bincount(codes)
    rare = np.flatnonzero(count >= 3)
    for marker in rare[np.argsort(count[rare], kind="stable")][:_RARE].tolist():
        places = np.flatnonzero(codes == marker)
        lead = int(places[0])
        if lead and not all(
            np.array_equal(codes[at - lead : at], codes[:lead]) for at in places.tolist()
        ):
            continue
        starts = places - lead
        if (np.diff(starts) <= lead).any():
            continue
        word, first, often = _words(codes, starts)
        ends = np.append(starts[1:], n)
        last = codes[starts[-1] :]
        tail = often[word[-1]] >= 2 or any(
            is_part(last, codes[starts[f] : ends[f]], front=True)
            for f in first.tolist()
            if starts[f] != starts[-1]
        )
        inner = word[:-1]
        seen = np.bincount(inner, minlength=len(first))
        if tail and int((ends - starts)[:-1][seen[inner] >= 2].sum()) >= 0.75 * (
            starts[-1] - starts[0]
        ):
            return starts
    return None


def is_like(codes: IntArray, usual: IntArray) -> bool:
    """Whether an odd inference is like the usual one: of similar length, with many of the same
    kernels.
    """
    near = _SIZE[0] * len(usual) <= len(codes) <= _SIZE[1] * len(usual)
    return near and float(np.isin(codes, usual).mean()) >= _LIKE


def are_like(
    codes: IntArray | CodeArray, first: IntArray, end: IntArray, usual: IntArray | CodeArray
) -> BoolArray:
    """The same for each of these stretches of the codes, none of them empty: there may be as many
    as kernels.
    """
    size = end - first
    common = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(np.isin(codes, usual), out=common[1:])
    held = common[end]
    held -= common[first]
    near = (_SIZE[0] * len(usual) <= size) & (size <= _SIZE[1] * len(usual))
    result: BoolArray = near & (held / size >= _LIKE)
    return result


# --- words
# --------------------------------------------------------------------------------------------------


def _windows(codes: IntArray, size: int) -> Hashes:
    """A hash of each window of that many kernels, one per place where one fits."""
    n = len(codes)
    mix = np.random.default_rng(20260102)  # a fixed seed: results must not differ from run to run
    value = mix.integers(1, 2**63, int(codes.max(initial=0)) + 1, np.uint64)
    base = np.uint64(0x9E3779B97F4A7C15)
    inverse = np.uint64(pow(int(base), -1, 2**64))
    with np.errstate(over="ignore"):
        total = np.zeros(n + 1, np.uint64)
        np.take(value, codes, out=total[1:])
        total[1:] *= _powers(base, n)
        np.cumsum(total[1:], out=total[1:])
        result: Hashes = total[size:] - total[: n - size + 1]
        del total
        result *= _powers(inverse, len(result))
    return result


def _powers(base: np.uint64, count: int) -> Hashes:
    """The powers of a number, from the one with exponent 0 on."""
    powers = np.full(count, base)
    powers[:1] = 1
    np.cumprod(powers, out=powers)
    return powers


def _words(codes: IntArray, starts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Numbers the words between starts: of each stretch, by first appearance; of each word its
    first stretch, and how often it comes.
    """
    n = len(codes)
    size = np.append(starts[1:], n) - starts
    place = np.arange(starts[0], n) - np.repeat(starts, size)
    mix = np.random.default_rng(20260103)
    value = mix.integers(1, 2**63, int(codes.max(initial=0)) + 1, np.uint64)
    odd = mix.integers(1, 2**63, int(size.max()), np.uint64) | np.uint64(1)
    sums = np.add.reduceat(value[codes[starts[0] :]] * odd[place], starts - starts[0])
    words, number = np.unique(sums, return_inverse=True)
    number, first = in_first_order(number.reshape(-1), len(words))
    return number, first, np.bincount(number)


def _pieces(launches: LaunchedKernels, starts: IntArray) -> SequenceInferences:
    """The inferences that begin at these kernels, with cut ones distinguished from those that are
    merely different.
    """
    codes = launches.codes
    n = len(codes)
    word, first, count = _words(codes, starts)
    ends = np.append(starts[1:], n)
    size = ends - starts
    offset = np.zeros(len(starts), np.int64)
    complete = np.ones(len(starts), np.bool_)
    shape = word.copy()
    usual = [
        w for w in np.argsort(-count, kind="stable").tolist() if count[w] >= 2 or len(starts) <= 3
    ][:_KNOWN]
    none = np.zeros(len(starts), np.bool_)
    for at, front in ((0, False), (len(starts) - 1, True)):
        if len(starts) == 1 or count[word[at]] >= 2:
            continue
        part = codes[starts[at] : ends[at]]
        for w in usual:
            full = codes[starts[first[w]] : ends[first[w]]]
            if w != word[at] and len(part) < len(full) and is_part(part, full, front=front):
                shape[at], complete[at] = w, False
                offset[at] = 0 if front else len(full) - len(part)
                break
        else:
            others = [w for w in usual if w != word[at]]
            if others:
                typical = int(size[first[others[0]]])
                near = np.isin(
                    part, codes[starts[first[others[0]]] : ends[first[others[0]]]]
                ).mean()
                # something else that ran before or after
                none[at] = count[others[0]] >= 2 and len(part) < _SIZE[0] * typical and near < _LIKE
                complete[at] = not (front and len(part) < typical and near >= _LIKE)
    _, shape = np.unique(shape, return_inverse=True)
    kept = np.flatnonzero(~none)
    number = np.full(len(starts), -1, np.int64)
    number[kept] = np.arange(len(kept))
    inference = np.full(n, -1, np.int64)
    inference[starts[0] :] = np.repeat(number, size)
    return SequenceInferences(
        inference,
        starts[kept],
        size[kept],
        shape[kept].astype(np.int64),
        offset[kept],
        complete[kept],
    )
