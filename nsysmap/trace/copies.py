"""Finds the memory copies that block the host, and the host memory that an inference's use."""

from __future__ import annotations

import numpy as np

from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text
from nsysmap.trace.model import Trace


def blocking_copies(trace: Trace) -> BoolArray:
    """Marks the API calls that are blocking copies: without Async (except device to device), or
    with pageable memory.
    """
    calls, copies = trace.api_calls, trace.memcpys
    blocking = calls.text("kind").equals("copy")
    rows = copies.ints("launch")
    known = rows >= 0
    holding = hold_the_host(copies)
    blocking[rows[known & ~holding]] = False
    blocking[rows[known & holding]] = calls.text("kind").equals("copy")[rows[known & holding]]
    asynchronous = calls.text("api").where(lambda name: "Async" in name or "Prefetch" in name)
    unseen = np.ones(len(calls), np.bool_)
    unseen[rows[known]] = False
    result: BoolArray = blocking & ~(unseen & asynchronous)
    return result


def hold_the_host(copies: Table) -> BoolArray:
    """Marks the copies whose calls block the host: without Async (except within GPU memory), or
    with pageable memory, which is staged.
    """
    device_only = copies.text("kind").equals("DtoD") | copies.text("kind").equals("PtoP")
    holding: BoolArray = (~copies.bools("asynchronous") & ~device_only) | _of_pageable_memory(
        copies
    )
    return holding


def _of_pageable_memory(copies: Table) -> BoolArray:
    """A flag for each copy: whether one side is pageable host memory, which an asynchronous copy
    must stage.
    """
    return copies.text("source").equals("pageable") | copies.text("target").equals("pageable")


LARGE_COPY_BYTES = 1 << 20
"""From this size on, the link determines a copy's time: at 12 GB/s 87 µs, of which starting it
takes 2 µs.
"""


def link_rates(copies: Table, memory: str) -> dict[str, float]:
    """Bytes per ns (GB/s) of this trace's large copies by direction (HtoD, DtoH), from or to host
    memory of this kind ("pinned", "pageable"): the median; nothing for a direction without such
    copies.
    """
    took, size = copies.ints("end_ns") - copies.ints("start_ns"), copies.ints("bytes")
    found = {}
    for way, host in (("HtoD", "source"), ("DtoH", "target")):
        mine = (
            copies.text("kind").equals(way)
            & copies.text(host).equals(memory)
            & (size >= LARGE_COPY_BYTES)
            & (took > 0)
        )
        if mine.any():
            found[way] = float(np.median(size[mine] / took[mine]))
    return found


def if_pinned_ns(copies: Table) -> IntArray:
    """How long each copy would take if its host memory were pinned, as this trace's own pinned
    copies are; as long as now where there are none, and where it is small.
    """
    took, size = copies.ints("end_ns") - copies.ints("start_ns"), copies.ints("bytes")
    result = took.copy()
    large = _of_pageable_memory(copies) & (size >= LARGE_COPY_BYTES)
    for way, rate in link_rates(copies, "pinned").items():
        mine = large & copies.text("kind").equals(way)
        result[mine] = np.minimum(took[mine], np.rint(size[mine] / rate).astype(np.int64))
    return result


NO_COPIES = "none"
"""The host memory of copies where there are none."""


def copied_memory(inferences: Table, memcpys: Table) -> Text:
    """For each row of INFERENCES the host memory of its copies: "pageable", "pinned", …, "none", or
    "HtoD pageable, DtoH pinned"; empty if the trace does not show which thread requested copies.

    Its copies are those between host and device that its thread requested after it had enqueued the
    inference before: they are part of the time from that one's end to its own.
    """
    to_gpu, to_host = (memcpys.text("kind").equals(way) for way in ("HtoD", "DtoH"))
    rows = np.flatnonzero(to_gpu | to_host)
    thread, begin = memcpys.ints("thread")[rows], memcpys.ints("launch_start_ns")[rows]
    if ((thread == MISSING) | (begin == MISSING)).any():
        return Text.same(None, len(inferences))
    threads, ends = inferences.ints("thread"), inferences.ints("enqueue_end_ns")
    uses: list[tuple[str, str]] = []
    used = np.zeros(len(inferences), np.int64)  # a bit for each of these
    for way, told, mine in (
        ("HtoD", memcpys.text("source"), to_gpu[rows]),
        ("DtoH", memcpys.text("target"), to_host[rows]),
    ):
        for code in np.unique(told.codes[rows[mine]]).tolist():
            some = mine & (told.codes[rows] == code)
            used[_following(threads, ends, thread[some], begin[some])] |= 1 << len(uses)
            uses.append((way, told.values[code] if code >= 0 else "unknown"))
    distinct, code_of = np.unique(used, return_inverse=True)
    words = [
        _words([use for bit, use in enumerate(uses) if mask >> bit & 1])
        for mask in distinct.tolist()
    ]
    return Text(code_of.astype(np.int32), tuple(words))


def _following(
    threads: IntArray, ends_ns: IntArray, thread: IntArray, moment: IntArray
) -> IntArray:
    """The inferences that are the first, each on one of these threads, to be enqueued after one of
    these times.
    """
    order = np.lexsort((ends_ns, threads))
    found = [np.zeros(0, np.int64)]
    for one in np.unique(thread):
        mine = order[threads[order] == one]
        at = np.searchsorted(ends_ns[mine], moment[thread == one])
        found.append(mine[np.unique(at[at < len(mine)])])
    return np.concatenate(found)


def _words(uses: list[tuple[str, str]]) -> str:
    """Ways and memory in words: the memory alone if it is the same in both ways."""
    ways: dict[str, str] = {}
    for way, memory in uses:
        ways[way] = f"{ways[way]} or {memory}" if way in ways else memory
    if len(set(ways.values())) < 2:
        return next(iter(ways.values()), NO_COPIES)
    return ", ".join(f"{way} {memory}" for way, memory in ways.items())
