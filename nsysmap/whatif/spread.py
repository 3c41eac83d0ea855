"""Estimates how far a predicted time may be off, as a range that holds for nine of ten engines not
used to make it.

A range has a scale, which comes from the trace, and a factor, which comes from the errors of all
engines that were measured.  The scale of CUDA graphs is the root of the sum of the squares of what
their kernels, the gaps between them, their branches and the host may take more or less; that of
other programs is how much sooner and later they end on the quick and the slow host.  The factor is
conformal: the least with which the range holds for nine of ten predictions of every session in
which engines were built and measured (one machine, one evening, 10 to 20 engines): engines of one
session are more alike than those of two (``benchmarks/whatif.py`` prints it, and how often a
session's times are in the range whose factor all others give).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot

from nsysmap.core.records import dataclass
from nsysmap.whatif.calibration import WITH_ATTRIBUTES_NS
from nsysmap.whatif.disturbed import without_pauses
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model
from nsysmap.whatif.timeline import Timeline, all_steps, all_works, host_time, inference_count

_HOST_NS = 2_500  # launching, waiting, and what the host does between them
_OWN = 0.35  # part of the host's own work around the graphs

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
class GraphScale:
    """How far a CUDA graph itself may be off."""

    node_ns: int  # a node with the gap before it
    work: float  # part of the GPU's work
    branches: float  # the same of a graph with branches, whose overlap differs from run to run


RECORDED = GraphScale(node_ns=500, work=0.05, branches=0.05)
"""For a graph that is in the trace."""

MADE = GraphScale(node_ns=500, work=0.04, branches=0.03)
"""Of a graph made of single launches of TensorRT's.  Without the profiler the nodes of such graphs
are 0.3 us closer than is usual, as usual, or 0.3 to 0.5 us further apart, all nodes of a graph
alike: one plan took 879 and 758 us in two processes (188 nodes), another 134 and 152 in two graphs
of one process (76 nodes), and each of them the same from run to run to 1 %.  No trace shows which.
"""

PLAIN = GraphScale(node_ns=360, work=0.07, branches=0.05)
"""For graphs of kernels that no call launches with attributes, which do not vary like that."""


@dataclass(frozen=True)
class Sides:
    """One factor for each side of a range: where the likely time is missed, it is missed by more
    towards shorter times than towards longer ones.
    """

    below: float
    above: float


@dataclass(frozen=True)
class Factors:
    """The factors that the scale of each kind of prediction is multiplied by (see above)."""

    recorded_graph: Sides  # a graph that the trace holds
    made_graph: Sides  # a graph made of single launches
    launches: float  # a program that launches one by one, as it is
    threads: float  # the same of several threads
    # the replays of a quick and a slow host, and others that bound a change, by its name
    changes: Mapping[str, float]


FACTORS = Factors(
    recorded_graph=Sides(below=0.6, above=0.5),
    made_graph=Sides(below=0.7, above=0.55),
    launches=1.0,
    threads=1.0,
    changes={"async": 1.3},
)


def only_graphs(timeline: Timeline) -> bool:
    """Whether one thread launches all GPU work, as CUDA graphs."""
    return all_graphs(timeline) and len(timeline.threads) == 1


def all_graphs(timeline: Timeline | None) -> bool:
    """Whether all GPU work is launched as CUDA graphs, by any number of threads."""
    launches = [step for step in all_steps(timeline) if step.works] if timeline else []
    return bool(launches) and all(step.graph for step in launches)


def recorded_spread(model: Model) -> tuple[float, float]:
    """By how many nanoseconds per inference or pass a program with recorded graphs may be faster,
    and slower, than its replay.
    """
    below, above = graph_spread(model, model.likely, RECORDED, FACTORS.recorded_graph)
    return below + pauses_ns(model), above


def made_spread(model: Model, timeline: Timeline) -> tuple[float, float]:
    """The same for a timeline whose graphs were made by a change."""
    scale = MADE if timeline.costs.made_node_ns == WITH_ATTRIBUTES_NS else PLAIN
    dynamic = has_dynamic_shapes(model.facts)
    return graph_spread(model, timeline, scale, FACTORS.made_graph, dynamic=dynamic)


def graph_spread(
    model: Model, timeline: Timeline, scale: GraphScale, factor: Sides, *, dynamic: bool = False
) -> tuple[float, float]:
    """By how many nanoseconds per inference or pass a program of graph launches may be faster, and
    slower, than the replay of this timeline.
    """
    count = max(inference_count(timeline), 1) / model.window.inferences_a_pass
    works = list(all_works(timeline))
    own = host_time(timeline, lambda step: step.own_ns) * model.window.inferences_a_pass
    branches = len({work.queue for work in works}) > 1
    both = hypot(
        scale.node_ns * len(works) / count,
        _HOST_NS * model.window.inferences_a_pass,
        scale.work * model.work_ns,
        _OWN * own,
        scale.branches * model.work_ns if branches else 0.0,
    )
    above = hypot(
        factor.above * both,
        placed_elsewhere_ns(model),
        _OTHER_KERNELS * model.work_ns if dynamic else 0.0,
    )
    return factor.below * both, above


def pauses_ns(model: Model) -> float:
    """How much less time an inference or pass takes if the host's few pauses between inferences
    were disturbances of the capture, as its held-up calls are.
    """
    if not model.held_up:
        return 0.0
    calm = model.period(without_pauses(model.likely))
    return max(float(model.before[model.machines[0]] - calm), 0.0)


def placed_elsewhere_ns(model: Model) -> float:
    """How many nanoseconds longer the GPU's work may take if kernels of few blocks run on other
    SMs.
    """
    return _ELSEWHERE * model.few_blocks_share * model.work_ns


def at_once_ns(model: Model) -> float:
    """How many nanoseconds longer or shorter kernels of several threads' graphs may take when they
    overlap.
    """
    several = sum(bool(steps) for steps in model.likely.threads) > 1
    return _AT_ONCE * model.work_ns if several and all_graphs(model.likely) else 0.0


def has_dynamic_shapes(facts: EngineFacts | None) -> bool:
    """Whether a tensor of the engines has a dimension that is only known at run time."""
    if facts is None:
        return False
    return any("-1" in (text or "").split("x") for text in facts.tensors.text("dimensions").values)
