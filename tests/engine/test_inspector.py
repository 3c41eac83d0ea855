"""Serialized engines through TensorRT's inspector.

The `tensorrt` modules here are stand-ins written by the tests: they let every path of the
subprocess run without the real package or a GPU, with messages as TensorRT words them.  They show
nothing about TensorRT itself.
"""
# ruff: noqa: E501 (messages and lines as TensorRT writes them)

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.inspector import inspect_plan
from nsysmap.inputs.engine.layer_info import documents_of, parse_json
from nsysmap.inputs.engine.reader import read_engine

STAND_IN = """
import sys
__version__ = "10.9.0.34"
class Logger:
    INFO = 1
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
LAYERS = json.dumps(
    {
        "Layers": [{"Name": "c", "LayerType": "CaskConvolution", "Inputs": [], "Outputs": []}],
        "Bindings": ["x"],
    }
)


RTX_VERSION = "10.9.0.34"  # what the stand-in says of itself


def rtx_plan(version: str = RTX_VERSION, *, length: int = 512) -> bytes:
    """The header that TensorRT for RTX 1.4 to 1.7 write, and nothing after it."""
    numbers = bytes(int(number) for number in version.split("."))
    return (
        b"vtrt\0\0\0\0"
        + (2).to_bytes(8, "little")
        + length.to_bytes(8, "little")
        + numbers
        + b"vtrt"
    ).ljust(length, b"\0")


def stand_in(
    folder: Path, deserialize: str, *, package: str = "tensorrt", text: str = LAYERS
) -> str:
    modules = folder / "stand_in_modules"
    modules.mkdir()
    (modules / f"{package}.py").write_text(
        STAND_IN.format(deserialize=deserialize, text=text), encoding="utf-8"
    )
    return str(modules)


def plan(folder: Path, data: bytes = b"ftrt\0\0\0plan", name: str = "model.engine") -> Path:
    file = folder / name
    file.write_bytes(data)
    return file


def without_tensorrt() -> bool:
    import importlib.util

    return all(
        importlib.util.find_spec(package) is None
        for package in ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")
    )


@pytest.mark.parametrize("name", ["model.engine", "model.plan", "model.bin"])
def test_the_inspectors_layers_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, "return Engine()"))
    engine = read_engine(plan(tmp_path, name=name))
    assert [layer.name for layer in engine.layers] == ["c"]
    assert engine.tensorrt_version == "10.9.0.34"
    assert engine.bindings == ("x",)


def test_the_header_that_ultralytics_writes_before_a_plan_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = b'{"stride": 32}'
    monkeypatch.setenv(
        "PYTHONPATH", stand_in(tmp_path, "return Engine() if data == b'ftrt-the-plan' else None")
    )
    engine = read_engine(
        plan(tmp_path, len(header).to_bytes(4, "little") + header + b"ftrt-the-plan")
    )
    assert [layer.name for layer in engine.layers] == ["c"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Error Code 1: Serialization (Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 240, Serialized Engine Version: 236)", "another version"),
        ("The engine plan file is not compatible with this version of TensorRT, expecting library version 8.6.1.6 got 8.5.3.1, please rebuild.", "built by TensorRT 8.5.3.1, but 8.6.1.6 is installed; install tensorrt==8.5.3.1"),
        ("The engine plan file is generated on an incompatible device, expecting compute 8.6 got compute 7.5, please rebuild.", "capability 7.5, but this machine's is 8.6"),
        ("CUDA initialization failure with error: 100", "no usable NVIDIA GPU"),
        ("Error Code 4: API Usage Error (getPluginCreator could not find plugin EfficientNMS_TRT version 1)", "plugin that is not loaded (EfficientNMS_TRT)"),
        ("something new", "something new"),
        ("[F] Error reading CUDA GPU properties: In getCurrentCC at /_src/runtime/dispatch/planHeaders.cpp:101 Ensure that the GPU driver is installed and up to date.", "no usable NVIDIA GPU"),
        ("The engine does not support the current compute capability 9.0. Supported compute capabilities are: 8.9", "not built for this machine's GPU, of compute capability 9.0"),
        ("The engine cannot run on this GPU, which has compute capability 9.0.", "not built for this machine's GPU, of compute capability 9.0"),
    ],
)  # fmt: skip
def test_what_tensorrt_says_becomes_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str
) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", stand_in(tmp_path, f"print('[TRT] [E] ' + {said!r}, file=sys.stderr)")
    )
    with pytest.raises(NsysmapError) as raised:
        read_engine(plan(tmp_path))
    line = str(raised.value)
    assert expected in line
    assert "model.engine" in line
    assert "\n" not in line


@pytest.mark.parametrize("package", ["tensorrt_rtx", "tensorrt_rtx_bindings"])
@pytest.mark.parametrize("name", ["model.plan", "model.bin"])
def test_an_engine_of_tensorrt_for_rtx_is_opened_by_it_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    folder = stand_in(tmp_path, "return Engine()", package=package)
    (Path(folder) / "tensorrt.py").write_text("raise SystemExit(9)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", folder)
    engine = read_engine(plan(tmp_path, rtx_plan(), name=name))
    assert [layer.name for layer in engine.layers] == ["c"]
    assert engine.tensorrt_version == RTX_VERSION


@pytest.mark.parametrize("deserialize", ["return None", "import os; os.kill(os.getpid(), 11)"])
def test_an_engine_of_another_version_of_tensorrt_for_rtx_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deserialize: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, deserialize, package="tensorrt_rtx"))
    with pytest.raises(NsysmapError) as raised:
        read_engine(plan(tmp_path, rtx_plan("1.7.1.116")))
    assert (
        raised.value.what
        == f"was built by TensorRT for RTX 1.7.1.116, but {RTX_VERSION} is installed"
    )
    assert raised.value.remedy.startswith(
        "pip install tensorrt-rtx==1.7.1.116, or run tensorrt_rtx --loadEngine="
    )


def test_another_version_that_opens_all_the_same_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, "return Engine()", package="tensorrt_rtx"))
    assert len(read_engine(plan(tmp_path, rtx_plan("10.9.0.35"))).layers) == 1


def test_an_engine_of_tensorrt_for_rtx_that_was_cut_short_is_told_without_opening_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        NsysmapError, match="is cut short: 300 of 512 bytes are there; copy it again"
    ):
        read_engine(plan(tmp_path, rtx_plan()[:300]))


def test_without_tensorrt_for_rtx_the_remedy_is_to_install_its_version(tmp_path: Path) -> None:
    if not without_tensorrt():
        pytest.skip("TensorRT is installed here")
    with pytest.raises(
        NsysmapError,
        match=(r"pip install tensorrt-rtx==1\.5\.0\.114"),
    ):
        read_engine(plan(tmp_path, rtx_plan("1.5.0.114")))


def test_a_crash_names_the_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path, "import os; os.kill(os.getpid(), 11)"))
    with pytest.raises(NsysmapError, match=r"\(signal 11\)"):
        read_engine(plan(tmp_path))


def test_too_long_is_an_error_and_the_process_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    monkeypatch.setenv(
        "PYTHONPATH",
        stand_in(tmp_path, f"open({str(started)!r}, 'w').close(); import time; time.sleep(600)"),
    )
    with pytest.raises(NsysmapError, match="more than 3 s"):
        inspect_plan(plan(tmp_path), seconds=3)


def test_a_package_that_does_not_load_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = tmp_path / "stand_in_modules"
    modules.mkdir()
    (modules / "tensorrt.py").write_text(
        "raise ImportError('libnvinfer.so.10: cannot open shared object file')", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(modules))
    with pytest.raises(NsysmapError, match=r"not load \(libnvinfer\.so\.10"):
        read_engine(plan(tmp_path))


def test_without_the_package_the_remedy_is_to_install_or_export(tmp_path: Path) -> None:
    if not without_tensorrt():
        pytest.skip("tensorrt is installed here")
    with pytest.raises(NsysmapError, match="is not installed"):
        read_engine(plan(tmp_path))


def test_json_written_into_a_json_string_is_read() -> None:
    assert len(documents_of(parse_json(json.dumps(LAYERS), "made"), "made")[0].rows) == 1
