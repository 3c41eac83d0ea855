"""Finds the NVTX ranges that are TensorRT's, and what each is: a call of the engine, a layer, a
Myelin node.
"""

from __future__ import annotations

import re

import numpy as np

from nsysmap.core.intervals import Spans, Timed
from nsysmap.core.memory import Ints, in_pieces, whole
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text, slim
from nsysmap.trace.nvtx_ranges import MYELIN, TENSORRT

_CALL = re.compile(r"ExecutionContext::(enqueue|execute)")
# Range texts of both domains that name no layer: the API's own calls, Myelin's calls
# (`myelinGraphExecute ` has a trailing space).
_NO_LAYER = re.compile(
    r"ExecutionContext::|IExecutionContext::|ICudaEngine::|IRuntime::|Runtime::|CudaEngine::|myelin[A-Z]\w*\s*$"
)


@dataclass(frozen=True)
class TensorRtRanges:
    """Rows of the ranges table, sorted by what they are."""

    ranges: Table
    calls: IntArray  # outermost ExecutionContext::enqueue… and execute… ranges
    held_layers: Ints
    held_calls: Ints
    never_closed: int = 0  # calls without an end, which hold later calls: they are in none of these

    @property
    def layers(self) -> IntArray:
        """Ranges that name a layer or a Myelin node."""
        return whole(self.held_layers)

    @property
    def call_of_layer(self) -> IntArray:
        """For each of `layers` the position in `calls` of the call around it; MISSING if none."""
        return whole(self.held_calls)

    def outer(self, places: IntArray) -> IntArray:
        """For these positions in `layers` the position of the layer range directly around each;
        MISSING if none.
        """
        layers = self.layers
        return _around(self.ranges, layers, layers[places], strictly=True)


def tensorrt_ranges(ranges: Table) -> TensorRtRanges:
    """TensorRT's ranges among all NVTX ranges."""
    domain = ranges.text("domain")
    name = ranges.text("name")
    is_call_name = _match(name, _CALL)
    of_tensorrt = [code for code, held in enumerate(domain.values) if held in (TENSORRT, MYELIN)]
    inside = (
        np.isin(domain.codes, of_tensorrt) & ranges.bools("push_pop") & ranges.bools("one_thread")
    )
    calls = np.flatnonzero(is_call_name & ranges.bools("one_thread"))
    endless = _never_closed(ranges, calls)
    calls = calls[~endless]
    calls = calls[_around(ranges, calls, calls, strictly=True) == MISSING]
    layers = np.flatnonzero(inside & ~_match(name, _NO_LAYER))
    return TensorRtRanges(
        ranges=ranges,
        calls=calls,
        held_layers=slim(layers),
        held_calls=slim(_around(ranges, calls, layers, strictly=False)),
        never_closed=int(endless.sum()),
    )


def _never_closed(ranges: Table, calls: IntArray) -> BoolArray:
    """Marks the calls that last to the end of all ranges, where unclosed ones are given an end, and
    contain later calls of their own name.
    """
    end, name = ranges.ints_at("end_ns", calls), ranges.text("name").codes[calls]
    thread, start = ranges.ints_at("thread", calls), ranges.ints_at("start_ns", calls)
    endless = np.zeros(len(calls), np.bool_)
    for at in np.flatnonzero(end == ranges.ints("end_ns").max(initial=0)).tolist():
        inner = (thread == thread[at]) & (start > start[at]) & (name == name[at])
        endless[at] = int(inner.sum()) >= 2  # one may be the call that it makes itself
    return endless


def spans(table: Table, rows: IntArray | None = None) -> Spans:
    """The threads and times of these rows; of all rows where none are given."""
    if rows is None:
        return Spans(table.ints("thread"), table.ints("start_ns"), table.ints("end_ns"))
    return Spans(
        table.ints_at("thread", rows),
        table.ints_at("start_ns", rows),
        table.ints_at("end_ns", rows),
    )


def _around(ranges: Table, outer: IntArray, inner: IntArray, *, strictly: bool) -> IntArray:
    """The position in ``outer`` of the row directly around each row of ``inner``, never the row
    itself; MISSING if none.
    """
    every = Timed.of(ranges)
    wanted = np.zeros(len(ranges), np.bool_)
    wanted[outer] = True
    # of each wanted row among them
    position = np.cumsum(np.append(wanted, False), dtype=np.int32) - 1
    found = [np.zeros(0, np.int64)]
    for _, rows in in_pieces(inner):
        asked = every.take(rows)
        if (
            strictly
        ):  # a range that holds more than the row's own instant; equal ones count by row order
            asked = Spans(asked.thread, asked.start_ns - 1, asked.end_ns)
        around = every.around(asked, wanted)
        found.append(np.where(around >= 0, position.take(around, mode="clip"), np.int64(MISSING)))
    return np.concatenate(found)


def _match(text: Text, pattern: re.Pattern[str]) -> BoolArray:
    return text.where(lambda value: pattern.match(value) is not None)
