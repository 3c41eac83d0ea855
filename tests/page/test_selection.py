"""One selection filters every figure of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.analysis import analyze
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import MIXED, bert, opened


def test_one_selection_filters_every_figure(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    whole = page.inner_text("#layers tbody tr:first-child")
    page.keyboard.press("]")  # the first inference
    assert "within the selection" in page.inner_text("#layers .said")
    assert "within the selection" in page.inner_text("#idle .said")
    assert page.inner_text("#layers tbody tr:first-child") != whole
    page.locator("#layers tbody button").first.click()
    assert page.locator("#layers tr.on").count() == 1
    assert "layer" in page.inner_text("#chips")
    assert "concern the selection" in page.inner_text("#finding-count")
    page.locator("#chips button").first.click()
    assert "mean per inference" in page.inner_text("#layers .said")


def test_a_part_of_time_is_marked_in_the_graph(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#graph").scroll_into_view_if_needed()
    page.wait_for_selector(".box")
    assert page.locator(".box.found").count() == 0
    page = opened(browser, bert(written), "range=2000000-2060000")
    page.locator("#graph").scroll_into_view_if_needed()
    page.wait_for_selector(".box.found")
    assert 0 < page.locator(".box.found").count() < page.locator(".box").count()
    page = opened(browser, written(*MIXED), "inference=17")  # of the one engine, not of the other
    shown = page.locator("#graph-engine option").all_inner_texts()
    marked = []
    for number, _ in enumerate(shown):
        page.locator("#graph").scroll_into_view_if_needed()
        page.select_option("#graph-engine", str(number))
        page.wait_for_selector(".graph:not([hidden]) .box")
        marked.append(page.locator(".graph:not([hidden]) .view.shown.finding").count())
    assert marked == [1, 0]  # none of the first ran in it, all of the second


def test_the_part_in_view_is_selected_by_a_key_and_told(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#lanes canvas").focus()
    page.keyboard.press("r")
    page.wait_for_selector("#chips:not([hidden])")
    assert re.search(r"range=\d+-\d+", page.url)
    told = page.inner_text("#details")
    assert "kernels" in told and "idle, waiting for launches" in told
    assert "within the selection" in page.inner_text("#layers .said")
    assert page.inner_text("#details h2").split(" from ")[0] in page.inner_text("#chips")


@pytest.mark.parametrize("selected", ["range=2000000-2060000", "range=0-400000", "inference=0", "inference=9", "inference=48"])
def test_a_selection_adds_up_the_kernels_that_are_in_it(browser: Browser, written: Callable[..., Path], selected: str) -> None:
    tables = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()).tables
    kernels = tables.kernels
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    events = (kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    what, _, value = selected.partition("=")
    if what == "range":
        begin, stop = (origin + int(part) for part in value.split("-"))
        spent = np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0)
    else:
        spent = np.where(kernels.ints("inference") == int(value), end - start, 0)
    page = opened(browser, bert(written), selected)
    page.select_option("#layer-rows", "each")
    times = [float(text.replace(",", "")) for text in page.locator("#layers tbody td:nth-child(2)").all_inner_texts() if text != "–"]
    assert sum(times) == pytest.approx(spent.sum() / 1000, abs=0.006 * len(times))
    counts = page.locator("#kernels tbody tr:visible td:nth-child(3)").all_text_contents()
    assert sum(int(text.replace(",", "")) for text in counts) == np.count_nonzero(spent)
