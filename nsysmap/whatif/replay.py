"""Replays a timeline: host threads step through their calls, queues run their work, and what must wait waits."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from nsysmap.base.table import MISSING
from nsysmap.whatif.timeline import ALL_QUEUES, COPIES, Costs, Step, Timeline, Work


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
        costs, queue, copy = self.costs, work.queue, work.kind in COPIES
        start = ready
        if queue in self.tail:
            if copy:
                gap = costs.dispatch_ns if self.tail_copy[queue] else costs.to_copy_ns
            else:
                gap = costs.from_copy_ns if self.tail_copy[queue] else costs.dispatch_ns
            start = max(start, self.tail[queue] + gap)
        if work.after != MISSING and work.after in self.done:
            start = max(start, self.done[work.after] + costs.dispatch_ns)
        if self.exclusive and work.kind == "kernel" and self.busy_until != MISSING:
            start = max(start, self.busy_until)
        return self.place(work, start)

    def place(self, work: Work, start: int) -> int:
        queue, end = work.queue, start + work.dur_ns
        if end > self.tail.get(queue, MISSING):
            self.tail[queue] = end
        self.tail_copy[queue] = work.kind in COPIES
        self.done[work.number] = end
        if end > self.busy_until and work.kind == "kernel":
            self.busy_until = end
        return end

    def drained(self, queue: int) -> int:
        """When this queue (or all of them) has run dry; MISSING where nothing was ever queued."""
        if queue == ALL_QUEUES:
            return max(self.tail.values(), default=MISSING)
        return self.tail.get(queue, MISSING)


def replay(timeline: Timeline) -> tuple[dict[int, int], ...]:
    """Per thread: the end on the GPU of each of its inferences' enqueued work, in ns from the begin of the replay."""
    gpu, contention = _Gpu(timeline.costs, timeline.exclusive), timeline.contention
    finished: list[dict[int, int]] = [{} for _ in timeline.threads]
    waiting = [(0, number, 0) for number, steps in enumerate(timeline.threads) if steps]
    heapq.heapify(waiting)
    turn = heapq.heappop(waiting) if waiting else None
    while turn is not None:
        now, number, place = turn
        steps, ends = timeline.threads[number], finished[number]
        step = steps[place]
        now, end = _take(step, now + step.own_ns, gpu, contention)
        if step.enqueue and end > ends.get(step.inference, MISSING):
            ends[step.inference] = end
        if place + 1 < len(steps):
            turn = heapq.heappushpop(waiting, (now, number, place + 1))
        else:
            turn = heapq.heappop(waiting) if waiting else None
    return tuple(finished)


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
    returned = now + (step.call_ns if contention == 1 else round(step.call_ns * contention))
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
