"""What commands show while and after they work: progress, and the terminal's width and colours."""

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
    """Returns a function that receives each step: shown on a terminal's standard error once a step
    has taken a second, and removed at the end.
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
    """The current step on one line of a terminal: with a bar if the progress is known, otherwise
    with the time so far.
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
