"""`nsysmap nsys-plugin install` puts times by layer into `nsys stats` and `nsys recipe`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
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


def _recipes_of_nsys(folder: Path) -> Path:
    """nsys's own recipe package: a copy of it inside links to the installation, with the folder
    that some installations lack.
    """
    target = Path(shutil.which("nsys") or "").resolve().parent
    copied = folder / target.name
    shutil.copytree(target / "python", copied / "python")
    (copied / "python" / "packages" / "nsys_recipe" / "third_party").mkdir(exist_ok=True)
    for parent, place in ((target, copied), (target.parent, folder)):
        for entry in parent.iterdir():
            if not (place / entry.name).exists():
                (place / entry.name).symlink_to(entry)
    return copied / "python" / "packages"


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed")
def test_nsys_recipe_adds_up_layers_over_reports(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    assert CliRunner().invoke(install, [str(ours)]).exit_code == 0
    real = FIXTURES / "real_trt"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "nsys_recipe", "nsysmap_layer_sum", "--csv"),
            *("--mode", "none", "--output", str(tmp_path / "out")),
            *("--engine", str(real / "bert_eager.engine.json"), "--input"),
            *(str(real / f"bert_eager-{mode}.nsys-rep") for mode in ("sync", "graph")),
            str(real / "cpp_edsr-graph.nsys-rep"),  # of another engine
        ],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(_recipes_of_nsys(tmp_path / "nsys")), *sys.path]),
            "NSYS_RECIPE_PATH": str(ours),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "cpp_edsr-graph.nsys-rep" in done.stderr
    by_report = pd.read_csv(tmp_path / "out" / "layers_by_report.csv")
    layers = pd.read_csv(tmp_path / "out" / "layers.csv")
    assert set(by_report["File"]) == {"bert_eager-sync", "bert_eager-graph"}
    assert set(layers["Reports"]) == {2}
    product = layers.loc[layers["Layer"] == "down/MatMul"].iloc[0]
    same = by_report.loc[by_report["Name"] == product["Name"], "Avg (ns)"]
    assert product["Min (ns)"] == same.min()
    assert product["Max (ns)"] == same.max()
