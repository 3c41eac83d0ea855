"""Defines how each change is applied to a timeline, and its assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nsysmap.core.intervals import union_ns
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray
from nsysmap.text.units import duration
from nsysmap.trace.copies import link_rates
from nsysmap.whatif.branches import (
    MOST_STREAMS,
    Dependencies,
    layers_before,
    on_auxiliary_streams,
    placed_on_streams,
)
from nsysmap.whatif.change import REFORMATS, Change
from nsysmap.whatif.changes import (
    EMPTY_KERNEL_NS,
    Changed,
    DoesNotApply,
    as_cuda_graph,
    as_one_graph,
    beside_others,
    needing_most,
    on_one_stream,
    on_own_sms,
    outside_ns,
    share_needed,
    shortest_kernel_ns,
    two_in_flight,
    with_joined_kernels,
    with_pinned_copies,
    without_host_gap,
    without_kernels,
    without_waits,
)
from nsysmap.whatif.model import Model
from nsysmap.whatif.profiler import Machine
from nsysmap.whatif.spread import has_dynamic_shapes
from nsysmap.whatif.throughput import phases_in_flight
from nsysmap.whatif.timeline import Timeline, all_works, kernel_rows

_NODE_BESIDE_NS = (400, 100, 1_100)
"""How much later a graph node begins while another graph runs at the same time: likely, and at the
bounds of the machines.
"""
_CONTENDED = (1.06, 0.95, 1.3)
"""The factor by which the host work of one Python thread slows down while another thread waits to
do its own: likely, and at the bounds.
"""
# times the time in which any kernel runs that kernels run in total, from which on they ran side by
# side
_SIDE_BY_SIDE = 1.15
_NEARLY_ALL = 0.95  # of the time, or of the GPU
_MUCH = 0.05  # share of the GPU's work
_NEXT_TO_NOTHING = 0.01  # share of an inference's time
# a call that records an event or makes a stream wait for one, without the profiler: one_sync
# against sync, on two scales
_EVENT_NS = 450

_FEWER_STREAMS = 2  # for the range of aux-streams

Make = Callable[[Timeline, Machine], Changed]
Beside = Callable[[Changed, Machine], Changed]


@dataclass(frozen=True)
class Plan:
    """How a change is made: the likeliest way first, then others that bound the saving, with the
    assumptions.
    """

    makes: tuple[Make, ...]
    assumptions: str
    also_in_a_graph: tuple[Make, ...] = ()  # more ways, for the program run as a CUDA graph
    beside: bool = False  # kernels run beside others that in the trace they run before or after


def plan_of(model: Model, change: Change) -> Plan | DoesNotApply:
    """How to make the change to this program, or why it does not apply."""
    return PLANS[change.name](model, change)


def _async(_: Model, __: Change) -> Plan:
    return Plan(
        (lambda timeline, _: without_waits(timeline),),
        "The host enqueues ahead and waits once, at the end: no result is needed before the next"
        " {:inference} is enqueued, and inputs and outputs have enough buffers. This is throughput,"
        " not latency: each {:inference} finishes later than if the host waited for it.",
    )


def _one_stream(_: Model, __: Change) -> Plan:
    return Plan(
        (lambda timeline, _: on_one_stream(timeline),),
        "The kernels of all streams run one after another, in the order of their launches, and take"
        " as long as now; no events are recorded or waited for.",
    )


def _cuda_graph(model: Model, _: Change) -> Plan:
    sequences = len(
        np.unique(
            model.observed.inferences.ints("kernel_sequence")[
                np.concatenate(model.window.inferences)
            ]
        )
    )
    captures = "Shapes and addresses stay the same, so one capture is enough"
    if sequences > 1:
        captures = (
            f"Addresses stay the same, and each of the {sequences} kernel sequences (of an input"
            " shape or engine) has its own graph"
        )

    def make(beside: Beside) -> Make:
        return lambda timeline, machine: beside(
            as_cuda_graph(timeline, branches_ns=machine.branches_ns), machine
        )

    return Plan(
        tuple(map(make, _beside_each_other(model))),
        f"{captures}; kernels take as long as now; inside the enqueue the host only launches the"
        f" graph.{_may_differ(model)}",
    )


def _may_differ(model: Model) -> str:
    """What may change about the kernels, which the range allows for; empty if nothing is
    known to.
    """
    told = ""
    if has_dynamic_shapes(model.facts):
        told += (
            " The engine has dynamic shapes: TensorRT may run kernels in the graph that are not"
            " specialised for the shape; the range allows for some."
        )
    share = model.few_blocks_share
    if share >= _MUCH:
        told += (
            f" Kernels of few blocks take {share:.0%} of the GPU's work, and depend on where the"
            " GPU places them: the range allows for a quarter more."
        )
    return told


def _beside_each_other(model: Model) -> tuple[Beside, ...]:
    """How a change that makes the GPU busier affects kernels of several threads, likely and at the
    bounds: kernels that ran one after another now overlap and slow each other. The recorded times
    of kernels that already overlapped include that.
    """
    works = [work for work in all_works(model.timeline) if work.kind == "kernel"]
    taken_ns = union_ns(
        *(
            np.array([getattr(work, end) for work in works], np.int64)
            for end in ("start_ns", "end_ns")
        )
    )
    if (
        len(model.timeline.threads) < 2
        or sum(work.dur_ns for work in works) > _SIDE_BY_SIDE * taken_ns
    ):
        return (_as_recorded,)

    def slowed(needing: Callable[[Timeline], Timeline]) -> Beside:
        def beside(changed: Changed, machine: Machine) -> Changed:
            if not isinstance(changed, Timeline):
                return changed
            return beside_others(needing(changed), _NODE_BESIDE_NS[model.machines.index(machine)])

        return beside

    return slowed(on_own_sms), _as_recorded, slowed(needing_most)


def _as_recorded(changed: Changed, _: Machine) -> Changed:
    return changed


def _one_graph(model: Model, _: Change) -> Plan:
    a_pass = model.window.inferences_a_pass
    return Plan(
        (
            lambda timeline, machine: as_one_graph(
                timeline, a_pass=a_pass, branches_ns=machine.branches_ns
            ),
        ),
        "All that the host launches from one wait or blocking copy to the next, what lies between"
        " {:inference}s too, is one CUDA graph, whose shapes and addresses stay the same; kernels"
        " take as long as now; of the host's own work only that before each graph, copy or wait is"
        " left.",
    )


def _no_host_gap(model: Model, _: Change) -> Plan | DoesNotApply:
    gap = outside_ns(model.likely) * model.window.inferences_a_pass
    if gap < _NEXT_TO_NOTHING * model.before[model.machines[0]]:
        return DoesNotApply(
            f"the host does next to nothing between {{:inference}}s ({duration(gap)})"
        )
    return Plan(
        (lambda timeline, _: without_host_gap(timeline),),
        f"The host's own work between {{:inference}}s (now {duration(gap)} per {model.unit}) is"
        " gone or done by another thread; the next input is always ready.",
    )


def _pinned_copies(model: Model, _: Change) -> Plan:
    copies = model.observed.trace.memcpys
    pinned, now = link_rates(copies, "pinned"), link_rates(copies, "pageable")
    faster = ", ".join(
        f"{way} {pinned[way]:.1f} GB/s instead of {rate:.1f}"
        for way, rate in now.items()
        if pinned.get(way, 0.0) > rate
    )
    kept = ", ".join(f"{way} {rate:.1f} GB/s" for way, rate in now.items() if way not in pinned)
    speed = [f"at the speed of this trace's own pinned copies ({faster})"] if faster else []
    if kept or not speed:
        speed.append(
            "at the speed they have now"
            + (f" ({kept}), which may be less than that of pinned memory" if kept else "")
        )
    return Plan(
        (lambda timeline, _: with_pinned_copies(timeline),),
        f"Copies use pinned memory and the {{:inference}}'s own stream, {', others '.join(speed)};"
        " the host no longer stages them, and waits once, for the results.",
    )


def _two_in_flight(model: Model, _: Change) -> Plan | DoesNotApply:
    already = phases_in_flight(model.phases)
    if already > _NEARLY_ALL:
        return DoesNotApply(
            "several {:inference}s are in flight already: most begin on the GPU before the one"
            " before them has ended"
        )

    def make(needing: Callable[[Timeline], Timeline]) -> Make:
        return lambda timeline, machine: two_in_flight(
            needing(timeline),
            locked=machine.locked,
            serial=_CONTENDED[model.machines.index(machine)] if model.interpreter else 0.0,
            beside_ns=_NODE_BESIDE_NS[model.machines.index(machine)],
        )

    kept = (
        f" In phases that take {already:.0%} of the time, several {{:inference}}s are in flight"
        " already; these take as long as they do."
    )
    return Plan(
        (make(on_own_sms), make(lambda timeline: timeline), make(needing_most)),
        "Throughput, not latency: two host threads, each with its own execution context and"
        " stream, take turns; the time is from the end of one {:inference} to the end of the next,"
        f" and each {{:inference}} takes twice that. {_room_for_two(model.likely)} "
        + (
            f"{model.interpreter}: while one thread launches, the other is taken to wait."
            if model.interpreter
            else "While one thread launches, the driver makes the other wait."
        )
        + (kept if already else ""),
        beside=not _fills(model.likely),
    )


def _fills(timeline: Timeline) -> bool:
    """Whether kernels leave no room for others."""
    return share_needed(timeline)[0] >= _NEARLY_ALL


def _room_for_two(timeline: Timeline) -> str:
    """The assumption about kernels of two inferences that overlap."""
    least, own, most = share_needed(timeline)
    if _fills(timeline):
        return "Kernels fill the GPU: those of the two run one after another."
    return (
        "Kernels of the two run concurrently as far as the GPU has room: their blocks are on"
        f" {own:.0%} of the SMs on average, which each keeps for itself. How much two kernels on"
        " one SM slow each other is not known: the range is from not at all (judging by its blocks"
        f" and its layer's work, a kernel needs {least:.0%} of the GPU's threads, registers and"
        f" bandwidth) to as if a kernel needed {most:.0%} of the GPU."
    )


def _aux_streams(model: Model, _: Change) -> Plan:
    mapping, facts = model.observed.mapping, model.facts
    layer_of: IntArray = (
        mapping.ints("layer_id")
        if mapping is not None
        else np.full(len(model.observed.trace.kernels), MISSING, np.int64)
    )
    before = (
        layers_before(facts, set(layer_of[layer_of >= 0].tolist())) if facts is not None else {}
    )
    dependencies = Dependencies(layer_of, before)

    def make(streams: int) -> Make:
        # the same on every machine: it depends on what is launched, not on when
        places = placed_on_streams(model.likely, dependencies, streams)

        def changed(timeline: Timeline, machine: Machine) -> Changed:
            event_ns = round(_EVENT_NS * machine.launch)
            return on_auxiliary_streams(
                timeline, places, event_ns=event_ns, branches_ns=machine.branches_ns
            )

        return changed

    return Plan(
        (make(MOST_STREAMS), make(_FEWER_STREAMS)),
        f"Independent layers run on up to {MOST_STREAMS} more streams, as far as the engine file's"
        " tensors allow, with an event for each wait between streams; TensorRT itself decides"
        " which layers run on auxiliary streams (IBuilderConfig::setMaxAuxStreams). The range"
        f" covers {_FEWER_STREAMS} more streams too.",
        beside=True,
    )


def _drop(model: Model, change: Change) -> Plan | DoesNotApply:
    rows = frozenset(model.selection.matching(change.layers or REFORMATS).tolist())
    inferences = kernel_rows(model.timeline)
    here = [row for kernels in inferences for row in kernels if row in rows]
    if not here:
        by_hand = bool(change.layers) and change.layers != REFORMATS
        what = (
            "none of the layers runs a kernel"
            if by_hand
            else "no kernel belongs to a reformat layer that TensorRT inserted"
        )
        return DoesNotApply(f"{what} in the replayed {{:inference}}s")
    count = len(here) / len(inferences)

    def make(timeline: Timeline, _: Machine) -> Changed:
        return without_kernels(timeline, rows)

    return Plan(
        (make,),
        f"The kernels of {model.selection.named(here)} ({_average(count)} per {{:inference}}) and"
        " their launches are removed; all others take as long as now, including those that would"
        " then read another layout. The range also covers the program run as a CUDA graph.",
        (make,),
    )


def _join(model: Model, change: Change) -> Plan | DoesNotApply:
    if not change.runs:
        return DoesNotApply(
            "no norm or softmax is known to run as several kernels (an engine file shows which do)"
        )
    inferences = kernel_rows(model.timeline)
    present = {row for kernels in inferences for row in kernels}
    runs = model.selection.runs(change.runs)
    here = [run for run in runs if present.issuperset(run)]
    if not here:
        return DoesNotApply(
            "none of these groups has two or more kernels in the replayed {:inference}s"
        )
    floor = shortest_kernel_ns(model.likely)

    def joined(durations: list[int]) -> int:
        return floor + sum(max(duration - floor, 0) for duration in durations)

    def added(durations: list[int]) -> int:
        return sum(durations) - (len(durations) - 1) * min(EMPTY_KERNEL_NS, *durations)

    def make(rule: Callable[[list[int]], int]) -> Make:
        return lambda timeline, _: with_joined_kernels(timeline, runs, rule)

    number, kernels = (
        _average(len(here) / len(inferences)),
        _average(sum(len(run) for run in here) / len(inferences)),
    )
    return Plan(
        (make(joined), make(max)),
        f"{kernels} kernels per {{:inference}}, in {number} group{'' if number == '1' else 's'},"
        " become one kernel per group. It takes as long as this trace's shortest kernel"
        f" ({duration(floor)}) plus what the kernels it replaces take beyond that. The saving is"
        " largest if it takes no longer than the longest of them, and smallest if it takes as long"
        " as all of them and only their launches are saved, in a CUDA graph.",
        (make(joined), make(max), make(added)),
    )


def _average(number: float) -> str:
    """A number per inference, as a range if kernel sequences differ."""
    return f"{number:.1f}".removesuffix(".0")


PLANS: Mapping[str, Callable[[Model, Change], Plan | DoesNotApply]] = {
    "cuda-graph": _cuda_graph,
    "one-graph": _one_graph,
    "two-in-flight": _two_in_flight,
    "async": _async,
    "pinned-copies": _pinned_copies,
    "no-host-gap": _no_host_gap,
    "one-stream": _one_stream,
    "aux-streams": _aux_streams,
    "drop-layers": _drop,
    "join-kernels": _join,
}
"""How each declared change is made."""
