"""One selection filters every figure of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.api import analyze
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, MIXED, bert, open_tab, opened


def test_one_selection_filters_every_figure(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    whole = page.inner_text("#layer-table tbody tr:first-child")
    page.keyboard.press("]")  # the first inference
    assert "within the selection" in page.inner_text("#layers .said")
    assert "within the selection" in page.inner_text("#idle .said")
    assert page.inner_text("#layer-table tbody tr:first-child") != whole
    page.locator("#layer-table tbody button").first.click()
    assert page.locator("#layer-table tr.on").count() == 1
    assert "layer" in page.inner_text("#chips")
    assert "concern the selection" in page.inner_text("#finding-count")
    page.locator("#chips button").first.click()
    assert "mean per inference" in page.inner_text("#layers .said")


def test_a_part_of_time_is_marked_in_the_graph(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    open_tab(page, "graph")
    page.wait_for_selector(".box")
    assert page.locator(".box.found").count() == 0
    page = opened(browser, bert(written), "range=2000000-2060000", tab="graph")
    page.wait_for_selector(".box.found")
    assert 0 < page.locator(".box.found").count() < page.locator(".box").count()
    # of the one engine, not of the other
    page = opened(browser, written(*MIXED), "inference=17", tab="graph")
    shown = page.locator("#graph-engine option").all_inner_texts()
    marked = []
    for number, _ in enumerate(shown):
        page.select_option("#graph-engine", str(number))
        page.wait_for_selector(".graph:not([hidden]) .box")
        marked.append(page.locator(".graph:not([hidden]) .view.shown.finding").count())
    assert marked == [1, 0]  # none of the first ran in it, all of the second


def test_the_part_in_view_is_selected_by_a_key_and_told(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.locator("#lanes canvas").focus()
    page.keyboard.press("r")
    page.wait_for_selector("#chips:not([hidden])")
    assert re.search(r"range=\d+-\d+", page.url)
    told = page.inner_text("#details")
    assert "kernels" in told and "idle, waiting for launches" in told
    assert "within the selection" in page.inner_text("#layers .said")
    assert page.inner_text("#details h2").split(" from ")[0] in page.inner_text("#chips")


@pytest.mark.parametrize(
    "selected",
    ["range=2000000-2060000", "range=0-400000", "inference=0", "inference=9", "inference=48"],
)
def test_a_selection_adds_up_the_kernels_that_are_in_it(
    browser: Browser, written: Callable[..., Path], selected: str
) -> None:
    tables = analyze(
        FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()
    ).tables
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
    times = [
        float(text.replace(",", ""))
        for text in page.locator("#layer-table tbody td:nth-child(2)").all_inner_texts()
        if text != "–"
    ]
    assert sum(times) == pytest.approx(spent.sum() / 1000, abs=0.006 * len(times))
    open_tab(page, "kernels")
    counts = page.locator("#kernels tbody tr:visible td:nth-child(3)").all_text_contents()
    assert sum(int(text.replace(",", "")) for text in counts) == np.count_nonzero(spent)


ALONGSIDE = """async ([inference]) => {
  const doc = (await inflated("doc")).head, trace = traceOf(doc, unpacked(await inflated("rows")));
  const passes = trace.chosenBy({ inference, range: null, layer: null, layers: null, found: null });
  const rows = type => [...trace.tables[TABLES[type]].start.keys()].filter(row => passes(type, row));
  const of = (type, column) => [...new Set(rows(type).map(row => trace.shared(type, column, row)))];
  const { device, thread } = trace.tables.inferences;
  return [of(GAP, "device"), of(RANGE, "thread"), of(CALL, "thread"), device[inference], thread[inference]];
}"""  # noqa: E501


def test_an_inference_selects_what_is_on_its_gpu_and_its_thread_only(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("two_gpus/tp_sync.nsys-rep", "two_gpus/tp.engine.json"))
    gaps, ranges, calls, device, thread = page.evaluate(ALONGSIDE, [20])
    assert gaps == [device]
    assert ranges == calls == [thread]


def test_a_search_finds_an_inference_by_its_number_and_idle_time_by_its_cause(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.fill("#find", "inference 34")
    page.locator("#find").press("Enter")
    assert page.inner_text("#details h2") == "Inference 34"
    assert "inference 34" in page.inner_text("#chips")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.fill("#find", "waiting")
    page.locator("#hits li button", has_text="waiting for launches").first.click()
    assert page.inner_text("#details h2") == "GPU 0 idle: waiting for launches"


def test_a_kernel_of_a_graph_shows_the_capture_of_its_node_and_the_ranges_around_that(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["auxiliary streams in a graph"]))
    page.fill("#find", "inception3/branch2/conv2")
    page.locator("#find").press("Enter")
    told = page.inner_text("#details")
    ranges = told.split("ranges around that capture, outermost first")[1].split(
        "Grid and resources"
    )[0]
    assert "ExecutionContext::enqueueV3" in ranges
    assert "/inception3/branch2/conv2/Conv" in ranges
    assert re.search(r"captured\s+[\d.]+ \S+\s+[\d.]+ ms in the report", told)
    assert "that rule is about how long nsys stopped the launching thread" in page.inner_text(
        "#sure"
    )


def test_a_whole_heading_sorts_and_figures_of_the_whole_run_say_so(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), "inference=5")
    assert page.locator("#kernels .whole-run").get_attribute("hidden") is not None
    head = page.locator("#layer-table th[data-by=count]")
    assert head.get_attribute("aria-sort") == "none"
    box = head.bounding_box()
    assert box is not None
    head.click(position={"x": 2, "y": box["height"] / 2})
    assert head.get_attribute("aria-sort") == "descending"


def test_on_a_phone_the_details_do_not_cover_what_was_tapped(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector("body[data-ready]")
    open_tab(page, "layers")
    row = page.locator("#layer-table tbody tr button.link").nth(6)
    row.evaluate("one => window.scrollBy(0, one.getBoundingClientRect().bottom - 800)")
    row.click()
    page.wait_for_timeout(100)
    sheet, tapped = page.locator("#details").bounding_box(), row.bounding_box()
    assert sheet is not None and tapped is not None
    assert tapped["y"] + tapped["height"] <= sheet["y"]
