"""The page's timeline draws every event, however deep or short, zooms and moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.api import analyze
from nsysmap.core.table import IntArray, Text
from nsysmap.output.build import report_of
from nsysmap.output.page.write import write_page
from tests.browser import Browser
from tests.nsys_file import NsysFile
from tests.places import FIXTURES

if TYPE_CHECKING:
    from playwright.sync_api import Page
from tests.page.opening import bert, opened


def test_the_timeline_zooms_moves_and_is_clicked(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    canvas = page.locator("#lanes canvas")
    canvas.scroll_into_view_if_needed()
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    canvas.focus()
    page.keyboard.press("w")
    page.wait_for_timeout(100)
    zoomed = canvas.evaluate("canvas => canvas.toDataURL()")
    page.keyboard.press("d")
    page.wait_for_timeout(100)
    assert len({before, zoomed, canvas.evaluate("canvas => canvas.toDataURL()")}) == 3
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 500, box["y"] + 30)  # the lane of inferences
    assert page.inner_text("#details h2").startswith("Inference")
    assert "inference" in page.inner_text("#chips")
    page.keyboard.press("Escape")
    assert page.is_hidden("#chips")


def test_ranges_in_ranges_are_all_there_however_deep(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt103" / "sync.nsys-rep", rules=())
    ranges = whole.tables.nvtx_ranges
    first = ranges.take(np.zeros(40, np.int64))
    begin, end = int(first.ints("start_ns")[0]), int(first.ints("end_ns")[0])
    step = max((end - begin) // 100, 1)
    nested: dict[str, IntArray | Text] = {
        "start_ns": begin + step * np.arange(40),
        "end_ns": end - step * np.arange(40),
    }
    nested["name"] = Text(
        np.arange(40, dtype=np.int32), tuple(f"depth {depth}" for depth in range(40))
    )
    deep = replace(
        whole, tables=whole.tables.with_tables(nvtx_ranges=first.with_columns(first.spec, nested))
    )
    write_page(deep, report_of(deep), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html")
    page.fill("#find", "depth 3")
    page.locator("#count", has_text="13 NVTX ranges").wait_for()  # 3, 13, 23, and 30 to 39
    page.keyboard.press("Enter")
    for _ in range(10):
        (
            page.keyboard.press("n")
            if page.evaluate("document.activeElement.id !== 'find'")
            else page.click("#next")
        )
    assert "depth 3" in page.inner_text("#details h2")
    names = page.evaluate(
        "stacked({ranges: {start: [0, 1, 2], end: [9, 8, 7]}}, [[7, 0], [7, 1], [7, 2]]).map(row =>"
        " row.length)"
    )
    assert names == [1, 1, 1]
    deepest = page.evaluate(
        "(n => stacked({ranges: {start: [...Array(n).keys()], end: [...Array(n).keys()].map(k => 99"
        " - k)}}, [...Array(n).keys()].map(k => [7, k])).map(row => row.length))(40)"
    )
    assert deepest == [1] * 24 + [16]


def test_a_long_event_that_begins_in_the_pixel_of_a_short_one_is_drawn(
    browser: Browser, written: Callable[..., Path]
) -> None:
    path = written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json")
    tables = analyze(
        FIXTURES / "bert_trt10/sync.nsys-rep", [FIXTURES / "bert_trt10/engine.json"], rules=()
    ).tables
    calls = tables.api_calls
    launches = np.flatnonzero(calls.text("kind").equals("launch"))
    start, end = calls.ints("start_ns")[launches], calls.ints("end_ns")[launches]
    longest = int(np.argmax(end - start))
    events = (tables.kernels, tables.memcpys, tables.memsets, calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    begin, stop = int(start[longest]) - origin, int(end[longest]) - origin
    colour = [157, 183, 213]  # of a launch call
    for times in (2, 3, 5, 8, 13):
        beside = (stop - begin) * times // 2
        page = opened(browser, path, f"range={max(begin - beside, 0)}-{stop + beside}")
        found = page.evaluate(
            """async ([at, colour]) => {
              await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
              const canvas = document.querySelector("#lanes canvas"), x = Math.round(at * canvas.width);
              const pixels = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data;
              const pixel = place => [...pixels.slice(place * 4, place * 4 + 3)].join();
              return [...Array(canvas.height).keys()].some(place => pixel(place) === colour.join());
            }""",  # noqa: E501
            [
                _share_of_width(page, (begin + stop) / 2, max(begin - beside, 0), stop + beside),
                colour,
            ],
        )
        assert found, times
        page.close()


def _share_of_width(page: Page, moment: float, begin: float, end: float) -> float:
    """Where in the timeline's picture a moment stands while it shows that part of time."""
    width = float(page.locator("#lanes").evaluate("place => place.clientWidth"))
    room = max((end - begin) * 0.08, 200)
    return (168 + (moment - begin + room) / (end - begin + 2 * room) * (width - 168)) / width


def test_the_stream_with_the_most_work_is_the_first_of_its_gpu(
    browser: Browser, tmp_path: Path
) -> None:
    file = NsysFile()
    for number in range(12):
        file.call("cudaLaunchKernel_v7000", 10_000 * number, 10_000 * number + 2, number)
        name, on, ns = ("large", 18, 5_000) if number % 2 else ("small", 7, 5)
        file.kernel(name, 10_000 * number + 10, number, took=ns, stream=on)
    path = tmp_path / "page.html"
    analyze(file.write(tmp_path / "x.sqlite"), rules=[]).write(path)
    page = opened(browser, path)
    streams = page.evaluate(
        "async () => { const [{ head: doc }, rows] = await Promise.all([inflated('doc'),"
        " inflated('rows')]); return traceOf(doc, unpacked(rows)).lanes.map(one => one.name); }"
    )
    assert [name for name in streams if "stream" in name] == ["GPU 0 stream 18", "GPU 0 stream 7"]
