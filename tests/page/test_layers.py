"""The page's layers: put together, filtered, sorted, selected, with their rooflines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.output.picture.blocks import block_groups
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, MIXED, bert, open_tab, opened, top


def test_shares_of_layers_and_other_kernels_are_of_one_whole(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    assert "pytorch kernels without a layer" in page.inner_text("#answer .ranked")
    open_tab(page, "layers")
    rows = page.locator("#layer-table tbody tr")
    texts = [text for text in rows.locator("td:first-child").all_inner_texts() if text != "–"]
    shares = [float(text.rstrip("%").lstrip("<")) for text in texts]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    assert (
        page.locator("#layer-table tbody").get_by_text("pytorch kernels without a layer").count()
        == 1
    )
    assert page.locator("#layer-table th", has_text="engine").count() == 1


def test_a_click_on_layers_that_are_alike_selects_all_of_them(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    page.locator(".ranked button").first.click()
    assert "12 layers" in page.inner_text("#chips")
    page.locator("#chips button").click()
    page.locator("#layer-table tbody button").first.click()
    assert "12 layers" in page.inner_text("#chips")
    page.locator("#layer-table tbody button").first.click()
    assert page.locator("#chips").is_hidden()


def test_layers_are_filtered_sorted_and_put_together(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    rows = page.locator("#layer-table tbody tr")
    # layers that repeat are one row, unless each is asked for
    assert (together := rows.count()) < 30
    page.locator("#layer-table tbody").get_by_text("4 ×").first.click()
    assert rows.count() == together + 4
    assert page.locator("#layer-table tr.member").count() == 4
    page.select_option("#layer-rows", "block")
    blocks = [rows.nth(at).locator("td").nth(2).inner_text() for at in range(3)]
    ran = analyze(*(FIXTURES / file for file in CAPTURES["one inference at a time"]), rules=[])
    times = [row.maybe_integer("time_ns") or 0 for row in ran.tables.layers]
    costly = sorted(
        block_groups(ran.engines[0]), key=lambda block: -sum(times[layer] for layer in block.layers)
    )
    assert blocks == [block.name for block in costly[:3]]
    page.select_option("#layer-rows", "each")
    assert rows.count() == 39
    page.fill("#layer-filter", "layer.2 dense")
    assert rows.count() == 3
    page.fill("#layer-filter", "")
    page.click("#layer-table th[data-by=index] button")
    assert page.get_attribute("#layer-table th[data-by=index]", "aria-sort") == "ascending"
    assert rows.first.locator("td").nth(8).inner_text() == "0"


def test_rooflines_of_a_selection_are_of_what_ran_in_it(
    browser: Browser, written: Callable[..., Path]
) -> None:
    tables = analyze(
        FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()
    ).tables
    kernels = tables.kernels
    spent = kernels.ints("end_ns") - kernels.ints("start_ns")
    bound = {
        row.integer("layer_id"): row.maybe_integer("bound_ns")
        for row in tables.roofline
        if row.text("verdict") != "unknown"
    }
    index = {row.maybe_integer("layer_index"): row.integer("layer_id") for row in tables.layers}
    page = opened(browser, bert(written), "inference=7")
    page.select_option("#layer-rows", "each")
    told = 0
    for row in page.locator("#layer-table tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        layer = index[int(cells[8])]
        least, time = (
            bound.get(layer),
            spent[(kernels.ints("layer_id") == layer) & (kernels.ints("inference") == 7)].sum(),
        )
        if least is None or not time or cells[6] == "<0.1%":
            continue
        told += 1
        assert float(cells[6].rstrip("%")) == pytest.approx(100 * least / time, abs=0.06), cells
    assert told > 10
    first = kernels.take(
        np.flatnonzero((kernels.ints("inference") == 7) & (spent > 3000))[[0]]
    ).only()
    events = (kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    begin, stop = first.integer("start_ns") - origin, first.integer("end_ns") - origin
    for cut, known in ((0, True), (500, False)):  # what the selection cuts has not run as a whole
        page = opened(browser, bert(written), f"range={begin - 1}-{stop - cut}")
        page.select_option("#layer-rows", "each")
        layer_index = next(at for at, layer in index.items() if layer == first.integer("layer_id"))
        cells = next(
            cells
            for row in page.locator("#layer-table tbody tr").all()
            if (cells := row.locator("td").all_inner_texts())[8] == str(layer_index)
        )
        assert (cells[6] != "–") == known


def test_layers_that_are_alike_say_what_they_are_and_nothing_moves(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    before = top(page, "#answer .ranked")
    row = page.locator("#answer .ranked tr").first
    share = row.locator("td").first.inner_text()
    row.locator("button").click()
    assert top(page, "#answer .ranked") == before
    details = page.inner_text("#details")
    assert share in details
    assert "Their kernels" in details
    page.keyboard.press("Escape")
    assert top(page, "#answer .ranked") == before
