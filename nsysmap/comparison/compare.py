"""Compares two captures, engines or builds: the time per inference, whether and where it changed,
and what else differs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nsysmap.answer.eight_bits import eight_bits_of
from nsysmap.answer.model import EightBits
from nsysmap.comparison.by_kernel import by_kernel_name, without_layers
from nsysmap.comparison.conditions import ANOTHER_LENGTH, Condition, conditions, mean_kernels
from nsysmap.comparison.finding_changes import FindingChange, finding_changes
from nsysmap.comparison.joined import joined_table
from nsysmap.comparison.noise import FEWEST, Mean, difference
from nsysmap.comparison.pace import HIDDEN_COST_WORDS, Pace, gpu_work_ns
from nsysmap.comparison.precision import PrecisionReason, precision_reasons
from nsysmap.comparison.predictions import Prediction, prediction_of_edits, predictions
from nsysmap.comparison.region_kinds import region_kinds
from nsysmap.comparison.region_parts import region_parts
from nsysmap.comparison.runs import runs_in, together
from nsysmap.comparison.side import Given, Side, named_apart, read_on_one_gpu
from nsysmap.comparison.waterfall import Contribution, contributions, hidden_contributions
from nsysmap.core.comparison_schema import JOINED_LAYERS, REGION_KINDS, REGION_PARTS
from nsysmap.core.errors import NsysmapError
from nsysmap.core.fix_script import ScriptPrediction, read_prediction
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Table
from nsysmap.inputs.engine.onnx_model import OnnxModel, read_model
from nsysmap.mapping.mapped_trace import Progress

FASTER, SLOWER, NO_DIFFERENCE = "faster", "slower", "no difference beyond the noise"
TOO_FEW, CANNOT_TELL = "too few inferences", "cannot tell"
_UNKNOWN_COST = 0.06
"""Uncertainty of a difference in profiler overhead between the sides, as a share of it: in captures
whose graph nodes took longer to trace in one half than in the other, the times without the profiler
differed by up to 5 % of it (benchmarks/compare.py).
"""


@dataclass(frozen=True)
class SideTime:
    """The time per inference (or pass) of one side, in nanoseconds."""

    source: str
    engines: tuple[str, ...]
    runs: int = 0  # captures
    inferences: int = 0  # counted inferences; the number of runs if the side has several captures
    # inferences excluded because they took far longer than the median of their kind
    held_up: int = 0
    held_up_ns: int | None = None  # what these would add to the mean as recorded
    time_ns: int | None = None  # without the profiler, unless `profiled` or `whole_graphs`
    low_ns: int | None = None  # on a faster host and driver
    high_ns: int | None = None  # on a slower one
    recorded_ns: int | None = None  # as the trace has it, without those held up
    per_second: float | None = None
    effective: float | None = None  # effective number of independent inferences
    drift_ns: int | None = None
    profiled: str = ""  # why the profiler's overhead is included; empty if it is not
    # the time in which the GPU works for it, as recorded; None where that is not known
    gpu_ns: int | None = None
    enqueue_ns: int | None = None  # that of its enqueue on the host, as recorded, mean
    # the mean of all steady-state inferences as the trace has it, held up or not
    with_outliers_ns: int | None = None
    # its CUDA graphs are traced as a whole: the time is as recorded, and `low_ns` is that time less
    # what this tracing is assumed to add at most
    whole_graphs: bool = False


@dataclass(frozen=True)
class Comparison:
    """What changed from BEFORE to AFTER; times in nanoseconds per inference, or per pass of
    ``inferences_a_pass`` inferences.
    """

    before: SideTime
    after: SideTime
    inferences_a_pass: int
    verdict: str
    difference_ns: int | None
    interval_ns: tuple[int, int] | None
    noise_ns: tuple[int, int] | None  # the interval from the noise of the inferences alone
    p: float | None
    significant: bool
    run_to_run_ns: int | None  # how much two runs of one program may differ
    test: str
    no_test: str  # why there is none; empty if there is one
    contributions: tuple[Contribution, ...]
    layers: Table  # comparison_schema.JOINED_LAYERS
    regions: Table  # comparison_schema.REGION_KINDS
    region_parts: Table  # comparison_schema.REGION_PARTS
    findings: tuple[FindingChange, ...]
    conditions: tuple[Condition, ...]
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...]
    # of the difference, where layers compute in another type; they add up to it
    precision: tuple[PrecisionReason, ...] = ()
    # what INT8, FP8 or FP4 is used for on the side that has it, or on AFTER if both have
    eight_bits: tuple[EightBits, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparison of {self.before.source} with {self.after.source}: {self.verdict}>"


def compare(  # one parameter per file
    before: str | Path | Sequence[str | Path],
    after: str | Path | Sequence[str | Path],
    *,
    engine_before: str | Path | Sequence[str | Path] = (),
    engine_after: str | Path | Sequence[str | Path] = (),
    onnx: str | Path | None = None,
    fix: str | Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compares two captures, engine files or profiles. ``onnx`` is the model behind both, ``fix``
    the script of `nsysmap fix` that was applied between them.

    A side may be several captures of one program, or a folder of them: then the runs are the unit
    of noise.
    Raises NsysmapError for input that cannot be used.
    """
    model = None if onnx is None else read_model(onnx)
    given = [
        [Given(run, _paths(engines)) for path in _paths(side) for run in runs_in(path)]
        for side, engines in ((before, engine_before), (after, engine_after))
    ]
    return compare_read(
        read_sides((given[0], given[1]), model=model, progress=progress),
        model=model,
        script=None if fix is None else read_prediction(fix),
    )


