"""What the database is handed of a table shows the declared columns, however the table holds
them.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core import table as tables_module
from nsysmap.core.table import MISSING, Column, Held, Spec, Table, Text
from nsysmap.rules.sandbox.given_tables import given_table, selected

SPEC = Spec(
    "kernels",
    "",
    (
        Column("start_ns", "int", ""),
        Column("end_ns", "int", "", nullable=True),
        Column("device", "int", "", nullable=True),
        Column("share", "float", "", nullable=True),
        Column("name", "text", "", nullable=True),
    ),
)
row = st.tuples(
    st.integers(0, 2**40), st.none() | st.integers(0, 2**33), st.none() | st.integers(-2, 300)
)
share_of_all = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(row, min_size=1, max_size=10),
    share_of_all,
    st.booleans(),
    st.sampled_from([("end_ns",), ("device",), ("device", "end_ns"), None]),
)
def test_the_declared_columns_are_selected_from_what_is_given(
    rows: list[tuple[int, int | None, int | None]],
    share: float | None,
    one_device: bool,
    names: tuple[str, ...] | None,
) -> None:
    start = np.array([begin for begin, _, _ in rows], np.int64)
    columns: dict[str, Held] = {
        "start_ns": start,
        "end_ns": np.array(
            [MISSING if took is None else begin + took for begin, took, _ in rows], np.int64
        ),
        "device": np.array(
            [
                MISSING if (at := rows[0][2] if one_device else device) is None else at
                for _, _, device in rows
            ],
            np.int64,
        ),
        "share": np.full(len(rows), np.nan if share is None else share),
        "name": Text.of(None if took is None else "ab"[device is None] for _, took, device in rows),
    }
    plain = Table(SPEC, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "_MANY_ROWS", 1)
        patch.setattr(tables_module, "_LARGE", 1)
        large = Table(SPEC, columns)
        if names is not None:
            large = Table(
                Spec("kernels", "", tuple(SPEC.column(name) for name in names)),
                {name: large.columns[name] for name in names},
            )
    held = given_table(large)
    with duckdb.connect() as connection:
        connection.register("given", held)
        cursor = connection.execute(f"SELECT {selected(held)} FROM given")
        assert cursor.description is not None
        assert [column[0] for column in cursor.description] == list(names or columns)
        expected = [tuple(record[name] for name in names or columns) for record in plain.records()]
        assert cursor.fetchall() == expected


def test_a_plain_table_is_given_as_it_is() -> None:
    held = given_table(
        Table.of_rows(SPEC, [{"start_ns": 1, "name": "a"}, {"start_ns": 2, "name": "b"}])
    )
    assert selected(held) == "*"
