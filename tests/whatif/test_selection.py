"""Which kernels a change is about, found for all groups of layers at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import IntArray, Table, Text
from nsysmap.trace.model import Trace
from nsysmap.whatif.selection import KernelSelection

NAMES = ("a", "b", "ab", "c*", "")
ROWS = st.lists(
    st.tuples(
        st.integers(-1, 2),  # inference
        st.integers(0, 3),  # position
        st.sampled_from(NAMES),  # kernel
        st.none() | st.sampled_from(NAMES),  # layer
        st.none() | st.sampled_from(NAMES),  # title
    ),
    max_size=12,
)
WANTED = st.lists(
    st.lists(st.sampled_from((*NAMES, "a*", "*", "other")), min_size=1, max_size=4).map(tuple),
    max_size=4,
)


class Columns:
    """What a selection reads of a table."""

    def __init__(self, **columns: Text | IntArray) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def text(self, name: str) -> Text:
        return cast(Text, self.columns[name])

    def ints(self, name: str) -> IntArray:
        return cast(IntArray, self.columns[name])


def one_by_one(selection: KernelSelection, wanted: list[tuple[str, ...]]) -> list[tuple[int, ...]]:
    """The runs, each looked for among all kernels."""
    inference, position = (selection.membership.ints(one) for one in ("inference", "position"))
    found = []
    for names in wanted:
        rows = [row for row in selection.matching(names).tolist() if inference[row] >= 0]
        for owner in sorted({int(inference[row]) for row in rows}):
            run = [row for row in rows if inference[row] == owner]
            if len(run) > 1:
                found.append(tuple(sorted(run, key=lambda row: (position[row], row))))
    return found


@given(ROWS, WANTED)
def test_runs_are_those_that_each_group_has_alone(
    rows: list[tuple[int, int, str, str | None, str | None]], wanted: list[tuple[str, ...]]
) -> None:
    kernels = Columns(name=Text.of([row[2] for row in rows]))
    mapping = Columns(
        layer=Text.of([row[3] for row in rows]),
        layer_title=Text.of([row[4] for row in rows]),
        part=Text.same(None, len(rows)),
    )
    membership = Columns(
        inference=np.array([row[0] for row in rows], np.int64),
        position=np.array([row[1] for row in rows], np.int64),
    )
    selection = KernelSelection(
        cast(Trace, SimpleNamespace(kernels=kernels)),
        cast(Table, mapping),
        cast(Table, membership),
    )
    assert selection.runs(wanted) == one_by_one(selection, wanted)
