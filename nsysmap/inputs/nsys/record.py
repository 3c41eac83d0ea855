"""Has nsys capture a program with the flags that nsysmap needs, for the installed version of
nsys.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.nsys.program import Nsys, asked, older

METRICS_HZ = 50_000
"""Sampling rate of counters if nothing is known about the kernels: 150 inferences then suffice for
kernels from 1.5 µs on, and few samples are lost.

On an H100 nsys 2025.3 lost none of 6.7 s at 10 and 20 kHz, 14 % at 50 kHz, 46 % at 100 kHz and 80 %
at 200 kHz.
"""

PERMISSION = (
    "become root for the capture, or have an administrator write `options nvidia"
    " NVreg_RestrictProfilingToAdminUsers=0` into a file of /etc/modprobe.d/ and restart the"
    " machine; a container needs --cap-add=SYS_ADMIN too"
    " (https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
)
"""How to get permission to read the GPU's performance counters."""

_PRECAPTURE_SINCE = "2026.4"
_GRAPH_TRACE_SINCE = "2021.5"
_UNKNOWN_OPTION = "unrecognised option"
_REFUSED = re.compile(r"ERR_NVGPUCTRPERM|[Ii]nsufficient privilege|not have permission to access")
_NONE_THERE = re.compile(r"feature is not available|GPUs not found|None of the installed GPUs")


@dataclass(frozen=True)
class Recorded:
    """How a capture ended: nsys's exit status, which is the program's unless nsys itself failed."""

    status: int
    report: Path


@dataclass(frozen=True)
class Sampling:
    """The GPUs whose hardware counters are sampled (as nsys takes them), and how often."""

    gpus: str
    hertz: int = METRICS_HZ


def capture_command(
    nsys: Nsys,
    program: Sequence[str],
    report: Path,
    *,
    gpu_metrics: Sampling | None = None,
    force: bool = False,
) -> list[str]:
    """The command line that captures ``program`` into ``report``."""
    version = nsys.version
    # no answer rests on samples of the CPU
    flags = [
        "-t",
        "cuda,nvtx,osrt",
        "--sample=none",
        "--cpuctxsw=none",
    ]
    if not older(version, _GRAPH_TRACE_SINCE):
        flags.append(
            "--cuda-graph-trace=node"
            + ("" if older(version, _PRECAPTURE_SINCE) else ":nvtx-precapture")
        )
    if gpu_metrics is not None:
        flags += [
            f"{_devices(nsys)}={gpu_metrics.gpus}",
            f"--gpu-metrics-frequency={gpu_metrics.hertz}",
        ]
    if force:
        flags.append("--force-overwrite=true")
    return [str(nsys.path), "profile", *flags, "-o", str(report), *program]


def check_gpu_metrics(nsys: Nsys) -> None:
    """Returns if nsys may sample the counters of a GPU; raises NsysmapError with the remedy if it
    may not, or there is no GPU.
    """
    option = _devices(nsys)
    said = asked([nsys.path, "profile", f"{option}=help"])
    if _REFUSED.search(said):
        raise NsysmapError(
            "--gpu-metrics",
            "this user is not allowed to read the GPU's performance counters (ERR_NVGPUCTRPERM)",
            PERMISSION,
        )
    if _NONE_THERE.search(said):
        raise NsysmapError(
            "--gpu-metrics",
            "nsys finds no GPU here with counters that it can sample",
            f"see `nsys profile {option}=help`",
        )


def record(command: Sequence[str], report: Path) -> Recorded:
    """Run such a command on the caller's terminal until it ends; Ctrl-C is for nsys, which then
    writes what it has.

    Raises NsysmapError if nsys cannot be started, or leaves no new report.
    """
    earlier = _state(report)
    try:
        process = subprocess.Popen(list(command))
    except OSError as error:
        raise NsysmapError(
            command[0],
            f"cannot be started ({error.strerror or error})",
            "repair that installation of nsys",
        ) from error
    with _passed_on(process):
        status = process.wait()
    if _state(report) in (None, earlier):
        kept = "" if earlier is None else "; the file there is an earlier one"
        raise NsysmapError(
            str(report),
            f"was not written by nsys, which ended with status {status}{kept}",
            "see what nsys says above; `nsysmap record --print` shows the command",
        )
    return Recorded(status, report)


def _state(report: Path) -> tuple[int, int, int] | None:
    """A value that changes when the file is written again; None if there is no file."""
    if not report.is_file():
        return None
    found = report.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def layer_files(program: Sequence[str]) -> list[str]:
    """The engine files that a trtexec command line writes: what stands behind its
    --exportLayerInfo.
    """
    return [
        found.group(1) for part in program if (found := re.match(r"--exportLayerInfo=(.+)", part))
    ]


def _devices(nsys: Nsys) -> str:
    """The option that names the GPUs to sample, as this nsys spells it: it got its last letter in
    2024.
    """
    several = "--gpu-metrics-devices"
    return (
        several[:-1]
        if _UNKNOWN_OPTION in asked([nsys.path, "profile", f"{several}=help"])
        else several
    )


@contextmanager
def _passed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """While nsys runs: an interrupt, which it has got from the terminal too, does not end us; the
    third ends nsys; SIGTERM is for it.
    """
    count = 0

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 3:
            process.kill()

    def told_to_end(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    handlers: dict[int, Callable[[int, FrameType | None], None]] = {
        signal.SIGINT: interrupted,
        signal.SIGTERM: told_to_end,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
