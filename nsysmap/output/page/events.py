"""The events of a trace in the form for the page's script: columns of small integers, and the texts
to which they refer.

Everything about an event that many events share (a kernel's name, layer, grid, stream, …) is a row
of a table of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from nsysmap.core.groups import distinct, distinct_rows, numbered, numbered_in_turn
from nsysmap.core.records import dataclass
from nsysmap.core.schema import Tables
from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.output.page.windows import Windows, left_out
from nsysmap.text.terminal import escaped
from nsysmap.trace.inferences.steady import OUTLIER

_KERNEL_CLASS = (
    "graph_id", "graph_node_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
    "registers", "static_shared_bytes",
    "dynamic_shared_bytes", "layer_id",
)  # fmt: skip
_KERNEL_TEXTS = ("name", "part", "method", "reason", "part_by")
_INFERENCE_TIMES = (
    "start_ns",
    "end_ns",
    "gpu_start_ns",
    "gpu_end_ns",
    "enqueue_start_ns",
    "enqueue_end_ns",
)
_INFERENCE_FIGURES = ("gpu_busy_ns", "kernels", "device", "engine", "kernel_sequence")
_LANE = ("device", "pid", "context", "stream")
TID = 0xFFFFFF  # the bits of nsys's globalTid with the thread's id; the process's are above them


_LARGE = 1 << 19  # rows from which on memory matters more than the time to convert them

Column = Callable[[], IntArray | Text]
"""A column that is made when it is asked for: all of a large trace at once take too much memory."""


@dataclass(frozen=True)
class Events:
    """The columns by table, and the texts of each text column; times are relative to
    `origin_ns`.
    """

    tables: Mapping[str, Mapping[str, IntArray]]
    texts: Mapping[str, Mapping[str, list[str]]]
    origin_ns: int
    duration_ns: int
    threads: list[dict[str, int]]
    lanes: list[dict[str, int]]  # streams, as the column `lane` numbers them


def events_of(tables: Tables, windows: Windows) -> Events:
    """The events in these parts of the trace."""
    gpu = (tables.kernels, tables.memcpys, tables.memsets, tables.cuda_graph_traces)
    timed = [table for table in (*gpu, tables.api_calls, tables.inferences) if len(table)]
    timed = timed or [table for table in (tables.nvtx_ranges, tables.osrt_calls) if len(table)]
    origin = min((int(table.ints("start_ns").min()) for table in timed), default=0)
    end = max((int(table.ints("end_ns").max()) for table in timed), default=0)
    where, lanes = numbered(
        *(np.concatenate([table.ints(name) for table in gpu]) for name in _LANE)
    )
    lane_of = np.split(lanes, np.cumsum([len(table) for table in gpu])[:-1])
    hosts = (
        tables.api_calls,
        tables.nvtx_ranges,
        tables.osrt_calls,
        tables.overheads,
        tables.inferences,
        tables.gaps,
    )
    ids = distinct(np.concatenate([table.ints("thread") for table in hosts]))
    ids = ids[ids != MISSING]
    made = _Made(windows, origin, ids, {}, {})
    rows_of = [made.kept(table) for table in gpu]
    launches = np.concatenate(
        [table.ints("launch")[rows] for table, rows in zip(gpu, rows_of, strict=True)]
    )
    calls = np.union1d(made.kept(tables.api_calls), distinct_rows(launches, len(tables.api_calls)))
    made.host("calls", tables.api_calls, calls, ("api", "kind"))
    made.host("ranges", tables.nvtx_ranges, made.kept(tables.nvtx_ranges), ("name", "domain"))
    made.host("osrt", tables.osrt_calls, made.kept(tables.osrt_calls), ("name",))
    made.host("overheads", tables.overheads, made.kept(tables.overheads), ("name",))
    names = ("kernels", "copies", "fills", "graphs")
    for name, table, rows, lane in zip(names, gpu, rows_of, lane_of, strict=True):
        _GPU_WORK[name](made, table, rows, lane[rows])
        made.tables[name]["launch"] = _slim(_position(calls, table.ints("launch")[rows]))
    _gaps(made, tables.gaps)
    _inferences(made, tables)
    parts = [left_out(table, lane, windows) for table, lane in zip(gpu, lane_of, strict=True)]
    made.tables["left_out"] = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0]
    }
    made.tables["left_out"]["start"] -= origin
    return Events(
        made.tables,
        made.texts,
        origin,
        max(end - origin, 1),
        _threads(ids, tables),
        _records(dict(zip(_LANE, where, strict=True))),
    )


def _codes(data: IntArray | Text) -> IntArray:
    return data.codes.astype(np.int64) if isinstance(data, Text) else data


def _texts(table: Table, names: Sequence[str], rows: IntArray) -> dict[str, Column]:
    return {name: partial(_text, table, name, rows) for name in names}


def _text(table: Table, name: str, rows: IntArray) -> Text:
    return table.text(name).take(rows)


@dataclass(frozen=True)
class _Made:
    """The tables under construction."""

    windows: Windows
    origin_ns: int
    threads: IntArray
    tables: dict[str, dict[str, IntArray]]
    texts: dict[str, dict[str, list[str]]]

    def kept(self, table: Table) -> IntArray:
        """Its rows in the page's windows."""
        return np.flatnonzero(self.windows.holds(table.ints("start_ns"), table.ints("end_ns")))

    def since(self, times: IntArray) -> IntArray:
        """The times relative to the origin; -1 for none."""
        return np.where(times == MISSING, -1, times - self.origin_ns)

    def put(self, name: str, table: Table, rows: IntArray, shared: Mapping[str, Column]) -> None:
        """Add a table of events: start, duration, and class, which is a row of a separate table."""
        first, number = numbered_in_turn(_codes(column()) for column in shared.values())
        classes: dict[str, IntArray] = {}
        texts: dict[str, list[str]] = {}
        for key, column in shared.items():
            data = column()
            classes[key] = _codes(data)[first]
            if isinstance(data, Text):
                used = distinct_rows(classes[key], len(data.values))
                classes[key] = np.where(classes[key] < 0, -1, np.searchsorted(used, classes[key]))
                texts[key] = [escaped(data.values[code]) for code in used.tolist()]
        start = table.ints("start_ns")[rows]
        self.tables[name] = {
            "start": start - self.origin_ns,
            "dur": _slim(table.ints("end_ns")[rows] - start),
            "class": _slim(number),
        }
        self.tables[f"{name}_classes"], self.texts[f"{name}_classes"] = classes, texts

    def host(self, name: str, table: Table, rows: IntArray, texts: tuple[str, ...]) -> None:
        """Add what happened on threads."""
        thread = _position(self.threads, table.ints("thread")[rows])
        self.put(
            name,
            table,
            rows,
            {"thread": lambda: thread, **_texts(table, texts, rows)},
        )


