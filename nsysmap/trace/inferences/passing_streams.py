"""Programs that make a stream for each piece of work, use it once, and make the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.groups import distinct, numbered, rows_by_value, runs
from nsysmap.core.table import MISSING, BoolArray, IntArray
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.model import Trace

_FEWEST = 8  # streams, each used once: of fewer, they may be the parts of a program


def on_one_stream(trace: Trace) -> Trace:
    """The trace in which streams of a thread that come one after the other, each used once, are the
    first of them: what repeats is then on one stream.
    """
    kernels = trace.kernels
    stream = kernels.ints("stream")
    if len(distinct(stream)) < _FEWEST:
        return trace
    joined, changed = stream.copy(), False
    order = launch_order(kernels, np.arange(len(kernels)))
    feeder = numbered(*(kernels.ints(name)[order] for name in ("process", "context", "thread")))[1]
    threads = numbered(*(kernels.ints(name) for name in ("process", "context", "stream")))[1]
    shared = _shared(threads, kernels.ints("thread"))
    for _, places in rows_by_value(feeder):
        rows = order[places]
        if kernels.ints("thread")[rows[0]] == MISSING:
            continue
        value, first, count = runs(stream[rows])
        _, back, often = np.unique(value, return_inverse=True, return_counts=True)
        once = (often[back] == 1) & ~shared[rows[first]]
        if np.count_nonzero(once) < _FEWEST:
            continue
        passing = np.repeat(once, count)
        joined[rows[passing]] = value[once][0]
        changed = True
    if not changed:
        return trace
    return replace(trace, kernels=kernels.with_columns(kernels.spec, {"stream": joined}))


def _shared(stream: IntArray, thread: IntArray) -> BoolArray:
    """For each kernel: whether several threads launch into its stream."""
    pairs = np.unique(np.stack([stream, thread], axis=1), axis=0)
    threads = np.bincount(pairs[:, 0], minlength=int(stream.max(initial=0)) + 1)
    shared: BoolArray = threads[stream] > 1
    return shared
