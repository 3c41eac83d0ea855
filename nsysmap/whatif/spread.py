"""How far a predicted time may be off, as a range that holds in nine of ten engines it was not made
with.

A range has a scale, which comes from the trace, and a factor, which comes from the errors of all
engines that were measured.  The scale of CUDA graphs is the root of the sum of the squares of what
their kernels, the gaps between them, their branches and the host may take more or less; that of
other programs is how much sooner and later they end on the quick and the slow host.  The factor is
conformal: the least with which the range holds for 90 % of the engines, each counted once and the
next one too (``benchmarks/whatif.py --leave-one-out`` prints it, and how
often the range holds for engines that it leaves out).
"""

from __future__ import annotations

from math import hypot

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model
from nsysmap.whatif.timeline import Timeline, all_steps, all_works, host_time, inference_count

_NODE_NS = 200
"""A node with the gap before it: gaps of 0.1, 0.26 and 0.42 us occur in captures of one graph."""

_HOST_NS = 2_500  # launching, waiting, and what the host does between them
_WORK = 0.04
"""Part of the GPU's work: the same plan takes another time in each process that runs it without
the profiler; of 28 engines run by Python and by C++ as a graph, five differed by 5 to 17 %, the
others by 2.4 % (root of the mean of the squares).  TensorRT for RTX compiles its kernels in the
process.
"""
_BRANCHES = 0.03  # part of the work of a graph with branches, whose overlap differs from run to run
_OWN = 0.35  # part of the host's own work around the graphs

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

_AT_ONCE = 0.06
"""Part of the GPU's work by which kernels that run beside those of another thread's graph take more
or less without the profiler: five captures of three engines, 0.7 to 6.4 %.
"""


@dataclass(frozen=True)
class Factors:
    """What the scale of each kind of prediction is multiplied by (see above)."""

    recorded_graph: float  # a graph that the trace holds
    made_graph: float  # a graph made of single launches
    launches: float  # a program that launches one by one, as it is
    threads: float  # the same of several threads


FACTORS = Factors(recorded_graph=0.97, made_graph=1.27, launches=1.0, threads=1.0)


def only_graphs(timeline: Timeline) -> bool:
    """Whether one thread launches all GPU work, as CUDA graphs."""
    return all_graphs(timeline) and len(timeline.threads) == 1


def all_graphs(timeline: Timeline | None) -> bool:
    """Whether all GPU work is launched as CUDA graphs, by however many threads."""
    launches = [step for step in all_steps(timeline) if step.works] if timeline else []
    return bool(launches) and all(step.graph for step in launches)


def graph_spread(
    model: Model, timeline: Timeline, factor: float, *, dynamic: bool = False
) -> tuple[float, float]:
    """By how many nanoseconds per inference or pass a program of graph launches may be quicker,
    and slower, than the replay of this timeline says.
    """
    count = max(inference_count(timeline), 1) / model.window.inferences_a_pass
    works = list(all_works(timeline))
    own = host_time(timeline, lambda step: step.own_ns) * model.window.inferences_a_pass
    branches = len({work.queue for work in works}) > 1
    both = hypot(
        _NODE_NS * len(works) / count,
        _HOST_NS * model.window.inferences_a_pass,
        _WORK * model.work_ns,
        _OWN * own,
        _BRANCHES * model.work_ns if branches else 0.0,
    )
    above = hypot(
        both,
        placed_elsewhere_ns(model),
        _OTHER_KERNELS * model.work_ns if dynamic else 0.0,
    )
    return factor * both, factor * above


def placed_elsewhere_ns(model: Model) -> float:
    """By how much longer the GPU's work may take where its kernels of few blocks run on others of
    its SMs.
    """
    return _ELSEWHERE * few_blocks_share(model) * model.work_ns


def at_once_ns(model: Model) -> float:
    """By how much more or less kernels of several threads' graphs may take beside each other."""
    several = sum(bool(steps) for steps in model.likely.threads) > 1
    return _AT_ONCE * model.work_ns if several and all_graphs(model.likely) else 0.0


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
