"""The cache of results: the same question has the same answer without the work, and any other
question is worked out.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from nsysmap import api
from nsysmap.core.schema import Tables
from nsysmap.inputs.nsys import export_cache
from nsysmap.output import kept_report, result_cache
from nsysmap.output.build import report_of
from nsysmap.output.json import report_json
from nsysmap.output.result_cache import Place, Question, place_of
from nsysmap.output.text.report import report_text
from tests.commands import run
from tests.places import FIXTURES

Analyze = Callable[..., tuple[str, dict[str, bytes]]]
RULE = """\
name: mine
group: host
severity: info
summary: There are kernels.
why: A rule of a test.
advice: None.
needs: [kernels]
sql: SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns, 0 AS cost_ns FROM kernels HAVING count(*) > 0
message: kernels
cases:
  - {name: one, given: {kernels: [{kernel_id: 0, start_ns: 0, end_ns: 1}]}, finds: [{start_ns: 0}]}
  - {name: none, given: {kernels: []}, finds: []}
"""  # noqa: E501


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a report and its engine, and an empty cache elsewhere."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("sync.sqlite", "engine.json"):
        shutil.copy(FIXTURES / "bert_trt10" / name, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NSYSMAP_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reports that were analysed."""
    seen: list[str] = []
    real = api.analyze

    def analyze(report: str, *args: object, **named: object) -> object:
        seen.append(Path(report).name)
        return real(report, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "analyze", analyze)
    return seen


def asked(capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, dict[str, bytes]]:
    """Status, text and files of one run; the files are removed."""
    done = run(capfd, "analyze", "sync.sqlite", "engine.json", *options)
    outputs = [Path(options[at + 1]) for at, option in enumerate(options) if option == "-o"]
    files = {path.name: path.read_bytes() for path in outputs}
    for path in outputs:
        path.unlink()
    assert done.err == "" or "--fail-on" in options
    return done.status, done.out + done.err, files


