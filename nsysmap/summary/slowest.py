"""The slowest inference: what it waited for, how much of that was at once, and how much had passed before it began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.base.intervals import union_ns
from nsysmap.base.table import MISSING, Row, Table
from nsysmap.summary.model import Slowest, Wait
from nsysmap.trace.steady import OUTLIER


def slowest(tables: Mapping[str, Table]) -> Slowest | None:
    """The steady-state inference that took longest beside the median of its kind; None if no two are of one kind."""
    rows = [row for row in tables["inference_times"] if row.maybe_real("times_median") is not None]
    alike = Counter(row.integer("group_id") for row in rows)
    rows = [row for row in rows if alike[row.integer("group_id")] > 1]  # an inference alone is its own median
    worst = max(rows, key=lambda row: row.real("times_median"), default=None)
    if worst is None:
        return None
    kind = [row for row in rows if row.integer("group_id") == worst.integer("group_id")]
    own = tables["inferences"].take(tables["inferences"].ints("inference") == worst.integer("inference")).only()
    before = [row for row in kind if row.integer("inference") < worst.integer("inference")]
    return Slowest(
        worst.integer("inference"),
        own.maybe_integer("engine"),
        worst.integer("time_ns"),
        worst.real("times_median"),
        worst.maybe_text("extra_cause"),
        worst.maybe_integer("extra_ns"),
        early=worst.real("times_median") >= OUTLIER and all(row.real("times_median") >= OUTLIER for row in before),
        before_ns=_before_it_began(tables["inferences"], worst, kind),
        artefact=_made_by_profiler(worst),
        longest=_longest_wait(tables, worst),
    )


def _made_by_profiler(worst: Row) -> bool:
    """Whether the profiler's own work is more than half of what it took longer than the median."""
    longer = worst.integer("time_ns") * (1 - 1 / worst.real("times_median"))
    return worst.maybe_text("extra_cause") == "profiler" and 2 * (worst.maybe_integer("extra_ns") or 0) > longer


def _before_it_began(inferences: Table, worst: Row, kind: Sequence[Row]) -> int | None:
    """The time from the end of the one before to its own begin, where more than half of what it took too long is in that."""
    times = np.array([row.integer("time_ns") for row in kind])
    rows = np.searchsorted(inferences.ints("inference"), [row.integer("inference") for row in kind])
    start, gpu_end, host_end = (inferences.ints(name)[rows] for name in ("start_ns", "gpu_end_ns", "end_ns"))
    waited = np.maximum(start - (np.where(gpu_end != MISSING, gpu_end, host_end) - times), 0)
    own = next(place for place, row in enumerate(kind) if row.integer("inference") == worst.integer("inference"))
    late, more = waited[own] - np.median(waited), times[own] - np.median(times)
    return int(waited[own]) if 2 * late > more > 0 else None


def _longest_wait(tables: Mapping[str, Table], worst: Row) -> Wait | None:
    """The longest idle interval of the cause that exceeds the median most, where more than half of that excess is in it."""
    inferences, gaps, calls = (tables[name] for name in ("inferences", "gaps", "api_calls"))
    cause, extra = worst.maybe_text("extra_cause"), worst.maybe_integer("extra_ns")
    if cause is None or not extra:
        return None
    one = inferences.take(inferences.ints("inference") == worst.integer("inference")).only()
    end = one.maybe_integer("gpu_end_ns") or one.integer("end_ns")
    mine = gaps.text("cause").equals(cause) & (gaps.ints("start_ns") < end) & (gaps.ints("end_ns") > end - worst.integer("time_ns"))
    if (device := one.maybe_integer("device")) is not None:
        mine &= gaps.ints("device") == device
    rows = np.flatnonzero(mine)
    if not len(rows):
        return None
    longest = gaps.take(rows[[np.argmax(gaps.ints("dur_ns")[rows])]]).only()
    if 2 * longest.integer("dur_ns") <= extra:
        return None
    thread, begin, finish = longest.maybe_integer("thread"), longest.integer("start_ns"), longest.integer("end_ns")
    if thread is None or not len(calls):
        return Wait(longest.integer("dur_ns"), None)
    called = np.flatnonzero((calls.ints("thread") == thread) & (calls.ints("start_ns") < finish) & (calls.ints("end_ns") > begin))
    start, stop = (calls.ints(name)[called] for name in ("start_ns", "end_ns"))
    return Wait(longest.integer("dur_ns"), union_ns(np.maximum(start, begin), np.minimum(stop, finish)))
