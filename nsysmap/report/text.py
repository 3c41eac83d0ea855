"""The report as people read it on a terminal: top-down, at most 100 columns, colour only where it means something."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsysmap.base.terminal import columns, escaped, shortened
from nsysmap.base.units import counted, duration, microseconds, percent
from nsysmap.report import precision
from nsysmap.report.model import KernelRow, Report, Spread
from nsysmap.report.words import (
    CAUSES,
    busy_words,
    by_rule,
    captured,
    change_words,
    engine_words,
    found_by_words,
    idle_heading,
    kernel_words,
    mapping_words,
    set_apart,
    unanswered,
    whatif_unit,
)
from nsysmap.rules.finding import Finding, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 100
NARROWEST = 80
_TOP_LAYERS, _TOP_KERNELS, _TOP_FINDINGS, _TOP_REASONS = 15, 10, 8, 6
_TOP_REGIONS = 6
_LEVEL_STYLES = {"error": "bold red", "warning": "yellow", "info": ""}
_LONGEST_SUMMARY = 40
_LONGEST_WORD = 56
_NARROWEST_COLUMN = 10
_SYMBOL_WIDTH = 90  # on a narrower terminal the kernels' symbols are left out


def report_text(report: Report, *, width: int = WIDTH, colour: bool = False) -> str:
    """The report as lines of at most ``width`` columns (never more than 100), with ANSI colours where ``colour``."""
    from rich.console import Console

    width = max(NARROWEST, min(width, WIDTH))
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured_text:
        for section in _sections(report, width):
            for part in section:
                console.print(part, soft_wrap=True)
            console.print()
    return "\n".join(line.rstrip() for line in captured_text.get().rstrip().split("\n")) + "\n"


def _sections(report: Report, width: int) -> Iterator[list[RenderableType]]:
    yield [_styled(f"nsysmap: {shortened(escaped(report.trace.source), width - 9)}", "bold")]
    errors = [note for note in report.notes if note.level == "error"]
    if errors:
        yield [line for note in errors for line in _note(note.level, note.text, width)]
    yield [_heading("Captured", width), *_pairs(captured(report), width)]
    yield _inferences(report, width)
    if report.replays is not None:
        yield _replays(report, width)
    if report.idle:
        yield _idle(report, width)
    if report.coverage:
        yield _mapping(report, width)
    if report.kinds:
        yield _layers(report, width)
        yield _kinds(report, width)
    if report.precision:
        yield _precision(report, width)
    if report.kernels:
        if not report.kinds:
            yield _families(report, width)
        yield _kernels(report, width)
    if report.whatif:
        yield _whatif(report, width)
    if report.outcomes:
        yield _findings(report, width)
    rest = [note for note in report.notes if note.level != "error"]
    if rest:
        yield [_heading("Notes", width), *(line for note in rest for line in _note(note.level, note.text, width))]


# --- the sections -----------------------------------------------------------------------------------------------------


def _inferences(report: Report, width: int) -> list[RenderableType]:
    figures = report.inferences
    if not figures.count:
        busy = [line for gpu in report.gpus for line in _wrapped(busy_words(report, gpu), width)]
        return [_heading("Inferences: none recognised", width), *_wrapped("Times below are totals over the trace.", width), *busy]
    lines: list[RenderableType] = [_heading(f"Inferences: {figures.count:,}, {found_by_words(figures)}{set_apart(figures)}", width)]
    rows = [
        ("GPU time", figures.gpu_time_ns, "its kernels, copies and memsets; overlaps counted once"),
        ("GPU span", figures.gpu_span_ns, "from its first to its last GPU work"),
        ("enqueue", figures.enqueue_ns, "host time to launch it"),
    ]
    known = [(name, spread, hint) for name, spread, hint in rows if spread is not None]
    if known:
        cells = [(name, duration(spread.median_ns), duration(spread.p95_ns), hint) for name, spread, hint in known]
        lines.append(_table(("", "median", "p95", ""), cells, width, "lrrh"))
    for gpu in report.gpus:
        lines.extend(_wrapped(busy_words(report, gpu), width))
    if report.by_engine:
        header = ("inferences", "GPU time", "p95", "enqueue", "p95", "engine")
        cells_by_engine = [
            (f"{one.count:,}", *_two(one.gpu_time_ns), *_two(one.enqueue_ns), engine_words(report, one.engine)) for one in report.by_engine
        ]
        lines.append(_table(header, cells_by_engine, width, "rrrrrl"))
    return lines


def _two(spread: Spread | None) -> tuple[str, str]:
    return ("–", "–") if spread is None else (duration(spread.median_ns), duration(spread.p95_ns))


def _replays(report: Report, width: int) -> list[RenderableType]:
    found = report.replays
    assert found is not None
    rows = [
        ("replay", found.gpu_time_ns, "on the GPU, by the trace's rows of whole graphs"),
        ("launch call", found.launch_ns, "host time of one graph launch"),
        ("round trip", found.round_trip_ns, "from that call to the host's next synchronisation: a replay takes no longer"),
        ("between", found.gap_ns, "GPU idle between two replays" if found.gaps_of_gpu else "from that synchronisation to the next launch"),
    ]
    cells = [(name, duration(one.median_ns), duration(one.p95_ns), hint) for name, one, hint in rows if one is not None]
    heading = _heading(f"CUDA graphs: {counted(found.launches, 'replay')} measured from outside, as their kernels are hidden", width)
    if not cells:
        return [heading, *_wrapped("The trace has neither rows of the replays nor the calls that launched them.", width)]
    return [heading, _table(("", "median", "p95", ""), cells, width, "lrrh")]


def _idle(report: Report, width: int) -> list[RenderableType]:
    cells = [
        (percent(row.share_of_window, 1), duration(row.time_ns), f"{row.gaps:,}", row.cause, CAUSES.get(row.cause, ""))
        for row in report.idle
    ]
    header = ("share", "time", "gaps", "cause", "")
    return [_heading(idle_heading(report), width), _table(header, cells, width, "rrrlh")]


def _mapping(report: Report, width: int) -> list[RenderableType]:
    total = report.kernel_time_ns
    cells = [(percent(row.time_ns, total, 2), duration(row.time_ns), f"{row.kernels:,}", row.method) for row in report.mapped]
    cells += [
        (percent(row.time_ns, total, 2), duration(row.time_ns), f"{row.kernels:,}", f"none: {escaped(row.reason)}")
        for row in report.unmapped[:_TOP_REASONS]
    ]
    heading = _heading(mapping_words(report), width)
    table = _table(("share", "time", "kernels", "method"), cells, width, "rrrw")
    return [heading, table, *_more(len(report.unmapped), _TOP_REASONS, "reasons", width)]


def _layers(report: Report, width: int) -> list[RenderableType]:
    timed = [row for row in report.layers if row.time_ns]
    several = len({row.engine for row in timed}) > 1
    header = ("share", "µs", "kernels", "kind", *(("engine",) if several else ()), "#", "layer")
    cells = [
        (
            percent(row.share_of_kernel_time or 0, 1),
            microseconds(row.time_ns),
            f"{row.kernels or 0:,}",
            row.kind,
            *((("–" if row.engine is None else str(row.engine)),) if several else ()),
            "–" if row.layer_index is None else str(row.layer_index),
            escaped(row.name),
        )
        for row in timed[:_TOP_LAYERS]
    ]
    lines: list[RenderableType] = [_heading(f"Top layers ({report.layer_time}; share of the engine's kernel time)", width)]
    lines.append(_table(header, cells, width, "rrrlrrl" if several else "rrrlrl"))
    lines.extend(_more(len(timed), _TOP_LAYERS, "layers", width))
    return lines


def _kinds(report: Report, width: int) -> list[RenderableType]:
    several = len({row.engine for row in report.kinds}) > 1
    cells = [
        (
            percent(row.share_of_kernel_time, 1),
            microseconds(row.time_ns),
            f"{row.layers:,}",
            *((("–" if row.engine is None else str(row.engine)),) if several else ()),
            row.kind,
        )
        for row in report.kinds
    ]
    heading = _heading(f"By kind of layer ({report.layer_time})", width)
    header = ("share", "µs", "layers", *(("engine",) if several else ()), "kind")
    return [heading, _table(header, cells, width, "rrrrl" if several else "rrrl")]


def _precision(report: Report, width: int) -> list[RenderableType]:
    rows = [vars(row) for row in report.precision]
    lines: list[RenderableType] = [_heading(precision.heading(rows), width)]
    engines = precision.by_engine(rows)
    for engine, mine in engines:
        if len(engines) > 1:
            lines.extend(_wrapped(f"{engine_words(report, engine)}:", width))
        lines.append(_table(("share", "µs", "layers", *precision.TYPES_HEADER), precision.type_cells(mine), width, "rrrlll"))
        lines.extend(line for text in precision.sentences(mine) for line in _wrapped(text, width))
        regions = [tuple(escaped(cell) for cell in cells) for cells in precision.region_cells(mine, _TOP_REGIONS)]
        if len(regions) > 1:
            lines.append(_table(precision.REGIONS_HEADER, regions, width, "rrrrrrll"))
    return lines


def _families(report: Report, width: int) -> list[RenderableType]:
    cells = [
        (percent(row.share_of_kernel_time, 1), duration(row.time_ns), f"{row.count:,}", f"{row.names:,}", row.family)
        for row in report.families
    ]
    heading = _heading("By family of kernel (over the whole trace)", width)
    return [heading, _table(("share", "time", "kernels", "names", "family"), cells, width, "rrrrl")]


def _kernels(report: Report, width: int) -> list[RenderableType]:
    """By name; Myelin names that say the same operations are one line, as each is only numbered differently."""
    alike: dict[tuple[str, str], list[KernelRow]] = {}
    for row in report.kernels:
        alike.setdefault((row.family, row.ops or row.name), []).append(row)
    groups = sorted(alike.values(), key=lambda rows: (-sum(row.time_ns for row in rows), rows[0].name))
    shown = groups[:_TOP_KERNELS]
    symbols = width >= _SYMBOL_WIDTH
    longest = min(_LONGEST_SUMMARY, max(columns(kernel_words(rows[0])) for rows in shown)) if symbols else width
    cells = []
    for rows in shown:
        time_ns, count = sum(row.time_ns for row in rows), sum(row.count for row in rows)
        names = f"{len(rows)} names: " if len(rows) > 1 else ""
        figures = (percent(time_ns, report.kernel_time_ns), duration(time_ns), f"{count:,}", microseconds(time_ns / count))
        summary = shortened(escaped(kernel_words(rows[0])), longest)
        cells.append((*figures, summary, names + escaped(rows[0].name)) if symbols else (*figures, summary))
    header = ("share", "total", "count", "mean µs", "what it is", *(("kernel",) if symbols else ()))
    lines: list[RenderableType] = [_heading("Top kernels (over the whole trace)", width)]
    lines.append(_table(header, cells, width, "rrrrld"))
    lines.extend(_more(len(groups), _TOP_KERNELS, "kernels", width))
    return lines


def _whatif(report: Report, width: int) -> list[RenderableType]:
    known = [row for row in report.whatif if row.answer == "answered"]
    cells = [
        (
            duration(row.saving_ns),
            f"{duration(row.low_saving_ns)} to {duration(row.high_saving_ns)}",
            f"{duration(row.before_ns)} → {duration(row.after_ns)}",
            change_words(row.change),
        )
        for row in sorted(known, key=lambda row: -(row.saving_ns or 0))
    ]
    unit = whatif_unit(report)
    lines: list[RenderableType] = [_heading(f"What if (the timeline replayed with one change; per {unit}, without the profiler)", width)]
    if cells:
        lines.append(_table(("saving", "range", "time", "change"), cells, width, "rrrl"))
    for answer, reason, changes in unanswered(report):
        lines.extend(_wrapped(f"{', '.join(changes)}: {answer}: {escaped(reason)}", width, style="dim"))
    return lines


def _findings(report: Report, width: int) -> list[RenderableType]:
    findings, skipped = report.findings, report.skipped
    ran = len(report.outcomes) - len(skipped)
    rules = {finding.rule for finding in findings}
    heading = f"Findings: {counted(len(rules), 'rule')} of the {ran:,} that could tell found something"
    lines: list[RenderableType] = [_heading(heading, width)]
    groups = by_rule(findings)
    outcomes = {one.rule: one for one in report.outcomes}
    for mine in groups[:_TOP_FINDINGS]:
        lines.extend(_finding(mine, outcomes[mine[0].rule], width))
    lines.extend(_more(len(groups), _TOP_FINDINGS, "rules with findings", width))
    if any(finding.cost_ns for finding in findings):
        told = "Costs of different rules overlap: never add them."
        told += " What to do about those marked info: -o FILE.md." if any(one.severity == "info" for one in findings) else ""
        lines.extend(_wrapped(told, width, style="dim"))
    reasons: dict[str, list[str]] = {}
    for one in skipped:
        reasons.setdefault(one.reason, []).append(one.rule)
    if reasons:
        lines.append(_styled(f"  {counted(len(skipped), 'rule')} could not tell:", ""))
        for reason, names in reasons.items():
            lines.extend(_wrapped(f"{', '.join(names)}: {escaped(reason)}", width, indent=4, style="dim"))
    return lines


def _finding(findings: Sequence[Finding], outcome: Outcome, width: int) -> Iterator[RenderableType]:
    """What one rule's findings cost together, the costliest of them, and what to do unless it is for information only."""
    first = findings[0]
    places = f", {counted(len(findings) + outcome.more, 'place')}" if len(findings) > 1 else ""
    cost = f", {duration(outcome.cost_ns)}" if outcome.cost_ns else ""
    share = f" ({outcome.share_of_window:.1%} of the measured time)" if outcome.cost_ns and outcome.share_of_window is not None else ""
    title = f"  {first.severity}  {first.rule}{places}{cost}{share}"
    yield _styled(shortened(title, width), _LEVEL_STYLES[first.severity])
    yield from _wrapped(first.message, width, indent=4)
    if len(findings) > 1:
        yield from _wrapped(f"and {counted(len(findings) - 1, 'more place')} of this rule", width, indent=4, style="dim")
    also = dict.fromkeys(one.rule for finding in findings for one in finding.also)
    if also:
        yield from _wrapped(f"the same problem by {', '.join(also)}", width, indent=4, style="dim")
    if first.severity != "info":
        yield from _wrapped(f"→ {escaped(' '.join(first.advice.split()))}", width, indent=4, style="dim")


