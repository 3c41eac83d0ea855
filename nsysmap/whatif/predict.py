"""Predicts what a change to the program would save: replays its timeline with and without the
change.

All figures are for a run without the profiler, in nanoseconds per inference: wall time divided by
inferences, whatever their latency.  The replay must first reproduce its trace, profiler included;
otherwise there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import hypot

import numpy as np

from nsysmap.advice.program import is_collective
from nsysmap.core.groups import distinct
from nsysmap.core.intervals import covered
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import WHATIF, WHATIF_INFERENCES
from nsysmap.core.table import MISSING, Table
from nsysmap.text.units import duration, percent, range_of, worded
from nsysmap.whatif.change import Change
from nsysmap.whatif.changes import ALREADY_A_GRAPH, DoesNotApply, as_cuda_graph, as_one_graph
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model, NoModel, Observed, read_model
from nsysmap.whatif.plans import Make, plan_of
from nsysmap.whatif.profiler import MACHINES, Machine
from nsysmap.whatif.replay import Finished, lengths_ns, replay
from nsysmap.whatif.spread import (
    FACTORS,
    all_graphs,
    at_once_ns,
    made_spread,
    only_graphs,
    placed_elsewhere_ns,
    recorded_spread,
)
from nsysmap.whatif.throughput import least_ns
from nsysmap.whatif.timeline import Timeline, all_works, inference_count

NOISE = 0.007
"""Share of the time by which two runs of a GPU-bound program differ."""

RUN_TO_RUN = 0.6
"""Two runs of one program differ: this share of the effect of a faster or slower host may also
occur between the runs before and after the change.
"""


_OTHER_CLOCK = 0.025
"""The GPU's work may take longer or shorter without the profiler by this part of what remains of
the recorded durations. Of 28 engines that TensorRT built, the same kernels took up to 1.2 % more or
less in another capture in streams, and 3 % more in a graph in the median.
"""

# of nine TensorRT engines launched by Python, two took 3 % longer without the profiler than in
# their trace
_ANOTHER_RUN = 0.05
_AT_THE_ENDS = 2  # inferences of a thread: one has none before it, one none behind it
_PYTHON_STAYS = 0.3  # share of the time after a change that is Python's own work
# lower end of a saving as a share of it, from which on the saving of a program bound by Python is
# given
_SURE = 0.25

_FILLED = 0.75
"""If kernels use at least this average share of the GPU, they are assumed to leave no room for
others.
"""


def what_if(
    observed: Observed,
    facts: EngineFacts | None,
    changes: Sequence[Change],
    *,
    machines: tuple[Machine, ...] = MACHINES,
) -> Table:
    """One row per change (WHATIF): its figures, why it does not apply, or why they cannot be
    determined.
    """
    return predicted(read_model(observed, facts, machines), changes).whatif


@dataclass(frozen=True)
class Predicted:
    """The tables of what-if: the answers, and the effect of answered changes on single
    inferences.
    """

    whatif: Table
    whatif_inferences: Table


def predicted(model: Model | NoModel, changes: Sequence[Change]) -> Predicted:
    """The same for a model that has already been read, with the times of its inferences."""
    if isinstance(model, NoModel):
        shared = {
            "answer": "cannot-tell",
            "assumptions": "",
            "reason": model.reason,
            "recorded_ns": model.recorded_ns,
            "replay_error": model.error,
        }
        made = {"answer": "does-not-apply", "reason": ALREADY_A_GRAPH}
        rows = [
            {
                "change": change.name,
                **shared,
                **(made if model.graphs and change.name == "cuda-graph" else {}),
            }
            for change in changes
        ]
        return Predicted(_answers(rows, model.repetitions), Table.empty(WHATIF_INFERENCES))
    each: list[dict[str, object]] = []
    between = _LeastAndMost(_least_ns(model), _most_ns(model))
    answers = [_row(model, between, change, each) for change in changes]
    return Predicted(
        _answers(answers, model.observed.repetitions), Table.of_rows(WHATIF_INFERENCES, each)
    )


def _answers(rows: Iterable[Mapping[str, object]], repetitions: bool) -> Table:
    """The table of the answers. Their sentences have a placeholder for the word for what runs."""

    def filled(value: object) -> object:
        return worded(value, repetitions=repetitions) if isinstance(value, str) else value

    return Table.of_rows(
        WHATIF, [{name: filled(value) for name, value in row.items()} for row in rows]
    )


@dataclass(frozen=True)
class _LeastAndMost:
    """The shortest and the longest time without a change."""

    least_ns: int
    most_ns: int


def _row(
    model: Model, between: _LeastAndMost, change: Change, each: list[dict[str, object]]
) -> dict[str, object]:
    """The answer for one change; its effect on single inferences is added to ``each``."""
    before, likely = model.before, model.machines[0]
    row: dict[str, object] = {
        "change": change.name,
        "inferences": model.window.inferences_a_pass,
        "before_ns": before[likely],
        "low_before_ns": between.least_ns,
        "high_before_ns": between.most_ns,
        "recorded_ns": model.recorded_ns,
        "replay_error": model.error,
        "assumptions": "",
    }
    plan = plan_of(model, change)
    if isinstance(plan, DoesNotApply):
        return {**row, "answer": "does-not-apply", "reason": plan.reason}
    if reason := _communicator_reason(model, change):
        return {**row, "answer": "cannot-tell", "reason": reason}
    likeliest: Timeline | None = None
    ends: Finished = ()  # of its inferences
    after: list[dict[Machine, int]] = []
    for make in plan.makes:
        first = make(model.likely, likely)
        if not isinstance(first, Timeline):
            return {
                **row,
                "answer": "does-not-apply" if isinstance(first, DoesNotApply) else "cannot-tell",
                "reason": first.reason,
            }
        if likeliest is None:
            likeliest, ends = first, replay(first)
        times: dict[Machine, int] = {}
        for machine, timeline in model.without.items():
            changed = first if machine == likely else make(timeline, machine)
            if isinstance(changed, Timeline):
                known = ends if changed is likeliest else None
                times[machine] = _period(model, change, changed, before[machine], known)
        after.append(times)
    savings = [before[machine] - times[machine] for times in after for machine in times]
    spread = (
        RUN_TO_RUN * (max(after[0].values()) - min(after[0].values())) / 2 + NOISE * before[likely]
    )
    low_after_ns, high_after_ns = _between_ns(model, change, likeliest, after)
    # a slower host may have more to save than the likely one takes in total: limited to the same
    # share
    most = max(
        (before[machine] - times[machine]) / max(before[machine], 1)
        for times in after
        for machine in times
    )
    factor, told = FACTORS.changes.get(change.name, 1.0), before[likely] - after[0][likely]
    low = told - factor * (told - min(savings) + spread)
    high = told + factor * (max(savings) + spread - told)
    high = high if high < before[likely] else most * before[likely]
    apart = bool(model.interpreter) and not model.python and all_graphs(likeliest)
    if apart:  # the runs of Python before and after it differ, each by itself
        then = after[0][likely]
        low = min(low, told - hypot(before[likely] - between.least_ns, high_after_ns - then))
        high = max(high, told + hypot(between.most_ns - before[likely], then - low_after_ns))
    high = min(high, between.most_ns - low_after_ns)
    for make in plan.also_in_a_graph:
        saving = _saving_in_a_graph(model, make)
        if saving is not None:
            low, high = min(low, saving), max(high, saving)
    saving, assumptions = told, f"{_basis(model)} {plan.assumptions}"
    most_saved = _gpu_allows(model, change, likeliest)
    limited = saving > most_saved + spread
    if limited:
        saving, low, high = (
            most_saved,
            min(low, most_saved - spread),
            min(high, most_saved + spread),
        )
        assumptions += (
            " The saving is limited to the GPU's idle time and the time of the kernels removed,"
            " because the others fill the GPU."
        )
    if likeliest is not None and (
        reason := _python_reason(model, change, likeliest, saving, (low, high))
    ):
        return {
            **row,
            "answer": "cannot-tell",
            "reason": reason,
            "may_save_low_ns": round(low),
            "may_save_high_ns": round(high),
        }
    if likeliest is not None and not limited and not change.declared.more_kernels_at_once:
        each += _inferences(model, change, likeliest, ends)
    figure = before[likely] - saving
    return {
        **row,
        "answer": "answered",
        "after_ns": figure,
        "low_after_ns": low_after_ns,
        "high_after_ns": max(high_after_ns, figure),
        "saving_ns": saving,
        "low_saving_ns": round(low),
        "high_saving_ns": round(high if apart or high < before[likely] else most * before[likely]),
        "assumptions": assumptions,
        "kernels_beside": plan.beside,
    }


def _clock_ns(model: Model) -> int:
    """How much longer or shorter the GPU's work may take in another run, in ns per inference or
    pass.
    """
    return round(_OTHER_CLOCK * model.work_ns)


def _between_ns(
    model: Model, change: Change, changed: Timeline | None, after: Sequence[dict[Machine, int]]
) -> tuple[int, int]:
    """The shortest and the longest time after a change."""
    likely = after[0][model.machines[0]]
    if _of_graphs(model, changed) and changed is not None and len(after) == 1:
        below, above = made_spread(model, changed)
        return max(round(likely - below), 0), round(likely + above)
    least, most = (edge(edge(times.values()) for times in after) for edge in (min, max))
    clock_ns, factor = _clock_ns(model), FACTORS.changes.get(change.name, 1.0)
    longer = round(hypot(clock_ns, placed_elsewhere_ns(model)))
    low = likely - factor * (likely - least * (1 - NOISE) + clock_ns)
    if changed is not None and not change.declared.more_kernels_at_once:
        now, then = (
            sum(work.dur_ns for work in all_works(one)) / max(inference_count(one), 1)
            for one in (model.likely, changed)
        )
        low = max(low, min((model.work_ns - clock_ns) * min(then / max(now, 1), 1.0), least))
    return round(low), round(likely + factor * (most * (1 + NOISE) + longer - likely))


def _of_graphs(model: Model, timeline: Timeline | None) -> bool:
    """Whether only CUDA graphs set the timeline's pace, so that their range applies."""
    return timeline is not None and only_graphs(timeline) and not model.python


