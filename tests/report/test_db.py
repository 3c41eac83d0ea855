"""The database holds what the report holds, and its foreign keys hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap.base.errors import NsysmapError
from nsysmap.report.model import Report
from nsysmap.report.write import write_report
from nsysmap.rules.finding import Finding, Outcome
from tests.reports import hostile, report


def with_finding(held: Report) -> Report:
    layer = held.layers[0]
    finding = Finding("r", "launch", "info", "m", 1, 2, 3, 0.5, layer.layer_index, layer.name, {"n": 1}, "a")
    return replace(held, outcomes=(Outcome("r", "launch", "info", (finding,)), Outcome("s", "host", "info", (), "why")))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    write_report(with_finding(report("bert_trt10", "sync.sqlite")), tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        yield connection


def test_every_foreign_key_is_declared_and_holds(database: sqlite3.Connection) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    keys = {(table, row[3], row[2]) for table in tables for row in database.execute(f"PRAGMA foreign_key_list({table})")}
    assert keys >= {
        ("layers", "engine", "engines"),
        ("inferences", "engine", "engines"),
        ("layer_kernels", "layer_id", "layers"),
        ("layer_kernels", "kernel", "kernels"),
        ("findings", "rule", "rules"),
        ("findings", "layer_id", "layers"),
    }
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_tables_hold_the_report_s_rows(database: sqlite3.Connection) -> None:
    held = report("bert_trt10", "sync.sqlite")
    counts = {
        name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("layers", "kernels", "inferences", "engines")
    }
    assert counts == {"layers": len(held.layers), "kernels": len(held.kernels), "inferences": 50, "engines": 1}
    layers = database.execute("SELECT layer_index, name, time_ns, share_of_kernel_time FROM layers").fetchall()
    assert sorted(layers) == sorted((row.layer_index, row.name, row.time_ns, row.share_of_kernel_time) for row in held.layers)
    assert database.execute("SELECT method, kernels, time_ns FROM coverage").fetchall() == [("nvtx", 2800, held.kernel_time_ns)]
    assert database.execute("SELECT sum(gpu_busy_ns) FROM inferences").fetchone() == (held.gpus[0].busy_ns,)
    assert database.execute("SELECT outcome, count(*) FROM rules GROUP BY outcome ORDER BY outcome").fetchall() == [
        ("found", 1),
        ("skipped", 1),
    ]


def test_kernels_and_layers_are_tied(database: sqlite3.Connection) -> None:
    held = report("bert_trt10", "sync.sqlite")
    by_layer = dict(database.execute("SELECT layer_id, sum(time_ns) FROM layer_kernels GROUP BY layer_id").fetchall())
    assert sum(by_layer.values()) == held.kernel_time_ns
    by_kernel = database.execute("SELECT name, sum(layer_kernels.time_ns) FROM layer_kernels JOIN kernels USING (kernel) GROUP BY kernel")
    assert dict(by_kernel.fetchall()) == {row.name: row.time_ns for row in held.kernels}
    assert database.execute("SELECT count(*) FROM layer_kernel_names").fetchone() == (len(held.layer_kernels),)


def test_a_finding_is_tied_to_its_layer(database: sqlite3.Connection) -> None:
    held = report("bert_trt10", "sync.sqlite")
    found = database.execute("SELECT layers.name, cost_ns FROM findings JOIN layers USING (layer_id)").fetchall()
    assert found == [(held.layers[0].name, 3)]


def test_hostile_names_are_held_exactly(tmp_path: Path) -> None:
    held = hostile()
    write_report(held, tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM kernels ORDER BY kernel")]
    assert names == [row.name for row in held.kernels]


def test_an_old_database_is_replaced_whole(tmp_path: Path) -> None:
    write_report(report("bert_trt10", "sync.sqlite"), tmp_path / "r.db")
    write_report(report("bert_trt10", "graph_whole.sqlite"), tmp_path / "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        assert connection.execute("SELECT count(*) FROM kernels").fetchone() == (0,)
    assert [path.name for path in tmp_path.iterdir()] == ["r.db"]


def test_a_full_disk_is_said_in_a_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite_utils

    def full(_self: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite_utils.Database, "vacuum", full)
    with pytest.raises(NsysmapError, match="cannot be written"):
        write_report(report("bert_trt10", "sync.sqlite"), tmp_path / "r.db")
    assert list(tmp_path.iterdir()) == []
