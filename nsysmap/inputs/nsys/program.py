"""The nsys program: finding it, and running it without leaving processes behind."""

from __future__ import annotations

import math
import os
import re
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nsysmap.core.ending import process_noted
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.system import HAS_POLL, exit_status

INSTALL_FOLDERS = (
    "/opt/nvidia/nsight-systems/*/bin",
    "/opt/nvidia/nsight-systems/*/target-linux-*",
    "/opt/nvidia/nsight-systems-cli/*/bin",
    "/opt/nvidia/nsight-systems-cli/*/target-linux-*",
    "/usr/local/cuda*/bin",
    "/usr/local/cuda*/nsight-systems-*/bin",
    "/usr/local/bin",
    "/opt/nsight-systems*/bin",
    "/opt/nsys/bin",
    "/usr/lib/nsight-systems/bin",
)
"""Where installers put nsys. A later folder counts only if no earlier one holds it; within a folder
the newest comes first.
"""

QUIET_LIMIT_S = 900.0
"""How long nsys may neither print nor write before it counts as hung; the environment's
NSYSMAP_NSYS_TIMEOUT overrides it.
"""

EXPORT_THERE = (
    "run `nsys export -t sqlite FILE` where the report was captured and give nsysmap the .sqlite"
)

Progress = Callable[[int], None]
"""Called with the percentage that nsys has done."""

_VERSION_LIMIT_S = 30.0  # nsys answers in a second where nothing holds it up
_SAID_BYTES = 20_000  # of what nsys prints, the last of it: its errors come last
_TALKATIVE_BYTES = 1 << 20  # who has printed more without getting on is no longer alive by printing
_PERCENT = re.compile(rb"(\d{1,3})%")


@dataclass(frozen=True)
class Nsys:
    """One nsys program that reported its version."""

    path: Path
    version: str  # 2023.4.4.54


@dataclass(frozen=True)
class Ended:
    """How a run of a program ended."""

    status: int  # exit status, or less than 0: the signal that ended it
    said: str  # the last of what it printed
    quiet_s: float | None = None  # it was ended because it was quiet for so long


def installed_nsys() -> Iterator[Nsys]:
    """Every nsys that runs, in order of preference: the one in ``NSYS`` alone, otherwise PATH and
    the usual folders.

    Raises NsysmapError if there is none.
    """
    named = os.environ.get("NSYS")
    if named:
        told = shutil.which(named)
        version = _version_of(Path(told)) if told else None
        if told is None or version is None:
            raise NsysmapError(
                f"NSYS={named}",
                "is not a working nsys",
                "point NSYS at the nsys program, or unset it to search PATH",
            )
        yield Nsys(Path(told).absolute(), version)
        return
    broken: Path | None = None
    found = False
    for path in _candidates():
        version = _version_of(path)
        if version is None:
            broken = broken or path
        else:
            found = True
            yield Nsys(path, version)
    if not found and broken is not None:
        raise NsysmapError(
            str(broken),
            "does not answer --version",
            "repair that installation of Nsight Systems, or point NSYS at another nsys",
        )
    if not found:
        raise NsysmapError(
            "nsys",
            "not found in NSYS, on PATH or in the usual install folders",
            "install Nsight Systems",
            or_else=EXPORT_THERE,
        )


def find_nsys() -> Nsys:
    """The first nsys that runs, see :func:`installed_nsys`."""
    return next(installed_nsys())


def older(version: str, other: str) -> bool:
    """Whether one version of nsys is older than the other; an empty one is older than none."""
    return _numbers(version) < _numbers(other)


def run(
    command: Sequence[str | Path], folder: Path, writes: Path, *, progress: Progress | None = None
) -> Ended:
    """Run nsys in that folder until it ends, or has neither printed nor written for too long; no
    process of its group outlives this call.

    ``writes`` is the file whose growth is a sign of life.  OSError if the program cannot be
    started.
    """
    return _watched(command, folder, _Watch(quiet_limit(), writes, progress))


def asked(command: Sequence[str | Path]) -> str:
    """The last of what nsys answers to a short question, such as --version; nothing if it cannot be
    asked.
    """
    try:
        return _watched(command, None, _Watch(_VERSION_LIMIT_S, most_bytes=_TALKATIVE_BYTES)).said
    except OSError:
        return ""


