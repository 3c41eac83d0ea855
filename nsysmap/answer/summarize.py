"""Makes the answer from an analysis's tables."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nsysmap.advice.program import Program, program_of
from nsysmap.answer.actions import UnitTime, actions, run_facts
from nsysmap.answer.decoding import decoding
from nsysmap.answer.eight_bits import eight_bits_of
from nsysmap.answer.figures import (
    busy_share,
    inference_figures,
    machine_gpus,
    replay_figures,
    trace_facts,
)
from nsysmap.answer.first_use import first_use
from nsysmap.answer.hardware import better_capture, counted_limits, hardware_use
from nsysmap.answer.headroom import headroom_of
from nsysmap.answer.kernel_sequences import what_differs
from nsysmap.answer.model import (
    IN_A_REGION,
    REPLAY,
    UNKNOWN_GPU,
    WORK,
    Answer,
    Disturbance,
    Doubt,
    EngineRan,
    Figure,
    GpuTime,
    GraphVerdict,
    IdleCause,
    InferenceKind,
    KernelShare,
    LayerGroup,
    MappedCounts,
    OtherKernels,
    Region,
    RegionPart,
    RuleAnswer,
    Trouble,
    UnitOfTime,
    WhereItRan,
    in_pieces,
)
from nsysmap.answer.next_steps import next_steps
from nsysmap.answer.phases import drift_words, phase_words, saved_in
from nsysmap.answer.ranks import collective_times, in_step
from nsysmap.answer.rates import rates
from nsysmap.answer.slowest import slowest
from nsysmap.answer.unlike_loops import named_warm_up, without_means
from nsysmap.answer.whose import (
    idle_causes,
    is_much,
    opaque_layers,
    outside_of,
    short_engines,
    without_engine,
)
from nsysmap.core.note import Note, gravest_first
from nsysmap.core.records import dataclass
from nsysmap.core.schema import Tables
from nsysmap.core.table import Row, Table
from nsysmap.names.decode import decode, pattern_words
from nsysmap.rules.finding import Outcome
from nsysmap.text.terminal import in_one
from nsysmap.trace.inferences.disturbance import SLOWED, is_disturbed
from nsysmap.trace.inferences.steady import only_repeats, slow_first

_TOP_KERNELS = 10  # names; forms of output show fewer of them
_MYELIN_INDEX = re.compile(r"_myl\d+_\d+$")
_PLACES = ("block", "part")  # evidence of rules that says better than the layer where a finding is
_ALL_KERNELS = (("repeated_layers", "total_ns"), ("other_kernels", "time_ns"))
# of the time that the GPU waits for launches: a host twice as slow makes that a quarter longer
_HOST_BOUND = 0.25
_COUNTED_APART = 0.01  # by which two ways to count the ends of a long run differ
_ENDS = 2  # units that a replay cannot count: the first and the last of a run
_SAME_RATE = 0.03  # by which the rates of two GPUs may differ and be told once
_TOLD = 3  # patterns or classes of a kernel's operations shown at most
_ORDINAL = re.compile(r" #\d+$")
_NUMBER = re.compile(r"(?<![A-Za-z])\d+|(?<=[a-z]{3})\d+")


def summarize(
    held: Mapping[str, Table], outcomes: Sequence[Outcome] = (), notes: Sequence[Note] = ()
) -> Answer:
    """The answer, from the tables of an analysis by name, with what its rules answered and what the
    reader must know first.
    """
    tables = held if isinstance(held, Tables) else Tables(dict(held))
    capture = tables["capture"].only()
    program = program_of(tables)
    unit = _unit(tables, program)
    counted_in = sum(row.integer("inferences") for row in tables["device_times"]) / unit.inferences
    hidden = capture.text("cuda_graph_trace") == "graph"
    kernel_units = 0.0 if hidden else counted_in
    outside = outside_of(tables, unit.inferences) if not unit.repetitions else None
    unit = replace(unit, among_others=unit.inferences == 1 and is_much(outside))
    prediction = next((row for row in tables["whatif"] if row.maybe_integer("before_ns")), None)
    gpus = _gpus(tables, unit)
    use = hardware_use(tables)
    together = in_step(tables) if program.collectives else None
    traced, traced_gpu = _traced(tables, unit, prediction, slowest_counts=program.collectives)
    unprofiled = (
        None
        if prediction is None
        else Figure(*(prediction.integer(f"{end}before_ns") for end in ("", "low_", "high_")))
    )
    if unprofiled is not None and traced is not None and traced_gpu is None:
        unprofiled = no_longer(unprofiled, traced.ns, counted_in)
    trtexec_ns = _trtexec(tables) if unit.inferences == 1 else None
    version = (
        capture.maybe_text("tensorrt_version") or ".".join(map(str, program.tensorrt or ())) or None
    )
    version = None if program.rtx else version
    basis = unprofiled or traced
    window_ns = (
        sum(row.integer("window_ns") for row in tables["device_times"] if row.integer("inferences"))
        / counted_in
        if counted_in
        else 0.0
    )
    time = UnitTime(basis.ns, round(window_ns)) if basis else None
    without = _without_profiler(tables)
    todo = actions(
        tables,
        run_facts(tables, program),
        units=counted_in,
        unit_time=time,
        idle=without.idle if without else (),
    )
    loops = list(tables["inference_loops"])
    kinds = _kinds(tables, unit.one)
    every, by_engine = inference_figures(tables)
    answer = Answer(
        source=capture.text("source"),
        unit_of_time=unit,
        inferences=sum(row.integer("inferences") for row in loops),
        steady=sum(row.integer("steady") for row in loops),
        tensorrt=program.shows_engine,
        tensorrt_version=version,
        pytorch=capture.flag("has_pytorch"),
        program=program.kind,
        engines=_engines(tables),
        traced=traced,
        traced_gpu=traced_gpu,
        unprofiled=unprofiled,
        trtexec_ns=trtexec_ns,
        kinds=kinds,
        gpus=gpus,
        gpu_unprofiled=without,
        counters=use,
        counted_limits=counted_limits(tables),
        layers=_layers(tables, kernel_units),
        outside=outside,
        kernel_ns=round(_kernel_ns(tables) / (kernel_units or 1)),
        kernel_units=kernel_units,
        units=counted_in,
        hidden=hidden,
        other_kernels=_other_kernels(tables["other_kernels"], kernel_units),
        kernels=_kernels(tables["kernel_totals"]),
        kernel_kinds=_kernel_kinds(tables),
        slowest=slowest(tables),
        regions=_regions(tables, kernel_units),
        opaque_layers=opaque_layers(tables),
        rules=_rules(tables, counted_in),
        graph=_graph(tables["whatif"]),
        replayed_ns=None if prediction is None else prediction.maybe_integer("recorded_ns"),
        replay_error=None if prediction is None else prediction.maybe_real("replay_error"),
        actions=tuple(
            replace(
                one,
                in_phase=saved_in(tables, kinds, one.name),
            )
            for one in todo
        ),
        doubts=_doubts(tables),
        mapped=_mapped(tables),
        errors=tuple(
            Trouble(
                row.text("text"),
                row.maybe_text("brief") or row.text("text"),
                row.maybe_text("without_command") or row.text("text"),
                row.maybe_text("remedy") or "",
            )
            for row in tables["notes"]
            if row.text("level") == "error"
        ),
        warnings=tuple(
            row.text("text") for row in tables["notes"] if row.text("level") == "warning"
        ),
        trace=trace_facts(tables),
        machine_gpus=machine_gpus(tables),
        figures=every,
        figures_by_engine=by_engine,
        busy_share=busy_share(gpus),
        busy_window="inferences" if every.measured else "trace",
        replays=replay_figures(tables),
        tables=tables,
        outcomes=tuple(outcomes),
        notes=tuple(gravest_first(notes)),
        next_steps=(
            *next_steps(tables, program),
            *((better,) if (better := better_capture(use)) else ()),
        ),
        selected=next(
            (row.text("text") for row in tables["notes"] if row.maybe_text("about") == "selection"),
            None,
        ),
        collectives=program.collectives,
        in_step=together,
        disturbance=_disturbance(tables),
        in_turn=any(rate.in_turn for rate in rates(tables).values()),
        first_use=first_use(tables, program),
        decoding=decoding(tables, program),
        named_warm_up=named_warm_up(tables) if unit.repetitions else None,
        tensorrt_bound=None if version else program.bound,
        tensorrt_since=None if version else program.oldest,
        eight_bits=eight_bits_of(tables),
        headroom=headroom_of(tables, program, kernel_units, unprofiled=without, gpus=gpus),
    )
    return without_means(answer)


# --- time per inference
# -----------------------------------------------------------------------------------------------


def _unit(tables: Mapping[str, Table], program: Program) -> UnitOfTime:
    """An inference, or a pass if all loops run passes of the same number."""
    told = {
        row.integer("inferences") for row in tables["whatif"] if row.maybe_integer("inferences")
    }
    told = told or {row.integer("inferences_a_pass") for row in tables["inference_loops"]}
    number = told.pop() if len(told) == 1 else 1
    repeats = only_repeats(tables["inferences"], tensorrt=program.shows_engine)
    return UnitOfTime(number, repetitions=repeats)


def _traced(
    tables: Mapping[str, Table], unit: UnitOfTime, prediction: Row | None, *, slowest_counts: bool
) -> tuple[Figure | None, int | None]:
    """Wall time over units by the loops of the GPU that has most of them (the fewest:
    ``slowest_counts``), and that GPU where others have not as many; of GPUs alike the longest time;
    what the replay has of the trace where no loop is timed.
    """
    per_second = {device: rate.per_second for device, rate in rates(tables).items()}
    fastest = max(per_second.values(), default=0.0)
    if fastest:
        # launches of hidden CUDA graphs have none
        known = [rate for device, rate in per_second.items() if device is not None]
        alike = len(known) < 2 or all(rate >= (1 - _SAME_RATE) * fastest for rate in known)
        told = (min if slowest_counts or alike else max)(known or [fastest])
        one = next(
            device
            for device, rate in per_second.items()
            if rate == told and (device is not None or not known)
        )
        return Figure(round(1e9 * unit.inferences / told)), None if alike else one
    recorded = None if prediction is None else prediction.maybe_integer("recorded_ns")
    return (Figure(recorded) if recorded else None), None


def no_longer(unprofiled: Figure, traced_ns: int, counted: float) -> Figure:
    """The time without the profiler, limited to the trace's, of which ``counted`` units are in the
    mean, where the two differ no more than by which units at the ends of the run count: the
    profiler only adds time.
    """
    apart = max(_COUNTED_APART, _ENDS / counted if counted else 0.0)
    if not traced_ns < unprofiled.ns <= (1 + apart) * traced_ns:
        return unprofiled
    # the range is of the same units as the time
    low, high = (
        None if end is None else round(end * traced_ns / unprofiled.ns)
        for end in (unprofiled.low_ns, unprofiled.high_ns)
    )
    return Figure(traced_ns, low, None if high is None else traced_ns)


def _disturbance(tables: Mapping[str, Table]) -> Disturbance | None:
    """How much a host was held up or slowed down, where the time per inference depends on it; None
    if nothing shows that.

    Threads of one program hold each other up, and wait for each other's work on the GPU: of several
    nothing is told.
    """
    loops = list(tables["inference_loops"])
    waits = sum(
        one.real("share_of_window")
        for one in tables["idle_totals"]
        if one.text("cause") == "launch"
    )
    if len(loops) != 1 or waits < _HOST_BOUND:
        return None
    row, found = loops[0], Disturbance()
    if is_disturbed(row.maybe_real("held_up_share") or 0.0, row.maybe_integer("held_up") or 0):
        slow, steady, first, last = (
            row.integer(name) for name in ("held_up", "steady", "first_held_up", "last_held_up")
        )
        found = Disturbance(
            slow, steady, first, last, row.real("held_up_share"), row.real("held_up_times_median")
        )
    slowdown = row.maybe_real("quick_call_slowdown") or 0.0
    if slowdown >= SLOWED:
        found = replace(found, quick_call=row.text("quick_call"), slowdown=slowdown)
    return None if found == Disturbance() else found


def _trtexec(tables: Mapping[str, Table]) -> int | None:
    found = next(
        (row for row in tables["trtexec_times"] if row.text("measure") == "interval"), None
    )
    return (
        None
        if found is None
        else found.maybe_integer("trtexec_mean_ns") or found.maybe_integer("trtexec_ns")
    )


def _kinds(tables: Mapping[str, Table], one: str) -> tuple[InferenceKind, ...]:
    groups = list(tables["inference_groups"])
    loops = {row.integer("loop_id"): row for row in tables["inference_loops"]}
    sources = short_engines([row.text("source") for row in tables["engines"]])
    open_ones = {
        row.integer("engine")
        for row in tables["engine_fits"]
        if row.text("verdict") == "cannot-tell"
    }
    sources = [
        f"perhaps {name}" if number in open_ones else name for number, name in enumerate(sources)
    ]
    known = {row.maybe_integer("engine") for row in groups}
    whose = known != {None} and (len(sources) > 1 or len(known) > 1)  # told only where it differs
    none = without_engine(row.text("verdict") for row in tables["engine_fits"])
    of_loop: dict[tuple[object, object], list[Row]] = defaultdict(list)
    for row in groups:
        of_loop[row["loop_id"], row["engine"]].append(row)
    homes = _Homes.of(loops.values())
    found = []
    for row in groups:
        engine = row.maybe_integer("engine")
        same = of_loop[row["loop_id"], row["engine"]]
        phases = [other for other in same if other["kernel_sequence"] == row["kernel_sequence"]]
        first = min(phases, key=lambda one: one.maybe_integer("phase") or 0)
        alike = [
            other
            for other in same
            if not other.maybe_integer("phase") and (other.integer("steady") or other is first)
        ]
        what = "" if not whose else none if engine is None else sources[engine]
        kernels, place = row.maybe_integer("kernels"), _place(loops[row.integer("loop_id")], homes)
        hidden = not kernels and row.maybe_text("found_by") == "graph-launch" and len(groups) > 1
        what = "" if hidden and engine is None else what
        distinction = None if hidden else what_differs(tables, alike).get(first.integer("group_id"))
        if hidden and not what and not place.words:
            place = WhereItRan(hidden_graphs=True)
        found.append(
            InferenceKind(
                one=one,
                **{name: row.integer(name) for name in ("inferences", "warmup", "cut")},
                kernels=row.maybe_integer("kernels"),
                mean_ns=row.maybe_integer("mean_ns"),
                median_ns=row.maybe_integer("median_ns"),
                p95_ns=row.maybe_integer("p95_ns"),
                gpu_time_ns=row.maybe_integer("gpu_time_median_ns"),
                enqueue_ns=row.maybe_integer("enqueue_median_ns"),
                gpu_span_ns=row.maybe_integer("gpu_span_median_ns"),
                steady=row.integer("steady"),
                phase=(
                    phase_words(tables, phases)[row.integer("group_id")] if len(phases) > 1 else ""
                ),
                group=row.integer("group_id"),
                drift=drift_words(tables, row.integer("group_id")),
                engine_name=what,
                distinction=distinction,
                place=place,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.inferences, one.what)))


@dataclass(frozen=True)
class _Homes:
    """Where the loops of a trace run."""

    loops: Counter[tuple[int, int | None]]  # how many, by process and GPU
    processes: int
    devices: int

    @staticmethod
    def of(loops: Iterable[Row]) -> _Homes:
        found = Counter(_home(row) for row in loops)
        processes, devices = ({home[place] for home in found} for place in (0, 1))
        return _Homes(found, len(processes), len(devices - {None}))


def _place(loop: Row, homes: _Homes) -> WhereItRan:
    """What distinguishes a loop from the others: its process, its GPU, its thread's number, and
    whether it launches CUDA graphs with hidden kernels.
    """
    pid, device = _home(loop)
    return WhereItRan(
        process=pid if homes.processes > 1 else None,
        gpu=device if homes.devices > 1 else None,
        thread=loop.integer("loop_id") + 1 if homes.loops[pid, device] > 1 else None,
        hidden_graphs=homes.devices > 0 and device is None,
    )


def _home(loop: Row) -> tuple[int, int | None]:
    return loop.integer("pid"), loop.maybe_integer("device")


# --- where the time goes
# ----------------------------------------------------------------------------------------------


def _gpus(tables: Mapping[str, Table], unit: UnitOfTime) -> tuple[GpuTime, ...]:
    names = {row.integer("device"): row.text("name") for row in tables["devices"]}
    collectives = collective_times(tables)
    before = tables["inferences"].take(slow_first(tables["inferences"]))
    found = []
    for row in tables["device_times"]:
        device, inferences, busy = (
            row.integer("device"),
            row.integer("inferences"),
            row.maybe_integer("busy_ns"),
        )
        units = inferences / unit.inferences
        first = before.ints("gpu_span_ns")[before.ints("device") == device]
        idle = idle_causes(tables, device, units)
        found.append(
            GpuTime(
                device=device,
                name=names.get(device) or UNKNOWN_GPU,
                window=row.text("window"),
                window_ns=row.integer("window_ns"),
                busy_share=row.maybe_real("busy_share"),
                busy_ns=round(busy / units) if busy is not None and units else None,
                copies_share=(row.maybe_integer("copies_ns") or 0) / (busy or 1),
                idle=idle,
                whole_busy_ns=busy,
                left_out_ns=(
                    row.integer("end_ns") - row.integer("start_ns") - row.integer("window_ns")
                ),
                slow_first=len(first),
                slow_first_ns=int(first.sum()),
                collectives_ns=(
                    round(collectives[device] * unit.inferences) if device in collectives else None
                ),
            )
        )
    return tuple(found)


def _without_profiler(tables: Mapping[str, Table]) -> GpuTime | None:
    """The time of the replayed GPU without the profiler."""
    rows = {row.text("part"): row for row in tables["replayed_times"]}
    if not rows:
        return None
    work, whole = rows.pop(WORK), sum(row.integer("time_ns") for row in tables["replayed_times"])
    names = {row.integer("device"): row.text("name") for row in tables["devices"]}
    device = work.maybe_integer("device") or 0
    return GpuTime(
        device=device,
        name=names.get(device) or UNKNOWN_GPU,
        window=REPLAY,
        window_ns=whole,
        busy_share=work.real("share"),
        busy_ns=work.integer("time_ns"),
        copies_share=0.0,
        idle=tuple(
            IdleCause(cause, row.integer("time_ns"), row.real("share"))
            for cause, row in rows.items()
        ),
    )


def _kernel_ns(tables: Mapping[str, Table]) -> int:
    """The time of all kernels in the steady-state part, with a layer or without."""
    return sum(int(tables[name].ints(column).sum()) for name, column in _ALL_KERNELS)


def _layers(tables: Mapping[str, Table], units: float) -> tuple[LayerGroup, ...]:
    # the name of a row has * for all in which its layers' names differ, operations among it
    names = {row.integer("layer_id"): row.text("name") for row in tables["layers"]}
    return tuple(
        LayerGroup(
            name=row.text("name"),
            title=row.text("title"),
            kind=row.text("kind"),
            does=(
                ", ".join(_does(names[row.integer("first_layer")]))
                if row.text("kind") == "myelin_kernel" or row.text("name").startswith("__myl_")
                else ""
            ),
            engine=row.maybe_integer("engine"),
            layers=row.integer("layers"),
            kernels=row.integer("kernels"),
            time_ns=round(row.integer("total_ns") / (units or 1)),
            share_of_all_kernel_time=row.real("share_of_all_kernel_time"),
            opaque=row.flag("opaque"),
        )
        for row in tables["repeated_layers"]
    )


def _other_kernels(rows: Table, units: float) -> tuple[OtherKernels, ...]:
    return tuple(
        OtherKernels(
            row.text("family"),
            row.integer("names"),
            row.integer("kernels") / (units or 1),
            round(row.integer("time_ns") / (units or 1)),
            row.real("share_of_all_kernel_time"),
        )
        for row in rows
    )


def _does(name: str) -> tuple[str, ...]:
    """What a Myelin kernel computes according to its name: the patterns in it, otherwise its
    operations' classes.
    """
    decoded = decode(name)
    classes = {op.cls for op in decoded.ops}
    told = dict.fromkeys(pattern_words(decoded)) or dict.fromkeys(
        op.cls
        for op in decoded.ops
        if op.cls not in ("data movement", "cast") or classes == {op.cls}
    )
    return tuple(told)[:_TOLD]


def _regions(tables: Mapping[str, Table], units: float) -> tuple[Region, ...]:
    """The opaque regions of each engine by part, with those whose names differ only in numbers
    together.
    """
    opaque = {row.text("name") for row in tables["layers"] if row.text("kind") == "foreign_node"}
    rows: dict[tuple[int | None, str], list[Row]] = {}
    for row in tables["region_parts"]:
        if row.text("region") in opaque:
            rows.setdefault((row.maybe_integer("engine"), row.text("region")), []).append(row)
    times = {key: sum(row.integer("time_ns") for row in mine) for key, mine in rows.items()}
    of_engine, whole = Counter[int | None](), dict.fromkeys((engine for engine, _ in times), 0)
    for (engine, _), time_ns in times.items():
        of_engine[engine] += time_ns
    for row in tables["repeated_layers"]:
        if row.text("kind") == "foreign_node" and row.maybe_integer("engine") in whole:
            whole[row.maybe_integer("engine")] += row.integer("total_ns")
    all_ns = _kernel_ns(tables)
    found = []
    for engine, name in sorted(times, key=lambda key: -times[key]):
        # as the layer's row has it: of the steady-state part, while parts are of the steady-state
        # inferences
        scale = whole[engine] / (of_engine[engine] or 1)
        found.append(
            Region(
                name,
                engine,
                times[engine, name] * scale / (all_ns or 1),
                _parts(rows[engine, name], scale / (units or 1)),
            )
        )
    return tuple(found)


def _parts(rows: Sequence[Row], scale: float) -> tuple[RegionPart, ...]:
    """The parts of a region; a time or number of kernels of theirs is multiplied by the scale to be
    that of one unit.
    """
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(_NUMBER.sub("*", _ORDINAL.sub("", row.text("part"))), []).append(row)
    total = sum(row.integer("time_ns") for row in rows)
    found = []
    for name, mine in alike.items():
        time_ns = sum(row.integer("time_ns") for row in mine)
        kernels = sum(row.integer("kernels") for row in mine) * scale
        first = mine[0].text("part")
        shown = name if len(mine) > 1 else first
        does = _does(first) if first.startswith("__myl_") else ()
        found.append(
            RegionPart(
                shown,
                ", ".join(does),
                len(mine),
                kernels,
                round(time_ns * scale),
                time_ns / total if total else 0.0,
                does,
            )
        )
    return tuple(sorted(found, key=lambda one: -one.time_ns))


def _kernels(totals: Table) -> tuple[KernelShare, ...]:
    rows = sorted(totals, key=lambda row: -row.integer("time_ns"))[:_TOP_KERNELS]
    return tuple(
        KernelShare(
            row.text("name"),
            row.text("summary"),
            row.integer("count"),
            row.integer("time_ns"),
            row.real("share_of_kernel_time"),
        )
        for row in rows
    )


def _kernel_kinds(tables: Mapping[str, Table]) -> tuple[tuple[str, float], ...]:
    if len(tables["repeated_layers"]):
        shares: dict[str, float] = {}
        for row in tables["repeated_layers"]:
            shares[row.text("kind")] = shares.get(row.text("kind"), 0.0) + row.real(
                "share_of_all_kernel_time"
            )
        return tuple(sorted(shares.items(), key=lambda one: -one[1]))
    return tuple(
        (row.text("family"), row.real("share_of_kernel_time")) for row in tables["kernel_families"]
    )


def _mapped(tables: Mapping[str, Table]) -> MappedCounts:
    rows = sorted(tables["coverage"], key=lambda row: -row.integer("kernels"))
    mapped = [row for row in rows if row.text("method") != "none" and row.integer("kernels")]
    total, shares = (
        sum(row.integer("time_ns") for row in rows),
        tables["repeated_layers"].floats("share_of_all_kernel_time"),
    )
    of_all = sum(row.integer("time_ns") for row in mapped) / total if total else None
    return MappedCounts(
        kernels=sum(row.integer("kernels") for row in rows),
        with_layer=sum(row.integer("kernels") for row in mapped),
        share_of_time=min(float(shares.sum()), 1.0) if of_all and len(shares) else of_all,
        methods=tuple(row.text("method") for row in mapped),
    )


# --- what ran, what could not be determined, what next
# ----------------------------------------------------------------------


def _engines(tables: Mapping[str, Table]) -> tuple[EngineRan, ...]:
    fits = {row.integer("engine"): row for row in tables["engine_fits"]}
    ran: dict[int, int] = {}
    for row in tables["inference_groups"]:
        engine = row.maybe_integer("engine")
        if engine is not None:
            ran[engine] = ran.get(engine, 0) + row.integer("inferences")
    found = []
    for row in tables["engines"]:
        engine = row.integer("engine")
        fit = fits.get(engine)
        found.append(
            EngineRan(
                source=row.text("source"),
                file=row.maybe_text("file") or "",
                tensorrt_version=row.maybe_text("tensorrt_version"),
                layers=row.integer("layers"),
                detailed=row.flag("detailed"),
                inferences=ran.get(engine, 0),
                verdict=fit.text("verdict") if fit else None,
                how=fit.text("how") if fit else None,
                in_doubt=_number(fit, "in_doubt"),
                other_kernels=_number(fit, "other_kernels"),
                tactics=_number(fit, "tactics"),
                other_tactics=_number(fit, "tactics") - _number(fit, "tactics_ran"),
                lacking=_number(fit, "lacking"),
                one_of=_number(fit, "one_of"),
                by_order=fit is not None and fit.maybe_integer("known") is None,
                unknown_layers=(
                    _number(fit, "compared") - _number(fit, "known")
                    if fit and fit["known"] is not None
                    else 0
                ),
            )
        )
    return tuple(found)


def _number(fit: Row | None, name: str) -> int:
    return (fit.maybe_integer(name) if fit else None) or 0


def _rules(tables: Mapping[str, Table], units: float) -> tuple[RuleAnswer, ...]:
    own: dict[str, list[Row]] = {}
    for row in tables["findings"]:
        if row.maybe_integer("inside") is None:
            own.setdefault(row.text("rule"), []).append(row)
    found = []
    for row in tables["rule_outcomes"]:
        mine = own.get(row.text("rule"), [])
        cost = row.maybe_integer("cost_ns")
        found.append(
            RuleAnswer(
                rule=row.text("rule"),
                group=row.text("rule_group"),
                severity=row.text("severity"),
                outcome=row.text("outcome"),
                places=len(mine) + (row.integer("left_out") if mine else 0),
                at_most_ns=round(cost / units) if cost and units else None,
                message=mine[0].text("message") if mine else None,
                where=(
                    in_one(places)
                    if (places := [place for one in mine if (place := _found_at(one))])
                    else None
                ),
                in_pieces=(
                    in_pieces(json.loads(one.text("evidence")) for one in mine)
                    if row.text("rule") == IN_A_REGION
                    else ""
                ),
            )
        )
    return tuple(sorted(found, key=lambda one: -(one.at_most_ns or 0)))


def _found_at(finding: Row) -> str | None:
    """The place of a finding: a block of the model, a part of a region, otherwise a layer."""
    evidence = json.loads(finding.text("evidence"))
    told = next(
        (evidence[name] for name in _PLACES if isinstance(evidence.get(name), str)),
        finding.maybe_text("layer_title") or finding.maybe_text("layer"),
    )
    return None if told is None else _MYELIN_INDEX.sub("", str(told).removeprefix("$$myelin$$"))


def _graph(whatif: Table) -> GraphVerdict:
    row = next((row for row in whatif if row.text("change") == "cuda-graph"), None)
    if row is None or row.text("answer") != "answered":
        answer = "cannot-tell" if row is None else row.text("answer")
        reason = None if row is None else row.maybe_text("reason")
        low = None if row is None else row.maybe_integer("may_save_low_ns")
        high = None if row is None else row.maybe_integer("may_save_high_ns")
        perhaps = None
        if low is not None and high is not None:
            perhaps = Figure(round((low + high) / 2), low, high)
        return GraphVerdict(answer, None, None, reason, perhaps)
    saving = Figure(*(row.integer(f"{end}saving_ns") for end in ("", "low_", "high_")))
    before = row.integer("before_ns")
    return GraphVerdict("answered", saving, saving.ns / before if before else None, None)


def _doubts(tables: Mapping[str, Table]) -> tuple[Doubt, ...]:
    """What could not be determined, by reason."""
    found: dict[str, Doubt] = {}
    for row in tables["rule_outcomes"]:
        if row.text("outcome") == "skipped":
            reason = row.maybe_text("reason") or ""
            empty = Doubt(
                reason,
                because=row.maybe_text("because") or reason,
                lacks=row.maybe_text("lacks") or "",
                about_engines=row.flag("about_engines"),
            )
            one = found.get(reason, empty)
            found[reason] = replace(one, rules=(*one.rules, row.text("rule")))
    for row in tables["whatif"]:
        if row.text("answer") == "cannot-tell":
            reason = row.maybe_text("reason") or ""
            one = found.get(reason, Doubt(reason, because=reason))
            found[reason] = replace(one, changes=(*one.changes, row.text("change")))
    return tuple(found.values())
