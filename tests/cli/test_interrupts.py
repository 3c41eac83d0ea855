"""Ctrl-C, SIGTERM and SIGHUP at any moment: one line, the status that says so, and nothing left
behind.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nsysmap.api import analyze
from nsysmap.cli.console import step_line
from nsysmap.text.progress import PartDone, percent_done
from tests.places import FIXTURES

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"
MOMENTS = {
    "reading pages": "nsysmap.inputs.nsys.sqlite_pages._records",
    "finding inferences": "nsysmap.trace.inferences.find._summary",
    "mapping": "nsysmap.mapping.mapped_trace.map_kernels",
    "idle time": "nsysmap.timing.idle.intervals._gaps",
    "replaying": "nsysmap.whatif.model.read_model",
    "a rule": "nsysmap.rules.run._answer",
    "writing JSON": "nsysmap.output.json.write_json",
    "writing the page": "nsysmap.output.page.write.inlined",
    "putting a file into its place": "nsysmap.core.marked_folder.shutil.rmtree",
    "keeping results": "nsysmap.inputs.nsys.export_cache.keep",
}


def code(target: str, act: str) -> str:
    """A program that runs nsysmap, and does that at the first call of that function."""
    module = target.rpartition(".")[0].removesuffix(".shutil")
    return (
        f"import os, sys, time, {module}\n"
        "from nsysmap.cli.main import main\n"
        f"real = {target}\n"
        "calls = []\n"
        "def interrupted(*given, **named):\n"
        f"    if not calls:\n        calls.append(1)\n        {act}\n"
        "    return real(*given, **named)\n"
        f"{target} = interrupted\n"
        "main()"
    )


def processes_in(group: int) -> list[int]:
    """The processes of that group that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(its_group) == group and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_is_left_wherever_it_is_interrupted(
    number: int, status: int, moment: str, tmp_path: Path
) -> None:
    out, cache, temporary = tmp_path / "out", tmp_path / "cache", tmp_path / "tmp"
    for folder in (out, cache, temporary):
        folder.mkdir()
    # an impatient user
    program = code(
        MOMENTS[moment], f"os.kill(os.getpid(), {int(number)}); os.kill(os.getpid(), {int(number)})"
    )
    outputs = [
        item for suffix in ("json", "html") for item in ("-o", str(out / f"report.{suffix}"))
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", program, "analyze", str(SYNC), str(ENGINE), *outputs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NSYSMAP_CACHE": str(cache), "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    said = process.communicate(timeout=120)
    # click ends the line of a terminal's ^C
    assert (process.returncode, *(text.strip() for text in said)) == (
        status,
        b"",
        b"",
    )
    assert {path.name for path in out.iterdir()} <= {
        "report.json",
        "report.html",
    }, "files that were finished before, whole"
    assert [path.name for path in cache.iterdir()] == []
    assert list(temporary.iterdir()) == []
    assert processes_in(process.pid) == []


def test_a_terminal_shows_what_is_being_done_and_one_line_at_the_end(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    program = code(MOMENTS["mapping"], f"time.sleep(3); os.kill(os.getpid(), {int(signal.SIGINT)})")
    process = subprocess.Popen(
        [sys.executable, "-c", program, "analyze", str(SYNC), str(ENGINE)],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "NSYSMAP_CACHE": str(tmp_path)},
        start_new_session=True,
    )
    os.close(theirs)
    told = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # nobody has the other end any more
            break
        if not piece:
            break
        told += piece
    os.close(ours)
    assert process.wait(timeout=120) == 130
    assert b"\r\x1b[2Kmapping kernels to layers \xe2\x80\xa6 " in told
    assert told.endswith(b"\r\x1b[2K\r\nnsysmap: interrupted\r\n")


def test_a_step_has_a_bar_where_it_is_known_how_much_is_done() -> None:
    assert (
        step_line(percent_done("reading the report", 50), 3.2, 80)
        == "[============            ] reading the report: 50 %"
    )
    assert (
        step_line(PartDone("reports", "30 of 60 reports, 1 failed", 30, 60), 3.2, 80)
        == "[============            ] 30 of 60 reports, 1 failed"
    )
    assert step_line("mapping kernels", 3.2, 80) == "mapping kernels … 3 s"
    assert step_line("writing 3 of 4.json", 3.2, 80) == "writing 3 of 4.json … 3 s", (
        "a file may be called so"
    )
    assert len(step_line("writing " + "x" * 100, 3.2, 40)) == 39
    assert step_line("writing a\x1b[2J.json", 1.0, 80) == "writing a\\x1b[2J.json … 1 s"


def test_every_long_step_of_an_analysis_is_told() -> None:
    told: list[str] = []
    assert analyze(SYNC, ENGINE, progress=told.append).summary
    steps = list(dict.fromkeys(text.partition(":")[0] for text in told))
    assert steps[:2] == ["reading the report", "finding inferences"]
    assert steps[2].startswith("mapping kernels")
    # in the order in which rules ask for them
    assert sorted(steps[3:-1]) == ["adding up", "finding idle time", "replaying the timeline"]
    assert steps[-1] == "running the rules"
    assert re.fullmatch(r"running the rules: (\d+) of \1", told[-1])
