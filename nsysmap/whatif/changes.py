"""What a change does to a timeline: each function returns the timeline as it would be, or says why the change does not apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsysmap.base.table import MISSING
from nsysmap.whatif.calibration import KERNEL_EXCESS_NS, NODE_EXCESS_NS, NODE_GAP_NS, Machine, without_profiler
from nsysmap.whatif.timeline import ALL_QUEUES, COPIES, ProfilerCosts, Step, Timeline, Work

EMPTY_KERNEL_NS = 140  # what CUPTI reports for a kernel that does nothing (640 on an H200), less its own excess


@dataclass(frozen=True)
class DoesNotApply:
    """Why a change cannot be made to this program."""

    reason: str


Changed = Timeline | DoesNotApply


def unprofiled(timeline: Timeline, profiler: ProfilerCosts, machine: Machine) -> Timeline:
    """The timeline as it would run without the profiler."""
    nodes = [work for work in _works(timeline) if work.lead_ns]
    usual_lead = int(np.median([work.lead_ns for work in nodes])) if nodes else 0
    costs = without_profiler(timeline.costs, profiler, machine)

    def step(old: Step) -> Step:
        own = old.own_ns - old.own_profiler_ns
        outside = round(own * old.outside_ns / old.own_ns) if old.own_ns else 0
        call = old.call_ns
        if old.graph:
            call = costs.graph_launch_ns
        elif old.kind == "submit":
            call = round(max(call - old.call_profiler_ns, call // 2) * machine.launch)
        elif old.kind == "block":
            call = round(max(call - old.call_profiler_ns, call // 2) * machine.staging)
        else:
            call = min(call, costs.idle_sync_ns)
        inside = round((own - outside) * machine.launch)
        outside = round(outside * machine.own)
        works = tuple(_unprofiled_work(work, usual_lead, graph=old.graph) for work in old.works)
        return old._replace(own_ns=inside + outside, own_profiler_ns=0, outside_ns=outside, call_ns=call, call_profiler_ns=0, works=works)

    return replace(_each_step(timeline, step), costs=costs)


def _unprofiled_work(work: Work, usual_lead: int, *, graph: bool) -> Work:
    lead = work.lead_ns
    if graph and lead > 0:
        lead = max(lead - usual_lead, 0) + NODE_GAP_NS
    if work.kind != "kernel":
        return work._replace(lead_ns=lead)
    excess = NODE_EXCESS_NS if graph else KERNEL_EXCESS_NS
    return work._replace(lead_ns=lead, dur_ns=max(work.dur_ns - excess, work.dur_ns // 4))


def as_cuda_graph(timeline: Timeline) -> Changed:
    """Every inference's enqueue captured once and replayed by one graph launch."""
    if all(step.graph for steps in timeline.threads for step in steps if step.enqueue and step.works):
        return DoesNotApply("the inferences are replayed from a CUDA graph already")
    threads = []
    for steps in timeline.threads:
        changed: list[Step] = []
        pending: list[Step] = []
        last = {step.inference: place for place, step in enumerate(steps) if step.enqueue and step.works}
        for place, step in enumerate((*steps, None)):
            captured = step is not None and step.enqueue and place <= last.get(step.inference, -1)
            if pending and (step is None or not captured or step.inference != pending[0].inference):
                changed.append(_graph_step(pending, timeline))
                pending = []
            if step is None:
                break
            if not captured:  # also the wait at the end of ExecutionContext::execute, which would follow the graph launch
                changed.append(step._replace(own_ns=step.outside_ns))
                continue
            if step.kind == "sync":
                return DoesNotApply(f"{step.api} is called inside the enqueue: a stream cannot be captured across it")
            if step.kind == "block":
                return DoesNotApply(f"{step.api} inside the enqueue copies pageable memory or blocks: it cannot be captured")
            pending.append(step)
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads))


