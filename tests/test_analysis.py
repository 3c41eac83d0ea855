"""What the analysis holds, and SQL over it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from nsysmap.analysis import MADE_TOGETHER
from nsysmap.api import analyze
from nsysmap.core.errors import NsysmapError
from nsysmap.core.schema import ALL_TABLES, Tables
from nsysmap.core.table import Table
from tests.places import FIXTURES
from tests.reports import analysis


def test_every_declared_table_is_a_field_of_its_name() -> None:
    tables = analysis("bert_trt10", "sync.sqlite").tables.by_name()
    assert {name: table.spec for name, table in tables.items()} == {
        spec.name: spec for spec in ALL_TABLES
    }
    assert list(Tables.__annotations__) == list(tables)


def test_a_table_is_worked_out_when_it_is_asked_for_and_what_it_does_not_need_is_not() -> None:
    folder = FIXTURES / "bert_trt10"
    fresh = analyze(folder / "sync.sqlite", folder / "engine.json").steps
    kernels = fresh.tables.kernels
    assert len(kernels) == 2800
    assert vars(fresh).keys().isdisjoint(("measured", "gaps", "model", "counters", "outcomes"))
    assert len(fresh.tables.gaps) > 0
    assert vars(fresh).keys().isdisjoint(("model", "counters", "outcomes"))
    assert fresh.tables.kernels is kernels


def test_the_steps_that_make_several_tables_name_all_of_them() -> None:
    steps = analysis("bert_trt10", "sync.sqlite").steps
    for step, names in MADE_TOGETHER.items():
        assert names == tuple(field.name for field in fields(getattr(steps, step)))


def test_a_table_that_no_step_makes_is_an_error_at_once() -> None:
    empty = {spec.name: Table.empty(spec) for spec in ALL_TABLES}
    assert len(Tables(empty).kernels) == 0
    with pytest.raises(AssertionError, match="kernels"):
        Tables({name: table for name, table in empty.items() if name != "kernels"})
    with pytest.raises(AttributeError, match="kernel_s"):
        _ = Tables(empty).kernel_s  # type: ignore[attr-defined]


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
