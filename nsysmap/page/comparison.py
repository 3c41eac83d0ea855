"""The pages of a comparison and of one inference: both sides, bars for what each thing adds, and the tables of the text, in one file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from nsysmap.base.output_file import replacing
from nsysmap.base.terminal import escaped
from nsysmap.comparison.compare import Comparison
from nsysmap.comparison.inference import OneInference
from nsysmap.comparison.inference_page import TOP, inference_json, page_of_inference
from nsysmap.comparison.pages import TOP_CONTRIBUTIONS, Grid, Page, comparison_json, comparison_markdown, page_markdown, page_of
from nsysmap.picture.inline import inlined

SUFFIXES = (".html", ".json", ".md")
_STYLE = Path(__file__).parent / "comparison.css"
_WATERFALL, _WENT_TO = "Where the difference", "What its time went to"  # headings of tables with bars
_HALF = 70  # of a bar's picture, in its own units


def comparison_html(found: Comparison) -> str:
    """The page as HTML; it needs no other file, and its policy lets the browser load none and run nothing."""
    return page_html(page_of(found), {_WATERFALL: [one.ns for one in found.contributions[:TOP_CONTRIBUTIONS]]})


def page_html(page: Page, differences: Mapping[str, Sequence[int]]) -> str:
    """A page as HTML, with a bar for each of the first rows of a table that ``differences`` has, by the beginning of its heading."""
    code = inlined([_STYLE])
    links = " ".join(f'<a href="#t{at}">{_inert(grid.heading)}</a>' for at, grid in enumerate(page.grids))
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(str(code.policy))}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>nsysmap: {_inert(page.title)}</title>",
        f"<style>{code.style}</style></head><body>",
        f"<h1>{_inert(page.title)}</h1>",
        f'<p class="answer">{_inert(page.answer[0])}</p>',
        *(f"<p>{_inert(text)}</p>" for text in page.answer[1:]),
        f"<nav>{links}</nav>",
    ]
    for at, grid in enumerate(page.grids):
        bars = next((list(held) for heading, held in differences.items() if grid.heading.startswith(heading)), [])
        lines += [f'<h2 id="t{at}">{_inert(grid.heading)}</h2>', *_table(grid, bars)]
    if page.notes:
        lines += ["<h2>Notes</h2><ul>", *(f"<li>{_inert(text)}</li>" for text in page.notes), "</ul>"]
    return "\n".join([*lines, "</body></html>", ""])


def _inert(text: str) -> str:
    """The text as HTML shows it: no element, no control character, no turn of the writing direction."""
    return escape(escaped(text))


def _table(grid: Grid, bars: list[int]) -> Iterator[str]:
    kinds = [' class="r"' if kind == "r" else "" for kind in grid.align]
    yield "<table>"
    if any(grid.header):
        cells = "".join(f"<th{kind}>{_inert(text)}</th>" for kind, text in zip(kinds, grid.header, strict=True))
        yield f"<tr>{cells}{'<th></th>' if bars else ''}</tr>"
    most = max(map(abs, bars), default=0) or 1
    for place, row in enumerate(grid.rows):
        cells = "".join(f"<td{kind}>{_inert(text)}</td>" for kind, text in zip(kinds, row, strict=True))
        bar = _bar(bars[place] / most) if place < len(bars) else ""
        yield f"<tr>{cells}{f'<td>{bar}</td>' if bars else ''}</tr>"
    yield "</table>"
    if grid.more:
        yield f'<p class="dim">… and {grid.more:,} more</p>'


def _bar(share: float) -> str:
    width = abs(share) * _HALF
    left = _HALF if share >= 0 else _HALF - width
    kind = "more" if share >= 0 else "less"
    return (
        f'<svg viewBox="0 0 {2 * _HALF} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<line class="axis" x1="{_HALF}" x2="{_HALF}" y1="0" y2="10"/>'
        f'<rect class="{kind}" x="{left:.2f}" y="1" width="{width:.2f}" height="8"/></svg>'
    )


def write_comparison(found: Comparison, path: Path) -> None:
    """Write the comparison to a file, in the form that its suffix names."""
    suffix = path.suffix.lower()
    if suffix == ".html":
        text = comparison_html(found)
    else:
        text = comparison_markdown(found) if suffix == ".md" else json.dumps(comparison_json(found), indent=1) + "\n"
    _write(path, text)


def write_inference(found: OneInference, path: Path) -> None:
    """Write one inference beside the median one to a file, in the form that its suffix names."""
    page, suffix = page_of_inference(found), path.suffix.lower()
    if suffix == ".html":
        text = page_html(page, {_WENT_TO: [one.ns for one in found.contributions if one.ns][:TOP]})
    else:
        text = page_markdown(page) if suffix == ".md" else json.dumps(inference_json(found), indent=1) + "\n"
    _write(path, text)


def _write(path: Path, text: str) -> None:
    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8")
