"""The model of a program of two kernels, with figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import numpy as np
import pytest

from nsysmap.core.engine_schema import CHAIN_LAYERS, CHAINS, EDGES, LAYERS, TENSORS
from nsysmap.core.result_schema import MAPPING, ROOFLINE
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import API_CALLS, GPU_KERNELS, INFERENCES, MEMBERSHIP, PYTHON
from nsysmap.trace.inferences.disturbance import SlowCalls
from nsysmap.trace.model import Trace
from nsysmap.whatif.calibration import WITH_ATTRIBUTES_NS
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.host_pace import HostPace
from nsysmap.whatif.model import (
    Model,
    Observed,
    _hides_work,
    _interpreter,
    _roofline,
    _slowed_down,
    launches_graphs_only,
    lost_share,
    regression_slope,
    slowed_note,
)
from nsysmap.whatif.profiler import MACHINES, ProfilerCosts
from nsysmap.whatif.replay import lengths_ns, recorded, replay
from nsysmap.whatif.spread import (
    FACTORS,
    RECORDED,
    all_graphs,
    at_once_ns,
    graph_spread,
    has_dynamic_shapes,
    made_spread,
    only_graphs,
    pauses_ns,
    placed_elsewhere_ns,
    recorded_spread,
)
from nsysmap.whatif.timeline import Timeline, each_step
from nsysmap.whatif.window import Window
from tests.whatif.test_replay import graph, program
from tests.whatif.test_window import stretches
from tests.whatif.test_window import trace as empty

LIKELY, QUICK, SLOW = MACHINES
PERIOD, BUSY = 38_500, 30_000  # 3 of a call, 2 to the GPU, 10 + 1 + 20, 2.5 back


def two_kernels(*, call_ns: int = 3_000, host_ns: int = 0, need: float = 0.1) -> Timeline:
    return program(kernels=[10_000, 20_000], call_ns=call_ns, host_ns=host_ns, need=need)


def kernels(*, blocks: int = 1_000, process: int = 1, **fields: object) -> Table:
    """A row for each of the program's kernels; of those of 10 us the number of blocks is given."""
    rows = [
        {
            "kernel_id": at,
            "name": "k",
            "process": process,
            "device": 0,
            "start_ns": 1_000_000 * at,
            "end_ns": 1_000_000 * at + (10_000 if at % 2 else 20_000),
            "grid_x": blocks if at % 2 else 1_000,
            "grid_y": 1,
            "grid_z": 1,
            **fields,
        }
        for at in range(17)
    ]
    return Table.of_rows(GPU_KERNELS, rows)


