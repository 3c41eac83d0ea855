"""Which ranges are calls of an engine, where the trace is not as it should be."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_trace
from tests.places import FIXTURES
from tests.reports import read_trace

ENGINE = FIXTURES / "bert_trt10" / "engine.json"
CALL = "(SELECT id FROM StringIds WHERE value LIKE 'ExecutionContext%')"
FIRST_CALL = (
    f"SELECT rowid FROM NVTX_EVENTS WHERE textId IN {CALL} OR text LIKE 'ExecutionContext%' ORDER"
    " BY start LIMIT 1"
)


def changed(report: str, folder: Path, *statements: str) -> Path:
    target = folder / "x.sqlite"
    target.write_bytes((FIXTURES / "bert_trt10" / f"{report}.sqlite").read_bytes())
    with sqlite3.connect(target) as base:
        for statement in statements:
            base.execute(statement)
        base.commit()
    return target


def test_a_call_that_never_ends_does_not_swallow_those_after_it(tmp_path: Path) -> None:
    path = changed(
        "sync", tmp_path, f"UPDATE NVTX_EVENTS SET end = NULL WHERE rowid = ({FIRST_CALL})"
    )
    result = map_trace(read_trace(path), [read_engine(ENGINE)])
    assert len(result.inferences) == 49
    assert set(result.inferences.ints("kernels").tolist()) == {56}
    assert any("never ends" in note.text for note in result.mapped.notes)
    assert None not in result.mapped.table.text("layer").list()


def test_inferences_whose_kernels_cannot_be_joined_to_launches_are_counted_once(
    tmp_path: Path,
) -> None:
    path = changed(
        "graph", tmp_path, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN correlationId"
    )
    result = map_trace(read_trace(path), [read_engine(ENGINE)])
    assert len(result.inferences) == 50
    assert set(result.inferences.ints("kernels").tolist()) == {56}
