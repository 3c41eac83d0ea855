"""`nsysmap record` and `nsysmap doctor`, with scripts that play an nsys of any version."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from nsysmap.inputs.nsys import program
from nsysmap.inputs.nsys.program import Nsys
from nsysmap.inputs.nsys.record import METRICS_HZ, Sampling, capture_command, layer_files
from nsysmap.output import doctor
from tests.commands import run
from tests.places import FIXTURES

CAPTURE = FIXTURES / "bert_trt10"
HEAD = "-t cuda,nvtx,osrt --sample=none --cpuctxsw=none"
StandIn = Callable[..., Path]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """An nsys of this version in an empty folder that is made the current one; `profile` runs
    `body` (`out` is the -o path).
    """
    monkeypatch.setattr(program, "INSTALL_FOLDERS", ())
    monkeypatch.setenv("NSYSMAP_CACHE", str(tmp_path / "cache"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def make(
        body: str = "capture()",
        *,
        version: str = "2023.4.4.54",
        metrics: str = "0: NVIDIA H100",
        devices: str = "--gpu-metrics-device",
    ) -> Path:
        script = tmp_path / "nsys"
        script.write_text(
            f"#!{sys.executable}\nimport json, os, shutil, signal, subprocess, sys, time\nif"
            f" '--version' in sys.argv:\n    print('NVIDIA Nsight Systems version {version}');"
            f" sys.exit()\nif sys.argv[-1] == '{devices}=help':\n    print({metrics!r});"
            " sys.exit()\nif sys.argv[-1].endswith('=help'):\n    print('unrecognised option',"
            " repr(sys.argv[-1])); sys.exit(1)\nat = sys.argv.index('-o') + 1 if '-o' in sys.argv"
            " else 0\nout = sys.argv[at]\njson.dump(sys.argv[1:], open('asked.json', 'w'))\ndef"
            f" capture():\n    shutil.copy({str(CAPTURE / 'sync.sqlite')!r}, out)\nif sys.argv[1]"
            f" == 'profile':\n    {body}\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("NSYS", str(script))
        return script

    return make


@pytest.mark.parametrize(
    ("version", "graphs"),
    [
        ("2021.1.1", ""),
        ("2023.4.4.54", " --cuda-graph-trace=node"),
        ("2026.2.1", " --cuda-graph-trace=node"),
        ("2026.4.1", " --cuda-graph-trace=node:nvtx-precapture"),
        ("2027.1.1", " --cuda-graph-trace=node:nvtx-precapture"),
    ],
)
def test_the_flags_fit_the_version_that_is_found(
    version: str, graphs: str, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(version=version)
    done = run(capfd, "record", "--print", "--", "./program", "--flag", "two words")
    assert (done.status, done.err) == (0, "")
    assert (
        done.out == f"nsys profile {HEAD}{graphs} -o report.nsys-rep ./program --flag 'two words'\n"
    )
    assert not Path("asked.json").exists()


@pytest.mark.parametrize("option", ["--gpu-metrics-device", "--gpu-metrics-devices"])
def test_counters_are_sampled_as_often_as_nsys_keeps_up_with(
    option: str, stand_in: StandIn
) -> None:
    nsys = Nsys(stand_in(devices=option), "2024.1.1")
    command = capture_command(nsys, ["x"], Path("r.nsys-rep"), gpu_metrics=Sampling("1"))
    assert command[6:9] == [
        "--cuda-graph-trace=node",
        f"{option}=1",
        f"--gpu-metrics-frequency={METRICS_HZ}",
    ]


@pytest.mark.parametrize(
    ("report", "hz"), [("bert_trt10/graph", 50_000), ("torch_encoder/graph", 200_000)]
)
def test_an_earlier_report_says_how_often_its_kernels_need_to_be_sampled(
    report: str, hz: int, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    """The shorter the kernels and the fewer the inferences, the more often."""
    stand_in()
    earlier = FIXTURES / f"{report}.nsys-rep"
    done = run(capfd, "record", "--print", "--gpu-metrics", "--kernels-of", str(earlier), "--", "x")
    assert done.status == 0, done.err
    assert f"--gpu-metrics-frequency={hz} " in done.out
    assert (
        "add --gpu-metrics"
        in run(capfd, "record", "--print", "--kernels-of", str(earlier), "--", "x").err
    )


def test_a_capture_is_analysed_with_the_engine_that_the_program_exports(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in()
    Path("layers.json").write_bytes((CAPTURE / "engine.json").read_bytes())
    done = run(
        capfd,
        "record",
        "-o",
        "run.nsys-rep",
        "trtexec",
        "--exportLayerInfo=layers.json",
        "--exportLayerInfo=none.json",
    )
    assert done.status == 0, done.err
    assert done.out == run(capfd, "analyze", "run.nsys-rep", "layers.json").out
    assert json.loads(Path("asked.json").read_text())[-3:] == [
        "trtexec",
        "--exportLayerInfo=layers.json",
        "--exportLayerInfo=none.json",
    ]
    assert layer_files(["trtexec", "--exportLayerInfo=a=b.json", "--exportLayerInfo="]) == [
        "a=b.json"
    ]


def test_what_the_program_prints_is_shown_and_its_status_is_ours(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in("capture(); print('from the program'); sys.exit(7)")
    done = run(capfd, "record", "--", "x")
    assert done.status == 7
    assert done.out.startswith("from the program\n")
    assert "with status 7" in done.err


def test_a_report_that_is_there_is_kept(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in()
    Path("report.nsys-rep").write_text("precious")
    done = run(capfd, "record", "--", "x")
    assert (done.status, done.out) == (2, "")
    assert "exists already" in done.err
    assert Path("report.nsys-rep").read_text() == "precious"
    assert "--force-overwrite=true" in run(capfd, "record", "--print", "--force", "--", "x").out


def test_an_earlier_report_is_not_taken_for_one_that_nsys_did_not_write(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    """As when the program does not exist: nsys ends with status 1."""
    Path("run.nsys-rep").write_bytes((CAPTURE / "sync.nsys-rep").read_bytes())
    stand_in("sys.exit(1)")
    done = run(capfd, "record", "-o", "run", "--force", "--", "x")
    assert (done.status, done.out) == (2, "")
    assert "an earlier one" in done.err
    stand_in()
    assert run(capfd, "record", "-o", "run", "--force", "--", "x").status == 0


@pytest.mark.parametrize("name", ["run.sqlite", "none/run.nsys-rep"])
def test_an_output_that_cannot_be_is_refused_before_anything_runs(
    name: str, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in()
    assert run(capfd, "record", "-o", name, "--", "x").status == 2
    assert not Path("asked.json").exists()


@pytest.mark.parametrize("body", ["pass", "sys.exit(1)", "os.kill(os.getpid(), 9)"])
def test_an_nsys_that_writes_nothing_is_one_line(
    body: str, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(body)
    done = run(capfd, "record", "--", "x")
    assert (done.status, done.out) == (2, "")
    assert "report.nsys-rep: was not written" in done.err.splitlines()[-1]


def test_without_permission_for_counters_nothing_runs_and_the_way_to_get_it_is_said(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(
        metrics=(
            "The user running nsys does not have permission to access NVIDIA GPU Performance"
            " Counters on the target device. For more details, please visit"
            " https://developer.nvidia.com/ERR_NVGPUCTRPERM"
        )
    )
    done = run(capfd, "record", "--gpu-metrics", "--", "x")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "ERR_NVGPUCTRPERM" in done.err
    assert "NVreg_RestrictProfilingToAdminUsers=0" in done.err
    assert not Path("asked.json").exists()
    stand_in(metrics="NVIDIA GPUs not found, feature is not available")
    assert "no GPU here" in run(capfd, "record", "--gpu-metrics", "--", "x").err
    stand_in()
    assert run(capfd, "record", "--gpu-metrics=1", "--", "x").status == 0
    assert "--gpu-metrics-device=1" in json.loads(Path("asked.json").read_text())


def test_no_nsys_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "INSTALL_FOLDERS", ())
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(capfd, "record", "--", "x")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "install Nsight Systems" in done.err


def test_an_interrupt_is_for_nsys_which_then_writes_its_report(stand_in: StandIn) -> None:
    """Ctrl-C reaches both, as on a terminal: the program ends, and what was captured is
    analysed.
    """
    stand_in(
        "import time; came = []; signal.signal(signal.SIGINT, lambda *_: came.append(1));"
        " open('up', 'w').close()\nwhile not came: time.sleep(0.01)\ncapture()"
    )
    command = [
        sys.executable,
        "-c",
        "from nsysmap.cli.main import main; main()",
        "record",
        "--",
        "x",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not Path("up").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert b"50 inferences" in out and b"every kernel has a layer" in out


def not_installed(package: str) -> str:
    raise PackageNotFoundError(package)


# --- doctor
# --------------------------------------------------------------------------------------------------


def test_doctor_says_what_is_there_and_what_that_allows(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    script = stand_in(version="2025.3.1.90")
    found = {one["thing"]: one for one in json.loads(run(capfd, "doctor", "--json").out)}
    assert set(found) >= {"nsys", "TensorRT", "trtexec", "onnx", "chromium", "GPU", "cache"}
    assert found["nsys"]["what"] == f"2025.3.1.90 ({script})"
    assert all(one["allows"] for one in found.values())
    text = run(capfd, "doctor")
    assert (text.status, text.err) == (0, "")
    assert "ok  nsys" in text.out


def test_doctor_without_anything_says_what_works_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "INSTALL_FOLDERS", ())
    monkeypatch.setattr(doctor, "_DRIVER", tmp_path / "none")
    monkeypatch.setattr(doctor, "version", not_installed)
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NSYSMAP_CACHE", str(tmp_path / "a" / "b"))
    found = {one["thing"]: one["found"] for one in json.loads(run(capfd, "doctor", "--json").out)}
    assert found == {
        "nsys": False,
        "TensorRT": False,
        "trtexec": False,
        "onnx": False,
        "onnx-ir": False,
        "onnxruntime": False,
        "Dask": False,
        "fsspec": False,
        "mcp": False,
        "chromium": False,
        "GPU": False,
        "cache": True,
    }
    told = " ".join(run(capfd, "doctor").out.split())
    assert (
        "Reports can be opened without it: nsysmap reads them itself. `nsysmap record` needs nsys:"
        " install Nsight Systems." in told
    )
    for package in ("onnx", "onnx-ir", "onnxruntime", "distributed", "fsspec", "mcp"):
        assert f"the Python package {package} is not installed" in told
    assert "no nsysmap fix: pip install onnx-ir" in told
    assert "no nsysmap mcp: pip install 'mcp>=2'" in told
    version = run(capfd, "--version").out.splitlines()
    absent = "tensorrt, tensorrt_rtx, onnx, onnx-ir, onnxruntime, distributed, fsspec, mcp"
    assert version[-1] == f"optional, not installed: {absent}"
    monkeypatch.setenv("NSYS", "/bin/false")
    assert "point NSYS at" in " ".join(run(capfd, "doctor").out.split())
    assert not (tmp_path / "a").exists()


def test_a_package_that_is_too_old_allows_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "version", lambda _: "1.27.1")
    found = {one["thing"]: one for one in json.loads(run(capfd, "doctor", "--json").out)}
    assert found["mcp"]["found"] is False
    assert found["mcp"]["what"] == "1.27.1 (Python package mcp) is older than 2"
    assert found["onnx-ir"]["found"] is True


@pytest.mark.parametrize(
    ("params", "root", "found"),
    [("RmProfilingAdminOnly: 0\n", 1000, True), ("RmProfilingAdminOnly: 1\n", 0, True),
                                  ("RmProfilingAdminOnly: 1\n", 1000, False),
                                  ("Other: 1\n", 1000, None)],
)  # fmt: skip
def test_doctor_reads_off_the_driver_who_may_sample_counters(
    params: str, root: int, found: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n"
    )
    (tmp_path / "params").write_text(params)
    monkeypatch.setattr(doctor, "_DRIVER", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: root)
    told = {str(one["thing"]): one for one in doctor.doctor_json(doctor.doctor())}
    assert told["GPU"]["what"] == "NVIDIA driver 580.65.06"
    assert told["counters"]["found"] is found
    assert ("ERR_NVGPUCTRPERM" in str(told["counters"])) is (found is False)
