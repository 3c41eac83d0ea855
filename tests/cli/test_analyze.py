"""Whole runs of `nsysmap analyze` and `nsysmap map`, held against files in tests/golden.

After a change that is meant to change them:  NSYSMAP_GOLDEN=write pytest tests/cli/test_analyze.py
tests/summary/test_screen.py and read the difference (git diff tests/golden): a line that you cannot
explain is a bug.  What each file is for stands in tests/golden/README.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import termios
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from nsysmap.api import analyze
from nsysmap.cli.main import with_command
from nsysmap.output.json import schema
from nsysmap.rules import packs
from nsysmap.text.terminal import columns
from tests.commands import run
from tests.places import FIXTURES, GOLDEN, ROOT
from tests.rule_packs import golden_rules

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"
RUNS: dict[
    str, tuple[str, ...]
] = {  # the folder of the report, and the files as they are given there
    "sync": ("bert_trt10", "sync.sqlite", "engine.json"),
    "graph_no_engine": ("bert_trt10", "graph.sqlite"),
    "graph_whole": ("bert_trt10", "graph_whole.sqlite", "engine.json"),
    "trt85": ("bert_trt85", "sync.sqlite", "engine.json"),
    "wrong_engine": ("bert_trt103", "graph.sqlite", "../bert_trt10/engine.json"),
}


def held(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("NSYSMAP_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def abridged(value: object) -> object:
    """The value with the first item of each list only: enough to see the form, and few enough lines
    to read.
    """
    if isinstance(value, dict):
        return {key: abridged(inner) for key, inner in value.items()}
    return [abridged(inner) for inner in value[:1]] if isinstance(value, list) else value


@pytest.fixture
def with_golden_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    import nsysmap.analysis  # which keeps the function it finds when it is first imported, in later tests too  # noqa: E501, F401

    rules = golden_rules()
    monkeypatch.setattr(packs, "chosen_rules", lambda *_args, **_options: rules)


@pytest.mark.usefixtures("with_golden_rules")
@pytest.mark.parametrize("name", RUNS)
def test_the_terminal_report_is_the_golden_one(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, *files = RUNS[name]
    monkeypatch.chdir(FIXTURES / folder)
    done = run(capfd, "analyze", *files)
    refused = name == "wrong_engine"
    assert (done.status, bool(done.err)) == ((2, True) if refused else (0, False))
    held(f"{name}.txt", done.out)


def test_an_engine_that_did_not_run_and_a_trace_without_gpu_work_end_with_status_2(
    capfd: pytest.CaptureFixture[str],
) -> None:
    files = [str(FIXTURES / one) for one in ("bert_trt103/graph.sqlite", "bert_trt10/engine.json")]
    done = run(capfd, "analyze", *files, "--json")
    assert done.status == 2
    assert done.err == "nsysmap: engine.json did not run in graph.sqlite\n"
    assert json.loads(done.out)["schema"] == "nsysmap/report/1"  # what is known is printed
    answer = analyze(files[0], rules=()).summary
    assert answer.nothing_ran == ""
    none = replace(answer.trace, kernels=0, copies=0, memsets=0, graph_launches=0)
    assert "no GPU work" in replace(answer, trace=none).nothing_ran


def test_a_file_instead_of_a_command_is_analysed() -> None:
    for arguments in (["r.nsys-rep"], ["r.nsys-rep", "engine.json"], ["--full", "r.nsys-rep"]):
        assert with_command(arguments) == ["analyze", *arguments]
    for arguments in ([], ["--help"], ["map", "r.nsys-rep"], ["analyse"], ["-q", "sql", "r.db"]):
        assert with_command(arguments) == arguments


def test_the_readme_shows_what_is_printed() -> None:
    shown = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .split("```\nsync.nsys-rep")[1]
        .split("\n```")[0]
    )
    printed = (GOLDEN / "screens" / "bert_trt10.txt").read_text(encoding="utf-8")
    assert shown == printed.removeprefix("sync.sqlite").rstrip("\n")


@pytest.mark.usefixtures("with_golden_rules")
def test_the_written_reports_are_the_golden_ones(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FIXTURES / "bert_trt103")
    outputs = [part for suffix in ("json", "md", "db") for part in ("-o", tmp_path / f"r.{suffix}")]
    done = run(
        capfd,
        "analyze",
        "graph.sqlite",
        "engine.json",
        "--profile",
        "profile.json",
        "--full",
        *outputs,
    )
    assert (done.status, done.err) == (0, "")
    held("trt103_graph.txt", done.out)
    held("trt103_graph.md", (tmp_path / "r.md").read_text(encoding="utf-8"))
    held(
        "trt103_graph.json",
        json.dumps(
            abridged(json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))), indent=1
        )
        + "\n",
    )
    jsonschema.Draft202012Validator(schema()).validate(
        json.loads((tmp_path / "r.json").read_text())
    )
    with closing(sqlite3.connect(tmp_path / "r.db")) as database:
        assert database.execute("SELECT count(*) FROM inferences").fetchone() == (50,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.db", "r.json", "r.md"]


def test_the_map_is_the_golden_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "map", SYNC, ENGINE, "-o", tmp_path / "map.csv")
    assert (done.status, done.out) == (0, "")
    assert done.err == "2,800 of 2,800 kernels have a layer, 100% of kernel time (nvtx 2,800)\n"
    # the first inference
    held("map_head.csv", "".join((tmp_path / "map.csv").read_text().splitlines(keepends=True)[:58]))
    assert run(capfd, "map", SYNC, ENGINE, "-o", "-").out == (tmp_path / "map.csv").read_text()


def test_a_map_without_a_file_says_the_coverage_and_how_to_get_one(
    capfd: pytest.CaptureFixture[str],
) -> None:
    done = run(capfd, "map", SYNC, ENGINE)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith("2,800 of 2,800 kernels have a layer")
    assert "-o FILE" in done.out


def test_nothing_of_the_machine_or_the_environment_reaches_any_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every value in the tables on machine, session and processes is replaced by a mark, and no
    output has it; a given path is only in the commands that are shown.
    """
    secret = "CaNaRy"
    report = tmp_path / "r.sqlite"
    shutil.copy(SYNC, report)
    report.chmod(0o644)
    kept = "'EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION'"
    with closing(sqlite3.connect(report)) as database:
        database.execute(f"UPDATE META_DATA_CAPTURE SET value = '{secret}1' || value")
        database.execute(
            f"UPDATE META_DATA_EXPORT SET value = '{secret}2' || value WHERE name NOT IN ({kept})"
        )
        database.execute(f"UPDATE TARGET_INFO_SYSTEM_ENV SET value = '{secret}3' || value")
        database.execute(f"UPDATE PROCESSES SET name = '{secret}4' || name")
        database.execute(f"INSERT INTO StringIds SELECT max(id) + 1, '{secret}5' FROM StringIds")
        database.execute("UPDATE ThreadNames SET nameId = (SELECT max(id) FROM StringIds)")
        database.execute("UPDATE ProcessStreams SET filenameId = (SELECT max(id) FROM StringIds)")
        database.commit()
    folder = tmp_path / f"{secret}6"
    folder.mkdir()
    shutil.copy(ENGINE, folder)
    outputs = [
        part for suffix in ("json", "md", "db") for part in ("-o", tmp_path / f"out.{suffix}")
    ]
    done = run(capfd, "analyze", report, folder / "engine.json", *outputs)
    assert (done.status, done.err) == (0, "")
    shown = [line for line in done.out.splitlines() if secret in line]
    assert [line.replace(str(folder / "engine.json"), "").count(secret) for line in shown] == [
        0
    ] * len(shown)
    assert all(" nsysmap " in line for line in shown)
    run(capfd, "map", report, folder / "engine.json", "-o", tmp_path / "out.csv")
    told = {path.name: path.read_bytes() for path in tmp_path.glob("out.*")}
    assert sorted(told) == ["out.csv", "out.db", "out.json", "out.md"]
    assert [
        name
        for name, content in told.items()
        if secret.encode() in content or str(tmp_path).encode() in content
    ] == []


