"""Ends a run cleanly: removes folders of unfinished files and ends processes that must not outlive
the run, also at a signal.

At a signal nothing is raised: an exception out of a signal's handler may come between any two
instructions, also while the interpreter holds a lock of its own (that of an import), which then is
held for ever. A thread that waits for signals ends the process instead: it removes the folders and
kills the processes that are noted here, and waits for nobody.
"""

from __future__ import annotations

import _thread  # threading's own starts of threads take locks that the main thread may hold
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from nsysmap.core.system import HAS_POLL, SIGNALS, exit_status, kill

MOST_S = 1.5
"""How long tidying up may take; then the process ends all the same."""

_PART_OF_THE_FIRST_S = 0.25  # `timeout` sends SIGTERM twice: to the process, and to its group
_GATE_S = 0.5  # for the main thread to note what it is just making

_folders: dict[Path, None] = {}
_processes: dict[subprocess.Popen[bytes], bool] = {}  # → whether it leads a group of its own
_all_descendants: list[bool] = []
_gate = threading.Lock()  # held while something is made, until it is noted
_making: list[bool] = []  # in the main thread
_stopped_by: list[int] = []
_pipe: list[int] = []  # where signals are written to


@contextmanager
def folder_noted(make: Callable[[], Path]) -> Iterator[Path]:
    """The folder that ``make`` makes; it is removed at the end of the block, and also where a
    signal ends the run.
    """
    with _made_and_noted():
        folder = make()
        _folders[folder] = None
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        except KeyboardInterrupt:  # where signals still raise: as a library
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            _folders.pop(folder, None)


@contextmanager
def process_noted(
    command: Sequence[str | Path],
    *,
    group: bool = True,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process (``group``: with all that it starts, out of the terminal's reach), which is killed
    at the end of the block where it still runs, and also where a signal ends the run.

    OSError if it cannot be started.
    """
    with _made_and_noted():
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=group,
        )
        _processes[process] = group
    try:
        yield process
    finally:
        _kill(process, group=group)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.wait()
        _processes.pop(process, None)


@contextmanager
def descendants_noted() -> Iterator[None]:
    """Within the block, a signal that ends this process also kills all its descendants, even those
    that a library started.
    """
    _all_descendants.append(True)
    try:
        yield
    finally:
        _all_descendants.pop()


def finished(process: subprocess.Popen[bytes], seconds: float) -> int:
    """The exit status of a process once it has ended; subprocess.TimeoutExpired where it has not by
    then.

    It is not reaped, so that its number stays its own until its group is killed.
    """
    end = time.monotonic() + seconds
    pause = 0.001
    while (status := exit_status(process)) is None:
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(process.args, seconds)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return status


def end_at_signals() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP end this process with 128 plus their number and leave
    nothing behind; a second signal ends it at once. Ignored signals stay ignored.

    Where no thread can wait for signals (Windows), Ctrl-C raises KeyboardInterrupt as ever.
    """
    if _pipe or not HAS_POLL:
        return
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    _pipe.extend((ours, theirs))
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _came)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    with suppress(RuntimeError):  # no thread can be started: then the handler ends the process
        _thread.start_new_thread(_wait_for_signals, (ours,))


def stopped() -> bool:
    """Whether a signal is ending the process."""
    return bool(_stopped_by)


def hold_where_stopped() -> None:
    """Does not return where a signal is ending the process: nothing more is to be said or done."""
    if _stopped_by:
        time.sleep(MOST_S + 0.5)
        os._exit(128 + _stopped_by[0])


@contextmanager
def _made_and_noted() -> Iterator[None]:
    """Whatever is created in the block is noted before a signal can end the process."""
    main = threading.current_thread() is threading.main_thread()
    with _gate:
        if main:
            _making.append(True)
        try:
            yield
        finally:
            if main:
                _making.pop()
    hold_where_stopped()


def _came(number: int, _frame: FrameType | None) -> None:
    """The handler, in the main thread: it stays where it is until the process ends, unless it has
    something to note.
    """
    _stopped_by.append(number)
    if not _making:
        hold_where_stopped()


def _wait_for_signals(ours: int) -> None:
    """Runs in a thread, and ends the process at the first signal that our handler is set for."""
    while True:
        number = os.read(ours, 1)[0]
        if number in SIGNALS and signal.getsignal(number) is _came:
            break
    first = time.monotonic()
    _stopped_by.append(number)
    with suppress(RuntimeError):  # no more threads can be started: then nothing can hurry it
        _thread.start_new_thread(_hurried, (ours, first, number))
    _tidy()
    _say_so()
    os._exit(128 + number)


def _hurried(ours: int, first: float, number: int) -> NoReturn:
    """Ends the process at a second signal, or when tidying takes too long."""
    told = select.poll()  # unlike select(), of any file descriptor
    told.register(ours, select.POLLIN)
    while (left := first + MOST_S - time.monotonic()) > 0:
        again = told.poll(left * 1e3) and os.read(ours, 1)[0] in SIGNALS
        if again and time.monotonic() > first + _PART_OF_THE_FIRST_S:
            break
    os._exit(128 + number)


def _tidy() -> None:
    """Kill and remove what is noted: without imports, and without locks that others may hold."""
    _gate.acquire(timeout=_GATE_S)  # never released: nothing more is to be made
    for process, group in list(_processes.items()):
        with suppress(OSError):
            _kill(process, group=group)
    if _all_descendants:
        _kill_descendants(os.getpid())
    for folder in list(_folders):
        for _ in range(50):  # the other threads still write into it
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.01)
    if _all_descendants:  # one that was started in place of a killed one
        _kill_descendants(os.getpid())


def _kill_descendants(pid: int) -> None:
    """Kills the processes that come from this one, where the system lists them: Linux does."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_bytes().split()):
                _kill_descendants(child)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)


def _kill(process: subprocess.Popen[bytes], *, group: bool) -> None:
    if process.returncode is not None:  # it has been reaped: the number may be another's
        return
    with suppress(ProcessLookupError, PermissionError):
        kill(process, group=group)


def _say_so() -> None:
    """Writes one line to a terminal, in place of the progress that is shown."""
    with suppress(OSError, ValueError, AttributeError):
        if os.isatty(2):
            os.write(2, b"\r\x1b[2K\nnsysmap: interrupted\n")
