"""Kernels that may begin before the end of the one before them in their stream (programmatic
dependent launch).
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.table import BoolArray, IntArray
from nsysmap.trace.model import Trace

_EARLY = "convFwd"
"""In the names of cuDNN's generated convolutions, which let the next kernel begin early: in seven
of eight graphs of convolution nets that TensorRT for RTX 1.5 made, most nodes behind one began 0.1
to 1.6 us before its end; none did behind matrix products or Myelin's kernels.
"""

GENERATED = "cudnn_generated"
"""In the names of the kernels that TensorRT for RTX generates by cuDNN, and launches with
attributes.
"""

MOVED_NS = 350
"""By how much a recorded begin lies before the end of the kernel before it at most where the two
did not run at once: in all kernels of a capture of TensorRT for RTX the gaps are 0.1, 0.26 or 0.42
us, whichever kernels they are, and those of one graph are the one in one capture and another in
the next.
"""

_QUEUED_NS = 900
"""Kernels that were launched with attributes in time begin within this time after the one before
them; those that were not begin 1 us and more after it.
"""
_FEW = 3  # kernels behind each other of which a median is taken

ATTRIBUTES = ("cuLaunchKernelEx", "cudaLaunchKernelExC")
"""Calls that can ask for it."""


def begins_early(trace: Trace, rows: IntArray) -> BoolArray:
    """Which of these kernels (rows, launched one by one) may begin before the end of the kernel
    that was launched before them into their stream: they were launched with attributes, and that
    one is a convolution of cuDNN's, or has a name that overlaps the next elsewhere.
    """
    kernels = trace.kernels
    start, end, stream = (
        kernels.held_ints(name).take(rows) for name in ("start_ns", "end_ns", "stream")
    )
    launch, name = kernels.held_ints("launch").take(rows), kernels.text("name")
    code = name.codes[rows].astype(np.int64)
    order = np.lexsort((launch, stream))
    before, after = order[:-1], order[1:]
    same = stream[before] == stream[after]
    early = np.array([_EARLY in value for value in name.values] + [False], np.bool_)
    early[code[before][same & (start[after] < end[before])]] = True
    asked = trace.api_calls.held_text("api").take(launch).where(ATTRIBUTES.__contains__)
    found = np.zeros(len(rows), np.bool_)
    found[after] = (
        same & early[code[before]] & (kernels.held_ints("graph_node_id").take(rows)[after] < 0)
    )
    result: BoolArray = found & asked
    return result


def runs_at_once(trace: Trace, rows: IntArray) -> BoolArray:
    """Which of the kernels that may begin early would do so in a graph: those whose names (their
    own and that of the kernel before them) begin more than MOVED_NS before its end in most places
    where they were launched in time; where they never were, those behind a convolution of cuDNN's.
    """
    kernels = trace.kernels
    early = begins_early(trace, rows)
    start, end, stream = (
        kernels.held_ints(name).take(rows) for name in ("start_ns", "end_ns", "stream")
    )
    launch, name = kernels.held_ints("launch").take(rows), kernels.text("name")
    code = name.codes[rows].astype(np.int64)
    order = np.lexsort((launch, stream))
    before, after = order[:-1], order[1:]
    mine = early[after] & (stream[before] == stream[after])
    before, after = before[mine], after[mine]
    gap = start[after] - end[before]
    pair = code[before] * (len(name.values) + 1) + code[after]
    convolution = np.array([_EARLY in value for value in name.values] + [False], np.bool_)
    found = np.zeros(len(rows), np.bool_)
    for one in np.unique(pair):
        places = pair == one
        queued = gap[places & (gap < _QUEUED_NS)]
        found[after[places]] = (
            float(np.median(queued)) < -MOVED_NS
            if len(queued) >= _FEW
            else bool(convolution[code[before[places]]].all())
        )
    return found