def test_json_on_standard_output_is_the_object_of_the_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(capfd, "analyze", SYNC, ENGINE, "--json", "-o", tmp_path / "r.json")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out) == json.loads((tmp_path / "r.json").read_text("utf-8"))


def test_fail_on_is_exit_status_1_from_that_severity_up(capfd: pytest.CaptureFixture[str]) -> None:
    whole = [FIXTURES / "bert_trt10" / file for file in RUNS["graph_whole"][1:]]
    assert run(capfd, "analyze", *whole, "--fail-on", "error").status == 1
    assert run(capfd, "analyze", *whole).status == 0
    assert run(capfd, "analyze", SYNC, ENGINE, "--fail-on", "error").status == 0
    assert run(capfd, "analyze", SYNC, ENGINE, "--fail-on", "warning").status == 1


def test_rules_of_one_s_own_run_too_and_parameters_are_set(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "many-kernels.yaml").write_text("""
name: many-kernels
group: launch
severity: info
summary: There are many kernels.
why: To show a rule of one's own.
advice: Nothing.
needs: [kernels]
params: {least: 1000000}
sql: SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns, 0 AS cost_ns, count(*) AS kernels FROM kernels HAVING count(*) >= $least
message: "{kernels} kernels"
cases:
  - {name: many, given: {kernels: [{kernel_id: 0}, {kernel_id: 1}]}, params: {least: 2}, finds: [{kernels: 2}]}
  - {name: few, given: {kernels: [{kernel_id: 0}]}, finds: []}
""")  # noqa: E501
    assert "many-kernels" not in run(capfd, "analyze", SYNC, "--full", "--rules", tmp_path).out
    assert (
        "2800 kernels"
        in run(
            capfd,
            "analyze",
            SYNC,
            "--full",
            "--rules",
            tmp_path,
            "--param",
            "many-kernels.least=2800",
        ).out
    )
    assert run(capfd, "analyze", SYNC, "--param", "no-such-rule.x=1").status == 2