def _least_ns(model: Model) -> int:
    """The shortest time without a change: that on a faster host, but no less than the
    GPU's work.
    """
    before = model.before[model.machines[0]]
    if _of_graphs(model, model.likely):
        below = recorded_spread(model)[0]
    else:
        least = min(model.before.values()) * (1 - NOISE) - _clock_ns(model)
        below = hypot(_factor(model) * (before - least), at_once_ns(model))
    return min(max(round(before - below), round(model.work_ns - at_once_ns(model))), before)


def _factor(model: Model) -> float:
    """The factor that widens the range of the time of a program that launches kernels one
    by one.
    """
    several = sum(bool(steps) for steps in model.likely.threads) > 1
    return FACTORS.threads if several else FACTORS.launches


def _most_ns(model: Model) -> int:
    """The longest time without a change: that on a slower host, but at most the recorded time,
    because the profiler only adds time, or for a program launched by Python what another run may
    take.
    """
    before = model.before[model.machines[0]]
    if _of_graphs(model, model.likely):
        above = recorded_spread(model)[1]
    else:
        slow = max(model.before.values()) * (1 + NOISE) + _clock_ns(model)
        longer = hypot(at_once_ns(model), placed_elsewhere_ns(model))
        above = hypot(_factor(model) * (slow - before), longer)
    recorded = (
        round(model.recorded_ns * (1 + _ANOTHER_RUN)) if model.interpreter else model.recorded_ns
    )
    return max(min(round(before + above), recorded), before)


