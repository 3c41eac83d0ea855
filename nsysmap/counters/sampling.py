"""The tables of hardware counters, and what is said of how they were sampled."""

from __future__ import annotations

from nsysmap.core.counter_schema import (
    COPY_COUNTERS,
    DEVICE_COUNTERS,
    GPU_SAMPLING,
    KERNEL_COUNTERS,
    KERNEL_ENDS,
    LAYER_COUNTERS,
)
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.text.units import counted

_LOST = 0.05  # share of the time below which nothing is said
UNLOST_HZ = 20_000
"""The highest rate without lost samples on an H100 (nsys 2025.3, 22 metrics, 6.7 s); 14 % were lost
at 50 kHz, 46 % at 100, 80 % at 200.
"""


@dataclass(frozen=True)
class Counters:
    """The tables; no rows if no counters were sampled."""

    gpu_sampling: Table
    kernel_counters: Table
    kernel_ends: Table
    layer_counters: Table
    device_counters: Table
    copy_counters: Table


def no_counters() -> Counters:
    """The tables of a trace without sampled counters."""
    return Counters(
        Table.empty(GPU_SAMPLING),
        Table.empty(KERNEL_COUNTERS),
        Table.empty(KERNEL_ENDS),
        Table.empty(LAYER_COUNTERS),
        Table.empty(DEVICE_COUNTERS),
        Table.empty(COPY_COUNTERS),
    )


def sampling_notes(gpu_sampling: Table, one: str) -> tuple[Note, ...]:
    """Notes on how the counters were sampled; ``one`` is the word for one of what runs."""
    notes = []
    for row in gpu_sampling:
        frequency, lost, reason = (
            row.real("frequency_hz"),
            row.real("lost_share"),
            row.maybe_text("reason"),
        )
        told = f"hardware counters of GPU {row.integer('device')} at {frequency / 1e3:.0f} kHz: "
        if lost >= _LOST:
            told += f"nsys lost {lost:.0%} of the samples, in {times(row.integer('holes'))}; "
        used = (
            f"{row.integer('used'):,} samples of {counted(row.integer('inferences'), one)} give the"
            " kernels' values"
        )
        told += used if reason is None else reason
        if lost >= _LOST and reason is None and frequency > 1.1 * UNLOST_HZ:
            told += f" (--gpu-metrics-frequency={UNLOST_HZ} loses fewer)"
        unknown = row.maybe_text("unknown_metrics")
        if unknown and unknown not in told:
            told += f"; the meaning of these metrics is not known: {unknown}"
        brief = f"nsys lost {lost:.0%} of the samples of hardware counters"
        notes.append(Note("warning" if lost >= _LOST else "info", told, brief=brief))
    return tuple(notes)


def times(count: int) -> str:
    """The words for that many stretches of the time."""
    return "one stretch" if count == 1 else f"{count} stretches"