@pytest.mark.usefixtures("here")
def test_a_question_asked_again_is_answered_without_the_work(
    worked: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    options = ("-o", "a.json", "-o", "a.html", "-o", "a.md", "--fail-on", "info")
    first = asked(capfd, *options)
    assert first[0] == 1
    assert asked(capfd, *options) == first
    assert worked == ["sync.sqlite"]
    assert asked(capfd, "-o", "other.json")[2]["other.json"] == first[2]["a.json"]
    assert worked == ["sync.sqlite"], "any part of the answer is there"
    asked(capfd, "--no-cache")
    assert worked == ["sync.sqlite"] * 2


@pytest.mark.usefixtures("here")
def test_another_form_of_the_same_answer_is_laid_out_without_the_work(
    worked: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(capfd)
    forms = (
        ("--full",),
        ("--json",),
        ("--json=brief",),
        ("-o", "a.md", "-o", "a.json"),
        ("--fail-on", "warning"),
    )
    kept = [asked(capfd, *form) for form in forms]
    monkeypatch.setenv("COLUMNS", "160")
    kept.append(asked(capfd, "--full"))
    assert worked == ["sync.sqlite"], "figures are kept, not their words"
    fresh = [asked(capfd, "--full", "--no-cache")]
    monkeypatch.delenv("COLUMNS")
    fresh = [asked(capfd, *form, "--no-cache") for form in forms] + fresh
    assert kept == fresh


@pytest.mark.usefixtures("here")
def test_what_shows_single_events_is_worked_out_once(
    worked: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    asked(capfd)
    page = asked(capfd, "-o", "a.html")
    assert worked == ["sync.sqlite"] * 2
    assert asked(capfd, "-o", "a.html") == page
    assert worked == ["sync.sqlite"] * 2
    database = asked(capfd, "-o", "a.db")[2]["a.db"]
    assert database.startswith(b"SQLite format 3")
    assert worked == ["sync.sqlite"] * 2, "all tables of a small report are kept"


@pytest.mark.usefixtures("here")
def test_a_table_that_is_too_large_to_be_kept_is_worked_out_where_it_is_shown(
    worked: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_report, "MOST_ROWS", 100)
    first = asked(capfd, "--full")
    assert asked(capfd, "--full") == first
    assert worked == ["sync.sqlite"]
    asked(capfd, "-o", "a.db")
    assert worked == ["sync.sqlite"] * 2


def test_what_is_kept_holds_records_and_calls_nothing() -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (exec, ("raise SystemExit",))

    assert kept_report.report_in(pickle.dumps((Evil(), {})), Tables) is None  # type: ignore[arg-type]
    assert kept_report.report_in(pickle.dumps(("not a report", {})), Tables) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("bert_trt103", "graph.sqlite"),
        ("bert_trt10", "graph_whole.sqlite"),
        ("torch_mixed", "sync.nsys-rep"),
        ("two_gpus", "tp_sync.nsys-rep"),
    ],
)
def test_a_report_is_read_back_as_it_was(folder: str, name: str) -> None:
    path = FIXTURES / folder / name
    engines = sorted((FIXTURES / folder).glob("*engine.json"))
    done = api.analyze(path, engines)
    report = report_of(done)
    kept = kept_report.report_in(kept_report.report_bytes(report), lambda: done.tables)
    assert kept is not None
    for one in fields(report):
        if one.name != "tables":
            assert getattr(kept, one.name) == getattr(report, one.name), one.name
    assert report_json(kept) == report_json(report)
    assert report_text(kept, full=True) == report_text(report, full=True)
    for name_of, table in report.tables.items():
        assert kept.tables[name_of].records() == table.records(), name_of


@pytest.mark.parametrize(
    "change", ["report", "engine", "settings", "selection", "rules", "parameter", "name"]
)
def test_whatever_the_answer_depends_on_makes_another_question(
    change: str, here: Path, worked: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    asked(capfd)
    options: tuple[str, ...] = ()
    if change == "report":
        with (here / "sync.sqlite").open("r+b") as file:
            # the application id in the header of SQLite: the same tables, another content
            file.seek(68)
            file.write(b"\0\0\0\1")
    elif change == "engine":
        (here / "engine.json").write_bytes((here / "engine.json").read_bytes() + b"\n")
    elif change == "settings":
        (here / "nsysmap.toml").write_text("[rules.launch-bound]\nmin_share = 0.5\n")
    elif change == "selection":
        options = ("--inference", "1..3")
    elif change == "rules":
        (here / "pack").mkdir()
        (here / "pack" / "mine.yaml").write_text(RULE)
        options = ("--rules", "pack")
    elif change == "parameter":
        options = ("--param", "launch-bound.min_share=0.5")
    else:
        shutil.move("sync.sqlite", "other.sqlite")
        run(capfd, "analyze", "other.sqlite", "engine.json")
        assert worked == ["sync.sqlite", "other.sqlite"], "the report's name is in the answer"
        return
    asked(capfd, *options)
    assert len(worked) == 2
    asked(capfd, *options)
    assert len(worked) == 2


@pytest.mark.usefixtures("here")
def test_no_damage_of_the_cache_changes_an_answer(
    worked: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    first = asked(capfd, "-o", "a.json")
    (kept,) = export_cache.cache_folder().iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    whole = kept.read_bytes()
    for number, damaged in enumerate(
        (b"", whole[:40], whole[:-1], whole + b" ", whole.replace(b"kernel", b"kernal", 1)), start=2
    ):
        kept.write_bytes(damaged)
        assert asked(capfd, "-o", "a.json") == first
        assert len(worked) == number
        assert kept.read_bytes() == whole, "and it is made anew"


def test_a_cache_that_cannot_be_written_is_no_error(
    here: Path,
    worked: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NSYSMAP_CACHE", str(here / "engine.json"))
    assert asked(capfd) == asked(capfd)
    assert len(worked) == 2


def test_what_another_user_made_is_not_believed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYSMAP_CACHE", str(here.parent))
    place = Place(export_cache.kept_result("0" * 32))
    place.keep({"shown": b"1"})
    assert place.read() == {"shown": b"1"}
    monkeypatch.setattr(os, "getuid", lambda: -1)
    assert place.read() == {}


def test_what_may_not_be_kept_is_not(here: Path) -> None:
    question = Question("sync.sqlite", ["engine.json"], {}, (), "")
    assert place_of(question) is not None
    (here / "sync.sqlite-wal").write_bytes(b"\x37\x7f\x06\x82")
    assert place_of(question) is None, "the reader refuses it, whatever was kept before"
    (here / "sync.sqlite-wal").unlink()
    assert place_of(Question("sync.sqlite", ["absent.json"], {}, (), "")) is None
    (here / "engine.plan").write_bytes(b"ftrt\0\0\0\1")
    assert place_of(Question("sync.sqlite", ["engine.plan"], {}, (), "")) is None


@pytest.mark.usefixtures("here")
def test_the_cache_stays_within_its_bound_and_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_cache, "_ALL_RESULTS_BYTES", 3000)
    foreign = export_cache.cache_folder() / f"{'f' * 32}.results"
    foreign.parent.mkdir()
    foreign.write_bytes(b"somebody else's")
    for number in range(4):
        Place(export_cache.kept_result(f"{number:032x}")).keep({"shown": bytes(1000)})
    assert [entry.path.stem[-1] for entry in export_cache.cached()] == ["2", "3"]
    assert Place(export_cache.kept_result(f"{3:032x}")).read() == {"shown": bytes(1000)}
    monkeypatch.setattr(export_cache, "MOST_RESULT_BYTES", 999)
    Place(export_cache.kept_result(f"{9:032x}")).keep({"shown": bytes(1000)})
    assert len(export_cache.cached()) == 2
    assert export_cache.clear_cache().files == 2
    assert [path.name for path in export_cache.cache_folder().iterdir()] == [foreign.name]


@pytest.mark.parametrize("head", [b"[" * 100_000, b"\xff", b'[["x", 1e400]]', b'[["x", -1]]', b"3",
                                  b'[["x", 5]]', b'[[1, 2]]', b'[["x", true, 1]]'])  # fmt: skip
def test_a_forged_head_is_no_answer(head: bytes, tmp_path: Path) -> None:
    body = head + b"\nabc"
    path = tmp_path / "x.results"
    path.write_bytes(export_cache.RESULT_MAGIC + body + result_cache._check(body))
    path.chmod(0o600)
    assert Place(path).read() == {}


@pytest.mark.usefixtures("here")
def test_a_pipe_in_the_place_of_an_answer_is_none(
    worked: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    asked(capfd, "--json")
    (kept,) = export_cache.cache_folder().glob("*.results")
    kept.unlink()
    os.mkfifo(kept)
    asked(capfd, "--json")
    assert worked == ["sync.sqlite"] * 2
    assert kept.is_file()
    assert run(capfd, "cache", "list").status == 0
