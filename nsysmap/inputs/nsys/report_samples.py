"""The CPU samples of a report: when each was taken of which thread, and the functions on the stacks
of chosen ones.

There may be millions, with some fifty functions each, and few of them are ever asked for: they are
read again from the file, a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nsysmap.core.table import MISSING, IntArray
from nsysmap.inputs.nsys.report_container import damage, open_container
from nsysmap.inputs.nsys.report_events import bodies_of
from nsysmap.inputs.nsys.report_layout import CPU_SAMPLE
from nsysmap.inputs.nsys.report_wire import Message, WireError, walk
from nsysmap.inputs.nsys.tables import SAMPLES_TAKEN, STACKS

# fields of a sample, and of a function on its stack (docs/nsys-rep.md)
_START, _FRAME, _THREAD = 1, 4, 11
_SYMBOL, _MODULE = 1, 2


def sample_blocks(path: Path) -> Iterator[dict[str, IntArray]]:
    """The rows of COMPOSITE_EVENTS, some at a time; they are numbered from 1, as nsys does."""
    number = 1
    for buffer, bodies in bodies_of(open_container(path), CPU_SAMPLE):
        with damage(path, "CPU samples"):
            read = walk(buffer, bodies, {_START: "number", _THREAD: "number"}).numbers
        ids = np.arange(number, number + len(bodies.begin))
        number += len(ids)
        yield dict(zip(SAMPLES_TAKEN, (ids, read[_START], read[_THREAD]), strict=True))


def stacks_of(path: Path, ids: IntArray) -> dict[str, IntArray]:
    """The rows of SAMPLING_CALLCHAINS of these samples, whose numbers go up."""
    rows: list[tuple[int, int, int, int]] = []
    before = 0
    for buffer, bodies in bodies_of(open_container(path), CPU_SAMPLE):
        here = ids[slice(*np.searchsorted(ids, (before + 1, before + len(bodies.begin) + 1)))]
        with damage(path, "CPU samples"):
            for number in here.tolist():
                at = number - before - 1
                sample = Message.of(buffer[bodies.begin[at] : bodies.end[at]].tobytes())
                for depth, frame in enumerate(sample.messages(_FRAME)):
                    symbol, module = frame.number(_SYMBOL), frame.number(_MODULE)
                    known = (MISSING if one is None else one for one in (symbol, module))
                    rows.append((number, *_numbers(known), depth))
        before += len(bodies.begin)
    found = np.array(rows, np.int64).reshape(-1, len(STACKS))
    return {name: found[:, at] for at, name in enumerate(STACKS)}


def _numbers(ids: Iterator[int]) -> tuple[int, int]:
    symbol, module = ids
    if max(symbol, module) >= 1 << 63:
        raise WireError("a function whose name has an impossible number")
    return symbol, module
