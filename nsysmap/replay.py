"""Replays a timeline: host threads step through their calls, queues run their work, and what must wait waits."""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from nsysmap.tables import MISSING
from nsysmap.timeline_model import ALL_QUEUES, COPIES, Costs, Step, Timeline, Work


@dataclass
class _Gpu:
    """The state of the queues during a replay."""

    costs: Costs
    exclusive: bool
    tail: dict[int, int] = field(default_factory=dict)  # end of each queue's last work
    tail_copy: dict[int, bool] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)  # end of each work, by number
    busy_until: int = MISSING  # of the kernels of all queues

    def run(self, work: Work, ready: int) -> int:
        """The end of this work, which could begin at ``ready`` were its queue empty."""
        start = ready
        if work.queue in self.tail:
            start = max(start, self.tail[work.queue] + self._gap(work))
        if work.after != MISSING and work.after in self.done:
            start = max(start, self.done[work.after] + self.costs.dispatch_ns)
        if self.exclusive and work.kind == "kernel" and self.busy_until != MISSING:
            start = max(start, self.busy_until)
        return self.place(work, start)

    def place(self, work: Work, start: int) -> int:
        end = start + work.dur_ns
        self.tail[work.queue] = max(end, self.tail.get(work.queue, end))
        self.tail_copy[work.queue] = work.kind in COPIES
        self.done[work.number] = end
        if work.kind == "kernel":
            self.busy_until = max(self.busy_until, end)
        return end

    def _gap(self, work: Work) -> int:
        if work.kind in COPIES:
            return self.costs.dispatch_ns if self.tail_copy[work.queue] else self.costs.to_copy_ns
        return self.costs.from_copy_ns if self.tail_copy[work.queue] else self.costs.dispatch_ns

    def drained(self, queue: int) -> int:
        """When this queue (or all of them) has run dry; MISSING where nothing was ever queued."""
        if queue == ALL_QUEUES:
            return max(self.tail.values(), default=MISSING)
        return self.tail.get(queue, MISSING)


def replay(timeline: Timeline) -> tuple[dict[int, int], ...]:
    """Per thread: the end on the GPU of each of its inferences' enqueued work, in ns from the begin of the replay."""
    gpu = _Gpu(timeline.costs, timeline.exclusive)
    finished: list[dict[int, int]] = [defaultdict(lambda: MISSING) for _ in timeline.threads]
    waiting = [(0, number, 0) for number, steps in enumerate(timeline.threads) if steps]
    heapq.heapify(waiting)
    while waiting:
        now, number, place = heapq.heappop(waiting)
        step = timeline.threads[number][place]
        now, end = _take(step, now + step.own_ns, gpu, timeline.contention)
        if step.enqueue and end != MISSING:
            finished[number][step.inference] = max(finished[number][step.inference], end)
        if place + 1 < len(timeline.threads[number]):
            heapq.heappush(waiting, (now, number, place + 1))
    return tuple(dict(ends) for ends in finished)


def _take(step: Step, now: int, gpu: _Gpu, contention: float) -> tuple[int, int]:
    """When the call returns, and the end of the GPU work that it queued (MISSING for none)."""
    if step.kind == "sync":
        target = gpu.done.get(step.target, MISSING) if step.target != MISSING else gpu.drained(step.queue)
        return max(now + step.call_ns, target + gpu.costs.return_ns if target != MISSING else MISSING), MISSING
    if step.kind == "block":
        begin = max(now, gpu.drained(step.queue))
        end = MISSING
        start = begin + step.lag_ns
        for work in step.works:
            end = gpu.place(work, start + work.lead_ns if end == MISSING else end + work.lead_ns)
            start = end
        return begin + step.call_ns, end
    returned = now + round(step.call_ns * contention)
    end = MISSING
    ready = returned + (gpu.costs.graph_latency_ns if step.graph else gpu.costs.latency_ns)
    for work in step.works:
        end = gpu.run(work, ready) if end == MISSING else max(end, gpu.place(work, end + work.lead_ns))
    return returned, end


def period_ns(finished: tuple[dict[int, int], ...]) -> float:
    """Wall time per inference: per thread the median time from one inference's end to the next's, shared among the threads.

    NaN where no thread has two inferences.
    """
    rate = 0.0
    for ends in finished:
        order = [ends[inference] for inference in sorted(ends)]
        if len(order) >= 2:
            rate += 1.0 / max(float(np.median(np.diff(order))), 1.0)
    return 1.0 / rate if rate else float("nan")


def recorded(timeline: Timeline) -> tuple[dict[int, int], ...]:
    """What :func:`replay` would return had it reproduced the trace without error."""
    result = []
    for steps in timeline.threads:
        ends: dict[int, int] = {}
        for step in steps:
            if step.enqueue and step.works:
                ends[step.inference] = max([ends.get(step.inference, MISSING), *(work.end_ns for work in step.works)])
        result.append(ends)
    return tuple(result)
