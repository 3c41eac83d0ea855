"""The entry point of the command: until the rest is imported, an interrupt ends it without a
word.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Runs ``main.main``, which ends at signals with nothing left behind; before it is imported
    there is nothing to leave.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as by nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    statuses: list[int] = []
    atexit.register(_end_at_once, statuses)  # before all others, to be called after them
    from nsysmap.cli import main as command

    try:
        command.main()
    except SystemExit as told:
        if told.code is None or isinstance(told.code, int):
            statuses.append(told.code or 0)
        raise
    statuses.append(0)


def _end_at_once(statuses: list[int]) -> None:
    """Ends the process with this status, after everything else that waits for its end.

    Python would search all objects for cycles first, and free each of them: a tenth of the first
    screen's time, for memory that the system takes back anyway.  It does where no status is known,
    as after an error that nobody expected, and where the output cannot be written.
    """
    if statuses:
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(statuses[0])