def _kernels(made: _Made, table: Table, rows: IntArray, lane: IntArray) -> None:
    sure = np.round(table.floats("confidence")[rows] * 1000).astype(np.int64)
    shared: dict[str, Column] = {"lane": lambda: lane, "confidence": lambda: sure}
    shared |= {name: partial(table.ints_at, name, rows) for name in _KERNEL_CLASS}
    shared |= _texts(table, _KERNEL_TEXTS, rows)
    made.put("kernels", table, rows, shared)
    made.tables["kernels"] |= {
        "id": _slim(table.ints("kernel_id")[rows]),
        "inference": _slim(table.ints("inference")[rows]),
        "position": _slim(table.ints("position")[rows]),
    }


def _copies(made: _Made, table: Table, rows: IntArray, lane: IntArray) -> None:
    words = _texts(table, ("kind", "source", "target", "api"), rows)
    how = table.bools("asynchronous")[rows].astype(np.int64)
    made.put(
        "copies",
        table,
        rows,
        {"lane": lambda: lane, "asynchronous": lambda: how, **words},
    )
    made.tables["copies"]["bytes"] = table.ints("bytes")[rows]


def _fills(made: _Made, table: Table, rows: IntArray, lane: IntArray) -> None:
    made.put(
        "fills",
        table,
        rows,
        {"lane": lambda: lane, **_texts(table, ("target", "api"), rows)},
    )
    made.tables["fills"]["bytes"] = table.ints("bytes")[rows]


def _graphs(made: _Made, table: Table, rows: IntArray, lane: IntArray) -> None:
    graph = table.ints("graph_id")[rows]
    made.put("graphs", table, rows, {"lane": lambda: lane, "graph_id": lambda: graph})


_GPU_WORK = {"kernels": _kernels, "copies": _copies, "fills": _fills, "graphs": _graphs}


