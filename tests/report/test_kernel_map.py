"""The map file: one row a kernel, the same in every format, whole or not at all, and never over an
input.
"""

from __future__ import annotations

import csv
import io
import json
import stat
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.core.output_file import check_output, replacing
from nsysmap.core.result_schema import COVERAGE, KERNELS
from nsysmap.core.table import Table
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_report
from nsysmap.output.kernel_map import COLUMNS, coverage_line, write_map, write_rows
from nsysmap.text.terminal import escaped
from tests.places import FIXTURES

REQUIRED = [
    "kernel_id", "start_ns", "end_ns", "device", "stream", "pid", "inference", "position",
    "kernel", "layer_index", "layer", "part",
    "method", "confidence", "reason",
]  # fmt: skip
NASTY = [
    'a"b',
    "a,b",
    "line\nbreak",
    "\r",
    "=1+1",
    "<script>",
    " é𝒳",
    "\x1b[31m",
    "null",
    "",
    "\\",
    "a;b\tc",
    '"',
]


def kernels(*rows: Mapping[str, object]) -> Table:
    return Table.of_rows(
        KERNELS,
        [
            {"kernel_id": number, "method": "none", "name": "k", **row}
            for number, row in enumerate(rows)
        ],
    )


def as_csv(table: Table) -> list[dict[str, str]]:
    file = io.BytesIO()
    write_rows(table, file)
    return list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))


def as_json(table: Table) -> list[dict[str, object]]:
    file = io.BytesIO()
    write_rows(table, file, as_json=True)
    read: list[dict[str, object]] = json.loads(file.getvalue())
    return read


def test_every_kernel_of_a_capture_is_one_row_with_its_true_layer(tmp_path: Path) -> None:
    mapped = map_report(
        FIXTURES / "bert_trt10" / "sync.sqlite",
        [read_engine(FIXTURES / "bert_trt10" / "engine.json")],
    )
    write_map(mapped.kernels, tmp_path / "map.csv")
    rows = list(csv.DictReader((tmp_path / "map.csv").open(newline="")))
    truth = list(
        csv.DictReader(
            (FIXTURES / "bert_trt10" / "truth.tsv").open(newline=""),
            delimiter="\t",
            quoting=csv.QUOTE_NONE,
        )
    )
    assert set(REQUIRED) <= set(rows[0])
    assert len(rows) == len(mapped.kernels) == 2800
    assert [row["layer_index"] for row in rows] == [
        truth[i % len(truth)]["layer_index"] for i in range(len(rows))
    ]
    assert [row["kernel_id"] for row in rows] == [str(i) for i in range(len(rows))]