def _inferences(
    model: Model, change: Change, timeline: Timeline, ends: Finished
) -> list[dict[str, object]]:
    """The time of each replayed inference, with and without the change."""
    now = lengths_ns(model.likely, model.finished)
    return [
        {
            "change": change.name,
            "inference": int(own[place]),
            "before_ns": stop - start,
            "after_ns": after[place][1] - after[place][0],
        }
        for own, before, after in zip(
            model.window.inferences, now, lengths_ns(timeline, ends), strict=True
        )
        for place, (start, stop) in before.items()
        if place in after
    ]


def _period(
    model: Model, change: Change, timeline: Timeline, before_ns: int, finished: Finished | None
) -> int:
    """Time per inference or pass of the changed timeline. If more kernels overlap than before, at
    least the hardware's time for one, which is the GPU's work for one averaged over the whole run.
    """
    more = change.declared.more_kernels_at_once
    needed = (
        least_ns(timeline, len(model.likely.threads), model.phases)
        * model.window.inferences_a_pass
        * model.window.work_of_all
        if more
        else 0
    )
    return max(model.period(timeline, finished), min(round(needed), before_ns))


def _communicator_reason(model: Model, change: Change) -> str:
    """Why the effect of a second thread on inferences that exchange data cannot be determined;
    empty for other changes and programs.
    """
    names = model.observed.trace.kernels.text("name")
    if change.declared.at_once is None or not any(map(is_collective, names.values)):
        return ""
    codes = names.codes[model.window.rows(model.observed.trace.kernels)]
    if not any(
        is_collective(names.values[code])
        for code in distinct(codes[codes >= 0].astype(np.int64)).tolist()
    ):
        return ""
    return (
        "the {:inference}s exchange data with other GPUs (NCCL), and the replay is of one GPU; on"
        " one communicator, both in flight must be launched in the same order on every GPU, or they"
        " wait for each other forever"
    )


