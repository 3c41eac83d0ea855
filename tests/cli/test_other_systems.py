"""Windows and macOS: nsysmap works where what only Unix or only Linux has is hidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import FIXTURES

ROOT = Path(__file__).parents[2]
BERT = FIXTURES / "bert_trt10"


def run(tmp_path: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tests" / "hidden_unix.py", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NSYSMAP_CACHE": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    done = run(tmp_path, "--imports")
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr


@pytest.mark.parametrize("report", ["sync.nsys-rep", "sync.sqlite"])
def test_a_whole_analysis_writes_every_form(tmp_path: Path, report: str) -> None:
    written = [tmp_path / f"a{suffix}" for suffix in (".html", ".json", ".db", ".md")]
    outputs = [part for path in written for part in ("-o", path)]
    done = run(
        tmp_path, "analyze", BERT / report, BERT / "engine.json", "--reader", "own", *outputs
    )
    assert done.returncode == 0, done.stderr
    assert "Do first" in done.stdout
    assert all(path.stat().st_size for path in written)


def test_sql_answers(tmp_path: Path) -> None:
    done = run(tmp_path, "sql", BERT / "sync.sqlite", "SELECT count(*) AS n FROM kernels", "--csv")
    assert done.stdout.split() == ["n", "2800"], done.stderr


def test_rules_of_a_folder_do_not_run_without_a_limit_of_memory(tmp_path: Path) -> None:
    done = run(tmp_path, "analyze", BERT / "sync.sqlite", "--rules", ROOT / "rules" / "launch")
    assert done.returncode == 2
    assert "limit the memory" in done.stderr
    assert done.stderr.count("\n") == 1
