"""Estimates how slow the host was while recorded, compared with an undisturbed host."""

from __future__ import annotations

from statistics import median

from nsysmap.core.records import dataclass
from nsysmap.trace.inferences.disturbance import SLOWED, SlowCalls
from nsysmap.whatif.timeline import Timeline, all_steps

_LAUNCH_NS = 4_000
"""What a launch call takes under nsys 2023.4 and 2025.3 on an undisturbed host: the medians of 40
captures on hosts with an H200 are 3.3 to 4.6 us, those of slowed hosts 4.9 to 8.6.
"""

_QUICKEST_NS = 3_300  # no host is taken to be quicker than those with which the rest was learnt

_GRAPH_NS, _NODE_NS = 3_000, 800
"""The same of the launch of a graph, and of each of its nodes: 0.8 to 1.1 times that in sixteen
captures, up to 3 times in those of slowed hosts.
"""

_BY_LAUNCHES, _BY_CALLS = 0.95, 0.8
"""Powers of both signs of a slow host: 48 captures of 22 engines of TensorRT for RTX that mostly
wait for the host took, without the profiler and without its part of the host's time, these powers'
share of the rest.  Fitted on all engines but one, that one is off by 14 % in the median, and by
less than 38 % in nine of ten; runs of one program differ by 13 %.
"""

_BY_CONTENDED = 0.7
"""The same powers where several threads of a program launch. Their calls wait for each other's,
with the profiler and without, so that long calls say less about a slow host, and the variation of
the quickest calls says nothing. Fitted to 29 captures of 23 engines with two threads of Python.
"""

_FEW = 5  # calls of which a median is taken


@dataclass(frozen=True)
class HostPace:
    """How much slower than usual the host was while recorded."""

    # times that launches (of graphs: with their nodes) took as long as they usually do under nsys;
    # less than 1 on a quicker host
    launches: float
    quickest: float  # times that the quickest calls mostly took as long as the fastest of them
    own_calls: bool  # the trace shows the profiler's own calls, which tell what the profiler costs
    contended: bool = False  # several threads launch, and wait for each other in their calls

    @property
    def slowness(self) -> float:
        """How many times longer the host's work took than on an undisturbed host; at least 1."""
        return max(self.launches, 1.0)

    @property
    def without(self) -> float:
        """The time of the host's work without the slowdown, as a share of the recorded time."""
        if self.own_calls:
            return 1 / self.quickest if self.quickest >= SLOWED else 1.0
        if self.contended:
            return float(self.launches**-_BY_CONTENDED)
        return float(self.launches**-_BY_LAUNCHES * self.quickest**-_BY_CALLS)


def host_pace(timeline: Timeline, slowed: SlowCalls | None, *, own_calls: bool) -> HostPace:
    """The host's pace in a recorded timeline, judged by the thread's quickest calls."""
    launches = [
        step
        for step in all_steps(timeline)
        if step.kind == "submit" and any(work.kind == "kernel" for work in step.works)
    ]
    alone = [max(step.call_ns, _QUICKEST_NS) / _LAUNCH_NS for step in launches if not step.graph]
    graphs = [
        step.call_ns / (_GRAPH_NS + _NODE_NS * len(step.works)) for step in launches if step.graph
    ]
    ratios = alone if len(alone) >= len(graphs) else graphs
    contended = sum(bool(steps) for steps in timeline.threads) > 1
    return HostPace(
        median(ratios) if len(ratios) >= _FEW else 1.0,
        max(slowed.slowdown, 1.0) if slowed is not None else 1.0,
        own_calls,
        contended,
    )
