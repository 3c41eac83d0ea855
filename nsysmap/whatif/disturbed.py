"""Host calls that something disturbed: they take far longer than the same calls of other inferences
in the same trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmap.core.table import FloatArray
from nsysmap.trace.inferences.steady import OUTLIER
from nsysmap.whatif.timeline import Step, Timeline

_FEW = 3  # inferences of the same calls: of fewer none is usual
_QUICK = 0.1  # quantile of the times of a call: what it takes where nothing holds the host up


def undisturbed(timeline: Timeline) -> tuple[Timeline, int]:
    """The timeline in which no inference's calls take far longer than the same calls of the others,
    and in how many inferences they did.

    Inferences are alike whose host makes the same calls in the same order.  One whose calls and
    work inside the enqueue take 1.5 times the median of those alike was held up there (preempted,
    or the profiler wrote its buffers): each of its calls takes what it usually does. The host's
    work outside the enqueues, blocking copies and the GPU's work stay as they are: a program may do
    more in some inferences.
    """
    found = 0
    threads = []
    for steps in timeline.threads:
        changed = list(steps)
        for same in _alike(steps):
            inside, call = _taken(steps, same)
            whole = (inside + call).sum(axis=1)
            slow = whole > OUTLIER * np.median(whole)
            if slow.any():
                found += int(slow.sum())
                usual = (
                    np.median(inside[~slow], axis=0).tolist(),
                    np.median(call[~slow], axis=0).tolist(),
                )
                _shorten(
                    changed,
                    [
                        places
                        for places, held_up in zip(same, slow.tolist(), strict=True)
                        if held_up
                    ],
                    usual,
                )
        threads.append(tuple(changed))
    return (replace(timeline, threads=tuple(threads)), found) if found else (timeline, 0)


def brisk(timeline: Timeline) -> Timeline:
    """The timeline in which each call, and the host's work before it inside the enqueue, takes no
    longer than in the quickest tenth of the inferences alike: how fast this host can be, which a
    host that is disturbed throughout the trace shows only now and then.
    """
    threads = []
    for steps in timeline.threads:
        changed = list(steps)
        for same in _alike(steps):
            inside, call = _taken(steps, same)
            _shorten(
                changed,
                same,
                (
                    np.quantile(inside, _QUICK, axis=0).tolist(),
                    np.quantile(call, _QUICK, axis=0).tolist(),
                ),
            )
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads))


def _alike(steps: Sequence[Step]) -> list[list[list[int]]]:
    """The inferences that make the same calls, as far as there are enough of them: of each the
    places of its steps.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    for place, step in enumerate(steps):
        groups[step.inference].append(place)
    alike: dict[tuple[tuple[str, int], ...], list[list[int]]] = defaultdict(list)
    for places in groups.values():
        alike[tuple((steps[place].api, len(steps[place].works)) for place in places)].append(places)
    return [same for same in alike.values() if len(same) >= _FEW]


def _taken(steps: Sequence[Step], same: list[list[int]]) -> tuple[FloatArray, FloatArray]:
    """What the host's work inside the enqueue takes before each call, without the profiler's part,
    and what the calls take that wait for nothing; one row an inference.
    """
    inside = [[_inside_ns(steps[place]) for place in places] for places in same]
    call = [[_call_ns(steps[place]) for place in places] for places in same]
    return np.array(inside, np.float64), np.array(call, np.float64)


def _inside_ns(step: Step) -> int:
    return max(step.own_ns - step.outside_ns - step.own_profiler_ns, 0) if step.enqueue else 0


def _call_ns(step: Step) -> int:
    return step.call_ns if step.kind in ("submit", "event") else 0


def _shorten(
    steps: list[Step], same: list[list[int]], most_ns: tuple[list[float], list[float]]
) -> None:
    """Gives these inferences' work inside the enqueue, and their calls, no more than so much time
    each.
    """
    for places in same:
        for place, inside_ns, call_ns in zip(places, *most_ns, strict=True):
            step = steps[place]
            less = max(_inside_ns(step) - round(inside_ns), 0)
            call = min(step.call_ns, round(call_ns)) if _call_ns(step) else step.call_ns
            if less or call < step.call_ns:
                steps[place] = step._replace(
                    own_ns=step.own_ns - less,
                    call_ns=call,
                    call_profiler_ns=min(step.call_profiler_ns, call),
                )