def _graph_step(steps: Sequence[Step], timeline: Timeline) -> Step:
    """One launch for all work of these steps: nodes of a queue follow each other, those of other queues begin as they were recorded to."""
    works: list[Work] = []
    reached = MISSING
    for work in sorted((work for step in steps for work in step.works), key=lambda work: work.start_ns):
        lead = 0
        if reached != MISSING:
            lead = NODE_GAP_NS if work.start_ns >= reached else work.start_ns - reached
        reached = max(reached, work.end_ns)
        works.append(work._replace(lead_ns=lead))
    return steps[0]._replace(
        api="cudaGraphLaunch",
        own_ns=sum(step.outside_ns for step in steps),
        outside_ns=sum(step.outside_ns for step in steps),
        call_ns=timeline.costs.graph_launch_ns,
        graph=True,
        works=tuple(works),
    )


def with_pinned_copies(timeline: Timeline) -> Changed:
    """Every blocking or pageable copy made asynchronous, in the stream of the inference; what only waited for a copy goes."""
    if not any(step.kind == "block" for step in _steps(timeline)):
        if any(work.kind in ("HtoD", "DtoH") for work in _works(timeline)):
            return DoesNotApply("all copies are asynchronous and of pinned memory already")
        return DoesNotApply("the inferences copy nothing between host and device")
    threads = []
    for steps in timeline.threads:
        main = _main_queue(steps)
        changed: list[Step] = []
        results_pending = False
        for place, step in enumerate(steps):
            following = steps[place + 1] if place + 1 < len(steps) else None
            if step.kind == "sync" and following is not None and _direction(following) == "DtoH" and following.kind == "block":
                continue  # the stream orders the copy after the kernels
            if results_pending and (step.kind == "sync" or step.enqueue or _direction(step) == "HtoD"):
                if step.kind != "sync":
                    changed.append(_sync_step(step, timeline, main))
                results_pending = False
            if step.kind == "block":
                results_pending |= _direction(step) == "DtoH"
                works = tuple(work._replace(queue=main, lead_ns=0) for work in step.works)
                step = step._replace(kind="submit", call_ns=timeline.costs.submit_ns, lag_ns=0, queue=main, works=works)  # noqa: PLW2901
            elif step.kind == "submit" and all(work.kind == "memset" for work in step.works):
                step = step._replace(works=tuple(work._replace(queue=main) for work in step.works))  # noqa: PLW2901
            changed.append(step)
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads))


def _sync_step(before: Step, timeline: Timeline, queue: int) -> Step:
    """The wait for results that a blocking copy did by itself."""
    return before._replace(
        kind="sync", api="cudaStreamSynchronize", enqueue=False, inference=max(before.inference - int(before.enqueue), 0), own_ns=0,
        outside_ns=0, call_ns=timeline.costs.idle_sync_ns, lag_ns=0, queue=queue, target=MISSING, graph=False, works=(),
    )  # fmt: skip


def _direction(step: Step) -> str:
    return step.works[0].kind if step.works and step.works[0].kind in COPIES else ""


def _main_queue(steps: Iterable[Step]) -> int:
    queues = [work.queue for step in steps if step.enqueue for work in step.works]
    return max(set(queues), key=queues.count) if queues else 0


def without_host_gap(timeline: Timeline) -> Changed:
    """No work of the host outside the enqueues: only its calls are left."""
    return _each_step(timeline, lambda step: step._replace(own_ns=step.own_ns - step.outside_ns, outside_ns=0) if step.outside_ns else step)


