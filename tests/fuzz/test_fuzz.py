"""Fuzzing with a fixed budget: the corpus always, and new inputs where atheris is installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import CORPUS, TARGETS, corpus
from tests.places import ROOT

RUNS = {
    "names": 3000,
    "engine": 2000,
    "rule": 1500,
    "pages": 300,
    "report": 1500,
    "counters": 3000,
    "budget": 3000,
    "parquet": 1500,
    "statement": 1500,
}
LARGEST_BYTES = 8192


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_ends_in_answers_or_errors(target: str) -> None:
    files = corpus(target)
    assert len(files) >= 3
    for path in files:
        assert path.stat().st_size <= LARGEST_BYTES
        TARGETS[target](path.read_bytes())


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_new_inputs_end_in_answers_or_errors(target: str, tmp_path: Path) -> None:
    seeds = shutil.copytree(CORPUS / target, tmp_path / "seeds")
    command = [
        sys.executable,
        "-m",
        "tests.fuzz",
        target,
        f"-runs={RUNS[target]}",
        "-seed=1",
        f"-artifact_prefix={tmp_path}/",
        str(seeds),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
