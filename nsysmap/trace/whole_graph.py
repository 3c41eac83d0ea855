"""What a whole-graph trace still tells: how long replays took, how long the host took to launch them, and the time between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.intervals import holes
from nsysmap.base.table import IntArray, Table


@dataclass(frozen=True)
class Replays:
    """The replays of CUDA graphs whose kernels are hidden; times in ns, one number a replay (or a pair of neighbours)."""

    launches: int
    runs: int  # rows that the trace has of them
    gpu_ns: IntArray  # time on the GPU, from the trace's rows
    launch_ns: IntArray  # host time of the launch call
    round_trip_ns: IntArray  # from the launch call's begin to the return of the first blocking call after it
    gap_ns: IntArray  # between two replays: GPU idle (gaps_of_gpu), else from that return to the next launch call
    gaps_of_gpu: bool


def find_replays(api_calls: Table, cuda_graph_traces: Table, since_ns: int) -> Replays:
    """The replays launched at ``since_ns`` or later (which leaves a warm-up out)."""
    kind = api_calls.text("kind")
    start, end, thread = api_calls.ints("start_ns"), api_calls.ints("end_ns"), api_calls.ints("thread")
    launches = np.flatnonzero(kind.equals("graph-launch") & (start >= since_ns))
    syncs = np.flatnonzero(kind.equals("sync"))
    round_trips, host_gaps = [], []
    for one in np.unique(thread[launches]):
        mine, waits = launches[thread[launches] == one], syncs[thread[syncs] == one]
        following = np.append(start[mine[1:]], np.iinfo(np.int64).max)
        first = np.searchsorted(start[waits], end[mine])
        waited = first < len(waits)
        waited[waited] = start[waits[first[waited]]] < following[waited]
        back = end[waits[first[waited]]]
        round_trips.append(back - start[mine[waited]])
        later = following[waited] < np.iinfo(np.int64).max
        host_gaps.append(following[waited][later] - back[later])
    runs = cuda_graph_traces.take(cuda_graph_traces.ints("start_ns") >= since_ns)
    gpu_gaps = [_gaps(runs.take(runs.ints("device") == device)) for device in np.unique(runs.ints("device"))]
    return Replays(
        launches=len(launches),
        runs=len(runs),
        gpu_ns=runs.ints("end_ns") - runs.ints("start_ns"),
        launch_ns=end[launches] - start[launches],
        round_trip_ns=_joined(round_trips),
        gap_ns=_joined(gpu_gaps or host_gaps),
        gaps_of_gpu=bool(gpu_gaps),
    )


def _gaps(runs: Table) -> IntArray:
    found = holes(runs.ints("start_ns"), runs.ints("end_ns"))
    return found.end_ns - found.start_ns


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *parts])