def test_the_three_formats_hold_the_same_values(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    mapped = map_report(
        FIXTURES / "bert_trt85" / "sync.sqlite",
        [read_engine(FIXTURES / "bert_trt85" / "engine.json")],
    )
    for suffix in ("csv", "json", "parquet"):
        write_map(mapped.kernels, tmp_path / f"map.{suffix}")
    from_json = json.loads((tmp_path / "map.json").read_text())
    from_csv = list(csv.DictReader((tmp_path / "map.csv").open(newline="")))
    assert pq.read_table(tmp_path / "map.parquet").to_pylist() == from_json
    assert [
        {key: "" if value is None else str(value) for key, value in row.items()}
        for row in from_json
    ] == from_csv
    assert list(from_json[0]) == list(COLUMNS)


def test_no_value_is_an_empty_cell_in_csv_and_null_in_json() -> None:
    table = kernels(
        {"layer": "conv", "layer_index": 3, "method": "nvtx", "confidence": 1.0},
        {"reason": "no range"},
    )
    assert [(row["layer_index"], row["layer"], row["reason"]) for row in as_csv(table)] == [
        ("3", "conv", ""),
        ("", "", "no range"),
    ]
    assert [(row["layer_index"], row["layer"], row["reason"]) for row in as_json(table)] == [
        (3, "conv", None),
        (None, None, "no range"),
    ]


@pytest.mark.parametrize("name", NASTY)
def test_names_are_data_and_json_holds_them_exactly_as_they_are(name: str) -> None:
    table = kernels({"name": name, "layer": name, "part": name, "reason": name})
    assert [as_json(table)[0][column] for column in ("kernel", "layer", "part", "reason")] == [
        name
    ] * 4
    assert [as_csv(table)[0][column] for column in ("kernel", "layer", "part", "reason")] == [
        in_a_cell(name)
    ] * 4


def in_a_cell(name: str) -> str:
    """What a reader of CSV gets for a name."""
    shown = escaped(name)
    return "'" + shown if shown[:1] in ("=", "+", "-", "@") and shown else shown


@pytest.mark.parametrize(
    "name",
    [
        "=cmd|'/C calc'!A0",
        "+1",
        "-1+2",
        "@SUM(A1)",
        "\x1b]0;title\x07",
        "a\rb",
        "nul\0",
        "\u202eback",
    ],
)
def test_a_cell_is_no_formula_and_drives_no_terminal(name: str) -> None:
    cell = str(as_csv(kernels({"name": name}))[0]["kernel"])
    assert cell[0] not in "=+-@"
    assert cell.isprintable()


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.integers(0, 3),
        ),
        max_size=30,
    )
)
def test_any_combination_of_names_survives_the_round_trip(rows: list[tuple[str, int]]) -> None:
    table = kernels(
        *(
            {"name": name, "layer": name[::-1] or None, "device": number, "start_ns": number}
            for name, number in rows
        )
    )
    for read, held in ((as_csv(table), in_a_cell), (as_json(table), str)):
        told = [(row["kernel"], row["layer"] or "", str(row["device"])) for row in read]
        assert told == [(held(n), held(n[::-1]), str(d)) for n, d in rows]


def test_many_batches_of_rows_keep_their_order_and_their_layers() -> None:
    table = kernels({"layer": "a", "confidence": 0.123456}, {"layer": "b"}).take(
        np.arange(50_000) % 2
    )
    for read in (as_csv(table), as_json(table)):
        assert [row["layer"] for row in read] == ["a", "b"] * 25_000
        assert float(str(read[0]["confidence"])) == 0.1235


def test_a_map_without_kernels_is_still_a_whole_file() -> None:
    assert as_csv(kernels()) == []
    assert as_json(kernels()) == []


def test_the_coverage_line_never_rounds_up_to_all() -> None:
    rows = [
        {"method": "nvtx", "kernels": 99_999, "time_ns": 99_999_999},
        {"method": "none", "kernels": 1, "time_ns": 1},
    ]
    line = coverage_line(Table.of_rows(COVERAGE, rows))
    assert "99,999 of 100,000" in line
    assert "99.99%" in line
    assert ", 100% of" in coverage_line(Table.of_rows(COVERAGE, rows[:1]))
    assert "visible" not in line
    told = coverage_line(Table.of_rows(COVERAGE, rows), hidden=True)
    assert told.startswith(
        "99,999 of 100,000 visible kernels have a layer, 99.99% of visible kernel time ("
    )


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "map.csv"
    target.write_text("old")
    with pytest.raises(NsysmapError, match="No space left"), replacing(target) as fresh:
        fresh.write_text("half")
        raise OSError(28, "No space left on device")
    with pytest.raises(KeyboardInterrupt), replacing(target) as fresh:
        fresh.write_text("half")
        raise KeyboardInterrupt
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"map.csv": "old"}


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_map(kernels({}), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("kernel_id,")
    assert stat.S_IMODE((tmp_path / "real.csv").stat().st_mode) == 0o640


def test_an_output_that_cannot_be_is_refused_before_any_work(tmp_path: Path) -> None:
    given_file = tmp_path / "engine.json"
    given_file.write_text("{}")
    (tmp_path / "folder.csv").mkdir()
    for name, told in (
        ("map.xlsx", "suffix"), ("map", "suffix"), ("folder.csv", "directory"),
        ("none/map.csv", "no folder"),
        ("engine.json", "one of the inputs"),
    ):  # fmt: skip
        with pytest.raises(NsysmapError, match=told):
            check_output(tmp_path / name, (".csv", ".json"), [given_file])
    check_output(tmp_path / "map.csv", (".csv", ".json"), [given_file])
