"""Inferences by engine, by loop (process, thread and device), by kernel sequence and by phase: how
many, how long, and what slow ones waited for.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.groups import by_first_row, rows_by_value
from nsysmap.core.intervals import covered
from nsysmap.core.records import dataclass
from nsysmap.core.report_schema import (
    ENGINE_INFERENCES,
    INFERENCE_GROUPS,
    INFERENCE_LOOPS,
    INFERENCE_TIMES,
)
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text
from nsysmap.trace.copies import copied_memory
from nsysmap.trace.inferences.disturbance import HostDisturbance, host_disturbances, slow_calls
from nsysmap.trace.inferences.steady import (
    InLoops,
    in_loops,
    inferences_a_pass,
    phases,
    steady_inferences,
)

_SPREADS = {"gpu_time": "gpu_busy_ns", "gpu_span": "gpu_span_ns", "enqueue": "enqueue_ns"}


@dataclass(frozen=True)
class InferenceTables:
    """The tables about inferences."""

    engine_inferences: Table
    inference_loops: Table
    inference_groups: Table
    inference_times: Table


@dataclass(frozen=True)
class _Inferences:
    """The rows of INFERENCES with facts derived from their order."""

    table: Table
    steady: BoolArray
    loops: InLoops
    kind: IntArray  # a number per loop, engine and kernel sequence
    phase: IntArray  # see steady.phases
    group: IntArray  # group_id
    copies: Text  # the host memory of the copies of each


def inference_figures(
    inferences: Table, gaps: Table, memcpys: Table, calls: Table, overheads: Table
) -> InferenceTables:
    """The tables of `InferenceTables`, computed from INFERENCES, GAPS and MEMCPYS, and from the
    host's API_CALLS and OVERHEADS.
    """
    known = _numbered(inferences, memcpys)
    return InferenceTables(
        _engines(known), _loops(known, calls, overheads), _groups(known), _times(known, gaps)
    )


def _numbered(inferences: Table, memcpys: Table) -> _Inferences:
    steady = np.isin(inferences.ints("inference"), steady_inferences(inferences))
    loops = in_loops(inferences)
    kind = by_first_row(loops.loop, inferences.ints("engine"), inferences.ints("kernel_sequence"))
    copies = copied_memory(inferences, memcpys)
    phase = phases(inferences, loops, copies)
    return _Inferences(inferences, steady, loops, kind, phase, by_first_row(kind, phase), copies)


def _engines(known: _Inferences) -> Table:
    if not len(known.table):
        return Table.empty(ENGINE_INFERENCES)
    engine = known.table.ints("engine")
    rows = [(True, np.arange(len(engine))), *((False, mine) for _, mine in rows_by_value(engine))]
    return Table.of_rows(
        ENGINE_INFERENCES,
        [
            {
                "all_engines": together,
                "engine": _or_none(int(engine[mine].min())) if _alike(engine[mine]) else None,
                **_summed(known, mine),
            }
            for together, mine in rows
        ],
    )


def _alike(values: IntArray) -> bool:
    return bool((values == values[0]).all())


def _summed(known: _Inferences, rows: IntArray) -> dict[str, object]:
    """The columns common to the rows of engines and of groups."""
    steady = rows[known.steady[rows]]
    spreads = [
        _spread(f"{name}_", _known(known.table.ints(column)[steady]))
        for name, column in _SPREADS.items()
    ]
    return {
        **{name: _texts(known.table.text(name), rows) for name in ("found_by", "launch_api")},
        **_counts(known, rows),
        **{key: value for spread in spreads for key, value in spread.items()},
    }


def _loops(known: _Inferences, calls: Table, overheads: Table) -> Table:
    found = []
    inferences = known.table
    disturbances = {one.loop: one for one in host_disturbances(inferences, overheads)}
    for loop_id, places in rows_by_value(known.loops.loop[known.loops.order]):
        rows = known.loops.order[places]
        steady = rows[known.steady[rows]]
        a_pass = inferences_a_pass(
            np.where(known.steady[rows], known.kind[rows], np.int64(MISSING))
        )
        passes = _passes(known, rows, a_pass)
        mean = float(passes.mean()) if len(passes) else None
        first = int(rows[0])
        start_ns, end_ns = inferences.ints("start_ns")[steady], inferences.ints("end_ns")[steady]
        found.append(
            {
                "loop_id": loop_id,
                "pid": int(inferences.ints("pid")[first]),
                **{
                    name: _or_none(int(inferences.ints(name)[first]))
                    for name in ("thread", "device")
                },
                **_counts(known, rows),
                "groups": len(np.unique(known.group[steady])),
                "inferences_a_pass": a_pass,
                "window_ns": int(end_ns.max() - start_ns.min()) if len(steady) else None,
                "mean_ns": None if mean is None else round(mean),
                **_spread("", passes),
                "per_second": 1e9 / mean if mean else None,
                **_held_up(disturbances.get(loop_id)),
                **(
                    _quick_calls(
                        calls, int(inferences.ints("thread")[first]), (start_ns.min(), end_ns.max())
                    )
                    if len(steady)
                    else {}
                ),
            }
        )
    return Table.of_rows(INFERENCE_LOOPS, found)


def _quick_calls(calls: Table, thread: int, within: tuple[int, int]) -> dict[str, object]:
    """The columns about a host that was slowed down."""
    found = slow_calls(calls, thread, within)
    return {} if found is None else {"quick_call": found.api, "quick_call_slowdown": found.slowdown}


def _held_up(found: HostDisturbance | None) -> dict[str, object]:
    """The columns about a host that was held up."""
    if found is None:
        return {}
    slow = found.slow.tolist()
    return {
        "held_up": len(slow),
        "held_up_ns": found.excess_ns,
        "held_up_share": found.share,
        "held_up_times_median": found.longest if slow else None,
        "first_held_up": slow[0] if slow else None,
        "last_held_up": slow[-1] if slow else None,
    }


def _passes(known: _Inferences, rows: IntArray, inferences_a_pass: int) -> IntArray:
    """The times of the passes of steady inferences; each inference begins one, so that they
    overlap.
    """
    end, steady = known.loops.end_ns[rows], known.steady[rows]
    last = np.arange(inferences_a_pass, len(rows))
    count = np.concatenate([[0], np.cumsum(steady)])
    whole = last[count[last + 1] - count[last + 1 - inferences_a_pass] == inferences_a_pass]
    result: IntArray = end[whole] - end[whole - inferences_a_pass]
    return result


def _groups(known: _Inferences) -> Table:
    found = []
    inferences = known.table
    several = np.zeros(int(known.kind.max(initial=0)) + 1, np.bool_)
    several[known.kind[known.phase > 0]] = True
    for group_id, rows in rows_by_value(known.group):
        steady = rows[known.steady[rows]]
        times = known.loops.time_ns[steady]
        times = times[times != MISSING]
        first = int(rows[0])
        found.append(
            {
                "group_id": group_id,
                "loop_id": int(known.loops.loop[first]),
                **{
                    name: _or_none(int(inferences.ints(name)[first]))
                    for name in ("engine", "kernel_sequence")
                },
                "phase": int(known.phase[first]) if several[int(known.kind[first])] else None,
                "copies": _most_often(known.copies, steady if len(steady) else rows),
                **_summed(known, rows),
                "kernels": int(np.median(inferences.ints("kernels")[rows])),
                "mean_ns": round(float(times.mean())) if len(times) else None,
                **_spread("", times),
            }
        )
    return Table.of_rows(INFERENCE_GROUPS, found)


def _counts(known: _Inferences, rows: IntArray) -> dict[str, object]:
    return {
        "inferences": len(rows),
        "warmup": int(np.count_nonzero(known.table.bools("warmup")[rows])),
        "cut": int(np.count_nonzero(~known.table.bools("complete")[rows])),
        "steady": int(np.count_nonzero(known.steady[rows])),
    }


def _spread(prefix: str, values: IntArray) -> dict[str, object]:
    if not len(values):
        return {f"{prefix}median_ns": None, f"{prefix}p95_ns": None}
    return {
        f"{prefix}median_ns": round(float(np.median(values))),
        f"{prefix}p95_ns": round(float(np.percentile(values, 95))),
    }


def _most_often(text: Text, rows: IntArray) -> str | None:
    codes = text.codes[rows]
    count = np.bincount(codes[codes >= 0], minlength=len(text.values))
    return text.values[int(count.argmax())] if count.any() else None


def _known(values: IntArray) -> IntArray:
    known: IntArray = values[values != MISSING]
    return known


def _or_none(value: int) -> int | None:
    return None if value == MISSING else value


def _texts(text: Text, rows: IntArray) -> str | None:
    """The texts of the rows, the most frequent first, joined by plus signs."""
    codes = text.codes[rows]
    count = np.bincount(codes[codes >= 0], minlength=len(text.values))
    order = sorted(
        np.flatnonzero(count).tolist(), key=lambda code: (-int(count[code]), text.values[code])
    )
    return "+".join(text.values[code] for code in order) or None


# --- one by one
# --------------------------------------------------------------------------------------------------


def _times(known: _Inferences, gaps: Table) -> Table:
    rows = np.flatnonzero(known.steady)
    end, time = known.loops.end_ns[rows], known.loops.time_ns[rows]
    idle = _idle_by_cause(
        gaps, known.table.ints("device")[rows], np.where(time == MISSING, end, end - time), end
    )
    timed = time != MISSING
    ratio = np.full(len(rows), np.nan)
    # the cause of which there is most idle time more than in the usual one, and how much
    cause, more = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    usual = np.full(len(rows), MISSING, np.int64)
    for _, places in rows_by_value(known.group[rows]):
        mine = places[timed[places]]
        if len(mine):
            ratio[mine] = time[mine] / max(float(np.median(time[mine])), 1.0)
            middle = mine[np.argsort(time[mine], kind="stable")[(len(mine) - 1) // 2]]
            for one in range(idle.shape[1]):  # one at a time: there may be millions of rows
                extra = idle[mine, one] - idle[middle, one]
                larger = extra > more[mine] if one else np.ones(len(mine), np.bool_)
                cause[mine[larger]], more[mine[larger]] = one, extra[larger]
            usual[mine] = known.table.ints("inference")[rows[middle]]
    return Table(
        INFERENCE_TIMES,
        {
            "inference": known.table.ints("inference")[rows],
            "group_id": known.group[rows],
            "time_ns": time,
            "idle_ns": (
                np.where(timed, idle.sum(axis=1), np.int64(MISSING))
                if idle.shape[1]
                else np.full(len(rows), MISSING, np.int64)
            ),
            "times_median": ratio,
            "usual": usual,
            "extra_cause": Text(
                np.where(more > 0, cause, -1).astype(np.int32), gaps.text("cause").values
            ),
            "extra_ns": np.where(more > 0, more, np.int64(MISSING)),
        },
    )


def _idle_by_cause(gaps: Table, device: IntArray, begin_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Idle time of the device between these times, one column per cause."""
    cause = gaps.text("cause")
    result = np.zeros((len(device), len(cause.values)), np.int64)
    for one in np.unique(device).tolist():
        mine = np.flatnonzero(device == one)
        for code in range(len(cause.values)):
            rows = np.flatnonzero((gaps.ints("device") == one) & (cause.codes == code))
            start, stop = gaps.ints("start_ns")[rows], gaps.ints("end_ns")[rows]
            result[mine, code] = covered(start, stop, within=(begin_ns[mine], end_ns[mine]))
    return result
