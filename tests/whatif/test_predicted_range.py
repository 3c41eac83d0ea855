"""The range of a prediction for a program of two kernels, and when there is none: worked out by
hand.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import numpy as np
import pytest

from nsysmap.core.table import IntArray, Table
from nsysmap.core.trace_schema import GPU_KERNELS, INFERENCES
from nsysmap.whatif.change import Change
from nsysmap.whatif.changes import (
    DoesNotApply,
    as_cuda_graph,
    without_host_gap,
    without_kernels,
    without_waits,
)
from nsysmap.whatif.model import Model, NoModel
from nsysmap.whatif.predict import (
    _between_ns,
    _communicator_reason,
    _gpu_allows,
    _least_ns,
    _most_ns,
    _period,
    _python_reason,
    _replayed,
    _saving_in_a_graph,
    predicted,
)
from nsysmap.whatif.profiler import MACHINES
from nsysmap.whatif.spread import made_spread, recorded_spread
from nsysmap.whatif.throughput import least_ns
from nsysmap.whatif.timeline import Timeline, each_step
from tests.figures import figures
from tests.whatif.test_model import BUSY, PERIOD, model, two_kernels
from tests.whatif.test_replay import graph, program
from tests.whatif.test_window import trace as empty

LIKELY, QUICK, SLOW = MACHINES
CLOCK = round(0.025 * BUSY)
ASYNC, TWO = Change("async"), Change("two-in-flight")


def row(one: Model | NoModel, change: Change) -> dict[str, object]:
    (found,) = predicted(one, [change]).whatif.records()
    return found


# --- without a change
# ---


def test_without_a_change_it_is_between_the_quick_and_the_slow_machine_and_the_clocks() -> None:
    assert _least_ns(model()) == round(37_500 * 0.993 - CLOCK)
    assert _most_ns(model()) == round(39_500 * 1.007 + CLOCK)


def test_it_is_no_less_than_the_gpu_s_work() -> None:
    nothing = two_kernels(call_ns=0)
    fast = each_step(nothing, lambda step: step._replace(call_ns=0))
    costs = replace(fast.costs, latency_ns=0, return_ns=0, dispatch_ns=0)
    assert _least_ns(model(bounds=(replace(fast, costs=costs), two_kernels()))) == BUSY


def test_it_is_no_more_than_recorded_unless_python_runs_it() -> None:
    assert _most_ns(model(recorded_ns=39_000)) == 39_000
    assert _most_ns(model(recorded_ns=38_000)) == 38_000
    assert _most_ns(model(recorded_ns=38_000, blocks=8)) == 38_000
    python = model(recorded_ns=38_000, blocks=8, interpreter="Python")
    assert _most_ns(python) == 39_900  # a twentieth more in another run


def test_kernels_of_few_blocks_may_take_longer() -> None:
    slow = 39_500 * 1.007 + CLOCK - PERIOD
    few = model(blocks=8)
    assert _most_ns(few) == round(PERIOD + hypot(slow, 0.25 / 3 * few.work_ns))
    assert _least_ns(few) == _least_ns(model())


def test_recorded_graphs_have_a_range_of_their_own() -> None:
    made = graph(two_kernels())
    one = model(made, bounds=(made, made))
    below, above = recorded_spread(one)
    before = one.before[LIKELY]
    assert (_least_ns(one), _most_ns(one)) == (
        max(round(before - below), one.work_ns),
        round(before + above),
    )
    python = replace(one, python=True)
    assert _most_ns(python) == round(before * 1.007) + round(0.025 * one.work_ns)


def test_graphs_of_two_threads_may_slow_each_other() -> None:
    made = graph(two_kernels())
    twice = replace(made, threads=made.threads * 2, weights=made.weights * 2)
    one = model(twice, bounds=(twice, twice))
    before, clock = one.before[LIKELY], round(0.025 * one.work_ns)
    beside = 0.06 * one.work_ns
    longer = hypot(before * 0.007 + clock, beside)
    assert _most_ns(one) == pytest.approx(before + longer, abs=2)
    assert _least_ns(one) == pytest.approx(max(before - longer, one.work_ns - beside), abs=2)


# --- with one
# ---


def test_after_a_change_it_is_between_the_quick_and_the_slow_machine_too() -> None:
    after = [{LIKELY: 36_000, QUICK: 35_000, SLOW: 37_000}]
    low, high = _between_ns(model(), Change("one-stream"), two_kernels(), after)
    assert low == round(35_000 * 0.993 - CLOCK)
    assert high == round(37_000 * 1.007 + CLOCK)
    low, high = _between_ns(model(), ASYNC, two_kernels(), after)
    assert low == round(36_000 - 1.3 * (36_000 - 35_000 * 0.993 + CLOCK))
    assert high == round(36_000 + 1.3 * (37_000 * 1.007 + CLOCK - 36_000))
    both = [*after, {LIKELY: 34_500, QUICK: 34_000, SLOW: 38_000}]
    low, high = _between_ns(model(), Change("one-stream"), two_kernels(), both)
    assert (low, high) == (round(34_000 * 0.993 - CLOCK), round(38_000 * 1.007 + CLOCK))


def test_it_is_no_less_than_the_work_that_is_left() -> None:
    after = [{LIKELY: 31_000, QUICK: 30_000, SLOW: 32_000}]
    same = _between_ns(model(), Change("one-stream"), two_kernels(), after)[0]
    assert same == BUSY - CLOCK
    half = program(kernels=[5_000, 10_000])
    shorter = [{LIKELY: 15_500, QUICK: 15_200, SLOW: 16_000}]
    assert _between_ns(model(), Change("drop-layers"), half, shorter)[0] == round(
        15_200 * 0.993 - CLOCK
    ) or _between_ns(model(), Change("drop-layers"), half, shorter)[0] == round((BUSY - CLOCK) / 2)
    more = program(kernels=[20_000, 40_000])
    longer = [{LIKELY: 31_000, QUICK: 30_000, SLOW: 32_000}]
    assert _between_ns(model(), Change("one-stream"), more, longer)[0] == BUSY - CLOCK
    beside = _between_ns(model(), TWO, two_kernels(), after)[0]
    assert beside == round(30_000 * 0.993 - CLOCK)  # kernels overlap: less is possible
    quick = [{LIKELY: 20_000, QUICK: 20_000, SLOW: 20_000}]
    assert _between_ns(model(), Change("one-stream"), two_kernels(), quick)[0] == 20_000


def test_after_a_change_to_graphs_the_range_is_that_of_graphs() -> None:
    one, made = model(), graph(two_kernels())
    below, above = made_spread(one, made)
    after = [{LIKELY: 36_000, QUICK: 30_000, SLOW: 50_000}]
    graphs = Change("cuda-graph")
    assert _between_ns(one, graphs, made, after) == (round(36_000 - below), round(36_000 + above))
    assert _between_ns(one, graphs, made, [{LIKELY: 1, QUICK: 1, SLOW: 1}])[0] == 0
    assert _between_ns(one, graphs, made, after * 2) != _between_ns(one, graphs, made, after)
    python = replace(one, python=True)
    assert _between_ns(python, graphs, made, after) == _between_ns(one, graphs, made, after * 2)


def test_more_kernels_at_once_take_at_least_what_the_hardware_needs() -> None:
    one = model(window={"work_of_all": 2.0, "inferences_a_pass": 2}, recorded_ns=10**6)
    timeline = each_step(
        two_kernels(),
        lambda step: step._replace(works=tuple(w._replace(need=1.0) for w in step.works)),
    )
    needed = round(least_ns(timeline, 1, one.phases) * 2 * 2)
    assert needed == 4 * BUSY
    assert _period(one, TWO, timeline, 10**6, None) == needed
    assert _period(one, TWO, timeline, 100_000, None) == 100_000
    assert _period(one, ASYNC, timeline, 10**6, None) == 2 * PERIOD


def seen(
    made: Timeline | None = None,
    *,
    need: float = 1.0,
    each_ns: int = 15_000,
    fields: dict[str, object] | None = None,
) -> Model:
    """The program as recorded by 100 us an inference, in which two kernels take so long each."""
    timeline = made or each_step(
        two_kernels(),
        lambda step: step._replace(works=tuple(w._replace(need=need) for w in step.works)),
    )
    window: dict[str, object] = {
        "begin_ns": np.array([1_000_000]),
        "end_ns": np.array([1_100_000]),
    }
    one = model(timeline, bounds=(timeline, timeline) if made else None, window=window)
    begins = [1_010_000, 1_050_000, *range(5_000_000, 20_000_000, 1_000_000)]  # others: elsewhere
    rows = [
        {"kernel_id": at, "name": "k", "process": 1, "device": 0, "start_ns": begin,
         "end_ns": begin + each_ns, **(fields or {})}
        for at, begin in enumerate(begins)
    ]  # fmt: skip
    trace = replace(empty(), kernels=Table.of_rows(GPU_KERNELS, rows))
    return replace(one, observed=replace(one.observed, trace=trace))


def test_where_kernels_fill_the_gpu_no_more_is_saved_than_idle_time_and_what_they_take() -> None:
    full, stream = seen(), Change("one-stream")
    timeline = full.likely
    busy = (30_000 - 2 * LIKELY.queued_saved_ns) / 100_000
    assert _gpu_allows(full, stream, timeline) == round(PERIOD - 100_000 * busy)
    half = each_step(
        timeline,
        lambda step: step._replace(works=tuple(w.lasting(w.dur_ns // 2) for w in step.works)),
    )
    assert _gpu_allows(full, stream, half) == round(PERIOD - 100_000 * busy / 2)
    assert _gpu_allows(full, stream, None) == PERIOD
    assert _gpu_allows(full, TWO, timeline) == 100_000
    nodes = seen(fields={"graph_node_id": 5})
    in_graph = (30_000 - 2 * LIKELY.node_saved_ns) / 100_000
    assert _gpu_allows(nodes, stream, timeline) == round(PERIOD - 100_000 * in_graph)
    for name in ("process", "device"):
        elsewhere = seen(fields={name: 2})
        assert _gpu_allows(elsewhere, stream, timeline) == PERIOD


@pytest.mark.parametrize(("need", "limited"), [(0.75, True), (0.7499, False)])
def test_kernels_fill_the_gpu_from_three_quarters_on(need: float, limited: bool) -> None:
    one = seen(need=need)
    assert (_gpu_allows(one, Change("one-stream"), one.likely) < 100_000) == limited


# --- no answer
# ---


@pytest.mark.parametrize(
    ("python", "host_ns", "saving", "low", "told"),
    [
        (True, 40_000, 10_000, 2_500, True),
        (True, 40_000, 10_000, 2_501, False),
        (True, 10_000, 10_000, 2_500, False),
        (False, 40_000, 10_000, 2_500, False),
    ],
)
def test_what_python_varies_by_may_be_more_than_a_change_saves(
    python: bool, host_ns: int, saving: int, low: int, told: bool
) -> None:
    timeline = two_kernels(host_ns=host_ns)
    one = model(timeline, python=python)
    reason = _python_reason(one, ASYNC, timeline, saving, (low, 20_000))
    assert bool(reason) == told
    if told:
        share = one.outside_share(timeline)
        assert figures(reason)[0] == f"{100 * share:.0f}"
        assert "one-graph" not in reason


def test_a_second_thread_of_inferences_that_exchange_data_is_not_known() -> None:
    def of(name: str, start_ns: int) -> Model:
        rows = [
            {"kernel_id": 0, "name": "k", "start_ns": 12, "end_ns": 13},
            {"kernel_id": 1, "name": name, "start_ns": start_ns, "end_ns": start_ns + 1},
        ]
        one = model()
        trace = replace(empty(), kernels=Table.of_rows(GPU_KERNELS, rows))
        return replace(one, observed=replace(one.observed, trace=trace))

    nccl = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)"
    assert _communicator_reason(of(nccl, 15), TWO)
    assert not _communicator_reason(of(nccl, 25), TWO)  # between the stretches
    assert not _communicator_reason(of(nccl, 15), ASYNC)
    assert not _communicator_reason(of("k2", 15), TWO)


def test_without_a_model_every_change_has_the_same_reason() -> None:
    found = row(NoModel("why", recorded_ns=5, error=0.5), ASYNC)
    assert (found["answer"], found["reason"]) == ("cannot-tell", "why")
    assert (found["recorded_ns"], found["replay_error"]) == (5, 0.5)
    graphs = NoModel("why {:an inference}", graphs=True, repetitions=True)
    assert row(graphs, ASYNC)["reason"] == "why a repetition"
    assert row(graphs, Change("cuda-graph"))["answer"] == "does-not-apply"
    assert row(NoModel("why"), Change("cuda-graph"))["answer"] == "cannot-tell"
    assert row(NoModel("why {:an inference}"), ASYNC)["reason"] == "why an inference"


# --- which inferences
# ---


@pytest.mark.parametrize(
    ("steady", "stood_for", "threads", "numbers", "word"),
    [
        (8, 7.0, 1, ["8"], "Replay of all"),
        (20, 18.0, 1, ["8", "20"], "stand for all."),
        (20, 17.0, 1, ["8", "20"], "all but outliers"),
        (20, 16.0, 2, ["8", "20"], "stand for all."),
        (20, 15.0, 2, ["8", "20"], "all but outliers"),
    ],
)
def test_it_is_said_which_inferences_are_replayed(
    steady: int, stood_for: float, threads: int, numbers: list[str], word: str
) -> None:
    rows = [{"inference": at, "complete": True, "process": 1, "device": 0} for at in range(steady)]
    rows += [
        {"inference": 90, "complete": True, "process": 2, "device": 0},
        {"inference": 91, "complete": True, "process": 1, "device": 1},
        {"inference": 92, "complete": False, "process": 1, "device": 0},
        {"inference": 93, "complete": True, "process": 1, "device": 0, "warmup": True},
    ]
    one = model(window={"weights": ({1: stood_for},), "threads": tuple(range(threads))})
    observed = replace(one.observed, inferences=Table.of_rows(INFERENCES, rows))
    text = _replayed(replace(one, observed=observed))
    assert figures(text) == numbers
    assert word in text


# --- the whole row
# ---


def test_a_row_has_the_figures_of_its_replays() -> None:
    one = model()
    found = row(one, ASYNC)
    assert found["answer"] == "answered"
    assert (found["before_ns"], found["recorded_ns"], found["inferences"]) == (PERIOD, 100_000, 1)
    assert (found["low_before_ns"], found["high_before_ns"]) == (_least_ns(one), _most_ns(one))
    times = [
        one.period(changed)
        for changed in map(without_waits, one.without.values())
        if isinstance(changed, Timeline)
    ]
    assert found["after_ns"] == times[0]
    assert found["saving_ns"] == PERIOD - times[0] > 0
    savings = [before - after for before, after in zip(one.before.values(), times, strict=True)]
    spread = 0.6 * (max(times) - min(times)) / 2 + 0.007 * PERIOD
    told = savings[0]
    assert found["low_saving_ns"] == round(told - 1.3 * (told - min(savings) + spread))
    high = told + 1.3 * (max(savings) + spread - told)
    low_after, high_after = _between_ns(
        one, ASYNC, two_kernels(), [dict(zip(MACHINES, times, strict=True))]
    )
    assert found["high_saving_ns"] == round(min(high, _most_ns(one) - low_after))
    assert found["low_after_ns"] == low_after
    assert found["high_after_ns"] == max(high_after, times[0])
    assert not found["kernels_beside"]


def test_where_kernels_fill_the_gpu_the_saving_is_limited_and_so_is_its_range() -> None:
    """80 of 100 us are kernels': of 50 us of the host's own work little can be saved."""
    timeline = each_step(
        two_kernels(host_ns=50_000),
        lambda step: step._replace(works=tuple(w._replace(need=1.0) for w in step.works)),
    )
    one = seen(timeline, each_ns=40_000)
    before = one.before[LIKELY]
    assert before == PERIOD + 50_000
    most = _gpu_allows(one, Change("no-host-gap"), timeline)
    assert most == before - (80_000 - 2 * LIKELY.queued_saved_ns)
    found = row(one, Change("no-host-gap"))
    changed = [
        one.period(without)
        for without in map(without_host_gap, one.without.values())
        if isinstance(without, Timeline)
    ]
    spread = 0.6 * (max(changed) - min(changed)) / 2 + 0.007 * before
    assert (found["saving_ns"], found["after_ns"]) == (most, before - most)
    assert found["low_saving_ns"] == round(min(most - spread, _low(one, changed, spread)))
    assert found["high_saving_ns"] == round(most + spread)
    assert not len(predicted(one, [Change("no-host-gap")]).whatif_inferences)
    assert row(seen(timeline, each_ns=15_000), Change("no-host-gap"))["saving_ns"] == 50_000


def _low(one: Model, changed: list[int], spread: float) -> float:
    return min(now - then for now, then in zip(one.before.values(), changed, strict=True)) - spread


def test_a_graph_of_python_s_is_compared_with_another_run() -> None:
    one = model(interpreter="Python")
    graphs = Change("cuda-graph")
    found = row(one, graphs)
    times = {
        machine: one.period(changed)
        for machine, timeline in one.without.items()
        for changed in (as_cuda_graph(timeline, branches_ns=machine.branches_ns),)
        if isinstance(changed, Timeline)
    }
    likely = as_cuda_graph(one.likely, branches_ns=LIKELY.branches_ns)
    assert isinstance(likely, Timeline)
    low_after, high_after = _between_ns(one, graphs, likely, [times])
    told = PERIOD - times[LIKELY]
    assert found["saving_ns"] == told
    spread = 0.6 * (max(times.values()) - min(times.values())) / 2 + 0.007 * PERIOD
    savings = [one.before[machine] - times[machine] for machine in MACHINES]
    apart = hypot(PERIOD - _least_ns(one), high_after - times[LIKELY])
    assert found["low_saving_ns"] == round(min(min(savings) - spread, told - apart))
    apart = hypot(_most_ns(one) - PERIOD, times[LIKELY] - low_after)
    high = max(max(savings) + spread, told + apart)
    assert found["high_saving_ns"] == round(min(high, _most_ns(one) - low_after))
    plain = row(model(), graphs)
    assert plain["low_saving_ns"] == round(min(savings) - spread)
    assert plain["high_saving_ns"] == round(
        min(max(savings) + spread, _most_ns(model()) - low_after)
    )


def test_what_the_host_s_pace_changes_after_it_is_in_the_range_of_a_saving() -> None:
    """Launches take 1 us less and more after the change as before: 5 us are saved by each."""
    likely, quick, slow = (two_kernels(host_ns=5_000, call_ns=ns) for ns in (3_000, 2_000, 4_000))
    one = model(likely, bounds=(quick, slow))
    found = row(one, Change("no-host-gap"))
    spread = 0.6 * 2_000 / 2 + 0.007 * (PERIOD + 5_000)
    assert found["saving_ns"] == 5_000
    assert found["low_saving_ns"] == round(5_000 - spread)
    assert found["high_saving_ns"] == round(5_000 + spread)


def test_only_graphs_of_another_interpreter_than_pytorch_s_are_compared_with_another_run() -> None:
    plain = row(model(), ASYNC)
    assert row(model(interpreter="Python"), ASYNC)["low_saving_ns"] == plain["low_saving_ns"]
    graphs = Change("cuda-graph")
    torch = row(model(interpreter="Python", python=True), graphs)
    assert torch["low_saving_ns"] == row(model(), graphs)["low_saving_ns"]
    assert row(model(interpreter="Python"), graphs)["low_saving_ns"] != torch["low_saving_ns"]


class Half:
    """In place of what finds kernels by name: those of 10 us."""

    def matching(self, _: object) -> IntArray:
        return np.arange(1, 17, 2)

    def named(self, _: object) -> str:
        return "half"


def test_what_drops_kernels_has_the_saving_in_a_graph_in_its_range() -> None:
    one = model()
    vars(one)["selection"] = Half()
    found = row(one, Change("drop-layers", layers=("half",)))
    dropped = frozenset(range(1, 17, 2))
    likely = without_kernels(one.likely, dropped)
    made = as_cuda_graph(one.likely, branches_ns=LIKELY.branches_ns)
    assert isinstance(likely, Timeline)
    assert isinstance(made, Timeline)
    less = without_kernels(made, dropped)
    assert isinstance(less, Timeline)
    in_a_graph = one.period(made) - one.period(less)
    assert found["saving_ns"] == PERIOD - one.period(likely)
    assert int(str(found["low_saving_ns"])) <= in_a_graph <= int(str(found["high_saving_ns"]))
    assert _saving_in_a_graph(one, lambda timeline, _: without_kernels(timeline, dropped)) == (
        in_a_graph
    )
    assert _saving_in_a_graph(one, lambda _, __: DoesNotApply("no")) is None
    graphs = model(made, bounds=(made, made))
    assert _saving_in_a_graph(graphs, lambda timeline, _: timeline) is None


def test_single_inferences_have_their_times_before_and_after() -> None:
    each = predicted(model(), [ASYNC]).whatif_inferences.records()
    assert [one["inference"] for one in each] == list(range(1, 8))
    assert {one["before_ns"] for one in each} == {PERIOD}
    # what no longer waits takes what the GPU takes, once it is busy
    assert {one["after_ns"] for one in each[2:]} == {BUSY + 2 * 1_000}
    assert not len(predicted(model(), [TWO]).whatif_inferences)


def test_what_cannot_be_made_has_its_reason_and_no_figures() -> None:
    made = graph(two_kernels())
    found = row(model(made, bounds=(made, made)), Change("cuda-graph"))
    assert (found["answer"], found["after_ns"]) == ("does-not-apply", None)
    assert found["before_ns"] is not None
    streams = row(model(), Change("aux-streams"))
    assert (streams["answer"], streams["after_ns"]) == ("cannot-tell", None)
