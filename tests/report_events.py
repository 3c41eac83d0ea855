"""Events of a report as bytes, for tests: with the field numbers that docs/ gives."""

from __future__ import annotations

from collections.abc import Sequence

from tests.made_report import message

PID, TID = 281483096883200, 281483096883684


def on_gpu(
    kind: int,
    number: int,
    part: Sequence[tuple[int, object]],
    *,
    start: int = 1000,
    end: int = 2000,
    node: bool = True,
) -> bytes:
    """One piece of GPU work of class ``kind``, whose own fields are in the body's field
    ``number``.
    """
    types = {3: 79, 1: 80, 2: 80, 5: 106, 6: 127, 7: 130}
    body = [
        (1, start),
        (2, end),
        (3, 17),
        (4, 0),
        (5, 1),
        (6, 13),
        (7, kind),
        (8, PID),
        *([(9, 0)] if node else []),
        (number, list(part)),
    ]
    return message((1, types[kind]), (107, body))


def kernel(start: int, end: int, *, name: int = 1, node: int | None = None) -> bytes:
    """One kernel; ``name`` is the number of a string."""
    part: list[tuple[int, object]] = [
        (1, name),
        (2, name),
        (3, name),
        (8, name),
        *((number, number) for number in range(10, 25)),
        (28, 0),
    ]
    if node is not None:
        part.insert(-1, (27, node))
    return on_gpu(3, 101, part, start=start, end=end)


def call(
    kind: int,
    name: int,
    *,
    start: int = 100,
    end: int = 200,
    more: tuple[tuple[int, object], ...] = (),
    result: int = 0,
) -> bytes:
    """One call of class ``kind``: 0 runtime, 1 driver, 3 overhead, 27 operating system."""
    body = [(1, start), (2, end), (3, 17), (6, kind), (7, name), (8, result), (13, TID), *more]
    return message((1, 113 if kind == 77 else 48), (108, body))


def nvtx(kind: int, *fields: tuple[int, object], start: int = 100, unit: int = 1) -> bytes:
    """One NVTX event: fields from 4 on as given, in the order of their numbers."""
    body = sorted(
        [(1, kind), (2, start), (9, TID), (13, 0), (14, unit), *fields], key=lambda item: item[0]
    )
    return message((1, kind), (102, body))


def process(pid: int, *names: tuple[int, str]) -> bytes:
    """One process; 5 is its command, 6 its short name."""
    return message((1, 27), (113, [(1, 5), (2, pid), (4, 0), *names, (12, 1)]))
