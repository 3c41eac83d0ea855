"""Reads what the program wrote to stdout and stderr while nsys recorded it, for why it did not run
and for the version of its trtexec.

What it wrote can be anything, with paths and names in it: only what stands here leaves this module,
in our own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nsysmap.core.records import dataclass

_MOST_READ = 1 << 20  # characters of one file, from its end: there it says why it ended
_FILE = r"[\w.+-]{1,80}"
_TRTEXEC = re.compile(r"TensorRT\.trtexec \[TensorRT v(?P<number>\d{4,6})\]")
# what programs and their loaders write if they end before they begin, the surest first
_FAILURES = tuple(
    (re.compile(pattern, re.MULTILINE), told)
    for pattern, told in (
        (
            rf"error while loading shared libraries: (?P<name>{_FILE}): cannot open",
            "the program could not start: it found no shared library {name}",
        ),
        (
            r"python[\d.]*(?:\.exe)?: can't open file",
            "Python found no such script",
        ),
        (
            rf"^ModuleNotFoundError: No module named ['\"](?P<name>{_FILE})",
            "the program ended, because Python found no module {name}",
        ),
        (
            r"no CUDA-capable device is detected",
            "the program found no CUDA device",
        ),
        (
            r"CUDA driver version is insufficient for CUDA runtime version",
            "the CUDA driver is older than the program's CUDA runtime needs",
        ),
        (
            rf"^Traceback \(most recent call last\):[\s\S]*^(?:[\w.]*\.)?(?P<name>{_FILE}):",
            "the program ended with Python's {name}",
        ),
        (
            r"Segmentation fault|core dumped",
            "the program crashed",
        ),
        (
            r"(?:command not found|No such file or directory)\s*\Z",
            "a file or a program that it needs was not there",
        ),
        (
            r"[Pp]ermission denied\s*\Z",
            "it was not allowed to open a file",
        ),
    )
)


@dataclass(frozen=True)
class ProgramOutput:
    """Facts from the program's own output."""

    failure: str | None = None  # why it ended, in our words
    # it wrote to stderr, and nothing of that is known here
    complained: bool = False
    trtexec_version: str | None = None  # 8.5.1, of the trtexec that ran


def program_output(written: Iterable[tuple[str | None, str | None]]) -> ProgramOutput:
    """The output of processes: the name and content of each file."""
    named = [(name or "", (held or "")[-_MOST_READ:]) for name, held in written]
    errors = "\n".join(held for name, held in named if "stderr" in name)
    version = next((found for _, held in named if (found := _TRTEXEC.search(held))), None)
    return ProgramOutput(
        failure=_failure(errors),
        complained=bool(errors.strip()),
        trtexec_version=None if version is None else _version(int(version.group("number"))),
    )


def _failure(errors: str) -> str | None:
    for pattern, told in _FAILURES:
        if found := pattern.search(errors):
            return told.format(**found.groupdict())
    return None


def _version(number: int) -> str:
    """NV_TENSORRT_VERSION: 8501 is 8.5.1, from TensorRT 10 on 100300 is 10.3.0."""
    major, rest = divmod(number, 10_000 if number >= 100_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"
