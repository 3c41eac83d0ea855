"""What CPU samples show of the host threads that the GPU waits for."""

from __future__ import annotations

import numpy as np

from nsysmap.core.result_schema import HOST_SAMPLES
from nsysmap.core.table import MISSING, Table, Text
from nsysmap.trace.cpu_samples import OWNERS, CpuSamples


def host_samples(samples: CpuSamples, gaps: Table, steady_state: Table) -> Table:
    """What host threads were in while the GPU waited for work of their own (gaps of the cause
    ``host``), in the steady-state parts, or in all of a trace that has none.
    """
    start_ns, end_ns, thread = (gaps.ints(name) for name in ("start_ns", "end_ns", "thread"))
    waits = gaps.text("cause").equals("host") & (thread != MISSING)
    if len(steady_state):
        inside = np.zeros(len(gaps), np.bool_)
        for part in steady_state:
            begin, end = part.integer("start_ns"), part.integer("end_ns")
            inside |= (start_ns >= begin) & (end_ns <= end)
        waits &= inside
    rows = np.flatnonzero(waits)
    found = samples.during(thread[rows], start_ns[rows], end_ns[rows])
    # of more samples than were read, each stands for several
    each_ns = found.period_ns * found.samples / found.read if found.read else 0.0
    counts = np.array([one.samples for one in found.code], np.int64)
    owners = np.array([OWNERS.index(one.owner) for one in found.code], np.int32)
    return Table(
        HOST_SAMPLES,
        {
            "owner": Text(owners, OWNERS),
            "library": Text.of(one.library for one in found.code),
            "function": Text.of(one.function for one in found.code),
            "samples": counts,
            "share": counts / max(found.read, 1),
            "time_ns": np.round(counts * each_ns).astype(np.int64),
        },
    )
