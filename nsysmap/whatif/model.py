"""The model that the replay uses: a program's timeline as recorded, and as it would be without the
profiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from nsysmap.core.intervals import covered
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, IntArray, Table
from nsysmap.core.trace_schema import PYTHON
from nsysmap.text.units import counted, rounded
from nsysmap.trace.capture_facts import has_pytorch
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.inferences.disturbance import SLOWED, SlowCalls, slow_calls
from nsysmap.trace.inferences.steady import OUTLIER, only_repeats
from nsysmap.trace.model import Trace
from nsysmap.whatif.calibration import calibrate
from nsysmap.whatif.disturbed import brisk, undisturbed
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.host_pace import HostPace, host_pace
from nsysmap.whatif.profiler import (
    NOTHING_AROUND,
    Machine,
    ProfilerCosts,
    around_calls,
    as_python,
    at_pace,
    profiler_costs,
    unprofiled,
    with_python,
)
from nsysmap.whatif.read_timeline import read_timeline
from nsysmap.whatif.replay import Finished, lengths_ns, period_ns, recorded, replay
from nsysmap.whatif.selection import KernelSelection
from nsysmap.whatif.throughput import Phase, phases_of
from nsysmap.whatif.timeline import (
    Step,
    Timeline,
    Work,
    all_steps,
    all_works,
    host_time,
    inference_count,
)
from nsysmap.whatif.window import NoWindow, Window, steady_window

_WHOLE_GRAPHS = (
    "the trace hides the kernels of its CUDA graphs (whole-graph tracing); capture again with"
    " --cuda-graph-trace=node"
)

PYTHON_PACED = 0.2
"""The program counts as bound by Python if at least this share of the time is spent in Python
between inferences (or between launches where nothing marks inferences).
"""

TOLERANCE = 0.05
"""The replay is not used if it differs from its trace by more than this share."""

_FEW_BLOCKS, _LONG_NS = 8, 10_000
"""A kernel of few blocks that runs long: see spread._ELSEWHERE."""

# share of the GPU work that a replay may lack; none of 60 traces that can be replayed lacks any
_LOST = 0.01


@dataclass(frozen=True)
class Observed:
    """The facts from a trace that the replay builds on."""

    trace: Trace
    inferences: Table
    membership: Table
    mapping: Table | None
    # the GPU whose inferences are replayed; None: the one of window.steady_window
    device: int | None = None
    repetitions: bool = False  # nothing shows that they are inferences


@dataclass(frozen=True)
class NoModel:
    """Why the trace cannot be replayed; the reason is a template of nsysmap.text.units.worded."""

    reason: str
    graphs: bool = False  # all of its work is launched by CUDA graphs
    recorded_ns: int | None = None
    error: float | None = None
    repetitions: bool = False


@dataclass(frozen=True)
class Model:
    """A trace that the replay reproduces."""

    observed: Observed
    facts: EngineFacts | None
    window: Window
    timeline: Timeline  # as recorded
    profiler: ProfilerCosts
    recorded_ns: int
    error: float
    python: bool  # PyTorch runs: the host's own work is Python's
    without: dict[Machine, Timeline]  # without the profiler, on each machine; the likely one first
    # what shows that the program is Python's, whose threads launch one at a time; empty if nothing
    # does
    interpreter: str = ""
    held_up: bool = False  # something held the host up in some inferences

    @cached_property
    def placed(self) -> list[tuple[Work, int, int]]:
        """Every piece of GPU work on the likely machine, with its start and end in the replay."""
        return self._replayed[1]

    @cached_property
    def finished(self) -> Finished:
        """When each inference ends on the likely machine."""
        return self._replayed[0]

    @cached_property
    def _replayed(self) -> tuple[Finished, list[tuple[Work, int, int]]]:
        found: list[tuple[Work, int, int]] = []
        return replay(self.likely, placed=found), found

    @cached_property
    def few_blocks_share(self) -> float:
        """The share of the kernels' time that long kernels of few blocks take."""
        kernels = [work for work in all_works(self.likely) if work.kind == "kernel"]
        rows = np.array([work.row for work in kernels], np.int64)
        length = np.array([work.dur_ns for work in kernels], np.int64)
        blocks = np.ones(len(rows), np.int64)
        for name in ("grid_x", "grid_y", "grid_z"):
            blocks *= self.observed.trace.kernels.held_ints(name).take(rows)
        few = (blocks > 0) & (blocks <= _FEW_BLOCKS) & (length >= _LONG_NS)
        return float(length[few].sum() / max(int(length.sum()), 1))

    @cached_property
    def phases(self) -> dict[int, Phase]:
        """The phases of the run on the likely machine, by number."""
        return phases_of(self.likely, self.finished)

    @cached_property
    def before(self) -> dict[Machine, int]:
        """The time without the change on each machine: at most the recorded time, because the
        profiler only adds time, and at least the GPU's work where that is one piece after the
        other.
        """
        return {
            machine: min(max(self.period(timeline), self._serial_ns), self.recorded_ns)
            for machine, timeline in self.without.items()
        }

    @cached_property
    def _serial_ns(self) -> int:
        """How long the GPU works per inference or pass, over all that count, where all of it is on
        one stream and launched piece by piece; 0 where not.
        """
        graphs = any(step.graph for step in all_steps(self.likely))
        if graphs or len({work.queue for work in all_works(self.likely)}) != 1:
            return 0
        of_replayed = self._busy_share * self.period(self.likely) / self.window.of_all
        return round(of_replayed * self.window.work_of_counted)

    @cached_property
    def work_ns(self) -> int:
        """How long the GPU works within the likely time without a change: no faster host can go
        below that.
        """
        return round(self._busy_share * self.before[self.machines[0]])

    @cached_property
    def _busy_share(self) -> float:
        """The share of the time in which the GPU works in the replay of the likely machine."""
        work = np.array([(start, end) for _, start, end in self.placed], np.int64).reshape(-1, 2)
        spans = [
            (begin, end, weights[one])
            for lengths, weights in zip(
                lengths_ns(self.likely, self.finished), self.likely.weights, strict=True
            )
            for one, (begin, end) in lengths.items()
        ]
        begin, end, weight = (
            (np.array(column) for column in zip(*spans, strict=True))
            if spans
            else (np.zeros(0, np.int64),) * 3
        )
        whole = float(weight @ (end - begin))
        busy = float(weight @ covered(work[:, 0], work[:, 1], (begin, end)))
        return busy / whole if whole else 0.0

    @cached_property
    def selection(self) -> KernelSelection:
        """Finds kernels by name."""
        return KernelSelection(self.observed.trace, self.observed.mapping, self.observed.membership)

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The likely machine, and those at the bounds."""
        return tuple(self.without)

    @property
    def likely(self) -> Timeline:
        """The likely machine, without the profiler."""
        return self.without[self.machines[0]]

    def period(self, timeline: Timeline, finished: Finished | None = None) -> int:
        """Time per inference, or per pass, in nanoseconds, over all inferences of the run that
        count.

        It is that of the replay, whose end of each inference may be given, corrected in proportion
        for the error of the replay, and for how the replayed inferences differ from all as
        recorded.
        """
        ends = finished or self._ends(timeline)
        return round(
            self._replayed_ns(timeline, ends) * self._correction + self._of_all_ns(timeline, ends)
        )

    @cached_property
    def _correction(self) -> float:
        """The factor that corrects the likely time without a change for the error of the replay
        with the profiler.
        """
        likely = self._replayed_ns(self.likely)
        return (
            1 - self.error * self.recorded_ns / self.window.of_all / likely if likely > 0 else 1.0
        )

    def _of_all_ns(self, timeline: Timeline, finished: Finished) -> float:
        """How much longer all counted inferences of the run take in this timeline than the replayed
        ones.

        The classical regression estimator: where two recorded times differ by a nanosecond, those
        of the timeline differ by its slope.  If all take another time than any sample of them
        would, as after a change in the run, both times have the same ratio as recorded.
        """
        of_all = self.window.of_all
        longer = self.recorded_ns * (1 - 1 / of_all)
        if abs(of_all - 1) > TOLERANCE:
            return self._replayed_ns(timeline, finished) * self._correction * (of_all - 1)
        return longer * (
            self._slope(timeline, finished)
            if len(timeline.threads) == len(self.timeline.threads)
            else self._slope_now
        )

    @cached_property
    def _as_recorded(self) -> list[dict[int, tuple[int, int]]]:
        """Begin and end of each counted inference as recorded."""
        return lengths_ns(self.timeline, recorded(self.timeline))

    @cached_property
    def _slope_now(self) -> float:
        """The slope on the likely machine without a change."""
        return self._slope(self.likely, self.finished)

    def _slope(self, timeline: Timeline, finished: Finished) -> float:
        """By how much two inferences differ in this timeline for each unit by which the recorded
        ones differ.
        """
        was, now, weight = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
        lengths = lengths_ns(timeline, finished)
        for before, after, weights in zip(
            self._as_recorded, lengths, self.timeline.weights, strict=True
        ):
            mine = [one for one in before if one in after]
            if sum(weights[one] for one in mine) > 0:
                weight.append(np.array([weights[one] for one in mine]))
                for found, times in ((was, before), (now, after)):
                    took = np.array([times[one][1] - times[one][0] for one in mine], np.float64)
                    found.append(took - np.average(took, weights=weight[-1]))
        return regression_slope(*(np.concatenate(each) for each in (was, now, weight)))

    def _replayed_ns(self, timeline: Timeline, finished: Finished | None = None) -> float:
        ends = finished or self._ends(timeline)
        return period_ns(timeline, ends) * self.window.inferences_a_pass

    def _ends(self, timeline: Timeline) -> Finished:
        return self.finished if timeline is self.likely else replay(timeline)

    def outside_share(self, timeline: Timeline) -> float:
        """The share of the time that the host spends on its own work between inferences."""
        return self._share(timeline, lambda step: step.outside_ns)

    def own_share(self, timeline: Timeline) -> float:
        """The share of the time that the host spends on its own work, between inferences and
        between launches.
        """
        return self._share(timeline, lambda step: step.own_ns)

    def _share(self, timeline: Timeline, taken_ns: Callable[[Step], int]) -> float:
        """The time of these steps as a share of the threads' time, over the inferences whose time
        counts, each with its weight.
        """
        per_pass = host_time(timeline, taken_ns) * self.window.inferences_a_pass
        return min(per_pass / max(self._replayed_ns(timeline) * len(timeline.threads), 1.0), 1.0)

    @property
    def unit(self) -> str:
        """The unit of times."""
        return self.window.unit


def read_model(
    observed: Observed, facts: EngineFacts | None, machines: tuple[Machine, ...]
) -> Model | NoModel:
    """The model of a trace, or why there is none."""
    found = _read(observed, facts, machines)
    return (
        replace(found, graphs=launches_graphs_only(observed), repetitions=observed.repetitions)
        if isinstance(found, NoModel)
        else found
    )


def launches_graphs_only(observed: Observed) -> bool:
    """Whether every inference is a graph launch; without inferences, whether no kernel is launched
    individually between the graph launches.
    """
    trace, inferences = observed.trace, observed.inferences
    if len(inferences):
        return bool(inferences.bools("cuda_graph").all())
    launches = trace.api_calls.take(trace.api_calls.text("kind").equals("graph-launch"))
    if not len(launches):
        return False
    start, alone = trace.kernels.ints("start_ns"), trace.kernels.ints("graph_node_id") == MISSING
    within = (start >= launches.ints("start_ns").min()) & (start <= launches.ints("end_ns").max())
    return not (within & alone).any()


def _read(
    observed: Observed, facts: EngineFacts | None, machines: tuple[Machine, ...]
) -> Model | NoModel:
    trace, inferences = observed.trace, observed.inferences
    hidden = _hides_work(trace)
    if not len(trace.kernels) and not len(trace.cuda_graph_traces):
        more = len(trace.memcpys) or len(trace.memsets)
        return NoModel(hidden or f"the trace has no {'kernels' if more else 'GPU work'}")
    if not len(trace.api_calls):
        return NoModel(
            "CUDA API calls were not traced, so nothing is known about the host; capture again with"
            " nsys profile -t cuda,nvtx"
        )
    window = steady_window(trace, inferences, observed.device)
    if isinstance(window, NoWindow):
        return NoModel(hidden or (_WHOLE_GRAPHS if len(trace.cuda_graph_traces) else window.reason))
    if hidden and _hides_work(trace, window):
        return NoModel(hidden)
    graphs = trace.cuda_graph_traces
    if len(window.rows(graphs)) or len(
        window.launched(graphs)
    ):  # the GPU may begin long after the host launched the last one
        return NoModel(_WHOLE_GRAPHS)
    costs = calibrate(trace, window)
    profiler = profiler_costs(trace, window)
    timeline = read_timeline(
        trace,
        inferences,
        window,
        costs,
        profiler,
        lambda kernels: _roofline(observed, facts, kernels),
    )
    wanted, replayed = (
        period_ns(timeline, ends) * window.inferences_a_pass
        for ends in (recorded(timeline), replay(timeline))
    )
    if math.isnan(wanted) or math.isnan(replayed):
        return NoModel(
            "fewer than two of the {:inference}s after the warm-up have GPU work with a launch call"
            " in the trace"
        )
    error = replayed / wanted - 1
    if abs(error) > TOLERANCE:
        return NoModel(
            f"the replay does not reproduce this trace: {rounded(replayed)} per {window.unit}"
            f" instead of {rounded(wanted)}; its time depends on something that the trace does not"
            " show",
            recorded_ns=round(wanted * window.of_all),
            error=error,
        )
    lost = lost_share(trace, window, timeline)
    if lost > _LOST:
        return NoModel(
            f"the replay holds {1 - lost:.0%} of the GPU work that the trace has in the replayed"
            " {:inference}s: what launched the rest is not in the trace, or not in the replay",
            recorded_ns=round(wanted * window.of_all),
            error=-lost,
        )
    python = has_pytorch(trace)
    interpreter = _interpreter(trace, window)
    machines = with_python(machines) if interpreter else machines
    slowed = _slowed_down(trace, window)
    pace = host_pace(timeline, slowed, own_calls=profiler.own_calls)
    machines = at_pace(machines, pace)
    if note := slowed_note(slowed, pace):
        window = replace(window, notes=(*window.notes, note))
    calm, held_up = undisturbed(timeline)
    hosts = (
        calm,
        brisk(calm),
        timeline,
    )  # of the likely machine, a quick and a slow one
    unmarked = only_repeats(inferences, tensorrt=True)
    around = NOTHING_AROUND
    if interpreter and not python:
        around = around_calls(
            pace,
            graphs=any(step.graph for step in all_steps(timeline)),
            repeats=bool(inferences.text("found_by").equals("period").all()),
        )
    without = {
        machine: unprofiled(host, profiler, machine, around=around)
        for machine, host in zip(machines, hosts, strict=False)
    }
    if held_up:
        window = replace(window, notes=(*window.notes, _held_up_note(held_up, timeline)))
    model = Model(
        observed,
        facts,
        window,
        timeline,
        profiler,
        round(wanted * window.of_all),
        error,
        python,
        without,
        interpreter,
        held_up > 0,
    )
    if (
        python
        and (model.own_share if unmarked else model.outside_share)(model.likely) >= PYTHON_PACED
    ):
        without = {
            machine: unprofiled(host, profiler, machine, unmarked=unmarked, around=around)
            for machine, host in zip(as_python(machines), hosts, strict=False)
        }
        model = replace(model, without=without)
    return model


def _slowed_down(trace: Trace, window: Window) -> SlowCalls | None:
    """The evidence that the host was slowed down throughout; None if there is none."""
    within = int(window.begin_ns.min()), int(window.end_ns.max())
    found = [slow_calls(trace.api_calls, thread, within) for thread in window.threads]
    return max(
        (one for one in found if one is not None),
        key=lambda one: one.slowdown,
        default=None,
    )


def slowed_note(slowed: SlowCalls | None, pace: HostPace) -> str:
    """States the evidence that the host was slow while recorded, and what is assumed
    without that.
    """
    if pace.without > 1 / SLOWED:
        return ""
    calls = 1.0 if slowed is None else slowed.slowdown
    launches = 1.0 if pace.own_calls else pace.launches
    # each may be little by itself
    least = SLOWED if max(calls, launches) >= SLOWED else 1.05
    shown = []
    if slowed is not None and calls >= least:
        shown.append(f"most calls of {slowed.api} take {calls:.2g} times the fastest")
    if launches >= least:
        shown.append(f"launch calls take {launches:.2g} times what they usually do under nsys")
    return (
        f"The host was slowed down while it was recorded: {' and '.join(shown)}. Without that,"
        f" launches are assumed to take {pace.without:.0%} of the time."
    )


def _held_up_note(held_up: int, timeline: Timeline) -> str:
    return (
        f"In {held_up} of {counted(inference_count(timeline), 'replayed {:inference}')} the host's"
        f" calls take more than {OUTLIER} times what the same calls take in the others: something"
        " held the host up, and they are assumed to take as long as in the others."
    )


def lost_share(trace: Trace, window: Window, timeline: Timeline) -> float:
    """The share of the recorded GPU work that ends within the counted inferences, whichever thread
    launched it, and is missing from the timeline.
    """
    spans = sorted(
        {span for lengths in lengths_ns(timeline, recorded(timeline)) for span in lengths.values()}
    )
    begin, end = np.array(spans, np.int64).reshape(-1, 2).T
    upto = np.maximum.accumulate(end)

    def taken_ns(start: IntArray, stop: IntArray) -> int:
        # begins are not part of a span: they are the end of the one before
        at = np.searchsorted(begin, stop) - 1
        return int((stop - start)[(at >= 0) & (stop <= upto[np.maximum(at, 0)])].sum())

    whole = 0
    for table in gpu_work(trace):
        there = table.take(window.touching(table))
        mine = (there.ints("process") == window.process) & (there.ints("device") == window.device)
        whole += taken_ns(there.ints("start_ns")[mine], there.ints("end_ns")[mine])
    held = np.array(
        [(work.start_ns, work.end_ns) for work in all_works(timeline)], np.int64
    ).reshape(-1, 2)
    return max(1 - taken_ns(held[:, 0], held[:, 1]) / whole, 0.0) if whole else 0.0


def _interpreter(trace: Trace, window: Window) -> str:
    """The evidence that Python runs the program: the name of its process, or PyTorch, whose
    programs nearly always use Python.
    """
    if trace.hosts.get(window.process) == PYTHON:
        return "The program is Python's"
    return "PyTorch runs, from Python most likely" if has_pytorch(trace) else ""


def regression_slope(was: FloatArray, now: FloatArray, weight: FloatArray) -> float:
    """The change of replayed times where recorded ones differ by one, between 0 and 1; both are
    differences from their mean.
    """
    spread = float(weight @ was**2)
    return float(np.clip(weight @ (was * now) / spread, 0.0, 1.0)) if spread > 0 else 1.0


def _hides_work(trace: Trace, window: Window | None = None) -> str:
    """Why GPU work is hidden, in the whole trace or in the window: graph launches whose nodes or
    runs are not in the trace.
    """
    calls = trace.api_calls
    launches = calls.text("kind").equals("graph-launch")
    if not launches.any():
        return ""
    for table in gpu_work(trace):
        for _, launch in in_pieces(table.held_ints("launch")):
            launches[launch[launch >= 0]] = False
    if window is not None:
        launches &= window.holds(calls.ints("start_ns")) & (calls.ints("process") == window.process)
    if not launches.any():
        return ""
    kernels = trace.kernels
    if ((kernels.ints("graph_node_id") != MISSING) & (kernels.ints("launch") == MISSING)).any():
        return "the trace does not show which launch the kernels of its CUDA graphs belong to"
    return _WHOLE_GRAPHS


def _roofline(observed: Observed, facts: EngineFacts | None, kernels: IntArray) -> FloatArray:
    """The share of the device's peak that the work of these kernels' layers needs; NaN if
    unknown.
    """
    share = np.full(len(kernels), np.nan)
    if facts is None or observed.mapping is None or not len(facts.roofline):
        return share
    reached = facts.roofline.floats("roofline_fraction")
    layer = observed.mapping.held_ints("layer_id").take(kernels)
    known = (layer >= 0) & (layer < len(reached))
    share[known] = reached[layer[known]]
    return share
