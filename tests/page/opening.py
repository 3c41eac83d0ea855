"""Opens pages of captures for the tests of one subject each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import Browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

CAPTURES = {
    "one inference at a time": ("bert_trt103/sync.nsys-rep", "bert_trt103/engine.json"),
    "a graph, kernels hidden": ("bert_trt10/graph_whole.nsys-rep", "bert_trt10/engine.json"),
    "auxiliary streams in a graph": ("aux_streams/graph.nsys-rep", "aux_streams/engine.json"),
    "two engines in turns": (
        "decode_loop/sync.nsys-rep",
        "decode_loop/context.engine.json",
        "decode_loop/generation.engine.json",
    ),
    "pageable copies": ("bert_split_trt10/pageable.nsys-rep", "bert_split_trt10/engine.json"),
    "no engine file": ("bert_trt85/sync.nsys-rep",),
}


MIXED = (
    "torch_mixed/sync.nsys-rep",
    "torch_mixed/backbone.engine.json",
    "torch_mixed/head.engine.json",
)


def opened(
    browser: Browser, path: Path, fragment: str = "", *, scheme: str = "light", tab: str = ""
) -> Page:
    """The page, with one of its tabs opened by a click if it is named."""
    page = browser.open(path, fragment, scheme=scheme)
    page.wait_for_selector("body[data-ready]")
    if tab:
        open_tab(page, tab)
    return page


def open_tab(page: Page, key: str) -> None:
    page.click(f"#tab-{key}")


def bert(written: Callable[..., Path]) -> Path:
    return written(*CAPTURES["one inference at a time"])


def top(page: Page, place: str) -> float:
    """How far below the header the first of these elements begins, in pixels."""
    head = page.locator("header").evaluate("one => one.getBoundingClientRect().bottom")
    return float(
        page.locator(place).first.evaluate("one => one.getBoundingClientRect().top")
    ) - float(head)


def seconds(text: str) -> float:
    """A duration of the page."""
    number, unit = text.split()
    return float(number.replace(",", "")) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
