"""The hardware's time for an inference, however many are in flight: the bound for changes that only
raise throughput.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING
from nsysmap.whatif.replay import Finished, lengths_ns
from nsysmap.whatif.timeline import Step, Timeline

# of the inferences of a phase: so many begin on the GPU before the one before them ends there
_MOSTLY = 0.5
_ENGINES = ("HtoD", "DtoH")
"""Kinds of copies that run one after another in each direction, whatever their streams."""


@dataclass
class Phase:
    """The counted inferences of one phase of the run; times are sums over all that they stand
    for.
    """

    inferences: float = 0.0
    in_flight: float = 0.0  # of those: begin on the GPU while the one before them still runs there
    took_ns: float = 0.0

    @property
    def overlaps(self) -> bool:
        """Whether most inferences begin while the previous one still runs."""
        return self.in_flight > _MOSTLY * self.inferences


def phases_of(timeline: Timeline, finished: Finished) -> dict[int, Phase]:
    """The phases of a timeline by number; ``finished`` says when its inferences end."""
    found: dict[int, Phase] = defaultdict(Phase)
    lengths = lengths_ns(timeline, finished)
    for thread, (steps, weights) in enumerate(zip(timeline.threads, timeline.weights, strict=True)):
        spans = _recorded_spans(steps)
        for inference, weight in weights.items():
            phase = found[_phase_of(timeline, thread, inference)]
            begin, end = lengths[thread].get(inference, (0, 0))
            phase.inferences += weight
            phase.took_ns += weight * (end - begin) / len(timeline.threads)
            before = spans.get(inference - 1)
            phase.in_flight += weight * (
                before is not None and inference in spans and spans[inference][0] < before[1]
            )
    return dict(found)


def least_ns(changed: Timeline, threads: int, phases: Mapping[int, Phase]) -> float:
    """The shortest mean time per inference that the hardware allows in the changed timeline, for a
    program with that many threads and these phases before the change.

    In each phase of the run (the next one begins when it has ended), kernels need their share of
    the GPU, and the copies of one direction come one after another.  A phase in which inferences
    already overlap takes as long as it does.
    """
    needed: dict[int, dict[str, float]] = defaultdict(
        lambda: dict.fromkeys(("kernel", *_ENGINES), 0.0)
    )
    for thread, steps in enumerate(changed.threads):
        _add_needs(needed, changed, thread, steps)
    again = threads / len(changed.threads)  # threads that were added do the same work again
    least = 0.0
    for number, phase in phases.items():
        whole = max(needed[number].values()) * again
        least += max(whole, phase.took_ns) if phase.overlaps else whole
    return least / max(sum(phase.inferences for phase in phases.values()), 1e-9)


def phases_in_flight(phases: Mapping[int, Phase]) -> float:
    """The share of the phases' time in which several inferences are already in flight."""
    whole = sum(one.took_ns for one in phases.values())
    return sum(one.took_ns for one in phases.values() if one.overlaps) / whole if whole else 0.0


def _recorded_spans(steps: tuple[Step, ...]) -> dict[int, tuple[int, int]]:
    """For each inference the begin of its first kernel, and the end of its last kernel or copy to
    the host, as recorded.
    """
    spans: dict[int, tuple[int, int]] = {}
    for step in steps:
        for work in step.works:
            if work.row != MISSING or work.kind == "DtoH":
                begin, end = spans.get(step.inference, (work.start_ns, work.end_ns))
                spans[step.inference] = min(begin, work.start_ns), max(end, work.end_ns)
    return spans


def _add_needs(
    needed_ns: dict[int, dict[str, float]], timeline: Timeline, thread: int, steps: tuple[Step, ...]
) -> None:
    weights = timeline.weights[thread]
    for step in steps:
        if not step.works or step.inference not in weights:
            continue
        weight = weights[step.inference]
        needed = needed_ns[_phase_of(timeline, thread, step.inference)]
        for work in step.works:
            kind = work.kind
            if kind == "kernel":
                needed[kind] += weight * min(work.need, 1.0) * work.dur_ns
            elif kind in needed:
                needed[kind] += weight * work.dur_ns


def _phase_of(timeline: Timeline, thread: int, inference: int) -> int:
    return timeline.phases[thread].get(inference, 0) if timeline.phases else 0