def _note(level: str, text: str, width: int) -> Iterator[RenderableType]:
    yield from _wrapped(f"{level}: {escaped(text)}", width, style=_LEVEL_STYLES[level])


# --- lines ------------------------------------------------------------------------------------------------------------


def _styled(text: str, style: str) -> RenderableType:
    from rich.text import Text

    return Text(text, style=style)


def _heading(text: str, width: int) -> RenderableType:
    return _styled("\n".join(textwrap.wrap(text, width, subsequent_indent="  ")), "bold")


def _more(count: int, shown: int, what: str, width: int) -> list[RenderableType]:
    if count <= shown:
        return []
    return _wrapped(f"and {count - shown:,} more: all {count:,} {what} are in -o FILE.json, .md or .db", width, style="dim")


def _wrapped(text: str, width: int, *, indent: int = 2, style: str = "") -> list[RenderableType]:
    lead = " " * indent
    text = " ".join(shortened(word, _LONGEST_WORD) for word in escaped(text).split())
    lines = textwrap.wrap(text, width, initial_indent=lead, subsequent_indent=lead + "  ", break_on_hyphens=False)
    return [_styled(line, style) for line in lines]


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> list[RenderableType]:
    """A name and a text a line, the texts wrapped under each other."""
    names = max(columns(name) for name, _ in pairs)
    lines: list[RenderableType] = []
    for name, text in pairs:
        first, *others = textwrap.wrap(escaped(text), width - names - 4, break_on_hyphens=False) or [""]
        lines.append(_styled(f"  {name.ljust(names)}  {first}", ""))
        lines.extend(_styled(" " * (names + 4) + line, "") for line in others)
    return lines


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int, columns_are: str) -> RenderableType:
    """Columns side by side: l left, r right, d left and dim, w wrapped, h a hint (wrapped and dim).

    The last one takes the width that the others leave, and where that is too little the widest text column gives way; longer texts
    lose their middle, unless the column is wrapped.
    """
    from rich.text import Text

    widths = [max(columns(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for i in [len(widths) - 1, *sorted(range(len(widths) - 1), key=lambda i: -widths[i])]:
        too_wide = sum(widths) + 2 * len(widths) - width
        if too_wide > 0 and columns_are[i] != "r":
            widths[i] = max(_NARROWEST_COLUMN, widths[i] - too_wide)
    result = Text()
    for row, is_header in [*([(header, True)] if any(header) else []), *((row, False) for row in rows)]:
        lines = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) if columns_are[-1] in "wh" else [shortened(row[-1], widths[-1])]
        cells = (*(shortened(cell, widths[i]) for i, cell in enumerate(row[:-1])), lines[0] if lines else "")
        for i, cell in enumerate(cells):
            padding = " " * max(0, widths[i] - columns(cell))
            style = "dim" if is_header or columns_are[i] in "dh" else ""
            result.append("  " + (padding + cell if columns_are[i] == "r" else cell + padding), style=style)
        for line in lines[1:]:
            result.append("\n" + " " * (sum(widths[:-1]) + 2 * len(widths)) + line, style="dim" if columns_are[-1] == "h" else "")
        result.append("\n")
    result.right_crop(1)
    return result
