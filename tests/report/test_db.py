"""The database holds the analysis's declared tables, and its foreign keys hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.schema import ALL_TABLES
from nsysmap.output.db import DB_TABLES, EVENTS
from nsysmap.output.write import write_report
from tests.reports import hostile, report


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    write_report(report("bert_trt10", "sync.sqlite", rules=True), tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        yield connection


def test_every_declared_table_but_those_of_events_is_there_with_its_declared_columns(
    database: sqlite3.Connection,
) -> None:
    assert {spec.name for spec in ALL_TABLES} == {spec.name for spec in DB_TABLES} | EVENTS
    for spec in DB_TABLES:
        found = {
            row[1]: (row[2], bool(row[3]))
            for row in database.execute(f"PRAGMA table_info({spec.name})")
        }
        types = {"int": "INTEGER", "bool": "INTEGER", "float": ("FLOAT", "REAL"), "text": "TEXT"}
        assert list(found) == [column.name for column in spec.columns]
        for column in spec.columns:
            kind, needed = found[column.name]
            assert kind in types[column.kind]
            assert needed == (not column.nullable), f"{spec.name}.{column.name}"


def test_every_foreign_key_is_declared_and_holds(database: sqlite3.Connection) -> None:
    tables = [
        name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    keys = {
        (table, row[3], row[2])
        for table in tables
        for row in database.execute(f"PRAGMA foreign_key_list({table})")
    }
    assert keys >= {
        ("layers", "engine", "engines"),
        ("inferences", "engine", "engines"),
        ("kernel_time", "layer_id", "layers"),
        ("kernel_time", "name", "kernel_totals"),
        ("findings", "rule", "rule_outcomes"),
        ("findings", "layer_id", "layers"),
    }
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_tables_hold_the_analysis_s_rows(database: sqlite3.Connection) -> None:
    held = report("bert_trt10", "sync.sqlite", rules=True)
    for spec in DB_TABLES:
        assert database.execute(f"SELECT count(*) FROM {spec.name}").fetchone() == (
            len(held.tables.by_name()[spec.name]),
        ), spec.name
    assert database.execute(
        "SELECT method, kernels, time_ns FROM coverage WHERE kernels > 0"
    ).fetchall() == [("nvtx", 2800, held.kernel_time_ns)]
    assert database.execute("SELECT sum(time_ns) FROM kernel_time").fetchone() == (
        held.kernel_time_ns,
    )
    assert database.execute("SELECT count(DISTINCT layer) FROM kernel_layers").fetchone() == (56,)


def test_every_column_says_what_it_means(database: sqlite3.Connection) -> None:
    assert database.execute(
        "SELECT unit, meaning FROM declared_columns WHERE table_name = 'coverage' AND column_name ="
        " 'time_ns'"
    ).fetchall() == [("ns", "their time")]
    assert database.execute(
        "SELECT count(*) FROM declared_columns WHERE meaning = ''"
    ).fetchone() == (0,)


def test_hostile_names_are_held_exactly(tmp_path: Path) -> None:
    held = hostile()
    write_report(held, tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM kernel_totals ORDER BY rowid")
        ]
    assert names == held.tables.kernel_totals.text("name").list()


def test_an_old_database_is_replaced_whole(tmp_path: Path) -> None:
    write_report(report("bert_trt10", "sync.sqlite"), tmp_path / "r.db")
    write_report(report("bert_trt10", "graph_whole.sqlite"), tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        assert connection.execute("SELECT count(*) FROM kernel_totals").fetchone() == (0,)
    assert [path.name for path in tmp_path.iterdir()] == ["r.db"]


def test_a_full_disk_is_said_in_a_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite_utils

    def full(_self: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite_utils.Database, "vacuum", full)
    with pytest.raises(NsysmapError, match="cannot be written"):
        write_report(report("bert_trt10", "sync.sqlite"), tmp_path / "r.db")
    assert list(tmp_path.iterdir()) == []
