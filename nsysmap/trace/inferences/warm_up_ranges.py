"""Finds the inferences that a program's own NVTX ranges call its warm-up."""

from __future__ import annotations

import re

import numpy as np

from nsysmap.core.groups import rows_by_value
from nsysmap.core.table import BoolArray, IntArray, Table, Text

_WARM_UP = re.compile(r"(?<![a-z])warm(ing)?[\s_-]?up(?![a-z])", re.IGNORECASE)
# inferences of the process that no such range holds: of fewer, nothing shows what comes after a
# warm-up
_LEAST_LATER = 3


def named_warm_up(
    ranges: Table, process: IntArray, start: IntArray, end: IntArray, complete: BoolArray
) -> Text:
    """For each inference, enqueued from ``start`` to ``end``, the outermost range of its process
    around it that is called a warm-up; none where hardly any inference is outside of these.
    """
    names = ranges.text("name")
    called = np.flatnonzero(names.where(lambda name: _WARM_UP.search(name) is not None))
    code = np.full(len(start), -1, np.int32)
    of_process = dict(rows_by_value(process))
    for one, places in rows_by_value(ranges.ints("process")[called]):
        mine = of_process.get(one)
        if mine is None:
            continue
        rows = called[places]
        rows = rows[np.argsort(ranges.ints("start_ns")[rows], kind="stable")]
        reached = np.maximum.accumulate(ranges.ints("end_ns")[rows])
        rows = rows[np.concatenate([[True], ranges.ints("start_ns")[rows[1:]] >= reached[:-1]])]
        at = np.searchsorted(ranges.ints("start_ns")[rows], start[mine], side="right") - 1
        inside = (at >= 0) & (ranges.ints("end_ns")[rows[np.maximum(at, 0)]] >= end[mine])
        if np.count_nonzero(~inside & complete[mine]) >= _LEAST_LATER:
            code[mine[inside]] = names.codes[rows[at[inside]]]
    return Text(code, names.values)
