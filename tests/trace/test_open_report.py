"""Who reads a report: nsys, or nsysmap itself; both give the same."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from nsysmap.cli.inputs import reader_option
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import Table, Text
from nsysmap.inputs.nsys import program
from nsysmap.inputs.nsys.own_reader import FORM
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import Reader, open_trace
from tests.places import FIXTURES

REPORTS = sorted(FIXTURES.glob("*/*.nsys-rep"))
needs_nsys = pytest.mark.skipif(
    shutil.which("nsys") is None, reason="no nsys is installed to compare with"
)


@pytest.fixture
def no_nsys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(program, "INSTALL_FOLDERS", ())


def tables(trace: Trace) -> dict[str, Table]:
    return {
        field.name: value
        for field in fields(trace)
        if isinstance(value := getattr(trace, field.name), Table)
    }


def differing(ours: Table, theirs: Table) -> list[str]:
    def rows(column: object) -> object:
        return column.list() if isinstance(column, Text) else np.asarray(column).tolist()

    return [name for name in ours.columns if rows(ours.columns[name]) != rows(theirs.columns[name])]


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_our_own_reader_gives_what_the_export_has(report: Path) -> None:
    export = report.with_suffix(".sqlite")
    if not export.exists() and shutil.which("nsys") is None:
        pytest.skip("no nsys is installed to export it")
    try:
        theirs = tables(
            open_trace(export) if export.exists() else open_trace(report, reader="nsys")
        )
    except NsysmapError as error:
        if "cannot be read by nsys" not in str(error):
            raise
        pytest.skip("the nsys that is installed is older than the report")
    ours = tables(open_trace(report, reader="own"))
    if not len(theirs["cuda_graph_traces"]):  # nsys 2023.4 leaves them out of its exports
        del ours["cuda_graph_traces"]
    assert {
        name: differing(table, theirs[name])
        for name, table in ours.items()
        if differing(table, theirs[name])
    } == {}


@pytest.mark.usefixtures("no_nsys")
def test_without_nsys_a_report_is_read_by_ourselves_and_says_so() -> None:
    trace = open_trace(FIXTURES / "bert_trt10" / "sync.nsys-rep")
    assert (trace.recording.form, trace.nsys_version, len(trace.kernels)) == (
        FORM,
        "2023.4.4.54",
        2800,
    )


@needs_nsys
def test_a_report_newer_than_the_nsys_installed_is_read_by_ourselves() -> None:
    trace = open_trace(FIXTURES / "newer" / "bert_sync.nsys-rep")
    assert trace.recording.form == FORM
    assert (trace.nsys_version or "").startswith("2025.3")


@needs_nsys
def test_nsys_reads_what_it_can_and_only_it_where_it_is_asked_for() -> None:
    assert open_trace(FIXTURES / "bert_trt10" / "sync.nsys-rep").recording.form == "nsys-rep"
    with pytest.raises(NsysmapError, match="read by nsys"):
        open_trace(FIXTURES / "newer" / "bert_sync.nsys-rep", reader="nsys")


@needs_nsys
def test_executions_of_whole_graphs_that_the_export_leaves_out_come_from_the_report() -> None:
    path = FIXTURES / "bert_trt10" / "graph_whole.nsys-rep"
    assert len(open_trace(path, reader="nsys").cuda_graph_traces) == 0
    trace = open_trace(path)
    assert len(trace.cuda_graph_traces) == 50
    assert any("from the report itself" in note.text for note in trace.notes)
    assert (trace.cuda_graph_traces.ints("launch") >= 0).all()


@pytest.mark.usefixtures("no_nsys")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"NVIDIA Tegra Profiler Report 1.\n" + b"\0" * 4000, "is cut off"),
        (b"\x1f\x8b123", "compressed with gzip"),
    ],
)
def test_what_is_no_report_is_named_without_nsys_too(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "x.nsys-rep"
    path.write_bytes(content)
    with pytest.raises(NsysmapError, match=told):
        open_trace(path)


def test_the_command_line_offers_the_readers_that_there_are() -> None:
    def command() -> None: ...

    (option,) = reader_option(command).__click_params__  # type: ignore[attr-defined]
    assert tuple(option.type.choices) == get_args(Reader)
