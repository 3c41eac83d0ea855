"""The distribution of inferences on the page, and its outliers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.api import analyze
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import MIXED, bert, open_tab, opened


def test_inferences_of_two_engines_have_colours_and_a_legend(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    assert page.locator("#inferences .legend span").all_inner_texts() == [
        "backbone.engine.json",
        "head.engine.json",
    ]
    slow = page.inner_text("#inferences .slow")
    assert "among the first of its kind: may be warm-up" in slow
    assert re.search(r"inference \d+ \(head\): [\d.]+ µs", slow)
    assert re.search(r"inference \d+ \(backbone\): [\d.]+ µs", slow)


def test_an_outlier_by_the_profiler_s_own_work_is_called_an_artefact(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("two_shapes/sync.nsys-rep", "two_shapes/engine.json"))
    listed = page.locator("#inferences .slow li").all_inner_texts()
    tables = analyze(
        FIXTURES / "two_shapes/sync.nsys-rep", [FIXTURES / "two_shapes/engine.json"], rules=()
    ).tables
    median = {
        row.integer("group_id"): row.maybe_integer("median_ns") or 0
        for row in tables.inference_groups
    }
    timed = [row for row in tables.inference_times if row.maybe_integer("time_ns") is not None]
    longer = {
        row.integer("inference"): row.integer("time_ns") - median[row.integer("group_id")]
        for row in timed
    }
    by_profiler = {
        row.integer("inference")
        for row in timed
        if row.maybe_text("extra_cause") == "profiler"
        and 2 * (row.maybe_integer("extra_ns") or 0) > longer[row.integer("inference")]
    }
    told = {
        int(one.split()[1].rstrip(":")): "an artefact of profiling, not of the program" in one
        for one in listed
    }
    assert told == {inference: inference in by_profiler for inference in told}
    assert set(told.values()) == {True, False}  # one waited for launches
    open_tab(page, "inferences")
    page.locator("#inferences .slow button").first.click()
    assert "an artefact" in page.inner_text("#details")


def test_an_outlier_is_named_with_its_cause(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), tab="inferences")
    page.locator("#inferences .slow button").first.click()
    assert page.inner_text("#details h2").startswith("Inference")
    assert "×" in page.inner_text("#details")


def test_what_an_inference_waited_before_it_began_is_part_of_its_time(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), "inference=7")
    details = page.inner_text("#details")
    assert "from the end of the one before on its thread to its own" in details
    within = re.search(r"within the selection \(([\d.]+ µs)\)", page.inner_text("#idle .said"))
    assert within is not None
    # the time of the inference is what the figures of the selection are of
    assert within[1] in details


def test_an_inference_just_below_an_outlier_is_not_called_one(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    said = page.evaluate("[1.4963, 1.5, 1.4949, 1.504].map(times => timesWords(times, 1.5))")
    assert said == ["1.49 ×", "1.50 ×", "1.49 ×", "1.50 ×"]


def test_inferences_show_the_time_of_the_selected_layers(
    browser: Browser, written: Callable[..., Path]
) -> None:
    tables = analyze(
        FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()
    ).tables
    kernels, inferences = tables.kernels, tables.inferences
    mine = kernels.ints("layer_id") == 4
    rows = tables.inference_times.ints("inference")
    spent = np.array(
        [
            (kernels.ints("end_ns") - kernels.ints("start_ns"))[
                mine & (kernels.ints("inference") == row)
            ].sum()
            for row in rows
        ]
    )
    events = (kernels, tables.memcpys, tables.memsets, tables.api_calls, inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    duration = max(int(table.ints("end_ns").max()) for table in events if len(table)) - origin
    page = opened(browser, bert(written), "layer=4", tab="inferences")
    assert (
        page.inner_text("#inferences .said")
        == "Now: the time of the selected layer's kernels in each inference."
    )
    canvas = page.locator("#inferences canvas")
    wide = canvas.evaluate("one => one.clientWidth")
    ordered = np.sort(spent)
    highest_ns = min(
        ordered[-1], max(ordered[int(len(ordered) * 0.99)] * 2, ordered[len(ordered) // 2] * 2.5)
    )
    step_ns = page.evaluate(f"nice({highest_ns / 4})")
    top_ns = np.ceil(highest_ns / step_ns) * step_ns  # a line of the axis
    for place in (3, 20, 40):
        x = (
            64
            + (wide - 64 - 120 - 10)
            * (int(inferences.ints("start_ns")[rows[place]]) - origin)
            / duration
        )
        canvas.click(position={"x": x, "y": 180 - 172 * min(spent[place] / top_ns, 1)})
        assert f"inference {rows[place]} ×" in page.inner_text("#chips")
    page.keyboard.press("Escape")
    assert page.inner_text("#inferences .said") == ""
