"""Reads what Nsight Compute prints with ``--csv``: the pages ``details`` and ``raw``, and its
output while it profiles.

``details`` has one row per metric, ``raw`` one column per metric with the units in the row below
the names.  Lines of the profiled program and ncu's own (``==PROF==``) precede the table, and may be
inside it.  Names and values are quoted; numbers are in the machine's locale. If ``details`` has
columns for rules, rows of metrics end before them: they are shorter than the header (seen with ncu
2025.3).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.ncu.numbers import decimal_mark, in_base_unit, number
from nsysmap.inputs.nsys.record import PERMISSION

_FIXED = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
    "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name",
    "Rule Type", "Rule Description",
    "Estimated Speedup Type", "Estimated Speedup",
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
)  # fmt: skip
_NEEDED = ("ID", "Kernel Name")
_LONG = {"Metric Name", "Metric Value"}  # one row a metric, where the other form has one a kernel
_CACHES_LEFT = "uncontrolled GPU caches"  # of ncu's warnings: --cache-control none
_CLOCKS_LEFT = "unmodified GPU clocks"  # --clock-control none
_MOST_DIGITS = 18  # of a number that fits 64 bits for certain
_MOST_BYTES = 1 << 30  # of a table that is read whole
_MAKE = "make one with: ncu --csv --page raw PROGRAM > ncu.csv"
_LABELS = {
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "sm__cycles_elapsed.max",
    "SM Frequency": "sm__cycles_elapsed.avg.per_second",
    "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
    "DRAM Throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM Active Cycles": "sm__cycles_active.avg",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
}
"""The labels of metrics on the page ``details``; by section if one label stands for several (see
below).
"""


@dataclass(frozen=True)
class NcuMetric:
    """One metric of one kernel, in a base unit."""

    value: float
    unit: str


@dataclass(frozen=True)
class NcuConditions:
    """The conditions under which ncu profiled; None if its output does not say, as with output from
    a report.
    """

    caches: Literal["emptied", "left alone"] | None = None  # before each kernel
    clocks: Literal["locked", "left alone"] | None = None


@dataclass(frozen=True)
class NcuKernel:
    """One profiled execution of a kernel."""

    profile_id: int
    pid: int | None
    name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    metrics: Mapping[str, NcuMetric]
    conditions: NcuConditions = NcuConditions()

    def get(self, *names: str) -> NcuMetric | None:
        """The first of these metrics that was measured."""
        return next((self.metrics[name] for name in names if name in self.metrics), None)


def read_ncu_csv(path: Path) -> tuple[NcuKernel, ...]:
    """The profiled kernels, in the order in which they ran. Raises NsysmapError if the file is not
    output of ncu.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise NsysmapError(
                str(path),
                f"{path.stat().st_size >> 20} MiB is more than Nsight Compute prints for one run",
                _MAKE,
            )
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise NsysmapError(
            str(path), f"cannot be read ({error.strerror})", "give a file that ncu --csv wrote"
        ) from error
    return parse_ncu_csv(text, str(path))


def parse_ncu_csv(text: str, where: str) -> tuple[NcuKernel, ...]:
    """Parses the text of such a CSV."""
    try:
        tables = list(_tables(text))
    except csv.Error as error:  # a cell of more than 128 KiB
        raise NsysmapError(where, f"is not a CSV of Nsight Compute ({error})", _MAKE) from None
    if not tables and "ERR_NVGPUCTRPERM" in text:
        told = (
            "ncu profiled nothing: its user was not allowed to read the GPU's performance counters"
            " (ERR_NVGPUCTRPERM)"
        )
        raise NsysmapError(where, told, PERMISSION)
    if not tables and "No kernels were profiled" in text:
        raise NsysmapError(
            where,
            "ncu profiled no kernel",
            "check its filters (--kernel-name, --launch-skip, --nvtx-include) and the program",
        )
    if not tables:
        raise NsysmapError(where, "has no Nsight Compute table", _MAKE)
    kernels: dict[tuple[int, int, int], NcuKernel] = {}
    for at, (names, rows) in enumerate(tables):
        read = _long(names, rows) if set(names) >= _LONG else _wide(names, rows)
        for kernel in read:
            key = (at, kernel.pid or 0, kernel.profile_id)
            before = kernels.get(key)
            kernels[key] = kernel if before is None else _with(before, kernel.metrics)
    if not kernels:
        raise NsysmapError(where, "has no profiled kernel", _MAKE)
    conditions = _conditions(text)
    return tuple(replace(kernel, conditions=conditions) for kernel in kernels.values())