def read_sides(
    given: tuple[Sequence[Given], Sequence[Given]],
    *,
    model: OnnxModel | None = None,
    progress: Progress | None = None,
) -> tuple[Side, Side]:
    """Both sides, each of one capture, engine file or profile, or of several captures."""
    if (len(given[0]) == 1) != (len(given[1]) == 1):
        alone = min(given, key=len)[0].path
        raise NsysmapError(
            alone, "is the only run of its side", "give at least two runs per side, or one per side"
        )
    every = [*given[0], *given[1]]
    sides = named_apart(read_on_one_gpu(every, model=model, progress=progress), every)
    return together(sides[: len(given[0])]), together(sides[len(given[0]) :])


def compare_read(
    sides: tuple[Side, Side],
    *,
    model: OnnxModel | None = None,
    script: ScriptPrediction | None = None,
) -> Comparison:
    """The comparison of two sides; ``model`` is the ONNX model they were read with, ``script`` what
    the edits between them were predicted to save.
    """
    found = compare_sides(*sides)
    if script is not None:
        told = prediction_of_edits(
            script,
            sides[0],
            found.after.time_ns,
            _interval_of(sides[1], found.after),
            found.conditions,
        )
        found = replace(found, predictions=(*found.predictions, *told))
    return (
        found
        if model is None
        else replace(found, notes=(*found.notes, *_of_another_model(sides, model)))
    )


def _of_another_model(sides: Sequence[Side], model: OnnxModel) -> list[str]:
    """Notes on the engines in which nothing of the model was found."""
    nodes = {node.name for node in model.nodes}
    others = {
        engine.source: (
            f"{model.source} has no node or tensor of {engine.source}: it is the wrong model, or"
            " the engine file has no names."
        )
        for side in sides
        for engine in side.engines
        if not any(node in nodes for layer in engine.layers for node in layer.onnx)
    }
    return list(others.values())


