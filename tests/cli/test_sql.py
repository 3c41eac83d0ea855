"""`nsysmap sql`: one SELECT over the declared tables, in every form, and nothing else."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.schema import ALL_TABLES
from nsysmap.output.query import SHOWN_ROWS, answer_text, rest_words, write_answer
from nsysmap.rules import select as select_module
from nsysmap.rules.select import asked_among, checked_select, select
from nsysmap.text.terminal import columns
from tests.commands import run
from tests.places import FIXTURES

CAPTURE = FIXTURES / "bert_trt10"
FILES = (CAPTURE / "sync.sqlite", CAPTURE / "engine.json")
TOP = "SELECT layer_index, name, time_ns FROM layers ORDER BY time_ns DESC, layer_index LIMIT 2"
ROWS = [
    {
        "layer_index": 32,
        "name": "/bert/encoder/layer.3/intermediate/dense/MatMul_myl0_32",
        "time_ns": 8634,
    },
    {
        "layer_index": 50,
        "name": "/bert/encoder/layer.5/intermediate/dense/MatMul_myl0_50",
        "time_ns": 8631,
    },
]


def test_the_rows_in_every_form_are_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outputs = [
        part for suffix in ("csv", "json", "parquet") for part in ("-o", tmp_path / f"top.{suffix}")
    ]
    assert run(capfd, "sql", *FILES, TOP, *outputs).status == 0
    assert json.loads((tmp_path / "top.json").read_text()) == ROWS
    assert pq.read_table(tmp_path / "top.parquet").to_pylist() == ROWS
    told = list(csv.DictReader(io.StringIO((tmp_path / "top.csv").read_text())))
    assert told == [{key: str(value) for key, value in row.items()} for row in ROWS]
    text = run(capfd, "sql", TOP, *reversed(FILES)).out.splitlines()
    assert text[0].split() == ["layer_index", "name", "time_ns"]
    assert [line.split() for line in text[1:]] == [
        [str(value) for value in row.values()] for row in ROWS
    ]
    assert json.loads(run(capfd, "sql", *FILES, TOP, "--json").out) == ROWS


def test_without_a_statement_every_table_and_column_is_listed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = run(capfd, "sql").out
    for spec in ALL_TABLES:
        assert f"{spec.name}: " in told
    assert all(column.name in told for spec in ALL_TABLES for column in spec.columns)
    assert "kernels (2,800 rows): " in run(capfd, "sql", *FILES).out


def test_a_table_s_name_describes_its_columns_with_their_units(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = run(capfd, "sql", "gaps").out
    assert "dur_ns             int (ns)               how long" in told
    assert "before_kernel      int, may be NULL" in told


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("COPY kernels TO 'x'", "is not a SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
        ("SELECT nothing FROM kernels", "nothing"),
        ("SELECT 1 AS a; SELECT 2 AS b", "2 statements"),
        ("SELECT * FROM layres", "which does not exist; did you mean layers"),
        ("SELECT * FROM x", "which does not exist; there are api_calls, attention"),
        ("DESCRIBE layers", "as `nsysmap sql` and `nsysmap sql TABLE` do"),
        ("layres", "layres: is neither a file nor a table; did you mean the table layers"),
    ],
)
def test_a_wrong_statement_is_one_line_before_anything_is_read(
    sql: str, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(capfd, "sql", "none.nsys-rep", sql)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err


def test_a_statement_without_a_report_and_an_output_without_a_statement_are_refused(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert "needs a REPORT" in run(capfd, "sql", "SELECT 1 AS one").err
    assert "need a SELECT" in run(capfd, "sql", *FILES, "--csv").err


def test_a_path_is_no_statement_and_a_statement_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").touch()
    (tmp_path / "a b").touch()
    assert asked_among(["kernels", "a b", "my run.nsys-rep"]).files == (
        "kernels",
        "a b",
        "my run.nsys-rep",
    )
    assert asked_among(["engine.json", "some/layers"]).files == ("engine.json", "some/layers")
    assert asked_among(["a b", "FROM layers"]).sql == "FROM layers"
    assert asked_among(["-"]).sql == "-"
    with pytest.raises(NsysmapError, match="given twice"):
        asked_among(["FROM layers", "FROM kernels"])


def test_an_answer_without_end_is_stopped_at_its_size_and_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(select_module, "ANSWER_LIMIT_BYTES", 4 << 20)
    with pytest.raises(NsysmapError, match="returns more than 4 MiB"):
        select("SELECT * FROM range(1000000000000)", {})
    started = time.monotonic()
    with pytest.raises(NsysmapError, match=r"time limit of 0\.2 s"):
        select(
            "SELECT count(*) AS n FROM range(100000000) a, range(1000000) b", {}, time_limit_s=0.2
        )
    assert time.monotonic() - started < 30
    # a fine statement that takes long is no mistake
    with checked_select("SELECT count(*) AS n FROM range(100000000) a, range(1000000) b"):
        pass
    assert threading.active_count() < 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_long_query_ends_at_a_signal(number: int) -> None:
    """The engine would not look at it for as long as it recurses."""
    endless = (
        "WITH RECURSIVE t(n) AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT max(n) AS n"
        " FROM t"
    )
    code = (
        f"import nsysmap.rules.select as module, signal, sys\nsignal.signal({int(number)}, lambda"
        " *_: sys.exit(7))\nmodule.Sandbox.parse = lambda self, sql, real=module.Sandbox.parse:"
        f" (real(self, sql), print('up', flush=True))[0]\nmodule.select({endless!r}, {{}})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(1)
    started = time.monotonic()
    process.send_signal(number)
    assert process.wait(timeout=60) == 7
    assert time.monotonic() - started < 20


def test_sums_are_integers_and_no_two_columns_have_one_name() -> None:
    told = select(
        "SELECT sum(a.range) AS s, 1 AS x, 2 AS x, 3 AS x_2, 'é' AS t, NULL AS n FROM range(4) a",
        {},
    )
    assert told.to_pylist() == [{"s": 6, "x": 1, "x_3": 2, "x_2": 3, "t": "é", "n": None}]


def test_a_terminal_s_lines_fit_and_different_names_stay_different() -> None:
    names = [f"/encoder/layer.{number}/attention/self/query/MatMul" for number in range(12)]
    answer = pa.table({"name": names, "time_ns": list(range(12))})
    lines = answer_text(answer, width=40).splitlines()
    assert max(map(columns, lines)) <= 40
    assert len(set(lines)) == 13
    assert answer_text(answer).count("/encoder/layer.11/attention/self/query/MatMul") == 1


def test_rows_that_cannot_fit_are_shown_as_lines_of_their_own_and_whole() -> None:
    answer = pa.table({f"column_{number}": ["value " * 9] for number in range(9)})
    text = answer_text(answer, width=60)
    assert text.startswith("row 1\ncolumn_0  value")
    assert max(map(columns, text.splitlines())) <= 60
    assert text.count("value") == 81


def test_a_terminal_shows_so_many_rows_and_says_so() -> None:
    answer = pa.table({"n": list(range(SHOWN_ROWS + 3))})
    assert answer_text(answer, width=80).count("\n") == SHOWN_ROWS + 1
    assert rest_words(answer) == "3 more rows: add --csv, or -o FILE.csv, .json or .parquet"
    assert answer_text(answer).count("\n") == SHOWN_ROWS + 4
    assert rest_words(answer.slice(0, 3)) is None


def test_no_value_is_never_an_empty_text_and_names_drive_no_terminal(tmp_path: Path) -> None:
    answer = pa.table(
        {"t": [None, "", 'a"b,\n', "\x1b[31m", "=1+1"], "f": [float("nan"), 1e300, 0.5, None, None]}
    )
    assert answer_text(answer).splitlines()[1].split() == ["NULL", "NULL"]
    assert "\x1b" not in answer_text(answer)
    write_answer(answer, tmp_path / "a.csv")
    assert (
        tmp_path / "a.csv"
    ).read_text() == 't,f\n,\n"",1e+300\n"a""b,\\n",0.5\n\\x1b[31m,\n\'=1+1,\n'
    write_answer(answer, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())[0] == {"t": None, "f": None}