def _python_reason(
    model: Model, change: Change, changed: Timeline, saving: float, between: tuple[float, float]
) -> str:
    """Why the saving cannot be determined in a program bound by Python; empty if it can."""
    share, (low, high) = (model.outside_share(changed) if model.python else 0.0), between
    if share < _PYTHON_STAYS or low > _SURE * saving:
        return ""
    whole = (
        as_one_graph(model.likely, a_pass=model.window.inferences_a_pass, branches_ns=0)
        if change.name == "cuda-graph"
        else None
    )
    away = isinstance(whole, Timeline)
    which = f"then {share:.0%} of the time{', which one-graph takes away too' if away else ''}"
    return (
        f"Python's own work, {which}, varies by a quarter or more between runs: it may save"
        f" {_between(low, high)}"
    )


def _replayed(model: Model) -> str:
    """The number of replayed inferences, and which ones they are."""
    inferences, window = model.observed.inferences, model.window
    steady = inferences.bools("complete") & ~inferences.bools("warmup")
    mine = (
        steady
        & (inferences.ints("process") == window.process)
        & (inferences.ints("device") == window.device)
    )
    replayed, all_of_them = inference_count(model.timeline), int(np.count_nonzero(mine))
    if replayed >= all_of_them:
        return f"Replay of all {all_of_them} steady-state {{:inference}}s."
    stood_for = round(sum(sum(one.values()) for one in window.weights))
    whole = (
        "all"
        if stood_for >= all_of_them - _AT_THE_ENDS * len(window.threads)
        else "all but outliers"
    )
    return (
        f"Replay of {replayed} of {all_of_them} steady-state {{:inference}}s, from the beginning,"
        f" middle and end; they stand for {whole}."
    )


def _between(low: float, high: float) -> str:
    between = range_of(round((low + high) / 2), round(low), round(high))
    return f"{between.ends} {between.unit}"


def _gpu_allows(model: Model, change: Change, changed: Timeline | None) -> int:
    """The largest possible saving in nanoseconds if kernels fill the GPU and run no more
    concurrently than now: idle time, and the kernels that are not in the changed timeline.
    """
    if change.declared.more_kernels_at_once:
        return model.recorded_ns
    kernels, window = model.observed.trace.kernels, model.window
    there = kernels.take(window.touching(kernels))
    mine = (there.ints("process") == window.process) & (there.ints("device") == window.device)
    start, end = there.ints("start_ns")[mine], there.ints("end_ns")[mine]
    length = int((window.end_ns - window.begin_ns).sum())
    nodes = there.ints("graph_node_id")[mine][window.holds(start)] != MISSING
    likely = model.machines[0]
    saved = int(np.where(nodes, likely.node_saved_ns, likely.queued_saved_ns).sum())
    busy = (int(covered(start, end, (window.begin_ns, window.end_ns)).sum()) - saved) / max(
        length, 1
    )
    now = sum(work.dur_ns for work in all_works(model.likely) if work.kind == "kernel")
    left = (
        [work for work in all_works(changed) if work.kind == "kernel"]
        if changed is not None
        else []
    )
    then = sum(work.dur_ns for work in left)
    if sum(work.dur_ns * work.need for work in left) < _FILLED * then:
        return model.recorded_ns
    time_ns = min(model.before[model.machines[0]], model.recorded_ns)
    return round(time_ns - model.recorded_ns * max(busy, 0.0) * then / max(now, 1))


def _saving_in_a_graph(model: Model, make: Make) -> int | None:
    likely = model.machines[0]
    graph = as_cuda_graph(model.likely, branches_ns=likely.branches_ns)
    changed = make(graph, likely) if isinstance(graph, Timeline) else None
    return (
        model.period(graph) - model.period(changed)
        if isinstance(graph, Timeline) and isinstance(changed, Timeline)
        else None
    )


def _basis(model: Model) -> str:
    """The assumptions common to all changes."""
    profiler, (likely, quick, slow) = model.profiler, model.machines
    return " ".join(
        [
            (
                f"{_replayed(model)} Replayed as captured, they take the captured time"
                f" ({duration(model.recorded_ns)} per {model.unit}, profiler included) to within"
                f" {percent(abs(model.error), 1)}."
            ),
            *model.window.notes,
            (
                "Corrected for the profiler: without it, a kernel with the gap before it takes"
                f" {duration(likely.queued_saved_ns)} less"
                f" ({_between(slow.queued_saved_ns, quick.queued_saved_ns)}), in a CUDA graph"
                f" {duration(likely.node_saved_ns)}"
                f" ({_between(slow.node_saved_ns, quick.node_saved_ns)}), a launch call"
                f" {duration(profiler.call_ns)} less, and range events and the profiler's own calls"
                " take no time."
            ),
            (
                f"The range assumes launches from {1 - quick.launch:.0%} faster to"
                f" {slow.launch - 1:.0%} slower than that, the host's own work from"
                f" {1 - quick.own:.0%} faster to {slow.own - 1:.0%} slower, and blocking copies up"
                f" to {slow.staging - 1:.0%} slower."
            ),
        ]
    )
