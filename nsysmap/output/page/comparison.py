"""The pages of a comparison, linked with one of each side, and of one inference: the tables of the
text, and bars.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from nsysmap.comparison.builds import Builds
from nsysmap.comparison.builds_page import builds_json, page_of_builds
from nsysmap.comparison.compare import Comparison
from nsysmap.comparison.inference import OneInference
from nsysmap.comparison.inference_page import TOP, inference_json, page_of_inference
from nsysmap.comparison.pages import (
    TOP_CONTRIBUTIONS,
    comparison_json,
    comparison_markdown,
    page_of,
)
from nsysmap.comparison.side import Side
from nsysmap.comparison.waterfall import Contribution
from nsysmap.core.errors import NsysmapError
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.output_file import check_output, replacing
from nsysmap.core.records import dataclass
from nsysmap.output.build import report_of
from nsysmap.output.frame.shell import SCRIPTS, STYLES, TABLES_SCRIPT, Tab, environment
from nsysmap.output.page.answer import BUSY
from nsysmap.output.page.side_by_side import SideStrip, strip_of, strips_html, waterfall_html
from nsysmap.output.page.write import write_page
from nsysmap.output.picture.html import html
from nsysmap.output.picture.inline import inlined
from nsysmap.output.picture.model import picture, times_of
from nsysmap.output.picture.swatches import CAUSES
from nsysmap.text.page import Grid, Page, Section
from nsysmap.text.page_html import HtmlColumn, HtmlLook, block_html, grid_html, inert
from nsysmap.text.page_markdown import page_markdown
from nsysmap.text.terminal import escaped
from nsysmap.text.units import percent, rounded, unit_words

SUFFIXES = (".html", ".json", ".md")
HERE = Path(__file__).parent
_SIDES = ("before", "after")
_OURS = b"nsysmap</title>"  # in the head of a page that nsysmap wrote
_HEAD_BYTES = 1 << 16  # in which the title of a page stands
_WORK = "work"
_LEAST_SHOWN = 0.002  # share of the longer side from which on a part is in the legend
_BARS = '<th class="c">← less · more →</th>'
_LOOK = HtmlLook(
    table=' class="rows" data-csv="comparison"',
    left=' class="l"',
    right=' class="r"',
    dim=' class="dim"',
    elsewhere=", not on this page: <code>-o FILE.json</code> writes all",
)
_HALF = 70  # of a bar's picture, in its own units


@dataclass(frozen=True)
class SidePage:
    """The page of one side: its file name, and how an address in it names layers."""

    word: str  # before or after
    file: str
    one: str = "layer"  # key before the number of a layer
    title: str = ""
    # … before those of several, separated by dots; None if the page shows one at a time
    several: str | None = "layers"

    def address(self, places: str) -> str:
        """The address of these layers; ``places`` are their ids, separated by dots."""
        several = self.several is not None and "." in places
        fragment = (
            f"{self.several}={places}" if several else f"{self.one}={places.partition('.')[0]}"
        )
        return f"{quote(self.file)}#{fragment}"


def comparison_html(
    found: Comparison,
    beside: Sequence[SidePage | None] = (None, None),
    sides: Sequence[Side] = (),
) -> str:
    """The page as HTML, with links to the pages of both sides if they are known, and of both
    ``sides`` a typical inference; its policy lets the browser load nothing.
    """
    differences = {"waterfall": [one.ns for one in found.contributions[:TOP_CONTRIBUTIONS]]}
    went_to = list(_went_to(found.contributions, _SIDES))
    if went_to and found.before.inferences and not found.before.profiled:
        told = (
            "The bars show the inferences as replayed without the profiler; the page of each side"
            " shows its trace as recorded."
        )
        went_to.append(f'<p class="dim">{told}</p>')
    strips = [
        SideStrip(
            word,
            None if side.analysis is None else strip_of(side.analysis, found.inferences_a_pass),
            None if page is None else page.file,
        )
        for word, side, page in zip(_SIDES, sides, beside, strict=False)
    ]
    return page_html(
        page_of(found),
        differences,
        went_to,
        beside=beside,
        facts=list(_facts(found)),
        waterfall=list(waterfall_html(found)),
        strips=list(strips_html(strips, unit_words(found.inferences_a_pass))),
    )


@dataclass(frozen=True)
class Fact:
    """A figure of both sides."""

    name: str
    before: str
    after: str
    change: str  # by how much it changed, if it did
    kind: str  # more or less


def _facts(found: Comparison) -> Iterator[Fact]:
    """The time, the GPU's work and the time to enqueue it, each of both sides."""
    before, after = found.before, found.after
    unit = unit_words(found.inferences_a_pass)
    whole = [name for name, side in zip(_SIDES, (before, after), strict=True) if side.whole_graphs]
    profiled = (
        "as recorded"
        if before.profiled or len(whole) == len(_SIDES)
        else f"without the profiler ({whole[0]}: as recorded)"
        if whole
        else "without the profiler"
    )
    times = (
        (f"per {unit}, {profiled}", before.time_ns, after.time_ns),
        (f"GPU work per {unit}, as recorded", before.gpu_ns, after.gpu_ns),
        (f"enqueue per {unit}, as recorded", before.enqueue_ns, after.enqueue_ns),
    )
    for name, one, other in times:
        if one is None and other is None and not (before.inferences and after.inferences):
            continue
        change, kind = "", ""
        if one and other is not None and rounded(one) != rounded(other):
            change = f"{'+' if other > one else '−'}{percent(abs(other - one), one)}"
            kind = "more" if other > one else "less"
        yield Fact(name, rounded(one), rounded(other), change, kind)


