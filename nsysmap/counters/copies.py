"""How much of the PCIe link each kind of copy uses: by direction, memory and size, because copies
also repeat outside inferences.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsysmap.core.groups import numbered
from nsysmap.core.table import FloatArray, IntArray, Table
from nsysmap.counters.clock_shift import clock_shift
from nsysmap.counters.estimate import Estimates, estimate
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.shares import busy_time
from nsysmap.counters.well_known import Capture, well_known, why_not
from nsysmap.trace.model import Trace

MOST_KINDS = 100
"""Number of kinds of copies, those with the most time; samples that overlap others are excluded."""
_LINK = {"HtoD": ("pcie_receive", "pcie"), "DtoH": ("pcie_send", "pcie")}
"""The metrics that measure a copy in that direction; the first that was sampled is used."""


def copy_rows(
    samples: Samples, trace: Trace, device: int, shift: Shift | None, capture: Capture
) -> Iterator[dict[str, object]]:
    """Rows of `copy_counters` for one GPU; ``shift`` aligns the clocks, if kernels determined
    it.
    """
    metrics = [row for row, name in enumerate(samples.metrics) if name.startswith("pcie")]
    table = trace.memcpys
    mine = (
        (table.ints("device") == device)
        & (table.ints("end_ns") > table.ints("start_ns"))
        & table.text("kind").where(_LINK.__contains__)
    )
    copies = table.take(np.flatnonzero(mine))
    if not metrics or not len(copies):
        return
    work = _work(copies)
    link = _only(samples, metrics)
    joined = shift if shift is not None else clock_shift(link, work, tuple(range(len(metrics))))
    estimates = None if joined is None else estimate(link, work, joined)
    took, alone = (work.end_ns - work.start_ns).astype(np.float64), _alone_ns(trace, copies, device)
    kinds = range(work.groups)
    count = np.bincount(work.group[work.group >= 0], minlength=work.groups)
    mean_ns, alone_ns = (
        np.bincount(work.group[work.group >= 0], each[work.group >= 0], work.groups) / count
        for each in (took, alone)
    )
    first = copies.take(np.array([np.argmax(work.group == kind) for kind in kinds]))
    for kind, one in zip(kinds, first, strict=True):
        yield {
            "device": device,
            "kind": one.text("kind"),
            "source": one.text("source"),
            "target": one.text("target"),
            "bytes": one.integer("bytes"),
            "copies": int(count[kind]),
            "duration_ns": float(mean_ns[kind]),
            "alone_ns": float(alone_ns[kind]),
            "bytes_per_s": one.integer("bytes") / float(mean_ns[kind]) * 1e9,
            **_counted(estimates, kind, _LINK[one.text("kind")], capture),
        }


def _counted(
    estimates: Estimates | None, kind: int, metrics: tuple[str, ...], capture: Capture
) -> dict[str, object]:
    """The samples of one kind."""
    if estimates is None:
        return {
            "executions": 0,
            "known": False,
            "reason": "the samples do not follow the copies: their clocks could not be aligned",
        }
    found = next((each for name in metrics if (each := estimates.of(name)) is not None), None)
    executions = int(estimates.layout.executions[kind])
    if found is None:
        return {
            "executions": executions,
            "known": False,
            "reason": "traffic in that direction was not sampled",
        }
    value, error = float(found.groups.value[kind]), float(found.groups.error[kind])
    unknown = why_not(estimates, found, kind, capture, what="copy", repeats="copies")
    return {
        "executions": executions,
        "pcie_percent": value if np.isfinite(value) else None,
        "error": error if np.isfinite(error) else None,
        "known": bool(well_known(estimates, found)[kind]),
        "reason": None if unknown is None else unknown.text,
    }


def _work(copies: Table) -> GpuRan:
    """The copies as work with their kinds as groups, -1 for those beyond the maximum."""
    start, end = copies.ints("start_ns"), copies.ints("end_ns")
    codes = [copies.text(name).codes.astype(np.int64) for name in ("kind", "source", "target")]
    _, kind = numbered(*codes, copies.ints("bytes"))
    took = np.bincount(kind, (end - start).astype(np.float64))
    place = np.full(len(took), -1)
    kept = np.argsort(-took, kind="stable")[:MOST_KINDS]
    place[kept] = np.arange(len(kept))
    return GpuRan(start, end, place[kind], _turns(place[kind]), len(kept))


def _turns(kind: IntArray) -> IntArray:
    """For each copy the number of earlier copies of its kind."""
    order = np.argsort(kind, kind="stable")
    begins = np.concatenate([[True], kind[order][1:] != kind[order][:-1]])
    since = np.arange(len(kind)) - np.maximum.accumulate(np.where(begins, np.arange(len(kind)), 0))
    turns = np.empty(len(kind), np.int64)
    turns[order] = since
    return np.where(kind >= 0, turns, -1)


def _alone_ns(trace: Trace, copies: Table, device: int) -> FloatArray:
    """For each copy how long no kernel ran during it."""
    start, end = (
        copies.ints("start_ns").astype(np.float64),
        copies.ints("end_ns").astype(np.float64),
    )
    mine = np.flatnonzero(trace.kernels.ints("device") == device)
    if not len(mine):
        return end - start
    none = np.full(len(mine), -1)
    time = busy_time(
        GpuRan(
            trace.kernels.ints("start_ns")[mine], trace.kernels.ints("end_ns")[mine], none, none, 0
        )
    )
    alone: FloatArray = (end - start) * (1.0 - time.share(start, end))
    return alone


def _only(samples: Samples, rows: list[int]) -> Samples:
    """Only these metrics, as parts of time rather than of a clock's cycles."""
    return Samples(
        samples.start_ns, samples.end_ns, tuple(samples.values[row] for row in rows),
        tuple(samples.metrics[row] for row in rows),
        tuple(samples.percent[row] for row in rows), (None,) * len(rows),
    )  # fmt: skip
