"""The page by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import Browser

if TYPE_CHECKING:
    from playwright.sync_api import Page
from tests.page.opening import bert, open_tab, opened, top


def test_after_enter_the_keys_go_through_the_matches_and_move_the_timeline(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("/")
    page.keyboard.type("gemm_mha")
    page.keyboard.press("Enter")
    first = page.inner_text("#count")
    page.keyboard.press("n")
    second = page.inner_text("#count")
    assert page.input_value("#find") == "gemm_mha"
    assert [int(one.split()[0]) for one in (first, second)] == [
        int(first.split()[0]),
        int(first.split()[0]) + 1,
    ]
    page.keyboard.press("p")
    assert page.inner_text("#count").split()[0] == first.split()[0]
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"
    page.keyboard.press("/")
    page.keyboard.type("no such name")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "find"  # to be corrected


def _blurred(page: Page) -> Iterator[None]:
    """Twice: as it is, and with nothing in focus."""
    yield
    page.evaluate("document.activeElement.blur()")
    yield


@pytest.mark.parametrize("key", ["layers", "graph", "findings"])
def test_all_controls_are_reached_by_tab_and_seen_to_be(
    browser: Browser, written: Callable[..., Path], key: str
) -> None:
    page = opened(browser, bert(written))
    open_tab(page, key)
    if key == "graph":
        page.wait_for_selector(".box")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    wanted = page.evaluate("""() => {
          const all = [...document.querySelectorAll("a[href], button, input, select, canvas, summary, .box")];
          all.forEach((one, at) => { one.dataset.tabbed = at; });
          // those with -1 are reached by the arrow keys from the one of them that Tab reaches
          return all.filter(one => one.checkVisibility() && one.tabIndex >= 0 && !one.closest("dialog")).map(one => one.dataset.tabbed);
        }""")  # noqa: E501
    reached: set[str] = set()
    kinds: dict[str, str] = {}
    for _ in range(len(wanted) + 30):  # and what scrolls
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.dataset.tabbed")
        if at in reached:
            break
        if at is None:
            continue  # what scrolls
        reached.add(at)
        told = page.evaluate("""() => {
              const one = document.activeElement, { top, bottom } = one.getBoundingClientRect();
              return [one.tagName + "." + (one.id || one.className.baseVal || one.className), top < innerHeight && bottom > 0];
            }""")  # noqa: E501
        assert told[1], told
        kinds.setdefault(re.sub(r"\d+", "", told[0].split(" ")[0]), at)
    assert set(wanted) <= reached
    assert len(kinds) > 15
    for kind, at in kinds.items():
        one = page.locator(f'[data-tabbed="{at}"]')
        one.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        if one.evaluate("one => document.activeElement !== one"):
            continue  # what scrolls stands between
        box = (
            page.locator("#lanes") if one.evaluate("one => Boolean(one.closest('#lanes'))") else one
        ).bounding_box()
        assert box is not None
        left, top = max(box["x"] - 4, 0), max(box["y"] - 4, 0)
        height = min(box["y"] + box["height"] + 4, 900) - top
        focused, without = (
            page.screenshot(clip={"x": left, "y": top, "width": box["width"] + 8, "height": height})
            for _ in _blurred(page)
        )
        assert focused != without, kind


def test_keys_go_through_the_inferences_that_have_a_dot(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("]")
    assert "excluded" not in page.inner_text("#details")
    assert "inference 1" in page.inner_text("#chips")  # 0 is a warm-up
    assert 0 <= top(page, "#lanes") < 600  # in sight
    page.keyboard.press("[")
    assert "inference 1" in page.inner_text("#chips")
    page.keyboard.press("]")
    assert "inference 2" in page.inner_text("#chips")
