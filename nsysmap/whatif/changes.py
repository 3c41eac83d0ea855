"""Applies changes to a timeline. Each function returns the changed timeline, or why the change does
not apply.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING
from nsysmap.whatif.early import MOVED_NS
from nsysmap.whatif.timeline import (
    ALL_QUEUES,
    COPIES,
    Costs,
    Step,
    Timeline,
    Work,
    all_steps,
    all_works,
    each_step,
    host_time,
    main_queue,
)

ALREADY_A_GRAPH = "the {:inference}s already run as a CUDA graph"
_NOTHING_BETWEEN = (
    "the host launches nothing between the enqueues, so that it would be what cuda-graph makes of"
    " each"
)

# duration that CUPTI reports for an empty kernel (640 on an H200), minus CUPTI's excess
EMPTY_KERNEL_NS = 140


BESIDE_NS = 300
"""Extra delay between two kernels of a stream while another stream is also busy: 0.2 to 0.45 µs in
five programs.
"""


@dataclass(frozen=True)
class DoesNotApply:
    """Why the change does not apply to this program."""

    reason: str


@dataclass(frozen=True)
class CannotTell:
    """Why the effect of the change is unknown."""

    reason: str


Changed = Timeline | DoesNotApply | CannotTell


def as_cuda_graph(timeline: Timeline, *, branches_ns: int) -> Changed:
    """Every inference's enqueue captured once and replayed by one graph launch, which takes longer
    for a graph with branches.
    """
    if (refused := _not_captured(timeline)) is not None:
        return refused
    threads = []
    for steps in timeline.threads:
        changed: list[Step] = []
        pending: list[Step] = []
        last = _last_work(steps)
        for place, step in enumerate((*steps, None)):
            captured = step is not None and _is_captured(step, place, last)
            if pending and (step is None or not captured or step.inference != pending[0].inference):
                changed.append(_graph_step(pending, timeline, branches_ns))
                pending = []
            if step is None:
                break
            # including the wait at the end of ExecutionContext::execute, which would follow the
            # graph launch
            if captured:
                pending.append(step)
            else:
                own_ns = step.outside_ns - step.around_ns
                own_ns += min(step.around_ns, timeline.costs.wait_own_ns)
                changed.append(step._replace(own_ns=own_ns, outside_ns=own_ns))
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads))


def _not_captured(timeline: Timeline) -> DoesNotApply | None:
    """Why the enqueues are not captured as graphs; None if they can be."""
    enqueues = [step for step in all_steps(timeline) if step.enqueue and step.works]
    if enqueues and all(step.graph for step in enqueues):
        return DoesNotApply(ALREADY_A_GRAPH)
    for steps in timeline.threads:
        last = _last_work(steps)
        for place, step in enumerate(steps):
            if step.kind not in ("sync", "block") or not _is_captured(step, place, last):
                continue
            if step.kind == "sync":
                return DoesNotApply(
                    f"{step.api} is called inside the enqueue and cannot be captured"
                )
            return DoesNotApply(
                f"{step.api} inside the enqueue copies pageable memory or blocks, and cannot be"
                " captured"
            )
    return None


def _last_work(steps: Sequence[Step]) -> dict[int, int]:
    """For each inference the position of the last step of its enqueue that has GPU work."""
    return {
        step.inference: place for place, step in enumerate(steps) if step.enqueue and step.works
    }


def _is_captured(step: Step, place: int, last: Mapping[int, int]) -> bool:
    return step.enqueue and place <= last.get(step.inference, -1)


def as_one_graph(timeline: Timeline, *, a_pass: int, branches_ns: int) -> Changed:
    """Everything that the host launches between two waits or blocking copies becomes one graph,
    including what lies between enqueues. If the host never waits, one graph holds all of ``a_pass``
    inferences.
    """
    refused = _not_captured(timeline)
    if refused is not None and refused != DoesNotApply(ALREADY_A_GRAPH):
        return refused
    free = 1 + max((work.queue for work in all_works(timeline)), default=0)
    threads, more = [], False
    for steps in timeline.threads:
        changed: list[Step] = []
        pending: list[Step] = []
        for step in (*steps, None):
            waits = step is None or step.kind in ("sync", "block")
            if pending and (waits or (step is not None and _other_pass(pending[-1], step, a_pass))):
                launched = {(one.inference, one.enqueue) for one in pending if one.works}
                more |= len(launched) > 1
                changed += (
                    _graph_steps(pending, timeline, branches_ns, free) if launched else pending
                )
                pending = []
            if step is not None:
                (changed if waits else pending).append(step)
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads)) if more else DoesNotApply(_NOTHING_BETWEEN)


def _other_pass(before: Step, step: Step, a_pass: int) -> bool:
    return step.enqueue and step.inference // a_pass != before.inference // a_pass


def _graph_steps(
    steps: Sequence[Step], timeline: Timeline, branches_ns: int, free: int
) -> Iterator[Step]:
    """One launch for all work of these steps. Work that follows an enqueue within the graph becomes
    a step of its own that takes no time, on a queue of its own (numbered from ``free``), so that
    the end of each inference is known.
    """
    own_ns = steps[0].outside_ns
    whole = _graph_step(steps, timeline, branches_ns)
    works = iter(whole.works)
    parts = groupby(
        (one for one in steps if one.works), key=lambda one: (one.inference, one.enqueue)
    )
    for place, ((inference, enqueue), mine) in enumerate(parts):
        part = tuple(islice(works, sum(len(one.works) for one in mine)))
        part_of = whole._replace(
            inference=inference, enqueue=enqueue, works=part, own_ns=own_ns, outside_ns=own_ns
        )
        yield (
            part_of._replace(own_ns=0, outside_ns=0, call_ns=0, queue=free + place)
            if place
            else part_of
        )


def _graph_step(steps: Sequence[Step], timeline: Timeline, branches_ns: int) -> Step:
    """One launch for all work of these steps: each node waits for the previous one in its queue,
    and for its recorded dependencies.
    """
    costs = timeline.costs
    works: list[Work] = []
    last: dict[int, int] = {}
    here: dict[int, Work] = {}
    for step in steps:
        for work in step.works:
            before = (last[work.queue],) if work.queue in last else ()
            after = (
                tuple(dict.fromkeys([*(other for other in work.after if other in here), *before]))
                if work.after
                else before
            )
            lead_ns = node_lead_ns(work, work.queue, [here[other] for other in after], costs)
            works.append(work.moved(work.queue, after, lead_ns))
            last[work.queue], here[work.number] = work.number, work
    own_ns = sum(step.outside_ns - step.around_ns for step in steps) + costs.graph_own_ns
    return steps[0]._replace(
        kind="submit",
        api="cudaGraphLaunch",
        own_ns=own_ns,
        outside_ns=own_ns,
        call_ns=costs.graph_launch_ns + (branches_ns if len(last) > 1 else 0),
        queue=works[0].queue if works else ALL_QUEUES,
        graph=True,
        works=tuple(works),
    )


def node_lead_ns(work: Work, queue: int, after: Sequence[Work], costs: Costs) -> int:
    """The time between the end of the nodes for which a node of a graph waits and its start in
    this queue; 0 if it waits for none.
    """
    if not after:
        return 0
    crosses = behind_memset = False
    for other in after:
        crosses |= other.queue != queue
        behind_memset |= other.kind == "memset"
    if work.kind == "memset":
        lead = costs.to_memset_ns
    elif behind_memset:
        lead = costs.from_memset_ns
    elif work.early and len(after) == 1 and after[0].end_ns - work.start_ns > MOVED_NS:
        # it began early and has waited within its recorded duration: it keeps its own overlap
        return costs.early_kept_ns - (after[0].end_ns - work.start_ns)
    elif work.at_once and len(after) == 1:
        return costs.early_node_ns
    else:
        lead = costs.node_ns
    return lead + (costs.crossing_ns if crosses else 0)


def with_pinned_copies(timeline: Timeline) -> Changed:
    """Every blocking or pageable copy becomes asynchronous, in its inference's stream, at the speed
    of pinned memory. Waits for only a copy are removed.
    """
    if not any(step.kind == "block" for step in all_steps(timeline)):
        if any(work.kind in ("HtoD", "DtoH") for work in all_works(timeline)):
            return DoesNotApply(
                "all copies of the replayed {:inference}s are already asynchronous and use pinned"
                " memory"
            )
        return DoesNotApply("the {:inference}s copy nothing between host and device")
    threads = []
    for steps in timeline.threads:
        queues = _own_queues(steps)
        changed: list[Step] = []
        results_pending = False
        for place, step in enumerate(steps):
            main = queues[step.inference + int(_direction(step) == "HtoD" and not step.enqueue)]
            following = steps[place + 1] if place + 1 < len(steps) else None
            if (
                step.kind == "sync"
                and following is not None
                and _direction(following) == "DtoH"
                and following.kind == "block"
            ):
                continue  # the stream orders the copy after the kernels
            if results_pending and (
                step.kind == "sync" or step.enqueue or _direction(step) == "HtoD"
            ):
                if step.kind != "sync":
                    changed.append(
                        _sync_step(
                            step, timeline, queues[max(step.inference - int(step.enqueue), 0)]
                        )
                    )
                results_pending = False
            if step.kind == "block":
                results_pending |= _direction(step) == "DtoH"
                works = tuple(
                    work._replace(queue=main, lead_ns=0, dur_ns=round(work.dur_ns * work.pinned))
                    for work in step.works
                )
                step = step._replace(  # noqa: PLW2901
                    kind="submit",
                    call_ns=timeline.costs.submit_ns,
                    lag_ns=0,
                    queue=main,
                    works=works,
                )
            elif step.kind == "submit" and all(work.kind == "memset" for work in step.works):
                step = step._replace(works=tuple(work._replace(queue=main) for work in step.works))  # noqa: PLW2901
            changed.append(step)
        threads.append(tuple(changed))
    return replace(timeline, threads=tuple(threads))


def _own_queues(steps: Sequence[Step]) -> Mapping[int, int]:
    """The queue that most of each inference's work uses; for inferences without work, the queue of
    most work overall.
    """
    usual = main_queue(steps)
    of: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        if step.enqueue and step.works:
            of[step.inference].append(step)
    found: dict[int, int] = defaultdict(lambda: usual)
    found.update({inference: main_queue(mine) for inference, mine in of.items()})
    return found


def _sync_step(before: Step, timeline: Timeline, queue: int) -> Step:
    """The wait for results that a blocking copy included."""
    return before._replace(
        kind="sync", api="cudaStreamSynchronize", enqueue=False,
        inference=max(before.inference - int(before.enqueue), 0), own_ns=0,
        outside_ns=0, call_ns=timeline.costs.idle_sync_ns, lag_ns=0, queue=queue, target=MISSING,
        graph=False, works=(),
    )  # fmt: skip


def _direction(step: Step) -> str:
    return step.works[0].kind if step.works and step.works[0].kind in COPIES else ""


def without_host_gap(timeline: Timeline) -> Changed:
    """No host work outside the enqueues: only the calls remain."""
    return each_step(
        timeline,
        lambda step: (
            step._replace(own_ns=step.own_ns - step.outside_ns, outside_ns=0)
            if step.outside_ns
            else step
        ),
    )


def without_waits(timeline: Timeline) -> Changed:
    """The next inference is enqueued before the wait for the previous one, by the same thread in
    the same stream: no sync blocks the host.
    """
    if not any(step.kind == "sync" for step in all_steps(timeline)):
        return DoesNotApply(
            "the host does not wait for {:an inference} before it enqueues the next"
        )
    return replace(
        timeline,
        threads=tuple(
            tuple(step for step in steps if step.kind != "sync") for steps in timeline.threads
        ),
    )


def two_in_flight(
    timeline: Timeline, *, locked: float, serial: float = 0.0, beside_ns: int = 0
) -> Changed:
    """A second host thread does the same in streams of its own. While one thread holds the share
    ``locked`` of a launch call, the other cannot launch; if ``serial``, the two never work on the
    host at the same time. A node of a graph begins ``beside_ns`` later.
    """
    if len({main_queue(steps) for steps in timeline.threads}) > 1:
        return DoesNotApply(
            f"{len(timeline.threads)} threads already keep {len(timeline.threads)} {{:inference}}s"
            " in flight"
        )
    queues = 1 + max((work.queue for work in all_works(timeline)), default=0)
    numbers = 1 + max((work.number for work in all_works(timeline)), default=0)

    def other(step: Step) -> Step:
        works = tuple(
            [
                work.moved(
                    work.queue + queues,
                    tuple([one + numbers for one in work.after]) if work.after else (),
                    work.lead_ns,
                    shift=numbers,
                )
                for work in step.works
            ]
        )
        queue = step.queue + queues if step.queue != ALL_QUEUES else ALL_QUEUES
        target = step.target + numbers if step.target != MISSING else MISSING
        return step.moved(queue, target, works)

    threads = []
    timeline = beside_others(timeline, beside_ns)
    for steps in timeline.threads:
        main = main_queue(steps)
        # a sync of the whole device would also wait for the other thread's work: each waits for its
        # own stream instead
        mine = [
            step._replace(queue=main) if step.kind == "sync" and step.queue == ALL_QUEUES else step
            for step in steps
        ]
        threads += [tuple(mine), tuple(other(step) for step in mine)]
    weights = tuple(weights for weights in timeline.weights for _ in range(2))
    phases = tuple(phases for phases in timeline.phases for _ in range(2))
    present = tuple(share for share in timeline.present for _ in range(2))
    costs = replace(timeline.costs, dispatch_ns=timeline.costs.dispatch_ns + BESIDE_NS)
    return replace(
        timeline,
        threads=tuple(threads),
        weights=weights,
        phases=phases,
        present=present,
        costs=costs,
        locked=locked,
        serial=serial,
        queues_a_thread=queues,
    )


def beside_others(timeline: Timeline, by_ns: int) -> Timeline:
    """The timeline in which each graph node that waits for another one begins later by
    that time.
    """

    def step(old: Step) -> Step:
        if not old.graph:
            return old
        works = tuple(
            [
                work.moved(work.queue, work.after, work.lead_ns + by_ns) if work.after else work
                for work in old.works
            ]
        )
        return old._replace(works=works)

    return each_step(timeline, step) if by_ns else timeline


def on_own_sms(timeline: Timeline) -> Timeline:
    """The timeline in which a kernel does not share the SMs that hold its blocks."""
    return _with_needs(timeline, lambda work: max(work.sms, work.need))


def needing_most(timeline: Timeline) -> Timeline:
    """The timeline in which each kernel uses as much of the GPU as it possibly can."""
    return _with_needs(timeline, lambda work: work.most_need)


def _with_needs(timeline: Timeline, need: Callable[[Work], float]) -> Timeline:
    """The timeline in which each piece of work needs that share of the GPU."""

    def step(old: Step) -> Step:
        needs = [need(work) for work in old.works]
        if needs == [work.need for work in old.works]:
            return old
        works = [work.needing(share) for work, share in zip(old.works, needs, strict=True)]
        return old._replace(works=tuple(works))

    return each_step(timeline, step)


def uses_several_streams(timeline: Timeline) -> bool:
    """Whether an inference's kernels run in more than one stream."""
    first: dict[tuple[int, int], int] = {}
    return any(
        first.setdefault((thread, step.inference), work.queue) != work.queue
        for thread, steps in enumerate(timeline.threads)
        for step in steps
        if step.enqueue
        for work in step.works
        if work.kind == "kernel"
    )


