"""What a whole-graph trace still shows: how long replays took, how long the host took to launch
them, and the time between them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.core.groups import distinct
from nsysmap.core.intervals import holes
from nsysmap.core.report_schema import HIDDEN_REPLAYS
from nsysmap.core.table import IntArray, Table

_LATEST = np.iinfo(np.int64).max


def hidden_replays(api_calls: Table, cuda_graph_traces: Table, since_ns: int) -> Table:
    """The table `hidden_replays` of the launches at ``since_ns`` or later (which leaves a warm-up
    out), by thread.
    """
    kind, thread, start = (
        api_calls.text("kind"),
        api_calls.ints("thread"),
        api_calls.ints("start_ns"),
    )
    launches = np.flatnonzero(kind.equals("graph-launch") & (start >= since_ns))
    syncs = np.flatnonzero(kind.equals("sync"))
    runs = cuda_graph_traces.take(cuda_graph_traces.ints("start_ns") >= since_ns)
    found = []
    for one in distinct(thread[launches]).tolist():
        mine = launches[thread[launches] == one]
        found.append(
            {
                "pid": int(api_calls.ints("pid")[mine[0]]),
                "thread": one,
                "launches": len(mine),
                **_spreads(
                    _replays(
                        api_calls,
                        mine,
                        syncs[thread[syncs] == one],
                        runs.take(runs.ints("thread") == one),
                    )
                ),
            }
        )
        found[-1]["runs"] = int(np.count_nonzero(runs.ints("thread") == one))
    return Table.of_rows(HIDDEN_REPLAYS, found)


def _replays(
    api_calls: Table, launches: IntArray, syncs: IntArray, runs: Table
) -> dict[str, IntArray]:
    """The times of one thread's replays, one number per replay or pair of neighbours."""
    start, end = api_calls.ints("start_ns"), api_calls.ints("end_ns")
    following = np.append(start[launches[1:]], _LATEST)
    first = np.searchsorted(start[syncs], end[launches])
    waited = first < len(syncs)
    waited[waited] = start[syncs[first[waited]]] < following[waited]
    back = end[syncs[first[waited]]]
    later = following[waited] < _LATEST
    gpu_gaps = [
        _gaps(runs.take(runs.ints("device") == device))
        for device in distinct(runs.ints("device")).tolist()
    ]
    return {
        "gpu_time": runs.ints("end_ns") - runs.ints("start_ns"),
        "launch": end[launches] - start[launches],
        "period": np.diff(start[launches]),
        "round_trip": back - start[launches[waited]],
        "between": np.concatenate(gpu_gaps) if gpu_gaps else following[waited][later] - back[later],
    }


def _spreads(times: Mapping[str, IntArray]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, values in times.items():
        known = len(values) > 0
        found[f"{name}_median_ns"] = round(float(np.median(values))) if known else None
        found[f"{name}_p95_ns"] = round(float(np.percentile(values, 95))) if known else None
    return found


def _gaps(runs: Table) -> IntArray:
    found = holes(runs.ints("start_ns"), runs.ints("end_ns"))
    return found.end_ns - found.start_ns
