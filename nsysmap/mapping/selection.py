"""A part of a trace that a user chose: by time, inference, device, process and stream."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.groups import distinct, distinct_rows
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text, taken
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.text.units import counted
from nsysmap.trace.capture_facts import capture_facts
from nsysmap.trace.inferences.find import Inferences, part_of
from nsysmap.trace.inferences.launch_order import launch_time
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.lacking import lacking
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace
from nsysmap.trace.raw_rows import compact

_TIME = re.compile(r"(\d{1,18})(?:\.(\d{0,9}))?(ns|us|ms|s)?")
_UNITS = {"ns": 0, "us": 3, "ms": 6, "s": 9}
_NUMBERS = re.compile(r"(\d{1,18})(?:\.\.(\d{1,18}))?")
_WORK = ("kernels", "memcpys", "memsets", "cuda_graph_traces")
_HOST = ("api_calls", "nvtx_ranges", "overheads", "osrt_calls")
_FOREVER_NS = 2**62  # more than any time of a trace, and a difference of two still fits 64 bits
_NAMED = 5  # numbers that a message lists


@dataclass(frozen=True)
class Selection:
    """The user's choice. All conditions that are set must hold; an unset condition excludes
    nothing.
    """

    since_ns: int | None = None
    until_ns: int | None = None
    inferences: tuple[int, int] | None = None  # the first and the last
    devices: tuple[int, ...] = ()
    pids: tuple[int, ...] = ()
    streams: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The chosen values of the columns that say where work ran; None if all are chosen."""
        return ("device", self.devices), ("pid", self.pids), ("stream", self.streams)

    def words(self) -> str:
        """Describes the choice in words."""
        parts = []
        if self.inferences is not None:
            first, last = self.inferences
            parts.append(f"inference {first}" if first == last else f"inferences {first} to {last}")
        if self.since_ns is not None:
            parts.append(f"from {self.since_ns:,} ns on")
        if self.until_ns is not None:
            parts.append(f"before {self.until_ns:,} ns")
        for name, values in self.places:
            if values:
                parts.append(f"{name} {' or '.join(map(str, values))}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Selected:
    """The chosen part of a trace, with the numbers that its kernels and inferences have in the
    whole trace.
    """

    selection: Selection
    trace: Trace
    found: Inferences
    capture: Table  # CAPTURE, of the whole trace
    inferences: IntArray  # for each inference here its number in the whole trace
    cut: IntArray  # those numbers of the inferences of which a part is chosen

    def as_in_the_whole(self, table: Table) -> Table:
        """Converts the table to the numbers that inferences and kernels have in the whole trace."""
        numbers = {"inferences": self.inferences, "kernels": self.trace.kernels.ints("kernel_id")}
        changed = {
            column.name: gather(numbers[column.row_of], table.ints(column.name))
            for column in table.spec.columns
            if column.row_of in numbers and column.kind == "int"
        }
        if table.spec is INFERENCES:
            changed["inference"] = self.inferences
        return table.with_columns(table.spec, changed) if changed else table


def time_ns(text: str) -> int:
    """Parses the user's time into ns: a number followed by ns (the default), us, ms or s."""
    found = _TIME.fullmatch(text.strip().lower())
    if found is None:
        raise NsysmapError(
            f"time {text}",
            "is not a time",
            "write a number and ns, us, ms or s, such as 1.25s; without a unit it is in ns",
        )
    whole, fraction, unit = found.groups()
    digits = _UNITS[unit or "ns"]
    if len((fraction or "").rstrip("0")) > digits:
        raise NsysmapError(
            f"time {text}", "is finer than a nanosecond", "times in a trace are whole nanoseconds"
        )
    return int(whole + (fraction or "").rstrip("0").ljust(digits, "0"))


def inference_numbers(text: str) -> tuple[int, int]:
    """Parses N or N..M into the first and the last inference number."""
    found = _NUMBERS.fullmatch(text.strip())
    first, last = (int(found.group(1)), int(found.group(2) or found.group(1))) if found else (1, 0)
    if first > last:
        raise NsysmapError(
            f"inference {text}",
            "is neither a number nor a range",
            "write 12, or 10..20 for a range, both included",
        )
    return first, last


def select(
    trace: Trace, tensorrt: TensorRtRanges, found: Inferences, selection: Selection
) -> Selected:
    """The chosen part of the trace.

    A kernel, copy, memset or graph execution is in it by the moment of its launch call (its own
    start where that is not in the trace). Of the host's calls and ranges those are kept that
    overlap the time from the first to the last moment chosen: they tell what the host did
    meanwhile.  Ranges in which nodes of a CUDA graph were created, and those nodes, stay too,
    whenever that was. Raises NsysmapError if nothing is chosen.
    """
    inference_of = _inference_of_work(trace, found)
    placed = {name: _placed(getattr(trace, name), selection) for name in _WORK}
    timed = {name: _timed(getattr(trace, name), inference_of[name], selection) for name in _WORK}
    chosen = {name: placed[name] & timed[name] for name in _WORK}
    kept = _kept_inferences(found, inference_of, chosen, selection)
    _check(
        trace,
        found,
        selection,
        anything=bool(len(kept)) or any(rows.any() for rows in chosen.values()),
    )
    cut = _distinct(inference_of, {name: placed[name] & ~timed[name] for name in _WORK})
    begin, end = _window(trace, found.table.take(kept), chosen, selection)
    rows = {name: np.flatnonzero(chosen[name]) for name in _WORK}
    host = {
        name: (
            _overlapping(getattr(trace, name), begin, end)
            & _of_pid(getattr(trace, name), selection)
        )
        for name in _HOST
    }
    for name in _WORK:
        launch = getattr(trace, name).held_ints("launch").take(rows[name])
        host["api_calls"][launch[launch >= 0]] = True
    host["nvtx_ranges"][_around_nodes(trace)] = True
    rows |= {name: np.flatnonzero(kept_rows) for name, kept_rows in host.items()}
    rows["syncs"] = np.flatnonzero(
        _overlapping(trace.syncs, begin, end) & _placed(trace.syncs, replace(selection, streams=()))
    )
    smaller = _taken(trace, rows, selection)
    renumbered = np.full(len(found.table), MISSING, np.int64)
    renumbered[kept] = np.arange(len(kept))
    part = part_of(
        smaller,
        replace(
            found,
            table=found.table.take(kept),
            held_of_call=gather(renumbered, found.of_call[rows["api_calls"]]),
        ),
        gather(renumbered, inference_of["kernels"][rows["kernels"]]),
        np.isin(kept, cut),
    )
    cut_here = kept[np.isin(kept, cut)]
    capture = capture_facts(trace, tensorrt, None)
    # of the whole: the part has launches whose work is not chosen
    lacks = lacking(trace, capture.only().text("cuda_graph_trace"))
    notes = (*trace.notes, *lacks, *_notes(trace, smaller, selection, cut_here))
    return Selected(selection, replace(smaller, notes=notes), part, capture, kept, cut_here)


def _inference_of_work(trace: Trace, found: Inferences) -> dict[str, IntArray]:
    """The inference of each row in the tables of GPU work."""
    return {
        name: (
            found.membership.ints("inference")
            if name == "kernels"
            else gather(found.of_call, getattr(trace, name).ints("launch"))
        )
        for name in _WORK
    }


def _placed(table: Table, selection: Selection) -> BoolArray:
    """Marks the rows that ran on the chosen devices, processes and streams."""
    chosen = np.ones(len(table), np.bool_)
    for name, values in selection.places:
        if values:
            chosen &= np.isin(table.ints(name), values)
    return chosen


def _timed(table: Table, inference: IntArray, selection: Selection) -> BoolArray:
    """Marks the rows that belong to the chosen time and inferences."""
    chosen = _of_inferences(inference, selection)
    if selection.since_ns is not None or selection.until_ns is not None:
        chosen &= _within(launch_time(table), selection)
    return chosen


def _of_inferences(inference: IntArray, selection: Selection) -> BoolArray:
    if selection.inferences is None:
        return np.ones(len(inference), np.bool_)
    chosen: BoolArray = (inference >= selection.inferences[0]) & (
        inference <= selection.inferences[1]
    )
    return chosen


def _within(moment: IntArray, selection: Selection) -> BoolArray:
    inside = np.ones(len(moment), np.bool_)
    if selection.since_ns is not None:
        inside &= moment >= selection.since_ns
    if selection.until_ns is not None:
        inside &= moment < selection.until_ns
    return inside


def _kept_inferences(
    found: Inferences,
    inference_of: dict[str, IntArray],
    chosen: dict[str, BoolArray],
    selection: Selection,
) -> IntArray:
    """The inferences with chosen work. An inference whose work the trace does not show is kept if
    it began in the chosen time.
    """
    table = found.table
    number = table.ints("inference")
    hidden = np.isin(
        number,
        _distinct(
            inference_of, {name: np.ones(len(rows), np.bool_) for name, rows in chosen.items()}
        ),
        invert=True,
    )
    hidden &= (
        _placed(table, selection)
        & _within(table.ints("start_ns"), selection)
        & _of_inferences(number, selection)
    )
    return np.union1d(_distinct(inference_of, chosen), number[hidden])


def _distinct(inference_of: dict[str, IntArray], rows: dict[str, BoolArray]) -> IntArray:
    size = 1 + max(int(numbers.max(initial=-1)) for numbers in inference_of.values())
    return distinct_rows(
        np.concatenate([inference_of[name][mask] for name, mask in rows.items()]), size
    )


def _window(
    trace: Trace, inferences: Table, chosen: dict[str, BoolArray], selection: Selection
) -> tuple[int, int]:
    """The span from the first to the last chosen moment, on host and GPU; all time if no time was
    chosen.
    """
    if selection.inferences is None and selection.since_ns is None and selection.until_ns is None:
        return -_FOREVER_NS, _FOREVER_NS
    begins, ends = inferences.ints("start_ns").tolist(), inferences.ints("end_ns").tolist()
    for name, rows in chosen.items():
        begins.append(int(launch_time(getattr(trace, name))[rows].min(initial=_FOREVER_NS)))
        ends.append(int(getattr(trace, name).ints("end_ns")[rows].max(initial=-_FOREVER_NS)))
    begin, end = min(begins), max(ends)
    if selection.since_ns is not None:
        begin = max(begin, selection.since_ns) if selection.inferences else selection.since_ns
    if selection.until_ns is not None and not selection.inferences:
        end = max(end, selection.until_ns - 1)
    return begin, end


def _overlapping(table: Table, begin: int, end: int) -> BoolArray:
    overlaps: BoolArray = (table.ints("start_ns") <= end) & (table.ints("end_ns") >= begin)
    return overlaps


def _of_pid(table: Table, selection: Selection) -> BoolArray:
    if not selection.pids:
        return np.ones(len(table), np.bool_)
    pid = (table.ints("thread") >> 24) & 0xFFFFFF
    return np.isin(pid, selection.pids)


def _around_nodes(trace: Trace) -> IntArray:
    """The ranges that were open while a node of a CUDA graph was created."""
    created = trace.cuda_graph_nodes.ints("start_ns")  # in order of time
    if not len(created):
        return created
    first = np.searchsorted(created, trace.nvtx_ranges.ints("start_ns"), "left")
    after = np.searchsorted(created, trace.nvtx_ranges.ints("end_ns"), "right")
    return np.flatnonzero(after > first)


def _taken(trace: Trace, rows: dict[str, IntArray], selection: Selection) -> Trace:
    call = np.full(len(trace.api_calls), MISSING, np.int64)
    call[rows["api_calls"]] = np.arange(len(rows["api_calls"]))
    tables = {}
    for name, at in rows.items():
        table: Table = getattr(trace, name)
        columns = {
            key: compact(data) if isinstance(data := taken(held, at), Text) else data
            for key, held in table.columns.items()
        }
        if "launch" in columns:
            columns["launch"] = gather(call, table.ints("launch")[at])
        tables[name] = Table(table.spec, columns)
    records = trace.event_records.with_columns(
        trace.event_records.spec, {"launch": gather(call, trace.event_records.ints("launch"))}
    )
    devices = (
        trace.devices.take(np.isin(trace.devices.ints("device"), selection.devices))
        if selection.devices
        else trace.devices
    )
    changed: dict[str, Any] = dict(tables)  # fields of Trace by name
    return replace(
        trace, **changed, event_records=records.take(records.ints("launch") >= 0), devices=devices
    )


def _check(trace: Trace, found: Inferences, selection: Selection, *, anything: bool) -> None:
    """Raises NsysmapError if the trace does not contain what was asked for."""
    work: list[Table] = [getattr(trace, name) for name in _WORK]
    if selection.inferences is not None and selection.inferences[0] >= len(found.table):
        those = (
            f"its inferences are 0 to {len(found.table) - 1}"
            if len(found.table)
            else "no inference was recognised in it"
        )
        raise NsysmapError(
            trace.source,
            f"has no {replace(Selection(), inferences=selection.inferences).words()}",
            those,
        )
    for name, values in selection.places:
        if not values:
            continue
        held = distinct(
            np.concatenate([distinct(table.ints(name)) for table in (*work, found.table)])
        )
        held = held[held != MISSING]
        absent = [value for value in values if value not in held]
        if absent:
            there = _listed(held) or "(none)"
            raise NsysmapError(
                trace.source,
                f"has no GPU work of {name} {absent[0]}",
                f"it has GPU work of {name} {there}",
            )
    if not anything:
        starts = [int(table.ints("start_ns").min()) for table in work if len(table)]
        ends = [int(table.ints("end_ns").max()) for table in work if len(table)]
        there = (
            f"its GPU work is from {min(starts):,} ns to {max(ends):,} ns"
            if starts
            else "it has no GPU work at all"
        )
        raise NsysmapError(
            trace.source, f"has no GPU work in the selection ({selection.words()})", there
        )


def _notes(trace: Trace, part: Trace, selection: Selection, cut: IntArray) -> list[Note]:
    """States what was selected and how that changes the figures."""
    chosen = f"{len(part.kernels):,} of {counted(len(trace.kernels), 'kernel')}"
    told = (
        f"Selected: {selection.words()}; {chosen}. All figures are of it; inference numbers and"
        " times are the whole report's."
    )
    notes = [Note("info", told, about="selection")]
    if len(cut):
        those = (
            f"inference {cut[0]}" if len(cut) == 1 else f"{len(cut):,} inferences: {_listed(cut)}"
        )
        notes.append(
            Note(
                "warning",
                f"The selection cuts {those}: only part of their work is selected, and the medians"
                " leave them out.",
                brief=f"the selection cuts {counted(len(cut), 'inference')}",
            )
        )
    return notes


def _listed(numbers: IntArray) -> str:
    """Lists the first few of the numbers."""
    return ", ".join(map(str, numbers[:_NAMED].tolist())) + (", …" if len(numbers) > _NAMED else "")
