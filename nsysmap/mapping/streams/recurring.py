"""Finds what recurs in a stream of kernels: what the runs of an engine usually launch in each
layer, and sequences that belong to no engine.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from nsysmap.core.groups import runs as groups
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.inputs.engine.model import Layer
from nsysmap.mapping.order.scores import ANY_NUMBER, Scores
from nsysmap.mapping.streams.stream_alignment import Runs, Track

# --- what the runs of an engine usually launch
# ----------------------------------------------------------------------

_READ = 40  # runs that it is learnt from
_USUALLY = 0.5  # share of the runs that have a kernel, for it to be one of the layer's own
# of the log of a kernel's time: more says nothing, less is not believed
_STEADY, _LEAST_SPREAD = (
    0.5,
    0.1,
)
_ENOUGH = 4  # values that a usual one can be told from
# share of a kernel's runs with its most frequent grid; with one that is not its own
_VARIES, _OTHER_GRID = (
    0.5,
    0.3,
)
# that so many runs lack a kernel which all of them launch: else it comes and goes
_CHANCE, _CHANCE_AT_END = (
    1e-3,
    1e-2,
)
# share of the runs, and runs, that lack a block of kernels, for it to be one that comes and goes
_BLOCK_RUNS, _BLOCK_RUNS_LEAST = (
    0.15,
    3,
)
# share of a kind's kernels that another one has, with so many more, mostly in one place: it is that
# one among others
_PART, _BLOCK = 0.8, 3
_GRID_ONLY = 0.25  # what a kernel counts that differs in its grid only
# share of a known sequence that is there, and of its place that it fills, for it to be that
# sequence
_WHOLE = 0.9
_PART_RUNS = 0.1  # … if it has many runs for each of the other's
# nats for how often a kernel is in a slot: slope, the share that says nothing, least, most
_PRESENCE = (
    1.5,
    0.25,
    -2.5,
    2.0,
)
# nats for a kernel in its usual place: besides what its name says, and at least
_USUAL, _USUAL_LEAST = (
    2.0,
    3.0,
)
# … for one of that name, for one like it, for any other
_SAME_NAME, _SAME_WORK, _ELSE = (
    0.5,
    -1.5,
    -6.0,
)
# one more kernel, where there never was; in an opaque layer that is the first or the last
_NEVER_SEEN, _AT_AN_END = (
    -3.0,
    -8.0,
)
_MISSING_IN_BLOCK = 0.03  # … at least, where one asks whether many in a row are missing by chance
_MISSING = (0.01, 0.5)  # probability that a kernel is missing, at least and at most
_EMPTY = -0.3  # nats at least for a layer without a kernel that mostly has none


@dataclass(frozen=True)
class Usual:
    """What the runs of one engine usually launch; one entry per kernel, in order."""

    name: IntArray  # of the kernel, as numbered in Scores
    row: IntArray  # the distinct kernel that it mostly is
    slot: IntArray  # of the engine's layers in their order
    share: FloatArray  # of the runs that launched it
    value: FloatArray  # what is measured of it, nan if that differs from run to run
    spread: FloatArray
    near: FloatArray  # distinct kernels x entries: share of the runs that launched that one there
    # share of the runs that lack it and all those beside it, so many that they do not by chance
    missed: FloatArray
    often: FloatArray  # distinct kernels x slots: as of `how_often`
    runs: int  # that it was learnt from

    def without(self, left: BoolArray) -> Usual:
        """A copy without some of its kernels, which are then not taken as part of the layer."""
        often = self.often.copy()
        for name, slot in zip(self.name[left].tolist(), self.slot[left].tolist(), strict=True):
            often[self.near[:, (self.name == name) & (self.slot == slot)].any(axis=1), slot] = 0.0
        at = np.flatnonzero(~left)
        columns = (
            self.name[at],
            self.row[at],
            self.slot[at],
            self.share[at],
            self.value[at],
            self.spread[at],
        )
        return Usual(*columns, self.near[:, at], self.missed[at], often, self.runs)


def habit(often: FloatArray) -> FloatArray:
    """Nats for the share of the runs in which a kernel is in a slot."""
    slope, neutral, least, most = _PRESENCE
    nats: FloatArray = np.clip(slope * np.log((often + 0.03) / neutral), least, most)
    return nats


def how_often(
    run: IntArray, row: IntArray, slot: IntArray, name: IntArray, slots: int, runs: int
) -> FloatArray:
    """The share of the runs with each distinct kernel in each slot; kernels of one name count
    together if their grid differs between runs.

    ``run``, ``row`` and ``slot`` are the run, the distinct kernel and the slot of each item.
    """
    exact, together = np.zeros((len(name), slots)), np.zeros((int(name.max(initial=0)) + 1, slots))
    for table, which in ((exact, row), (together, name[row])):
        _, at, on = np.unique(np.stack([run, which, slot]), axis=1)
        np.add.at(table, (at, on), 1.0 / runs)
    most = np.zeros(together.shape)
    np.maximum.at(most, name, exact)
    own = (most < _VARIES * together)[name] | (exact >= _OTHER_GRID * together[name])
    share: FloatArray = np.where(own, together[name], exact)
    return share


def usual_kernels(
    row: IntArray,
    value: FloatArray | None,
    runs: Runs,
    members: Sequence[int],
    scores: Scores,
    layers: Sequence[Layer],
) -> Usual:
    """What those runs of a stream usually launch in each slot. ``row`` is the distinct item of each
    item, ``value`` its value.

    A layer runs the same kernels in every inference: what fewer than half the runs have in a slot
    is not the layer's.  A kernel that was put in no slot, but is launched beside an opaque layer's
    again and again, is that layer's.
    """
    any_number = np.array([layer.kind in ANY_NUMBER for layer in layers], np.bool_)
    some = [
        members[at]
        for at in (
            np.linspace(0, len(members) - 1, min(len(members), _READ)).astype(np.int64).tolist()
        )
    ]
    cells: dict[int, list[IntArray]] = defaultdict(list)
    seen: list[IntArray] = []
    for number, run in enumerate(some):
        items = np.arange(int(runs.first[run]), int(runs.last[run]) + 1)
        slots = _beside(runs.slot[items], any_number)
        items, slots = items[slots >= 0], slots[slots >= 0]
        seen.append(np.stack([np.full(len(items), number), row[items], slots]))
        for slot, first, size in zip(*(column.tolist() for column in groups(slots)), strict=True):
            cells[slot].append(items[first : first + size])
    columns: list[tuple[int, int, float, float, float]] = []
    near: list[FloatArray] = []
    had: list[IntArray] = []
    run_of = np.full(len(row), -1, np.int64)
    for number, run in enumerate(some):
        run_of[int(runs.first[run]) : int(runs.last[run]) + 1] = number
    for slot in sorted(cells):
        sequences = [tuple(scores.name[row[piece]].tolist()) for piece in cells[slot]]
        own = common_sequence([*sequences, *[()] * (len(some) - len(sequences))])
        found: list[list[int]] = [[] for _ in own]
        for sequence, piece in zip(sequences, cells[slot], strict=True):
            for mine, theirs in common_places(own, sequence):
                found[mine].append(int(piece[theirs]))
        for name, there in zip(own, found, strict=True):
            columns.append((name, slot, len(there) / len(some), *usual_value(value, there)))
            near.append(np.bincount(row[there], minlength=len(scores.name)) / len(some))
            had.append(np.bincount(run_of[there], minlength=len(some)))
    table = np.array(columns, np.float64).reshape(-1, 5)
    shares = np.array(near, np.float64).reshape(-1, len(scores.name)).T
    run, kernel, place = np.concatenate(seen, axis=1)
    often = how_often(run, kernel, place, scores.name, scores.match.shape[1], len(some))
    which = shares.argmax(axis=0) if shares.size else np.zeros(0, np.int64)
    whole = table[:, :2].astype(np.int64)
    missed = _missed_together(np.array(had, np.int64).reshape(-1, len(some)) > 0, table[:, 2])
    return Usual(
        whole[:, 0],
        which,
        whole[:, 1],
        table[:, 2],
        table[:, 3],
        table[:, 4],
        shares,
        missed,
        often,
        len(some),
    )


def _beside(slots: IntArray, any_number: BoolArray) -> IntArray:
    """The slots of a run's items, with items in no slot put into the slot before or behind them if
    that may run any number of kernels.
    """
    at = np.arange(len(slots))
    before = slots[np.maximum.accumulate(np.where(slots >= 0, at, 0))]
    behind = slots[np.minimum.accumulate(np.where(slots >= 0, at, len(at) - 1)[::-1])[::-1]]
    beside: IntArray = np.where(
        any_number[before], before, np.where(any_number[behind], behind, -1)
    )
    return np.where(slots >= 0, slots, beside)


def _missed_together(had: BoolArray, share: FloatArray) -> FloatArray:
    """For each kernel and run: the share of the runs that lack the kernel within a row of missing
    ones too long to be chance (kernels x runs).
    """
    kernels, count = had.shape
    if not had.size:
        return np.zeros(kernels)
    rate = max(missing_rate(share[share >= np.median(share)]), _MISSING_IN_BLOCK)
    least = math.ceil(math.log(_CHANCE / (kernels * count)) / math.log(rate))
    missed = np.zeros(kernels)
    for column in had.T:
        lacks, first, size = groups(column.astype(np.int64))
        for value, begin, length in zip(lacks.tolist(), first.tolist(), size.tolist(), strict=True):
            if not value and length >= max(least, _BLOCK):
                missed[begin : begin + length] += 1.0 / count
    return missed


def usual_value(value: FloatArray | None, items: Sequence[int] | IntArray) -> tuple[float, float]:
    """The usual value of these items and its spread; NaN if they have no values, are too few, or
    differ too much.
    """
    if value is None or len(items) < _ENOUGH:
        return np.nan, 1.0
    values = value[np.asarray(items, np.int64)]
    middle = float(np.median(values))
    off = 1.5 * float(np.median(np.abs(values - middle)))
    return (middle, max(off, _LEAST_SPREAD)) if off <= _STEADY else (np.nan, 1.0)


def missing_rate(share: FloatArray) -> float:
    """How likely a kernel that all runs launch is missing from the trace, from the shares of the
    runs that contain each kernel.
    """
    common = share[share > _USUALLY]
    return float(np.clip(1.0 - common.mean(), *_MISSING)) if len(common) else _MISSING[0]


def least_share(rate: float, runs: int, chance: float = _CHANCE) -> float:
    """The share of the runs that must contain a kernel, apart from chance, if all runs launch it
    and kernels are lost at that rate.
    """
    missed = np.arange(runs + 1)
    exactly = (
        np.array([math.comb(runs, at) for at in missed], np.float64)
        * rate**missed
        * (1.0 - rate) ** (runs - missed)
    )
    unlikely = np.flatnonzero(np.cumsum(exactly[::-1])[::-1] < chance)
    return 1.0 - (float(unlikely[0]) - 0.5) / runs if len(unlikely) else 0.0


def steady(usual: Usual, layers: Sequence[Layer]) -> Usual:
    """A copy without what varies: blocks of kernels in opaque layers, and kernels before and behind
    those that all runs share.
    """
    any_number = opaque(usual, layers)
    block = (usual.missed >= _BLOCK_RUNS) & (
        np.round(usual.missed * usual.runs) >= _BLOCK_RUNS_LEAST
    )
    rate = missing_rate(usual.share[~block])
    solid = (usual.share >= least_share(rate, usual.runs, _CHANCE_AT_END)) & ~block
    where = np.flatnonzero(solid)
    if not len(where) or solid.all():
        return usual
    at = np.arange(len(solid))
    return usual.without(~solid & ((at < where[0]) | (at > where[-1]) | (block & any_number)))


def opaque(usual: Usual, layers: Sequence[Layer]) -> BoolArray:
    """Marks the kernels in a layer that may run any number of them."""
    return np.array([layer.kind in ANY_NUMBER for layer in layers], np.bool_)[usual.slot]


def is_part(less: Usual, runs: int, more: Usual, other_runs: int, layers: Sequence[Layer]) -> bool:
    """Whether a kind with that many runs is another kind with foreign kernels inserted in one
    place, within an opaque layer.
    """
    if runs < _PART_RUNS * other_runs or len(less.name) + _BLOCK > len(more.name):
        return False
    places = common_places(less.name.tolist(), more.name.tolist())
    if len(places) < _PART * len(less.name):
        return False
    added = np.setdiff1d(np.arange(len(more.name)), [at for _, at in places])
    first, last = (
        int(np.quantile(added, share, method="nearest")) for share in (1.0 - _PART, _PART)
    )
    here = added[(added >= first) & (added <= last)]
    return (
        len(here) >= _PART * (last + 1 - first)
        and float(opaque(more, layers)[here].mean()) >= _PART
    )


def is_but_for_a_block(shorter: IntArray, longer: IntArray) -> bool:
    """Whether two sequences are equal apart from one block of kernels."""
    size = len(shorter)
    if size + _BLOCK > len(longer):
        return False
    front = int(np.append(shorter != longer[:size], True).argmax())
    back = int(np.append((shorter != longer[-size:])[::-1], True).argmax())
    return front + back >= size


def usual_track(scores: Scores, layers: Sequence[Layer], usual: Usual) -> Track:
    """A track with a slot for each kernel that runs usually launch, and one for each layer that
    mostly launches none.
    """
    empty = np.setdiff1d(np.arange(len(layers)), usual.slot)
    order = np.argsort(np.concatenate([usual.slot, empty]), kind="stable")
    whole = np.concatenate([usual.slot, empty])[order]
    taken = np.concatenate([np.ones(len(usual.slot), np.bool_), np.zeros(len(empty), np.bool_)])[
        order
    ]
    by_name = scores.name[:, None] == usual.name[None, :]
    by_work = (scores.like[:, None] == scores.like[usual.row][None, :]) & ~scores.foreign[:, None]
    own = by_name & (
        (usual.near.max(axis=0) < _VARIES * usual.share) | (usual.near >= _OTHER_GRID * usual.share)
    )
    often = usual.often.copy()
    for slot in np.unique(
        usual.slot
    ).tolist():  # a layer's usual kernels are that in their own places only
        often[by_name[:, usual.slot == slot].any(axis=1), slot] = 0.0
    # what comes at no fixed place is not the layer's
    often = np.where(scores.foreign[:, None], 0.0, often)[:, whole]
    at = np.flatnonzero(taken)
    told = np.where(by_name, _SAME_NAME, np.where(by_work, _SAME_WORK, _ELSE))
    added = habit(often)
    added[:, at] = np.where(often[:, at] > 0, np.maximum(added[:, at], told), told)
    match = scores.match[:, whole] + added
    match[:, at] = np.where(
        own, np.maximum(scores.match[:, usual.slot] + _USUAL, _USUAL_LEAST), match[:, at]
    )
    more = scores.more[:, whole]
    more = np.where(often > 0, more, np.minimum(more, 0.0) + _NEVER_SEEN)
    ends = [slot for slot in (usual.slot[0], usual.slot[-1]) if layers[slot].kind in ANY_NUMBER]
    more = np.where(np.isin(whole, ends)[None, :], np.minimum(more, _AT_AN_END), more)
    skip = np.maximum(scores.skip[whole], _EMPTY)
    rate = missing_rate(usual.share)
    solid = usual.share >= least_share(rate, usual.runs)
    skip[at] = np.log(np.where(solid, rate, np.clip(1.0 - usual.share, *_MISSING)))
    value, spread = np.full(len(whole), np.nan), np.ones(len(whole))
    value[at], spread[at] = usual.value, usual.spread
    return Track(match, more, skip, usual=value, spread=spread, whole=whole)


def neighbours(
    row: IntArray,
    runs: Runs,
    kind: IntArray,
    kinds: int,
    *,
    overlooked: BoolArray,
    explained: BoolArray,
) -> list[Counter[tuple[int, int]]]:
    """For each kind of runs: how often each distinct unexplained item stands next to one, as (-1
    before or 1 behind, item).

    ``row`` says of each item in order which distinct one it is, ``overlooked`` of each distinct one
    whether it is, and ``explained`` of each item.
    """
    found: list[Counter[tuple[int, int]]] = [Counter() for _ in range(kinds)]
    for at, first, last in zip(kind.tolist(), runs.first.tolist(), runs.last.tolist(), strict=True):
        if at < 0:  # of no engine
            continue
        for side, end in ((-1, first), (1, last)):
            place = end + side
            while 0 <= place < len(row) and overlooked[row[place]]:
                place += side
            if 0 <= place < len(row) and not explained[place]:
                found[at][side, int(row[place])] += 1
    return found


Signature = tuple[tuple[int, ...], ...]  # for each slot its kernels, and those in none behind it


def distance(signature: Signature, usual: Signature, name: Sequence[int], *, cut: bool) -> float:
    """The share of the usual kernels in which a run differs, not counting one of them; for a cut
    run, within the part it reached.

    ``name``: the number of each distinct kernel's name.  One that differs in its grid only counts
    for less.
    """
    differs, counted = 0.0, 0
    used = [at for at in range(0, len(signature), 2) if signature[at]]
    low, high = (used[0], used[-1] + 1) if cut and used else (0, len(signature))
    for at in range(low, high):
        mine, theirs = signature[at], usual[at]
        counted += len(theirs)
        if mine != theirs:
            exact = _differing(mine, theirs)
            named = _differing([name[row] for row in mine], [name[row] for row in theirs])
            differs += named + _GRID_ONLY * max(exact - named, 0)
    return max(differs - 1.0, 0.0) / max(counted, 1)


def _differing(mine: Sequence[int], theirs: Sequence[int]) -> int:
    ours, others = Counter(mine), Counter(theirs)
    return max(sum((ours - others).values()), sum((others - ours).values()))


def in_slots(signature: Signature) -> list[tuple[int, int]]:
    """The kernels that are in slots, with their slots."""
    return [(row, at // 2) for at in range(0, len(signature), 2) for row in signature[at]]


def within(items: Sequence[int], known: Sequence[tuple[int, int]]) -> IntArray | None:
    """The slots of the items in which a known sequence (item and slot) stands nearly complete and
    in one place; None if it does not.
    """
    places = common_places([item for item, _ in known], items)
    if len(places) < _WHOLE * len(known) or places[-1][1] + 1 - places[0][1] > len(known) / _WHOLE:
        return None
    slots = np.full(len(items), -1, np.int64)
    for mine, theirs in places:
        slots[theirs] = known[mine][1]
    return slots


def common_sequence(sequences: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """What more than half of the sequences share, in common order; single sequences may lack items
    or hold extra ones.
    """
    filled = [sequence for sequence in sequences if sequence]
    if len(filled) <= _USUALLY * len(sequences):
        return ()
    counted = Counter(filled)
    likeliest, often = counted.most_common(1)[0]
    if often > _USUALLY * len(sequences):
        return likeliest
    middle = sorted(counted, key=len)[len(counted) // 2]
    seed = likeliest if len(likeliest) >= len(middle) else middle
    share = [0] * len(seed)
    between: list[list[tuple[int, ...]]] = [[] for _ in range(len(seed) + 1)]
    for sequence in filled:
        mine = theirs = 0
        for place, other in [*common_places(seed, sequence), (len(seed), len(sequence))]:
            between[mine].append(sequence[theirs:other])
            if place < len(seed):
                share[place] += 1
            mine, theirs = place + 1, other + 1
    result: list[int] = []
    for place, added in enumerate(between):
        if sum(bool(one) for one in added) > _USUALLY * len(sequences):
            result += common_sequence([*added, *[()] * (len(sequences) - len(added))])
        if place < len(seed) and share[place] > _USUALLY * len(sequences):
            result.append(seed[place])
    return tuple(result)


def common_places(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """The positions in both sequences of their longest common subsequence."""
    if tuple(one) == tuple(other):
        return [(at, at) for at in range(len(one))]
    left, right = np.array(one, np.int64), np.array(other, np.int64)
    length = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for at in range(len(left)):
        longer = np.where(right == left[at], length[at, :-1] + 1, length[at, 1:])
        length[at + 1, 1:] = np.maximum.accumulate(longer)
    places = []
    mine, theirs = len(left), len(right)
    while mine and theirs:
        if left[mine - 1] == right[theirs - 1]:
            mine, theirs = mine - 1, theirs - 1
            places.append((mine, theirs))
        elif length[mine - 1, theirs] >= length[mine, theirs - 1]:
            mine -= 1
        else:
            theirs -= 1
    return places[::-1]


# --- sequences that are no engine's
# ---------------------------------------------------------------------------------

_RECURS = 3  # times
_SHORTEST, _LONGEST = 5, 1000  # kernels
_MOST_SEQUENCES = 8  # sequences, those that most kernels are in
_INSIDE = 0.1  # share of the kernels that may be in inferences
_THE_SAME, _ANOTHER, _MISSED = 5.0, -30.0, -6.0  # nats of such a sequence's track


def other_tracks(row: IntArray, pauses: BoolArray, inside: BoolArray) -> tuple[Track, ...]:
    """Builds a track for each of these sequences.

    One entry per kernel: which of the distinct ones it is, whether the host paused before it,
      whether it is in an inference that was found.
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
        if len(at) >= _RECURS
        and np.mean([inside[begin : begin + len(piece)].mean() for begin in at]) <= _INSIDE
    ]
    often.sort(key=lambda one: (-len(one[0]) * len(one[1]), one[0]))
    return tuple(
        _track(np.array(piece), int(row.max()) + 1) for piece, _ in often[:_MOST_SEQUENCES]
    )


def _track(piece: IntArray, distinct: int) -> Track:
    match: FloatArray = np.full((distinct, len(piece)), _ANOTHER)
    match[piece, np.arange(len(piece))] = _THE_SAME
    return Track(match, np.full(match.shape, _ANOTHER), np.full(len(piece), _MISSED))