def on_a_terminal(columns_wide: int, *arguments: object, **environment: str) -> str:
    """What `nsysmap ARGUMENTS…` writes to a terminal of that width, standard error included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns_wide, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    command = [
        sys.executable,
        "-c",
        "from nsysmap.cli.main import main; main()",
        *map(str, arguments),
    ]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    parts = []
    with contextlib.suppress(OSError):  # Linux says EIO where the other side is closed
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_terminal_gets_its_width_colours_and_a_progress_line_that_is_gone_at_the_end() -> None:
    arguments = ("analyze", *(FIXTURES / "bert_trt10" / file for file in RUNS["graph_whole"][1:]))
    coloured = on_a_terminal(80, *arguments)
    report = coloured.split("\x1b[2K")[-1]  # what came before is progress, wiped
    assert "\x1b[1;31m" in report
    assert max(columns(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", report).splitlines()) <= 80
    plain = on_a_terminal(80, *arguments, NO_COLOR="1").split("\x1b[2K")[-1]
    assert "\x1b" not in plain
    assert "Doubt       The trace hides" in plain


def test_a_page_and_a_perfetto_trace_are_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = [FIXTURES / "bert_trt103" / "sync.nsys-rep", FIXTURES / "bert_trt103" / "engine.json"]
    run(
        capfd,
        "analyze",
        *files,
        "-q",
        "-o",
        tmp_path / "x.html",
        "-o",
        tmp_path / "x.perfetto-trace",
    )
    assert (tmp_path / "x.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "x.perfetto-trace").read_bytes()[:1] == b"\x0a"
