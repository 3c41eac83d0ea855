"""How busy each GPU was, and why it was idle, within its window."""

from __future__ import annotations

import numpy as np

from nsysmap.base.intervals import covered
from nsysmap.base.report_schema import DEVICE_TIMES, IDLE_TOTALS
from nsysmap.base.table import IntArray, Table
from nsysmap.trace.gpu_work import gpu_work, gpu_work_by_device
from nsysmap.trace.model import Trace


def device_times(trace: Trace, steady_state: Table, *, hidden: bool) -> Table:
    """The table `device_times`; ``steady_state`` is STEADY_STATE, ``hidden`` says that work on the GPUs is not in the trace."""
    work = gpu_work_by_device(trace)
    found = []
    for device, window, inferences, (start, end) in _windows(work, steady_state):
        known = device in work and not hidden
        busy = _covered_ns(*work[device], (start, end)) if known else None
        found.append(
            {
                "device": device,
                "window": window,
                "start_ns": start,
                "end_ns": end,
                "window_ns": end - start,
                "inferences": inferences,
                "busy_ns": busy,
                "copies_ns": None if busy is None else busy - _without_copies_ns(trace, device, (start, end), busy),
                "idle_ns": None if busy is None else end - start - busy,
                "busy_share": None if busy is None or end == start else busy / (end - start),
            }
        )
    return Table.of_rows(DEVICE_TIMES, found)


def _covered_ns(start: IntArray, end: IntArray, window: tuple[int, int]) -> int:
    """How much of the window these pieces of work cover."""
    return int(covered(start, end, (np.array(window[:1]), np.array(window[1:])))[0])


def _without_copies_ns(trace: Trace, device: int, window: tuple[int, int], busy_ns: int) -> int:
    """How much of the window a device's work covers but for its copies."""
    if not (trace.memcpys.ints("device") == device).any():
        return busy_ns
    others = [table.take(table.ints("device") == device) for table in gpu_work(trace) if table is not trace.memcpys]
    start, end = (np.concatenate([one.ints(name) for one in others]) for name in ("start_ns", "end_ns"))
    return _covered_ns(start, end, window)


def _windows(work: dict[int, tuple[IntArray, IntArray]], steady_state: Table) -> list[tuple[int, str, int, tuple[int, int]]]:
    """Device, kind of window, number of inferences in it, begin and end: of its steady-state inferences, otherwise of its GPU work."""
    found = [
        (row.integer("device"), "inferences", row.integer("inferences"), (row.integer("start_ns"), row.integer("end_ns")))
        for row in steady_state
        if row.maybe_integer("device") is not None
    ]
    if found:
        return found
    return [(device, "trace", 0, (int(start.min()), int(end.max()))) for device, (start, end) in sorted(work.items())]


def idle_totals(gaps: Table, devices: Table) -> Table:
    """The table `idle_totals`, from GAPS and DEVICE_TIMES: gaps are clipped to the windows."""
    cause = gaps.text("cause")
    found = []
    for row in devices:
        left = np.maximum(gaps.ints("start_ns"), row.integer("start_ns"))
        right = np.minimum(gaps.ints("end_ns"), row.integer("end_ns"))
        within = (gaps.ints("device") == row.integer("device")) & (right > left)
        time = np.zeros(len(cause.values), np.int64)
        np.add.at(time, cause.codes[within], (right - left)[within])
        count = np.bincount(cause.codes[within], minlength=len(cause.values))
        inferences = row.integer("inferences")
        found += [
            {
                "device": row.integer("device"),
                "cause": cause.values[code],
                "gaps": int(count[code]),
                "time_ns": int(time[code]),
                "share_of_window": int(time[code]) / row.integer("window_ns"),
                "ns_per_inference": round(int(time[code]) / inferences) if inferences else None,
            }
            for code in sorted(np.flatnonzero(time).tolist(), key=lambda code: (-int(time[code]), cause.values[code]))
        ]
    return Table.of_rows(IDLE_TOTALS, found)


def hides_work(capture: Table) -> bool:
    """Whether the trace hides GPU work, in CUDA graphs traced as a whole that have no rows (``capture`` is CAPTURE)."""
    row = capture.only()
    return row.text("cuda_graph_trace") == "graph" and row.integer("cuda_graph_traces") == 0
