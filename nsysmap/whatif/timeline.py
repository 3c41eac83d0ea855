"""The replay's view of a program: host threads that step through calls, and queues of GPU work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING

WorkKind = Literal["kernel", "HtoD", "DtoH", "copy", "memset", "graph"]
COPIES: tuple[WorkKind, ...] = ("HtoD", "DtoH", "copy")
StepKind = Literal["submit", "block", "sync", "event"]
ALL_QUEUES = -1  # in place of a queue's number


class Work(
    NamedTuple
    # like Step not a dataclass: what-if makes hundreds of thousands, and tuples are copied ten
    # times as fast
):
    """One piece of GPU work."""

    number: int  # unique within the timeline, in launch order
    row: int  # kernel_id, MISSING for other work
    kind: WorkKind
    queue: int  # number of its stream
    start_ns: int  # as recorded
    end_ns: int
    dur_ns: int
    # for a graph's node: from the end of its dependencies (for the first ones: from the graph's
    # begin) to its start
    lead_ns: int
    # numbers of the work in other queues for which it waits; for a graph's node: of all nodes for
    # which it waits
    after: tuple[int, ...]
    need: float  # share of the GPU that it uses while it runs, and others cannot
    most_need: float  # the same at most
    pinned: float = 1.0  # what its duration would be multiplied by if its host memory were pinned
    sms: float = 0.0  # share of the SMs that it keeps busy, see gpu_share.Needs
    # it may begin before the end of the kernel before it in its stream (see early)
    early: bool = False
    # in a graph it would begin before the end of that kernel (see early.runs_at_once)
    at_once: bool = False
    # a graph's node that waits for nothing but the launch call, which returns after the graph began
    submitted: bool = False

    # what the changes of all work need: _replace takes twice to three times as long

    def moved(self, queue: int, after: tuple[int, ...], lead_ns: int, shift: int = 0) -> Work:
        """The same work in this queue, after these others; its number is ``shift`` higher."""
        (number, row, kind, _, start_ns, end_ns, dur_ns, _, _, need, most_need, pinned, sms,
         early, at_once, submitted) = self  # fmt: skip
        return tuple.__new__(
            Work, (number + shift, row, kind, queue, start_ns, end_ns, dur_ns, lead_ns, after,
                   need, most_need, pinned, sms, early, at_once, submitted))  # fmt: skip

    def lasting(self, dur_ns: int) -> Work:
        """The same work with this duration."""
        return tuple.__new__(Work, (*self[:6], dur_ns, *self[7:]))

    def needing(self, need: float) -> Work:
        """The same work, which needs this share of the GPU."""
        return tuple.__new__(Work, (*self[:9], need, *self[10:]))


class Step(NamedTuple):
    """One call of a host thread, with the thread's activity since the previous one."""

    kind: StepKind
    api: str
    inference: int  # number of the thread's inference to which it belongs: the one enqueued last
    enqueue: bool  # inside that inference's enqueue
    own_ns: int  # the thread's own time before the call
    own_profiler_ns: int  # the profiler's estimated part of that
    outside_ns: int  # the part of own_ns outside every enqueue
    call_ns: int  # of a sync: its duration if there is nothing to wait for
    call_profiler_ns: int
    # of a blocking copy: from its earliest possible begin to its first GPU work; of a sync: how
    # much later than usual it returned, where something held the host up
    lag_ns: int
    # of a sync or blocking copy: the queue for which it waits; of a graph launch: the queue into
    # which it was launched
    queue: int
    target: int  # of an event sync: the number of the work for which it waits; MISSING otherwise
    graph: bool  # a graph launch
    works: tuple[Work, ...]
    # the part of outside_ns that is the interpreter's work around this call (see profiler.Around)
    around_ns: int = 0

    def moved(self, queue: int, target: int, works: tuple[Work, ...]) -> Step:
        """The same call with this work, in this queue, waiting for this target; see Work.moved."""
        (kind, api, inference, enqueue, own_ns, own_profiler_ns, outside_ns, call_ns,
         call_profiler_ns, lag_ns, _, _, graph, _, around_ns) = self  # fmt: skip
        return Step(kind, api, inference, enqueue, own_ns, own_profiler_ns, outside_ns, call_ns,
                    call_profiler_ns, lag_ns, queue, target, graph, works, around_ns)  # fmt: skip


