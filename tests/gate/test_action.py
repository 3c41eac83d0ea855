"""action.yml runs the gate with the files of a workflow: its own shell step is run here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.places import FIXTURES

ROOT = Path(__file__).parents[2]
BERT = FIXTURES / "bert_trt10"


def gate(tmp_path: Path, budget: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "nsysmap" / "bin" / "nsysmap"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsysmap "$@"\n')
    program.chmod(0o755)
    (tmp_path / "budget.toml").write_text(budget)
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = next(one for one in action["runs"]["steps"] if one.get("id") == "gate")
    assert set(step["env"]) == {"REPORT", "ENGINES", "BUDGET", "BASELINE", "IGNORE"}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "NSYSMAP_CACHE": str(tmp_path / "cache"),
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "REPORT": str(BERT / "sync.sqlite"),
            "ENGINES": f"{BERT / 'engine.json'}\n",
            "BUDGET": str(tmp_path / "budget.toml"),
            "BASELINE": "",
            "IGNORE": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("limit", "status"), [("10 ms", 0), ("1 us", 1)])
def test_the_action_holds_a_capture_to_the_budget(tmp_path: Path, limit: str, status: int) -> None:
    done = gate(tmp_path, f'[time]\nrecorded = "{limit}"\n')
    assert done.returncode == status, done.stderr
    assert "recorded" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "nsysmap-gate" / "gate.sarif").exists()
    assert "sarif=" in (tmp_path / "output").read_text()
