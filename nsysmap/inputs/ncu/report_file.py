"""Opens the file of ``--ncu``: a CSV from ncu, or a report (.ncu-rep), which the ncu program
prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from nsysmap.core.ending import finished, process_noted
from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.inputs.ncu.printed import NcuConditions, NcuKernel, parse_ncu_csv, read_ncu_csv

INSTALL_FOLDERS = (
    "/usr/local/cuda*/bin",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/NVIDIA-Nsight-Compute*",
    "/opt/cuda/bin",
)
"""Where installers put ncu; searched after NCU and PATH, the newest first."""

_MAGIC = b"NVR\0"
_LIMIT_S = 600.0  # for ncu to print a report
_COMMAND = re.compile(r'^"?Profiler Command Line"?,"?(.*)', re.MULTILINE)
_THERE = (
    "run `ncu --import FILE --csv --page raw > ncu.csv` where Nsight Compute is installed and give"
    " --ncu the CSV"
)


def read_ncu(path: Path) -> tuple[NcuKernel, ...]:
    """The kernels that Nsight Compute profiled, in the order in which they ran. Raises NsysmapError
    if they cannot be read.
    """
    if not _is_report(path):
        return read_ncu_csv(path)
    kernels = parse_ncu_csv(_printed(path, "raw"), str(path))
    conditions = _conditions(path)
    return tuple(replace(kernel, conditions=conditions) for kernel in kernels)


def _conditions(path: Path) -> NcuConditions:
    """The conditions from the command line that made the report, which the page ``session`` of
    newer versions shows.
    """
    try:
        found = _COMMAND.search(_printed(path, "session"))
    except NsysmapError:
        return NcuConditions()
    if found is None:
        return NcuConditions()
    left = {
        what
        for what in ("cache", "clock")
        if re.search(rf"--{what}-control[ =]+none\b", found.group(1))
    }
    return NcuConditions(
        "left alone" if "cache" in left else "emptied",
        "left alone" if "clock" in left else "locked",
    )


def _is_report(path: Path) -> bool:
    try:
        with named_path(path).open("rb") as file:
            begin = file.read(len(_MAGIC))
    except OSError as error:
        raise NsysmapError(
            str(path),
            f"cannot be read ({error.strerror})",
            "give a CSV or a report of Nsight Compute",
        ) from error
    return begin == _MAGIC or (
        path.suffix == ".ncu-rep" and not begin.startswith((b'"', b"=", b"\xef\xbb\xbf"))
    )


def _printed(path: Path, page: str) -> str:
    """A page of a report, as printed by ncu."""
    program = _program(path)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        command = [str(program), "--import", str(path.absolute()), "--csv", "--page", page]
        try:
            with process_noted(command, stdout=out, stderr=said) as process:
                status = finished(process, _LIMIT_S)
        except subprocess.TimeoutExpired:
            raise NsysmapError(
                str(path), f"ncu did not print it within {_LIMIT_S:.0f} s", _THERE
            ) from None
        except OSError as error:
            raise NsysmapError(
                str(program),
                f"cannot be started ({error.strerror or error})",
                "repair that installation of ncu",
            ) from error
        text, told = (_text(file) for file in (out, said))
    if status:
        lines = [line for line in (told + "\n" + text).splitlines() if line.strip()]
        why = f": {lines[-1].strip()[:200]}" if lines else ""
        raise NsysmapError(
            str(path),
            f"ncu cannot read it (status {status}){why}",
            f"use an ncu as new as the report, or {_THERE}",
        )
    return text


def _text(file: object) -> str:
    assert hasattr(file, "seek") and hasattr(file, "read")
    file.seek(0)
    return str(file.read((1 << 30) + 1).decode("utf-8", errors="replace"))


def _program(path: Path) -> Path:
    """The ncu program: from NCU, otherwise from PATH or the usual folders."""
    named = os.environ.get("NCU")
    if named:
        found = shutil.which(named)
        if found is None:
            raise NsysmapError(
                f"NCU={named}",
                "is not a program",
                "point NCU at the ncu program, or unset it to search PATH",
            )
        return Path(found)
    folders = [os.environ.get("PATH", "")]
    folders += [
        folder
        for pattern in INSTALL_FOLDERS
        for folder in sorted(map(str, Path("/").glob(pattern.lstrip("/"))), reverse=True)
    ]
    found = next((each for folder in folders if (each := shutil.which("ncu", path=folder))), None)
    if found is None:
        raise NsysmapError(
            str(path),
            "is an Nsight Compute report, but the ncu program that reads it was not found",
            _THERE,
        )
    return Path(found)