def quiet_limit() -> float:
    """Seconds that nsys may be quiet for."""
    told = os.environ.get("NSYSMAP_NSYS_TIMEOUT")
    if not told:
        return QUIET_LIMIT_S
    try:
        limit = float(told)
    except ValueError:
        limit = 0.0
    if not 0 < limit < float("inf"):
        raise NsysmapError(
            f"NSYSMAP_NSYS_TIMEOUT={told}",
            "is not a positive number of seconds",
            "set it to seconds such as 1800, or unset it",
        )
    return limit


@dataclass(frozen=True)
class _Watch:
    """The signs by which a running program is judged to be alive."""

    quiet_limit_s: float
    writes: Path | None = None
    progress: Progress | None = None
    most_bytes: float = math.inf  # that it may print


def _watched(command: Sequence[str | Path], folder: Path | None, watch: _Watch) -> Ended:
    with process_noted(
        command,
        cwd=folder,  # whatever else nsys writes lands in our own folder
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        quiet, said = _follow(process, watch)
    return Ended(process.returncode, said, watch.quiet_limit_s if quiet else None)


def _followed_by_thread(process: subprocess.Popen[bytes], watch: _Watch) -> tuple[bool, str]:
    """Follows the program where a pipe cannot be waited for: it is alive while it prints
    or writes.
    """
    said: list[bytes] = []

    def read() -> None:
        while process.stdout is not None and (part := os.read(process.stdout.fileno(), 65536)):
            said.append(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    state, alive_at = (-1, -1), time.monotonic()
    while exit_status(process) is None:
        reader.join(0.2)
        written = watch.writes.stat().st_size if watch.writes and watch.writes.exists() else -1
        if (len(said), written) != state:
            state, alive_at = (len(said), written), time.monotonic()
        if time.monotonic() > alive_at + watch.quiet_limit_s:
            return True, b"".join(said)[-_SAID_BYTES:].decode(errors="replace")
    reader.join(1.0)
    return False, b"".join(said)[-_SAID_BYTES:].decode(errors="replace")


def _follow(process: subprocess.Popen[bytes], watch: _Watch) -> tuple[bool, str]:
    """Until it ends, or is quiet for too long: whether it was that, and the last of what it
    printed.
    """
    assert process.stdout is not None
    if not HAS_POLL:
        return _followed_by_thread(process, watch)
    output = process.stdout.fileno()
    os.set_blocking(output, False)
    said, read_bytes, shown, size, open_end = b"", 0, -1, -1, True
    alive_at = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            ended = exit_status(process) is not None
            pause = 0.0 if ended else min(0.2, watch.quiet_limit_s)
            if not open_end:
                time.sleep(pause)
            elif selector.select(timeout=pause):
                read = os.read(output, 65536)
                open_end = bool(read)
                if not read:
                    selector.unregister(output)
                read_bytes += len(read)
                said = (said + read)[-_SAID_BYTES:]
                percent = int((_PERCENT.findall(said) or [b"-1"])[-1])
                if read and (read_bytes < _TALKATIVE_BYTES or shown < percent <= 100):
                    alive_at = time.monotonic()
                if watch.progress is not None and shown < percent <= 100:
                    watch.progress(percent)
                shown = max(shown, percent if percent <= 100 else -1)
                if ended and read_bytes < _TALKATIVE_BYTES and read:
                    continue  # what it printed last; its children may go on for ever
            if ended:
                return False, said.decode(errors="replace")
            now = (
                watch.writes.stat().st_size
                if watch.writes is not None and watch.writes.exists()
                else -1
            )
            if now != size:
                alive_at, size = time.monotonic(), now
            if time.monotonic() - alive_at > watch.quiet_limit_s or read_bytes > watch.most_bytes:
                return True, said.decode(errors="replace")


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("nsys")
    seen: set[Path] = set()
    if on_path:
        seen.add(Path(on_path).resolve())
        yield Path(on_path).absolute()
    for pattern in INSTALL_FOLDERS:
        found = Path("/").glob(pattern.lstrip("/") + "/nsys")
        for path in sorted(found, key=lambda path: (_numbers(str(path)), str(path)), reverse=True):
            if path.resolve() not in seen and path.is_file() and os.access(path, os.X_OK):
                seen.add(path.resolve())
                yield path


def _version_of(path: Path) -> str | None:
    try:
        ended = _watched(
            [path, "--version"], None, _Watch(_VERSION_LIMIT_S, most_bytes=_TALKATIVE_BYTES)
        )
    except OSError:
        return None
    found = re.search(r"\b(\d{4}(?:\.\d+)+)", ended.said)
    return found.group(1) if found and ended.status == 0 else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text))
