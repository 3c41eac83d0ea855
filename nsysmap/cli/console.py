"""What commands show while and after they work: progress, the terminal's width and colours."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nsysmap.base.terminal import escaped


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Something to tell each step to: shown on a terminal's standard error once a step has taken a second, and wiped at the end."""
    from nsysmap.base.memory import keep_freed_memory

    keep_freed_memory()
    if quiet or not sys.stderr.isatty():
        yield lambda _text: None
        return
    import threading

    step: list[str] = ["reading"]
    done = threading.Event()

    def show() -> None:
        shown = ""
        while not done.wait(1.0 if not shown else 0.2):
            if step[-1] != shown:
                shown = step[-1]
                sys.stderr.write(f"\r\x1b[2K{escaped(shown)} …")
                sys.stderr.flush()
        if shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    watcher = threading.Thread(target=show, daemon=True)
    watcher.start()
    try:
        yield step.append
    finally:
        done.set()
        watcher.join()


def width() -> int | None:
    """Columns of the terminal; none where the output goes elsewhere, where nothing need be cut."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def colour() -> bool:
    """Whether standard output is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
