"""The tables that nsys writes, by name, whatever the file format: the interface that every reader
of a format implements.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, CodeArray, IntArray, Text, repeated, uniform

Columns = Mapping[str, IntArray | Text]
"""Columns of one table by name: int64 with MISSING for NULL, or text with code -1 for NULL and for
empty.
"""

Fetch = Callable[[str, Sequence[str], Sequence[str]], Columns]
"""Reads columns of one table, in the order of its rows: table, integer columns and text columns as
the file spells them.
"""

FetchBlocks = Callable[[str, Sequence[str]], Iterator[Mapping[str, IntArray]]]
"""The same of integer columns, some rows after the other: the whole of a large table takes much
memory.
"""

ENVIRONMENT_VARIABLE = "ENVIRONMENT_VARIABLE"
"""The end of the names of META_DATA_CAPTURE rows that hold a variable of the program's environment:
NAME="VALUE".
"""

ROW = "row"
"""The column of the numbers of rows in pieces of a table."""


class NoPiecesError(Exception):
    """The pieces of a table are not as they are expected to be: all of it must be read."""


@dataclass(frozen=True)
class TablePieces:
    """A table that can be read in part: pieces of consecutive rows."""

    count: int
    read: Callable[[int, int, Sequence[str]], Mapping[str, IntArray]]
    """From one piece up to another these integer columns, one of which may be ROW; may raise
    NoPiecesError.
    """


FetchStacks = Callable[[IntArray], Mapping[str, IntArray]]
"""The rows of SAMPLING_CALLCHAINS of CPU samples whose numbers go up (the columns STACKS)."""

SAMPLES_TAKEN = ("id", "start", "globalTid")
STACKS = ("id", "symbol", "module", "stackDepth")
"""What is read of COMPOSITE_EVENTS, the CPU samples, and of SAMPLING_CALLCHAINS, the functions on
the stack of each.
"""

FetchPieces = Callable[[str], TablePieces | None]
"""The pieces of a table; None if only all of it can be read."""

KNOWN_MAJORS = (2, 3)
NEWEST_KNOWN = (3, 28)  # of nsys 2026.4
"""The known versions of the export schema; newer ones get a note."""

RENAMED: tuple[tuple[str, str], ...] = (
    ("EXPORT_META_DATA", "META_DATA_EXPORT"),  # until schema 3.1
)
"""Names of tables and columns in some version of nsys, and the names under which they are
requested: `("kernelName", "SOME_TABLE.demangledName")`.
"""

_VERSIONED = re.compile(r"(.+)_v(\d{1,3})")  # CUPTI_ACTIVITY_KIND_KERNEL_V2


@dataclass(frozen=True)
class NsysTables:
    """The content of a file or folder of nsys. Names are found in any letter case, tables with and
    without `_V2` at the end.
    """

    path: Path  # for messages
    form: str  # SQLite, Parquet, Arrow, JSON lines, nsys-rep
    # nsys's name, in small letters → the file's, and so for its columns
    spelled: Mapping[str, tuple[str, Mapping[str, str]]]
    fetch: Fetch
    written_by: str | None = None  # version of the nsys that captured it, where this form tells
    notes: tuple[Note, ...] = ()  # what the reader must know of this form
    fetch_blocks: FetchBlocks | None = None  # where this form can be read piece by piece
    fetch_pieces: FetchPieces | None = None  # where any part can be read without what is before it
    fetch_stacks: FetchStacks | None = None  # where those of few samples are read faster than all

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether there is that table, and that column in it."""
        _, columns = self.spelled.get(table.lower(), ("", {}))
        return column.lower() in columns if column is not None else table.lower() in self.spelled

    def read(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The columns of one table, in the order of its rows: int64 arrays (MISSING for NULL),
        :class:`Text` for ``texts`` (empty is NULL).

        A column that is not there is all MISSING (or NULL); a table that is not there is empty.
        """
        own_name, own = self.spelled.get(table.lower(), ("", {}))
        held_integers = [name for name in integers if name.lower() in own]
        held_texts = [name for name in texts if name.lower() in own]
        columns: dict[str, Any] = {}
        if held_integers or held_texts:
            found = self.fetch(
                own_name,
                [own[name.lower()] for name in held_integers],
                [own[name.lower()] for name in held_texts],
            )
            columns = {name: found[own[name.lower()]] for name in (*held_integers, *held_texts)}
        rows = len(next(iter(columns.values()), ()))
        for name in integers:
            columns.setdefault(name, repeated(np.int64(MISSING), rows))
        for name in texts:
            columns.setdefault(name, Text.same(None, rows))
        return columns

    def blocks(self, table: str, integers: Sequence[str]) -> Iterator[dict[str, IntArray]]:
        """The same of integer columns, some rows after the other, or all at once in a form that
        cannot be read piece by piece.
        """
        own_name, own = self.spelled.get(table.lower(), ("", {}))
        if self.fetch_blocks is None or not all(name.lower() in own for name in integers):
            yield self.read(table, integers)
            return
        for found in self.fetch_blocks(own_name, [own[name.lower()] for name in integers]):
            yield {name: found[own[name.lower()]] for name in integers}

    def stacks(self, ids: IntArray) -> dict[str, IntArray]:
        """The rows of SAMPLING_CALLCHAINS of these CPU samples, whose numbers go up: the functions
        on the stack of each.
        """
        if self.fetch_stacks is not None:
            return dict(self.fetch_stacks(ids))
        found: dict[str, list[IntArray]] = {name: [np.empty(0, np.int64)] for name in STACKS}
        for block in self.blocks("SAMPLING_CALLCHAINS", STACKS):
            at = np.minimum(np.searchsorted(ids, block["id"]), max(len(ids) - 1, 0))
            rows = np.flatnonzero(ids[at] == block["id"]) if len(ids) else at[:0]
            for name in STACKS:
                found[name].append(block[name][rows])
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def pieces(self, table: str) -> TablePieces | None:
        """The pieces of one table, whose columns are named as in ``read``; None if only all of it
        can be read.
        """
        own_name, own = self.spelled.get(table.lower(), ("", {}))
        found = None if self.fetch_pieces is None else self.fetch_pieces(own_name)
        if found is None:
            return None

        def read(begin: int, end: int, integers: Sequence[str]) -> dict[str, IntArray]:
            named = {name: ROW if name == ROW else own[name.lower()] for name in integers}
            columns = found.read(begin, end, list(named.values()))
            return {name: columns[theirs] for name, theirs in named.items()}

        return TablePieces(found.count, read)


def spelling(tables: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, dict[str, str]]]:
    """``NsysTables.spelled`` of these tables and columns, under the names they are asked for by
    (RENAMED).

    Of two versions of a table the plain name counts, else the highest number.
    """
    chosen: dict[str, tuple[float, str]] = {}
    for name in tables:
        versioned = _VERSIONED.fullmatch(name.lower())
        plain, rank = (
            (versioned.group(1), float(versioned.group(2))) if versioned else (name.lower(), np.inf)
        )
        if plain not in chosen or rank > chosen[plain][0]:
            chosen[plain] = (rank, name)
    found = {}
    for plain, (_, name) in chosen.items():
        columns: dict[str, str] = {}
        for column in tables[name]:
            columns.setdefault(column.lower(), column)
        found[plain] = (name, columns)
    for theirs, ours in RENAMED:
        table, _, asked = ours.lower().partition(".")
        if not asked and theirs.lower() in found:
            found.setdefault(table, found[theirs.lower()])
        elif asked and theirs.lower() in found.get(table, ("", {}))[1]:
            found[table][1].setdefault(asked, found[table][1][theirs.lower()])
    return found


def in_memory(
    path: Path, form: str, tables: Mapping[str, Columns], *, notes: tuple[Note, ...] = ()
) -> NsysTables:
    """Tables that are read already."""

    def fetch(table: str, integers: Sequence[str], texts: Sequence[str]) -> Columns:
        return {name: tables[table][name] for name in (*integers, *texts)}

    return NsysTables(path, form, spelling(tables), fetch, notes=notes)


def filled(column: NDArray[Any], values: NDArray[Any] | int, rows: slice) -> NDArray[Any]:
    """The column with these values in these rows, all before which have been filled."""
    if rows.start == 0:
        column = repeated(
            column.dtype.type(values if isinstance(values, int) else values[0]), len(column)
        )
    if uniform(column):
        held = column[0]
        if (
            (values == held)
            if isinstance(values, int)
            else (values[-1] == held and (values == held).all())
        ):
            return column
        fresh = np.empty(len(column), column.dtype)
        fresh[: rows.start] = held
        column = fresh
    column[rows] = values
    return column


def grown(column: NDArray[Any], used: int, room: int) -> NDArray[Any]:
    """The column with room for that many rows, of which these are in use."""
    if not used or uniform(column):
        return repeated(column[0] if used else column.dtype.type(0), room)
    larger = np.empty(room, column.dtype)
    larger[:used] = column[:used]
    return larger


def numbering() -> dict[bytes, int]:
    """A mapping that gives every new key the next number, from 0."""
    return defaultdict(count().__next__)


def decoded(codes: CodeArray, values: Sequence[bytes]) -> Text:
    """The text column with these codes of UTF-8 texts; what is no UTF-8 is replaced."""
    texts = [value.decode("utf-8", "replace") for value in values]
    number = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    if len(number) < len(texts):  # two that were no UTF-8 have become the same
        codes = np.array([*(number[text] for text in texts), -1], np.int32)[codes]
    return Text(codes, tuple(number))
