"""The sentences that more than one writer of the report uses."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.advice.conditions import joined
from nsysmap.advice.paste import CHANGES, RULES
from nsysmap.answer.costs import whose_unit
from nsysmap.answer.model import (
    Answer,
    Gpu,
    InferenceFigures,
    ReplayFigures,
    Skipped,
    Spread,
    TraceFacts,
)
from nsysmap.answer.words import NOT_ABOUT_THIS, each, in_its_words
from nsysmap.core.idle_causes import IDLE_CAUSES, idle_words
from nsysmap.core.note import LEVELS
from nsysmap.core.table import Row
from nsysmap.names.decode import decode
from nsysmap.names.decode import summary as kernel_summary
from nsysmap.output.whatif import change_figures
from nsysmap.rules.finding import Finding, Skip
from nsysmap.text.units import capitalised, counted, duration, percent, rounded, size

CAUSES = {cause.name: cause.meaning for cause in IDLE_CAUSES.values()}
"""The meaning of each cause of a gap (schema.GAPS)."""

ENGINES_NAME = "name in the engine"
"""The heading of a column of the names that TensorRT gave to layers, beside what they are
called.
"""

NAMES_FROM = 120
"""The width from which on tables of layers have that column."""

_FOUND_BY = {
    "range": "ExecutionContext:: ranges",
    "graph-launch": "graph launches",
    "period": "the period with which kernels repeat",
}
_GRAPH_MODES = {
    "none": "none",
    "node": "{launches}, their kernels traced one by one",
    "graph": "{launches}, their kernels hidden (whole-graph tracing)",
}


def captured(report: Answer) -> list[tuple[str, str]]:
    """What was captured, as names and texts."""
    trace = report.trace
    work = ", ".join(
        [
            counted(trace.kernels, "kernel"),
            *(
                counted(number, noun)
                for number, noun in ((trace.copies, "copy"), (trace.memsets, "memset"))
                if number
            ),
        ]
    )
    places = ", ".join(
        counted(number, noun)
        for number, noun in (
            (trace.processes, "process"),
            (trace.threads, "thread"),
            (trace.streams, "stream"),
        )
        if number
    )
    versions = (
        f"nsys {trace.nsys_version or 'unknown'} (schema {trace.schema_version or 'unknown'})"
    )
    versions += f", TensorRT {trace.tensorrt_version}" if trace.tensorrt_version else ""
    pairs = [
        (f"GPU {gpu.device}" if len(report.machine_gpus) > 1 else "GPU", gpu_words(gpu))
        for gpu in report.machine_gpus
    ]
    versions += "; read by nsysmap itself" if trace.form == "nsys-rep read by nsysmap" else ""
    pairs += [
        ("trace", f"{duration(trace.duration_ns)}: {work}; {places}"),
        ("CUDA graphs", graph_words(trace)),
        ("versions", versions),
    ]
    for number, engine in enumerate(report.engines):
        name = "engine" if len(report.engines) == 1 else f"engine {number}"
        detail = "" if engine.detailed else " (names only)"
        ran = (
            "its kernels are hidden"
            if report.replays and not engine.inferences
            else f"ran {counted(engine.inferences, 'inference')}"
        )
        pairs.append((name, f"{engine.source}: {counted(engine.layers, 'layer')}{detail}, {ran}"))
        pairs += [("", how)] if (how := engine.how) else []
    if not report.engines:
        pairs.append(
            (
                "engine",
                "no engine file given"
                + (": layers come from the trace's ranges" if report.layer_rows else ""),
            )
        )
    return pairs


def gpu_words(gpu: Gpu) -> str:
    """A GPU's name and main properties."""
    facts = [
        gpu.chip,
        None if gpu.sm_count is None else f"{gpu.sm_count} SMs",
        None if gpu.compute is None else f"compute {gpu.compute}",
        None if gpu.memory_bytes is None else size(gpu.memory_bytes),
    ]
    told = ", ".join(fact for fact in facts if fact)
    return f"{gpu.name} ({told})" if told else gpu.name


def graph_words(trace: TraceFacts) -> str:
    """How CUDA graphs were traced."""
    return _GRAPH_MODES[trace.cuda_graph_trace].format(
        launches=counted(trace.graph_launches, "launch")
    )


def inferences_heading(report: Answer) -> str:
    """The heading of the inferences, or of what repeats: how many, how they were found, and which
    of them the medians exclude.
    """
    figures = report.figures
    what = in_its_words(report, "{:Inference}s")
    return (
        f"{what}: {figures.count:,}, {_found_by(figures)}{_excluded(figures)}"
        if figures.count
        else f"{what}: none recognised"
    )


def _found_by(figures: InferenceFigures) -> str:
    """How the inferences were found."""
    ways = [_FOUND_BY.get(way, way) for way in (figures.found_by or "").split("+")]
    return "found by " + " and ".join(ways)


