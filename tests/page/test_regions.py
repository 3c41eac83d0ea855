"""The insides of regions on the page."""

from __future__ import annotations

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
from tests.page.opening import CAPTURES, opened, seconds


def test_parts_of_a_region_that_are_alike_are_one_row(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(
        browser, written("bert_trt85/sync.nsys-rep", "bert_trt85/engine.json"), tab="layers"
    )
    rows = page.locator("#region-list tbody tr")
    page.locator("#region-list").scroll_into_view_if_needed()
    assert rows.first.inner_text().split("\t")[3].startswith("gemm")
    assert rows.count() < 12
    page.uncheck("#region-alike")
    assert rows.count() == 64


def test_parts_of_a_region_are_named_without_myelin_s_mark(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(
        browser, written("bert_trt86/sync.nsys-rep", "bert_trt86/engine.json"), tab="layers"
    )
    page.locator("#region-list").scroll_into_view_if_needed()
    parts = page.locator("#region-list tbody tr")
    assert "/encoder/layer" in parts.first.inner_text()
    assert {one.strip() for one in parts.locator("td:last-child").all_inner_texts()} == {
        "the trace"
    }
    page.fill("#find", "gemm")
    page.locator("#find").press("Enter")
    details = page.inner_text("#details")
    assert "part known from\ta tag of the trace" in details.replace("\n", "\t").replace(
        "\t\t", "\t"
    )
    # the ranges stand as the trace has them
    shown = page.inner_text("main") + details.partition("NVTX ranges")[0]
    assert "$$myelin$$" not in shown


def test_regions_that_are_alike_are_one(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    regions = page.locator("#region-list summary")
    together = regions.all_inner_texts()
    assert "4 regions, 4 parts" in together[0]
    assert "(generation)" in together[0]  # which spends more time in them over the run
    assert any("(context)" in one for one in together)
    page.uncheck("#region-alike")
    assert regions.count() == 18 > len(together)


@pytest.mark.parametrize(
    "selected", ["inference=7", "range=2000000-2260000", "inference=7&layer=1", "layer=0"]
)
def test_what_is_inside_regions_follows_the_selection(
    browser: Browser, written: Callable[..., Path], selected: str
) -> None:
    names = ("bert_trt86/sync.nsys-rep", "bert_trt86/engine.json")
    tables = analyze(FIXTURES / names[0], [FIXTURES / names[1]], rules=()).tables
    kernels, region = tables.kernels, tables.layers.text("kind").equals("foreign_node")
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    timed = (kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in timed if len(table))
    inside = region[kernels.ints("layer_id")] & (kernels.ints("layer_id") >= 0)
    for what, _, value in (one.partition("=") for one in selected.split("&")):
        if what == "range":
            begin, stop = (origin + int(part) for part in value.split("-"))
            start, end = np.maximum(start, begin), np.minimum(end, stop)
            inside &= end > start
        else:
            inside &= kernels.ints("layer_id" if what == "layer" else what) == int(value)
    page = opened(browser, written(*names))
    whole = page.inner_text("#region-list tbody")
    page = opened(browser, written(*names), selected)
    if not inside.any():  # the layer is no region
        assert page.inner_text("#region-said") == "no kernel of a region is in the selection"
        assert page.locator("#region-list details").count() == 0
        return
    assert page.inner_text("#region-said") == "times and kernels within the selection"
    rows = page.locator("#region-list tbody tr")
    assert page.inner_text("#region-list tbody") != whole
    times = [
        float(text.replace(",", "")) for text in rows.locator("td:nth-child(2)").all_inner_texts()
    ]
    assert sum(times) == pytest.approx((end - start)[inside].sum() / 1000, abs=0.006 * len(times))
    assert sum(
        int(text) for text in rows.locator("td:nth-child(3)").all_inner_texts()
    ) == np.count_nonzero(inside)
    shares = [
        float(text.rstrip("%").lstrip("<"))
        for text in rows.locator("td:first-child").all_inner_texts()
    ]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    page.keyboard.press("Escape")
    assert page.inner_text("#region-list tbody") == whole


def test_regions_that_took_most_of_the_run_are_first_however_often_their_engines_ran(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    told = page.locator("#region-list summary").all_inner_texts()
    engines = ["generation" if "(generation)" in one else "context" for one in told]
    assert len(engines) > 3
    assert engines[0] == "generation"  # of 96 of the 99 inferences
    assert seconds(" ".join(told[0].split()[:2])) < max(
        seconds(" ".join(one.split()[:2])) for one in told
    )