_TABS = {
    "waterfall": "Difference", "layers": "Layers", "findings": "Findings",
    "predictions": "What if", "times": "Times", "kernels": "Kernels", "sure": "How sure",
}  # fmt: skip
_TAB_OF = {
    "went-to": "waterfall", "waterfall": "waterfall", "waits": "waterfall",
    "times": "times", "conditions": "times", "notes": "sure", "findings": "findings",
    "predictions": "predictions", "kernels": "kernels",
}  # fmt: skip
"""The tabs of sections; that of all others are the layers."""


def page_html(
    page: Page,
    differences: Mapping[str, Sequence[int]],
    went_to: Sequence[str] = (),
    *,
    beside: Sequence[SidePage | None] = (None, None),
    facts: Sequence[Fact] = (),
    waterfall: Sequence[str] = (),
    strips: Sequence[str] = (),
) -> str:
    """A page as HTML; ``differences`` has, by a section's key, the lengths of the bars in its
    first rows.

    ``went_to`` are lines of HTML below the answer, ``waterfall`` beside it, ``strips`` below both.
    """
    bodies: dict[str, list[str]] = {}
    for at, section in enumerate(page.sections):
        tab = _TAB_OF.get(section.key, "layers")
        shown = _section(at, section, differences.get(section.key, ()), beside)
        bodies.setdefault(tab, []).extend(shown)
    tabs = [Tab(key, words) for key, words in _TABS.items() if key in bodies]
    return (
        environment(HERE)
        .get_template("comparison.html.j2")
        .render(
            title=escaped(page.title),
            heading=escaped(page.title),
            links=[
                (one.title or f"full analysis of {one.word}", quote(one.file))
                for one in beside
                if one is not None
            ],
            tabs=tabs,
            answer=page.answer,
            facts=facts,
            went_to="\n".join(went_to),
            waterfall="\n".join(waterfall),
            strips="\n".join(strips),
            panels=[(tab.key, "\n".join(bodies[tab.key])) for tab in tabs],
            code=inlined((*STYLES, HERE / "comparison.css", *SCRIPTS, TABLES_SCRIPT)),
        )
    )


