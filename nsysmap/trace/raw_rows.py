"""Raw rows of nsys's tables: strings looked up by id, process ids unpacked, rows with impossible
times left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import (
    MISSING,
    BoolArray,
    CodeArray,
    IntArray,
    Text,
    mapped,
    packed,
    taken,
    uniform,
)
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.trace.model import Dropped

_PROCESS_MASK = ~0xFFFFFF  # globalTid = hw 8 | vm 8 | pid 24 | tid 24 bits; globalPid has tid 0


LONGEST_SESSION_NS = 10**16  # 115 days
_FURTHEST_NS = 2**62  # from 0: differences of times stay within 64 bits


@dataclass(frozen=True)
class Strings:
    """StringIds: id → text, as codes into distinct values."""

    ids: IntArray  # sorted; empty where ids are dense, and index code_of_id themselves
    code_of_id: CodeArray  # -1 where there is no such id
    values: tuple[str, ...]

    @staticmethod
    def read(tables: NsysTables) -> Strings:
        """All strings of the file; ids may be sparse, as they are in exports cut down to a few
        rows.
        """
        raw = tables.read("StringIds", ("id",), ("value",))
        ids, text = raw["id"], raw["value"]
        known = np.flatnonzero(ids >= 0)
        ids, codes = ids[known], text.codes[known]
        top = int(ids.max(initial=-1))
        if top <= 10 * len(ids) + 1000:
            dense = np.full(top + 1, -1, np.int32)
            dense[ids] = codes
            return Strings(np.empty(0, np.int64), dense, text.values)
        order = np.argsort(ids, kind="stable")
        return Strings(ids[order], codes[order], text.values)

    def text(self, ids: IntArray) -> Text:
        """The texts of these ids; only the values in use are kept."""
        return compact(Text(mapped(ids, self._codes), self.values))

    def _codes(self, ids: IntArray) -> CodeArray:
        codes = np.full(len(ids), -1, np.int32)
        if len(self.ids):
            at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            known = self.ids[at] == ids
            codes[known] = self.code_of_id[at[known]]
            return codes
        known = (ids >= 0) & (ids < len(self.code_of_id))
        if known.all():
            return self.code_of_id[ids]
        codes[known] = self.code_of_id[ids[known]]
        return codes


def compact(text: Text) -> Text:
    """The same column without values that no row holds."""
    used = np.zeros(len(text.values) + 1, np.bool_)  # the last place is for code -1
    used[text.codes[:1] if uniform(text.codes) else text.codes] = True
    used[-1] = False
    if used[:-1].all():
        return text
    new = np.full(len(used), -1, np.int32)
    new[used] = np.arange(np.count_nonzero(used), dtype=np.int32)
    values = tuple(value for value, keep in zip(text.values, used.tolist(), strict=False) if keep)
    return Text(mapped(text.codes, lambda codes: new[codes]), values)


def kept(
    name: str, columns: Mapping[str, Any], dropped: list[Dropped], *, gpu: bool
) -> dict[str, Any]:
    """The columns' sensible rows in order of start time."""
    start, end = columns["start"], columns["end"]
    backwards = (end < start) | (start == MISSING)
    absurd = _elsewhere(start, end, backwards)
    nowhere = (
        (start == end) & (start <= 0) & ~backwards & ~absurd
        if gpu
        else np.zeros(len(start), np.bool_)
    )
    bad = backwards | absurd | nowhere
    reasons = (
        "ends before it starts, or has no time",
        "time beyond any session",
        "time 0 or before the session",
    )
    for reason, mask in zip(reasons, (backwards, absurd, nowhere), strict=True):
        if count := int(np.count_nonzero(mask)):
            dropped.append(Dropped(name, reason, count))
    if bad.any():
        rows = np.flatnonzero(~bad)
        rows = rows[np.argsort(start[rows], kind="stable")]
    elif (start[1:] >= start[:-1]).all():
        return dict(columns)
    else:
        rows = np.argsort(start, kind="stable")
    return {key: taken(value, rows) for key, value in columns.items()}


def _elsewhere(start: IntArray, end: IntArray, backwards: BoolArray) -> BoolArray:
    """Marks the rows that are too far from most others, or last too long, to belong to one session.

    Where a session's times begin is the file's own: at 0, or in 1970 after `nsys export
    --ts-normalize=true`.
    """
    plain = bool(start.min(initial=0) >= -_FURTHEST_NS) and bool(end.max(initial=0) <= _FURTHEST_NS)
    if (
        plain
        and not backwards.any()
        and int(end.max(initial=0)) - int(start.min(initial=int(end.max(initial=0))))
        <= LONGEST_SESSION_NS
    ):
        return np.zeros(len(start), np.bool_)
    rows = np.flatnonzero(~backwards)
    centre = float(np.median(start[rows])) if len(rows) else 0.0
    away = np.maximum(
        np.abs(start.astype(np.float64) - centre), np.abs(end.astype(np.float64) - centre)
    )
    result: BoolArray = ~backwards & (
        (away > LONGEST_SESSION_NS) | (away + abs(centre) > _FURTHEST_NS)
    )
    return result


NO_PROCESS = 0
"""The process of GPU work whose process the report does not show."""


def process_of(thread: IntArray) -> IntArray:
    """The process (nsys's globalPid) in globalTid or globalPid values; stored once where it is the
    same in all rows.
    """
    return packed(mapped(thread, lambda held: held & _PROCESS_MASK))


def pid_of(process: IntArray) -> IntArray:
    """The process ids in nsys's globalPid or globalTid values; 0 if missing."""
    return mapped(process, lambda held: np.where(held == MISSING, 0, (held >> 24) & 0xFFFFFF))


def zero_for_missing(values: IntArray) -> IntArray:
    """The values, with 0 for missing ones: in domain ids and thread ids of older nsys both mean the
    same.
    """
    return mapped(
        values,
        lambda held: (
            np.where(held == MISSING, np.int64(0), held) if (held == MISSING).any() else held
        ),
    )


def none_for_zero(values: IntArray) -> IntArray:
    """The values, MISSING if they are not above 0: files of 2021 and before write 0 where newer
    ones have NULL.
    """
    return mapped(values, lambda held: np.where(held <= 0, np.int64(MISSING), held))


def recoded(text: Text, replacement: list[str], missing: str = "other") -> Text:
    """The column with every distinct value replaced; rows without a value get ``missing``."""
    index: dict[str, int] = {}
    # code -1 reads the last
    lookup = np.array(
        [index.setdefault(value, len(index)) for value in (*replacement, missing)], np.int32
    )
    return Text(mapped(text.codes, lambda codes: lookup[codes]), tuple(index))
