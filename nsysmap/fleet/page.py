"""What a fleet's dataset says, as text for a terminal and as a page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nsysmap.base.output_file import replacing
from nsysmap.base.terminal import escaped
from nsysmap.base.units import counted
from nsysmap.fleet.run import FleetRun
from nsysmap.fleet.summary import ROWS, Section
from nsysmap.picture.inline import inlined

PAGE = "fleet.html"
_HERE = Path(__file__).parent
_WIDEST = 60  # characters of a cell on a terminal


def headline(run: FleetRun) -> str:
    """How many reports were analysed, kept from before, and failed."""
    kept = sum(outcome.kept for outcome in run.outcomes)
    fresh = len(run.outcomes) - kept - len(run.failed)
    parts = [f"{counted(fresh, 'report')} analysed"]
    parts += [f"{kept:,} kept from an earlier run"] if kept else []
    parts += [f"{len(run.failed):,} failed"] if run.failed else []
    return ", ".join(parts)


def fleet_text(run: FleetRun, sections: Sequence[Section]) -> str:
    """All of it for a terminal."""
    return "\n".join(map(escaped, _lines(run, sections))) + "\n"


def _lines(run: FleetRun, sections: Sequence[Section]) -> Iterator[str]:
    yield headline(run)
    for outcome in run.failed[:ROWS]:
        yield f"  failed: {outcome.name}: {outcome.failed}"
    if len(run.failed) > ROWS:
        yield f"  and {len(run.failed) - ROWS:,} more: see failures.json"
    for section in sections:
        yield ""
        yield section.title
        if not section.rows:
            yield f"  {section.nothing}"
            continue
        table = [section.columns, *section.rows]
        widths = [min(_WIDEST, max(len(row[i]) for row in table)) for i in range(len(section.columns))]
        for row in table:
            cells = (_short(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True))
            yield ("  " + "  ".join(cells)).rstrip()
        if section.more:
            yield f"  and {section.more:,} more"


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width // 2] + "…" + text[len(text) - (width - width // 2 - 1) :]


def write_page(run: FleetRun, sections: Sequence[Section], folder: Path) -> Path:
    """Write the page into the dataset's folder; where it is."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, finalize=_shown)
    text = environment.get_template("page.html").render(
        headline=headline(run), failed=run.failed, sections=sections, code=inlined([_HERE / "page.css"])
    )
    path = folder / PAGE
    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8", errors="replace")
    return path


def _shown(value: object) -> object:
    """A plain text without control characters; markup of our own as it is."""
    return escaped(value) if type(value) is str else value
