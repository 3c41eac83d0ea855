"""The report as Markdown that GitHub renders as intended, whatever the names contain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nsysmap.answer import gains, hardware, next_steps
from nsysmap.answer import words as answer
from nsysmap.answer.costs import cost_rows, costs_heading
from nsysmap.answer.model import Part, Region, Summary
from nsysmap.answer.whose import engine_names
from nsysmap.network.titles import called
from nsysmap.output import precision
from nsysmap.output.model import Report
from nsysmap.output.whatif import assumptions
from nsysmap.output.words import (
    ENGINES_NAME,
    answered_changes,
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
from nsysmap.rules.finding import Finding
from nsysmap.text.terminal import code, pasted, plain
from nsysmap.text.units import counted, duration, microseconds, percent, rounded
from nsysmap.timing.layer_sums import NUMBER, common_name

_TOP_GROUPS, _TOP_KERNELS, _TOP_PLACES = 15, 50, 5
_CUT_BEFORE = re.compile(r"… and ([\d,]+) more lines: this fits .*")
_CUT_LINE = 200  # characters of the line that says what was cut
_HEAD = 3  # lines that stay: of a table its head and one row


COMMENT = 65_536
"""Characters that GitHub takes in a comment."""


def report_markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown, as long as a comment may be: the longest tables lose
    their last rows, and say so.
    """
    parts = [part for part in _parts(report) if part]
    while (beyond := sum(map(len, parts)) + 2 * len(parts) - COMMENT) > 0:
        longest = max(range(len(parts)), key=lambda at: len(parts[at]))
        shorter = _without_last(parts[longest], beyond, report.summary)
        if len(shorter) >= len(parts[longest]):
            break
        parts[longest] = shorter
    return "\n\n".join(parts) + "\n"


