"""Bad input: one line that names the file and the remedy, exit status 2, nothing left behind, the
user's files untouched.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from nsysmap.cli import main
from nsysmap.cli.decode import decode
from nsysmap.core.errors import NsysmapError, no_such_file
from nsysmap.inputs.nsys.program import find_nsys
from tests.commands import Done, run
from tests.places import FIXTURES

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"
REPORT = FIXTURES / "bert_trt10" / "sync.nsys-rep"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
Command = Callable[..., Done]


@pytest.fixture
def nsysmap(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """`nsysmap ARGUMENTS…` in an empty folder, with an empty cache elsewhere."""
    cache = tmp_path / "cache"
    cache.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.setenv("NSYSMAP_CACHE", str(cache))
    monkeypatch.chdir(here)
    return lambda *arguments: run(capfd, *arguments)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def refuses(
    nsysmap: Command,
    bad: Path | str,
    *told: str,
    report: Path | str | None = None,
    engine: Path | str = ENGINE,
) -> None:
    """Both main commands refuse ``bad`` in one line that says all of ``told``, and leave everything
    as it was.
    """
    here = Path.cwd()
    before = contents(here)
    given = bad if report is None else report
    for arguments in (
        ("analyze", given, engine, "-o", "out.json", "-o", "out.db"),
        ("map", given, engine, "-o", "out.csv"),
    ):
        done = nsysmap(*arguments)
        assert done.status == 2, done
        assert done.out == ""
        assert done.err.count("\n") == 1, done.err
        assert done.err.startswith(f"nsysmap: {bad}: "), done.err
        assert "; " in done.err, "no remedy"
        for words in told:
            assert words in done.err
    assert contents(here) == before
    assert contents(here.parent / "cache") == {}


def altered(*statements: str) -> Path:
    """A copy of a real export with something changed."""
    path = Path("bad.sqlite")
    shutil.copy(SYNC, path)
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


# --- the report
# --------------------------------------------------------------------------------------------------


def test_a_missing_report(nsysmap: Command) -> None:
    refuses(nsysmap, "none.nsys-rep", "no such file", "check the path")


def test_a_file_that_is_not_there_suggests_its_neighbours(tmp_path: Path) -> None:
    for name in ("run_1.nsys-rep", "notes.txt", "other.nsys-rep"):
        (tmp_path / name).touch()
    told = str(no_such_file(tmp_path / "run1.nsys-rep"))
    assert "did you mean" in told and "run_1.nsys-rep" in told and "notes" not in told
    alike = str(no_such_file(tmp_path / "x.nsys-rep"))
    assert "other.nsys-rep" in alike and "notes" not in alike
    assert "folder" in str(no_such_file(tmp_path / "none" / "x.nsys-rep"))


def test_a_directory(nsysmap: Command) -> None:
    Path("reports").mkdir()
    refuses(nsysmap, "reports", "is a folder", "give the")


@pytest.mark.parametrize("name", ["notes.txt", "report.nsys-rep", "report.sqlite"])
def test_a_file_of_something_else(nsysmap: Command, name: str) -> None:
    Path(name).write_text("what we found on Tuesday\n" * 100)
    refuses(nsysmap, name, "nsys")


@pytest.mark.parametrize("name", ["report.nsys-rep", "report.sqlite"])
def test_an_empty_file(nsysmap: Command, name: str) -> None:
    Path(name).touch()
    refuses(nsysmap, name, "is empty", "copy it again")


def test_a_report_cut_short(nsysmap: Command) -> None:
    try:
        find_nsys()
    except NsysmapError:
        pytest.skip("no nsys to try to export it with")
    Path("cut.nsys-rep").write_bytes(REPORT.read_bytes()[:30_000])
    refuses(nsysmap, "cut.nsys-rep", "copy it again")


def test_an_sqlite_file_that_is_no_export(nsysmap: Command) -> None:
    with closing(sqlite3.connect("recipes.sqlite")) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
        database.commit()
    refuses(
        nsysmap,
        "recipes.sqlite",
        "has no nsys tables (found: recipes; expected: StringIds)",
        "nsys export",
    )


def test_a_truncated_sqlite_file(nsysmap: Command) -> None:
    Path("cut.sqlite").write_bytes(SYNC.read_bytes()[:300_000])
    refuses(nsysmap, "cut.sqlite", "cut short", "export the report again")


def test_an_sqlite_file_with_damaged_pages(nsysmap: Command) -> None:
    content = bytearray(SYNC.read_bytes())
    for page in range(5, len(content) // 4096, 3):
        content[page * 4096 : page * 4096 + 40] = b"\xff" * 40
    Path("damaged.sqlite").write_bytes(content)
    refuses(nsysmap, "damaged.sqlite", "cannot be read", "export the report again")


def test_a_schema_of_a_newer_major_version_is_tried_and_its_doubt_said(nsysmap: Command) -> None:
    bad = altered(
        "UPDATE META_DATA_EXPORT SET value = '4.0.0' WHERE name = 'EXPORT_SCHEMA_VERSION'"
    )
    done = nsysmap("analyze", bad, ENGINE)
    assert (done.status, done.err) == (0, "")
    assert "schema 4.0.0" in done.out


@pytest.mark.parametrize("rows", ["1", "rowid % 3 = 0", "rowid = 2700"])
def test_text_where_integers_belong(nsysmap: Command, rows: str) -> None:
    refuses(
        nsysmap,
        altered(f"UPDATE {KERNEL} SET start = 'noon' WHERE {rows}"),
        f"{KERNEL}.start",
        "export the report again",
    )


@pytest.mark.parametrize("number", ["1e300", "9e999", "0.5"])
def test_numbers_that_are_no_integers(nsysmap: Command, number: str) -> None:
    refuses(
        nsysmap,
        altered(f"UPDATE {KERNEL} SET end = {number} WHERE rowid = 5"),
        f"{KERNEL}.end",
        "export the report again",
    )


@pytest.mark.parametrize("column", ["start", "end"])
def test_a_missing_column(nsysmap: Command, column: str) -> None:
    bad = altered(f"ALTER TABLE {KERNEL} DROP COLUMN {column}")
    refuses(nsysmap, bad, f"{KERNEL} has no columns start and end (schema 3.7.2)", "newer nsysmap")


def test_strings_behind_a_view_are_not_read(nsysmap: Command) -> None:
    bad = altered(
        "ALTER TABLE StringIds RENAME TO Real", "CREATE VIEW StringIds AS SELECT * FROM Real"
    )
    told = nsysmap("analyze", bad, "--full").out
    assert "Not read: StringIds" in told
    assert "no table StringIds" in told


@pytest.mark.parametrize(
    "instead",
    [
        f"CREATE VIEW {KERNEL} AS SELECT * FROM Real",
        (
            f"CREATE VIEW {KERNEL} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM"
            " n) SELECT i AS start, i AS end FROM n"
        ),
        f"CREATE VIRTUAL TABLE {KERNEL} USING fts5(start)",
    ],
)
def test_kernels_behind_a_view_or_a_virtual_table_are_not_read(
    nsysmap: Command, instead: str
) -> None:
    bad = altered(f"ALTER TABLE {KERNEL} RENAME TO Real", instead)
    done = nsysmap("map", bad, ENGINE, "-o", "out.csv")
    assert (done.status, done.out) == (2, "")
    assert "no GPU kernels" in done.err
    told = nsysmap("analyze", bad, ENGINE, "--full")
    assert (
        f"Not read: {KERNEL}, which are views in this file but tables in what nsys writes."
        in told.out
    )
    assert "no GPU work" in " ".join(told.out.split())
    assert "Where GPU time goes" not in told.out
    assert sorted(path.name for path in Path().iterdir()) == ["bad.sqlite"]


def test_times_beyond_any_session_are_left_out_and_counted(nsysmap: Command) -> None:
    bad = altered(
        f"UPDATE {KERNEL} SET end = 9223372036854775807 WHERE rowid = 5",
        f"UPDATE {KERNEL} SET start = -9223372036854775807, end = 9223372036854775807 WHERE"
        " rowid = 7",
        f"UPDATE {KERNEL} SET end = start - 1 WHERE rowid = 9",
    )
    done = nsysmap("analyze", bad, ENGINE, "-o", "out.json", "--full")
    assert (done.status, done.err) == (0, "")
    assert "2 rows of kernels" in done.out
    assert "1 row of kernels" in done.out
    told = json.loads(Path("out.json").read_text())
    assert (told["coverage"]["kernels"], told["trace"]["dropped_rows"]) == (2797, 3)


def test_names_that_are_meant_to_harm_stay_names(nsysmap: Command) -> None:
    name = "<script>alert(1)</script>|`x`\x1b[31mred\x07\n=cmd()"
    bad = altered("CREATE TEMP TABLE t (v)", "DROP TABLE t")
    with closing(sqlite3.connect(bad)) as database:
        database.execute(
            "UPDATE StringIds SET value = ? || value WHERE id IN (SELECT demangledName FROM"
            f" {KERNEL})",
            (name,),
        )
        database.commit()
    done = nsysmap("analyze", bad, "-o", "out.json", "-o", "out.md")
    assert done.status == 0
    assert "\x1b" not in done.out + done.err
    assert "\x07" not in done.out + done.err
    assert "<script" not in Path("out.md").read_text()
    assert all(
        row["name"].startswith(name) for row in json.loads(Path("out.json").read_text())["kernels"]
    )


# --- the engine
# --------------------------------------------------------------------------------------------------


def test_a_missing_engine(nsysmap: Command) -> None:
    refuses(nsysmap, "none.json", "no such file", report=SYNC, engine="none.json")


def test_an_engine_given_as_the_report(nsysmap: Command) -> None:
    refuses(nsysmap, ENGINE, "is JSON, not a report", "give the report")


@pytest.mark.parametrize("path", [SYNC, REPORT])
def test_a_report_given_as_the_engine(nsysmap: Command, path: Path) -> None:
    refuses(
        nsysmap,
        path,
        "is a second report, not an engine",
        "give one report",
        report=SYNC,
        engine=path,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"Layers": [',
        "[]",
        '{"a": 1}',
        '{"Layers": "none"}',
        "hello",
        '{"Layers": [1, 2]}',
        "\x00\x01",
    ],
)
def test_an_engine_file_of_something_else(nsysmap: Command, text: str) -> None:
    Path("odd.json").write_text(text)
    refuses(nsysmap, "odd.json", report=SYNC, engine="odd.json")


def test_the_engine_of_another_model_is_told_first_and_nothing_is_presented_as_its(
    nsysmap: Command,
) -> None:
    capture = FIXTURES / "bert_trt103" / "graph.sqlite"
    done = nsysmap("analyze", capture, ENGINE, "-o", "out.json")
    assert done.out.split("\n")[1].startswith("Doubt       engine.json is not the engine")
    told = json.loads(Path("out.json").read_text())
    assert told["notes"][0]["level"] == "error"
    assert {row["index"] for row in told["layers"] if row["time_ns"]} == {None}
    assert (
        "error: engine.json is not the engine that ran"
        in nsysmap("map", capture, ENGINE, "-o", "out.csv").err
    )


@pytest.mark.parametrize("dimension", ["1e400", "NaN", "1000000000000000000", "-70000", '"many"'])
def test_an_engine_with_impossible_sizes(nsysmap: Command, dimension: str) -> None:
    tensor = f'{{"Name": "i", "Dimensions": [{dimension}], "Format/Datatype": "Half"}}'
    Path("odd.json").write_text(
        f'{{"Layers": [{{"Name": "x", "LayerType": "kgen", "Inputs": [{tensor}], "Outputs": []}}],'
        ' "Bindings": []}'
    )
    refuses(nsysmap, "odd.json", "dimension", report=SYNC, engine="odd.json")


def test_an_engine_whose_names_are_no_text_and_drive_terminals(nsysmap: Command) -> None:
    engine = json.loads(ENGINE.read_text())
    engine["Layers"].append(
        {**engine["Layers"][-1], "Name": "lone \ud800 surrogate \x1b[31m <b>|`"}
    )
    Path("odd.json").write_text(json.dumps(engine))
    done = nsysmap("analyze", SYNC, "odd.json", "-o", "out.json", "-o", "out.md", "-o", "out.db")
    assert (done.status, done.err) == (0, "")
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["engine"]["layers"] == 58
    assert "\x1b" not in done.out
    assert "<b>" not in Path("out.md").read_text(encoding="utf-8")
    assert nsysmap("map", SYNC, "odd.json", "-o", "out.csv").status == 0


@pytest.mark.parametrize("time", ["NaN", "Infinity", "1e400", '"soon"'])
def test_a_profile_with_times_that_are_none(nsysmap: Command, time: str) -> None:
    Path("profile.json").write_text(
        f'[{{"count": 1}}, {{"name": "x", "timeMs": 1, "averageMs": {time}, "percentage": 1}}]'
    )
    done = nsysmap("analyze", SYNC, ENGINE, "--profile", "profile.json", "-o", "out.json")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("nsysmap: profile.json: ")
    assert list(contents(Path())) == ["profile.json"]


def test_a_profile_without_its_engine(nsysmap: Command) -> None:
    done = nsysmap("analyze", SYNC, "--profile", FIXTURES / "bert_trt10" / "profile.json")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "exactly one engine" in done.err


# --- the output
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["analyze", "map"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("out.xlsx", "suffix"),
        ("out", "suffix"),
        ("none/out.json", "no folder"),
        ("folder.json", "directory"),
    ],
)
def test_an_output_that_cannot_be(nsysmap: Command, command: str, name: str, told: str) -> None:
    Path("folder.json").mkdir()
    done = nsysmap(command, SYNC, ENGINE, "-o", name)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"nsysmap: {name}: ")
    assert told in done.err
    assert contents(Path()) == {}


@pytest.mark.parametrize("command", ["analyze", "map"])
def test_an_input_is_never_overwritten(nsysmap: Command, command: str) -> None:
    shutil.copy(ENGINE, "engine.json")
    Path("link.json").symlink_to("engine.json")
    before = contents(Path())
    for name in ("engine.json", "./engine.json", "link.json"):
        done = nsysmap(command, SYNC, "engine.json", "-o", name)
        assert done.status == 2
        assert "of the inputs" in done.err
    assert contents(Path()) == before


@pytest.mark.parametrize("command", ["analyze", "map"])
def test_no_engine_profile_or_export_is_overwritten_even_where_it_is_not_an_input(
    nsysmap: Command, command: str
) -> None:
    shutil.copy(ENGINE, "engine.json")
    shutil.copy(ENGINE.with_name("profile.json"), "profile.json")
    for path in ("engine.json", "profile.json"):
        before = contents(Path())
        done = nsysmap(command, SYNC, "-o", path)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert "would be overwritten" in done.err
        assert contents(Path()) == before
    shutil.copy(SYNC, "report.db")
    assert "an nsys export" in nsysmap("analyze", SYNC, "-o", "report.db").err


def test_what_nsysmap_wrote_is_overwritten(nsysmap: Command) -> None:
    for _ in range(2):
        assert nsysmap("map", SYNC, ENGINE, "-o", "map.json").status == 0
        assert nsysmap("analyze", SYNC, ENGINE, "-o", "out.json", "-o", "out.db").status == 0


def test_an_output_name_that_is_too_long(nsysmap: Command) -> None:
    done = nsysmap("map", SYNC, "-o", "x" * 300 + ".csv")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "cannot be written (File name too long)" in done.err


@pytest.mark.parametrize("command", ["analyze", "map"])
def test_a_read_only_file_is_kept(nsysmap: Command, command: str) -> None:
    Path("out.json").write_text("kept")
    Path("out.json").chmod(0o444)
    done = nsysmap(command, SYNC, ENGINE, "-o", "out.json")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "is read-only" in done.err
    assert Path("out.json").read_text() == "kept"


@pytest.mark.parametrize(
    ("count", "status"), [(5, 0), (0, 2), (-5, 2), ("true", 2), (1.5, 2), (None, 2)]
)
def test_total_times_need_a_count_that_can_be(nsysmap: Command, count: object, status: int) -> None:
    name = json.loads(ENGINE.read_text())["Layers"][3]["Name"]
    head = "" if count is None else f'{{"count": {count}}}, '
    Path("profile.json").write_text(f'[{head}{{"name": "{name}", "timeMs": 10, "percentage": 1}}]')
    done = nsysmap("layers", ENGINE, "--profile", "profile.json", "--json")
    assert done.status == status
    if status:
        assert done.err.startswith("nsysmap: profile.json: ")
        assert "count" in done.err
    else:
        assert json.loads(done.out)["layers"][3]["trtexec_ns"] == 2_000_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(nsysmap: Command) -> None:
    Path("locked").mkdir(mode=0o555)
    refuses_output = nsysmap("map", SYNC, ENGINE, "-o", "locked/out.csv")
    assert refuses_output.status == 2
    assert "permission denied" in refuses_output.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk(nsysmap: Command) -> None:
    Path("full.csv").symlink_to("/dev/full")
    done = nsysmap("map", SYNC, ENGINE, "-o", "full.csv")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "No space left" in done.err


@contextmanager
def small_files(most_bytes: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(
            (f"out{suffix}", ("analyze", SYNC, ENGINE))
            for suffix in (".html", ".perfetto-trace", ".json", ".md", ".db")
        ),
        *((f"out{suffix}", ("plot", SYNC, ENGINE, "idle")) for suffix in (".png", ".svg")),
        *((f"out{suffix}", ("compare", SYNC, SYNC)) for suffix in (".html", ".md", ".json")),
        *((f"out{suffix}", ("graph", ENGINE)) for suffix in (".html", ".svg", ".png", ".dot")),
    ],
)
def test_what_a_full_disk_cuts_short_is_one_line_and_leaves_nothing(
    nsysmap: Command, name: str, arguments: tuple[object, ...]
) -> None:
    Path("reports").mkdir()
    Path(f"reports/{name}").symlink_to(f"../kept-{name}")
    Path(f"kept-{name}").write_text("kept")
    before = contents(Path())
    with small_files(1024):
        done = nsysmap(*arguments, "-o", f"reports/{name}")
    assert (done.status, done.err.count("\n")) == (2, 1)
    # a comparison's page has one of each side
    first = "out.before.html" if (arguments[0], name) == ("compare", "out.html") else name
    assert done.err.startswith(f"nsysmap: reports/{first}: cannot be written (")
    assert contents(Path()) == before


@pytest.mark.parametrize("outputs", [("out.json",), ("out.md", "out.db")])
def test_the_report_and_engine_are_only_read(nsysmap: Command, outputs: tuple[str, ...]) -> None:
    shutil.copy(SYNC, "r.sqlite")
    shutil.copy(ENGINE, "e.json")
    before = contents(Path())
    assert (
        nsysmap(
            "analyze", "r.sqlite", "e.json", *(part for name in outputs for part in ("-o", name))
        ).status
        == 0
    )
    after = contents(Path())
    assert {name: after[name] for name in before} == before
    assert sorted(set(after) - set(before)) == sorted(outputs)


@pytest.mark.parametrize(
    "option",
    [
        ("--rules", "none"),
        ("--rules", "empty"),
        ("--param", "nonsense"),
        ("--param", "no-such.rule=1"),
    ],
)
def test_rules_and_parameters_that_cannot_be(nsysmap: Command, option: tuple[str, str]) -> None:
    Path("empty").mkdir()
    done = nsysmap("analyze", SYNC, *option)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert option[1].split("=")[0].split(".")[0] in done.err


# --- files that are none
# ----------------------------------------------------------------------------------------------


def test_a_pipe_or_a_device_is_not_waited_for(nsysmap: Command) -> None:
    os.mkfifo("pipe")
    for path in ("pipe", "/dev/zero"):
        refuses(nsysmap, path, "is a pipe or a device")
        refuses(nsysmap, path, "is a pipe or a device", report=SYNC, engine=path)
        done = nsysmap("layers", ENGINE, "--profile", path)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert "pipe or" in done.err


def test_a_path_that_cannot_be(nsysmap: Command) -> None:
    for path in ("x" * 5000, "/proc/self/mem"):
        refuses(nsysmap, path, "cannot be read")
        refuses(nsysmap, path, "cannot be read", report=SYNC, engine=path)


def test_a_path_need_not_be_utf8(nsysmap: Command) -> None:
    report, engine, written = (
        os.fsdecode(name) for name in (b"r\xe9.sqlite", b"e\xff.json", b"m\xfe")
    )
    shutil.copy(SYNC, report)
    shutil.copy(ENGINE, engine)
    done = nsysmap(
        "analyze",
        report,
        engine,
        *(part for suffix in ("json", "md", "db") for part in ("-o", f"{written}.{suffix}")),
    )
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("r\\udce9.sqlite · ")
    assert nsysmap("map", report, engine, "-o", f"{written}.csv").status == 0
    assert nsysmap("map", "none" + report, engine).err.startswith("nsysmap: noner\\udce9.sqlite: ")


@pytest.mark.parametrize("mode", ["wal", "persist"])
def test_a_file_with_unfinished_changes_beside_it_is_not_read_as_if_they_were_not_there(
    nsysmap: Command, mode: str
) -> None:
    written = altered(f"PRAGMA journal_mode={mode}")
    with closing(sqlite3.connect(written, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.execute("PRAGMA cache_size=1")  # changes are written out before they are committed
        database.execute("BEGIN")
        database.execute(f"DELETE FROM {KERNEL} WHERE rowid > 1000")
        if mode == "wal":
            database.execute("COMMIT")
        suffix = {"wal": "-wal", "persist": "-journal"}[mode]
        for end in ("", suffix):
            shutil.copy(f"{written}{end}", f"report.sqlite{end}")
    for left in Path().glob("bad.sqlite*"):
        left.unlink()
    refuses(
        nsysmap,
        "report.sqlite",
        f"unfinished changes beside it (report.sqlite{suffix})",
        "close the program that writes it",
    )
    # what a finished transaction leaves behind
    Path(f"report.sqlite{suffix}").write_bytes(bytes(512))
    assert "unfinished" not in nsysmap("map", "report.sqlite", ENGINE).err


def test_a_path_that_no_command_foresaw_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(
        capfd, "analyze", FIXTURES / "bert_trt10/sync.sqlite", "--rules", tmp_path / ("a" * 300)
    )
    assert (done.status, done.out) == (2, "")
    assert "cannot be used (File name too long)" in done.err
    assert done.err.count("\n") == 1


def test_an_end_of_file_that_no_command_foresaw_is_no_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut_short(*_: object, **__: object) -> None:
        raise EOFError("marshal data too short")

    monkeypatch.setattr(decode, "callback", cut_short)
    monkeypatch.setattr("sys.argv", ["nsysmap", "decode", "x"])
    with pytest.raises(EOFError, match="too short"):
        main._run()


def test_a_file_given_as_a_name_is_not_explained_as_one(nsysmap: Command, tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("[I] built\n")
    for path, remedy in ((ENGINE, "nsysmap layers"), (log, "nsysmap decode <")):
        done = nsysmap("decode", "x", str(path))
        assert done.status == 2
        assert done.err.startswith(f"nsysmap: {path}: is a file, not a name; ")
        assert f"{remedy} {path}" in done.err
    hidden = nsysmap("decode", str(FIXTURES / "bert_trt10" / "graph_whole.sqlite"))
    assert (hidden.status, hidden.out) == (2, "")
    assert "shows no kernels" in hidden.err
    # too long to be a path
    assert nsysmap("decode", "/bert/encoder/layer.0/" + "x/" * 3000).status == 0


@pytest.mark.parametrize("error", ["MemoryError()", "OSError(12, 'Cannot allocate memory')"])
def test_out_of_memory_is_one_line_and_what_was_complete_stays(error: str, tmp_path: Path) -> None:
    code = (
        "import nsysmap.output.perfetto.write as module\n"
        f"def full(*_, **__): raise {error}\n"
        "module.write_trace = full\n"
        "from nsysmap.cli.main import main\nmain()"
    )
    outputs = ["-o", str(tmp_path / "a.json"), "-o", str(tmp_path / "b.perfetto-trace")]
    report = FIXTURES / "bert_trt10" / "sync.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", str(report), *outputs],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(b"nsysmap: out of memory")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("command", [["analyze"], ["sql"], ["map"]])
def test_a_current_folder_that_is_gone_is_one_line(command: list[str], tmp_path: Path) -> None:
    report = str(FIXTURES / "bert_trt10" / "sync.sqlite")
    program = (
        "import os, sys\nos.rmdir(os.getcwd())\nsys.path.insert(0, sys.argv.pop(1))\n"
        "from nsysmap.cli.main import main\nmain()"
    )
    folder = tmp_path / "gone"
    folder.mkdir()
    more = ["SELECT count(*) FROM kernels"] if command == ["sql"] else []
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parents[2]), *command, report, *more],
        cwd=folder,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 2), done.stderr
    assert b"Traceback" not in done.stderr
    if done.returncode == 2:
        assert done.stderr.startswith(b"nsysmap: the current folder: cannot be used")
        assert done.stderr.count(b"\n") == 1
