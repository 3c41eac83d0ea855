"""Compares one inference with the median one of its kind: what made it slow, kernel by kernel and
gap by gap. Times are as recorded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.advice.program import program_of
from nsysmap.answer.model import INFERENCE, REPETITION
from nsysmap.comparison.shares import (
    Kinds,
    idle_of,
    kernel_rows,
    known_device,
    recorded_works,
    spent,
)
from nsysmap.comparison.waterfall import Contribution
from nsysmap.core.comparison_schema import INFERENCE_KERNELS
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.network.titles import called_text
from nsysmap.timing.device_times import hides_work
from nsysmap.trace.copies import copied_memory
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.inferences.steady import in_loops, only_repeats, phases

_HIDDEN = "work in CUDA graphs, which the trace hides, and idle time"
SLOWEST, P99 = "slowest", "p99"


_EVIDENCE = ("evidence", "evidence_kind", "evidence_name")  # columns of gaps


@dataclass(frozen=True)
class WaitBefore:
    """An idle interval before an inference was enqueued."""

    ns: int
    cause: str
    evidence: str
    evidence_kind: str
    evidence_name: str
    ended_by: str | None  # the layer of the kernel that ended it, or that kernel


@dataclass(frozen=True)
class OneInference:
    """An inference beside the median inference."""

    source: str
    one: str  # what it is called: an inference, or a repetition
    inference: int
    # the number of steady-state inferences with the same kernel sequence, in the same phase
    like: int
    rank: int | None  # its rank among these, 1 for the slowest; None if it is not one of them
    first: bool  # none precedes it on its thread: its time begins with itself
    warmup: bool
    time_ns: int  # from the end of the previous inference on its thread to its own end
    usual: int  # the inference with the median time
    usual_ns: int
    contributions: tuple[Contribution, ...]  # add up to the difference
    before_ns: int  # of its time, how much had passed before it was enqueued
    usual_before_ns: int
    waits: tuple[WaitBefore, ...]  # the idle intervals in that, the longest first
    kernels: Table  # comparison_schema.INFERENCE_KERNELS
    phases: bool = False  # the run has several phases (steady.phases)


@dataclass(frozen=True)
class _PeriodTimes:
    """Every inference with the time since the end of the previous one on its thread."""

    begin_ns: IntArray
    end_ns: IntArray
    steady: BoolArray

    @property
    def time_ns(self) -> IntArray:
        result: IntArray = self.end_ns - self.begin_ns
        return result

    def first(self, inferences: Table) -> BoolArray:
        """Marks those that are the first on their thread."""
        first: BoolArray = self.begin_ns == np.minimum(inferences.ints("start_ns"), self.end_ns)
        return first

    def before_ns(self, inferences: Table, row: int) -> int:
        """How long after the end of the previous one an inference was enqueued."""
        return max(int(inferences.ints("start_ns")[row] - self.begin_ns[row]), 0)


def one_inference(tables: Mapping[str, Table], source: str, which: str) -> OneInference:
    """Finds what made an inference slow; ``which`` is its number, ``slowest`` or ``p99``. Raises
    NsysmapError if there is no such inference.
    """
    inferences = tables["inferences"]
    if not len(inferences):
        raise NsysmapError(
            source,
            "no inference was recognised in it",
            "capture NVTX ranges (-t cuda,nvtx), or a run of several inferences",
        )
    times = _times(tables)
    row = _row(tables, source, which)
    phase = phases(inferences, in_loops(inferences), copied_memory(inferences, tables["memcpys"]))
    like = _like(inferences, times, phase, row)
    if not len(like):
        raise NsysmapError(
            f"{source}: inference {inferences.ints('inference')[row]}",
            "no other steady-state inference has the same kernels",
            "choose another",
        )
    usual = int(like[np.argsort(times.time_ns[like], kind="stable")[(len(like) - 1) // 2]])
    return OneInference(
        source=source,
        one=(
            REPETITION
            if only_repeats(inferences, tensorrt=program_of(tables).shows_engine)
            else INFERENCE
        ),
        inference=int(inferences.ints("inference")[row]),
        like=len(like),
        rank=(
            1 + int(np.count_nonzero(times.time_ns[like] > times.time_ns[row]))
            if row in like
            else None
        ),
        first=bool(times.first(inferences)[row]),
        warmup=bool(inferences.bools("warmup")[row]),
        time_ns=int(times.time_ns[row]),
        usual=int(inferences.ints("inference")[usual]),
        usual_ns=int(times.time_ns[usual]),
        contributions=_contributions(tables, times, (usual, row)),
        before_ns=times.before_ns(inferences, row),
        usual_before_ns=times.before_ns(inferences, usual),
        waits=_waits(tables, times, row),
        kernels=_kernels(tables, like, row),
        phases=bool((phase != phase[row])[_same_kernels(inferences, row)].any()),
    )


def _times(tables: Mapping[str, Table]) -> _PeriodTimes:
    inferences = tables["inferences"]
    gpu_end = inferences.ints("gpu_end_ns")
    end = np.where(gpu_end != MISSING, gpu_end, inferences.ints("end_ns"))
    loops = [inferences.ints(name) for name in ("process", "thread", "device")]
    order = np.lexsort((end, *loops))
    follows = np.ones(len(order) - 1, np.bool_)
    for column in loops:
        follows &= column[order[1:]] == column[order[:-1]]
    begin = np.minimum(inferences.ints("start_ns"), end)
    begin[order[1:][follows]] = end[order[:-1][follows]]
    return _PeriodTimes(begin, end, inferences.bools("complete") & ~inferences.bools("warmup"))


def _row(tables: Mapping[str, Table], source: str, which: str) -> int:
    numbers = tables["inferences"].ints("inference")
    if which in (SLOWEST, P99):
        known = tables["inference_times"]
        ratio = known.floats("times_median")
        rows = np.flatnonzero(~np.isnan(ratio))
        if not len(rows):
            raise NsysmapError(
                source,
                "has no two consecutive steady-state inferences",
                "give the number of an inference",
            )
        order = rows[np.argsort(ratio[rows], kind="stable")]
        chosen = order[-1] if which == SLOWEST else order[int(np.ceil(0.99 * len(order))) - 1]
        return int(np.searchsorted(numbers, known.ints("inference")[chosen]))
    if not which.isdecimal() or len(which) > 18:
        raise NsysmapError(which, "is not an inference", "give its number, slowest or p99")
    found = np.flatnonzero(numbers == int(which))
    if not len(found):
        raise NsysmapError(
            f"inference {which}",
            f"is not in {source}",
            f"it has inferences {numbers.min()} to {numbers.max()}",
        )
    return int(found[0])


def _same_kernels(inferences: Table, row: int) -> BoolArray:
    same = np.ones(len(inferences), np.bool_)
    for name in ("process", "thread", "device", "engine", "kernel_sequence"):
        same &= inferences.ints(name) == inferences.ints(name)[row]
    return same


def _like(inferences: Table, times: _PeriodTimes, phase: IntArray, row: int) -> IntArray:
    """The steady-state inferences on the same device and of the same engine that launch the same
    kernels in the same phase.
    """
    same = times.steady & _same_kernels(inferences, row) & (phase == phase[row])
    like = np.flatnonzero(same & ~times.first(inferences))
    return like if len(like) else np.flatnonzero(same)


def _contributions(
    tables: Mapping[str, Table], times: _PeriodTimes, rows: tuple[int, int]
) -> tuple[Contribution, ...]:
    """The contributions to the difference between the times of the two inferences; they add up to
    it.
    """
    inferences, layers = tables["inferences"], tables["layers"]
    kinds, titles = Kinds(len(layers)), called_text(layers)
    process = int(inferences.ints("process")[rows[1]])
    device = known_device(tables, process, int(inferences.ints("device")[rows[1]]))
    works = recorded_works(dict(tables), device, process, kinds)
    idle = idle_of(tables["gaps"], device, kinds)
    usual, own = (
        spent(works, idle, times.begin_ns[[row]], times.end_ns[[row]], kinds)[0] for row in rows
    )
    hidden = hides_work(tables["capture"])
    cause = {at: kinds.cause(at) for at in range(kinds.layers, kinds.count)}
    found = [
        Contribution(
            (
                str(titles[at])
                if at < kinds.layers
                else _HIDDEN
                if hidden and cause[at]
                else kinds.name(at)
            ),
            int(own[at] - usual[at]),
            int(usual[at]),
            int(own[at]),
            "layers" if at < kinds.layers else "idle" if cause[at] else "work",
            cause="" if at < kinds.layers or hidden else cause[at] or "",
        )
        for at in np.flatnonzero((own != 0) | (usual != 0)).tolist()
    ]
    return tuple(sorted(found, key=lambda one: (-abs(one.ns), one.name)))


def _waits(tables: Mapping[str, Table], times: _PeriodTimes, row: int) -> tuple[WaitBefore, ...]:
    """The idle intervals from the end of the previous one until an inference was enqueued."""
    inferences, gaps, kernels = tables["inferences"], tables["gaps"], tables["kernels"]
    device = known_device(
        tables, int(inferences.ints("process")[row]), int(inferences.ints("device")[row])
    )
    begin, end = int(times.begin_ns[row]), int(inferences.ints("start_ns")[row])
    mine = (
        (gaps.ints("device") == device)
        & (gaps.ints("start_ns") < end)
        & (gaps.ints("end_ns") > begin)
    )
    found = []
    for gap in gaps.take(mine):
        after = gap.maybe_integer("after_kernel")
        kernel = None if after is None else int(kernel_rows(kernels, np.array([after]))[0])
        name = (
            None
            if kernel is None
            else str(kernels.text("layer_title")[kernel] or kernels.text("name")[kernel])
        )
        ns = min(gap.integer("end_ns"), end) - max(gap.integer("start_ns"), begin)
        shown = [gap.maybe_text(column) or "" for column in _EVIDENCE]
        found.append(WaitBefore(ns, gap.text("cause"), shown[0], shown[1], shown[2], name))
    return tuple(sorted(found, key=lambda one: -one.ns))


def _kernels(tables: Mapping[str, Table], like: IntArray, row: int) -> Table:
    """Its kernels in launch order, each with the median of those at the same position."""
    kernels, gaps = tables["kernels"], tables["gaps"]
    numbers = tables["inferences"].ints("inference")
    wanted = np.isin(kernels.ints("inference"), numbers[np.union1d(like, [row])])
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return Table.empty(INFERENCE_KERNELS)
    order = launch_order(kernels, rows, kernels.ints("inference")[rows])
    own = order[kernels.ints("inference")[order] == numbers[row]]
    others = order[np.isin(kernels.ints("inference")[order], numbers[like])]
    if not len(own) or len(others) % len(own):
        return Table.empty(INFERENCE_KERNELS)  # cut at the end of the capture
    gap, longest = _gaps_before(kernels, gaps)
    length = kernels.ints("end_ns") - kernels.ints("start_ns")
    begin, end = kernels.ints("launch_start_ns")[own], kernels.ints("launch_end_ns")[own]
    idle_since = kernels.ints("start_ns")[own] - gap[own]
    usual, usual_gap = (
        np.rint(np.median(values[others].reshape(-1, len(own)), axis=0)).astype(np.int64)
        for values in (length, gap)
    )
    return Table(
        INFERENCE_KERNELS,
        {
            "position": np.arange(len(own)),
            "kernel_id": kernels.ints("kernel_id")[own],
            "layer": kernels.text("layer").take(own),
            "layer_title": kernels.text("layer_title").take(own),
            "kernel": kernels.text("name").take(own),
            "time_ns": length[own],
            "usual_ns": usual,
            "gap_ns": gap[own],
            "usual_gap_ns": usual_gap,
            "cause": gaps.text("cause").take(longest[own]),
            **{name: gaps.text(name).take(longest[own]) for name in _EVIDENCE},
            "late_ns": np.where(begin == MISSING, MISSING, begin - idle_since),
            "call_ns": np.where((begin == MISSING) | (end == MISSING), MISSING, end - begin),
            "extra_ns": length[own] - usual + gap[own] - usual_gap,
        },
    )


def _gaps_before(kernels: Table, gaps: Table) -> tuple[IntArray, IntArray]:
    """For each kernel the idle time directly before it, and the row in GAPS of its longest part (-1
    for none).
    """
    total, longest = np.zeros(len(kernels), np.int64), np.full(len(kernels), -1, np.int64)
    rows = np.flatnonzero(gaps.ints("after_kernel") != MISSING)
    kernel = kernel_rows(kernels, gaps.ints("after_kernel")[rows])
    spans = gaps.ints("dur_ns")[rows]
    np.add.at(total, kernel, spans)
    by_length = np.argsort(spans, kind="stable")
    longest[kernel[by_length]] = rows[by_length]
    return total, longest
