"""The report on a terminal: the answer on one screen, followed by all the details if requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nsysmap.answer import gains
from nsysmap.answer.costs import kernel_titles
from nsysmap.answer.model import Summary
from nsysmap.answer.words import in_its_words, mixture
from nsysmap.core.table import Row
from nsysmap.network.titles import called
from nsysmap.output import precision
from nsysmap.output.model import Report
from nsysmap.output.text.screen import screen
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
from nsysmap.text.lines import WHOLE, Line, Style, heading, pairs, rendered, styled, table, wrapped
from nsysmap.text.terminal import columns, escaped, shortened
from nsysmap.text.units import counted, duration, microseconds, percent

NARROWEST = 80
_LEVEL_STYLES: Mapping[str, Style] = {"error": "red", "warning": "yellow", "info": ""}
_LONGEST_SUMMARY = 40
_FIGURES = 37  # columns before a kernel in its table
_SYMBOL_WIDTH = 90  # on a narrower terminal the kernels' symbols are left out


def report_text(
    report: Report,
    *,
    width: int | None = None,
    full: bool = False,
    colour: bool = False,
    given: Sequence[str] = (),
) -> str:
    """The answer on one screen, or with ``full`` everything, as lines of at most ``width`` columns
    (none: nothing is cut).

    ``given`` are the paths of the report and its engine files for the commands on it; without them
    it has their names.
    """
    columns_there = WHOLE if width is None else max(NARROWEST, width)
    lines = screen(report.summary, columns_there, given)
    if full:
        for section in _sections(report, columns_there):
            lines += [styled(""), *section]
    return rendered(lines, colour=colour)


def _sections(report: Report, width: int) -> Iterator[list[Line]]:
    yield [*heading("Captured", width), *pairs(captured(report), width)]
    yield _inferences(report, width)
    if report.replays is not None:
        yield _replays(report, width)
    if report.idle:
        yield _idle(report, width)
    if report.tables.coverage:
        yield _mapping(report, width)
    if report.tables.layer_kinds:
        yield _layers(report, width)
        yield _kinds(report, width)
    if report.tables.precision:
        yield _precision(report, width)
    if report.tables.kernel_totals:
        if not report.tables.layer_kinds:
            yield _families(report, width)
        yield _kernels(report, width)
    if report.tables.whatif:
        yield _whatif(report, width)
    if report.outcomes:
        yield _findings(report, width)
    rest = [note for note in report.notes if note.level != "error"]
    if rest:
        yield [
            *heading("Notes", width),
            *(line for note in rest for line in _note(note.level, note.text, width)),
        ]


# --- the sections
# --------------------------------------------------------------------------------------------------


def _inferences(report: Report, width: int) -> list[Line]:
    figures = report.inferences
    if not figures.count:
        busy = [line for gpu in report.gpus for line in wrapped(busy_words(report, gpu), width)]
        return [
            *heading(inferences_heading(report), width),
            *wrapped("Times below are totals over the trace.", width),
            *busy,
        ]
    lines: list[Line] = [*heading(inferences_heading(report), width)]
    if cells := inference_cells(figures):
        lines.extend(table(("", "median", "p95", ""), cells, width, "lrrh"))
    for gpu in report.gpus:
        lines.extend(wrapped(busy_words(report, gpu), width))
    if report.by_engine:
        header = ("inferences", "GPU time", "p95", "enqueue", "p95", "engine")
        cells_by_engine = [
            (
                f"{one.count:,}",
                *median_and_p95(one.gpu_time_ns),
                *median_and_p95(one.enqueue_ns),
                engine_words(report, one.engine),
            )
            for one in report.by_engine
        ]
        lines.extend(table(header, cells_by_engine, width, "rrrrrl"))
    return lines


def _replays(report: Report, width: int) -> list[Line]:
    found = report.replays
    assert found is not None
    cells = replay_cells(found)
    head = heading(
        f"CUDA graphs: {counted(found.launches, 'replay')} measured from outside, because their"
        " kernels are hidden",
        width,
    )
    if not cells:
        return [
            *head,
            *wrapped(
                "The trace has neither whole-graph rows nor the calls that launched the replays.",
                width,
            ),
        ]
    return [*head, *table(("", "median", "p95", ""), cells, width, "lrrh")]


def _idle(report: Report, width: int) -> list[Line]:
    header, cells = idle_cells(report)
    return [
        *heading(idle_heading(report), width),
        *table(header, cells, width, "r" * (len(header) - 2) + "lh"),
    ]


def _mapping(report: Report, width: int) -> list[Line]:
    cells = mapping_cells(report, escaped)
    return [
        *heading(mapping_words(report), width),
        *table(("share", "time", "kernels", "method"), cells, width, "rrrw"),
    ]


def _layers(report: Report, width: int) -> list[Line]:
    timed = [row for row in report.layers if row.maybe_integer("time_ns")]
    several = len({row.maybe_integer("engine") for row in timed}) > 1
    named = width >= NAMES_FROM
    header = (
        "share",
        "µs",
        "kernels",
        "kind",
        *(("engine",) if several else ()),
        "#",
        "layer",
        *((ENGINES_NAME,) if named else ()),
    )
    cells = [
        (
            percent(row.maybe_real("share_of_all_kernel_time") or 0, 1),
            microseconds(row.integer("time_ns")),
            f"{row.maybe_integer('kernels') or 0:,}",
            row.text("kind"),
            *((number_words(row, "engine"),) if several else ()),
            number_words(row, "layer_index"),
            escaped(called(row)),
            *((escaped(row.text("name")),) if named else ()),
        )
        for row in timed
    ]
    lines: list[Line] = [*heading(f"Layers ({report.layer_time}; share of all kernel time)", width)]
    lines.extend(wrapped(mixture(report.summary), width))
    lines.extend(table(header, cells, width, "rrrl" + "r" * several + "rn" + "n" * named))
    return lines


def _kinds(report: Report, width: int) -> list[Line]:
    kinds = report.tables.layer_kinds
    several = len({row.maybe_integer("engine") for row in kinds}) > 1
    cells = [
        (
            percent(row.real("share_of_kernel_time"), 1),
            microseconds(row.integer("time_ns")),
            f"{row.integer('layers'):,}",
            *((number_words(row, "engine"),) if several else ()),
            row.text("kind"),
        )
        for row in kinds
    ]
    header = ("share", "µs", "layers", *(("engine",) if several else ()), "kind")
    head = heading(
        f"By kind of layer ({report.layer_time}; share of the engine's kernel time)", width
    )
    return [*head, *table(header, cells, width, "rrrrl" if several else "rrrl")]


def _precision(report: Report, width: int) -> list[Line]:
    rows = list(report.tables.precision)
    lines: list[Line] = [*heading(in_its_words(report.summary, precision.heading(rows)), width)]
    engines = precision.by_engine(rows)
    for engine, mine in engines:
        if len(engines) > 1:
            lines.extend(wrapped(f"{engine_words(report, engine)}:", width))
        lines.extend(
            table(
                ("share", "µs", "layers", *precision.TYPES_HEADER),
                precision.type_cells(mine),
                width,
                "rrrlll",
            )
        )
        lines.extend(line for text in precision.sentences(mine) for line in wrapped(text, width))
        regions = [tuple(escaped(cell) for cell in cells) for cells in precision.region_cells(mine)]
        if len(regions) > 1:
            lines.extend(table(precision.REGIONS_HEADER, regions, width, "rrrrrrll"))
    return lines


def _families(report: Report, width: int) -> list[Line]:
    return [
        *heading("By family of kernel (over the whole trace)", width),
        *table(
            ("share", "time", "kernels", "names", "family"), family_cells(report), width, "rrrrl"
        ),
    ]


def _kernels(report: Report, width: int) -> list[Line]:
    """By name; Myelin names that say the same operations are one line, as each is only numbered
    differently.
    """
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in report.tables.kernel_totals:
        alike.setdefault(
            (row.text("family"), row.maybe_text("ops") or row.text("name")), []
        ).append(row)
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
    cells = []
    titles = kernel_titles(
        [(kernel_words(rows[0]), rows[0].text("name")) for rows in shown], width - _FIGURES
    )
    for rows, title in zip(shown, titles, strict=True):
        time_ns, count = (
            sum(row.integer(column) for row in rows) for column in ("time_ns", "count")
        )
        names = f"{len(rows)} names: " if len(rows) > 1 else ""
        figures = (
            percent(time_ns, report.kernel_time_ns),
            duration(time_ns),
            f"{count:,}",
            microseconds(time_ns / count),
        )
        summary = shortened(escaped(kernel_words(rows[0])), longest) if symbols else title
        cells.append(
            (*figures, summary, names + escaped(rows[0].text("name")))
            if symbols
            else (*figures, summary)
        )
    header = ("share", "total", "count", "mean µs", "what it is", *(("kernel",) if symbols else ()))
    lines: list[Line] = [*heading("Kernels (over the whole trace)", width)]
    lines.extend(table(header, cells, width, "rrrrld" if symbols else "rrrrn"))
    return lines


def _whatif(report: Report, width: int) -> list[Line]:
    unit = report.summary.unit
    answered = sorted(answered_changes(report), key=lambda row: -row.integer("saving_ns"))
    cells = [
        (*saving_cells(row), change_words(row.text("change"), report.summary)) for row in answered
    ]
    lines: list[Line] = [
        *heading(
            f"What if (the timeline replayed with one change; per {unit}, without the profiler)",
            width,
        )
    ]
    if cells:
        lines.extend(table(("saving", "range", "time", "change"), cells, width, "rrrl"))
    for answer, reason, changes in unanswered(report):
        lines.extend(
            wrapped(f"{', '.join(changes)}: {answer}: {escaped(reason)}", width, style="dim")
        )
    lines.extend(
        wrapped(f"Do first: {told}", width, style="dim")
        if (told := gains.cut_off(report.summary))
        else []
    )
    return lines


def _findings(report: Report, width: int) -> list[Line]:
    findings, skipped = report.findings, report.skipped
    ran = len(report.outcomes) - len(skipped)
    rules = {finding.rule for finding in findings}
    lines = heading(
        f"Findings of {len(rules):,} of the {counted(ran, 'rule')} that could run", width
    )
    groups = by_rule(findings)
    outcomes = {one.rule: one for one in report.outcomes}
    for mine in groups:
        lines.extend(_finding(mine, outcomes[mine[0].rule], report.summary, width))
    if any(finding.cost_ns for finding in findings):
        lines.extend(
            wrapped("Costs of different rules overlap: do not add them.", width, style="dim")
        )
    reasons: dict[str, list[str]] = {}
    for one in skipped:
        reasons.setdefault(because(one.reason, report.summary), []).append(one.rule)
    if reasons:
        lines.append(styled(f"  {counted(len(skipped), 'rule')} could not tell:"))
        for reason, names in reasons.items():
            lines.extend(
                wrapped(f"{', '.join(names)}: {escaped(reason)}", width, indent=4, style="dim")
            )
    return lines


def _finding(
    findings: Sequence[Finding], outcome: Outcome, summary: Summary, width: int
) -> Iterator[Line]:
    """What one rule's findings cost together, the costliest of them, and what to do unless it is
    for information only.
    """
    first = findings[0]
    places = f", {counted(len(findings) + outcome.more, 'place')}" if len(findings) > 1 else ""
    cost = f", {cost_words(outcome.cost_ns, outcome.group, summary)}" if outcome.cost_ns else ""
    title = f"  {first.severity}  {first.rule}{places}{cost}"
    yield styled(shortened(title, width), _LEVEL_STYLES[first.severity])
    for finding in findings:
        yield from wrapped(finding.message, width, indent=4)
    if outcome.more:
        yield from wrapped(
            f"and {counted(outcome.more, 'more place')} of this rule", width, indent=4, style="dim"
        )
    also = dict.fromkeys(one.rule for finding in findings for one in finding.also)
    if also:
        yield from wrapped(
            f"the same problem, seen by {', '.join(also)}", width, indent=4, style="dim"
        )
    yield from wrapped(
        f"→ {' '.join(to_do(findings, summary).split())}", width, indent=4, style="dim"
    )


def _note(level: str, text: str, width: int) -> Iterator[Line]:
    yield from wrapped(f"{level}: {escaped(text)}", width, style=_LEVEL_STYLES[level])
