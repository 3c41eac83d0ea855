"""The steady-state inferences, and the part of the trace that they cover."""

from __future__ import annotations

from nsysmap.base.groups import distinct
from nsysmap.base.intervals import union_ns
from nsysmap.base.table import MISSING, IntArray, Table
from nsysmap.base.trace_schema import STEADY_STATE

OUTLIER = 1.5
"""Times the median time of inferences that are alike, from which one is an outlier."""


def steady_windows(inferences: Table) -> Table:
    """One row per device that ran complete inferences after the warm-up: when, how many, how long (see schema.STEADY_STATE)."""
    rows = inferences.take(inferences.bools("complete") & ~inferences.bools("warmup"))
    starts, ends = rows.ints("start_ns"), rows.ints("end_ns")
    parts = []
    for device in distinct(rows.ints("device")).tolist():
        mine = rows.ints("device") == device
        spans = rows.take(mine & (rows.ints("gpu_start_ns") != MISSING) & (rows.ints("gpu_end_ns") != MISSING))
        start, end = int(starts[mine].min()), int(ends[mine].max())
        parts.append(
            {
                "device": None if device == MISSING else int(device),
                "start_ns": start,
                "end_ns": end,
                "window_ns": end - start,
                "inferences": int(mine.sum()),
                "span_ns": union_ns(spans.ints("gpu_start_ns"), spans.ints("gpu_end_ns")),
            }
        )
    return Table.of_rows(STEADY_STATE, parts)


def steady_inferences(inferences: Table) -> IntArray:
    """The numbers of the complete inferences after the warm-up."""
    rows: IntArray = inferences.ints("inference")[inferences.bools("complete") & ~inferences.bools("warmup")]
    return rows


def only_repeats(inferences: Table, *, tensorrt: bool) -> bool:
    """Whether nothing shows that these are inferences: they are repetitions of the same kernels, which no range or engine file marks, or
    launches of CUDA graphs, which are inferences only where ``tensorrt`` says that something shows it.
    """
    found_by = inferences.text("found_by")
    repeated, launched = found_by.equals("period"), found_by.equals("graph-launch")
    unmarked = (repeated | launched) & (inferences.ints("engine") == MISSING)
    return bool(len(inferences)) and bool(unmarked.all()) and not (tensorrt and launched.any())


_LONGEST_TURN = 8  # inferences of a pass


def inferences_a_pass(sequence: IntArray) -> int:
    """How many inferences make a pass: kinds of inferences (numbers, in order of time) that come in the same turn throughout; else 1."""
    kinds = len(distinct(sequence))
    for period in range(2, _LONGEST_TURN + 1):
        if kinds < 2 or len(sequence) < 3 * period:
            return 1
        if (sequence[period:] == sequence[:-period]).all():
            return period
    return 1
