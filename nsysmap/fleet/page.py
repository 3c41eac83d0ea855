"""A fleet's dataset as text for a terminal and as a page that needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nsysmap.core.output_file import replacing
from nsysmap.fleet.charts import chart_html
from nsysmap.fleet.run import FleetRun
from nsysmap.fleet.summary import ROWS, FleetTable
from nsysmap.output.frame.shell import SCRIPTS, STYLES, TABLES_SCRIPT, Tab, environment
from nsysmap.output.picture.inline import inlined
from nsysmap.text.lines import heading, rendered, styled, table, wrapped
from nsysmap.text.terminal import escaped
from nsysmap.text.units import counted

PAGE = "fleet.html"
_HERE = Path(__file__).parent


def headline(run: FleetRun) -> str:
    """How many reports were analysed, kept from an earlier run, and failed."""
    kept = sum(outcome.kept for outcome in run.outcomes)
    fresh = len(run.outcomes) - kept - len(run.failed)
    parts = [f"{counted(fresh, 'report')} analysed"]
    parts += [f"{kept:,} kept from an earlier run"] if kept else []
    parts += [f"{len(run.failed):,} failed"] if run.failed else []
    return ", ".join(parts)


def fleet_text(run: FleetRun, sections: Sequence[FleetTable], width: int = 100) -> str:
    """The whole summary in lines for a terminal of that width."""
    lines = [styled(headline(run))]
    lines += [
        styled(f"  failed: {escaped(outcome.name)}: {escaped(outcome.failed or '')}")
        for outcome in run.failed[:ROWS]
    ]
    if len(run.failed) > ROWS:
        lines.append(styled(f"  and {len(run.failed) - ROWS:,} more: see failures.json"))
    if sections:
        lines += [
            styled(""),
            *table(("", ""), [(one.title, escaped(one.answer)) for one in sections], width, "lw"),
        ]
    for section in sections:
        lines += [styled(""), *heading(section.title, width)]
        rows = [tuple(map(escaped, row)) for row in section.rows]
        lines += (
            table(section.columns, rows, width, section.align)
            if rows
            else wrapped(section.nothing, width)
        )
        if section.more:
            lines.append(styled(f"  and {section.more:,} more"))
    return rendered(lines, colour=False)


def write_page(run: FleetRun, sections: Sequence[FleetTable], folder: Path) -> Path:
    """Write the page into the dataset's folder; returns its path."""
    text = (
        environment(_HERE)
        .get_template("fleet.html.j2")
        .render(
            title="a fleet of reports",
            heading=headline(run),
            links=(),
            tabs=[Tab(one.key, one.title, len(one.rows) + one.more) for one in sections],
            failed=run.failed,
            sections=sections,
            charts=[chart_html(one.chart) for one in sections if one.chart],
            code=inlined((*STYLES, _HERE / "fleet.css", *SCRIPTS, TABLES_SCRIPT)),
        )
    )
    path = folder / PAGE
    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8", errors="replace")
    return path
