"""Divides each inference's time: every nanosecond from the end of the previous one to its own end,
on its device.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, IntArray, Table
from nsysmap.timing.idle.causes import CAUSES
from nsysmap.timing.idle.replayed import Idle, recorded_idle, replayed_idle

WORKS = (
    "kernels without a layer",
    "copies to the device",
    "copies to the host",
    "other copies",
    "memsets",
    "whole CUDA graphs",
    "",
)
"""GPU work that belongs to no layer; the last entry is work of other processes."""
_NO_LAYER, _FIRST_COPY, _MEMSET, _GRAPH, _FOREIGN = 0, 1, 4, 5, 6
_COPY_KINDS = {"HtoD": 0, "DtoH": 1}


@dataclass(frozen=True)
class Kinds:
    """The columns over which time is distributed: layers by id, other GPU work, idle time by
    cause.
    """

    layers: int

    @property
    def count(self) -> int:
        """How many columns."""
        return self.layers + len(WORKS) + len(CAUSES)

    def work(self, kind: int) -> int:
        """The column of other GPU work."""
        return self.layers + kind

    @property
    def hidden(self) -> int:
        """The column of whole CUDA graphs."""
        return self.work(_GRAPH)

    def idle(self, cause: str) -> int:
        """The column of an idle cause."""
        return self.layers + len(WORKS) + CAUSES.index(cause)

    def name(self, column: int) -> str:
        """The name of a column that is not a layer."""
        other = column - self.layers
        if other < len(WORKS):
            return WORKS[other] or "work of other processes"
        return f"idle: {IDLE_CAUSES[CAUSES[other - len(WORKS)]].words}"

    def cause(self, column: int) -> str | None:
        """The cause of idle time of a column; None if it is of GPU work."""
        other = column - self.layers - len(WORKS)
        return CAUSES[other] if other >= 0 else None


@dataclass(frozen=True)
class Works:
    """The GPU work of one device, by start time."""

    start_ns: IntArray
    end_ns: IntArray
    column: IntArray  # see Kinds


def known_device(tables: Mapping[str, Table], process: int, device: int) -> int:
    """The device of a process's inferences; if no kernel shows it, that of its CUDA graphs traced
    as a whole, or the only device.
    """
    if device != MISSING:
        return device
    graphs = tables["cuda_graph_traces"]
    found, count = np.unique(
        graphs.ints("device")[graphs.ints("process") == process], return_counts=True
    )
    if len(found):
        return int(found[np.argmax(count)])
    devices = tables["devices"].ints("device")
    return int(devices[0]) if len(devices) == 1 else device


def recorded_works(tables: dict[str, Table], device: int, process: int, kinds: Kinds) -> Works:
    """The GPU work of a device as recorded; work of other processes has a column of its own."""
    kernels, memcpys = tables["kernels"], tables["memcpys"]
    layer = kernels.ints("layer_id")
    copy = memcpys.text("kind")
    of_copy = copy.numbers(lambda kind: _COPY_KINDS.get(kind, 2), missing=2)
    columns = {
        "kernels": np.where(layer >= 0, layer, np.int64(kinds.work(_NO_LAYER))),
        "memcpys": kinds.work(_FIRST_COPY) + of_copy,
        "memsets": np.full(len(tables["memsets"]), kinds.work(_MEMSET), np.int64),
        "cuda_graph_traces": np.full(
            len(tables["cuda_graph_traces"]), kinds.work(_GRAPH), np.int64
        ),
    }
    starts, ends, found = [], [], []
    for name, column in columns.items():
        rows = np.flatnonzero(tables[name].ints("device") == device)
        starts.append(tables[name].ints("start_ns")[rows])
        ends.append(tables[name].ints("end_ns")[rows])
        found.append(
            np.where(
                tables[name].ints("process")[rows] == process,
                column[rows],
                np.int64(kinds.work(_FOREIGN)),
            )
        )
    return _sorted(np.concatenate(starts), np.concatenate(ends), np.concatenate(found))


def idle_of(gaps: Table, device: int, kinds: Kinds) -> Idle:
    """The idle intervals of a device as recorded (GAPS), with the columns of their causes."""
    return recorded_idle(gaps, device, tuple(map(kinds.idle, CAUSES)))


def replayed_works(tables: dict[str, Table], kinds: Kinds) -> Works:
    """The GPU work of the replay without the profiler (REPLAYED_WORK)."""
    work = tables["replayed_work"]
    kernel = work.ints("kernel_id")
    layer = tables["kernels"].ints("layer_id")
    of_kind = {
        "kernel": _NO_LAYER,
        "HtoD": _FIRST_COPY,
        "DtoH": _FIRST_COPY + 1,
        "copy": _FIRST_COPY + 2,
        "memset": _MEMSET,
    }
    kind = work.text("kind")
    column = kind.numbers(
        lambda name: kinds.work(of_kind.get(name, _GRAPH)), missing=kinds.work(_GRAPH)
    ).copy()
    known = np.flatnonzero(kind.equals("kernel") & (kernel != MISSING))
    of_layer = layer[kernel_rows(tables["kernels"], kernel[known])]
    column[known[of_layer >= 0]] = of_layer[of_layer >= 0]
    return _sorted(work.ints("start_ns"), work.ints("end_ns"), column)


def idle_of_replay(tables: dict[str, Table], recorded: Idle, kinds: Kinds) -> Idle:
    """The idle intervals of the replay, with the columns of their causes."""
    return replayed_idle(
        tables["replayed_work"],
        recorded,
        dispatch=kinds.idle("dispatch"),
        profiler=kinds.idle("profiler"),
    )


def kernel_rows(kernels: Table, ids: IntArray) -> IntArray:
    """The rows of these kernels: in a part of a report, the first kernel_id is not 0."""
    rows: IntArray = np.searchsorted(kernels.ints("kernel_id"), ids)
    return rows


def _sorted(start: IntArray, end: IntArray, column: IntArray) -> Works:
    order = np.argsort(start, kind="stable")
    return Works(start[order], end[order], column[order])


def spent(works: Works, idle: Idle, begin_ns: IntArray, end_ns: IntArray, kinds: Kinds) -> IntArray:
    """How the time of each interval (row) is distributed over the columns; where GPU work overlaps,
    time counts for what began first.

    Intervals are disjoint and in order.  Each row adds up to the interval's length: time covered
    neither by work nor by idle intervals is unknown.
    """
    result = np.zeros((len(begin_ns), kinds.count), np.int64)
    if not len(begin_ns):
        return result
    reached = np.maximum.accumulate(works.end_ns) if len(works.end_ns) else works.end_ns
    shown = (
        np.maximum(works.start_ns, np.concatenate([works.start_ns[:1], reached[:-1]]))
        if len(reached)
        else works.start_ns
    )
    alone = np.flatnonzero(works.end_ns > shown)
    _share_out(result, shown[alone], works.end_ns[alone], works.column[alone], begin_ns, end_ns)
    _share_out(result, idle.start_ns, idle.end_ns, idle.column, begin_ns, end_ns)
    result[:, kinds.idle("unknown")] += end_ns - begin_ns - result.sum(axis=1)
    return result


def _share_out(
    result: IntArray,
    start: IntArray,
    end: IntArray,
    column: IntArray,
    begin_ns: IntArray,
    end_ns: IntArray,
) -> None:
    """Add the disjoint pieces to the intervals in which they lie."""
    first = np.searchsorted(end_ns, start, side="right")
    last = np.searchsorted(begin_ns, end, side="left")
    count = np.maximum(last - first, 0)
    piece = np.repeat(np.arange(len(start)), count)
    interval = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count) + first[piece]
    length = np.minimum(end[piece], end_ns[interval]) - np.maximum(start[piece], begin_ns[interval])
    np.add.at(result, (interval, column[piece]), np.maximum(length, 0))


def kernel_sums(kernels: Table, inferences: IntArray, kinds: Kinds) -> FloatArray:
    """Kernel time per inference (row) and layer (column), whatever runs at the same time."""
    place = np.full(
        int(max(kernels.ints("inference").max(initial=0), inferences.max(initial=0))) + 1,
        -1,
        np.int64,
    )
    place[inferences] = np.arange(len(inferences))
    inference, layer = kernels.ints("inference"), kernels.ints("layer_id")
    rows = np.flatnonzero((inference != MISSING) & (layer >= 0))
    rows = rows[place[inference[rows]] >= 0]
    result = np.zeros((len(inferences), kinds.layers))
    length = (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows].astype(np.float64)
    np.add.at(result, (place[inference[rows]], layer[rows]), length)
    return result
