"""The page on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import Browser

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, MIXED, bert, open_tab, opened


def test_paper_shows_the_graph_and_what_to_do(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#panels > section:visible").count() == page.locator("#tabs a").count()
    assert page.locator("#graph-canvas .box").count() > 20
    assert page.locator(".finding details").first.get_attribute("open") is not None
    assert page.locator(".places").first.is_hidden()
    assert page.locator("#tabs").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".finding details").first.get_attribute("open") is None


def test_paper_shows_the_whole_graph(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": 720, "height": 1000})
    inside = """() => {
      const frame = document.getElementById("graph-canvas").getBoundingClientRect();
      const boxes = [...document.querySelectorAll("svg.shown .box .face")].map(one => one.getBoundingClientRect());
      const [left, right, top, bottom] = [["left", "min"], ["right", "max"], ["top", "min"], ["bottom", "max"]].map(([side, most]) =>
        Math[most](...boxes.map(one => one[side])));
      const whole = left >= frame.left && right <= frame.right && top >= frame.top && bottom <= frame.bottom;
      return [boxes.length, whole, (bottom - top) / frame.height];
    }"""  # noqa: E501
    count, whole, tall = page.evaluate(inside)
    assert count > 50 and whole and tall > 0.8
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.get_attribute("svg.shown", "viewBox") is None
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.bar i')).printColorAdjust")
        == "exact"
    )  # browsers print no background else


@pytest.mark.parametrize(
    "names", [MIXED, CAPTURES["two engines in turns"], CAPTURES["no engine file"]]
)
def test_paper_cuts_no_table(
    browser: Browser, written: Callable[..., Path], names: tuple[str, ...]
) -> None:
    page = opened(browser, written(*names))
    page.set_viewport_size({"width": 720, "height": 1000})  # A4 with a margin of 1 cm
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    cut = page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter(one => one.checkVisibility() && !one.closest("svg"))
          .filter(one => one.getBoundingClientRect().right > innerWidth
            || (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "auto"))
          .map(one => one.outerHTML.slice(0, 80))"""  # noqa: E501
    )
    assert cut == []
    assert page.locator("#find").is_hidden()
    assert names[0].rpartition("/")[2] in page.inner_text("h1")


def test_paper_has_no_words_about_the_mouse_and_no_heads_that_are_buttons(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.evaluate("document.querySelectorAll('.help').forEach(one => { one.open = true; })")
    words = [page.locator("main").inner_text()]
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    words.append(page.locator("main").inner_text())
    of_the_screen = ("Click ", "click ", "Drag ", "wheel", "how predicted", "why idle", "show it")
    assert [any(word in one for word in of_the_screen) for one in words] == [True, False]
    boxes = (
        "() => [...document.querySelectorAll('.rows th button')].map(one =>"
        " one.getBoundingClientRect().width)"
    )
    assert len(page.evaluate(boxes)) > 5
    # Chromium repeats the heads of a table on the next sheet only if none of them has such a box
    assert set(page.evaluate(boxes)) == {0}
    assert "of roofline" in page.locator("#layer-table thead").inner_text()


def test_a_phone_shows_every_column_without_scrolling_aside(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    wider = "document.documentElement.scrollWidth > innerWidth"
    beyond = """() => [...document.querySelectorAll(".rows th, .rows td")].filter(one => one.checkVisibility()
      && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.textContent)"""  # noqa: E501
    for tab in page.locator("#tabs a").all():
        tab.click()
        assert page.evaluate(beyond) == []
        assert not page.evaluate(wider), tab.inner_text()
    lefts = """place => [...document.querySelectorAll(`${place} tr:first-child > :not(.text)`)].map(one => one.getBoundingClientRect().left)"""  # noqa: E501
    for table in ("#idle", "#kernels", "#whatif", "#layers"):
        open_tab(page, table.removeprefix("#"))
        heads, cells = (
            page.evaluate(lefts, f"{table} thead"),
            page.evaluate(lefts, f"{table} tbody"),
        )
        assert heads == pytest.approx(cells), table  # each figure below its head


def test_paper_is_light_whatever_the_screen_is(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), scheme="dark")
    corner = """() => {
      const pen = document.createElement("canvas").getContext("2d");
      pen.drawImage(document.querySelector("#lanes canvas"), 0, 0);
      return [...pen.getImageData(2, 2, 1, 1).data].slice(0, 3).join();
    }"""
    dark = page.evaluate(corner)
    assert dark != "255,255,255"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(corner) == "255,255,255"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(corner) == dark
    assert page.evaluate("document.documentElement.dataset.theme") is None