def _excluded(figures: InferenceFigures) -> str:
    """The inferences that the medians exclude."""
    parts = [f"{figures.warmup:,} warm-up"] if figures.warmup else []
    parts += [f"{figures.cut:,} cut off, or last and of other kernels"] if figures.cut else []
    return f"; measured {figures.measured:,} ({' and '.join(parts)} excluded)" if parts else ""


def idle_heading(report: Answer) -> str:
    """The heading of the idle times by cause."""
    idle = dict.fromkeys((gpu.device for gpu in report.machine_gpus), 0)
    for row in report.idle_rows:
        idle[row.integer("device")] = idle.get(row.integer("device"), 0) + row.integer("time_ns")
    shares = [
        (gpu.device, percent(idle[gpu.device], time.window_ns if time else 0))
        for gpu in report.machine_gpus
        for time in (report.time_of(gpu),)
    ]
    told = ", ".join(
        share if len(shares) == 1 else f"GPU {device} {share}" for device, share in shares
    )
    gpus = "GPUs were" if len(shares) > 1 else "GPU was"
    return (
        f"Why the {gpus} idle between pieces of work: {told} of the time from first to last"
        f" {window_words(report)}"
    )


def idle_cells(report: Answer) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The header and the cells of the table of idle times; with the GPU if there are several."""
    several = len(report.machine_gpus) > 1
    inferred = {(gpu.device, one.cause) for gpu in report.gpus for one in gpu.idle if one.inferred}
    cells = []
    for row in report.idle_rows:
        cause = row.text("cause")
        follows = (row.integer("device"), cause) in inferred
        cells.append(
            (
                *((str(row["device"]),) if several else ()),
                percent(row.real("share_of_window"), 1),
                duration(row.integer("time_ns")),
                f"{row.integer('gaps'):,}",
                idle_words(cause, inferred=follows),
                CAUSES[cause] + (" (inferred: the trace has no row of it)" if follows else ""),
            )
        )
    return (*(("GPU",) if several else ()), "share", "time", "gaps", "cause", ""), cells


def mapping_words(report: Answer) -> str:
    """How many kernels have a layer."""
    kernels, mapped = (
        int(rows.ints("kernels").sum()) for rows in (report.tables.coverage, report.mapped_rows)
    )
    time = percent(int(report.mapped_rows.ints("time_ns").sum()), report.kernel_time_ns, 2)
    visible = "visible " if report.trace.cuda_graph_trace == "graph" else ""
    of = counted(kernels, f"{visible}kernel")
    return (
        f"Mapping over the whole trace: {mapped:,} of {of} have a layer, {time} of {visible}kernel"
        " time"
    )


def window_words(report: Answer) -> str:
    """What delimits the window of busy and idle time: "from the first to the last …"."""
    return f"steady-state {each(report)}" if report.busy_window == "inferences" else "GPU work"


def busy_words(report: Answer, gpu: Gpu) -> str:
    """How busy a GPU was; empty if the trace does not show it."""
    time = report.time_of(gpu)
    if time is None or time.whole_busy_ns is None:
        return ""
    which = f"GPU {gpu.device} busy" if len(report.machine_gpus) > 1 else "GPU busy"
    share = percent(time.whole_busy_ns, time.window_ns)
    whole = (
        f"{duration(time.window_ns)} that count, of {duration(time.window_ns + time.left_out_ns)}"
        if time.left_out_ns
        else duration(time.window_ns)
    )
    return f"{which} {share} of the {whole} from the first to the last {window_words(report)}"


def engine_words(report: Answer, engine: int | None) -> str:
    """An engine file by name."""
    return "none of the engine files" if engine is None else report.engines[engine].source


def cost_words(cost_ns: float, group: str, summary: Answer | None) -> str:
    """The cost of findings of a rule of this group, in the answer's unit; as a total if there is no
    unit or the findings are about the capture; per inference for an engine file alone.
    """
    if summary is None:
        return f"{rounded(cost_ns)} per inference"
    in_all = not summary.units or group == "capture"
    return (
        f"{rounded(cost_ns)} in all"
        if in_all
        else f"{rounded(cost_ns / summary.units)} per {whose_unit(summary)}"
    )


def unanswered(report: Answer) -> list[tuple[str, str, list[str]]]:
    """The changes that what-if did not answer: whether they do not apply or cannot be determined,
    why, and their names.
    """
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in report.tables.whatif:
        if (answer := row.text("answer")) != "answered":
            reasons.setdefault(
                (answer.replace("-", " "), row.maybe_text("reason") or ""), []
            ).append(row.text("change"))
    return [
        (answer, reason, changes)
        for (answer, reason), changes in sorted(
            reasons.items(), key=lambda one: one[0][0] != "does not apply"
        )
    ]


def answered_changes(report: Answer) -> list[Row]:
    """The rows of what-if that have a saving."""
    return [row for row in report.tables.whatif if row.text("answer") == "answered"]


def saving_cells(row: Row) -> tuple[str, str, str]:
    """How much a change saves, its range, and the time before and after it."""
    before, after, saving, low, high = change_figures(row)
    return f"{saving} µs", f"{low} to {high} µs", f"{before} → {after} µs"


def median_and_p95(spread: Spread | None) -> tuple[str, str]:
    """The median and the 95th percentile of a time; "–" for none."""
    return ("–", "–") if spread is None else (duration(spread.median_ns), duration(spread.p95_ns))


def inference_cells(figures: InferenceFigures) -> list[tuple[str, ...]]:
    """The known times of an inference: name, median, 95th percentile and meaning."""
    return _spread_cells(
        ("GPU time", figures.gpu_time_ns, "its kernels, copies and memsets; overlaps counted once"),
        ("GPU span", figures.gpu_span_ns, "from its first to its last GPU work"),
        ("enqueue", figures.enqueue_ns, "host time to launch it"),
    )


def replay_cells(found: ReplayFigures) -> list[tuple[str, ...]]:
    """The known times of a replay whose kernels are hidden, in the same way."""
    between = (
        "GPU idle between two replays"
        if found.gaps_of_gpu
        else "from that synchronisation to the next launch"
    )
    return _spread_cells(
        ("replay", found.gpu_time_ns, "on the GPU, from the trace's whole-graph rows"),
        ("launch call", found.launch_ns, "host time of one graph launch"),
        (
            "round trip",
            found.round_trip_ns,
            "from that call to the host's next synchronisation: an upper bound for the replay",
        ),
        ("between", found.gap_ns, between),
    )


def _spread_cells(*rows: tuple[str, Spread | None, str]) -> list[tuple[str, ...]]:
    return [
        (name, *median_and_p95(spread), hint) for name, spread, hint in rows if spread is not None
    ]


def mapping_cells(report: Answer) -> list[tuple[str, ...]]:
    """Share, time and number of kernels by mapping method, and by the reason why they have none."""
    rows = [(row, row.text("method")) for row in report.mapped_rows]
    rows += [(row, f"none: {row.text('reason')}") for row in report.tables.unmapped]
    return [
        (
            percent(time := row.integer("time_ns"), report.kernel_time_ns, 2),
            duration(time),
            f"{row.integer('kernels'):,}",
            method,
        )
        for row, method in rows
    ]


def family_cells(report: Answer) -> list[tuple[str, ...]]:
    """Share, time, kernels, names and family of the kernels by family."""
    return [
        (
            percent(row.real("share_of_kernel_time"), 1),
            duration(row.integer("time_ns")),
            f"{row.integer('kernels'):,}",
            f"{row.integer('names'):,}",
            row.text("family"),
        )
        for row in report.tables.kernel_families
    ]


def number_words(row: Row, column: str) -> str:
    """The number in a column, a dash where there is none."""
    number = row.maybe_integer(column)
    return "–" if number is None else str(number)


def change_words(change: str, summary: Answer) -> str:
    """A change (schema.WHATIF) by its name, and its description: what the answer says to do, where
    it is among that.
    """
    title = next((action.title for action in summary.actions if action.name == change), None)
    return (
        f"{change}: {title or in_its_words(summary, CHANGES[change].title)}"
        if change in CHANGES
        else change
    )


_AGAINST = frozenset({"cuda-graph-would-not-help"})
"""Rules that advise against the change whose saving they state."""


def to_do(findings: Sequence[Finding], summary: Answer | None = None) -> str:
    """What to do about findings of one rule: in a few words, which are the answer's if it has a
    name for it, and each one's advice.
    """
    first = findings[0]
    against = first.rule in _AGAINST
    found = RULES.get(first.rule) or (
        CHANGES[first.what_if] if first.what_if and not against else None
    )
    title = found.title if found is not None else ""
    if summary is not None and first.rule not in (*RULES, *_AGAINST):
        title = next((one.title for one in summary.actions if first.rule in one.rules), title)
    told = joined([one.advice for one in findings])
    return f"{capitalised(title)}. {told}" if title and not told.lower().startswith(title) else told


def kernel_words(row: Row) -> str:
    """The description of a kernel in a column of kernels."""
    return kernel_summary(decode(row.text("name")), noun=False)


def by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings rule by rule: the most severe first, then the most costly."""
    rules: dict[str, list[Finding]] = {}
    for finding in findings:
        rules.setdefault(finding.rule, []).append(finding)
    return sorted(
        rules.values(),
        key=lambda mine: (LEVELS.index(mine[0].severity), -(mine[0].cost_ns or 0), mine[0].rule),
    )


def because(skipped: Skip | Skipped, summary: Answer | None = None) -> str:
    """Why a rule could not decide, without the name of the empty table or column if it is known why
    that is empty.

    In a program without TensorRT, rules that need its layers are about TensorRT.
    """
    if summary is not None and not summary.tensorrt and skipped.about_engines:
        return NOT_ABOUT_THIS
    return (skipped.why if isinstance(skipped, Skip) else skipped.because) or skipped.reason