@dataclass(frozen=True)
class Costs:
    """The delays of hardware and driver in nanoseconds; from the trace if it shows them."""

    latency_ns: int  # from the return of a launch call to the start on an idle GPU
    graph_latency_ns: int  # the same of a graph launch
    # from the begin of a graph launch call to the start, if that does not wait for its return;
    # otherwise MISSING
    graph_start_ns: int
    dispatch_ns: int  # between two kernels of a queue, the second queued in time
    # the same where the second may begin early: negative; MISSING if the trace shows none
    early_ns: int
    to_copy_ns: int  # from a kernel to a queued copy
    from_copy_ns: int  # from a copy to a queued kernel
    node_ns: int  # between two nodes of a graph; MISSING as recorded if none is
    # in a graph made of single launches, between their durations as recorded, if it were recorded
    made_node_ns: int
    # how much further apart than recorded the nodes of the trace's graphs are without the profiler
    wider_node_ns: int
    early_node_ns: int  # the same where the second may begin early; MISSING as recorded
    to_memset_ns: int  # between a node of a graph and a memset that waits for it
    from_memset_ns: int  # between a memset in a graph and a node that waits for it
    crossing_ns: int  # extra, if the second node waits for one of another branch
    return_ns: int  # from the end of GPU work to the return of the sync that waits for it
    restart_ns: int  # extra duration of the first launch after a wait
    idle_sync_ns: int  # a sync that has nothing to wait for
    submit_ns: int  # an asynchronous call, the median one
    graph_launch_ns: int
    # the interpreter's own work around a graph launch, and around a wait behind one, where the
    # program would make graphs; 0 where nothing interprets it
    graph_own_ns: int = 0
    # how much less than recorded a node overlaps the one before it, if it began before its end
    early_kept_ns: int = 0
    wait_own_ns: int = 0


@dataclass(frozen=True)
class Timeline:
    """Stretches of a program's steady run, one after another."""

    threads: tuple[tuple[Step, ...], ...]
    costs: Costs
    # per thread, for each counted inference: how many inferences of the trace it represents
    weights: tuple[dict[int, float], ...]
    # per thread, the phase of the run that each inference is of; empty if there is one phase
    phases: tuple[
        Mapping[int, int],
        ...,
    ] = ()
    # per thread, the share of the time of the run in which it runs inferences; empty: all the time
    present: tuple[float, ...] = ()
    locked: float = 0.0  # share of a launch call in which no other thread of the process can launch
    # host work is one thread's at a time, but for waits, and takes so many times as long; 0: of all
    # at once
    serial: float = 0.0
    # with queues numbered thread by thread: kernels of one thread take as long side by side as
    # recorded
    queues_a_thread: int = 0


def each_step(timeline: Timeline, change: Callable[[Step], Step]) -> Timeline:
    """The timeline with every step changed."""
    return replace(
        timeline, threads=tuple(tuple(change(step) for step in steps) for steps in timeline.threads)
    )


def all_steps(timeline: Timeline) -> Iterable[Step]:
    """The steps of all threads."""
    return (step for steps in timeline.threads for step in steps)


def all_works(timeline: Timeline) -> Iterable[Work]:
    """The GPU work of all threads."""
    return (work for step in all_steps(timeline) for work in step.works)


def host_time(timeline: Timeline, taken_ns: Callable[[Step], int]) -> float:
    """The mean time of these steps per inference, over the inferences whose time counts, each with
    its weight.

    An inference takes from the end of the one before to its own: what the host does after an
    enqueue is of the next inference's time, and the last one of a stretch has none.
    """
    taken = counted = 0.0
    for steps, weights in zip(timeline.threads, timeline.weights, strict=True):
        counted += sum(weights.values())
        taken += sum(
            taken_ns(step) * weights.get(step.inference + (not step.enqueue), 0.0) for step in steps
        )
    return taken / counted if counted else 0.0


def inference_count(timeline: Timeline) -> int:
    """The number of replayed inferences, including those at the ends."""
    return sum(len({step.inference for step in steps}) for steps in timeline.threads)


def main_queue(steps: Iterable[Step]) -> int:
    """The queue with the most GPU work enqueued by these steps; 0 if there is none."""
    queues = [work.queue for step in steps if step.enqueue for work in step.works]
    return max(set(queues), key=queues.count) if queues else 0


def kernel_rows(timeline: Timeline) -> list[list[int]]:
    """The kernel_ids of each counted inference, in launch order."""
    found = []
    for steps, weights in zip(timeline.threads, timeline.weights, strict=True):
        rows: dict[int, list[int]] = {inference: [] for inference in weights}
        for step in steps:
            if step.inference in rows:
                rows[step.inference] += [work.row for work in step.works if work.row != MISSING]
        found += list(rows.values())
    return found
