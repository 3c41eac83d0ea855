"""The entry point of the command: until the rest is imported, an interrupt ends it without a
word.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Runs ``main.main``, which ends at signals with nothing left behind; before it is imported
    there is nothing to leave.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as by nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from nsysmap.cli import main as command

    command.main()
