"""How each change is made to a program of two kernels, and where none is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from nsysmap.core.engine_schema import CHAIN_LAYERS, CHAINS, EDGES, LAYERS, TENSORS
from nsysmap.core.result_schema import MAPPING, ROOFLINE
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import MEMCPYS
from nsysmap.whatif.branches import (
    Dependencies,
    LayerNeeds,
    on_auxiliary_streams,
    placed_on_streams,
)
from nsysmap.whatif.change import REFORMATS, Change
from nsysmap.whatif.changes import (
    CannotTell,
    Changed,
    DoesNotApply,
    as_cuda_graph,
    as_one_graph,
    beside_others,
    needing_most,
    on_one_stream,
    on_own_sms,
    two_in_flight,
    with_joined_kernels,
    with_pinned_copies,
    without_host_gap,
    without_kernels,
    without_waits,
)
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model
from nsysmap.whatif.plans import Plan, plan_of
from nsysmap.whatif.profiler import MACHINES, Machine
from nsysmap.whatif.timeline import Step, Timeline, all_steps, all_works, each_step
from tests.figures import figures
from tests.whatif.test_model import model, two_kernels
from tests.whatif.test_replay import branching, graph, program

LIKELY, QUICK, SLOW = MACHINES


def plan(one: Model, name: str, **named: object) -> Plan:
    found = plan_of(one, Change(name, **named))  # type: ignore[arg-type]
    assert isinstance(found, Plan)
    return found


def needing(timeline: Timeline, need: float, sms: float, most: float) -> Timeline:
    return each_step(
        timeline,
        lambda step: step._replace(
            works=tuple(one._replace(need=need, sms=sms, most_need=most) for one in step.works)
        ),
    )


def beside(timeline: Timeline, *, apart_ns: int) -> Timeline:
    """Two threads, whose kernels began so much apart as recorded."""
    (steps,) = timeline.threads
    other = tuple(
        one._replace(
            works=tuple(
                w._replace(start_ns=w.start_ns + apart_ns, end_ns=w.end_ns + apart_ns)
                for w in one.works
            )
        )
        for one in steps
    )
    return replace(timeline, threads=(steps, other), weights=timeline.weights * 2)


@pytest.mark.parametrize("at", MACHINES, ids=["likely", "quick", "slow"])
def test_what_has_one_way_is_made_that_way_on_each_machine(at: Machine) -> None:
    one, timeline = model(), two_kernels(host_ns=5_000)
    ways: dict[str, Changed] = {
        "cuda-graph": as_cuda_graph(timeline, branches_ns=at.branches_ns),
        "one-graph": as_one_graph(timeline, a_pass=1, branches_ns=at.branches_ns),
        "async": without_waits(timeline),
        "pinned-copies": with_pinned_copies(timeline),
        "one-stream": on_one_stream(timeline),
    }
    for name, made in ways.items():
        found = plan(one, name)
        assert [make(timeline, at) for make in found.makes] == [made], name
        assert not found.also_in_a_graph
        assert not found.beside


def test_the_graph_of_a_pass_has_all_of_its_inferences() -> None:
    one = model(window={"inferences_a_pass": 2})
    made = plan(one, "one-graph").makes[0](two_kernels(), LIKELY)
    assert made == as_one_graph(two_kernels(), a_pass=2, branches_ns=1_000)


@pytest.mark.parametrize(("host_ns", "applies"), [(380, False), (395, True), (0, False)])
def test_next_to_nothing_is_less_than_a_hundredth(host_ns: int, applies: bool) -> None:
    timeline = two_kernels(host_ns=host_ns)
    found = plan_of(model(timeline), Change("no-host-gap"))
    assert isinstance(found, Plan) == applies
    if isinstance(found, Plan):
        assert found.makes[0](timeline, LIKELY) == without_host_gap(timeline)


def test_kernels_of_threads_that_ran_in_turns_are_slowed_beside_each_other() -> None:
    apart = needing(beside(two_kernels(), apart_ns=500_000), 0.2, 0.5, 0.9)
    makes = plan(model(apart), "cuda-graph").makes
    assert len(makes) == 3
    for machine, by_ns in zip(MACHINES, (400, 100, 1_100), strict=True):
        made = as_cuda_graph(apart, branches_ns=machine.branches_ns)
        assert isinstance(made, Timeline)
        assert makes[0](apart, machine) == beside_others(on_own_sms(made), by_ns)
        assert makes[1](apart, machine) == made
        assert makes[2](apart, machine) == beside_others(needing_most(made), by_ns)
    already = graph(two_kernels())
    assert isinstance(makes[0](already, LIKELY), DoesNotApply)


@pytest.mark.parametrize(("apart_ns", "ways"), [(30_000, 3), (3_696, 3), (3_695, 1), (0, 1)])
def test_they_ran_side_by_side_from_a_seventh_more_than_the_time_they_took(
    apart_ns: int, ways: int
) -> None:
    """Two of 5 us, which take 8,695.65 ns together if they are side by side for so long."""
    made = beside(program(kernels=[5_000]), apart_ns=apart_ns)
    assert len(plan(model(made), "cuda-graph").makes) == ways


@pytest.mark.parametrize(("blocks", "told"), [(8, ["33"]), (9, [])])
def test_kernels_of_few_blocks_are_told_of_from_a_twentieth_on(
    blocks: int, told: list[str]
) -> None:
    assert figures(plan(model(blocks=blocks), "cuda-graph").assumptions) == told


def test_a_second_thread_does_the_same_with_more_or_less_room_for_its_kernels() -> None:
    timeline = needing(two_kernels(), 0.2, 0.5, 0.9)
    found = plan(model(timeline), "two-in-flight")
    python = plan(model(timeline, interpreter="Python"), "two-in-flight")
    assert (len(found.makes), found.beside) == (3, True)
    rooms: tuple[Callable[[Timeline], Timeline], ...] = (on_own_sms, lambda one: one, needing_most)
    for at, machine in enumerate(MACHINES):
        for room, make, slowly in zip(rooms, found.makes, python.makes, strict=True):
            by_ns, serial = (400, 100, 1_100)[at], (1.06, 0.95, 1.3)[at]
            assert make(timeline, machine) == two_in_flight(
                room(timeline), locked=machine.locked, beside_ns=by_ns
            )
            assert slowly(timeline, machine) == two_in_flight(
                room(timeline), locked=machine.locked, serial=serial, beside_ns=by_ns
            )


@pytest.mark.parametrize(("need", "room"), [(0.94, True), (0.95, False)])
def test_kernels_that_need_nearly_all_of_the_gpu_leave_no_room(need: float, room: bool) -> None:
    timeline = needing(two_kernels(), need, need, 1.0)
    assert plan(model(timeline), "two-in-flight").beside == room


def test_what_is_in_flight_together_already_gets_no_second_thread() -> None:
    over = each_step(
        two_kernels(),
        lambda step: step._replace(
            works=tuple(one._replace(end_ns=one.end_ns + 3_000_000) for one in step.works)
        ),
    )
    assert isinstance(plan_of(model(over), Change("two-in-flight")), DoesNotApply)


# --- layers
# ---


def test_kernels_that_are_dropped_are_those_of_the_layers_in_the_replay() -> None:
    found = plan(model(), "drop-layers", layers=("k",))
    every = frozenset(range(1, 17))
    made = without_kernels(two_kernels(), every)
    assert [make(two_kernels(), LIKELY) for make in found.makes] == [made]
    assert [make(two_kernels(), LIKELY) for make in found.also_in_a_graph] == [made]
    assert figures(found.assumptions)[-1] == "2"
    assert isinstance(plan_of(model(), Change("drop-layers", layers=("other",))), DoesNotApply)
    assert isinstance(plan_of(model(), Change("drop-layers")), DoesNotApply)
    reasons = [
        found.reason
        for layers in (("other",), (), REFORMATS)
        for found in (plan_of(model(), Change("drop-layers", layers=layers)),)
        if isinstance(found, DoesNotApply)
    ]
    assert ["reformat" in reason for reason in reasons] == [False, True, True]


def test_without_runs_of_layers_nothing_is_joined() -> None:
    assert isinstance(plan_of(model(), Change("join-kernels")), DoesNotApply)
    missing = Change("join-kernels", runs=(("other",),))
    assert isinstance(plan_of(model(), missing), DoesNotApply)


class Runs:
    """In place of what finds kernels by name: these runs of them."""

    def __init__(self, *runs: tuple[int, ...]) -> None:
        self.found = list(runs)

    def runs(self, _: object) -> list[tuple[int, ...]]:
        return self.found


def test_joined_kernels_take_the_shortest_and_what_they_take_beyond_it() -> None:
    one = model()
    pairs = [(at, at + 1) for at in range(1, 17, 2)]
    vars(one)["selection"] = Runs(*pairs, (17, 18))  # the last is not in the replay
    found = plan(one, "join-kernels", runs=(("a", "b"),))
    assert figures(found.assumptions)[:2] == ["2", "1"]
    (usual, most), (first, second, least) = found.makes, found.also_in_a_graph
    timeline = two_kernels()

    def joined(dur_ns: int) -> Changed:
        return with_joined_kernels(timeline, [*pairs, (17, 18)], lambda _: dur_ns)

    assert usual(timeline, LIKELY) == first(timeline, LIKELY) == joined(20_000)
    assert most(timeline, LIKELY) == second(timeline, LIKELY) == joined(20_000)
    shortest = [len(step.works) and step.works[0].dur_ns for step in all_steps(timeline)]
    assert min(taken for taken in shortest if taken) == 10_000
    made = least(timeline, LIKELY)
    assert isinstance(made, Timeline)
    (dur_ns,) = {work.dur_ns for work in all_works(made)}
    assert 28_000 < dur_ns < 30_000  # one launch of an empty kernel less


# --- streams
# ---


def needs(*before: tuple[int, ...], layer_of: list[int]) -> Dependencies:
    return Dependencies(
        np.array(layer_of), {layer: LayerNeeds(reads, ()) for layer, reads in enumerate(before)}
    )


def forked(*, graph_too: bool = False, inferences: int = 2) -> tuple[Timeline, Dependencies]:
    """Four kernels: the second and the third wait for the first, the fourth for both."""
    timeline = program(kernels=[1_000] * 4, inferences=inferences)
    layer_of = [0, *[0, 1, 2, 3] * inferences]
    dependencies = needs((), (0,), (0,), (1, 2), layer_of=layer_of)
    return (graph(timeline) if graph_too else timeline), dependencies


def made_on_streams(timeline: Timeline, dependencies: Dependencies) -> Timeline:
    places = placed_on_streams(timeline, dependencies, 4)
    assert isinstance(places, dict)
    made = on_auxiliary_streams(timeline, places, event_ns=450, branches_ns=1_000)
    assert isinstance(made, Timeline)
    return made


def of_inference(timeline: Timeline, number: int) -> list[Step]:
    return [one for one in all_steps(timeline) if one.inference == number and one.works]


def test_a_wait_for_another_stream_costs_two_event_calls() -> None:
    timeline, dependencies = forked()
    made = of_inference(made_on_streams(timeline, dependencies), 1)
    assert [one.own_ns for one in made] == [0, 0, 900, 900]
    assert [one.works[0].queue for one in made] == [0, 0, 1, 0]
    assert [one.works[0].after for one in made] == [(), (), (5,), (7,)]
    assert [one.call_ns for one in made] == [3_000] * 4
    waits = [one for one in all_steps(timeline) if not one.works]
    assert [one for one in all_steps(made_on_streams(timeline, dependencies)) if not one.works] == (
        waits
    )


def test_a_graph_with_branches_takes_longer_to_launch() -> None:
    timeline, dependencies = forked(graph_too=True)
    before, (made,) = (
        of_inference(timeline, 1)[0],
        of_inference(made_on_streams(timeline, dependencies), 1),
    )
    assert (made.call_ns - before.call_ns, made.own_ns) == (1_000, before.own_ns)
    assert [one.after for one in made.works] == [(), (5,), (5,), (6, 7)]
    assert [one.queue for one in made.works] == [0, 0, 1, 0]


def test_each_thread_has_streams_of_its_own() -> None:
    timeline, dependencies = forked()
    (steps,) = timeline.threads
    shifted = tuple(
        one._replace(
            works=tuple(w.moved(w.queue, w.after, w.lead_ns, shift=100) for w in one.works)
        )
        for one in steps
    )
    twice = replace(timeline, threads=(steps, shifted), weights=timeline.weights * 2)
    places = placed_on_streams(twice, dependencies, 4)
    assert isinstance(places, dict)
    assert [places[number].queue for number in (1, 2, 3, 4)] == [0, 0, 1, 0]
    assert [places[number].queue for number in (101, 102, 103, 104)] == [0, 0, 5, 0]


def test_of_full_streams_the_one_with_the_oldest_work_is_taken() -> None:
    timeline = program(kernels=[1_000] * 5, inferences=1)
    dependencies = needs((), (0,), (0,), (0,), (0,), layer_of=[0, 0, 1, 2, 3, 4])
    places = placed_on_streams(timeline, dependencies, 2)
    assert isinstance(places, dict)
    assert [places[number].queue for number in (1, 2, 3, 4, 5)] == [0, 0, 1, 2, 0]
    assert [places[number].crossing for number in (3, 4, 5)] == [(1,), (1,), ()]


@pytest.mark.parametrize(
    ("layers", "known"),
    [
        ([0, 1, 2, 3], True),
        ([0, 1, 2, MISSING], False),
        ([0, 1, 2, 9], False),
    ],
)
def test_too_many_kernels_without_a_known_layer_are_no_ground(
    layers: list[int], known: bool
) -> None:
    timeline, dependencies = forked()
    found = placed_on_streams(
        timeline, replace(dependencies, layer_of=np.array([0, *layers * 2])), 4
    )
    assert isinstance(found, dict) == known
    if isinstance(found, CannotTell):
        assert ("have no layer" in found.reason) == (MISSING in layers)


@pytest.mark.parametrize(("dur_ns", "known"), [(1_000, True), (1_001, False)])
def test_a_twentieth_of_the_kernels_time_may_be_without_one(dur_ns: int, known: bool) -> None:
    timeline = program(kernels=[dur_ns, 10_000, 9_000 - (dur_ns - 1_000)], inferences=1)
    dependencies = needs((), (), (0,), layer_of=[0, MISSING, 0, 1])
    found = placed_on_streams(timeline, dependencies, 4)
    assert isinstance(found, CannotTell) != known


def test_what_has_no_known_layer_or_reads_what_nobody_writes_waits_for_all() -> None:
    unknown = Dependencies(
        np.array([0, 0, 1, 2]), {0: LayerNeeds((), ()), 1: LayerNeeds((), ("t",))}
    )
    timeline = program(kernels=[100, 100_000, 100], inferences=1)
    found = placed_on_streams(timeline, unknown, 4)
    assert not isinstance(found, dict)  # each waits for the one before it
    free = Dependencies(
        np.array([0, 0, 1, 2]),
        {0: LayerNeeds((), ()), 1: LayerNeeds((), ()), 2: LayerNeeds((), ("t",))},
    )
    found = placed_on_streams(timeline, free, 4)
    assert isinstance(found, dict)
    assert [found[number].queue for number in (1, 2, 3)] == [0, 1, 0]
    assert found[3].after == (1, 2)


def test_more_streams_are_planned_for_and_fewer_are_the_bound() -> None:
    found = plan(model(), "aux-streams")
    assert (len(found.makes), found.beside) == (2, True)
    assert all(isinstance(make(two_kernels(), LIKELY), CannotTell) for make in found.makes)
    assert isinstance(
        plan(model(branching()), "aux-streams").makes[0](branching(), LIKELY), DoesNotApply
    )


def layered(machine: Machine, *, opaque: bool = False) -> list[Changed]:
    """The ways to run an engine whose second to fifth layer read from the first alone."""
    timeline = program(kernels=[1_000] * 5, inferences=2)
    layers = [
        {"layer_id": at, "name": f"l{at}", "kind": "foreign_node" if opaque else "conv"}
        for at in range(5)
    ]
    tensors = [{"layer_id": at, "name": f"t{at}", "direction": "out"} for at in range(5)]
    tensors += [{"layer_id": at, "name": "t0" if at else "x", "direction": "in"} for at in range(5)]
    facts = EngineFacts(
        layers=Table.of_rows(LAYERS, layers),
        tensors=Table.of_rows(TENSORS, tensors),
        edges=Table.of_rows(EDGES, [{"from_layer": 0, "to_layer": at} for at in range(1, 5)]),
        chains=Table.empty(CHAINS),
        chain_layers=Table.empty(CHAIN_LAYERS),
        roofline=Table.empty(ROOFLINE),
        bindings=("x",),
    )
    mapping: list[dict[str, object]] = [{}]
    mapping += [{"layer_id": at % 5} for at in range(10)]
    one = model(timeline, facts=facts)
    one = replace(one, observed=replace(one.observed, mapping=Table.of_rows(MAPPING, mapping)))
    return [make(timeline, machine) for make in plan(one, "aux-streams").makes]


@pytest.mark.parametrize(("machine", "event_ns"), [(LIKELY, 450), (QUICK, 351), (SLOW, 608)])
def test_layers_run_on_four_more_streams_or_two(machine: Machine, event_ns: int) -> None:
    many, few = layered(machine)
    assert isinstance(many, Timeline)
    assert isinstance(few, Timeline)
    for made, queues in ((many, [0, 0, 1, 2, 3]), (few, [0, 0, 1, 2, 0])):
        steps = of_inference(made, 1)
        assert [one.works[0].queue for one in steps] == queues
        assert [one.own_ns for one in steps] == [2 * event_ns * (at > 0) for at in queues]
    assert all(isinstance(made, CannotTell) for made in layered(machine, opaque=True))


def test_pinned_copies_are_told_of_with_their_rates() -> None:
    def copy(source: str, kind: str, rate: int) -> dict[str, object]:
        ends = {"source": source, "target": "device"}
        if kind == "DtoH":
            ends = {"source": "device", "target": source}
        return {"kind": kind, "bytes": rate * 10**6, "start_ns": 0, "end_ns": 10**6, **ends}

    rows = [
        *(copy("pinned", "HtoD", 20) for _ in range(3)),
        *(copy("pageable", "HtoD", 5) for _ in range(3)),
        *(copy("pageable", "DtoH", 3) for _ in range(3)),
    ]
    one = model()
    trace = replace(one.observed.trace, memcpys=Table.of_rows(MEMCPYS, rows))
    told = plan(replace(one, observed=replace(one.observed, trace=trace)), "pinned-copies")
    assert figures(told.assumptions) == ["20.0", "5.0", "3.0"]
    assert figures(plan(one, "pinned-copies").assumptions) == []
