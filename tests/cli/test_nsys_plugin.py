"""`nsysmap nsys-plugin install` puts times by layer into `nsys stats`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsysmap.cli.nsys_plugin import install
from tests.places import FIXTURES


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed")
def test_nsys_stats_shows_times_by_layer(tmp_path: Path) -> None:
    assert CliRunner().invoke(install, [str(tmp_path)]).exit_code == 0
    report = tmp_path / "report.sqlite"
    shutil.copy(FIXTURES / "bert_trt10" / "sync.sqlite", report)
    engine = FIXTURES / "bert_trt10" / "engine.json"
    done = subprocess.run(
        [
            *("nsys", "stats", "--report-dir", str(tmp_path), "-f", "csv"),
            *("-r", f"nsysmap_layers:engine={engine}", str(report)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Time (%),Avg (ns),Med (ns),Kernels,Kind,Layer,Name" in done.stdout, done.stdout
    assert "intermediate/dense/MatMul" in done.stdout
