"""A program as the replay sees it: host threads that step through calls, and queues of GPU work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from nsysmap.base.table import MISSING

WorkKind = Literal["kernel", "HtoD", "DtoH", "copy", "memset", "graph"]
COPIES: tuple[WorkKind, ...] = ("HtoD", "DtoH", "copy")
StepKind = Literal["submit", "block", "sync", "event"]
ALL_QUEUES = -1


class Work(NamedTuple):  # like Step no dataclass: what-if makes hundreds of thousands, and copies a tuple ten times as fast
    """One piece of GPU work."""

    number: int  # unique within the timeline, in order of launch
    row: int  # kernel_id, MISSING for what is no kernel
    kind: WorkKind
    queue: int  # number of its stream
    start_ns: int  # as recorded
    end_ns: int
    dur_ns: int
    lead_ns: int  # of a graph's node: from the end of what it waits for (of the first ones: from the graph's begin) to its start
    after: tuple[int, ...]  # numbers of the works of other queues that it waits for; of a graph's node: of all nodes that it waits for
    need: float  # share of the GPU that it takes while it runs, by what is known
    most_need: float  # the same at most


class Step(NamedTuple):
    """One call of a host thread, with what the thread did since its last one."""

    kind: StepKind
    api: str
    inference: int  # number of the thread's inference that it belongs to: the one enqueued last
    enqueue: bool  # inside that inference's enqueue
    own_ns: int  # the thread's own time before the call
    own_profiler_ns: int  # of that the profiler's, by estimate
    outside_ns: int  # of own_ns what lay outside every enqueue
    call_ns: int  # a sync's: what it takes when there is nothing to wait for
    call_profiler_ns: int
    lag_ns: int  # a blocking copy's: from where it could begin to its first GPU work
    queue: int  # a sync's or blocking copy's: which queue it waits for; a graph launch's: the queue that it was launched into
    target: int  # an event sync's: the number of the work it waits for, MISSING otherwise
    graph: bool  # a graph launch
    works: tuple[Work, ...]


@dataclass(frozen=True)
class Costs:
    """What the hardware and driver take, in ns; from the trace where it shows them."""

    latency_ns: int  # from the return of a launch call to the start on an idle GPU
    graph_latency_ns: int  # the same of a graph launch
    dispatch_ns: int  # between two kernels of a queue, the second queued in time
    to_copy_ns: int  # from a kernel to a queued copy
    from_copy_ns: int  # from a copy to a queued kernel
    node_ns: int  # between two nodes of a graph
    crossing_ns: int  # more, where the second node waits for one of another branch
    return_ns: int  # from the end of GPU work to the return of the sync that waits for it
    restart_ns: int  # the first launch after a wait takes so much longer
    idle_sync_ns: int  # a sync that has nothing to wait for
    submit_ns: int  # an asynchronous call, the median one
    graph_launch_ns: int


@dataclass(frozen=True)
class Timeline:
    """Stretches of a program's steady run, one behind the other."""

    threads: tuple[tuple[Step, ...], ...]
    costs: Costs
    weights: tuple[dict[int, float], ...]  # per thread, of the inferences whose time counts: for how many of the trace each stands
    locked: float = 0.0  # share of a launch call in which no other thread of the process can launch


def each_step(timeline: Timeline, change: Callable[[Step], Step]) -> Timeline:
    """The timeline with every step changed."""
    return replace(timeline, threads=tuple(tuple(change(step) for step in steps) for steps in timeline.threads))


def all_steps(timeline: Timeline) -> Iterable[Step]:
    """The steps of all threads."""
    return (step for steps in timeline.threads for step in steps)


def all_works(timeline: Timeline) -> Iterable[Work]:
    """The GPU work of all threads."""
    return (work for step in all_steps(timeline) for work in step.works)


def inference_count(timeline: Timeline) -> int:
    """How many inferences are replayed, those at the ends included."""
    return sum(len({step.inference for step in steps}) for steps in timeline.threads)


def main_queue(steps: Iterable[Step]) -> int:
    """The queue of most GPU work that is enqueued by these steps; 0 where there is none."""
    queues = [work.queue for step in steps if step.enqueue for work in step.works]
    return max(set(queues), key=queues.count) if queues else 0


def kernel_rows(timeline: Timeline) -> list[list[int]]:
    """The kernel_ids of each inference that counts, in order of launch."""
    found = []
    for steps, weights in zip(timeline.threads, timeline.weights, strict=True):
        rows: dict[int, list[int]] = {inference: [] for inference in weights}
        for step in steps:
            if step.inference in rows:
                rows[step.inference] += [work.row for work in step.works if work.row != MISSING]
        found += list(rows.values())
    return found
