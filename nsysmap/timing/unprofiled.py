"""Compares what trtexec measured without the profiler with this trace: the cost of profiling."""

from __future__ import annotations

from nsysmap.core.note import Note
from nsysmap.core.result_schema import TRTEXEC_TIMES
from nsysmap.core.table import Row, Table
from nsysmap.inputs.engine.trtexec_times import MEASURES, Measure, TrtexecTimes
from nsysmap.text.units import duration

_TRACED = {
    "enqueue": "enqueue_median_ns",
    "gpu_compute": "gpu_span_median_ns",
    "interval": "median_ns",
}
_WORDS = {
    "enqueue": "enqueue",
    "gpu_compute": "GPU compute",
    "h2d": "H2D",
    "d2h": "D2H",
    "latency": "latency",
    "interval": "per inference",
}
_SHOWN = ("interval", "enqueue", "gpu_compute", "latency")
_ANOTHER = 3.0  # a ratio of times beyond which the difference is not the cost of profiling
_LEAST_NS = 1000  # below it a cost of profiling is not told
_LEAST_SHARE = 0.01  # of the measured time, likewise


def trtexec_table(times: TrtexecTimes | None, groups: Table) -> Table:
    """The table `trtexec_times`: the inferences compared are those of the group with the most; no
    rows if nothing was given.
    """
    if times is None:
        return Table.empty(TRTEXEC_TIMES)
    known = [row for row in groups if row.integer("steady")]
    group = max(known, key=lambda row: row.integer("steady"), default=None)
    rows = []
    for name in MEASURES:
        measure = times.measures.get(name)
        if measure is None:
            continue
        traced_ns = (
            group.maybe_integer(_TRACED[name]) if group is not None and name in _TRACED else None
        )
        measured_ns = measure.median_ns if measure.median_ns is not None else measure.mean_ns
        cost_ns = None if traced_ns is None or measured_ns is None else traced_ns - measured_ns
        rows.append(
            {
                "measure": name,
                "source": times.source,
                "group_id": (
                    group.integer("group_id")
                    if group is not None and traced_ns is not None
                    else None
                ),
                "queries": times.queries,
                "trtexec_ns": measure.median_ns,
                "trtexec_mean_ns": measure.mean_ns,
                "trtexec_min_ns": measure.min_ns,
                "trtexec_max_ns": measure.max_ns,
                "trtexec_p99_ns": measure.p99_ns,
                "traced_ns": traced_ns,
                "profiling_ns": cost_ns,
                "told": _told(name, measure, traced_ns, group),
            }
        )
    return Table.of_rows(TRTEXEC_TIMES, rows)


def trtexec_notes(times: TrtexecTimes | None, table: Table) -> list[Note]:
    """The comparison in a sentence or two, and how the two runs differ."""
    if times is None:
        return []
    by_measure = {row.text("measure"): row for row in table}
    parts = []
    for name in _SHOWN:
        row = by_measure.get(name)
        if row is not None:
            median, mean, traced = (
                row.maybe_integer(column)
                for column in ("trtexec_ns", "trtexec_mean_ns", "traced_ns")
            )
            here = "" if traced is None else f" (here {duration(traced)})"
            parts.append(f"{_WORDS[name]} {duration(mean if median is None else median)}{here}")
    queries = f", {times.queries:,} queries" if times.queries else ""
    notes = [
        Note(
            "info",
            f"Without the profiler, as trtexec measured it ({times.source}{queries}):"
            f" {'; '.join(parts)}.",
        )
    ]
    told = [
        row.maybe_text("told")
        for name, row in by_measure.items()
        if name in ("enqueue", "gpu_compute")
    ]
    notes += [Note("info", text) for text in told if text]
    if times.by_layer:
        notes.append(
            Note(
                "warning",
                f"{times.source} was measured while trtexec also timed layers (no"
                " --separateProfileRun): all its times are longer.",
                brief=f"{times.source} timed layers too: all its times are longer",
            )
        )
    return notes


def _told(name: str, measure: Measure, traced_ns: int | None, group: Row | None) -> str | None:
    """The difference in words; None if there is nothing to compare."""
    measured_ns = measure.median_ns if measure.median_ns is not None else measure.mean_ns
    if (
        traced_ns is None
        or not measured_ns
        or group is None
        or name not in ("enqueue", "gpu_compute")
    ):
        return None
    what = {
        "enqueue": "An enqueue",
        "gpu_compute": "From its first to its last piece of GPU work, an inference",
    }[name]
    ratio = traced_ns / measured_ns
    if not 1 / _ANOTHER < ratio < _ANOTHER:
        return (
            f"{what} takes {duration(traced_ns)} here and {duration(measured_ns)} with trtexec: too"
            " different to be the cost of profiling. Engine, shape, GPU or clock differ, or only"
            " one of the two uses a CUDA graph."
        )
    cost_ns = traced_ns - measured_ns
    if abs(cost_ns) < max(_LEAST_NS, _LEAST_SHARE * measured_ns):
        return f"{what} takes as long under the profiler as without it."
    if cost_ns < 0:
        return (
            f"{what} takes {duration(-cost_ns)} less here than with trtexec: the conditions differ"
            " (clock, shape, transfers or streams)."
        )
    kernels = group.maybe_integer("kernels") or 0
    each = f", {duration(cost_ns / kernels)} for each of its {kernels:,} kernels" if kernels else ""
    if name == "enqueue":
        return f"Tracing makes an enqueue {duration(cost_ns)} longer{each}."
    return (
        f"{what} takes {duration(cost_ns)} longer here than without the profiler{each}: tracing"
        " delays launches."
    )
