"""Writes the page of an analysis: one HTML file that needs no other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from nsysmap.advice.paste import CHANGES
from nsysmap.analysis import Analysis
from nsysmap.answer import first, gains
from nsysmap.answer.costs import whose_unit
from nsysmap.answer.model import Action, Answer
from nsysmap.answer.words import in_its_words
from nsysmap.core.groups import distinct_rows
from nsysmap.core.output_file import replacing
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.output.frame.shell import SCRIPTS, STYLES, Tab, environment
from nsysmap.output.page.answer import bars_of, page_sentences
from nsysmap.output.page.content import Shown, content_of, findings, reduced_words, sample_columns
from nsysmap.output.page.events import events_of
from nsysmap.output.page.packing import deflated, packed
from nsysmap.output.page.proof import proofs
from nsysmap.output.page.regions import regions_of
from nsysmap.output.page.samples import MEASURED, of_names, sampled_of
from nsysmap.output.page.unit import run_words, unit_of
from nsysmap.output.page.windows import MOST_KERNELS, windows_of
from nsysmap.output.picture.inline import inlined
from nsysmap.output.sections import sections_of
from nsysmap.output.whatif import assumptions, change_figures, unanswered
from nsysmap.output.words import captured, mapping_words
from nsysmap.text.page import Section
from nsysmap.text.page_html import HtmlLook, section_html
from nsysmap.text.terminal import escaped
from nsysmap.text.units import duration, percent, rate, rounded

HERE = Path(__file__).parent
SUFFIX = ".html"
_MOST_NAMES = 200  # of kernels that the page lists
# share of the time, from which it is said why that rule found nothing: its own threshold
_LEAST_PROFILER = 0.05
_SCRIPTS = (
    "../picture/graph.js",
    "unpack.js",
    "trace.js",
    "samples.js",
    "timeline.js",
    "tables.js",
    "icicle.js",
    "inferences.js",
    "details.js",
    "graphs.js",
    "page.js",
)
_STYLES = ("../picture/graph.css", "page.css")

OWN_SECTIONS = frozenset({
    "captured", "inferences", "idle", "mapping", "layers", "families", "kernels", "whatif",
    "findings", "notes",
})  # fmt: skip
"""Sections of the report that the page shows in a way of its own, which scripts filter; it lays out
all others as they are.
"""

_TAB_OF = {
    "kinds": "layers", "precision": "layers", "headroom": "layers", "families": "kernels",
    "replays": "inferences",
}  # fmt: skip
"""The tabs of further sections; that of all others says how sure the answer is."""

_LOOK = HtmlLook(
    table=' class="rows" data-csv=""',
    left=' class="text"',
    right=' class="right"',
    dim=' class="note"',
    scroll=' class="scroll"',
)


def further_sections(report: Answer) -> list[Section]:
    """The sections that the page lays out as they are, each in the tab that it belongs to."""
    return [one for one in sections_of(report) if one.key not in OWN_SECTIONS]


def write_page(
    analysis: Analysis,
    report: Answer,
    path: Path,
    *,
    most_kernels: int = MOST_KERNELS,
    links: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the page to ``path``, whole or not at all; a trace with more than ``most_kernels``
    kernels is shown only in part, which the page says.

    ``links`` are titles and addresses of related pages.
    """
    text = page(analysis, report, most_kernels=most_kernels, links=links)
    with replacing(path) as fresh:
        fresh.write_bytes(text.encode("utf-8", "backslashreplace"))


def _figures(row: Row) -> tuple[str, ...]:
    """How much a change saves, its range, and the time before and after it."""
    before, after, *saving = change_figures(row)
    return (*saving, before, after)


def _finding_of(
    actions: Sequence[Action], found: Sequence[Row], numbers: Mapping[int, int]
) -> dict[str, int]:
    """The number of the first finding about the same as an action, by the action's name."""
    return {
        action.name: numbers[row.integer("finding_id")]
        for action in actions
        for row in reversed(found)
        if row.text("rule") in action.rules
    }


def _bridge(summary: Answer, report: Answer) -> str:
    """Why the rule about the profiler's stops found nothing, where the GPU was idle for the
    profiler's work; empty where that is not so.
    """
    share = max(
        (
            one.share_of_window
            for gpu in summary.gpus
            for one in gpu.idle
            if one.cause == "profiler"
        ),
        default=0.0,
    )
    if "profiler-overhead" not in report.clean or share < _LEAST_PROFILER:
        return ""
    return (
        f"The GPU was idle for nsys's own work for {percent(share, 1)} of the time, though"
        " profiler-overhead found nothing: that rule is about how long nsys stopped the launching"
        " thread, this share also about its work within launch calls, such as tracing each node of"
        " a CUDA graph."
    )


def _by_reason(report: Answer) -> dict[str, list[str]]:
    """The rules that could not decide, by reason: rules about a table by what the table lacks."""
    found: dict[str, list[str]] = {}
    for one in report.skipped:
        found.setdefault(one.because or one.reason, []).append(one.rule)
    return found


def _unmapped_names(kernels: Table) -> frozenset[str]:
    """The names of kernels that have no layer."""
    names = kernels.text("name")
    codes = names.codes[kernels.ints("layer_id") == MISSING]
    return frozenset(
        names.values[code] for code in distinct_rows(codes[codes >= 0], len(names.values)).tolist()
    )