def _without_last(part: str, beyond: int, summary: Summary) -> str:
    """A table or list without as many of its last lines as have about so many characters, but not
    below half of it.
    """
    lines = part.split("\n")
    told = _CUT_BEFORE.fullmatch(lines[-1])
    gone = int(told.group(1).replace(",", "")) if told else 0
    lines = [line for line in lines[: -1 if told else None] if line]
    room = max(len(part) - beyond - _CUT_LINE, len(part) // 2)
    kept = lines[
        : max(
            next(
                (at for at in range(len(lines)) if sum(map(len, lines[: at + 1])) + at + 1 > room),
                len(lines),
            ),
            _HEAD,
        )
    ]
    left_out = gone + len(lines) - len(kept)
    where = " ".join(map(pasted, (*(engine.source for engine in summary.engines), summary.source)))
    all_of_it = code(f"nsysmap analyze {where} --full")
    cut = (
        f"… and {left_out:,} more lines: this fits a comment of GitHub ({COMMENT:,} characters);"
        f" {all_of_it} shows all."
    )
    return "\n".join([*kept, "", cut])


def write_markdown(report: Report, path: Path) -> None:
    """Write the report to ``path``."""
    path.write_bytes(report_markdown(report).encode("utf-8", "backslashreplace"))


def _parts(report: Report) -> Iterator[str]:
    yield from _answer(report.summary)
    yield "## Captured"
    yield _table(("", ""), [(name, plain(text)) for name, text in captured(report)])
    yield from _inferences(report)
    yield from _replays(report)
    if report.idle:
        yield f"## {plain(idle_heading(report))}"
        header, cells = idle_cells(report)
        yield _table(header, cells, right=len(header) - 2)
    if report.tables.coverage:
        yield f"## {plain(mapping_words(report))}"
        yield _table(("share", "time", "kernels", "method"), mapping_cells(report, plain), right=3)
    yield from _layers(report)
    yield from _precision(report)
    yield from _kernels(report)
    yield from _whatif(report)
    yield from _findings(report)
    yield _notes(report)


def _answer(summary: Summary) -> Iterator[str]:
    yield f"# nsysmap: {code(summary.source)}"
    if summary.selected:
        yield plain(summary.selected)
    yield "\n".join(f"- **error:** {plain(text)}" for text in summary.blocked)
    rows = [("what ran", answer.title(summary).removeprefix(f"{summary.source}: "))]
    rows += [("doubt", answer.first_doubt(summary))]
    rows += [("time", text) for text in answer.times(summary)]
    rows += [("", told)] if (told := answer.kinds(summary)) else []
    rows += [("GPU", text) for text in answer.where(summary)]
    rows += [("counters", text) for text in hardware.told(summary)]
    yield _table(("", ""), [(word, plain(text)) for word, text in rows if text])
    shown = gains.first_actions(summary)
    yield "## Do first"
    lines = (
        []
        if shown or (summary.blocked and summary.next_steps)
        else [plain(gains.no_action(summary))]
    )
    for number, action in enumerate(shown, 1):
        told = (
            f"{plain(gains.action_title(action))}:"
            f" {plain(gains.gain(summary, action, f' per {summary.unit}'))}"
        )
        lines.append(
            f"{number}. for throughput only, {told}"
            if action.throughput_only
            else f"{number}. {told}"
        )
        lines += [f"   - {code(paste)}" for paste in gains.ways(action)]
        lines += [f"   - {plain(action.change)}"] if action.change is not None else []
    lines += [f"\n{plain(told)}\n"] if shown and (told := gains.cut_off(summary)) else []
    lines += [f"- {plain(step.why)}: {code(step.command)}" for step in summary.next_steps]
    yield "\n".join(lines)
    rows = [("CUDA graph", gains.graph(summary))] if summary.inferences else []
    rows += [("not fused", answer.not_fused(summary))] if summary.rules else []
    told = next_steps.doubts(summary, " (all are listed below)")
    rows += [
        ("slowest", answer.slowest(summary)),
        ("how sure", answer.certainty(summary)),
        ("unknown", told),
    ]
    yield _table(("", ""), [(word, plain(text)) for word, text in rows if text])
    yield from _costliest(summary)


def _costliest(summary: Summary) -> Iterator[str]:
    if not summary.layers:
        return
    heading = costs_heading(summary)
    yield f"## {heading[:1].upper()}{heading[1:]} (\\* stands for numbers)"
    found = cost_rows(summary)
    groups = [
        (
            percent(one.share, 1),
            rounded(one.time_ns),
            "–" if one.layers is None else f"{one.layers}",
            *_engine(summary, one.engine),
            one.group.kind if one.group else "–",
            code(one.name),
        )
        for one in found[:_TOP_GROUPS]
    ]
    yield _table(
        ("share", "time", "layers", *_engine_heading(summary), "kind", "layer"), groups, right=3
    )
    if len(found) > _TOP_GROUPS:
        yield f"… and {len(found) - _TOP_GROUPS:,} rows more: every layer is listed below."
    yield from _insides(summary)


def _insides(summary: Summary) -> Iterator[str]:
    """The parts of opaque regions; regions of an engine whose names differ only in numbers are
    one.
    """
    regions: dict[tuple[int | None, str], list[Region]] = {}
    for region in summary.regions:
        regions.setdefault((region.engine, NUMBER.sub("*", region.name)), []).append(region)
    for mine in sorted(
        regions.values(),
        key=lambda mine: -sum(part.time_ns for region in mine for part in region.parts),
    ):
        head = f"{len(mine)} × " if len(mine) > 1 else ""
        of = "".join(f" of {engine}" for engine in _engine(summary, mine[0].engine))
        yield f"### Inside {head}{code(common_name([region.name for region in mine]))}{of}"
        parts: dict[str, list[Part]] = {}
        for part in (part for region in mine for part in region.parts):
            parts.setdefault(NUMBER.sub("*", part.name), []).append(part)
        spent = {name: sum(part.time_ns for part in same) for name, same in parts.items()}
        rows = []
        for name in sorted(parts, key=lambda name: -spent[name])[:_TOP_GROUPS]:
            told = common_name([part.name for part in parts[name]]).removeprefix("$$myelin$$")
            rows.append(
                (
                    percent(spent[name], sum(spent.values())),
                    rounded(spent[name]),
                    f"{sum(part.parts for part in parts[name])}",
                    code(told),
                )
            )
        yield _table(("share", "time", "parts", "part"), rows, right=3)
        yield _more(len(parts), _TOP_GROUPS, "parts")


def _engine_heading(summary: Summary) -> tuple[str, ...]:
    """The heading of the column of engine files, which a table has where there are several."""
    return ("engine",) if len(summary.engines) > 1 else ()


def _engine(summary: Summary, engine: int | None) -> tuple[str, ...]:
    """The cell below it."""
    return tuple(
        "–" if engine is None else code(engine_names(summary)[engine])
        for _ in _engine_heading(summary)
    )


def _notes(report: Report) -> str:
    lines = [
        f"- **{note.level}:** {plain(note.text)}" for note in report.notes if note.level != "error"
    ]
    return "\n".join((["## Notes", ""] if lines else []) + lines)


def _inferences(report: Report) -> Iterator[str]:
    figures = report.inferences
    yield f"## {plain(inferences_heading(report))}" + (
        "" if figures.count else "\n\nTimes are totals over the trace."
    )
    yield _spreads(inference_cells(figures))
    yield "\n".join(f"- {line}" for gpu in report.gpus if (line := busy_words(report, gpu)))
    if report.by_engine:
        header = ("inferences", "GPU time", "p95", "enqueue", "p95", "engine")
        cells = [
            (
                f"{one.count:,}",
                *median_and_p95(one.gpu_time_ns),
                *median_and_p95(one.enqueue_ns),
                code(engine_words(report, one.engine)),
            )
            for one in report.by_engine
        ]
        yield _table(header, cells, right=5)


def _spreads(cells: Sequence[tuple[str, ...]]) -> str:
    return _table(("", "median", "p95", ""), cells, right=3) if cells else ""


def _replays(report: Report) -> Iterator[str]:
    found = report.replays
    if found is None:
        return
    yield (
        f"## CUDA graphs: {found.launches:,} replays measured from outside, because their kernels"
        " are hidden"
    )
    yield _spreads(replay_cells(found))


def _layers(report: Report) -> Iterator[str]:
    timed = [row for row in report.layers if row.maybe_integer("time_ns")]
    if not timed:
        return
    yield f"## Layers ({report.layer_time}; share of all kernel time)"
    yield plain(answer.mixture(report.summary))
    rows = [
        (
            percent(row.maybe_real("share_of_all_kernel_time") or 0, 1),
            microseconds(row.integer("time_ns")),
            f"{row.maybe_integer('kernels') or 0:,}",
            *_engine(report.summary, row.maybe_integer("engine")),
            number_words(row, "layer_index"),
            row.text("kind"),
            code(called(row)),
            code(row.text("name")),
        )
        for row in timed
    ]
    yield f"<details><summary>All {len(timed):,} layers</summary>"
    yield _table(
        (
            "share",
            "µs",
            "kernels",
            *_engine_heading(report.summary),
            "#",
            "kind",
            "layer",
            ENGINES_NAME,
        ),
        rows,
        right=3,
    )
    yield "</details>"
    yield f"### By kind of layer ({report.layer_time}; share of the engine's kernel time)"
    kinds = [
        (
            percent(row.real("share_of_kernel_time"), 1),
            microseconds(row.integer("time_ns")),
            f"{row.integer('layers'):,}",
            *_engine(report.summary, row.maybe_integer("engine")),
            row.text("kind"),
        )
        for row in report.tables.layer_kinds
    ]
    yield _table(
        ("share", "µs", "layers", *_engine_heading(report.summary), "kind"), kinds, right=3
    )


def _precision(report: Report) -> Iterator[str]:
    rows = list(report.tables.precision)
    if not rows:
        return
    yield f"## {plain(answer.in_its_words(report.summary, precision.heading(rows)))}"
    engines = precision.by_engine(rows)
    for engine, mine in engines:
        if len(engines) > 1:
            yield f"### {code(engine_words(report, engine))}"
        yield _table(
            ("share", "µs", "layers", *precision.TYPES_HEADER), precision.type_cells(mine), right=3
        )
        yield plain(" ".join(precision.sentences(mine)))
        regions = [
            (
                *map(plain, cells[:-1]),
                cells[-1] if cells[-1] == precision.OUTSIDE else code(cells[-1]),
            )
            for cells in precision.region_cells(mine)
        ]
        if len(regions) > 1:
            yield _table(precision.REGIONS_HEADER, regions, right=6)


def _kernels(report: Report) -> Iterator[str]:
    kernels = list(report.tables.kernel_totals)
    if not kernels:
        return
    yield "## Kernels (over the whole trace)"
    yield _table(("share", "time", "kernels", "names", "family"), family_cells(report), right=4)
    rows = [
        (
            percent(row.integer("time_ns"), report.kernel_time_ns),
            duration(row.integer("time_ns")),
            f"{row.integer('count'):,}",
            microseconds(row.integer("time_ns") / row.integer("count")),
            plain(kernel_words(row)),
            code(row.text("name")),
        )
        for row in kernels[:_TOP_KERNELS]
    ]
    yield f"<details><summary>{counted(len(kernels), 'kernel name')}</summary>"
    yield _table(("share", "total", "count", "mean µs", "what it is", "kernel"), rows, right=4)
    yield _more(len(kernels), _TOP_KERNELS, "kernel names")
    yield "</details>"


def _whatif(report: Report) -> Iterator[str]:
    if not report.tables.whatif:
        return
    yield (
        f"## What if (the timeline replayed with one change; per {report.summary.unit}, without the"
        " profiler)"
    )
    answered = answered_changes(report)
    if answered:
        yield _table(
            ("change", "saving", "range", "time"),
            [
                (change_words(row.text("change"), report.summary), *saving_cells(row))
                for row in answered
            ],
        )
        common, own = assumptions(
            [(row.text("change"), row.text("assumptions")) for row in answered]
        )
        yield plain(common)
        yield "\n".join(f"- {change}: {plain(text)}" for change, text in own)
    yield "\n".join(
        f"- {', '.join(changes)}: {answer}: {plain(reason)}"
        for answer, reason, changes in unanswered(report)
    )


def _findings(report: Report) -> Iterator[str]:
    if not report.outcomes:
        return
    yield "## Findings"
    findings = report.findings
    yield (
        f"{len(report.outcomes) - len(report.skipped):,} rules could tell, {len(report.skipped):,}"
        " could not."
    )
    for mine in by_rule(findings):
        yield f"### {mine[0].severity}: {code(mine[0].rule)}"
        lines = [
            f"- {plain(one.message)}{_cost(one, report.summary)}" for one in mine[:_TOP_PLACES]
        ]
        yield "\n".join(lines)
        yield _more(len(mine), _TOP_PLACES, "places")
        also = {one.rule: one for finding in mine[:_TOP_PLACES] for one in reversed(finding.also)}
        yield "\n".join(
            f"- also {code(one.rule)}: {plain(one.message)}" for one in reversed(also.values())
        )
        yield ">\n".join(
            f"> {plain(said)}\n" for said in to_do(mine, report.summary).splitlines()
        ).rstrip("\n")
    if any(finding.cost_ns for finding in findings):
        yield "Costs of different rules overlap: do not add them."
    if report.skipped:
        yield "### Could not tell"
        yield "\n".join(f"- {code(one.rule)}: {plain(one.reason)}" for one in report.skipped)


def _cost(finding: Finding, summary: Summary) -> str:
    return (
        f" Cost: {cost_words(finding.cost_ns, finding.group, summary)}." if finding.cost_ns else ""
    )


def _more(count: int, shown: int, what: str) -> str:
    return (
        f"… and {count - shown:,} more: all {count:,} {what} are in the .json and .db reports."
        if count > shown
        else ""
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: int = 0) -> str:
    """A table whose cells are already Markdown; the first ``right`` columns (except a first one
    without a name) are aligned right.
    """
    marks = ["--:" if i < right and (i or header[0]) else "---" for i in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, marks, *rows))
