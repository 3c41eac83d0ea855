"""The table kernels says how long each took, however its columns are stored."""

from __future__ import annotations

import numpy as np

from nsysmap.core.memory import Narrow, narrowed
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import GPU_KERNELS
from nsysmap.mapping.mapped_trace import durations
from tests.reports import analysis


def test_it_is_the_end_minus_the_start() -> None:
    kernels = analysis("bert_trt10", "sync.sqlite").tables.kernels
    told = kernels.ints("duration_ns")
    assert (told == kernels.ints("end_ns") - kernels.ints("start_ns")).all()


def test_it_takes_no_memory_beside_an_end_that_is_stored_near_the_start() -> None:
    start = np.arange(5000, dtype=np.int64) * 10_000_000
    took = np.arange(len(start), dtype=np.int64) % 700 + 3
    end = narrowed(start + took, start)
    assert end is not None and end.near is start
    empty = Table.empty(GPU_KERNELS).columns
    kernels = Table(GPU_KERNELS, empty)
    kernels.columns = {**empty, "start_ns": start, "end_ns": end}
    found = durations(kernels)
    assert isinstance(found, Narrow) and found.codes is end.codes
    assert (found.wide() == took).all()
