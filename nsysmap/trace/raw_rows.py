"""Rows of nsys's tables as they come: strings looked up by id, process ids taken apart, rows with impossible times left out and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsysmap.base.errors import NsysmapError
from nsysmap.base.table import MISSING, CodeArray, IntArray, Text
from nsysmap.trace.model import Dropped
from nsysmap.trace.sqlite_columns import Database

PROCESS_MASK = ~0xFFFFFF  # globalTid = hw 8 | vm 8 | pid 24 | tid 24 bits; globalPid has tid 0


LATEST_NS = 10**16  # 115 days


@dataclass(frozen=True)
class Strings:
    """StringIds: id → text, as codes into distinct values."""

    code_of_id: CodeArray  # -1 where there is no such id
    values: tuple[str, ...]

    @staticmethod
    def read(database: Database) -> Strings:
        """All strings of the file; NsysmapError where their ids cannot be a table's."""
        rows = [
            (number, text)
            for number, text in database.rows("SELECT id, value FROM StringIds")
            if isinstance(number, int) and isinstance(text, str)
        ]
        top = max((number for number, _ in rows), default=-1)
        if top > 10 * len(rows) + 1_000_000:
            raise NsysmapError(str(database.path), "has string ids out of all proportion", "export the report again: nsys export -t sqlite")
        index: dict[str, int] = {}
        codes = np.full(top + 1, -1, np.int32)
        for number, text in rows:
            if number >= 0:
                codes[number] = index.setdefault(text, len(index))
        return Strings(codes, tuple(index))

    def text(self, ids: IntArray) -> Text:
        """The texts of these ids; only the values in use are kept."""
        known = (ids >= 0) & (ids < len(self.code_of_id))
        codes = np.full(len(ids), -1, np.int32)
        codes[known] = self.code_of_id[ids[known]]
        return compact(Text(codes, self.values))


def compact(text: Text) -> Text:
    """The same column with the values that no row holds left out."""
    used = np.zeros(len(text.values) + 1, np.bool_)  # the last place is for code -1
    used[text.codes] = True
    used[-1] = False
    new = np.full(len(used), -1, np.int32)
    new[used] = np.arange(np.count_nonzero(used), dtype=np.int32)
    return Text(new[text.codes], tuple(value for value, keep in zip(text.values, used.tolist(), strict=False) if keep))


def kept(name: str, columns: Mapping[str, Any], dropped: list[Dropped], *, gpu: bool) -> tuple[dict[str, Any], IntArray]:
    """The columns' sensible rows in order of start time, and where they stood."""
    start, end = columns["start"], columns["end"]
    backwards = (end < start) | (start == MISSING)
    absurd = ~backwards & ((end > LATEST_NS) | (start < -LATEST_NS))
    nowhere = ~backwards & ~absurd & (start <= 0) & (end <= 0) if gpu else np.zeros(len(start), np.bool_)
    bad = backwards | absurd | nowhere
    reasons = ("ends before it starts, or has no time", "time beyond any session", "time 0 or before the session")
    for reason, mask in zip(reasons, (backwards, absurd, nowhere), strict=True):
        if count := int(np.count_nonzero(mask)):
            dropped.append(Dropped(name, reason, count))
    if bad.any():
        rows = np.flatnonzero(~bad)
        rows = rows[np.argsort(start[rows], kind="stable")]
    elif (start[1:] >= start[:-1]).all():
        return dict(columns), np.arange(len(start))
    else:
        rows = np.argsort(start, kind="stable")
    return {key: value.take(rows) for key, value in columns.items()}, rows


def pid_of(process: IntArray) -> IntArray:
    """The process ids in nsys's globalPid or globalTid values; 0 where there is none."""
    return np.where(process == MISSING, 0, (process >> 24) & 0xFFFFFF)


def zero_for_missing(values: IntArray) -> IntArray:
    """The values, 0 where there is none: in domain ids and thread ids of older nsys both mean the same."""
    return np.where(values == MISSING, np.int64(0), values) if (values == MISSING).any() else values


def recoded(text: Text, replacement: list[str], missing: str = "other") -> Text:
    """The column with every distinct value replaced; rows without a value get ``missing``."""
    index: dict[str, int] = {}
    lookup = np.array([index.setdefault(value, len(index)) for value in (*replacement, missing)], np.int32)  # code -1 reads the last
    return Text(lookup[text.codes], tuple(index))
