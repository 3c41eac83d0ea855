"""A trace is the same whether nsys exported it to SQLite, to a folder of tables, to one Arrow file
or to JSON lines.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, Table
from nsysmap.inputs.nsys.arrow_tables import _damage
from nsysmap.inputs.nsys.forms import exported_tables
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace
from tests.nsys_file import NsysFile, engine_call
from tests.places import CAPTURES, FIXTURES
from tests.reports import read_trace

TABLES = (
    "kernels", "api_calls", "nvtx_ranges", "memcpys", "memsets", "syncs", "cuda_graph_nodes",
    "cuda_graph_traces", "overheads",
    "osrt_calls", "devices",
)  # fmt: skip
REPORTS = [
    path
    for path in (
        FIXTURES / "bert_trt10" / "graph.nsys-rep",
        CAPTURES / "bert_split_trt10" / "pageable.nsys-rep",
        CAPTURES / "two_processes" / "processes.nsys-rep",
    )
    if path.exists()
]
needs_nsys = pytest.mark.skipif(
    shutil.which("nsys") is None, reason="nsys is not installed on this machine"
)


def exported(report: Path, form: str, folder: Path) -> Path:
    made = folder / form
    subprocess.run(
        ["nsys", "export", "-t", form, "-q", "true", "-o", made, report],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return made


def same(one: Table, other: Table) -> bool:
    """Whether two tables hold the same; codes of texts may differ."""
    return all(
        (
            one.text(column.name).list() == other.text(column.name).list()
            if column.kind == "text"
            else bool(np.array_equal(one.columns[column.name], other.columns[column.name]))  # type: ignore[arg-type]
        )
        for column in one.spec.columns
    )


def differing(one: Trace, other: Trace, but: tuple[str, ...] = ()) -> list[str]:
    return [
        name
        for name in TABLES
        if name not in but and not same(getattr(one, name), getattr(other, name))
    ]


@needs_nsys
@pytest.mark.parametrize("form", ["parquetdir", "arrowdir", "arrow"])
@pytest.mark.parametrize("report", REPORTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_nsys_writes_as_folders_is_what_it_writes_as_sqlite(
    tmp_path: Path, report: Path, form: str
) -> None:
    truth = read_trace(exported(report, "sqlite", tmp_path))
    trace = open_trace(exported(report, form, tmp_path))
    assert differing(trace, truth) == []
    assert set(trace.absent) == set(truth.absent)
    assert (trace.nsys_version, trace.schema_version) == (truth.nsys_version, truth.schema_version)
    assert trace.recording.form == ("Parquet" if form == "parquetdir" else "Arrow")
    assert trace.notes == ()


@needs_nsys
@pytest.mark.parametrize("separate", ["true", "false"])
@pytest.mark.parametrize("report", REPORTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_nsys_writes_as_json_lines_is_what_it_writes_as_sqlite_but_for_what_they_leave_out(
    tmp_path: Path, report: Path, separate: str
) -> None:
    made = tmp_path / "x.json"
    command: list[str | Path] = [
        "nsys",
        "export",
        "-t",
        "json",
        "-q",
        "true",
        f"--separate-strings={separate}",
        "-o",
        made,
        report,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    truth, trace = read_trace(exported(report, "sqlite", tmp_path)), open_trace(made)
    assert differing(trace, truth, but=("devices", "cuda_graph_traces")) == []
    assert (len(trace.devices), trace.nsys_version, trace.recording.form) == (0, None, "JSON lines")
    assert [note.level for note in trace.notes] == ["info"]
    assert "devices" in trace.absent


@needs_nsys
def test_json_lines_show_whole_graphs_that_sqlite_of_nsys_2023_leaves_out(tmp_path: Path) -> None:
    report = FIXTURES / "bert_trt10" / "graph_whole.nsys-rep"
    trace = open_trace(exported(report, "json", tmp_path))
    assert len(trace.cuda_graph_traces) == 50
    assert len(read_trace(exported(report, "sqlite", tmp_path)).cuda_graph_traces) == 0


def as_folder(export: Path, folder: Path, form: str) -> Path:
    """The folder that holds an SQLite export's tables in that form, with nsys's types."""
    folder.mkdir()
    with closing(sqlite3.connect(export)) as connection:
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            cursor = connection.execute(f"SELECT * FROM {table}")
            names, rows = [column[0] for column in cursor.description], cursor.fetchall()
            values = list(zip(*rows, strict=True)) or [()] * len(names)
            types = [
                (
                    pa.string()
                    if ("ext" in name and "Id" not in name) or name in ("name", "value")
                    else None
                )
                for name in names
            ]
            types = [
                pa.uint64() if name in ("globalTid", "globalPid") else kind
                for name, kind in zip(names, types, strict=True)
            ]
            arrays = [
                pa.array(column, kind or pa.int64())
                for column, kind in zip(values, types, strict=True)
            ]
            held = pa.Table.from_arrays(arrays, names)
            if form == "parquet":
                pq.write_table(
                    held, folder / f"{table}.parquet", row_group_size=3, compression=None
                )
            else:
                with (
                    pa.OSFile(str(folder / f"{table}.arrow"), "wb") as sink,
                    pa.ipc.new_stream(sink, held.schema) as writer,
                ):
                    writer.write_table(held, max_chunksize=3)
    return folder


def small() -> NsysFile:
    file = NsysFile()
    file.domain("TensorRT", 1)
    for call in range(3):
        engine_call(
            file,
            1000 * (call + 1),
            [("conv1", "k1"), ("größer", "k2"), ("", "k3")],
            10 * (call + 1),
        )
    file.range("open", 50, None, payload='{"Name": "a"}')
    file.kernel("late", 9000, None)
    return file


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_rows_in_many_groups_null_and_empty_text_and_any_case_of_letters(
    tmp_path: Path, form: str
) -> None:
    export = small().write(tmp_path / "x.sqlite")
    folder = as_folder(export, tmp_path / form, form)
    assert differing(open_trace(folder), read_trace(export)) == []
    for path in folder.iterdir():
        path.rename(path.with_name(path.name.lower()))
    assert differing(open_trace(folder), read_trace(export)) == []


def test_ids_beyond_63_bits_keep_their_bits_and_reals_that_are_integers_are_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "t").mkdir()
    columns = {
        "unsigned": pa.array([2**64 - 1, None, 5], pa.uint64()),
        "real": pa.array([1.0, None, float("nan")]),
        "small": pa.array([1, None, -3], pa.int8()),
        "none": pa.nulls(3),
        "flag": pa.array([True, None, False]),
        "coded": pa.array(["a", None, "a"]).dictionary_encode(),
        "half": pa.array([0.5, 1.0, 2.0]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t" / "StringIds.parquet")
    tables = exported_tables(tmp_path / "t")
    assert tables is not None
    read = tables.read(
        "StringIds", ("unsigned", "real", "small", "none", "flag", "absent"), ("coded", "none")
    )
    assert [read[name].tolist() for name in ("unsigned", "real", "small", "flag", "absent")] == [
        [-1, MISSING, 5], [1, MISSING, MISSING], [1, MISSING, -3], [1, MISSING, 0], [MISSING] * 3,
    ]  # fmt: skip
    assert read["coded"].list() == ["a", None, "a"]
    for name, kind in (("half", "real numbers"), ("coded", "not integers")):
        with pytest.raises(NsysmapError, match=kind):
            tables.read("StringIds", (name,))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("kept", [0.2, 0.6, 0.99])
def test_a_table_that_is_cut_short_is_refused_by_its_name(
    tmp_path: Path, form: str, kept: float
) -> None:
    folder = as_folder(small().write(tmp_path / "x.sqlite"), tmp_path / form, form)
    (damaged,) = folder.glob("CUPTI_ACTIVITY_KIND_KERNEL.*")
    content = damaged.read_bytes()
    damaged.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(NsysmapError, match=r"CUPTI_ACTIVITY_KIND_KERNEL\.\w+: cannot be read"):
        open_trace(folder)


def test_a_folder_of_something_else_one_table_and_other_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    folder = as_folder(small().write(tmp_path / "x.sqlite"), tmp_path / "p", "parquet")
    (tmp_path / "lines.jsonl").write_text('{"Type":79,"OtherEvent":{}}\n')
    for path, told in (
        (tmp_path / "empty", "is a folder without nsys tables"),
        (folder / "StringIds.parquet", "is one table of an exported report; give the folder"),
        (tmp_path / "lines.jsonl", r"JSON lines in an unknown layout \(OtherEvent\)"),
    ):
        with pytest.raises(NsysmapError, match=told):
            open_trace(path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"Type":79,"CudaEvent":{"startNs":"x","kernel":{}}}', "line 2 is not an nsys event"),
        ('{"Type":79,"CudaEvent":{"startNs":[],"kernel":{}}}', "line 2 is not an nsys event"),
        (
            '{"Type":79,"CudaEvent":{"startNs":"99999999999999999999999","kernel":{}}}',
            "line 2 is not an nsys event",
        ),
        ('{"Type":79,"CudaEv', r"line 2 is not JSON \(the file is cut short\)"),
        ("7", "line 2 is not an nsys event"),
        ("[" * 100_000, "line 2 is not JSON"),
    ],
)
def test_a_line_that_is_no_event_is_refused_by_its_number(
    tmp_path: Path, line: str, told: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"data":["a"]}\n' + line)
    with pytest.raises(NsysmapError, match=told):
        open_trace(path)


def test_a_line_names_the_file_s_own_values(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    kernel = {"demangledName": "1", "gridX": 2, "blockX": 3}
    body = {
        "startNs": "10",
        "endNs": "15",
        "correlationId": 4,
        "globalPid": "18446744073709551615",
        "streamId": "7",
        "kernel": kernel,
    }
    path.write_text(
        '{"data":["[Unknown]","k"]}\n'
        + json.dumps({"Type": 79, "CudaEvent": body}, separators=(",", ":"))
        + "\n"
    )
    (row,) = open_trace(path).kernels.records()
    assert (
        row["name"],
        row["start_ns"],
        row["end_ns"],
        row["grid_x"],
        row["stream"],
        row["process"],
    ) == ("k", 10, 15, 2, 7, ~0xFFFFFF)


def test_a_memset_in_json_lines_has_its_memory_and_its_graph_node(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    memset = {"sizebytes": "64", "value": 3, "memKind": 1, "graphNodeId": "9"}
    body = {"startNs": "10", "endNs": "15", "correlationId": 4, "streamId": "7", "memset": memset}
    path.write_text(json.dumps({"Type": 79, "CudaEvent": body}, separators=(",", ":")) + "\n")
    (row,) = open_trace(path).memsets.records()
    assert (row["bytes"], row["target"], row["graph_node_id"]) == (64, "pinned", 9)


def test_an_unknown_layout_is_told_by_its_first_four_kinds_of_events(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"Type":79,"Kind{number}Event":{{}}}}\n' for number in range(6)))
    with pytest.raises(NsysmapError) as refused:
        open_trace(path)
    told = str(refused.value)
    assert [f"Kind{number}Event" in told for number in range(6)] == [True] * 4 + [False] * 2


def test_what_a_library_says_of_a_damaged_file_is_cut_to_its_first_line() -> None:
    with pytest.raises(NsysmapError, match=r"cannot be read") as caught, _damage(Path("t.arrow")):
        raise OSError("z" * 500 + "\nmore")
    assert str(caught.value).count("z") == 200
    assert "more" not in str(caught.value)
