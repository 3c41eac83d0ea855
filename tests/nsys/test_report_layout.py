"""Which field of an event is which column: the smallest capture beside what nsys exports of it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from nsysmap.inputs.nsys.report_layout import (
    API_CALL,
    CLASS_FIELD,
    CPU_SAMPLE,
    CUDA,
    KINDS,
    KNOWN_BODIES,
    KNOWN_CLASSES,
    SCHEDULING,
    UNIT,
    EventKind,
)
from nsysmap.inputs.nsys.report_tables import read_report
from tests.nsys.test_own_reader import values
from tests.places import FIXTURES, ROOT


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


# --- the page about the format is what is read
# ----------------------------------------------------------------------

PAGE = (ROOT / "docs" / "nsys-rep.md").read_text("utf-8")
CALLED = {  # on the page → the columns of an export
    "grid": ("gridX", "gridY", "gridZ"),
    "block": ("blockX", "blockY", "blockZ"),
    "syncType until 2024": ("deprecatedSyncType",),
    "uint64": ("uint64Value",),
    "int64": ("int64Value",),
    "uint32": ("uint32Value",),
    "int32": ("int32Value",),
    "event type": ("eventType",),
    "time": ("timestamp",),
    "time is in": (UNIT,),
    "short name": ("name",),
}
NOT_READ = {
    "class", "arguments", "backtrace", "sharedMemoryConfig", "payload", "double", "float", "in ns",
}  # fmt: skip


def fields_of(text: str) -> dict[str, int]:
    """What the page says of a message: the column of each field."""
    found: dict[str, int] = {}
    for number, _, word in re.findall(
        r"(?<![\w.])(\d+)(–\d+)?(?: =)? \**"
        r"(event type|syncType until 2024|time is in|short name|in ns|[a-zA-Z]\w*)",
        text,
    ):
        for at, column in enumerate(CALLED.get(word, (word,))):
            found.setdefault(column, int(number) + at)
    return {column: number for column, number in found.items() if column not in NOT_READ}


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def row_of(heading: str, table: str) -> list[str]:
    """The row of a table of the page below a heading that names one of our tables."""
    section = PAGE.partition(heading)[2].partition("\n### ")[0]
    return next(
        cells(line)
        for line in section.splitlines()
        if line.startswith("|") and any(one.split(" ")[0] == table for one in cells(line))
    )


def told(kind: EventKind) -> dict[str, int]:
    return {**kind.columns, **kind.texts}


GPU = [kind for kind in KINDS if kind.body == CUDA]
CALLS = [kind for kind in KINDS if kind.body == API_CALL]


@pytest.mark.parametrize("kind", GPU, ids=lambda one: one.table)
def test_the_page_says_where_work_on_the_gpu_has_its_columns(kind: EventKind) -> None:
    line = PAGE.partition("### 107: work")[2].partition("\n\n")[2].partition("\n")[0]
    assert told(kind) == fields_of(line)
    class_, _, field, _, inside = row_of("### 107: work", kind.table.rpartition("KIND_")[2])
    assert kind.classes == (int(class_),)
    assert kind.part == int(field)
    within = fields_of(inside.partition("31–36")[0])
    page = {name: within[name] for name in kind.part_columns}
    assert dict(kind.part_columns) == page


@pytest.mark.parametrize("kind", CALLS, ids=lambda one: f"{one.table}{one.classes}")
def test_the_page_says_where_calls_have_their_columns(kind: EventKind) -> None:
    line = PAGE.partition("### 108: calls")[2].partition("\n\n")[2].partition("\n")[0]
    page = fields_of(line) | {"eventClass": 6}
    assert told(kind) == {name: page[name] for name in told(kind)}
    row = row_of("### 108: calls", kind.table.rpartition("KIND_")[2])
    assert set(kind.classes) <= set(map(int, re.findall(r"\d+", row[0])))
    if kind.part:
        inside = re.search(rf"\b{kind.part} = \{{([^}}]*)\}}", row[-1])
        assert inside is not None
        assert dict(kind.part_columns) == fields_of(inside[1])
        assert kind.classes[0] - int(re.findall(r"\d+", row[0])[0]) == (
            [int(one) for one in re.findall(r"(\d+) = ", row[-1])].index(kind.part)
        )


@pytest.mark.parametrize(
    ("table", "begins", "part"),
    [
        ("NVTX_EVENTS", "### 102", 8),
        ("DIAGNOSTIC_EVENT", "Diagnostic: ", 1),
        ("PROCESSES", "Process: ", 0),
    ],
)
def test_the_page_says_where_ranges_diagnostics_and_processes_have_theirs(
    table: str, begins: str, part: int
) -> None:
    [kind] = [one for one in KINDS if one.table == table]
    text = PAGE.partition(begins)[2].partition("\n\n" if begins != "### 102" else "\n### ")[0]
    text = re.sub(r"\(as outside[^)]*\)", "", text)
    assert kind.part == part
    if begins.endswith(": "):
        text = text.partition(". ")[0] if table == "PROCESSES" else text.partition(" Process:")[0]
    inside = re.search(rf"\b{part} = (?:payload )?\{{([^}}]*)\}}", text) if part else None
    outside = fields_of(text.replace(inside[0], "") if inside else text)
    assert told(kind) == {name: outside[name] for name in told(kind)}
    if inside:
        within = fields_of(inside[1])
        assert dict(kind.part_columns) == {name: within[name] for name in kind.part_columns}


def test_the_page_names_every_body_and_where_it_has_its_class() -> None:
    section = PAGE.partition("| body | what |")[2].partition("\n\n")[0]
    rows = [cells(line) for line in section.splitlines()[2:]]
    read = {int(body): class_ for body, _, class_, tables in rows if "not read" not in tables}
    assert set(read) == {*(kind.body for kind in KINDS), CPU_SAMPLE}
    assert {body: int(at) for body, at in read.items() if at.isdigit()} == CLASS_FIELD
    [known] = [body for body, _, _, tables in rows if "not read" in tables]
    assert {int(one) for one in known.split(", ")} == set(KNOWN_BODIES) - {CPU_SAMPLE}
    assert {body: what for body, (what) in KNOWN_BODIES.items() if body == 106} == {
        106: KNOWN_BODIES[SCHEDULING]
    }


def test_a_class_that_is_known_is_no_surprise_and_another_is() -> None:
    assert {0, 96, 102, 107, 110} <= KNOWN_CLASSES
    assert KNOWN_CLASSES.isdisjoint({97, 101, 103, 106, 111, 200})
