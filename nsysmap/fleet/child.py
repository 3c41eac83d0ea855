"""Runs one report's task in its own process and kills it at its limits, so that a bad report fails
alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nsysmap.core.records import dataclass
from nsysmap.core.system import kill
from nsysmap.fleet.sources import without_secrets

_LOOK_EVERY_S = 0.1  # how late an end of the process may be seen
_TOLD_BYTES = 4096  # characters kept of what a failed task wrote to standard error


@dataclass(frozen=True)
class ReportOutcome:
    """The outcome of one report."""

    name: str
    key: str | None  # of its rows in the dataset; None if it failed
    kept: bool  # its rows were already there
    failed: str | None  # why


def run_task(job: Mapping[str, Any], *, timeout_s: float, memory_bytes: int) -> ReportOutcome:
    """Do the job of :mod:`task` in a new process, which is killed if it exceeds the time or memory
    limit.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "nsysmap.fleet.task"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        killed = None
        try:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(dict(job)).encode() + b"\n")
                process.stdin.flush()
            while killed is None and _running(process):
                if _resident(process.pid) > memory_bytes:
                    killed = f"took more than {memory_bytes / 2**30:g} GiB of memory (--memory)"
                elif time.monotonic() - began > timeout_s:
                    killed = f"took longer than {timeout_s:g} s (--timeout)"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                kill(process, group=True)
            process.wait()
            with suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
        out.seek(0)
        err.seek(max(0, err.seek(0, os.SEEK_END) - _TOLD_BYTES))
        answer = _answer(out.read(_TOLD_BYTES * 4))
        told = err.read().decode(errors="replace").strip().splitlines()
    failed = killed or answer.get("failed")
    if failed is None and "key" not in answer:
        failed = f"its task {_ended(process.returncode)}" + (
            f": {without_secrets(told[-1])}" if told else ""
        )
    return ReportOutcome(
        job["name"], None if failed else answer["key"], bool(answer.get("kept")), failed
    )


def _running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_EVERY_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _resident(pid: int) -> int:
    """Memory of a process in bytes; 0 if the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def _answer(printed: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(printed)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _ended(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with status {code} and without an answer"
