"""Says for each inference whether the host or the GPU sets its pace."""

from __future__ import annotations

import numpy as np

from nsysmap.base.result_schema import RESOURCES
from nsysmap.base.table import MISSING, Table, Text

ENQUEUE_LIMIT = 0.8
"""trtexec's own criterion: it warns of an enqueue-bound engine above this share of the GPU time."""


def inference_resources(inferences: Table) -> Table:
    """RESOURCES, one row an inference: the host is critical where the enqueue takes more than 0.8 of the GPU time.

    Unknown where the trace has no enqueue or no GPU work of the inference.  Under the profiler an enqueue takes longer than without:
    see what-if for the time without.
    """
    enqueue, busy, span = inferences.ints("enqueue_ns"), inferences.ints("gpu_busy_ns"), inferences.ints("gpu_span_ns")
    launches = inferences.ints("launches")
    known = (enqueue != MISSING) & (busy != MISSING) & (busy > 0)
    nan = float("nan")
    share = np.where(known, enqueue / np.where(known, busy, 1), nan)
    critical = np.select([~known, share > ENQUEUE_LIMIT], [-1, 0], default=1)
    spanned = (span != MISSING) & (busy != MISSING) & (span > 0)
    counted = (enqueue != MISSING) & (launches > 0)
    return Table(
        RESOURCES,
        {
            "inference": inferences.ints("inference"),
            "critical": Text(critical.astype(np.int32), ("host", "gpu")),
            "enqueue_share": share,
            "busy_share": np.where(spanned, busy / np.where(spanned, span, 1), nan),
            "ns_per_launch": np.where(counted, enqueue // np.where(counted, launches, 1), np.int64(MISSING)),
        },
    )
