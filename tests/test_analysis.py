"""What the analysis holds, and SQL over it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.schema import ALL_TABLES, Tables
from tests.reports import analysis


def test_every_declared_table_is_a_field_of_its_name() -> None:
    tables = analysis("bert_trt10", "sync.sqlite").tables.by_name()
    assert {name: table.spec for name, table in tables.items()} == {
        spec.name: spec for spec in ALL_TABLES
    }
    assert [field.name for field in fields(Tables)] == list(tables)


def test_sql_over_the_tables_gives_a_data_frame() -> None:
    frame = analysis("bert_trt10", "sync.sqlite").query(
        "SELECT l.name, count(*) AS kernels FROM kernels k JOIN layers l USING (layer_id) GROUP BY"
        " l.name ORDER BY l.name LIMIT 1"
    )
    assert frame.to_dict("records") == [
        {"name": "/bert/encoder/layer.0/attention/output/dense/MatMul_myl0_5", "kernels": 50}
    ]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
        ("SELECT nothing FROM kernels", "nothing"),
        ("COPY kernels TO 'x'", "not a SELECT"),
        ("SELECT 1; SELECT 2", "2 statements"),
    ],
)
def test_sql_that_is_broken_or_reaches_outside_is_one_error(sql: str, problem: str) -> None:
    with pytest.raises(NsysmapError, match=problem):
        analysis("bert_trt10", "sync.sqlite").query(sql)
