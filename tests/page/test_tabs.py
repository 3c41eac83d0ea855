"""The tabs of a page keep their state in its address, and are reached by keys alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import Browser
from tests.page.opening import bert, open_tab, opened

if TYPE_CHECKING:
    from playwright.sync_api import Page

TABS = ["layers", "idle", "inferences", "kernels", "graph", "findings", "whatif", "sure"]


def shown(page: Page) -> str:
    """The id of the one panel that is open; the tab that is selected is its own."""
    (panel,) = page.locator("#panels > section:visible").all()
    (tab,) = page.locator("#tabs [aria-selected=true]").all()
    assert tab.get_attribute("aria-controls") == panel.get_attribute("id")
    return str(panel.get_attribute("id"))


def test_tabs_keep_their_state_in_the_address_and_back_returns(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    assert [one.get_attribute("aria-controls") for one in page.locator("#tabs a").all()] == TABS
    assert shown(page) == "layers"
    assert "tab=" not in page.url  # nothing was chosen
    for key in ("findings", "whatif"):
        open_tab(page, key)
        assert shown(page) == key
        assert page.url.endswith(f"#tab={key}")
    page.keyboard.press("]")  # a selection joins it
    assert page.url.endswith("#inference=1&tab=whatif")
    address = page.url.partition("#")[2]
    page.go_back()
    assert shown(page) == "findings"
    page.go_forward()
    assert shown(page) == "whatif"
    again = opened(browser, bert(written), address)
    assert shown(again) == "whatif"
    assert "inference 1" in again.inner_text("#chips")


def test_links_within_the_page_open_the_tab_that_they_lead_to(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.locator("#answer a", has_text="evidence").click()
    assert shown(page) == "sure"
    page.locator("#answer a[href^='#finding-']").first.click()
    assert shown(page) == "findings"
    page.go_back()
    assert shown(page) == "sure"
    page.locator("#answer a", has_text="how predicted").first.click()
    assert shown(page) == "whatif"


def test_arrow_keys_go_from_tab_to_tab(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#tab-layers").focus()
    seen = []
    for _ in TABS:
        page.keyboard.press("ArrowRight")
        seen.append(shown(page))
        assert page.evaluate("document.activeElement.id") == f"tab-{seen[-1]}"
    assert seen == [*TABS[1:], TABS[0]]
    page.keyboard.press("End")
    assert shown(page) == TABS[-1]


def test_a_tab_opens_with_its_head_in_sight(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    for key in TABS:
        open_tab(page, key)
        head = page.locator("#tabs").evaluate("one => one.getBoundingClientRect().bottom")
        top = page.locator(f"#{key} h2").evaluate("one => one.getBoundingClientRect().top")
        assert head <= top < head + 40, key
        page.evaluate("scrollBy(0, 3000)")
