"""GPUs that exchange data with NCCL: whether they run joint inferences, in step, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.base.table import MISSING, Table
from nsysmap.base.units import counted
from nsysmap.engine.program import is_collective
from nsysmap.summary.model import Summary

_FEWEST = 5  # inferences on a GPU, from which on it is said whether they are in step
_IN_STEP = 0.9
"""Share of inferences whose last collectives end together on all GPUs; no GPU ends one before all have begun it."""


def in_step(tables: Mapping[str, Table]) -> bool | None:
    """Whether the inferences of several GPUs are joint: as many on each, and their last collectives end together; None if there are not
    several such GPUs, or they have not as many inferences with collectives.

    The clocks of GPUs are apart, and drift: from one inference to the next, how far the ends are apart must change by less than the
    collective takes.
    """
    kernels, devices = tables["kernels"], tables["inferences"].ints("device")
    name, inference = kernels.text("name"), kernels.ints("inference")
    known = np.array([is_collective(value) for value in name.values], np.bool_)
    rows = np.flatnonzero((name.codes >= 0) & (inference != MISSING))
    rows = rows[known[name.codes[rows]]]
    rows = rows[np.lexsort((kernels.ints("end_ns")[rows], inference[rows]))]
    last = rows[np.append(np.diff(inference[rows]) != 0, True)] if len(rows) else rows  # of each inference
    own = [last[devices[inference[last]] == device] for device in np.unique(devices[devices != MISSING]).tolist()]
    if len(own) < 2 or len({len(mine) for mine in own}) > 1 or len(own[0]) < _FEWEST:
        return None
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    own = [mine[np.argsort(end[mine], kind="stable")] for mine in own]
    took = np.min([end[mine] - start[mine] for mine in own], axis=0)
    return all(float(np.mean(np.abs(np.diff(end[other] - end[own[0]])) <= took[1:])) >= _IN_STEP for other in own[1:])


def exchange(summary: Summary) -> str:
    """That the GPUs exchange data, for the title; empty if nothing shows it."""
    if not summary.collectives:
        return ""
    if len(summary.gpus) < 2:
        return ", which exchanges data with other GPUs (NCCL)"
    if summary.in_step:
        return f" that exchange data (NCCL): {counted(summary.inferences // len(summary.gpus), 'joint inference')}"
    return " that exchange data (NCCL)" + (", though not in step" if summary.in_step is False else "")


def jointly(summary: Summary) -> str:
    """What the rate of joint inferences is of; empty if they are not joint."""
    if not summary.in_step:
        return ""
    slower = f"; GPU {summary.traced_gpu} is the slowest" if summary.traced_gpu is not None else ""
    return f" on all {len(summary.gpus)} GPUs together{slower}"


def replayed_alone(summary: Summary) -> str:
    """Which of several GPUs the time without the profiler is of."""
    return f" on GPU {summary.gpu_unprofiled.device}" if len(summary.gpus) > 1 and summary.gpu_unprofiled else ""