def on_one_stream(timeline: Timeline) -> Changed:
    """All GPU work of an inference in one stream, in launch order, without events.

    Only the calls that record events or wait for them go: what the host does before each (walking
    through layers, waiting for another thread's lock) it does before the next call then.
    """
    if not uses_several_streams(timeline):
        return DoesNotApply("the {:inference}s already use a single stream")
    threads = []
    for steps in timeline.threads:
        main = main_queue(steps)
        threads.append(tuple(_on_queue(step, main, timeline) for step in _without_events(steps)))
    return replace(timeline, threads=tuple(threads))


def _without_events(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The calls of a thread without an enqueue's event calls; their host time is added to the next
    call.
    """
    gone: list[Step] = []
    for step in steps:
        if step.kind == "event" and step.enqueue:
            gone.append(step)
        elif gone:
            yield step._replace(
                own_ns=step.own_ns + sum(one.own_ns for one in gone),
                own_profiler_ns=step.own_profiler_ns + sum(one.own_profiler_ns for one in gone),
                outside_ns=step.outside_ns + sum(one.outside_ns for one in gone),
                around_ns=step.around_ns + sum(one.around_ns for one in gone),
            )
            gone = []
        else:
            yield step


def _on_queue(step: Step, queue: int, timeline: Timeline) -> Step:
    if not step.enqueue:
        return step
    works: list[Work] = []
    for work in step.works:
        after = (works[-1].number,) if step.graph and works else ()
        lead_ns = work.lead_ns
        if step.graph:
            lead_ns = node_lead_ns(work, queue, works[-1:], timeline.costs)
        works.append(work.moved(queue, after, lead_ns))
    # a graph without branches
    call_ns = min(step.call_ns, timeline.costs.graph_launch_ns) if step.graph else step.call_ns
    return step._replace(queue=queue if works else step.queue, works=tuple(works), call_ns=call_ns)


def without_kernels(timeline: Timeline, rows: frozenset[int]) -> Changed:
    """The timeline without these kernels (kernel_id) and the calls that launched only them; their
    dependents inherit their dependencies.
    """
    gone = {work.number: work.after for work in all_works(timeline) if work.row in rows}

    def kept(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        result = []
        for step in steps:
            works = tuple(
                work.moved(work.queue, _spliced(work.after, gone), work.lead_ns)
                for work in step.works
                if work.row not in rows
            )
            if works or len(works) == len(step.works):
                result.append(
                    step._replace(works=works)
                    if len(works) < len(step.works) or any(work.after for work in works)
                    else step
                )
        return tuple(result)

    return replace(timeline, threads=tuple(kept(steps) for steps in timeline.threads))


def _spliced(after: tuple[int, ...], gone: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    if not any(other in gone for other in after):
        return after
    found: dict[int, None] = {}
    for other in after:
        found.update(dict.fromkeys(_spliced(gone[other], gone) if other in gone else (other,)))
    return tuple(found)


def with_joined_kernels(
    timeline: Timeline, runs: Sequence[tuple[int, ...]], joined_ns: Callable[[list[int]], int]
) -> Changed:
    """Replaces each run of kernels (kernel_ids in order) by one kernel in place of the first, whose
    duration is ``joined_ns`` of theirs.
    """
    durations = {work.row: work.dur_ns for work in all_works(timeline) if work.row != MISSING}
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
        return old._replace(
            works=tuple(
                work.lasting(length[work.row]) if work.row in length else work for work in old.works
            )
        )

    return without_kernels(each_step(timeline, step), frozenset(gone))


def shortest_kernel_ns(timeline: Timeline) -> int:
    """The shortest duration of a kernel in this timeline."""
    return min(
        (work.dur_ns for work in all_works(timeline) if work.kind == "kernel"),
        default=EMPTY_KERNEL_NS,
    )


def share_needed(timeline: Timeline) -> tuple[float, float, float]:
    """The share of the device that kernels use, weighted by time: the least, if each keeps its SMs
    to itself, and the most.
    """
    kernels = [work for work in all_works(timeline) if work.kind == "kernel"]
    total = sum(work.dur_ns for work in kernels)
    if not total:
        return 1.0, 1.0, 1.0
    needs = (
        (
            work.need * work.dur_ns,
            max(work.need, work.sms) * work.dur_ns,
            work.most_need * work.dur_ns,
        )
        for work in kernels
    )
    least, own, most = (sum(each) / total for each in zip(*needs, strict=True))
    return least, own, most


def outside_ns(timeline: Timeline) -> float:
    """The host's own time outside the enqueues, as a mean per inference (`host_time`)."""
    return host_time(timeline, lambda step: step.outside_ns)
