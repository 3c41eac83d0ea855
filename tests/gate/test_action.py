"""action.yml runs the gate with the files of a workflow: its own shell step is run here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nsysmap.comparison.gate.baseline import baseline_of
from nsysmap.comparison.gate.budget import read_budget
from nsysmap.comparison.side import side_of
from tests.places import FIXTURES
from tests.reports import analysis

ROOT = Path(__file__).parents[2]
BERT = FIXTURES / "bert_trt10"


def gate(tmp_path: Path, budget: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "nsysmap" / "bin" / "nsysmap"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsysmap "$@"\n')
    program.chmod(0o755)
    (tmp_path / "budget.toml").write_text(budget)
    held = step("gate")
    assert set(held["env"]) == {"REPORT", "ENGINES", "BUDGET", "BASELINE", "IGNORE"}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", held["run"]],
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


def step(name: str) -> dict[str, Any]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return next(one for one in action["runs"]["steps"] if one.get("id") == name)


@pytest.mark.parametrize("held", ["", "7\n9\n"])
def test_the_comment_that_is_edited_is_the_gate_s_own(tmp_path: Path, held: str) -> None:
    (tmp_path / "gh").write_text(
        '#!/bin/sh\necho "$@" >> "$CALLS"\ncase "$*" in *--paginate*) printf "%s" "$HELD";; esac\n'
    )
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "nsysmap-gate").mkdir()
    (tmp_path / "nsysmap-gate" / "gate.md").write_text("# kept\n")
    comment = step("comment")
    assert "startswith(env.MARKER)" in comment["run"]
    assert "github.workflow" in comment["env"]["MARKER"]
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", comment["run"]],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path),
            "CALLS": str(tmp_path / "calls"),
            "HELD": held,
            "NUMBER": "3",
            "REPOSITORY": "a/b",
            "MARKER": "<!-- nsysmap gate: w, j -->",
        },
        check=True,
    )
    body = tmp_path / "nsysmap-gate" / "comment.md"
    assert body.read_text() == "<!-- nsysmap gate: w, j -->\n\n# kept\n"
    asked, written = (tmp_path / "calls").read_text().splitlines()
    assert "repos/a/b/issues/3/comments" in asked
    where = "PATCH repos/a/b/issues/comments/7" if held else "POST repos/a/b/issues/3/comments"
    assert f"{where} -F body=@{body}" in written


@pytest.mark.parametrize(("status", "found"), [(0, "found=true\n"), (1, "")])
def test_the_action_sets_up_python_only_where_it_is_too_old(
    tmp_path: Path, status: int, found: str
) -> None:
    (tmp_path / "python3").write_text(f"#!/bin/sh\nexit {status}\n")
    (tmp_path / "python3").chmod(0o755)
    (output := tmp_path / "output").touch()
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step("python")["run"]],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_OUTPUT": str(output)},
        check=True,
    )
    assert output.read_text() == found


def test_the_example_s_workflow_checks_out_the_action_that_it_uses() -> None:
    text = (ROOT / "examples" / "gate" / "workflow.yml").read_text(encoding="utf-8")
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    (used,) = [one["uses"] for one in steps if one.get("uses", "").startswith("./")]
    assert used.removeprefix("./") in [one.get("with", {}).get("path") for one in steps]


def test_the_example_s_layers_are_in_the_tutorial_s_capture() -> None:
    limits = read_budget(ROOT / "examples" / "gate" / "budget.toml")
    base = baseline_of(side_of(analysis("bert_trt10", "sync.sqlite")))
    (pattern,) = {limit.name for limit in limits if limit.section == "layers"}
    called = {name for name in base.layers if base.is_called(name, pattern)}
    assert len(called) == 50  # of the six blocks: with attention and norms, without the rest
    assert "_gemm_mha_v2_myl0_4" in called
