"""Which field of an event is which column: the smallest capture beside what nsys exports of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from nsysmap.inputs.nsys.report_tables import read_report
from tests.nsys.test_own_reader import values
from tests.places import FIXTURES


def test_every_column_of_a_kernel_is_the_one_that_nsys_exports() -> None:
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = FIXTURES / "bert_trt10" / "sync.nsys-rep"
    read = read_report(path).tables[table]
    with closing(sqlite3.connect(path.with_suffix(".sqlite"))) as file:
        theirs = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
        columns = [name for name in read if name in theirs]
        assert len(columns) > 20
        rows = file.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
    for place, column in enumerate(columns):
        assert values(read[column]) == [row[place] for row in rows], column
