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
from nsysmap.output.page.comparison import comparison_html, write_inference
from tests.browser import Browser
from tests.reports import analysis

BROKEN = """() => {
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


def test_no_word_of_a_heading_or_a_short_column_is_broken(browser: Browser, tmp_path: Path) -> None:
    found = compare_sides(
        side_of(analysis("bert_trt85", "sync.nsys-rep")),
        side_of(analysis("bert_trt10", "sync.sqlite")),
    )
    (tmp_path / "c.html").write_text(comparison_html(found), encoding="utf-8")
    page = browser.open(tmp_path / "c.html")
    assert page.locator("td.l").count() > 10
    assert page.evaluate(BROKEN) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
