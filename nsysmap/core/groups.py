"""Distinct values and groups of large integer columns, without sorting if there are few distinct
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.memory import in_pieces
from nsysmap.core.table import BoolArray, CodeArray, IntArray, uniform

_FEW = 16  # distinct values: for more of them sorting is faster than comparing with each
_HEAD = 4096  # first rows, which usually contain all values of a column with few
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers over 64 bits (Fibonacci hashing)
_MAX_WORDS = 8  # longer texts are few, or each is another
_MARKS = 16_000_000  # bytes that marking the used rows may always take


def distinct(values: IntArray) -> IntArray:
    """The distinct values, ascending; fast if they are few, which the first rows show."""
    if uniform(values):
        return np.array(values[:1])
    known = _distinct(values[:_HEAD])
    if len(known) > _FEW or len(values) <= _HEAD:
        return known if len(values) <= _HEAD else _distinct(values)
    unknown = np.ones(len(values), np.bool_)
    for value in known.tolist():
        unknown &= values != value
    return _distinct(np.concatenate([known, values[unknown]])) if unknown.any() else known


def _distinct(values: IntArray) -> IntArray:
    """The distinct values, found by sorting; np.unique would import numpy.ma."""
    ordered = np.sort(values)
    result: IntArray = ordered[
        np.concatenate([ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]])
    ]
    return result.astype(np.int64, copy=False)


def distinct_rows(rows: IntArray, size: int) -> IntArray:
    """The distinct row numbers among ``rows``, ascending, negative ones (MISSING) left out; all are
    below ``size``.
    """
    if size > _MARKS + 8 * len(rows):
        return distinct(rows[rows >= 0])
    used = np.zeros(size, np.bool_)
    used[rows[rows >= 0]] = True
    return np.flatnonzero(used)


def rows_by_value(values: IntArray) -> list[tuple[int, IntArray]]:
    """For each distinct value, ascending, its rows, ascending."""
    different = distinct(values)
    if len(different) == 1:
        return [(int(different[0]), np.arange(len(values)))]
    if len(different) <= _FEW:
        return [(value, np.flatnonzero(values == value)) for value in different.tolist()]
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values[order], different)
    return list(zip(different.tolist(), np.split(order, first[1:]), strict=True))


def rows_of_values(values: IntArray, rows: IntArray) -> list[tuple[int, IntArray]]:
    """For each distinct value, ascending, those of ``rows`` that have it (``values`` are these
    rows' own); ``rows`` themselves, not copied, where all have the same.
    """
    if len(different := distinct(values)) == 1:
        return [(int(different[0]), rows)]
    return [(value, rows[places]) for value, places in rows_by_value(values)]


def first_rows(values: IntArray | CodeArray) -> IntArray:
    """The first row of each distinct value, by value; of some hundred thousand rows at a time."""
    if uniform(values):
        return np.zeros(1, np.int64)
    first: dict[int, int] = {}
    for rows, held in in_pieces(values):  # type: ignore[arg-type]  # any integers
        found, at = np.unique(held, return_index=True)
        for value, row in zip(found.tolist(), rows[at].tolist(), strict=True):
            first.setdefault(value, row)
    return np.array([first[value] for value in sorted(first)], np.int64)


def sorted_order(*keys: IntArray) -> IntArray:
    """The stable order that sorts by the first key, then the second, …; fast if the rows are
    already in order of all keys, or of all but the first.
    """
    if is_sorted(*keys):
        return np.arange(len(keys[0]))
    if is_sorted(*keys[1:]):
        return np.argsort(keys[0], kind="stable")
    return np.lexsort(keys[::-1])


def is_sorted(*keys: IntArray) -> bool:
    """Whether the rows are in order of the first key, then the second, …"""
    if len(keys[0]) == 0:
        return True
    undecided = np.ones(len(keys[0]) - 1, np.bool_)
    for key in (key for key in keys if not uniform(key)):
        before, after = key[:-1], key[1:]
        if (undecided & (before > after)).any():
            return False
        undecided &= before == after
        if not undecided.any():
            return True
    return True


def runs(values: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The runs of equal neighbours: value, first position and length of each (of a sorted column:
    its groups).
    """
    if len(values) == 0:
        return values, np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[first], first, np.diff(np.append(first, len(values)))


def counts(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values (none negative), ascending, and their counts."""
    if int(values.max(initial=0)) > _MARKS + 8 * len(values):
        value, _, size = runs(np.sort(values))
        return value, size
    size = np.bincount(values)
    value = np.flatnonzero(size)
    return value, size[value]


def sorted_in_groups(group: IntArray, values: IntArray) -> IntArray:
    """The values sorted by group (none negative), then by value."""
    least = int(values.min(initial=0))
    span = int(values.max(initial=0)) - least + 1
    if (int(group.max(initial=0)) + 1) * span >= 2**62:
        return values[np.lexsort((values, group))]
    # one number per pair: sorting these takes a tenth of lexsort's time
    both = group * span + (values - least)
    both.sort()
    result: IntArray = both % span + least
    return result


def _like_rows(size: IntArray, words: Sequence[NDArray[np.uint64]], whole: BoolArray) -> IntArray:
    """For each row a representative of the rows with the same words and size, so that few rows need
    individual work.

    A row that is not ``whole`` has more than these words, and represents itself.
    """
    mixed = size.astype(np.uint64)
    for word in words:
        mixed = (mixed ^ word) * _MIX
    last = np.empty(1 << 16, np.int64)
    slot = mixed >> np.uint64(48)
    own = np.arange(len(size))
    last[slot] = own
    other = last[slot]
    same = (size == size[other]) & whole
    for word in words:
        same &= word == word[other]
    return np.where(same, other, own)


def numbered(*columns: IntArray) -> tuple[tuple[IntArray, ...], IntArray]:
    """The distinct combinations of the columns (few, in ascending order), and for each row the
    number of its combination.
    """
    first, number = numbered_in_turn(columns)
    return tuple(column[first] for column in columns), number


def numbered_in_turn(columns: Iterable[IntArray]) -> tuple[IntArray, IntArray]:
    """The first row of each of these combinations, and the number of each row's; needs one column
    at a time.
    """
    number: IntArray | None = None
    rows = 0
    for column in columns:
        rows = len(column)
        values = distinct(column)
        if len(values) <= 1:
            continue
        place = _places(values, column)
        if number is None:
            number = place
        else:
            number = number * len(values) + place
            number = _places(distinct(number), number)
    if number is None:
        number = np.zeros(rows, np.int64)
    count = int(number.max(initial=-1)) + 1
    if count <= _FEW:
        return np.array([np.argmax(number == one) for one in range(count)], np.int64), number
    first = np.empty(count, np.int64)
    # the first row of a number is written last
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return first, number


def in_first_order(number: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """The numbers (0 to count - 1, all of them used) given anew in the order in which they appear,
    and for each new one its first row.
    """
    first = np.empty(count, np.int64)
    # the first row of a number is written last
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    order = np.argsort(first)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return rank[number], first[order]


def by_first_row(*columns: IntArray) -> IntArray:
    """A number for each combination of values, in order of first appearance."""
    distinct, number = numbered(*columns)
    return in_first_order(number, len(distinct[0]))[0]


def _places(values: IntArray, column: IntArray) -> IntArray:
    """For each row of the column the index of its value among the distinct values in ascending
    order.
    """
    if len(values) > _FEW:
        return np.searchsorted(values, column)
    place = np.zeros(len(column), np.int64)
    for value in values[1:].tolist():
        place += column >= value
    return place


def scattered(count: int, salt: int) -> NDArray[np.uint64]:
    """``count`` numbers spread over 64 bits, the same ones for the same ``salt`` (SplitMix64 with
    its constants); np.random would be slow to import.
    """
    number = np.arange(salt, salt + count, dtype=np.uint64) * _MIX
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def like_texts(words: NDArray[Any], first: IntArray, size: IntArray) -> IntArray:
    """For each of these texts a representative with the same value, so that few need to be looked
    at one by one.

    Text i has ``size[i]`` bytes from position ``first[i]`` on; ``words`` are the 8 bytes from every
    position on, as big-endian numbers.
    """
    longest = min(int(size.max(initial=0)), _MAX_WORDS * 8)
    # bits of a word that are not in the text, if that is shorter
    before = np.maximum(64 - 8 * size, 0)
    held = []
    for offset in range(0, longest, 8):
        # the text's last 8 bytes, when it is at its end
        word = words[first + np.minimum(offset, size - 8)].astype(np.int64)
        word <<= before
        held.append(word.view(np.uint64))
    return _like_rows(size, held, size <= longest)
