"""Runs nsysmap where what only Unix has is hidden: modules, signals, calls and flags.

usage: hidden_unix.py --imports | ARGUMENTS OF NSYSMAP...
--imports prints what cannot be imported.
It shows what would fail on Windows as far as a Linux machine can.
"""

from __future__ import annotations

import importlib
import importlib.abc
import os
import pkgutil
import select
import signal
import sys
from collections.abc import Sequence

import numpy  # noqa: F401 - these and what they import may use what is hidden below

for name in (
    *("pandas", "pyarrow", "duckdb", "click", "matplotlib", "jinja2", "networkx", "yaml"),
    *("sqlite_utils", "sqlite3", "tempfile", "shutil", "lz4.block", "multiprocessing", "uuid"),
    *("concurrent.futures", "socket", "platform", "getpass", "distributed", "fsspec"),
):
    try:
        importlib.import_module(name)
    except ImportError:
        continue

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")
SIGNALS = ("SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGPIPE", "setitimer")
SIGNAL_CALLS = ("pthread_sigmask", "pthread_kill", "sigwait", "alarm")
OS_CALLS = (
    *("killpg", "getpgrp", "getuid", "geteuid", "getgid", "getegid", "fork", "setsid"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "sysconf", "mkfifo", "sched_getaffinity"),
    *("chown", "fchmod", "fchown", "statvfs", "posix_fallocate", "copy_file_range", "sendfile"),
    *("openpty", "wait3", "wait4", "waitid", "WNOHANG", "WEXITED", "WNOWAIT", "set_blocking"),
    *("pread", "pwrite", "readv", "posix_fadvise", "register_at_fork", "nice", "getpriority"),
)


class Hidden(importlib.abc.MetaPathFinder):
    """Finds none of the hidden modules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        """Nothing; ModuleNotFoundError for a hidden module."""
        del path, target
        if fullname in MODULES:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def hide() -> None:
    """From now on they are not there."""
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Hidden())
    gone = ((signal, (*SIGNALS, *SIGNAL_CALLS)), (os, OS_CALLS), (select, ("poll",)))
    for module, names in gone:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def unimportable() -> list[str]:
    """The modules of nsysmap that cannot be imported, each with why."""
    import nsysmap

    bad = []
    for module in pkgutil.walk_packages(nsysmap.__path__, "nsysmap."):
        # the first runs the command, the others are imported by nsys alone
        if module.name in (
            "nsysmap.__main__",
            "nsysmap.output.stats_report",
            "nsysmap.output.recipe",
        ):
            continue
        try:
            importlib.import_module(module.name)
        except (ImportError, AttributeError) as error:
            bad.append(f"{module.name}: {error}")
    return bad


if __name__ == "__main__":
    hide()
    if sys.argv[1:] == ["--imports"]:
        sys.stdout.write("\n".join(unimportable()))
    else:
        from nsysmap.cli.main import main

        main()
