"""The page opens from disk: one file that asks for nothing, whatever the trace, and shows what its
address names.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysmap.api import analyze
from nsysmap.core.table import Table
from nsysmap.output.build import report_of
from nsysmap.output.page.write import write_page
from tests.browser import Browser
from tests.places import FIXTURES, ROOT

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, bert, open_tab, opened, top


@pytest.mark.parametrize("name", CAPTURES)
def test_a_page_opens_with_its_figures_and_asks_for_nothing(
    browser: Browser, written: Callable[..., Path], name: str
) -> None:
    page = opened(browser, written(*CAPTURES[name]))
    assert CAPTURES[name][0].rpartition("/")[2] in page.title()
    assert page.locator("#answer dd").count() >= 3
    assert page.locator("#lanes canvas").evaluate("canvas => canvas.height") > 40
    for tab in page.locator("#tabs a").all():
        tab.click()
        assert page.locator("#panels > section:visible").count() == 1
    assert page.is_hidden("#broken")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(browser: Browser, tmp_path: Path) -> None:
    framed = analyze(FIXTURES / "bert_trt10" / "sync.sqlite").page(height=500)
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html><body>{framed._repr_html_()}", encoding="utf-8")
    inside = browser.open(cell).frame_locator("iframe[title=nsysmap]")
    inside.locator("#lanes canvas").first.wait_for()
    inside.locator("#tabs a", has_text="Idle").click()
    assert inside.locator("#panels > section:visible").count() == 1
    assert inside.locator("body").evaluate("() => window.origin") == "null"


def test_light_and_dark_differ_and_the_reader_chooses(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_what_a_long_trace_leaves_out_is_said(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["one inference at a time"], most_kernels=400))
    assert "of 1,900 kernels event by event" in page.inner_text("#timeline")


def test_a_link_opens_the_page_at_a_layer(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), "layer=4&inference=7")
    assert "gemm_mha" in page.inner_text("#details")
    assert "inference 7" in page.inner_text("#chips")


def test_the_page_of_a_hundred_thousand_kernels_is_small_and_whole(
    browser: Browser, tmp_path: Path
) -> None:
    export, engine = tmp_path / "made.sqlite", tmp_path / "made.json"
    subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "make_trace.py", "100000", export, engine],
        check=True,
        capture_output=True,
    )
    analysis = analyze(export, engine, rules=())
    write_page(analysis, report_of(analysis), tmp_path / "x.html")
    assert (tmp_path / "x.html").stat().st_size < 3_000_000
    page = opened(browser, tmp_path / "x.html")
    assert page.locator("#timeline .warn").count() == 0  # nothing is left out
    name = analysis.tables.kernels.text("name")[77]
    page.fill("#find", str(name))
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"\d+ of [\d,]+")).first.wait_for()
    assert str(name) in page.inner_text("#details")
    page.keyboard.press("Escape")
    page.locator("#lanes canvas").focus()
    page.keyboard.press("0")
    page.keyboard.press("w")
    assert page.get_attribute("body", "data-drawn")


def test_the_page_of_a_trace_of_nothing_opens(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt103" / "sync.nsys-rep", rules=())
    nothing = {
        name: Table.empty(table.spec)
        for name, table in whole.tables.by_name().items()
        if name not in ("capture", "devices")
    }
    empty = replace(whole, tables=whole.tables.with_tables(**nothing))
    write_page(empty, report_of(empty), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html")
    assert "none recognised" in page.inner_text("#answer")
    assert "No kernel is" in page.inner_text("#answer")
    assert page.locator("#layers").count() == 0  # there is none, and no link leads there
    assert page.locator("a[href='#layers']").count() == 0
    page.keyboard.press("w")
    page.keyboard.press("]")


@pytest.mark.parametrize("fragment", ["finding-1", "whatif"])
def test_what_an_address_names_stands_below_the_header(
    browser: Browser, written: Callable[..., Path], fragment: str
) -> None:
    page = opened(browser, bert(written), fragment)
    place = "place => place.getBoundingClientRect().top"
    head = page.locator("#tabs").evaluate("head => head.getBoundingClientRect().bottom")
    assert head - 1 <= page.locator(f"#{fragment}").evaluate(place) < head + 300
    assert page.url.endswith("#tab=whatif" if fragment == "whatif" else f"#{fragment}")
    page.keyboard.press("]")  # a selection
    page.locator("#answer a", has_text="evidence").click()
    head = page.locator("#tabs").evaluate("head => head.getBoundingClientRect().bottom")
    assert head - 1 <= page.locator("#sure").evaluate(place) < head + 300


def test_an_address_with_layers_opens_at_their_rows(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]), "layers=3.9.15")
    box = page.locator("#layer-table tr.on").first.bounding_box()
    assert page.locator("#layer-table tr.on").count() >= 1
    assert box is not None and 42 < box["y"] < 900
    assert 0 <= top(page, "#layers h2") < 100


def test_the_header_stays_together_beside_links_to_other_pages(
    browser: Browser, tmp_path: Path
) -> None:
    whole = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"])
    write_page(
        whole,
        report_of(whole),
        tmp_path / "x.html",
        links=[("comparison", "c.html"), ("after", "c.after.html")],
    )
    page = opened(browser, tmp_path / "x.html")
    tops = [top(page, one) for one in ("#find", "#theme", "#help")]
    assert max(tops) - min(tops) < 10
    script = """one => {
      const pen = document.createElement("canvas").getContext("2d"), { font, paddingLeft, paddingRight } = getComputedStyle(one);
      pen.font = font;
      return one.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - pen.measureText(one.placeholder).width;
    }"""  # noqa: E501
    for width in (1400, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        # what may be searched for is said in full
        for tab, place in (
            ("layers", "#find"),
            ("layers", "#layer-filter"),
            ("kernels", "#kernel-filter"),
        ):
            open_tab(page, tab)
            box = page.locator(place)
            assert box.evaluate(script) >= 0, box.get_attribute("placeholder")
    page.set_viewport_size({"width": 1400, "height": 900})
    assert page.locator("header").evaluate("one => one.offsetHeight") < 70


def test_without_scripts_the_page_says_what_is_missing(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = browser.chromium.new_page(java_script_enabled=False)
    page.goto(bert(written).as_uri())
    assert "switched off" in page.inner_text("#timeline")
    assert "What to do first" in page.inner_text("#answer")
    page.close()
    assert "Scripts are switched off" not in opened(browser, bert(written)).inner_text("#timeline")
