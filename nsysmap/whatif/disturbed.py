"""Finds host calls that something disturbed: they take far longer than the same calls of other
inferences in the same trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmap.core.table import FloatArray
from nsysmap.trace.inferences.steady import FEW, OUTLIER
from nsysmap.whatif.timeline import Step, Timeline

_FEW = 3  # inferences of the same calls: of fewer none is usual
_QUICK = 0.1  # quantile of the times of a call: what it takes where nothing holds the host up


def undisturbed(timeline: Timeline) -> tuple[Timeline, int]:
    """The timeline in which no inference's calls take far longer than the same calls of the others,
    and the number of inferences whose calls did.

    Inferences are alike whose host makes the same calls in the same order.  One whose calls and
    work inside the enqueue take 1.5 times the median of those alike was held up there (preempted,
    or the profiler wrote its buffers): each of its calls takes what it usually does.  So was one
    whose wait for the GPU returned late (see `Step.lag_ns`): it returns in time. The host's
    work outside the enqueues, blocking copies and the GPU's work stay as they are: a program may do
    more in some inferences.
    """
    found = 0
    threads = []
    for steps in timeline.threads:
        changed = [step._replace(lag_ns=0) if step.kind == "sync" else step for step in steps]
        held = {step.inference for step in steps if step.kind == "sync" and step.lag_ns}
        for same in _alike(steps):
            inside, call = _taken(steps, same)
            whole = (inside + call).sum(axis=1)
            slow = whole > OUTLIER * np.median(whole)
            if slow.any():
                held.update(
                    steps[places[0]].inference
                    for places, held_up in zip(same, slow.tolist(), strict=True)
                    if held_up
                )
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
        found += len(held)
        threads.append(tuple(changed))
    return (replace(timeline, threads=tuple(threads)), found) if found else (timeline, 0)


def brisk(timeline: Timeline) -> Timeline:
    """The timeline in which each call, and the host's work before it inside the enqueue, takes no
    longer than in the fastest tenth of similar inferences. It shows how fast this host can be; a
    host that is disturbed throughout the trace shows that only now and then.
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


def without_pauses(timeline: Timeline) -> Timeline:
    """The timeline without host pauses: outside the enqueues the host takes its usual time in the
    few inferences that take 1.5 times as long as similar ones because of it, the GPU's work
    counted.

    Where something held the host up in its calls, it may have done so there too.
    """
    threads = []
    for steps in timeline.threads:
        changed = list(steps)
        for same in _alike(steps):
            _without_pauses(changed, same)
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads))


def _without_pauses(steps: list[Step], same: list[list[int]]) -> None:
    """Removes the pauses from these similar inferences."""
    outside = np.array([[steps[place].outside_ns for place in places] for places in same])
    inside, call = _taken(steps, same)
    work = [sum(work.dur_ns for place in places for work in steps[place].works) for places in same]
    whole = (outside + inside + call).sum(axis=1) + np.array(work)
    paused = whole > OUTLIER * np.median(whole)
    if paused.mean() > FEW:
        return
    usual = np.median(outside[~paused], axis=0).tolist()
    for at in np.flatnonzero(paused).tolist():
        for place, most_ns in zip(same[at], usual, strict=True):
            step = steps[place]
            less = max(step.outside_ns - round(most_ns), 0)
            steps[place] = step._replace(
                own_ns=max(step.own_ns - less, 0),
                own_profiler_ns=min(step.own_profiler_ns, max(step.own_ns - less, 0)),
                outside_ns=step.outside_ns - less,
            )


def _alike(steps: Sequence[Step]) -> list[list[list[int]]]:
    """Groups of inferences that make the same calls, if there are enough of them: the positions of
    each one's steps.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    for place, step in enumerate(steps):
        groups[step.inference].append(place)
    alike: dict[tuple[tuple[str, int], ...], list[list[int]]] = defaultdict(list)
    for places in groups.values():
        alike[tuple((steps[place].api, len(steps[place].works)) for place in places)].append(places)
    return [same for same in alike.values() if len(same) >= _FEW]


def _taken(steps: Sequence[Step], same: list[list[int]]) -> tuple[FloatArray, FloatArray]:
    """The host's time before each call inside the enqueue, without the profiler's part, and the
    duration of calls that wait for nothing; one row per inference.
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
    """Limits the work inside the enqueue, and the calls, of these inferences to that time each."""
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
