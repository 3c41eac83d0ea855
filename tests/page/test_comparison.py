"""The bars on top of the pages of a comparison and of one inference: where each side's time went, to one scale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nsysmap.comparison.compare import compare_sides
from nsysmap.comparison.inference import one_inference
from nsysmap.comparison.inference_page import TOP
from nsysmap.comparison.side import side_of
from nsysmap.page.comparison import comparison_html, write_inference
from tests.reports import analysis


def widths(page: str) -> list[list[float]]:
    """Of each bar the widths of its parts in percent."""
    bars = re.findall(r'<svg class="whole".*?</svg>', page)
    return [[float(width) for width in re.findall(r'width="([\d.]+)" height="6"', bar)] for bar in bars]


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
    found = compare_sides(*(side_of(analysis("bert_trt10", report)) for report in ("hostgap.nsys-rep", "sync.sqlite")))
    assert found.before.time_ns is not None and found.after.time_ns is not None
    page = comparison_html(found)
    assert "as replayed without the profiler" in page
    before, after = (sum(bar) for bar in widths(page))
    assert before == pytest.approx(100, abs=0.01)
    assert after == pytest.approx(100 * found.after.time_ns / found.before.time_ns, abs=0.5)
