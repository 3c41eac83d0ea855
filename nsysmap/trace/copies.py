"""Which memory copies block the host."""

from __future__ import annotations

import numpy as np

from nsysmap.base.table import BoolArray, Table
from nsysmap.trace.model import Trace


def blocking_copies(trace: Trace) -> BoolArray:
    """Per API call: whether it is a copy that holds the host: without Async (but for device to device), or of pageable memory."""
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
    """Per copy: whether its call keeps the host: without Async (but for one within GPU memory), or of pageable memory, which is staged."""
    device_only = copies.text("kind").equals("DtoD") | copies.text("kind").equals("PtoP")
    holding: BoolArray = (~copies.bools("asynchronous") & ~device_only) | _of_pageable_memory(copies)
    return holding


def _of_pageable_memory(copies: Table) -> BoolArray:
    """Per copy: whether one side is pageable host memory, which an asynchronous copy must stage."""
    return copies.text("source").equals("pageable") | copies.text("target").equals("pageable")
