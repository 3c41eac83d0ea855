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


def written(stderr: str = "", stdout: str = "", traced: str = "Cuda") -> NsysFile:
    file = NsysFile()
    file.add("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value=traced)
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


def test_a_program_that_did_not_start_is_not_captured_again_with_cuda(tmp_path: Path) -> None:
    file = written(LIBRARY, traced="OSRuntime").write(tmp_path / "x.sqlite")
    answer = analyze(file, rules=[]).summary
    assert "libnvinfer_plugin.so.8" in answer.errors[0].text
    assert not answer.next_steps


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


IN_PYTHON = 'Traceback (most recent call last):\n  File "/home/me/a.py", line 5, in f\n    a[a]\n'


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (f"{IN_PYTHON}IndexError: arrays used as indices\n", "IndexError"),
        (f"UserWarning: old\n{IN_PYTHON}numba.cuda.X.NvvmError: no\nlib.so: no\n", "NvvmError"),
        (f"{IN_PYTHON}RuntimeError: CUDA error\nCUDA kernel errors\nFor debugging\n", "Runtime"),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  x\n", "bad_"),
        (
            "mpirun noticed that process rank 1 exited on signal 11 (Segmentation fault).\n--",
            "Segm",
        ),
        ("[n:1] Signal: Aborted (6)\n[n:1] [0] a\n[n:1] *** End of error message ***\n", "Aborted"),
        ("a.out: m.cu:19: f(): Assertion `x < 1' failed.\n", "assertion"),
        (
            "ERROR: LoadError: no method\nStacktrace:\nin expression starting at /home/a.jl:1",
            "Julia",
        ),
        ('check() API error = 0700 "an illegal memory access was encountered" from x\n', "illegal"),
    ],
)
def test_an_error_that_is_the_last_of_what_was_written_ended_the_program(
    tmp_path: Path, stderr: str, told: str
) -> None:
    file = written(stderr)
    file.launch("k", 100, 1)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    note = next(one for one in lacking(trace, "none") if one.level == "warning")
    assert told in note.text
    assert "/home" not in note.text


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "a.py:4: UserWarning: this will be removed\n  warnings.warn(\n",
        f"{IN_PYTHON}ValueError: bad row\n2024-01-01 12:00 INFO skipped it\n",
        f"{IN_PYTHON}ValueError: bad row\n100%|####| 3/3\n",
        f"Exception in thread Thread-1:\n{IN_PYTHON}ValueError: bad row\n",
        f"Exception ignored in: <function X.__del__>\n{IN_PYTHON}TypeError: none\n",
        f"{IN_PYTHON}KeyboardInterrupt\n",
        "W0722 failed to allocate 3.18G: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
        "Assertion x failed, going on\nstep 2\n",
    ],
)
def test_warnings_and_errors_that_a_program_survived_are_no_end(stderr: str) -> None:
    assert program_output([("/tmp/pid_1_stderr.log", stderr)]).error is None
    # what stands on stdout, or in another process's stderr, is no last word of this one
    ended = [("stderr", f"{IN_PYTHON}IndexError: x\n"), ("stderr", "done\n")]
    assert program_output([("stdout", f"{IN_PYTHON}IndexError: x\n")]).error is None
    assert program_output(ended).error is not None
