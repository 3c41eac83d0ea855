"""How far a predicted time of CUDA graphs may be off: what their kernels, the gaps between them and
the host may take more or less than assumed, as errors that do not depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

import numpy as np

from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model
from nsysmap.whatif.timeline import Timeline, all_steps, all_works, host_time, inference_count

_FEW_BLOCKS, _LONG_NS = 8, 10_000
_ELSEWHERE = 0.25
"""A kernel of few blocks that runs long may take so much more without the profiler: 4 blocks of a
convolution took 226 us in every capture, and 226, 240 and 275 us without the profiler on three
H200s, whose other kernels took as long as ever.
"""

_OTHER_KERNELS = 0.12
"""Part of the GPU's work that a CUDA graph of an engine with dynamic shapes may take longer: in
the graph of one of two such engines TensorRT for RTX ran products that were not specialised for
the shape, of twice the duration.
"""

_BRANCHES = 0.03  # part of the work of a graph with branches, whose overlap differs from run to run
_OWN = 0.35  # part of the host's own work around the graphs


@dataclass(frozen=True)
class _Errors:
    """The errors of one kind of prediction, all of which hold in 92 % of the engines that they were
    chosen on, each engine counted once.
    """

    node_ns: float  # a node with the gap before it
    host_ns: float  # launching, waiting, and what the host does between them
    work: float  # part of the GPU's work


AS_RECORDED = _Errors(140, 3_500, 0.028)
"""Of a graph that the trace holds: 36 captures of 24 engines."""

MADE = _Errors(220, 3_900, 0.033)
"""Of a graph that is made of single launches: 62 captures of 26 engines."""


def only_graphs(timeline: Timeline) -> bool:
    """Whether one thread launches all GPU work, as CUDA graphs."""
    works = [step for step in all_steps(timeline) if step.works]
    return len(timeline.threads) == 1 and bool(works) and all(step.graph for step in works)


def graph_spread(
    model: Model, timeline: Timeline, errors: _Errors, *, dynamic: bool = False
) -> tuple[float, float]:
    """By how many nanoseconds per inference or pass a program of graph launches may be quicker,
    and slower, than the replay of this timeline says.
    """
    count = max(inference_count(timeline), 1) / model.window.inferences_a_pass
    works = list(all_works(timeline))
    own = host_time(timeline, lambda step: step.own_ns) * model.window.inferences_a_pass
    branches = len({work.queue for work in works}) > 1
    both = hypot(
        errors.node_ns * len(works) / count,
        errors.host_ns * model.window.inferences_a_pass,
        errors.work * model.work_ns,
        _OWN * own,
        _BRANCHES * model.work_ns if branches else 0.0,
    )
    return both, hypot(
        both,
        _ELSEWHERE * few_blocks_share(model) * model.work_ns,
        _OTHER_KERNELS * model.work_ns if dynamic else 0.0,
    )


def has_dynamic_shapes(facts: EngineFacts | None) -> bool:
    """Whether a tensor of the engines has an extent that is only known when they run."""
    if facts is None:
        return False
    return any("-1" in (text or "").split("x") for text in facts.tensors.text("dimensions").values)


def few_blocks_share(model: Model) -> float:
    """The share of the kernels' time that long kernels of few blocks take."""
    kernels = [work for work in all_works(model.likely) if work.kind == "kernel"]
    rows = np.array([work.row for work in kernels], np.int64)
    length = np.array([work.dur_ns for work in kernels], np.int64)
    blocks = np.ones(len(rows), np.int64)
    for name in ("grid_x", "grid_y", "grid_z"):
        blocks *= model.observed.trace.kernels.held_ints(name).take(rows)
    few = (blocks > 0) & (blocks <= _FEW_BLOCKS) & (length >= _LONG_NS)
    return float(length[few].sum() / max(int(length.sum()), 1))
