"""Idle time on the page: its causes, and what proves them."""

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
from tests.page.opening import CAPTURES, MIXED, bert, opened, seconds, top


def test_idle_time_names_kernels_beside_it_that_have_no_layer_and_a_name_is_explained(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    page.fill("#find", "elementwise")
    page.get_by_text("kernels", exact=False).first.wait_for()
    page.locator("#find").press("Enter")
    assert "Kernel without a" in page.inner_text("#details h2")
    lanes = page.locator("#lanes canvas")
    for at in range(200, 1000, 25):  # along the idle time of GPU 0, the second row from above
        lanes.click(position={"x": at, "y": 22 + 21 + 10})
        if "Between" in page.inner_text("#details") and "pytorch" in page.inner_text("#details"):
            break
    else:
        pytest.fail("no idle time beside a kernel of PyTorch was found")
    page = opened(browser, written(*MIXED), "find=xmma_gemm")
    page.get_by_text(re.compile(r"^\d+ kernels of")).first.wait_for()
    page.locator("#find").press("Enter")
    assert "A transposed, B not" in page.inner_text("#details")
    assert "compute capability" in page.inner_text("#details")


def test_each_cause_of_idle_time_has_one_name(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    of_answer = {
        one.strip()
        for one in page.locator("#answer .legend button").evaluate_all(
            "all => all.map(one => one.childNodes[3].data)"
        )
    }
    of_table = {one.strip() for one in page.locator("#idle tbody button").all_inner_texts()}
    of_timeline = {one.strip() for one in page.locator("#legend b ~ span").all_inner_texts()}
    assert len(of_table) > 3
    assert of_table == of_timeline
    assert len(of_answer) > 1
    assert of_answer <= of_table  # of those that the bar can show


def test_idle_time_of_layers_is_what_precedes_their_kernels(
    browser: Browser, written: Callable[..., Path]
) -> None:
    tables = analyze(
        FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()
    ).tables
    after = tables.gaps.ints("after_kernel")
    of = np.where(after >= 0, tables.kernels.ints("layer_id")[np.maximum(after, 0)], -1)
    page = opened(browser, bert(written), "layer=4")
    assert "directly before kernels of the selected layers" in page.inner_text("#idle .said")
    cells = [row.locator("td").all_inner_texts() for row in page.locator("#idle tbody tr").all()]
    assert sum(seconds(one[1]) for one in cells) == pytest.approx(
        tables.gaps.ints("dur_ns")[of == 4].sum() / 1e9, rel=0.005
    )
    assert sum(int(one[2].replace(",", "")) for one in cells) == np.count_nonzero(of == 4)


def test_idle_time_of_an_inference_is_that_of_its_gpu(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(
        browser, written("two_gpus/tp_sync.nsys-rep", "two_gpus/tp.engine.json"), "inference=30"
    )
    own = re.search(r"\nidle\s+([\d.,]+ \S+)", page.inner_text("#details"))
    assert own is not None
    cells = [row.locator("td").all_inner_texts() for row in page.locator("#idle tbody tr").all()]
    within = re.search(r"selection \(([\d.,]+ \S+)\)", page.inner_text("#idle .said"))
    assert within is not None
    assert sum(seconds(one[1]) for one in cells) == pytest.approx(seconds(own[1]), rel=0.01)
    shares = [float(one[0].rstrip("%").lstrip("<")) / 100 for one in cells]
    assert sum(shares) == pytest.approx(
        seconds(own[1]) / seconds(within[1]), abs=0.001 * len(shares)
    )


def test_idle_time_says_how_much_of_it_the_host_was_in_cuda_calls(
    browser: Browser, written: Callable[..., Path]
) -> None:
    # most of whose idle time is in no call
    page = opened(browser, written(*CAPTURES["two engines in turns"]), "inference=16")
    lanes = page.locator("#lanes canvas")
    shares = {}
    for at in range(200, 1000, 15):
        lanes.click(position={"x": at, "y": 22 + 21 + 10})
        told = re.search(
            r"in CUDA calls\s+([\d.]+) (\S+) of ([\d.]+) (\S+)", page.inner_text("#details")
        )
        if told and told[2] == told[4]:
            shares[told[0]] = float(told[1]) / float(told[3])
    assert min(shares.values()) < 0.1
    assert max(shares.values()) > 0.9
    assert all(0 <= share <= 1 for share in shares.values())


def test_a_cause_of_idle_time_is_selected_by_a_click_on_the_bar_its_legend_or_its_row(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="idle")
    longest: set[str] = set()
    for place in (
        "#answer .legend [data-cause=launch]",
        "#answer .whole [data-cause=launch]",
        "#idle tbody button:text-is('waiting for launches')",
    ):
        page.locator(place).click()
        assert "idle: waiting for launches" in page.inner_text("#chips")
        assert page.inner_text("#details h2") == "GPU 0 idle: waiting for launches"
        assert 0 <= top(page, "#lanes") < 600  # in sight
        assert "waiting for launches" in page.inner_text("#idle tr.on")
        longest.add(page.inner_text("#details"))
        page.keyboard.press("n")
        assert page.inner_text("#details h2") == "GPU 0 idle: waiting for launches"
        page.keyboard.press("Escape")
        assert page.locator("#chips").is_hidden()
        assert page.inner_text("#count") == ""
    assert len(longest) == 1


def test_a_cause_is_shown_within_the_selected_inference(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]), "inference=16", tab="idle")
    page.locator("#answer .legend [data-cause=launch]").click()
    for _ in range(3):
        assert page.inner_text("#details h2") == "GPU 0 idle: waiting for launches"
        assert re.search(r"\ninference\s+16\n", page.inner_text("#details"))
        if page.inner_text("#count").startswith("1 "):
            break
        page.keyboard.press("n")
    within = int(page.inner_text("#count").split()[-1])
    page.locator("#idle tbody button:text-is('waiting for launches')").click()
    longest = re.search(r"\ntakes\s+([\d.,]+ \S+)", page.inner_text("#details"))
    assert longest is not None
    assert seconds(longest[1]) == pytest.approx(482e-6, rel=0.01)  # as the answer says
    row = page.locator("#idle tbody tr", has_text="waiting for launches").locator("td").nth(2)
    assert int(row.inner_text()) == within
    page.keyboard.press("]")  # the inference after: n and p go through its intervals
    page.keyboard.press("n")
    assert page.inner_text("#count").split(",")[0].split()[-1] == row.inner_text() != str(within)


def test_a_slow_inference_leads_to_the_interval_that_made_it_slow(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    assert (
        "(242 µs at once, in one cudaLaunchKernel of 275 µs: preempted or blocked?)"
        in page.inner_text("#answer")
    )
    page.locator("#answer .last [data-inference]").click()
    row = page.locator("#details tr", has_text="the longest of that")
    assert row.locator("button").inner_text().startswith("242.0 µs before ")
    row.locator("button").click()
    told = page.inner_text("#details")
    assert told.count("GPU 0 idle: waiting for launches") == 1
    assert re.search(r"\ntook\s+274.6 µs", told)
