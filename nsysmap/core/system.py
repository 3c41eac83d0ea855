"""The differences between operating systems: locks, signals, users and processes.

Linux has everything that is used here. Windows has no process groups, no limits of memory and no
`fcntl`; macOS has no `waitid` before Python 3.13. docs/RELIABILITY.md says what is left there.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SIGNALS: tuple[int, ...] = tuple(
    int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that end a run."""

HAS_POLL = hasattr(select, "poll") and hasattr(os, "set_blocking")
"""Whether a thread can wait for signals, and for pipes: not on Windows."""

HAS_GROUPS = hasattr(os, "killpg")

NO_FOLLOW = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)
"""Flags to open a file that must be no link and may be a pipe."""


def lock(file: IO[bytes], *, wait: bool) -> None:
    """Lock the file until it is closed.  OSError if it is locked (without ``wait``), and where
    files cannot be locked: then nothing proves that it is not in use.
    """
    if fcntl is None:
        raise OSError("this system has no locks of whole files")
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_own(status: os.stat_result) -> bool:
    """Whether this is a plain file of this user that nobody else can write. Where files have no
    owner's number, the cache's folders belong to the user alone.
    """
    return stat.S_ISREG(status.st_mode) and (
        not hasattr(os, "getuid")
        or (status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    )


def is_root() -> bool:
    """Whether the user is the superuser."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def kill(process: subprocess.Popen[bytes], *, group: bool) -> None:
    """End the process at once; with ``group`` all that it started, where the system has groups.

    ProcessLookupError or PermissionError as os.kill.
    """
    if group and HAS_GROUPS:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def end_own_group() -> None:
    """End this process at once, with all that it started where the system has groups."""
    if HAS_GROUPS:
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a process that has ended (minus the signal's number, if one ended it),
    None while it runs.

    Where the system can tell without reaping it, its number stays its own until its group is
    killed.
    """
    if not hasattr(os, "waitid"):
        return process.poll()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def can_limit_memory() -> bool:
    """Whether the system limits the memory of a process: what strangers wrote runs only then."""
    try:
        import resource  # noqa: F401
    except ImportError:
        return False
    return True