def _conditions(text: str) -> NcuConditions:
    """The conditions in ncu's own lines: it warns about what it leaves alone, and only while it
    profiles.
    """
    said = [line for line in text.splitlines() if line.startswith("==WARNING==")]
    caches, clocks = (any(mark in line for line in said) for mark in (_CACHES_LEFT, _CLOCKS_LEFT))
    if not caches and not clocks:
        return NcuConditions()  # older versions may not warn
    return NcuConditions(
        "left alone" if caches else "emptied", "left alone" if clocks else "locked"
    )


def _tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Each header with the rows below it; lines outside tables are left out."""
    names: list[str] = []
    rows: list[list[str]] = []
    least = 0
    for line in csv.reader(
        each + "\n" for each in text.splitlines() if "," in each and not each.startswith("==")
    ):
        stripped = [cell.strip() for cell in line]
        if all(name in stripped for name in _NEEDED):
            if names and rows:
                yield names, rows
            names, rows = stripped, []
            least = names.index("Metric Value") + 1 if "Metric Value" in names else len(names)
        elif names and least <= len(stripped) <= len(names):
            rows.append(stripped + [""] * (len(names) - len(stripped)))
    if names and rows:
        yield names, rows


def _long(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[NcuKernel]:
    at = {name: place for place, name in enumerate(names)}
    value_at, unit_at, metric_at, section_at = (
        at["Metric Value"],
        at.get("Metric Unit"),
        at["Metric Name"],
        at.get("Section Name"),
    )
    mark = decimal_mark(row[value_at] for row in rows)
    for row in rows:
        value = number(row[value_at], mark)
        label = row[metric_at]
        metrics = {}
        if value is not None and label:
            section = row[section_at] if section_at is not None else ""
            metrics[_metric_name(label, section)] = NcuMetric(
                *in_base_unit(value, row[unit_at] if unit_at is not None else "")
            )
        kernel = _kernel(row, at, metrics)
        if kernel is not None:
            yield kernel


def _wide(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[NcuKernel]:
    at = {name: place for place, name in enumerate(names)}
    metrics_at = [
        (place, name)
        for place, name in enumerate(names)
        if name not in _FIXED and not name.startswith("thread ")
    ]
    units = [""] * len(names)
    body = list(rows)
    if body and not body[0][at["ID"]]:
        units = list(body[0])
        body = body[1:]
    mark = decimal_mark(row[place] for row in body for place, _ in metrics_at)
    for row in body:
        metrics = {}
        for place, name in metrics_at:
            value = number(row[place], mark)
            if value is not None:
                metrics[name] = NcuMetric(*in_base_unit(value, units[place]))
        kernel = _kernel(row, at, metrics)
        if kernel is not None:
            yield kernel


def _metric_name(label: str, section: str) -> str:
    """The metric behind a label of the page ``details``; other names as they are."""
    if "__" in label:
        return label
    if label == "Memory Throughput" and section == "Memory Workload Analysis":
        return "dram__bytes.sum.per_second"
    return _LABELS.get(label, f"{section}: {label}" if section else label)


def _kernel(
    row: Sequence[str], at: Mapping[str, int], metrics: Mapping[str, NcuMetric]
) -> NcuKernel | None:
    def cell(name: str) -> str:
        return row[at[name]] if name in at else ""

    profile_id = _whole(cell("ID"))
    if profile_id is None:
        return None
    grid = _three(cell("Grid Size")) or _launched(metrics, "grid")
    block = _three(cell("Block Size")) or _launched(metrics, "block")
    return NcuKernel(
        profile_id, _whole(cell("Process ID")), cell("Kernel Name"), grid, block, dict(metrics)
    )


def _three(text: str) -> tuple[int, int, int] | None:
    """``(2, 66, 1)`` or ``2,66,1``."""
    parts = [_whole(part.strip()) for part in text.strip("() ").replace("x", ",").split(",")]
    match parts:
        case [int(x), int(y), int(z)]:
            return x, y, z
    return None


def _whole(text: str) -> int | None:
    """The text as an integer; None if it is not one, or is longer than any that ncu prints."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _launched(metrics: Mapping[str, NcuMetric], what: str) -> tuple[int, int, int] | None:
    sides = [metrics.get(f"launch__{what}_dim_{side}") for side in "xyz"]
    if any(side is None for side in sides):
        return None
    x, y, z = (int(side.value) for side in sides if side is not None)
    return x, y, z


def _with(kernel: NcuKernel, metrics: Mapping[str, NcuMetric]) -> NcuKernel:
    both = {**kernel.metrics, **metrics}
    return NcuKernel(kernel.profile_id, kernel.pid, kernel.name, kernel.grid, kernel.block, both)
