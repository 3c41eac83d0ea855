"""Serialized engines through TensorRT's inspector.

The `tensorrt` modules here are stand-ins written by the tests: they let every path of the subprocess run without the real package or a GPU,
with messages as TensorRT words them.  They show nothing about TensorRT itself.
"""

# ruff: noqa: E501 (messages and lines as TensorRT writes them)

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsysmap.base.errors import NsysmapError
from nsysmap.engine.inspector import inspect_plan
from nsysmap.engine.layer_info import documents_of, parse_json
from nsysmap.engine.reader import read_engine

STAND_IN = """
import sys
__version__ = "10.9.0.34"
class Logger:
    ERROR = 1
    def __init__(self, level): pass
class LayerInformationFormat:
    JSON = 1
class Inspector:
    def get_engine_information(self, form): return {text!r}
class Engine:
    def create_engine_inspector(self): return Inspector()
class Runtime:
    def __init__(self, logger): pass
    def deserialize_cuda_engine(self, data):
        {deserialize}
def init_libnvinfer_plugins(logger, namespace): print("noise on standard output")
"""
LAYERS = json.dumps({"Layers": [{"Name": "c", "LayerType": "CaskConvolution", "Inputs": [], "Outputs": []}], "Bindings": ["x"]})


def stand_in(folder: Path, deserialize: str, *, package: str = "tensorrt", text: str = LAYERS) -> str:
    modules = folder / "stand_in_modules"
    modules.mkdir()
    (modules / f"{package}.py").write_text(STAND_IN.format(deserialize=deserialize, text=text), encoding="utf-8")
    return str(modules)


def plan(folder: Path, data: bytes = b"ftrt\0\0\0plan", name: str = "model.engine") -> Path:
    file = folder / name
    file.write_bytes(data)
    return file


def without_tensorrt() -> bool:
    import importlib.util

    return all(importlib.util.find_spec(package) is None for package in ("tensorrt", "tensorrt_rtx"))


@pytest.mark.parametrize("package", ["tensorrt", "tensorrt_rtx"])
@pytest.mark.parametrize("name", ["model.engine", "model.plan", "model.bin"])
def test_the_inspectors_layers_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str) -> None:
    if package == "tensorrt_rtx" and not without_tensorrt():
        pytest.skip("the real tensorrt is installed and comes first")
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, "return Engine()", package=package))
    engine = read_engine(plan(tmp_path, name=name))
    assert [layer.name for layer in engine.layers] == ["c"]
    assert engine.tensorrt_version == "10.9.0.34"
    assert engine.bindings == ("x",)


def test_the_header_that_ultralytics_writes_before_a_plan_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = b'{"stride": 32}'
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, "return Engine() if data == b'ftrt-the-plan' else None"))
    engine = read_engine(plan(tmp_path, len(header).to_bytes(4, "little") + header + b"ftrt-the-plan"))
    assert [layer.name for layer in engine.layers] == ["c"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Error Code 1: Serialization (Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 240, Serialized Engine Version: 236)", "another version"),
        ("The engine plan file is not compatible with this version of TensorRT, expecting library version 8.6.1.6 got 8.5.3.1, please rebuild.", "built by TensorRT 8.6.1.6, but 8.5.3.1"),
        ("The engine plan file is generated on an incompatible device, expecting compute 8.6 got compute 7.5, please rebuild.", "capability 8.6, but this machine's is 7.5"),
        ("CUDA initialization failure with error: 100", "no usable NVIDIA GPU"),
        ("Error Code 4: API Usage Error (getPluginCreator could not find plugin EfficientNMS_TRT version 1)", "plugin that is not loaded (EfficientNMS_TRT)"),
        ("something new", "something new"),
    ],
)  # fmt: skip
def test_what_tensorrt_says_becomes_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, f"print('[TRT] [E] ' + {said!r}, file=sys.stderr)"))
    with pytest.raises(NsysmapError) as raised:
        read_engine(plan(tmp_path))
    line = str(raised.value)
    assert expected in line
    assert "model.engine" in line
    assert "\n" not in line


def test_a_crash_names_the_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, "import os; os.kill(os.getpid(), 11)"))
    with pytest.raises(NsysmapError, match="crashed on it \\(signal 11\\)"):
        read_engine(plan(tmp_path))


def test_too_long_is_an_error_and_the_process_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, f"open({str(started)!r}, 'w').close(); import time; time.sleep(600)"))
    with pytest.raises(NsysmapError, match="more than 3 s"):
        inspect_plan(plan(tmp_path), seconds=3)


def test_a_package_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "stand_in_modules"
    modules.mkdir()
    (modules / "tensorrt.py").write_text("raise ImportError('libnvinfer.so.10: cannot open shared object file')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(modules))
    with pytest.raises(NsysmapError, match=r"tensorrt package does not load \(libnvinfer\.so\.10"):
        read_engine(plan(tmp_path))


def test_without_the_package_the_remedy_is_to_install_or_export(tmp_path: Path) -> None:
    if not without_tensorrt():
        pytest.skip("tensorrt is installed here")
    with pytest.raises(NsysmapError, match="tensorrt package is not installed; pip install"):
        read_engine(plan(tmp_path))


def test_json_written_into_a_json_string_is_read() -> None:
    assert len(documents_of(parse_json(json.dumps(LAYERS), "made"), "made")[0].rows) == 1
