"""What a change to the program would bring: its timeline is replayed with and without it.

All figures are for a run without the profiler, in ns per inference: wall time over inferences, whatever their latency.  The replay
must first reproduce the trace that it was made from, under the profiler; where it does not there is no answer.  What is known of the
profiler's part, and of costs that the trace does not show, is in :mod:`nsysmap.whatif.calibration`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from nsysmap.base.errors import NsysmapError
from nsysmap.base.result_schema import WHATIF
from nsysmap.base.table import IntArray, Table, Text
from nsysmap.trace.model import Trace
from nsysmap.whatif.calibration import LIKELY, MACHINES, Machine, calibrate, profiler_costs
from nsysmap.whatif.changes import (
    EMPTY_KERNEL_NS,
    Changed,
    DoesNotApply,
    as_cuda_graph,
    most_filling,
    one_stream_in_flight,
    outside_ns,
    shortest_kernel_ns,
    two_in_flight,
    unprofiled,
    with_joined_kernels,
    with_pinned_copies,
    without_host_gap,
    without_kernels,
)
from nsysmap.whatif.engine_runs import EngineRuns
from nsysmap.whatif.replay import period_ns, recorded, replay
from nsysmap.whatif.timeline import ProfilerCosts, Timeline, read_timeline, steady_window

ChangeName = Literal["cuda-graph", "two-in-flight", "pinned-copies", "drop-layers", "join-kernels", "no-host-gap"]
CHANGE_NAMES: tuple[ChangeName, ...] = get_args(ChangeName)

TOLERANCE = 0.05
"""A replay further than this from the trace it was made from answers nothing."""

_CONTENTION = (1.1, 1.3, 1.6)
"""How much longer a launch takes while a second thread launches: 1.10 to 1.12 measured on an H200, to 1.6 in the un-profiled timings."""

REFORMATS = ("Reformatting CopyNode*",)
"""What TensorRT calls the layers that it put in to change a layout."""

_QUANTIZERS = ("QDQ", "CAST")  # origins of reformats that compute something: they cannot just be dropped


@dataclass(frozen=True)
class Change:
    """One change; ``layers`` and ``runs`` name layers, their parts or kernels, a name ending in ``*`` all that begin so."""

    name: ChangeName
    layers: tuple[str, ...] = ()  # drop-layers: what to take out
    runs: tuple[tuple[str, ...], ...] = ()  # join-kernels: each run becomes one kernel


def default_changes(engine: EngineRuns | None = None) -> list[Change]:
    """All six: drop-layers takes the reformats out that compute nothing, join-kernels joins the norms and softmaxes in pieces.

    Without `engine` reformats are known by their names, and there is nothing to join.
    """
    changes = [Change(name) for name in ("cuda-graph", "two-in-flight", "pinned-copies", "no-host-gap")]
    changes.append(Change("drop-layers", layers=REFORMATS if engine is None else reformat_layers(engine.layers)))
    runs = () if engine is None else piece_runs(engine.layers, engine.chains, engine.chain_layers)
    changes.append(Change("join-kernels", runs=runs))
    return changes


def chosen_changes(names: Sequence[str], layers: Sequence[str], engine: EngineRuns | None = None) -> list[Change]:
    """The changes of these names (all where none is given); ``layers`` are what drop-layers takes out and join-kernels joins to one.

    NsysmapError for a change that does not exist, and for layers without a change that is about layers.
    """
    for name in names:
        _check_name(name)
    about_layers = {"drop-layers", "join-kernels"}
    if layers and not about_layers.intersection(names):
        raise NsysmapError("--layer", "no change given is about layers", "add --change drop-layers or --change join-kernels")
    changes = [change for change in default_changes(engine) if not names or change.name in names]
    if not layers:
        return changes
    return [Change(change.name, tuple(layers), (tuple(layers),)) if change.name in about_layers else change for change in changes]


def _check_name(name: str) -> None:
    if name not in CHANGE_NAMES:
        raise NsysmapError(f"change {name}", "there is no such change", f"take one of: {', '.join(CHANGE_NAMES)}")


def reformat_layers(layers: Table) -> tuple[str, ...]:
    """The names of the layers that only change a layout or type and were put in by TensorRT."""
    names, origins = layers.text("name").list(), layers.text("origin").list()
    reformat = layers.text("kind").equals("reformat").tolist()
    return tuple(
        dict.fromkeys(
            str(name)
            for name, origin, is_reformat in zip(names, origins, reformat, strict=True)
            if is_reformat and not any(word in str(origin or "").upper() for word in _QUANTIZERS)
        )
    )


def piece_runs(layers: Table, chains: Table, chain_layers: Table) -> tuple[tuple[str, ...], ...]:
    """The layers of each norm or softmax that is in pieces, in order."""
    pieces = {
        int(chain)
        for chain, kind in zip(chains.ints("chain_id").tolist(), chains.text("kind").list(), strict=True)
        if kind in ("norm", "softmax")
    }
    name = dict(zip(layers.ints("layer_id").tolist(), layers.text("name").list(), strict=True))
    runs: dict[int, list[str]] = {}
    order = np.lexsort((chain_layers.ints("position"), chain_layers.ints("chain_id")))
    for chain, layer in zip(chain_layers.ints("chain_id")[order].tolist(), chain_layers.ints("layer_id")[order].tolist(), strict=True):
        if chain in pieces and layer in name:
            runs.setdefault(chain, []).append(str(name[layer]))
    return tuple(tuple(run) for run in runs.values())


def what_if(trace: Trace, inferences: Table, membership: Table, mapping: Table | None, *, changes: Sequence[Change]) -> Table:
    """One row a change (WHATIF); where a change does not apply or cannot be told the row says why and has no saving.

    NsysmapError for a change that does not exist.
    """
    for change in changes:
        _check_name(change.name)
    model = _model(trace, inferences)
    if isinstance(model, _NoModel):
        return Table.of_rows(
            WHATIF,
            [
                {
                    "change": change.name,
                    "assumptions": "",
                    "reason": model.reason,
                    "recorded_ns": model.recorded_ns,
                    "replay_error": model.error,
                }
                for change in changes
            ],
        )
    selection = _Selection(trace, mapping, membership)
    periods = _Periods({})
    return Table.of_rows(WHATIF, [_answer(model, change, (selection, periods)) for change in changes])


# --- the model of the trace as it is --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _NoModel:
    reason: str
    recorded_ns: int | None = None
    error: float | None = None


@dataclass(frozen=True)
class _Model:
    timeline: Timeline  # as recorded
    profiler: ProfilerCosts
    recorded_ns: int
    error: float
    without: dict[Machine, Timeline]  # without the profiler

    def without_profiler(self) -> Timeline:
        return self.without[LIKELY]

    @cached_property
    def graphs(self) -> dict[int, Changed]:
        """The same as a CUDA graph, by the identity of the timeline."""
        return {id(timeline): as_cuda_graph(timeline) for timeline in self.without.values()}


def _model(trace: Trace, inferences: Table) -> _Model | _NoModel:
    if not len(trace.kernels) and not len(trace.cuda_graph_traces):
        if trace.api_calls.text("kind").equals("graph-launch").any():
            return _NoModel(
                "the trace hides the kernels of its CUDA graphs (whole-graph tracing); capture again with --cuda-graph-trace=node"
            )
        return _NoModel("the trace has no GPU work")
    window = steady_window(inferences)
    if window is None:
        return _NoModel("the trace does not show three steady inferences of one thread in a row")
    if not _syncs_traced(trace) and "api_calls" in trace.absent:
        return _NoModel("CUDA API calls were not traced: nothing is known of the host; capture again with nsys profile -t cuda,nvtx")
    costs = calibrate(trace, window)
    profiler = profiler_costs(trace, window)
    timeline = read_timeline(trace, inferences, window, (costs, profiler))
    wanted, found = period_ns(recorded(timeline)), period_ns(replay(timeline))
    if math.isnan(wanted) or math.isnan(found):
        return _NoModel("fewer than two of the steady inferences have GPU work with a launch call in the trace")
    error = found / wanted - 1
    if abs(error) > TOLERANCE:
        others = len(np.unique(trace.kernels.ints("process")[trace.kernels.ints("device") == window.device])) > 1
        why = "another process used the same GPU" if others else "something held it up that the trace does not show"
        return _NoModel(
            f"the replay does not reproduce this trace: {_us(found)} per inference instead of {_us(wanted)}; {why}",
            round(wanted),
            error,
        )
    return _Model(timeline, profiler, round(wanted), error, {machine: unprofiled(timeline, profiler, machine) for machine in MACHINES})


def _us(ns: float) -> str:
    return f"{ns / 1000:.1f} µs"


def _syncs_traced(trace: Trace) -> bool:
    return bool(trace.api_calls.text("kind").equals("sync").any())


# --- one change -----------------------------------------------------------------------------------------------------

_Make = Callable[[Timeline], Changed]


@dataclass(frozen=True)
class _Case:
    """A way in which it may turn out: another host, another program around it, another effect of the change."""

    before: Timeline  # without the profiler
    make: _Make


@dataclass(frozen=True)
class _Plan:
    """The likeliest case, the others that bound it, and the assumptions."""

    cases: tuple[_Case, ...]  # the first is the likeliest
    assumptions: str


@dataclass(frozen=True)
class _Selection:
    """Finds the kernels that a change is about."""

    trace: Trace
    mapping: Table | None
    membership: Table

    def matching(self, names: Sequence[str]) -> IntArray:
        """Kernel ids whose layer, part or own name is one of these."""
        columns = [self.trace.kernels.text("name")]
        if self.mapping is not None:
            columns += [self.mapping.text("layer"), self.mapping.text("part")]
        found = np.zeros(len(self.trace.kernels), np.bool_)
        for column in columns:
            found |= _matches(column, names)
        return np.flatnonzero(found)

    def runs(self, wanted: Sequence[tuple[str, ...]]) -> list[tuple[int, ...]]:
        """Per inference and run the kernel ids, in order of launch; runs of one kernel are left out."""
        inference, position = self.membership.ints("inference"), self.membership.ints("position")
        result: list[tuple[int, ...]] = []
        for names in wanted:
            rows = self.matching(names)
            rows = rows[inference[rows] >= 0]
            rows = rows[np.lexsort((position[rows], inference[rows]))]
            owners, first = np.unique(inference[rows], return_index=True)
            bounds = [*first.tolist(), len(rows)]
            result += [tuple(rows[bounds[at] : bounds[at + 1]].tolist()) for at in range(len(owners)) if bounds[at + 1] - bounds[at] > 1]
        return result


def _matches(column: Text, names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    hit = np.array([*(value in exact or (bool(prefixes) and value.startswith(prefixes)) for value in column.values), False])
    result: np.ndarray[tuple[int], np.dtype[np.bool_]] = hit[column.codes]
    return result


@dataclass(frozen=True)
class _Periods:
    """Replays each timeline once."""

    known: dict[int, tuple[Timeline, int]]  # by identity; holding the timeline keeps that unique

    def of(self, timeline: Timeline) -> int:
        """Wall time per inference, in ns."""
        if id(timeline) not in self.known:
            self.known[id(timeline)] = (timeline, round(period_ns(replay(timeline))))
        return self.known[id(timeline)][1]


def _answer(model: _Model, change: Change, tools: tuple[_Selection, _Periods]) -> dict[str, object]:
    selection, periods = tools
    row: dict[str, object] = {
        "change": change.name,
        "before_ns": periods.of(model.without_profiler()),
        "recorded_ns": model.recorded_ns,
        "replay_error": model.error,
        "assumptions": "",
    }
    plan = _plan(model, change, selection)
    if isinstance(plan, DoesNotApply):
        return {**row, "reason": plan.reason}
    savings: list[int] = []
    most = 0.0  # the largest share of an inference that any machine would save
    for case in plan.cases:
        changed = case.make(case.before)
        if isinstance(changed, DoesNotApply):
            if not savings:
                return {**row, "reason": changed.reason}
            continue
        savings.append(periods.of(case.before) - periods.of(changed))
        most = max(most, savings[-1] / max(periods.of(case.before), 1))
    before = periods.of(plan.cases[0].before)
    return {
        **row,
        "before_ns": before,
        "after_ns": before - savings[0],
        "saving_ns": savings[0],
        "low_saving_ns": min(savings),
        # a machine slower than the likely one may have more to save than the likely one takes altogether
        "high_saving_ns": max(savings) if max(savings) < before else round(most * before),
        "assumptions": f"{_basis(model)} {plan.assumptions}",
    }


def _basis(model: _Model) -> str:
    """What holds for every change."""
    profiler, (_, quick, slow) = model.profiler, MACHINES
    return (
        f"Replay of {_inferences(model.timeline)} steady inferences; without the change it is {abs(model.error):.1%} off the trace "
        f"({_us(model.recorded_ns)} per inference under the profiler). Corrected for the profiler: without it a kernel takes "
        f"{_us(profiler.kernel_ns)} less, a launch call {_us(profiler.call_ns)} less, range events and the profiler's own calls nothing. "
        f"The range takes launches from {1 - quick.launch:.0%} quicker to {slow.launch - 1:.0%} slower than that, and queued kernels "
        f"{quick.dispatch_extra_ns / 1000:.2g} to {slow.dispatch_extra_ns / 1000:.2g} µs further apart than recorded; the host's own work "
        f"from {1 - quick.own:.0%} quicker to {slow.own - 1:.0%} slower, blocking copies to {slow.staging - 1:.0%} slower."
    )


def _plan(model: _Model, change: Change, selection: _Selection) -> _Plan | DoesNotApply:
    if change.name == "cuda-graph":
        return _Plan(
            _on_machines(model, lambda timeline: model.graphs[id(timeline)]),
            "Shapes and addresses stay the same, so that one capture serves; kernels keep their times and follow each other 0.5 µs apart; "
            "one graph launch takes 1.7 µs of the host; the host does nothing inside the enqueue any more.",
        )
    if change.name == "pinned-copies":
        return _Plan(
            _on_machines(model, with_pinned_copies),
            "Copies go to and from pinned memory in the inference's own stream, at the speed they have on the bus now; the host no longer "
            "stages them, and waits once, for the results.",
        )
    if change.name == "no-host-gap":
        gap = outside_ns(model.without_profiler())
        return _Plan(
            _on_machines(model, without_host_gap),
            f"The host's own work between inferences ({_us(gap)} an inference now) is gone or done by another thread; the next input "
            "is always there.",
        )
    if change.name == "two-in-flight":
        return _two_in_flight(model)
    if change.name == "drop-layers":
        return _drop(model, change, selection)
    return _join(model, change, selection)


def _on_machines(model: _Model, make: _Make) -> tuple[_Case, ...]:
    return tuple(_Case(model.without[machine], make) for machine in MACHINES)


_MOSTLY_FREE = 0.5  # kernels that take no more than that of the GPU's threads, registers and shared memory leave room for another


def _two_in_flight(model: _Model) -> _Plan | DoesNotApply:
    before = model.without_profiler()
    filling = most_filling(before)
    both = two_in_flight(before, contention=_CONTENTION[1], overlap=True)
    if isinstance(both, DoesNotApply):
        return both

    def case(contention: float, *, overlap: bool) -> _Case:
        return _Case(before, lambda _: replace(both, contention=contention, exclusive=not overlap))

    room = filling <= _MOSTLY_FREE
    likeliest = (_CONTENTION[1], room)
    others = [(factor, overlap) for factor in _CONTENTION for overlap in {False, room} if (factor, overlap) != likeliest]
    cases = [case(factor, overlap=overlap) for factor, overlap in (likeliest, *others)]
    together = (
        "kernels of the two run at once and take as long as now; at the least they do not, "
        if room
        else "kernels of the two never run at once, "
    )
    return _Plan(
        (*cases, _Case(before, one_stream_in_flight)),
        "Two host threads, each with an execution context and a stream of its own, take turns: time is wall time per inference, the "
        f"latency of each grows. Launch calls take {_CONTENTION[1]:.1f} times as long while both launch ({_CONTENTION[0]:.1f} to "
        f"{_CONTENTION[-1]:.1f} in the range). Blocks take {filling:.0%} of the GPU on average: {together}"
        "or one thread and one stream are used and only the wait between inferences goes.",
    )


def _drop(model: _Model, change: Change, selection: _Selection) -> _Plan | DoesNotApply:
    names = change.layers or REFORMATS
    rows = frozenset(selection.matching(names).tolist())
    here = [row for row in _kernel_rows(model.timeline) if row in rows]
    if not here:
        what = (
            "no kernel is mapped to a reformat layer"
            if names == REFORMATS or not change.layers
            else "none of the layers named runs a kernel"
        )
        return DoesNotApply(f"{what} in the steady inferences")
    count = len(here) / max(_inferences(model.timeline), 1)

    def make(timeline: Timeline) -> Changed:
        return without_kernels(timeline, rows)

    shown = _few(dict.fromkeys(_layer_names(selection, here)))
    return _Plan(
        (*_on_machines(model, make), *_in_a_graph(model, make)),
        f"The kernels of {shown} ({_average(count)} an inference) go, with their launches; all others keep their times, also those that "
        "would then read another layout. The range also holds for the program run as a CUDA graph.",
    )


def _join(model: _Model, change: Change, selection: _Selection) -> _Plan | DoesNotApply:
    if not change.runs:
        return DoesNotApply("no layers that could be one kernel are known (norms and softmaxes in pieces, which the engine file shows)")
    present = set(_kernel_rows(model.timeline))
    runs = [run for run in selection.runs(change.runs) if present.issuperset(run)]
    if not runs:
        return DoesNotApply("none of the runs has two kernels or more in the steady inferences")
    floor = shortest_kernel_ns(model.without_profiler())

    def joined(durations: list[int]) -> int:
        return floor + sum(max(duration - floor, 0) for duration in durations)

    def longest(durations: list[int]) -> int:
        return max(durations)

    def added(durations: list[int]) -> int:
        return sum(durations) - (len(durations) - 1) * min(EMPTY_KERNEL_NS, *durations)

    def make(rule: Callable[[list[int]], int]) -> _Make:
        return lambda timeline: with_joined_kernels(timeline, runs, rule)

    inferences = max(_inferences(model.timeline), 1)
    number, kernels = _average(len(runs) / inferences), _average(sum(len(run) for run in runs) / inferences)
    return _Plan(
        (
            *_on_machines(model, make(joined)),
            *_in_a_graph(model, make(joined), make(longest), make(added)),
            *_on_machines(model, make(longest)),
        ),
        f"{kernels} kernels an inference, in {number} run{'' if number == '1' else 's'}, become one kernel a run. "
        f"It takes what every kernel of this trace takes at the least ({_us(floor)}) and what its pieces take beyond that. Most is saved "
        "where it takes no longer than its longest piece, least where it takes as long as all of them and saves only their launches, in a "
        "CUDA graph.",
    )


def _average(number: float) -> str:
    """A number per inference; the inferences at the ends of the timeline are not whole, so that it is hardly ever exact."""
    return f"{number:.1f}".removesuffix(".0")


def _in_a_graph(model: _Model, *makes: _Make) -> tuple[_Case, ...]:
    """The same changes to the program run as a CUDA graph; nothing where it cannot be."""
    graph = model.graphs[id(model.without_profiler())]
    return () if isinstance(graph, DoesNotApply) else tuple(_Case(graph, make) for make in makes)


def _kernel_rows(timeline: Timeline) -> list[int]:
    return [work.row for steps in timeline.threads for step in steps for work in step.works if work.row >= 0]


def _inferences(timeline: Timeline) -> int:
    return sum(len({step.inference for step in steps}) for steps in timeline.threads)


def _layer_names(selection: _Selection, rows: Sequence[int]) -> list[str]:
    names = selection.trace.kernels.text("name")
    layers = selection.mapping.text("layer") if selection.mapping is not None else None
    return [str((layers[row] if layers is not None else None) or names[row]) for row in rows]


def _few(names: dict[str, None]) -> str:
    """The first names, shortened, and how many more."""
    shown = [name if len(name) <= 60 else f"{name[:57]}…" for name in list(names)[:3]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