def _section(
    at: int, section: Section, bars: Sequence[int], beside: Sequence[SidePage | None]
) -> Iterator[str]:
    yield f'<h2 id="t{at}">{inert(section.heading)}</h2>'
    look = replace(_LOOK, table=f' class="rows" data-csv="{inert(section.key)}" data-head="t{at}"')
    for block in section.blocks:
        if isinstance(block, Grid):
            yield '<div class="scroll">'
            yield from grid_html(block, look, list(_further(block, bars, beside)))
            yield "</div>"
        else:
            yield block_html(block, _LOOK)


def _further(
    grid: Grid, bars: Sequence[int], beside: Sequence[SidePage | None]
) -> Iterator[HtmlColumn]:
    """The bars of a table's first rows, and links to the layers of its rows on other pages."""
    if bars:
        most = max(map(abs, bars)) or 1
        drawn = [_bar(bars[at] / most) if at < len(bars) else "" for at in range(len(grid.rows))]
        yield HtmlColumn(_BARS, [f"<td>{bar}</td>" for bar in drawn])
    if grid.places and any(beside):
        links = [f'<td class="r">{_links(*ids, beside)}</td>' for ids in grid.places]
        yield HtmlColumn("<th>show</th>", links)


def _went_to(contributions: Sequence[Contribution], sides: tuple[str, str]) -> Iterator[str]:
    """One bar per side on one scale: GPU work, and idle time by cause; nothing if a time is
    unknown.
    """
    parts: dict[str, list[int]] = {_WORK: [0, 0]}
    for one in contributions:
        held = parts.setdefault((one.cause or one.name) if one.kind == "idle" else _WORK, [0, 0])
        held[0] += one.before_ns
        held[1] += one.after_ns
    whole = [sum(max(held[side], 0) for held in parts.values()) for side in (0, 1)]
    if min(whole) <= 0:
        return
    shown = sorted((name for name in parts if name != _WORK), key=lambda name: -sum(parts[name]))
    yield '<table class="went">'
    for side, word in enumerate(sides):
        left, drawn = 0.0, []
        for name in (_WORK, *shown):
            wide = 100 * max(parts[name][side], 0) / max(whole)
            told = inert(f"{_said(name)}: {rounded(parts[name][side])}")
            drawn.append(
                f'<rect x="{left:.3f}" y="0" width="{wide:.3f}" height="6"'
                f' fill="{_fill(name)}"><title>{told}</title></rect>'
            )
            left += wide
        bar = (
            f'<svg class="whole" role="img" aria-label="{word}" viewBox="0 0 100 6"'
            f' preserveAspectRatio="none">{"".join(drawn)}</svg>'
        )
        yield (
            f"<tr><th>{inert(word)}</th><td"
            f' class="r">{inert(rounded(whole[side]))}</td><td>{bar}</td></tr>'
        )
    yield "</table>"
    keys = (
        '<span><svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1"'
        f' fill="{_fill(name)}"/></svg> {inert(_said(name))}: {inert(rounded(parts[name][0]))} →'
        f" {inert(rounded(parts[name][1]))}</span>"
        for name in (_WORK, *shown)
        if max(parts[name]) >= _LEAST_SHOWN * max(whole)
    )
    yield f'<p class="keys">{" ".join(keys)}</p>'


def _said(part: str) -> str:
    return "GPU work" if part == _WORK else f"idle, {idle_words(part)}"


def _fill(part: str) -> str:
    return BUSY if part == _WORK else CAUSES.get(part, CAUSES["unknown"])


def _links(before: str, after: str, beside: Sequence[SidePage | None]) -> str:
    """Links to a row's layers on the page of each side."""
    pairs = zip((before, after), beside, strict=True)
    return " ".join(
        f'<a href="{inert(one.address(ids))}">{one.word}</a>'
        for ids, one in pairs
        if ids and one is not None
    )


