"""Every table and column that is read of a real capture, dropped in turn: no crash, and no other
answer without a word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap.analysis import Analysis, analyze_mapped
from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.nsys.columns_needed import NEEDED, missing_columns
from nsysmap.inputs.nsys.tables import Columns, in_memory
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.trace.reader import trace_of
from tests.captures.test_change import half
from tests.held_tables import Held, analysed, held, told
from tests.nsys_schemas import schemas
from tests.places import FIXTURES

INFERENCES = 6
CAPTURES = {
    "bert_trt10/sync": ("bert_trt10/engine.json",),
    "newer/aux_graph": ("aux_streams/engine.json",),
}


def short(name: str, engines: Sequence[Engine]) -> Held:
    """The first inferences of a capture."""
    whole = held(FIXTURES / f"{name}.sqlite")
    starts = analysed(whole, engines, rules=False).tables.inferences.ints("start_ns")
    return half(whole, int(starts[INFERENCES]), first=True)


def read_of(tables: Held, engines: Sequence[Engine]) -> tuple[Analysis, Mapping[str, set[str]]]:
    """The analysis, and the columns of each table that were read for it."""
    read: dict[str, set[str]] = defaultdict(set)
    there = in_memory(Path("report.sqlite"), "SQLite", tables)

    def fetch(table: str, integers: Sequence[str], texts: Sequence[str]) -> Columns:
        read[table].update((*integers, *texts))
        return there.fetch(table, integers, texts)

    mapped = map_trace(trace_of(replace(there, fetch=fetch), source="report.sqlite"), list(engines))
    return analyze_mapped(mapped, rules=()), read


def without(tables: Held, read: Mapping[str, set[str]]) -> Iterator[tuple[str, Held]]:
    for table, columns in read.items():
        yield table, {name: held for name, held in tables.items() if name != table}
        for column in sorted(columns):
            yield (
                f"{table}.{column}",
                {
                    **tables,
                    table: {name: data for name, data in tables[table].items() if name != column},
                },
            )


def said(analysis: Analysis) -> object:
    """By what words a reader sees that less is known: notes, how inferences and layers were found,
    what the capture has.
    """
    tables = analysis.tables
    methods = {(row["method"], row["reason"]) for row in tables.kernels.records()}
    found_by = {row["found_by"] for row in tables.inferences.records()}
    return sorted(note.text for note in analysis.notes), methods, found_by, tables.capture.records()


@pytest.mark.parametrize("name", CAPTURES)
def test_what_is_dropped_changes_nothing_or_is_said(name: str) -> None:
    engines = read_engines([FIXTURES / path for path in CAPTURES[name]])
    tables = short(name, engines)
    whole, read = read_of(tables, engines)
    answer, words = told(whole), said(whole)
    silent, tried = [], 0
    for dropped, left in without(tables, read):
        tried += 1
        try:
            now = analysed(left, engines, rules=False)
        except NsysmapError:
            continue
        if told(now) != answer and said(now) == words:
            silent.append(dropped)
    assert silent == []
    assert tried > 60


def test_a_column_that_is_missing_is_named_with_what_is_not_known_without_it() -> None:
    for table, needed in NEEDED.items():
        kept: Held = {
            table: {
                "start": held(FIXTURES / "bert_trt10/sync.sqlite")["CUPTI_ACTIVITY_KIND_KERNEL"][
                    "start"
                ]
            }
        }
        notes = list(missing_columns(in_memory(Path("x"), "SQLite", kept)))
        assert [note.text.startswith(f"{table} has no column") for note in notes] == [True]
        assert all(column in notes[0].text for column in needed)
        assert list(missing_columns(in_memory(Path("x"), "JSON lines", kept))) == []


def test_no_export_that_nsys_ever_wrote_lacks_such_a_column() -> None:
    lacking = [
        (schema, table, column)
        for schema, tables in schemas().items()
        for table, columns in tables.items()
        for column in NEEDED.get(table, ())
        if column
        not in {told.rstrip("!").removesuffix(":text").removesuffix(":real") for told in columns}
    ]
    assert lacking == []
