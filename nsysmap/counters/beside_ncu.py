"""Nsight Compute's counters, matched to the kernels of the trace: the table `ncu_kernels`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.counter_schema import NCU_KERNELS
from nsysmap.core.groups import numbered, rows_by_value
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.counters.ncu_match import Matched, SequenceKernel, match_kernels, other_program
from nsysmap.inputs.ncu.printed import NcuKernel
from nsysmap.text.units import counted
from nsysmap.trace.inferences.steady import steady_inferences

ALONE = "--replay-mode application --cache-control none --clock-control none"
"""The options of ncu with which kernels run as in the program: with kernel replay, each finds in
the caches what its own replay left.
"""

TENSOR = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_elapsed",
)
"""Tensor pipe active, in percent of the elapsed cycles, by the names of several architectures."""

_SECTOR_BYTES = 32  # of the memory of NVIDIA GPUs: what one access to it moves
_MOST_SEQUENCES = 8
"""Kernel sequences in which profiled kernels are looked for, the most frequent ones."""


def ncu_table(
    profiled: tuple[NcuKernel, ...],
    kernels: Table,
    inferences: Table,
    devices: Table,
    edges: Table | None = None,
) -> Table:
    """Each profiled kernel with its kernel in the trace, matched by name, grid, block and order
    within an inference.

    ``edges`` are the tensors between the engine's layers, which tell what a kernel finds in the
    cache where ncu did not count it.
    """
    if not profiled:
        return Table.empty(NCU_KERNELS)
    bandwidth = {
        row.integer("device"): row.maybe_integer("bandwidth_bytes_per_s") for row in devices
    }
    places, by, reasons = _places(profiled, kernels, inferences)
    layers = [
        MISSING if place is None else int(kernels.ints("layer_id")[place.row]) for place in places
    ]
    l2_bytes = {row.integer("device"): row.maybe_integer("l2_bytes") for row in devices}
    device = next(
        (int(kernels.ints("device")[place.row]) for place in places if place is not None), MISSING
    )
    cached = _from_cache(profiled, layers, edges, l2_bytes.get(device))
    medians = _medians(
        kernels,
        inferences,
        {(place.sequence, place.position) for place in places if place is not None},
    )
    found: list[dict[str, object]] = []
    for one, place, reason, told, other in zip(
        profiled, places, reasons, reads_in_program(profiled), cached, strict=True
    ):
        read = other if told is None else told
        moved, duration, tensor = (
            dram_bytes(one),
            _in(one, "ns", "gpu__time_duration.sum"),
            one.get(*TENSOR),
        )
        took = None if place is None else medians[place.sequence, place.position]
        peak = None if place is None else bandwidth.get(int(kernels.ints("device")[place.row]))
        layer = layers[len(found)]
        found.append(
            {
                "profile_id": one.profile_id,
                "kernel": one.name,
                "kernel_sequence": None if place is None else place.sequence,
                "position": None if place is None else place.position,
                "places": None if place is None else place.places,
                "layer_id": None if layer == MISSING else layer,
                "matched_by": None if place is None else by,
                "caches": one.conditions.caches,
                "clocks": one.conditions.clocks,
                "ncu_duration_ns": duration,
                "duration_ns": took,
                "tensor_active": None if tensor is None else tensor.value,
                "dram_bytes": moved,
                "dram_percent": _of_peak(moved, took, peak),
                "dram_read_percent": _of_peak(read, took, peak),
                "reason": reason,
            }
        )
    return Table.of_rows(NCU_KERNELS, found)


def _from_cache(
    profiled: Sequence[NcuKernel], layers: Sequence[int], edges: Table | None, l2_bytes: int | None
) -> list[float | None]:
    """Bytes that each kernel reads from device memory in the program, from the tensors between
    layers, where ncu emptied the caches.

    A tensor that an earlier layer wrote is taken to be in the level-2 cache still, and is
    subtracted, if what all kernels since then moved and the tensor fit into it; None where a layer
    has other than one kernel in the profile, or no tensor's size is known.
    """
    unknown: list[float | None] = [None] * len(profiled)
    if edges is None or not len(edges) or not l2_bytes:
        return unknown
    at = {
        layer: number
        for number, layer in enumerate(layers)
        if layer != MISSING and layers.count(layer) == 1
    }
    moved = np.cumsum([0.0, *((dram_bytes(kernel) or 0.0) for kernel in profiled)])
    subtracted: dict[int, float] = {}
    for row in edges:
        writer, reader, size = (
            at.get(row.integer("from_layer")),
            at.get(row.integer("to_layer")),
            row.maybe_integer("bytes"),
        )
        if reader is None or size is None:
            continue
        held = (
            writer is not None
            and writer < reader
            and moved[reader] - moved[writer] + size <= l2_bytes
        )
        subtracted[reader] = subtracted.get(reader, 0.0) + (size if held else 0)
    for number, kernel in enumerate(profiled):
        read = _in(kernel, "byte", "dram__bytes_read.sum")
        if (
            read is not None
            and number in subtracted
            and kernel.conditions.caches not in (None, "left alone")
        ):
            unknown[number] = max(read - subtracted[number], 0.0)
    return unknown


@dataclass(frozen=True)
class _Place:
    """A kernel of the trace's sequences."""

    sequence: int
    position: int
    row: int  # of the kernels table
    places: int  # positions that fit as well