def window_of(timeline: Timeline, **fields: object) -> Window:
    made = replace(
        stretches(),
        threads=tuple(range(len(timeline.threads))),
        inferences=tuple(np.arange(8) for _ in timeline.threads),
        weights=timeline.weights,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def model(
    timeline: Timeline | None = None,
    *,
    bounds: tuple[Timeline, Timeline] | None = None,
    recorded_ns: int = 100_000,
    blocks: int = 1_000,
    window: dict[str, object] | None = None,
    **fields: object,
) -> Model:
    """On the quick and the slow machine a launch takes 1 us less and 1 us more."""
    likely = timeline or two_kernels()
    quick, slow = bounds or (two_kernels(call_ns=2_000), two_kernels(call_ns=4_000))
    trace = replace(empty(), kernels=kernels(blocks=blocks))
    nothing = np.full(len(trace.kernels), MISSING, np.int64)
    made = Model(
        Observed(
            trace,
            Table.of_rows(INFERENCES, [{"inference": at, "kernel_sequence": 0} for at in range(8)]),
            Table(MEMBERSHIP, {"inference": nothing, "position": nothing}),
            None,
        ),
        None,
        window_of(likely, **(window or {})),
        likely,
        ProfilerCosts(own_calls=True, call_ns=1_000, edge_ns=30, range_ns=7),
        recorded_ns,
        0.0,
        python=False,
        without={LIKELY: likely, QUICK: quick, SLOW: slow},
    )
    return replace(made, **fields)  # type: ignore[arg-type]


# --- times
# ---


@pytest.mark.parametrize(
    ("recorded_ns", "before"),
    [(100_000, [38_500, 37_500, 39_500]), (38_000, [38_000, 37_500, 38_000])],
)
def test_the_time_without_a_change_is_the_replay_s_and_at_most_the_recorded_one(
    recorded_ns: int, before: list[int]
) -> None:
    one = model(recorded_ns=recorded_ns)
    assert [*one.before.values()] == before
    assert one.period(one.likely, replay(one.without[SLOW])) == 39_500  # the ends that are given
    assert not one.held_up
    assert not one.observed.repetitions


def test_it_is_at_least_the_gpu_s_work_on_one_stream_over_all_inferences() -> None:
    def before(timeline: Timeline | None = None) -> int:
        return model(timeline, window={"work_of_counted": 1.5}).before[LIKELY]

    assert before() == 1.5 * BUSY
    assert before(graph(two_kernels())) < 1.5 * BUSY
    second = each_step(
        two_kernels(),
        lambda step: step._replace(
            works=tuple(one._replace(queue=one.number % 2) for one in step.works)
        ),
    )
    side_by_side = model(second, window={"work_of_counted": 3.0})
    assert side_by_side.before[LIKELY] == side_by_side.period(second)
    longer = model(window={"of_all": 1.5, "work_of_counted": 3.0}, recorded_ns=10**6)
    assert longer.period(longer.likely) == 1.5 * PERIOD
    assert longer.before[LIKELY] == 3 * BUSY


def test_the_gpu_works_for_its_share_of_the_time() -> None:
    assert model().work_ns == BUSY
    assert model(recorded_ns=19_250).work_ns == BUSY / 2
    nothing = replace(two_kernels(), weights=({},))
    assert model(nothing, bounds=(nothing, nothing))._busy_share == 0.0
    assert model().few_blocks_share == 0.0


def test_the_error_of_the_replay_is_in_no_time() -> None:
    one = model(error=0.02, recorded_ns=50_000)
    assert one.period(one.likely) == PERIOD - 1_000
    more = model(error=0.02, recorded_ns=50_000, window={"of_all": 2.0})
    assert more.period(more.likely) == 2 * (PERIOD - 500)


@pytest.mark.parametrize(
    ("of_all", "longer"),
    [(1.04, 2_000), (1.0, 0), (1.1, 0.1 * PERIOD), (0.9, -0.1 * PERIOD)],
)
def test_what_all_inferences_take_longer_than_the_replayed_ones_is_added(
    of_all: float, longer: float
) -> None:
    one = model(window={"of_all": of_all}, recorded_ns=52_000)
    assert one.period(one.likely) == pytest.approx(PERIOD + longer, abs=1)


def uneven() -> Timeline:
    """Inference 3 takes 40 us more as recorded, of which the GPU works 10."""

    def longer(inference: int) -> int:
        return 40_000 if inference >= 3 else 0

    return each_step(
        two_kernels(),
        lambda step: step._replace(
            works=tuple(
                one._replace(
                    start_ns=one.start_ns + longer(step.inference),
                    end_ns=one.end_ns + longer(step.inference),
                    dur_ns=one.dur_ns + (10_000 if step.inference == 3 and one.number == 7 else 0),
                )
                for one in step.works
            )
        ),
    )


def test_it_is_added_by_the_slope_of_replayed_times_over_recorded_ones() -> None:
    one = model(uneven(), window={"of_all": 1.04}, recorded_ns=52_000)
    was, now = (
        np.array([end - begin for begin, end in lengths_ns(one.likely, ends)[0].values()])
        for ends in (recorded(one.likely), replay(one.likely))
    )
    slope = float(np.cov(was, now, bias=True)[0, 1] / np.var(was))
    assert slope == pytest.approx(0.25)
    assert one.period(one.likely) == pytest.approx(now.mean() + 2_000 * slope, abs=1)
    # with other threads than recorded the slope is that of the program without a change
    several = replace(one.likely, threads=one.likely.threads * 2, weights=one.likely.weights * 2)
    both = one._replayed_ns(several)
    assert one.period(several) == pytest.approx(both + 2_000 * slope, abs=1)


@pytest.mark.parametrize(
    ("was", "now", "weight", "slope"),
    [
        ([-1, 1], [-0.5, 0.5], [1, 1], 0.5),
        ([-1, 1], [-2, 2], [1, 1], 1.0),
        ([-1, 1], [2, -2], [1, 1], 0.0),
        ([0, 0], [2, -2], [1, 1], 1.0),
        ([-1, 1, 2], [0, 0, 2], [1, 1, 3], 12 / 14),
        ([], [], [], 1.0),
    ],
)
def test_the_slope_is_between_none_and_one(
    was: list[float], now: list[float], weight: list[float], slope: float
) -> None:
    columns = (np.array(one, np.float64) for one in (was, now, weight))
    assert regression_slope(*columns) == pytest.approx(slope)


@pytest.mark.parametrize("a_pass", [1, 2])
def test_the_host_s_shares_are_of_the_threads_time(a_pass: int) -> None:
    busy = two_kernels(host_ns=5_000)
    own = each_step(busy, lambda step: step._replace(own_ns=step.own_ns + 100))
    window: dict[str, object] = {"inferences_a_pass": a_pass}
    one = model(own, window=window)
    whole = 38_500 + 5_000 + 2 * 100
    assert one.outside_share(own) == pytest.approx(5_000 / whole, rel=0.01)
    assert one.own_share(own) == pytest.approx(5_300 / whole, rel=0.01)
    assert one.period(own) == pytest.approx(whole * a_pass, abs=200)
    twice = replace(own, threads=own.threads * 2, weights=own.weights * 2)
    assert one.own_share(twice) == pytest.approx(
        5_300 / 2 / one._replayed_ns(twice) * a_pass, rel=0.02
    )


@pytest.mark.parametrize(
    ("blocks", "share"), [(8, 1 / 3), (9, 0.0), (1, 1 / 3), (0, 0.0), (1_000, 0.0)]
)
def test_kernels_of_few_blocks_take_their_share_of_the_kernels_time(
    blocks: int, share: float
) -> None:
    assert model(blocks=blocks).few_blocks_share == pytest.approx(share)


def test_kernels_of_few_blocks_run_long_from_ten_microseconds_on() -> None:
    short = program(kernels=[9_999, 20_001])
    assert model(short, blocks=8).few_blocks_share == 0.0


# --- what is read
# ---


def seen(*nodes: int, graphs: tuple[bool, ...] = (), calls: tuple[str, ...] = ()) -> Observed:
    rows = [
        {"kernel_id": at, "name": "k", "start_ns": 100 * at, "end_ns": 100 * at + 1,
         **({"graph_node_id": node} if node else {})}
        for at, node in enumerate(nodes)
    ]  # fmt: skip
    trace = replace(
        empty(),
        kernels=Table.of_rows(GPU_KERNELS, rows),
        api_calls=Table.of_rows(
            API_CALLS,
            [{"kind": kind, "start_ns": 100 + 200 * at, "end_ns": 100 + 200 * at}
             for at, kind in enumerate(calls)],
        ),
    )  # fmt: skip
    inferences = [{"inference": at, "cuda_graph": one} for at, one in enumerate(graphs)]
    return Observed(trace, Table.of_rows(INFERENCES, inferences), Table.empty(GPU_KERNELS), None)


@pytest.mark.parametrize(
    ("observed", "only"),
    [
        (seen(graphs=(True, True)), True),
        (seen(graphs=(True, False)), False),
        (seen(graphs=(False, False), calls=("graph-launch",)), False),
        (seen(calls=("graph-launch", "graph-launch")), True),
        (seen(), False),
        (seen(0, calls=("launch",)), False),
        (seen(0, 5, 5, 5, 0, calls=("graph-launch", "graph-launch")), True),  # none between them
        (seen(0, 5, 0, 5, 0, calls=("graph-launch", "graph-launch")), False),
        (seen(0, 0, 5, 5, 0, calls=("graph-launch", "graph-launch")), False),  # with the first
        (seen(0, 5, 5, 0, 0, calls=("graph-launch", "graph-launch")), False),  # with the last
    ],
)
def test_only_graphs_are_launched_where_nothing_is_launched_between_them(
    observed: Observed, only: bool
) -> None:
    assert launches_graphs_only(observed) == only


def test_work_of_the_trace_that_the_replay_has_not_is_lost() -> None:
    """Seven inferences of 30 us count, each from the end of the one before."""
    timeline = two_kernels()
    all_of_it = replace(empty(), kernels=kernels())
    window = window_of(timeline, begin_ns=np.array([0]), end_ns=np.array([10**9]))
    assert lost_share(all_of_it, window, timeline) == 0.0
    without = each_step(
        timeline,
        lambda step: step._replace(works=tuple(one for one in step.works if one.number != 6)),
    )
    assert lost_share(all_of_it, window, without) == pytest.approx(20 / 210)
    first = each_step(
        timeline,
        lambda step: step._replace(works=tuple(one for one in step.works if one.number != 1)),
    )
    assert lost_share(all_of_it, window, first) == 0.0  # of an inference that does not count
    others = replace(empty(), kernels=kernels(process=2))
    assert lost_share(others, window, without) == 0.0
    elsewhere = replace(empty(), kernels=kernels(device=1))
    assert lost_share(elsewhere, window, without) == 0.0


@pytest.mark.parametrize(
    ("launches", "quickest", "own_calls", "says"),
    [
        (1.4, 1.0, False, "launch calls take 1.4"),
        (1.0, 1.3, False, "most calls of f take 1.3 times"),
        (1.04, 1.0, False, ""),
        (1.0, 1.0, False, ""),
        (9.0, 1.0, True, ""),
    ],
)
def test_a_slow_host_is_told_from_a_usual_one(
    launches: float, quickest: float, own_calls: bool, says: str
) -> None:
    note = slowed_note(
        SlowCalls("f", 9, quickest), HostPace(launches, quickest, own_calls=own_calls)
    )
    assert (says in note, bool(note)) == (True, bool(says))


LAUNCH = {"kind": "graph-launch", "process": 1, "start_ns": 15, "end_ns": 16}


def launched(calls: list[dict[str, object]], rows: list[dict[str, object]]) -> Trace:
    made = [
        {"kernel_id": at, "name": "k", "start_ns": 15, "end_ns": 16, **row}
        for at, row in enumerate(rows)
    ]
    return replace(
        empty(),
        api_calls=Table.of_rows(API_CALLS, calls),
        kernels=Table.of_rows(GPU_KERNELS, made),
    )


def test_a_graph_launch_whose_work_is_nowhere_hides_it() -> None:
    plain = {**LAUNCH, "kind": "launch"}
    assert not _hides_work(launched([plain], []))
    assert not _hides_work(launched([LAUNCH], [{"launch": 0}]))
    hidden = launched([LAUNCH, LAUNCH], [{"launch": 1}])
    whole_graphs = _hides_work(hidden)
    assert whole_graphs
    assert whole_graphs == _hides_work(launched([LAUNCH], []))
    unknown = _hides_work(launched([LAUNCH], [{"graph_node_id": 5}]))
    assert unknown not in ("", whole_graphs)
    mixed = launched([LAUNCH, plain], [{"graph_node_id": 5, "launch": 1}, {}])
    assert _hides_work(mixed) == whole_graphs
    window = window_of(two_kernels())
    assert _hides_work(hidden, window) == whole_graphs
    for other in ({"start_ns": 25}, {"process": 2}):
        elsewhere = launched([LAUNCH | other, LAUNCH], [{"launch": 1}])
        assert _hides_work(elsewhere) == whole_graphs
        assert not _hides_work(elsewhere, window)


def test_python_is_known_by_its_process_or_by_pytorch() -> None:
    window = window_of(two_kernels())
    program = _interpreter(replace(empty(), hosts={1: PYTHON}), window)
    assert program
    assert not _interpreter(replace(empty(), hosts={2: PYTHON}), window)
    assert not _interpreter(empty(), window)


def test_the_slowest_thread_shows_how_slow_the_host_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def found(_: object, thread: int, within: tuple[int, int]) -> SlowCalls | None:
        asked.append(within)
        return {0: None, 1: SlowCalls("f", 9, 1.2), 2: SlowCalls("g", 9, 1.5)}[thread]

    monkeypatch.setattr("nsysmap.whatif.model.slow_calls", found)
    window = replace(window_of(two_kernels()), threads=(0, 1, 2))
    slowest = _slowed_down(empty(), window)
    assert slowest is not None
    assert slowest.api == "g"
    assert asked == [(10, 40)] * 3
    assert _slowed_down(empty(), replace(window, threads=(0,))) is None


def test_the_share_of_the_peak_that_a_kernel_needs_is_its_layer_s() -> None:
    reached = [{"layer_id": at, "roofline_fraction": share} for at, share in enumerate((0.25, 0.5))]
    facts = EngineFacts(
        layers=Table.empty(LAYERS),
        tensors=Table.empty(TENSORS),
        edges=Table.empty(EDGES),
        chains=Table.empty(CHAINS),
        chain_layers=Table.empty(CHAIN_LAYERS),
        roofline=Table.of_rows(ROOFLINE, reached),
        bindings=(),
    )
    layers: list[dict[str, object]] = [{"layer_id": 0}, {}, {"layer_id": 1}, {"layer_id": 2}]
    mapped = replace(model().observed, mapping=Table.of_rows(MAPPING, layers))
    rows = np.array([2, 0, 1, 3])
    shares = _roofline(mapped, facts, rows)
    assert np.nan_to_num(shares, nan=-1).tolist() == [0.5, 0.25, -1, -1]
    for observed, known in ((mapped, None), (model().observed, facts)):
        assert np.isnan(_roofline(observed, known, rows)).all()
    none = replace(facts, roofline=Table.empty(ROOFLINE))
    assert np.isnan(_roofline(mapped, none, rows)).all()


def test_one_dimension_that_is_not_known_before_the_run_makes_shapes_dynamic() -> None:
    def dynamic(*dimensions: str | None) -> bool:
        rows = [
            {"layer_id": 0, "name": "t", "direction": "in"}
            | ({} if one is None else {"dimensions": one})
            for one in dimensions
        ]
        tensors = Table.of_rows(TENSORS, rows)
        facts = EngineFacts(
            *(Table.empty(LAYERS), tensors, Table.empty(EDGES)),
            *(Table.empty(CHAINS), Table.empty(CHAIN_LAYERS), Table.empty(ROOFLINE)),
            (),
        )
        return has_dynamic_shapes(facts)

    assert dynamic("1x3", "-1x3")
    assert dynamic("3x-1", None)
    assert not dynamic("1x3", "1", None)
    assert not dynamic("3x-12")


# --- how far off
# ---


def test_the_range_of_recorded_graphs_is_the_root_of_the_sum_of_its_parts() -> None:
    one = graph(two_kernels(host_ns=4_000))
    found = model(one, bounds=(one, one), blocks=8)
    both = hypot(500 * 2, 2_500, 0.05 * found.work_ns, 0.35 * 4_000)
    assert placed_elsewhere_ns(found) == pytest.approx(0.25 / 3 * found.work_ns)
    below, above = recorded_spread(found)
    assert below == pytest.approx(0.6 * both, rel=1e-6)
    assert above == pytest.approx(hypot(0.5 * both, 0.25 / 3 * found.work_ns), rel=1e-6)
    passes = replace(found, window=replace(found.window, inferences_a_pass=2))
    scale, factor = RECORDED, FACTORS.recorded_graph
    dynamic = graph_spread(found, one, scale, factor, dynamic=True)
    assert dynamic[0] == below
    assert dynamic[1] == pytest.approx(hypot(above, 0.12 * found.work_ns))
    apart = each_step(
        one,
        lambda step: step._replace(works=tuple(w._replace(queue=w.number % 2) for w in step.works)),
    )
    beside = graph_spread(found, apart, scale, factor)[0]
    assert beside == pytest.approx(0.6 * hypot(both, 0.05 * found.work_ns), rel=1e-6)
    twice = hypot(500 * 4, 5_000, 0.05 * passes.work_ns, 0.35 * 8_000)
    assert recorded_spread(passes)[0] == pytest.approx(0.6 * twice, rel=1e-6)


@pytest.mark.parametrize(
    ("made_node_ns", "node_ns", "share", "branching"),
    [(WITH_ATTRIBUTES_NS, 500, 0.04, 0.03), (500, 360, 0.07, 0.05)],
)
def test_the_range_of_a_graph_that_is_made_is_by_how_it_is_launched(
    made_node_ns: int, node_ns: int, share: float, branching: float
) -> None:
    one = graph(two_kernels())
    one = replace(one, costs=replace(one.costs, made_node_ns=made_node_ns))
    found = model(one, bounds=(one, one))
    both = hypot(2 * node_ns, 2_500, share * found.work_ns)
    assert made_spread(found, one) == pytest.approx((0.7 * both, 0.55 * both))
    branches = each_step(
        one,
        lambda step: step._replace(works=tuple(w._replace(queue=w.number % 2) for w in step.works)),
    )
    both = hypot(both, branching * found.work_ns)
    assert made_spread(found, branches)[0] == pytest.approx(0.7 * both)


def test_pauses_count_only_where_something_held_the_host_up() -> None:
    paused = each_step(
        two_kernels(host_ns=1_000),
        lambda step: (
            step._replace(own_ns=101_000, outside_ns=101_000)
            if step.inference == 4 and step.own_ns
            else step
        ),
    )
    calm, held = (model(paused, held_up=one, recorded_ns=10**6) for one in (False, True))
    assert pauses_ns(calm) == 0.0
    assert pauses_ns(held) == 0.0  # one of eight is more than a tenth
    few = program(kernels=[10_000, 20_000], host_ns=1_000, inferences=20)
    few = each_step(
        few,
        lambda step: (
            step._replace(own_ns=101_000, outside_ns=101_000)
            if step.inference == 4 and step.own_ns
            else step
        ),
    )
    assert pauses_ns(model(few, held_up=True, recorded_ns=10**6)) == pytest.approx(
        100_000 / 19, rel=0.01
    )


def test_graphs_alone_are_told_from_other_launches_and_threads() -> None:
    plain, made = two_kernels(), graph(two_kernels())
    mixed = replace(made, threads=(made.threads[0] + plain.threads[0],))
    twice = replace(made, threads=made.threads * 2, weights=made.weights * 2)
    nothing = replace(plain, threads=((),), weights=({},))
    assert [only_graphs(one) for one in (plain, made, mixed, twice, nothing)] == [
        *(False, True, False, False, False)
    ]
    assert [all_graphs(one) for one in (plain, made, mixed, twice, None)] == [
        *(False, True, False, True, False)
    ]
    both = model(twice, bounds=(twice, twice))
    assert at_once_ns(both) == pytest.approx(0.06 * both.work_ns)
    assert at_once_ns(both) > 0
    assert at_once_ns(model(made, bounds=(made, made))) == 0.0
    launched = replace(plain, threads=plain.threads * 2, weights=plain.weights * 2)
    assert at_once_ns(model(launched, bounds=(launched, launched))) == 0.0
    idle = replace(made, threads=(*made.threads, ()), weights=(*made.weights, {}))
    assert at_once_ns(model(idle, bounds=(idle, idle))) == 0.0
