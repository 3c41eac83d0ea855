"""A program that ended before it made a CUDA call says why: that is told, in our own words, in
place of guesses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.api import analyze
from nsysmap.trace.lacking import lacking
from nsysmap.trace.program_output import program_output
from tests.nsys_file import PROCESS, NsysFile
from tests.reports import read_trace

LIBRARY = (
    "/home/me/secret/./infer: error while loading shared libraries: libnvinfer_plugin.so.8: cannot"
    " open shared object file: No such file or directory\n"
)


def written(stderr: str = "", stdout: str = "") -> NsysFile:
    file = NsysFile()
    file.add("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value="Cuda")
    file.range("import", 10, 20)
    for name, held in (("/tmp/pid_1_stdout.log", stdout), ("/tmp/pid_1_stderr.log", stderr)):
        file.add(
            "ProcessStreams",
            globalPid=PROCESS,
            filenameId=file.string(name),
            contentId=file.string(held),
        )
    return file


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (LIBRARY, "libnvinfer_plugin.so.8"),
        ("/opt/bin/python3: can't open file 'main.py': [Errno 2] No such file\n", "script"),
        (
            "Traceback (most recent call last):\n  …\nModuleNotFoundError: No module named 'x.y'",
            "x.y",
        ),
        (
            "Traceback (most recent call last):\n  File '/home/me/a.py'\nKeyError: 'token'\n",
            "KeyError",
        ),
        ("CUDA error: no CUDA-capable device is detected", "no CUDA device"),
        ("Segmentation fault (core dumped)\n", "crashed"),
    ],
)
def test_the_reason_is_told_and_no_path_or_argument(tmp_path: Path, stderr: str, told: str) -> None:
    trace = read_trace(written(stderr).write(tmp_path / "x.sqlite"))
    (note,) = lacking(trace, "none")
    assert note.level == "error"
    assert told in note.text
    assert not any(word in note.text for word in ("/home", "secret", "token", "driver", "WSL"))


def test_other_words_are_not_repeated_but_where_they_stand(tmp_path: Path) -> None:
    trace = read_trace(written("user me gave a wrong password\n").write(tmp_path / "x.sqlite"))
    (note,) = lacking(trace, "none")
    assert "password" not in note.text
    assert "ProcessStreams" in note.text


def test_trtexec_tells_the_version_of_its_tensorrt(tmp_path: Path) -> None:
    told = "&&&& RUNNING TensorRT.trtexec [TensorRT v8501] # trtexec --loadEngine=x\n"
    file = written(stdout=told)
    file.launch("k", 100, 1)
    capture = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.capture.only()
    assert capture.text("environment_tensorrt") == "8.5.1"


@pytest.mark.parametrize(
    ("number", "version"),
    [("8501", "8.5.1"), ("7103", "7.1.3"), ("100300", "10.3.0"), ("101401", "10.14.1")],
)
def test_versions_are_written_as_numbers(number: str, version: str) -> None:
    said = f"&&&& PASSED TensorRT.trtexec [TensorRT v{number}] # x"
    assert program_output([("stdout", said)]).trtexec_version == version


def test_without_any_output_nothing_is_told() -> None:
    found = program_output([("stdout", None), (None, "x")])
    assert (found.failure, found.complained, found.trtexec_version) == (None, False, None)
