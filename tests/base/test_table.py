"""Declared tables: what they become in Arrow is what they hold."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import Column, Spec, Table, Text
from tests.places import ROOT

SPEC = Spec(
    "sample",
    "One column of each kind.",
    (
        Column("count", "int", "", nullable=True),
        Column("share", "float", "", nullable=True),
        Column("name", "text", "", nullable=True),
        Column("seen", "bool", ""),
    ),
)
rows = st.fixed_dictionaries(
    {
        "count": st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
        "share": st.none() | st.floats(allow_nan=False),
        "name": st.none() | st.text(max_size=8),
        "seen": st.booleans(),
    }
)


@given(st.lists(rows, max_size=20))
def test_arrow_holds_the_same_values_and_null_where_there_is_none(
    made: list[dict[str, object]],
) -> None:
    arrow = Table.of_rows(SPEC, made).arrow()
    arrow.validate(full=True)
    assert arrow.to_pylist() == made
    assert Table.of_rows(SPEC, made).arrow(["seen", "count"]).column_names == ["seen", "count"]


def test_arrow_comes_without_pandas() -> None:
    """Which pyarrow.array() would import: a third of a second."""
    code = (
        "import sys\n"
        "from tests.base.test_table import SPEC\n"
        "from nsysmap.core.table import Table\n"
        "Table.of_rows(SPEC, [{'count': 1, 'name': 'a'}, {}]).arrow()\n"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode
        == 0
    )


@given(st.lists(st.none() | st.text("ab", max_size=2), max_size=20), st.booleans())
def test_a_test_of_texts_is_asked_once_a_distinct_text(
    texts: list[str | None], missing: bool
) -> None:
    asked: list[str] = []

    def holds(text: str) -> bool:
        asked.append(text)
        return "a" in text

    found = Text.of(texts).where(holds, missing=missing).tolist()
    assert found == [missing if text is None else "a" in text for text in texts]
    assert sorted(asked) == sorted({text for text in texts if text is not None})
    assert Text.of(texts).equals("a").tolist() == [text == "a" for text in texts]


@given(st.lists(rows, max_size=20), st.lists(rows, max_size=5))
def test_rows_read_as_rows_as_records_and_behind_others_are_those_given(
    made: list[dict[str, object]], more: list[dict[str, object]]
) -> None:
    table = Table.of_rows(SPEC, made)
    assert [row.values() for row in table] == table.records() == made
    columns = {name: [row[name] for row in made] for name in table.columns}
    assert Table.of_lists(SPEC, columns).records() == made
    assert table.with_rows(more).records() == [*made, *more]


def test_a_row_makes_the_columns_that_are_asked_for() -> None:
    one = Table.of_rows(SPEC, [{"count": 3, "share": 0.5, "name": "a", "seen": True}]).only()
    assert (one.integer("count"), one["name"]) == (3, "a")
    with pytest.raises(KeyError):
        one["absent"]


@given(
    st.lists(st.none() | st.sampled_from(("a", "b", "ab", "c*", "")), max_size=30),
    st.lists(st.integers(0, 29)),
)
def test_texts_that_no_row_of_a_part_holds_are_not_asked_for(
    texts: list[str | None], at: list[int]
) -> None:
    whole = Text.of([*texts, *map(str, range(40))])
    part = whole.take(np.array([row for row in at if row < len(texts)], np.int64))
    asked: list[str] = []
    held = part.list()

    def passes(text: str) -> bool:
        asked.append(text)
        return "a" in text

    for missing in (False, True):
        asked.clear()
        told = part.where(passes, missing=missing).tolist()
        assert told == [missing if one is None else "a" in one for one in held]
        assert len(asked) == len(set(asked)) and (set(asked) == set(held) - {None})
    lengths = part.numbers(len, missing=-1).tolist()
    assert lengths == [-1 if one is None else len(one) for one in held]