def two_in_flight(timeline: Timeline, *, contention: float, overlap: bool) -> Changed:
    """A second host thread that does the same with a stream of its own; launch calls take ``contention`` times as long."""
    if len({_main_queue(steps) for steps in timeline.threads}) > 1:
        return DoesNotApply(f"{len(timeline.threads)} threads keep {len(timeline.threads)} inferences in flight already")
    queues = 1 + max((work.queue for work in _works(timeline)), default=0)
    numbers = 1 + max((work.number for work in _works(timeline)), default=0)

    def other(step: Step) -> Step:
        works = tuple(
            work._replace(
                queue=work.queue + queues,
                number=work.number + numbers,
                after=work.after + numbers if work.after != MISSING else MISSING,
            )
            for work in step.works
        )
        queue = step.queue + queues if step.queue != ALL_QUEUES else ALL_QUEUES
        target = step.target + numbers if step.target != MISSING else MISSING
        return step._replace(works=works, queue=queue, target=target)

    own_queue = {number: _main_queue(steps) for number, steps in enumerate(timeline.threads)}
    threads = []
    for number, steps in enumerate(timeline.threads):
        # a sync of the whole device would wait for the other thread's work too: each waits for its own stream
        mine = [step._replace(queue=own_queue[number]) if step.kind == "sync" and step.queue == ALL_QUEUES else step for step in steps]
        threads += [tuple(mine), tuple(other(step) for step in mine)]
    return replace(timeline, threads=tuple(threads), exclusive=not overlap, contention=contention)


def one_stream_in_flight(timeline: Timeline) -> Changed:
    """The next inference enqueued before the last one is waited for, by the same thread in the same stream: no sync holds the host."""
    threads = tuple(tuple(step for step in steps if step.kind != "sync") for steps in timeline.threads)
    return replace(timeline, threads=threads)


def without_kernels(timeline: Timeline, rows: frozenset[int]) -> Changed:
    """The same without these kernels (kernel_id) and without the calls that launched nothing else."""

    def kept(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        result = []
        for step in steps:
            works = tuple(work for work in step.works if work.row not in rows)
            if works or len(works) == len(step.works):
                result.append(step._replace(works=works) if len(works) < len(step.works) else step)
        return tuple(result)

    return replace(timeline, threads=tuple(kept(steps) for steps in timeline.threads))


def with_joined_kernels(timeline: Timeline, runs: Sequence[tuple[int, ...]], joined_ns: Callable[[list[int]], int]) -> Changed:
    """Each run of kernels (kernel_ids in order) as one kernel at the place of its first, that takes ``joined_ns`` of their times."""
    durations = {work.row: work.dur_ns for work in _works(timeline) if work.row != MISSING}
    length: dict[int, int] = {}
    gone: set[int] = set()
    for run in runs:
        present = [row for row in run if row in durations]
        if len(present) > 1:
            length[present[0]] = joined_ns([durations[row] for row in present])
            gone.update(present[1:])

    def step(old: Step) -> Step:
        if not any(work.row in length for work in old.works):
            return old
        return old._replace(works=tuple(work._replace(dur_ns=length[work.row]) if work.row in length else work for work in old.works))

    return without_kernels(_each_step(timeline, step), frozenset(gone))


def shortest_kernel_ns(timeline: Timeline) -> int:
    """What every kernel of this timeline takes at the least."""
    return min((work.dur_ns for work in _works(timeline) if work.kind == "kernel"), default=EMPTY_KERNEL_NS)


def most_filling(timeline: Timeline) -> float:
    """The largest share of the device that a typical kernel takes, weighted by time."""
    kernels = [work for work in _works(timeline) if work.kind == "kernel"]
    total = sum(work.dur_ns for work in kernels)
    return sum(work.fill * work.dur_ns for work in kernels) / total if total else 1.0


def outside_ns(timeline: Timeline) -> float:
    """The host's own time outside the enqueues, mean per inference."""
    inferences = sum(len({step.inference for step in steps}) for steps in timeline.threads)
    return sum(step.outside_ns for step in _steps(timeline)) / inferences if inferences else 0.0


def _each_step(timeline: Timeline, change: Callable[[Step], Step]) -> Timeline:
    return replace(timeline, threads=tuple(tuple(change(step) for step in steps) for steps in timeline.threads))


def _steps(timeline: Timeline) -> Iterable[Step]:
    return (step for steps in timeline.threads for step in steps)


def _works(timeline: Timeline) -> Iterable[Work]:
    return (work for step in _steps(timeline) for work in step.works)
