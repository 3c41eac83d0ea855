"""Finds the kernels to which a change applies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, IntArray, Table, Text
from nsysmap.trace.model import Trace

_NEAR = 3  # suggestions for a misspelt name


@dataclass(frozen=True)
class KernelSelection:
    """Kernels by the names of their layers or parts, or by their own names."""

    trace: Trace
    mapping: Table | None
    membership: Table

    def matching(self, names: Sequence[str]) -> IntArray:
        """Ids of the kernels whose layer (its name or title), part or own name is one of these; a
        name that ends in ``*`` is a prefix.
        """
        found = np.zeros(len(self.trace.kernels), np.bool_)
        for column in self._columns():
            found |= _matches(column, names)
        return np.flatnonzero(found)

    def _columns(self) -> list[Text]:
        """The columns in which a name is looked for."""
        columns = [self.trace.kernels.text("name")]
        if self.mapping is not None:
            columns += [self.mapping.text(name) for name in ("layer", "layer_title", "part")]
        return columns

    def _rows_by_name(self, names: Sequence[str]) -> dict[str, IntArray]:
        """Ids of the kernels of each of these names that has some, in order; all columns are looked
        through once, however many names there are.
        """
        found: dict[str, list[IntArray]] = defaultdict(list)
        wanted = set(names)
        for column in self._columns():
            rows = np.flatnonzero(column.where(wanted.__contains__))
            codes = column.codes[rows]
            order = np.argsort(codes, kind="stable")
            codes, rows = codes[order], rows[order]
            firsts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
            for first, end in pairwise([*firsts, len(rows)]):
                found[column.values[codes[first]]].append(rows[first:end])
        return {
            name: pieces[0] if len(pieces) == 1 else np.unique(np.concatenate(pieces))
            for name, pieces in found.items()
        }

    def runs(self, wanted: Sequence[tuple[str, ...]]) -> list[tuple[int, ...]]:
        """For each inference and run the kernel ids in launch order; runs of a single kernel are
        left out.
        """
        inference, position = self.membership.ints("inference"), self.membership.ints("position")
        of_name = self._rows_by_name([name for names in wanted for name in names])
        nothing = np.empty(0, np.int64)
        result: list[tuple[int, ...]] = []
        for names in wanted:
            if any(name.endswith("*") for name in names):
                rows = self.matching(names)
            else:
                here = [of_name[name] for name in set(names) if name in of_name]
                rows = np.unique(np.concatenate(here)) if here else nothing
            rows = rows[inference[rows] >= 0]
            if len(rows) < 2:
                continue
            rows = rows[np.lexsort((position[rows], inference[rows]))]
            owners, first = np.unique(inference[rows], return_index=True)
            bounds = [*first.tolist(), len(rows)]
            result += [
                tuple(rows[bounds[at] : bounds[at + 1]].tolist())
                for at in range(len(owners))
                if bounds[at + 1] - bounds[at] > 1
            ]
        return result

    def named(self, rows: Iterable[int]) -> str:
        """The layers of these kernels, the first three by name."""
        names = self.trace.kernels.text("name")
        layers = self.mapping.text("layer_title") if self.mapping is not None else None
        found = list(
            dict.fromkeys(
                str((layers[row] if layers is not None else None) or names[row]) for row in rows
            )
        )
        shown = [name if len(name) <= 60 else f"{name[:57]}…" for name in found[:3]]
        more = len(found) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")


def check_named(names: Sequence[str], known: Sequence[Text]) -> None:
    """Raises NsysmapError with similar names for a name that no layer, part or kernel has."""
    for name in names:
        if any(_matches(column, [name]).any() for column in known):
            continue
        values = list(dict.fromkeys(value for column in known for value in column.values if value))
        near = get_close_matches(name.removesuffix("*"), values, n=_NEAR, cutoff=0.6)
        near = (
            near
            or [value for value in values if name.removesuffix("*").lower() in value.lower()][
                :_NEAR
            ]
        )
        remedy = (
            f"did you mean {', '.join(near)}?"
            if near
            else "nsysmap layers lists the names of an engine file, nsysmap map those of a report"
        )
        raise NsysmapError(
            f"--layer {name}", "no layer, part of a layer or kernel has this name", remedy
        )


def _matches(column: Text, names: Sequence[str]) -> BoolArray:
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return column.where(
        lambda value: value in exact or (bool(prefixes) and value.startswith(prefixes))
    )
