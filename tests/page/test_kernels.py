"""The page's kernels by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.core.table import Text
from nsysmap.output.build import report_of
from nsysmap.output.page.write import write_page
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, MIXED, bert, opened


def test_a_kernel_s_name_is_explained_and_found_in_the_timeline(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="kernels")
    row = page.locator("#kernels tbody tr", has_text="_gemm_mha_v2")
    assert "attention" in row.inner_text()
    row.locator("button").click()
    page.locator("#count", has_text="of 150").wait_for()
    assert "_gemm_mha_v2_0x" in page.inner_text("#details")


def test_a_kernel_has_one_median(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["no engine file"]), tab="kernels")
    assert page.evaluate("[[1], [1, 9], [1, 2, 9]].map(medianOf)") == [1, 5, 2]
    told = 0
    for row in page.locator("#kernels tbody tr").all()[:8]:
        median = str(row.locator("td").nth(3).text_content())  # it may be drawn only later
        row.locator("button").click()
        if found := re.search(r"median of its name\s+([\d.]+ \S+) of", page.inner_text("#details")):
            told += 1
            assert float(found[1].split()[0]) == pytest.approx(
                float(median.split(maxsplit=1)[0]), abs=0.006
            )
    assert told


def test_kernels_without_a_layer_are_shown_by_their_link(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    page.locator("#answer .ranked a[data-family]").click()
    assert page.is_checked("#kernel-unmapped")
    shown = page.locator("#kernels tbody tr:visible")
    assert 0 < shown.count() < page.locator("#kernels tbody tr").count()
    assert {row.get_attribute("data-family") for row in shown.all()} == {"pytorch"}


def test_a_click_on_a_kernel_s_name_leaves_the_details_free(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="kernels")
    page.locator("#kernels [data-find]").first.click()
    page.get_by_text(re.compile(r"\d+ of [\d,]+")).first.wait_for()
    assert page.locator("#hits").is_hidden()
    assert page.locator("#details h2").is_visible()


def test_a_kernel_for_an_older_gpu_and_of_another_data_type_is_remarked(
    browser: Browser, tmp_path: Path
) -> None:
    whole = analyze(
        FIXTURES / "bert_trt10/sync.nsys-rep", [FIXTURES / "bert_trt10/engine.json"], rules=()
    )
    tables = whole.tables
    layer = next(
        row.integer("layer_id")
        for row in tables.layers
        if row.maybe_text("precision") == "FP16" and row.maybe_integer("kernels")
    )
    name = "sm75_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize32x64x64_stage1_execute_kernel_trt"
    kernels = tables.kernels
    text = kernels.text("name")
    codes = np.where(kernels.ints("layer_id") == layer, len(text.values), text.codes).astype(
        np.int32
    )
    renamed = kernels.with_columns(kernels.spec, {"name": Text(codes, (*text.values, name))})
    own = replace(whole, tables=tables.with_tables(kernels=renamed))
    write_page(own, report_of(whole), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html", f"find={name}")
    page.get_by_text(re.compile(r"kernels of 1 layer")).first.wait_for()
    page.locator("#find").press("Enter")
    details = page.inner_text("#details")
    assert "written for compute capability 7.5; this GPU has 9.0" in details
    assert "the engine file says FP16, this kernel's name only INT8" in details
    page = opened(browser, tmp_path / "x.html", "find=_gemm_mha_v2")
    page.get_by_text(re.compile(r"kernels of \d+ layers")).first.wait_for()
    page.locator("#find").press("Enter")
    assert "What to know of it" not in page.inner_text("#details")


def test_kernels_by_name_follow_the_selection(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED), tab="kernels")
    rows = page.locator("#kernels tbody tr:visible")
    whole, count = rows.first.text_content(), rows.count()
    page.keyboard.press("]")
    assert "within the selection" in page.inner_text("#kernels .said")
    assert 0 < rows.count() < count
    shares = [
        float(text.rstrip("%").lstrip("<"))
        for text in rows.locator("td:first-child").all_text_contents()
    ]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    page.keyboard.press("Escape")
    assert rows.count() == count
    assert rows.first.text_content() == whole


def test_a_kernel_s_name_opens_an_execution_of_its_median_time(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["no engine file"]), tab="kernels")
    seen = False
    for row in page.locator("#kernels tbody tr").all()[:6]:
        median = str(row.locator("td").nth(3).text_content())  # it may be drawn only later
        row.locator("button").click()
        details = page.inner_text("#details")
        takes = re.search(r"takes\s+([\d.]+ \S+)", details)
        assert takes is not None
        assert takes[1].split()[1] == median.split()[1]
        assert float(takes[1].split()[0]) == pytest.approx(
            float(median.split(maxsplit=1)[0]), rel=0.02
        )
        seen |= "median of its name" in details  # it runs with several grids
    assert seen
