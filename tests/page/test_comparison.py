"""The bars on top of the pages of a comparison and of one inference: where each side's time went,
to one scale.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nsysmap.comparison.compare import compare_sides
from nsysmap.comparison.inference import one_inference
from nsysmap.comparison.inference_page import TOP
from nsysmap.comparison.side import side_of
from nsysmap.output.page.comparison import (
    comparison_html,
    write_comparison,
    write_inference,
)
from tests.browser import Browser
from tests.page.test_accessible import BROKEN, FAINT
from tests.reports import analysis

BREAKS = """() => {
  const broken = [];
  const nodes = [...document.querySelectorAll("th, td.l")].flatMap(cell => [...cell.childNodes]).filter(node => node.data);
  for (const node of nodes) for (const word of node.data.matchAll(/[^\\s-]+/g)) {
    const range = new Range();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(one => one.top)).size > 1) broken.push(word[0]);
  }
  return broken;
}"""  # noqa: E501
"""The words of short columns that stand on several lines, apart from hyphens."""


def widths(page: str) -> list[list[float]]:
    """Of each bar the widths of its parts in percent."""
    bars = re.findall(r'<svg class="whole".*?</svg>', page)
    return [
        [float(width) for width in re.findall(r'width="([\d.]+)" height="6"', bar)] for bar in bars
    ]


def test_the_bars_of_one_inference_are_its_time_and_the_median_one_s(tmp_path: Path) -> None:
    held = analysis("bert_trt10", "sync.sqlite")
    found = one_inference(held.tables.by_name(), held.source, "slowest")
    write_inference(found, tmp_path / "one.html")
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    usual, this = (sum(bar) for bar in widths(page))
    assert this == pytest.approx(100, abs=0.01)
    assert usual == pytest.approx(100 * found.usual_ns / found.time_ns, abs=0.5)
    assert "idle, waiting for launches: 12.9 µs → 269 µs" in page
    contributions = page.split("Where its time went, µs</h2>")[1].split("</table>")[0]
    assert contributions.count('<rect class="') == TOP


def test_the_bars_of_a_comparison_are_both_times() -> None:
    found = compare_sides(
        *(side_of(analysis("bert_trt10", report)) for report in ("hostgap.nsys-rep", "sync.sqlite"))
    )
    assert found.before.time_ns is not None and found.after.time_ns is not None
    page = comparison_html(found)
    assert "as replayed without the profiler" in page
    before, after = (sum(bar) for bar in widths(page))
    assert before == pytest.approx(100, abs=0.01)
    assert after == pytest.approx(100 * found.after.time_ns / found.before.time_ns, abs=0.5)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a comparison, with those of its sides beside it."""
    path = tmp_path_factory.mktemp("comparison") / "c.html"
    sides = [
        side_of(analysis("bert_trt10", report)) for report in ("hostgap.nsys-rep", "sync.nsys-rep")
    ]
    write_comparison(compare_sides(*sides), path, sides)
    return path


def test_a_comparison_opens_on_its_waterfall_and_both_timelines(
    browser: Browser, pages: Path
) -> None:
    page = browser.open(pages)
    page.set_viewport_size({"width": 1440, "height": 900})
    facts = [one.inner_text() for one in page.locator(".facts dt").all()]
    assert [one.partition(" per ")[0] for one in facts[1:]] == ["GPU work", "enqueue"]
    strips = page.locator("svg.strip")
    assert strips.count() == 2
    for place in (*strips.all(), page.locator(".waterfall"), page.locator("#tabs")):
        box = place.bounding_box()
        assert box is not None and box["y"] + box["height"] <= 900
    # to one scale: each is as long as its inference
    wide = [float(str(one.get_attribute("width"))) for one in page.locator(".strip .ground").all()]
    told = [
        float(re.findall(r"recorded: ([\d,]+)", one)[0].replace(",", ""))
        for one in page.locator(".strip-name").all_inner_texts()
    ]
    assert max(wide) == 1000
    assert wide[1] / wide[0] == pytest.approx(told[1] / told[0], rel=0.01)


def test_the_steps_of_the_waterfall_lead_from_one_time_to_the_other(
    browser: Browser, pages: Path
) -> None:
    page = browser.open(pages)
    boxes = [
        [float(str(one.get_attribute(name))) for name in ("x", "width")]
        for one in page.locator(".waterfall rect").all()
    ]
    before, *steps, after = boxes
    signs = [
        text.startswith("+") for text in page.locator(".waterfall td.right").all_inner_texts()[1:-1]
    ]
    reached = before[1]
    for (left, wide), more in zip(steps, signs, strict=True):
        begin, end = (left, left + wide) if more else (left + wide, left)
        assert begin == pytest.approx(reached, abs=0.25)
        reached = end
    assert after[1] == pytest.approx(reached, abs=0.5)


def test_a_kernel_of_a_timeline_leads_to_its_layer_on_the_page_of_its_side(
    browser: Browser, pages: Path
) -> None:
    page = browser.open(pages)
    links = page.locator("svg.strip").last.locator("a")
    assert links.count() > 20
    address = str(links.nth(5).get_attribute("href"))
    assert re.fullmatch(r"c\.after\.html#inference=\d+&layer=\d+", address)
    title = str(links.nth(5).locator("title").text_content())
    name, _, fragment = address.partition("#")
    side = browser.open(pages.with_name(name), fragment)
    side.wait_for_selector("body[data-ready]")
    assert side.inner_text("#details h2") in title


def test_the_tabs_of_a_comparison_keep_their_state_and_its_tables_are_csv(
    browser: Browser, pages: Path
) -> None:
    page = browser.open(pages, "tab=times")
    assert page.locator("#times").is_visible() and page.locator("#waterfall").is_hidden()
    page.click("#tab-waterfall")
    assert page.url.endswith("#tab=waterfall")
    with page.expect_download() as download:
        page.locator("#waterfall .export").first.click()
    assert download.value.suggested_filename == "waterfall.csv"
    page.set_viewport_size({"width": 390, "height": 844})
    for tab in page.locator("#tabs a").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_comparison_can_be_read_and_reached(browser: Browser, pages: Path, scheme: str) -> None:
    page = browser.open(pages, scheme=scheme)
    for tab in page.locator("#tabs a").all():
        tab.click()
        assert page.evaluate(BROKEN) == []
        assert page.evaluate(FAINT) == []


def test_no_word_of_a_heading_or_a_short_column_is_broken(browser: Browser, tmp_path: Path) -> None:
    found = compare_sides(
        side_of(analysis("bert_trt85", "sync.nsys-rep")),
        side_of(analysis("bert_trt10", "sync.sqlite")),
    )
    (tmp_path / "c.html").write_text(comparison_html(found), encoding="utf-8")
    page = browser.open(tmp_path / "c.html")
    assert page.locator("td.l").count() > 10
    assert page.evaluate(BREAKS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
