"""The sections of a report, each made once: every form of output lays out the same ones.

`SECTIONS` lists them in reading order. A new one is a function and a line there; forms that show a
section in a way of their own name it by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nsysmap.answer import eight_bits_words, gains, headroom_words
from nsysmap.answer.costs import kernel_titles
from nsysmap.answer.model import Answer
from nsysmap.answer.words import in_its_words, mixture
from nsysmap.core.table import Row
from nsysmap.network.titles import called
from nsysmap.output import precision
from nsysmap.output.whatif import assumptions
from nsysmap.output.words import (
    ENGINES_NAME,
    NAMES_FROM,
    answered_changes,
    because,
    busy_words,
    by_rule,
    captured,
    change_words,
    cost_words,
    engine_words,
    family_cells,
    idle_cells,
    idle_heading,
    inference_cells,
    inferences_heading,
    kernel_words,
    mapping_cells,
    mapping_words,
    median_and_p95,
    number_words,
    replay_cells,
    saving_cells,
    to_do,
    unanswered,
)
from nsysmap.rules.finding import Finding, Outcome
from nsysmap.text.lines import WHOLE, Style
from nsysmap.text.page import (
    Advice,
    Block,
    Bullets,
    Grid,
    Instruction,
    Instructions,
    Pairs,
    Paragraph,
    Section,
    Subheading,
    paragraphs,
)
from nsysmap.text.terminal import columns, escaped, shortened
from nsysmap.text.units import capitalised, counted, duration, microseconds, percent

LEVEL_STYLES: Mapping[str, Style] = {"error": "red", "warning": "yellow", "info": ""}
"""The style of a severity on a terminal."""

_LONGEST_SUMMARY = 40  # columns
_FIGURES = 37  # columns before a kernel in its table
_SYMBOL_WIDTH = 90  # on a narrower terminal the kernels' symbols are left out
_TOP_KERNELS, _TOP_PLACES = 50, 5  # in a form with little room
_ELSEWHERE = "the .json and .db reports have all"


def sections_of(report: Answer, width: int = WHOLE) -> Iterator[Section]:
    """The sections that the report has something for, in reading order; on a terminal of that
    width, tables have the columns that it has room for.
    """
    for key, make in SECTIONS.items():
        heading, blocks = make(report, width)
        if heading:
            yield Section(key, heading, tuple(blocks))


Made = tuple[str, Sequence[Block]]
"""The heading of a section, and what stands below it; no heading where the report has nothing."""

_NONE: Made = ("", ())


def _captured(report: Answer, _width: int) -> Made:
    return "Captured", [Pairs(tuple(captured(report)))]


def _inferences(report: Answer, _width: int) -> Made:
    figures, busy = report.figures, [busy_words(report, gpu) for gpu in report.machine_gpus]
    heading = inferences_heading(report)
    if not figures.count:
        return heading, paragraphs(["Times below are totals over the trace.", *busy])
    blocks: list[Block] = []
    if cells := inference_cells(figures):
        blocks.append(Grid(("", "median", "p95", ""), tuple(cells), "lrrh"))
    blocks += paragraphs(busy)
    if report.figures_by_engine:
        header = ("inferences", "GPU time", "p95", "enqueue", "p95", "engine")
        rows = tuple(
            (
                f"{one.count:,}",
                *median_and_p95(one.gpu_time_ns),
                *median_and_p95(one.enqueue_ns),
                engine_words(report, one.engine),
            )
            for one in report.figures_by_engine
        )
        blocks.append(Grid(header, rows, "rrrrrl", names=(5,)))
    return heading, blocks


def _replays(report: Answer, _width: int) -> Made:
    found = report.replays
    if found is None:
        return _NONE
    heading = (
        f"CUDA graphs: {counted(found.launches, 'replay')} measured from outside, because their"
        " kernels are hidden"
    )
    cells = replay_cells(found)
    if not cells:
        none = "The trace has neither whole-graph rows nor the calls that launched the replays."
        return heading, [Paragraph(none)]
    return heading, [Grid(("", "median", "p95", ""), tuple(cells), "lrrh")]


def _idle(report: Answer, _width: int) -> Made:
    if not report.idle_rows:
        return _NONE
    header, cells = idle_cells(report)
    return idle_heading(report), [Grid(header, tuple(cells), "r" * (len(header) - 2) + "lh")]


def _mapping(report: Answer, _width: int) -> Made:
    if not report.tables.coverage:
        return _NONE
    header = ("share", "time", "kernels", "method")
    return mapping_words(report), [Grid(header, tuple(mapping_cells(report)), "rrrw")]


def _layers(report: Answer, width: int) -> Made:
    if not report.tables.layer_kinds:
        return _NONE
    timed = [row for row in report.layer_rows if row.maybe_integer("time_ns")]
    several = len({row.maybe_integer("engine") for row in timed}) > 1
    named = width >= NAMES_FROM
    header = (
        *("share", "µs", "kernels", "kind"),
        *(("engine",) if several else ()),
        *("#", "layer"),
        *((ENGINES_NAME,) if named else ()),
    )
    rows = tuple(
        (
            percent(row.maybe_real("share_of_all_kernel_time") or 0, 1),
            microseconds(row.integer("time_ns")),
            f"{row.maybe_integer('kernels') or 0:,}",
            row.text("kind"),
            *((number_words(row, "engine"),) if several else ()),
            number_words(row, "layer_index"),
            called(row),
            *((row.text("name"),) if named else ()),
        )
        for row in timed
    )
    first_name = 5 + several
    grid = Grid(
        header,
        rows,
        "rrrl" + "r" * several + "rn" + "n" * named,
        names=(first_name, first_name + 1),
        fold=f"All {len(rows):,} layers",
    )
    return (
        f"Layers ({report.layer_time}; share of {report.shares_of})",
        [*paragraphs([mixture(report)]), grid],
    )


def _kinds(report: Answer, _width: int) -> Made:
    kinds = report.tables.layer_kinds
    if not kinds:
        return _NONE
    several = len({row.maybe_integer("engine") for row in kinds}) > 1
    rows = tuple(
        (
            percent(row.real("share_of_kernel_time"), 1),
            microseconds(row.integer("time_ns")),
            f"{row.integer('layers'):,}",
            *((number_words(row, "engine"),) if several else ()),
            row.text("kind"),
        )
        for row in kinds
    )
    header = ("share", "µs", "layers", *(("engine",) if several else ()), "kind")
    heading = f"By kind of layer ({report.layer_time}; share of the engine's kernel time)"
    return heading, [Grid(header, rows, "rrrrl" if several else "rrrl")]


def _precision(report: Answer, _width: int) -> Made:
    rows = list(report.tables.precision)
    if not rows:
        return _NONE
    blocks: list[Block] = []
    engines = precision.by_engine(rows)
    for engine, mine in engines:
        if len(engines) > 1:
            blocks.append(Paragraph(f"{engine_words(report, engine)}:"))
        header = ("share", "µs", "layers", *precision.TYPES_HEADER)
        blocks.append(Grid(header, tuple(precision.type_cells(mine)), "rrrlll"))
        blocks += paragraphs(precision.sentences(mine))
        regions = tuple(precision.region_cells(mine))
        if len(regions) > 1:
            blocks.append(Grid(precision.REGIONS_HEADER, regions, "rrrrrrll", names=(7,)))
    return in_its_words(report, precision.heading(rows)), blocks


def _headroom(report: Answer, _width: int) -> Made:
    found = report.headroom
    if found is None:
        return _NONE
    known = [one for one in found.groups if one.least_ns is not None]
    compared = bool(found.compared_ns)
    rows = tuple(
        (
            percent(one.headroom_ns, found.headroom_ns or 1, 0),
            microseconds(one.headroom_ns),
            microseconds(one.time_ns),
            microseconds(one.least_ns),
            *((microseconds(one.reachable_ns) if one.reachable_ns else "",) * compared),
            f"{one.layers}",
            headroom_words.why(one),
            one.title,
        )
        for one in known
        if one.headroom_ns
    )
    header = (
        *("share", "could go", "µs", "least µs"),
        *(("measured µs",) * compared),
        *("layers", "why", "layer"),
    )
    grid = Grid(
        header,
        rows,
        "rrrr" + "r" * compared + "rln",
        names=(6 + compared,),
        fold=f"All {len(rows):,} groups of layers",
        top=_TOP_KERNELS,
        where=_ELSEWHERE,
    )
    blocks: list[Block] = [
        Paragraph(f"{capitalised(headroom_words.distance(found))}."),
        *paragraphs([capitalised(told) + "." if (told := headroom_words.reach(found)) else ""]),
        Paragraph(f"The least time is {headroom_words.basis(found)}.", "dim"),
        grid,
    ]
    if found.trials:
        blocks.append(Paragraph("To try there, with what it saves at most (none is a prediction):"))
        blocks.append(
            Instructions(
                tuple(
                    Instruction(
                        headroom_words.trial_words(report, one),
                        tuple(line for line in (one.paste, one.paste_pytorch) if line),
                        one.change or "",
                    )
                    for one in found.trials
                ),
                numbered=False,
            )
        )
    return f"Headroom: time that could go (per {report.unit})", blocks


def _eight_bits(report: Answer, _width: int) -> Made:
    if not report.eight_bits:
        return _NONE
    blocks: list[Block] = []
    for one in report.eight_bits:
        if len(report.eight_bits) > 1:
            blocks.append(Paragraph(f"{engine_words(report, one.engine)}:"))
        rows = eight_bits_words.cells(one)
        blocks.append(Grid(eight_bits_words.HEADER, rows, eight_bits_words.ALIGN))
    return eight_bits_words.heading([one.type for one in report.eight_bits]), blocks


def _families(report: Answer, _width: int) -> Made:
    if not report.tables.kernel_totals:
        return _NONE
    header = ("share", "time", "kernels", "names", "family")
    return (
        "By family of kernel (over the whole trace)",
        [Grid(header, tuple(family_cells(report)), "rrrrl")],
    )


def _annotations(report: Answer, _width: int) -> Made:
    """Nodes of one name are one line."""
    by_name: dict[str, list[Row]] = {}
    for row in report.tables.graph_annotations:
        if row.integer("kernels"):
            by_name.setdefault(row.text("name"), []).append(row)
    if not by_name:
        return _NONE
    cells = []
    for name, rows in by_name.items():
        time_ns, kernels = (
            sum(row.integer(column) for row in rows) for column in ("time_ns", "kernels")
        )
        cells.append((time_ns, kernels, len(rows), name))
    cells.sort(key=lambda one: (-one[0], one[-1]))
    grid = Grid(
        ("share", "time", "kernels", "nodes", "annotation"),
        tuple(
            (
                percent(time_ns, report.kernel_time_ns),
                duration(time_ns),
                f"{kernels:,}",
                f"{nodes:,}",
                name,
            )
            for time_ns, kernels, nodes, name in cells
        ),
        "rrrrn",
        names=(4,),
        fold=counted(len(cells), "annotation"),
        top=_TOP_KERNELS,
        where=_ELSEWHERE,
    )
    return "By annotation of CUDA graph nodes (over the whole trace)", [grid]


def _kernels(report: Answer, width: int) -> Made:
    """Kernels by name. Myelin names with the same operations share a line, because only their
    numbers differ.
    """
    if not report.tables.kernel_totals:
        return _NONE
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in report.tables.kernel_totals:
        same = (row.text("family"), row.maybe_text("ops") or row.text("name"))
        alike.setdefault(same, []).append(row)
    shown = sorted(
        alike.values(),
        key=lambda rows: (-sum(row.integer("time_ns") for row in rows), rows[0].text("name")),
    )
    symbols = width >= _SYMBOL_WIDTH
    longest = (
        min(_LONGEST_SUMMARY, max(columns(kernel_words(rows[0])) for rows in shown))
        if symbols
        else width
    )
    titles = kernel_titles(
        [(kernel_words(rows[0]), rows[0].text("name")) for rows in shown], width - _FIGURES
    )
    cells = []
    for rows, title in zip(shown, titles, strict=True):
        time_ns = sum(row.integer("time_ns") for row in rows)
        count = sum(row.integer("count") for row in rows)
        figures = (
            percent(time_ns, report.kernel_time_ns),
            duration(time_ns),
            f"{count:,}",
            microseconds(time_ns / count),
        )
        names = f"{len(rows)} names: " if len(rows) > 1 else ""
        words = shortened(escaped(kernel_words(rows[0])), longest)
        cells.append(
            (*figures, words, names + rows[0].text("name")) if symbols else (*figures, title)
        )
    header = ("share", "total", "count", "mean µs", "what it is", *(("kernel",) if symbols else ()))
    grid = Grid(
        header,
        tuple(cells),
        "rrrrld" if symbols else "rrrrn",
        names=(5,),
        fold=counted(len(report.tables.kernel_totals), "kernel name"),
        top=_TOP_KERNELS,
        where=_ELSEWHERE,
    )
    return f"{report.kernels_shown} (over the whole trace)", [grid]


def _whatif(report: Answer, _width: int) -> Made:
    if not report.tables.whatif:
        return _NONE
    answered = sorted(answered_changes(report), key=lambda row: -row.integer("saving_ns"))
    rows = tuple((*saving_cells(row), change_words(row.text("change"), report)) for row in answered)
    blocks: list[Block] = []
    if rows and report.unlike_loops is not None:
        loops = counted(len(report.unlike_loops.loops), "unlike loop")
        blocks.append(Paragraph(f"no times: they would be means over {loops}", "dim"))
    elif rows:
        blocks.append(Grid(("saving", "range", "time", "change"), rows, "rrrl"))
        assumed, own = assumptions(
            [(row.text("change"), row.text("assumptions")) for row in answered]
        )
        if assumed:
            blocks.append(Paragraph(assumed, terminal=False))
        if own:
            told = tuple(f"{change}: {text}" for change, text in own)
            blocks.append(Bullets(told, terminal=False))
    reasons = tuple(
        f"{', '.join(changes)}: {answer}: {reason}"
        for answer, reason, changes in unanswered(report)
    )
    if reasons:
        blocks.append(Bullets(reasons, style="dim"))
    if cut_off := gains.cut_off(report):
        blocks.append(Paragraph(f"Do first: {cut_off}", "dim"))
    return (
        f"What if (the timeline replayed with one change; per {report.unit}, without the profiler)",
        blocks,
    )


def _findings(report: Answer, _width: int) -> Made:
    if not report.outcomes:
        return _NONE
    findings, skipped = report.findings, report.skipped
    rules = {finding.rule for finding in findings}
    could_run = counted(len(report.outcomes) - len(skipped), "rule")
    blocks: list[Block] = []
    outcomes = {one.rule: one for one in report.outcomes}
    for mine in by_rule(findings):
        blocks += _of_rule(mine, outcomes[mine[0].rule], report)
    if any(finding.cost_ns for finding in findings):
        blocks.append(Paragraph("Costs of different rules overlap: do not add them.", "dim"))
    reasons: dict[str, list[str]] = {}
    for one in skipped:
        reasons.setdefault(because(one, report), []).append(one.rule)
    if reasons:
        told = tuple(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        blocks.append(Paragraph(f"{counted(len(skipped), 'rule')} could not tell:"))
        blocks.append(Bullets(told, style="dim", indent=4))
    heading = f"Findings of {len(rules):,} of the {could_run} that could run"
    return heading, blocks


def _of_rule(findings: Sequence[Finding], outcome: Outcome, report: Answer) -> Iterator[Block]:
    """The common cost of one rule's findings, the costliest of them, and what to do."""
    first, summary = findings[0], report
    places = f", {counted(len(findings) + outcome.more, 'place')}" if len(findings) > 1 else ""
    cost = f", {cost_words(outcome.cost_ns, outcome.group, summary)}" if outcome.cost_ns else ""
    title = f"{first.severity}  {first.rule}{places}{cost}"
    yield Subheading(title, LEVEL_STYLES[first.severity])
    messages = tuple(finding.message for finding in findings)
    yield Bullets(messages, indent=4, top=_TOP_PLACES, where=_ELSEWHERE)
    if outcome.more:
        more = f"and {counted(outcome.more, 'more place')} of this rule"
        yield Paragraph(more, "dim", indent=4)
    also = dict.fromkeys(one.rule for finding in findings for one in finding.also)
    if also:
        yield Paragraph(f"the same problem, seen by {', '.join(also)}", "dim", indent=4)
    yield Advice(to_do(findings, summary))


def _notes(report: Answer, _width: int) -> Made:
    if not report.notes:
        return _NONE
    return (
        "Notes",
        [
            Bullets((f"{note.level}: {note.text}",), style=LEVEL_STYLES[note.level])
            for note in report.notes
        ],
    )


SECTIONS: Mapping[str, Callable[[Answer, int], Made]] = {
    "captured": _captured,
    "inferences": _inferences,
    "replays": _replays,
    "idle": _idle,
    "mapping": _mapping,
    "layers": _layers,
    "kinds": _kinds,
    "precision": _precision,
    "eight-bits": _eight_bits,
    "headroom": _headroom,
    "families": _families,
    "annotations": _annotations,
    "kernels": _kernels,
    "whatif": _whatif,
    "findings": _findings,
    "notes": _notes,
}
"""The function that makes each section, by its key."""