def _distance(summary: Answer) -> tuple[str, ...]:
    """How far the layers are from the hardware's limits, in one sentence; empty if unknown."""
    told = (first.hardware(summary), *first.excess(summary)[:1])
    return ("; ".join(told),) if told[0] else ()


def _tabs(analysis: Analysis, content: Mapping[str, object], *, rules: int) -> list[Tab]:
    """The tabs below the timeline, each with how many things it lists."""
    tables, one = analysis.tables, str(content["one"])
    graphs = cast(Sequence[object], content["graphs"])
    changes = sum(row.text("answer") == "answered" for row in tables.whatif)
    tabs = [
        Tab("layers", "Layers", len(tables.layers)),
        Tab("idle", "Idle"),
        Tab("inferences", f"{one.capitalize()}s", len(tables.inferences)),
        Tab("kernels", "Kernels", len(tables.kernel_totals)),
        Tab("graph", "Graph"),
        Tab("findings", "Findings", rules),
        Tab("whatif", "What if", changes),
        Tab("sure", "How sure"),
    ]
    absent = {"layers"} if not len(tables.layers) else set()
    absent |= set() if any(graph is not None for graph in graphs) else {"graph"}
    return [tab for tab in tabs if tab.key not in absent]


def page(
    analysis: Analysis,
    report: Answer,
    *,
    most_kernels: int = MOST_KERNELS,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """The page as text; names are escaped, whatever they contain.  The same analysis gives the same
    page.
    """
    pages = environment(HERE)
    pages.filters |= {
        "duration": duration,
        "percent": lambda share: percent(share, 1),
    }
    pages.filters |= {
        "rounded": rounded,
        "rate": rate,
    }
    windows = windows_of(analysis.tables, most_kernels)
    events = events_of(analysis.tables, windows)
    found = findings(analysis.tables)
    sampled = sampled_of(analysis, windows, events)
    unit = unit_of(analysis.summary, analysis.tables)
    regions = regions_of(analysis.tables, unit)
    content = content_of(analysis, report, Shown(events, windows, unit, regions, sampled))
    columns = {**events.tables, **sample_columns(sampled, events.origin_ns)}
    shown = windows.holds(
        analysis.tables.kernels.ints("start_ns"), analysis.tables.kernels.ints("end_ns")
    )
    columns["kernels"] = {**columns["kernels"], "part": regions.part[shown]}
    numbers = {row.integer("finding_id"): number for number, row in enumerate(found)}
    answered = [row for row in analysis.tables.whatif if row.text("answer") == "answered"]
    common, own_told = assumptions(
        [(row.text("change"), row.text("assumptions")) for row in answered]
    )
    own = dict(own_told)
    answer = analysis.summary
    told = page_sentences(answer, proofs(analysis.tables), layers=bool(content["layers"]))
    by_rule = [
        [row for row in found if row.text("rule") == rule]
        for rule in dict.fromkeys(row.text("rule") for row in found)
    ]
    return pages.get_template("page.html.j2").render(
        title=escaped(report.trace.source),
        heading=escaped(first.headline(analysis.summary)),
        distance=_distance(analysis.summary),
        links=links,
        tabs=_tabs(analysis, content, rules=len(by_rule)),
        drawn=any(graph is not None for graph in cast(Sequence[object], content["graphs"])),
        sections=[
            (_TAB_OF.get(one.key, "sure"), section_html(one, _LOOK, level=3))
            for one in further_sections(report)
        ],
        summary=answer,
        why=_finding_of(analysis.summary.actions, found, numbers),
        told=told,
        bars=bars_of(answer),
        unit=unit,
        run=run_words(analysis.summary, analysis.tables),
        captured=captured(report),
        mapping=mapping_words(report),
        report=report,
        could_not_tell=_by_reason(report),
        bridge=_bridge(analysis.summary, report),
        cost_unit=whose_unit(analysis.summary),
        per_unit={one.rule: one.at_most_ns for one in analysis.summary.rules},
        kernels=list(report.tables.kernel_totals),
        most_names=_MOST_NAMES,
        findings=found,
        by_rule=by_rule,
        outcomes={row.text("rule"): row for row in analysis.tables.rule_outcomes},
        numbers=numbers,
        figures=_figures,
        changes=[(row, own.get(row.text("change"), "")) for row in answered],
        predicted={row.text("change") for row in answered},
        titles={name: in_its_words(analysis.summary, one.title) for name, one in CHANGES.items()}
        | {one.name: one.title for one in analysis.summary.actions},
        places={row.text("change"): gains.place(analysis.summary, row) for row in answered},
        assumed=common,
        unanswered=unanswered(list(analysis.tables.whatif)),
        inside=[row for row in analysis.tables.findings if row.maybe_integer("inside") is not None],
        reduced=reduced_words(analysis.tables, windows),
        content=content,
        doc=deflated(
            json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode(
                "utf-8", "backslashreplace"
            )
        ),
        rows=packed(columns),
        unmapped_names=_unmapped_names(analysis.tables.kernels),
        measured=of_names(analysis.tables.kernel_counters),
        metrics=MEASURED,
        code=inlined(
            (
                *STYLES,
                *(HERE / name for name in _STYLES),
                *SCRIPTS,
                *(HERE / name for name in _SCRIPTS),
            )
        ),
    )
