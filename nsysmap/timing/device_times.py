"""How busy each GPU was within its window, and why it was idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.core.groups import distinct, rows_of_values
from nsysmap.core.intervals import covered
from nsysmap.core.report_schema import DEVICE_TIMES, IDLE_TOTALS
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.trace.gpu_work import gpu_work, gpu_work_by_device
from nsysmap.trace.inferences.find import Inferences
from nsysmap.trace.model import Trace

_OF_INFERENCES = "inferences"  # the kind of window
_Spans = Mapping[int, Sequence[tuple[int, int]]]  # by device


def device_times(
    trace: Trace, inferences: Inferences, steady_state: Table, excluded: _Spans, *, hidden: bool
) -> Table:
    """The table `device_times`. ``steady_state`` is STEADY_STATE, ``excluded`` the spans in it that
    do not count (`with_served`); ``hidden`` says whether GPU work is missing from the trace.
    """
    work = gpu_work_by_device(trace)
    found = []
    for device, window, count, (start, end) in _windows(
        work, steady_state, served_by(trace, inferences)
    ):
        known = device in work and not hidden
        parts = _parts((start, end), excluded.get(device, ()) if window == _OF_INFERENCES else ())
        window_ns = sum(stop - begin for begin, stop in parts)
        busy = _covered_ns(*work[device], parts) if known else None
        found.append(
            {
                "device": device,
                "window": window,
                "start_ns": start,
                "end_ns": end,
                "window_ns": window_ns,
                "inferences": count,
                "busy_ns": busy,
                "copies_ns": (
                    None if busy is None else busy - _without_copies_ns(trace, device, parts, busy)
                ),
                "idle_ns": None if busy is None else window_ns - busy,
                "busy_share": None if busy is None or not window_ns else busy / window_ns,
            }
        )
    return Table.of_rows(DEVICE_TIMES, found)


def _parts(window: tuple[int, int], excluded: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The remainder of a window after removing these times, which do not overlap."""
    begin, found = window[0], []
    for left, right in sorted(excluded):
        if right > begin and left < window[1]:
            found += [(begin, left)] if left > begin else []
            begin = right
    return [*found, (begin, window[1])] if window[1] > begin else found


def _covered_ns(start: IntArray, end: IntArray, parts: Sequence[tuple[int, int]]) -> int:
    """How much of these parts of the time is covered by these pieces of work."""
    return int(
        covered(
            start,
            end,
            (np.array([begin for begin, _ in parts]), np.array([stop for _, stop in parts])),
        ).sum()
    )


def _without_copies_ns(
    trace: Trace, device: int, parts: Sequence[tuple[int, int]], busy_ns: int
) -> int:
    """How much of these parts of the time a device's work other than copies covers."""
    if not (trace.memcpys.ints("device") == device).any():
        return busy_ns
    others = [
        table.take(table.ints("device") == device)
        for table in gpu_work(trace)
        if table is not trace.memcpys
    ]
    start, end = (
        np.concatenate([one.ints(name) for one in others]) for name in ("start_ns", "end_ns")
    )
    return _covered_ns(start, end, parts)


def served_by(trace: Trace, inferences: Inferences) -> dict[int, int]:
    """For each device that runs kernels of inferences which count, but none of its own, the device
    that has most of these inferences: one repetition may use several GPUs.
    """
    table, number = inferences.table, inferences.membership.ints("inference")
    home, ran_on = table.ints("device"), trace.kernels.ints("device")
    if len(distinct(ran_on)) == 1:
        return {}
    counts = table.bools("complete") & ~table.bools("warmup") & (home != MISSING)
    rows = np.flatnonzero(number >= 0)
    rows = rows[counts[number[rows]]]
    return {
        device: int(np.bincount(home[number[mine]]).argmax())
        for device, mine in rows_of_values(ran_on[rows], rows)
        if device != MISSING and not (counts & (home == device)).any()
    }


def with_served(excluded: _Spans, trace: Trace, inferences: Inferences) -> _Spans:
    """The excluded spans of each device, with those of the devices that others serve."""
    served = served_by(trace, inferences)
    return {**excluded, **{one: excluded.get(home, ()) for one, home in served.items()}}


def _windows(
    work: dict[int, tuple[IntArray, IntArray]], steady_state: Table, served: Mapping[int, int]
) -> list[tuple[int, str, int, tuple[int, int]]]:
    """Device, kind of window, number of inferences in it, begin and end: the window of its
    steady-state inferences, or of those that it runs kernels of, otherwise of its GPU work.
    """
    found = {
        row.integer("device"): (
            row.integer("device"),
            _OF_INFERENCES,
            row.integer("inferences"),
            (row.integer("start_ns"), row.integer("end_ns")),
        )
        for row in steady_state
        if row.maybe_integer("device") is not None
    }
    if found:
        of_others = [(one, *found[home][1:]) for one, home in served.items() if home in found]
        return sorted(
            [*found.values(), *((one, kind, 0, span) for one, kind, _, span in of_others)]
        )
    return [
        (device, "trace", 0, (int(start.min()), int(end.max())))
        for device, (start, end) in sorted(work.items())
    ]


def idle_totals(gaps: Table, devices: Table, excluded: _Spans) -> Table:
    """The table `idle_totals`, from GAPS and DEVICE_TIMES: gaps are clipped to the windows without
    what is ``excluded`` of them.
    """
    cause = gaps.text("cause")
    found = []
    for row in devices:
        inferences = row.integer("inferences")
        time, count = np.zeros(len(cause.values), np.int64), np.zeros(len(cause.values), np.int64)
        mine = gaps.ints("device") == row.integer("device")
        counts = inferences or row.maybe_text("window") == _OF_INFERENCES
        for begin, end in _parts(
            (row.integer("start_ns"), row.integer("end_ns")),
            excluded.get(row.integer("device"), ()) if counts else (),
        ):
            left, right = (
                np.maximum(gaps.ints("start_ns"), begin),
                np.minimum(gaps.ints("end_ns"), end),
            )
            within = mine & (right > left)
            np.add.at(time, cause.codes[within], (right - left)[within])
            count += np.bincount(cause.codes[within], minlength=len(cause.values))
        found += [
            {
                "device": row.integer("device"),
                "cause": cause.values[code],
                "gaps": int(count[code]),
                "time_ns": int(time[code]),
                "share_of_window": int(time[code]) / row.integer("window_ns"),
                "ns_per_inference": round(int(time[code]) / inferences) if inferences else None,
            }
            for code in sorted(
                np.flatnonzero(time).tolist(),
                key=lambda code: (-int(time[code]), cause.values[code]),
            )
        ]
    return Table.of_rows(IDLE_TOTALS, found)


def hides_work(capture: Table) -> bool:
    """Whether GPU work is hidden in CUDA graphs that were traced as a whole and have no rows
    (``capture`` is CAPTURE).
    """
    row = capture.only()
    return row.text("cuda_graph_trace") == "graph" and row.integer("cuda_graph_traces") == 0