def _bar(share: float) -> str:
    width = abs(share) * _HALF
    left = _HALF if share >= 0 else _HALF - width
    kind = "more" if share >= 0 else "less"
    return (
        f'<svg viewBox="0 0 {2 * _HALF} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<line class="axis" x1="{_HALF}" x2="{_HALF}" y1="0" y2="10"/>'
        f'<rect class="{kind}" x="{left:.2f}" y="1" width="{width:.2f}" height="8"/></svg>'
    )


def check_pages(path: Path, inputs: Sequence[Path]) -> None:
    """Check that the pages of both sides can be written beside that of the comparison. Raises
    NsysmapError if a file of that name is not ours.
    """
    if path.suffix.lower() != ".html":
        return
    for word in _SIDES:
        page = _page_of_side(path, word)
        check_output(page, (".html",), inputs)
        if page.is_file():
            with page.open("rb") as file:
                if _OURS not in file.read(_HEAD_BYTES):
                    told = (
                        f"would be overwritten by the page of {word.upper()}, which is written"
                        f" beside {path.name}"
                    )
                    raise NsysmapError(
                        str(page), told, "give another output file, or remove it first"
                    )


def write_comparison(found: Comparison, path: Path, sides: Sequence[Side] = ()) -> None:
    """Write the comparison to a file, in the form that its suffix names; with a page, also linked
    pages of the ``sides``.
    """
    suffix = path.suffix.lower()
    if suffix == ".html":
        beside = (
            [_write_side(side, path, word) for word, side in zip(_SIDES, sides, strict=True)]
            if sides
            else []
        )
        text = comparison_html(found, beside or (None, None), sides)
    else:
        text = (
            comparison_markdown(found)
            if suffix == ".md"
            else json.dumps(comparison_json(found), indent=1) + "\n"
        )
    _write(path, text)


def _page_of_side(path: Path, word: str) -> Path:
    return path.with_name(f"{path.stem}.{word}{path.suffix}")


def _write_side(side: Side, comparison: Path, word: str) -> SidePage | None:
    """Write the page of a side: that of its analysis, or the picture of an engine file alone; None
    if it has nothing to show.
    """
    path, other = (_page_of_side(comparison, one) for one in (word, _SIDES[1 - _SIDES.index(word)]))
    links = [
        ("comparison", quote(comparison.name)),
        (other.suffixes[-2].removeprefix("."), quote(other.name)),
    ]
    if side.analysis is not None:
        write_page(side.analysis, report_of(side.analysis), path, links=links)
        return SidePage(
            word, path.name, title="" if side.merged is None else f"the first run of {word}"
        )
    if not side.engines or not side.engines[0].layers:
        return None
    engine = side.engines[0]
    _write(path, html(picture(engine, times_of(engine), all_views=True), links=links))
    return SidePage(word, path.name, several=None)


def write_inference(found: OneInference, path: Path) -> None:
    """Write one inference beside the median one to a file, in the form that its suffix names."""
    page, suffix = page_of_inference(found), path.suffix.lower()
    if suffix == ".html":
        differences = {"went-to": [one.ns for one in found.contributions if one.ns][:TOP]}
        text = page_html(
            page, differences, tuple(_went_to(found.contributions, ("median", "this one")))
        )
    else:
        text = (
            page_markdown(page)
            if suffix == ".md"
            else json.dumps(inference_json(found), indent=1) + "\n"
        )
    _write(path, text)


def write_builds(found: Builds, path: Path) -> None:
    """Write builds side by side to a file, in the form that its suffix names."""
    page, suffix = page_of_builds(found), path.suffix.lower()
    if suffix == ".html":
        text = page_html(page, {}, ())
    elif suffix == ".md":
        text = page_markdown(page)
    else:
        text = json.dumps(builds_json(found), indent=1) + "\n"
    _write(path, text)


def _write(path: Path, text: str) -> None:
    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8")
