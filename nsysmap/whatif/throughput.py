"""What the hardware needs for an inference, however many are in flight: the bound of changes that
only raise throughput.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from nsysmap.core.table import MISSING
from nsysmap.whatif.replay import Finished, lengths_ns
from nsysmap.whatif.timeline import Step, Timeline

# of the inferences of a phase: so many begin on the GPU before the one before them ends there
_MOSTLY = 0.5
_ENGINES = ("HtoD", "DtoH")
"""Copies of these kinds come one after another in each direction, whatever their streams."""


@dataclass
class _Phase:
    """The counted inferences of one phase of the run; times are sums over all that they stand
    for.
    """

    inferences: float = 0.0
    in_flight: float = 0.0  # of those: begin on the GPU while the one before them still runs there
    needed_ns: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("kernel", *_ENGINES), 0.0)
    )
    took_ns: float = 0.0


def least_ns(changed: Timeline, now: Timeline, finished: Finished) -> float:
    """The shortest mean time per inference that the hardware allows in the changed timeline;
    ``now`` is the program without the change, in which its inferences end when they are
    ``finished``.

    In each phase of the run (the next one begins when it has ended), kernels need their share of
    the GPU, and the copies of one direction come one after another.  A phase in which inferences
    already overlap takes as long as it does.
    """
    phases = _phases(now, finished)
    for thread, steps in enumerate(changed.threads):
        _add_needs(phases, changed, thread, steps)
    for one in phases.values():  # threads that were added do the same work again
        for kind in one.needed_ns:
            one.needed_ns[kind] *= len(now.threads) / len(changed.threads)
    total = sum(one.inferences for one in phases.values())
    return sum(_least_of_phase(one) for one in phases.values()) / max(total, 1e-9)


def phases_in_flight(timeline: Timeline, finished: Finished) -> float:
    """The share of the time of phases in which several inferences are in flight already."""
    phases = _phases(timeline, finished).values()
    whole = sum(one.took_ns for one in phases)
    return sum(one.took_ns for one in phases if _overlaps(one)) / whole if whole else 0.0


def _overlaps(phase: _Phase) -> bool:
    return phase.in_flight > _MOSTLY * phase.inferences


def _least_of_phase(phase: _Phase) -> float:
    needed = max(phase.needed_ns.values())
    return max(needed, phase.took_ns) if _overlaps(phase) else needed


def _phases(timeline: Timeline, finished: Finished) -> dict[int, _Phase]:
    """The phases of a timeline by number, without what they need of the hardware."""
    found: dict[int, _Phase] = defaultdict(_Phase)
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
    return found


def _recorded_spans(steps: tuple[Step, ...]) -> dict[int, tuple[int, int]]:
    """Of each inference the begin of its first kernel, and the end of its last kernel or copy to
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
    phases: dict[int, _Phase], timeline: Timeline, thread: int, steps: tuple[Step, ...]
) -> None:
    weights = timeline.weights[thread]
    for step in steps:
        if step.inference not in weights:
            continue
        needed = phases[_phase_of(timeline, thread, step.inference)].needed_ns
        for work in step.works:
            if work.kind in needed:
                share = min(work.need, 1.0) if work.kind == "kernel" else 1.0
                needed[work.kind] += weights[step.inference] * share * work.dur_ns


def _phase_of(timeline: Timeline, thread: int, inference: int) -> int:
    return timeline.phases[thread].get(inference, 0) if timeline.phases else 0
