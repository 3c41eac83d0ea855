"""Reads what the program wrote to stdout and stderr while nsys recorded it, for why it did not run
and for the version of its trtexec.

What it wrote can be anything, with paths and names in it: only what stands here leaves this module,
in our own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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


# what stands last on stderr where a program ended with an error, whatever it did before; the surest
# first
_LAST_WORDS = tuple(
    (re.compile(pattern, re.MULTILINE), told)
    for pattern, told in (
        (
            r"^terminate called after throwing an instance of '(?P<name>[\w:]{1,80})"
            r"[^\n]*(?:\n +what\(\):[^\n]*)?\s*\Z",
            "the program ended with a C++ exception ({name})",
        ),
        (
            r"exited on signal \d+ \((?P<name>[A-Z][\w ]{1,40})\)\.\s*-*\s*\Z",
            "a process of the program ended by a signal ({name})",
        ),
        (
            r"Signal: (?P<name>[A-Z][\w ]{1,40}) \(\d+\)$[\s\S]*"
            r"\*\*\* End of error message \*\*\*\s*\Z",
            "the program ended by a signal ({name})",
        ),
        (r"^Segmentation fault[^\n]*\s*\Z|core dumped\)?\s*\Z", "the program crashed"),
        (r": Assertion [^\n]* failed\.\s*\Z", "the program ended, as an assertion failed"),
        (
            r"\Wan illegal memory access was encountered\W[^\n]*\s*\Z",
            "the program ended with a CUDA error (illegal memory access)",
        ),
        (
            r"non-zero (?:status, thus causing\s+the job to be terminated|exit code)"
            r"[\s\S]{0,300}\Z",
            "a process of the MPI job ended with an error",
        ),
        (
            r"^ERROR: [\s\S]*(?:^in expression starting at [^\n]*|_start\(\)\s+@ Base [^\n]*)\s*\Z",
            "the program ended with an error of Julia",
        ),
    )
)
_FRAME = '  File "'  # begins the line of a function in Python's traceback
_RAISED = re.compile(rf"(?:[\w.]*\.)?(?P<name>{_FILE}?)(?::|\Z)")
# of threads that end alone, and of what Python ignores: the program goes on
_GOES_ON = ("Exception in thread ", "Exception ignored ")
_NO_ERROR = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")
# lines of an exception's message, at most: PyTorch's CUDA errors have four
_MESSAGE_LINES = 5
# how lines of a log begin: what logs an exception goes on
_LOGGED = re.compile(r"\d{4}-|\[|[IWEF]\d{4} |(?:INFO|WARN|WARNING|DEBUG)\b|\d+%|\s*\d+/\d+")


@dataclass(frozen=True)
class ProgramOutput:
    """Facts from the program's own output."""

    failure: str | None = None  # why it ended, in our words
    # it wrote to stderr, and nothing of that is known here
    complained: bool = False
    trtexec_version: str | None = None  # 8.5.1, of the trtexec that ran
    error: str | None = None  # with which it ended as the last of what it wrote, in our words


def program_output(written: Iterable[tuple[str | None, str | None]]) -> ProgramOutput:
    """The output of processes: the name and content of each file."""
    named = [(name or "", (held or "")[-_MOST_READ:]) for name, held in written]
    errors = "\n".join(held for name, held in named if "stderr" in name)
    version = next((found for _, held in named if (found := _TRTEXEC.search(held))), None)
    return ProgramOutput(
        failure=_failure(errors),
        complained=bool(errors.strip()),
        trtexec_version=None if version is None else _version(int(version.group("number"))),
        error=next(
            (told for name, held in named if "stderr" in name and (told := _error(held))), None
        ),
    )


def _error(written: str) -> str | None:
    """The error with which a process ended, if that is the last of what it wrote to stderr:
    warnings, and errors that it survived, stand before other lines.
    """
    raised = _raised(written.rstrip().splitlines())
    if raised is not None:
        return f"the program ended with Python's {raised}"
    for pattern, told in _LAST_WORDS:
        if found := pattern.search(written):
            return told.format(**found.groupdict())
    return None


def _raised(lines: Sequence[str]) -> str | None:
    """The name of the exception in the traceback that a program ends with."""
    frames = [at for at, line in enumerate(lines) if line.startswith(_FRAME)]
    if not frames:
        return None
    first = max((at for at, line in enumerate(lines) if line.startswith("Traceback ")), default=0)
    if any(line.startswith(_GOES_ON) for line in lines[max(first - 1, 0) : first + 1]):
        return None
    behind = (at for at in range(frames[-1] + 1, len(lines)) if not lines[at].startswith(" "))
    at = next((at for at in behind if lines[at]), len(lines))
    message = lines[at + 1 :]
    if at == len(lines) or len(message) > _MESSAGE_LINES or any(map(_LOGGED.match, message)):
        return None
    found = _RAISED.match(lines[at])
    name = None if found is None else found.group("name")
    return name if name and name[0].isupper() and name not in _NO_ERROR else None


def _failure(errors: str) -> str | None:
    for pattern, told in _FAILURES:
        if found := pattern.search(errors):
            return told.format(**found.groupdict())
    return None


def _version(number: int) -> str:
    """NV_TENSORRT_VERSION: 8501 is 8.5.1, from TensorRT 10 on 100300 is 10.3.0."""
    major, rest = divmod(number, 10_000 if number >= 100_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"
