"""Joins GPU work to the API call that launched it: by process and correlation id."""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import distinct
from nsysmap.core.memory import Ints
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Held, IntArray, Table, repeated, slim, uniform


@dataclass(frozen=True)
class Launches:
    """API calls by (process, correlation id)."""

    calls: Table
    order: IntArray  # rows sorted by key, then by how likely the row is the launching one
    keys: IntArray  # (process number << 32 | correlation) of those rows
    processes: IntArray  # sorted distinct processes

    @staticmethod
    def of(calls: Table) -> Launches:
        """One row per key. Where ids repeat within a process (overhead rows reuse them), a
        launching call is preferred.
        """
        processes = distinct(calls.ints("process"))
        keys = _join_keys(processes, calls.ints("process"), calls.ints("correlation"))
        kinds = calls.text("kind")
        launching = kinds.where(("launch", "graph-launch", "copy", "memset", "sync").__contains__)
        rows = np.flatnonzero(keys >= 0)
        keys = keys[rows]
        if not _strictly_increasing(keys):
            rank = launching[rows].astype(np.int64)
            order = np.lexsort((-rank, keys))
            rows, keys = rows[order], keys[order]
            first = np.ones(len(keys), np.bool_)
            first[1:] = keys[1:] != keys[:-1]
            rows, keys = rows[first], keys[first]
        return Launches(calls, rows, keys, processes)

    def rows(self, process: IntArray, correlation: IntArray) -> IntArray:
        """The api_calls row of each (process, correlation id); MISSING if the trace has none."""
        if len(self.keys) == 0 or len(process) == 0:
            return np.full(len(process), MISSING, np.int64)
        wanted = _join_keys(self.processes, process, correlation)
        low, high = int(self.keys[0]), int(self.keys[-1])
        if (
            high - low < 8 * len(self.keys) + 1_000_000
        ):  # ids are dense: a direct table beats a search
            # the last place is for all that are not in it
            table = np.full(high - low + 2, MISSING, np.int64)
            table[self.keys - low] = self.order
            if wanted.min() >= low and wanted.max() <= high:
                return table[wanted - low]
            return table[np.where((wanted >= low) & (wanted <= high), wanted - low, high - low + 1)]
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(
            (self.keys[at] == wanted) & (wanted >= 0), self.order[at], np.int64(MISSING)
        )

    def columns(
        self, process: IntArray, correlation: IntArray, start_ns: IntArray
    ) -> dict[str, Held]:
        """The columns about its launch that every table of launched GPU work has; ``start_ns`` is
        when the work began.
        """
        rows = self.rows(process, correlation)
        return {
            "correlation": slim(correlation),
            "launch_start_ns": slim(gather(self.calls.held_ints("start_ns"), rows), start_ns),
            "launch_end_ns": slim(gather(self.calls.held_ints("end_ns"), rows), start_ns),
            "thread": slim(gather(self.calls.held_ints("thread"), rows)),
            "launch": slim(rows),
        }


def gather(values: Ints, rows: IntArray) -> IntArray:
    """``values[rows]``, MISSING if a row is MISSING."""
    if len(values) == 0:
        return np.full(len(rows), MISSING, np.int64)
    held = rows >= 0
    if held.all():
        return (
            repeated(values[0], len(rows))
            if isinstance(values, np.ndarray) and uniform(values)
            else values.take(rows)
        )
    return np.where(held, values.take(np.where(held, rows, 0)), np.int64(MISSING))


def _join_keys(processes: IntArray, process: IntArray, correlation: IntArray) -> IntArray:
    """Process number << 32 | correlation; -1 where either is unknown."""
    if len(processes) == 0:
        return np.full(len(process), -1, np.int64)
    if (
        len(processes) == 1
        and uniform(process)
        and process[0] == processes[0]
        and correlation.min() >= 0
        and correlation.max() < 2**32
    ):
        return correlation  # of one process, and known in all rows: the usual case
    number = np.minimum(np.searchsorted(processes, process), len(processes) - 1)
    known = (processes[number] == process) & (correlation >= 0) & (correlation < 2**32)
    return np.where(known, (number << 32) | np.where(known, correlation, 0), np.int64(-1))


def _strictly_increasing(values: IntArray) -> bool:
    return bool((values[1:] > values[:-1]).all())
