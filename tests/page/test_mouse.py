"""The page by mouse: wheel, drags and double clicks in the timeline, the overview and the engine
graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysmap.api import analyze
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    from playwright.sync_api import Page
from tests.page.opening import CAPTURES, bert, opened, seconds

INFERENCES, STREAM = 30, 78  # pixels from the top of the lanes
GUTTER = 168  # pixels on the left that name the lanes


def in_view(page: Page) -> tuple[float, float]:
    """Where the part in view begins, and how long it is, in seconds: R selects it."""
    page.keyboard.press("r")
    page.locator("#chips", has_text=" from ").wait_for()
    page.wait_for_timeout(80)  # a part of time is followed once a frame
    found = re.search(r"([\d.,]+ \S+) from ([\d.,]+ \S+)", page.inner_text("#chips"))
    assert found is not None
    page.keyboard.press("Escape")
    page.wait_for_timeout(80)  # the details are gone, and the timeline is wider
    return seconds(found[2]), seconds(found[1])


def in_view_kept(page: Page) -> tuple[float, float]:
    """The same without a change of what is selected in the end: a part of time is taken out of it
    by its chip.
    """
    page.keyboard.press("r")
    page.locator("#chips", has_text=" from ").wait_for()
    page.wait_for_timeout(80)
    chip = page.locator("#chips button", has_text=" from ")
    found = re.search(r"([\d.,]+ \S+) from ([\d.,]+ \S+)", chip.inner_text())
    assert found is not None
    chip.click()
    return seconds(found[2]), seconds(found[1])


def lanes(page: Page) -> tuple[float, float, float]:
    page.locator("#timeline").evaluate("one => one.scrollIntoView()")
    box = page.locator("#lanes canvas").bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"]


def drag(page: Page, begin: tuple[float, float], across: float, down: float = 0) -> None:
    page.mouse.move(*begin)
    page.mouse.down()
    page.mouse.move(begin[0] + across / 2, begin[1] + down / 2)
    page.mouse.move(begin[0] + across, begin[1] + down)
    page.mouse.up()


def test_the_wheel_zooms_where_the_mouse_is_with_ctrl_or_in_focus_and_scrolls_the_page_otherwise(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    x, y, _ = lanes(page)
    begin, length = in_view(page)
    page.mouse.move(x + 600, y + STREAM)
    # the rows of the timeline first, where it has more than fit, and then the page
    down = "scrollY + document.querySelector('#lanes').scrollTop"
    scrolled = page.evaluate(down)
    page.mouse.wheel(0, 100)
    page.wait_for_timeout(300)
    assert page.evaluate(down) > scrolled
    assert in_view(page) == (begin, length)
    x, y, _ = lanes(page)
    page.mouse.move(x + 600, y + STREAM)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(100)
    page.keyboard.up("Control")
    closer, shorter = in_view(page)
    assert begin < closer < closer + shorter < begin + length
    page.locator("#lanes canvas").focus()
    page.mouse.wheel(0, 400)
    page.wait_for_timeout(100)
    assert in_view(page) == pytest.approx((begin, length), rel=0.02)
    page.mouse.wheel(200, 0)
    page.wait_for_timeout(100)
    later, same = in_view(page)
    assert same == pytest.approx(length, rel=0.02)
    assert later > begin


def test_a_drag_moves_and_with_shift_selects_and_a_double_click_fills_the_view(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    x, y, width = lanes(page)
    begin, length = in_view(page)
    drag(page, (x + 700, y + STREAM), -200)
    later, same = in_view(page)
    assert same == pytest.approx(length, rel=0.02)
    assert begin < later < begin + length
    page.keyboard.down("Shift")
    drag(page, (x + 500, y + STREAM), 150)
    page.keyboard.up("Shift")
    page.locator("#chips", has_text=" from ").wait_for()
    page.wait_for_timeout(80)
    assert seconds(page.inner_text("#chips").split(" from ")[0]) == pytest.approx(
        150 / width * length, rel=0.3
    )
    assert "kernels" in page.inner_text("#details")
    page.keyboard.press("Escape")
    page.mouse.dblclick(x + 500, y + INFERENCES)
    title = page.inner_text("#details h2")
    assert title.startswith("Inference ")
    closer, shorter = in_view(page)
    assert later <= closer + shorter
    assert shorter < length


def test_the_overview_moves_the_part_in_view(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    lanes(page)
    box = page.locator("#overview").bounding_box()
    assert box is not None
    first, length = in_view(page)
    drag(page, (box["x"] + 100, box["y"] + 10), box["width"] * 0.7)
    later, same = in_view(page)
    assert same == pytest.approx(length, rel=0.02)
    assert abs(later - first) > length
    page.locator("#overview").focus()
    page.keyboard.press("ArrowLeft")
    earlier, _ = in_view(page)
    assert later - earlier == pytest.approx(length / 2, rel=0.05)


def test_arrow_keys_go_from_event_to_event_and_home_and_end_to_the_ends(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.fill("#find", "gemm_mha")
    page.locator("#find").press("Enter")
    begins = page.locator("#details tr", has_text="begins").first
    times = [begins.inner_text()]
    for key in ("ArrowRight", "ArrowLeft"):
        page.locator("#lanes canvas").press(key)
        times.append(page.locator("#details tr", has_text="begins").first.inner_text())
    assert times[0] == times[2] != times[1]
    page.keyboard.press("Escape")  # the search …
    page.keyboard.press("Escape")  # … and the details
    page.wait_for_timeout(80)  # the details are gone, and the timeline is wider
    page.locator("#lanes canvas").focus()
    page.keyboard.press("Home")
    start, length = in_view(page)
    page.locator("#lanes canvas").press("End")
    end, same = in_view(page)
    assert start < 1e-6 < end
    assert same == pytest.approx(length, rel=0.02)


def test_copies_and_calls_say_what_is_known_of_them(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["pageable copies"]))
    page.fill("#find", "copy")
    page.locator("#hits h3", has_text="cop").first.wait_for()
    page.locator("#hits li button", has_text="HtoD").first.click()
    told = page.inner_text("#details")
    assert "bytes" in told
    assert "GB/s" in told
    assert "cudaMemcpy" in told  # the call that requested it
    page.locator("#details button", has_text="cudaMemcpy").first.click()
    assert page.inner_text("#details h2").startswith("cudaMemcpy")
    page.fill("#find", "cudaLaunchKernel")
    page.locator("#hits li button", has_text="cudaLaunchKernel").first.click()
    assert "Launched" in page.inner_text("#details")
    page.locator("#details h3:text('Launched') + table button").first.click()
    assert "Grid and resources" in page.inner_text("#details")


def test_the_engine_graph_is_dragged_zoomed_and_clicked(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="graph")
    page.wait_for_selector("svg.shown .box")
    scene = page.locator("svg.shown > g").first
    seen = [scene.get_attribute("transform")]
    box = page.locator("#graph-canvas").bounding_box()
    assert box is not None
    drag(page, (box["x"] + 20, box["y"] + 20), 60, 30)
    seen.append(scene.get_attribute("transform"))
    page.click("#graph-in")
    seen.append(scene.get_attribute("transform"))
    page.keyboard.down("Control")
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.wheel(0, -100)
    page.wait_for_timeout(100)
    page.keyboard.up("Control")
    seen.append(scene.get_attribute("transform"))
    assert len({*seen}) == 4
    page.click("#graph-fit")
    assert scene.get_attribute("transform") == seen[0]
    page.locator("svg.shown .box").nth(5).click()
    assert page.locator("svg.shown .box.on").count() == 1
    assert page.locator("#chips button").count() == 1
    page.locator("#graph-color").select_option("kind")
    assert page.inner_text("#graph-legend b").startswith("Kind")


def test_keys_zoom_about_the_mouse_or_the_selected_event_and_hide_what_the_mouse_was_over(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    x, y, width = lanes(page)
    at = 300 / (width - GUTTER)  # of the lanes' width
    page.mouse.move(x + GUTTER + 300, y + STREAM)
    begin, length = in_view(page)
    for key in "www":
        page.mouse.move(x + GUTTER + 300, y + STREAM + 1)
        page.mouse.move(x + GUTTER + 300, y + STREAM)
        page.keyboard.press(key)
        assert page.locator("#tip").is_hidden()
    closer, shorter = in_view(page)
    assert shorter == pytest.approx(length / 1.5**3, rel=0.02)
    assert closer + at * shorter == pytest.approx(begin + at * length, abs=0.01 * length)
    page.mouse.move(x + GUTTER + 300, y - 200)  # not over the lanes
    page.keyboard.press("0")
    page.fill("#find", "gemm_mha")
    page.locator("#find").press("Enter")
    page.wait_for_timeout(80)  # the details stand beside a narrower timeline
    page.keyboard.press("a")  # the selected kernel is no longer in the middle
    told = page.inner_text("#details")
    begins = re.search(r"\nbegins\s+([\d.,]+ \S+)", told)
    takes = re.search(r"\ntakes\s+([\d.,]+ \S+)", told)
    assert begins is not None and takes is not None
    kernel = seconds(begins[1]) + seconds(takes[1]) / 2  # its middle stays where it is
    begin, length = in_view_kept(page)
    page.keyboard.press("w")
    closer, shorter = in_view_kept(page)
    assert (kernel - closer) / shorter == pytest.approx((kernel - begin) / length, abs=0.02)
    assert (kernel - begin) / length != pytest.approx(0.5, abs=0.1)


def test_times_are_also_told_as_the_report_counts_them(
    browser: Browser, written: Callable[..., Path]
) -> None:
    tables = analyze(
        FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()
    ).tables
    page = opened(browser, bert(written))
    page.fill("#find", "gemm_mha")
    page.locator("#find").press("Enter")
    told = page.inner_text("#details")
    number, start = (
        re.search(r"kernel_id\s+(\d+)", told),
        re.search(r"([\d.]+) ms in the report", told),
    )
    assert number is not None and start is not None
    assert round(float(start[1]) * 1e6) == tables.kernels.ints("start_ns")[int(number[1])]
