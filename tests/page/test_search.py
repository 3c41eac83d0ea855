"""The page's search lists what it finds and goes through it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import Browser

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, MIXED, bert, opened, top


def test_search_lists_what_it_finds_and_a_click_goes_there(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    page.fill("#find", "relu")
    page.get_by_text("720 kernels of 18 layers").first.wait_for()
    assert page.locator("#hits h3").all_inner_texts() == [
        "720 kernels of 18 layers",
        "720 NVTX ranges",
    ]
    first = page.locator("#hits button").first
    assert "40 ×" in page.locator("#hits li").first.inner_text()
    name = first.inner_text()
    first.click()
    assert page.inner_text("#details h2") == name
    assert page.inner_text("#count").endswith("of 720")
    page.click("h1")
    assert page.locator("#hits").is_hidden()
    page.fill("#find", "no such name")
    page.get_by_text("nothing found").wait_for()


def test_search_finds_a_kernel_and_shows_its_launch_and_evidence(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("/")
    page.keyboard.type("gemm_mha")
    page.locator("#count", has_text="150 kernels of 3 layers").wait_for()
    page.keyboard.press("Enter")
    details = page.inner_text("#details")
    assert "_gemm_mha_v2_0x" in details
    assert "NVTX range around" in details
    assert "cudaLaunchKernel" in details
    assert "48 × 1 × 1" in details
    assert "ExecutionContext::enqueue" in details
    first = page.inner_text("#count")
    page.click("#next")
    assert page.inner_text("#count") != first
    page.keyboard.press("Escape")
    assert page.inner_text("#count") == ""


def test_a_match_is_shown_beside_its_details_and_escape_leaves_the_search(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("/")
    page.keyboard.type("gemm_mha")
    page.locator("#hits li").first.wait_for()
    page.keyboard.press("Enter")
    assert page.locator("#hits").is_hidden()  # it would cover the details
    assert 0 <= top(page, "#lanes") < 600  # in sight
    # the search goes on from what the timeline shows
    assert page.inner_text("#count").endswith(" of 150, first in view")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id !== 'find'")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    assert page.input_value("#find") == ""


def test_matches_of_two_engines_are_listed_layer_by_layer(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    page.fill("#find", "gate")
    page.locator("#hits li").first.wait_for()
    layers = re.search(r"of (\d+) layers", page.inner_text("#hits h3"))
    assert layers is not None
    assert page.locator("#hits ul").first.locator("li").count() == int(layers[1])
    said = page.locator("#hits ul").first.inner_text()
    assert "context" in said and "generation" in said