def _places(
    profiled: tuple[NcuKernel, ...], kernels: Table, inferences: Table
) -> tuple[list[_Place | None], str, list[str | None]]:
    """The place of each profiled kernel in the frequent kernel sequences, what agrees, and why
    others have none.
    """
    places: list[_Place | None] = [None] * len(profiled)
    tried: list[tuple[list[SequenceKernel], Matched]] = []
    where: list[tuple[int, IntArray]] = _typical_inferences(kernels, inferences)
    for _, rows in where:
        sequence = [_as_launched(kernels, row) for row in rows.tolist()]
        tried.append((sequence, match_kernels(profiled, sequence)))
    reason = other_program(profiled, tried) if where else "the trace has no repeated inferences"
    if reason is not None:
        return places, "", [reason] * len(profiled)
    order = sorted(range(len(where)), key=lambda at: -int((tried[at][1].group >= 0).sum()))
    for at in order:
        number, rows = where[at]
        matched = tried[at][1]
        ambiguous = matched.turns if len(profiled) < len(rows) else 1
        for one in np.flatnonzero(matched.group >= 0).tolist():
            position = int(matched.group[one])
            places[one] = places[one] or _Place(number, position, int(rows[position]), ambiguous)
    none = "no kernel of the trace's inferences has its name, grid and block"
    return (
        places,
        ", ".join(tried[order[0]][1].by),
        [none if place is None else None for place in places],
    )


def ncu_notes(ncu_kernels: Table) -> tuple[Note, ...]:
    """Notes on these figures."""
    if not len(ncu_kernels):
        return ()
    known = ncu_kernels.ints("kernel_sequence") != MISSING
    if not known.any():
        told = (
            f"Nsight Compute: none of the {counted(len(ncu_kernels), 'profiled kernel')} is"
            f" matched: {ncu_kernels.text('reason')[0]}."
        )
        brief = "Nsight Compute: none of its kernels is matched"
        return (Note("warning", told, brief=brief),)
    theirs, ours = (
        ncu_kernels.floats("ncu_duration_ns")[known],
        ncu_kernels.floats("duration_ns")[known],
    )
    both = np.isfinite(theirs) & (ours > 0)
    slower = float(np.median(theirs[both] / ours[both])) if both.any() else 1.0
    told = (
        f"Nsight Compute: {int(known.sum())} of {len(ncu_kernels)} profiled kernels were found in"
        " the trace"
    )
    told += f"; they take {slower:.2f} times as long there" if abs(slower - 1) > 0.05 else ""
    places = int(ncu_kernels.ints("places")[known].max())
    told += (
        f"; they fit at {places} positions of the inference equally well, of which the first is"
        " shown"
        if places > 1
        else ""
    )
    return (Note("info" if known.all() else "warning", f"{told}. {_conditions(ncu_kernels)}"),)


def _conditions(ncu_kernels: Table) -> str:
    """The conditions under which figures can be compared with the trace."""
    caches, clocks = (ncu_kernels.text(name)[0] for name in ("caches", "clocks"))
    if caches == "left alone":
        return "Caches were not flushed" + (
            ", and clocks were not locked."
            if clocks == "left alone"
            else "; clocks were locked to base."
        )
    told = (
        "ncu flushed the caches before each kernel"
        if caches
        else "by default, ncu flushes the caches before each kernel"
    )
    return (
        f"{told}: the bytes that it counts as read are an upper bound, not what the kernel reads in"
        f" the program ({ALONE})."
    )


