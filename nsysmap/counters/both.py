"""Two computations at the same time: while numpy computes in one thread, Python runs in the
other.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """The results of both; raises what either raises. (concurrent.futures takes longer to import
    than some of what is computed so.)
    """
    done: list[Second] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(second())
        except BaseException as error:  # raised again below, in the thread that waits  # noqa: BLE001
            failed.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        result = first()
    finally:
        thread.join()
    if failed:
        raise failed[0]
    return result, done[0]