def _gaps(made: _Made, table: Table) -> None:
    rows = made.kept(table)
    device, thread = table.ints("device")[rows], table.ints("thread")[rows]
    shared: dict[str, Column] = {
        "device": lambda: device,
        "thread": lambda: _position(made.threads, thread),
    }
    made.put(
        "gaps",
        table,
        rows,
        shared | _texts(table, ("cause", "evidence"), rows),
    )
    kernels, calls = made.tables["kernels"], made.tables["calls"]
    before, after = (
        _position(kernels["id"], table.ints(name)[rows])
        for name in ("before_kernel", "after_kernel")
    )
    gaps = made.tables["gaps"]
    end = gaps["start"] + gaps["dur"]
    begin, stop = (
        made.since(table.ints(name)[rows]) for name in ("evidence_start_ns", "evidence_end_ns")
    )
    call = _position(calls["start"], begin)
    call[_at(calls["start"] + calls["dur"], call) != stop] = -1
    apart = (call < 0) & (begin >= 0)
    # most begin and end with a neighbouring kernel, and most evidence is a call: small numbers
    since = np.where(before < 0, 0, _at(kernels["start"] + kernels["dur"], before))
    made.tables["gaps"] = {
        "class": gaps["class"],
        "before": _slim(before),
        "after": _slim(after),
        "from": _slim(gaps["start"] - since),
        "to": _slim(np.where(after < 0, 0, _at(kernels["start"], after)) - end),
        "inference": _slim(table.ints("inference")[rows]),
        "call": _slim(call),
        "evidence": np.where(apart, begin, 0),
        "evidence_dur": _slim(np.where(apart, stop - begin, -1)),
    }


def _inferences(made: _Made, tables: Tables) -> None:
    table, times = tables.inferences, tables.inference_times
    columns = {name.removesuffix("_ns"): made.since(table.ints(name)) for name in _INFERENCE_TIMES}
    columns |= {name.removesuffix("_ns"): table.ints(name) for name in _INFERENCE_FIGURES}
    columns["thread"] = _position(made.threads, table.ints("thread"))
    columns["warmup"], columns["complete"] = (
        table.bools(name).astype(np.int64) for name in ("warmup", "complete")
    )
    columns["shown"] = made.windows.inferences.astype(np.int64)
    cause, ratio = times.text("extra_cause"), times.floats("times_median")
    odd = np.where(np.isnan(ratio), 0, ratio) >= OUTLIER
    for name, values in (
        ("group", times.ints("group_id")),
        ("time", times.ints("time_ns")),
        ("idle", times.ints("idle_ns")),
        ("extra", times.ints("extra_ns")),
        ("cause", cause.codes.astype(np.int64)),
        ("outlier", odd.astype(np.int64)),
    ):
        columns[name] = np.full(len(table), -1, np.int64)
        columns[name][times.ints("inference")] = np.where(values == MISSING, -1, values)
    made.tables["inferences"] = columns
    made.texts["inferences"] = {"cause": list(cause.values)}


def _slim(values: IntArray) -> IntArray:
    """The column in half the memory, where it is long and its values allow it."""
    if len(values) < _LARGE or values.min() < -(2**31) or values.max() >= 2**31:
        return values
    return values.astype(np.int32)


def _position(kept: IntArray, rows: IntArray) -> IntArray:
    """The index of each value among the kept ones, which are ascending; -1 if it is not among
    them.
    """
    if len(kept) == 0:
        return np.full(len(rows), -1, np.int64)
    at = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
    result: IntArray = np.where(kept[at] == rows, at, -1)
    return result


def _at(values: IntArray, rows: IntArray) -> IntArray:
    """The values at these rows; -1 for row -1."""
    return np.append(values, -1)[rows]


def _threads(ids: IntArray, tables: Tables) -> list[dict[str, int]]:
    pid_of: dict[int, int] = {}
    for table in (tables.api_calls, tables.nvtx_ranges, tables.osrt_calls, tables.inferences):
        known, first = np.unique(table.ints("thread"), return_index=True)
        pid_of |= dict(zip(known.tolist(), table.ints("pid")[first].tolist(), strict=True))
    return [{"pid": pid_of.get(one, (one >> 24) & TID), "tid": one & TID} for one in ids.tolist()]


def _records(columns: Mapping[str, IntArray]) -> list[dict[str, int]]:
    lists = [np.where(data == MISSING, -1, data).tolist() for data in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]
