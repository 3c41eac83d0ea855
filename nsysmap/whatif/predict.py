"""What a change to the program would bring: its timeline is replayed with and without it.

All figures are for a run without the profiler, in ns per inference: wall time over inferences, whatever their latency.  The replay
must first reproduce the trace that it was made from, under the profiler; where it does not there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.base.result_schema import WHATIF
from nsysmap.base.table import Table
from nsysmap.base.units import duration
from nsysmap.whatif.change import Change
from nsysmap.whatif.changes import DoesNotApply, as_cuda_graph
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model, NoModel, Observed, read_model
from nsysmap.whatif.plans import Make, plan_of
from nsysmap.whatif.profiler import MACHINES, Machine
from nsysmap.whatif.timeline import Timeline, inference_count

NOISE = 0.007
"""Share of the time by which two runs of one program differ where the GPU sets the pace."""

RUN_TO_RUN = 0.5
"""Two runs of one program differ: of what a quicker or slower host changes of the time after, so much may come between the runs before and
after as well."""


def what_if(observed: Observed, facts: EngineFacts | None, changes: Sequence[Change], *, machines: tuple[Machine, ...] = MACHINES) -> Table:
    """One row a change (WHATIF): its figures, or why it does not apply, or why they cannot be told."""
    return predicted(read_model(observed, facts, machines), changes)


def predicted(model: Model | NoModel, changes: Sequence[Change]) -> Table:
    """The same for a model that is read already."""
    if isinstance(model, NoModel):
        shared = {
            "answer": "cannot-tell",
            "assumptions": "",
            "reason": model.reason,
            "recorded_ns": model.recorded_ns,
            "replay_error": model.error,
        }
        return Table.of_rows(WHATIF, [{"change": change.name, **shared} for change in changes])
    return Table.of_rows(WHATIF, [_row(model, change) for change in changes])


def _row(model: Model, change: Change) -> dict[str, object]:
    before, likely = model.before, model.machines[0]
    row: dict[str, object] = {
        "change": change.name,
        "inferences": model.window.inferences_a_pass,
        "before_ns": before[likely],
        "low_before_ns": round(min(before.values()) * (1 - NOISE)),
        "high_before_ns": round(max(before.values()) * (1 + NOISE)),
        "recorded_ns": model.recorded_ns,
        "replay_error": model.error,
        "assumptions": "",
    }
    plan = plan_of(model, change)
    if isinstance(plan, DoesNotApply):
        return {**row, "answer": "does-not-apply", "reason": plan.reason}
    after: list[dict[Machine, int]] = []
    for make in plan.makes:
        timelines = {machine: make(timeline, machine) for machine, timeline in model.without.items()}
        first = timelines[likely]
        if not isinstance(first, Timeline):
            return {**row, "answer": "does-not-apply" if isinstance(first, DoesNotApply) else "cannot-tell", "reason": first.reason}
        after.append({machine: model.period(timeline) for machine, timeline in timelines.items() if isinstance(timeline, Timeline)})
    savings = [before[machine] - times[machine] for times in after for machine in times]
    spread = RUN_TO_RUN * (max(after[0].values()) - min(after[0].values())) / 2 + NOISE * before[likely]
    low, high = min(savings) - spread, max(savings) + spread
    for make in plan.also_in_a_graph:
        saving = _saving_in_a_graph(model, make)
        if saving is not None:
            low, high = min(low, saving), max(high, saving)
    figure = after[0][likely]
    # a host slower than the likely one may have more to save than the likely one takes altogether: no larger share than there
    most = max((before[machine] - times[machine]) / max(before[machine], 1) for times in after for machine in times)
    return {
        **row,
        "answer": "answered",
        "after_ns": figure,
        "low_after_ns": round(min(min(times.values()) for times in after) * (1 - NOISE)),
        "high_after_ns": round(max(max(times.values()) for times in after) * (1 + NOISE)),
        "saving_ns": before[likely] - figure,
        "low_saving_ns": round(low),
        "high_saving_ns": round(high if high < before[likely] else most * before[likely]),
        "assumptions": f"{_basis(model)} {plan.assumptions}",
    }


def _saving_in_a_graph(model: Model, make: Make) -> int | None:
    likely = model.machines[0]
    graph = as_cuda_graph(model.likely, branches_ns=likely.branches_ns)
    changed = make(graph, likely) if isinstance(graph, Timeline) else None
    return model.period(graph) - model.period(changed) if isinstance(graph, Timeline) and isinstance(changed, Timeline) else None


def _basis(model: Model) -> str:
    """What holds for every change."""
    profiler, (_, quick, slow) = model.profiler, model.machines
    return " ".join(
        [
            f"Replay of {inference_count(model.timeline)} steady inferences; without the change it is {abs(model.error):.1%} off the trace "
            f"({duration(model.recorded_ns)} per {model.unit} under the profiler).",
            *model.window.notes,
            f"Corrected for the profiler: without it a kernel takes {duration(profiler.kernel_ns)} less, a launch call "
            f"{duration(profiler.call_ns)} less, range events and the profiler's own calls nothing.",
            f"The range takes launches from {1 - quick.launch:.0%} quicker to {slow.launch - 1:.0%} slower than that, and queued kernels "
            f"{quick.queued_ns / 1000:.2g} to {slow.queued_ns / 1000:.2g} µs further apart than recorded; the host's own work "
            f"from {1 - quick.own:.0%} quicker to {slow.own - 1:.0%} slower, blocking copies to {slow.staging - 1:.0%} slower.",
        ]
    )
