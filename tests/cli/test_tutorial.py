"""docs/tutorial.md: every command on it runs, on the files that it names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import FIXTURES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("nsysmap ") and not line.startswith("nsysmap record")
]


def test_the_tutorial_shows_the_commands_that_people_come_for() -> None:
    assert {shlex.split(line)[1] for line in COMMANDS} >= {"analyze", "layers", "compare", "sql"}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_tutorial_runs(line: str, tmp_path: Path) -> None:
    for name in ("sync.nsys-rep", "graph.nsys-rep", "engine.json"):
        shutil.copy(FIXTURES / "bert_trt10" / name, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(line)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NSYSMAP_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or "-o" in line
