"""What Nsight Compute counted, matched to the kernels of the trace: the table `ncu_kernels`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.base.counter_schema import NCU_KERNELS
from nsysmap.base.note import Note
from nsysmap.base.table import MISSING, IntArray, Table
from nsysmap.ncu.match import SequenceKernel, match_kernels
from nsysmap.ncu.printed import NcuKernel
from nsysmap.trace.steady import steady_inferences

ALONE = "--replay-mode application --cache-control none --clock-control none"
"""The options of ncu with which kernels run as in the program: with kernel replay, each finds in the caches what its own replay left."""

TENSOR = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_elapsed",
)
"""Tensor pipe active, in percent of the elapsed cycles, by the names of several architectures."""

_SECTOR_BYTES = 32


def ncu_table(profiled: tuple[NcuKernel, ...], kernels: Table, inferences: Table, devices: Table) -> Table:
    """Each profiled kernel with its kernel in the trace, matched by name, grid, block and order within an inference."""
    rows = _typical_inference(kernels, inferences)
    matched = match_kernels(profiled, [_as_launched(kernels, row) for row in rows.tolist()])
    bandwidth = {row.integer("device"): row.maybe_integer("bandwidth_bytes_per_s") for row in devices}
    sequence = _sequence(kernels, inferences, rows)
    found = []
    for one, place, read in zip(profiled, matched.group.tolist(), reads_in_program(profiled), strict=True):
        row = int(rows[place]) if place >= 0 else None
        moved, duration, tensor = dram_bytes(one), one.get("gpu__time_duration.sum"), one.get(*TENSOR)
        took = None if row is None else _median_ns(kernels, inferences, (sequence, place))
        peak = None if row is None else bandwidth.get(int(kernels.ints("device")[row]))
        layer = None if row is None else int(kernels.ints("layer_id")[row])
        found.append(
            {
                "profile_id": one.profile_id,
                "kernel": one.name,
                "kernel_sequence": None if row is None else sequence,
                "position": None if row is None else place,
                "layer_id": None if layer == MISSING else layer,
                "matched_by": None if row is None else ", ".join(matched.by),
                "caches": one.conditions.caches,
                "clocks": one.conditions.clocks,
                "ncu_duration_ns": None if duration is None else duration.value,
                "duration_ns": took,
                "tensor_active": None if tensor is None else tensor.value,
                "dram_bytes": moved,
                "dram_percent": _of_peak(moved, took, peak),
                "dram_read_percent": _of_peak(read, took, peak),
            }
        )
    return Table.of_rows(NCU_KERNELS, found)


def ncu_notes(ncu_kernels: Table) -> tuple[Note, ...]:
    """Notes on these figures."""
    if not len(ncu_kernels):
        return ()
    known = ncu_kernels.ints("kernel_sequence") != MISSING
    theirs, ours = ncu_kernels.floats("ncu_duration_ns")[known], ncu_kernels.floats("duration_ns")[known]
    both = np.isfinite(theirs) & (ours > 0)
    slower = float(np.median(theirs[both] / ours[both])) if both.any() else 1.0
    told = f"Nsight Compute: {int(known.sum())} of {len(ncu_kernels)} profiled kernels were found in the trace"
    told += f"; they take {slower:.2f} times as long there" if abs(slower - 1) > 0.05 else ""
    return (Note("info" if known.all() else "warning", f"{told}. {_conditions(ncu_kernels)}"),)


def _conditions(ncu_kernels: Table) -> str:
    """What may be compared with the trace."""
    caches, clocks = (ncu_kernels.text(name)[0] for name in ("caches", "clocks"))
    if caches == "left alone":
        return "Caches were not flushed" + (", and clocks were not locked." if clocks == "left alone" else "; clocks were locked to base.")
    told = "ncu flushed the caches before each kernel" if caches else "by default, ncu flushes the caches before each kernel"
    return f"{told}: the bytes that it counts as read are an upper bound, not what the kernel reads in the program ({ALONE})."


def _typical_inference(kernels: Table, inferences: Table) -> IntArray:
    """Rows of the kernels of one steady-state inference with the most frequent kernel sequence, in order."""
    steady = steady_inferences(inferences)
    sequence = inferences.ints("kernel_sequence")[steady]
    if not len(sequence) or not (sequence != MISSING).any():
        return np.zeros(0, np.int64)
    found, count = np.unique(sequence[sequence != MISSING], return_counts=True)
    inference = int(steady[np.flatnonzero(sequence == found[count.argmax()])[0]])
    rows = np.flatnonzero(kernels.ints("inference") == inference)
    ordered: IntArray = rows[np.argsort(kernels.ints("position")[rows], kind="stable")]
    return ordered


def _of_peak(moved: float | None, took_ns: float | None, bytes_per_s: int | None) -> float | None:
    """Bytes divided by that time, in percent of the bandwidth."""
    return None if moved is None or not took_ns or not bytes_per_s else moved / (took_ns / 1e9) / bytes_per_s * 100


def _as_launched(kernels: Table, row: int) -> SequenceKernel:
    def size(what: str) -> tuple[int, int, int]:
        return (int(kernels.ints(f"{what}_x")[row]), int(kernels.ints(f"{what}_y")[row]), int(kernels.ints(f"{what}_z")[row]))

    return SequenceKernel(kernels.text("name")[row] or "", size("grid"), size("block"))


def _sequence(kernels: Table, inferences: Table, rows: IntArray) -> int | None:
    return int(inferences.ints("kernel_sequence")[kernels.ints("inference")[rows[0]]]) if len(rows) else None


def _median_ns(kernels: Table, inferences: Table, place: tuple[int | None, int]) -> float | None:
    """The median duration of the kernel at that position of that sequence."""
    inference = kernels.ints("inference")
    mine = (inference >= 0) & (kernels.ints("position") == place[1])
    mine[mine] = inferences.ints("kernel_sequence")[inference[mine]] == place[0]
    took = (kernels.ints("end_ns") - kernels.ints("start_ns"))[mine]
    return float(np.median(took)) if len(took) else None


def dram_bytes(kernel: NcuKernel) -> float | None:
    """Bytes that one profiled kernel read from and wrote to device memory; None if they were not counted."""
    total = kernel.get("dram__bytes.sum")
    if total is not None:
        return total.value
    parts = [kernel.get(f"dram__bytes_{way}.sum") for way in ("read", "write")]
    if all(part is not None for part in parts):
        return sum(part.value for part in parts if part is not None)
    rate, duration = kernel.get("dram__bytes.sum.per_second"), kernel.get("gpu__time_duration.sum")  # all that the page "details" has
    return None if rate is None or duration is None else rate.value * duration.value / 1e9


def reads_in_program(profiled: Sequence[NcuKernel]) -> list[float | None]:
    """Bytes that each kernel reads from device memory in the program; None if ncu's counters do not show them.

    If ncu emptied the caches, what the previous kernel wrote also comes from memory, while in the program it is still in the level-2 cache:
    this amount is subtracted.  Measured on an H100 against caches left alone: 3.2 and 0.6 points of the bandwidth apart (median of the
    kernels of a decoder and a ResNet), and 18.7 and 17.2 without.
    """
    read = [kernel.get("dram__bytes_read.sum") for kernel in profiled]
    wrote = [kernel.get("lts__t_sectors_op_write.sum") for kernel in profiled]
    told: list[float | None] = []
    for at, (kernel, one) in enumerate(zip(profiled, read, strict=True)):
        before = wrote[at - 1] if at else None
        if one is None or kernel.conditions.caches is None:
            told.append(None)
        elif kernel.conditions.caches == "left alone":
            told.append(one.value)
        else:
            told.append(None if before is None else max(one.value - _SECTOR_BYTES * before.value, 0.0))
    return told
