"""What commands show while and after they work: progress, the terminal's width and colours."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nsysmap.text.progress import share_of, step_of
from nsysmap.text.terminal import escaped, shortened

_BAR = 24  # characters


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Something to tell each step to: shown on a terminal's standard error once a step has taken a
    second, and wiped at the end.
    """
    from nsysmap.core.memory import keep_freed_memory

    keep_freed_memory()
    if quiet or not sys.stderr.isatty():
        yield lambda _text: None
        return
    import threading
    import time

    step: list[str] = ["reading"]
    began = [time.monotonic()]
    done = threading.Event()

    def tell(text: str) -> None:
        if step_of(text) != step_of(step[-1]):
            began.append(time.monotonic())
        step.append(text)

    def show() -> None:
        shown = ""
        while not done.wait(0.2 if shown else 1.0):
            line = step_line(
                step[-1], time.monotonic() - began[-1], shutil.get_terminal_size((80, 24)).columns
            )
            if line != shown:
                shown = line
                sys.stderr.write(f"\r\x1b[2K{line}")
                sys.stderr.flush()
        if shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    watcher = threading.Thread(target=show, daemon=True)
    watcher.start()
    try:
        yield tell
    finally:
        done.set()
        watcher.join()


def step_line(text: str, seconds: float, columns: int) -> str:
    """What is being done, on one line of a terminal: a bar where it is known how much is done, else
    the time so far.
    """
    share = share_of(text)
    text = escaped(text)
    if share is None:
        return shortened(f"{text} … {seconds:.0f} s", columns - 1)
    bar = "=" * round(share * _BAR)
    return shortened(f"[{bar:<{_BAR}}] {text}", columns - 1)


def width() -> int | None:
    """Columns of the terminal; none if the output goes elsewhere, where nothing need be cut."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def on_one_terminal() -> bool:
    """Whether standard output and standard error are shown together."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def colour() -> bool:
    """Whether standard output is a terminal that wants colour."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
