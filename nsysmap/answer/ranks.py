"""GPUs that exchange data with NCCL: whether they run joint inferences, in step, and the words for
it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.advice.program import is_collective
from nsysmap.answer.model import Answer
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.text.units import counted, rounded

_FEWEST = 5  # inferences on a GPU, from which on it is said whether they are in step
_LATE = 0.03  # share of a joint inference for which GPUs wait for another, from which it is told
_IN_STEP = 0.9
"""Share of inferences whose last collectives end together on all GPUs; no GPU ends one before all
have begun it.
"""


def in_step(tables: Mapping[str, Table]) -> bool | None:
    """Whether the inferences of several GPUs are joint: as many on each, and their last collectives
    end together; None if there are not several such GPUs, or they have not as many inferences with
    collectives.

    The clocks of GPUs are apart, and drift: from one inference to the next, how far the ends are
    apart must change by less than the collective takes.
    """
    kernels, numbers, devices = (
        tables["kernels"],
        tables["inferences"].ints("inference"),
        tables["inferences"].ints("device"),
    )
    inference, rows = kernels.ints("inference"), _collectives(tables)
    rows = rows[np.isin(inference[rows], numbers)]
    rows = rows[np.lexsort((kernels.ints("end_ns")[rows], inference[rows]))]
    # of each inference
    last = rows[np.append(np.diff(inference[rows]) != 0, True)] if len(rows) else rows
    own = [
        last[devices[np.searchsorted(numbers, inference[last])] == device]
        for device in np.unique(devices[devices != MISSING]).tolist()
    ]
    if len(own) < 2 or len({len(mine) for mine in own}) > 1 or len(own[0]) < _FEWEST:
        return None
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    own = [mine[np.argsort(end[mine], kind="stable")] for mine in own]
    took = np.min([end[mine] - start[mine] for mine in own], axis=0)
    return all(
        float(np.mean(np.abs(np.diff(end[other] - end[own[0]])) <= took[1:])) >= _IN_STEP
        for other in own[1:]
    )


def collective_times(tables: Mapping[str, Table]) -> dict[int, float]:
    """For each GPU the mean time of NCCL's kernels per steady-state inference that has any; GPUs
    without such kernels in inferences are left out.
    """
    kernels, times = tables["kernels"], tables["inference_times"].ints("inference")
    rows = _collectives(tables)
    rows = rows[np.isin(kernels.ints("inference")[rows], times)]
    took, device = (
        (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows],
        kernels.ints("device")[rows],
    )
    own = {one: device == one for one in np.unique(device).tolist()}
    return {
        one: float(took[mine].sum()) / len(np.unique(kernels.ints("inference")[rows[mine]]))
        for one, mine in own.items()
    }


def _collectives(tables: Mapping[str, Table]) -> IntArray:
    """The rows of NCCL's kernels in inferences."""
    kernels = tables["kernels"]
    name = kernels.text("name")
    known = np.array([is_collective(value) for value in name.values], np.bool_)
    rows = np.flatnonzero((name.codes >= 0) & (kernels.ints("inference") != MISSING))
    found: IntArray = rows[known[name.codes[rows]]]
    return found


def exchange(summary: Answer) -> str:
    """That the GPUs exchange data, for the title; empty if nothing shows it."""
    if not summary.collectives:
        return ""
    if len(summary.gpus) < 2:
        return ", which exchanges data with other GPUs (NCCL)"
    if summary.in_step:
        joint = f"joint {summary.unit_of_time.one}"
        return (
            f" that exchange data (NCCL): {counted(summary.inferences // len(summary.gpus), joint)}"
        )
    return " that exchange data (NCCL)" + (
        ", though not in step" if summary.in_step is False else ""
    )


def jointly(summary: Answer) -> str:
    """What the rate of joint inferences refers to; empty if they are not joint."""
    if not summary.in_step:
        return ""
    spent = {
        gpu.device: gpu.collectives_ns for gpu in summary.gpus if gpu.collectives_ns is not None
    }
    told = f" on all {len(summary.gpus)} GPUs together"
    last, first = min(spent, key=spent.__getitem__, default=None), max(spent.values(), default=0)
    if last is None or summary.traced is None or first - spent[last] < _LATE * summary.traced.ns:
        return told
    return (
        f"{told}; GPU {last} comes last to the collectives: others wait up to"
        f" {rounded(first - spent[last])} for it"
    )


def replayed_alone(summary: Answer) -> str:
    """The one of several GPUs that the time without the profiler was predicted for."""
    return (
        f" on GPU {summary.gpu_unprofiled.device}"
        if len(summary.gpus) > 1 and summary.gpu_unprofiled
        else ""
    )
