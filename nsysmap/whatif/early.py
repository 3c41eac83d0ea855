"""Kernels that may begin before the end of the one before them in their stream (programmatic
dependent launch).
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, IntArray
from nsysmap.trace.model import Trace

_EARLY = "convFwd"
"""Part of the names of cuDNN's generated convolutions, which let the next kernel begin early: in
seven of eight graphs of convolution nets that TensorRT for RTX 1.5 made, most nodes behind one
began 0.1 to 1.6 us before its end; none did behind matrix products or Myelin's kernels.
"""

GENERATED = "cudnn_generated"
"""Part of the names of the kernels that TensorRT for RTX generates through cuDNN and launches with
attributes.
"""

MOVED_NS = 350
"""The most by which a recorded begin lies before the end of the previous kernel although the two
did not overlap: in all kernels of a capture of TensorRT for RTX the gaps are 0.1, 0.26 or 0.42 us,
whichever kernels they are, and those of one graph are the one in one capture and another in the
next.
"""

_QUEUED_NS = 900
"""Kernels that were launched with attributes in time begin within this time after the one before
them; those that were not begin 1 us and more after it.
"""
_FEW = 3  # kernels behind each other of which a median is taken

ATTRIBUTES = ("cuLaunchKernelEx", "cudaLaunchKernelExC")
"""The launch calls that can request programmatic dependent launch."""


@dataclass(frozen=True)
class _Launched:
    """Kernels as launched, with the kernel that follows each; arrays of equal length."""

    start: IntArray
    end: IntArray
    stream: IntArray
    launch: IntArray
    code: IntArray  # of its name
    before: IntArray  # places among these, by stream and launch; all but the last
    after: IntArray  # the place after each of them, perhaps of the next stream
    convolution: BoolArray  # for each name, and for none, whether it lets the next begin early


def _launched(trace: Trace, rows: IntArray) -> _Launched:
    kernels = trace.kernels
    start, end, stream, launch = (
        kernels.held_ints(name).take(rows) for name in ("start_ns", "end_ns", "stream", "launch")
    )
    name = kernels.text("name")
    order = np.lexsort((launch, stream))
    return _Launched(
        start,
        end,
        stream,
        launch,
        name.codes[rows].astype(np.int64),
        order[:-1],
        order[1:],
        np.array([_EARLY in value for value in name.values] + [False], np.bool_),
    )


def begins_early(trace: Trace, rows: IntArray) -> BoolArray:
    """Marks the kernels (rows, launched one by one) that may begin before the previous kernel of
    their stream ends: they were launched with attributes, and the previous kernel is one of cuDNN's
    convolutions or has a name that overlaps the next kernel elsewhere.
    """
    one = _launched(trace, rows)
    before, after = one.before, one.after
    same = one.stream[before] == one.stream[after]
    early = one.convolution.copy()
    early[one.code[before][same & (one.start[after] < one.end[before])]] = True
    asked = trace.api_calls.held_text("api").take(one.launch).where(ATTRIBUTES.__contains__)
    found = np.zeros(len(rows), np.bool_)
    node = trace.kernels.held_ints("graph_node_id").take(rows)
    found[after] = same & early[one.code[before]] & (node[after] < 0)
    result: BoolArray = found & asked
    return result


def runs_at_once(trace: Trace, rows: IntArray) -> BoolArray:
    """Marks the kernels that, of those that may begin early, would do so in a graph: kernels whose
    names (their own and the previous kernel's) begin more than MOVED_NS before its end in most
    places where they were launched in time. If they never were, the kernels behind a convolution of
    cuDNN's.
    """
    one = _launched(trace, rows)
    early = begins_early(trace, rows)
    mine = early[one.after] & (one.stream[one.before] == one.stream[one.after])
    before, after = one.before[mine], one.after[mine]
    gap = one.start[after] - one.end[before]
    pair = one.code[before] * len(one.convolution) + one.code[after]
    found = np.zeros(len(rows), np.bool_)
    for names in np.unique(pair):
        places = pair == names
        queued = gap[places & (gap < _QUEUED_NS)]
        found[after[places]] = (
            float(np.median(queued)) < -MOVED_NS
            if len(queued) >= _FEW
            else bool(one.convolution[one.code[before[places]]].all())
        )
    return found
