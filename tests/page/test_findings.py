"""Findings on the page lead to their places in time and in the engine graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.core.table import MISSING, Text
from nsysmap.output.build import report_of
from nsysmap.output.page.write import write_page
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import CAPTURES, MIXED, bert, open_tab, opened, seconds, top


def test_findings_of_one_rule_stand_together(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    assert page.locator(".finding .about", has_text="attention-not-fused").count() == 1
    titles = page.locator(".finding h3").all_inner_texts()
    assert (
        "An attention block runs as separate kernels instead of one fused attention kernel."
        in titles
    )
    assert page.inner_text("#tab-findings") == f"Findings {len(titles)}"
    assert page.locator(".finding", has_text="attention-not-fused").locator(".place").count() == 2


def test_a_finding_leads_to_its_place_in_time_and_graph(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="findings")
    card = page.locator(".finding", has_text="attention-not-fused").first
    card.get_by_text("in the engine graph").click()
    page.wait_for_selector(".box.found")
    assert page.locator(".box .badge").count() > 0
    open_tab(page, "findings")
    card.get_by_text("show in the timeline").click()
    assert "layer" in page.inner_text("#chips")
    assert page.locator("#lanes").evaluate(
        "place => place.getBoundingClientRect().top < innerHeight"
    )


def test_a_finding_marks_all_its_layers(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), tab="findings")
    card = page.locator(".finding", has_text="attention-not-fused").first
    card.get_by_text(re.compile(r"its \d+ layers")).first.click()
    assert page.locator("#layer-table tr.on").count() > 1
    assert re.search(r"layers=\d+(\.\d+)+", page.url)
    assert "marked in every" in page.inner_text("#details")
    link = page.url
    page.keyboard.press("Escape")
    assert page.locator("#layer-table tr.on").count() == 0
    again = opened(browser, bert(written), link.partition("#")[2])
    assert again.locator("#layer-table tr.on").count() > 1
    open_tab(again, "findings")
    again.locator(".finding", has_text="attention-not-fused").get_by_text(
        "in the engine graph"
    ).first.click()
    again.wait_for_selector(".box.found")
    assert again.locator(".box.found").count() > 1


def test_a_rule_of_many_places_shows_the_first_and_opens_the_others(
    browser: Browser, tmp_path: Path
) -> None:
    whole = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"])
    findings = whole.tables.findings
    mine = np.flatnonzero(findings.text("rule").equals("attention-not-fused"))[:1].repeat(7)
    layers = [str(number) for number in whole.tables.layers.ints("layer_id")[-7:].tolist()]
    several = findings.take(mine).with_columns(
        findings.spec,
        {
            "finding_id": np.arange(7),
            "about": Text.of(layers),
            "layer_id": np.array([int(layer) for layer in layers]),
            "inside": np.full(7, MISSING),
        },
    )
    many = replace(whole, tables=whole.tables.with_tables(findings=several))
    write_page(many, report_of(whole), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html", tab="findings")
    rest = page.locator(".finding .rest")
    assert page.locator(".finding .place:visible").count() == 3
    assert rest.locator("summary").inner_text() == "4 more places"
    rest.locator("summary").click()
    rest.locator(".place").last.get_by_text("its layer").click()
    row = page.locator("#layer-table tr.on").last
    assert row.evaluate(
        "row => row.getBoundingClientRect().bottom < innerHeight &&"
        " row.getBoundingClientRect().top > 0"
    )
    assert rest.locator("summary").inner_text() == "4 more places, 1 of them concern the selection"
    open_tab(page, "findings")
    page.evaluate("document.querySelector('.rest').open = false")
    open_tab(page, "layers")
    page.locator("#details td button", has_text="attention-not-fused").click()
    assert rest.locator(".place").last.is_visible()  # the place that it leads to
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".finding .place:visible").count() == 7


def test_links_to_findings_and_predictions_show_what_they_are_about(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    for link in page.locator('#answer a[href^="#finding-"]').all():
        link.click()
        card = f"article{link.get_attribute('href')}"
        assert 0 <= top(page, f"{card} h3") < 100 or page.evaluate(
            "scrollY + innerHeight >= document.body.scrollHeight - 1"
        ), card
    link = page.get_by_text("how predicted").first
    change = str(link.get_attribute("href"))
    link.click()
    assert page.locator(f"tr{change}").inner_text().startswith(change.removeprefix("#change-"))
    assert 0 <= top(page, change) < 100 or page.evaluate(
        "scrollY + innerHeight >= document.body.scrollHeight - 1"
    )


@pytest.mark.parametrize(
    "names", [MIXED, CAPTURES["two engines in turns"], CAPTURES["pageable copies"]]
)
def test_rules_stand_in_the_order_of_their_costs(
    browser: Browser, written: Callable[..., Path], names: tuple[str, ...]
) -> None:
    page = opened(browser, written(*names))
    told = [
        head
        for head in page.locator("#findings .about").all_text_contents()
        if "costs" in head and " per " in head
    ]
    costs = [
        (head.split()[0], -seconds(head.partition("costs ")[2].partition(" per ")[0]))
        for head in told
    ]
    assert len(costs) > 3
    assert costs == sorted(
        costs, key=lambda one: (("error", "warning", "info").index(one[0]), one[1])
    )


def test_the_graph_opens_at_the_engine_that_takes_most(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    open_tab(page, "graph")
    page.wait_for_selector("#graph-canvas .box")
    assert (
        page.locator("#graph-engine").evaluate("one => one.selectedOptions[0].text")
        == "generation.engine.json"
    )
    assert "mean of 96 inferences" in page.inner_text("#graph-legend")


def test_findings_about_no_layers_select_the_events_that_they_are_about(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    for rule, chip, shown in (
        ("pageable-copy", r"pageable-copy: \d+ copies", "copy DtoH"),
        ("launch-bound", r"launch-bound: [\d,]+ intervals", "GPU 0 idle: waiting for launches"),
        ("under-filled-gpu", r"under-filled-gpu: [\d,]+ kernels", None),
    ):
        open_tab(page, "findings")
        card = page.locator("#findings article", has=page.locator("code", has_text=rule)).first
        card.get_by_text("show in the timeline").first.click()
        assert re.search(chip, page.inner_text("#chips")), rule
        if shown:
            assert page.inner_text("#details h2") == shown
        count = page.inner_text("#count")
        page.keyboard.press("n")
        assert page.inner_text("#count") != count
        page.keyboard.press("Escape")
        assert page.locator("#chips").is_hidden()
    page = opened(
        browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"), tab="findings"
    )
    page.locator("#findings article", has=page.locator("code", has_text="fp16-norm")).get_by_text(
        "show in the timeline"
    ).first.click()
    assert "fp16-norm: 13 layers" in page.inner_text("#chips")
