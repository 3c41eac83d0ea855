"""Replays a timeline: host threads step through their calls, queues run their work, and each piece
waits for its dependencies.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import field

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING
from nsysmap.whatif.timeline import ALL_QUEUES, COPIES, Costs, Step, Timeline, Work

_LEAST_NEED = 0.001  # of the GPU, which keeps a division by nothing finite
_ONE_AT_A_TIME = ("HtoD", "DtoH")
"""Copies that the link to the host performs one after another in each direction, whatever their
streams.
"""


@dataclass
class _Gpu:
    """The state of the queues during a replay."""

    costs: Costs
    shared: bool  # kernels of several queues may together need more than the GPU
    queues_a_thread: int = 0  # see Timeline
    tail: dict[int, int] = field(default_factory=dict)  # end of each queue's last work
    tail_copy: dict[int, bool] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)  # end of each work, by number
    # per queue: starts, ends, needs
    busy: dict[int, tuple[list[int], list[int], list[float]]] = field(default_factory=dict)
    # per direction: starts, ends of copies, by time
    copying: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    # every piece of work with its start and end, if requested
    placed: list[tuple[Work, int, int]] | None = None

    def run(self, work: Work, ready: int) -> int:
        """When this work ends, if it could begin at ``ready`` in an empty queue."""
        costs, queue, start = self.costs, work.queue, ready
        tail = self.tail.get(queue)
        if tail is not None:
            if work.kind in COPIES:
                gap = costs.dispatch_ns if self.tail_copy[queue] else costs.to_copy_ns
            elif work.early and costs.early_ns != MISSING:
                gap = costs.early_ns
            else:
                gap = costs.from_copy_ns if self.tail_copy[queue] else costs.dispatch_ns
            start = max(start, tail + gap)
        if work.after:
            crossing_ns = costs.dispatch_ns + costs.crossing_ns
            for other in work.after:
                if other in self.done:
                    start = max(start, self.done[other] + crossing_ns)
        return self.place(work, start)

    def run_graph(self, step: Step, ready: int) -> int:
        """When the last node of this graph launch ends."""
        queue = step.queue
        begin = (
            max(ready, self.tail[queue] + self.costs.dispatch_ns) if queue in self.tail else ready
        )
        reached = MISSING
        done = self.done
        for work in step.works:
            start, lead_ns = begin, work.lead_ns
            if work.after:
                for other in work.after:
                    if (after := done[other] + lead_ns) > start:  # max() takes twice as long
                        start = after
            else:
                start += lead_ns
            if (end := self.place(work, start)) > reached:
                reached = end
        self.tail[queue] = max(reached, self.tail.get(queue, MISSING))
        self.tail_copy[queue] = False
        return reached

    def place(self, work: Work, start: int) -> int:
        queue, kind = work.queue, work.kind
        if kind == "kernel":
            end = self._end_beside_others(work, start) if self.shared else start + work.dur_ns
            self.tail_copy[queue] = False
        else:
            if kind in _ONE_AT_A_TIME:
                start = self._link_free(work, start)
            end = start + work.dur_ns
            self.tail_copy[queue] = kind in COPIES
        if end > self.tail.get(queue, MISSING):
            self.tail[queue] = end
        self.done[work.number] = end
        if self.placed is not None:
            self.placed.append((work, start, end))
        return end

    def _link_free(self, work: Work, start: int) -> int:
        """When this copy begins; copies in one direction do not overlap."""
        starts, ends = self.copying.setdefault(work.kind, ([], []))
        at = bisect_right(ends, start)
        while at < len(starts) and starts[at] < start + work.dur_ns:
            start = ends[at]
            at += 1
        starts.insert(at, start)
        ends.insert(at, start + work.dur_ns)
        return start

    def _end_beside_others(self, work: Work, start: int) -> int:
        """When a kernel ends that gets the part of the GPU which earlier ones leave, up to what it
        needs.
        """
        need, now, left = max(work.need, _LEAST_NEED), start, float(work.dur_ns)
        own = self.queues_a_thread or 1
        mine = work.queue // own
        others = [lists for queue, lists in self.busy.items() if queue // own != mine]
        while left > 0:
            taken, until = 0.0, MISSING
            for starts, ends, needs in others:
                at = bisect_right(starts, now)
                if at and ends[at - 1] > now:
                    taken += needs[at - 1]
                    change = ends[at - 1]
                elif at < len(starts):
                    change = starts[at]
                else:
                    continue
                if until == MISSING or change < until:
                    until = change
            rate = min(1.0, max(1.0 - taken, 0.0) / need)
            if until == MISSING or rate * (until - now) >= left:
                now += round(left / rate)
                break
            left -= rate * (until - now)
            now = until
        starts, ends, needs = self.busy.setdefault(work.queue, ([], [], []))
        starts.append(start)
        ends.append(now)
        needs.append(need)
        return now

    def drained(self, queue: int) -> int:
        """When this queue (or every queue) is empty; MISSING if nothing was ever queued."""
        if queue == ALL_QUEUES:
            return max(self.tail.values(), default=MISSING)
        return self.tail.get(queue, MISSING)


Finished = tuple[dict[int, int], ...]
"""Per thread: the end on the GPU of each inference's work, in nanoseconds from the begin of the
replay.
"""


def replay(timeline: Timeline, *, placed: list[tuple[Work, int, int]] | None = None) -> Finished:
    """When each inference is done on the GPU; every piece of GPU work is added to ``placed`` with
    its start and end.
    """
    gpu = _Gpu(timeline.costs, _may_share(timeline), timeline.queues_a_thread, placed=placed)
    finished: list[dict[int, int]] = [{} for _ in timeline.threads]
    waiting = [
        (steps[0].own_ns, number, 0) for number, steps in enumerate(timeline.threads) if steps
    ]
    locked = timeline.locked if len(waiting) > 1 else 0.0
    serial = timeline.serial if len(waiting) > 1 else 0.0
    # the time until which another thread holds the driver's lock, or the interpreter's
    lock = MISSING
    waited = [False] * len(timeline.threads)
    heapq.heapify(waiting)
    turn = heapq.heappop(waiting) if waiting else None
    while turn is not None:
        now, number, place = turn
        steps, ends = timeline.threads[number], finished[number]
        step = steps[place]
        submits, call_ns = step.kind in ("submit", "event"), step.call_ns
        if serial:
            own_ns = round(step.own_ns * serial)
            call_ns = round(call_ns * serial) if submits else call_ns
            now = max(now + own_ns - step.own_ns, lock + own_ns)
            lock = now + (call_ns if submits else 0)
        elif locked and submits:
            now = max(now, lock)
            lock = now + round(call_ns * locked)
        if step.works and step.kind == "submit":
            now += gpu.costs.restart_ns if waited[number] and not step.graph else 0
            waited[number] = False
        waited[number] |= step.kind == "sync"
        now, end = _take(step, call_ns, now, gpu)
        if step.enqueue and end > ends.get(step.inference, MISSING):
            ends[step.inference] = end
        if place + 1 < len(steps):
            turn = heapq.heappushpop(waiting, (now + steps[place + 1].own_ns, number, place + 1))
        else:
            turn = heapq.heappop(waiting) if waiting else None
    return tuple(finished)


def _may_share(timeline: Timeline) -> bool:
    """Whether kernels of several queues may together need more than the whole GPU."""
    most: dict[int, float] = {}
    for steps in timeline.threads:
        for step in steps:
            for work in step.works:
                if work.kind == "kernel" and work.need > most.get(work.queue, 0.0):
                    most[work.queue] = work.need
    return len(most) > 1 and sum(most.values()) > 1


def _take(step: Step, call_ns: int, now: int, gpu: _Gpu) -> tuple[int, int]:
    """When the call returns, given its duration, and when the GPU work that it queued ends (MISSING
    if none).
    """
    kind = step.kind
    if kind == "sync":
        target = (
            gpu.done.get(step.target, MISSING)
            if step.target != MISSING
            else gpu.drained(step.queue)
        )
        reached = target + gpu.costs.return_ns + step.lag_ns if target != MISSING else MISSING
        return max(now + call_ns, reached), MISSING
    if kind == "block":
        begin = max(now, gpu.drained(step.queue))
        end, delay = MISSING, 0
        for work in step.works:
            start = (begin + step.lag_ns if end == MISSING else end) + work.lead_ns
            end = gpu.place(work, start)
            delay += end - start - work.dur_ns
        return begin + call_ns + delay, end
    returned = now + call_ns
    if step.graph and step.works:
        early = gpu.costs.graph_start_ns
        return returned, gpu.run_graph(
            step, now + early if early != MISSING else returned + gpu.costs.graph_latency_ns
        )
    end = MISSING
    ready = returned + gpu.costs.latency_ns
    for work in step.works:
        ends = gpu.run(work, ready)
        end = max(end, ends)
    return returned, end


def period_ns(timeline: Timeline, finished: Finished) -> float:
    """Wall time per inference: for each thread the weighted mean time from one inference's end to
    the next, divided among the threads as far as they run inferences at the same time.

    NaN if no inference counts.
    """
    rate = 0.0
    present = timeline.present or (1.0,) * len(timeline.threads)
    for weights, lengths, share in zip(
        timeline.weights, lengths_ns(timeline, finished), present, strict=True
    ):
        total = sum(weights[one] for one in lengths)
        if total > 0:
            rate += (
                share
                * total
                / max(
                    sum((end - begin) * weights[one] for one, (begin, end) in lengths.items()), 1.0
                )
            )
    return 1.0 / rate if rate else float("nan")


def lengths_ns(timeline: Timeline, finished: Finished) -> list[dict[int, tuple[int, int]]]:
    """For each thread the counted inferences, each with the end of the previous one and its own."""
    found = []
    # later one thread has the GPU to itself
    together = min((max(ends.values()) for ends in finished if ends), default=0)
    for ends, weights in zip(finished, timeline.weights, strict=True):
        before = dict(zip(sorted(ends)[1:], sorted(ends), strict=False))
        counting = [one for one in weights if one in ends and one in before]
        counting = [one for one in counting if ends[one] <= together] or counting
        found.append({one: (ends[before[one]], ends[one]) for one in counting})
    return found


def recorded(timeline: Timeline) -> Finished:
    """What :func:`replay` would return if it reproduced the trace without error."""
    result = []
    for steps in timeline.threads:
        ends: dict[int, int] = {}
        for step in steps:
            if step.enqueue and step.works:
                ends[step.inference] = max(
                    [ends.get(step.inference, MISSING), *(work.end_ns for work in step.works)]
                )
        result.append(ends)
    return tuple(result)