def _typical_inferences(kernels: Table, inferences: Table) -> list[tuple[int, IntArray]]:
    """The frequent kernel sequences, each with the rows of the kernels of one steady-state
    inference in order, the most frequent first.
    """
    steady = steady_inferences(inferences)
    sequence = inferences.ints("kernel_sequence")[steady]
    numbers, first, count = np.unique(
        sequence[sequence != MISSING], return_index=True, return_counts=True
    )
    examples = steady[np.flatnonzero(sequence != MISSING)[first]]
    chosen = np.argsort(-count, kind="stable")[:_MOST_SEQUENCES]
    order = np.argsort(kernels.ints("inference"), kind="stable")
    of = kernels.ints("inference")[order]
    found = []
    for number, example in zip(numbers[chosen].tolist(), examples[chosen].tolist(), strict=True):
        inference = inferences.ints("inference")[example]
        rows = order[np.searchsorted(of, inference) : np.searchsorted(of, inference, "right")]
        found.append((number, rows[np.argsort(kernels.ints("position")[rows], kind="stable")]))
    return found


def _of_peak(moved: float | None, took_ns: float | None, bytes_per_s: int | None) -> float | None:
    """Bytes divided by that time, in percent of the bandwidth."""
    return (
        None
        if moved is None or not took_ns or not bytes_per_s
        else moved / (took_ns / 1e9) / bytes_per_s * 100
    )


def _as_launched(kernels: Table, row: int) -> SequenceKernel:
    def size(what: str) -> tuple[int, int, int]:
        return (
            int(kernels.ints(f"{what}_x")[row]),
            int(kernels.ints(f"{what}_y")[row]),
            int(kernels.ints(f"{what}_z")[row]),
        )

    return SequenceKernel(kernels.text("name")[row] or "", size("grid"), size("block"))


def _medians(
    kernels: Table, inferences: Table, wanted: set[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """The median duration of the kernels at these positions of these sequences."""
    if not wanted:
        return {}
    inside = np.flatnonzero((kernels.ints("inference") >= 0) & (kernels.ints("position") >= 0))
    sequence = inferences.ints("kernel_sequence")[kernels.ints("inference")[inside]]
    (of_sequence, position), number = numbered(sequence, kernels.ints("position")[inside])
    took = (kernels.ints("end_ns") - kernels.ints("start_ns"))[inside]
    places = zip(of_sequence.tolist(), position.tolist(), rows_by_value(number), strict=True)
    return {
        (one, at): float(np.median(took[rows]))
        for one, at, (_, rows) in places
        if (one, at) in wanted
    }


def dram_bytes(kernel: NcuKernel) -> float | None:
    """Bytes that one profiled kernel read from and wrote to device memory; None if they were not
    counted, or without their unit.
    """
    total = _in(kernel, "byte", "dram__bytes.sum")
    if total is not None:
        return total
    read, wrote = (_in(kernel, "byte", f"dram__bytes_{way}.sum") for way in ("read", "write"))
    if read is not None and wrote is not None:
        return read + wrote
    # the page "details"
    rate, took_ns = (
        _in(kernel, "byte/s", "dram__bytes.sum.per_second"),
        _in(kernel, "ns", "gpu__time_duration.sum"),
    )
    return None if rate is None or took_ns is None else rate * took_ns / 1e9


def _in(kernel: NcuKernel, unit: str, name: str) -> float | None:
    """The metric in that unit; None if it was printed without one: ncu scales times and sizes as it
    likes.
    """
    found = kernel.get(name)
    return found.value if found is not None and found.unit == unit else None


def reads_in_program(profiled: Sequence[NcuKernel]) -> list[float | None]:
    """Bytes that each kernel reads from device memory in the program; None if ncu's counters do not
    show them.

    If ncu emptied the caches, what the previous kernel wrote also comes from memory, while in the
    program it is still in the level-2 cache: this amount is subtracted.  Measured on an H100
    against caches left alone: 3.2 and 0.6 points of the bandwidth apart (median of the kernels of a
    decoder and a ResNet), and 18.7 and 17.2 without.
    """
    read = [_in(kernel, "byte", "dram__bytes_read.sum") for kernel in profiled]
    wrote = [kernel.get("lts__t_sectors_op_write.sum") for kernel in profiled]
    told: list[float | None] = []
    for at, (kernel, one) in enumerate(zip(profiled, read, strict=True)):
        before = wrote[at - 1] if at else None
        if one is None or kernel.conditions.caches is None:
            told.append(None)
        elif kernel.conditions.caches == "left alone":
            told.append(one)
        else:
            told.append(None if before is None else max(one - _SECTOR_BYTES * before.value, 0.0))
    return told
