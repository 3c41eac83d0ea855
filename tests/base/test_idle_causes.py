"""Causes of idle time are declared once, and every reader knows each."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import nsysmap
from nsysmap.core.idle_causes import IDLE_CAUSES

PACKAGE = Path(nsysmap.__file__).parent
DECLARED = {PACKAGE / "core" / "idle_causes.py", PACKAGE / "core" / "changes.py"}
NEW_CAUSE = """
import sys
import numpy as np
from nsysmap.core import idle_causes
from nsysmap.core.table import Text

def whole_time(trace):
    calls = trace.api_calls
    threads = np.unique(calls.ints("thread"))
    mine = [calls.ints("thread") == thread for thread in threads]
    start = np.array([calls.ints("start_ns")[rows].min() for rows in mine])
    end = np.array([calls.ints("end_ns")[rows].max() for rows in mine])
    evidence = Text.of(["the page fault handler"] * len(threads))
    return idle_causes.HostSpans(threads, start, end, evidence)

idle_causes.IDLE_CAUSES["page-fault"] = idle_causes.Cause(
    "page-fault", "in page faults", "the host waited for memory", "#123456",
    depends_on_host=True, shown_by=whole_time,
)
from nsysmap.cli.main import main
for arguments in list(sys.argv[1:]):
    sys.argv = ["nsysmap", *arguments.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, arguments
"""


def test_a_new_cause_is_one_entry_that_every_reader_knows(tmp_path: Path) -> None:
    report, engine = "fixtures/bert_trt10/sync.nsys-rep", "fixtures/bert_trt10/engine.json"
    names = ("a.html", "a.md", "a.json", "a.pftrace")
    outputs = " ".join(f"-o {tmp_path / name}" for name in names)
    picture = tmp_path / "a.svg"
    done = subprocess.run(
        [
            *(sys.executable, "-c", NEW_CAUSE),
            f"analyze {report} {engine} --no-cache {outputs}",
            f"plot {report} {engine} idle -o {picture}",
            f"compare {report} fixtures/bert_trt10/graph.nsys-rep",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in page faults" in done.stdout.partition("before:")[0]
    told = {one.name: one.read_bytes() for one in (*map(tmp_path.joinpath, names), picture)}
    for name in ("a.html", "a.md", "a.svg"):
        assert b"in page faults" in told[name], name
    for name in ("a.html", "a.svg"):
        assert b"#123456" in told[name], name
    assert "page-fault" in json.dumps(json.loads(told["a.json"]))


def test_nobody_else_keeps_a_list_of_causes() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path not in DECLARED
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
        and len(names := _names(node)) >= 3
        and set(names) <= set(IDLE_CAUSES)
    ]
    assert not found


@pytest.mark.parametrize("suffix", ["js", "css", "j2"])
def test_pages_take_words_from_the_list(suffix: str) -> None:
    for path in PACKAGE.rglob(f"*.{suffix}"):
        text = path.read_text("utf-8")
        for cause in IDLE_CAUSES.values():
            assert cause.words not in text, path


def _names(node: ast.Tuple | ast.List | ast.Set | ast.Dict) -> list[str]:
    parts = node.keys if isinstance(node, ast.Dict) else node.elts
    values = [one.value for one in parts if isinstance(one, ast.Constant)]
    return [one for one in values if isinstance(one, str)] if len(values) == len(parts) else []