def _paths(engines: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    return (str(engines),) if isinstance(engines, (str, Path)) else tuple(map(str, engines))


def compare_sides(before: Side, after: Side) -> Comparison:
    """The comparison of two sides."""
    if not (before.traced and after.traced):
        return _engines_compared(before, after)
    unmapped = [side.source for side in (before, after) if without_layers(side)]
    if unmapped and before.pace.runs == after.pace.runs == 1:
        found = _captures_compared(by_kernel_name(before), by_kernel_name(after))
        note = (
            f"The kernels of {' and '.join(unmapped)} have no layers: kernels are joined by name"
            " instead."
        )
        return replace(found, notes=(*found.notes, note))
    return _captures_compared(before, after)


def _captures_compared(before: Side, after: Side) -> Comparison:
    paces = before.pace, after.pace
    scale = _pass(before, after)
    known = bool(before.layers and after.layers)
    groups, layers = (
        joined_table(before, after, float(scale)) if known else ((), Table.empty(JOINED_LAYERS))
    )
    timed = [
        _timed(side, scale, as_recorded=_as_recorded(before, after)) for side in (before, after)
    ]
    told = _told(before, after, scale)
    spread = told.interval_ns or told.noise_ns
    wholes = [one.time_ns for one in timed]
    parts: tuple[Contribution, ...] = ()
    if wholes[0] is not None and wholes[1] is not None:
        shown = tuple(_recorded(pace) if _as_recorded(before, after) else pace for pace in paces)
        if any(pace.hidden for pace in paces) or not known:
            parts = hidden_contributions((shown[0], shown[1]), (wholes[0], wholes[1]))
        else:
            parts = contributions((shown[0], shown[1]), groups, layers, (wholes[0], wholes[1]))
    regions = region_kinds(before, after, groups, layers) if known else Table.empty(REGION_KINDS)
    different = conditions(before, after, layers, regions)
    delta = None if wholes[0] is None or wholes[1] is None else wholes[1] - wholes[0]
    return Comparison(
        before=timed[0],
        after=timed[1],
        inferences_a_pass=scale,
        verdict=told.verdict,
        difference_ns=delta,
        interval_ns=told.interval_ns,
        noise_ns=told.noise_ns,
        p=told.p,
        significant=told.verdict in (FASTER, SLOWER),
        run_to_run_ns=(
            _rounded(_run_to_run(before, after) * scale)
            if before.pace.known and after.pace.known and before.pace.runs == 1
            else None
        ),
        test=told.test or f"no test: {told.no_test}",
        no_test=told.no_test,
        contributions=parts,
        layers=layers,
        regions=regions,
        region_parts=(
            region_parts(before, after, groups, layers) if known else Table.empty(REGION_PARTS)
        ),
        findings=finding_changes(
            (before, after),
            groups,
            layers,
            scale,
            0 if spread is None else (spread[1] - spread[0]) // 2,
        ),
        conditions=different,
        predictions=predictions(
            before, after, timed[1].time_ns, _interval_of(after, timed[1]), different
        ),
        notes=(*told.notes, *(note for side in (before, after) if (note := side.gpu_note))),
        precision=(
            ()
            if any(pace.hidden for pace in paces)
            else precision_reasons((before, after), groups, layers, (wholes[0], wholes[1]))
        ),
        eight_bits=_eight_bits(before, after),
    )


def _eight_bits(before: Side, after: Side) -> tuple[EightBits, ...]:
    """How 8 bits are used on the later side that has products in them."""
    found = [
        eight_bits_of(side.tables) if "eight_bits" in side.tables else ()
        for side in (after, before)
    ]
    return next((one for one in found if one), ())


def _pass(before: Side, after: Side) -> int:
    """Inferences per pass, if both sides have the same number."""
    found = []
    for side in (before, after):
        loops = [
            row
            for row in side.tables["inference_loops"]
            if row.maybe_integer("device") == side.pace.device
        ]
        most = max(loops, key=lambda row: row.integer("steady"), default=None)
        found.append(1 if most is None else most.integer("inferences_a_pass"))
    return found[0] if found[0] == found[1] else 1


def _as_recorded(before: Side, after: Side) -> bool:
    """Whether both times include the profiler's overhead because it cannot be subtracted from one
    of them.
    """
    return bool(before.pace.profiled or after.pace.profiled)


def _recorded(pace: Pace) -> Pace:
    return replace(
        pace,
        likely=pace.recorded,
        parts=pace.recorded_parts,
        kernel_excess=np.zeros_like(pace.kernel_excess),
    )


def _timed(side: Side, scale: int, *, as_recorded: bool) -> SideTime:
    pace = side.pace
    time = pace.recorded if as_recorded else pace.likely
    value = _rounded(time * scale)
    ends = (pace.recorded, pace.recorded) if as_recorded else (pace.quick, pace.slow)
    return SideTime(
        source=side.source,
        engines=tuple(engine.source for engine in side.engines),
        runs=pace.runs,
        inferences=pace.noise.count,
        held_up=pace.held_up,
        held_up_ns=_rounded(pace.held_up_ns * scale),
        time_ns=value,
        low_ns=_rounded(min(*ends, time) * scale),
        high_ns=_rounded(max(*ends, time) * scale),
        recorded_ns=_rounded(pace.recorded * scale),
        per_second=None if value is None else 1e9 / value,
        effective=round(pace.noise.effective, 1) if pace.known else None,
        drift_ns=_rounded(pace.noise.drift * scale),
        profiled=pace.profiled
        or ("it cannot be subtracted from the other side" if as_recorded else ""),
        gpu_ns=None if pace.hidden or not pace.known else _rounded(gpu_work_ns(pace) * scale),
        enqueue_ns=_enqueue(side, scale),
        with_outliers_ns=_with_outliers(side, scale),
        whole_graphs=pace.hidden and not as_recorded,
    )


def _enqueue(side: Side, scale: int) -> int | None:
    """The mean time of the enqueue of the counted inferences; None for several captures."""
    inferences = side.tables["inferences"]
    if side.merged is not None:
        return None
    took = inferences.ints("enqueue_ns")[
        np.isin(inferences.ints("inference"), side.pace.inferences)
    ]
    took = took[took != MISSING]
    return _rounded(float(took.mean()) * scale) if len(took) else None


def _with_outliers(side: Side, scale: int) -> int | None:
    """The time in the trace that analyze shows, if it is for the same GPU and unit; otherwise the
    mean of counted and held-up inferences.
    """
    summary = side.analysis.summary if side.analysis is not None and side.merged is None else None
    if (
        summary is not None
        and summary.traced is not None
        and len(summary.gpus) == 1
        and summary.unit_of_time.inferences == scale
    ):
        return summary.traced.ns
    return _rounded((side.pace.recorded + side.pace.held_up_ns) * scale)


def _rounded(value: float) -> int | None:
    return None if math.isnan(value) else round(value)


def _interval_of(side: Side, timed: SideTime) -> tuple[int, int]:
    """The 95 % interval of a side's own time, which includes the uncertainty of the profiler's
    overhead on that side only.
    """
    if timed.time_ns is None or timed.low_ns is None or timed.high_ns is None:
        return 0, 0
    noise = _noise(side.pace, recorded=bool(timed.profiled))
    none = replace(noise, value=0.0, error=0.0, freedom=1.0, drift=0.0)
    found = difference(none, noise)
    half = (
        0.0 if math.isnan(found.low) else (found.high - found.low) / 2 * timed.time_ns / noise.value
    )
    return round(timed.low_ns - half), round(timed.high_ns + half)


# --- the test
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RecordedTold:
    verdict: str
    interval_ns: tuple[int, int] | None
    noise_ns: tuple[int, int] | None
    p: float | None
    test: str
    notes: list[str]
    no_test: str = ""  # why there is none


def _told(before: Side, after: Side, scale: int) -> _RecordedTold:
    ours, theirs = before.pace, after.pace
    for side in (before, after):
        if not side.pace.known:
            why = f"{side.source}: {side.pace.profiled}"
            return _RecordedTold(CANNOT_TELL, None, None, None, "", [], why)
    other = _another_inference(before, after)
    if other:
        return _RecordedTold(CANNOT_TELL, None, None, None, "", [], other)
    recorded = _as_recorded(before, after)
    noises = [_noise(pace, recorded=recorded) for pace in (ours, theirs)]
    found = difference(noises[0], noises[1], slack=_slack(before, after, recorded=recorded))
    few = [side.source for side in (before, after) if math.isnan(side.pace.noise.error)]
    if few:
        names = f"{' and '.join(few)} {'has' if len(few) == 1 else 'have'}"
        why = f"{names} fewer than {FEWEST} counted inferences per thread; capture more"
        return _RecordedTold(TOO_FEW, None, None, None, "", [], why)
    test = _test_words(ours, theirs)
    noise = round(found.low * scale), round(found.high * scale)
    apart = _run_to_run(before, after)
    if recorded:
        wider = round((found.low - apart) * scale), round((found.high + apart) * scale)
        return _told_recorded(
            before, after, found.p, (noise, wider), test + (_BY_RUNS if apart else "")
        )
    low, high = _machines(before, after)
    half = found.high - found.value + apart
    ends = (
        found.value - math.hypot(min(low, 0.0), half),
        found.value + math.hypot(max(high, 0.0), half),
    )
    interval = round(ends[0] * scale), round(ends[1] * scale)
    unknown = " the uncertainty of the profiler's overhead"
    test += (
        f", by{unknown}{_BY_RUNS}"
        if apart
        else f" and by{unknown}"
        if ours.runs == 1
        else f" by{unknown}"
    )
    notes = [
        f"{side.source} is traced as whole CUDA graphs: their kernels, layers and idle time are not"
        " known and not compared, and its time is as recorded. Tracing is assumed"
        f" to have added {HIDDEN_COST_WORDS} of it, which the interval has. Capture with"
        " --cuda-graph-trace=node for a time without the profiler, and to see where the"
        " difference comes from."
        for side in (before, after)
        if side.pace.hidden
    ]
    # Where only the range of the profiler's overhead reaches zero, a difference that is beyond the
    # noise must not be called noise.
    beyond = _verdict((round((found.low - apart) * scale), round((found.high + apart) * scale)))
    verdict = CANNOT_TELL if _verdict(interval) == NO_DIFFERENCE != beyond else _verdict(interval)
    return _RecordedTold(verdict, interval, noise, found.p, test, notes)


def _verdict(interval: tuple[int, int]) -> str:
    return SLOWER if interval[0] > 0 else FASTER if interval[1] < 0 else NO_DIFFERENCE


def _test_words(ours: Pace, theirs: Pace) -> str:
    if ours.runs > 1:
        return (
            f"Welch's t-test on the times of {ours.runs} and {theirs.runs} runs; 95 % interval,"
            " widened"
        )
    return (
        "Welch's t-test on the inferences' times, each side's number reduced for serial"
        f" correlation (Geyer's initial positive sequence: {ours.noise.effective:.0f} of"
        f" {ours.noise.count} and {theirs.noise.effective:.0f} of {theirs.noise.count}); 95 %"
        " interval, widened by the drift within each side"
    )


def _another_inference(before: Side, after: Side) -> str:
    """Why an inference of one side is not the same unit of work as one of the other; empty if there
    is no sign of that.
    """
    kernels, periods = [], []
    for side in (before, after):
        inferences = side.tables["inferences"]
        rows = np.isin(inferences.ints("inference"), side.pace.inferences)
        kernels.append(mean_kernels(side))
        periods.append(
            bool(rows.any()) and bool(inferences.text("found_by").equals("period")[rows].all())
        )
    if periods[0] == periods[1] or max(kernels) < ANOTHER_LENGTH * max(min(kernels), 1.0):
        return ""
    found = before.source if periods[0] else after.source
    return (
        f"the inferences of {found} were found by period, without ranges, and the number of kernels"
        f" per inference differs: {kernels[0]:.0f} and {kernels[1]:.0f}. They are not the same unit"
        " of work"
    )


def _slack(before: Side, after: Side, *, recorded: bool) -> float:
    """Uncertainty of the difference beside noise: the profiler's overhead, and a different GPU if
    the program runs on several.
    """
    ours, theirs = before.pace, after.pace
    cost = 0.0 if recorded else _UNKNOWN_COST * abs(_cost(theirs) - _cost(ours))
    if ours.device == theirs.device:
        return cost
    return cost + max(
        (_between_devices(side, ours.device, theirs.device) for side in (before, after)),
        default=0.0,
    )


def _between_devices(side: Side, one: int, other: int) -> float:
    times = {
        row.maybe_integer("device"): row.maybe_integer("median_ns")
        for row in side.tables["inference_loops"]
    }
    ours, theirs = times.get(one), times.get(other)
    return 0.0 if ours is None or theirs is None else float(abs(ours - theirs))


def _cost(pace: Pace) -> float:
    """Estimated overhead of the profiler per inference."""
    return 0.0 if pace.hidden else pace.recorded - pace.likely


def _noise(pace: Pace, *, recorded: bool) -> Mean:
    """Noise of the times that are compared."""
    return pace.recorded_noise if recorded else pace.noise


def _told_recorded(
    before: Side,
    after: Side,
    p: float,
    intervals: tuple[tuple[int, int], tuple[int, int]],
    test: str,
) -> _RecordedTold:
    """The differences of times as recorded, by noise alone and with run-to-run differences; only if
    both sides have the same overhead.
    """
    noise, interval = intervals
    why = [f"{side.source}: {side.pace.profiled}" for side in (before, after) if side.pace.profiled]
    told = "Times are as recorded, profiler included: " + "; ".join(why) + "."
    if _launching(before) != _launching(after):
        notes = [
            told,
            (
                "The other side launches its kernels in a different way, so its profiler overhead"
                " is different: the two are not compared."
            ),
        ]
        return _RecordedTold(CANNOT_TELL, None, noise, p, test, notes)
    return _RecordedTold(_verdict(interval), interval, noise, p, test, [told])


_BY_RUNS = " and by what two runs of one program may differ"


def _run_to_run(before: Side, after: Side) -> float:
    """How much the difference may be off because each side is a single run; 0 if both are of the
    same capture.
    """
    return (
        0.0 if before.is_capture_of(after) else max(before.pace.run_to_run, after.pace.run_to_run)
    )


def _launching(side: Side) -> tuple[bool, str]:
    return side.cuda_graphs, side.tables["capture"].only().text("cuda_graph_trace")


def _machines(before: Side, after: Side) -> tuple[float, float]:
    """How far the difference may lie below and above the likely one, depending on the speed of host
    and driver without the profiler.

    On one machine both sides are fast or both slow; on two machines they may differ.
    """
    ours, theirs = before.pace, after.pace
    likely = theirs.likely - ours.likely
    pairs = [(ours.quick, theirs.quick), (ours.slow, theirs.slow)]
    if _gpus(before) != _gpus(after) or ours.hidden != theirs.hidden:
        pairs += [(ours.quick, theirs.slow), (ours.slow, theirs.quick)]
    shifts = [two - one - likely for one, two in pairs]
    return min(shifts), max(shifts)


def _gpus(side: Side) -> tuple[str | None, ...]:
    return tuple(sorted(str(name) for name in side.tables["devices"].text("name").list()))


# --- engines alone
# --------------------------------------------------------------------------------------------------


def _engines_compared(before: Side, after: Side) -> Comparison:
    """The comparison of engine files and profiles without a trace."""
    groups, layers = joined_table(before, after)
    by_layer = any(
        (side.tables["layers"].ints("trtexec_ns") >= 0).any()
        for side in (before, after)
        if not side.traced
    )
    timed = [
        _timed(side, 1, as_recorded=False) if side.traced else _profiled(side, by_layer=by_layer)
        for side in (before, after)
    ]
    wholes = [one.time_ns for one in timed]
    known = before.traced == after.traced and wholes[0] is not None and wholes[1] is not None
    parts: tuple[Contribution, ...] = ()
    if known and not by_layer:
        parts = (
            Contribution(
                _COMPUTE,
                int(wholes[1] or 0) - int(wholes[0] or 0),
                int(wholes[0] or 0),
                int(wholes[1] or 0),
                "work",
            ),
        )
    elif known:
        parts = tuple(
            Contribution(
                row.maybe_text("after") or row.text("before"),
                row.integer("difference_ns"),
                row.maybe_integer("before_ns") or 0,
                row.maybe_integer("after_ns") or 0,
                "layers",
            )
            for row in sorted(layers, key=lambda row: -abs(row.maybe_integer("difference_ns") or 0))
            if row["difference_ns"] is not None and (row["before_ns"] or row["after_ns"])
        )
    why = (
        "one of the two is not a capture"
        if before.traced != after.traced
        else "no capture was given"
    )
    no_test = f"{why}; a profile has one time per layer and says nothing about noise"
    return Comparison(
        before=timed[0],
        after=timed[1],
        inferences_a_pass=1,
        verdict=CANNOT_TELL,
        difference_ns=int(wholes[1] or 0) - int(wholes[0] or 0) if known else None,
        interval_ns=None,
        noise_ns=None,
        p=None,
        significant=False,
        run_to_run_ns=None,
        test=f"no test: {no_test}",
        no_test=no_test,
        contributions=parts,
        layers=layers,
        regions=Table.empty(REGION_KINDS),
        region_parts=Table.empty(REGION_PARTS),
        findings=finding_changes((before, after), groups, layers, 1),
        conditions=conditions(before, after, layers),
        predictions=(),
        notes=_of_profiles(before, after, known=known, by_layer=by_layer),
        precision=(
            precision_reasons((before, after), groups, layers, (wholes[0], wholes[1]))
            if known and by_layer
            else ()
        ),
        eight_bits=_eight_bits(before, after),
    )


_COMPUTE = "GPU compute time of a query (trtexec)"


def _of_profiles(before: Side, after: Side, *, known: bool, by_layer: bool) -> tuple[str, ...]:
    if known and not by_layer:
        return (
            (
                "Times are the median GPU compute time in trtexec's performance summary; it has no"
                " times of single layers."
            ),
        )
    if known:
        return (
            "Times are sums over the layers in trtexec's profile, which measures layer by layer.",
        )
    if before.traced == after.traced:
        return ()
    alone = before if after.traced else after
    told = (
        f"{alone.source} is not a capture: layers are joined, but times of a capture and of a"
        " profile are not compared."
    )
    return (told,)


def _profiled(side: Side, *, by_layer: bool) -> SideTime:
    """The sum of the layers' times in a profile, or otherwise the time of the whole engine in
    trtexec's log.
    """
    times = side.tables["layers"].ints("trtexec_ns")
    value = (
        int(times[times >= 0].sum())
        if (times >= 0).any()
        else None
        if by_layer
        else side.compute_ns
    )
    return SideTime(side.source, tuple(engine.source for engine in side.engines), time_ns=value)
