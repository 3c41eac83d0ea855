"""A command that needs a package which is not installed says so in one line, with the line that
installs it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nsysmap.core.extras import EXTRA_PACKAGES
from tests.places import FIXTURES

REAL = FIXTURES / "real_trt"
REPORT, ENGINE = str(REAL / "p_softmax-graph.nsys-rep"), str(REAL / "p_softmax.engine.json")
FIX = ("fix", REPORT, ENGINE, "--onnx", "model.onnx", "-o", "fix.py")
SCRIPT = Path(__file__).parents[1] / "hidden_extras.py"


def without(modules: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What nsysmap does where these modules cannot be imported."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), modules, *arguments],
        check=False, capture_output=True, text=True, cwd=folder, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("modules", "arguments", "told"),
    [
        ("onnx,onnx_ir,onnxruntime", FIX, "pip install onnx onnx-ir"),
        ("onnx_ir", FIX, "pip install onnx-ir"),
        ("onnx", FIX, "pip install onnx"),
        ("onnx,onnx_ir,onnxruntime", (*FIX, "--apply", "o.onnx"),
         "pip install onnx onnx-ir onnxruntime"),
        ("onnxruntime", (*FIX, "--apply", "o.onnx"), "pip install onnxruntime"),
        ("onnx", ("analyze", REPORT, ENGINE, "--onnx", "m.onnx"), "pip install onnx"),
        ("onnx", ("layers", ENGINE, "--onnx", "m.onnx"), "pip install onnx"),
        ("onnx", ("map", REPORT, ENGINE, "--onnx", "m.onnx"), "pip install onnx"),
        ("onnx", ("compare", ENGINE, ENGINE, "--onnx", "m.onnx"), "pip install onnx"),
        ("mcp", ("mcp", "."), "pip install 'mcp>=2'"),
        ("distributed", ("fleet", REPORT, "-o", "fleet"), "pip install distributed"),
        ("distributed,fsspec", ("fleet", REPORT, "-o", "fleet"),
         "pip install distributed fsspec"),
    ],
)  # fmt: skip
def test_a_command_without_its_package_says_so_in_one_line(
    modules: str, arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    done = without(modules, tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f": {told}\n")
    assert not list(tmp_path.iterdir())


def test_an_answer_needs_none_of_them(tmp_path: Path) -> None:
    every = "onnx,onnx_ir,onnxruntime,mcp,distributed,dask,fsspec,tensorrt,tensorrt_rtx"
    done = without(every, tmp_path, "layers", ENGINE)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_optional_packages_are_those_of_the_extras() -> None:
    project = tomllib.loads((FIXTURES.parent / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    named = {
        re.split(r"[<>=]", one)[0]
        for name in ("onnx", "fix", "fleet", "mcp")
        for one in extras[name]
    }
    assert {one.package for one in EXTRA_PACKAGES} == named
